/* Each rank's share of the keys: from the input and to the output, as the two streams of a sort (key_stream.h).
 * Before each part a rank checks whether all ranks are to leave (stop.h).
 *
 *     rank r of P: keys N*r/P ... N*(r+1)/P - 1, of the input and of the output
 *
 * If an earlier run has written a part of the output, that part is read where the manifest says so, and written only
 * where it differs: the manifest saves writing, but is never trusted. A stop that came after the last sync, followed by
 * a power cut, can leave gaps where the manifest says that there are keys. */
#ifndef SHARES_H
#define SHARES_H

#include <stdatomic.h>
#include "src/checkpoint/checkpoint.h"
#include "mpi/comm/comm.h"
#include "src/files/file.h"
#include "src/library/key_stream.h"
#include "src/command/progress.h"
#include "src/command/stop.h"

struct share {
    struct comm *comm;
    struct progress *progress;
    hsort_type type;
    int64_t total;        /* keys of all ranks */
    int64_t first, count; /* keys of this rank */

    const struct file_in *in; /* borrowed */
    const struct file_out *out;
    const struct checkpoint *before; /* what an earlier run has written of `out`; NULL: nothing */

    struct key_stream source, sink; /* the input, the output; the share is their user */
    struct key_stream reread;       /* what the output has */
    const char *phase;              /* under way, for the line of a stop */
    struct stop_vote vote;          /* of that phase */
    double began, read_seconds, write_seconds, reread_seconds;
    bool has_written;        /* the sink was open: the same on every rank */
    int64_t written;         /* how many keys of the share the output has, from the first on */
    atomic_llong kept_bytes; /* of the keys that the output had already */
};

/* Open this rank's share of the keys of `in`. The output is set before the sort begins. Not collective. */
void share_open(struct share *share, struct comm *comm, struct progress *progress, const struct file_in *in);
void share_set_output(struct share *share, const struct file_out *out, const struct checkpoint *before);

#endif
