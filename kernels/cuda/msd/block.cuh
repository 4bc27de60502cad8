/* What the threads of a block, or of a warp, find out together: extremes; and small reckoning beside. */
#ifndef BLOCK_CUH
#define BLOCK_CUH

#include "kernels/cuda/engine/scan.cuh"
#include "kernels/cuda/ladder/bitonic.cuh"

/* The last bucket of [first, last] that begins at `position` or before. */
static __device__ uint32_t find_bucket(const uint64_t *begins, uint32_t first, uint32_t last,
                                       int64_t position)
{
    while (first < last) {
        const uint32_t middle = last - (last - first) / 2;
        if (begins[middle] <= (uint64_t)position)
            first = middle;
        else
            last = middle - 1;
    }
    return first;
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

/* The logarithm of a power of two. */
static __device__ constexpr int log2_of(int power)
{
    return power == 1 ? 0 : 1 + log2_of(power / 2);
}

/* How many bits a number takes. */
template <typename K>
static __device__ int bits_of(K number)
{
    static_assert(sizeof(K) == 4 || sizeof(K) == 8, "a number of either width");
    return sizeof(K) == 4 ? 32 - __clz((int)number) : 64 - __clzll((long long)number);
}

#endif
