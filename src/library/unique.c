/* One key of each run of equal keys. A run may go on over several ranks; it belongs to the one where it begins. Ranks tell
 * each other twice what lies at their borders:
 *
 *     keys         rank 0: 5 5 7     rank 1: 7 7     rank 2: none     rank 3: 7 9
 *     last key     7                 7               -                9          rank 3 looks past rank 2, to rank 1
 *     heads        2, first at 0     none            none             1, first at 6
 *     kept         5 7               none            none             9
 *     counts       2 4               none            none             1          7 ends where the next head is
 *     ids          0 0 1             1 1             none             1 2 */
#include <stdlib.h>
#include <string.h>
#include "src/library/element_call.h"
#include "src/library/host_call.h"
#include "src/library/unique_codes.h"

enum { OUTPUTS = 4 };

/* A result of the caller's. */
struct unique_output {
    const char *name;
    void *callers; /* or NULL */
    size_t bytes;  /* of an element */
    bool by_key;   /* an element for each key; otherwise for each run that begins here */
    struct element_array room;
};

struct unique_call {
    struct element_order order; /* counts and offsets; one field */
    hsort_field field;
    const void *keys;
    int64_t *kept;
    struct unique_output out[OUTPUTS]; /* keys_out, first, counts, ids */
    struct element_array loaded;
    struct engine_runs runs;
    key_code before;
    uint64_t *words; /* [2 * size] of all ranks, owned */
    key_code last;   /* this rank's last key */
};

/* ---- before anything is searched ------------------------------------------------------------------------- */

/* Does an output keep clear of the keys, and of the outputs before it? */
static hsort_status check_output(const struct unique_call *call, int which)
{
    const size_t count = (size_t)call->order.count;
    const struct unique_output *out = &call->out[which];
    if (!out->callers)
        return HSORT_OK;
    TRY(element_check_array(call->order.ctx, out->name, out->callers, call->order.count, out->bytes));
    const bool in_place = which == 0 && out->callers == call->keys;
    if (!in_place && element_overlap(out->callers, count * out->bytes, call->keys, count * call->out[0].bytes))
        return status_fail(HSORT_ARGUMENT, "%s and keys overlap", out->name);
    for (const struct unique_output *other = call->out; other < out; other++)
        if (other->callers && element_overlap(out->callers, count * out->bytes, other->callers, count * other->bytes))
            return status_fail(HSORT_ARGUMENT, "%s and %s overlap", out->name, other->name);
    return HSORT_OK;
}

static hsort_status check_unique(struct unique_call *call)
{
    TRY(element_take_key(&call->order, &call->field));
    const size_t bytes = (size_t)call->order.fields[0].bytes;
    call->out[0].bytes = bytes;
    TRY(element_check_array(call->order.ctx, "keys", call->keys, call->order.count, bytes));
    for (int i = 0; i < OUTPUTS; i++)
        TRY(check_output(call, i));
    return call->kept ? HSORT_OK : status_fail(HSORT_ARGUMENT, "kept is NULL");
}

/* Have the keys, and find the last one. Not collective. */
static hsort_status take_unique_memory(struct unique_call *call)
{
    const struct element_order *order = &call->order;
    hsort_context *ctx = order->ctx;
    const int key_bytes = order->fields[0].bytes;
    const int64_t end = order->count - 1;
    call->words = calloc(KEY_CODE_WORDS * (size_t)ctx->comm.size, sizeof *call->words);
    if (!call->words || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the runs of %d ranks", ctx->comm.size);
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, order->stream));
    TRY(element_array_load(ctx, call->keys, (size_t)order->count * (size_t)key_bytes, &call->loaded));
    if (order->count > 0) // waits
        TRY(ctx->engine->ops->gather(ctx->engine, key_bytes, call->loaded.memory, &end, 1, &call->last));
    stats_book(ctx, HSORT_PHASE_H2D);
    return HSORT_OK;
}

/* ---- what lies at the borders ---------------------------------------------------------------------------- */

/* From the last key of each rank, in words [2 * size]: the key before this rank's first one, if there is one. */
static void find_before(struct unique_call *call)
{
    const int64_t *offset = call->order.in_offset;
    int rank = call->order.ctx->comm.rank - 1;
    while (rank >= 0 && offset[rank] == offset[rank + 1])
        rank--;
    if (rank < 0)
        return;
    memcpy(&call->before, call->words + KEY_CODE_WORDS * rank, sizeof call->before);
    call->runs.before = &call->before;
}

/* Count the runs that begin here, and have room for them. Not collective. */
static hsort_status count_runs(struct unique_call *call)
{
    const struct element_order *order = &call->order;
    hsort_context *ctx = order->ctx;
    struct engine_runs *runs = &call->runs;
    runs->key_bytes = order->fields[0].bytes;
    runs->keys = call->loaded.memory;
    runs->count = order->count;
    runs->position = order->in_offset[ctx->comm.rank];
    stats_book(ctx, HSORT_PHASE_EXCHANGE);
    TRY(ctx->engine->ops->count_runs(ctx->engine, runs));
    for (int i = 0; i < OUTPUTS; i++) {
        struct unique_output *out = &call->out[i];
        const size_t entries = (size_t)(out->by_key ? order->count : runs->found);
        if (out->callers)
            TRY(element_array_room(ctx, out->callers, entries * out->bytes, out->callers == call->keys,
                                   &out->room));
    }
    stats_book(ctx, HSORT_PHASE_LOCAL_SORT);
    return HSORT_OK;
}

