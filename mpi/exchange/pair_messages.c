#include "mpi/exchange/pair_messages.h"
#include <stdlib.h>
#include "kernels/base/first_error.h"
#include "kernels/base/lesser.h"
#include "mpi/exchange/batch_source.h"

/* Slots of parts, of either direction. As many messages as TRANSPORT_CHUNKS_IN_FLIGHT are on their way at a time, and as many parts are
 * packed ahead of them, or unpacked behind. */
enum { SLOTS = 2 * TRANSPORT_CHUNKS_IN_FLIGHT };

/* Where a rank stands in the order of its messages of one direction. */
struct part_cursor {
    int step, column;
    size_t done;    /* bytes of the column */
    int64_t packed; /* parts before it that are packed, or may be */
};

/* A part of a column. */
struct column_part {
    int peer, column;
    char *memory; /* in the first half */
    size_t bytes;
    bool packs;
};

/* By the number of a part, % SLOTS. */
struct pair_slots {
    struct engine_event *packed[SLOTS], *unpacked[SLOTS];
    int64_t *bytes; /* [SLOTS] host memory of the engine: of parts that are packed */
};

struct pair_stream {
    const struct pair_messages *m;
    struct transport *transport; /* that has streams */
    size_t slot_bytes;
    char *out, *in;                                      /* [SLOTS * slot_bytes] */
    struct part_cursor ahead, sends, receives, arrivals; /* ahead: the next part to pack */
    hsort_status status;
};

/* ---- the order ---------------------------------------------------------------------------------------------- */

/* Is what goes to this rank, or comes from it, packed? The same on both. */
static bool packs_on_path(const struct comm *comm, const struct engine *engine,
                          const struct transport *transport, int peer)
{
    return engine->ops->packing &&
           (!comm_is_near(comm, peer) || transport_path(transport, peer) == HSORT_TRANSPORT_STAGED);
}

/* Bring a cursor to the next part that is sent, or received, if there is one. */
static bool find_column_part(const struct pair_stream *s, struct part_cursor *c, bool sends,
                             struct column_part *part)
{
    const struct pair_messages *m = s->m;
    const int rank = m->comm->rank, size = m->comm->size;
    for (; c->step < size; c->step++, c->column = 0, c->done = 0) {
        const int peer = sends ? (rank + c->step) % size : (rank - c->step + size) % size;
        const struct pair_span span = (sends ? m->gives : m->takes)[peer];
        for (; c->column < COLUMNS; c->column++, c->done = 0) {
            const struct pair_column *column = &m->columns[c->column];
            const size_t all = pair_span_is_empty(span) ? 0 : (size_t)(span.end - span.first) * column->bytes;
            if (c->done == all)
                continue;
            char *array = sends ? (char *)column->given + (size_t)span.first * column->bytes
                                : (char *)column->taken + (size_t)m->comes_to[peer] * column->bytes;
            *part = (struct column_part){.peer = peer,
                                         .column = c->column,
                                         .memory = array + c->done,
                                         .bytes = lesser_bytes(all - c->done, s->slot_bytes),
                                         .packs = column->packing != PACK_NOTHING &&
                                                  packs_on_path(m->comm, m->engine, m->transport, peer)};
            return true;
        }
    }
    return false;
}

static void pass_part(struct part_cursor *c, const struct column_part *part)
{
    c->done += part->bytes;
    c->packed += part->packs;
}

static char *slot_at(const struct pair_stream *s, char *slots, int64_t number)
{
    return slots + (size_t)(number % SLOTS) * s->slot_bytes;
}

static bool event_has_come(struct pair_stream *s, struct engine_event *event)
{
    bool done = true;
    keep_first_error(&s->status, s->m->engine->ops->event_done(s->m->engine, event, &done));
    return done || s->status != HSORT_OK;
}

/* ---- what is sent --------------------------------------------------------------------------------------------- */

/* Pack or unpack a part: `packed` [*bytes] and its place in the first half. Then `event` is recorded. */
static void queue_part(struct pair_stream *s, const struct column_part *part, bool packs, void *packed,
                       int64_t *bytes, struct engine_event *event)
{
    struct engine *engine = s->m->engine;
    const struct pair_column *column = &s->m->columns[part->column];
    const int width = (int)column->bytes;
    const struct engine_packing packing = {.from = packs ? part->memory : packed,
                                           .to = packs ? packed : part->memory,
                                           .count = (int64_t)(part->bytes / column->bytes),
                                           .bytes = bytes,
                                           .to_smallest = column->packing == PACK_CLOSE};
    if (s->status == HSORT_OK)
        s->status =
            (packs ? engine->ops->packing->pack : engine->ops->packing->unpack)(engine, width, &packing, 1);
    if (s->status == HSORT_OK)
        s->status = engine->ops->event_record(engine, event, STREAM_WORK);
}

/* Queue the packing of the parts that are sent next. When a message is named, all but TRANSPORT_CHUNKS_IN_FLIGHT - 1 before it have
 * left, so the slots of those can be written to. */
static void pack_ahead(struct pair_stream *s)
{
    struct column_part part;
    while (s->ahead.packed < s->sends.packed + SLOTS - TRANSPORT_CHUNKS_IN_FLIGHT &&
           find_column_part(s, &s->ahead, true, &part)) {
        const int64_t number = s->ahead.packed;
        if (part.packs)
            queue_part(s, &part, true, slot_at(s, s->out, number), &s->m->slots->bytes[number % SLOTS],
                       s->m->slots->packed[number % SLOTS]);
        pass_part(&s->ahead, &part);
    }
}

