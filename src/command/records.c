#include "src/command/records.h"
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/element_digest.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records_run.h"
#include "src/command/report.h"

static bool wants_elements(const struct cli_options *options)
{
    return options->output || options->unique || !options->no_verify;
}

bool records_are_indexed(const struct cli_options *options)
{
    return options->index || (options->key && options->values);
}

/* ---- Inputs: collective -------------------------------------------------------------------------------- */

static hsort_status open_elements(struct record_run *run)
{
    const struct cli_options *options = run->options;
    const struct file_source source =
        options->key ? record_io_source(options) : record_io_key_source(options);
    TRY(file_open(run->comm, &source, &run->elements.in));
    run->elements.given = true;
    run->elements.bytes = run->elements.in.element.bytes;
    run->keys = record_keys_bare(run->elements.in.type, run->order);
    if (!options->key)
        return HSORT_OK;
    return comm_agree(run->comm, record_keys_parse(options->key, &run->elements.in, &run->keys));
}

static hsort_status open_values(struct record_run *run)
{
    if (!run->options->values)
        return HSORT_OK;
    TRY(record_io_open_values(run->comm, run->options, &run->elements.in, &run->values.in));
    run->values.given = true;
    run->values.bytes = run->values.in.element.bytes;
    return HSORT_OK;
}

static hsort_status open_columns(struct record_run *run)
{
    TRY(open_elements(run));
    TRY(open_values(run));
    run->indexed = records_are_indexed(run->options);
    run->out_total = run->elements.in.count;
    run->first = launch_share(run->elements.in.count, run->comm->rank, run->comm->size);
    run->count = launch_share(run->elements.in.count, run->comm->rank + 1, run->comm->size) - run->first;
    run->out_first = run->first;
    run->out_count = run->count;
    return HSORT_OK;
}

/* ---- Outputs: collective ------------------------------------------------------------------------------- */

/* No two outputs of this rank may be one file, and no output may be an input. digest [FILE_OUTPUTS] = digests of the names of files that
 * are this rank's alone, else 0. Not collective. */
static hsort_status check_apart(const struct record_run *run, const char *const *paths, uint64_t *digest)
{
    char names[FILE_OUTPUTS][PATH_MAX];
    for (int i = 0; i < FILE_OUTPUTS; i++) {
        if (!paths[i])
            continue;
        TRY(file_output_name_of(paths[i], run->comm->rank, &run->elements.in, names[i]));
        if (run->values.given)
            TRY(file_output_name_of(paths[i], run->comm->rank, &run->values.in, names[i]));
        for (int before = 0; before < i; before++)
            if (paths[before] && strcmp(names[before], names[i]) == 0)
                return status_fail(HSORT_ARGUMENT, "%s: is named for two outputs", paths[i]);
        uint64_t both[2] = {0, 0};
        digest_add_bytes(names[i], strlen(names[i]), 0, both);
        digest[i] = file_is_pattern(paths[i]) ? both[0] | 1 : 0;
    }
    return HSORT_OK;
}

/* Outputs of two ranks may not be one file either, as a%r1 of rank 0 and a0%r of rank 1 are. Collective. */
static hsort_status check_all_apart(const struct record_run *run)
{
    struct comm *comm = run->comm;
    const struct cli_options *options = run->options;
    const char *const paths[FILE_OUTPUTS] = {options->output, options->values_output, options->index,
                                             options->counts};
    uint64_t own[FILE_OUTPUTS] = {0}, *all = malloc((size_t)comm->size * sizeof own);
    hsort_status status =
        all ? check_apart(run, paths, own) : status_fail(HSORT_HOST_MEMORY, "no memory for names");
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = comm_check(
            MPI_Allgather(own, FILE_OUTPUTS, MPI_UINT64_T, all, FILE_OUTPUTS, MPI_UINT64_T, comm->world),
            "MPI_Allgather", false);
    bool apart = true;
    for (int entry = 0; entry < comm->size * FILE_OUTPUTS && status == HSORT_OK; entry++)
        for (int i = 0; i < FILE_OUTPUTS; i++) // names of one pattern differ
            apart = apart && (i == entry % FILE_OUTPUTS || own[i] == 0 || own[i] != all[entry]);
    free(all);
    TRY(status);
    return comm_agree(comm, apart ? HSORT_OK
                                  : status_fail(HSORT_ARGUMENT,
                                                "its outputs and those of another rank are to be one file: "
                                                "%%r must tell them apart"));
}

