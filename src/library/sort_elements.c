/* Sorts of pairs and of records: their order is found by codes, then each element goes to its place, once. On a rank alone, values
 * of 4 and 8 bytes travel with their keys instead, if the engine does that. What does not fit into engine memory is sorted in two
 * passes. */
#include "src/library/element_call.h"
#include "src/library/element_pairs.h"
#include "src/library/element_passes.h"

/* What moves into the order of the keys: values, or records that hold the keys themselves. */
struct element_sort {
    struct element_order order;
    size_t element_bytes;
    const void *keys;     /* of pairs: the caller's; NULL: in the records */
    void *keys_out;       /* or NULL */
    const void *elements; /* the caller's array, and the one for the result; in place both are the same */
    void *elements_out;
    bool travel; /* elements travel with their keys, on a rank alone */
    struct element_array loaded_keys, loaded, keys_room, index, room;
};

static hsort_status check_elements(const struct element_sort *s)
{
    const struct element_order *order = &s->order;
    const size_t key_bytes = s->keys ? (size_t)order->fields[0].bytes : 1;
    const char *name = s->keys ? "values" : "records", *out_name = s->keys ? "values_out" : "out";
    TRY(element_check_bytes(s->element_bytes));
    if (s->keys)
        TRY(element_check_array(order->ctx, "keys", s->keys, order->count, key_bytes));
    if (s->keys_out)
        TRY(element_check_array(order->ctx, "keys_out", s->keys_out, order->out_count, key_bytes));
    TRY(element_check_array(order->ctx, name, s->elements, order->count, 1));
    TRY(element_check_array(order->ctx, out_name, s->elements_out, order->out_count, 1));
    const size_t count = (size_t)order->count, out_count = (size_t)order->out_count;
    const struct element_extent arrays[] = {
        {"keys", s->keys, s->keys ? count * key_bytes : 0, false, -1},
        {name, s->elements, count * s->element_bytes, false, -1},
        {"keys_out", s->keys_out, s->keys_out ? out_count * key_bytes : 0, true, 0},
        {out_name, s->elements_out, out_count * s->element_bytes, true, 1}};
    return element_check_apart(arrays, sizeof arrays / sizeof *arrays);
}

/* Where the fields lie in engine memory. */
static void point_fields(struct element_sort *s)
{
    struct element_order *order = &s->order;
    for (int i = 0; i < order->field_count; i++) {
        struct key_field *field = &order->fields[i];
        const size_t offset = order->count > 0 ? order->offsets[i] : 0; // without elements memory is anything
        field->from = s->keys ? s->loaded_keys.memory : (const char *)s->loaded.memory + offset;
        field->stride = s->keys ? (size_t)field->bytes : s->element_bytes;
    }
}

/* The pairs of this sort, for an engine that moves values with their keys, as far as they are known. */
static struct engine_pairs pairs_of_sort(const struct element_sort *s)
{
    static const uint64_t none; // a rank without elements has values all the same
    return (struct engine_pairs){.map = s->order.fields[0].map,
                                 .count = s->order.count,
                                 .keys = s->loaded_keys.memory,
                                 .values = s->loaded.memory ? s->loaded.memory : &none,
                                 .value_bytes = (int)s->element_bytes,
                                 .keys_out = s->keys_out ? s->keys_room.memory : NULL,
                                 .values_out = s->room.memory};
}

/* Are the elements values that can travel with their keys? The same on every rank. */
static bool are_pairs(const struct element_sort *s)
{
    return s->keys && (s->element_bytes == 4 || s->element_bytes == 8);
}

/* Can the values of this rank? They must be aligned. */
static bool can_values_travel(const struct element_sort *s)
{
    const size_t bytes = s->element_bytes;
    return are_pairs(s) && (uintptr_t)s->elements % bytes == 0 && (uintptr_t)s->elements_out % bytes == 0 &&
           element_order_has_bare_keys(&s->order);
}

/* Do values of a rank alone travel with their keys? */
static bool do_values_travel(const struct element_sort *s)
{
    const struct engine_pairs pairs = pairs_of_sort(s);
    return can_values_travel(s) && s->order.out_count == s->order.count &&
           element_order_takes_pairs(&s->order, &pairs);
}

/* Would they, and as what pairs? The caller's arrays stand for those in engine memory, which are not known yet; all that counts
 * is which of them there are. */
