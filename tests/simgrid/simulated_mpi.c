/* What lies between the library and SMPI, by --wrap: calls are counted, messages of keys are timed as large as the shards they
 * stand for, and polling costs nothing.
 *
 * Sizes. One real key stands for `scale` keys, so a message of n real bytes goes to SMPI as one of n * scale + 1; on delivery
 * only n are copied (simulated_copy.cpp). Greetings, probes and collectives keep their true sizes. Slower links instead of
 * larger messages would have stretched those too: a probe of 2 KiB as if it were 128 MiB.
 *
 *     real        [ 16 keys ]  128 B    --Isend-->  SMPI: 128 * 65536 + 1 bytes on the link  --copy 128 B-->  [ 16 keys ]
 *
 * Polling. The transport polls MPI_Test, which in a simulation would never end: no time passes for a rank that only asks. So a rank
 * that has asked in vain for every message on its way sleeps until one of them is done, or a while if it has also asked the engine
 * for something that is not done. The result is kept for the test that then finds it. */
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/simgrid/simulated.h"

enum {
    EAGER_BYTES = 65536, // below it SMPI buffers a message when it is sent (smpi/send-is-detached-thresh)
    OPEN_MAX_REQUESTS = 64,
    TAG_HEADER = 11, // of transport_ipc.c: where memory lies that is mapped, and that it was read. No keys, and waited for
    TAG_FETCHED = 12,
    IN_VAIN = 4 // failed tests in a row after which both rows of a transport's pieces have been tested twice
};

/* Of a rank that waits for messages and for its engine, before it asks again: the longer, the longer it has waited. */
static const double NAP_S = 1e-6, LONGEST_NAP_S = 16e-6;

struct traffic traffic;

static MPI_Request *open_request[OPEN_MAX_REQUESTS];
static int open_requests, failed_tests;
static double nap = 1e-6;
static double engine_done_at; /* that the rank has asked the engine for since it slept; 0: for nothing */

/* Messages that were done while the rank slept, and have not been tested since. */
static struct done_message {
    const MPI_Request *request;
    MPI_Status status;
} done_message[OPEN_MAX_REQUESTS];
static int done_messages;

int __real_MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __real_MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __wrap_MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request);
int __real_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int __wrap_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int __real_MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
int __wrap_MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count);
int __real_MPI_Sendrecv(const void *send, int sends, MPI_Datatype send_type, int to, int send_tag,
                        void *receive, int receives, MPI_Datatype receive_type, int from, int receive_tag,
                        MPI_Comm comm, MPI_Status *status);
int __wrap_MPI_Exscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm);
int __wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node);

static void stop(const char *why)
{
    fprintf(stderr, "simulated_mpi.c: %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void open_add(MPI_Request *request)
{
    if (open_requests == OPEN_MAX_REQUESTS)
        stop("more messages on their way than were thought of");
    open_request[open_requests++] = request;
    failed_tests = 0;
    nap = NAP_S;
}

static void open_remove(const MPI_Request *request)
{
    for (int i = 0; i < open_requests; i++)
        if (open_request[i] == request) {
            open_request[i] = open_request[--open_requests];
            break;
        }
    failed_tests = 0;
    nap = NAP_S;
}

double simulated_now(void)
{
    return simgrid_get_clock();
}

void simulated_sleep_until(double at)
{
    const double now = simulated_now();
    engine_done_at = 0;
    if (at > now)
        sg_actor_sleep_for(at - now);
}

void simulated_asked_for(double at)
{
    if (open_requests == 0)
        simulated_sleep_until(at);
    else if (engine_done_at == 0 || at < engine_done_at)
        engine_done_at = at;
}

static bool has_keys(int tag)
{
    return tag != TAG_HEADER && tag != TAG_FETCHED;
}

/* The size that SMPI is told for `count` bytes of keys. */
static int nominal(int count, MPI_Datatype type)
{
    const int64_t bytes = nominal_bytes(count);
    if (type != MPI_BYTE || bytes > INT_MAX)
        stop("a message of keys that is not of bytes, or too large: smaller pieces are needed");
    return (int)bytes;
}

int __wrap_MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    if (!has_keys(tag)) {
        traffic.short_messages++;
        return __real_MPI_Isend(from, count, type, to, tag, comm, request);
    }
    const int bytes = nominal(count, type);
    traffic.key_messages++;
    traffic.key_bytes += count * modelled.scale;
    open_add(request);
    if (bytes == count || bytes >= EAGER_BYTES)
        return __real_MPI_Isend(from, bytes, type, to, tag, comm, request);
    // SMPI will copy all of it now: more than there are real bytes.
    char *padded = calloc(1, (size_t)bytes);
    if (!padded)
        stop("no memory for a message");
    memcpy(padded, from, (size_t)count);
    const int code = __real_MPI_Isend(padded, bytes, type, to, tag, comm, request);
    free(padded);
    return code;
}

int __wrap_MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                     MPI_Request *request)
{
    if (!has_keys(tag))
        return __real_MPI_Irecv(to, count, type, from, tag, comm, request);
    open_add(request);
    return __real_MPI_Irecv(to, nominal(count, type), type, from, tag, comm, request);
}

