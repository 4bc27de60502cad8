/* One level of an MSD sort: segments are split into buckets, and the buckets sorted.
 *
 *     pieces     --- take_samples, make_splits --->   a split of each segment, and room for each bucket
 *     pieces     --- scatter --->   scratch           no count: a bucket has room to spare
 *     buckets    --- list_buckets --->   tasks        and if one has asked for more: scatter_again
 *     scratch    --- usual, rest --->   out           the tasks (buckets.cuh)
 *
 * The keys of a segment come in pieces, which may lie anywhere, or in the extents of a first level (extents.cuh). The segment's buckets
 * get room in scratch by their share of the sample, with as much to spare as a sample of that size may be wrong by. If a bucket asks for
 * more, the keys that find no room go nowhere. But the bucket's cursor has counted all of its keys, so the segment is scattered again
 * with borders that fit. That saves a pass that would only count. A segment of 4 buckets with 10 keys, room for 5 each:
 *
 *     [ a a . . . | b b b b b | c . . . . | d . . . . ]        as it is first tried: the sixth b goes nowhere
 *     [ a a | b b b b b b | c | d . . . . . . . . . . ]        once b has asked for 6
 *
 * What then becomes of a bucket:
 *
 *     usual     a block sorts it
 *     the rest  fuller      a larger block sorts it
 *               one value   it is written anew, from its number of keys
 *               giant       no block has room for it: it is copied out as it is and left on a list, to be a segment
 *                           of a level of its own (msd.cu)
 *
 * A level is seven kernels, which follow each other closely (launch.cuh). The next level has the same tables: it waits for this one
 * before it zeroes what it counts. */
#ifndef LEVEL_CUH
#define LEVEL_CUH

#include "kernels/base/sample_place.h"
#include "kernels/cuda/msd/level_tables.cuh"
#include "kernels/cuda/msd/ranks.cuh"
#include "kernels/cuda/msd/scatter.cuh"
#include <type_traits>

/* ---- how keys will be split ---------------------------------------------------------------------------- */

/* How many buckets of bucket_keys each a segment of `count` keys should have; and how large its sample is. */
static __host__ __device__ int wanted_buckets(int64_t count, int bucket_keys, int most)
{
    const int64_t buckets = (count + bucket_keys - 1) / bucket_keys;
    return (int)(buckets < most ? buckets : most - 1);
}

template <typename K>
static __host__ __device__ int sample_size(int64_t count, const struct level_plan &plan)
{
    const int wanted = wanted_buckets(count, plan.tree_keys, plan.most_buckets) * plan.sample_of_bucket;
    const int size = wanted > SPLIT_THREADS ? wanted : (int)SPLIT_THREADS;
    const int limit = plan.sample_most < SAMPLE_MAX<K> ? plan.sample_most : SAMPLE_MAX<K>;
    const int most = count < limit ? (int)count : limit; // no key is seen twice
    return size < most ? size : most;
}

/* Into how many parts of its exact range a segment that was left is cut. They are so many that one level mostly suffices, because the
 * keys may crowd. Few keys get few parts: a block for a handful of keys takes as long as a block for hundreds. */
static inline __host__ __device__ int parts_of_left(int64_t count, int most)
{
    const int64_t wanted = count / LEFT_KEYS_OF_PART, least = LEFT_PARTS_MIN,
                  parts = wanted > least ? wanted : least;
    return (int)(parts < most ? parts : most);
}

/* The upper half of a product. */
static inline __host__ __device__ uint64_t upper_product(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return __umul64hi(a, b);
#else
    return (uint64_t)((unsigned __int128)a * b >> 64);
#endif
}

/* Where sample i of `seen` is drawn from `count` keys: somewhere in the i-th of as many equal parts (sample_place.h). */
static inline __host__ __device__ int64_t sample_position(int i, int seen, int64_t count)
{
    const uint64_t step = ~UINT64_C(0) / (uint64_t)seen; // of 2^64, which stands for `count`
    const uint64_t fraction = upper_product(sample_jitter((uint64_t)i), step);
    return (int64_t)upper_product((uint64_t)i * step + fraction, (uint64_t)count);
}

