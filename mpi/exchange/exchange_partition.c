/* The exchange before the sort, for ranks that all map each other's memory: every key goes to a region of the
 * key space first, in no order; then each rank fetches the regions that are its own, and sorts those. One
 * merge less than the exchanges of sorted runs, and the link is busy while the kernels are: a few regions at
 * a time.
 *
 *     rank 0   9 2 6 c 1 5    --partition-->   2 1 | 6 5 | 9 | c          regions: 0-3 4-7 8-b c-f
 *     rank 1   b 3 e 0 8 7                     3 0 | 7 | b 8 | e
 *                                              region 0 and 1     for rank 0, with 2 1 3 0 | 6 5 7 of both
 *                                              region 2 and 3     for rank 1,      9 b 8 | c e
 *
 * A rank is to hold the keys of certain global positions, however regions fall: a region across a boundary is
 * sorted by all ranks that want keys of it, and each takes its own part. Here rank 0 wants positions 0 to 5,
 * and region 1 is 4 to 6:
 *
 *     rank 0   0 1 2 3 | 4 .. 5 of (5 6 7)          rank 1   6 of (5 6 7) | 8 9 b | c e
 *
 * So the counts are exact, and equal keys need no order: there is nothing else to tell them by.
 *
 * A value that has a large part of the keys has a region of its own (engine.h). Its keys are counted, but stay:
 * each rank writes the value as often as it wants it. Here 7 is one; only 3 and 9 travel:
 *
 *     rank 0   9 7 7 2 7    --partition-->   2 | 9     in all  2, 6 and 2 keys     positions 0 to 4   2 3 | 7 7 7
 *     rank 1   7 3 7 7 8                     3 | 8     begin   0, 2 and 8          positions 5 to 9   7 7 7 | 8 9
 *
 * On each rank, batches of some regions; two slots for what is fetched:
 *
 *     STREAM_IN      fetch 0 -> A    fetch 1 -> B    fetch 2 -> A ...        fetch 2 once batch 0 is sorted
 *     STREAM_WORK                    sort 0          sort 1                  own pieces from x->scratch, the others from the slot
 *     STREAM_OUT                                     batch 0 to the host       if the caller wants it there
 *
 * What moves lies without gaps, also around a region of one value: a batch is one copy from each peer.
 *
 * It is not for every input. Where a region of several values has more keys than a batch takes, or all shards are
 * in order, nothing has been moved yet but into the scratch buffer, and the caller goes another way. */
#include "mpi/exchange/exchange_partition.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/first_error.h"
#include "kernels/base/key_width.h"

enum {
    SLOTS = 2,                // for what a batch fetches
    BATCH_SHARE = 6,          // of the capacity, at most, is one batch
    BATCH_KEYS_MIN = 1 << 17, // that a batch may have at least
    FIRST_SHARE = 4,          // of the largest batch, at most, is the first: kernels begin soon
    GROWTH_SHARE = 4,  // of a batch, the next one may be larger: it is fetched while this one is sorted
    TOTAL_LOG_MAX = 44 // positions times the size of a sample take 63 bits
};

/* What ranks gather of each other: the keys of each region, and this. */
enum { FOUND_DESCENDS = ENGINE_REGIONS, FOUND_FAILED, FOUND };

struct partition_tables {
    uint64_t *sample;      /* [2^ENGINE_SAMPLE_LOG_MAX] codes by position: this rank's part, on rank 0 all */
    int *counts, *offsets; /* [size] words of the sample, by rank */
    int64_t *found;        /* [size * FOUND] what ranks gather of each other */
    int64_t *piece_at;     /* [size * (ENGINE_REGIONS + 1)]: pieces_of() */
    const void **peer_scratch; /* [size] what each peer shows of its scratch buffer, as it appears here */
    int first, end;            /* this rank's regions: [first, end) */
    int64_t region_at[ENGINE_REGIONS + 1]; /* global positions */
    bool is_one_value[ENGINE_REGIONS];     /* the keys of the region do not move */
    bool others_left;                      /* some batch has left more unsorted than could be settled */
    struct {
        struct engine_map map;
        int64_t is_made;
    } agreed; /* rank 0's */
    struct engine_piece pieces[ENGINE_PIECES_MAX];
    struct engine_event *fetched[SLOTS], *sorted[SLOTS];
};

