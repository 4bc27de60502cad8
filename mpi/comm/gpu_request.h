/* The GPUs and the cores that the ranks of a node request, and how they are shared out. Private to
 * mpi/comm/placement*.c and to their tests.
 *
 * A rank's request is the set of processing units it would like: those near its GPU, or all of its mask if it
 * keeps that. placement_here() receives those of the other ranks. */
#ifndef GPU_REQUEST_H
#define GPU_REQUEST_H

#include "mpi/comm/placement.h"

struct core_requests {
    int ranks;            /* of the node */
    hwloc_bitmap_t *cpus; /* [ranks], owned */
};

/* Take memory for the requests of `ranks` ranks, all empty. core_requests_close() frees them, also after an
 * error. Errors HSORT_HOST_MEMORY. */
hsort_status core_requests_open(int ranks, struct core_requests *requests);
void core_requests_close(struct core_requests *requests);

/* The GPU of the rank that comes after `before` others, of `ranks` ranks that all see the same `devices` GPUs; -1: none. */
int placement_device(int before, int ranks, int devices);

/* The GPUs that this rank may run near: bit d stands for device d. A GPU whose place is unknown counts as
 * near. Not collective. */
uint64_t placement_near(const struct placement_node *node);

/* Choose the GPU of the rank `me` among the ranks that see the same GPUs, by where each may run:
 *   near [ranks]  placement_near() of each
 *   devices       at least 1
 *   device        [1] written
 * After    every GPU has as many ranks as in blocks, and none has two before all have one. A rank that is
 *          near the GPU that it would have in blocks has that GPU. No rank is far from its GPU while a GPU that is
 *          near the rank has a place left. Fewer ranks may be near than could be: a rank keeps the GPU that it has.
 * Errors   HSORT_HOST_MEMORY; *device is then the GPU that the rank would have in blocks. */
hsort_status placement_choose_gpu(const uint64_t *near, int ranks, int devices, int me, int *device);

/* Write what this rank requests into request: the part of what it is allowed that is near `device`, or all of it if
 * device is -1 or none of it is near. request is not empty afterwards.
 * Errors HSORT_INTERNAL if node->allowed is empty, HSORT_HOST_MEMORY. */
hsort_status placement_request(const struct placement_node *node, int device, hwloc_bitmap_t request);

/* Fill in everything except the device, which is chosen already, for the rank `me` among the requests. Requests
 * that overlap make one core set, and its ranks divide its cores in their order.
 *   keeps_mask  the rank stays on all it is allowed, and its part is only a number of cores
 * After    placement->cpus is owned by the caller; NULL after an error.
 * Errors HSORT_HOST_MEMORY. */
hsort_status placement_settle(const struct placement_node *node, const struct core_requests *requests, int me,
                              bool keeps_mask, struct placement *placement);

#endif
