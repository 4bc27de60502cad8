/* What a stopped sort leaves in a directory so that the same command, started again on any number of ranks,
 * goes on and ends with the same bytes.
 *
 *     DIR/manifest          what is there; a text, checksummed, replaced by rename only
 *     DIR/run-ID-G-R.keys   the keys of rank R at generation G, as they were in memory, a sorted run each; none if it had none
 *     DIR/.hypersort-lock   held while a command works in DIR; DIR/.hypersort-manifest: a manifest that is being written
 *     OUT.hypersort-ID.part the output, of full size, partly written; OUT is where the user wants it
 *
 *     begun ----------> runs -------------> sorted              the stages of a manifest
 *     nothing but       each rank's keys    the same, and in
 *     the names         in order            order over the ranks
 *
 * with, at any stage, the ranges of OUT that were written when the last run of the command was stopped.
 *
 * A stop while keys are read keeps none: to read a copy of them again is no faster than to read them. A stop
 * while they are written keeps what is written: the rest could be saved no faster than written, and the time
 * until a job is killed is short; the next start sorts again, compares what is there, and writes what is not.
 *
 * Whatever kills the command, and whenever: either a manifest is there and all that it names is, or there is
 * none and the next start begins anew. Files that a killed command left are removed by the next one
 * (checkpoint.c says in which order). Only the temporary output of a manifest that was removed by hand stays:
 * nothing else knows its name.
 *
 * Runs are read as one file, in rank order: so any number of ranks can go on, each from its share of it. What
 * is read is proved by its count and by the fingerprint in the manifest, which depends on the multiset of
 * keys alone. More is not needed: it is sorted anyway. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include "mpi/comm/comm.h"
#include "src/files/file.h"
#include "hypersort.h"

enum checkpoint_stage { CHECKPOINT_BEGUN, CHECKPOINT_RUNS, CHECKPOINT_SORTED };

/* Keys [first, first + count) of the output. */
struct checkpoint_range {
    int64_t first, count;
};

struct checkpoint {
    char *directory;     /* owned */
    bool found;          /* a manifest was there: this run goes on from it */
    char part[PATH_MAX]; /* the temporary name of the output; the same on every rank */
    uint64_t id;         /* of this manifest since it was begun */
    int generation;      /* of the runs; 0: there are none; grows with every save */
    int tried; /* the last generation that was begun, perhaps not finished: its names may be in use */
    hsort_type type;
    hsort_order order;
    int64_t keys; /* of the whole input */
    enum checkpoint_stage stage;
    uint64_t fingerprint[2]; /* of all keys, at stages RUNS and SORTED */
    int runs;
    int64_t *run_offset; /* [runs + 1] where each run begins among all keys; owned */
    int reading,
        reading_fd; /* the run that was read last, still open; fd -1: none. Not all: they may be many */
    struct checkpoint_range *written; /* [ranges] in order, apart; owned */
    int ranges;
    /* what the input was: */
    int64_t input_bytes;        /* of all its files */
    struct timespec input_time; /* of the last change of any */
    int64_t inputs;             /* files, of which `input` is the first */
    uint64_t inputs_digest;     /* of several: of their names, sizes and times, in order; of one: 0 */
    char input[PATH_MAX],
        output[PATH_MAX]; /* with all links followed, for people to read; `output` is also compared */
    enum file_format output_format;
    int lock; /* rank 0's descriptor of the lock, or -1 */
};

/* Open what `directory` holds, or begin a manifest there; the directory is made if it is missing (not its
 * parents).
 *   in, output, output_format, order   of the command Collective.
 *   checkpoint    [1] written; checkpoint_close() frees it; nothing to free after an error
 * After    the manifest is on disk; checkpoint->part names the temporary file of the output. A run that was damaged is not
 *          noticed yet, one that is missing or of a wrong size is. Runs that no manifest names are gone.
 * Errors   same on every rank, naming the file: HSORT_IO (cannot be made, read, written; another command works in it; not seen
 *          by every rank), HSORT_FORMAT (damaged manifest, missing run; or of another input, which has changed since, or another
 *          type, order, output: the line says which, and what to do), HSORT_ARGUMENT (output is the input; a path that does not
 *          fit into a line). Nothing is changed then.
 * No file is ever removed but by a name that only hypersort gives: DIR may hold others of the user's. */
hsort_status checkpoint_open(struct comm *comm, const char *directory, const struct file_in *in,
                             const char *output, enum file_format output_format, hsort_order order,
                             struct checkpoint *checkpoint);

/* keys [count] = keys first .. first + count - 1 of the runs, in rank order. At stages RUNS and SORTED. Not
 * collective.
 * Errors   HSORT_IO. */
hsort_status checkpoint_read(struct checkpoint *checkpoint, int64_t first, int64_t count, void *keys);

/* Save this rank's keys [count], and make the manifest say so, once all ranks' are on disk; then remove the
 * runs before.
 *   stage        RUNS or SORTED Collective.
 *   fingerprint  of all ranks' keys
 * Memory   none of the size of the keys.
 * Errors   same on every rank: HSORT_IO, HSORT_HOST_MEMORY, HSORT_INTERNAL (the counts are not those of the input); the manifest
 *          then still says what it said before, and that is still there. If only the directory could not be brought to disk,
 *          it may say the new already; what that names is there, too. */
hsort_status checkpoint_save(struct comm *comm, struct checkpoint *checkpoint, enum checkpoint_stage stage,
                             const void *keys, int64_t count, const uint64_t fingerprint[2]);

/* Make the manifest say that this rank has written `range` of the output, too. Collective.
 *   range  may be empty, may overlap others. What the manifest says is a hint: after a crash of the machine it may not be so.
 * Errors   same on every rank: HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status checkpoint_mark(struct comm *comm, struct checkpoint *checkpoint, struct checkpoint_range range);

/* Does the manifest say that this key of the output is written, and up to which key is that so? *end: the
 * first key behind `key` for which the answer is another one, at most checkpoint->keys. Not collective. */
bool checkpoint_has(const struct checkpoint *checkpoint, int64_t key, int64_t *end);

/* The temporary file is not there any more: forget what was written of it. On disk so from the next save or
 * mark on. Not collective, but for every rank. */
void checkpoint_unmark(struct checkpoint *checkpoint);

/* The output is whole: remove manifest and runs; the directory stays. Failures are ignored: the next start
 * would only find more to do than there is. Collective. */
void checkpoint_remove(struct comm *comm, struct checkpoint *checkpoint);

/* Free it and let go of the lock; what is on disk stays. Not collective. */
void checkpoint_close(struct checkpoint *checkpoint);

#endif
