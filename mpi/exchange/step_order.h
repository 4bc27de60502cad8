/* Which peers a rank exchanges with in each step, when all ranks exchange with all others. In step s each rank takes from one peer, and
 * gives to another. No two ranks have the same peer in a step. Nor does one rank wait for its node while others wait for the network: if
 * all nodes have the same number of ranks, the node and the place within the node go round independently. Two nodes of two ranks; in step
 * 0 a rank is its own peer:
 *
 *     step               0      1      2      3
 *     rank 0 takes of    0      1      2      3
 *     rank 1             1      0      3      2
 *     rank 2             2      3      0      1
 *
 * Rejected: letting rank r take from r - s on even nodes, too. In step 1 only one rank of each node then has a peer on another node, so
 * most of the P steps use only a part of the network. */
#ifndef STEP_ORDER_H
#define STEP_ORDER_H

#include "mpi/comm/comm.h"

/* The rank that is `nodes` nodes and `ranks` places in a node behind this one. */
static inline int step_rank_behind(const struct comm *comm, int nodes, int ranks)
{
    const int each = comm->even_node_ranks, all = comm->size / each;
    return (comm->rank / each + nodes + all) % all * each + (comm->rank % each + ranks + each) % each;
}

/* The rank that this one takes from in a step, 0 .. size - 1. Pure, like the next function. */
static inline int step_source(const struct comm *comm, int step)
{
    const int each = comm->even_node_ranks;
    return step_rank_behind(comm, step / each, step % each);
}

/* The rank that this one gives to: this rank is its source. */
static inline int step_target(const struct comm *comm, int step)
{
    const int each = comm->even_node_ranks;
    return step_rank_behind(comm, -(step / each), -(step % each));
}

#endif
