/* The stable MSD sort of keys that have a value each, from the host. The levels are those of msd.cu, but they keep the order of equal
 * keys (ordered.cuh), and so do the block sorts (pair_blocks.cuh):
 *
 *     elements      --- first level, counted --->   one half, a region behind the other
 *     one half      --- a level for some regions at a time ---> the other half --- block sorts --->   out
 *
 * Each level goes from one half to the other, because its buckets have no room to spare. A bucket that no block can sort stays where it
 * lies, and is a segment of another level, which goes the other way and splits it into parts of its exact range. So there are at most
 * twelve more levels for keys of 8 bytes, and seven for keys of 4 (msd.cu). Elements of a bucket of one value are copied, not sorted.
 *
 * If values are the positions of the keys, they are made in the first load, have 4 bytes on the way, and 8 in the end.
 *
 * With several ranks, the first level goes by a map that all of them share, its regions change ranks, and the next level takes the
 * regions as pieces in the order of the ranks (engine_pairs.h).
 *
 * Rung 7 sorts pairs that are fewer than PAIR_LEVELS_LEAST or more than PAIR_LEVELS_MOST, and those with keys of 4 bytes, for which it
 * has half as many passes as for keys of 8. kernels/README.md has the chapter. */
#include "kernels/cuda/msd/lumps.cuh"
#include "kernels/cuda/msd/pair_blocks.cuh"
#include "kernels/cuda/msd/pair_onesweep.cuh"

/* The block sorts of most buckets. Those of fuller buckets are as large as for keys of 8 bytes. */
typedef block_size<PAIR_SORT_THREADS, PAIR_SORT_KEYS, PAIR_SORT_BLOCKS> usual_pairs_size;

/* ---- memory -------------------------------------------------------------------------------------------- */

/* The workspace: tables of a level | rows and the like | what is left | two halves, as far as they are not the caller's. */
template <typename K, typename V>
struct pair_memory_map {
    struct level_tables<K> level;
    struct ordered_tables ordered;
    struct region_counts *region_counts;
    struct left_bucket *left[2]; /* those of a level before, and of this one; by turns */
    struct pair_array<K, V> halves[2];
    size_t bytes;
};

/* The tables for levels of `count` elements, from *next on. */
template <typename K, typename V>
static struct pair_memory_map<K, V> take_pair_tables(char **next, int64_t count)
{
    struct pair_memory_map<K, V> memory = {};
    const int64_t tiles = divide_up(count, (int64_t)ORDERED_TILE) + LEVEL_PIECES;
    memory.level = take_level<K>(next, LEVEL_SEGMENTS, LEVEL_SEGMENTS, count, FILL_KEYS);
    memory.region_counts = take_array<struct region_counts>(next, 1);
    memory.ordered.rows = take_array<uint32_t>(next, tiles * ORDERED_BUCKETS);
    memory.ordered.totals = take_array<uint32_t>(next, LEVEL_SEGMENTS * ORDERED_BUCKETS);
    memory.ordered.begins = take_array<uint32_t>(next, LEVEL_SEGMENTS * ORDERED_BUCKETS);
    memory.ordered.found = take_array<uint8_t>(next, tiles * FOUND_OF_TILE);
    memory.level.left_room = (uint32_t)(count / usual_pairs_size::CAPACITY + 2);
    for (int i = 0; i < 2; i++)
        memory.left[i] = take_array<struct left_bucket>(next, memory.level.left_room);
    memory.level.next_left = memory.left[0];
    memory.level.left = memory.left[1];
    return memory;
}

template <typename K, typename V>
static struct pair_memory_map<K, V> lay_out_pairs(void *workspace, const struct engine_pairs *pairs)
{
    char *next = (char *)workspace;
    const int64_t count = pairs->count;
    struct pair_memory_map<K, V> memory = take_pair_tables<K, V>(&next, count);
    memory.halves[0] = {take_array<K>(&next, count), take_array<V>(&next, count)};
    memory.halves[1] = take_goal<K, V>(&next, pairs);
    memory.bytes = (size_t)(next - (char *)workspace);
    return memory;
}

/* ---- levels -------------------------------------------------------------------------------------------- */

/* What all levels of a sort have in common. */
template <typename K, typename V, typename T>
struct pair_sort {
    struct cuda_engine *engine;
    struct pair_memory_map<K, V> memory;
    struct pair_goal<K, T> goal;
    int64_t unvalued; /* elements from this place on have their places as values */
};

