/* The last step of a sort of pairs: a block sorts the elements of a bucket in shared memory, stably.
 *
 * It sorts codes as block_sort.cuh does. The lowest bits of a code say where in the bucket its element was, so no two codes are equal,
 * and values find their keys again:
 *
 *     elements           7a 3b 7c        lowest key 3, so distances 4 0 4
 *     codes              4|0 0|1 4|2     sorted: 0|1 4|0 4|2
 *     keys, values       3 7 7           of the places 1 0 2: b a c, by way of shared memory
 *
 * Codes have 64 bits; or 32, if the keys have 4 bytes and their range leaves enough bits for the places. The range of keys of 8 bytes
 * may leave too few of 64 bits: then the lowest bits of the distances are left out. Most often neighbours are in order all the same,
 * because few bits are left out and a bucket has few keys. If they are not, the bucket is sorted in two rounds instead: by the bits that
 * were left out, and then, in the order that this gives, by the other bits. */
#ifndef PAIR_BLOCKS_CUH
#define PAIR_BLOCKS_CUH

#include "kernels/cuda/msd/ordered.cuh"

/* Where sorted elements go, and as what. */
template <typename K, typename T>
struct pair_goal {
    K *keys; /* NULL: nobody wants them */
    T *values;
    struct coding coding; /* decodes */
};

template <typename S>
constexpr int ORIGIN_BITS = 32 - __builtin_clz((unsigned)S::CAPACITY - 1);

/* Of a bucket's keys: the lowest one, and how many bits of a key's distance from it a code has, and leaves out. */
template <typename K>
struct pair_range {
    K low;
    int bits, left_out;

    __device__ uint64_t upper(K key) const
    {
        return (uint64_t)((K)(key - low) >> left_out);
    }
    __device__ uint64_t lower(K key) const
    {
        return (uint64_t)(K)(key - low) & ((UINT64_C(1) << left_out) - 1);
    }
};

template <typename S, typename K>
static __device__ struct pair_range<K> range_of_pairs(const K (&keys)[S::KEYS], int count) {
    K low, high;
    find_extremes<S>(keys, count, low, high);
    const int bits = bits_of<K>(high - low), left_out = max(bits - (64 - ORIGIN_BITS<S>), 0);
    return {low, bits - left_out, left_out};
}

/* The shared memory of a block. Codes, then keys, then values lie in the same places. The origins, which are the places of elements in
 * the bucket, lie where the bins were. */
template <typename S>
struct pair_memory {
    static __host__ __device__ constexpr int bytes()
    {
        static_assert(S::COUNTERS * 4 + sizeof(struct crowd_lists<S>) >= S::CAPACITY * sizeof(uint16_t),
                      "room for the places of all elements");
        return block_sort_bytes<S, uint64_t>();
    }
    static __device__ uint16_t *origins()
    {
        return (uint16_t *)block_sort_shared();
    }
    static __device__ void *places()
    {
        return (char *)block_sort_shared() + S::COUNTERS * 4 + sizeof(struct crowd_lists<S>);
    }
};

/* Where in the bucket the elements of a thread's places were. */
template <typename S>
using origins_of_thread = half_words<S::KEYS>;

/* The origins as the positions of lumps, for codes of keys of 8 bytes. Rejected The same for keys of 4 bytes: most inputs take longer
 * (kernels/README.md). */
template <typename S>
static __device__ struct lump_bits lumps_of_origins(int count)
{
    return {ORIGIN_BITS<S>, (1u << (ORIGIN_BITS<S> + 16)) / (uint32_t)count};
}

/* Sort the codes that threads hold, each of `bits` bits above an origin, and hand over each sorted code by rows: done(k, code). Every
 * thread calls it, and passes a barrier before shared memory is used again. */
