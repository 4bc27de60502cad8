/* The last step of rung 8: a block sorts the keys of a bucket in shared memory.
 *
 * The range of its keys is cut into 2^12 bins or so of equal width. Counting the bins tells where each begins, so
 * that keys can be put in order of their bins at once. The few that share a bin are then put in order among themselves, by
 * rounds that compare neighbours: as many rounds as the fullest bin has keys.
 *
 *     keys                17 42 10 40 16        range 10 .. 42, bins of width 8: 10-17 18-25 26-33 34-41 42-49
 *     bin                  0  4  0  3  0
 *     bins begin at        0  3  3  3  4
 *     by bins             17 10 16 | 40 | 42    each key takes the next place of its bin, in any order
 *     round 1, (0 1)(2 3) 10 17 16 | 40 | 42
 *     round 2, (1 2)(3 4) 10 16 17 | 40 | 42
 *     round 3, (0 1)(2 3) nothing left to do, but a bin of 3 keys may need it
 *
 * A lane has LEAF_RUN places in a row in its registers, a warp LEAF_WINDOW; the seams between warps come afterwards. Sorting
 * each bin by a thread of its own needs no rounds, but threads with fuller bins keep the others waiting.
 *
 * Where many keys crowd into a bin, the range is made exact, which may help; or a merge sort does it. */
#ifndef LEAF_CUH
#define LEAF_CUH

#include "kernels/cuda/msd/bins.cuh"
#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/ladder/tuning.h"
#include <limits.h>
#include <type_traits>

/* How many keys a leaf has room for, and how many blocks should share a multiprocessor. */
template <int THREADS_OF_BLOCK, int KEYS_OF_THREAD, int BLOCKS_TOGETHER>
struct leaf_size {
    static constexpr int THREADS = THREADS_OF_BLOCK, KEYS = KEYS_OF_THREAD, CAPACITY = THREADS * KEYS,
                         WARPS = THREADS / WARP, BLOCKS = BLOCKS_TOGETHER, VECTORS = 2,
                         BINS = VECTORS * 4 * THREADS, COUNTERS = BINS + WARP;
};
typedef leaf_size<LEAF_THREADS, LEAF_KEYS, LEAF_BLOCKS> largest_leaf;

/* Leaves for buckets: most of them; most of those that are cut by a sample, and so differ more; fuller ones; and those that the
 * sample has misjudged. */
template <typename K, typename V>
using usual_leaf = typename std::conditional<
    has_value<V>, leaf_size<LEAF_THREADS / 2, LEAF_KEYS_USUAL, LEAF_BLOCKS_PAIRS>,
    leaf_size<LEAF_THREADS / 2, LEAF_KEYS_USUAL, by_width<K>(LEAF_BLOCKS_4, LEAF_BLOCKS_8)>>::type;
template <typename K>
using roomy_leaf =
    leaf_size<LEAF_THREADS / 2, LEAF_KEYS_ROOMY, by_width<K>(LEAF_BLOCKS_4_ROOMY, LEAF_BLOCKS_8)>;
template <typename V>
using wide_leaf = leaf_size<LEAF_THREADS, has_value<V> ? LEAF_KEYS : LEAF_KEYS + 2, LEAF_BLOCKS>;
template <typename V>
using huge_leaf = leaf_size<LEAF_THREADS * 2, has_value<V> ? LEAF_KEYS : LEAF_KEYS + 2, 1>;

enum {
    LEAF_CAPACITY = largest_leaf::CAPACITY, /* keys */
    LEAF_RUN = 8,                           /* places in a row that a lane settles */
    LEAF_WINDOW = WARP * LEAF_RUN,
    LEAF_CROWD = WARP / 2 /* keys of a bin that are settled: it then lies in a window or around a seam */
};

/* Where element i of an array of T in shared memory lies: one is left out behind 128 bytes, so that strides of powers of
 * two meet different banks. */
template <typename T>
static __host__ __device__ constexpr int with_gaps(int i)
{
    return i + i / (128 / (int)sizeof(T));
}

/* A key of a leaf and, where there are values, its place in the bucket: equal keys stay in their order. */
template <typename K, typename V>
struct leaf_element {
    K key;
    uint32_t origin;

    __device__ bool is_behind(const leaf_element &other) const
    {
        return key > other.key || (has_value<V> && key == other.key && origin > other.origin);
    }
};

