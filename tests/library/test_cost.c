/* The cost model: checked by hand for small cases; against what both exchanges really send, over as many ranks as this runs on; and
 * by rules that must hold for any number: more keys or slower paths never cost less, nothing overflows. Also that a sort takes the
 * exchange that the plan names. */
#include <float.h>
#include <math.h>
#include "mpi/exchange/exchange.h"
#include "mpi/exchange/splitters.h"
#include "mpi/transport/transport.h"
#include "src/library/cost.h"
#include "tests/support/odd_rates.h"
#include "tests/support/ranks.h"

static struct comm comm;
static struct engine *engine;
/* ---- by hand ----------------------------------------------------------------------------------------------------- */

/* Return the largest share of a round, in whichever place. */
static double share_of(const struct cost_network *n, int round)
{
    const float *share = n->round[round].share;
    return share[COST_NEAR] > share[COST_FAR] ? share[COST_NEAR] : share[COST_FAR];
}

static void check_network(int size, int rounds, const double *shares, double moved)
{
    struct cost_network n;
    double all = 0;
    CHECK(cost_network_count(size, 8, &n) == HSORT_OK, "%d ranks", size);
    CHECK(n.rounds == rounds, "%d ranks: %d rounds", size, n.rounds);
    for (int i = 0; i < rounds; i++) {
        CHECK(fabs(share_of(&n, i) - shares[i]) < 1e-6, "%d ranks, round %d: a rank sends %g", size, i,
              share_of(&n, i));
        all += n.round[i].moved;
    }
    CHECK(fabs(all - moved) < 1e-6, "%d ranks move %g shards, not %g", size, all, moved);
}

static void test_networks(void)
{
    check_network(1, 0, NULL, 0);
    check_network(2, 1, (double[]){0.5}, 1);
    check_network(3, 3, (double[]){0.5, 2.0 / 3, 1.0 / 3}, 3);
    check_network(4, 3, (double[]){0.5, 1, 0.5}, 6);
    check_network(8, 6, (double[]){0.5, 1, 0.5, 1, 1, 0.5}, 24);
    // P = 2^L: L (L + 1) / 4 shards moved on each rank, L^2 / 2 on the critical path, counted or by formula.
    for (int depth = 1; depth <= 20; depth++) {
        struct cost_network n;
        double moved = 0, critical = 0;
        CHECK(cost_network_count(1 << depth, 8, &n) == HSORT_OK, "2^%d ranks", depth);
        for (int i = 0; i < n.rounds; i++) {
            moved += n.round[i].moved / (1 << depth);
            critical += share_of(&n, i);
            CHECK(n.round[i].paired == 1 << depth, "2^%d ranks, round %d: %d are paired", depth, i,
                  n.round[i].paired);
        }
        CHECK(fabs(moved / (depth * (depth + 1) / 4.0) - 1) < 0.01, "2^%d ranks move %g", depth, moved);
        CHECK(fabs(critical / (depth * depth / 2.0) - 1) < 0.05, "2^%d ranks: critical path %g", depth,
              critical);
        CHECK(n.largest <= critical + 1e-6 && n.largest >= moved - 1e-6, "2^%d ranks: largest %g", depth,
              n.largest);
    }
}

/* Which pairs meet on their node: 4 ranks, 2 to a node, rounds 0-1 2-3, 0-3 1-2, 0-1 2-3. */
static void test_places(void)
{
    struct cost_network n;
    CHECK(cost_network_count(4, 2, &n) == HSORT_OK, "4 ranks");
    for (int i = 0; i < 3; i++) {
        const int there = i == 1 ? COST_FAR : COST_NEAR;
        CHECK(n.round[i].share[there] > 0 && n.round[i].share[1 - there] < 0, "round %d", i);
    }
    // One node, with more ranks than are counted, and with fewer than the power of 2 that the formula takes.
    CHECK(cost_network_count(3000, 3000, &n) == HSORT_OK, "3000 ranks");
    for (int i = 0; i < n.rounds; i++)
        CHECK(n.round[i].share[COST_FAR] < 0 && n.round[i].crossed == 0, "of one node, round %d", i);
}

