/* The model of cost.h: a phase is steps + messages * latency + bytes / rate, of the busiest rank.
 *
 *     bitonic   each round waits for its slowest pair: a handshake, probes where the runs overlap, the keys that change
 *               sides, a merge of two runs. Over ipc the merge reads the link: the slower of the two counts, once
 *     direct    rounds of splitters (an Allgather, an Allreduce), three more collectives, P - 1 transfers of 1 / P of a shard each,
 *               packed where paths are slow and the parts long enough, a merge of P runs
 *     partition cost_partition.c
 *
 * How much a round of the network moves has no simple formula unless P is a power of 2. So the network sorts
 * KEYS keys on each rank, which stand for evenly spread ones and are the same for every sort over P ranks.
 *
 *     3 ranks, 6 keys each        0-1      1-2      0-1
 *     shares that a rank sends    1/2      2/3      1/3       moved: 2 * (1/2 + 2/3 + 1/3) / 3 = 1.0 per key
 * */
#include "src/library/cost_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/engine.h"
#include "mpi/exchange/column_messages.h"
#include "mpi/exchange/hypercube.h"
#include "mpi/exchange/split.h"
#include "mpi/exchange/splitters.h"
#include "src/library/run_store.h"

enum {
    KEYS = 48, // of a rank in the small sort: divisible by 2, 3, 4, 6, 8 and so exact for a few ranks
    COLLECTIVES_AROUND = 3, // of direct, beside the rounds of its splitters: ties, counts, all is well
    COLLECTIVES_IN_ROUND = 2,
    RUNS_IN_PASS = 16, // that an engine merges in one pass
    FEW = 4,           // what at most one in FEW of a round's pairs does, the others need not wait for
    WORDS_PER_PROBE =
        6, // that pass a rank: two of the probe, two sums, and the sums once more on their way back
};

/* ---- the network --------------------------------------------------------------------------------------- */

static enum cost_place place_of(const struct cost_network *n, int a, int b)
{
    return a / n->ranks_per_node == b / n->ranks_per_node ? COST_NEAR : COST_FAR;
}

/* Compare-split of low [KEYS] and high [KEYS], sorted; returns how many keys change sides. */
static int move_between(int32_t *low, int32_t *high)
{
    int32_t kept[2 * KEYS];
    int moved = 0;
    while (moved < KEYS && low[KEYS - 1 - moved] > high[moved])
        moved++;
    for (int i = 0, a = 0, b = 0; i < 2 * KEYS; i++)
        kept[i] = b == KEYS || (a < KEYS && low[a] < high[b]) ? low[a++] : high[b++];
    memcpy(low, kept, KEYS * sizeof *kept);
    memcpy(high, kept + KEYS, KEYS * sizeof *kept);
    return moved;
}

static void add_pair(struct cost_network *n, struct cost_round *round, int rank, int partner, int moved,
                     int64_t *sent)
{
    const enum cost_place place = place_of(n, rank, partner);
    const float share = (float)moved / KEYS;
    const bool overlap = moved > 0 && moved < KEYS;
    if (share > round->share[place])
        round->share[place] = share;
    round->pairs[place]++;
    round->overlapping[place] += overlap;
    round->paired += 2;
    round->searching += 2 * overlap;
    round->sending += 2 * (moved > 0);
    round->moved += 2.0 * moved / KEYS;
    round->crossed += place == COST_FAR ? 2.0 * moved / KEYS : 0;
    sent[rank] += moved;
    sent[partner] += moved;
}

/* keys [size * KEYS], sent [size] zeros. */
static void sort_small(struct cost_network *n, int32_t *keys, int64_t *sent)
{
    // Key i of each rank lies in the i-th of KEYS slices of all codes; which rank has the least one there
    // changes with i.
    const int stride = n->size - n->size * 3 / 8;
    for (int rank = 0; rank < n->size; rank++)
        for (int i = 0; i < KEYS; i++)
            keys[rank * KEYS + i] = i * n->size + (int)((rank + (int64_t)i * stride) % n->size);
    for (int i = 0; i < n->rounds; i++) {
        struct cost_round *round = &n->round[i];
        for (int rank = 0; rank < n->size; rank++) {
            const int partner = hypercube_partner(rank, n->size, i);
            if (partner > rank)
                add_pair(n, round, rank, partner, move_between(keys + rank * KEYS, keys + partner * KEYS),
                         sent);
        }
        for (enum cost_place place = COST_NEAR; place < COST_PLACES; place++)
            round->probing[place] = round->overlapping[place] > round->pairs[place] / FEW;
    }
    for (int rank = 0; rank < n->size; rank++)
        n->largest = larger(n->largest, (double)sent[rank] / KEYS);
}

