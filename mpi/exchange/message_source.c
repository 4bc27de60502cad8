/* Chunks by message. Every rank knows all batches of all ranks, so it knows what each peer takes of it next: there is one
 * sequence of messages for each pair and direction, and nobody has to ask. A chunk is cut into messages of the transport's size.
 *
 *     order, of all messages of all ranks    (batch number, step, message of the chunk)
 *     receives    batch b of this rank, from step_source() of the step                   once the slot is free
 *     sends       batch b of step_target(), out of the scratch buffer                    at once
 *
 * Both are the same order, so the stream ends (transport.h): the first of the messages that are not done has nothing
 * before it on either side, and its slot is free once the batches that were fetched whole before it are sorted. Three ranks,
 * two batches each; a row has a rank's sends, and the row below its receives:
 *
 *     rank 0   b0 -> 2   b0 -> 1   b1 -> 2   b1 -> 1        rank 1   b0 -> 0   b0 -> 2   b1 -> 0   b1 -> 2
 *              b0 <- 1   b0 <- 2   b1 <- 1   b1 <- 2                 b0 <- 2   b0 <- 0   b1 <- 2   b1 <- 0
 *
 * Receives run ahead of the pipeline, as far as slots are free: while a batch is sorted, the next one comes.
 *
 * On slow paths chunks are packed (packed_chunks.h), so fewer bytes come than both sides expect at most. A message is then
 * shorter, or empty; the bytes that have come of a chunk say whether it is packed:
 *
 *     chunk, 3 messages      | 4 MiB | 4 MiB | 1 MiB |     plain
 *                            | 4 MiB | 1 MiB |   0   |     packed to 5 MiB: unpacked on STREAM_WORK, before the sort */
#include "mpi/exchange/batch_source.h"
#include <signal.h>
#include <stdlib.h>
#include "mpi/exchange/packed_chunks.h"

struct message_tables {
    struct batch_space *space;
    struct transport *transport; /* NULL: no peer takes or gives messages */
    struct packed_chunks *packed;
    struct message_cursor sends, receives, arrivals; /* arrivals: the next message to come of those that are named */
    int64_t named, came;                             /* messages to receive */
    int64_t named_with[BATCH_SLOTS]; /* those of this batch and of all before it, once all of them are named */
    int64_t *came_bytes;             /* [BATCH_SLOTS * size] of each chunk, by step */
    struct engine_packing *packings; /* [size] chunks that have come packed */
    hsort_status status;             /* this rank's first failure that the stream does not know of */
};

static void close_messages(void *tables, struct engine *engine)
{
    struct message_tables *m = tables;
    if (!m)
        return;
    packed_chunks_close(m->packed, engine);
    free(m->came_bytes);
    free(m->packings);
    free(m);
}

static hsort_status open_messages(int size, struct engine *engine, void **tables)
{
    struct message_tables *m = *tables = calloc(1, sizeof *m);
    if (m) {
        m->came_bytes = malloc(BATCH_SLOTS * (size_t)size * sizeof *m->came_bytes);
        m->packings = malloc((size_t)size * sizeof *m->packings);
    }
    hsort_status status = m && m->came_bytes && m->packings
                              ? packed_chunks_open(engine, &m->packed)
                              : status_fail(HSORT_HOST_MEMORY, "no memory for messages of %d ranks", size);
    if (status != HSORT_OK) {
        close_messages(m, engine);
        *tables = NULL;
    }
    return status;
}

/* ---- messages ---------------------------------------------------------------------------------------------- */

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
    struct exchange *x = m->space->x;
    struct message_cursor *c = &m->sends;
    struct outgoing_chunk chunk;
    size_t bytes; // of the chunk as it is sent
    packed_chunks_advance(m->packed);
    if (!find_outgoing(m->space, c, &chunk))
        return NEXT_NONE;
    if (!packed_chunks_ready(m->packed, &chunk, &bytes))
        return NEXT_LATER;
    if (fault_hit(FAULT_KILL))
        raise(SIGKILL);
    const size_t before = c->done, part = next_part(m, c, chunk.bytes);
    message->peer = chunk.peer;
    message->memory = (char *)x->scratch + chunk.at + before;
    message->bytes = bytes <= before ? 0 : bytes - before < part ? bytes - before : part;
    message->plain = part;
    count_moved(x->comm->trace, "send message", chunk.peer, message->bytes, &x->moved_bytes);
    if (c->done == chunk.bytes)
        packed_chunks_leave(m->packed);
    return NEXT_MESSAGE;
}

/* May messages be written to the slot of a batch? A failure in the engine may be heard of here, and nowhere else. */
static bool slot_is_free(struct message_tables *m, int batch)
{
    const struct batch_space *space = m->space;
    struct engine *engine = space->x->engine;
    bool done = true;
    if (batch < BATCH_SLOTS || space->failed)
        return true;
    if (space->queued <= batch - BATCH_SLOTS)
        return false;
    keep_first_error(&m->status, engine->ops->event_done(engine, space->sorted[batch % BATCH_SLOTS], &done));
    return done || m->status != HSORT_OK;
}