/* Check what crosses against a count of pairs: by direct each rank sends an equal part to each rank. Nodes may be filled in part. */
static void test_crossings(void)
{
    const hsort_exchange all[] = {HSORT_EXCHANGE_DIRECT, HSORT_EXCHANGE_PARTITION, HSORT_EXCHANGE_BITONIC};
    for (int size = 1; size <= 20; size++)
        for (int per_node = 1; per_node <= 8; per_node++) {
            struct cost_network network;
            int pairs = 0;
            for (int a = 0; a < size; a++)
                for (int b = 0; b < size; b++)
                    pairs += a / per_node != b / per_node;
            CHECK(cost_network_count(size, per_node, &network) == HSORT_OK, "%d ranks", size);
            double plain[3], bytes[3], moved = 0;
            for (int i = 0; i < 3; i++) {
                const struct hsort_plan_crossing c = cost_crossing(&network, 8, INT64_C(1000000) * size, all[i]);
                plain[i] = c.plain_bytes;
                bytes[i] = c.bytes;
            }
            for (int i = 0; i < network.rounds; i++)
                moved += network.round[i].moved * 8e6;
            const bool packs = 8e6 / size >= TRANSPORT_CHUNK_DEFAULT / 4.0 &&
                               pairs > 0; // what goes to another rank is at least a quarter of a message
            CHECK(same(plain[0] + 1, 8e6 * pairs / size + 1) &&
                      (packs ? bytes[0] < plain[0] : same(bytes[0] + 1, plain[0] + 1)),
                  "%d ranks, %d to a node: %g of %g", size, per_node, bytes[0], plain[0]);
            const double fetched = 1 + (size - 1) / 1024.0; // of a region across their boundary both ranks fetch all keys
            CHECK(same(plain[1] + 1, plain[0] * fetched + 1) && (bytes[1] < plain[1] || pairs == 0), "partition: %g of %g", bytes[1],
                  plain[1]);
            CHECK((plain[2] > 0) == (pairs > 0) && plain[2] <= moved * (1 + NEARLY) && (per_node > 1 || same(plain[2] + 1, moved + 1)),
                  "bitonic: %g of %g", plain[2], moved);
        }
}

/* Codes of 16 bytes have no rate of their own, but half the rate of keys of 8 bytes. */
static void test_codes(void)
{
    struct cost_network n;
    const hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED);
    CHECK(cost_network_count(2, 8, &n) == HSORT_OK, "2 ranks");
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2) {
        const hsort_plan_exchange cost = cost_exchange(&n, &rates, key_bytes, 2000, HSORT_EXCHANGE_BITONIC);
        CHECK(same(cost.seconds[HSORT_PHASE_LOCAL_SORT], key_bytes / 8.0 + 0.001), "%d bytes: %g", key_bytes,
              cost.seconds[HSORT_PHASE_LOCAL_SORT]);
    }
}

/* Keys that are counted, 1000 on each of 2 ranks: two passes over them, and a table that comes and goes. */
static void test_counted(void)
{
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED);
    const hsort_plan_exchange *c = &plan.counted;
    CHECK(hsort_plan(&rates, 2, 8, HSORT_F16, 2000, &plan) == HSORT_OK, "plan");
    CHECK(plan.exchange == HSORT_EXCHANGE_AUTO && plan.passes == 1 && plan.bitonic.total_seconds == 0 &&
              plan.direct.messages == 0 && !plan.can_partition,
          "an exchange moves keys that are counted");
    CHECK(same(plan.shard_bytes, 2000) && same(plan.engine_bytes, 655360 + 2000), "%g bytes", plan.engine_bytes);
    CHECK(same(c->seconds[HSORT_PHASE_H2D], 0.5) && same(c->seconds[HSORT_PHASE_D2H], 0.5), "copies");
    CHECK(same(c->seconds[HSORT_PHASE_LOCAL_SORT], 0.126) && same(c->seconds[HSORT_PHASE_MERGE], 0.126), "passes");
    CHECK(same(c->seconds[HSORT_PHASE_EXCHANGE], 0.03 + 2 * 524288 / 1000.0), "sum %g",
          c->seconds[HSORT_PHASE_EXCHANGE]);
    CHECK(same(c->messages, 1) && same(c->messages_all, 2) && c->moved_bytes == 0, "%g messages", c->messages);
    CHECK(same(c->total_seconds, 1.252 + 0.03 + 1048.576), "total %g", c->total_seconds);
    rates.engine_bytes = 655360 + 100; // smaller pieces
    CHECK(hsort_plan(&rates, 2, 8, HSORT_F16, 2000, &plan) == HSORT_OK && plan.passes == 1 &&
              same(plan.engine_bytes, rates.engine_bytes),
          "%g bytes with a limit", plan.engine_bytes);
    rates.engine_bytes = 655359;
    CHECK(hsort_plan(&rates, 2, 8, HSORT_F16, 2000, &plan) == HSORT_OK && plan.passes == 0 &&
              same(plan.engine_bytes, 655360),
          "%g bytes with too low a limit", plan.engine_bytes);
    CHECK(hsort_plan(&rates, 1, 8, HSORT_I8, 2000, &plan) == HSORT_OK && plan.passes == 1 &&
              c->seconds[HSORT_PHASE_EXCHANGE] == 0 && c->messages == 0 && same(plan.engine_bytes, 2304 + 2000),
          "one rank: %g bytes", plan.engine_bytes);
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U64, 2000, &plan) == HSORT_OK && c->total_seconds == 0, "u64 is counted");
}

