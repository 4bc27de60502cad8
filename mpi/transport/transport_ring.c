/* Two transports, staged and mpi (transport.h): messages, a few of which are under way at once in both directions. The ring of staged
 * is small: pinning the data itself would cost more than moving it.
 *
 * A transfer is two directions of messages, to and from any peers: the chunks of one sendrecv(), or the messages of a
 * stream, which its user names one by one. Each message takes these steps, always in the order of the numbers in its
 * direction, and SLOTS messages of each direction may be under way:
 *
 *     out   engine memory --copy--> slot --Isend--> peer     (not through_host: Isend straight from memory)
 *     in    peer --Irecv--> slot --copy--> engine memory     (not in place and not through_host: no slot)
 *
 * or these, between ranks of a node that share their slots (shared_memory.h). There MPI only carries notices: if it carried
 * the bytes, the cores would copy them once or twice more:
 *
 *     out   engine memory --copy--> slot     "slot 2, 40 bytes" -->     <-- "it was read": the slot is free again
 *     in                      the peer's slot --copy--> engine memory
 *
 *     message    0     1     2     3     4     5        SLOTS = 4; below, the step that the message has reached
 *     out      sent  sent  Isend copy  copy   -
 *     in       done  copy  here  Irecv Irecv  -
 *
 * The notice names the slot: in a stream the sender's next message may be for another rank.
 *
 * In place, incoming chunk i overwrites outgoing chunk i: its copy waits until that one has left. This cannot
 * deadlock: chunk i waits at most for the peer's chunks up to i, and those only for this rank's up to i - SLOTS.
 *
 * Why polling and not MPI_Waitall: MPI makes progress only when called, and does not know of the engine's
 * copies, so one loop asks both. A rank that fails goes on with its messages, whatever they hold, and reports
 * at the end. */
#include "mpi/transport/shared_memory.h"
#include "mpi/transport/transport.h"
#include <stdlib.h>
#include "kernels/base/lesser.h"

enum { SLOTS = TRANSPORT_CHUNKS_IN_FLIGHT, TAG = 1, TAG_READ = 4, CHUNK_MAX = 1 << 30 };

/* What is sent instead of a message that lies in a shared slot. */
struct slot_notice {
    int64_t slot, bytes;
};

/* A message under way. */
struct ring_message {
    struct transport_message what; /* its bytes are those that have come, once they have */
    char *shared;                  /* slots of the sender, which both see; NULL: the message goes by MPI */
    struct slot_notice place;      /* if shared: where in these slots */
    MPI_Request request;           /* the message, or the notice that this rank waits for */
    MPI_Request notice;            /* the notice that this rank has sent */
};

/* The messages of one direction. The counters say how many have completed each step:
 *
 *     out   taken >= copied >= posted >= passed         in   taken >= passed >= copied_begun >= copied */
struct ring_direction {
    int64_t taken, copied_begun, copied, posted, passed; /* passed: MPI has finished with the message */
    bool ended;                                          /* its user names no more */
    struct ring_message message[SLOTS];                  /* by number % SLOTS */
};

struct ring_transfer {
    struct ring *ring;
    struct transport_stream user;
    struct ring_direction out, in;
    bool in_place;
    double began;
    hsort_status status;
};

struct ring {
    struct transport base;
    struct comm *comm;
    struct engine *engine;
    bool through_host; /* staged. Else slots are engine memory, for chunks that may not be written to their places yet */
    struct shared_memory shared; /* the slots, when through_host */
    char *out_slots;             /* [SLOTS * message_bytes] when through_host: shared.own, if there is one */
    char *in_slots;              /* [SLOTS * message_bytes] */
    struct engine_event *out_event[SLOTS], *in_event[SLOTS];
    struct ring_transfer stream; /* the one under way, if any */
};

static struct ring_message *message_of(struct ring_direction *direction, int64_t number)
{
    return &direction->message[number % SLOTS];
}

static char *ring_slot(const struct ring *ring, char *slots, int64_t number)
{
    return slots + (size_t)(number % SLOTS) * ring->base.message_bytes;
}

