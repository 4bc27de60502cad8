/* The model behind hsort_plan(): seconds per phase, messages and bytes of each exchange, for any number of
 * ranks and keys, from a table of rates (hsort_rates: given, or defaults). Pure functions without MPI. No
 * sort asks it for anything.
 *
 * Keys are taken to be uniform random and spread evenly, ranks to fill one node after the other.
 * mpi/README.md derives it. */
#ifndef COST_H
#define COST_H

#include <stdbool.h>
#include <stdint.h>
#include "hypersort.h"
#include "kernels/base/status.h"

/* Where a partner is. */
enum cost_place { COST_NEAR /* on the same node */, COST_FAR, COST_PLACES };

enum { COST_ROUNDS_MAX = 31 * 32 / 2 };

/* One round of the hypercube. A share is a part of a shard. */
struct cost_round {
    float share[COST_PLACES]; /* the most that a rank sends to a partner there; -1: no rank has one there */
    int pairs[COST_PLACES], overlapping[COST_PLACES]; /* there; of them, those whose runs overlap */
    bool probing[COST_PLACES];      /* enough pairs overlap: the cut is probed for, and they merge */
    int paired, searching, sending; /* ranks that have a partner; that probe with it; that send it keys */
    double moved, crossed;          /* shards that all ranks send; of them, to other nodes */
};

/* What the network does, whatever the number of keys. */
struct cost_network {
    int size, ranks_per_node, rounds;
    struct cost_round round[COST_ROUNDS_MAX];
    double largest; /* shards that one rank sends in all rounds, at most */
};

/* Count what the network does. Up to COST_COUNTED_MAX ranks sort a few dozen keys each; for more ranks there is a formula.
 *   size            ranks, 1 .. 2^30
 *   ranks_per_node  at least 1
 * Errors   HSORT_HOST_MEMORY. */
enum { COST_COUNTED_MAX = 1024 };
hsort_status cost_network_count(int size, int ranks_per_node, struct cost_network *network);

/* What one exchange costs, and the phases around it. total: keys, 0 .. 2^62. */
struct hsort_plan_exchange cost_exchange(const struct cost_network *network, const struct hsort_rates *rates,
                                         int key_bytes, int64_t total, hsort_exchange exchange);

/* What a sort of keys that take something along costs, without copies to and from the engine; with several ranks, by the exchange
 * `partition` (mpi/exchange/pair_partition.h).
 *   pair_bytes   of a key and what is beside it while it is sorted
 *   moved_bytes  of a key and what goes to another rank with it
 *   packed_bytes  the same where the path is slow
 *   taken_bytes  of what is not sorted with its key, but taken at the end; or 0 */
struct hsort_plan_exchange cost_pairs(const struct cost_network *network, const struct hsort_rates *rates,
                                      int pair_bytes, int64_t total, double moved_bytes, double packed_bytes,
                                      double taken_bytes);

/* What an exchange sends from one node to another; for AUTO, what two passes send. */
struct hsort_plan_crossing cost_crossing(const struct cost_network *network, int key_bytes, int64_t total,
                                         hsort_exchange exchange);

/* What two passes cost through slots that each hold one of a rank's `runs` runs. Keys cross the link twice, in both directions
 * at once except in the steps at either end; meanwhile keys of other ranks come over the network. */
struct hsort_plan_exchange cost_two_passes(const struct cost_network *network, const struct hsort_rates *rates,
                                           int key_bytes, int64_t total, int64_t runs);

/* Bytes per second of a disk, or a file system, that all ranks share: when it only reads, and when it only writes. */
struct cost_disk {
    double read, write;
};

/* What two passes by way of such a disk cost, in the parts of `plan`.
 *   code_bytes  of what is sorted: the keys, or codes of the elements
 *   moves       elements are sorted, and are brought into the order of their codes */
struct run_plan;
struct hsort_plan_exchange cost_disk_passes(const struct hsort_rates *rates, const struct cost_disk *disk,
                                            const struct run_plan *plan, int ranks, int code_bytes, bool moves);

/* What a sort of keys of 1 and 2 bytes costs: a pass that reads them, a table that all ranks add up, a pass that writes them. */
struct hsort_plan_exchange cost_counted(const struct cost_network *network, const struct hsort_rates *rates, int key_bytes,
                                        int64_t total);

/* The default rates: see hsort_rates_init(). engine and link are never AUTO. */
void cost_defaults(struct hsort_rates *rates, hsort_engine engine, hsort_transport link);

#endif
