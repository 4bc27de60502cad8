/* How keys travel between two ranks. One interface, one file per transport:
 *
 *   transport_staged   engine memory -> pinned host ring -> MPI -> pinned host ring -> engine memory; works everywhere
 *   transport_mpi      MPI reads engine memory itself; arriving pieces land in a small ring of engine memory
 *   transport_ipc      (issue of its own) ranks of one node map each other's buffers
 */
#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stdint.h>
#include "comm.h"
#include "engine.h"

struct transport;

struct transport_ops {
    hsort_transport kind;

    /* Send [send_bytes] from `send` to rank `to` while receiving [receive_bytes] from rank `from` at `receive`. Both in
     * engine memory, or in host memory. The peers must post the matching transfer. A side whose bytes are 0 is not touched.
     *   In place: if `send` == `receive` and `to` == `from`, each piece that arrives overwrites the piece of the same
     *   place only after that one has left. Otherwise the two regions do not overlap.
     * Collective over the pair(s). After a local failure the rank keeps to the schedule, moving whatever it has, and
     * returns the failure at the end: the peer is never left waiting. *moved_bytes grows by send_bytes. */
    hsort_status (*swap)(struct transport *transport, int to, const void *send, size_t send_bytes, int from,
                         void *receive, size_t receive_bytes, int64_t *moved_bytes);

    void (*close)(struct transport *transport); /* not collective */
};

struct transport {
    const struct transport_ops *ops;
};

enum { TRANSPORT_PIECE_DEFAULT = 4 << 20, TRANSPORT_PIECES_IN_FLIGHT = 4 };

/* Open a transport. piece_bytes: of one message, a multiple of 8; 0 is the default. Not collective.
 * Errors HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY. comm and engine are borrowed until close(). */
hsort_status transport_open_staged(struct comm *comm, struct engine *engine, size_t piece_bytes,
                                   struct transport **transport);
hsort_status transport_open_mpi(struct comm *comm, struct engine *engine, size_t piece_bytes,
                                struct transport **transport);

/* Choose and open: STAGED and MPI as named, AUTO as hsort_transport says.                          Collective.
 *   takes_device_pointers  [1] written: 1, 0, or -1 if it was not tried: host engine, or STAGED was asked for */
hsort_status transport_choose(struct comm *comm, struct engine *engine, hsort_transport wanted, size_t piece_bytes,
                              struct transport **transport, int *takes_device_pointers);

#endif
