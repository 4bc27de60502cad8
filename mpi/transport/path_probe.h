/* How fast the path between two ranks is: what path_table.c measures each pair with. */
#ifndef PATH_PROBE_H
#define PATH_PROBE_H

#include "mpi/comm/comm.h"
#include "kernels/engine.h"
#include "mpi/transport/transport.h"

struct path_probe {
    struct comm *comm;
    struct transport *transport;
    char *send, *receive; /* [bytes] each, engine memory; what they hold does not matter */
    size_t bytes;         /* 64 at least */
    hsort_status status;  /* the first failure on this rank; it keeps to the schedule */
};

/* Times of MPI_Wtime(), the slower side's, so the same on both. */
struct path_times {
    double latency; /* of 64 bytes each way, seconds */
    size_t bytes;   /* of the largest transfer, each way */
    double seconds; /* that it took */
};

/* Send and receive 64 bytes, then 64 KiB and 8 times more each time, up to probe->bytes, while a transfer
 * stays within some milliseconds. Collective over the pair. */
struct path_times path_probe_pair(struct path_probe *probe, int partner);

#endif
