/* How long messages and swaps between two ranks take: what path_rates and path_table try with. */
#ifndef PATH_TRIAL_H
#define PATH_TRIAL_H

#include "mpi/comm/comm.h"
#include "kernels/engine.h"
#include "mpi/transport/transport.h"

struct path_trial {
    struct comm *comm;
    struct transport *transport;
    char *send, *receive; /* [bytes] each, engine memory; what they hold does not matter */
    size_t bytes;         /* 64 at least */
    hsort_status status;  /* the first failure on this rank; it keeps to the schedule */
};

/* The same on both sides of a pair: the slower one's. */
struct path_times {
    double latency; /* of a swap of 64 bytes, seconds */
    size_t bytes;   /* of the largest swap, each way */
    double seconds; /* that it took */
};

/* The middle one of times [count], which it sorts. Pure. */
double path_median(double *times, int count);

/* Seconds of a message of 8 bytes by MPI itself. Collective over the pair. */
double path_try_message(struct path_trial *t, int partner);

/* Seconds of a swap of `bytes` each way, the median of `repeats`, 1 .. 3, as this side saw it. Collective over the pair. */
double path_try_swap(struct path_trial *t, int partner, size_t bytes, int repeats);

/* The greater of what both sides say. Collective over the pair. */
double path_slower(struct path_trial *t, int partner, double own);

/* Swap 64 bytes, then 64 KiB and 8 times more each time, up to t->bytes or as long as a swap stays within some milliseconds.
 * Collective over the pair. */
struct path_times path_try(struct path_trial *t, int partner);

#endif
