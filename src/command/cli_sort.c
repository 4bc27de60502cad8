/* hypersort sort: file -> engine memory of each rank -> sorted -> file.
 *
 *     open input    all ranks know count and type         nothing to undo
 *     context       engine, GPU, cores, transport
 *     checkpoint    what an earlier run left, if any      from here on end_checkpoint() must end it
 *     open output   under a temporary name                from here on end_output() must end it
 *     sort          the library; it reads and writes by the streams of shares.h:
 *                   rank r: keys N*r/P ... N*(r+1)/P - 1, of the input and of the output
 *     verify        what the library saw of the keys behind the input and before the output; then the output's name
 *     report
 *
 * The output is opened before the work, so that a name that cannot be written costs no sort. Every local step
 * ends in an agreement: all ranks go on, or all go back.
 *
 * With --checkpoint all ranks can be asked to stop, and then keep what the next start can use (checkpoint.h):
 *
 *     asked while             they leave                kept                   the next start
 *     keys are read           before the next chunk     nothing                begins again
 *     shards are sorted       after the local sort      nothing                begins again
 *     shards are exchanged    before the first chunk    as below               as below
 *     keys are written        before the next chunk     the chunks written     sorts again, compares these, writes the others
 *
 * Sorted keys are not saved: sorting them again takes less time than writing them all, and the time until a
 * job is killed is short.
 *
 * Keys that memory does not hold go by way of the disk (disk_sort.h), which can always be stopped. */
#include "src/checkpoint/checkpoint.h"
#include "src/command/cli.h"
#include "src/command/disk_sort.h"
#include "src/command/launch.h"
#include "src/command/progress.h"
#include "src/command/record_io.h"
#include "src/command/records.h"
#include "src/command/records_hdf5.h"
#include "src/command/report.h"
#include "src/command/shares.h"
#include "src/command/stop.h"
#include <stdlib.h>
#include <string.h>

struct sort_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_order order;
    hsort_context *ctx;
    struct file_in in;
    struct checkpoint checkpoint; /* with --checkpoint */
    struct file_out out;
    bool on_disk; /* the sort goes by way of the disk: then `disk` has the checkpoint and the output, and the two above are not used */
    struct disk_sort disk;
    struct share share;
    struct stream_check check; /* of the keys, before and after */
    struct progress progress;
    double commit_seconds; /* of this rank */
    struct sort_report report;
};

/* Does a sort in memory have a checkpoint? A file per rank has one only by way of the disk, and so not if there are no keys at all. */
static bool has_checkpoint(const struct cli_options *options)
{
    return options->checkpoint && !file_is_pattern(options->output);
}

/* Keep the library's error line: it is the same on every rank. */
static hsort_status from_library(const struct sort_run *run, hsort_status status)
{
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    status_clear(); // if one way failed and another one worked, the first is no cause of a later failure
    return HSORT_OK;
}

/* ---- Checks: collective -------------------------------------------------------------------------------- */

/* Compare what was checked before and after the sort. The count must also be the file's. */
static hsort_status compare_checks(struct sort_run *run)
{
    const hsort_check_result *before = &run->check.before, *after = &run->check.after;
    struct sort_report *report = &run->report;
    report->verified = true;
    report->sorted = after->first_disorder < 0;
    report->count_ok = after->count == before->count && after->count == run->in.count;
    report->fingerprint_ok = memcmp(after->fingerprint, before->fingerprint, sizeof after->fingerprint) == 0;
    if (report->sorted && report->count_ok && report->fingerprint_ok)
        return HSORT_OK;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: the sorted keys are %s%s; %s was not written",
                       run->in.path, !report->sorted ? "not in order" : "not those of the file",
                       report->kept.resumed || run->disk.checkpoint.found ? REPORT_MAY_BE_DAMAGED : "",
                       run->options->output);
}

