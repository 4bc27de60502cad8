/* The order of rows whose keys memory does not hold. The keys are written to a file of their own, which is sorted by way of the disk with
 * --index, as raw records are (disk_sort.h). Parts of datasets are then brought into the order that the index file says.
 *
 *     datasets of keys    OUT.hypersort-keys        runs               OUT.hypersort-order       beside OUT, or in the first RUNS
 *      7 | 3 | 9 | 1  -->  7 3 9 1           -->     3 7 | 1 9   -->    3 1 0 2
 *
 * The file of keys gets the time of the input's last change, so that to the runs that a stop has left it is the same input
 * (checkpoint.h), although each start of the command writes it anew. Which files the input is of, and of which times, stands in the
 * manifest as a part of the key. Nothing but runs outlasts the command, unless it is killed. All of it is readable for its owner only.
 *
 * Rejected   to keep the file of keys after a stop: its maker may have been killed, and what tells whether it is whole and of this input
 *            would be a manifest of its own; reading keys again takes less time than sorting them. To sort the order's file and the
 *            datasets in one sort that can be stopped: what HDF5 has written of a dataset cannot be told after a kill */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/checksum.h"
#include "kernels/base/lesser.h"
#include "src/checkpoint/run_files.h"
#include "src/command/disk_sort.h"
#include "src/command/hdf5/hdf5_run.h"
#include "src/command/launch.h"
#include "src/command/records_run.h"
#include "src/command/stop.h"
#include "src/files/file_guard.h"
#include "src/files/io_error.h"

/* Its names, and the sort of the file of keys as a command of its own. */
struct key_sort {
    char keys[PATH_MAX], order[PATH_MAX];
    char keys_output[PATH_MAX], order_output[PATH_MAX]; /* the same as names of outputs */
    char key[2 * PATH_MAX];                             /* what its manifest says that it is by */
    const char *file;                                   /* keys */
    struct cli_options options;
};

/* ---- Names: not collective --------------------------------------------------------------------------------------- */

/* name [PATH_MAX] = that of the runs of OUT, with another last word; output [PATH_MAX] = the same as the name of an output. */
static hsort_status name_beside_runs(const char *runs, const char *word, char *name, char *output)
{
    const char *last = strrchr(runs, '-');
    const int before = last ? (int)(last - runs) : 0;
    if (snprintf(name, PATH_MAX, "%.*s-%s", before, runs, word) >= PATH_MAX)
        return status_fail(HSORT_IO, "%.200s: is too long a name", runs);
    return file_name_as_is(name, output);
}

static hsort_status describe_key_sort(const struct hdf5_run *run, struct key_sort *sort)
{
    const struct cli_options *options = run->options;
    struct hdf5_place place;
    char runs[PATH_MAX];
    *sort = (struct key_sort){.file = sort->keys, .options = *options};
    TRY(hdf5_place_parse(options->output, &place));
    TRY(run_files_name(options->temporary.count > 0 ? options->temporary.text[0] : NULL, place.file, runs));
    TRY(name_beside_runs(runs, "keys", sort->keys, sort->keys_output));
    TRY(name_beside_runs(runs, "order", sort->order, sort->order_output));
    snprintf(sort->key, sizeof sort->key, "%s%s%s of inputs %016" PRIx64, run->in.place.path,
             options->key ? " " : "", options->key ? options->key : "",
             file_add_identity(&run->in.files, CHECKSUM_START));
    sort->options.files = &sort->file;
    sort->options.files_count = 1;
    sort->options.key = sort->key;
    sort->options.output = NULL;
    sort->options.index = sort->order_output;
    sort->options.no_clobber = false;
    return HSORT_OK;
}

hsort_status hdf5_disk_order_begun(struct hdf5_run *run, bool *begun)
{
    struct key_sort sort;
    TRY(comm_agree(run->comm, describe_key_sort(run, &sort)));
    return disk_sort_begun(run->comm, &sort.options, begun);
}

/* ---- The file of keys -------------------------------------------------------------------------------------------- */

/* Write the keys of this rank's rows, some at a time, until all ranks are to stop. Not collective. */
static hsort_status write_key_pieces(struct hdf5_run *run, const struct file_out *out, struct stop_vote *vote)
{
    const int64_t end = run->first + run->count,
                  most = greater(1, (int64_t)(run->key_rows_bytes / (size_t)run->keys.key_bytes));
    char *records;
    TRY(hdf5_take_rows(run, lesser(most, run->count), (size_t)run->keys.key_bytes, &records));
    hsort_status status = HSORT_OK;
    for (int64_t at = run->first, count; at < end && status == HSORT_OK && !stop_vote_seen(vote);
         at += count) {
        count = lesser(most, end - at);
        status = hdf5_read_keys(run, at, count, records);
        const double start = MPI_Wtime();
        if (status == HSORT_OK)
            status = record_io_write(&run->io, out, at, count, records);
        run->write_seconds += MPI_Wtime() - start;
    }
    free(records);
    return status;
}