template <typename K, typename V>
static struct pair_array<const K, const V> loaded_from(const struct pair_array<K, V> &array) {
    return {array.keys, array.values};
}

/* What becomes of a level's buckets. */
enum pair_level {
    PAIR_LAST,  /* they are sorted */
    PAIR_FIRST, /* they are regions: those of one value are copied, the others wait for another level */
    PAIR_LEAVE  /* they are regions that may change ranks */
};

/* Queue the count of a level's buckets, by the splits in its tables, and the scatter of elements of `from` to `to`. all: how many
 * elements `from` has. number: its first position, if positions are the values. */
template <typename K, typename V, typename T>
static hsort_status queue_pairs_scatter(const struct pair_sort<K, V, T> &sort, const struct coding &first,
                                        const struct level_input &input,
                                        struct pair_array<const K, const V> from, int64_t number,
                                        struct pair_array<K, V> to, int64_t all,
                                        const struct level_tables<K> &level, enum pair_level kind)
{
    enum {
        COLUMNS_OF_ONE = 8
    }; // so many that a block reads whole sectors, and so few that all of them have something to do
    struct cuda_engine *engine = sort.engine;
    const struct ordered_tables &ordered = sort.memory.ordered;
    const unsigned segments = (unsigned)input.segments.count;
    const bool has_one_segment = kind != PAIR_LAST;
    TRY(launch_behind(engine, "count of the buckets", count_rows_kernel<K>, input.tiles, ROW_THREADS, 0,
                      first, input.pieces, from.keys, all, level, ordered));
    TRY(launch_behind(engine, "sums of the counts",
                      has_one_segment ? sum_rows_kernel<COLUMNS_OF_ONE> : sum_rows_kernel<ORDERED_BUCKETS>,
                      dim3(has_one_segment ? ORDERED_BUCKETS / COLUMNS_OF_ONE : 1, segments),
                      COLUMN_THREADS, 0, input.pieces, ordered));
    TRY(launch_behind(engine, "list of the buckets", list_pairs_kernel<K>, segments, SPLIT_BUCKETS, 0,
                      usual_pairs_size::CAPACITY, huge_keys<uint64_t>(engine), kind == PAIR_LEAVE, level,
                      ordered, has_one_segment ? engine->result->less : NULL, &engine->result->verdict));
    return launch_behind(engine, "scatter in order", scatter_in_order_kernel<K, V>, input.tiles,
                         ONESWEEP_THREADS, (int)sizeof(struct ordered_tile<K, V>), first, input.pieces, from,
                         sort.unvalued, number, to, level, ordered);
}

/* Queue a level: the input's segments, which are elements of `from`, go to `to`, and from there to the goal. told: the level is the
 * first of several; its regions, except those of one value, wait for another level. all: how many elements `from` has. */
template <typename K, typename V, typename T>
static hsort_status queue_pairs_level(const struct pair_sort<K, V, T> &sort, const struct coding &first,
                                      const struct level_input &input, const struct level_plan &plan,
                                      struct pair_array<const K, const V> from, struct pair_array<K, V> to,
                                      int64_t all, const struct level_tables<K> &level, bool told)
{
    typedef usual_pairs_size usual;
    struct cuda_engine *engine = sort.engine;
    const struct pair_array<const K, const V> ready = loaded_from(to);
    if (input.tiles == 0)
        return HSORT_OK;
    TRY(queue_splits(engine, first, input, plan, level));
    TRY(queue_pairs_scatter(sort, first, input, from, 0, to, all, level, told ? PAIR_FIRST : PAIR_LAST));
    if (!told)
        TRY(launch_behind(engine, "block sorts of pairs", usual_pairs_kernel<usual, K, V, T>,
                          (unsigned)input.segments.count * ORDERED_BUCKETS, usual::THREADS,
                          pair_memory<usual>::bytes(), sort.goal, ready, level));
    return with_class(engine, [&](auto number) {
        typedef typename class_sizes<uint64_t, decltype(number)::value>::huge huge;
        static_assert(huge::CAPACITY >= usual::CAPACITY, "there is room for what is left");
        return launch_behind(engine, "rest of the buckets", rest_pairs_kernel<huge, K, V, T>,
                             engine->multiprocessors, huge::THREADS, pair_memory<huge>::bytes(), sort.goal,
                             ready, level);
    });
}

