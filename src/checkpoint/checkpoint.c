/* The files of a checkpoint, and the order in which they come and go. A manifest that has its name is whole,
 * and all that it names is on disk; whatever it does not name is left over from a run that was killed.
 *
 *      save    every rank       rank 0
 *              run of G+1
 *              fsync
 *              ------ agree -----                                      killed above the line below:
 *                               fsync DIR, new manifest, fsync        the manifest of G, its runs; runs of G+1 left over
 *                               ---- rename to manifest, fsync DIR ----
 *              ------ agree -----                                      killed below it:
 *                               remove the runs of G                   the manifest of G+1, its runs; runs of G left over
 *
 *      begin   rank 0: new manifest, fsync, rename, fsync DIR          nothing, or a manifest that names no runs
 *      remove  rank 0: remove manifest, fsync DIR, remove runs         no manifest; runs left over
 *
 * What is left over goes with the next open or save. To overwrite the runs of G in place would need no room
 * for two of them, but would leave none of them whole when it is killed. */
#include "src/checkpoint/checkpoint_internal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "src/files/file_internal.h"
#include "src/checkpoint/manifest.h"
#include "kernels/base/status.h"

const char *checkpoint_path(const struct checkpoint *checkpoint, const char *name, char *path)
{
    snprintf(path, PATH_MAX, "%s/%s", checkpoint->directory, name);
    return path;
}

/* name [CHECKPOINT_NAME_ROOM] of a run. */
static const char *run_name(uint64_t id, int generation, int rank, char *name)
{
    snprintf(name, CHECKPOINT_NAME_ROOM, "run-%016" PRIx64 "-%d-%d.keys", id, generation, rank);
    return name;
}

const char *checkpoint_run_path(const struct checkpoint *checkpoint, int rank, char *path)
{
    char name[CHECKPOINT_NAME_ROOM];
    return checkpoint_path(checkpoint, run_name(checkpoint->id, checkpoint->generation, rank, name), path);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Write a whole file and bring it to disk; on failure there is none. Only this user can read it, for the keys
 * may be no one else's business. What is there already goes first, since the name is ours: a file that a
 * killed command left, or a link, which is never followed. */
static hsort_status write_new_file(const char *path, const void *bytes, size_t count)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(errno));
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

/* Let the names in DIR outlast a crash. */
static hsort_status sync_names(const char *path)
{
    int failed = file_sync_directory(path);
    if (fault_hit(FAULT_COMMIT)) {
        errno = EIO;
        failed = -1;
    }
    if (failed)
        return status_fail(HSORT_IO, "%s: its directory cannot be brought to disk: %s", path,
                           strerror(errno));
    return HSORT_OK;
}

hsort_status checkpoint_put_manifest(const struct checkpoint *next, bool *named)
{
    char path[PATH_MAX], path_new[PATH_MAX], *text;
    size_t bytes;
    checkpoint_path(next, "manifest", path);
    checkpoint_path(next, CHECKPOINT_NEW_MANIFEST, path_new);
    *named = false;
    TRY(sync_names(path)); // the runs' names, before one can read of them
    TRY(manifest_format(next, &text, &bytes));
    hsort_status status = write_new_file(path_new, text, bytes);
    free(text);
    TRY(status);
    int failed = -1;
    if (fault_hit(FAULT_COMMIT))
        errno = EIO;
    else
        failed = rename(path_new, path);
    if (failed) {
        status = status_fail(HSORT_IO, "%s: cannot be given its name: %s", path, strerror(errno));
        unlink(path_new);
        return status;
    }
    *named = true;
    return sync_names(path);
}

/* Does `name` look like that of a run? Which one? */
static bool is_run(const char *name, uint64_t *id, int *generation, int *rank)
{
    char again[CHECKPOINT_NAME_ROOM];
    return sscanf(name, "run-%" SCNx64 "-%d-%d.keys", id, generation, rank) == 3 &&
           strcmp(name, run_name(*id, *generation, *rank, again)) == 0;
}

void checkpoint_remove_leftovers(const struct checkpoint *checkpoint, bool all)
{
    char path[PATH_MAX];
    unlink(checkpoint_path(checkpoint, CHECKPOINT_NEW_MANIFEST, path));
    DIR *listing = opendir(checkpoint->directory);
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        uint64_t id;
        int generation, rank;
        if (!is_run(entry->d_name, &id, &generation, &rank))
            continue;
        const bool named =
            id == checkpoint->id && generation == checkpoint->generation && rank < checkpoint->runs;
        if (all || !named)
            unlinkat(dirfd(listing), entry->d_name, 0);
    }
    if (listing)
        closedir(listing);
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static void close_run(struct checkpoint *checkpoint)
{
    if (checkpoint->reading_fd >= 0)
        close(checkpoint->reading_fd);
    checkpoint->reading_fd = -1;
}

/* Have run `r` open as the one that is read. */
static hsort_status open_run(struct checkpoint *checkpoint, int r, char *path)
{
    struct stat facts;
    checkpoint_run_path(checkpoint, r, path);
    if (checkpoint->reading_fd >= 0 && checkpoint->reading == r)
        return HSORT_OK;
    close_run(checkpoint);
    checkpoint->reading = r;
    return file_open_regular(path, false, &checkpoint->reading_fd, &facts);
}

