/* Which GPU and which cores a rank takes. Here four ranks that no launcher bound, on a node with 16 cores,
 * two NUMA nodes and a GPU at each of them:
 *
 *                 NUMA node 0, GPU 0              NUMA node 1, GPU 1
 *     core     0  1  2  3 | 4  5  6  7         8  9 10 11 | 12 13 14 15
 *     rank          0     |     1                   2     |      3
 *
 * First the GPU, in blocks of ranks. Then each rank wishes for the cores near its GPU: ranks 0 and 1 for
 * cores 0-7, ranks 2 and 3 for cores 8-15. Wishes that overlap make a pool: here there are two. Each pool is
 * cut into slices of whole cores, one for each rank, side by side so that a rank's threads share caches.
 *
 * If some pool has fewer cores than ranks, all ranks of the node share out all the cores they may use: ranks
 * poll while they wait for each other, and two on one core cost more than a core far from the GPU.
 *
 * A rank that its launcher bound keeps its mask and wishes for all of it. Its slice is then only a number of
 * cores: how many threads it may run without getting in the way of other ranks with the same mask. */
#include "mpi/comm/placement_wish.h"
#include <stdlib.h>
#include <string.h>

static hsort_status no_memory(void)
{
    return status_fail(HSORT_HOST_MEMORY, "no memory for the sets of cores of the ranks on this node");
}

hsort_status wishes_open(int ranks, struct wishes *wishes)
{
    *wishes = (struct wishes){ranks, calloc((size_t)ranks, sizeof *wishes->cpus)};
    if (!wishes->cpus)
        return no_memory();
    for (int rank = 0; rank < ranks; rank++) {
        wishes->cpus[rank] = hwloc_bitmap_alloc();
        if (!wishes->cpus[rank])
            return no_memory();
    }
    return HSORT_OK;
}

