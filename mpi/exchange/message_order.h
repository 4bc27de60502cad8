/* The order of the messages that carry chunks: by batch number, then by step. message_source.c says why all ranks have one order.
 * packed_chunks.c packs chunks ahead of their messages in this order, too. Pure except for the cursors. */
#ifndef MESSAGE_ORDER_H
#define MESSAGE_ORDER_H

#include "mpi/exchange/batch_source.h"
#include "mpi/exchange/step_order.h"

/* Where a rank stands in the order of its messages of one direction. */
struct message_cursor {
    int batch, step;
    size_t done;  /* bytes of the chunk */
    size_t place; /* of the chunk in the slot */
};

/* Keys of this rank that a peer is to get. */
struct outgoing_chunk {
    int peer;
    const struct batch *batch; /* the peer's */
    int64_t at;                /* in the scratch buffer */
    size_t bytes;              /* as keys */
};

static inline void next_message_step(struct message_cursor *cursor, int size)
{
    cursor->done = 0;
    if (++cursor->step == size) {
        cursor->step = 1;
        cursor->place = 0;
        cursor->batch++;
    }
}

/* Bytes of the chunk of rank `from` in a batch of rank `to`; *at: where it begins in the scratch buffer, in bytes. */
static inline size_t chunk_bytes(const struct batch_space *space, int to, int number, int from, int64_t *at)
{
    const int width = space->x->key_bytes;
    const int64_t keys = batch_chunk(space->plan, batch_of(space->plan, to, number), from, at);
    *at *= width;
    return (size_t)(keys * width);
}

/* Bring the cursor to the next chunk to send, unless it is at a chunk and not done with it. False: there is no further chunk. */
static inline bool find_outgoing(const struct batch_space *space, struct message_cursor *c,
                                 struct outgoing_chunk *chunk)
{
    const struct batch_plan *plan = space->plan;
    const struct comm *comm = space->x->comm;
    for (; c->batch < plan->batches_most; next_message_step(c, plan->size)) {
        chunk->peer = step_target(comm, c->step);
        if (space->shown[chunk->peer] || c->batch >= batch_count(plan, chunk->peer))
            continue;
        chunk->batch = batch_of(plan, chunk->peer, c->batch);
        chunk->bytes = chunk_bytes(space, chunk->peer, c->batch, comm->rank, &chunk->at);
        if (c->done < chunk->bytes)
            return true;
    }
    return false;
}

#endif
