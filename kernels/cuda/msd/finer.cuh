/* Finer bins, for a block sort whose bins are filled too unevenly: a bin of n keys is cut into n parts of equal width. So each key has a
 * finer bin of its own on average, wherever in the range the keys are. Finer bins that are still crowds are listed (crowds.cuh).
 *
 *     bins              0 .. 99       100 .. 199               200 .. 299
 *     their keys        27            101 103 150 108          220 290
 *     finer bins        0 .. 99       25 wide, four of them    50 wide, two
 *     keys by them      27          | 101 103 108 | | 150 |  | 220 | 290
 *
 * If the lowest bits of a key are a position, keys that repeat lie close together in a wide bin: they are a *lump*. A bin that is one
 * lump is cut by its positions instead:
 *
 *     keys|positions    27|6     103|0 103|3 103|5 103|7          220|1 290|4
 *     finer bins        wide     of two positions, four of them   50 wide, two
 *
 * There are as many finer bins as keys, so their counters lie where the keys will lie. */
#ifndef FINER_CUH
#define FINER_CUH

#include "kernels/cuda/msd/bins.cuh"
#include "kernels/cuda/msd/windows.cuh"

enum { SMALL_CROWD_ROWS = 8, SMALL_CROWD = SMALL_CROWD_ROWS * WARP };

/* In shared memory: the crowds that wait to be sorted. A word has the first place of a crowd in its lower 16 bits, and its number of
 * keys above. */
template <typename S>
struct alignas(16) crowd_lists {
    uint32_t small_count, large_count;
    uint32_t small[S::CAPACITY / (CROWD + 1)], large[S::CAPACITY / (SMALL_CROWD + 1) + 1];
    static_assert(S::CAPACITY < 1 << 16, "halves of a word");
};

/* The lowest bits of keys, if these bits are positions: the keys of a lump differ in nothing else. stretch: how often all positions fit
 * into these bits, times 2^16. With it, positions use all parts of a lump. */
struct lump_bits {
    int bits; /* 0: there are no positions */
    uint32_t stretch;

    /* Where in its lump a key lies, from 0 to 2^32. */
    template <typename K>
    __device__ uint32_t inside(K key) const
    {
        const int width = 8 * sizeof(K);
        const uint32_t at = (uint32_t)((K)(key << (width - bits)) >> (width - 32));
        return (uint32_t)((uint64_t)at * stretch >> 16);
    }
};

/* List places [keys] from `begin` on, if they are a crowd. */
template <typename S>
static __device__ void list_if_crowd(uint32_t begin, uint32_t keys, struct crowd_lists<S> &crowds)
{
    const uint32_t crowd = begin | keys << 16;
    if (keys > SMALL_CROWD)
        crowds.large[atomicAdd(&crowds.large_count, 1u)] = crowd;
    else if (keys > CROWD)
        crowds.small[atomicAdd(&crowds.small_count, 1u)] = crowd;
}

/* Words of 16 bits, two to a register. */
template <int COUNT>
struct half_words {
    uint32_t pairs[(COUNT + 1) / 2] = {};

    __device__ uint32_t get(int i) const
    {
        return i % 2 ? pairs[i / 2] >> 16 : pairs[i / 2] & 0xffff;
    }
    __device__ void set(int i, uint32_t value)
    {
        pairs[i / 2] = i % 2 ? (pairs[i / 2] & 0xffff) | value << 16 : (pairs[i / 2] & 0xffff0000) | value;
    }
};

/* Turn counters [count] into the finer bins' first places, and list the crowds. Every thread calls it, between barriers. */
template <typename S>
static __device__ void scan_finer(uint32_t *counters, uint32_t count, struct crowd_lists<S> &crowds)
{
    __shared__ uint32_t sums[S::WARPS];
    const uint32_t each = (count + S::THREADS - 1) / S::THREADS | 1; // odd, for the banks
    const uint32_t begin = min(threadIdx.x * each, count), end = min(begin + each, count);
    uint32_t sum = 0;
    for (uint32_t i = begin; i < end; i++)
        sum += counters[i];
    uint32_t place = block_sum_before(sum, sums);
    for (uint32_t i = begin; i < end; i++) {
        const uint32_t keys = counters[i];
        counters[i] = place;
        if (keys > CROWD)
            list_if_crowd(place, keys, crowds);
        place += keys;
    }
}

/* The finer bin of a key of bin `bin`, which is cut into as many finer bins as it has keys. inside: where in the bin the key lies. */
static __device__ uint32_t finer_bin(const uint32_t *bins, uint32_t bin, uint32_t inside)
{
    const uint32_t begin = bins[bin];
    return begin + __umulhi(inside, bins[bin + 1] - begin);
}

/* In shared memory: which bins are one lump each. Each bin that has keys notes one of them, and the number of that key in the block. The
 * number becomes MIXED if some key of the bin is not of the noted key's lump. */
