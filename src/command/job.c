#include "src/command/job.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- the job --------------------------------------------------------------------------------------------- */

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

/* Slurm numbers the tasks of an array as jobs too, but squeue and scancel speak of 4711_3. */
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
    for (char *c = job->id; *c; c++) // it stands in lines of a log
        if (iscntrl((unsigned char)*c))
            *c = '?';
}

/* ---- its hosts ------------------------------------------------------------------------------------------- */

/* job->host [size] = every rank's host, then only those of the ranks that lead their node. On rank 0.   Collective. */
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

/* ---- their abbreviation ----------------------------------------------------------------------------------
 *
 *     hosts        n08.lab  n09.lab  n10.lab  n12.lab  io  n13
 *     number         08       09       10       12     -    13      the last one before the first dot
 *     families     '-------------------------------'   '--' '---'   alike but for the number, one after the other
 *     printed      n[08-10,12].lab,io,n13
 *
 * The order is kept, since it is that of the ranks: sorted, the list would be shorter now and then, and say less. Numbers are
 * compared as digits, not by value: so n9 goes on as n10, n09 as n10 too, but never n09 as n010, and they may be of any length. */

struct name {
    const char *text;
    int number, tail; /* where the number begins, and where it ends; the same where there is none */
};

static struct name split_name(const char *text)
{
    struct name name = {.text = text, .tail = (int)strcspn(text, ".")};
    while (name.tail > 0 && !isdigit((unsigned char)text[name.tail - 1]))
        name.tail--;
    name.number = name.tail;
    while (name.number > 0 && isdigit((unsigned char)text[name.number - 1]))
        name.number--;
    return name;
}

static bool same_family(struct name a, struct name b)
{
    return a.number < a.tail && b.number < b.tail && a.number == b.number &&
           memcmp(a.text, b.text, (size_t)a.number) == 0 && strcmp(a.text + a.tail, b.text + b.tail) == 0;
}

/* Is b's number a's and one more, with as many zeros in front as it takes? Both of one family. */
static bool follows(struct name a, struct name b)
{
    char next[1 + sizeof((struct job *)0)->host[0]];
    const int digits = a.tail - a.number;
    next[0] = '0'; // where 9 becomes 10
    memcpy(next + 1, a.text + a.number, (size_t)digits);
    int at = digits;
    for (; next[at] == '9'; at--)
        next[at] = '0';
    next[at]++;
    const char *first = next[0] == '0' ? next + 1 : next;
    const int length = (int)(next + 1 + digits - first);
    return b.tail - b.number == length && memcmp(b.text + b.number, first, (size_t)length) == 0;
}

static void print_number(struct name name, FILE *out)
{
    fprintf(out, "%.*s", name.tail - name.number, name.text + name.number);
}

/* Print the numbers of hosts first .. end - 1, all of one family. */
static void print_numbers(const struct job *job, int first, int end, FILE *out)
{
    for (int host = first; host < end;) {
        const struct name from = split_name(job->host[host]);
        struct name to = from;
        for (host++; host < end && follows(to, split_name(job->host[host])); host++)
            to = split_name(job->host[host]);
        print_number(from, out);
        if (to.text != from.text) {
            fputc('-', out);
            print_number(to, out);
        }
        fputs(host < end ? "," : "", out);
    }
}

void job_print_hosts(const struct job *job, FILE *out)
{
    for (int first = 0, end; first < job->hosts; first = end) {
        const struct name name = split_name(job->host[first]);
        for (end = first + 1; end < job->hosts && same_family(name, split_name(job->host[end]));)
            end++;
        fputs(first > 0 ? "," : "", out);
        if (end - first == 1) {
            fputs(name.text, out);
            continue;
        }
        fprintf(out, "%.*s[", name.number, name.text);
        print_numbers(job, first, end, out);
        fprintf(out, "]%s", name.text + name.tail);
    }
}
