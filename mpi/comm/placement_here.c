/* Placement on the machine that this rank runs on: what there is, what the launcher allowed, what the other
 * ranks of the node take, and the binding itself. mpi/comm/placement.c does the choosing.
 *
 * The ranks of a node exchange two things, in two gathers:
 *   1. which GPUs they see, and which of these are near the cores they may run on. Ranks that see the same
 *      GPUs spread over them, near if they can; a rank that was given a GPU of its own takes it, whatever
 *      the others see. GPUs are compared by UUID: indices are private to a process, and a MIG instance has
 *      the PCI bus of the whole GPU.
 *   2. which GPU they take (so that a shared one is known), which cores they request, and by which quota of CPU time they are
 *      bound: ranks with the same quota share out as many threads as it has cores, and not more.
 *
 * "The launcher left this rank unbound" means: every thread of the process may run wherever its cgroup lets
 * it. Two things must not be taken for the launcher's mask: the one that an earlier context of this process
 * set, and the one place to which OpenMP binds the first thread before main() when OMP_PROC_BIND or
 * OMP_PLACES is set. */
#include "mpi/comm/gpu_request.h"
#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/checksum.h"
#include "kernels/base/host_cores.h"

enum { MASK_BITS = 8192, LONG_BITS = 8 * sizeof(unsigned long) };

/* A set of processing units as it travels; Linux cannot be built for more than 8192 of them. */
struct mask {
    unsigned long word[MASK_BITS / LONG_BITS];
};

/* What a rank sends to the others of its node in the first gather. */
struct gpus_seen {
    uint64_t gpus, near; /* digest of their UUIDs in its order; placement_near() */
};

/* ... in the second. */
struct rank_request {
    char uuid[sizeof((struct cuda_device *)0)->uuid]; /* "" without a GPU */
    struct mask request;
    struct host_core_limit limit;
};

/* What this rank knows of its node. */
struct node_survey {
    hwloc_topology_t topology;
    hwloc_bitmap_t machine, allowed; /* see struct placement_node, which borrows them */
    bool keeps_mask;                 /* not to be bound here, for whatever reason */
    struct placement_node node;
    struct gpus_seen *seen;         /* [node_size] */
    uint64_t *near;                 /* [node_size] scratch, for some of them */
    struct rank_request *requested; /* [node_size] */
    struct core_requests requests;  /* of the node's ranks */
    int gpu_sharers;                /* ranks that take this rank's GPU, itself included */
    uint64_t limit_sharers;         /* and that share its limit of CPU time */
};

static void mask_pack(hwloc_const_cpuset_t cpus, struct mask *mask)
{
    hwloc_bitmap_to_ulongs(cpus, MASK_BITS / LONG_BITS, mask->word);
}

static hsort_status mask_unpack(const struct mask *mask, hwloc_bitmap_t cpus)
{
    if (hwloc_bitmap_from_ulongs(cpus, MASK_BITS / LONG_BITS, mask->word))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the mask of another rank");
    return HSORT_OK;
}

/* ---- the binding of this process ---- */

/* What one context has bound the process to. */
struct placement_binding {
    hwloc_topology_t topology; /* owned */
    struct mask mask;
    struct placement_binding *older; /* not released either */
};

/* All contexts of a process share its binding: the youngest one's. */
static struct {
    pthread_mutex_t lock;
    struct placement_binding *youngest;
    struct mask current; /* that this library last bound it to; empty: none */
    struct mask before;  /* that it had before the first of them; empty: unknown */
} binding_of_process = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool same_mask(const struct mask *a, const struct mask *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool is_own_binding(hwloc_const_cpuset_t cpus)
{
    struct mask mask;
    mask_pack(cpus, &mask);
    pthread_mutex_lock(&binding_of_process.lock);
    const bool same = same_mask(&mask, &binding_of_process.current);
    pthread_mutex_unlock(&binding_of_process.lock);
    return same;
}

/* Read the mask that all threads of the process have; empty if they differ, or it cannot be read. */
static void read_binding(hwloc_topology_t topology, struct mask *mask)
{
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    memset(mask, 0, sizeof *mask);
    if (cpus && hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS | HWLOC_CPUBIND_STRICT) == 0)
        mask_pack(cpus, mask);
    hwloc_bitmap_free(cpus);
}

