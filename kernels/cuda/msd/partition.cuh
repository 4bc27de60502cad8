/* Sorting by regions, the kernels' side: what partition.cu queues. Three steps of rung 8, but with 2^18 buckets, and so that
 * keys can change ranks between the first and the others:
 *
 *     keys        --- partition: by the upper bits of the bucket ---> regions        count first: where they begin
 *     pieces      --- deal: by the lower bits, or evenly ---> scratch                no count: a bucket has room to spare
 *     scratch     --- leaves ---> out
 *
 * The buckets of a region get equal parts of the scratch, with room for half as many keys again. Where a bucket asks for more,
 * what it cannot have goes nowhere; but its cursor has counted all, so the region is dealt out again with borders that fit.
 * That spares even keys a pass that would only count. In scratch, a region of 4 buckets with 10 keys, room for 5 each:
 *
 *     [ a a . . . | b b b . . | c . . . . | d d d d . ]        as it is first tried
 *     [ a a | b b b b b b | c | d . . . . . . . . . . ]        once b has asked for 6
 */
#ifndef PARTITION_CUH
#define PARTITION_CUH

#include "kernels/cuda/msd/count.cuh"
#include "kernels/cuda/msd/deal.cuh"

enum {
    PART_LOG = 9, /* of the bucket's number, that one pass looks at, at most */
    PART_BUCKETS = 1 << PART_LOG,
    PART_SLOTS = ENGINE_PIECES_MAX, /* regions that are sorted at a time, at most */
    PART_SEEN = 8 * PART_BUCKETS,   /* keys of a region that tell whether it is even */
    PART_DISTANCE_LOG = 26,         /* bits of a key that tell where it lies in an even region */
    PART_CURSOR = 4,                /* words from one cursor to the next */
    PART_LEFT = 256                 /* buckets that are left unsorted, if there are no more */
};
static_assert((int)PART_BUCKETS == (int)ENGINE_REGIONS && (int)MSD_PASS_THREADS >= (int)PART_BUCKETS,
              "a thread of a pass for each digit");

/* A region that is being sorted. */
struct part_slot {
    uint64_t scratch_first, out_first; /* its first place in both */
    uint32_t room;                     /* of a bucket in scratch */
    int32_t region;
};

/* By value, to kernels: 4 KiB is what every driver takes. */
struct part_slots {
    int count;
    struct part_slot slot[PART_SLOTS];
};

struct part_piece {
    const void *keys;
    int64_t count;
    int32_t slot;
    uint32_t first_tile;
};

struct part_pieces {
    int count;
    struct part_piece piece[PART_SLOTS];
};
static_assert(sizeof(struct part_slots) <= 4000 && sizeof(struct part_pieces) <= 4000,
              "parameters of a kernel");

/* Buckets of a region of their own: parts of equal width. Without them (scale 0) it has the map's. */
struct region_parts {
    uint32_t low, scale;
    int32_t shift;

    template <typename K>
    __device__ even_parts<K> of_keys() const
    {
        return {low, scale, shift};
    }
};

/* A bucket that is left unsorted. */
struct part_left {
    void *keys;
    uint64_t count;
};

