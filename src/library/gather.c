/* Bring elements to where an index wants them. */
#include "src/library/element_call.h"
#include "src/library/element_need.h"
#include "src/library/host_call.h"

/* A gather or a scatter. The index has as many entries as the array beside it: `out` of a gather, `in` of a scatter. */
struct gather_call {
    struct element_order order; /* counts and offsets; nothing is sorted */
    bool scatters;
    size_t element_bytes;
    const void *in;
    const int64_t *index;
    void *out;
    struct element_array loaded_in, loaded_index, room;
};

static int64_t index_count(const struct gather_call *call)
{
    return call->scatters ? call->order.count : call->order.out_count;
}

static hsort_status check_gather(const struct gather_call *call)
{
    const struct element_order *order = &call->order;
    TRY(element_check_bytes(call->element_bytes));
    TRY(element_check_array(order->ctx, "in", call->in, order->count, 1));
    TRY(element_check_array(order->ctx, "index", call->index, index_count(call), sizeof *call->index));
    TRY(element_check_array(order->ctx, "out", call->out, order->out_count, 1));
    const struct element_extent arrays[] = {
        {"in", call->in, (size_t)order->count * call->element_bytes, false, -1},
        {"index", call->index, (size_t)index_count(call) * sizeof *call->index, false, -1},
        {"out", call->out, (size_t)order->out_count * call->element_bytes, true, -1}};
    return element_check_apart(arrays, sizeof arrays / sizeof *arrays);
}

/* Have the arrays. A scatter loads `out` as it is, because some of its elements may stay. Not collective. */
static hsort_status take_gather_memory(struct gather_call *call)
{
    const struct element_order *order = &call->order;
    hsort_context *ctx = order->ctx;
    const size_t out_bytes = (size_t)order->out_count * call->element_bytes;
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, order->stream));
    TRY(element_array_load(ctx, call->in, (size_t)order->count * call->element_bytes, &call->loaded_in));
    TRY(element_array_load(ctx, call->index, (size_t)index_count(call) * sizeof *call->index,
                           &call->loaded_index));
    TRY(call->scatters ? element_array_load(ctx, call->out, out_bytes, &call->room)
                       : element_array_room(ctx, call->out, out_bytes, false, &call->room));
    call->room.callers = call->out;
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_H2D);
    return HSORT_OK;
}

/* Collective. */
static hsort_status carry(struct gather_call *call)
{
    const struct element_order *order = &call->order;
    hsort_context *ctx = order->ctx;
    TRY(element_carry(ctx, call->scatters, call->scatters ? order->out_offset : order->in_offset,
                      call->loaded_index.memory, index_count(call), call->element_bytes,
                      call->loaded_in.memory, call->room.memory));
    hsort_status status = element_array_deliver(ctx, &call->room);
    keep_first_error(&status, ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_D2H);
    TRY(context_agree(ctx, status));
    return stats_finish(ctx, (call->scatters ? order->in_offset : order->out_offset)[ctx->comm.size]);
}

static hsort_status run_gather(struct gather_call *call)
{
    hsort_context *ctx = call->order.ctx;
    TRY(element_order_plan(&call->order, check_gather(call),
                           element_request(&call->order, 2 * call->element_bytes + call->scatters)));
    TRY(comm_agree(&ctx->comm, take_gather_memory(call)));
    return carry(call);
}

static hsort_status gather_again(hsort_context *ctx, const void *user)
{
    const struct gather_call *call = user;
    return (call->scatters ? hsort_scatter : hsort_gather)(ctx, call->in, call->order.count,
                                                           call->element_bytes, call->index, call->out,
                                                           call->order.out_count, NULL);
}

/* One of the public calls. Collective. */
static hsort_status enter_gather(struct gather_call call)
{
    hsort_context *ctx = call.order.ctx;
    TRY(context_enter(ctx));
    struct trace_span *span =
        trace_begin(ctx->comm.trace, call.scatters ? "scatter elements" : "gather elements");
    const hsort_status status = trace_end_with(span, run_gather(&call));
    element_array_free(ctx, &call.loaded_in);
    element_array_free(ctx, &call.loaded_index);
    element_array_free(ctx, &call.room);
    element_order_close(&call.order);
    const struct host_call again = {
        .arrays = {call.in, call.index, call.out},
        .stream = call.order.stream,
        .bytes = element_need_of_gather(ctx->comm.size, index_count(&call), call.element_bytes),
        .run = gather_again,
        .call = &call};
    return host_call_finish(ctx, status, &again);
}

hsort_status hsort_gather(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                          const int64_t *index, void *out, int64_t out_count, void *stream)
{
    return enter_gather(
        (struct gather_call){.order = {.ctx = ctx, .stream = stream, .count = count, .out_count = out_count},
                             .element_bytes = element_bytes,
                             .in = in,
                             .index = index,
                             .out = out});
}

hsort_status hsort_scatter(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                           const int64_t *index, void *out, int64_t out_count, void *stream)
{
    return enter_gather(
        (struct gather_call){.order = {.ctx = ctx, .stream = stream, .count = count, .out_count = out_count},
                             .scatters = true,
                             .element_bytes = element_bytes,
                             .in = in,
                             .index = index,
                             .out = out});
}
