#include "mpi/transport/shared_slots.h"
#include <stdlib.h>

hsort_status shared_slots_open(struct comm *comm, struct engine *engine, size_t bytes,
                               struct shared_slots *shared)
{
    int64_t all, some;
    *shared = (struct shared_slots){.engine = engine, .pin = calloc((size_t)comm->size, sizeof *shared->pin)};
    const bool has_table = shared->pin;
    hsort_status status = comm_range(comm, has_table, &all, &some);
    if (status == HSORT_OK && !has_table)
        status = status_fail(HSORT_HOST_MEMORY, "no memory to share slots with %d ranks", comm->node_size);
    if (status == HSORT_OK && all)
        status = shared_memory_open(comm, engine, bytes, &shared->memory);
    if (status != HSORT_OK)
        shared_slots_close(shared);
    return status;
}

char *shared_slots_of(struct shared_slots *shared, int peer)
{
    char *of = shared->memory.of ? shared->memory.of[peer] : NULL;
    // Where it fails, copies still work, only not beside other work.
    if (of && shared->pin[peer] == PIN_UNTRIED)
        shared->pin[peer] =
            shared->engine->ops->pin(shared->engine, of, shared->memory.bytes) ? PIN_DONE : PIN_FAILED;
    return of;
}

void shared_slots_close(struct shared_slots *shared)
{
    for (int peer = 0; shared->memory.of && peer < shared->memory.size; peer++)
        if (shared->memory.of[peer] && shared->pin[peer] == PIN_DONE)
            shared->engine->ops->unpin(shared->engine, shared->memory.of[peer]);
    shared_memory_close(&shared->memory);
    free(shared->pin);
    *shared = (struct shared_slots){0};
}
