/* How much CPU time this process may take: containers, Kubernetes and systemd limit it by a cgroup's quota, whatever cores it may run
 * on. More threads than that stand still for a part of each period, all of them at once. A leaf: every layer may include it. */
#ifndef HOST_CORES_H
#define HOST_CORES_H

#include <stdint.h>

/* Processes that see the same `place` share it. */
struct host_core_limit {
    uint64_t place;       /* stands for a cgroup; 0: there is no limit */
    uint64_t thousandths; /* of a core */
};

/* The tightest limit of this process, of its cgroup and those above it. Not collective. */
struct host_core_limit host_core_limit(void);

/* The same where `root` stands for "/", for tests (cgroup.h). */
struct host_core_limit host_core_limit_below(const char *root);

#endif
