/* The start of an input on its way into the page cache while MPI and the GPU start, which read nothing. What has come is then
 * read through the cache (block_io.h), and the rest directly:
 *
 *      this rank's share    | asked for: cached | not yet asked for: direct if that pays . . . . . |
 *                           first               end, where the first block_read() stops it
 *
 * There is one such range in a process, because it begins before all else. Nothing depends on it but time: it is not there if
 * the file is not, if there is no thread to be had, or if the launcher does not say which share is this rank's. */
#ifndef READ_AHEAD_H
#define READ_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

/* Begin, in a thread that takes no signals. Once, and not collective: MPI need not have started.
 *   paths        [count] files that are taken as one array; borrowed for this call. The range ends with the file that it begins in.
 *                For more than 64 files there is none: all ranks would ask for the sizes of all of them once more
 *   rank, ranks  the share: the rank'th of so many equal parts of all bytes
 *   bytes_max    of the range */
void read_ahead_start(const char *const *paths, int count, int rank, int ranks, int64_t bytes_max);

/* Is there a range of this open file? Not collective. */
bool read_ahead_is_of(int fd);

/* Ask for nothing more. Any thread, any number of times. */
void read_ahead_stop(void);

/* How many bytes from `offset` on have been asked for: they are in the page cache, or on their way there. Any thread. */
int64_t read_ahead_at(int64_t offset);

/* Stop, and free what read_ahead_start() took: then there is no range, and another one may begin. No other thread may use it
 * any more. */
void read_ahead_end(void);

#endif