/* Add an output. element: NULL for keys of `type`. */
static hsort_status add_output(struct record_run *run, const char *path, enum file_format format,
                               hsort_type type, const struct npy_element *element)
{
    const struct file_target target = {.path = path,
                                       .format = format,
                                       .type = type,
                                       .element = element,
                                       .count = run->out_total,
                                       .first = run->out_first,
                                       .mine = run->out_count,
                                       .input = &run->elements.in,
                                       .other_input = run->values.given ? &run->values.in : NULL,
                                       .direct_io = run->options->direct_io,
                                       .no_clobber = run->options->no_clobber};
    if (!path)
        return HSORT_OK;
    struct output *output = &run->outputs[run->output_count];
    output->path = path;
    TRY(file_create(run->comm, &target, &output->file));
    run->output_count++;
    report_stale(run->comm, &output->file);
    return HSORT_OK;
}

static hsort_status open_outputs(struct record_run *run)
{
    const struct cli_options *options = run->options;
    const struct file_in *in = &run->elements.in;
    TRY(add_output(run, options->output, options->output_format, in->type,
                   options->key ? &in->element : NULL));
    TRY(add_output(run, options->values_output, FILE_AUTO, in->type, &run->values.in.element));
    TRY(add_output(run, options->index, FILE_AUTO, HSORT_I64, NULL));
    return add_output(run, options->counts, FILE_AUTO, HSORT_I64, NULL);
}

static hsort_status end_outputs(struct record_run *run, hsort_status status)
{
    struct file_out *files[FILE_OUTPUTS];
    for (int i = 0; i < run->output_count; i++)
        files[i] = &run->outputs[i].file;
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "commit");
    if (run->output_count > 0)
        status = launch_commit_all(run->comm, files, run->output_count, status);
    trace_end(span);
    run->write_seconds += MPI_Wtime() - start;
    return status;
}

/* ---- Memory: not collective ---------------------------------------------------------------------------- */

hsort_status records_take(const struct record_run *run, size_t bytes, void *array)
{
    void *memory = malloc((size_t)run->count * bytes + 1);
    memcpy(array, &memory, sizeof memory);
    return memory ? HSORT_OK
                  : status_fail(HSORT_HOST_MEMORY, "%s: no memory for %" PRId64 " elements of %zu bytes",
                                run->elements.in.path, run->count, bytes);
}

uint64_t records_bytes(const struct cli_options *options, const struct record_keys *keys, size_t element_bytes,
                       size_t value_bytes)
{
    const size_t of_key = options->key ? (size_t)keys->key_bytes : 0;
    return (uint64_t)element_bytes * (wants_elements(options) ? 2 : 1) + (uint64_t)value_bytes * 2 +
           (records_are_indexed(options) ? sizeof(int64_t) + of_key : 0) +
           (options->unique ? unique_bytes(keys, !options->key, !options->no_verify) : 0) +
           (options->unique && records_are_indexed(options) ? sizeof(int64_t) : 0); // keep_index()
}

/* Allocate all that a rank takes, after asking for it together with the other ranks of its node. */
static hsort_status take_columns(struct record_run *run)
{
    const bool sorted = wants_elements(run->options);
    const uint64_t bytes =
        records_bytes(run->options, &run->keys, run->elements.bytes, run->values.bytes);
    const uint64_t all = run->count > 0 && bytes > UINT64_MAX / (uint64_t)run->count
                             ? UINT64_MAX
                             : bytes * (uint64_t)run->count;
    TRY(node_memory_check(run->comm, all));
    TRY(records_take(run, run->elements.bytes, &run->elements.read));
    if (sorted)
        TRY(records_take(run, run->elements.bytes, &run->elements.sorted));
    if (run->indexed)
        TRY(records_take(run, sizeof *run->index, &run->index));
    if (!run->values.given)
        return HSORT_OK;
    TRY(records_take(run, run->values.bytes, &run->values.read));
    return records_take(run, run->values.bytes, &run->values.sorted);
}

