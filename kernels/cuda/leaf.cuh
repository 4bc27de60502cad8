/* The last step of rung 8: a block sorts the keys of a bucket in shared memory.
 *
 * The range of its keys is cut into 2^13 bins of equal width. Counting the bins tells where each begins, so that keys can
 * be put in order of their bins at once; and then a thread for every 16 bins puts the few keys in order that share one.
 *
 *     keys                17 42 10 40 16        range 10 .. 42, bins of width 8: 10-17 18-25 26-33 34-41 42-49
 *     bin                  0  4  0  3  0
 *     rank in its bin      0  0  1  0  2        as the counter of the bin said when it was counted
 *     bins begin at        0  3  3  3  4
 *     by bins             17 10 16 | 40 | 42
 *     settled             10 16 17 | 40 | 42
 *
 * Where many keys crowd into a bin, that would take time quadratic in their number. Then the range is made exact, which may
 * help; or a bitonic sort does it. */
#ifndef LEAF_CUH
#define LEAF_CUH

#include "bitonic.cuh"
#include "tuning.h"

enum {
    LEAF_CAPACITY = LEAF_THREADS * LEAF_KEYS, /* keys */
    LEAF_BINS = 1 << LEAF_LOG_BINS,
    LEAF_OWN_BINS = LEAF_BINS / LEAF_THREADS,
    LEAF_BINS_BYTES = (LEAF_BINS + LEAF_BINS / WARP * 4 + 4) * 4
};
static_assert(LEAF_OWN_BINS % 4 == 0 && LEAF_OWN_BINS <= 32 && LEAF_BINS_BYTES <= 65536 * 4,
              "vectors, a mask, a slot");

/* Where element i of an array in shared memory lies: one in 32 is left out, so that strides of powers of two meet
 * different banks. */
static __host__ __device__ constexpr int with_gaps(int i)
{
    return i + i / WARP;
}

/* The keys of a leaf in shared memory, or its values; and, where there are values, the places in the bucket that the keys
 * came from: equal keys stay in their order. */
template <typename K, typename V>
struct leaf_places {
    K *keys;           // [with_gaps(LEAF_CAPACITY)]
    uint16_t *origins; // [with_gaps(LEAF_CAPACITY)] not there without values

    __device__ bool is_behind(int place, K key, int origin) const
    {
        const K other = keys[with_gaps(place)];
        return other > key || (has_value<V> && other == key && origins[with_gaps(place)] > origin);
    }
    __device__ int origin_at(int place) const
    {
        return has_value<V> ? origins[with_gaps(place)] : 0;
    }
    __device__ void put(int place, K key, int origin) const
    {
        keys[with_gaps(place)] = key;
        if constexpr (has_value<V>)
            origins[with_gaps(place)] = (uint16_t)origin;
    }
};

/* The shared memory that a leaf takes. */
template <typename K, typename V>
static constexpr int leaf_bytes()
{
    static_assert(!has_value<V> || sizeof(V) <= sizeof(K), "values take the keys' places");
    return LEAF_BINS_BYTES +
           with_gaps(LEAF_CAPACITY) * (int)(sizeof(K) + (has_value<V> ? sizeof(uint16_t) : 0));
}

/* The sum of the values of all threads before this one. Every thread calls it; sums [warps] in shared memory may be used
 * again after the next barrier. */
template <typename T>
static __device__ T block_sum_before(T value, T *sums)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    T sum = value;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const T below = __shfl_up_sync(ALL_LANES, sum, distance);
        if (lane >= distance)
            sum += below;
    }
    if (lane == WARP - 1)
        sums[warp] = sum;
    __syncthreads();
    T before = sum - value;
    for (int other = 0; other < warp; other++)
        before += sums[other];
    return before;
}

/* Make `low` and `high` the extremes of those of all threads. Every thread calls it; lows and highs [WARP] in shared
 * memory may be used again after the next barrier. */
template <typename K>
static __device__ void block_extremes(K &low, K &high, K *lows, K *highs)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
#pragma unroll
    for (int flip = 1; flip < WARP; flip *= 2) {
        low = min(low, __shfl_xor_sync(ALL_LANES, low, flip));
        high = max(high, __shfl_xor_sync(ALL_LANES, high, flip));
    }
    if (lane == 0) {
        lows[warp] = low;
        highs[warp] = high;
    }
    __syncthreads();
    for (int other = 0; other < warps; other++) {
        low = min(low, lows[other]);
        high = max(high, highs[other]);
    }
}