/* Queue a level for the segments so far, which are codes, and forget them. */
template <typename K, typename V, typename T>
static hsort_status flush_pairs_level(const struct pair_sort<K, V, T> &sort, int half,
                                      struct level_input *input)
{
    const struct pair_memory_map<K, V> &memory = sort.memory;
    const struct level_plan plan = {
        PAIR_LINEAR_KEYS, PAIR_TREE_KEYS, SAMPLE_OF_BUCKET, INT_MAX, FILL_KEYS, false, false,
        ORDERED_BUCKETS};
    TRY(queue_pairs_level(sort, codes_only, *input, plan, loaded_from(memory.halves[half]),
                          memory.halves[1 - half], INT64_MAX, memory.level, false));
    *input = {};
    return HSORT_OK;
}

/* Add elements [count] of a half, from `first` on, as a segment. If the level so far is full, queue that level first. */
template <typename K, typename V, typename T>
static hsort_status batch_pairs(const struct pair_sort<K, V, T> &sort, int half, int64_t first, int64_t count,
                                int left, struct level_input *input)
{
    if (input->segments.count == LEVEL_SEGMENTS)
        TRY(flush_pairs_level(sort, half, input));
    add_segment(input, count, first, left);
    add_piece(input, sort.memory.halves[half].keys + first, count, ORDERED_TILE);
    return HSORT_OK;
}

/* How many elements a region of the first level has. There are so many regions that two levels suffice for as many elements as possible. */
static int64_t pairs_of_region(int64_t count)
{
    const int64_t regions = min(max(count / REGION_KEYS, (int64_t)REGIONS_MIN), (int64_t)PAIR_REGIONS_MAX);
    return divide_up(count, regions);
}

/* The first level, from the caller's elements to half 0, and then a level for its regions, to half 1. */
template <typename K, typename V, typename T>
static hsort_status sort_pair_regions(struct pair_sort<K, V, T> &sort, const struct coding &first,
                                      struct pair_array<const K, const V> from, int64_t count)
{
    struct cuda_engine *engine = sort.engine;
    struct level_tables<K> level = sort.memory.level;
    struct level_input input = {};
    struct level_plan plan = plan_of_regions(pairs_of_region(count), pairs_of_region(count), true);
    plan.most_buckets = ORDERED_BUCKETS;
    level.region_counts = sort.memory.region_counts;
    level.zeroes_left_count = true;
    add_segment(&input, count, 0, -1);
    add_piece(&input, from.keys, count, ORDERED_TILE);
    *(volatile int32_t *)&engine->result->verdict = FIRST_UNKNOWN;
    TRY(queue_pairs_level(sort, first, input, plan, from, sort.memory.halves[0], count, level, true));
    TRY(wait_for_word(engine->streams[STREAM_WORK], &engine->result->verdict, FIRST_UNKNOWN));
    if (engine->result->verdict == FIRST_SORTED)
        return launch_behind(engine, "pairs in order", copy_pairs_kernel<K, V, T>,
                             engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, first, sort.goal, from,
                             count);
    int64_t regions[ORDERED_BUCKETS], at = 0;
    for (int i = 0; i < ORDERED_BUCKETS; i++) // copied, because the next level may tell something else there
        regions[i] = ((const volatile int64_t *)engine->result->less)[i];
    input = {};
    for (int i = 0; i < ORDERED_BUCKETS; at += regions[i++] >> 1) {
        if (regions[i] > 1 && regions[i] % 2 == 0)
            TRY(batch_pairs(sort, 0, at, regions[i] >> 1, -1, &input));
    }
    return flush_pairs_level(sort, 0, &input);
}

/* Sort what levels have left in half 1, until nothing is left. */
template <typename K, typename V, typename T>
static hsort_status settle_left_pairs(struct pair_sort<K, V, T> &sort)
{
    enum { BLOCKS_OF_BUCKET = 16, BUCKETS_TOGETHER = 1 << 10 };
    struct cuda_engine *engine = sort.engine;
    struct level_tables<K> *level = &sort.memory.level;
    for (int half = 1;; half = 1 - half) {
        struct left_list list = {};
        struct level_input input = {};
        uint32_t left;
        TRY(copy_left_count(engine, level->left_count, &left));
        if (left == 0)
            return HSORT_OK;
        hsort_status status = fetch_left(engine, sort.memory.left, level, left, &list);
        if (status == HSORT_OK)
            status =
                launch_behind(engine, "extremes of the buckets", extremes_of_left_kernel<K>,
                              dim3(BLOCKS_OF_BUCKET, min(left, (uint32_t)BUCKETS_TOGETHER)), COLUMN_THREADS,
                              0, sort.memory.halves[half].keys, (struct left_bucket *)level->left, left);
        for (uint32_t i = 0; i < list.count && status == HSORT_OK; i++)
            status = batch_pairs(sort, half, (int64_t)list.entries[i].first, (int64_t)list.entries[i].count,
                                 (int)i, &input);
        if (status == HSORT_OK)
            status = flush_pairs_level(sort, half, &input);
        free(list.entries);
        TRY(status);
    }
}

