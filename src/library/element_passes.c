/* Whether elements fit is found out before anything is taken. All the engine memory that the call takes at a time,
 *
 *     arrays      copies of what comes, room for what goes; the index
 *     codes       as they come and go; buffers and workspace of their sort
 *     carrying    of several ranks, the lists of element_gather.h and two slices
 *     pairs       of a rank alone whose values travel with their keys: no codes and no index, but the workspace of that
 *
 * is compared with what there is, including what nobody uses. The estimate is rather too large than too small: two passes sort as well.
 *
 * Elements of several columns are joined and taken apart by the functions of two streams (key_stream.h), on the way
 * between the caller's memory and pinned slots. */
#include "src/library/element_passes.h"
#include <string.h>
#include "kernels/base/lesser.h"
#include "mpi/comm/node_memory.h"
#include "src/library/element_call.h"
#include "src/library/element_need.h"
#include "src/library/sort_memory.h"
#include "src/library/two_passes.h"

enum { SMALL_BYTES = 64 << 20 /* of elements: so few fit any GPU */ };

/* ---- what one pass takes ------------------------------------------------------------------------------- */

static size_t element_bytes_of(const struct element_columns *columns)
{
    size_t bytes = 0;
    for (int i = 0; i < columns->count; i++)
        bytes += columns->column[i].bytes;
    return bytes;
}

/* Bytes of arrays in engine memory. For an array that is sorted in place, the room for the result is apart. */
static size_t array_bytes(const struct element_order *order, const struct element_columns *columns)
{
    size_t bytes = 0;
    for (int i = 0; i < columns->count; i++) {
        const struct element_column *column = &columns->column[i];
        bytes += column->numbers ? 0 : (size_t)order->count * column->bytes;
        bytes += column->out || columns->sink ? (size_t)order->out_count * column->bytes : 0;
    }
    return bytes;
}

/* element_workspace_fn. */
static hsort_status workspace_of_context(void *context, int rung, int key_bytes, int64_t keys, size_t *bytes)
{
    struct engine *engine = ((hsort_context *)context)->engine;
    return engine->ops->sort_workspace(engine, rung, key_bytes, keys, keys, bytes);
}

/* What one pass takes by codes. */
static hsort_status need_codes(const struct element_order *order, size_t carried, struct memory_need *need)
{
    hsort_context *ctx = order->ctx;
    const struct element_sizes sizes = {.ranks = ctx->comm.size,
                                        .total = order->total,
                                        .count = order->count,
                                        .out_count = order->out_count,
                                        .code_bytes = order->code_bytes,
                                        .rung = sort_rung(ctx, order->code_bytes),
                                        .in_two_rounds = order->in_two_rounds,
                                        .carried_bytes = carried};
    struct element_need of;
    TRY(element_need_find(&sizes, workspace_of_context, ctx, &of));
    *need = (struct memory_need){.kept = {[KEPT_KEYS] = of.buffer,
                                          [KEPT_SCRATCH] = of.buffer,
                                          [KEPT_WORKSPACE] = of.workspace,
                                          [KEPT_CODES] = of.codes,
                                          [KEPT_SLICE] = of.slice},
                                 .apart = of.index + of.apart};
    return HSORT_OK;
}

/* What one pass takes. Of what the context keeps, pairs take only workspace. */
static hsort_status find_need(const struct element_order *order, const struct element_columns *columns,
                              struct memory_need *need)
{
    struct engine *engine = order->ctx->engine;
    *need = (struct memory_need){0};
    TRY(columns->pairs ? engine->ops->pairs->workspace(engine, columns->pairs, &need->kept[KEPT_WORKSPACE])
                       : need_codes(order, columns->carried_bytes, need));
    need->apart += array_bytes(order, columns);
    return HSORT_OK;
}

/* Is that more than there is, including all that the context keeps? */
static hsort_status takes_two_passes(const hsort_context *ctx, const struct memory_need *need, bool *takes)
{
    size_t bytes;
    TRY(context_engine_bytes(ctx, &bytes));
    *takes = memory_need_bytes(need) > usable_bytes(bytes);
    return HSORT_OK;
}

/* Blocks that nobody has are counted as free. If the rest does not suffice, no block may go to a request for less than all of it. */
static hsort_status share_out_blocks(hsort_context *ctx, const struct memory_need *need)
{
    size_t bytes;
    TRY(context_free_bytes(ctx, &bytes));
    ctx->spare.exact = memory_need_growth(ctx, need) > bytes - spare_idle_bytes(&ctx->spare);
    return HSORT_OK;
}

