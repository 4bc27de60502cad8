/* Memory of each rank that the other ranks of its node have mapped, too. */
#ifndef SHARED_MEMORY_H
#define SHARED_MEMORY_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"

struct shared_memory {
    struct engine *engine; /* borrowed; NULL: `own` is not pinned */
    size_t bytes;
    char *own; /* [bytes] owned. NULL: there was none to be had */
    char **of; /* [size] that of each rank as mapped here, owned; NULL: the two do not share */
    int size;
};

/* Make this rank's memory and map that of the others on its node. It is 0 but for its first 8 bytes, which hold anything. That a rank can
 * share nothing, as the system gives it none or keeps it apart, is no error: `of` says with whom it does, the same on both sides of a pair.
 * Collective.
 *   engine  whose copies read and write `own`: it is pinned; where that fails the rank shares nothing. NULL: it is not
 *   shared  [1] written; shared_memory_close() frees it; nothing to free after an error
 * Errors  not agreed: HSORT_MPI, HSORT_HOST_MEMORY. */
hsort_status shared_memory_open(struct comm *comm, struct engine *engine, size_t bytes,
                                struct shared_memory *shared);

void shared_memory_close(struct shared_memory *shared); /* not collective */

#endif
