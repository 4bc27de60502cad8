/* Ranks of one node read each other's engine memory. A rank sends its peer a header that says where its bytes
 * lie; the peer maps that memory (engine.h: struct engine_peer_ops) and fetches them itself, with one copy or
 * with the kernel that needs them:
 *
 *     rank 0   header: bytes are at H+o  ---->  rank 1   opens H once, keeps it        copies from mapped H+o
 *              header: bytes are at K+p  <----
 *              copies from mapped K+p                    "I have read them"  <--->  "I have read them"
 *
 * The receiver fetches, and the sender does not deliver: then the receiver's own streams say when the bytes
 * have come, and it need not say where they may go.
 *
 * Pairs that do not map each other, memory that cannot be mapped (the caller's own may be of any kind), and
 * transfers in place are served by another transport. In place, a rank would overwrite bytes that its peer
 * has yet to fetch. Both sides of a pair must use the same transport, so each says whether it could open the
 * other's memory.
 *
 * A failed rank sends the same messages; its peers read whatever lies there. */
#include "mpi/transport/transport.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/transport/ipc_probe.h"
#include "mpi/transport/shared_memory.h"

enum { TAG_HEADER = 11, TAG_FETCHED = 12, TAG_PAIR = 13 };

/* What a rank shares of itself with its node. */
struct shared_turn {
    uint64_t name;       /* shared_memory_open()'s */
    atomic_int is_taken; /* some rank reads this one's memory */
};

/* An allocation of a peer's, mapped here. */
struct peer_mapping {
    int peer;
    bool lasting;
    unsigned char allocation[sizeof((struct engine_peer_handle *)0)->allocation];
    void *memory;
    struct peer_mapping *older;
};

struct ipc {
    struct transport base;
    struct comm *comm;
    struct engine *engine;
    bool *maps; /* [size] peers with which memory is mapped, both ways */
    struct peer_mapping *mappings;
    struct shared_memory turns; /* a struct shared_turn of each rank; none: all read when they like */
    int exposed;          /* calls of expose() that have not been ended by conceal() */
    double exposed_since; /* the first of them */
};

enum header_kind {
    HEADER_UNMAPPABLE, /* memory that cannot be mapped */
    HEADER_EMPTY,      /* no bytes */
    HEADER_MEMORY
};

/* Where a rank's bytes lie. */
struct memory_header {
    int32_t kind;
    struct engine_peer_handle handle;
};

static const char no_bytes; /* what a header of none points to */

/* ---- mappings ------------------------------------------------------------------------------------------ */

static struct memory_header describe_memory(struct ipc *ipc, const void *memory, size_t bytes)
{
    struct memory_header header = {.kind = HEADER_EMPTY};
    if (bytes > 0)
        header.kind = ipc->engine->ops->peer->export_memory(ipc->engine, memory, &header.handle) == HSORT_OK
                          ? HEADER_MEMORY
                          : HEADER_UNMAPPABLE;
    return header;
}

static struct peer_mapping *find_peer_mapping(const struct ipc *ipc, int peer,
                                              const struct engine_peer_handle *handle)
{
    struct peer_mapping *mapping = ipc->mappings;
    while (mapping && (mapping->peer != peer ||
                       memcmp(mapping->allocation, handle->allocation, sizeof mapping->allocation) != 0))
        mapping = mapping->older;
    return mapping;
}

/* Map an allocation of `peer`, or find that it is mapped already. NULL if it cannot be mapped, which is no failure:
 * the other transport serves it. */
static struct peer_mapping *map_peer_memory(struct ipc *ipc, int peer,
                                            const struct engine_peer_handle *handle)
{
    struct peer_mapping *mapping = find_peer_mapping(ipc, peer, handle);
    if (mapping)
        return mapping;
    const bool failed_before = status_text()[0] != '\0';
    mapping = malloc(sizeof *mapping);
    if (!mapping)
        return NULL;
    *mapping = (struct peer_mapping){.peer = peer, .lasting = handle->lasting, .older = ipc->mappings};
    memcpy(mapping->allocation, handle->allocation, sizeof mapping->allocation);
    if (ipc->engine->ops->peer->open(ipc->engine, handle, &mapping->memory) != HSORT_OK) {
        if (!failed_before)
            status_clear();
        free(mapping);
        return NULL;
    }
    ipc->mappings = mapping;
    return mapping;
}

