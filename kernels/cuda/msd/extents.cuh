/* Where the regions of a large sort's first level lie: each region in *extents* of its own, which are some tiles long. How many keys a
 * region has is not known until all keys have been scattered, so memory is handed out as it is needed: a region that has filled an
 * extent gets the next extent that is free.
 *
 *     keys       31 02 73 30 64 12 97 55 08 41 70 26 88 19 60 47        regions 0-49 and 50-99, extents of 4 keys
 *     extents    0: 31 02 30 12   1: 73 64 97 55   2: 08 41 26 19   3: 70 88 60 .   4: 47 . . .
 *     rows       region 0: 0 2 4      region 1: 1 3
 *
 * So no pass over the keys has to count them before, no region can overflow, and the memory beside that of the keys is one extent for
 * each region. The next level reads tile by tile, and each tile lies in one extent.
 *
 * The end of an extent may cut a run, which is all keys that a tile has for a region. This is rare if a tile has keys of many regions,
 * and usual if it has keys of only one. Such a run is put on a list, and all threads store it after the other runs. The thread that is
 * given the first place of an extent takes the extent and writes its number into the region's row; whoever has places behind that first
 * place waits for the row. Nobody waits for the row of a region before it has written what others wait for in that row, and all threads
 * go through their regions in the same order.
 *
 * Rejected Regions with room to spare, as buckets have: twice the memory of the keys. A count before the scatter: one more pass. */
#ifndef EXTENTS_CUH
#define EXTENTS_CUH

#include "kernels/cuda/msd/first_level.cuh"

enum { EXTENTS_MOST = 1 << 13 /* of all keys, beside one for each region: the length of a row */ };
static_assert(EXTENTS_MOST + SPLIT_BUCKETS <= UINT16_MAX, "numbers in struct cut_run");

/* ---- the scatter --------------------------------------------------------------------------------------- */

/* A run of a tile that the end of an extent cuts: the numbers of both extents, how many keys the run has, and how many of these are in
 * the first extent. */
struct cut_run {
    uint16_t first, second, keys, keys_in_first;
};

/* The cut runs of a tile: at most one for each of the REGIONS. Regions of one value have none, because their keys are not scattered. */
template <int REGIONS>
struct cut_regions {
    uint32_t count;
    uint16_t regions[REGIONS];
    struct cut_run runs[REGIONS];
};

/* The extent that has a place of a region, as its number among the region's extents. TILE: keys of a tile. */
template <int TILE, typename K>
static __device__ uint32_t extent_of(const struct extents<K> &extents, uint64_t place)
{
    return (uint32_t)(place / TILE >> extents.log_tiles);
}

/* Places for the keys of a region, as scatter() asks for them. A run that is cut goes nowhere except onto the list.
 *
 * Most often a run lies in the extent that its region has begun last. So that extent is noted beside the cursor: its number in the
 * region and, plus one, its number in memory. The note is read while the cursor answers, and the row is read only if the run lies in
 * another extent. */
template <typename K, int TILE, int REGIONS>
struct goals_in_extents {
    struct extents<K> extents;
    struct bucket_line *regions;
    struct cut_regions<REGIONS> *cut;

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

    /* Take an extent for the region that has the row. Returns one more than the extent's number. */
    __device__ uint32_t begin_extent(uint32_t extent, volatile uint32_t *row, volatile uint64_t *noted) const
    {
        const uint32_t taken = atomicAdd(extents.taken, 1u) + 1;
        row[extent] = taken;
        *noted = (uint64_t)extent << 32 | taken;
        return taken;
    }