/* The elements of a leaf in shared memory. */
template <typename K, typename V>
struct leaf_places {
    typedef leaf_element<K, V> element;
    K *keys;           // [with_gaps(CAPACITY)]
    uint16_t *origins; // [CAPACITY] not there without values

    __device__ element get(int place) const
    {
        return {keys[with_gaps<K>(place)], has_value<V> ? origins[place] : 0u};
    }
    /* Place first + j, first a multiple of LEAF_RUN, j below it: no gap lies in between. */
    __device__ element get_of_run(int first, int j) const
    {
        return {keys[with_gaps<K>(first) + j], has_value<V> ? origins[first + j] : 0u};
    }
    __device__ void put_of_run(int first, int j, element e) const
    {
        keys[with_gaps<K>(first) + j] = e.key;
        if constexpr (has_value<V>)
            origins[first + j] = (uint16_t)e.origin;
    }
    __device__ void put(int place, element e) const
    {
        keys[with_gaps<K>(place)] = e.key;
        if constexpr (has_value<V>)
            origins[place] = (uint16_t)e.origin;
    }
};

/* The shared memory that a leaf takes. */
template <typename S, typename K, typename V>
static constexpr int leaf_bytes()
{
    static_assert(!has_value<V> || sizeof(V) <= sizeof(K), "values take the keys' places");
    return S::COUNTERS * 4 + with_gaps<K>(S::CAPACITY) * (int)sizeof(K) +
           (has_value<V> ? S::CAPACITY * (int)sizeof(uint16_t) : 0);
}

/* The leaf for most buckets, by what is known of them. */
template <typename KNOWN, typename K, typename V>
using leaf_for = typename std::conditional<std::is_same<KNOWN, even_parts<K>>::value && !has_value<V>,
                                           roomy_leaf<K>, usual_leaf<K, V>>::type;

/* ---- bins ---------------------------------------------------------------------------------------------- */

/* The extremes of the keys. Every thread calls it. */
template <typename S, typename K>
static __device__ void find_extremes(const K (&keys)[S::KEYS], int left, K &low, K &high)
{
    __shared__ K lows[WARP], highs[WARP];
    low = (K) ~(K)0;
    high = 0;
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            low = min(low, keys[k]);
            high = max(high, keys[k]);
        }
    }
    block_extremes(low, high, lows, highs);
}

/* Count the keys of each bin, bins [S::BINS]. Those that do not exist count behind, a counter for each lane: to ask before
 * each step takes longer. */
template <typename S, typename K, typename BINS>
static __device__ void count_bins(const K (&keys)[S::KEYS], int left, const BINS &bin_of, uint32_t *bins)
{
    for (int i = threadIdx.x; i < S::BINS / 4; i += S::THREADS)
        ((uint4 *)bins)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const uint32_t bin = bin_of(keys[k]);
        const uint32_t counter = k * S::THREADS < left ? bin : S::BINS + threadIdx.x % WARP;
        atomicAdd(&bins[counter], 1u);
    }
    __syncthreads();
}

/* Turn counts into the bins' first places. Returns the keys of the fullest bin.
 *
 * A thread has four bins in a row and four more behind those of all threads: vectors that meet no bank twice. The sums of
 * both lie in one word, one above the other. */
template <typename S>
static __device__ int scan_bins(uint32_t *bins)
{
    constexpr int VECTORS = S::VECTORS;
    static_assert(VECTORS <= 2 && S::CAPACITY < 1 << 16 && S::WARPS <= WARP, "halves of a word");
    __shared__ uint32_t sums[S::WARPS], fullest[S::WARPS]; // of warps
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    uint4 own[VECTORS];
    uint32_t sum = 0, most = 0;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        own[v] = ((uint4 *)bins)[v * S::THREADS + threadIdx.x];
        most = max(most, max(max(own[v].x, own[v].y), max(own[v].z, own[v].w)));
        sum += (own[v].x + own[v].y + own[v].z + own[v].w) << 16 * v;
    }
    uint32_t so_far = sum;
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, so_far, distance);
        so_far += lane >= distance ? below : 0;
    }
    most = warp_max(most);
    if (lane == WARP - 1) {
        sums[warp] = so_far;
        fullest[warp] = most;
    }
    __syncthreads();

    const uint32_t of_warp = sums[lane % S::WARPS];
    uint32_t up_to_warp = of_warp;
