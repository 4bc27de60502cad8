/* The first level of a large sort, and the count of its regions. Its one segment is all keys, and its buckets are called regions.
 * Regions are counted before they are scattered, if they are to lie without gaps, or if keys may be in order or of few values, so that
 * the count may spare the scatter. The count is one pass over the keys, which also notices whether they ascend or descend. */
#ifndef COUNT_CUH
#define COUNT_CUH

#include "kernels/cuda/msd/split.cuh"

/* Is some key followed by a larger one (ascents), or by a smaller one (descents)? */
struct notice {
    bool ascents, descents;
};

enum {
    COUNT_COPIES = 4, /* of each counter, so that the warps of a block do not all meet in one */
    FOUND_ROOM = 16,  /* bytes beside one for each key: the notes of the first vector are aligned */
    ALL_GROUPS = 1,   /* every group of vectors is counted */
    GROUP_VECTORS = 2 /* of a group: memory is read in no smaller units */
};

/* How many of the first `vectors` vectors are counted, if one of each EVERY groups is. */
template <int EVERY>
static __device__ int64_t counted_vectors(int64_t vectors)
{
    return EVERY == ALL_GROUPS ? vectors : vectors / (GROUP_VECTORS * EVERY) * GROUP_VECTORS;
}

/* The place of counted vector `number` among all vectors. Groups are small, because neighbours may be alike. Which one of each EVERY
 * groups is counted goes round by the golden ratio, so that a pattern that repeats at some distance is met at one place here and at
 * another there, and a long stretch of similar keys is met evenly. With EVERY = 4:
 *
 *     groups     0 1 2 3   4 5 6 7   8 9 a b   c d e f
 *     counted    0             6     8               f
 *
 * Source   Knuth, TAOCP vol. 3, 6.4, theorem S */
template <int EVERY>
static __device__ int64_t place_of_vector(int64_t number)
{
    const int64_t row = number / GROUP_VECTORS;
    const uint32_t golden = 2654435769u, group = (uint32_t)((uint64_t)((uint32_t)row * golden) * EVERY >> 32);
    return EVERY == ALL_GROUPS ? number : (row * EVERY + group) * GROUP_VECTORS + number % GROUP_VECTORS;
}

/* Count the keys that a thread holds, of which the first `own` exist. If many lanes share the bucket of lane 0, these lanes count
 * together. Whole warps call it. */
template <int KEYS>
static __device__ void count_buckets(const uint32_t (&buckets)[KEYS], int own, uint32_t *counts)
{
    const int lane = threadIdx.x % WARP;
    if (!is_hot(buckets[0], own > 0)) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            if (k < own)
                atomicAdd(&counts[buckets[k]], 1u);
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        const uint32_t first = __shfl_sync(ALL_LANES, buckets[k], 0);
        const uint32_t alike = __ballot_sync(ALL_LANES, k < own && buckets[k] == first);
        const bool is_alike = alike >> lane & 1;
        if (k < own && (!is_alike || lane == __ffs((int)alike) - 1))
            atomicAdd(&counts[buckets[k]], is_alike ? __popc(alike) : 1u);
    }
}

/* Notice whether a thread's keys, PER to a vector, go up or down, including the step to the key behind each vector. Vector v of a thread
 * is followed by vector v of the next lane. The thread has `own` vectors. behind(v, last, &next) corrects `next`, the key behind vector
 * v, which ends with `last`, if the next lane does not have it. */
template <int PER, typename K, int KEYS, typename BEHIND>
static __device__ void notice_order(const K (&keys)[KEYS], int own, const BEHIND &behind,
                                    struct notice *notice)
{
    const int lane = threadIdx.x % WARP;
#pragma unroll
    for (int v = 0; v < KEYS / PER; v++) {
        K next = of_lane(keys[v * PER], (lane + 1) % WARP);
        if (v < own) {
            behind(v, keys[v * PER + PER - 1], &next);
#pragma unroll
            for (int k = 0; k < PER; k++) {
                const K above = k + 1 < PER ? keys[v * PER + k + 1] : next;
                notice->ascents |= keys[v * PER + k] < above;
                notice->descents |= keys[v * PER + k] > above;
            }
        }
    }
}