/* Bring a cursor to the next message that this rank receives, if there is one: a part of a chunk of *bytes from *peer. */
static bool find_incoming(const struct message_tables *m, struct message_cursor *c, int *peer, size_t *bytes)
{
    const struct exchange *x = m->space->x;
    int64_t at;
    while (c->batch < batch_count(m->space->plan, x->comm->rank)) {
        *peer = step_source(x->comm, c->step);
        *bytes = chunk_bytes(m->space, x->comm->rank, c->batch, *peer, &at);
        if (!m->space->shown[*peer] && c->done < *bytes)
            return true;
        c->place += *bytes;
        next_message_step(c, x->comm->size);
    }
    return false;
}

/* transport_stream.receive. */
static enum transport_next next_received(void *tables, struct transport_message *message)
{
    struct message_tables *m = tables;
    struct message_cursor *c = &m->receives;
    const int before = c->batch;
    size_t bytes;
    const bool found = find_incoming(m, c, &message->peer, &bytes);
    for (int batch = before; batch < c->batch; batch++)
        m->named_with[batch % BATCH_SLOTS] = m->named;
    if (!found)
        return NEXT_NONE;
    if (!slot_is_free(m, c->batch))
        return NEXT_LATER;
    message->memory = m->space->slot[c->batch % BATCH_SLOTS] + c->place + c->done;
    message->bytes = next_part(m, c, bytes);
    m->named++;
    return NEXT_MESSAGE;
}

static int64_t *came_of(const struct message_tables *m, int batch, int step)
{
    return &m->came_bytes[batch % BATCH_SLOTS * m->space->plan->size + step];
}

/* transport_stream.received. */
static void count_received(void *tables, size_t bytes)
{
    struct message_tables *m = tables;
    size_t all;
    int peer;
    m->came++;
    if (!find_incoming(m, &m->arrivals, &peer, &all))
        return;
    int64_t *came = came_of(m, m->arrivals.batch, m->arrivals.step);
    *came = (m->arrivals.done == 0 ? 0 : *came) + (int64_t)bytes;
    next_part(m, &m->arrivals, all);
}

/* ---- the source -------------------------------------------------------------------------------------------- */

/* A rank whose peers are all mapped has no stream. */
static hsort_status begin_messages(struct batch_space *space, void *tables)
{
    struct message_tables *m = tables;
    const struct exchange *x = space->x;
    const struct transport_stream stream = {
        .send = next_sent, .receive = next_received, .received = count_received, .user = m};
    m->space = space;
    m->transport = NULL;
    m->sends = m->receives = m->arrivals = (struct message_cursor){.step = 1};
    m->named = m->came = 0;
    m->status = HSORT_OK;
    for (int peer = 0; peer < x->comm->size; peer++)
        if (peer != x->comm->rank && !space->shown[peer])
            m->transport = transport_messenger(x->transport);
    packed_chunks_begin(m->packed, space);
    return m->transport ? m->transport->ops->stream_begin(m->transport, &stream) : HSORT_OK;
}

static hsort_status advance_messages(void *tables)
{
    struct message_tables *m = tables;
    return m->transport ? m->transport->ops->stream_advance(m->transport) : HSORT_OK;
}

/* Queue the unpacking of the chunks that have come packed. */
static hsort_status unpack_chunks(const struct message_tables *m, int number)
{
    const struct batch_space *space = m->space;
    const struct exchange *x = space->x;
    size_t place = 0;
    int found = 0;
    int64_t at;
    for (int step = 1; step < x->comm->size && space->unpacked; step++) {
        const int peer = step_source(x->comm, step);
        const size_t bytes = chunk_bytes(space, x->comm->rank, number, peer, &at);
        int64_t *came = came_of(m, number, step);
        if (!space->shown[peer] && bytes > 0 && *came < (int64_t)bytes) {
            space->chunk[step] = space->unpacked + place;
            m->packings[found++] = (struct engine_packing){.from = space->slot[number % BATCH_SLOTS] + place,
                                                           .to = space->unpacked + place,
                                                           .count = (int64_t)bytes / x->key_bytes,
                                                           .bytes = came};
        }
        place += bytes;
    }
    return found > 0 ? x->engine->ops->packing->unpack(x->engine, x->key_bytes, m->packings, found) : HSORT_OK;
}

static hsort_status fetch_messages(void *tables, int number)
{
    const struct message_tables *m = tables;
    struct batch_space *space = m->space;
    struct trace_span *span = m->transport ? trace_begin(space->x->comm->trace, "wait for messages") : NULL;
    hsort_status status = HSORT_OK;
    while (m->transport && (m->receives.batch <= number || m->came < m->named_with[number % BATCH_SLOTS]))
        keep_first_error(&status, space->advance(space));
    if (m->transport)
        trace_end(span);
    if (m->transport && status == HSORT_OK && !space->failed)
        status = unpack_chunks(m, number);
    return status;
}

static hsort_status end_messages(void *tables)
{
    struct message_tables *m = tables;
    hsort_status status = m->transport ? m->transport->ops->stream_end(m->transport) : HSORT_OK;
    keep_first_error(&status, m->status);
    keep_first_error(&status, packed_chunks_end(m->packed));
    return status;
}

const struct batch_source_ops message_source = {
    .open = open_messages,
    .close = close_messages,
    .begin = begin_messages,
    .fetch = fetch_messages,
    .advance = advance_messages,
    .end = end_messages,
};
