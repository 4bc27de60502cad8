/* Two passes as the list of their steps: two_passes_run(), at the end. src/library/README.md pictures them.
 *
 * Every rank knows slot size, counts and positions, so all know who has how many runs and segments:
 *
 *     slot 4         in           runs                   out wanted    segments
 *     rank 0         10 keys      4 4 2                  6             4 2          global positions 0 4 | 6 10 14
 *     rank 1         5 keys       4 1                    9             4 4 1        cuts at all of these, in all 5 runs
 *
 * Memory is taken, and agreed on, before a key moves; so after a lack of it all keys are as they were. */
#include "src/library/two_passes.h"
#include <stdlib.h>
#include "kernels/base/lesser.h"
#include "kernels/base/size_text.h"
#include "mpi/comm/node_memory.h"
#include "mpi/exchange/piece_messages.h"
#include "mpi/exchange/run_cuts.h"
#include "src/library/pass_pipeline.h"
#include "src/library/sort_stream.h"

/* Pieces of pinned runs come by copies if there are so many bytes of a slot for each. A copy keeps the link busy without the cores, but
 * each takes some time more; a transfer joins small pieces. */
enum { PIECE_COPY_BYTES = 4 << 20 };

struct passes {
    struct sort *s;
    struct pass_sort sort;
    bool in_pass_2;
    int64_t slot; /* elements; the same on every rank */
    size_t slot_bytes;
    size_t run_bytes; /* that the library takes for runs */
    char *runs;       /* [in_count] where the runs lie: the context's memory, or the input */
    bool runs_are_pinned;
    bool copies_pieces; /* of this rank's runs; otherwise it transfers them */

    int64_t *runs_of;       /* [size] */
    int64_t *first_segment; /* [size + 1] */
    int64_t rounds;
    int64_t *run_count;             /* [own runs] */
    const char **run;               /* [own runs] */
    int64_t *position;              /* [segments of all + 1] */
    int64_t *cut_offset;            /* [(segments of all + 1) * own runs] */
    struct engine_transfer *pieces; /* [runs of all ranks]: those of a segment at most */
    size_t *places;                 /* the same: where in the slot each belongs */

    struct run_cuts *cuts;
    struct piece_messages *messages;
    struct pipeline pipeline;
};

static char *element_at(const struct passes *p, const void *from, int64_t i)
{
    return (char *)from + (size_t)i * p->pipeline.element_bytes;
}

/* Report how far a pass is, except for keys of a stream, which reports that itself. If two phases were reported by turns, no line of either
 * would be due (src/command/progress.c). */
