/* How keys travel between two ranks. One interface, three transports (transport_ring.c, transport_ipc.c):
 *
 *   staged   engine memory -> pinned host ring -> MPI -> pinned host ring -> engine memory; works everywhere.
 *            Ranks of a node that can share memory use one ring instead of MPI
 *   mpi      MPI reads engine memory itself; chunks that arrive may wait in a small ring of engine memory
 *   ipc      ranks of one node read each other's engine memory; lies on top of one of the two above, which
 *            serves the rest */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdint.h>
#include "mpi/comm/comm.h"
#include "kernels/engine.h"

struct transport;

/* Which mappings of its peers' memory a rank gives up. */
enum transport_forget {
    FORGET_CALLERS, /* of memory that the peers' callers own; it may be freed after the call */
    FORGET_ALL      /* of the peers' alloc() memory, too */
};

/* One message of a stream. */
struct transport_message {
    int peer;
    void *memory; /* [bytes] engine memory: nobody writes to it until it has left, or reads it until it has come */
    size_t bytes; /* at most transport.message_bytes. To receive: the most that may come; 0 is a message, too */
    size_t plain; /* to send: bytes of the keys that it stands for, which are more if it is packed */
};

enum transport_next {
    NEXT_NONE,   /* there are no more messages */
    NEXT_LATER,  /* there is one, but its memory is not ready: ask again */
    NEXT_MESSAGE /* *message is written */
};

/* What the user of a stream says of its messages when the transport asks for it. */
struct transport_stream {
    enum transport_next (*send)(void *user, struct transport_message *message);
    enum transport_next (*receive)(void *user, struct transport_message *message);
    void (*received)(void *user, size_t bytes); /* the next of receive()'s messages has come. NULL: nobody asks */
    void *user;
};

struct transport_ops {
    hsort_transport kind;

    /* Send [send_bytes] from `send` to rank `to` while receiving [receive_bytes] from rank `from` at
     * `receive`. Both in engine memory, or in host memory. The peers must post the matching transfer. A side
     * whose bytes are 0 is not touched.
     *   In place: if `send` == `receive` and `to` == `from`, on both sides of the pair, each chunk that
     *   arrives overwrites the one at its offset only after that has left. Otherwise the two regions do not
     *   overlap.
     * Collective over the pair(s). After a local failure the rank keeps to the schedule, moving whatever it
     * has, and returns the failure at the end: no peer waits forever. *moved_bytes grows by send_bytes, and
     * so does `traffic` of the transport that took them. */
    hsort_status (*sendrecv)(struct transport *transport, int to, const void *send, size_t send_bytes,
                             int from, void *receive, size_t receive_bytes, int64_t *moved_bytes);

    /* A stream: messages to and from any peers, while the caller does other work. The caller names them one by one; some of
     * each direction are under way at a time, and stream_advance() moves them on, without waiting. NULL in a transport on top
     * of another one, whose streams serve (transport_messenger()).
     *
     * Messages of a pair of ranks are received in the order in which they are sent. Both sides know that order and the
     * largest size of each message; a shorter one may come. No message waits forever if all messages of all ranks have one
     * order, and every rank's sends and receives keep it: then the first message that is not done is the next one of both
     * its ranks.
     *
     *   begin    no other stream or sendrecv() until the end. stream [1] is copied
     *   advance  returns this rank's first failure; the stream goes on all the same, with whatever memory holds
     *   end      goes on until neither side names another message and all have come and gone; what came is there for
     *            all streams of the engine. Collective; `traffic` grows by what was sent */
    hsort_status (*stream_begin)(struct transport *transport, const struct transport_stream *stream);
    hsort_status (*stream_advance)(struct transport *transport);
    hsort_status (*stream_end)(struct transport *transport);

    /* Not collective; after FORGET_ALL on all ranks and an agreement. */
    void (*close)(struct transport *transport);

    /* The functions below are NULL in a transport that maps no memory. */