/* Bind every thread of the process, and so those that OpenMP makes later. NULL: that cannot be done; else the topology belongs to
 * the binding. */
static struct placement_binding *bind_process(hwloc_topology_t topology, hwloc_const_cpuset_t cpus)
{
    struct mask before;
    struct placement_binding *binding = calloc(1, sizeof *binding);
    pthread_mutex_lock(&binding_of_process.lock);
    read_binding(topology, &before);
    const bool bound = binding && hwloc_set_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0;
    if (bound) {
        binding->topology = topology;
        mask_pack(cpus, &binding->mask);
        binding->older = binding_of_process.youngest;
        binding_of_process.before = binding->older ? binding_of_process.before : before;
        binding_of_process.youngest = binding;
        binding_of_process.current = binding->mask;
    }
    pthread_mutex_unlock(&binding_of_process.lock);
    if (!bound)
        free(binding);
    return bound ? binding : NULL;
}

/* Give the process the mask that it has without this binding, unless another binding holds, or somebody has bound the process anew
 * since. */
static void unbind_process(struct placement_binding *gone)
{
    static const struct mask unknown;
    struct mask now;
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();
    pthread_mutex_lock(&binding_of_process.lock);
    struct placement_binding **at = &binding_of_process.youngest;
    const bool holds = *at == gone;
    while (*at != gone)
        at = &(*at)->older;
    *at = gone->older;
    const struct placement_binding *left = binding_of_process.youngest;
    const struct mask *next = left ? &left->mask : &binding_of_process.before;
    read_binding(gone->topology, &now);
    if (holds && same_mask(&now, &binding_of_process.current) && !same_mask(next, &unknown) && cpus &&
        mask_unpack(next, cpus) == HSORT_OK &&
        hwloc_set_cpubind(gone->topology, cpus, HWLOC_CPUBIND_PROCESS) == 0)
        binding_of_process.current = *next;
    if (!left)
        binding_of_process.current = unknown;
    pthread_mutex_unlock(&binding_of_process.lock);
    hwloc_bitmap_free(cpus);
    hwloc_topology_destroy(gone->topology);
    free(gone);
}

/* Add the places that OpenMP binds threads to, if it does; together they are what the launcher allowed. */
static hsort_status add_openmp_places(hwloc_bitmap_t cpus, bool *any)
{
    const int places = omp_get_num_places();
    *any = places > 0;
    for (int place = 0; place < places; place++) {
        const int count = omp_get_place_num_procs(place);
        int *ids = malloc((size_t)(count > 0 ? count : 1) * sizeof *ids);
        if (!ids)
            return status_fail(HSORT_HOST_MEMORY, "no memory for %d processing units of an OpenMP place",
                               count);
        omp_get_place_proc_ids(place, ids);
        for (int i = 0; i < count; i++)
            hwloc_bitmap_set(cpus, (unsigned)ids[i]);
        free(ids);
    }
    return HSORT_OK;
}

/* Do all threads of the process have the mask of this one? */
static bool threads_alike(hwloc_topology_t topology, hwloc_const_cpuset_t cpus)
{
    struct mask own, all;
    mask_pack(cpus, &own);
    read_binding(topology, &all);
    return same_mask(&own, &all);
}

