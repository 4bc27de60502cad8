/* Writing a key file. It appears under its name only when it is whole: until then it lies beside that name as
 * NAME.hypersort-PID-TIME.part, of full size from the start, and every rank writes its range of it.
 *
 *      file_create    rank 0: choose names, create, reserve, header -- agree -- others: open -- agree
 *      file_write     each rank: its own range
 *      file_commit    agree on success -- each rank: fsync, close -- agree -- rank 0: rename -- agree
 *
 * The temporary goes away with any failure, and with the signals by which a run is told to stop: each rank's
 * handler unlinks it, so that it also goes when rank 0 was killed outright. One output at a time per process,
 * because a handler can only know a static name.
 *
 * An output that is a symbolic link stays one: the file that it points to is replaced and named in texts. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"
#include "file.h"
#include "file_internal.h"
#include "npy.h"
#include "status.h"

enum { HEADER_ROOM = 128 };

/* What rank 0 tells the others; sent as bytes. */
struct names {
    char path[PATH_MAX];
    char temporary[PATH_MAX];
};

/* ---- The guard: what a stop signal removes ------------------------------------------------------------- */

/* SIGXFSZ is here to be ignored: a file size limit shall be an error of the write, as a full disk is. */
static const int guarded_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGXFSZ};
enum { GUARDED_SIGNALS = sizeof guarded_signals / sizeof *guarded_signals };

static struct {
    char temporary[PATH_MAX];
    volatile sig_atomic_t exists; /* the temporary is there, and ours */
    bool installed;
    struct sigaction previous[GUARDED_SIGNALS];
} guard;

static void remove_and_stop(int signal_number)
{
    if (guard.exists)
        unlink(guard.temporary);
    // SA_RESETHAND has made the action the default one; it is taken when this handler returns.
    raise(signal_number);
}

/* Be ready to remove `temporary`; guard.exists says from when on. */
static void guard_begin(const char *temporary)
{
    snprintf(guard.temporary, sizeof guard.temporary, "%s", temporary);
    for (int i = 0; i < GUARDED_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = remove_and_stop, .sa_flags = SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        if (guarded_signals[i] == SIGXFSZ)
            action.sa_handler = SIG_IGN;
        sigaction(guarded_signals[i], NULL, &guard.previous[i]);
        // What nohup made the process ignore stays ignored.
        if (guard.previous[i].sa_handler != SIG_IGN)
            sigaction(guarded_signals[i], &action, NULL);
    }
    guard.installed = true;
}

static void guard_end(void)
{
    guard.exists = 0;
    for (int i = 0; guard.installed && i < GUARDED_SIGNALS; i++)
        sigaction(guarded_signals[i], &guard.previous[i], NULL);
    guard.installed = false;
}

/* ---- Creating ------------------------------------------------------------------------------------------ */

/* Where the output goes, with links followed, if it may go there at all. */
static hsort_status choose_names(const char *path, const struct file_in *input, struct names *names)
{
    struct stat there;
    const bool is_link = lstat(path, &there) == 0 && S_ISLNK(there.st_mode);
    if (is_link && !realpath(path, names->path))
        return status_fail(HSORT_IO, "%s: cannot follow the link: %s", path, strerror(errno));
    if (!is_link && snprintf(names->path, sizeof names->path, "%s", path) >= (int)sizeof names->path)
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(ENAMETOOLONG));
    if (path[0] == '\0')
        return status_fail(HSORT_ARGUMENT, "the name of the output is empty");

    if (stat(names->path, &there) == 0) {
        if (input && there.st_dev == input->device && there.st_ino == input->inode)
            return status_fail(HSORT_ARGUMENT, "%s: is the input; the output must be another file", path);
        // A rename would put a plain file in the place of /dev/null or a FIFO.
        if (!S_ISREG(there.st_mode))
            return status_fail(HSORT_IO, "%s: cannot create: %s", path,
                               S_ISDIR(there.st_mode) ? strerror(EISDIR)
                                                      : "exists and is not a regular file");
    } else if (errno != ENOENT) {
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(errno));
    }
    // With the time, because in a container the next run may have the number of one that was killed.
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (snprintf(names->temporary, sizeof names->temporary, "%s.hypersort-%ld-%09ld.part", names->path,
                 (long)getpid(), now.tv_nsec) >= (int)sizeof names->temporary)
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(ENAMETOOLONG));
    return HSORT_OK;
}

