/* Sorting by ranks: the place of a key is the number of keys before it. That takes far more comparisons than other sorts, but no key
 * waits for another. If keys are few, and a GPU has nothing else to do, the sort takes one launch, and as long for any keys.
 *
 *     keys      5 3 9 5       before each: smaller ones, and equal ones at lower positions
 *     5         . 3 . .       place 1
 *     3         . . . .       place 0
 *     9         5 3 . 5       place 3
 *     5         5 3 . .       place 2
 *
 * A lane has a key of its own. The warps of a block share out the keys with which these are compared, and which lie in shared memory.
 *
 * A sample is sorted in this way too, in two launches: the blocks that take it sort runs of it; then each key is looked for in all runs.
 *
 *     runs      3 5 9 | 5 6 8 | 1 5 7
 *     the 5 of the second run     2 of the first one, where equal keys are before it; 0 of its own; 1 of the third one: place 3
 *
 * Source   Knuth, TAOCP vol. 3, 5.2, comparison counting. */
#ifndef RANKS_CUH
#define RANKS_CUH

#include "kernels/cuda/engine/block.cuh"
#include "kernels/cuda/msd/coding.cuh"

enum {
    RANKED = WARP,       /* keys of a block */
    RANKS_AT_A_TIME = 4, /* keys of a thread that are in shared memory together, to be compared with those */
    RUN_OF_SAMPLE = 128  /* keys */
};

/* How many of the others [WARP] come before a key. They are read 16 bytes at a time, which all lanes want at once, and TOGETHER of them
 * by unrolled code. */
template <int TOGETHER, typename K, typename IS_BEFORE>
static __device__ uint32_t count_before(const K *others, const IS_BEFORE &is_before)
{
    constexpr int PER = sizeof(uint4) / sizeof(K);
    uint32_t count = 0;
#pragma unroll 1
    for (int first = 0; first < WARP; first += TOGETHER) {
#pragma unroll
        for (int i = first; i < first + TOGETHER; i += PER) {
            key_vector<K> some;
            some.whole = *(const uint4 *)(others + i);
#pragma unroll
            for (int k = 0; k < PER; k++)
                count += is_before(some.keys[k], i + k) ? 1 : 0;
        }
    }
    return count;
}

/* How many keys of group `other`, which are the WARP keys in `others`, come before this lane's key, which is of group `group`. */
template <int TOGETHER, typename K>
static __device__ uint32_t count_before_in_group(const K *others, int other, int group, K own)
{
    const int lane = threadIdx.x % WARP;
    if (other < group)
        return count_before<TOGETHER>(others, [&](K key, int) { return key <= own; });
    if (other > group)
        return count_before<TOGETHER>(others, [&](K key, int) { return key < own; });
    return count_before<TOGETHER>(others, [&](K key, int i) { return i < lane ? key <= own : key < own; });
}

/* ---- few keys ------------------------------------------------------------------------------------------ */

/* Load some of the keys [count], from `begin` on, as they are: a few for each of THREADS threads. */
template <int THREADS, typename K>
static __device__ void load_others(const K *from, int count, int begin, K (&loaded)[RANKS_AT_A_TIME])
{
#pragma unroll
    for (int k = 0; k < RANKS_AT_A_TIME; k++) {
        const int i = begin + threadIdx.x + k * THREADS;
        loaded[k] = i < count ? from[i] : 0;
    }
}

/* Encode what was loaded, and put it where all threads can see it. This is not done any sooner, because encoding waits for the load. A
 * key that does not exist comes before no other. */
template <int THREADS, typename K>
static __device__ void show_others(const struct coding &coding, int count, int begin,
                                   K (&loaded)[RANKS_AT_A_TIME], K *others)
{
    encode_loaded(coding, loaded);
#pragma unroll
    for (int k = 0; k < RANKS_AT_A_TIME; k++) {
        const int place = threadIdx.x + k * THREADS;
        others[place] = begin + place < count ? loaded[k] : (K) ~(K)0;
    }
}

/* Put RANKED of keys `from` [count], those from number RANKED * `group` on, where they belong in `to` [count], another array. coding:
 * how keys are loaded and stored. others [RANKS_AT_A_TIME * THREADS] lies in shared memory, aligned as a vector. Every thread of a
 * block calls it. Between two calls there must be a barrier. */
