/* Merge of many runs on CPU cores, and searches in one run (merge_many.c says how it works). */
#ifndef MERGE_MANY_H
#define MERGE_MANY_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/keytype.h"

/* Merge k >= 1 runs of keys of `key_bytes` (4, 8 or 16) that lie one behind the other in runs [run_offset[k]],
 * run i from run_offset[i] on; out is as long and overlaps nothing. Returns whichever of the two holds the
 * result; the other holds nothing of use. Equal keys: in the order of the runs. */
void *merge_many(int threads, int key_bytes, void *runs, const int64_t *run_offset, int k, void *out);

/* How many keys of a run [count] are less than `code`, or, if or_equal, not greater. */
int64_t merge_find(int key_bytes, const void *keys, int64_t count, key_code code, bool or_equal);

#endif
