#include "src/library/element_array.h"

static hsort_status space_of_array(hsort_context *ctx, const void *callers, size_t bytes,
                                   enum engine_space *space)
{
    return ctx->engine->ops->space_of(ctx->engine, bytes > 0 ? callers : NULL, space);
}

hsort_status element_array_load(hsort_context *ctx, const void *callers, size_t bytes,
                                struct element_array *array)
{
    const struct engine_ops *ops = ctx->engine->ops;
    enum engine_space space;
    TRY(space_of_array(ctx, callers, bytes, &space));
    *array =
        (struct element_array){.memory = (void *)callers, .bytes = bytes, .owned = space != SPACE_ENGINE};
    if (!array->owned)
        return HSORT_OK;
    array->memory = NULL;
    TRY(spare_take(&ctx->spare, bytes, &array->memory));
    // The host's cores copy ordinary memory at once, but the caller's stream may still write to it.
    if (space == SPACE_HOST)
        TRY(ops->stream_synchronize(ctx->engine, STREAM_WORK));
    return ops->copy(ctx->engine, STREAM_WORK, array->memory, callers, bytes);
}

hsort_status element_array_room(hsort_context *ctx, void *callers, size_t bytes, bool apart,
                                struct element_array *array)
{
    enum engine_space space;
    TRY(space_of_array(ctx, callers, bytes, &space));
    *array = (struct element_array){.memory = callers,
                                    .callers = callers,
                                    .bytes = bytes,
                                    .owned = apart || !callers || space != SPACE_ENGINE};
    if (!array->owned)
        return HSORT_OK;
    array->memory = NULL;
    return spare_take(&ctx->spare, bytes, &array->memory);
}

hsort_status element_array_deliver(hsort_context *ctx, const struct element_array *array)
{
    if (!array->owned || !array->callers || array->bytes == 0)
        return HSORT_OK;
    return ctx->engine->ops->copy(ctx->engine, STREAM_WORK, array->callers, array->memory, array->bytes);
}

void element_array_free(hsort_context *ctx, struct element_array *array)
{
    if (array->owned)
        spare_give(&ctx->spare, array->memory);
    *array = (struct element_array){0};
}
