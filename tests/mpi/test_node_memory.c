/* Host memory of the ranks of one node, in made-up trees of cgroups that each rank reads in its own way:
 * --wrap puts __wrap_host_memory_limits() in the place of host_memory_limits(). Memory that each rank could have for itself
 * alone, but not all ranks together, is refused before any rank takes it; ranks in other cgroups are judged by their own
 * limits. */
#include "kernels/base/host_memory.h"
#include "mpi/comm/node_memory.h"
#include "hypersort.h"
#include "tests/support/ranks.h"
#include "tests/support/tree.h"

int __wrap_host_memory_limits(struct host_memory_limit *limits);

static struct comm comm;
static char machine[300]; /* the root of this rank's tree; "" is the true machine */

int __wrap_host_memory_limits(struct host_memory_limit *limits)
{
    return host_memory_limits_below(machine, limits);
}

/* ---- the trees
 * -------------------------------------------------------------------------------------------------- */

enum { CGROUPS = 2 };

static const uint64_t MIB = 1 << 20, AVAILABLE = 1000 << 20;

/* Rank 0 makes a tree of cgroups that all ranks see: job/0 and job/1, with limits of their own, below job. Each
 * rank has its own proc, which puts it into one of them. A link makes the cgroups lie beside this proc.
 * Collective. */
static void make_trees(uint64_t job, uint64_t first, uint64_t second)
{
    char shared[256] = "", link_at[400], target[300];
    const uint64_t limit[CGROUPS] = {first, second};
    if (comm.rank == 0) {
        tree_open();
        tree_write("cgroup/job/memory.max", "%llu\n", (unsigned long long)job);
        for (int i = 0; i < CGROUPS; i++) {
            char name[64];
            snprintf(name, sizeof name, "cgroup/job/%d/memory.max", i);
            tree_write(name, "%llu\n", (unsigned long long)limit[i]);
        }
        snprintf(shared, sizeof shared, "%s", tree_root());
    }
    MPI_Bcast(shared, sizeof shared, MPI_CHAR, 0, comm.world);
    if (comm.rank != 0)
        snprintf(tree_folder, sizeof tree_folder, "%s", shared);
    char name[64];
    snprintf(name, sizeof name, "rank%d/proc/meminfo", comm.rank);
    tree_write(name, "MemAvailable: %llu kB\n", (unsigned long long)(AVAILABLE >> 10));
    snprintf(name, sizeof name, "rank%d/proc/self/cgroup", comm.rank);
    tree_write(name, "0::/job/%d\n", comm.rank % CGROUPS);
    snprintf(name, sizeof name, "rank%d/proc/self/mountinfo", comm.rank);
    tree_write(name, "38 31 0:35 / /cgroup rw - cgroup2 cgroup2 rw\n");
    snprintf(machine, sizeof machine, "%s/rank%d", shared, comm.rank);
    snprintf(link_at, sizeof link_at, "%s/cgroup", machine);
    snprintf(target, sizeof target, "%s/cgroup", shared);
    CHECK(symlink(target, link_at) == 0, "no link");
    MPI_Barrier(comm.world);
}

static void remove_trees(void)
{
    MPI_Barrier(comm.world);
    machine[0] = '\0';
    if (comm.rank == 0)
        tree_close();
}

/* ---- the check
 * --------------------------------------------------------------------------------------------------- */

static hsort_status ask(uint64_t bytes)
{
    status_clear();
    return comm_agree(&comm, node_memory_check(&comm, bytes));
}

/* A limit of `bytes` that all ranks of the node share: what they want may come up to it, and no further.
 * Collective. */
static void check_shared(uint64_t bytes, const char *limit)
{
    const uint64_t each = bytes / (uint64_t)comm.size;
    CHECK(ask(each) == HSORT_OK, "%s: all of it: %s", limit, comm.error);
    CHECK(ask(each + 1 + bytes % (uint64_t)comm.size) == HSORT_HOST_MEMORY, "%s: more than there is", limit);
    CHECK(strstr(comm.error, limit) && strstr(comm.error, "rank 0 on "), "the line is '%s'", comm.error);
    CHECK(ask(comm.rank == comm.size - 1 ? bytes : 0) == HSORT_OK, "%s: one wants all: %s", limit,
          comm.error);
    CHECK(ask(comm.rank == comm.size - 1 ? bytes + 1 : 0) == HSORT_HOST_MEMORY, "%s: one wants more", limit);
    char who[32];
    snprintf(who, sizeof who, "rank %d on ", comm.size - 1);
    CHECK(strstr(comm.error, who), "'%s' does not name %s", comm.error, who);
    CHECK(strstr(comm.error, ": 1 rank of this node wants "), "'%s' counts ranks that want nothing",
          comm.error);
    CHECK(ask(0) == HSORT_OK, "%s: nothing", limit);
    CHECK(ask(UINT64_MAX) == HSORT_HOST_MEMORY, "%s: sums that overflow", limit);
    const uint64_t wraps =
        UINT64_MAX / (uint64_t)comm.size + 1; // for several ranks the sum wraps to less than one byte each
    CHECK(comm.size == 1 || ask(wraps) == HSORT_HOST_MEMORY, "%s: a sum that would seem small", limit);
}

