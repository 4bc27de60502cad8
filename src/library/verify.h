/* Check keys, or elements that hold keys, chunk by chunk: their order, their count, the fingerprint of their multiset. Each
 * rank feeds its own contiguous part of a distributed array; verify_finish() joins the parts. hsort_check*(), the command's
 * `check` and `sort --verify` and the tests all use it, so there is one notion of "sorted". */
#ifndef VERIFY_H
#define VERIFY_H

#include <stdint.h>
#include "mpi/comm/comm.h"
#include "kernels/engine.h"
#include "hypersort.h"

struct verifier {
    struct keymap map;        /* of bare keys */
    int64_t count;            /* keys seen on this rank */
    int64_t first_descent;    /* on this rank: position of the first key less than the one before; -1: none */
    key_code first, last;     /* the first and the last key seen, encoded */
    uint64_t fingerprint[2];

    /* of elements, each with a number: */
    bool numbered;
    int64_t first_unstable;   /* the first one equal to the one before, with no greater number; -1: none */
    int64_t first_number, last_number;
    uint64_t placed[2];       /* the fingerprint of elements and numbers */
};

/* map: of the keys' type and the order they should be in, or of codes. Not collective. */
void verify_start(struct verifier *verifier, struct keymap map);

/* The next keys [count] of this rank's part, in engine memory. Not collective. Errors: the engine's. */
hsort_status verify_add(struct verifier *verifier, struct engine *engine, const void *keys, int64_t count);

/* The next elements. A verifier is of keys or of elements, never of both. Not collective. */
hsort_status verify_add_elements(struct verifier *verifier, struct engine *engine,
                                 const struct engine_elements *elements);

/* Append what another verifier of this rank has seen to what this one has seen. Both are of elements. Not collective. */
void verify_append(struct verifier *verifier, const struct verifier *next);

/* Join all ranks' parts, in rank order; ranks without keys are skipped over. The result is the same
 * everywhere. Collective. `result->struct_size` need not be set. Errors HSORT_MPI. */
hsort_status verify_finish(const struct verifier *verifier, struct comm *comm, hsort_check_result *result);

#endif
