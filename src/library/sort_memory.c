/* The memory of a sort: what it takes from its context, what it borrows from the caller, and what it can do
 * without. */
#include "src/library/sort_memory.h"
#include "mpi/comm/node_memory.h"

/* From this shard size on, the ranks of a node ask whether there is memory for all of them. */
enum { NODE_CHECK_BYTES = 1 << 20 };

/* Bytes of engine memory for the three things that a sort keeps in its context. */
struct sort_sizes {
    size_t keys, scratch, workspace;
};

/* The sizes with room for `scratch` keys in the second buffer. */
static hsort_status size_for(const struct sort *s, int64_t scratch, struct sort_sizes *sizes)
{
    hsort_context *ctx = s->ctx;
    sizes->scratch = (size_t)scratch * (size_t)s->map.key_bytes;
    return ctx->engine->ops->sort_workspace(ctx->engine, ctx->options.local_rung, s->map.key_bytes,
                                            s->capacity, scratch, &sizes->workspace);
}

/* Does the caller's output serve as the keys' buffer? */
static bool lends(const struct sort *s)
{
    return s->out_space == SPACE_ENGINE && s->out_count >= s->capacity && s->out_count > 0;
}

bool sort_outgrows(const struct sort *s)
{
    const hsort_context *ctx = s->ctx;
    const size_t bytes = (size_t)s->capacity * (size_t)s->map.key_bytes;
    return (ctx->buffer[0] && ctx->buffer_bytes[0] < bytes) ||
           (ctx->buffer[1] && ctx->buffer_bytes[1] < bytes && !lends(s));
}

static size_t growth(size_t have, size_t want)
{
    return want > have ? want - have : 0;
}

/* Bytes that the context's memory grows by. */
static size_t total_growth(const hsort_context *ctx, const struct sort_sizes *sizes)
{
    return growth(ctx->buffer_bytes[1], sizes->keys) + growth(ctx->buffer_bytes[0], sizes->scratch) +
           growth(ctx->workspace_bytes, sizes->workspace);
}

/* Can all ranks of this node have the host memory that they want? Not asked for GPU memory, which is each
 * rank's own, nor for small shards. Collective over the node. */
static hsort_status check_node_memory(const struct sort *s, const struct sort_sizes *sizes)
{
    const bool small = s->capacity < NODE_CHECK_BYTES / s->map.key_bytes;
    if (small || hsort_engine_in_use(s->ctx) != HSORT_ENGINE_HOST)
        return HSORT_OK;
    return node_memory_check(&s->ctx->comm, total_growth(s->ctx, sizes));
}

static hsort_status has_memory(const struct sort *s, const struct sort_sizes *sizes, bool *enough)
{
    hsort_context *ctx = s->ctx;
    size_t free_bytes = 0;
    const size_t grows = total_growth(ctx, sizes);
    if (grows > 0) // the system is not asked before each of many small sorts
        TRY(ctx->engine->ops->memory_free(ctx->engine, &free_bytes));
    *enough = grows <= free_bytes;
    return HSORT_OK;
}

/* A rank that is alone has no exchange: its second buffer is only scratch for the local sort, which can do
 * with less. Take as large a part of the capacity as there is memory for. Not none at all, though a network
 * could do with that: keys that fill memory to the last hundredth are rather a count that is wrong. What
 * earlier sorts left goes, and the keys' own buffer comes first. */
