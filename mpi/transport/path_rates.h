/* How fast this machine is, for the model of cost.h: tried when a context is made. */
#ifndef PATH_RATES_H
#define PATH_RATES_H

#include "mpi/comm/comm.h"
#include "mpi/exchange/cost.h"
#include "kernels/engine.h"
#include "mpi/transport/transport.h"

/* Measure what can be measured in a few tens of milliseconds, and make one table of all ranks': the slowest of each rate.
 *   rates  [1] in and out: whatever has the source DEFAULT and could be measured becomes MEASURED; the same on every rank
 *          before and after. A rate that no pair of ranks could try (NETWORK on one node) stays as it is; all do, if any
 *          rank fails at anything of its own: it is no error.
 * Errors   HSORT_MPI: the communicator is of no more use.                                        Collective. */
hsort_status rates_measure(struct comm *comm, struct engine *engine, struct transport *transport,
                           struct hsort_rates *rates);

#endif
