/* How rung 8 deals keys out to buckets: a function from keys to the numbers of buckets that never falls as keys rise,
 * made from a sample so that no bucket gets much more than its share.
 *
 * Where the keys are spread evenly between the lowest and the highest of the sample, that window is cut into parts of
 * equal width. Otherwise it is cut into cells of equal width, and each cell into parts of equal width, by its share of
 * the sample; cells with little share a part. Floats between -1 and 1 are like that: half of them lie in the last two of
 * some 2^11 ranges between powers of two.
 *
 *     sample          ....  .            :.    .::::...        one column for each cell
 *     parts           1     1            2  1     2  4  3  1   about as many as the sample has keys
 *     first bucket    0     1            2  4     5  7 11 14
 *
 * A key's bucket is then the first one of its cell, plus the parts before it there. Looking for a key among splitters
 * from the sample would suit every input, but takes eight steps where this takes one.
 *
 * Where more than half of the window is empty in one place, as between small floats of either sign, that gap is left out:
 *
 *     sample          . .:::...                                      ...::: .        cells of the other parts
 *     in cells        . . : : : . . . | . . . : : :   .                              can be so much finer
 *
 * Keys outside of the window count as its ends, keys in the gap as the first one of it. */
#ifndef WINDOW_CUH
#define WINDOW_CUH

#include "kernels/cuda/msd/block.cuh"
#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/cuda/ladder/tuning.h"
#include <type_traits>

enum {
    REGION_BITS = 8, /* of a bucket's number, that one pass looks at */
    REGIONS = 1 << REGION_BITS,
    LOG_BUCKETS = 2 * REGION_BITS,
    BUCKETS = 1 << LOG_BUCKETS,
    LOG_CELLS = 12,
    CELLS = 1 << LOG_CELLS,
    LOG_CELL_WIDTH = 16, /* cells are as wide as that, in the unit that makes it so */
    LOG_WINDOW = LOG_CELLS + LOG_CELL_WIDTH,
    LOG_SAMPLE_MAX = 18,
    SAMPLE_THREADS = 1024,
    OWN_CELLS = 4, /* of a thread */
    SLICES = 8,    /* of a cell, in which the sample is counted */
    LOG_SLICE = LOG_CELL_WIDTH - 3,
    PART_UNITS = 256, /* of a part, where cells share one */
    SAMPLE_PER_BLOCK = 8192,
    AT_ONCE = 4 /* keys that a thread loads */
};
static_assert((int)CELLS == SAMPLE_THREADS * OWN_CELLS, "some cells for each thread");

enum map_kind {
    MAP_NONE,   /* the keys do not split */
    MAP_LINEAR, /* parts of equal width; of 8-byte keys the upper half says it all */
    MAP_TABLE,  /* cells; the same of 8-byte keys */
    MAP_FINE    /* cells; all of the key matters */
};

/* The buckets that a cell is cut into. */
struct cell {
    uint32_t first, parts;
};

/* Made by the kernels below, read by those of the passes. Distances from the lowest key are shifted to the right, or to the
 * left, until the window takes LOG_WINDOW bits or, where it is linear, the bits of a bucket's number. */
struct window {
    int32_t kind; /* enum map_kind */
    int32_t right, left;
    int32_t below;   /* bits of a key that the map does not look at */
    int32_t bits[2]; /* of the bucket's number that pass 0 and pass 1 look at */
    uint32_t last;   /* bucket */
    int32_t
        is_each_value; /* every bucket is for one value of keys: the lowest of all + the bucket's number */
    uint64_t lowest, width;
    uint64_t gap_first, gap_last; /* distances from the lowest that count as one; both `width`: none */
    struct cell cells[CELLS];
};

/* A distance from the lowest key, less what lies in the gap. */
template <typename T>
static __device__ T without_gap(T distance, T first, T last)
{
    return min(distance, first) + (max(distance, last) - last);
}