/* Where the regions begin in a rank's scratch buffer. */
static int64_t *pieces_of(const struct exchange *x, int rank)
{
    return ((struct partition_tables *)x->tables)->piece_at + (size_t)rank * (ENGINE_REGIONS + 1);
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Consecutive regions that are sorted together. One of one value may be cut anywhere. */
struct batch {
    int first, last, pieces;  /* the regions; of all of them */
    int64_t begin, end;       /* global positions of its keys */
    int64_t fetched, scratch; /* keys that come from peers; that sort_regions() needs */
    bool whole;               /* this rank wants all of it */
};

/* ---- the tables ---------------------------------------------------------------------------------------- */

static void close_partition(void *tables, struct engine *engine)
{
    struct partition_tables *p = tables;
    if (!p)
        return;
    for (int slot = 0; slot < SLOTS; slot++) {
        engine->ops->event_destroy(engine, p->fetched[slot]);
        engine->ops->event_destroy(engine, p->sorted[slot]);
    }
    free(p->sample);
    free(p->counts);
    free(p->offsets);
    free(p->found);
    free(p->piece_at);
    free(p->peer_scratch);
    free(p);
}

static hsort_status open_partition(int size, struct engine *engine, void **tables)
{
    const size_t ranks = (size_t)size;
    struct partition_tables *p = *tables = calloc(1, sizeof *p);
    if (!p)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the regions of %d ranks", size);
    hsort_status status = HSORT_OK;
    p->sample = malloc(sizeof(key_code) << ENGINE_SAMPLE_LOG_MAX);
    p->counts = malloc(ranks * sizeof *p->counts);
    p->offsets = malloc(ranks * sizeof *p->offsets);
    p->found = malloc(ranks * FOUND * sizeof *p->found);
    p->piece_at = malloc(ranks * (ENGINE_REGIONS + 1) * sizeof *p->piece_at);
    p->peer_scratch = malloc(ranks * sizeof *p->peer_scratch);
    if (!p->sample || !p->counts || !p->offsets || !p->found || !p->piece_at || !p->peer_scratch)
        status = status_fail(HSORT_HOST_MEMORY, "no memory for the regions of %d ranks", size);
    for (int slot = 0; slot < SLOTS && status == HSORT_OK; slot++) {
        status = engine->ops->event_create(engine, &p->fetched[slot]);
        if (status == HSORT_OK)
            status = engine->ops->event_create(engine, &p->sorted[slot]);
    }
    if (status != HSORT_OK) {
        close_partition(p, engine);
        *tables = NULL;
    }
    return status;
}

/* ---- memory: workspace of the engine | scratch of a batch | slots | a region across a boundary --------- */

/* Keys of a batch at most; that it fetches, as most ranks have some of it themselves; and of its scratch. */
static int64_t batch_keys(int64_t capacity)
{
    return greater(capacity / BATCH_SHARE, BATCH_KEYS_MIN);
}

static int64_t slot_keys(int64_t capacity)
{
    return batch_keys(capacity) / 4 * 3;
}

static int64_t scratch_keys(int64_t capacity)
{
    return batch_keys(capacity) / 4 * 9;
}

static size_t work_bytes(const struct engine *engine, int key_bytes)
{
    return (engine->ops->partition->workspace(engine, key_bytes) + 255) / 256 * 256;
}

int64_t partition_memory_keys(int64_t capacity)
{
    return scratch_keys(capacity) + SLOTS * slot_keys(capacity) + batch_keys(capacity);
}

static size_t partition_memory(const struct engine *engine, int key_bytes, int64_t capacity)
{
    return work_bytes(engine, key_bytes) + (size_t)partition_memory_keys(capacity) * (size_t)key_bytes;
}

static char *scratch_of(const struct exchange *x)
{
    return (char *)x->memory + work_bytes(x->engine, x->key_bytes);
}

static char *batch_slot(const struct exchange *x, int slot)
{
    return scratch_of(x) + (scratch_keys(x->capacity) + slot * slot_keys(x->capacity)) * x->key_bytes;
}

static char *boundary_of(const struct exchange *x)
{
    return batch_slot(x, SLOTS);
}

/* ---- the plan: all ranks agree on what follows --------------------------------------------------------- */

/* The first key of a sample of 2^log keys out of `total` that lies at global position `at` or behind. */
static int64_t sample_from(int64_t at, int64_t total, int log)
{
    return ((at << log) + total - 1) / total;
}

/* Take a sample of all ranks' keys, and let rank 0 make a map of it: the same on every rank, or on none. Collective. */
static hsort_status agree_on_map(struct exchange *x)
{
    struct partition_tables *p = x->tables;
    const struct engine_partition_ops *ops = x->engine->ops->partition;
    const int rank = x->comm->rank, size = x->comm->size, words = key_words(x->key_bytes);
    const int64_t total = x->current_offset[size];
    int log = ENGINE_SAMPLE_LOG_MAX;
    while (total >> log == 0)
        log--;
    for (int r = 0; r < size; r++) {
        p->offsets[r] = words * (int)sample_from(x->current_offset[r], total, log);
        p->counts[r] = words * (int)sample_from(x->current_offset[r + 1], total, log) - p->offsets[r];
    }
    uint64_t *own = p->sample + p->offsets[rank], code[KEY_CODE_WORDS];
    hsort_status status = ops->sample(x->engine, x->key_bytes, x->raw, x->current_offset[rank], total, log,
                                      p->offsets[rank] / words, p->counts[rank] / words, x->memory, own);
    keep_first_error(
        &status, comm_check(MPI_Gatherv(rank == 0 ? MPI_IN_PLACE : own, p->counts[rank], MPI_UINT64_T,
                                        p->sample, p->counts, p->offsets, MPI_UINT64_T, 0, x->comm->world),
                            "MPI_Gatherv", true));
    memset(&p->agreed, 0, sizeof p->agreed);
    bool made = false;
    if (rank == 0 && status == HSORT_OK)
        status =
            ops->make_map(x->engine, x->key_bytes, p->sample, log, total, x->memory, &p->agreed.map, &made);
    p->agreed.is_made = made && status == HSORT_OK;
    keep_first_error(&status,
                     comm_check(MPI_Bcast(&p->agreed, (int)sizeof p->agreed, MPI_BYTE, 0, x->comm->world),
                                "MPI_Bcast", true));
    for (int region = 0; p->agreed.is_made && region < ENGINE_REGIONS; region++)
        p->is_one_value[region] = ops->region_value(x->engine, x->key_bytes, &p->agreed.map, region, code);
    return status;
}

/* Count this rank's keys, and learn of all others'. Collective. */
static hsort_status count_all(struct exchange *x, int64_t count, hsort_status status)
{
    struct partition_tables *p = x->tables;
    int64_t own[FOUND] = {0};
    bool ascends = false, descends = false;
    if (status == HSORT_OK)
        status = x->engine->ops->partition->count(x->engine, x->key_bytes, x->raw, count, &p->agreed.map,
                                                  x->memory, own, &ascends, &descends);
    own[FOUND_DESCENDS] = descends;
    own[FOUND_FAILED] = status != HSORT_OK;
    keep_first_error(&status, comm_check(MPI_Allgather(own, FOUND, MPI_INT64_T, p->found, FOUND, MPI_INT64_T,
                                                       x->comm->world),
                                         "MPI_Allgather", true));
    return status;
}

/* Fill in where regions begin. Can batches take them? The same answer on every rank. */
static bool regions_suit(struct exchange *x)
{
    struct partition_tables *p = x->tables;
    const int size = x->comm->size;
    bool descends = false, failed = false, large = false;
    for (int r = 0; r < size; r++) {
        const int64_t *found = p->found + (size_t)r * FOUND;
        int64_t *at = pieces_of(x, r);
        at[0] = 0;
        for (int region = 0; region < ENGINE_REGIONS; region++)
            at[region + 1] = at[region] + (p->is_one_value[region] ? 0 : found[region]);
        descends = descends || found[FOUND_DESCENDS];
        failed = failed || found[FOUND_FAILED];
    }
    p->region_at[0] = 0;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        int64_t keys = 0;
        for (int r = 0; r < size; r++)
            keys += p->found[(size_t)r * FOUND + (size_t)region];
        p->region_at[region + 1] = p->region_at[region] + keys;
        if (p->is_one_value[region])
            continue;
        for (int r = 0; r < size; r++)
            large = large || keys - p->found[(size_t)r * FOUND + (size_t)region] > slot_keys(x->capacity);
        large = large || keys > batch_keys(x->capacity) ||
                x->engine->ops->partition->region_scratch(x->engine, keys) > scratch_keys(x->capacity);
    }
    x->all_ascend = !descends && !failed;
    return descends && !failed && !large; // shards in order are sorted with no pass at all
}