    __device__ K *goal_of(int region, uint32_t keys, const struct answer &answer) const
    {
        struct bucket_line &line = regions[region / BUCKETS_OF_LINE];
        const int at = region % BUCKETS_OF_LINE;
        const uint64_t place = answer.cursor - line.begins[at];
        if (line.limits[at] == 0) // of one value: its keys are only counted
            return NULL;
        volatile uint32_t *row = extents.rows + (int64_t)region * extents.row_length;
        // last is first, or the next one: a tile is no longer than an extent
        const uint32_t first = extent_of<TILE>(extents, place),
                       last = extent_of<TILE>(extents, place + keys - 1);
        const uint32_t before = (uint32_t)(place - ((uint64_t)first * TILE << extents.log_tiles));
        uint32_t taken = answer.noted >> 32 == first ? (uint32_t)answer.noted : 0, taken_last = 0;
        if (before == 0)
            taken = begin_extent(first, row, &line.extents[at]);
        if (last > first)
            taken_last = begin_extent(last, row, &line.extents[at]);
        while (taken == 0) // after the writes that others wait for
            taken = row[first];
        if (last == first)
            return begin_of_extent(extents, taken - 1) + before;
        const uint32_t number = atomicAdd(&cut->count, 1u);
        cut->regions[number] = (uint16_t)region;
        cut->runs[number] = {(uint16_t)(taken - 1), (uint16_t)(taken_last - 1), (uint16_t)keys,
                             (uint16_t)(extents.keys - before)};
        return NULL;
    }
};

/* Store the cut runs of the tile, whose keys are in the order of their regions. The runs are stored one after the other, each in rows of
 * a warp that are shared out over all warps: there may be many short runs, or one that is all of the tile. */
template <int KEYS, typename K, int REGIONS>
static __device__ void store_cut_runs(const struct extents<K> &extents,
                                      const struct cut_regions<REGIONS> &cut,
                                      const struct scatter_words<K> &words)
{
    extern __shared__ uint4 scatter_memory[];
    constexpr uint32_t WARPS = SCATTER_THREADS / WARP;
    const scatter_tile<K, KEYS> &tile = *(const scatter_tile<K, KEYS> *)scatter_memory;
    uint32_t row = threadIdx.x / WARP; // the row of this run that is the next one for this warp
    for (uint32_t i = 0; i < cut.count; i++) {
        const struct cut_run run = cut.runs[i];
        const uint32_t first = keys_before(words.counts[cut.regions[i]]);
        K *in_first = begin_of_extent(extents, run.first) + (extents.keys - run.keys_in_first),
          *in_second = begin_of_extent(extents, run.second);
        for (; row * WARP < run.keys; row += WARPS) {
            const uint32_t k = row * WARP + threadIdx.x % WARP;
            if (k < run.keys)
                *(k < run.keys_in_first ? in_first + k : in_second + (k - run.keys_in_first)) =
                    tile.keys[spread_place((int)(first + k))];
        }
        row -= (run.keys + WARP - 1) / WARP;
    }
}

/* Scatter all keys [count] to the extents of their regions, unless the count has found them in order, or all in regions of one value. */
template <typename K, int KEYS, int REGIONS, typename FIRST, typename S>
static __global__ void __launch_bounds__(SCATTER_THREADS, SCATTER_BLOCKS)
    scatter_to_extents_kernel(const __grid_constant__ FIRST coding, const S *keys, int64_t count,
                              struct level_tables<K> level)
{
    __shared__ struct scatter_words<K> words;
    __shared__ struct cut_regions<REGIONS> cut;
    constexpr int TILE = SCATTER_THREADS * KEYS;
    static_assert(TILE <= UINT16_MAX, "keys of a run");
    const int64_t first = (int64_t)blockIdx.x * TILE;
    if (threadIdx.x == 0)
        cut.count = 0;
    wait_for_kernels_before();
    if (!level.region_counts->ascents || !level.region_counts->descents || !level.region_counts->moves)
        return;
    const goals_in_extents<K, TILE, REGIONS> goals = {level.extents, level.buckets, &cut};
    scatter<KEYS>(coding, keys + first, (int)min((int64_t)TILE, count - first), *level.splits, NULL, goals,
                  words);
    store_cut_runs<KEYS>(level.extents, cut, words);
}

/* Tell the host how many keys each region has, or that keys are in order. List the regions of one value, whose keys are written anew
 * where they belong. One block. */
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
