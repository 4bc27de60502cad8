/* Which paths are slow, so that what goes there is packed: paths between nodes, and paths through host memory on both sides. The answer
 * is the same on both ranks of a path. Not collective. */
#ifndef PACKED_PATHS_H
#define PACKED_PATHS_H

#include "mpi/comm/comm.h"
#include "mpi/transport/transport.h"

static inline bool path_packs(const struct comm *comm, const struct engine *engine, const struct transport *transport, int peer)
{
    return engine->ops->packing && peer != comm->rank &&
           (!comm_is_near(comm, peer) || transport_path(transport, peer) == HSORT_TRANSPORT_STAGED);
}

/* Does the path to any rank pack? */
static inline bool any_path_packs(const struct comm *comm, const struct engine *engine, const struct transport *transport)
{
    bool any = false;
    for (int peer = 0; peer < comm->size && !any; peer++)
        any = path_packs(comm, engine, transport, peer);
    return any;
}

#endif
