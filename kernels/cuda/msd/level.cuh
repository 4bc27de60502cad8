/* One level of an MSD sort: segments are split into buckets, and the buckets sorted.
 *
 *     pieces     --- make_splits: look at a sample of each segment --->   a split and room for each bucket
 *     pieces     --- scatter --->   scratch                               no count: a bucket has room to spare
 *     scratch    --- block sorts --->   out
 *
 * Keys of a segment come in pieces, which may lie anywhere. Its buckets get room in scratch by their share of the
 * sample, with as much to spare as a sample of that size may err. Where a bucket asks for more, what it cannot have goes nowhere; but its cursor
 * has counted all, so the segment is scattered again with borders that fit. That spares a pass that would only
 * count. A segment of 4 buckets with 10 keys, room for 5 each:
 *
 *     [ a a . . . | b b b . . | c . . . . | d d d d . ]        as it is first tried
 *     [ a a | b b b b b b | c | d . . . . . . . . . . ]        once b has asked for 6
 *
 * What then becomes of a bucket:
 *
 *     usual     a block sorts it; fuller ones are listed, and sorted by larger blocks
 *     one value is written anew, from its number of keys
 *     giant     no block has room for it: it is copied out as it is and left on a list, to be a segment of a
 *               level of its own (msd.cu). If all its keys are equal it is done */
#ifndef LEVEL_CUH
#define LEVEL_CUH

#include "kernels/cuda/msd/count.cuh"
#include "kernels/cuda/msd/scatter.cuh"

enum {
    LEVEL_SEGMENTS = 128,             /* at a time, at most */
    LEVEL_ALONE_SEGMENTS = 16,        /* the same after the only level of a small sort */
    LEVEL_PIECES = ENGINE_PIECES_MAX  /* of all of them */
};

struct segment {
    uint64_t scratch_first, out_first; /* its first place in both */
    int64_t left; /* it is this one of those that a level before has left; -1: it is not */
};

struct piece {
    const void *keys;
    int64_t count;
    int32_t segment;
    uint32_t first_tile;
};

/* By value, to kernels: 4 KiB is what every driver takes. */
struct segments {
    int count;
    struct segment segment[LEVEL_SEGMENTS];
};

struct pieces {
    int count;
    struct piece piece[LEVEL_PIECES];
};
static_assert(sizeof(struct segments) <= 3600 && sizeof(struct pieces) <= 3600, "parameters of a kernel");

/* A bucket; limit 0: it is of one value, and its keys go nowhere. */
struct bucket {
    uint64_t cursor, begin, limit; /* places in scratch */
    uint64_t goal;                 /* and in out */
};

/* What a block sort is given. */
template <typename K>
struct bucket_task {
    uint64_t begin, goal; /* in scratch, in out */
    uint32_t count;
    even_parts<K> known;
};

/* Keys that are equal, to be written anew; or a giant, to be copied: FILL_KEYS of it at most. */
struct run_of_keys {
    uint64_t goal;
    uint32_t count, bucket;
    uint32_t left; /* of a giant: its place among those that are left */
};

/* A giant that is left. */
struct left_bucket {
    uint64_t first, count;          /* in out */
    uint64_t lowest[2], highest[2]; /* of its keys; lower word first */
    uint32_t lock;
};

/* What a level counts. */
struct level_head {
    uint32_t is_done; /* nothing is to be scattered */
    uint32_t usual_count, fuller_count, fill_count, giant_count;
    uint32_t any_overflow;
    uint32_t left_count; /* of all levels since it was last settled */
};

/* The tables of a level, in the workspace. */
template <typename K>
struct level_tables {
    struct level_head *head;
    const struct left_bucket *left;        /* by levels before */
    struct left_bucket *next_left;         /* [left_room] for levels behind */
    uint32_t left_room;                    /* what is beyond is only counted */
    struct segment *segments;              /* [segments] */
    int64_t *counts;                       /* [segments] keys */
    struct split<K> *splits;               /* [segments] */
    uint32_t *overflows;                   /* [segments] a bucket has asked for more than its room */
    struct bucket *buckets;                /* [segments][SPLIT_BUCKETS] */
    struct bucket_task<K> *usual, *fuller; /* [segments * SPLIT_BUCKETS] */
    struct run_of_keys *fills, *giants;    /* [a run of each bucket, and of each FILL_KEYS keys] */
    K *samples;                            /* [segments][SAMPLE_MAX] */
};