/* Treat very many ranks as if they were a power of 2: the last round of a merge finds similar runs on both sides, and
 * each side sends a half; in the other rounds, half the pairs are in order and half send all they have. */
static void take_formula(struct cost_network *n)
{
    const bool one_node = n->size <= n->ranks_per_node; // the power of 2 may be more than that
    int round = 0;
    for (int merge = 1; round < n->rounds; merge++)
        for (int step = 0; step < merge; step++, round++) {
            struct cost_round *r = &n->round[round];
            const int64_t span = INT64_C(1) << (step == 0 ? merge : merge - step); // ranks in a group
            const bool last = step == merge - 1;
            const enum cost_place place = span <= n->ranks_per_node || one_node ? COST_NEAR : COST_FAR;
            r->share[place] = last ? 0.5f : 1;
            r->probing[place] = last;
            r->paired = n->size;
            r->searching = last ? n->size : 0;
            r->sending = last ? n->size : n->size / 2;
            r->moved = 0.5 * n->size;
            r->crossed = place == COST_FAR ? r->moved : 0;
            n->largest += r->share[place];
        }
}

hsort_status cost_network_count(int size, int ranks_per_node, struct cost_network *network)
{
    struct cost_network *n = network;
    memset(n, 0, sizeof *n);
    n->size = size;
    n->ranks_per_node = ranks_per_node;
    n->rounds = hypercube_rounds(size);
    for (int round = 0; round < n->rounds; round++)
        n->round[round].share[COST_NEAR] = n->round[round].share[COST_FAR] = -1;
    if (size > COST_COUNTED_MAX) {
        take_formula(n);
        return HSORT_OK;
    }
    int32_t *keys = malloc((size_t)size * KEYS * sizeof *keys);
    int64_t *sent = calloc((size_t)size, sizeof *sent);
    const bool there = keys && sent;
    if (there)
        sort_small(n, keys, sent);
    free(keys);
    free(sent);
    return there ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory to count what %d ranks move", size);
}

/* ---- what a sort is made of ---------------------------------------------------------------------------- */

static double transfer_seconds(const hsort_rates *rates, enum cost_place place, double bytes)
{
    const bool near = place == COST_NEAR;
    return rate(rates, near ? HSORT_RATE_LINK_LATENCY : HSORT_RATE_NETWORK_LATENCY) +
           bytes / rate(rates, near ? HSORT_RATE_LINK : HSORT_RATE_NETWORK);
}

/* A collective call of a few bytes: a tree of ranks, inside the nodes first. */
static double collective_seconds(const struct cost_network *n, const hsort_rates *rates)
{
    const int depth = depth_of(n->size);
    const int inside = depth_of(near_ranks(n));
    return inside * message_seconds(rates, COST_NEAR) + (depth - inside) * message_seconds(rates, COST_FAR);
}

/* ---- bitonic ------------------------------------------------------------------------------------------- */

/* Pairs at one place in one round. */
static void add_pairs(const hsort_rates *rates, const struct shard_size *s, const struct cost_round *round,
                      enum cost_place place, double *exchange, double *merge)
{
    const double share = round->share[place], probes = split_messages(s->capacity) * round->probing[place];
    const double bytes = share * s->shard_bytes;
    *exchange = (1 + probes) * (message_seconds(rates, place) + rate(rates, HSORT_RATE_STEP));
    *merge = 0;
    if (share <= 0)
        return;
    const double merging = round->probing[place] ? merge_seconds(rates, s->shard_bytes) : 0;
    const double moving = transfer_seconds(rates, place, bytes);
    if (place == COST_NEAR && rates->link == HSORT_TRANSPORT_IPC) {
        *exchange += larger(moving, merge_seconds(rates, s->shard_bytes)); // one pass reads link and memory
    } else {
        *exchange += moving;
        *merge = merging;
    }
}

