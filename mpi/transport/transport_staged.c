/* Engine memory -> pinned host ring -> MPI -> pinned host ring -> engine memory. Needs nothing of the MPI
 * library, so it is the path that works everywhere. The ring is small: pinning the data itself would cost
 * more than moving it. */
#include "mpi/transport/transport_ring.h"

static const struct transport_ops staged_ops = {
    .kind = HSORT_TRANSPORT_STAGED,
    .sendrecv = transport_ring_sendrecv,
    .stream_begin = transport_ring_stream_begin,
    .stream_advance = transport_ring_stream_advance,
    .stream_end = transport_ring_stream_end,
    .close = transport_ring_close,
};

hsort_status transport_open_staged(struct comm *comm, struct engine *engine, size_t chunk_bytes, bool shared,
                                   struct transport **transport)
{
    return transport_open_ring(comm, engine, chunk_bytes, &staged_ops, true, shared, transport);
}
