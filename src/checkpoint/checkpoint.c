/* The manifest of a checkpoint, and the order of the steps in which it is written and removed. A manifest that has its
 * name is whole.
 *
 *      begin, mark   rank 0: new manifest, fsync, rename, fsync DIR     killed before the rename: the manifest before, if any
 *      remove        rank 0: remove manifest, fsync DIR
 *
 * A new manifest that was not finished is removed with the next one, or with the manifest itself. */
#include "src/checkpoint/checkpoint_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"
#include "src/checkpoint/manifest.h"
#include "src/checkpoint/run_directory.h"
#include "src/checkpoint/run_journal.h"
#include "kernels/base/status.h"

const char *checkpoint_path(const struct checkpoint *checkpoint, const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s", checkpoint->directory, name);
    return path;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Write a whole file and bring it to disk; after a failure there is no file. Only this user can read it, because the
 * names in it may be nobody else's business. What is there already is removed first, because the name is ours: a file
 * that a killed command left, or a link, which is never followed. */
static hsort_status write_new_file(const char *path, const void *bytes, size_t count)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return io_fail(path, "cannot create");
    hsort_status status = file_reserve(path, fd, (int64_t)count);
    if (status == HSORT_OK)
        status = block_write_cached(path, fd, 0, count, bytes);
    if (status == HSORT_OK)
        status = file_sync_and_close(path, &fd);
    if (fd >= 0)
        close(fd);
    if (status != HSORT_OK)
        unlink(path);
    return status;
}

hsort_status checkpoint_put_manifest(const struct checkpoint *next)
{
    char path[PATH_MAX], path_new[PATH_MAX], *text;
    size_t bytes;
    checkpoint_path(next, "manifest", path);
    checkpoint_path(next, CHECKPOINT_NEW_MANIFEST, path_new);
    TRY(manifest_format(next, &text, &bytes));
    hsort_status status = write_new_file(path_new, text, bytes);
    free(text);
    TRY(status);
    if (io_fault(FAULT_COMMIT, EIO) || rename(path_new, path) != 0) {
        status = io_fail(path, "cannot be given its name");
        unlink(path_new);
        return status;
    }
    return run_names_sync(path);
}

/* ---- What is written of the output --------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const struct checkpoint_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Sort ranges [count], and join those that overlap or touch; returns how many there are then.
 *
 *      before   [30 40)  [0 10)  [10 20)  [35 50)  [7 7)
 *      after    [0 20)  [30 50)                                                                                 */
static int merge_ranges(struct checkpoint_range *ranges, int count)
{
    int merged = 0;
    qsort(ranges, (size_t)count, sizeof *ranges, by_first);
    for (int i = 0; i < count; i++) {
        struct checkpoint_range *last = merged > 0 ? &ranges[merged - 1] : NULL;
        const int64_t end = ranges[i].first + ranges[i].count;
        if (ranges[i].count == 0)
            continue;
        if (!last || ranges[i].first > last->first + last->count)
            ranges[merged++] = ranges[i];
        else if (end > last->first + last->count)
            last->count = end - last->first;
    }
    return merged;
}

/* Set the ranges of `next` to those it had and every rank's. The caller frees next->written. Collective. */
static hsort_status gather_ranges(struct comm *comm, struct checkpoint_range range, struct checkpoint *next)
{
    const struct checkpoint_range *before = next->written;
    next->written = malloc((size_t)(next->ranges + comm->size) * sizeof *next->written);
    hsort_status status = file_range_check(next->part, next->keys, range.first, range.count);
    if (status == HSORT_OK && !next->written)
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for %d ranges", next->directory,
                             next->ranges + comm->size);
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;
    if (next->ranges > 0)
        memcpy(next->written, before, (size_t)next->ranges * sizeof *before);
    _Static_assert(sizeof range == 2 * sizeof(int64_t), "sent as two numbers");
    status = comm_check(
        MPI_Allgather(&range, 2, MPI_INT64_T, next->written + next->ranges, 2, MPI_INT64_T, comm->world),
        "MPI_Allgather", false);
    if (status == HSORT_OK)
        next->ranges = merge_ranges(next->written, next->ranges + comm->size);
    return comm_agree(comm, status);
}

hsort_status checkpoint_mark(struct comm *comm, struct checkpoint *checkpoint, struct checkpoint_range range)
{
    struct checkpoint next = *checkpoint;
    hsort_status status = gather_ranges(comm, range, &next);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? checkpoint_put_manifest(&next) : HSORT_OK);
    if (status == HSORT_OK) {
        free(checkpoint->written);
        *checkpoint = next;
    } else {
        free(next.written);
    }
    return status;
}

bool checkpoint_has(const struct checkpoint *checkpoint, int64_t key, int64_t *end)
{
    for (int r = 0; r < checkpoint->ranges; r++) {
        const struct checkpoint_range *range = &checkpoint->written[r];
        *end = key < range->first ? range->first : range->first + range->count;
        if (key < *end)
            return key >= range->first;
    }
    *end = checkpoint->keys;
    return false;
}

void checkpoint_unmark(struct checkpoint *checkpoint)
{
    checkpoint->ranges = 0;
}

/* ---- Ending -------------------------------------------------------------------------------------------- */

void checkpoint_remove(struct comm *comm, struct checkpoint *checkpoint)
{
    char path[PATH_MAX];
    if (comm->rank != 0 || !checkpoint->directory)
        return;
    unlink(checkpoint_path(checkpoint, "manifest", path));
    file_sync_directory(path); // a manifest that came back after a crash would name files that are gone
    unlink(checkpoint_path(checkpoint, CHECKPOINT_NEW_MANIFEST, path));
    run_journals_remove(checkpoint->directory);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    checkpoint_unlock(checkpoint);
    free(checkpoint->directory);
    free(checkpoint->written);
    *checkpoint = (struct checkpoint){.lock = -1};
}
