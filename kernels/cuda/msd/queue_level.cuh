/* The MSD sort from the host: what queues a level. For the local sort (msd.cu) and for the exchange `partition`
 * (partition.cu). */
#ifndef QUEUE_LEVEL_CUH
#define QUEUE_LEVEL_CUH

#include "kernels/base/first_error.h"
#include "kernels/cuda/msd/first_level.cuh"
#include <stdlib.h>
#include <type_traits>

template <typename K>
constexpr int scatter_keys_of_thread = sizeof(K) == 4   ? (int)SCATTER_KEYS_4
                                       : sizeof(K) == 8 ? (int)SCATTER_KEYS_8
                                                        : (int)SCATTER_KEYS_16;

template <typename K>
using usual_size =
    typename std::conditional<sizeof(K) == 16,
                              block_size<BLOCK_SORT_THREADS_16, BLOCK_SORT_KEYS_16, BLOCK_SORT_BLOCKS_16>,
                              block_size<BLOCK_SORT_THREADS, BLOCK_SORT_KEYS,
                                         sizeof(K) == 4 ? (int)BLOCK_SORT_BLOCKS_4 : (int)BLOCK_SORT_BLOCKS_8>>::type;
/* How a level works: keys of a thread in a tile of its scatter, and the size of its block sorts. */
template <int TILE_KEYS, typename USUAL>
struct level_sizes {
    static constexpr int KEYS = TILE_KEYS, TILE = SCATTER_THREADS * TILE_KEYS;
    typedef USUAL usual;
};
template <typename K>
using batch_sizes = level_sizes<scatter_keys_of_thread<K>, usual_size<K>>;

template <typename K>
using huge_size = block_size<1024, sizeof(K) == 16 ? 10 : 18, 1>;

/* Of variables in shared memory, at most. */
enum { REST_OWN_BYTES = 2 << 10, SPLITS_OWN_BYTES = 24 << 10 };
template <typename K>
constexpr bool is_roomy_enough = block_sort_bytes<huge_size<K>, K>() + REST_OWN_BYTES <= MSD_ROOMY_BYTES &&
                                 block_sort_bytes<sample_sort_size<K>, K>() + SPLITS_OWN_BYTES <=
                                     MSD_ROOMY_BYTES;
static_assert(is_roomy_enough<uint64_t> && is_roomy_enough<uint128>, "what rung 8 asks a GPU for");

/* ---- tables -------------------------------------------------------------------------------------------- */

template <typename T>
static T *take_array(char **next, int64_t count)
{
    T *taken = (T *)*next;
    *next += divide_up(count * (int64_t)sizeof(T), 256) * 256;
    return taken;
}

/* Tables for `segments` that have `keys` together, from *next on, which is moved behind them; from NULL on, only to learn how
 * many bytes they take. */
template <typename K>
static struct level_tables<K> take_level(char **next, int segments, int64_t keys, int run_keys) {
    struct level_tables<K> level = {
    };
    const int64_t buckets = (int64_t)segments * SPLIT_BUCKETS;
    level.head = take_array<struct level_head>(next, 1);
    level.left_count = take_array<uint32_t>(next, 1);
    level.segments = take_array<struct segment>(next, segments);
    level.counts = take_array<int64_t>(next, segments);
    level.splits = take_array<struct split<K>>(next, segments);
    level.overflows = take_array<uint32_t>(next, segments);
    level.buckets = take_array<struct bucket>(next, buckets);
    level.usual = take_array<struct bucket_task<K>>(next, buckets);
    level.rest = take_array<struct rest_task>(next, buckets + keys / run_keys);
    level.samples = take_array<K>(next, (int64_t)segments *SAMPLE_MAX<K>);
    level.sorted = take_array<K>(next, SAMPLE_MAX<K>);
    return level;
}

/* ---- plans --------------------------------------------------------------------------------------------- */

/* Of a level that has others beside it. */
static inline struct level_plan
plan_of_batch()
{
    return {LINEAR_BUCKET_KEYS, TREE_BUCKET_KEYS, SAMPLE_OF_BUCKET, INT_MAX, FILL_KEYS,
            false, false, SPLIT_BUCKETS};
}

