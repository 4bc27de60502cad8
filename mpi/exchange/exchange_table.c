/* The table of exchanges, and the plain rule by which AUTO takes one of them.
 *
 * The rule measures nothing, so it costs nothing when a context is made, and is the same on every rank and in every run. mpi/README.md
 * compares it with the cost model. */
#include "mpi/exchange/exchange.h"

_Static_assert(EXCHANGES == HSORT_EXCHANGES - 1, "all exchanges of the public list but AUTO have an entry");

const struct exchange_ops *const exchange_table[EXCHANGES] = {&exchange_partition, &exchange_direct,
                                                              &exchange_bitonic};

const struct exchange_ops *exchange_choose(hsort_exchange wanted, enum exchange_input input, unsigned usable,
                                           hsort_engine engine, int size, bool packs, int64_t keys,
                                           int key_bytes)
{
    const struct exchange_ops *pays = NULL;
    for (int i = 0; i < EXCHANGES; i++) {
        const struct exchange_ops *ops = exchange_table[i];
        if (ops->input != input || !(usable >> ops->kind & 1))
            continue;
        if (ops->kind == wanted)
            return ops;
        if (!pays && (!ops->pays || ops->pays(engine, size, packs, keys, key_bytes)))
            pays = ops;
    }
    return input == EXCHANGE_TAKES_RAW && wanted != HSORT_EXCHANGE_AUTO ? NULL : pays;
}
