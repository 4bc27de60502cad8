/* Elements in host memory that do not fit into the engine's, with all that a sort of them takes there: when that is so,
 * and their sort in two passes (two_passes.c). What lies in several arrays travels as one element:
 *
 *     column 0, keys      7 3 7                        elements   7a 3b 7c      keys and values
 *     column 1, values    a b c                                   7|0 3|1 7|2   keys and their positions
 */
#ifndef ELEMENT_PASSES_H
#define ELEMENT_PASSES_H

#include "src/library/element_order.h"

/* One array of a call, before and after. Both may be the same. */
struct element_column {
    size_t bytes;   /* of an element's part */
    const void *in; /* [count * bytes] the caller's */
    void *out;      /* [out_count * bytes] the caller's; NULL: nobody wants it */
    bool numbers;   /* it comes from nowhere: int64_t, the elements' global positions */
    enum engine_space in_space, out_space; /* written by element_passes_choose() */
};

struct element_columns {
    struct element_column column[HSORT_FIELDS_MAX + 1];
    int count;
    size_t
        carried_bytes; /* of an element that element_carry() brings to its place, where all fits; 0: none */
};

/* Is the call to sort in two passes? Only if all ranks' arrays are in host memory, and some rank lacks engine memory.
 * Collective.
 *   order   planned
 *   passes  [1] written, 1 or 2; the same on every rank
 * Errors agreed: HSORT_ARGUMENT, the engine's. */
hsort_status element_passes_choose(const struct element_order *order, struct element_columns *columns,
                                   int *passes);

/* Sort them so. order->offsets count from an element's first byte, through the columns. Collective.
 * Memory, errors   as two_passes_run(). */
hsort_status element_passes_run(const struct element_order *order, const struct element_columns *columns);

#endif
