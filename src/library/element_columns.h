/* Arrays that are sorted together: elements, and what travels with them. In two passes (element_passes.h) they travel as
 * one element:
 *
 *     column 0, keys      7 3 7                        elements   7a 3b 7c      keys and values
 *     column 1, values    a b c                                   7|0 3|1 7|2   keys and their positions
 */
#ifndef ELEMENT_COLUMNS_H
#define ELEMENT_COLUMNS_H

#include "kernels/engine.h"
#include "src/library/key_stream.h"

/* One array of a call, before and after; both may be the same array. */
struct element_column {
    size_t bytes;   /* of an element's part */
    const void *in; /* [count * bytes] the caller's */
    void *out;      /* [out_count * bytes] the caller's; NULL: nobody wants it */
    bool numbers;   /* it has no input: int64_t, the elements' global positions */
    enum engine_space in_space, out_space; /* written by element_passes_choose() */
};

struct element_columns {
    const struct key_stream *source,
        *sink; /* both, of elements of the only column, whose `in` and `out` are NULL; or neither */
    const struct run_store *store; /* where runs of streams go to, whatever memory there is; or NULL */
    struct stream_check *check;    /* with a store: written as by sort_streams(); or NULL */
    struct element_column column[HSORT_FIELDS_MAX + 1];
    int count;
    const struct engine_pairs *pairs; /* the form in which a rank alone sorts them, if all fits; or NULL */
    size_t carried_bytes; /* of an element, what element_carry() brings to its place at a time, if all fits; 0: nothing */
};

/* Do a whole call, if it is to sort in two passes. Otherwise nothing is done, and the caller finds the order by columns and gathers
 * each of them. Collective.
 *   fields   [field_count] of elements as they travel
 *   columns  any arrays in host memory, which do not overlap; or streams, whose counts ranks may deal out as they like
 *   done     [1] written, the same on every rank
 * Errors   as hsort_argsort_columns(). */
hsort_status sort_columns_in_passes(hsort_context *ctx, const hsort_field *fields, int field_count,
                                    struct element_columns *columns, int64_t count, int64_t out_count,
                                    bool *done);

/* As streams_need_store(): does a call on such columns, which would otherwise lie in host memory before and after, need to have
 * its runs in a store? Collective. */
hsort_status columns_need_store(hsort_context *ctx, const hsort_field *fields, int field_count,
                                struct element_columns *columns, int64_t count, size_t memory_bytes,
                                bool *needs);

#endif
