/* Which GPU and which cores a rank takes. Here are four ranks that no launcher bound, on a node with 16 cores,
 * two NUMA nodes and a GPU at each of these:
 *
 *                 NUMA node 0, GPU 0              NUMA node 1, GPU 1
 *     core     0  1  2  3 | 4  5  6  7         8  9 10 11 | 12 13 14 15
 *     rank          0     |     1                   2     |      3
 *
 * First each rank takes its GPU, in blocks of ranks. Then it requests the cores near its GPU: ranks 0 and 1 request
 * cores 0-7, ranks 2 and 3 request cores 8-15. Requests that overlap make a core set: here there are two. Each
 * core set is cut into slices of whole cores, one for each rank, side by side so that a rank's threads share
 * caches.
 *
 * If some core set has fewer cores than ranks, all ranks of the node share out all the cores they may use:
 * ranks poll while they wait for each other, and two on one core cost more than a core far from the GPU.
 *
 * A rank that its launcher bound keeps its mask and requests all of it. Its slice is then only a number
 * of cores: how many threads it may run without getting in the way of other ranks with the same mask. */
#include "mpi/comm/gpu_request.h"
#include <stdlib.h>

static hsort_status no_memory(void)
{
    return status_fail(HSORT_HOST_MEMORY, "no memory for the sets of cores of the ranks on this node");
}

hsort_status core_requests_open(int ranks, struct core_requests *requests)
{
    *requests = (struct core_requests){ranks, calloc((size_t)ranks, sizeof *requests->cpus)};
    if (!requests->cpus)
        return no_memory();
    for (int rank = 0; rank < ranks; rank++) {
        requests->cpus[rank] = hwloc_bitmap_alloc();
        if (!requests->cpus[rank])
            return no_memory();
    }
    return HSORT_OK;
}

void core_requests_close(struct core_requests *requests)
{
    for (int rank = 0; requests->cpus && rank < requests->ranks; rank++)
        hwloc_bitmap_free(requests->cpus[rank]);
    free(requests->cpus);
    requests->cpus = NULL;
}

/* ---- what is near ---- */

/* The NUMA node that the device itself names; NULL if it names none, or one that is not there. */
static hwloc_obj_t named_numa_node(hwloc_topology_t topology, const struct cuda_device *device)
{
    if (device->numa_node < 0)
        return NULL;
    hwloc_obj_t node = hwloc_get_numanode_obj_by_os_index(topology, (unsigned)device->numa_node);
    return node && !hwloc_bitmap_iszero(node->cpuset) ? node : NULL;
}

hwloc_const_cpuset_t placement_cpus_near(hwloc_topology_t topology, const struct cuda_device *device)
{
    // What the device says goes before its bus, which is elsewhere if a coherent link joins GPU and CPU.
    hwloc_obj_t node = named_numa_node(topology, device);
    if (node)
        return node->cpuset;
    hwloc_obj_t pci = hwloc_get_pcidev_by_busidstring(topology, device->pci);
    hwloc_obj_t above = pci ? hwloc_get_non_io_ancestor_obj(topology, pci) : NULL;
    if (above && above->cpuset && !hwloc_bitmap_iszero(above->cpuset))
        return above->cpuset;
    return hwloc_topology_get_topology_cpuset(topology);
}

/* Number of the NUMA node that holds all of cpus; -1 if none does. */
static int numa_node_around(hwloc_topology_t topology, hwloc_const_cpuset_t cpus)
{
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL)
        if (hwloc_bitmap_isincluded(cpus, node->cpuset))
            return (int)node->os_index;
    return -1;
}

/* Number of the NUMA node nearest to the device, or, if that is unknown, of the one around cpus. */
static int numa_node_of(hwloc_topology_t topology, const struct cuda_device *device,
                        hwloc_const_cpuset_t cpus)
{
    if (device) {
        hwloc_obj_t named = named_numa_node(topology, device);
        int node =
            named ? (int)named->os_index : numa_node_around(topology, placement_cpus_near(topology, device));
        if (node >= 0)
            return node;
    }
    return numa_node_around(topology, cpus);
}

/* ---- core sets ---- */

struct core_set {
    hwloc_bitmap_t cpus; /* all that its ranks request */
    int cores;           /* in it */
    int ranks;           /* that share it */
    int position;        /* how many of them come before the rank it was found for */
};

/* The next core after `core` (NULL: the first) that cpus has a part of. If hwloc knows of no cores,
 * processing units count as cores. */
static hwloc_obj_t next_core(hwloc_topology_t topology, hwloc_const_cpuset_t cpus, hwloc_obj_t core)
{
    const int depth = hwloc_get_type_or_below_depth(topology, HWLOC_OBJ_CORE);
    do
        core = hwloc_get_next_obj_by_depth(topology, depth, core);
    while (core && !hwloc_bitmap_intersects(core->cpuset, cpus));
    return core;
}

