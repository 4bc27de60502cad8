/* Beside rung 0: CUB's merge sort, for the benchmark only. */
#ifndef RUNG_0_CUB_H
#define RUNG_0_CUB_H

#include "ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a rung's two functions are, for jobs without values. The workspace holds a second array of keys;
 * scratch_keys is not used. */
hsort_status cub_merge_sort_workspace(struct cuda_engine *engine, const struct rung_job *job, size_t *bytes);
hsort_status cub_merge_sort(struct cuda_engine *engine, struct rung_job *job);

#ifdef __cplusplus
}
#endif

#endif
