/* Rung 6: radix sort, 2 bits at a time, with kernels that count, scan and move.
 *
 * Idea     Sort by the lowest two bits first, stably, then by the next two: 16 digits in 4-byte keys, 32 in
 *          8-byte ones. A key goes behind all keys with a smaller digit, and behind the equal digits
 *          before it. Three kernels find that place. The first sorts each block's keys by the digit, in shared
 *          memory, and counts them. The scan turns the counts of all blocks into first places. The last
 *          moves each run of equal digits there, where neighbouring threads write to neighbouring places.
 * Change   Unlike in the bitonic rungs, no key is compared with another, and the number of digits depends on
 *          the bits of a key, not on how many keys there are. It needs a second array.
 * Picture  One digit, 12 keys of two bits in 3 blocks of 4:
 *
 *            keys                 1 3 0 2   1 1 2 0   3 0 3 2
 *            1. local sort        0 1 2 3   0 1 1 2   0 2 3 3
 *               block counts, digit by digit      0: 1 1 1   1: 1 2 0   2: 1 1 1   3: 1 0 2
 *            2. their scan                        0: 0 1 2   1: 3 4 6   2: 6 7 8   3: 9 10 10
 *            3. shuffle           0 3 6 9   1 4 5 7   2 8 10 11     the place of each key among all
 *            keys                 0 0 0 1 1 1 2 2 2 3 3 3
 *
 *          The local sort of the second block. All four sums are taken at once, in four fields of one word:
 *
 *            keys                 1 1 2 0
 *            zeros before it      0 0 0 0     1 in all, from local place 0
 *            ones                 0 1 2 2     2              from 1
 *            twos                 0 0 0 1     1              from 3
 *            threes               0 0 0 0     0              from 4
 *            of its own kind      0 1 0 0
 *            local place          1 2 3 0     where its kind begins, and as many further
 *
 *          The scan, here of 8 counts. Up the tree, each node becomes the sum of its two subtrees. The root
 *          becomes 0. Down again, each node hands its value to its left child, and its value plus the left
 *          child's sum to its right child.
 *
 *            counts               1  1  1  1  2  0  1  1
 *            up                   1  2  1  2  2  2  1  2
 *                                 1  2  1  4  2  2  1  4
 *            root                 1  2  1  4  2  2  1  0      8 in all
 *            down                 1  2  1  0  2  2  1  4
 *                                 1  0  1  2  2  4  1  6
 *                                 0  1  2  3  4  6  6  7
 *
 *          More counts than one block can take are scanned tile by tile, then the sums of the tiles likewise.
 * Cost     Each digit takes two passes: 32 over 4-byte keys, 64 over 8-byte ones. Scratch for all keys;
 *          workspace of 32 bytes per block, and for the scan of these.
 * Limit    Instructions, and waiting: a thread that moves a single key at a time counts, scans and computes
 *          addresses for that one key, and waits for memory most of the time. Then the passes: two for every
 *          two bits. Wider digits take fewer passes, and the look-back of rung 7 takes one for each digit.
 * Source   Ha, Krueger, Silva, "Fast four-way parallel radix sorting on GPUs", 2009, as told by Disabato,
 *          "Report of Architecture and Platform For Artificial Intelligence", section 3; the scan: Blelloch,
 *          "Prefix sums and their applications", 1990; Harris, Sengupta, Owens, "Parallel prefix sum (scan)
 *          with CUDA", GPU Gems 3, 2007. */
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/engine/scan.cuh"
#include "kernels/cuda/ladder/ladder.h"
#include "kernels/cuda/ladder/tuning.h"

enum {
    DIGIT_BITS = 2,
    BINS = 1 << DIGIT_BITS,
    FIELD_BITS = 16,     /* of a word with a field per bin */
    LEAST_THREADS = 512, /* of a block: makes the most blocks */
    SCAN_TILE = RADIX_4WAY_SCAN_TILE
};

static_assert(BINS * FIELD_BITS == 64, "the fields fill a word");
static_assert((SCAN_TILE & (SCAN_TILE - 1)) == 0, "the tree of the scan is complete");

