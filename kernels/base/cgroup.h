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

/* Call visit(user, directory) for the cgroup of this process, then for those above it, as far as they can be seen. If there is no
 * such cgroup, nothing is visited. Not collective.
 *   root  stands for "/", for tests: root/proc/self/cgroup, root/proc/self/mountinfo, and root/MOUNT/... for the cgroups */
void cgroup_visit(const char *root, const struct cgroup_kind *kind,
                  void (*visit)(void *user, const char *directory), void *user);

/* Open a file of a directory for reading; NULL if it is not there. */
FILE *cgroup_open(const char *directory, const char *name);

/* Read the number at the beginning of a cgroup's file; false if the file is not there or has no number, as with "max". In version 1
 * a number of CGROUP_NO_LIMIT or more means "no limit". */
#define CGROUP_NO_LIMIT (UINT64_C(1) << 60)
bool cgroup_number(const char *directory, const char *name, uint64_t *number);

/* A number that identifies a cgroup to all processes that see it; 0 for none. */
uint64_t cgroup_place(const char *directory);

#endif