/* The workspace. */
struct partition_work {
    struct window window;
    struct sample sample;
    uint32_t ascents, descents, left_count;
    alignas(8) uint64_t region_keys[ENGINE_REGIONS];
    uint64_t region_cursors[ENGINE_REGIONS][PART_CURSOR];
    /* of the regions being sorted */
    struct part_slot slots[PART_SLOTS];
    struct part_left
        left[PART_LEFT]; /* the first of left_count, since the last time that they were settled */
    uint32_t mixed[PART_SLOTS * PART_BUCKETS]; /* a giant is known to be of more than one value */
    uint32_t overflows[PART_SLOTS];            /* a bucket has asked for more than its room */
    uint32_t any_overflow, fuller_count, giant_count;
    struct region_parts parts[PART_SLOTS];
    uint64_t cursors[PART_SLOTS * PART_BUCKETS][PART_CURSOR];
    uint64_t begins[PART_SLOTS * PART_BUCKETS]; /* of buckets, in scratch */
    uint64_t goals[PART_SLOTS * PART_BUCKETS];  /* and in out */
    uint32_t counts[PART_SLOTS * PART_BUCKETS];
    uint32_t fuller[PART_SLOTS * PART_BUCKETS]; /* too full for a usual leaf, fuller_count buckets */
    uint32_t giants[PART_SLOTS * PART_BUCKETS]; /* too full for any, giant_count */
    alignas(256) uint32_t halves[1 << (2 * PART_LOG - 1)];
    alignas(256) uint8_t codes[sizeof(uint64_t) << ENGINE_SAMPLE_LOG_MAX],
        seen[sizeof(uint64_t) << ENGINE_SAMPLE_LOG_MAX];
    alignas(256)
        uint8_t nowhere[MSD_PASS_THREADS * MSD_PASS_KEYS_8 * sizeof(uint64_t)]; /* for keys without room */
};
static_assert((int)MSD_PASS_KEYS_4 <= 2 * (int)MSD_PASS_KEYS_8, "a tile of either width");

/* ---- the sample ---------------------------------------------------------------------------------------- */

template <typename K>
static __global__ void __launch_bounds__(SAMPLE_THREADS)
    part_sample_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ keys,
                       int64_t before, int64_t total, int log, int64_t first, int sample, uint64_t *codes)
{
    const int i = blockIdx.x * SAMPLE_THREADS + threadIdx.x;
    if (i < sample)
        codes[i] = loaded_code(
            coding,
            keys[(uint64_t)((unsigned __int128)(first + i) * (uint64_t)total >> log) - (uint64_t)before]);
}

template <typename K>
static __global__ void __launch_bounds__(SAMPLE_THREADS) part_narrow_kernel(const uint64_t *codes, K *narrow)
{
    const int i = blockIdx.x * SAMPLE_THREADS + threadIdx.x;
    narrow[i] = (K)codes[i];
}

/* ---- the count ----------------------------------------------------------------------------------------- */

/* Counters of regions in shared memory: COPIES of each, so that the warps of a block do not all meet. */
struct region_counters {
    static constexpr int COPIES = 4;
    uint32_t *words; /* [ENGINE_REGIONS], of this thread's copy */

    __device__ void add(uint32_t region, uint32_t keys) const
    {
        atomicAdd(&words[region], keys);
    }
};

/* Count the keys of each region. */
template <typename K, map_kind KIND>
static __device__ void count_regions(const struct coding &coding, const K *__restrict__ keys, int64_t count,
                                     uint32_t (*words)[ENGINE_REGIONS], struct partition_work *work)
{
    extern __shared__ struct cell cells[]; // [CELLS]
    const pass_digit<K, KIND> region_of = {load_map<K, KIND>(work->window, cells), work->window.bits[1], ~0u};
    struct notice notice = {};
    for (int i = threadIdx.x; i < region_counters::COPIES * ENGINE_REGIONS; i += MSD_COUNT_THREADS)
        (&words[0][0])[i] = 0;
    __syncthreads();
    const struct region_counters counters = {words[threadIdx.x / WARP % region_counters::COPIES]};
    count_share(coding, keys, count, region_of, counters, &notice);
    __syncthreads();
    notice.ascents = __syncthreads_or(notice.ascents);
    notice.descents = __syncthreads_or(notice.descents);
    for (int i = threadIdx.x; i < ENGINE_REGIONS; i += MSD_COUNT_THREADS) {
        uint64_t sum = 0;
        for (int copy = 0; copy < region_counters::COPIES; copy++)
            sum += words[copy][i];
        if (sum > 0)
            atomicAdd((unsigned long long *)&work->region_keys[i], (unsigned long long)sum);
    }
    if (threadIdx.x == 0 && notice.ascents)
        work->ascents = 1;
    if (threadIdx.x == 0 && notice.descents)
        work->descents = 1;
}

