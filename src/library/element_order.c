/* Codes have 8 bytes if key and position fit, else 16. Keys with more bits than 16 bytes have room for beside the position
 * are ordered in two stable rounds, by their lower 8 bytes first:
 *
 *     keys           2a 1b 2b 1a     each letter and digit stands for 8 bytes
 *     first round    a|0 a|3 b|1 b|2            positions     0 3 1 2
 *     second round   the digits in that order   2 1 1 2       codes 2|0 1|1 1|2 2|3
 *                    sorted                     1|1 1|2 2|0 2|3
 *     result         positions of the first round at 1 2 0 3:    3 1 0 2     keys 1a 1b 2a 2b
 */
#include "src/library/element_order.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "mpi/exchange/element_gather.h"
#include "src/library/context_memory.h"
#include "src/library/element_need.h"
#include "src/library/element_pairs.h"
#include "src/library/sort_codes.h"
#include "src/library/sort_memory.h"

/* ---- the plan ------------------------------------------------------------------------------------------ */

int element_position_bits(int64_t count)
{
    return count > 2 ? depth_of(count) : 1;
}

int element_code_bytes(int bits)
{
    return bits <= WORD_BITS ? 8 : 16;
}

static hsort_status make_offsets(struct element_order *order)
{
    const size_t entries = (size_t)order->ctx->comm.size + 1;
    order->in_offset = calloc(2 * entries, sizeof *order->in_offset);
    if (!order->in_offset || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the counts of %d ranks", order->ctx->comm.size);
    order->out_offset = order->in_offset + entries;
    return HSORT_OK;
}

int element_place_fields(struct key_field *fields, int field_count, int shift)
{
    for (int i = field_count - 1; i >= 0; i--) {
        fields[i].shift = shift;
        shift += 8 * fields[i].bytes;
    }
    return shift;
}

static hsort_status plan_order(struct element_order *order, hsort_status mine, uint64_t request)
{
    struct comm *comm = &order->ctx->comm;
    int64_t smallest, largest;
    stats_begin(order->ctx);
    order->ctx->spare.exact = false; // unless it turns out to be short
    keep_first_error(&mine, make_offsets(order));
    TRY(comm_agree(comm, mine));
    TRY(comm_range(comm, (int64_t)(request >> 1), &smallest, &largest));
    if (smallest != largest)
        return comm_agree(comm, status_fail(HSORT_ARGUMENT, "what is asked for differs between ranks"));
    TRY(comm_gather_offsets(comm, order->count, order->in_offset, NULL));
    TRY(comm_gather_offsets(comm, order->out_count, order->out_offset, NULL));
    order->total = order->in_offset[comm->size];
    order->key_bits = element_place_fields(order->fields, order->field_count, 0);
    order->position_bits = element_position_bits(order->total);
    order->in_two_rounds = order->key_bits + order->position_bits > ELEMENT_CODE_BITS;
    order->code_bytes = element_code_bytes(order->key_bits + order->position_bits);
    if (!order->in_two_rounds)
        element_place_fields(order->fields, order->field_count, order->position_bits);
    return HSORT_OK;
}

hsort_status element_order_plan(struct element_order *order, hsort_status mine, uint64_t request)
{
    struct trace_span *span = trace_begin(order->ctx->comm.trace, "plan");
    return trace_end_with(span, plan_order(order, mine, request));
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

/* One stable sort. */
struct order_round {
    const struct key_field *fields; /* of the elements that come */
    int field_count;
    int64_t first, count, out_count;
    const struct raw_keys
        *numbered;      /* the keys of which the sort makes codes; NULL: codes are made before */
    void *codes, *room; /* memory of the context, as they come and go: the same if the counts are equal */
    const void *sorted; /* where in the context the sort has left them */
    bool placed;        /* the sort has left positions instead, where they belong */
};

/* Bytes of codes, so that what follows them is aligned like memory of the engine. */
static size_t code_room(const struct element_order *order, int64_t count)
{
    return bytes_rounded_up((size_t)count * (size_t)order->code_bytes, ENGINE_ALIGNMENT);
}

/* Memory for the codes as they come and go, in the context. Collective. */
static hsort_status reserve_codes(struct element_order *order, struct order_round *round)
{
    hsort_context *ctx = order->ctx;
    const bool in_place = round->count == round->out_count;
    const size_t bytes = (size_t)round->count * (size_t)order->code_bytes;
    const size_t room = code_room(order, round->count);
    const size_t all = in_place ? bytes : room + (size_t)round->out_count * (size_t)order->code_bytes;
    const struct memory_need need = {.kept = {[KEPT_CODES] = all}};
    bool has_room = true;
    const hsort_status status = context_has_room(ctx, &need, &has_room);
    TRY(context_unmap(ctx, !has_room || memory_need_outgrows(ctx, &need)));
    if (!has_room) // what earlier calls have left is in the way of elements in engine memory
        context_drop_all(ctx);
    TRY(context_agree(ctx, status == HSORT_OK ? context_reserve_all(ctx, &need) : status));
    round->codes = ctx->kept[KEPT_CODES].memory;
    round->room = in_place ? round->codes : (char *)round->codes + room;
    return HSORT_OK;
}

/* Collective. */
static hsort_status sort_round(struct element_order *order, struct order_round *round)
{
    hsort_context *ctx = order->ctx;
    TRY(reserve_codes(order, round));
    if (!round->numbered)
        TRY(comm_agree(&ctx->comm,
                       ctx->engine->ops->make_codes(ctx->engine, order->code_bytes, round->codes,
                                                    round->count, round->fields, round->field_count,
                                                    order->position_bits, round->first)));
    return sort_codes(ctx, order->code_bytes, round->numbered, round->codes, round->count, round->room,
                      round->out_count, &round->sorted, &round->placed, order->stream);
}

/* to [out_count] = the positions in sorted codes, and keys, unless NULL, the keys of the only field. Not collective. */
static hsort_status split_codes(const struct element_order *order, const void *codes, int64_t *to, void *keys)
{
    struct engine *engine = order->ctx->engine;
    return engine->ops->split_codes(engine, order->code_bytes, codes, order->out_count, order->position_bits,
                                    to, order->fields[0].map, keys);
}

/* Does every rank bring as many elements as it asks for, and none more than its part? */
static bool are_spread_evenly(const struct element_order *order)
{
    const int size = order->ctx->comm.size;
    bool evenly = true;
    for (int rank = 0; rank < size; rank++) {
        const int64_t count = order->in_offset[rank + 1] - order->in_offset[rank];
        evenly = evenly && count <= divide_up(order->total, size);
    }
    return evenly &&
           memcmp(order->in_offset, order->out_offset, ((size_t)size + 1) * sizeof *order->in_offset) == 0;
}

/* Is the sort to make codes as it loads keys? A sort that moves keys before it sorts them could not. *numbers: the same on every
 * rank. Collective. */
static hsort_status codes_are_numbered(const struct element_order *order, bool *numbers)
{
    struct comm *comm = &order->ctx->comm;
    *numbers = false;
    if (order->field_count != 1 || order->fields[0].bytes != 4 || order->code_bytes != sizeof(uint64_t) ||
        order->total == 0 || comm_is_alone(comm) || !are_spread_evenly(order))
        return HSORT_OK;
    return comm_all(comm, element_order_has_bare_keys(order), numbers); // addresses may differ
}

static hsort_status find_in_one_round(struct element_order *order, void *keys)
{
    struct comm *comm = &order->ctx->comm;
    struct order_round round = {.fields = order->fields,
                                .field_count = order->field_count,
                                .first = order->in_offset[comm->rank],
                                .count = order->count,
                                .out_count = order->out_count};
    bool numbers, some_want = true;
    TRY(codes_are_numbered(order, &numbers));
    if (numbers) // positions alone come out if no rank wants the keys
        TRY(comm_any(comm, keys != NULL, &some_want));
    const struct raw_keys numbered = {.map = order->fields[0].map,
                                      .from = order->fields[0].from,
                                      .decode = !some_want,
                                      .position_bits = order->position_bits,
                                      .first = round.first,
                                      .positions = some_want ? NULL : order->positions};
    round.numbered = numbers ? &numbered : NULL;
    TRY(sort_round(order, &round));
    return round.placed ? HSORT_OK
                        : comm_agree(comm, split_codes(order, round.sorted, order->positions, keys));
}

/* ---- a rank alone ---------------------------------------------------------------------------------------- */

bool element_order_has_bare_keys(const struct element_order *order)
{
    const struct key_field *field = &order->fields[0];
    return order->field_count == 1 && field->map.key_bytes == field->bytes &&
           field->stride == (size_t)field->bytes && !field->big_endian && field->bytes >= 4 &&
           (uintptr_t)field->from % field->stride == 0;
}

/* Would the engine of a rank alone sort these pairs? */
static bool engine_takes_pairs(const struct element_order *order, const struct engine_pairs *pairs)
{
    const hsort_context *ctx = order->ctx;
    const struct engine_pair_ops *ops = ctx->engine->ops->pairs;
    return ops && comm_is_alone(&ctx->comm) && ctx->options.local_rung < 0 && order->count > 0 &&
           ops->can_sort(ctx->engine, pairs);
}

bool element_order_takes_pairs(const struct element_order *order, const struct engine_pairs *pairs)
{
    return element_order_has_bare_keys(order) && engine_takes_pairs(order, pairs);
}

hsort_status element_order_sort_pairs(const struct element_order *order, const struct engine_pairs *pairs)
{
    hsort_context *ctx = order->ctx;
    struct engine *engine = ctx->engine;
    size_t bytes;
    TRY(engine->ops->pairs->workspace(engine, pairs, &bytes));
    TRY(context_reserve(ctx, KEPT_WORKSPACE, bytes));
    TRY(engine->ops->pairs->sort(engine, pairs, ctx->kept[KEPT_WORKSPACE].memory));
    TRY(engine->ops->stream_synchronize(engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_LOCAL_SORT);
    return HSORT_OK;
}

/* *can: the engine sorts these keys with their positions, and has room for that beside `more` bytes of codes. Codes with positions
 * may do with less. */
static hsort_status can_sort_positions(struct element_order *order, const struct engine_pairs *pairs,
                                       size_t more, bool *can)
{
    hsort_context *ctx = order->ctx;
    struct memory_need need = {.kept = {[KEPT_CODES] = more}};
    *can = false;
    if (!engine_takes_pairs(order, pairs))
        return HSORT_OK;
    TRY(ctx->engine->ops->pairs->workspace(ctx->engine, pairs, &need.kept[KEPT_WORKSPACE]));
    return context_has_room(ctx, &need, can);
}

/* Keys that are one array, with their positions. keys: where they are wanted, or NULL. */
static struct engine_pairs pairs_of_positions(const struct element_order *order, void *keys)
{
    return (struct engine_pairs){.map = order->fields[0].map,
                                 .count = order->count,
                                 .keys = order->fields[0].from,
                                 .value_bytes = sizeof *order->positions,
                                 .keys_out = keys,
                                 .values_out = order->positions};
}

static hsort_status positions_beat_codes(const struct element_order *order, bool *beat)
{
    const struct engine_pairs pairs = pairs_of_positions(order, NULL);
    struct engine *engine = order->ctx->engine;
    *beat = false;
    return engine_takes_pairs(order, &pairs) ? engine->ops->pairs->beats_codes(engine, &pairs, beat)
                                             : HSORT_OK;
}

/* Keys travel as they are. */
static hsort_status sort_positions_alone(struct element_order *order, void *keys, bool *done)
{
    const struct engine_pairs pairs = pairs_of_positions(order, keys);
    TRY(can_sort_positions(order, &pairs, 0, done));
    return *done ? element_order_sort_pairs(order, &pairs) : HSORT_OK;
}

/* Fields of 8 bytes together, or less, become one array of codes first. That is faster than codes of 16 bytes with positions in
 * them: these are twice as long, and where keys repeat or cluster no two of these codes are equal. */
static hsort_status sort_field_codes_alone(struct element_order *order, bool *done)
{
    hsort_context *ctx = order->ctx;
    struct engine *engine = ctx->engine;
    const size_t code_bytes = (size_t)order->count * sizeof(uint64_t);
    struct key_field fields[HSORT_FIELDS_MAX];
    struct engine_pairs pairs = {.map = keymap_of_codes(sizeof(uint64_t)),
                                 .count = order->count,
                                 .value_bytes = sizeof *order->positions,
                                 .values_out = order->positions};
    TRY(can_sort_positions(order, &pairs, code_bytes, done));
    if (!*done)
        return HSORT_OK;
    TRY(context_reserve(ctx, KEPT_CODES, code_bytes));
    void *codes = ctx->kept[KEPT_CODES].memory;
    pairs.keys = codes;
    memcpy(fields, order->fields, sizeof fields);
    element_place_fields(fields, order->field_count, 0);
    TRY(engine->ops->make_codes(engine, sizeof(uint64_t), codes, order->count, fields, order->field_count, 0,
                                0));
    return element_order_sort_pairs(order, &pairs);
}

/* Let the engine make codes of 8 bytes as it loads keys, and store positions if nobody wants the keys. It does so only if there is
 * as much scratch as there are codes. */
static hsort_status sort_numbered_alone(struct element_order *order, void *keys, bool *done)
{
    hsort_context *ctx = order->ctx;
    struct engine *engine = ctx->engine;
    const int rung = sort_rung(ctx, order->code_bytes);
    const size_t room = code_room(order, order->count);
    struct memory_need need = {.kept = {[KEPT_CODES] = 2 * room}};
    const struct raw_keys raw = {.map = order->fields[0].map,
                                 .from = order->fields[0].from,
                                 .decode = keys == NULL,
                                 .position_bits = order->position_bits,
                                 .positions = keys ? NULL : order->positions};
    void *sorted;
    TRY(engine->ops->sort_workspace(engine, rung, order->code_bytes, order->count, order->count,
                                    &need.kept[KEPT_WORKSPACE]));
    TRY(context_has_room(ctx, &need, done));
    if (!*done)
        return HSORT_OK;
    TRY(context_reserve_all(ctx, &need));
    void *codes = ctx->kept[KEPT_CODES].memory;
    TRY(engine->ops->sort(engine, rung, order->code_bytes, codes, (char *)codes + room, order->count,
                          order->count, ctx->kept[KEPT_WORKSPACE].memory, &raw, &sorted));
    if (keys)
        TRY(split_codes(order, sorted, order->positions, keys));
    return engine->ops->stream_synchronize(engine, STREAM_WORK);
}

/* A rank alone needs no pass of its own to make codes with positions. If the keys are one array, the sort makes codes of 8 bytes,
 * which is faster than a stable sort. Instead of codes of 16 bytes, and of 8 where the engine expects that to be faster, positions
 * travel with keys. *done: the order is found. */
static hsort_status find_alone(struct element_order *order, void *keys, bool *done)
{
    const bool small = order->code_bytes == sizeof(uint64_t);
    *done = false;
    if (!comm_is_alone(&order->ctx->comm) || order->in_two_rounds || order->count == 0)
        return HSORT_OK;
    if (element_order_has_bare_keys(order)) {
        bool beat = true;
        if (small)
            TRY(positions_beat_codes(order, &beat));
        if (beat)
            TRY(sort_positions_alone(order, keys, done));
        return *done || !small ? HSORT_OK : sort_numbered_alone(order, keys, done);
    }
    if (!small && !keys && order->key_bits <= WORD_BITS)
        return sort_field_codes_alone(order, done);
    return HSORT_OK;
}

/* ---- two rounds ---------------------------------------------------------------------------------------- */

/* What lies between the two rounds, all in engine memory. */
struct between_rounds {
    struct element_array keys;  /* [count] of 16 bytes, without positions */
    struct element_array upper; /* [count] their upper 8 bytes; in the order of the first round [out_count] */
    struct element_array positions; /* [out_count] of the first round */
    struct element_array second;    /* [out_count] of the second round */
};

struct key_field element_word(const void *keys, int word, size_t stride, int shift)
{
    return (struct key_field){.from = keys ? (const char *)keys + 8 * (size_t)word : NULL,
                              .stride = stride,
                              .bytes = 8,
                              .map = keymap_of_codes(8),
                              .shift = shift};
}

static hsort_status take_between(struct element_order *order, struct between_rounds *b)
{
    hsort_context *ctx = order->ctx;
    const size_t out_bytes = (size_t)order->out_count * sizeof(int64_t);
    TRY(element_array_room(ctx, NULL, (size_t)order->count * sizeof(uint128), true, &b->keys));
    TRY(element_array_room(ctx, NULL, (size_t)order->count * sizeof(uint64_t), true, &b->upper));
    TRY(element_array_room(ctx, NULL, out_bytes, true, &b->positions));
    return element_array_room(ctx, NULL, out_bytes, true, &b->second);
}

/* to[i] = from[index[i]], of 8 bytes each, over all ranks. Collective. */
static hsort_status gather_words(struct element_order *order, const int64_t *offset, const void *from,
                                 const struct element_array *index, void *to)
{
    return element_carry(order->ctx, false, offset, index->memory, order->out_count, sizeof(uint64_t), from,
                         to);
}

/* Collective. */
static hsort_status run_first_round(struct element_order *order, struct between_rounds *b)
{
    hsort_context *ctx = order->ctx;
    const struct engine_ops *ops = ctx->engine->ops;
    const struct key_field lower = element_word(b->keys.memory, 0, sizeof(uint128), order->position_bits);
    const struct key_field upper = element_word(b->keys.memory, 1, sizeof(uint128), 0);
    struct order_round round = {.fields = &lower,
                                .field_count = 1,
                                .first = order->in_offset[ctx->comm.rank],
                                .count = order->count,
                                .out_count = order->out_count};
    hsort_status status = ops->make_codes(ctx->engine, sizeof(uint128), b->keys.memory, order->count,
                                          order->fields, order->field_count, 0, 0);
    keep_first_error(&status, ops->make_codes(ctx->engine, sizeof(uint64_t), b->upper.memory, order->count,
                                              &upper, 1, 0, 0));
    TRY(comm_agree(&ctx->comm, status));
    TRY(sort_round(order, &round));
    return comm_agree(&ctx->comm, split_codes(order, round.sorted, b->positions.memory, NULL));
}

/* Collective. */
static hsort_status run_second_round(struct element_order *order, struct between_rounds *b)
{
    hsort_context *ctx = order->ctx;
    void *gathered = order->positions; // they lie there until they are codes
    const struct key_field upper = element_word(gathered, 0, sizeof(uint64_t), order->position_bits);
    struct order_round round = {.fields = &upper,
                                .field_count = 1,
                                .first = order->out_offset[ctx->comm.rank],
                                .count = order->out_count,
                                .out_count = order->out_count};
    TRY(gather_words(order, order->in_offset, b->upper.memory, &b->positions, gathered));
    TRY(sort_round(order, &round));
    TRY(comm_agree(&ctx->comm, split_codes(order, round.sorted, b->second.memory, NULL)));
    return gather_words(order, order->out_offset, b->positions.memory, &b->second, order->positions);
}

static hsort_status find_in_two_rounds(struct element_order *order)
{
    hsort_context *ctx = order->ctx;
    struct between_rounds b = {0};
    hsort_status status = comm_agree(&ctx->comm, take_between(order, &b));
    if (status == HSORT_OK)
        status = run_first_round(order, &b);
    if (status == HSORT_OK)
        status = run_second_round(order, &b);
    element_array_free(ctx, &b.keys);
    element_array_free(ctx, &b.upper);
    element_array_free(ctx, &b.positions);
    element_array_free(ctx, &b.second);
    return status;
}

/* Carry the keys into order, because no code holds a whole key. keys NULL: this rank wants none. Collective. */
static hsort_status carry_keys(const struct element_order *order, void *keys)
{
    bool some_want;
    TRY(comm_any(&order->ctx->comm, keys != NULL, &some_want));
    return some_want ? element_carry(order->ctx, false, order->in_offset, order->positions,
                                     keys ? order->out_count : 0, (size_t)order->fields[0].bytes,
                                     order->fields[0].from, keys)
                     : HSORT_OK;
}

hsort_status element_order_find(struct element_order *order, int64_t *positions, void *keys)
{
    struct comm *comm = &order->ctx->comm;
    bool done;
    order->positions = positions;
    TRY(comm_agree(comm, find_alone(order, keys, &done)));
    if (!done)
        TRY(element_pairs_find_order(order, keys, &done));
    if (done)
        return HSORT_OK;
    if (!order->in_two_rounds)
        return find_in_one_round(order, keys);
    TRY(find_in_two_rounds(order));
    return carry_keys(order, keys);
}

/* ---- elements ------------------------------------------------------------------------------------------ */

/* What the exchange of the codes keeps was optional. It makes way for what must be had now. */
static void make_room_to_carry(hsort_context *ctx, int64_t count, size_t element_bytes)
{
    struct engine *engine = ctx->engine;
    const size_t slice = gather_slice_room((size_t)count * element_bytes);
    struct memory_need need = {.kept = {[KEPT_SLICE] = slice},
                               .apart = element_need_of_gather(ctx->comm.size, count, element_bytes) - slice};
    size_t workspace = 0;
    bool has = true;
    if (ctx->kept[KEPT_EXCHANGE].bytes == 0)
        return;
    hsort_status status =
        engine->ops->sort_workspace(engine, -1, (int)sizeof(key_code), count, count, &workspace);
    need.apart += workspace;
    if (status == HSORT_OK)
        status = context_has_room(ctx, &need, &has);
    if (status != HSORT_OK)
        status_clear(); // an engine that cannot be asked fails where memory is taken, on all ranks
    if (!has)
        kept_drop(&ctx->kept[KEPT_EXCHANGE], engine);
}

hsort_status element_carry(hsort_context *ctx, bool scatters, const int64_t *offset, const int64_t *index,
                           int64_t count, size_t element_bytes, const void *from, void *to)
{
    struct gather_slice slice = {.kept = &ctx->kept[KEPT_SLICE]};
    struct element_gather *gather;
    int64_t moved = 0;
    stats_book(ctx, HSORT_PHASE_LOCAL_SORT);
    make_room_to_carry(ctx, count, element_bytes);
    TRY(element_gather_open(&ctx->comm, &ctx->spare, &slice, ctx->transport, offset, index, count, &gather));
    const hsort_status status = element_gather_run(gather, scatters, element_bytes, from, to, &moved);
    element_gather_close(gather);
    stats_book(ctx, HSORT_PHASE_GATHER);
    return status;
}

void element_order_close(struct element_order *order)
{
    free(order->in_offset);
    order->in_offset = order->out_offset = NULL;
}
