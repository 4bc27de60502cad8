/* Counting values, the kernels (kernels/cuda/README.md, "Few distinct values").
 *
 * The table lies in the L2 cache, and a key there costs a load and an atomic addition, which is what limits
 * the count. So each block has a cache in shared memory for the values that come first; frequent values come
 * early. Here with a cache of 3 places and buckets of 2:
 *
 *     keys of a block       7 7 3 7 9 3 7 5 ...
 *     cache                 7: 4 keys    3: 2    (free)        9 belongs where 3 is, 5 where 7 is: they miss
 *     table   bucket 0      9: 1    (free)
 *             bucket 1      5: 1    (free)                     at the end each block adds its cache to the table
 *
 * A bucket is one sector of memory, so that a value is mostly found by one load; where it is full, the next
 * one takes more. Where nearly all codes lie in a short window, as whole numbers do, the table has a counter
 * for each of them in addition, which needs no look at a code; only codes outside the window go to the
 * buckets. */
#ifndef VALUES_CUH
#define VALUES_CUH

#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/msd/block.cuh"
#include "kernels/cuda/ladder/tuning.h"

enum {
    VALUES_BUCKET = 4, /* places */
    SUMS_CHUNK = SUMS_THREADS * SUMS_OWN,
    SUMS_CHUNKS = (1 << ENGINE_VALUES_LOG_MAX) / SUMS_CHUNK
};
static_assert((int)SUMS_CHUNKS <= (int)SUMS_THREADS, "a thread for each chunk");

#define FREE_PLACE (~UINT64_C(0)) /* in place of a code; keys with this code have a counter of their own */

/* What the workspace begins with. */
struct value_header {
    uint64_t low, width;          /* of the window: codes low .. low + width - 1; width 0: there is none */
    uint64_t largest;             /* keys with the code FREE_PLACE */
    uint64_t listed;              /* values, by the last list of them */
    uint64_t full;                /* something found no place */
    const uint64_t *sorted;       /* codes, once they are in order */
    uint64_t chunks[SUMS_CHUNKS]; /* keys of a chunk of values */
};

struct value_buckets {
    uint64_t *codes, *keys; /* [VALUES_BUCKET * (last + 1)] */
    uint32_t last;
};

/* The workspace, as the kernels get it. Arrays [2^log], but for begins, which has one more. */
struct counting_table {
    struct value_header *header;
    struct value_buckets buckets;
    uint64_t *window;    /* keys of the window's codes */
    uint64_t low, width; /* as in the header; the count gets them, the others ask with_window() */
    uint64_t *sorted_codes, *sorted_keys, *begins; /* of values in order */

    __device__ bool is_full() const
    {
        return *(volatile uint64_t *)&header->full != 0;
    }
};

/* The table with its window, which the host would have to fetch first. */
static __device__ struct counting_table with_window(struct counting_table table)
{
    table.low = table.header->low;
    table.width = table.header->width;
    return table;
}

