#include "src/command/disk_sort.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "src/command/launch.h"
#include "src/command/stop.h"

/* name = DIR. Not collective. */
static hsort_status name_directory(const struct cli_options *options, const char *output, char *name)
{
    if (!options->checkpoint)
        return run_files_name(options->temporary.count > 0 ? options->temporary.text[0] : NULL, output, name);
    if (strlen(options->checkpoint) >= PATH_MAX)
        return status_fail(HSORT_IO, "%.200s: is too long a name", options->checkpoint);
    strcpy(name, options->checkpoint);
    return HSORT_OK;
}

/* Is there a plan of runs? Without one, the checkpoint, if there is one, is of a sort in memory. Not collective. */
static bool plan_is_there(const struct cli_options *options, const char *output)
{
    char name[PATH_MAX], path[PATH_MAX + 16];
    const char *temporary = options->temporary.count > 0 ? options->temporary.text[0] : NULL;
    if (run_files_name(temporary, output, name) != HSORT_OK) {
        status_clear(); // writing there will fail with that cause
        return false;
    }
    snprintf(path, sizeof path, "%s/plan", name);
    return access(path, F_OK) == 0;
}

hsort_status disk_sort_begun(struct comm *comm, const struct cli_options *options, bool *begun)
{
    const bool mine = comm->rank == 0 && plan_is_there(options, disk_deal_main_output(options));
    return comm_any(comm, mine, begun);
}

hsort_status disk_sort_check_runs(struct comm *comm, const struct cli_options *options,
                                  const struct file_in *keys)
{
    if (options->runs == 0 || hsort_type_bytes(keys->type) >= sizeof(uint32_t))
        return HSORT_OK;
    return report_fail(comm, HSORT_ARGUMENT,
                       "%s: --runs: keys of 1 or 2 bytes are counted, and never go by way of the disk",
                       keys->path);
}

hsort_status disk_sort_memory(struct comm *comm, const struct cli_options *options, size_t *bytes)
{
    size_t own = 0;
    int64_t least;
    TRY(comm_agree(comm, cli_memory(comm, options, &own)));
    TRY(comm_range(comm, own < INT64_MAX ? (int64_t)own : INT64_MAX, &least, NULL));
    *bytes = (size_t)least;
    return HSORT_OK;
}

/* part [PATH_MAX] = DIR/sorted; with --checkpoint, because DIR may have no room, a name beside the first RUNS. */
static hsort_status name_sorted(const struct disk_sort *disk, char *part)
{
    const struct cli_options *options = disk->options;
    char runs[PATH_MAX];
    const char *first = options->temporary.count > 0 ? options->temporary.text[0] : NULL;
    TRY(run_files_name(first, disk->deal.main_output, runs));
    const int bytes = options->checkpoint ? snprintf(part, PATH_MAX, "%s-%016" PRIx64 "-" DISK_SORTED, runs,
                                                     disk->checkpoint.id)
                                          : snprintf(part, PATH_MAX, "%s/" DISK_SORTED, disk->directory);
    return bytes < PATH_MAX ? HSORT_OK : status_fail(HSORT_IO, "%.200s: is too long a name", runs);
}

/* Open what segments go to: the output itself, or the file named above, which holds elements of all columns. */
static hsort_status open_sorted(struct disk_sort *disk, bool *kept)
{
    const struct cli_options *options = disk->options;
    const struct disk_deal *deal = &disk->deal;
    const struct deal_column *column = &deal->column[0];
    const struct npy_element joined = {.bytes = deal->element_bytes};
    char *part = disk->checkpoint.part, name[PATH_MAX];
    struct file_target target = {.path = options->output,
                                 .format = options->output_format,
                                 .type = column->type,
                                 .element = column->element,
                                 .count = deal->count,
                                 .input = column->in,
                                 .direct_io = options->direct_io,
                                 .no_clobber = options->no_clobber};
    if (deal->needed) {
        hsort_status status = name_sorted(disk, part);
        if (status == HSORT_OK)
            status = file_name_as_is(part, name);
        TRY(comm_agree(disk->comm, status));
        target.path = name;
        target.format = FILE_RAW;
        target.element = &joined;
        target.no_clobber = false;
    }
    return file_resume(disk->comm, &target, part, &disk->out, kept);
}

