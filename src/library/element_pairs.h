/* Values, positions and records that go with their keys on several ranks, by the exchange `partition`
 * (mpi/exchange/pair_partition.h). Where that does not suit, codes and a gather do it (element_order.h). */
#ifndef ELEMENT_PAIRS_H
#define ELEMENT_PAIRS_H

#include "src/library/element_order.h"

enum { PAIRS_BYTES_MIN = 16 << 20 }; /* of keys and what goes with them, on a rank: from here on it pays on GPUs */

/* Sort pairs of several ranks to the counts of order->out_offset, if that pays, every rank can, and there is room. Collective.
 *   pairs    this rank's, in engine memory; values NULL: global positions
 *   mine     can this rank's arrays be such pairs? If not, no array of `pairs` is read
 *   done     [1] written, the same on every rank. false: no output has been written
 * Errors agreed: those of a sort. */
hsort_status element_pairs_sort(const struct element_order *order, const struct engine_pairs *pairs,
                                bool mine, bool *done);

/* The same for elements of any size. Their keys are one array, or fields of up to 8 bytes together, in the elements or not.
 * Collective.
 *   keys     room for the keys in order; NULL: this rank wants none
 *   elements, to  engine memory; may be the same */
hsort_status element_pairs_carry(const struct element_order *order, void *keys, size_t element_bytes,
                                 const void *elements, void *to, bool *done);

/* Find the order of such keys, as element_order_find() gives it: positions travel with the keys. For keys that do not fit, together
 * with a position, into a code of 8 bytes. Collective.
 *   done     as above; order->positions, and keys, unless NULL, are written
 * Errors agreed. */
hsort_status element_pairs_find_order(const struct element_order *order, void *keys, bool *done);

#endif