/* The part of a key that the map looks at. */
template <typename K, map_kind KIND>
struct map_head {
    typedef typename std::conditional<KIND == MAP_FINE, K, uint32_t>::type type;
    static constexpr int BELOW = (sizeof(K) - sizeof(type)) * 8; /* bits that it leaves out */
};

/* The bucket of what lies `at` so far from the beginning of a window of cells. */
static __device__ uint32_t bucket_at(uint32_t at, const struct cell *cells)
{
    const struct cell cell = cells[at >> LOG_CELL_WIDTH];
    return cell.first +
           __umulhi(at << LOG_CELL_WIDTH, cell.parts); // the cell's lower bits are the upper half of a word
}
static_assert(2 * LOG_CELL_WIDTH == 32, "a place in a cell is half a word");

enum { CELL_BYTES = CELLS * (int)sizeof(struct cell) };

/* The bucket of a key. */
template <typename K, map_kind KIND>
struct bucket_map {
    typedef typename map_head<K, KIND>::type head;
    head lowest, width, gap_first, gap_last;
    int right, left;
    const struct cell *cells; /* [CELLS] in shared memory */

    static __device__ head head_of(K key)
    {
        return (head)(key >> map_head<K, KIND>::BELOW);
    }
    __device__ uint32_t operator()(K key) const
    {
        const head distance = min(max(head_of(key), lowest) - lowest, width);
        if constexpr (KIND == MAP_LINEAR)
            return (uint32_t)(distance >> right);
        return bucket_at((uint32_t)(without_gap(distance, gap_first, gap_last) >> right) << left, cells);
    }
    __device__ bool is_outside(K key) const
    {
        return (head)(head_of(key) - lowest) > width;
    }
};

/* The map of a window. Every thread of the block calls it; cells [CELLS] in shared memory are there after the next
 * barrier. */
template <typename K, map_kind KIND>
static __device__ bucket_map<K, KIND> load_map(const struct window &window, struct cell *cells)
{
    typedef typename map_head<K, KIND>::type head;
    if (KIND != MAP_LINEAR) {
        for (int i = threadIdx.x; i < CELLS; i += blockDim.x)
            cells[i] = window.cells[i];
    }
    const auto head_of = [](uint64_t number) { return (head)(number >> map_head<K, KIND>::BELOW); };
    return {head_of(window.lowest),
            head_of(window.width),
            head_of(window.gap_first),
            head_of(window.gap_last),
            window.right,
            window.left,
            cells};
}

/* ---- the sample ---------------------------------------------------------------------------------------- */

/* What the window should come to. */
struct window_wish {
    int linear_bits, table_bits, most_bits; /* of a bucket's number: for even keys, for others, at all */
    int upper_bits;          /* that pass 0 looks at as far as there are any; 0: half of them */
    float target;            /* keys of the sample in a bucket */
    uint32_t limit;          /* that no bucket may have */
    int32_t answer_for_none; /* what the host is told if the keys do not split */
    uint32_t *halves;        /* [2^most_bits / 2] to count the sample's buckets in; NULL: in shared memory */
    bool with_giants;        /* buckets of one value may have any number of keys */
};

/* Bits of a bucket's number: so that a bucket has MSD_LEAF_KEYS keys, or half as many. */
static int bucket_bits(int64_t count, int most)
{
    int bits = 1;
    while (bits < most && count >> bits > MSD_LEAF_KEYS)
        bits++;
    return bits;
}

/* What the kernels of the sample work on; all of it 0 at first. */
struct sample {
    uint64_t highest, lowest_inverted; /* of the keys seen, and ~ of the lowest */
    uint64_t gap_begin, gap_end;       /* codes, of a gap that is to be left out; 0: none */
    uint32_t blocks_done;
    alignas(16) uint32_t counts[CELLS * SLICES]; /* of the sample's keys */
};

