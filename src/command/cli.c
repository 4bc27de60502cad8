/* The command's main: starts MPI, runs one subcommand on all ranks, ends all of them with the same exit code.
 * The only place that prints an error and the only one that may call MPI_Abort(). */
#include "src/command/cli.h"
#include "src/command/launch.h"
#include "src/command/report.h"
#include "src/command/stop.h"
#include <signal.h>
#include <stdio.h>

static hsort_status run_command(struct comm *comm, const struct cli_options *options)
{
    if (options->help || options->version) {
        if (comm->rank == 0 && options->help)
            cli_print_help(options);
        else if (comm->rank == 0)
            printf("%s\n", hsort_build_info());
        return comm_agree(comm, report_flush());
    }
    switch (options->command) {
#define X(name, word, operand, required, text) \
    case name:                                 \
        return cli_##word(comm, options);
        CLI_COMMAND_LIST(X)
#undef X
    case CLI_COMMANDS:
        break;
    }
    return report_fail(comm, HSORT_INTERNAL, "no such command");
}

/* Print the error line from rank 0; from any that can no longer reach the others, which then ends the run. */
static void end_failed(struct comm *comm, hsort_status status)
{
    const char *text = comm->error[0] != '\0' ? comm->error : status_text();
    const bool lost = launch_lost(comm, status);
    if (comm->rank == 0 || lost)
        report_error(text[0] != '\0' ? text : hsort_strerror(status));
    if (lost)
        MPI_Abort(MPI_COMM_WORLD, hsort_exit_code(status));
}

int main(int argc, char **argv)
{
    int provided, rank, size, task = 0;
    struct cli_options options;
    signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of write(), to be reported as one
    const hsort_status parsed = cli_parse(argc, argv, &options);
    // Before MPI: a job may be told to stop while its ranks still look for each other.
    if (parsed == HSORT_OK && options.checkpoint)
        stop_watch();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    fault_arm(rank);

    // These fail in the same way on every rank: no word between them is needed, and none may be possible.
    hsort_status status = launch_check(size, &task);
    if (parsed != HSORT_OK) // the first failure, whose text was kept
        status = parsed;
    if (status != HSORT_OK) {
        if (rank == 0 && task == 0)
            report_error(status_text());
        MPI_Finalize();
        return hsort_exit_code(status);
    }

    struct comm comm;
    status = comm_open(MPI_COMM_WORLD, &comm);
    if (status != HSORT_OK) {
        report_error(status_text());
        MPI_Abort(MPI_COMM_WORLD, hsort_exit_code(status));
    }
    status = run_command(&comm, &options);
    if (status != HSORT_OK)
        end_failed(&comm, status);
    comm_close(&comm);
    MPI_Finalize();
    return hsort_exit_code(status);
}