static void add_bitonic(const struct cost_network *n, const hsort_rates *rates, const struct shard_size *s,
                        struct hsort_plan_exchange *cost)
{
    const int probes = split_messages(s->capacity);
    for (int i = 0; i < n->rounds; i++) {
        const struct cost_round *round = &n->round[i];
        double exchange[COST_PLACES] = {0}, merge[COST_PLACES] = {0};
        for (enum cost_place place = COST_NEAR; place < COST_PLACES; place++)
            if (round->share[place] >= 0)
                add_pairs(rates, s, round, place, &exchange[place], &merge[place]);
        const bool far = exchange[COST_FAR] + merge[COST_FAR] > exchange[COST_NEAR] + merge[COST_NEAR];
        cost->seconds[HSORT_PHASE_EXCHANGE] += exchange[far ? COST_FAR : COST_NEAR];
        cost->seconds[HSORT_PHASE_MERGE] += merge[far ? COST_FAR : COST_NEAR];
        cost->messages += round->paired > 0 ? 1.0 : 0.0;
        cost->messages += round->searching > 0 ? probes : 0.0;
        cost->messages += round->sending > 0 ? 1.0 : 0.0;
        cost->messages_all += round->paired + (double)round->searching * probes + round->sending;
        cost->moved_bytes += round->moved * s->shard_bytes;
    }
    cost->moved_bytes_largest = n->largest * s->shard_bytes;
}

/* ---- direct -------------------------------------------------------------------------------------------- */

/* Passes over the keys in a merge of `runs` runs. */
static int passes_of(int64_t runs)
{
    int passes = 0;
    for (; runs > 1; runs = divide_up(runs, RUNS_IN_PASS))
        passes++;
    return passes;
}

static void add_splitters(const struct cost_network *n, const hsort_rates *rates, const struct shard_size *s,
                          struct hsort_plan_exchange *cost)
{
    int probes;
    const int rounds = splitters_rounds(n->size, s->total, s->capacity, &probes);
    const int collectives = COLLECTIVES_IN_ROUND * rounds + COLLECTIVES_AROUND;
    const bool several = n->size > n->ranks_per_node;
    const double probe_bytes = (double)rounds * probes * WORDS_PER_PROBE * sizeof(uint64_t);
    cost->seconds[HSORT_PHASE_EXCHANGE] +=
        collectives * collective_seconds(n, rates) + 2.0 * rounds * rate(rates, HSORT_RATE_STEP) +
        probe_bytes / rate(rates, several ? HSORT_RATE_NETWORK : HSORT_RATE_LINK);
    cost->messages += (double)collectives * depth_of(n->size);
}

/* `to` of the ranks get equal parts of a shard each, in steps. */
static void add_transfers(const hsort_rates *rates, const struct shard_size *s, enum cost_place place, int to,
                          int ranks, struct hsort_plan_exchange *cost)
{
    // With few keys some ranks have none for some others.
    const double keys = (double)s->capacity / ranks, sent = keys < 1 ? to * keys : to;
    const double bytes = to * s->shard_bytes / ranks;
    if (sent > 0)
        cost->seconds[HSORT_PHASE_EXCHANGE] += sent * transfer_seconds(rates, place, bytes / sent);
    cost->messages += sent;
    cost->moved_bytes_largest += bytes;
}

/* What stays is copied, and what has come is merged. */
static void add_merge(const hsort_rates *rates, const struct shard_size *s, int ranks,
                      struct hsort_plan_exchange *cost)
{
    cost->seconds[HSORT_PHASE_EXCHANGE] += merge_seconds(rates, s->shard_bytes / ranks);
    cost->seconds[HSORT_PHASE_MERGE] += passes_of(ranks) * merge_seconds(rates, s->shard_bytes);
}

bool cost_direct_packs(const struct cost_network *n, const struct shard_size *s)
{
    return part_is_worth_packing((size_t)fmin(s->shard_bytes / n->size, TRANSPORT_CHUNK_DEFAULT),
                                 TRANSPORT_CHUNK_DEFAULT);
}