/* Where tile `tile` of a piece begins. */
template <typename S, typename K>
static __device__ const S *tile_of_piece(const struct piece &piece, uint32_t tile, int tile_keys,
                                         const struct extents<K> &extents)
{
    if constexpr (std::is_same<S, K>::value) {
        if (extents.rows) {
            const uint32_t extent = tile >> extents.log_tiles,
                           number = ((const uint32_t *)piece.keys)[extent] - 1;
            return begin_of_extent(extents, number) + (tile - (extent << extents.log_tiles)) * tile_keys;
        }
    }
    return (const S *)piece.keys + (int64_t)tile * tile_keys;
}

/* Where key `at` of a piece lies. */
template <typename S, typename K>
static __device__ const S *key_of_piece(const struct piece &piece, int64_t at,
                                        const struct extents<K> &extents)
{
    if (!extents.rows)
        return (const S *)piece.keys + at;
    const uint32_t tile =
        at >> 32 == 0 ? (uint32_t)at / (uint32_t)extents.tile : (uint32_t)(at / extents.tile);
    return tile_of_piece<S>(piece, tile, extents.tile, extents) + (at - (int64_t)tile * extents.tile);
}

/* Where key `at` of a segment lies, counted through all its pieces, of which `piece` is the first. */
template <typename S, typename K>
static __device__ const S *key_of_segment(const struct pieces &pieces, int piece, int64_t at,
                                          const struct extents<K> &extents)
{
    while (at >= pieces.piece[piece].count)
        at -= pieces.piece[piece++].count;
    return key_of_piece<S>(pieces.piece[piece], at, extents);
}

/* The first piece of a segment. */
static __device__ int first_piece_of(const struct pieces &pieces, int segment)
{
    int piece = 0;
    for (int step = 64; step > 0; step /= 2) {
        if (piece + step <= pieces.count && pieces.piece[piece + step - 1].segment < segment)
            piece += step;
    }
    return piece;
}

static __device__ int64_t keys_of_segment(const struct pieces &pieces, int segment, int piece)
{
    int64_t keys = 0;
    for (; piece < pieces.count && pieces.piece[piece].segment == segment; piece++)
        keys += pieces.piece[piece].count;
    return keys;
}

/* Zero what the level counts. One block of each segment calls it. */
template <typename K>
static __device__ void zero_counts(const struct level_tables<K> &level)
{
    if (threadIdx.x == 0)
        level.overflows[blockIdx.y] = 0;
    if (blockIdx.y > 0)
        return;
    if (threadIdx.x == 0) {
        *level.head = {};
        if (level.zeroes_left_count)
            *level.left_count = 0;
    }
    uint32_t *words = (uint32_t *)level.region_counts;
    for (int i = threadIdx.x; words && i < (int)(sizeof *level.region_counts / sizeof *words);
         i += SAMPLE_THREADS)
        words[i] = 0;
}

/* Take the sample of each segment, in sorted runs if it is the only segment, and note how many keys the segment has. Row y of the grid
 * is for segment y. This is a kernel of its own because one multiprocessor would take long to fetch keys from so many places. */
template <typename K, typename FIRST>
static __global__ void __launch_bounds__(SAMPLE_THREADS)
    take_samples_kernel(const __grid_constant__ FIRST coding, const __grid_constant__ struct pieces pieces,
                        struct level_plan plan, struct level_tables<K> level)
{
    typedef typename loaded_as<K, FIRST>::type S;
    const int piece = first_piece_of(pieces, blockIdx.y);
    const int64_t count = keys_of_segment(pieces, blockIdx.y, piece);
    const int seen = sample_size<K>(count, plan);
    const int i = blockIdx.x * SAMPLE_THREADS + threadIdx.x;
    const int64_t position = i < seen ? sample_position(i, seen, count) : 0;
    __shared__ alignas(sizeof(uint4)) K others[SAMPLE_THREADS];
    K key = BEHIND_ALL<K>; // for keys that do not exist: they stay behind all others
    int place = i;
    wait_for_kernels_before();
    if (i < seen)
        key = load_code<K>(coding, key_of_segment<S>(pieces, piece, position, level.extents));
    if (plan.has_one_segment) // the same for all
        place = i / RUN_OF_SAMPLE * RUN_OF_SAMPLE + place_in_run<SAMPLE_THREADS>(key, others);
    if (i < seen)
        level.samples[(int64_t)blockIdx.y * SAMPLE_MAX<K> + place] = key;
    if (i == 0)
        level.counts[blockIdx.y] = count;
    if (blockIdx.x == 0)
        zero_counts(level);
}

/* ---- a split of a sample ------------------------------------------------------------------------------- */

