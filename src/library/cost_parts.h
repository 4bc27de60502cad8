/* What the parts of the model share: cost.c, and cost_partition.c. */
#ifndef COST_PARTS_H
#define COST_PARTS_H

#include <stdbool.h>
#include "kernels/base/lesser.h"
#include "src/library/cost.h"

struct shard_size {
    int key_bytes;
    int64_t total, capacity;
    double shard_bytes;
};

static inline struct shard_size shard_size_of(int size, int key_bytes, int64_t total)
{
    struct shard_size s = {.key_bytes = key_bytes, .total = total};
    s.capacity = divide_up(total, size);
    s.shard_bytes = (double)s.capacity * key_bytes;
    return s;
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

static inline double rate(const hsort_rates *rates, hsort_rate which)
{
    return rates->value[which];
}

/* Ranks of a whole node. */
static inline int near_ranks(const struct cost_network *n)
{
    return (int)lesser(n->ranks_per_node, n->size);
}

static inline double seconds_of_phases(const struct hsort_plan_exchange *cost)
{
    double seconds = 0;
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        seconds += cost->seconds[phase];
    return seconds;
}

/* Keys per second of a local sort. Keys of 16 bytes have no rate of their own: they pass through memory as often as keys of
 * 8, and are twice as wide. */
static inline double sort_rate(const hsort_rates *rates, int key_bytes)
{
    if (key_bytes == 4)
        return rate(rates, HSORT_RATE_SORT_4);
    return rate(rates, HSORT_RATE_SORT_8) * 8 / key_bytes;
}

/* The time in which one rank reads and writes `bytes` in a merge. */
static inline double merge_seconds(const hsort_rates *rates, double bytes)
{
    return 2 * bytes / rate(rates, HSORT_RATE_MERGE) + rate(rates, HSORT_RATE_STEP);
}

static inline double message_seconds(const hsort_rates *rates, enum cost_place place)
{
    return rate(rates, place == COST_NEAR ? HSORT_RATE_MESSAGE : HSORT_RATE_NETWORK_LATENCY);
}

/* What a rank sends of a shard that goes to all ranks in equal parts, packed on the paths that pack: over the link, what a rank of a
 * whole node sends; over the network, what a rank of the smallest node sends. */
struct moved_shard {
    double near, far; /* bytes, as they are sent */
    double packed;    /* of the keys that are packed, before they are */
};

struct moved_shard cost_moved_packed(const struct cost_network *network, const struct hsort_rates *rates,
                                     const struct shard_size *shard);

/* Bytes that the busiest rank sends then. It is on a whole node, so it has the most peers on its own node, which get the
 * most bytes. */
double cost_most_sent_packed(const struct cost_network *network, const struct hsort_rates *rates,
                             const struct shard_size *shard);

/* Bytes that all ranks send of `bytes` of keys, of which `crossing` go to other nodes. */
double cost_sent_packed(const struct hsort_rates *rates, const struct shard_size *shard, double bytes,
                        const struct hsort_plan_crossing *crossing);

/* Is what direct sends from rank to rank long enough to be packed? */
bool cost_direct_packs(const struct cost_network *network, const struct shard_size *shard);

/* Add what partition takes to a cost that has the local sort in it. */
void cost_add_partition(const struct cost_network *network, const struct hsort_rates *rates, const struct shard_size *shard,
                        struct hsort_plan_exchange *cost);

#endif
