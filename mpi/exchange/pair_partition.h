/* Pairs and records of all ranks, sorted together: what belongs to a key goes with it. This is the exchange `partition` for keys that
 * are not alone, in the order (key, rank, position).
 *
 *     rank 0   7a 2b 9c 2d   --split-->   2b 2d | 7a 9c         1x comes behind it      sorted  1x 2b 2d 7a
 *     rank 1   8y 1x 9z 7w                1x | 8y 9z 7w         7a 9c                           7w 8y 9c 9z
 *
 * A rank's part may begin or end inside a region, as at 7a | 7w here (pair_plan.h). Every rank holds first what it has split, then what
 * comes, peer by peer. What comes by messages (column_messages.h) is there before the first sort:
 *
 *     first half    own regions | of rank 1: its pairs of regions 0, 1, 2 .. | of rank 2: ..
 *     STREAM_IN     regions 0, 1 of rank 1, 2    regions 2, 3 ..
 *     STREAM_WORK                                sort 0, 1 of three pieces each     sort 2, 3 ..
 *
 * Values of 4 and 8 bytes are sorted with the keys. Of larger elements, only those that leave are brought into the order of the regions,
 * part by part, so that peers read one part while the next one is made. Keys are sorted with places that say where their elements are.
 * By these places the elements are taken, part by part as they come:
 *
 *     keys, elements      7A 2B 9C 2D   --split-->   2 2 7 9, positions 1 3 0 2   --take-->   C leaves; X comes, as if behind A B C D
 *     sorted              1 2 2 7, positions 4 1 3 0                              --take-->   X B D A
 *
 * Rejected: codes (keys with positions below them), sorted as bare keys, and a gather of the elements behind that, which is there for
 * what this does not take. There codes of 16 bytes cross between ranks, then positions, then elements, which are read in no order and
 * sent slice by slice. */
#ifndef PAIR_PARTITION_H
#define PAIR_PARTITION_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"
#include "mpi/transport/transport.h"

struct pair_partition {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    /* Of this rank; its outputs have room for the pairs of out_offset. Without elements, values may be NULL: then global positions are
     * sorted as values. With elements, values and values_out do not matter. */
    struct engine_pairs pairs;
    size_t element_bytes; /* of the element of each key, 1 ..; 0: there are only pairs */
    const void *elements; /* [pairs.count] engine memory */
    void *elements_out;   /* [those of out_offset] the same; may be `elements` */
    /* [size + 1] global position of each rank's first pair, before and after; the same on every rank */
    const int64_t *in_offset, *out_offset;
    void *shown;     /* [need.shown] of the engine's alloc(): other ranks may map it */
    void *own;       /* [need.own] engine memory */
    void *workspace; /* [need.workspace] engine memory; all three aligned to 256 bytes */
};

/* Bytes of engine memory. */
struct pair_partition_need {
    size_t shown, own, workspace;
};

/* Can this rank's engine do it? All ranks must agree. Reads all of x except the memory, and of the arrays only whether they are there
 * and whether elements_out is `elements`. need [1] is written if the answer is yes. Pure. */
bool pair_partition_can(const struct pair_partition *x, struct pair_partition_need *need);

/* Sort. Collective.
 *   done    [1] written, the same on every rank. false: the pairs do not suit it, or a rank has failed, and no output has been
 *           written. true: each rank has its pairs of out_offset; or the outputs are undefined, after an error
 * Errors    this rank's own: it has kept to the schedule, and the caller agrees on it. Complete on return. */
hsort_status pair_partition_run(const struct pair_partition *x, bool *done);

#endif