/* What the threads of a block that makes a split share. */
template <typename K>
struct split_work {
    uint32_t counts[SPLIT_BUCKETS]; /* of the sample in each bucket */
    struct split_head<K> head;      /* a copy of the split's */
    bool any_moves; /* of a tree: some of the sample is in a bucket that is not of one value */
    K *splitters;                   /* [SPLIT_BUCKETS] a copy of the split's */
};

/* Where splitters [SPLIT_BUCKETS] lie in dynamic shared memory: behind the sorted sample. */
template <typename S, typename K>
static __device__ K *splitters_in_shared()
{
    static_assert((S::CAPACITY + SPLIT_BUCKETS) * (int)sizeof(K) <= block_sort_bytes<S, K>(),
                  "no more memory than a block sort has");
    return (K *)block_sort_shared() + S::CAPACITY;
}

/* Is a sample [seen], IN_RUNS or in any order, spread evenly? The split then has `buckets` parts. ROWS: of SPLIT_THREADS keys, enough
 * for the sample. Every thread of the block calls it. */
template <int ROWS, bool IN_RUNS, typename K>
static __device__ bool split_evenly(const K *sample, int seen, int buckets, struct split<K> *split,
                                    struct split_work<K> &work)
{
    __shared__ K lows[WARP], highs[WARP];
    const int own = (seen - (int)threadIdx.x + SPLIT_THREADS - 1) / SPLIT_THREADS;
    K keys[ROWS], low = BEHIND_ALL<K>, high = 0;
#pragma unroll
    for (int k = 0; k < ROWS; k++)
        keys[k] = k < own ? sample[threadIdx.x + k * SPLIT_THREADS] : 0;
    if (IN_RUNS) {
        extremes_of_runs(sample, seen, low, high);
    } else {
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
            if (k * SPLIT_THREADS < seen && k < own) {
                low = smaller_key(low, keys[k]);
                high = larger_key(high, keys[k]);
            }
        }
        extremes_to_first_warp(low, high, lows, highs);
    }
    if (threadIdx.x == 0)
        split->split_head<K>::operator=(work.head = cut_evenly(low, high, buckets));
    __syncthreads();
    return work.head.buckets == buckets && is_even(work.head, keys, own, seen, work.counts);
}

/* Split by a tree for `wanted` buckets, or some more for single values, from a sample [seen] that is in order. Every thread of
 * the block calls it. */
template <typename K>
static __device__ void split_by_tree(const K *in_order, int seen, int wanted, int most,
                                     struct split<K> *split, struct split_work<K> &work)
{
    K *sorted = (K *)block_sort_shared(); // where it is searched often
    for (int i = threadIdx.x; i < seen; i += SPLIT_THREADS)
        sorted[i] = in_order[i];
    __syncthreads();
    const int buckets = grow_tree(sorted, seen, wanted, most, work.splitters, work.counts, split);
    const int bucket = threadIdx.x;
    int end = seen;
    if (bucket < buckets - 1)
        work.counts[bucket] = end = first_from(sorted, (int)work.counts[bucket], work.splitters[bucket]);
    __syncthreads();
    const int begin = 0 < bucket && bucket < buckets ? (int)work.counts[bucket - 1] : 0;
    K value;
    const bool moves =
        bucket < buckets && end > begin &&
        !is_one_value({false, buckets}, bucket, ends_of_bucket(work.splitters, bucket), &value);
    const bool any_moves = __syncthreads_or(moves);
    if (bucket < buckets)
        work.counts[bucket] = end - begin;
    if (threadIdx.x == 0) {
        work.head = {false, buckets}; // all that is asked of it from here on
        work.any_moves = any_moves;
    }
    __syncthreads();
}

/* Sort a sample [seen] where it is, by a block sort of size S; its range is that of the head. Every thread of the block calls
 * it. */
template <typename S, typename K>
static __device__ void sort_sample(K *sample, int seen, const struct split_head<K> &head)
{
    const struct coding as_it_is = {};
    block_sort<S>(as_it_is, sample, sample, seen,
                  parts_of_range<log2_of(S::BINS)>(head.lowest, head.highest));
    __syncthreads();
}

