/* Sorting by regions on CPU cores (partition.c says how it works). engine.h has the contracts: a function takes
 * what the operation of its name takes; `threads` is the same in all calls of a sort. Nothing here can fail. */
#ifndef PARTITION_H
#define PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/engine.h"

/* Bytes of workspace, which is aligned to 128 bytes. */
size_t partition_workspace(int threads);

void partition_sample(int threads, const struct raw_keys *bits, int64_t before, int64_t total, int log,
                      int64_t first, int sample, uint64_t *codes);

/* Returns ENGINE_MAP_MADE or ENGINE_MAP_REPEATS: nothing else is in the way of a map. */
enum engine_map_verdict partition_map(int threads, const uint64_t *codes, int log, void *workspace,
                                      struct engine_map *map);

void partition_count(int threads, const struct raw_keys *bits, int64_t count, const struct engine_map *map,
                     void *workspace, int64_t *counts, bool *ascends, bool *descends);

/* engine_ops.partition(). The workspace still holds where each thread's keys go. */
void partition_keys(int threads, const struct raw_keys *bits, int64_t count, const struct engine_map *map,
                    void *workspace, void *to);

/* engine_ops.sort_regions(), with scratch for all keys of the pieces. Leaves none unsorted. */
void partition_sort(int threads, const struct engine_piece *pieces, int count, const struct raw_keys *bits,
                    void *workspace, void *scratch, void *out);

#endif