/* 2 ranks, 1000 keys of 8 bytes each. */
static void test_two_ranks(void)
{
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_rates rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED);
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U64, 2000, &plan) == HSORT_OK, "plan");
    CHECK(plan.shard_capacity == 1000 && same(plan.shard_bytes, 8000) && same(plan.caller_bytes, 8000),
          "capacity %lld", (long long)plan.shard_capacity);
    CHECK(plan.engine_bytes >= 18400 && plan.engine_bytes < 20400, "%g bytes", plan.engine_bytes);
    const hsort_plan_exchange *b = &plan.bitonic, *d = &plan.direct;
    CHECK(same(b->seconds[HSORT_PHASE_H2D], 2) && same(b->seconds[HSORT_PHASE_D2H], 2), "copies");
    CHECK(same(b->seconds[HSORT_PHASE_LOCAL_SORT], 1.001), "sort");
    // A handshake, probes in two messages, and half a shard; the whole shard is merged.
    CHECK(same(b->messages, 4) && same(b->messages_all, 8), "%g messages, %g in all", b->messages,
          b->messages_all);
    CHECK(same(b->moved_bytes, 8000) && same(b->moved_bytes_largest, 4000), "%g bytes", b->moved_bytes);
    CHECK(same(b->seconds[HSORT_PHASE_EXCHANGE], 3 * 0.031 + 0.5 + 4), "exchange %g",
          b->seconds[HSORT_PHASE_EXCHANGE]);
    CHECK(same(b->seconds[HSORT_PHASE_MERGE], 1.001), "merge %g", b->seconds[HSORT_PHASE_MERGE]);
    CHECK(same(b->total_seconds, 2 + 1.001 + 3 * 0.031 + 4.5 + 1.001 + 2), "total %g", b->total_seconds);
    // 32 offers, 15 codes and 2 estimates a round, in rounds of 2000, 126 and 8 keys; 9 collectives of one message each, and the transfer.
    CHECK(same(d->messages, 10) && same(d->messages_all, 20), "%g messages, %g in all", d->messages,
          d->messages_all);
    CHECK(same(d->moved_bytes, 8000) && same(d->moved_bytes_largest, 4000), "%g bytes", d->moved_bytes);
    CHECK(
        same(d->seconds[HSORT_PHASE_EXCHANGE], 9 * 0.03 + 6 * 0.001 + 3 * 49 * 48 / 1000.0 + 0.5 + 4 + 0.501),
        "exchange %g", d->seconds[HSORT_PHASE_EXCHANGE]);
    CHECK(same(d->seconds[HSORT_PHASE_MERGE], 1.001), "merge %g", d->seconds[HSORT_PHASE_MERGE]);
    CHECK(plan.exchange == HSORT_EXCHANGE_BITONIC, "2 ranks");

    // With a node for each rank, the same goes over the network.
    CHECK(hsort_plan(&rates, 2, 1, HSORT_U64, 2000, &plan) == HSORT_OK, "plan");
    CHECK(same(b->seconds[HSORT_PHASE_EXCHANGE], 3 * 0.071 + 0.07 + 40), "network %g",
          b->seconds[HSORT_PHASE_EXCHANGE]);
    // The merge reads over the link: the slower of both counts.
    rates = odd_rates(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC);
    for (int fast = 0; fast < 2; fast++) {
        rates.value[HSORT_RATE_LINK] = fast ? 1e9 : 1000;
        CHECK(hsort_plan(&rates, 2, 8, HSORT_U64, 2000, &plan) == HSORT_OK, "plan");
        CHECK(same(b->seconds[HSORT_PHASE_EXCHANGE], 3 * 0.031 + (fast ? 1.001 : 4.5)), "ipc %g",
              b->seconds[HSORT_PHASE_EXCHANGE]);
        CHECK(same(b->seconds[HSORT_PHASE_MERGE], 0), "ipc: merge %g", b->seconds[HSORT_PHASE_MERGE]);
        // 3/8 of the sort. Then the rest of it, or half a shard and half a region with gaps; 8 short messages, 20 steps.
        const double rest = (fast ? 1.001 * 5 / 8 : 4 * (1 + 1 / 1024.0) * (1 + 31 / 1000.0)) + 8 * 0.03 + 20 * 0.001,
                     *partition = plan.partition.seconds;
        CHECK(same(partition[HSORT_PHASE_LOCAL_SORT], 1.001 * 3 / 8) &&
                  same(partition[HSORT_PHASE_EXCHANGE], rest),
              "partition %g", partition[HSORT_PHASE_EXCHANGE]);
    }
    // 2 ranks to a node: a quarter of each shard goes by the link, meanwhile two over the network. Each of 1000 keys takes 64 - log2 1000
    // + 3.1 bits, and 256 keys 12 bytes more. 4 collectives of 2 messages, 4 messages a peer. A rank fetches 3 of 1024 regions more. 9
    // batches, of 128 pieces at most: the network, a tenth of what the engine does for them, in 9 steps each, and the last region.
    const double each = (64 - log2(1000) + 3.1) / 8 + 12.0 / 256, short_ones = 20 * 0.07 + 20 * 0.001, fetched = 1 + 3 / 1024.0,
                 busy = fetched * (1.001 * 5 / 8 + 1.001 / 2 + 4 * 4000 / 16000.0) + 9 * 0.009,
                 rest = busy / 10 + 4 / 1024.0 * 1.001 * 5 / 8 + short_ones;
    rates.value[HSORT_RATE_LINK] = 1000;
    CHECK(hsort_plan(&rates, 4, 2, HSORT_U64, 4000, &plan) == HSORT_OK, "plan");
    CHECK(same(plan.partition.seconds[HSORT_PHASE_EXCHANGE], fetched * 500 * each / 100 + rest), "nodes: partition %g",
          plan.partition.seconds[HSORT_PHASE_EXCHANGE]);
    CHECK(same(plan.partition.moved_bytes, fetched * 4 * (2000 + 500 * each)), "%g bytes", plan.partition.moved_bytes);
    // Without ipc the link and the network follow one after the other.
    rates.link = HSORT_TRANSPORT_MPI;
    CHECK(hsort_plan(&rates, 4, 2, HSORT_U64, 4000, &plan) == HSORT_OK && plan.can_partition, "plan");
    CHECK(same(plan.partition.seconds[HSORT_PHASE_EXCHANGE], fetched * (500 * each / 100 + 2) + rest),
          "messages: partition %g", plan.partition.seconds[HSORT_PHASE_EXCHANGE]);
    // Through host memory the quarter is packed, too.
    const double more = fetched * (1.001 / 4 + 4 * 2000 / 16000.0) / 10;
    rates.link = HSORT_TRANSPORT_STAGED;
    CHECK(hsort_plan(&rates, 4, 2, HSORT_U64, 4000, &plan) == HSORT_OK, "plan");
    CHECK(same(plan.partition.seconds[HSORT_PHASE_EXCHANGE], fetched * (500 * each / 100 + 250 * each / 1000) + rest + more),
          "staged: partition %g", plan.partition.seconds[HSORT_PHASE_EXCHANGE]);
    CHECK(same(plan.partition.moved_bytes, fetched * 4 * 750 * each), "staged: %g bytes", plan.partition.moved_bytes);
    rates.link = HSORT_TRANSPORT_MPI;
    // A fast network waits for the engine: 5/8 of a sort, and half of the keys once more, which are packed and unpacked.
    rates.value[HSORT_RATE_NETWORK] = rates.value[HSORT_RATE_LINK] = 1e9;
    CHECK(hsort_plan(&rates, 4, 2, HSORT_U64, 4000, &plan) == HSORT_OK, "plan");
    CHECK(fabs(plan.partition.seconds[HSORT_PHASE_EXCHANGE] -
               (rest + busy * 9 / 10)) < 1e-4,
          "fast: partition %g", plan.partition.seconds[HSORT_PHASE_EXCHANGE]);
}