static int count_cores(hwloc_topology_t topology, hwloc_const_cpuset_t cpus)
{
    int cores = 0;
    for (hwloc_obj_t core = NULL; (core = next_core(topology, cpus, core)) != NULL;)
        cores++;
    return cores;
}

/* Count the core set of cpus, for the rank `me`. */
static void core_set_count(hwloc_topology_t topology, const struct core_requests *requests, int me,
                           struct core_set *set)
{
    set->cores = count_cores(topology, set->cpus);
    set->ranks = 0;
    set->position = 0;
    for (int rank = 0; rank < requests->ranks; rank++) {
        const bool here = hwloc_bitmap_intersects(set->cpus, requests->cpus[rank]);
        set->ranks += here;
        set->position += here && rank < me;
    }
}

/* Find the core set of the rank `me`: its request, the requests that overlap it, and so on. */
static hsort_status core_set_find(hwloc_topology_t topology, const struct core_requests *requests, int me,
                                  struct core_set *set)
{
    int failed = hwloc_bitmap_copy(set->cpus, requests->cpus[me]);
    int weight, before;
    do {
        before = hwloc_bitmap_weight(set->cpus);
        for (int rank = 0; rank < requests->ranks; rank++)
            if (hwloc_bitmap_intersects(set->cpus, requests->cpus[rank]))
                failed |= hwloc_bitmap_or(set->cpus, set->cpus, requests->cpus[rank]);
        weight = hwloc_bitmap_weight(set->cpus);
    } while (!failed && weight != before);
    core_set_count(topology, requests, me, set);
    return failed ? no_memory() : HSORT_OK;
}

/* The core set of the rank `me`, or all that it is allowed if the core set of some rank is too small. */
static hsort_status core_set_find_large(const struct placement_node *node,
                                        const struct core_requests *requests, int me, struct core_set *set)
{
    for (int rank = 0; rank < requests->ranks; rank++) {
        TRY(core_set_find(node->topology, requests, rank, set));
        if (set->cores >= set->ranks)
            continue;
        if (hwloc_bitmap_copy(set->cpus, node->allowed))
            return no_memory();
        core_set_count(node->topology, requests, me, set);
        return HSORT_OK;
    }
    return core_set_find(node->topology, requests, me, set);
}

/* Cut out the slice at set->position: at least one core, which is shared if there are more ranks than cores. */
static hsort_status core_set_cut(hwloc_topology_t topology, const struct core_set *set, hwloc_bitmap_t slice)
{
    const int64_t cores = set->cores;
    const int64_t first = cores * set->position / set->ranks;
    int64_t end = cores * (set->position + 1) / set->ranks;
    if (end == first)
        end++;
    hwloc_bitmap_zero(slice);
    int64_t at = 0;
    for (hwloc_obj_t core = NULL; (core = next_core(topology, set->cpus, core)) != NULL; at++)
        if (at >= first && at < end && hwloc_bitmap_or(slice, slice, core->cpuset))
            return no_memory();
    return HSORT_OK;
}

/* Slice of the rank `me`. Only a rank that may move can get cores outside the core set of its request. */
static hsort_status slice_of(const struct placement_node *node, const struct core_requests *requests, int me,
                             bool may_move, hwloc_bitmap_t slice)
{
    struct core_set set = {.cpus = hwloc_bitmap_alloc()};
    if (!set.cpus)
        return no_memory();
    hsort_status status = may_move ? core_set_find_large(node, requests, me, &set)
                                   : core_set_find(node->topology, requests, me, &set);
    if (status == HSORT_OK)
        status = core_set_cut(node->topology, &set, slice);
    hwloc_bitmap_free(set.cpus);
    return status;
}

/* ---- GPUs of ranks that may not run everywhere ----
 *
 * Launchers that bind ranks do not ask which GPU each will take. Slurm spreads tasks over sockets round robin
 * by default, and blocks would then put half of them far from their GPU:
 *
 *     rank           0      1      2      3        four ranks that see four GPUs
 *     runs at NUMA   0      1      0      1        GPUs 0 and 1 at NUMA node 0, GPUs 2 and 3 at node 1
 *     in blocks      0      1 far  2 far  3
 *     chosen         0      2      1      3
 *
 * There is a slot for each rank, at the GPU that it would have in blocks; with more GPUs than ranks, one at
 * each GPU. Ranks take their own slots if these are near. Then each rank without one takes the first free
 * slot that is near, then the first that is free, counted from its own slot on. */

enum slot_choice { SLOT_OWN_IF_NEAR, SLOT_NEAR, SLOT_ANY, SLOT_CHOICES };

struct gpu_slots {
    const uint64_t *near; /* [ranks] */
    int ranks, devices, count;
    bool *used; /* [count] */
};

