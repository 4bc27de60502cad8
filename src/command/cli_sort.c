/* hypersort sort: file -> host memory of each rank -> hsort_sort() -> file.
 *
 *     open input    all ranks know count and type         nothing to undo
 *     checkpoint    what an earlier run left, if any      from here on end_checkpoint() must end it
 *     context       engine, GPU, cores, transport
 *     open output   under a temporary name                from here on end_output() must end it
 *     read          rank r: keys N*r/P ... N*(r+1)/P - 1, of the input or of saved runs
 *     sort          the library; checked before and after with --verify
 *     write         the same places of the output, then its name
 *     report
 *
 * The output is opened before the work, so that a name that cannot be written costs no sort. Every local step
 * ends in an agreement: all ranks go on, or all go back.
 *
 * With --checkpoint all ranks can be asked to stop, and then keep what the next start can use (checkpoint.h):
 *
 *     asked while             they leave                kept                       the next start
 *     keys were read          before the next chunk     nothing                    reads them again
 *     shards were sorted      after the local sort      each rank's keys: RUNS     reads these, and sorts
 *     shards were exchanged   after the exchange        each rank's keys: SORTED   reads these, and finds them in order
 *     keys were written       before the next chunk     which are in the output    compares these, and writes the others
 *
 * Of a checkpoint that is as far already nothing is saved again: what a second sort costs is less than what
 * it costs to write all keys, and the time until a job is killed is short. */
#include "src/checkpoint/checkpoint.h"
#include "src/command/cli.h"
#include "src/command/launch.h"
#include "src/checkpoint/manifest.h"
#include "src/command/progress.h"
#include "src/command/report.h"
#include "src/command/shares.h"
#include "src/command/stop.h"
#include <stdio.h>
#include <string.h>

struct sort_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_order order;
    hsort_context *ctx;
    struct file_in in;
    struct checkpoint checkpoint; /* with --checkpoint */
    struct file_out out;
    struct share share;
    const char *phase;                /* of what a stop is said to be a stop */
    hsort_check_result before, after; /* of the sort, where they are known */
    struct progress progress;
    double read_seconds, write_seconds, verify_seconds; /* of this rank */
    struct sort_report report;
};

/* Keep the library's error line: it is the same on every rank. */
static hsort_status from_library(const struct sort_run *run, hsort_status status)
{
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    status_clear(); // a way that failed, where another one worked, is no cause of a later failure
    return HSORT_OK;
}

/* Do the keys come from what an earlier run saved, or from the input? */
static bool from_runs(const struct sort_run *run)
{
    return run->options->checkpoint && run->checkpoint.stage != CHECKPOINT_BEGUN;
}

/* ---- Checks: collective -------------------------------------------------------------------------------- */

static hsort_status check_keys(struct sort_run *run, hsort_check_result *result)
{
    const double start = MPI_Wtime();
    *result = (hsort_check_result){.struct_size = sizeof *result};
    hsort_status status =
        hsort_check(run->ctx, run->in.type, run->order, run->share.keys, run->share.count, NULL, result);
    run->verify_seconds += MPI_Wtime() - start;
    return from_library(run, status);
}

static bool same_fingerprint(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

/* The keys before the sort. Those of saved runs must be the ones that were saved, asked for or not; their
 * fingerprint then stands for that of the input. */
static hsort_status check_before(struct sort_run *run)
{
    const struct checkpoint *saved = &run->checkpoint;
    if (run->options->verify || from_runs(run))
        TRY(check_keys(run, &run->before));
    if (from_runs(run) &&
        (run->before.count != saved->keys || !same_fingerprint(run->before.fingerprint, saved->fingerprint)))
        return report_fail(
            run->comm, HSORT_FORMAT,
            "%s: the runs are not what was saved; remove %s/manifest to start from the beginning",
            run->options->checkpoint, run->options->checkpoint);
    return HSORT_OK;
}

/* Compare what was checked before and after the sort. The count is that of the file, too. */
static hsort_status compare_checks(struct sort_run *run)
{
    const hsort_check_result *before = &run->before, *after = &run->after;
    struct sort_report *report = &run->report;
    report->verified = true;
    report->sorted = after->first_disorder < 0;
    report->count_ok = after->count == before->count && after->count == run->in.count;
    report->fingerprint_ok = same_fingerprint(after->fingerprint, before->fingerprint);
    if (report->sorted && report->count_ok && report->fingerprint_ok)
        return HSORT_OK;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: the sorted keys are %s; %s was not written",
                       run->in.path, !report->sorted ? "not in order" : "not those of the file",
                       run->options->output);
}

/* ---- Stopping: collective ------------------------------------------------------------------------------ */

/* hsort_should_stop_fn: after the local sort. Not collective. */
static int should_stop(void *unused)
{
    (void)unused;
    stop_hold(FAULT_HOLD_SORT, "after the local sort", NULL);
    return stop_signal() != 0;
}

