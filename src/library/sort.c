/* The sort as the list of its phases: run_one_pass(), near the end. src/library/README.md pictures it. Keys that do not fit
 * into engine memory go another way (two_passes.c), and so do keys of 1 and 2 bytes (narrow_sort.c).
 *
 * Global positions count keys through the ranks in order. have_offset[r] is the position of rank r's first
 * key as it comes, want_offset[r] the one the caller asks for, even_offset[r] the one with full shards first.
 * Every rank has room for a capacity of ceil(N / P) keys:
 *
 *     keys as they come    6 0 1 4      N = 11, P = 4, capacity 3: rank 0 brings more than the capacity,
 *     evened out           3 3 3 2      so the keys are spread anew, before any of them is sorted
 *     after the network    3 3 3 2      full shards first, then the rest
 *     as asked for         6 0 1 4      the boundaries shift
 *
 * Counts that differ by at most one fit the network as they are, and at its end only a few keys shift.
 * `direct` and `partition` can leave any counts that fit the capacity, so they leave the counts asked for if these
 * fit. If the sorted shards turn out to be in order across the ranks, the exchange is skipped.
 *
 * One rule for failures: a phase that fails on this rank notes it in s->status and keeps to the schedule;
 * where ranks agree next, all of them leave with the same status. */
#include <signal.h>
#include <string.h>
#include "kernels/base/key_width.h"
#include "kernels/base/lesser.h"
#include "mpi/exchange/packed_paths.h"
#include "mpi/exchange/rebalance.h"
#include "src/library/narrow_sort.h"
#include "src/library/sort_codes.h"
#include "src/library/sort_memory.h"
#include "src/library/sort_stream.h"
#include "src/library/two_passes.h"
#include "src/library/disk_passes.h"

/* Wait for the engine, and book the time since the last phase ended. */
static void book_phase(struct sort *s, hsort_phase phase)
{
    keep_first_error(&s->status, s->ctx->engine->ops->stream_synchronize(s->ctx->engine, STREAM_WORK));
    sort_end_pass(s, phase);
}

void sort_report_phase(const struct sort *s, const char *phase)
{
    const hsort_options *o = &s->ctx->options;
    if (o->progress && s->ctx->comm.rank == 0)
        o->progress(o->progress_user, phase, 1, 1);
}

static void report_round(void *user, int64_t done, int64_t total)
{
    const hsort_options *o = &((hsort_context *)user)->options;
    o->progress(o->progress_user, "exchange", done, total);
}

/* ---- before anything moves ----------------------------------------------------------------------------- */

static hsort_status check_arguments(struct sort *s)
{
    const struct engine_ops *ops = s->ctx->engine->ops;
    s->in_space = s->out_space = SPACE_HOST;
    if (s->source)
        return HSORT_OK;
    TRY(context_check_in_and_out(s->ctx, s->map.key_bytes, s->in, s->in_count, s->out, s->out_count));
    const void *in = s->in_count > 0 ? s->in : NULL, *out = s->out_count > 0 ? s->out : NULL;
    TRY(ops->space_of(s->ctx->engine, in, &s->in_space));
    s->out_space = s->in_space;
    return in == out ? HSORT_OK : ops->space_of(s->ctx->engine, out, &s->out_space);
}

/* The exchanges for these keys. The same on every rank. */
static void choose_exchanges(struct sort *s)
{
    const hsort_context *ctx = s->ctx;
    const hsort_options *o = &ctx->options;
    const hsort_engine engine = hsort_engine_in_use(ctx);
    const int size = ctx->comm.size, key_bytes = s->map.key_bytes;
    const bool packs = any_path_packs(&ctx->comm, ctx->engine, ctx->transport);
    s->ctx->exchange = HSORT_EXCHANGE_AUTO; // for keys that are counted none runs
    if (KEY_IS_COUNTED(key_bytes))
        return;
    s->sorted_exchange = exchange_choose(o->exchange, EXCHANGE_TAKES_SORTED, ctx->usable_exchanges, engine,
                                         size, packs, s->capacity, key_bytes);
    // A rung that was asked for is what sorts, unless an exchange was asked for, too.
    if (sort_rung(ctx, key_bytes) < 0 || o->exchange != HSORT_EXCHANGE_AUTO)
        s->raw_exchange = exchange_choose(o->exchange, EXCHANGE_TAKES_RAW, ctx->usable_exchanges, engine,
                                          size, packs, s->capacity, key_bytes);
    s->ctx->exchange = s->sorted_exchange->kind;
}

