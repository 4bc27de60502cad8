/* How much host memory this process may still take: what the machine has available, and what the cgroups it
 * is in (Slurm, containers and systemd make them) still allow. A process that takes more is killed, not
 * refused. A leaf: every layer may include it. */
#ifndef HOST_MEMORY_H
#define HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* One limit. Processes that see the same `place` share it. */
struct host_memory_limit {
    uint64_t place;     /* 0: the machine; else stands for a cgroup */
    uint64_t available; /* bytes until it is reached */
};

enum { HOST_MEMORY_LIMITS_MAX = 16 };

#ifdef __cplusplus
extern "C" {
#endif

/* The limits of this process, the machine's first, then of its cgroup and the cgroups above it that have one.
 *   limits  [HOST_MEMORY_LIMITS_MAX] written; cgroups further up than these are left out
 * Returns how many. Page cache that the system would give back counts as available. A cgroup counts as having a
 * 64th less than it says, because page tables and small allocations are charged to it too. Not collective. */
int host_memory_limits(struct host_memory_limit *limits);

/* The same where `root` stands for "/", for tests: files are read as root/proc/meminfo,
 * root/proc/self/cgroup, root/proc/self/mountinfo, and root/MOUNT/... for the cgroups. */
int host_memory_limits_below(const char *root, struct host_memory_limit *limits);

/* Bytes that this process may still take: the smallest of its limits. Not collective. */
size_t host_memory_available(void);

#ifdef __cplusplus
}
#endif

#endif
