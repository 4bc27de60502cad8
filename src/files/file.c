/* Opening and reading key files. Rank 0 alone reads the headers and tells the others what it found, so that a
 * file of the same name on another node's own disk, or a file that is being replaced, cannot give ranks
 * different layouts. Each rank then opens the files itself and compares the sizes.
 *
 *      rank 0   open, fstat, header, check ---- agree -- broadcast the layouts --- agree
 *      rank r                              ---- agree -- open, fstat, compare ---- agree
 *
 * Several files are one array, in the order in which they were named:
 *
 *      a.npy   header | 0 1 2          keys 0 ... 2, a read of keys 2 ... 5 has a part in each
 *      b.raw   3 4 5 6                 keys 3 ... 6
 *
 * All stay open on every rank. Rejected: opening a file when it is first read. If the file was replaced
 * meanwhile, the ranks that have read it before would not notice. */
#include "src/files/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/checksum.h"
#include "kernels/base/fault.h"
#include "kernels/base/key_width.h"
#include "kernels/base/lesser.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"
#include "src/files/npy.h"
#include "kernels/base/status.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw files and '<' dtypes are read as they lie");

enum { DESCRIPTORS_SPARED = 64 }; /* that are left free besides those that are open */

/* What rank 0 tells the others of each file; sent as bytes. */
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
    // Without O_NONBLOCK, opening a FIFO would wait for a writer.
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

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* Keep what was found out about an open file. */
static void remember_facts(struct file_part *part, const struct stat *facts)
{
    part->device = facts->st_dev;
    part->inode = facts->st_ino;
    part->bytes = facts->st_size;
    part->changed = facts->st_mtim;
}

static hsort_status open_part(struct file_part *part)
{
    struct stat facts;
    TRY(file_open_regular(part->path, true, &part->fd, &facts));
    remember_facts(part, &facts);
    return HSORT_OK;
}

/* Rank 0's part of file_open() for one of the files. */
static hsort_status examine_part(const struct file_source *source, const hsort_type *type,
                                 struct file_part *part, struct key_layout *layout)
{
    TRY(open_part(part));
    layout->bytes = part->bytes;
    layout->device = part->device;
    layout->inode = part->inode;
    layout->format = file_format_resolve(part->path, source->format);
    if (source->format == FILE_AUTO)
        TRY(file_check_start(part->path, part->fd, layout->format, source->raw_word, layout->bytes));
    return file_examine(part->path, part->fd, layout->format, source, type, layout->bytes, &layout->header);
}

/* Do the headers of two files say the same about their elements? */
static bool are_alike(const struct npy_element *a, const struct npy_element *b)
{
    if (a->bytes != b->bytes || a->dimensions != b->dimensions || !a->descr != !b->descr)
        return false;
    for (int i = 1; i < a->dimensions; i++)
        if (a->extent[i] != b->extent[i])
            return false;
    return !a->descr || (a->descr_bytes == b->descr_bytes && memcmp(a->descr, b->descr, a->descr_bytes) == 0);
}

/* Rank 0's part of file_open(): all files must have the type of the first, which names the type unless the user did. */
static hsort_status examine_files(const struct file_in *file, const struct file_source *source,
                                  struct key_layout *layout)
{
    const hsort_type *type = source->any ? NULL : source->type;
    for (int i = 0; i < file->parts; i++) {
        struct npy_element *element = &layout[i].header.element;
        TRY(examine_part(source, type, &file->part[i], &layout[i]));
        type = source->any ? NULL : &layout[0].header.type;
        if (i == 0)
            continue;
        const bool alike = !source->any || are_alike(element, &layout[0].header.element);
        free((char *)element->descr);
        element->descr = NULL;
        if (!alike)
            return status_fail(HSORT_FORMAT, "%s: has another dtype or shape than %s", file->part[i].path,
                               file->part[0].path);
    }
    return HSORT_OK;
}

/* The other ranks' part: the same file must be here. On another node it may be another file of the same
 * size: a copy on that node's own disk. */
static hsort_status open_same_file(const struct key_layout *layout, bool same_node, struct file_part *part)
{
    TRY(open_part(part));
    if (part->bytes != layout->bytes)
        return status_fail(HSORT_ARGUMENT,
                           "%s: has %" PRId64 " bytes here and %" PRId64 " on rank 0: not the same file",
                           part->path, part->bytes, layout->bytes);
    if (same_node && (part->device != layout->device || part->inode != layout->inode))
        return status_fail(HSORT_ARGUMENT, "%s: is another file for rank 0: not the same file", part->path);
    return HSORT_OK;
}

