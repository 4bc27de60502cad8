/* What mpi/README.md says that an exchange costs, without sending a message: keys are counted along the schedule, and each
 * round takes as long as its slowest pair. The simulation has no such rounds: a rank goes on when its own partner lets it. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "hypercube.h"
#include "simulated.h"

enum { GRAINS = 256, KEY_BYTES = 8, PROBES = 255, GATHER_SEARCH = 2 };

static double link_seconds(int a, int b, double bytes)
{
    return a / modelled.per_node == b / modelled.per_node
               ? modelled.nvlink_s + bytes / modelled.nvlink_bytes_per_s
               : modelled.network_s + bytes / modelled.network_bytes_per_s;
}

/* Compare-split of two sorted shards of GRAINS each; returns how many change sides. */
static int split(int *low, int *high)
{
    int merged[2 * GRAINS], a = 0, b = 0, kept = 0;
    while (kept < GRAINS && low[kept] <= high[GRAINS - 1 - kept])
        kept++;
    for (int i = 0; i < 2 * GRAINS; i++)
        merged[i] = b == GRAINS || (a < GRAINS && low[a] <= high[b]) ? low[a++] : high[b++];
    memcpy(low, merged, GRAINS * sizeof *low);
    memcpy(high, merged + GRAINS, GRAINS * sizeof *high);
    return GRAINS - kept;
}

/* What a pair does in a round. */
struct pair {
    double share, exchange_s, merge_s;
};

/* Runs in order, and in reverse, need no probes and no merge. */
static struct pair meet(int a, int b, int moved, int64_t keys)
{
    struct pair pair = {.share = (double)moved / GRAINS};
    const bool overlap = moved > 0 && moved < GRAINS;
    pair.exchange_s = link_seconds(a, b, 0) + modelled.call_s;
    for (double interval = (double)keys; overlap && interval >= 1; interval /= PROBES + 1)
        pair.exchange_s += link_seconds(a, b, PROBES * KEY_BYTES) + modelled.call_s;
    if (moved > 0)
        pair.exchange_s += link_seconds(a, b, pair.share * (double)keys * KEY_BYTES);
    pair.merge_s = overlap ? (double)keys / modelled.merge_keys_per_s + modelled.call_s : 0;
    return pair;
}

static struct formula bitonic(int ranks, int64_t keys)
{
    struct formula f = {0};
    int(*shard)[GRAINS] = malloc((size_t)ranks * sizeof *shard);
    if (!shard)
        return f;
    // Every shard holds evenly spread keys, none of them equal; which rank is the lower by a hair is as good as random.
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < GRAINS; i++)
            shard[rank][i] =
                i * ranks + (int)((rank * UINT64_C(2654435761) + (uint64_t)i * 40503) % (uint64_t)ranks);
    for (int round = 0; round < hypercube_rounds(ranks); round++) {
        struct pair slowest = {0};
        double largest = 0;
        for (int rank = 0; rank < ranks; rank++) {
            const int partner = hypercube_partner(rank, ranks, round);
            if (partner < rank)
                continue;
            const struct pair pair = meet(rank, partner, split(shard[rank], shard[partner]), keys);
            f.moved += 2 * pair.share / ranks;
            largest = pair.share > largest ? pair.share : largest;
            slowest = pair.exchange_s + pair.merge_s > slowest.exchange_s + slowest.merge_s ? pair : slowest;
        }
        f.key_messages++;
        f.critical += largest;
        f.exchange_s += slowest.exchange_s;
        f.merge_s += slowest.merge_s;
    }
    free(shard);
    return f;
}

static struct formula direct(int ranks, int64_t keys)
{
    const double depth = ceil(log2(ranks)), piece = (double)keys * KEY_BYTES / ranks;
    struct formula f = {.moved = 1 - 1.0 / ranks, .critical = 1 - 1.0 / ranks, .key_messages = ranks - 1};
    // Splitters: an interval shrinks by the offers of a round, of which there are some thousands.
    const double rounds = 1 + ceil(log2((double)keys * ranks) / 12);
    const double step = link_seconds(0, ranks - 1, 0);
    f.exchange_s = rounds * (3 * depth * step + GATHER_SEARCH * modelled.call_s) + 4 * depth * step;
    // In a shift by less than a node only some leave it, but they hold up the others.
    for (int shift = 1; shift < ranks; shift++)
        f.exchange_s += link_seconds(0, ranks > modelled.per_node ? modelled.per_node : shift, piece);
    f.merge_s = depth * ((double)keys / modelled.merge_keys_per_s + modelled.call_s);
    return f;
}

struct formula formula_of(int ranks, int is_bitonic, int64_t keys)
{
    struct formula f = is_bitonic ? bitonic(ranks, keys) : direct(ranks, keys);
    f.sort_s = (double)keys / modelled.sort_keys_per_s + modelled.call_s;
    return f;
}