static void test_machine(void)
{
    make_trees(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    check_shared(AVAILABLE, "the machine has available 1.048 GB");
    remove_trees();
}

static void test_parent(void)
{
    make_trees(640 * MIB, UINT64_MAX, UINT64_MAX);
    check_shared(630 * MIB, "their cgroup has left 660.6 MB");
    remove_trees();
}

/* Ranks with even numbers are in one cgroup, the others in another one. */
static void test_own_limits(void)
{
    make_trees(UINT64_MAX, 640 * MIB, 64 * MIB);
    const uint64_t left[CGROUPS] = {630 * MIB, 63 * MIB};
    const int mine = comm.rank % CGROUPS, ranks = (comm.size + 1 - mine) / CGROUPS;
    CHECK(ask(left[mine] / (uint64_t)ranks) == HSORT_OK, "as much as each has: %s", comm.error);
    for (int kind = 0; kind < CGROUPS && kind < comm.size; kind++) {
        CHECK(ask(left[mine] / (uint64_t)ranks + (mine == kind)) == HSORT_HOST_MEMORY,
              "more than cgroup %d has", kind);
        char who[32];
        snprintf(who, sizeof who, "rank %d on ", kind);
        CHECK(strstr(comm.error, who) && strstr(comm.error, "cgroup"), "'%s' does not name %s", comm.error,
              who);
    }
    remove_trees();
}

/* ---- a sort
 * ------------------------------------------------------------------------------------------------------ */

/* The two buffers of each rank fit into the machine by themselves, but the buffers of all ranks do not: the sort is
 * refused on every rank, keys are untouched, and the context sorts what does fit. */
static void test_sort_of_all(void)
{
    enum { KEYS = 1 << 17 };
    const uint64_t bytes = KEYS * sizeof(uint64_t);
    if (comm.size == 1)
        return;
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    uint64_t *keys = malloc(bytes);
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = (KEYS - i) * (uint64_t)(comm.rank + 1);
    const uint64_t first = keys[0];
    size_t workspace; // of which the caller lends one buffer
    CHECK(hsort_workspace(ctx, HSORT_U64, KEYS, &workspace) == HSORT_OK, "no workspace");
    const uint64_t job = (workspace - bytes) * (uint64_t)comm.size * 33 / 32;
    make_trees(job, UINT64_MAX, UINT64_MAX);
    hsort_status status = hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, keys, KEYS, keys, KEYS, NULL);
    CHECK(status == HSORT_OK, "what all want fits: %s", hsort_last_error(ctx));
    remove_trees();
    hsort_destroy(&ctx);
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    keys[0] = first;
    make_trees(job - bytes / 2, UINT64_MAX, UINT64_MAX);
    status = hsort_sort(ctx, HSORT_U64, HSORT_DESCENDING, keys, KEYS, NULL);
    CHECK(status == HSORT_HOST_MEMORY, "the buffers of all do not fit: status %d", status);
    CHECK(strstr(hsort_last_error(ctx), "rank 0 on ") &&
              strstr(hsort_last_error(ctx), "their cgroup has left"),
          "the line is '%s'", hsort_last_error(ctx));
    CHECK(keys[0] == first, "keys were changed");
    remove_trees();
    status = hsort_sort(ctx, HSORT_U64, HSORT_DESCENDING, keys, KEYS, NULL);
    CHECK(status == HSORT_OK, "with all of the machine: %s", hsort_last_error(ctx));
    free(keys);
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "comm_open: %s", status_text());
    if (comm.node_size != comm.size) {
        comm_close(&comm);
        return ranks_skip("the ranks are not on one node");
    }
    test_machine();
    test_parent();
    test_own_limits();
    test_sort_of_all();
    comm_close(&comm);
    return ranks_finish();
}
