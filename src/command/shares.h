/* Each rank's share of the keys: from the input into memory, and from there to the output, chunk by chunk.
 * Before each chunk a rank looks whether all are to leave (stop.h).
 *
 *     rank r of P: keys N*r/P ... N*(r+1)/P - 1, of the input and of the output
 *
 * An output that an earlier run has written in part is read where the manifest says so, and written only
 * where it differs: the manifest saves writing, and is never believed. A stop that came after the last sync,
 * and a power cut after that, can leave blanks where it says that keys are. */
#ifndef SHARES_H
#define SHARES_H

#include "src/checkpoint/checkpoint.h"
#include "mpi/comm/comm.h"
#include "src/files/file.h"
#include "src/command/progress.h"

struct share {
    struct comm *comm;
    struct progress *progress;
    hsort_type type;
    int64_t total;        /* keys of all ranks */
    int64_t first, count; /* keys of this rank */
    void *keys;           /* [count]; owned */
    int64_t written;      /* keys of it that the output has: the first ones */
    int64_t kept;         /* keys among those that it had already */
};

/* The share of this rank of `total` keys, without memory yet. share_close() frees it. Not collective. */
void share_open(struct share *share, struct comm *comm, struct progress *progress, hsort_type type, int64_t total);

/* Not collective. */
void share_close(struct share *share);

/* Take memory and read the share. Collective.
 * Errors   same on every rank: HSORT_HOST_MEMORY, HSORT_IO, HSORT_MPI; HSORT_STOPPED, with keys not read. */
hsort_status share_read(struct share *share, const struct file_in *in);

/* Write the share. Collective.
 *   before  what an earlier run has written of this file, or NULL: nothing
 * Errors   same on every rank: HSORT_IO, HSORT_MPI; HSORT_STOPPED, with keys not written. */
hsort_status share_write(struct share *share, const struct file_out *out, const struct checkpoint *before);

#endif
