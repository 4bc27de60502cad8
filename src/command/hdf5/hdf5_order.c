/* The order of the rows: memory holds their keys and the index, or the disk does (hdf5_order_disk.c). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "mpi/comm/node_memory.h"
#include "src/command/disk_sort.h"
#include "src/command/hdf5/hdf5_run.h"
#include "src/command/report.h"

enum {
    CODES = 4,                 /* of 16 bytes for each row */
    KEY_ROWS_LEAST = 64 << 10, /* bytes, however little memory there is */
    KEY_ROWS_PART = 4          /* by way of the disk: a quarter of the memory for rows, as much for their keys */
};

/* ---- The choice -------------------------------------------------------------------------------------------------- */

/* In memory a rank has the index and the keys in two forms; and if the library sorts in host memory, what that takes (hypersort.h), which
 * stays: a code for each row before and after, and as many between. */
hsort_status hdf5_choose_order(struct hdf5_run *run)
{
    const bool on_host = hsort_engine_in_use(run->ctx) == HSORT_ENGINE_HOST;
    const uint64_t rows = (uint64_t)divide_up(run->in.count, run->comm->size),
                   stays = rows * (sizeof *run->index + (on_host ? CODES * sizeof(key_code) : 0)),
                   order = stays + rows * 2 * (uint64_t)run->keys.key_bytes;
    size_t memory;
    TRY(disk_sort_memory(run->comm, run->options, &memory));
    TRY(hdf5_disk_order_begun(run, &run->order_begun));
    run->by_disk = run->in.count > 0 && (order > memory || run->order_begun || run->options->runs > 0);
    run->memory_bytes = run->by_disk ? memory : memory - lesser_bytes(memory, stays);
    run->key_rows_bytes = greater_bytes(KEY_ROWS_LEAST, run->by_disk ? memory / KEY_ROWS_PART
                                                                     : memory - lesser_bytes(memory, order));
    return run->by_disk ? HSORT_OK : comm_agree(run->comm, node_memory_check(run->comm, order));
}

/* ---- Keys -------------------------------------------------------------------------------------------------------- */

static bool has_key(const struct hdf5_run *run, const hsort_field *field, int column)
{
    const struct hdf5_column *rows = &run->in.column[column];
    return field->offset >= rows->offset && field->offset < rows->offset + rows->row_bytes;
}

/* Copy the keys that lie in rows [count] of a column into records of keys alone. */
static void pack_keys(const struct hdf5_run *run, int column, const char *rows, int64_t count, char *records)
{
    const size_t width = run->in.column[column].row_bytes, key_bytes = (size_t)run->keys.key_bytes;
    for (int k = 0; k < run->keys.count; k++) {
        if (!has_key(run, &run->keys.fields[k], column))
            continue;
        const size_t bytes = record_field_bytes(&run->keys.fields[k]);
        const char *from = rows + run->keys.fields[k].offset - run->in.column[column].offset;
        char *to = records + run->packed.fields[k].offset;
#pragma omp parallel for schedule(static)
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * key_bytes, from + (size_t)i * width, bytes);
    }
}

/* Read rows of a column piece by piece, and keep their keys. */
static hsort_status read_keys_of(struct hdf5_run *run, int column, int64_t first, int64_t count,
                                 char *records)
{
    const int64_t piece = hdf5_rows_at_a_time(&run->in.column[column], run->key_rows_bytes),
                  end = first + count;
    char *rows;
    hsort_status status = hdf5_take_rows(run, lesser(piece, count), run->in.column[column].row_bytes, &rows);
    for (int64_t at = first, now; at < end && status == HSORT_OK; at += now) {
        now = lesser((at / piece + 1) * piece, end) - at;
        status = hdf5_read_column_rows(run, column, at, now, rows);
        if (status == HSORT_OK)
            pack_keys(run, column, rows, now, records + (size_t)(at - first) * (size_t)run->keys.key_bytes);
    }
    free(rows);
    return status;
}

