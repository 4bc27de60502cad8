/* One pass over keys that counts them by what a map makes of each, and notices whether they ascend or descend: what rung 8 and
 * the partition share. */
#ifndef COUNT_CUH
#define COUNT_CUH

#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/ladder/tuning.h"

/* 16 bytes of keys. */
template <typename K>
union key_vector {
    uint4 whole;
    K keys[sizeof(uint4) / sizeof(K)];
};

/* What a thread notices while it counts. */
struct notice {
    bool ascents, descents, outside;
};

template <typename K, typename MAP, typename COUNTERS>
static __device__ void count_key(K key, const MAP &map, const COUNTERS &counters, struct notice *notice)
{
    notice->outside |= map.is_outside(key);
    counters.add(map(key), 1);
}

/* The keys of a vector; together, if they are for the same bucket: in sorted input those of whole warps are, and would wait
 * for each other. */
template <typename K, typename MAP, typename COUNTERS>
static __device__ void count_vector(const key_vector<K> &vector, const MAP &map, const COUNTERS &counters,
                                    struct notice *notice)
{
    constexpr int PER = sizeof(uint4) / sizeof(K);
    uint32_t buckets[PER];
    bool are_one = true;
#pragma unroll
    for (int k = 0; k < PER; k++) {
        buckets[k] = map(vector.keys[k]);
        notice->outside |= map.is_outside(vector.keys[k]);
        are_one = are_one && buckets[k] == buckets[0];
    }
    if (are_one) {
        counters.add(buckets[0], PER);
        return;
    }
#pragma unroll
    for (int k = 0; k < PER; k++)
        counters.add(buckets[k], 1);
}

/* Count a block's share of the keys, by what `map` makes of them: whole vectors by all blocks, and what is left at both ends by
 * the first one. */
template <typename K, typename MAP, typename COUNTERS>
static __device__ void count_share(const struct coding &coding, const K *__restrict__ keys, int64_t count,
                                   const MAP &map, const COUNTERS &counters, struct notice *notice)
{
    constexpr int PER = sizeof(uint4) / sizeof(K), STRIDE = MSD_COUNT_THREADS * MSD_COUNT_VECTORS;
    const int lane = threadIdx.x % WARP;
    const int64_t front = min(count, (int64_t)(-(uintptr_t)keys % sizeof(uint4) / sizeof(K)));
    const int64_t vectors = (count - front) / PER;
    if (blockIdx.x == 0) {
        const int64_t rest = front + vectors * PER;
        for (int64_t i = threadIdx.x; i < front + count - rest; i += MSD_COUNT_THREADS) {
            const int64_t at = i < front ? i : rest + i - front;
            const K key = loaded_code(coding, keys[at]),
                    next = at + 1 < count ? loaded_code(coding, keys[at + 1]) : key;
            notice->ascents |= key < next;
            notice->descents |= key > next;
            count_key(key, map, counters, notice);
        }
    }
    const uint4 *from = (const uint4 *)(keys + front);
    for (int64_t first = (int64_t)blockIdx.x * STRIDE; first < vectors;
         first += (int64_t)gridDim.x * STRIDE) {
        const int own =
            (int)min(vectors - first, (int64_t)STRIDE) - (int)threadIdx.x; // vectors from this thread's on
        key_vector<K> loaded[MSD_COUNT_VECTORS];
#pragma unroll
        for (int v = 0; v < MSD_COUNT_VECTORS; v++) {
            if (v * MSD_COUNT_THREADS < own)
                loaded[v].whole = from[first + threadIdx.x + v * MSD_COUNT_THREADS];
        }
#pragma unroll
        for (int v = 0; v < MSD_COUNT_VECTORS; v++)
            encode_loaded(coding, loaded[v].keys);
        // their order; once both ways have been seen there is nothing more to learn
        const bool is_open =
            !__any_sync(ALL_LANES, notice->ascents) || !__any_sync(ALL_LANES, notice->descents);
#pragma unroll
        for (int v = 0; v < MSD_COUNT_VECTORS; v++) {
            if (!is_open)
                break;
            K next = __shfl_down_sync(ALL_LANES, loaded[v].keys[0], 1);
            if (v * MSD_COUNT_THREADS < own) {
                const int64_t behind = front + (first + threadIdx.x + v * MSD_COUNT_THREADS + 1) * PER;
                if (behind >= count)
                    next = loaded[v].keys[PER - 1];
                else if (lane == WARP - 1 || v * MSD_COUNT_THREADS + 1 >= own)
                    next = loaded_code(coding, keys[behind]);
#pragma unroll
                for (int k = 0; k < PER; k++) {
                    const K above = k + 1 < PER ? loaded[v].keys[k + 1] : next;
                    notice->ascents |= loaded[v].keys[k] < above;
                    notice->descents |= loaded[v].keys[k] > above;
                }
            }
        }
#pragma unroll
        for (int v = 0; v < MSD_COUNT_VECTORS; v++) {
            if (v * MSD_COUNT_THREADS < own)
                count_vector(loaded[v], map, counters, notice);
        }
    }
}

#endif
