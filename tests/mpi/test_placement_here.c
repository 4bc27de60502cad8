/* Placement on a machine: several ranks on the one that runs the test, and on made-up machines that hwloc learns
 * about from its environment. This file makes up the GPUs, too: cuda_device_get() below answers with what a test case
 * says a rank sees. */
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include "kernels/base/host_cores.h"
#include "mpi/comm/placement.h"
#include "tests/mpi/placement_alone.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 8, WORDS = 32 };

static struct comm comm;
static struct cuda_device visible[8];
static int visible_count;

hsort_status cuda_device_get(int index, struct cuda_device *device)
{
    if (index >= visible_count)
        return status_fail(HSORT_NO_DEVICE, "there is no GPU %d", index);
    *device = visible[index];
    return HSORT_OK;
}

/* This file also makes up the CPU time that this rank may take. */
static struct host_core_limit core_limit;

struct host_core_limit host_core_limit(void)
{
    return core_limit;
}

/* Let this rank see one more GPU: the one called `uuid`. */
static void see(const char *uuid, const char *pci)
{
    struct cuda_device *device = &visible[visible_count++];
    *device = (struct cuda_device){.name = "made up", .bytes = 1 << 30, .numa_node = -1};
    snprintf(device->uuid, sizeof device->uuid, "%s", uuid);
    snprintf(device->pci, sizeof device->pci, "%s", pci);
}

/* Let hwloc see a made-up machine in the next case, or this one again. */
static void pretend(const char *variable, const char *value)
{
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_THISSYSTEM");
    if (variable)
        setenv(variable, value, 1);
}

struct result {
    hsort_status status;
    struct placement placement;
    hsort_rank_info info;
};

static struct result place(int devices, hsort_binding binding)
{
    struct result got;
    status_clear();
    got.status = placement_here(&comm, devices, binding, &got.placement, &got.info);
    return got;
}

/* Call place() where nothing can go wrong. */
static struct result place_well(int devices, hsort_binding binding)
{
    struct result got = place(devices, binding);
    CHECK(got.status == HSORT_OK, "%s", status_text());
    CHECK(got.placement.cpus && !hwloc_bitmap_iszero(got.placement.cpus), "no core");
    CHECK(got.info.cores == got.placement.cores && got.info.cores > 0, "%d cores", got.info.cores);
    CHECK(strcmp(got.info.host, comm.host) == 0, "host '%s'", got.info.host);
    CHECK(got.info.gpu_index == got.placement.device, "GPU %d", got.info.gpu_index);
    CHECK(strlen(got.info.cpus) > 0, "the cores are not listed");
    return got;
}

static cpu_set_t affinity(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    return set;
}

/* Return a set of one CPU: number `nth` of the given set, where counting begins again after the last CPU. */
static cpu_set_t one_of(const cpu_set_t *set, int nth)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    nth %= CPU_COUNT(set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, set) && nth-- == 0)
            CPU_SET(cpu, &one);
    return one;
}

static bool same_cpus(const cpu_set_t *set, hwloc_const_bitmap_t cpus)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (!CPU_ISSET(cpu, set) != !hwloc_bitmap_isset(cpus, (unsigned)cpu))
            return false;
    return true;
}

/* Are the ranks' cpus disjoint? *together is set to how many there are on all ranks.           Collective. */
static bool disjoint(hwloc_const_bitmap_t cpus, int *together)
{
    unsigned long own[WORDS], all[MOST_RANKS][WORDS];
    hwloc_bitmap_to_ulongs(cpus, WORDS, own);
    MPI_Allgather(own, WORDS, MPI_UNSIGNED_LONG, all, WORDS, MPI_UNSIGNED_LONG, MPI_COMM_WORLD);
    bool apart = true;
    *together = 0;
    for (int word = 0; word < WORDS; word++) {
        unsigned long seen = 0;
        for (int rank = 0; rank < comm.size; rank++) {
            apart = apart && !(seen & all[rank][word]);
            seen |= all[rank][word];
        }
        *together += __builtin_popcountl(seen);
    }
    return apart;
}