/* Of the first level: so many keys in a region. waits: for the split, so that many blocks make it, of a smaller sample. */
static struct level_plan plan_of_regions(int64_t linear_keys, int64_t tree_keys, bool waits)
{
    return {(int)min(linear_keys, (int64_t)INT32_MAX), (int)min(tree_keys, (int64_t)INT32_MAX),
            SAMPLE_OF_BUCKET, waits ? (int)RANKED_SAMPLE : INT_MAX, FILL_KEYS, false, waits,
            SPLIT_BUCKETS};
}

/* ---- a level ------------------------------------------------------------------------------------------- */

/* What a level is given: its segments so far. */
struct level_input {
    struct segments segments;
    struct pieces pieces;
    int64_t scratch, keys; /* of the segments so far */
    uint32_t tiles;
};

static inline bool has_room(const struct level_input *input, int most_segments, int pieces, int64_t keys,
                     int64_t scratch_room)
{
    return input->segments.count < most_segments && input->pieces.count + pieces <= LEVEL_PIECES &&
           input->scratch + scratch_keys(keys) <= scratch_room;
}

/* Add a segment of `keys` keys; its pieces follow. */
static void add_segment(struct level_input *input, int64_t keys, int64_t out_first, int left)
{
    input->segments.segment[input->segments.count++] = {(uint64_t)input->scratch, (uint64_t)out_first, left};
    input->scratch += scratch_keys(keys);
    input->keys += keys;
}

static void add_piece(struct level_input *input, const void *keys, int64_t count, int tile)
{
    input->pieces.piece[input->pieces.count++] = {keys, count, input->segments.count - 1, input->tiles};
    input->tiles += (uint32_t)divide_up(count, tile);
}

template <typename K>
constexpr int tile_keys = batch_sizes<K>::TILE;

/* Queue the scatter of all pieces. */
template <typename K, int KEYS = scatter_keys_of_thread<K>, typename FIRST>
static hsort_status queue_scatter(struct cuda_engine *engine, const FIRST &coding,
                                  const struct level_input &input, const struct level_tables<K> &level,
                                  K *scratch)
{
    return launch_behind(engine, "scatter", scatter_kernel<K, KEYS, FIRST>, input.tiles, SCATTER_THREADS,
                         sizeof(scatter_tile<K, KEYS>), coding, input.pieces, scratch, level);
}

/* Queue the choice of each segment's split. */
template <typename K, typename FIRST>
static hsort_status queue_splits(struct cuda_engine *engine, const FIRST &coding,
                                 const struct level_input &input, const struct level_plan &plan,
                                 const struct level_tables<K> &level)
{
    const int most = sample_size<K>(input.keys, plan); // of any segment
    const dim3 blocks((unsigned)divide_up(max(most, 1), SAMPLE_THREADS), (unsigned)input.segments.count);
    TRY(launch_behind(engine, "samples", take_samples_kernel<K, FIRST>, blocks, SAMPLE_THREADS, 0, coding,
                      input.pieces, plan, level));
    // the first one does something else. One wave: a multiprocessor has room for one
    const unsigned rankers =
        plan.has_one_segment ? 1 + (unsigned)min((int)divide_up(most, RANKED), engine->multiprocessors - 1)
                             : 1;
    return launch_behind(engine, "splits", make_splits_kernel<K>,
                         dim3((unsigned)input.segments.count, rankers), SPLIT_THREADS,
                         block_sort_bytes<sample_sort_size<K>, K>(), input.segments, plan, level);
}

/* Queue the tasks that are not usual, and usual ones from `first` on. */
template <typename K, typename LAST, typename T>
static hsort_status queue_rest(struct cuda_engine *engine, const LAST &last,
                               const struct level_tables<K> &level, uint32_t first, K *scratch, T *out)
{
    typedef huge_size<K> huge;
    return launch_behind(engine, "rest of the buckets", rest_kernel<huge, K, LAST, T>,
                         engine->multiprocessors, huge::THREADS, block_sort_bytes<huge, K>(), last, scratch,
                         out, first, level);
}

/* Queue all of a level: sort the segments' keys into out. first: as they are loaded; last: as they are stored (coding.cuh).
 * The pieces are cut into tiles of SIZES. */
