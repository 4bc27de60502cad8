/* Ranks of one node read each other's engine memory. A rank tells its peer where its bytes lie; the peer maps that memory
 * (engine.h: struct engine_peer_ops) and fetches them itself, with one copy or with the kernel that needs them:
 *
 *     rank 0   offer: my bytes are at H+o  ---->  rank 1   opens H once, keeps it        copies from mapped H+o
 *              offer: mine are at K+p      <----
 *              copies from mapped K+p                      "I have read them"  <--->  "I have read them"
 *
 * Fetching and not delivering: who fetches knows by its own streams when the bytes are there, and needs no room to be offered.
 *
 * Pairs that do not map each other, memory that cannot be mapped (the caller's own may be of any kind), and transfers in place
 * are served by another transport. In place, who fetches would overwrite what the peer has yet to fetch. Both sides of a pair must take the same way, so each says whether it could open what it was offered.
 *
 * A failed rank sends the same messages; who reads from it reads whatever lies there. */
#include "kernels/base/first_error.h"
#include "mpi/transport/transport.h"
#include <stdlib.h>
#include <string.h>
#include "mpi/transport/transport_ipc_trial.h"

enum { TAG_OFFER = 11, TAG_ANSWER = 12, TAG_TRADE = 13 };

/* An allocation of a peer's, mapped here. */
struct mapping {
    int peer;
    bool lasting;
    unsigned char allocation[sizeof((struct engine_peer_handle *)0)->allocation];
    void *memory;
    struct mapping *older;
};

struct ipc {
    struct transport base;
    struct comm *comm;
    struct engine *engine;
    bool *maps; /* [size] peers with which memory is mapped, both ways */
    struct mapping *mappings;
    int exposed;          /* peers that have been exposed to, and not concealed from */
    double exposed_since; /* the first of them */
};

enum offer_kind {
    OFFER_NONE,  /* memory that cannot be mapped */
    OFFER_EMPTY, /* no bytes */
    OFFER_MEMORY
};

struct offer {
    int32_t kind;
    struct engine_peer_handle handle;
};

static const char nothing; /* where no bytes are */

/* ---- mappings --------------------------------------------------------------------------------------------- */

static struct offer make_offer(struct ipc *ipc, const void *memory, size_t bytes)
{
    struct offer offer = {.kind = OFFER_EMPTY};
    if (bytes > 0)
        offer.kind = ipc->engine->ops->peer->export_memory(ipc->engine, memory, &offer.handle) == HSORT_OK
                         ? OFFER_MEMORY
                         : OFFER_NONE;
    return offer;
}

static struct mapping *find_mapping(const struct ipc *ipc, int peer, const struct engine_peer_handle *handle)
{
    struct mapping *mapping = ipc->mappings;
    while (mapping && (mapping->peer != peer ||
                       memcmp(mapping->allocation, handle->allocation, sizeof mapping->allocation) != 0))
        mapping = mapping->older;
    return mapping;
}