template <int THREADS, typename K>
static __device__ void place_by_ranks(const struct coding &coding, const K *from, int count, int group, K *to,
                                      K *others)
{
    constexpr int AT_A_TIME = RANKS_AT_A_TIME * THREADS;
    __shared__ uint32_t ranks[RANKED];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, number = group * RANKED + lane;
    K loaded[RANKS_AT_A_TIME];
    uint32_t rank = 0;
    load_others<THREADS>(from, count, 0, loaded);
    const K own = number < count ? loaded_code(coding, from[number]) : 0;
    if (warp == 0)
        ranks[lane] = 0;
    for (int begin = 0; begin < count; begin += AT_A_TIME) {
        show_others<THREADS>(coding, count, begin, loaded, others);
        __syncthreads();
        if (begin + AT_A_TIME < count)
            load_others<THREADS>(from, count, begin + AT_A_TIME, loaded); // while these are compared
        for (int first = warp * WARP; first < min(count - begin, AT_A_TIME); first += THREADS)
            rank += count_before_in_group<WARP>(others + first, (begin + first) / WARP, group, own);
        __syncthreads();
    }
    atomicAdd(&ranks[lane], rank);
    __syncthreads();
    if (warp == 0 && number < count)
        to[ranks[lane]] = stored_key(coding, own);
}

/* ---- a sample ------------------------------------------------------------------------------------------ */

/* Where in its run this thread's key belongs. others [THREADS] lies in shared memory, aligned as a vector. Every thread of the block
 * calls it. */
template <int THREADS, typename K>
static __device__ int place_in_run(K own, K *others)
{
    static_assert(THREADS % RUN_OF_SAMPLE == 0 && RUN_OF_SAMPLE % WARP == 0, "whole runs, whole groups");
    const int run = threadIdx.x / RUN_OF_SAMPLE * RUN_OF_SAMPLE, group = threadIdx.x % RUN_OF_SAMPLE / WARP;
    uint32_t place = 0;
    others[threadIdx.x] = own;
    __syncthreads();
#pragma unroll 1
    for (int other = 0; other < RUN_OF_SAMPLE / WARP; other++)
        place += count_before_in_group<WARP / 4>(others + run + other * WARP, other, group, own); // little code: it runs once
    return (int)place;
}

/* The extremes of a sample [count] in runs: the ends of the runs tell them. */
template <typename K>
static __device__ void extremes_of_runs(const K *sample, int count, K &low, K &high)
{
    const int lane = threadIdx.x % WARP;
    low = (K) ~(K)0;
    high = 0;
    for (int first = lane * RUN_OF_SAMPLE; first < count; first += WARP * RUN_OF_SAMPLE) {
        low = smaller_key(low, sample[first]);
        high = larger_key(high, sample[min(first + RUN_OF_SAMPLE, count) - 1]);
    }
    warp_extremes(low, high);
}

/* How many keys of a run [count], which begins at `first`, come before `own`. Equal keys do if equal_are_before, because their run is an
 * earlier one. find_key() of split.cuh does the same, but not over with_gaps(): without gaps the steps of all lanes meet in few banks. */
template <typename K>
static __device__ uint32_t count_before_in_run(const K *runs, int first, int count, K own, bool equal_are_before)
{
    int before = 0;
#pragma unroll
    for (int step = RUN_OF_SAMPLE; step > 0; step /= 2) {
        if (before + step > count)
            continue;
        const K key = runs[with_gaps<K>(first + before + step - 1)];
        if (key < own || (equal_are_before && key == own))
            before += step;
    }
    return before;
}

/* Load a sample [count], of at most ROWS keys for each of THREADS threads, to where place_by_runs() looks. */
template <int THREADS, int ROWS, typename K>
static __device__ void load_runs(const K *sample, int count, K *runs)
{
    K loaded[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int i = threadIdx.x + k * THREADS;
        loaded[k] = i < count ? sample[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        const int i = threadIdx.x + k * THREADS;
        if (i < count)
            runs[with_gaps<K>(i)] = loaded[k];
    }
}

/* Put RANKED keys of a sample [count] in runs, those from number RANKED * `group` on, where they belong in `to` [count]. runs
 * [with_gaps()] lies in shared memory. Every thread of a block calls it, behind a barrier. */
template <int THREADS, typename K>
static __device__ void place_by_runs(const K *runs, int count, int group, K *to)
{
    __shared__ uint32_t ranks[RANKED];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, number = group * RANKED + lane;
    const int own_first = group * RANKED / RUN_OF_SAMPLE * RUN_OF_SAMPLE;
    const K own = number < count ? runs[with_gaps<K>(number)] : 0;
    uint32_t rank = 0;
    if (warp == 0)
        ranks[lane] = number - own_first;
    for (int first = warp * RUN_OF_SAMPLE; first < count; first += THREADS / WARP * RUN_OF_SAMPLE) {
        if (first != own_first)
            rank += count_before_in_run(runs, first, min(count - first, (int)RUN_OF_SAMPLE), own, first < own_first);
    }
    __syncthreads();
    atomicAdd(&ranks[lane], rank);
    __syncthreads();
    if (warp == 0 && number < count)
        to[ranks[lane]] = own;
}

#endif