/* ---- how keys will be split ---------------------------------------------------------------------------- */

/* How many buckets a segment of `count` keys should have, for a linear split and for a tree, whose buckets differ
 * more; and how large its sample. */
static __device__ int wanted_buckets(int64_t count, int bucket_keys)
{
    const int64_t buckets = (count + bucket_keys - 1) / bucket_keys;
    return (int)(buckets < SPLIT_BUCKETS ? buckets : SPLIT_BUCKETS - 1);
}

template <typename K>
static __device__ int sample_size(int64_t count, int tree_buckets)
{
    const int64_t wanted = (int64_t)tree_buckets * SAMPLE_OF_BUCKET;
    const int64_t least = SPLIT_THREADS < count ? SPLIT_THREADS : count;
    return (int)min(max(wanted, least), (int64_t)SAMPLE_MAX<K>);
}

/* Where sample i of `seen` is drawn from `count` keys: somewhere in the i-th of as many equal parts, by multiples
 * of the golden ratio. The same place in each part could meet a period of the input. */
static __device__ int64_t sample_position(int i, int seen, int64_t count)
{
    const uint64_t step = ~UINT64_C(0) / (uint64_t)seen; // of 2^64, which stands for `count`
    const uint64_t fraction = __umul64hi((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15), step);
    return (int64_t)__umul64hi((uint64_t)i * step + fraction, (uint64_t)count);
}

/* Key `at` of all pieces of a segment, of which piece `piece` is the first. */
template <typename K>
static __device__ K key_of_segment(const struct pieces &pieces, int piece, int64_t at)
{
    while (at >= pieces.piece[piece].count)
        at -= pieces.piece[piece++].count;
    return ((const K *)pieces.piece[piece].keys)[at];
}

static __device__ int64_t keys_of_segment(const struct pieces &pieces, int segment, int piece)
{
    int64_t keys = 0;
    for (; piece < pieces.count && pieces.piece[piece].segment == segment; piece++)
        keys += pieces.piece[piece].count;
    return keys;
}

/* Take the sample of each segment, of `tree_keys` for a bucket, and note how many keys it has. Row y of the grid is for
 * segment y. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_THREADS)
    take_samples_kernel(const __grid_constant__ struct coding coding,
                        const __grid_constant__ struct pieces pieces, int tree_keys,
                        struct level_tables<K> level)
{
    int piece = 0;
    while (piece < pieces.count && pieces.piece[piece].segment < (int)blockIdx.y)
        piece++;
    const int64_t count = keys_of_segment(pieces, blockIdx.y, piece);
    const int seen = sample_size<K>(count, wanted_buckets(count, tree_keys));
    const int i = blockIdx.x * SPLIT_THREADS + threadIdx.x;
    if (i < seen)
        level.samples[(int64_t)blockIdx.y * SAMPLE_MAX<K> + i] =
            loaded_code(coding, key_of_segment<K>(pieces, piece, sample_position(i, seen, count)));
    if (i == 0)
        level.counts[blockIdx.y] = count;
}

/* Make the split of a segment from its sample; of `linear_buckets` or of a tree. Returns the keys of the sample; counts
 * [SPLIT_BUCKETS] of them in each bucket. Every thread of the block calls it. */
