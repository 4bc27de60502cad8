#include "src/command/disk_sort.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/command/launch.h"
#include "src/command/stop.h"

/* DIR. Not collective. */
static hsort_status name_directory(const struct cli_options *options, char *name)
{
    if (!options->checkpoint)
        return run_files_name(options->temporary.count > 0 ? options->temporary.text[0] : NULL,
                              options->output, name);
    if (strlen(options->checkpoint) >= PATH_MAX)
        return status_fail(HSORT_IO, "%.200s: is too long a name", options->checkpoint);
    strcpy(name, options->checkpoint);
    return HSORT_OK;
}

/* A plan of runs stands beside the manifest, or --checkpoint is of a sort in memory. Not collective. */
static bool plan_is_there(const struct cli_options *options)
{
    char name[PATH_MAX], path[PATH_MAX + 16];
    const char *temporary = options->temporary.count > 0 ? options->temporary.text[0] : NULL;
    if (run_files_name(temporary, options->output, name) != HSORT_OK) {
        status_clear(); // to write there fails with that cause
        return false;
    }
    snprintf(path, sizeof path, "%s/plan", name);
    return access(path, F_OK) == 0;
}

hsort_status disk_sort_begun(struct comm *comm, const struct cli_options *options, bool *begun)
{
    int64_t none, some;
    const bool mine =
        comm->rank == 0 && options->output && !file_is_pattern(options->output) && plan_is_there(options);
    TRY(comm_range(comm, mine, &none, &some));
    *begun = some;
    return HSORT_OK;
}

hsort_status disk_sort_memory(struct comm *comm, const struct cli_options *options, size_t *bytes)
{
    size_t own = 0;
    int64_t least, most;
    TRY(comm_agree(comm, cli_memory(comm, options, &own)));
    TRY(comm_range(comm, own < INT64_MAX ? (int64_t)own : INT64_MAX, &least, &most));
    *bytes = (size_t)least;
    return HSORT_OK;
}

static hsort_status open_disk_files(struct disk_sort *disk, const struct file_in *in,
                                    const struct npy_element *element, hsort_order order, size_t memory_bytes)
{
    static const char *const beside_output[] = {NULL};
    struct comm *comm = disk->comm;
    const struct cli_options *options = disk->options;
    const struct file_target target = {.path = options->output,
                                       .format = options->output_format,
                                       .type = in->type,
                                       .element = element,
                                       .count = in->count,
                                       .input = in,
                                       .direct_io = options->direct_io,
                                       .no_clobber = options->no_clobber};
    struct run_files_target runs = {.temporary = options->temporary.text,
                                    .temporary_count = options->temporary.count,
                                    .temporary_limit = (int64_t)options->temporary_limit,
                                    .output = options->output,
                                    .direct_io = options->direct_io,
                                    .checkpoint = &disk->checkpoint,
                                    .out = &disk->out};
    if (runs.temporary_count == 0) {
        runs.temporary = beside_output;
        runs.temporary_count = 1;
    }
    TRY(comm_agree(comm, name_directory(options, disk->directory)));
    TRY(checkpoint_open(comm, disk->directory, in, options->output, options->output_format, order,
                        options->key, &disk->checkpoint));
    disk->has_checkpoint = true;
    TRY(file_resume(comm, &target, disk->checkpoint.part, &disk->out, &runs.kept));
    disk->has_output = true;
    TRY(comm_agree(comm, run_files_open(comm, &runs, &disk->files)));
    struct run_store *store = run_files_store(disk->files);
    store->memory_bytes = memory_bytes;
    store->parts = options->runs;
    return HSORT_OK;
}

hsort_status disk_sort_open(struct comm *comm, const struct cli_options *options, const struct file_in *in,
                            const struct npy_element *element, hsort_order order, size_t memory_bytes,
                            struct disk_sort *disk)
{
    *disk = (struct disk_sort){.comm = comm, .options = options};
    if (file_is_pattern(options->output))
        return report_fail(
            comm, HSORT_ARGUMENT,
            "%s: memory of %zu bytes on each rank does not do, and a file per rank, as '%%r' makes, is not "
            "written by way of the disk: give one output, or more --memory",
            options->output, memory_bytes);
    if (!options->checkpoint)
        stop_watch();
    return open_disk_files(disk, in, element, order, memory_bytes);
}

const struct run_store *disk_sort_store(const struct disk_sort *disk)
{
    return run_files_store(disk->files);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* After a failure: the line of the rank that the store knows of; and was a disk full on any rank? Then the line says what stays,
 * and what can be done. Collective. */
static hsort_status complete_line(struct disk_sort *disk, hsort_status status, bool *full)
{
    char line[sizeof disk->comm->error];
    int64_t none, some;
    *full = false;
    if (status == HSORT_OK || status == HSORT_STOPPED || !disk->files)
        return status;
    const char *known = run_files_error(disk->files);
    snprintf(line, sizeof line, "%s", known[0] ? known : disk->comm->error);
    TRY(comm_range(disk->comm, run_files_disk_is_full(disk->files), &none, &some));
    *full = some;
    if (some)
        return report_fail(
            disk->comm, status,
            "%.*s; %" PRId64 " bytes of runs stay in %.300s: the same command goes on when there is "
            "room; to give up, remove that and %.300s",
            (int)sizeof line / 2, line, disk->run_bytes, run_files_where(disk->files), disk->checkpoint.part);
    return report_fail(disk->comm, status, "%s", line);
}

/* Let go of what stays. */
static void leave_files(struct disk_sort *disk)
{
    if (disk->has_output)
        file_leave(disk->comm, &disk->out);
}

/* What this run of the command need not make again, for its report. */
static void note_kept(struct disk_sort *disk)
{
    const struct run_files_kept *kept = run_files_kept(disk->files);
    disk->run_bytes = run_files_bytes(disk->files);
    disk->kept = (struct report_kept){.resumed = disk->checkpoint.found,
                                      .by_disk = true,
                                      .bytes = kept->segment_bytes,
                                      .runs = kept->runs,
                                      .segments = kept->segments,
                                      .run_bytes = kept->run_bytes};
}

/* Remove all but the output. */
static void remove_files(struct disk_sort *disk)
{
    if (disk->files)
        run_files_remove(disk->comm, disk->files);
    if (disk->has_checkpoint)
        checkpoint_remove(disk->comm, &disk->checkpoint);
}

hsort_status disk_sort_end(struct disk_sort *disk, hsort_status status)
{
    bool full = false;
    if (disk->files)
        note_kept(disk);
    const bool lost = launch_lost(disk->comm, status);
    if (!lost)
        status = complete_line(disk, status, &full);
    const bool stays = lost || full || status == HSORT_STOPPED;
    if (stays && !lost)
        leave_files(disk);
    if (!stays && disk->has_output)
        status = launch_commit(disk->comm, &disk->out, status);
    if (!stays)
        remove_files(disk);
    run_files_close(disk->files);
    if (disk->has_checkpoint)
        checkpoint_close(&disk->checkpoint);
    if (!stays && disk->comm->rank == 0 && !disk->options->checkpoint && disk->directory[0])
        rmdir(disk->directory); // not if something else is in it
    return status;
}
