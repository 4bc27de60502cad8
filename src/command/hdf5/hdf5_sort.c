/* hypersort sort of HDF5: find the order of the rows once, then bring each dataset by itself into that order (records_hdf5.h), by parts if
 * memory does not hold the dataset before and after (gather_parts.h).
 *
 * Checks     the keys are in order, with ties by position; in each dataset each row lies where the index says. Because the index is
 *            the same for all datasets, rows are still together. An output that fails a check never gets its name
 * Rejected   rows of all datasets as records: memory would hold all of them, twice, although the datasets of a group are not needed
 *            at the same time */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "src/command/gather_parts.h"
#include "src/command/hdf5/hdf5_run.h"
#include "src/command/launch.h"
#include "src/command/records_hdf5.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/command/stop.h"

/* ---- Memory ------------------------------------------------------------------------ */

hsort_status hdf5_take_rows(const struct hdf5_run *run, int64_t count, size_t row_bytes, void *array)
{
    void *memory = fault_hit(FAULT_ALLOC) ? NULL : malloc((size_t)count * row_bytes + 1);
    memcpy(array, &memory, sizeof memory);
    return memory ? HSORT_OK
                  : status_fail(HSORT_HOST_MEMORY, "%s: no memory for %" PRId64 " rows of %zu bytes",
                                run->in.files.path, count, row_bytes);
}

int64_t hdf5_rows_at_a_time(const struct hdf5_column *column, size_t bytes)
{
    return int64_clamp((int64_t)(bytes / column->row_bytes), 1, hdf5_piece_rows(column));
}

/* ---- Reading: not collective ------------------------------------------------------------------------------------ */

hsort_status hdf5_read_column_rows(struct hdf5_run *run, int column, int64_t first, int64_t count, void *rows)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    trace_bytes(span, count * (int64_t)run->in.column[column].row_bytes);
    stop_hold(FAULT_HOLD_READ, "before the next rows are read", NULL);
    const hsort_status status = trace_end_with(span, hdf5_read_rows(&run->in, column, first, count, rows));
    run->read_seconds += MPI_Wtime() - start;
    return status;
}

/* ---- Checks: collective ----------------------------------------------------------------------------------------------- */

hsort_status hdf5_verify_rows(struct hdf5_run *run, struct verifier *verifier, const struct record_keys *keys,
                              const void *rows, size_t row_bytes, int64_t first, int64_t count,
                              const int64_t *index)
{
    struct engine_elements elements = record_keys_elements(keys, rows, row_bytes, first, count);
    const double start = MPI_Wtime();
    elements.index = index;
    struct trace_span *span = trace_begin(run->comm->trace, "look at rows");
    const hsort_status status =
        trace_end_with(span, verify_add_elements(verifier, run->io.engine, &elements));
    run->verify_seconds += MPI_Wtime() - start;
    return status;
}

bool hdf5_same_places(const hsort_check_result *before, const hsort_check_result *after)
{
    return before->count == after->count && memcmp(before->placed_fingerprint, after->placed_fingerprint,
                                                   sizeof after->placed_fingerprint) == 0;
}

static hsort_status fail_column(struct hdf5_run *run, int column, const char *what)
{
    run->report.fingerprint_ok = false;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: dataset '%.100s': %s; nothing was written",
                       run->in.files.path, run->in.column[column].name, what);
}

/* ---- A dataset: collective ------------------------------------------------------------------------------------------------ */

/* gather_parts: not collective. */
static hsort_status read_part_rows(void *user, int64_t first, int64_t count, void *rows)
{
    struct hdf5_run *run = user;
    return hdf5_read_column_rows(run, run->column, first, count, rows);
}

static hsort_status take_part_order(void *user, int64_t first, int64_t count, int64_t *index)
{
    return hdf5_read_order(user, first, count, index);
}

static hsort_status count_rows_call(void *user)
{
    struct hdf5_run *run = user;
    return records_report_add(&run->report, run->ctx);
}

/* gather_parts: collective. */
static hsort_status write_part_rows(void *user, int64_t first, int64_t count, const void *rows)
{
    struct hdf5_run *run = user;
    const size_t row_bytes = run->in.column[run->column].row_bytes;
    if (run->written)
        TRY(comm_agree(run->comm,
                       hdf5_verify_rows(run, &run->verifier, NULL, rows, row_bytes, first, count, NULL)));
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "write");
    trace_bytes(span, count * (int64_t)row_bytes);
    TRY(trace_end_with(
        span, hdf5_write_rows(&run->out, run->column, first, count, rows, &run->progress, &run->carried)));
    run->write_seconds += MPI_Wtime() - start;
    return HSORT_OK;
}

