/* The sort as the list of its phases: see hsort_sort_to() at the end. src/README.md pictures it.
 *
 * Global positions count keys through the ranks in order. have_offset[r] is the position of rank r's first key at present,
 * want_offset[r] the one the caller asks for, even_offset[r] the one with full blocks first. The network needs every rank to have
 * room for ceil(N / P) keys:
 *
 *     at the door        6 0 1 4      N = 11, P = 4, capacity 3: rank 0 holds more than the capacity,
 *     evened out         3 3 3 2      so the keys are dealt out anew, before any of them is sorted
 *     after the network  3 3 3 2      full blocks first, then the rest
 *     as asked for       6 0 1 4      the borders are shifted
 *
 * Counts that differ by at most one fit the network as they are, and at its end only a few keys shift. The exchange
 * `direct` needs the same room, but leaves any counts that fit the capacity: those asked for, if they do. If the sorted
 * shards turn out to be in order across the ranks, the exchange is skipped. `partition` does both phases at once, if the
 * keys suit it. */
#include <signal.h>
#include <string.h>
#include "kernels/base/first_error.h"
#include "mpi/exchange/exchange.h"
#include "src/library/sort_memory.h"

static bool failed(const struct sort *s)
{
    return s->status != HSORT_OK;
}

/* Wait for the engine, and book the time since the last phase ended. */
static void end_phase(struct sort *s, hsort_phase phase)
{
    keep_first_error(&s->status, s->ctx->engine->ops->stream_synchronize(s->ctx->engine, STREAM_WORK));
    double now = MPI_Wtime();
    s->seconds[phase] += now - s->phase_began;
    s->phase_began = now;
}

static bool is_alone(const struct sort *s)
{
    return s->ctx->comm.size == 1;
}

static void report(const struct sort *s, const char *phase)
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

/* ---- before anything moves ---------------------------------------------------------------------------------- */

static hsort_status check_buffer(const char *name, const void *buffer, int64_t count, int64_t count_max)
{
    if (count < 0 || count > count_max)
        return status_fail(HSORT_ARGUMENT, "%s: a count of %lld keys", name, (long long)count);
    if (count > 0 && !buffer)
        return status_fail(HSORT_ARGUMENT, "%s is NULL, but its count is %lld", name, (long long)count);
    if ((uintptr_t)buffer % 8 != 0)
        return status_fail(HSORT_ARGUMENT, "%s is not aligned to 8 bytes", name);
    return HSORT_OK;
}

static hsort_status check_arguments(struct sort *s)
{
    const struct engine_ops *ops = s->ctx->engine->ops;
    // No sum of counts, in bytes, may leave 63 bits.
    const int64_t count_max = INT64_MAX / 8 / s->ctx->comm.size;
    if (!hsort_type_name(s->type))
        return status_fail(HSORT_ARGUMENT, "no key type %d", (int)s->type);
    if (s->order != HSORT_ASCENDING && s->order != HSORT_DESCENDING)
        return status_fail(HSORT_ARGUMENT, "no order %d", (int)s->order);
    TRY(check_buffer("in", s->in, s->in_count, count_max));
    TRY(check_buffer("out", s->out, s->out_count, count_max));
    TRY(ops->space_of(s->ctx->engine, s->in_count > 0 ? s->in : NULL, &s->in_space));
    return ops->space_of(s->ctx->engine, s->out_count > 0 ? s->out : NULL, &s->out_space);
}

/* Fill at [size + 1] with the position of each rank's first key; *largest: the greatest count.      Collective. */
static hsort_status positions(struct comm *comm, int64_t count, int64_t *at, int64_t *largest)
{
    TRY(comm_gather(comm, count, at + 1));
    at[0] = 0;
    *largest = 0;
    for (int rank = 0; rank < comm->size; rank++) {
        if (at[rank + 1] > *largest)
            *largest = at[rank + 1];
        at[rank + 1] += at[rank];
    }
    return HSORT_OK;
}

