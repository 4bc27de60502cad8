/* The ladder on CUDA: the only list of its rungs. Dispatch, tests, benchmark and the table of
 * kernels/README.md are made from it, so a rung without a test or a number cannot exist. Numbers are names:
 * never reused, not in order of speed. */
#ifndef LADDER_H
#define LADDER_H

#include "cuda_engine.h"

/* X(number, name, "one change against the step below") */
#define LADDER(X)                                                               \
    X(0, cub, "the vendor's radix sort: the yardstick, never chosen")           \
    X(1, bitonic_global, "one compare-exchange step of the network per launch") \
    X(7, onesweep, "radix, 8 bits per pass: each pass reads and writes every key once")

#ifdef __cplusplus
extern "C" {
#endif

/* Every rung has these two functions. count > 1, key_bytes 4 or 8, the engine's device is current.
 *
 *   rung_N_NAME_workspace()  bytes of workspace for `count` keys; may be 0
 *   rung_N_NAME()            sort codes keys [count] ascending on LANE_WORK. scratch [count] and keys are
 *                            both overwritten, *sorted says which one will hold the result. workspace is
 *                            aligned to 256 bytes, keys and scratch to the key size. */
#define X(number, name, change)                                                                \
    hsort_status rung_##number##_##name##_workspace(struct cuda_engine *engine, int key_bytes, \
                                                    int64_t count, size_t *bytes);             \
    hsort_status rung_##number##_##name(struct cuda_engine *engine, int key_bytes, void *keys, \
                                        void *scratch, int64_t count, void *workspace, void **sorted);
LADDER(X)
#undef X

#ifdef __cplusplus
}
#endif

#endif