/* Agree on what is to be done. Collective. */
static hsort_status agree_on_plan(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    struct comm *comm = &ctx->comm;
    const hsort_status mine = check_arguments(s);
    TRY(s->are_codes ? comm_agree(comm, mine) : context_agree_on_keys(ctx, s->type, s->order, mine));
    int64_t most_in, most_out;
    TRY(comm_gather_offsets(comm, s->in_count, ctx->have_offset, &most_in));
    TRY(comm_gather_offsets(comm, s->out_count, ctx->want_offset, &most_out));
    s->total = ctx->have_offset[comm->size];
    if (ctx->want_offset[comm->size] != s->total)
        return comm_agree(comm, status_fail(HSORT_ARGUMENT, "%lld keys in, but room for %lld asked for",
                                            (long long)s->total, (long long)ctx->want_offset[comm->size]));
    s->room = s->capacity = divide_up(s->total, comm->size);
    // Cannot overflow: counts are limited so that one capacity more per rank still fits.
    for (int rank = 0; rank <= comm->size; rank++)
        ctx->even_offset[rank] = lesser(rank * s->capacity, s->total);
    s->fits = most_in <= s->capacity;
    if (s->source && (!s->fits || most_out > s->capacity))
        return comm_agree(comm, status_fail(HSORT_INTERNAL, "the keys of streams are not spread evenly"));
    s->any_target_fits = most_out <= s->capacity;
    choose_exchanges(s);
    return HSORT_OK;
}

/* Have the memory that all this takes. Collective. */
static hsort_status reserve_memory(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    TRY(context_agree(ctx, sort_reserve(s)));
    TRY(sort_reserve_exchange(s));
    s->x.current_offset = ctx->have_offset;
    s->x.progress = ctx->options.progress && ctx->comm.rank == 0 ? report_round : NULL;
    s->x.progress_user = ctx;
    s->phase_began = MPI_Wtime();
    return HSORT_OK;
}

/* ---- the phases ---------------------------------------------------------------------------------------- */

/* Are the keys in order as they came? The same answer on every rank. Collective. */
static hsort_status came_sorted(struct sort *s, bool *sorted)
{
    hsort_context *ctx = s->ctx;
    struct verifier verifier;
    hsort_check_result found;
    verify_start(&verifier, s->map);
    keep_first_error(&s->status, ctx->engine->ops->stream_wait_caller(ctx->engine, s->stream));
    keep_first_error(&s->status, context_inspect(ctx, &verifier, s->in, s->in_count));
    TRY(comm_agree(&ctx->comm, s->status));
    TRY(verify_finish(&verifier, &ctx->comm, &found));
    *sorted = found.first_disorder < 0;
    return HSORT_OK;
}

/* Shards that do not fit, but are in order, need not be spread anew: only the boundaries shift, if the caller
 * wants other counts. Collective. */
static hsort_status pass_sorted(struct sort *s)
{
    struct comm *comm = &s->ctx->comm;
    const int64_t *have = s->ctx->have_offset + comm->rank, *want = s->ctx->want_offset + comm->rank;
    if (s->fits)
        return HSORT_OK;
    // Where in and out are one array, keys can stay in it but not shift.
    const bool stuck =
        s->in == s->out && s->in_count + s->out_count > 0 && (have[0] != want[0] || have[1] != want[1]);
    bool some_stuck, sorted;
    TRY(comm_any(comm, stuck, &some_stuck));
    if (some_stuck)
        return HSORT_OK;
    TRY(came_sorted(s, &sorted));
    book_phase(s, HSORT_PHASE_LOCAL_SORT);
    if (!sorted)
        return HSORT_OK;
    if (s->in != s->out)
        keep_first_error(&s->status,
                         rebalance(&s->x, s->ctx->have_offset, s->ctx->want_offset, s->in, s->out));
    s->form = FORM_DELIVERED;
    book_phase(s, HSORT_PHASE_EXCHANGE);
    return HSORT_OK;
}

