/* The first level of a large sort, beside its count (count.cuh): where its regions begin; and what is done where the
 * count says that keys need not move. */
#ifndef FIRST_LEVEL_CUH
#define FIRST_LEVEL_CUH

#include "kernels/cuda/msd/level.cuh"

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
    bool is_one_value; /* written by fill_kernel() */
};

/* From counts to places. fills: regions of one value, and keys that are in order, may stay where they are. One block. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    place_regions_kernel(const struct region_counts *counts, bool fills, struct level_tables<K> level,
                         volatile int64_t *told, volatile int64_t *flags, volatile int32_t *verdict)
{
    __shared__ uint64_t sums[SPLIT_BUCKETS / WARP];
    const struct split<K> &split = *level.splits;
    const int region = threadIdx.x;
    const uint64_t keys = region < split.buckets ? counts->keys[region] : 0;
    const uint64_t begin = block_sum_before(keys, sums);
    K value;
    const bool is_one = fills && region < split.buckets && is_one_value(split, region, &value);
    const bool is_sorted = !counts->descents, is_reversed = !counts->ascents;
    const bool stay = is_sorted || is_reversed;
    level.buckets[region] = {begin, begin, is_one ? 0 : begin + keys, begin};
    const uint32_t runs = is_one && !stay ? (uint32_t)((keys + FILL_KEYS - 1) / FILL_KEYS) : 0;
    list_run(level.fills, append(runs, &level.head->fill_count), begin, runs > 0 ? keys : 0, region, 0);
    told[region] = (int64_t)(keys << 1 | (is_one ? 1 : 0));
    const bool any = __syncthreads_or(keys > 0 && !is_one);
    if (region > 0)
        return;
    level.head->is_done = fills && (stay || !any);
    flags[0] = counts->ascents;
    flags[1] = counts->descents;
    __threadfence_system();
    *verdict = is_sorted ? FIRST_SORTED : is_reversed ? FIRST_REVERSED : FIRST_SPLIT;
}

/* `to` may be `from`. */
template <typename K>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    copy_kernel(const __grid_constant__ struct coding coding, const K *from, K *to, int64_t count)
{
    copy_in_order(coding, from, to, count, (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x,
                  (int64_t)gridDim.x * MSD_WRITE_THREADS);
}

/* The same. */
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

#endif