/* Find out what the launcher allowed. This thread's mask is the one that OpenMP's threads will inherit. */
static hsort_status read_masks(struct node_survey *survey)
{
    hwloc_bitmap_t machine = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(survey->topology));
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    survey->machine = machine;
    survey->allowed = allowed;
    if (!machine || !allowed)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the mask of this rank");
    const bool refused = hwloc_get_cpubind(survey->topology, allowed, HWLOC_CPUBIND_THREAD) != 0;
    const bool alike = !refused && threads_alike(survey->topology, allowed);
    bool openmp_binds;
    TRY(add_openmp_places(allowed, &openmp_binds));

    int failed = 0;
    if (refused || (alike && is_own_binding(allowed)) || !hwloc_bitmap_intersects(allowed, machine))
        failed |= hwloc_bitmap_copy(allowed, machine);
    failed |= hwloc_bitmap_and(allowed, allowed, machine);
    if (failed)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the mask of this rank");
    survey->keeps_mask = !alike || openmp_binds || !hwloc_bitmap_isequal(allowed, machine);
    return HSORT_OK;
}

/* ---- looking around ---- */

/* Load the topology of the machine, with the parts that this job may not use: all ranks of the node then count the
 * same cores, and a GPU whose nearest cores belong to another job still has its place. PCI devices are in it only if
 * there are GPUs: reading them takes longer than all the rest, and the kernel lets one rank do so at a time.
 * hwloc_topology_destroy() frees it, also after an error, unless it is NULL. */
static hsort_status load_topology(bool has_gpus, hwloc_topology_t *topology)
{
    const enum hwloc_type_filter_e pci = has_gpus ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT : HWLOC_TYPE_FILTER_KEEP_NONE;
    *topology = NULL;
    if (hwloc_topology_init(topology))
        return status_fail(HSORT_INTERNAL, "hwloc_topology_init failed: %s", strerror(errno));
    // Discovery must not move the caller's thread about.
    const unsigned long flags =
        HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED | HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING;
    // PCI only: to list OS devices too, hwloc's plugins would start OpenCL and open the X display.
    if (hwloc_topology_set_flags(*topology, flags) ||
        hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_PCI_DEVICE, pci) ||
        hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_BRIDGE, pci) ||
        hwloc_topology_load(*topology))
        return status_fail(HSORT_INTERNAL, "hwloc cannot read the topology of this machine: %s",
                           strerror(errno));
    return HSORT_OK;
}

/* A checksum of the UUIDs of the GPUs that this rank sees, in its order. */
static uint64_t digest_gpus(const struct placement_node *node)
{
    uint64_t digest = CHECKSUM_START;
    for (int device = 0; device < node->devices; device++) {
        const char *uuid = node->device[device].uuid;
        digest = checksum_add(digest, uuid, strlen(uuid) + 1); // the 0 too, so that no two lists run together
    }
    return digest;
}

/* Find out everything that can be known, and take all memory that is needed, before the ranks exchange anything. Not
 * collective. */
static hsort_status survey_open(const struct comm *comm, int devices, struct node_survey *survey)
{
    *survey = (struct node_survey){.topology = NULL};
    TRY(core_requests_open(comm->node_size, &survey->requests));
    survey->seen = calloc((size_t)comm->node_size, sizeof *survey->seen);
    survey->near = calloc((size_t)comm->node_size, sizeof *survey->near);
    survey->requested = calloc((size_t)comm->node_size, sizeof *survey->requested);
    if (!survey->seen || !survey->near || !survey->requested)
        return status_fail(HSORT_HOST_MEMORY, "no memory for what %d ranks of this node take",
                           comm->node_size);
    TRY(load_topology(devices > 0, &survey->topology));
    TRY(read_masks(survey));

    struct placement_node *node = &survey->node;
    node->topology = survey->topology;
    node->devices = devices < PLACEMENT_MAX_DEVICES ? devices : PLACEMENT_MAX_DEVICES;
    for (int device = 0; device < node->devices; device++)
        TRY(cuda_device_get(device, &node->device[device]));
    node->node_rank = comm->node_rank;
    node->node_size = comm->node_size;
    node->allowed = survey->allowed;
    node->machine = survey->machine;
    return HSORT_OK;
}