/* The safe point after the exchange. Errors HSORT_STOPPED, HSORT_MPI. */
static hsort_status ask_sorted(struct sort_run *run)
{
    int asked;
    stop_hold(FAULT_HOLD_SORTED, "after the exchange", NULL);
    if (!run->options->checkpoint)
        return HSORT_OK;
    TRY(stop_agree(run->comm, &asked));
    return asked ? HSORT_STOPPED : HSORT_OK;
}

/* Keep the keys as they are, unless what is kept is as far already. Errors HSORT_STOPPED if all went well. */
static hsort_status save_keys(struct sort_run *run, enum checkpoint_stage stage)
{
    if (run->checkpoint.stage >= stage)
        return HSORT_STOPPED;
    if (!run->report.verified) // else run->after is of these very keys
        TRY(check_keys(run, &run->after));
    if (run->options->verify && !same_fingerprint(run->before.fingerprint, run->after.fingerprint))
        return report_fail(run->comm, HSORT_MISMATCH,
                           "%s: the keys are no longer those of the file; nothing was saved", run->in.path);
    TRY(checkpoint_save(run->comm, &run->checkpoint, stage, run->share.keys, run->share.count,
                        run->after.fingerprint));
    return HSORT_STOPPED;
}

/* The line of a run that was stopped. */
static hsort_status say_stopped(const struct sort_run *run)
{
    int asked;
    TRY(stop_agree(run->comm, &asked));
    return report_fail(
        run->comm, HSORT_STOPPED,
        "stopped by %s while %s; %s/manifest says how far it got: the same command goes on from there",
        stop_signal_name(asked), run->phase, run->options->checkpoint);
}

/* ---- Phases: collective -------------------------------------------------------------------------------- */

static hsort_status read_keys(struct sort_run *run)
{
    const double start = MPI_Wtime();
    run->phase = "keys were read";
    const hsort_status status = share_read(&run->share, &run->in, from_runs(run) ? &run->checkpoint : NULL);
    run->read_seconds = MPI_Wtime() - start;
    return status;
}

static hsort_status sort_share(struct sort_run *run)
{
    TRY(check_before(run));
    run->phase = "shards were sorted";
    const hsort_status status =
        hsort_sort(run->ctx, run->in.type, run->order, run->share.keys, run->share.count, NULL);
    if (status == HSORT_STOPPED)
        return save_keys(run, CHECKPOINT_RUNS);
    TRY(from_library(run, status));
    run->report.stats.struct_size = sizeof run->report.stats;
    TRY(from_library(run, hsort_get_stats(run->ctx, &run->report.stats)));
    if (run->options->verify) {
        TRY(check_keys(run, &run->after));
        TRY(compare_checks(run));
    }
    run->phase = "shards were exchanged";
    const hsort_status asked = ask_sorted(run);
    return asked == HSORT_STOPPED ? save_keys(run, CHECKPOINT_SORTED) : asked;
}

static hsort_status write_keys(struct sort_run *run)
{
    const double start = MPI_Wtime();
    run->phase = "keys were written";
    const hsort_status status =
        share_write(&run->share, &run->out, run->options->checkpoint ? &run->checkpoint : NULL);
    run->write_seconds = MPI_Wtime() - start;
    if (status != HSORT_STOPPED)
        return status;
    const struct checkpoint_range written = {run->share.first, run->share.written};
    TRY(checkpoint_mark(run->comm, &run->checkpoint, written));
    return HSORT_STOPPED;
}

/* ---- The output and the checkpoint: collective --------------------------------------------------------- */

static hsort_status open_output(struct sort_run *run)
{
    const struct cli_options *options = run->options;
    const struct file_target target = {.path = options->output,
                                       .format = options->output_format,
                                       .type = run->in.type,
                                       .count = run->in.count,
                                       .first = run->share.first,
                                       .mine = run->share.count,
                                       .input = &run->in,
                                       .direct_io = options->direct_io};
    if (!options->checkpoint)
        return file_create(run->comm, &target, &run->out);
    bool kept;
    TRY(file_resume(run->comm, &target, run->checkpoint.part, &run->out, &kept));
    if (!kept)
        checkpoint_unmark(&run->checkpoint);
    return HSORT_OK;
}

/* After the work, which ended with `status`: whole it gets its name, stopped it stays where it is. After a
 * failure it goes; but not if an earlier run may have left it, for then the next start has the same use for
 * it as this one had. */
static hsort_status end_output(struct sort_run *run, hsort_status status)
{
    const bool goes_on = status != HSORT_OK && run->options->checkpoint && run->checkpoint.found;
    if (status == HSORT_STOPPED || (goes_on && !launch_lost(run->comm, status))) {
        file_leave(run->comm, &run->out);
        return status;
    }
    const double start = MPI_Wtime();
    status = launch_commit(run->comm, &run->out, status);
    run->write_seconds += MPI_Wtime() - start;
    return status;
}

static hsort_status write_output(struct sort_run *run)
{
    TRY(open_output(run));
    report_stale(run->comm, &run->out);
    hsort_status status = read_keys(run);
    if (status == HSORT_OK)
        status = sort_share(run);
    if (status == HSORT_OK)
        status = write_keys(run);
    return end_output(run, status);
}

