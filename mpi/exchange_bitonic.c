/* The distributed bitonic merge: in every round of the hypercube two partners compare-split, the lower rank keeping the
 * lower keys. Only keys that change sides move, and they move into the room of those that leave:
 *
 *     lower rank    [ stays 1 4 | leaves 6 9 ]              [ 1 4 | 2 3 ]   merge into spare:   1 2 3 4
 *                                    |            swap
 *     higher rank   [ leaves 2 3 | stays 5 7 ]   ------>    [ 6 9 | 5 7 ]   merge into spare:   5 6 7 9
 *
 * so a rank needs its run and one spare buffer of a block, and the two change roles. Ranks may hold less than a block:
 * the rest is thought to be +infinity, which the network moves to the last ranks without a byte being sent. */
#include "exchange.h"
#include "hypercube.h"

static void note(hsort_status *status, hsort_status happened)
{
    if (*status == HSORT_OK)
        *status = happened;
}

/* Merge two runs into the spare buffer, which becomes the keys. */
static hsort_status merge_into_spare(struct exchange *x, const char *a, int64_t a_count, const char *b,
                                     int64_t b_count)
{
    const double start = MPI_Wtime();
    hsort_status status = x->engine->ops->merge(x->engine, x->key_bytes, a, a_count, b, b_count, x->spare);
    note(&status, x->engine->ops->wait(x->engine, LANE_WORK));
    void *merged = x->spare;
    x->spare = x->keys;
    x->keys = merged;
    x->merge_seconds += MPI_Wtime() - start;
    return status;
}

static hsort_status compare_split(struct exchange *x, int partner)
{
    const bool lower = x->comm->rank < partner;
    const size_t width = (size_t)x->key_bytes;
    int64_t kept, incoming;
    hsort_status status = split_pair(x, partner, &kept, &incoming);
    const int64_t outgoing = x->count - kept;
    if (outgoing == 0 && incoming == 0)
        return status;
    x->rounds_moved++;

    // The lower rank gives away its last keys, the higher its first; what comes takes their place.
    char *keys = x->keys;
    char *place = lower ? keys + (size_t)kept * width : keys;
    note(&status, x->transport->ops->swap(x->transport, partner, place, (size_t)outgoing * width, partner,
                                          place, (size_t)incoming * width, &x->moved_bytes));
    const char *stayed = lower ? keys : keys + (size_t)outgoing * width;
    x->count = kept + incoming;
    const bool one_run_in_place = kept == 0 || (incoming == 0 && lower);
    if (one_run_in_place)
        return status;
    note(&status, lower ? merge_into_spare(x, stayed, kept, place, incoming)
                        : merge_into_spare(x, place, incoming, stayed, kept));
    return status;
}

hsort_status exchange_bitonic(struct exchange *x)
{
    const int rounds = hypercube_rounds(x->comm->size);
    hsort_status status = HSORT_OK;
    for (int round = 0; round < rounds; round++) {
        int partner = hypercube_partner(x->comm->rank, x->comm->size, round);
        if (partner >= 0)
            note(&status, compare_split(x, partner));
        if (x->progress)
            x->progress(x->progress_user, round + 1, rounds);
    }
    return status;
}