/* Take the codes of 2^log keys, evenly spread, to seen [2^log]. */
template <typename K>
static __global__ void __launch_bounds__(SAMPLE_THREADS)
    sample_kernel(const __grid_constant__ struct coding coding, const K *__restrict__ keys, int64_t count,
                  int log, struct sample *sample, K *seen)
{
    __shared__ K lows[WARP], highs[WARP];
    const int64_t i = (int64_t)blockIdx.x * SAMPLE_THREADS + threadIdx.x;
    const K key = loaded_code(coding, keys[(uint64_t)i * (uint64_t)count >> log]);
    seen[i] = key;
    K low = key, high = key;
    block_extremes(low, high, lows, highs);
    if (threadIdx.x == 0) {
        atomicMax((unsigned long long *)&sample->highest, (unsigned long long)high);
        atomicMax((unsigned long long *)&sample->lowest_inverted, ~(unsigned long long)low);
    }
}

/* ---- the window ---------------------------------------------------------------------------------------- */

/* The largest distance without the gap. */
static __device__ uint64_t width_in_cells(const struct window &window)
{
    return window.width - (window.gap_last - window.gap_first);
}

/* Lay the window over the extremes of the sample, in units that make it LOG_WINDOW bits wide. Up to 2^most_bits values have
 * buckets of their own. */
template <typename K>
static __device__ void scale_window(const struct sample *sample, int most_bits, struct window *window)
{
    constexpr K LARGEST = (K) ~(K)0;
    K lowest = (K)~sample->lowest_inverted, width = (K)sample->highest - lowest;
    const K most = (K)(1 << most_bits) - 1;
    window->is_each_value = width <= most;
    // the sample has missed the extremes, if barely
    const K gap = (K)(sample->gap_end - sample->gap_begin);
    const K slack = window->is_each_value ? (K)((most - width) / 2) : (K)((width - gap) / 32),
            below = min(slack, lowest);
    lowest -= below;
    width = window->is_each_value ? min(most, (K)(LARGEST - lowest))
                                  : (K)(width + below + min(slack, (K)(LARGEST - lowest - below - width)));
    const bool has_gap = sample->gap_end > 0;
    window->lowest = lowest;
    window->width = width;
    window->gap_first = has_gap ? sample->gap_begin - lowest : width;
    window->gap_last = has_gap ? sample->gap_end - 1 - lowest : width;
    const int bits = bits_of(width_in_cells(*window));
    window->right = max(bits - LOG_WINDOW, 0);
    window->left = max(LOG_WINDOW - bits, 0);
    window->below = 0;
    window->kind = MAP_FINE;
    if constexpr (sizeof(K) == 4) {
        window->kind = MAP_TABLE;
    } else if (bits >= 32 + LOG_WINDOW - REGION_BITS) { // the upper half of the key has bits enough
        const uint64_t above = (lowest + width) >> 32 << 32;
        window->lowest = lowest >> 32 << 32;
        window->width = above - window->lowest;
        window->gap_first = has_gap ? (sample->gap_begin >> 32 << 32) - window->lowest : window->width;
        window->gap_last = has_gap ? (((sample->gap_end >> 32) - 1) << 32) - window->lowest : window->width;
        const int head_bits = bits_of(width_in_cells(*window) >> 32);
        window->right = max(head_bits - LOG_WINDOW, 0);
        window->left = max(LOG_WINDOW - head_bits, 0);
        window->below = 32;
        window->kind = MAP_TABLE;
    }
}

/* Where a key of the sample lies in the window, LOG_WINDOW bits. */
template <typename K>
static __device__ uint32_t place_in_window(const struct window &window, K key)
{
    const int below = window.below;
    const uint64_t distance =
        min((uint64_t)max(key >> below, (K)(window.lowest >> below)) - (window.lowest >> below),
            window.width >> below);
    return (uint32_t)(without_gap(distance, window.gap_first >> below, window.gap_last >> below) >>
                      window.right)
           << window.left;
}

/* Values in a cell; more than there can be parts where it is not known. */
static __device__ uint32_t values_of_cell(const struct window &window)
{
    const bool is_known = window.below == 0 && window.right == 0;
    return 1u << (is_known ? LOG_CELL_WIDTH - window.left : LOG_CELL_WIDTH);
}