static void start_rows(struct verifier *verifier)
{
    verify_start(verifier, record_keys_elements(NULL, NULL, 0, 0, 0).field[0].map);
}

/* Read, gather, check and write a dataset. */
static hsort_status carry_column(struct hdf5_run *run, int column)
{
    char name[PATH_MAX + 128];
    struct gather_parts parts = {.comm = run->comm,
                                 .ctx = run->ctx,
                                 .in_name = name,
                                 .by_name = "the order",
                                 .total = run->in.count,
                                 .element_bytes = run->in.column[column].row_bytes,
                                 .entries = run->in.count,
                                 .index_type = HSORT_I64,
                                 .memory_bytes = run->memory_bytes,
                                 .step = greater(1, run->in.column[column].chunk_rows),
                                 .checks = !run->options->no_verify,
                                 .read = read_part_rows,
                                 .read_index = take_part_order,
                                 .write = write_part_rows,
                                 .count_call = count_rows_call,
                                 .user = run};
    if (parts.element_bytes == 0)
        return HSORT_OK;
    snprintf(name, sizeof name, "%s: dataset '%.100s'", run->in.files.path, run->in.column[column].name);
    run->column = column;
    start_rows(&run->verifier);
    const hsort_status status = gather_in_parts(&parts);
    run->sort_seconds += parts.gather_seconds;
    run->verify_seconds += parts.check_seconds;
    run->report.readings = greater(run->report.readings, parts.readings);
    run->report.fingerprint_ok = run->report.fingerprint_ok && status != HSORT_MISMATCH;
    TRY(status);
    return run->written ? verify_finish(&run->verifier, run->comm, &run->written[column]) : HSORT_OK;
}

/* Show what the output holds of a column, piece by piece, to the verifier. Not collective. */
static hsort_status reread_rows(struct hdf5_run *run, int column)
{
    const size_t row_bytes = run->in.column[column].row_bytes;
    const int64_t piece = hdf5_rows_at_a_time(&run->in.column[column], run->memory_bytes),
                  end = run->first + run->count;
    char *rows;
    hsort_status status = hdf5_take_rows(run, lesser(piece, run->count), row_bytes, &rows);
    for (int64_t at = run->first, count; at < end && status == HSORT_OK; at += count) {
        const double start = MPI_Wtime();
        count = lesser((at / piece + 1) * piece, end) - at;
        status = hdf5_read_back(&run->out, column, at, count, rows);
        run->verify_seconds += MPI_Wtime() - start;
        if (status == HSORT_OK)
            status = hdf5_verify_rows(run, &run->verifier, NULL, rows, row_bytes, at, count, NULL);
    }
    free(rows);
    return status;
}

static hsort_status reread_column(struct hdf5_run *run, int column)
{
    hsort_check_result found;
    if (run->in.column[column].row_bytes == 0)
        return HSORT_OK;
    start_rows(&run->verifier);
    TRY(comm_agree(run->comm, reread_rows(run, column)));
    TRY(verify_finish(&run->verifier, run->comm, &found));
    return hdf5_same_places(&run->written[column], &found)
               ? HSORT_OK
               : fail_column(run, column, "the output does not have what was written to it");
}

/* ---- The command: collective ------------------------------------------------------------------------------------------------ */

/* Find the keys in a record that has nothing else. */
static void pack_fields(struct hdf5_run *run)
{
    size_t offset = 0;
    run->packed = run->keys;
    for (int k = 0; k < run->packed.count; k++) {
        run->packed.fields[k].offset = offset;
        offset += record_field_bytes(&run->packed.fields[k]);
    }
}

/* Open the input, and find its keys. */
static hsort_status open_rows(struct hdf5_run *run)
{
    const struct cli_options *options = run->options;
    const hsort_order order = options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING;
    TRY(hdf5_open_in(run->comm, options->files, options->files_count, options->key, &run->in));
    TRY(comm_agree(run->comm, hdf5_find_keys(&run->in, options->key, order, &run->keys)));
    pack_fields(run);
    run->first = launch_share(run->in.count, run->comm->rank, run->comm->size);
    run->count = launch_share(run->in.count, run->comm->rank + 1, run->comm->size) - run->first;
    return run_trace_check(run->comm, options, &run->in.files, NULL);
}

