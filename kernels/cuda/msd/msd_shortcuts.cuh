/* Rung 8 where the count of its keys says that they need no passes: they are in order, or the wrong way round, or there are so
 * few values that every bucket has one only. */
#ifndef MSD_SHORTCUTS_CUH
#define MSD_SHORTCUTS_CUH

#include "kernels/cuda/msd/msd_plan.cuh"

template <typename K>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    reverse_kernel(const __grid_constant__ struct coding coding, const K *from, K *to, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x, mirror = count - 1 - i;
    if (i <= mirror) {
        const K lower = from[i], upper = from[mirror]; // both before either is overwritten
        to[i] = stored_key(coding, loaded_code(coding, upper));
        to[mirror] = stored_key(coding, loaded_code(coding, lower));
    }
}

/* Write the keys anew, from their numbers alone: every bucket has one value. */
template <typename K>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    write_values_kernel(const __grid_constant__ struct coding coding, K *keys, int64_t count,
                        const struct plan *plan)
{
    constexpr int TILE = MSD_WRITE_THREADS * MSD_WRITE_KEYS;
    const int64_t begin = (int64_t)blockIdx.x * TILE, end = min(begin + TILE, count);
    const uint32_t first = find_bucket(plan->begins, 0, plan->window.last, begin);
    const uint32_t last = find_bucket(plan->begins, first, plan->window.last, end - 1);
    for (int64_t i = begin + threadIdx.x; i < end; i += MSD_WRITE_THREADS)
        keys[i] = stored_key(coding, (K)((K)plan->window.lowest + find_bucket(plan->begins, first, last, i)));
}

/* Where the sorted keys are wanted: what stores them last can do so anywhere. */
template <typename K>
static K *goal_of(const struct sort_args *args)
{
    const bool in_scratch = args->raw && args->raw->in_scratch && !args->raw->decode;
    return (K *)(in_scratch ? args->scratch_keys : args->keys);
}

/* The keys are in order as they came: to args->keys, if they are not there yet, as codes or as they are. */
template <typename K>
static hsort_status leave_sorted(struct cuda_engine *engine, const struct source<K> &source,
                                 struct sort_args *args)
{
    args->sorted_keys = args->keys;
    if (source.coding.encodes && !source.coding.decodes)
        return ladder_encode(engine, args);
    if (source.keys != args->keys)
        TRY_CUDA(cudaMemcpyAsync(args->keys, source.keys, (size_t)args->count * sizeof(K), cudaMemcpyDefault,
                                 engine->streams[STREAM_WORK]));
    return HSORT_OK;
}

#endif
