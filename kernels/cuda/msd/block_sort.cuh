/* The last step of an MSD sort: a block sorts the keys of a bucket in shared memory.
 *
 * The range of its keys is cut into 2^11 bins or so of equal width. Counting the bins tells where each begins, so
 * that keys can be put in order of their bins at once. The few that share a bin are then put in order among themselves, by
 * rounds that compare neighbours: as many rounds as the fullest bin has keys, or until a window is in order.
 *
 *     keys                17 42 10 40 16        range 10 .. 42, bins of width 8: 10-17 18-25 26-33 34-41 42-49
 *     bin                  0  4  0  3  0
 *     bins begin at        0  3  3  3  4
 *     by bins             17 10 16 | 40 | 42    each key takes the next place of its bin, in any order
 *     round 1, (0 1)(2 3) 10 17 16 | 40 | 42
 *     round 2, (1 2)(3 4) 10 16 17 | 40 | 42
 *     round 3, (0 1)(2 3) nothing left to do, but a bin of 3 keys may need it
 *
 * Where many keys crowd into a bin, that is cut into finer ones first (crowds.cuh). */
#ifndef BLOCK_SORT_CUH
#define BLOCK_SORT_CUH

#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/msd/crowds.cuh"
#include "kernels/cuda/ladder/tuning.h"
#include <limits.h>

/* More than one in so many keys in one bin: the range is not the one that was known. */
enum { CROWDED_SHARE = 4 };

/* How many keys a block sort has room for, and how many blocks should share a multiprocessor. */
template <int THREADS_OF_BLOCK, int KEYS_OF_THREAD, int BLOCKS_TOGETHER>
struct block_size {
    static constexpr int THREADS = THREADS_OF_BLOCK, KEYS = KEYS_OF_THREAD, CAPACITY = THREADS * KEYS,
                         WARPS = THREADS / WARP, BLOCKS = BLOCKS_TOGETHER, VECTORS = 2,
                         BINS = VECTORS * 4 * THREADS, COUNTERS = BINS + WARP,
                         FINE_WORDS =
                             KEYS / 2 | 1; /* of a thread, two counters in each; odd, for the banks */
    static_assert(2 * FINE_WORDS >= KEYS && CAPACITY < 1 << 16, "a counter for each place");
};

/* The shared memory that a block sort takes. */
template <typename S, typename K>
static __host__ __device__ constexpr int block_sort_bytes()
{
    return (S::COUNTERS + S::FINE_WORDS * S::THREADS) * 4 + with_gaps<K>(S::CAPACITY) * (int)sizeof(K);
}

/* ---- bins ---------------------------------------------------------------------------------------------- */

/* The extremes of the keys. Every thread calls it. */
template <typename S, typename K>
static __device__ void find_extremes(const K (&keys)[S::KEYS], int left, K &low, K &high)
{
    __shared__ K lows[WARP], highs[WARP];
    low = (K) ~(K)0;
    high = 0;
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            low = smaller_key(low, keys[k]);
            high = larger_key(high, keys[k]);
        }
    }
    block_extremes(low, high, lows, highs);
}

/* Count the keys of each bin, bins [S::BINS]. Those that do not exist count behind, a counter for each lane: to ask before
 * each step takes longer. */
template <typename S, typename K, typename BINS>
static __device__ void count_bins(const K (&keys)[S::KEYS], int left, const BINS &bin_of, uint32_t *bins)
{
    for (int i = threadIdx.x; i < S::BINS / 4; i += S::THREADS)
        ((uint4 *)bins)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const uint32_t bin = bin_of(keys[k]);
        const uint32_t counter = k * S::THREADS < left ? bin : S::BINS + threadIdx.x % WARP;
        atomicAdd(&bins[counter], 1u);
    }
    __syncthreads();
}

/* Turn counts into the bins' first places. Returns the keys of the fullest bin.
 *
 * A thread has four bins in a row and four more behind those of all threads: vectors that meet no bank twice. The sums of
 * both lie in one word, one above the other. */
template <typename S>
static __device__ int scan_bins(uint32_t *bins)
{
    constexpr int VECTORS = S::VECTORS;
    static_assert(VECTORS <= 2 && S::CAPACITY < 1 << 16 && S::WARPS <= WARP, "halves of a word");
    __shared__ uint32_t sums[S::WARPS], fullest[S::WARPS]; // of warps
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint4 own[VECTORS];
    uint32_t sum = 0, most = 0;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        own[v] = ((uint4 *)bins)[v * S::THREADS + threadIdx.x];
        most = max(most, max(max(own[v].x, own[v].y), max(own[v].z, own[v].w)));
        sum += (own[v].x + own[v].y + own[v].z + own[v].w) << 16 * v;
    }
    uint32_t so_far = sum;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, so_far, distance);
        so_far += lane >= distance ? below : 0;
    }
    most = warp_max(most);
    if (lane == WARP - 1) {
        sums[warp] = so_far;
        fullest[warp] = most;
    }
    __syncthreads();

    const uint32_t of_warp = sums[lane % S::WARPS];
    uint32_t up_to_warp = of_warp;