/* Is every part of the cell for one value? All that lies in a gap is in one part. */
static __device__ bool is_cut_to_values(const struct window &window, uint32_t cell)
{
    return window.cells[cell].parts == values_of_cell(window) && window.gap_first == window.gap_last;
}

/* The same parts for all, if they fit the sample. `own`: keys in the thread's cells. */
template <typename K>
static __device__ bool make_linear(struct window &window, float own, int log_seen, int bits)
{
    const uint64_t width = window.width >> window.below;
    const float last = (float)((uint32_t)(width >> window.right) << window.left);
    const float share =
        ldexpf((float)OWN_CELLS, log_seen + LOG_CELL_WIDTH) / (last + ldexpf(1.0f, window.left));
    const bool is_more = own > 1.5f * share + 5 * sqrtf(share) + 5;
    if (__syncthreads_or(is_more || window.kind == MAP_FINE || window.gap_first < window.gap_last))
        return false;
    if (threadIdx.x == 0) {
        int right = 0;
        while (!window.is_each_value && width >> right >> bits != 0)
            right++;
        window.kind = MAP_LINEAR;
        window.right = right;
        window.left = 0;
    }
    return true;
}

/* What cell `cell` weighs: its keys; or as many as it would have, were all of it like its fullest slice. The keys may begin
 * in the middle of a cell. What a slice has by chance is left out. */
static __device__ float weigh_cell(const struct sample *sample, int cell, float *keys)
{
    uint32_t sum = 0, fullest = 0;
#pragma unroll
    for (int slice = 0; slice < SLICES; slice += 4) {
        const uint4 four = __ldcg((const uint4 *)&sample->counts[cell * SLICES + slice]);
        sum += four.x + four.y + four.z + four.w;
        fullest = max(max(max(four.x, four.y), max(four.z, four.w)), fullest);
    }
    *keys += (float)sum;
    return max((float)sum, SLICES * ((float)fullest - 2 * sqrtf((float)fullest)));
}

/* The parts of a cell, in PART_UNITS. Cells that weigh less than a part share one with those that follow. Where a part would
 * have few values, their number divides that of the cell: else some had twice as many as others. */
static __device__ uint32_t cut_cell(float weight, float target, uint32_t values)
{
    if (weight < target)
        return (uint32_t)(weight * PART_UNITS / target);
    uint32_t parts = (uint32_t)ceilf(weight / target);
    if (parts > values / 4)
        parts = min(2u << (31 - __clz((int)(parts - 1))), values);
    return parts * PART_UNITS;
}

/* What the last thread of the block has. Every thread calls it. */
static __device__ uint32_t block_last(uint32_t value)
{
    __shared__ uint32_t last;
    if (threadIdx.x == blockDim.x - 1)
        last = value;
    __syncthreads();
    return last;
}

/* Cut the cells into parts that weigh at most `target`, or more where that makes too many. weights: of the thread's cells.
 * A window of few values has a part for each. */
static __device__ void make_table(struct window &window, const float (&weights)[OWN_CELLS], float target,
                                  int bits)
{
    __shared__ uint32_t sums[SAMPLE_THREADS / WARP];
    const uint32_t values = values_of_cell(window);
    float all = 0;
#pragma unroll
    for (int c = 0; c < OWN_CELLS; c++)
        all += weights[c];
    const uint32_t before = block_sum_before((uint32_t)all, sums), sum_of_all = before + (uint32_t)all;
    target = max(target, (float)block_last(sum_of_all) / (float)(1u << bits));
    for (;; target *= 1.02f) {
        uint32_t units[OWN_CELLS], sum = 0;
#pragma unroll
        for (int c = 0; c < OWN_CELLS; c++) {
            units[c] = window.is_each_value ? values * PART_UNITS : cut_cell(weights[c], target, values);
            sum += units[c];
        }
        uint32_t begin = block_sum_before(sum, sums);
        if (__syncthreads_or((begin + sum) / PART_UNITS >= 1u << bits && !window.is_each_value))
            continue;
#pragma unroll
        for (int c = 0; c < OWN_CELLS; c++) {
            const uint32_t first = begin / PART_UNITS;
            begin += units[c];
            window.cells[threadIdx.x * OWN_CELLS + c] = {first, begin / PART_UNITS - first};
        }
        return;
    }
}

