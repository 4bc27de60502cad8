/* Rung 8: radix sort from the most significant digit, finished in shared memory.
 *
 * Idea     Three trips through memory are enough. Two of them deal keys out to buckets so small that the third can
 *          sort each of them in shared memory, where another 13 bits cost next to nothing.
 * Change   Against rung 7: a pass need not keep equal digits in their order, since the passes go from the top down and
 *          what is equal so far is sorted later. So a key's rank is what a counter in shared memory returns, and a tile
 *          asks one counter per bin for room: no look-back. And the bits that no two keys of a bucket share are never
 *          looked at.
 * Picture  kernels/README.md, with 16 keys. The window of the keys, from the lowest to the highest of a sample, is cut
 *          into 2^16 buckets of equal width, whose number is two digits:
 *
 *            key - lowest     | bucket: digit 1 | digit 2 |   13 bits: bin   |   the rest        |
 *            is read by         pass 1, 2         pass 2      the leaf           the few that share a bin
 *
 *            keys     --- pass 1: 256 regions --->   scratch
 *            scratch  --- pass 2: each region, 256 buckets --->   keys
 *            keys     --- leaves: each bucket --->   keys
 *
 *          The regions and buckets begin where a count of all keys says, which also notices sorted and reversed keys.
 * Cost     7 moves of a key whatever its width, where rung 7 takes 9 or 17. Scratch for all keys; workspace 1 MiB. The
 *          host waits once, for the plan.
 * Limit    Bytes in passes of 8-byte keys; of 4-byte keys the instructions of the leaf and the random access of shared
 *          memory.
 *          Buckets must fit into a leaf. Where they do not, because values repeat or crowd, rung 7 sorts instead.
 * Source   Stehle, Jacobsen, "A memory bandwidth-efficient hybrid radix sort on GPUs", 2017. */
#include "ladder.h"
#include "leaf.cuh"
#include "tuning.h"

enum {
    DIGIT_BITS = 8, /* of a pass, at most */
    DIGITS = 1 << DIGIT_BITS,
    BUCKETS = DIGITS * DIGITS,
    SAMPLES = 4096,
    PLAN_THREADS = 1024
};

/* What the host must know. */
enum msd_verdict {
    MSD_UNKNOWN,
    MSD_SORTED,
    MSD_REVERSED,
    MSD_SPLIT, /* into buckets that fit */
    MSD_CROWDED
};

/* How the keys of the input are dealt out to buckets: made from the sample, read by all kernels after it. */
struct window {
    uint64_t lowest;
    int bits[2]; /* of the bucket's number that pass 1 and pass 2 look at */
    int shift;   /* the bucket's width, as a power of two */
};

/* The workspace. */
struct plan {
    struct window window;
    uint32_t ascents, descents;        /* some key is followed by a larger one, by a smaller one */
    unsigned long long counted;        /* keys, by the sum of all counters */
    uint64_t begins[BUCKETS + 1];      /* first positions of the buckets; counts before the scan */
    uint64_t cursors[2][BUCKETS];      /* of the regions, of the buckets: where the next tile's keys go */
    uint32_t region_tiles[DIGITS + 1]; /* tiles of pass 2 in the regions before */
};

/* ---- the window ---------------------------------------------------------------------------------------- */

/* What keys are divided by: [lowest, lowest + (last + 1) 2^shift) into parts 0 to last of width 2^shift. Keys outside go
 * to the first and the last part. */
template <typename K>
struct divider {
    K lowest;
    int shift;
    uint32_t last;

    __device__ uint32_t part_of(K key) const
    {
        const K part = (max(key, lowest) - lowest) >> shift;
        if (sizeof(K) == 8) // a comparison of 64 bits takes longer
            return (uint64_t)part >> 32 != 0 ? last : min((uint32_t)part, last);
        return min((uint32_t)part, last);
    }
};

/* Of all keys into buckets. */
template <typename K>
static __device__ struct divider<K> bucket_divider(const struct window &window) {
    return {(K)window.lowest, window.shift, (1u << (window.bits[0] + window.bits[1])) - 1};
}

/* Of all keys into regions, in pass 0; of the keys of a region into its buckets, in pass 1. */
template <typename K>
static __device__ struct divider<K> digit_divider(const struct window &window, int pass, int region) {
    const int region_shift = window.shift + window.bits[1];
    if (pass == 0)
        return {(K)window.lowest, region_shift, (1u << window.bits[0]) - 1};
    return {(K)(window.lowest + ((uint64_t)region << region_shift)), window.shift,
            (1u << window.bits[1]) - 1};
}

