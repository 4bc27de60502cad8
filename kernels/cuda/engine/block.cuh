/* What the threads of a block or of a warp find out together: extremes, and sums in memory. Also small functions of numbers. */
#ifndef BLOCK_CUH
#define BLOCK_CUH

#include "kernels/cuda/engine/scan.cuh"

/* Where key i of an array of K in shared memory lies. Behind every 128 bytes one place is left out, so that strides of
 * powers of two meet different banks. */
template <typename K>
static __host__ __device__ constexpr int with_gaps(int i)
{
    return i + i / (128 / (int)sizeof(K));
}

/* Where the element at `place` of a tile lies in shared memory. Behind every 32 places one is left out. Keys that
 * differ by powers of two may have few bins, all of one size; without the gaps, a row of such keys would meet in
 * one bank. */
static __host__ __device__ constexpr int spread_place(int place)
{
    return place + place / WARP;
}

/* The types of keys have no minimum and maximum in common. */
template <typename K>
static __device__ K smaller_key(K a, K b)
{
    return b < a ? b : a;
}

template <typename K>
static __device__ K larger_key(K a, K b)
{
    return a < b ? b : a;
}

static __device__ uint32_t warp_max(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(ALL_LANES, value);
#else
    for (int flip = 1; flip < WARP; flip *= 2)
        value = max(value, __shfl_xor_sync(ALL_LANES, value, flip));
    return value;
#endif
}

static __device__ uint32_t warp_total(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL_LANES, value);
#else
    for (int flip = 1; flip < WARP; flip *= 2)
        value += __shfl_xor_sync(ALL_LANES, value, flip);
    return value;
#endif
}

/* The smallest key, or other unsigned number, of all lanes. */
template <typename K>
static __device__ K warp_min(K key)
{
    static_assert((K)-1 > 0, "halves are compared as unsigned numbers");
    if constexpr (sizeof(K) == sizeof(uint128)) {
        const uint64_t upper = (uint64_t)(key >> 64), least = warp_min(upper);
        return (K)least << 64 | warp_min(upper == least ? (uint64_t)key : UINT64_MAX);
    } else {
#if __CUDA_ARCH__ >= 800
        if constexpr (sizeof(K) == 4)
            return __reduce_min_sync(ALL_LANES, key);
        const uint32_t high = __reduce_min_sync(ALL_LANES, (uint32_t)((uint64_t)key >> 32));
        const uint32_t low =
            __reduce_min_sync(ALL_LANES, (uint64_t)key >> 32 == high ? (uint32_t)key : UINT32_MAX);
        return (K)((uint64_t)high << 32 | low);
#else
        for (int flip = 1; flip < WARP; flip *= 2)
            key = min(key, __shfl_xor_sync(ALL_LANES, key, flip));
        return key;
#endif
    }
}

/* Set `low` and `high` to the extremes of all lanes. */
template <typename K>
static __device__ void warp_extremes(K &low, K &high)
{
#pragma unroll
    for (int flip = 1; flip < WARP; flip *= 2) {
        low = smaller_key(low, of_lane(low, (threadIdx.x % WARP) ^ flip));
        high = larger_key(high, of_lane(high, (threadIdx.x % WARP) ^ flip));
    }
}

/* Set `low` and `high` to the extremes of all threads. Every thread calls it; lows and highs [WARP] in shared
 * memory may be used again after the next barrier. */
template <typename K>
static __device__ void block_extremes(K &low, K &high, K *lows, K *highs)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    warp_extremes(low, high);
    if (lane == 0) {
        lows[warp] = low;
        highs[warp] = high;
    }
    __syncthreads();
    for (int other = 0; other < warps; other++) {
        low = smaller_key(low, lows[other]);
        high = larger_key(high, highs[other]);
    }
}

/* Set `low` and `high` of the first warp to the extremes of all threads. Every thread of a block of WARPS warps calls
 * it; lows and highs [WARPS] in shared memory. */
template <int WARPS = WARP, typename K>
static __device__ void extremes_to_first_warp(K &low, K &high, K *lows, K *highs)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    warp_extremes(low, high);
    if (lane == 0) {
        lows[warp] = low;
        highs[warp] = high;
    }
    __syncthreads();
    if (warp == 0) {
        low = lows[lane % WARPS];
        high = highs[lane % WARPS];
        warp_extremes(low, high);
    }
}

/* Lower *least, in device memory, to the least number of a warp, if that is lower. INT64_MAX stands for no number, and mostly
 * all lanes have it. Whole warps call it. */
static __device__ void tell_least(int64_t mine, int64_t *least)
{
    mine = (int64_t)warp_min((uint64_t)mine);
    if (threadIdx.x % WARP == 0 && mine < INT64_MAX)
        atomicMin((long long *)least, (long long)mine);
}

/* Add the numbers of a block to *sum, in device memory, by one atomic. Every thread calls it. */
static __device__ void tell_sum(uint64_t mine, uint64_t *sum)
{
    __shared__ uint64_t sums[WARP];
    const uint64_t before = block_sum_before(mine, sums);
    if (threadIdx.x == blockDim.x - 1)
        atomicAdd((unsigned long long *)sum, (unsigned long long)(before + mine));
    __syncthreads(); // before the next call uses the memory
}

/* The logarithm of a power of two. */
static __device__ constexpr int log2_of(int power)
{
    return power == 1 ? 0 : 1 + log2_of(power / 2);
}

/* How many bits a number takes. */
template <typename K>
static __device__ int bits_of(K number)
{
    static_assert(sizeof(K) == 4 || sizeof(K) == 8 || sizeof(K) == 16, "a number of a known width");
    if constexpr (sizeof(K) == 4) {
        return 32 - __clz((int)number);
    } else if constexpr (sizeof(K) == 8) {
        return 64 - __clzll((long long)number);
    } else {
        const uint64_t upper = (uint64_t)(number >> 64);
        return upper ? 64 + bits_of<uint64_t>(upper) : bits_of<uint64_t>((uint64_t)number);
    }
}

#endif
