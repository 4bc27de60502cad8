/* Pinned memory of each rank that the other ranks of its node can read, too: the ring slots of staged chunks
 * between two ranks of a node. Through MPI they would be copied once or twice more, by the cores. */
#ifndef SHARED_SLOTS_H
#define SHARED_SLOTS_H

#include "mpi/transport/shared_memory.h"

/* Whether a peer's slots are pinned here. */
enum shared_pin { PIN_UNTRIED, PIN_FAILED, PIN_DONE };

struct shared_slots {
    struct engine *engine;       /* borrowed */
    struct shared_memory memory; /* the own slots are pinned */
    enum shared_pin *pin;        /* [size] of those of others */
};

/* Make this rank's slots and map those of the others on its node, as shared_memory_open() does. Collective.
 *   shared  [1] written; shared_slots_close() frees it; nothing to free after an error
 * Errors  not agreed: HSORT_MPI, HSORT_HOST_MEMORY. */
hsort_status shared_slots_open(struct comm *comm, struct engine *engine, size_t bytes,
                               struct shared_slots *shared);

/* The slots of `peer`, pinned on first use if that works, or NULL: tried once. Not collective. */
char *shared_slots_of(struct shared_slots *shared, int peer);

void shared_slots_close(struct shared_slots *shared); /* not collective */

#endif
