/* Bytes of one open file, read and written by any number of threads at once: through the page cache, or directly between
 * disk and memory (O_DIRECT). Direct requests cost no core a copy and leave the cache to others.
 *
 * Direct requests move whole blocks, so what a caller asks for is cut in three:
 *
 *      file       |  block 0  |  block 1  |  block 2  |  block 3  |
 *      asked for         [ head | middle . . . . . . . | tail ]
 *                        cached   direct                 cached
 *
 * The middle goes straight to or from the caller's memory if that is aligned as the device wants it, else through memory
 * that all files of the process share. Head and tail go through the cache: a direct write would first have to read the rest
 * of the block, and would write it back over what a neighbour puts there meanwhile.
 *
 *      block                            0         1         2: 8192 ... 12287              3         4
 *      rank 0 writes    0 ...  9999     direct    direct    cached, to 9999
 *      rank 1 writes 10000 ... 20479                        cached, from 10000 on          direct    direct
 *
 * A block is direct only for a request that covers all of it. So a block that two requests share is cached for both, and the
 * cache merges their bytes, as it does for any two writers (for ranks of several nodes: as their file system promises for
 * buffered writes). In the cache, block 2 holds no bytes of its neighbours either: the cache keeps pages, a block is never
 * smaller than a page, and a direct write makes the cache forget only the pages that it covers.
 *
 * A file system that refuses O_DIRECT, at once or at any later request, is read and written through the cache from then
 * on. If direct I/O was asked for, the refusal is an error instead. */
#ifndef BLOCK_IO_H
#define BLOCK_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hypersort.h"
#include "kernels/base/status.h"

/* Most bytes of one system call. More are no faster; Linux itself moves at most 0x7ffff000. */
enum { BLOCK_REQUEST_BYTES = 4 << 20 };

struct block_file;

/* Get ready to read bytes first .. first + bytes - 1, or any others, of an open file. Not collective.
 *   path, fd  borrowed until block_close(); path is for texts
 *   direct    AUTO: direct if most of those bytes are not in the page cache, as far as the kernel can tell; but what
 *             read_ahead.h has asked for is read from there
 *   file      [1] written: block_close() frees it; NULL after an error
 * Errors   HSORT_HOST_MEMORY; with ON also HSORT_IO: the file system refuses O_DIRECT. */
hsort_status block_open_input(const char *path, int fd, hsort_choice direct, int64_t first, int64_t bytes,
                              struct block_file **file);

/* The same for an output that is also read back.
 *   direct  AUTO: direct on the file systems of disks, although the first request may still be refused */
hsort_status block_open_output(const char *path, int fd, hsort_choice direct, struct block_file **file);

/* Not collective. NULL is fine. */
void block_close(struct block_file *file);

/* Is this file read or written directly, as far as is known now? Not collective. */
bool block_is_direct(const struct block_file *file);

/* Read: to [bytes] = the bytes from `offset` on. Write: the bytes from `offset` on = from [bytes]. Any thread, any number of
 * calls at once, of different bytes if they write. Not collective.
 * Errors   HSORT_IO: also if the file ends before the bytes do, and with ON if O_DIRECT is refused; HSORT_HOST_MEMORY. */
hsort_status block_read(struct block_file *file, int64_t offset, size_t bytes, void *to);
hsort_status block_write(struct block_file *file, int64_t offset, size_t bytes, const void *from);

/* Was any write of this file refused because the disk, or a quota, is full? NULL is fine: no. Not collective. */
bool block_was_full(const struct block_file *file);

/* The same through the page cache, for a file that has no block_file. */
hsort_status block_read_cached(const char *path, int fd, int64_t offset, size_t bytes, void *to);
hsort_status block_write_cached(const char *path, int fd, int64_t offset, size_t bytes, const void *from);

#endif
