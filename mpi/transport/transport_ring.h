/* What transport_staged and transport_mpi share: messages, a few of which are under way at once in both
 * directions. Private to the transports. */
#ifndef TRANSPORT_RING_H
#define TRANSPORT_RING_H

#include "mpi/transport/transport.h"

/* Open a ring transport.
 *   through_host  true: chunks pass through pinned host memory on both sides (staged). false: MPI works on
 *                 engine memory, and only chunks that may not be written yet wait in a ring of it (mpi).
 *   shared        between ranks of a node that can share it, the receiver reads the sender's pinned memory
 * Collective if shared, in any case called by all. Errors, not agreed: HSORT_ARGUMENT, HSORT_HOST_MEMORY,
 * HSORT_DEVICE_MEMORY, HSORT_MPI. */
hsort_status transport_open_ring(struct comm *comm, struct engine *engine, size_t chunk_bytes,
                                 const struct transport_ops *ops, bool through_host, bool shared,
                                 struct transport **transport);

hsort_status transport_ring_sendrecv(struct transport *transport, int to, const void *send, size_t send_bytes,
                                     int from, void *receive, size_t receive_bytes, int64_t *moved_bytes);

hsort_status transport_ring_stream_begin(struct transport *transport, const struct transport_stream *stream);
hsort_status transport_ring_stream_advance(struct transport *transport);
hsort_status transport_ring_stream_end(struct transport *transport);

void transport_ring_close(struct transport *transport);

#endif
