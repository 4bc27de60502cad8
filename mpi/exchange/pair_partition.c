#include "mpi/exchange/pair_partition.h"
#include <stdlib.h>
#include "kernels/base/first_error.h"
#include "mpi/exchange/column_messages.h"
#include "mpi/exchange/pair_plan.h"
#include "mpi/exchange/peer_reader.h"
#include "mpi/exchange/region_map.h"

enum {
    SAMPLE_LOG = ENGINE_SAMPLE_LOG_USUAL,
    EDGE_SHARE = 64,   /* of all pairs, those that a rank sorts apart are this part at most, */
    EDGE_LEAST = 4096, /* and so many more */
    BATCHES = 6, /* about, of a rank: of fewer the first comes later, with more skewed keys take longer */
    PARTS = 12   /* that elements come in */
};

/* What goes from rank to rank: the keys, and what belongs to them. */
enum { KEYS, BESIDE, COLUMNS };

/* What ranks gather of each other: the pairs of each region, and this. */
enum { FOUND_FAILED = ENGINE_REGIONS, FOUND };

/* The call under way. */
struct pair_sorter {
    const struct pair_partition *x;
    int rank, size;
    int64_t count, out_count;
    struct message_column columns[COLUMNS];
    struct engine_pair_regions main, edges; /* they share the first half */
    int64_t *index;                         /* [out_count] where the elements are, if there are such */
    struct region_map *map;
    struct pair_plan *plan;
    int64_t *found; /* [size * FOUND] */
    /* [size] what goes to, and comes from each peer: places in what its owner has split. */
    struct place_span *gives, *takes;
    struct place_span *sends, *receives; /* [size] the same of those peers with which it goes by message */
    size_t slot_bytes;                  /* for that; 0: nothing is packed */
    void *slot_memory;
    struct column_slots *slots;
    int64_t *comes_to;  /* [size] where in the first half what a peer gives begins */
    const void **shown; /* [size * COLUMNS] memory of peers; NULL: they send messages */
    struct peer_reader reader;
    struct peer_copy *copies;                      /* [size] of a column, that are not queued yet */
    struct engine_event *fetched, *parts[PARTS];   /* keys have come; parts of the elements */
    bool begun;                                    /* some regions of `main` are sorted */
    hsort_status status;
};

/* ---- memory -------------------------------------------------------------------------------------------- */

/* Pairs that a rank sorts apart, at most. */
static int64_t edge_pairs(const struct pair_partition *x)
{
    return x->in_offset[x->comm->size] / EDGE_SHARE + EDGE_LEAST;
}

/* An array of the memory from *at on, which is moved behind it. From NULL on, only to learn how many bytes there are. */
static void *take_part(char **at, int64_t count, size_t bytes)
{
    void *part = *at;
    *at += ((size_t)count * bytes + 255) / 256 * 256;
    return part;
}

/* Bytes of workspace to make a map, before the scratch of its sample. */
static size_t map_bytes(const struct engine *engine, int key_bytes)
{
    return (engine->ops->partition->workspace(engine, key_bytes) + 255) / 256 * 256;
}

/* Where regions go that are sorted apart, `edge` pairs at most: to arrays of their own. */
static void lay_out_edges(struct pair_sorter *s, char **own, int64_t edge)
{
    struct engine_pair_regions *edges = &s->edges;
    const size_t key_bytes = s->columns[KEYS].bytes, value_bytes = (size_t)pair_carried_bytes(&s->main);
    const bool widens = (int)value_bytes != s->main.pairs.value_bytes;
    *edges = s->main;
    edges->most = edge;
    edges->spare_keys = take_part(own, edge, key_bytes);
    edges->spare_values = take_part(own, edge, value_bytes);
    edges->other_keys = take_part(own, edge, key_bytes);
    edges->other_values = take_part(own, edge, value_bytes);
    edges->pairs.keys_out = s->main.pairs.keys_out ? edges->other_keys : NULL;
    edges->pairs.values_out =
        widens ? take_part(own, edge, (size_t)s->main.pairs.value_bytes) : edges->other_values;
    edges->workspace = take_part(own, 1, s->x->engine->ops->pairs->region_workspace(s->x->engine, edges));
}

