/* sort --unique: keep the first element of each run of equal keys, and how many elements the run has.
 *
 *     sorted     rank 0: 5a 5b 7c     rank 1: 7d 9e       first, counts   0 2   2 2 | 4   1
 *     kept       5a 7c                9e                  the outputs have 2 elements of rank 0, then 1 of rank 1
 */
#ifndef RECORDS_UNIQUE_H
#define RECORDS_UNIQUE_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"
#include "src/command/record_keys.h"

struct unique_run {
    struct comm *comm;
    hsort_context *ctx;
    struct engine *engine; /* the host's; borrowed */
    const struct record_keys *keys;
    bool bare;          /* the elements are keys of keys->fields[0].type */
    const void *sorted; /* [count * bytes] this rank's elements, in order over all ranks */
    size_t bytes;
    int64_t position, count; /* of the first of them among all; how many */

    /* found; owned */
    void *codes; /* [count] of code_bytes; NULL for bare keys, which are their own codes */
    int code_bytes;
    int64_t *first, *counts;               /* [kept] where each run begins among all, and how long it is */
    int64_t kept, kept_before, kept_total; /* kept elements of this rank, of the ranks before it, of all */
};

/* Bytes of host memory for each element that unique_find() takes, and unique_check(), if that is called (`checks`). Pure. */
size_t unique_bytes(const struct record_keys *keys, bool bare, bool checks);

/* Find the runs. Collective. Errors agreed: those of hsort_unique(). */
hsort_status unique_find(struct unique_run *run);

/* to [kept * bytes] = the kept elements of a column [count * bytes], which is sorted in the same order. Not collective. */
hsort_status unique_keep(const struct unique_run *run, const void *column, size_t bytes, void *to);

/* Compare what was kept with all that was sorted: *right, the same on every rank. Keys must rise and none may occur twice; with their
 * counts they must be the keys that were sorted; each element must be the first of its run. Collective.
 *   kept  [run->kept * run->bytes] */
hsort_status unique_check(const struct unique_run *run, const void *kept, bool *right);

/* Add to sum [3] the fingerprint of keys or codes [count], each as often as its count says, and the counts. Not collective. */
void unique_weigh(int code_bytes, const void *codes, const int64_t *counts, int64_t count, uint64_t sum[3]);

void unique_free(struct unique_run *run); /* not collective */

#endif
