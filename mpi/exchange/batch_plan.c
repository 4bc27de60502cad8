/* Batches: as many regions as have room, the first ones small, so that kernels begin soon.
 *
 *     keys at most     1/4 of the largest batch, then each a quarter more than the one before
 *     a slot           3/4 of the largest batch: some of it usually is the rank's own
 *     scratch          9/4 of it: on a GPU sort_regions() wants nearly twice as much room as it has keys
 *
 * The largest batch is a sixth of the capacity. From SMALL_REGIONS_RANKS ranks on, a single region can be as large as that,
 * because a sample does not cut regions evenly; then the largest batch is a third. */
#include "mpi/exchange/batch_plan.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/memory_parts.h"
#include "mpi/exchange/region_map.h"

enum {
    BATCH_SHARE = 6,          // one batch is at most this part of the capacity
    LARGE_BATCH_SHARE = 3,    // the same for many ranks,
    SMALL_REGIONS_RANKS = 64, // from so many on
    BATCH_KEYS_MIN = 1 << 17, // the largest batch may have so many keys in any case
    FIRST_SHARE = 4,          // the first batch is at most this part of the largest, so that kernels begin soon
    GROWTH_SHARE = 4,         // by this part the next batch may be larger: it is fetched while this one is sorted
    SPARE_SHARE = 32,         // this part of the capacity is room for gaps
    BATCHES_OF_RANK = 32      // there is room for so many, besides one for each region
};

/* ---- sizes ------------------------------------------------------------------------------------------------- */

int64_t batch_keys_most(int size, int64_t capacity)
{
    return greater(capacity / (size >= SMALL_REGIONS_RANKS ? LARGE_BATCH_SHARE : BATCH_SHARE), BATCH_KEYS_MIN);
}

int64_t batch_slot_keys(int size, int64_t capacity)
{
    return batch_keys_most(size, capacity) / 4 * 3;
}

int64_t batch_scratch_keys(int size, int64_t capacity)
{
    return batch_keys_most(size, capacity) / 4 * 9;
}

/* The most keys of batch `number`. Fetching a batch takes not much less time than sorting one as large: if each batch
 * were twice as large as the one before, the kernels would wait for it. */
int64_t batch_keys_at_most(int size, int64_t capacity, int number)
{
    const int64_t largest = batch_keys_most(size, capacity);
    int64_t most = largest / FIRST_SHARE;
    for (; number > 0 && most < largest; number--)
        most += most / GROWTH_SHARE;
    return lesser(most, largest);
}

int64_t batch_spare_keys(bool packs, int64_t capacity)
{
    return packs ? 0 : capacity / SPARE_SHARE;
}

static int64_t most_batches(int size)
{
    return ENGINE_REGIONS + (int64_t)size * BATCHES_OF_RANK;
}

/* ---- memory ------------------------------------------------------------------------------------------------- */

/* Lay out a plan for the ranks in it: the struct first, then its tables. Returns the bytes of both. */
static size_t lay_out_batch_plan(struct batch_plan *plan, void *memory)
{
    const int64_t ranks = plan->size;
    char *at = memory;
    take_table(&at, 1, sizeof *plan);
    plan->piece_at = take_table(&at, ranks * (ENGINE_REGIONS + 1), sizeof *plan->piece_at);
    plan->piece_keys = take_table(&at, ranks * ENGINE_REGIONS, sizeof *plan->piece_keys);
    plan->first = take_table(&at, ranks, sizeof *plan->first);
    plan->end = take_table(&at, ranks, sizeof *plan->end);
    plan->batch_first = take_table(&at, ranks + 1, sizeof *plan->batch_first);
    plan->batches = take_table(&at, most_batches(plan->size), sizeof *plan->batches);
    return (size_t)(at - (char *)memory);
}

hsort_status batch_plan_open(int size, struct batch_plan **plan)
{
    struct batch_plan made = {.size = size};
    *plan = calloc(1, lay_out_batch_plan(&made, NULL));
    if (!*plan)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the batches of %d ranks", size);
    lay_out_batch_plan(&made, *plan);
    **plan = made;
    return HSORT_OK;
}

void batch_plan_close(struct batch_plan *plan)
{
    free(plan);
}

/* ---- regions ------------------------------------------------------------------------------------------------ */

/* What a rank has of regions first .. last, with the gaps behind them; what all others have. */
static int64_t room_of_rank(const struct batch_plan *plan, int rank, int first, int last)
{
    const int64_t *at = batch_pieces_of(plan, rank);
    return at[last + 1] - at[first];
}

static int64_t room_of_others(const struct batch_plan *plan, int rank, int first, int last)
{
    int64_t room = 0;
    for (int other = 0; other < plan->size; other++)
        room += other == rank ? 0 : room_of_rank(plan, other, first, last);
    return room;
}

