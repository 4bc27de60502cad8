/* The order of keys inside the bins of a block sort. A lane has RUN places in a row in its registers, a warp a WINDOW of
 * them; the seams between windows come afterwards. Sorting each bin by a thread of its own needs no rounds, but threads
 * with fuller bins keep the others waiting. */
#ifndef WINDOWS_CUH
#define WINDOWS_CUH

#include "kernels/cuda/msd/block.cuh"

enum {
    RUN = 8, /* places in a row that a lane settles */
    WINDOW = WARP * RUN,
    CROWD = WARP / 2, /* keys of a bin, up to which rounds alone settle it */
    ROUNDS_BEFORE_NETWORK = 16,  /* that a crowded window may take */
    CROWD_OF_WINDOW = WINDOW / 2 /* keys of a bin that surely lies in a window or around a seam */
};

/* Where key i of an array of K in shared memory lies: one is left out behind 128 bytes, so that strides of
 * powers of two meet different banks. */
template <typename K>
static __host__ __device__ constexpr int with_gaps(int i)
{
    return i + i / (128 / (int)sizeof(K));
}

/* ---- order inside the bins ----------------------------------------------------------------------------- */

template <typename K>
static __device__ void order_keys(K &lower, K &upper)
{
    const K a = lower, b = upper;
    if constexpr (sizeof(K) == 4) {
        lower = min(a, b);
        upper = max(a, b);
    } else { // one comparison, where minimum and maximum take two
        const bool exchange = b < a;
        lower = exchange ? b : a;
        upper = exchange ? a : b;
    }
}

/* What stands behind the last key. */
template <typename K>
constexpr K BEHIND_ALL = (K) ~(K)0;

/* The keys of a window, RUN in each lane. FULL: none of its places is behind the last key. */
template <bool FULL, typename K>
static __device__ void load_window(K (&run)[RUN], const K *places, int begin, int count)
{
    const int first = begin + (int)threadIdx.x % WARP * RUN;
#pragma unroll
    for (int j = 0; j < RUN; j++) // no gap lies inside a run
        run[j] = FULL || first + j < count ? places[with_gaps<K>(first) + j] : BEHIND_ALL<K>;
}

template <bool FULL, typename K>
static __device__ void store_window(const K (&run)[RUN], K *places, int begin, int count)
{
    const int first = begin + (int)threadIdx.x % WARP * RUN;
#pragma unroll
    for (int j = 0; j < RUN; j++) {
        if (FULL || first + j < count)
            places[with_gaps<K>(first) + j] = run[j];
    }
}

/* Two rounds: neighbours are compared, every second pair, then the others, also those of two lanes. */
template <typename K>
static __device__ void compare_neighbours(K (&run)[RUN])
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int j = 0; j < RUN; j += 2)
        order_keys(run[j], run[j + 1]);
    const K below = of_lane(run[RUN - 1], (lane + WARP - 1) % WARP),
            above = of_lane(run[0], (lane + 1) % WARP);
#pragma unroll
    for (int j = 1; j < RUN - 1; j += 2)
        order_keys(run[j], run[j + 1]);
    if (lane > 0)
        run[0] = larger_key(run[0], below);
    if (lane < WARP - 1)
        run[RUN - 1] = smaller_key(run[RUN - 1], above);
}

template <typename K>
static __device__ bool is_window_sorted(const K (&run)[RUN])
{
    const int lane = threadIdx.x % WARP;
    const K above = of_lane(run[0], (lane + 1) % WARP);
    bool descends = lane < WARP - 1 && run[RUN - 1] > above;
#pragma unroll
    for (int j = 0; j + 1 < RUN; j++)
        descends |= run[j] > run[j + 1];
    return !__any_sync(ALL_LANES, descends);
}

/* The steps of a bitonic network inside a lane, from stride FIRST down. */
template <int FIRST, typename K>
static __device__ void compare_in_lane(K (&run)[RUN])
{
#pragma unroll
    for (int stride = FIRST; stride > 0; stride /= 2) {
#pragma unroll
        for (int j = 0; j < RUN; j++) {
            if ((j & stride) == 0)
                order_keys(run[j], run[j + stride]);
        }
    }
}

/* One step between lanes: with the key of lane `partner` in the same place, or MIRRORED. */
template <bool MIRRORED, typename K>
static __device__ void compare_lanes(K (&run)[RUN], int partner)
{
    const bool is_lower = (int)threadIdx.x % WARP < partner;
    K theirs[RUN];
#pragma unroll
    for (int j = 0; j < RUN; j++)
        theirs[j] = of_lane(run[MIRRORED ? RUN - 1 - j : j], partner);
#pragma unroll
    for (int j = 0; j < RUN; j++)
        run[j] = (theirs[j] < run[j]) == is_lower ? theirs[j] : run[j];
}