static void begin_message_copy(struct ring_transfer *transfer, enum engine_stream stream,
                               struct engine_event *event, void *to, const void *from, size_t bytes)
{
    struct engine *engine = transfer->ring->engine;
    if (bytes > 0)
        keep_first_error(&transfer->status, engine->ops->copy(engine, stream, to, from, bytes));
    keep_first_error(&transfer->status, engine->ops->event_record(engine, event, stream));
}

static bool message_copy_done(struct ring_transfer *transfer, struct engine_event *event)
{
    bool done = true;
    hsort_status status = transfer->ring->engine->ops->event_done(transfer->ring->engine, event, &done);
    keep_first_error(&transfer->status, status);
    return done || status != HSORT_OK;
}

/* ---- MPI ------------------------------------------------------------------------------------------------- */

static void post_send(struct ring_transfer *transfer, int peer, const void *from, size_t bytes, int tag,
                      MPI_Request *request)
{
    keep_first_error(&transfer->status, comm_isend(transfer->ring->comm, from, bytes, peer, tag, request));
}

static void post_receive(struct ring_transfer *transfer, int peer, void *to, size_t bytes, int tag,
                         MPI_Request *request)
{
    keep_first_error(&transfer->status, comm_irecv(transfer->ring->comm, to, bytes, peer, tag, request));
}

/* Wait until the last notice that was sent for this place has left, if any: only then may what it says change. */
static void wait_for_notice(struct ring_transfer *transfer, struct ring_message *message)
{
    keep_first_error(&transfer->status,
                     comm_check(MPI_Wait(&message->notice, MPI_STATUS_IGNORE), "MPI_Wait", false));
}

/* Notify the peer that the message is there, or was read; *what [bytes] stays until the notice has left. */
static void notify(struct ring_transfer *transfer, struct ring_message *message, const void *what, size_t bytes,
                   int tag)
{
    wait_for_notice(transfer, message);
    post_send(transfer, message->what.peer, what, bytes, tag, &message->notice);
}

/* Has MPI finished with the oldest message it was given? *bytes: those that have come, if it was received. */
static bool pass_oldest(struct ring_transfer *transfer, struct ring_direction *direction, size_t *bytes)
{
    int flag = 1, count = 0;
    MPI_Status found;
    const hsort_status status =
        comm_check(MPI_Test(&message_of(direction, direction->passed)->request, &flag, &found), "MPI_Test", false);
    keep_first_error(&transfer->status, status);
    if (flag && status == HSORT_OK && MPI_Get_count(&found, MPI_BYTE, &count) == MPI_SUCCESS && count >= 0)
        *bytes = (size_t)count;
    return flag != 0;
}

/* ---- one direction and the other -------------------------------------------------------------------------- */

/* Ask the user for a message. */
static bool name_message(struct ring_transfer *transfer, struct ring_direction *direction, bool sends)
{
    struct ring_message *message = message_of(direction, direction->taken);
    struct ring *ring = transfer->ring;
    const enum transport_next next =
        (sends ? transfer->user.send : transfer->user.receive)(transfer->user.user, &message->what);
    direction->ended = next == NEXT_NONE;
    if (next != NEXT_MESSAGE)
        return false;
    char *theirs = shared_memory_pinned(&ring->shared, message->what.peer);
    message->shared = theirs && sends ? ring->shared.own : theirs;
    message->request = MPI_REQUEST_NULL;
    direction->taken++;
    return true;
}

static void post_out(struct ring_transfer *transfer, int64_t number)
{
    struct ring *ring = transfer->ring;
    struct ring_message *message = message_of(&transfer->out, number);
    const struct transport_message *what = &message->what;
    traffic_add(&ring->base.traffic, ring->comm, what->peer, what->bytes, what->plain);
    if (message->shared) {
        wait_for_notice(transfer, message);
        message->place = (struct slot_notice){number % SLOTS, (int64_t)what->bytes};
        post_receive(transfer, what->peer, NULL, 0, TAG_READ, &message->request);
        notify(transfer, message, &message->place, sizeof message->place, TAG);
        return;
    }
    const void *from = ring->through_host ? ring_slot(ring, ring->out_slots, number) : what->memory;
    post_send(transfer, what->peer, from, what->bytes, TAG, &message->request);
}

