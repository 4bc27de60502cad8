/* The memory that a process may still take, in made-up trees of /proc and cgroups: no cgroups, version 1 and
 * 2, limits of parents, limits that are none, mounts of a part of the hierarchy, names with blanks, files
 * that are missing or contain nonsense. */
#include "kernels/base/host_memory.h"
#include <stdarg.h>
#include <sys/stat.h>
#include "tests/support/check.h"
#include "tests/support/tree.h"

static const uint64_t MIB = 1 << 20;

/* Return what a cgroup's limit leaves of so many bytes. */
static uint64_t less_reserve(uint64_t bytes)
{
    return bytes - bytes / 64;
}

/* Make a machine with 1000 MiB, and a process in the cgroups that these texts name. */
static void make_machine(const char *cgroups, const char *mounts)
{
    tree_clear();
    tree_write("proc/meminfo", "MemTotal: 9999999 kB\nMemFree: 1 kB\nMemAvailable: %d kB\n", 1000 << 10);
    if (cgroups)
        tree_write("proc/self/cgroup", "%s", cgroups);
    if (mounts)
        tree_write("proc/self/mountinfo", "%s", mounts);
}

/* Check that the limits are these, in this order. */
static void check_limits(const char *what, int count, ...)
{
    struct host_memory_limit limits[HOST_MEMORY_LIMITS_MAX];
    const int got = host_memory_limits_below(tree_root(), limits);
    CHECK(got == count, "%s: %d limits, not %d", what, got, count);
    va_list expected;
    va_start(expected, count);
    for (int i = 0; i < count; i++) {
        const uint64_t bytes = va_arg(expected, uint64_t);
        CHECK(i >= got || limits[i].available == bytes, "%s: limit %d leaves %llu bytes, not %llu", what, i,
              (unsigned long long)limits[i].available, (unsigned long long)bytes);
        CHECK(i >= got || (limits[i].place == 0) == (i == 0), "%s: limit %d is of another place", what, i);
    }
    va_end(expected);
}

#define MOUNT_V1 "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define MOUNT_V2 "38 31 0:35 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define OTHER_MOUNTS                                          \
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"

static void test_no_cgroups(void)
{
    make_machine(NULL, NULL);
    check_limits("nothing but meminfo", 1, 1000 * MIB);
    make_machine("0::/\n", MOUNT_V2);
    check_limits("no limit file", 1, 1000 * MIB);
    make_machine("nonsense\n\n:::\n4:memory\n", "nonsense - \n - cgroup\n1 2 3 - cgroup2 x y\n");
    check_limits("nonsense", 1, 1000 * MIB);
    make_machine("5:devices:/a\n4:memory_of_another_kind:/a\n", OTHER_MOUNTS MOUNT_V1);
    tree_write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1\n");
    check_limits("another controller", 1, 1000 * MIB);
}

static void test_version_1(void)
{
    make_machine("5:cpu,cpuacct:/other\n4:blkio,memory:/job/step\n0::/\n", OTHER_MOUNTS MOUNT_V1);
    tree_write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    tree_write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "%llu\n", (unsigned long long)(700 * MIB));
    tree_write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "%llu\n", (unsigned long long)(300 * MIB));
    tree_write("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712\n");
    check_limits("of the parent", 2, 1000 * MIB, less_reserve(400 * MIB));
    tree_write("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "%llu\n",
               (unsigned long long)(512 * MIB));
    tree_write("sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", "%llu\n",
               (unsigned long long)(12 * MIB));
    check_limits("of both", 3, 1000 * MIB, less_reserve(500 * MIB), less_reserve(400 * MIB));
    // Page cache is given back, also the cache of the cgroups below. Shared memory, and what is counted for this
    // cgroup alone, are not asked for.
    tree_write(
        "sys/fs/cgroup/memory/job/memory.stat",
        "cache 999999999\ninactive_file 1\nactive_file 1\ntotal_inactive_file %llu\ntotal_active_file %llu\n",
        (unsigned long long)(100 * MIB), (unsigned long long)(50 * MIB));
    check_limits("with page cache", 3, 1000 * MIB, less_reserve(500 * MIB), less_reserve(550 * MIB));
    tree_write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "%llu\n", (unsigned long long)(900 * MIB));
    check_limits("beyond the limit", 3, 1000 * MIB, less_reserve(500 * MIB), (uint64_t)0);
}