/* Bring the keys into engine memory, no rank with more than the capacity. */
static hsort_status load_keys(struct sort *s)
{
    struct engine *engine = s->ctx->engine;
    const int rank = s->ctx->comm.rank;
    if (s->form != FORM_RAW)
        return HSORT_OK;
    keep_first_error(&s->status, context_wait_caller(s->ctx, s->stream, s->in_space));
    if (!s->fits) {
        // Into the scratch buffer: x.keys may be the caller's memory that they come from.
        keep_first_error(&s->status, engine->ops->stream_synchronize(engine, STREAM_WORK));
        keep_first_error(&s->status,
                         rebalance(&s->x, s->x.current_offset, s->ctx->even_offset, s->in, s->x.scratch));
        exchange_swap_buffers(&s->x);
        s->held = s->x.keys;
        s->x.current_offset = s->ctx->even_offset;
        s->x.count = s->x.current_offset[rank + 1] - s->x.current_offset[rank];
        book_phase(s, HSORT_PHASE_EXCHANGE);
    } else if (s->source) {
        TRY(sort_load_stream(s));
        s->phase_began = MPI_Wtime();
    } else if (s->in_space != SPACE_ENGINE && s->in_count > 0) {
        keep_first_error(&s->status,
                         engine->ops->copy(engine, STREAM_WORK, s->x.keys, s->in, shard_bytes(s)));
        s->held = s->x.keys;
        book_phase(s, HSORT_PHASE_H2D);
        sort_report_phase(s, "h2d");
    }
    return HSORT_OK;
}

/* Are the shards, each in order, one order already? The same answer on every rank. Collective. */
static bool in_order(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const struct keymap map = s->map;
    const int64_t last = s->x.count - 1;
    key_code own[3] = {(key_code)s->x.count, 0, 0};
    if (s->x.count > 0)
        keep_first_error(&s->status, ctx->engine->ops->gather(ctx->engine, s->x.key_bytes, s->held,
                                                              (int64_t[]){0, last}, 2, own + 1));
    for (int i = 1; i < 3 && s->form == FORM_RAW; i++)
        own[i] = keymap_encode(map, own[i]);
    keep_first_error(&s->status, comm_gather_words(&ctx->comm, (const uint64_t *)own, 3 * KEY_CODE_WORDS,
                                                   (uint64_t *)ctx->ends));
    key_code before = 0;
    for (int rank = 0; rank < ctx->comm.size; rank++) {
        const key_code *ends = ctx->ends + 3 * (size_t)rank;
        if (ends[0] == 0)
            continue;
        if (ends[1] < before)
            return false;
        before = ends[2];
    }
    return true;
}

/* Let one of the exchanges move the keys; *done as of exchange_ops.run(). Collective. */
static hsort_status run_exchange(struct sort *s, const struct exchange_ops *ops, bool *done)
{
    hsort_context *ctx = s->ctx;
    s->x.tables = ctx->exchange_tables[ops->kind];
    s->x.target_offset = ops->takes_any_target && s->any_target_fits ? ctx->want_offset : ctx->even_offset;
    const hsort_status status = ops->run(&s->x, done);
    if (*done) {
        ctx->exchange = ops->kind;
        s->x.current_offset = s->x.target_offset;
        s->held = s->x.keys;
    }
    return status;
}

/* Try to sort all shards as they came. If that does not work, but they have turned out to be in order, they are
 * the result. Collective. */
static hsort_status exchange_raw(struct sort *s)
{
    const struct raw_keys raw = sort_raw_keys(s);
    const bool to_host = s->out_space == SPACE_PINNED && s->any_target_fits;
    bool done = false;
    if (s->form != FORM_RAW || !s->raw_exchange)
        return HSORT_OK;
    s->x.raw = &raw;
    s->x.host_out = to_host ? s->out : NULL;
    keep_first_error(&s->status, run_exchange(s, s->raw_exchange, &done));
    s->x.raw = NULL;
    TRY(context_agree(s->ctx, s->status));
    book_phase(s, done ? HSORT_PHASE_EXCHANGE : HSORT_PHASE_LOCAL_SORT);
    if (done) {
        s->seconds[HSORT_PHASE_EXCHANGE] -= s->x.local_seconds;
        s->seconds[HSORT_PHASE_LOCAL_SORT] += s->x.local_seconds;
        s->form = to_host || wants_positions(&raw) ? FORM_DELIVERED : FORM_RESULT;
        if (wants_positions(&raw))
            *s->placed = true;
    } else if (s->x.all_ascend) {
        sort_make_codes(s);
        if (in_order(s))
            s->form = FORM_RESULT;
    }
    return HSORT_OK;
}

/* The agreement after the local sort, and the safe point: is this sort to end here? Then the keys are intact,
 * and have yet to be handed back, which may still fail. Collective. */