template <typename K>
static __global__ void __launch_bounds__(MSD_COUNT_THREADS, 1)
    count_regions_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ keys,
                         int64_t count, struct partition_work *work)
{
    __shared__ uint32_t words[region_counters::COPIES][ENGINE_REGIONS];
    switch (work->window.kind) {
    case MAP_LINEAR:
        return count_regions<K, MAP_LINEAR>(coding, keys, count, words, work);
    case MAP_TABLE:
        return count_regions<K, MAP_TABLE>(coding, keys, count, words, work);
    case MAP_FINE:
        if constexpr (sizeof(K) == 8)
            return count_regions<K, MAP_FINE>(coding, keys, count, words, work);
    }
}

/* Tell the host, and find where the regions begin. */
static __global__ void __launch_bounds__(ENGINE_REGIONS)
    region_begins_kernel(struct partition_work *work, volatile int64_t *counts, volatile int64_t *flags)
{
    __shared__ uint64_t sums[ENGINE_REGIONS / WARP];
    const uint64_t keys = work->region_keys[threadIdx.x];
    work->region_cursors[threadIdx.x][0] = block_sum_before(keys, sums);
    counts[threadIdx.x] = (int64_t)keys;
    if (threadIdx.x == 0) {
        flags[0] = work->ascents;
        flags[1] = work->descents;
        work->left_count = 0;
    }
}

/* ---- the partition ------------------------------------------------------------------------------------- */

template <int KEYS, typename K, map_kind KIND>
static __device__ void partition_tile(const struct coding &coding, const K *from, K *to, int valid,
                                      struct deal_words<ENGINE_REGIONS, K> &words,
                                      struct partition_work *work)
{
    extern __shared__ uint64_t shared[];
    struct cell *cells = (struct cell *)(shared + pass_bytes<K, KEYS>() / sizeof(uint64_t)); // [CELLS]
    const pass_digit<K, KIND> region_of = {load_map<K, KIND>(work->window, cells), work->window.bits[1], ~0u};
    deal<ENGINE_REGIONS, KEYS>(coding, from, valid, region_of,
                               goals_of_cursors<K>{to, work->region_cursors[0], PART_CURSOR}, words);
}

template <typename K, int KEYS>
static __global__ void __launch_bounds__(MSD_PASS_THREADS, MSD_PASS_BLOCKS)
    partition_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ from,
                     K *__restrict__ to, int64_t count, struct partition_work *work)
{
    __shared__ struct deal_words<ENGINE_REGIONS, K> words;
    constexpr int TILE = MSD_PASS_THREADS * KEYS;
    const int64_t first = (int64_t)blockIdx.x * TILE;
    const int valid = (int)min((int64_t)TILE, count - first);
    switch (work->window.kind) {
    case MAP_LINEAR:
        return partition_tile<KEYS, K, MAP_LINEAR>(coding, from + first, to, valid, words, work);
    case MAP_TABLE:
        return partition_tile<KEYS, K, MAP_TABLE>(coding, from + first, to, valid, words, work);
    case MAP_FINE:
        if constexpr (sizeof(K) == 8)
            return partition_tile<KEYS, K, MAP_FINE>(coding, from + first, to, valid, words, work);
    }
}

/* ---- from regions to buckets --------------------------------------------------------------------------- */

