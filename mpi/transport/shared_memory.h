/* Memory of each rank that the other ranks of its node have mapped, too. */
#ifndef SHARED_MEMORY_H
#define SHARED_MEMORY_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"

/* Whether a peer's memory is pinned here. */
enum shared_pin { PIN_UNTRIED, PIN_FAILED, PIN_DONE };

struct shared_memory {
    struct engine *engine; /* borrowed; NULL: nothing is pinned */
    size_t bytes;
    char *own; /* [bytes] owned. NULL: there was none to be had */
    char **of; /* [size] the memory of each rank as mapped here, owned; NULL: the two do not share */
    enum shared_pin *pin; /* [size] of the memory of the others; NULL without an engine */
    int size;
};

/* Make this rank's memory, and map that of the others on its node. It is 0 except its first 8 bytes, which hold anything. It is no error
 * that a rank can share nothing, because the system gives it no such memory or keeps it apart: `of` says with which ranks it shares, the
 * same on both sides of a pair. Collective.
 *   engine  its copies read and write `own`, which is pinned for it; if that fails, the rank shares nothing. NULL: `own` is not pinned
 *   shared  [1] written; shared_memory_close() frees it; nothing to free after an error
 * Errors  not agreed: HSORT_MPI, HSORT_HOST_MEMORY. */
hsort_status shared_memory_open(struct comm *comm, struct engine *engine, size_t bytes,
                                struct shared_memory *shared);

/* The memory of `peer`, pinned on first use if that works, which is tried once. NULL: the two do not share, or there is no engine. Not
 * collective. */
char *shared_memory_pinned(struct shared_memory *shared, int peer);

void shared_memory_close(struct shared_memory *shared); /* not collective */

#endif