static hsort_status stop_or_go_on(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const hsort_options *o = &ctx->options;
    const bool asks = o->should_stop && !s->are_codes; // inside of another call nobody could go on from there
    if (s->status == HSORT_OK && asks && o->should_stop(o->should_stop_user))
        s->status = status_fail(HSORT_STOPPED, "asked to stop between local sort and exchange");
    const hsort_status status = context_agree(ctx, s->status);
    if (status != HSORT_STOPPED)
        return status;
    context_fail(ctx, status);
    ctx->comm.error[0] = '\0';
    s->stopped = true;
    s->status = HSORT_OK;
    status_clear();
    return s->sink ? HSORT_STOPPED : HSORT_OK; // a stream's keys are still where they came from
}

/* Sort each shard by itself. Collective. */
static hsort_status sort_shards(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    // Ranks read each other's context memory, which stays mapped, rather than the caller's, which is mapped
    // anew each time. On one rank, the local sort is the last to touch the keys, so it decodes them.
    struct raw_keys raw = sort_raw_keys(s);
    raw.decode = comm_is_alone(&ctx->comm);
    raw.in_scratch = s->x.keys == s->out;
    void *sorted = s->x.keys;
    if (s->form != FORM_RAW)
        return HSORT_OK;
    if (s->status == HSORT_OK && s->total > 0) // for no keys nothing has been reserved
        keep_first_error(&s->status,
                         ctx->engine->ops->sort(ctx->engine, sort_rung(ctx, s->map.key_bytes),
                                                s->map.key_bytes, s->x.keys, s->x.scratch, s->scratch_keys,
                                                s->x.count, ctx->kept[KEPT_WORKSPACE].memory, &raw, &sorted));
    if (sorted == s->x.scratch)
        exchange_swap_buffers(&s->x);
    s->held = s->x.keys;
    s->form = raw.decode ? FORM_RESULT : FORM_CODES;
    book_phase(s, HSORT_PHASE_LOCAL_SORT);
    sort_report_phase(s, "local_sort");
    if (fault_hit(FAULT_KILL))
        raise(SIGKILL);
    return stop_or_go_on(s);
}

/* Bring the keys into the context's own memory, which stays mapped, if the local sort has not left them there. */
static void leave_callers_memory(struct sort *s)
{
    struct engine *engine = s->ctx->engine;
    if (s->x.keys != s->out || s->in_place || !s->ctx->transport->ops->expose)
        return;
    keep_first_error(&s->status,
                     engine->ops->copy(engine, STREAM_WORK, s->x.scratch, s->x.keys, shard_bytes(s)));
    exchange_swap_buffers(&s->x);
}

/* Bring the sorted shards into one order. Collective. */
static hsort_status exchange_sorted(struct sort *s)
{
    bool done;
    if (s->form != FORM_CODES || s->stopped)
        return HSORT_OK;
    if (!in_order(s)) {
        leave_callers_memory(s);
        keep_first_error(&s->status, run_exchange(s, s->sorted_exchange, &done));
    }
    book_phase(s, HSORT_PHASE_EXCHANGE);
    s->seconds[HSORT_PHASE_EXCHANGE] -= s->x.merge_seconds;
    s->seconds[HSORT_PHASE_MERGE] += s->x.merge_seconds;
    return HSORT_OK;
}

/* Does every rank have the count that its caller asks for? */
static bool counts_are_wanted(const struct sort *s)
{
    const size_t table_bytes = ((size_t)s->ctx->comm.size + 1) * sizeof *s->x.current_offset;
    return memcmp(s->x.current_offset, s->ctx->want_offset, table_bytes) == 0;
}

/* Bring the keys from s->held to s->out, as the caller's bits; codes may stay where they are. as_wanted:
 * counts_are_wanted(). Collective. */
