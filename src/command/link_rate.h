/* How fast the links between host memory and the ranks' GPUs are, for `info`: they limit a sort in two passes. */
#ifndef LINK_RATE_H
#define LINK_RATE_H

#include "mpi/comm/comm.h"
#include "src/command/json.h"

/* Bytes per second of one rank, the least of all ranks, while all of them copy. 0: not measured. */
struct link_rate {
    double in, out; /* one way alone */
    double both;    /* each way, while both ways are busy */
};

/* Measure, from and to pinned memory. Collective.
 *   gpu   this rank's device, or -1: there is none, on any rank, and nothing is measured
 *   rate  [1] written, the same on every rank
 * Memory   64 MiB each way, pinned and on the GPU. Time: some 50 ms.
 * Errors   agreed: HSORT_CUDA, HSORT_DEVICE_MEMORY, HSORT_HOST_MEMORY. */
hsort_status link_rate_measure(struct comm *comm, int gpu, struct link_rate *rate);

/* Print a line, or nothing if not measured; put a member of an object, null if not measured. */
void link_rate_print(const struct link_rate *rate);
void link_rate_json(struct json *json, const struct link_rate *rate);

#endif