static void test_version_2(void)
{
    make_machine("0::/\n", OTHER_MOUNTS MOUNT_V2); // as in a container
    tree_write("sys/fs/cgroup/memory.max", "%llu\n", (unsigned long long)(64 * MIB));
    check_limits("the topmost", 2, 1000 * MIB, less_reserve(64 * MIB));
    make_machine("0::/slurm/job_1/task_0\n", OTHER_MOUNTS MOUNT_V2);
    tree_write("sys/fs/cgroup/slurm/job_1/memory.max", "%llu\n", (unsigned long long)(800 * MIB));
    tree_write("sys/fs/cgroup/slurm/job_1/memory.current", "%llu\n", (unsigned long long)(300 * MIB));
    tree_write("sys/fs/cgroup/slurm/job_1/memory.stat", "anon 1\nfile 2\ninactive_file %llu\nactive_file 0\n",
               (unsigned long long)(100 * MIB));
    tree_write("sys/fs/cgroup/slurm/job_1/task_0/memory.max", "max\n");
    tree_write("sys/fs/cgroup/slurm/memory.max", "max\n");
    check_limits("version 2", 2, 1000 * MIB, less_reserve(600 * MIB));
    tree_write("sys/fs/cgroup/slurm/job_1/task_0/memory.max", "0\n");
    check_limits("a limit of 0", 3, 1000 * MIB, (uint64_t)0, less_reserve(600 * MIB));
    tree_write("sys/fs/cgroup/slurm/job_1/task_0/memory.max", "\n");
    check_limits("an empty limit", 2, 1000 * MIB, less_reserve(600 * MIB));
}

/* A container sees a part of the hierarchy in place of the whole. */
static void test_parts(void)
{
    make_machine("4:memory:/docker/abc/inner\n",
                 "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup ro,memory\n");
    tree_write("sys/fs/cgroup/memory/memory.limit_in_bytes", "%llu", (unsigned long long)(64 * MIB));
    tree_write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "%llu", (unsigned long long)(32 * MIB));
    check_limits("a part, as the host names it", 3, 1000 * MIB, less_reserve(32 * MIB),
                 less_reserve(64 * MIB));
    make_machine("4:memory:/elsewhere\n",
                 "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup ro,memory\n");
    tree_write("sys/fs/cgroup/memory/memory.limit_in_bytes", "%llu", (unsigned long long)(64 * MIB));
    check_limits("a part that does not show the cgroup", 2, 1000 * MIB, less_reserve(64 * MIB));
    make_machine("0::/../../b\n", MOUNT_V2);
    tree_write("sys/fs/cgroup/memory.max", "%llu", (unsigned long long)(64 * MIB));
    tree_write("sys/b/memory.max", "1\n"); // where "/sys/fs/cgroup/../../b" would lead
    check_limits("a cgroup outside of the namespace", 2, 1000 * MIB, less_reserve(64 * MIB));
    // Of two mounts, the one that shows the cgroup counts, not one whose root the cgroup's name only begins with.
    make_machine("4:memory:/ab/c\n", "35 31 0:32 /a /one rw - cgroup cgroup rw,memory\n"
                                     "36 31 0:32 /ab /the\\040other rw - cgroup cgroup rw,memory\n");
    tree_write("one/memory.limit_in_bytes", "1");
    tree_write("the other/c/memory.limit_in_bytes", "%llu", (unsigned long long)(32 * MIB));
    check_limits("two mounts", 2, 1000 * MIB, less_reserve(32 * MIB));
}

/* More limits than there is room for, and a line of mountinfo longer than any buffer. */
static void test_many(void)
{
    char path[512] = "sys/fs/cgroup/memory", cgroup[256] = "4:memory:", file[600];
    static char mounts[20000];
    memset(mounts, 'x', 9999);
    snprintf(mounts + 9999, 200, " - overlay o rw\n%s", MOUNT_V1);
    tree_clear();
    for (int depth = 0; depth < 2 * HOST_MEMORY_LIMITS_MAX; depth++) {
        strcat(path, "/d");
        strcat(cgroup, "/d");
    }
    make_machine(cgroup, mounts);
    for (int depth = 0; depth < 2 * HOST_MEMORY_LIMITS_MAX; depth++) {
        snprintf(file, sizeof file, "%s/memory.limit_in_bytes", path);
        tree_write(file, "%d\n", 6400 + 64 * depth);
        path[strlen(path) - 2] = '\0';
    }
    struct host_memory_limit limits[HOST_MEMORY_LIMITS_MAX + 1] = {{0}};
    limits[HOST_MEMORY_LIMITS_MAX].place = 4711;
    CHECK(host_memory_limits_below(tree_root(), limits) == HOST_MEMORY_LIMITS_MAX,
          "not as many as there is room for");
    CHECK(limits[1].available == less_reserve(6400), "the cgroup itself is not the first");
    CHECK(limits[HOST_MEMORY_LIMITS_MAX].place == 4711, "written beyond the end");
}

int main(void)
{
    tree_open();
    test_no_cgroups();
    test_version_1();
    test_version_2();
    test_parts();
    test_many();
    struct host_memory_limit limits[HOST_MEMORY_LIMITS_MAX];
    const int count = host_memory_limits(limits);
    CHECK(count >= 1 && limits[0].available >= host_memory_available() / 2, "%d limits here", count);
    CHECK(host_memory_available() > 0, "no memory here");
    tree_close();
    return check_failures > 0;
}
