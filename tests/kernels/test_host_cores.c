/* The CPU time that a process may take, in made-up trees of /proc and cgroups: of versions 1 and 2, of parents, quotas that are none,
 * files that contain nonsense. */
#include "kernels/base/host_cores.h"
#include <stdio.h>
#include "tests/support/check.h"
#include "tests/support/tree.h"

static void make_process(const char *cgroups)
{
    tree_clear();
    tree_write("proc/self/cgroup", "%s", cgroups);
    tree_write("proc/self/mountinfo", "%s",
               "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
               "38 31 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n");
}

/* Check that the limit is so many thousandths of a core; -1: there is none. Returns what stands for the limit's cgroup. */
static uint64_t check_limit(const char *what, int64_t thousandths)
{
    const struct host_core_limit limit = host_core_limit_below(tree_root());
    const int64_t got = limit.place == 0 ? -1 : (int64_t)limit.thousandths;
    CHECK(got == thousandths, "%s: %lld thousandths, not %lld", what, (long long)got, (long long)thousandths);
    return limit.place;
}

static void test_version_1(void)
{
    make_process("5:cpu,cpuacct:/pod/one\n0::/\n");
    check_limit("no files", -1);
    tree_write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    tree_write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    check_limit("no quota", -1);
    tree_write("sys/fs/cgroup/cpu/pod/cpu.cfs_quota_us", "800000\n");
    check_limit("no period", -1);
    tree_write("sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "0\n");
    check_limit("a period of 0", -1);
    tree_write("sys/fs/cgroup/cpu/pod/cpu.cfs_period_us", "100000\n");
    const uint64_t parent = check_limit("of the parent", 8000);
    tree_write("sys/fs/cgroup/cpu/pod/one/cpu.cfs_quota_us", "150000\n");
    tree_write("sys/fs/cgroup/cpu/pod/one/cpu.cfs_period_us", "100000\n");
    CHECK(check_limit("of both, the tighter one", 1500) != parent, "two cgroups are one");
    tree_write("sys/fs/cgroup/cpu/pod/one/cpu.cfs_quota_us", "900000\n");
    CHECK(check_limit("of both, the parent's", 8000) == parent, "one cgroup is two");
}

static void test_version_2(void)
{
    make_process("0::/pod/one\n");
    tree_write("sys/fs/cgroup/unified/pod/cpu.max", "max 100000\n");
    check_limit("no quota", -1);
    tree_write("sys/fs/cgroup/unified/pod/one/cpu.max", "250000 100000\n");
    check_limit("a quota", 2500);
    tree_write("sys/fs/cgroup/unified/pod/cpu.max", "50000 100000\n");
    check_limit("of the parent", 500);
    tree_write("sys/fs/cgroup/unified/pod/cpu.max", "50000\n");
    check_limit("half a line", 2500);
    tree_write("sys/fs/cgroup/unified/pod/one/cpu.max", "\n");
    check_limit("an empty file", -1);
}

int main(void)
{
    tree_open();
    test_version_1();
    test_version_2();
    const struct host_core_limit here = host_core_limit();
    printf("here: %llu thousandths of a core%s\n", (unsigned long long)here.thousandths,
           here.place ? "" : ", which is no limit");
    CHECK(here.place == 0 || here.thousandths > 0, "a limit of nothing");
    tree_close();
    return check_failures > 0;
}
