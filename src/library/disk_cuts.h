/* The cuts of runs that lie in a store (run_store.h): exact, and without reading the runs. */
#ifndef DISK_CUTS_H
#define DISK_CUTS_H

#include "src/library/pass_sort.h"
#include "src/library/run_store.h"

/* Find where each segment begins in each run. Collective.
 *   plan     all of its runs are made
 *   options  this rank asks their should_stop again and again while it reads, as at a safe point
 *   bytes    of memory for what a rank holds of the runs at a time; 1 KiB for each run is taken in any case
 *   cuts     [(plan->parts + 1) * plan->parts] written, the same on every rank: of run j, elements before
 *          cuts[i * plan->parts + j] belong to segments before i
 * Order    elements are ordered by (key, run, position), whatever the number of ranks.
 * Memory   besides: the fences of this rank's share of the runs, disk_cuts_fence_bytes() each; and disk_cuts_bytes(), which includes
 *          the cuts themselves.
 * Errors   same on every rank: the store's, HSORT_HOST_MEMORY, HSORT_MPI; HSORT_STOPPED: some rank was asked to stop; HSORT_IO: runs
 *          are not as they were made, as the checksums of their fences, or their cuts, show. */
hsort_status disk_cuts_find(struct comm *comm, const struct pass_sort *sort, const struct run_store *store,
                            const struct run_plan *plan, const hsort_options *options, size_t bytes,
                            int64_t *cuts);

/* Bytes of the tables for so many runs and ranks. Pure. */
size_t disk_cuts_bytes(int64_t parts, int size);

/* Bytes of a fence in memory: of the element, or, if that is wide, of the code of its key. Pure. */
size_t disk_cuts_fence_bytes(size_t element_bytes);

/* The checksum run_facts.fences of fences [bytes]: equal for equal bytes; for different ones, equal with a chance of 2^-64. Pure. */
uint64_t fences_checksum(const char *fences, size_t bytes);

#endif