template <typename K>
static __device__ int make_split(int64_t count, int linear_buckets, int tree_buckets, K *sample,
                                 struct split<K> *split, uint32_t *counts)
{
    constexpr int OWN = SAMPLE_MAX<K> / SPLIT_THREADS;
    __shared__ K lows[WARP], highs[WARP];
    const int seen = sample_size<K>(count, tree_buckets);
    const int own = (seen - (int)threadIdx.x + SPLIT_THREADS - 1) / SPLIT_THREADS;
    K keys[OWN], low = BEHIND_ALL<K>, high = 0;
#pragma unroll
    for (int k = 0; k < OWN; k++)
        keys[k] = k < own ? sample[threadIdx.x + k * SPLIT_THREADS] : 0;
#pragma unroll
    for (int k = 0; k < OWN; k++) {
        if (k < own) {
            low = smaller_key(low, keys[k]);
            high = larger_key(high, keys[k]);
        }
    }
    block_extremes(low, high, lows, highs);
    if (threadIdx.x == 0)
        cut_evenly(low, high, linear_buckets, split);
    __syncthreads();
    if (split->buckets == linear_buckets && is_even(*split, keys, own, seen, counts))
        return seen;
    const struct coding as_it_is = {};
    block_sort<sample_sort_size<K>>(as_it_is, sample, sample, seen, even_parts<K>());
    __syncthreads();
    K *sorted = (K *)block_sort_shared(); // where it is searched often
    for (int i = threadIdx.x; i < seen; i += SPLIT_THREADS)
        sorted[i] = sample[i];
    __syncthreads();
    grow_tree(sorted, seen, tree_buckets, split);
    const int bucket = threadIdx.x;
    if (bucket < split->buckets) {
        const int begin = bucket > 0 ? find_key<false>(sorted, seen, split->splitters[bucket - 1]) : 0;
        const int end =
            bucket < split->buckets - 1 ? find_key<false>(sorted, seen, split->splitters[bucket]) : seen;
        counts[bucket] = end - begin;
    }
    __syncthreads();
    return seen;
}

/* Room in scratch for a bucket that has `of_sample` keys of a sample that is one key in `share`. */
static __device__ float room_of_bucket(uint32_t of_sample, bool is_linear, float mean, float share)
{
    const float most = share * ((float)of_sample + 4 * sqrtf((float)of_sample) + 6);
    // of equal shares more is known than what a few keys of a sample say: is_even() has passed
    return ceilf(is_linear ? min(max(most, 1.2f * mean + 64), 1.6f * mean + 64) : most);
}

/* Keys of scratch for the buckets of a segment of `count` keys. */
static __host__ __device__ int64_t scratch_keys(int64_t count)
{
    return 2 * count - count / 8 + 4096;
}

/* Give the buckets of a segment room in scratch, which has scratch_keys() for `count` keys. Every thread of the block
 * calls it. */
template <typename K>
static __device__ void share_out_room(const struct segment &segment, const struct split<K> &split,
                                      int64_t count, int seen, const uint32_t *counts, struct bucket *buckets)
{
    __shared__ uint64_t sums[SPLIT_THREADS / WARP];
    __shared__ uint64_t all;
    const int bucket = threadIdx.x;
    const bool exists = bucket < split.buckets;
    K value;
    const bool is_one = exists && is_one_value(split, bucket, &value);
    const float mean = (float)count / split.buckets, share = (float)count / seen;
    const uint64_t wish =
        exists && !is_one ? (uint64_t)room_of_bucket(counts[bucket], split.is_linear, mean, share) : 0;
    uint64_t before = block_sum_before(wish, sums);
    if (bucket == SPLIT_THREADS - 1)
        all = before + wish;
    __syncthreads();
    uint64_t room = wish;
    const uint64_t most = (uint64_t)scratch_keys(count);
    if (all > most) { // rounded down, so that all of it fits
        const float less = (float)most / (float)all * 0.999f;
        room = (uint64_t)((float)wish * less);
        __syncthreads();
        before = block_sum_before(room, sums);
    }
    const uint64_t begin = segment.scratch_first + before;
    if (exists)
        buckets[bucket] = {begin, begin, is_one ? 0 : begin + room, 0};
}

template <typename K>
static __device__ K key_of_words(const uint64_t (&words)[2])
{
    if constexpr (sizeof(K) <= sizeof(uint64_t))
        return (K)words[0];
    else
        return (K)words[1] << 64 | words[0];
}

/* Buckets for keys that all are `value`. */
template <typename K>
static __device__ void one_value_split(K value, const struct segment &segment, struct split<K> *split,
                                       struct bucket *buckets)
{
    if (threadIdx.x == 0) {
        *split = {};
        split->splitters[0] = split->tree[2] = value;
        split->splitters[1] = split->tree[1] = split->tree[3] = value == BEHIND_ALL<K> ? value : value + 1;
        split->buckets = value == BEHIND_ALL<K> ? 2 : 3;
        split->levels = 2;
        for (int bucket = 0; bucket < split->buckets; bucket++)
            buckets[bucket] = {segment.scratch_first, segment.scratch_first, 0, 0};
    }
}

