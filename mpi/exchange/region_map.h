/* The map of regions that all ranks agree on before keys are partitioned. Rank 0 makes it from a sample of all ranks' keys, with
 * one key from each of many equal parts of all positions (sample_place.h).
 *
 *     rank 0   keys of its parts      --gather-->   sample   --make_map()-->   map   --bcast-->   the same on every rank
 *     rank 1   the same               -->                                                  */
#ifndef REGION_MAP_H
#define REGION_MAP_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"

struct region_map {
    /* [2^region_map_log_most()] codes by position: this rank's part, on rank 0 all of them; nothing else is touched. */
    uint64_t *sample;
    int *counts, *offsets; /* [size] words of the sample, by rank */
    struct {
        struct engine_map map;
        int64_t is_made; /* 0: rank 0 could not */
    } agreed;            /* rank 0's */
};

/* Make room for a map of `size` ranks. *map is NULL after an error. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status region_map_open(int size, struct region_map **map);
void region_map_close(struct region_map *map); /* NULL is fine */

/* Log of the size of the largest sample of `size` ranks. Pure. */
int region_map_log_most(int size);

/* Are `total` keys enough for a map, and not too many? Pure. */
bool region_map_suits(int64_t total);

/* Bytes of engine_partition_ops.workspace(), rounded up so that what follows is aligned. Pure. */
size_t region_map_workspace(const struct engine *engine, int key_bytes);

/* Make the map: the same on every rank, or on none. Collective.
 *   offset     [size + 1] global position of each rank's first key
 *   raw        map and from are read
 *   log        of the size of the sample; the same on every rank
 *   of_pairs   as for engine_partition_ops.make_map()
 *   workspace, scratch  engine memory: region_map_workspace(), engine_partition_ops.sample_scratch()
 * Errors this rank's own: it has kept to the schedule. */
hsort_status region_map_agree(struct region_map *map, struct comm *comm, struct engine *engine, int key_bytes,
                              const struct raw_keys *raw, const int64_t *offset, int log, bool of_pairs,
                              void *workspace, void *scratch);

/* Find which regions are of one value: is_one_value [ENGINE_REGIONS], all false if no map was made. Pure. */
void region_map_values(const struct region_map *map, const struct engine *engine, int key_bytes,
                       bool *is_one_value);

/* Find the regions that hold the global positions from .. until - 1: *first .. *end - 1; if there are no such positions,
 * *end = *first. region_at [ENGINE_REGIONS + 1]: where regions begin. Pure. */
void region_map_span(const int64_t *region_at, int64_t from, int64_t until, int *first, int *end);

#endif
