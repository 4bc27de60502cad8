/* Which transport a context uses: a plain order, see transport_choose(). The hard question is whether MPI
 * takes device pointers. What a library says of itself can be wrong either way, and a library that does not
 * take them may crash on one. So the library is asked first, because a wrong no only costs speed. Then it is
 * probed with messages whose contents are compared, which finds a wrong yes. Whether ranks map each other's
 * memory is only probed (ipc_probe.c). */
#include "mpi/transport/transport.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

enum { SMALL_BYTES = 1 << 10, LARGE_BYTES = 1 << 20, TAG = 2 };

/* Does the library, or a user who knows better, say that device pointers may be probed? */
static bool may_probe(hsort_choice choice)
{
    if (choice != HSORT_CHOICE_AUTO)
        return choice == HSORT_CHOICE_ON;
    const char *cray = getenv("MPICH_GPU_SUPPORT_ENABLED");
    if (cray && strcmp(cray, "1") == 0)
        return true;
#if defined(OMPI_HAVE_MPI_EXT_CUDA) && OMPI_HAVE_MPI_EXT_CUDA
    return MPIX_Query_cuda_support() == 1;
#else
    return false;
#endif
}

/* Send what lies at `device` to rank `to`, and receive what rank `from` sends, behind it in memory, if all ranks can begin
 * both; else no rank waits for a message, and nothing is received later. Returns whether MPI says that it went well.
 *   begun  [1] written: could all ranks begin? The same on every rank. If not, no probe may follow, because it might
 *          receive a message that is left of this one
 * Collective. */
