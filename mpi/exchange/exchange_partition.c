/* The exchange before the sort: every key goes to a region of the key space first, in no order; then each rank
 * fetches the regions that are its own, and sorts them, a few regions at a time. That is one merge less than the
 * exchanges of sorted runs have, and the link is busy while the kernels are. batch_source.h says where regions come from.
 *
 *     rank 0   9 2 6 c 1 5    --partition-->   2 1 | 6 5 | 9 | c          regions: 0-3 4-7 8-b c-f
 *     rank 1   b 3 e 0 8 7                     3 0 | 7 | b 8 | e
 *     rank 0 wants six keys                    2 1 3 0 | 6 5 7            fetched, sorted, and the first six taken
 *
 * mpi/README.md ("Partition") goes on with the example: why counts are exact all the same, and what becomes of values that repeat.
 *
 * A rank has batches of some regions, and two slots for what is fetched:
 *
 *     STREAM_IN      fetch 0 -> A    fetch 1 -> B    fetch 2 -> A ...        fetch 2 once batch 0 is sorted
 *     STREAM_WORK                    sort 0          sort 1                  own pieces from x->scratch, the others from the slot
 *     STREAM_OUT                                     batch 0 to the host       if the caller wants it there
 *
 * A batch takes one chunk from each peer, with the gaps that regions may have behind them (engine_partition.h); regions of one value
 * leave no gap.
 *
 * This is not for every input. If a region of several values has more keys than a batch takes, or if all shards are
 * in order, nothing has been moved yet except into the scratch buffer, and the caller goes another way. It also does so if
 * positions are wanted and the kernels on some rank have left more codes than they can settle: some codes have become
 * positions already, and cannot be sorted. */
#include <stdlib.h>
#include "kernels/base/key_width.h"
#include "kernels/numbered_keys.h"
#include "mpi/exchange/batch_source.h"
#include "mpi/exchange/packed_paths.h"
#include "mpi/exchange/region_map.h"
#include "mpi/exchange/step_order.h"

/* What ranks gather from each other: the keys of each region, where regions begin and the last one ends, and the flags below. */
enum {
    FOUND_BEGINS = ENGINE_REGIONS,
    FOUND_DESCENDS = FOUND_BEGINS + ENGINE_REGIONS + 1,
    FOUND_MOVED, // its keys are in their regions
    FOUND_FAILED,
    FOUND
};

enum { SOURCES = 2 };

static const struct batch_source_ops *const sources[SOURCES] = {&mapped_source, &message_source};

struct partition_tables {
    struct region_map *map;
    int64_t *found; /* [size * FOUND] what ranks gather from each other */
    struct batch_plan *plan;
    struct batch_space space;
    void *source_tables[SOURCES];
    bool moved, all_moved; /* this rank's keys are in their regions; all ranks' are */
    bool others_left; /* some batch has left more unsorted than could be settled */
    struct engine_piece pieces[ENGINE_PIECES_MAX];
    struct engine_event *fetched[BATCH_SLOTS], *queued;
};

/* ---- the tables ---------------------------------------------------------------------------------------- */

static void close_partition(void *tables, struct engine *engine)
{
    struct partition_tables *p = tables;
    if (!p)
        return;
    for (int slot = 0; slot < BATCH_SLOTS; slot++) {
        engine->ops->event_destroy(engine, p->fetched[slot]);
        engine->ops->event_destroy(engine, p->space.sorted[slot]);
    }
    engine->ops->event_destroy(engine, p->queued);
    region_map_close(p->map);
    free(p->found);
    free(p->space.shown);
    free(p->space.chunk);
    batch_plan_close(p->plan);
    for (int i = 0; i < SOURCES; i++)
        sources[i]->close(p->source_tables[i], engine);
    free(p);
}

