/* A sort inside of another public call. */
#ifndef SORT_CODES_H
#define SORT_CODES_H

#include <stdbool.h>
#include "hypersort.h"

struct raw_keys;

/* Sort codes of 8 or 16 bytes, aligned to that, as hsort_sort_to() does, in engine memory or host memory; no two are equal.
 * The caller has called context_enter(). Collective.
 *   code_bytes  the same on every rank
 *   numbered    NULL, on every rank: codes [count] are there. Otherwise these are made of such keys as they are loaded, of keys of
 *               4 bytes codes of 8; borrowed. Then no rank has more than the N / P keys, rounded up, that are its part of all; it asks
 *               for as many as it has, and `out` is `codes`. Positions are wanted on every rank, or on none; each gets `count`
 *   out         [out_count] may be codes; overwritten
 *   sorted      [1] written: where the result lies. That is out, or memory of the context until its next sort: codes are taken
 *               apart at once, and a copy before that would be for nothing
 *   placed      [1] written, the same on every rank: positions were wanted, and have been written; `sorted` means nothing then
 * Errors   as hsort_sort_to(), agreed; the caller keeps them as they are: hsort_last_error() has the line. */
hsort_status sort_codes(hsort_context *ctx, int code_bytes, const struct raw_keys *numbered, void *codes,
                        int64_t count, void *out, int64_t out_count, const void **sorted, bool *placed,
                        void *stream);

#endif
