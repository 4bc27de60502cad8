/* Ranks that can read each other's memory need not be better off with it: the link may be a slow one, or MPI may know a better
 * way. So each such pair swaps by both transports (path_trial.c), and takes the other one if that is clearly faster:
 *
 *                            ipc          other
 *     rank 0 <-> rank 1      365 GB/s     9 GB/s      ipc
 *     rank 0 <-> rank 2       10 GB/s    11 GB/s      ipc: there a merge needs no swap, and two tries differ by as much
 *     rank 0 <-> rank 3        3 GB/s     9 GB/s      the other
 *
 * In round k those ranks meet whose numbers add up to k, modulo their count, so all are busy and each is in one pair at a time.
 * Both sides of a pair know the slower one's times, and so decide alike. */
#include <stdlib.h>
#include "mpi/transport/path_trial.h"
#include "mpi/transport/transport_ipc_trial.h"

enum { BUFFER_BYTES = 4 << 20, PEERS_MAX = 16 };
static const double CLEARLY = 1.25; /* times as fast */

struct comparison {
    struct path_trial ipc, other; /* they share their buffers */
    bool *slower;                 /* [size] ipc is, to this rank */
};

static hsort_status prepare(struct comparison *c, struct engine *engine)
{
    c->slower = calloc((size_t)c->ipc.comm->size, sizeof *c->slower);
    if (!c->slower)
        return status_fail(HSORT_HOST_MEMORY, "no memory to compare transports with");
    TRY(engine->ops->alloc(engine, BUFFER_BYTES, (void **)&c->ipc.send));
    TRY(engine->ops->alloc(engine, BUFFER_BYTES, (void **)&c->ipc.receive));
    c->other.send = c->ipc.send;
    c->other.receive = c->ipc.receive;
    return HSORT_OK;
}

static double bytes_per_second(struct path_times times)
{
    return (double)times.bytes / times.seconds;
}

static void compare_pairs(struct comparison *c, const bool *maps)
{
    const struct comm *comm = c->ipc.comm;
    if (comm->node_size > PEERS_MAX) // each pair takes some milliseconds; no machine has as many GPUs
        return;
    for (int round = 0; round < comm->size; round++) {
        const int peer = (round - comm->rank + comm->size) % comm->size;
        if (!maps[peer]) // as it is to itself
            continue;
        const double by_ipc = bytes_per_second(path_try(&c->ipc, peer));
        const double by_other = bytes_per_second(path_try(&c->other, peer));
        c->slower[peer] = by_other >= CLEARLY * by_ipc;
    }
}

hsort_status ipc_compare(struct comm *comm, struct engine *engine, struct transport *ipc, bool *maps,
                         bool *some)
{
    const struct path_trial trial = {.comm = comm, .bytes = BUFFER_BYTES, .status = HSORT_OK};
    struct comparison c = {.ipc = trial, .other = trial};
    int64_t all_ready = 0, any_ready, none_left, some_left;
    bool left = false;
    c.ipc.transport = ipc;
    c.other.transport = ipc->other;
    const hsort_status ready = prepare(&c, engine);
    hsort_status status = comm_range(comm, ready == HSORT_OK, &all_ready, &any_ready);
    if (status == HSORT_OK && all_ready)
        compare_pairs(&c, maps);
    ipc->ops->forget(ipc, FORGET_ALL); // the buffers, before the agreement
    if (status == HSORT_OK)
        status = comm_agree(comm, c.ipc.status != HSORT_OK ? c.ipc.status : c.other.status);
    for (int peer = 0; peer < comm->size; peer++) {
        maps[peer] = maps[peer] && !(all_ready && c.slower[peer]);
        left = left || maps[peer];
    }
    engine->ops->free(engine, c.ipc.send);
    engine->ops->free(engine, c.ipc.receive);
    free(c.slower);
    TRY(status);
    status_clear(); // where there is no room to compare, nothing is slower
    TRY(comm_range(comm, left, &none_left, &some_left));
    *some = some_left == 1;
    return HSORT_OK;
}