/* Lay out the arrays. The sorter's x may be without memory: need tells how much there must be. */
static void lay_out_halves(struct pair_sorter *s, struct pair_partition_need *need)
{
    const struct pair_partition *x = s->x;
    const struct engine *engine = x->engine;
    struct engine_pair_regions *main = &s->main;
    const bool has_elements = x->element_bytes > 0;
    const int key_bytes = x->pairs.map.key_bytes;
    const int64_t edge = edge_pairs(x), room = s->count + s->out_count + edge;
    char *shown = x->shown, *own = x->own;
    *main =
        (struct engine_pair_regions){.pairs = x->pairs, .places = has_elements, .workspace = x->workspace};
    main->most = greater(s->count, s->out_count);
    if (has_elements) {
        s->index = take_part(&own, s->out_count, sizeof *s->index);
        main->pairs.values_out = s->index;
        main->pairs.values = NULL;
        main->pairs.value_bytes = sizeof *s->index;
    }
    const size_t value_bytes = (size_t)pair_carried_bytes(main);
    main->keys = take_part(&shown, room, (size_t)key_bytes);
    main->values =
        has_elements ? take_part(&own, main->most, value_bytes) : take_part(&shown, room, value_bytes);
    // Elements still come while what is left is sorted, so peers are not asked yet whether they have read all keys.
    main->spare_keys = has_elements ? take_part(&own, s->out_count, (size_t)key_bytes) : main->keys;
    main->spare_values = main->values;
    s->columns[KEYS] = (struct message_column){main->keys, main->keys, (size_t)key_bytes, PACK_CLOSE};
    s->columns[BESIDE] = (struct message_column){main->values, main->values, value_bytes,
                                                 x->pairs.values ? PACK_CLOSE : PACK_RISING};
    if (has_elements) {
        void *given = take_part(&shown, s->count, x->element_bytes);
        s->columns[BESIDE] = (struct message_column){given, take_part(&own, room, x->element_bytes),
                                                     x->element_bytes, PACK_NOTHING};
    }
    main->other_keys =
        main->pairs.keys_out ? main->pairs.keys_out : take_part(&own, s->out_count, (size_t)key_bytes);
    main->other_values = (int)value_bytes != main->pairs.value_bytes
                             ? take_part(&own, s->out_count, value_bytes)
                             : main->pairs.values_out;
    lay_out_edges(s, &own, edge);
    s->slot_bytes = column_messages_bytes(x->comm, engine, x->transport, SIZE_MAX);
    s->slot_memory = take_part(&own, (int64_t)s->slot_bytes, 1);
    const size_t split = engine->ops->pairs->region_workspace(engine, main),
                 map = map_bytes(engine, key_bytes) +
                       engine->ops->partition->sample_scratch(engine, key_bytes, SAMPLE_LOG);
    *need = (struct pair_partition_need){.shown = (size_t)(shown - (char *)x->shown),
                                         .own = (size_t)(own - (char *)x->own),
                                         .workspace = split > map ? split : map};
}

/* A sorter without tables. */
static struct pair_sorter sorter_of(const struct pair_partition *x, struct pair_partition_need *need)
{
    const int rank = x->comm->rank;
    struct pair_sorter s = {.x = x,
                            .rank = rank,
                            .size = x->comm->size,
                            .count = x->in_offset[rank + 1] - x->in_offset[rank],
                            .out_count = x->out_offset[rank + 1] - x->out_offset[rank]};
    lay_out_halves(&s, need);
    return s;
}

bool pair_partition_can(const struct pair_partition *x, struct pair_partition_need *need)
{
    const struct engine_ops *ops = x->engine->ops;
    const int64_t total = x->in_offset[x->comm->size];
    const bool counts =
        x->pairs.values || x->element_bytes > 0 || total <= UINT32_MAX; // positions have 4 bytes on the way
    if (!ops->partition || !ops->pairs || x->comm->size > ENGINE_PIECES_MAX || !region_map_suits(total) ||
        !counts)
        return false;
    const struct pair_sorter s = sorter_of(x, need);
    const int64_t places = s.count + s.out_count + edge_pairs(x);
    return ops->pairs->can_split(x->engine, &s.main) && ops->pairs->can_split(x->engine, &s.edges) &&
           places <= UINT32_MAX;
}

static void close_sorter(struct pair_sorter *s)
{
    s->x->engine->ops->event_destroy(s->x->engine, s->fetched);
    for (int part = 0; part < PARTS; part++)
        s->x->engine->ops->event_destroy(s->x->engine, s->parts[part]);
    column_slots_close(s->x->engine, s->slots);
    peer_reader_close(&s->reader);
    region_map_close(s->map);
    pair_plan_close(s->plan);
    free(s->found);
    free(s->gives);
    free(s->takes);
    free(s->sends);
    free(s->receives);
    free(s->comes_to);
    free(s->shown);
    free(s->copies);
}