template <typename S, typename C, typename DONE>
static __device__ void sort_pair_codes(const C (&codes)[S::KEYS], int count, int bits,
                                       const struct lump_bits &lumps, const DONE &done)
{
    const C all = ((C)1 << (bits + ORIGIN_BITS<S> - 1) << 1) - 1; // the shift may be by all bits
    const C *places = sort_into_places<S>(codes, count, parts_of_range<log2_of(S::BINS)>((C)0, all), lumps);
    for_rows<S>(count, [&](int k) { // codes are equal only if there is a single one, which is 0
        done(k, places ? places[with_gaps<C>(threadIdx.x) + k * with_gaps<C>(S::THREADS)] : 0);
    });
}

template <typename S, typename C>
static __device__ uint32_t origin_of_code(C code)
{
    return (uint32_t)code & ((1u << ORIGIN_BITS<S>)-1);
}

/* Call to(k, from[origin]) for each place of the result, by rows. It goes by way of shared memory: `from` is read in order, and its
 * elements are found there in any order. Every thread calls it, between barriers. */
template <typename S, typename T, typename TO>
static __device__ void take_by_origins(const T *from, int count, const origins_of_thread<S> &origins,
                                       const TO &to)
{
    T *kept = (T *)pair_memory<S>::places();
    for_rows<S>(count, [&](int k) {
        const int i = threadIdx.x + k * S::THREADS;
        kept[with_gaps<T>(i)] = from[i];
    });
    __syncthreads();
    for_rows<S>(count, [&](int k) { to(k, kept[with_gaps<T>((int)origins.get(k))]); });
}

/* Are keys [count] in order, if they are taken by the origins? Every thread calls it, between barriers. */
template <typename S, typename K>
static __device__ bool is_order_right(const K *from, int count, const origins_of_thread<S> &own)
{
    const K *kept = (const K *)pair_memory<S>::places();
    uint16_t *origins = pair_memory<S>::origins();
    bool descends = false;
    for_rows<S>(count, [&](int k) { origins[threadIdx.x + k * S::THREADS] = (uint16_t)own.get(k); });
    take_by_origins<S>(from, count, own, [&](int k, K key) {
        const int place = threadIdx.x + k * S::THREADS;
        descends |= place > 0 && kept[with_gaps<K>(origins[place - 1])] > key;
    });
    return !__syncthreads_or(descends);
}

/* Find the order of keys [count] by two rounds:
 *
 *     keys 53 52 61, two digits     first round 2|1 3|0 1|2: sorted 1|2 2|1 3|0, so origins 2 1 0
 *                                   second round, in that order, 6|0 5|1 5|2: sorted 5|1 5|2 6|0, so origins 1 0 2
 *
 * Every thread calls it, between barriers. */
template <typename S, typename K>
static __device__ __noinline__ void order_by_two_rounds(const K *from, int count,
                                                        const struct pair_range<K> &range,
                                                        origins_of_thread<S> &origins)
{
    uint16_t *first_origins = pair_memory<S>::origins();
    origins_of_thread<S> first, second;
    uint64_t codes[S::KEYS];
    for_rows<S>(count, [&](int k) {
        const int i = threadIdx.x + k * S::THREADS;
        codes[k] = range.lower(from[i]) << ORIGIN_BITS<S> | i;
    });
    sort_pair_codes<S>(codes, count, range.left_out, lumps_of_origins<S>(count),
                       [&](int k, uint64_t code) { first.set(k, origin_of_code<S>(code)); });
    for_rows<S>(count, [&](int k) {
        codes[k] = range.upper(from[first.get(k)]) << ORIGIN_BITS<S> | (threadIdx.x + k * S::THREADS);
    });
    __syncthreads();
    sort_pair_codes<S>(codes, count, range.bits, lumps_of_origins<S>(count),
                       [&](int k, uint64_t code) { second.set(k, origin_of_code<S>(code)); });
    __syncthreads();
    for_rows<S>(count, [&](int k) { first_origins[threadIdx.x + k * S::THREADS] = (uint16_t)first.get(k); });
    __syncthreads();
    for_rows<S>(count, [&](int k) { origins.set(k, first_origins[second.get(k)]); });
    __syncthreads();
}

