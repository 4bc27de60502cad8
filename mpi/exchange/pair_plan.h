/* Which pairs go from rank to rank in a sort of pairs (pair_partition.h): a pure function of what all ranks have counted, so each
 * rank knows what every other one wants.
 *
 * Pairs of three ranks by region, each in the order of its pairs; rank 1 wants the global positions 7 .. 15:
 *
 *     rank 0   a a | b b b | c c | d        region_at   0   5   11   16
 *     rank 1   a   | b     | c   | d        rank 1 wants 4 of b's 6, all of c, and 0 of d
 *     rank 2   a a | b b   | c c | d        it fetches all of b, and c: of rank 0 b b b c c, of rank 2 b b c c
 *
 * b is at an edge: it is fetched whole, sorted apart, and the part that is wanted is taken. If it is of one value, its pairs are in
 * order as they are, and only those at 7 .. 10 are fetched: the last of rank 0, that of rank 1, and those of rank 2. */
#ifndef PAIR_PLAN_H
#define PAIR_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/lesser.h"
#include "kernels/engine.h"
#include "mpi/exchange/place_span.h"

struct pair_plan {
    int size;
    const int64_t *out_offset;             /* [size + 1] global positions that each rank wants; borrowed */
    int64_t region_at[ENGINE_REGIONS + 1]; /* global positions */
    bool is_one_value[ENGINE_REGIONS];     /* filled in by region_map_values() */
    int64_t *piece_at; /* [size * (ENGINE_REGIONS + 1)] where regions begin in what each rank has split */
    int64_t *begin;   /* [size * ENGINE_REGIONS] global positions of each rank's first pairs of the regions */
    int *first, *end; /* [size] regions of which each rank wants pairs: first .. end - 1 */
};

/* Make room for a plan of `size` ranks. *plan is NULL after an error. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status pair_plan_open(int size, struct pair_plan **plan);
void pair_plan_close(struct pair_plan *plan); /* NULL is fine */

/* Fill in a plan. counts [size * stride]: pairs of each rank in each region. Pure except for the plan. */
void pair_plan_make(struct pair_plan *plan, const int64_t *counts, int stride, const int64_t *out_offset);

/* The part of a region that a rank wants: global positions. Pure, like all functions that follow. */
struct place_span pair_plan_wanted(const struct pair_plan *plan, int rank, int region);

/* Does a rank want only a part of a region that is in no order yet? A rank has two such regions at most. */
bool pair_plan_is_edge(const struct pair_plan *plan, int rank, int region);

/* The most pairs that such regions of a rank have. */
int64_t pair_plan_most_of_edges(const struct pair_plan *plan);

/* The pairs of `owner` among those that `reader` fetches of a region: places in what the owner has split. */
struct place_span pair_plan_piece(const struct pair_plan *plan, int owner, int reader, int region);

/* All such pairs of the regions first .. end - 1, which the reader wants. They lie together, because only the outermost regions are
 * wanted in part. */
struct place_span pair_plan_pieces(const struct pair_plan *plan, int owner, int reader, int first, int end);

#endif