static void advance_out(struct ring_transfer *transfer)
{
    struct ring *ring = transfer->ring;
    struct ring_direction *out = &transfer->out;
    size_t none;
    if (!out->ended && out->taken - out->passed < SLOTS && name_message(transfer, out, true) && ring->through_host) {
        const int64_t number = out->taken - 1;
        const struct transport_message *what = &message_of(out, number)->what;
        begin_message_copy(transfer, STREAM_OUT, ring->out_event[number % SLOTS],
                           ring_slot(ring, ring->out_slots, number), what->memory, what->bytes);
    }
    if (!ring->through_host)
        out->copied = out->taken;
    else if (out->copied < out->taken && message_copy_done(transfer, ring->out_event[out->copied % SLOTS]))
        out->copied++;
    if (out->posted < out->copied)
        post_out(transfer, out->posted++);
    if (out->passed < out->posted && pass_oldest(transfer, out, &none))
        out->passed++;
}

/* May incoming chunk `number` be written over the outgoing one of its number? */
static bool may_overwrite(const struct ring_transfer *transfer, int64_t number)
{
    const struct ring_direction *out = &transfer->out;
    if (!transfer->in_place || (out->ended && number >= out->taken))
        return true;
    return number < (transfer->ring->through_host ? out->copied : out->passed);
}

static void post_in(struct ring_transfer *transfer, int64_t number, bool through_slot)
{
    struct ring *ring = transfer->ring;
    struct ring_message *message = message_of(&transfer->in, number);
    const struct transport_message *what = &message->what;
    if (message->shared) {
        post_receive(transfer, what->peer, &message->place, sizeof message->place, TAG, &message->request);
        return;
    }
    void *to = through_slot ? ring_slot(ring, ring->in_slots, number) : what->memory;
    post_receive(transfer, what->peer, to, what->bytes, TAG, &message->request);
}

/* A message has come: begin to copy it to where it belongs. */
static void copy_in(struct ring_transfer *transfer, int64_t number)
{
    struct ring *ring = transfer->ring;
    const struct ring_message *message = message_of(&transfer->in, number);
    const char *from = message->shared ? ring_slot(ring, message->shared, message->place.slot)
                                       : ring_slot(ring, ring->in_slots, number);
    begin_message_copy(transfer, STREAM_IN, ring->in_event[number % SLOTS], message->what.memory, from,
                       message->what.bytes);
}

/* Note the bytes of a message that has come: never more than it may have, whatever a failed rank has sent. */
static void book_arrival(struct ring_message *message, size_t bytes)
{
    if (message->shared)
        bytes = message->place.bytes >= 0 ? (size_t)message->place.bytes : 0;
    message->what.bytes = lesser_bytes(message->what.bytes, bytes);
}

static void finish_in(struct ring_transfer *transfer)
{
    struct ring_direction *in = &transfer->in;
    struct ring_message *message = message_of(in, in->copied++);
    if (message->shared)
        notify(transfer, message, NULL, 0, TAG_READ);
    if (transfer->user.received)
        transfer->user.received(transfer->user.user, message->what.bytes);
}

static void advance_in(struct ring_transfer *transfer)
{
    struct ring *ring = transfer->ring;
    struct ring_direction *in = &transfer->in;
    const bool through_slot = ring->through_host || transfer->in_place;
    size_t bytes = 0;
    if (!in->ended && in->taken - in->copied < SLOTS && name_message(transfer, in, false))
        post_in(transfer, in->taken - 1, through_slot);
    if (in->passed < in->taken && pass_oldest(transfer, in, &bytes))
        book_arrival(message_of(in, in->passed++), bytes);
    if (!through_slot) {
        if (in->copied < in->passed)
            finish_in(transfer);
        return;
    }
    if (in->copied_begun < in->passed && may_overwrite(transfer, in->copied_begun))
        copy_in(transfer, in->copied_begun++);
    if (in->copied < in->copied_begun && message_copy_done(transfer, ring->in_event[in->copied % SLOTS]))
        finish_in(transfer);
}

/* ---- a transfer ------------------------------------------------------------------------------------------- */