/* ---- the batches --------------------------------------------------------------------------------------- */

/* Keys of batch `number` at most. To fetch a batch takes not much less than to sort one as large; were each
 * twice as large as the one before, the kernels would wait for it. */
static int64_t most_of_batch(int64_t capacity, int number)
{
    int64_t most = batch_keys(capacity) / FIRST_SHARE;
    for (; number > 0 && most < batch_keys(capacity); number--)
        most += most / GROWTH_SHARE;
    return lesser(most, batch_keys(capacity));
}

/* Batch `number`: the first keys of [from, until), the global positions that this rank still wants. A region of several values
 * that reaches beyond them is a batch alone. One of one value needs no room, but counts, so that what goes to the host at a time,
 * or may have to be sorted once more, stays within bounds. */
static struct batch next_batch(const struct exchange *x, int number, int64_t from, int64_t until)
{
    const struct partition_tables *p = x->tables;
    const int64_t *own_at = pieces_of(x, x->comm->rank);
    struct batch batch = {.whole = true};
    for (int region = p->first; region < p->end; region++) {
        const bool is_one = p->is_one_value[region], is_first = batch.pieces == 0;
        const int64_t room = most_of_batch(x->capacity, number) - (batch.end - batch.begin);
        int64_t begin = p->region_at[region], end = p->region_at[region + 1];
        if (begin == end || end <= from)
            continue;
        if (is_one) {
            begin = greater(begin, from);
            end = lesser(lesser(end, until), begin + room);
        }
        const int64_t keys = end - begin;
        const int64_t fetched = batch.fetched + (is_one ? 0 : keys - (own_at[region + 1] - own_at[region]));
        const int64_t scratch =
            batch.scratch + (is_one ? 0 : x->engine->ops->partition->region_scratch(x->engine, keys));
        const int pieces = batch.pieces + (is_one ? 1 : x->comm->size);
        const bool whole = begin >= from && end <= until;
        const bool fits = batch.whole && whole && 0 < keys && keys <= room &&
                          fetched <= slot_keys(x->capacity) && scratch <= scratch_keys(x->capacity) &&
                          pieces <= ENGINE_PIECES_MAX;
        if (!is_first && !fits)
            break;
        batch.first = is_first ? region : batch.first;
        batch.begin = is_first ? begin : batch.begin;
        batch.last = region, batch.end = end, batch.whole = whole;
        batch.fetched = fetched, batch.scratch = scratch, batch.pieces = pieces;
    }
    return batch;
}

