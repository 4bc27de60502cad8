/* Chunks out of mapped memory: every rank shows each peer the part of its scratch buffer which that one wants, and copies
 * what it wants itself.
 *
 *     begin   expose to each peer on the node     a few short messages a pair
 *     fetch   copies on STREAM_IN                 none
 *     end     conceal                             one short message each way */
#include "kernels/base/first_error.h"
#include "mpi/exchange/batch_source.h"
#include "mpi/exchange/step_order.h"

/* Where the regions of rank `reader` begin in rank `owner`'s scratch buffer, and their bytes. */
static size_t shown_bytes(const struct batch_space *space, int owner, int reader, int64_t *at)
{
    const struct batch_plan *plan = space->plan;
    const int64_t *pieces = batch_pieces_of(plan, owner);
    *at = pieces[plan->first[reader]] * space->x->key_bytes;
    return (size_t)(pieces[plan->end[reader]] * space->x->key_bytes - *at);
}

/* Ranks go through their peers in ascending order, so that none waits for one that waits for it. */
static hsort_status begin_mapped(struct batch_space *space, void *tables)
{
    struct exchange *x = space->x;
    const int rank = x->comm->rank;
    hsort_status status = HSORT_OK;
    int64_t at;
    (void)tables;
    for (int peer = 0; peer < x->comm->size; peer++) {
        space->shown[peer] = NULL;
        if (peer == rank || transport_path(x->transport, peer) != HSORT_TRANSPORT_IPC)
            continue;
        const size_t bytes = shown_bytes(space, rank, peer, &at);
        keep_first_error(&status, x->transport->ops->expose(x->transport, peer, (char *)x->scratch + at, bytes,
                                                            &space->shown[peer]));
        if (space->shown[peer])
            exchange_count_moved(x, "memory is shown", peer, (int64_t)bytes);
    }
    return status;
}

static hsort_status fetch_mapped(struct batch_space *space, void *tables, int number)
{
    struct exchange *x = space->x;
    const struct engine_ops *ops = x->engine->ops;
    const struct batch *batch = batch_of(space->plan, x->comm->rank, number);
    char *slot = space->slot[number % BATCH_SLOTS];
    hsort_status status = HSORT_OK;
    int64_t at, shown_at;
    (void)tables;
    if (space->failed)
        return HSORT_OK;
    if (number >= BATCH_SLOTS)
        status = ops->stream_wait_event(x->engine, STREAM_IN, space->sorted[number % BATCH_SLOTS]);
    for (int step = 1; step < x->comm->size; step++) {
        const int peer = step_source(x->comm, step);
        const size_t bytes = (size_t)(batch_chunk(space->plan, batch, peer, &at) * x->key_bytes);
        if (space->shown[peer] && bytes > 0) {
            shown_bytes(space, peer, x->comm->rank, &shown_at);
            const char *theirs = (const char *)space->shown[peer] + (at * x->key_bytes - shown_at);
            struct trace_span *span = trace_begin(x->comm->trace, "fetch");
            trace_received(span, peer, (int64_t)bytes);
            keep_first_error(&status, ops->copy(x->engine, STREAM_IN, slot, theirs, bytes));
            trace_end(span);
        }
        slot += bytes;
    }
    return status;
}

static hsort_status end_mapped(struct batch_space *space, void *tables)
{
    struct exchange *x = space->x;
    hsort_status status = HSORT_OK;
    (void)tables;
    for (int peer = 0; peer < x->comm->size; peer++)
        if (space->shown[peer])
            keep_first_error(&status, x->transport->ops->conceal(x->transport, peer));
    return status;
}

const struct batch_source_ops mapped_source = {
    .begin = begin_mapped,
    .fetch = fetch_mapped,
    .end = end_mapped,
};