/* A shard goes to all ranks, this one included. On even nodes, in each step all ranks of a node have partners on it, or all have
 * partners on other nodes (mpi/exchange/step_order.h). On uneven nodes some have a partner on another node in each step, and hold up
 * the others. */
static void add_plain_steps(const struct cost_network *n, const hsort_rates *rates,
                            const struct shard_size *s, struct hsort_plan_exchange *cost)
{
    const int near = n->size % near_ranks(n) == 0 ? near_ranks(n) : 1;
    add_transfers(rates, s, COST_NEAR, near - 1, n->size, cost);
    add_transfers(rates, s, COST_FAR, n->size - near, n->size, cost);
    cost->moved_bytes = cost->moved_bytes_largest * n->size;
}

/* The same, packed where paths are slow: what takes these paths goes first, in a stream that is packed and unpacked meanwhile. */
static void add_packed_steps(const struct cost_network *n, const hsort_rates *rates,
                             const struct shard_size *s, struct hsort_plan_exchange *cost)
{
    const bool staged = rates->link == HSORT_TRANSPORT_STAGED;
    const int others = n->size - 1;
    const struct moved_shard moved = cost_moved_packed(n, rates, s);
    const struct hsort_plan_crossing crossing =
        cost_crossing(n, s->key_bytes, s->total, HSORT_EXCHANGE_DIRECT);
    const double near = moved.near / rate(rates, HSORT_RATE_LINK),
                 far = moved.far / rate(rates, HSORT_RATE_NETWORK);
    // Two ranks of a node send to each other in one step, or on uneven nodes in two.
    const int ways = n->size % near_ranks(n) == 0 ? 1 : 2;
    const double stream = far + (staged ? near : 0),
                 packing = 4 * moved.packed / rate(rates, HSORT_RATE_MERGE);
    cost->seconds[HSORT_PHASE_EXCHANGE] +=
        larger(stream, packing) + rate(rates, HSORT_RATE_NETWORK_LATENCY) +
        (staged ? 0 : ways * (near + (near_ranks(n) - 1) * rate(rates, HSORT_RATE_LINK_LATENCY)));
    cost->messages += others;
    cost->moved_bytes_largest = cost_most_sent_packed(n, rates, s);
    cost->moved_bytes = cost_sent_packed(rates, s, others * s->shard_bytes, &crossing);
}