/* Where the memory of a peer's header can be read; NULL if it cannot be read. */
static const char *open_peer_memory(struct ipc *ipc, int peer, const struct memory_header *header)
{
    if (header->kind == HEADER_EMPTY)
        return &no_bytes;
    const struct peer_mapping *mapping =
        header->kind == HEADER_MEMORY ? map_peer_memory(ipc, peer, &header->handle) : NULL;
    return mapping ? (const char *)mapping->memory + header->handle.offset : NULL;
}

static void ipc_forget(struct transport *transport, enum transport_forget what)
{
    struct ipc *ipc = (struct ipc *)transport;
    struct peer_mapping **link = &ipc->mappings;
    while (*link) {
        struct peer_mapping *mapping = *link;
        if (what == FORGET_CALLERS && mapping->lasting) {
            link = &mapping->older;
            continue;
        }
        *link = mapping->older;
        ipc->engine->ops->peer->close(ipc->engine, mapping->memory);
        free(mapping);
    }
}

/* ---- both sides of a pair ------------------------------------------------------------------------------ */

/* Wait until the peer is here, too. Collective over the pair. */
static hsort_status pair_barrier(const struct ipc *ipc, int peer)
{
    int32_t here = 1, there = 0;
    return comm_sendrecv(ipc->comm, peer, &here, &there, sizeof here, TAG_PAIR);
}

/* Describe `memory` [bytes] to the peer, and open the peer's: *theirs is where to read it, NULL on both sides
 * if either cannot be opened. Collective over the pair. */
static hsort_status pair_open(struct ipc *ipc, int peer, const void *memory, size_t bytes,
                              const char **theirs)
{
    const struct memory_header own = describe_memory(ipc, memory, bytes);
    struct memory_header other = {.kind = HEADER_UNMAPPABLE};
    hsort_status status = comm_sendrecv(ipc->comm, peer, &own, &other, sizeof own, TAG_PAIR);
    const char *opened = open_peer_memory(ipc, peer, &other);
    int32_t can_read = opened != NULL, is_read = 0;
    keep_first_error(&status, comm_sendrecv(ipc->comm, peer, &can_read, &is_read, sizeof can_read, TAG_PAIR));
    *theirs = is_read ? opened : NULL;
    return status;
}

static hsort_status ipc_expose(struct transport *transport, int peer, const void *memory, size_t bytes,
                               const void **peer_memory)
{
    struct ipc *ipc = (struct ipc *)transport;
    const char *theirs;
    *peer_memory = NULL;
    if (!ipc->maps[peer])
        return HSORT_OK;
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(ipc->comm->trace, "show memory");
    trace_bytes(span, (int64_t)bytes); // not sent: whether the peer reads it all, only the caller knows
    if (span)
        span->to = peer;
    const hsort_status status = pair_open(ipc, peer, memory, bytes, &theirs);
    trace_end(span);
    *peer_memory = theirs;
    if (theirs) {
        transport->traffic.bytes += (int64_t)bytes;
        if (ipc->exposed++ == 0)
            ipc->exposed_since = start;
    }
    return status;
}

static hsort_status ipc_conceal(struct transport *transport, int peer)
{
    struct ipc *ipc = (struct ipc *)transport;
    hsort_status status = HSORT_OK;
    struct trace_span *span = trace_begin(ipc->comm->trace, "wait for readers");
    for (enum engine_stream stream = 0; stream < ENGINE_STREAMS; stream++)
        keep_first_error(&status, ipc->engine->ops->stream_synchronize(ipc->engine, stream));
    keep_first_error(&status, pair_barrier(ipc, peer));
    trace_end(span);
    if (--ipc->exposed == 0)
        transport->traffic.seconds += MPI_Wtime() - ipc->exposed_since;
    return status;
}

/* ---- turns --------------------------------------------------------------------------------------------- */

/* A peer's turn, or NULL: it shares none. */
static struct shared_turn *turn_of(const struct ipc *ipc, int peer)
{
    return ipc->turns.of ? (struct shared_turn *)ipc->turns.of[peer] : NULL;
}

static bool ipc_has_turns(const struct transport *transport)
{
    return ((const struct ipc *)transport)->turns.own != NULL;
}