static hsort_status read_column(struct record_run *run, struct column *column)
{
    if (!column->given)
        return HSORT_OK;
    TRY(record_io_read(&run->io, &column->in, run->first, run->count, column->read));
    return file_check_unchanged(&column->in);
}

/* ---- Checks: collective -------------------------------------------------------------------------------- */

/* Look at what belongs together, before the sort or after it: the element, its value, and where it was. */
static hsort_status look(struct record_run *run, bool after, hsort_check_result *result)
{
    const struct column *elements = &run->elements, *values = &run->values;
    struct engine_elements rows = {
        .count = run->count,
        .part = {after ? elements->sorted : elements->read, after ? values->sorted : values->read},
        .part_bytes = {elements->bytes, values->given ? values->bytes : 0},
        .field_count = after ? run->keys.count : 0,
        .index = after ? run->index : NULL,
        .first = run->first,
        .step = 1};
    struct verifier verifier;
    const double start = MPI_Wtime();
    record_keys_point(&run->keys, rows.part[0], elements->bytes, rows.field);
    verify_start(&verifier, rows.field[0].map);
    struct trace_span *span = trace_begin(run->comm->trace, after ? "look at result" : "look at input");
    const hsort_status status =
        trace_end_with(span, verify_add_elements(&verifier, run->io.engine, &rows));
    run->verify_seconds += MPI_Wtime() - start;
    TRY(comm_agree(run->comm, status));
    return verify_finish(&verifier, run->comm, result);
}

hsort_status records_compare(struct record_run *run, const hsort_check_result *before,
                             const hsort_check_result *after)
{
    struct records_report *report = &run->report;
    report->verified = true;
    report->sorted = after->first_disorder < 0;
    report->stable = after->first_unstable < 0; // without an index the numbers are places, which rise
    report->count_ok = after->count == before->count && after->count == run->elements.in.count;
    report->fingerprint_ok =
        run->indexed ? memcmp(after->placed_fingerprint, before->placed_fingerprint,
                              sizeof after->placed_fingerprint) == 0
                     : memcmp(after->fingerprint, before->fingerprint, sizeof after->fingerprint) == 0;
    if (report->sorted && report->stable && report->count_ok && report->fingerprint_ok)
        return HSORT_OK;
    return report_fail(run->comm, HSORT_MISMATCH, "%s: the sorted %s are %s%s; nothing was written",
                       run->elements.in.path, run->options->key ? "records" : "keys",
                       !report->sorted   ? "not in order"
                       : !report->stable ? "not in the order of the input where they are equal"
                                         : "not those of the file, or not beside what belongs to them",
                       report->kept.resumed ? REPORT_MAY_BE_DAMAGED : "");
}

/* Put what is kept of a sorted column into the memory that the column was read to. Not collective. */
static hsort_status keep_column(struct record_run *run, struct column *column)
{
    if (!column->sorted)
        return HSORT_OK;
    void *sorted = column->sorted;
    TRY(unique_keep(&run->unique, sorted, column->bytes, column->read));
    column->sorted = column->read;
    column->read = sorted;
    return HSORT_OK;
}

/* The same for the index, which has no second memory. */
static hsort_status keep_index(struct record_run *run)
{
    int64_t *kept;
    if (!run->index)
        return HSORT_OK;
    TRY(records_take(run, sizeof *kept, &kept));
    const hsort_status status = unique_keep(&run->unique, run->index, sizeof *kept, kept);
    free(run->index);
    run->index = kept;
    return status;
}

