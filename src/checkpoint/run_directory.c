#include "src/checkpoint/run_directory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "src/checkpoint/checkpoint_internal.h"
#include "kernels/base/checksum.h"
#include "src/checkpoint/manifest.h"
#include "src/checkpoint/run_files.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"

static const char runs_suffix[] = ".hypersort-runs", half_suffix[] = ".part";

/* ---- Names --------------------------------------------------------------------------------------------- */

/* mark [16] = "." and eight digits that tell outputs of one name apart by where they lie. The digits are made from the directory,
 * without links, of the file `chosen`, and from `base`, the file's name in it. */
static void mark_output(const char *chosen, const char *base, char *mark)
{
    char folder[PATH_MAX], real[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", base > chosen ? (int)(base - chosen) : 1,
             base > chosen ? chosen : ".");
    const char *where = realpath(folder, real) ? real : folder; // a missing folder is an error when the output is made
    const uint64_t sum =
        checksum_add(checksum_add(CHECKSUM_START, where, strlen(where) + 1), base, strlen(base));
    snprintf(mark, 16, ".%08" PRIx32, (uint32_t)(sum ^ sum >> 32));
}

hsort_status run_files_name(const char *directory, const char *output, char *name)
{
    char chosen[PATH_MAX], mark[16] = "";
    struct stat there;
    TRY(file_choose_path(output, 0, NULL, chosen, &there));
    char *slash = strrchr(chosen, '/');
    const char *base = slash ? slash + 1 : chosen;
    if (base[0] == '\0')
        return status_fail(HSORT_IO, "%s: cannot create: %s", output, strerror(EISDIR));
    if (directory)
        mark_output(chosen, base, mark);
    // If no directory is given: the output's own, which is everything before its base, and may be nothing.
    const int before = (int)(directory ? strlen(directory) : (size_t)(base - chosen));
    const bool joined = before > 0 && directory && directory[before - 1] != '/';
    const int bytes = snprintf(name, PATH_MAX, "%.*s%s%s%s%s", before, directory ? directory : chosen,
                               joined ? "/" : "", base, mark, runs_suffix);
    if (strlen(base) + strlen(mark) + sizeof runs_suffix - 1 > NAME_MAX || bytes + RUN_NAME_ROOM > PATH_MAX)
        return status_fail(HSORT_IO, "%.200s: no directory for its runs: %s", output, strerror(ENAMETOOLONG));
    return HSORT_OK;
}

void run_directory_name_run(const char *path, int64_t run, bool whole, char *name)
{
    snprintf(name, PATH_MAX, "%s/run-%06" PRId64 "%s", path, run, whole ? "" : half_suffix);
}

/* Is this the name of a run's file? *run = which run's; *whole = it is the name of a whole file. */
static bool is_run_name(const char *name, int64_t *run, bool *whole)
{
    char again[PATH_MAX];
    if (sscanf(name, "run-%" SCNd64, run) != 1 || *run < 0)
        return false;
    for (int i = 0; i < 2; i++) {
        *whole = i == 0;
        run_directory_name_run("", *run, *whole, again);
        if (strcmp(name, again + 1) == 0)
            return true;
    }
    return false;
}

/* path [PATH_MAX] = the plan's path; returns it. run_files_name() has made sure that there is room. */
static const char *plan_path(const char *directory, char *path)
{
    if (snprintf(path, PATH_MAX, "%s/plan", directory) >= PATH_MAX)
        path[0] = '\0';
    return path;
}

/* ---- Plans --------------------------------------------------------------------------------------------- */

/* Read the plan of RUNS. *found = there is one, and it is whole. */
static hsort_status read_plan(const char *directory, struct written_plan *plan, bool *found)
{
    char path[PATH_MAX], *text;
    size_t bytes;
    TRY(checkpoint_read_text(plan_path(directory, path), WRITTEN_PLAN_ROOM - 1, &text, &bytes));
    *found = text && written_plan_parse(text, bytes, plan);
    free(text);
    return HSORT_OK;
}