/* ---- the choice ---------------------------------------------------------------------------------------- */

/* Find where the arrays of this rank lie. Arrays without an element have no say in whether all are in host memory. */
static hsort_status find_spaces(const struct element_order *order, struct element_columns *columns,
                                bool *in_host)
{
    struct engine *engine = order->ctx->engine;
    *in_host = true;
    for (int i = 0; i < columns->count; i++) {
        struct element_column *column = &columns->column[i];
        const void *in = order->count > 0 ? column->in : NULL,
                   *out = order->out_count > 0 ? column->out : NULL;
        TRY(engine->ops->space_of(engine, in, &column->in_space));
        TRY(engine->ops->space_of(engine, out, &column->out_space));
        *in_host = *in_host && (!in || column->in_space != SPACE_ENGINE) &&
                   (!out || column->out_space != SPACE_ENGINE);
    }
    return HSORT_OK;
}

/* The part of array_bytes() that the caller has in engine memory already. */
static size_t near_bytes(const struct element_order *order, const struct element_columns *columns)
{
    size_t bytes = 0;
    for (int i = 0; i < columns->count; i++) {
        const struct element_column *column = &columns->column[i];
        const bool comes = column->in && column->in_space == SPACE_ENGINE;
        const bool goes = column->out && column->out_space == SPACE_ENGINE && column->out != column->in;
        bytes += (comes ? (size_t)order->count * column->bytes : 0) +
                 (goes ? (size_t)order->out_count * column->bytes : 0);
    }
    return bytes;
}

/* Does the context keep what is of no use to this call? If not, the system is not asked for room, because that takes time. */
static bool keeps_more(const hsort_context *ctx, const struct memory_need *need)
{
    return context_kept_bytes(ctx) + memory_need_growth(ctx, need) > memory_need_bytes(need);
}

/* Do the elements of each rank have less than so many bytes? Pure. */
static bool are_few(const struct element_order *order, const struct element_columns *columns, int64_t bytes)
{
    return most_of_ranks(order->ctx->comm.size, order->in_offset, order->out_offset) <
           bytes / (int64_t)element_bytes_of(columns);
}

/* Free what other sorts have left, if it is in the way of this one. Collective. */
static hsort_status make_room_for_elements(hsort_context *ctx, bool has_room)
{
    TRY(context_unmap(ctx, !has_room));
    if (!has_room)
        context_drop_all(ctx);
    return HSORT_OK;
}

/* The memory of the host engine that a sort by codes takes for certain, and does not have yet. Equal counts are sorted in place, and
 * may lend their sort its first buffer; lists that carry elements are not counted. An upper bound would refuse what fits. */
static hsort_status least_growth(const struct element_order *order, const struct element_columns *columns,
                                 size_t *bytes)
{
    const hsort_context *ctx = order->ctx;
    struct memory_need need;
    TRY(need_codes(order, 0, &need));
    need.apart += array_bytes(order, columns) - near_bytes(order, columns);
    need.kept[KEPT_KEYS] = 0;
    if (order->count == order->out_count)
        need.kept[KEPT_CODES] /= 2;
    need.apart -= lesser_bytes(need.apart, spare_idle_bytes(&ctx->spare));
    *bytes = memory_need_growth(ctx, &need);
    return HSORT_OK;
}

/* Can all ranks of this node have the host memory that they want? Without a limit no other code asks. Collective. */
static hsort_status check_host_memory(const struct element_order *order, struct element_columns *columns)
{
    size_t bytes = 0;
    bool in_host;
    hsort_status status = find_spaces(order, columns, &in_host);
    if (status == HSORT_OK)
        status = least_growth(order, columns, &bytes);
    keep_first_error(&status, node_memory_check(&order->ctx->comm, bytes));
    return comm_agree(&order->ctx->comm, status);
}

/* Do the callers ask for as many elements as they bring? Collective. */
static hsort_status check_total(const struct element_order *order)
{
    struct comm *comm = &order->ctx->comm;
    const int64_t wanted = order->out_offset[comm->size];
    return wanted == order->total
               ? HSORT_OK
               : comm_agree(comm, status_fail(HSORT_ARGUMENT, "%lld elements in, but room for %lld asked for",
                                              (long long)order->total, (long long)wanted));
}

