/* Shift the boundaries between ranks without changing the global order: every rank's part before and after is
 * an interval of global positions, and it sends each other rank the overlap of its old interval with that
 * rank's new one.
 *
 *     have   | rank 0: 0 1 2 3 4 5 | rank 1: 6 | rank 2: 7 8 |          want 3 each
 *     want   | 0 1 2 | 3 4 5 | 6 7 8 |          rank 0 -> 1: 3 4 5      rank 1 -> 2: 6      the rest stays on its rank
 *
 * There are P - 1 steps: in step s rank r sends to r + s while it receives from r - s, so every rank is in
 * one sendrecv at a time. Most overlaps are empty, and then nothing is sent, not even a message. */
#include "kernels/base/lesser.h"
#include "mpi/exchange/place_span.h"
#include "mpi/exchange/rebalance.h"

/* The positions that rank `owner` has and rank `taker` wants. */
static struct place_span overlap_of(const int64_t *have_offset, int owner, const int64_t *want_offset,
                                    int taker)
{
    return (struct place_span){.first = greater(have_offset[owner], want_offset[taker]),
                               .end = lesser(have_offset[owner + 1], want_offset[taker + 1])};
}

hsort_status rebalance(struct exchange *x, const int64_t *have_offset, const int64_t *want_offset,
                       const void *from, void *to)
{
    const int rank = x->comm->rank, size = x->comm->size;
    const size_t width = (size_t)x->key_bytes;
    const char *source = from;
    char *target = to;
    hsort_status status = HSORT_OK;
    const struct place_span own = overlap_of(have_offset, rank, want_offset, rank);
    if (!place_span_is_empty(own))
        status = x->engine->ops->copy(
            x->engine, STREAM_WORK, target + (size_t)(own.first - want_offset[rank]) * width,
            source + (size_t)(own.first - have_offset[rank]) * width, place_span_length(own) * width);
    for (int step = 1; step < size; step++) {
        int to_rank = (rank + step) % size, from_rank = (rank - step + size) % size;
        const struct place_span send = overlap_of(have_offset, rank, want_offset, to_rank),
                                receive = overlap_of(have_offset, from_rank, want_offset, rank);
        const size_t out_bytes = place_span_length(send) * width,
                     in_bytes = place_span_length(receive) * width;
        if (out_bytes == 0 && in_bytes == 0)
            continue;
        const char *out = out_bytes > 0 ? source + (size_t)(send.first - have_offset[rank]) * width : NULL;
        char *in = in_bytes > 0 ? target + (size_t)(receive.first - want_offset[rank]) * width : NULL;
        keep_first_error(&status, x->transport->ops->sendrecv(x->transport, to_rank, out, out_bytes,
                                                              from_rank, in, in_bytes, &x->moved_bytes));
    }
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}
