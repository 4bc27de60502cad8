/* Chunks out of mapped memory: every rank shows each peer the part of its scratch buffer that this peer wants, and copies
 * what it wants itself, in turns (peer_reader.h).
 *
 *     begin   expose to each peer on the node     a few short messages a pair
 *     fetch   copies on STREAM_IN                 none
 *     end     conceal                             one short message each way
 *
 * A fetch returns when its last copy has begun. Whatever waits next gives the turn back, because everything that waits advances the
 * sources. For the last batch, the fetch itself waits for that. */
#include "mpi/exchange/batch_source.h"
#include <stdlib.h>
#include "mpi/exchange/peer_reader.h"
#include "mpi/exchange/step_order.h"

struct mapped_tables {
    struct batch_space *space;
    struct peer_reader reader;
    struct peer_copy *copies; /* [size] chunks of the batch that are not queued yet */
};

static void close_mapped(void *tables, struct engine *engine)
{
    struct mapped_tables *m = tables;
    (void)engine;
    if (!m)
        return;
    peer_reader_close(&m->reader);
    free(m->copies);
    free(m);
}

static hsort_status open_mapped(int size, struct engine *engine, void **tables)
{
    struct mapped_tables *m = *tables = calloc(1, sizeof *m);
    if (m)
        m->copies = malloc((size_t)size * sizeof *m->copies);
    hsort_status status = m && m->copies
                              ? peer_reader_open(engine, &m->reader)
                              : status_fail(HSORT_HOST_MEMORY, "no memory for chunks of %d ranks", size);
    if (status != HSORT_OK) {
        close_mapped(m, engine);
        *tables = NULL;
    }
    return status;
}

/* Where the regions of rank `reader` begin in rank `owner`'s scratch buffer, and their bytes. */
static size_t shown_bytes(const struct batch_space *space, int owner, int reader, int64_t *at)
{
    const struct batch_plan *plan = space->plan;
    const int64_t keys = batch_span(plan, owner, plan->first[reader], plan->end[reader] - 1, at);
    *at *= space->x->key_bytes;
    return (size_t)(keys * space->x->key_bytes);
}

/* Ranks go through their peers in ascending order, so that no rank waits for one that waits for it. What is shown is there: all ranks
 * have agreed that they have scattered it. */
static hsort_status begin_mapped(struct batch_space *space, void *tables)
{
    struct mapped_tables *m = tables;
    struct exchange *x = space->x;
    const int rank = x->comm->rank;
    hsort_status status = HSORT_OK;
    int shown = 0;
    int64_t at;
    for (int peer = 0; peer < x->comm->size; peer++) {
        space->shown[peer] = NULL;
        if (peer == rank || transport_path(x->transport, peer) != HSORT_TRANSPORT_IPC)
            continue;
        const size_t bytes = shown_bytes(space, rank, peer, &at);
        keep_first_error(&status, x->transport->ops->expose(x->transport, peer, (char *)x->scratch + at,
                                                            bytes, &space->shown[peer]));
        if (space->shown[peer])
            count_moved(x->comm->trace, "memory is shown", peer, bytes, &x->moved_bytes);
        shown += space->shown[peer] != NULL;
    }
    m->space = space;
    peer_reader_begin(&m->reader, x->comm, x->transport, shown);
    return status;
}

static hsort_status advance_mapped(void *tables)
{
    struct mapped_tables *m = tables;
    return peer_reader_advance(&m->reader);
}

/* Wait until the turn is given back. */
static hsort_status end_turn(struct mapped_tables *m)
{
    hsort_status status = HSORT_OK;
    while (m->reader.reading != PEER_READER_IDLE)
        keep_first_error(&status, m->space->advance(m->space));
    return status;
}

/* Wait until the slot is free. If this rank takes turns, the host waits, because the rank must not hold a turn meanwhile. */
static hsort_status wait_for_slot(struct mapped_tables *m, int number)
{
    struct batch_space *space = m->space;
    struct engine *engine = space->x->engine;
    struct engine_event *sorted = space->sorted[number % BATCH_SLOTS];
    hsort_status status = HSORT_OK;
    if (number < BATCH_SLOTS)
        return HSORT_OK;
    if (!m->reader.takes_turns)
        return engine->ops->stream_wait_event(engine, STREAM_IN, sorted);
    for (bool done = false; !done && status == HSORT_OK;) {
        keep_first_error(&status, engine->ops->event_done(engine, sorted, &done));
        keep_first_error(&status, space->advance(space));
    }
    return status;
}

/* List the chunks of a batch that mapped peers have. Returns how many there are. */
static int list_chunks(struct mapped_tables *m, const struct batch *batch)
{
    const struct batch_space *space = m->space;
    const struct exchange *x = space->x;
    int count = 0;
    for (int step = 1; step < x->comm->size; step++) {
        const int peer = step_source(x->comm, step);
        const char *theirs = space->shown[peer];
        int64_t at, shown_at;
        const int64_t keys = batch_chunk(space->plan, batch, peer, &at);
        if (!theirs || keys == 0)
            continue;
        shown_bytes(space, peer, x->comm->rank, &shown_at);
        m->copies[count++] = (struct peer_copy){.peer = peer,
                                                .to = (char *)space->chunk[step],
                                                .from = theirs + (at * x->key_bytes - shown_at),
                                                .bytes = (size_t)(keys * x->key_bytes)};
    }
    return count;
}

static hsort_status fetch_mapped(void *tables, int number)
{
    struct mapped_tables *m = tables;
    struct batch_space *space = m->space;
    const int rank = space->x->comm->rank;
    if (space->failed)
        return end_turn(m);
    hsort_status status = wait_for_slot(m, number);
    for (int left = list_chunks(m, batch_of(space->plan, rank, number)); left > 0;) {
        const int before = left;
        left = peer_reader_copy(&m->reader, m->copies, left, &status);
        if (left == before)
            keep_first_error(&status, space->advance(space));
    }
    if (number == batch_count(space->plan, rank) - 1)
        keep_first_error(&status, end_turn(m));
    return status;
}

/* The last fetch has given its turn back. */
static hsort_status end_mapped(void *tables)
{
    const struct batch_space *space = ((const struct mapped_tables *)tables)->space;
    struct exchange *x = space->x;
    hsort_status status = HSORT_OK;
    for (int peer = 0; peer < x->comm->size; peer++)
        if (space->shown[peer])
            keep_first_error(&status, x->transport->ops->conceal(x->transport, peer));
    return status;
}

const struct batch_source_ops mapped_source = {
    .open = open_mapped,
    .close = close_mapped,
    .begin = begin_mapped,
    .fetch = fetch_mapped,
    .advance = advance_mapped,
    .end = end_mapped,
};
