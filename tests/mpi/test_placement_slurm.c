/* Placement in the forms in which Slurm starts tasks: what a task sees of the GPUs x where it may run x machines.
 * The ranks are the tasks of one node. hwloc learns about the machine from its environment, and about masks and
 * cgroups from the functions slurm_*() below, under whose names placement is compiled here. check_case() has the rules that
 * hold for all of these forms; some have a known answer. */
#include <omp.h>
#include "mpi/comm/placement.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 8, MOST_GPUS = 8, LIST = 256 };

static struct comm comm;

/* ---- what stands in for the machine ---- */

static struct cuda_device visible[MOST_GPUS];
static int visible_count;
static hwloc_bitmap_t mask, cgroup; /* where this task may run now; what its cgroup lets it have */
static int times_bound;             /* calls that changed the mask */

int slurm_get_cpubind(hwloc_topology_t topology, hwloc_cpuset_t set, int flags)
{
    (void)topology, (void)flags;
    return hwloc_bitmap_copy(set, mask);
}

int slurm_set_cpubind(hwloc_topology_t topology, hwloc_const_cpuset_t set, int flags)
{
    (void)topology, (void)flags;
    times_bound++;
    return hwloc_bitmap_copy(mask, set);
}

hwloc_const_cpuset_t slurm_topology_get_allowed_cpuset(hwloc_topology_t topology)
{
    (void)topology;
    return cgroup;
}

hsort_status cuda_device_get(int index, struct cuda_device *device)
{
    if (index >= visible_count)
        return status_fail(HSORT_NO_DEVICE, "there is no GPU %d", index);
    *device = visible[index];
    return HSORT_OK;
}

/* ---- the three tables ---- */

static const struct machine {
    const char *name, *variable, *value; /* how hwloc learns of it */
    int gpus;
    int at[MOST_GPUS];          /* NUMA node of each GPU */
    const char *pci[MOST_GPUS]; /* if the GPU does not name its node, but has a place on a bus */
} machines[] = {
    {"two nodes of four GPUs",
     "HWLOC_SYNTHETIC",
     "pack:2 [numa] core:16 pu:2",
     8,
     {0, 0, 0, 0, 1, 1, 1, 1},
     {0}},
    {"a GPU at each of four nodes", "HWLOC_SYNTHETIC", "pack:4 [numa] core:4 pu:1", 4, {0, 1, 2, 3}, {0}},
    {"two nodes, both GPUs at the first", "HWLOC_SYNTHETIC", "pack:2 [numa] core:8 pu:1", 2, {0, 0}, {0}},
    {"nodes in another order than GPUs",
     "HWLOC_SYNTHETIC",
     "pack:4 [numa] core:4 pu:2",
     4,
     {3, 1, 0, 2},
     {0}},
    {"written down, with PCI",
     "HWLOC_XMLFILE",
     TOPOLOGIES "/two_packages_two_gpus.xml",
     2,
     {0, 1},
     {"0000:1b:00.0", "0000:9b:00.0"}},
};
enum { MACHINES = sizeof machines / sizeof *machines };

/* X(name, options of Slurm) */
#define SEES_LIST(X)                                                 \
    X(SEES_ALL, "--gpus-per-node, or --gpu-bind=none")               \
    X(SEES_ITS_OWN, "--gpus-per-task, one as index 0 in every task") \
    X(SEES_SHARED, "--gpu-bind=map_gpu, two tasks to each GPU")      \
    X(SEES_CLOSEST, "--gpu-bind=closest")                            \
    X(SEES_NONE, "no GPU asked for")
#define RUNS_LIST(X)                                                    \
    X(RUNS_FREE, "--exclusive --cpu-bind=none")                         \
    X(RUNS_IN_FIRST_HALF, "a cgroup of one NUMA node, --cpu-bind=none") \
    X(RUNS_IN_MIDDLE, "a cgroup across NUMA nodes, --cpu-bind=none")    \
    X(RUNS_BLOCK, "--cpu-bind=cores --distribution=block:block")        \
    X(RUNS_CYCLIC, "--cpu-bind=cores --distribution=block:cyclic")      \
    X(RUNS_ONE_CORE, "--cpu-bind=cores --cpus-per-task=1")              \
    X(RUNS_ONE_THREAD, "--cpu-bind=threads --cpus-per-task=1")          \
    X(RUNS_STEP, "one mask across NUMA nodes for all tasks")            \
    X(RUNS_LAST_QUARTER, "one mask at the end of the machine for all tasks")
