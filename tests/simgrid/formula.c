/* What the library plans for such a sort (src/library/cost.h), given the rates of the simulated machine. */
#include <stdbool.h>
#include "hypersort.h"
#include "tests/simgrid/simulated.h"

enum { KEY_BYTES = 8 };

/* Of the simulated machine. */
static void modelled_rates(double *rates)
{
    for (int i = 0; i < HSORT_RATES; i++)
        rates[i] = 0; // no copy to and from the host
    rates[HSORT_RATE_SORT_4] = rates[HSORT_RATE_SORT_8] = modelled.sort_keys_per_s;
    rates[HSORT_RATE_MERGE] = 2 * KEY_BYTES * modelled.merge_keys_per_s;
    rates[HSORT_RATE_STEP] = modelled.call_s;
    rates[HSORT_RATE_MESSAGE] = rates[HSORT_RATE_LINK_LATENCY] = modelled.nvlink_s;
    rates[HSORT_RATE_LINK] = modelled.nvlink_bytes_per_s;
    rates[HSORT_RATE_NETWORK_LATENCY] = modelled.network_s;
    rates[HSORT_RATE_NETWORK] = modelled.network_bytes_per_s;
}

/* Ranks of a node map each other's memory where they partition, as on GPUs; the other exchanges are simulated with messages
 * alone. */
int formula_of(int ranks, int exchange, int64_t keys, struct formula *formula)
{
    const bool partitions = exchange == HSORT_EXCHANGE_PARTITION;
    hsort_rates rates;
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_status status = hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST,
                                           partitions ? HSORT_TRANSPORT_IPC : HSORT_TRANSPORT_MPI);
    modelled_rates(rates.value);
    if (status == HSORT_OK)
        status = hsort_plan(&rates, ranks, modelled.per_node, HSORT_U64, keys * ranks, &plan);
    const hsort_plan_exchange *cost = partitions                          ? &plan.partition
                                      : exchange == HSORT_EXCHANGE_BITONIC ? &plan.bitonic
                                                                           : &plan.direct;
    const hsort_plan_crossing *crossing = partitions                          ? &plan.partition_crossing
                                          : exchange == HSORT_EXCHANGE_BITONIC ? &plan.bitonic_crossing
                                                                               : &plan.direct_crossing;
    *formula = (struct formula){.moved = cost->moved_bytes / ((double)keys * ranks * KEY_BYTES),
                                .messages = cost->messages,
                                .crossed_key_bytes =
                                    crossing->plain_bytes > 0 ? crossing->bytes / crossing->plain_bytes * KEY_BYTES : 0,
                                .exchange_s = cost->seconds[HSORT_PHASE_EXCHANGE],
                                .merge_s = cost->seconds[HSORT_PHASE_MERGE],
                                .sort_s = cost->seconds[HSORT_PHASE_LOCAL_SORT]};
    return status == HSORT_OK;
}
