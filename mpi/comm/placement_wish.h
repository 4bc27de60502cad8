/* Sharing out the cores of a node among its ranks, by what each of them wishes for. Private to
 * mpi/placement*.c and to their test.
 *
 * A rank's wish is the set of processing units it would like: those near its GPU, or all of its mask if it
 * keeps that. placement_choose() imagines the wishes of the other ranks; placement_here() is told them. */
#ifndef PLACEMENT_WISH_H
#define PLACEMENT_WISH_H

#include "mpi/comm/placement.h"

struct wishes {
    int ranks;            /* of the node */
    hwloc_bitmap_t *cpus; /* [ranks], owned */
};

/* Make room for the wishes of `ranks` ranks, all empty. wishes_close() frees them, also after an error.
 * Errors HSORT_HOST_MEMORY. */
hsort_status wishes_open(int ranks, struct wishes *wishes);
void wishes_close(struct wishes *wishes);

/* The GPU of the rank after `before` others, of `ranks` that all see the same `devices` GPUs; -1: none. */
int placement_device(int before, int ranks, int devices);

/* The GPUs that this rank may run near: bit d stands for device d. Of one whose place is unknown that is said, too. Not
 * collective. */
uint64_t placement_near(const struct placement_node *node);

/* The GPU of the rank `me` of those that see the same GPUs, which is a matter of where each may run:
 *   near [ranks]  placement_near() of each
 *   devices       at least 1
 *   device        [1] written
 * After    every GPU has as many ranks as in blocks (and none has two before all have one); as many ranks as can be are near
 *          theirs; and where that leaves a choice, a rank has the GPU that it would have in blocks.
 * Errors   HSORT_HOST_MEMORY; *device is then that of the blocks. */
hsort_status placement_match(const uint64_t *near, int ranks, int devices, int me, int *device);

/* What this rank wishes for: what it is allowed near `device`, or all of it for -1 or where none of that is
 * near. Writes into wish, which is not empty afterwards.
 * Errors HSORT_INTERNAL if node->allowed is empty, HSORT_HOST_MEMORY. */
hsort_status placement_wish(const struct placement_node *node, int device, hwloc_bitmap_t wish);

/* Fill in all but the device, which is chosen already, for the rank `me` among the wishes. Wishes that
 * overlap make one pool, whose cores its ranks share out in their order.
 *   keeps_mask  the rank stays on all it is allowed, and its share is only a number of cores
 * After    placement->cpus is owned by the caller; NULL after an error.
 * Errors HSORT_HOST_MEMORY. */
hsort_status placement_settle(const struct placement_node *node, const struct wishes *wishes, int me,
                              bool keeps_mask, struct placement *placement);

/* Is `allowed` less than `machine`? */
bool placement_bound_by_launcher(const struct placement_node *node);

#endif
