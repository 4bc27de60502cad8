/* Do keys of 4 bytes lie in lumps? If so, it takes many levels to split their codes of key and position, while rung 7 takes the same
 * time as ever.
 *
 * The codes of a small sample are put in order. If keys are spread smoothly, however unevenly over the whole range, a gap between
 * neighbours in the sample is about as wide as the next gap, and hardly ever 2^LUMP_GAP_LOG times as wide. If they are not, wide gaps
 * lie beside narrow ones:
 *
 *     gauss    10 | 24 | 31 | 45 | 51 | 60             gaps 14 7 14 6 9
 *     lumps    10 | 11 | 12 | 9012 | 9013 | 9014       gaps 1 1 9000 1 1: edges at 12 and 9012
 *
 * Keys that come in order are said to have no lumps, because the sort of codes finds out that they are in order.
 *
 * Rejected The evenness of parts of the range (split.cuh): normal and log-uniform keys lack it, and yet sort well by codes. */
#ifndef LUMPS_CUH
#define LUMPS_CUH

#include "kernels/cuda/ladder/tuning.h"
#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/msd/launch.cuh"

enum lumps_verdict { LUMPS_UNKNOWN, LUMPS_NONE, LUMPS_FOUND };

/* One block. numbering: how keys [count], at least LUMP_SAMPLE of them, become codes. */
template <typename S>
static __global__ void __launch_bounds__(LUMP_SAMPLE)
    look_for_lumps_kernel(const __grid_constant__ struct numbering<S> numbering, int64_t count,
                          volatile int32_t *verdict)
{
    __shared__ uint64_t codes[LUMP_SAMPLE], ordered[LUMP_SAMPLE];
    const int own = threadIdx.x;
    wait_for_kernels_before();
    const uint64_t code =
        load_code<uint64_t>(numbering, numbering.keys + (uint64_t)own * (uint64_t)count / LUMP_SAMPLE);
    codes[own] = code;
    __syncthreads();
    int below = 0; // no two codes are equal
#pragma unroll 8
    for (int i = 0; i < LUMP_SAMPLE; i++)
        below += codes[i] < code ? 1 : 0;
    ordered[below] = code;
    const bool descends = __syncthreads_or(own > 0 && code < codes[own - 1]);
    bool is_edge = false;
    if (0 < own && own < LUMP_SAMPLE - 1) {
        const uint64_t before = ordered[own] - ordered[own - 1], after = ordered[own + 1] - ordered[own];
        is_edge = before >> LUMP_GAP_LOG > after || after >> LUMP_GAP_LOG > before;
    }
    const int edges = __syncthreads_count(is_edge);
    if (own == 0)
        *verdict = descends && edges > LUMP_EDGES ? LUMPS_FOUND : LUMPS_NONE;
}

/* *found: do the keys [count], which are as the kernel takes them, lie in lumps? Waits for STREAM_WORK. */
template <typename S>
static hsort_status look_for_lumps(struct cuda_engine *engine, const struct numbering<S> &numbering,
                                   int64_t count, bool *found)
{
    *(volatile int32_t *)&engine->result->verdict = LUMPS_UNKNOWN;
    TRY(launch_behind(engine, "look for lumps", look_for_lumps_kernel<S>, 1, LUMP_SAMPLE, 0, numbering, count,
                      &engine->result->verdict));
    TRY(wait_for_word(engine->streams[STREAM_WORK], &engine->result->verdict, LUMPS_UNKNOWN));
    *found = *(volatile int32_t *)&engine->result->verdict == LUMPS_FOUND;
    return HSORT_OK;
}

#endif