#pragma unroll
    for (int distance = 1; distance < S::WARPS; distance *= 2) {
        const uint32_t below = __shfl_up_sync(ALL_LANES, up_to_warp, distance, S::WARPS);
        up_to_warp += lane % S::WARPS >= distance ? below : 0;
    }
    const uint32_t all = __shfl_sync(ALL_LANES, up_to_warp, S::WARPS - 1);
    const uint32_t before = so_far - sum + __shfl_sync(ALL_LANES, up_to_warp - of_warp, warp);
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        const uint32_t x = v == 0 ? before & 0xffff : (before >> 16) + (all & 0xffff);
        const uint32_t y = x + own[v].x, z = y + own[v].y, w = z + own[v].z;
        ((uint4 *)bins)[v * S::THREADS + threadIdx.x] = make_uint4(x, y, z, w);
    }
    most = warp_max(fullest[lane % S::WARPS]);
    __syncthreads();
    return (int)most;
}

/* ---- order inside the bins ----------------------------------------------------------------------------- */

/* What the lane at the lower, or the upper, of two places keeps of its own element and the other's. */
template <typename K, typename V>
static __device__ leaf_element<K, V> keep_element(leaf_element<K, V> mine, leaf_element<K, V> other,
                                                  bool is_lower)
{
    if constexpr (sizeof(K) == 4 && !has_value<V>)
        return {is_lower ? min(mine.key, other.key) : max(mine.key, other.key), 0};
    const bool take = is_lower ? mine.is_behind(other) : other.is_behind(mine);
    return {take ? other.key : mine.key, take ? other.origin : mine.origin};
}

template <typename K, typename V>
static __device__ void order_elements(leaf_element<K, V> &lower, leaf_element<K, V> &upper)
{
    const leaf_element<K, V> a = lower, b = upper;
    if constexpr (sizeof(K) == 4 && !has_value<V>) {
        lower.key = min(a.key, b.key);
        upper.key = max(a.key, b.key);
    } else {
        const bool exchange = a.is_behind(b);
        lower.key = exchange ? b.key : a.key, upper.key = exchange ? a.key : b.key;
        if constexpr (has_value<V>)
            lower.origin = exchange ? b.origin : a.origin, upper.origin = exchange ? a.origin : b.origin;
    }
}

template <typename K, typename V>
static __device__ leaf_element<K, V> element_of_lane(leaf_element<K, V> mine, int lane)
{
    return {__shfl_sync(ALL_LANES, mine.key, lane),
            has_value<V> ? __shfl_sync(ALL_LANES, mine.origin, lane) : 0u};
}

/* What stands behind the last element. */
template <typename K, typename V>
static __device__ leaf_element<K, V> last_element()
{
    return {(K) ~(K)0, ~0u};
}

/* Settle the bins that lie in one window. A round compares neighbours, every second pair, also those of two lanes. FULL: the
 * window has no place behind the last element. */
template <bool FULL, typename K, typename V>
static __device__ void settle_window(leaf_places<K, V> places, int begin, int count, int rounds)
{
    const int lane = threadIdx.x % WARP, first = begin + lane * LEAF_RUN;
    leaf_element<K, V> run[LEAF_RUN];
#pragma unroll
    for (int j = 0; j < LEAF_RUN; j++)
        run[j] = FULL || first + j < count ? places.get_of_run(first, j) : last_element<K, V>();
#pragma unroll 1
    for (int round = 0; round < rounds; round += 2) {
#pragma unroll
        for (int j = 0; j < LEAF_RUN; j += 2)
            order_elements(run[j], run[j + 1]);
        const leaf_element<K, V> below = element_of_lane(run[LEAF_RUN - 1], (lane + WARP - 1) % WARP),
                                 above = element_of_lane(run[0], (lane + 1) % WARP);
#pragma unroll
        for (int j = 1; j < LEAF_RUN - 1; j += 2)
            order_elements(run[j], run[j + 1]);
        if (lane > 0)
            run[0] = keep_element(run[0], below, false);
        if (lane < WARP - 1)
            run[LEAF_RUN - 1] = keep_element(run[LEAF_RUN - 1], above, true);
    }
#pragma unroll
    for (int j = 0; j < LEAF_RUN; j++) {
        if (FULL || first + j < count)
            places.put_of_run(first, j, run[j]);
    }
}