    /* How bytes go between this rank and `peer`. Not collective. Without it: `kind`, to every peer. */
    hsort_transport (*path)(const struct transport *transport, int peer);

    /* Let rank `peer` read `memory` [bytes], and get *peer_memory, where this rank's copies and kernels can
     * read what the peer exposes; if that is 0 bytes, it may not be read. *peer_memory is NULL on both
     * sides if either cannot read the other's; then nothing is exposed. Nobody writes to exposed memory before
     * conceal(), and queued work that writes it has been waited for. A rank may expose to several peers at a time,
     * and several parts of its memory to one peer. `bytes` count as traffic, so expose what the peer needs and no
     * more. Collective over the pair; keeps to the schedule as sendrecv() does. */
    hsort_status (*expose)(struct transport *transport, int peer, const void *memory, size_t bytes,
                           const void **peer_memory);

    /* End what an expose() that gave a pointer began, with one call for each expose(). Returns when both sides' streams
     * have done all their reading. Collective over the pair; keeps to the schedule. */
    hsort_status (*conceal)(struct transport *transport, int peer);

    /* Turns at a peer's exposed memory. Two ranks that copy from one GPU at the same time each get half the rate of its link, while nobody
     * reads from some other GPU; and a rank that is late once stays late. Four GPUs, who copies from whom:
     *
     *     step by step, not quite together     A from B    B from C    C from A    D from A      nobody reads from D
     *     in turns                             A from B    B from C    C from D    D from A
     *
     * has_turns: does this rank take turns with its node? Else take_turn() is always true. take_turn: may this rank read from the peer
     * now? False: another rank does; do something else, and ask again. give_turn: this rank has read. Between the two, wait for no other
     * rank. Reading without a turn is slow, but no error. Not collective. */
    bool (*has_turns)(const struct transport *transport);
    bool (*take_turn)(struct transport *transport, int peer);
    void (*give_turn)(struct transport *transport, int peer);

    /* Unmap. Memory that sendrecv() or expose() were given stays mapped on the peers, for the next time;
     * before it is freed, every rank must have called forget(), and the ranks must have agreed on something
     * after that:
     *
     *     rank 0   sendrecv(keys)   forget()  --+--  agree   free(keys)
     *     rank 1   sendrecv(more)   forget()  --+--  agree   (keeps `more`)
     *
     * In sendrecv() rank 1 may have mapped `keys`; after the agreement it certainly does not map them.
     *
     * FORGET_CALLERS is for the end of every phase that may have shown the caller's memory (context_agree()), FORGET_ALL for before
     * memory that lasts is freed (transport_unmap()). Not collective. */
    void (*forget)(struct transport *transport, enum transport_forget what);
};

/* What a transport took from this rank to others: bytes sent, and seconds in sendrecv(), or from the first
 * expose() to the last conceal(). */
struct traffic {
    int64_t bytes;
    int64_t crossed, crossed_plain; /* the part to other nodes; the same if no keys had been packed */
    double seconds;
};

/* Add a message to what this rank has sent. Not collective. */
static inline void traffic_add(struct traffic *traffic, const struct comm *comm, int to, size_t bytes, size_t plain)
{
    traffic->bytes += (int64_t)bytes;
    if (comm_is_near(comm, to))
        return;
    traffic->crossed += (int64_t)bytes;
    traffic->crossed_plain += (int64_t)plain;
}

struct transport {
    const struct transport_ops *ops;
    struct transport *other; /* owned; serves what this one does not. NULL: it serves all */
    size_t message_bytes;    /* of one that has streams: transport_message_bytes() */
    struct traffic traffic;  /* by this one alone, since transport_clear() */
};

/* Note in a span what a transfer sends and receives, as sendrecv() does. */
static inline void trace_transfer(struct trace_span *span, int to, size_t send_bytes, int from,
                                  size_t receive_bytes)
{
    if (send_bytes > 0)
        trace_sent(span, to, (int64_t)send_bytes);
    if (receive_bytes > 0)
        trace_received(span, from, (int64_t)receive_bytes);
}

