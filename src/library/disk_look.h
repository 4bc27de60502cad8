/* How runs in a store (run_store.h) are looked at to cut them: by several threads, and, if more of them lies between fences
 * than memory holds, by samples, the codes of some of their keys. For disk_cuts.c alone. */
#ifndef DISK_LOOK_H
#define DISK_LOOK_H

#include "mpi/exchange/run_cuts.h"
#include "src/library/pass_sort.h"
#include "src/library/run_store.h"

struct disk_look {
    const struct pass_sort *sort;
    const struct run_store *store;
    const struct run_plan *plan;
    size_t bytes; /* of memory: half for what is kept, half for what threads read */
    int threads;
};

/* How many threads read, each with `bytes` of its own. Pure. */
int disk_look_threads(const struct disk_look *look, size_t bytes);

/* Read elements first .. first + count - 1 of a run, or fences, which lie behind the elements. Any thread. Errors: the store's. */
hsort_status disk_look_read(const struct disk_look *look, int64_t run, int64_t first, int64_t count,
                            void *to);

/* Narrow the ranges in which a cut lies until all of them together have at most `most` elements. Not collective.
 *   tables      for one rank that is alone, all runs, and at least two cuts
 *   position    of the cut: so many elements of all runs lie before it
 *   begin, end  [parts] the cut lies at begin or behind it, and at end or before it; written
 * Memory   look->bytes, but in any case a few codes of each run, and what one thread reads at a time.
 * Errors   the store's, HSORT_HOST_MEMORY; HSORT_INTERNAL: a run is not in order. */
hsort_status disk_look_narrow(const struct disk_look *look, struct run_cuts *tables, int64_t position,
                              int64_t most, int64_t *begin, int64_t *end);

#endif
