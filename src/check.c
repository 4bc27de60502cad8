#include <string.h>
#include "context.h"
#include "verify.h"

enum { PIECE_BYTES = 64 << 20 };

/* Feed keys that lie in host memory to an engine that cannot see them, in pieces through a buffer. */
static hsort_status add_in_pieces(hsort_context *ctx, struct verifier *verifier, const char *keys,
                                  int64_t count)
{
    const size_t width = (size_t)verifier->map.key_bytes;
    const int64_t piece = PIECE_BYTES / (int64_t)width;
    TRY(context_reserve(ctx, &ctx->buffer[0], &ctx->buffer_bytes[0], PIECE_BYTES));
    for (int64_t done = 0; done < count; done += piece) {
        int64_t now = count - done < piece ? count - done : piece;
        TRY(ctx->engine->ops->copy(ctx->engine, LANE_WORK, ctx->buffer[0], keys + (size_t)done * width,
                                   (size_t)now * width));
        TRY(verify_add(verifier, ctx->engine, ctx->buffer[0], now));
    }
    return HSORT_OK;
}

static hsort_status check_arguments(hsort_type type, hsort_order order, const void *keys, int64_t count,
                                    const hsort_check_result *result)
{
    if (!hsort_type_name(type))
        return status_fail(HSORT_ARGUMENT, "no key type %d", (int)type);
    if (order != HSORT_ASCENDING && order != HSORT_DESCENDING)
        return status_fail(HSORT_ARGUMENT, "no order %d", (int)order);
    if (count < 0 || count > INT64_MAX / 16 || (count > 0 && !keys))
        return status_fail(HSORT_ARGUMENT, "keys: a count of %lld at %p", (long long)count, keys);
    if (!result || result->struct_size != sizeof *result)
        return status_fail(HSORT_ARGUMENT, "result: its struct_size is not set");
    return HSORT_OK;
}

static hsort_status add_keys(hsort_context *ctx, struct verifier *verifier, const void *keys, int64_t count,
                             void *stream)
{
    enum engine_space space;
    TRY(ctx->engine->ops->follow(ctx->engine, stream));
    TRY(ctx->engine->ops->space_of(ctx->engine, count > 0 ? keys : NULL, &space));
    return space == SPACE_ENGINE ? verify_add(verifier, ctx->engine, keys, count)
                                 : add_in_pieces(ctx, verifier, keys, count);
}

hsort_status hsort_check(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                         int64_t count, void *stream, hsort_check_result *result)
{
    if (!ctx)
        return HSORT_ARGUMENT;
    context_enter(ctx);
    hsort_status status = context_finish(ctx, check_arguments(type, order, keys, count, result));
    if (status != HSORT_OK)
        return status;
    struct verifier verifier;
    verify_start(&verifier, type, order);
    if ((status = context_finish(ctx, add_keys(ctx, &verifier, keys, count, stream))) != HSORT_OK)
        return status;
    status = verify_finish(&verifier, &ctx->comm, result);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
