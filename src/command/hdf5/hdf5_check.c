/* hypersort check of HDF5: every rank streams its rows through the verifier, as check of records does. A row is put together from
 * all datasets, in the order of their names, so that everything that belongs to a row has one fingerprint. */
#include <stdlib.h>
#include <string.h>
#include "mpi/comm/node_memory.h"
#include "src/command/hdf5/hdf5_in.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records_hdf5.h"
#include "src/command/records_report.h"
#include "src/command/run_trace.h"

struct hdf5_look {
    struct comm *comm;
    const struct cli_options *options;
    struct progress progress;
    struct record_io io;
    struct hdf5_in file, other;
    struct record_keys keys;
    int64_t piece;   /* rows at a time */
    char *rows;      /* [piece * row_bytes] owned */
    char *of_column; /* [piece * the longest row of a dataset] owned */
};

/* ---- Files: collective ----------------------------------------------------------------------------------------- */

/* Does the other file have the same datasets? If both inputs are single datasets, their names may differ. */
static hsort_status compare_columns(const struct hdf5_in *file, const struct hdf5_in *other)
{
    for (int i = 0; i < file->columns || i < other->columns; i++) {
        const struct hdf5_column *mine = i < file->columns ? &file->column[i] : NULL;
        const struct hdf5_column *theirs = i < other->columns ? &other->column[i] : NULL;
        const bool alone = file->is_dataset && other->is_dataset;
        const int order = !mine ? 1 : !theirs ? -1 : alone ? 0 : strcmp(mine->name, theirs->name);
        if (order != 0)
            return status_fail(
                HSORT_FORMAT,
                "%s: has dataset '%.100s', and %s has none of that name with as many rows as its keys",
                order < 0 ? file->files.path : other->files.path, order < 0 ? mine->name : theirs->name,
                order < 0 ? other->files.path : file->files.path);
        if (mine->dimensions != theirs->dimensions || mine->row_bytes != theirs->row_bytes ||
            memcmp(mine->extent, theirs->extent, (size_t)mine->dimensions * sizeof *mine->extent) != 0 ||
            H5Tequal(mine->type, theirs->type) <= 0)
            return status_fail(HSORT_FORMAT, "%s: dataset '%.100s' has another type or shape than in %s",
                               other->files.path, theirs->name, file->files.path);
    }
    return HSORT_OK;
}

static hsort_status open_looked_at(struct hdf5_look *look)
{
    const struct cli_options *options = look->options;
    const hsort_order order = options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING;
    TRY(hdf5_open_in(look->comm, options->files, options->files_count, options->key, &look->file));
    TRY(comm_agree(look->comm, hdf5_find_keys(&look->file, options->key, order, &look->keys)));
    look->file.files.element.bytes = look->file.row_bytes; // for the report
    if (options->against.count == 0)
        return HSORT_OK;
    TRY(hdf5_open_in(look->comm, options->against.text, options->against.count, options->key, &look->other));
    return comm_agree(look->comm, compare_columns(&look->file, &look->other));
}

/* Collective over the node. */
static hsort_status take_row_buffers(struct hdf5_look *look)
{
    size_t longest = 1;
    for (int c = 0; c < look->file.columns; c++)
        longest = look->file.column[c].row_bytes > longest ? look->file.column[c].row_bytes : longest;
    const size_t bytes = look->file.row_bytes + longest;
    look->piece = (int64_t)(CLI_CHUNK_BYTES / bytes) + 1;
    TRY(node_memory_check(look->comm, (uint64_t)look->piece * bytes));
    TRY(record_io_open(look->comm, look->options->sort.threads, NULL, &look->io));
    look->rows = malloc((size_t)look->piece * look->file.row_bytes + 1);
    look->of_column = malloc((size_t)look->piece * longest);
    return look->rows && look->of_column
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY, "no memory for a piece of the rows");
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------- */

