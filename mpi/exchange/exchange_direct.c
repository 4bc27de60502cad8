/* The exchange in which each key moves once: cut every rank's run for all ranks at once (splitters.c), send each piece
 * to the rank it belongs to, merge what has come.
 *
 *                 runs, cut          scratch: pieces in order of where they come from     merged
 *     rank 0    0 1 5 | 6 | 9        0 1 5 | 2 | 3                                      0 1 2 3 5
 *     rank 1    2 | 6 7 | 8 10       6 | 6 7 | 5' 6'       (5' counts as after 5)       5' 6 6 6' 7
 *     rank 2    3 | 5' 6' | 11 12    9 | 8 10 | 11 12                                   8 9 10 11 12
 *
 * Pairs meet in P - 1 shifts: rank r sends to r + s while it receives from r - s, so no rank is sent to by all others
 * at a time. Where nothing is to be sent there is no message. Not MPI_Alltoallv: its counts are ints, and on device
 * memory it crashes or crawls in MPI libraries whose point-to-point messages are fine. This is the form `straight`; on
 * many nodes the form `rails` may cost less (direct_rails.c).
 *
 * All ranks agree that nothing has failed before a key moves: only then do both sides of every message know its
 * length. */
#include "kernels/base/first_error.h"
#include "mpi/exchange/cost.h"
#include "mpi/exchange/direct_rails.h"
#include "mpi/exchange/splitters.h"
#include <stdlib.h>

struct direct {
    struct splitters *splitters;
    int64_t *cut_offset;           /* [size + 1] own keys cut_offset[r] .. cut_offset[r + 1] - 1 go to rank r */
    int64_t *sends, *receives; /* [size] keys to and from each rank */
    int64_t *piece_at;         /* [size + 1] where in the scratch buffer the keys from each rank begin */
    struct rails *rails;       /* NULL: there are none, or nobody has looked for them */
    const struct hsort_rates *rates;
};

/* What ranks agree on before keys move. Each is true if it is so on any rank. */
struct verdict {
    int failed, wrong, crowded;
};

void direct_close(struct direct *direct)
{
    if (!direct)
        return;
    splitters_close(direct->splitters);
    rails_close(direct->rails);
    free(direct->cut_offset);
    free(direct->sends);
    free(direct->receives);
    free(direct->piece_at);
    free(direct);
}

hsort_status direct_open(int size, struct direct **direct)
{
    const size_t entries = (size_t)size + 1;
    struct direct *d = *direct = calloc(1, sizeof *d);
    if (!d)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %d ranks", size);
    d->cut_offset = calloc(entries, sizeof *d->cut_offset);
    d->sends = calloc(entries, sizeof *d->sends);
    d->receives = calloc(entries, sizeof *d->receives);
    d->piece_at = calloc(entries, sizeof *d->piece_at);
    hsort_status status = splitters_open(size, &d->splitters);
    if (status == HSORT_OK && !(d->cut_offset && d->sends && d->receives && d->piece_at))
        status = status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %d ranks", size);
    if (status != HSORT_OK) {
        direct_close(d);
        *direct = NULL;
    }
    return status;
}

hsort_status direct_find_nodes(struct direct *direct, struct comm *comm, const struct hsort_rates *rates)
{
    direct->rates = rates;
    return rails_open(comm, &direct->rails);
}

/* ---- before a key moves ------------------------------------------------------------------------------------------ */

/* The same on every rank. */
static bool takes_rails(const struct exchange *x, int64_t total)
{
    const struct direct *d = x->direct;
    if (!d->rails || x->form != DIRECT_CHEAPER)
        return d->rails && x->form == DIRECT_RAILS;
    return cost_direct_form(d->rates, x->comm->size, rails_ranks_per_node(d->rails), x->key_bytes, total) ==
           DIRECT_RAILS;
}

/* `comes` keys would come to this rank, where `wanted` should, and `crowded` says that there is no room on their way.
 *                                                                                                    Collective. */
static hsort_status agree(const struct exchange *x, hsort_status status, int64_t comes, int64_t wanted,
                          bool crowded, struct verdict *all)
{
    // A rank that failed has cut its run anywhere, which others see only as a wrong sum; that is then no fault of
    // theirs.
    const bool wrong = comes != wanted;
    struct verdict own = {status != HSORT_OK, wrong, crowded};
    *all = (struct verdict){1, 1, 1};
    keep_first_error(&status,
         comm_check(MPI_Allreduce(&own, all, sizeof own / sizeof(int), MPI_INT, MPI_MAX, x->comm->world),
                    "MPI_Allreduce", true));
    if (wrong && !all->failed)
        keep_first_error(&status, status_fail(HSORT_INTERNAL, "the splitters give %lld keys instead of %lld",
                                  (long long)comes, (long long)wanted));
    return status;
}

