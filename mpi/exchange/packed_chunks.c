/* See packed_chunks.h. When the engine has packed a chunk, it writes how many bytes the chunk takes to bytes[the chunk's last region].
 * No other chunk with keys has that region, unless it is the same chunk for another rank. */
#include "mpi/exchange/packed_chunks.h"
#include <stdlib.h>
#include <string.h>
#include "mpi/exchange/packed_paths.h"

/* At most two groups are queued or on their way: one is sent while the other is packed. With more groups the batch would wait for
 * them. */
enum { GROUPS = 2, GROUP_CHUNKS = ENGINE_PIECES_MAX, CHUNKS = GROUPS * GROUP_CHUNKS };

struct packed_chunks {
    struct batch_space *space;
    int64_t *bytes;               /* [ENGINE_REGIONS] host memory of the engine */
    bool packed[ENGINE_REGIONS];  /* the chunk has been queued */
    struct message_cursor cursor; /* the next chunk to queue */
    int64_t queued, left;         /* chunks that are queued, and that have left for good */
    int64_t groups, end[GROUPS];  /* groups queued; the number of the chunk behind each, by number % GROUPS */
    bool plain[CHUNKS];           /* by number % CHUNKS */
    struct engine_event *ready[GROUPS];
    hsort_status status;

    /* the group that is being made */
    struct outgoing_chunk chunk[GROUP_CHUNKS]; /* those that are packed */
    int chunks, regions;
    int64_t keys, scratch; /* of the engine's memory that they take */
    struct engine_piece piece[ENGINE_PIECES_MAX];
    struct engine_packing packing[GROUP_CHUNKS];
};

void packed_chunks_close(struct packed_chunks *p, struct engine *engine)
{
    if (!p)
        return;
    for (int i = 0; i < GROUPS; i++)
        engine->ops->event_destroy(engine, p->ready[i]);
    engine->ops->free_host(engine, p->bytes);
    free(p);
}

static hsort_status make_packing(struct packed_chunks *p, struct engine *engine)
{
    TRY(engine->ops->alloc_host(engine, ENGINE_REGIONS * sizeof *p->bytes, (void **)&p->bytes));
    for (int i = 0; i < GROUPS; i++)
        TRY(engine->ops->event_create(engine, &p->ready[i]));
    return HSORT_OK;
}

hsort_status packed_chunks_open(struct engine *engine, struct packed_chunks **chunks)
{
    struct packed_chunks *p = *chunks = calloc(1, sizeof *p);
    if (!p)
        return status_fail(HSORT_HOST_MEMORY, "no memory for packed chunks");
    const hsort_status status = make_packing(p, engine);
    if (status != HSORT_OK) {
        packed_chunks_close(p, engine);
        *chunks = NULL;
    }
    return status;
}

void packed_chunks_begin(struct packed_chunks *p, struct batch_space *space)
{
    p->space = space;
    p->cursor = (struct message_cursor){.step = 1};
    p->queued = p->left = p->groups = 0;
    p->status = HSORT_OK;
    memset(p->packed, 0, sizeof p->packed);
}

static bool packs_to(const struct batch_space *space, int peer)
{
    return space->unpacked && path_packs(space->x->comm, space->x->engine, space->x->transport, peer);
}

/* Does a rank want the chunk's keys as they are, too: this one, or one that reads them here, or gets them plain? */
static bool is_wanted_plain(const struct packed_chunks *p, const struct batch *batch)
{
    const struct batch_plan *plan = p->space->plan;
    const int rank = p->space->x->comm->rank;
    for (int reader = 0; reader < plan->size && !batch->whole; reader++)
        if (plan->first[reader] <= batch->last && batch->first < plan->end[reader] &&
            (reader == rank || !packs_to(p->space, reader)))
            return true;
    return false;
}

static bool is_sent_plain(const struct packed_chunks *p, const struct outgoing_chunk *chunk)
{
    const struct batch_space *space = p->space;
    return !packs_to(space, chunk->peer) || space->failed || p->status != HSORT_OK ||
           chunk->bytes < (size_t)(ENGINE_PACK_KEYS * space->x->key_bytes) ||
           is_wanted_plain(p, chunk->batch);
}

/* ---- a group ----------------------------------------------------------------------------------------------- */

