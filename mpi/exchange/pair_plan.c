#include "mpi/exchange/pair_plan.h"
#include <stdlib.h>
#include "kernels/base/memory_parts.h"
#include "mpi/exchange/region_map.h"

/* Lay out a plan for the ranks in it: the struct first, then its tables. Returns the bytes of both. */
static size_t lay_out_pair_plan(struct pair_plan *plan, void *memory)
{
    const int64_t ranks = plan->size;
    char *at = memory;
    take_table(&at, 1, sizeof *plan);
    plan->piece_at = take_table(&at, ranks * (ENGINE_REGIONS + 1), sizeof *plan->piece_at);
    plan->begin = take_table(&at, ranks * ENGINE_REGIONS, sizeof *plan->begin);
    plan->first = take_table(&at, ranks, sizeof *plan->first);
    plan->end = take_table(&at, ranks, sizeof *plan->end);
    return (size_t)(at - (char *)memory);
}

hsort_status pair_plan_open(int size, struct pair_plan **plan)
{
    struct pair_plan made = {.size = size};
    *plan = calloc(1, lay_out_pair_plan(&made, NULL));
    if (!*plan)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the regions of %d ranks", size);
    lay_out_pair_plan(&made, *plan);
    **plan = made;
    return HSORT_OK;
}

void pair_plan_close(struct pair_plan *plan)
{
    free(plan);
}

static int64_t *pieces_of_rank(const struct pair_plan *plan, int rank)
{
    return plan->piece_at + (size_t)rank * (ENGINE_REGIONS + 1);
}

void pair_plan_make(struct pair_plan *plan, const int64_t *counts, int stride, const int64_t *out_offset)
{
    int64_t at = 0;
    plan->out_offset = out_offset;
    for (int rank = 0; rank < plan->size; rank++)
        pieces_of_rank(plan, rank)[0] = 0;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        plan->region_at[region] = at;
        for (int rank = 0; rank < plan->size; rank++) {
            const int64_t pairs = counts[(size_t)rank * (size_t)stride + (size_t)region];
            int64_t *piece = pieces_of_rank(plan, rank) + region;
            plan->begin[(size_t)rank * ENGINE_REGIONS + (size_t)region] = at;
            piece[1] = piece[0] + pairs;
            at += pairs;
        }
    }
    plan->region_at[ENGINE_REGIONS] = at;
    for (int rank = 0; rank < plan->size; rank++)
        region_map_span(plan->region_at, out_offset[rank], out_offset[rank + 1], &plan->first[rank],
                        &plan->end[rank]);
}

struct place_span pair_plan_wanted(const struct pair_plan *plan, int rank, int region)
{
    return (struct place_span){.first = greater(plan->region_at[region], plan->out_offset[rank]),
                               .end = lesser(plan->region_at[region + 1], plan->out_offset[rank + 1])};
}

bool pair_plan_is_edge(const struct pair_plan *plan, int rank, int region)
{
    const struct place_span wanted = pair_plan_wanted(plan, rank, region);
    return !place_span_is_empty(wanted) && !plan->is_one_value[region] &&
           (wanted.first > plan->region_at[region] || wanted.end < plan->region_at[region + 1]);
}

int64_t pair_plan_most_of_edges(const struct pair_plan *plan)
{
    int64_t most = 0;
    for (int rank = 0; rank < plan->size; rank++) {
        int64_t pairs = 0;
        for (int region = plan->first[rank]; region < plan->end[rank]; region++)
            if (pair_plan_is_edge(plan, rank, region))
                pairs += plan->region_at[region + 1] - plan->region_at[region];
        most = greater(most, pairs);
    }
    return most;
}

struct place_span pair_plan_piece(const struct pair_plan *plan, int owner, int reader, int region)
{
    const int64_t *piece = pieces_of_rank(plan, owner) + region;
    const int64_t begin = plan->begin[(size_t)owner * ENGINE_REGIONS + (size_t)region];
    struct place_span fetched = pair_plan_wanted(plan, reader, region);
    if (pair_plan_is_edge(plan, reader, region))
        return (struct place_span){piece[0], piece[1]};
    fetched.first = greater(fetched.first, begin);
    fetched.end = lesser(fetched.end, begin + piece[1] - piece[0]);
    return place_span_is_empty(fetched)
               ? (struct place_span){piece[0], piece[0]}
               : (struct place_span){piece[0] + fetched.first - begin, piece[0] + fetched.end - begin};
}

struct place_span pair_plan_pieces(const struct pair_plan *plan, int owner, int reader, int first, int end)
{
    struct place_span all = {0, 0};
    for (int region = first; region < end; region++) {
        const struct place_span piece = pair_plan_piece(plan, owner, reader, region);
        if (place_span_is_empty(piece))
            continue;
        if (place_span_is_empty(all))
            all.first = piece.first;
        all.end = piece.end;
    }
    return all;
}
