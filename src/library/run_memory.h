/* Host memory of this rank for the runs of two passes. It is ordinary memory, because pinning so much takes longer than it gains. A
 * context keeps it from sort to sort if options.keep_host_memory says so. Not collective. */
#ifndef RUN_MEMORY_H
#define RUN_MEMORY_H

#include <stddef.h>

struct run_memory {
    void *memory; /* owned; NULL: none */
    size_t bytes;
};

/* Bytes that must be added to what there is so that there are so many. Pure. */
size_t run_memory_growth(const struct run_memory *runs, size_t bytes);

/* Have at least so many bytes; what was in them is lost.
 *   threads  that clear the pages of new memory
 * Returns  the memory. NULL: there is not so much, and *runs is empty; or nothing was asked for, and *runs is as it was. */
void *run_memory_take(struct run_memory *runs, size_t bytes, int threads);

/* Free it; none is fine. */
void run_memory_drop(struct run_memory *runs);

#endif
