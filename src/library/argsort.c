/* The order of keys and of columns, without moving them. */
#include "src/library/element_call.h"
#include "src/library/element_passes.h"

/* A call that gives an index. Its arrays in engine memory. */
struct argsort {
    struct element_order order;
    const void *columns[HSORT_FIELDS_MAX]; /* the caller's, of each field */
    struct element_array loaded[HSORT_FIELDS_MAX];
    struct element_array index, keys_out;
};

/* Have the columns and the room for the results. Not collective. */
static hsort_status take_argsort_memory(struct argsort *a, int64_t *index, void *keys_out)
{
    struct element_order *order = &a->order;
    hsort_context *ctx = order->ctx;
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, order->stream));
    for (int i = 0; i < order->field_count; i++) {
        const size_t bytes = (size_t)order->fields[i].bytes;
        TRY(element_array_load(ctx, a->columns[i], (size_t)order->count * bytes, &a->loaded[i]));
        order->fields[i].from = a->loaded[i].memory;
        order->fields[i].stride = bytes;
    }
    if (keys_out)
        TRY(element_array_room(ctx, keys_out, (size_t)order->out_count * (size_t)order->fields[0].bytes,
                               order->in_two_rounds, &a->keys_out));
    TRY(element_array_room(ctx, index, (size_t)order->out_count * sizeof *index, false, &a->index));
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_H2D);
    return HSORT_OK;
}

/* Write the results. Not collective. */
static hsort_status deliver_argsort(struct argsort *a)
{
    hsort_context *ctx = a->order.ctx;
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_LOCAL_SORT);
    TRY(element_array_deliver(ctx, &a->index));
    TRY(element_array_deliver(ctx, &a->keys_out));
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_D2H);
    return HSORT_OK;
}

/* What would travel in two passes: each field, then the position. */
static struct element_columns columns_of_argsort(struct argsort *a, int64_t *index, void *keys_out)
{
    struct element_order *order = &a->order;
    struct element_columns columns = {.count = order->field_count + 1};
    size_t at = 0;
    for (int i = 0; i < order->field_count; i++) {
        const size_t bytes = (size_t)order->fields[i].bytes;
        columns.column[i] = (struct element_column){.bytes = bytes, .in = a->columns[i], .out = keys_out};
        order->offsets[i] = at;
        at += bytes;
    }
    columns.column[order->field_count] =
        (struct element_column){.bytes = sizeof *index, .out = index, .numbers = true};
    return columns;
}

/* Collective. mine: this rank's status so far. */
static hsort_status run_argsort(struct argsort *a, hsort_status mine, int64_t *index, void *keys_out)
{
    hsort_context *ctx = a->order.ctx;
    struct element_columns columns = columns_of_argsort(a, index, keys_out);
    int passes;
    TRY(element_order_plan(&a->order, mine, element_request(&a->order, 0)));
    TRY(element_passes_choose(&a->order, &columns, &passes));
    if (passes == 2)
        return element_passes_run(&a->order, &columns);
    struct trace_span *span = trace_begin(ctx->comm.trace, "load");
    TRY(comm_agree(&ctx->comm, trace_end_with(span, take_argsort_memory(a, index, keys_out))));
    span = trace_begin(ctx->comm.trace, "find order");
    TRY(trace_end_with(span, element_order_find(&a->order, a->index.memory, a->keys_out.memory)));
    span = trace_begin(ctx->comm.trace, "store");
    TRY(context_agree(ctx, trace_end_with(span, deliver_argsort(a))));
    return stats_finish(ctx, a->order.total);
}

/* Do the results keep clear of each other and of the columns? Only the keys may go where they came from. */
static hsort_status check_argsort_apart(const struct argsort *a, const int64_t *index, const void *keys_out)
{
    const struct element_order *order = &a->order;
    const size_t count = (size_t)order->count, out_count = (size_t)order->out_count;
    struct element_extent arrays[HSORT_FIELDS_MAX + 2];
    int length = 0;
    for (; length < order->field_count; length++)
        arrays[length] =
            (struct element_extent){order->field_count > 1 ? "a column" : "keys", a->columns[length],
                                    count * (size_t)order->fields[length].bytes, false, -1};
    arrays[length++] = (struct element_extent){"index", index, out_count * sizeof *index, true, -1};
    if (keys_out)
        arrays[length++] = (struct element_extent){"keys_out", keys_out,
                                                   out_count * (size_t)order->fields[0].bytes, true, 0};
    return element_check_apart(arrays, length);
}

/* The rest of either call. status: of the checks so far. Collective. */
static hsort_status finish_argsort(struct argsort *a, hsort_status status, int64_t *index, void *keys_out)
{
    struct element_order *order = &a->order;
    hsort_context *ctx = order->ctx;
    keep_first_error(&status, element_check_array(ctx, "index", index, order->out_count, sizeof *index));
    if (status == HSORT_OK && keys_out)
        status =
            element_check_array(ctx, "keys_out", keys_out, order->out_count, (size_t)order->fields[0].bytes);
    if (status == HSORT_OK)
        status = check_argsort_apart(a, index, keys_out);
    struct trace_span *span = trace_begin(ctx->comm.trace, "argsort");
    trace_keys(span, order->count);
    status = trace_end_with(span, run_argsort(a, status, index, keys_out));
    for (int i = 0; i < HSORT_FIELDS_MAX; i++)
        element_array_free(ctx, &a->loaded[i]);
    element_array_free(ctx, &a->index);
    element_array_free(ctx, &a->keys_out);
    element_order_close(order);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

hsort_status hsort_argsort(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                           int64_t count, int64_t *index, void *keys_out, int64_t out_count, void *stream)
{
    TRY(context_enter(ctx));
    struct argsort a = {.order = {.ctx = ctx, .stream = stream, .count = count, .out_count = out_count},
                        .columns = {keys}};
    const hsort_field field = {.type = type, .order = order};
    hsort_status status = element_take_key(&a.order, &field);
    if (status == HSORT_OK)
        status = element_check_array(ctx, "keys", keys, count, hsort_type_bytes(type));
    return finish_argsort(&a, status, index, keys_out);
}

hsort_status hsort_argsort_columns(hsort_context *ctx, const void *const *columns, const hsort_field *fields,
                                   int field_count, int64_t count, int64_t *index, int64_t out_count,
                                   void *stream)
{
    TRY(context_enter(ctx));
    struct argsort a = {.order = {.ctx = ctx, .stream = stream, .count = count, .out_count = out_count}};
    hsort_status status = element_take_fields(&a.order, fields, field_count, SIZE_MAX);
    if (status == HSORT_OK && !columns)
        status = status_fail(HSORT_ARGUMENT, "columns is NULL");
    for (int i = 0; i < field_count && status == HSORT_OK; i++) {
        a.columns[i] = columns[i];
        status = element_check_array(ctx, "a column", columns[i], count, 1);
    }
    return finish_argsort(&a, status, index, NULL);
}
