/* The scheduler's job that this command runs in, and the hosts of its ranks. Both are for people who read a report
 * or a log, and for nothing else: no decision rests on what a scheduler's environment says, because ranks and
 * users may have changed it. */
#ifndef JOB_H
#define JOB_H

#include <stdio.h>
#include "mpi/comm/comm.h"

struct job {
    const char *scheduler; /* "slurm", "pbs", "lsf", "flux"; NULL outside of a job. Static */
    char id[64];           /* as the scheduler's commands take it, for a task of an array ARRAY_TASK; "" outside of a job */
    int restarts;          /* how often Slurm has requeued it */
    int hosts;
    char (*host)[sizeof((struct comm *)0)->host]; /* [hosts] in the order of the lowest rank of each; owned */
};

/* Find what the environment says of the job. It has no hosts then, so there is nothing to close. Not collective. */
void job_find(struct job *job);

/* Find the job, and on rank 0 the hosts; other ranks have none. job_close() frees it; not after an error.
 * Collective.
 * Errors   same on every rank: HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status job_open(struct comm *comm, struct job *job);

/* Not collective. */
void job_close(struct job *job);

/* Print the first hosts, with commas between them. Not collective. */
enum { JOB_HOSTS_SHOWN = 16 };
void job_print_hosts(const struct job *job, FILE *out);

#endif