/* How many keys lie in front of the first whole vector. */
template <typename K>
static __device__ int64_t keys_in_front(const K *keys, int64_t count)
{
    return min(count, (int64_t)(-(uintptr_t)keys % sizeof(uint4) / sizeof(K)));
}

/* Where the region of key `at` is noted in found [count + FOUND_ROOM]. The notes of a vector lie aligned, so that they are written at
 * once. */
template <typename K>
static __device__ uint8_t *found_at(uint8_t *found, const K *keys, int64_t count, int64_t at)
{
    return found + FOUND_ROOM - keys_in_front(keys, count) + at;
}

/* Note the regions of a vector's keys. */
template <int PER>
static __device__ void note_found(const uint32_t *buckets, uint8_t *found)
{
    if constexpr (PER == 4)
        *(uchar4 *)found =
            make_uchar4((uint8_t)buckets[0], (uint8_t)buckets[1], (uint8_t)buckets[2], (uint8_t)buckets[3]);
    else if constexpr (PER == 2)
        *(uchar2 *)found = make_uchar2((uint8_t)buckets[0], (uint8_t)buckets[1]);
    else
        *found = (uint8_t)buckets[0];
}

/* Count the keys before the first whole vector and behind the last one. */
template <int THREADS, typename K, typename FIRST, typename S, typename BUCKETS>
static __device__ void count_ends(const FIRST &coding, const S *__restrict__ keys, int64_t count,
                                  int64_t all, int64_t front, int64_t rest, const BUCKETS &find_buckets, uint32_t *counts,
                                  uint8_t *found, struct notice *notice)
{
    for (int64_t i = threadIdx.x; i < front + count - rest; i += THREADS) {
        const int64_t at = i < front ? i : rest + i - front;
        const K key[1] = {load_code<K>(coding, keys + at)};
        const K next = at + 1 < all ? load_code<K>(coding, keys + at + 1) : key[0];
        uint32_t bucket[1];
        notice->ascents |= key[0] < next;
        notice->descents |= key[0] > next;
        find_buckets(key, bucket);
        atomicAdd(&counts[bucket[0]], 1u);
        if (found)
            *found_at(found, keys, count, at) = (uint8_t)bucket[0];
    }
}

/* Count a block's share of keys [count], one of `blocks` shares: some whole vectors. Block 0 also counts the keys in front of all
 * vectors and behind them, which are left out if not all groups are counted. all_keys: how many keys there are up to the end of the
 * array, where another key may follow the last one that is counted. Once an ascent and a descent have been seen, nobody looks for more.
 * If groups are left out, an ascent or descent from one counted group to the next still proves that there is one among all keys. */
template <int EVERY, int THREADS, typename K, typename FIRST, typename S, typename BUCKETS>
static __device__ void count_share(const FIRST &coding, const S *__restrict__ keys, int64_t count,
                                   int64_t all_keys, int block, int blocks, const BUCKETS &find_buckets,
                                   uint32_t *counts, uint8_t *found, struct notice *notice)
{
    constexpr int PER = sizeof(uint4) / sizeof(S), VECTORS = COUNT_VECTORS,
                  STRIDE = THREADS * VECTORS;
    const int lane = threadIdx.x % WARP;
    const int64_t front = keys_in_front(keys, count);
    const int64_t all_vectors = (count - front) / PER, vectors = counted_vectors<EVERY>(all_vectors);
    if (EVERY == ALL_GROUPS && block == 0)
        count_ends<THREADS, K>(coding, keys, count, all_keys, front, front + vectors * PER, find_buckets, counts, found, notice);
    const uint4 *from = (const uint4 *)(keys + front);
    for (int64_t first = (int64_t)block * STRIDE; first < vectors; first += (int64_t)blocks * STRIDE) {
        const int left = (int)min(vectors - first, (int64_t)STRIDE) - (int)threadIdx.x;
        const int own = max(left + THREADS - 1, 0) / THREADS; // vectors of this thread
        const auto place = [&](int v) {
            return front + place_of_vector<EVERY>(first + threadIdx.x + v * THREADS) * PER;
        };
        S loaded[VECTORS * PER];
        K all[VECTORS * PER];
        uint32_t buckets[VECTORS * PER];
#pragma unroll
        for (int v = 0; v < VECTORS; v++) {
            key_vector<S> vector = {};
            if (v < own)
                vector.whole = from[place_of_vector<EVERY>(first + threadIdx.x + v * THREADS)];
#pragma unroll
            for (int k = 0; k < PER; k++)
                loaded[v * PER + k] = vector.keys[k];
        }
        const auto far = [&](int k) {
            return EVERY == ALL_GROUPS ? k / PER * THREADS * PER + k % PER
                                       : (int)(place(k / PER) - place(0)) + k % PER;
        };
        codes_of_loaded(coding, keys + place(0), far, loaded, all);
        if (!__any_sync(ALL_LANES, notice->ascents) || !__any_sync(ALL_LANES, notice->descents)) {
            notice_order<PER>(
                all, own,
                [&](int v, K last, K *next) {
                    const int64_t at = place(v) + PER;
                    if (at >= all_keys)
                        *next = last;
                    else if (lane == WARP - 1 || v * THREADS + 1 >= left)
                        *next = load_code<K>(coding, keys + at);
                },
                notice);
        }
        find_buckets(all, buckets);
        count_buckets(buckets, own * PER, counts);
        if (found) {
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                if (v < own)
                    note_found<PER>(buckets + v * PER, found_at(found, keys, count, place(v)));
            }
        }
    }
}

