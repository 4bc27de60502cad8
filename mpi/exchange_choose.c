/* Which exchange is the cheaper one: seconds that the slowest rank spends, as a sum of messages and bytes.
 *
 *     bitonic   L (L + 1) / 2 rounds for 2^L ranks; in each a rank waits for some messages and sends half its keys
 *     direct    a few collective steps of L messages each, P - 1 messages, and every key sent once
 *
 *     ranks, keys       messages    shards sent     so for 8-byte keys
 *     8                 36, 25      3.0, 0.9        direct at any size
 *     1024              330, 1083   27.5, 1.0       direct from some 355 thousand keys per rank on
 *
 * Messages count by their latency, bytes by the bandwidth of one rank. Both are round numbers for GPUs in a cluster: a
 * model measured at start-up will replace them. Two ranks swap what each lacks in one round either way, and the
 * network's single cut is found with fewer messages. */
#include "exchange.h"
#include "hypercube.h"

static const double LATENCY_SECONDS = 10e-6; /* from sending a short message to its being received */
static const double BYTES_PER_SECOND = 10e9; /* that a rank sends while it receives as many */
static const double MESSAGES_PER_ROUND = 6;  /* of a compare-split: greeting, probes, swap */
static const double COLLECTIVES_OF_DIRECT =
    6; /* splitters, ties, counts; those of large tables run in pieces */

hsort_exchange exchange_choose(int size, int key_bytes, int64_t block)
{
    if (size <= 2)
        return HSORT_EXCHANGE_BITONIC;
    int depth = 0;
    while (depth < 31 && INT64_C(1) << depth < size)
        depth++;
    const double shard_seconds = (double)block * key_bytes / BYTES_PER_SECOND;
    const double rounds = hypercube_rounds(size);
    const double bitonic = rounds * (MESSAGES_PER_ROUND * LATENCY_SECONDS + shard_seconds / 2);
    const double direct = (COLLECTIVES_OF_DIRECT * depth + size - 1) * LATENCY_SECONDS + shard_seconds;
    return direct < bitonic ? HSORT_EXCHANGE_DIRECT : HSORT_EXCHANGE_BITONIC;
}
