/* Keys of 1 and 2 bytes: counting how often each value occurs, and writing the keys anew. Both are bound by the bytes of the
 * keys. These are loaded and stored by vectors of 16 bytes, which begin at multiples of 16 bytes; at both ends key by key:
 *
 *     borders      |         |         |         |          here a vector is 4 keys
 *     keys             3 1 1   2 2 2 0   3 1 0
 *     vector           0         1         2
 *
 * A block counts in shared memory, with two counters of 16 bits to a word. It counts all values, or a slice of them if it has
 * too little shared memory for all; other blocks then read the same keys for the other slices. For 256 values each warp has
 * counters of its own, or lanes would wait for each other. A counter never needs more than 16 bits: a block takes at most
 * COUNTED_HALF keys in a round, and the thread that brings a counter to COUNTED_HALF moves as much from it to the sum in
 * memory before the round ends. */
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/ladder/tuning.h"

#define COUNTED_HALF 0x8000u

static_assert(COUNTED_THREADS * COUNTED_KEYS <= COUNTED_HALF, "two halves fit a counter");

/* Keys [count] as vectors, passed to kernels by value. */
template <typename K>
struct key_vectors {
    static constexpr int KEYS = sizeof(uint4) / sizeof(K);
    K *keys;         /* where key 0 of vector 0 would lie: at a border, perhaps before the first key */
    int before;      /* places in vector 0 before the first key */
    int64_t count;   /* keys */
    int64_t vectors; /* that have at least one key each */
};

template <typename K>
static key_vectors<K> vectors_of(K *keys, int64_t count)
{
    key_vectors<K> v = {};
    v.before = (int)((uintptr_t)keys % sizeof(uint4) / sizeof(K));
    v.keys = keys - v.before;
    v.count = count;
    v.vectors = divide_up(v.before + count, v.KEYS);
    return v;
}

/* Which places of a vector have keys. */
struct vector_range {
    int first, last; /* first .. last - 1 */
};

template <typename K>
static __device__ vector_range range_of(const key_vectors<K> &v, int64_t vector)
{
    const int64_t left = v.before + v.count - vector * v.KEYS;
    vector_range range;
    range.first = vector == 0 ? v.before : 0;
    range.last = (int)min(max(left, (int64_t)0), (int64_t)v.KEYS);
    return range;
}

template <typename K>
static __device__ bool is_whole(vector_range range)
{
    return range.first == 0 && range.last == key_vectors<K>::KEYS;
}

/* Load the keys of a vector, which are those in `range`. */
template <typename K>
static __device__ void load_vector(const key_vectors<K> &v, int64_t vector, vector_range range,
                                   key_vector<K> *loaded)
{
    const K *keys = v.keys + vector * v.KEYS;
    if (is_whole<K>(range)) {
        loaded->whole = *(const uint4 *)keys;
        return;
    }
#pragma unroll
    for (int k = 0; k < key_vectors<K>::KEYS; k++)
        if (k >= range.first && k < range.last)
            loaded->keys[k] = keys[k];
}

/* ---- count --------------------------------------------------------------------------------------------- */

/* The counters of a slice of all values. */
struct count_slice {
    uint32_t *counters; /* shared memory: of values first, first + 1 ..., two to a word */
    uint32_t first, values;
};

/* Add n to the counter of a value, if the value is in the slice. counts: the sums of all values, in memory. */
static __device__ void add_to_counter(const count_slice &slice, uint32_t value, uint32_t n,
                                      unsigned long long *counts)
{
    const uint32_t place = value - slice.first, shift = place % 2 * 16;
    if (place >= slice.values)
        return;
    uint32_t *word = &slice.counters[place / 2];
    const uint32_t before = atomicAdd(word, n << shift) >> shift & 0xffff;
    if (before < COUNTED_HALF && before + n >= COUNTED_HALF) {
        atomicSub(word, COUNTED_HALF << shift);
        atomicAdd(&counts[value], (unsigned long long)COUNTED_HALF);
    }
}

/* Count the keys of a vector. Equal keys one behind the other are added at once, because lanes would wait for each other where keys
 * repeat. */