/* ---- for any number ---------------------------------------------------------------------------------------------- */

static double total_of(const hsort_rates *rates, int ranks, int64_t keys, hsort_exchange exchange)
{
    hsort_plan_result plan = {.struct_size = sizeof plan};
    CHECK(hsort_plan(rates, ranks, 8, HSORT_U64, keys, &plan) == HSORT_OK, "%d ranks, %lld keys", ranks,
          (long long)keys);
    const hsort_plan_exchange *cost = exchange == HSORT_EXCHANGE_DIRECT ? &plan.direct : &plan.bitonic;
    CHECK(isfinite(cost->total_seconds) && isfinite(cost->messages_all) && isfinite(cost->moved_bytes) &&
              cost->moved_bytes >= cost->moved_bytes_largest - NEARLY * cost->moved_bytes &&
              cost->messages_all >= cost->messages,
          "%d ranks, %lld keys", ranks, (long long)keys);
    CHECK(plan.shard_capacity >= 0 && (double)plan.shard_capacity * ranks >= (double)keys * (1 - NEARLY),
          "the capacity of %lld", (long long)plan.shard_capacity);
    return cost->total_seconds;
}

static void test_monotonous(void)
{
    const int ranks[] = {1, 2, 3, 7, 8, 9, 64, 100, 1024, 1025, 100000, 1 << 30};
    hsort_rates rates;
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_AUTO, HSORT_TRANSPORT_AUTO) == HSORT_OK,
          "rates");
    for (size_t r = 0; r < sizeof ranks / sizeof ranks[0]; r++)
        for (hsort_exchange e = HSORT_EXCHANGE_BITONIC; e <= HSORT_EXCHANGE_DIRECT; e++) {
            double before = 0;
            for (int bits = 0; bits <= 62; bits += ranks[r] > 64 && ranks[r] <= COST_COUNTED_MAX ? 8 : 1) {
                const double now = total_of(&rates, ranks[r], INT64_C(1) << bits, e);
                // Of few keys fewer are offered as splitters, so they may take a round more than twice as many keys.
                CHECK(now >= before * (e == HSORT_EXCHANGE_DIRECT ? 0.75 : 1 - NEARLY),
                      "%d ranks, exchange %d, 2^%d keys: %g after %g", ranks[r], e, bits, now, before);
                before = now;
            }
            CHECK(before > 100, "%d ranks: 2^62 keys in %g s", ranks[r], before);
        }
    for (int which = 0; which < HSORT_RATES; which++)
        for (int64_t keys = 1; keys < INT64_C(1) << 50; keys *= 37)
            for (hsort_exchange e = HSORT_EXCHANGE_BITONIC; e <= HSORT_EXCHANGE_DIRECT; e++) {
                const bool is_time = rates.value[which] < 1;
                hsort_rates slow = rates;
                slow.value[which] *= is_time ? 3 : 1.0 / 3;
                const double better = total_of(&rates, 24, keys, e), worse = total_of(&slow, 24, keys, e);
                CHECK(worse >= better * (1 - NEARLY), "rate %d, %lld keys: slower is cheaper", which,
                      (long long)keys);
            }
}

