/* Beside rung 6: its block size by choice, for the benchmark only. */
#ifndef RUNG_6_RADIX_4WAY_H
#define RUNG_6_RADIX_4WAY_H

#include "kernels/cuda/ladder/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As rung_6_radix_4way() does, with the same workspace, in blocks of `threads`: 512 or 1024. Errors
 * HSORT_ARGUMENT for another number. */
hsort_status rung_6_threads(struct cuda_engine *engine, struct sort_args *args, int threads);

#ifdef __cplusplus
}
#endif

#endif
