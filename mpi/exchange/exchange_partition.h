/* What exchange_partition.c and exchange_counted.c share: the tables, and what both do with them. */
#ifndef EXCHANGE_PARTITION_H
#define EXCHANGE_PARTITION_H

#include "kernels/base/first_error.h"
#include "mpi/exchange/exchange.h"

enum {
    SLOTS = 2, // for what a batch fetches
    FOUND_DESCENDS = ENGINE_REGIONS,
    FOUND_FAILED,
    FOUND
};

struct partition_tables {
    uint64_t
        *sample; /* [2^ENGINE_SAMPLE_LOG_MAX] codes: this rank's part, on rank 0 all; in order of position */
    int *counts, *offsets; /* [size] of the sample, by rank */
    int64_t *found;        /* [size * FOUND] what ranks gather of each other */
    int64_t *piece_at; /* [size * (ENGINE_REGIONS + 1)] where in a rank's scratch buffer a region begins */
    const void *
        *peer_scratch; /* [size] what each peer shows this rank of its scratch buffer, as it appears here */
    int64_t exposed_bytes; /* that this rank shows to others, until it is known whether all can */
    int first, end;        /* this rank's regions: [first, end) */
    int64_t region_at[ENGINE_REGIONS + 1]; /* global positions */
    bool others_left;                      /* some batch has left more unsorted than could be settled */
    struct engine_map map;
    struct engine_piece pieces[ENGINE_PIECES_MAX];
    struct engine_event *fetched[SLOTS], *sorted[SLOTS];
};

static inline struct partition_tables *partition_of(const struct exchange *x)
{
    return x->tables;
}

/* Ranks that can take part at most. */
enum { PARTITION_RANKS_MAX = 32 };

/* Keys that have room in the memory of a partition for ranks of at most `capacity` keys, beside the engine's
 * own workspace. Pure. */
int64_t partition_memory_keys(int64_t capacity);

/* Copy the keys [from, until) of this rank's part from x->keys to where the caller wants them on the host,
 * once STREAM_WORK has come to `written`; nothing if it does not want them there. Not collective. */
hsort_status partition_copy_out(struct exchange *x, int64_t from, int64_t until,
                                struct engine_event *written);

/* Let `peer` read [bytes] of this rank's scratch buffer: p->peer_scratch[peer] is what it shows in return,
 * NULL if the pair cannot. Ranks go through their peers in ascending order, so that none waits for one that
 * waits for it. Collective over the pair. */
hsort_status partition_expose(struct exchange *x, int peer, const void *memory, int64_t bytes);

/* *all: every pair of ranks could, and no rank has failed; the same on every rank. `status` is this rank's, and comes back
 * with what happens here. Collective. */
hsort_status partition_all_exposed(struct exchange *x, hsort_status status, bool *all);

/* End what partition_expose() began with any peer: all have done their reading. Collective. */
hsort_status partition_conceal(struct exchange *x);

/* Sort keys of few values, by counting them: of the exchange `partition`, where values repeat too much for regions.
 * p->sample has been taken. `status` is this rank's so far, and comes back with what happens here.
 * Collective. */
hsort_status exchange_counted(struct exchange *x, hsort_status status, bool *done);

#endif
