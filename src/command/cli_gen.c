/* hypersort gen: every rank makes and writes its share of the keys, chunk by chunk. */
#include "src/command/cli.h"
#include "kernels/engine.h"
#include "mpi/comm/node_memory.h"
#include "src/files/input.h"
#include "src/command/launch.h"
#include "src/command/progress.h"
#include "src/command/record_io.h"
#include "src/command/records.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"

/* What keys are written with: an engine, for its threads, and a chunk of its memory. */
struct writer {
    const struct comm *comm;
    const struct input *input;
    const struct file_out *file;
    struct progress progress;
    struct engine *engine;
    void *chunk; /* [most] keys */
    int64_t most;
};

/* Make keys first .. first + count - 1, and write them by several threads. */
static hsort_status write_chunk(const struct writer *writer, int64_t first, int64_t count)
{
    struct record_io io = {.engine = writer->engine};
    struct trace_span *span = trace_begin(writer->comm->trace, "make keys");
    trace_keys(span, count);
    input_fill(writer->input, first, count, writer->chunk);
    trace_end(span);
    span = trace_begin(writer->comm->trace, "write file");
    trace_bytes(span, count * (int64_t)hsort_type_bytes(writer->input->type));
    return trace_end_with(span, record_io_write(&io, writer->file, first, count, writer->chunk));
}

/* Make and write this rank's keys [count]. Collective over the node; the caller agrees on the status. */
static hsort_status write_share(struct writer *writer, int threads, int64_t first, int64_t count)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(writer->input->type);
    writer->most = count < CLI_CHUNK_BYTES / key_bytes ? count : CLI_CHUNK_BYTES / key_bytes;
    TRY(node_memory_check(writer->comm, (uint64_t)(writer->most * key_bytes)));
    TRY(engine_open_host(threads, 0, &writer->engine));
    TRY(writer->engine->ops->alloc(writer->engine, (size_t)(writer->most * key_bytes), &writer->chunk));
    for (int64_t done = 0; done < count;) {
        const int64_t chunk = count - done < writer->most ? count - done : writer->most;
        TRY(write_chunk(writer, first + done, chunk));
        done += chunk;
        progress_bytes(&writer->progress, "write", done, count, writer->input->count * key_bytes);
    }
    return HSORT_OK;
}

static void close_writer(struct writer *writer)
{
    if (!writer->engine)
        return;
    writer->engine->ops->free(writer->engine, writer->chunk);
    writer->engine->ops->close(writer->engine);
}

/* Create the output, write it, and give it its name. Collective. */
static hsort_status write_key_file(struct comm *comm, const struct cli_options *options,
                                   const struct input *input, int threads)
{
    struct file_out file;
    const int64_t first = launch_share(input->count, comm->rank, comm->size);
    const struct file_target target = {.path = options->output,
                                       .format = options->format,
                                       .type = input->type,
                                       .count = input->count,
                                       .first = first,
                                       .mine = launch_share(input->count, comm->rank + 1, comm->size) - first,
                                       .direct_io = options->direct_io,
                                       .no_clobber = options->no_clobber};
    TRY(file_create(comm, &target, &file));
    report_stale(comm, &file);
    struct writer writer = {.comm = comm, .input = input, .file = &file};
    progress_start(&writer.progress, progress_choose(options->progress, comm->rank));
    const hsort_status status = comm_agree(comm, write_share(&writer, threads, first, target.mine));
    close_writer(&writer);
    struct trace_span *span = trace_begin(comm->trace, "commit");
    return trace_end_with(span, launch_commit(comm, &file, status));
}

hsort_status cli_gen(struct comm *comm, const struct cli_options *options)
{
    struct input input = {.type = options->type_given ? options->type : HSORT_U64,
                          .seed = options->seed,
                          .count = options->count};
    struct run_trace trace;
    if (options->key)
        return records_gen(comm, options);
    if (input_parse(options->distribution, &input) != HSORT_OK)
        return report_fail(comm, HSORT_ARGUMENT, "--dist: %s", status_text());
    int threads;
    TRY(comm_agree(comm, launch_threads(comm, options->sort.threads, &threads)));
    TRY(run_trace_open(comm, options, NULL, NULL, &trace));
    return run_trace_close(comm, options, write_key_file(comm, options, &input, threads), &trace);
}
