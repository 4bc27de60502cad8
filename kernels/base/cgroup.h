/* The cgroups that this process is in (Slurm, containers and systemd make them), and what their files say. A leaf: every layer may
 * include it. */
#ifndef CGROUP_H
#define CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* One of the two versions of cgroups, and what is limited. */
struct cgroup_kind {
    const char *filesystem, *controller; /* in mountinfo; in /proc/self/cgroup, "" for version 2 */
};

/* visit(user, directory) the cgroup of this process, then those above it, as far as they can be seen. Where there is no such
 * cgroup nothing is visited. Not collective.
 *   root  stands for "/", for tests: root/proc/self/cgroup, root/proc/self/mountinfo, and root/MOUNT/... for the cgroups */
void cgroup_visit(const char *root, const struct cgroup_kind *kind,
                  void (*visit)(void *user, const char *directory), void *user);

/* A file of a directory, to be read; NULL if it is not there. */
FILE *cgroup_open(const char *directory, const char *name);

/* The number that a file of a cgroup begins with; false if it is not there or holds none, as "max". Version 1 says "no limit" by
 * a number of CGROUP_NO_LIMIT or more. */
#define CGROUP_NO_LIMIT (UINT64_C(1) << 60)
bool cgroup_number(const char *directory, const char *name, uint64_t *number);

/* What stands for a cgroup, for all processes that see it; 0 for none. */
uint64_t cgroup_place(const char *directory);

#endif
