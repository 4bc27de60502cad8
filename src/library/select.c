/* Which keys lie at given positions of the result of a sort: each rank sorts a copy of its keys, and all ranks bisect the
 * codes together, for all positions at once. Three keys of two ranks, position 2 of all:
 *
 *     sorted      rank 0: 1 5      rank 1: 3
 *     round       is it one of the codes up to 3?      1 + 1 keys are: no, there have to be more than 2
 *                                        up to 5?      2 + 1 keys are: yes
 *                                        up to 4?      1 + 1: no                       so it is 5
 *
 * Rejected: counting unsorted keys, which takes a pass over them for every few bits. For keys of 1 and 2 bytes, however, one pass
 * finds how often each of them occurs, and that says all. */
#include <stdlib.h>
#include <string.h>
#include "kernels/base/checksum.h"
#include "kernels/base/key_width.h"
#include "src/library/element_call.h"
#include "src/library/host_call.h"
#include "src/library/narrow_counts.h"
#include "src/library/sort_memory.h"

struct selection {
    struct element_order order; /* counts and offsets; one field */
    const void *keys;
    const int64_t *positions;
    int64_t wanted;
    void *selected;
    hsort_type type;
    hsort_order direction;
    struct element_array loaded, copy, scratch, workspace;
    const void *sorted; /* [count] codes */

    key_code *probe, *least, *most; /* [wanted] the code lies in least .. most */
    int64_t *less, *not_greater;    /* [wanted] of this rank, and then of all */
};

/* ---- before anything is sorted --------------------------------------------------------------------------- */

/* The same number for the same positions, on all ranks. */
static uint64_t position_checksum(const struct selection *s)
{
    return checksum_add(CHECKSUM_START, s->positions, (size_t)s->wanted * sizeof *s->positions);
}

static hsort_status check_selection(const struct selection *s)
{
    TRY(element_check_array(s->order.ctx, "positions", s->positions, s->wanted, sizeof *s->positions));
    TRY(element_check_array(s->order.ctx, "selected", s->selected, s->wanted, 1));
    const size_t width = (size_t)s->order.fields[0].bytes, wanted = (size_t)s->wanted;
    const struct element_extent arrays[] = {
        {"keys", s->keys, (size_t)s->order.count * width, false, -1},
        {"positions", s->positions, wanted * sizeof *s->positions, false, -1},
        {"selected", s->selected, wanted * width, true, -1}};
    return element_check_apart(arrays, sizeof arrays / sizeof *arrays);
}

static hsort_status check_positions(const struct selection *s)
{
    for (int64_t i = 0; i < s->wanted; i++)
        if (s->positions[i] < 0 || s->positions[i] >= s->order.total)
            return status_fail(HSORT_ARGUMENT, "no position %lld: there are %lld keys, the first at 0",
                               (long long)s->positions[i], (long long)s->order.total);
    return HSORT_OK;
}