template <typename K>
static __device__ void count_vector(const count_slice &slice, const key_vector<K> &vector,
                                    vector_range range, unsigned long long *counts)
{
    constexpr int KEYS = key_vectors<K>::KEYS;
    uint32_t n = 0;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (k < range.first || k >= range.last)
            continue;
        n++;
        if (k + 1 == range.last || vector.keys[k + 1 < KEYS ? k + 1 : k] != vector.keys[k]) {
            add_to_counter(slice, vector.keys[k], n, counts);
            n = 0;
        }
    }
}

/* Shared memory holds `copies` sets of counters, each for slice_values values. The blocks of index y count slice y. */
template <typename K>
static __global__ void __launch_bounds__(COUNTED_THREADS)
    count_keys_kernel(const __grid_constant__ key_vectors<K> v, uint32_t slice_values, uint32_t copies,
                      unsigned long long *counts)
{
    extern __shared__ uint32_t counters[];
    constexpr int VECTORS = COUNTED_KEYS / key_vectors<K>::KEYS; // of a thread in a round
    constexpr int64_t TILE = (int64_t)COUNTED_THREADS * VECTORS;
    const uint32_t words = slice_values / 2, warp = threadIdx.x / WARP;
    const count_slice slice = {counters + warp % copies * words, blockIdx.y * slice_values, slice_values};
    for (uint32_t word = threadIdx.x; word < copies * words; word += COUNTED_THREADS)
        counters[word] = 0;
    __syncthreads();
    for (int64_t tile = blockIdx.x; tile * TILE < v.vectors; tile += gridDim.x) {
        key_vector<K> loaded[VECTORS];
        const int64_t first = tile * TILE + threadIdx.x;
#pragma unroll
        for (int i = 0; i < VECTORS; i++) {
            const int64_t vector = first + i * COUNTED_THREADS;
            load_vector(v, vector, range_of(v, vector), &loaded[i]);
        }
#pragma unroll
        for (int i = 0; i < VECTORS; i++)
            count_vector(slice, loaded[i], range_of(v, first + i * COUNTED_THREADS), counts);
        __syncthreads(); // the round ends: all counters are below a half
    }
    for (uint32_t place = threadIdx.x; place < slice_values; place += COUNTED_THREADS) {
        uint32_t sum = 0;
        for (uint32_t copy = 0; copy < copies; copy++)
            sum += counters[copy * words + place / 2] >> place % 2 * 16 & 0xffff;
        if (sum > 0)
            atomicAdd(&counts[slice.first + place], (unsigned long long)sum);
    }
}

template <typename K>
static hsort_status launch_count(struct cuda_engine *engine, const key_vectors<K> &v, int64_t *counts)
{
    constexpr uint32_t values = 1u << 8 * sizeof(K), copies = sizeof(K) == 1 ? COUNTED_THREADS / WARP : 1;
    constexpr int64_t tile = (int64_t)COUNTED_THREADS * (COUNTED_KEYS / key_vectors<K>::KEYS);
    uint32_t slices = 1;
    while (values / slices * copies * sizeof(uint16_t) > (size_t)engine->block_bytes)
        slices *= 2;
    const int bytes = (int)(values / slices * copies * sizeof(uint16_t));
    const int64_t most =
        (int64_t)engine->multiprocessors * (sizeof(K) == 1 ? COUNTED_BLOCKS_1 : COUNTED_BLOCKS_2);
    const dim3 blocks((unsigned)min(divide_up(v.vectors, tile), most), slices);
    TRY(cuda_grant_shared(engine, (const void *)count_keys_kernel<K>, bytes));
    count_keys_kernel<K><<<blocks, COUNTED_THREADS, bytes, engine->streams[STREAM_WORK]>>>(
        v, values / slices, copies, (unsigned long long *)counts);
    TRY_LAUNCH("count of keys");
    return HSORT_OK;
}

extern "C" hsort_status counted_count_keys(struct engine *base, int key_bytes, const void *keys,
                                           int64_t count, int64_t *counts)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(counted_width_check(key_bytes));
    TRY(kernel_fault("count of keys"));
    return with_counted_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        return count > 0 ? launch_count(engine, vectors_of((K *)keys, count), counts) : HSORT_OK;
    });
}

/* ---- write --------------------------------------------------------------------------------------------- */