static hsort_status open_disk_files(struct disk_sort *disk, hsort_order order, size_t memory_bytes)
{
    static const char *const beside_output[] = {NULL};
    struct comm *comm = disk->comm;
    const struct cli_options *options = disk->options;
    struct disk_deal *deal = &disk->deal;
    const char *output = deal->main_output;
    char text[PATH_MAX];
    struct run_files_target runs = {
        .temporary = options->temporary.text,
        .temporary_count = options->temporary.count,
        .temporary_limit = (int64_t)options->temporary_limit,
        .other_bytes = deal->bytes_beside + (deal->needed ? deal->count * (int64_t)deal->element_bytes : 0),
        .output = output,
        .direct_io = options->direct_io,
        .checkpoint = &disk->checkpoint,
        .out = &disk->out};
    if (runs.temporary_count == 0) {
        runs.temporary = beside_output;
        runs.temporary_count = 1;
    }
    TRY(comm_agree(comm, name_directory(options, output, disk->directory)));
    TRY(disk_deal_text(comm, deal, text, sizeof text));
    TRY(checkpoint_open(comm, disk->directory, deal->column[0].in, output,
                        output == options->output ? options->output_format : FILE_AUTO, order,
                        text[0] ? text : NULL, &disk->checkpoint));
    disk->has_checkpoint = true;
    TRY(open_sorted(disk, &runs.kept));
    disk->has_output = true;
    deal->tag = disk->checkpoint.id;
    deal->memory_bytes = memory_bytes;
    TRY(disk_deal_open(comm, deal));
    const hsort_status opened = comm_agree(comm, run_files_open(comm, &runs, &disk->files));
    if (opened != HSORT_OK) { // then no rank may have them, because ending them is collective
        run_files_close(disk->files);
        disk->files = NULL;
        return opened;
    }
    struct run_store *store = run_files_store(disk->files);
    store->memory_bytes = memory_bytes;
    store->parts = options->runs;
    return HSORT_OK;
}

hsort_status disk_sort_open(struct comm *comm, const struct cli_options *options,
                            const struct disk_deal *deal, hsort_order order, size_t memory_bytes,
                            struct disk_sort *disk)
{
    *disk = (struct disk_sort){.comm = comm, .options = options, .deal = *deal};
    stop_watch();
    return open_disk_files(disk, order, memory_bytes);
}

hsort_status disk_sort_deal(struct disk_sort *disk, const hsort_check_result *wanted,
                            struct progress *progress)
{
    if (!disk->deal.needed)
        return HSORT_OK;
    struct trace_span *span = trace_begin(disk->comm->trace, "deal out");
    const hsort_status status = trace_end_with(
        span, disk_deal_out(disk->comm, &disk->deal, &disk->out, disk->files, wanted, progress));
    return status == HSORT_STOPPED
               ? stop_say(disk->comm, "the result was dealt out", disk->directory, disk_sort_has_made(disk))
               : status;
}

/* Before the store is open, everything is as the earlier run has left it. */
bool disk_sort_has_made(const struct disk_sort *disk)
{
    if (!disk->files || !run_files_are_open(disk->files))
        return disk->checkpoint.found;
    return run_files_bytes(disk->files) > 0 || run_files_kept(disk->files)->segments > 0;
}

const struct run_store *disk_sort_store(const struct disk_sort *disk)
{
    return run_files_store(disk->files);
}

/* ---- the end ------------------------------------------------------------------------------------------- */

