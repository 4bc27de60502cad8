/* hypersort check --key: every rank streams its share of the records through the verifier, as check does with keys. */
#include <stdlib.h>
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records.h"
#include "src/command/record_keys.h"
#include "src/command/records_report.h"
#include "src/command/run_trace.h"
#include "src/library/verify.h"

struct check_run {
    struct comm *comm;
    const struct cli_options *options;
    struct progress progress;
    struct record_io io;
    struct file_in file, other;
    bool has_file, has_other;
    struct record_keys keys;
    void *chunk; /* [CLI_CHUNK_BYTES] owned */
};

/* Collective. */
static hsort_status open_files(struct check_run *run)
{
    const struct cli_options *options = run->options;
    struct file_source source = record_io_source(options);
    TRY(file_open(run->comm, &source, &run->file));
    run->has_file = true;
    TRY(comm_agree(run->comm, record_keys_parse(options->key, &run->file, &run->keys)));
    source.paths = options->against.text;
    source.paths_count = options->against.count;
    if (options->against.count == 0)
        return HSORT_OK;
    TRY(file_open(run->comm, &source, &run->other));
    run->has_other = true;
    if (run->other.element.bytes != run->file.element.bytes)
        return report_fail(run->comm, HSORT_FORMAT, "%s: has records of %zu bytes, and %s of %zu",
                           run->other.path, run->other.element.bytes, run->file.path,
                           run->file.element.bytes);
    return HSORT_OK;
}

/* Collective over the node, as open_scanner() for keys. */
static hsort_status open_reader(struct check_run *run)
{
    TRY(node_memory_check(run->comm, CLI_CHUNK_BYTES));
    TRY(record_io_open(run->comm, run->options->sort.threads, NULL, &run->io));
    run->chunk = malloc(CLI_CHUNK_BYTES);
    return run->chunk ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for a chunk of records");
}

/* run->chunk = records [count] from `first` on. */
static hsort_status read_piece(struct check_run *run, const struct file_in *file, int64_t first,
                               int64_t count)
{
    struct trace_span *span = trace_begin(run->comm->trace, "read file");
    trace_bytes(span, count * (int64_t)file->element.bytes);
    return trace_end_with(span, record_io_read(&run->io, file, first, count, run->chunk));
}

/* Not collective. */
static hsort_status add_records(struct check_run *run, const struct file_in *file, struct verifier *verifier)
{
    const size_t width = file->element.bytes;
    const int64_t most = CLI_CHUNK_BYTES / (int64_t)width;
    const int64_t first = launch_share(file->count, run->comm->rank, run->comm->size);
    const int64_t count = launch_share(file->count, run->comm->rank + 1, run->comm->size) - first;
    for (int64_t done = 0; done < count;) {
        const int64_t part = count - done < most ? count - done : most;
        const struct engine_elements rows =
            run->options->unique ? record_keys_strict(&run->keys, run->chunk, width, part)
                                 : record_keys_elements(&run->keys, run->chunk, width, first + done, part);
        TRY(read_piece(run, file, first + done, part));
        struct trace_span *span = trace_begin(run->comm->trace, "look at records");
        TRY(trace_end_with(span, verify_add_elements(verifier, run->io.engine, &rows)));
        done += part;
        progress_bytes(&run->progress, "check", done, count, file->count * (int64_t)width);
    }
    return file_check_unchanged(file);
}

/* Collective. */
static hsort_status scan_file(struct check_run *run, const struct file_in *file, hsort_check_result *result)
{
    struct verifier verifier;
    verify_start(&verifier, keymap_of_codes(sizeof(uint128)));
    TRY(comm_agree(run->comm, add_records(run, file, &verifier)));
    return verify_finish(&verifier, run->comm, result);
}

/* Find what there is in the files. Collective. */
static hsort_status scan_files(struct check_run *run, struct records_check_report *report)
{
    const double start = MPI_Wtime();
    TRY(scan_file(run, &run->file, &report->found));
    if (run->has_other)
        TRY(scan_file(run, &run->other, &report->other));
    report->seconds = MPI_Wtime() - start;
    return HSORT_OK;
}

/* Scan both files and report. Collective. */
static hsort_status check_record_files(struct check_run *run)
{
    struct comm *comm = run->comm;
    const struct cli_options *options = run->options;
    struct records_check_report report = {.file = &run->file,
                                          .against = run->has_other ? &run->other : NULL,
                                          .key = options->key,
                                          .ranks = comm->size,
                                          .unique = options->unique};
    TRY(run_trace_open(comm, options, &run->file, run->has_other ? &run->other : NULL, &report.trace));
    TRY(run_trace_close(comm, options, scan_files(run, &report), &report.trace));
    TRY(comm_agree(comm, comm->rank == 0 ? records_report_check(&report, options->json) : HSORT_OK));
    return records_report_judge(comm, &report, "record");
}

hsort_status records_check(struct comm *comm, const struct cli_options *options)
{
    struct check_run run = {.comm = comm, .options = options};
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    hsort_status status = open_files(&run);
    if (status == HSORT_OK)
        status = comm_agree(comm, open_reader(&run));
    if (status == HSORT_OK)
        status = check_record_files(&run);
    record_io_close(&run.io);
    free(run.chunk);
    if (run.has_other)
        file_close(&run.other);
    if (run.has_file)
        file_close(&run.file);
    return status;
}
