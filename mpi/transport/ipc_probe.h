/* Which ranks can read each other's engine memory. Private to transport_ipc. */
#ifndef IPC_PROBE_H
#define IPC_PROBE_H

#include <stdbool.h>
#include "mpi/comm/comm.h"
#include "kernels/engine.h"

/* Probe all pairs of ranks of each node. Collective.
 *   maps    [size] written: ranks with which memory is read, both ways; symmetric over the ranks
 *   some    [1] written, the same on every rank: there is any such pair
 *   why     [why_bytes] why this rank does not read some other rank, or any; "" if it reads all of its node
 * Errors  same on every rank: HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY, HSORT_CUDA, HSORT_MPI. */
hsort_status ipc_probe_pairs(struct comm *comm, struct engine *engine, bool *maps, bool *some, char *why,
                             size_t why_bytes);

#endif