hsort_status element_passes_choose(const struct element_order *order, struct element_columns *columns,
                                   int *passes)
{
    hsort_context *ctx = order->ctx;
    const bool limited = ctx->options.device_memory_limit > 0,
               on_host = hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST;
    struct memory_need need = {0};
    bool mine = true, takes_two = false, has_room = true, in_place;
    *passes = 1;
    TRY(check_total(order));
    // As in sort_choose_passes(): the same on every rank.
    if (order->total == 0 || (!limited && are_few(order, columns, on_host ? NODE_CHECK_BYTES : SMALL_BYTES)))
        return HSORT_OK;
    if (!limited && on_host)
        return check_host_memory(order, columns);
    hsort_status status = find_spaces(order, columns, &mine);
    if (status == HSORT_OK)
        status = find_need(order, columns, &need);
    if (status == HSORT_OK)
        need.apart -= near_bytes(order, columns);
    if (status == HSORT_OK && mine)
        status = takes_two_passes(ctx, &need, &takes_two);
    if (status == HSORT_OK && (mine || keeps_more(ctx, &need)))
        status = context_has_room(ctx, &need, &has_room);
    if (status == HSORT_OK && mine)
        status = share_out_blocks(ctx, &need);
    const struct passes_answer answer = {.on_host = mine, .elsewhere = !mine, .lacks = takes_two};
    TRY(sort_agree_on_passes(&ctx->comm, &answer, status, passes, &in_place));
    return *passes == 1 ? make_room_for_elements(ctx, has_room) : HSORT_OK;
}

/* ---- columns, and elements of all of them ---------------------------------------------------------------- */

/* The user of both streams. */
struct column_stream {
    const struct element_columns *columns;
    size_t element_bytes;
    int64_t first; /* global position of this rank's first element, as they come */
};

/* Bytes begin .. end - 1 of what a column has of element i, from or to `host`. */
static void move_part(const struct column_stream *stream, const struct element_column *column, int64_t i,
                      size_t begin, size_t end, char *host, bool out)
{
    const int64_t number = stream->first + i;
    const size_t at = (size_t)i * column->bytes + begin;
    if (out && column->out)
        memcpy((char *)column->out + at, host, end - begin);
    else if (!out)
        memcpy(host, column->numbers ? (const char *)&number + begin : (const char *)column->in + at,
               end - begin);
}

/* Bytes at .. at + bytes - 1 of all elements, the first and the last of which may be cut. */
static void move_columns(const struct column_stream *stream, int64_t at, size_t bytes, char *host, bool out)
{
    int64_t i = at / (int64_t)stream->element_bytes;
    size_t begin = (size_t)at % stream->element_bytes;
    for (size_t done = 0; done < bytes; i++, begin = 0) {
        size_t base = 0; // of the column in the element
        for (int c = 0; c < stream->columns->count && done < bytes; c++) {
            const struct element_column *column = &stream->columns->column[c];
            const size_t from = begin > base ? begin - base : 0;
            if (from < column->bytes) {
                const size_t rest = column->bytes - from, some = rest < bytes - done ? rest : bytes - done;
                move_part(stream, column, i, from, from + some, host + done, out);
                done += some;
            }
            base += column->bytes;
        }
    }
}

static hsort_status join_columns(void *user, int64_t at, size_t bytes, void *host)
{
    move_columns(user, at, bytes, host, false);
    return HSORT_OK;
}

static hsort_status part_columns(void *user, int64_t at, size_t bytes, void *host)
{
    move_columns(user, at, bytes, host, true);
    return HSORT_OK;
}

/* Calls for which a stream of memory has nothing to do. */
static void begin_columns(void *user)
{
    (void)user;
}

static bool next_columns(void *user, int64_t done, bool together)
{
    (void)user, (void)done, (void)together;
    return true;
}

static size_t lead_of_columns(void *user, int64_t at)
{
    (void)user, (void)at;
    return 0;
}

static hsort_status end_columns(void *user, int64_t done, hsort_status mine)
{
    (void)user, (void)done;
    return mine;
}

static struct key_stream stream_of_columns(struct column_stream *user,
                                           hsort_status (*move)(void *user, int64_t at, size_t bytes,
                                                                void *host))
{
    return (struct key_stream){.user = user,
                               .begin = begin_columns,
                               .next = next_columns,
                               .move = move,
                               .lead = lead_of_columns,
                               .end = end_columns};
}

/* ---- the sort ------------------------------------------------------------------------------------------- */

static struct pass_elements pass_elements_of(const struct element_order *order, size_t bytes)
{
    struct pass_elements elements = {.bytes = bytes, .field_count = order->field_count};
    memcpy(elements.fields, order->fields, sizeof elements.fields);
    memcpy(elements.offsets, order->offsets, sizeof elements.offsets);
    elements.key_bits = element_place_fields(elements.fields, elements.field_count, 0);
    return elements;
}