static hsort_status make_tables(struct partition_tables *p, int size, struct engine *engine)
{
    const size_t ranks = (size_t)size;
    p->found = malloc(ranks * FOUND * sizeof *p->found);
    p->space.shown = calloc(ranks, sizeof *p->space.shown);
    p->space.chunk = calloc(ranks, sizeof *p->space.chunk);
    if (!p->found || !p->space.shown || !p->space.chunk)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the regions of %d ranks", size);
    TRY(region_map_open(size, &p->map));
    TRY(batch_plan_open(size, &p->plan));
    p->space.plan = p->plan;
    for (int i = 0; i < SOURCES; i++)
        TRY(sources[i]->open(size, engine, &p->source_tables[i]));
    TRY(engine->ops->event_create(engine, &p->queued));
    for (int slot = 0; slot < BATCH_SLOTS; slot++) {
        TRY(engine->ops->event_create(engine, &p->fetched[slot]));
        TRY(engine->ops->event_create(engine, &p->space.sorted[slot]));
    }
    return HSORT_OK;
}

static hsort_status open_partition(int size, struct engine *engine, void **tables)
{
    struct partition_tables *p = *tables = calloc(1, sizeof *p);
    if (!p)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the regions of %d ranks", size);
    const hsort_status status = make_tables(p, size, engine);
    if (status != HSORT_OK) {
        close_partition(p, engine);
        *tables = NULL;
    }
    return status;
}

/* ---- memory: workspace of the engine | scratch of a batch | slots | a region across a boundary | unpacked chunks ---- */

int64_t partition_memory_keys(int size, bool packs, int64_t capacity)
{
    return batch_scratch_keys(size, capacity) + (BATCH_SLOTS + packs) * batch_slot_keys(size, capacity) +
           batch_keys_most(size, capacity);
}

static size_t partition_memory(const struct engine *engine, const struct comm *comm,
                               const struct transport *transport, int key_bytes, int64_t capacity)
{
    const bool packs = any_path_packs(comm, engine, transport);
    return region_map_workspace(engine, key_bytes) +
           (size_t)partition_memory_keys(comm->size, packs, capacity) * (size_t)key_bytes;
}

static int64_t spare_keys(const struct engine *engine, const struct comm *comm,
                          const struct transport *transport, int64_t capacity)
{
    return batch_spare_keys(any_path_packs(comm, engine, transport), capacity);
}

static char *scratch_of(const struct exchange *x)
{
    return (char *)x->memory + region_map_workspace(x->engine, x->key_bytes);
}

/* Lay out this memory for one sort. */
static void place_space(const struct exchange *x, struct batch_space *space)
{
    const int size = x->comm->size;
    const int64_t width = x->key_bytes, slot_bytes = batch_slot_keys(size, x->capacity) * width;
    space->scratch = scratch_of(x);
    char *slots = space->scratch + batch_scratch_keys(size, x->capacity) * width;
    for (int slot = 0; slot < BATCH_SLOTS; slot++)
        space->slot[slot] = slots + slot * slot_bytes;
    space->boundary = slots + BATCH_SLOTS * slot_bytes;
    space->unpacked = any_path_packs(x->comm, x->engine, x->transport)
                          ? space->boundary + batch_keys_most(size, x->capacity) * width
                          : NULL;
}

/* ---- the plan: all ranks agree on what follows --------------------------------------------------------- */

/* Log of the size of the sample; for small shards it is what the scratch has room for. The same on every rank. */
static int sample_log(const struct exchange *x)
{
    const size_t room = (size_t)(batch_scratch_keys(x->comm->size, x->capacity) * x->key_bytes);
    int log = region_map_log_most(x->comm->size);
    while (x->current_offset[x->comm->size] >> log == 0 ||
           x->engine->ops->partition->sample_scratch(x->engine, x->key_bytes, log) > room)
        log--;
    return log;
}

/* Make the map of regions; it is there on every rank, or on none. Collective. */
static hsort_status agree_on_map(struct exchange *x)
{
    struct partition_tables *p = x->tables;
    const hsort_status status =
        region_map_agree(p->map, x->comm, x->engine, x->key_bytes, x->raw, x->current_offset, sample_log(x),
                         false, x->memory, scratch_of(x));
    region_map_values(p->map, x->engine, x->key_bytes, p->plan->is_one_value);
    return status;
}

