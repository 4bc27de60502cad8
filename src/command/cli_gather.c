/* hypersort gather: every rank reads its share of the elements and of the index, and gets its share of the output.
 *
 * What was gathered is checked by marks. A mark is a word made of an element and its position; marks are gathered by the same index:
 *
 *     elements   a b c     marks   a0 b1 c2      index   2 0 0      gathered   c a a      marks   c2 a0 a0
 *     made anew of what came and of the index: c2 a0 a0. A wrong or spoiled element has another mark
 *
 * Rejected: a sum over all elements, which says nothing unless the index names each element once. */
#include <inttypes.h>
#include <stdlib.h>
#include "kernels/base/element_digest.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records_report.h"
#include "src/command/cli.h"

struct gather_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct file_in in, by;
    bool has_in, has_by;
    int64_t first, count;       /* of this rank's elements */
    int64_t by_first, by_count; /* of its entries of the index */
    void *read, *gathered;
    int64_t *index;
    uint64_t *marks, *found; /* [count] of the elements; [by_count] of what the index names. Or NULL */
    double read_seconds, gather_seconds, write_seconds, verify_seconds;
    struct records_report report;
};

/* ---- Inputs -------------------------------------------------------------------------------------------- */

/* Collective. */
static hsort_status open_gathered(struct gather_run *run)
{
    const struct cli_options *options = run->options;
    const struct file_source source = record_io_source(options);
    const struct number_list index = {"an index has one", "an index is of <i8 or <u8", true};
    TRY(file_open(run->comm, &source, &run->in));
    run->has_in = true;
    if (run->in.element.bytes > CLI_RECORD_MOST)
        return report_fail(run->comm, HSORT_ARGUMENT, "%s: has elements of %zu bytes; %d can be moved",
                           run->in.path, run->in.element.bytes, CLI_RECORD_MOST);
    TRY(record_io_open_list(run->comm, options->by, options->direct_io, &index, &run->by));
    run->has_by = true;
    const int rank = run->comm->rank, size = run->comm->size;
    run->first = launch_share(run->in.count, rank, size);
    run->count = launch_share(run->in.count, rank + 1, size) - run->first;
    run->by_first = launch_share(run->by.count, rank, size);
    run->by_count = launch_share(run->by.count, rank + 1, size) - run->by_first;
    return HSORT_OK;
}

/* Not collective. */
static hsort_status take_gathered(struct gather_run *run)
{
    const size_t bytes = run->in.element.bytes;
    const size_t mark_bytes = run->options->no_verify ? 0 : sizeof *run->marks;
    TRY(node_memory_check(run->comm,
                          (uint64_t)run->count * (bytes + mark_bytes) +
                              (uint64_t)run->by_count * (bytes + mark_bytes + sizeof *run->index)));
    run->marks = malloc((size_t)run->count * mark_bytes + 1);
    run->found = malloc((size_t)run->by_count * mark_bytes + 1);
    run->read = malloc((size_t)run->count * bytes + 1);
    run->gathered = malloc((size_t)run->by_count * bytes + 1);
    run->index = malloc((size_t)run->by_count * sizeof *run->index + 1);
    return run->read && run->gathered && run->index && run->marks && run->found
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY, "%s: no memory for %" PRId64 " elements of %zu bytes",
                             run->in.path, run->count, bytes);
}

/* Every entry must name an element. Not collective. */
static hsort_status check_entries(const struct gather_run *run)
{
    for (int64_t i = 0; i < run->by_count; i++)
        if (run->index[i] < 0 || run->index[i] >= run->in.count) {
            char text[REPORT_KEY_TEXT];
            return status_fail(HSORT_ARGUMENT, "%s: entry %" PRId64 " is %s, but %s has %" PRId64 " elements",
                               run->by.path, run->by_first + i,
                               report_key_text(run->by.type, (uint64_t)run->index[i], text), run->in.path,
                               run->in.count);
        }
    return HSORT_OK;
}

static hsort_status read_both(struct gather_run *run)
{
    TRY(record_io_read(&run->io, &run->by, run->by_first, run->by_count, run->index));
    TRY(check_entries(run));
    return record_io_read(&run->io, &run->in, run->first, run->count, run->read);
}

/* Not collective. */
static hsort_status read_gathered(struct gather_run *run)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    TRY(trace_end_with(span, read_both(run)));
    run->read_seconds = MPI_Wtime() - start;
    TRY(file_check_unchanged(&run->by));
    return file_check_unchanged(&run->in);
}

/* ---- The work: collective ------------------------------------------------------------------------------ */

/* A word that an element and its position share with practically no other element and position. */
static uint64_t mark_of(const struct gather_run *run, const void *elements, int64_t i, int64_t position)
{
    const size_t bytes = run->in.element.bytes;
    uint64_t digest[2] = {0, 0}, fingerprint[2] = {0, 0}, placed[2] = {0, 0};
    digest_add_bytes((const char *)elements + (size_t)i * bytes, bytes, 0, digest);
    digest_shares(digest, position, fingerprint, placed);
    return placed[0];
}

/* Not collective. */
static hsort_status compare_marks(const struct gather_run *run)
{
    int64_t wrong = INT64_MAX;
#pragma omp parallel for schedule(static) reduction(min : wrong)
    for (int64_t i = 0; i < run->by_count; i++)
        if (i < wrong && run->found[i] != mark_of(run, run->gathered, i, run->index[i]))
            wrong = i;
    return wrong == INT64_MAX
               ? HSORT_OK
               : status_fail(HSORT_MISMATCH,
                             "%s: entry %" PRId64 " of %s has not brought element %" PRId64
                             "; nothing was written",
                             run->in.path, run->by_first + wrong, run->by.path, run->index[wrong]);
}

