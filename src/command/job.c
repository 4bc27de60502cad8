#include "src/command/job.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- the job ------------------------------------------------------------------------------------------- */

/* Where schedulers put the id of a job. */
static const struct {
    const char *scheduler, *variable;
} schedulers[] = {
    {"slurm", "SLURM_JOB_ID"},
    {"pbs", "PBS_JOBID"},
    {"lsf", "LSB_JOBID"},
    {"flux", "FLUX_JOB_ID"},
};

/* The value of an environment variable, or NULL where it is missing or empty. */
static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* Slurm also numbers the tasks of an array as jobs, but squeue and scancel speak of 4711_3. */
static void find_slurm(struct job *job)
{
    const char *array = value_of("SLURM_ARRAY_JOB_ID"), *task = value_of("SLURM_ARRAY_TASK_ID");
    const char *restarts = value_of("SLURM_RESTART_COUNT");
    if (array && task)
        snprintf(job->id, sizeof job->id, "%.31s_%.31s", array, task);
    job->restarts = restarts && atoi(restarts) > 0 ? atoi(restarts) : 0;
}

void job_find(struct job *job)
{
    *job = (struct job){.scheduler = NULL};
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers && !job->scheduler; i++) {
        const char *id = value_of(schedulers[i].variable);
        if (!id)
            continue;
        job->scheduler = schedulers[i].scheduler;
        snprintf(job->id, sizeof job->id, "%s", id);
    }
    if (job->scheduler && strcmp(job->scheduler, "slurm") == 0)
        find_slurm(job);
    for (char *c = job->id; *c; c++) // the id appears in lines of a log
        if (iscntrl((unsigned char)*c))
            *c = '?';
}

/* ---- its hosts ----------------------------------------------------------------------------------------- */

/* job->host [size] = every rank's host; then only the hosts of the ranks that lead their node stay. On rank 0.
 * Collective. */
static hsort_status gather_hosts(struct comm *comm, int64_t *leaders, struct job *job)
{
    TRY(comm_leaders(comm, leaders));
    TRY_MPI(MPI_Gather(comm->host, sizeof comm->host, MPI_CHAR, job->host, sizeof comm->host, MPI_CHAR, 0,
                       comm->world));
    for (int rank = 0; comm->rank == 0 && rank < comm->size; rank++)
        if (leaders[rank] == rank)
            memmove(job->host[job->hosts++], job->host[rank], sizeof *job->host);
    return HSORT_OK;
}

hsort_status job_open(struct comm *comm, struct job *job)
{
    job_find(job);
    const size_t size = (size_t)comm->size;
    int64_t *leaders = calloc(size, sizeof *leaders);
    job->host = calloc(comm->rank == 0 ? size : 1, sizeof *job->host);
    hsort_status status = comm_agree(
        comm, leaders && job->host
                  ? HSORT_OK
                  : status_fail(HSORT_HOST_MEMORY, "no memory for the hosts of %d ranks", comm->size));
    if (status == HSORT_OK)
        status = gather_hosts(comm, leaders, job);
    free(leaders);
    if (status != HSORT_OK)
        job_close(job);
    return status;
}

void job_close(struct job *job)
{
    free(job->host);
    job->host = NULL;
    job->hosts = 0;
}

void job_print_hosts(const struct job *job, FILE *out)
{
    for (int host = 0; host < job->hosts && host < JOB_HOSTS_SHOWN; host++)
        fprintf(out, "%s%s", host > 0 ? "," : "", job->host[host]);
    fputs(job->hosts > JOB_HOSTS_SHOWN ? ", ..." : "", out);
}
