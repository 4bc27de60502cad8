/* Where the regions of a large sort's first level lie: each in *extents* of its own, some tiles long. How many keys a region has
 * is known when all have been scattered, not sooner, so memory is handed out as it is needed: a region that has filled an extent
 * gets the next one that is free.
 *
 *     keys       31 02 73 30 64 12 97 55 08 41 70 26 88 19 60 47        regions 0-49 and 50-99, extents of 4 keys
 *     extents    0: 31 02 30 12   1: 73 64 97 55   2: 08 41 26 19   3: 70 88 60 .   4: 47 . . .
 *     rows       region 0: 0 2 4      region 1: 1 3
 *
 * So no pass over the keys counts them before, no region can overflow, and beside the keys this takes an extent for each region.
 * The next level reads tile by tile, and a tile lies in one extent.
 *
 * A run of keys that a tile has for a region may be cut by the end of an extent. That is seldom: such a run is put on a list, and
 * stored after the others. Who is given the first place of an extent takes it and writes it into the region's row; whoever has
 * places behind that waits for the row. Nobody waits before it has written what others wait for.
 *
 * Rejected Regions with room to spare, as buckets have: twice the memory of the keys. A count before: a pass more. */
#ifndef EXTENTS_CUH
#define EXTENTS_CUH

#include "kernels/cuda/msd/first_level.cuh"

enum { EXTENTS_MOST = 1 << 13 /* of all keys, but for one of each region: the length of a row */ };

/* ---- the scatter --------------------------------------------------------------------------------------- */

/* The extent, of those of its region, that has a place. TILE: keys. */
template <int TILE, typename K>
static __device__ uint32_t extent_of(const struct extents<K> &extents, uint64_t place)
{
    return (uint32_t)(place / TILE >> extents.log_tiles);
}

/* Where place `place` of a region is, in its extent `extent`, which has such a number. */
template <int TILE, typename K>
static __device__ K *place_in_extent(const struct extents<K> &extents, uint32_t extent, uint32_t number,
                                     uint64_t place)
{
    return begin_of_extent(extents, number) + (place - ((uint64_t)extent * TILE << extents.log_tiles));
}

/* Places for the keys of a region, as goal_of() of scatter(). A run that is cut goes nowhere, but on the list; its first place is
 * noted in places.
 *
 * Most often a run lies in the extent that its region has begun last. So that one is noted beside the cursor, as its number in the
 * region and, one more than that, in memory: it is read while the cursor answers, and the row is read only if it is another one. */
template <typename K, int TILE>
struct goals_in_extents {
    struct extents<K> extents;
    struct bucket_line *regions;
    struct cut_runs<K> *cut;
    uint64_t *places;

    /* Take the extents whose first place is among `keys` places from `place` on. */
    __device__ void begin_extents(uint32_t first, uint32_t last, uint64_t place, volatile uint32_t *row,
                                  volatile uint64_t *noted) const
    {
        const bool begins_first = ((uint64_t)first * TILE << extents.log_tiles) == place;
        for (uint32_t extent = begins_first ? first : first + 1; extent <= last; extent++) {
            const uint32_t taken = atomicAdd(extents.taken, 1u) + 1;
            row[extent] = taken;
            *noted = (uint64_t)extent << 32 | taken;
        }
    }

    struct answer {
        uint64_t cursor, noted;
    };

    __device__ struct answer ask(int region, uint32_t keys) const
    {
        struct bucket_line &line = regions[region / BUCKETS_OF_LINE];
        const int at = region % BUCKETS_OF_LINE;
        const uint64_t noted = *(volatile uint64_t *)&line.extents[at];
        return {atomicAdd((unsigned long long *)&line.cursors[at], (unsigned long long)keys), noted};
    }

    __device__ K *goal_of(int region, uint32_t keys, const struct answer &answer) const
    {
        struct bucket_line &line = regions[region / BUCKETS_OF_LINE];
        const int at = region % BUCKETS_OF_LINE;
        const uint64_t noted = answer.noted, place = answer.cursor - line.begins[at];
        if (line.limits[at] == 0) // of one value: its keys are only counted
            return NULL;
        volatile uint32_t *row = extents.rows + (int64_t)region * extents.row_length;
        const uint32_t first = extent_of<TILE>(extents, place),
                       last = extent_of<TILE>(extents, place + keys - 1);
        uint32_t taken = (uint32_t)noted;
        begin_extents(first, last, place, row, &line.extents[at]);
        if (taken == 0 || noted >> 32 != first) {
            while ((taken = row[first]) == 0)
                continue;
        }
        if (first == last)
            return place_in_extent<TILE>(extents, first, taken - 1, place);
        const uint32_t number = atomicAdd(&cut->count, 1u);
        cut->regions[number] = (uint16_t)region;
        cut->keys[number] = (uint16_t)keys;
        places[number] = place;
        return NULL;
    }
};