template <typename K, typename SIZES = batch_sizes<K>, typename LAST, typename T>
static hsort_status queue_level(struct cuda_engine *engine, const struct coding &first, const LAST &last,
                                const struct level_input &input, const struct level_plan &plan,
                                const struct level_tables<K> &level, K *scratch, T *out)
{
    typedef typename SIZES::usual usual;
    constexpr int KEYS = SIZES::KEYS;
    const int segments = input.segments.count;
    if (input.tiles == 0)
        return HSORT_OK;
    TRY(queue_splits(engine, first, input, plan, level));
    TRY((queue_scatter<K, KEYS>(engine, first, input, level, scratch)));
    TRY(launch_behind(engine, "list of the buckets", list_buckets_kernel<usual, K>, segments, SPLIT_BUCKETS,
                      0, huge_size<K>::CAPACITY, plan.run_keys, level));
    TRY(launch_behind(engine, "second scatter", scatter_again_kernel<K, KEYS>,
                      engine->multiprocessors * SCATTER_BLOCKS, SCATTER_THREADS,
                      sizeof(scatter_tile<K, KEYS>), first, input.pieces, input.tiles, scratch, level));
    // more than a split has, but for those of what was left; the rest takes what is beyond
    const int64_t buckets =
        min(input.keys / plan.tree_keys + 8 * segments, (int64_t)segments * SPLIT_BUCKETS);
    TRY(queue_rest(engine, last, level, (uint32_t)buckets, scratch, out));
    return launch_behind(engine, "block sorts", usual_kernel<usual, K, LAST, T>, (unsigned)buckets,
                         usual::THREADS, block_sort_bytes<usual, K>(), last, scratch, out, level,
                         &engine->result->left, ++engine->levels);
}

/* ---- the first level ------------------------------------------------------------------------------------- */

static_assert((int)SPLIT_BUCKETS <= (int)ENGINE_SEARCH_MAX,
              "place_regions_kernel() tells the host of each region");

/* Queue the count of keys [count] by the split of the first level, and where its regions then begin; counts: zero. */
template <typename K, typename FIRST, typename S>
static hsort_status queue_count(struct cuda_engine *engine, const FIRST &coding, const S *keys, int64_t count,
                                bool fills, const struct level_tables<K> &level, struct region_counts *counts)
{
    const int64_t vectors =
        divide_up(count * (int64_t)sizeof(S), (int64_t)sizeof(uint4) * COUNT_THREADS * COUNT_VECTORS);
    struct cuda_result *result = engine->result;
    *(volatile int32_t *)&result->verdict = FIRST_UNKNOWN;
    if (count > 0)
        TRY(launch_behind(engine, "count of regions", count_kernel<K, FIRST, S>,
                          (unsigned)min(vectors, (int64_t)engine->multiprocessors), COUNT_THREADS, 0, coding,
                          keys, count, level.splits, counts, level.found));
    return launch_behind(engine, "places of regions", place_regions_kernel<K>, 1, SPLIT_BUCKETS, 0, counts,
                         fills, level, result->less, result->not_greater, &result->verdict);
}

/* ---- what is left --------------------------------------------------------------------------------------- */

/* Buckets that levels have left for another one. */
struct left_list {
    struct left_bucket *entries; /* [count] on the host; for free() */
    uint32_t count;
};

/* Fetch the list of what the levels so far have left, `count` buckets, and begin another: level->left is then this
 * list, and level->next_left an empty one; lists [2] are their two places. More than level->left_room: only the count
 * is good. Waits for STREAM_WORK if there are any. */
template <typename K>
static hsort_status fetch_left(struct cuda_engine *engine, struct left_bucket *const *lists,
                               struct level_tables<K> *level, uint32_t count, struct left_list *list)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    *list = {NULL, count};
    if (count == 0)
        return HSORT_OK;
    const size_t bytes = min(count, level->left_room) * sizeof *list->entries;
    list->entries = (struct left_bucket *)malloc(bytes);
    if (!list->entries)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a list of %u buckets", count);
    level->left = level->next_left;
    level->next_left = level->left == lists[0] ? lists[1] : lists[0];
    TRY_CUDA(cudaMemcpyAsync(list->entries, level->left, bytes, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaMemsetAsync(level->left_count, 0, sizeof *level->left_count, stream));
    return cuda_check(cudaStreamSynchronize(stream), "copy of a list of buckets");
}

#endif
