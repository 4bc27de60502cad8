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
 * On each rank, batches of some regions; two slots for what is fetched:
 *
 *     STREAM_IN      fetch 0 -> A    fetch 1 -> B    fetch 2 -> A ...        fetch 2 once batch 0 is sorted
 *     STREAM_WORK                    sort 0          sort 1                  own pieces from x->scratch, the others from the slot
 *     STREAM_OUT                                     batch 0 to the host       if the caller wants it there
 *
 * It is not for every input. Where values repeat so much that there can be no regions of about one size, they
 * are counted instead (exchange_counted.c). Where a region has more keys than a batch takes, as values crowd,
 * or all shards are in order, nothing has been moved yet but into the scratch buffer, and the caller goes
 * another way. */
#include "mpi/exchange/exchange_partition.h"
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_SHARE = 6,          // of the capacity, at most, is one batch
    BATCH_KEYS_MIN = 1 << 17, // that a batch may have at least
    FIRST_SHARE =
        4, // of the largest batch, at most, is the first one, so that the kernels have something to do soon
    GROWTH_SHARE = 4,  // of a batch, the next one may be larger: it is fetched while this one is sorted
    TOTAL_LOG_MAX = 44 // positions times the size of a sample take 63 bits
};

/* Consecutive regions that are sorted together. */
struct batch {
    int first, last;       /* the regions */
    int64_t keys, scratch; /* of all ranks; that sort_regions() needs */
    bool whole;            /* this rank wants all of their keys */
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
    p->sample = malloc(sizeof *p->sample << ENGINE_SAMPLE_LOG_MAX);
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

/* Keys of a batch at most; that it fetches, as most ranks have some of it themselves; and of scratch for it.
 * */
static int64_t batch_keys(int64_t capacity)
{
    return capacity / BATCH_SHARE > BATCH_KEYS_MIN ? capacity / BATCH_SHARE : BATCH_KEYS_MIN;
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

/* Does the sample, gathered on rank 0, fall somewhere inside some rank's part? If not the shards may be in
 * order as they came, and what is found out of them then is faster than any sort. */
static bool sample_descends(const struct exchange *x)
{
    const struct partition_tables *p = x->tables;
    for (int r = 0; r < x->comm->size; r++) {
        const uint64_t *part = p->sample + p->offsets[r];
        for (int i = 1; i < p->counts[r]; i++) {
            if (part[i] < part[i - 1])
                return true;
        }
    }
    return false;
}

/* Take a sample of 2^log keys of all ranks, and let rank 0 make a map of it; the same verdict on every rank.  Collective. */
static hsort_status try_map(struct exchange *x, int log, enum engine_map_verdict *verdict)
{
    struct partition_tables *p = x->tables;
    const int rank = x->comm->rank, size = x->comm->size;
    const int64_t total = x->current_offset[size];
    for (int r = 0; r < size; r++) {
        p->offsets[r] = (int)sample_from(x->current_offset[r], total, log);
        p->counts[r] = (int)sample_from(x->current_offset[r + 1], total, log) - p->offsets[r];
    }
    uint64_t *own = p->sample + p->offsets[rank];
    hsort_status status =
        x->engine->ops->partition->sample(x->engine, x->key_bytes, x->raw, x->current_offset[rank], total,
                                          log, p->offsets[rank], p->counts[rank], x->memory, own);
    keep_first_error(
        &status, comm_check(MPI_Gatherv(rank == 0 ? MPI_IN_PLACE : own, p->counts[rank], MPI_UINT64_T,
                                        p->sample, p->counts, p->offsets, MPI_UINT64_T, 0, x->comm->world),
                            "MPI_Gatherv", true));
    int word = ENGINE_MAP_REFUSED;
    if (rank == 0 && status == HSORT_OK) {
        enum engine_map_verdict found = ENGINE_MAP_REFUSED;
        keep_first_error(&status, x->engine->ops->partition->make_map(x->engine, x->key_bytes, p->sample, log,
                                                                      total, x->memory, &p->map, &found));
        const bool in_order = found == ENGINE_MAP_REPEATS && !sample_descends(x);
        word = status == HSORT_OK && !in_order ? (int)found : ENGINE_MAP_REFUSED;
    }
    keep_first_error(&status, comm_check(MPI_Bcast(&word, 1, MPI_INT, 0, x->comm->world), "MPI_Bcast", true));
    *verdict = (enum engine_map_verdict)word;
    return status;
}

/* Make a map, the same on every rank, if the verdict is MADE or REPEATS. The same verdict on every rank. Collective. */
static hsort_status agree_on_map(struct exchange *x, enum engine_map_verdict *verdict)
{
    struct partition_tables *p = x->tables;
    int log = ENGINE_SAMPLE_LOG_MAX;
    memset(&p->map, 0, sizeof p->map);
    while (x->current_offset[x->comm->size] >> log == 0)
        log--;
    hsort_status status = try_map(x, log, verdict);
    if (*verdict != ENGINE_MAP_REFUSED)
        keep_first_error(&status,
                         comm_check(MPI_Bcast(&p->map, (int)sizeof p->map, MPI_BYTE, 0, x->comm->world),
                                    "MPI_Bcast", true));
    return status;
}

/* Count this rank's keys, and learn of all others'. Collective. */
static hsort_status count_all(struct exchange *x, int64_t count, hsort_status status)
{
    struct partition_tables *p = x->tables;
    int64_t own[FOUND] = {0};
    bool ascends = false, descends = false;
    if (status == HSORT_OK)
        status = x->engine->ops->partition->count(x->engine, x->key_bytes, x->raw, count, &p->map, x->memory,
                                                  own, &ascends, &descends);
    own[FOUND_DESCENDS] = descends;
    own[FOUND_FAILED] = status != HSORT_OK;
    keep_first_error(&status, comm_check(MPI_Allgather(own, FOUND, MPI_INT64_T, p->found, FOUND, MPI_INT64_T,
                                                       x->comm->world),
                                         "MPI_Allgather", true));
    return status;
}

/* Fill in where regions begin. Are they such that batches can take them? The same answer on every rank. Pure.
 * */
static bool regions_suit(struct exchange *x)
{
    struct partition_tables *p = x->tables;
    const int size = x->comm->size;
    bool descends = false, failed = false, large = false;
    for (int r = 0; r < size; r++) {
        const int64_t *found = p->found + (size_t)r * FOUND;
        int64_t *at = p->piece_at + (size_t)r * (ENGINE_REGIONS + 1);
        at[0] = 0;
        for (int region = 0; region < ENGINE_REGIONS; region++)
            at[region + 1] = at[region] + found[region];
        descends = descends || found[FOUND_DESCENDS];
        failed = failed || found[FOUND_FAILED];
    }
    p->region_at[0] = 0;
    for (int region = 0; region < ENGINE_REGIONS; region++) {
        int64_t keys = 0;
        for (int r = 0; r < size; r++)
            keys += p->found[(size_t)r * FOUND + (size_t)region];
        p->region_at[region + 1] = p->region_at[region] + keys;
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
    return most < batch_keys(capacity) ? most : batch_keys(capacity);
}

/* The next batch from region `first` on, or one without keys at the end. wanted [2]: this rank's global
 * positions. */
static struct batch next_batch(const struct exchange *x, int first, int number, const int64_t *wanted)
{
    const struct partition_tables *p = x->tables;
    const int64_t most = most_of_batch(x->capacity, number);
    const int64_t *own_at = p->piece_at + (size_t)x->comm->rank * (ENGINE_REGIONS + 1);
    struct batch batch = {.first = first, .last = first - 1, .whole = true};
    int64_t fetched = 0;
    for (int region = first; region < p->end; region++) {
        const int64_t begin = p->region_at[region], end = p->region_at[region + 1];
        const int64_t scratch = x->engine->ops->partition->region_scratch(x->engine, end - begin);
        const bool whole = begin >= wanted[0] && end <= wanted[1];
        if (batch.keys == 0 && end == begin) {
            batch.first = region + 1;
            batch.last = region;
            continue;
        }
        const int64_t comes = end - begin - (own_at[region + 1] - own_at[region]);
        const bool fits = batch.whole && whole && batch.keys + end - begin <= most &&
                          fetched + comes <= slot_keys(x->capacity) &&
                          batch.scratch + scratch <= scratch_keys(x->capacity) &&
                          (region - batch.first + 1) * x->comm->size <= ENGINE_PIECES_MAX;
        if (batch.keys > 0 && !fits)
            break;
        batch.last = region;
        batch.keys += end - begin;
        batch.scratch += scratch;
        fetched += comes;
        batch.whole = whole;
    }
    return batch;
}

/* Queue the copies of a batch's pieces from the peers into its slot, and list all pieces. Returns their
 * number. */
static int fetch_batch(struct exchange *x, const struct batch *batch, char *slot, hsort_status *status)
{
    struct partition_tables *p = x->tables;
    const int rank = x->comm->rank, size = x->comm->size, regions = batch->last - batch->first + 1;
    const int64_t width = x->key_bytes;
    char *next = slot;
    for (int step = 0; step < size; step++) { // each from another peer at first
        const int peer = (rank + step) % size;
        const int64_t *at = p->piece_at + (size_t)peer * (ENGINE_REGIONS + 1);
        const size_t bytes = (size_t)((at[batch->last + 1] - at[batch->first]) * width);
        const char *from =
            step == 0 ? (const char *)x->scratch + at[batch->first] * width
                      : (const char *)p->peer_scratch[peer] + (at[batch->first] - at[p->first]) * width;
        if (step > 0 && bytes > 0)
            keep_first_error(status, x->engine->ops->copy(x->engine, STREAM_IN, next, from, bytes));
        for (int i = 0; i < regions; i++)
            p->pieces[i * size + step] = (struct engine_piece){
                .keys = (step == 0 ? from : next) + (at[batch->first + i] - at[batch->first]) * width,
                .count = at[batch->first + i + 1] - at[batch->first + i],
                .region = batch->first + i};
        next += step == 0 ? 0 : bytes;
    }
    return regions * size;
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

/* Queue one batch. */
static void queue_batch(struct exchange *x, const struct batch *batch, int number, const struct raw_keys *raw,
                        const int64_t *wanted, hsort_status *status)
{
    struct partition_tables *p = x->tables;
    struct engine *engine = x->engine;
    const int slot = number % SLOTS;
    const int64_t width = x->key_bytes, begin = p->region_at[batch->first];
    if (number >= SLOTS)
        keep_first_error(status, engine->ops->stream_wait_event(engine, STREAM_IN, p->sorted[slot]));
    const int pieces = fetch_batch(x, batch, batch_slot(x, slot), status);
    keep_first_error(status, engine->ops->event_record(engine, p->fetched[slot], STREAM_IN));
    keep_first_error(status, engine->ops->stream_wait_event(engine, STREAM_WORK, p->fetched[slot]));
    char *out = batch->whole ? (char *)x->keys + (begin - wanted[0]) * width : boundary_of(x);
    keep_first_error(status,
                     engine->ops->partition->sort_regions(engine, x->key_bytes, &p->map, p->pieces, pieces,
                                                          raw, x->memory, scratch_of(x), out));
    if (!batch->whole || x->host_out) { // what is taken from it must be in order
        bool too_much;
        keep_first_error(status, sort_rest(x, raw, out, batch->keys, false, &too_much));
        p->others_left = p->others_left || (too_much && !x->host_out); // of the batches before
    }
    if (!batch->whole) {
        const int64_t from = begin > wanted[0] ? begin : wanted[0];
        const int64_t end = begin + batch->keys < wanted[1] ? begin + batch->keys : wanted[1];
        keep_first_error(status,
                         engine->ops->copy(engine, STREAM_WORK, (char *)x->keys + (from - wanted[0]) * width,
                                           out + (from - begin) * width, (size_t)((end - from) * width)));
    }
    keep_first_error(status, engine->ops->event_record(engine, p->sorted[slot], STREAM_WORK));
}

hsort_status partition_copy_out(struct exchange *x, int64_t from, int64_t until, struct engine_event *written)
{
    const int64_t at = from * x->key_bytes, bytes = (until - from) * x->key_bytes;
    if (!x->host_out)
        return HSORT_OK;
    hsort_status status = x->engine->ops->stream_wait_event(x->engine, STREAM_OUT, written);
    keep_first_error(&status, x->engine->ops->copy(x->engine, STREAM_OUT, (char *)x->host_out + at,
                                                   (char *)x->keys + at, (size_t)bytes));
    return status;
}

/* Copy what a batch has sorted to the host, if it is wanted there. */
static hsort_status copy_batch_out(struct exchange *x, const struct batch *batch, int number,
                                   const int64_t *wanted)
{
    const int64_t first = partition_of(x)->region_at[batch->first];
    const int64_t begin = first > wanted[0] ? first : wanted[0];
    const int64_t end = first + batch->keys < wanted[1] ? first + batch->keys : wanted[1];
    return partition_copy_out(x, begin - wanted[0], end - wanted[0], partition_of(x)->sorted[number % SLOTS]);
}

/* Fetch and sort this rank's regions. The peers' scratch buffers are exposed. */
static hsort_status sort_batches(struct exchange *x, const struct raw_keys *raw, const int64_t *wanted)
{
    hsort_status status = HSORT_OK;
    int next = partition_of(x)->first;
    partition_of(x)->others_left = false;
    for (int number = 0; status == HSORT_OK; number++) {
        const struct batch batch = next_batch(x, next, number, wanted);
        if (batch.keys == 0)
            break;
        queue_batch(x, &batch, number, raw, wanted, &status);
        keep_first_error(&status, copy_batch_out(x, &batch, number, wanted));
        next = batch.last + 1;
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

hsort_status partition_expose(struct exchange *x, int peer, const void *memory, int64_t bytes)
{
    const void **theirs = &partition_of(x)->peer_scratch[peer];
    const hsort_status status = x->transport->ops->expose(x->transport, peer, memory, (size_t)bytes, theirs);
    partition_of(x)->exposed_bytes += *theirs ? bytes : 0;
    return status;
}

hsort_status partition_all_exposed(struct exchange *x, hsort_status status, bool *all)
{
    int64_t each = status == HSORT_OK, any;
    for (int peer = 0; peer < x->comm->size; peer++)
        each = each && (peer == x->comm->rank || partition_of(x)->peer_scratch[peer]);
    const hsort_status agreed = comm_range(x->comm, each, &each, &any);
    keep_first_error(&status, agreed);
    *all = agreed == HSORT_OK && each;
    if (*all)
        x->moved_bytes += partition_of(x)->exposed_bytes;
    else // nobody reads any of it
        x->transport->traffic.bytes -= partition_of(x)->exposed_bytes;
    partition_of(x)->exposed_bytes = 0;
    return status;
}

hsort_status partition_conceal(struct exchange *x)
{
    hsort_status status = HSORT_OK;
    for (int peer = 0; peer < x->comm->size; peer++) {
        if (peer != x->comm->rank && partition_of(x)->peer_scratch[peer])
            keep_first_error(&status, x->transport->ops->conceal(x->transport, peer));
    }
    return status;
}

/* Expose to each peer its part of this rank's scratch buffer. `status` and *all as for
 * partition_all_exposed(). Collective. */
static hsort_status expose_regions(struct exchange *x, hsort_status status, bool *all)
{
    struct partition_tables *p = x->tables;
    const int64_t *at = p->piece_at + (size_t)x->comm->rank * (ENGINE_REGIONS + 1), width = x->key_bytes;
    for (int peer = 0; peer < x->comm->size; peer++) {
        int first, end;
        if (peer == x->comm->rank)
            continue;
        regions_of(p, x->target_offset, peer, &first, &end);
        keep_first_error(&status, partition_expose(x, peer, (char *)x->scratch + at[first] * width,
                                                   (at[end] - at[first]) * width));
    }
    regions_of(p, x->target_offset, x->comm->rank, &p->first, &p->end);
    return partition_all_exposed(x, status, all);
}

/* Ranks to which some of this rank's keys have gone, or from which some have come. */
static int region_partners(const struct exchange *x)
{
    const struct partition_tables *p = x->tables;
    const int64_t *own = p->piece_at + (size_t)x->comm->rank * (ENGINE_REGIONS + 1);
    int partners = 0;
    for (int peer = 0; peer < x->comm->size; peer++) {
        const int64_t *theirs = p->piece_at + (size_t)peer * (ENGINE_REGIONS + 1);
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
    const double bytes = (double)keys * key_bytes, bytes_min = 384 << 20;
    (void)engine;
    return size > 1 && bytes >= bytes_min;
}

/* Scatter this rank's keys into regions, fetch and sort those that are its own. *done as of exchange_ops.run().  Collective. */
static hsort_status move_regions(struct exchange *x, int64_t count, double began, bool *done)
{
    const struct raw_keys decoding = {.map = x->raw->map, .from = x->raw->from, .decode = true};
    const int rank = x->comm->rank;
    const int64_t wanted[2] = {x->target_offset[rank], x->target_offset[rank + 1]};
    bool all, too_much;
    hsort_status status = x->engine->ops->partition->scatter(x->engine, x->key_bytes, x->raw, count,
                                                             &partition_of(x)->map, x->memory, x->scratch);
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    x->local_seconds = MPI_Wtime() - began;
    status = expose_regions(x, status, &all);
    if (all && status == HSORT_OK)
        keep_first_error(&status, sort_batches(x, &decoding, wanted));
    keep_first_error(&status, partition_conceal(x));
    if (!all)
        return status;
    keep_first_error(&status, sort_rest(x, &decoding, x->keys, wanted[1] - wanted[0],
                                        partition_of(x)->others_left, &too_much));
    x->rounds_moved += region_partners(x);
    x->count = wanted[1] - wanted[0];
    if (x->progress)
        x->progress(x->progress_user, 1, 1);
    *done = true;
    return status;
}

static hsort_status run_partition(struct exchange *x, bool *done)
{
    const int rank = x->comm->rank;
    const int64_t count = x->current_offset[rank + 1] - x->current_offset[rank],
                  total = x->current_offset[x->comm->size];
    const double began = MPI_Wtime();
    enum engine_map_verdict verdict;
    *done = x->all_ascend = false;
    if (total >> ENGINE_SAMPLE_LOG_MIN == 0 || total >> TOTAL_LOG_MAX != 0)
        return HSORT_OK;
    hsort_status status = agree_on_map(x, &verdict);
    x->local_seconds = MPI_Wtime() - began;
    if (verdict == ENGINE_MAP_REPEATS)
        status = exchange_counted(x, status, done);
    if (*done || verdict == ENGINE_MAP_REFUSED)
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
