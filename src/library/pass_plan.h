/* The sizes of a sort in two passes: how many elements a slot holds, and how many runs and segments follow
 * from that. Arithmetic of counts alone: what an element is, and where it lies, is said elsewhere.
 *
 *     this rank's, in     | chunk 0 | chunk 1 | chunk 2 | ch 3 |     4 runs, each of a slot, except the last
 *     this rank's, out    | seg. 0  | seg. 1  | se 2 |               3 segments: the caller wants fewer */
#ifndef PASS_PLAN_H
#define PASS_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include "kernels/base/status.h"

enum {
    PASS_SLOTS = 4,       /* coming in, being sorted, scratch, going out */
    PASS_RUNS_WANTED = 32, /* of a rank: so many that the steps in which one direction rests are few */
    PASS_RUNS_MAX = 512,  /* of a rank: a piece is a segment's share of a run, and tiny ones make copies slow */
    PASS_SLOT_BYTES_MIN = 64 << 20 /* unless memory lacks: with less, steps are too short to keep the link busy */
};

/* Host memory of a rank beside its runs. Tables of cuts: where each segment of all ranks begins in the rank's own runs; with several ranks,
 * where each of its own segments begins in the runs of all ranks; and what the search takes. With several ranks also the buffers of
 * messages, for slots of slot_bytes. Pure. */
size_t pass_bytes_beside_runs(int ranks, int64_t own_runs, int64_t own_segments, int64_t runs,
                              int64_t segments, size_t slot_bytes);

/* Bytes of workspace that a sort of `elements` with as many elements of scratch needs. */
typedef hsort_status (*pass_workspace_fn)(void *user, int64_t elements, size_t *bytes);

/* Bytes of a slot for `elements`, rounded up so that slots lie aligned one behind the other. Pure. */
size_t pass_slot_bytes(int64_t elements, size_t element_bytes);

/* Find how many elements a slot holds, and the bytes that all slots and the workspace then take.
 *   most           elements of the rank that has most, in or out, >= 1
 *   element_bytes  any number
 *   engine_bytes   that this rank may take
 *   elements       [1] written: 0 if engine_bytes do not suffice
 *   bytes          [1] written: what all slots and the workspace take together; where elements is 0, the least that would do
 * Not collective. Errors: those of `workspace`. */
hsort_status pass_slot_find(int64_t most, size_t element_bytes, size_t engine_bytes,
                            pass_workspace_fn workspace, void *user, int64_t *elements, size_t *bytes);

#endif
