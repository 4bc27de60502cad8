/* What the library plans for such a sort (src/library/cost.h), given the rates of the simulated machine. */
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

int formula_of(int ranks, int is_bitonic, int64_t keys, struct formula *formula)
{
    hsort_rates rates;
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_status status = hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI);
    modelled_rates(rates.value);
    if (status == HSORT_OK)
        status = hsort_plan(&rates, ranks, modelled.per_node, HSORT_U64, keys * ranks, &plan);
    const hsort_plan_exchange *cost = is_bitonic ? &plan.bitonic : &plan.direct;
    *formula = (struct formula){.moved = cost->moved_bytes / ((double)keys * ranks * KEY_BYTES),
                                .messages = cost->messages,
                                .exchange_s = cost->seconds[HSORT_PHASE_EXCHANGE],
                                .merge_s = cost->seconds[HSORT_PHASE_MERGE],
                                .sort_s = cost->seconds[HSORT_PHASE_LOCAL_SORT]};
    return status == HSORT_OK;
}