/* struct engine_counted, passed to kernels by value. */
template <typename K>
struct counted_keys {
    const K *keys;       /* [values] */
    const int64_t *ends; /* [values] */
    int64_t values;
    int64_t first; /* position of the first key that is written */
};

/* The first of values low .. high whose keys end behind a position; high, if none before it is such a value. */
template <typename K>
static __device__ int64_t find_counted(const counted_keys<K> &from, int64_t low, int64_t high,
                                       int64_t position)
{
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (from.ends[middle] > position)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Write a vector. The value of its first key is one of low .. high. */
template <typename K>
static __device__ void write_vector(const key_vectors<K> &v, const counted_keys<K> &from, int64_t vector,
                                    int64_t low, int64_t high)
{
    const vector_range range = range_of(v, vector);
    key_vector<K> made;
    if (range.first >= range.last)
        return;
    const int64_t position = from.first + vector * v.KEYS - v.before; // of key 0 of the vector
    int64_t value = find_counted(from, low, high, position + range.first), end = from.ends[value];
    K key = from.keys[value], *to = v.keys + vector * v.KEYS;
#pragma unroll
    for (int k = 0; k < key_vectors<K>::KEYS; k++) {
        while (k >= range.first && k < range.last && position + k >= end && value + 1 < from.values) {
            value++;
            end = from.ends[value];
            key = from.keys[value];
        }
        made.keys[k] = key;
    }
    if (is_whole<K>(range)) {
        *(uint4 *)to = made.whole;
        return;
    }
#pragma unroll
    for (int k = 0; k < key_vectors<K>::KEYS; k++)
        if (k >= range.first && k < range.last)
            to[k] = made.keys[k];
}

/* The first and the last value of a tile are found once for all of its vectors. Where values have many keys, nothing is left to
 * find. */
template <typename K>
static __global__ void __launch_bounds__(COUNTED_WRITE_THREADS)
    write_counted_kernel(const __grid_constant__ key_vectors<K> v,
                         const __grid_constant__ counted_keys<K> from)
{
    constexpr int64_t TILE = (int64_t)COUNTED_WRITE_THREADS * COUNTED_WRITE_VECTORS;
    __shared__ int64_t ends[2]; // the values of the first and the last key of a tile
    for (int64_t tile = blockIdx.x; tile * TILE < v.vectors; tile += gridDim.x) {
        if (threadIdx.x < 2) {
            const int64_t key = (tile + threadIdx.x) * TILE * v.KEYS - v.before - (int64_t)threadIdx.x;
            const int64_t held = min(max(key, (int64_t)0), v.count - 1);
            ends[threadIdx.x] = find_counted(from, 0, from.values - 1, from.first + held);
        }
        __syncthreads();
        const int64_t low = ends[0], high = ends[1];
#pragma unroll
        for (int i = 0; i < COUNTED_WRITE_VECTORS; i++)
            write_vector(v, from, tile * TILE + i * COUNTED_WRITE_THREADS + threadIdx.x, low, high);
        __syncthreads(); // `ends` is written for the next tile after all threads have read it for this one
    }
}

template <typename K>
static hsort_status launch_write(struct cuda_engine *engine, const key_vectors<K> &v,
                                 const counted_keys<K> &from)
{
    constexpr int64_t tile = (int64_t)COUNTED_WRITE_THREADS * COUNTED_WRITE_VECTORS;
    const int64_t most = (int64_t)engine->multiprocessors * COUNTED_WRITE_BLOCKS;
    const unsigned blocks = (unsigned)min(divide_up(v.vectors, tile), most);
    write_counted_kernel<K><<<blocks, COUNTED_WRITE_THREADS, 0, engine->streams[STREAM_WORK]>>>(v, from);
    TRY_LAUNCH("write of counted keys");
    return HSORT_OK;
}

extern "C" hsort_status counted_write(struct engine *base, int key_bytes,
                                      const struct engine_counted *counted, int64_t first, int64_t count,
                                      void *out)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(counted_width_check(key_bytes));
    TRY(kernel_fault("write of counted keys"));
    return with_counted_type(key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const counted_keys<K> from = {(const K *)counted->keys, counted->ends, counted->values, first};
        return count > 0 ? launch_write(engine, vectors_of((K *)out, count), from) : HSORT_OK;
    });
}
