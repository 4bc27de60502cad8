/* How many regions a large sort has, which regions are sorted together (a *batch*), and where the scratch of each batch is. On the host.
 *
 * Regions go to out in order, so the memory behind a batch in out is free until the last regions are sorted. Batches use that memory and
 * the workspace's own scratch by turns. The scatter of a batch may then run beside the block sorts of the batch before, which leave more
 * and more multiprocessors idle as they end. Three batches:
 *
 *     out            | 0 .... | scratch of 0 ........ |        sorted from there into | 0 |
 *                    | 0 done | 1 .. |                         meanwhile keys of 1 are scattered into the workspace's scratch
 *                    | 0 done | 1 done | 2 .. | scratch of 2 |  */
#ifndef BATCHES_CUH
#define BATCHES_CUH

#include "kernels/cuda/msd/queue_level.cuh"

/* The most keys whose regions can lie in extents. With more keys, many buckets would be too large for usual block sorts, even if all
 * buckets were of equal size. */
template <typename K>
static int64_t most_in_extents(const struct cuda_engine *engine)
{
    const struct msd_block &usual = MSD_USUAL[class_of(engine)][WIDTH_NUMBER<K>];
    const int64_t most = usual.threads * usual.keys;
    return own_size<K>(engine, MSD_REGIONS_MOST) * (int64_t)SPLIT_BUCKETS * (most - most / 32);
}

/* Does a sort of `count` keys need as many regions as a split can have? All keys are then counted first, because that many extents would
 * take memory that such a sort lacks. */
template <typename K>
static bool needs_more_regions(const struct cuda_engine *engine, int64_t count)
{
    return engine->counts_regions || count > most_in_extents<K>(engine);
}

/* The most regions that the first level may have. */
template <typename K>
static int64_t most_regions(const struct cuda_engine *engine, int64_t count)
{
    if (needs_more_regions<K>(engine, count))
        return COUNTED_REGIONS;
    const int64_t wanted = count / own_size<K>(engine, MSD_REGION_KEYS),
                  most = own_size<K>(engine, MSD_REGIONS_MOST),
                  least = min(max(count / REGION_KEYS_LEAST, (int64_t)REGIONS_MIN), (int64_t)REGIONS_USUAL);
    return min(max(wanted, least), most);
}

struct planned_region {
    int number;
    int64_t keys, first; /* its first place in out */
    uint64_t scratch_first;
};

struct planned_batch {
    int first, end; /* of the planned regions */
    bool in_out;    /* scratch is behind its keys in out */
    bool beside;    /* it touches nothing of the batch before */
    int64_t out_end, scratch;
};

struct region_batches {
    int region_count, batch_count, left_count;
    struct planned_region regions[SPLIT_BUCKETS];
    struct planned_batch batches[SPLIT_BUCKETS];
    struct planned_region left[SPLIT_BUCKETS]; /* there is no room for these */
};

/* About how many keys a batch may have: one that begins at `at` in out [count] and has its scratch there, and one that has its scratch in
 * the workspace. */
static int64_t keys_in_out(int64_t count, int64_t at)
{
    return (count - at) * 8 / 23; // the rest of out is 15 / 8 as much: scratch_keys()
}

static int64_t keys_in_own(int64_t own_room)
{
    return own_room * 8 / 15;
}

/* Should a batch that begins at `at` have its scratch in out? The first batch has it where there is more room. Any other batch has it in
 * the place that the batch before did not use, unless out has hardly any room. */
static bool prefers_out(const struct region_batches *plan, int64_t own_room, int64_t count, int64_t at)
{
    const int64_t in_out = keys_in_out(count, at), in_own = min(keys_in_own(own_room), count - at);
    if (plan->batch_count == 0)
        return in_out > in_own;
    return !plan->batches[plan->batch_count - 1].in_out && in_out > in_own / 2;
}

/* Does the batch have room for one more region? */
static bool takes_region(const struct planned_batch *batch, const struct planned_region *region,
                         int64_t own_room, int64_t count)
{
    const int64_t room = batch->in_out ? count - (region->first + region->keys) : own_room;
    return batch->end - batch->first < LEVEL_SEGMENTS && batch->scratch + scratch_keys(region->keys) <= room;
}

/* Begin a batch with a region. Return false if there is no room for it in either place. */
static bool begin_batch(struct region_batches *plan, const struct planned_region *region, int64_t own_room,
                        int64_t count)
{
    struct planned_batch batch = {plan->region_count, plan->region_count, false, false, 0, 0};
    batch.in_out = prefers_out(plan, own_room, count, region->first);
    if (!takes_region(&batch, region, own_room, count))
        batch.in_out = !batch.in_out;
    if (!takes_region(&batch, region, own_room, count))
        return false;
    batch.beside = plan->batch_count > 0 && plan->batches[plan->batch_count - 1].in_out != batch.in_out;
    plan->batches[plan->batch_count++] = batch;
    return true;
}

/* Plan the regions of keys [count], in order. The workspace's own scratch has room for own_room keys. */
static void plan_region_batches(const struct region_answer *regions, int64_t count, int64_t own_room,
                                struct region_batches *plan)
{
    int64_t at = 0;
    plan->region_count = plan->batch_count = plan->left_count = 0;
    for (int i = 0; i < SPLIT_BUCKETS; at += regions[i++].keys) {
        struct planned_region region = {i, regions[i].keys, at, 0};
        if (region.keys == 0 || regions[i].is_one_value)
            continue;
        const bool fits = plan->batch_count > 0 &&
                          takes_region(&plan->batches[plan->batch_count - 1], &region, own_room, count);
        if (!fits && !begin_batch(plan, &region, own_room, count)) {
            plan->left[plan->left_count++] = region;
            continue;
        }
        struct planned_batch *batch = &plan->batches[plan->batch_count - 1];
        region.scratch_first = (uint64_t)batch->scratch;
        batch->scratch += scratch_keys(region.keys);
        batch->out_end = at + region.keys;
        batch->end = ++plan->region_count;
        plan->regions[batch->end - 1] = region;
    }
}

#endif