/* Look at some keys, evenly spread, and lay the window over them. */
template <typename K>
static __global__ void __launch_bounds__(PLAN_THREADS)
    sample_kernel(const K *__restrict__ keys, int64_t count, int bits, struct plan *plan)
{
    __shared__ K lows[WARP], highs[WARP];
    K low = (K) ~(K)0, high = 0;
    for (int i = threadIdx.x; i < SAMPLES; i += PLAN_THREADS) {
        const K key = keys[(int64_t)((uint64_t)i * (uint64_t)(count - 1) / (SAMPLES - 1))];
        low = min(low, key);
        high = max(high, key);
    }
    block_extremes(low, high, lows, highs);
    if (threadIdx.x == 0) {
        int shift = 0;
        while ((K)(high - low) >> shift >> bits != 0)
            shift++;
        // a width of all the range there is begins at 0: keys outside of the sample's range have buckets, too
        plan->window.lowest = shift + bits >= (int)sizeof(K) * 8 ? 0 : low;
        plan->window.bits[1] = bits > DIGIT_BITS ? bits / 2 : 0;
        plan->window.bits[0] = bits - plan->window.bits[1];
        plan->window.shift = shift;
    }
}

/* ---- the count ----------------------------------------------------------------------------------------- */

/* Count the keys of every bucket, in two halves of a word: 2^16 counters fit into shared memory like that. A counter
 * that runs over takes 2^16 or 2^16 - 1 from their sum, whatever half it is in, and nothing gives that back. So the
 * sum of all counters tells (make_plan()). Few keys are like that: a bucket of a block's keys then has more than a
 * leaf. */
template <typename K>
static __global__ void __launch_bounds__(MSD_COUNT_THREADS)
    count_kernel(const K *__restrict__ keys, int64_t count, struct plan *plan)
{
    extern __shared__ uint64_t shared[];
    uint32_t *counts = (uint32_t *)shared; // [words]
    const struct divider<K> divider = bucket_divider<K>(plan->window);
    const int words = (int)(divider.last + 1) / 2;
    for (int i = threadIdx.x; i < words; i += MSD_COUNT_THREADS)
        counts[i] = 0;
    __syncthreads();

    uint32_t ascents = 0, descents = 0;
    constexpr int TILE = MSD_COUNT_THREADS * MSD_COUNT_KEYS;
    for (int64_t tile = (int64_t)blockIdx.x * TILE; tile < count; tile += (int64_t)gridDim.x * TILE) {
        const K *own = keys + tile + threadIdx.x;
        const int left =
            (int)min(count - tile, (int64_t)TILE + 1) - (int)threadIdx.x; // keys from own on, and one more
        K loaded[MSD_COUNT_KEYS], next[MSD_COUNT_KEYS];
#pragma unroll
        for (int k = 0; k < MSD_COUNT_KEYS; k++) {
            if (k * MSD_COUNT_THREADS < left)
                loaded[k] = own[k * MSD_COUNT_THREADS];
            next[k] = k * MSD_COUNT_THREADS + 1 < left ? own[k * MSD_COUNT_THREADS + 1] : loaded[k];
        }
#pragma unroll
        for (int k = 0; k < MSD_COUNT_KEYS; k++) {
            if (k * MSD_COUNT_THREADS < left) {
                const uint32_t bucket = divider.part_of(loaded[k]);
                ascents |= loaded[k] < next[k];
                descents |= loaded[k] > next[k];
                atomicAdd(&counts[bucket / 2], bucket % 2 ? 1u << 16 : 1u);
            }
        }
    }
    ascents = __syncthreads_or(ascents);
    descents = __syncthreads_or(descents);

    for (int i = threadIdx.x; i < words; i += MSD_COUNT_THREADS) {
        const uint32_t pair = counts[i];
        if (pair & 0xffff)
            atomicAdd((unsigned long long *)&plan->begins[2 * i], (unsigned long long)(pair & 0xffff));
        if (pair >> 16)
            atomicAdd((unsigned long long *)&plan->begins[2 * i + 1], (unsigned long long)(pair >> 16));
    }
    if (threadIdx.x == 0 && ascents)
        plan->ascents = 1;
    if (threadIdx.x == 0 && descents)
        plan->descents = 1;
}

/* Turn counts into first positions and decide. One block; a thread has as many buckets in a row as there are threads
 * too few. */
