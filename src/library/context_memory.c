#include "src/library/context_memory.h"
#include "kernels/base/lesser.h"

size_t memory_need_bytes(const struct memory_need *need)
{
    size_t bytes = need->apart;
    for (int i = 0; i < KEPT_MEMORIES; i++)
        bytes += need->kept[i];
    return bytes;
}

size_t memory_need_growth(const hsort_context *ctx, const struct memory_need *need)
{
    size_t bytes = need->apart;
    for (int i = 0; i < KEPT_MEMORIES; i++)
        bytes += greater_bytes(need->kept[i], ctx->kept[i].bytes) - ctx->kept[i].bytes;
    return bytes;
}

bool memory_need_outgrows(const hsort_context *ctx, const struct memory_need *need)
{
    for (int i = 0; i < KEPT_MEMORIES; i++)
        if (i != KEPT_WORKSPACE && ctx->kept[i].memory && ctx->kept[i].bytes < need->kept[i])
            return true;
    return false;
}

size_t usable_bytes(size_t free_bytes)
{
    return free_bytes - free_bytes / 64;
}

size_t free_bytes_for(size_t usable)
{
    return usable + usable / 63 + 1;
}

hsort_status context_free_bytes(const hsort_context *ctx, size_t *bytes)
{
    TRY(ctx->engine->ops->memory_free(ctx->engine, bytes));
    if (ctx->info.gpu_sharers > 1 && ctx->options.device_memory_limit == 0) // each rank has a limit of its own
        *bytes /= (size_t)ctx->info.gpu_sharers;
    *bytes += spare_idle_bytes(&ctx->spare);
    return HSORT_OK;
}

hsort_status context_engine_bytes(const hsort_context *ctx, size_t *bytes)
{
    TRY(context_free_bytes(ctx, bytes));
    *bytes += context_kept_bytes(ctx);
    return HSORT_OK;
}

hsort_status context_has_room(const hsort_context *ctx, const struct memory_need *need, bool *has)
{
    const size_t growth = memory_need_growth(ctx, need);
    size_t bytes;
    *has = growth == 0;
    if (*has)
        return HSORT_OK;
    TRY(context_free_bytes(ctx, &bytes));
    *has = growth <= usable_bytes(bytes);
    return HSORT_OK;
}

hsort_status context_reserve(hsort_context *ctx, enum kept which, size_t bytes)
{
    return kept_reserve(&ctx->kept[which], &ctx->spare, bytes);
}

hsort_status context_free_idle(hsort_context *ctx, const struct memory_need *need)
{
    return spare_make_room(&ctx->spare, memory_need_growth(ctx, need) - need->apart);
}

hsort_status context_reserve_all(hsort_context *ctx, const struct memory_need *need)
{
    TRY(context_free_idle(ctx, need));
    for (int i = 0; i < KEPT_MEMORIES; i++)
        TRY(context_reserve(ctx, (enum kept)i, need->kept[i]));
    return HSORT_OK;
}

size_t context_kept_bytes(const hsort_context *ctx)
{
    size_t bytes = 0;
    for (int i = 0; i < KEPT_MEMORIES; i++)
        bytes += ctx->kept[i].bytes;
    return bytes;
}

void context_drop_all(hsort_context *ctx)
{
    for (int i = 0; i < KEPT_MEMORIES; i++)
        kept_drop(&ctx->kept[i], ctx->engine);
}
