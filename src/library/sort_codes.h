/* A sort inside of another public call. */
#ifndef SORT_CODES_H
#define SORT_CODES_H

#include "hypersort.h"

/* Sort codes of 8 or 16 bytes, aligned to that, as hsort_sort_to() does, in engine memory or host memory; no two are equal.
 * The caller has called context_enter(). Collective.
 *   code_bytes  the same on every rank
 * Errors   as hsort_sort_to(), agreed; the caller keeps them as they are: hsort_last_error() has the line. */
hsort_status sort_codes(hsort_context *ctx, int code_bytes, void *codes, int64_t count, void *out,
                        int64_t out_count, void *stream);

#endif