static __global__ void __launch_bounds__(PLAN_THREADS)
    plan_kernel(int64_t count, int capacity, int tile, struct plan *plan, volatile int32_t *verdict)
{
    __shared__ uint64_t sums[PLAN_THREADS / WARP];
    const int buckets = 1 << (plan->window.bits[0] + plan->window.bits[1]);
    const int own = (buckets + PLAN_THREADS - 1) / PLAN_THREADS;
    const int first = threadIdx.x * own, last = min(first + own, buckets);
    uint64_t sum = 0;
    bool fits = true;
    for (int i = first; i < last; i++) {
        fits = fits && plan->begins[i] <= (uint64_t)capacity;
        sum += plan->begins[i];
    }
    uint64_t position = block_sum_before(sum, sums);
    for (int i = first; i < last; i++) {
        const uint64_t of_bucket = plan->begins[i];
        plan->begins[i] = plan->cursors[1][i] = position;
        position += of_bucket;
    }
    if (threadIdx.x == PLAN_THREADS - 1) {
        plan->begins[buckets] = position;
        plan->counted = position;
    }
    fits = !__syncthreads_or(!fits) && plan->counted == (uint64_t)count;

    // the regions of pass 1, and the tiles that pass 2 makes of them
    const int in_region = 1 << plan->window.bits[1], regions = 1 << plan->window.bits[0];
    uint32_t tiles = 0;
    if ((int)threadIdx.x < regions) {
        const uint64_t begin = plan->begins[threadIdx.x * in_region];
        plan->cursors[0][threadIdx.x] = begin;
        tiles = (uint32_t)((plan->begins[(threadIdx.x + 1) * in_region] - begin + tile - 1) / tile);
    }
    const uint32_t tiles_before = (uint32_t)block_sum_before((uint64_t)tiles, sums);
    if ((int)threadIdx.x <= regions)
        plan->region_tiles[threadIdx.x] = tiles_before;
    if (threadIdx.x == 0)
        *verdict = !plan->descents  ? MSD_SORTED
                   : !plan->ascents ? MSD_REVERSED
                   : fits           ? MSD_SPLIT
                                    : MSD_CROWDED;
}

/* ---- a pass -------------------------------------------------------------------------------------------- */

/* Keys that a pass takes per block: of one region in pass 2. */
struct tile {
    int64_t first;
    int valid;
    int region;
};

/* Tile `number` of pass 1 or, with the tiles of every region for themselves, of pass 2. */
static __device__ struct tile find_tile(const struct plan *plan, int pass, int size, int64_t number,
                                        int64_t count)
{
    if (pass == 0)
        return {number * size, (int)min((int64_t)size, count - number * size), 0};
    int region = 0;
    for (int step = DIGITS / 2; step > 0; step /= 2) { // the last one that begins at this tile or before
        if (region + step < 1 << plan->window.bits[0] && plan->region_tiles[region + step] <= number)
            region += step;
    }
    const int64_t end = (int64_t)plan->begins[(region + 1) << plan->window.bits[1]];
    const int64_t first =
        (int64_t)plan->begins[region << plan->window.bits[1]] + (number - plan->region_tiles[region]) * size;
    return {first, (int)max(min((int64_t)size, end - first), INT64_C(0)), region};
}

/* Take `keys` places from a cursor; the first of them. */
static __device__ uint64_t take_room(uint64_t *cursor, uint32_t keys)
{
    return atomicAdd((unsigned long long *)cursor, (unsigned long long)keys);
}

/* Deal a tile's keys out: to regions by the upper digit of their bucket, or to buckets by the lower one. FULL: it has
 * `KEYS` keys for each thread, and none is asked whether it exists. */
template <bool FULL, typename K, int KEYS>
static __device__ void deal(const K *__restrict__ from, K *__restrict__ to, int valid,
                            const struct divider<K> &divider, uint64_t *cursors)
{
    extern __shared__ uint64_t shared[];
    K *places = (K *)shared; // [with_gaps(THREADS * KEYS)]
    __shared__ uint32_t counts[DIGITS];
    __shared__ K *goals[DIGITS]; // where a digit's keys go, less their place in the tile
    __shared__ uint32_t sums[MSD_PASS_THREADS / WARP];
    const auto exists = [&](int k) { return FULL || (int)threadIdx.x + k * MSD_PASS_THREADS < valid; };
    K keys[KEYS];
    uint32_t ranks[KEYS]; // below 16 bits, and the digit above

    // 1. load, and rank by counting
    if (threadIdx.x < DIGITS)
        counts[threadIdx.x] = 0;
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k))
            keys[k] = from[threadIdx.x + k * MSD_PASS_THREADS];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k)) {
            const uint32_t digit = divider.part_of(keys[k]);
            ranks[k] = digit << 16 | atomicAdd(&counts[digit], 1u);
        }
    }
    __syncthreads();

    // 2. first places in the tile; and room among all keys, from the cursors
    const uint32_t own = threadIdx.x < DIGITS ? counts[threadIdx.x] : 0;
    const uint32_t first = block_sum_before(own, sums);
    if (threadIdx.x < DIGITS) {
        counts[threadIdx.x] = first;
        if (own > 0)
            goals[threadIdx.x] = to + (int64_t)take_room(&cursors[threadIdx.x], own) - first;
    }
    __syncthreads();

    // 3. order them in shared memory, so that runs leave and not single keys
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k))
            places[with_gaps((int)(counts[ranks[k] >> 16] + (ranks[k] & 0xffff)))] = keys[k];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < KEYS; k++) {
        if (exists(k)) {
            const K key = places[with_gaps(threadIdx.x) + k * with_gaps(MSD_PASS_THREADS)];
            goals[divider.part_of(key)][threadIdx.x + k * MSD_PASS_THREADS] = key;
        }
    }
}

