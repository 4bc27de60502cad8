#include "src/command/record_io.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/cli.h"
#include "src/command/launch.h"
#include "src/command/report.h"
#include "src/command/run_trace.h"
#include "src/command/stop.h"

struct file_source record_io_key_source(const struct cli_options *options)
{
    return (struct file_source){.paths = options->files,
                                .paths_count = options->files_count,
                                .format = options->format,
                                .type = options->type_given ? &options->type : NULL,
                                .direct_io = options->direct_io};
}

struct file_source record_io_source(const struct cli_options *options)
{
    struct file_source source = record_io_key_source(options);
    source.any = true;
    source.record_bytes = options->record_bytes;
    source.record_word = "--record";
    return source;
}

static hsort_status check_values(struct comm *comm, const struct file_in *elements,
                                 const struct file_in *values)
{
    if (values->count != elements->count)
        return report_fail(comm, HSORT_ARGUMENT, "%s: has %" PRId64 " elements, and %s has %" PRId64,
                           values->path, values->count, elements->path, elements->count);
    if (values->element.bytes > CLI_RECORD_MOST)
        return report_fail(comm, HSORT_ARGUMENT, "%s: has elements of %zu bytes; %d can be moved",
                           values->path, values->element.bytes, CLI_RECORD_MOST);
    return HSORT_OK;
}

hsort_status record_io_open_values(struct comm *comm, const struct cli_options *options,
                                   const struct file_in *elements, struct file_in *values)
{
    const struct file_source source = {.paths = &options->values,
                                       .paths_count = 1,
                                       .format = options->value_bytes > 0 // it says that the file is raw
                                                     ? file_format_resolve(options->values, FILE_AUTO)
                                                     : FILE_AUTO,
                                       .raw_word = "--value-bytes BYTES",
                                       .direct_io = options->direct_io,
                                       .any = true,
                                       .record_bytes = options->value_bytes,
                                       .record_word = "--value-bytes"};
    TRY(file_open(comm, &source, values));
    const hsort_status status = check_values(comm, elements, values);
    if (status != HSORT_OK)
        file_close(values);
    return status;
}

/* A .npy file is opened first as elements of any kind, to say what it holds instead of numbers. Collective. */
static hsort_status check_list_shape(struct comm *comm, const struct file_source *source,
                                     const struct number_list *is)
{
    struct file_source any = *source;
    struct file_in list;
    any.any = true;
    any.format = FILE_AUTO;
    TRY(file_open(comm, &any, &list));
    hsort_status status = HSORT_OK;
    if (list.element.dimensions != 1)
        status = report_fail(comm, HSORT_FORMAT, "%s: has %d dimensions; %s", list.path,
                             list.element.dimensions, is->has);
    else if (!list.is_key)
        status = report_fail(comm, HSORT_FORMAT, "%s: holds no numbers; %s", list.path, is->is_of);
    file_close(&list);
    return status;
}

hsort_status record_io_open_list(struct comm *comm, const char *path, hsort_choice direct_io,
                                 const struct number_list *is, struct file_in *list)
{
    const hsort_type raw_type = HSORT_I64;
    const enum file_format format = file_format_resolve(path, FILE_AUTO); // by its name alone
    const struct file_source source = {.paths = &path,
                                       .paths_count = 1,
                                       .format = format,
                                       .type = format == FILE_RAW ? &raw_type : NULL,
                                       .direct_io = direct_io};
    if (format != FILE_RAW)
        TRY(check_list_shape(comm, &source, is));
    TRY(file_open(comm, &source, list));
    if (list->type == HSORT_I64 || (is->or_unsigned && list->type == HSORT_U64))
        return HSORT_OK;
    report_fail(comm, HSORT_FORMAT, "%s: holds %s; %s", list->path, hsort_type_name(list->type), is->is_of);
    file_close(list);
    return HSORT_FORMAT;
}

hsort_status record_io_open(struct comm *comm, int threads, struct progress *progress, struct record_io *io)
{
    io->progress = progress;
    TRY(launch_threads(comm, threads, &threads));
    return engine_open_host(threads, 0, &io->engine);
}

hsort_status record_io_library(struct comm *comm, const struct cli_options *options, struct progress *progress,
                               hsort_context **ctx, struct record_io *io)
{
    hsort_options sort = options->sort;
    sort.progress = options->progress != PROGRESS_OFF ? progress_steps : NULL;
    sort.progress_user = progress;
    sort.should_stop = stop_is_asked; // while runs are cut; in memory, elements have no safe point
    run_trace_options(options, &sort);
    const hsort_status status = hsort_create(comm->world, &sort, ctx);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(NULL));
    status_clear();
    run_trace_begin(comm, *ctx);
    return comm_agree(comm, record_io_open(comm, options->sort.threads, progress, io));
}

void record_io_close(struct record_io *io)
{
    if (io->engine)
        io->engine->ops->close(io->engine);
    io->engine = NULL;
}