/* Check what was gathered. Collective. */
static hsort_status compare_gathered(struct gather_run *run)
{
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < run->count; i++)
        run->marks[i] = mark_of(run, run->read, i, run->first + i);
    const hsort_status status = hsort_gather(run->ctx, run->marks, run->count, sizeof *run->marks, run->index,
                                             run->found, run->by_count, NULL);
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    const hsort_status same = comm_agree(run->comm, compare_marks(run));
    run->report.verified = true;
    run->report.fingerprint_ok = same == HSORT_OK;
    return same;
}

/* Collective. */
static hsort_status check_gathered(struct gather_run *run)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "look at result");
    const hsort_status status = trace_end_with(span, compare_gathered(run));
    run->verify_seconds += MPI_Wtime() - start;
    return status;
}

/* Check what the output holds. Collective. */
static hsort_status reread_gathered(struct gather_run *run, const struct file_out *out)
{
    bool same = false;
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read output");
    hsort_status status = trace_end_with(
        span, record_io_compare(&run->io, out, run->by_first, run->by_count, run->gathered, &same));
    if (status == HSORT_OK && !same)
        status = status_fail(HSORT_MISMATCH, "%s: what is read back is not what was written", out->path);
    run->verify_seconds += MPI_Wtime() - start;
    status = comm_agree(run->comm, status);
    run->report.fingerprint_ok = run->report.fingerprint_ok && status != HSORT_MISMATCH;
    return status;
}

static hsort_status gather(struct gather_run *run, const struct file_out *out)
{
    TRY(comm_agree(run->comm, take_gathered(run)));
    TRY(comm_agree(run->comm, read_gathered(run)));
    const double start = MPI_Wtime();
    const hsort_status status = hsort_gather(run->ctx, run->read, run->count, run->in.element.bytes,
                                             run->index, run->gathered, run->by_count, NULL);
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    TRY(records_report_add(&run->report, run->ctx));
    run->gather_seconds = MPI_Wtime() - start;
    if (!run->options->no_verify)
        TRY(check_gathered(run));
    const double written = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "write");
    const hsort_status wrote =
        trace_end_with(span, record_io_write(&run->io, out, run->by_first, run->by_count, run->gathered));
    run->write_seconds = MPI_Wtime() - written;
    TRY(comm_agree(run->comm, wrote));
    return !run->options->no_verify && run->options->verify == CLI_VERIFY_REREAD ? reread_gathered(run, out)
                                                                                 : HSORT_OK;
}

static hsort_status write_gathered(struct gather_run *run)
{
    const struct file_target target = {.path = run->options->output,
                                       .format = run->options->output_format,
                                       .element = &run->in.element,
                                       .count = run->by.count,
                                       .first = run->by_first,
                                       .mine = run->by_count,
                                       .input = &run->in,
                                       .other_input = &run->by,
                                       .direct_io = run->options->direct_io,
                                       .no_clobber = run->options->no_clobber};
    struct file_out out;
    TRY(file_create(run->comm, &target, &out));
    report_stale(run->comm, &out);
    hsort_status status = gather(run, &out);
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "commit");
    status = trace_end_with(span, launch_commit(run->comm, &out, status));
    run->write_seconds += MPI_Wtime() - start;
    return status;
}

static hsort_status print_gathered(struct gather_run *run)
{
    const double own[] = {run->read_seconds, run->gather_seconds, run->write_seconds, run->verify_seconds};
    struct records_report report = {.word = "record",
                                    .plural = "elements",
                                    .input = &run->in,
                                    .other = &run->by,
                                    .other_word = "by",
                                    .output = run->options->output,
                                    .count = run->by.count,
                                    .element_bytes = run->in.element.bytes,
                                    .engine = hsort_engine_name(run->report.stats.engine),
                                    .gathers = true,
                                    .verified = run->report.verified,
                                    .fingerprint_ok = run->report.fingerprint_ok,
                                    .work = "gather",
                                    .stats = run->report.stats,
                                    .trace = run->report.trace,
                                    .own = run->report.own};
    return records_report_end(&report, run->comm, run->ctx, own, run->options->json);
}

static hsort_status gather_phases(struct gather_run *run)
{
    TRY(open_gathered(run));
    TRY(run_trace_check(run->comm, run->options, &run->in, &run->by));
    hsort_status gathered = record_io_library(run->comm, run->options, &run->progress, &run->ctx, &run->io);
    if (gathered == HSORT_OK)
        gathered = write_gathered(run);
    const hsort_status status =
        run_trace_end(run->comm, run->options, run->ctx, gathered, &run->report.trace);
    const hsort_status printed =
        gathered == HSORT_OK || gathered == HSORT_MISMATCH ? print_gathered(run) : HSORT_OK;
    return status == HSORT_OK ? printed : status; // the error line of what failed first stays
}

hsort_status cli_gather(struct comm *comm, const struct cli_options *options)
{
    struct gather_run run = {.comm = comm, .options = options};
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = gather_phases(&run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    record_io_close(&run.io);
    if (run.has_in)
        file_close(&run.in);
    if (run.has_by)
        file_close(&run.by);
    free(run.read);
    free(run.gathered);
    free(run.marks);
    free(run.found);
    free(run.index);
    return status;
}
