/* The distributed bitonic merge: in every round of the hypercube two partners compare-split, the lower rank
 * keeping the lower keys. Only keys that change sides move, and they take the place of those that leave:
 *
 *     lower rank    [ stays 1 4 | leaves 6 9 ]              [ 1 4 | 2 3 ]   merge into scratch:   1 2 3 4
 *                                    |          sendrecv
 *     higher rank   [ leaves 2 3 | stays 5 7 ]   ------>    [ 6 9 | 5 7 ]   merge into scratch:   5 6 7 9
 *
 * so a rank needs its run and one scratch buffer, and the two change roles. Ranks that read each other's
 * memory merge without the sendrecv (merge_across()). A rank may hold fewer keys than its capacity: the rest
 * counts as +infinity, which the network moves to the last ranks without sending a byte.
 *
 * Source: Batcher 1968; Peters, Schulz-Hildebrandt, Luttenberger, section 3.3 (virtual padding, applied to
 * ranks); mpi/README.md. */
#include "mpi/exchange/exchange.h"
#include "mpi/exchange/hypercube.h"
#include "mpi/exchange/merge_from_peer.h"
#include "mpi/exchange/split.h"

/* Merge two runs into the scratch buffer, which becomes the keys. */
static hsort_status merge_into_scratch(struct exchange *x, const char *a, int64_t a_count, const char *b,
                                       int64_t b_count)
{
    hsort_status status = x->engine->ops->merge(x->engine, x->key_bytes, a, a_count, b, b_count, x->scratch);
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    exchange_swap_buffers(x);
    return status;
}

/* What two partners know of each other once the cut is found. */
struct halves {
    int partner;
    bool lower; /* this rank is the lower one */
    int64_t kept, outgoing, incoming;
    char *place;        /* where the outgoing keys lie */
    const char *stayed; /* where the kept ones lie */
};

/* Let the keys change places with the partner's, then merge. */
static hsort_status sendrecv_and_merge(struct exchange *x, const struct halves *h)
{
    const size_t width = (size_t)x->key_bytes;
    hsort_status status =
        x->transport->ops->sendrecv(x->transport, h->partner, h->place, (size_t)h->outgoing * width,
                                    h->partner, h->place, (size_t)h->incoming * width, &x->moved_bytes);
    const bool one_run_in_place = h->kept == 0 || (h->incoming == 0 && h->lower);
    if (one_run_in_place)
        return status;
    const double start = MPI_Wtime();
    keep_first_error(&status, h->lower ? merge_into_scratch(x, h->stayed, h->kept, h->place, h->incoming)
                                       : merge_into_scratch(x, h->place, h->incoming, h->stayed, h->kept));
    x->merge_seconds += MPI_Wtime() - start;
    return status;
}

/* Where the partners map each other's memory there is no sendrecv: each merges what it keeps with what it
 * fetches from the other's run, which nobody writes to meanwhile.
 *
 *     lower rank    keys [ 1 4 | 6 9 ]              scratch [ 1 2 3 4 ]   1 4 from its own keys, 2 3 from the partner's
 *                               \ /    fetched
 *     higher rank   keys [ 2 3 | 5 7 ]   by both    scratch [ 5 6 7 9 ]   5 7 from its own keys, 6 9 from the partner's
 *
 * Link and merge overlap, so all of it counts as exchange. `theirs`: see transport_ops.expose(). */
static hsort_status merge_across(struct exchange *x, const struct halves *h, const void *theirs)
{
    hsort_status status = HSORT_OK;
    struct trace_span *span = trace_begin(x->comm->trace, "merge across");
    trace_transfer(span, h->partner, (size_t)(h->outgoing * x->key_bytes), h->partner,
                   (size_t)(h->incoming * x->key_bytes));
    if (!(h->incoming == 0 && h->lower)) {
        status = merge_from_peer(x, h->stayed, h->kept, theirs, h->incoming, x->scratch);
        exchange_swap_buffers(x);
    }
    x->moved_bytes += h->outgoing * x->key_bytes;
    keep_first_error(&status, x->transport->ops->conceal(x->transport, h->partner));
    return trace_end_with(span, status);
}

static hsort_status compare_split(struct exchange *x, int partner)
{
    struct halves h = {.partner = partner, .lower = x->comm->rank < partner};
    struct trace_span *span = trace_begin(x->comm->trace, "split");
    hsort_status status = trace_end_with(span, split_pair(x, partner, &h.kept, &h.incoming));
    h.outgoing = x->count - h.kept;
    if (h.outgoing == 0 && h.incoming == 0)
        return status;
    x->rounds_moved++;
    x->count = h.kept + h.incoming;

    // The lower rank gives away its last keys, the higher its first; what comes takes their place.
    const size_t width = (size_t)x->key_bytes;
    char *keys = x->keys;
    h.place = h.lower ? keys + (size_t)h.kept * width : keys;
    h.stayed = h.lower ? keys : keys + (size_t)h.outgoing * width;
    const void *theirs = NULL;
    if (x->transport->ops->expose) {
        keep_first_error(&status,
                         x->engine->ops->stream_synchronize(x->engine, STREAM_WORK)); // what is shown must be there
        keep_first_error(&status, x->transport->ops->expose(x->transport, partner, h.place,
                                                            (size_t)h.outgoing * width, &theirs));
    }
    keep_first_error(&status, theirs ? merge_across(x, &h, theirs) : sendrecv_and_merge(x, &h));
    return status;
}

static hsort_status run_bitonic(struct exchange *x, bool *done)
{
    const int rounds = hypercube_rounds(x->comm->size);
    hsort_status status = HSORT_OK;
    for (int round = 0; round < rounds; round++) {
        int partner = hypercube_partner(x->comm->rank, x->comm->size, round);
        struct trace_span *span = trace_begin(x->comm->trace, "round of the network");
        if (partner >= 0)
            keep_first_error(&status, compare_split(x, partner));
        trace_end(span);
        if (x->progress)
            x->progress(x->progress_user, round + 1, rounds);
    }
    *done = true;
    return status;
}

const struct exchange_ops exchange_bitonic = {
    .kind = HSORT_EXCHANGE_BITONIC, .input = EXCHANGE_TAKES_SORTED, .run = run_bitonic};
