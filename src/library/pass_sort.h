/* What the two passes of a sort (two_passes.c) have to know of keys: how a slot is sorted on the engine, and the code of
 * one key in host memory, for the cuts. Elements are bare keys, or have keys in them and bytes that travel with these. */
#ifndef PASS_SORT_H
#define PASS_SORT_H

#include "src/library/context.h"
#include "src/library/pass_plan.h"

/* Elements with keys in them. */
struct pass_elements {
    size_t bytes; /* of an element */
    int field_count, key_bits;
    struct key_field fields[HSORT_FIELDS_MAX]; /* shifted so that all of them together are the key's code */
    size_t offsets[HSORT_FIELDS_MAX];          /* of them in an element */
};

struct pass_sort {
    hsort_context *ctx;
    struct keymap map;                    /* of bare keys */
    const struct pass_elements *elements; /* borrowed; NULL: bare keys */
};

/* The codes of a slot of elements. */
struct slot_codes {
    int position_bits, bytes;
    bool by_words; /* no position fits beside the key */
    size_t room;   /* bytes of a slot of codes; their sort takes two of these, and its workspace */
};

/* The codes of elements whose keys have so many bits. Pure. */
struct slot_codes pass_slot_codes(int key_bits, int64_t slot);

/* Bytes of an element, or of a bare key. Pure. */
size_t pass_element_bytes(const struct pass_sort *sort);

/* pass_workspace_fn: engine memory beside a slot of `slot` elements and as much scratch. */
hsort_status pass_sort_workspace(void *pass_sort, int64_t slot, size_t *bytes);

/* Have PASS_SLOTS slots of `slot` elements, and workspace, in the context. Where these are needed, nothing else has room, so what
 * other sorts have left is freed. Ranks have unmapped each other's memory. Not collective.
 *   slots  [PASS_SLOTS] NULL before, and after an error; written
 * Errors: the engine's. */
hsort_status pass_take_slots(const struct pass_sort *sort, int64_t slot, char **slots);

/* Free what pass_take_slots() took. If slots are NULL, nothing is freed, because ranks may not have unmapped it. Not collective. */
void pass_give_slots(const struct pass_sort *sort, char **slots);

/* Sort elements [count], the caller's bits before and after, with the context's workspace. Stable, unless they are
 * bare keys. Not collective.
 *   elements, scratch  [slot] engine memory, both overwritten
 *   sorted             [1] which of them holds the result
 * Errors: the engine's. */
hsort_status pass_sort_slot(const struct pass_sort *sort, void *elements, void *scratch, int64_t slot,
                            int64_t count, void **sorted);

/* Let a verifier, begun with sort->map, look at elements [count] in engine memory. Not collective. Errors: the engine's. */
hsort_status pass_look(const struct pass_sort *sort, struct verifier *verifier, const void *elements,
                       int64_t count);

/* The code of the key of element i of a run in host memory. Any thread. */
key_code pass_code_at(const struct pass_sort *sort, const void *run, int64_t i);

#endif