/* Map an allocation of `peer`, or find that it is. NULL if it cannot be; there is another way then, so nothing has failed. */
static struct mapping *map(struct ipc *ipc, int peer, const struct engine_peer_handle *handle)
{
    struct mapping *mapping = find_mapping(ipc, peer, handle);
    if (mapping)
        return mapping;
    const bool failed_before = status_text()[0] != '\0';
    mapping = malloc(sizeof *mapping);
    if (!mapping)
        return NULL;
    *mapping = (struct mapping){.peer = peer, .lasting = handle->lasting, .older = ipc->mappings};
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

/* Where what `peer` offers can be read; NULL if it cannot. */
static const char *open_offer(struct ipc *ipc, int peer, const struct offer *offer)
{
    if (offer->kind == OFFER_EMPTY)
        return &nothing;
    const struct mapping *mapping = offer->kind == OFFER_MEMORY ? map(ipc, peer, &offer->handle) : NULL;
    return mapping ? (const char *)mapping->memory + offer->handle.offset : NULL;
}

static void ipc_forget(struct transport *transport, enum transport_forget what)
{
    struct ipc *ipc = (struct ipc *)transport;
    struct mapping **link = &ipc->mappings;
    while (*link) {
        struct mapping *mapping = *link;
        if (what == FORGET_PASSING && mapping->lasting) {
            link = &mapping->older;
            continue;
        }
        *link = mapping->older;
        ipc->engine->ops->peer->close(ipc->engine, mapping->memory);
        free(mapping);
    }
}

/* ---- the two sides of a pair meet --------------------------------------------------------------------------- */

static hsort_status trade(const struct ipc *ipc, int peer, const void *send, void *receive, size_t bytes)
{
    return comm_check(MPI_Sendrecv(send, (int)bytes, MPI_BYTE, peer, TAG_TRADE, receive, (int)bytes, MPI_BYTE,
                                   peer, TAG_TRADE, ipc->comm->world, MPI_STATUS_IGNORE),
                      "MPI_Sendrecv", true);
}

/* Both sides have got so far. Collective over the pair. */
static hsort_status keep_step(const struct ipc *ipc, int peer)
{
    int32_t here = 1, there = 0;
    return trade(ipc, peer, &here, &there, sizeof here);
}

/* Offer `memory` [bytes] to the peer and open what it offers: *theirs is where to read it, NULL on both sides if either
 * cannot. Collective over the pair. */
static hsort_status meet(struct ipc *ipc, int peer, const void *memory, size_t bytes, const char **theirs)
{
    const struct offer own = make_offer(ipc, memory, bytes);
    struct offer other = {.kind = OFFER_NONE};
    hsort_status status = trade(ipc, peer, &own, &other, sizeof own);
    const char *opened = open_offer(ipc, peer, &other);
    int32_t can_read = opened != NULL, is_read = 0;
    keep_first_error(&status, trade(ipc, peer, &can_read, &is_read, sizeof can_read));
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
    hsort_status status = ipc->engine->ops->stream_synchronize(ipc->engine, STREAM_WORK);
    keep_first_error(&status, meet(ipc, peer, memory, bytes, &theirs));
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
    for (enum engine_stream stream = 0; stream < ENGINE_STREAMS; stream++)
        keep_first_error(&status, ipc->engine->ops->stream_synchronize(ipc->engine, stream));
    keep_first_error(&status, keep_step(ipc, peer));
    if (--ipc->exposed == 0)
        transport->traffic.seconds += MPI_Wtime() - ipc->exposed_since;
    return status;
}

/* ---- a swap from one region into another ---------------------------------------------------------------------- */

/* One direction of it: an offer, and an answer when the bytes have been read or are wanted the other way. The two
 * directions may lead to different ranks, each of which may be reached by another transport:
 *
 *     rank r-1 ---offer--->   rank r   ---offer--->  rank r+1        first all offers, then all reading, then all answers,
 *              <--answer---            <--answer---                  and what is left goes by the other transport
 *
 * so a rank waits here only for what its peers do before they wait for it: rings of ranks cannot lock up. */
enum { OFFERED, ANSWERED, MESSAGES };

struct way {
    int peer;
    bool mapped; /* there is an offer */
    int32_t read;
    struct offer offer;
    MPI_Request requests[MESSAGES];
};

static struct way way_of(const struct ipc *ipc, int peer, size_t bytes)
{
    return (struct way){.peer = peer,
                        .mapped = bytes > 0 && ipc->maps[peer],
                        .offer = {.kind = OFFER_NONE},
                        .requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
}

static hsort_status begin_send(const struct ipc *ipc, int peer, const void *message, size_t bytes, int tag,
                               MPI_Request *request)
{
    return comm_check(MPI_Isend(message, (int)bytes, MPI_BYTE, peer, tag, ipc->comm->world, request),
                      "MPI_Isend", true);
}

static hsort_status begin_receive(const struct ipc *ipc, int peer, void *message, size_t bytes, int tag,
                                  MPI_Request *request)
{
    return comm_check(MPI_Irecv(message, (int)bytes, MPI_BYTE, peer, tag, ipc->comm->world, request),
                      "MPI_Irecv", true);
}

static hsort_status begin_offer(struct ipc *ipc, struct way *out, const void *send, size_t bytes)
{
    out->offer = make_offer(ipc, send, bytes);
    hsort_status status =
        begin_receive(ipc, out->peer, &out->read, sizeof out->read, TAG_ANSWER, &out->requests[ANSWERED]);
    keep_first_error(&status,
         begin_send(ipc, out->peer, &out->offer, sizeof out->offer, TAG_OFFER, &out->requests[OFFERED]));
    return status;
}

/* Read what the peer offers into `receive`, and answer. */
static hsort_status fetch(struct ipc *ipc, struct way *in, void *receive, size_t bytes)
{
    const struct engine_ops *ops = ipc->engine->ops;
    hsort_status status =
        begin_receive(ipc, in->peer, &in->offer, sizeof in->offer, TAG_OFFER, &in->requests[OFFERED]);
    keep_first_error(&status, comm_check(MPI_Wait(&in->requests[OFFERED], MPI_STATUS_IGNORE), "MPI_Wait", true));
    const char *theirs = open_offer(ipc, in->peer, &in->offer);
    if (theirs) {
        keep_first_error(&status, ops->copy(ipc->engine, STREAM_IN, receive, theirs, bytes));
        keep_first_error(&status, ops->stream_synchronize(ipc->engine, STREAM_IN));
    }
    in->read = theirs != NULL; // also if the copy failed: the bytes would not come better by another way
    keep_first_error(&status, begin_send(ipc, in->peer, &in->read, sizeof in->read, TAG_ANSWER, &in->requests[ANSWERED]));
    return status;
}

/* What could not be read goes by the other transport: *send_left, *receive_left bytes. */
static hsort_status swap_apart(struct ipc *ipc, int to, const void *send, size_t send_bytes, int from,
                               void *receive, size_t receive_bytes, size_t *send_left, size_t *receive_left)
{
    struct way out = way_of(ipc, to, send_bytes), in = way_of(ipc, from, receive_bytes);
    hsort_status status = HSORT_OK;
    if (out.mapped)
        keep_first_error(&status, begin_offer(ipc, &out, send, send_bytes));
    if (in.mapped)
        keep_first_error(&status, fetch(ipc, &in, receive, receive_bytes));
    if (out.mapped)
        keep_first_error(&status,
             comm_check(MPI_Waitall(MESSAGES, out.requests, MPI_STATUSES_IGNORE), "MPI_Waitall", true));
    if (in.mapped)
        keep_first_error(&status,
             comm_check(MPI_Waitall(MESSAGES, in.requests, MPI_STATUSES_IGNORE), "MPI_Waitall", true));
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
    // Kernels may still be writing what is to be sent, or reading what is to be overwritten.
    hsort_status status = ipc->engine->ops->stream_synchronize(ipc->engine, STREAM_WORK);
    if (send != receive || to != from)
        keep_first_error(&status, swap_apart(ipc, to, send, send_bytes, from, receive, receive_bytes,
                                             &send_left, &receive_left));
    *moved_bytes += (int64_t)send_bytes;
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

/* ---- open and close -------------------------------------------------------------------------------------------- */

/* All but the other transport. */
static void free_ipc(struct ipc *ipc)
{
    if (!ipc)
        return;
    ipc_forget(&ipc->base, FORGET_ALL);
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
    .forget = ipc_forget,
};

static hsort_status make_ipc(struct comm *comm, struct engine *engine, struct transport *other,
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
                                struct transport **transport, char *why, size_t why_bytes)
{
    struct ipc *ipc = NULL;
    bool some = false;
    *transport = NULL;
    why[0] = '\0';
    hsort_status status = comm_agree(comm, make_ipc(comm, engine, other, &ipc));
    if (status == HSORT_OK)
        status = ipc_try_pairs(comm, engine, ipc->maps, &some, why, why_bytes);
    if (status != HSORT_OK || !some) {
        free_ipc(ipc);
        return status;
    }
    *transport = &ipc->base;
    return HSORT_OK;
}
