/* What a sort would cost: the public functions, which check their arguments and ask the model of cost.h. They need no context. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "mpi/exchange/exchange.h"
#include "mpi/exchange/batch_plan.h"
#include "mpi/exchange/column_messages.h"
#include "src/library/context_memory.h"
#include "src/library/cost.h"
#include "src/library/narrow_counts.h"
#include "src/library/pass_plan.h"
#include "src/library/struct_size.h"

/* Workspace of the local sort on a GPU, as a fraction of the keys: scratch for an eighth of them, extents and tables. The sort takes more
 * scratch if that is at most a 64th of the GPU's memory; the plan leaves this out. */
static const double WORKSPACE_FRACTION = 0.3;
enum { RANKS_MAX = 1 << 30 };

hsort_status hsort_rates_init(hsort_rates *rates, size_t struct_size, hsort_engine engine,
                              hsort_transport link)
{
    if (!rates || !STRUCT_SIZE_IS_KNOWN(hsort_rates, struct_size) || !hsort_engine_name(engine) ||
        !hsort_transport_name(link))
        return HSORT_ARGUMENT;
    if (engine == HSORT_ENGINE_AUTO)
        engine = HSORT_ENGINE_CUDA;
    if (link == HSORT_TRANSPORT_AUTO)
        link = engine == HSORT_ENGINE_CUDA ? HSORT_TRANSPORT_IPC : HSORT_TRANSPORT_MPI;
    hsort_rates defaults;
    cost_defaults(&defaults, engine, link);
    rates->struct_size = struct_size;
    struct_size_copy(rates, &defaults);
    return HSORT_OK;
}

static bool are_usable(const hsort_rates *rates)
{
    if (rates->engine <= HSORT_ENGINE_AUTO || rates->engine >= HSORT_ENGINES ||
        rates->link <= HSORT_TRANSPORT_AUTO || rates->link >= HSORT_TRANSPORTS)
        return false;
    for (int i = 0; i < HSORT_RATES; i++)
        if (!isfinite(rates->value[i]) || rates->value[i] < 0 ||
            (rates->value[i] == 0 && i != HSORT_RATE_HOST_COPY))
            return false;
    return isfinite(rates->engine_bytes) && rates->engine_bytes >= 0;
}

/* Can so many ranks partition their shards? */
static bool partition_is_possible(int ranks)
{
    return ranks > 1 && ranks <= PARTITION_RANKS_MAX;
}

/* The exchange that AUTO takes. partitions: it may take partition. */
static hsort_exchange auto_exchange(const hsort_rates *rates, int ranks, bool packs,
                                    const hsort_plan_result *plan, int key_bytes, bool partitions)
{
    const unsigned usable = 1u << HSORT_EXCHANGE_BITONIC | 1u << HSORT_EXCHANGE_DIRECT |
                            (partitions ? 1u << HSORT_EXCHANGE_PARTITION : 0);
    const struct exchange_ops *ops =
        exchange_choose(HSORT_EXCHANGE_AUTO, EXCHANGE_TAKES_RAW, usable, rates->engine, ranks, packs,
                        plan->shard_capacity, key_bytes);
    if (!ops)
        ops = exchange_choose(HSORT_EXCHANGE_AUTO, EXCHANGE_TAKES_SORTED, usable, rates->engine, ranks, packs,
                              plan->shard_capacity, key_bytes);
    return ops->kind;
}

/* For planned_workspace(). */
struct planned_slot {
    double fraction; /* of the keys' bytes: the workspace of a GPU */
    int key_bytes;
    struct engine *host; /* says its own workspace; NULL: a GPU is planned for */
};

/* A pass_workspace_fn. */
static hsort_status planned_workspace(void *planned_slot, int64_t keys, size_t *bytes)
{
    const struct planned_slot *slot = planned_slot;
    if (slot->host)
        return slot->host->ops->sort_workspace(slot->host, -1, slot->key_bytes, keys, keys, bytes);
    *bytes = (size_t)(slot->fraction * slot->key_bytes * (double)keys);
    return HSORT_OK;
}

