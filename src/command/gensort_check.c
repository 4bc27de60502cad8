/* hypersort check --format gensort: what valsort says of a file of the sort benchmarks, found by all ranks. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/records.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/files/gensort.h"

struct gensort_run {
    struct comm *comm;
    const struct cli_options *options;
    struct progress progress;
    struct record_io io;
    struct file_in file;
    struct gensort_summary all; /* the same on every rank */
    double seconds;
    struct run_trace trace;
};

/* Look at this rank's share. */
static hsort_status look_at_share(struct gensort_run *run, struct gensort_summary *own)
{
    enum { MOST = CLI_CHUNK_BYTES / GENSORT_RECORD_BYTES };
    const struct file_in *file = &run->file;
    const int64_t first = launch_share(file->count, run->comm->rank, run->comm->size);
    const int64_t count = launch_share(file->count, run->comm->rank + 1, run->comm->size) - first;
    hsort_status status = HSORT_OK;
    char *chunk = malloc(CLI_CHUNK_BYTES);
    if (!chunk)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a chunk of records");
    for (int64_t done = 0; done < count && status == HSORT_OK;) {
        const int64_t part = count - done < MOST ? count - done : MOST;
        struct trace_span *span = trace_begin(run->comm->trace, "read file");
        trace_bytes(span, part * GENSORT_RECORD_BYTES);
        status = trace_end_with(span, record_io_read(&run->io, file, first + done, part, chunk));
        span = trace_begin(run->comm->trace, "look at records");
        if (status == HSORT_OK)
            gensort_look(own, chunk, part);
        trace_end(span);
        done += part;
        progress_bytes(&run->progress, "check", done, count, file->count * GENSORT_RECORD_BYTES);
    }
    free(chunk);
    return status == HSORT_OK ? file_check_unchanged(file) : status;
}

/* run->all = the shares of all ranks, joined. Collective. */
static hsort_status join_shares(struct gensort_run *run, const struct gensort_summary *own)
{
    const int size = run->comm->size;
    struct gensort_summary *each = calloc((size_t)size, sizeof *each);
    TRY(comm_agree(run->comm,
                   each ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "no memory for %d summaries", size)));
    const hsort_status status =
        comm_check(MPI_Allgather(own, sizeof *own, MPI_BYTE, each, sizeof *each, MPI_BYTE, run->comm->world),
                   "MPI_Allgather", false);
    for (int rank = 0; rank < size && status == HSORT_OK; rank++)
        gensort_join(&run->all, &each[rank]);
    free(each);
    return status;
}

/* May the summary be written where it is to go? Asked on rank 0, before the work. */
static hsort_status check_summary_path(const struct gensort_run *run)
{
    char name[PATH_MAX];
    const char *path = run->options->summary;
    return path ? file_output_name(path, &run->file, name) : HSORT_OK;
}

/* Write the summary. valsort knows no summary of no records, so an empty file is written then: it replaces a file that lay there, and
 * adds nothing to the summaries between which it stands. Collective. */
static hsort_status write_summary(const struct gensort_run *run)
{
    unsigned char bytes[GENSORT_SUMMARY_BYTES];
    struct comm *comm = run->comm;
    const struct npy_element byte = {.bytes = 1};
    const int64_t length = run->all.records > 0 ? GENSORT_SUMMARY_BYTES : 0;
    const struct file_target target = {.path = run->options->summary,
                                       .format = FILE_RAW,
                                       .element = &byte,
                                       .count = length,
                                       .mine = comm->rank == 0 ? length : 0,
                                       .input = &run->file,
                                       .direct_io = HSORT_CHOICE_OFF};
    struct file_out file;
    if (!run->options->summary)
        return HSORT_OK;
    TRY(file_create(comm, &target, &file));
    report_stale(comm, &file);
    gensort_write_summary(&run->all, bytes);
    return launch_commit(comm, &file,
                         comm_agree(comm, comm->rank == 0 ? file_write(&file, 0, length, bytes) : HSORT_OK));
}

/* Print the summary, on rank 0. */
static hsort_status print_summary(const struct gensort_run *run)
{
    const struct gensort_summary *all = &run->all;
    char checksum[33];
    gensort_checksum_text(all->checksum, checksum);
    if (run->options->json) {
        struct json json = {false};
        report_open_json(&json);
        report_files_json(&json, "file", "files", &run->file);
        json_integer(&json, "ranks", run->comm->size);
        json_integer(&json, "records", (int64_t)all->records);
        json_bool(&json, "sorted", all->unordered == 0);
        json_integer(&json, "unordered", (int64_t)all->unordered);
        json_integer(&json, "duplicate_keys", (int64_t)all->duplicates);
        json_text(&json, "checksum", checksum);
        json_real(&json, "seconds", run->seconds);
        run_trace_json(&json, &run->trace);
        return report_close_json(&json);
    }
    printf("records      %" PRIu64 " of %d bytes, by keys of %d\n", all->records, (int)GENSORT_RECORD_BYTES,
           (int)GENSORT_KEY_BYTES);
    printf("checksum     %s\n", checksum);
    printf("duplicates   %" PRIu64 " keys\n", all->duplicates);
    printf("order        %s\n", all->unordered == 0 ? "all records are in order" : "NOT in order");
    if (run->options->summary) {
        printf("summary      ");
        report_name(run->options->summary);
        printf("%s\n", all->records > 0 ? "" : ", empty: of no records there is none");
    }
    run_trace_print(&run->trace);
    return report_flush();
}

/* run->all = the summary of the whole file. Collective. */
static hsort_status look_at_shares(struct gensort_run *run)
{
    struct gensort_summary own;
    memset(&own, 0, sizeof own); // its padding is sent, too
    const double start = MPI_Wtime();
    TRY(comm_agree(run->comm, look_at_share(run, &own)));
    TRY(join_shares(run, &own));
    run->seconds = MPI_Wtime() - start;
    return HSORT_OK;
}

/* Collective. */
static hsort_status check_gensort_file(struct gensort_run *run)
{
    struct comm *comm = run->comm;
    TRY(comm_agree(comm, comm->rank == 0 ? check_summary_path(run) : HSORT_OK));
    TRY(run_trace_open(comm, run->options, &run->file, NULL, &run->trace));
    TRY(run_trace_close(comm, run->options, look_at_shares(run), &run->trace));
    TRY(write_summary(run));
    TRY(comm_agree(comm, comm->rank == 0 ? print_summary(run) : HSORT_OK));
    if (run->all.unordered == 0)
        return HSORT_OK;
    return report_fail(comm, HSORT_MISMATCH,
                       "%s: %" PRIu64 " unordered records, the first is record %" PRIu64, run->file.path,
                       run->all.unordered, run->all.first_unordered);
}

hsort_status gensort_check(struct comm *comm, const struct cli_options *options)
{
    struct gensort_run run = {.comm = comm, .options = options};
    const struct file_source source = record_io_source(options);
    TRY(file_open(comm, &source, &run.file));
    progress_start(&run.progress, progress_choose(options->progress, comm->rank));
    hsort_status status = comm_agree(comm, record_io_open(comm, options->sort.threads, NULL, &run.io));
    if (status == HSORT_OK)
        status = check_gensort_file(&run);
    record_io_close(&run.io);
    file_close(&run.file);
    return status;
}
