#include "src/library/element_pairs.h"
#include <string.h>
#include "mpi/exchange/pair_partition.h"
#include "src/library/context_memory.h"

/* Does it pay for so many bytes on a rank? It takes as many steps as bare keys do, which cost less than carrying values after a sort. */
static bool do_pairs_pay(const hsort_context *ctx, int64_t bytes)
{
    return hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA && bytes >= PAIRS_BYTES_MIN;
}

/* Is the exchange wanted? The same on every rank. */
static bool is_wanted(const struct element_order *order, int bytes_of_pair)
{
    const hsort_context *ctx = order->ctx;
    const int64_t capacity = order->total / ctx->comm.size + 1;
    if (comm_is_alone(&ctx->comm) || !(ctx->usable_exchanges >> HSORT_EXCHANGE_PARTITION & 1))
        return false;
    return ctx->options.exchange == HSORT_EXCHANGE_PARTITION ||
           (ctx->options.exchange == HSORT_EXCHANGE_AUTO && ctx->options.local_rung < 0 &&
            do_pairs_pay(ctx, capacity * bytes_of_pair));
}

/* Have the memory, which other ranks may map. Collective. */
static hsort_status reserve_for_pairs(hsort_context *ctx, const struct memory_need *need)
{
    TRY(context_unmap(ctx, memory_need_outgrows(ctx, need)));
    return comm_agree(&ctx->comm, context_reserve_all(ctx, need));
}

/* Codes [count] of 8 bytes of all fields, in the context. */
static hsort_status make_field_codes(const struct element_order *order)
{
    hsort_context *ctx = order->ctx;
    struct key_field fields[HSORT_FIELDS_MAX];
    memcpy(fields, order->fields, sizeof fields);
    element_place_fields(fields, order->field_count, 0);
    return ctx->engine->ops->make_codes(ctx->engine, sizeof(uint64_t), ctx->kept[KEPT_CODES].memory,
                                        order->count, fields, order->field_count, 0, 0);
}

/* Sort pairs of several ranks. x: all but its memory is set. mine: this rank can. codes: keys are to be codes of all fields, which
 * are not there yet. Collective. */
static hsort_status sort_pairs(const struct element_order *order, struct pair_partition *x, bool mine,
                               bool codes, bool *done)
{
    hsort_context *ctx = order->ctx;
    struct pair_partition_need of = {0};
    struct memory_need need = {0};
    bool fits = false;
    hsort_status status = HSORT_OK;
    if (mine && pair_partition_can(x, &of)) {
        need = (struct memory_need){
            .kept = {[KEPT_SCRATCH] = of.shown, [KEPT_KEYS] = of.own, [KEPT_WORKSPACE] = of.workspace}};
        need.kept[KEPT_CODES] = codes ? (size_t)order->count * sizeof(uint64_t) : 0;
        status = context_has_room(ctx, &need, &fits);
    }
    TRY(comm_agree(&ctx->comm, status));
    TRY(comm_all(&ctx->comm, fits, done));
    if (!*done)
        return HSORT_OK;
    TRY(reserve_for_pairs(ctx, &need));
    if (codes) {
        x->pairs.keys = ctx->kept[KEPT_CODES].memory;
        TRY(comm_agree(&ctx->comm, make_field_codes(order)));
    }
    x->shown = ctx->kept[KEPT_SCRATCH].memory;
    x->own = ctx->kept[KEPT_KEYS].memory;
    x->workspace = ctx->kept[KEPT_WORKSPACE].memory;
    struct trace_span *span = trace_begin(ctx->comm.trace, "partition pairs");
    TRY(context_agree(ctx, trace_end_with(span, pair_partition_run(x, done))));
    stats_book(ctx, HSORT_PHASE_EXCHANGE);
    if (*done)
        ctx->exchange = HSORT_EXCHANGE_PARTITION;
    return HSORT_OK;
}

static struct pair_partition partition_of(const struct element_order *order, struct engine_pairs pairs)
{
    hsort_context *ctx = order->ctx;
    return (struct pair_partition){.comm = &ctx->comm,
                                   .engine = ctx->engine,
                                   .transport = ctx->transport,
                                   .pairs = pairs,
                                   .in_offset = order->in_offset,
                                   .out_offset = order->out_offset};
}

hsort_status element_pairs_sort(const struct element_order *order, const struct engine_pairs *pairs,
                                bool mine, bool *done)
{
    struct pair_partition x = partition_of(order, *pairs);
    *done = false;
    return is_wanted(order, order->fields[0].bytes + pairs->value_bytes)
               ? sort_pairs(order, &x, mine, false, done)
               : HSORT_OK;
}

/* Sort by keys as they are, if those of all ranks are one array of numbers, or by codes of all fields, if these fit and no rank wants
 * the keys back. x: all but its pairs and memory is set. keys: room for the keys, or NULL. positions: values_out. Collective. */
static hsort_status sort_any_keys(const struct element_order *order, struct pair_partition *x, void *keys,
                                  int64_t *positions, bool *done)
{
    struct comm *comm = &order->ctx->comm;
    const int bytes = order->fields[0].bytes;
    bool bare, fields;
    TRY(comm_all(comm, element_order_has_bare_keys(order) && (bytes == 4 || bytes == 8), &bare));
    TRY(comm_all(comm, !keys && order->key_bits <= WORD_BITS, &fields));
    x->pairs = (struct engine_pairs){.map = bare ? order->fields[0].map : keymap_of_codes(sizeof(uint64_t)),
                                     .count = order->count,
                                     .keys = order->fields[0].from,
                                     .value_bytes = sizeof *positions,
                                     .keys_out = bare ? keys : NULL,
                                     .values_out = positions};
    return bare || fields ? sort_pairs(order, x, true, !bare, done) : HSORT_OK;
}

hsort_status element_pairs_carry(const struct element_order *order, void *keys, size_t element_bytes,
                                 const void *elements, void *to, bool *done)
{
    struct pair_partition x = partition_of(order, (struct engine_pairs){0});
    *done = false;
    if (order->key_bits > WORD_BITS || !is_wanted(order, (int)(sizeof(uint64_t) + element_bytes)))
        return HSORT_OK;
    x.element_bytes = element_bytes;
    x.elements = elements;
    x.elements_out = to;
    return sort_any_keys(order, &x, keys, NULL, done);
}

hsort_status element_pairs_find_order(const struct element_order *order, void *keys, bool *done)
{
    struct pair_partition x = partition_of(order, (struct engine_pairs){0});
    *done = false;
    if (order->in_two_rounds || order->code_bytes == (int)sizeof(uint64_t) ||
        !is_wanted(order, 2 * (int)sizeof(uint64_t)))
        return HSORT_OK;
    return sort_any_keys(order, &x, keys, order->positions, done);
}
