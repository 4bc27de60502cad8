/* The merge of many runs, wherever they lie, in one pass (merge_many.cu says how it works). */
#ifndef MERGE_MANY_CUDA_H
#define MERGE_MANY_CUDA_H

#include "kernels/cuda/engine/cuda_engine.h"

enum { MERGE_RUNS_MAX = 16 };

#ifdef __cplusplus
extern "C" {
#endif

/* Does a block have the shared memory for it? */
bool keys_merge_many_fits(const struct cuda_engine *engine, int key_bytes);

/* Merge runs [k <= MERGE_RUNS_MAX], run i of counts[i] keys, into out, which overlaps none; on STREAM_WORK.
 *   runs    [k] on the host, read in the call; memory that this device reads, also mapped memory of another device
 *   counts  [k] on the host; empty runs are fine, but some run has keys
 * Equal keys: in the order of the runs. Runs that are not sorted: keys may be lost, but nothing else is
 * touched. */
hsort_status keys_merge_many(struct cuda_engine *engine, int key_bytes, const void *const *runs,
                             const int64_t *counts, int k, void *out);

#ifdef __cplusplus
}
#endif

#endif