/* Count bytes that go to a peer, which reads them, or gets them while other work goes on: the trace notes only this moment. *moved grows
 * by them, too. */
static inline void count_moved(struct trace *trace, const char *how, int to, size_t bytes, int64_t *moved)
{
    struct trace_span *span = trace_begin(trace, how);
    trace_sent(span, to, (int64_t)bytes);
    trace_end(span);
    *moved += (int64_t)bytes;
}

/* How bytes go between this rank and `peer`. Not collective. */
hsort_transport transport_path(const struct transport *transport, int peer);

/* Call this before engine memory that others may map is freed: if any rank says that it `frees` some, no rank maps another
 * rank's memory afterwards. Collective. Errors HSORT_MPI. */
hsort_status transport_unmap(struct transport *transport, struct comm *comm, bool frees);

/* The transport that has streams: this one, or the one underneath. Not collective. */
struct transport *transport_messenger(struct transport *transport);

/* The most bytes of a message of its streams, the same on all ranks. Not collective. */
size_t transport_message_bytes(const struct transport *transport);

/* Reset the traffic of this transport and of those underneath to 0. Not collective. */
void transport_clear(struct transport *transport);

/* traffic [HSORT_TRANSPORTS] written: what has gone by each transport since transport_clear(). Not collective. */
void transport_traffic(const struct transport *transport, struct traffic *traffic);

enum { TRANSPORT_CHUNK_DEFAULT = 4 << 20, TRANSPORT_CHUNKS_IN_FLIGHT = 4 };

/* Open a transport. Collective.
 *   chunk_bytes  of one message, a multiple of 8; 0 is the default, the same on all ranks
 *   shared       ranks of a node share their ring slots where they can; the same on all ranks
 * Errors, not agreed: HSORT_ARGUMENT, HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY, HSORT_MPI. comm and engine are
 * borrowed until close(). */
hsort_status transport_open_staged(struct comm *comm, struct engine *engine, size_t chunk_bytes, bool shared,
                                   struct transport **transport);
hsort_status transport_open_mpi(struct comm *comm, struct engine *engine, size_t chunk_bytes,
                                struct transport **transport);

/* Open a transport on top of `other`, which serves the pairs that do not map each other's memory, memory that
 * cannot be mapped, and transfers in place. Each pair tries whether it can map. Collective.
 *   other      borrowed, but owned by *transport as soon as there is one
 *   shared     ranks of a node may share memory, for turns; the same on all ranks
 *   transport  [1] written: NULL on all ranks if no two of them map each other's memory, or after an error
 *   why        [why_bytes] then, why this rank maps no other, on one line; "" if it does
 * Errors     same on every rank: HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY, HSORT_CUDA, HSORT_MPI. It is no error
 *            that a pair does not map. */
hsort_status transport_open_ipc(struct comm *comm, struct engine *engine, struct transport *other,
                                bool shared, struct transport **transport, char *why, size_t why_bytes);

/* What a context wants of its transports; the same on all ranks. hypersort.h documents the fields. */
struct transport_options {
    hsort_transport transport;
    size_t chunk_bytes;
    hsort_choice peer_memory, shared_memory, mpi_device_pointers;
};

/* Choose and open, in this order: MPI if it takes this engine's memory, else STAGED; with AUTO and IPC, IPC
 * on top of that. Collective.
 *   wanted                 transport STAGED, MPI and IPC: that one, or an error; AUTO: what works
 *   takes_device_pointers  [1] written: 1, 0, or -1 if it was not tried: host engine, or STAGED was asked for
 * Errors  same on every rank; *transport is NULL then. HSORT_ARGUMENT, HSORT_CUDA: IPC asked for, but no
 * two ranks map. */
hsort_status transport_choose(struct comm *comm, struct engine *engine,
                              const struct transport_options *wanted, struct transport **transport,
                              int *takes_device_pointers);

#endif
