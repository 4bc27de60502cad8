/* The order of keys inside the bins of a block sort. A lane has RUN places in a row in its registers, a warp a WINDOW of them; the seams
 * between windows come afterwards. Sorting each bin by a thread of its own would need no rounds, but threads with fuller bins would keep
 * the others waiting. */
#ifndef WINDOWS_CUH
#define WINDOWS_CUH

#include "kernels/cuda/engine/block.cuh"

enum {
    RUN = 8, /* places in a row that a lane settles */
    WINDOW = WARP * RUN,
    CROWD = WARP / 2, /* keys of a bin, up to which rounds settle it at once */
    ROUNDS_UNASKED = 4 /* before a window is asked whether it is in order */
};
static_assert(CROWD <= WINDOW / 2, "a bin lies in a window or around a seam");

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

/* Two rounds: every second pair of neighbours is compared, and then the other pairs, including those between two lanes. */
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

/* Settle the bins that lie in the window from `begin` on. fullest: the keys of the fullest bin of all, so most windows are in order
 * after fewer rounds. */
template <bool FULL, typename K>
static __device__ void settle_some(K *places, int begin, int count, int fullest)
{
    K run[RUN];
    load_window<FULL>(run, places, begin, count);
#pragma unroll 1
    for (int round = 0; round < fullest; round += 2) {
        if (round >= ROUNDS_UNASKED && is_window_sorted(run))
            break;
        compare_neighbours(run);
    }
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

/* Put every window in order, and with it all bins that lie in one window. */
template <typename S, typename K>
static __device__ void settle_windows(K *places, int count, int fullest)
{
    for (int begin = threadIdx.x / WARP * WINDOW; begin < count; begin += S::WARPS * WINDOW)
        settle_window(places, begin, count, fullest);
    __syncthreads();
}

/* Then put a window around each seam in order, if the bin there is out of order. Both parts of that bin are in order, so the two keys at
 * the seam tell. */
template <typename S, typename K>
static __device__ void settle_seams(K *places, int count, int fullest)
{
    for (int seam = (threadIdx.x / WARP + 1) * WINDOW; seam < count; seam += S::WARPS * WINDOW) {
        if (places[with_gaps<K>(seam - 1)] > places[with_gaps<K>(seam)])
            settle_window(places, seam - WINDOW / 2, count, fullest);
    }
    __syncthreads();
}

#endif
