/* What a plan asks of the exchange `partition`. */
#ifndef EXCHANGE_PARTITION_H
#define EXCHANGE_PARTITION_H

#include "mpi/exchange/exchange.h"

/* Keys that have room in the memory of a partition for `size` ranks of at most `capacity` keys, beside the engine's
 * own workspace. packs: chunks are packed on their way to some rank. Pure. */
int64_t partition_memory_keys(int size, bool packs, int64_t capacity);

#endif
