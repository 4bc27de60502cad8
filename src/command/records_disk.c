/* `sort` of records, or of keys with what travels with them, that memory does not hold: by way of the disk (disk_sort.h), from file to
 * file. Values and positions are sorted as parts of the element (disk_deal.h). The library makes the checks, before and after
 * (disk_passes.h), because runs of an earlier start of the command count. */
#include "src/command/disk_sort.h"
#include "src/command/record_share.h"
#include "src/command/records_run.h"
#include "src/command/stop.h"
#include "src/library/element_columns.h"

/* Are these records alone, which pass as streams if the engine lacks memory? */
static bool are_alone(const struct record_run *run)
{
    return run->options->key && !run->indexed && !run->values.given && !run->options->unique;
}

/* The columns of a sort in memory. Only their bytes count; where they lie is not looked at. */
static struct element_columns columns_in_memory(struct record_run *run)
{
    const size_t bytes[] = {run->elements.bytes, run->values.bytes};
    struct element_columns columns = {.carried_bytes = bytes[0] > bytes[1] ? bytes[0] : bytes[1]};
    for (int i = 0; i < 2; i++)
        if (bytes[i] > 0)
            columns.column[columns.count++] =
                (struct element_column){.bytes = bytes[i], .in = run, .out = run};
    if (run->indexed)
        columns.column[columns.count++] =
            (struct element_column){.bytes = sizeof *run->index, .out = run, .numbers = true};
    return columns;
}

/* Does a rank lack memory for the arrays of such a sort? Collective. */
static hsort_status lacks_arrays(const struct record_run *run, size_t memory_bytes, bool *lacks)
{
    int64_t most;
    TRY(comm_range(run->comm, run->count, NULL, &most));
    const uint64_t bytes = records_bytes(run->options, &run->keys, run->elements.bytes, run->values.bytes);
    *lacks = most > 0 && bytes > memory_bytes / (uint64_t)most;
    return HSORT_OK;
}

hsort_status records_choose_disk(struct record_run *run, size_t *memory_bytes, bool *on_disk)
{
    const struct cli_options *options = run->options;
    struct element_columns columns = columns_in_memory(run);
    bool begun, needs, lacks = false;
    TRY(disk_sort_memory(run->comm, options, memory_bytes));
    TRY(disk_sort_begun(run->comm, options, &begun));
    if (!are_alone(run))
        TRY(lacks_arrays(run, *memory_bytes, &lacks));
    const hsort_status status = columns_need_store(run->ctx, run->keys.fields, run->keys.count, &columns,
                                                   run->count, *memory_bytes, &needs);
    if (status != HSORT_OK)
        return records_keep_line(run, status);
    const bool wanted = begun || options->runs > 0 || options->checkpoint; // in memory it cannot be stopped
    *on_disk = needs || lacks || (run->elements.in.count > 0 && wanted);
    if (!*on_disk && !options->checkpoint)
        stop_unwatch();
    return HSORT_OK;
}

/* Sort from the opened input to whole outputs. */
static hsort_status sort_records_on_disk(struct record_run *run, struct disk_sort *disk,
                                         struct record_share *share)
{
    struct stream_check check;
    struct element_columns columns = {.source = &share->source,
                                      .sink = &share->sink,
                                      .store = disk_sort_store(disk),
                                      .check = &check,
                                      .column = {{.bytes = disk->deal.element_bytes}},
                                      .count = 1};
    const bool looks = !run->options->no_verify, deals = disk->deal.needed;
    const double start = MPI_Wtime();
    bool done;
    share->stops = true;
    share->out = &disk->out;
    const hsort_status status = sort_columns_in_passes(run->ctx, run->keys.fields, run->keys.count, &columns,
                                                       run->count, run->count, &done);
    if (status == HSORT_STOPPED)
        return stop_say(run->comm, share->phase, disk->directory, disk_sort_has_made(disk));
    TRY(records_keep_line(run, status));
    run->read_seconds = share->read_seconds;
    run->write_seconds = share->write_seconds;
    run->sort_seconds = MPI_Wtime() - start - share->read_seconds - share->write_seconds;
    if (looks)
        TRY(records_compare(run, &check.before, &check.after));
    const double sorted = MPI_Wtime();
    const hsort_status dealt = disk_sort_deal(disk, looks ? &check.after : NULL, &run->progress);
    run->write_seconds += MPI_Wtime() - sorted;
    run->report.distinct = disk->deal.distinct;
    run->report.unique_ok = disk->deal.unique_ok;
    run->report.fingerprint_ok = run->report.fingerprint_ok && !disk->deal.differs;
    TRY(dealt);
    return looks && !deals && run->options->verify == CLI_VERIFY_REREAD
               ? records_reread(run, &disk->out, &check.before)
               : HSORT_OK;
}

static hsort_status open_disk_and_sort(struct record_run *run, struct disk_sort *disk, size_t memory_bytes)
{
    struct record_share share;
    struct disk_deal deal;
    disk_deal_describe(run->options, &run->elements.in, run->values.given ? &run->values.in : NULL,
                       &run->keys, false, &deal);
    deal.bytes_beside = run->bytes_beside;
    TRY(disk_sort_open(run->comm, run->options, &deal, run->order, memory_bytes, disk));
    run->report.kept.resumed = disk->checkpoint.found;
    report_stale(run->comm, &disk->out);
    hsort_status status = comm_agree(run->comm, record_share_open(&share, run->comm, &run->progress,
                                                                  &run->elements.in, &run->keys, false));
    share.joined = &disk->deal;
    share.record_bytes = deal.element_bytes;
    if (status == HSORT_OK)
        status = sort_records_on_disk(run, disk, &share);
    record_share_close(&share);
    return status;
}

hsort_status records_by_disk(struct record_run *run, size_t memory_bytes)
{
    struct disk_sort disk;
    run->streamed = true;
    run->indexed = false; // positions are part of the elements, and of their fingerprint
    hsort_status status = open_disk_and_sort(run, &disk, memory_bytes);
    const double start = MPI_Wtime();
    status = disk_sort_end(&disk, status);
    run->write_seconds += MPI_Wtime() - start;
    run->report.run_bytes = disk.run_bytes;
    run->report.kept = disk.kept;
    return status;
}
