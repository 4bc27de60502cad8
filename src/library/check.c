#include "kernels/base/lesser.h"
#include "src/library/context_memory.h"
#include "src/library/sort_stream.h"
#include "src/library/struct_size.h"
#include "src/library/verify.h"

hsort_status context_inspect(hsort_context *ctx, struct verifier *verifier, const void *keys, int64_t count)
{
    const struct engine_ops *ops = ctx->engine->ops;
    const size_t width = (size_t)verifier->map.key_bytes;
    const int64_t most = (int64_t)(ctx->kept[KEPT_SCRATCH].bytes / width);
    enum engine_space space;
    TRY(ops->space_of(ctx->engine, count > 0 ? keys : NULL, &space));
    if (space == SPACE_ENGINE)
        return verify_add(verifier, ctx->engine, keys, count);
    TRY(ops->stream_synchronize(ctx->engine, STREAM_WORK)); // the host's cores may copy keys at once
    for (int64_t done = 0; done < count;) {
        const int64_t chunk = lesser(count - done, most);
        const char *from = (const char *)keys + (size_t)done * width;
        TRY(ops->copy(ctx->engine, STREAM_WORK, ctx->kept[KEPT_SCRATCH].memory, from, (size_t)chunk * width));
        TRY(verify_add(verifier, ctx->engine, ctx->kept[KEPT_SCRATCH].memory, chunk));
        done += chunk;
    }
    return HSORT_OK;
}

hsort_status context_piece_bytes(const hsort_context *ctx, size_t *bytes)
{
    size_t free_bytes, most = ctx->kept[KEPT_SCRATCH].bytes;
    *bytes = lesser_bytes(*bytes, STREAM_PART_BYTES);
    if (*bytes <= most)
        return HSORT_OK;
    TRY(context_free_bytes(ctx, &free_bytes));
    most = (most + free_bytes) / sizeof(key_code) * sizeof(key_code); // whole keys
    if (*bytes > most && most > 0)
        *bytes = most;
    return HSORT_OK;
}

/* *bytes: of a buffer, 0 if it needs none. */
static hsort_status check_request(hsort_context *ctx, hsort_type type, const void *keys, int64_t count,
                                  const hsort_check_result *result, size_t *bytes)
{
    enum engine_space space;
    TRY(context_check_keys(ctx, (int)hsort_type_bytes(type), "keys", keys, count));
    if (!result || !STRUCT_SIZE_IS_KNOWN(hsort_check_result, result->struct_size))
        return status_fail(HSORT_ARGUMENT,
                           "result: is NULL, or its struct_size is not that of an hsort_check_result");
    TRY(ctx->engine->ops->space_of(ctx->engine, count > 0 ? keys : NULL, &space));
    if (space == SPACE_ENGINE)
        return HSORT_OK;
    *bytes = (size_t)count * hsort_type_bytes(type);
    return context_piece_bytes(ctx, bytes);
}

/* Feed the keys to the verifier, through a buffer of `bytes` if they need one. Not collective. */
static hsort_status check_shard(hsort_context *ctx, struct verifier *verifier, const void *keys,
                                int64_t count, size_t bytes, void *stream)
{
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, stream));
    TRY(context_reserve(ctx, KEPT_SCRATCH, bytes));
    return context_inspect(ctx, verifier, keys, count);
}

/* hsort_check() in a context that has been entered; does not keep the error line. Collective. */
static hsort_status check_shards(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                 int64_t count, void *stream, hsort_check_result *result)
{
    struct verifier verifier;
    hsort_check_result found;
    size_t bytes = 0;
    const hsort_status mine = check_request(ctx, type, keys, count, result, &bytes);
    TRY(context_agree_on_keys(ctx, type, order, mine));
    TRY(context_unmap(ctx, ctx->kept[KEPT_SCRATCH].bytes < bytes));
    verify_start(&verifier, keymap_make(type, order));
    TRY(context_agree(ctx, check_shard(ctx, &verifier, keys, count, bytes, stream)));
    TRY(verify_finish(&verifier, &ctx->comm, &found));
    struct_size_copy(result, &found);
    return HSORT_OK;
}

hsort_status hsort_check(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                         int64_t count, void *stream, hsort_check_result *result)
{
    TRY(context_enter(ctx));
    const hsort_status status = check_shards(ctx, type, order, keys, count, stream, result);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

/* ---- of a stream --------------------------------------------------------------------------------------- */

/* Feed the keys of a stream to a verifier, through KEPT_SCRATCH; *done: how many. Not collective. */
static hsort_status inspect_stream(hsort_context *ctx, struct verifier *verifier,
                                   const struct key_stream *stream, int64_t count, int64_t *done)
{
    struct engine *engine = ctx->engine;
    const int width = verifier->map.key_bytes;
    const int64_t room = (int64_t)(ctx->kept[KEPT_SCRATCH].bytes / (size_t)width);
    const int64_t part = lesser(room, STREAM_PART_BYTES / width);
    while (*done < count && stream->next(stream->user, *done, false)) {
        const int64_t more = lesser(count - *done, part);
        struct engine_transfer transfer = stream_transfer(stream, width, *done, more);
        transfer.memory = ctx->kept[KEPT_SCRATCH].memory;
        TRY(engine->ops->transfer(engine, &transfer, 1, NULL, 0));
        TRY(engine->ops->stream_synchronize(engine, STREAM_IN));
        TRY(verify_add(verifier, engine, ctx->kept[KEPT_SCRATCH].memory, more));
        *done += more;
    }
    return HSORT_OK;
}

hsort_status check_stream(hsort_context *ctx, hsort_type type, hsort_order order,
                          const struct key_stream *stream, int64_t count, hsort_check_result *result)
{
    struct verifier verifier;
    size_t bytes = (size_t)count * hsort_type_bytes(type);
    int64_t done = 0;
    TRY(context_enter(ctx));
    hsort_status status = context_piece_bytes(ctx, &bytes);
    keep_first_error(&status, context_unmap(ctx, ctx->kept[KEPT_SCRATCH].bytes < bytes));
    if (status == HSORT_OK)
        status = context_reserve(ctx, KEPT_SCRATCH, bytes);
    verify_start(&verifier, keymap_make(type, order));
    stream->begin(stream->user);
    if (status == HSORT_OK)
        status = inspect_stream(ctx, &verifier, stream, count, &done);
    status = context_agree(ctx, stream->end(stream->user, done, status));
    if (status == HSORT_OK)
        status = verify_finish(&verifier, &ctx->comm, result);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