/* Each slot by a block: room for its buckets. */
static __global__ void __launch_bounds__(PART_BUCKETS)
    slots_kernel(const __grid_constant__ struct part_slots slots, struct partition_work *work)
{
    const struct part_slot slot = slots.slot[blockIdx.x];
    const uint32_t bucket = blockIdx.x * PART_BUCKETS + threadIdx.x;
    const uint64_t begin = slot.scratch_first + (uint64_t)threadIdx.x * slot.room;
    work->begins[bucket] = work->cursors[bucket][0] = begin;
    work->mixed[bucket] = 0;
    if (threadIdx.x == 0) {
        work->slots[blockIdx.x] = slot;
        work->parts[blockIdx.x] = {0, 0, 0};
        work->overflows[blockIdx.x] = 0;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        work->any_overflow = work->fuller_count = work->giant_count = 0;
}

/* The smallest code that a map of cells has in `bucket`, 1 to the last one, or behind it. */
template <typename K>
static __device__ K lowest_of_bucket(const struct window &window, uint32_t bucket)
{
    int below = 0; // cells that have all of their keys in front of the bucket
    for (int step = CELLS / 2; step > 0; step /= 2) {
        const struct cell cell = window.cells[below + step - 1];
        if (cell.first + max(cell.parts, 1u) <= bucket)
            below += step;
    }
    const struct cell cell = window.cells[below];
    const uint64_t part = bucket - min(cell.first, bucket);
    const uint32_t in_cell =
        part > 0 ? (uint32_t)(((part << LOG_CELL_WIDTH) + cell.parts - 1) / cell.parts) : 0;
    const uint32_t place = ((uint32_t)below << LOG_CELL_WIDTH) + in_cell;
    uint64_t distance = (uint64_t)((place + (1u << window.left) - 1) >> window.left) << window.right;
    if (distance > window.gap_first >> window.below)
        distance += (window.gap_last >> window.below) - (window.gap_first >> window.below);
    return (K)((window.lowest >> window.below) + distance) << window.below;
}

/* Codes of a region, from the lowest to the highest that the map has there. */
template <typename K>
static __device__ void bounds_of_region(const struct window &window, int region, K *lowest, K *highest)
{
    const uint32_t first = (uint32_t)region << window.bits[1], behind = first + (1u << window.bits[1]);
    *lowest = first > 0 ? lowest_of_bucket<K>(window, first) : 0;
    *highest = behind <= window.last ? lowest_of_bucket<K>(window, behind) - 1 : (K) ~(K)0;
}

/* Key `at` of all pieces of a slot, of which piece `piece` is the first. */
template <typename K>
static __device__ K key_of_slot(const struct part_pieces &pieces, int piece, int64_t at)
{
    while (at >= pieces.piece[piece].count)
        at -= pieces.piece[piece++].count;
    return ((const K *)pieces.piece[piece].keys)[at];
}

/* Each slot by a block: where keys are spread evenly over a region, as they mostly are over so small a part of all, buckets of
 * equal width hold equal shares. The map's follow a sample of a few keys for each, and take a table to find. */
template <typename K>
static __global__ void __launch_bounds__(PART_BUCKETS)
    region_parts_kernel(const __grid_constant__ struct part_pieces pieces, struct partition_work *work)
{
    __shared__ uint32_t counts[PART_BUCKETS];
    __shared__ K bounds[2];
    __shared__ int first_piece;
    __shared__ unsigned long long keys;
    const int log = work->window.bits[1], buckets = 1 << log;
    if (threadIdx.x == 0) {
        bounds_of_region(work->window, work->slots[blockIdx.x].region, &bounds[0], &bounds[1]);
        first_piece = pieces.count;
        keys = 0;
    }
    counts[threadIdx.x] = 0;
    __syncthreads();
    if ((int)threadIdx.x < pieces.count && pieces.piece[threadIdx.x].slot == (int)blockIdx.x) {
        atomicMin(&first_piece, (int)threadIdx.x);
        atomicAdd(&keys, (unsigned long long)pieces.piece[threadIdx.x].count);
    }
    __syncthreads();
    even_parts<K> parts;
    parts.shift = max(bits_of<K>(bounds[1] - bounds[0]) - PART_DISTANCE_LOG, 0);
    parts.low = (uint32_t)(bounds[0] >> parts.shift);
    const uint32_t distances = parts.distance(bounds[1]);
    if (keys == 0 || distances >> 4 < (uint32_t)buckets)
        return;
    parts.scale = (uint32_t)(((uint64_t)buckets << 32) / (distances + 1));
#pragma unroll
    for (int k = 0; k < PART_SEEN / PART_BUCKETS; k++) {
        const uint64_t i = threadIdx.x + k * PART_BUCKETS;
        atomicAdd(&counts[parts(key_of_slot<K>(pieces, first_piece, (int64_t)(i * keys / PART_SEEN)))], 1u);
    }
    __syncthreads();
    // of each bucket, and of eight in a row
    const float share = (float)PART_SEEN / buckets, of_eight = (float)PART_SEEN / max(buckets / 8, 1);
    uint32_t sum = counts[threadIdx.x];
    const bool is_more = sum > 1.5f * share + 6 * sqrtf(share);
    for (int flip = 1; flip < 8; flip *= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, flip);
    if (__syncthreads_or(is_more || sum > 1.3f * of_eight + 4 * sqrtf(of_eight)))
        return;
    if (threadIdx.x == 0)
        work->parts[blockIdx.x] = {parts.low, parts.scale, parts.shift};
}

/* Room in scratch for the keys of a bucket, from its cursor; if there is not enough, nowhere. */
template <typename K>
struct goals_with_room {
    K *scratch, *nowhere;
    struct partition_work *work;
    int slot;
    uint64_t first; /* place of the slot's first bucket */
    uint32_t room;  /* of each */

    __device__ K *operator()(int digit, uint32_t keys) const
    {
        const uint64_t place = take_room(work->cursors[slot * PART_BUCKETS + digit], keys);
        if (place + keys <= first + (uint64_t)(digit + 1) * room)
            return scratch + place;
        work->overflows[slot] = 1;
        work->any_overflow = 1;
        return nowhere;
    }
};

/* The piece that has a tile: the last one that begins at this tile or before. Empty pieces have none. */
static __device__ const struct part_piece &piece_of_tile(const struct part_pieces &pieces, uint32_t tile)
{
    int piece = 0;
    for (int step = PART_SLOTS / 2; step > 0; step /= 2) {
        if (piece + step < pieces.count && pieces.piece[piece + step].first_tile <= tile)
            piece += step;
    }
    return pieces.piece[piece];
}

/* AGAIN: with room for exactly as many keys as each bucket has asked for. */
template <bool AGAIN, int KEYS, typename K, typename DIGIT>
static __device__ void deal_piece(const struct part_piece &piece, uint32_t tile, const DIGIT &bucket_of,
                                  K *scratch, struct deal_words<PART_BUCKETS, K> &words,
                                  struct partition_work *work)
{
    const int64_t first = (int64_t)(tile - piece.first_tile) * (MSD_PASS_THREADS * KEYS);
    const int valid = (int)min((int64_t)(MSD_PASS_THREADS * KEYS), piece.count - first);
    const K *from = (const K *)piece.keys + first;
    if constexpr (AGAIN) {
        deal<PART_BUCKETS, KEYS>(
            coding{}, from, valid, bucket_of,
            goals_of_cursors<K>{scratch, work->cursors[piece.slot * PART_BUCKETS], PART_CURSOR}, words);
    } else {
        const struct part_slot &slot = work->slots[piece.slot];
        deal<PART_BUCKETS, KEYS>(
            coding{}, from, valid, bucket_of,
            goals_with_room<K>{scratch, (K *)work->nowhere, work, piece.slot, slot.scratch_first, slot.room},
            words);
    }
}

/* By the map. */
template <bool AGAIN, int KEYS, typename K, map_kind KIND>
static __device__ void deal_mapped(const struct part_piece &piece, uint32_t tile, K *scratch,
                                   struct deal_words<PART_BUCKETS, K> &words, struct partition_work *work)
{
    extern __shared__ uint64_t shared[];
    struct cell *cells = (struct cell *)(shared + pass_bytes<K, KEYS>() / sizeof(uint64_t)); // [CELLS]
    const uint32_t mask = (1u << work->window.bits[1]) - 1;
    const pass_digit<K, KIND> bucket_of = {load_map<K, KIND>(work->window, cells), 0, mask};
    deal_piece<AGAIN, KEYS>(piece, tile, bucket_of, scratch, words, work);
}

template <bool AGAIN, int KEYS, typename K>
static __device__ void deal_by_kind(const struct part_piece &piece, uint32_t tile, K *scratch,
                                    struct deal_words<PART_BUCKETS, K> &words, struct partition_work *work)
{
    const even_parts<K> parts = work->parts[piece.slot].template of_keys<K>();
    if (parts.is_known())
        return deal_piece<AGAIN, KEYS>(piece, tile, parts, scratch, words, work);
    switch (work->window.kind) {
    case MAP_LINEAR:
        return deal_mapped<AGAIN, KEYS, K, MAP_LINEAR>(piece, tile, scratch, words, work);
    case MAP_TABLE:
        return deal_mapped<AGAIN, KEYS, K, MAP_TABLE>(piece, tile, scratch, words, work);
    case MAP_FINE:
        if constexpr (sizeof(K) == 8)
            return deal_mapped<AGAIN, KEYS, K, MAP_FINE>(piece, tile, scratch, words, work);
    }
}

template <typename K, int KEYS>
static __global__ void __launch_bounds__(MSD_PASS_THREADS, MSD_PASS_BLOCKS)
    deal_pieces_kernel(const __grid_constant__ struct part_pieces pieces, K *scratch,
                       struct partition_work *work)
{
    __shared__ struct deal_words<PART_BUCKETS, K> words;
    deal_by_kind<false, KEYS>(piece_of_tile(pieces, blockIdx.x), blockIdx.x, scratch, words, work);
}

/* The slots that have overflowed; by few blocks, as it is seldom that there are any. */
template <typename K, int KEYS>
static __global__ void __launch_bounds__(MSD_PASS_THREADS, MSD_PASS_BLOCKS)
    deal_again_kernel(const __grid_constant__ struct part_pieces pieces, uint32_t tiles, K *scratch,
                      struct partition_work *work)
{
    __shared__ struct deal_words<PART_BUCKETS, K> words;
    if (!work->any_overflow)
        return;
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const struct part_piece &piece = piece_of_tile(pieces, tile);
        if (work->overflows[piece.slot])
            deal_by_kind<true, KEYS>(piece, tile, scratch, words, work);
        __syncthreads(); // before the next tile takes the memory
    }
}

