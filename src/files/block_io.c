#include "src/files/block_io.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"
#include "src/files/io_error.h"
#include "src/files/read_ahead.h"

enum {
    BLOCK_BYTES = 4096, /* alignment unless the kernel tells another; no block is smaller */
    BOUNCES = 16,       /* aligned buffers that are kept, of all files together */
    PROBES = 32         /* places at which the page cache is asked */
};

struct block_file {
    const char *path;    /* borrowed */
    int fd;              /* borrowed */
    int direct_fd;       /* of the same file with O_DIRECT, or -1; owned */
    bool must;           /* be direct: a refusal is an error */
    bool ahead;          /* its start may be in the page cache (read_ahead.h) */
    size_t block_bytes;  /* unit of direct requests, a power of two */
    size_t memory_bytes; /* alignment of memory for them, a power of two */
    atomic_bool direct;  /* the file system has not refused yet */
    atomic_bool full;    /* a write was refused for want of space */
};

/* Idle buffers for requests, each of BLOCK_REQUEST_BYTES and aligned to as much, or NULL. They belong to the process, not to a
 * file: a sort may have hundreds of files open, and the number of threads, not of files, says how many buffers it needs at a
 * time. Freed with the last file. */
static void *_Atomic bounces[BOUNCES];
static atomic_int open_files;

/* Bytes on their way from a file to memory, or from memory, which stays as it is, to a file. */
struct transfer {
    int64_t offset;
    size_t bytes;
    char *memory;
    bool writes;
};

/* ---- One system call ----------------------------------------------------------------------------------- */

/* Move the first `bytes` of a transfer, or fewer. */
static ssize_t request(int fd, const struct transfer *t, size_t bytes)
{
    if (t->writes)
        return io_fault(FAULT_WRITE, ENOSPC) ? -1 : pwrite(fd, t->memory, bytes, t->offset);
    if (io_fault(FAULT_READ, EIO))
        return -1;
    return fault_hit(FAULT_SHORT) ? 0 : pread(fd, t->memory, bytes, t->offset);
}

static void advance(struct transfer *t, size_t bytes)
{
    t->offset += (int64_t)bytes;
    t->bytes -= bytes;
    t->memory += bytes;
}

/* Report a call that moved nothing, and leave the cause in errno. Errors HSORT_IO: always. */
static hsort_status fail_request(const char *path, const struct transfer *t, ssize_t moved, size_t bytes)
{
    const int64_t end = t->offset + (int64_t)t->bytes;
    const int cause = moved < 0 ? errno : 0;
    if (moved == 0 && !t->writes)
        status_fail(HSORT_IO,
                    "%s: ends at byte %" PRId64 ", %" PRId64 " expected: cut short while it was read", path,
                    t->offset, end);
    else
        status_fail(HSORT_IO, "%s: cannot %s %zu bytes at %" PRId64 ": %s", path,
                    t->writes ? "write" : "read", bytes, t->offset,
                    moved < 0 ? strerror(cause) : "nothing was taken");
    errno = cause;
    return HSORT_IO;
}

/* Move at least one byte of the first `bytes` through the cache. */
static hsort_status move_cached(const char *path, int fd, struct transfer *t, size_t bytes)
{
    ssize_t moved;
    do
        moved = request(fd, t, bytes);
    while (moved < 0 && errno == EINTR);
    if (moved <= 0)
        return fail_request(path, t, moved, bytes);
    advance(t, (size_t)moved);
    return HSORT_OK;
}

static hsort_status transfer_cached(const char *path, int fd, struct transfer t)
{
    while (t.bytes > 0)
        TRY(move_cached(path, fd, &t, t.bytes < BLOCK_REQUEST_BYTES ? t.bytes : BLOCK_REQUEST_BYTES));
    return HSORT_OK;
}

/* ---- Whole blocks, directly ---------------------------------------------------------------------------- */

/* Go on through the cache. Errors HSORT_IO: the file must be direct. */
static hsort_status refuse_direct(struct block_file *file, int cause)
{
    atomic_store(&file->direct, false);
    if (!file->must)
        return HSORT_OK;
    return status_fail(HSORT_IO, "%s: its file system refuses O_DIRECT: %s; '--direct-io auto' works without",
                       file->path, strerror(cause));
}

/* Memory that any direct request can use, or NULL. It is kept from one request to the next, because getting it, page by
 * page, takes as long as a part of the request itself. */
static void *take_bounce(void)
{
    for (int i = 0; i < BOUNCES; i++) {
        void *memory = atomic_exchange(&bounces[i], NULL);
        if (memory)
            return memory;
    }
    return fault_hit(FAULT_ALLOC) ? NULL : aligned_alloc(BLOCK_REQUEST_BYTES, BLOCK_REQUEST_BYTES);
}