/* Check the keys that passed, and with --verify=reread the keys that the output holds. */
static hsort_status verify_output(struct sort_run *run)
{
    struct share *share = &run->share;
    TRY(compare_checks(run));
    if (run->options->verify != CLI_VERIFY_REREAD)
        return HSORT_OK;
    const hsort_status status =
        check_stream(run->ctx, run->in.type, run->order, &share->reread, share->count, &run->check.after);
    if (status == HSORT_STOPPED)
        return status;
    TRY(from_library(run, status));
    return compare_checks(run);
}

/* ---- Stopping: collective ------------------------------------------------------------------------------ */

/* hsort_should_stop_fn: after the local sort. Not collective. */
static int should_stop(void *unused)
{
    stop_hold(FAULT_HOLD_SORT, "after the local sort", NULL);
    return stop_is_asked(unused);
}

/* Write the line of a run that was stopped. */
static hsort_status say_stopped(const struct sort_run *run)
{
    const char *directory = run->on_disk ? run->disk.directory : run->options->checkpoint;
    return stop_say(run->comm, run->share.phase, directory,
                    run->on_disk ? disk_sort_has_made(&run->disk) : run->checkpoint.ranges > 0);
}

/* ---- Phases: collective -------------------------------------------------------------------------------- */

/* Sort from the input to the output. */
static hsort_status sort_share(struct sort_run *run)
{
    struct share *share = &run->share;
    const hsort_status status = sort_streams(
        run->ctx, run->in.type, run->order, &share->source, share->count, &share->sink, share->count,
        run->options->no_verify ? NULL : &run->check, run->on_disk ? disk_sort_store(&run->disk) : NULL);
    if (status == HSORT_STOPPED)
        return status;
    TRY(from_library(run, status));
    run->report.stats.struct_size = sizeof run->report.stats;
    TRY(from_library(run, hsort_get_stats(run->ctx, &run->report.stats)));
    return run->options->no_verify ? HSORT_OK : verify_output(run);
}

/* The same; after a stop the manifest then says what is written. */
static hsort_status sort_and_mark(struct sort_run *run)
{
    struct share *share = &run->share;
    share_set_output(share, &run->out, has_checkpoint(run->options) ? &run->checkpoint : NULL);
    const hsort_status status = sort_share(run);
    if (status == HSORT_STOPPED && share->has_written)
        TRY(checkpoint_mark(run->comm, &run->checkpoint,
                            (struct checkpoint_range){share->first, share->written}));
    return status;
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
                                       .direct_io = options->direct_io,
                                       .no_clobber = options->no_clobber};
    if (!has_checkpoint(options))
        return file_create(run->comm, &target, &run->out);
    bool kept;
    TRY(file_resume(run->comm, &target, run->checkpoint.part, &run->out, &kept));
    if (!kept)
        checkpoint_unmark(&run->checkpoint);
    return HSORT_OK;
}

/* End the output, after work that ended with `status`. If it is whole, it gets its name. Otherwise it is removed, unless the manifest
 * says that a part of it is written, by this run or by an earlier one. */
static hsort_status end_output(struct sort_run *run, hsort_status status)
{
    if (status != HSORT_OK && run->checkpoint.ranges > 0 && !launch_lost(run->comm, status)) {
        file_leave(run->comm, &run->out);
        return status;
    }
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "commit");
    status = trace_end_with(span, launch_commit(run->comm, &run->out, status));
    run->commit_seconds = MPI_Wtime() - start;
    return status;
}

static hsort_status write_output(struct sort_run *run)
{
    TRY(open_output(run));
    report_stale(run->comm, &run->out);
    return end_output(run, sort_and_mark(run));
}

static hsort_status open_checkpoint(struct sort_run *run)
{
    const struct cli_options *options = run->options;
    if (!has_checkpoint(options))
        return HSORT_OK;
    TRY(checkpoint_open(run->comm, options->checkpoint, &run->in, options->output, options->output_format,
                        run->order, NULL, &run->checkpoint));
    run->report.kept.resumed = run->checkpoint.found;
    return HSORT_OK;
}