#define X(name, words) name,
enum sees { SEES_LIST(X) SEES };
enum runs { RUNS_LIST(X) RUNS };
#undef X
#define X(name, words) words,
static const char *const sees_words[] = {SEES_LIST(X)}, *const runs_words[] = {RUNS_LIST(X)};
#undef X

/* ---- what Slurm does ---- */

static hwloc_topology_t load(const struct machine *machine)
{
    hwloc_topology_t topology;
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    setenv(machine->variable, machine->value, 1);
    hwloc_topology_init(&topology);
    CHECK(hwloc_topology_load(topology) == 0, "%s", machine->value);
    return topology;
}

/* cpus = cores first .. end - 1 of `in`, in hwloc's order. */
static void set_cores(hwloc_topology_t topology, hwloc_const_cpuset_t in, int first, int end,
                      hwloc_bitmap_t cpus)
{
    hwloc_bitmap_zero(cpus);
    for (int core = first; core < end; core++)
        hwloc_bitmap_or(
            cpus, cpus,
            hwloc_get_obj_inside_cpuset_by_type(topology, in, HWLOC_OBJ_CORE, (unsigned)core)->cpuset);
}

/* Set `mask` and `cgroup` of the task `rank` of `size`. */
static void set_masks(hwloc_topology_t topology, enum runs runs, int rank, int size)
{
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    const int nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    const int on_node = (size + nodes - 1) / nodes,
              each = cores / nodes / on_node; // tasks of a NUMA node; cores of one task
    hwloc_const_cpuset_t node =
        hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)(rank % nodes))->cpuset;
    int first = 0, end = cores;
    if (runs == RUNS_IN_FIRST_HALF)
        end = cores / 2;
    else if (runs == RUNS_IN_MIDDLE || runs == RUNS_STEP)
        first = cores / 4, end = cores - cores / 4;
    else if (runs == RUNS_LAST_QUARTER)
        first = cores - cores / 4;
    else if (runs == RUNS_BLOCK)
        first = cores * rank / size, end = cores * (rank + 1) / size;
    else if (runs == RUNS_ONE_CORE || runs == RUNS_ONE_THREAD)
        first = rank * 5 % cores, end = first + 1;
    set_cores(topology, all, first, end, mask);
    if (runs == RUNS_CYCLIC)
        set_cores(topology, node, rank / nodes * each, (rank / nodes + 1) * each, mask);
    if (runs == RUNS_ONE_THREAD)
        hwloc_bitmap_singlify(mask);
    hwloc_bitmap_copy(cgroup, runs == RUNS_IN_FIRST_HALF || runs == RUNS_IN_MIDDLE ? mask : all);
}

static hwloc_const_cpuset_t cpus_at(hwloc_topology_t topology, const struct machine *machine, int gpu)
{
    return hwloc_get_numanode_obj_by_os_index(topology, (unsigned)machine->at[gpu])->cpuset;
}

/* Let this task see one more GPU. */
static void see(const struct machine *machine, int gpu)
{
    struct cuda_device *device = &visible[visible_count++];
    *device = (struct cuda_device){.name = "made up", .bytes = 1 << 30, .numa_node = machine->at[gpu]};
    if (machine->pci[gpu]) {
        device->numa_node = -1;
        snprintf(device->pci, sizeof device->pci, "%s", machine->pci[gpu]);
    }
    snprintf(device->uuid, sizeof device->uuid, "GPU-%d", gpu);
}

/* Fill `visible` for the task `rank`; its mask is set. */
static void set_visible(hwloc_topology_t topology, const struct machine *machine, enum sees sees, int rank)
{
    visible_count = 0;
    if (sees == SEES_ITS_OWN || sees == SEES_SHARED)
        see(machine, (sees == SEES_SHARED ? rank / 2 : rank) % machine->gpus);
    for (int gpu = 0; gpu < machine->gpus; gpu++)
        if (sees == SEES_ALL ||
            (sees == SEES_CLOSEST && hwloc_bitmap_intersects(cpus_at(topology, machine, gpu), mask)))
            see(machine, gpu);
    for (int gpu = 0; gpu < machine->gpus && sees == SEES_CLOSEST && visible_count == 0; gpu++)
        see(machine, gpu);
}

