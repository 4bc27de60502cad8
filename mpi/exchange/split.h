/* Where a pair of sorted runs on two ranks must be cut. */
#ifndef SPLIT_H
#define SPLIT_H

#include "mpi/exchange/exchange.h"

/* Find the cut after which the lower rank holds the lowest keys of both. Collective over the two partners.
 * Both arrive at the same cut, also after a failure, whatever was read then.
 *   own_kept  [1] written: keys of its own that this rank keeps: the first ones if it is the lower rank, else the last
 *   incoming  [1] written: keys it gets from the partner
 * Errors   this rank's own; it may go on with the exchange.
 * Order    equal keys stay where they are. */
hsort_status split_pair(struct exchange *x, int partner, int64_t *own_kept, int64_t *incoming);

/* Messages of probes that split_pair() sends where the cut may lie at `length` places. Pure. */
int split_messages(int64_t length);

#endif