static hsort_status keep_columns(struct record_run *run)
{
    TRY(keep_column(run, &run->elements));
    TRY(keep_column(run, &run->values));
    return keep_index(run);
}

/* Keep the first element of each run of equal keys, and what belongs to it. */
static hsort_status keep_unique(struct record_run *run)
{
    const bool looks = !run->options->no_verify;
    run->unique = (struct unique_run){.comm = run->comm,
                                      .ctx = run->ctx,
                                      .engine = run->io.engine,
                                      .keys = &run->keys,
                                      .bare = !run->options->key,
                                      .sorted = run->elements.sorted,
                                      .bytes = run->elements.bytes,
                                      .position = run->first,
                                      .count = run->count};
    const double start = MPI_Wtime();
    TRY(unique_find(&run->unique));
    TRY(records_report_add(&run->report, run->ctx));
    TRY(comm_agree(run->comm, keep_columns(run)));
    run->out_first = run->unique.kept_before;
    run->out_count = run->unique.kept;
    run->report.distinct = run->out_total = run->unique.kept_total;
    const double found = MPI_Wtime();
    run->sort_seconds += found - start;
    bool right = true;
    if (looks)
        TRY(unique_check(&run->unique, run->elements.sorted, &right));
    run->verify_seconds += MPI_Wtime() - found;
    run->report.unique_ok = right;
    return right ? HSORT_OK
                 : report_fail(run->comm, HSORT_MISMATCH,
                               "%s: what is kept is not one %s of each key; nothing was written",
                               run->elements.in.path, run->options->key ? "record" : "key");
}

/* Check what the outputs hold. */
static hsort_status reread(struct record_run *run)
{
    for (int i = 0; i < run->output_count; i++) {
        const struct output *output = &run->outputs[i];
        bool same = false;
        const double start = MPI_Wtime();
        hsort_status status =
            record_io_compare(&run->io, &output->file, run->out_first, run->out_count, output->memory, &same);
        if (status == HSORT_OK && !same)
            status =
                status_fail(HSORT_MISMATCH, "%s: what is read back is not what was written", output->path);
        run->verify_seconds += MPI_Wtime() - start;
        status = comm_agree(run->comm, status);
        run->report.fingerprint_ok = run->report.fingerprint_ok && status != HSORT_MISMATCH;
        TRY(status);
    }
    return HSORT_OK;
}

/* ---- Phases: collective -------------------------------------------------------------------------------- */

/* Take memory, and read the inputs into it. */
static hsort_status read_columns(struct record_run *run)
{
    TRY(comm_agree(run->comm, take_columns(run)));
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "read");
    hsort_status status = read_column(run, &run->elements);
    if (status == HSORT_OK)
        status = read_column(run, &run->values);
    trace_end(span);
    run->read_seconds = MPI_Wtime() - start;
    return comm_agree(run->comm, status);
}

static hsort_status write_outputs(struct record_run *run)
{
    const double start = MPI_Wtime();
    struct trace_span *span = trace_begin(run->comm->trace, "write");
    hsort_status status = HSORT_OK;
    for (int i = 0; i < run->output_count && status == HSORT_OK; i++) {
        struct output *output = &run->outputs[i];
        output->memory = output->path == run->options->output          ? run->elements.sorted
                         : output->path == run->options->values_output ? run->values.sorted
                         : output->path == run->options->index         ? (const void *)run->index
                                                                       : (const void *)run->unique.counts;
        status = record_io_write(&run->io, &output->file, run->out_first, run->out_count, output->memory);
    }
    run->write_seconds = MPI_Wtime() - start;
    return comm_agree(run->comm, trace_end_with(span, status));
}

