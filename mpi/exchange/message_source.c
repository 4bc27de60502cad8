/* Chunks by message. Every rank knows all batches of all ranks, so it knows what each peer takes of it next: one sequence
 * of messages for each pair and direction, without a word about it. A chunk is cut into messages of the transport's size.
 *
 *     order, of all messages of all ranks    (batch number, step, message of the chunk)
 *     receives    batch b of this rank, from the rank `step` above                       once the slot is free
 *     sends       batch b of the rank `step` below, out of the scratch buffer            at once
 *
 * Both are the same order, so the stream ends (transport.h): the message that is least among those not done has nothing
 * before it on either side, and its slot is free once batches have been sorted that were fetched whole before. Three ranks,
 * two batches each; each row a rank's sends, below it its receives:
 *
 *     rank 0   b0 -> 2   b0 -> 1   b1 -> 2   b1 -> 1        rank 1   b0 -> 0   b0 -> 2   b1 -> 0   b1 -> 2
 *              b0 <- 1   b0 <- 2   b1 <- 1   b1 <- 2                 b0 <- 2   b0 <- 0   b1 <- 2   b1 <- 0
 *
 * Receives run ahead of the pipeline, as far as slots are free: while a batch is sorted the next one comes. */
#include "mpi/exchange/batch_source.h"
#include <stdlib.h>
#include "kernels/base/first_error.h"

/* Where a rank stands in the order of its messages of one direction. */
struct message_cursor {
    int batch, step;
    size_t done;  /* bytes of the chunk */
    size_t place; /* in the slot, of the chunk */
};

struct message_tables {
    struct batch_space *space;
    struct transport *transport; /* NULL: no peer takes or gives messages */
    struct message_cursor sends, receives;
    int64_t named, came;            /* messages to receive */
    int64_t named_with[BATCH_SLOTS]; /* of this batch and those before it, once all of it are named */
};

hsort_status message_source_open(void **tables)
{
    *tables = calloc(1, sizeof(struct message_tables));
    return *tables ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for the messages of batches");
}

void message_source_close(void *tables)
{
    free(tables);
}

/* ---- the two orders ---------------------------------------------------------------------------------------- */

static void next_step(struct message_cursor *cursor, int size)
{
    cursor->done = 0;
    if (++cursor->step == size) {
        cursor->step = 1;
        cursor->place = 0;
        cursor->batch++;
    }
}

/* The next part of a chunk of `bytes`, at most as large as a message. */
static size_t next_part(const struct message_tables *m, struct message_cursor *cursor, size_t bytes)
{
    const size_t rest = bytes - cursor->done, most = m->transport->message_bytes;
    const size_t part = rest < most ? rest : most;
    cursor->done += part;
    return part;
}

/* transport_stream.send. */
static enum transport_next next_sent(void *tables, struct transport_message *message)
{
    struct message_tables *m = tables;
    const struct batch_plan *plan = m->space->plan;
    struct exchange *x = m->space->x;
    struct message_cursor *c = &m->sends;
    for (; c->batch < plan->batches_most; next_step(c, plan->size)) {
        const int peer = batch_peer(x, plan->size - c->step);
        int64_t at;
        if (m->space->shown[peer] || c->batch >= batch_count(plan, peer))
            continue;
        const size_t bytes =
            (size_t)(batch_chunk(plan, batch_of(plan, peer, c->batch), x->comm->rank, &at) * x->key_bytes);
        if (c->done == bytes)
            continue;
        message->peer = peer;
        message->memory = (char *)x->scratch + at * x->key_bytes + c->done;
        message->bytes = next_part(m, c, bytes);
        exchange_count_moved(x, "send message", peer, (int64_t)message->bytes);
        return NEXT_MESSAGE;
    }
    return NEXT_NONE;
}

/* May messages be written to the slot of a batch? */
static bool slot_is_free(const struct batch_space *space, int batch)
{
    struct engine *engine = space->x->engine;
    bool done = true;
    if (batch < BATCH_SLOTS || space->failed)
        return true;
    return space->queued > batch - BATCH_SLOTS &&
           (engine->ops->event_done(engine, space->sorted[batch % BATCH_SLOTS], &done) != HSORT_OK || done);
}

/* transport_stream.receive. */
static enum transport_next next_received(void *tables, struct transport_message *message)
{
    struct message_tables *m = tables;
    const struct batch_plan *plan = m->space->plan;
    const struct exchange *x = m->space->x;
    struct message_cursor *c = &m->receives;
    while (c->batch < batch_count(plan, x->comm->rank)) {
        const int peer = batch_peer(x, c->step), batch = c->batch;
        int64_t at;
        const size_t bytes =
            (size_t)(batch_chunk(plan, batch_of(plan, x->comm->rank, batch), peer, &at) * x->key_bytes);
        if (m->space->shown[peer] || c->done == bytes) {
            c->place += bytes;
            next_step(c, plan->size);
            m->named_with[batch % BATCH_SLOTS] = m->named;
            continue;
        }
        if (!slot_is_free(m->space, batch))
            return NEXT_LATER;
        message->peer = peer;
        message->memory = m->space->slot[batch % BATCH_SLOTS] + c->place + c->done;
        message->bytes = next_part(m, c, bytes);
        m->named++;
        return NEXT_MESSAGE;
    }
    return NEXT_NONE;
}

/* transport_stream.received. */
static void count_received(void *tables, size_t bytes)
{
    struct message_tables *m = tables;
    (void)bytes;
    m->came++;
}

/* ---- the source -------------------------------------------------------------------------------------------- */

/* A rank whose peers are all mapped has no stream. */
static hsort_status begin_messages(struct batch_space *space, void *tables)
{
    struct message_tables *m = tables;
    const struct exchange *x = space->x;
    const struct transport_stream stream = {
        .send = next_sent, .receive = next_received, .received = count_received, .user = m};
    *m = (struct message_tables){.space = space, .sends = {.step = 1}, .receives = {.step = 1}};
    for (int peer = 0; peer < x->comm->size; peer++)
        if (peer != x->comm->rank && !space->shown[peer])
            m->transport = transport_messenger(x->transport);
    return m->transport ? m->transport->ops->stream_begin(m->transport, &stream) : HSORT_OK;
}

static hsort_status advance_messages(void *tables)
{
    struct message_tables *m = tables;
    return m->transport ? m->transport->ops->stream_advance(m->transport) : HSORT_OK;
}

static hsort_status fetch_messages(struct batch_space *space, void *tables, int number)
{
    const struct message_tables *m = tables;
    struct trace_span *span = m->transport ? trace_begin(space->x->comm->trace, "wait for messages") : NULL;
    hsort_status status = HSORT_OK;
    while (m->transport && (m->receives.batch <= number || m->came < m->named_with[number % BATCH_SLOTS]))
        keep_first_error(&status, advance_messages(tables));
    if (m->transport)
        trace_end(span);
    return status;
}

static hsort_status end_messages(struct batch_space *space, void *tables)
{
    struct message_tables *m = tables;
    (void)space;
    return m->transport ? m->transport->ops->stream_end(m->transport) : HSORT_OK;
}

const struct batch_source_ops message_source = {
    .begin = begin_messages,
    .fetch = fetch_messages,
    .advance = advance_messages,
    .end = end_messages,
};
