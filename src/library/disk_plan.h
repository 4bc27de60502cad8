/* Whether a sort goes by way of the disk, and into which parts it is then cut: arithmetic alone. The sort itself asks here
 * (sort_memory.c, disk_passes.c), and so does the forecast (disk_forecast.c); no other code decides it. */
#ifndef DISK_PLAN_H
#define DISK_PLAN_H

#include "src/library/pass_plan.h"
#include "src/library/run_store.h"

enum {
    DISK_PARTS_MAX =
        2048 /* a segment has a piece of each run: more and smaller pieces would make a disk seek */
};

/* What the parts depend on. The same on every rank, except engine_bytes. */
struct disk_sizes {
    int64_t elements; /* of all ranks, at least 1 */
    size_t element_bytes;
    int ranks;
    int64_t wanted_parts;        /* at least so many, if memory allows; 0: as few as it allows */
    size_t memory_bytes;         /* host memory of each rank: run_store.memory_bytes */
    size_t engine_bytes;         /* that slots and workspace may take at most */
    bool on_host;                /* engine memory is host memory, and so a part of memory_bytes */
    pass_workspace_fn workspace; /* engine memory for the sort of a slot */
    void *workspace_user;
};

/* Does a sort need to have its runs in a store? Pure.
 *   sort_bytes  with the host engine: keys, scratch and workspace of a rank's sort in memory
 *   run_bytes   with a GPU: a rank's runs, if `in_two_passes` */
bool disk_plan_needs(bool on_host, size_t sort_bytes, bool in_two_passes, size_t run_bytes,
                     size_t memory_bytes);

/* elements [1] = the longest part for which this rank has memory. Not collective. Errors HSORT_HOST_MEMORY: there is no such part, and
 * the line says how much memory would do; those of `workspace`. */
hsort_status disk_plan_longest(const struct disk_sizes *sizes, int64_t *elements);

/* plan [1] = parts of at most so many elements, of sizes as equal as possible; the same number for each rank, or as many as are
 * wanted; without facts. Pure. */
void disk_plan_parts(const struct disk_sizes *sizes, int64_t most_elements, struct run_plan *plan);

/* Bytes of runs that are read at a time to cut them. Pure. */
size_t disk_plan_window_bytes(size_t memory_bytes);

/* Fences of a run; bytes of all runs with theirs. Pure. plan_part_count() and plan_run_bytes() are in run_store.h. */
int64_t plan_fences(const struct run_plan *plan, int64_t run);
int64_t plan_bytes(const struct run_plan *plan);

#endif
