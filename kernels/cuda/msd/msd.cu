/* The MSD sort of one GPU, from the host: which levels there are, and what they work on.
 *
 *     few keys       each finds its rank (ranks.cuh)
 *     some million   one level:     keys ---> scratch ---> out
 *     more           two levels:    keys    --- first level ---> extents
 *                                   extents --- a level for some regions at a time ---> scratch ---> out
 *
 * Extents (extents.cuh) lie in spare memory. Regions go to out in order, so the end of out is free until the last regions, and is
 * scratch:
 *
 *     out     | sorted | these regions | scratch of these |         of the next ones, and so on
 *
 * There are no extents if the keys come from spare memory, if they are too many for regions in extents, or for what a level has left.
 * The first level is then counted before it is scattered, without gaps:
 *
 *                                   keys    --- first level, counted ---> via
 *                                   via     --- a level for some regions at a time ---> scratch ---> out
 *
 * `via` is spare memory for keys that come from out. Otherwise it is out itself, whose regions leave for scratch before they are
 * written.
 *
 * Numbered keys that take two levels become codes when they are first loaded. If only their positions are wanted, the last store goes to
 * these, and not to out (coding.cuh).
 *
 * Buckets that no block can sort, and regions that no batch has room for, end up in out unsorted. Each is a segment of another level,
 * which splits it into parts of its exact range; that level is a first level if no batch has room for the segment. This is rare: it
 * takes a bad sample, or more keys than two levels have blocks for. It ends: such a level leaves little more than 1 / LEFT_PARTS_MIN of
 * a range, and the last one fills in a single value. So keys of 16 bytes take at most 23 such levels, keys of 8 bytes twelve, and keys
 * of 4 bytes seven; large segments, with 1 / SPLIT_BUCKETS, take 14, eight and five. Parts of a first level are sampled once more, each
 * time.
 *
 * kernels/README.md has the chapter, with an example. */
#include "kernels/cuda/msd/batches.cuh"
#include "kernels/cuda/msd/cluster.h"
#include "kernels/numbered_keys.h"

/* ---- the workspace: tables of a level | of the first level | what is left | scratch | heads, rows, extents ---- */

/* The most keys of a batch that has its scratch in the workspace: a share of all keys; or, if that is more, as many as have their scratch
 * in a small part of the device's memory, but no more than a batch may have at all. More keys never have a smaller batch. */
template <typename K>
static int64_t keys_of_batch(const struct cuda_engine *engine, int64_t count)
{
    const int64_t region = max((int64_t)own_size<K>(engine, MSD_REGION_KEYS),
                               count / own_size<K>(engine, MSD_REGIONS_MOST)),
                  useful = min(count, LEVEL_SEGMENTS * region / 16 * 17); // regions are not equal
    const int64_t affordable = (int64_t)(engine->memory_bytes / BATCH_SHARE_OF_MEMORY / sizeof(K)) * 8 / 15;
    return max(count / BATCH_SHARE_OF_KEYS, min(useful, affordable));
}

template <typename K>
struct msd_memory {
    int segments; /* of a level, at most */
    struct level_tables<K> level, first;
    struct left_bucket *left[2]; /* those of a level before, and of this one; by turns */
    K *scratch;
    int64_t scratch_room; /* keys */
    struct extents<K> extents; /* near_keys is not set */
    struct level_head *heads;  /* [regions] of batches; the rows of the extents are behind them */
    size_t bytes;
};

