#include "src/library/run_memory.h"
#include <stdlib.h>
#include <sys/mman.h>
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"
#include "kernels/engine.h"

enum { HUGE_PAGE = 2 << 20, LARGEST_PAGE = 64 << 10 /* of those that are not huge */ };

size_t run_memory_growth(const struct run_memory *runs, size_t bytes)
{
    return bytes > runs->bytes ? bytes - runs->bytes : 0;
}

/* Have all pages of new memory cleared; otherwise the system clears a page when it is first written. This is only a hint.
 * Rejected: letting the copies out of pass 1 meet new pages, or threads beside these copies. Both take longer. */
static void populate(char *memory, size_t bytes, int threads)
{
#ifdef MADV_POPULATE_WRITE
#pragma omp parallel for num_threads(threads)
    for (size_t at = 0; at < bytes; at += HUGE_PAGE)
        (void)madvise(memory + at, HUGE_PAGE, MADV_POPULATE_WRITE);
#else
    (void)memory, (void)bytes, (void)threads;
#endif
}

/* Nothing else lies in these pages: if they are pinned, memory of the caller's is not pinned in part. */
static size_t bytes_of_pages(size_t bytes)
{
    return bytes_rounded_up(bytes, bytes < HUGE_PAGE ? LARGEST_PAGE : HUGE_PAGE);
}

/* Allocate memory, in huge pages where there are some, and have its pages cleared. */
static void *alloc_pages(size_t bytes, int threads)
{
    const size_t pages = bytes_of_pages(bytes);
    if (fault_hit(FAULT_ALLOC))
        return NULL;
    void *memory = aligned_alloc(bytes < HUGE_PAGE ? LARGEST_PAGE : HUGE_PAGE, pages);
    if (!memory || bytes < HUGE_PAGE)
        return memory;
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, pages, MADV_HUGEPAGE); // a hint: small pages do as well
#endif
    populate(memory, pages, threads);
    return memory;
}

void *run_memory_take(struct run_memory *runs, size_t bytes, int threads)
{
    if (bytes == 0)
        return NULL;
    if (runs->bytes < bytes) {
        run_memory_drop(runs);
        runs->memory = alloc_pages(bytes, threads);
        runs->bytes = runs->memory ? bytes : 0;
    }
    return runs->memory;
}

bool run_memory_pin(struct run_memory *runs, struct engine *engine)
{
    if (!runs->pinned_by && runs->memory &&
        engine->ops->pin(engine, runs->memory, bytes_of_pages(runs->bytes)))
        runs->pinned_by = engine;
    return runs->pinned_by != NULL;
}

void run_memory_drop(struct run_memory *runs)
{
    if (runs->pinned_by)
        runs->pinned_by->ops->unpin(runs->pinned_by, runs->memory);
    free(runs->memory);
    *runs = (struct run_memory){0};
}