/* A free slot for the rank, or -1. */
static int find_slot(const struct gpu_slots *slots, int rank, enum slot_choice choice)
{
    const int own = placement_device(rank, slots->ranks, slots->count);
    for (int i = 0; i < (choice == SLOT_OWN_IF_NEAR ? 1 : slots->count); i++) {
        const int slot = (own + i) % slots->count;
        const int device = placement_device(slot, slots->count, slots->devices);
        if (!slots->used[slot] && (choice == SLOT_ANY || (slots->near[rank] >> device & 1)))
            return slot;
    }
    return -1;
}

hsort_status placement_choose_gpu(const uint64_t *near, int ranks, int devices, int me, int *device)
{
    const int count = ranks > devices ? ranks : devices;
    struct gpu_slots slots = {near, ranks, devices, count, calloc((size_t)count, sizeof *slots.used)};
    bool *served = calloc((size_t)ranks, sizeof *served);
    const bool enough = slots.used && served;
    *device = placement_device(me, ranks, devices);
    for (int choice = 0; enough && choice < SLOT_CHOICES; choice++)
        for (int rank = 0; rank < ranks; rank++) {
            const int slot = served[rank] ? -1 : find_slot(&slots, rank, (enum slot_choice)choice);
            if (slot < 0)
                continue;
            served[rank] = slots.used[slot] = true;
            if (rank == me)
                *device = placement_device(slot, count, devices);
        }
    free(slots.used);
    free(served);
    return enough ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for the GPUs of %d ranks", ranks);
}

uint64_t placement_near(const struct placement_node *node)
{
    uint64_t near = 0;
    for (int device = 0; device < node->devices; device++)
        if (hwloc_bitmap_intersects(placement_cpus_near(node->topology, &node->device[device]),
                                    node->allowed))
            near |= UINT64_C(1) << device;
    return near;
}

_Static_assert(PLACEMENT_MAX_DEVICES <= 64, "a bit for each device");

/* ---- choosing ---- */

int placement_device(int before, int ranks, int devices)
{
    return devices == 0 ? -1 : (int)((int64_t)before * devices / ranks);
}

hsort_status placement_request(const struct placement_node *node, int device, hwloc_bitmap_t request)
{
    int failed = 0;
    hwloc_bitmap_zero(request);
    if (device >= 0) {
        hwloc_const_cpuset_t near = placement_cpus_near(node->topology, &node->device[device]);
        failed |= hwloc_bitmap_and(request, near, node->allowed);
    }
    // A job may have been given cores at one end of the machine and a GPU at the other.
    if (hwloc_bitmap_iszero(request))
        failed |= hwloc_bitmap_copy(request, node->allowed);
    if (hwloc_bitmap_iszero(request) && !failed)
        return status_fail(HSORT_INTERNAL, "hwloc finds no processing unit that this rank may run on");
    return failed ? no_memory() : HSORT_OK;
}

/* Turn a slice into the cores to run on. */
static hsort_status choose_cpus(const struct placement_node *node, hwloc_const_cpuset_t request,
                                bool keeps_mask, hwloc_bitmap_t slice, struct placement *placement)
{
    int failed = 0;
    if (keeps_mask) {
        const int part = count_cores(node->topology, slice);
        failed |= hwloc_bitmap_copy(slice, node->allowed);
        const int mask = count_cores(node->topology, slice);
        placement->cores = part < mask ? part : mask;
    } else {
        // Ranks with different masks may be in one set, so the slice can lie outside this rank's own mask.
        failed |= hwloc_bitmap_and(slice, slice, node->allowed);
        if (hwloc_bitmap_iszero(slice))
            failed |= hwloc_bitmap_copy(slice, request);
        placement->cores = count_cores(node->topology, slice);
    }
    return failed ? no_memory() : HSORT_OK;
}

hsort_status placement_settle(const struct placement_node *node, const struct core_requests *requests, int me,
                              bool keeps_mask, struct placement *placement)
{
    const struct cuda_device *device = placement->device >= 0 ? &node->device[placement->device] : NULL;
    placement->bound_by_launcher = !hwloc_bitmap_isequal(node->allowed, node->machine);
    placement->cpus = NULL;
    hwloc_bitmap_t slice = hwloc_bitmap_alloc();
    if (!slice)
        return no_memory();
    hsort_status status = slice_of(node, requests, me, !keeps_mask, slice);
    if (status == HSORT_OK)
        status = choose_cpus(node, requests->cpus[me], keeps_mask, slice, placement);
    if (status != HSORT_OK) {
        hwloc_bitmap_free(slice);
        return status;
    }
    placement->cpus = slice;
    placement->numa_node = numa_node_of(node->topology, device, slice);
    return HSORT_OK;
}
