/* Shift the boundaries between ranks without changing the global order: every rank's part before and after is
 * an interval of global positions, and it sends each other rank the overlap of its old interval with that
 * rank's new one.
 *
 *     have   | rank 0: 0 1 2 3 4 5 | rank 1: 6 | rank 2: 7 8 |          want 3 each
 *     want   | 0 1 2 | 3 4 5 | 6 7 8 |          rank 0 -> 1: 3 4 5      rank 1 -> 2: 6      the rest stays on its rank
 *
 * There are P - 1 steps: in step s rank r sends to r + s while it receives from r - s, so every rank is in
 * one sendrecv at a time. Most overlaps are empty, and then nothing is sent, not even a message. */
#include "mpi/exchange/rebalance.h"

struct overlap {
    int64_t begin, count;
};

/* The positions that rank `owner` has and rank `taker` wants. */
static struct overlap overlap_of(const int64_t *have_offset, int owner, const int64_t *want_offset, int taker)
{
    int64_t begin = have_offset[owner] > want_offset[taker] ? have_offset[owner] : want_offset[taker];
    int64_t end =
        have_offset[owner + 1] < want_offset[taker + 1] ? have_offset[owner + 1] : want_offset[taker + 1];
    return (struct overlap){begin, end > begin ? end - begin : 0};
}

hsort_status rebalance(struct exchange *x, const int64_t *have_offset, const int64_t *want_offset,
                       const void *from, void *to)
{
    const int rank = x->comm->rank, size = x->comm->size;
    const size_t width = (size_t)x->key_bytes;
    const char *source = from;
    char *target = to;
    hsort_status status = HSORT_OK;
    struct overlap own = overlap_of(have_offset, rank, want_offset, rank);
    if (own.count > 0)
        status = x->engine->ops->copy(
            x->engine, STREAM_WORK, target + (size_t)(own.begin - want_offset[rank]) * width,
            source + (size_t)(own.begin - have_offset[rank]) * width, (size_t)own.count * width);
    for (int step = 1; step < size; step++) {
        int to_rank = (rank + step) % size, from_rank = (rank - step + size) % size;
        struct overlap send = overlap_of(have_offset, rank, want_offset, to_rank);
        struct overlap receive = overlap_of(have_offset, from_rank, want_offset, rank);
        if (send.count == 0 && receive.count == 0)
            continue;
        const char *out = send.count > 0 ? source + (size_t)(send.begin - have_offset[rank]) * width : NULL;
        char *in = receive.count > 0 ? target + (size_t)(receive.begin - want_offset[rank]) * width : NULL;
        keep_first_error(&status, x->transport->ops->sendrecv(
                                      x->transport, to_rank, out, (size_t)send.count * width, from_rank, in,
                                      (size_t)receive.count * width, &x->moved_bytes));
    }
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}
