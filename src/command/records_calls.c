#include "src/command/records_run.h"
#include <stdlib.h>
#include <string.h>
#include "src/command/record_share.h"
#include "src/library/element_columns.h"

hsort_status records_keep_line(struct record_run *run, hsort_status status)
{
    if (status != HSORT_OK)
        return report_fail(run->comm, status, "%s", hsort_last_error(run->ctx));
    status_clear();
    return records_report_add(&run->report, run->ctx);
}

/* The same after a call that did nothing unless it is *done. */
static hsort_status keep_line_if(struct record_run *run, hsort_status status, const bool *done)
{
    return status == HSORT_OK && !*done ? HSORT_OK : records_keep_line(run, status);
}

/* ---- The sort: collective ------------------------------------------------------------------------------ */

/* Copy a field of all records into an array of its own. */
static void copy_field(const struct record_run *run, const hsort_field *field, char *to)
{
    const size_t bytes = record_field_bytes(field), record_bytes = run->elements.bytes;
    const char *from = (const char *)run->elements.read + field->offset;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < run->count; i++)
        memcpy(to + (size_t)i * bytes, from + (size_t)i * record_bytes, bytes);
}

/* Find the order of records by their keys, which are copied out of the records. */
static hsort_status find_index(struct record_run *run)
{
    const void *columns[HSORT_FIELDS_MAX];
    hsort_field fields[HSORT_FIELDS_MAX];
    char *memory = NULL;
    const hsort_status status =
        comm_agree(run->comm, records_take(run, (size_t)run->keys.key_bytes, &memory));
    char *at = memory;
    for (int i = 0; i < run->keys.count && status == HSORT_OK; i++) {
        fields[i] = run->keys.fields[i];
        copy_field(run, &fields[i], at);
        columns[i] = at;
        at += record_field_bytes(&fields[i]) * (size_t)run->count;
        fields[i].offset = 0;
    }
    const hsort_status found =
        status != HSORT_OK
            ? status
            : records_keep_line(run, hsort_argsort_columns(run->ctx, columns, fields, run->keys.count,
                                                           run->count, run->index, run->count, NULL));
    free(memory);
    return found;
}

static hsort_status gather_column(struct record_run *run, struct column *column)
{
    if (!column->sorted)
        return HSORT_OK;
    return records_keep_line(run, hsort_gather(run->ctx, column->read, run->count, column->bytes, run->index,
                                               column->sorted, run->count, NULL));
}

/* Sort elements, values and positions as one element, if they do not fit into engine memory. */
static hsort_status sort_in_passes(struct record_run *run, bool *done)
{
    const struct column *elements = &run->elements, *values = &run->values;
    const struct element_column numbers = {.bytes = sizeof *run->index, .out = run->index, .numbers = true};
    struct element_columns columns = {.carried_bytes =
                                          elements->bytes > values->bytes ? elements->bytes : values->bytes};
    columns.column[columns.count++] =
        (struct element_column){.bytes = elements->bytes, .in = elements->read, .out = elements->sorted};
    if (values->given)
        columns.column[columns.count++] =
            (struct element_column){.bytes = values->bytes, .in = values->read, .out = values->sorted};
    columns.column[columns.count++] = numbers;
    return keep_line_if(run,
                        sort_columns_in_passes(run->ctx, run->keys.fields, run->keys.count, &columns,
                                               run->count, run->count, done),
                        done);
}

static hsort_status sort_records(struct record_run *run)
{
    struct column *elements = &run->elements;
    if (!run->indexed)
        return records_keep_line(run, hsort_sort_records_to(run->ctx, elements->read, elements->bytes,
                                                            run->keys.fields, run->keys.count, run->count,
                                                            elements->sorted, run->count, NULL));
    TRY(find_index(run));
    TRY(gather_column(run, elements));
    return gather_column(run, &run->values);
}

static hsort_status sort_bare_keys(struct record_run *run)
{
    struct column *keys = &run->elements, *values = &run->values;
    const hsort_type type = keys->in.type;
    if (!run->indexed && !values->given)
        return records_keep_line(run, hsort_sort_to(run->ctx, type, run->order, keys->read, run->count,
                                                    keys->sorted, run->count, NULL));
    if (!run->indexed)
        return records_keep_line(run, hsort_sort_pairs_to(run->ctx, type, run->order, keys->read,
                                                          values->read, values->bytes, run->count,
                                                          keys->sorted, values->sorted, run->count, NULL));
    TRY(records_keep_line(run, hsort_argsort(run->ctx, type, run->order, keys->read, run->count, run->index,
                                             keys->sorted, run->count, NULL)));
    return gather_column(run, values);
}

hsort_status records_call(struct record_run *run)
{
    bool done = false;
    if (run->indexed)
        TRY(sort_in_passes(run, &done));
    if (done)
        return HSORT_OK;
    return run->options->key ? sort_records(run) : sort_bare_keys(run);
}

/* ---- Records alone, in two passes: collective ---------------------------------------------------------- */

hsort_status records_reread(struct record_run *run, const struct file_out *file,
                            const hsort_check_result *before)
{
    const double start = MPI_Wtime();
    struct verifier verifier;
    hsort_check_result found;
    verify_start(&verifier, (struct keymap){0});
    TRY(comm_agree(run->comm,
                   record_io_verify_back(&run->io, file, run->first, run->count, &run->keys, &verifier)));
    TRY(verify_finish(&verifier, run->comm, &found));
    run->verify_seconds += MPI_Wtime() - start;
    return records_compare(run, before, &found);
}

static hsort_status check_what_passed(struct record_run *run, struct record_share *share)
{
    hsort_check_result before, after;
    TRY(record_look_finish(&share->before, run->comm, &before));
    TRY(record_look_finish(&share->after, run->comm, &after));
    TRY(records_compare(run, &before, &after));
    return run->options->verify == CLI_VERIFY_REREAD ? records_reread(run, &run->outputs[0].file, &before)
                                                     : HSORT_OK;
}

static hsort_status stream_share(struct record_run *run, struct record_share *share)
{
    const double start = MPI_Wtime();
    struct element_columns columns = {.source = &share->source,
                                      .sink = &share->sink,
                                      .column = {{.bytes = run->elements.bytes}},
                                      .count = 1,
                                      .carried_bytes = run->elements.bytes};
    share->out = &run->outputs[0].file;
    TRY(keep_line_if(run,
                     sort_columns_in_passes(run->ctx, run->keys.fields, run->keys.count, &columns, run->count,
                                            run->count, &run->streamed),
                     &run->streamed));
    run->read_seconds = share->read_seconds;
    run->write_seconds = share->write_seconds;
    run->sort_seconds = MPI_Wtime() - start - share->read_seconds - share->write_seconds;
    return run->streamed && share->looks ? check_what_passed(run, share) : HSORT_OK;
}

hsort_status records_stream(struct record_run *run)
{
    struct record_share share;
    hsort_status status =
        comm_agree(run->comm, record_share_open(&share, run->comm, &run->progress, &run->elements.in,
                                                &run->keys, !run->options->no_verify));
    if (status == HSORT_OK)
        status = stream_share(run, &share);
    record_share_close(&share);
    return status;
}
