/* The step from sorted shards to a sorted whole. One strategy per file: exchange_bitonic and exchange_direct; and
 * exchange_partition, which makes the step before the shards are sorted, with exchange_counted for keys of few values. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdint.h>
#include "mpi/comm/comm.h"
#include "kernels/engine.h"
#include "mpi/transport/transport.h"

/* Tables of exchange_direct(): made before a sort, so that it lacks no memory once keys have moved. */
struct direct;

/* Make the tables for `size` ranks; *direct is NULL after an error. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status direct_open(int size, struct direct **direct);

/* Let exchange_direct() know which ranks share a node, and what messages cost. Without it, all ranks are alike to it.
 *   rates  borrowed; the same numbers on every rank whenever exchange_direct() is called                  Collective.
 * Errors   same on every rank: HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status direct_find_nodes(struct direct *direct, struct comm *comm, const struct hsort_rates *rates);

void direct_close(struct direct *direct); /* NULL is fine; collective after direct_find_nodes() */

/* How exchange_direct() moves keys: STRAIGHT, from rank to rank, or over RAILS, across the network to the rank of the same
 * local number, then inside the node. CHEAPER: by cost.h. RAILS is only a wish: where nodes have different numbers of
 * ranks, or a rank would have to hold more keys than it has room for, it is STRAIGHT. */
enum direct_form { DIRECT_CHEAPER, DIRECT_STRAIGHT, DIRECT_RAILS };

/* Tables of exchange_partition(). */
struct partition;

/* Make the tables for `size` <= PARTITION_RANKS_MAX ranks; *partition is NULL after an error. Not collective.
 * Errors HSORT_HOST_MEMORY, the engine's. */
enum { PARTITION_RANKS_MAX = 32 };
hsort_status partition_open(int size, struct engine *engine, struct partition **partition);

void partition_close(struct partition *partition, struct engine *engine); /* NULL is fine; not collective */

/* Bytes of engine memory that exchange_partition() works in, for ranks of at most `capacity` keys; and how many keys have room in
 * it, beside the engine's own workspace. Pure. */
int64_t partition_memory_keys(int64_t capacity);
size_t partition_memory(const struct engine *engine, int key_bytes, int64_t capacity);

/* What an exchange works on. All pointers borrowed, but keys and scratch change roles as it goes. */
struct exchange {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    struct direct *direct;  /* of exchange_direct(); others need none */
    enum direct_form form;  /* of exchange_direct(); the same on every rank */
    struct partition *partition; /* of exchange_partition() */
    void *partition_memory;   /* [partition_memory()] engine memory, aligned to 256 bytes */
    int key_bytes;
    int64_t capacity;          /* keys that a rank has room for; the same everywhere; size * capacity >= all keys */
    void *keys, *scratch;     /* [capacity] each, engine memory; keys holds this rank's run */
    void *workspace;             /* [workspace_bytes] engine memory to work in; may be none */
    size_t workspace_bytes;
    size_t chunk_bytes;     /* of what is fetched at a time from a peer's memory, a multiple of 8; 0: as is best */
    int64_t count;          /* keys in the run, 0 .. capacity */
    int64_t moved_bytes;    /* sent to other ranks, added up */
    int rounds_moved;       /* rounds or shifts in which this rank sent or received any key */
    double merge_seconds;   /* of the time taken, what went into merging */
    void *host_out;         /* of exchange_partition(): pinned memory for this rank's part of the result; or NULL */
    bool all_ascend;        /* exchange_partition() has found every rank's keys in order as they came; the same on every rank */
    double local_seconds;   /* of exchange_partition(): what went by before any key left its rank */
    void (*progress)(void *user, int64_t done, int64_t total); /* rank 0, after each round; or NULL */
    void *progress_user;
};

/* Sort the ranks' runs into one order by compare-splits over the hypercube.                       Collective.
 * After    x->keys holds this rank's part: the first ranks hold `capacity` keys each, one the remainder, the rest none.
 * Errors   this rank's own: it has kept to the schedule all the same; the caller agrees on it (comm_agree).
 * Source   Batcher 1968; Peters et al., section 3.3 (virtual padding, applied to ranks); mpi/README.md. */
hsort_status exchange_bitonic(struct exchange *x);