static void survey_close(struct node_survey *survey)
{
    core_requests_close(&survey->requests);
    free(survey->seen);
    free(survey->near);
    free(survey->requested);
    hwloc_bitmap_free(survey->machine);
    hwloc_bitmap_free(survey->allowed);
    if (survey->topology)
        hwloc_topology_destroy(survey->topology);
}

/* ---- what the ranks of the node exchange ---- */

/* Choose the GPU among the ranks that see the same ones. Not collective. */
static hsort_status choose_device(const struct node_survey *survey, int *device)
{
    const struct placement_node *node = &survey->node;
    int alike = 0, before = 0;
    for (int rank = 0; rank < node->node_size; rank++) {
        if (survey->seen[rank].gpus != survey->seen[node->node_rank].gpus)
            continue;
        before += rank < node->node_rank;
        survey->near[alike++] = survey->seen[rank].near;
    }
    *device = -1;
    return node->devices == 0 ? HSORT_OK
                              : placement_choose_gpu(survey->near, alike, node->devices, before, device);
}

/* Read what the others take: their requests, and how many share this rank's GPU and limit. Not collective. */
static hsort_status read_requests(struct node_survey *survey)
{
    const struct rank_request *own = &survey->requested[survey->node.node_rank];
    survey->gpu_sharers = 0;
    survey->limit_sharers = 0;
    for (int rank = 0; rank < survey->node.node_size; rank++) {
        const struct rank_request *other = &survey->requested[rank];
        TRY(mask_unpack(&other->request, survey->requests.cpus[rank]));
        survey->gpu_sharers += strcmp(other->uuid, own->uuid) == 0;
        survey->limit_sharers += other->limit.place == own->limit.place;
    }
    return HSORT_OK;
}

/* Both gathers; *device is chosen between them. Collective over the node. */
static hsort_status exchange_requests(struct comm *comm, struct node_survey *survey, int *device)
{
    const struct gpus_seen seen = {digest_gpus(&survey->node), placement_near(&survey->node)};
    const int first = MPI_Allgather(&seen, 2, MPI_UINT64_T, survey->seen, 2, MPI_UINT64_T, comm->node);
    const hsort_status chosen = choose_device(survey, device);

    struct rank_request mine = {.uuid = "", .limit = host_core_limit()};
    if (*device >= 0)
        memcpy(mine.uuid, survey->node.device[*device].uuid, sizeof mine.uuid);
    hwloc_bitmap_t request = survey->requests.cpus[comm->node_rank];
    const hsort_status requested =
        placement_request(&survey->node, survey->keeps_mask ? -1 : *device, request);
    mask_pack(request, &mine.request);
    const int second =
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, survey->requested, sizeof mine, MPI_BYTE, comm->node);
    TRY(chosen);
    TRY(requested);
    TRY(comm_check(first, "MPI_Allgather of the GPUs seen", false));
    TRY(comm_check(second, "MPI_Allgather of the GPUs and cores taken", false));
    return read_requests(survey);
}

/* ---- the result ---- */

/* Write cpus as a list of ranges, cut after a whole range if it does not fit. */
static void list_cpus(hwloc_const_cpuset_t cpus, char *text, size_t bytes)
{
    static const char rest[] = ",...";
    if (hwloc_bitmap_list_snprintf(text, bytes, cpus) < (int)bytes)
        return;
    size_t end = bytes - sizeof rest;
    while (end > 0 && text[end] != ',')
        end--;
    memcpy(text + end, rest, sizeof rest);
}

