/* hypersort sort of HDF5: find the order of the rows once, then bring each dataset by itself into that order (records_hdf5.h).
 *
 * Checks     the keys are in order, with ties by position; in each dataset each row lies where the index says. Because the index is
 *            the same for all datasets, rows are still together. An output that fails a check never gets its name
 * Rejected   rows of all datasets as records: memory would hold all of them, twice, although the datasets of a group are not needed
 *            at the same time */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/comm/node_memory.h"
#include "src/command/hdf5/hdf5_out.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records_hdf5.h"
#include "src/command/records_report.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/command/stop.h"

struct hdf5_run {
    struct comm *comm;
    const struct cli_options *options;
    hsort_context *ctx;
    struct progress progress;
    struct record_io io;
    struct hdf5_in in;
    struct hdf5_out out;
    struct record_keys keys;   /* in a row of all columns */
    struct record_keys packed; /* in a record of nothing else */
    int64_t first, count;      /* rows of this rank */
    int64_t *index;            /* [count] owned */
    int64_t carried;           /* bytes of all columns so far */
    hsort_check_result
        *written; /* [columns] what each is to hold, with its places; owned; NULL unless the output is read back */
    double read_seconds, sort_seconds, write_seconds, verify_seconds; /* of this rank */
    struct records_report report;
};

/* ---- Memory and reading: not collective ------------------------------------------------------------------------ */

static hsort_status take_rows(const struct hdf5_run *run, size_t row_bytes, void *array)
{
    void *memory = fault_hit(FAULT_ALLOC) ? NULL : malloc((size_t)run->count * row_bytes + 1);
    memcpy(array, &memory, sizeof memory);
    return memory ? HSORT_OK
                  : status_fail(HSORT_HOST_MEMORY, "%s: no memory for %" PRId64 " rows of %zu bytes",
                                run->in.files.path, run->count, row_bytes);
}

/* Check the most that a rank takes at a time: for the keys in three forms, or for a dataset before and after. */
static hsort_status check_memory(struct hdf5_run *run)
{
    size_t most = 3 * (size_t)run->keys.key_bytes;
    for (int c = 0; c < run->in.columns; c++)
        most = 2 * run->in.column[c].row_bytes > most ? 2 * run->in.column[c].row_bytes : most;
    return node_memory_check(run->comm, (most + sizeof *run->index) * (uint64_t)run->count);
}

static hsort_status read_column_rows(struct hdf5_run *run, int column, void *rows)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    trace_bytes(span, run->count * (int64_t)run->in.column[column].row_bytes);
    stop_hold(FAULT_HOLD_READ, "before the next rows are read", NULL);
    const hsort_status status =
        trace_end_with(span, hdf5_read_rows(&run->in, column, run->first, run->count, rows));
    run->read_seconds += MPI_Wtime() - start;
    return status;
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

static bool has_key(const struct hdf5_run *run, const hsort_field *field, int column)
{
    const struct hdf5_column *rows = &run->in.column[column];
    return field->offset >= rows->offset && field->offset < rows->offset + rows->row_bytes;
}

/* Copy the keys that lie in a column into records of keys alone. */
static void pack_keys(const struct hdf5_run *run, int column, const char *rows, char *records)
{
    const size_t width = run->in.column[column].row_bytes, key_bytes = (size_t)run->keys.key_bytes;
    for (int k = 0; k < run->keys.count; k++) {
        if (!has_key(run, &run->keys.fields[k], column))
            continue;
        const size_t bytes = record_field_bytes(&run->keys.fields[k]);
        const char *from = rows + run->keys.fields[k].offset - run->in.column[column].offset;
        char *to = records + run->packed.fields[k].offset;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < run->count; i++)
            memcpy(to + (size_t)i * key_bytes, from + (size_t)i * width, bytes);
    }
}

static hsort_status read_keys(struct hdf5_run *run, char *records)
{
    for (int c = 0; c < run->in.columns; c++) {
        bool wanted = false;
        for (int k = 0; k < run->keys.count; k++)
            wanted = wanted || has_key(run, &run->keys.fields[k], c);
        if (!wanted)
            continue;
        char *rows;
        TRY(take_rows(run, run->in.column[c].row_bytes, &rows));
        const hsort_status status = read_column_rows(run, c, rows);
        if (status == HSORT_OK)
            pack_keys(run, c, rows, records);
        free(rows);
        TRY(status);
    }
    return HSORT_OK;
}