static void test_choices(void)
{
    hsort_rates rates;
    hsort_plan_result plan = {.struct_size = sizeof plan};
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_AUTO, HSORT_TRANSPORT_AUTO) == HSORT_OK,
          "rates");
    for (int bits = 0; bits <= 40; bits++) {
        CHECK(hsort_plan(&rates, 2, 8, HSORT_U32, INT64_C(1) << bits, &plan) == HSORT_OK &&
                  plan.exchange == (bits < 28 ? HSORT_EXCHANGE_BITONIC : HSORT_EXCHANGE_PARTITION),
              "2 ranks, 2^%d keys", bits);
        CHECK(hsort_plan(&rates, 1, 8, HSORT_U32, INT64_C(1) << bits, &plan) == HSORT_OK &&
                  same(plan.bitonic.total_seconds, plan.direct.total_seconds) &&
                  plan.bitonic.messages_all == 0 && plan.exchange == HSORT_EXCHANGE_BITONIC &&
                  !plan.can_partition,
              "1 rank, 2^%d keys", bits);
    }
    for (int ranks = 4; ranks <= 1 << 14; ranks *= 2)
        CHECK(hsort_plan(&rates, ranks, 8, HSORT_U64, ranks * (INT64_C(1) << 28), &plan) == HSORT_OK &&
                  plan.exchange == (ranks <= 128 ? HSORT_EXCHANGE_PARTITION : HSORT_EXCHANGE_DIRECT),
              "%d ranks and many keys", ranks);
    // If memory suffices only for the other exchanges, one of them runs, in one pass; partition leaves no gaps if these lack room.
    CHECK(hsort_plan(&rates, 8, 8, HSORT_U64, INT64_C(1) << 32, &plan) == HSORT_OK, "plan");
    const double all = plan.engine_bytes, b = plan.shard_bytes, room[] = {all, all - b / 32, all - b / 32 - 1, 2.32 * b, 2 * b};
    for (int i = 0; i < 5; i++) {
        rates.engine_bytes = room[i];
        CHECK(hsort_plan(&rates, 8, 8, HSORT_U64, INT64_C(1) << 32, &plan) == HSORT_OK &&
                  plan.passes == (i < 4 ? 1 : 2) && plan.engine_bytes <= room[i] &&
                  (i == 4 || plan.exchange == (i < 2 ? HSORT_EXCHANGE_PARTITION : HSORT_EXCHANGE_DIRECT)),
              "%g bytes: %lld passes, exchange %d", room[i], (long long)plan.passes, plan.exchange);
    }
    rates.engine_bytes = 1e6; // small slots, and so small buffers of messages
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U64, 4000000, &plan) == HSORT_OK && plan.passes == 2 &&
              plan.host_bytes > 16e6 && plan.host_bytes < 16e6 + 8e6,
          "small slots: %lld passes, %g bytes", (long long)plan.passes, plan.host_bytes);
    // A rank that is alone does with less scratch: its plan stays within the limit, from all that the rank would like to the least.
    for (int kind = HSORT_ENGINE_HOST; kind <= HSORT_ENGINE_CUDA; kind++) {
        CHECK(hsort_rates_init(&rates, sizeof rates, (hsort_engine)kind, HSORT_TRANSPORT_AUTO) == HSORT_OK &&
                  hsort_plan(&rates, 1, 8, HSORT_U64, 1 << 28, &plan) == HSORT_OK &&
                  plan.engine_bytes >= 2 * plan.shard_bytes,
              "rates");
        const double s = plan.shard_bytes, more = kind == HSORT_ENGINE_HOST ? 2e8 : 0; // for its threads
        const double alone[] = {plan.engine_bytes, plan.engine_bytes - 1, 1.5 * s, 1.021 * s + more, s};
        for (int i = 0; i < 5; i++) {
            rates.engine_bytes = alone[i];
            CHECK(hsort_plan(&rates, 1, 8, HSORT_U64, 1 << 28, &plan) == HSORT_OK &&
                      plan.passes == (i < 4 ? 1 : 2) &&
                      (i < 4 ? same(plan.engine_bytes, alone[i]) : plan.engine_bytes <= alone[i]),
                  "alone, with %g bytes: %lld passes, %g bytes", alone[i], (long long)plan.passes,
                  plan.engine_bytes);
        }
    }
    // On the host steps take next to no time: there the rounds of the network are not taken from some thousand keys a rank on.
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO) == HSORT_OK,
          "rates");
    for (int bits = 0; bits <= 30; bits++)
        for (int ranks = 2; ranks <= 1024; ranks *= 8)
            CHECK(hsort_plan(&rates, ranks, 8, HSORT_F32, ranks * (INT64_C(1) << bits), &plan) == HSORT_OK &&
                      plan.exchange ==
                          (ranks > 2 && bits >= 13 ? HSORT_EXCHANGE_DIRECT : HSORT_EXCHANGE_BITONIC),
                  "host, %d ranks, 2^%d keys each", ranks, bits);
}