static __device__ uint32_t hash_of_code(uint64_t code)
{
    uint64_t hash = (code ^ code >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(hash >> 32);
}

static __device__ void add_to_counter(uint64_t *counter, uint64_t keys)
{
    atomicAdd((unsigned long long *)counter, (unsigned long long)keys);
}

/* The codes of a bucket. */
struct bucket_codes {
    uint64_t at[VALUES_BUCKET];

    /* The place of a code; -1 if it is not there. */
    __device__ int find(uint64_t code) const
    {
        int place = -1;
#pragma unroll
        for (int k = 0; k < VALUES_BUCKET; k++)
            place = at[k] == code ? k : place;
        return place;
    }
};

static __device__ struct bucket_codes load_bucket(const struct value_buckets &buckets, uint32_t bucket)
{
    static_assert(VALUES_BUCKET * sizeof(uint64_t) == 2 * sizeof(ulonglong2), "a bucket is two loads");
    const ulonglong2 *from = (const ulonglong2 *)(buckets.codes + bucket * VALUES_BUCKET);
    const ulonglong2 lower = __ldcg(from), upper = __ldcg(from + 1);
    return {{lower.x, lower.y, upper.x, upper.y}};
}

/* Add keys of one value to the buckets, from bucket `bucket` on. False: there is no place. Not inlined, as
 * most keys find their place at once; and by value, as what is passed by reference is loaded again and
 * again. */
static __device__ __noinline__ bool add_to_buckets(struct value_buckets buckets, uint64_t code,
                                                   uint32_t bucket, uint64_t keys)
{
    for (int probe = 0; probe < VALUES_PROBES; probe++, bucket = (bucket + 1) & buckets.last) {
        const struct bucket_codes codes = load_bucket(buckets, bucket);
        int place = codes.find(code);
#pragma unroll
        for (int k = 0; k < VALUES_BUCKET; k++) {
            if (place >= 0 || codes.at[k] != FREE_PLACE)
                continue;
            const uint64_t there =
                atomicCAS((unsigned long long *)&buckets.codes[bucket * VALUES_BUCKET + k], FREE_PLACE, code);
            place = there == FREE_PLACE || there == code ? k : place;
        }
        if (place >= 0) {
            add_to_counter(&buckets.keys[bucket * VALUES_BUCKET + place], keys);
            return true;
        }
    }
    return false;
}

/* Add keys of one value to wherever it is counted. */
static __device__ void add_value(const struct counting_table &table, uint64_t code, uint64_t keys)
{
    if (code - table.low < table.width)
        add_to_counter(&table.window[code - table.low], keys);
    else if (code == FREE_PLACE)
        add_to_counter(&table.header->largest, keys);
    else if (!add_to_buckets(table.buckets, code, hash_of_code(code) & table.buckets.last, keys))
        table.header->full = 1;
}

/* ---- the count ----------------------------------------------------------------------------------------- */

/* A block's cache, in shared memory. A place whose code is NONE is free; keys with this code do not come
 * here. */
template <typename K>
struct value_cache {
    K *codes;
    uint32_t *keys;
    int log;

    static constexpr K NONE = (K) ~(K)0;

    /* Count a key, if its value is here or finds a free place. */
    __device__ bool count(K code, uint32_t hash) const
    {
        const uint32_t place = hash >> (32 - log);
        K there = codes[place];
        if (there == NONE)
            there = claim(&codes[place], code);
        if (there != NONE && there != code)
            return false;
        atomicAdd(&keys[place], 1u);
        return true;
    }
    static __device__ uint32_t claim(uint32_t *place, uint32_t code)
    {
        return atomicCAS(place, NONE, code);
    }
    static __device__ uint64_t claim(uint64_t *place, uint64_t code)
    {
        return atomicCAS((unsigned long long *)place, NONE, code);
    }
};

template <typename K>
static __host__ __device__ constexpr int cache_bytes(int log)
{
    return (int)(sizeof(K) + sizeof(uint32_t)) << log;
}

/* Count keys that the cache has not in the buckets: those [KEYS] whose bit is set. Loads for all are under
 * way together. */
template <int KEYS, typename K>
static __device__ void count_in_buckets(const K *codes, const uint32_t (&hashes)[KEYS], uint32_t missed,
                                        const struct counting_table &table)
{
    struct bucket_codes there[KEYS];
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (missed >> k & 1)
            there[k] = load_bucket(table.buckets, hashes[k] & table.buckets.last);
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (!(missed >> k & 1))
            continue;
        const uint32_t bucket = hashes[k] & table.buckets.last;
        const int place = there[k].find(codes[k]);
        if (place >= 0)
            add_to_counter(&table.buckets.keys[bucket * VALUES_BUCKET + place], 1);
        else if (!add_to_buckets(table.buckets, codes[k], bucket, 1))
            table.header->full = 1;
    }
}

/* Count keys [KEYS] of a thread; *largest grows by those whose code means a free place of the cache. */
template <bool WINDOW, int KEYS, typename K>
static __device__ void count_codes(const K *codes, const struct value_cache<K> &cache,
                                   const struct counting_table &table, uint64_t *largest)
{
    uint32_t hashes[KEYS], missed = 0;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        hashes[k] = hash_of_code(codes[k]);
        if (codes[k] == cache.NONE)
            ++*largest;
        else if (!cache.count(codes[k], hashes[k]))
            missed |= 1u << k;
    }
    if constexpr (WINDOW) {
#pragma unroll
        for (int k = 0; k < KEYS; k++) {
            if (missed >> k & 1)
                add_value(table, codes[k], 1);
        }
    } else {
        count_in_buckets<KEYS>(codes, hashes, missed, table);
    }
}