void wishes_close(struct wishes *wishes)
{
    for (int rank = 0; wishes->cpus && rank < wishes->ranks; rank++)
        hwloc_bitmap_free(wishes->cpus[rank]);
    free(wishes->cpus);
    wishes->cpus = NULL;
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
    // The device's word goes before its bus, which hangs elsewhere where a coherent link joins GPU and CPU.
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

/* ---- pools ---- */

struct pool {
    hwloc_bitmap_t cpus; /* all that its ranks wish for */
    int cores;           /* in it */
    int ranks;           /* that share it */
    int position;        /* how many of them come before the rank it was found for */
};

/* The next core after `core` (NULL: the first) of which cpus has a part. Where hwloc knows of no cores,
 * processing units count as such. */
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

/* Make a pool of cpus, for the rank `me`. */
static void pool_count(hwloc_topology_t topology, const struct wishes *wishes, int me, struct pool *pool)
{
    pool->cores = count_cores(topology, pool->cpus);
    pool->ranks = 0;
    pool->position = 0;
    for (int rank = 0; rank < wishes->ranks; rank++) {
        const bool here = hwloc_bitmap_intersects(pool->cpus, wishes->cpus[rank]);
        pool->ranks += here;
        pool->position += here && rank < me;
    }
}

/* Find the pool of the rank `me`: its wish, the wishes that overlap it, and those that overlap these ... */
static hsort_status pool_find(hwloc_topology_t topology, const struct wishes *wishes, int me,
                              struct pool *pool)
{
    int failed = hwloc_bitmap_copy(pool->cpus, wishes->cpus[me]);
    int weight, before;
    do {
        before = hwloc_bitmap_weight(pool->cpus);
        for (int rank = 0; rank < wishes->ranks; rank++)
            if (hwloc_bitmap_intersects(pool->cpus, wishes->cpus[rank]))
                failed |= hwloc_bitmap_or(pool->cpus, pool->cpus, wishes->cpus[rank]);
        weight = hwloc_bitmap_weight(pool->cpus);
    } while (!failed && weight != before);
    pool_count(topology, wishes, me, pool);
    return failed ? no_memory() : HSORT_OK;
}

/* The pool of the rank `me`, or all that it is allowed if the pool of some rank is too small. */
static hsort_status pool_find_roomy(const struct placement_node *node, const struct wishes *wishes, int me,
                                    struct pool *pool)
{
    for (int rank = 0; rank < wishes->ranks; rank++) {
        TRY(pool_find(node->topology, wishes, rank, pool));
        if (pool->cores >= pool->ranks)
            continue;
        if (hwloc_bitmap_copy(pool->cpus, node->allowed))
            return no_memory();
        pool_count(node->topology, wishes, me, pool);
        return HSORT_OK;
    }
    return pool_find(node->topology, wishes, me, pool);
}

/* Cut out the slice at pool->position; at least one core, shared where there are more ranks than cores. */
static hsort_status pool_cut(hwloc_topology_t topology, const struct pool *pool, hwloc_bitmap_t slice)
{
    const int64_t cores = pool->cores;
    const int64_t first = cores * pool->position / pool->ranks;
    int64_t end = cores * (pool->position + 1) / pool->ranks;
    if (end == first)
        end++;
    hwloc_bitmap_zero(slice);
    int64_t at = 0;
    for (hwloc_obj_t core = NULL; (core = next_core(topology, pool->cpus, core)) != NULL; at++)
        if (at >= first && at < end && hwloc_bitmap_or(slice, slice, core->cpuset))
            return no_memory();
    return HSORT_OK;
}

/* Slice of the rank `me`. Only a rank that may move can get cores outside the pool of its wish. */
static hsort_status slice_of(const struct placement_node *node, const struct wishes *wishes, int me,
                             bool may_move, hwloc_bitmap_t slice)
{
    struct pool pool = {.cpus = hwloc_bitmap_alloc()};
    if (!pool.cpus)
        return no_memory();
    hsort_status status =
        may_move ? pool_find_roomy(node, wishes, me, &pool) : pool_find(node->topology, wishes, me, &pool);
    if (status == HSORT_OK)
        status = pool_cut(node->topology, &pool, slice);
    hwloc_bitmap_free(pool.cpus);
    return status;
}

/* ---- GPUs of ranks that may not run everywhere ----
 *
 * Launchers that bind ranks do not ask which GPU each will take. Slurm deals tasks out to sockets in turns, unless told
 * otherwise, and blocks would then put half of them far from their GPU:
 *
 *     rank           0      1      2      3        four ranks that see four GPUs
 *     runs at NUMA   0      1      0      1        GPUs 0 and 1 at NUMA node 0, GPUs 2 and 3 at node 1
 *     in blocks      0      1 far  2 far  3
 *     matched        0      2      1      3
 *
 * There is a seat for each rank, at the GPU that it would have in blocks; with more GPUs than ranks, one at each GPU. Ranks
 * take their own seats where these are near, then any other that is near and free. A rank that finds none asks those who sit
 * near it to move on to another near seat, and they may ask in turn: an augmenting path (Kuhn), so that in the end no way
 * of seating brings more ranks near. Who is left over takes what is left over. */

struct seats {
    const uint64_t *near; /* [ranks] */
    int ranks, devices, count;
    int *rank;   /* [count] that sits there, or -1; owned */
    bool *asked; /* [count] in the search under way; owned */
};

/* The first seat to look at for a rank. */
static int seat_of_block(const struct seats *seats, int rank)
{
    return placement_device(rank, seats->ranks, seats->count);
}

static bool is_near(const struct seats *seats, int rank, int seat)
{
    return seats->near[rank] >> placement_device(seat, seats->count, seats->devices) & 1;
}

/* Give the rank a free seat, from its own on: a near one, or any. */
static bool take_free_seat(struct seats *seats, int rank, bool only_near)
{
    for (int i = 0; i < seats->count; i++) {
        const int seat = (seat_of_block(seats, rank) + i) % seats->count;
        if (seats->rank[seat] >= 0 || (only_near && !is_near(seats, rank, seat)))
            continue;
        seats->rank[seat] = rank;
        return true;
    }
    return false;
}

/* Give the rank a near seat, for which others may have to move; false, and nothing moves, if that cannot be. */
static bool take_near_seat(struct seats *seats, int rank)
{
    if (take_free_seat(seats, rank, true))
        return true;
    for (int seat = 0; seat < seats->count; seat++) {
        if (seats->asked[seat] || !is_near(seats, rank, seat))
            continue;
        seats->asked[seat] = true;
        if (take_near_seat(seats, seats->rank[seat])) {
            seats->rank[seat] = rank;
            return true;
        }
    }
    return false;
}

/* Seat all ranks; seated [ranks] is room to remember which are. */
static void seat_ranks(struct seats *seats, bool *seated)
{
    for (int rank = 0; rank < seats->ranks; rank++) {
        const int seat = seat_of_block(seats, rank);
        seated[rank] = is_near(seats, rank, seat);
        if (seated[rank])
            seats->rank[seat] = rank;
    }
    for (int rank = 0; rank < seats->ranks; rank++) {
        memset(seats->asked, 0, (size_t)seats->count * sizeof *seats->asked);
        seated[rank] = seated[rank] || take_near_seat(seats, rank);
    }
    for (int rank = 0; rank < seats->ranks; rank++)
        if (!seated[rank])
            take_free_seat(seats, rank, false);
}

hsort_status placement_match(const uint64_t *near, int ranks, int devices, int me, int *device)
{
    const int count = ranks > devices ? ranks : devices;
    struct seats seats = {.near = near, .ranks = ranks, .devices = devices, .count = count};
    seats.rank = malloc((size_t)count * sizeof *seats.rank);
    seats.asked = malloc((size_t)count * sizeof *seats.asked);
    bool *seated = malloc((size_t)ranks * sizeof *seated);
    const bool room = seats.rank && seats.asked && seated;
    *device = placement_device(me, ranks, devices);
    if (room) {
        for (int seat = 0; seat < count; seat++)
            seats.rank[seat] = -1;
        seat_ranks(&seats, seated);
        for (int seat = 0; seat < count; seat++)
            if (seats.rank[seat] == me)
                *device = placement_device(seat, count, devices);
    }
    free(seats.rank);
    free(seats.asked);
    free(seated);
    return room ? HSORT_OK
                : status_fail(HSORT_HOST_MEMORY, "no memory to seat %d ranks at their GPUs", ranks);
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

bool placement_bound_by_launcher(const struct placement_node *node)
{
    return !hwloc_bitmap_isequal(node->allowed, node->machine);
}

hsort_status placement_wish(const struct placement_node *node, int device, hwloc_bitmap_t wish)
{
    int failed = 0;
    hwloc_bitmap_zero(wish);
    if (device >= 0) {
        hwloc_const_cpuset_t near = placement_cpus_near(node->topology, &node->device[device]);
        failed |= hwloc_bitmap_and(wish, near, node->allowed);
    }
    // A job may have been given cores at one end of the machine and a GPU at the other.
    if (hwloc_bitmap_iszero(wish))
        failed |= hwloc_bitmap_copy(wish, node->allowed);
    if (hwloc_bitmap_iszero(wish) && !failed)
        return status_fail(HSORT_INTERNAL, "hwloc finds no processing unit that this rank may run on");
    return failed ? no_memory() : HSORT_OK;
}

/* Turn a slice into the cores to run on. */
static hsort_status settle_cpus(const struct placement_node *node, hwloc_const_cpuset_t wish, bool keeps_mask,
                                hwloc_bitmap_t slice, struct placement *placement)
{
    int failed = 0;
    if (keeps_mask) {
        const int share = count_cores(node->topology, slice);
        failed |= hwloc_bitmap_copy(slice, node->allowed);
        const int mask = count_cores(node->topology, slice);
        placement->cores = share < mask ? share : mask;
    } else {
        // Ranks with different masks may meet in one pool, so the slice can lie outside this rank's own mask.
        failed |= hwloc_bitmap_and(slice, slice, node->allowed);
        if (hwloc_bitmap_iszero(slice))
            failed |= hwloc_bitmap_copy(slice, wish);
        placement->cores = count_cores(node->topology, slice);
    }
    return failed ? no_memory() : HSORT_OK;
}

hsort_status placement_settle(const struct placement_node *node, const struct wishes *wishes, int me,
                              bool keeps_mask, struct placement *placement)
{
    const struct cuda_device *device = placement->device >= 0 ? &node->device[placement->device] : NULL;
    placement->bound_by_launcher = placement_bound_by_launcher(node);
    placement->cpus = NULL;
    hwloc_bitmap_t slice = hwloc_bitmap_alloc();
    if (!slice)
        return no_memory();
    hsort_status status = slice_of(node, wishes, me, !keeps_mask, slice);
    if (status == HSORT_OK)
        status = settle_cpus(node, wishes->cpus[me], keeps_mask, slice, placement);
    if (status != HSORT_OK) {
        hwloc_bitmap_free(slice);
        return status;
    }
    placement->cpus = slice;
    placement->numa_node = numa_node_of(node->topology, device, slice);
    return HSORT_OK;
}

hsort_status placement_choose(const struct placement_node *node, struct placement *placement)
{
    *placement = (struct placement){.numa_node = -1};
    placement->device = placement_device(node->node_rank, node->node_size, node->devices);

    // Other ranks are taken to see what this one sees. Only of its mask that would be a bad guess: launchers
    // that bind give each rank a mask of its own.
    const bool bound = placement_bound_by_launcher(node);
    struct wishes wishes;
    hsort_status status = wishes_open(bound ? 1 : node->node_size, &wishes);
    for (int rank = 0; status == HSORT_OK && rank < wishes.ranks; rank++) {
        const int device = placement_device(rank, node->node_size, node->devices);
        status = placement_wish(node, bound ? -1 : device, wishes.cpus[rank]);
    }
    if (status == HSORT_OK)
        status = placement_settle(node, &wishes, bound ? 0 : node->node_rank, bound, placement);
    wishes_close(&wishes);
    return status;
}
