/* A sort inside of another public call. */
#ifndef SORT_CODES_H
#define SORT_CODES_H

#include <stdbool.h>
#include "hypersort.h"

struct raw_keys;

/* Sort codes of 8 or 16 bytes, aligned to that, as hsort_sort_to() does, in engine memory or host memory; no two are equal.
 * The caller has called context_enter(). Collective.
 *   code_bytes  the same on every rank
 *   numbered    NULL, on every rank: codes [count] are there. Otherwise codes of 8 bytes are made of these keys of 4 bytes as they
 *               are loaded; borrowed. Then no rank has more keys than its part of all, N / P rounded up; each asks for as many as
 *               it has, and `out` is `codes`. Positions are wanted on every rank, or on none; each rank gets `count` of them
 *   out         [out_count] may be codes; overwritten
 *   sorted      [1] written: where the result lies. That is out, or memory of the context until its next sort: codes are taken
 *               apart at once, so there is no point in copying them before
 *   placed      [1] written, the same on every rank: positions were wanted, and have been written; `sorted` means nothing then
 * Errors   as hsort_sort_to(), agreed; the caller keeps them as they are: hsort_last_error() has the line. */
hsort_status sort_codes(hsort_context *ctx, int code_bytes, const struct raw_keys *numbered, void *codes,
                        int64_t count, void *out, int64_t out_count, const void **sorted, bool *placed,
                        void *stream);

#endif