/* The last run that begins at or before this key: the one that has it, also behind runs without keys. */
static int find_run(const struct checkpoint *checkpoint, int64_t key)
{
    int low = 0, high = checkpoint->runs;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (checkpoint->run_offset[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/*      runs   |  run 0   |  run 1  ||   run 3        |          run 2 has no keys, and no file
 *      asked        first --------------------- count
 *      read         '----|---------|-----------'                                                                */
hsort_status checkpoint_read(struct checkpoint *checkpoint, int64_t first, int64_t count, void *keys)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(checkpoint->type);
    const int64_t total = checkpoint->runs > 0 ? checkpoint->run_offset[checkpoint->runs] : 0;
    TRY(file_range_check(checkpoint->directory, total, first, count));
    for (int64_t done = 0; done < count;) {
        char path[PATH_MAX];
        const int64_t key = first + done;
        const int r = find_run(checkpoint, key);
        const int64_t left = checkpoint->run_offset[r + 1] - key;
        const int64_t chunk = left < count - done ? left : count - done;
        TRY(open_run(checkpoint, r, path));
        TRY(block_read_cached(path, checkpoint->reading_fd, (key - checkpoint->run_offset[r]) * key_bytes,
                            (size_t)(chunk * key_bytes), (char *)keys + done * key_bytes));
        done += chunk;
    }
    return HSORT_OK;
}

/* ---- Saving -------------------------------------------------------------------------------------------- */

/* run_offset of `next`, which the caller frees, from every rank's count. Collective. */
static hsort_status count_runs(struct comm *comm, int64_t count, struct checkpoint *next)
{
    next->runs = comm->size;
    next->run_offset = malloc(((size_t)comm->size + 1) * sizeof *next->run_offset);
    hsort_status status = HSORT_OK;
    if (!next->run_offset)
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for %d runs", next->directory, comm->size);
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;
    next->run_offset[0] = 0;
    status = comm_gather(comm, count, next->run_offset + 1);
    for (int r = 0; status == HSORT_OK && r < comm->size; r++)
        next->run_offset[r + 1] += next->run_offset[r];
    if (status == HSORT_OK && next->run_offset[comm->size] != next->keys)
        status = status_fail(HSORT_INTERNAL, "%s: %" PRId64 " keys are to be saved, of %" PRId64,
                             next->directory, next->run_offset[comm->size], next->keys);
    return comm_agree(comm, status);
}

static hsort_status save_run(const struct checkpoint *next, int rank, const void *keys, int64_t count)
{
    char path[PATH_MAX];
    if (count == 0)
        return HSORT_OK;
    return write_new_file(checkpoint_run_path(next, rank, path), keys,
                          (size_t)count * hsort_type_bytes(next->type));
}

hsort_status checkpoint_save(struct comm *comm, struct checkpoint *checkpoint, enum checkpoint_stage stage,
                             const void *keys, int64_t count, const uint64_t fingerprint[2])
{
    struct checkpoint next = *checkpoint;
    next.generation = next.tried = ++checkpoint->tried;
    next.stage = stage;
    memcpy(next.fingerprint, fingerprint, sizeof next.fingerprint);
    close_run(checkpoint); // over NFS a file that is open cannot quite be removed
    next.reading_fd = -1;

    bool named = false;
    hsort_status status = count_runs(comm, count, &next);
    if (status == HSORT_OK)
        status = comm_agree(comm, save_run(&next, comm->rank, keys, count));
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? checkpoint_put_manifest(&next, &named) : HSORT_OK);
    if (status == HSORT_OK) {
        free(checkpoint->run_offset);
        *checkpoint = next;
    } else {
        free(next.run_offset);
    }
    // Where the new manifest has its name but perhaps not on disk, either one may be found after a crash.
    if (comm->rank == 0 && (status == HSORT_OK || !named))
        checkpoint_remove_leftovers(checkpoint, false);
    return status;
}

/* ---- What is written of the output --------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    const struct checkpoint_range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Bring ranges [count] in order and make one of those that overlap or touch; returns how many there are then.
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

/* ranges of `next`, which the caller frees: those it had, and every rank's. Collective. */
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
    bool named;
    hsort_status status = gather_ranges(comm, range, &next);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? checkpoint_put_manifest(&next, &named) : HSORT_OK);
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
    close_run(checkpoint);
    MPI_Barrier(comm->world); // no rank still has one open
    if (comm->rank != 0)
        return;
    unlink(checkpoint_path(checkpoint, "manifest", path));
    file_sync_directory(path); // a manifest that came back after a crash would name what is gone
    checkpoint_remove_leftovers(checkpoint, true);
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    close_run(checkpoint);
    checkpoint_unlock(checkpoint);
    free(checkpoint->directory);
    free(checkpoint->run_offset);
    free(checkpoint->written);
    *checkpoint = (struct checkpoint){.lock = -1, .reading_fd = -1};
}
