/* The form of exchange_direct() for many nodes, in two steps. direct_rails.c pictures it. */
#ifndef DIRECT_RAILS_H
#define DIRECT_RAILS_H

#include "mpi/exchange/exchange.h"

struct rails;

/* Find the nodes and make tables.                                                                   Collective.
 *   rails  [1] written: NULL if there are not two nodes or more of as many ranks each, two or more; or after an error
 * Errors   same on every rank: HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status rails_open(struct comm *comm, struct rails **rails);

void rails_close(struct rails *rails); /* NULL is fine; collective */

int rails_ranks_per_node(const struct rails *rails);

/* Steps that rails_move() reports as progress. */
int rails_steps(const struct rails *rails);

/* Find how many keys take which way. Nothing moves.                                                 Collective.
 *   cut_offset   [size + 1] of splitters_find()
 *   comes    [1] written: keys that this rank would end with
 *   crowded  [1] written: more keys would pass through this rank than it has room for; then no rank may move
 * Errors     this rank's own: it has kept to the schedule. */
hsort_status rails_plan(struct rails *rails, const struct exchange *x, const int64_t *cut_offset, int64_t *comes,
                        bool *crowded);

/* Move the keys as planned, and merge them: x->keys then holds what has come, sorted.               Collective.
 * Errors     this rank's own: it has kept to the schedule. */
hsort_status rails_move(struct rails *rails, struct exchange *x, const int64_t *cut_offset);

#endif
