/* hypersort check: every rank streams its share of the file through the verifier, on CPU cores. Rank 0
 * fetches the two keys at the first disorder. */
#include "src/command/cli.h"
#include "kernels/base/key_width.h"
#include "kernels/engine.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/progress.h"
#include "src/command/record_io.h"
#include "src/command/records.h"
#include "src/command/records_hdf5.h"
#include "src/command/records_unique.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/library/verify.h"
#include <inttypes.h>
#include <stdlib.h>

enum { COUNTED = CLI_CHUNK_BYTES / 16 }; /* keys at a time that have counts */

/* What keys pass through: one engine and one chunk of its memory for both files. */
struct scanner {
    struct comm *comm;
    struct engine *engine;
    void *chunk; /* [CLI_CHUNK_BYTES] */
    hsort_order order;
    const struct file_in *counts; /* of the keys of the file, or NULL; borrowed */
    int64_t *count;               /* [COUNTED] a chunk of counts; owned */
    uint64_t counted[3];          /* on this rank: what unique_weigh() adds up */
    struct progress progress;
};

/* Collective over the node. The scanner may be half open after an error; close_scanner() frees what there is. */
static hsort_status open_scanner(struct scanner *scanner, int threads)
{
    const size_t of_counts = scanner->counts ? COUNTED * sizeof *scanner->count : 0;
    TRY(node_memory_check(scanner->comm,
                          CLI_CHUNK_BYTES + of_counts)); // first, because the other ranks of the node wait there
    TRY(launch_threads(scanner->comm, threads, &threads));
    TRY(engine_open_host(threads, 0, &scanner->engine));
    scanner->count = scanner->counts ? malloc(of_counts) : NULL;
    if (scanner->counts && !scanner->count)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a chunk of counts");
    return scanner->engine->ops->alloc(scanner->engine, CLI_CHUNK_BYTES, &scanner->chunk);
}

static void close_scanner(struct scanner *scanner)
{
    free(scanner->count);
    if (!scanner->engine)
        return;
    scanner->engine->ops->free(scanner->engine, scanner->chunk);
    scanner->engine->ops->close(scanner->engine);
}

/* Read keys first .. first + count - 1 into the chunk, by several threads. */
static hsort_status read_chunk(const struct scanner *scanner, const struct file_in *file, int64_t first,
                               int64_t count)
{
    struct record_io io = {.engine = scanner->engine};
    struct trace_span *span = trace_begin(scanner->comm->trace, "read file");
    trace_bytes(span, count * (int64_t)hsort_type_bytes(file->type));
    return trace_end_with(span, record_io_read(&io, file, first, count, scanner->chunk));
}

/* Look for equal neighbours, too: the verifier sees the keys as elements that all have the same number. */
static hsort_status add_strictly(struct scanner *scanner, const struct file_in *file, int64_t count,
                                 struct verifier *strict)
{
    const struct record_keys keys = record_keys_bare(file->type, scanner->order);
    struct engine_elements rows = {
        .count = count, .part = {scanner->chunk}, .part_bytes = {(size_t)keys.key_bytes}, .field_count = 1};
    record_keys_point(&keys, scanner->chunk, (size_t)keys.key_bytes, rows.field);
    return verify_add_elements(strict, scanner->engine, &rows);
}

/* Add each key as often as its count says. */
static hsort_status add_counted(struct scanner *scanner, const struct file_in *file, int64_t first,
                                int64_t count)
{
    const struct file_in *counts = scanner->counts;
    TRY(file_read(counts, first, count, scanner->count));
    for (int64_t i = 0; i < count; i++)
        if (scanner->count[i] < 1)
            return status_fail(HSORT_FORMAT, "%s: entry %" PRId64 " is %" PRId64 ", and no count",
                               counts->path, first + i, scanner->count[i]);
    unique_weigh((int)hsort_type_bytes(file->type), scanner->chunk, scanner->count, count, scanner->counted);
    return HSORT_OK;
}

/* Look at the keys of the chunk, and their counts. */
static hsort_status look_at_chunk(struct scanner *scanner, const struct file_in *file, int64_t first,
                                  int64_t count, struct verifier *verifier, struct verifier *strict)
{
    TRY(verify_add(verifier, scanner->engine, scanner->chunk, count));
    if (strict)
        TRY(add_strictly(scanner, file, count, strict));
    return strict && scanner->counts ? add_counted(scanner, file, first, count) : HSORT_OK;
}

