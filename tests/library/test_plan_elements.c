/* What sorts of elements are planned to cost: checked by hand for small cases; which way they go; rules that must hold for any number;
 * and the bytes between ranks against what sorts on the host engine move, over as many ranks as this runs on. */
#include <math.h>
#include <stdlib.h>
#include "src/library/element_pairs.h"
#include "src/library/plan_elements.h"
#include "tests/support/odd_rates.h"
#include "tests/support/ranks.h"

static struct elements_plan plan_of(const hsort_rates *rates, int ranks, int per_node, const struct planned_elements *elements)
{
    struct elements_plan plan;
    double sum = 0;
    CHECK(plan_elements(rates, ranks, per_node, elements, &plan) == HSORT_OK, "%d ranks: %s", ranks, status_text());
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        sum += plan.cost.seconds[phase];
    CHECK(same(sum, plan.cost.total_seconds) && isfinite(sum), "%d ranks: phases take %g of %g s", ranks, sum,
          plan.cost.total_seconds);
    return plan;
}

static void has(const struct elements_plan *plan, const char *what, double local_sort, double exchange, double gather)
{
    const double *seconds = plan->cost.seconds;
    CHECK(same(seconds[HSORT_PHASE_LOCAL_SORT], local_sort), "%s: local sort %g, not %g", what, seconds[HSORT_PHASE_LOCAL_SORT],
          local_sort);
    CHECK(same(seconds[HSORT_PHASE_EXCHANGE], exchange), "%s: exchange %g, not %g", what, seconds[HSORT_PHASE_EXCHANGE], exchange);
    CHECK(same(seconds[HSORT_PHASE_GATHER], gather), "%s: gather %g, not %g", what, seconds[HSORT_PHASE_GATHER], gather);
}

/* ---- by hand ------------------------------------------------------------------------------------------- */

static const struct planned_elements records = {
    .count = 1000, .key_bits = 64, .carried_bytes = 32, .in_bytes = 32, .out_bytes = 40};

static void test_alone(void)
{
    const hsort_rates cuda = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC),
                      host = odd_rates(HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI);
    struct planned_elements e = records;
    // Codes of 8 bytes with positions beside them, as keys of 12 bytes; each record is read and written once.
    struct elements_plan plan = plan_of(&cuda, 1, 8, &e);
    has(&plan, "records", 1.501, 0, 4.001);
    CHECK(plan.with_keys && plan.sorted_bytes == 16, "%d bytes", plan.sorted_bytes);
    CHECK(same(plan.cost.seconds[HSORT_PHASE_H2D], 8) && same(plan.cost.seconds[HSORT_PHASE_D2H], 10), "copies");
    // The host engine: codes of 16 bytes, which are made, and taken apart.
    plan = plan_of(&host, 1, 8, &e);
    has(&plan, "records by codes", 2.001 + 2 * 2.001, 0, 4.001);
    CHECK(!plan.with_keys && plan.sorted_bytes == 16, "%d bytes", plan.sorted_bytes);
    // Short keys: code and position are 8 bytes.
    e.key_bits = 32;
    plan = plan_of(&cuda, 1, 8, &e);
    has(&plan, "short keys", 1.001 + 2 * 1.001, 0, 4.001);
    CHECK(!plan.with_keys && plan.sorted_bytes == 8, "%d bytes", plan.sorted_bytes);
    // Values that are sorted with bare keys are not taken; a key and a value of 4 bytes each are like one key of 8 bytes.
    e.bare_keys = true;
    e.carried_bytes = 4;
    plan = plan_of(&cuda, 1, 8, &e);
    has(&plan, "values", 1.001, 0, 0);
    CHECK(plan.with_keys && plan.sorted_bytes == 8, "%d bytes", plan.sorted_bytes);
    // Positions, by which two arrays are gathered.
    e.carried_bytes = 0;
    e.gathered_bytes[0] = 8;
    e.gathered_bytes[1] = 16;
    plan = plan_of(&cuda, 1, 8, &e);
    has(&plan, "an index, by the sort itself", 1.001, 0, 1.001 + 2.001);
    plan = plan_of(&host, 1, 8, &e);
    has(&plan, "an index", 1.001 + 2 * 1.001, 0, 1.001 + 2.001);
    // Keys of 16 bytes take two rounds, each followed by a word.
    e = records;
    e.key_bits = 128;
    plan = plan_of(&cuda, 1, 8, &e);
    has(&plan, "two rounds", 2 * (2.001 + 2 * 2.001), 0, 2 * 1.001 + 4.001);
    CHECK(!plan.with_keys && plan.sorted_bytes == 16, "%d bytes", plan.sorted_bytes);
    e.count = 0;
    plan = plan_of(&cuda, 1, 8, &e);
    CHECK(plan.cost.total_seconds == 0 && plan.cost.messages == 0, "no records take %g s", plan.cost.total_seconds);
}