/* Room in scratch for a bucket that has `of_sample` keys of a sample of one key in `share`. */
static __device__ float room_of_bucket(uint32_t of_sample, bool is_linear, bool is_alone, float mean,
                                       float share)
{
    const float most = share * ((float)of_sample + 4.4f * sqrtf((float)of_sample) + 6);
    if (!is_linear)
        return ceilf(most);
    // parts of equal width: is_even() has passed, which says more than the few keys of a sample in a part
    return ceilf(min(max(most, 1.2f * mean + 64), (is_alone ? 2.4f : 1.6f) * mean + 64));
}

/* Keys of scratch for the buckets of a segment of `count` keys. A level alone has a smaller sample, which is wrong by more; if its keys
 * are few, they get as much scratch as that takes. */
static __host__ __device__ int64_t scratch_keys(int64_t count, bool is_alone = false)
{
    const int64_t more = 2 * count < ALONE_MORE_ROOM ? 2 * count : (int64_t)ALONE_MORE_ROOM;
    return (is_alone ? 3 * count + more : 2 * count - count / 8) + 4096;
}

/* Give the buckets of a segment room in scratch, which has scratch_keys() for the segment's keys [count]. counts: of the sample [seen]
 * in each bucket. Every thread of the block calls it. */
template <typename K>
static __device__ void share_out_room(uint64_t scratch_first, bool is_alone,
                                      const struct split_head<K> &split, const K *splitters, int64_t count,
                                      int seen, const uint32_t *counts, struct bucket_line *buckets)
{
    __shared__ uint64_t sums[2][SPLIT_THREADS / WARP];
    const int bucket = threadIdx.x;
    const bool exists = bucket < split.buckets;
    K value;
    const bool is_one = exists && is_one_value(split, bucket, ends_of_bucket(splitters, bucket), &value);
    const float mean = (float)count / split.buckets, share = (float)count / seen;
    uint64_t room = 0, all;
    if (exists && !is_one)
        room = (uint64_t)room_of_bucket(counts[bucket], split.is_linear, is_alone, mean, share);
    uint64_t before = block_sum_of_warps(room, sums[0], &all);
    const uint64_t most = (uint64_t)scratch_keys(count, is_alone);
    if (all > most) { // rounded down, so that all of it fits
        room = (uint64_t)((float)room * ((float)most / (float)all * 0.999f));
        before = block_sum_of_warps(room, sums[1], &all);
    }
    const uint64_t begin = scratch_first + before;
    set_bucket(buckets, bucket, {begin, begin, is_one ? 0 : begin + room});
}

template <typename K>
static __device__ K key_of_words(const uint64_t (&words)[2])
{
    if constexpr (sizeof(K) <= sizeof(uint64_t))
        return (K)words[0];
    else
        return (K)words[1] << 64 | words[0];
}

/* Make the split and the buckets of a segment whose keys are all `value`. */
template <typename K>
static __device__ void one_value_split(K value, const struct segment &segment, struct split<K> *split,
                                       struct bucket_line *buckets)
{
    const int i = threadIdx.x;
    if (i < 3)
        set_bucket(buckets, i, {segment.scratch_first, segment.scratch_first, 0});
    if (i < 2)
        split->splitters[i] = value == BEHIND_ALL<K> ? value : value + i;
    if (i > 0)
        return;
    split->is_linear = split->is_short = false;
    split->tree[0] = split->tree[2] = value;
    split->tree[1] = split->tree[3] = value == BEHIND_ALL<K> ? value : value + 1;
    split->buckets = value == BEHIND_ALL<K> ? 2 : 3;
    split->levels = 2;
}

/* Does a sample that is in runs go up and down, as a whole? Every thread of the block calls it; the first thread has the answer. */
template <typename K>
static __device__ bool is_mixed(const K *runs, int seen)
{
    bool ascends = false, descends = false;
    for (int next = (threadIdx.x + 1) * RUN_OF_SAMPLE; next < seen; next += SPLIT_THREADS * RUN_OF_SAMPLE) {
        const K *before = runs + next - RUN_OF_SAMPLE;
        ascends |= *before < runs[min(next + RUN_OF_SAMPLE, seen) - 1];
        descends |= runs[next - 1] > runs[next];
    }
    ascends = __syncthreads_or(ascends);
    return __syncthreads_or(descends) && ascends;
}

/* For an only segment: its first block looks whether the sample [seen], which is in runs, is spread evenly, while the other blocks sort
 * it. Returns whether this block has a tree to grow: the last block has, if the sample is not even. *even is true only in the first
 * block, if the sample is even. Every thread calls it. */