static hsort_status open_checkpoint(struct sort_run *run)
{
    const struct cli_options *options = run->options;
    if (!options->checkpoint)
        return HSORT_OK;
    TRY(checkpoint_open(run->comm, options->checkpoint, &run->in, options->output, options->output_format,
                        run->order, &run->checkpoint));
    run->report.resumed = run->checkpoint.found ? manifest_stage_name(run->checkpoint.stage) : NULL;
    return HSORT_OK;
}

/* With the output whole nothing is kept, nor by a failed run that only began: what it would keep is the
 * command itself. */
static void end_checkpoint(struct sort_run *run, hsort_status status)
{
    struct checkpoint *checkpoint = &run->checkpoint;
    const bool empty = !checkpoint->found && checkpoint->stage == CHECKPOINT_BEGUN && checkpoint->ranges == 0;
    if (!run->options->checkpoint)
        return;
    if (status == HSORT_OK || (status != HSORT_STOPPED && empty && !launch_lost(run->comm, status)))
        checkpoint_remove(run->comm, checkpoint);
    checkpoint_close(checkpoint);
}

/* ---- Report -------------------------------------------------------------------------------------------- */

static hsort_status slowest(struct comm *comm, double mine, double *seconds)
{
    int64_t least, most;
    TRY(comm_range(comm, (int64_t)(mine * 1e9), &least, &most));
    *seconds = (double)most / 1e9;
    return HSORT_OK;
}

/* The one transport that all pairs of ranks use, or "mixed". */
static hsort_status name_transport(const struct sort_run *run, const char **name)
{
    int64_t least = INT64_MAX, most = INT64_MIN, unused;
    for (int peer = 0; peer < run->comm->size; peer++) {
        const int64_t path = (int64_t)hsort_path(run->ctx, peer);
        if (peer == run->comm->rank)
            continue;
        least = path < least ? path : least;
        most = path > most ? path : most;
    }
    TRY(comm_range(run->comm, least, &least, &unused));
    TRY(comm_range(run->comm, most, &unused, &most));
    *name = run->comm->size == 1 ? "none"
            : least == most      ? hsort_transport_name((hsort_transport)most)
                                 : "mixed";
    return HSORT_OK;
}

static hsort_status print_report(struct sort_run *run)
{
    struct comm *comm = run->comm;
    struct sort_report *report = &run->report;
    TRY(slowest(comm, run->read_seconds, &report->read_seconds));
    TRY(slowest(comm, run->write_seconds, &report->write_seconds));
    TRY(slowest(comm, run->verify_seconds, &report->verify_seconds));
    TRY(name_transport(run, &report->transport));
    TRY(comm_sum(comm, run->share.kept * (int64_t)hsort_type_bytes(run->in.type), &report->kept_bytes));
    report->input = &run->in;
    report->output = run->options->output;
    report->type = run->in.type;
    report->order = run->order;
    report->ranks = comm->size;
    report->engine = hsort_engine_name(hsort_engine_in_use(run->ctx));
    report->exchange =
        report->stats.passes == 2 ? "none" : hsort_exchange_name(hsort_exchange_in_use(run->ctx));
    TRY(job_open(comm, &report->job));
    const hsort_status printed = comm->rank == 0 ? report_sort(report, run->options->json) : HSORT_OK;
    job_close(&report->job);
    return comm_agree(comm, printed);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static hsort_status open_context(struct sort_run *run)
{
    hsort_options options = run->options->sort;
    options.progress = run->options->progress ? progress_steps : NULL;
    options.progress_user = &run->progress;
    options.should_stop = should_stop;
    hsort_status status = hsort_create(run->comm->world, &options, &run->ctx);
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(NULL));
    status_clear(); // as above
    return HSORT_OK;
}

/* From the opened input to the whole output. */
static hsort_status run_sort(struct sort_run *run)
{
    TRY(open_checkpoint(run));
    hsort_status status = open_context(run);
    if (status == HSORT_OK)
        status = write_output(run);
    if (status == HSORT_STOPPED)
        status = say_stopped(run);
    end_checkpoint(run, status);
    return status;
}

hsort_status cli_sort(struct comm *comm, const struct cli_options *options)
{
    struct sort_run run = {
        .comm = comm, .options = options, .order = options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING};
    progress_start(&run.progress, options->progress && comm->rank == 0);
    const struct file_source source = {options->files, options->files_count, options->format,
                                       options->type_given ? &options->type : NULL, options->direct_io};
    TRY(file_open(comm, &source, &run.in));
    share_open(&run.share, comm, &run.progress, run.in.type, run.in.count);
    hsort_status status = run_sort(&run);
    if (status == HSORT_OK)
        status = print_report(&run);
    else if (run.report.verified && status != HSORT_STOPPED) // what the check found; the error line stays
        print_report(&run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    share_close(&run.share);
    file_close(&run.in);
    return status;
}
