/* A merge that reads one of its runs from another rank's memory. */
#ifndef MERGE_FROM_PEER_H
#define MERGE_FROM_PEER_H

#include "mpi/exchange/exchange.h"

/* Merge this rank's kept keys [kept_count] with a peer's [their_count], which copies and kernels of this rank
 * can read at `theirs`, into out, which overlaps neither. Waits. Not collective: the peer need not do the
 * same. If keys are not sorted (because a rank has failed), the result is in no order, but nothing outside is touched.
 * Errors: the engine's. */
hsort_status merge_from_peer(struct exchange *x, const void *kept, int64_t kept_count, const void *theirs,
                             int64_t their_count, void *out);

#endif