static void describe_placement(const struct comm *comm, const struct node_survey *survey,
                               const struct placement *placement, hsort_rank_info *info)
{
    *info = (hsort_rank_info){.gpu_bytes = -1, .gpu_index = -1, .gpu_sharers = -1};
    memcpy(info->host, comm->host, sizeof info->host);
    if (placement->device >= 0) {
        const struct cuda_device *device = &survey->node.device[placement->device];
        memcpy(info->gpu_name, device->name, sizeof info->gpu_name);
        memcpy(info->gpu_uuid, device->uuid, sizeof info->gpu_uuid);
        memcpy(info->gpu_pci, device->pci, sizeof info->gpu_pci);
        info->gpu_bytes = device->bytes;
        info->gpu_index = placement->device;
        info->gpu_sharers = survey->gpu_sharers;
    }
    info->numa_node = placement->numa_node;
    info->cores = placement->cores;
    info->bound_by_launcher = placement->bound_by_launcher;
    list_cpus(placement->cpus, info->cpus, sizeof info->cpus);
}

_Static_assert(sizeof((hsort_rank_info *)0)->host == sizeof((struct comm *)0)->host &&
                   sizeof((hsort_rank_info *)0)->gpu_name == sizeof((struct cuda_device *)0)->name &&
                   sizeof((hsort_rank_info *)0)->gpu_uuid == sizeof((struct cuda_device *)0)->uuid &&
                   sizeof((hsort_rank_info *)0)->gpu_pci == sizeof((struct cuda_device *)0)->pci,
               "describe_placement() copies whole fields");

/* Allow no more threads than this rank's part of the CPU time that it may take; one at least. */
static void limit_cores(const struct node_survey *survey, struct placement *placement)
{
    const struct host_core_limit *limit = &survey->requested[survey->node.node_rank].limit;
    const uint64_t part = limit->thousandths / 1000 / survey->limit_sharers;
    if (limit->place != 0 && part < (uint64_t)placement->cores)
        placement->cores = part > 0 ? (int)part : 1;
}

/* Settle, and bind if this rank may. Not collective. */
static hsort_status settle_and_bind(struct node_survey *survey, struct placement *placement)
{
    const struct placement_node *node = &survey->node;
    TRY(placement_settle(node, &survey->requests, node->node_rank, survey->keeps_mask, placement));
    if (!survey->keeps_mask)
        placement->binding = bind_process(survey->topology, placement->cpus);
    if (placement->binding)
        survey->topology = NULL;
    if (survey->keeps_mask || placement->binding)
        return HSORT_OK;
    // The system refused, which is no error: the rank stays where it is, with as many threads.
    hwloc_bitmap_free(placement->cpus);
    return placement_settle(node, &survey->requests, node->node_rank, true, placement);
}

hsort_status placement_here(struct comm *comm, int devices, hsort_binding binding,
                            struct placement *placement, hsort_rank_info *info)
{
    *placement = (struct placement){.device = -1, .numa_node = -1};
    *info = (hsort_rank_info){.gpu_index = -1};
    struct node_survey survey;
    hsort_status status = survey_open(comm, devices, &survey);
    if (binding == HSORT_BINDING_NONE)
        survey.keeps_mask = true;

    // If one rank of the node cannot go on, none of them does. Those that could return HSORT_OK: the caller's
    // agreement reports it.
    int ready = status == HSORT_OK, all_ready = 0;
    const int code = MPI_Allreduce(&ready, &all_ready, 1, MPI_INT, MPI_MIN, comm->node);
    if (status == HSORT_OK)
        status = comm_check(code, "MPI_Allreduce", false);
    if (status == HSORT_OK && all_ready)
        status = exchange_requests(comm, &survey, &placement->device);
    if (status == HSORT_OK && all_ready)
        status = settle_and_bind(&survey, placement);
    if (status == HSORT_OK && all_ready) {
        limit_cores(&survey, placement);
        describe_placement(comm, &survey, placement, info);
    }
    survey_close(&survey);
    return status;
}

void placement_release(struct placement *placement)
{
    hwloc_bitmap_free(placement->cpus);
    placement->cpus = NULL;
    if (placement->binding)
        unbind_process(placement->binding);
    placement->binding = NULL;
}
