/* The stable MSD sort of keys that have a value each, from the host. The levels are those of msd.cu, but keep the order of equal
 * keys (ordered.cuh), and block sorts do (pair_blocks.cuh):
 *
 *     elements      --- first level, counted --->   one half, a region behind the other
 *     one half      --- a level for some regions at a time ---> the other half --- block sorts --->   out
 *
 * Each level goes from one half to the other, as its buckets have no room to spare. What no block can sort stays where it lies,
 * and is a segment of another level, which goes the other way, by parts of its exact range; so there are no more levels than a
 * key has bytes, and two. Elements of a bucket of one value are copied, not sorted.
 *
 * Where values are the positions of the keys, they are made in the first load, have 4 bytes on the way, and 8 at last.
 *
 * Few elements, more than 4 bytes can count, and keys of 4 bytes are sorted by rung 7, which has half as many passes for these as
 * for keys of 8. kernels/README.md has the chapter. */
#include "kernels/cuda/ladder/ladder.h"
#include "kernels/cuda/msd/pair_blocks.cuh"
#include "kernels/cuda/msd/queue_level.cuh"

/* Block sorts of most buckets. Those of fuller ones are as large as of keys of 8 bytes. */
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

/* Does the second half lie where keys and values go at last? */
static bool has_goal_for_keys(const struct engine_pairs *pairs)
{
    return pairs->keys_out != NULL;
}

static bool has_goal_for_values(const struct engine_pairs *pairs)
{
    return pairs->values != NULL; // positions are wider at last than on the way
}

template <typename K, typename V>
static struct pair_memory_map<K, V> lay_out_pairs(void *workspace, const struct engine_pairs *pairs) {
    typedef ordered_size<K, V> size;
    struct pair_memory_map<K, V> memory = {
    };
    char *next = (char *)workspace;
    const int64_t count = pairs->count, tiles = divide_up(count, (int64_t)size::TILE) + LEVEL_SEGMENTS;
    memory.level = take_level<K>(&next, LEVEL_SEGMENTS, count, FILL_KEYS);
    memory.region_counts = take_array<struct region_counts>(&next, 1);
    memory.ordered.rows = take_array<uint32_t>(&next, tiles *ORDERED_BUCKETS);
    memory.ordered.totals = take_array<uint32_t>(&next, LEVEL_SEGMENTS *ORDERED_BUCKETS);
    memory.ordered.begins = take_array<uint32_t>(&next, LEVEL_SEGMENTS *ORDERED_BUCKETS);
    memory.ordered.found = take_array<uint8_t>(&next, tiles *found_of_tile(size::TILE));
    memory.level.left_room = (uint32_t)(count / usual_pairs_size::CAPACITY + 2);
    for (int i = 0; i < 2; i++)
        memory.left[i] = take_array<struct left_bucket>(&next, memory.level.left_room);
    memory.level.next_left = memory.left[0];
    memory.level.left = memory.left[1];
    memory.halves[0] = {take_array<K>(&next, count), take_array<V>(&next, count)};
    memory.halves[1].keys = has_goal_for_keys(pairs) ? (K *)pairs->keys_out : take_array<K>(&next, count);
    memory.halves[1].values =
        has_goal_for_values(pairs) ? (V *)pairs->values_out : take_array<V>(&next, count);
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
};

template <typename K, typename V>
static struct pair_array<const K, const V> loaded_from(const struct pair_array<K, V> &array) {
    return {array.keys, array.values};
}

/* Queue a level: the input's segments, elements of `from`, to `to`, and from there to the goal. told: it is the first of
 * several; its regions, but for those of one value, wait for another. all: elements of `from`. */
