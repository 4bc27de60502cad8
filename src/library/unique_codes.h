/* Runs of equal codes, for the command: hsort_unique() of keys that have no type. */
#ifndef UNIQUE_CODES_H
#define UNIQUE_CODES_H

#include "hypersort.h"

/* As hsort_unique(), of codes of 8 or 16 bytes, aligned to that. Collective. */
hsort_status unique_codes(hsort_context *ctx, int code_bytes, const void *codes, int64_t count, int64_t *kept,
                          int64_t *counts, int64_t *first);

#endif