/* 2 ranks, 1000 records of 32 bytes each. */
static void test_codes(void)
{
    const hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED);
    struct planned_elements e = records;
    e.count = 2000;
    hsort_plan_result codes = {.struct_size = sizeof codes};
    for (int per_node = 1; per_node <= 2; per_node++) {
        const double latency = per_node == 1 ? 0.07 : 0.5, link = per_node == 1 ? 100 : 1000;
        const struct elements_plan plan = plan_of(&rates, 2, per_node, &e);
        CHECK(hsort_plan(&rates, 2, per_node, HSORT_U128, 2000, &codes) == HSORT_OK, "plan");
        // An index of 8 bytes is sorted; half of the records, with a position each, cross once, are taken, and placed.
        has(&plan, "codes", 2.001 + 2 * 2.001, codes.bitonic.seconds[HSORT_PHASE_EXCHANGE],
            1 + 4.001 + 2.001 + 500 * 40 / link + 2 * latency);
        CHECK(!plan.with_keys && plan.exchange == HSORT_EXCHANGE_BITONIC, "2 ranks");
        CHECK(same(plan.cost.moved_bytes, 16000 + 40000) && same(plan.cost.moved_bytes_largest, 8000 + 20000), "%g bytes, %g of one",
              plan.cost.moved_bytes, plan.cost.moved_bytes_largest);
        CHECK(same(plan.cost.messages, codes.bitonic.messages + 2), "%g messages", plan.cost.messages);
    }
}

/* 2 and 4 ranks, 2^20 records of 32 bytes each, which travel with their keys. */
static void test_with_keys(void)
{
    const double n = 1 << 20, short_ones = 8 * 0.03 + 20 * 0.001;
    const hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC);
    struct planned_elements e = records;
    e.count = 2 << 20;
    // 3/8 of a sort of 12 bytes a key. Then key and record come over the link. A third of the other work is not hidden by that: of the
    // rest of the sort, of putting the records that leave in order, and of taking all records.
    struct elements_plan plan = plan_of(&rates, 2, 2, &e);
    const double rest = n * 1.5 / 1000 * 5 / 8;
    has(&plan, "records", n * 1.5 / 1000 * 3 / 8 + 0.001,
        n * 20 / 1000 + (rest + n * 40 / 16000 + n * 64 / 16000 + 0.002) / 3 + short_ones, 0);
    CHECK(plan.with_keys && plan.exchange == HSORT_EXCHANGE_PARTITION && plan.sorted_bytes == 12, "%d bytes", plan.sorted_bytes);
    CHECK(same(plan.cost.moved_bytes, n * 40), "%g bytes", plan.cost.moved_bytes);
    // Values: nothing is taken at last. With several nodes a half comes over the network, meanwhile a quarter by the link.
    e.bare_keys = true;
    e.carried_bytes = 8;
    plan = plan_of(&rates, 2, 2, &e);
    has(&plan, "values", n * 1.5 / 1000 * 3 / 8 + 0.001, n * 8 / 1000 + rest / 3 + short_ones, 0);
    // A slower engine hides the link.
    hsort_rates slow = rates;
    slow.value[HSORT_RATE_SORT_8] /= 100;
    plan = plan_of(&slow, 2, 2, &e);
    has(&plan, "values, sorted slowly", n * 150 / 1000 * 3 / 8 + 0.001,
        100 * rest + n * 8 / 1000 / 3 + short_ones, 0);
    // Messages come before the rest of the sort.
    slow = rates;
    slow.link = HSORT_TRANSPORT_MPI;
    plan = plan_of(&slow, 2, 2, &e);
    has(&plan, "values by message", n * 1.5 / 1000 * 3 / 8 + 0.001, rest + n * 8 / 1000 + short_ones, 0);
    e.count = 4 << 20;
    plan = plan_of(&rates, 4, 2, &e);
    // A byte of a key is told by its region; 12 bytes begin a block of 256 keys.
    double packed = 8 - 1 + 12.0 / 256 + 8;
    has(&plan, "values of two nodes", n * 1.5 / 1000 * 3 / 8 + 0.001,
        n * 1.5 / 1000 * 5 / 8 + n * packed / 2 / 100 + 20 * 0.07 + 20 * 0.001, 0);
    CHECK(same(plan.cost.moved_bytes, n * (16 + 2 * packed)), "%g bytes", plan.cost.moved_bytes);
    // Positions go as 4 bytes, packed as differences of 11 bits; 8 bytes begin a block.
    e.carried_bytes = 0;
    packed = 8 - 1 + 12.0 / 256 + 11.0 / 8 + 8.0 / 256;
    plan = plan_of(&rates, 4, 2, &e);
    CHECK(same(plan.cost.moved_bytes, n * (12 + 2 * packed)), "positions: %g bytes", plan.cost.moved_bytes);
}

/* ---- for any number ------------------------------------------------------------------------------------ */

