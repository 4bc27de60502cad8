/* The first level of a large sort, except its count (count.cuh): where its regions begin, and what is done if the count says that keys
 * need not move. */
#ifndef FIRST_LEVEL_CUH
#define FIRST_LEVEL_CUH

#include "kernels/cuda/msd/buckets.cuh"

/* What the count says. */
enum first_verdict {
    FIRST_UNKNOWN, /* 0: not yet */
    FIRST_SORTED,
    FIRST_REVERSED,
    FIRST_SPLIT
};

/* What the host is told of a region. */
struct region_answer {
    int64_t keys;
    bool is_one_value; /* then rest_kernel() writes its keys */
};

/* List the keys of a region of one value, `filled` of them from place `begin` on, to be written anew. Every thread of the only block
 * calls it; sums [WARP] in shared memory. */
template <typename K>
static __device__ void list_fills(uint64_t filled, uint64_t begin, int region,
                                  const struct level_tables<K> &level, uint64_t *sums)
{
    const uint64_t runs = (filled + FILL_KEYS - 1) / FILL_KEYS;
    struct rest_task *rest = &level.rest[append_tasks(runs << 32, level.head, sums) >> 32];
    list_runs(rest, {0, begin, 0, REST_FILL, (uint32_t)region}, filled, FILL_KEYS);
}

/* Turn counts into places. Keys of regions of one value go nowhere.
 *   fills  regions of one value are listed to be written anew where they belong, and keys that are in order stay where they are.
 *          Otherwise regions change ranks, and what moves lies without gaps
 * One block. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    place_regions_kernel(bool fills, struct level_tables<K> level, volatile int64_t *told,
                         volatile int32_t *verdict)
{
    __shared__ uint64_t sums[2][SPLIT_BUCKETS / WARP];
    const struct region_counts *counts = level.region_counts;
    const int region = threadIdx.x;
    wait_for_kernels_before();
    const struct split_head<K> split = *level.splits;
    const struct bucket_ends<K> ends = ends_of_bucket(level.splits->splitters, region);
    const bool is_sorted = !counts->descents, is_reversed = !counts->ascents;
    const bool stay = is_sorted || is_reversed;
    const uint64_t keys = region < split.buckets ? counts->keys[region] : 0;
    uint64_t all;
    K value;
    const bool is_one = region < split.buckets && is_one_value(split, region, ends, &value);
    const uint64_t begin = block_sum_of_warps(is_one && !fills ? 0 : keys, sums[0], &all);
    set_bucket(level.buckets, region, {begin, begin, is_one ? 0 : begin + keys});
    list_fills(fills && is_one && !stay ? keys : 0, begin, region, level, sums[1]);
    told[region] = (int64_t)(keys << 1 | (is_one ? 1 : 0));
    const bool any = __syncthreads_or(keys > 0 && !is_one);
    if (region > 0)
        return;
    level.head->is_done = !any || (fills && stay);
    __threadfence_system();
    *verdict = is_sorted ? FIRST_SORTED : is_reversed ? FIRST_REVERSED : FIRST_SPLIT;
}

/* Copy keys [count]; `to` may be `from`. */
template <typename K, typename FIRST, typename LAST, typename S, typename T>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    copy_kernel(const __grid_constant__ FIRST first, const __grid_constant__ LAST last, const S *from, T *to,
                int64_t count)
{
    wait_for_kernels_before();
    copy_in_order<K>(first, last, from, to, count, (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x,
                     (int64_t)gridDim.x * MSD_WRITE_THREADS);
}

/* Reverse keys [count]; `to` may be `from`. */
template <typename K, typename FIRST, typename LAST, typename S, typename T>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    reverse_kernel(const __grid_constant__ FIRST first, const __grid_constant__ LAST last, const S *from,
                   T *to, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x, mirror = count - 1 - i;
    wait_for_kernels_before();
    if (i <= mirror) { // both are loaded before either is overwritten
        const K lower = load_code<K>(first, from + i), upper = load_code<K>(first, from + mirror);
        to[i] = stored_key(last, upper);
        to[mirror] = stored_key(last, lower);
    }
}

#endif
