/* A pair of ranks swaps few bytes (latency), then more and more, through the transport's own swap(), so that what streams, kernels
 * and offers add is in the time, as it is in a sort:
 *
 *     64 B   64 KiB   512 KiB   4 MiB   32 MiB         on to the next size only if the slower side says that it stays
 *      x 4     x 3      x 3      x 3                   within PATIENCE, so a slow path costs no more than its smallest sizes
 *
 * The two sides agree on it; other pairs do as they like. One size for all ranks was the other choice: then a single pair that
 * is staged would keep all others from showing what NVLink does. */
#include "kernels/base/first_error.h"
#include "mpi/transport/path_trial.h"
#include <stdlib.h>

enum { SMALL_BYTES = 64, FIRST_BYTES = 64 << 10, GROWTH = 8, REPEATS = 3, MESSAGES = 5, TAG = 5 };
static const double PATIENCE = 5e-3; /* for one swap */

static int compare_times(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

double path_median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare_times);
    return times[count / 2];
}

double path_try_message(struct path_trial *t, int partner)
{
    double times[MESSAGES];
    int64_t out = 0, in;
    for (int i = -1; i < MESSAGES; i++) {
        const double start = MPI_Wtime();
        keep_first_error(&t->status, comm_check(MPI_Sendrecv(&out, 1, MPI_INT64_T, partner, TAG, &in, 1, MPI_INT64_T, partner, TAG,
                                        t->comm->world, MPI_STATUS_IGNORE),
                           "MPI_Sendrecv", true));
        if (i >= 0) // the first one makes the connection
            times[i] = MPI_Wtime() - start;
    }
    return path_median(times, MESSAGES);
}

double path_try_swap(struct path_trial *t, int partner, size_t bytes, int repeats)
{
    double times[REPEATS];
    int64_t moved = 0;
    for (int i = 0; i < repeats; i++) {
        const double start = MPI_Wtime();
        keep_first_error(&t->status, t->transport->ops->sendrecv(t->transport, partner, t->send, bytes, partner, t->receive, bytes,
                                        &moved));
        times[i] = MPI_Wtime() - start;
    }
    return path_median(times, repeats);
}

double path_slower(struct path_trial *t, int partner, double own)
{
    double theirs = own;
    keep_first_error(&t->status, comm_check(MPI_Sendrecv(&own, 1, MPI_DOUBLE, partner, TAG, &theirs, 1, MPI_DOUBLE, partner, TAG,
                                    t->comm->world, MPI_STATUS_IGNORE),
                       "MPI_Sendrecv", true));
    return theirs > own ? theirs : own;
}

struct path_times path_try(struct path_trial *t, int partner)
{
    struct path_times times = {.bytes = SMALL_BYTES};
    path_try_swap(t, partner, SMALL_BYTES, 1); // maps memory
    times.latency = path_slower(t, partner, path_try_swap(t, partner, SMALL_BYTES, REPEATS));
    times.seconds = times.latency;
    for (size_t bytes = FIRST_BYTES; bytes <= t->bytes; bytes *= GROWTH) {
        times.bytes = bytes;
        times.seconds = path_slower(t, partner, path_try_swap(t, partner, bytes, REPEATS));
        if (times.seconds > PATIENCE / GROWTH)
            break;
    }
    return times;
}
