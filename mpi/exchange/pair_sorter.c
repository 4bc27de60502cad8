#include "mpi/exchange/pair_sorter.h"
#include <stdlib.h>
#include "kernels/base/memory_parts.h"

enum {
    EDGE_SHARE = 64,  /* a rank sorts apart at most this part of all pairs, */
    EDGE_LEAST = 4096 /* and so many more */
};

int64_t pair_sorter_edge_pairs(const struct pair_partition *x)
{
    return x->in_offset[x->comm->size] / EDGE_SHARE + EDGE_LEAST;
}

/* Take an array of engine memory. */
static void *take_part(char **at, int64_t count, size_t bytes)
{
    return take_aligned(at, count, bytes, ENGINE_ALIGNMENT);
}

/* Lay out separate arrays for the regions that are sorted apart, `edge` pairs at most. */
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
    const int64_t edge = pair_sorter_edge_pairs(x), room = s->count + s->out_count + edge;
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
    s->columns[KEYS] = (struct message_column){main->keys, pair_at(main->keys, s->count, (size_t)key_bytes),
                                               (size_t)key_bytes, PACK_CLOSE};
    s->columns[BESIDE] = (struct message_column){main->values, pair_at(main->values, s->count, value_bytes),
                                                 value_bytes, x->pairs.values ? PACK_CLOSE : PACK_RISING};
    if (has_elements) {
        const bool in_place = x->elements == x->elements_out;
        void *given = take_part(&shown, s->count, x->element_bytes);
        s->columns[BESIDE] = (struct message_column){
            given, take_part(&own, room - s->count, x->element_bytes), x->element_bytes, PACK_NOTHING};
        s->own_elements = in_place ? take_part(&own, s->count, x->element_bytes) : (void *)x->elements;
    }
    main->other_keys =
        main->pairs.keys_out ? main->pairs.keys_out : take_part(&own, s->out_count, (size_t)key_bytes);
    main->other_values = (int)value_bytes != main->pairs.value_bytes
                             ? take_part(&own, s->out_count, value_bytes)
                             : main->pairs.values_out;
    lay_out_edges(s, &own, edge);
    // Slots have room for whole messages, so that parts are as long as without slots: in a pair that packs nothing, only one side may have
    // slots.
    s->slot_bytes = column_messages_bytes(x->comm, engine, x->transport, SIZE_MAX);
    s->slot_memory = take_part(&own, (int64_t)s->slot_bytes, 1);
    const size_t split = engine->ops->pairs->region_workspace(engine, main),
                 map = region_map_workspace(engine, key_bytes) +
                       engine->ops->partition->sample_scratch(engine, key_bytes, PAIR_SAMPLE_LOG);
    *need = (struct pair_partition_need){.shown = (size_t)(shown - (char *)x->shown),
                                         .own = (size_t)(own - (char *)x->own),
                                         .workspace = greater_bytes(split, map)};
}

struct pair_sorter pair_sorter_lay_out(const struct pair_partition *x, struct pair_partition_need *need)
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

void pair_sorter_close(struct pair_sorter *s)
{
    s->x->engine->ops->event_destroy(s->x->engine, s->fetched);
    s->x->engine->ops->event_destroy(s->x->engine, s->sorted);
    for (int part = 0; part < ELEMENT_PARTS; part++)
        s->x->engine->ops->event_destroy(s->x->engine, s->parts[part]);
    for (int part = 0; part < LEAVING_PARTS; part++)
        s->x->engine->ops->event_destroy(s->x->engine, s->leaving[part]);
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

hsort_status pair_sorter_open(struct pair_sorter *s)
{
    const size_t ranks = (size_t)s->size;
    s->found = malloc(ranks * FOUND * sizeof *s->found);
    s->gives = calloc(ranks, sizeof *s->gives);
    s->takes = calloc(ranks, sizeof *s->takes);
    s->sends = calloc(ranks, sizeof *s->sends);
    s->receives = calloc(ranks, sizeof *s->receives);
    s->comes_to = calloc(ranks, sizeof *s->comes_to);
    s->shown = calloc(ranks * SHOWN, sizeof *s->shown);
    s->copies = malloc(ranks * sizeof *s->copies);
    if (!s->found || !s->gives || !s->takes || !s->sends || !s->receives || !s->comes_to || !s->shown ||
        !s->copies || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the pairs of %d ranks", s->size);
    TRY(column_slots_open(s->x->engine, s->slot_bytes, &s->slots));
    TRY(peer_reader_open(s->x->engine, &s->reader));
    TRY(region_map_open(s->size, &s->map));
    TRY(pair_plan_open(s->size, &s->plan));
    for (int part = 0; s->x->element_bytes > 0 && part < ELEMENT_PARTS; part++)
        TRY(s->x->engine->ops->event_create(s->x->engine, &s->parts[part]));
    for (int part = 0; s->x->element_bytes > 0 && part < LEAVING_PARTS; part++)
        TRY(s->x->engine->ops->event_create(s->x->engine, &s->leaving[part]));
    TRY(s->x->engine->ops->event_create(s->x->engine, &s->sorted));
    return s->x->engine->ops->event_create(s->x->engine, &s->fetched);
}