/* A block for each segment. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_THREADS, 1)
    make_splits_kernel(const __grid_constant__ struct segments segments, int linear_keys, int tree_keys,
                       struct level_tables<K> level)
{
    __shared__ uint32_t counts[SPLIT_BUCKETS];
    const struct segment &segment = segments.segment[blockIdx.x];
    const int64_t count = level.counts[blockIdx.x];
    struct split<K> *split = &level.splits[blockIdx.x];
    struct bucket *buckets = &level.buckets[blockIdx.x * SPLIT_BUCKETS];
    int seen = 1;
    if (threadIdx.x == 0) {
        level.segments[blockIdx.x] = segment;
        level.overflows[blockIdx.x] = 0;
    }
    if (count == 0) {
        if (threadIdx.x == 0)
            *split = {}, split->buckets = 0;
        return;
    }
    K *sample = level.samples + (int64_t)blockIdx.x * SAMPLE_MAX<K>;
    if (segment.left < 0) {
        seen = make_split(count, wanted_buckets(count, linear_keys), wanted_buckets(count, tree_keys), sample,
                          split, counts);
    } else { // a sample has misjudged it: parts of its exact range, which bounds the number of levels
        const K low = key_of_words<K>(level.left[segment.left].lowest),
                high = key_of_words<K>(level.left[segment.left].highest);
        counts[threadIdx.x] = 0;
        if (low == high)
            return one_value_split(low, segment, split, buckets);
        if (threadIdx.x == 0)
            cut_evenly(low, high, SPLIT_BUCKETS, split);
        __syncthreads();
    }
    share_out_room(segment, *split, count, seen, counts, buckets);
}

/* ---- scatter ------------------------------------------------------------------------------------------- */

/* Room in scratch for the keys of a bucket, from its cursor; if there is not enough, nowhere. */
template <typename K>
struct goals_with_room {
    K *scratch;
    struct bucket *buckets;
    uint32_t *overflow, *any_overflow;

    __device__ K *operator()(int number, uint32_t keys) const
    {
        struct bucket &bucket = buckets[number];
        const uint64_t limit = bucket.limit;
        const uint64_t place = atomicAdd((unsigned long long *)&bucket.cursor, (unsigned long long)keys);
        if (place + keys <= limit)
            return scratch + place;
        if (limit > 0)
            *overflow = *any_overflow = 1;
        return NULL;
    }
};

/* The piece that has a tile: the last one that begins at this tile or before. Empty pieces have none. */
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

template <int KEYS, typename K>
static __device__ void scatter_piece(const struct coding &coding, const struct piece &piece, uint32_t tile,
                                     K *scratch, const struct level_tables<K> &level,
                                     struct scatter_words<K> &words)
{
    const int64_t first = (int64_t)(tile - piece.first_tile) * (SCATTER_THREADS * KEYS);
    const int valid = (int)min((int64_t)(SCATTER_THREADS * KEYS), piece.count - first);
    const goals_with_room<K> goals = {scratch, &level.buckets[piece.segment * SPLIT_BUCKETS],
                                      &level.overflows[piece.segment], &level.head->any_overflow};
    scatter<KEYS>(coding, (const K *)piece.keys + first, valid, level.splits[piece.segment], goals, words);
}

template <typename K, int KEYS>
static __global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS)
    scatter_kernel(const __grid_constant__ struct coding coding, const __grid_constant__ struct pieces pieces,
                   K *scratch, struct level_tables<K> level)
{
    __shared__ struct scatter_words<K> words;
    if (level.head->is_done)
        return;
    scatter_piece<KEYS>(coding, piece_of_tile(pieces, blockIdx.x), blockIdx.x, scratch, level, words);
}

/* The segments that have overflowed; by few blocks, as it is seldom that there are any. */
template <typename K, int KEYS>
static __global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS)
    scatter_again_kernel(const __grid_constant__ struct coding coding,
                         const __grid_constant__ struct pieces pieces, uint32_t tiles, K *scratch,
                         struct level_tables<K> level)
{
    __shared__ struct scatter_words<K> words;
    if (!level.head->any_overflow)
        return;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const struct piece &piece = piece_of_tile(pieces, tile);
        if (level.overflows[piece.segment])
            scatter_piece<KEYS>(coding, piece, tile, scratch, level, words);
        __syncthreads(); // before the next tile takes the memory
    }
}

/* ---- what becomes of the buckets ----------------------------------------------------------------------- */

