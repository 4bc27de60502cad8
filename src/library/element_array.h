/* The caller's arrays where the engine can work on them: the arrays themselves, or copies in engine memory. */
#ifndef ELEMENT_ARRAY_H
#define ELEMENT_ARRAY_H

#include "src/library/context.h"

struct element_array {
    void *memory;  /* [bytes] engine memory */
    void *callers; /* [bytes] the caller's array, to which deliver() brings a result; or NULL */
    size_t bytes;
    bool owned; /* memory is not the caller's */
};

/* Have what the caller's array holds. `array` is all 0 before the call, here and below. Not collective. Errors: the engine's. */
hsort_status element_array_load(hsort_context *ctx, const void *callers, size_t bytes,
                                struct element_array *array);

/* Have room for a result: the caller's array itself, if the engine reaches it, unless `apart` says to leave it alone for now.
 * callers NULL: nothing is delivered. Not collective. */
hsort_status element_array_room(hsort_context *ctx, void *callers, size_t bytes, bool apart,
                                struct element_array *array);

/* Bring a result to the caller. Not collective; complete when STREAM_WORK is. */
hsort_status element_array_deliver(hsort_context *ctx, const struct element_array *array);

/* Free what is owned, which no other rank maps. Not collective. */
void element_array_free(hsort_context *ctx, struct element_array *array);

#endif