template <typename K, typename V, typename T>
static hsort_status queue_pairs_level(const struct pair_sort<K, V, T> &sort, const struct coding &first,
                                      const struct level_input &input, const struct level_plan &plan,
                                      struct pair_array<const K, const V> from, struct pair_array<K, V> to,
                                      int64_t all, const struct level_tables<K> &level, bool told)
{
    typedef usual_pairs_size usual;
    enum {
        COLUMNS_OF_ONE = 8
    }; // so many that a block reads whole sectors, and so few that all of them have something to do
    struct cuda_engine *engine = sort.engine;
    const struct ordered_tables &ordered = sort.memory.ordered;
    const struct pair_array<const K, const V> ready = loaded_from(to);
    const int tile = ordered_size<K, V>::TILE;
    const unsigned segments = (unsigned)input.segments.count;
    if (input.tiles == 0)
        return HSORT_OK;
    TRY(queue_splits(engine, first, input, plan, level));
    TRY(launch_behind(engine, "count of the buckets", count_rows_kernel<K>, input.tiles, ROW_THREADS, 0,
                      first, input.pieces, from.keys, tile, all, level, ordered));
    if (told)
        TRY(launch_behind(engine, "sums of the counts", sum_rows_kernel<COLUMNS_OF_ONE>,
                          dim3(ORDERED_BUCKETS / COLUMNS_OF_ONE, segments), COLUMN_THREADS, 0, input.pieces,
                          tile, ordered));
    else
        TRY(launch_behind(engine, "sums of the counts", sum_rows_kernel<ORDERED_BUCKETS>, dim3(1, segments),
                          COLUMN_THREADS, 0, input.pieces, tile, ordered));
    TRY(launch_behind(engine, "list of the buckets", list_pairs_kernel<K>, segments, SPLIT_BUCKETS, 0,
                      usual::CAPACITY, huge_keys<uint64_t>(engine), level, ordered,
                      told ? engine->result->less : NULL, &engine->result->verdict));
    TRY(launch_behind(engine, "scatter in order", scatter_in_order_kernel<K, V>, input.tiles,
                      ONESWEEP_THREADS, (int)sizeof(struct ordered_tile<K, V>), first, input.pieces, from, to,
                      level, ordered));
    if (!told)
        TRY(launch_behind(engine, "block sorts of pairs", usual_pairs_kernel<usual, K, V, T>,
                          segments * ORDERED_BUCKETS, usual::THREADS, pair_memory<usual>::bytes(), sort.goal,
                          ready, level));
    return with_class(engine, [&](auto number) {
        typedef typename class_sizes<uint64_t, decltype(number)::value>::huge huge;
        static_assert(huge::CAPACITY >= usual::CAPACITY, "there is room for what is left");
        return launch_behind(engine, "rest of the buckets", rest_pairs_kernel<huge, K, V, T>,
                             engine->multiprocessors, huge::THREADS, pair_memory<huge>::bytes(), sort.goal,
                             ready, level);
    });
}

/* Queue a level for the segments so far, codes, and forget them. */
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

/* Add elements [count] of a half, from `first` on, as a segment; before, queue a level if it is full. */
template <typename K, typename V, typename T>
static hsort_status batch_pairs(const struct pair_sort<K, V, T> &sort, int half, int64_t first, int64_t count,
                                int left, struct level_input *input)
{
    if (input->segments.count == LEVEL_SEGMENTS)
        TRY(flush_pairs_level(sort, half, input));
    add_segment(input, count, first, left);
    add_piece(input, sort.memory.halves[half].keys + first, count, ordered_size<K, V>::TILE);
    return HSORT_OK;
}

/* Regions of the first level: so many that two levels do for as many elements as may be. */
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
    add_piece(&input, from.keys, count, ordered_size<K, V>::TILE);
    *(volatile int32_t *)&engine->result->verdict = FIRST_UNKNOWN;
    TRY(queue_pairs_level(sort, first, input, plan, from, sort.memory.halves[0], count, level, true));
    TRY(wait_for_word(engine->streams[STREAM_WORK], &engine->result->verdict, FIRST_UNKNOWN));
    if (engine->result->verdict == FIRST_SORTED)
        return launch_behind(engine, "pairs in order", copy_pairs_kernel<K, V, T>,
                             engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, first, sort.goal, from,
                             count);
    int64_t regions[ORDERED_BUCKETS], at = 0;
    for (int i = 0; i < ORDERED_BUCKETS; i++) // the next level may tell something else
        regions[i] = ((const volatile int64_t *)engine->result->less)[i];
    input = {};
    for (int i = 0; i < ORDERED_BUCKETS; at += regions[i++] >> 1) {
        if (regions[i] > 1 && regions[i] % 2 == 0)
            TRY(batch_pairs(sort, 0, at, regions[i] >> 1, -1, &input));
    }
    return flush_pairs_level(sort, 0, &input);
}