/* Each slot by a block: how many keys its buckets have, and where they go. Leaves take `most` keys, usual ones `usual`. */
static __global__ void __launch_bounds__(PART_BUCKETS)
    buckets_kernel(int usual, int most, struct partition_work *work)
{
    __shared__ uint64_t sums[PART_BUCKETS / WARP];
    const struct part_slot slot = work->slots[blockIdx.x];
    const uint32_t bucket = blockIdx.x * PART_BUCKETS + threadIdx.x;
    const uint64_t keys = work->cursors[bucket][0] - work->begins[bucket];
    const uint64_t before = block_sum_before(keys, sums);
    work->counts[bucket] = (uint32_t)keys;
    work->goals[bucket] = slot.out_first + before;
    if (work->overflows[blockIdx.x])
        work->begins[bucket] = work->cursors[bucket][0] = slot.scratch_first + before;
    if (keys > (uint64_t)most)
        work->giants[atomicAdd(&work->giant_count, 1u)] = bucket;
    else if (keys > (uint64_t)usual)
        work->fuller[atomicAdd(&work->fuller_count, 1u)] = bucket;
}

/* ---- leaves -------------------------------------------------------------------------------------------- */

/* What is known of the keys in a bucket without looking at them, by kinds of maps. */
template <typename K>
static __device__ void know_bucket(const struct partition_work *work, uint32_t bucket, leaf_range<K> &known)
{
    const struct window &window = work->window;
    const uint32_t number =
        ((uint32_t)work->slots[bucket / PART_BUCKETS].region << window.bits[1]) + bucket % PART_BUCKETS;
    known = {0, -1};
    if (number == 0 || number == window.last) // the ends have the keys outside
        return;
    const int bits = window.right + window.below;
    known = {(K)(window.lowest + ((uint64_t)number << bits)), bits};
}