/* Make what is to be written from the opened files. With --unique its size is known only after the sort. */
static hsort_status sort_columns(struct record_run *run)
{
    const bool looks = !run->options->no_verify;
    hsort_check_result before, after;
    if (!run->indexed && !run->values.given && !run->options->unique)
        TRY(records_stream(run));
    if (run->streamed)
        return HSORT_OK;
    TRY(read_columns(run));
    if (looks)
        TRY(look(run, false, &before));
    const double start = MPI_Wtime();
    TRY(records_call(run));
    run->sort_seconds = MPI_Wtime() - start;
    if (looks) {
        TRY(look(run, true, &after));
        TRY(records_compare(run, &before, &after));
    }
    return run->options->unique ? keep_unique(run) : HSORT_OK;
}

/* Fill the outputs, so that they lack only their names. */
static hsort_status fill_outputs(struct record_run *run)
{
    if (run->streamed)
        return HSORT_OK;
    TRY(write_outputs(run));
    return !run->options->no_verify && run->options->verify == CLI_VERIFY_REREAD ? reread(run) : HSORT_OK;
}

static hsort_status print_records(struct record_run *run)
{
    const struct cli_options *options = run->options;
    struct records_report *report = &run->report;
    const double own[] = {run->read_seconds, run->sort_seconds, run->write_seconds, run->verify_seconds};
    report->work = "sort";
    report->streamed = run->streamed;
    report->word = options->key ? "record" : hsort_type_name(run->elements.in.type);
    report->plural = options->key ? "records" : "keys";
    report->key = options->key;
    report->order = options->key ? NULL : options->reverse ? "descending" : "ascending";
    report->input = &run->elements.in;
    report->other = run->values.given ? &run->values.in : NULL;
    report->other_word = "values";
    report->output = options->output;
    report->index = options->index;
    report->values_output = options->values_output;
    report->unique = options->unique;
    report->counts = options->counts;
    report->count = run->elements.in.count;
    report->element_bytes = run->elements.bytes;
    report->other_bytes = run->values.bytes;
    report->engine = hsort_engine_name(hsort_engine_in_use(run->ctx));
    report->exchange = report_exchange(run->ctx);
    return records_report_end(report, run->comm, run->ctx, own, options->json);
}

/* Outputs are opened before the work, so that a name that cannot be written costs no sort. With --unique their sizes are known
 * only after the sort, so before it only their names can be checked. Collective. */
static hsort_status work(struct record_run *run)
{
    const bool late = run->options->unique;
    bool on_disk;
    size_t memory_bytes;
    TRY(check_all_apart(run));
    TRY(records_choose_disk(run, &memory_bytes, &on_disk));
    if (on_disk)
        return records_by_disk(run, memory_bytes);
    hsort_status status = late ? sort_columns(run) : open_outputs(run);
    if (status == HSORT_OK)
        status = late ? open_outputs(run) : sort_columns(run);
    if (status == HSORT_OK)
        status = fill_outputs(run);
    return end_outputs(run, status);
}

static hsort_status run_records(struct record_run *run)
{
    TRY(open_columns(run));
    TRY(run_trace_check(run->comm, run->options, &run->elements.in,
                        run->values.given ? &run->values.in : NULL));
    hsort_status sorted = record_io_library(run->comm, run->options, &run->progress, &run->ctx, &run->io);
    if (sorted == HSORT_OK)
        sorted = work(run);
    const hsort_status status = run_trace_end(run->comm, run->options, run->ctx, sorted, &run->report.trace);
    const hsort_status printed =
        sorted == HSORT_OK || sorted == HSORT_MISMATCH ? print_records(run) : HSORT_OK;
    return status == HSORT_OK ? printed : status; // the error line of what failed first stays
}

static void free_column(struct column *column)
{
    free(column->read);
    free(column->sorted);
    if (column->given)
        file_close(&column->in);
}

hsort_status records_sort(struct comm *comm, const struct cli_options *options)
{
    struct record_run run = {
        .comm = comm, .options = options, .order = options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING};
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = run_records(&run);
    if (!launch_lost(comm, status))
        hsort_destroy(&run.ctx);
    record_io_close(&run.io);
    free_column(&run.elements);
    free_column(&run.values);
    unique_free(&run.unique);
    free(run.index);
    return status;
}