/* Nothing is known of a left bucket. */
static __device__ void start_left(uint64_t first, uint64_t count, struct left_bucket *left)
{
    *left = {first, count, {~UINT64_C(0), ~UINT64_C(0)}, {0, 0}, 0};
}

/* Append to a list as many entries as `own` says, for each thread; returns the first place of its own. Every thread of
 * the block calls it. */
static __device__ uint32_t append(uint32_t own, uint32_t *count)
{
    __shared__ uint32_t sums[SPLIT_THREADS / WARP], begin;
    __syncthreads();
    const uint32_t before = block_sum_before(own, sums);
    if (threadIdx.x == SPLIT_THREADS - 1)
        begin = atomicAdd(count, before + own);
    __syncthreads();
    return begin + before;
}

/* Cut a long run into entries of a list. */
static __device__ void list_run(struct run_of_keys *list, uint32_t at, uint64_t goal, uint64_t keys,
                                uint32_t bucket, uint32_t left)
{
    for (uint64_t done = 0; done < keys; done += FILL_KEYS)
        list[at++] = {goal + done, (uint32_t)min(keys - done, (uint64_t)FILL_KEYS), bucket, left};
}

/* Each segment by a block: how many keys its buckets have, and what becomes of them. Blocks sort up to `most` keys. */
template <typename USUAL, typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    list_buckets_kernel(int most, struct level_tables<K> level)
{
    __shared__ uint64_t sums[SPLIT_BUCKETS / WARP];
    const struct segment segment = level.segments[blockIdx.x];
    const struct split<K> &split = level.splits[blockIdx.x];
    const uint32_t number = blockIdx.x * SPLIT_BUCKETS + threadIdx.x;
    const bool exists = (int)threadIdx.x < split.buckets, overflows = level.overflows[blockIdx.x];
    struct bucket bucket = {};
    K value;
    if (exists)
        bucket = level.buckets[number];
    const bool is_one = exists && is_one_value(split, threadIdx.x, &value);
    const uint64_t keys = bucket.cursor - bucket.begin, stored = is_one ? 0 : keys;
    const uint64_t goal = segment.out_first + block_sum_before(keys, sums);
    if (overflows) {
        __syncthreads();
        bucket.begin = segment.scratch_first + block_sum_before(stored, sums);
    }
    if (exists) // scatter_again_kernel() starts from here
        level.buckets[number] = {bucket.begin, bucket.begin, is_one ? 0 : bucket.begin + keys, goal};
    const bool is_usual = !is_one && 0 < keys && keys <= (uint64_t)USUAL::CAPACITY,
               is_giant = !is_one && keys > (uint64_t)most,
               is_fuller = !is_one && !is_giant && keys > (uint64_t)USUAL::CAPACITY;
    const uint32_t runs = (uint32_t)((keys + FILL_KEYS - 1) / FILL_KEYS);
    const uint32_t of_usual = append(is_usual, &level.head->usual_count),
                   of_fuller = append(is_fuller, &level.head->fuller_count),
                   of_fill = append(is_one ? runs : 0, &level.head->fill_count),
                   of_giant = append(is_giant ? runs : 0, &level.head->giant_count);
    if (is_usual || is_fuller) {
        const even_parts<K> known = known_parts<USUAL>(split, threadIdx.x);
        *(is_usual ? &level.usual[of_usual] : &level.fuller[of_fuller]) = {bucket.begin, goal, (uint32_t)keys,
                                                                           known};
    }
    if (is_one)
        list_run(level.fills, of_fill, goal, keys, number, 0);
    if (is_giant) {
        const uint32_t left = atomicAdd(&level.head->left_count, 1u);
        list_run(level.giants, of_giant, goal, keys, number, left);
        if (left < level.left_room)
            start_left(goal, keys, &level.next_left[left]);
    }
}

/* ---- block sorts --------------------------------------------------------------------------------------- */

template <typename S, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    usual_kernel(const __grid_constant__ struct coding coding, const K *scratch, K *out,
                 struct level_tables<K> level)
{
    const struct bucket_task<K> task = level.usual[blockIdx.x]; // at once; it may not be there
    if (blockIdx.x < level.head->usual_count)
        block_sort<S>(coding, scratch + task.begin, out + task.goal, (int)task.count, task.known);
}

/* Those of the fuller buckets that have more than `above` keys, and usual ones from `first` on. Their bins are of another
 * number than is known. */
