/* Calls on keys and elements that wait for their result. First everything that STREAM_WORK has queued is done; if that has failed, the
 * call reports it. */
#include "tests/support/late_queue.h"

static hsort_status late_cut(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                             const void *b, int64_t b_count, int64_t outputs, int64_t *from_a)
{
    TRY(late_result());
    return late_own->cut(engine, key_bytes, a, a_count, b, b_count, outputs, from_a);
}

static hsort_status late_gather(struct engine *engine, int key_bytes, const void *keys,
                                const int64_t *positions, int count, key_code *codes)
{
    TRY(late_result());
    return late_own->gather(engine, key_bytes, keys, positions, count, codes);
}

static hsort_status late_search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                const key_code *probes, int probe_count, int64_t *less, int64_t *not_greater)
{
    TRY(late_result());
    return late_own->search(engine, key_bytes, keys, count, probes, probe_count, less, not_greater);
}

static hsort_status late_count_runs(struct engine *engine, struct engine_runs *runs)
{
    TRY(late_result());
    return late_own->count_runs(engine, runs);
}

static hsort_status late_write_runs(struct engine *engine, const struct engine_runs *runs)
{
    TRY(late_result());
    return late_own->write_runs(engine, runs);
}

static hsort_status late_inspect(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                                 struct engine_inspection *result)
{
    TRY(late_result());
    return late_own->inspect(engine, map, keys, count, result);
}

static hsort_status late_inspect_elements(struct engine *engine, const struct engine_elements *elements,
                                          struct engine_inspection *result)
{
    TRY(late_result());
    return late_own->inspect_elements(engine, elements, result);
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static hsort_status late_sample(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                const struct sample_share *share, void *scratch, uint64_t *codes)
{
    TRY(late_result());
    return late_own->partition->sample(engine, key_bytes, raw, share, scratch, codes);
}

static hsort_status late_make_map(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                                  int64_t total, bool of_pairs, void *workspace, void *scratch,
                                  struct engine_map *map)
{
    TRY(late_result());
    return late_own->partition->make_map(engine, key_bytes, codes, log, total, of_pairs, workspace, scratch,
                                         map);
}

static hsort_status late_count(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                               int64_t count, const struct engine_map *map, void *workspace, int64_t *counts,
                               bool *descends)
{
    TRY(late_result());
    return late_own->partition->count(engine, key_bytes, raw, count, map, workspace, counts, descends);
}

static hsort_status late_scatter_to_rooms(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                          int64_t count, const struct engine_map *map, void *workspace,
                                          void *to, int64_t room, int64_t *counts, int64_t *begins,
                                          enum engine_scattered *done)
{
    TRY(late_result());
    return late_own->partition->scatter_to_rooms(engine, key_bytes, raw, count, map, workspace, to, room,
                                                 counts, begins, done);
}

static hsort_status late_settle_regions(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                        void *workspace, void *scratch, size_t scratch_bytes, bool *unsorted)
{
    TRY(late_result());
    return late_own->partition->settle_regions(engine, key_bytes, raw, workspace, scratch, scratch_bytes,
                                               unsorted);
}

static hsort_status late_split(struct engine *engine, const struct engine_pair_regions *regions,
                               int64_t first, const struct engine_map *map, int64_t *counts)
{
    TRY(late_result());
    return late_own->pairs->split(engine, regions, first, map, counts);
}

static hsort_status late_settle_pairs(struct engine *engine, const struct engine_pair_regions *regions)
{
    TRY(late_result());
    return late_own->pairs->settle_regions(engine, regions);
}

void late_put_results(struct late_tables *tables)
{
    struct engine_ops *ops = &tables->ops;
    ops->cut = late_cut;
    ops->gather = late_gather;
    ops->search = late_search;
    ops->count_runs = late_count_runs;
    ops->write_runs = late_write_runs;
    ops->inspect = late_inspect;
    ops->inspect_elements = late_inspect_elements;
    tables->partition.sample = late_sample;
    tables->partition.make_map = late_make_map;
    tables->partition.count = late_count;
    tables->partition.scatter_to_rooms = late_scatter_to_rooms;
    tables->partition.settle_regions = late_settle_regions;
    tables->pairs.split = late_split;
    tables->pairs.settle_regions = late_settle_pairs;
}
