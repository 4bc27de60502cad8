/* The job and the hosts in a report: the environment of schedulers; the hosts of ranks, and their list. */
#include "src/command/job.h"
#include "tests/support/ranks.h"

/* ---- the environment ---- */

/* Clear all that tells of a job, then set what `pairs` (name, value, ..., NULL) says. */
static void pretend(const char *const *pairs)
{
    static const char *const all[] = {"SLURM_JOB_ID",        "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
                                      "SLURM_RESTART_COUNT", "PBS_JOBID",          "LSB_JOBID",
                                      "FLUX_JOB_ID"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        unsetenv(all[i]);
    for (; *pairs; pairs += 2)
        setenv(pairs[0], pairs[1], 1);
}

static void check_job(const char *const *pairs, const char *scheduler, const char *id, int restarts)
{
    struct job job;
    pretend(pairs);
    job_find(&job);
    CHECK(scheduler ? job.scheduler && strcmp(job.scheduler, scheduler) == 0 : !job.scheduler, "%s: %s", id,
          job.scheduler ? job.scheduler : "none");
    CHECK(strcmp(job.id, id) == 0, "'%s', not '%s'", job.id, id);
    CHECK(job.restarts == restarts, "%s: %d restarts, not %d", id, job.restarts, restarts);
}

static void test_environment(void)
{
#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})
    char longest[201];
    memset(longest, 'j', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    check_job(ENV(NULL), NULL, "", 0);
    check_job(ENV("SLURM_JOB_ID", ""), NULL, "", 0);
    check_job(ENV("SLURM_JOB_ID", "4711"), "slurm", "4711", 0);
    check_job(ENV("SLURM_JOB_ID", "4711", "SLURM_RESTART_COUNT", "2"), "slurm", "4711", 2);
    check_job(ENV("SLURM_JOB_ID", "4711", "SLURM_RESTART_COUNT", "many"), "slurm", "4711", 0);
    check_job(ENV("SLURM_JOB_ID", "4714", "SLURM_ARRAY_JOB_ID", "4711", "SLURM_ARRAY_TASK_ID", "3"), "slurm",
              "4711_3", 0);
    check_job(ENV("SLURM_JOB_ID", "4714", "SLURM_ARRAY_TASK_ID", "3"), "slurm", "4714", 0);
    check_job(ENV("PBS_JOBID", "12[5].server"), "pbs", "12[5].server", 0);
    check_job(ENV("PBS_JOBID", "12", "SLURM_RESTART_COUNT", "2"), "pbs", "12", 0);
    check_job(ENV("LSB_JOBID", "99"), "lsf", "99", 0);
    check_job(ENV("FLUX_JOB_ID", "f2Ab"), "flux", "f2Ab", 0);
    check_job(ENV("SLURM_JOB_ID", "1\n2"), "slurm", "1?2", 0);
    check_job(ENV("SLURM_JOB_ID", longest), "slurm", longest + sizeof longest - sizeof((struct job *)0)->id,
              0);
    pretend(ENV(NULL));
#undef ENV
}

/* ---- the list of hosts ---- */

static void test_list(void)
{
    static char names[JOB_HOSTS_SHOWN + 2][sizeof((struct job *)0)->host[0]];
    for (int count = 0; count <= JOB_HOSTS_SHOWN + 2; count++) {
        struct job job = {.hosts = count, .host = names};
        char text[2048] = "", wanted[2048] = "";
        for (int host = 0; host < count; host++) {
            snprintf(names[host], sizeof *names, "node%02d.lab", host);
            if (host < JOB_HOSTS_SHOWN)
                sprintf(wanted + strlen(wanted), "%s%s", host > 0 ? "," : "", names[host]);
        }
        strcat(wanted, count > JOB_HOSTS_SHOWN ? ", ..." : "");
        FILE *out = fmemopen(text, sizeof text, "w");
        job_print_hosts(&job, out);
        fclose(out);
        CHECK(strcmp(text, wanted) == 0, "%d hosts: '%s', not '%s'", count, text, wanted);
    }
}

/* ---- the hosts of ranks ---- */

/* Ranks of one node have one host; made-up nodes of two ranks each have their leaders'. */
static void test_hosts(struct comm *comm)
{
    struct job job;
    CHECK(job_open(comm, &job) == HSORT_OK, "%s", comm->error);
    CHECK(job.hosts == (comm->rank == 0), "%d hosts", job.hosts);
    CHECK(comm->rank != 0 || strcmp(job.host[0], comm->host) == 0, "'%s'", job.host[0]);
    job_close(&job);

    struct comm pairs = *comm;
    MPI_Comm_split(comm->world, comm->rank / 2, comm->rank, &pairs.node);
    // The second rank of a node gives another name, which must not be seen.
    snprintf(pairs.host, sizeof pairs.host, "node%02d%s", comm->rank / 2, comm->rank % 2 ? "x" : "");
    CHECK(job_open(&pairs, &job) == HSORT_OK, "%s", pairs.error);
    CHECK(job.hosts == (comm->rank == 0 ? (comm->size + 1) / 2 : 0), "%d hosts", job.hosts);
    for (int host = 0; host < job.hosts; host++) {
        char expected[16];
        snprintf(expected, sizeof expected, "node%02d", host);
        CHECK(strcmp(job.host[host], expected) == 0, "host %d is '%s'", host, job.host[host]);
    }
    job_close(&job);
    MPI_Comm_free(&pairs.node);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct comm comm;
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "%s", status_text());
    test_hosts(&comm);
    test_environment();
    test_list();
    comm_close(&comm);
    return ranks_finish();
}