template <typename K>
static __device__ int digit_of(K key, int shift)
{
    return (int)(key >> shift) & (BINS - 1);
}

/* ---- 1. the local sort --------------------------------------------------------------------------------- */

static __device__ uint32_t field_of(uint64_t word, int bin)
{
    return (uint32_t)(word >> (bin * FIELD_BITS)) & ((1u << FIELD_BITS) - 1);
}

/* Sort each block's keys by their digit; counts [bin][block]. */
template <typename K, typename V, int THREADS>
static __global__ void __launch_bounds__(THREADS)
    local_sort_kernel(const K *__restrict__ from, K *__restrict__ to, const V *__restrict__ from_values,
                      V *__restrict__ to_values, int64_t count, int shift, uint64_t *counts)
{
    __shared__ K places[THREADS];
    __shared__ V value_places[THREADS];
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const bool exists = i < count;
    const K key = exists ? from[i] : 0;
    const int bin = digit_of(key, shift);

    uint64_t total; // no field of it overflows
    const uint64_t word = exists ? UINT64_C(1) << (bin * FIELD_BITS) : 0;
    const uint64_t before = block_scan<THREADS / WARP, true>(word, &total);
    // each field is added to those of all larger bins, which gives where the bins begin
    const uint64_t starts = (total << FIELD_BITS) + (total << 2 * FIELD_BITS) + (total << 3 * FIELD_BITS);
    const uint32_t place = field_of(starts + before, bin);
    if (exists) {
        places[place] = key;
        if constexpr (has_value<V>)
            value_places[place] = from_values[i];
    }
    __syncthreads();

    if (exists) {
        to[i] = places[threadIdx.x];
        if constexpr (has_value<V>)
            to_values[i] = value_places[threadIdx.x];
    }
    if (threadIdx.x < BINS)
        counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = field_of(total, threadIdx.x);
}

/* ---- 2. the scan --------------------------------------------------------------------------------------- */

/* Scan each tile of values [count] by itself, in place; its sum goes to sums [tiles]. */
static __global__ void __launch_bounds__(SCAN_TILE / 2)
    scan_tiles_kernel(uint64_t *values, int64_t count, uint64_t *sums)
{
    __shared__ uint64_t tree[SCAN_TILE];
    const int64_t first = (int64_t)blockIdx.x * SCAN_TILE;
    for (int i = threadIdx.x; i < SCAN_TILE; i += SCAN_TILE / 2)
        tree[i] = first + i < count ? values[first + i] : 0;

    for (int stride = 1; stride < SCAN_TILE; stride *= 2) {
        const int node = (2 * threadIdx.x + 2) * stride - 1;
        __syncthreads();
        if (node < SCAN_TILE)
            tree[node] += tree[node - stride];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = tree[SCAN_TILE - 1];
        tree[SCAN_TILE - 1] = 0;
    }
    for (int stride = SCAN_TILE / 2; stride > 0; stride /= 2) {
        const int node = (2 * threadIdx.x + 2) * stride - 1;
        __syncthreads();
        if (node < SCAN_TILE) {
            const uint64_t left = tree[node - stride];
            tree[node - stride] = tree[node];
            tree[node] += left;
        }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < SCAN_TILE; i += SCAN_TILE / 2) {
        if (first + i < count)
            values[first + i] = tree[i];
    }
}

/* Add to each value the sum of what is before its tile. */
static __global__ void __launch_bounds__(SCAN_TILE / 2)
    add_kernel(uint64_t *values, int64_t count, const uint64_t *sums)
{
    const int64_t first = (int64_t)blockIdx.x * SCAN_TILE;
    for (int i = threadIdx.x; i < SCAN_TILE; i += SCAN_TILE / 2) {
        if (first + i < count)
            values[first + i] += sums[blockIdx.x];
    }
}

/* How many words scan_counts() needs for `count` values, including the values. */
static int64_t scan_words(int64_t count)
{
    int64_t words = count;
    do {
        count = divide_up(count, SCAN_TILE);
        words += count;
    } while (count > 1);
    return words;
}

/* Replace each of values [count] by the sum of the values before it. The words behind them, scan_words(count) with
 * the values, take the sums of the tiles, level by level. */