static hsort_status take_less(struct sort *s, struct sort_sizes *sizes)
{
    hsort_context *ctx = s->ctx;
    size_t free_bytes;
    context_drop(ctx, &ctx->workspace, &ctx->workspace_bytes);
    context_drop(ctx, &ctx->buffer[0], &ctx->buffer_bytes[0]);
    if (sizes->keys == 0)
        context_drop(ctx, &ctx->buffer[1], &ctx->buffer_bytes[1]);
    TRY(context_reserve(ctx, &ctx->buffer[1], &ctx->buffer_bytes[1], sizes->keys));
    TRY(ctx->engine->ops->memory_free(ctx->engine, &free_bytes));
    // Not the last byte: allocations are rounded up, and the engine's own kernels want some memory too.
    const size_t most = free_bytes - free_bytes / 64;
    for (int chunks = 1; chunks <= ENGINE_CHUNKS_MAX; chunks++) {
        const int64_t part = s->capacity / chunks + (s->capacity % chunks != 0);
        // A little more than a part: of a random run of two parts, one changes sides, more or less, and
        // should fit.
        s->scratch_keys = chunks == 1 ? part : part + part / 64;
        TRY(size_for(s, s->scratch_keys, sizes));
        if (sizes->scratch + sizes->workspace <= most)
            return HSORT_OK;
    }
    return HSORT_OK; // the smallest part; if that does not fit either, its allocation says so
}

hsort_status sort_reserve(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const bool lent = lends(s);
    struct sort_sizes sizes = {.keys = lent ? 0 : (size_t)s->capacity * (size_t)s->map.key_bytes};
    bool enough = true;
    s->scratch_keys = s->capacity;
    const hsort_status sized = size_for(s, s->scratch_keys, &sizes);
    if (!comm_is_alone(&ctx->comm)) // also after a failure: the other ranks wait there
        TRY(check_node_memory(s, &sizes));
    TRY(sized);
    if (comm_is_alone(&ctx->comm))
        TRY(has_memory(s, &sizes, &enough));
    if (!enough)
        TRY(take_less(s, &sizes));
    TRY(context_reserve(ctx, &ctx->workspace, &ctx->workspace_bytes, sizes.workspace));
    TRY(context_reserve(ctx, &ctx->buffer[0], &ctx->buffer_bytes[0], sizes.scratch));
    TRY(context_reserve(ctx, &ctx->buffer[1], &ctx->buffer_bytes[1], sizes.keys));
    s->x = (struct exchange){.comm = &ctx->comm,
                             .engine = ctx->engine,
                             .transport = ctx->transport,
                             .key_bytes = s->map.key_bytes,
                             .capacity = s->capacity,
                             .keys = lent ? s->out : ctx->buffer[1],
                             .scratch = ctx->buffer[0],
                             .workspace = ctx->workspace, // the local sort is done with it by then
                             .workspace_bytes = ctx->workspace_bytes,
                             .chunk_bytes = ctx->options.chunk_bytes,
                             .count = s->in_count};
    return HSORT_OK;
}

hsort_status sort_reserve_exchange(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    if (!s->raw_exchange)
        return HSORT_OK;
    const struct exchange_ops *ops = s->raw_exchange;
    const size_t bytes = ops->memory_bytes ? ops->memory_bytes(ctx->engine, s->map.key_bytes, s->capacity) : 0;
    fault_pause(true); // a failure here is none of the sort's
    const bool mine = context_reserve(ctx, &ctx->exchange_memory, &ctx->exchange_bytes, bytes) == HSORT_OK;
    fault_pause(false);
    int64_t all, some;
    TRY(comm_range(&ctx->comm, mine, &all, &some));
    if (!mine)
        status_clear(); // no error: there are other ways
    if (!all)
        s->raw_exchange = NULL;
    s->x.memory = ctx->exchange_memory;
    return HSORT_OK;
}

hsort_status hsort_workspace(const hsort_context *ctx, hsort_type type, int64_t count, size_t *bytes)
{
    const size_t width = hsort_type_bytes(type);
    if (!ctx || !bytes || width == 0 || count < 0 || count > INT64_MAX / 16)
        return HSORT_ARGUMENT;
    size_t workspace_bytes;
    TRY(ctx->engine->ops->sort_workspace(ctx->engine, ctx->options.local_rung, (int)width, count, count,
                                         &workspace_bytes));
    *bytes = 2 * (size_t)count * width + workspace_bytes;
    for (int i = 0; i < EXCHANGES; i++) {
        const struct exchange_ops *ops = exchange_table[i];
        if (ctx->usable_exchanges >> ops->kind & 1 && ops->memory_bytes)
            *bytes += ops->memory_bytes(ctx->engine, (int)width, count);
    }
    return HSORT_OK;
}