static int sum(int value)
{
    int all;
    MPI_Allreduce(&value, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* ---- cores ---- */

/* Ranks run on `cpus`, whatever the library would like: on all of these CPUs, and each rank takes its share of the
 * threads. The made-up machine has more cores than this one, so that every mask here is less than the
 * machine. */
static void check_kept_mask(const cpu_set_t *cpus)
{
    pretend("HWLOC_SYNTHETIC", "core:1024 pu:1");
    setenv("HWLOC_THISSYSTEM", "1", 1);
    const cpu_set_t before = affinity();
    struct result got = place_well(0, HSORT_BINDING_AUTO);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&before, &after), "the mask is changed");
    CHECK(got.info.bound_by_launcher == 1, "the mask is not seen");
    CHECK(same_cpus(cpus, got.placement.cpus), "runs on %s", got.info.cpus);
    // Under a launcher that gives each rank a mask of its own, the rest of the check says nothing.
    int together;
    disjoint(got.placement.cpus, &together);
    const int cores = sum(got.placement.cores), mask = CPU_COUNT(cpus),
              most = mask > comm.size ? mask : comm.size;
    CHECK(together != mask || cores == most, "%d ranks on %d cores run %d threads", comm.size, mask, cores);
    placement_release(&got.placement);
    pretend(NULL, NULL);
}

static int cores_within(uint64_t place, uint64_t thousandths)
{
    core_limit = (struct host_core_limit){place, thousandths};
    struct result got = place_well(0, HSORT_BINDING_NONE);
    placement_release(&got.placement);
    core_limit = (struct host_core_limit){0};
    return got.info.cores;
}

/* A machine with many cores, and a quota of a container or of each rank: three and a half cores for each rank. */
static void test_core_limits(void)
{
    const uint64_t size = (uint64_t)comm.size, own = (uint64_t)comm.rank + 1;
    pretend("HWLOC_SYNTHETIC", "core:1024 pu:1");
    const int all = cores_within(0, 0);
    CHECK(all == 1024 / comm.size || all == 1024 / comm.size + 1, "without a limit %d cores", all);
    CHECK(cores_within(4711, 3500 * size) == 3, "a limit of all ranks");
    CHECK(cores_within(4711, 999 * size) == 1, "less than a core for each");
    CHECK(cores_within(own, 3500) == 3, "a limit of each rank");
    CHECK(cores_within(comm.rank > 0 ? 4711 : 0, 3000 * (size - 1)) == (comm.rank > 0 ? 3 : all),
          "a limit that rank 0 does not have");
    CHECK(cores_within(4711, 5000 * 1000 * size) == all, "a limit of more than there is");
    pretend(NULL, NULL);
}

/* OpenMP has bound this thread to the first of its places; the launcher's mask is all of the places. */
static void test_openmp_places(void)
{
    cpu_set_t places;
    CPU_ZERO(&places);
    for (int place = 0; place < omp_get_num_places(); place++) {
        int ids[CPU_SETSIZE];
        CHECK(omp_get_place_num_procs(place) <= CPU_SETSIZE, "place %d", place);
        omp_get_place_proc_ids(place, ids);
        for (int i = 0; i < omp_get_place_num_procs(place); i++)
            CPU_SET(ids[i], &places);
    }
    check_kept_mask(&places);

    // On the real machine too, where nothing else would keep the library from binding.
    const cpu_set_t before = affinity();
    struct result got = place_well(0, HSORT_BINDING_AUTO);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&before, &after), "the place that OpenMP chose is changed");
    placement_release(&got.placement);
}

/* Test a mask of one CPU on the real machine. */
static void test_bound_here(void)
{
    const cpu_set_t before = affinity();
    if (CPU_COUNT(&before) == 1)
        return;
    const cpu_set_t one = one_of(&before, comm.rank);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
    struct result got = place_well(0, HSORT_BINDING_AUTO);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&one, &after), "the mask is changed");
    CHECK(got.info.cores == 1, "%d cores", got.info.cores);
    placement_release(&got.placement);
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0, "sched_setaffinity");
}

static void *read_affinity(void *set)
{
    *(cpu_set_t *)set = affinity();
    return NULL;
}

static pthread_barrier_t both;

/* A thread with a `mask` [1] of its own, which it must still have when the ranks have been placed. */
static void *stay_on(void *mask)
{
    CHECK(sched_setaffinity(0, sizeof(cpu_set_t), mask) == 0, "sched_setaffinity");
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&after, (cpu_set_t *)mask), "another thread's mask is changed");
    return NULL;
}

