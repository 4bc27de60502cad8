/* Each rank's share of records in a sort of two passes, from the input and to the output, as the two streams of that sort
 * (key_stream.h): of the records only the sorted runs lie in host memory. The thread that moves records also looks at
 * them. Chunks cut records:
 *
 *     chunks     | r0 r1 r|2 r3 r4 |r5 ...       r0 r1 | r3 r4 | r5: what each chunk's whole records are like
 *     kept              r  2                     the parts of r2 wait for each other, and are looked at by themselves
 *     joined     r0 r1, r2, r3 r4, r5 ...        in order of their first records, when all have passed (verify.h)
 */
#ifndef RECORD_SHARE_H
#define RECORD_SHARE_H

#include <pthread.h>
#include "src/command/progress.h"
#include "src/command/disk_deal.h"
#include "src/command/stop.h"
#include "src/command/record_keys.h"
#include "src/library/key_stream.h"
#include "src/library/verify.h"

struct record_part; /* a record whose parts have not all passed */
struct record_seen; /* what whole records are like */

/* What has passed through a stream. */
struct record_look {
    const struct record_keys *keys; /* NULL: order does not matter */
    struct engine *engine;          /* borrowed */
    size_t record_bytes;
    int64_t first, count;     /* records of this rank, among all */
    pthread_mutex_t lock;     /* of all that follows */
    struct record_seen *seen; /* [seen_count], room for [room]; owned */
    int64_t seen_count, room;
    struct record_part *waiting; /* a list; owned */
};

struct record_share {
    struct comm *comm;
    struct progress *progress;
    const struct file_in *in; /* borrowed */
    const struct file_out *out;
    const struct disk_deal *joined; /* or NULL; else a record is an element of all its columns. Set before the sort */
    size_t record_bytes;
    int64_t first, count;  /* records of this rank, among all */
    bool looks;            /* at what passes; else the two looks are empty */
    bool stops;            /* when a rank is asked to (stop.h); else it goes on. Set before the sort */
    struct stop_vote vote; /* of `phase` */
    const char *phase;
    struct engine *looker; /* of one thread, so that each thread looks at the records that it moves; owned */
    struct record_look before, after;
    struct key_stream source, sink; /* the share is their user */
    double began, read_seconds, write_seconds;
};

/* Open this rank's share of the records of `in`; record_share_close() ends it, also after an error. Not collective. Errors
 * HSORT_HOST_MEMORY. */
hsort_status record_share_open(struct record_share *share, struct comm *comm, struct progress *progress,
                               const struct file_in *in, const struct record_keys *keys, bool looks);
void record_share_close(struct record_share *share); /* also of one that is all 0 */

/* Join what all ranks have seen. Collective. Errors agreed: HSORT_HOST_MEMORY, HSORT_MPI; HSORT_INTERNAL: not every record has
 * passed as a whole. */
hsort_status record_look_finish(struct record_look *look, struct comm *comm, hsort_check_result *result);

#endif
