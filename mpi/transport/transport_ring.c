/* A transfer is two directions of chunks. Each chunk takes these steps, always in order of its number, and
 * SLOTS chunks of each direction may be under way:
 *
 *     out   engine memory --copy--> slot --Isend--> peer     (not through_host: Isend straight from memory)
 *     in    peer --Irecv--> slot --copy--> engine memory     (not in place and not through_host: no slot)
 *
 * or, between ranks of a node that share their slots (shared_slots.h), where MPI carries empty messages only:
 *
 *     out   engine memory --copy--> slot     "it is there" -->     <-- "it was read": the slot is free again
 *     in                      the peer's slot --copy--> engine memory
 *
 *     chunk      0     1     2     3     4     5        SLOTS = 4; below, the step that the chunk has reached
 *     out      sent  sent  Isend copy  copy   -
 *     in       done  copy  here  Irecv Irecv  -
 *
 * In place, incoming chunk i overwrites outgoing chunk i: its copy waits until that one has left. This cannot
 * deadlock: chunk i waits at most for the peer's chunks up to i, and those only for ours up to i - SLOTS.
 *
 * Why polling and not MPI_Waitall: MPI makes progress only when called, and does not know of the engine's
 * copies, so one loop asks both. A rank that fails goes on with its chunks, whatever they hold, and reports
 * at the end. */
#include "kernels/base/first_error.h"
#include "mpi/transport/transport_ring.h"
#include "mpi/transport/shared_slots.h"
#include <stdlib.h>

enum { SLOTS = TRANSPORT_CHUNKS_IN_FLIGHT, TAG = 1, TAG_READ = 4, CHUNK_MAX = 1 << 30 };

struct ring {
    struct transport base;
    struct comm *comm;
    struct engine *engine;
    size_t chunk_bytes;
    bool through_host;
    struct shared_slots shared; /* when through_host */
    char *out_slots;            /* [SLOTS * chunk_bytes] when through_host: shared.own, if there is one */
    char *in_slots;             /* [SLOTS * chunk_bytes] */
    struct engine_event *out_event[SLOTS], *in_event[SLOTS];
};

/* The chunks of one direction. The counters say how many have completed each step, so first >= second >=
 * third. */
struct ring_direction {
    int peer;
    char *memory; /* [bytes] engine memory */
    size_t bytes;
    int64_t chunks;
    int64_t copied_begun, copied, posted, passed; /* passed: MPI has finished with the chunk */
    MPI_Request request[SLOTS];
    char *shared;              /* slots of the sender, which both see; NULL: chunks go by MPI */
    MPI_Request notice[SLOTS]; /* then, the empty messages that this rank has sent for them */
};

struct ring_transfer {
    struct ring *ring;
    struct ring_direction out, in;
    bool in_place;
    hsort_status status;
};

static size_t chunk_offset(const struct ring_transfer *transfer, int64_t chunk)
{
    return (size_t)chunk * transfer->ring->chunk_bytes;
}

static size_t chunk_size(const struct ring_transfer *transfer, const struct ring_direction *direction,
                         int64_t chunk)
{
    size_t rest = direction->bytes - chunk_offset(transfer, chunk);
    return rest < transfer->ring->chunk_bytes ? rest : transfer->ring->chunk_bytes;
}

static char *ring_slot(const struct ring_transfer *transfer, char *slots, int64_t chunk)
{
    return slots + (size_t)(chunk % SLOTS) * transfer->ring->chunk_bytes;
}

static void begin_chunk_copy(struct ring_transfer *transfer, enum engine_stream stream,
                             struct engine_event *event, void *to, const void *from, size_t bytes)
{
    struct engine *engine = transfer->ring->engine;
    keep_first_error(&transfer->status, engine->ops->copy(engine, stream, to, from, bytes));
    keep_first_error(&transfer->status, engine->ops->event_record(engine, event, stream));
}

static bool chunk_copy_done(struct ring_transfer *transfer, struct engine_event *event)
{
    bool done = true;
    hsort_status status = transfer->ring->engine->ops->event_done(transfer->ring->engine, event, &done);
    keep_first_error(&transfer->status, status);
    return done || status != HSORT_OK;
}

/* Notify the peer that `chunk` is there, or was read. */
static void notify(struct ring_transfer *transfer, struct ring_direction *direction, int64_t chunk, int tag)
{
    MPI_Request *notice = &direction->notice[chunk % SLOTS];
    keep_first_error(&transfer->status, comm_check(MPI_Wait(notice, MPI_STATUS_IGNORE), "MPI_Wait",
                                                   false)); // of SLOTS chunks ago
    keep_first_error(&transfer->status, comm_check(MPI_Isend(NULL, 0, MPI_BYTE, direction->peer, tag,
                                                             transfer->ring->comm->world, notice),
                                                   "MPI_Isend", true));
}

