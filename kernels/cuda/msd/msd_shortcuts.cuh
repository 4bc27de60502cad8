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
static K *goal_of(const struct rung_job *job)
{
    const bool in_scratch = job->raw && job->raw->in_scratch && !job->raw->decode;
    return (K *)(in_scratch ? job->scratch_keys : job->keys);
}

/* The keys are in order as they came: to job->keys, if they are not there yet, as codes or as they are. */
template <typename K>
static hsort_status leave_sorted(struct cuda_engine *engine, const struct source<K> &source,
                                 struct rung_job *job)
{
    job->sorted_keys = job->keys;
    if (source.coding.encodes && !source.coding.decodes)
        return ladder_encode(engine, job);
    if (source.keys != job->keys)
        TRY_CUDA(cudaMemcpyAsync(job->keys, source.keys, (size_t)job->count * sizeof(K), cudaMemcpyDefault,
                                 engine->streams[STREAM_WORK]));
    return HSORT_OK;
}

#endif
