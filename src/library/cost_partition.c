/* What `partition` costs (cost.h). On one node that is a part of a local sort, then the rest of it or the link, whichever is slower.
 * Where chunks are packed, between nodes and by `staged`, the sort goes on while keys move, batch by batch
 * (mpi/exchange/batch_plan.h). So the sizes of batches count: an early batch is small, but takes as many calls as a late one. Time
 * runs downwards:
 *
 *     batch    network, or link    engine: sort it, pack and unpack its chunks
 *     0        ##                  ###            the engine is slower
 *     1        ###                 ####
 *     2        ########            #####          the network is
 *     ...                                         the last one is sorted when all has come
 *
 * The region across a boundary is fetched by both ranks. */
#include "src/library/cost_parts.h"
#include <math.h>
#include "kernels/engine.h"
#include "mpi/exchange/batch_plan.h"

enum {
    COLLECTIVES = 4,
    PAIR_OF_WORD = 8, // bytes of a key and what is beside it, which are sorted like a key of as many bytes
    PAIR_WIDE = 12, // larger pairs are sorted like a key of so many bytes. They lie in arrays of their own
    MESSAGES = 4,   // with each other rank: what it may read, and that it has
    STEPS = 20,     // of the engine that wait, or that are too short to count
    BATCH_STEPS = 9 // that a batch takes to be sorted, and its chunks to be packed and unpacked, besides what its bytes take
};
/* The part of a sort that this is: a count and one of two passes, with more digits than usual. */
static const double BEFORE_KEYS_MOVE = 3.0 / 8;
/* The largest of 256 gaps between uniform keys is 6.1 times an average gap, so it has log2(6.1) = 2.6 bits more; rounding up to whole bits
 * adds half a bit. */
static const double WIDEST_OF_BLOCK_BITS = 3.1;
/* The part of the shorter of a batch's two times that the longer does not hide: slots are few, and each waits for the other at times. */
static const double NOT_HIDDEN = 0.1;
/* The same for keys that take something along: elements are taken once their keys are in order. */
static const double PAIRS_NOT_HIDDEN = 1.0 / 3;

/* The part of a key's bytes that is sent where it is packed: the difference to the next of a rank's uniform keys, in as many bits as
 * the largest difference of a block takes, one at least, and a share of the head of a block. */
static double packed_share(const struct shard_size *s)
{
    const double bits = 8.0 * s->key_bytes, head = (double)(s->key_bytes + (int)sizeof(uint32_t)) / ENGINE_PACK_KEYS;
    const double packed = fmax(bits - log2((double)s->capacity) + WIDEST_OF_BLOCK_BITS, 1) / 8 + head;
    return packed < s->key_bytes ? packed / s->key_bytes : 1;
}

/* A region, as a part of a shard. */
static double region_share(const struct cost_network *n)
{
    return (double)n->size / ENGINE_REGIONS;
}

/* Keys that a rank fetches, as a part of those that it gets: both ranks fetch all of the region across their boundary. */
static double fetched_share(const struct cost_network *n)
{
    return 1 + region_share(n) * (n->size - 1) / n->size;
}

/* Ranks of the smallest node, which send most to other nodes; ranks fill one node after the other. */
static int fewest_of_node(const struct cost_network *n)
{
    const int each = near_ranks(n);
    return n->size % each != 0 ? n->size % each : each;
}

/* The part of a key's bytes that is sent to a rank of the same node. */
static double near_share(const hsort_rates *rates, const struct shard_size *s)
{
    return rates->link == HSORT_TRANSPORT_STAGED ? packed_share(s) : 1;
}

struct moved_shard cost_moved_packed(const struct cost_network *n, const hsort_rates *rates,
                                     const struct shard_size *s)
{
    const double each = s->shard_bytes / n->size, near = (near_ranks(n) - 1) * each,
                 far = (n->size - fewest_of_node(n)) * each;
    return (struct moved_shard){.near = near * near_share(rates, s),
                                .far = far * packed_share(s),
                                .packed = far + (rates->link == HSORT_TRANSPORT_STAGED ? near : 0)};
}

double cost_most_sent_packed(const struct cost_network *n, const hsort_rates *rates,
                             const struct shard_size *s)
{
    const int near = near_ranks(n);
    return ((near - 1) * near_share(rates, s) + (n->size - near) * packed_share(s)) * s->shard_bytes /
           n->size;
}