/* *least = engine memory without which one pass is not enough. A rank alone needs its keys, and scratch and workspace for a 64th of them. */
static hsort_status find_least(const struct cost_network *network, const struct planned_slot *slot,
                               const hsort_plan_result *plan, double *least)
{
    const int64_t keys = plan->shard_capacity, scratch = network->size > 1 ? keys : divide_up(keys, 64);
    size_t workspace = 0;
    if (slot->host && keys > 0)
        TRY(slot->host->ops->sort_workspace(slot->host, -1, slot->key_bytes, keys, scratch, &workspace));
    *least = (network->size > 1 ? plan->engine_bytes : plan->shard_bytes * (1 + (1 + slot->fraction) / 64)) +
             (double)workspace;
    return HSORT_OK;
}

/* Plan two passes if one takes more engine memory than the rates say there is. */
static hsort_status plan_passes_of(const hsort_rates *rates, const struct cost_network *network,
                                   int64_t count, struct planned_slot *slot, hsort_plan_result *plan)
{
    const int64_t most = plan->shard_capacity > 0 ? plan->shard_capacity : 1;
    const size_t limit = rates->engine_bytes < 9e18 ? (size_t)rates->engine_bytes : (size_t)9e18;
    const int key_bytes = slot->key_bytes;
    int64_t elements;
    size_t bytes;
    double least;
    TRY(find_least(network, slot, plan, &least));
    if (least <= rates->engine_bytes) {
        // A rank alone works with less scratch, and takes as much as there is room for.
        plan->engine_bytes = fmin(plan->engine_bytes, rates->engine_bytes);
        return HSORT_OK;
    }
    TRY(pass_slot_find(most, (size_t)key_bytes, usable_bytes(limit), planned_workspace, slot, &elements,
                       &bytes));
    plan->passes = elements > 0 ? 2 : 0;
    plan->engine_bytes = (double)(elements > 0 ? bytes : free_bytes_for(bytes));
    if (elements == 0)
        return HSORT_OK;
    plan->runs = plan->segments = divide_up(plan->shard_capacity, elements);
    const int64_t runs = plan->runs, all = runs * network->size;
    plan->host_bytes =
        plan->shard_bytes + (double)pass_bytes_beside_runs(network->size, runs, runs, all, all,
                                                           pass_slot_bytes(elements, (size_t)key_bytes));
    plan->two_passes = cost_two_passes(network, rates, key_bytes, count, plan->runs);
    plan->two_passes_crossing = cost_crossing(network, key_bytes, count, HSORT_EXCHANGE_AUTO);
    return HSORT_OK;
}

/* The same, if the rates say how much there is. The host engine's workspace grows with its threads: as many as a rank gets here, unless it
 * asks for others. */
static hsort_status plan_passes(const hsort_rates *rates, const struct cost_network *network, int64_t count,
                                int key_bytes, double fraction, hsort_plan_result *plan)
{
    struct planned_slot slot = {fraction, key_bytes, NULL};
    const int64_t threads = omp_get_num_procs() / lesser(network->size, network->ranks_per_node);
    plan->passes = 1;
    if (rates->engine_bytes == 0)
        return HSORT_OK;
    if (rates->engine == HSORT_ENGINE_HOST)
        TRY(engine_open_host((int)greater(1, threads), 0, &slot.host));
    const hsort_status status = plan_passes_of(rates, network, count, &slot, plan);
    if (slot.host)
        slot.host->ops->close(slot.host);
    return status;
}

/* Plan for keys that are counted: a table in engine memory, and a piece of the keys, which is smaller if there is little memory. */
static void plan_counted(const hsort_rates *rates, const struct cost_network *network, int64_t count,
                         int key_bytes, hsort_plan_result *plan)
{
    const double table = (double)narrow_table_bytes(key_bytes), limit = rates->engine_bytes;
    const bool copies = rates->engine == HSORT_ENGINE_CUDA || limit > 0;
    const double piece = plan->shard_bytes < STREAM_PART_BYTES ? plan->shard_bytes : STREAM_PART_BYTES;
    plan->exchange = HSORT_EXCHANGE_AUTO;
    plan->passes = limit > 0 && table > limit ? 0 : 1;
    plan->engine_bytes = table + (copies ? piece : 0);
    if (limit > 0 && plan->engine_bytes > limit)
        plan->engine_bytes = plan->passes == 0 ? table : limit;
    plan->counted = cost_counted(network, rates, key_bytes, count);
}

/* Bytes that the planned exchange takes beside keys, scratch and workspace. */
static double exchange_memory(const hsort_plan_result *plan, int ranks, bool packs, int key_bytes)
{
    if (plan->exchange == HSORT_EXCHANGE_PARTITION)
        return (double)partition_memory_keys(ranks, packs, plan->shard_capacity) * key_bytes;
    return plan->exchange == HSORT_EXCHANGE_DIRECT && packs
               ? (double)column_slots_bytes((size_t)fmin(plan->shard_bytes / ranks, TRANSPORT_CHUNK_DEFAULT),
                                            TRANSPORT_CHUNK_DEFAULT)
               : 0;
}