template <typename S, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    fuller_kernel(const __grid_constant__ struct coding coding, const K *scratch, K *out, uint32_t above,
                  uint32_t first, struct level_tables<K> level)
{
    const uint32_t fuller = level.head->fuller_count, usual = level.head->usual_count;
    const uint32_t listed = fuller + (usual > first ? usual - first : 0);
    for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
        const struct bucket_task<K> task = i < fuller ? level.fuller[i] : level.usual[first + i - fuller];
        if (above < task.count && task.count <= (uint32_t)S::CAPACITY) {
            block_sort<S>(coding, scratch + task.begin, out + task.goal, (int)task.count, even_parts<K>());
            __syncthreads(); // before the next one takes the memory
        }
    }
}

/* ---- one value, and giants ----------------------------------------------------------------------------- */

/* Write `value` to keys [count] by 16 bytes at a time. Every thread of the block calls it. */
template <typename K>
static __device__ void fill_keys(K *keys, uint32_t count, K value)
{
    constexpr int PER = sizeof(uint4) / sizeof(K);
    const uint32_t front = min(count, (uint32_t)(-(uintptr_t)keys % sizeof(uint4) / sizeof(K)));
    const uint32_t vectors = (count - front) / PER;
    key_vector<K> vector;
#pragma unroll
    for (int k = 0; k < PER; k++)
        vector.keys[k] = value;
    for (uint32_t i = threadIdx.x; i < vectors; i += FILL_THREADS)
        ((uint4 *)(keys + front))[i] = vector.whole;
    if (threadIdx.x < front)
        keys[threadIdx.x] = value;
    if (threadIdx.x < count - front - vectors * PER)
        keys[front + vectors * PER + threadIdx.x] = value;
}

/* The buckets of one value. */
template <typename K>
static __global__ void __launch_bounds__(FILL_THREADS)
    fill_kernel(const __grid_constant__ struct coding coding, K *out, struct level_tables<K> level)
{
    const uint32_t listed = level.head->fill_count;
    for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
        const struct run_of_keys run = level.fills[i];
        K value;
        is_one_value(level.splits[run.bucket / SPLIT_BUCKETS], run.bucket % SPLIT_BUCKETS, &value);
        fill_keys(out + run.goal, run.count, stored_key(coding, value));
    }
}

template <typename K>
static __device__ void set_words(K key, volatile uint64_t *words)
{
    words[0] = (uint64_t)key;
    words[1] = 0;
    if constexpr (sizeof(K) > sizeof(uint64_t))
        words[1] = (uint64_t)(key >> 64);
}

/* Widen the range of a left bucket. One thread of a block calls it. */
template <typename K>
static __device__ void note_extremes(K low, K high, struct left_bucket *left)
{
    volatile struct left_bucket *v = left;
    while (atomicCAS(&left->lock, 0u, 1u) != 0)
        continue;
    __threadfence();
    const uint64_t lowest[2] = {v->lowest[0], v->lowest[1]}, highest[2] = {v->highest[0], v->highest[1]};
    set_words(smaller_key(low, key_of_words<K>(lowest)), v->lowest);
    set_words(larger_key(high, key_of_words<K>(highest)), v->highest);
    __threadfence();
    atomicExch(&left->lock, 0u);
}

/* Giants are copied as they are, as codes: their turn comes. */
template <typename K>
static __global__ void __launch_bounds__(FILL_THREADS)
    copy_giants_kernel(const K *scratch, K *out, struct level_tables<K> level)
{
    __shared__ K lows[WARP], highs[WARP];
    const uint32_t listed = level.head->giant_count;
    for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
        const struct run_of_keys run = level.giants[i];
        const struct bucket bucket = level.buckets[run.bucket];
        const K *from = scratch + bucket.begin + (run.goal - bucket.goal);
        K low = BEHIND_ALL<K>, high = 0;
        for (uint32_t k = threadIdx.x; k < run.count; k += FILL_THREADS) {
            const K code = from[k];
            low = smaller_key(low, code);
            high = larger_key(high, code);
            out[run.goal + k] = code;
        }
        block_extremes(low, high, lows, highs);
        __syncthreads();
        if (threadIdx.x > 0)
            continue;
        if (run.left < level.left_room)
            note_extremes(low, high, &level.next_left[run.left]);
    }
}

#endif