template <typename K, int KEYS>
static __global__ void __launch_bounds__(MSD_PASS_THREADS, MSD_PASS_BLOCKS)
    pass_kernel(const K *__restrict__ from, K *__restrict__ to, int64_t count, int pass, struct plan *plan)
{
    constexpr int TILE = MSD_PASS_THREADS * KEYS;
    const struct tile tile = find_tile(plan, pass, TILE, blockIdx.x, count);
    const struct divider<K> divider = digit_divider<K>(plan->window, pass, tile.region);
    uint64_t *cursors = &plan->cursors[pass][tile.region << plan->window.bits[1]];
    if (tile.valid == TILE)
        deal<true, K, KEYS>(from + tile.first, to, TILE, divider, cursors);
    else if (tile.valid > 0)
        deal<false, K, KEYS>(from + tile.first, to, tile.valid, divider, cursors);
}

/* ---- the sort ------------------------------------------------------------------------------------------ */

template <typename K>
static __global__ void reverse_kernel(K *keys, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count / 2) {
        const K key = keys[i];
        keys[i] = keys[count - 1 - i];
        keys[count - 1 - i] = key;
    }
}

/* Each bucket by a block. */
template <typename K, typename V>
static __global__ void __launch_bounds__(LEAF_THREADS, LEAF_BLOCKS)
    leaves_kernel(columns<K, V> from, columns<K, V> to, const struct plan *plan)
{
    const int64_t first = (int64_t)plan->begins[blockIdx.x];
    const int count = (int)((int64_t)plan->begins[blockIdx.x + 1] - first);
    const struct window window = plan->window;
    const bool at_end = blockIdx.x == 0 || blockIdx.x == gridDim.x - 1; // has the keys outside of the window
    const struct leaf_range<K> range = {
        (K)(window.lowest + ((uint64_t)blockIdx.x << window.shift)), at_end ? -1 : window.shift
    };
    if (count > 0)
        leaf_sort(from.at(first), to.at(first), count, range);
}

/* All keys by one block. */
template <typename K, typename V>
static __global__ void __launch_bounds__(LEAF_THREADS, LEAF_BLOCKS) leaf_kernel(columns<K, V> data, int count)
{
    leaf_sort(data, data, count, leaf_range<K>{0, -1});
}

