/* Placement on the made-up cluster: there is nothing to search for, and nothing to bind, and memory is never touched. */
#include "mpi/comm/node_memory.h"
#include "mpi/comm/placement.h"
#include <stdio.h>
#include <string.h>

hsort_status placement_here(struct comm *comm, int devices, hsort_binding binding,
                            struct placement *placement, hsort_rank_info *info)
{
    (void)devices, (void)binding;
    *placement = (struct placement){.device = -1, .numa_node = -1, .cores = 1};
    memset(info, 0, sizeof *info);
    snprintf(info->host, sizeof info->host, "%s", comm->host);
    return HSORT_OK;
}

hsort_status node_memory_check(const struct comm *comm, uint64_t bytes)
{
    (void)comm, (void)bytes;
    return HSORT_OK;
}

void placement_release(struct placement *placement)
{
    (void)placement;
}