template <typename S, typename K, typename V>
static __device__ void settle_windows(leaf_places<K, V> places, int count, int rounds)
{
    for (int begin = threadIdx.x / WARP * LEAF_WINDOW; begin < count; begin += S::WARPS * LEAF_WINDOW) {
        if (begin + LEAF_WINDOW <= count)
            settle_window<true>(places, begin, count, rounds);
        else
            settle_window<false>(places, begin, count, rounds);
    }
}

/* Settle the bins that two windows share: a warp for the places around each seam. Both parts of such a bin are in order, so
 * the two keys at the seam tell whether there is something to do. */
template <typename S, typename K, typename V>
static __device__ void settle_seams(leaf_places<K, V> places, int count, int rounds)
{
    const int lane = threadIdx.x % WARP;
    for (int seam = (threadIdx.x / WARP + 1) * LEAF_WINDOW; seam < count; seam += S::WARPS * LEAF_WINDOW) {
        if (!places.get(seam - 1).is_behind(places.get(seam)))
            continue;
        const int place = seam - WARP / 2 + lane;
        leaf_element<K, V> mine = place < count ? places.get(place) : last_element<K, V>();
#pragma unroll 1
        for (int round = 0; round < rounds; round++) {
            const int partner = ((lane + round % 2) ^ 1) - round % 2;
            const leaf_element<K, V> other = element_of_lane(mine, partner & (WARP - 1));
            if (0 <= partner && partner < WARP)
                mine = keep_element(mine, other, lane < partner);
        }
        __syncwarp();
        if (place < count)
            places.put(place, mine);
    }
}

/* Put a thread's elements in order, by rounds that compare neighbours. */
template <int KEYS, typename K, typename V>
static __device__ void order_run(leaf_element<K, V> (&run)[KEYS])
{
#pragma unroll 1
    for (int round = 0; round < KEYS; round += 2) {
#pragma unroll
        for (int j = 0; j + 1 < KEYS; j += 2)
            order_elements(run[j], run[j + 1]);
#pragma unroll
        for (int j = 1; j + 1 < KEYS; j += 2)
            order_elements(run[j], run[j + 1]);
    }
}

/* How many of the first `outputs` elements of a merge come from the run at `a` [a_count]; the others come from b. */
template <typename K, typename V>
static __device__ int leaf_cut(leaf_places<K, V> places, int a, int a_count, int b, int b_count, int outputs)
{
    int low = max(outputs - b_count, 0), high = min(outputs, a_count);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (places.get(a + middle).is_behind(places.get(b + outputs - 1 - middle)))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Sort places [count] by merging, whatever the keys: runs of a thread first, then two and two. A network takes four times
 * as long. */
template <typename S, typename K, typename V>
static __device__ void leaf_merge(leaf_places<K, V> places, int count)
{
    leaf_element<K, V> run[S::KEYS];
    const int own = threadIdx.x * S::KEYS;
#pragma unroll
    for (int j = 0; j < S::KEYS; j++)
        run[j] = own + j < count ? places.get(own + j) : last_element<K, V>();
    order_run<S::KEYS, K, V>(run);
    for (int length = S::KEYS;; length *= 2) {
        __syncthreads(); // the places have been read
#pragma unroll
        for (int j = 0; j < S::KEYS; j++) {
            if (own + j < count)
                places.put(own + j, run[j]);
        }
        if (length >= count)
            return;
        __syncthreads();
        const int begin = own / (2 * length) * (2 * length), middle = min(begin + length, count),
                  end = min(begin + 2 * length, count), before = min(own, count) - min(begin, count);
        int a = begin + leaf_cut(places, begin, middle - begin, middle, end - middle, before),
            b = middle + before - (a - begin);
#pragma unroll
        for (int j = 0; j < S::KEYS; j++) {
            const leaf_element<K, V> from_a = a < middle ? places.get(a) : last_element<K, V>(),
                                     from_b = b < end ? places.get(b) : last_element<K, V>();
            const bool takes_b = b < end && (a >= middle || from_a.is_behind(from_b));
            run[j] = takes_b ? from_b : from_a;
            a += !takes_b;
            b += takes_b;
        }
    }
}

/* ---- the leaf ------------------------------------------------------------------------------------------ */

template <typename S, bool DECODES, typename K, typename V>
static __device__ void store_keys(const struct coding &coding, leaf_places<K, V> places, K *to, int left)
{
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            const K code = places.keys[with_gaps<K>(threadIdx.x) + k * with_gaps<K>(S::THREADS)];
            to[threadIdx.x + k * S::THREADS] = DECODES ? decode(coding.map, code) : code;
        }
    }
}

