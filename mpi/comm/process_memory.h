/* Memory of other processes of the node, read by this one alone: the owner does nothing, and need not have mapped anything. For
 * large pieces that lie in ordinary host memory: many threads read at a time, where MPI copies with one. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include "mpi/comm/comm.h"

struct process_memory {
    int64_t *process; /* [size] ids; owned, as the others */
    bool *reads;      /* [size] this rank can read that one's memory; not its own */
    bool *is_read;    /* [size] that one can read this one's */
    struct memory_sample *samples; /* [size] */
};

/* Make tables for so many ranks; nobody reads yet. process_memory_close() frees them, also after an error. Not collective.
 * Errors HSORT_HOST_MEMORY. */
hsort_status process_memory_open(int size, struct process_memory *memory);

void process_memory_close(struct process_memory *memory); /* not collective */

/* Find out who can read whose memory, by reading a few bytes. That a rank cannot is no error: the system may forbid it, and
 * processes in other containers are not seen. Collective.
 *   wanted  the same on every rank; false: nobody reads
 * Errors    of this rank alone: HSORT_MPI. */
hsort_status process_memory_find(struct comm *comm, bool wanted, struct process_memory *memory);

/* Copy bytes from `address` on, which is an address in rank `peer`'s process, to `to`. The owner leaves them as they are until
 * the two agree that they have been read. Any thread; not collective.
 * Errors  HSORT_MPI: the process is gone, or has no such memory. */
hsort_status process_memory_read(const struct process_memory *memory, int peer, uint64_t address, size_t bytes, void *to);

#endif
