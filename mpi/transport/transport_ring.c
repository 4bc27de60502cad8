/* A swap as two rows of pieces. Each piece takes these steps, always in order of its number, and SLOTS pieces of each
 * row may be on their way:
 *
 *     out   engine memory --copy--> slot --Isend--> peer                  (through_host; else Isend straight from memory)
 *     in    peer --Irecv--> slot --copy--> engine memory                  (not in place and not through_host: no slot)
 *
 * or, between ranks of a node that share their slots (shared_slots.h), where MPI carries empty messages only:
 *
 *     out   engine memory --copy--> slot     "it is there"  -->           <-- "it was read": the slot is free again
 *     in                      the peer's slot --copy--> engine memory
 *
 *     piece      0     1     2     3     4     5        SLOTS = 4; a number is the step that the piece has reached
 *     out      sent  sent  Isend copy  copy   -
 *     in       done  copy  here  Irecv Irecv  -
 *
 * In place, piece i of the incoming row overwrites piece i of the outgoing one: its copy waits until that one has left.
 * This cannot lock up: piece i waits at most for the peer's pieces up to i, and those only for ours up to i - SLOTS.
 *
 * Why polling and not MPI_Waitall: MPI makes progress only when called, and the copies of the engine are not known to
 * it, so one loop asks both. A rank that fails goes on with its pieces, whatever they hold, and reports at the end. */
#include "kernels/base/first_error.h"
#include "mpi/transport/transport_ring.h"
#include "mpi/transport/shared_slots.h"
#include <stdlib.h>

enum { SLOTS = TRANSPORT_CHUNKS_IN_FLIGHT, TAG = 1, TAG_READ = 4, PIECE_MAX = 1 << 30 };

struct ring {
    struct transport base;
    struct comm *comm;
    struct engine *engine;
    size_t chunk_bytes;
    bool through_host;
    struct shared_slots shared; /* when through_host */
    char *out_slots;            /* [SLOTS * chunk_bytes] when through_host: shared.own, if there is one */
    char *in_slots;             /* [SLOTS * chunk_bytes] */
    struct engine_event *out_mark[SLOTS], *in_mark[SLOTS];
};

/* One row of pieces. The counters say how many pieces have completed each step, so first >= second >= third. */
struct row {
    int peer;
    char *memory; /* [bytes] engine memory */
    size_t bytes;
    int64_t pieces;
    int64_t copied_begun, copied, posted, passed; /* passed: MPI has finished with the piece */
    MPI_Request request[SLOTS];
    char *shared;              /* slots of the sender, which both see; NULL: pieces go by MPI */
    MPI_Request notice[SLOTS]; /* then, the empty messages that this rank has sent for them */
};

struct swap {
    struct ring *ring;
    struct row out, in;
    bool in_place;
    hsort_status status;
};

static size_t piece_offset(const struct swap *swap, int64_t piece)
{
    return (size_t)piece * swap->ring->chunk_bytes;
}

static size_t piece_size(const struct swap *swap, const struct row *row, int64_t piece)
{
    size_t rest = row->bytes - piece_offset(swap, piece);
    return rest < swap->ring->chunk_bytes ? rest : swap->ring->chunk_bytes;
}

static char *slot_of(const struct swap *swap, char *slots, int64_t piece)
{
    return slots + (size_t)(piece % SLOTS) * swap->ring->chunk_bytes;
}

static void copy_begin(struct swap *swap, enum engine_stream stream, struct engine_event *mark, void *to,
                       const void *from, size_t bytes)
{
    struct engine *engine = swap->ring->engine;
    keep_first_error(&swap->status, engine->ops->copy(engine, stream, to, from, bytes));
    keep_first_error(&swap->status, engine->ops->event_record(engine, mark, stream));
}

static bool copy_done(struct swap *swap, struct engine_event *mark)
{
    bool done = true;
    hsort_status status = swap->ring->engine->ops->event_done(swap->ring->engine, mark, &done);
    keep_first_error(&swap->status, status);
    return done || status != HSORT_OK;
}

