/* What the cost model says about `direct`, against sums that are made here by hand: for keys too few to be packed, and for packed keys;
 * on even and on uneven nodes. */
#include <math.h>
#include "mpi/exchange/splitters.h"
#include "tests/support/odd_rates.h"
#include "tests/support/ranks.h"

/* Return the seconds that direct takes on so many ranks, 2 to a node, without its splitters. */
static double direct_seconds(const hsort_rates *rates, int ranks, int64_t keys, hsort_plan_result *plan)
{
    const int64_t each = keys / ranks;
    int probes;
    const int rounds = splitters_rounds(ranks, keys, each, &probes), collectives = 2 * rounds + 3;
    CHECK(hsort_plan(rates, ranks, 2, HSORT_U64, keys, plan) == HSORT_OK, "plan");
    // A collective takes one message inside the nodes and one between them.
    return plan->direct.seconds[HSORT_PHASE_EXCHANGE] - collectives * (0.03 + 0.07) - 2 * rounds * 0.001 -
           rounds * probes * 48 / 100.0;
}

/* 4 ranks, 2 to a node, 2^20 keys of 8 bytes each. Each rank sends a quarter to each other rank: two quarters cross the network, packed,
 * and one goes by the link. Through host memory that one is packed, too. Then 3 ranks, so nodes are uneven: the two ranks of a node send
 * to each other one after the other. */
static void test_direct_packed(void)
{
    enum { KEYS_EACH = 1 << 20 };
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED);
    const double quarter = KEYS_EACH / 4, packed = (64 - 20 + 3.1) / 8 + 12.0 / 256, copied = 2 * 8 * quarter / 16000 + 0.001;
    double took = direct_seconds(&rates, 4, 4 * KEYS_EACH, &plan);
    CHECK(same(took, 2 * quarter * packed / 100 + quarter * packed / 1000 + 0.07 + copied), "staged: %g", took);
    CHECK(same(plan.direct.moved_bytes, 12 * quarter * packed) && same(plan.direct.moved_bytes_largest, 3 * quarter * packed),
          "staged: %g bytes", plan.direct.moved_bytes);
    rates.link = HSORT_TRANSPORT_MPI;
    took = direct_seconds(&rates, 4, 4 * KEYS_EACH, &plan);
    CHECK(same(took, 2 * quarter * packed / 100 + 0.07 + 0.5 + 8 * quarter / 1000 + copied), "mpi: %g", took);
    CHECK(same(plan.direct.moved_bytes, 8 * quarter * packed + 4 * 8 * quarter) && plan.direct_crossing.bytes < plan.direct.moved_bytes,
          "mpi: %g bytes", plan.direct.moved_bytes);
    took = direct_seconds(&rates, 3, 3 * KEYS_EACH, &plan);
    const double third = KEYS_EACH / 3.0;
    CHECK(same(took, 2 * third * packed / 100 + 0.07 + 2 * (0.5 + 8 * third / 1000) + 2 * 8 * third / 16000 + 0.001), "uneven: %g", took);
    // A fast network waits for the packing, which takes as long as four times the bytes that are packed.
    rates.value[HSORT_RATE_NETWORK] = 1e9;
    CHECK(hsort_plan(&rates, 4, 2, HSORT_U64, 4 * KEYS_EACH, &plan) == HSORT_OK, "plan");
    CHECK(plan.direct.seconds[HSORT_PHASE_EXCHANGE] > 4 * 8 * 2 * quarter / 16000, "fast: %g",
          plan.direct.seconds[HSORT_PHASE_EXCHANGE]);
}

/* 4 ranks, 2 to a node, 1000 keys of 8 bytes each, too few to pack: 3 quarters of a shard leave, two by the network. */
static void test_direct(void)
{
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED);
    CHECK(hsort_plan(&rates, 4, 2, HSORT_U64, 4000, &plan) == HSORT_OK, "plan");
    const hsort_plan_exchange *d = &plan.direct;
    int probes;
    const int collectives = 2 * splitters_rounds(4, 4000, 1000, &probes) + 3;
    double took = direct_seconds(&rates, 4, 4000, &plan);
    CHECK(same(took, 0.5 + 2 + 2 * 0.07 + 40 + 0.251), "exchange %g", took);
    CHECK(same(d->seconds[HSORT_PHASE_MERGE], 1.001), "merge %g", d->seconds[HSORT_PHASE_MERGE]);
    CHECK(same(d->moved_bytes_largest, 6000) && same(d->moved_bytes, 24000), "%g bytes", d->moved_bytes);
    CHECK(same(d->messages, 2 * collectives + 3), "%g messages", d->messages);
    // Uneven nodes: in each step some rank has a partner on the other node.
    took = direct_seconds(&rates, 3, 3000, &plan);
    CHECK(same(took, 2 * 0.07 + 2 * 8000 / 3.0 / 100 + 2 * 8000 / 3.0 / 16000 + 0.001), "uneven: exchange %g", took);
    // 16 runs are merged in one pass, 17 in two.
    for (int ranks = 2; ranks <= 257; ranks++) {
        const int passes = ranks <= 16 ? 1 : ranks <= 256 ? 2 : 3;
        CHECK(hsort_plan(&rates, ranks, 1, HSORT_U64, 1000 * ranks, &plan) == HSORT_OK, "plan");
        CHECK(same(d->seconds[HSORT_PHASE_MERGE], passes * 1.001), "%d runs: merge %g", ranks,
              d->seconds[HSORT_PHASE_MERGE]);
    }
}

/* With very many ranks AUTO takes what the model says is cheaper, or loses little. */
static void test_many_ranks(void)
{
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_rates rates;
    for (hsort_engine engine = HSORT_ENGINE_HOST; engine <= HSORT_ENGINE_CUDA; engine++) {
        CHECK(hsort_rates_init(&rates, sizeof rates, engine, HSORT_TRANSPORT_AUTO) == HSORT_OK, "rates");
        for (int ranks = 1 << 11; ranks <= 1 << 20; ranks *= 2)
            for (int bits = 0; bits <= 30; bits++) {
                CHECK(hsort_plan(&rates, ranks, 8, HSORT_U64, ranks * (INT64_C(1) << bits), &plan) ==
                          HSORT_OK,
                      "plan");
                const bool direct = plan.exchange == HSORT_EXCHANGE_DIRECT;
                const double taken = (direct ? plan.direct : plan.bitonic).total_seconds,
                             other = (direct ? plan.bitonic : plan.direct).total_seconds;
                CHECK(taken < 2 * other || taken < other + 0.005,
                      "%s, %d ranks, 2^%d keys each: %g s, not %g s", hsort_engine_name(engine), ranks, bits,
                      taken, other);
            }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    test_many_ranks();
    test_direct();
    test_direct_packed();
    return ranks_finish();
}