/* The same on all ranks. Collective. Errors also HSORT_STOPPED. */
static hsort_status write_all_keys(struct hdf5_run *run, const struct file_out *out)
{
    struct stop_vote vote;
    bool stopped;
    int asked;
    stop_vote_begin(&vote, run->comm);
    const hsort_status mine = write_key_pieces(run, out, &vote);
    TRY(comm_agree(run->comm, stop_vote_end(&vote, mine, &stopped)));
    if (!stopped)
        return comm_agree(run->comm, file_check_unchanged(&run->in.files));
    TRY(stop_agree(run->comm, &asked));
    return report_fail(run->comm, HSORT_STOPPED, "stopped by %s while keys were read; the same command %s",
                       stop_signal_name(asked),
                       run->order_begun ? "reads them again, and goes on with the runs that are there"
                                        : "begins anew, because nothing has been made yet");
}

/* Give the file of keys the time of the last change of any file of the input. Not collective. */
static hsort_status date_keys(const struct hdf5_run *run, const char *path)
{
    const struct file_in *files = &run->in.files;
    struct timespec last = files->part[0].changed;
    for (int i = 1; i < files->parts; i++) {
        const struct timespec *changed = &files->part[i].changed;
        if (changed->tv_sec > last.tv_sec ||
            (changed->tv_sec == last.tv_sec && changed->tv_nsec > last.tv_nsec))
            last = *changed;
    }
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, last};
    return utimensat(AT_FDCWD, path, times, 0) == 0 ? HSORT_OK : io_fail(path, "cannot be given a time");
}

/* Collective. */
static hsort_status write_keys_file(struct hdf5_run *run, const struct key_sort *sort)
{
    const struct npy_element element = {.bytes = (size_t)run->keys.key_bytes, .dimensions = 1};
    const struct file_target target = {.path = sort->keys_output,
                                       .format = FILE_RAW,
                                       .element = &element,
                                       .count = run->in.count,
                                       .input = &run->in.files,
                                       .direct_io = run->options->direct_io};
    struct file_out out;
    TRY(file_create(run->comm, &target, &out));
    TRY(launch_commit(run->comm, &out, write_all_keys(run, &out)));
    return comm_agree(run->comm, run->comm->rank == 0 ? date_keys(run, sort->keys) : HSORT_OK);
}

/* ---- The sort: collective ------------------------------------------------------------------------------------------ */

static hsort_status sort_keys_file(struct hdf5_run *run, const struct key_sort *sort)
{
    const struct file_source source = {.paths = &sort->file,
                                       .paths_count = 1,
                                       .format = FILE_RAW,
                                       .direct_io = sort->options.direct_io,
                                       .any = true,
                                       .record_bytes = (size_t)run->keys.key_bytes};
    struct record_run keys = {.comm = run->comm,
                              .options = &sort->options,
                              .order = sort->options.reverse ? HSORT_DESCENDING : HSORT_ASCENDING,
                              .ctx = run->ctx,
                              .io = {.engine = run->io.engine, .progress = &run->progress},
                              .keys = run->packed,
                              .first = run->first,
                              .count = run->count,
                              .out_first = run->first,
                              .out_count = run->count,
                              .out_total = run->in.count,
                              // the file of keys, and the index
                              .bytes_beside =
                                  run->in.count * (run->keys.key_bytes + (int64_t)sizeof *run->index)};
    progress_start(&keys.progress, progress_choose(sort->options.progress, run->comm->rank));
    TRY(file_open(run->comm, &source, &keys.elements.in));
    keys.elements.given = true;
    keys.elements.bytes = keys.elements.in.element.bytes;
    const hsort_status status = records_by_disk(&keys, run->memory_bytes);
    file_close(&keys.elements.in);
    run->report = keys.report;
    run->read_seconds += keys.read_seconds;
    run->sort_seconds += keys.sort_seconds;
    run->write_seconds += keys.write_seconds;
    run->verify_seconds += keys.verify_seconds;
    return status;
}

/* Find the order, while the file of keys is there. A signal that is not to stop the sort removes that file. */
static hsort_status make_order(struct hdf5_run *run, const struct key_sort *sort)
{
    const int guard = file_guard_take();
    file_guard_begin(guard, sort->keys, FILE_STOP_SIGNALS);
    hsort_status status = write_keys_file(run, sort);
    *file_guard_exists(guard) = status == HSORT_OK;
    if (status == HSORT_OK)
        status = sort_keys_file(run, sort);
    if (run->comm->rank == 0)
        unlink(sort->keys);
    file_guard_end(guard);
    return status;
}

hsort_status hdf5_find_order_on_disk(struct hdf5_run *run)
{
    static const struct number_list is_order = {.has = "an index has one", .is_of = "an index is of <i8"};
    struct key_sort sort;
    TRY(comm_agree(run->comm, describe_key_sort(run, &sort)));
    stop_watch();
    const mode_t mask = umask(077);
    hsort_status status = make_order(run, &sort);
    umask(mask);
    TRY(status);
    if (stop_signal()) // it came too late to stop the sort, and ends the run now
        unlink(sort.order);
    stop_unwatch();
    run->order_guard = file_guard_take();
    file_guard_begin(run->order_guard, sort.order, 0);
    *file_guard_exists(run->order_guard) = 1;
    status = record_io_open_list(run->comm, sort.order, sort.options.direct_io, &is_order, &run->order);
    run->order_is_open = status == HSORT_OK;
    return status;
}

void hdf5_end_order_on_disk(struct hdf5_run *run)
{
    if (run->order_guard < 0)
        return;
    if (run->order_is_open)
        file_close(&run->order);
    if (run->comm->rank == 0)
        unlink(file_guard_temporary(run->order_guard));
    file_guard_end(run->order_guard);
    run->order_guard = -1;
}
