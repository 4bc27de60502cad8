/* The bins into which a block sort cuts the range of its keys, and how it counts the keys of each bin. */
#ifndef BINS_CUH
#define BINS_CUH

#include "kernels/cuda/engine/block.cuh"

/* The size of a block sort: how many keys it has room for, how many blocks should share a multiprocessor, and how many times four bins a
 * thread has: one or two. */
template <int THREADS_OF_BLOCK, int KEYS_OF_THREAD, int BLOCKS_TOGETHER, int VECTORS_OF_THREAD = 2>
struct block_size {
    static constexpr int THREADS = THREADS_OF_BLOCK, KEYS = KEYS_OF_THREAD, CAPACITY = THREADS * KEYS,
                         WARPS = THREADS / WARP, BLOCKS = BLOCKS_TOGETHER, VECTORS = VECTORS_OF_THREAD,
                         BINS = VECTORS * 4 * THREADS, COUNTERS = BINS + WARP;
};

/* The keys of a block lie in rows: thread t has key k THREADS + t in its row k. Are row k and all rows behind it empty? Only every sixth
 * row is asked, because the answer takes time too. */
template <typename S>
static __device__ bool is_behind(int row, int count)
{
    return row % 6 == 0 && row > 0 && row * S::THREADS >= count;
}

/* Call do_row(k) for each row in which this thread has a key. */
template <typename S, typename DO_ROW>
static __device__ void for_rows(int count, const DO_ROW &do_row)
{
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (is_behind<S>(k, count))
            break;
        if ((int)threadIdx.x + k * S::THREADS < count)
            do_row(k);
    }
}

/* A range of keys cut into parts of equal width, which can be any width. A product of 64 bits says where a key lies: its upper half is
 * the number of the part, and its lower half says where in the part. */
template <typename K>
struct even_parts {
    uint32_t low, scale; /* scale 0: there are none */
    int shift;

    __device__ bool is_known() const
    {
        return scale > 0;
    }
    /* The bits of a key that tell it from other keys of the range, less the same bits of the lowest key. */
    __device__ uint32_t distance(K key) const
    {
        return (uint32_t)(key >> shift) - low;
    }
    /* The bits of a key below its distance, up to 32 of them: a fraction of the distance's lowest bit, times 2^32. */
    __device__ uint32_t below(K key) const
    {
        return shift > 0 ? (uint32_t)((K)(key << (8 * sizeof(K) - shift)) >> (8 * sizeof(K) - 32)) : 0;
    }
};

/* All keys from low to high as one part. The width of a bin, one of 2^LOG_BINS in that part, is wrong by up to 1 / 2^8. */
template <int LOG_BINS, typename K>
static __device__ even_parts<K> parts_of_range(K low, K high)
{
    even_parts<K> parts;
    parts.shift = max(bits_of<K>(high - low) - (LOG_BINS + 8), 0);
    parts.low = (uint32_t)(low >> parts.shift);
    parts.scale = ~0u / max(parts.distance(high), 1u);
    return parts;
}

/* Bins of such a width that all of them are used, in one of those parts or in any range. Finding the bin of a key takes a
 * multiplication. */
template <typename S, typename K>
struct scaled_bins {
    static constexpr int BELOW = 32 - log2_of(S::BINS);
    even_parts<K> parts;

    scaled_bins() = default;
    __device__ scaled_bins(const even_parts<K> &parts) : parts(parts)
    {
    }
    __device__ scaled_bins(K low, K high) : parts(parts_of_range<log2_of(S::BINS)>(low, high))
    {
    }
    __device__ uint32_t operator()(K key) const
    {
        return parts.distance(key) * parts.scale >> BELOW;
    }
    /* Where in its bin a key lies, from 0 to 2^32. The bits below the distance make the answer finer. A key that they would move across
     * the border of its bin stays in front of that border. */
    __device__ uint32_t inside(K key) const
    {
        const uint32_t last = ~0u >> (32 - BELOW), at = parts.distance(key) * parts.scale & last;
        return min(at + __umulhi(parts.below(key), parts.scale), last) << (32 - BELOW);
    }
    __device__ bool are_values() const
    {
        return parts.shift == 0 && parts.scale >> BELOW > 0;
    }
};

/* ---- keys by bins -------------------------------------------------------------------------------------- */

/* The extremes of the keys. Every thread calls it. */
template <typename S, typename K>
static __device__ void find_extremes(const K (&keys)[S::KEYS], int count, K &low, K &high)
{
    __shared__ K lows[WARP], highs[WARP];
    low = (K) ~(K)0;
    high = 0;
    for_rows<S>(count, [&](int k) {
        low = smaller_key(low, keys[k]);
        high = larger_key(high, keys[k]);
    });
    block_extremes(low, high, lows, highs);
}

/* Count the keys of each bin in bins [S::BINS]. Keys that do not exist are counted behind these, in a counter for each lane: asking
 * before each step would take longer. */
template <typename S, typename K, typename BINS>
static __device__ void count_bins(const K (&keys)[S::KEYS], int count, const BINS &bin_of, uint32_t *bins)
{
    for (int i = threadIdx.x; i < S::BINS / 4; i += S::THREADS)
        ((uint4 *)bins)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (is_behind<S>(k, count))
            break;
        const uint32_t bin = bin_of(keys[k]);
        const uint32_t counter =
            (int)threadIdx.x + k * S::THREADS < count ? bin : S::BINS + threadIdx.x % WARP;
        atomicAdd(&bins[counter], 1u);
    }
    __syncthreads();
}

/* Turn counts into the first places of the bins. Returns how many keys the fullest bin has.
 *
 * A thread has four bins in a row, and four more behind the first four of all threads, so that its vectors meet no bank twice. The sums
 * of both lie in one word, one above the other. */
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
    uint32_t so_far = warp_sum_through(sum);
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

/* Count the keys in bins of their exact range. Returns how many keys the fullest bin has, or 0 if all keys are equal and there are no
 * bins. */
template <typename S, typename K>
static __device__ int count_in_range(const K (&keys)[S::KEYS], int count, scaled_bins<S, K> &bin_of,
                                     uint32_t *bins)
{
    K low, high;
    find_extremes<S>(keys, count, low, high);
    if (low == high)
        return 0;
    bin_of = {low, high};
    count_bins<S>(keys, count, bin_of, bins);
    return scan_bins<S>(bins);
}

/* Put keys [count] in the order of their bins, into places from `first` on; bins then says where each bin ends. Each key takes the next
 * place of its bin. Keeping the ranks that the count gave instead would take a register for each key, which costs more than asking again.
 * Every thread calls it. */
template <typename S, typename K>
static __device__ void place_by_bins(const K (&keys)[S::KEYS], int first, int count,
                                     const scaled_bins<S, K> &bin_of, uint32_t *bins, K *places)
{
    for_rows<S>(count, [&](int k) {
        const uint32_t place = atomicAdd(&bins[bin_of(keys[k])], 1u);
        places[with_gaps<K>(first + (int)place)] = keys[k];
    });
    __syncthreads();
}

#endif
