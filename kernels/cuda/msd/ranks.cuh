/* Sorting by ranks: the place of a key is the number of keys before it. That takes far more comparisons than other sorts, but no
 * key waits for another: where keys are few and a GPU has nothing else to do it takes one launch, and as long for any keys.
 *
 *     keys      5 3 9 5       before each: smaller ones, and equal ones at lower positions
 *     5         . 3 . .       place 1
 *     3         . . . .       place 0
 *     9         5 3 . 5       place 3
 *     5         5 3 . .       place 2
 *
 * A lane has a key of its own; the warps of a block share out the keys that these are compared with, which lie in shared memory.
 *
 * Source   Knuth, TAOCP vol. 3, 5.2, comparison counting. */
#ifndef RANKS_CUH
#define RANKS_CUH

#include "kernels/cuda/msd/block.cuh"
#include "kernels/cuda/msd/coding.cuh"

enum { RANKED = WARP, /* keys of a block */ RANK_KEYS = 1024 /* that lie in shared memory at a time */ };

/* How many of the others [WARP] come before a key. */
template <typename K, typename IS_BEFORE>
static __device__ uint32_t count_before(const K *others, const IS_BEFORE &is_before)
{
    uint32_t count = 0;
#pragma unroll
    for (int i = 0; i < WARP; i++)
        count += is_before(others[i], i) ? 1 : 0;
    return count;
}

/* Load some of keys [count], from `begin` on, a few for each of THREADS, as they are. */
template <int THREADS, typename K>
static __device__ void load_others(const K *from, int count, int begin, K (&loaded)[RANK_KEYS / THREADS])
{
#pragma unroll
    for (int k = 0; k < RANK_KEYS / THREADS; k++) {
        const int i = begin + threadIdx.x + k * THREADS;
        loaded[k] = i < count ? from[i] : 0;
    }
}

/* Put what was loaded where all can see it, encoded: not sooner, as that waits for the load. What is not there is before
 * nothing. */
template <int THREADS, typename K>
static __device__ void show_others(const struct coding &coding, int count, int begin,
                                   K (&loaded)[RANK_KEYS / THREADS], K *others)
{
    encode_loaded(coding, loaded);
#pragma unroll
    for (int k = 0; k < RANK_KEYS / THREADS; k++) {
        const int place = threadIdx.x + k * THREADS;
        others[place] = begin + place < count ? loaded[k] : (K) ~(K)0;
    }
}

/* Put keys [count] number RANKED * `group` and on where they belong in `to` [count], another array; encoded as they are loaded,
 * and as they are stored; others [RANK_KEYS] in shared memory. Every thread of a block calls it, more than once only with a barrier
 * between. */
template <int THREADS, typename K>
static __device__ void place_by_ranks(const struct coding &coding, const K *from, int count, int group, K *to,
                                      K *others)
{
    __shared__ uint32_t ranks[RANKED];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, number = group * RANKED + lane;
    const K own = number < count ? loaded_code(coding, from[number]) : 0;
    K loaded[RANK_KEYS / THREADS];
    uint32_t rank = 0;
    load_others<THREADS>(from, count, 0, loaded);
    if (warp == 0)
        ranks[lane] = 0;
    for (int begin = 0; begin < count; begin += RANK_KEYS) {
        show_others<THREADS>(coding, count, begin, loaded, others);
        __syncthreads();
        load_others<THREADS>(from, count, begin + RANK_KEYS, loaded); // while these are compared
        for (int first = warp * WARP; first < min(count - begin, (int)RANK_KEYS); first += THREADS) {
            const int other_group = (begin + first) / WARP;
            if (other_group < group)
                rank += count_before(others + first, [&](K other, int) { return other <= own; });
            else if (other_group > group)
                rank += count_before(others + first, [&](K other, int) { return other < own; });
            else
                rank += count_before(others + first,
                                     [&](K other, int i) { return i < lane ? other <= own : other < own; });
        }
        __syncthreads();
    }
    atomicAdd(&ranks[lane], rank);
    __syncthreads();
    if (warp == 0 && number < count)
        to[ranks[lane]] = stored_key(coding, own);
}

#endif