template <typename K, typename V, typename T>
static hsort_status sort_pairs_by_levels(struct cuda_engine *engine, const struct engine_pairs *pairs,
                                         void *workspace)
{
    const bool encodes = !pairs->map.identity;
    struct pair_sort<K, V, T> sort = {
    };
    sort.engine = engine;
    sort.unvalued = INT64_MAX;
    sort.memory = lay_out_pairs<K, V>(workspace, pairs);
    sort.goal = {(K *)pairs->keys_out, (T *)pairs->values_out, {pairs->map, false, encodes}};
    TRY(sort_pair_regions<K>(sort, {pairs->map, encodes, false},
                             {(const K *)pairs->keys, (const V *)pairs->values}, pairs->count));
    return settle_left_pairs(sort);
}

/* ---- the engine's functions ---------------------------------------------------------------------------- */

/* Call run(K(), V(), T()) with the types of keys, of values on the way, and of values in the end. */
template <typename F>
static hsort_status with_pair_types(const struct engine_pairs *pairs, F run)
{
    return with_narrow_key_type(pairs->map.key_bytes, [&](auto key) {
        if (!pairs->values)
            return run(key, uint32_t(), int64_t());
        if (pairs->value_bytes == 4)
            return run(key, uint32_t(), uint32_t());
        if (pairs->value_bytes == 8)
            return run(key, uint64_t(), uint64_t());
        return status_fail(HSORT_INTERNAL, "no kernels for values of %d bytes", pairs->value_bytes);
    });
}

/* Does a rank alone have levels for keys of this type? It does where they pay. */
template <typename K>
constexpr bool has_levels = sizeof(K) == 8;

/* Do several ranks have levels for these types? They do, except for positions beside keys of 4 bytes, which together are codes of 8
 * bytes. */
template <typename K, typename V, typename T>
constexpr bool has_regions = sizeof(K) == 8 || sizeof(V) == sizeof(T);

/* Can levels sort these pairs? Places have 32 bits. */
static bool can_go_by_levels(const struct cuda_engine *engine, const struct engine_pairs *pairs)
{
    return pairs->map.key_bytes == 8 && can_sort_by_levels(engine) && pairs->count <= UINT32_MAX;
}

static bool can_go_by_onesweep(const struct engine_pairs *pairs)
{
    return pairs->values || pairs->count <= UINT32_MAX;
}

static bool goes_by_levels(const struct cuda_engine *engine, const struct engine_pairs *pairs)
{
    const bool pays = PAIR_LEVELS_LEAST <= pairs->count && pairs->count <= PAIR_LEVELS_MOST;
    return can_go_by_levels(engine, pairs) && (pays || !can_go_by_onesweep(pairs));
}

static bool pairs_can_sort(const struct engine *base, const struct engine_pairs *pairs)
{
    const int bytes = pairs->map.key_bytes;
    const bool known =
        (bytes == 4 || bytes == 8) && (!pairs->values || pairs->value_bytes == 4 || pairs->value_bytes == 8);
    return known && (can_go_by_levels((const struct cuda_engine *)base, pairs) || can_go_by_onesweep(pairs));
}

static hsort_status pairs_beat_codes(struct engine *base, const struct engine_pairs *pairs, bool *beat)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    const struct device_scope device(engine);
    *beat = pairs->map.key_bytes == 4 && pairs->count <= PAIR_POSITIONS_MOST;
    if (*beat || pairs->map.key_bytes != 4 || !can_go_by_onesweep(pairs))
        return HSORT_OK;
    TRY(kernel_fault("look for lumps"));
    const struct numbering<uint32_t> numbering = {pairs->map, (const uint32_t *)pairs->keys, 0,
                                                  64 - __builtin_clzll((uint64_t)pairs->count - 1)};
    return look_for_lumps(engine, numbering, pairs->count, beat);
}

