/* Crowds: bins of a block sort with so many keys that rounds of comparing neighbours would take too long to settle them.
 *
 *     up to SMALL_CROWD keys     a warp sorts them in its registers; by their lowest words only, if all bits above these are the same
 *     more                       the block cuts their range into bins of its own, with crowds of their own
 *
 *     keys      3 5 | 84 81 89 84 84 85 .. | 200 211 203 ..      the bin 80 .. 99 has 600 keys, the bin 200 .. 219 has 20
 *     small     places 602 to 621
 *     large     places 2 to 601; their range is 81 .. 89, so now a bin is one value
 *
 * Each cut leaves about 1 / BINS of a range, so keys of 8 bytes are cut at most six times, and most often once.
 *
 * Rejected Cutting all crowds of a block together, each into as many finer bins as it has keys: every key of the block takes part in
 *          every cut, although few keys are in crowds (kernels/README.md). */
#ifndef CROWDS_CUH
#define CROWDS_CUH

#include "kernels/cuda/msd/finer.cuh"

/* ---- small crowds -------------------------------------------------------------------------------------- */

/* One step of the network between lanes: compare with the key of lane `partner` in the same row, or in the mirrored row if MIRRORED. */
template <bool MIRRORED, int ROWS, typename K>
static __device__ void compare_lanes(K (&run)[ROWS], int partner)
{
    const bool is_lower = (int)threadIdx.x % WARP < partner;
    K theirs[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        theirs[j] = of_lane(run[MIRRORED ? ROWS - 1 - j : j], partner);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        run[j] = (theirs[j] < run[j]) == is_lower ? theirs[j] : run[j];
}

/* The steps inside a lane, from stride `first` on, each half as wide as the step before. */
template <int ROWS, typename K>
static __device__ void compare_in_lane(K (&run)[ROWS], int first)
{
#pragma unroll
    for (int stride = ROWS / 2; stride > 0; stride /= 2) {
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            if (stride <= first && (j & stride) == 0)
                order_keys(run[j], run[j + stride]);
        }
    }
}

/* The bitonic network of kernels/README.md over the keys of a warp: ROWS in a row in each lane. */
template <int ROWS, typename K>
static __device__ void order_rows(K (&run)[ROWS])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int size = 2; size <= ROWS; size *= 2) {
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            if (j % size < size / 2)
                order_keys(run[j], run[j / size * size + size - 1 - j % size]);
        }
        compare_in_lane(run, size / 4);
    }
#pragma unroll 1
    for (int lanes = 2; lanes <= WARP; lanes *= 2) { // lanes that become one run
        compare_lanes<true>(run, lane ^ (lanes - 1));
#pragma unroll 1
        for (int stride = lanes / 4; stride > 0; stride /= 2)
            compare_lanes<false>(run, lane ^ stride);
        compare_in_lane(run, ROWS / 2);
    }
}

/* The lowest word of a key in shared memory, or all of it. */
template <typename WORD, typename K>
static __device__ WORD &low_word(K &key)
{
    return *(WORD *)&key;
}

/* Sort places [keys] from `begin` on by their lowest words; all bits above these are the same. A warp calls it. */
template <typename WORD, int ROWS, typename K>
static __device__ void sort_rows_of_crowd(K *places, int begin, int keys)
{
    const int lane = threadIdx.x % WARP, first = begin + lane * ROWS;
    WORD run[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int key = lane + j * WARP;
        run[j] = key < keys ? low_word<WORD>(places[with_gaps<K>(begin + key)]) : BEHIND_ALL<WORD>;
    }
    order_rows(run);
    __syncwarp(); // all have read before any writes
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        if (first + j < begin + keys)
            low_word<WORD>(places[with_gaps<K>(first + j)]) = run[j];
    }
}

template <typename WORD, typename K>
static __device__ void sort_small_crowd_by(K *places, int begin, int keys)
{
    if (keys <= WARP)
        sort_rows_of_crowd<WORD, 1>(places, begin, keys);
    else if (keys <= 2 * WARP)
        sort_rows_of_crowd<WORD, 2>(places, begin, keys);
    else if (keys <= 4 * WARP)
        sort_rows_of_crowd<WORD, 4>(places, begin, keys);
    else
        sort_rows_of_crowd<WORD, SMALL_CROWD_ROWS>(places, begin, keys);
}