/* What a leaf knows of its keys: none is smaller than `lowest`, and none differs from it by 2^bits or more. */
template <typename K>
struct leaf_range {
    K lowest;
    int bits;
};

/* The exact range of the keys. Every thread calls it. */
template <typename K>
static __device__ struct leaf_range<K> find_range(const K (&keys)[LEAF_KEYS], int count) {
    __shared__ K lows[WARP], highs[WARP];
    K low = (K) ~(K)0, high = 0;
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        if ((int)threadIdx.x + k * LEAF_THREADS < count) {
            low = min(low, keys[k]);
            high = max(high, keys[k]);
        }
    }
    block_extremes(low, high, lows, highs);
    int bits = 0;
    while (bits < (int)sizeof(K) * 8 && (K)(high - low) >> bits != 0)
        bits++;
    return {low, bits};
}

/* Where a bin's counter lies: four words in 36 are left out, so that a thread's own bins are whole vectors, and those of a
 * warp in different banks. */
static __device__ int
bin_slot(int bin)
{
    return bin + bin / WARP * 4;
}

/* The bins of a thread, bins [LEAF_OWN_BINS] in a row, as they lie. */
static __device__ uint4 *own_bins(uint32_t *bins)
{
    return (uint4 *)(bins + bin_slot(threadIdx.x * LEAF_OWN_BINS));
}

/* Count the keys of each bin; a key's slot and its rank in the bin go to slots[k], above and below 16 bits. What is not
 * there counts in the bin behind the last. */
template <typename K>
static __device__ void count_bins(const K (&keys)[LEAF_KEYS], int count, K lowest, int shift, uint32_t *bins,
                                  uint32_t (&slots)[LEAF_KEYS])
{
#pragma unroll
    for (int b = 0; b < LEAF_OWN_BINS / 4; b++)
        own_bins(bins)[b] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x == 0)
        bins[bin_slot(LEAF_BINS)] = 0;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        if (k * LEAF_THREADS < count) {
            const bool exists = (int)threadIdx.x + k * LEAF_THREADS < count;
            const int slot = bin_slot(exists ? (int)((K)(keys[k] - lowest) >> shift) : LEAF_BINS);
            slots[k] = (uint32_t)slot << 16 | atomicAdd(&bins[slot], 1u);
        }
    }
    __syncthreads();
}

/* Turn counts into the bins' first places. Sets a bit in `shared_bins` for each of the thread's own bins that has several
 * keys. Is there a bin in the block with more than LEAF_CROWD? */
static __device__ bool scan_bins(uint32_t *bins, int count, uint32_t *shared_bins)
{
    __shared__ uint32_t sums[LEAF_THREADS / WARP];
    uint32_t own[LEAF_OWN_BINS], sum = 0, several = 0;
    bool crowded = false;
#pragma unroll
    for (int b = 0; b < LEAF_OWN_BINS / 4; b++) {
        const uint4 four = own_bins(bins)[b];
        own[4 * b] = four.x, own[4 * b + 1] = four.y, own[4 * b + 2] = four.z, own[4 * b + 3] = four.w;
    }
#pragma unroll
    for (int b = 0; b < LEAF_OWN_BINS; b++) {
        several |= own[b] > 1 ? 1u << b : 0;
        crowded = crowded || own[b] > LEAF_CROWD;
        sum += own[b];
    }
    uint32_t place = block_sum_before(sum, sums);
#pragma unroll
    for (int b = 0; b < LEAF_OWN_BINS; b++) {
        const uint32_t of_bin = own[b];
        own[b] = place;
        place += of_bin;
    }
#pragma unroll
    for (int b = 0; b < LEAF_OWN_BINS / 4; b++)
        own_bins(bins)[b] = make_uint4(own[4 * b], own[4 * b + 1], own[4 * b + 2], own[4 * b + 3]);
    if (threadIdx.x == 0)
        bins[bin_slot(LEAF_BINS)] = (uint32_t)count;
    *shared_bins = several;
    return __syncthreads_or(crowded);
}

/* Sort the keys of those of the thread's own bins that have a bit in `several`, by insertion. */
template <typename K, typename V>
static __device__ void settle_bins(const uint32_t *bins, uint32_t several, struct leaf_places<K, V> places)
{
    for (; several != 0; several &= several - 1) {
        const int bin = threadIdx.x * LEAF_OWN_BINS + __ffs((int)several) - 1;
        const int begin = (int)bins[bin_slot(bin)], end = (int)bins[bin_slot(bin + 1)];
        for (int i = begin + 1; i < end; i++) {
            const K key = places.keys[with_gaps(i)];
            const int origin = places.origin_at(i);
            int place = i;
            for (; place > begin && places.is_behind(place - 1, key, origin); place--)
                places.put(place, places.keys[with_gaps(place - 1)], places.origin_at(place - 1));
            places.put(place, key, origin);
        }
    }
}