/* Post the receive of a notice of `chunk` from the peer. */
static void expect_notice(struct ring_transfer *transfer, struct ring_direction *direction, int64_t chunk,
                          int tag)
{
    keep_first_error(&transfer->status,
                     comm_check(MPI_Irecv(NULL, 0, MPI_BYTE, direction->peer, tag,
                                          transfer->ring->comm->world, &direction->request[chunk % SLOTS]),
                                "MPI_Irecv", true));
}

/* Has MPI finished with the oldest chunk it was given? */
static bool pass_oldest(struct ring_transfer *transfer, struct ring_direction *direction)
{
    int flag = 1;
    keep_first_error(&transfer->status, comm_check(MPI_Test(&direction->request[direction->passed % SLOTS],
                                                            &flag, MPI_STATUS_IGNORE),
                                                   "MPI_Test", false));
    return flag != 0;
}

static void post_out(struct ring_transfer *transfer, int64_t chunk)
{
    struct ring *ring = transfer->ring;
    struct ring_direction *out = &transfer->out;
    if (out->shared) {
        expect_notice(transfer, out, chunk, TAG_READ);
        notify(transfer, out, chunk, TAG);
        return;
    }
    char *from = ring->through_host ? ring_slot(transfer, ring->out_slots, chunk)
                                    : out->memory + chunk_offset(transfer, chunk);
    keep_first_error(&transfer->status,
                     comm_check(MPI_Isend(from, (int)chunk_size(transfer, out, chunk), MPI_BYTE, out->peer,
                                          TAG, ring->comm->world, &out->request[chunk % SLOTS]),
                                "MPI_Isend", true));
}

static void advance_out(struct ring_transfer *transfer)
{
    struct ring *ring = transfer->ring;
    struct ring_direction *out = &transfer->out;
    if (ring->through_host) {
        if (out->copied_begun < out->chunks && out->copied_begun - out->passed < SLOTS) {
            int64_t chunk = out->copied_begun++;
            begin_chunk_copy(transfer, STREAM_OUT, ring->out_event[chunk % SLOTS],
                             ring_slot(transfer, ring->out_slots, chunk),
                             out->memory + chunk_offset(transfer, chunk), chunk_size(transfer, out, chunk));
        }
        if (out->copied < out->copied_begun &&
            chunk_copy_done(transfer, ring->out_event[out->copied % SLOTS]))
            out->copied++;
    } else {
        out->copied = out->chunks;
    }
    if (out->posted < out->copied && out->posted - out->passed < SLOTS)
        post_out(transfer, out->posted++);
    if (out->passed < out->posted && pass_oldest(transfer, out))
        out->passed++;
}

/* May incoming chunk `chunk` be written over the outgoing one of its number? */
static bool may_overwrite(const struct ring_transfer *transfer, int64_t chunk)
{
    if (!transfer->in_place || chunk >= transfer->out.chunks)
        return true;
    return chunk < (transfer->ring->through_host ? transfer->out.copied : transfer->out.passed);
}

static void post_in(struct ring_transfer *transfer, int64_t chunk, bool through_slot)
{
    struct ring *ring = transfer->ring;
    struct ring_direction *in = &transfer->in;
    if (in->shared) {
        expect_notice(transfer, in, chunk, TAG);
        return;
    }
    char *to = through_slot ? ring_slot(transfer, ring->in_slots, chunk)
                            : in->memory + chunk_offset(transfer, chunk);
    keep_first_error(&transfer->status,
                     comm_check(MPI_Irecv(to, (int)chunk_size(transfer, in, chunk), MPI_BYTE, in->peer, TAG,
                                          ring->comm->world, &in->request[chunk % SLOTS]),
                                "MPI_Irecv", true));
}

static void advance_in(struct ring_transfer *transfer)
{
    struct ring *ring = transfer->ring;
    struct ring_direction *in = &transfer->in;
    const bool through_slot = ring->through_host || transfer->in_place;
    if (in->posted < in->chunks && in->posted - in->copied < SLOTS)
        post_in(transfer, in->posted++, through_slot);
    if (in->passed < in->posted && pass_oldest(transfer, in))
        in->passed++;
    if (!through_slot) {
        in->copied = in->passed;
        return;
    }
    if (in->copied_begun < in->passed && may_overwrite(transfer, in->copied_begun)) {
        int64_t chunk = in->copied_begun++;
        begin_chunk_copy(transfer, STREAM_IN, ring->in_event[chunk % SLOTS],
                         in->memory + chunk_offset(transfer, chunk),
                         ring_slot(transfer, in->shared ? in->shared : ring->in_slots, chunk),
                         chunk_size(transfer, in, chunk));
    }
    if (in->copied < in->copied_begun && chunk_copy_done(transfer, ring->in_event[in->copied % SLOTS])) {
        if (in->shared)
            notify(transfer, in, in->copied, TAG_READ);
        in->copied++;
    }
}

