#include "kernels/base/host_cores.h"
#include <inttypes.h>
#include <unistd.h>
#include "kernels/base/cgroup.h"

enum { THREADS_PER_UNIT = 4, THREADS_ANYWHERE = 64 };

static void take_tighter(struct host_core_limit *limit, const char *directory, uint64_t quota,
                         uint64_t period)
{
    const uint64_t place = cgroup_place(directory);
    if (period == 0 || quota >= CGROUP_NO_LIMIT / 1000 || place == 0)
        return;
    const uint64_t thousandths = quota * 1000 / period;
    if (limit->place == 0 || thousandths < limit->thousandths)
        *limit = (struct host_core_limit){place, thousandths};
}

/* For cgroup_visit(), version 1: two files of microseconds; -1 means no quota. */
static void look_at_quota(void *limit, const char *directory)
{
    uint64_t quota, period;
    if (cgroup_number(directory, "cpu.cfs_quota_us", &quota) &&
        cgroup_number(directory, "cpu.cfs_period_us", &period))
        take_tighter(limit, directory, quota, period);
}

/* For cgroup_visit(), version 2: one file with both; "max 100000" means no quota. */
static void look_at_maximum(void *limit, const char *directory)
{
    uint64_t quota, period;
    FILE *file = cgroup_open(directory, "cpu.max");
    if (file && fscanf(file, "%" SCNu64 " %" SCNu64, &quota, &period) == 2)
        take_tighter(limit, directory, quota, period);
    if (file)
        fclose(file);
}

struct host_core_limit host_core_limit_below(const char *root)
{
    struct host_core_limit limit = {0};
    cgroup_visit(root, &(struct cgroup_kind){"cgroup", "cpu"}, look_at_quota, &limit);
    cgroup_visit(root, &(struct cgroup_kind){"cgroup2", ""}, look_at_maximum, &limit);
    return limit;
}

struct host_core_limit host_core_limit(void)
{
    return host_core_limit_below("");
}

int threads_max(void)
{
    const long units = sysconf(_SC_NPROCESSORS_CONF);
    return units * THREADS_PER_UNIT > THREADS_ANYWHERE ? (int)units * THREADS_PER_UNIT : THREADS_ANYWHERE;
}
