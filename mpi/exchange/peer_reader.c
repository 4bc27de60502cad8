#include "mpi/exchange/peer_reader.h"

hsort_status peer_reader_open(struct engine *engine, struct peer_reader *reader)
{
    *reader = (struct peer_reader){.engine = engine, .reading = PEER_READER_IDLE};
    return engine->ops->event_create(engine, &reader->read);
}

void peer_reader_close(struct peer_reader *reader)
{
    if (reader->engine)
        reader->engine->ops->event_destroy(reader->engine, reader->read);
    *reader = (struct peer_reader){0};
}

/* Two ranks alone are never in each other's way. */
void peer_reader_begin(struct peer_reader *reader, const struct comm *comm, struct transport *transport,
                       int peers)
{
    reader->transport = transport;
    reader->trace = comm->trace;
    reader->takes_turns = peers > 1 && transport->ops->has_turns(transport);
    reader->turn_bytes = transport_message_bytes(transport);
}

/* May this rank copy from the peer now? If so, and if the copy needs a turn, the turn is taken. */
static bool may_copy(struct peer_reader *reader, int peer, size_t bytes)
{
    if (!reader->takes_turns || bytes < reader->turn_bytes)
        return true;
    if (reader->reading != PEER_READER_IDLE || !reader->transport->ops->take_turn(reader->transport, peer))
        return false;
    reader->reading = peer;
    return true;
}

static void queue_copy(struct peer_reader *reader, const struct peer_copy *copy, hsort_status *status)
{
    const struct engine_ops *ops = reader->engine->ops;
    struct trace_span *span = trace_begin(reader->trace, "fetch");
    trace_received(span, copy->peer, (int64_t)copy->bytes);
    keep_first_error(status, ops->copy(reader->engine, STREAM_IN, copy->to, copy->from, copy->bytes));
    trace_end(span);
    if (reader->reading == copy->peer)
        keep_first_error(status, ops->event_record(reader->engine, reader->read, STREAM_IN));
}

int peer_reader_copy(struct peer_reader *reader, struct peer_copy *copies, int count, hsort_status *status)
{
    int left = 0;
    for (int i = 0; i < count; i++)
        if (may_copy(reader, copies[i].peer, copies[i].bytes))
            queue_copy(reader, &copies[i], status);
        else
            copies[left++] = copies[i];
    return left;
}

hsort_status peer_reader_advance(struct peer_reader *reader)
{
    bool done = false;
    if (reader->reading == PEER_READER_IDLE)
        return HSORT_OK;
    const hsort_status status = reader->engine->ops->event_done(reader->engine, reader->read, &done);
    if (done || status != HSORT_OK) {
        reader->transport->ops->give_turn(reader->transport, reader->reading);
        reader->reading = PEER_READER_IDLE;
    }
    return status;
}

hsort_status peer_reader_end(struct peer_reader *reader)
{
    hsort_status status = HSORT_OK;
    while (reader->reading != PEER_READER_IDLE)
        keep_first_error(&status, peer_reader_advance(reader));
    return status;
}