static hsort_status take_selection_memory(struct selection *s)
{
    const struct element_order *order = &s->order;
    hsort_context *ctx = order->ctx;
    const int width = order->fields[0].bytes;
    const size_t bytes = (size_t)order->count * (size_t)width, entries = (size_t)s->wanted + 1;
    size_t workspace_bytes;
    s->probe = calloc(3 * entries, sizeof *s->probe);
    s->less = calloc(2 * entries, sizeof *s->less);
    if (!s->probe || !s->less || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory to select %lld keys", (long long)s->wanted);
    s->least = s->probe + entries;
    s->most = s->least + entries;
    s->not_greater = s->less + entries;
    TRY(ctx->engine->ops->stream_wait_caller(ctx->engine, order->stream));
    TRY(ctx->engine->ops->sort_workspace(ctx->engine, sort_rung(ctx, width), width, order->count,
                                         order->count, &workspace_bytes));
    TRY(element_array_load(ctx, s->keys, bytes, &s->loaded));
    TRY(element_array_room(ctx, NULL, bytes, true, &s->copy));
    TRY(element_array_room(ctx, NULL, bytes, true, &s->scratch));
    TRY(element_array_room(ctx, NULL, workspace_bytes, true, &s->workspace));
    TRY(ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
    stats_book(ctx, HSORT_PHASE_H2D);
    return HSORT_OK;
}

static hsort_status sort_copy(struct selection *s)
{
    const struct element_order *order = &s->order;
    struct engine *engine = order->ctx->engine;
    const int width = order->fields[0].bytes;
    const struct raw_keys raw = {.map = order->fields[0].map, .from = s->loaded.memory};
    void *sorted = s->copy.memory;
    if (order->count > 0)
        TRY(engine->ops->sort(engine, sort_rung(order->ctx, width), width, s->copy.memory, s->scratch.memory,
                              order->count, order->count, s->workspace.memory, &raw, &sorted));
    s->sorted = sorted;
    TRY(engine->ops->stream_synchronize(engine, STREAM_WORK));
    stats_book(order->ctx, HSORT_PHASE_LOCAL_SORT);
    return HSORT_OK;
}

/* ---- the rounds ------------------------------------------------------------------------------------------ */

/* This rank's keys up to each probe. */
static hsort_status count_up_to(struct selection *s)
{
    const struct element_order *order = &s->order;
    struct engine *engine = order->ctx->engine;
    for (int64_t done = 0; done < s->wanted; done += ENGINE_SEARCH_MAX) {
        const int64_t left = s->wanted - done;
        const int some = left < ENGINE_SEARCH_MAX ? (int)left : ENGINE_SEARCH_MAX;
        TRY(engine->ops->search(engine, order->fields[0].bytes, s->sorted, order->count, s->probe + done,
                                some, s->less + done, s->not_greater + done));
    }
    return HSORT_OK;
}

/* Halve all intervals; the sums are the same on all ranks, and so are the halves. Collective. */
static hsort_status halve(struct selection *s)
{
    struct comm *comm = &s->order.ctx->comm;
    for (int64_t i = 0; i < s->wanted; i++)
        s->probe[i] = s->least[i] + (s->most[i] - s->least[i]) / 2;
    TRY(comm_agree(comm, count_up_to(s)));
    for (int64_t done = 0; done < s->wanted; done += ENGINE_SEARCH_MAX) {
        const int64_t left = s->wanted - done;
        const int some = left < ENGINE_SEARCH_MAX ? (int)left : ENGINE_SEARCH_MAX;
        TRY(comm_sums(comm, s->not_greater + done, some, s->less + done));
    }
    for (int64_t i = 0; i < s->wanted; i++)
        if (s->less[i] > s->positions[i])
            s->most[i] = s->probe[i];
        else
            s->least[i] = s->probe[i] + 1;
    return HSORT_OK;
}

static hsort_status find_codes(struct selection *s)
{
    const int width = s->order.fields[0].bytes;
    for (int64_t i = 0; i < s->wanted; i++)
        s->most[i] = key_max(width);
    for (int round = 0; round < 8 * width; round++)
        TRY(halve(s));
    return HSORT_OK;
}

static void write_selected(const struct selection *s)
{
    const struct key_field *field = &s->order.fields[0];
    for (int64_t i = 0; i < s->wanted; i++) {
        const key_code bits = keymap_decode(field->map, s->least[i]);
        memcpy((char *)s->selected + i * field->bytes, &bits, (size_t)field->bytes); // little-endian
    }
}

/* ---- keys that are counted --------------------------------------------------------------------------------- */

/* Count this rank's keys. Not collective. */
static hsort_status count_selection(const struct selection *s, struct narrow_keys *keys,
                                    struct narrow_counts *counts)
{
    int64_t done;
    TRY(context_wait_caller(s->order.ctx, s->order.stream, SPACE_HOST)); // the host itself may read them
    return narrow_count(counts, keys, &done);
}

/* Collective. */
static hsort_status select_counted(const struct selection *s, struct narrow_counts *counts)
{
    hsort_context *ctx = s->order.ctx;
    const int width = counts->map.key_bytes;
    struct narrow_keys keys = {.memory = s->keys, .count = s->order.count};
    TRY(comm_agree(&ctx->comm, ctx->engine->ops->space_of(ctx->engine, keys.count > 0 ? keys.memory : NULL,
                                                          &keys.space)));
    const bool is_near = keys.space == SPACE_ENGINE;
    TRY(narrow_open(counts, is_near ? 0 : (size_t)keys.count * (size_t)width));
    TRY(comm_agree(&ctx->comm, count_selection(s, &keys, counts)));
    TRY(narrow_sum(counts));
    for (int64_t i = 0; i < s->wanted; i++) {
        const uint64_t bits = narrow_key_at(counts, s->positions[i]);
        memcpy((char *)s->selected + i * width, &bits, (size_t)width); // little-endian
    }
    return HSORT_OK;
}

/* ---- the call -------------------------------------------------------------------------------------------- */

/* Sort the keys, and bisect. Collective. */
static hsort_status select_sorted(struct selection *s)
{
    struct comm *comm = &s->order.ctx->comm;
    TRY(comm_agree(comm, take_selection_memory(s)));
    struct trace_span *span = trace_begin(comm->trace, "local sort");
    TRY(comm_agree(comm, trace_end_with(span, sort_copy(s))));
    span = trace_begin(comm->trace, "find codes");
    TRY(trace_end_with(span, find_codes(s)));
    write_selected(s);
    return HSORT_OK;
}

/* mine: this rank's status so far. Collective. */
static hsort_status run_selection(struct selection *s, hsort_status mine)
{
    struct comm *comm = &s->order.ctx->comm;
    if (mine == HSORT_OK)
        mine = check_selection(s);
    s->order.out_count = s->order.count;
    TRY(element_order_plan(&s->order, mine,
                           element_request(&s->order, mine == HSORT_OK ? position_checksum(s) : 0)));
    TRY(comm_agree(comm, check_positions(s)));
    struct narrow_counts counts = {.ctx = s->order.ctx, .map = s->order.fields[0].map};
    const bool is_counted = KEY_IS_COUNTED(s->order.fields[0].bytes);
    const hsort_status status = is_counted ? select_counted(s, &counts) : select_sorted(s);
    if (is_counted)
        narrow_close(&counts);
    TRY(status);
    stats_book(s->order.ctx, HSORT_PHASE_EXCHANGE);
    return stats_finish(s->order.ctx, s->order.total);
}

static hsort_status select_again(hsort_context *ctx, const void *user)
{
    const struct selection *s = user;
    return hsort_select(ctx, s->type, s->direction, s->keys, s->order.count, s->positions, s->wanted,
                        s->selected, NULL);
}

hsort_status hsort_select(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                          int64_t count, const int64_t *positions, int64_t wanted, void *selected,
                          void *stream)
{
    TRY(context_enter(ctx));
    struct selection s = {.order = {.ctx = ctx, .stream = stream, .count = count},
                          .keys = keys,
                          .positions = positions,
                          .wanted = wanted,
                          .selected = selected,
                          .type = type,
                          .direction = order};
    const hsort_field field = {.type = type, .order = order};
    hsort_status status = element_take_key(&s.order, &field);
    if (status == HSORT_OK)
        status = element_check_array(ctx, "keys", keys, count, hsort_type_bytes(type));
    struct trace_span *span = trace_begin(ctx->comm.trace, "select keys");
    status = trace_end_with(span, run_selection(&s, status));
    element_array_free(ctx, &s.loaded);
    element_array_free(ctx, &s.copy);
    element_array_free(ctx, &s.scratch);
    element_array_free(ctx, &s.workspace);
    free(s.probe);
    free(s.less);
    element_order_close(&s.order);
    const struct host_call again = {.arrays = {keys},
                                    .stream = stream,
                                    .bytes = 2 * (size_t)count * (size_t)s.order.fields[0].bytes,
                                    .run = select_again,
                                    .call = &s};
    return host_call_finish(ctx, status, &again);
}
