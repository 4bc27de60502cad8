#include "mpi/exchange/region_map.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/key_width.h"
#include "kernels/base/lesser.h"

enum {
    // A position times the size of a sample, and one more, must fit 63 bits: first_part_from().
    TOTAL_LOG_MAX = 62 - ENGINE_SAMPLE_LOG_MAX,
    // From MANY_RANKS ranks on, the sample has about SAMPLE_OF_RANK keys for each rank: each has few regions, which must be even.
    MANY_RANKS = 16,
    SAMPLE_OF_RANK = 1 << 13
};

int region_map_log_most(int size)
{
    int log = ENGINE_SAMPLE_LOG_USUAL;
    while (size >= MANY_RANKS && log < ENGINE_SAMPLE_LOG_MAX &&
           (int64_t)size * SAMPLE_OF_RANK >> (log + 1) > 0)
        log++;
    return log;
}

size_t region_map_workspace(const struct engine *engine, int key_bytes)
{
    return bytes_rounded_up(engine->ops->partition->workspace(engine, key_bytes), ENGINE_ALIGNMENT);
}

bool region_map_suits(int64_t total)
{
    return total >> ENGINE_SAMPLE_LOG_MIN > 0 && total >> TOTAL_LOG_MAX == 0;
}

void region_map_close(struct region_map *map)
{
    if (!map)
        return;
    free(map->sample);
    free(map->counts);
    free(map->offsets);
    free(map);
}

hsort_status region_map_open(int size, struct region_map **made)
{
    struct region_map *map = *made = calloc(1, sizeof *map);
    if (map) {
        map->sample = malloc(sizeof(key_code) << region_map_log_most(size));
        map->counts = malloc((size_t)size * sizeof *map->counts);
        map->offsets = malloc((size_t)size * sizeof *map->offsets);
    }
    if (map && map->sample && map->counts && map->offsets)
        return HSORT_OK;
    region_map_close(map);
    *made = NULL;
    return status_fail(HSORT_HOST_MEMORY, "no memory for a map of the regions of %d ranks", size);
}

/* The first of 2^log parts of `total` positions that begins at global position `at` or behind it. */
static int64_t first_part_from(int64_t at, int64_t total, int log)
{
    return divide_up(at << log, total);
}

hsort_status region_map_agree(struct region_map *map, struct comm *comm, struct engine *engine, int key_bytes,
                              const struct raw_keys *raw, const int64_t *offset, int log, bool of_pairs,
                              void *workspace, void *scratch)
{
    const struct engine_partition_ops *ops = engine->ops->partition;
    const int rank = comm->rank, size = comm->size, words = key_words(key_bytes);
    const int64_t total = offset[size];
    for (int r = 0; r < size; r++) {
        map->offsets[r] = words * (int)first_part_from(offset[r], total, log);
        map->counts[r] = words * (int)first_part_from(offset[r + 1], total, log) - map->offsets[r];
    }
    uint64_t *own = map->sample + map->offsets[rank];
    const struct sample_share share = {.before = offset[rank],
                                       .count = offset[rank + 1] - offset[rank],
                                       .total = total,
                                       .log = log,
                                       .first = map->offsets[rank] / words,
                                       .drawn = map->counts[rank] / words};
    hsort_status status = ops->sample(engine, key_bytes, raw, &share, scratch, own);
    keep_first_error(
        &status, comm_check(MPI_Gatherv(rank == 0 ? MPI_IN_PLACE : own, map->counts[rank], MPI_UINT64_T,
                                        map->sample, map->counts, map->offsets, MPI_UINT64_T, 0, comm->world),
                            "MPI_Gatherv", true));
    memset(&map->agreed, 0, sizeof map->agreed);
    if (rank == 0 && status == HSORT_OK)
        status = ops->make_map(engine, key_bytes, map->sample, log, total, of_pairs, workspace, scratch,
                               &map->agreed.map);
    map->agreed.is_made = rank == 0 && status == HSORT_OK;
    keep_first_error(&status,
                     comm_check(MPI_Bcast(&map->agreed, (int)sizeof map->agreed, MPI_BYTE, 0, comm->world),
                                "MPI_Bcast", true));
    return status;
}

void region_map_values(const struct region_map *map, const struct engine *engine, int key_bytes,
                       bool *is_one_value)
{
    uint64_t code[KEY_CODE_WORDS];
    for (int region = 0; region < ENGINE_REGIONS; region++)
        is_one_value[region] = map->agreed.is_made && engine->ops->partition->region_value(
                                                          engine, key_bytes, &map->agreed.map, region, code);
}

void region_map_span(const int64_t *region_at, int64_t from, int64_t until, int *first, int *end)
{
    int region = 0;
    while (region < ENGINE_REGIONS && region_at[region + 1] <= from)
        region++;
    *first = region;
    while (region < ENGINE_REGIONS && from < until && region_at[region] < until)
        region++;
    *end = region;
}
