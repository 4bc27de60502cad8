/* The end of an output: it gets its name when it is whole, or is removed. To an observer, several outputs, and the files of
 * several ranks, are one: all get their names, or none.
 *
 *      old a, no b            what lies there              rank 0, or of own files each rank
 *      keep                   a, a kept                    link: a second name, beside a, for what a holds
 *      publish                new a, a kept, new b         rename, rename -- agree
 *      all went well          new a, new b                 unlink a kept
 *      one did not            a                            rename a kept to a, unlink b
 *
 * A single output replaces what was there by its rename, and keeps nothing. If a file system has no second names, what was
 * there cannot come back: the error then says how many outputs keep their names. A run that is killed between these steps leaves
 * some new files and the kept names, which are temporary names. The next run names one of these in a message, or removes them
 * (file_forget_old()).
 *
 * With no_clobber the name must be free when it is given: link, unlink.
 *
 * Rejected: exchanging both names at once (renameat2), which NFS and other cluster file systems cannot do. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "kernels/base/status.h"
#include "src/files/file.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"

/* ---- Making it whole ----------------------------------------------------------------------------------- */

/* fsync(). A signal that is only kept for later must not look like a failure. */
static int bring_to_disk(int fd)
{
    int failed;
    do
        failed = fsync(fd);
    while (failed && errno == EINTR);
    return failed;
}

hsort_status file_sync(const char *path, int fd)
{
    if (io_fault(FAULT_COMMIT, EIO) || bring_to_disk(fd) != 0)
        return io_fail(path, "cannot be synced to disk");
    return HSORT_OK;
}

hsort_status file_sync_and_close(const char *path, int *fd)
{
    TRY(file_sync(path, *fd));
    const int failed = close(*fd);
    *fd = -1;
    // Linux has closed the file even if the call was interrupted.
    if (failed && errno != EINTR)
        return io_fail(path, "cannot be closed");
    return HSORT_OK;
}

int file_sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int failed = fd >= 0 ? bring_to_disk(fd) : 0;
    const int cause = errno;
    if (fd >= 0)
        close(fd);
    free(directory);
    errno = cause;
    // A directory that may not be read, or whose file system cannot sync it (EINVAL), is no reason to doubt its files.
    return failed && cause != EINVAL ? -1 : 0;
}

/* The rights that new files have here. */
static mode_t usual_rights(void)
{
    const mode_t mask = umask(077);
    umask(mask);
    return 0666 & ~mask;
}

/* Give the temporary, which only its owner could read until then, the rights of the file that it replaces.
 * If the group cannot be kept, its rights cannot be kept either: the group then gets no more than everybody has.
 * A file system that has no rights to give is no failure: the file is then less readable, not more. */
static void give_rights(const struct file_out *file)
{
    mode_t mode = file->replaces ? file->rights.st_mode & 0777 : usual_rights();
    if (file->replaces && fchown(file->fd, file->rights.st_uid, file->rights.st_gid) != 0 &&
        fchown(file->fd, (uid_t)-1, file->rights.st_gid) != 0)
        mode &= ~(mode_t)070 | (mode & 007) << 3;
    (void)!fchmod(file->fd, mode);
}

/* ---- Naming it ----------------------------------------------------------------------------------------- */

/* What this rank has done with the name of an output. */
struct naming {
    bool mine;      /* it is for this rank to give */
    bool published; /* there is an output of that name, which is this one */
    bool replaced;  /* something else was there, */
    bool kept;      /* and has a second name */
};

/* The second name. It is as long as the temporary one, and a search for what killed runs have left takes it for one. */
static void name_of_kept(const char *temporary, char *name)
{
    snprintf(name, PATH_MAX, "%s", temporary);
    char *dash = strrchr(name, '-');
    if (dash)
        *dash = '+';
}

void file_forget_old(const char *temporary)
{
    char kept[PATH_MAX];
    name_of_kept(temporary, kept);
    unlink(kept);
}

/* link(). If NFS has lost the answer, the name looks taken, but it is taken by this very file. */
static bool give_second_name(const char *path, const char *second)
{
    struct stat mine, there;
    if (link(path, second) == 0)
        return true;
    const int cause = errno;
    const bool is_given = cause == EEXIST && lstat(path, &mine) == 0 && lstat(second, &there) == 0 &&
                          mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
    errno = cause;
    return is_given;
}

/* Keep what the rename will replace, if the rename may have to be undone. Without a second name the commit goes on all the same. */
static void keep_old(const struct file_out *file, struct naming *naming)
{
    char kept[PATH_MAX];
    name_of_kept(file->temporary, kept);
    naming->kept = give_second_name(file->path, kept);
    naming->replaced = naming->kept || errno != ENOENT;
}

