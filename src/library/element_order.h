/* The order of elements by their keys, as unique codes that are sorted like bare keys (kernels/base/key_field.h).
 *
 *     elements      keys (4 bytes)   codes, sorted as keys     keys    positions
 *     rank 0        7 3              3|1 3|3                   3 3     1 3
 *     rank 1        9 3 7            7|0 7|4 9|2               7 7 9   0 4 2 */
#ifndef ELEMENT_ORDER_H
#define ELEMENT_ORDER_H

#include "src/library/element_array.h"

enum { ELEMENT_CODE_BITS = 128 /* of the longest codes */, WORD_BITS = 64 /* of the others */ };

/* Bits of the positions 0 .. count - 1; one at least, so that they have a place. Pure. */
int element_position_bits(int64_t count);

/* Bytes of codes of so many bits, ELEMENT_CODE_BITS at most. Pure. */
int element_code_bytes(int bits);

/* Give each field its place in the code, the last one lowest, from bit `shift` on. Returns the first bit above. Pure. */
int element_place_fields(struct key_field *fields, int field_count, int shift);

/* One word of each of some codes, which lie `stride` bytes apart: word 0 is the lower, 1 the upper one of 16 bytes. Pure. */
struct key_field element_word(const void *keys, int word, size_t stride, int shift);

/* One call of the library under way. */
struct element_order {
    hsort_context *ctx;
    void *stream;
    int64_t count, out_count;                  /* of this rank, coming and going */
    struct key_field fields[HSORT_FIELDS_MAX]; /* in engine memory; the first one decides first */
    size_t offsets[HSORT_FIELDS_MAX];          /* of them in a record */
    int field_count;

    /* known after element_order_plan() */
    int64_t *in_offset, *out_offset; /* [size + 1] each, owned: global position of each rank's first element */
    int64_t total;
    int key_bits, position_bits, code_bytes;
    bool in_two_rounds; /* keys and positions do not fit into 16 bytes */

    /* known after element_order_find() */
    int64_t *positions; /* [out_count] engine memory, the caller's */
};

/* Learn all counts, and begin the statistics of the call. fields need no memory yet. Collective.
 *   mine     this rank's status so far, agreed on here
 *   request  a number that must be the same on all ranks: it stands for what they ask for
 * Errors   agreed: HSORT_ARGUMENT, HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status element_order_plan(struct element_order *order, hsort_status mine, uint64_t request);

/* Find the order of as many elements as are asked for. Collective.
 *   positions  [out_count] engine memory, written: the global positions of the elements that belong here
 *   keys       [out_count] engine memory, written: the keys of the only field, in order; or NULL. May be where the keys come
 *              from, except in two rounds
 * Errors agreed: those of a sort. */
hsort_status element_order_find(struct element_order *order, int64_t *positions, void *keys);

/* Are the keys one array of numbers, as the engine's sort reads them? Pure. */
bool element_order_has_bare_keys(const struct element_order *order);

/* Does the engine sort such keys and values by itself (struct engine_pairs)? It can on a rank alone whose keys are one array;
 * then no element has to be gathered. All of `pairs` counts except the addresses. Pure. */
bool element_order_takes_pairs(const struct element_order *order, const struct engine_pairs *pairs);

/* Sort such pairs, on a rank alone. Errors: the engine's, this rank's own. */
hsort_status element_order_sort_pairs(const struct element_order *order, const struct engine_pairs *pairs);

/* Carry elements over all ranks, in engine memory, and book the time. Collective.
 *   scatters  false: to[i] = from[index[i]]; true: to[index[i]] = from[i]
 *   offset    [size + 1] global position of each rank's first element of the array that the index is into
 *   index     [count] engine memory
 * Errors agreed: those of element_gather.h. */
hsort_status element_carry(hsort_context *ctx, bool scatters, const int64_t *offset, const int64_t *index,
                           int64_t count, size_t element_bytes, const void *from, void *to);

/* Free its tables. Not collective. */
void element_order_close(struct element_order *order);

#endif
