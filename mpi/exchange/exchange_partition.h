/* What a plan asks of the exchange `partition`. */
#ifndef EXCHANGE_PARTITION_H
#define EXCHANGE_PARTITION_H

#include "mpi/exchange/exchange.h"

/* Ranks that can take part at most. */
enum { PARTITION_RANKS_MAX = 32 };

/* Keys that have room in the memory of a partition for ranks of at most `capacity` keys, beside the engine's
 * own workspace. Pure. */
int64_t partition_memory_keys(int64_t capacity);

#endif