/* If threads have masks of their own, no mask is touched. */
static void test_threads_apart(void)
{
    const cpu_set_t before = affinity();
    if (CPU_COUNT(&before) == 1)
        return;
    cpu_set_t mask = one_of(&before, comm.rank);
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, stay_on, &mask) == 0, "pthread_create");
    pthread_barrier_wait(&both);
    struct result got = place_well(0, HSORT_BINDING_AUTO);
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&both);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&before, &after), "this thread's mask is changed");
    CHECK(same_cpus(&before, got.placement.cpus), "runs on %s", got.info.cpus);
    placement_release(&got.placement);
}

/* This machine, whatever it is: NONE binds nothing; AUTO binds what was unbound, also threads that come
 * later; and a second context does not take the first one's binding for the launcher's. */
static void test_this_machine(void)
{
    const cpu_set_t before = affinity();
    struct result loose = place_well(0, HSORT_BINDING_NONE);
    const cpu_set_t untouched = affinity();
    CHECK(CPU_EQUAL(&before, &untouched), "bound in spite of NONE");
    CHECK(same_cpus(&before, loose.placement.cpus), "runs on %s", loose.info.cpus);

    struct result first = place_well(0, HSORT_BINDING_AUTO);
    cpu_set_t bound = affinity(), later;
    CHECK(same_cpus(&bound, first.placement.cpus), "says it runs on %s", first.info.cpus);
    CHECK(first.info.bound_by_launcher == loose.info.bound_by_launcher,
          "NONE and AUTO see different launchers");
    CHECK(first.info.cores == loose.info.cores, "%d and %d cores", first.info.cores, loose.info.cores);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, read_affinity, &later) == 0, "pthread_create");
    pthread_join(thread, NULL);
    CHECK(CPU_EQUAL(&bound, &later), "a later thread runs elsewhere");

    struct result second = place_well(0, HSORT_BINDING_AUTO);
    CHECK(hwloc_bitmap_isequal(first.placement.cpus, second.placement.cpus), "first on %s, then on %s",
          first.info.cpus, second.info.cpus);
    CHECK(second.info.bound_by_launcher == first.info.bound_by_launcher,
          "took its own binding for the launcher's");
    CHECK(second.info.cores == first.info.cores, "first %d cores, then %d", first.info.cores,
          second.info.cores);
    placement_release(&loose.placement);
    placement_release(&first.placement);
    cpu_set_t now = affinity();
    CHECK(CPU_EQUAL(&bound, &now), "the binding went with the first of two contexts");
    placement_release(&second.placement);
    now = affinity();
    CHECK(CPU_EQUAL(&before, &now), "after the last context this thread's mask is not what it was");
}

/* A context of this rank alone, which has all cores, and one of all ranks: when the younger one goes, the process is bound as
 * the older one wants it; when the older one goes first, nothing changes. */
static void test_two_kinds(void)
{
    const struct comm all = comm;
    const cpu_set_t before = affinity();
    struct comm alone;
    CHECK(comm_open(MPI_COMM_SELF, &alone) == HSORT_OK, "%s", status_text());
    for (int older_first = 0; older_first < 2; older_first++) {
        comm = alone;
        struct result older = place_well(0, HSORT_BINDING_AUTO);
        comm = all;
        struct result younger = place_well(0, HSORT_BINDING_AUTO);
        struct result *const first = older_first ? &older : &younger;
        struct result *const last = older_first ? &younger : &older;
        placement_release(&first->placement);
        cpu_set_t now = affinity();
        CHECK(same_cpus(&now, last->placement.cpus), "older first %d: not on %s, which is left", older_first,
              last->info.cpus);
        placement_release(&last->placement);
        now = affinity();
        CHECK(CPU_EQUAL(&before, &now), "older first %d: the mask is not what it was", older_first);
    }
    comm_close(&alone);
}

/* A thread of the caller's, which is bound with the others, writes down its mask when the last context is
 * gone. */
static void *outlive_contexts(void *mask)
{
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    *(cpu_set_t *)mask = affinity();
    return NULL;
}

/* The binding ends with the last context, in all threads, also if contexts come and go in several threads. A binding
 * that the caller has made meanwhile stays. */