/* The exchange for these keys, and whether another one is tried first. The same on every rank. */
static void choose_exchange(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    const hsort_exchange wanted = ctx->options.exchange;
    // A rung that was asked for is what sorts, but for an exchange that was asked for, too.
    const bool pays = ctx->options.local_rung < 0 &&
                      cost_wants_partition(ctx->comm.size, (double)s->capacity * s->map.key_bytes);
    s->partitions = ctx->partition && (wanted == HSORT_EXCHANGE_PARTITION || pays);
    if (wanted == HSORT_EXCHANGE_AUTO)
        ctx->exchange = cost_choose(ctx->network, &ctx->rates, s->map.key_bytes, s->total);
    else if (wanted == HSORT_EXCHANGE_PARTITION) // of the two others, the one with fewer bytes to move
        ctx->exchange = ctx->comm.size > 2 ? HSORT_EXCHANGE_DIRECT : HSORT_EXCHANGE_BITONIC;
    else
        ctx->exchange = wanted;
}

/* Agree on what is to be done.                                                                      Collective. */
static hsort_status plan(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    struct comm *comm = &ctx->comm;
    TRY(comm_agree(comm, check_arguments(s)));
    int64_t smallest, largest;
    TRY(comm_range(comm, (int64_t)s->type * 2 + (int64_t)s->order, &smallest, &largest));
    if (smallest != largest)
        return comm_agree(comm, status_fail(HSORT_ARGUMENT, "type or order differ between ranks"));
    int64_t most_in, most_out;
    TRY(positions(comm, s->in_count, ctx->have_offset, &most_in));
    TRY(positions(comm, s->out_count, ctx->want_offset, &most_out));
    s->total = ctx->have_offset[comm->size];
    if (ctx->want_offset[comm->size] != s->total)
        return comm_agree(comm, status_fail(HSORT_ARGUMENT, "%lld keys in, but room for %lld asked for",
                                            (long long)s->total, (long long)ctx->want_offset[comm->size]));
    s->map = keymap_make(s->type, s->order);
    s->capacity = s->total / comm->size + (s->total % comm->size != 0);
    for (int rank = 0; rank <= comm->size; rank++) {
        int64_t at = rank * s->capacity; // cannot overflow: count_max left room for one capacity more per rank
        ctx->even_offset[rank] = at < s->total ? at : s->total;
    }
    choose_exchange(s);
    // Each key moves once only if it goes where the caller wants it, and that is where there is room for it.
    const bool as_wanted = ctx->exchange == HSORT_EXCHANGE_DIRECT && most_out <= s->capacity;
    s->target_offset = as_wanted ? ctx->want_offset : ctx->even_offset;
    s->current_offset = ctx->have_offset;
    s->scattered_offset = most_out <= s->capacity ? ctx->want_offset : ctx->even_offset;
    s->even = most_in <= s->capacity;
    return HSORT_OK;
}

/* ---- the phases: each keeps to the schedule after a failure --------------------------------------------------- */

/* x.scratch holds the keys now. */
static void turn(struct sort *s)
{
    void *keys = s->x.scratch;
    s->x.scratch = s->x.keys;
    s->x.keys = keys;
}

/* Bring the keys into engine memory, as the caller's bits, where encode() will find them. */
static const void *load(struct sort *s)
{
    struct engine *engine = s->ctx->engine;
    keep_first_error(&s->status, engine->ops->stream_wait_caller(engine, s->stream));
    if (!s->even) {
        // Into the scratch buffer: x.keys may be the caller's memory that they come from.
        keep_first_error(&s->status, engine->ops->stream_synchronize(engine, STREAM_WORK));
        keep_first_error(&s->status, rebalance(&s->x, s->current_offset, s->ctx->even_offset, s->in, s->x.scratch));
        turn(s);
        s->current_offset = s->ctx->even_offset;
        s->x.count = s->current_offset[s->ctx->comm.rank + 1] - s->current_offset[s->ctx->comm.rank];
        end_phase(s, HSORT_PHASE_EXCHANGE);
        return s->x.keys;
    }
    if (s->in_space == SPACE_ENGINE || s->in_count == 0)
        return s->in;
    keep_first_error(&s->status, engine->ops->copy(engine, STREAM_WORK, s->x.keys, s->in,
                              (size_t)s->in_count * (size_t)s->map.key_bytes));
    end_phase(s, HSORT_PHASE_H2D);
    report(s, "h2d");
    return s->x.keys;
}