/* ---- what must hold of every form ---- */

/* What a rank reports of one case. */
struct rank_report {
    int gpu;             /* taken; -1: none */
    unsigned sees, near; /* bit g: sees GPU g; may run near it */
    int sharers, numa_node, cores;
    unsigned long cpus[2], before[2];
};

/* Return how many of ranks [rank, size) can be near their GPU at most, if every GPU g takes capacity[g] ranks: all
 * ways are tried. */
static int most_near(const struct rank_report *reports, int rank, int *capacity, int gpus)
{
    int most = 0;
    for (int gpu = 0; rank < comm.size && gpu < gpus; gpu++) {
        if (capacity[gpu] == 0)
            continue;
        capacity[gpu]--;
        const int near = (reports[rank].near >> gpu & 1) + most_near(reports, rank + 1, capacity, gpus);
        capacity[gpu]++;
        most = near > most ? near : most;
    }
    return most;
}

/* If all ranks see all GPUs, they must be spread evenly, and be as near as they can be. */
static void check_matched(const char *what, const struct rank_report *reports, int gpus)
{
    int on[MOST_GPUS] = {0}, capacity[MOST_GPUS] = {0}, near = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        on[reports[rank].gpu]++;
        near += reports[rank].near >> reports[rank].gpu & 1;
        capacity[rank * gpus / comm.size]++;
    }
    for (int gpu = 0; gpu < gpus; gpu++) {
        if (comm.size <= gpus)
            capacity[gpu] = 1;
        CHECK(comm.size <= gpus ? on[gpu] <= 1 : on[gpu] == capacity[gpu], "%s: %d ranks on GPU %d, not %d",
              what, on[gpu], gpu, capacity[gpu]);
    }
    // One rank alone looks for the nearest of all ways, because all have the same answer to compare with.
    if (comm.rank == 0) {
        const int most = most_near(reports, 0, capacity, gpus);
        CHECK(near == most, "%s: %d ranks are near their GPU, %d could be", what, near, most);
    }
}

