/* Where the sorted runs of all ranks must be cut so that the pieces, put together, hold exactly the keys of
 * given global positions. splitters.c pictures it. */
#ifndef SPLITTERS_H
#define SPLITTERS_H

#include "mpi/exchange/exchange.h"

struct splitters; /* tables for the search; some hundred KiB on the host */

/* Make the tables for `size` ranks; *splitters is NULL after an error. Not collective. Errors
 * HSORT_HOST_MEMORY. */
hsort_status splitters_open(int size, struct splitters **splitters);

void splitters_close(struct splitters *splitters); /* NULL is fine; not collective */

/* Cut the ranks' runs at all of the given positions at once. Collective.
 *   x          its keys [x->count] are a sorted run on each rank; nothing in it changes
 *   target_offset  [size + 1] ascending from 0 to the number of keys on all ranks; the same on every rank
 *   cut_offset     [size + 1] written: own keys cut_offset[r] .. cut_offset[r + 1] - 1 are among those at the global positions
 *              target_offset[r] .. target_offset[r + 1] - 1
 * Order    keys are ordered by (key, rank, position on the rank), so that equal keys are cut exactly as well.
 * Errors   this rank's own: it has kept to the schedule. After a failure on any rank the cuts are some ascending
 *          numbers from 0 to x->count on every rank, and their sums need not be what was asked for. */
hsort_status splitters_find(struct splitters *splitters, const struct exchange *x,
                            const int64_t *target_offset, int64_t *cut_offset);

/* About how many rounds splitters_find() takes for `total` uniform keys, `capacity` at most on a rank; *probes:
 * the most probes of a round. Pure; not collective. */
int splitters_rounds(int size, int64_t total, int64_t capacity, int *probes);

#endif
