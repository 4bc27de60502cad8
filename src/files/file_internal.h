/* What reading (file.c) and writing (file_out.c) key files share, and a checkpoint's files (checkpoint.c)
 * with them. */
#ifndef FILE_INTERNAL_H
#define FILE_INTERNAL_H

#include <sys/stat.h>
#include "src/files/file.h"
#include "src/files/npy.h"

/* Read the header of an open file of `format`, never AUTO, that has `bytes` bytes in all, and check it against
 * that size. A raw file has no header; *header [1] is then what one would say. Not collective. Errors as file_open().
 *   source  what is wanted of the file, except the type
 *   type    that keys must have, or NULL
 *   header  [1] written; its element's descr, unless NULL, is the caller's to free */
hsort_status file_examine(const char *path, int fd, enum file_format format, const struct file_source *source,
                          const hsort_type *type, int64_t bytes, struct npy_header *header);

/* Make the header for what a target is to hold; this file has `count` of its keys or elements. header [1] written: the
 * caller frees it. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status file_make_header(enum file_format format, const struct file_target *target, int64_t count,
                              unsigned char **header, size_t *bytes);

/* Refuse a file that is to be read as `format`, although nobody said so, if it begins like a file of a format that is not
 * known here. Not collective.
 *   raw_word   file_source.raw_word
 * Errors HSORT_IO, HSORT_FORMAT. */
hsort_status file_check_start(const char *path, int fd, enum file_format format, const char *raw_word,
                              int64_t bytes);

/* HSORT_INTERNAL unless keys, or bytes, first .. first + count - 1 lie within `total`. Not collective. */
hsort_status file_range_check(const char *path, int64_t total, int64_t first, int64_t count);

/* Descriptors that this process may come to need besides its inputs and runs, most of them MPI's. */
enum { FILE_DESCRIPTORS_BESIDE = 256 };

/* Descriptors that this process has open now, inputs among them, and some that are to be left free. Not collective. */
int file_descriptors_taken(void);

/* Is the file of these facts, open or only looked at, one of the input's? `input` may be NULL. Not collective. */
bool file_is_input(const struct file_in *input, const struct stat *facts);

/* Open a regular file for reading and look at it. After an error *fd is -1. Not collective. Errors HSORT_IO.
 *   follow  the file may be reached through a symbolic link, as a file that the user named may be */
hsort_status file_open_regular(const char *path, bool follow, int *fd, struct stat *facts);

/* The cause of a failed open() that had O_NOFOLLOW: strerror(error), or that there is a link. */
const char *file_open_cause(int error);

/* *same_node = rank 0 runs on this rank's node, so that devices and inodes mean the same to both. Collective. */
hsort_status file_shares_node_with_rank_0(struct comm *comm, bool *same_node);

/* Find where the output `path` of `rank` goes, if it may go there at all: chosen [PATH_MAX] = `path` with its %r and %%
 * replaced, or what that is a link to; there [1] = the file that lies there, with an st_mode of 0 if there is none. Not
 * collective. Errors HSORT_IO, HSORT_ARGUMENT (it is `input`). */
hsort_status file_choose_path(const char *path, int rank, const struct file_in *input, char *chosen,
                              struct stat *there);

/* Fail because there is a file at `path`, and it is not to be replaced: HSORT_ARGUMENT. */
hsort_status file_refuse_clobber(const char *path);

/* Refuse a file that lies where an output is to go and is an input. Not collective. Errors HSORT_ARGUMENT. */
hsort_status file_refuse_input(const char *path, const struct file_in *input, const struct stat *there);

/* name [PATH_MAX] = what the output at `path` is called until it is whole; `tag` tells that name from those of
 * other runs. A name that would be too long for a directory is cut. Not collective. Errors HSORT_IO: the whole
 * path is too long. */
hsort_status file_temporary_name(const char *path, const char *tag, char *name);

/* Free everything that belongs to an output. Unless it is to stay, rank 0 removes the temporary, or each rank its own. Not
 * collective. */
void file_release(struct comm *comm, struct file_out *file, bool stays);

/* Give a file its full size before it is written. Not collective. Errors HSORT_IO, with the cause in errno. */
hsort_status file_reserve(const char *path, int fd, int64_t bytes);

/* Bring a file to disk. file_sync_and_close() also closes it: *fd is then -1. Not collective. Errors HSORT_IO, of file_sync()
 * with the cause in errno; the file may still be open. */
hsort_status file_sync(const char *path, int fd);
hsort_status file_sync_and_close(const char *path, int *fd);

/* Let the names in the directory of `path` outlast a crash. Returns 0, or -1 with errno. Not collective. */
int file_sync_directory(const char *path);

#endif