template <typename S, typename K>
static __device__ bool is_left_to_grow(int seen, int linear_buckets, const struct level_tables<K> &level,
                                       struct split_work<K> &work, bool *even)
{
    __shared__ bool is_last;
    K *runs = (K *)block_sort_shared();
    if (blockIdx.y == 0 && level.region_counts) {
        const bool mixed = is_mixed(level.samples, seen);
        if (threadIdx.x == 0)
            level.head->is_mixed = mixed;
    }
    *even = blockIdx.y == 0 &&
            split_evenly<RANKED_SAMPLE / SPLIT_THREADS, true>(level.samples, seen, linear_buckets, level.splits, work);
    if (*even) // this block does not arrive, so no block is the last
        return false;
    if (blockIdx.y > 0) {
        load_runs<SPLIT_THREADS, RANKED_SAMPLE / SPLIT_THREADS>(level.samples, seen, runs);
        __syncthreads();
        for (int group = blockIdx.y - 1; group * RANKED < seen; group += gridDim.y - 1) {
            place_by_runs<SPLIT_THREADS>(runs, seen, group, level.sorted);
            __syncthreads();
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) { // for all of the block: the barriers order what its other threads have written, and will read
        __threadfence();
        is_last = atomicAdd(&level.head->arrived, 1u) == gridDim.y - 1;
        __threadfence();
    }
    __syncthreads();
    return is_last;
}

/* Make the splits: one block for each segment, or several for an only segment. That one has all `keys`, so it need not wait for a count.
 * S: the size of the block sort of a sample, which has at most S::CAPACITY keys. */
template <typename S, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    make_splits_kernel(const __grid_constant__ struct segments segments, struct level_plan plan, int64_t keys,
                       struct level_tables<K> level)
{
    __shared__ struct split_work<K> work;
    const struct segment &segment = segments.segment[blockIdx.x];
    struct split<K> *split = &level.splits[blockIdx.x];
    struct bucket_line *buckets = buckets_of_segment(level, blockIdx.x);
    K *sample = level.samples + (int64_t)blockIdx.x * SAMPLE_MAX<K>;
    int seen = 1;
    wait_for_kernels_before();
    const int64_t count = gridDim.x == 1 ? keys : level.counts[blockIdx.x];
    static_assert(SPLIT_THREADS == SPLIT_BUCKETS && S::THREADS == SPLIT_THREADS, "a thread for each bucket");
    if (blockIdx.y == 0) {
        if (threadIdx.x == 0)
            level.segments[blockIdx.x] = segment;
        // later kernels load all of them at once, before they know which ones exist
        split->splitters[threadIdx.x] = 0;
        set_bucket(buckets, threadIdx.x, {});
    }
    if (count == 0) {
        if (threadIdx.x == 0)
            split->buckets = 0;
        return;
    }
    if (threadIdx.x == 0)
        work.splitters = splitters_in_shared<S, K>();
    __syncthreads();
    if (segment.left < 0) {
        seen = sample_size<K>(count, plan);
        const int linear = wanted_buckets(count, plan.linear_keys, plan.most_buckets),
                  tree = wanted_buckets(count, plan.tree_keys, plan.most_buckets);
        bool even;
        if (gridDim.y > 1) {
            const bool grows = is_left_to_grow<S>(seen, linear, level, work, &even);
            if (!even && !grows)
                return;
            sample = level.sorted;
        } else {
            even = split_evenly<S::KEYS, false>(sample, seen, linear, split, work);
            if (!even)
                sort_sample<S>(sample, seen, work.head);
        }
        if (!even) {
            split_by_tree(sample, seen, tree, plan.most_buckets, split, work);
            if (level.region_counts && !work.any_moves && threadIdx.x == 0)
                level.head->is_mixed = false;
        }
    } else { // a sample has misjudged it: parts of its exact range, which bounds the number of levels
        const K low = key_of_words<K>(level.left[segment.left].lowest),
                high = key_of_words<K>(level.left[segment.left].highest);
        if (blockIdx.y > 0)
            return;
        work.counts[threadIdx.x] = 0;
        if (low == high)
            return one_value_split(low, segment, split, buckets);
        if (threadIdx.x == 0)
            split->split_head<K>::operator=(
                work.head = cut_evenly(low, high, parts_of_left(count, plan.most_buckets)));
        __syncthreads();
    }
    share_out_room(segment.scratch_first, plan.is_alone, work.head, work.splitters, count, seen, work.counts,
                   buckets);
}

/* ---- scatter ------------------------------------------------------------------------------------------- */

/* Room in scratch for the keys of a bucket, from its cursor. If there is not enough, the keys go nowhere. */
template <typename K>
struct goals_with_room {
    K *scratch;
    struct bucket_line *buckets;
    uint32_t *overflow, *any_overflow;

