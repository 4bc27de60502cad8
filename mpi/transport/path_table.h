/* How fast the path of each pair of ranks is, for hsort_measure_paths(). */
#ifndef PATH_TABLE_H
#define PATH_TABLE_H

#include "mpi/comm/comm.h"
#include "kernels/engine.h"
#include "kernels/base/hypersort_types.h"
#include "mpi/transport/transport.h"

/* Rounds in which the pairs of `size` ranks are measured, each rank in one pair at a time. At most 16.
 * Pure. */
int path_table_rounds(int size);

/* The partner of `rank` in a round, or -1. Pure. */
int path_table_partner(int rank, int size, int round);

/* Measure the pairs of all rounds. Collective.
 *   speeds  [size] written: to each other rank, the same seen from both sides; 0 for pairs not measured
 * Errors   same on every rank: HSORT_DEVICE_MEMORY, HSORT_HOST_MEMORY, HSORT_CUDA, HSORT_MPI. */
hsort_status path_table_measure(struct comm *comm, struct engine *engine, struct transport *transport,
                                hsort_path_speed *speeds);

#endif