/* Find how many keys come from where.                                                                Collective. */
static hsort_status plan_pieces(const struct exchange *x)
{
    struct direct *d = x->direct;
    for (int rank = 0; rank < x->comm->size; rank++) {
        d->sends[rank] = d->cut_offset[rank + 1] - d->cut_offset[rank];
        d->receives[rank] = 0;
    }
    const hsort_status status =
        comm_check(MPI_Alltoall(d->sends, 1, MPI_INT64_T, d->receives, 1, MPI_INT64_T, x->comm->world),
                   "MPI_Alltoall", true);
    for (int rank = 0; rank < x->comm->size; rank++)
        d->piece_at[rank + 1] = d->piece_at[rank] + d->receives[rank];
    return status;
}

/* ---- straight ---------------------------------------------------------------------------------------------------- */

/* Send each piece and receive the others into the scratch buffer, one behind the other.                Collective. */
static hsort_status move_pieces(struct exchange *x)
{
    const struct direct *d = x->direct;
    const int rank = x->comm->rank, size = x->comm->size;
    const size_t width = (size_t)x->key_bytes;
    const char *keys = x->keys;
    char *pieces = x->scratch;
    hsort_status status = HSORT_OK;
    // What stays does not pass through MPI, which may send a rank's message to itself the slowest way of all.
    if (d->sends[rank] > 0)
        status = x->engine->ops->copy(x->engine, STREAM_WORK, pieces + (size_t)d->piece_at[rank] * width,
                                      keys + (size_t)d->cut_offset[rank] * width, (size_t)d->sends[rank] * width);
    for (int shift = 1; shift < size; shift++) {
        const int to = (rank + shift) % size, from = (rank - shift + size) % size;
        const int64_t send = d->sends[to], receive = d->receives[from];
        if (send > 0 || receive > 0) {
            x->rounds_moved++;
            const char *out = send > 0 ? keys + (size_t)d->cut_offset[to] * width : NULL;
            char *in = receive > 0 ? pieces + (size_t)d->piece_at[from] * width : NULL;
            keep_first_error(&status, x->transport->ops->sendrecv(x->transport, to, out, (size_t)send * width, from, in,
                                                  (size_t)receive * width, &x->moved_bytes));
        }
        if (x->progress)
            x->progress(x->progress_user, shift, size - 1);
    }
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}

/* Merge the pieces in the scratch buffer; the keys are then in one of the two buffers, the other is scratch. */
static hsort_status merge_pieces(struct exchange *x)
{
    const double start = MPI_Wtime();
    void *merged = x->scratch;
    hsort_status status = x->engine->ops->merge_runs(x->engine, x->key_bytes, x->scratch, x->direct->piece_at,
                                                     x->comm->size, x->keys, &merged);
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    if (merged == x->scratch) {
        x->scratch = x->keys;
        x->keys = merged;
    }
    x->merge_seconds += MPI_Wtime() - start;
    return status;
}

/* Collective. */
static hsort_status move_straight(struct exchange *x, bool all_stay)
{
    if (all_stay) // where nothing comes or goes there is no need to copy what stays
        return HSORT_OK;
    hsort_status status = move_pieces(x);
    keep_first_error(&status, merge_pieces(x));
    return status;
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

hsort_status exchange_direct(struct exchange *x, const int64_t *target_offset)
{
    struct direct *d = x->direct;
    const int rank = x->comm->rank;
    const int64_t wanted = target_offset[rank + 1] - target_offset[rank];
    hsort_status status = splitters_find(d->splitters, x, target_offset, d->cut_offset);
    struct verdict all = {.crowded = 1};
    const bool all_stay = d->cut_offset[rank + 1] - d->cut_offset[rank] == x->count && wanted == x->count;
    const bool by_rails = takes_rails(x, target_offset[x->comm->size]);
    if (by_rails) {
        int64_t comes;
        bool crowded;
        keep_first_error(&status, rails_plan(d->rails, x, d->cut_offset, &comes, &crowded));
        status = agree(x, status, comes, wanted, crowded, &all);
    }
    if (all.crowded && !all.failed && !all.wrong) {
        keep_first_error(&status, plan_pieces(x));
        status = agree(x, status, d->piece_at[x->comm->size], wanted, true, &all);
    }
    x->count = wanted;
    if (all.failed || all.wrong)
        return status;
    keep_first_error(&status, all.crowded ? move_straight(x, all_stay) : rails_move(d->rails, x, d->cut_offset));
    return status;
}