template <typename K>
static struct msd_memory<K> lay_out(const struct cuda_engine *engine, void *workspace, int64_t count) {
    struct msd_memory<K> memory = {
    };
    char *next = (char *)workspace;
    const bool is_alone = count <= own_size<K>(engine, MSD_ALONE_KEYS);
    const int64_t batch = is_alone ? count : keys_of_batch<K>(engine, count);
    const bool in_extents = !is_alone && !needs_more_regions<K>(engine, count);
    const int regions = in_extents ? (int)most_regions<K>(engine, count) : 0;
    memory.segments = is_alone ? LEVEL_ALONE_SEGMENTS : LEVEL_SEGMENTS;
    memory.level = take_level<K>(&next, max(memory.segments, regions), memory.segments, count,
                                 is_alone ? ALONE_RUN_KEYS : FILL_KEYS);
    if (!is_alone) {
        memory.first = take_level<K>(&next, 1, 1, count, FILL_KEYS);
        memory.first.region_counts = take_array<struct region_counts>(&next, 1);
        memory.first.left_count = memory.level.left_count;
    }
    memory.level.left_room = (uint32_t)(count / huge_keys<K>(engine) + 2); // there cannot be more giants
    for (int i = 0; i < 2; i++)
        memory.left[i] = take_array<struct left_bucket>(&next, memory.level.left_room);
    memory.scratch_room =
        is_alone ? scratch_keys(count, true)
                 : max(scratch_keys(batch) + LEVEL_SEGMENTS * scratch_keys(0),
                       divide_up(count + FOUND_ROOM,
                                 (int64_t)sizeof(K))); // the first level notes a byte for each key
    memory.scratch = take_array<K>(&next, memory.scratch_room);
    if (in_extents) {
        memory.heads = take_array<struct level_head>(&next, regions);
        memory.extents = take_extents<K>(&next, count, regions, tile_keys<K>(engine));
    }
    memory.bytes = (size_t)(next - (char *)workspace);
    return memory;
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* What all levels of a sort have in common. */
template <typename K, typename LAST>
struct msd_sort {
    struct cuda_engine *engine;
    struct msd_memory<K> memory;
    LAST last;                               /* how keys are stored */
    typename stored_as<K, LAST>::type *goal; /* [count] and where: out, or the positions */
    K *out, *spare;                          /* [count] each; codes that wait for another level lie in out */
    K *scratch; /* [scratch_room] of a level: memory.scratch, or all of spare while that is not in use */
    int64_t scratch_room;
};

/* The sort for levels behind the first one: with the workspace's own scratch, and without zeroing left_count. */
template <typename K, typename LAST>
static struct msd_sort<K, LAST> with_own_scratch(struct msd_sort<K, LAST> sort) {
    sort.scratch = sort.memory.scratch;
    sort.scratch_room = sort.memory.scratch_room;
    sort.memory.first.zeroes_left_count = sort.memory.level.zeroes_left_count = false;
    return sort;
}

/* Wait for the count of the first level. */
static hsort_status
wait_for_regions(struct cuda_engine *engine, struct region_answer *regions, enum first_verdict *verdict)
{
    const volatile struct cuda_result *result = engine->result;
    TRY(wait_for_word(engine->streams[STREAM_WORK], &result->verdict, FIRST_UNKNOWN));
    *verdict = (enum first_verdict)result->verdict;
    for (int i = 0; i < SPLIT_BUCKETS; i++)
        regions[i] = {result->less[i] >> 1, (result->less[i] & 1) != 0};
    return HSORT_OK;
}

/* Queue a level for the segments so far, and forget them. */
template <typename K, typename LAST>
static hsort_status flush_level(const struct msd_sort<K, LAST> &sort, struct level_input *input)
{
    TRY(queue_level(sort.engine, codes_only, sort.last, *input, plan_of_batch<K>(sort.engine),
                    sort.memory.level, sort.scratch, sort.goal));
    *input = {};
    return HSORT_OK;
}

/* Add codes `from` [count] as a segment that goes to out [count] from `first` on. If the level so far has no room for it, queue that
 * level first. */
template <typename K, typename LAST>
static hsort_status batch_segment(const struct msd_sort<K, LAST> &sort, const K *from, int64_t first,
                                  int64_t count, int left, struct level_input *input)
{
    if (!has_room(input, sort.memory.segments, count, sort.scratch_room))
        TRY(flush_level(sort, input));
    add_segment(input, count, first, left);
    add_piece(input, from, count, tile_keys<K>(sort.engine));
    return HSORT_OK;
}

template <typename K>
static int64_t keys_of_region(const struct cuda_engine *engine, int64_t count)
{
    return divide_up(count, most_regions<K>(engine, count));
}

/* How the first level splits. A tree has no more regions than a byte can tell, unless they would then be too large for one more level,
 * or for its samples, which may be small. */
template <typename K>
static struct level_plan plan_of_first(const struct cuda_engine *engine, int64_t count)
{
    const int64_t keys = keys_of_region<K>(engine, count), noted = divide_up(count, REGIONS_NOTED);
    const int64_t most = (int64_t)own_size<K>(engine, MSD_TREE_KEYS) * SPLIT_BUCKETS * 3 / 4 *
                         own_size<K>(engine, MSD_REGION_KEYS) / REGION_KEYS;
    return plan_of_regions(keys, noted <= most ? max(keys, noted) : keys, true);
}

/* Queue the first level of keys `from` [count], which belong in [count] places from `begin` on. They go into via [count], unless they
 * can stay where they are. */
template <typename K, typename LAST, typename FIRST, typename S>
static hsort_status queue_first(const struct msd_sort<K, LAST> &sort, const FIRST &first, const S *from,
                                K *via, int64_t begin, int64_t count, int left)
{
    struct level_tables<K> level = sort.memory.first;
    struct level_input input = {};
    level.left = sort.memory.level.left;
    // memory that no other level needs yet. Not sort.scratch, which may be spare, and so where the keys come from
    level.found = (uint8_t *)sort.memory.scratch;
    add_segment(&input, count, begin, left);
    add_piece(&input, from, count, tile_keys<K>(sort.engine));
    TRY(queue_splits(sort.engine, first, input, plan_of_first<K>(sort.engine, count), level));
    TRY(queue_count(sort.engine, first, from, count, level, NULL));
    TRY(queue_places(sort.engine, true, level));
    TRY(queue_scatter(sort.engine, first, input, level, via));
    // the rest has only values that are written anew
    return queue_rest(sort.engine, sort.last, level, 0, via, sort.goal + begin);
}

/* Are keys that are in order already where they are to be, and in the form that they are to have? */
template <typename K>
static bool can_stay(const struct coding &first, const struct coding &last, const K *from, const K *to)
{
    return from == to && first.encodes == last.decodes;
}

template <typename FIRST, typename LAST, typename S, typename T>
static bool can_stay(const FIRST &, const LAST &, const S *, const T *)
{
    return false;
}

/* Queue what is left to do for keys that are in order, or in the reverse order. */
template <typename K, typename LAST, typename FIRST, typename S>
static hsort_status queue_ordered(const struct msd_sort<K, LAST> &sort, const FIRST &first, const S *from,
                                  int64_t begin, int64_t count, enum first_verdict verdict)
{
    typedef typename stored_as<K, LAST>::type T;
    T *to = sort.goal + begin;
    if (verdict == FIRST_REVERSED)
        return launch_behind(sort.engine, "reversed keys", reverse_kernel<K, FIRST, LAST, S, T>,
                             (unsigned)divide_up(count - count / 2, MSD_WRITE_THREADS), MSD_WRITE_THREADS, 0,
                             first, sort.last, from, to, count);
    if (can_stay(first, sort.last, from, to))
        return HSORT_OK;
    return launch_behind(sort.engine, "keys in order", copy_kernel<K, FIRST, LAST, S, T>,
                         sort.engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, first, sort.last, from, to,
                         count);
}

/* Sort keys `from` [count] into the goal [count] from `begin` on, by way of via [count]: the same places of out, or memory that overlaps
 * neither these places nor the keys. left: their number among the buckets that a level before has left; -1: they are none of them. */
template <typename K, typename LAST, typename FIRST, typename S>
static hsort_status sort_large(const struct msd_sort<K, LAST> &sort, const FIRST &first, const S *from,
                               K *via, int64_t begin, int64_t count, int left)
{
    struct region_answer regions[SPLIT_BUCKETS];
    struct level_input input = {};
    enum first_verdict verdict;
    int64_t at = 0;
    TRY(queue_first(sort, first, from, via, begin, count, left));
    TRY(wait_for_regions(sort.engine, regions, &verdict));
    if (verdict != FIRST_SPLIT)
        return queue_ordered(sort, first, from, begin, count, verdict);
    const auto fits = [&](const struct region_answer &region) {
        return region.keys == 0 || region.is_one_value || scratch_keys(region.keys) <= sort.scratch_room;
    };
    // these first, because the levels tell how many are left
    for (int i = 0; i < SPLIT_BUCKETS; at += regions[i++].keys) {
        if (!fits(regions[i]))
            TRY(leave_region(sort.engine, sort.memory.level, via + at, sort.out, begin + at,
                             regions[i].keys));
    }
    at = 0;
    for (int i = 0; i < SPLIT_BUCKETS; at += regions[i++].keys) {
        if (regions[i].keys > 0 && !regions[i].is_one_value && fits(regions[i]))
            TRY(batch_segment(sort, via + at, begin + at, regions[i].keys, -1, &input));
    }
    return flush_level(sort, &input);
}

/* The planned regions from `first` on, up to `end`, as the input of a level; their pieces are rows of extents. */
template <typename K>
static struct level_input input_of(const struct cuda_engine *engine, const struct region_batches *plan,
                                   int first, int end, const struct extents<K> &extents)
{
    struct level_input input = {};
    for (int i = first; i < end; i++) {
        const struct planned_region *region = &plan->regions[i];
        add_segment(&input, region->keys, region->first, -1);
        input.segments.segment[i - first].scratch_first = region->scratch_first;
        add_piece(&input, extents.rows + (int64_t)region->number * extents.row_length, region->keys,
                  tile_keys<K>(engine));
    }
    return input;
}

/* Sort the planned regions. The splits of all are made first, as many at a time as a launch takes, so that no batch waits for them. */
template <typename K, typename LAST>
static hsort_status sort_batches(const struct msd_sort<K, LAST> &sort, const struct region_batches *plan,
                                 const struct level_tables<K> &level)
{
    const struct level_plan of_batch = plan_of_batch<K>(sort.engine);
    for (int i = 0; i < plan->region_count; i += LEVEL_SEGMENTS) {
        const int end = min(i + (int)LEVEL_SEGMENTS, plan->region_count);
        TRY(queue_splits(sort.engine, codes_only, input_of(sort.engine, plan, i, end, level.extents),
                         of_batch, tables_from(level, i)));
    }
    for (int i = 0; i < plan->batch_count; i++) {
        const struct planned_batch *batch = &plan->batches[i];
        struct level_tables<K> own = tables_from(level, batch->first);
        own.head = sort.memory.heads + i;
        TRY(queue_sorts(sort.engine, codes_only, sort.last,
                        input_of(sort.engine, plan, batch->first, batch->end, level.extents), of_batch, own,
                        batch->in_out ? sort.out + batch->out_end : sort.memory.scratch, sort.goal,
                        batch->beside));
    }
    return HSORT_OK;
}

/* Sort keys `from` [count] into the goal [count] by way of extents. */
template <typename K, typename LAST, typename FIRST, typename S>
static hsort_status sort_by_extents(const struct msd_sort<K, LAST> &sort, const FIRST &first, const S *from,
                                    int64_t count)
{
    struct region_answer regions[SPLIT_BUCKETS];
    struct region_batches plan;
    struct level_tables<K> level = sort.memory.first, next = sort.memory.level;
    struct level_input input = {};
    enum first_verdict verdict;
    level.left = next.left;
    next.extents = sort.memory.extents;
    next.extents.near_keys = sort.spare;
    add_segment(&input, count, 0, -1);
    add_piece(&input, from, count, tile_keys<K>(sort.engine));
    TRY_CUDA(cudaMemsetAsync(sort.memory.heads, 0, end_of_rows(next.extents) - (char *)sort.memory.heads,
                             sort.engine->streams[STREAM_WORK]));
    TRY(queue_splits(sort.engine, first, input, plan_of_first<K>(sort.engine, count), level));
    TRY(queue_count(sort.engine, first, from, count, level, &level.head->is_mixed));
    level.extents = next.extents;
    TRY(queue_extents(sort.engine, first, from, count, level));
    TRY(wait_for_regions(sort.engine, regions, &verdict));
    if (verdict != FIRST_SPLIT)
        return queue_ordered(sort, first, from, 0, count, verdict);
    plan_region_batches(regions, count, sort.memory.scratch_room, &plan);
    TRY(sort_batches(sort, &plan, next));
    // not sooner, because scratch was where they go
    for (int i = 0; i < plan.left_count; i++) {
        const struct planned_region *left = &plan.left[i];
        TRY(leave_region(sort.engine, next,
                         next.extents.rows + (int64_t)left->number * next.extents.row_length, sort.out,
                         left->first, left->keys));
    }
    return queue_rest(sort.engine, sort.last, level, 0, (K *)NULL, sort.goal); // the values that are written anew
}

/* Sort what the levels so far have left in out. */
template <typename K, typename LAST>
static hsort_status sort_left(const struct msd_sort<K, LAST> &sort, const struct left_list *list)
{
    struct level_input input = {};
    const auto fits = [&](int64_t keys) { return scratch_keys(keys) <= sort.scratch_room; };
    for (uint32_t i = 0; i < list->count; i++) {
        const int64_t first = (int64_t)list->entries[i].first, keys = (int64_t)list->entries[i].count;
        if (fits(keys))
            TRY(batch_segment(sort, sort.out + first, first, keys, (int)i, &input));
    }
    TRY(flush_level(sort, &input));
    for (uint32_t i = 0; i < list->count; i++) {
        const int64_t first = (int64_t)list->entries[i].first, keys = (int64_t)list->entries[i].count;
        if (!fits(keys))
            TRY(sort_large(sort, codes_only, sort.out + first, sort.spare + first, first, keys, (int)i));
    }
    return HSORT_OK;
}

/* How many buckets have the levels left that were queued since engine->levels was `before`? The last of these levels tells it, early,
 * while its block sorts run. */
static hsort_status wait_for_left(struct cuda_engine *engine, uint32_t before, uint32_t *count)
{
    const volatile uint64_t *told = &engine->result->left;
    *count = 0;
    if (engine->levels == before)
        return HSORT_OK;
    TRY(wait_until(engine->streams[STREAM_WORK], [=] { return *told >> 32 == engine->levels; }));
    *count = (uint32_t)*told;
    return HSORT_OK;
}

/* Sort what levels have left, until nothing is left. before: as above. Returns when that is known; the last level may still be at work. */
template <typename K, typename LAST>
static hsort_status settle_left(struct msd_sort<K, LAST> sort, uint32_t before)
{
    sort = with_own_scratch(sort);
    for (;;) {
        struct left_list list = {};
        uint32_t count;
        TRY(wait_for_left(sort.engine, before, &count));
        before = sort.engine->levels;
        hsort_status status = fetch_left(sort.engine, sort.memory.left, &sort.memory.level, count, &list);
        if (status == HSORT_OK && list.count > 0)
            status = sort_left(sort, &list);
        free(list.entries);
        if (status != HSORT_OK || list.count == 0)
            return status;
    }
}

/* Where the sorted keys are wanted. The kernels that store them last can do so anywhere. */
template <typename K>
static K *goal_of(const struct sort_args *args)
{
    const bool in_scratch = args->raw && args->raw->in_scratch && !args->raw->decode;
    return (K *)(in_scratch ? args->scratch_keys : args->keys);
}

/* How the only level of a sort splits: into smaller buckets, so that all multiprocessors have some and the last block ends soon; and by
 * a smaller sample, because all other blocks wait for those that sort it. If that would make too many buckets, they are larger. */
template <typename K>
static struct level_plan plan_alone(const struct cuda_engine *engine, int64_t count)
{
    const int each = (int)max(divide_up(count, engine->multiprocessors), (int64_t)ALONE_KEYS_LEAST);
    const int linear = min(each, own_size<K>(engine, MSD_ALONE_LINEAR_KEYS)),
              tree = min(each, own_size<K>(engine, MSD_ALONE_TREE_KEYS));
    struct level_plan plan = {linear, tree, ALONE_SAMPLE_OF_BUCKET, RANKED_SAMPLE, ALONE_RUN_KEYS,
                              true,   true, SPLIT_BUCKETS};
    if (count > ALONE_SMALL_BUCKETS) {
        plan.linear_keys = plan.tree_keys = ALONE_LARGE_KEYS;
        plan.sample_of_bucket = SAMPLE_OF_BUCKET;
    }
    return plan;
}

/* Queue the only level of a sort. */
template <int WAY, typename K>
static hsort_status queue_alone(const struct msd_sort<K, coding> &sort, const struct source<K> &source,
                                int64_t count)
{
    struct level_input input = {};
    struct level_tables<K> level = sort.memory.level;
    level.zeroes_left_count = true;
    add_segment(&input, count, 0, -1);
    add_piece(&input, source.keys, count, tile_keys<K>(sort.engine, WAY));
    return queue_level<K, WAY>(sort.engine, source.coding, sort.last, input,
                               plan_alone<K>(sort.engine, count), level, sort.scratch, sort.out);
}

/* The same: by small tiles, so that all multiprocessors have some, if keys are few; into buckets for large blocks, if they are many. */
template <typename K>
static hsort_status sort_alone(const struct msd_sort<K, coding> &sort, const struct source<K> &source,
                               int64_t count)
{
    if (count <= ALONE_SMALL_TILES)
        return queue_alone<LEVEL_SMALL_TILES>(sort, source, count);
    if (count <= ALONE_SMALL_BUCKETS)
        return queue_alone<LEVEL_USUAL>(sort, source, count);
    return queue_alone<LEVEL_LARGE_BUCKETS>(sort, source, count);
}

/* What a sort works on. from: where the keys come from. last: how they are stored. */
template <typename K, typename LAST>
static struct msd_sort<K, LAST> begin_sort(struct cuda_engine *engine, const struct sort_args *args,
                                           const void *from, const LAST &last) {
    struct msd_sort<K, LAST> sort = {
    };
    K *scratch = (K *)args->scratch_keys;
    sort.engine = engine;
    sort.memory = lay_out<K>(engine, args->workspace, args->count);
    sort.memory.level.next_left = sort.memory.left[0];
    sort.memory.level.left = sort.memory.left[1];
    sort.last = last;
    sort.out = goal_of<K>(args);
    sort.spare = sort.out == scratch ? (K *)args->keys : scratch;
    sort = with_own_scratch(sort);
    if (from != sort.out && args->count > sort.scratch_room) { // then `via` is not spare
        sort.scratch = sort.spare;
        sort.scratch_room = args->count;
    }
    return sort;
}

/* Sort by two levels, and as many more as it takes. */
template <typename K, typename LAST, typename FIRST, typename S>
static hsort_status sort_by_levels(struct msd_sort<K, LAST> sort, const FIRST &first, const S *from,
                                   int64_t count)
{
    const uint32_t before = sort.engine->levels;
    sort.memory.first.zeroes_left_count = true;
    if ((const void *)from != sort.spare && !needs_more_regions<K>(sort.engine, count))
        TRY(sort_by_extents(sort, first, from, count));
    else
        TRY(sort_large(sort, first, from, (const void *)from == sort.out ? sort.spare : sort.out, 0, count, -1));
    return settle_left(sort, before);
}

template <typename K>
static hsort_status msd_sort_keys(struct cuda_engine *engine, struct sort_args *args)
{
    const struct source<K> source = source_of<K>(args);
    const struct coding last = {source.coding.map, false, source.coding.decodes};
    struct msd_sort<K, coding> sort = begin_sort<K>(engine, args, source.keys, last);
    const uint32_t before = engine->levels;
    args->sorted_keys = sort.goal = sort.out;
    if (args->count > own_size<K>(engine, MSD_ALONE_KEYS))
        return sort_by_levels(sort, source.coding, source.keys, args->count);
    TRY(sort_alone(sort, source, args->count));
    return settle_left(sort, before);
}

/* Sort numbered keys S into their codes K, or into the positions alone. */
template <typename K, typename S>
static hsort_status sort_numbered(struct cuda_engine *engine, struct sort_args *args)
{
    const struct raw_keys *raw = args->raw;
    const S *from = (const S *)raw->from;
    const struct numbering<S> first = numbering_of<S>(raw);
    if (!wants_positions(raw)) {
        struct msd_sort<K, coding> sort = begin_sort<K>(engine, args, from, codes_only);
        args->sorted_keys = sort.goal = sort.out;
        return sort_by_levels(sort, first, from, args->count);
    }
    const struct positions_of<K> last = positions_last<K>(raw, goal_of<K>(args));
    struct msd_sort<K, positions_of<K>> sort = begin_sort<K>(engine, args, from, last);
    args->sorted_keys = sort.goal = raw->positions;
    return sort_by_levels(sort, first, from, args->count);
}

/* ---- few keys ------------------------------------------------------------------------------------------ */

template <typename K>
static __global__ void __launch_bounds__(RANK_THREADS)
    ranks_kernel(const __grid_constant__ struct coding coding, const K *from, K *to, int count)
{
    __shared__ alignas(sizeof(uint4)) K others[RANKS_AT_A_TIME * RANK_THREADS];
    wait_for_kernels_before();
    place_by_ranks<RANK_THREADS>(coding, from, count, blockIdx.x, to, others);
}

/* Sort few keys. Keys that are already where they are wanted are copied first: no key may be overwritten that others have yet to read. */
template <typename K>
static hsort_status sort_few(struct cuda_engine *engine, struct sort_args *args)
{
    const struct source<K> source = source_of<K>(args);
    K *keys = (K *)args->keys, *scratch = (K *)args->scratch_keys;
    const K *from = source.keys;
    args->sorted_keys = keys;
    if (from == keys) {
        TRY(launch_behind(engine, "copy of the keys", copy_kernel<K, coding, coding, K, K>,
                          engine->multiprocessors, MSD_WRITE_THREADS, 0, codes_only, codes_only, from,
                          scratch, args->count));
        from = scratch;
    }
    return launch_behind(engine, "ranks", ranks_kernel<K>, (unsigned)divide_up(args->count, (int64_t)RANKED),
                         RANK_THREADS, 0, source.coding, from, keys, (int)args->count);
}

/* ---- the rung ------------------------------------------------------------------------------------------ */

/* Does another rung sort this? Values have to keep their order, which a scatter does not; and a device may lack the shared memory. The
 * other rung is rung 7, except for keys of 16 bytes, which rung 7 does not take. */
static bool is_for_another(const struct cuda_engine *engine, const struct sort_args *args)
{
    return args->value_bytes > 0 || !can_sort_by_levels(engine);
}

static bool is_for_cub(const struct sort_args *args)
{
    return args->value_bytes == 0 && args->key_bytes == sizeof(uint128);
}

/* Numbered keys of 4 bytes that take two levels become codes of 8 bytes as they are loaded; others become codes in a pass before. */
static hsort_status sort_any_numbered(struct cuda_engine *engine, struct sort_args *args)
{
    return args->key_bytes == 8 && args->raw->map.key_bytes == 4 &&
                   args->count > own_size<uint64_t>(engine, MSD_ALONE_KEYS)
               ? sort_numbered<uint64_t, uint32_t>(engine, args)
               : ladder_sort_codes(engine, args, rung_8_msd);
}

extern "C" hsort_status rung_8_msd_workspace(struct cuda_engine *engine, const struct sort_args *args,
                                             size_t *bytes)
{
    if (is_for_another(engine, args))
        return is_for_cub(args) ? rung_0_cub_workspace(engine, args, bytes)
                                : rung_7_onesweep_workspace(engine, args, bytes);
    *bytes = 0;
    if (args->count <= FEW_KEYS)
        return HSORT_OK;
    return with_key_type(args->key_bytes, [&](auto key) {
        typedef decltype(key) K;
        *bytes = lay_out<K>(engine, NULL, args->count).bytes;
        // one level, and extents, may take more memory for fewer keys
        for (const int64_t fewer : {(int64_t)own_size<K>(engine, MSD_ALONE_KEYS), most_in_extents<K>(engine)}) {
            if (args->count > fewer)
                *bytes = max(*bytes, lay_out<K>(engine, NULL, fewer).bytes);
        }
        return HSORT_OK;
    });
}

extern "C" hsort_status rung_8_msd(struct cuda_engine *engine, struct sort_args *args)
{
    if (is_for_another(engine, args))
        return is_for_cub(args) ? ladder_sort_codes(engine, args, rung_0_cub) : rung_7_onesweep(engine, args);
    if (is_numbered(args->raw))
        return sort_any_numbered(engine, args);
    bool done = false;
    if (msd_cluster_fits(engine, args))
        TRY(msd_cluster_sort(engine, args, &done));
    if (done)
        return HSORT_OK;
    return with_key_type(args->key_bytes, [&](auto key) {
        typedef decltype(key) K;
        return args->count <= FEW_KEYS ? sort_few<K>(engine, args) : msd_sort_keys<K>(engine, args);
    });
}