static void test_release(void)
{
    const cpu_set_t before = affinity();
    cpu_set_t outlived;
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    CHECK(pthread_create(&thread, NULL, outlive_contexts, &outlived) == 0, "pthread_create");
    pthread_barrier_wait(&both);
    for (int repeat = 0; repeat < 3; repeat++) {
        struct result got = place_well(0, HSORT_BINDING_AUTO);
        placement_release(&got.placement);
        placement_release(&got.placement); // nothing is left to be released
        const cpu_set_t after = affinity();
        CHECK(CPU_EQUAL(&before, &after), "repeat %d: the mask is not what it was", repeat);
    }
    pthread_barrier_wait(&both);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&both);
    CHECK(CPU_EQUAL(&before, &outlived), "another thread's mask is not what it was");
    if (CPU_COUNT(&before) == 1)
        return;

    struct result got = place_well(0, HSORT_BINDING_AUTO);
    const cpu_set_t bound = affinity();
    cpu_set_t one = one_of(&before, 0);
    if (CPU_EQUAL(&one, &bound)) // the same mask could not be told from the library's
        one = one_of(&before, 1);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
    placement_release(&got.placement);
    const cpu_set_t after = affinity();
    CHECK(CPU_EQUAL(&one, &after), "the caller's own binding is undone");
    CHECK(sched_setaffinity(0, sizeof before, &before) == 0, "sched_setaffinity");
}

/* Unbound ranks without GPUs share out all cores; what they receive agrees with what they work out alone. */
static void test_many_cores(void)
{
    pretend("HWLOC_SYNTHETIC", "pack:2 [numa] core:8 pu:2");
    struct result got = place_well(0, HSORT_BINDING_AUTO);
    int together;
    CHECK(disjoint(got.placement.cpus, &together), "ranks share cores");
    CHECK(together == 32, "%d of 32 processing units are used", together);
    CHECK(sum(got.placement.cores) == 16, "%d of 16 cores are used", sum(got.placement.cores));
    CHECK(got.info.gpu_index == -1 && got.info.gpu_sharers == -1 && got.info.gpu_bytes == -1,
          "a GPU out of nothing");
    CHECK(strcmp(got.info.gpu_uuid, "") == 0 && strcmp(got.info.gpu_pci, "") == 0, "a GPU out of nothing");

    hwloc_topology_t topology;
    hwloc_topology_init(&topology);
    CHECK(hwloc_topology_load(topology) == 0, "hwloc");
    hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology);
    const struct placement_node node = {.topology = topology,
                                        .node_rank = comm.node_rank,
                                        .node_size = comm.node_size,
                                        .allowed = all,
                                        .machine = all};
    struct placement alone;
    CHECK(placement_choose(&node, &alone) == HSORT_OK, "%s", status_text());
    CHECK(hwloc_bitmap_isequal(alone.cpus, got.placement.cpus), "runs on %s", got.info.cpus);
    hwloc_bitmap_free(alone.cpus);
    hwloc_topology_destroy(topology);
    placement_release(&got.placement);
    pretend(NULL, NULL);
}

/* A list of cores that is too long for its field ends after a whole range. */
static void test_long_list(void)
{
    pretend("HWLOC_SYNTHETIC", "pack:2 core:64 pu:1(indexes=pack:core)");
    struct result got = place_well(0, HSORT_BINDING_AUTO);
    char full[1024];
    hwloc_bitmap_list_snprintf(full, sizeof full, got.placement.cpus);
    char *cut = strstr(got.info.cpus, ",...");
    CHECK((cut != NULL) == (strlen(full) >= sizeof got.info.cpus), "'%s' for '%s'", got.info.cpus, full);
    CHECK(comm.size != 2 || cut, "the case is too short to be one: '%s'", full);
    if (cut) {
        const size_t kept = (size_t)(cut - got.info.cpus);
        CHECK(strncmp(got.info.cpus, full, kept) == 0 && full[kept] == ',', "'%s' for '%s'", got.info.cpus,
              full);
        CHECK(strlen(got.info.cpus) > sizeof got.info.cpus - 8, "'%s' wastes its field", got.info.cpus);
    }
    placement_release(&got.placement);
    pretend(NULL, NULL);
}

/* ---- GPUs: A and B, at the two packages of a machine written down as XML ---- */

static const char *const uuids[] = {"GPU-aaaa", "GPU-bbbb"};
static const char *const buses[] = {"0000:1b:00.0", "0000:9b:00.0"};

