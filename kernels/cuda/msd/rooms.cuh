/* Regions of a first level in rooms: all keys are scattered, and only a part of them was counted before. The part is spread over all
 * keys (count.cuh), so a region has about as many keys as the part says. Each region gets room for some more, out of the memory there is
 * to spare, in proportion to how far such a count is wrong.
 *
 *     keys        9 2 6 c 1 5 a 3 8 4 1 f        every third counted: 9 c a 4      regions 0-7 and 8-f
 *     likely      3 | 9                          room for 15: 3 to spare, in proportion to the roots of 1 and 3
 *     rooms       . . . . | . . . . . . . . . .
 *     scattered   2 6 1 5 3 4 1: too many        the cursor has counted them: 7 | 5, so the places without gaps are known
 *     again       2 6 1 5 3 4 1 | 9 c a 8 f
 *
 * Nothing is scattered if there is too little to spare, or if the part goes up all the way, because all keys may then be in order. Keys
 * whose neighbours are alike are counted less well than the standard error says, and more often have to be scattered twice.
 *
 * Rejected Extents, as in a sort alone (extents.cuh): what other ranks fetch would lie in as many pieces. */
#ifndef ROOMS_CUH
#define ROOMS_CUH

#include "kernels/cuda/msd/first_level.cuh"

enum {
    ROOM_EVERY = 8,       /* groups of vectors, of which one is counted */
    ROOM_ERRORS = 6,      /* standard errors that a region has to spare at most: this room is fetched, too */
    ROOM_ERRORS_MIN = 4,  /* with fewer nothing is scattered */
    ROOM_PARTS = 16,      /* of a standard error */
    ROOM_COUNTED_MORE = 9 /* keys added to a count when its error is reckoned: where none was counted, there may be some */
};

template <typename K>
static __device__ bool region_moves(const struct level_tables<K> &level, int region)
{
    const struct split_head<K> split = *level.splits;
    K value;
    return region < split.buckets &&
           !is_one_value(split, region, ends_of_bucket(level.splits->splitters, region), &value);
}

/* Turn the counts of a part of keys [count] into rooms, which are `room` keys together at most. One block. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    place_rooms_kernel(int64_t count, int64_t room, struct level_tables<K> level)
{
    __shared__ uint64_t sums[4][SPLIT_BUCKETS / WARP];
    const int region = threadIdx.x;
    wait_for_kernels_before();
    const bool moves = region_moves(level, region);
    const uint64_t counted = level.region_counts->keys[region];
    uint64_t all_counted, all_likely, all_errors, all;
    block_sum_of_warps(counted, sums[0], &all_counted);
    const double stands_for = (double)count / (double)max(all_counted, (uint64_t)1);
    const uint64_t likely = moves ? (uint64_t)ceil((double)counted * stands_for) : 0,
                   error =
                       moves ? (uint64_t)ceil(sqrt((double)(counted + ROOM_COUNTED_MORE)) * stands_for) : 0;
    block_sum_of_warps(likely, sums[1], &all_likely);
    block_sum_of_warps(error, sums[2], &all_errors);
    const uint64_t spare = max((uint64_t)room, all_likely) - all_likely;
    const uint64_t parts =
        min(spare * ROOM_PARTS / max(all_errors, (uint64_t)1), (uint64_t)(ROOM_ERRORS * ROOM_PARTS));
    const uint64_t own = likely + error * parts / ROOM_PARTS;
    const uint64_t begin = block_sum_of_warps(own, sums[3], &all);
    set_bucket(level.buckets, region, {begin, begin, moves ? begin + own : 0});
    if (region == 0) {
        level.head->is_done = parts < ROOM_ERRORS_MIN * ROOM_PARTS || !level.region_counts->descents;
        level.head->any_overflow = level.overflows[0] = 0;
    }
}

/* Tell the host how many keys each region has, as place_regions_kernel() does, where the regions begin, and what has been done (`enum
 * engine_scattered`). If the keys did not fit, set where regions lie without gaps. One block. */
template <typename K>
static __global__ void __launch_bounds__(SPLIT_BUCKETS)
    tell_rooms_kernel(struct level_tables<K> level, volatile int64_t *told, volatile int64_t *begins,
                      volatile int32_t *verdict)
{
    __shared__ uint64_t sums[SPLIT_BUCKETS / WARP];
    const int region = threadIdx.x;
    wait_for_kernels_before();
    const bool moves = region_moves(level, region), overflows = level.head->any_overflow;
    struct bucket bucket = get_bucket(level.buckets, region);
    const uint64_t keys = bucket.cursor - bucket.begin;
    uint64_t all;
    const uint64_t begin = block_sum_of_warps(moves ? keys : 0, sums, &all);
    told[region] = (int64_t)(keys << 1 | (moves ? 0 : 1));
    begins[region] = (int64_t)bucket.begin;
    if (overflows)
        set_bucket(level.buckets, region, {begin, begin, moves ? begin + keys : 0});
    if (region == 0)
        *verdict = level.head->is_done ? SCATTER_NOTHING : overflows ? SCATTER_COUNTED : SCATTER_MOVED;
}

#endif