/* Does some bucket have too many keys of the sample? */
template <typename K>
static __device__ bool is_crowded(const struct window &window, const K *seen, int log_seen,
                                  struct window_wish wish)
{
    extern __shared__ uint32_t shared_halves[]; // [2^most_bits / 2] counters of 16 bits
    uint32_t *halves = wish.halves ? wish.halves : shared_halves;
    for (int i = threadIdx.x; i < 1 << wish.most_bits >> 1; i += SAMPLE_THREADS)
        halves[i] = 0;
    __syncthreads();
    bool crowded = false;
    for (int i = threadIdx.x; i < 1 << log_seen && !crowded; i += SAMPLE_THREADS * AT_ONCE) {
        K keys[AT_ONCE]; // there are as many: the smallest sample fills a turn
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            keys[k] = seen[i + k * SAMPLE_THREADS];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            const uint32_t at = place_in_window<K>(window, keys[k]), bucket = bucket_at(at, window.cells),
                           above = bucket % 2 * 16;
            const uint32_t before = atomicAdd(&halves[bucket / 2], 1u << above) >> above & 0xffff;
            const bool is_cut = wish.with_giants && is_cut_to_values(window, at >> LOG_CELL_WIDTH);
            crowded = crowded || before >= (is_cut ? 1u << log_seen >> 3 : wish.limit);
        }
    }
    return __syncthreads_or(crowded);
}

template <typename K>
static __device__ void make_map(const K *seen, int log_seen, const struct window_wish &wish,
                                const struct sample *sample, struct window &window, struct window *result)
{
    float weights[OWN_CELLS], own = 0;
#pragma unroll
    for (int c = 0; c < OWN_CELLS; c++)
        weights[c] = weigh_cell(sample, threadIdx.x * OWN_CELLS + c, &own);
    const bool is_linear = make_linear<K>(window, own, log_seen, wish.linear_bits);
    if (!is_linear) {
        make_table(window, weights, wish.target, wish.table_bits);
        __syncthreads();
        if (is_crowded(window, seen, log_seen, wish) && threadIdx.x == 0)
            window.kind = MAP_NONE;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const int bits = window.is_each_value ? wish.most_bits
                         : is_linear          ? wish.linear_bits
                                              : wish.table_bits;
        window.bits[1] = wish.upper_bits > 0  ? max(bits - wish.upper_bits, 0)
                         : bits > REGION_BITS ? bits / 2
                                              : 0;
        window.bits[0] = bits - window.bits[1];
        window.last = is_linear ? (uint32_t)(window.width >> window.below >> window.right)
                                : bucket_at(place_in_window(window, (K) ~(K)0), window.cells);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < (int)(sizeof window / 4); i += SAMPLE_THREADS)
        ((uint32_t *)result)[i] = ((uint32_t *)&window)[i];
}

/* Count the sample's keys by slices of the window. Every thread of every block calls it; true for the block that is the last
 * to do so: the counts are there. */