template <typename K>
static __device__ void know_bucket(const struct partition_work *work, uint32_t bucket, even_parts<K> &known)
{
    known = work->parts[bucket / PART_BUCKETS].of_keys<K>();
}

/* KNOWN: what the map tells of buckets; leaf_range of linear ones, even_parts of others. */
template <typename S, typename KNOWN, typename K>
static __device__ void sort_bucket(const struct coding &coding, uint32_t bucket, K *scratch, K *out,
                                   int count, const struct partition_work *work)
{
    const columns<K, no_value> from = {scratch + work->begins[bucket], NULL},
                               to = {out + work->goals[bucket], NULL};
    KNOWN known;
    know_bucket<K>(work, bucket, known);
    leaf_sort<S>(coding, from, to, count, known);
}

/* The buckets of all slots; block x of a slot has its bucket x. */
template <typename S, typename KNOWN, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    part_leaves_kernel(const __grid_constant__ struct coding coding, K *scratch, K *out, int log_buckets,
                       const struct partition_work *work)
{
    const uint32_t slot = blockIdx.x >> log_buckets;
    const uint32_t bucket = slot * PART_BUCKETS + (blockIdx.x & ((1u << log_buckets) - 1));
    const uint32_t count = work->counts[bucket];
    if (0 < count && count <= (uint32_t)S::CAPACITY)
        sort_bucket<S, KNOWN>(coding, bucket, scratch, out, (int)count, work);
}