static void test_misuses(void)
{
    hsort_rates rates;
    hsort_plan_result plan = {.struct_size = sizeof plan};
    CHECK(hsort_rates_init(&rates, 3, HSORT_ENGINE_AUTO, HSORT_TRANSPORT_AUTO) == HSORT_ARGUMENT, "3 bytes");
    CHECK(hsort_rates_init(NULL, sizeof rates, HSORT_ENGINE_AUTO, HSORT_TRANSPORT_AUTO) == HSORT_ARGUMENT,
          "NULL");
    CHECK(hsort_rates_init(&rates, sizeof rates, (hsort_engine)9, HSORT_TRANSPORT_AUTO) == HSORT_ARGUMENT,
          "9");
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_AUTO, (hsort_transport)-1) == HSORT_ARGUMENT,
          "-1");
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_AUTO, HSORT_TRANSPORT_AUTO) == HSORT_OK,
          "rates");
    CHECK(hsort_plan(NULL, 2, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "no rates");
    CHECK(hsort_plan(&rates, 0, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "0 ranks");
    CHECK(hsort_plan(&rates, INT32_MAX, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "2^31 - 1 ranks");
    CHECK(hsort_plan(&rates, 2, 0, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "0 to a node");
    CHECK(hsort_plan(&rates, 2, 8, (hsort_type)77, 1, &plan) == HSORT_ARGUMENT, "type 77");
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U32, -1, &plan) == HSORT_ARGUMENT, "-1 keys");
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U32, INT64_MAX, &plan) == HSORT_ARGUMENT, "2^63 - 1 keys");
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U32, 1, NULL) == HSORT_ARGUMENT, "no plan");
    plan.struct_size = 1;
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "a plan of 1 byte");
    plan.struct_size = sizeof plan;
    const double wrong[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        hsort_rates bad = rates;
        bad.value[HSORT_RATE_LINK] = wrong[i];
        CHECK(hsort_plan(&bad, 2, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "a rate of %g", wrong[i]);
        bad = rates;
        bad.engine_bytes = wrong[i];
        CHECK(hsort_plan(&bad, 2, 8, HSORT_U32, 1, &plan) == (i == 0 ? HSORT_OK : HSORT_ARGUMENT),
              "%g bytes of the engine", wrong[i]);
    }
    hsort_rates of_no_engine = rates, of_no_link = rates;
    of_no_engine.engine = HSORT_ENGINE_AUTO;
    of_no_link.link = HSORT_TRANSPORTS;
    CHECK(hsort_plan(&of_no_engine, 2, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "rates of AUTO");
    CHECK(hsort_plan(&of_no_link, 2, 8, HSORT_U32, 1, &plan) == HSORT_ARGUMENT, "rates of no link");
    CHECK(hsort_plan(&rates, 1 << 30, 8, HSORT_U64, INT64_C(1) << 60, &plan) == HSORT_OK &&
              plan.direct.total_seconds > 1,
          "2^30 ranks take %g s", plan.direct.total_seconds);
    CHECK(hsort_plan(&rates, 2, 8, HSORT_U32, 0, &plan) == HSORT_OK && plan.bitonic.total_seconds == 0,
          "0 keys");
}

/* ---- what the exchanges really send ------------------------------------------------------------------------------ */

static int64_t short_messages, transfers, searches;
static hsort_status (*real_swap)(struct transport *, int, const void *, size_t, int, void *, size_t,
                                 int64_t *);
static hsort_status (*real_search)(struct engine *, int, const void *, int64_t, const key_code *, int,
                                   int64_t *, int64_t *);

int __real_MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                        void *receive, int receive_count, MPI_Datatype receive_type, int from,
                        int receive_tag, MPI_Comm on, MPI_Status *status);