/* Store the runs that are cut, a warp each, from the tile, whose keys are in the order of their regions. */
template <typename K, int KEYS>
static __device__ void store_cut_runs(const struct extents<K> &extents, const struct cut_runs<K> &cut,
                                      const uint64_t *places, const struct scatter_words<K> &words)
{
    extern __shared__ uint4 scatter_memory[];
    constexpr int TILE = SCATTER_THREADS * KEYS;
    const scatter_tile<K, KEYS> &tile = *(const scatter_tile<K, KEYS> *)scatter_memory;
    for (uint32_t i = threadIdx.x / WARP; i < cut.count; i += SCATTER_THREADS / WARP) {
        const int region = cut.regions[i], first = (int)words.counts[region];
        const uint32_t *row = extents.rows + (int64_t)region * extents.row_length;
        for (int k = threadIdx.x % WARP; k < cut.keys[i]; k += WARP) {
            const uint64_t place = places[i] + k;
            const uint32_t extent = extent_of<TILE>(extents, place),
                           number = *(volatile const uint32_t *)(row + extent) - 1;
            *place_in_extent<TILE>(extents, extent, number, place) = tile.keys[spread_place(first + k)];
        }
    }
}

/* Scatter all keys [count] to the extents of their regions, unless the count has found them in order, or all in regions of one value. */
template <typename K, int KEYS, typename FIRST, typename S>
static __global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS)
    scatter_to_extents_kernel(const __grid_constant__ FIRST coding, const S *keys, int64_t count,
                              struct level_tables<K> level)
{
    __shared__ struct scatter_words<K> words;
    __shared__ struct cut_runs<K> cut;
    constexpr int TILE = SCATTER_THREADS * KEYS;
    static_assert(TILE <= UINT16_MAX, "keys of a run");
    const int64_t first = (int64_t)blockIdx.x * TILE;
    if (threadIdx.x == 0)
        cut.count = 0;
    wait_for_kernels_before();
    if (!level.region_counts->ascents || !level.region_counts->descents || !level.region_counts->moves)
        return;
    // the tree is not read any more when places are asked for
    const goals_in_extents<K, TILE> goals = {level.extents, level.buckets, &cut, words.places_of_cut};
    scatter<KEYS>(coding, keys + first, (int)min((int64_t)TILE, count - first), *level.splits, NULL, goals,
                  words);
    store_cut_runs<K, KEYS>(level.extents, cut, words.places_of_cut, words);
}

/* Tell the host how many keys each region has, or that keys are in order; and list those of one value, to be written anew where
 * they belong. One block. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    tell_extents_kernel(struct level_tables<K> level, volatile int64_t *told, volatile int32_t *verdict)
{
    __shared__ uint64_t sums[2][SPLIT_BUCKETS / WARP];
    const int region = threadIdx.x;
    wait_for_kernels_before();
    const struct split_head<K> split = *level.splits;
    const struct bucket_ends<K> ends = ends_of_bucket(level.splits->splitters, region);
    const struct bucket scattered = get_bucket(level.buckets, region);
    const struct region_counts &counts = *level.region_counts;
    const bool is_sorted = !counts.descents, is_reversed = !counts.ascents;
    const bool exists = region < split.buckets && !is_sorted && !is_reversed;
    const uint64_t keys = !exists        ? 0
                          : counts.moves ? scattered.cursor - scattered.begin
                                         : counts.keys[region];
    K value;
    const bool is_one = exists && is_one_value(split, region, ends, &value);
    uint64_t all;
    const uint64_t begin = block_sum_of_warps(keys, sums[0], &all);
    list_fills(is_one ? keys : 0, begin, region, level, sums[1]);
    told[region] = (int64_t)(keys << 1 | (is_one ? 1 : 0));
    __threadfence_system();
    __syncthreads();
    if (region == 0)
        *verdict = is_sorted ? FIRST_SORTED : is_reversed ? FIRST_REVERSED : FIRST_SPLIT;
}

#endif
