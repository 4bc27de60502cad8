#include "mpi/exchange/pair_partition.h"
#include "mpi/exchange/pair_sorter.h"

enum {
    BATCHES = 6 /* of a rank, about: with fewer the first one comes later, with more, skewed keys take longer */
};

bool pair_partition_can(const struct pair_partition *x, struct pair_partition_need *need)
{
    const struct engine_ops *ops = x->engine->ops;
    const int64_t total = x->in_offset[x->comm->size];
    const bool counts =
        x->pairs.values || x->element_bytes > 0 || total <= UINT32_MAX; // positions have 4 bytes on the way
    if (!ops->partition || !ops->pairs || x->comm->size > ENGINE_PIECES_MAX || !region_map_suits(total) ||
        !counts)
        return false;
    const struct pair_sorter s = pair_sorter_lay_out(x, need);
    const int64_t places = s.count + s.out_count + pair_sorter_edge_pairs(x);
    return ops->pairs->can_split(x->engine, &s.main) && ops->pairs->can_split(x->engine, &s.edges) &&
           places <= UINT32_MAX;
}

/* ---- the plan: the same on all ranks ------------------------------------------------------------------- */

/* Log of the size of the sample: of few pairs, not more than all of them. */
static int pair_sample_log(const struct pair_sorter *s)
{
    int log = PAIR_SAMPLE_LOG;
    while (s->x->in_offset[s->size] >> log == 0)
        log--;
    return log;
}

