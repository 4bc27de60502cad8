/* Opening and reading a key file. Rank 0 alone reads the header and tells the others what it found, so that a
 * file of the same name on another node's own disk, or one that is being replaced, cannot give ranks
 * different layouts; each rank then opens the file itself and compares the size.
 *
 *      rank 0   open, fstat, header, check ---- agree -- broadcast the layout --- agree
 *      rank r                              ---- agree -- open, fstat, compare - agree
 */
#include "src/files/file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "kernels/base/key_width.h"
#include "src/files/file_internal.h"
#include "src/files/npy.h"
#include "kernels/base/status.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files and '<' dtypes are read as they lie");

/* What rank 0 tells the others; sent as bytes. */
struct key_layout {
    struct npy_header header; /* of a raw file: what a header would say */
    enum file_format format;
    int64_t bytes; /* of the file */
    dev_t device;
    ino_t inode;
};

hsort_status file_range_check(const char *path, int64_t total, int64_t first, int64_t count)
{
    if (first < 0 || count < 0 || first > total || count > total - first)
        return status_fail(HSORT_INTERNAL, "%s: %" PRId64 " from %" PRId64 " on, of %" PRId64, path, count,
                           first, total);
    return HSORT_OK;
}

const char *file_open_cause(int error)
{
    return error == ELOOP ? "a symbolic link is not followed here" : strerror(error);
}

hsort_status file_open_regular(const char *path, bool follow, int *fd, struct stat *facts)
{
    // Without O_NONBLOCK the opening of a FIFO would wait for a writer.
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (follow ? 0 : O_NOFOLLOW));
    if (*fd < 0)
        return status_fail(HSORT_IO, "%s: cannot open: %s", path,
                           follow ? strerror(errno) : file_open_cause(errno));
    const char *why = NULL;
    if (fstat(*fd, facts) != 0)
        why = strerror(errno);
    else if (S_ISDIR(facts->st_mode))
        why = strerror(EISDIR);
    else if (!S_ISREG(facts->st_mode))
        why = "not a regular file";
    if (!why)
        return HSORT_OK;
    close(*fd);
    *fd = -1;
    return status_fail(HSORT_IO, "%s: cannot read: %s", path, why);
}

hsort_status file_shares_node_with_rank_0(struct comm *comm, bool *same_node)
{
    int rank_0 = comm->rank == 0; // the lowest rank of its node, so the first there
    const hsort_status status = comm_check(MPI_Bcast(&rank_0, 1, MPI_INT, 0, comm->node), "MPI_Bcast", false);
    *same_node = rank_0 != 0;
    return status;
}

/* Keep what an open file was found to be. */
static void remember_facts(struct file_in *file, const struct stat *facts)
{
    file->device = facts->st_dev;
    file->inode = facts->st_ino;
    file->bytes = facts->st_size;
    file->changed = facts->st_mtim;
}

/* Rank 0's part of file_open(). */
static hsort_status open_on_rank_0(const struct file_source *source, struct file_in *file,
                                   struct key_layout *layout)
{
    const char *path = source->path;
    struct stat facts;
    TRY(file_open_regular(path, true, &file->fd, &facts));
    remember_facts(file, &facts);
    layout->bytes = facts.st_size;
    layout->device = facts.st_dev;
    layout->inode = facts.st_ino;
    layout->format = file_format_resolve(path, source->format);
    if (source->format == FILE_AUTO)
        TRY(file_check_start(path, file->fd, layout->format, layout->bytes));
    return file_examine(path, file->fd, layout->format, source->type, layout->bytes, &layout->header);
}

/* The other ranks' part: the same file must be here. On another node it may be another file, of the same
 * size: a copy on a disk of its own. */
static hsort_status open_same_file(const char *path, const struct key_layout *layout, bool same_node,
                                   struct file_in *file)
{
    struct stat facts;
    TRY(file_open_regular(path, true, &file->fd, &facts));
    remember_facts(file, &facts);
    if (facts.st_size != layout->bytes)
        return status_fail(HSORT_ARGUMENT,
                           "%s: has %" PRId64 " bytes here and %" PRId64 " on rank 0: not the same file",
                           path, (int64_t)facts.st_size, layout->bytes);
    if (same_node && (facts.st_dev != layout->device || facts.st_ino != layout->inode))
        return status_fail(HSORT_ARGUMENT, "%s: is another file for rank 0: not the same file", path);
    return HSORT_OK;
}

