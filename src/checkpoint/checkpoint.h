/* What a stopped sort leaves in a directory so that the same command, started again on any number of ranks,
 * goes on and ends with the same bytes.
 *
 *     DIR/manifest          what the command is, and what is written of OUT; a text, checksummed, replaced by rename only
 *     DIR/.hypersort-lock   held while a command works in DIR; DIR/.hypersort-manifest: a manifest being written
 *     OUT.hypersort-ID.part the output, of full size, partly written; OUT is where the user wants it
 *
 * A stop while keys are read or sorted keeps none of them: reading a copy is no faster than reading the input,
 * and sorting again takes less time than writing all keys, and a job that is about to be killed has little time.
 * A stop while keys are written keeps what is written: the next start sorts again, compares what is there, and
 * writes the rest.
 *
 * Whatever kills the command, and whenever: either a manifest is there and whole, or there is none and the
 * next start begins anew. If a manifest is removed by hand, its temporary output stays, because nothing else
 * knows its name. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "mpi/comm/comm.h"
#include "src/files/file.h"
#include "hypersort.h"

/* Keys [first, first + count) of the output. */
struct checkpoint_range {
    int64_t first, count;
};

struct checkpoint {
    char *directory;     /* owned */
    bool found;          /* a manifest was there: this run goes on from it */
    char part[PATH_MAX]; /* the temporary name of the output; the same on every rank */
    uint64_t id;         /* of this manifest since it was begun */
    char key[PATH_MAX]; /* of records: what they are sorted by; "": bare keys, of this type: */
    hsort_type type;
    hsort_order order;
    int64_t keys;                     /* or records, of the whole input */
    struct checkpoint_range *written; /* [ranges] in order, apart; owned */
    int ranges;
    /* What the input was: */
    int64_t input_bytes;        /* of all its files */
    struct timespec input_time; /* of the last change of any */
    int64_t inputs;             /* files; `input` is the first */
    uint64_t inputs_digest;     /* of several files: of their names, sizes and times, in order; of one file: 0 */
    uint64_t sample; /* a digest of some blocks of them; 0: the manifest has none, nothing is compared */
    char input[PATH_MAX],
        output[PATH_MAX]; /* with all links followed, for people to read; `output` is also compared */
    enum file_format output_format;
    int lock; /* rank 0's descriptor of the lock, or -1 */
};

/* Open the checkpoint that `directory` holds, or begin a manifest there. The directory is made if it is missing (not
 * its parents). Collective.
 *   in, output, output_format, order, key   of the command; key: of records, or NULL
 *   checkpoint    [1] written; checkpoint_close() frees it; nothing to free after an error
 * After    the manifest is on disk; checkpoint->part names the temporary file of the output
 * Errors   same on every rank, naming the file: HSORT_IO (cannot be made, read, written; another command works in it; not seen
 *          by every rank), HSORT_FORMAT (manifest damaged or of another version; or of an input that is another one or has
 *          changed since, or of another type, order, output: the line says which, and what to do), HSORT_ARGUMENT (output is
 *          the input; a path that does not fit into a line). Nothing is changed then.
 * Only files with names that only hypersort gives are ever removed: DIR may hold other files of the user's. */
hsort_status checkpoint_open(struct comm *comm, const char *directory, const struct file_in *in,
                             const char *output, enum file_format output_format, hsort_order order,
                             const char *key, struct checkpoint *checkpoint);

/* Add some blocks of each file of an input, spread over it, to a digest: a file that replaces another and keeps its size and time
 * differs in nothing else. Not collective. Errors HSORT_IO. */
hsort_status checkpoint_sample(const struct file_in *in, uint64_t *digest);

/* Make the manifest say that this rank has written `range` of the output, too. Collective.
 *   range  may be empty, may overlap others. What the manifest says is a hint: after a crash of the machine it may be untrue.
 * Errors   same on every rank: HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status checkpoint_mark(struct comm *comm, struct checkpoint *checkpoint, struct checkpoint_range range);

/* Does the manifest say that this key of the output is written? *end = the first key after `key` for which the answer is
 * another one, at most checkpoint->keys. Not collective. */
bool checkpoint_has(const struct checkpoint *checkpoint, int64_t key, int64_t *end);

/* Forget what was written of the temporary file, because the file is no longer there. The manifest on disk says so from the
 * next mark on. Not collective, but every rank must call it. */
void checkpoint_unmark(struct checkpoint *checkpoint);

/* Let rank 0 remove the manifest, and journals beside it; the directory stays. A checkpoint that is not open is fine. Failures
 * are ignored: the next start would only find more to do than there is. Not collective, but every rank must call it. */
void checkpoint_remove(struct comm *comm, struct checkpoint *checkpoint);

/* Free the checkpoint and release the lock; what is on disk stays. Not collective. */
void checkpoint_close(struct checkpoint *checkpoint);

#endif
