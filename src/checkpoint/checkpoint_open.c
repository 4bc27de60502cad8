/* Opening a checkpoint: keep others out, read what is there or begin, and check that it is of the same work.
 *
 *      rank 0   DIR, lock, manifest, compare --- agree -- broadcast the manifest --------------- agree
 *      rank r                                --- agree --                        parse, DIR here? agree
 *
 * Rank 0 sends the others the manifest itself: it says everything, and its reader is there anyway.
 *
 * The lock is taken by fcntl(): it falls with the process, however that ends, and works over NFS. A lock that is only
 * the presence of a file would outlive a killed run. */
#include "src/checkpoint/checkpoint_internal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/lesser.h"
#include "kernels/base/checksum.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"
#include "src/checkpoint/manifest.h"
#include "kernels/base/status.h"

/* ---- The lock ------------------------------------------------------------------------------------------ */

/* Keep other commands out of DIR. Such a lock falls when the process closes any descriptor of the file, so
 * nothing else in this process may open it. */
static hsort_status take_lock(struct checkpoint *checkpoint)
{
    char path[PATH_MAX];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stat held, there;
    checkpoint_path(checkpoint, CHECKPOINT_LOCK, path);
    // The file is removed while it is locked. If this rank opened it just before, it is no longer the file in
    // DIR: try again.
    for (int attempt = 0; attempt < 100; attempt++) {
        const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (fd < 0)
            return status_fail(HSORT_IO, "%s: cannot create: %s", path, file_open_cause(errno));
        if (fstat(fd, &held) != 0 || !S_ISREG(held.st_mode) || held.st_size > 0 || held.st_nlink > 1) {
            close(fd);
            return status_fail(HSORT_IO,
                               "%s: is not a lock of hypersort: remove it, or give another directory", path);
        }
        // Any other error means that this file system has no locks, and going on without a lock is better than stopping.
        const bool refused = fcntl(fd, F_SETLK, &whole) != 0 && (errno == EACCES || errno == EAGAIN);
        if (!refused && lstat(path, &there) == 0 && held.st_dev == there.st_dev &&
            held.st_ino == there.st_ino) {
            checkpoint->lock = fd;
            return HSORT_OK;
        }
        close(fd);
        if (refused)
            break;
    }
    return status_fail(HSORT_IO, "%s: is held: another command works in this directory", path);
}

void checkpoint_unlock(struct checkpoint *checkpoint)
{
    char path[PATH_MAX];
    if (checkpoint->lock < 0)
        return;
    unlink(checkpoint_path(checkpoint, CHECKPOINT_LOCK, path));
    close(checkpoint->lock);
    checkpoint->lock = -1;
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* The manifest keeps a digest of SAMPLES blocks of an input, and of one more block of each file. */
enum { SAMPLES = 64, SAMPLE_BYTES = 4096 };

/* What checkpoint_open() has made on rank 0, to be undone if it fails. */
struct made {
    bool directory, manifest;
};

/* A number that no other manifest has, so that its output never meets another manifest's output. */
static uint64_t new_id(void)
{
    uint64_t id;
    struct timespec now;
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) == (ssize_t)sizeof id)
        return id;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) * UINT64_C(0x9e3779b97f4a7c15) ^
           (uint64_t)getpid();
}

/* checkpoint_sample() for `blocks` blocks of one file. */
static hsort_status sample_part(const struct file_part *part, int blocks, uint64_t *digest)
{
    char block[SAMPLE_BYTES];
    const int64_t bytes = lesser(SAMPLE_BYTES, part->bytes), last = part->bytes - bytes;
    for (int i = 0; i < blocks; i++) {
        const int64_t at = i + 1 < blocks ? last / blocks * i : last;
        const ssize_t got = pread(part->fd, block, (size_t)bytes, at);
        if (got != bytes)
            return status_fail(HSORT_IO, "%s: cannot read %" PRId64 " bytes at %" PRId64 ": %s", part->path,
                               bytes, at, got < 0 ? strerror(errno) : "cut short");
        *digest = checksum_add(*digest, block, (size_t)bytes);
    }
    return HSORT_OK;
}

hsort_status checkpoint_sample(const struct file_in *in, uint64_t *digest)
{
    for (int i = in->parts - 1; i >= 0; i--)
        TRY(sample_part(&in->part[i], SAMPLES / in->parts + 1, digest));
    return HSORT_OK;
}