/* Tell the peer that `piece` is there, or was read. */
static void notify(struct swap *swap, struct row *row, int64_t piece, int tag)
{
    MPI_Request *notice = &row->notice[piece % SLOTS];
    keep_first_error(&swap->status, comm_check(MPI_Wait(notice, MPI_STATUS_IGNORE), "MPI_Wait", false)); // of SLOTS pieces ago
    keep_first_error(&swap->status, comm_check(MPI_Isend(NULL, 0, MPI_BYTE, row->peer, tag, swap->ring->comm->world, notice),
                          "MPI_Isend", true));
}

/* Wait for word of `piece` from the peer. */
static void await_notice(struct swap *swap, struct row *row, int64_t piece, int tag)
{
    keep_first_error(&swap->status, comm_check(MPI_Irecv(NULL, 0, MPI_BYTE, row->peer, tag, swap->ring->comm->world,
                                    &row->request[piece % SLOTS]),
                          "MPI_Irecv", true));
}

/* Has MPI finished with the oldest piece it was given? */
static bool pass_oldest(struct swap *swap, struct row *row)
{
    int flag = 1;
    keep_first_error(&swap->status, comm_check(MPI_Test(&row->request[row->passed % SLOTS], &flag, MPI_STATUS_IGNORE), "MPI_Test",
                          false));
    return flag != 0;
}

static void post_out(struct swap *swap, int64_t piece)
{
    struct ring *ring = swap->ring;
    struct row *out = &swap->out;
    if (out->shared) {
        await_notice(swap, out, piece, TAG_READ);
        notify(swap, out, piece, TAG);
        return;
    }
    char *from =
        ring->through_host ? slot_of(swap, ring->out_slots, piece) : out->memory + piece_offset(swap, piece);
    keep_first_error(&swap->status, comm_check(MPI_Isend(from, (int)piece_size(swap, out, piece), MPI_BYTE, out->peer, TAG,
                                    ring->comm->world, &out->request[piece % SLOTS]),
                          "MPI_Isend", true));
}

static void advance_out(struct swap *swap)
{
    struct ring *ring = swap->ring;
    struct row *out = &swap->out;
    if (ring->through_host) {
        if (out->copied_begun < out->pieces && out->copied_begun - out->passed < SLOTS) {
            int64_t piece = out->copied_begun++;
            copy_begin(swap, STREAM_OUT, ring->out_mark[piece % SLOTS], slot_of(swap, ring->out_slots, piece),
                       out->memory + piece_offset(swap, piece), piece_size(swap, out, piece));
        }
        if (out->copied < out->copied_begun && copy_done(swap, ring->out_mark[out->copied % SLOTS]))
            out->copied++;
    } else {
        out->copied = out->pieces;
    }
    if (out->posted < out->copied && out->posted - out->passed < SLOTS)
        post_out(swap, out->posted++);
    if (out->passed < out->posted && pass_oldest(swap, out))
        out->passed++;
}

/* May incoming piece `piece` be written over the outgoing one of the same place? */
static bool place_is_free(const struct swap *swap, int64_t piece)
{
    if (!swap->in_place || piece >= swap->out.pieces)
        return true;
    return piece < (swap->ring->through_host ? swap->out.copied : swap->out.passed);
}

static void post_in(struct swap *swap, int64_t piece, bool through_slot)
{
    struct ring *ring = swap->ring;
    struct row *in = &swap->in;
    if (in->shared) {
        await_notice(swap, in, piece, TAG);
        return;
    }
    char *to = through_slot ? slot_of(swap, ring->in_slots, piece) : in->memory + piece_offset(swap, piece);
    keep_first_error(&swap->status, comm_check(MPI_Irecv(to, (int)piece_size(swap, in, piece), MPI_BYTE, in->peer, TAG,
                                    ring->comm->world, &in->request[piece % SLOTS]),
                          "MPI_Irecv", true));
}

