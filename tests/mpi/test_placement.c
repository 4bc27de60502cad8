/* Placement as a pure function: made-up nodes of all shapes, ranks and GPUs, and one node written down as XML
 * with PCI GPUs. check_node() has the rules that hold for every node; nodes with a known answer follow. */
#include "tests/mpi/placement_alone.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 17, MOST_DEVICES = 9 };

static const char *const shapes[] = {
    "pack:2 [numa] core:8 pu:2",
    "pack:2 numa:2 core:4 pu:1",
    "pack:1 core:6 pu:2",
    "pack:1 core:1 pu:1",
    "numa:4 pu:3",
    "pack:2 [numa] l3:2 core:3 pu:4",
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static hwloc_topology_t load_synthetic(const char *shape)
{
    hwloc_topology_t topology;
    hwloc_topology_init(&topology);
    CHECK(hwloc_topology_set_synthetic(topology, shape) == 0, "%s", shape);
    CHECK(hwloc_topology_load(topology) == 0, "%s", shape);
    return topology;
}

static hwloc_topology_t load_xml(void)
{
    hwloc_topology_t topology;
    hwloc_topology_init(&topology);
    CHECK(hwloc_topology_set_xml(topology, TOPOLOGIES "/two_packages_two_gpus.xml") == 0, TOPOLOGIES);
    hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    CHECK(hwloc_topology_load(topology) == 0, TOPOLOGIES);
    CHECK(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PCI_DEVICE) == 4, "two GPUs, two network cards");
    return topology;
}

static struct cuda_device device_at(const char *pci, int numa_node)
{
    struct cuda_device device = {.name = "made up", .numa_node = numa_node};
    snprintf(device.pci, sizeof device.pci, "%s", pci);
    return device;
}

static hwloc_obj_t core_at(hwloc_topology_t topology, int i)
{
    return hwloc_get_obj_by_depth(topology, hwloc_get_type_or_below_depth(topology, HWLOC_OBJ_CORE),
                                  (unsigned)i);
}

static int cores_in(hwloc_topology_t topology, hwloc_const_cpuset_t cpus)
{
    int cores = 0;
    for (int i = 0; core_at(topology, i); i++)
        cores += hwloc_bitmap_intersects(core_at(topology, i)->cpuset, cpus);
    return cores;
}

static int overlap(hwloc_topology_t topology, hwloc_const_cpuset_t a, hwloc_const_cpuset_t b)
{
    hwloc_bitmap_t both = hwloc_bitmap_alloc();
    hwloc_bitmap_and(both, a, b);
    const int cores = cores_in(topology, both);
    hwloc_bitmap_free(both);
    return cores;
}

/* A random part of `of`, never empty. */
static hwloc_bitmap_t random_part(hwloc_const_cpuset_t of, uint64_t *random)
{
    hwloc_bitmap_t part = hwloc_bitmap_alloc();
    unsigned bit;
    hwloc_bitmap_foreach_begin(bit, of)
    {
        if (check_random(random) % 2)
            hwloc_bitmap_set(part, bit);
    }
    hwloc_bitmap_foreach_end();
    if (hwloc_bitmap_iszero(part))
        hwloc_bitmap_set(part, (unsigned)hwloc_bitmap_first(of));
    return part;
}

/* ---- what must hold of every node ---- */

static void check_devices(const struct placement_node *node, const struct placement *got)
{
    int ranks_on[MOST_DEVICES] = {0};
    for (int rank = 0; rank < node->node_size; rank++) {
        const int device = got[rank].device;
        CHECK(node->devices > 0 ? device >= 0 && device < node->devices : device == -1,
              "rank %d: GPU %d of %d", rank, device, node->devices);
        CHECK(rank == 0 || device >= got[rank - 1].device, "rank %d: GPU %d breaks the blocks", rank, device);
        if (device >= 0)
            ranks_on[device]++;
    }
    const int least = node->devices ? node->node_size / node->devices : 0;
    for (int device = 0; device < node->devices; device++)
        CHECK(ranks_on[device] == least || ranks_on[device] == least + 1, "GPU %d of %d: %d of %d ranks",
              device, node->devices, ranks_on[device], node->node_size);
}

