/* What kernels/in_place.c asks of the GPU besides sorts and merges: to find where a merge stands after so many
 * keys, and to let two stretches of keys change places. */
#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/ladder/tuning.h"

template <typename K>
constexpr int swap_keys = by_width<K>(PASS_KEYS, PASS_KEYS, PASS_KEYS_16);

/* *cut = how many of the first `outputs` merged keys are of a, by the search along a diagonal that merge.cu pictures.
 * The answer is in [low, high]. Each turn cuts that range into CUT_THREADS pieces, and every thread looks at the
 * last key of one piece. A whole block searches, unlike in the merge itself: nothing else runs meanwhile and the host
 * waits, so what counts is the number of dependent turns, 3 for 2^30 keys, and not the number of loads. */
template <typename K>
static __global__ void __launch_bounds__(CUT_THREADS)
    cut_kernel(const K *__restrict__ a, int64_t a_count, const K *__restrict__ b, int64_t b_count,
               int64_t outputs, int64_t *cut)
{
    int64_t low = max(outputs - b_count, INT64_C(0));
    int64_t high = min(outputs, a_count);
    while (low < high) { // the same in all threads
        const int64_t piece = (high - low + CUT_THREADS - 1) / CUT_THREADS;
        const int64_t i = low + piece * ((int)threadIdx.x + 1) - 1;
        const bool before = i < high && a[i] <= b[outputs - 1 - i];
        low += piece * __syncthreads_count(before);
        high = min(high, low + piece - 1);
    }
    if (threadIdx.x == 0)
        *cut = low;
}

extern "C" hsort_status keys_cut(struct engine *base, int key_bytes, const void *a, int64_t a_count,
                                 const void *b, int64_t b_count, int64_t outputs, int64_t *from_a)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    device_scope scope(engine);
    *from_a = 0;
    TRY(kernel_takes("cut", key_bytes));
    TRY(with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        cut_kernel<<<1, CUT_THREADS, 0, stream>>>((const K *)a, a_count, (const K *)b, b_count, outputs,
                                                  &engine->result->cut);
        TRY_LAUNCH("cut");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaStreamSynchronize(stream));
    *from_a = engine->result->cut;
    return HSORT_OK;
}

template <typename K>
static __global__ void __launch_bounds__(PASS_THREADS)
    swap_kernel(K *__restrict__ a, K *__restrict__ b, int64_t count)
{
    const int64_t first = (int64_t)blockIdx.x * PASS_THREADS * swap_keys<K> + threadIdx.x;
    K from_a[swap_keys<K>], from_b[swap_keys<K>];
#pragma unroll
    for (int k = 0; k < swap_keys<K>; k++) {
        const int64_t i = first + k * PASS_THREADS;
        from_a[k] = i < count ? a[i] : 0;
        from_b[k] = i < count ? b[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < swap_keys<K>; k++) {
        const int64_t i = first + k * PASS_THREADS;
        if (i < count) {
            a[i] = from_b[k];
            b[i] = from_a[k];
        }
    }
}

extern "C" hsort_status keys_swap(struct engine *base, int key_bytes, void *a, void *b, int64_t count)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    device_scope scope(engine);
    TRY(kernel_takes("swap", key_bytes));
    if (count == 0)
        return HSORT_OK;
    return with_key_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const unsigned blocks = (unsigned)divide_up(count, PASS_THREADS * swap_keys<K>);
        swap_kernel<<<blocks, PASS_THREADS, 0, stream>>>((K *)a, (K *)b, count);
        TRY_LAUNCH("swap");
        return HSORT_OK;
    });
}
