/* Checks of pairs and of records: each rank looks at its elements, piece by piece where some of its arrays lie out of the
 * engine's reach, and tells the others what it has seen. Keys in engine memory, values and an index in host memory:
 *
 *     keys      | 0 1 2 3 | 4 5 6 7 | 8 9 |      where they are
 *     values      0 1 2 3                        each piece by way of the context's buffer, 64 MiB of all arrays together
 *     index       0 1 2 3
 *
 * Rejected: copies of whole arrays, as the sorts take them, because a check must fit beside what it checks. */
#include "kernels/base/lesser.h"
#include "src/library/context_memory.h"
#include "src/library/element_call.h"
#include "src/library/key_stream.h"
#include "src/library/struct_size.h"
#include "src/library/verify.h"

enum { INDEX = ENGINE_ELEMENT_PARTS, ARRAYS };

struct element_check {
    struct element_order order; /* counts, offsets and fields; nothing is sorted */
    const void *array[ARRAYS];  /* the caller's parts and index; or NULL */
    size_t bytes[ARRAYS];       /* of an element in each */
    bool in_reach[ARRAYS];      /* the engine reads it where it is */
    size_t place[ARRAYS];       /* else: where in the buffer its piece lies */
    int64_t piece;              /* elements at a time */
    size_t buffer_bytes;
};

/* ---- before anything is looked at ------------------------------------------------------------------------ */

static hsort_status check_arrays(const struct element_check *c, const hsort_check_result *result)
{
    const hsort_context *ctx = c->order.ctx;
    const bool pairs = c->bytes[1] > 0;
    TRY(element_check_bytes(c->bytes[pairs]));
    TRY(element_check_array(ctx, pairs ? "keys" : "records", c->array[0], c->order.count,
                            pairs ? c->bytes[0] : 1));
    if (pairs)
        TRY(element_check_array(ctx, "values", c->array[1], c->order.count, 1));
    if (c->array[INDEX])
        TRY(element_check_array(ctx, "index", c->array[INDEX], c->order.count, sizeof(int64_t)));
    return result && STRUCT_SIZE_IS_KNOWN(hsort_check_result, result->struct_size)
               ? HSORT_OK
               : status_fail(HSORT_ARGUMENT,
                             "result: is NULL, or its struct_size is not that of an hsort_check_result");
}

/* Lay out a buffer for pieces of c->piece elements; if there are none, it has no bytes. */
static void lay_out(struct element_check *c)
{
    c->buffer_bytes = 0;
    for (int i = 0; i < ARRAYS; i++) {
        c->place[i] = c->buffer_bytes;
        if (!c->in_reach[i])
            c->buffer_bytes += bytes_rounded_up((size_t)c->piece * c->bytes[i], ENGINE_ALIGNMENT);
    }
}

/* Find how many elements a piece has: fewer if there is less memory. Not collective. */
static hsort_status plan_check_pieces(struct element_check *c)
{
    hsort_context *ctx = c->order.ctx;
    const int64_t count = c->order.count;
    size_t row = 0, most;
    for (int i = 0; i < ARRAYS; i++) {
        enum engine_space space;
        TRY(ctx->engine->ops->space_of(ctx->engine, count > 0 ? c->array[i] : NULL, &space));
        c->in_reach[i] = space == SPACE_ENGINE || c->bytes[i] == 0;
        row += c->in_reach[i] ? 0 : c->bytes[i];
    }
    c->piece = row == 0 ? count : lesser(count, STREAM_PART_BYTES / (int64_t)row);
    lay_out(c);
    if (c->buffer_bytes <= ctx->kept[KEPT_SCRATCH].bytes)
        return HSORT_OK;
    TRY(context_engine_bytes(ctx, &most));
    while (c->buffer_bytes > most && c->piece > 1) {
        c->piece /= 2;
        lay_out(c);
    }
    return HSORT_OK; // if one element does not fit, context_reserve() fails
}

/* ---- the check ------------------------------------------------------------------------------------------- */

/* Have `some` elements of an array, from element `done` on, where the engine reads them: where they lie, or in the buffer. */
static hsort_status bring_piece(const struct element_check *c, int which, int64_t done, int64_t some,
                                const void **memory)
{
    hsort_context *ctx = c->order.ctx;
    *memory = NULL;
    if (c->bytes[which] == 0) // the array may be NULL, and so may the buffer
        return HSORT_OK;
    const char *from = (const char *)c->array[which] + (size_t)done * c->bytes[which];
    *memory = from;
    if (c->in_reach[which])
        return HSORT_OK;
    void *to = (char *)ctx->kept[KEPT_SCRATCH].memory + c->place[which];
    *memory = to;
    return ctx->engine->ops->copy(ctx->engine, STREAM_WORK, to, from, (size_t)some * c->bytes[which]);
}

