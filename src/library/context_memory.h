/* Engine memory of a context: what it keeps from call to call, and whether there is room for what a call needs beside that. */
#ifndef CONTEXT_MEMORY_H
#define CONTEXT_MEMORY_H

#include "src/library/context.h"

/* What a call needs. */
struct memory_need {
    size_t kept[KEPT_MEMORIES]; /* of each memory that the context keeps */
    size_t apart;               /* beside it, from spare memory */
};

/* All of it. Pure. */
size_t memory_need_bytes(const struct memory_need *need);

/* Bytes that it takes beside what the context keeps already: too much of one memory is of no use to another. Pure. */
size_t memory_need_growth(const hsort_context *ctx, const struct memory_need *need);

/* Does some memory that other ranks may map, so not workspace, make way for a larger one? Pure. */
bool memory_need_outgrows(const hsort_context *ctx, const struct memory_need *need);

/* Is there room for it beside what the context keeps? Few calls ask the system: not if the context has it all. Not collective.
 * Errors: the engine's. */
hsort_status context_has_room(const hsort_context *ctx, const struct memory_need *need, bool *has);

/* Have all that the context is to keep of it. Not collective, but where other ranks may map it, and it grows, context_unmap() comes
 * first. Errors: the engine's. */
hsort_status context_reserve_all(hsort_context *ctx, const struct memory_need *need);

/* Of bytes that are free, those to count on: allocations are rounded up, and the engine's own kernels want some memory too. Pure. */
size_t usable_bytes(size_t free_bytes);

/* So many free that those to count on are `usable`. Pure. */
size_t free_bytes_for(size_t usable);

/* Engine memory that this rank may take beside what the context keeps; blocks of spare memory that nobody has make way. Ranks that
 * share a GPU share what is free, unless each has a limit. Not collective. Errors: the engine's. */
hsort_status context_free_bytes(const hsort_context *ctx, size_t *bytes);

/* The same, and what the context keeps. */
hsort_status context_engine_bytes(const hsort_context *ctx, size_t *bytes);

/* What the context keeps. Pure. */
size_t context_kept_bytes(const hsort_context *ctx);

/* Free all of it. Other ranks have unmapped it. Not collective. */
void context_drop_all(hsort_context *ctx);

#endif
