#include "src/library/narrow_counts.h"
#include <stdlib.h>
#include "kernels/base/lesser.h"
#include "src/library/sort_stream.h"

size_t narrow_table_bytes(int key_bytes)
{
    return ((size_t)1 << 8 * key_bytes) * (sizeof(int64_t) + (size_t)key_bytes);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static hsort_status take_host_tables(struct narrow_counts *n)
{
    n->own = calloc(3 * (size_t)n->values, sizeof *n->own);
    if (!n->own || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the counts of %lld different keys",
                           (long long)n->values);
    n->all = n->own + n->values;
    n->ends = n->all + n->values;
    return HSORT_OK;
}

/* Other ranks have unmapped what grows or is freed. */
static hsort_status take_engine_memory(struct narrow_counts *n, size_t piece_bytes, bool drops)
{
    hsort_context *ctx = n->ctx;
    if (drops)
        context_drop_all(ctx);
    TRY(context_reserve(ctx, KEPT_WORKSPACE, narrow_table_bytes(n->map.key_bytes)));
    TRY(context_piece_bytes(ctx, &piece_bytes));
    TRY(context_reserve(ctx, KEPT_SCRATCH, piece_bytes));
    n->table = ctx->kept[KEPT_WORKSPACE].memory;
    return HSORT_OK;
}

hsort_status narrow_open(struct narrow_counts *n, size_t piece_bytes)
{
    hsort_context *ctx = n->ctx;
    bool has_room = true;
    n->values = INT64_C(1) << 8 * n->map.key_bytes;
    piece_bytes = lesser_bytes(piece_bytes, STREAM_PART_BYTES);
    const struct memory_need need = {
        .kept = {[KEPT_WORKSPACE] = narrow_table_bytes(n->map.key_bytes), [KEPT_SCRATCH] = piece_bytes}};
    hsort_status status = take_host_tables(n);
    keep_first_error(&status, context_has_room(ctx, &need, &has_room));
    keep_first_error(&status, context_unmap(ctx, !has_room || memory_need_outgrows(ctx, &need)));
    if (status == HSORT_OK)
        status = take_engine_memory(n, piece_bytes, !has_room);
    return context_agree(ctx, status);
}

void narrow_close(struct narrow_counts *n)
{
    free(n->own);
    n->own = n->all = n->ends = NULL;
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

int64_t narrow_piece(const struct narrow_counts *n, const struct narrow_keys *keys)
{
    const size_t bytes = lesser_bytes(n->ctx->kept[KEPT_SCRATCH].bytes, STREAM_PART_BYTES);
    return !keys->stream && keys->space == SPACE_ENGINE ? keys->count
                                                        : (int64_t)(bytes / (size_t)n->map.key_bytes);
}

struct engine_transfer narrow_transfer(const struct narrow_counts *n, const struct narrow_keys *keys,
                                       int64_t first, int64_t count)
{
    const int key_bytes = n->map.key_bytes;
    struct engine_transfer transfer = {.bytes = (size_t)(count * key_bytes),
                                       .host = (char *)keys->memory + first * key_bytes};
    if (keys->stream)
        transfer = stream_transfer(keys->stream, key_bytes, first, count);
    transfer.memory = n->ctx->kept[KEPT_SCRATCH].memory;
    return transfer;
}

/* Have a piece where the engine reaches it. */
static hsort_status bring_counted_piece(struct narrow_counts *n, const struct narrow_keys *keys, int64_t first,
                                int64_t count, const void **piece)
{
    struct engine *engine = n->ctx->engine;
    const double began = MPI_Wtime();
    *piece = keys->memory;
    if (!keys->stream && keys->space == SPACE_ENGINE)
        return HSORT_OK;
    const struct engine_transfer transfer = narrow_transfer(n, keys, first, count);
    *piece = transfer.memory;
    TRY(engine->ops->transfer(engine, &transfer, 1, NULL, 0));
    TRY(engine->ops->stream_synchronize(engine, STREAM_IN));
    n->copy_seconds += keys->stream ? 0 : MPI_Wtime() - began; // a stream's time is not the sort's
    return HSORT_OK;
}

static hsort_status count_piece(struct narrow_counts *n, const void *piece, int64_t count)
{
    struct engine *engine = n->ctx->engine;
    const double began = MPI_Wtime();
    TRY(engine->ops->count_keys(engine, n->map.key_bytes, piece, count, n->table));
    TRY(engine->ops->stream_synchronize(engine, STREAM_WORK)); // the next piece comes to the same place
    n->count_seconds += MPI_Wtime() - began;
    return HSORT_OK;
}

hsort_status narrow_count(struct narrow_counts *n, const struct narrow_keys *keys, int64_t *done)
{
    struct engine *engine = n->ctx->engine;
    const int64_t most = narrow_piece(n, keys);
    const size_t bytes = (size_t)n->values * sizeof *n->own;
    const void *piece;
    *done = 0;
    TRY(engine->ops->copy(engine, STREAM_WORK, n->table, n->own, bytes)); // which is all 0
    while (*done < keys->count && (!keys->stream || keys->stream->next(keys->stream->user, *done, false))) {
        const int64_t more = lesser(keys->count - *done, most);
        TRY(bring_counted_piece(n, keys, *done, more, &piece));
        TRY(count_piece(n, piece, more));
        *done += more;
    }
    TRY(engine->ops->copy(engine, STREAM_WORK, n->own, n->table, bytes));
    return engine->ops->stream_synchronize(engine, STREAM_WORK);
}

/* ---- all ranks ----------------------------------------------------------------------------------------- */

hsort_status narrow_sum(struct narrow_counts *n)
{
    int64_t end = 0;
    TRY(comm_sums(&n->ctx->comm, n->own, (int)n->values, n->all));
    for (int64_t code = 0; code < n->values; code++)
        n->ends[code] = end += n->all[(int64_t)keymap_decode(n->map, (key_code)code)];
    return HSORT_OK;
}

uint64_t narrow_key_at(const struct narrow_counts *n, int64_t position)
{
    return (uint64_t)keymap_decode(n->map, (key_code)first_above(n->ends, n->values - 1, position));
}