/* Scan this rank's share. strict: or NULL; not NULL for the file that may have counts. */
static hsort_status add_share(struct scanner *scanner, const struct file_in *file, struct verifier *verifier,
                              struct verifier *strict)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(file->type);
    const int64_t most = scanner->counts ? COUNTED : CLI_CHUNK_BYTES / key_bytes;
    const int64_t first = launch_share(file->count, scanner->comm->rank, scanner->comm->size);
    const int64_t count = launch_share(file->count, scanner->comm->rank + 1, scanner->comm->size) - first;
    for (int64_t done = 0; done < count;) {
        const int64_t chunk = count - done < most ? count - done : most;
        TRY(read_chunk(scanner, file, first + done, chunk));
        struct trace_span *span = trace_begin(scanner->comm->trace, "look at keys");
        trace_keys(span, chunk);
        TRY(trace_end_with(span, look_at_chunk(scanner, file, first + done, chunk, verifier, strict)));
        done += chunk;
        progress_bytes(&scanner->progress, "check", done, count, file->count * key_bytes);
    }
    return HSORT_OK;
}

/* Check one file. *repeat = the first key that equals the key before it, or -1; repeat may be NULL. Collective. */
static hsort_status scan(struct scanner *scanner, const struct file_in *file, hsort_check_result *result,
                         int64_t *repeat)
{
    struct verifier verifier, strict;
    hsort_check_result strictly;
    verify_start(&verifier, keymap_make(file->type, scanner->order));
    verify_start(&strict, verifier.map);
    hsort_status status = add_share(scanner, file, &verifier, repeat ? &strict : NULL);
    if (status == HSORT_OK)
        status = file_check_unchanged(file);
    TRY(comm_agree(scanner->comm, status));
    if (repeat) {
        TRY(verify_finish(&strict, scanner->comm, &strictly));
        *repeat = strictly.first_unstable;
    }
    return verify_finish(&verifier, scanner->comm, result);
}

/* bits [2] = the keys before and at the first disorder, on every rank. Collective. */
static hsort_status fetch_disorder(struct comm *comm, const struct file_in *file, int64_t place, key_code *bits)
{
    const int key_bytes = (int)hsort_type_bytes(file->type);
    key_code pair[2] = {0}; // holds two keys of their own width, one behind the other
    hsort_status status = HSORT_OK;
    if (comm->rank == 0)
        status = file_read(file, place - 1, 2, pair);
    for (int i = 0; i < 2; i++)
        bits[i] = key_load(key_bytes, pair, i);
    TRY(comm_agree(comm, status));
    return comm_check(MPI_Bcast(bits, 2 * KEY_CODE_WORDS, MPI_UINT64_T, 0, comm->world), "MPI_Bcast", false);
}

static bool is_nan(hsort_type type, key_code bits)
{
    char text[REPORT_KEY_TEXT];
    return report_key_text(type, bits, text)[0] == 'n';
}

/* Write the error line of a file that is not in order, and perhaps does not hold the keys of the other file. Returns the
 * status. */
static hsort_status fail_order(struct comm *comm, const struct check_report *report)
{
    char before[REPORT_KEY_TEXT], key[REPORT_KEY_TEXT];
    const key_code *bits = report->disorder;
    const int64_t place = report->found.first_disorder;
    const bool descends = report->order == HSORT_DESCENDING,
               others = report->against && !report_same_keys(report);
    return report_fail(comm, HSORT_MISMATCH,
                       "%s: not in %s order: key %" PRId64 " (%s) %s key %" PRId64 " (%s)%s%s",
                       report->file->path, descends ? "descending" : "ascending", place,
                       report_key_text(report->type, bits[1], key),
                       is_nan(report->type, bits[0]) ? "belongs before"
                       : descends                    ? "is greater than"
                                                     : "is less than",
                       place - 1, report_key_text(report->type, bits[0], before),
                       others ? "; nor does it hold the keys of " : "", others ? report->against->path : "");
}