/* Sort what levels have left in half 1, until nothing is. */
template <typename K, typename V, typename T>
static hsort_status settle_left_pairs(struct pair_sort<K, V, T> &sort)
{
    enum { BLOCKS_OF_BUCKET = 16, BUCKETS_TOGETHER = 1 << 10 };
    struct cuda_engine *engine = sort.engine;
    struct level_tables<K> *level = &sort.memory.level;
    for (int half = 1;; half = 1 - half) {
        struct left_list list = {};
        struct level_input input = {};
        uint32_t *count = (uint32_t *)&engine->result->left;
        TRY_CUDA(cudaMemcpyAsync(count, level->left_count, sizeof *count, cudaMemcpyDefault,
                                 engine->streams[STREAM_WORK]));
        TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
        const uint32_t left = *(volatile uint32_t *)count;
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
    sort.memory = lay_out_pairs<K, V>(workspace, pairs);
    sort.goal = {(K *)pairs->keys_out, (T *)pairs->values_out, {pairs->map, false, encodes}};
    TRY(sort_pair_regions<K>(sort, {pairs->map, encodes, false},
                             {(const K *)pairs->keys, (const V *)pairs->values}, pairs->count));
    return settle_left_pairs(sort);
}

/* ---- rung 7 -------------------------------------------------------------------------------------------- */

/* Rung 7 reads the caller's arrays in its first pass and writes scratch, then from there what is asked for, and so on by turns:
 * of an even number of passes, as keys have them where each digit differs, the last one ends where it should.
 *
 *     keys, values     --- pass 1 --->   scratch   --- pass 2 --->   out   --- 3 --->   scratch   --- 4 --->   out
 *
 * Keys that are no codes become codes in `out` before, and keys behind; positions are made, and become wider. */
template <typename K, typename V>
struct onesweep_map {
    struct pair_array<K, V> out, scratch;
    void *workspace;
    size_t bytes;
};

template <typename K, typename V>
static struct sort_args onesweep_args(const struct onesweep_map<K, V> &map, const struct engine_pairs *pairs)
{
    struct sort_args args = {};
    args.key_bytes = sizeof(K);
    args.value_bytes = sizeof(V);
    args.count = pairs->count;
    args.keys = map.out.keys;
    args.values = map.out.values;
    args.scratch_keys = map.scratch.keys;
    args.scratch_values = map.scratch.values;
    args.first_keys = pairs->map.identity ? pairs->keys : NULL;
    args.first_values = pairs->values;
    args.workspace = map.workspace;
    return args;
}

template <typename K, typename V>
static hsort_status lay_out_onesweep(struct cuda_engine *engine, void *workspace,
                                     const struct engine_pairs *pairs, struct onesweep_map<K, V> *map)
{
    const int64_t count = pairs->count;
    char *next = (char *)workspace;
    size_t bytes;
    map->out.keys = has_goal_for_keys(pairs) ? (K *)pairs->keys_out : take_array<K>(&next, count);
    map->out.values = has_goal_for_values(pairs) ? (V *)pairs->values_out : take_array<V>(&next, count);
    map->scratch = {take_array<K>(&next, count), take_array<V>(&next, count)};
    const struct sort_args args = onesweep_args(*map, pairs);
    TRY(rung_7_onesweep_workspace(engine, &args, &bytes));
    map->workspace = take_array<char>(&next, (int64_t)bytes);
    map->bytes = (size_t)(next - (char *)workspace);
    return HSORT_OK;
}

/* The positions, as values. */
template <typename V>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS) number_kernel(V *values, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * MSD_WRITE_THREADS)
        values[i] = (V)i;
}

template <typename T, typename V>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    copy_values_kernel(const V *from, T *to, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * MSD_WRITE_THREADS)
        to[i] = (T)from[i];
}

