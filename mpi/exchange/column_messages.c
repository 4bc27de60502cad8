#include "mpi/exchange/column_messages.h"
#include <stdlib.h>
#include "kernels/base/lesser.h"
#include "mpi/exchange/packed_paths.h"
#include "mpi/exchange/step_order.h"

/* Slots for parts, in each direction. TRANSPORT_CHUNKS_IN_FLIGHT messages are on their way at a time, and as many parts are packed ahead
 * of them, or unpacked behind them. */
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
    char *memory; /* in `given`, or in `taken` */
    size_t bytes;
    bool packs;
};

/* Indexed by the number of a part, % SLOTS. */
struct column_slots {
    struct engine_event *packed[SLOTS], *unpacked[SLOTS];
    int64_t *bytes; /* [SLOTS] host memory of the engine: of parts that are packed */
};

struct messages_stream {
    const struct column_messages *m;
    struct transport *transport; /* the one that has streams */
    size_t slot_bytes;           /* room for a part */
    char *out, *in;              /* [SLOTS * slot_bytes] */
    struct part_cursor ahead, sends, receives, arrivals; /* ahead: the next part to pack */
    int64_t sent_bytes;
    hsort_status status;
};

/* ---- the order ---------------------------------------------------------------------------------------------- */

/* Bytes of the next part of a column that has `left` bytes left: whole elements, if there is room for one, in parts of equal size, so
 * that none is too short to be packed. */
static size_t part_bytes(const struct messages_stream *s, const struct message_column *column, size_t left)
{
    const size_t message = s->transport->message_bytes, each = column->bytes;
    const size_t room = s->m->slots ? lesser_bytes(s->slot_bytes, message) : message;
    if (room < each)
        return lesser_bytes(left, room);
    const size_t most = room - room % each, parts = (left + most - 1) / most;
    return bytes_rounded_up(left / parts, each);
}

static bool part_packs(const struct messages_stream *s, const struct message_column *column, int peer,
                       size_t bytes)
{
    const struct column_messages *m = s->m;
    return m->slots && column->packing != PACK_NOTHING && bytes % column->bytes == 0 &&
           part_is_worth_packing(bytes, s->transport->message_bytes) &&
           path_packs(m->comm, m->engine, m->transport, peer);
}