/* Find where regions begin that lie without gaps. Regions of one value lie nowhere. */
static void place_regions(const struct batch_plan *plan, const int64_t *counts, int64_t *begins)
{
    begins[0] = 0;
    for (int region = 0; region < ENGINE_REGIONS; region++)
        begins[region + 1] = begins[region] + (plan->is_one_value[region] ? 0 : counts[region]);
}

/* Count this rank's keys by region: own [FOUND]. If there is room for gaps, the keys go to their regions at once. */
static hsort_status find_own_regions(struct exchange *x, int64_t count, int64_t *own)
{
    struct partition_tables *p = x->tables;
    const struct engine_partition_ops *ops = x->engine->ops->partition;
    const struct engine_map *map = &p->map->agreed.map;
    enum engine_scattered done = SCATTER_NOTHING;
    bool descends = true;
    if (x->scratch_keys > x->capacity)
        TRY(ops->scatter_to_rooms(x->engine, x->key_bytes, x->raw, count, map, x->memory, x->scratch,
                                  x->scratch_keys, own, own + FOUND_BEGINS, &done));
    if (done == SCATTER_NOTHING)
        TRY(ops->count(x->engine, x->key_bytes, x->raw, count, map, x->memory, own, &descends));
    p->moved = done == SCATTER_MOVED;
    if (!p->moved)
        place_regions(p->plan, own, own + FOUND_BEGINS);
    own[FOUND_DESCENDS] = descends;
    own[FOUND_MOVED] = p->moved;
    return HSORT_OK;
}

/* Count this rank's keys, and learn of all others'. Collective. */
static hsort_status find_regions(struct exchange *x, int64_t count, hsort_status status)
{
    struct partition_tables *p = x->tables;
    int64_t own[FOUND] = {0};
    if (status == HSORT_OK)
        status = find_own_regions(x, count, own);
    own[FOUND_FAILED] = status != HSORT_OK;
    keep_first_error(&status, comm_check(MPI_Allgather(own, FOUND, MPI_INT64_T, p->found, FOUND, MPI_INT64_T,
                                                       x->comm->world),
                                         "MPI_Allgather", true));
    return status;
}

/* Plan all ranks' batches. Can the keys be sorted by them? The same answer on every rank. */
static bool plan_batches(struct exchange *x)
{
    struct partition_tables *p = x->tables;
    bool descends = false, failed = false;
    p->all_moved = true;
    for (int rank = 0; rank < x->comm->size; rank++) {
        const int64_t *found = p->found + (size_t)rank * FOUND;
        descends = descends || found[FOUND_DESCENDS];
        failed = failed || found[FOUND_FAILED];
        p->all_moved = p->all_moved && found[FOUND_MOVED];
    }
    x->all_ascend = !descends && !failed; // shards in order are sorted with no pass at all
    return descends && !failed &&
           batch_plan_regions(p->plan, x->engine, x->capacity, p->found, p->found + FOUND_BEGINS, FOUND) &&
           batch_plan_make(p->plan, x->engine, x->target_offset);
}

/* ---- the batches --------------------------------------------------------------------------------------- */

/* Note where a batch's chunks lie: the rank's own in the scratch buffer, the others in the slot, unless their source says otherwise. */
static void place_chunks(struct exchange *x, const struct batch *batch, int number)
{
    struct partition_tables *p = x->tables;
    const char *slot = p->space.slot[number % BATCH_SLOTS];
    for (int step = 0; step < x->comm->size; step++) {
        int64_t at;
        const int64_t keys = batch_chunk(p->plan, batch, step_source(x->comm, step), &at);
        p->space.chunk[step] = step == 0 ? (const char *)x->scratch + at * x->key_bytes : slot;
        slot += step == 0 ? 0 : keys * x->key_bytes;
    }
}

/* List the pieces of a batch that has been fetched. A region of one value has one piece, of as many keys as the batch has of it.
 * Returns the number of pieces. */
