/* The job and the hosts of a report: the environment of schedulers; hosts of ranks; and their abbreviation, which an
 * expander that knows nothing of how it was made must turn into the list again, name by name, in order. */
#include "src/command/job.h"
#include "tests/support/ranks.h"

enum { MOST_HOSTS = 64, NAME = sizeof((struct job *)0)->host[0], TEXT = 8192 };

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

/* ---- the abbreviation ---- */

static char names[MOST_HOSTS][NAME];

/* names [count] as job_print_hosts() prints them; text is [TEXT]. */
static void abbreviate(int count, char *text)
{
    const struct job job = {.hosts = count, .host = names};
    text[0] = '\0'; // which fmemopen() leaves out where nothing is printed
    FILE *out = fmemopen(text, TEXT, "w");
    job_print_hosts(&job, out);
    fclose(out);
}

/* What separates by commas outside of brackets, expanded as `scontrol show hostnames` does; got [MOST_HOSTS].
 * Returns how many there are. */
static int expand(const char *text, char got[][NAME])
{
    int count = 0;
    while (*text && count < MOST_HOSTS) {
        const size_t head = strcspn(text, "[,");
        if (text[head] != '[') {
            snprintf(got[count++], NAME, "%.*s", (int)head, text);
            text += head + (text[head] == ',');
            continue;
        }
        const char *at = text + head + 1, *close = strchr(at, ']');
        CHECK(close != NULL, "no ] in '%s'", text);
        if (!close)
            return count;
        const int tail = (int)strcspn(close + 1, ",");
        while (at < close && count < MOST_HOSTS) {
            const int width = (int)strcspn(at, "-,]");
            if (at[width] != '-') {
                snprintf(got[count++], NAME, "%.*s%.*s%.*s", (int)head, text, width, at, tail, close + 1);
                at += width + 1;
                continue;
            }
            char *end;
            const unsigned long long first = strtoull(at, NULL, 10),
                                     last = strtoull(at + width + 1, &end, 10);
            CHECK(last > first, "a range in '%s'", text);
            for (unsigned long long number = first; number <= last && count < MOST_HOSTS; number++)
                snprintf(got[count++], NAME, "%.*s%0*llu%.*s", (int)head, text, width, number, tail,
                         close + 1);
            at = end + 1;
        }
        text = close + 1 + tail;
        text += *text == ',';
    }
    return count;
}

/* Abbreviate names [count], and expand that again. */
static void check_expands(int count)
{
    static char text[TEXT], got[MOST_HOSTS][NAME];
    abbreviate(count, text);
    const int found = expand(text, got);
    CHECK(found == count, "%d hosts, not %d: '%s'", found, count, text);
    for (int i = 0; i < count && i < found; i++)
        CHECK(strcmp(got[i], names[i]) == 0, "host %d is %s, not %s: '%s'", i, got[i], names[i], text);
}

/* Hosts with a known abbreviation; `hosts` are separated by spaces. */
static void check_text(const char *hosts, const char *expected)
{
    char copy[TEXT], text[TEXT];
    int count = 0;
    snprintf(copy, sizeof copy, "%s", hosts);
    for (char *host = strtok(copy, " "); host; host = strtok(NULL, " "))
        snprintf(names[count++], NAME, "%s", host);
    abbreviate(count, text);
    CHECK(strcmp(text, expected) == 0, "'%s', not '%s'", text, expected);
    check_expands(count);
}

static void test_known(void)
{
    check_text("node1", "node1");
    check_text("node1 node2 node3 node4", "node[1-4]");
    check_text("node1 node2", "node[1-2]");
    check_text("node1 node3 node4 node7", "node[1,3-4,7]");
    check_text("node08 node09 node10 node11", "node[08-11]");
    check_text("node8 node9 node10 node11", "node[8-11]");
    check_text("n098 n099 n100", "n[098-100]");
    check_text("n99 n100", "n[99-100]");
    check_text("n09 n010", "n[09,010]");
    check_text("n1 n01 n001", "n[1,01,001]");
    check_text("n9 n09 n10", "n[9,09-10]");
    check_text("a1 a2 b1 b2 b3 c5", "a[1-2],b[1-3],c5");
    check_text("a1 b1 a2", "a1,b1,a2");
    check_text("node4 node3 node2", "node[4,3,2]");
    check_text("node1 node1", "node[1,1]");
    check_text("login node1 node2 head", "login,node[1-2],head");
    check_text("r1n07 r1n08 r2n07", "r1n[07-08],r2n07");
    check_text("n1.lab.example n2.lab.example n3.other", "n[1-2].lab.example,n3.other");
    check_text("gpu1-a gpu2-a gpu3-b", "gpu[1-2]-a,gpu3-b");
    check_text("10.0.0.1 10.0.0.2", "10.0.0.1,10.0.0.2");
    check_text("7 8 9 10", "[7-10]");
    check_text("n99999999999999999999999 n100000000000000000000001 m",
               "n[99999999999999999999999,100000000000000000000001],m");
}

/* Names of few prefixes, widths and tails, often one after the other, some again. */
static void test_random(uint64_t *random)
{
    static const char *const heads[] = {"node", "n", "rack1-n", ""}, *const tails[] = {"", ".lab", "-ib"};
    for (int trial = 0; trial < 20000; trial++) {
        const int count = (int)(check_random(random) % MOST_HOSTS);
        int head = 0, tail = 0, width = 1;
        unsigned number = 0;
        for (int i = 0; i < count; i++) {
            const uint64_t draw = check_random(random);
            if (i == 0 || draw % 8 == 0) {
                head = (int)(draw / 8 % 4);
                tail = (int)(draw / 32 % 3);
                width = 1 + (int)(draw / 128 % 4);
                number = (unsigned)(draw / 1024 % 120);
            }
            number += draw % 8 == 1 ? (unsigned)(draw / 2048 % 5) : 1;
            if (draw / 4096 % 16 == 0)
                snprintf(names[i], NAME, "host%s", tails[tail]);
            else
                snprintf(names[i], NAME, "%s%0*u%s", heads[head], width, number, tails[tail]);
        }
        check_expands(count);
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
    uint64_t random = ranks_seed();
    struct comm comm;
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK, "%s", status_text());
    test_hosts(&comm);
    test_environment();
    test_known();
    test_random(&random);
    comm_close(&comm);
    return ranks_finish();
}
