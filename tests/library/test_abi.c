/* What a program that is linked to the shared library relies on, as a list: sizes of public structs and the
 * numbers behind names. test_abi.sh compares it with tests/library/abi.txt. */
#include <stdio.h>
#include "hypersort.h"

/* X(name): structs, also those inside others */
#define STRUCTS(X)                                                                                         \
    X(hsort_rates)                                                                                         \
    X(hsort_plan_exchange) X(hsort_plan_crossing) X(hsort_plan_result) X(hsort_options)                    \
        X(hsort_check_result) X(hsort_path_stats) X(hsort_stats) X(hsort_rank_info) X(hsort_path_speed) X(hsort_field)

static void print_list(void)
{
#define X(name) printf("struct %s %zu\n", #name, sizeof(name));
    STRUCTS(X)
#undef X
#define X(name, exit_code, message) printf("status %s %d, exit code %d\n", #name, (int)name, exit_code);
    HSORT_STATUS_LIST(X)
#undef X
#define X(name, short_name, bytes) printf("type %s %d, %d bytes\n", #name, (int)name, bytes);
    HSORT_TYPE_LIST(X)
#undef X
#define X(name, ...) printf("value %s %d\n", #name, (int)name);
    HSORT_PHASE_LIST(X)
    HSORT_RATE_LIST(X)
#undef X
#define PRINT(name) printf("value %s %d\n", #name, (int)name)
    PRINT(HSORT_ASCENDING);
    PRINT(HSORT_DESCENDING);
    PRINT(HSORT_ENGINE_HOST);
    PRINT(HSORT_ENGINE_CUDA);
    PRINT(HSORT_EXCHANGE_BITONIC);
    PRINT(HSORT_EXCHANGE_DIRECT);
    PRINT(HSORT_EXCHANGE_PARTITION);
    PRINT(HSORT_TRANSPORT_STAGED);
    PRINT(HSORT_TRANSPORT_MPI);
    PRINT(HSORT_TRANSPORT_IPC);
    PRINT(HSORT_BINDING_NONE);
    PRINT(HSORT_RATE_GIVEN);
    PRINT(HSORT_PHASES_MAX);
    PRINT(HSORT_TRANSPORTS_MAX);
    PRINT(HSORT_RATES_MAX);
    PRINT(HSORT_FIELDS_MAX);
    PRINT(HSORT_KEY_BYTES_MAX);
#undef PRINT
}

int main(void)
{
    print_list();
    return 0;
}