static int list_pieces(struct exchange *x, const struct batch *batch)
{
    struct partition_tables *p = x->tables;
    const struct batch_plan *plan = p->plan;
    int count = 0;
    for (int region = batch->first; region <= batch->last; region++) {
        const int64_t begin = plan->region_at[region], end = plan->region_at[region + 1];
        if (plan->is_one_value[region] && begin < end)
            p->pieces[count++] = (struct engine_piece){
                .count = lesser(end, batch->end) - greater(begin, batch->begin), .region = region};
        for (int step = 0; step < x->comm->size && !plan->is_one_value[region] && begin < end; step++) {
            const int64_t *at = batch_pieces_of(plan, step_source(x->comm, step));
            p->pieces[count++] = (struct engine_piece){
                .keys = p->space.chunk[step] + (at[region] - at[batch->first]) * x->key_bytes,
                .count = batch_keys_of(plan, step_source(x->comm, step), region),
                .region = region};
        }
    }
    return count;
}

/* Where this rank's part of the result goes. */
static char *result_of(const struct exchange *x)
{
    return wants_positions(x->raw) ? (char *)x->raw->positions : (char *)x->keys;
}

/* Sort what the kernels have left in no order: piece by piece, or, if that is too much or `all` says so, all of keys [count],
 * unless they are positions. *too_much: it was too much; what was left elsewhere is then forgotten. The engine's scratch is not in
 * use. */