/* Bring a cursor to the next part that is sent, or received, if there is one. */
static bool find_column_part(const struct messages_stream *s, struct part_cursor *c, bool sends,
                             struct column_part *part)
{
    const struct column_messages *m = s->m;
    for (; c->step < m->comm->size; c->step++, c->column = 0, c->done = 0) {
        const int peer = sends ? step_target(m->comm, c->step) : step_source(m->comm, c->step);
        const struct place_span span = (sends ? m->gives : m->takes)[peer];
        for (; c->column < m->column_count; c->column++, c->done = 0) {
            const struct message_column *column = &m->columns[c->column];
            const size_t all = place_span_length(span) * column->bytes;
            if (c->done == all)
                continue;
            const size_t bytes = part_bytes(s, column, all - c->done);
            char *array = sends ? (char *)column->given + (size_t)span.first * column->bytes
                                : (char *)column->taken + (size_t)m->comes_to[peer] * column->bytes;
            *part = (struct column_part){.peer = peer,
                                         .column = c->column,
                                         .memory = array + c->done,
                                         .bytes = bytes,
                                         .packs = part_packs(s, column, peer, bytes)};
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

static char *slot_at(const struct messages_stream *s, char *slots, int64_t number)
{
    return slots + (size_t)(number % SLOTS) * s->slot_bytes;
}

static bool event_has_come(struct messages_stream *s, struct engine_event *event)
{
    bool done = true;
    keep_first_error(&s->status, s->m->engine->ops->event_done(s->m->engine, event, &done));
    return done || s->status != HSORT_OK;
}

/* ---- what is sent --------------------------------------------------------------------------------------------- */

/* Queue the packing of a part from its place to `packed` [*bytes], or the unpacking from there to its place. Then `event` is recorded. */
static void queue_part(struct messages_stream *s, const struct column_part *part, bool packs, void *packed,
                       int64_t *bytes, struct engine_event *event)
{
    struct engine *engine = s->m->engine;
    const struct message_column *column = &s->m->columns[part->column];
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

/* Queue the packing of the parts that are sent next. When a message is named, all messages before it have left, except the last
 * TRANSPORT_CHUNKS_IN_FLIGHT - 1, so the slots of those that have left can be written to. */
static void pack_ahead(struct messages_stream *s)
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

/* transport_stream.send. A failed rank sends what is there, as it is. */
static enum transport_next next_column_sent(void *user, struct transport_message *message)
{
    struct messages_stream *s = user;
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
        // If the packing has failed, which another call has then reported, this is any number.
        message->bytes = lesser_bytes((size_t)s->m->slots->bytes[number % SLOTS], part.bytes);
    }
    count_moved(s->m->comm->trace, "send message", part.peer, message->bytes, &s->sent_bytes);
    pass_part(&s->sends, &part);
    return NEXT_MESSAGE;
}

/* ---- what comes ----------------------------------------------------------------------------------------------- */

/* transport_stream.receive. A slot is free once what it held is unpacked. */
static enum transport_next next_column_received(void *user, struct transport_message *message)
{
    struct messages_stream *s = user;
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
    struct messages_stream *s = user;
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

size_t column_slots_bytes(size_t usual, size_t message)
{
    const size_t part = usual < message / 2 ? 2 * usual : message;
    return part_is_worth_packing(usual, message) ? 2 * SLOTS * bytes_rounded_up(part, ENGINE_ALIGNMENT) : 0;
}

size_t column_messages_bytes(const struct comm *comm, const struct engine *engine,
                             const struct transport *transport, size_t usual)
{
    return any_path_packs(comm, engine, transport)
               ? column_slots_bytes(usual, transport_message_bytes(transport))
               : 0;
}

void column_slots_close(struct engine *engine, struct column_slots *slots)
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

static hsort_status make_slots(struct engine *engine, struct column_slots *slots)
{
    TRY(engine->ops->alloc_host(engine, SLOTS * sizeof *slots->bytes, (void **)&slots->bytes));
    for (int i = 0; i < SLOTS; i++) {
        TRY(engine->ops->event_create(engine, &slots->packed[i]));
        TRY(engine->ops->event_create(engine, &slots->unpacked[i]));
    }
    return HSORT_OK;
}

hsort_status column_slots_open(struct engine *engine, size_t bytes, struct column_slots **slots)
{
    struct column_slots *made = *slots = bytes > 0 ? calloc(1, sizeof *made) : NULL;
    if (bytes == 0)
        return HSORT_OK;
    const hsort_status status =
        made ? make_slots(engine, made) : status_fail(HSORT_HOST_MEMORY, "no memory to pack what is sent");
    if (status != HSORT_OK) {
        column_slots_close(engine, made);
        *slots = NULL;
    }
    return status;
}

static bool has_messages(const struct column_messages *m)
{
    bool has = false;
    for (int peer = 0; peer < m->comm->size; peer++)
        has = has || !place_span_is_empty(m->gives[peer]) || !place_span_is_empty(m->takes[peer]);
    return has;
}

hsort_status column_messages_run(const struct column_messages *m, hsort_status mine, int64_t *moved_bytes)
{
    struct messages_stream s = {.m = m,
                                .transport = transport_messenger(m->transport),
                                .slot_bytes = m->memory_bytes / (2 * SLOTS),
                                .out = m->memory,
                                .status = mine};
    if (!has_messages(m))
        return mine;
    s.in = s.out ? s.out + SLOTS * s.slot_bytes : NULL;
    s.ahead.step = s.sends.step = s.receives.step = s.arrivals.step = 1;
    const struct transport_stream stream = {
        .send = next_column_sent, .receive = next_column_received, .received = take_arrival, .user = &s};
    struct trace_span *span = trace_begin(m->comm->trace, "exchange messages");
    keep_first_error(&s.status,
                     m->engine->ops->stream_synchronize(m->engine, STREAM_WORK)); // what is sent must be there
    keep_first_error(&s.status, s.transport->ops->stream_begin(s.transport, &stream));
    keep_first_error(&s.status, s.transport->ops->stream_end(s.transport));
    trace_end(span);
    *moved_bytes += s.sent_bytes;
    return s.status;
}