/* engine_transfer.move: from a struct file_in, or to or from a struct file_out. */
static hsort_status read_elements(void *file, int64_t at, size_t bytes, void *host)
{
    return file_read_at(file, at, bytes, host);
}

static hsort_status write_elements(void *file, int64_t at, size_t bytes, void *host)
{
    return file_write_at(file, at, bytes, host);
}

static hsort_status read_back_elements(void *file, int64_t at, size_t bytes, void *host)
{
    return file_read_back_at(file, at, bytes, host);
}

hsort_status record_io_read(struct record_io *io, const struct file_in *file, int64_t first, int64_t count,
                            void *memory)
{
    const int64_t width = (int64_t)file->element.bytes, bytes = count * width;
    for (int64_t done = 0, part; done < bytes; done += part) {
        part = bytes - done < CLI_CHUNK_BYTES ? bytes - done : CLI_CHUNK_BYTES / width * width;
        const int64_t at = first * width + done;
        const struct engine_transfer transfer = {.memory = (char *)memory + done,
                                                 .bytes = (size_t)part,
                                                 .move = read_elements,
                                                 .user = (void *)file,
                                                 .at = at,
                                                 .lead = file_in_lead(file, at)};
        TRY(io->engine->ops->transfer(io->engine, &transfer, 1, NULL, 0));
        if (io->progress)
            progress_bytes(io->progress, "read", done + part, bytes, file->count * width);
    }
    return HSORT_OK;
}

hsort_status record_io_write(struct record_io *io, const struct file_out *file, int64_t first, int64_t count,
                             const void *memory)
{
    const int64_t width = (int64_t)file->key_bytes, bytes = count * width;
    for (int64_t done = 0, part; done < bytes; done += part) {
        part = bytes - done < CLI_CHUNK_BYTES ? bytes - done : CLI_CHUNK_BYTES;
        const int64_t at = first * width + done;
        const struct engine_transfer transfer = {.memory = (char *)memory + done,
                                                 .bytes = (size_t)part,
                                                 .move = write_elements,
                                                 .user = (void *)file,
                                                 .at = at,
                                                 .lead = file_out_lead(file, at)};
        TRY(io->engine->ops->transfer(io->engine, NULL, 0, &transfer, 1));
        if (io->progress)
            progress_bytes(io->progress, "write", done + part, bytes, file->count * width);
    }
    return HSORT_OK;
}

/* memory = bytes at .. at + bytes - 1 of an output's elements. */
static hsort_status read_back(struct record_io *io, const struct file_out *file, int64_t at, int64_t bytes,
                              void *memory)
{
    const struct engine_transfer transfer = {.memory = memory,
                                             .bytes = (size_t)bytes,
                                             .move = read_back_elements,
                                             .user = (void *)file,
                                             .at = at,
                                             .lead = file_out_lead(file, at)};
    return io->engine->ops->transfer(io->engine, &transfer, 1, NULL, 0);
}

hsort_status record_io_read_back(struct record_io *io, const struct file_out *file, int64_t first,
                                 int64_t count, void *memory)
{
    const int64_t width = (int64_t)file->key_bytes;
    return read_back(io, file, first * width, count * width, memory);
}

hsort_status record_io_verify_back(struct record_io *io, const struct file_out *file, int64_t first,
                                   int64_t count, const struct record_keys *keys, struct verifier *verifier)
{
    const int64_t width = (int64_t)file->key_bytes,
                  most = CLI_CHUNK_BYTES / width < count ? CLI_CHUNK_BYTES / width : count;
    hsort_status status = HSORT_OK;
    char *found = malloc((size_t)(most * width) + 1);
    if (!found)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it back", file->path);
    for (int64_t done = 0, part; done < count && status == HSORT_OK; done += part) {
        part = count - done < most ? count - done : most;
        status = read_back(io, file, (first + done) * width, part * width, found);
        const struct engine_elements records =
            record_keys_elements(keys, found, (size_t)width, first + done, part);
        if (status == HSORT_OK)
            status = verify_add_elements(verifier, io->engine, &records);
    }
    free(found);
    return status;
}

hsort_status record_io_compare(struct record_io *io, const struct file_out *file, int64_t first,
                               int64_t count, const void *memory, bool *same)
{
    const int64_t width = (int64_t)file->key_bytes, bytes = count * width;
    const int64_t most = bytes < CLI_CHUNK_BYTES ? bytes : CLI_CHUNK_BYTES;
    hsort_status status = HSORT_OK;
    char *found = malloc((size_t)most + 1);
    *same = true;
    if (!found)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it back", file->path);
    for (int64_t done = 0, part; done < bytes && status == HSORT_OK; done += part) {
        part = bytes - done < most ? bytes - done : most;
        status = read_back(io, file, first * width + done, part, found);
        *same = *same && memcmp(found, (const char *)memory + done, (size_t)part) == 0;
    }
    free(found);
    return status;
}
