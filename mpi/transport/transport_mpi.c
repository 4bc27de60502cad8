/* MPI is handed engine memory: for the host engine any MPI will do, for the cuda engine it must be
 * CUDA-aware. Only Isend and Irecv of contiguous bytes: collectives, derived datatypes and one-sided calls on
 * device memory fail in libraries whose point-to-point messages work. */
#include "mpi/transport/transport_ring.h"

static const struct transport_ops mpi_ops = {
    .kind = HSORT_TRANSPORT_MPI,
    .sendrecv = transport_ring_sendrecv,
    .stream_begin = transport_ring_stream_begin,
    .stream_advance = transport_ring_stream_advance,
    .stream_end = transport_ring_stream_end,
    .close = transport_ring_close,
};

hsort_status transport_open_mpi(struct comm *comm, struct engine *engine, size_t chunk_bytes,
                                struct transport **transport)
{
    return transport_open_ring(comm, engine, chunk_bytes, &mpi_ops, false, false, transport);
}