static void give_bounce(void *memory)
{
    for (int i = 0; i < BOUNCES; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&bounces[i], &none, memory))
            return;
    }
    free(memory);
}

static void free_bounces(void)
{
    for (int i = 0; i < BOUNCES; i++)
        free(atomic_exchange(&bounces[i], NULL));
}

/* request() by way of aligned memory. */
static ssize_t request_bounced(struct block_file *file, const struct transfer *t, size_t bytes)
{
    void *memory = take_bounce();
    if (!memory) {
        errno = ENOMEM;
        return -1;
    }
    struct transfer there = {t->offset, bytes, memory, t->writes};
    if (t->writes)
        memcpy(memory, t->memory, bytes);
    const ssize_t moved = request(file->direct_fd, &there, bytes);
    const int cause = errno;
    if (moved > 0 && !t->writes)
        memcpy(t->memory, memory, (size_t)moved);
    give_bounce(memory);
    errno = cause;
    return moved;
}

/* Does a file system say by this error that it does not do the request directly? EFAULT counts, because a disk need not
 * reach memory that a device has mapped. */
static bool is_refusal(int error)
{
    return error == EINVAL || error == EOPNOTSUPP || error == EFAULT;
}

/* Move at least one byte of the first `bytes`, which are whole blocks; or nothing, if the file system refused to. */
static hsort_status move_direct(struct block_file *file, struct transfer *t, size_t bytes)
{
    const uintptr_t address = (uintptr_t)t->memory;
    const bool aligned = address % file->memory_bytes == 0;
    ssize_t moved;
    do
        moved = io_fault(FAULT_DIRECT, EINVAL) ? -1
                : aligned                      ? request(file->direct_fd, t, bytes)
                                               : request_bounced(file, t, bytes);
    while (moved < 0 && errno == EINTR);
    if (moved < 0 && is_refusal(errno))
        return refuse_direct(file, errno);
    if (moved < 0 && errno == ENOMEM)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to %s directly", file->path,
                           t->writes ? "write" : "read");
    if (moved <= 0)
        return fail_request(file->path, t, moved, bytes);
    advance(t, (size_t)moved);
    return HSORT_OK;
}

/* One loop moves head, middle and tail, and what is left of them after a call that moved less. */
static hsort_status transfer_blocks(struct block_file *file, struct transfer t)
{
    while (t.bytes > 0) {
        const size_t inside = (size_t)t.offset & (file->block_bytes - 1),
                     to_border = file->block_bytes - inside;
        const size_t came = file->ahead ? (size_t)read_ahead_at(t.offset) : 0;
        size_t bytes = t.bytes < BLOCK_REQUEST_BYTES ? t.bytes : BLOCK_REQUEST_BYTES;
        if (!block_is_direct(file)) {
            TRY(move_cached(file->path, file->fd, &t, bytes));
        } else if (came > 0) {
            TRY(move_cached(file->path, file->fd, &t, lesser_bytes(bytes, came)));
        } else if (inside > 0 || bytes < file->block_bytes) {
            TRY(move_cached(file->path, file->fd, &t, bytes < to_border ? bytes : to_border));
        } else {
            TRY(move_direct(file, &t, bytes & ~(file->block_bytes - 1)));
        }
    }
    return HSORT_OK;
}

hsort_status block_read(struct block_file *file, int64_t offset, size_t bytes, void *to)
{
    if (file->ahead)
        read_ahead_stop(); // the disk is now wanted for what nobody has asked for
    return transfer_blocks(file, (struct transfer){offset, bytes, to, false});
}

hsort_status block_write(struct block_file *file, int64_t offset, size_t bytes, const void *from)
{
    const hsort_status status = transfer_blocks(file, (struct transfer){offset, bytes, (char *)from, true});
    if (status == HSORT_IO && (errno == ENOSPC || errno == EDQUOT))
        atomic_store(&file->full, true);
    return status;
}

bool block_was_full(const struct block_file *file)
{
    return file && atomic_load(&file->full);
}

hsort_status block_read_cached(const char *path, int fd, int64_t offset, size_t bytes, void *to)
{
    return transfer_cached(path, fd, (struct transfer){offset, bytes, to, false});
}

