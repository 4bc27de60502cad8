/* Beside rung 0, for the benchmark only: CUB's merge sort, and its radix sort of keys that are no codes. */
#ifndef RUNG_0_CUB_H
#define RUNG_0_CUB_H

#include "kernels/cuda/ladder/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a rung's two functions are, for sorts without values. The workspace holds a second array of keys;
 * scratch_keys is not used. */
hsort_status cub_merge_sort_workspace(struct cuda_engine *engine, const struct sort_args *args, size_t *bytes);
hsort_status cub_merge_sort(struct cuda_engine *engine, struct sort_args *args);

/* The same for keys of `type`, in place of codes, in args->keys; NaNs by their bits. */
hsort_status cub_sort_typed_workspace(struct cuda_engine *engine, hsort_type type, const struct sort_args *args,
                                      size_t *bytes);
hsort_status cub_sort_typed(struct cuda_engine *engine, hsort_type type, struct sort_args *args);

#ifdef __cplusplus
}
#endif

#endif