static bool pass_probe(struct comm *comm, char *device, int to, int from, int bytes, bool *begun)
{
    MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    const int received =
        MPI_Irecv(device + LARGE_BYTES, bytes, MPI_BYTE, from, TAG, comm->world, &request[0]);
    const int sent = MPI_Isend(device, bytes, MPI_BYTE, to, TAG, comm->world, &request[1]);
    *begun = false;
    (void)comm_all(comm, received == MPI_SUCCESS && sent == MPI_SUCCESS, begun); // unless MPI fails
    if (*begun)
        return MPI_Waitall(2, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
    if (received == MPI_SUCCESS) {
        MPI_Cancel(&request[0]);
        MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    }
    if (sent == MPI_SUCCESS)
        MPI_Request_free(&request[1]);
    return false;
}

/* Send a pattern from device to device round the ring of ranks, `shift` ranks on; *whole: it arrived; *begun as above.
 * Collective. */
static hsort_status probe_message(struct comm *comm, struct engine *engine, int shift, int bytes,
                                  char *device, unsigned char *host, bool *begun, bool *whole)
{
    const struct engine_ops *ops = engine->ops;
    const int to = (comm->rank + shift) % comm->size, from = (comm->rank - shift + comm->size) % comm->size;
    for (int i = 0; i < bytes; i++)
        host[i] = (unsigned char)(i * 31 + comm->rank);
    hsort_status status = ops->copy(engine, STREAM_WORK, device, host, (size_t)bytes);
    if (status == HSORT_OK)
        status = ops->stream_synchronize(engine, STREAM_WORK);
    *whole = pass_probe(comm, device, to, from, bytes, begun) && *whole;
    memset(host, 0, (size_t)bytes);
    if (status == HSORT_OK)
        status = ops->copy(engine, STREAM_WORK, host, device + LARGE_BYTES, (size_t)bytes);
    if (status == HSORT_OK)
        status = ops->stream_synchronize(engine, STREAM_WORK);
    for (int i = 0; i < bytes; i++)
        *whole = *whole && host[i] == (unsigned char)(i * 31 + from);
    return status;
}

/* Short and long messages, to a neighbour and to another node. Collective. Errors: the engine's, agreed. */
static hsort_status probe_messages(struct comm *comm, struct engine *engine, bool *whole)
{
    void *device = NULL;
    bool begun = true;
    int64_t most = 0;
    unsigned char *host = malloc(LARGE_BYTES);
    hsort_status status = host ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory to probe MPI with");
    if (status == HSORT_OK)
        status = engine->ops->alloc(engine, 2 * LARGE_BYTES, &device);
    keep_first_error(&status, comm_range(comm, comm->node_size, NULL, &most));
    status = comm_agree(comm, status);
    const int shifts[2] = {1 % comm->size, (int)most % comm->size}, // nodes may be of different sizes
        lengths[2] = {SMALL_BYTES, LARGE_BYTES};
    for (int i = 0; status == HSORT_OK && begun && i < 4; i++)
        status = comm_agree(
            comm, probe_message(comm, engine, shifts[i / 2], lengths[i % 2], device, host, &begun, whole));
    engine->ops->free(engine, device);
    free(host);
    return status;
}

/* Does MPI take device memory? *takes as transport_choose() says. Collective. */
static hsort_status probe_mpi(struct comm *comm, struct engine *engine, hsort_choice choice, int *takes)
{
    bool whole;
    TRY(comm_all(comm, may_probe(choice), &whole));
    if (whole) {
        TRY(probe_messages(comm, engine, &whole));
        TRY(comm_all(comm, whole, &whole));
    }
    *takes = whole;
    return HSORT_OK;
}

hsort_transport transport_path(const struct transport *transport, int peer)
{
    return transport->ops->path ? transport->ops->path(transport, peer) : transport->ops->kind;
}

hsort_status transport_unmap(struct transport *transport, struct comm *comm, bool frees)
{
    bool some_frees;
    if (!transport->ops->forget)
        return HSORT_OK;
    TRY(comm_any(comm, frees, &some_frees));
    if (!some_frees)
        return HSORT_OK;
    transport->ops->forget(transport, FORGET_ALL);
    return comm_agree(comm, HSORT_OK);
}

struct transport *transport_messenger(struct transport *transport)
{
    while (!transport->ops->stream_begin)
        transport = transport->other;
    return transport;
}

size_t transport_message_bytes(const struct transport *transport)
{
    return transport_messenger((struct transport *)transport)->message_bytes; // it only looks
}

void transport_clear(struct transport *transport)
{
    for (; transport; transport = transport->other)
        transport->traffic = (struct traffic){0};
}

void transport_traffic(const struct transport *transport, struct traffic *traffic)
{
    memset(traffic, 0, HSORT_TRANSPORTS * sizeof *traffic);
    for (; transport; transport = transport->other)
        traffic[transport->ops->kind] = transport->traffic;
}

/* Put `ipc` on top of *transport if any two ranks map each other's memory. If none do, that is an error if IPC
 * was asked for. Collective. */
static hsort_status put_ipc_on_top(struct comm *comm, struct engine *engine,
                                   const struct transport_options *wanted, struct transport **transport)
{
    char why[256] = "there is only one rank";
    struct transport *ipc = NULL;
    const bool exports = engine->ops->peer != NULL, allowed = wanted->peer_memory != HSORT_CHOICE_OFF;
    if (!exports)
        snprintf(why, sizeof why, "the engine %s has no memory for others to map", engine->ops->name);
    else if (!allowed)
        snprintf(why, sizeof why, "the option peer_memory is off");
    else if (comm->size > 1)
        TRY(transport_open_ipc(comm, engine, *transport, wanted->shared_memory != HSORT_CHOICE_OFF, &ipc, why,
                               sizeof why));
    if (ipc)
        *transport = ipc;
    if (ipc || wanted->transport == HSORT_TRANSPORT_AUTO)
        return HSORT_OK;
    return comm_agree(comm, status_fail(exports && allowed ? HSORT_CUDA : HSORT_ARGUMENT,
                                        "transport ipc: no two ranks map each other's memory: %s", why));
}

/* Open mpi if it takes this engine's memory and is not ruled out, else staged: each of them serves all pairs.
 * Collective. */
static hsort_status open_base(struct comm *comm, struct engine *engine,
                              const struct transport_options *wanted, struct transport **transport,
                              int *takes_device_pointers)
{
    const bool on_device = engine->ops->kind == HSORT_ENGINE_CUDA;
    if (on_device && wanted->transport != HSORT_TRANSPORT_STAGED)
        TRY(probe_mpi(comm, engine, wanted->mpi_device_pointers, takes_device_pointers));
    const bool mpi = wanted->transport != HSORT_TRANSPORT_STAGED && *takes_device_pointers != 0;
    if (wanted->transport == HSORT_TRANSPORT_MPI && !mpi && wanted->mpi_device_pointers == HSORT_CHOICE_OFF)
        return comm_agree(
            comm, status_fail(HSORT_ARGUMENT, "transport mpi: the option mpi_device_pointers is off"));
    if (wanted->transport == HSORT_TRANSPORT_MPI && !mpi)
        return comm_agree(
            comm, status_fail(HSORT_MPI, "this MPI does not take device pointers: use transport staged, or "
                                         "the option mpi_device_pointers if you know better"));
    if (mpi)
        return comm_agree(comm, transport_open_mpi(comm, engine, wanted->chunk_bytes, transport));
    return comm_agree(comm, transport_open_staged(comm, engine, wanted->chunk_bytes,
                                                  wanted->shared_memory != HSORT_CHOICE_OFF, transport));
}

hsort_status transport_choose(struct comm *comm, struct engine *engine,
                              const struct transport_options *wanted, struct transport **transport,
                              int *takes_device_pointers)
{
    *transport = NULL;
    *takes_device_pointers = -1;
    hsort_status status = open_base(comm, engine, wanted, transport, takes_device_pointers);
    if (status == HSORT_OK &&
        (wanted->transport == HSORT_TRANSPORT_AUTO || wanted->transport == HSORT_TRANSPORT_IPC))
        status = put_ipc_on_top(comm, engine, wanted, transport);
    if (status != HSORT_OK && *transport) {
        (*transport)->ops->close(*transport);
        *transport = NULL;
    }
    return status;
}