/* What rank 0 has found is known: be ready to read this rank's share of it. */
static hsort_status take_layout(const struct comm *comm, const struct key_layout *layout,
                                hsort_choice direct_io, struct file_in *file)
{
    file->format = layout->format;
    file->type = layout->header.type;
    file->swapped = layout->header.swapped;
    file->count = layout->header.count;
    file->data_offset = layout->header.data_offset;
    const int64_t share =
        (file->bytes - file->data_offset) / comm->size; // near enough to ask what is in memory
    return block_open_input(file->path, file->fd, direct_io, file->data_offset + share * comm->rank, share,
                            &file->blocks);
}

hsort_status file_open(struct comm *comm, const struct file_source *source, struct file_in *file)
{
    struct key_layout layout;
    memset(&layout, 0, sizeof layout); // its padding is sent too
    *file = (struct file_in){.fd = -1, .path = strdup(source->path)};

    hsort_status status = HSORT_OK;
    if (!file->path)
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", source->path);
    else if (comm->rank == 0)
        status = open_on_rank_0(source, file, &layout);
    status = comm_agree(comm, status);

    if (status == HSORT_OK) {
        bool same_node = false;
        status = comm_check(MPI_Bcast(&layout, sizeof layout, MPI_BYTE, 0, comm->world), "MPI_Bcast", false);
        if (status == HSORT_OK)
            status = file_shares_node_with_rank_0(comm, &same_node);
        if (status == HSORT_OK && comm->rank != 0)
            status = open_same_file(source->path, &layout, same_node, file);
        if (status == HSORT_OK)
            status = take_layout(comm, &layout, source->direct_io, file);
        status = comm_agree(comm, status);
    }
    if (status != HSORT_OK)
        file_close(file);
    return status;
}

static void swap_bytes_u32(uint32_t *keys, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        keys[i] = __builtin_bswap32(keys[i]);
}

static void swap_bytes_u64(uint64_t *keys, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        keys[i] = __builtin_bswap64(keys[i]);
}

hsort_status file_read_at(const struct file_in *file, int64_t at, size_t bytes, void *to)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(file->type), many = (int64_t)bytes;
    TRY(file_range_check(file->path, file->count * key_bytes, at, many));
    if (file->swapped && (at % key_bytes != 0 || many % key_bytes != 0))
        return status_fail(HSORT_INTERNAL, "%s: a chunk would cut a key whose bytes are swapped", file->path);
    TRY(block_read(file->blocks, file->data_offset + at, bytes, to));
    if (file->swapped)
        KEY_CALL((int)key_bytes, swap_bytes, to, many / key_bytes);
    return HSORT_OK;
}

hsort_status file_read(const struct file_in *file, int64_t first, int64_t count, void *keys)
{
    const int64_t key_bytes = (int64_t)hsort_type_bytes(file->type);
    TRY(file_range_check(file->path, file->count, first, count));
    return file_read_at(file, first * key_bytes, (size_t)(count * key_bytes), keys);
}

size_t file_in_lead(const struct file_in *file, int64_t at)
{
    if (file->swapped && file->data_offset % (int64_t)hsort_type_bytes(file->type) != 0)
        return 0;
    return (size_t)((file->data_offset + at) % FILE_CHUNK_BYTES);
}

hsort_status file_check_unchanged(const struct file_in *file)
{
    struct stat facts;
    if (fstat(file->fd, &facts) != 0)
        return status_fail(HSORT_IO, "%s: cannot be looked at: %s", file->path, strerror(errno));
    if (facts.st_size != file->bytes || facts.st_mtim.tv_sec != file->changed.tv_sec ||
        facts.st_mtim.tv_nsec != file->changed.tv_nsec || fault_hit(FAULT_CHANGED))
        return status_fail(HSORT_IO, "%s: was changed while it was read", file->path);
    return HSORT_OK;
}

void file_close(struct file_in *file)
{
    block_close(file->blocks);
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct file_in){.fd = -1};
}