/* Queue the copies of what a batch takes from the peers into its slot; from[step]: where what comes from the peer that is
 * `step` ranks behind this one then lies. */
static void fetch_batch(struct exchange *x, const struct batch *batch, char *slot, const char **from,
                        hsort_status *status)
{
    struct partition_tables *p = x->tables;
    const int rank = x->comm->rank, size = x->comm->size;
    const int64_t width = x->key_bytes;
    from[0] = (const char *)x->scratch + pieces_of(x, rank)[batch->first] * width;
    for (int step = 1; step < size; step++) { // each from another peer at first
        const int peer = (rank + step) % size;
        const int64_t *at = pieces_of(x, peer);
        const size_t bytes = (size_t)((at[batch->last + 1] - at[batch->first]) * width);
        const char *theirs = (const char *)p->peer_scratch[peer] + (at[batch->first] - at[p->first]) * width;
        if (bytes > 0)
            keep_first_error(status, x->engine->ops->copy(x->engine, STREAM_IN, slot, theirs, bytes));
        from[step] = slot;
        slot += bytes;
    }
}

/* List the pieces of a batch; from: as of fetch_batch(). Of one value there is one, of what the batch has of it. Returns their
 * number. */
static int list_pieces(struct exchange *x, const struct batch *batch, const char *const *from)
{
    struct partition_tables *p = x->tables;
    int count = 0;
    for (int region = batch->first; region <= batch->last; region++) {
        const int64_t begin = p->region_at[region], end = p->region_at[region + 1];
        if (p->is_one_value[region] && begin < end)
            p->pieces[count++] = (struct engine_piece){
                .count = lesser(end, batch->end) - greater(begin, batch->begin), .region = region};
        for (int step = 0; step < x->comm->size && !p->is_one_value[region] && begin < end; step++) {
            const int64_t *at = pieces_of(x, (x->comm->rank + step) % x->comm->size);
            p->pieces[count++] =
                (struct engine_piece){.keys = from[step] + (at[region] - at[batch->first]) * x->key_bytes,
                                      .count = at[region + 1] - at[region],
                                      .region = region};
        }
    }
    return count;
}