int __wrap_MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                        void *receive, int receive_count, MPI_Datatype receive_type, int from,
                        int receive_tag, MPI_Comm on, MPI_Status *status);

int __wrap_MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                        void *receive, int receive_count, MPI_Datatype receive_type, int from,
                        int receive_tag, MPI_Comm on, MPI_Status *status)
{
    short_messages++;
    return __real_MPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, receive_count,
                               receive_type, from, receive_tag, on, status);
}

static hsort_status counted_swap(struct transport *transport, int to, const void *send, size_t send_bytes,
                                 int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    transfers += send_bytes > 0;
    return real_swap(transport, to, send, send_bytes, from, receive, receive_bytes, moved_bytes);
}

static hsort_status counted_search(struct engine *on, int key_bytes, const void *keys, int64_t count,
                                   const key_code *probes, int probe_count, int64_t *less,
                                   int64_t *not_greater)
{
    searches++;
    return real_search(on, key_bytes, keys, count, probes, probe_count, less, not_greater);
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static double sum_of(double value)
{
    double sum;
    MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

static double most_of(double value)
{
    double most;
    MPI_Allreduce(&value, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void check_near(const char *what, hsort_exchange exchange, int64_t capacity, double planned,
                       double real, double tolerance)
{
    CHECK(fabs(planned - real) <= tolerance * real, "%d ranks, %lld keys, exchange %d: %s %g, planned %g",
          comm.size, (long long)capacity, exchange, what, real, planned);
}

static void run_exchange(hsort_exchange exchange, int64_t capacity, uint64_t seed,
                         struct transport *transport, void *tables)
{
    struct cost_network network;
    hsort_rates rates;
    int64_t *target_offset = calloc((size_t)comm.size + 1, sizeof *target_offset);
    uint64_t *keys = malloc((size_t)capacity * 8), *scratch = malloc((size_t)capacity * 8);
    if (!target_offset || !keys || !scratch)
        MPI_Abort(MPI_COMM_WORLD, 1);
    seed += (uint64_t)comm.rank << 32;
    for (int64_t i = 0; i < capacity; i++)
        keys[i] = check_random(&seed);
    qsort(keys, (size_t)capacity, sizeof *keys, compare_keys);
    for (int rank = 0; rank <= comm.size; rank++)
        target_offset[rank] = rank * capacity;
    struct exchange x = {.comm = &comm,
                         .engine = engine,
                         .transport = transport,
                         .tables = tables,
                         .target_offset = target_offset,
                         .key_bytes = 8,
                         .capacity = capacity,
                         .keys = keys,
                         .scratch = scratch,
                         .count = capacity};
    short_messages = transfers = searches = 0;
    bool done;
    const hsort_status status =
        exchange == HSORT_EXCHANGE_DIRECT ? exchange_direct.run(&x, &done) : exchange_bitonic.run(&x, &done);
    CHECK(status == HSORT_OK, "%s", status_text());
    hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO);
    CHECK(cost_network_count(comm.size, comm.size, &network) == HSORT_OK, "%s", status_text());
    const hsort_plan_exchange cost = cost_exchange(&network, &rates, 8, capacity * comm.size, exchange);
    const double moved = (double)x.moved_bytes;
    check_near("bytes", exchange, capacity, cost.moved_bytes, sum_of(moved), 0.03);
    check_near("bytes of one", exchange, capacity, cost.moved_bytes_largest, most_of(moved), 0.05);
    if (exchange == HSORT_EXCHANGE_BITONIC) {
        const double messages = (double)(short_messages + transfers);
        // Runs that only touch at their ends are probed all the same: a model of even keys does not see that.
        check_near("messages", exchange, capacity, cost.messages_all, sum_of(messages),
                   comm.size == 2 ? 0 : 0.3);
        check_near("messages of one", exchange, capacity, cost.messages, most_of(messages),
                   comm.size == 2 ? 0 : 0.3);
    } else {
        int probes, depth = 0;
        const int rounds = splitters_rounds(comm.size, capacity * comm.size, capacity, &probes);
        while (1 << depth < comm.size)
            depth++;
        CHECK(abs(rounds - (int)searches) <= 1, "%d ranks, %lld keys: %d rounds, planned %d", comm.size,
              (long long)capacity, (int)searches, rounds);
        CHECK(same(cost.messages, (2 * rounds + 3) * depth + (double)transfers), "%g messages, %d transfers",
              cost.messages, (int)transfers);
    }
    free(x.keys);
    free(x.scratch);
    free(target_offset);
}

static void test_exchanges(uint64_t seed)
{
    struct transport *transport;
    void *tables;
    if (transport_open_mpi(&comm, engine, 0, &transport) != HSORT_OK ||
        exchange_direct.open(comm.size, engine, &tables) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    struct transport_ops counted = *transport->ops;
    struct engine_ops counting = *engine->ops;
    const struct engine_ops *engine_ops = engine->ops;
    real_swap = counted.sendrecv;
    real_search = counting.search;
    counted.sendrecv = counted_swap;
    counting.search = counted_search;
    const struct transport_ops *ops = transport->ops;
    transport->ops = &counted;
    engine->ops = &counting;
    for (int64_t capacity = 20000; capacity <= 500000; capacity *= 5)
        for (hsort_exchange e = HSORT_EXCHANGE_BITONIC; e <= HSORT_EXCHANGE_DIRECT; e++)
            run_exchange(e, capacity, seed + (uint64_t)capacity, transport, tables);
    transport->ops = ops;
    engine->ops = engine_ops;
    ops->close(transport);
    exchange_direct.close(tables, engine);
}

/* ---- in a sort --------------------------------------------------------------------------------------------------- */

/* A sort by AUTO takes the exchange that the plan names. */
static void test_sort(void)
{
    hsort_options options;
    hsort_rates rates;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO);
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    for (int64_t count = 100; count <= 40000; count *= 20) {
        hsort_plan_result plan = {.struct_size = sizeof plan};
        uint64_t *keys = malloc((size_t)count * sizeof *keys);
        if (!keys)
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (int64_t i = 0; i < count; i++)
            keys[i] = (uint64_t)(i * 7919 + comm.rank) % 1000;
        CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL) == HSORT_OK, "%s",
              hsort_last_error(ctx));
        CHECK(hsort_plan(&rates, comm.size, comm.node_size, HSORT_U64, count * comm.size, &plan) == HSORT_OK,
              "plan");
        CHECK(hsort_exchange_in_use(ctx) == plan.exchange, "%lld keys: took %d, planned %d", (long long)count,
              hsort_exchange_in_use(ctx), plan.exchange);
        CHECK(hsort_sort(ctx, HSORT_I16, HSORT_ASCENDING, keys, count, NULL) == HSORT_OK &&
                  hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_AUTO,
              "an exchange of keys that are counted: %d", hsort_exchange_in_use(ctx));
        free(keys);
    }
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "%s", status_text());
    CHECK(engine_open_host(1, 0, &engine) == HSORT_OK, "%s", status_text());
    if (check_failures == 0) { // else alike on all ranks
        if (comm.rank == 0) {
            test_networks();
            test_places();
            test_crossings();
            test_two_ranks();
            test_codes();
            test_counted();
            test_monotonous();
            test_choices();
            test_misuses();
        }
        test_exchanges(seed);
        test_sort();
        engine->ops->close(engine);
        comm_close(&comm);
    }
    return ranks_finish();
}