/* Choose how to go about it, and take what reading back needs. */
static hsort_status prepare_run(struct hdf5_run *run)
{
    const struct cli_options *options = run->options;
    TRY(hdf5_choose_order(run));
    if (options->no_verify || options->verify != CLI_VERIFY_REREAD)
        return HSORT_OK;
    run->written = calloc((size_t)run->in.columns + 1, sizeof *run->written);
    return comm_agree(run->comm,
                      run->written ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for checks"));
}

/* Create all of the output except its rows; what else the old file holds is copied. */
static hsort_status create_hdf5_output(struct hdf5_run *run)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "create");
    const hsort_status status = trace_end_with(
        span, hdf5_create_out(run->comm, &run->in, run->options, &run->in.left, &run->progress, &run->out));
    run->write_seconds += MPI_Wtime() - start;
    return status;
}

/* Fill the output, so that it lacks only its name. */
static hsort_status fill_output(struct hdf5_run *run)
{
    hsort_status status = run->by_disk ? HSORT_OK : hdf5_find_order(run);
    for (int c = 0; c < run->in.columns && status == HSORT_OK; c++)
        status = carry_column(run, c);
    TRY(status);
    const double start = MPI_Wtime();
    TRY(comm_agree(run->comm, file_check_unchanged(&run->in.files)));
    TRY(hdf5_finish_rows(&run->out));
    run->write_seconds += MPI_Wtime() - start;
    for (int c = 0; run->written && c < run->in.columns && status == HSORT_OK; c++)
        status = reread_column(run, c);
    return status;
}

static void describe_run(struct hdf5_run *run, const char **names)
{
    const struct cli_options *options = run->options;
    struct records_report *report = &run->report;
    for (int c = 0; c < run->in.columns; c++)
        names[c] = run->in.column[c].name;
    report->work = "sort";
    report->word = options->key ? "record" : hsort_type_name(run->keys.fields[0].type);
    report->plural = options->key ? "records" : "keys";
    report->key = options->key;
    report->order = options->key ? NULL : options->reverse ? "descending" : "ascending";
    report->input = &run->in.files;
    report->other_word = "values";
    report->output = options->output;
    report->datasets = names;
    report->dataset_count = run->in.columns;
    report->left = run->in.left.length > 0 ? run->in.left.text : NULL;
    report->count = run->in.count;
    report->element_bytes = run->in.row_bytes;
    report->indexed = true;
    report->engine = hsort_engine_name(hsort_engine_in_use(run->ctx));
    report->exchange = report_exchange(run->ctx);
}

static hsort_status print_run(struct hdf5_run *run)
{
    const double own[] = {run->read_seconds, run->sort_seconds, run->write_seconds, run->verify_seconds};
    const char **names = malloc(((size_t)run->in.columns + 1) * sizeof *names);
    hsort_status status =
        comm_agree(run->comm, names ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for the report"));
    if (status == HSORT_OK) {
        describe_run(run, names);
        status = records_report_end(&run->report, run->comm, run->ctx, own, run->options->json);
    }
    free(names);
    return status;
}

/* If the order is found by way of the disk, a signal stops that, and the next start goes on with it. Once there is an output, a signal
 * removes the output, and ends the run. */
static hsort_status sort_all_rows(struct hdf5_run *run)
{
    TRY(prepare_run(run));
    if (run->by_disk) {
        TRY(hdf5_check_out(run->comm, &run->in, run->options));
        TRY(hdf5_find_order(run));
    } else {
        stop_unwatch();
    }
    hsort_status status = create_hdf5_output(run);
    if (status == HSORT_OK)
        status = fill_output(run);
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "commit");
    status = trace_end_with(span, hdf5_end_out(&run->out, status));
    run->write_seconds += MPI_Wtime() - start;
    return status;
}

static hsort_status run_sort_of_rows(struct hdf5_run *run)
{
    TRY(open_rows(run));
    hsort_status sorted = record_io_library(run->comm, run->options, &run->progress, &run->ctx, &run->io);
    if (sorted == HSORT_OK)
        sorted = sort_all_rows(run);
    const hsort_status status = run_trace_end(run->comm, run->options, run->ctx, sorted, &run->report.trace);
    const hsort_status printed = sorted == HSORT_OK || sorted == HSORT_MISMATCH ? print_run(run) : HSORT_OK;
    return status == HSORT_OK ? printed : status; // the error line of what failed first stays
}

hsort_status hdf5_sort(struct comm *comm, const struct cli_options *options)
{
    struct hdf5_run run = {.comm = comm, .options = options, .order_guard = -1};
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = run_sort_of_rows(&run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    record_io_close(&run.io);
    hdf5_end_order(&run);
    hdf5_close_in(&run.in);
    free(run.written);
    return status;
}