/* Give the file its full size. Where the file system can, the space is taken at once: a full disk then shows
 * before the keys are written, and the blocks lie in order although all ranks write at the same time. Where
 * it cannot, the file gets its size only; posix_fallocate() would write to every block there. */
static hsort_status reserve(const char *path, int fd, int64_t bytes)
{
    int failed;
    if (bytes == 0)
        return HSORT_OK;
    do
        failed = fallocate(fd, 0, 0, bytes);
    while (failed && errno == EINTR);
    if (failed && (errno == EOPNOTSUPP || errno == ENOSYS))
        failed = ftruncate(fd, bytes);
    if (failed)
        return status_fail(HSORT_IO, "%s: cannot reserve %" PRId64 " bytes: %s", path, bytes,
                           strerror(errno));
    return HSORT_OK;
}

static hsort_status write_bytes(const char *path, int fd, int64_t offset, size_t bytes, const void *buffer)
{
    size_t done = 0;
    while (done < bytes) {
        const size_t piece = bytes - done < FILE_PIECE_BYTES ? bytes - done : FILE_PIECE_BYTES;
        const int64_t at = offset + (int64_t)done;
        ssize_t put;
        if (fault_hit(FAULT_WRITE)) {
            errno = ENOSPC;
            put = -1;
        } else {
            put = pwrite(fd, (const char *)buffer + done, piece, at);
        }
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return status_fail(HSORT_IO, "%s: cannot write %zu bytes at %" PRId64 ": %s", path, piece, at,
                               put < 0 ? strerror(errno) : "nothing was taken");
        done += (size_t)put;
    }
    return HSORT_OK;
}

/* Rank 0's part of file_create(). */
static hsort_status create_first(const char *path, const struct file_in *input, const unsigned char *header,
                                 struct file_out *file, struct names *names)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(file->type);
    if (file->count > (INT64_MAX - HEADER_ROOM) / key_bytes)
        return status_fail(HSORT_ARGUMENT, "%s: %" PRId64 " keys are beyond 64-bit offsets", path,
                           file->count);
    TRY(choose_names(path, input, names));
    guard_begin(names->temporary);
    file->fd = open(names->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    guard.exists = file->fd >= 0;
    if (file->fd < 0)
        return status_fail(HSORT_IO, "%s: cannot create %s: %s", path, names->temporary, strerror(errno));
    TRY(reserve(path, file->fd, file->data_offset + file->count * key_bytes));
    return write_bytes(path, file->fd, 0, (size_t)file->data_offset, header);
}

/* The other ranks' part. */
static hsort_status create_again(struct file_out *file, const struct names *names)
{
    guard_begin(names->temporary);
    file->fd = open(names->temporary, O_WRONLY | O_CLOEXEC);
    guard.exists = file->fd >= 0;
    if (file->fd < 0)
        return status_fail(HSORT_IO, "%s: cannot open %s, which rank 0 made: %s", names->path,
                           names->temporary, strerror(errno));
    return HSORT_OK;
}

/* Free all that belongs to the file; unless it was published, rank 0 removes the temporary. */
static void release(struct comm *comm, struct file_out *file, bool published)
{
    if (file->fd >= 0)
        close(file->fd);
    if (comm->rank == 0 && guard.exists && !published)
        unlink(guard.temporary);
    guard_end();
    free(file->path);
    free(file->temporary);
    *file = (struct file_out){.fd = -1};
}