/* Are the keys in order as they came? The same answer on every rank.                                Collective. */
static hsort_status came_sorted(struct sort *s, bool *sorted)
{
    hsort_context *ctx = s->ctx;
    struct verifier verifier;
    hsort_check_result found;
    verify_start(&verifier, s->type, s->order);
    keep_first_error(&s->status, ctx->engine->ops->stream_wait_caller(ctx->engine, s->stream));
    keep_first_error(&s->status, context_inspect(ctx, &verifier, s->in, s->in_count));
    TRY(comm_agree(&ctx->comm, s->status));
    TRY(verify_finish(&verifier, &ctx->comm, &found));
    *sorted = found.first_disorder < 0;
    return HSORT_OK;
}

/* Uneven shards that are in order need no dealing out: only the borders shift, if the caller wants other counts.
 * *done: out holds the result. Collective. */
static hsort_status pass_sorted(struct sort *s, bool *done)
{
    struct comm *comm = &s->ctx->comm;
    // Where in and out are one array, keys can stay in it but not shift.
    const bool stuck = s->in == s->out && memcmp(s->current_offset + comm->rank, s->ctx->want_offset + comm->rank,
                                                 2 * sizeof *s->current_offset) != 0;
    int64_t none_stuck, some_stuck;
    TRY(comm_range(comm, stuck, &none_stuck, &some_stuck));
    if (some_stuck)
        return HSORT_OK;
    TRY(came_sorted(s, done));
    end_phase(s, HSORT_PHASE_LOCAL_SORT);
    if (!*done)
        return HSORT_OK;
    if (s->in != s->out)
        keep_first_error(&s->status, rebalance(&s->x, s->current_offset, s->ctx->want_offset, s->in, s->out));
    end_phase(s, HSORT_PHASE_EXCHANGE);
    return context_agree(s->ctx, s->status);
}

/* Are the sorted shards, codes by `map`, one order already? The same answer on every rank.         Collective. */
static bool in_order(struct sort *s, const void *keys, struct keymap map)
{
    hsort_context *ctx = s->ctx;
    const int64_t last = s->x.count - 1;
    uint64_t own[3] = {(uint64_t)s->x.count, 0, 0};
    if (s->x.count > 0)
        keep_first_error(&s->status,
             ctx->engine->ops->gather(ctx->engine, s->x.key_bytes, keys, (int64_t[]){0, last}, 2, own + 1));
    for (int i = 1; i < 3 && !map.identity; i++)
        own[i] = map.key_bytes == 4 ? keymap_encode32(map, (uint32_t)own[i]) : keymap_encode64(map, own[i]);
    keep_first_error(&s->status, comm_check(MPI_Allgather(own, 3, MPI_UINT64_T, ctx->ends, 3, MPI_UINT64_T, ctx->comm.world),
                       "MPI_Allgather", false));
    uint64_t before = 0;
    for (int rank = 0; rank < ctx->comm.size; rank++) {
        const uint64_t *ends = ctx->ends + 3 * (size_t)rank;
        if (ends[0] == 0)
            continue;
        if (ends[1] < before)
            return false;
        before = ends[2];
    }
    return true;
}