/* Have keys and values where they belong. */
template <typename K, typename V, typename T>
static hsort_status finish_onesweep(struct cuda_engine *engine, const struct engine_pairs *pairs,
                                    const struct sort_args &args)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const bool in_place = args.sorted_keys == pairs->keys_out;
    if (pairs->keys_out && !pairs->map.identity)
        TRY(keys_decode(engine, pairs->map, pairs->keys_out, args.sorted_keys, pairs->count));
    else if (pairs->keys_out && !in_place)
        TRY_CUDA(cudaMemcpyAsync(pairs->keys_out, args.sorted_keys, (size_t)pairs->count * sizeof(K),
                                 cudaMemcpyDefault, stream));
    if (args.sorted_values == pairs->values_out)
        return HSORT_OK;
    copy_values_kernel<T><<<engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, stream>>>(
        (const V *)args.sorted_values, (T *)pairs->values_out, pairs->count);
    TRY_LAUNCH("copy of the values");
    return HSORT_OK;
}

template <typename K, typename V, typename T>
static hsort_status sort_pairs_by_onesweep(struct cuda_engine *engine, const struct engine_pairs *pairs,
                                           void *workspace)
{
    struct onesweep_map<K, V> map = {
    };
    TRY(lay_out_onesweep(engine, workspace, pairs, &map));
    struct sort_args args = onesweep_args(map, pairs);
    if (!pairs->map.identity)
        TRY(keys_encode(engine, pairs->map, map.out.keys, pairs->keys, pairs->count));
    if (!pairs->values) {
        number_kernel<<<engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, engine->streams[STREAM_WORK]>>>(
            map.out.values, pairs->count);
        TRY_LAUNCH("positions as values");
    }
    TRY(rung_7_onesweep(engine, &args));
    return finish_onesweep<K, V, T>(engine, pairs, args);
}

/* ---- the engine's functions ---------------------------------------------------------------------------- */

/* run(K(), V(), T()): the types of keys, and of values on the way and at last. */
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

/* For which types there are levels: where they pay, and where rung 7 has no kernels. */
template <typename K, typename V>
constexpr bool has_levels = sizeof(K) == 8 || sizeof(V) > sizeof(K);

/* Places have 32 bits. */
static bool can_go_by_levels(const struct cuda_engine *engine, const struct engine_pairs *pairs)
{
    const bool known = pairs->map.key_bytes == 8 || (pairs->values && pairs->value_bytes == 8);
    return known && can_sort_by_levels(engine) && pairs->count <= UINT32_MAX;
}

static bool can_go_by_onesweep(const struct engine_pairs *pairs)
{
    const int value_bytes = pairs->values ? pairs->value_bytes : 4;
    return value_bytes <= pairs->map.key_bytes && (pairs->values || pairs->count <= UINT32_MAX);
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

static hsort_status pairs_workspace(struct engine *base, const struct engine_pairs *pairs, size_t *bytes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    return with_pair_types(pairs, [&](auto key, auto value, auto) {
        typedef decltype(key) K;
        typedef decltype(value) V;
        if constexpr (has_levels<K, V>) {
            if (goes_by_levels(engine, pairs)) {
                *bytes = lay_out_pairs<K, V>(NULL, pairs).bytes;
                return HSORT_OK;
            }
        }
        if constexpr (sizeof(V) <= sizeof(K)) {
            struct onesweep_map<K, V> map = {
            };
            TRY(lay_out_onesweep(engine, NULL, pairs, &map));
            *bytes = map.bytes;
            return HSORT_OK;
        }
        return status_fail(HSORT_INTERNAL, "pairs of %d and %d bytes", (int)sizeof(K), (int)sizeof(V));
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
        if constexpr (has_levels<K, V>) {
            if (goes_by_levels(engine, pairs))
                return sort_pairs_by_levels<K, V, T>(engine, pairs, workspace);
        }
        if constexpr (sizeof(V) <= sizeof(K))
            return sort_pairs_by_onesweep<K, V, T>(engine, pairs, workspace);
        return status_fail(HSORT_INTERNAL, "pairs of %d and %d bytes", (int)sizeof(K), (int)sizeof(V));
    });
}

extern "C" const struct engine_pair_ops cuda_pair_ops = {
    .can_sort = pairs_can_sort, .workspace = pairs_workspace, .sort = pairs_sort};