static void add_direct(const struct cost_network *n, const hsort_rates *rates, const struct shard_size *s,
                       struct hsort_plan_exchange *cost)
{
    const bool slow = n->size > n->ranks_per_node || rates->link == HSORT_TRANSPORT_STAGED;
    add_splitters(n, rates, s, cost);
    if (slow && cost_direct_packs(n, s))
        add_packed_steps(n, rates, s, cost);
    else
        add_plain_steps(n, rates, s, cost);
    add_merge(rates, s, n->size, cost);
    cost->messages_all = cost->messages * n->size;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

struct hsort_plan_exchange cost_exchange(const struct cost_network *network, const struct hsort_rates *rates,
                                         int key_bytes, int64_t total, hsort_exchange exchange)
{
    const struct shard_size s = shard_size_of(network->size, key_bytes, total);
    struct hsort_plan_exchange cost = {.messages = 0};
    const double sort = sort_rate(rates, key_bytes);
    const double copy = rate(rates, HSORT_RATE_HOST_COPY);
    if (total > 0) {
        cost.seconds[HSORT_PHASE_LOCAL_SORT] = (double)s.capacity / sort + rate(rates, HSORT_RATE_STEP);
        cost.seconds[HSORT_PHASE_H2D] = copy > 0 ? s.shard_bytes / copy : 0;
        cost.seconds[HSORT_PHASE_D2H] = cost.seconds[HSORT_PHASE_H2D];
    }
    if (exchange == HSORT_EXCHANGE_PARTITION && total > 0) {
        cost_add_partition(network, rates, &s, &cost);
    } else if (network->size > 1 && total > 0) {
        if (exchange == HSORT_EXCHANGE_DIRECT)
            add_direct(network, rates, &s, &cost);
        else
            add_bitonic(network, rates, &s, &cost);
    }
    cost.total_seconds = seconds_of_phases(&cost);
    return cost;
}

/* ---- rates --------------------------------------------------------------------------------------------- */

/* Round numbers: an H200 among others of its node, and some cores of a server. A message is one that MPI
 * sends inside a node. Zero: the host engine works where the caller's keys lie, nothing is copied. */
static const double defaults[2][HSORT_RATES] = {{[HSORT_RATE_SORT_4] = 75e9,
                                                 [HSORT_RATE_SORT_8] = 40e9,
                                                 [HSORT_RATE_MERGE] = 2.2e12,
                                                 [HSORT_RATE_HOST_COPY] = 50e9,
                                                 [HSORT_RATE_STEP] = 15e-6,
                                                 [HSORT_RATE_MESSAGE] = 1e-6,
                                                 [HSORT_RATE_LINK_LATENCY] = 20e-6,
                                                 [HSORT_RATE_LINK] = 365e9,
                                                 [HSORT_RATE_NETWORK_LATENCY] = 3e-6,
                                                 [HSORT_RATE_NETWORK] = 50e9},
                                                {[HSORT_RATE_SORT_4] = 100e6,
                                                 [HSORT_RATE_SORT_8] = 60e6,
                                                 [HSORT_RATE_MERGE] = 3e9,
                                                 [HSORT_RATE_STEP] = 1e-6,
                                                 [HSORT_RATE_MESSAGE] = 1e-6,
                                                 [HSORT_RATE_LINK_LATENCY] = 3e-6,
                                                 [HSORT_RATE_LINK] = 4e9,
                                                 [HSORT_RATE_NETWORK_LATENCY] = 5e-6,
                                                 [HSORT_RATE_NETWORK] = 10e9}};

static const double SHARED_BYTES_PER_SECOND = 40e9; // through pinned host memory that both ranks see
static const double STAGED_BYTES_PER_SECOND = 10e9; // through that of each, and MPI in between
static const double MPI_BYTES_PER_SECOND = 100e9;   // of device memory, by an MPI that knows the node

void cost_defaults(struct hsort_rates *rates, hsort_engine engine, hsort_transport link)
{
    *rates = (struct hsort_rates){.struct_size = sizeof *rates, .engine = engine, .link = link};
    memcpy(rates->value, defaults[engine == HSORT_ENGINE_HOST], sizeof defaults[0]);
    if (engine == HSORT_ENGINE_HOST || link == HSORT_TRANSPORT_IPC)
        return;
    rates->value[HSORT_RATE_LINK_LATENCY] = rates->value[HSORT_RATE_STEP];
    rates->value[HSORT_RATE_LINK] =
        link == HSORT_TRANSPORT_MPI ? MPI_BYTES_PER_SECOND : SHARED_BYTES_PER_SECOND;
    if (link == HSORT_TRANSPORT_STAGED)
        rates->value[HSORT_RATE_NETWORK] = STAGED_BYTES_PER_SECOND;
}

/* ---- two passes ----------------------------------------------------------------------------------------- */

struct hsort_plan_exchange cost_two_passes(const struct cost_network *network,
                                           const struct hsort_rates *rates, int key_bytes, int64_t total,
                                           int64_t runs)
{
    const struct shard_size s = shard_size_of(network->size, key_bytes, total);
    const double away = 1 - 1.0 / network->size, steps = (double)runs + 2,
                 share = s.shard_bytes / (double)runs;
    const double copy = rate(rates, HSORT_RATE_HOST_COPY), keys = (double)s.capacity / (double)runs;
    const int far_ranks = network->size - near_ranks(network);
    const double sort = keys / sort_rate(rates, key_bytes) + rate(rates, HSORT_RATE_STEP);
    const double step = larger(copy > 0 ? share / copy : 0, sort);
    // Pieces come from host memory, whatever GPUs have between them. On a node they are like own pieces, which the step includes.
    const double messages = share * far_ranks / network->size / rate(rates, HSORT_RATE_NETWORK);
    struct hsort_plan_exchange cost = {.moved_bytes_largest = s.shard_bytes * away,
                                       .moved_bytes = (double)total * key_bytes * away,
                                       .messages = (double)runs * (double)runs * far_ranks};
    cost.messages_all = cost.messages * network->size;
    cost.seconds[HSORT_PHASE_LOCAL_SORT] = steps * step;
    cost.seconds[HSORT_PHASE_MERGE] = steps * larger(step, messages);
    cost.total_seconds = cost.seconds[HSORT_PHASE_LOCAL_SORT] + cost.seconds[HSORT_PHASE_MERGE];
    return cost;
}

/* ---- two passes by way of the disk ---------------------------------------------------------------------- */

/* A rank's parts come in, are sorted and go out; the disk does one thing at a time, for all ranks:
 *
 *     the disk is slower     in 0 | in 1 | out 0 | in 2 | out 1 | ...           one sort is waited for
 *     the sort is slower     in 0 | sort 0 . . . | sort 1 . . . | ... | out     and one coming in and going out          */
static double disk_pass_seconds(double disk, double engine, double steps)
{
    const double of_disk = disk + engine, of_engine = steps * engine + disk / steps;
    return larger(of_disk, of_engine);
}

/* Bytes that are read to cut runs: fences, and two blocks of each run for each segment, but no block twice. */
static double bytes_of_cuts(const struct run_plan *plan, double all)
{
    const double parts = (double)plan->parts, step = (double)plan->fence_elements,
                 fences = (double)plan->elements / step * (double)plan->element_bytes,
                 blocks = parts * parts * 2 * step * (double)plan->element_bytes;
    return parts < 2 ? 0 : fences + (blocks < all ? blocks : all);
}

struct hsort_plan_exchange cost_disk_passes(const struct hsort_rates *rates, const struct cost_disk *disk,
                                            const struct run_plan *plan, int ranks, int code_bytes, bool moves)
{
    const double all = (double)plan->elements * (double)plan->element_bytes, keys = (double)plan->part_elements,
                 copy = rate(rates, HSORT_RATE_HOST_COPY), steps = ceil((double)plan->parts / ranks);
    const double part = keys * (double)plan->element_bytes;
    const double sort = keys / sort_rate(rates, code_bytes) + rate(rates, HSORT_RATE_STEP) +
                        (moves ? merge_seconds(rates, part) : 0);
    const double engine = larger(sort, copy > 0 ? part / copy : 0);
    const double pass = disk_pass_seconds(all / disk->read + all / disk->write, engine, steps);
    struct hsort_plan_exchange cost = {.messages = 0};
    cost.seconds[HSORT_PHASE_LOCAL_SORT] = cost.seconds[HSORT_PHASE_MERGE] = pass;
    cost.seconds[HSORT_PHASE_EXCHANGE] = bytes_of_cuts(plan, all) / disk->read;
    cost.total_seconds = 2 * pass + cost.seconds[HSORT_PHASE_EXCHANGE];
    return cost;
}

/* ---- keys that are counted ------------------------------------------------------------------------------ */

struct hsort_plan_exchange cost_counted(const struct cost_network *network, const struct hsort_rates *rates,
                                        int key_bytes, int64_t total)
{
    const struct shard_size s = shard_size_of(network->size, key_bytes, total);
    const double copy = rate(rates, HSORT_RATE_HOST_COPY), table = ldexp(sizeof(int64_t), 8 * key_bytes);
    const double pass = s.shard_bytes / rate(rates, HSORT_RATE_MERGE) + rate(rates, HSORT_RATE_STEP);
    const bool far = network->size > network->ranks_per_node;
    struct hsort_plan_exchange cost = {.messages = depth_of(network->size)};
    cost.messages_all = cost.messages * network->size;
    if (total > 0) {
        cost.seconds[HSORT_PHASE_H2D] = cost.seconds[HSORT_PHASE_D2H] = copy > 0 ? s.shard_bytes / copy : 0;
        cost.seconds[HSORT_PHASE_LOCAL_SORT] = cost.seconds[HSORT_PHASE_MERGE] = pass;
        if (network->size > 1) // the table is added up, and comes back
            cost.seconds[HSORT_PHASE_EXCHANGE] =
                collective_seconds(network, rates) +
                2 * table / rate(rates, far ? HSORT_RATE_NETWORK : HSORT_RATE_LINK);
    }
    cost.total_seconds = seconds_of_phases(&cost);
    return cost;
}