/* Check that a rank has whole cores of the machine, counted rightly, and that they are next to each other if `near_only`. */
static void check_cores(const struct placement_node *node, const struct placement *got, bool near_only)
{
    int first = -1, last = -1;
    for (int i = 0; core_at(node->topology, i); i++) {
        hwloc_const_cpuset_t core = core_at(node->topology, i)->cpuset;
        if (!hwloc_bitmap_intersects(core, got->cpus))
            continue;
        hwloc_bitmap_t usable = hwloc_bitmap_alloc();
        hwloc_bitmap_and(usable, core, node->allowed);
        CHECK(hwloc_bitmap_isincluded(usable, got->cpus), "core %d is taken in part", i);
        hwloc_bitmap_free(usable);
        first = first < 0 ? i : first;
        last = i;
    }
    CHECK(first >= 0, "no core");
    CHECK(hwloc_bitmap_isincluded(got->cpus, node->allowed), "the mask is widened");
    CHECK(got->cores == cores_in(node->topology, got->cpus), "%d cores", got->cores);
    for (int i = first; near_only && i < last; i++) {
        hwloc_const_cpuset_t core = core_at(node->topology, i)->cpuset;
        CHECK(hwloc_bitmap_intersects(core, got->cpus) || !hwloc_bitmap_intersects(core, node->allowed),
              "core %d lies between and is not taken", i);
    }
}

/* Does every rank's GPU have a known place with cores that may be used, and are these enough for all ranks with GPUs there? */
static bool roomy(const struct placement_node *node, const struct placement *got)
{
    for (int rank = 0; rank < node->node_size; rank++) {
        if (got[rank].device < 0)
            return false;
        const int numa_node = node->device[got[rank].device].numa_node;
        int wanted = 0;
        for (int other = 0; other < node->node_size; other++)
            wanted += node->device[got[other].device].numa_node == numa_node;
        hwloc_obj_t near =
            numa_node < 0 ? NULL : hwloc_get_numanode_obj_by_os_index(node->topology, (unsigned)numa_node);
        if (!near || overlap(node->topology, near->cpuset, node->allowed) < wanted)
            return false;
    }
    return true;
}

/* Check all ranks of a node whose launcher bound none of them; node->node_rank is set here. */
static void check_node(struct placement_node *node)
{
    struct placement got[MOST_RANKS];
    for (int rank = 0; rank < node->node_size; rank++) {
        node->node_rank = rank;
        CHECK(placement_choose(node, &got[rank]) == HSORT_OK, "%s", status_text());
        CHECK(!got[rank].bound_by_launcher, "rank %d", rank);
    }
    check_devices(node, got);
    const bool near_only = roomy(node, got);
    const int cores = cores_in(node->topology, node->allowed);
    for (int rank = 0; rank < node->node_size; rank++) {
        check_cores(node, &got[rank], near_only);
        if (near_only) {
            const struct cuda_device *device = &node->device[got[rank].device];
            CHECK(hwloc_bitmap_isincluded(got[rank].cpus, placement_cpus_near(node->topology, device)),
                  "rank %d is far from its GPU %d", rank, got[rank].device);
            CHECK(got[rank].numa_node == device->numa_node, "rank %d: NUMA node %d", rank,
                  got[rank].numa_node);
        }
        for (int other = 0; other < rank && cores >= node->node_size; other++) {
            CHECK(!hwloc_bitmap_intersects(got[rank].cpus, got[other].cpus), "ranks %d and %d share cores",
                  other, rank);
            const int more = got[rank].cores - got[other].cores;
            CHECK(node->devices > 0 || (more >= -1 && more <= 1), "rank %d has %d cores more than %d", rank,
                  more, other);
        }
    }
    for (int rank = 0; rank < node->node_size; rank++)
        hwloc_bitmap_free(got[rank].cpus);
}

