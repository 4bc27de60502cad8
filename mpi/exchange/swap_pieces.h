/* Let the pieces of cut runs change ranks where there is no second buffer for all keys: `direct` in place. */
#ifndef SWAP_PIECES_H
#define SWAP_PIECES_H

#include "mpi/exchange/exchange.h"

struct swap_tables; /* on the host: 8 bytes for each ordered pair of ranks, and for each border */

/* Make the tables. *tables is NULL after an error. Not collective. most_borders: the most borders of runs that are noted on a rank; if
 * there are more, the rank sorts its keys again, which takes fewer passes than merging the runs. Errors HSORT_HOST_MEMORY. */
hsort_status swap_tables_open(int size, int64_t most_borders, struct swap_tables **tables);
void swap_tables_close(struct swap_tables *tables); /* NULL is fine; not collective */

/* Bring each key to its rank, and the keys of this rank [x->count] into order, in x->keys. Every rank ends with as many keys as it has.
 * Each key is sent once at most. Collective.
 *   tables      borrowed
 *   x           keys [count]: a sorted run; scratch [scratch_keys], of at least one key where there are keys; rung, and workspace for it
 *   cut_offset  [size + 1] of splitters_find() for the counts that the ranks have: own keys cut_offset[r] .. cut_offset[r + 1] - 1 go
 *               to rank r
 *   mine        this rank's status: nothing is moved if it is not HSORT_OK on every rank
 * Errors   this rank's own: it has kept to the schedule. Those of the engine and the transport, and HSORT_INTERNAL if the cuts do not
 *          fit the counts. */
hsort_status swap_pieces(struct swap_tables *tables, struct exchange *x, const int64_t *cut_offset,
                         hsort_status mine);

#endif