hsort_status file_create(struct comm *comm, const char *path, enum file_format format, hsort_type type,
                         int64_t count, const struct file_in *input, struct file_out *file)
{
    if (guard.installed) // on every rank
        return comm_agree(
            comm, status_fail(HSORT_INTERNAL, "%s: a second output while %s is open", path, guard.temporary));

    struct names names;
    unsigned char header[HEADER_ROOM];
    memset(&names, 0, sizeof names); // what lies behind the texts is sent too
    *file = (struct file_out){
        .fd = -1, .format = file_format_resolve(path, format), .type = type, .count = count};
    if (file->format == FILE_NPY)
        file->data_offset = (int64_t)npy_format(type, count, header, sizeof header);

    hsort_status status = comm->rank == 0 ? create_first(path, input, header, file, &names) : HSORT_OK;
    status = comm_agree(comm, status);
    if (status == HSORT_OK) {
        status = comm_check(MPI_Bcast(&names, sizeof names, MPI_BYTE, 0, comm->world), "MPI_Bcast", false);
        if (status == HSORT_OK && comm->rank != 0)
            status = create_again(file, &names);
        file->path = strdup(names.path);
        file->temporary = strdup(names.temporary);
        if (status == HSORT_OK && (!file->path || !file->temporary))
            status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", path);
        status = comm_agree(comm, status);
    }
    if (status != HSORT_OK)
        release(comm, file, false);
    return status;
}

hsort_status file_write(const struct file_out *file, int64_t first, int64_t count, const void *keys)
{
    const size_t key_bytes = hsort_type_bytes(file->type);
    TRY(file_range_check(file->path, file->count, first, count));
    return write_bytes(file->path, file->fd, file->data_offset + first * (int64_t)key_bytes,
                       (size_t)count * key_bytes, keys);
}

/* ---- Committing ---------------------------------------------------------------------------------------- */

static int simulated_failure(void)
{
    errno = EIO;
    return -1;
}

static hsort_status sync_and_close(struct file_out *file)
{
    int failed = fault_hit(FAULT_COMMIT) ? simulated_failure() : fsync(file->fd);
    if (failed)
        return status_fail(HSORT_IO, "%s: cannot be brought to disk: %s", file->path, strerror(errno));
    failed = close(file->fd);
    file->fd = -1;
    // Linux has closed it also where it was interrupted.
    if (failed && errno != EINTR)
        return status_fail(HSORT_IO, "%s: cannot be closed: %s", file->path, strerror(errno));
    return HSORT_OK;
}

/* Let the new name outlast a crash. */
static hsort_status sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int failed = fd >= 0 ? fsync(fd) : 0;
    const int cause = errno;
    if (fd >= 0)
        close(fd);
    free(directory);
    // One that may not be read, or whose file system cannot do it (EINVAL), is no reason to doubt the file.
    if (failed && cause != EINVAL)
        return status_fail(HSORT_IO, "%s: is whole, but its directory cannot be brought to disk: %s", path,
                           strerror(cause));
    return HSORT_OK;
}

/* Rank 0's last step: from here on there is an output, also if its directory then cannot be synced. */
static hsort_status publish(const struct file_out *file, bool *published)
{
    int failed = fault_hit(FAULT_COMMIT) ? simulated_failure() : rename(file->temporary, file->path);
    if (failed)
        return status_fail(HSORT_IO, "%s: cannot be given its name: %s", file->path, strerror(errno));
    *published = true;
    return sync_directory(file->path);
}

hsort_status file_commit(struct comm *comm, struct file_out *file, hsort_status mine)
{
    bool published = false;
    hsort_status status = comm_agree(comm, mine);
    if (status == HSORT_OK)
        status = comm_agree(comm, sync_and_close(file));
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? publish(file, &published) : HSORT_OK);
    release(comm, file, published);
    return status;
}
