#include "src/library/run_memory.h"
#include <stdlib.h>
#include <sys/mman.h>
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"

enum { HUGE_PAGE = 2 << 20 };

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

/* Allocate memory, in huge pages where there are some, and have its pages cleared. */
static void *alloc_pages(size_t bytes, int threads)
{
    if (fault_hit(FAULT_ALLOC))
        return NULL;
    if (bytes < HUGE_PAGE)
        return malloc(bytes);
    const size_t pages = bytes_rounded_up(bytes, HUGE_PAGE);
    void *memory = aligned_alloc(HUGE_PAGE, pages);
    if (!memory)
        return NULL;
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

void run_memory_drop(struct run_memory *runs)
{
    free(runs->memory);
    *runs = (struct run_memory){0};
}
