/* The MSD sort from the host: what queues a level. For the local sort (msd.cu) and for the exchange `partition`
 * (partition.cu). */
#ifndef QUEUE_LEVEL_CUH
#define QUEUE_LEVEL_CUH

#include "kernels/base/first_error.h"
#include "kernels/cuda/msd/first_level.cuh"
#include <stdlib.h>

template <typename K>
constexpr int scatter_keys_of_thread = sizeof(K) == 4   ? (int)SCATTER_KEYS_4
                                       : sizeof(K) == 8 ? (int)SCATTER_KEYS_8
                                                        : (int)SCATTER_KEYS_16;

template <typename K>
using usual_size = block_size<BLOCK_SORT_THREADS, BLOCK_SORT_KEYS,
                              sizeof(K) == 4   ? (int)BLOCK_SORT_BLOCKS_4
                              : sizeof(K) == 8 ? (int)BLOCK_SORT_BLOCKS_8
                                               : (int)BLOCK_SORT_BLOCKS_16>;
template <typename K>
using wide_size = block_size<512, sizeof(K) == 16 ? 12 : 16, sizeof(K) == 16 ? 1 : 2>;
template <typename K>
using huge_size = block_size<1024, sizeof(K) == 16 ? 10 : 18, 1>;

enum { OWN_BYTES = 4096 + 1024 }; /* of variables in shared memory, at most: of make_splits_kernel() */
static_assert(block_sort_bytes<huge_size<uint64_t>, uint64_t>() + OWN_BYTES <= MSD_ROOMY_BYTES &&
                  block_sort_bytes<sample_sort_size<uint64_t>, uint64_t>() + OWN_BYTES <= MSD_ROOMY_BYTES,
              "what rung 8 asks a GPU for");

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
static struct level_tables<K> take_level(char **next, int segments, int64_t keys) {
    struct level_tables<K> level;
    const int64_t buckets = (int64_t)segments * SPLIT_BUCKETS, runs = buckets + keys / FILL_KEYS;
    level.head = take_array<struct level_head>(next, 1);
    level.segments = take_array<struct segment>(next, segments);
    level.counts = take_array<int64_t>(next, segments);
    level.splits = take_array<struct split<K>>(next, segments);
    level.overflows = take_array<uint32_t>(next, segments);
    level.buckets = take_array<struct bucket>(next, buckets);
    level.usual = take_array<struct bucket_task<K>>(next, buckets);
    level.fuller = take_array<struct bucket_task<K>>(next, buckets);
    level.fills = take_array<struct run_of_keys>(next, runs);
    level.giants = take_array<struct run_of_keys>(next, runs);
    level.samples = take_array<K>(next, (int64_t)segments *SAMPLE_MAX<K>);
    return level;
}

/* ---- a level ------------------------------------------------------------------------------------------- */

/* What a level is given: its segments so far. */
struct level_input {
    struct segments segments;
    struct pieces pieces;
    int64_t scratch, keys; /* of the segments so far */
    uint32_t tiles;
};