double cost_sent_packed(const hsort_rates *rates, const struct shard_size *s, double bytes,
                        const struct hsort_plan_crossing *crossing)
{
    return (bytes - crossing->plain_bytes) * near_share(rates, s) + crossing->bytes;
}

/* The link and the network: side by side if ranks of a node read each other's memory, else one message after the other. */
static double moving_seconds(const hsort_rates *rates, const struct moved_shard *moved)
{
    const double near = moved->near / rate(rates, HSORT_RATE_LINK), far = moved->far / rate(rates, HSORT_RATE_NETWORK);
    return rates->link == HSORT_TRANSPORT_IPC ? larger(near, far) : near + far;
}

/* Batch `number` as a part of a shard, of which `rest` is left: whole regions. Each has a piece of every rank, and a batch has at most
 * ENGINE_PIECES_MAX pieces. */
static double batch_share(const struct cost_network *n, const struct shard_size *s, int number, double rest)
{
    const double region = region_share(n), most = (double)batch_keys_at_most(n->size, s->capacity, number) / (double)s->capacity;
    double regions = floor(most / region);
    if (regions > ENGINE_PIECES_MAX / n->size)
        regions = ENGINE_PIECES_MAX / n->size;
    return regions <= 1 ? (rest < region ? rest : region) : regions * region < rest ? regions * region : rest;
}

/* A batch takes as long as the slower of network and engine, and a part of what the other takes. */
static double batch_seconds(double share, double moving, double engine, double calls)
{
    const double engine_seconds = share * engine + calls, moving_seconds_of = share * moving;
    const bool moves_longer = moving_seconds_of > engine_seconds;
    return moves_longer ? moving_seconds_of + NOT_HIDDEN * engine_seconds : engine_seconds + NOT_HIDDEN * moving_seconds_of;
}

/* All batches, if chunks are packed; sort: what is left of the sort. The last batch is the region across a boundary. */
static double batches_seconds(const struct cost_network *n, const hsort_rates *rates, const struct shard_size *s,
                              const struct moved_shard *moved, double sort, double sort_again)
{
    const double moving = moving_seconds(rates, moved),
                 engine = sort + sort_again + 4 * moved->packed / rate(rates, HSORT_RATE_MERGE),
                 calls = BATCH_STEPS * rate(rates, HSORT_RATE_STEP), last = region_share(n);
    double seconds = batch_seconds(last, moving, engine, calls) + last * sort, rest = fetched_share(n) - last;
    for (int number = 0; rest > 1e-9; number++) {
        const double share = batch_share(n, s, number, rest);
        seconds += batch_seconds(share, moving, engine, calls);
        rest -= share;
    }
    return seconds;
}

void cost_add_partition(const struct cost_network *n, const struct hsort_rates *rates, const struct shard_size *s,
                        struct hsort_plan_exchange *cost)
{
    const int others = n->size - 1;
    const double sort = cost->seconds[HSORT_PHASE_LOCAL_SORT], left = sort * (1 - BEFORE_KEYS_MOVE);
    const struct moved_shard moved = cost_moved_packed(n, rates, s);
    const bool far = n->size > n->ranks_per_node;
    const double short_ones = (double)COLLECTIVES * depth_of(n->size) + MESSAGES * others;
    const struct hsort_plan_crossing crossing = cost_crossing(n, s->key_bytes, s->total, HSORT_EXCHANGE_PARTITION);
    const double gaps = (double)batch_spare_keys(moved.packed > 0, s->capacity) /
                        (double)greater(s->capacity, 1),
                 fetched = fetched_share(n) * (1 + gaps);
    cost->seconds[HSORT_PHASE_LOCAL_SORT] = sort * BEFORE_KEYS_MOVE;
    cost->seconds[HSORT_PHASE_EXCHANGE] =
        (moved.packed > 0 ? batches_seconds(n, rates, s, &moved, left, sort * moved.packed / s->shard_bytes)
                          : larger(left, moving_seconds(rates, &moved) * fetched)) +
        short_ones * message_seconds(rates, far ? COST_FAR : COST_NEAR) +
        STEPS * rate(rates, HSORT_RATE_STEP);
    cost->messages = short_ones + others;
    cost->messages_all = cost->messages * n->size;
    cost->moved_bytes_largest = cost_most_sent_packed(n, rates, s) * fetched;
    cost->moved_bytes = cost_sent_packed(rates, s, others * s->shard_bytes * fetched, &crossing);
}