static void scan_counts(cudaStream_t stream, uint64_t *values, int64_t count)
{
    uint64_t *sums = values + count;
    const int64_t tiles = divide_up(count, SCAN_TILE);
    scan_tiles_kernel<<<(unsigned)tiles, SCAN_TILE / 2, 0, stream>>>(values, count, sums);
    if (tiles > 1) {
        scan_counts(stream, sums, tiles);
        add_kernel<<<(unsigned)tiles, SCAN_TILE / 2, 0, stream>>>(values, count, sums);
    }
}

/* ---- 3. the shuffle ------------------------------------------------------------------------------------ */

/* Move the runs of each block to their places among all keys; destinations [bin][block]. */
template <typename K, typename V, int THREADS>
static __global__ void __launch_bounds__(THREADS)
    shuffle_kernel(const K *__restrict__ from, K *__restrict__ to, const V *__restrict__ from_values,
                   V *__restrict__ to_values, int64_t count, int shift, const uint64_t *destinations)
{
    __shared__ int bins[THREADS];
    __shared__ int starts[BINS]; // where the bins that occur begin
    const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const bool exists = i < count;
    const K key = exists ? from[i] : 0;
    const int bin = digit_of(key, shift);

    bins[threadIdx.x] = bin;
    __syncthreads();
    if (exists && (threadIdx.x == 0 || bins[threadIdx.x - 1] != bin))
        starts[bin] = threadIdx.x;
    __syncthreads();
    if (exists) {
        const int64_t place =
            (int64_t)destinations[(int64_t)bin * gridDim.x + blockIdx.x] + (int)threadIdx.x - starts[bin];
        to[place] = key;
        if constexpr (has_value<V>)
            to_values[place] = from_values[i];
    }
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

/* Each pass ends where it began, in args->keys. */
template <typename K, typename V, int THREADS>
static hsort_status sort_4way(struct cuda_engine *engine, struct sort_args *args)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const unsigned blocks = (unsigned)divide_up(args->count, THREADS);
    K *const keys = (K *)args->keys, *const scratch = (K *)args->scratch_keys;
    V *const values = (V *)args->values, *const scratch_values = (V *)args->scratch_values;
    uint64_t *const counts = (uint64_t *)args->workspace;
    for (int shift = 0; shift < (int)sizeof(K) * 8; shift += DIGIT_BITS) {
        local_sort_kernel<K, V, THREADS><<<blocks, THREADS, 0, stream>>>(
            keys, scratch, values, scratch_values, args->count, shift, counts);
        scan_counts(stream, counts, (int64_t)BINS * blocks);
        shuffle_kernel<K, V, THREADS><<<blocks, THREADS, 0, stream>>>(scratch, keys, scratch_values, values,
                                                                      args->count, shift, counts);
        TRY_LAUNCH("rung 6, a pass");
    }
    args->sorted_keys = args->keys;
    args->sorted_values = args->values;
    return HSORT_OK;
}

template <int THREADS>
static hsort_status sort_in_blocks(struct cuda_engine *engine, struct sort_args *args)
{
    return with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        return sort_4way<decltype(key), decltype(value), THREADS>(engine, args);
    });
}

extern "C" hsort_status rung_6_threads(struct cuda_engine *engine, struct sort_args *args, int threads)
{
    switch (threads) {
    case 512:
        return sort_in_blocks<512>(engine, args);
    case 1024:
        return sort_in_blocks<1024>(engine, args);
    }
    return status_fail(HSORT_ARGUMENT, "rung 6 runs in blocks of 512 or 1024 threads, not %d", threads);
}

extern "C" hsort_status rung_6_radix_4way_workspace(struct cuda_engine *, const struct sort_args *args,
                                                    size_t *bytes)
{
    *bytes = (size_t)scan_words(BINS * divide_up(args->count, LEAST_THREADS)) * sizeof(uint64_t);
    return HSORT_OK;
}

extern "C" hsort_status rung_6_radix_4way(struct cuda_engine *engine, struct sort_args *args)
{
    return rung_6_threads(engine, args, RADIX_4WAY_THREADS);
}