static void hand_over(struct sort *s, bool as_wanted)
{
    hsort_context *ctx = s->ctx;
    struct engine *engine = ctx->engine;
    const bool to_engine = as_wanted && s->out_space == SPACE_ENGINE;
    if (s->left_at && to_engine) {
        *s->left_at = s->held;
    } else if (s->form == FORM_CODES || (s->form == FORM_RESULT && to_engine)) {
        struct keymap map = s->map;
        map.identity = map.identity || s->form == FORM_RESULT;
        void *to = to_engine ? s->out : s->x.keys;
        keep_first_error(&s->status, engine->ops->decode(engine, map, to, s->held, s->x.count));
        s->held = to;
    }
    if (!as_wanted) {
        if (s->held == s->out && s->x.count > 0) {
            keep_first_error(&s->status,
                             engine->ops->copy(engine, STREAM_WORK, s->x.scratch, s->held, shard_bytes(s)));
            s->held = s->x.scratch;
        }
        keep_first_error(&s->status, engine->ops->stream_synchronize(engine, STREAM_WORK));
        keep_first_error(&s->status,
                         rebalance(&s->x, s->x.current_offset, ctx->want_offset, s->held, s->out));
        book_phase(s, HSORT_PHASE_EXCHANGE);
    } else if (!to_engine && s->x.count > 0) {
        keep_first_error(&s->status, engine->ops->copy(engine, STREAM_WORK, s->out, s->held, shard_bytes(s)));
    }
    book_phase(s, HSORT_PHASE_D2H);
}

/* Bring the keys from s->held into the sink. Collective. */
static hsort_status hand_to_sink(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    if (s->form == FORM_CODES)
        keep_first_error(&s->status,
                         ctx->engine->ops->decode(ctx->engine, s->map, s->x.keys, s->held, s->x.count));
    s->held = s->x.keys;
    if (!counts_are_wanted(s)) {
        keep_first_error(&s->status, ctx->engine->ops->stream_synchronize(ctx->engine, STREAM_WORK));
        keep_first_error(&s->status,
                         rebalance(&s->x, s->x.current_offset, ctx->want_offset, s->held, s->x.scratch));
        s->held = s->x.scratch;
        book_phase(s, HSORT_PHASE_EXCHANGE);
    }
    book_phase(s, HSORT_PHASE_D2H);
    return sort_store_stream(s);
}

/* Give the caller its counts of its keys. Collective. */
static hsort_status deliver_keys(struct sort *s)
{
    const bool as_wanted = counts_are_wanted(s);
    if (s->sink)
        return hand_to_sink(s);
    if (s->form == FORM_RESULT && s->held == s->out && as_wanted)
        s->form = FORM_DELIVERED; // the phase that left the keys there has waited for them
    if (s->form != FORM_DELIVERED)
        hand_over(s, as_wanted);
    s->form = FORM_DELIVERED;
    sort_report_phase(s, "d2h");
    return context_agree(s->ctx, s->status);
}

/* Keep the statistics of a sort that went well on every rank. Collective. */
static hsort_status keep_stats(const struct sort *s)
{
    struct hsort_stats own = {.keys = s->total,
                              .moved_bytes = s->x.moved_bytes,
                              .rounds = s->x.rounds_moved,
                              .total_seconds = MPI_Wtime() - s->entered,
                              .passes = s->passes,
                              .runs = s->runs,
                              .segments = s->segments};
    if (s->passes == 2) { // what went by MPI or was read, not by the transport
        stats_of_traffic(&own, HSORT_TRANSPORT_MPI, &s->messages);
        stats_of_traffic(&own, HSORT_TRANSPORT_STAGED, &s->shown);
    }
    if (s->are_codes || s->elements) { // inside of another call, which has statistics of its own
        stats_add(s->ctx, &own, s->seconds);
        return HSORT_OK;
    }
    return s->stopped ? HSORT_OK : context_agree(s->ctx, stats_keep(s->ctx, &own, s->seconds));
}

static hsort_status run_phase(struct sort *s, const char *name, hsort_status (*phase)(struct sort *s))
{
    struct trace_span *span = trace_begin(s->ctx->comm.trace, name);
    return trace_end_with(span, phase(s));
}

static hsort_status run_one_pass(struct sort *s)
{
    TRY(run_phase(s, "reserve", reserve_memory));
    TRY(pass_sorted(s));
    TRY(run_phase(s, "load", load_keys));
    TRY(run_phase(s, "exchange of raw keys", exchange_raw));
    TRY(run_phase(s, "local sort", sort_shards));
    TRY(run_phase(s, "exchange of sorted shards", exchange_sorted));
    return run_phase(s, "store", deliver_keys);
}

/* Through host memory or by way of the disk. Collective. */
static hsort_status run_two_passes(struct sort *s)
{
    s->ctx->exchange = HSORT_EXCHANGE_AUTO; // none runs
    return s->store ? disk_passes_run(s) : two_passes_run(s);
}