/* Check every rank count and GPU count on every shape, whole and with random parts taken away. */
static void test_all_nodes(uint64_t *random)
{
    for (int trial = 0; trial < 2 * SHAPES; trial++) {
        hwloc_topology_t topology = load_synthetic(shapes[trial % SHAPES]);
        hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
        hwloc_bitmap_t machine = trial < SHAPES ? hwloc_bitmap_dup(all) : random_part(all, random);
        struct placement_node node = {.topology = topology, .allowed = machine, .machine = machine};
        const int numa_nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
        for (node.devices = 0; node.devices <= MOST_DEVICES; node.devices++)
            for (node.node_size = 1; node.node_size <= MOST_RANKS; node.node_size++) {
                for (int device = 0; device < node.devices; device++)
                    node.device[device] = device_at("", device * numa_nodes / node.devices);
                check_node(&node);
                for (int device = 0; device < node.devices; device++)
                    node.device[device] = device_at("", (int)(check_random(random) % 6) - 1);
                check_node(&node);
            }
        hwloc_bitmap_free(machine);
        hwloc_topology_destroy(topology);
    }
}

/* A launcher's mask comes back as it is, whatever it looks like. */
static void test_bound(uint64_t *random)
{
    for (int trial = 0; trial < 400; trial++) {
        hwloc_topology_t topology = load_synthetic(shapes[trial % SHAPES]);
        hwloc_bitmap_t machine = random_part(hwloc_topology_get_topology_cpuset(topology), random);
        hwloc_bitmap_t allowed = random_part(machine, random);
        struct placement_node node = {.topology = topology, .allowed = allowed, .machine = machine};
        node.node_size = 1 + (int)(check_random(random) % MOST_RANKS);
        node.node_rank = (int)(check_random(random) % (uint64_t)node.node_size);
        node.devices = (int)(check_random(random) % (MOST_DEVICES + 1));
        for (int device = 0; device < node.devices; device++)
            node.device[device] = device_at("", (int)(check_random(random) % 6) - 1);
        struct placement got;
        CHECK(placement_choose(&node, &got) == HSORT_OK, "%s", status_text());
        if (!hwloc_bitmap_isequal(allowed, machine)) {
            CHECK(got.bound_by_launcher, "trial %d", trial);
            CHECK(hwloc_bitmap_isequal(got.cpus, allowed), "trial %d: the mask is changed", trial);
            CHECK(got.cores == cores_in(topology, allowed), "trial %d: %d cores", trial, got.cores);
        }
        hwloc_bitmap_free(got.cpus);
        hwloc_bitmap_free(allowed);
        hwloc_bitmap_free(machine);
        hwloc_topology_destroy(topology);
    }
}

/* ---- GPUs of ranks that may not run everywhere ---- */

static void check_gpus(const uint64_t *near, int ranks, int devices)
{
    int capacity[MOST_DEVICES] = {0}, on[MOST_DEVICES] = {0}, device[MOST_RANKS];
    for (int rank = 0; rank < ranks; rank++) {
        const int block = rank * devices / ranks;
        capacity[block]++;
        CHECK(placement_choose_gpu(near, ranks, devices, rank, &device[rank]) == HSORT_OK, "%s",
              status_text());
        CHECK(device[rank] >= 0 && device[rank] < devices, "GPU %d of %d", device[rank], devices);
        CHECK(!(near[rank] >> block & 1) || device[rank] == block, "rank %d: GPU %d", rank, device[rank]);
        on[device[rank]]++;
    }
    for (int gpu = 0; gpu < devices; gpu++) {
        capacity[gpu] = ranks <= devices ? 1 : capacity[gpu];
        CHECK(ranks <= devices ? on[gpu] <= 1 : on[gpu] == capacity[gpu], "%d ranks on GPU %d, not %d",
              on[gpu], gpu, capacity[gpu]);
    }
    // No rank is far from its GPU while it is near a GPU that has a place left, or that gives a place to a rank
    // that is far from it, too.
    for (int rank = 0; rank < ranks; rank++)
        for (int gpu = 0; gpu < devices && !(near[rank] >> device[rank] & 1); gpu++) {
            int near_there = 0;
            for (int other = 0; other < ranks; other++)
                near_there += device[other] == gpu && (near[other] >> gpu & 1);
            CHECK(!(near[rank] >> gpu & 1) || near_there == capacity[gpu],
                  "rank %d is far from GPU %d and near GPU %d", rank, device[rank], gpu);
        }
}