/* Sort the ranks' runs into one order, each key moving once, to the rank where it stays, or over rails once across the
 * network and once inside its node.                                                                Collective.
 *   x          keys [count] a sorted run of 0 .. capacity keys on each rank
 *   target_offset  [size + 1] global position of each rank's first key afterwards; the last is the number of keys; any
 *              counts up to capacity; the same on every rank
 * After    x->keys holds this rank's part of target_offset, sorted. A key that is on its rank already does not move:
 *          nothing does if the runs are in order as target_offset cuts them.
 * Order    by (key, rank, position): of equal keys those of lower ranks go to lower ranks, and lie first; over rails, where
 *          they lie on their rank is not said.
 * Errors   this rank's own: it has kept to the schedule all the same, and the caller agrees on it (comm_agree). If any
 *          rank fails before keys move, none move, and x->keys holds keys in no order.
 * Source   Siebert, Wolf 2011; Solomonik, Kale 2010; mpi/README.md. */
hsort_status exchange_direct(struct exchange *x, const int64_t *target_offset);

/* Sort keys that are in no order, over the ranks: each moves once, or, where values are few and repeat, none does, as they are
 * counted; where the keys suit either.                                                             Collective.
 *   x          every pair of ranks maps each other's memory. keys [capacity], scratch [capacity], both overwritten; room is for a
 *              local sort of the capacity. All ranks have a partition and a partition_memory
 *   bits       map and from are read: this rank's keys as they came; from may be x->keys, but does not overlap x->scratch
 *   current_offset     [size + 1] global position of each rank's first key as they came; no rank has more than capacity
 *   target_offset  [size + 1] the same afterwards; likewise; both the same on every rank
 *              x->host_out, if not NULL, gets the result too, while other keys are being sorted
 *   done       [1] the same on every rank. true: x->keys has this rank's part of target_offset, sorted, as bits and not as codes.
 *              false: the keys do not suit it (many are equal, and values many; or all shards are sorted), or a rank has
 *              failed; x->keys is untouched, x->scratch is not
 * Order      of bits that are equal none can be told.
 * Errors     this rank's own: it has kept to the schedule all the same, and the caller agrees on it (comm_agree).
 * Source     Stehle, Jacobsen 2017, for the buckets; mpi/README.md. */
hsort_status exchange_partition(struct exchange *x, const struct raw_keys *bits, const int64_t *current_offset,
                                const int64_t *target_offset, bool *done);

/* Messages of probes that split_pair() sends where the cut may lie at `length` places. Pure. */
int split_messages(int64_t length);

/* Merge this rank's kept keys [kept_count] with a peer's [their_count], which copies and kernels of this rank can read at
 * `theirs`, into out, which overlaps neither. Waits. Not collective: the peer need not do the same. Keys that are not sorted
 * (a rank has failed) give keys in no order, but nothing outside is touched. Errors: the engine's. */
hsort_status merge_from_peer(struct exchange *x, const void *kept, int64_t kept_count, const void *theirs,
                             int64_t their_count, void *out);

/* Where a pair of runs must be cut so that the lower rank ends with the lowest keys of both.
 * Collective over the two partners; both arrive at the same cut, also after a failure, whatever was read then.
 *   own_kept  [1] written: keys of its own that this rank keeps: the first ones if it is the lower rank, else the last
 *   incoming  [1] written: keys it gets from the partner
 * Errors   this rank's own; it may go on with the exchange.
 * Order    equal keys stay where they are. */
hsort_status split_pair(struct exchange *x, int partner, int64_t *own_kept, int64_t *incoming);

/* Move keys so that rank r ends with those at the global positions want_offset[r] .. want_offset[r+1] - 1.   Collective.
 *   have_offset, want_offset  [size + 1] global position of each rank's first key before and after; the last is the number of
 *                     keys; the same on every rank
 *   from  [have_offset[rank+1] - have_offset[rank]] engine or host memory
 *   to    [want_offset[rank+1] - want_offset[rank]] engine or host memory; no overlap
 * Errors   this rank's own; the caller agrees on it. */
hsort_status rebalance(struct exchange *x, const int64_t *have_offset, const int64_t *want_offset, const void *from, void *to);

#endif