hsort_status block_write_cached(const char *path, int fd, int64_t offset, size_t bytes, const void *from)
{
    return transfer_cached(path, fd, (struct transfer){offset, bytes, (char *)from, true});
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* Find the alignment that the file system wants of direct requests. False: it takes none. */
static bool ask_alignment(struct block_file *file)
{
    file->memory_bytes = BLOCK_BYTES;
    file->block_bytes = greater_bytes(BLOCK_BYTES, (size_t)sysconf(_SC_PAGESIZE));
#ifdef STATX_DIOALIGN
    struct statx facts;
    if (statx(file->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) != 0 || !(facts.stx_mask & STATX_DIOALIGN))
        return true; // an older kernel cannot tell
    if (facts.stx_dio_offset_align == 0)
        return false;
    file->memory_bytes = facts.stx_dio_mem_align;
    file->block_bytes = greater_bytes(file->block_bytes, facts.stx_dio_offset_align);
#endif
    return file->block_bytes <= BLOCK_REQUEST_BYTES && file->memory_bytes <= BLOCK_REQUEST_BYTES;
}

/* Open a second descriptor of the same file, not of its name, which may be another file's by now. Not by fcntl(): with
 * O_DIRECT set on the first descriptor, head and tail could not go through the cache. */
static hsort_status open_uncached(struct block_file *file)
{
    char self[64];
    const int mode = fcntl(file->fd, F_GETFL) & O_ACCMODE;
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->fd);
    if (!ask_alignment(file))
        return refuse_direct(file, EOPNOTSUPP);
    file->direct_fd =
        io_fault(FAULT_DIRECT, EINVAL) ? -1 : open(self, mode | O_DIRECT | O_CLOEXEC | O_NOCTTY);
    if (file->direct_fd < 0)
        return refuse_direct(file, errno);
    atomic_store(&file->direct, true);
    return HSORT_OK;
}

static hsort_status open_blocks(const char *path, int fd, hsort_choice choice, bool direct,
                                struct block_file **file)
{
    *file = fault_hit(FAULT_ALLOC) ? NULL : malloc(sizeof **file);
    if (!*file)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to read or write it", path);
    **file = (struct block_file){.path = path, .fd = fd, .direct_fd = -1, .must = choice == HSORT_CHOICE_ON};
    atomic_fetch_add(&open_files, 1);
    const hsort_status status = direct ? open_uncached(*file) : HSORT_OK;
    if (status != HSORT_OK) {
        block_close(*file);
        *file = NULL;
    }
    return status;
}

/* Are most of these bytes out of the page cache? A place is drawn in each of 32 parts, because asking brings a little of the
 * file in: whoever asked next at the same places would take all of the file to be there. False if nobody can tell. */
static bool is_mostly_absent(int fd, int64_t first, int64_t bytes)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint32_t random = (uint32_t)now.tv_nsec ^ (uint32_t)getpid() << 12;
    const int64_t part = bytes / PROBES;
    int absent = 0;
    for (int i = 0; i < PROBES && part > 0; i++) {
        char byte;
        const struct iovec place = {&byte, 1};
        random = random * 1664525 + 1013904223;
        const int64_t inside = (int64_t)((double)part * (random / 4294967296.0));
        const ssize_t got = preadv2(fd, &place, 1, first + i * part + inside, RWF_NOWAIT);
        if (got < 0 && errno != EAGAIN)
            return false;
        absent += got < 0;
    }
    return 2 * absent > PROBES;
}

hsort_status block_open_input(const char *path, int fd, hsort_choice direct, int64_t first, int64_t bytes,
                              struct block_file **file)
{
    const bool pays =
        direct == HSORT_CHOICE_ON || (direct == HSORT_CHOICE_AUTO && is_mostly_absent(fd, first, bytes));
    TRY(open_blocks(path, fd, direct, pays, file));
    (*file)->ahead = direct != HSORT_CHOICE_ON && read_ahead_is_of(fd);
    return HSORT_OK;
}

/* Does this file lie on a disk, or on the servers of a parallel file system that does direct I/O as a disk does? Other file
 * systems stay in memory, or have their own ways to keep apart what ranks of different nodes write (NFS, FUSE). */
static bool is_on_disk(int fd)
{
    static const uint32_t known[] = {
        0xEF53,     // ext2, ext3, ext4
        0x58465342, // XFS
        0x9123683E, // btrfs
        0xF2F52010, // F2FS
        0x794C7630, // overlay: a container's
        0x0BD00BD0, // Lustre
    };
    struct statfs facts;
    if (fstatfs(fd, &facts) != 0)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((uint32_t)facts.f_type == known[i])
            return true;
    return false;
}

hsort_status block_open_output(const char *path, int fd, hsort_choice direct, struct block_file **file)
{
    return open_blocks(path, fd, direct,
                       direct == HSORT_CHOICE_ON || (direct == HSORT_CHOICE_AUTO && is_on_disk(fd)), file);
}

bool block_is_direct(const struct block_file *file)
{
    return atomic_load(&file->direct);
}

void block_close(struct block_file *file)
{
    if (!file)
        return;
    if (file->direct_fd >= 0)
        close(file->direct_fd);
    free(file);
    if (atomic_fetch_sub(&open_files, 1) == 1)
        free_bounces();
}