static int count_cores(hwloc_topology_t topology, hwloc_const_cpuset_t cpus)
{
    int cores = 0;
    for (hwloc_obj_t core = NULL;
         (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != NULL;)
        cores += hwloc_bitmap_intersects(core->cpuset, cpus);
    return cores;
}

/* Ranks that nobody bound have cores of their own, near their GPU if all ranks on GPUs there fit. */
static void check_shared_out(const char *what, hwloc_topology_t topology, const struct machine *machine,
                             const struct rank_report *reports, const struct placement *got)
{
    if (count_cores(topology, cgroup) < comm.size)
        return;
    for (int rank = 0; rank < comm.size; rank++)
        for (int word = 0; word < 2; word++)
            CHECK(rank == comm.rank || !(reports[rank].cpus[word] & reports[comm.rank].cpus[word]),
                  "%s: ranks %d and %d share cores", what, rank, comm.rank);
    hwloc_bitmap_t near = hwloc_bitmap_alloc();
    bool roomy = got->device >= 0;
    for (int rank = 0; roomy && rank < comm.size; rank++) {
        int wanted = 0;
        for (int other = 0; other < comm.size; other++)
            wanted += machine->at[reports[other].gpu] == machine->at[reports[rank].gpu];
        hwloc_bitmap_and(near, cpus_at(topology, machine, reports[rank].gpu), cgroup);
        roomy = count_cores(topology, near) >= wanted;
    }
    if (roomy)
        CHECK(hwloc_bitmap_isincluded(got->cpus, cpus_at(topology, machine, reports[comm.rank].gpu)),
              "%s: rank %d is far from GPU %d", what, comm.rank, reports[comm.rank].gpu);
    hwloc_bitmap_free(near);
}

/* Check everything that must hold for this rank, given what all ranks report. */
static void check_case(const char *what, hwloc_topology_t topology, const struct machine *machine,
                       enum sees sees, const struct rank_report *reports, const struct placement *got,
                       const hsort_rank_info *info)
{
    const struct rank_report *mine = &reports[comm.rank];
    hwloc_bitmap_t before = hwloc_bitmap_alloc();
    hwloc_bitmap_from_ulongs(before, 2, mine->before);
    const bool bound = !hwloc_bitmap_isequal(before, cgroup);
    CHECK(!hwloc_bitmap_iszero(got->cpus) && hwloc_bitmap_isincluded(got->cpus, before),
          "%s: the mask is widened", what);
    CHECK(info->bound_by_launcher == bound, "%s: bound: %d", what, info->bound_by_launcher);
    CHECK(hwloc_bitmap_isequal(mask, bound ? before : got->cpus), "%s: rank %d runs elsewhere than it says",
          what, comm.rank);
    CHECK(times_bound == !bound, "%s: bound %d times", what, times_bound);
    CHECK(got->cores >= 1 && got->cores <= count_cores(topology, got->cpus), "%s: %d cores", what,
          got->cores);
    hwloc_bitmap_free(before);

    int sharers = 0;
    for (int rank = 0; rank < comm.size; rank++)
        sharers += reports[rank].gpu == mine->gpu;
    if (sees == SEES_NONE) {
        CHECK(mine->gpu < 0 && info->gpu_index < 0, "%s: a GPU out of nothing", what);
    } else {
        CHECK(mine->gpu >= 0 && (mine->sees >> mine->gpu & 1), "%s: rank %d takes GPU %d", what, comm.rank,
              mine->gpu);
        CHECK(mine->sharers == sharers, "%s: %d sharers, not %d", what, mine->sharers, sharers);
        CHECK(mine->numa_node == machine->at[mine->gpu], "%s: NUMA node %d", what, mine->numa_node);
    }
    if (sees == SEES_ALL)
        check_matched(what, reports, machine->gpus);
    if (!bound)
        check_shared_out(what, topology, machine, reports, got);
}

/* ---- the cases ---- */

static void place(struct placement *placement, hsort_rank_info *info)
{
    status_clear();
    CHECK(placement_here(&comm, visible_count, HSORT_BINDING_AUTO, placement, info) == HSORT_OK, "%s",
          status_text());
}

/* Place in one form, and check it; reports [size] is what all ranks then report. Collective. */
static void run_case(const struct machine *machine, enum sees sees, enum runs runs,
                     struct rank_report *reports)
{
    char what[LIST];
    snprintf(what, sizeof what, "%s; %s; %s", machine->name, sees_words[sees], runs_words[runs]);
    hwloc_topology_t topology = load(machine);
    set_masks(topology, runs, comm.rank, comm.size);
    set_visible(topology, machine, sees, comm.rank);
    times_bound = 0;
    struct rank_report mine = {.gpu = -1};
    hwloc_bitmap_to_ulongs(mask, 2, mine.before);
    for (int i = 0; i < visible_count; i++)
        mine.sees |= 1u << atoi(visible[i].uuid + 4);
    for (int gpu = 0; gpu < machine->gpus; gpu++)
        if (hwloc_bitmap_intersects(cpus_at(topology, machine, gpu), mask))
            mine.near |= 1u << gpu;

    struct placement got, again;
    hsort_rank_info info, info_again;
    place(&got, &info);
    if (got.device >= 0)
        mine.gpu = atoi(info.gpu_uuid + 4);
    mine.sharers = info.gpu_sharers;
    mine.numa_node = info.numa_node;
    mine.cores = got.cores;
    hwloc_bitmap_to_ulongs(got.cpus, 2, mine.cpus);
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, reports, sizeof mine, MPI_BYTE, comm.world);
    check_case(what, topology, machine, sees, reports, &got, &info);

    // A second context of the process finds the same.
    place(&again, &info_again);
    CHECK(hwloc_bitmap_isequal(got.cpus, again.cpus) && got.device == again.device &&
              got.cores == again.cores && info.bound_by_launcher == info_again.bound_by_launcher,
          "%s: a second context is placed elsewhere", what);
    placement_release(&got);
    placement_release(&again);
    hwloc_topology_destroy(topology);
}

