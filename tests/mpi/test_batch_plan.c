/* Batches of all ranks, of drawn counts. The batches of a rank are its positions in order, without gaps; each has its regions whole,
 * or has a single region; it fits slot, scratch and pieces; all keys that move are in the chunks. Up to PARTITION_RANKS_MAX ranks, of
 * which some have or want nothing, and some leave gaps behind regions. Compared with sums that are made here, key by key of each
 * region. */
#include <stdlib.h>
#include "kernels/engine.h"
#include "mpi/exchange/batch_plan.h"
#include "tests/support/check.h"

enum { TRIALS = 300, STRIDE = ENGINE_REGIONS + 2 };

static struct engine *engine;

struct drawn {
    int size, number;
    int64_t capacity, total;
    int64_t counts[PARTITION_RANKS_MAX * STRIDE], begins[PARTITION_RANKS_MAX * STRIDE],
        wanted[PARTITION_RANKS_MAX + 1];
    bool is_one[ENGINE_REGIONS];
};

static struct drawn drawn;
static char what[128];

/* Return as much scratch as a GPU needs, where many small regions have more scratch than keys. */
static int64_t roomy_scratch(const struct engine *unused, int64_t count)
{
    (void)unused;
    return 2 * count + 8192;
}

/* Draw how many keys each rank has in each region: even numbers, or few ranks have most. Some regions are empty. Some are of one value
 * and may be large. One region of several values may be too large. */
static void draw_counts(uint64_t *random, int64_t most)
{
    const uint64_t shape = check_random(random) % 3;
    const bool crowded = check_random(random) % 4 == 0;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        const uint64_t draw = check_random(random);
        drawn.is_one[region] = draw % 7 == 0;
        for (int rank = 0; rank < drawn.size; rank++) {
            const int64_t some = (int64_t)(check_random(random) % (uint64_t)(2 * most + 1));
            const bool none = draw % 11 == 1 || (shape == 1 && rank % 3 > 0) || (shape == 2 && rank == region % drawn.size);
            const bool large = drawn.is_one[region] ? draw % 5 == 0 : crowded && region == 100;
            drawn.counts[rank * STRIDE + region] = none ? 0 : large ? 300 * some : some;
        }
    }
}

/* Draw where regions begin: without gaps, or with some. */
static void draw_begins(uint64_t *random)
{
    for (int rank = 0; rank < drawn.size; rank++) {
        const bool gaps = check_random(random) % 2;
        int64_t *begins = drawn.begins + rank * STRIDE;
        begins[0] = gaps ? (int64_t)(check_random(random) % 9) : 0;
        for (int region = 0; region < ENGINE_REGIONS; region++)
            begins[region + 1] = begins[region] +
                                 (drawn.is_one[region] ? 0 : drawn.counts[rank * STRIDE + region]) +
                                 (gaps && !drawn.is_one[region] ? (int64_t)(check_random(random) % 100) : 0);
    }
}

/* Draw how many keys ranks are to hold: even numbers, any, or none. */
static void draw_wanted(uint64_t *random)
{
    const uint64_t shape = check_random(random) % 3;
    for (int rank = 1; rank < drawn.size; rank++)
        drawn.wanted[rank] =
            shape == 0 ? drawn.total / drawn.size * rank
                       : drawn.wanted[rank - 1] +
                             (check_random(random) % 3 == 0
                                  ? 0
                                  : (int64_t)(check_random(random) % (uint64_t)(drawn.capacity + 1)));
    for (int rank = 1; rank < drawn.size; rank++)
        drawn.wanted[rank] = lesser(drawn.wanted[rank], drawn.total);
    drawn.wanted[drawn.size] = drawn.total;
}

/* Check a rank's chunk of a batch: it goes from where its first region begins to its last key. Returns the keys in it. */
static int64_t check_chunk(const struct batch_plan *plan, const struct batch *batch, int of)
{
    const int64_t *counts = drawn.counts + of * STRIDE, *begins = drawn.begins + of * STRIDE;
    int64_t keys = 0, end = begins[batch->first], at;
    for (int region = batch->first; region <= batch->last; region++) {
        const int64_t lie = drawn.is_one[region] ? 0 : counts[region];
        CHECK(batch_keys_of(plan, of, region) == lie, "%s: keys of region %d", what, region);
        keys += lie;
        end = lie > 0 ? begins[region] + lie : end;
    }
    const int64_t chunk = batch_chunk(plan, batch, of, &at);
    CHECK(at == begins[batch->first] && at + chunk == end, "%s: chunk of %d: %lld at %lld", what, of,
          (long long)chunk, (long long)at);
    return keys;
}