static hsort_status make_pair_tables(struct pair_sorter *s)
{
    const size_t ranks = (size_t)s->size;
    s->found = malloc(ranks * FOUND * sizeof *s->found);
    s->gives = calloc(ranks, sizeof *s->gives);
    s->takes = calloc(ranks, sizeof *s->takes);
    s->sends = calloc(ranks, sizeof *s->sends);
    s->receives = calloc(ranks, sizeof *s->receives);
    s->comes_to = calloc(ranks, sizeof *s->comes_to);
    s->shown = calloc(ranks * COLUMNS, sizeof *s->shown);
    s->copies = malloc(ranks * sizeof *s->copies);
    if (!s->found || !s->gives || !s->takes || !s->sends || !s->receives || !s->comes_to || !s->shown ||
        !s->copies || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the pairs of %d ranks", s->size);
    TRY(column_slots_open(s->x->engine, s->slot_bytes, &s->slots));
    TRY(peer_reader_open(s->x->engine, &s->reader));
    TRY(region_map_open(s->size, &s->map));
    TRY(pair_plan_open(s->size, &s->plan));
    for (int part = 0; s->x->element_bytes > 0 && part < PARTS; part++)
        TRY(s->x->engine->ops->event_create(s->x->engine, &s->parts[part]));
    return s->x->engine->ops->event_create(s->x->engine, &s->fetched);
}

/* ---- the plan: the same on all ranks ------------------------------------------------------------------- */

/* Log of the size of the sample: of few pairs, all of them at most. */
static int pair_sample_log(const struct pair_sorter *s)
{
    int log = SAMPLE_LOG;
    while (s->x->in_offset[s->size] >> log == 0)
        log--;
    return log;
}

/* Agree on a map, and split by it. The pairs of all ranks' regions are known then. Collective. */
static void split_pairs(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    const int key_bytes = x->pairs.map.key_bytes;
    const struct raw_keys raw = {.map = x->pairs.map, .from = x->pairs.keys};
    const int64_t first = x->element_bytes > 0 ? 0 : x->in_offset[s->rank];
    int64_t own[FOUND] = {0};
    s->status =
        region_map_agree(s->map, x->comm, x->engine, key_bytes, &raw, x->in_offset, pair_sample_log(s), true,
                         x->workspace, (char *)x->workspace + map_bytes(x->engine, key_bytes));
    if (s->status == HSORT_OK && s->map->agreed.is_made)
        s->status = x->engine->ops->pairs->split(x->engine, &s->main, first, &s->map->agreed.map, own);
    own[FOUND_FAILED] = s->status != HSORT_OK || !s->map->agreed.is_made;
    keep_first_error(&s->status, comm_check(MPI_Allgather(own, FOUND, MPI_INT64_T, s->found, FOUND,
                                                          MPI_INT64_T, x->comm->world),
                                            "MPI_Allgather", true));
    keep_first_error(&s->status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
}

/* Plan what goes where. Did all ranks split, and have they room for what they sort apart? */
static bool plan_pairs(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    int64_t failed = 0, comes_to = s->count;
    for (int rank = 0; rank < s->size; rank++)
        failed += s->found[(size_t)rank * FOUND + FOUND_FAILED];
    if (failed > 0)
        return false;
    region_map_values(s->map, x->engine, x->pairs.map.key_bytes, s->plan->is_one_value);
    pair_plan_make(s->plan, s->found, FOUND, x->out_offset);
    for (int peer = 0; peer < s->size; peer++) {
        if (peer == s->rank)
            continue;
        s->gives[peer] = pair_plan_pieces(s->plan, s->rank, peer, s->plan->first[peer], s->plan->end[peer]);
        s->takes[peer] =
            pair_plan_pieces(s->plan, peer, s->rank, s->plan->first[s->rank], s->plan->end[s->rank]);
        s->comes_to[peer] = comes_to;
        comes_to += s->takes[peer].end - s->takes[peer].first;
    }
    return pair_plan_most_of_edges(s->plan) <= edge_pairs(x);
}

/* ---- pairs that come ------------------------------------------------------------------------------------ */

static char *at_pair(void *array, int64_t pair, size_t bytes)
{
    return (char *)array + (size_t)pair * bytes;
}

/* Bring the elements that leave into the order of the regions: to each peer others, but for those of a region at an edge. */
static void take_leaving(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    int64_t outside = 0;
    if (x->element_bytes == 0)
        return;
    for (int peer = 0; peer < s->size && s->status == HSORT_OK; peer++) {
        const int64_t first = s->gives[peer].first, count = s->gives[peer].end - first;
        if (count > 0)
            s->status = x->engine->ops->take(
                x->engine, x->element_bytes, at_pair(s->columns[BESIDE].given, first, x->element_bytes),
                x->elements, s->count, (const int64_t *)s->main.values + first, 0, count, &outside);
    }
}

/* Bring all elements to where others come behind them, so that one index says where any of them is. It is done while keys come. */
static void copy_own(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    if (s->status == HSORT_OK && x->element_bytes > 0 && s->count > 0)
        s->status = x->engine->ops->copy(x->engine, STREAM_WORK, s->columns[BESIDE].taken, x->elements,
                                         (size_t)s->count * x->element_bytes);
}

/* All columns lie in one allocation, so either all are shown or none. */
static bool is_shown(const struct pair_sorter *s, int peer)
{
    return s->shown[(size_t)peer * COLUMNS + KEYS] && s->shown[(size_t)peer * COLUMNS + BESIDE];
}

/* Show each peer what it wants, where that can be; ranks go through their peers in ascending order, so that none waits for one that
 * waits for it. Collective. */
static void show_memory(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    int shown = 0;
    for (int peer = 0; peer < s->size; peer++) {
        const size_t pairs = (size_t)(s->gives[peer].end - s->gives[peer].first);
        if (peer == s->rank || transport_path(x->transport, peer) != HSORT_TRANSPORT_IPC)
            continue;
        for (int i = 0; i < COLUMNS; i++) {
            const struct message_column *column = &s->columns[i];
            keep_first_error(&s->status,
                             x->transport->ops->expose(
                                 x->transport, peer,
                                 at_pair(column->given, s->gives[peer].first, column->bytes),
                                 pairs * column->bytes, &s->shown[(size_t)peer * COLUMNS + (size_t)i]));
        }
        shown += is_shown(s, peer);
    }
    peer_reader_begin(&s->reader, x->comm, x->transport, shown);
}

/* Peers read this rank's memory no more, nor this rank theirs. Collective. */
static void conceal_memory(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    for (int peer = 0; peer < s->size; peer++)
        for (int i = 0; i < COLUMNS; i++)
            if (s->shown[(size_t)peer * COLUMNS + (size_t)i])
                keep_first_error(&s->status, x->transport->ops->conceal(x->transport, peer));
}

/* Exchange messages with those peers that show no memory. Collective. */
static void exchange_messages(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    const struct column_messages messages = {.comm = x->comm,
                                             .engine = x->engine,
                                             .transport = x->transport,
                                             .columns = s->columns,
                                             .column_count = COLUMNS,
                                             .gives = s->sends,
                                             .takes = s->receives,
                                             .comes_to = s->comes_to,
                                             .slots = s->slots,
                                             .memory = s->slot_memory,
                                             .memory_bytes = s->slot_bytes};
    int64_t moved_bytes = 0; // the transports count them, too
    for (int peer = 0; peer < s->size; peer++)
        if (!is_shown(s, peer)) {
            s->sends[peer] = s->gives[peer];
            s->receives[peer] = s->takes[peer];
        }
    s->status = column_messages_run(&messages, s->status, &moved_bytes);
}

/* List what peers show of a column, of regions first .. end - 1. Returns how many copies that takes. */
static int list_copies(struct pair_sorter *s, int number, int first, int end)
{
    const struct message_column *column = &s->columns[number];
    int count = 0;
    for (int step = 1; step < s->size; step++) {
        const int peer = (s->rank + step) % s->size;
        const struct place_span own = pair_plan_pieces(s->plan, peer, s->rank, first, end);
        const int64_t skip = own.first - s->takes[peer].first;
        const char *theirs = s->shown[(size_t)peer * COLUMNS + (size_t)number];
        if (!is_shown(s, peer) || place_span_is_empty(own))
            continue;
        s->copies[count++] =
            (struct peer_copy){.peer = peer,
                               .to = at_pair(column->taken, s->comes_to[peer] + skip, column->bytes),
                               .from = theirs + (size_t)skip * column->bytes,
                               .bytes = (size_t)(own.end - own.first) * column->bytes};
    }
    return count;
}

/* Queue these copies. */
static void fetch_column(struct pair_sorter *s, int number, int first, int end)
{
    int left = list_copies(s, number, first, end);
    while (left > 0 && s->status == HSORT_OK) {
        left = peer_reader_copy(&s->reader, s->copies, left, &s->status);
        keep_first_error(&s->status, peer_reader_advance(&s->reader));
    }
}

/* What is queued on STREAM_WORK from now on waits for what has been on STREAM_IN. */
static void wait_for_fetched(struct pair_sorter *s)
{
    const struct engine_ops *ops = s->x->engine->ops;
    if (s->status == HSORT_OK)
        s->status = ops->event_record(s->x->engine, s->fetched, STREAM_IN);
    if (s->status == HSORT_OK)
        s->status = ops->stream_wait_event(s->x->engine, STREAM_WORK, s->fetched);
}

/* The first region of a part of the elements that this rank wants; of part PARTS: where they end. */
static int part_begins(const struct pair_sorter *s, int part)
{
    const int first = s->plan->first[s->rank], regions = s->plan->end[s->rank] - first;
    return first + regions * part / PARTS;
}

/* Queue copies of all elements, part by part. */
static void fetch_elements(struct pair_sorter *s)
{
    for (int part = 0; s->x->element_bytes > 0 && part < PARTS; part++) {
        fetch_column(s, BESIDE, part_begins(s, part), part_begins(s, part + 1));
        if (s->status == HSORT_OK)
            s->status = s->x->engine->ops->event_record(s->x->engine, s->parts[part], STREAM_IN);
    }
}

/* ---- regions are sorted --------------------------------------------------------------------------------- */

/* The pieces of a region, by rank: where this rank has, or gets them, in the first half. Returns its pairs. */
static int64_t list_local_pieces(const struct pair_sorter *s, int region, struct engine_pair_piece *pieces,
                                 int *count)
{
    int64_t pairs = 0;
    for (int owner = 0; owner < s->size; owner++) {
        const struct place_span piece = pair_plan_piece(s->plan, owner, s->rank, region);
        const int64_t moved = owner == s->rank ? 0 : s->comes_to[owner] - s->takes[owner].first;
        if (place_span_is_empty(piece))
            continue;
        pieces[(*count)++] = (struct engine_pair_piece){piece.first + moved, piece.end - piece.first, region};
        pairs += piece.end - piece.first;
    }
    return pairs;
}

/* Queue the sort of regions first .. end - 1, but for those at an edge. */
static void sort_regions(struct pair_sorter *s, int first, int end)
{
    struct engine_pair_piece pieces[ENGINE_PIECES_MAX];
    int count = 0;
    int64_t out_first = 0;
    for (int region = first; region < end; region++) {
        if (pair_plan_is_edge(s->plan, s->rank, region))
            continue;
        if (count == 0)
            out_first = pair_plan_wanted(s->plan, s->rank, region).first - s->x->out_offset[s->rank];
        list_local_pieces(s, region, pieces, &count);
    }
    if (count == 0 || s->status != HSORT_OK)
        return;
    s->status =
        s->x->engine->ops->pairs->sort_regions(s->x->engine, &s->main, pieces, count, out_first, !s->begun);
    s->begun = true;
}

/* Fetch keys and values and sort them, a few regions at a time. */
static void run_batches(struct pair_sorter *s)
{
    const int end = s->plan->end[s->rank];
    int first = s->plan->first[s->rank], each = (end - first + BATCHES - 1) / BATCHES;
    if (each > ENGINE_PIECES_MAX / s->size)
        each = ENGINE_PIECES_MAX / s->size;
    for (; first < end && s->status == HSORT_OK; first += each) {
        const int next = first + each < end ? first + each : end;
        fetch_column(s, KEYS, first, next);
        if (s->x->element_bytes == 0)
            fetch_column(s, BESIDE, first, next);
        wait_for_fetched(s);
        sort_regions(s, first, next);
    }
}

/* Queue the sort of the regions at this rank's edges, to arrays of their own. regions [2]: where in these each of them lies. Returns
 * how many there are. */
static int sort_edges(struct pair_sorter *s, struct engine_pair_piece *regions)
{
    struct engine_pair_piece pieces[ENGINE_PIECES_MAX];
    int found = 0;
    int64_t at = 0;
    for (int region = s->plan->first[s->rank]; region < s->plan->end[s->rank]; region++) {
        if (!pair_plan_is_edge(s->plan, s->rank, region))
            continue;
        int count = 0;
        const int64_t pairs = list_local_pieces(s, region, pieces, &count);
        if (s->status == HSORT_OK)
            s->status = s->x->engine->ops->pairs->sort_regions(s->x->engine, &s->edges, pieces, count, at,
                                                               found == 0);
        regions[found++] = (struct engine_pair_piece){at, pairs, region};
        at += pairs;
    }
    return found;
}

/* Take what this rank wants of the regions at its edges. */
static hsort_status take_edges(const struct pair_sorter *s, const struct engine_pair_piece *regions,
                               int count)
{
    struct engine *engine = s->x->engine;
    const struct engine_pairs *from = &s->edges.pairs, *to = &s->main.pairs;
    const size_t key_bytes = s->columns[KEYS].bytes, value_bytes = (size_t)to->value_bytes;
    for (int i = 0; i < count; i++) {
        const struct place_span wanted = pair_plan_wanted(s->plan, s->rank, regions[i].region);
        const int64_t at = regions[i].first + wanted.first - s->plan->region_at[regions[i].region],
                      out = wanted.first - s->x->out_offset[s->rank];
        const size_t pairs = (size_t)(wanted.end - wanted.first);
        if (to->keys_out)
            TRY(engine->ops->copy(engine, STREAM_WORK, at_pair(to->keys_out, out, key_bytes),
                                  at_pair(from->keys_out, at, key_bytes), pairs * key_bytes));
        TRY(engine->ops->copy(engine, STREAM_WORK, at_pair(to->values_out, out, value_bytes),
                              at_pair(from->values_out, at, value_bytes), pairs * value_bytes));
    }
    return HSORT_OK;
}

/* Sort what is left, by way of memory that nobody reads any more. */
static hsort_status settle_pairs(struct pair_sorter *s, const struct engine_pair_piece *regions, int edges)
{
    const struct pair_partition *x = s->x;
    if (s->begun)
        TRY(x->engine->ops->pairs->settle_regions(x->engine, &s->main));
    if (edges > 0)
        TRY(x->engine->ops->pairs->settle_regions(x->engine, &s->edges));
    return take_edges(s, regions, edges);
}

/* Bring elements where they belong, each part once it has come. */
static hsort_status take_elements(const struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    const int64_t *out = x->out_offset + s->rank;
    int64_t outside = 0, done = 0;
    for (int part = 0; x->element_bytes > 0 && part < PARTS; part++) {
        const int64_t end = lesser(s->plan->region_at[part_begins(s, part + 1)], out[1]) - out[0];
        if (end <= done)
            continue;
        TRY(x->engine->ops->stream_wait_event(x->engine, STREAM_WORK, s->parts[part]));
        TRY(x->engine->ops->take(x->engine, x->element_bytes,
                                 at_pair(x->elements_out, done, x->element_bytes), s->columns[BESIDE].taken,
                                 s->count + s->out_count + edge_pairs(x), s->index + done, 0, end - done,
                                 &outside));
        done = end;
    }
    return HSORT_OK;
}

/* Let pairs change ranks, and sort those that come. Collective. */
static void fetch_and_sort_pairs(struct pair_sorter *s)
{
    struct engine_pair_piece regions[2];
    take_leaving(s);
    show_memory(s);
    copy_own(s);
    exchange_messages(s);
    run_batches(s);
    const int edges = sort_edges(s, regions);
    fetch_elements(s);
    keep_first_error(&s->status, peer_reader_end(&s->reader));
    const bool has_elements = s->x->element_bytes > 0;
    if (!has_elements)
        conceal_memory(s);
    if (s->status == HSORT_OK)
        s->status = settle_pairs(s, regions, edges);
    if (s->status == HSORT_OK)
        s->status = take_elements(s);
    if (has_elements)
        conceal_memory(s);
    keep_first_error(&s->status, s->x->engine->ops->stream_synchronize(s->x->engine, STREAM_WORK));
}

hsort_status pair_partition_run(const struct pair_partition *x, bool *done)
{
    struct pair_partition_need need;
    struct pair_sorter s = sorter_of(x, &need);
    *done = false;
    int64_t all = 0, any;
    s.status = make_pair_tables(&s);
    keep_first_error(&s.status, comm_range(x->comm, s.status == HSORT_OK, &all, &any));
    if (all) {
        split_pairs(&s);
        *done = plan_pairs(&s);
        if (*done)
            fetch_and_sort_pairs(&s);
    }
    close_sorter(&s);
    return s.status;
}