static hsort_status pairs_workspace(struct engine *base, const struct engine_pairs *pairs, size_t *bytes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    return with_pair_types(pairs, [&](auto key, auto value, auto) {
        typedef decltype(key) K;
        typedef decltype(value) V;
        if constexpr (has_levels<K>) {
            if (goes_by_levels(engine, pairs)) {
                *bytes = lay_out_pairs<K, V>(NULL, pairs).bytes;
                return HSORT_OK;
            }
        }
        struct onesweep_map<K, V> map = {
        };
        TRY(lay_out_onesweep(engine, NULL, pairs, &map));
        *bytes = map.bytes;
        return HSORT_OK;
    });
}

static hsort_status pairs_sort(struct engine *base, const struct engine_pairs *pairs, void *workspace)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    const struct device_scope device(engine);
    TRY(kernel_takes("sort of pairs", pairs->map.key_bytes));
    if (pairs->count == 0)
        return HSORT_OK;
    return with_pair_types(pairs, [&](auto key, auto value, auto stored) {
        typedef decltype(key) K;
        typedef decltype(value) V;
        typedef decltype(stored) T;
        if constexpr (has_levels<K>) {
            if (goes_by_levels(engine, pairs))
                return sort_pairs_by_levels<K, V, T>(engine, pairs, workspace);
        }
        return sort_pairs_by_onesweep<K, V>(engine, pairs, workspace);
    });
}

/* ---- pairs of several ranks ---------------------------------------------------------------------------- */

static bool pairs_can_split(const struct engine *base, const struct engine_pair_regions *regions)
{
    const int bytes = regions->pairs.map.key_bytes;
    return (bytes == 8 || (bytes == 4 && (regions->pairs.values || regions->places))) &&
           regions->most <= UINT32_MAX && can_sort_by_levels((const struct cuda_engine *)base);
}

/* Call run(K(), V(), T()), for types that can be split. */
template <typename F>
static hsort_status with_region_types(const struct engine_pair_regions *regions, F run)
{
    if (regions->places)
        return with_narrow_key_type(regions->pairs.map.key_bytes,
                                    [&](auto key) { return run(key, uint64_t(), uint64_t()); });
    return with_pair_types(&regions->pairs, [&](auto key, auto value, auto stored) {
        if constexpr (has_regions<decltype(key), decltype(value), decltype(stored)>)
            return run(key, value, stored);
        return status_fail(HSORT_INTERNAL, "no kernels for positions of keys of %d bytes", (int)sizeof key);
    });
}

static size_t pairs_region_workspace(const struct engine *, const struct engine_pair_regions *regions)
{
    size_t bytes = 0;
    with_region_types(regions, [&](auto key, auto value, auto) {
        char *next = NULL;
        take_pair_tables<decltype(key), decltype(value)>(&next, regions->most);
        bytes = (size_t)(next - (char *)NULL);
        return HSORT_OK;
    });
    return bytes;
}

/* A sort by the tables and arrays of regions. */
template <typename K, typename V, typename T>
static struct pair_sort<K, V, T> sort_of_regions(struct cuda_engine *engine,
                                                 const struct engine_pair_regions *regions)
{
    const struct engine_pairs *pairs = &regions->pairs;
    char *next = (char *)regions->workspace;
    struct pair_sort<K, V, T> sort = {};
    sort.engine = engine;
    sort.unvalued = INT64_MAX;
    sort.memory = take_pair_tables<K, V>(&next, regions->most);
    sort.memory.halves[0] = {(K *)regions->keys, (V *)regions->values};
    sort.memory.halves[1] = {(K *)regions->other_keys, (V *)regions->other_values};
    sort.goal = {(K *)pairs->keys_out, (T *)pairs->values_out, {pairs->map, false, !pairs->map.identity}};
    return sort;
}