/* Take over what rank 0 has found: the places of all keys. */
static hsort_status take_layouts(const struct key_layout *layout, struct file_in *file)
{
    bool swapped = false, odd = false;
    const int64_t key_bytes = (int64_t)file->element.bytes;
    for (int i = 0; i < file->parts; i++) {
        const struct npy_header *header = &layout[i].header;
        struct file_part *part = &file->part[i];
        part->format = layout[i].format;
        part->swapped = header->swapped && !file->is_any;
        part->data_offset = header->data_offset;
        part->first = file->count;
        part->count = header->count;
        if (header->count >
            INT64_MAX / key_bytes - file->count) // before the sum, whose bytes can overflow
            return status_fail(HSORT_ARGUMENT,
                               "%s: with it there are more keys than 64-bit offsets can reach", part->path);
        file->count += header->count;
        swapped = swapped || part->swapped;
        odd = odd || header->data_offset % key_bytes != 0;
    }
    file->cuts = swapped && odd;
    return HSORT_OK;
}

/* Get ready to read. Whether the page cache has the bytes is asked for this rank's share. */
static hsort_status open_part_blocks(const struct comm *comm, const struct file_in *file,
                                     hsort_choice direct_io, struct file_part *part)
{
    const int64_t key_bytes = (int64_t)file->element.bytes, share = file->count / comm->size;
    int64_t first = share * comm->rank, end = first + share; // near enough
    first = (first > part->first ? first : part->first) - part->first;
    end = (end < part->first + part->count ? end : part->first + part->count) - part->first;
    return block_open_input(part->path, part->fd, direct_io, part->data_offset + first * key_bytes,
                            end > first ? (end - first) * key_bytes : 0, &part->blocks);
}

/* Learn from rank 0, which has the text of their dtype, what the elements are. Collective; the caller agrees on the status. */
static hsort_status share_element(struct comm *comm, const struct file_source *source,
                                  const struct npy_header *first, struct file_in *file)
{
    char *own = (char *)file->element.descr; // on rank 0
    file->type = first->type;
    file->is_any = source->any;
    file->is_key = first->is_key;
    file->element = first->element;
    file->element.descr = own;
    if (first->element.descr_bytes == 0)
        return HSORT_OK;
    hsort_status status = HSORT_OK;
    if (comm->rank != 0 && !(own = malloc(first->element.descr_bytes)))
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for its dtype", file->path);
    file->element.descr = own;
    TRY(comm_agree(comm, status));
    return comm_check(MPI_Bcast(own, (int)first->element.descr_bytes, MPI_BYTE, 0, comm->world), "MPI_Bcast",
                      false);
}

/* All ranks' part of file_open(), once rank 0 knows the layouts. Collective. */
static hsort_status share_layouts(struct comm *comm, const struct file_source *source,
                                  struct key_layout *layout, struct file_in *file)
{
    bool same_node = false;
    hsort_status status = comm_check(
        MPI_Bcast(layout, file->parts * (int)sizeof *layout, MPI_BYTE, 0, comm->world), "MPI_Bcast", false);
    if (status == HSORT_OK)
        status = share_element(comm, source, &layout->header, file);
    if (status == HSORT_OK)
        status = file_shares_node_with_rank_0(comm, &same_node);
    for (int i = 0; i < file->parts && status == HSORT_OK && comm->rank != 0; i++)
        status = open_same_file(&layout[i], same_node, &file->part[i]);
    if (status == HSORT_OK)
        status = take_layouts(layout, file);
    for (int i = 0; i < file->parts && status == HSORT_OK; i++)
        status = open_part_blocks(comm, file, source->direct_io, &file->part[i]);
    return comm_agree(comm, status);
}

int file_descriptors_taken(void)
{
    int count = 0;
    DIR *listing = opendir("/proc/self/fd");
    while (listing && readdir(listing))
        count++;
    if (listing)
        closedir(listing);
    return count + DESCRIPTORS_SPARED;
}

