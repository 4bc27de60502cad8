#include "src/library/host_call.h"
#include <string.h>
#include "mpi/comm/node_memory.h"
#include "src/library/context_memory.h"

static bool all_are_in_host_memory(hsort_context *ctx, const struct host_call *call)
{
    for (int i = 0; i < HOST_CALL_ARRAYS; i++) {
        enum engine_space space;
        if (call->arrays[i] &&
            (ctx->engine->ops->space_of(ctx->engine, call->arrays[i], &space) != HSORT_OK ||
             space == SPACE_ENGINE))
            return false;
    }
    return true;
}

/* Open a context of this one's ranks and cores. What was asked for the GPU's sake is left to the library. Collective. */
static hsort_status open_on_host(hsort_context *ctx, hsort_context **on_host)
{
    hsort_options options = ctx->options;
    options.engine = HSORT_ENGINE_HOST;
    options.device_memory_limit = 0;
    options.local_rung = -1;
    options.exchange = HSORT_EXCHANGE_AUTO;
    options.transport = HSORT_TRANSPORT_AUTO;
    options.mpi_device_pointers = HSORT_CHOICE_AUTO;
    options.binding = HSORT_BINDING_NONE;
    options.threads = ctx->comm.threads;
    options.trace_spans = 0;
    TRY(context_create(ctx->comm.world, &options, on_host, ctx->error));
    (*on_host)->comm.trace = ctx->comm.trace;
    return HSORT_OK;
}

/* Keep what callers ask the context for after the call. */
static void take_results(hsort_context *ctx, const hsort_context *on_host)
{
    ctx->stats = on_host->stats;
    ctx->has_stats = on_host->has_stats;
    memcpy(ctx->own_seconds, on_host->own_seconds, sizeof ctx->own_seconds);
    ctx->own_moved_bytes = on_host->own_moved_bytes;
}

static hsort_status run_on_host(hsort_context *ctx, const struct host_call *call)
{
    hsort_context *on_host;
    TRY(open_on_host(ctx, &on_host));
    struct trace_span *span = trace_begin(ctx->comm.trace, "in host memory");
    const hsort_status status = trace_end_with(span, call->run(on_host, call->call));
    memcpy(ctx->error, on_host->error, sizeof ctx->error);
    if (status == HSORT_OK)
        take_results(ctx, on_host);
    on_host->comm.trace = NULL;
    if (status == HSORT_MPI) // ranks may not be together any more
        ctx->on_host = on_host;
    else
        hsort_destroy(&on_host);
    return status;
}

/* Free what the context keeps, and wait until the caller's arrays are as they should be. Collective. */
static hsort_status make_room(hsort_context *ctx, const struct host_call *call)
{
    TRY(context_unmap(ctx, true));
    context_drop_all(ctx);
    return comm_agree(&ctx->comm, context_wait_caller(ctx, call->stream, SPACE_HOST));
}

/* Run the call itself again; it ends like the first one. */
static hsort_status run_again(hsort_context *ctx, const struct host_call *call)
{
    ctx->tries_again = true;
    const hsort_status status = call->run(ctx, call->call);
    ctx->tries_again = false;
    return status;
}

hsort_status host_call_finish(hsort_context *ctx, hsort_status status, const struct host_call *call)
{
    bool all, again = false;
    if (status != HSORT_DEVICE_MEMORY)
        return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
    context_fail(ctx, status); // what to say if there is no other try
    status_clear();
    // Does any rank's context keep memory that has not been freed yet?
    hsort_status agreed = comm_any(&ctx->comm, !ctx->tries_again && context_kept_bytes(ctx) > 0, &again);
    if (agreed == HSORT_OK && again)
        agreed = make_room(ctx, call);
    if (agreed == HSORT_OK && again)
        return run_again(ctx, call);
    if (agreed == HSORT_OK)
        agreed = comm_all(&ctx->comm, all_are_in_host_memory(ctx, call), &all);
    if (agreed != HSORT_OK)
        return context_fail(ctx, agreed);
    if (!all)
        return status;
    status = context_wait_caller(ctx, call->stream, SPACE_HOST);
    keep_first_error(&status, node_memory_check(&ctx->comm, call->bytes));
    status = comm_agree(&ctx->comm, status);
    return status == HSORT_OK ? run_on_host(ctx, call) : context_fail(ctx, status);
}