/* One block is enough. */
template <typename K, typename V>
static hsort_status sort_as_leaf(struct cuda_engine *engine, columns<K, V> data, int64_t count)
{
    constexpr int bytes = leaf_bytes<K, V>();
    TRY_CUDA(cudaFuncSetAttribute(leaf_kernel<K, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    leaf_kernel<<<1, LEAF_THREADS, bytes, engine->lanes[LANE_WORK]>>>(data, (int)count);
    TRY_LAUNCH("rung 8, a leaf");
    return HSORT_OK;
}

/* Bits of a bucket's number: so that a bucket has MSD_LEAF_KEYS keys, or half as many. */
static int bucket_bits(int64_t count)
{
    int bits = 1;
    while (bits < 2 * DIGIT_BITS && count >> bits > MSD_LEAF_KEYS)
        bits++;
    return bits;
}

/* Sample, count and plan; then wait for the verdict. */
template <typename K>
static hsort_status make_plan(struct cuda_engine *engine, const K *keys, int64_t count, int bits, int tile,
                              struct plan *plan, enum msd_verdict *verdict)
{
    cudaStream_t stream = engine->lanes[LANE_WORK];
    volatile int32_t *answer = &engine->result->verdict;
    const int bytes = (1 << bits) * 2;
    const int64_t tiles = divide_up(count, MSD_COUNT_THREADS * MSD_COUNT_KEYS);
    const unsigned blocks = (unsigned)min(tiles, (int64_t)engine->multiprocessors);
    *answer = MSD_UNKNOWN;
    TRY_CUDA(cudaMemsetAsync(plan, 0, offsetof(struct plan, cursors), stream));
    TRY_CUDA(cudaFuncSetAttribute(count_kernel<K>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    sample_kernel<<<1, PLAN_THREADS, 0, stream>>>(keys, count, bits, plan);
    count_kernel<<<blocks, MSD_COUNT_THREADS, bytes, stream>>>(keys, count, plan);
    plan_kernel<<<1, PLAN_THREADS, 0, stream>>>(count, LEAF_CAPACITY, tile, plan, answer);
    TRY_LAUNCH("rung 8, the plan");
    while (*answer == MSD_UNKNOWN) {
        const cudaError_t state = cudaStreamQuery(stream);
        if (state != cudaErrorNotReady)
            TRY_CUDA(state);
    }
    *verdict = (enum msd_verdict) * answer;
    return HSORT_OK;
}

template <typename K, int KEYS>
static hsort_status split(struct cuda_engine *engine, struct rung_job *job, int bits, struct plan *plan)
{
    constexpr int TILE = MSD_PASS_THREADS * KEYS;
    constexpr int pass_bytes = with_gaps(TILE) * (int)sizeof(K);
    cudaStream_t stream = engine->lanes[LANE_WORK];
    K *keys = (K *)job->keys, *scratch = (K *)job->scratch_keys;
    const unsigned tiles = (unsigned)divide_up(job->count, TILE);
    const bool is_twice = bits > DIGIT_BITS;
    TRY_CUDA(
        cudaFuncSetAttribute(pass_kernel<K, KEYS>, cudaFuncAttributeMaxDynamicSharedMemorySize, pass_bytes));
    constexpr int bytes = leaf_bytes<K, no_value>();
    TRY_CUDA(
        cudaFuncSetAttribute(leaves_kernel<K, no_value>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    pass_kernel<K, KEYS><<<tiles, MSD_PASS_THREADS, pass_bytes, stream>>>(keys, scratch, job->count, 0, plan);
    if (is_twice) // each region ends with a tile that is not full
        pass_kernel<K, KEYS>
            <<<tiles + DIGITS, MSD_PASS_THREADS, pass_bytes, stream>>>(scratch, keys, job->count, 1, plan);
    const columns<K, no_value> dealt = {is_twice ? keys : scratch, NULL}, sorted = {keys, NULL};
    leaves_kernel<<<1u << bits, LEAF_THREADS, bytes, stream>>>(dealt, sorted, plan);
    TRY_LAUNCH("rung 8, the passes");
    return HSORT_OK;
}

template <typename K, int KEYS>
static hsort_status sort_msd(struct cuda_engine *engine, struct rung_job *job)
{
    cudaStream_t stream = engine->lanes[LANE_WORK];
    struct plan *plan = (struct plan *)job->workspace;
    enum msd_verdict verdict;
    const int bits = bucket_bits(job->count);
    TRY(make_plan(engine, (const K *)job->keys, job->count, bits, MSD_PASS_THREADS * KEYS, plan, &verdict));
    switch (verdict) {
    case MSD_SPLIT:
        return split<K, KEYS>(engine, job, bits, plan);
    case MSD_CROWDED:
        return rung_7_onesweep(engine, job);
    case MSD_REVERSED:
        reverse_kernel<<<(unsigned)divide_up(job->count / 2, 256), 256, 0, stream>>>((K *)job->keys,
                                                                                     job->count);
        TRY_LAUNCH("rung 8, the reversal");
        return HSORT_OK;
    default:
        return HSORT_OK;
    }
}

extern "C" hsort_status rung_8_msd_workspace(struct cuda_engine *engine, const struct rung_job *job,
                                             size_t *bytes)
{
    TRY(rung_7_onesweep_workspace(engine, job, bytes));
    if (job->value_bytes == 0 && *bytes < sizeof(struct plan))
        *bytes = sizeof(struct plan);
    return HSORT_OK;
}

extern "C" hsort_status rung_8_msd(struct cuda_engine *engine, struct rung_job *job)
{
    if (job->count <= LEAF_CAPACITY)
        return with_columns(job, [&](auto data) { return sort_as_leaf(engine, data, job->count); });
    if (job->value_bytes > 0)
        return rung_7_onesweep(engine, job);
    return job->key_bytes == 4 ? sort_msd<uint32_t, MSD_PASS_KEYS_4>(engine, job)
                               : sort_msd<uint64_t, MSD_PASS_KEYS_8>(engine, job);
}