/* Forms with a known answer: GPU and processing units of each rank. */
static const struct {
    int machine, ranks;
    enum sees sees;
    enum runs runs;
    const char *taken;
} known[] = {
    {0, 8, SEES_ALL, RUNS_FREE, "0:0-7 1:8-15 2:16-23 3:24-31 4:32-39 5:40-47 6:48-55 7:56-63 "},
    {0, 8, SEES_ITS_OWN, RUNS_FREE, "0:0-7 1:8-15 2:16-23 3:24-31 4:32-39 5:40-47 6:48-55 7:56-63 "},
    {0, 8, SEES_ALL, RUNS_CYCLIC, "0:0-7 4:32-39 2:8-15 6:40-47 1:16-23 5:48-55 3:24-31 7:56-63 "},
    {0, 2, SEES_ALL, RUNS_FREE, "0:0-31 4:32-63 "},
    {0, 2, SEES_ALL, RUNS_IN_FIRST_HALF, "0:0-15 1:16-31 "},
    {0, 2, SEES_ALL, RUNS_LAST_QUARTER, "5:48-63 4:48-63 "},
    {0, 5, SEES_NONE, RUNS_IN_MIDDLE, "-1:16-21 -1:22-27 -1:28-33 -1:34-39 -1:40-47 "},
    {1, 3, SEES_ALL, RUNS_ONE_CORE, "0:0 1:5 2:10 "},
    {1, 5, SEES_ALL, RUNS_FREE, "0:0-1 0:2-3 1:4-7 2:8-11 3:12-15 "},
    {2, 3, SEES_ALL, RUNS_FREE, "0:0-1 0:2-4 1:5-7 "},
    {2, 2, SEES_ITS_OWN, RUNS_LAST_QUARTER, "0:12-15 1:12-15 "},
    {3, 3, SEES_ALL, RUNS_BLOCK, "2:0-9 1:10-19 3:20-31 "},
    {4, 2, SEES_ALL, RUNS_FREE, "0:0,2,4,6,8,10,12,14 1:1,3,5,7,9,11,13,15 "},
    {4, 2, SEES_CLOSEST, RUNS_BLOCK, "0:0,2,4,6,8,10,12,14 1:1,3,5,7,9,11,13,15 "},
    {4, 3, SEES_ALL, RUNS_ONE_THREAD, "0:0 1:3 0:4 "},
};

static void check_known(void)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (known[i].ranks != comm.size)
            continue;
        struct rank_report reports[MOST_RANKS];
        run_case(&machines[known[i].machine], known[i].sees, known[i].runs, reports);
        char taken[4 * LIST], cpus[LIST];
        FILE *out = fmemopen(taken, sizeof taken, "w");
        hwloc_bitmap_t set = hwloc_bitmap_alloc();
        for (int rank = 0; rank < comm.size; rank++) {
            hwloc_bitmap_from_ulongs(set, 2, reports[rank].cpus);
            hwloc_bitmap_list_snprintf(cpus, sizeof cpus, set);
            fprintf(out, "%d:%s ", reports[rank].gpu, cpus);
        }
        hwloc_bitmap_free(set);
        fclose(out);
        CHECK(strcmp(taken, known[i].taken) == 0, "known form %zu: %s, not %s", i, taken, known[i].taken);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "%s", status_text());
    if (comm.size > MOST_RANKS || comm.node_size != comm.size || omp_get_num_places() > 0)
        return ranks_skip("needs at most 8 ranks on one node, and no OMP_PROC_BIND");
    mask = hwloc_bitmap_alloc();
    cgroup = hwloc_bitmap_alloc();
    check_known();
    for (int machine = 0; machine < MACHINES; machine++)
        for (enum sees sees = 0; sees < SEES; sees++)
            for (enum runs runs = 0; runs < RUNS; runs++) {
                struct rank_report reports[MOST_RANKS];
                run_case(&machines[machine], sees, runs, reports);
            }
    hwloc_bitmap_free(mask);
    hwloc_bitmap_free(cgroup);
    comm_close(&comm);
    return ranks_finish();
}