/* Sort places [keys] from `begin` on, unless all are equal. A warp calls it. */
template <typename K>
static __device__ void sort_small_crowd(K *places, int begin, int keys)
{
    const K pivot = places[with_gaps<K>(begin)];
    K differ = 0;
    for (int key = threadIdx.x % WARP; key < keys; key += WARP)
        differ |= places[with_gaps<K>(begin + key)] ^ pivot;
    if (!__any_sync(ALL_LANES, differ != 0))
        return;
    if (sizeof(K) > sizeof(uint32_t) && __any_sync(ALL_LANES, differ > UINT32_MAX))
        sort_small_crowd_by<K>(places, begin, keys);
    else
        sort_small_crowd_by<uint32_t>(places, begin, keys);
}

/* Sort the small crowds, a warp each at a time. */
template <typename S, typename K>
static __device__ void sort_small_crowds(K *places, const struct crowd_lists<S> &crowds)
{
    for (uint32_t i = threadIdx.x / WARP; i < crowds.small_count; i += S::WARPS)
        sort_small_crowd(places, crowds.small[i] & 0xffff, crowds.small[i] >> 16);
}

/* ---- all crowds ---------------------------------------------------------------------------------------- */

/* List the bins that are crowds. bins [CUT::BINS] has their first places, counted from `first`, where the keys [count] of the bins
 * begin. Every thread calls it. */
template <typename CUT, typename S>
static __device__ void list_crowds(const uint32_t *bins, int first, int count, struct crowd_lists<S> &crowds)
{
    for (int i = threadIdx.x; i < CUT::BINS; i += CUT::THREADS) {
        const uint32_t begin = bins[i], end = i + 1 < CUT::BINS ? bins[i + 1] : (uint32_t)count;
        list_if_crowd((uint32_t)first + begin, end - begin, crowds);
    }
}

/* What suffices to cut most large crowds: a few rows, and half of the bins. */
template <typename S>
using size_of_few = block_size<S::THREADS, 4, S::BLOCKS, 1>;

/* Put a large crowd, places [count] from `first` on, in the order of bins of its own range, and list the crowds among these bins. Every
 * thread calls it, behind a barrier. Rejected Finer bins here as well: the range is narrow, so hardly fewer crowds are left. */
template <typename CUT, typename S, typename K>
static __device__ void cut_large_crowd(K *places, int first, int count, uint32_t *bins,
                                       struct crowd_lists<S> &crowds)
{
    scaled_bins<CUT, K> bin_of;
    K keys[CUT::KEYS];
    for_rows<CUT>(
        count, [&](int k) { keys[k] = places[with_gaps<K>(first + (int)threadIdx.x + k * CUT::THREADS)]; });
    const int fullest = count_in_range<CUT>(keys, count, bin_of, bins);
    if (fullest == 0)
        return;
    if (fullest > CROWD && !bin_of.are_values()) {
        list_crowds<CUT>(bins, first, count, crowds);
        __syncthreads(); // before places are taken from the bins
    }
    place_by_bins<CUT>(keys, first, count, bin_of, bins, places);
}

/* Sort all crowds that are listed. bins: memory for the bins of the cuts. Every thread calls it, behind a barrier. */
template <typename S, typename K>
static __device__ __noinline__ void settle_crowds(K *places, uint32_t *bins, struct crowd_lists<S> &crowds)
{
    for (;;) {
        const uint32_t waiting = crowds.large_count;
        if (waiting == 0)
            break;
        const uint32_t crowd = crowds.large[waiting - 1];
        __syncthreads();
        if (threadIdx.x == 0)
            crowds.large_count = waiting - 1; // barriers of the cut come before anybody adds
        const int first = (int)(crowd & 0xffff), count = (int)(crowd >> 16);
        if (count <= size_of_few<S>::CAPACITY)
            cut_large_crowd<size_of_few<S>>(places, first, count, bins, crowds);
        else
            cut_large_crowd<S>(places, first, count, bins, crowds);
        __syncthreads();
    }
    sort_small_crowds(places, crowds);
    __syncthreads();
}

#endif
