/* Host memory of this rank for the runs of two passes. A context keeps it from sort to sort if options.keep_host_memory says so, and then
 * pins it. Memory for one sort stays ordinary, because pinning takes longer than one sort gains. Not collective. */
#ifndef RUN_MEMORY_H
#define RUN_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct engine;

struct run_memory {
    void *memory; /* owned; NULL: none */
    size_t bytes;
    struct engine *pinned_by; /* borrowed: the engine that has pinned it; NULL: it is not pinned */
};

/* Bytes that must be added to what there is so that there are so many. Pure. */
size_t run_memory_growth(const struct run_memory *runs, size_t bytes);

/* Have at least so many bytes; what was in them is lost.
 *   threads  that clear the pages of new memory
 * Returns  the memory. NULL: there is not so much, and *runs is empty; or nothing was asked for, and *runs is as it was. */
void *run_memory_take(struct run_memory *runs, size_t bytes, int threads);

/* Pin what there is for copies by this engine, which has to live until run_memory_drop(). Returns true if it is pinned, perhaps since an
 * earlier call; false if it cannot be, which is no error. */
bool run_memory_pin(struct run_memory *runs, struct engine *engine);

/* Free it; none is fine. */
void run_memory_drop(struct run_memory *runs);

#endif