template <typename K>
static __device__ void store_pair_key(const struct coding &coding, K *keys, int place, K code)
{
    if (keys)
        keys[place] = stored_key(coding, code);
}

template <typename S>
static __device__ void load_narrow_keys(const uint32_t *from, int count, uint32_t (&keys)[S::KEYS])
{
#pragma unroll
    for (int k = 0; k < S::KEYS; k++)
        keys[k] = (int)threadIdx.x + k * S::THREADS < count ? from[threadIdx.x + k * S::THREADS] : 0;
}

/* Sort elements whose keys have 4 bytes by codes C, which leave no bits out. Every thread calls it. */
template <typename S, typename C, typename V, typename T>
static __device__ void sort_narrow_by(const struct pair_array<const uint32_t, const V> &from,
                                      const struct pair_goal<uint32_t, T> &to, int count,
                                      const struct pair_range<uint32_t> &range, const uint32_t (&keys)[S::KEYS])
{
    C codes[S::KEYS];
    origins_of_thread<S> origins;
#pragma unroll
    for (int k = 0; k < S::KEYS; k++)
        codes[k] = (C)(keys[k] - range.low) << ORIGIN_BITS<S> | (threadIdx.x + k * S::THREADS);
    sort_pair_codes<S>(codes, count, range.bits, {}, [&](int k, C code) {
        origins.set(k, origin_of_code<S>(code));
        store_pair_key(to.coding, to.keys, threadIdx.x + k * S::THREADS,
                       range.low + (uint32_t)(code >> ORIGIN_BITS<S>));
    });
    __syncthreads();
    take_by_origins<S>(from.values, count, origins,
                       [&](int k, V value) { to.values[threadIdx.x + k * S::THREADS] = (T)value; });
}

/* The same by codes of 64 bits. This is a function of its own, after which nothing comes, so that no other code lacks the registers that
 * it takes. */
template <typename S, typename V, typename T>
static __device__ __noinline__ void sort_far_pairs(const struct pair_array<const uint32_t, const V> &from,
                                                   const struct pair_goal<uint32_t, T> &to, int count,
                                                   const struct pair_range<uint32_t> &range)
{
    uint32_t keys[S::KEYS];
    load_narrow_keys<S>(from.keys, count, keys);
    sort_narrow_by<S, uint64_t>(from, to, count, range, keys);
}

/* Sort elements `from` [count], whose keys are codes, to `to` [count], which may be the same arrays. count is at most S::CAPACITY. Every
 * thread calls it. There must be a barrier before the next call. */
template <typename S, typename V, typename T>
static __device__ void sort_pair_block(struct pair_array<const uint32_t, const V> from,
                                       struct pair_goal<uint32_t, T> to, int count)
{
    uint32_t keys[S::KEYS];
    load_narrow_keys<S>(from.keys, count, keys);
    const struct pair_range<uint32_t> range = range_of_pairs<S>(keys, count);
    if (range.bits + ORIGIN_BITS<S> > 32)
        return sort_far_pairs<S>(from, to, count, range);
    sort_narrow_by<S, uint32_t>(from, to, count, range, keys);
}

template <typename S, typename K, typename V, typename T>
static __device__ void sort_pair_block(struct pair_array<const K, const V> from, struct pair_goal<K, T> to,
                                       int count)
{
    struct pair_range<K> range;
    origins_of_thread<S> origins;
    uint64_t codes[S::KEYS];
    {
        K keys[S::KEYS];
#pragma unroll
        for (int k = 0; k < S::KEYS; k++)
            keys[k] = (int)threadIdx.x + k * S::THREADS < count ? from.keys[threadIdx.x + k * S::THREADS] : 0;
        range = range_of_pairs<S>(keys, count);
#pragma unroll
        for (int k = 0; k < S::KEYS; k++)
            codes[k] = range.upper(keys[k]) << ORIGIN_BITS<S> | (threadIdx.x + k * S::THREADS);
    }
    sort_pair_codes<S>(codes, count, range.bits, lumps_of_origins<S>(count), [&](int k, uint64_t code) {
        origins.set(k, origin_of_code<S>(code));
        if (range.left_out == 0)
            store_pair_key(to.coding, to.keys, threadIdx.x + k * S::THREADS,
                           (K)(range.low + (K)(code >> ORIGIN_BITS<S>)));
    });
    __syncthreads();
    if (range.left_out > 0) {
        if (!is_order_right<S>(from.keys, count, origins)) {
            origins_of_thread<S>
                found; // in memory, because the function writes it; the others stay in registers
            order_by_two_rounds<S>(from.keys, count, range, found);
            origins = found;
        }
        __syncthreads();
        take_by_origins<S>(from.keys, count, origins, [&](int k, K key) {
            store_pair_key(to.coding, to.keys, threadIdx.x + k * S::THREADS, key);
        });
        __syncthreads();
    }
    take_by_origins<S>(from.values, count, origins,
                       [&](int k, V value) { to.values[threadIdx.x + k * S::THREADS] = (T)value; });
}

