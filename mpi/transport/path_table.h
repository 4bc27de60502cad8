/* What each pair of ranks reaches, for hsort_try_paths(). */
#ifndef PATH_TABLE_H
#define PATH_TABLE_H

#include "mpi/comm/comm.h"
#include "kernels/engine.h"
#include "kernels/base/hypersort_types.h"
#include "mpi/transport/transport.h"

/* Rounds in which the pairs of `size` ranks meet, each rank in one pair at a time. At most 16. Pure. */
int path_table_rounds(int size);

/* Whom `rank` meets in a round, or -1. Pure. */
int path_table_partner(int rank, int size, int round);

/* Try them all.                                                                                    Collective.
 *   reach  [size] written: between this rank and each other one, the same seen from both; 0 where they do not meet
 * Errors   same on every rank: HSORT_DEVICE_MEMORY, HSORT_HOST_MEMORY, HSORT_CUDA, HSORT_MPI. */
hsort_status path_table_measure(struct comm *comm, struct engine *engine, struct transport *transport,
                                hsort_reach *reach);

#endif
