/* Finer bins, where the bins of a block sort are too unlike: a bin of n keys is cut into n parts of equal width. So each key has
 * a bin of its own on average, wherever in the range the keys are. What is a crowd still is listed (crowds.cuh).
 *
 *     bins              0 .. 99       100 .. 199               200 .. 299
 *     their keys        27            101 103 150 108          220 290
 *     finer bins        0 .. 99       25 wide, four of them    50 wide, two
 *     keys by them      27          | 101 103 108 | | 150 |  | 220 | 290
 *
 * There are as many finer bins as keys, so their counters lie where the keys will lie. */
#ifndef FINER_CUH
#define FINER_CUH

#include "kernels/cuda/msd/bins.cuh"
#include "kernels/cuda/msd/windows.cuh"

enum { SMALL_CROWD_ROWS = 8, SMALL_CROWD = SMALL_CROWD_ROWS * WARP };

/* In shared memory: crowds that wait. Each is its first place, and its number of keys above 16 bits. */
template <typename S>
struct alignas(16) crowd_lists {
    uint32_t small_count, large_count;
    uint32_t small[S::CAPACITY / (CROWD + 1)], large[S::CAPACITY / (SMALL_CROWD + 1) + 1];
    static_assert(S::CAPACITY < 1 << 16, "halves of a word");
};

/* List places [keys] from `begin` on, if they are a crowd. */
template <typename S>
static __device__ void list_if_crowd(uint32_t begin, uint32_t keys, struct crowd_lists<S> &crowds)
{
    const uint32_t crowd = begin | keys << 16;
    if (keys > SMALL_CROWD)
        crowds.large[atomicAdd(&crowds.large_count, 1u)] = crowd;
    else if (keys > CROWD)
        crowds.small[atomicAdd(&crowds.small_count, 1u)] = crowd;
}

/* Words of 16 bits, two to a register. */
template <int COUNT>
struct half_words {
    uint32_t pairs[(COUNT + 1) / 2] = {};

    __device__ uint32_t get(int i) const
    {
        return i % 2 ? pairs[i / 2] >> 16 : pairs[i / 2] & 0xffff;
    }
    __device__ void set(int i, uint32_t value)
    {
        pairs[i / 2] = i % 2 ? (pairs[i / 2] & 0xffff) | value << 16 : (pairs[i / 2] & 0xffff0000) | value;
    }
};

/* Turn counters [count] into the finer bins' first places from `first` on, and list the crowds. Every thread calls it, between
 * barriers. */
template <typename S>
static __device__ void scan_finer(uint32_t *counters, uint32_t first, uint32_t count,
                                  struct crowd_lists<S> &crowds)
{
    __shared__ uint32_t sums[S::WARPS];
    const uint32_t each = (count + S::THREADS - 1) / S::THREADS | 1; // odd, for the banks
    const uint32_t begin = min(threadIdx.x * each, count), end = min(begin + each, count);
    uint32_t sum = 0;
    for (uint32_t i = begin; i < end; i++)
        sum += counters[i];
    uint32_t place = first + block_sum_before(sum, sums);
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t keys = counters[i];
        counters[i] = place;
        if (keys > CROWD)
            list_if_crowd(place, keys, crowds);
        place += keys;
    }
}

/* Put keys [count] of bins, whose first places are bins [S::BINS], in the order of finer bins, into places from `first` on, and
 * list the crowds. Every thread calls it, behind a barrier. */
template <typename S, typename K>
static __device__ void place_by_finer_bins(const K (&keys)[S::KEYS], int first, int count,
                                           const scaled_bins<S, K> &bin_of, uint32_t *bins, K *places,
                                           struct crowd_lists<S> &crowds)
{
    uint32_t *counters = (uint32_t *)&places[with_gaps<K>(first)];
    half_words<S::KEYS> found; // the finer bin, then the place
    if (threadIdx.x == 0)
        bins[S::BINS] = count;
    for_rows<S>(count, [&](int k) { counters[threadIdx.x + k * S::THREADS] = 0; });
    __syncthreads();
    for_rows<S>(count, [&](int k) {
        const uint32_t bin = bin_of(keys[k]), begin = bins[bin];
        const uint32_t finer = begin + __umulhi(bin_of.inside(keys[k]), bins[bin + 1] - begin);
        atomicAdd(&counters[finer], 1u);
        found.set(k, finer);
    });
    __syncthreads();
    scan_finer(counters, first, count, crowds);
    __syncthreads();
    for_rows<S>(count, [&](int k) { found.set(k, atomicAdd(&counters[found.get(k)], 1u)); });
    __syncthreads();
    for_rows<S>(count, [&](int k) { places[with_gaps<K>((int)found.get(k))] = keys[k]; });
    __syncthreads();
}

#endif