/* Let this process have as many files open as `parts` take, if it may. */
static hsort_status allow_files(int parts)
{
    struct rlimit limit;
    const rlim_t others = (rlim_t)greater(file_descriptors_taken(), FILE_DESCRIPTORS_BESIDE);
    const rlim_t wanted = 2 * (rlim_t)parts + others; // the second of each is for direct requests
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted || parts == 1)
        return HSORT_OK;
    if (limit.rlim_max < wanted)
        return status_fail(HSORT_IO, "%d inputs need 'ulimit -n %lld', which may be %lld here at most", parts,
                           (long long)wanted, (long long)limit.rlim_max);
    limit.rlim_cur = wanted;
    setrlimit(RLIMIT_NOFILE, &limit);
    return HSORT_OK;
}

/* Make names and memory for the parts. */
static hsort_status make_parts(const struct file_source *source, struct file_in *file)
{
    const char *first = source->paths[0];
    const size_t room = strlen(first) + 32;
    const int parts = source->paths_count;
    if (parts > INT_MAX / (int)sizeof(struct key_layout))
        return status_fail(HSORT_ARGUMENT, "%d inputs are too many", parts);
    file->path = malloc(room);
    file->part = calloc((size_t)parts, sizeof *file->part);
    if (!file->path || !file->part)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", first);
    snprintf(file->path, room, parts > 1 ? "%s and %d more" : "%s", first, parts - 1);
    for (file->parts = 0; file->parts < parts; file->parts++) {
        struct file_part *part = &file->part[file->parts];
        *part = (struct file_part){.fd = -1, .path = strdup(source->paths[file->parts])};
        if (!part->path)
            return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", source->paths[file->parts]);
    }
    return HSORT_OK;
}

hsort_status file_open(struct comm *comm, const struct file_source *source, struct file_in *file)
{
    *file = (struct file_in){.path = NULL};
    hsort_status status = make_parts(source, file);
    struct key_layout *layout = NULL; // calloc(), because its padding is sent, too
    if (status == HSORT_OK && !(layout = calloc((size_t)file->parts, sizeof *layout)))
        status = status_fail(HSORT_HOST_MEMORY, "%s: no memory for its layout", source->paths[0]);
    if (status == HSORT_OK)
        status = allow_files(file->parts);
    if (status == HSORT_OK && comm->rank == 0)
        status = examine_files(file, source, layout);
    if (layout) { // the text is not part of what is sent
        file->element.descr = layout->header.element.descr;
        layout->header.element.descr = NULL;
    }
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = share_layouts(comm, source, layout, file);
    free(layout);
    if (status != HSORT_OK)
        file_close(file);
    return status;
}

bool file_is_input(const struct file_in *input, const struct stat *facts)
{
    for (int i = 0; input && i < input->parts; i++)
        if (facts->st_dev == input->part[i].device && facts->st_ino == input->part[i].inode)
            return true;
    for (int i = 0; input && i < input->behinds; i++)
        if (facts->st_dev == input->behind[i].device && facts->st_ino == input->behind[i].inode)
            return true;
    return false;
}