/* Describe the files of the input. The name of a single file does not count: it may have been moved. */
static hsort_status describe_inputs(const struct file_in *in, struct checkpoint *wanted)
{
    char path[PATH_MAX];
    wanted->inputs = in->parts;
    wanted->inputs_digest = in->parts > 1 ? CHECKSUM_START : 0;
    wanted->sample = CHECKSUM_START;
    TRY(checkpoint_sample(in, &wanted->sample));
    for (int i = in->parts - 1; i >= 0; i--) {
        const struct file_part *part = &in->part[i];
        const int64_t facts[] = {part->bytes, part->changed.tv_sec, part->changed.tv_nsec};
        if (!realpath(part->path, i > 0 ? path : wanted->input))
            return io_fail(part->path, "cannot be looked at");
        wanted->input_bytes += part->bytes;
        if (i == in->parts - 1 || part->changed.tv_sec > wanted->input_time.tv_sec ||
            (part->changed.tv_sec == wanted->input_time.tv_sec &&
             part->changed.tv_nsec > wanted->input_time.tv_nsec))
            wanted->input_time = part->changed;
        if (in->parts > 1) {
            const char *name = i > 0 ? path : wanted->input;
            wanted->inputs_digest = checksum_add(wanted->inputs_digest, name, strlen(name) + 1);
            wanted->inputs_digest = checksum_add(wanted->inputs_digest, facts, sizeof facts);
        }
    }
    return HSORT_OK;
}

/* Describe what the command is about to do, as a manifest does, with nothing written yet. */
static hsort_status describe_work(const struct file_in *in, const char *output,
                                  enum file_format output_format, hsort_order order, const char *key,
                                  struct checkpoint *wanted)
{
    if (key && (strlen(key) >= sizeof wanted->key || strchr(key, '\n')))
        return status_fail(HSORT_ARGUMENT, "%s: cannot keep a key of %zu bytes, or of several lines",
                           wanted->directory, strlen(key));
    snprintf(wanted->key, sizeof wanted->key, "%s", key ? key : "");
    TRY(file_output_name(output, in, wanted->output));
    TRY(describe_inputs(in, wanted));
    // The message cannot give the names themselves: they would break its line.
    if (strchr(wanted->input, '\n') || strchr(wanted->output, '\n'))
        return status_fail(HSORT_ARGUMENT, "%s: cannot name the %s, whose path holds a newline",
                           wanted->directory, strchr(wanted->input, '\n') ? "input" : "output");
    wanted->id = new_id();
    TRY(manifest_name_part(wanted));
    wanted->type = key ? HSORT_U32 : in->type; // records have no type, and no line says this one
    wanted->order = order;
    wanted->keys = in->count;
    wanted->output_format = file_format_resolve(output, output_format);
    return HSORT_OK;
}

hsort_status checkpoint_read_text(const char *path, size_t most, char **text, size_t *bytes)
{
    struct stat facts;
    int fd;
    *text = NULL;
    *bytes = 0;
    if (lstat(path, &facts) != 0 && errno == ENOENT)
        return HSORT_OK;
    TRY(file_open_regular(path, false, &fd, &facts));
    hsort_status status = HSORT_OK;
    *bytes = (size_t)facts.st_size;
    if (*bytes <= most && !(*text = calloc(*bytes + 1, 1)))
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory to read it", path);
    else if (*text)
        status = block_read_cached(path, fd, 0, *bytes, *text);
    close(fd);
    if (status == HSORT_OK)
        return HSORT_OK;
    free(*text);
    *text = NULL;
    return status;
}

/* *text = the manifest in DIR; NULL if there is none. */
static hsort_status read_manifest(const char *path, char **text, size_t *bytes)
{
    TRY(checkpoint_read_text(path, MANIFEST_BYTES_MOST, text, bytes));
    return *text || *bytes == 0
               ? HSORT_OK
               : status_fail(HSORT_FORMAT, "%s: is damaged: %zu bytes are too many; " MANIFEST_REMEDY, path,
                             *bytes);
}

/* Is the single input that the sort was begun with still there, and is it another file than this one? Its name does not count, and
 * files from one archive may have the same size and time. */
static bool is_another_input(const struct file_in *in, const struct checkpoint *found)
{
    struct stat begun;
    return found->inputs == 1 && stat(found->input, &begun) == 0 &&
           begun.st_mtim.tv_sec == found->input_time.tv_sec &&
           begun.st_mtim.tv_nsec == found->input_time.tv_nsec &&
           (begun.st_dev != in->part[0].device || begun.st_ino != in->part[0].inode);
}

/* The length of what stands before the digest of disk_deal_text() at the end of a key; 0: there is no digest. */
static size_t length_without_digest(const char *key)
{
    static const char before[] = " to ";
    enum { DIGITS = 16 };
    const size_t length = strlen(key), tail = sizeof before - 1 + DIGITS;
    if (length <= tail || strncmp(key + length - tail, before, sizeof before - 1) != 0 ||
        strspn(key + length - DIGITS, "0123456789abcdef") != DIGITS)
        return 0;
    return length - tail;
}