/* Check ranks that are near any GPUs, mostly near few; and ranks that are near all GPUs. */
static void test_gpus(uint64_t *random)
{
    for (int trial = 0; trial < 2000; trial++) {
        uint64_t near[6];
        const int ranks = 1 + (int)(check_random(random) % 6), devices = 1 + (int)(check_random(random) % 6);
        for (int rank = 0; rank < ranks; rank++)
            near[rank] = trial % 20 == 0 ? ~UINT64_C(0) : check_random(random) & check_random(random);
        check_gpus(near, ranks, devices);
    }
}

/* ---- nodes with a known answer ---- */

static void check_list(const struct placement *got, const char *list, int cores)
{
    char text[128];
    hwloc_bitmap_list_snprintf(text, sizeof text, got->cpus);
    CHECK(strcmp(text, list) == 0, "runs on %s, not %s", text, list);
    CHECK(got->cores == cores, "%d cores, not %d", got->cores, cores);
}

/* Check the picture at the head of mpi/comm/placement.c. */
static void test_picture(void)
{
    static const char *const lists[] = {"0-3", "4-7", "8-11", "12-15"};
    hwloc_topology_t topology = load_synthetic("pack:2 [numa] core:8 pu:1");
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    struct placement_node node = {
        .topology = topology, .devices = 2, .node_size = 4, .allowed = all, .machine = all};
    node.device[0] = device_at("", 0);
    node.device[1] = device_at("", 1);
    for (node.node_rank = 0; node.node_rank < 4; node.node_rank++) {
        struct placement got;
        CHECK(placement_choose(&node, &got) == HSORT_OK, "%s", status_text());
        CHECK(got.device == node.node_rank / 2, "GPU %d", got.device);
        check_list(&got, lists[node.node_rank], 4);
        hwloc_bitmap_free(got.cpus);
    }
    hwloc_topology_destroy(topology);
}

/* Launchers may show each rank one GPU only, always as number 0. */
static void test_one_visible_gpu(void)
{
    hwloc_topology_t topology = load_synthetic("pack:2 [numa] core:8 pu:2");
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    struct placement_node node = {.topology = topology, .devices = 1, .allowed = all, .machine = all};
    for (node.node_size = 1; node.node_size <= 8; node.node_size++) {
        hwloc_bitmap_t taken = hwloc_bitmap_alloc();
        for (node.node_rank = 0; node.node_rank < node.node_size; node.node_rank++) {
            node.device[0] = device_at("", node.node_rank * 2 / node.node_size);
            struct placement got;
            CHECK(placement_choose(&node, &got) == HSORT_OK, "%s", status_text());
            CHECK(got.device == 0, "rank %d: GPU %d", node.node_rank, got.device);
            CHECK(!hwloc_bitmap_intersects(got.cpus, taken), "rank %d shares cores", node.node_rank);
            CHECK(hwloc_bitmap_isincluded(got.cpus, placement_cpus_near(topology, &node.device[0])),
                  "rank %d is far from its GPU", node.node_rank);
            hwloc_bitmap_or(taken, taken, got.cpus);
            hwloc_bitmap_free(got.cpus);
        }
        hwloc_bitmap_free(taken);
    }
    hwloc_topology_destroy(topology);
}

