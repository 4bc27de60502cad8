/* With whom a rank exchanges in which step, where all exchange with all. In step s each rank takes from one peer, and gives to another.
 * No two ranks have the same peer in a step, nor does one wait for its node while others wait for the network: where all nodes have as
 * many ranks, node and place in it go round by themselves. Two nodes of two ranks; in step 0 a rank is its own peer:
 *
 *     step               0      1      2      3
 *     rank 0 takes of    0      1      2      3
 *     rank 1             1      0      3      2
 *     rank 2             2      3      0      1
 *
 * Rejected: rank r from r - s, on nodes that are even, too. In step 1 only one rank of each node has a peer on another one, so of P
 * steps most use the network by a part. */
#ifndef STEP_ORDER_H
#define STEP_ORDER_H

#include "mpi/comm/comm.h"

/* The rank that is `nodes` nodes and `ranks` places in a node behind this one. */
static inline int step_rank_behind(const struct comm *comm, int nodes, int ranks)
{
    const int each = comm->even_node_ranks, all = comm->size / each;
    return (comm->rank / each + nodes + all) % all * each + (comm->rank % each + ranks + each) % each;
}

/* That this rank takes from in a step, 0 .. size - 1. Pure, as the next. */
static inline int step_source(const struct comm *comm, int step)
{
    const int each = comm->even_node_ranks;
    return step_rank_behind(comm, step / each, step % each);
}

/* That it gives to: whose source it is. */
static inline int step_target(const struct comm *comm, int step)
{
    const int each = comm->even_node_ranks;
    return step_rank_behind(comm, -(step / each), -(step % each));
}

#endif