static void begin_transfer(struct ring *ring, const struct transport_stream *user, bool in_place,
                           struct ring_transfer *transfer)
{
    *transfer = (struct ring_transfer){
        .ring = ring, .user = *user, .in_place = in_place, .began = MPI_Wtime(), .status = HSORT_OK};
    for (int i = 0; i < SLOTS; i++)
        transfer->out.message[i].notice = transfer->in.message[i].notice = MPI_REQUEST_NULL;
}

static bool transfer_is_done(const struct ring_transfer *transfer)
{
    const struct ring_direction *out = &transfer->out, *in = &transfer->in;
    return out->ended && in->ended && out->passed == out->taken && in->copied == in->taken;
}

static hsort_status end_transfer(struct ring_transfer *transfer)
{
    struct ring *ring = transfer->ring;
    while (!transfer_is_done(transfer)) {
        advance_out(transfer);
        advance_in(transfer);
    }
    keep_first_error(&transfer->status, ring->engine->ops->stream_synchronize(ring->engine, STREAM_IN));
    for (int i = 0; i < SLOTS; i++) {
        wait_for_notice(transfer, &transfer->out.message[i]);
        wait_for_notice(transfer, &transfer->in.message[i]);
    }
    ring->base.traffic.seconds += MPI_Wtime() - transfer->began;
    return transfer->status;
}

static hsort_status ring_stream_begin(struct transport *transport, const struct transport_stream *stream)
{
    struct ring *ring = (struct ring *)transport;
    begin_transfer(ring, stream, false, &ring->stream);
    return HSORT_OK;
}

static hsort_status ring_stream_advance(struct transport *transport)
{
    struct ring *ring = (struct ring *)transport;
    advance_out(&ring->stream);
    advance_in(&ring->stream);
    return ring->stream.status;
}

static hsort_status ring_stream_end(struct transport *transport)
{
    return end_transfer(&((struct ring *)transport)->stream);
}

/* ---- bytes of one place ------------------------------------------------------------------------------------ */

/* Engine memory that goes to a peer, or comes from it, chunk by chunk. */
struct chunked_bytes {
    int peer;
    char *memory; /* the rest of it */
    size_t bytes;
};

struct chunked_pair {
    size_t chunk_bytes;
    struct chunked_bytes out, in;
};

static enum transport_next next_chunk(struct chunked_bytes *rest, size_t most, struct transport_message *message)
{
    if (rest->bytes == 0)
        return NEXT_NONE;
    *message = (struct transport_message){
        .peer = rest->peer, .memory = rest->memory, .bytes = lesser_bytes(rest->bytes, most)};
    message->plain = message->bytes;
    rest->memory += message->bytes;
    rest->bytes -= message->bytes;
    return NEXT_MESSAGE;
}

static enum transport_next next_chunk_out(void *pair, struct transport_message *message)
{
    struct chunked_pair *chunked = pair;
    return next_chunk(&chunked->out, chunked->chunk_bytes, message);
}

static enum transport_next next_chunk_in(void *pair, struct transport_message *message)
{
    struct chunked_pair *chunked = pair;
    return next_chunk(&chunked->in, chunked->chunk_bytes, message);
}

static hsort_status ring_sendrecv(struct transport *transport, int to, const void *send, size_t send_bytes,
                                  int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    struct ring *ring = (struct ring *)transport;
    struct chunked_pair pair = {.chunk_bytes = ring->base.message_bytes,
                                .out = {to, (char *)send, send_bytes},
                                .in = {from, receive, receive_bytes}};
    const struct transport_stream chunks = {.send = next_chunk_out, .receive = next_chunk_in, .user = &pair};
    struct ring_transfer transfer;
    struct trace_span *span = trace_begin(ring->comm->trace, "send and receive");
    trace_transfer(span, to, send_bytes, from, receive_bytes);
    begin_transfer(ring, &chunks, send == receive, &transfer);
    // Kernels may still be writing what is to be sent, or reading what is to be overwritten.
    keep_first_error(&transfer.status, ring->engine->ops->stream_synchronize(ring->engine, STREAM_WORK));
    *moved_bytes += (int64_t)send_bytes;
    return trace_end_with(span, end_transfer(&transfer));
}

