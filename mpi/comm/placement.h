/* Which GPU and which cores a rank takes. placement_here() asks the machine it runs on and the ranks there, and
 * binds. What it chooses follows from a topology and from what ranks request (gpu_request.h), so the choice can be tested
 * on synthetic and recorded machines. */
#ifndef PLACEMENT_H
#define PLACEMENT_H

#include <hwloc.h>
#include "mpi/comm/comm.h"
#include "kernels/engine.h"

enum { PLACEMENT_MAX_DEVICES = 64 };

/* What is known of a node before choosing. */
struct placement_node {
    hwloc_topology_t topology;              /* with PCI devices where there are GPUs; borrowed */
    int devices;                            /* GPUs this rank sees */
    struct cuda_device device[PLACEMENT_MAX_DEVICES];
    int node_rank, node_size;               /* among the ranks of this node */
    hwloc_const_cpuset_t allowed;           /* cores the launcher gave this rank; borrowed */
    hwloc_const_cpuset_t machine;           /* cores any process here may use; borrowed */
};

struct placement {
    int device;               /* index among the GPUs this rank sees; -1: none */
    int numa_node;            /* -1: unknown */
    hwloc_cpuset_t cpus;      /* cores to run on; owned, hwloc_bitmap_free() */
    int cores;                /* of them, counted as cores, not as hardware threads; no more than a quota of CPU time pays for */
    bool bound_by_launcher;   /* `allowed` is less than `machine`: leave the mask alone */
    struct placement_binding *binding; /* of the process; placement_release() undoes it; owned; NULL: none */
};

/* Cores near device: those of the NUMA node it names, else of its PCI bus, else all. Borrowed from the
 * topology. */
hwloc_const_cpuset_t placement_cpus_near(hwloc_topology_t topology, const struct cuda_device *device);

/* Choose for this rank on this machine, bind its process unless told not to or bound already, and describe
 * it. A rank that may not run everywhere gets a near one of the GPUs it sees, as far as near ones go
 * round. Collective (UUIDs are compared on the node, so that a shared GPU is noticed).
 *   devices   GPUs to choose from: cuda_device_count(), or 0 for the host engine
 *   placement [1] written; placement_release() frees it, also after an error; info [1] written
 * Errors HSORT_INTERNAL, HSORT_HOST_MEMORY, HSORT_CUDA, HSORT_MPI; the caller agrees on it. */
hsort_status placement_here(struct comm *comm, int devices, hsort_binding binding,
                            struct placement *placement, hsort_rank_info *info);

/* Free what a placement holds. If the process is bound by it, the process gets the binding of the youngest placement that
 * is left or, with the last one, what it had before the first; a binding that the caller has changed since stays. Any
 * thread. Not collective. */
void placement_release(struct placement *placement);

#endif
