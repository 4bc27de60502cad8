/* Keys shift between ranks while their global order stays. */
#ifndef REBALANCE_H
#define REBALANCE_H

#include "mpi/exchange/exchange.h"

/* Move keys so that rank r ends with those at the global positions want_offset[r] .. want_offset[r + 1] - 1.
 * Collective.
 *   have_offset, want_offset  [size + 1] global position of each rank's first key before and after; the last is the number of
 *                             keys; the same on every rank
 *   from  [have_offset[rank + 1] - have_offset[rank]] engine or host memory
 *   to    [want_offset[rank + 1] - want_offset[rank]] engine or host memory; no overlap
 * Errors   this rank's own; the caller agrees on it. */
hsort_status rebalance(struct exchange *x, const int64_t *have_offset, const int64_t *want_offset,
                       const void *from, void *to);

#endif