/* ---- keys that take something along --------------------------------------------------------------------- */

/* Between ranks that read each other's memory most of the shorter time hides behind the longer; messages come before all else. */
static double pairs_seconds(const hsort_rates *rates, const struct moved_shard *moved, double engine)
{
    const double moving = moving_seconds(rates, moved), both = moving + engine,
                 longer = larger(moving, engine);
    return moved->far > 0 || rates->link != HSORT_TRANSPORT_IPC ? both
                                                                : longer + (both - longer) * PAIRS_NOT_HIDDEN;
}

struct hsort_plan_exchange cost_pairs(const struct cost_network *n, const hsort_rates *rates, int pair_bytes,
                                      int64_t total, double moved_bytes, double packed_bytes,
                                      double taken_bytes)
{
    const struct shard_size s = shard_size_of(n->size, pair_bytes, total);
    const int near = near_ranks(n), others = n->size - 1;
    const double keys = (double)s.capacity, each_far = keys * packed_bytes / n->size,
                 each_near = rates->link == HSORT_TRANSPORT_STAGED ? each_far : keys * moved_bytes / n->size;
    const double sort = keys / sort_rate(rates, pair_bytes <= PAIR_OF_WORD ? PAIR_OF_WORD : PAIR_WIDE);
    const struct moved_shard moved = {.near = (near - 1) * each_near, .far = (n->size - near) * each_far};
    const double sent = moved.near + moved.far,
                 short_ones = (double)COLLECTIVES * depth_of(n->size) + MESSAGES * others;
    double engine = sort * (1 - BEFORE_KEYS_MOVE);
    struct hsort_plan_exchange cost = {.messages = short_ones + others,
                                       .messages_all = (short_ones + others) * n->size,
                                       .moved_bytes_largest = sent,
                                       .moved_bytes = sent * n->size};
    cost.seconds[HSORT_PHASE_LOCAL_SORT] = sort * (others > 0 ? BEFORE_KEYS_MOVE : 1) + rate(rates, HSORT_RATE_STEP);
    if (others == 0 && taken_bytes > 0)
        cost.seconds[HSORT_PHASE_GATHER] = merge_seconds(rates, keys * taken_bytes);
    if (others == 0)
        return cost;
    if (taken_bytes > 0) // elements that leave are put in order, and all are taken at the end
        engine += merge_seconds(rates, sent) + merge_seconds(rates, keys * taken_bytes);
    cost.seconds[HSORT_PHASE_EXCHANGE] =
        pairs_seconds(rates, &moved, engine) +
        short_ones * message_seconds(rates, moved.far > 0 ? COST_FAR : COST_NEAR) +
        STEPS * rate(rates, HSORT_RATE_STEP);
    return cost;
}

/* ---- between nodes -------------------------------------------------------------------------------------- */

/* Parts of a shard that all ranks together send to other nodes, if every rank sends as much to each: ranks fill nodes one after
 * the other, and the last node has the rest. */
static double spread_crossing(const struct cost_network *n)
{
    const double each = near_ranks(n), rest = fmod(n->size, each), ranks = n->size;
    return ((ranks - rest) * (ranks - each) + rest * (ranks - rest)) / ranks;
}

struct hsort_plan_crossing cost_crossing(const struct cost_network *network, int key_bytes, int64_t total,
                                         hsort_exchange exchange)
{
    const struct shard_size s = shard_size_of(network->size, key_bytes, total);
    double shards = 0;
    for (int i = 0; i < network->rounds && exchange == HSORT_EXCHANGE_BITONIC; i++)
        shards += network->round[i].crossed;
    if (exchange != HSORT_EXCHANGE_BITONIC)
        shards = spread_crossing(network) * (exchange == HSORT_EXCHANGE_PARTITION ? fetched_share(network) : 1);
    struct hsort_plan_crossing crossing = {.bytes = shards * s.shard_bytes, .plain_bytes = shards * s.shard_bytes};
    if (total > 0 && (exchange == HSORT_EXCHANGE_PARTITION ||
                      (exchange == HSORT_EXCHANGE_DIRECT && cost_direct_packs(network, &s))))
        crossing.bytes *= packed_share(&s);
    return crossing;
}
