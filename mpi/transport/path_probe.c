/* A pair of ranks sends few bytes both ways (latency), then more and more, through the transport's own
 * sendrecv(), so the time includes streams, kernels and headers, as in a sort:
 *
 *     64 B   64 KiB   512 KiB   4 MiB   32 MiB         on to the next size only if it should stay within
 *      x 4     x 3      x 3      x 3     x 3            PATIENCE: a slow path costs its smallest sizes
 *
 * The two sides agree on that; other pairs stop at sizes of their own. With one size for all ranks, a single
 * staged pair would keep all others from showing what NVLink does. */
#include "kernels/base/first_error.h"
#include "mpi/transport/path_probe.h"
#include <stdlib.h>

enum { SMALL_BYTES = 64, FIRST_BYTES = 64 << 10, GROWTH = 8, REPEATS = 3, TAG = 5 };
static const double PATIENCE = 5e-3; /* seconds of one transfer */

static int compare_times(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Seconds of a transfer of `bytes` each way: the median of REPEATS, as this side saw it. Collective over the
 * pair. */
static double time_sendrecv(struct path_probe *probe, int partner, size_t bytes)
{
    struct transport *transport = probe->transport;
    double times[REPEATS];
    int64_t moved = 0;
    for (int i = 0; i < REPEATS; i++) {
        const double start = MPI_Wtime();
        keep_first_error(&probe->status, transport->ops->sendrecv(transport, partner, probe->send, bytes,
                                                                  partner, probe->receive, bytes, &moved));
        times[i] = MPI_Wtime() - start;
    }
    qsort(times, REPEATS, sizeof *times, compare_times);
    return times[REPEATS / 2];
}

/* The greater of the times that both sides saw. Collective over the pair. */
static double slower_side(struct path_probe *probe, int partner, double own)
{
    double theirs = own;
    keep_first_error(&probe->status,
                     comm_check(MPI_Sendrecv(&own, 1, MPI_DOUBLE, partner, TAG, &theirs, 1, MPI_DOUBLE,
                                             partner, TAG, probe->comm->world, MPI_STATUS_IGNORE),
                                "MPI_Sendrecv", true));
    return theirs > own ? theirs : own;
}

/* The first transfer maps memory, and is not timed. Collective over the pair. */
static void warm_up(struct path_probe *probe, int partner)
{
    int64_t moved = 0;
    keep_first_error(&probe->status,
                     probe->transport->ops->sendrecv(probe->transport, partner, probe->send, SMALL_BYTES,
                                                     partner, probe->receive, SMALL_BYTES, &moved));
}

struct path_times path_probe_pair(struct path_probe *probe, int partner)
{
    struct path_times times = {.bytes = SMALL_BYTES};
    warm_up(probe, partner);
    times.latency = slower_side(probe, partner, time_sendrecv(probe, partner, SMALL_BYTES));
    times.seconds = times.latency;
    for (size_t bytes = FIRST_BYTES; bytes <= probe->bytes; bytes *= GROWTH) {
        times.bytes = bytes;
        times.seconds = slower_side(probe, partner, time_sendrecv(probe, partner, bytes));
        if (times.seconds > PATIENCE / GROWTH)
            break;
    }
    return times;
}