static bool would_values_travel(const struct element_sort *s, struct engine_pairs *pairs)
{
    struct element_sort later = *s;
    if (!s->keys)
        return false;
    later.loaded_keys.memory = (void *)s->keys;
    later.loaded.memory = (void *)s->elements;
    later.keys_room.memory = s->keys_out;
    later.room.memory = s->elements_out;
    point_fields(&later);
    *pairs = pairs_of_sort(&later);
    return do_values_travel(&later);
}

/* Have the elements, and room for keys. Not collective. */
static hsort_status take_loaded(struct element_sort *s)
{
    struct element_order *order = &s->order;
    hsort_context *ctx = order->ctx;
    const size_t key_bytes = (size_t)order->fields[0].bytes;
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, order->stream));
    if (s->keys)
        TRY(element_array_load(ctx, s->keys, (size_t)order->count * key_bytes, &s->loaded_keys));
    TRY(element_array_load(ctx, s->elements, (size_t)order->count * s->element_bytes, &s->loaded));
    point_fields(s);
    s->travel = do_values_travel(s);
    if (s->keys_out)
        TRY(element_array_room(ctx, s->keys_out, (size_t)order->out_count * key_bytes, order->in_two_rounds,
                               &s->keys_room));
    return HSORT_OK;
}

/* Have room for elements where they go. If need be, that is apart from where they come from; a sort in place then copies them over
 * at its end. Not collective. */
static hsort_status take_room(struct element_sort *s, bool apart)
{
    const size_t bytes = (size_t)s->order.out_count * s->element_bytes;
    element_array_free(s->order.ctx, &s->room);
    return element_array_room(s->order.ctx, s->elements_out, bytes, apart && s->elements == s->elements_out, &s->room);
}

/* Have room for the index, and for elements where it says that they go. Keys that are sorted in place need room, too: they are in
 * order before elements move, and memory for that may still lack. Not collective. */
static hsort_status take_index(struct element_sort *s)
{
    const struct element_order *order = &s->order;
    const size_t count = (size_t)order->out_count, key_bytes = (size_t)order->fields[0].bytes;
    TRY(element_array_room(order->ctx, NULL, count * sizeof(int64_t), true, &s->index));
    if (s->keys_out && s->keys_out == s->keys && !s->keys_room.owned)
        TRY(element_array_room(order->ctx, s->keys_out, count * key_bytes, true, &s->keys_room));
    return take_room(s, true);
}

/* Have what the sort works on. Not collective. */
static hsort_status take_sort_memory(struct element_sort *s)
{
    hsort_context *ctx = s->order.ctx;
    TRY(take_loaded(s));
    TRY(take_room(s, false));
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_H2D);
    return HSORT_OK;
}

/* Not collective. */
static hsort_status deliver_elements(struct element_sort *s)
{
    hsort_context *ctx = s->order.ctx;
    TRY(element_array_deliver(ctx, &s->keys_room));
    TRY(element_array_deliver(ctx, &s->room));
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_D2H);
    return HSORT_OK;
}

/* Collective. */
static hsort_status gather_elements(struct element_sort *s)
{
    struct element_order *order = &s->order;
    struct trace *trace = order->ctx->comm.trace;
    void *keys = s->keys_out ? s->keys_room.memory : NULL;
    struct trace_span *span = trace_begin(trace, "find order");
    TRY(trace_end_with(span, element_order_find(order, s->index.memory, keys)));
    span = trace_begin(trace, "gather");
    return trace_end_with(span, element_carry(order->ctx, false, order->in_offset, s->index.memory,
                                              order->out_count, s->element_bytes, s->loaded.memory,
                                              s->room.memory));
}

/* Bring all elements into order. Collective. */
static hsort_status order_elements(struct element_sort *s)
{
    struct element_order *order = &s->order;
    const struct engine_pairs pairs = pairs_of_sort(s);
    bool done = false;
    if (s->travel)
        return comm_agree(&order->ctx->comm, element_order_sort_pairs(order, &pairs));
    if (are_pairs(s)) {
        TRY(element_pairs_sort(order, &pairs, can_values_travel(s), &done));
    } else {
        TRY(element_pairs_carry(order, pairs.keys_out, s->element_bytes, s->loaded.memory, s->room.memory, &done));
    }
    if (done)
        return HSORT_OK;
    TRY(comm_agree(&order->ctx->comm, take_index(s)));
    return gather_elements(s);
}