static hsort_status sort_rest(struct exchange *x, const struct raw_keys *raw, void *keys, int64_t count,
                              bool all, bool *too_much)
{
    const struct engine_ops *ops = x->engine->ops;
    const struct raw_keys again = {.map = raw->map, .from = keys, .decode = true};
    const int64_t scratch = batch_scratch_keys(x->comm->size, x->capacity);
    void *sorted = keys;
    *too_much = false;
    hsort_status status = ops->partition->settle_regions(
        x->engine, x->key_bytes, raw, x->memory, scratch_of(x), (size_t)(scratch * x->key_bytes), too_much);
    if (status == HSORT_OK && (all || *too_much) && !wants_positions(raw))
        status =
            ops->sort(x->engine, x->rung, x->key_bytes, keys, count <= scratch ? scratch_of(x) : x->scratch,
                      count <= scratch ? scratch : x->capacity, count, x->workspace, &again, &sorted);
    keep_first_error(&status, ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}

static hsort_status advance_sources(struct batch_space *space)
{
    const struct partition_tables *p = space->x->tables;
    hsort_status status = HSORT_OK;
    for (int i = 0; i < SOURCES; i++)
        keep_first_error(&status, sources[i]->advance(p->source_tables[i]));
    return status;
}

/* Wait for the work that is queued, while messages go on. Meanwhile no more work is queued for messages, because the engine is wanted. */
static hsort_status advance_until_sorted(struct exchange *x)
{
    struct partition_tables *p = x->tables;
    bool done = false;
    hsort_status status = x->engine->ops->event_record(x->engine, p->queued, STREAM_WORK);
    p->space.engine_is_wanted = true;
    while (status == HSORT_OK && !done) {
        keep_first_error(&status, x->engine->ops->event_done(x->engine, p->queued, &done));
        keep_first_error(&status, advance_sources(&p->space));
    }
    p->space.engine_is_wanted = false;
    return status;
}

/* Queue the sort of a batch that has been fetched. wanted [2]: this rank's global positions. */
static hsort_status sort_batch(struct exchange *x, const struct batch *batch, int number,
                               const struct raw_keys *raw, const int64_t *wanted)
{
    struct partition_tables *p = x->tables;
    struct engine *engine = x->engine;
    const int slot = number % BATCH_SLOTS;
    const int64_t width = x->key_bytes, begin = batch->begin;
    hsort_status status = engine->ops->event_record(engine, p->fetched[slot], STREAM_IN);
    keep_first_error(&status, engine->ops->stream_wait_event(engine, STREAM_WORK, p->fetched[slot]));
    char *out = batch->whole ? result_of(x) + (begin - wanted[0]) * width : p->space.boundary;
    keep_first_error(&status, engine->ops->partition->sort_regions(engine, x->key_bytes, &p->map->agreed.map,
                                                                   p->pieces, list_pieces(x, batch), raw,
                                                                   x->memory, scratch_of(x), out));
    if (!batch->whole || x->host_out) { // what is taken from it must be in order
        bool too_much;
        if (status == HSORT_OK)
            status = advance_until_sorted(x);
        keep_first_error(&status, sort_rest(x, raw, out, batch->end - begin, false, &too_much));
        p->others_left = p->others_left || (too_much && !x->host_out); // what earlier batches left
    }
    if (!batch->whole) {
        const int64_t first = greater(begin, wanted[0]), end = lesser(batch->end, wanted[1]);
        keep_first_error(&status,
                         engine->ops->copy(engine, STREAM_WORK, result_of(x) + (first - wanted[0]) * width,
                                           out + (first - begin) * width, (size_t)((end - first) * width)));
    }
    keep_first_error(&status, engine->ops->event_record(engine, p->space.sorted[slot], STREAM_WORK));
    return status;
}

/* Queue the copy of a batch's keys to the host, once they are sorted. */
static hsort_status copy_out(struct exchange *x, const struct batch *batch, const int64_t *wanted,
                             struct engine_event *sorted)
{
    const int64_t first = greater(batch->begin, wanted[0]), end = lesser(batch->end, wanted[1]);
    const int64_t at = (first - wanted[0]) * x->key_bytes;
    hsort_status status = x->engine->ops->stream_wait_event(x->engine, STREAM_OUT, sorted);
    keep_first_error(&status,
                     x->engine->ops->copy(x->engine, STREAM_OUT, (char *)x->host_out + at,
                                          (char *)x->keys + at, (size_t)((end - first) * x->key_bytes)));
    return status;
}

/* Fetch and sort this rank's batches. A rank that has failed goes on fetching, because peers wait for it. */
static hsort_status sort_batches(struct exchange *x, const struct raw_keys *raw, const int64_t *wanted,
                                 hsort_status status)
{
    struct partition_tables *p = x->tables;
    struct batch_space *space = &p->space;
    for (int number = 0; number < batch_count(p->plan, x->comm->rank); number++) {
        const struct batch *batch = batch_of(p->plan, x->comm->rank, number);
        place_chunks(x, batch, number);
        for (int i = 0; i < SOURCES; i++)
            keep_first_error(&status, sources[i]->fetch(p->source_tables[i], number));
        if (status == HSORT_OK)
            status = sort_batch(x, batch, number, raw, wanted);
        if (status == HSORT_OK && x->host_out)
            status = copy_out(x, batch, wanted, space->sorted[number % BATCH_SLOTS]);
        space->queued = number + 1;
        space->failed = status != HSORT_OK;
    }
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, (enum engine_stream)stream));
    return status;
}

/* ---- the exchange -------------------------------------------------------------------------------------- */

/* Let keys change ranks, and sort those that come. No rank has failed before. *sorted: the keys of this rank are sorted. Collective.
 * Errors: this rank's own. */
static hsort_status fetch_and_sort(struct exchange *x, const struct raw_keys *raw, const int64_t *wanted,
                                   bool *sorted)
{
    struct partition_tables *p = x->tables;
    struct batch_space *space = &p->space;
    hsort_status status = HSORT_OK;
    bool too_much = false;
    space->x = x;
    space->advance = advance_sources;
    space->queued = 0;
    p->others_left = false;
    space->map = &p->map->agreed.map;
    place_space(x, space);
    for (int i = 0; i < SOURCES; i++)
        keep_first_error(&status, sources[i]->begin(space, p->source_tables[i]));
    space->failed = status != HSORT_OK;
    status = sort_batches(x, raw, wanted, status);
    for (int i = SOURCES - 1; i >= 0; i--) // a rank that waits for its readers is done with messages
        keep_first_error(&status, sources[i]->end(p->source_tables[i]));
    if (status == HSORT_OK)
        status = sort_rest(x, raw, x->keys, wanted[1] - wanted[0], p->others_left, &too_much);
    *sorted = !wants_positions(raw) || !(too_much || p->others_left);
    return status;
}

