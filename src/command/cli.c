/* The command's main: starts MPI, runs one subcommand on all ranks, and ends all of them with the same exit code.
 * It is the only place that prints an error, and the only place that may call MPI_Abort(). */
#include "src/command/cli.h"
#include "src/command/launch.h"
#include "src/command/records_hdf5.h"
#include "src/command/report.h"
#include "src/command/stop.h"
#include "src/files/hdf5_place.h"
#include "src/files/read_ahead.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* --help or --version, on one rank. */
static hsort_status print_help_or_version(const struct cli_options *options)
{
    if (options->help)
        cli_print_help(options);
    else
        printf("%s\n", report_build());
    return report_flush();
}

/* Is there no file of this name? It is one file of all ranks, and a % in its name is only a %. Not collective. */
static hsort_status check_absent_as_is(const char *path)
{
    char name[PATH_MAX];
    TRY(file_name_as_is(path, name));
    return file_check_absent(name, 0);
}

/* Is there no file where an output of a rank goes, or, for HDF5, at the name of the file that is to hold it? Not collective. */
static hsort_status check_output_absent(const struct cli_options *options, const char *output, int rank)
{
    struct hdf5_place place;
    if (output != options->output || !hdf5_is_asked(options))
        return file_check_absent(output, rank);
    TRY(hdf5_place_parse(output, &place));
    return file_check_absent(place.file, rank);
}

/* --no-clobber: no output may exist before the work begins. A file that appears later is found by file_commit(). Collective. */
static hsort_status check_clobber(struct comm *comm, const struct cli_options *options)
{
    const bool draws = options->command == CLI_REPORT;
    const char *const outputs[] = {draws ? NULL : options->output, options->values_output, options->index,
                                   options->counts};
    const char *as_is = draws ? options->output : options->trace;
    hsort_status status = comm->rank == 0 && as_is ? check_absent_as_is(as_is) : HSORT_OK;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && status == HSORT_OK; i++)
        if (outputs[i] && (comm->rank == 0 || file_is_pattern(outputs[i])))
            status = check_output_absent(options, outputs[i], comm->rank);
    return comm_agree(comm, status);
}

static hsort_status run_command(struct comm *comm, const struct cli_options *options)
{
    if (options->help || options->version)
        return comm_agree(comm, comm->rank == 0 ? print_help_or_version(options) : HSORT_OK);
    if (options->no_clobber)
        TRY(check_clobber(comm, options));
    if (options->quiet)
        (void)!freopen("/dev/null", "w", stdout); // if this fails, the report fails too, and says so
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

/* Print the error line from rank 0; also from any rank that can no longer reach the others, and such a rank ends the run. */
static void end_failed(struct comm *comm, hsort_status status)
{
    const char *text = comm->error[0] != '\0' ? comm->error : status_text();
    const bool lost = launch_lost(comm, status);
    if (comm->rank == 0 || lost)
        report_error(text[0] != '\0' ? text : hsort_strerror(status));
    if (lost)
        MPI_Abort(MPI_COMM_WORLD, hsort_exit_code(status));
}

/* Open descriptors 0, 1 and 2 if they are closed. Otherwise the next file or socket of MPI would get one of them, and be read
 * or written as if it were standard input or output. Output that goes nowhere is an error: /dev/full has no room. */
static void open_standard_files(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        int opened = open(fd == STDOUT_FILENO ? "/dev/full" : "/dev/null", O_RDWR);
        if (opened < 0)
            opened = open("/dev/null", O_RDWR);
        if (opened != fd)
            return; // there is no way to report it
    }
}

/* Is it a sort that a signal is to stop and not to kill? If such a sort then needs no disk, it calls stop_unwatch(). */
static bool may_be_resumed(const struct cli_options *options)
{
    return options->checkpoint ||
           (options->command == CLI_SORT && (options->memory_size || options->runs > 0));
}

/* Finish everything that needs no MPI, because MPI may not start without a launcher: texts, and a command line that is wrong. */
static int finish_without_mpi(hsort_status parsed, const struct cli_options *options)
{
    const hsort_status status = parsed == HSORT_OK ? print_help_or_version(options) : parsed;
    if (status != HSORT_OK)
        report_error(status_text());
    return hsort_exit_code(status);
}

/* Run the command, once MPI has started. */
static hsort_status run_ranks(const struct cli_options *options, hsort_status parsed)
{
    struct comm comm;
    hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    if (status != HSORT_OK) {
        report_error(status_text());
        MPI_Abort(MPI_COMM_WORLD, hsort_exit_code(status));
    }
    status = launch_agree(&comm, options, parsed);
    if (status == HSORT_OK)
        status = run_command(&comm, options);
    if (status != HSORT_OK)
        end_failed(&comm, status);
    comm_close(&comm);
    return status;
}

int main(int argc, char **argv)
{
    int provided, rank, size, task = 0;
    struct cli_options options;
    open_standard_files();
    signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of write(), to be reported as one,
    signal(SIGXFSZ, SIG_IGN); // and so is a limit on the size of files, as a full disk is
    const hsort_status parsed = cli_parse(argc, argv, &options);
    const bool alone = !launch_is_launched() || options.page != CLI_NO_PAGE; // pages: a build may run in a job
    if (alone && (parsed != HSORT_OK || options.help || options.version))
        return finish_without_mpi(parsed, &options);
    // Before MPI, because a job may be told to stop while its ranks still look for each other.
    if (parsed == HSORT_OK && may_be_resumed(&options))
        stop_watch();
    if (parsed == HSORT_OK && hdf5_is_asked(&options))
        hdf5_start();
    else if (parsed == HSORT_OK)
        launch_read_ahead(&options);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    fault_arm(rank);

    hsort_status status = launch_check(size, &task);
    if (status == HSORT_OK) {
        status = run_ranks(&options, parsed);
    } else {
        // Every rank is alone, and none can ask the others: task 0 reports the first failure for all.
        if (task == 0)
            report_error(status_text());
        status = parsed != HSORT_OK ? parsed : status;
    }
    MPI_Finalize();
    read_ahead_end();
    return hsort_exit_code(status);
}