static bool has_room(const struct level_input *input, int most_segments, int pieces, int64_t keys,
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
constexpr int tile_keys = SCATTER_THREADS *scatter_keys_of_thread<K>;

template <typename S, typename K>
static hsort_status allow_memory(struct cuda_engine *engine, const void *kernel, int *bytes)
{
    *bytes = block_sort_bytes<S, K>();
    return cuda_grant_shared(engine, kernel, *bytes);
}

/* Queue the scatter of all pieces. */
template <typename K>
static hsort_status queue_scatter(struct cuda_engine *engine, const struct coding &coding,
                                  const struct level_input &input, const struct level_tables<K> &level,
                                  K *scratch)
{
    constexpr int KEYS = scatter_keys_of_thread<K>, bytes = (int)sizeof(scatter_tile<K, KEYS>);
    TRY(cuda_grant_shared(engine, (const void *)scatter_kernel<K, KEYS>, bytes));
    scatter_kernel<K, KEYS><<<input.tiles, SCATTER_THREADS, bytes, engine->streams[STREAM_WORK]>>>(
        coding, input.pieces, scratch, level);
    TRY_LAUNCH("scatter");
    return HSORT_OK;
}

/* Queue the choice of each segment's split, into buckets of so many keys. */
template <typename K>
static hsort_status queue_splits(struct cuda_engine *engine, const struct coding &coding,
                                 const struct level_input &input, int linear_keys, int tree_keys,
                                 const struct level_tables<K> &level)
{
    int bytes;
    TRY((allow_memory<sample_sort_size<K>, K>(engine, (const void *)make_splits_kernel<K>, &bytes)));
    TRY_CUDA(cudaMemsetAsync(level.head, 0, offsetof(struct level_head, left_count),
                             engine->streams[STREAM_WORK]));
    const dim3 blocks(SAMPLE_MAX<K> / SPLIT_THREADS, (unsigned)input.segments.count);
    take_samples_kernel<K>
        <<<blocks, SPLIT_THREADS, 0, engine->streams[STREAM_WORK]>>>(coding, input.pieces, tree_keys, level);
    make_splits_kernel<K><<<input.segments.count, SPLIT_THREADS, bytes, engine->streams[STREAM_WORK]>>>(
        input.segments, linear_keys, tree_keys, level);
    TRY_LAUNCH("splits");
    return HSORT_OK;
}

template <typename S, typename K>
static hsort_status queue_fuller(struct cuda_engine *engine, const struct coding &coding,
                                 const struct level_tables<K> &level, int above, uint32_t first, K *scratch,
                                 K *out)
{
    int bytes;
    TRY((allow_memory<S, K>(engine, (const void *)fuller_kernel<S, K>, &bytes)));
    fuller_kernel<S>
        <<<engine->multiprocessors * S::BLOCKS, S::THREADS, bytes, engine->streams[STREAM_WORK]>>>(
            coding, scratch, out, (uint32_t)above, first, level);
    TRY_LAUNCH("fuller block sorts");
    return HSORT_OK;
}

/* Queue all of a level: sort the segments' keys into out. first: as they are loaded; last: as they are stored. */
template <typename K>
static hsort_status queue_level(struct cuda_engine *engine, const struct coding &first,
                                const struct coding &last, const struct level_input &input,
                                const struct level_tables<K> &level, K *scratch, K *out)
{
    typedef usual_size<K> usual;
    constexpr int KEYS = scatter_keys_of_thread<K>, tile_bytes = (int)sizeof(scatter_tile<K, KEYS>);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const unsigned few = (unsigned)engine->multiprocessors * SCATTER_BLOCKS;
    int bytes;
    if (input.tiles == 0)
        return HSORT_OK;
    TRY(queue_splits(engine, first, input, LINEAR_BUCKET_KEYS, TREE_BUCKET_KEYS, level));
    TRY(queue_scatter(engine, first, input, level, scratch));
    list_buckets_kernel<usual>
        <<<input.segments.count, SPLIT_BUCKETS, 0, stream>>>(huge_size<K>::CAPACITY, level);
    TRY(cuda_grant_shared(engine, (const void *)scatter_again_kernel<K, KEYS>, tile_bytes));
    scatter_again_kernel<K, KEYS>
        <<<few, SCATTER_THREADS, tile_bytes, stream>>>(first, input.pieces, input.tiles, scratch, level);
    TRY((allow_memory<usual, K>(engine, (const void *)usual_kernel<usual, K>, &bytes)));
    const int64_t buckets = min(input.keys / TREE_BUCKET_KEYS + 8 * input.segments.count,
                                (int64_t)input.segments.count * SPLIT_BUCKETS);
    usual_kernel<usual><<<(unsigned)buckets, usual::THREADS, bytes, stream>>>(last, scratch, out, level);
    TRY_LAUNCH("block sorts");
    TRY((queue_fuller<wide_size<K>>(engine, last, level, 0, (uint32_t)buckets, scratch, out)));
    TRY((queue_fuller<huge_size<K>>(engine, last, level, wide_size<K>::CAPACITY, (uint32_t)buckets, scratch,
                                    out)));
    fill_kernel<K><<<few, FILL_THREADS, 0, stream>>>(last, out, level);
    copy_giants_kernel<K><<<few, FILL_THREADS, 0, stream>>>(scratch, out, level);
    TRY_LAUNCH("runs of one value");
    return HSORT_OK;
}

/* ---- the first level ------------------------------------------------------------------------------------- */

static_assert((int)SPLIT_BUCKETS <= (int)ENGINE_SEARCH_MAX, "place_regions_kernel() tells the host of each region");

/* Queue the count of keys [count] by the split of the first level, and where its regions then begin. */
template <typename K>
static hsort_status queue_count(struct cuda_engine *engine, const struct coding &coding, const K *keys,
                                int64_t count, bool fills, const struct level_tables<K> &level,
                                struct region_counts *counts)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int64_t vectors =
        divide_up(count * (int64_t)sizeof(K), (int64_t)sizeof(uint4) * COUNT_THREADS * COUNT_VECTORS);
    *(volatile int32_t *)&engine->result->verdict = FIRST_UNKNOWN;
    TRY_CUDA(cudaMemsetAsync(counts, 0, sizeof *counts, stream));
    if (count > 0)
        count_kernel<K>
            <<<(unsigned)min(vectors, (int64_t)engine->multiprocessors), COUNT_THREADS, 0, stream>>>(
                coding, keys, count, level.splits, counts);
    place_regions_kernel<K><<<1, SPLIT_BUCKETS, 0, stream>>>(
        counts, fills, level, engine->result->less, engine->result->not_greater, &engine->result->verdict);
    TRY_LAUNCH("the count of regions");
    return HSORT_OK;
}

/* ---- what is left --------------------------------------------------------------------------------------- */

/* Buckets that levels have left for another one. */
struct left_list {
    struct left_bucket *entries; /* [count] on the host; for free() */
    uint32_t count;
};

/* Fetch the list of what the levels so far have left, and begin another: level->left is then this list, and
 * level->next_left an empty one; lists [2] are their two places. More than level->left_room: only the count is good.
 * Waits for STREAM_WORK. */
template <typename K>
static hsort_status fetch_left(struct cuda_engine *engine, struct left_bucket *const *lists,
                               struct level_tables<K> *level, struct left_list *list)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    uint32_t *count = (uint32_t *)&engine->result->cut;
    *list = {};
    TRY_CUDA(cudaMemcpyAsync(count, &level->head->left_count, sizeof *count, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    list->count = *count;
    if (list->count == 0)
        return HSORT_OK;
    TRY_CUDA(cudaMemsetAsync(&level->head->left_count, 0, sizeof *count, stream));
    const size_t bytes = min(list->count, level->left_room) * sizeof *list->entries;
    list->entries = (struct left_bucket *)malloc(bytes);
    if (!list->entries)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a list of %u buckets", list->count);
    level->left = level->next_left;
    level->next_left = level->left == lists[0] ? lists[1] : lists[0];
    return cuda_check(cudaMemcpy(list->entries, level->left, bytes, cudaMemcpyDefault),
                      "copy of a list of buckets");
}

#endif
