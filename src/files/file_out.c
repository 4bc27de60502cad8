/* Writing a key file. It appears under its name only when it is whole. Until then it lies beside that name as
 * NAME.hypersort-PID-TIME.part, of full size from the start and for its owner only, and every rank writes its
 * range of it.
 *
 *      file_create    rank 0: choose names, create, reserve, header -- agree -- others: open -- agree
 *      file_write     each rank: its own range
 *      file_commit    agree on success -- each rank: fsync, close -- agree -- rank 0: rename -- agree
 *
 * Any failure removes the temporary, and so do the signals that tell a run to stop: each rank's handler unlinks
 * it, so that it is also removed if rank 0 was killed outright. A process has only a few outputs at a time,
 * because a handler can only know static names. To an observer, several outputs are one: file_commit.c.
 *
 * An output that outlasts a stop (file_resume) has a temporary name that its owner knows, and what is there
 * already is kept. It is removed only by a failure, or if nobody means to go on.
 *
 *      first start    OUT.hypersort-ID.part   made   [ written | ......... ]   file_leave
 *      second start   OUT.hypersort-ID.part   kept   [ written | written   ]   file_commit: OUT
 *
 * If the name has a %r, each rank has a file of its own, and does with it what rank 0 does with a common file:
 *
 *      create     each rank: names, create, reserve, header -- agree
 *      commit     agree -- each rank: fsync, close -- agree: all are whole -- each rank: rename -- agree
 *
 * A rank that is killed outright can remove nothing, so the ranks before it know the name of its temporary, too.
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
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"
#include "src/files/file.h"
#include "src/files/file_guard.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"
#include "kernels/base/status.h"

/* What rank 0 tells the others; sent as bytes. */
struct names {
    char path[PATH_MAX];
    char temporary[PATH_MAX];
    dev_t device; /* of the temporary file, as rank 0 sees it */
    ino_t inode;
    bool kept; /* the temporary file was there already, and is kept */
};

/* ---- Creating ------------------------------------------------------------------------------------------ */

enum { TAG_ROOM = 64 };

/* tag [TAG_ROOM] = what tells the temporary names of this run from those of other runs: the target's tag, or if it has none the process
 * id and the time. The time, because in a container the next run may have the process id of a run that was killed. */