/* The result of the count of the first level. */
struct region_counts {
    uint32_t ascents, descents;
    uint32_t moves; /* some key is in a region that is not of one value */
    alignas(8) uint64_t keys[SPLIT_BUCKETS];
};

/* Is the region of each key noted, if somebody asks for that? Only for a tree whose regions a byte can tell: searching the tree once
 * more takes longer than reading a byte. */
template <typename K>
static __device__ bool is_worth_noting(const struct split_head<K> &split)
{
    return !split.is_linear && split.buckets <= 1 << 8;
}

/* Count the regions of keys [count]: one of each EVERY groups of vectors.
 *   counts  zero before
 *   found   [count + FOUND_ROOM] aligned to 16 bytes: the region of each key, if is_worth_noting(). NULL: nobody asks
 *   mixed   is it known that keys go up and down, and have to move? Then that is all that is noted, and nothing is counted. NULL: it is
 *           not known */
template <int EVERY, typename K, typename FIRST, typename S>
static __global__ void __launch_bounds__(COUNT_THREADS, 1)
    count_kernel(const __grid_constant__ FIRST coding, const S *__restrict__ keys, int64_t count,
                 const struct split<K> *split, struct region_counts *counts, uint8_t *found,
                 const uint32_t *mixed)
{
    __shared__ uint32_t words[COUNT_COPIES][SPLIT_BUCKETS];
    __shared__ K tree[SPLIT_BUCKETS];
    struct notice notice = {};
    for (int i = threadIdx.x; i < COUNT_COPIES * SPLIT_BUCKETS; i += COUNT_THREADS)
        (&words[0][0])[i] = 0;
    wait_for_kernels_before();
    if (mixed && *mixed) {
        if (blockIdx.x == 0 && threadIdx.x == 0)
            counts->ascents = counts->descents = counts->moves = 1;
        return;
    }
    with_split(*split, split->tree, tree, [&](const auto &find_buckets) {
        __syncthreads();
        count_share<EVERY, COUNT_THREADS, K>(coding, keys, count, count, blockIdx.x, gridDim.x, find_buckets,
                                             words[threadIdx.x / WARP % COUNT_COPIES],
                                             is_worth_noting<K>(*split) ? found : NULL, &notice);
    });
    __syncthreads();
    const bool ascends = __syncthreads_or(notice.ascents), descends = __syncthreads_or(notice.descents);
    for (int i = threadIdx.x; i < split->buckets; i += COUNT_THREADS) {
        uint64_t sum = 0;
        for (int copy = 0; copy < COUNT_COPIES; copy++)
            sum += words[copy][i];
        K value;
        if (sum == 0)
            continue;
        atomicAdd((unsigned long long *)&counts->keys[i], (unsigned long long)sum);
        if (!is_one_value<K>(*split, i, ends_of_bucket(split->splitters, i), &value))
            counts->moves = 1;
    }
    if (threadIdx.x == 0 && ascends)
        counts->ascents = 1;
    if (threadIdx.x == 0 && descends)
        counts->descents = 1;
}

#endif