/* Give an output a name that nothing else has, in one step: by a second name, after which the first one is removed. Not every
 * file system has second names; one that lacks them may have a rename that replaces nothing. */
static int rename_to_free(const char *temporary, const char *path)
{
    if (give_second_name(temporary, path))
        return unlink(temporary);
    return errno == EEXIST ? -1 : renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE);
}

static int rename_output(const struct file_out *file)
{
    if (io_fault(FAULT_COMMIT, EIO))
        return -1;
    return file->no_clobber ? rename_to_free(file->temporary, file->path)
                            : rename(file->temporary, file->path);
}

/* The last step of rank 0, or of each rank for its own file: from here on there is an output, even if its
 * directory then cannot be synced. */
static hsort_status publish(const struct file_out *file, struct naming *naming)
{
    const int failed = rename_output(file);
    if (failed && file->no_clobber && errno == EEXIST)
        return file_refuse_clobber(file->path);
    if (failed)
        return io_fail(file->path, "cannot be given its name");
    naming->published = true;
    if (file_sync_directory(file->path) != 0)
        return io_fail(file->path, "is whole, but its directory cannot be synced to disk");
    return HSORT_OK;
}

/* Put back what was there before. */
static void take_back(const struct file_out *file, struct naming *naming)
{
    char kept[PATH_MAX];
    name_of_kept(file->temporary, kept);
    if (naming->published && naming->kept)
        naming->published = rename(kept, file->path) != 0;
    else if (naming->published && !naming->replaced)
        naming->published = unlink(file->path) != 0;
    else if (naming->kept)
        unlink(kept);
    (void)file_sync_directory(file->path);
}

/* After a failure: take back all outputs that have their names, and say how many could not be taken back. Collective. */
static void take_back_all(struct comm *comm, struct file_out *const *files, int count, struct naming *naming)
{
    int64_t stay = 0, all = 0;
    for (int i = 0; i < count; i++) {
        if (naming[i].mine)
            take_back(files[i], &naming[i]);
        stay += naming[i].published;
    }
    const size_t length = strlen(comm->error);
    if (comm_sum(comm, stay, &all) == HSORT_OK && all > 0)
        snprintf(comm->error + length, sizeof comm->error - length,
                 "; %lld other%s could not be taken back and %s", (long long)all, all == 1 ? "" : "s",
                 all == 1 ? "has its name" : "have their names");
}

/* Name outputs that are whole: all or none. Collective. */
static hsort_status name_all(struct comm *comm, struct file_out *const *files, int count,
                             struct naming *naming)
{
    bool several = count > 1;
    hsort_status status = HSORT_OK;
    for (int i = 0; i < count; i++) {
        naming[i].mine = comm->rank == 0 || files[i]->own;
        several = several || (files[i]->own && comm->size > 1);
    }
    for (int i = 0; i < count && status == HSORT_OK; i++) {
        if (several && naming[i].mine)
            keep_old(files[i], &naming[i]);
        status = comm_agree(comm, naming[i].mine ? publish(files[i], &naming[i]) : HSORT_OK);
    }
    if (several && status != HSORT_OK)
        take_back_all(comm, files, count, naming);
    for (int i = 0; i < count && status == HSORT_OK; i++)
        if (naming[i].kept)
            file_forget_old(files[i]->temporary);
    return status;
}

hsort_status file_commit_all(struct comm *comm, struct file_out *const *files, int count, hsort_status mine)
{
    struct naming naming[FILE_OUTPUTS] = {{false, false, false, false}};
    hsort_status status = comm_agree(comm, mine);
    for (int i = 0; i < count && status == HSORT_OK; i++) {
        if (comm->rank == 0 || files[i]->own)
            give_rights(files[i]);
        status = comm_agree(comm, file_sync_and_close(files[i]->path, &files[i]->fd));
    }
    if (status == HSORT_OK)
        status = name_all(comm, files, count, naming);
    for (int i = 0; i < count; i++)
        file_release(comm, files[i], naming[i].published);
    return status;
}

hsort_status file_commit(struct comm *comm, struct file_out *file, hsort_status mine)
{
    return file_commit_all(comm, &file, 1, mine);
}

/* The output is not brought to disk: a job that is stopped has little time, and whatever the next start takes for written is
 * compared before anyone relies on it. */
void file_leave(struct comm *comm, struct file_out *file)
{
    file_release(comm, file, true);
}

void file_drop(struct comm *comm, struct file_out *file)
{
    file_release(comm, file, false);
}