/* Elements [count] that are in order as they are: every `stride`-th from `first` on. */
template <typename K, typename V>
static __device__ void copy_elements(const struct coding &coding, columns<K, V> from, columns<K, V> to,
                                     int64_t count, int64_t first, int64_t stride)
{
#pragma unroll 4
    for (int64_t i = first; i < count; i += stride) {
        element<K, V> e = from.load(i);
        e.key = stored_key(coding, loaded_code(coding, e.key));
        to.store(i, e);
    }
}

/* Fetch the values to where their keys have gone: by way of shared memory, which the keys have left. */
template <typename S, typename K, typename V>
static __device__ void move_leaf_values(const V *from, V *to, int count, leaf_places<K, V> places)
{
    V *values = (V *)places.keys;
    __syncthreads(); // the keys have been stored
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const int i = threadIdx.x + k * S::THREADS;
        if (i < count)
            values[with_gaps<V>(i)] = from[i];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        const int i = threadIdx.x + k * S::THREADS;
        if (i < count)
            to[i] = values[with_gaps<V>(places.origins[i])];
    }
}

/* Keys, and values, from [count] in ascending order to `to` [count], which may be the same arrays; at most S::CAPACITY.
 * Stable. `known` of the codes: a leaf_range, or one of even_parts, in which all of them lie. */
template <typename S = largest_leaf, typename K, typename V, typename KNOWN>
static __device__ void leaf_sort(const struct coding &coding, columns<K, V> from, columns<K, V> to, int count,
                                 const KNOWN &known)
{
    extern __shared__ uint4 leaf_memory[];
    uint32_t *bins = (uint32_t *)leaf_memory;
    K *kept = (K *)(bins + S::COUNTERS);
    const leaf_places<K, V> places = {kept, (uint16_t *)(kept + with_gaps<K>(S::CAPACITY))};
    K keys[S::KEYS], low, high;
    const int left = count - (int)threadIdx.x; // key k of this thread is there if k THREADS is below

    // 1. load
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left)
            keys[k] = from.keys[threadIdx.x + k * S::THREADS];
    }
    encode_loaded(coding, keys);

    // 2. count the bins; if they are crowded, once more with the exact range
    if (known.is_value())
        return copy_elements(coding, from, to, count, threadIdx.x, S::THREADS);
    auto bin_of = bins_of<S, K>(known);
    int fullest = INT_MAX;
    if (known.is_known()) {
        count_bins<S>(keys, left, bin_of, bins);
        fullest = scan_bins<S>(bins);
    }
    if (!known.is_known() || (fullest > LEAF_CROWD && !bin_of.are_values())) {
        find_extremes<S>(keys, left, low, high);
        if (low == high)
            return copy_elements(coding, from, to, count, threadIdx.x, S::THREADS);
        bin_of = {low, high};
        count_bins<S>(keys, left, bin_of, bins);
        fullest = scan_bins<S>(bins);
    }

    // 3. put the keys in the order of their bins. Each takes the next place of its bin: to keep the ranks that counting
    // gave them takes a register for each key, which costs more than to ask again
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if (k * S::THREADS < left) {
            const uint32_t place = atomicAdd(&bins[bin_of(keys[k])], 1u);
            places.put((int)place, {keys[k], threadIdx.x + k * S::THREADS});
        }
    }
    __syncthreads();

    // 4. settle the order inside the bins; in bins of one value keys are equal
    if ((!bin_of.are_values() || has_value<V>)&&fullest > 1) {
        if (fullest > LEAF_CROWD) {
            leaf_merge<S>(places, count);
        } else {
            settle_windows<S>(places, count, fullest);
            __syncthreads();
            settle_seams<S>(places, count, fullest);
        }
        __syncthreads();
    }
    if (coding.decodes)
        store_keys<S, true>(coding, places, to.keys, left);
    else
        store_keys<S, false>(coding, places, to.keys, left);
    if constexpr (has_value<V>)
        move_leaf_values<S>(from.values, to.values, count, places);
}

#endif