/* Sort what the kernels have left in no order: piece by piece, or, if that is too much or `all` says so, all of keys [count].
 * *too_much: it was; what was left elsewhere is then forgotten. The engine's scratch is not in use. */
static hsort_status sort_rest(struct exchange *x, const struct raw_keys *raw, void *keys, int64_t count,
                              bool all, bool *too_much)
{
    const struct engine_ops *ops = x->engine->ops;
    const struct raw_keys again = {.map = raw->map, .from = keys, .decode = true};
    const int64_t scratch = scratch_keys(x->capacity);
    void *sorted = keys;
    *too_much = false;
    hsort_status status = ops->partition->settle_regions(
        x->engine, x->key_bytes, raw, x->memory, scratch_of(x), (size_t)(scratch * x->key_bytes), too_much);
    if (status == HSORT_OK && (all || *too_much))
        status = ops->sort(x->engine, -1, x->key_bytes, keys, count <= scratch ? scratch_of(x) : x->scratch,
                           count <= scratch ? scratch : x->capacity, count, x->workspace, &again, &sorted);
    keep_first_error(&status, ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}

/* Queue one batch. wanted [2]: this rank's global positions. */
static void queue_batch(struct exchange *x, const struct batch *batch, int number, const struct raw_keys *raw,
                        const int64_t *wanted, hsort_status *status)
{
    struct partition_tables *p = x->tables;
    struct engine *engine = x->engine;
    const int slot = number % SLOTS;
    const int64_t width = x->key_bytes, begin = batch->begin;
    const char *from[PARTITION_RANKS_MAX];
    if (number >= SLOTS)
        keep_first_error(status, engine->ops->stream_wait_event(engine, STREAM_IN, p->sorted[slot]));
    fetch_batch(x, batch, batch_slot(x, slot), from, status);
    keep_first_error(status, engine->ops->event_record(engine, p->fetched[slot], STREAM_IN));
    keep_first_error(status, engine->ops->stream_wait_event(engine, STREAM_WORK, p->fetched[slot]));
    char *out = batch->whole ? (char *)x->keys + (begin - wanted[0]) * width : boundary_of(x);
    keep_first_error(status, engine->ops->partition->sort_regions(engine, x->key_bytes, &p->agreed.map,
                                                                  p->pieces, list_pieces(x, batch, from), raw,
                                                                  x->memory, scratch_of(x), out));
    if (!batch->whole || x->host_out) { // what is taken from it must be in order
        bool too_much;
        keep_first_error(status, sort_rest(x, raw, out, batch->end - begin, false, &too_much));
        p->others_left = p->others_left || (too_much && !x->host_out); // of the batches before
    }
    if (!batch->whole) {
        const int64_t first = greater(begin, wanted[0]), end = lesser(batch->end, wanted[1]);
        keep_first_error(status,
                         engine->ops->copy(engine, STREAM_WORK, (char *)x->keys + (first - wanted[0]) * width,
                                           out + (first - begin) * width, (size_t)((end - first) * width)));
    }
    keep_first_error(status, engine->ops->event_record(engine, p->sorted[slot], STREAM_WORK));
}

/* Queue the copy of bytes of this rank's part to the host, once they are sorted. */
static void copy_out(struct exchange *x, int64_t at, int64_t bytes, struct engine_event *sorted,
                     hsort_status *status)
{
    keep_first_error(status, x->engine->ops->stream_wait_event(x->engine, STREAM_OUT, sorted));
    keep_first_error(status, x->engine->ops->copy(x->engine, STREAM_OUT, (char *)x->host_out + at,
                                                  (char *)x->keys + at, (size_t)bytes));
}

/* Fetch and sort this rank's regions. The peers' scratch buffers are exposed. */
static hsort_status sort_batches(struct exchange *x, const struct raw_keys *raw, const int64_t *wanted)
{
    struct partition_tables *p = x->tables;
    hsort_status status = HSORT_OK;
    int64_t from = wanted[0];
    p->others_left = false;
    for (int number = 0; status == HSORT_OK && from < wanted[1]; number++) {
        const struct batch batch = next_batch(x, number, from, wanted[1]);
        const int64_t until = lesser(batch.end, wanted[1]);
        queue_batch(x, &batch, number, raw, wanted, &status);
        if (x->host_out)
            copy_out(x, (from - wanted[0]) * x->key_bytes, (until - from) * x->key_bytes,
                     p->sorted[number % SLOTS], &status);
        from = until;
    }
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, (enum engine_stream)stream));
    return status;
}