    typedef uint64_t answer; /* the cursor's. A limit beside it would take registers that large sorts lack */

    __device__ answer ask(int number, uint32_t keys) const
    {
        return atomicAdd(
            (unsigned long long *)&buckets[number / BUCKETS_OF_LINE].cursors[number % BUCKETS_OF_LINE],
            (unsigned long long)keys);
    }

    __device__ K *goal_of(int number, uint32_t keys, answer place) const
    {
        const uint64_t limit = buckets[number / BUCKETS_OF_LINE].limits[number % BUCKETS_OF_LINE];
        if (place + keys <= limit)
            return scratch + place;
        if (limit > 0)
            *overflow = *any_overflow = 1;
        return NULL;
    }
};

/* The piece that has a tile: the last one that begins at this tile or before. Empty pieces have no tiles. */
static __device__ const struct piece &piece_of_tile(const struct pieces &pieces, uint32_t tile)
{
    int piece = 0;
    for (int step = 64; step > 0; step /= 2) {
        if (piece + step < pieces.count && pieces.piece[piece + step].first_tile <= tile)
            piece += step;
    }
    return pieces.piece[piece];
}
static_assert(LEVEL_PIECES <= 128, "steps of the search for a piece");

template <int KEYS, typename K, typename FIRST>
static __device__ void scatter_piece(const FIRST &coding, const struct piece &piece, uint32_t tile,
                                     K *scratch, const struct level_tables<K> &level,
                                     struct scatter_words<K> &words)
{
    typedef typename loaded_as<K, FIRST>::type S;
    const int64_t first = (int64_t)(tile - piece.first_tile) * (SCATTER_THREADS * KEYS);
    const int valid = (int)min((int64_t)(SCATTER_THREADS * KEYS), piece.count - first);
    const goals_with_room<K> goals = {scratch, buckets_of_segment(level, piece.segment),
                                      &level.overflows[piece.segment], &level.head->any_overflow};
    const struct split<K> &split = level.splits[piece.segment];
    const uint8_t *found = level.found && is_worth_noting<K>(split)
                               ? found_at(level.found, (const S *)piece.keys, piece.count, first)
                               : NULL;
    const S *from = tile_of_piece<S>(piece, tile - piece.first_tile, SCATTER_THREADS * KEYS, level.extents);
    scatter<KEYS>(coding, from, valid, split, found, goals, words);
}

/* Scatter all tiles, one block for each. beside: run beside the block sorts of the level before, which touch nothing of this level's.
 * The last block then waits for them in the end, as that of usual_kernel() waits for rest_kernel(). */
template <typename K, int KEYS, typename FIRST>
static __global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS)
    scatter_kernel(const __grid_constant__ FIRST coding, const __grid_constant__ struct pieces pieces,
                   K *scratch, struct level_tables<K> level, bool beside)
{
    __shared__ struct scatter_words<K> words;
    if (beside)
        let_next_be_sent();
    else
        wait_for_kernels_before();
    if (level.region_counts && level.head->is_done) // other levels need not wait for this word
        return;
    scatter_piece<KEYS>(coding, piece_of_tile(pieces, blockIdx.x), blockIdx.x, scratch, level, words);
    if (beside && blockIdx.x == gridDim.x - 1)
        wait_for_kernels_before();
}

/* Scatter the segments that have overflowed once more; by few blocks, because there rarely are any. */
template <typename K, int KEYS>
static __global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS)
    scatter_again_kernel(const __grid_constant__ struct coding coding,
                         const __grid_constant__ struct pieces pieces, uint32_t tiles, K *scratch,
                         struct level_tables<K> level)
{
    __shared__ struct scatter_words<K> words;
    wait_for_kernels_before();
    if (!level.head->any_overflow)
        return;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const struct piece &piece = piece_of_tile(pieces, tile);
        if (level.overflows[piece.segment])
            scatter_piece<KEYS>(coding, piece, tile, scratch, level, words);
        __syncthreads(); // before the next tile takes the memory
    }
}

#endif