/* The bitonic network of kernels/README.md over a window, keys in registers: strides of three bits inside a lane. */
template <typename K>
static __device__ void sort_window(K (&run)[RUN])
{
    const int lane = threadIdx.x % WARP;
    compare_in_lane<1>(run);
#pragma unroll
    for (int j = 0; j < RUN; j += 4) {
        order_keys(run[j], run[j + 3]);
        order_keys(run[j + 1], run[j + 2]);
    }
    compare_in_lane<1>(run);
#pragma unroll
    for (int j = 0; j < RUN / 2; j++)
        order_keys(run[j], run[RUN - 1 - j]);
    compare_in_lane<2>(run);
#pragma unroll 1
    for (int lanes = 2; lanes <= WARP; lanes *= 2) { // that become one run
        compare_lanes<true>(run, lane ^ (lanes - 1));
#pragma unroll 1
        for (int stride = lanes / 4; stride > 0; stride /= 2)
            compare_lanes<false>(run, lane ^ stride);
        compare_in_lane<4>(run);
    }
}

/* Put a crowded window in order. */
template <typename K>
static __device__ void settle_crowd(K (&run)[RUN])
{
    for (int rounds = 0; !is_window_sorted(run); rounds += ROUNDS_BEFORE_NETWORK / 2) {
        if (rounds == ROUNDS_BEFORE_NETWORK)
            return sort_window(run);
#pragma unroll 1
        for (int round = 0; round < ROUNDS_BEFORE_NETWORK / 2; round += 2)
            compare_neighbours(run);
    }
}

/* Settle the bins that lie in the window from `begin` on. fullest: keys of the fullest bin. */
template <bool FULL, typename K>
static __device__ void settle_some(K *places, int begin, int count, int fullest)
{
    K run[RUN];
    load_window<FULL>(run, places, begin, count);
    if (fullest > CROWD)
        settle_crowd(run);
#pragma unroll 1
    for (int round = 0; round < fullest && fullest <= CROWD; round += 2)
        compare_neighbours(run);
    store_window<FULL>(run, places, begin, count);
}

template <typename K>
static __device__ void settle_window(K *places, int begin, int count, int fullest)
{
    if (begin + WINDOW <= count)
        settle_some<true>(places, begin, count, fullest);
    else
        settle_some<false>(places, begin, count, fullest);
}

/* Put every window in order, so that all bins are that lie in one. */
template <typename S, typename K>
static __device__ void settle_windows(K *places, int count, int fullest)
{
    for (int begin = threadIdx.x / WARP * WINDOW; begin < count; begin += S::WARPS * WINDOW)
        settle_window(places, begin, count, fullest);
    __syncthreads();
}

/* Then a window around each seam where the bin there is out of order: both its parts are in order, so the two keys at the
 * seam tell. For bins of up to CROWD_OF_WINDOW keys. */
template <typename S, typename K>
static __device__ void settle_seams(K *places, int count, int fullest)
{
    for (int seam = (threadIdx.x / WARP + 1) * WINDOW; seam < count; seam += S::WARPS * WINDOW) {
        if (places[with_gaps<K>(seam - 1)] > places[with_gaps<K>(seam)])
            settle_window(places, seam - WINDOW / 2, count, fullest);
    }
    __syncthreads();
}

/* Are the keys in order? Every thread calls it. */
template <typename S, typename K>
static __device__ bool are_places_sorted(const K *places, int count)
{
    bool descends = false;
    for (int i = threadIdx.x + 1; i < count; i += S::THREADS)
        descends |= places[with_gaps<K>(i - 1)] > places[with_gaps<K>(i)];
    return !__syncthreads_or(descends);
}

/* How many of the first `outputs` keys of a merge come from the run at `a` [a_count]; the others come from b. */
template <typename K>
static __device__ int cut_runs(const K *places, int a, int a_count, int b, int b_count, int outputs)
{
    int low = max(outputs - b_count, 0), high = min(outputs, a_count);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (places[with_gaps<K>(a + middle)] > places[with_gaps<K>(b + outputs - 1 - middle)])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Two runs that are merged, up to `middle` and up to `end`, and how far. */
struct run_pair {
    int a, b, middle, end;
};

/* The pair of runs of `length` that output `at` belongs to, where a merge stands there. */
template <typename K>
static __device__ struct run_pair find_pair(const K *places, int count, int length, int at)
{
    const int begin = min(at, count) / (2 * length) * (2 * length), middle = min(begin + length, count),
              end = min(begin + 2 * length, count), before = min(at, count) - begin;
    const int from_a = cut_runs(places, begin, middle - begin, middle, end - middle, before);
    return {begin + from_a, middle + before - from_a, middle, end};
}

/* Merge windows that are in order, two and two, until all are one. */
template <typename S, typename K>
static __device__ __noinline__ void merge_windows(K *places, int count)
{
    K run[S::KEYS];
    const int own = threadIdx.x * S::KEYS;
    for (int length = WINDOW; length < count; length *= 2) {
        __syncthreads();
        // a thread's outputs may be of two pairs
        struct run_pair now = find_pair(places, count, length, own);
        const struct run_pair next = find_pair(places, count, length, now.end);
#pragma unroll
        for (int j = 0; j < S::KEYS; j++) {
            const int at = own + j;
            if (at < count) {
                if (at == now.end)
                    now = next;
                const bool takes_b =
                    now.b < now.end &&
                    (now.a >= now.middle || places[with_gaps<K>(now.a)] > places[with_gaps<K>(now.b)]);
                run[j] = places[with_gaps<K>(takes_b ? now.b : now.a)];
                now.a += !takes_b;
                now.b += takes_b;
            }
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < S::KEYS; j++) {
            if (own + j < count)
                places[with_gaps<K>(own + j)] = run[j];
        }
    }
    __syncthreads();
}

#endif