/* Sleep until one of the messages on their way is done; a later test of it says so, as its handle is none any more. */
static int wait_for_any(void)
{
    MPI_Request handles[OPEN_MAX_REQUESTS];
    int which = MPI_UNDEFINED;
    for (int i = 0; i < open_requests; i++)
        handles[i] = *open_request[i];
    MPI_Status status;
    const int code = MPI_Waitany(open_requests, handles, &which, &status);
    if (which != MPI_UNDEFINED) {
        if (done_messages == OPEN_MAX_REQUESTS)
            stop("more messages are done than were thought of");
        done_message[done_messages++] = (struct done_message){open_request[which], status};
        *open_request[which] = MPI_REQUEST_NULL;
        open_remove(open_request[which]);
    }
    return code;
}

/* Did the message end while the rank slept? */
static bool was_done(const MPI_Request *request, MPI_Status *status)
{
    for (int i = 0; i < done_messages && *request == MPI_REQUEST_NULL; i++)
        if (done_message[i].request == request) {
            if (status != MPI_STATUS_IGNORE)
                *status = done_message[i].status;
            done_message[i] = done_message[--done_messages];
            return true;
        }
    return false;
}

/* The real bytes of a message of keys. */
int __wrap_MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    const int code = __real_MPI_Get_count(status, type, count);
    if (code == MPI_SUCCESS && *count != MPI_UNDEFINED && type == MPI_BYTE)
        *count = (int)real_bytes((size_t)*count);
    return code;
}

int __wrap_MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (was_done(request, status)) {
        *flag = 1;
        return MPI_SUCCESS;
    }
    int code = __real_MPI_Test(request, flag, status);
    if (code == MPI_SUCCESS && *flag)
        open_remove(request);
    else if (code == MPI_SUCCESS && ++failed_tests >= IN_VAIN && engine_done_at > 0) {
        const double nap_end = simulated_now() + nap;
        simulated_sleep_until(engine_done_at < nap_end ? engine_done_at : nap_end);
        failed_tests = 0; // it asks the engine once more before it waits for messages alone
        nap = 2 * nap < LONGEST_NAP_S ? 2 * nap : LONGEST_NAP_S;
    } else if (code == MPI_SUCCESS && failed_tests >= IN_VAIN)
        code = wait_for_any();
    return code;
}

/* SMPI's own lets every rank send to all after it, which for a thousand ranks takes minutes. This one doubles the reach with
 * every step, as MPI libraries for clusters do. Sums of 64-bit numbers only: there are no others. */
int __wrap_MPI_Exscan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    const int64_t *own = send;
    int64_t *before = receive;
    int64_t *sum = malloc(2 * (size_t)count * sizeof *sum), *came = sum + count;
    int rank, size, code = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (!sum || type != MPI_INT64_T || op != MPI_SUM)
        stop("no memory for an MPI_Exscan, or one of another kind than expected");
    traffic.collectives++;
    memcpy(sum, own, (size_t)count * sizeof *sum);
    for (int reach = 1; reach < size && code == MPI_SUCCESS; reach *= 2) {
        const int to = rank + reach < size ? rank + reach : MPI_PROC_NULL;
        const int from = rank >= reach ? rank - reach : MPI_PROC_NULL;
        code =
            __real_MPI_Sendrecv(sum, count, type, to, 0, came, count, type, from, 0, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < count && from != MPI_PROC_NULL; i++)
            sum[i] += came[i];
    }
    for (int i = 0; i < count; i++)
        before[i] = sum[i] - own[i];
    free(sum);
    return code;
}

/* SMPI takes each of its hosts, a GPU here, for a node. */
int __wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node)
{
    int rank;
    (void)type, (void)info;
    MPI_Comm_rank(comm, &rank);
    return MPI_Comm_split(comm, rank / modelled.per_node, key, node);
}

/* ---- only counted ------------------------------------------------------------------------------------------------ */

#define COUNTED(counter, name, parameters, arguments) \
    int __real_##name parameters;                     \
    int __wrap_##name parameters;                     \
    int __wrap_##name parameters                      \
    {                                                 \
        traffic.counter++;                            \
        return __real_##name arguments;               \
    }

COUNTED(short_messages, MPI_Sendrecv,
        (const void *send, int sends, MPI_Datatype send_type, int to, int send_tag, void *receive,
         int receives, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
         MPI_Status *status),
        (send, sends, send_type, to, send_tag, receive, receives, receive_type, from, receive_tag, comm,
         status))
COUNTED(collectives, MPI_Allgather,
        (const void *send, int sends, MPI_Datatype send_type, void *receive, int receives,
         MPI_Datatype receive_type, MPI_Comm comm),
        (send, sends, send_type, receive, receives, receive_type, comm))
COUNTED(collectives, MPI_Alltoall,
        (const void *send, int sends, MPI_Datatype send_type, void *receive, int receives,
         MPI_Datatype receive_type, MPI_Comm comm),
        (send, sends, send_type, receive, receives, receive_type, comm))
COUNTED(collectives, MPI_Allreduce,
        (const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (send, receive, count, type, op, comm))
COUNTED(collectives, MPI_Bcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
        (buffer, count, type, root, comm))
