/* What a rank takes if it asks no other rank: the choice of placement_here() with requests that are assumed. */
#ifndef PLACEMENT_ALONE_H
#define PLACEMENT_ALONE_H

#include "mpi/comm/gpu_request.h"

/* Choose, without asking the other ranks. Ranks of a node spread over the GPUs they see in blocks: with
 * 4 ranks and 2 GPUs, ranks 0 and 1 take GPU 0. A rank that sees one GPU takes it. Unbound ranks share out
 * the cores near their GPU (or all cores, without a GPU), by whole cores, every rank at least one. Not
 * collective. Errors HSORT_INTERNAL (hwloc failed), HSORT_HOST_MEMORY. */
static inline hsort_status placement_choose(const struct placement_node *node, struct placement *placement)
{
    *placement = (struct placement){.numa_node = -1};
    placement->device = placement_device(node->node_rank, node->node_size, node->devices);

    // Other ranks are assumed to see what this one sees. That would be a bad guess only for its mask: launchers
    // that bind give each rank a mask of its own.
    const bool bound = !hwloc_bitmap_isequal(node->allowed, node->machine);
    struct core_requests requests;
    hsort_status status = core_requests_open(bound ? 1 : node->node_size, &requests);
    for (int rank = 0; status == HSORT_OK && rank < requests.ranks; rank++) {
        const int device = placement_device(rank, node->node_size, node->devices);
        status = placement_request(node, bound ? -1 : device, requests.cpus[rank]);
    }
    if (status == HSORT_OK)
        status = placement_settle(node, &requests, bound ? 0 : node->node_rank, bound, placement);
    core_requests_close(&requests);
    return status;
}

#endif