template <typename K>
static __device__ bool count_sample(const K *__restrict__ seen, int log_seen, const struct window &window,
                                    struct sample *sample)
{
    extern __shared__ uint32_t counts[]; // [CELLS SLICES]
    __shared__ bool is_last;
    for (int i = threadIdx.x; i < CELLS * SLICES; i += SAMPLE_THREADS)
        counts[i] = 0;
    __syncthreads();
    const int first = blockIdx.x * SAMPLE_PER_BLOCK;
    for (int i = threadIdx.x; i < SAMPLE_PER_BLOCK && first + i < 1 << log_seen; i += SAMPLE_THREADS)
        atomicAdd(&counts[place_in_window<K>(window, seen[first + i]) >> LOG_SLICE], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < CELLS * SLICES; i += SAMPLE_THREADS) {
        if (counts[i] > 0)
            atomicAdd(&sample->counts[i], counts[i]);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd(&sample->blocks_done, 1u) == gridDim.x - 1;
    __syncthreads();
    return is_last;
}

/* The longest run of empty slices between two that are not: its length in the upper half, where it begins in the lower one. Every
 * thread of the block calls it. */
static __device__ unsigned long long longest_gap(const struct sample *sample)
{
    static_assert(CELLS * SLICES == SAMPLE_THREADS * 32, "a bit of a word for each slice of a thread");
    __shared__ int lasts[WARP];
    __shared__ unsigned long long longest;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, own = threadIdx.x * 32;
    uint32_t taken = 0; // slices
    for (int i = 0; i < 32; i++)
        taken |= (__ldcg(&sample->counts[own + i]) > 0 ? 1u : 0u) << i;
    int last = taken ? own + 31 - __clz((int)taken) : -1; // taken slice of this thread or one before
    for (int distance = 1; distance < WARP; distance *= 2) {
        const int below = __shfl_up_sync(ALL_LANES, last, distance);
        last = lane >= distance ? max(last, below) : last;
    }
    if (lane == WARP - 1)
        lasts[warp] = last;
    if (threadIdx.x == 0)
        longest = 0;
    __syncthreads();
    int before = __shfl_up_sync(ALL_LANES, last, 1);
    before = lane > 0 ? before : -1;
    for (int other = 0; other < warp; other++)
        before = max(before, lasts[other]);
    for (; taken != 0; taken &= taken - 1) {
        const int slice = own + __ffs((int)taken) - 1;
        if (before >= 0 && slice > before + 1)
            atomicMax(&longest, (unsigned long long)(slice - before - 1) << 32 | (uint32_t)(before + 1));
        before = slice;
    }
    __syncthreads();
    return longest;
}

/* Find out whether most of the window is a gap. Before window_kernel(), for which it leaves the counts as they were: 0. */
template <typename K>
static __global__ void __launch_bounds__(SAMPLE_THREADS)
    gap_kernel(const K *__restrict__ seen, int log_seen, int most_bits, struct sample *sample)
{
    __shared__ struct window window;
    if (threadIdx.x == 0)
        scale_window<K>(sample, most_bits, &window);
    __syncthreads();
    if (!count_sample(seen, log_seen, window, sample))
        return;
    const unsigned long long gap = longest_gap(sample);
    const uint32_t slices = (uint32_t)(gap >> 32), first = (uint32_t)gap;
    const auto code_of_slice = [&](uint32_t slice) {
        const uint64_t place = ((uint64_t)slice << LOG_SLICE) + (1u << window.left) - 1;
        return window.lowest + (place >> window.left << window.right << window.below);
    };
    __syncthreads();
    for (int i = threadIdx.x; i < CELLS * SLICES; i += SAMPLE_THREADS)
        sample->counts[i] = 0;
    if (threadIdx.x == 0) {
        sample->blocks_done = 0;
        const uint32_t all =
            place_in_window<K>(window, (K) ~(K)0) >> LOG_SLICE; // the window may fill half of them
        if (slices > all / 2 && !window.is_each_value) {
            sample->gap_begin = code_of_slice(first);
            sample->gap_end = code_of_slice(first + slices);
        }
    }
}

/* Count the sample's keys; the last block to do so makes the map. */
template <typename K>
static __global__ void __launch_bounds__(SAMPLE_THREADS)
    window_kernel(const K *__restrict__ seen, int log_seen, struct window_wish wish, struct sample *sample,
                  struct window *result, volatile int32_t *answer)
{
    __shared__ struct window window;
    if (threadIdx.x == 0)
        scale_window<K>(sample, wish.most_bits, &window);
    __syncthreads();
    if (!count_sample(seen, log_seen, window, sample))
        return;
    make_map(seen, log_seen, wish, sample, window, result);
    if (threadIdx.x == 0 && window.kind == MAP_NONE)
        *answer = wish.answer_for_none;
}

#endif