/* Settle ranks with these requests, written as lists, the last one NULL, and compare their cores. */
static void check_requests(const char *const *lists, bool keeps_mask, const int *cores)
{
    hwloc_topology_t topology = load_synthetic("pack:2 [numa] core:8 pu:1");
    struct core_requests requests;
    int ranks = 0;
    while (lists[ranks])
        ranks++;
    CHECK(core_requests_open(ranks, &requests) == HSORT_OK, "%s", status_text());
    for (int rank = 0; rank < ranks; rank++)
        hwloc_bitmap_list_sscanf(requests.cpus[rank], lists[rank]);
    for (int rank = 0; rank < ranks; rank++) {
        struct placement_node node = {.topology = topology,
                                      .machine = hwloc_topology_get_topology_cpuset(topology)};
        node.allowed = keeps_mask ? requests.cpus[rank] : node.machine;
        struct placement got = {.device = -1};
        CHECK(placement_settle(&node, &requests, rank, keeps_mask, &got) == HSORT_OK, "%s", status_text());
        CHECK(got.cores == cores[rank], "rank %d requests %s: %d cores, not %d", rank, lists[rank], got.cores,
              cores[rank]);
        CHECK(!keeps_mask || hwloc_bitmap_isequal(got.cpus, requests.cpus[rank]),
              "rank %d: the mask is changed", rank);
        hwloc_bitmap_free(got.cpus);
    }
    core_requests_close(&requests);
    hwloc_topology_destroy(topology);
}

static void test_requests(void)
{
#define REQUESTS(...)     \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }
#define CORES(...)  \
    (const int[])   \
    {               \
        __VA_ARGS__ \
    }
    // Masks of launchers: one each; all the same; two of each; some within others; more ranks than cores.
    check_requests(REQUESTS("0-3", "4-7", "8-11"), true, CORES(4, 4, 4));
    check_requests(REQUESTS("0-7", "0-7", "0-7"), true, CORES(2, 3, 3));
    check_requests(REQUESTS("0-7", "8-15", "0-7", "8-15"), true, CORES(4, 4, 4, 4));
    check_requests(REQUESTS("0-7", "0-1", "6-11"), true, CORES(4, 2, 4));
    check_requests(REQUESTS("3", "3", "4-7"), true, CORES(1, 1, 4));
    // Free ranks: near two GPUs; one GPU with an unknown place; five ranks near four cores, so that all cores are
    // shared out.
    check_requests(REQUESTS("0-7", "8-15", "0-7"), false, CORES(4, 8, 4));
    check_requests(REQUESTS("0-7", "0-15"), false, CORES(8, 8));
    check_requests(REQUESTS("0-3", "0-3", "0-3", "0-3", "0-3", "8-15"), false, CORES(2, 3, 3, 2, 3, 3));
    // Ranks 0 and 1 share cores only through rank 2.
    check_requests(REQUESTS("0-3", "6-9", "3-6"), false, CORES(3, 3, 4));
#undef REQUESTS
#undef CORES
}