/* Can a batch take a region of several values, if all ranks together have `keys` of it, and a rank fetches `fetched` at most? */
static bool fits_batch(const struct batch_plan *plan, const struct engine *engine, int64_t keys,
                       int64_t fetched)
{
    return keys <= batch_keys_most(plan->size, plan->capacity) &&
           fetched <= batch_slot_keys(plan->size, plan->capacity) &&
           engine->ops->partition->region_scratch(engine, keys) <=
               batch_scratch_keys(plan->size, plan->capacity);
}

bool batch_plan_regions(struct batch_plan *plan, const struct engine *engine, int64_t capacity,
                        const int64_t *counts, const int64_t *begins, int stride)
{
    bool all_fit = true;
    plan->capacity = capacity;
    plan->region_at[0] = 0;
    for (int rank = 0; rank < plan->size; rank++) {
        const size_t from = (size_t)rank * (size_t)stride;
        memcpy(plan->piece_at + (size_t)rank * (ENGINE_REGIONS + 1), begins + from,
               (ENGINE_REGIONS + 1) * sizeof *begins);
        for (int region = 0; region < ENGINE_REGIONS; region++)
            plan->piece_keys[(size_t)rank * ENGINE_REGIONS + (size_t)region] =
                plan->is_one_value[region] ? 0 : counts[from + (size_t)region];
    }
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        int64_t keys = 0, room = 0, least = INT64_MAX;
        for (int rank = 0; rank < plan->size; rank++) {
            const int64_t own = room_of_rank(plan, rank, region, region);
            keys += counts[(size_t)rank * (size_t)stride + (size_t)region];
            room += own;
            least = lesser(least, own);
        }
        plan->region_at[region + 1] = plan->region_at[region] + keys;
        all_fit = all_fit && (plan->is_one_value[region] || fits_batch(plan, engine, keys, room - least));
    }
    return all_fit;
}

/* ---- batches ------------------------------------------------------------------------------------------------ */

/* Batch `number` of a rank: the first keys of [from, until), the global positions that it still wants. A region of several
 * values that reaches beyond them is a batch alone. A region of one value needs no room, but its keys count, so that what
 * goes to the host at a time, or may have to be sorted once more, stays within bounds. */
static struct batch next_batch(const struct batch_plan *plan, const struct engine *engine, int rank, int number,
                               int64_t from, int64_t until)
{
    const int64_t slot = batch_slot_keys(plan->size, plan->capacity),
                  room_of_scratch = batch_scratch_keys(plan->size, plan->capacity);
    struct batch batch = {.whole = true};
    for (int region = plan->first[rank]; region < plan->end[rank]; region++) {
        const bool is_one = plan->is_one_value[region], is_first = batch.pieces == 0;
        const int64_t room = batch_keys_at_most(plan->size, plan->capacity, number) - (batch.end - batch.begin);
        int64_t begin = plan->region_at[region], end = plan->region_at[region + 1];
        if (begin == end || end <= from)
            continue;
        if (is_one) {
            begin = greater(begin, from);
            end = lesser(lesser(end, until), begin + room);
        }
        const int64_t keys = end - begin;
        const int64_t fetched = room_of_others(plan, rank, is_first ? region : batch.first, region);
        const int64_t scratch =
            batch.scratch + (is_one ? 0 : engine->ops->partition->region_scratch(engine, keys));
        const int pieces = batch.pieces + (is_one ? 1 : plan->size);
        const bool whole = begin >= from && end <= until;
        const bool fits = batch.whole && whole && 0 < keys && keys <= room && fetched <= slot &&
                          scratch <= room_of_scratch && pieces <= ENGINE_PIECES_MAX;
        if (!is_first && !fits)
            break;
        batch.first = is_first ? region : batch.first;
        batch.begin = is_first ? begin : batch.begin;
        batch.last = region, batch.end = end, batch.whole = whole;
        batch.fetched = fetched, batch.scratch = scratch, batch.pieces = pieces;
    }
    return batch;
}

bool batch_plan_make(struct batch_plan *plan, const struct engine *engine, const int64_t *target_offset)
{
    int made = 0;
    plan->batches_most = 0;
    for (int rank = 0; rank < plan->size; rank++) {
        const int first = plan->batch_first[rank] = made;
        int64_t from = target_offset[rank];
        const int64_t until = target_offset[rank + 1];
        region_map_span(plan->region_at, from, until, &plan->first[rank], &plan->end[rank]);
        for (; from < until; made++) {
            if (made == most_batches(plan->size))
                return false;
            plan->batches[made] = next_batch(plan, engine, rank, made - first, from, until);
            from = lesser(plan->batches[made].end, until);
        }
        plan->batches_most = (int)greater(plan->batches_most, made - first);
    }
    plan->batch_first[plan->size] = made;
    return true;
}