/* Try to sort all shards at once. *done: nothing but store() is left to do.                          Collective. */
static hsort_status partition_shards(struct sort *s, const void *loaded, bool *done)
{
    hsort_context *ctx = s->ctx;
    const struct raw_keys bits = {.map = s->map, .from = loaded};
    const bool straight = s->out_space == SPACE_PINNED && s->scattered_offset == ctx->want_offset;
    *done = false;
    if (!s->partitions)
        return HSORT_OK;
    s->x.host_out = straight ? s->out : NULL;
    keep_first_error(&s->status, exchange_partition(&s->x, &bits, s->current_offset, s->scattered_offset, done));
    TRY(context_finish(ctx, s->status));
    end_phase(s, *done ? HSORT_PHASE_EXCHANGE : HSORT_PHASE_LOCAL_SORT);
    if (*done) {
        s->seconds[HSORT_PHASE_EXCHANGE] -= s->x.local_seconds;
        s->seconds[HSORT_PHASE_LOCAL_SORT] += s->x.local_seconds;
        ctx->exchange = HSORT_EXCHANGE_PARTITION;
        s->current_offset = s->scattered_offset;
        s->decoded = true;
        s->stored = s->x.host_out != NULL;
    } else if (s->x.all_ascend && in_order(s, loaded, s->map)) {
        s->x.keys = (void *)loaded; // which store() does not write to
        *done = s->decoded = true;
    }
    return HSORT_OK;
}

static void sort_shard(struct sort *s, const void *loaded)
{
    hsort_context *ctx = s->ctx;
    const struct engine_ops *ops = ctx->engine->ops;
    // Ranks read each other's context memory, which stays mapped, rather than the caller's, which is mapped anew each time.
    // Of one rank, the local sort is the last to touch the keys, and decodes them.
    const struct raw_keys bits = {
        .map = s->map, .from = loaded, .decode = is_alone(s), .in_scratch = s->x.keys == s->out};
    void *sorted = s->x.keys;
    if (!failed(s))
        keep_first_error(&s->status, ops->sort(ctx->engine, ctx->options.local_rung, s->map.key_bytes, s->x.keys, s->x.scratch,
                          s->scratch_keys, s->x.count, ctx->workspace, &bits, &sorted));
    if (sorted == s->x.scratch)
        turn(s);
    end_phase(s, HSORT_PHASE_LOCAL_SORT);
    report(s, "local_sort");
    if (fault_hit(FAULT_KILL))
        raise(SIGKILL);
}

/* Have the keys in the context's own memory, as above, if the local sort has not left them there. */
static void leave_callers_memory(struct sort *s)
{
    struct engine *engine = s->ctx->engine;
    if (s->x.keys != s->out || !s->ctx->transport->ops->expose)
        return;
    keep_first_error(&s->status, engine->ops->copy(engine, STREAM_WORK, s->x.scratch, s->x.keys,
                              (size_t)s->x.count * (size_t)s->map.key_bytes));
    turn(s);
}

/* The agreement after the local sort, and the safe point: is this sort to end here? HSORT_STOPPED if any rank says so and
 * none has failed. Collective. */
static hsort_status ask_to_stop(struct sort *s)
{
    const hsort_options *o = &s->ctx->options;
    if (!failed(s) && o->should_stop && o->should_stop(o->should_stop_user))
        keep_first_error(&s->status, status_fail(HSORT_STOPPED, "asked to stop between local sort and exchange"));
    const hsort_status status = context_finish(s->ctx, s->status);
    if (status == HSORT_STOPPED) { // the keys are well, and are still to be handed back: that may yet fail
        s->status = HSORT_OK;
        status_clear();
    }
    return status;
}

static void exchange(struct sort *s)
{
    if (!in_order(s, s->x.keys, (struct keymap){.identity = true})) {
        leave_callers_memory(s);
        keep_first_error(&s->status, s->ctx->exchange == HSORT_EXCHANGE_DIRECT ? exchange_direct(&s->x, s->target_offset)
                                                          : exchange_bitonic(&s->x));
        s->current_offset = s->target_offset;
    }
    end_phase(s, HSORT_PHASE_EXCHANGE);
    s->seconds[HSORT_PHASE_EXCHANGE] -= s->x.merge_seconds;
    s->seconds[HSORT_PHASE_MERGE] += s->x.merge_seconds;
}