/* Agree on a map, and split the pairs by it. Then it is known how many pairs all ranks have in each region. Collective. */
static void split_pairs(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    const int key_bytes = x->pairs.map.key_bytes;
    const struct raw_keys raw = {.map = x->pairs.map, .from = x->pairs.keys};
    const int64_t first = x->element_bytes > 0 ? 0 : x->in_offset[s->rank];
    int64_t own[FOUND] = {0};
    s->status =
        region_map_agree(s->map, x->comm, x->engine, key_bytes, &raw, x->in_offset, pair_sample_log(s), true,
                         x->workspace, (char *)x->workspace + region_map_workspace(x->engine, key_bytes));
    if (s->status == HSORT_OK && s->map->agreed.is_made)
        s->status = x->engine->ops->pairs->split(x->engine, &s->main, first, &s->map->agreed.map, own);
    own[FOUND_FAILED] = s->status != HSORT_OK || !s->map->agreed.is_made;
    keep_first_error(&s->status, comm_check(MPI_Allgather(own, FOUND, MPI_INT64_T, s->found, FOUND,
                                                          MPI_INT64_T, x->comm->world),
                                            "MPI_Allgather", true));
    keep_first_error(&s->status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
}

/* Plan what goes where. Did all ranks split their pairs, and do they have room for what they sort apart? */
static bool plan_pairs(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    int64_t failed = 0, comes_to = 0;
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
    return pair_plan_most_of_edges(s->plan) <= pair_sorter_edge_pairs(x);
}

/* ---- what leaves ---------------------------------------------------------------------------------------- */

/* The first region of part `part` of `parts` parts of what a rank wants; if part is `parts`, where its regions end. */
static int part_begins(const struct pair_sorter *s, int rank, int part, int parts)
{
    const int first = s->plan->first[rank], regions = s->plan->end[rank] - first;
    return first + regions * part / parts;
}

/* What `owner` gives `reader` of a part of its elements that leave. */
static struct place_span leaving_span(const struct pair_sorter *s, int owner, int reader, int part)
{
    return pair_plan_pieces(s->plan, owner, reader, part_begins(s, reader, part, LEAVING_PARTS),
                            part_begins(s, reader, part + 1, LEAVING_PARTS));
}

/* Queue what brings a part of the elements that leave into the order of the regions. Each peer gets other elements, except those of a
 * region at an edge. */
static void take_leaving_part(struct pair_sorter *s, int part)
{
    const struct pair_partition *x = s->x;
    for (int peer = 0; peer < s->size && s->status == HSORT_OK; peer++) {
        const struct place_span gives = leaving_span(s, s->rank, peer, part);
        const struct engine_take take = {.element_bytes = x->element_bytes,
                                         .to =
                                             pair_at(s->columns[BESIDE].given, gives.first, x->element_bytes),
                                         .from = {x->elements},
                                         .from_count = {s->count},
                                         .positions = (const int64_t *)s->main.values + gives.first,
                                         .count = gives.end - gives.first};
        if (peer != s->rank && !place_span_is_empty(gives))
            s->status = x->engine->ops->take(x->engine, &take, NULL);
    }
    if (s->status == HSORT_OK)
        s->status = x->engine->ops->event_record(x->engine, s->leaving[part], STREAM_WORK);
}

/* Queue a copy of the own elements if they are sorted in place: they are taken from the copy. */
static void copy_own(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    if (s->status == HSORT_OK && s->own_elements != x->elements && s->count > 0)
        s->status = x->engine->ops->copy(x->engine, STREAM_WORK, s->own_elements, x->elements,
                                         (size_t)s->count * x->element_bytes);
}

/* Does a peer show its memory? All columns lie in one allocation, so either all are shown or none, and the keys tell. */
static bool is_shown(const struct pair_sorter *s, int peer)
{
    return s->shown[(size_t)peer * SHOWN + KEYS] != NULL;
}

/* The column to which a part of what is shown belongs. */
static const struct message_column *shown_column(const struct pair_sorter *s, int number)
{
    return &s->columns[number < BESIDE ? number : BESIDE];
}

/* What `owner` shows `reader` of that part. */
static struct place_span shown_span(const struct pair_sorter *s, int owner, int reader, int number)
{
    if (number >= BESIDE && s->x->element_bytes > 0)
        return leaving_span(s, owner, reader, number - BESIDE);
    return owner == s->rank ? s->gives[reader] : s->takes[owner];
}

/* Show a peer what it wants of a column, and get what the peer shows: shown[number]. Collective over the pair. */
static void show_span(struct pair_sorter *s, int peer, int number)
{
    const struct pair_partition *x = s->x;
    const struct message_column *column = shown_column(s, number);
    const struct place_span span = shown_span(s, s->rank, peer, number);
    const void **shown = &s->shown[(size_t)peer * SHOWN + (size_t)number];
    keep_first_error(&s->status, x->transport->ops->expose(x->transport, peer,
                                                           pair_at(column->given, span.first, column->bytes),
                                                           place_span_length(span) * column->bytes, shown));
    if (s->status == HSORT_OK && !*shown && is_shown(s, peer))
        s->status = status_fail(HSORT_INTERNAL, "rank %d shows only some of its memory", peer);
}

/* Show each peer what it wants, if it can be shown, but no elements yet. Ranks go through their peers in ascending order, so that no rank
 * waits for one that waits for it. Keys and values have been waited for. Collective. */
static void show_memory(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    int shown = 0;
    for (int peer = 0; peer < s->size; peer++) {
        if (peer == s->rank || transport_path(x->transport, peer) != HSORT_TRANSPORT_IPC)
            continue;
        show_span(s, peer, KEYS);
        if (x->element_bytes == 0)
            show_span(s, peer, BESIDE);
        shown += is_shown(s, peer);
    }
    peer_reader_begin(&s->reader, x->comm, x->transport, shown);
}

/* Show each of those peers a part of the elements that leave, once it is ready. This rank has no turn meanwhile, because another rank
 * might wait for it. Collective. */
static void show_leaving_part(struct pair_sorter *s, int part)
{
    keep_first_error(&s->status, peer_reader_end(&s->reader));
    for (bool ready = false; !ready && s->status == HSORT_OK;)
        s->status = s->x->engine->ops->event_done(s->x->engine, s->leaving[part], &ready);
    for (int peer = 0; peer < s->size; peer++)
        if (is_shown(s, peer))
            show_span(s, peer, BESIDE + part);
}

/* End the reading of this rank's memory by peers, and of theirs by this rank. Collective. */
static void conceal_memory(struct pair_sorter *s)
{
    const struct pair_partition *x = s->x;
    for (int peer = 0; peer < s->size; peer++)
        for (int i = 0; i < SHOWN; i++)
            if (s->shown[(size_t)peer * SHOWN + (size_t)i])
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

/* List the copies of what peers show of regions first .. end - 1. Returns how many copies there are. */
static int list_copies(struct pair_sorter *s, int number, int first, int end)
{
    const struct message_column *column = shown_column(s, number);
    int count = 0;
    for (int step = 1; step < s->size; step++) {
        const int peer = (s->rank + step) % s->size;
        const struct place_span own = pair_plan_pieces(s->plan, peer, s->rank, first, end);
        const int64_t skip = own.first - shown_span(s, peer, s->rank, number).first,
                      to = s->comes_to[peer] + own.first - s->takes[peer].first;
        const char *theirs = s->shown[(size_t)peer * SHOWN + (size_t)number];
        if (!theirs || !is_shown(s, peer) || place_span_is_empty(own))
            continue;
        s->copies[count++] = (struct peer_copy){.peer = peer,
                                                .to = pair_at(column->taken, to, column->bytes),
                                                .from = theirs + (size_t)skip * column->bytes,
                                                .bytes = place_span_length(own) * column->bytes};
    }
    return count;
}

/* Queue these copies. */
static void fetch_regions(struct pair_sorter *s, int number, int first, int end)
{
    int left = list_copies(s, number, first, end);
    while (left > 0 && s->status == HSORT_OK) {
        left = peer_reader_copy(&s->reader, s->copies, left, &s->status);
        keep_first_error(&s->status, peer_reader_advance(&s->reader));
    }
}

/* Let what is queued on STREAM_WORK after this wait for what has been queued on STREAM_IN. */
static void wait_for_fetched(struct pair_sorter *s)
{
    const struct engine_ops *ops = s->x->engine->ops;
    if (s->status == HSORT_OK)
        s->status = ops->event_record(s->x->engine, s->fetched, STREAM_IN);
    if (s->status == HSORT_OK)
        s->status = ops->stream_wait_event(s->x->engine, STREAM_WORK, s->fetched);
}

/* Queue the copies of a part of the elements. */
static void fetch_part(struct pair_sorter *s, int part)
{
    fetch_regions(s, BESIDE + part / (ELEMENT_PARTS / LEAVING_PARTS),
                  part_begins(s, s->rank, part, ELEMENT_PARTS),
                  part_begins(s, s->rank, part + 1, ELEMENT_PARTS));
    if (s->status == HSORT_OK)
        s->status = s->x->engine->ops->event_record(s->x->engine, s->parts[part], STREAM_IN);
}

/* ---- regions are sorted --------------------------------------------------------------------------------- */

/* List the pieces of a region, by rank: where this rank has them, or gets them, in the first half. Returns the region's pairs. */
static int64_t list_local_pieces(const struct pair_sorter *s, int region, struct engine_pair_piece *pieces,
                                 int *count)
{
    int64_t pairs = 0;
    for (int owner = 0; owner < s->size; owner++) {
        const struct place_span piece = pair_plan_piece(s->plan, owner, s->rank, region);
        const int64_t moved = owner == s->rank ? 0 : s->count + s->comes_to[owner] - s->takes[owner].first;
        if (place_span_is_empty(piece))
            continue;
        pieces[(*count)++] = (struct engine_pair_piece){piece.first + moved, piece.end - piece.first, region};
        pairs += piece.end - piece.first;
    }
    return pairs;
}

/* Queue the sort of regions first .. end - 1, except those at an edge. */
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
    int first = s->plan->first[s->rank];
    const int each = (int)lesser(divide_up(end - first, BATCHES), ENGINE_PIECES_MAX / s->size);
    for (; first < end && s->status == HSORT_OK; first += each) {
        const int next = (int)lesser(first + each, end);
        fetch_regions(s, KEYS, first, next);
        if (s->x->element_bytes == 0)
            fetch_regions(s, BESIDE, first, next);
        wait_for_fetched(s);
        sort_regions(s, first, next);
    }
}

/* Queue the sort of the regions at this rank's edges, to arrays of their own. regions [2]: where in these arrays each region lies. Returns
 * how many regions there are. */
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
        const size_t pairs = place_span_length(wanted);
        if (to->keys_out)
            TRY(engine->ops->copy(engine, STREAM_WORK, pair_at(to->keys_out, out, key_bytes),
                                  pair_at(from->keys_out, at, key_bytes), pairs * key_bytes));
        TRY(engine->ops->copy(engine, STREAM_WORK, pair_at(to->values_out, out, value_bytes),
                              pair_at(from->values_out, at, value_bytes), pairs * value_bytes));
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

/* Queue what brings a part of the elements to where they belong, once the part has come. */
static void take_part_of_elements(struct pair_sorter *s, int part)
{
    const struct pair_partition *x = s->x;
    const struct engine_ops *ops = x->engine->ops;
    const int64_t *out = x->out_offset + s->rank, *region_at = s->plan->region_at;
    const int first_region = part_begins(s, s->rank, part, ELEMENT_PARTS),
              end_region = part_begins(s, s->rank, part + 1, ELEMENT_PARTS);
    const int64_t first = greater(region_at[first_region], out[0]) - out[0],
                  end = lesser(region_at[end_region], out[1]) - out[0];
    const struct engine_take take = {.element_bytes = x->element_bytes,
                                     .to = pair_at(x->elements_out, first, x->element_bytes),
                                     .from = {s->own_elements, s->columns[BESIDE].taken},
                                     .from_count = {s->count, s->out_count + pair_sorter_edge_pairs(x)},
                                     .positions = s->index + first,
                                     .count = end - first};
    if (end <= first)
        return;
    if (s->status == HSORT_OK)
        s->status = ops->stream_wait_event(x->engine, STREAM_WORK, s->parts[part]);
    if (s->status == HSORT_OK)
        s->status = ops->take(x->engine, &take, NULL);
}

/* Are the keys in order, except those that are left? */
static bool keys_are_sorted(struct pair_sorter *s)
{
    bool done = true;
    if (s->status == HSORT_OK)
        s->status = s->x->engine->ops->event_done(s->x->engine, s->sorted, &done);
    return done;
}

/* Fetch elements and bring them where they belong, part by part; the first parts wait until the keys are in order.
 *
 *     leave      0 0 0   1 1 1   ..         made ready before the keys are sorted
 *     fetched      0 1 2   3 4 5  ..        in turns, and the host waits for each (peer_reader.h)
 *     keys            sorted   settled
 *     taken                        0 1 2 3 4 .. */
static void bring_elements(struct pair_sorter *s, const struct engine_pair_piece *regions, int edges)
{
    bool settled = false;
    copy_own(s);
    if (s->status == HSORT_OK)
        s->status = s->x->engine->ops->event_record(s->x->engine, s->sorted, STREAM_WORK);
    for (int fetched = 0, taken = 0; fetched < ELEMENT_PARTS; fetched++) {
        if (fetched % (ELEMENT_PARTS / LEAVING_PARTS) == 0)
            show_leaving_part(s, fetched / (ELEMENT_PARTS / LEAVING_PARTS));
        fetch_part(s, fetched);
        if (!settled && (fetched == ELEMENT_PARTS - 1 || keys_are_sorted(s))) {
            settled = true;
            if (s->status == HSORT_OK)
                s->status = settle_pairs(s, regions, edges);
        }
        while (settled && taken <= fetched)
            take_part_of_elements(s, taken++);
    }
}

/* Let pairs change ranks, and sort those that come. Collective. */
static void fetch_and_sort_pairs(struct pair_sorter *s)
{
    struct engine_pair_piece regions[2];
    const bool has_elements = s->x->element_bytes > 0;
    show_memory(s);
    for (int part = 0; has_elements && part < LEAVING_PARTS; part++)
        take_leaving_part(s, part);
    exchange_messages(s);
    run_batches(s);
    const int edges = sort_edges(s, regions);
    if (has_elements)
        bring_elements(s, regions, edges);
    keep_first_error(&s->status, peer_reader_end(&s->reader));
    conceal_memory(s);
    if (!has_elements && s->status == HSORT_OK)
        s->status = settle_pairs(s, regions, edges);
    keep_first_error(&s->status, s->x->engine->ops->stream_synchronize(s->x->engine, STREAM_WORK));
}

hsort_status pair_partition_run(const struct pair_partition *x, bool *done)
{
    struct pair_partition_need need;
    struct pair_sorter s = pair_sorter_lay_out(x, &need);
    *done = false;
    bool all = false;
    s.status = pair_sorter_open(&s);
    keep_first_error(&s.status, comm_all(x->comm, s.status == HSORT_OK, &all));
    if (all) {
        split_pairs(&s);
        *done = plan_pairs(&s);
        if (*done)
            fetch_and_sort_pairs(&s);
    }
    pair_sorter_close(&s);
    return s.status;
}
