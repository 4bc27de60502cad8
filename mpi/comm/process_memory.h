/* Memory of other processes of the node, read by this one alone: the owner does nothing, and need not have mapped anything. This is
 * for large pieces that lie in ordinary host memory: many threads read at a time, while MPI copies with one. */
#ifndef PROCESS_MEMORY_H
#define PROCESS_MEMORY_H

#include "mpi/comm/comm.h"

struct process_memory {
    bool *reads;   /* [size] this rank can read that rank's memory; not its own. Owned, as the others */
    bool *is_read; /* [size] that rank can read this rank's memory */
    struct memory_sample *samples; /* [size] */
    uint64_t shown;                /* what others read to find out whether they can */
};

/* Make tables for `size` ranks; nobody reads yet. process_memory_close() frees them, also after an error. Not collective.
 * After process_memory_open() the struct stays where it is, because others read parts of it. Errors HSORT_HOST_MEMORY. */
hsort_status process_memory_open(int size, struct process_memory *memory);

void process_memory_close(struct process_memory *memory); /* not collective */

/* Find out whose memory this rank can read, by reading a few bytes. It is no error if it cannot: the system may forbid it, and
 * processes in other containers are not seen. Nobody is told yet: process_memory_tell() comes next. Collective.
 *   wanted  the same on every rank; false: nobody reads
 * Errors    of this rank alone: HSORT_MPI. */
hsort_status process_memory_find(struct comm *comm, bool wanted, struct process_memory *memory);

/* Look at the first and the last of the bytes that this rank is going to read from rank `peer`. If it cannot, it reads none of that rank's
 * memory: the system keeps some memory from others that it lets the owner use, such as device memory and secret memory. Not collective;
 * between process_memory_find() and process_memory_tell(). */
void process_memory_try(struct process_memory *memory, int peer, uint64_t address, size_t bytes);

/* Tell all ranks who reads whose memory. Collective. Errors of this rank alone: HSORT_MPI. */
hsort_status process_memory_tell(struct comm *comm, struct process_memory *memory);

/* Copy bytes from `address` on, which is an address in rank `peer`'s process, to `to`. The owner leaves them as they are until
 * the two agree that they have been read. Any thread; not collective.
 * Errors  HSORT_MPI: the process is gone, or has no such memory. */
hsort_status process_memory_read(const struct process_memory *memory, int peer, uint64_t address, size_t bytes, void *to);

#endif
