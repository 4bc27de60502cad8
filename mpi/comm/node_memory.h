/* Host memory that the ranks of a node take at the same time. Each rank may find enough for itself although
 * there is not enough for all. Linux then kills a process instead of refusing memory. */
#ifndef NODE_MEMORY_H
#define NODE_MEMORY_H

#include "mpi/comm/comm.h"

/* May this rank take `bytes` of host memory while the other ranks of its node take theirs? Each limit of this
 * rank (the machine, its cgroup, the cgroups above that) is compared with what all ranks that share the limit
 * want together. Nothing is taken. Collective over the node; the only rank of a node sends no message.
 * Errors   HSORT_HOST_MEMORY, HSORT_MPI; of this rank alone: the caller agrees on it before any rank takes
 * memory. */
hsort_status node_memory_check(const struct comm *comm, uint64_t bytes);

#endif