template <bool WINDOW, typename K>
static __global__ void __launch_bounds__(VALUES_THREADS, 1)
    count_values_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ keys,
                        int64_t count, const __grid_constant__ struct counting_table table, int cache_log)
{
    extern __shared__ uint64_t shared[];
    constexpr int PER = sizeof(uint4) / sizeof(K);
    const struct value_cache<K> cache = {
        (K *)shared, (uint32_t *)((K *)shared + (1 << cache_log)), cache_log
    };
    uint64_t largest = 0;
    for (int i = threadIdx.x; i < 1 << cache_log; i += VALUES_THREADS) {
        cache.codes[i] = cache.NONE;
        cache.keys[i] = 0;
    }
    __syncthreads();

    // what comes before and after whole vectors
    const int64_t before = min(count, (int64_t)(-(uintptr_t)keys % sizeof(uint4) / sizeof(K)));
    const int64_t vectors = (count - before) / PER, after = before + vectors * PER;
    if (blockIdx.x == 0 && threadIdx.x < before + count - after) {
        const K code =
            loaded_code(coding, keys[threadIdx.x < before ? threadIdx.x : after + threadIdx.x - before]);
        count_codes<WINDOW, 1>(&code, cache, table, &largest);
    }

    // the vectors; the next one comes while this one is counted
    const uint4 *from = (const uint4 *)(keys + before);
    const int64_t stride = (int64_t)gridDim.x * VALUES_THREADS;
    int64_t at = (int64_t)blockIdx.x * VALUES_THREADS + threadIdx.x;
    key_vector<K> next;
    if (at < vectors)
        next.whole = __ldcs(from + at);
    for (int turn = 0; at < vectors; turn++, at += stride) {
        key_vector<K> now = next;
        if (at + stride < vectors)
            next.whole = __ldcs(from + at + stride);
        if (turn % VALUES_PATIENCE == 0 && table.is_full())
            break;
        encode_loaded(coding, now.keys);
#pragma unroll
        for (int k = 0; k < PER; k += VALUES_AT_ONCE)
            count_codes<WINDOW, VALUES_AT_ONCE>(now.keys + k, cache, table, &largest);
    }

    if (largest > 0)
        add_value(table, cache.NONE, largest);
    __syncthreads();
    if (table.is_full())
        return;
    for (int i = threadIdx.x; i < 1 << cache_log; i += VALUES_THREADS) {
        if (cache.keys[i] > 0)
            add_value(table, cache.codes[i], cache.keys[i]);
    }
}

/* ---- lists --------------------------------------------------------------------------------------------- */

/* Where a list goes: value i to codes[i * stride] and keys[i * stride]. */
struct value_list {
    uint64_t *codes, *keys;
    int stride;
    uint64_t most; /* that fit */
};

/* The thread's value goes on the list if it has keys. Whole warps call it. */
static __device__ void put_on_list(const struct value_list &list, struct value_header *header, uint64_t code,
                                   uint64_t keys)
{
    const uint32_t lanes = __ballot_sync(ALL_LANES, keys > 0), lane = threadIdx.x % WARP;
    unsigned long long first = 0;
    if (lane == 0 && lanes != 0)
        first = atomicAdd((unsigned long long *)&header->listed, (unsigned long long)__popc(lanes));
    first = __shfl_sync(ALL_LANES, first, 0) + __popc(lanes & ((1u << lane) - 1));
    if (keys > 0 && first < list.most) {
        list.codes[first * list.stride] = code;
        list.keys[first * list.stride] = keys;
    }
}

/* List the table's values; a thread for each place. header->listed counts them all, even those that do not
 * fit. */
static __global__ void __launch_bounds__(PASS_THREADS)
    list_values_kernel(const __grid_constant__ struct counting_table without,
                       const __grid_constant__ struct value_list list)
{
    const struct counting_table table = with_window(without);
    const uint32_t place = blockIdx.x * PASS_THREADS + threadIdx.x;
    const uint64_t code = table.buckets.codes[place];
    put_on_list(list, table.header, code, code == FREE_PLACE ? 0 : table.buckets.keys[place]);
    if (table.width > 0)
        put_on_list(list, table.header, table.low + place, table.window[place]);
    if (place < WARP)
        put_on_list(list, table.header, FREE_PLACE, place == 0 ? table.header->largest : 0);
}