static void advance_in(struct swap *swap)
{
    struct ring *ring = swap->ring;
    struct row *in = &swap->in;
    const bool through_slot = ring->through_host || swap->in_place;
    if (in->posted < in->pieces && in->posted - in->copied < SLOTS)
        post_in(swap, in->posted++, through_slot);
    if (in->passed < in->posted && pass_oldest(swap, in))
        in->passed++;
    if (!through_slot) {
        in->copied = in->passed;
        return;
    }
    if (in->copied_begun < in->passed && place_is_free(swap, in->copied_begun)) {
        int64_t piece = in->copied_begun++;
        copy_begin(swap, STREAM_IN, ring->in_mark[piece % SLOTS], in->memory + piece_offset(swap, piece),
                   slot_of(swap, in->shared ? in->shared : ring->in_slots, piece),
                   piece_size(swap, in, piece));
    }
    if (in->copied < in->copied_begun && copy_done(swap, ring->in_mark[in->copied % SLOTS])) {
        if (in->shared)
            notify(swap, in, in->copied, TAG_READ);
        in->copied++;
    }
}

static struct row row_of(const struct ring *ring, int peer, const void *memory, size_t bytes)
{
    struct row row = {.peer = peer, .memory = (char *)memory, .bytes = bytes};
    row.pieces = (int64_t)((bytes + ring->chunk_bytes - 1) / ring->chunk_bytes);
    for (int i = 0; i < SLOTS; i++)
        row.request[i] = row.notice[i] = MPI_REQUEST_NULL;
    return row;
}

/* The slots that pieces between this rank and `peer` lie in, the sender's, if both see them. */
static char *shared_by(struct ring *ring, int peer, bool sends)
{
    char *theirs = shared_slots_of(&ring->shared, peer);
    return theirs && sends ? ring->shared.own : theirs;
}

static void end_notices(struct swap *swap, struct row *row)
{
    keep_first_error(&swap->status, comm_check(MPI_Waitall(SLOTS, row->notice, MPI_STATUSES_IGNORE), "MPI_Waitall", false));
}

hsort_status transport_ring_sendrecv(struct transport *transport, int to, const void *send, size_t send_bytes,
                                 int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    struct ring *ring = (struct ring *)transport;
    struct swap swap = {.ring = ring,
                        .out = row_of(ring, to, send, send_bytes),
                        .in = row_of(ring, from, receive, receive_bytes),
                        .in_place = send == receive,
                        .status = HSORT_OK};
    const double start = MPI_Wtime();
    if (send_bytes > 0)
        swap.out.shared = shared_by(ring, to, true);
    if (receive_bytes > 0)
        swap.in.shared = shared_by(ring, from, false);
    // Kernels may still be writing what is to be sent, or reading what is to be overwritten.
    keep_first_error(&swap.status, ring->engine->ops->stream_synchronize(ring->engine, STREAM_WORK));
    while (swap.out.passed < swap.out.pieces || swap.in.copied < swap.in.pieces) {
        advance_out(&swap);
        advance_in(&swap);
    }
    keep_first_error(&swap.status, ring->engine->ops->stream_synchronize(ring->engine, STREAM_IN));
    end_notices(&swap, &swap.out);
    end_notices(&swap, &swap.in);
    *moved_bytes += (int64_t)send_bytes;
    transport->traffic.bytes += (int64_t)send_bytes;
    transport->traffic.seconds += MPI_Wtime() - start;
    return swap.status;
}

void transport_ring_close(struct transport *transport)
{
    struct ring *ring = (struct ring *)transport;
    if (!ring)
        return;
    const struct engine_ops *ops = ring->engine->ops;
    for (int i = 0; i < SLOTS; i++) {
        ops->event_destroy(ring->engine, ring->out_mark[i]);
        ops->event_destroy(ring->engine, ring->in_mark[i]);
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

static hsort_status make_slots(struct ring *ring)
{
    struct engine *engine = ring->engine;
    const size_t bytes = SLOTS * ring->chunk_bytes;
    for (int i = 0; i < SLOTS; i++) {
        TRY(engine->ops->event_create(engine, &ring->out_mark[i]));
        TRY(engine->ops->event_create(engine, &ring->in_mark[i]));
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
    if (chunk_bytes % 8 != 0 || chunk_bytes > PIECE_MAX)
        return status_fail(HSORT_ARGUMENT, "a piece of %zu bytes: wanted a multiple of 8, at most %d",
                           chunk_bytes, PIECE_MAX);
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
    hsort_status status = make_slots(ring);
    if (status != HSORT_OK)
        transport_ring_close(&ring->base);
    else
        *transport = &ring->base;
    return status;
}