/* Refuse a manifest with another key; both are known to differ. If only their digests differ, words say what has changed,
 * because the digests would tell people nothing. */
static hsort_status refuse_key(const char *path, const char *found, const char *wanted, const char *otherwise)
{
    const size_t length = length_without_digest(found);
    if (length > 0 && length == length_without_digest(wanted) && strncmp(found, wanted, length) == 0)
        return status_fail(HSORT_FORMAT, "%s: is of a sort by %.*s, but %sother outputs were given; %s", path,
                           (int)(length < 100 ? length : 100), found,
                           strstr(found, " --values") ? "its --values file was changed since, or " : "",
                           otherwise);
    return status_fail(HSORT_FORMAT, "%s: is of a sort by %.100s, not by %.100s; %s", path,
                       found[0] ? found : "bare keys", wanted[0] ? wanted : "bare keys", otherwise);
}

/* Refuse a manifest that is not of what the command is about to do. */
static hsort_status compare_work(const char *path, const struct file_in *in, const struct checkpoint *found,
                                 const struct checkpoint *wanted)
{
    static const char otherwise[] = "give what it was begun with, or " MANIFEST_REMEDY;
    if (strcmp(found->output, wanted->output) != 0)
        return status_fail(HSORT_FORMAT, "%s: is of the output %.150s, not %.150s; %s", path, found->output,
                           wanted->output, otherwise);
    if (found->output_format != wanted->output_format)
        return status_fail(HSORT_FORMAT, "%s: is of an output in the format %s, not %s; %s", path,
                           file_format_name(found->output_format), file_format_name(wanted->output_format),
                           otherwise);
    if (strcmp(found->key, wanted->key) != 0)
        return refuse_key(path, found->key, wanted->key, otherwise);
    if (found->type != wanted->type)
        return status_fail(HSORT_FORMAT, "%s: is of %s keys, not %s; %s", path, hsort_type_name(found->type),
                           hsort_type_name(wanted->type), otherwise);
    if (found->order != wanted->order)
        return status_fail(HSORT_FORMAT, "%s: is of a sort in %s order, not %s; %s", path,
                           manifest_order_name(found->order), manifest_order_name(wanted->order), otherwise);
    if (found->input_bytes != wanted->input_bytes || found->keys != wanted->keys)
        return status_fail(HSORT_FORMAT,
                           "%s: is of an input of %" PRId64 " bytes with %" PRId64
                           " keys, but %.150s has %" PRId64 " with %" PRId64 "; %s",
                           path, found->input_bytes, found->keys, in->path, wanted->input_bytes, wanted->keys,
                           otherwise);
    if (found->input_time.tv_sec != wanted->input_time.tv_sec ||
        found->input_time.tv_nsec != wanted->input_time.tv_nsec)
        return strcmp(found->input, wanted->input) == 0
                   ? status_fail(HSORT_FORMAT,
                                 "%s: is of an input of another time: %.150s was changed since; %s", path,
                                 in->path, otherwise)
                   : status_fail(HSORT_FORMAT,
                                 "%s: is of the input %.150s, not of %.150s of another time; %s", path,
                                 found->input, in->path, otherwise);
    if (found->inputs != wanted->inputs || found->inputs_digest != wanted->inputs_digest)
        return status_fail(HSORT_FORMAT,
                           "%s: is of %" PRId64 " inputs, not of these %" PRId64
                           ", or they have other names, sizes or times, or another order; %s",
                           path, found->inputs, wanted->inputs, otherwise);
    if (is_another_input(in, found))
        return status_fail(HSORT_FORMAT, "%s: is of the input %.150s, not of %.150s; %s", path, found->input,
                           in->path, otherwise);
    if (found->sample != 0 && found->sample != wanted->sample)
        return status_fail(
            HSORT_FORMAT,
            "%s: is of an input of other content: %.150s was changed since, but for its time; %s", path,
            in->path, otherwise);
    return HSORT_OK;
}

/* Has DIR, or the manifest in it, the name that the output is to have? */
static bool is_the_output(const struct checkpoint *checkpoint, const char *name)
{
    char path[PATH_MAX];
    if (!realpath(checkpoint->directory, path) || strncmp(path, checkpoint->output, strlen(path)) != 0)
        return false;
    return strcmp(checkpoint->output + strlen(path), name) == 0;
}