/* text [room] = what stays beside the runs, for the line of a full disk. Returns text. */
static const char *name_other_rest(const struct disk_sort *disk, char *text, size_t room)
{
    const bool in_runs = disk->deal.needed && !disk->options->checkpoint;
    snprintf(text, room, "%.300s", in_runs ? "" : disk->checkpoint.part);
    const size_t bytes = strlen(text);
    if (disk->deal.needed)
        snprintf(text + bytes, room - bytes, "%sany .hypersort-%016" PRIx64 "-dealt.part of an output",
                 in_runs ? "" : " and ", disk->checkpoint.id);
    return text;
}

/* After a failure, write the line of the rank that the store knows of. *full = was a disk full on any rank? Then the line also says what
 * stays, and what can be done. Collective. */
static hsort_status complete_line(struct disk_sort *disk, hsort_status status, bool *full)
{
    char line[sizeof disk->comm->error], rest[400];
    *full = false;
    if (status == HSORT_OK || status == HSORT_STOPPED || !disk->files)
        return status;
    const char *known = run_files_error(disk->files);
    snprintf(line, sizeof line, "%s", known[0] ? known : disk->comm->error);
    TRY(comm_any(disk->comm, run_files_disk_is_full(disk->files) || disk_deal_is_full(&disk->deal), full));
    if (*full)
        return report_fail(disk->comm, status,
                           "%.*s; %" PRId64
                           " bytes of runs stay in %.300s: the same command goes on when there is "
                           "room; to give up, remove that and %s",
                           (int)sizeof line / 2, line, disk->run_bytes, run_files_where(disk->files),
                           name_other_rest(disk, rest, sizeof rest));
    return report_fail(disk->comm, status, "%s", line);
}

/* Note for the report what this run of the command need not make again. */
static void note_kept(struct disk_sort *disk)
{
    const struct run_files_kept *kept = run_files_kept(disk->files);
    disk->run_bytes = run_files_bytes(disk->files);
    disk->kept = (struct report_kept){.resumed = disk->checkpoint.found,
                                      .by_disk = true,
                                      .bytes = kept->segment_bytes,
                                      .runs = kept->runs,
                                      .segments = kept->segments,
                                      .run_bytes = kept->run_bytes,
                                      .dealt = disk->deal.kept_pieces};
}

/* Remove all but the output. */
static void remove_files(struct disk_sort *disk)
{
    if (disk->files)
        run_files_remove(disk->comm, disk->files);
    if (disk->has_checkpoint)
        checkpoint_remove(disk->comm, &disk->checkpoint);
}

/* End what segments went to, if it is not to stay: the output as launch_commit() does for `status`, or DIR/sorted, which is removed. */
static hsort_status end_sorted(struct disk_sort *disk, hsort_status status)
{
    if (disk->has_output && !disk->deal.needed)
        return launch_commit(disk->comm, &disk->out, status);
    if (disk->has_output)
        file_drop(disk->comm, &disk->out);
    return status;
}

hsort_status disk_sort_end(struct disk_sort *disk, hsort_status status)
{
    bool full = false;
    if (disk->files)
        note_kept(disk);
    const bool lost = launch_lost(disk->comm, status);
    if (!lost)
        status = complete_line(disk, status, &full);
    // What an earlier run has made also stays if this run could not even begin, for example for lack of memory or room.
    const bool began = disk->files && run_files_are_open(disk->files);
    const bool stays =
        lost || full || status == HSORT_STOPPED || (status != HSORT_OK && !began && disk->checkpoint.found);
    if (!lost && disk->deal.needed)
        status = disk_deal_end(disk->comm, &disk->deal, status, stays);
    if (stays && !lost && disk->has_output)
        file_leave(disk->comm, &disk->out);
    if (!stays)
        status = end_sorted(disk, status);
    if (!stays)
        remove_files(disk);
    run_files_close(disk->files);
    if (disk->has_checkpoint)
        checkpoint_close(&disk->checkpoint);
    if (!stays && disk->comm->rank == 0 && !disk->options->checkpoint && disk->directory[0])
        rmdir(disk->directory); // fails if something else is in it
    return status;
}