/* Check which way sorts go, by the size of a rank's part, the keys and the number of ranks. */
static void test_ways(void)
{
    const hsort_rates cuda = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC),
                      host = odd_rates(HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI);
    const int64_t enough = PAIRS_BYTES_MIN / (8 + 32);
    for (int ranks = 2; ranks <= 256; ranks++) {
        struct planned_elements e = records;
        e.count = ranks * enough;
        CHECK(plan_of(&cuda, ranks, 8, &e).with_keys == (ranks <= 128), "%d ranks", ranks);
        CHECK(!plan_of(&host, ranks, 8, &e).with_keys, "%d ranks, host engine", ranks);
        e.key_bits = 72;
        CHECK(!plan_of(&cuda, ranks, 8, &e).with_keys, "%d ranks, long keys", ranks);
        e.key_bits = 64;
        e.count = ranks * (enough - 1) - 1;
        CHECK(!plan_of(&cuda, ranks, 8, &e).with_keys, "%d ranks, few records", ranks);
    }
    // One record on each of very many ranks: each rank sends two messages more.
    struct planned_elements few = records;
    few.count = 1 << 20;
    hsort_plan_result codes = {.struct_size = sizeof codes};
    CHECK(hsort_plan(&host, 1 << 20, 8, HSORT_U128, 1 << 20, &codes) == HSORT_OK, "plan");
    CHECK(codes.exchange == HSORT_EXCHANGE_BITONIC && same(plan_of(&host, 1 << 20, 8, &few).cost.messages, codes.bitonic.messages + 2),
          "2^20 ranks");
    // Positions alone: with short keys they are part of a code of 8 bytes.
    struct planned_elements e = {.count = 1 << 24, .key_bits = 32, .bare_keys = true};
    CHECK(!plan_of(&cuda, 2, 8, &e).with_keys, "positions of keys of 4 bytes");
    e.key_bits = 64;
    CHECK(plan_of(&cuda, 2, 8, &e).with_keys, "positions of keys of 8 bytes");
}

/* More elements, larger ones, or longer keys cost no less, whatever the number of ranks. */
static void test_monotonous(void)
{
    const int ranks[] = {1, 2, 3, 7, 8, 9, 64, 100, 129, 2048, 1 << 30};
    for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++)
        for (int on_host = 0; on_host < 2; on_host++) {
            hsort_rates rates;
            double before = 0;
            CHECK(hsort_rates_init(&rates, sizeof rates, on_host ? HSORT_ENGINE_HOST : HSORT_ENGINE_CUDA, HSORT_TRANSPORT_AUTO) ==
                      HSORT_OK, "rates");
            for (int bits = 10; bits <= 60; bits += 5) {
                struct planned_elements e = records;
                e.count = INT64_C(1) << bits;
                const double now = plan_of(&rates, ranks[r], 8, &e).cost.total_seconds;
                CHECK(now >= before * 0.75, "%d ranks, 2^%d records: %g after %g", ranks[r], bits, now, before);
                before = now;
                e.carried_bytes *= 3;
                CHECK(plan_of(&rates, ranks[r], 8, &e).cost.total_seconds >= now, "%d ranks, 2^%d larger records", ranks[r], bits);
                e.gathered_bytes[1] = 4;
                e.key_bits = 128;
                CHECK(plan_of(&rates, ranks[r], 8, &e).cost.total_seconds >= now, "%d ranks, 2^%d longer keys", ranks[r], bits);
            }
        }
}

/* ---- against sorts ------------------------------------------------------------------------------------- */

enum { EACH = 20011, RECORD_BYTES = 24 };

static void test_moved(uint64_t random)
{
    static unsigned char from[EACH * RECORD_BYTES], to[EACH * RECORD_BYTES];
    hsort_options options;
    const hsort_field field = {.type = HSORT_U64, .offset = 8};
    hsort_stats stats = {.struct_size = sizeof stats};
    hsort_rates rates;
    hsort_context *ctx;
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    random += (uint64_t)rank * 1000003;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (unsigned char)(check_random(&random) >> 40);
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    CHECK(hsort_sort_records_to(ctx, from, RECORD_BYTES, &field, 1, EACH, to, EACH, NULL) == HSORT_OK, "%s", hsort_last_error(ctx));
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "no statistics");
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO) == HSORT_OK, "rates");
    const struct planned_elements e = {.count = (int64_t)EACH * size, .key_bits = 64, .carried_bytes = RECORD_BYTES};
    const struct elements_plan plan = plan_of(&rates, size, size, &e);
    CHECK(hsort_exchange_in_use(ctx) == plan.exchange, "%d ranks: by %s, not %s", size, hsort_exchange_name(hsort_exchange_in_use(ctx)),
          hsort_exchange_name(plan.exchange));
    CHECK(fabs((double)stats.moved_bytes - plan.cost.moved_bytes) <= 0.05 * plan.cost.moved_bytes, "%d ranks: %lld bytes moved, not %g",
          size, (long long)stats.moved_bytes, plan.cost.moved_bytes);
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        test_alone();
        test_codes();
        test_with_keys();
        test_ways();
        test_monotonous();
    }
    test_moved(seed);
    return ranks_finish();
}