/* Rank 0's part: lock DIR, and read what is there, or begin. *text, the manifest, is the caller's. */
static hsort_status find_or_begin(const struct file_in *in, const char *output,
                                  enum file_format output_format, hsort_order order, const char *key,
                                  struct checkpoint *checkpoint, char **text, struct made *made)
{
    char path[PATH_MAX];
    size_t bytes;
    TRY(describe_work(in, output, output_format, order, key, checkpoint));
    made->directory = mkdir(checkpoint->directory, 0777) == 0;
    if (!made->directory && errno != EEXIST)
        return io_fail(checkpoint->directory, "cannot be made");
    if (made->directory && is_the_output(checkpoint, ""))
        return status_fail(HSORT_ARGUMENT, "%s: is both the output and the directory of the checkpoint",
                           checkpoint->directory);
    if (is_the_output(checkpoint, "/manifest"))
        return status_fail(HSORT_ARGUMENT,
                           "%s/manifest: is both the output and the manifest of the checkpoint",
                           checkpoint->directory);
    // Whether or not its name ends with a slash: the new name stands in the directory around it, which must outlast a crash.
    if (made->directory && file_sync_directory(checkpoint_path(checkpoint, "../", path)) != 0)
        return io_fail(checkpoint->directory, "the directory around it cannot be synced to disk");
    TRY(take_lock(checkpoint));
    TRY(read_manifest(checkpoint_path(checkpoint, "manifest", path), text, &bytes));
    checkpoint->found = *text != NULL;
    if (checkpoint->found) {
        struct checkpoint wanted = *checkpoint;
        TRY(manifest_parse(path, *text, bytes, checkpoint));
        TRY(compare_work(path, in, checkpoint, &wanted));
    } else {
        TRY(manifest_format(checkpoint, text, &bytes));
        made->manifest = true; // or a part of it
        TRY(checkpoint_put_manifest(checkpoint));
    }
    return HSORT_OK;
}

/* The other ranks' part: the same directory must be here, and they must be able to write to it. Rank 0 tells them what it
 * reads there. */
static hsort_status take_manifest(const char *text, size_t bytes, struct checkpoint *checkpoint)
{
    char path[PATH_MAX];
    TRY(manifest_parse(checkpoint_path(checkpoint, "manifest", path), text, bytes, checkpoint));
    if (access(path, R_OK) != 0)
        return io_fail(path, "rank 0 sees it, this rank does not");
    if (access(checkpoint->directory, W_OK | X_OK) != 0)
        return io_fail(checkpoint->directory, "cannot be written to");
    return HSORT_OK;
}

/* Tell the other ranks what rank 0 has found: the manifest itself, which says everything. Collective. */
static hsort_status broadcast_manifest(struct comm *comm, struct checkpoint *checkpoint, char **text)
{
    int64_t facts[2] = {*text ? (int64_t)strlen(*text) : 0, checkpoint->found};
    hsort_status status = comm_check(MPI_Bcast(facts, 2, MPI_INT64_T, 0, comm->world), "MPI_Bcast", false);
    if (status == HSORT_OK && comm->rank != 0 && !(*text = malloc((size_t)facts[0] + 1)))
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for its manifest", checkpoint->directory);
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;
    status = comm_check(MPI_Bcast(*text, (int)facts[0] + 1, MPI_CHAR, 0, comm->world), "MPI_Bcast", false);
    if (status == HSORT_OK && comm->rank != 0)
        status = take_manifest(*text, (size_t)facts[0], checkpoint);
    checkpoint->found = facts[1] != 0;
    return comm_agree(comm, status);
}

hsort_status checkpoint_open(struct comm *comm, const char *directory, const struct file_in *in,
                             const char *output, enum file_format output_format, hsort_order order,
                             const char *key, struct checkpoint *checkpoint)
{
    struct made made = {false, false};
    char *text = NULL, path[PATH_MAX];
    *checkpoint = (struct checkpoint){.directory = strdup(directory), .lock = -1};
    hsort_status status = HSORT_OK;
    if (!checkpoint->directory)
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", directory);
    else if (strlen(directory) + 1 + CHECKPOINT_NAME_ROOM > PATH_MAX)
        status = status_fail(HSORT_IO, "%.200s: %s", directory, strerror(ENAMETOOLONG));
    else if (comm->rank == 0)
        status = find_or_begin(in, output, output_format, order, key, checkpoint, &text, &made);
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = broadcast_manifest(comm, checkpoint, &text);
    free(text);
    if (status == HSORT_OK)
        return HSORT_OK;
    if (made.manifest)
        unlink(checkpoint_path(checkpoint, "manifest", path));
    checkpoint_unlock(checkpoint);
    if (made.directory)
        rmdir(directory);
    checkpoint_close(checkpoint);
    return status;
}
