/* The step from sorted shards to a sorted whole. One strategy per file: exchange_bitonic; `direct` has an issue of its
 * own. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdint.h>
#include "comm.h"
#include "engine.h"
#include "transport.h"

/* What an exchange works on. All pointers borrowed, but keys and spare change roles as it goes. */
struct exchange {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    int key_bytes;
    int64_t block;          /* keys that a rank has room for; the same everywhere; size * block >= all keys */
    void *keys, *spare;     /* [block] each, engine memory; keys holds this rank's run */
    int64_t count;          /* keys in the run, 0 .. block */
    int64_t moved_bytes;    /* sent to other ranks, added up */
    int rounds_moved;       /* rounds in which this rank sent or received any key */
    double merge_seconds;   /* of the time taken, what went into merging */
    void (*progress)(void *user, int64_t done, int64_t total); /* rank 0, after each round; or NULL */
    void *progress_user;
};

/* Sort the ranks' runs into one order by compare-splits over the hypercube.                       Collective.
 * After    x->keys holds this rank's part: the first ranks hold `block` keys each, one the remainder, the rest none.
 * Errors   this rank's own, or HSORT_MPI "rank R failed" on a partner's behalf; the caller agrees on it (comm_agree).
 * Source   Batcher 1968; Peters et al., section 3.3 (virtual padding, applied to ranks); mpi/README.md. */
hsort_status exchange_bitonic(struct exchange *x);

/* Where a pair of runs must be cut so that the lower rank ends with the lowest keys of both.
 * Collective over the two partners. `mine` is this rank's status so far.
 *   own_kept  [1] written: keys of its own that this rank keeps: the first ones if it is the lower rank, else the last
 *   incoming  [1] written: keys it gets from the partner
 * Errors   mine, or HSORT_MPI if the partner said it failed: then nothing may be moved in this round.
 * Order    equal keys stay where they are. */
hsort_status split_pair(struct exchange *x, int partner, hsort_status mine, int64_t *own_kept, int64_t *incoming);

/* Move keys so that rank r holds want[r] of them, in the same global order.                       Collective.
 *   have, want  [size] the same on every rank; same sum
 *   from, to    [have[rank]], [want[rank]] engine memory, no overlap
 * Errors   this rank's own; the caller agrees on it. */
hsort_status rebalance(struct exchange *x, const int64_t *have, const int64_t *want, const void *from, void *to);

#endif