/* ---- kernels ------------------------------------------------------------------------------------------- */

template <typename K, typename T>
static __device__ struct pair_goal<K, T> goal_from(const struct pair_goal<K, T> &goal, uint64_t first) {
    return {goal.keys ? goal.keys + first : NULL, goal.values + first, goal.coding};
}

/* Sort the usual buckets, one block for each. */
template <typename S, typename K, typename V, typename T>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    usual_pairs_kernel(const __grid_constant__ struct pair_goal<K, T> goal,
                       struct pair_array<const K, const V> from, struct level_tables<K> level)
{
    wait_for_kernels_before();
    if (blockIdx.x >= level.head->usual_count())
        return;
    const struct bucket_task<K> task = level.usual[blockIdx.x];
    const struct pair_array<const K, const V> own = {
        from.keys + task.begin, from.values + task.begin
    };
    const struct pair_goal<K, T> to = goal_from(goal, task.goal);
    sort_pair_block<S>(own, to, (int)task.count);
}

/* Copy every `stride`-th of elements [count], from `begin` on. They are in order as they are. */
template <typename K, typename V, typename T>
static __device__ void copy_pairs(const struct coding &first, struct pair_array<const K, const V> from,
                                  const struct pair_goal<K, T> &to, int64_t count, int64_t begin,
                                  int64_t stride)
{
#pragma unroll 4
    for (int64_t i = begin; i < count; i += stride) {
        if (to.keys)
            to.keys[i] = stored_key(to.coding, load_code<K>(first, from.keys + i));
        to.values[i] = from.values ? (T)from.values[i] : (T)i;
    }
}

/* Do all other tasks: sort fuller buckets, and copy those of one value. */
template <typename S, typename K, typename V, typename T>
static __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    rest_pairs_kernel(const __grid_constant__ struct pair_goal<K, T> goal,
                      struct pair_array<const K, const V> from, struct level_tables<K> level)
{
    const struct coding as_it_is = {};
    wait_for_kernels_before();
    const uint32_t listed = level.head->rest_count();
    for (uint32_t i = blockIdx.x; i < listed; i += gridDim.x) {
        const struct rest_task task = level.rest[i];
        const struct pair_array<const K, const V> own = {
            from.keys + task.begin, from.values + task.begin
        };
        const struct pair_goal<K, T> to = goal_from(goal, task.goal);
        if (task.kind == REST_SORT)
            sort_pair_block<S>(own, to, (int)task.count);
        else
            copy_pairs(as_it_is, own, to, (int64_t)task.count, threadIdx.x, S::THREADS);
        __syncthreads(); // before the next one takes the memory
    }
}

/* Copy all elements, which are in order. */
template <typename K, typename V, typename T>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    copy_pairs_kernel(const __grid_constant__ struct coding first,
                      const __grid_constant__ struct pair_goal<K, T> goal,
                      struct pair_array<const K, const V> from, int64_t count)
{
    wait_for_kernels_before();
    copy_pairs(first, from, goal, count, (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x,
               (int64_t)gridDim.x * MSD_WRITE_THREADS);
}

#endif
