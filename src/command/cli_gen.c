/* hypersort gen: every rank makes and writes its share of the keys, chunk by chunk. */
#include "src/command/cli.h"
#include "mpi/comm/node_memory.h"
#include "src/files/input.h"
#include "src/command/launch.h"
#include "src/command/progress.h"
#include "src/command/report.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Make and write this rank's keys. Collective over the node; the caller agrees on the status. */
static hsort_status write_share(const struct comm *comm, const struct input *input,
                                const struct file_out *file, struct progress *progress)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(input->type);
    const int64_t first = launch_share(input->count, comm->rank, comm->size);
    const int64_t count = launch_share(input->count, comm->rank + 1, comm->size) - first;
    const int64_t most = count < CLI_CHUNK_BYTES / key_bytes ? count : CLI_CHUNK_BYTES / key_bytes;
    TRY(node_memory_check(comm, (uint64_t)(most * key_bytes)));
    void *keys = fault_hit(FAULT_ALLOC) ? NULL : malloc((size_t)(most * key_bytes) + 1);
    if (!keys)
        return status_fail(HSORT_HOST_MEMORY, "no memory for a chunk of %" PRId64 " keys", most);
    hsort_status status = HSORT_OK;
    for (int64_t done = 0; done < count && status == HSORT_OK;) {
        const int64_t chunk = count - done < most ? count - done : most;
        input_fill(input, first + done, chunk, keys);
        status = file_write(file, first + done, chunk, keys);
        done += chunk;
        if (status == HSORT_OK)
            progress_bytes(progress, "write", done, count, input->count * key_bytes);
    }
    free(keys);
    return status;
}

hsort_status cli_gen(struct comm *comm, const struct cli_options *options)
{
    struct input input = {.type = options->type_given ? options->type : HSORT_U64,
                          .seed = options->seed,
                          .count = options->count};
    if (input_parse(options->distribution, &input) != HSORT_OK)
        return report_fail(comm, HSORT_ARGUMENT, "--dist: %s", status_text());
    int threads;
    TRY(comm_agree(comm, launch_threads(comm, options->sort.threads, &threads)));

    struct file_out file;
    const int64_t first = launch_share(input.count, comm->rank, comm->size);
    const struct file_target target = {.path = options->output,
                                       .format = options->format,
                                       .type = input.type,
                                       .count = input.count,
                                       .first = first,
                                       .mine = launch_share(input.count, comm->rank + 1, comm->size) - first,
                                       .direct_io = options->direct_io};
    TRY(file_create(comm, &target, &file));
    report_stale(comm, &file);
    struct progress progress;
    progress_start(&progress, options->progress && comm->rank == 0);
    hsort_status status = comm_agree(comm, write_share(comm, &input, &file, &progress));
    return launch_commit(comm, &file, status);
}