/* Queue the split of a rank's pairs by a map. */
template <typename K, typename V, typename T>
static hsort_status queue_split(struct cuda_engine *engine, const struct engine_pair_regions *regions,
                                int64_t number, const struct engine_map *map)
{
    const struct engine_pairs *pairs = &regions->pairs;
    const struct pair_sort<K, V, T> sort = sort_of_regions<K, V, T>(engine, regions);
    const struct level_tables<K> &level = sort.memory.level;
    const struct coding first = {pairs->map, !pairs->map.identity, false};
    cudaStream_t stream = engine->streams[STREAM_WORK];
    struct level_input input = {};
    TRY_CUDA(cudaMemsetAsync(level.head, 0, sizeof *level.head, stream));
    TRY_CUDA(cudaMemsetAsync(level.segments, 0, sizeof *level.segments, stream));
    TRY_CUDA(cudaMemcpyAsync(level.splits, map, sizeof *level.splits, cudaMemcpyDefault, stream));
    add_segment(&input, pairs->count, 0, -1);
    add_piece(&input, pairs->keys, pairs->count, ORDERED_TILE);
    return queue_pairs_scatter(sort, first, input, {(const K *)pairs->keys, (const V *)pairs->values}, number,
                               sort.memory.halves[0], pairs->count, level, PAIR_LEAVE);
}

static hsort_status pairs_split(struct engine *base, const struct engine_pair_regions *regions, int64_t first,
                                const struct engine_map *map, int64_t *counts)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    const struct device_scope device(engine);
    memset(counts, 0, ENGINE_REGIONS * sizeof *counts);
    TRY(kernel_takes("split of pairs", regions->pairs.map.key_bytes));
    if (regions->pairs.count == 0)
        return HSORT_OK;
    *(volatile int32_t *)&engine->result->verdict = FIRST_UNKNOWN;
    TRY(with_region_types(regions, [&](auto key, auto value, auto stored) {
        return queue_split<decltype(key), decltype(value), decltype(stored)>(engine, regions, first, map);
    }));
    TRY(wait_for_word(engine->streams[STREAM_WORK], &engine->result->verdict, FIRST_UNKNOWN));
    for (int region = 0; region < ORDERED_BUCKETS; region++) // copied, because the next level may tell something else there
        counts[region] = ((const volatile int64_t *)engine->result->less)[region] >> 1;
    return HSORT_OK;
}

/* Call run() with the sort of regions, a struct pair_sort. */
template <typename F>
static hsort_status with_sort(struct engine *base, const struct engine_pair_regions *regions, F run)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    const struct device_scope device(engine);
    TRY(kernel_takes("sort of regions", regions->pairs.map.key_bytes));
    return with_region_types(regions, [&](auto key, auto value, auto stored) {
        return run(sort_of_regions<decltype(key), decltype(value), decltype(stored)>(engine, regions));
    });
}

static hsort_status pairs_sort_regions(struct engine *base, const struct engine_pair_regions *regions,
                                       const struct engine_pair_piece *pieces, int count, int64_t out_first,
                                       bool begins)
{
    return with_sort(base, regions, [&](auto sort) {
        struct level_input input = {};
        int64_t at = out_first;
        if (regions->places)
            sort.unvalued = regions->pairs.count;
        if (begins) // here, because there may be no level that zeroes it
            TRY_CUDA(cudaMemsetAsync(sort.memory.level.left_count, 0, sizeof(uint32_t),
                                     sort.engine->streams[STREAM_WORK]));
        for (int i = 0, end; i < count; i = end) {
            int64_t all = 0;
            for (end = i; end < count && pieces[end].region == pieces[i].region; end++)
                all += pieces[end].count;
            if (all == 0)
                continue;
            add_segment(&input, all, at, -1);
            for (int piece = i; piece < end; piece++)
                if (pieces[piece].count > 0)
                    add_piece(&input, sort.memory.halves[0].keys + pieces[piece].first, pieces[piece].count,
                              ORDERED_TILE);
            at += all;
        }
        static_assert((int)ENGINE_PIECES_MAX <= (int)LEVEL_SEGMENTS, "all pieces are a level");
        return flush_pairs_level(sort, 0, &input);
    });
}

static hsort_status pairs_settle_regions(struct engine *base, const struct engine_pair_regions *regions)
{
    struct engine_pair_regions left = *regions;
    left.keys = regions->spare_keys; // other ranks may still read the first half
    left.values = regions->spare_values;
    return with_sort(base, &left, [](auto sort) { return settle_left_pairs(sort); });
}

extern "C" const struct engine_pair_ops cuda_pair_ops = {.can_sort = pairs_can_sort,
                                                         .beats_codes = pairs_beat_codes,
                                                         .workspace = pairs_workspace,
                                                         .sort = pairs_sort,
                                                         .can_split = pairs_can_split,
                                                         .region_workspace = pairs_region_workspace,
                                                         .split = pairs_split,
                                                         .sort_regions = pairs_sort_regions,
                                                         .settle_regions = pairs_settle_regions};