template <typename S, typename K>
struct lump_marks {
    enum { MIXED = INT_MAX };
    uint32_t numbers[S::BINS];
    K keys[S::BINS];
};

/* Mark the bins of the keys of the first `rows` rows, and compare each key with the one that its bin notes. Which key that is does not
 * matter. Returns a bit for each row in which this thread's key is another key of the noted key's lump; *others has a bit for each row
 * in which it is not of that lump. Every thread calls it, between barriers. */
template <typename S, typename K>
static __device__ uint32_t mark_lumps(const K (&keys)[S::KEYS], int count, int rows,
                                      const scaled_bins<S, K> &bin_of, int bits,
                                      struct lump_marks<S, K> &marks, uint32_t *others)
{
    const int marked = min(count, rows * S::THREADS);
    uint32_t same = 0, differ = 0;
    static_assert(S::KEYS <= 32, "a bit for each row");
    for_rows<S>(marked,
                [&](int k) { atomicExch(&marks.numbers[bin_of(keys[k])], threadIdx.x + k * S::THREADS); });
    __syncthreads();
    for_rows<S>(marked, [&](int k) {
        if (marks.numbers[bin_of(keys[k])] == threadIdx.x + k * S::THREADS)
            marks.keys[bin_of(keys[k])] = keys[k];
    });
    __syncthreads();
    for_rows<S>(marked, [&](int k) {
        const K difference = keys[k] ^ marks.keys[bin_of(keys[k])];
        same |= difference != 0 && difference >> bits == 0 ? 1u << k : 0;
        differ |= difference >> bits != 0 ? 1u << k : 0;
    });
    *others = differ;
    return same;
}

/* Find the finer bin of each key, with bins that are lumps cut by their positions. Returns false, and finds nothing, if one row of keys
 * tells that most bins are not lumps. Every thread calls it, between barriers. */
template <typename S, typename K>
static __device__ bool find_finer_in_lumps(const K (&keys)[S::KEYS], int count,
                                           const scaled_bins<S, K> &bin_of, const struct lump_bits &lumps,
                                           const uint32_t *bins, struct lump_marks<S, K> &marks,
                                           half_words<S::KEYS> &found)
{
    typedef struct lump_marks<S, K> marks_type;
    static_assert(sizeof(marks_type) <= with_gaps<K>(S::CAPACITY) * sizeof(K), "room where keys will lie");
    uint32_t others;
    const uint32_t same = mark_lumps<S>(keys, count, 1, bin_of, lumps.bits, marks, &others);
    if (__syncthreads_count(same != 0) <= __syncthreads_count(others != 0))
        return false;
    mark_lumps<S>(keys, count, S::KEYS, bin_of, lumps.bits, marks, &others);
    for_rows<S>(count, [&](int k) {
        if (others >> k & 1)
            marks.numbers[bin_of(keys[k])] = marks_type::MIXED;
    });
    __syncthreads();
    for_rows<S>(count, [&](int k) {
        const uint32_t bin = bin_of(keys[k]);
        const bool is_lump = marks.numbers[bin] != marks_type::MIXED;
        found.set(k, finer_bin(bins, bin, is_lump ? lumps.inside(keys[k]) : bin_of.inside(keys[k])));
    });
    __syncthreads();
    return true;
}

/* Put keys [count] in the order of finer bins into `places`, which are free, and list the crowds. bins [S::BINS] has the first places of
 * the bins. Every thread calls it, behind a barrier. */
template <typename S, typename K>
static __device__ void place_by_finer_bins(const K (&keys)[S::KEYS], int count,
                                           const scaled_bins<S, K> &bin_of, const struct lump_bits &lumps,
                                           uint32_t *bins, K *places, struct crowd_lists<S> &crowds)
{
    uint32_t *counters = (uint32_t *)places;
    half_words<S::KEYS> found; // the finer bin, then the place
    if (threadIdx.x == 0)
        bins[S::BINS] = count;
    bool is_found = false;
    if constexpr (sizeof(K) <= sizeof(uint64_t)) { // wider keys are never given lumps
        if (lumps.bits > 0)
            is_found = find_finer_in_lumps<S>(keys, count, bin_of, lumps, bins,
                                              *(struct lump_marks<S, K> *)places, found);
    }
    for_rows<S>(count, [&](int k) { counters[threadIdx.x + k * S::THREADS] = 0; });
    __syncthreads();
    for_rows<S>(count, [&](int k) {
        if (!is_found)
            found.set(k, finer_bin(bins, bin_of(keys[k]), bin_of.inside(keys[k])));
        atomicAdd(&counters[found.get(k)], 1u);
    });
    __syncthreads();
    scan_finer(counters, count, crowds);
    __syncthreads();
    for_rows<S>(count, [&](int k) { found.set(k, atomicAdd(&counters[found.get(k)], 1u)); });
    __syncthreads();
    for_rows<S>(count, [&](int k) { places[with_gaps<K>((int)found.get(k))] = keys[k]; });
    __syncthreads();
}

#endif