static void report_step(const struct passes *p, const struct key_stream *stream, const char *phase,
                        int64_t done, int64_t total)
{
    const hsort_options *o = &p->s->ctx->options;
    if (!stream && o->progress && p->s->ctx->comm.rank == 0)
        o->progress(o->progress_user, phase, done, total);
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

int64_t most_of_ranks(int size, const int64_t *in_offset, const int64_t *out_offset)
{
    int64_t most = 0;
    for (int rank = 0; rank < size; rank++) {
        most = greater(most, in_offset[rank + 1] - in_offset[rank]);
        most = greater(most, out_offset[rank + 1] - out_offset[rank]);
    }
    return most;
}

/* The slot for which this rank has memory. */
static hsort_status find_own_slot(struct passes *p, int64_t *slot)
{
    hsort_context *ctx = p->s->ctx;
    const int64_t most = greater(1, most_of_ranks(ctx->comm.size, ctx->have_offset, ctx->want_offset));
    char has[SIZE_TEXT_BYTES], takes[SIZE_TEXT_BYTES];
    size_t have, need;
    *slot = 0;
    TRY(context_engine_bytes(ctx, &have));
    have = usable_bytes(have);
    TRY(pass_slot_find(most, p->pipeline.element_bytes, have, pass_sort_workspace, &p->sort, slot, &need));
    if (*slot > 0)
        return HSORT_OK;
    need = free_bytes_for(need);
    return status_fail(
        hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA ? HSORT_DEVICE_MEMORY : HSORT_HOST_MEMORY,
        "%s of engine memory are too little for %lld %s: two passes take at least %zu bytes (%s)",
        size_text(have, has), (long long)most, p->s->elements ? "elements" : "keys", need,
        size_option_text(need, takes));
}

/* Agree on the slot size, and find how many runs and segments every rank has. Collective. */
static hsort_status agree_on_slot(struct passes *p)
{
    struct comm *comm = &p->s->ctx->comm;
    int64_t own;
    TRY(comm_agree(comm, find_own_slot(p, &own)));
    TRY(comm_range(comm, own, &p->slot, NULL));
    p->slot_bytes = pass_slot_bytes(p->slot, p->pipeline.element_bytes);
    p->s->runs = divide_up(p->s->in_count, p->slot);
    p->s->segments = divide_up(p->s->out_count, p->slot);
    return HSORT_OK;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static hsort_status make_pass_tables(struct passes *p)
{
    const hsort_context *ctx = p->s->ctx;
    const int size = ctx->comm.size;
    const int64_t runs = p->s->runs;
    size_t all_runs = 1;
    p->runs_of = calloc((size_t)size, sizeof *p->runs_of);
    p->first_segment = calloc((size_t)size + 1, sizeof *p->first_segment);
    if (!p->runs_of || !p->first_segment || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %d ranks", size);
    for (int rank = 0; rank < size; rank++) {
        const int64_t segments = divide_up(ctx->want_offset[rank + 1] - ctx->want_offset[rank], p->slot);
        p->runs_of[rank] = divide_up(ctx->have_offset[rank + 1] - ctx->have_offset[rank], p->slot);
        p->first_segment[rank + 1] = p->first_segment[rank] + segments;
        p->rounds = greater(p->rounds, segments);
        all_runs += (size_t)p->runs_of[rank];
    }
    const size_t cuts = (size_t)p->first_segment[size] + 1, some_runs = (size_t)runs + 1;
    p->run_count = calloc(some_runs, sizeof *p->run_count);
    p->run = calloc(some_runs, sizeof *p->run);
    p->pieces = calloc(all_runs, sizeof *p->pieces);
    p->places = calloc(all_runs, sizeof *p->places);
    p->position = calloc(cuts, sizeof *p->position);
    p->cut_offset = calloc(cuts * some_runs, sizeof *p->cut_offset);
    if (!p->run_count || !p->run || !p->pieces || !p->places || !p->position || !p->cut_offset || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory to cut %lld runs %zu times", (long long)runs, cuts);
    return HSORT_OK;
}

static hsort_status take_runs(struct passes *p)
{
    struct sort *s = p->s;
    p->runs = p->run_bytes == 0 ? (char *)s->in // overwrite_input: runs lie in the input
                                : run_memory_take(&s->ctx->runs, p->run_bytes, s->ctx->comm.threads);
    if (p->run_bytes > 0 && !p->runs)
        return status_fail(HSORT_HOST_MEMORY, "no host memory for the runs of %lld %s, %zu bytes",
                           (long long)s->in_count, s->elements ? "elements" : "keys", p->run_bytes);
    p->runs_are_pinned =
        p->run_bytes == 0 ? s->in_space != SPACE_HOST
                          : s->ctx->options.keep_host_memory && run_memory_pin(&s->ctx->runs, s->ctx->engine);
    p->copies_pieces = p->runs_are_pinned && p->slot_bytes / PIECE_COPY_BYTES >= (size_t)s->runs;
    for (int64_t run = 0; run < s->runs; run++) {
        p->run_count[run] = lesser(p->slot, s->in_count - run * p->slot);
        p->run[run] = element_at(p, p->runs, run * p->slot);
    }
    return HSORT_OK;
}

/* Host memory that this rank takes beside its runs: tables of cuts, and what messages pass through. */
static size_t room_beside_runs(const struct passes *p)
{
    const hsort_context *ctx = p->s->ctx;
    int64_t runs = 0, segments = 0;
    for (int rank = 0; rank < ctx->comm.size; rank++) {
        runs += divide_up(ctx->have_offset[rank + 1] - ctx->have_offset[rank], p->slot);
        segments += divide_up(ctx->want_offset[rank + 1] - ctx->want_offset[rank], p->slot);
    }
    return pass_bytes_beside_runs(ctx->comm.size, p->s->runs, p->s->segments, runs, segments, p->slot_bytes);
}

/* All memory of this rank. */
static hsort_status take_pass_memory(struct passes *p)
{
    hsort_context *ctx = p->s->ctx;
    TRY(make_pass_tables(p));
    TRY(pass_take_slots(&p->sort, p->slot, p->pipeline.slot));
    TRY(take_runs(p));
    TRY(pipeline_open(&p->pipeline));
    TRY(run_cuts_open(&ctx->comm, p->s->runs, RUN_CUTS_AT_ONCE, &p->cuts));
    const struct piece_plan plan = {.comm = &ctx->comm,
                                    .engine = ctx->engine,
                                    .element_bytes = p->pipeline.element_bytes,
                                    .buffer_bytes =
                                        piece_chunk_bytes(p->slot_bytes, ctx->options.chunk_bytes),
                                    .runs_of = p->runs_of,
                                    .first_segment = p->first_segment,
                                    .rounds = p->rounds,
                                    .reads = ctx->options.shared_memory != HSORT_CHOICE_OFF};
    return piece_messages_open(&plan, &p->messages);
}

/* Take the memory of all ranks, or of none. Collective. */
static hsort_status reserve_passes(struct passes *p)
{
    hsort_context *ctx = p->s->ctx;
    TRY(context_unmap(ctx, true));
    p->run_bytes = sort_run_bytes(p->s);
    const size_t more = run_memory_growth(&ctx->runs, p->run_bytes) + room_beside_runs(p);
    hsort_status status = node_memory_check(&ctx->comm, more);
    if ((status = context_agree(ctx, status)) == HSORT_OK)
        status = context_agree(ctx, take_pass_memory(p));
    return status;
}

static void free_passes(struct passes *p)
{
    piece_messages_close(p->messages);
    run_cuts_close(p->cuts);
    pipeline_close(&p->pipeline);
    pass_give_slots(&p->sort, p->pipeline.slot);
    if (!p->s->ctx->options.keep_host_memory)
        run_memory_drop(&p->s->ctx->runs);
    free(p->runs_of);
    free(p->first_segment);
    free(p->run_count);
    free(p->run);
    free(p->pieces);
    free(p->places);
    free(p->position);
    free(p->cut_offset);
}

/* ---- pass 1: runs -------------------------------------------------------------------------------------- */

/* pipeline.sort: the elements have the caller's bits, before and after. Only bare keys are ever looked at. */
static hsort_status sort_and_look(void *passes, void *elements, void *scratch, int64_t count, void **sorted)
{
    struct passes *p = passes;
    if (!p->in_pass_2)
        TRY(stream_check_add(p->s, &p->s->before, elements, count));
    TRY(pass_sort_slot(&p->sort, elements, scratch, p->slot, count, sorted));
    return p->in_pass_2 ? stream_check_add(p->s, &p->s->after, *sorted, count) : HSORT_OK;
}

/* Where chunk `part` comes from, or where the same part of the result goes: the caller's memory, or a stream. */
static struct engine_transfer part_of(const struct passes *p, const struct key_stream *stream,
                                      const void *memory, int64_t part, int64_t count)
{
    if (stream)
        return stream_transfer(stream, (int64_t)p->pipeline.element_bytes, part * p->slot, count);
    return (struct engine_transfer){.bytes = (size_t)count * p->pipeline.element_bytes,
                                    .host = element_at(p, memory, part * p->slot)};
}

/* Elements first .. first + count - 1 of a run, which lies in host memory. */
static struct engine_transfer run_transfer(const struct passes *p, int64_t run, int64_t first, int64_t count)
{
    return (struct engine_transfer){.bytes = (size_t)count * p->pipeline.element_bytes,
                                    .host = element_at(p, p->run[run], first)};
}

/* Let all chunks through the pipeline; returns how many keys of the source came. */
static int64_t push_chunks(struct passes *p)
{
    const struct sort *s = p->s;
    int64_t done = 0;
    for (int64_t run = 0; run < s->runs && p->pipeline.status == HSORT_OK; run++) {
        const int64_t count = p->run_count[run];
        if (s->source && !s->source->next(s->source->user, done, false))
            break;
        struct engine_transfer chunk = part_of(p, s->source, s->in, run, count);
        const struct pipeline_item item = {.count = count,
                                           .pieces = &chunk,
                                           .piece_count = 1,
                                           .pinned_pieces = s->in_space != SPACE_HOST,
                                           .out = run_transfer(p, run, 0, count),
                                           .out_is_pinned = p->runs_are_pinned};
        pipeline_push(&p->pipeline, &item);
        report_step(p, s->source, "runs", run + 1, s->runs);
        done += count;
    }
    return done;
}

/* Collective where there is a source. */
static hsort_status make_runs(struct passes *p)
{
    struct sort *s = p->s;
    p->pipeline.status = context_wait_caller(s->ctx, s->stream, SPACE_HOST); // the host copies keys itself
    if (s->source)
        s->source->begin(s->source->user);
    const int64_t done = push_chunks(p);
    const hsort_status status = pipeline_drain(&p->pipeline);
    return s->source ? s->source->end(s->source->user, done, status) : status;
}

/* ---- the cuts ------------------------------------------------------------------------------------------ */

/* run_set.code_at: of the runs, which hold the caller's bits. */
static key_code code_of_run(const void *passes, int64_t cut, int64_t run, int64_t position)
{
    (void)cut;
    const struct passes *p = passes;
    return pass_code_at(&p->sort, p->run[run], position);
}

/* Cut all runs where segments of all ranks begin, and tell every rank the lengths of its pieces. Collective. */
static hsort_status cut_runs(struct passes *p)
{
    const hsort_context *ctx = p->s->ctx;
    const int size = ctx->comm.size;
    const struct run_set set = {.count = p->run_count, .code_at = code_of_run, .state = p};
    for (int rank = 0; rank < size; rank++)
        for (int64_t segment = p->first_segment[rank]; segment < p->first_segment[rank + 1]; segment++)
            p->position[segment] = ctx->want_offset[rank] + (segment - p->first_segment[rank]) * p->slot;
    p->position[p->first_segment[size]] = p->s->total;
    hsort_status status =
        run_cuts_find(p->cuts, &set, p->s->total, p->position, p->first_segment[size] + 1, p->cut_offset);
    keep_first_error(&status, piece_messages_plan(p->messages, p->cut_offset, p->run));
    return status;
}

/* ---- pass 2: segments ---------------------------------------------------------------------------------- */

/* This rank's segment of a round, with the pieces of its own runs and of those that it reads; of 0 elements if it has none. */
static struct pipeline_item segment_of_round(struct passes *p, int64_t round)
{
    const struct sort *s = p->s;
    const int64_t segment = p->first_segment[s->ctx->comm.rank] + round;
    struct pipeline_item item = {.pieces = p->pieces, .places = p->places};
    if (round >= s->segments)
        return item;
    size_t place = (size_t)piece_messages_before(p->messages, round) * p->pipeline.element_bytes;
    item.count = lesser(p->slot, s->out_count - round * p->slot);
    item.out = part_of(p, s->sink, s->out, round, item.count);
    item.out_is_pinned = s->out_space != SPACE_HOST;
    for (int64_t run = 0; run < s->runs; run++) {
        const int64_t *cut = p->cut_offset + segment * s->runs + run;
        const int64_t count = cut[s->runs] - cut[0];
        if (count == 0)
            continue;
        p->places[item.piece_count] = place;
        p->pieces[item.piece_count] = run_transfer(p, run, cut[0], count);
        place += p->pieces[item.piece_count++].bytes;
    }
    item.pinned_pieces = p->copies_pieces ? item.piece_count : 0;
    item.piece_count +=
        piece_messages_reads(p->messages, round, p->pieces + item.piece_count, p->places + item.piece_count);
    return item;
}

/* pipeline.fetch: the pieces that come by message. */
static hsort_status fetch_pieces(void *passes, char *slot)
{
    struct passes *p = passes;
    return piece_messages_finish(p->messages, slot);
}

/* Let all segments through the pipeline; returns how many keys of them went in. All ranks do the same rounds: where a
 * sink is asked whether it takes more, all ask. Collective. */
static int64_t push_segments(struct passes *p, hsort_status *status)
{
    const struct sort *s = p->s;
    int64_t done = 0;
    for (int64_t round = 0; round < p->rounds; round++) {
        if (s->sink && !s->sink->next(s->sink->user, done, true))
            break;
        const struct pipeline_item item = segment_of_round(p, round);
        keep_first_error(status, piece_messages_begin(p->messages, round));
        pipeline_push(&p->pipeline, &item);
        report_step(p, s->sink, "segments", round + 1, p->rounds);
        done += item.count;
    }
    return done;
}

/* Collective. */
static hsort_status make_segments(struct passes *p)
{
    struct sort *s = p->s;
    hsort_status status = HSORT_OK;
    p->in_pass_2 = true;
    p->pipeline.fetch = fetch_pieces;
    if (s->sink)
        s->sink->begin(s->sink->user);
    const int64_t done = push_segments(p, &status);
    keep_first_error(&status, pipeline_drain(&p->pipeline));
    return s->sink ? s->sink->end(s->sink->user, done, status) : status;
}

/* ---- the passes ---------------------------------------------------------------------------------------- */

static hsort_status run_passes(struct passes *p)
{
    struct sort *s = p->s;
    hsort_context *ctx = s->ctx;
    TRY(agree_on_slot(p));
    TRY(reserve_passes(p));
    stream_check_begin(s);
    s->phase_began = MPI_Wtime();
    struct trace_span *span = trace_begin(ctx->comm.trace, "pass 1: runs");
    TRY(context_agree(ctx, trace_end_with(span, make_runs(p))));
    sort_end_pass(s, HSORT_PHASE_LOCAL_SORT);
    span = trace_begin(ctx->comm.trace, "cut runs");
    TRY(context_agree(ctx, trace_end_with(span, cut_runs(p))));
    sort_end_pass(s, HSORT_PHASE_EXCHANGE);
    span = trace_begin(ctx->comm.trace, "pass 2: segments");
    hsort_status status = trace_end_with(span, make_segments(p));
    sort_end_pass(s, HSORT_PHASE_MERGE);
    s->messages = piece_messages_sent(p->messages);
    s->shown = piece_messages_shown(p->messages);
    s->x.moved_bytes = s->messages.bytes + s->shown.bytes;
    s->form = FORM_DELIVERED;
    TRY(context_agree(ctx, status));
    return s->sink ? stream_check_end(s) : HSORT_OK;
}

hsort_status two_passes_run(struct sort *s)
{
    struct passes p = {.s = s,
                       .sort = {.ctx = s->ctx, .map = s->map, .elements = s->elements},
                       .pipeline = {.engine = s->ctx->engine, .trace = s->ctx->comm.trace, .sort = sort_and_look}};
    // Copies of host memory and a sort on the host would take the cores from each other.
    p.pipeline.sorts_beside = s->ctx->engine->ops->kind != HSORT_ENGINE_HOST;
    p.pipeline.element_bytes = pass_element_bytes(&p.sort);
    p.pipeline.user = &p;
    const hsort_status status = run_passes(&p);
    free_passes(&p);
    return status;
}
