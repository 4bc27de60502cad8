/* A sort inside of another public call. */
#ifndef SORT_CODES_H
#define SORT_CODES_H

#include "hypersort.h"

/* Sort codes of 8 or 16 bytes, aligned to that, as hsort_sort_to() does, in engine memory or host memory; no two are equal.
 * The caller has called context_enter(). Collective.
 *   code_bytes  the same on every rank
 *   out         [out_count] may be codes; overwritten
 *   sorted      [1] written: where the result lies. That is out, or memory of the context until its next sort: codes are taken
 *               apart at once, and a copy before that would be for nothing
 * Errors   as hsort_sort_to(), agreed; the caller keeps them as they are: hsort_last_error() has the line. */
hsort_status sort_codes(hsort_context *ctx, int code_bytes, void *codes, int64_t count, void *out,
                        int64_t out_count, const void **sorted, void *stream);

#endif
