/* What every rank fetches and sorts at a time in the exchange `partition`: batches of consecutive regions. The plan is a
 * pure function of what all ranks have counted, so each rank knows every other rank's batches, and with them what each
 * peer wants of it next, and in which order.
 *
 * Keys of a rank by region, three ranks; regions 0-2 are for rank 0, 2-3 for rank 1, 4-5 for rank 2:
 *
 *     rank 0   a a | b | c c c | d | e | f f        batches of rank 0   0-1   2         the boundary is inside region 2
 *     rank 1   a | b b | c | d d | e e | f          batches of rank 1   2   3
 *     rank 2   a | b | c c | d | e | f f f          batches of rank 2   4-5
 *
 *     chunks that rank 1 has to give     for rank 0: a b b, then c      for rank 2: e e f */
#ifndef BATCH_PLAN_H
#define BATCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/lesser.h"
#include "kernels/engine.h"

/* The most ranks that can take part: a region has a piece from each. */
enum { PARTITION_RANKS_MAX = ENGINE_PIECES_MAX };

/* Consecutive regions that are sorted together. A region of one value may be cut anywhere. */
struct batch {
    int first, last, pieces;  /* the regions; the pieces of all of them */
    int64_t begin, end;       /* global positions of its keys */
    int64_t fetched, scratch; /* keys that come from peers, with gaps; keys of scratch for sort_regions() */
    bool whole;               /* its rank wants all of it */
};

struct batch_plan {
    int size;         /* ranks */
    int64_t capacity; /* of a shard */
    int64_t region_at[ENGINE_REGIONS + 1]; /* global positions */
    bool is_one_value[ENGINE_REGIONS];     /* the keys of the region do not move */
    int64_t *piece_at;      /* [size * (ENGINE_REGIONS + 1)] where the regions begin in each rank's scratch buffer */
    int64_t *piece_keys;    /* [size * ENGINE_REGIONS] keys that lie there: a region may have a gap behind it */
    int *first, *end;       /* [size] regions of each rank: [first, end) */
    int *batch_first;       /* [size + 1] in `batches`, of each rank */
    struct batch *batches;
    int batches_most;       /* the most that a rank has */
};

/* Make room for a plan of `size` ranks. *plan is NULL after an error. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status batch_plan_open(int size, struct batch_plan **plan);
void batch_plan_close(struct batch_plan *plan); /* NULL is fine */

/* Keys that a batch has at most; keys that fit into its slot, where what comes from peers lies; keys of its scratch. Pure. */
int64_t batch_keys_most(int size, int64_t capacity);
int64_t batch_keys_at_most(int size, int64_t capacity, int number); /* of batch `number`, the first is 0 */
int64_t batch_slot_keys(int size, int64_t capacity);
int64_t batch_scratch_keys(int size, int64_t capacity);

/* Keys beyond the capacity for which a scratch buffer has room, for gaps behind regions. packs: something is packed, so there are no
 * gaps. Pure. */
int64_t batch_spare_keys(bool packs, int64_t capacity);

/* Fill in what ranks have of each region; is_one_value is filled in already. Can batches take the regions?
 *   counts  [size * stride] keys of each rank in each region, regions of one value included
 *   begins  [size * stride] where each rank's regions begin in its scratch buffer, ENGINE_REGIONS + 1 for each rank
 * Pure except for the plan. */
bool batch_plan_regions(struct batch_plan *plan, const struct engine *engine, int64_t capacity,
                        const int64_t *counts, const int64_t *begins, int stride);

/* Find all ranks' batches, after batch_plan_regions(). False, the same on every rank: there are too many.
 *   target_offset  [size + 1] the global positions that each rank is to hold */
bool batch_plan_make(struct batch_plan *plan, const struct engine *engine, const int64_t *target_offset);

/* Where the regions begin in a rank's scratch buffer. */
static inline const int64_t *batch_pieces_of(const struct batch_plan *plan, int rank)
{
    return plan->piece_at + (size_t)rank * (ENGINE_REGIONS + 1);
}

/* Keys of a region in a rank's scratch buffer; none of a region of one value. */
static inline int64_t batch_keys_of(const struct batch_plan *plan, int rank, int region)
{
    return plan->piece_keys[(size_t)rank * ENGINE_REGIONS + (size_t)region];
}

/* How many batches a rank has. */
static inline int batch_count(const struct batch_plan *plan, int rank)
{
    return plan->batch_first[rank + 1] - plan->batch_first[rank];
}

static inline const struct batch *batch_of(const struct batch_plan *plan, int rank, int number)
{
    return &plan->batches[plan->batch_first[rank] + number];
}

/* How much a rank has of regions first .. last: keys, and gaps between regions. It begins at *at in the rank's scratch buffer. */
static inline int64_t batch_span(const struct batch_plan *plan, int rank, int first, int last, int64_t *at)
{
    const int64_t *pieces = batch_pieces_of(plan, rank);
    *at = pieces[first];
    while (last > first && batch_keys_of(plan, rank, last) == 0)
        last--;
    return last < first ? 0 : pieces[last] + batch_keys_of(plan, rank, last) - *at;
}

/* How much rank `from` has of a batch: its chunk. */
static inline int64_t batch_chunk(const struct batch_plan *plan, const struct batch *batch, int from, int64_t *at)
{
    return batch_span(plan, from, batch->first, batch->last, at);
}

#endif