/* Sort places [count] by the network of rung 1. */
template <typename K, typename V>
static __device__ void leaf_bitonic(struct leaf_places<K, V> places, int count)
{
    for (int log_run = 0; 1 << log_run < count; log_run++) {
        for (int log_stride = log_run; log_stride >= 0; log_stride--) {
            __syncthreads();
            for (int t = threadIdx.x; t < LEAF_CAPACITY / 2; t += LEAF_THREADS) {
                const comparator<int> c = comparator_at(t, log_stride, log_stride == log_run);
                if (c.upper >= count)
                    continue;
                const K upper = places.keys[with_gaps(c.upper)];
                const int upper_origin = places.origin_at(c.upper);
                if (places.is_behind(c.lower, upper, upper_origin)) {
                    places.put(c.upper, places.keys[with_gaps(c.lower)], places.origin_at(c.lower));
                    places.put(c.lower, upper, upper_origin);
                }
            }
        }
    }
}

/* Fetch the values to where their keys have gone: by way of shared memory, which the keys have left. */
template <typename K, typename V>
static __device__ void move_leaf_values(const V *from, V *to, int count, struct leaf_places<K, V> places)
{
    V *values = (V *)places.keys;
    __syncthreads(); // the keys have been stored
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        const int i = threadIdx.x + k * LEAF_THREADS;
        if (i < count)
            values[with_gaps(i)] = from[i];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        const int i = threadIdx.x + k * LEAF_THREADS;
        if (i < count)
            to[i] = values[with_gaps(places.origin_at(i))];
    }
}

/* Keys, and values, from [count] in ascending order to `to` [count], which may be the same arrays; at most LEAF_CAPACITY.
 * Stable. `range` is known of the keys; with range.bits -1 nothing is. */
template <typename K, typename V>
static __device__ void leaf_sort(columns<K, V> from, columns<K, V> to, int count, struct leaf_range<K> range)
{
    extern __shared__ uint64_t shared[];
    uint32_t *bins = (uint32_t *)shared;
    K *kept = (K *)(shared + LEAF_BINS_BYTES / 8);
    const struct leaf_places<K, V> places = {
        kept, (uint16_t *)(kept + with_gaps(LEAF_CAPACITY))
    };
    K keys[LEAF_KEYS];
    uint32_t slots[LEAF_KEYS], several = 0;

    // 1. load
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        if ((int)threadIdx.x + k * LEAF_THREADS < count)
            keys[k] = from.keys[threadIdx.x + k * LEAF_THREADS];
    }

    // 2. count the bins; if they are crowded, once more with the exact range
    const bool is_exact = range.bits < 0;
    bool is_crowded = true;
    if (is_exact)
        range = find_range(keys, count);
    int shift = 0;
#pragma unroll 1
    for (int attempt = 0; attempt < 2 && is_crowded; attempt++) {
        if (attempt > 0)
            range = find_range(keys, count);
        shift = max(range.bits - LEAF_LOG_BINS, 0);
        count_bins(keys, count, range.lowest, shift, bins, slots);
        is_crowded = scan_bins(bins, count, &several);
        if (is_exact)
            break;
    }

    // 3. put the keys in the order of their bins
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        const int i = threadIdx.x + k * LEAF_THREADS;
        if (i < count)
            places.put((int)(bins[slots[k] >> 16] + (slots[k] & 0xffff)), keys[k], i);
    }
    __syncthreads();

    // 4. settle the order inside the bins; in bins of width 1 keys are equal
    if (shift > 0 || has_value<V>) {
        if (is_crowded)
            leaf_bitonic(places, count);
        else
            settle_bins(bins, several, places);
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < LEAF_KEYS; k++) {
        if ((int)threadIdx.x + k * LEAF_THREADS < count)
            to.keys[threadIdx.x + k * LEAF_THREADS] =
                places.keys[with_gaps(threadIdx.x) + k * with_gaps(LEAF_THREADS)];
    }
    if constexpr (has_value<V>)
        move_leaf_values(from.values, to.values, count, places);
}

#endif