/* Place with what this rank sees; `expected` is the GPU it must take: 0 for A, 1 for B. */
static void check_gpu(const char *what, int expected, int sharers)
{
    pretend("HWLOC_XMLFILE", TOPOLOGIES "/two_packages_two_gpus.xml");
    struct result got = place_well(visible_count, HSORT_BINDING_AUTO);
    CHECK(strcmp(got.info.gpu_uuid, uuids[expected]) == 0, "%s: rank %d takes %s", what, comm.rank,
          got.info.gpu_uuid);
    CHECK(strcmp(got.info.gpu_pci, buses[expected]) == 0, "%s: PCI %s", what, got.info.gpu_pci);
    CHECK(got.info.gpu_bytes == 1 << 30, "%s: %lld bytes", what, (long long)got.info.gpu_bytes);
    CHECK(got.info.gpu_sharers == sharers, "%s: rank %d: %d sharers, not %d", what, comm.rank,
          got.info.gpu_sharers, sharers);
    CHECK(got.info.numa_node == expected, "%s: NUMA node %d", what, got.info.numa_node);
    int together;
    CHECK(disjoint(got.placement.cpus, &together), "%s: ranks share cores", what);
    for (int cpu = hwloc_bitmap_first(got.placement.cpus); cpu >= 0;
         cpu = hwloc_bitmap_next(got.placement.cpus, cpu))
        CHECK(cpu % 2 == expected, "%s: rank %d is far from its GPU: %s", what, comm.rank, got.info.cpus);
    // Four cores lie near each GPU, and the ranks on it use all of them.
    int on_this_gpu[2] = {0}, all[2];
    on_this_gpu[expected] = got.placement.cores;
    MPI_Allreduce(on_this_gpu, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(all[expected] == 4, "%s: %d cores are used near GPU %d", what, all[expected], expected);
    placement_release(&got.placement);
    pretend(NULL, NULL);
    visible_count = 0;
}

static void test_gpus(void)
{
    const int size = comm.size, rank = comm.rank;
    const int odd = rank % 2, like_me = odd ? size / 2 : (size + 1) / 2;

    see(uuids[0], buses[0]);
    see(uuids[1], buses[1]);
    const int block = rank * 2 / size, on_a = (size + 1) / 2;
    check_gpu("all see both", block, block == 0 ? on_a : size - on_a);

    see(uuids[odd], buses[odd]);
    check_gpu("each sees one, in turns", odd, like_me);

    // Each rank puts its own GPU first, as scripts do that rotate CUDA_VISIBLE_DEVICES. Only ranks with the same
    // list share it out.
    see(uuids[odd], buses[odd]);
    see(uuids[!odd], buses[!odd]);
    int before = rank / 2, taken = before * 2 / like_me, on[2] = {0}, all[2];
    on[taken ? !odd : odd] = 1;
    MPI_Allreduce(on, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check_gpu("each has a list of its own", taken ? !odd : odd, all[taken ? !odd : odd]);
}

/* Two MIG instances have one PCI bus and are not shared. */
static void test_mig(void)
{
    char uuid[32];
    snprintf(uuid, sizeof uuid, "MIG-%d", comm.rank);
    see(uuid, buses[0]);
    struct result got = place_well(1, HSORT_BINDING_AUTO);
    CHECK(got.info.gpu_sharers == 1, "%d sharers", got.info.gpu_sharers);
    placement_release(&got.placement);
    visible_count = 0;
}

/* If one rank cannot ask its GPU, it says so, and no other rank waits for it. */
static void test_one_rank_fails(void)
{
    const bool fails = comm.rank == comm.size - 1;
    struct result got = place(fails ? 1 : 0, HSORT_BINDING_AUTO);
    CHECK(got.status == (fails ? HSORT_NO_DEVICE : HSORT_OK), "rank %d: status %d", comm.rank, got.status);
    CHECK(got.placement.cpus == NULL, "rank %d has cores to free", comm.rank);
    CHECK(comm_agree(&comm, got.status) == HSORT_NO_DEVICE, "rank %d hears nothing of it", comm.rank);
    CHECK(strstr(comm.error, "there is no GPU 0"), "'%s'", comm.error);
    status_clear();
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "%s", status_text());
    if (comm.size > MOST_RANKS || comm.node_size != comm.size)
        return ranks_skip("needs at most 8 ranks, as the machine with GPUs has 8 cores, all on one node");
    if (omp_get_num_places() > 0) {
        test_openmp_places();
    } else {
        const cpu_set_t mask = affinity();
        check_kept_mask(&mask);
        test_core_limits();
        test_bound_here();
        test_threads_apart();
        test_this_machine();
        test_two_kinds();
        test_release();
        test_many_cores();
        test_long_list();
        test_gpus();
        test_mig();
        test_one_rank_fails();
    }
    comm_close(&comm);
    return ranks_finish();
}