/* Find what there is in the files. Collective. */
static hsort_status scan_both(struct scanner *scanner, const struct cli_options *options,
                              const struct file_in *file, const struct file_in *other,
                              struct check_report *report)
{
    const double start = MPI_Wtime();
    TRY(scan(scanner, file, &report->found, options->unique ? &report->first_repeat : NULL));
    if (other)
        TRY(scan(scanner, other, &report->other, NULL));
    TRY_MPI(MPI_Allreduce(scanner->counted, report->counted, 3, MPI_UINT64_T, MPI_SUM, scanner->comm->world));
    if (report->found.first_disorder >= 0)
        TRY(fetch_disorder(scanner->comm, file, report->found.first_disorder, report->disorder));
    report->seconds = MPI_Wtime() - start;
    return HSORT_OK;
}

/* Scan both files and report. `other` is NULL without --against. Collective. */
static hsort_status check_files(struct scanner *scanner, const struct cli_options *options,
                                const struct file_in *file, const struct file_in *other)
{
    struct comm *comm = scanner->comm;
    struct check_report report = {.file = file,
                                  .against = other,
                                  .type = file->type,
                                  .order = scanner->order,
                                  .ranks = comm->size,
                                  .unique = options->unique,
                                  .counts = options->counts,
                                  .first_repeat = -1};
    if (scanner->counts)
        TRY(run_trace_check(comm, options, scanner->counts, NULL));
    TRY(run_trace_open(comm, options, file, other, &report.trace));
    TRY(run_trace_close(comm, options, scan_both(scanner, options, file, other, &report), &report.trace));
    TRY(comm_agree(comm, comm->rank == 0 ? report_check(&report, options->json) : HSORT_OK));
    if (report.found.first_disorder >= 0)
        return fail_order(comm, &report);
    if (report.first_repeat >= 0)
        return report_fail(comm, HSORT_MISMATCH, "%s: key %" PRId64 " is that of key %" PRId64 " again",
                           file->path, report.first_repeat, report.first_repeat - 1);
    if (other && !report_same_keys(&report))
        return report_fail(comm, HSORT_MISMATCH, "%s: does not hold the keys of %s%s", file->path,
                           other->path, options->counts ? ", as often as the counts say" : "");
    return HSORT_OK;
}

/* Open the counts of --counts. Collective. */
static hsort_status open_counts(struct comm *comm, const struct cli_options *options,
                                const struct file_in *file, struct file_in *counts)
{
    const struct number_list list = {"counts have one", "counts are of <i8", false};
    TRY(record_io_open_list(comm, options->counts, options->direct_io, &list, counts));
    if (counts->count == file->count)
        return HSORT_OK;
    report_fail(comm, HSORT_ARGUMENT, "%s: has %" PRId64 " counts, and %s has %" PRId64 " keys", counts->path,
                counts->count, file->path, file->count);
    file_close(counts);
    return HSORT_ARGUMENT;
}

hsort_status cli_check(struct comm *comm, const struct cli_options *options)
{
    struct file_in file, other, counts;
    if (hdf5_is_asked(options))
        return hdf5_check(comm, options);
    if (options->key)
        return options->gensort && options->against.count == 0 ? gensort_check(comm, options)
                                                               : records_check(comm, options);
    struct file_source source = record_io_key_source(options);
    TRY(file_open(comm, &source, &file));
    hsort_status status = HSORT_OK;
    source.paths = options->against.text;
    source.paths_count = options->against.count;
    source.type = &file.type; // keys of another type could not be the same: that is an error
    if (options->against.count > 0)
        status = file_open(comm, &source, &other);
    const bool has_other = options->against.count > 0 && status == HSORT_OK;
    if (status == HSORT_OK && options->counts)
        status = open_counts(comm, options, &file, &counts);
    const bool has_counts = options->counts && status == HSORT_OK;
    struct scanner scanner = {.comm = comm,
                              .order = options->reverse ? HSORT_DESCENDING : HSORT_ASCENDING,
                              .counts = has_counts ? &counts : NULL};
    progress_start(&scanner.progress, progress_choose(options->progress, comm->rank));
    if (status == HSORT_OK)
        status = comm_agree(comm, open_scanner(&scanner, options->sort.threads));
    if (status == HSORT_OK)
        status = check_files(&scanner, options, &file, has_other ? &other : NULL);
    close_scanner(&scanner);
    if (has_counts)
        file_close(&counts);
    if (has_other)
        file_close(&other);
    file_close(&file);
    return status;
}
