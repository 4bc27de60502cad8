#include "src/command/launch.h"
#include "src/command/report.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "kernels/base/checksum.h"
#include "kernels/base/host_cores.h"
#include "src/files/read_ahead.h"

/* Names under which launchers say how many tasks they started, and which task this is. */
static const struct {
    const char *tasks, *task;
} launchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"PMI_SIZE", "PMI_RANK"},
    {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

bool launch_is_launched(void)
{
    // For each launcher, one of the variables that it sets in every task.
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_RANK",    "PMIX_RANK",
                                        "SLURM_PROCID",         "PALS_RANKID", "FLUX_TASK_RANK",
                                        "JSM_NAMESPACE_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return true;
    return false;
}

/* What the launcher says: the variable that tells how many tasks there are, or NULL; then also how many, and which task this is, or -1. */
static const char *ask_launcher(int *tasks, int *task)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *count = getenv(launchers[i].tasks), *number = getenv(launchers[i].task);
        if (!count)
            continue;
        *tasks = atoi(count);
        *task = number ? atoi(number) : -1;
        return launchers[i].tasks;
    }
    return NULL;
}

hsort_status launch_check(int size, int *task)
{
    int tasks, number;
    *task = 0;
    const char *variable = size > 1 ? NULL : ask_launcher(&tasks, &number);
    if (!variable || tasks <= 1)
        return HSORT_OK;
    *task = number < 0 ? 0 : number;
    return status_fail(
        HSORT_LAUNCH,
        "started as %d tasks (%s), but each is alone in its MPI: use the launcher of the MPI this "
        "was built with, or srun --mpi=pmix",
        tasks, variable);
}

void launch_read_ahead(const struct cli_options *options)
{
    // What a fast disk brings meanwhile. Not more, because it pushes out of the page cache what others use.
    const int64_t most = (int64_t)1 << 30;
    const bool reads = options->command == CLI_SORT || options->command == CLI_CHECK;
    int tasks = 1, task = 0;
    if (!reads || options->direct_io == HSORT_CHOICE_ON ||
        (!ask_launcher(&tasks, &task) && launch_is_launched()))
        return;
    // A lone core has enough to do with starting MPI.
    if (omp_get_num_procs() > 1)
        read_ahead_start(options->files, options->files_count, task, tasks, most);
}

/* Compare the command of this rank, which was parsed with success, with that of rank 0. */
static hsort_status compare_with_rank_0(const struct cli_options *options, const uint64_t *mine,
                                        const uint64_t *first)
{
    char name[CLI_DIGEST_NAME];
    if (mine[CLI_DIGESTS] != first[CLI_DIGESTS])
        return status_fail(HSORT_ARGUMENT, "runs another build of hypersort than rank 0");
    for (int place = 0; place < CLI_DIGESTS; place++)
        if (mine[place] != first[place])
            return status_fail(HSORT_ARGUMENT,
                               "%s is not that of rank 0: all ranks of a run must be given the same command",
                               cli_digest_name(options, place, name));
    return HSORT_OK;
}

static uint64_t text_checksum(const char *text)
{
    return checksum_add(CHECKSUM_START, text, strlen(text));
}

hsort_status launch_agree(struct comm *comm, const struct cli_options *options, hsort_status parsed)
{
    uint64_t digest[CLI_DIGESTS + 1], first[CLI_DIGESTS + 1];
    cli_digest(options, digest);
    digest[CLI_DIGESTS] = text_checksum(hsort_build_info());
    uint64_t all = checksum_add(text_checksum(status_text()), &parsed, sizeof parsed);
    all = checksum_add(all, digest, sizeof digest);
    const uint64_t mine[2] = {all, ~all};
    uint64_t greatest[2];
    TRY_MPI(MPI_Allreduce(mine, greatest, 2, MPI_UINT64_T, MPI_MAX, comm->world));
    if (greatest[0] == ~greatest[1])
        return parsed == HSORT_OK ? HSORT_OK : report_fail(comm, parsed, "%s", status_text());

    memcpy(first, digest, sizeof first);
    TRY_MPI(MPI_Bcast(first, CLI_DIGESTS + 1, MPI_UINT64_T, 0, comm->world));
    return comm_agree(comm, parsed == HSORT_OK ? compare_with_rank_0(options, digest, first) : parsed);
}

/* True if every rank comes here within ten seconds. After an MPI failure this tells two cases apart: all ranks know of the failure and
 * can end in good order, or some may wait for others for ever. Collective. */
static bool come_together(struct comm *comm)
{
    const double patience_seconds = 10;
    const struct timespec nap = {.tv_nsec = 1000000};
    const double start = MPI_Wtime();
    MPI_Request request;
    int arrived = 0;
    if (MPI_Ibarrier(comm->world, &request) != MPI_SUCCESS)
        return false;
    while (MPI_Test(&request, &arrived, MPI_STATUS_IGNORE) == MPI_SUCCESS && !arrived) {
        if (MPI_Wtime() - start > patience_seconds)
            return false; // the request is left behind, because only MPI_Abort() follows
        nanosleep(&nap, NULL);
    }
    return arrived;
}

/* Others wait for this rank in a call that has failed here. */
static bool is_alone;

hsort_status launch_agree_late(struct comm *comm, hsort_status mine)
{
    MPI_Request request;
    if (mine == HSORT_OK && !comm_is_alone(comm)) {
        TRY_MPI(MPI_Ibarrier(comm->world, &request));
        TRY_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    is_alone = mine != HSORT_OK && !comm_is_alone(comm) && !come_together(comm);
    return is_alone ? mine : comm_agree(comm, mine);
}

bool launch_lost(struct comm *comm, hsort_status status)
{
    if (is_alone)
        return true;
    return (status == HSORT_MPI || status == HSORT_CUDA) && !come_together(comm);
}

hsort_status launch_commit(struct comm *comm, struct file_out *file, hsort_status status)
{
    return launch_commit_all(comm, &file, 1, status);
}

hsort_status launch_commit_all(struct comm *comm, struct file_out *const *files, int count,
                               hsort_status status)
{
    if (launch_lost(comm, status))
        return status;
    char error[sizeof comm->error];
    memcpy(error, comm->error, sizeof error);
    hsort_status committed = file_commit_all(comm, files, count, status);
    if (status == HSORT_OK)
        return committed;
    memcpy(comm->error, error, sizeof error);
    return status;
}

int64_t launch_share(int64_t count, int rank, int size)
{
    // count * rank / size without the product, which could overflow.
    return count / size * rank + count % size * rank / size;
}

hsort_status launch_threads(const struct comm *comm, int wanted, int *threads)
{
    const bool from_environment = wanted == 0 && getenv("OMP_NUM_THREADS");
    *threads = from_environment ? omp_get_max_threads() : wanted;
    if (*threads > threads_max())
        return status_fail(HSORT_ARGUMENT, "%s: %d threads; this machine allows at most %d",
                           from_environment ? "OMP_NUM_THREADS" : "--threads", *threads, threads_max());
    if (*threads == 0)
        *threads = omp_get_num_procs() / comm->node_size;
    if (*threads < 1)
        *threads = 1;
    omp_set_num_threads(*threads);
    return HSORT_OK;
}
