/* sort, of records alone that memory does not hold: by way of the disk (disk_sort.h), from file to file. What is looked at, before
 * and after, the library looks at (disk_passes.h), since runs of an earlier start of the command count. */
#include "src/command/disk_sort.h"
#include "src/command/launch.h"
#include "src/command/record_share.h"
#include "src/command/records_run.h"
#include "src/command/stop.h"
#include "src/library/element_columns.h"

static struct element_columns columns_of(const struct record_run *run, const struct record_share *share)
{
    return (struct element_columns){.source = share ? &share->source : NULL,
                                    .sink = share ? &share->sink : NULL,
                                    .column = {{.bytes = run->elements.bytes}},
                                    .count = 1,
                                    .carried_bytes = run->elements.bytes};
}

hsort_status records_choose_disk(struct record_run *run, size_t *memory_bytes, bool *on_disk)
{
    const struct cli_options *options = run->options;
    bool begun, needs;
    *on_disk = false;
    if (!options->key || run->indexed || run->values.given || options->unique)
        return HSORT_OK;
    struct element_columns columns = columns_of(run, NULL);
    // As many bytes come and go: the columns of the sort itself are streams, which have no arrays.
    columns.column[0].in = columns.column[0].out = &columns;
    TRY(disk_sort_memory(run->comm, options, memory_bytes));
    TRY(disk_sort_begun(run->comm, options, &begun));
    const hsort_status status = columns_need_store(run->ctx, run->keys.fields, run->keys.count, &columns,
                                                   run->count, run->count, *memory_bytes, &needs);
    if (status != HSORT_OK)
        return records_keep_line(run, status);
    *on_disk = needs || (run->elements.in.count > 0 && (begun || options->runs > 0));
    return HSORT_OK;
}

/* From the opened output to a whole one. */
static hsort_status sort_records_on_disk(struct record_run *run, struct disk_sort *disk,
                                         struct record_share *share)
{
    struct stream_check check;
    struct element_columns columns = columns_of(run, share);
    const double start = MPI_Wtime();
    bool done;
    columns.store = disk_sort_store(disk);
    columns.check = &check;
    share->stops = true;
    share->out = &disk->out;
    const hsort_status status = sort_columns_in_passes(run->ctx, run->keys.fields, run->keys.count, &columns,
                                                       run->count, run->count, &done);
    if (status == HSORT_STOPPED)
        return stop_say(run->comm, share->phase, disk->directory);
    TRY(records_keep_line(run, status));
    run->read_seconds = share->read_seconds;
    run->write_seconds = share->write_seconds;
    run->sort_seconds = MPI_Wtime() - start - share->read_seconds - share->write_seconds;
    if (run->options->no_verify)
        return HSORT_OK;
    TRY(records_compare(run, &check.before, &check.after));
    return run->options->verify == CLI_VERIFY_REREAD ? records_reread(run, &disk->out, &check.before)
                                                     : HSORT_OK;
}

static hsort_status open_disk_and_sort(struct record_run *run, struct disk_sort *disk, size_t memory_bytes)
{
    struct record_share share;
    TRY(disk_sort_open(run->comm, run->options, &run->elements.in, &run->elements.in.element, run->order,
                       memory_bytes, disk));
    report_stale(run->comm, &disk->out);
    hsort_status status = comm_agree(run->comm, record_share_open(&share, run->comm, &run->progress,
                                                                  &run->elements.in, &run->keys, false));
    if (status == HSORT_OK)
        status = sort_records_on_disk(run, disk, &share);
    record_share_close(&share);
    return status;
}

hsort_status records_by_disk(struct record_run *run, size_t memory_bytes)
{
    struct disk_sort disk;
    run->streamed = true;
    hsort_status status = open_disk_and_sort(run, &disk, memory_bytes);
    const double start = MPI_Wtime();
    status = disk_sort_end(&disk, status);
    run->write_seconds += MPI_Wtime() - start;
    run->report.run_bytes = disk.run_bytes;
    run->report.kept = disk.kept;
    return status;
}
