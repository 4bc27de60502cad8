/* Elements between files and memory, by all threads of a rank. */
#ifndef RECORD_IO_H
#define RECORD_IO_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"
#include "src/command/cli.h"
#include "src/command/progress.h"
#include "src/command/record_keys.h"
#include "src/files/file.h"
#include "src/library/verify.h"

struct record_io {
    struct engine *engine;     /* for its threads; owned */
    struct progress *progress; /* or NULL: the caller shows the progress */
};

/* The input of a command as a file of keys: of --type, or of the type that the file names. */
struct file_source record_io_key_source(const struct cli_options *options);

/* The same as a file of elements; elements of raw files have --record bytes. */
struct file_source record_io_source(const struct cli_options *options);

/* Open --values, which must have one value for each of `elements`. Collective. Errors file_open()'s; HSORT_ARGUMENT if there are more or
 * fewer values, or if they are too large. Nothing is open after an error. */
hsort_status record_io_open_values(struct comm *comm, const struct cli_options *options,
                                   const struct file_in *elements, struct file_in *values);

/* A file of positions or of numbers of elements, as texts say it. */
struct number_list {
    const char *has, *is_of; /* "an index has one", "an index is of <i8 or <u8" */
    bool or_unsigned;        /* <u8 as well as <i8 */
};

/* Open such a file, by its name a .npy file or a raw one. Collective. Errors file_open()'s; HSORT_FORMAT: it is no such list. Nothing is
 * open after an error. */
hsort_status record_io_open_list(struct comm *comm, const char *path, hsort_choice direct_io,
                                 const struct number_list *is, struct file_in *list);

/* Open the engine. Not collective. Errors HSORT_ARGUMENT (threads), HSORT_HOST_MEMORY. */
hsort_status record_io_open(struct comm *comm, int threads, struct progress *progress, struct record_io *io);

/* The same, after opening a context of the library, as the options say. Both tell `progress` how far they are, if the user asks.
 * Collective. Errors, the same on every rank: hsort_create()'s, and those above. */
hsort_status record_io_library(struct comm *comm, const struct cli_options *options, struct progress *progress,
                               hsort_context **ctx, struct record_io *io);

void record_io_close(struct record_io *io); /* also of one that is all 0 */

/* memory = elements first .. first + count - 1 of an input. Not collective. Errors: file_read_at()'s. */
hsort_status record_io_read(struct record_io *io, const struct file_in *file, int64_t first, int64_t count,
                            void *memory);

/* Write elements to an output in the same way. */
hsort_status record_io_write(struct record_io *io, const struct file_out *file, int64_t first, int64_t count,
                             const void *memory);

/* memory = elements of an output, read back. Errors: file_read_back_at()'s. */
hsort_status record_io_read_back(struct record_io *io, const struct file_out *file, int64_t first,
                                 int64_t count, void *memory);

/* *same = does the output have these elements? Errors also HSORT_HOST_MEMORY. */
hsort_status record_io_compare(struct record_io *io, const struct file_out *file, int64_t first,
                               int64_t count, const void *memory, bool *same);

/* Let a verifier see elements of an output, as records with such keys, numbered by their places. Errors: record_io_compare()'s. */
hsort_status record_io_verify_back(struct record_io *io, const struct file_out *file, int64_t first,
                                   int64_t count, const struct record_keys *keys, struct verifier *verifier);

#endif