/* Give the caller its counts of its keys. */
static void store(struct sort *s)
{
    hsort_context *ctx = s->ctx;
    struct engine *engine = ctx->engine;
    const size_t bytes = (size_t)s->x.count * (size_t)s->map.key_bytes;
    const size_t table_bytes = ((size_t)ctx->comm.size + 1) * sizeof *s->current_offset;
    const bool as_wanted = memcmp(s->current_offset, ctx->want_offset, table_bytes) == 0;
    const bool straight = as_wanted && s->out_space == SPACE_ENGINE;
    struct keymap map = s->map;
    map.identity = map.identity || is_alone(s) || s->decoded;
    keep_first_error(&s->status, engine->ops->decode(engine, map, straight ? s->out : s->x.keys, s->x.keys, s->x.count));
    if (!as_wanted) {
        if (s->x.keys == s->out && bytes > 0) {
            keep_first_error(&s->status, engine->ops->copy(engine, STREAM_WORK, s->x.scratch, s->x.keys, bytes));
            turn(s);
        }
        keep_first_error(&s->status, engine->ops->stream_synchronize(engine, STREAM_WORK));
        keep_first_error(&s->status, rebalance(&s->x, s->current_offset, ctx->want_offset, s->x.keys, s->out));
        end_phase(s, HSORT_PHASE_EXCHANGE);
    } else if (!straight && !s->stored && bytes > 0) {
        keep_first_error(&s->status, engine->ops->copy(engine, STREAM_WORK, s->out, s->x.keys, bytes));
    }
    end_phase(s, HSORT_PHASE_D2H);
    report(s, "d2h");
}

/* The end of a sort that went well on every rank.                                                    Collective. */
static hsort_status finish(const struct sort *s)
{
    const struct hsort_stats own = {.keys = s->total,
                                    .moved_bytes = s->x.moved_bytes,
                                    .rounds = s->x.rounds_moved,
                                    .total_seconds = MPI_Wtime() - s->entered};
    return context_finish(s->ctx, stats_keep(s->ctx, &own, s->seconds));
}

/* ---- the doors ------------------------------------------------------------------------------------------------ */

hsort_status hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                           int64_t count, void *out, int64_t out_count, void *stream)
{
    if (!ctx)
        return HSORT_ARGUMENT;
    context_enter(ctx);
    struct sort s = {.ctx = ctx,
                     .type = type,
                     .order = order,
                     .in = in,
                     .in_count = count,
                     .out = out,
                     .out_count = out_count,
                     .stream = stream};
    s.entered = s.phase_began = MPI_Wtime();
    transport_clear(ctx->transport);
    hsort_status status = plan(&s);
    if (status != HSORT_OK || (status = context_unmap(ctx, sort_outgrows(&s))) != HSORT_OK)
        return context_fail(ctx, status);
    if ((status = context_finish(ctx, sort_reserve(&s))) != HSORT_OK)
        return status;
    if ((status = sort_reserve_partition(&s)) != HSORT_OK)
        return context_fail(ctx, status);
    s.x.progress = ctx->options.progress && ctx->comm.rank == 0 ? report_round : NULL;
    s.x.progress_user = ctx;
    s.phase_began = MPI_Wtime();

    bool done = false, stopped = false;
    if (!s.even && (status = pass_sorted(&s, &done)) != HSORT_OK)
        return context_fail(ctx, status);
    if (done)
        return finish(&s);
    const void *loaded = load(&s);
    if ((status = partition_shards(&s, loaded, &done)) != HSORT_OK)
        return status;
    if (!done) {
        sort_shard(&s, loaded);
        status = ask_to_stop(&s);
        stopped = status == HSORT_STOPPED;
        if (status != HSORT_OK && !stopped)
            return status;
        if (!stopped)
            exchange(&s);
    }
    store(&s);
    if ((status = context_finish(ctx, s.status)) != HSORT_OK)
        return status;
    return stopped ? HSORT_STOPPED : finish(&s); // ctx->error still says who asked
}

hsort_status hsort_sort(hsort_context *ctx, hsort_type type, hsort_order order, void *keys, int64_t count,
                        void *stream)
{
    return hsort_sort_to(ctx, type, order, keys, count, keys, count, stream);
}