#pragma unroll
    for (int distance = 1; distance < S::WARPS; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, up_to_warp, distance, S::WARPS);
        up_to_warp += lane % S::WARPS >= distance ? below : 0;
    }
    const uint32_t all = __shfl_sync(ALL_LANES, up_to_warp, S::WARPS - 1);
    const uint32_t before = so_far - sum + __shfl_sync(ALL_LANES, up_to_warp - of_warp, warp);
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const uint32_t x = v == 0 ? before & 0xffff : (before >> 16) + (all & 0xffff);
        const uint32_t y = x + own[v].x, z = y + own[v].y, w = z + own[v].z;
        ((uint4 *)bins)[v * S::THREADS + threadIdx.x] = make_uint4(x, y, z, w);
    }
    most = warp_max(fullest[lane % S::WARPS]);
    __syncthreads();
    return (int)most;
}

/* ---- the block sort ------------------------------------------------------------------------------------ */

template <typename S, bool DECODES, typename K>
static __device__ void store_places(const struct coding &coding, const K *places, K *to, int left)
{
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            const K code = places[with_gaps<K>(threadIdx.x) + k * with_gaps<K>(S::THREADS)];
            to[threadIdx.x + k * S::THREADS] = DECODES ? decode(coding.map, code) : code;
        }
    }
}

/* Keys [count] that are equal, or in order for another reason: copy every `stride`-th from `first` on. */
template <typename K>
static __device__ void copy_in_order(const struct coding &coding, const K *from, K *to, int64_t count,
                                     int64_t first, int64_t stride)
{
#pragma unroll 4
    for (int64_t i = first; i < count; i += stride)
        to[i] = stored_key(coding, loaded_code(coding, from[i]));
}

/* The shared memory of a block sort, when none is running. */
static __device__ void *block_sort_shared()
{
    extern __shared__ uint4 block_sort_memory[];
    return block_sort_memory;
}

/* Sort keys from [count] into `to` [count], which may be the same array; at most S::CAPACITY. `known` of the
 * codes: the bins to begin with; or none, and the exact range is found first. Every thread calls it; the next
 * call waits for a barrier. */
template <typename S, typename K>
static __device__ void block_sort(const struct coding &coding, const K *from, K *to, int count,
                                  even_parts<K> known)
{
    extern __shared__ uint4 block_sort_memory[];
    uint32_t *bins = (uint32_t *)block_sort_memory;
    uint32_t *fine = bins + S::COUNTERS; // [FINE_WORDS of each thread]
    K *places = (K *)(fine + S::FINE_WORDS * S::THREADS);
    K keys[S::KEYS], low, high;
    const int left = count - (int)threadIdx.x; // key k of this thread is there if k THREADS is below

    // 1. load
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left)
            keys[k] = from[threadIdx.x + k * S::THREADS];
    }
    encode_loaded(coding, keys);

    // 2. count the bins; if one has many of all keys, once more with the exact range
    scaled_bins<S, K> bin_of = known;
    int fullest = INT_MAX;
    if (known.is_known()) {
        count_bins<S>(keys, left, bin_of, bins);
        fullest = scan_bins<S>(bins);
    }
    if (fullest > max((int)CROWD, count / CROWDED_SHARE) && (!known.is_known() || !bin_of.are_values())) {
        find_extremes<S>(keys, left, low, high);
        if (low == high)
            return copy_in_order(coding, from, to, count, threadIdx.x, S::THREADS);
        bin_of = {low, high};
        count_bins<S>(keys, left, bin_of, bins);
        fullest = scan_bins<S>(bins);
    }

    // 3. put the keys in the order of their bins. Each takes the next place of its bin: to keep the ranks that counting
    // gave them takes a register for each key, which costs more than to ask again
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            const uint32_t place = atomicAdd(&bins[bin_of(keys[k])], 1u);
            places[with_gaps<K>((int)place)] = keys[k];
        }
    }
    __syncthreads();

    // 4. settle the order inside the bins; in bins of one value keys are equal
    if (!bin_of.are_values() && fullest > 1) {
        if (fullest > CROWD) {
            settle_crowds<S>(places, count, bins, fine);
            fullest = LATER_CROWD;
        }
        settle_windows<S>(places, count, fullest);
        settle_seams<S>(places, count, fullest);
    }
    if (coding.decodes)
        store_places<S, true>(coding, places, to, left);
    else
        store_places<S, false>(coding, places, to, left);
}

#endif