/* ---- the exchange -------------------------------------------------------------------------------------- */

/* The regions [*first, *end) that `rank` wants keys of, by the global positions it is to hold. */
static void regions_of(const struct partition_tables *p, const int64_t *target_offset, int rank, int *first,
                       int *end)
{
    *first = 0;
    while (*first < ENGINE_REGIONS && p->region_at[*first + 1] <= target_offset[rank])
        ++*first;
    *end = *first;
    while (*end < ENGINE_REGIONS && target_offset[rank] < target_offset[rank + 1] &&
           p->region_at[*end] < target_offset[rank + 1])
        ++*end;
}

/* Expose to each peer its part of this rank's scratch buffer, and get what it shows in return. Ranks go through their peers in
 * ascending order, so that none waits for one that waits for it. *all: every pair of ranks could, and no rank has failed; the
 * same on every rank. `status` is this rank's, and comes back with what happens here. Collective. */
static hsort_status expose_regions(struct exchange *x, hsort_status status, bool *all)
{
    struct partition_tables *p = x->tables;
    const int64_t *at = pieces_of(x, x->comm->rank), width = x->key_bytes;
    int64_t each = status == HSORT_OK, any, exposed = 0;
    for (int peer = 0; peer < x->comm->size; peer++) {
        int first, end;
        if (peer == x->comm->rank)
            continue;
        regions_of(p, x->target_offset, peer, &first, &end);
        const int64_t bytes = (at[end] - at[first]) * width;
        keep_first_error(&status,
                         x->transport->ops->expose(x->transport, peer, (char *)x->scratch + at[first] * width,
                                                   (size_t)bytes, &p->peer_scratch[peer]));
        exposed += p->peer_scratch[peer] ? bytes : 0;
        each = each && p->peer_scratch[peer];
    }
    regions_of(p, x->target_offset, x->comm->rank, &p->first, &p->end);
    const hsort_status agreed = comm_range(x->comm, each && status == HSORT_OK, &each, &any);
    keep_first_error(&status, agreed);
    *all = agreed == HSORT_OK && each;
    if (*all)
        x->moved_bytes += exposed;
    else // nobody reads any of it
        x->transport->traffic.bytes -= exposed;
    return status;
}