/* Take a chunk into the group, if there is room for what it takes. A chunk alone always has room, because its batch has. */
static bool put_in_group(struct packed_chunks *p, const struct outgoing_chunk *chunk)
{
    const struct exchange *x = p->space->x;
    const int64_t *at = batch_pieces_of(p->space->plan, x->comm->rank), count = (int64_t)chunk->bytes / x->key_bytes;
    int64_t scratch = 0;
    int regions = 0;
    for (int region = chunk->batch->first; region <= chunk->batch->last; region++) {
        const int64_t keys = at[region + 1] - at[region];
        scratch += keys > 0 ? x->engine->ops->partition->region_scratch(x->engine, keys) : 0;
        regions += keys > 0;
    }
    if (p->chunks == GROUP_CHUNKS || p->regions + regions > ENGINE_PIECES_MAX ||
        p->keys + count > batch_slot_keys(x->comm->size, x->capacity) ||
        p->scratch + scratch > batch_scratch_keys(x->comm->size, x->capacity))
        return false;
    p->chunk[p->chunks++] = *chunk;
    p->regions += regions;
    p->keys += count;
    p->scratch += scratch;
    return true;
}

/* Take the chunks that come next into a group: chunks for batches of one number, as far as there is room. False: there is no chunk. */
static bool collect_group(struct packed_chunks *p)
{
    const int64_t before = p->queued;
    struct outgoing_chunk chunk;
    int number = 0;
    p->chunks = p->regions = 0;
    p->keys = p->scratch = 0;
    for (struct message_cursor c = p->cursor;
         find_outgoing(p->space, &c, &chunk) && p->queued - before < GROUP_CHUNKS;) {
        if (p->queued > before && c.batch != number)
            break;
        bool *packed = &p->packed[chunk.batch->last];
        const bool plain = !*packed && is_sent_plain(p, &chunk);
        if (!plain && !*packed && !put_in_group(p, &chunk))
            break;
        *packed = *packed || !plain;
        p->plain[p->queued++ % CHUNKS] = plain;
        number = c.batch;
        c.done = chunk.bytes;
        p->cursor = c;
    }
    return p->queued > before;
}

static int by_region(const void *a, const void *b)
{
    return ((const struct outgoing_chunk *)a)->batch->first - ((const struct outgoing_chunk *)b)->batch->first;
}

/* List the pieces of the group, in order of region, and the packings of what will be made of them. */
static void list_group(struct packed_chunks *p)
{
    const struct exchange *x = p->space->x;
    const int64_t *at = batch_pieces_of(p->space->plan, x->comm->rank);
    char *ordered = p->space->unpacked;
    int pieces = 0;
    qsort(p->chunk, (size_t)p->chunks, sizeof p->chunk[0], by_region);
    for (int i = 0; i < p->chunks; i++) {
        const struct outgoing_chunk *chunk = &p->chunk[i];
        char *keys = (char *)x->scratch + chunk->at;
        for (int region = chunk->batch->first; region <= chunk->batch->last; region++)
            if (at[region + 1] > at[region])
                p->piece[pieces++] = (struct engine_piece){.keys = (const char *)x->scratch + at[region] * x->key_bytes,
                                                           .count = at[region + 1] - at[region],
                                                           .region = region};
        p->packing[i] = (struct engine_packing){.from = ordered,
                                                .to = keys,
                                                .count = (int64_t)chunk->bytes / x->key_bytes,
                                                .bytes = &p->bytes[chunk->batch->last]};
        ordered += chunk->bytes;
    }
}

static hsort_status queue_group(struct packed_chunks *p)
{
    const struct batch_space *space = p->space;
    struct engine *engine = space->x->engine;
    const int width = space->x->key_bytes;
    list_group(p);
    TRY(engine->ops->partition->sort_regions(engine, width, space->map, p->piece, p->regions, NULL,
                                             space->x->memory, space->scratch, space->unpacked));
    return engine->ops->packing->pack(engine, width, p->packing, p->chunks);
}

void packed_chunks_advance(struct packed_chunks *p)
{
    struct engine *engine = p->space->x->engine;
    const int group = (int)(p->groups % GROUPS);
    if (p->space->engine_is_wanted || (p->groups >= GROUPS && p->left < p->end[group]) || !collect_group(p))
        return;
    if (p->chunks > 0)
        keep_first_error(&p->status, queue_group(p));
    keep_first_error(&p->status, engine->ops->event_record(engine, p->ready[group], STREAM_WORK));
    p->end[group] = p->queued;
    p->groups++;
}

/* ---- what is sent ------------------------------------------------------------------------------------------ */

/* The group of the chunk that is sent next, by number % GROUPS. */
static int group_of_next(const struct packed_chunks *p)
{
    int64_t group = p->groups - 1;
    while (group > 0 && p->groups - group < GROUPS && p->left < p->end[(group - 1) % GROUPS])
        group--;
    return (int)(group % GROUPS);
}

bool packed_chunks_ready(struct packed_chunks *p, const struct outgoing_chunk *chunk, size_t *bytes)
{
    struct engine *engine = p->space->x->engine;
    bool done = true;
    *bytes = chunk->bytes;
    if (p->left == p->queued)
        return false;
    if (p->plain[p->left % CHUNKS])
        return true;
    keep_first_error(&p->status, engine->ops->event_done(engine, p->ready[group_of_next(p)], &done));
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