static void trace_message(const struct pair_stream *s, int to, size_t bytes)
{
    struct trace_span *span = trace_begin(s->m->comm->trace, "send message");
    trace_sent(span, to, (int64_t)bytes);
    trace_end(span);
}

/* transport_stream.send. A failed rank sends what is there, as it is. */
static enum transport_next next_pairs_sent(void *user, struct transport_message *message)
{
    struct pair_stream *s = user;
    struct column_part part;
    if (s->m->slots)
        pack_ahead(s);
    if (!find_column_part(s, &s->sends, true, &part))
        return NEXT_NONE;
    *message = (struct transport_message){part.peer, part.memory, part.bytes, part.bytes};
    const int64_t number = s->sends.packed;
    if (part.packs && s->status == HSORT_OK && !event_has_come(s, s->m->slots->packed[number % SLOTS]))
        return NEXT_LATER;
    if (part.packs && s->status == HSORT_OK) {
        message->memory = slot_at(s, s->out, number);
        message->bytes = (size_t)s->m->slots->bytes[number % SLOTS];
    }
    trace_message(s, part.peer, message->bytes);
    pass_part(&s->sends, &part);
    return NEXT_MESSAGE;
}

/* ---- what comes ----------------------------------------------------------------------------------------------- */

/* transport_stream.receive. A slot is free once what it had is unpacked. */
static enum transport_next next_pairs_received(void *user, struct transport_message *message)
{
    struct pair_stream *s = user;
    struct column_part part;
    if (!find_column_part(s, &s->receives, false, &part))
        return NEXT_NONE;
    const int64_t number = s->receives.packed;
    if (part.packs && number >= SLOTS && s->status == HSORT_OK &&
        (s->arrivals.packed <= number - SLOTS || !event_has_come(s, s->m->slots->unpacked[number % SLOTS])))
        return NEXT_LATER;
    *message = (struct transport_message){.peer = part.peer,
                                          .memory = part.packs ? slot_at(s, s->in, number) : part.memory,
                                          .bytes = part.bytes};
    pass_part(&s->receives, &part);
    return NEXT_MESSAGE;
}

/* transport_stream.received. */
static void take_arrival(void *user, size_t bytes)
{
    struct pair_stream *s = user;
    struct column_part part;
    int64_t came = (int64_t)bytes;
    if (!find_column_part(s, &s->arrivals, false, &part))
        return;
    const int64_t number = s->arrivals.packed;
    if (part.packs)
        queue_part(s, &part, false, slot_at(s, s->in, number), &came, s->m->slots->unpacked[number % SLOTS]);
    pass_part(&s->arrivals, &part);
}

/* ---- the call ------------------------------------------------------------------------------------------------- */

size_t pair_messages_bytes(const struct comm *comm, const struct engine *engine, struct transport *transport)
{
    return batch_chunks_are_packed(comm, engine, transport)
               ? 2 * SLOTS * transport_messenger(transport)->message_bytes
               : 0;
}

void pair_slots_close(struct engine *engine, struct pair_slots *slots)
{
    if (!slots)
        return;
    for (int i = 0; i < SLOTS; i++) {
        engine->ops->event_destroy(engine, slots->packed[i]);
        engine->ops->event_destroy(engine, slots->unpacked[i]);
    }
    engine->ops->free_host(engine, slots->bytes);
    free(slots);
}

static hsort_status make_slots(struct engine *engine, struct pair_slots *slots)
{
    TRY(engine->ops->alloc_host(engine, SLOTS * sizeof *slots->bytes, (void **)&slots->bytes));
    for (int i = 0; i < SLOTS; i++) {
        TRY(engine->ops->event_create(engine, &slots->packed[i]));
        TRY(engine->ops->event_create(engine, &slots->unpacked[i]));
    }
    return HSORT_OK;
}

hsort_status pair_slots_open(struct engine *engine, size_t bytes, struct pair_slots **slots)
{
    struct pair_slots *made = *slots = bytes > 0 ? calloc(1, sizeof *made) : NULL;
    if (bytes == 0)
        return HSORT_OK;
    const hsort_status status =
        made ? make_slots(engine, made) : status_fail(HSORT_HOST_MEMORY, "no memory to pack what is sent");
    if (status != HSORT_OK) {
        pair_slots_close(engine, made);
        *slots = NULL;
    }
    return status;
}

static bool has_messages(const struct pair_messages *m)
{
    bool has = false;
    for (int peer = 0; peer < m->comm->size; peer++)
        has = has || !pair_span_is_empty(m->gives[peer]) || !pair_span_is_empty(m->takes[peer]);
    return has;
}

hsort_status pair_messages_run(const struct pair_messages *m, hsort_status mine)
{
    struct pair_stream s = {.m = m, .transport = transport_messenger(m->transport), .status = mine};
    if (!has_messages(m))
        return mine;
    s.slot_bytes = s.transport->message_bytes;
    s.out = m->memory;
    s.in = s.out ? s.out + SLOTS * s.slot_bytes : NULL;
    s.ahead.step = s.sends.step = s.receives.step = s.arrivals.step = 1;
    const struct transport_stream stream = {
        .send = next_pairs_sent, .receive = next_pairs_received, .received = take_arrival, .user = &s};
    struct trace_span *span = trace_begin(m->comm->trace, "exchange messages");
    keep_first_error(&s.status,
                     m->engine->ops->stream_synchronize(m->engine, STREAM_WORK)); // what is sent is there
    keep_first_error(&s.status, s.transport->ops->stream_begin(s.transport, &stream));
    keep_first_error(&s.status, s.transport->ops->stream_end(s.transport));
    trace_end(span);
    return s.status;
}
