#include "src/library/plan_elements.h"
#include "mpi/exchange/batch_plan.h"
#include "src/library/cost_parts.h"
#include "src/library/element_order.h"
#include "src/library/element_pairs.h"

enum {
    WORD_BYTES = 8,
    POSITION_BYTES = 4,  /* on the way to another rank */
    REGION_BITS = 8,     /* of a key, which its region tells */
    WIDTH_BYTES = 4,     /* of a block of packed numbers: where it ends */
    LONGEST_GAP_BITS = 3 /* by which the largest difference of a block is longer than most */
};

static hsort_type type_of_codes(int bytes)
{
    return bytes == WORD_BYTES ? HSORT_U64 : HSORT_U128;
}

/* Keys of the rank that has most. */
static double keys_of_rank(const struct planned_elements *e, int ranks)
{
    return (double)shard_size_of(ranks, 1, e->count).capacity;
}

/* ---- which way ----------------------------------------------------------------------------------------- */

/* Do elements go with their keys as values that are sorted with them? */
static bool are_values(const struct planned_elements *e)
{
    return e->bare_keys && (e->carried_bytes == 4 || e->carried_bytes == 8);
}

static int sorted_key_bytes(const struct planned_elements *e)
{
    return e->bare_keys && e->key_bits <= 32 ? 4 : WORD_BYTES;
}

/* Bytes of a key and of what is beside it while it is sorted: a value, a position, or the place of a record among those of its
 * rank. */
static int pair_bytes(const struct planned_elements *e, int ranks)
{
    const int place = ranks > 1 && e->carried_bytes > 0 ? 4 : WORD_BYTES;
    return sorted_key_bytes(e) + (are_values(e) ? (int)e->carried_bytes : place);
}

/* Do elements go with their keys? They do on GPUs, as element_pairs.c decides for several ranks and element_order.c for one, if there
 * is memory for it. */
static bool go_with_keys(const hsort_rates *rates, int ranks, const struct planned_elements *e,
                         int code_bytes)
{
    const int64_t capacity = e->count / ranks + 1;
    const size_t bytes = WORD_BYTES + (e->carried_bytes > 0 ? e->carried_bytes : WORD_BYTES);
    if (rates->engine != HSORT_ENGINE_CUDA || e->key_bits > WORD_BITS)
        return false;
    if (ranks == 1)
        return are_values(e) || code_bytes > WORD_BYTES;
    return ranks <= PARTITION_RANKS_MAX && capacity >= PAIRS_BYTES_MIN / (int64_t)bytes &&
           (e->carried_bytes > 0 || code_bytes > WORD_BYTES);
}

/* ---- behind a sort of codes ---------------------------------------------------------------------------- */

/* Parts of a rank's shard that belong to other ranks, on its node and on other nodes. */
struct spread_shard {
    double near, far;
};

static struct spread_shard spread_of(int ranks, int ranks_per_node)
{
    const double near = (double)lesser(ranks_per_node, ranks);
    return (struct spread_shard){(near - 1) / ranks, (ranks - near) / ranks};
}

/* Add what it costs to carry a rank's elements of `bytes` to their places (mpi/exchange/element_gather.h): an index, the positions,
 * and the elements. A rank alone only takes the elements. */
static void add_carry(const hsort_rates *rates, int ranks, int ranks_per_node,
                      const struct planned_elements *e, double bytes, struct hsort_plan_exchange *cost)
{
    const struct spread_shard spread = spread_of(ranks, ranks_per_node);
    const double away = spread.near + spread.far, count = keys_of_rank(e, ranks);
    double seconds = merge_seconds(rates, count * bytes);
    if (ranks > 1) {
        const int bits = element_position_bits(e->count) + element_position_bits(e->count / ranks + 1);
        const double moved = count * (bytes + WORD_BYTES), index = count / rate(rates, HSORT_RATE_SORT_8);
        const double latency = rate(rates, spread.far > 0 ? HSORT_RATE_NETWORK_LATENCY : HSORT_RATE_LINK_LATENCY);
        const double sent = 2 * (count < ranks - 1 ? count : ranks - 1); // with few elements some ranks want none of some others
        seconds += index * (bits <= WORD_BITS ? 1 : 2) + merge_seconds(rates, count * bytes * away) +
                   moved * spread.near / rate(rates, HSORT_RATE_LINK) + moved * spread.far / rate(rates, HSORT_RATE_NETWORK) +
                   sent * latency;
        cost->messages += sent;
        cost->messages_all += sent * ranks;
        cost->moved_bytes_largest += moved * away;
        cost->moved_bytes += (double)e->count * (bytes + WORD_BYTES) * away;
    }
    cost->seconds[HSORT_PHASE_GATHER] += seconds;
}

/* How many passes make codes of keys, and positions of codes. For bare keys the sort of a GPU alone does both, and so does
 * `partition`; before another exchange the sort of the shards makes the codes. */
static int passes_beside(const hsort_rates *rates, int ranks, hsort_exchange exchange,
                         const struct planned_elements *e, int code_bytes)
{
    if (rates->engine != HSORT_ENGINE_CUDA || !e->bare_keys || code_bytes > WORD_BYTES)
        return 2;
    return ranks == 1 || exchange == HSORT_EXCHANGE_PARTITION ? 0 : 1;
}