static void ring_close(struct transport *transport)
{
    struct ring *ring = (struct ring *)transport;
    const struct engine_ops *ops = ring->engine->ops;
    for (int i = 0; i < SLOTS; i++) {
        ops->event_destroy(ring->engine, ring->out_event[i]);
        ops->event_destroy(ring->engine, ring->in_event[i]);
    }
    if (ring->through_host) {
        if (!ring->shared.own)
            ops->free_host(ring->engine, ring->out_slots);
        shared_memory_close(&ring->shared);
        ops->free_host(ring->engine, ring->in_slots);
    } else {
        ops->free(ring->engine, ring->in_slots);
    }
    free(ring);
}

static hsort_status make_ring_slots(struct ring *ring)
{
    struct engine *engine = ring->engine;
    const size_t bytes = SLOTS * ring->base.message_bytes;
    for (int i = 0; i < SLOTS; i++) {
        TRY(engine->ops->event_create(engine, &ring->out_event[i]));
        TRY(engine->ops->event_create(engine, &ring->in_event[i]));
    }
    if (!ring->through_host)
        return engine->ops->alloc(engine, bytes, (void **)&ring->in_slots);
    ring->out_slots = ring->shared.own;
    if (!ring->out_slots)
        TRY(engine->ops->alloc_host(engine, bytes, (void **)&ring->out_slots));
    return engine->ops->alloc_host(engine, bytes, (void **)&ring->in_slots);
}

/* Open one of the two transports. shared: between ranks of a node that can share memory, the receiver reads the sender's
 * pinned memory. Collective if shared; in any case all ranks call it. Errors as for transport_open_staged(). */
static hsort_status open_ring(struct comm *comm, struct engine *engine, size_t chunk_bytes,
                              const struct transport_ops *ops, bool shared, struct transport **transport)
{
    *transport = NULL;
    if (chunk_bytes == 0)
        chunk_bytes = TRANSPORT_CHUNK_DEFAULT;
    if (chunk_bytes % 8 != 0 || chunk_bytes > CHUNK_MAX)
        return status_fail(HSORT_ARGUMENT, "a chunk of %zu bytes: wanted a multiple of 8, at most %d",
                           chunk_bytes, CHUNK_MAX);
    struct shared_memory slots = {0};
    if (shared) // collective, so before anything can fail on this rank alone
        TRY(shared_memory_open(comm, engine, SLOTS * chunk_bytes, &slots));
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring) {
        shared_memory_close(&slots);
        return status_fail(HSORT_HOST_MEMORY, "no memory for a transport");
    }
    ring->base.ops = ops;
    ring->comm = comm;
    ring->engine = engine;
    ring->base.message_bytes = chunk_bytes;
    ring->through_host = ops->kind == HSORT_TRANSPORT_STAGED;
    ring->shared = slots;
    hsort_status status = make_ring_slots(ring);
    if (status != HSORT_OK)
        ring_close(&ring->base);
    else
        *transport = &ring->base;
    return status;
}

/* The two transports differ in how a ring is opened. */
static const struct transport_ops staged_ops = {
    .kind = HSORT_TRANSPORT_STAGED,
    .sendrecv = ring_sendrecv,
    .stream_begin = ring_stream_begin,
    .stream_advance = ring_stream_advance,
    .stream_end = ring_stream_end,
    .close = ring_close,
};

static const struct transport_ops mpi_ops = {
    .kind = HSORT_TRANSPORT_MPI,
    .sendrecv = ring_sendrecv,
    .stream_begin = ring_stream_begin,
    .stream_advance = ring_stream_advance,
    .stream_end = ring_stream_end,
    .close = ring_close,
};

hsort_status transport_open_staged(struct comm *comm, struct engine *engine, size_t chunk_bytes, bool shared,
                                   struct transport **transport)
{
    return open_ring(comm, engine, chunk_bytes, &staged_ops, shared, transport);
}

hsort_status transport_open_mpi(struct comm *comm, struct engine *engine, size_t chunk_bytes,
                                struct transport **transport)
{
    return open_ring(comm, engine, chunk_bytes, &mpi_ops, false, transport);
}