/* Split records of keys into columns of one key each, one behind the other. */
static void split_keys(const struct hdf5_run *run, const char *records, char *columns, const void **column,
                       hsort_field *fields)
{
    const size_t key_bytes = (size_t)run->keys.key_bytes;
    for (int k = 0; k < run->packed.count; k++) {
        fields[k] = run->packed.fields[k];
        fields[k].offset = 0;
        const size_t bytes = record_field_bytes(&fields[k]);
        const char *from = records + run->packed.fields[k].offset;
        char *to = columns;
        column[k] = to;
        columns += bytes * (size_t)run->count;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < run->count; i++)
            memcpy(to + (size_t)i * bytes, from + (size_t)i * key_bytes, bytes);
    }
}

/* ---- The library: collective ---------------------------------------------------------------------------------------- */

static hsort_status keep_call(struct hdf5_run *run, hsort_status status, double start)
{
    run->sort_seconds += MPI_Wtime() - start;
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    status_clear();
    return records_report_add(&run->report, run->ctx);
}

static hsort_status gather_rows(struct hdf5_run *run, const void *rows, size_t row_bytes, void *sorted)
{
    const double start = MPI_Wtime();
    return keep_call(
        run, hsort_gather(run->ctx, rows, run->count, row_bytes, run->index, sorted, run->count, NULL),
        start);
}

/* ---- Checks: collective ----------------------------------------------------------------------------------------------- */

/* Find what rows [count] and their places are like; keys: for records of keys, whose order is looked at, or NULL. */
static hsort_status look_at_rows(struct hdf5_run *run, const struct record_keys *keys, const void *rows,
                                 size_t row_bytes, const int64_t *index, hsort_check_result *result)
{
    struct verifier verifier;
    struct engine_elements elements = record_keys_elements(keys, rows, row_bytes, run->first, run->count);
    const double start = MPI_Wtime();
    elements.index = index;
    verify_start(&verifier, elements.field[0].map);
    struct trace_span *span = trace_begin(run->comm->trace, "look at rows");
    const hsort_status status =
        trace_end_with(span, verify_add_elements(&verifier, run->io.engine, &elements));
    TRY(comm_agree(run->comm, status));
    TRY(verify_finish(&verifier, run->comm, result));
    run->verify_seconds += MPI_Wtime() - start;
    return HSORT_OK;
}

static bool same_places(const hsort_check_result *before, const hsort_check_result *after)
{
    return before->count == after->count && memcmp(before->placed_fingerprint, after->placed_fingerprint,
                                                   sizeof after->placed_fingerprint) == 0;
}

/* Check that the index brings the keys in order, and holds every row once. */
static hsort_status check_order(struct hdf5_run *run, const char *records)
{
    const size_t key_bytes = (size_t)run->keys.key_bytes;
    struct records_report *report = &run->report;
    hsort_check_result before, after;
    char *sorted = NULL;
    hsort_status status = comm_agree(run->comm, take_rows(run, key_bytes, &sorted));
    if (status == HSORT_OK)
        status = look_at_rows(run, NULL, records, key_bytes, NULL, &before);
    if (status == HSORT_OK)
        status = gather_rows(run, records, key_bytes, sorted);
    if (status == HSORT_OK)
        status = look_at_rows(run, &run->packed, sorted, key_bytes, run->index, &after);
    free(sorted);
    TRY(status);
    report->verified = true;
    report->sorted = after.first_disorder < 0;
    report->stable = after.first_unstable < 0;
    report->count_ok = after.count == before.count && after.count == run->in.count;
    report->fingerprint_ok = same_places(&before, &after);
    if (report->sorted && report->stable && report->count_ok && report->fingerprint_ok)
        return HSORT_OK;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: the sorted keys are %s; nothing was written",
                       run->in.files.path,
                       !report->sorted   ? "not in order"
                       : !report->stable ? "not in the order of the input where they are equal"
                                         : "not those of the file");
}

static hsort_status fail_column(struct hdf5_run *run, int column, const char *what)
{
    run->report.fingerprint_ok = false;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: dataset '%.100s': %s; nothing was written",
                       run->in.files.path, run->in.column[column].name, what);
}

/* ---- The order: collective ---------------------------------------------------------------------------------------------- */

static hsort_status find_order(struct hdf5_run *run, const char *records, char *columns)
{
    const void *column[HSORT_FIELDS_MAX];
    hsort_field fields[HSORT_FIELDS_MAX];
    const double start = MPI_Wtime();
    split_keys(run, records, columns, column, fields);
    return keep_call(run,
                     hsort_argsort_columns(run->ctx, column, fields, run->packed.count, run->count,
                                           run->index, run->count, NULL),
                     start);
}