/* What would travel in two passes. */
static struct element_columns columns_of_sort(const struct element_sort *s)
{
    const struct element_column elements = {
        .bytes = s->element_bytes, .in = s->elements, .out = s->elements_out};
    const struct element_column keys = {
        .bytes = (size_t)s->order.fields[0].bytes, .in = s->keys, .out = s->keys_out};
    if (s->keys)
        return (struct element_columns){
            .column = {keys, elements}, .count = 2, .carried_bytes = s->element_bytes};
    return (struct element_columns){.column = {elements}, .count = 1, .carried_bytes = s->element_bytes};
}

/* Collective. mine: this rank's status so far. */
static hsort_status run_element_sort(struct element_sort *s, hsort_status mine)
{
    struct element_order *order = &s->order;
    struct comm *comm = &order->ctx->comm;
    struct element_columns columns = columns_of_sort(s);
    struct engine_pairs expected;
    int passes;
    if (mine == HSORT_OK)
        mine = check_elements(s);
    TRY(element_order_plan(order, mine, element_request(order, s->element_bytes)));
    columns.pairs = would_values_travel(s, &expected) ? &expected : NULL;
    TRY(element_passes_choose(order, &columns, &passes));
    if (passes == 2)
        return element_passes_run(order, &columns);
    struct trace_span *span = trace_begin(comm->trace, "load");
    TRY(comm_agree(comm, trace_end_with(span, take_sort_memory(s))));
    TRY(order_elements(s));
    span = trace_begin(comm->trace, "store");
    TRY(context_agree(order->ctx, trace_end_with(span, deliver_elements(s))));
    return stats_finish(order->ctx, order->total);
}

static hsort_status element_sort(struct element_sort *s, hsort_status mine)
{
    hsort_context *ctx = s->order.ctx;
    struct trace_span *span = trace_begin(ctx->comm.trace, "sort elements");
    trace_keys(span, s->order.count);
    const hsort_status status = trace_end_with(span, run_element_sort(s, mine));
    element_array_free(ctx, &s->loaded_keys);
    element_array_free(ctx, &s->loaded);
    element_array_free(ctx, &s->keys_room);
    element_array_free(ctx, &s->index);
    element_array_free(ctx, &s->room);
    element_order_close(&s->order);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

/* ---- entry points -------------------------------------------------------------------------------------- */

hsort_status hsort_sort_pairs_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                 const void *values, size_t value_bytes, int64_t count, void *keys_out,
                                 void *values_out, int64_t out_count, void *stream)
{
    static const char none;
    TRY(context_enter(ctx));
    struct element_sort s = {
        .order = {.ctx = ctx, .stream = stream, .count = count, .out_count = out_count},
        .element_bytes = value_bytes,
        .keys = keys || count != 0 ? keys : &none, // a rank without keys sorts pairs all the same
        .keys_out = keys_out,
        .elements = values,
        .elements_out = values_out};
    const hsort_field field = {.type = type, .order = order};
    hsort_status status = element_take_key(&s.order, &field);
    if (status == HSORT_OK && !s.keys)
        status = status_fail(HSORT_ARGUMENT, "keys is NULL, but its count is %lld", (long long)count);
    return element_sort(&s, status);
}

hsort_status hsort_sort_pairs(hsort_context *ctx, hsort_type type, hsort_order order, void *keys,
                              void *values, size_t value_bytes, int64_t count, void *stream)
{
    return hsort_sort_pairs_to(ctx, type, order, keys, values, value_bytes, count, keys, values, count,
                               stream);
}

hsort_status hsort_sort_records_to(hsort_context *ctx, const void *records, size_t record_bytes,
                                   const hsort_field *fields, int field_count, int64_t count, void *out,
                                   int64_t out_count, void *stream)
{
    TRY(context_enter(ctx));
    struct element_sort s = {.order = {.ctx = ctx, .stream = stream, .count = count, .out_count = out_count},
                             .element_bytes = record_bytes,
                             .elements = records,
                             .elements_out = out};
    hsort_status status = element_check_bytes(record_bytes);
    if (status == HSORT_OK)
        status = element_take_fields(&s.order, fields, field_count, record_bytes);
    return element_sort(&s, status);
}

hsort_status hsort_sort_records(hsort_context *ctx, void *records, size_t record_bytes,
                                const hsort_field *fields, int field_count, int64_t count, void *stream)
{
    return hsort_sort_records_to(ctx, records, record_bytes, fields, field_count, count, records, count,
                                 stream);
}