/* Keep nothing if the output is whole, nor if the run failed and nothing is written: the manifest would then hold nothing but
 * the command itself. */
static void end_checkpoint(struct sort_run *run, hsort_status status)
{
    struct checkpoint *checkpoint = &run->checkpoint;
    if (!has_checkpoint(run->options))
        return;
    if (status == HSORT_OK ||
        (status != HSORT_STOPPED && checkpoint->ranges == 0 && !launch_lost(run->comm, status)))
        checkpoint_remove(run->comm, checkpoint);
    checkpoint_close(checkpoint);
}

/* ---- Report -------------------------------------------------------------------------------------------- */

static hsort_status slowest(struct comm *comm, double mine, double *seconds)
{
    int64_t most;
    TRY(comm_range(comm, (int64_t)(mine * 1e9), NULL, &most));
    *seconds = (double)most / 1e9;
    return HSORT_OK;
}

/* The one transport that all pairs of ranks use, or "mixed". */
static hsort_status name_transport(const struct sort_run *run, const char **name)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int peer = 0; peer < run->comm->size; peer++) {
        const int64_t path = (int64_t)hsort_path(run->ctx, peer);
        if (peer == run->comm->rank)
            continue;
        least = path < least ? path : least;
        most = path > most ? path : most;
    }
    TRY(comm_range(run->comm, least, &least, NULL));
    TRY(comm_range(run->comm, most, NULL, &most));
    *name = run->comm->size == 1 ? "none"
            : least == most      ? hsort_transport_name((hsort_transport)most)
                                 : "mixed";
    return HSORT_OK;
}

/* Gather what each rank has done; rank 0 gets it, and frees it. */
static hsort_status gather_ranks(struct sort_run *run, struct rank_report **ranks)
{
    struct rank_report own = {.read_seconds = run->share.read_seconds,
                              .write_seconds = run->share.write_seconds + run->commit_seconds,
                              .verify_seconds = run->share.reread_seconds};
    rank_report_add(&own, run->ctx);
    return rank_reports_gather(run->comm, run->ctx, &own, ranks);
}

static hsort_status print_report(struct sort_run *run)
{
    struct rank_report *per_rank;
    struct comm *comm = run->comm;
    struct sort_report *report = &run->report;
    TRY(slowest(comm, run->share.read_seconds, &report->read_seconds));
    TRY(slowest(comm, run->share.write_seconds + run->commit_seconds, &report->write_seconds));
    TRY(slowest(comm, run->share.reread_seconds, &report->verify_seconds));
    TRY(name_transport(run, &report->transport));
    if (!run->on_disk)
        TRY(comm_sum(comm, atomic_load(&run->share.kept_bytes), &report->kept.bytes));
    report->input = &run->in;
    report->output = run->options->output;
    report->type = run->in.type;
    report->order = run->order;
    report->ranks = comm->size;
    report->engine = hsort_engine_name(hsort_engine_in_use(run->ctx));
    report->exchange = report_exchange(run->ctx);
    TRY(gather_ranks(run, &per_rank));
    report->per_rank = per_rank;
    hsort_status printed = job_open(comm, &report->job);
    if (printed == HSORT_OK && comm->rank == 0)
        printed = report_sort(report, run->options->json);
    job_close(&report->job);
    free(per_rank);
    return comm_agree(comm, printed);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static hsort_status open_context(struct sort_run *run)
{
    hsort_options options = run->options->sort;
    options.progress = run->options->progress != PROGRESS_OFF ? progress_steps : NULL;
    options.progress_user = &run->progress;
    options.should_stop = should_stop;
    run_trace_options(run->options, &options);
    hsort_status status = hsort_create(run->comm->world, &options, &run->ctx);
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(NULL));
    status_clear(); // as in from_library()
    run_trace_begin(run->comm, run->ctx);
    return HSORT_OK;
}