hsort_status hdf5_read_keys(struct hdf5_run *run, int64_t first, int64_t count, char *records)
{
    for (int c = 0; c < run->in.columns; c++) {
        bool wanted = false;
        for (int k = 0; k < run->keys.count; k++)
            wanted = wanted || has_key(run, &run->keys.fields[k], c);
        if (wanted)
            TRY(read_keys_of(run, c, first, count, records));
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

/* ---- In memory: collective ----------------------------------------------------------------------------------------- */

static hsort_status keep_call(struct hdf5_run *run, hsort_status status, double start)
{
    run->sort_seconds += MPI_Wtime() - start;
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    status_clear();
    return records_report_add(&run->report, run->ctx);
}

/* Find what this rank's records of keys, which are sorted or not, and their places are like. */
static hsort_status look_at_keys(struct hdf5_run *run, const struct record_keys *keys, const void *records,
                                 const int64_t *index, hsort_check_result *result)
{
    struct verifier verifier;
    const struct engine_elements none = record_keys_elements(keys, records, 0, 0, 0);
    verify_start(&verifier, none.field[0].map);
    TRY(hdf5_verify_rows(run, &verifier, keys, records, (size_t)run->keys.key_bytes, run->first, run->count,
                         index));
    return verify_finish(&verifier, run->comm, result);
}

/* Check that the index brings the keys in order, and holds every row once. */
static hsort_status check_order(struct hdf5_run *run, const char *records)
{
    const size_t key_bytes = (size_t)run->keys.key_bytes;
    struct records_report *report = &run->report;
    hsort_check_result before, after;
    char *sorted = NULL;
    hsort_status status = comm_agree(run->comm, hdf5_take_rows(run, run->count, key_bytes, &sorted));
    if (status == HSORT_OK)
        status = look_at_keys(run, NULL, records, NULL, &before);
    const double start = MPI_Wtime();
    if (status == HSORT_OK)
        status = keep_call(
            run, hsort_gather(run->ctx, records, run->count, key_bytes, run->index, sorted, run->count, NULL),
            start);
    if (status == HSORT_OK)
        status = look_at_keys(run, &run->packed, sorted, run->index, &after);
    free(sorted);
    TRY(status);
    report->verified = true;
    report->sorted = after.first_disorder < 0;
    report->stable = after.first_unstable < 0;
    report->count_ok = after.count == before.count && after.count == run->in.count;
    report->fingerprint_ok = hdf5_same_places(&before, &after);
    if (report->sorted && report->stable && report->count_ok && report->fingerprint_ok)
        return HSORT_OK;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: the sorted keys are %s; nothing was written",
                       run->in.files.path,
                       !report->sorted   ? "not in order"
                       : !report->stable ? "not in the order of the input where they are equal"
                                         : "not those of the file");
}

static hsort_status sort_columns_of_keys(struct hdf5_run *run, const char *records, char *columns)
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

static hsort_status find_order_in_memory(struct hdf5_run *run)
{
    char *records = NULL, *columns = NULL;
    hsort_status status = hdf5_take_rows(run, run->count, sizeof *run->index, &run->index);
    if (status == HSORT_OK)
        status = hdf5_take_rows(run, run->count, (size_t)run->keys.key_bytes, &records);
    if (status == HSORT_OK)
        status = hdf5_read_keys(run, run->first, run->count, records);
    if (status == HSORT_OK)
        status = hdf5_take_rows(run, run->count, (size_t)run->keys.key_bytes, &columns);
    status = comm_agree(run->comm, status);
    if (status == HSORT_OK)
        status = sort_columns_of_keys(run, records, columns);
    free(columns);
    if (status == HSORT_OK && !run->options->no_verify)
        status = check_order(run, records);
    free(records);
    return status;
}

hsort_status hdf5_find_order(struct hdf5_run *run)
{
    return run->by_disk ? hdf5_find_order_on_disk(run) : find_order_in_memory(run);
}

void hdf5_end_order(struct hdf5_run *run)
{
    free(run->index);
    run->index = NULL;
    if (run->by_disk)
        hdf5_end_order_on_disk(run);
}

hsort_status hdf5_read_order(struct hdf5_run *run, int64_t first, int64_t count, int64_t *index)
{
    if (run->by_disk)
        return record_io_read(&run->io, &run->order, first, count, index);
    memcpy(index, run->index + (first - run->first), (size_t)count * sizeof *index);
    return HSORT_OK;
}
