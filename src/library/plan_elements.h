/* What a sort of elements would cost in one pass, for `hypersort plan`: the sort of their codes, by hsort_plan(), and carrying the
 * elements after it; or, on GPUs, a sort of keys together with what travels with them. Needs no context and no GPU; nothing is
 * sorted. */
#ifndef PLAN_ELEMENTS_H
#define PLAN_ELEMENTS_H

#include "src/library/cost.h"

struct planned_elements {
    int64_t count;  /* of all ranks */
    int key_bits;   /* of all fields */
    bool bare_keys; /* an array of numbers beside what goes with them, not fields of records */
    size_t
        carried_bytes; /* of an element, those that the sort brings to where its key goes; 0: positions alone */
    size_t gathered_bytes
        [2]; /* the same of arrays that are gathered by these positions, each in a call of its own; 0: none */
    size_t in_bytes, out_bytes; /* of an element, that come into engine memory and leave it, in all calls */
};

struct elements_plan {
    bool
        with_keys; /* elements travel with their keys; else codes are sorted, and elements go to their places afterwards */
    int sorted_bytes; /* of a code; or of a key and what is beside it */
    hsort_exchange exchange;
    struct hsort_plan_exchange cost; /* total_seconds 0: there are no elements */
};

/* Write plan [1]. Arguments as of hsort_plan(), and elements->key_bits from 1 to 128. Not collective.
 * Errors HSORT_HOST_MEMORY. */
hsort_status plan_elements(const hsort_rates *rates, int ranks, int ranks_per_node,
                           const struct planned_elements *elements, struct elements_plan *plan);

#endif