static bool ipc_take_turn(struct transport *transport, int peer)
{
    struct shared_turn *turn = turn_of((const struct ipc *)transport, peer);
    return !turn || atomic_exchange(&turn->is_taken, true) == false;
}

static void ipc_give_turn(struct transport *transport, int peer)
{
    struct shared_turn *turn = turn_of((const struct ipc *)transport, peer);
    if (turn)
        atomic_store(&turn->is_taken, false);
}

/* ---- send and receive ---------------------------------------------------------------------------------- */

/* One direction of it: a header, and a flag when the bytes have been read or must come by the other
 * transport. The two directions may lead to different ranks, each of which may be reached by a different
 * transport:
 *
 *     rank r-1 ---header-->   rank r   ---header-->  rank r+1     all headers first, then all reading, then
 *              <---flag----            <---flag----               all flags; `other` does the rest
 *
 * A rank waits here only for what its peers do before they wait for it, so rings of ranks cannot deadlock. */
enum { REQUEST_HEADER, REQUEST_FLAG, REQUESTS };

struct ipc_direction {
    int peer;
    bool mapped;  /* a header is sent */
    int32_t read; /* the flag */
    struct memory_header header;
    MPI_Request requests[REQUESTS];
};

static struct ipc_direction direction_to(const struct ipc *ipc, int peer, size_t bytes)
{
    return (struct ipc_direction){.peer = peer,
                                  .mapped = bytes > 0 && ipc->maps[peer],
                                  .header = {.kind = HEADER_UNMAPPABLE},
                                  .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
}

static hsort_status begin_header(struct ipc *ipc, struct ipc_direction *out, const void *send, size_t bytes)
{
    out->header = describe_memory(ipc, send, bytes);
    hsort_status status = comm_irecv(ipc->comm, &out->read, sizeof out->read, out->peer, TAG_FETCHED,
                                     &out->requests[REQUEST_FLAG]);
    keep_first_error(&status, comm_isend(ipc->comm, &out->header, sizeof out->header, out->peer, TAG_HEADER,
                                         &out->requests[REQUEST_HEADER]));
    return status;
}

/* Read the peer's bytes into `receive`, and flag that. */
static hsort_status fetch_from(struct ipc *ipc, struct ipc_direction *in, void *receive, size_t bytes)
{
    const struct engine_ops *ops = ipc->engine->ops;
    hsort_status status = comm_irecv(ipc->comm, &in->header, sizeof in->header, in->peer, TAG_HEADER,
                                     &in->requests[REQUEST_HEADER]);
    keep_first_error(
        &status, comm_check(MPI_Wait(&in->requests[REQUEST_HEADER], MPI_STATUS_IGNORE), "MPI_Wait", true));
    const char *theirs = open_peer_memory(ipc, in->peer, &in->header);
    if (theirs) {
        keep_first_error(&status, ops->copy(ipc->engine, STREAM_IN, receive, theirs, bytes));
        keep_first_error(&status, ops->stream_synchronize(ipc->engine, STREAM_IN));
    }
    in->read = theirs != NULL; // also if the copy failed: the other transport would not do better
    keep_first_error(&status, comm_isend(ipc->comm, &in->read, sizeof in->read, in->peer, TAG_FETCHED,
                                         &in->requests[REQUEST_FLAG]));
    return status;
}

/* What could not be read goes by the other transport: *send_left, *receive_left bytes. */
static hsort_status sendrecv_mapped(struct ipc *ipc, int to, const void *send, size_t send_bytes, int from,
                                    void *receive, size_t receive_bytes, size_t *send_left,
                                    size_t *receive_left)
{
    struct ipc_direction out = direction_to(ipc, to, send_bytes), in = direction_to(ipc, from, receive_bytes);
    hsort_status status = HSORT_OK;
    if (out.mapped)
        keep_first_error(&status, begin_header(ipc, &out, send, send_bytes));
    if (in.mapped)
        keep_first_error(&status, fetch_from(ipc, &in, receive, receive_bytes));
    if (out.mapped)
        keep_first_error(&status, comm_check(MPI_Waitall(REQUESTS, out.requests, MPI_STATUSES_IGNORE),
                                             "MPI_Waitall", true));
    if (in.mapped)
        keep_first_error(&status, comm_check(MPI_Waitall(REQUESTS, in.requests, MPI_STATUSES_IGNORE),
                                             "MPI_Waitall", true));
    *send_left = out.read ? 0 : send_bytes;
    *receive_left = in.read ? 0 : receive_bytes;
    return status;
}

static hsort_status ipc_sendrecv(struct transport *transport, int to, const void *send, size_t send_bytes,
                                 int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    struct ipc *ipc = (struct ipc *)transport;
    struct transport *other = transport->other;
    const double start = MPI_Wtime();
    size_t send_left = send_bytes, receive_left = receive_bytes;
    int64_t counted = 0;
    struct trace_span *span = trace_begin(ipc->comm->trace, "read peer memory");
    // Kernels may still be writing what is to be sent, or reading what is to be overwritten.
    hsort_status status = ipc->engine->ops->stream_synchronize(ipc->engine, STREAM_WORK);
    if (send != receive || to != from)
        keep_first_error(&status, sendrecv_mapped(ipc, to, send, send_bytes, from, receive, receive_bytes,
                                                  &send_left, &receive_left));
    *moved_bytes += (int64_t)send_bytes;
    trace_transfer(span, to, send_bytes - send_left, from, receive_bytes - receive_left);
    trace_end(span);
    transport->traffic.bytes += (int64_t)(send_bytes - send_left);
    transport->traffic.seconds += MPI_Wtime() - start;
    if (send_left > 0 || receive_left > 0)
        keep_first_error(
            &status, other->ops->sendrecv(other, to, send, send_left, from, receive, receive_left, &counted));
    return status;
}

static hsort_transport ipc_path(const struct transport *transport, int peer)
{
    const struct ipc *ipc = (const struct ipc *)transport;
    return ipc->maps[peer] ? HSORT_TRANSPORT_IPC : transport_path(transport->other, peer);
}

/* ---- open and close ------------------------------------------------------------------------------------ */

/* Free everything except the other transport. */
static void free_ipc(struct ipc *ipc)
{
    if (!ipc)
        return;
    ipc_forget(&ipc->base, FORGET_ALL);
    shared_memory_close(&ipc->turns);
    free(ipc->maps);
    free(ipc);
}

static void ipc_close(struct transport *transport)
{
    struct ipc *ipc = (struct ipc *)transport;
    ipc->base.other->ops->close(ipc->base.other);
    free_ipc(ipc);
}

static const struct transport_ops ipc_ops = {
    .kind = HSORT_TRANSPORT_IPC,
    .sendrecv = ipc_sendrecv,
    .close = ipc_close,
    .path = ipc_path,
    .expose = ipc_expose,
    .conceal = ipc_conceal,
    .has_turns = ipc_has_turns,
    .take_turn = ipc_take_turn,
    .give_turn = ipc_give_turn,
    .forget = ipc_forget,
};

static hsort_status allocate_ipc(struct comm *comm, struct engine *engine, struct transport *other,
                                 struct ipc **made)
{
    struct ipc *ipc = calloc(1, sizeof *ipc);
    bool *maps = calloc((size_t)comm->size, sizeof *maps);
    if (!ipc || !maps) {
        free(ipc);
        free(maps);
        return status_fail(HSORT_HOST_MEMORY, "no memory for a transport between %d ranks", comm->size);
    }
    *ipc =
        (struct ipc){.base = {.ops = &ipc_ops, .other = other}, .comm = comm, .engine = engine, .maps = maps};
    *made = ipc;
    return HSORT_OK;
}

hsort_status transport_open_ipc(struct comm *comm, struct engine *engine, struct transport *other,
                                bool shared, struct transport **transport, char *why, size_t why_bytes)
{
    struct ipc *ipc = NULL;
    bool some = false;
    *transport = NULL;
    why[0] = '\0';
    hsort_status status = comm_agree(comm, allocate_ipc(comm, engine, other, &ipc));
    if (status == HSORT_OK)
        status = ipc_probe_pairs(comm, engine, ipc->maps, &some, why, why_bytes);
    if (status == HSORT_OK && some && shared)
        status = comm_agree(comm, shared_memory_open(comm, NULL, sizeof(struct shared_turn), &ipc->turns));
    if (status != HSORT_OK || !some) {
        free_ipc(ipc);
        return status;
    }
    *transport = &ipc->base;
    return HSORT_OK;
}
