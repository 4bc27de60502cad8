/* What the bitonic rungs share: elements and where they lie, the comparators of Batcher's network, and the
 * parts of a rung that the next one takes over.
 *
 * The network is the all-ascending form of rung 1. Phase p = 1, 2, .. makes each sorted run of 2^p keys from
 * two sorted runs of 2^(p-1). Its steps have the strides 2^(p-1) down to 1; the first step is mirrored:
 *
 *     x  compares with  x ^ (2^p - 1)       first step: the bit of the stride and all below turn over
 *     x  compares with  x ^ stride          every other step
 *
 * The smaller key always goes to the smaller position. So a largest key at the end of the array would stay
 * there, and positions from `count` on need not exist ("virtual padding"): comparators that reach them are
 * left out, or meet a largest() element that is never stored. */
#ifndef BITONIC_CUH
#define BITONIC_CUH

#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/ladder/ladder.h"

/* ---- elements ------------------------------------------------------------------------------------------ */

/* What a comparator moves: a key, and its value where there is one. */
template <typename K, typename V>
struct element {
    K key;
    V value;
};
template <typename K>
struct element<K, no_value> {
    K key;
};

template <typename K, typename V>
constexpr size_t element_bytes = sizeof(K) + (has_value<V> ? sizeof(V) : 0);

/* Keys and values side by side, in global or in shared memory. */
template <typename K, typename V>
struct columns {
    K *keys;
    V *values; /* not looked at without values */

    /* The columns from element i on. */
    __device__ columns at(int64_t i) const
    {
        return {keys + i, has_value<V> ? values + i : NULL};
    }
    __device__ element<K, V> load(int64_t i) const
    {
        element<K, V> e;
        e.key = keys[i];
        if constexpr (has_value<V>)
            e.value = values[i];
        return e;
    }
    __device__ void store(int64_t i, element<K, V> e) const
    {
        keys[i] = e.key;
        if constexpr (has_value<V>)
            values[i] = e.value;
    }
};

/* The element that stands where there is no key. It never changes places with a key, not even with the largest:
 * a comparator exchanges only if the upper key is smaller. */
template <typename K, typename V>
static __device__ element<K, V> largest()
{
    element<K, V> e = {};
    e.key = (K) ~(K)0;
    return e;
}

/* ---- comparators --------------------------------------------------------------------------------------- */

template <typename K, typename V>
static __device__ element<K, V> choose(bool first, element<K, V> a, element<K, V> b)
{
    element<K, V> e;
    e.key = first ? a.key : b.key;
    if constexpr (has_value<V>)
        e.value = first ? a.value : b.value;
    return e;
}

/* A comparator with both ends in this thread. */
template <typename K, typename V>
static __device__ void compare_exchange(element<K, V> &lower, element<K, V> &upper)
{
    const element<K, V> a = lower, b = upper;
    if constexpr (sizeof(K) == 4 && !has_value<V>) { // two instructions; the general form needs three
        lower.key = min(a.key, b.key);
        upper.key = max(a.key, b.key);
    } else {
        const bool exchange = b.key < a.key;
        lower = choose(exchange, b, a);
        upper = choose(exchange, a, b);
    }
}

/* A comparator with one end in this thread and the other elsewhere. Return what this end keeps. */
template <typename K, typename V>
static __device__ element<K, V> keep_side(element<K, V> mine, element<K, V> other, bool is_lower)
{
    if constexpr (sizeof(K) == 4 && !has_value<V>) {
        mine.key = is_lower ? min(mine.key, other.key) : max(mine.key, other.key);
        return mine;
    } else if constexpr (!has_value<V>) { // of equal keys it may keep either
        return choose((other.key < mine.key) == is_lower, other, mine);
    } else { // equal keys must stay where they are, or both ends would keep the same value
        return choose(is_lower ? other.key < mine.key : mine.key < other.key, other, mine);
    }
}

template <typename I>
struct comparator {
    I lower, upper;
};

/* Comparator t of the step of stride 2^log_stride. Its upper end is the t-th position whose bit log_stride is
 * set. Its lower end is the position with that bit cleared and, if `mirrored`, the bits below turned over too. */
template <typename I>
static __device__ comparator<I> comparator_at(I t, int log_stride, bool mirrored)
{
    const I stride = (I)1 << log_stride;
    const I offset = t & (stride - 1);
    const I middle = ((t >> log_stride) << (log_stride + 1)) + stride;
    return {mirrored ? middle - 1 - offset : middle - stride + offset, middle + offset};
}

/* How many comparators a step on `count` keys has: one for each position below count whose bit log_stride is
 * set. Upper ends ascend, so these are the first comparators. */
static inline int64_t count_comparators(int64_t count, int log_stride)
{
    const int64_t stride = INT64_C(1) << log_stride;
    const int64_t rest = count & (2 * stride - 1);
    return (count >> (log_stride + 1)) * stride + (rest > stride ? rest - stride : 0);
}

/* Phases of the network for `count` keys: the least p with 2^p >= count. */
static inline int count_phases(int64_t count)
{
    int phases = 0;
    while (phases < 62 && INT64_C(1) << phases < count)
        phases++;
    return phases;
}

/* ---- sorts ---------------------------------------------------------------------------------------------- */

template <typename K, typename V>
static columns<K, V> columns_of(const struct sort_args *args)
{
    return {(K *)args->keys, (V *)args->values};
}

/* Call run() with columns of the types of `args`, and return its result. */
template <typename F>
static hsort_status with_columns(const struct sort_args *args, F run)
{
    return with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        return run(columns_of<decltype(key), decltype(value)>(args));
    });
}

extern "C" {

/* ---- parts that the next rung takes over --------------------------------------------------------------- */

/* Rung 1: one step of the network, in one launch. */
hsort_status rung_1_step(struct cuda_engine *engine, const struct sort_args *args, int log_stride,
                         bool mirrored);

/* Rung 3, on tiles of 2^rung_3_log_tile() elements. sort: all phases up to this size; merge: the steps of a
 * later phase whose strides are smaller than a tile. */
int rung_3_log_tile(const struct sort_args *args);
hsort_status rung_3_sort_tiles(struct cuda_engine *engine, const struct sort_args *args);
hsort_status rung_3_merge_tiles(struct cuda_engine *engine, const struct sort_args *args);

/* ---- the sources' experiments -------------------------------------------------------------------------- */

/* Rung 2 with blocks of 256, 512 or 1024 threads. Sorts in place. Errors HSORT_ARGUMENT. */
hsort_status rung_2_threads(struct cuda_engine *engine, struct sort_args *args, int threads);

/* Rung 4 with at most `degree` steps per pass: 1 up to rung_4_largest_degree(). Sorts in place. Errors
 * HSORT_ARGUMENT. */
int rung_4_largest_degree(const struct sort_args *args);
hsort_status rung_4_degree(struct cuda_engine *engine, struct sort_args *args, int degree);
}

#endif
