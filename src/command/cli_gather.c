/* hypersort gather: every rank reads its share of the index, and gets its share of the output (gather_parts.h). */
#include <inttypes.h>
#include <stdlib.h>
#include "kernels/base/lesser.h"
#include "src/command/disk_sort.h"
#include "src/command/gather_parts.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records_report.h"
#include "src/command/cli.h"

enum { REREAD_PARTS = 8 /* one of which is left for what is read back */ };

struct gather_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct file_in in, by;
    bool has_in, has_by;
    struct file_out out;
    int64_t by_first, by_count; /* of this rank's entries of the index */
    struct gather_parts parts;
    double read_seconds, write_seconds, verify_seconds;
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
    run->by_first = launch_share(run->by.count, rank, size);
    run->by_count = launch_share(run->by.count, rank + 1, size) - run->by_first;
    return HSORT_OK;
}

/* ---- What the parts read and write -------------------------------------------------------------------- */

/* Not collective. */
static hsort_status read_file(struct gather_run *run, const struct file_in *file, int64_t first,
                              int64_t count, void *to)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    trace_bytes(span, count * (int64_t)file->element.bytes);
    TRY(trace_end_with(span, record_io_read(&run->io, file, first, count, to)));
    run->read_seconds += MPI_Wtime() - start;
    return file_check_unchanged(file);
}

/* Reading and writing show how far they are if both are done at once; else the parts of the result do. Not collective. */
static void choose_progress(struct gather_run *run)
{
    run->io.progress = run->parts.whole ? &run->progress : NULL;
}

static hsort_status read_gathered(void *user, int64_t first, int64_t count, void *elements)
{
    struct gather_run *run = user;
    return read_file(run, &run->in, first, count, elements);
}

static hsort_status read_entries(void *user, int64_t first, int64_t count, int64_t *index)
{
    struct gather_run *run = user;
    choose_progress(run);
    return read_file(run, &run->by, first, count, index);
}

/* same = does the output have these elements? Not collective. */
static hsort_status compare_gathered(struct gather_run *run, int64_t first, int64_t count,
                                     const char *elements, bool *same)
{
    const size_t bytes = run->in.element.bytes;
    const int64_t piece = greater(1, (int64_t)(run->parts.memory_bytes / REREAD_PARTS / bytes));
    *same = true;
    for (int64_t done = 0, part; done < count && *same; done += part) {
        part = lesser(piece, count - done);
        TRY(record_io_compare(&run->io, &run->out, first + done, part, elements + (size_t)done * bytes,
                              same));
    }
    return HSORT_OK;
}

/* Check what the output holds. Collective. */
static hsort_status reread_gathered(struct gather_run *run, int64_t first, int64_t count,
                                    const void *elements)
{
    bool same;
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read output");
    hsort_status status = trace_end_with(span, compare_gathered(run, first, count, elements, &same));
    if (status == HSORT_OK && !same)
        status = status_fail(HSORT_MISMATCH, "%s: what is read back is not what was written", run->out.path);
    run->verify_seconds += MPI_Wtime() - start;
    status = comm_agree(run->comm, status);
    run->parts.elements_ok = run->parts.elements_ok && status != HSORT_MISMATCH;
    return status;
}

/* Collective. */
static hsort_status write_gathered_part(void *user, int64_t first, int64_t count, const void *elements)
{
    struct gather_run *run = user;
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "write");
    const hsort_status wrote =
        trace_end_with(span, record_io_write(&run->io, &run->out, first, count, elements));
    run->write_seconds += MPI_Wtime() - start;
    TRY(comm_agree(run->comm, wrote));
    if (!run->parts.whole)
        progress_bytes(
            &run->progress, "gather", (first - run->by_first + count) * (int64_t)run->in.element.bytes,
            run->by_count * (int64_t)run->in.element.bytes, run->by.count * (int64_t)run->in.element.bytes);
    return !run->options->no_verify && run->options->verify == CLI_VERIFY_REREAD
               ? reread_gathered(run, first, count, elements)
               : HSORT_OK;
}

/* Not collective. */
static hsort_status count_gather(void *user)
{
    struct gather_run *run = user;
    return records_report_add(&run->report, run->ctx);
}

/* ---- The work: collective ------------------------------------------------------------------------------ */

static hsort_status gather(struct gather_run *run)
{
    run->report.stats.engine = hsort_engine_in_use(run->ctx);
    run->parts = (struct gather_parts){.comm = run->comm,
                                       .ctx = run->ctx,
                                       .in_name = run->in.path,
                                       .by_name = run->by.path,
                                       .total = run->in.count,
                                       .element_bytes = run->in.element.bytes,
                                       .entries = run->by.count,
                                       .index_type = run->by.type,
                                       .step = 1,
                                       .checks = !run->options->no_verify,
                                       .read = read_gathered,
                                       .read_index = read_entries,
                                       .write = write_gathered_part,
                                       .count_call = count_gather,
                                       .user = run};
    TRY(disk_sort_memory(run->comm, run->options, &run->parts.memory_bytes));
    return gather_in_parts(&run->parts);
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
    TRY(file_create(run->comm, &target, &run->out));
    report_stale(run->comm, &run->out);
    hsort_status status = gather(run);
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "commit");
    status = trace_end_with(span, launch_commit(run->comm, &run->out, status));
    run->write_seconds += MPI_Wtime() - start;
    return status;
}

static hsort_status print_gathered(struct gather_run *run)
{
    const double own[] = {run->read_seconds, run->parts.gather_seconds, run->write_seconds,
                          run->verify_seconds + run->parts.check_seconds};
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
                                    .readings = run->parts.readings,
                                    .verified = run->parts.checks,
                                    .fingerprint_ok = run->parts.elements_ok,
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
    return status;
}