/* Choose whether to go by way of the disk: if memory does not hold the keys, if such a sort was begun, or if the user asks for it, by --runs
 * or by a checkpoint with a file per rank, because a sort in memory has no such checkpoint. Keys of 1 and 2 bytes are counted, so memory
 * holds any number of them. */
static hsort_status choose_disk(struct sort_run *run, size_t *memory_bytes)
{
    const struct cli_options *options = run->options;
    const bool counted = hsort_type_bytes(run->in.type) < sizeof(uint32_t);
    bool needs, begun;
    TRY(disk_sort_check_runs(run->comm, options, &run->in));
    TRY(disk_sort_memory(run->comm, options, memory_bytes));
    TRY(disk_sort_begun(run->comm, options, &begun));
    TRY(from_library(run, streams_need_store(run->ctx, run->in.type, run->order, run->share.count,
                                             *memory_bytes, &needs)));
    const bool deals = options->checkpoint && file_is_pattern(options->output);
    run->on_disk = needs || (!counted && run->in.count > 0 && (begun || options->runs > 0 || deals));
    if (deals && !run->on_disk && run->in.count > 0)
        return report_fail(
            run->comm, HSORT_ARGUMENT,
            "%s: --checkpoint: a sort of keys of 1 or 2 bytes to a file per rank cannot be resumed",
            run->in.path);
    if (!run->on_disk && !options->checkpoint)
        stop_unwatch();
    return HSORT_OK;
}

static hsort_status sort_on_disk(struct sort_run *run, size_t memory_bytes)
{
    const struct record_keys keys = record_keys_bare(run->in.type, run->order);
    struct disk_deal deal;
    disk_deal_describe(run->options, &run->in, NULL, &keys, true, &deal);
    hsort_status status =
        disk_sort_open(run->comm, run->options, &deal, run->order, memory_bytes, &run->disk);
    if (status == HSORT_OK) {
        report_stale(run->comm, &run->disk.out);
        share_set_output(&run->share, &run->disk.out, NULL);
        status = sort_share(run);
    }
    if (status == HSORT_STOPPED)
        status = say_stopped(run);
    if (status == HSORT_OK)
        status =
            disk_sort_deal(&run->disk, run->options->no_verify ? NULL : &run->check.after, &run->progress);
    run->report.fingerprint_ok = run->report.fingerprint_ok && !run->disk.deal.differs;
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "commit");
    status = trace_end_with(span, disk_sort_end(&run->disk, status));
    run->commit_seconds = MPI_Wtime() - start;
    run->report.run_bytes = run->disk.run_bytes;
    run->report.kept = run->disk.kept;
    return status;
}

/* Sort from the opened input to the whole output. */
static hsort_status run_sort(struct sort_run *run)
{
    size_t memory_bytes;
    TRY(run_trace_check(run->comm, run->options, &run->in, NULL));
    TRY(open_context(run));
    TRY(choose_disk(run, &memory_bytes));
    if (run->on_disk)
        return sort_on_disk(run, memory_bytes);
    hsort_status status = open_checkpoint(run);
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
    if (hdf5_is_asked(options))
        return hdf5_sort(comm, options);
    if (options->key || options->index || options->values || options->unique)
        return records_sort(comm, options);
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    const struct file_source source = record_io_key_source(options);
    TRY(file_open(comm, &source, &run.in));
    share_open(&run.share, comm, &run.progress, &run.in);
    const hsort_status sorted = run_sort(&run);
    hsort_status status = run_trace_end(comm, options, run.ctx, sorted, &run.report.trace);
    const hsort_status printed =
        sorted == HSORT_OK || sorted == HSORT_MISMATCH ? print_report(&run) : HSORT_OK;
    if (status == HSORT_OK) // otherwise the error line of the first failure stays
        status = printed;
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    file_close(&run.in);
    return status;
}