hsort_status file_add_behind(struct file_in *file, const char *path)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return errno == ENOENT || errno == ENOTDIR ? HSORT_OK : io_fail(path, "cannot be looked at");
    if (file_is_input(file, &facts))
        return HSORT_OK;
    struct file_behind *more = realloc(file->behind, (size_t)(file->behinds + 1) * sizeof *more);
    if (!more)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to remember it", path);
    file->behind = more;
    struct file_behind *behind = &more[file->behinds];
    *behind = (struct file_behind){.path = strdup(path),
                                   .device = facts.st_dev,
                                   .inode = facts.st_ino,
                                   .bytes = facts.st_size,
                                   .changed = facts.st_mtim};
    if (!behind->path)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to remember it", path);
    file->behinds++;
    return HSORT_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static void swap_bytes_u16(uint16_t *keys, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        keys[i] = __builtin_bswap16(keys[i]);
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

static void swap_bytes_u128(uint128 *keys, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        keys[i] = (uint128)__builtin_bswap64((uint64_t)keys[i]) << 64 |
                  __builtin_bswap64((uint64_t)(keys[i] >> 64));
}

/* Find the last part that begins at key `key` or before it: it has the key, if any part has. */
static const struct file_part *find_part(const struct file_in *file, int64_t key)
{
    int low = 0;
    for (int high = file->parts; high - low > 1;) {
        const int middle = low + (high - low) / 2;
        if (file->part[middle].first <= key)
            low = middle;
        else
            high = middle;
    }
    return &file->part[low];
}

/* file_read_at() for bytes of one file. */
static hsort_status read_part(const struct file_part *part, int64_t key_bytes, int64_t at, int64_t bytes,
                              void *to)
{
    if (part->swapped && (at % key_bytes != 0 || bytes % key_bytes != 0))
        return status_fail(HSORT_INTERNAL, "%s: a chunk would cut a key whose bytes are swapped", part->path);
    TRY(block_read(part->blocks, part->data_offset + at, (size_t)bytes, to));
    if (part->swapped && key_bytes == sizeof(uint16_t))
        swap_bytes_u16(to, bytes / key_bytes);
    else if (part->swapped)
        KEY_CALL((int)key_bytes, swap_bytes, to, bytes / key_bytes);
    return HSORT_OK;
}

hsort_status file_read_at(const struct file_in *file, int64_t at, size_t bytes, void *to)
{
    const int64_t key_bytes = (int64_t)file->element.bytes;
    TRY(file_range_check(file->path, file->count * key_bytes, at, (int64_t)bytes));
    for (int64_t done = 0, many; done < (int64_t)bytes; done += many) {
        const struct file_part *part = find_part(file, (at + done) / key_bytes);
        const int64_t inside = at + done - part->first * key_bytes, left = part->count * key_bytes - inside;
        many = (int64_t)bytes - done < left ? (int64_t)bytes - done : left;
        TRY(read_part(part, key_bytes, inside, many, (char *)to + done));
    }
    return HSORT_OK;
}

hsort_status file_read(const struct file_in *file, int64_t first, int64_t count, void *keys)
{
    const int64_t key_bytes = (int64_t)file->element.bytes;
    TRY(file_range_check(file->path, file->count, first, count));
    return file_read_at(file, first * key_bytes, (size_t)(count * key_bytes), keys);
}

size_t file_in_lead(const struct file_in *file, int64_t at)
{
    const int64_t key_bytes = (int64_t)file->element.bytes;
    const struct file_part *part = find_part(file, at / key_bytes);
    if (file->cuts)
        return 0;
    return (size_t)((part->data_offset + at - part->first * key_bytes) % FILE_CHUNK_BYTES);
}

static bool is_as_it_was(const struct stat *facts, int64_t bytes, struct timespec changed)
{
    return facts->st_size == bytes && facts->st_mtim.tv_sec == changed.tv_sec &&
           facts->st_mtim.tv_nsec == changed.tv_nsec;
}

hsort_status file_check_unchanged(const struct file_in *file)
{
    struct stat facts;
    for (int i = 0; i < file->parts; i++) {
        const struct file_part *part = &file->part[i];
        if (fstat(part->fd, &facts) != 0)
            return io_fail(part->path, "cannot be looked at");
        if (!is_as_it_was(&facts, part->bytes, part->changed) || fault_hit(FAULT_CHANGED))
            return status_fail(HSORT_IO, "%s: was changed while it was read", part->path);
    }
    for (int i = 0; i < file->behinds; i++) {
        const struct file_behind *behind = &file->behind[i];
        if (stat(behind->path, &facts) != 0 || facts.st_dev != behind->device ||
            facts.st_ino != behind->inode || !is_as_it_was(&facts, behind->bytes, behind->changed))
            return status_fail(HSORT_IO, "%s, to which %s leads: was changed while it was read", behind->path,
                               file->path);
    }
    return HSORT_OK;
}

static uint64_t add_facts(const char *path, int64_t bytes, struct timespec changed, uint64_t digest)
{
    const int64_t facts[] = {bytes, changed.tv_sec, changed.tv_nsec};
    return checksum_add(checksum_add(digest, path, strlen(path) + 1), facts, sizeof facts);
}

uint64_t file_add_identity(const struct file_in *file, uint64_t digest)
{
    for (int i = 0; i < file->parts; i++)
        digest = add_facts(file->part[i].path, file->part[i].bytes, file->part[i].changed, digest);
    for (int i = 0; i < file->behinds; i++)
        digest = add_facts(file->behind[i].path, file->behind[i].bytes, file->behind[i].changed, digest);
    return digest;
}

void file_close(struct file_in *file)
{
    for (int i = 0; i < file->parts; i++) {
        block_close(file->part[i].blocks);
        if (file->part[i].fd >= 0)
            close(file->part[i].fd);
        free(file->part[i].path);
    }
    for (int i = 0; i < file->behinds; i++)
        free(file->behind[i].path);
    free(file->part);
    free(file->behind);
    free(file->path);
    free((char *)file->element.descr);
    *file = (struct file_in){.path = NULL};
}