/* Refuse a plan of another sort, unless that sort was given up: it was if its manifest is gone, or has another id, but not if that
 * cannot be seen now. */
static hsort_status refuse_living(const char *directory, const struct written_plan *plan)
{
    char path[PATH_MAX + 16], line[64], text[MANIFEST_HEAD_BYTES + 1];
    snprintf(path, sizeof path, "%s/manifest", plan->checkpoint);
    snprintf(line, sizeof line, "\nid %016" PRIx64 "\n", plan->id);
    if (!plan->checkpoint[0]) // nobody knows where the manifest was
        return HSORT_OK;
    // Anything may lie there, also a directory or a FIFO: without O_NONBLOCK, opening a FIFO would wait.
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const ssize_t bytes = fd >= 0 ? pread(fd, text, MANIFEST_HEAD_BYTES, 0) : -1;
    const int cause = bytes < 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    if (cause != 0 && cause != ENOENT && cause != ENOTDIR && cause != EISDIR && cause != ESPIPE)
        return status_fail(HSORT_IO,
                           "%.150s: has the runs of another sort, whose %.150s/manifest cannot be read: %s",
                           directory, plan->checkpoint, strerror(cause));
    text[bytes > 0 ? bytes : 0] = '\0';
    if (!strstr(text, line))
        return HSORT_OK;
    return status_fail(
        HSORT_IO,
        "%.150s: has the runs of another sort, of the checkpoint %.150s: end that sort, remove one "
        "of both, or give another directory (-T)",
        directory, plan->checkpoint);
}

/* ---- Making -------------------------------------------------------------------------------------------- */

hsort_status run_names_sync(const char *path)
{
    if (io_fault(FAULT_COMMIT, EIO) || file_sync_directory(path) != 0)
        return io_fail(path, "its directory cannot be synced to disk");
    return HSORT_OK;
}

hsort_status run_directory_find(struct run_directory *directory, const struct written_plan *wanted)
{
    struct stat facts;
    const char *path = directory->path;
    bool found;
    directory->has_plan = false;
    directory->made = !io_fault(FAULT_WRITE, ENOSPC) && mkdir(path, 0700) == 0;
    if (!directory->made && errno != EEXIST)
        return io_fail(path, "cannot be made");
    // A link that somebody has put there is not followed.
    if (lstat(path, &facts) != 0)
        return io_fail(path, "cannot be looked at");
    if (!S_ISDIR(facts.st_mode))
        return status_fail(HSORT_IO, "%s: is not a directory", path);
    directory->device = facts.st_dev;
    directory->inode = facts.st_ino;
    if (directory->made)
        TRY(run_names_sync(path));
    TRY(read_plan(path, &directory->plan, &found));
    if (found && directory->plan.id != wanted->id)
        TRY(refuse_living(path, &directory->plan));
    directory->has_plan = found && directory->plan.id == wanted->id &&
                          directory->plan.elements == wanted->elements &&
                          directory->plan.element_bytes == wanted->element_bytes;
    return HSORT_OK;
}

/* Write the plan where there is none, and bring it to disk with its name. */
static hsort_status write_plan(const char *path, const char *text, size_t bytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        return status_fail(HSORT_IO, "%s: another command has just begun here", path);
    if (fd < 0)
        return io_fail(path, "cannot create");
    hsort_status status = block_write_cached(path, fd, 0, bytes, text);
    if (status == HSORT_OK)
        status = file_sync_and_close(path, &fd);
    const int cause = errno;
    if (fd >= 0)
        close(fd);
    if (status != HSORT_OK)
        unlink(path);
    errno = cause;
    TRY(status);
    return run_names_sync(path);
}

/* The plan is not written by a rename: if two commands begin here at once, one must fail, and a plan that a crash has cut is as good
 * as none. */