/* Ranks to which some of this rank's keys have gone, or from which some have come. */
static int region_partners(const struct exchange *x)
{
    const struct batch_plan *plan = ((struct partition_tables *)x->tables)->plan;
    const int rank = x->comm->rank;
    const int64_t *own = batch_pieces_of(plan, rank);
    int partners = 0;
    for (int peer = 0; peer < x->comm->size; peer++) {
        const int64_t *theirs = batch_pieces_of(plan, peer);
        partners += peer != rank && (own[plan->end[peer]] > own[plan->first[peer]] ||
                                     theirs[plan->end[rank]] > theirs[plan->first[rank]]);
    }
    return partners;
}

/* It can run between up to PARTITION_RANKS_MAX ranks, by whatever transport, if this rank's device can do it. */
static bool can_partition(const struct comm *comm, const struct engine *engine)
{
    return engine->ops->partition && engine->ops->partition->can(engine) && comm->size <= PARTITION_RANKS_MAX;
}

/* For smaller shards its steps take longer than what it saves. A rank that is alone has nothing to exchange. */
static bool partition_pays(hsort_engine engine, int size, bool packs, int64_t keys, int key_bytes)
{
    (void)packs;
    const double bytes_min = 384 << 20;
    return engine == HSORT_ENGINE_CUDA && size > 1 && (double)keys * key_bytes >= bytes_min;
}

/* How the codes that have come are stored in the end. */
static struct raw_keys stored_form(const struct exchange *x)
{
    struct raw_keys raw = *x->raw;
    if (is_numbered(&raw) && !wants_positions(&raw))
        raw = (struct raw_keys){.map = keymap_of_codes(x->key_bytes)};
    raw.decode = true;
    return raw;
}

/* Scatter this rank's keys into regions, if they are not there yet. */
static hsort_status scatter_counted(struct exchange *x, int64_t count)
{
    struct partition_tables *p = x->tables;
    if (p->moved)
        return HSORT_OK;
    TRY(x->engine->ops->partition->scatter(x->engine, x->key_bytes, x->raw, count, &p->map->agreed.map,
                                           x->memory, x->scratch));
    return x->engine->ops->stream_synchronize(x->engine, STREAM_WORK);
}

/* Scatter what is not yet in its region, then fetch and sort the regions that are this rank's own. *done as for exchange_ops.run().
 * Collective. */
static hsort_status move_regions(struct exchange *x, int64_t count, double began, bool *done)
{
    struct partition_tables *p = x->tables;
    const struct raw_keys stored = stored_form(x);
    const int64_t *wanted = x->target_offset + x->comm->rank;
    bool all = true, sorted;
    hsort_status status = scatter_counted(x, count), agreed = HSORT_OK;
    x->local_seconds = MPI_Wtime() - began;
    if (!p->all_moved)
        agreed = comm_all(x->comm, status == HSORT_OK, &all);
    if (agreed != HSORT_OK || !all)
        return status != HSORT_OK ? status : agreed;
    status = fetch_and_sort(x, &stored, wanted, &sorted);
    if (wants_positions(&stored))
        agreed = comm_all(x->comm, sorted, &all);
    if (agreed != HSORT_OK || !all)
        return status != HSORT_OK ? status : agreed;
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
    if (!region_map_suits(total))
        return HSORT_OK;
    hsort_status status = agree_on_map(x);
    x->local_seconds = MPI_Wtime() - began;
    if (!p->map->agreed.is_made)
        return status;
    status = find_regions(x, count, status);
    if (!plan_batches(x))
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
                                                .spare_keys = spare_keys,
                                                .run = run_partition};
