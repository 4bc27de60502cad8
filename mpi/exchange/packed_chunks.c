/* See packed_chunks.h. The engine writes how many bytes a chunk takes when it has packed it: `bytes`, by the chunk's last region,
 * which no other chunk with keys has, unless it is the same one for another rank. */
#include "mpi/exchange/packed_chunks.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/first_error.h"

/* Chunks that are packed before they are sent: one for each rank of other nodes, so about a batch's time in messages, which lasts
 * while a batch is sorted. With more the batch would wait for them. */
enum { AHEAD_MIN = 2, AHEAD_MAX = PARTITION_RANKS_MAX };

struct packed_chunks {
    struct batch_space *space;
    packed_chunks_next_fn next;
    void *user;
    int64_t *bytes;               /* [ENGINE_REGIONS] host memory of the engine */
    bool packed[ENGINE_REGIONS];  /* the chunk has been queued */
    struct message_cursor cursor; /* the next chunk to queue */
    int64_t queued, left;         /* chunks; left: for good */
    int events, ahead; /* ahead <= events */
    bool plain[AHEAD_MAX];        /* by number % ahead */
    struct engine_event *ready[AHEAD_MAX];
    hsort_status status;
};

void packed_chunks_close(struct packed_chunks *p, struct engine *engine)
{
    if (!p)
        return;
    for (int i = 0; i < p->events; i++)
        engine->ops->event_destroy(engine, p->ready[i]);
    engine->ops->free_host(engine, p->bytes);
    free(p);
}

static hsort_status make_packing(struct packed_chunks *p, int size, struct engine *engine)
{
    p->events = size < AHEAD_MIN ? AHEAD_MIN : size > AHEAD_MAX ? AHEAD_MAX : size;
    TRY(engine->ops->alloc_host(engine, ENGINE_REGIONS * sizeof *p->bytes, (void **)&p->bytes));
    for (int i = 0; i < p->events; i++)
        TRY(engine->ops->event_create(engine, &p->ready[i]));
    return HSORT_OK;
}

hsort_status packed_chunks_open(int size, struct engine *engine, struct packed_chunks **chunks)
{
    struct packed_chunks *p = *chunks = calloc(1, sizeof *p);
    if (!p)
        return status_fail(HSORT_HOST_MEMORY, "no memory for packed chunks");
    const hsort_status status = make_packing(p, size, engine);
    if (status != HSORT_OK) {
        packed_chunks_close(p, engine);
        *chunks = NULL;
    }
    return status;
}

void packed_chunks_begin(struct packed_chunks *p, struct batch_space *space, packed_chunks_next_fn next, void *user)
{
    p->space = space;
    p->next = next;
    p->user = user;
    p->cursor = (struct message_cursor){.step = 1};
    const int others = space->x->comm->size - space->x->comm->node_size;
    p->ahead = others < AHEAD_MIN ? AHEAD_MIN : others > p->events ? p->events : others;
    p->queued = p->left = 0;
    p->status = HSORT_OK;
    memset(p->packed, 0, sizeof p->packed);
}

/* Does a rank of this node read the chunk's keys, too? */
static bool is_read_here(const struct packed_chunks *p, const struct batch *batch)
{
    const struct batch_plan *plan = p->space->plan;
    const int rank = p->space->x->comm->rank;
    for (int reader = 0; reader < plan->size && !batch->whole; reader++)
        if (p->space->node[reader] == p->space->node[rank] && plan->first[reader] <= batch->last && batch->first < plan->end[reader])
            return true;
    return false;
}

static bool is_sent_plain(const struct packed_chunks *p, const struct outgoing_chunk *chunk)
{
    const struct batch_space *space = p->space;
    return !space->unpacked || space->failed || p->status != HSORT_OK ||
           p->space->node[chunk->peer] == p->space->node[space->x->comm->rank] ||
           chunk->bytes < (size_t)(ENGINE_PACK_KEYS * space->x->key_bytes) || is_read_here(p, chunk->batch);
}

/* Sort the chunk's keys into the scratch, and pack them back to where they were. */
static hsort_status queue_packing(struct packed_chunks *p, const struct outgoing_chunk *chunk)
{
    struct exchange *x = p->space->x;
    char *keys = (char *)x->scratch + chunk->at;
    const int64_t count = (int64_t)chunk->bytes / x->key_bytes;
    const struct raw_keys codes = {.map = keymap_of_codes(x->key_bytes), .from = keys};
    void *sorted;
    TRY(x->engine->ops->sort(x->engine, -1, x->key_bytes, p->space->scratch, p->space->scratch + chunk->bytes, count,
                             count, x->workspace, &codes, &sorted));
    return x->engine->ops->packing->pack(x->engine, x->key_bytes, sorted, count, keys,
                                         &p->bytes[chunk->batch->last]);
}

void packed_chunks_advance(struct packed_chunks *p)
{
    struct engine *engine = p->space->x->engine;
    const int place = (int)(p->queued % p->ahead);
    struct outgoing_chunk chunk;
    if (p->space->engine_is_wanted || p->queued - p->left == p->ahead || !p->next(p->user, &p->cursor, &chunk))
        return;
    bool *packed = &p->packed[chunk.batch->last];
    p->plain[place] = !*packed && is_sent_plain(p, &chunk);
    if (!p->plain[place] && !*packed) {
        *packed = true;
        p->bytes[chunk.batch->last] = (int64_t)chunk.bytes; // should it fail
        keep_first_error(&p->status, queue_packing(p, &chunk));
    }
    if (!p->plain[place])
        keep_first_error(&p->status, engine->ops->event_record(engine, p->ready[place], STREAM_WORK));
    p->cursor.done = chunk.bytes;
    p->queued++;
}

bool packed_chunks_ready(struct packed_chunks *p, const struct outgoing_chunk *chunk, size_t *bytes)
{
    struct engine *engine = p->space->x->engine;
    const int place = (int)(p->left % p->ahead);
    bool done = true;
    *bytes = chunk->bytes;
    if (p->left == p->queued)
        return false;
    if (p->plain[place])
        return true;
    keep_first_error(&p->status, engine->ops->event_done(engine, p->ready[place], &done));
    if (!done && p->status == HSORT_OK)
        return false;
    if (p->status == HSORT_OK)
        *bytes = (size_t)p->bytes[chunk->batch->last];
    return true;
}

void packed_chunks_leave(struct packed_chunks *p)
{
    p->left++;
}

hsort_status packed_chunks_end(struct packed_chunks *p)
{
    return p->status;
}