static void check_batch(const struct batch_plan *plan, int rank, const struct batch *batch, bool alone)
{
    int64_t keys = 0, fetched = 0, scratch = 0;
    for (int region = batch->first; region <= batch->last; region++) {
        const int64_t all = plan->region_at[region + 1] - plan->region_at[region];
        scratch += drawn.is_one[region] || all == 0 ? 0 : roomy_scratch(engine, all);
    }
    for (int of = 0; of < plan->size; of++) {
        const int64_t *begins = drawn.begins + of * STRIDE;
        keys += check_chunk(plan, batch, of);
        fetched += of == rank ? 0 : begins[batch->last + 1] - begins[batch->first];
    }
    CHECK(batch->fetched == fetched && fetched <= batch_slot_keys(plan->size, plan->capacity), "%s: rank %d: slot", what,
          rank);
    CHECK(keys <= batch_keys_most(plan->size, plan->capacity) && batch->scratch == scratch &&
              scratch <= batch_scratch_keys(plan->size, plan->capacity),
          "%s: rank %d: %lld keys", what, rank, (long long)keys);
    CHECK(batch->pieces > 0 && batch->pieces <= ENGINE_PIECES_MAX, "%s: rank %d: %d pieces", what, rank, batch->pieces);
    CHECK(batch->whole || alone, "%s: rank %d: a region across a boundary is not alone", what, rank);
}

static void check_rank(const struct batch_plan *plan, int rank)
{
    int64_t from = drawn.wanted[rank];
    for (int number = 0; number < batch_count(plan, rank); number++) {
        const struct batch *batch = batch_of(plan, rank, number);
        const int64_t begin = greater(batch->begin, drawn.wanted[rank]);
        CHECK(begin == from && batch->end > from, "%s: rank %d, batch %d: begins at %lld, not %lld", what, rank, number,
              (long long)begin, (long long)from);
        check_batch(plan, rank, batch, batch->first == batch->last);
        from = lesser(batch->end, drawn.wanted[rank + 1]);
    }
    CHECK(from == drawn.wanted[rank + 1], "%s: rank %d: ends at %lld", what, rank, (long long)from);
    CHECK(batch_count(plan, rank) <= plan->batches_most, "%s: rank %d: more than the most", what, rank);
}

/* Returns whether the regions suited. */
static bool run_trial(uint64_t *random)
{
    struct batch_plan *plan;
    drawn.size = 1 + (int)(check_random(random) % (check_random(random) % 2 ? 9 : PARTITION_RANKS_MAX));
    drawn.total = 0;
    draw_counts(random, 1 + (int64_t)(check_random(random) % 3000));
    for (int i = 0; i < drawn.size * STRIDE; i++)
        drawn.total += i % STRIDE < ENGINE_REGIONS ? drawn.counts[i] : 0;
    drawn.capacity = drawn.total / drawn.size + 1;
    draw_wanted(random);
    draw_begins(random);
    snprintf(what, sizeof what, "trial %d, %d ranks, %lld keys", drawn.number, drawn.size, (long long)drawn.total);
    CHECK(batch_plan_open(drawn.size, &plan) == HSORT_OK, "%s", status_text());
    memcpy(plan->is_one_value, drawn.is_one, sizeof drawn.is_one);
    const bool suits = batch_plan_regions(plan, engine, drawn.capacity, drawn.counts, drawn.begins, STRIDE);
    if (suits && batch_plan_make(plan, engine, drawn.wanted))
        for (int rank = 0; rank < drawn.size; rank++)
            check_rank(plan, rank);
    else
        CHECK(!suits, "%s: too many batches", what);
    batch_plan_close(plan);
    return suits;
}

int main(int argc, char **argv)
{
    uint64_t random = check_seed();
    int suited = 0;
    (void)argc, (void)argv;
    printf("seed %llu\n", (unsigned long long)random);
    CHECK(engine_open_host(1, 0, &engine) == HSORT_OK, "%s", status_text());
    struct engine_ops ops = *engine->ops;
    struct engine_partition_ops partition = *ops.partition;
    partition.region_scratch = roomy_scratch;
    ops.partition = &partition;
    engine->ops = &ops;
    for (drawn.number = 0; drawn.number < TRIALS && check_failures < 10; drawn.number++)
        suited += run_trial(&random);
    printf("%d trials, of which %d suited\n", TRIALS, suited);
    CHECK(suited > TRIALS / 2 && suited < TRIALS, "not both kinds of plans were looked at");
    engine->ops->close(engine);
    return check_failures > 0;
}