/* From the heads of each rank and the position of the first one, in words [2 * size]: which number this rank's first run
 * has, and where its last one ends. */
static void find_neighbours(struct unique_call *call)
{
    const struct comm *comm = &call->order.ctx->comm;
    call->runs.first_id = 0;
    for (int rank = 0; rank < comm->rank; rank++)
        call->runs.first_id += (int64_t)call->words[2 * rank];
    call->runs.end = call->order.total;
    for (int rank = comm->size - 1; rank > comm->rank; rank--)
        if (call->words[2 * rank] > 0)
            call->runs.end = (int64_t)call->words[2 * rank + 1];
}

/* Not collective. */
static hsort_status write_runs(struct unique_call *call)
{
    hsort_context *ctx = call->order.ctx;
    struct engine_runs *runs = &call->runs;
    runs->unique = call->out[0].room.memory;
    runs->first = call->out[1].room.memory;
    runs->counts = call->out[2].room.memory;
    runs->ids = call->out[3].room.memory;
    stats_book(ctx, HSORT_PHASE_EXCHANGE);
    TRY(ctx->engine->ops->write_runs(ctx->engine, runs));
    stats_book(ctx, HSORT_PHASE_LOCAL_SORT);
    for (int i = 0; i < OUTPUTS; i++)
        TRY(element_array_deliver(ctx, &call->out[i].room));
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_D2H);
    return HSORT_OK;
}

/* ---- the call -------------------------------------------------------------------------------------------- */

/* mine: this rank's status so far. Collective. */
static hsort_status run_unique(struct unique_call *call, hsort_status mine)
{
    struct comm *comm = &call->order.ctx->comm;
    uint64_t last[KEY_CODE_WORDS];
    TRY(element_order_plan(&call->order, mine, element_request(&call->order, 0)));
    TRY(comm_agree(comm, take_unique_memory(call)));
    memcpy(last, &call->last, sizeof last);
    TRY(comm_gather_words(comm, last, KEY_CODE_WORDS, call->words));
    find_before(call);
    TRY(comm_agree(comm, count_runs(call)));
    const uint64_t heads[2] = {(uint64_t)call->runs.found,
                               (uint64_t)(call->runs.position + call->runs.first_head)};
    TRY(comm_gather_words(comm, heads, 2, call->words));
    find_neighbours(call);
    TRY(comm_agree(comm, write_runs(call)));
    *call->kept = call->runs.found;
    return stats_finish(call->order.ctx, call->order.total);
}

static hsort_status unique_again(hsort_context *ctx, const void *user);

/* Collective. */
static hsort_status find_unique(struct unique_call *call)
{
    hsort_context *ctx = call->order.ctx;
    TRY(context_enter(ctx));
    struct trace_span *span = trace_begin(ctx->comm.trace, "find equal keys");
    const hsort_status status = trace_end_with(span, run_unique(call, check_unique(call)));
    struct host_call again = {
        .arrays = {call->keys}, .stream = call->order.stream, .run = unique_again, .call = call};
    element_array_free(ctx, &call->loaded);
    for (int i = 0; i < OUTPUTS; i++) {
        again.arrays[1 + i] = call->out[i].callers;
        element_array_free(ctx, &call->out[i].room);
    }
    if (call->out[0].callers == call->keys)
        again.bytes = (size_t)call->order.count * call->out[0].bytes;
    free(call->words);
    element_order_close(&call->order);
    return host_call_finish(ctx, status, &again);
}

/* A new call: what its caller gave, and nothing found yet. */
static struct unique_call unique_call_of(hsort_context *ctx, hsort_field field, const void *keys,
                                         int64_t count, void *keys_out, int64_t *kept, int64_t *counts,
                                         int64_t *first, int64_t *ids)
{
    return (struct unique_call){
        .order = {.ctx = ctx, .count = count, .out_count = count},
        .field = field,
        .keys = keys,
        .kept = kept,
        .out = {{.name = "keys_out", .callers = keys_out},
                {.name = "first", .callers = first, .bytes = sizeof *first},
                {.name = "counts", .callers = counts, .bytes = sizeof *counts},
                {.name = "ids", .callers = ids, .bytes = sizeof *ids, .by_key = true}}};
}

static hsort_status unique_again(hsort_context *ctx, const void *user)
{
    const struct unique_call *call = user;
    struct unique_call again = {
        .order = {.ctx = ctx, .count = call->order.count, .out_count = call->order.out_count},
        .field = call->field,
        .keys = call->keys,
        .kept = call->kept};
    memcpy(again.out, call->out, sizeof again.out); // the room of each has been given back
    return find_unique(&again);
}

hsort_status hsort_unique(hsort_context *ctx, hsort_type type, const void *keys, int64_t count,
                          void *keys_out, int64_t *kept, int64_t *counts, int64_t *first, int64_t *ids,
                          void *stream)
{
    struct unique_call call =
        unique_call_of(ctx, (hsort_field){.type = type}, keys, count, keys_out, kept, counts, first, ids);
    call.order.stream = stream;
    return find_unique(&call);
}

hsort_status unique_codes(hsort_context *ctx, int code_bytes, const void *codes, int64_t count, int64_t *kept,
                          int64_t *counts, int64_t *first)
{
    struct unique_call call = unique_call_of(ctx, (hsort_field){.bytes = code_bytes}, codes, count, NULL,
                                             kept, counts, first, NULL);
    return find_unique(&call);
}