static void test_pci(void)
{
    hwloc_topology_t topology = load_xml();
    const struct {
        const char *pci;
        int numa_node;
        const char *near; /* processing units, which this machine counts in turns over its packages */
    } cases[] = {
        {"0000:1b:00.0", -1, "0,2,4,6,8,10,12,14"},
        {"0000:9b:00.0", -1, "1,3,5,7,9,11,13,15"},
        {"0000:9B:00.0", -1, "1,3,5,7,9,11,13,15"},
        {"0000:1b:00.0", 1, "1,3,5,7,9,11,13,15"},  // what the device says counts more than its bus
        {"0000:9b:00.0", 64, "1,3,5,7,9,11,13,15"}, // a NUMA node that is not there
        {"0000:5e:00.0", -1, "0-15"},
        {"", -1, "0-15"},
        {"nonsense", -1, "0-15"},
    };
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cuda_device device = device_at(cases[i].pci, cases[i].numa_node);
        char text[128];
        hwloc_bitmap_list_snprintf(text, sizeof text, placement_cpus_near(topology, &device));
        CHECK(strcmp(text, cases[i].near) == 0, "%s, NUMA node %d: near %s, not %s", cases[i].pci,
              cases[i].numa_node, text, cases[i].near);
    }
    struct placement_node node = {
        .topology = topology, .devices = 2, .node_size = 4, .allowed = all, .machine = all};
    node.device[0] = device_at("0000:1b:00.0", -1);
    node.device[1] = device_at("0000:9b:00.0", -1);
    static const char *const lists[] = {"0,2,8,10", "4,6,12,14", "1,3,9,11", "5,7,13,15"};
    for (node.node_rank = 0; node.node_rank < 4; node.node_rank++) {
        struct placement got;
        CHECK(placement_choose(&node, &got) == HSORT_OK, "%s", status_text());
        check_list(&got, lists[node.node_rank], 2);
        CHECK(got.numa_node == node.node_rank / 2, "NUMA node %d", got.numa_node);
        hwloc_bitmap_free(got.cpus);
    }

    // A NUMA node that has only memory and no processing units, and a bus of such a package: neither is a place to be near.
    hwloc_bitmap_t left = hwloc_bitmap_dup(placement_cpus_near(topology, &node.device[0]));
    CHECK(hwloc_topology_restrict(topology, left, 0) == 0, "hwloc");
    const struct cuda_device without[] = {device_at("", 1), device_at("0000:9b:00.0", -1)};
    for (int i = 0; i < 2; i++)
        CHECK(hwloc_bitmap_isequal(placement_cpus_near(topology, &without[i]), left), "case %d: near nothing",
              i);
    hwloc_bitmap_free(left);
    hwloc_topology_destroy(topology);
}

/* A job with cores at one end of the machine and a GPU at the other; ranks in different cgroups; a rank with no cores at all. */
static void test_odd_masks(void)
{
    hwloc_topology_t topology = load_synthetic("pack:2 [numa] core:8 pu:1");
    hwloc_bitmap_t job = hwloc_bitmap_alloc();
    hwloc_bitmap_set_range(job, 8, 15);
    struct placement_node node = {
        .topology = topology, .devices = 1, .node_size = 1, .allowed = job, .machine = job};
    node.device[0] = device_at("", 0);
    struct placement got;
    CHECK(placement_choose(&node, &got) == HSORT_OK, "%s", status_text());
    check_list(&got, "8-15", 8);
    CHECK(got.numa_node == 0, "NUMA node %d is not the GPU's", got.numa_node);
    hwloc_bitmap_free(got.cpus);

    // A rank that may move in a small cgroup, behind a rank with a mask beyond this cgroup: its slice lies outside.
    struct core_requests requests;
    CHECK(core_requests_open(2, &requests) == HSORT_OK, "%s", status_text());
    hwloc_bitmap_set_range(requests.cpus[0], 0, 15);
    hwloc_bitmap_set_range(requests.cpus[1], 0, 3);
    struct placement_node small = {
        .topology = topology, .allowed = requests.cpus[1], .machine = requests.cpus[1]};
    got.device = -1;
    CHECK(placement_settle(&small, &requests, 1, false, &got) == HSORT_OK, "%s", status_text());
    check_list(&got, "0-3", 4);
    hwloc_bitmap_free(got.cpus);
    core_requests_close(&requests);

    hwloc_bitmap_zero(job);
    CHECK(placement_choose(&node, &got) == HSORT_INTERNAL, "no cores is no error");
    CHECK(got.cpus == NULL && strlen(status_text()) > 0, "no cores: '%s'", status_text());
    hwloc_bitmap_free(job);
    hwloc_topology_destroy(topology);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    uint64_t random = ranks_seed();
    test_picture();
    test_one_visible_gpu();
    test_requests();
    test_pci();
    test_odd_masks();
    test_gpus(&random);
    test_all_nodes(&random);
    test_bound(&random);
    return ranks_finish();
}