/* look->rows = rows [count] from `first` on. Not collective. */
static hsort_status join_rows(struct hdf5_look *look, const struct hdf5_in *in, int64_t first, int64_t count)
{
    for (int c = 0; c < in->columns; c++) {
        const size_t bytes = in->column[c].row_bytes, width = in->row_bytes;
        char *to = look->rows + in->column[c].offset;
        struct trace_span *span = trace_begin(look->comm->trace, "read file");
        trace_bytes(span, count * (int64_t)bytes);
        TRY(trace_end_with(span, hdf5_read_rows(in, c, first, count, look->of_column)));
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * width, look->of_column + (size_t)i * bytes, bytes);
    }
    return HSORT_OK;
}

/* Not collective. */
static hsort_status add_rows(struct hdf5_look *look, const struct hdf5_in *in, struct verifier *verifier)
{
    const int64_t first = launch_share(in->count, look->comm->rank, look->comm->size);
    const int64_t count = launch_share(in->count, look->comm->rank + 1, look->comm->size) - first;
    for (int64_t done = 0, part; done < count; done += part) {
        part = count - done < look->piece ? count - done : look->piece;
        TRY(join_rows(look, in, first + done, part));
        const struct engine_elements rows =
            look->options->unique
                ? record_keys_strict(&look->keys, look->rows, in->row_bytes, part)
                : record_keys_elements(&look->keys, look->rows, in->row_bytes, first + done, part);
        struct trace_span *span = trace_begin(look->comm->trace, "look at rows");
        TRY(trace_end_with(span, verify_add_elements(verifier, look->io.engine, &rows)));
        progress_bytes(&look->progress, "check", done + part, count, in->count * (int64_t)in->row_bytes);
    }
    return file_check_unchanged(&in->files);
}

static hsort_status scan_hdf5(struct hdf5_look *look, const struct hdf5_in *in, hsort_check_result *result)
{
    struct verifier verifier;
    verify_start(&verifier, keymap_of_codes(sizeof(uint128)));
    TRY(comm_agree(look->comm, add_rows(look, in, &verifier)));
    return verify_finish(&verifier, look->comm, result);
}

/* Find what there is in the files. Collective. */
static hsort_status scan_both_hdf5(struct hdf5_look *look, struct records_check_report *report)
{
    const double start = MPI_Wtime();
    TRY(scan_hdf5(look, &look->file, &report->found));
    if (look->options->against.count > 0)
        TRY(scan_hdf5(look, &look->other, &report->other));
    report->seconds = MPI_Wtime() - start;
    return HSORT_OK;
}

/* ---- The command: collective --------------------------------------------------------------------------------------- */

static hsort_status check_rows(struct hdf5_look *look)
{
    const struct cli_options *options = look->options;
    struct records_check_report report = {.file = &look->file.files,
                                          .against = options->against.count > 0 ? &look->other.files : NULL,
                                          .key = options->key       ? options->key
                                                 : options->reverse ? "value:desc"
                                                                    : "value",
                                          .ranks = look->comm->size,
                                          .unique = options->unique};
    TRY(open_looked_at(look));
    TRY(comm_agree(look->comm, take_row_buffers(look)));
    TRY(run_trace_open(look->comm, options, &look->file.files, report.against, &report.trace));
    TRY(run_trace_close(look->comm, options, scan_both_hdf5(look, &report), &report.trace));
    TRY(comm_agree(look->comm,
                   look->comm->rank == 0 ? records_report_check(&report, options->json) : HSORT_OK));
    return records_report_judge(look->comm, &report, "row");
}

hsort_status hdf5_check(struct comm *comm, const struct cli_options *options)
{
    struct hdf5_look look = {.comm = comm, .options = options};
    progress_start(&look.progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = check_rows(&look);
    record_io_close(&look.io);
    free(look.rows);
    free(look.of_column);
    hdf5_close_in(&look.other);
    hdf5_close_in(&look.file);
    return status;
}