/* Choose the exchange, and the engine memory of the sort. If there is room for the other exchanges but not for partition, one of the
 * others runs. If there is no room for what direct packs in, it does not pack; if there is none for gaps behind regions, partition leaves
 * none. */
static void plan_exchange(const hsort_rates *rates, int ranks, bool packs, int key_bytes, double fraction,
                          hsort_plan_result *plan)
{
    const double limit = rates->engine_bytes, others = (2 + fraction) * plan->shard_bytes;
    const bool limited = limit > 0 && others <= limit;
    plan->exchange = auto_exchange(rates, ranks, packs, plan, key_bytes, plan->can_partition);
    if (limited && others + exchange_memory(plan, ranks, packs, key_bytes) > limit)
        plan->exchange = auto_exchange(rates, ranks, packs, plan, key_bytes, false);
    const double all = others + exchange_memory(plan, ranks, packs, key_bytes);
    const double gaps = plan->exchange == HSORT_EXCHANGE_PARTITION
                            ? (double)batch_spare_keys(packs, plan->shard_capacity) * key_bytes
                            : 0;
    plan->engine_bytes = limited && all > limit ? others : limited && all + gaps > limit ? all : all + gaps;
}

/* The plan for arguments that have been checked. */
static hsort_status make_plan(const hsort_rates *rates, int ranks, int ranks_per_node, int key_bytes,
                              int64_t count, hsort_plan_result *plan)
{
    struct cost_network network;
    TRY(cost_network_count(ranks, ranks_per_node, &network));
    *plan = (hsort_plan_result){.shard_capacity = divide_up(count, ranks)};
    plan->shard_bytes = plan->caller_bytes = (double)plan->shard_capacity * key_bytes;
    if (KEY_IS_COUNTED(key_bytes)) {
        plan_counted(rates, &network, count, key_bytes, plan);
        return HSORT_OK;
    }
    plan->bitonic = cost_exchange(&network, rates, key_bytes, count, HSORT_EXCHANGE_BITONIC);
    plan->direct = cost_exchange(&network, rates, key_bytes, count, HSORT_EXCHANGE_DIRECT);
    plan->can_partition = partition_is_possible(ranks);
    plan->bitonic_crossing = cost_crossing(&network, key_bytes, count, HSORT_EXCHANGE_BITONIC);
    plan->direct_crossing = cost_crossing(&network, key_bytes, count, HSORT_EXCHANGE_DIRECT);
    if (plan->can_partition) {
        plan->partition = cost_exchange(&network, rates, key_bytes, count, HSORT_EXCHANGE_PARTITION);
        plan->partition_crossing = cost_crossing(&network, key_bytes, count, HSORT_EXCHANGE_PARTITION);
    }
    const double fraction = rates->engine == HSORT_ENGINE_HOST ? 0 : WORKSPACE_FRACTION;
    const bool packs = ranks > ranks_per_node || rates->link == HSORT_TRANSPORT_STAGED;
    plan_exchange(rates, ranks, packs, key_bytes, fraction, plan);
    return plan_passes(rates, &network, count, key_bytes, fraction, plan);
}

hsort_status hsort_plan(const hsort_rates *rates, int ranks, int ranks_per_node, hsort_type type,
                        int64_t count, hsort_plan_result *plan)
{
    const int key_bytes = (int)hsort_type_bytes(type);
    if (!rates || !STRUCT_SIZE_IS_KNOWN(hsort_rates, rates->struct_size) || !plan ||
        !STRUCT_SIZE_IS_KNOWN(hsort_plan_result, plan->struct_size) || ranks < 1 || ranks > RANKS_MAX ||
        ranks_per_node < 1 || key_bytes == 0 || count < 0 || count > INT64_C(1) << 62)
        return HSORT_ARGUMENT;
    hsort_rates own = {0};
    hsort_plan_result made;
    memcpy(&own, rates, rates->struct_size);
    if (!are_usable(&own))
        return HSORT_ARGUMENT;
    TRY(make_plan(&own, ranks, ranks_per_node, key_bytes, count, &made));
    struct_size_copy(plan, &made);
    return HSORT_OK;
}
