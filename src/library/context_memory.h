/* Engine memory of a context: what it keeps from call to call, and whether the rest of what a call needs fits beside that. */
#ifndef CONTEXT_MEMORY_H
#define CONTEXT_MEMORY_H

#include "src/library/context.h"

/* The engine memory that a call needs. */
struct memory_need {
    size_t kept[KEPT_MEMORIES]; /* bytes of each memory that the context keeps */
    size_t apart;               /* bytes beside those, from spare memory */
};

/* All bytes of a need. Pure. */
size_t memory_need_bytes(const struct memory_need *need);

/* Bytes to allocate beside what the context already keeps. A kept memory that is too large does not help another one. Pure. */
size_t memory_need_growth(const hsort_context *ctx, const struct memory_need *need);

/* Must some memory that other ranks may map (any but the workspace) be replaced by a larger one? Pure. */
bool memory_need_outgrows(const hsort_context *ctx, const struct memory_need *need);

/* Does the growth fit beside what the context keeps? The system is not asked if the context already has all of it. Not collective.
 * Errors: the engine's. */
hsort_status context_has_room(const hsort_context *ctx, const struct memory_need *need, bool *has);

/* Free idle blocks of spare memory, which context_has_room() counts as free, if what the context keeps could not grow beside them. All that
 * grows is looked at together, and ranks that share memory take no more than their part of what is left: else the first ones would take
 * that, keep their idle blocks, and leave too little to the last one. Not collective. Errors: the engine's. */
hsort_status context_free_idle(hsort_context *ctx, const struct memory_need *need);

/* Allocate what the context is to keep, after context_free_idle(). Not collective. If memory that other ranks may map grows, call
 * context_unmap() first.
 * Errors: the engine's. */
hsort_status context_reserve_all(hsort_context *ctx, const struct memory_need *need);

/* The part of free memory to count on: allocations are rounded up, and the engine's own kernels take some memory too. Pure. */
size_t usable_bytes(size_t free_bytes);

/* The free bytes of which `usable` can be counted on. Pure. */
size_t free_bytes_for(size_t usable);

/* Engine memory that this rank may take beside what the context keeps. Idle blocks of spare memory count as free. Ranks that share a
 * GPU share what is free, unless each has a limit. Not collective. Errors: the engine's. */
hsort_status context_free_bytes(const hsort_context *ctx, size_t *bytes);

/* context_free_bytes() and context_kept_bytes() together. */
hsort_status context_engine_bytes(const hsort_context *ctx, size_t *bytes);

/* Bytes that the context keeps. Pure. */
size_t context_kept_bytes(const hsort_context *ctx);

/* Free all that the context keeps. Other ranks must have unmapped it. Not collective. */
void context_drop_all(hsort_context *ctx);

#endif
