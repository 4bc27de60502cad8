/* hypersort sort: file -> host memory of each rank -> hsort_sort() -> file.
 *
 *     open input    all ranks know count and type         nothing to undo
 *     context       engine, GPU, cores, transport
 *     open output   under a temporary name                from here on launch_commit() must end it
 *     read          rank r: keys N*r/P ... N*(r+1)/P - 1
 *     sort          the library; checked before and after with --verify
 *     write         the same places of the output, then its name
 *     report
 *
 * The output is opened before the work, so that a name that cannot be written costs no sort. Every local step
 * ends in an agreement: all ranks go on, or all go back. */
#include "cli.h"
#include "launch.h"
#include "progress.h"
#include "report.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sort_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_order order;
    hsort_context *ctx;
    struct file_in in;
    struct file_out out;
    void *keys;           /* [count] of this rank */
    int64_t first, count; /* its place in both files */
    struct progress progress;
    double read_seconds, write_seconds, verify_seconds; /* of this rank */
    struct sort_report report;
};

/* Keep the library's error line: it is the same on every rank. */
static hsort_status from_library(const struct sort_run *run, hsort_status status)
{
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    status_clear(); // what the library tried in vain is no cause of a later failure
    return HSORT_OK;
}

/* ---- Local steps: not collective ----------------------------------------------------------------------- */

static hsort_status read_share(struct sort_run *run)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(run->in.type), most = CLI_PIECE_BYTES / key_bytes;
    const size_t bytes = (size_t)(run->count * key_bytes);
    run->keys = fault_hit(FAULT_ALLOC) ? NULL : malloc(bytes > 0 ? bytes : 1);
    if (!run->keys)
        return status_fail(HSORT_HOST_MEMORY, "no memory for %" PRId64 " keys, %zu bytes, of %s", run->count,
                           bytes, run->in.path);
    for (int64_t done = 0; done < run->count;) {
        const int64_t piece = run->count - done < most ? run->count - done : most;
        TRY(file_read(&run->in, run->first + done, piece, (char *)run->keys + done * key_bytes));
        done += piece;
        progress_bytes(&run->progress, "read", done, run->count, run->in.count * key_bytes);
    }
    return HSORT_OK;
}

static hsort_status write_share(struct sort_run *run)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(run->in.type), most = CLI_PIECE_BYTES / key_bytes;
    for (int64_t done = 0; done < run->count;) {
        const int64_t piece = run->count - done < most ? run->count - done : most;
        TRY(file_write(&run->out, run->first + done, piece, (const char *)run->keys + done * key_bytes));
        done += piece;
        progress_bytes(&run->progress, "write", done, run->count, run->in.count * key_bytes);
    }
    return HSORT_OK;
}

/* ---- Phases: collective -------------------------------------------------------------------------------- */

static hsort_status check_keys(struct sort_run *run, hsort_check_result *result)
{
    if (!run->options->verify)
        return HSORT_OK;
    const double start = MPI_Wtime();
    *result = (hsort_check_result){.struct_size = sizeof *result};
    hsort_status status =
        hsort_check(run->ctx, run->in.type, run->order, run->keys, run->count, NULL, result);
    run->verify_seconds += MPI_Wtime() - start;
    return from_library(run, status);
}

/* Compare what was checked before and after the sort. The count is that of the file, too. */
static hsort_status compare_checks(struct sort_run *run, const hsort_check_result *before,
                                   const hsort_check_result *after)
{
    struct sort_report *report = &run->report;
    report->verified = true;
    report->sorted = after->first_disorder < 0;
    report->count_ok = after->count == before->count && after->count == run->in.count;
    report->fingerprint_ok = memcmp(after->fingerprint, before->fingerprint, sizeof after->fingerprint) == 0;
    if (report->sorted && report->count_ok && report->fingerprint_ok)
        return HSORT_OK;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: the sorted keys are %s; %s was not written",
                       run->in.path, !report->sorted ? "not in order" : "not those of the file",
                       run->options->output);
}

static hsort_status sort_keys(struct sort_run *run)
{
    hsort_check_result before, after;
    TRY(check_keys(run, &before));
    TRY(from_library(run, hsort_sort(run->ctx, run->in.type, run->order, run->keys, run->count, NULL)));
    TRY(check_keys(run, &after));
    run->report.stats.struct_size = sizeof run->report.stats;
    TRY(from_library(run, hsort_get_stats(run->ctx, &run->report.stats)));
    return run->options->verify ? compare_checks(run, &before, &after) : HSORT_OK;
}

/* Everything between the opening of the output and its end. */
static hsort_status read_sort_write(struct sort_run *run)
{
    double start = MPI_Wtime();
    hsort_status mine = read_share(run);
    run->read_seconds = MPI_Wtime() - start;
    TRY(comm_agree(run->comm, mine));
    TRY(sort_keys(run));
    start = MPI_Wtime();
    mine = write_share(run);
    run->write_seconds = MPI_Wtime() - start;
    return comm_agree(run->comm, mine);
}

static hsort_status write_output(struct sort_run *run)
{
    const struct cli_options *options = run->options;
    TRY(file_create(run->comm, options->output, options->output_format, run->in.type, run->in.count, &run->in,
                    &run->out));
    hsort_status status = read_sort_write(run);
    const double start = MPI_Wtime();
    status = launch_commit(run->comm, &run->out, status);
    run->write_seconds += MPI_Wtime() - start;
    return status;
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
            : least == most      ? report_transport_name((hsort_transport)most)
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
    report->input = run->in.path;
    report->output = run->options->output;
    report->type = run->in.type;
    report->order = run->order;
    report->ranks = comm->size;
    report->engine = hsort_engine_in_use(run->ctx) == HSORT_ENGINE_CUDA ? "cuda" : "host";
    report->exchange = report_exchange_name(hsort_exchange_in_use(run->ctx));
    return comm_agree(comm, comm->rank == 0 ? report_sort(report, run->options->json) : HSORT_OK);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static hsort_status open_context(struct sort_run *run)
{
    hsort_options options = run->options->sort;
    options.progress = run->options->progress ? progress_steps : NULL;
    options.progress_user = &run->progress;
    hsort_status status = hsort_create(run->comm->world, &options, &run->ctx);
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(NULL));
    status_clear(); // what was tried in vain on the way to a context is no cause of a later failure
    return HSORT_OK;
}

hsort_status cli_sort(struct comm *comm, const struct cli_options *options)
{
    struct sort_run run = {
        .comm = comm, .options = options, .order = options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING};
    progress_start(&run.progress, options->progress && comm->rank == 0);
    TRY(file_open(comm, options->file, options->format, options->type_given ? &options->type : NULL,
                  &run.in));
    run.first = launch_share(run.in.count, comm->rank, comm->size);
    run.count = launch_share(run.in.count, comm->rank + 1, comm->size) - run.first;
    hsort_status status = open_context(&run);
    if (status == HSORT_OK)
        status = write_output(&run);
    if (status == HSORT_OK)
        status = print_report(&run);
    else if (run.report.verified) // the report says what the check found; the error line stays
        print_report(&run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    free(run.keys);
    file_close(&run.in);
    return status;
}