static void make_tag(const struct file_target *target, char *tag)
{
    struct timespec now;
    if (target->tag) {
        snprintf(tag, TAG_ROOM, "%s", target->tag);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(tag, TAG_ROOM, "%ld-%09ld", (long)getpid(), now.tv_nsec);
}

/* Choose the names of an output, and remember the rights it is to have. `temporary` is the name that its owner wants, or
 * NULL: then the temporary name has the tag. */
static hsort_status choose_names(const struct file_target *target, int rank, const char *temporary,
                                 const char *tag, struct file_out *file, struct names *names)
{
    struct stat there;
    TRY(file_choose_path(target->path, rank, target->input, names->path, &there));
    if (there.st_mode != 0)
        TRY(file_refuse_input(target->path, target->other_input, &there));
    file->replaces = there.st_mode != 0;
    file->rights = there;
    if (!temporary)
        return file_temporary_name(names->path, tag, names->temporary);
    if (snprintf(names->temporary, sizeof names->temporary, "%s", temporary) >= PATH_MAX)
        return status_fail(HSORT_IO, "%s: cannot create: %s", names->path, strerror(ENAMETOOLONG));
    return HSORT_OK;
}

/* Give the file its full size. If the file system can, the space is taken at once: a full disk then shows
 * before the keys are written, and the blocks lie in order although all ranks write at the same time. If
 * it cannot, the file only gets its size; posix_fallocate() would write to every block there. */
hsort_status file_reserve(const char *path, int fd, int64_t bytes)
{
    int failed;
    if (bytes == 0)
        return HSORT_OK;
    do
        failed = fallocate(fd, 0, 0, bytes);
    while (failed && errno == EINTR);
    if (failed && (errno == EOPNOTSUPP || errno == ENOSYS))
        failed = ftruncate(fd, bytes);
    const int cause = errno;
    if (!failed)
        return HSORT_OK;
    status_fail(HSORT_IO, "%s: cannot reserve %" PRId64 " bytes: %s", path, bytes, strerror(cause));
    errno = cause;
    return HSORT_IO;
}

/* Is this a regular file that has no other name, and is not the input? Whoever may write in the directory can
 * put a link there, symbolic or hard, to a file that must not be written. */
static bool is_only_temporary(const struct stat *there, const struct file_in *input)
{
    return S_ISREG(there->st_mode) && there->st_nlink <= 1 && !file_is_input(input, there);
}

/* Does the file begin with the header of `bytes`? */
static bool begins_with(int fd, const unsigned char *header, int64_t bytes)
{
    unsigned char found[NPY_HEADER_ROOM]; // a part of the header: for records it may be longer
    for (int64_t at = 0; at < bytes; at += NPY_HEADER_ROOM) {
        const size_t some = (size_t)lesser(NPY_HEADER_ROOM, bytes - at);
        if (pread(fd, found, some, at) != (ssize_t)some || memcmp(found, header + at, some) != 0)
            return false;
    }
    return true;
}

/* Is there, under the temporary name, a file that an earlier run made for the same keys? If so, it is opened. */
static bool reopen(const unsigned char *header, int64_t bytes, const struct file_in *input,
                   const struct names *names, struct file_out *file)
{
    struct stat there;
    // Without O_NONBLOCK, opening a FIFO would wait.
    file->fd = open(names->temporary, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file->fd < 0)
        return false;
    if (fstat(file->fd, &there) == 0 && is_only_temporary(&there, input) && there.st_uid == geteuid() &&
        there.st_size == bytes && begins_with(file->fd, header, file->data_offset))
        return true;
    close(file->fd);
    file->fd = -1;
    return false;
}

/* What rank 0 does in create_output(), and each rank for an own file: choose names, and create the file under the temporary one. */
static hsort_status create_temporary(const struct file_target *target, int rank, const char *temporary,
                                     const char *tag, const unsigned char *header, struct file_out *file,
                                     struct names *names)
{
    const int64_t key_bytes = (int64_t)file->key_bytes;
    if (file->count > (INT64_MAX - NPY_HEADER_ROOM - file->data_offset) / key_bytes)
        return status_fail(HSORT_ARGUMENT, "%s: %" PRId64 " keys are more than 64-bit offsets can reach",
                           target->path, file->count);
    const int64_t bytes = file->data_offset + file->count * key_bytes;
    TRY(choose_names(target, rank, temporary, tag, file, names));
    file_guard_begin(file->guard, names->temporary, temporary ? FILE_STOP_SIGNALS : 0);
    if (temporary) {
        names->kept = reopen(header, bytes, target->input, names, file);
        *file_guard_exists(file->guard) = names->kept;
        if (names->kept)
            return HSORT_OK;
        unlink(names->temporary); // if this fails, the file cannot be created either
    }
    *file_guard_exists(file->guard) =
        true; // before the file exists: a signal may come between the call and what follows it
    file->fd = open(names->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fault_hit(FAULT_TERM))
        raise(SIGTERM);
    *file_guard_exists(file->guard) = file->fd >= 0;
    if (file->fd < 0)
        return status_fail(HSORT_IO, "%s: cannot create %s: %s", names->path, names->temporary,
                           strerror(errno));
    const hsort_status reserved = file_reserve(names->path, file->fd, bytes);
    file->was_full = reserved != HSORT_OK && (errno == ENOSPC || errno == EDQUOT);
    TRY(reserved);
    TRY(block_write_cached(names->path, file->fd, 0, (size_t)file->data_offset, header));
    if (temporary && file_sync_directory(names->temporary) != 0) // what is to be resumed must outlast a crash
        return io_fail(names->path, "its directory cannot be synced to disk");
    return HSORT_OK;
}

/* Tell the other ranks which file it is. */
static hsort_status identify_temporary(const struct file_out *file, struct names *names)
{
    struct stat there;
    if (fstat(file->fd, &there) != 0)
        return io_fail(names->temporary, "cannot be looked at");
    names->device = there.st_dev;
    names->inode = there.st_ino;
    return HSORT_OK;
}

/* The other ranks' part. */
static hsort_status open_temporary(struct file_out *file, const struct names *names, int first_signal,
                                   bool same_node)
{
    struct stat there;
    file_guard_begin(file->guard, names->temporary, first_signal);
    *file_guard_exists(file->guard) = 1; // rank 0 has made it
    file->fd = open(names->temporary, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file->fd < 0)
        return status_fail(HSORT_IO, "%s: cannot open %s, which rank 0 made: %s", names->path,
                           names->temporary, file_open_cause(errno));
    if (fstat(file->fd, &there) != 0 || !is_only_temporary(&there, NULL) ||
        (same_node && (there.st_dev != names->device || there.st_ino != names->inode)))
        return status_fail(HSORT_IO, "%s: %s is not the file that rank 0 made", names->path,
                           names->temporary);
    return HSORT_OK;
}

void file_release(struct comm *comm, struct file_out *file, bool stays)
{
    const bool was_full = file->was_full || block_was_full(file->blocks);
    block_close(file->blocks);
    if (file->fd >= 0)
        close(file->fd);
    if ((comm->rank == 0 || file->own) && *file_guard_exists(file->guard) && !stays)
        unlink(file_guard_temporary(file->guard));
    file_guard_end(file->guard);
    free(file->path);
    free(file->temporary);
    *file = (struct file_out){.fd = -1, .was_full = was_full};
}

/* Remember the names, and be ready to write. */
static hsort_status take_names(const struct names *names, hsort_choice direct_io, struct file_out *file)
{
    file->path = strdup(names->path);
    file->temporary = strdup(names->temporary);
    if (!file->path || !file->temporary)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", names->path);
    return block_open_output(file->path, file->fd, direct_io, &file->blocks);
}

/* Create one file for all ranks. `temporary` is the name that its owner wants, or NULL. Collective. */
static hsort_status create_common(struct comm *comm, const struct file_target *target, const char *temporary,
                                  const unsigned char *header, struct file_out *file, struct names *names)
{
    char tag[TAG_ROOM];
    bool same_node = false;
    make_tag(target, tag);
    hsort_status status =
        comm->rank == 0 ? create_temporary(target, 0, temporary, tag, header, file, names) : HSORT_OK;
    if (comm->rank == 0 && status == HSORT_OK)
        status = identify_temporary(file, names);
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;
    status = comm_check(MPI_Bcast(names, sizeof *names, MPI_BYTE, 0, comm->world), "MPI_Bcast", false);
    if (status == HSORT_OK)
        status = file_shares_node_with_rank_0(comm, &same_node);
    if (status == HSORT_OK && comm->rank != 0)
        status = open_temporary(file, names, temporary ? FILE_STOP_SIGNALS : 0, same_node);
    if (status == HSORT_OK)
        status = take_names(names, target->direct_io, file);
    return comm_agree(comm, status);
}

/* Create a file of each rank's own. `temporary` is the name that its owner wants, or NULL: then all ranks have the same tag, so
 * that two ranks whose names lead to one file, by a link, cannot both create its temporary. Collective. */
static hsort_status create_own(struct comm *comm, const struct file_target *target, const char *temporary,
                               const unsigned char *header, struct file_out *file, struct names *names)
{
    char tag[TAG_ROOM] = "";
    int64_t all = 0;
    make_tag(target, tag);
    hsort_status status = comm_check(MPI_Bcast(tag, TAG_ROOM, MPI_BYTE, 0, comm->world), "MPI_Bcast", false);
    const hsort_status summed = comm_sum(comm, target->mine, &all);
    status = status == HSORT_OK ? summed : status;
    if (status == HSORT_OK && all != target->count)
        status = status_fail(HSORT_INTERNAL, "%s: %" PRId64 " keys in the ranks' files, not %" PRId64,
                             target->path, all, target->count);
    if (status == HSORT_OK)
        status = create_temporary(target, comm->rank, temporary, tag, header, file, names);
    if (status == HSORT_OK)
        status = take_names(names, target->direct_io, file);
    status = comm_agree(comm, status);
    if (status != HSORT_OK || comm->size == 1)
        return status;
    for (int i = 0; i < FILE_GUARD_NEXT && i + 1 < comm->size && status == HSORT_OK; i++) {
        const int before = (comm->rank + comm->size - i - 1) % comm->size, behind = (comm->rank + i + 1) % comm->size;
        status = comm_agree(comm, comm_check(MPI_Sendrecv(names->temporary, PATH_MAX, MPI_BYTE, before, 0,
                                                          file_guard_next(file->guard, i), PATH_MAX, MPI_BYTE, behind,
                                                          0, comm->world, MPI_STATUS_IGNORE),
                                             "MPI_Sendrecv", false));
    }
    return status;
}

/* file_create(), or, with the name of a temporary file, file_resume(), for a file whose header is made. Collective. */
static hsort_status create_with_header(struct comm *comm, const struct file_target *target,
                                       const char *temporary, const unsigned char *header,
                                       struct file_out *file, bool *kept)
{
    struct names names;
    memset(&names, 0, sizeof names); // the bytes behind the texts are sent, too
    hsort_status status;
    status = file->own ? create_own(comm, target, temporary, header, file, &names)
                       : create_common(comm, target, temporary, header, file, &names);
    if (status != HSORT_OK)
        file_release(comm, file, names.kept); // what was there before is no worse for it
    else if (file->own)
        status = comm_all(comm, names.kept, &names.kept);
    *kept = names.kept;
    return status;
}

static hsort_status create_output(struct comm *comm, const struct file_target *target, const char *temporary,
                                  struct file_out *file, bool *kept)
{
    const int guard = file_guard_take();
    if (guard < 0) // on every rank
        return comm_agree(comm, status_fail(HSORT_INTERNAL, "%s: more than %d outputs at a time",
                                            target->path, FILE_OUTPUTS));

    unsigned char *header;
    size_t header_bytes;
    const bool own = file_is_pattern(target->path);
    *file = (struct file_out){.own = own,
                              .fd = -1,
                              .no_clobber = target->no_clobber,
                              .guard = guard,
                              .format = file_format_resolve(target->path, target->format),
                              .type = target->type,
                              .key_bytes =
                                  target->element ? target->element->bytes : hsort_type_bytes(target->type),
                              .first = own ? target->first : 0,
                              .count = own ? target->mine : target->count};
    hsort_status status =
        comm_agree(comm, file_make_header(file->format, target, file->count, &header, &header_bytes));
    file->data_offset = (int64_t)header_bytes;
    if (status == HSORT_OK)
        status = create_with_header(comm, target, temporary, header, file, kept);
    else
        file_release(comm, file, true);
    free(header);
    return status;
}

hsort_status file_create(struct comm *comm, const struct file_target *target, struct file_out *file)
{
    bool kept;
    return create_output(comm, target, NULL, file, &kept);
}

hsort_status file_resume(struct comm *comm, const struct file_target *target, const char *temporary,
                         struct file_out *file, bool *kept)
{
    return create_output(comm, target, temporary, file, kept);
}

/* *place = where the bytes from byte `at` of all keys on lie in this file. */
static hsort_status find_place(const struct file_out *file, int64_t at, int64_t bytes, int64_t *place)
{
    const int64_t key_bytes = (int64_t)file->key_bytes, inside = at - file->first * key_bytes;
    *place = file->data_offset + inside;
    return file_range_check(file->path, file->count * key_bytes, inside, bytes);
}

hsort_status file_write_at(const struct file_out *file, int64_t at, size_t bytes, const void *from)
{
    int64_t place;
    TRY(find_place(file, at, (int64_t)bytes, &place));
    return block_write(file->blocks, place, bytes, from);
}

hsort_status file_write(const struct file_out *file, int64_t first, int64_t count, const void *keys)
{
    const int64_t key_bytes = (int64_t)file->key_bytes;
    TRY(file_range_check(file->path, file->first + file->count, first, count)); // before the products, which could overflow
    return file_write_at(file, first * key_bytes, (size_t)(count * key_bytes), keys);
}

size_t file_out_lead(const struct file_out *file, int64_t at)
{
    const int64_t inside = at - file->first * (int64_t)file->key_bytes;
    return (size_t)((file->data_offset + inside) % FILE_CHUNK_BYTES);
}

hsort_status file_read_back_at(const struct file_out *file, int64_t at, size_t bytes, void *to)
{
    int64_t place;
    TRY(find_place(file, at, (int64_t)bytes, &place));
    return block_read(file->blocks, place, bytes, to);
}