static __global__ void __launch_bounds__(PASS_THREADS)
    add_values_kernel(const struct engine_value *__restrict__ list, int64_t values,
                      const __grid_constant__ struct counting_table without)
{
    const struct counting_table table = with_window(without);
    const int64_t i = (int64_t)blockIdx.x * PASS_THREADS + threadIdx.x;
    if (i < values)
        add_value(table, list[i].code, (uint64_t)list[i].keys);
}

/* ---- the sorted keys ----------------------------------------------------------------------------------- */

static __device__ uint64_t block_sum(uint64_t value)
{
    __shared__ uint64_t sums[SUMS_THREADS / WARP], all;
    const uint64_t before = block_sum_before(value, sums);
    if (threadIdx.x == SUMS_THREADS - 1)
        all = before + value;
    __syncthreads();
    return all;
}

/* The keys of each chunk of values. */
static __global__ void __launch_bounds__(SUMS_THREADS)
    chunk_sums_kernel(const __grid_constant__ struct counting_table table, uint32_t values)
{
    uint64_t keys = 0;
#pragma unroll
    for (int own = 0; own < SUMS_OWN; own++) {
        const uint32_t i = blockIdx.x * SUMS_CHUNK + own * SUMS_THREADS + threadIdx.x;
        keys += i < values ? table.sorted_keys[i] : 0;
    }
    keys = block_sum(keys);
    if (threadIdx.x == 0)
        table.header->chunks[blockIdx.x] = keys;
}

/* Where each value's keys begin, a chunk to a block; and where the last one's end. */
static __global__ void __launch_bounds__(SUMS_THREADS)
    value_begins_kernel(const __grid_constant__ struct counting_table table, uint32_t values)
{
    __shared__ uint64_t sums[SUMS_THREADS / WARP];
    const uint64_t chunks = block_sum(threadIdx.x < blockIdx.x ? table.header->chunks[threadIdx.x] : 0);
    const uint32_t first = blockIdx.x * SUMS_CHUNK + threadIdx.x * SUMS_OWN;
    uint64_t keys[SUMS_OWN], own = 0;
#pragma unroll
    for (int i = 0; i < SUMS_OWN; i++) {
        keys[i] = first + i < values ? table.sorted_keys[first + i] : 0;
        own += keys[i];
    }
    uint64_t begin = chunks + block_sum_before(own, sums);
#pragma unroll
    for (int i = 0; i < SUMS_OWN; i++) {
        if (first + i < values)
            table.begins[first + i] = begin;
        begin += keys[i];
        if (first + i + 1 == values)
            table.begins[values] = begin;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        table.header->sorted = table.sorted_codes;
}

/* Write positions [from, until) of all keys to out: a vector's first key is looked for, and the others
 * follow, as no value has less than one key. Tiles begin where vectors of `out` do, so the first one may
 * begin before `from`. */
template <typename K>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    write_sorted_kernel(const __grid_constant__ struct coding coding,
                        const __grid_constant__ struct counting_table table, int64_t from, int64_t until, K *out)
{
    constexpr int PER = sizeof(uint4) / sizeof(K), TILE = MSD_WRITE_THREADS * MSD_WRITE_KEYS;
    const uint64_t *begins = table.begins, *codes = table.header->sorted;
    const int64_t begin =
        from - (int64_t)((uintptr_t)out % sizeof(uint4) / sizeof(K)) + (int64_t)blockIdx.x * TILE;
    const int64_t end = min(begin + TILE, until);
    if (end <= from || begin >= until)
        return;
    const uint32_t first = find_bucket(begins, 0, (uint32_t)table.header->listed - 1, max(begin, from));
    const uint32_t last = find_bucket(begins, first, (uint32_t)table.header->listed - 1, end - 1);
    for (int64_t at = begin + threadIdx.x * PER; at < end; at += MSD_WRITE_THREADS * PER) {
        uint32_t value = find_bucket(begins, first, last, max(at, from));
        K code = (K)codes[value];
        key_vector<K> vector;
#pragma unroll
        for (int k = 0; k < PER; k++) {
            if (k > 0 && value < last && (int64_t)begins[value + 1] <= at + k)
                code = (K)codes[++value];
            vector.keys[k] = stored_key(coding, code);
        }
        if (at >= from && at + PER <= until) {
            *(uint4 *)(out + (at - from)) = vector.whole;
            continue;
        }
#pragma unroll
        for (int k = 0; k < PER; k++) {
            if (at + k >= from && at + k < until)
                out[at + k - from] = vector.keys[k];
        }
    }
}

#endif