/* The buckets of more than `above` keys, from the list of the fuller ones. */
template <typename S, typename KNOWN, typename K>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    part_fuller_kernel(const __grid_constant__ struct coding coding, K *scratch, K *out, uint32_t above,
                       const struct partition_work *work)
{
    for (uint32_t i = blockIdx.x; i < work->fuller_count; i += gridDim.x) {
        const uint32_t bucket = work->fuller[i], count = work->counts[bucket];
        if (above < count && count <= (uint32_t)S::CAPACITY) {
            sort_bucket<S, KNOWN>(coding, bucket, scratch, out, (int)count, work);
            __syncthreads(); // before the next one takes the memory
        }
    }
}

/* The buckets that fit no leaf are put out as they are: in order if they are of one value, and else on the list of those left.
 * Column y of the grid takes every gridDim.y-th of them, with all of its blocks. */
template <typename K>
static __global__ void __launch_bounds__(MSD_GIANT_THREADS)
    part_giants_kernel(const __grid_constant__ struct coding coding, const K *scratch, K *out,
                       struct partition_work *work)
{
    for (uint32_t i = blockIdx.y; i < work->giant_count; i += gridDim.y) {
        const uint32_t bucket = work->giants[i], count = work->counts[bucket];
        const K *from = scratch + work->begins[bucket];
        K *to = out + work->goals[bucket];
        const K first = from[0];
        bool differs = false;
#pragma unroll 4
        for (uint64_t k = (uint64_t)blockIdx.x * MSD_GIANT_THREADS + threadIdx.x; k < count;
             k += (uint64_t)gridDim.x * MSD_GIANT_THREADS) {
            const K code = from[k];
            differs |= code != first;
            to[k] = stored_key(coding, code);
        }
        if (__syncthreads_or(differs) && threadIdx.x == 0 && atomicExch(&work->mixed[bucket], 1u) == 0) {
            const uint32_t entry = atomicAdd(&work->left_count, 1u);
            if (entry < PART_LEFT)
                work->left[entry] = {to, count};
        }
    }
}

#endif