/* Collective. */
static hsort_status run_passes_or_count(struct sort *s)
{
    s->passes = s->store ? 2 : 1;
    if (!s->store && KEY_IS_COUNTED(s->map.key_bytes))
        return narrow_sort_run(s);
    if (!s->store)
        TRY(sort_choose_passes(s));
    return s->passes == 2 ? run_two_passes(s) : run_one_pass(s);
}

static hsort_status run_phases(struct sort *s)
{
    TRY(run_phase(s, "plan", agree_on_plan));
    TRY(run_passes_or_count(s));
    return keep_stats(s);
}

/* ---- entry points -------------------------------------------------------------------------------------- */

static hsort_status run_call(struct sort *s)
{
    s->entered = s->phase_began = MPI_Wtime();
    if (s->are_codes) // what the call around this one did until now: it made the codes
        stats_book(s->ctx, HSORT_PHASE_LOCAL_SORT);
    else
        transport_clear(s->ctx->transport);
    struct trace_span *span = trace_begin(s->ctx->comm.trace, s->are_codes ? "sort codes" : "sort keys");
    trace_keys(span, s->in_count);
    const hsort_status status = trace_end_with(span, run_phases(s));
    const bool at_safe_point = s->stopped && status == HSORT_STOPPED;
    if (status != HSORT_OK && !at_safe_point) // also a failure after the safe point: keys may not be there
        return context_fail(s->ctx, status);
    return s->stopped ? HSORT_STOPPED : HSORT_OK; // ctx->error still says who asked
}

hsort_status hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                           int64_t count, void *out, int64_t out_count, void *stream)
{
    TRY(context_enter(ctx));
    struct sort s = {.ctx = ctx,
                     .type = type,
                     .order = order,
                     .map = keymap_make(type, order),
                     .in = in,
                     .in_count = count,
                     .out = out,
                     .out_count = out_count,
                     .stream = stream,
                     .held = in};
    return run_call(&s);
}

hsort_status sort_streams(hsort_context *ctx, hsort_type type, hsort_order order,
                          const struct key_stream *source, int64_t count, const struct key_stream *sink,
                          int64_t out_count, struct stream_check *check, const struct run_store *store)
{
    TRY(context_enter(ctx));
    struct sort s = {.ctx = ctx,
                     .type = type,
                     .order = order,
                     .map = keymap_make(type, order),
                     .in_count = count,
                     .out_count = out_count,
                     .source = source,
                     .sink = sink,
                     .check = check,
                     .store = store};
    return run_call(&s);
}

hsort_status streams_need_store(hsort_context *ctx, hsort_type type, hsort_order order, int64_t count,
                                size_t memory_bytes, bool *needs)
{
    static const struct key_stream any; // nothing is asked of it
    TRY(context_enter(ctx));
    struct sort s = {.ctx = ctx,
                     .type = type,
                     .order = order,
                     .map = keymap_make(type, order),
                     .in_count = count,
                     .out_count = count,
                     .source = &any,
                     .sink = &any};
    hsort_status status = agree_on_plan(&s);
    if (status == HSORT_OK)
        status = sort_choose_store(&s, memory_bytes, needs);
    return status == HSORT_OK ? HSORT_OK : context_fail(ctx, status);
}

hsort_status sort_elements_in_passes(struct sort *s)
{
    s->passes = 2;
    s->entered = MPI_Wtime();
    stats_book(s->ctx, HSORT_PHASE_LOCAL_SORT); // the plan
    TRY(run_two_passes(s));
    return keep_stats(s);
}

hsort_status sort_codes(hsort_context *ctx, int code_bytes, const struct raw_keys *numbered, void *codes,
                        int64_t count, void *out, int64_t out_count, const void **sorted, bool *placed,
                        void *stream)
{
    *sorted = out;
    *placed = false;
    struct sort s = {.ctx = ctx,
                     .are_codes = true,
                     .numbered = numbered,
                     .left_at = sorted,
                     .placed = placed,
                     .map = keymap_of_codes(code_bytes),
                     .in = codes,
                     .in_count = count,
                     .out = out,
                     .out_count = out_count,
                     .stream = stream,
                     .held = codes};
    return run_call(&s);
}

hsort_status hsort_sort(hsort_context *ctx, hsort_type type, hsort_order order, void *keys, int64_t count,
                        void *stream)
{
    return hsort_sort_to(ctx, type, order, keys, count, keys, count, stream);
}
