/* Engine memory that a call takes and gives back, and the next one takes again: getting gigabytes from a driver takes
 * longer than sorting them. No other process maps such memory. */
#ifndef SPARE_MEMORY_H
#define SPARE_MEMORY_H

#include "kernels/engine.h"

enum { SPARE_BLOCKS = 32 };

struct spare_block {
    void *memory; /* owned; NULL: no block */
    size_t bytes;
    bool taken;
};

/* All 0 at first, except the engine. */
struct spare_memory {
    struct engine *engine;
    int sharers; /* ranks that take memory from what the engine has left; 0 counts as 1 */
    bool exact;  /* memory is short: a block goes only to a call that wants all of it */
    struct spare_block block[SPARE_BLOCKS];
};

/* [bytes] of engine memory, aligned to 256 bytes; *memory is NULL after an error and for 0 bytes. A new block replaces
 * the largest smaller one that nobody has; if the engine does not have that much left for this rank, all blocks that nobody has are freed
 * for it.
 * Errors: those of the engine's alloc(). */
hsort_status spare_take(struct spare_memory *spare, size_t bytes, void **memory);

/* Give memory of spare_take() back. NULL is fine. */
void spare_give(struct spare_memory *spare, void *memory);

/* Bytes of the blocks that nobody has. */
size_t spare_idle_bytes(const struct spare_memory *spare);

/* Free the blocks that nobody has. */
void spare_drop(struct spare_memory *spare);

/* The same if the engine does not have so many bytes left for this rank. Errors: those of the engine's memory_free(). */
hsort_status spare_make_room(struct spare_memory *spare, size_t bytes);

/* Engine memory that stays where it is from call to call, and grows. Other processes may map it. All 0 at first. */
struct kept_memory {
    void *memory; /* [bytes] of the engine's alloc(), owned; NULL: none */
    size_t bytes;
};

/* Have at least so many bytes. If the memory grows, its contents are lost, and other processes must have unmapped it before;
 * blocks that nobody has are freed if the engine does not have so many bytes left for this rank. After an error there is no memory.
 * Errors: those of the engine's memory_free() and alloc(). */
hsort_status kept_reserve(struct kept_memory *kept, struct spare_memory *spare, size_t bytes);

/* Free the memory; none is fine. */
void kept_drop(struct kept_memory *kept, struct engine *engine);

#endif
