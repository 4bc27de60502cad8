/* Device memory for many short tests, allocated once. What the engine then hands out is cut from this memory,
 * one piece behind the other, and taken back all at once.
 *
 *     memory | piece | piece | .. | piece |              |
 *                                         ^taken         ^bytes */
#ifndef LADDER_ARENA_CUH
#define LADDER_ARENA_CUH

#include "tests/kernels/ladder_input.cuh"

static struct {
    unsigned char *memory;
    size_t bytes, taken;                 /* multiples of ARENA_ALIGNMENT */
    const struct engine_ops *engine_ops; /* the engine's own */
    struct engine_ops ops;               /* the same, except alloc() and free() */
} arena;

enum { ARENA_ALIGNMENT = 256 };

static inline hsort_status arena_alloc(struct engine *, size_t bytes, void **memory)
{
    const size_t left = arena.bytes - arena.taken;
    *memory = NULL;
    if (bytes > left)
        return status_fail(HSORT_DEVICE_MEMORY, "%zu bytes of the tests' %zu are left, not %zu", left,
                           arena.bytes, bytes);
    if (bytes > 0)
        *memory = arena.memory + arena.taken;
    arena.taken += (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    return HSORT_OK;
}

/* Do nothing: arena_empty() takes all memory back. */
static inline void arena_free(struct engine *, void *)
{
}

/* Take `bytes`, or half of what is free if that is less, and let alloc() of the engine cut from it. */
static inline void arena_open(struct engine *engine, size_t bytes)
{
    size_t free_bytes;
    MUST(engine->ops->memory_free(engine, &free_bytes));
    arena.bytes = (bytes < free_bytes / 2 ? bytes : free_bytes / 2) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    MUST(engine->ops->alloc(engine, arena.bytes, (void **)&arena.memory));
    arena.engine_ops = engine->ops;
    arena.ops = *engine->ops;
    arena.ops.alloc = arena_alloc;
    arena.ops.free = arena_free;
    engine->ops = &arena.ops;
}

/* Take back everything that was handed out; nothing may be at work on it. */
static inline void arena_empty(void)
{
    arena.taken = 0;
}

/* Free the memory, and give the engine its own functions again. */
static inline void arena_close(struct engine *engine)
{
    engine->ops = arena.engine_ops;
    engine->ops->free(engine, arena.memory);
}

#endif