/* The codes' sort, and what makes codes of keys, and positions of codes. Keys and positions that do not fit into one code are sorted
 * twice, and words are carried each time. */
static hsort_status plan_codes(const hsort_rates *rates, int ranks, int ranks_per_node,
                               const struct planned_elements *e, bool in_two_rounds,
                               struct elements_plan *plan)
{
    const double pass = keys_of_rank(e, ranks) * plan->sorted_bytes;
    hsort_plan_result codes = {.struct_size = sizeof codes};
    TRY(hsort_plan(rates, ranks, ranks_per_node, type_of_codes(plan->sorted_bytes), e->count, &codes));
    plan->exchange = codes.exchange;
    plan->cost = codes.exchange == HSORT_EXCHANGE_BITONIC  ? codes.bitonic
                 : codes.exchange == HSORT_EXCHANGE_DIRECT ? codes.direct
                                                           : codes.partition;
    plan->cost.seconds[HSORT_PHASE_LOCAL_SORT] +=
        passes_beside(rates, ranks, codes.exchange, e, plan->sorted_bytes) * merge_seconds(rates, pass);
    if (in_two_rounds) {
        for (int phase = 0; phase < HSORT_PHASES; phase++)
            plan->cost.seconds[phase] *= 2;
        plan->cost.moved_bytes_largest *= 2;
        plan->cost.moved_bytes *= 2;
        plan->cost.messages *= 2;
        plan->cost.messages_all *= 2;
        add_carry(rates, ranks, ranks_per_node, e, WORD_BYTES, &plan->cost);
        add_carry(rates, ranks, ranks_per_node, e, WORD_BYTES, &plan->cost);
    }
    if (e->carried_bytes > 0)
        add_carry(rates, ranks, ranks_per_node, e, (double)e->carried_bytes, &plan->cost);
    return HSORT_OK;
}

/* ---- with their keys ----------------------------------------------------------------------------------- */

/* Bytes that a key, and its position if nothing else goes with it, take where they are packed (mpi/exchange/column_messages.h): for a
 * key, what its region leaves open; for a position, the difference to the one before it in the region, which is about the number of
 * regions; and a share of what their blocks begin with. */
static double packed_bytes_of(int key_bytes, bool positions)
{
    const double key = key_bytes - REGION_BITS / 8.0 + (double)(key_bytes + WIDTH_BYTES) / ENGINE_PACK_KEYS;
    const double position =
        (REGION_BITS + LONGEST_GAP_BITS) / 8.0 + (double)(POSITION_BYTES + WIDTH_BYTES) / ENGINE_PACK_KEYS;
    return key + (positions ? position : 0);
}

static hsort_status plan_with_keys(const hsort_rates *rates, int ranks, int ranks_per_node,
                                   const struct planned_elements *e, struct elements_plan *plan)
{
    const bool positions = e->carried_bytes == 0;
    const int key_bytes = sorted_key_bytes(e);
    const double travel = positions ? POSITION_BYTES : (double)e->carried_bytes,
                 taken = are_values(e) ? 0 : (double)e->carried_bytes; // each from where it lies
    struct cost_network network;
    plan->with_keys = true;
    plan->sorted_bytes = pair_bytes(e, ranks);
    plan->exchange = ranks == 1 ? HSORT_EXCHANGE_BITONIC : HSORT_EXCHANGE_PARTITION;
    TRY(cost_network_count(ranks, ranks_per_node, &network));
    plan->cost = cost_pairs(&network, rates, plan->sorted_bytes, e->count, key_bytes + travel,
                            packed_bytes_of(key_bytes, positions) + (positions ? 0 : travel), taken);
    return HSORT_OK;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

hsort_status plan_elements(const hsort_rates *rates, int ranks, int ranks_per_node,
                           const struct planned_elements *e, struct elements_plan *plan)
{
    const int bits = e->key_bits + element_position_bits(e->count);
    const double copy = rate(rates, HSORT_RATE_HOST_COPY), count = keys_of_rank(e, ranks);
    *plan = (struct elements_plan){.sorted_bytes = element_code_bytes(bits)};
    if (e->count == 0)
        return HSORT_OK;
    TRY(go_with_keys(rates, ranks, e, plan->sorted_bytes)
            ? plan_with_keys(rates, ranks, ranks_per_node, e, plan)
            : plan_codes(rates, ranks, ranks_per_node, e, bits > ELEMENT_CODE_BITS, plan));
    for (int i = 0; i < 2; i++)
        if (e->gathered_bytes[i] > 0)
            add_carry(rates, ranks, ranks_per_node, e, (double)e->gathered_bytes[i], &plan->cost);
    plan->cost.seconds[HSORT_PHASE_H2D] = copy > 0 ? count * (double)e->in_bytes / copy : 0;
    plan->cost.seconds[HSORT_PHASE_D2H] = copy > 0 ? count * (double)e->out_bytes / copy : 0;
    plan->cost.total_seconds = seconds_of_phases(&plan->cost);
    return HSORT_OK;
}