static struct ring_direction make_direction(const struct ring *ring, int peer, const void *memory,
                                            size_t bytes)
{
    struct ring_direction direction = {.peer = peer, .memory = (char *)memory, .bytes = bytes};
    direction.chunks = (int64_t)((bytes + ring->chunk_bytes - 1) / ring->chunk_bytes);
    for (int i = 0; i < SLOTS; i++)
        direction.request[i] = direction.notice[i] = MPI_REQUEST_NULL;
    return direction;
}

/* The sender's slots between this rank and `peer`, if both see them. */
static char *shared_by(struct ring *ring, int peer, bool sends)
{
    char *theirs = shared_slots_of(&ring->shared, peer);
    return theirs && sends ? ring->shared.own : theirs;
}

static void end_notices(struct ring_transfer *transfer, struct ring_direction *direction)
{
    keep_first_error(&transfer->status, comm_check(MPI_Waitall(SLOTS, direction->notice, MPI_STATUSES_IGNORE),
                                                   "MPI_Waitall", false));
}

hsort_status transport_ring_sendrecv(struct transport *transport, int to, const void *send, size_t send_bytes,
                                     int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    struct ring *ring = (struct ring *)transport;
    struct ring_transfer transfer = {.ring = ring,
                                     .out = make_direction(ring, to, send, send_bytes),
                                     .in = make_direction(ring, from, receive, receive_bytes),
                                     .in_place = send == receive,
                                     .status = HSORT_OK};
    const double start = MPI_Wtime();
    if (send_bytes > 0)
        transfer.out.shared = shared_by(ring, to, true);
    if (receive_bytes > 0)
        transfer.in.shared = shared_by(ring, from, false);
    // Kernels may still be writing what is to be sent, or reading what is to be overwritten.
    keep_first_error(&transfer.status, ring->engine->ops->stream_synchronize(ring->engine, STREAM_WORK));
    while (transfer.out.passed < transfer.out.chunks || transfer.in.copied < transfer.in.chunks) {
        advance_out(&transfer);
        advance_in(&transfer);
    }
    keep_first_error(&transfer.status, ring->engine->ops->stream_synchronize(ring->engine, STREAM_IN));
    end_notices(&transfer, &transfer.out);
    end_notices(&transfer, &transfer.in);
    *moved_bytes += (int64_t)send_bytes;
    transport->traffic.bytes += (int64_t)send_bytes;
    transport->traffic.seconds += MPI_Wtime() - start;
    return transfer.status;
}

void transport_ring_close(struct transport *transport)
{
    struct ring *ring = (struct ring *)transport;
    if (!ring)
        return;
    const struct engine_ops *ops = ring->engine->ops;
    for (int i = 0; i < SLOTS; i++) {
        ops->event_destroy(ring->engine, ring->out_event[i]);
        ops->event_destroy(ring->engine, ring->in_event[i]);
    }
    if (ring->through_host) {
        if (!ring->shared.own)
            ops->free_host(ring->engine, ring->out_slots);
        shared_slots_close(&ring->shared);
        ops->free_host(ring->engine, ring->in_slots);
    } else {
        ops->free(ring->engine, ring->in_slots);
    }
    free(ring);
}

static hsort_status make_ring_slots(struct ring *ring)
{
    struct engine *engine = ring->engine;
    const size_t bytes = SLOTS * ring->chunk_bytes;
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

hsort_status transport_open_ring(struct comm *comm, struct engine *engine, size_t chunk_bytes,
                                 const struct transport_ops *ops, bool through_host, bool shared,
                                 struct transport **transport)
{
    *transport = NULL;
    if (chunk_bytes == 0)
        chunk_bytes = TRANSPORT_CHUNK_DEFAULT;
    if (chunk_bytes % 8 != 0 || chunk_bytes > CHUNK_MAX)
        return status_fail(HSORT_ARGUMENT, "a chunk of %zu bytes: wanted a multiple of 8, at most %d",
                           chunk_bytes, CHUNK_MAX);
    struct shared_slots slots = {0};
    if (shared) // collective, so before anything can fail on this rank alone
        TRY(shared_slots_open(comm, engine, SLOTS * chunk_bytes, &slots));
    struct ring *ring = calloc(1, sizeof *ring);
    if (!ring) {
        shared_slots_close(&slots);
        return status_fail(HSORT_HOST_MEMORY, "no memory for a transport");
    }
    ring->base.ops = ops;
    ring->comm = comm;
    ring->engine = engine;
    ring->chunk_bytes = chunk_bytes;
    ring->through_host = through_host;
    ring->shared = slots;
    hsort_status status = make_ring_slots(ring);
    if (status != HSORT_OK)
        transport_ring_close(&ring->base);
    else
        *transport = &ring->base;
    return status;
}
