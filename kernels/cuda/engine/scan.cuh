/* Sums before each thread of a warp or of a block. */
#ifndef SCAN_CUH
#define SCAN_CUH

#include "kernels/cuda/engine/key_type.cuh"

/* The sum of the values of the lanes up to this one, including it; undefined in all but the first LANES lanes. Whole
 * warps call it. */
template <int LANES = WARP, typename T>
static __device__ T warp_sum_through(T value)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int distance = 1; distance < LANES; distance *= 2) {
        const T below = of_lane_below(value, distance);
        if (lane >= distance)
            value += below;
    }
    return value;
}

/* The sum of the values of all threads before this one. Every thread calls it; sums [warps] in shared memory
 * may be used again after the next barrier. */
template <typename T>
static __device__ T block_sum_before(T value, T *sums)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const T sum = warp_sum_through(value);
    if (lane == WARP - 1)
        sums[warp] = sum;
    __syncthreads();
    T before = sum - value;
    for (int other = 0; other < warp; other++)
        before += sums[other];
    return before;
}

/* The same for the first WARPS warps of a block; undefined in the other warps. *total: the sum of all values of those
 * WARPS warps. Every thread of the block calls it, once. WHOLE: the block has no other warps. */
template <int WARPS, bool WHOLE, typename T>
static __device__ T block_scan(T value, T *total)
{
    __shared__ T sums[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const T sum = warp_sum_through(value);
    if (lane == WARP - 1 && (WHOLE || warp < WARPS))
        sums[warp] = sum;
    __syncthreads();
    T before = sum - value;
    *total = 0;
#pragma unroll
    for (int other = 0; other < WARPS; other++) {
        if (other < warp)
            before += sums[other];
        *total += sums[other];
    }
    return before;
}

/* The sum of the values of all threads before this one; *all: the sum of all values. Every thread of a block of WARP
 * warps calls it; sums [WARP] in shared memory may be used again after the next barrier. */
template <typename T>
static __device__ T block_sum_of_warps(T value, T *sums, T *all)
{
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const T through = warp_sum_through(value);
    if (lane == WARP - 1)
        sums[warp] = through;
    __syncthreads();
    const T of_warp = sums[lane], of_warps = warp_sum_through(of_warp);
    *all = __shfl_sync(ALL_LANES, of_warps, WARP - 1);
    return __shfl_sync(ALL_LANES, of_warps - of_warp, warp) + through - value;
}

#endif