static hsort_status sort_keys_of_rows(struct hdf5_run *run)
{
    char *records = NULL, *columns = NULL;
    hsort_status status = take_rows(run, sizeof *run->index, &run->index);
    if (status == HSORT_OK)
        status = take_rows(run, (size_t)run->keys.key_bytes, &records);
    if (status == HSORT_OK)
        status = read_keys(run, records);
    if (status == HSORT_OK)
        status = take_rows(run, (size_t)run->keys.key_bytes, &columns);
    status = comm_agree(run->comm, status);
    if (status == HSORT_OK)
        status = find_order(run, records, columns);
    free(columns);
    if (status == HSORT_OK && !run->options->no_verify)
        status = check_order(run, records);
    free(records);
    return status;
}

/* ---- A dataset: collective ------------------------------------------------------------------------------------------------ */

/* Read, gather, check and write a dataset. */
static hsort_status carry_rows(struct hdf5_run *run, int column, void *rows, void *sorted)
{
    const size_t row_bytes = run->in.column[column].row_bytes;
    const bool looks = !run->options->no_verify;
    hsort_check_result before, after;
    TRY(comm_agree(run->comm, read_column_rows(run, column, rows)));
    if (looks)
        TRY(look_at_rows(run, NULL, rows, row_bytes, NULL, &before));
    TRY(gather_rows(run, rows, row_bytes, sorted));
    if (looks) {
        TRY(look_at_rows(run, NULL, sorted, row_bytes, run->index, &after));
        if (!same_places(&before, &after))
            return fail_column(run, column, "its rows are not beside what belongs to them");
    }
    if (run->written)
        TRY(look_at_rows(run, NULL, sorted, row_bytes, NULL, &run->written[column]));
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "write");
    trace_bytes(span, run->count * (int64_t)row_bytes);
    TRY(trace_end_with(span, hdf5_write_rows(&run->out, column, run->first, run->count, sorted,
                                             &run->progress, &run->carried)));
    run->write_seconds += MPI_Wtime() - start;
    return HSORT_OK;
}

static hsort_status carry_column(struct hdf5_run *run, int column)
{
    void *rows = NULL, *sorted = NULL;
    const size_t row_bytes = run->in.column[column].row_bytes;
    if (row_bytes == 0)
        return HSORT_OK;
    hsort_status status = take_rows(run, row_bytes, &rows);
    if (status == HSORT_OK)
        status = take_rows(run, row_bytes, &sorted);
    status = comm_agree(run->comm, status);
    if (status == HSORT_OK)
        status = carry_rows(run, column, rows, sorted);
    free(rows);
    free(sorted);
    return status;
}

static hsort_status reread_column(struct hdf5_run *run, int column)
{
    void *rows = NULL;
    hsort_check_result found;
    const size_t row_bytes = run->in.column[column].row_bytes;
    if (row_bytes == 0)
        return HSORT_OK;
    hsort_status status = take_rows(run, row_bytes, &rows);
    if (status == HSORT_OK)
        status = hdf5_read_back(&run->out, column, run->first, run->count, rows);
    status = comm_agree(run->comm, status);
    if (status == HSORT_OK)
        status = look_at_rows(run, NULL, rows, row_bytes, NULL, &found);
    free(rows);
    if (status == HSORT_OK && !same_places(&run->written[column], &found))
        return fail_column(run, column, "the output does not have what was written to it");
    return status;
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
    TRY(hdf5_open_in(run->comm, options->files, options->files_count, options->key, options->direct_io,
                     &run->in));
    TRY(comm_agree(run->comm, hdf5_find_keys(&run->in, options->key, order, &run->keys)));
    pack_fields(run);
    run->first = launch_share(run->in.count, run->comm->rank, run->comm->size);
    run->count = launch_share(run->in.count, run->comm->rank + 1, run->comm->size) - run->first;
    return run_trace_check(run->comm, options, &run->in.files, NULL);
}

/* Check that the node has the memory for all of the work, and take what reading back needs. */
static hsort_status prepare_run(struct hdf5_run *run)
{
    const struct cli_options *options = run->options;
    TRY(comm_agree(run->comm, check_memory(run)));
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
    hsort_status status = HSORT_OK;
    TRY(sort_keys_of_rows(run));
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
    report->exchange = report_exchange(run->ctx, report->stats.passes);
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

static hsort_status sort_all_rows(struct hdf5_run *run)
{
    TRY(prepare_run(run));
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
    struct hdf5_run run = {.comm = comm, .options = options};
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = run_sort_of_rows(&run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    record_io_close(&run.io);
    hdf5_close_in(&run.in);
    free(run.index);
    free(run.written);
    return status;
}