/* End what expose_regions() began with any peer: all have done their reading. Collective. */
static hsort_status conceal_regions(struct exchange *x)
{
    const struct partition_tables *p = x->tables;
    hsort_status status = HSORT_OK;
    for (int peer = 0; peer < x->comm->size; peer++)
        if (peer != x->comm->rank && p->peer_scratch[peer])
            keep_first_error(&status, x->transport->ops->conceal(x->transport, peer));
    return status;
}

/* Ranks to which some of this rank's keys have gone, or from which some have come. */
static int region_partners(const struct exchange *x)
{
    const struct partition_tables *p = x->tables;
    const int64_t *own = pieces_of(x, x->comm->rank);
    int partners = 0;
    for (int peer = 0; peer < x->comm->size; peer++) {
        const int64_t *theirs = pieces_of(x, peer);
        int first, end;
        regions_of(p, x->target_offset, peer, &first, &end);
        partners += peer != x->comm->rank && (own[end] > own[first] || theirs[p->end] > theirs[p->first]);
    }
    return partners;
}

/* Is every pair of ranks mapped, and can the engine do it? */
static bool can_partition(const struct comm *comm, const struct engine *engine,
                          const struct transport *transport)
{
    bool can = engine->ops->partition && comm->size <= PARTITION_RANKS_MAX;
    for (int peer = 0; peer < comm->size && can; peer++)
        can = peer == comm->rank || transport_path(transport, peer) == HSORT_TRANSPORT_IPC;
    return can;
}

/* For smaller shards its steps take longer than what it saves. A rank that is alone has nothing to exchange. */
static bool partition_pays(hsort_engine engine, int size, int64_t keys, int key_bytes)
{
    const double bytes_min = 384 << 20;
    (void)engine;
    return size > 1 && (double)keys * key_bytes >= bytes_min;
}

/* Scatter this rank's keys into regions, fetch and sort those that are its own. *done as of exchange_ops.run().  Collective. */
static hsort_status move_regions(struct exchange *x, int64_t count, double began, bool *done)
{
    struct partition_tables *p = x->tables;
    const struct raw_keys decoding = {.map = x->raw->map, .from = x->raw->from, .decode = true};
    const int64_t *wanted = x->target_offset + x->comm->rank;
    bool all, too_much;
    hsort_status status = x->engine->ops->partition->scatter(x->engine, x->key_bytes, x->raw, count,
                                                             &p->agreed.map, x->memory, x->scratch);
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    x->local_seconds = MPI_Wtime() - began;
    status = expose_regions(x, status, &all);
    if (all && status == HSORT_OK)
        keep_first_error(&status, sort_batches(x, &decoding, wanted));
    keep_first_error(&status, conceal_regions(x));
    if (!all)
        return status;
    keep_first_error(&status,
                     sort_rest(x, &decoding, x->keys, wanted[1] - wanted[0], p->others_left, &too_much));
    x->rounds_moved += region_partners(x);
    x->count = wanted[1] - wanted[0];
    if (x->progress)
        x->progress(x->progress_user, 1, 1);
    *done = true;
    return status;
}

static hsort_status run_partition(struct exchange *x, bool *done)
{
    const struct partition_tables *p = x->tables;
    const int64_t *held = x->current_offset + x->comm->rank, count = held[1] - held[0],
                  total = x->current_offset[x->comm->size];
    const double began = MPI_Wtime();
    *done = x->all_ascend = false;
    if (total >> ENGINE_SAMPLE_LOG_MIN == 0 || total >> TOTAL_LOG_MAX != 0)
        return HSORT_OK;
    hsort_status status = agree_on_map(x);
    x->local_seconds = MPI_Wtime() - began;
    if (!p->agreed.is_made)
        return status;
    status = count_all(x, count, status);
    if (!regions_suit(x))
        return status;
    keep_first_error(&status, move_regions(x, count, began, done));
    return status;
}

const struct exchange_ops exchange_partition = {.kind = HSORT_EXCHANGE_PARTITION,
                                                .input = EXCHANGE_TAKES_RAW,
                                                .takes_any_target = true,
                                                .can = can_partition,
                                                .pays = partition_pays,
                                                .open = open_partition,
                                                .close = close_partition,
                                                .memory_bytes = partition_memory,
                                                .run = run_partition};
