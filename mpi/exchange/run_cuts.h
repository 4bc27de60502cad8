/* Where the sorted runs of all ranks must be cut so that the pieces hold exactly the keys between given global
 * positions, where a rank has many runs, in host memory. splitters.h does the same for one run on each rank, in
 * engine memory; run_cuts.c says why that takes another search. */
#ifndef RUN_CUTS_H
#define RUN_CUTS_H

#include <stdint.h>
#include "kernels/base/keytype.h"
#include "mpi/comm/comm.h"

/* The runs of one rank, as many as run_cuts_open() was told, and how to look at one of their keys. All borrowed. */
struct run_set {
    const int64_t *count; /* [runs] keys of each; 0 is fine */
    /* cut: in run_cuts_find_within(), the cut for which the key is asked. Any thread; cannot fail. */
    key_code (*code_at)(const void *state, int64_t cut, int64_t run, int64_t position);
    const void *state;
};

enum { RUN_CUTS_AT_ONCE = 256 }; /* the most cuts that are searched for together: this limits tables and messages */

struct run_cuts; /* tables for the search */

/* Make the tables for the ranks of `comm`, for `runs` runs of this rank, and for `at_once` cuts at a time (1 to RUN_CUTS_AT_ONCE, the
 * same on every rank). They take run_cuts_bytes() of memory. *cuts is NULL after an error. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status run_cuts_open(const struct comm *comm, int64_t runs, int at_once, struct run_cuts **cuts);
size_t run_cuts_bytes(int ranks, int64_t runs, int at_once);

void run_cuts_close(struct run_cuts *cuts); /* NULL is fine; not collective */

/* Cut all ranks' runs at all of the given positions. Collective; a rank that is alone sends no message.
 *   total       keys of all ranks; the same on every rank
 *   positions   [count] 0 .. total each, in any order; the same on every rank
 *   cut_offset  [count * runs] written: of run j, keys 0 .. cut_offset[i * runs + j] - 1 are among those
 *               before positions[i]
 * Order    keys are ordered by (key, rank, run, position), so equal keys are cut exactly as well, and on all ranks
 *          together as many keys lie before a cut as its position says.
 * Errors   this rank's own: it has kept to the schedule. HSORT_MPI; HSORT_INTERNAL if a run is not sorted: cuts
 *          are then some numbers 0 .. count.
 * Source   Varman, Scheufler, Iyer, Ricard, "Merging multiple lists on hierarchical-memory multiprocessors",
 *          1991, section 3 (selection in several sorted lists); Floyd, Rivest, "Expected time bounds for selection",
 *          1975 (estimates on either side of the key that is looked for); Saukas, Song, "A note on parallel selection on
 *          coarse-grained multicomputers", 1999 (weighted medians of medians). */
hsort_status run_cuts_find(struct run_cuts *cuts, const struct run_set *set, int64_t total,
                           const int64_t *positions, int64_t count, int64_t *cut_offset);

/* The same for cuts that are known to lie in given ranges. Only the keys in these ranges are looked at. Collective.
 *   positions   [count] at_once at most
 *   begin, end  [count * runs] cut i of run j is at begin[i * runs + j] at least, and at end[i * runs + j] at most. This must be
 *               right on every rank. For a cut, set->code_at() is asked only for its positions begin .. end - 1 */
hsort_status run_cuts_find_within(struct run_cuts *cuts, const struct run_set *set, const int64_t *positions,
                                  int count, const int64_t *begin, const int64_t *end, int64_t *cut_offset);

#endif
