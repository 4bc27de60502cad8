/* hypersort gen --record: generated keys in one field of raw records. The other bytes are a hash of the record's position
 * and of their place in the record, so a record that is not whole is no record of the file. Also --format gensort: records of
 * the sort benchmarks. */
#include <stdlib.h>
#include <string.h>
#include "kernels/base/keytype.h"
#include "mpi/comm/node_memory.h"
#include "src/command/launch.h"
#include "src/command/record_io.h"
#include "src/command/record_keys.h"
#include "src/command/records.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/files/gensort.h"
#include "src/files/input.h"

struct gen_run {
    struct comm *comm;
    const struct cli_options *options;
    struct progress progress;
    struct record_io io;
    struct input input;
    hsort_field field;
    int64_t first, count; /* of this rank */
    int64_t most;         /* records of a chunk */
    char *records, *keys; /* [most] of each, owned */
};

static hsort_status parse_field(struct gen_run *run)
{
    const struct cli_options *options = run->options;
    struct record_keys keys;
    run->input.count = options->count;
    if (options->gensort)
        return HSORT_OK;
    TRY(record_keys_parse_raw(options->key, options->output, options->record_bytes, &keys));
    run->field = keys.fields[0];
    if (keys.count > 1 || run->field.bytes != 0 || run->field.order != HSORT_ASCENDING)
        return status_fail(HSORT_ARGUMENT,
                           "--key: '%.128s': gen makes the numbers of one field, @OFFSET:TYPE", options->key);
    run->input = (struct input){.type = run->field.type, .seed = options->seed, .count = options->count};
    return input_parse_option("--dist", options->distribution, &run->input);
}

/* Collective over the node. */
static hsort_status open_writer(struct gen_run *run)
{
    const int64_t width = (int64_t)run->options->record_bytes, fits = CLI_CHUNK_BYTES / width;
    run->most = run->count < fits ? run->count : fits;
    const size_t bytes = (size_t)run->most * (size_t)width, key_bytes = (size_t)run->most * sizeof(uint128);
    TRY(node_memory_check(run->comm, bytes + key_bytes));
    TRY(record_io_open(run->comm, run->options->sort.threads, NULL, &run->io));
    run->records = malloc(bytes + sizeof(uint64_t));
    run->keys = malloc(key_bytes + sizeof(uint128));
    return run->records && run->keys ? HSORT_OK
                                     : status_fail(HSORT_HOST_MEMORY, "no memory for a chunk of records");
}

/* Make a record except its key. */
static void fill_record(int64_t position, size_t bytes, char *record)
{
    for (size_t place = 0; place < bytes; place += sizeof(uint64_t)) {
        uint64_t words[2] = {0, 0};
        fingerprint_add((uint64_t)position * (CLI_RECORD_MOST / sizeof *words) + place / sizeof *words,
                        words);
        memcpy(record + place, words, bytes - place < sizeof *words ? bytes - place : sizeof *words);
    }
}

/* Make records first ... first + count - 1. */
static void fill_chunk(struct gen_run *run, int64_t first, int64_t count)
{
    const size_t width = run->options->record_bytes, key_bytes = hsort_type_bytes(run->field.type);
    input_fill(&run->input, first, count, run->keys);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i++) {
        char *record = run->records + (size_t)i * width;
        const char *key = run->keys + (size_t)i * key_bytes;
        fill_record(first + i, width, record);
        for (size_t byte = 0; byte < key_bytes; byte++)
            record[run->field.offset + byte] = key[run->field.big_endian ? key_bytes - 1 - byte : byte];
    }
}

static void fill_gensort(struct gen_run *run, int64_t first, int64_t count)
{
    const struct gensort kind = {.ascii = run->options->ascii, .skewed = run->options->skewed};
    gensort_fill(&kind, (uint128)run->options->first + (uint64_t)first, count, run->records);
}

static hsort_status write_records(struct gen_run *run, const struct file_out *file)
{
    TRY(open_writer(run));
    for (int64_t done = 0; done < run->count;) {
        const int64_t part = run->count - done < run->most ? run->count - done : run->most;
        struct trace_span *span = trace_begin(run->comm->trace, "make records");
        if (run->options->gensort)
            fill_gensort(run, run->first + done, part);
        else
            fill_chunk(run, run->first + done, part);
        trace_end(span);
        span = trace_begin(run->comm->trace, "write file");
        trace_bytes(span, part * (int64_t)run->options->record_bytes);
        TRY(trace_end_with(span, record_io_write(&run->io, file, run->first + done, part, run->records)));
        done += part;
        progress_bytes(&run->progress, "write", done, run->count,
                       run->input.count * (int64_t)run->options->record_bytes);
    }
    return HSORT_OK;
}

/* Create the output, write it, and give it its name. Collective. */
static hsort_status write_record_file(struct gen_run *run)
{
    struct comm *comm = run->comm;
    const struct cli_options *options = run->options;
    const struct npy_element element = {.bytes = options->record_bytes, .dimensions = 1};
    const struct file_target target = {.path = options->output,
                                       .format = options->format,
                                       .element = &element,
                                       .count = options->count,
                                       .first = run->first,
                                       .mine = run->count,
                                       .direct_io = options->direct_io,
                                       .no_clobber = options->no_clobber};
    struct file_out file;
    TRY(file_create(comm, &target, &file));
    report_stale(comm, &file);
    progress_start(&run->progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = comm_agree(comm, write_records(run, &file));
    struct trace_span *span = trace_begin(comm->trace, "commit");
    return trace_end_with(span, launch_commit(comm, &file, status));
}

hsort_status records_gen(struct comm *comm, const struct cli_options *options)
{
    struct gen_run run = {.comm = comm, .options = options};
    struct run_trace trace;
    const hsort_status parsed = parse_field(&run);
    if (parsed != HSORT_OK) // the same on every rank
        return report_fail(comm, parsed, "%s", status_text());
    run.first = launch_share(options->count, comm->rank, comm->size);
    run.count = launch_share(options->count, comm->rank + 1, comm->size) - run.first;
    TRY(run_trace_open(comm, options, NULL, NULL, &trace));
    const hsort_status status = run_trace_close(comm, options, write_record_file(&run), &trace);
    record_io_close(&run.io);
    free(run.records);
    free(run.keys);
    return status;
}
