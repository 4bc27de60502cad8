/* Crowds: bins of a block sort with so many keys that rounds of comparing neighbours would take too long to settle them.
 *
 *     up to SMALL_CROWD keys     a warp sorts them in its registers
 *     more                       the block cuts their range into bins of its own, with crowds of their own
 *
 *     places       3 5 | 84 81 89 84 84 85 .. | 200 ..     the bin 80 .. 99 has 600 keys, the bin 200 .. 219 has 20
 *     small        from 200 on, 20 keys
 *     large        from 84 on, 600 keys: their range is 81 .. 89, so now a bin is one value
 *
 * Each time a block cuts a range it leaves some 1 / BINS of it, so keys of 8 bytes are cut six times at most; most often
 * once.
 *
 * Rejected To cut all crowds of a block together, each into as many finer bins as it has keys: every key of the block takes
 *          part in every cut, though few are in crowds (kernels/README.md). */
#ifndef CROWDS_CUH
#define CROWDS_CUH

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

template <typename S>
static __device__ void list_if_crowd(uint32_t begin, uint32_t end, int first, struct crowd_lists<S> &crowds)
{
    const uint32_t keys = end - begin, crowd = (first + begin) | keys << 16;
    if (keys > SMALL_CROWD)
        crowds.large[atomicAdd(&crowds.large_count, 1u)] = crowd;
    else if (keys > CROWD)
        crowds.small[atomicAdd(&crowds.small_count, 1u)] = crowd;
}

/* List the crowds among bins, which have where each ends; first: the place where they begin. Every thread calls it, between
 * barriers. */
template <typename S>
static __device__ void list_crowds(const uint32_t *bins, int first, struct crowd_lists<S> &crowds)
{
#pragma unroll
    for (int v = 0; v < S::VECTORS; v++) {
        const int vector = v * S::THREADS + threadIdx.x;
        const uint4 ends = ((const uint4 *)bins)[vector];
        list_if_crowd(vector > 0 ? bins[4 * vector - 1] : 0, ends.x, first, crowds);
        list_if_crowd(ends.x, ends.y, first, crowds);
        list_if_crowd(ends.y, ends.z, first, crowds);
        list_if_crowd(ends.z, ends.w, first, crowds);
    }
}

/* ---- small crowds -------------------------------------------------------------------------------------- */

/* One step of the network between lanes: with the key of lane `partner` in the same row, or in the MIRRORED one. */
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

/* The steps inside a lane, from stride FIRST down. */
template <int FIRST, int ROWS, typename K>
static __device__ void compare_in_lane(K (&run)[ROWS])
{
#pragma unroll
    for (int stride = FIRST; stride > 0; stride /= 2) {
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            if ((j & stride) == 0)
                order_keys(run[j], run[j + stride]);
        }
    }
}

/* The bitonic network of kernels/README.md over ROWS keys in a row of each lane. */
template <int ROWS, typename K>
static __device__ void sort_rows(K (&run)[ROWS])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int size = 2; size <= ROWS; size *= 2) {
#pragma unroll
        for (int j = 0; j < ROWS; j++) {
            if (j % size < size / 2)
                order_keys(run[j], run[j / size * size + size - 1 - j % size]);
        }
#pragma unroll
        for (int stride = size / 4; stride > 0; stride /= 2) {
#pragma unroll
            for (int j = 0; j < ROWS; j++) {
                if ((j & stride) == 0)
                    order_keys(run[j], run[j + stride]);
            }
        }
    }
#pragma unroll 1
    for (int lanes = 2; lanes <= WARP; lanes *= 2) { // that become one run
        compare_lanes<true>(run, lane ^ (lanes - 1));
#pragma unroll 1
        for (int stride = lanes / 4; stride > 0; stride /= 2)
            compare_lanes<false>(run, lane ^ stride);
        compare_in_lane<ROWS / 2>(run);
    }
}

/* Sort places [keys] from `begin` on, unless all are equal. A warp calls it. */
template <int ROWS, typename K>
static __device__ void sort_small_crowd(K *places, int begin, int keys)
{
    const int lane = threadIdx.x % WARP, first = begin + lane * ROWS;
    const K pivot = places[with_gaps<K>(begin)];
    bool differ = false;
    K run[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const int key = lane + j * WARP;
        run[j] = key < keys ? places[with_gaps<K>(begin + key)] : BEHIND_ALL<K>;
        differ |= key < keys && run[j] != pivot;
    }
    if (!__any_sync(ALL_LANES, differ))
        return;
    sort_rows(run);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        if (first + j < begin + keys)
            places[with_gaps<K>(first + j)] = run[j];
    }
}

/* Sort the small crowds, a warp each at a time. */
template <typename S, typename K>
static __device__ void sort_small_crowds(K *places, const struct crowd_lists<S> &crowds)
{
    for (uint32_t i = threadIdx.x / WARP; i < crowds.small_count; i += S::WARPS) {
        const int begin = crowds.small[i] & 0xffff, keys = crowds.small[i] >> 16;
        if (keys <= WARP)
            sort_small_crowd<1>(places, begin, keys);
        else if (keys <= 2 * WARP)
            sort_small_crowd<2>(places, begin, keys);
        else if (keys <= 4 * WARP)
            sort_small_crowd<4>(places, begin, keys);
        else
            sort_small_crowd<SMALL_CROWD_ROWS>(places, begin, keys);
    }
}

/* ---- all crowds ---------------------------------------------------------------------------------------- */

/* Put a large crowd, places [count] from `begin` on, in the order of bins of its own range, and list the crowds among those.
 * Every thread calls it, behind a barrier. */
template <typename S, typename K>
static __device__ void cut_large_crowd(K *places, int begin, int count, uint32_t *bins, struct crowd_lists<S> &crowds)
{
    const int left = count - (int)threadIdx.x;
    scaled_bins<S, K> bin_of;
    K keys[S::KEYS];
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left)
            keys[k] = places[with_gaps<K>(begin + (int)threadIdx.x + k * S::THREADS)];
    }
    const int fullest = count_in_range<S>(keys, left, bin_of, bins);
    if (fullest == 0)
        return;
    place_by_bins<S>(keys, left, bin_of, bins, places, begin);
    if (fullest > CROWD && !bin_of.are_values())
        list_crowds(bins, begin, crowds);
}

/* Sort all crowds. bins: where each bin ends; they are lost. Every thread calls it, behind a barrier. */
template <typename S, typename K>
static __device__ __noinline__ void settle_crowds(K *places, uint32_t *bins, struct crowd_lists<S> &crowds)
{
    if (threadIdx.x == 0)
        crowds.small_count = crowds.large_count = 0;
    __syncthreads();
    list_crowds(bins, 0, crowds);
    for (;;) {
        __syncthreads();
        const uint32_t waiting = crowds.large_count;
        if (waiting == 0)
            break;
        const uint32_t crowd = crowds.large[waiting - 1];
        __syncthreads();
        if (threadIdx.x == 0)
            crowds.large_count = waiting - 1; // barriers of the cut come before anybody adds
        cut_large_crowd<S>(places, (int)(crowd & 0xffff), (int)(crowd >> 16), bins, crowds);
    }
    sort_small_crowds(places, crowds);
    __syncthreads();
}

#endif