hsort_status element_passes_run(const struct element_order *order, const struct element_columns *columns)
{
    hsort_context *ctx = order->ctx;
    const size_t positions = ((size_t)ctx->comm.size + 1) * sizeof *ctx->have_offset;
    const struct pass_elements elements = pass_elements_of(order, element_bytes_of(columns));
    struct column_stream user = {
        .columns = columns, .element_bytes = elements.bytes, .first = order->in_offset[ctx->comm.rank]};
    const struct key_stream source = stream_of_columns(&user, join_columns);
    const struct key_stream sink = stream_of_columns(&user, part_columns);
    struct sort s = {.ctx = ctx,
                     .elements = &elements,
                     .in_count = order->count,
                     .out_count = order->out_count,
                     .stream = order->stream,
                     .in_space = SPACE_HOST,
                     .out_space = SPACE_HOST,
                     .total = order->total};
    memcpy(ctx->have_offset, order->in_offset, positions);
    memcpy(ctx->want_offset, order->out_offset, positions);
    if (columns->source) {
        s.source = columns->source;
        s.sink = columns->sink;
        s.store = columns->store;
        s.check = columns->check;
    } else if (columns->count > 1) {
        s.source = &source;
        s.sink = &sink;
    } else {
        const struct element_column *column = &columns->column[0];
        s.in = column->in;
        s.out = column->out;
        s.in_space = column->in_space;
        s.out_space = column->out_space;
    }
    TRY(sort_elements_in_passes(&s));
    return stats_finish(ctx, order->total);
}

/* ---- the call of the command ------------------------------------------------------------------------------ */

static hsort_status run_columns(struct element_order *order, const hsort_field *fields, int field_count,
                                struct element_columns *columns, bool *done)
{
    int passes;
    const hsort_status mine = element_take_fields(order, fields, field_count, element_bytes_of(columns));
    TRY(element_order_plan(order, mine, element_request(order, element_bytes_of(columns))));
    if (columns->store)
        passes = 2;
    else
        TRY(element_passes_choose(order, columns, &passes));
    *done = passes == 2;
    return *done ? element_passes_run(order, columns) : HSORT_OK;
}

/* Does this rank lack host memory: with the host engine, for columns and all that their sort takes; with a GPU, for columns or
 * their runs? */
static hsort_status lacks_host_memory(const struct element_order *order, struct element_columns *columns,
                                      size_t memory_bytes, bool *lacks)
{
    const bool on_host = hsort_engine_in_use(order->ctx) == HSORT_ENGINE_HOST;
    const size_t share = (size_t)greater(order->count, order->out_count) * element_bytes_of(columns);
    struct memory_need need;
    bool takes_two = false;
    TRY(check_total(order));
    TRY(find_need(order, columns, &need));
    if (!on_host)
        TRY(takes_two_passes(order->ctx, &need, &takes_two));
    *lacks = (on_host ? memory_need_bytes(&need) : takes_two ? share : 2 * share) > memory_bytes;
    return HSORT_OK;
}

static hsort_status choose_columns_store(struct element_order *order, const hsort_field *fields,
                                         int field_count, struct element_columns *columns,
                                         size_t memory_bytes, bool *needs)
{
    struct comm *comm = &order->ctx->comm;
    bool lacks = false;
    const hsort_status mine = element_take_fields(order, fields, field_count, element_bytes_of(columns));
    TRY(element_order_plan(order, mine, element_request(order, element_bytes_of(columns))));
    TRY(comm_agree(comm, lacks_host_memory(order, columns, memory_bytes, &lacks)));
    return comm_any(comm, lacks && order->total > 0, needs);
}

hsort_status columns_need_store(hsort_context *ctx, const hsort_field *fields, int field_count,
                                struct element_columns *columns, int64_t count, size_t memory_bytes,
                                bool *needs)
{
    TRY(context_enter(ctx));
    struct element_order order = {.ctx = ctx, .count = count, .out_count = count};
    *needs = false;
    const hsort_status status =
        choose_columns_store(&order, fields, field_count, columns, memory_bytes, needs);
    element_order_close(&order);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

hsort_status sort_columns_in_passes(hsort_context *ctx, const hsort_field *fields, int field_count,
                                    struct element_columns *columns, int64_t count, int64_t out_count,
                                    bool *done)
{
    TRY(context_enter(ctx));
    struct element_order order = {.ctx = ctx, .count = count, .out_count = out_count};
    *done = false;
    const hsort_status status = run_columns(&order, fields, field_count, columns, done);
    element_order_close(&order);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}