hsort_status run_directory_begin(struct run_directory *directory, const struct written_plan *plan)
{
    char path[PATH_MAX], text[WRITTEN_PLAN_ROOM];
    const size_t bytes = written_plan_format(plan, text);
    plan_path(directory->path, path);
    run_directory_clean(directory->path, NULL, NULL);
    TRY(run_names_sync(path)); // an old run that came back after a crash would be taken for one of the new plan
    if (unlink(path) != 0 && errno != ENOENT)
        return io_fail(path, "cannot be removed");
    TRY(write_plan(path, text, bytes));
    directory->plan = *plan;
    directory->has_plan = true;
    return HSORT_OK;
}

/* *same = the plan that is here now is this one. */
static hsort_status has_plan(const char *path, const struct written_plan *plan, bool *same)
{
    struct written_plan seen;
    // Opening a directory makes an NFS client ask again what is in it.
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    TRY(read_plan(path, &seen, same));
    *same = *same && seen.id == plan->id && seen.elements == plan->elements &&
            seen.element_bytes == plan->element_bytes && seen.part_elements == plan->part_elements &&
            seen.fence_elements == plan->fence_elements;
    return HSORT_OK;
}

hsort_status run_directory_see(const char *path, const struct written_plan *plan)
{
    bool same;
    TRY(has_plan(path, plan, &same));
    if (!same)
        return status_fail(
            HSORT_IO,
            "%s: rank 0 sees it, this rank does not: temporary directories must be on disks that "
            "all ranks share",
            path);
    if (access(path, W_OK | X_OK) != 0)
        return io_fail(path, "cannot be written to");
    return HSORT_OK;
}

hsort_status run_directory_check(const char *path, const struct written_plan *plan)
{
    bool same;
    TRY(has_plan(path, plan, &same));
    return same ? HSORT_OK
                : status_fail(HSORT_IO,
                              "%s: its plan is gone or another one: was it removed, or does another command "
                              "have its runs there?",
                              path);
}

/* ---- Removing ------------------------------------------------------------------------------------------ */

void run_directory_clean(const char *path, bool (*stays)(void *user, int64_t run), void *user)
{
    char name[PATH_MAX];
    int64_t run;
    bool whole;
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (is_run_name(entry->d_name, &run, &whole) && !(whole && stays && stays(user, run))) {
            run_directory_name_run(path, run, whole, name);
            unlink(name);
        }
    if (listing)
        closedir(listing);
}

void run_directory_remove(const struct run_directory *directory, uint64_t id)
{
    const char *path = directory->path;
    char name[PATH_MAX];
    struct written_plan plan;
    bool found = false;
    const bool was_clear = status_text()[0] == '\0';
    const bool there = access(path, X_OK) == 0, read = there && read_plan(path, &plan, &found) == HSORT_OK;
    // If the plan cannot be read now, it is taken for the one that was found here, or written.
    if (read ? found && plan.id == id : there && directory->has_plan) {
        run_directory_clean(path, NULL, NULL);
        unlink(plan_path(path, name));
        rmdir(path);
    }
    if (was_clear) // a plan that could not be read is no cause of a later failure
        status_clear();
}

/* ---- Room ---------------------------------------------------------------------------------------------- */

hsort_status run_directories_check_space(const struct run_directory *directories, int count,
                                         const int64_t *needed)
{
    for (int i = 0; i < count; i++) {
        struct statvfs facts;
        int64_t all = 0;
        bool first = true;
        for (int j = 0; j < count; j++) {
            const bool same = directories[j].device == directories[i].device;
            first = first && !(same && j < i);
            all += same ? needed[j] : 0;
        }
        if (!first || all == 0)
            continue;
        if (io_fault(FAULT_READ, EIO) || statvfs(directories[i].path, &facts) != 0)
            return io_fail(directories[i].path, "cannot be asked for its free space");
        const double free_bytes = (double)facts.f_bavail * (double)facts.f_frsize;
        if ((double)all > free_bytes)
            return status_fail(
                HSORT_IO,
                "%s: the runs of this sort need %" PRId64
                " bytes more there, of which %.0f are free: free some, or name more directories "
                "(-T)",
                directories[i].path, all, free_bytes);
    }
    return HSORT_OK;
}
