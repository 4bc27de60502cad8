/* Elements in host memory that do not fit into engine memory, with all that a sort of them takes there: whether that is so,
 * and their sort in two passes (two_passes.c). */
#ifndef ELEMENT_PASSES_H
#define ELEMENT_PASSES_H

#include "src/library/element_columns.h"
#include "src/library/element_order.h"

/* Does the call sort in two passes? It does only if all ranks' arrays are in host memory, and some rank lacks engine memory.
 * Collective.
 *   order   planned
 *   passes  [1] written, 1 or 2; the same on every rank
 * Errors agreed: HSORT_ARGUMENT, the engine's. */
hsort_status element_passes_choose(const struct element_order *order, struct element_columns *columns,
                                   int *passes);

/* Sort elements in two passes. order->offsets count from an element's first byte, through the columns. Collective.
 * Memory, errors   as two_passes_run(). */
hsort_status element_passes_run(const struct element_order *order, const struct element_columns *columns);

#endif