/* The next elements. Not collective. */
static hsort_status look_at_piece(const struct element_check *c, int64_t done, int64_t some,
                                  struct verifier *verifier)
{
    const struct element_order *order = &c->order;
    hsort_context *ctx = order->ctx;
    const void *index;
    struct engine_elements elements = {.count = some,
                                       .field_count = order->field_count,
                                       .first = order->in_offset[ctx->comm.rank] + done,
                                       .step = 1};
    for (int part = 0; part < ENGINE_ELEMENT_PARTS; part++) {
        TRY(bring_piece(c, part, done, some, &elements.part[part]));
        elements.part_bytes[part] = c->bytes[part];
    }
    TRY(bring_piece(c, INDEX, done, some, &index));
    elements.index = index;
    for (int i = 0; i < order->field_count; i++) {
        elements.field[i] = order->fields[i];
        elements.field[i].from = (const char *)elements.part[0] + order->offsets[i];
        elements.field[i].stride = c->bytes[0];
    }
    return verify_add_elements(verifier, ctx->engine, &elements);
}

/* Not collective. */
static hsort_status look_at_all(const struct element_check *c, struct verifier *verifier)
{
    hsort_context *ctx = c->order.ctx;
    TRY(context_wait_caller(ctx, c->order.stream, SPACE_HOST)); // some of the arrays may lie there
    TRY(context_reserve(ctx, KEPT_SCRATCH, c->buffer_bytes));
    for (int64_t done = 0, some; done < c->order.count; done += some) {
        some = lesser(c->order.count - done, c->piece);
        TRY(look_at_piece(c, done, some, verifier));
    }
    return HSORT_OK;
}

/* mine: this rank's status so far. Collective. */
static hsort_status run_check(struct element_check *c, hsort_status mine, hsort_check_result *result)
{
    hsort_context *ctx = c->order.ctx;
    struct verifier verifier;
    hsort_check_result found;
    if (mine == HSORT_OK)
        mine = check_arrays(c, result);
    c->order.out_count = c->order.count;
    TRY(element_order_plan(&c->order, mine, element_request(&c->order, 3 * c->bytes[0] + c->bytes[1])));
    TRY(comm_agree(&ctx->comm, plan_check_pieces(c)));
    const struct memory_need need = {.kept = {[KEPT_SCRATCH] = c->buffer_bytes}};
    bool has_room = true;
    TRY(comm_agree(&ctx->comm, context_has_room(ctx, &need, &has_room)));
    TRY(context_unmap(ctx, !has_room || memory_need_outgrows(ctx, &need)));
    if (!has_room) // what other calls have left goes
        context_drop_all(ctx);
    verify_start(&verifier, c->order.fields[0].map);
    TRY(context_agree(ctx, look_at_all(c, &verifier)));
    TRY(verify_finish(&verifier, &ctx->comm, &found));
    struct_size_copy(result, &found);
    return HSORT_OK;
}

static hsort_status element_check(struct element_check *c, hsort_status mine, hsort_check_result *result)
{
    const hsort_status status = run_check(c, mine, result);
    element_order_close(&c->order);
    return status == HSORT_OK ? HSORT_OK : context_fail(c->order.ctx, status);
}

hsort_status hsort_check_pairs(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                               const void *values, size_t value_bytes, int64_t count, const int64_t *index,
                               void *stream, hsort_check_result *result)
{
    TRY(context_enter(ctx));
    struct element_check c = {.order = {.ctx = ctx, .stream = stream, .count = count},
                              .array = {keys, values, index},
                              .bytes = {hsort_type_bytes(type), value_bytes, index ? sizeof *index : 0}};
    const hsort_field field = {.type = type, .order = order};
    hsort_status status = element_take_key(&c.order, &field);
    keep_first_error(&status, element_check_bytes(value_bytes));
    return element_check(&c, status, result);
}

hsort_status hsort_check_records(hsort_context *ctx, const void *records, size_t record_bytes,
                                 const hsort_field *fields, int field_count, int64_t count,
                                 const int64_t *index, void *stream, hsort_check_result *result)
{
    TRY(context_enter(ctx));
    struct element_check c = {.order = {.ctx = ctx, .stream = stream, .count = count},
                              .array = {records, NULL, index},
                              .bytes = {record_bytes, 0, index ? sizeof *index : 0}};
    hsort_status status = element_check_bytes(record_bytes);
    if (status == HSORT_OK)
        status = element_take_fields(&c.order, fields, field_count, record_bytes);
    return element_check(&c, status, result);
}
