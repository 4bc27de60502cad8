/* How much CPU time this process may take, and how many threads a rank may have. Containers, Kubernetes and systemd limit the time by
 * a cgroup's quota, whatever cores the process may run on. If more threads run than the quota pays for, all of them stand still at
 * once for a part of each period. A leaf: every layer may include it. */
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

/* How many threads a rank may have: 4 for each processing unit of the machine, and at least 64. OpenMP ends the process if it
 * cannot create the threads that are asked for, so a number of threads that comes from outside must be compared with this first.
 * Not collective. */
int threads_max(void);

#endif
