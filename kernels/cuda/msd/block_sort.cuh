/* The last step of an MSD sort: a block sorts the keys of a bucket in shared memory.
 *
 * The range of its keys is cut into about 2^11 bins of equal width. Counting the keys of each bin tells where the bin begins, so that all
 * keys can be put in the order of their bins at once. The few keys that share a bin are then ordered among themselves, by rounds that
 * compare neighbours: as many rounds as the fullest bin has keys, or until a window is in order.
 *
 *     keys                17 42 10 40 16        range 10 .. 42, bins of width 8: 10-17 18-25 26-33 34-41 42-49
 *     bin                  0  4  0  3  0
 *     bins begin at        0  3  3  3  4
 *     by bins             17 10 16 | 40 | 42    each key takes the next place of its bin, in any order
 *     round 1, (0 1)(2 3) 10 17 16 | 40 | 42
 *     round 2, (1 2)(3 4) 10 16 17 | 40 | 42
 *     round 3, (0 1)(2 3) nothing left to do, but a bin of 3 keys may need it
 *
 * If many keys crowd into a bin, all bins are cut into finer ones (finer.cuh). A finer bin that is still a crowd is sorted by itself
 * (crowds.cuh). */
#ifndef BLOCK_SORT_CUH
#define BLOCK_SORT_CUH

#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/msd/crowds.cuh"
#include "kernels/cuda/ladder/tuning.h"
#include <limits.h>

/* If one bin has more than one in so many of the keys, the known range is not the range of these keys. */
enum { CROWDED_SHARE = 4 };

/* The shared memory that a block sort takes. */
template <typename S, typename K>
static __host__ __device__ constexpr int block_sort_bytes()
{
    return S::COUNTERS * 4 + (int)sizeof(struct crowd_lists<S>) + with_gaps<K>(S::CAPACITY) * (int)sizeof(K);
}

/* ---- the block sort ------------------------------------------------------------------------------------ */

/* Store each code as stored(code): the caller has settled how codes are stored. */
template <typename S, typename K, typename T, typename STORED>
static __device__ void store_places_as(const K *places, T *to, int count, const STORED &stored)
{
    for_rows<S>(count, [&](int k) {
        to[threadIdx.x + k * S::THREADS] =
            stored(places[with_gaps<K>(threadIdx.x) + k * with_gaps<K>(S::THREADS)]);
    });
}

template <typename S, typename K>
static __device__ void store_places(const struct coding &coding, const K *places, K *to, int count)
{
    if (coding.decodes)
        store_places_as<S>(places, to, count, [&](K code) { return decode(coding.map, code); });
    else
        store_places_as<S>(places, to, count, [](K code) { return code; });
}

template <typename S, typename K>
static __device__ void store_places(const struct positions_of<K> &last, const K *places, int64_t *to,
                                    int count)
{
    store_places_as<S>(places, to, count, [&](K code) { return stored_key(last, code); });
}

/* Copy every `stride`-th of keys [count], from `begin` on. The keys are equal, or in order for another reason. */
template <typename K, typename FIRST, typename LAST, typename S, typename T>
static __device__ void copy_in_order(const FIRST &first, const LAST &last, const S *from, T *to,
                                     int64_t count, int64_t begin, int64_t stride)
{
#pragma unroll 4
    for (int64_t i = begin; i < count; i += stride)
        to[i] = stored_key(last, load_code<K>(first, from + i));
}

/* What a block sort does to keys as it loads them. If it stores positions, the keys are codes already. */
static __device__ const struct coding &coding_of_load(const struct coding &coding)
{
    return coding;
}

template <typename K>
static __device__ struct coding coding_of_load(const struct positions_of<K> &)
{
    return {};
}

/* The shared memory of a block sort. Others may use it when no block sort is running. */
static __device__ void *block_sort_shared()
{
    extern __shared__ uint4 block_sort_memory[];
    return block_sort_memory;
}

/* Sort the keys that the threads hold, codes [count], into shared memory. Returns the places, which with_gaps() indexes; NULL, with
 * nothing done, if it finds that all codes are equal.
 *   known  of the codes: the bins to begin with. If none are known, the exact range is found first
 *   lumps  the positions in the codes, if they have some
 * Every thread calls it. There must be a barrier before the next call. */
template <typename S, typename K>
static __device__ K *sort_into_places(const K (&keys)[S::KEYS], int count, even_parts<K> known,
                                      const struct lump_bits &lumps)
{
    uint32_t *bins = (uint32_t *)block_sort_shared();
    struct crowd_lists<S> &crowds = *(struct crowd_lists<S> *)(bins + S::COUNTERS);
    K *places = (K *)(&crowds + 1);

    // 1. count the keys of each bin; if one has a large share of all keys, once more with the exact range
    scaled_bins<S, K> bin_of = known;
    int fullest = INT_MAX;
    if (known.is_known()) {
        count_bins<S>(keys, count, bin_of, bins);
        fullest = scan_bins<S>(bins);
    }
    if (fullest > max((int)CROWD, count / CROWDED_SHARE) && (!known.is_known() || !bin_of.are_values())) {
        fullest = count_in_range<S>(keys, count, bin_of, bins);
        if (fullest == 0)
            return NULL;
    }

    // 2. put the keys in the order of their bins, or of finer ones; then settle the order inside the bins. Bins of one value
    // need no settling: their keys are equal
    const bool are_values = bin_of.are_values();
    if (fullest <= CROWD || are_values) {
        place_by_bins<S>(keys, 0, count, bin_of, bins, places);
    } else {
        if (threadIdx.x == 0)
            crowds.small_count = crowds.large_count = 0;
        place_by_finer_bins<S>(keys, count, bin_of, lumps, bins, places, crowds);
        settle_crowds<S>(places, bins, crowds);
    }
    if (!are_values && fullest > 1) {
        settle_windows<S>(places, count, min(fullest, (int)CROWD));
        settle_seams<S>(places, count, min(fullest, (int)CROWD));
    }
    return places;
}

/* Sort keys `from` [count] into `to` [count], which may be the same array. count is at most S::CAPACITY.
 *   coding  a `struct coding`, for both ways; or a positions_of, if the keys are codes
 *   known   as above
 * Every thread calls it. There must be a barrier before the next call. */
template <typename S, typename K, typename CODING>
static __device__ void block_sort(const CODING &coding, const K *from,
                                  typename stored_as<K, CODING>::type *to, int count, even_parts<K> known)
{
    K keys[S::KEYS];
#pragma unroll
    for (int k = 0; k < S::KEYS; k++) {
        if ((int)threadIdx.x + k * S::THREADS < count)
            keys[k] = from[threadIdx.x + k * S::THREADS];
    }
    encode_loaded(coding_of_load(coding), keys);
    const K *places = sort_into_places<S>(keys, count, known, {});
    if (places)
        store_places<S>(coding, places, to, count);
    else
        copy_in_order<K>(coding_of_load(coding), coding, from, to, count, threadIdx.x, S::THREADS);
}

#endif
