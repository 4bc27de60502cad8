/* What the public calls on elements share: their arguments. */
#ifndef ELEMENT_CALL_H
#define ELEMENT_CALL_H

#include "src/library/element_order.h"

enum { ELEMENT_BYTES_MAX = 65536 };

/* Can this be a caller's array of `count` elements? `name` is what the caller calls it. `alignment` is in bytes. Not collective.
 * Errors HSORT_ARGUMENT. */
hsort_status element_check_array(const hsort_context *ctx, const char *name, const void *array, int64_t count,
                                 size_t alignment);

/* Can elements have so many bytes? Errors HSORT_ARGUMENT. */
hsort_status element_check_bytes(size_t element_bytes);

/* Do these arrays have a byte in common? Pure. */
bool element_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

/* An array of a call. Inputs may share bytes; an array that is written keeps clear of all others. */
struct element_extent {
    const char *name; /* what the caller calls it */
    const void *array;
    size_t bytes;
    bool written;
    int in_place; /* index in the list of the input that this may be, as a whole, and which is then written, too. -1: none */
};

/* Do arrays [count] keep clear of each other where they must? Not collective. Errors HSORT_ARGUMENT, which names two that do not. */
hsort_status element_check_apart(const struct element_extent *arrays, int count);

/* Check fields [field_count] of records of record_bytes, and put what the engine needs to know of them into order->fields;
 * the caller adds where they lie. record_bytes SIZE_MAX: fields are columns, whose offsets are 0. Errors HSORT_ARGUMENT. */
hsort_status element_take_fields(struct element_order *order, const hsort_field *fields, int field_count,
                                 size_t record_bytes);

/* The same for the key of a call that has one key and no fields: no error speaks of a field. */
hsort_status element_take_key(struct element_order *order, const hsort_field *key);

/* A number that must be the same on all ranks, made of the fields in order->fields and of element_bytes. */
uint64_t element_request(const struct element_order *order, size_t element_bytes);

#endif
