/* Two passes with runs in a store, as the list of their steps: disk_passes_run(), at the end.
 *
 * Runs and segments are parts of the whole input and the whole result, so that any rank makes any of them. Those that no
 * earlier call has made are dealt out:
 *
 *     runs         0 1 2 3 4 5 6 7       made before: 0 1 4
 *     rank 0           2   5   7         every second one of those that are not
 *     rank 1             3   6
 *
 * A part goes through the pipeline, and is kept (run_store.h) at the end of the step in which it goes out:
 *
 *     step           0     1     2     3            stage[0] coming in, [1] being sorted, [2] going out
 *     part           2     5     7     -
 *     kept           -     -     2     5 */
#include "src/library/disk_passes.h"
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "src/library/disk_cuts.h"
#include "src/library/disk_plan.h"
#include "src/library/pass_pipeline.h"
#include "src/library/sort_stream.h"

enum { STAGES = 3, NO_PART = -1 };

/* A piece of a run, on its way into a slot. */
struct run_piece {
    const struct run_store *store;
    int64_t run;
    struct trace *trace;
};

struct disk_passes {
    struct sort *s;
    const struct run_store *store;
    struct pass_sort sort;
    struct run_plan plan;
    bool in_pass_2;
    int64_t stage[STAGES];          /* parts in the pipeline, or NO_PART */
    struct run_facts facts[STAGES]; /* of them, as far as they are known */
    struct run_facts *made; /* [2 * parts] runs, then segments, that this call has made on this rank */
    char *fences;           /* [fences of a run] of the run that goes out */
    int64_t *cuts;          /* [(parts + 1) * parts] */
    struct run_piece *from; /* [parts] */
    struct engine_transfer *pieces; /* [parts] */
    struct pipeline pipeline;
};

/* A collective call of the store has ended, and all ranks have its status. Only ranks that failed have the line that says why: let all
 * ranks have it. Collective. */
static hsort_status share_line(struct disk_passes *p, hsort_status status)
{
    if (status != HSORT_OK)
        (void)comm_agree(&p->s->ctx->comm, status_text()[0] ? status : HSORT_OK);
    return status;
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

/* What the parts depend on, on this rank. */
static hsort_status find_sizes(struct disk_passes *p, struct disk_sizes *sizes)
{
    hsort_context *ctx = p->s->ctx;
    size_t bytes;
    TRY(context_engine_bytes(ctx, &bytes));
    *sizes = (struct disk_sizes){.elements = p->s->total,
                                 .element_bytes = p->pipeline.element_bytes,
                                 .ranks = ctx->comm.size,
                                 .wanted_parts = p->store->parts,
                                 .memory_bytes = p->store->memory_bytes,
                                 .engine_bytes = usable_bytes(bytes),
                                 .on_host = hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST,
                                 .workspace = pass_sort_workspace,
                                 .workspace_user = &p->sort};
    return HSORT_OK;
}

/* Parts for which every rank has memory; or those of an earlier call. Collective. */
static hsort_status plan_parts(struct disk_passes *p)
{
    struct comm *comm = &p->s->ctx->comm;
    struct disk_sizes sizes = {.ranks = comm->size};
    int64_t own = 0, longest;
    hsort_status status = find_sizes(p, &sizes);
    if (status == HSORT_OK)
        status = disk_plan_longest(&sizes, &own);
    TRY(comm_agree(comm, status));
    TRY(comm_range(comm, own, &longest, NULL));
    disk_plan_parts(&sizes, longest, &p->plan);
    return share_line(p, p->store->open(p->store->user, &p->plan));
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static hsort_status make_disk_tables(struct disk_passes *p)
{
    const size_t parts = (size_t)p->plan.parts;
    p->made = calloc(2 * parts, sizeof *p->made);
    p->fences = malloc((size_t)plan_fences(&p->plan, 0) * p->plan.element_bytes);
    p->cuts = calloc((parts + 1) * parts, sizeof *p->cuts);
    p->from = calloc(parts, sizeof *p->from);
    p->pieces = calloc(parts, sizeof *p->pieces);
    if (!p->made || !p->fences || !p->cuts || !p->from || !p->pieces || fault_hit(FAULT_ALLOC))
        return status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %zu runs", parts);
    for (int64_t run = 0; run < p->plan.parts; run++)
        p->from[run] = (struct run_piece){p->store, run, p->pipeline.trace};
    return HSORT_OK;
}

/* Ranks have unmapped each other's memory. */
static hsort_status take_disk_memory(struct disk_passes *p)
{
    TRY(make_disk_tables(p));
    TRY(pass_take_slots(&p->sort, p->plan.part_elements, p->pipeline.slot));
    return pipeline_open(&p->pipeline);
}

static void free_disk_passes(struct disk_passes *p)
{
    pipeline_close(&p->pipeline);
    pass_give_slots(&p->sort, p->pipeline.slot);
    free(p->made);
    free(p->fences);
    free(p->cuts);
    free(p->from);
    free(p->pieces);
}

/* ---- one part through the pipeline --------------------------------------------------------------------- */

/* Keep what a verifier has seen of a whole part. */
static void take_facts(const struct verifier *seen, struct run_facts *facts)
{
    *facts = (struct run_facts){.is_made = 1,
                                .count = (uint64_t)seen->count,
                                .fingerprint = {seen->fingerprint[0], seen->fingerprint[1]},
                                .in_order = seen->first_descent < 0,
                                .first = seen->first,
                                .last = seen->last};
}

/* pipeline.sort: look at what a run is made of, or at what a segment has become. */
static hsort_status sort_part(void *passes, void *elements, void *scratch, int64_t count, void **sorted)
{
    struct disk_passes *p = passes;
    struct verifier seen;
    verify_start(&seen, p->sort.map);
    if (!p->in_pass_2)
        TRY(pass_look(&p->sort, &seen, elements, count));
    TRY(pass_sort_slot(&p->sort, elements, scratch, p->plan.part_elements, count, sorted));
    if (p->in_pass_2)
        TRY(pass_look(&p->sort, &seen, *sorted, count));
    take_facts(&seen, &p->facts[1]);
    return HSORT_OK;
}

/* The part that has gone out is whole: keep it. */
static hsort_status keep_part(struct disk_passes *p, int64_t part, struct run_facts *facts)
{
    const struct run_store *store = p->store;
    if (p->in_pass_2) {
        TRY(store->end_segment(store->user, part, facts));
    } else {
        const int64_t fences = plan_fences(&p->plan, part), width = (int64_t)p->plan.element_bytes;
        facts->fences = fences_checksum(p->fences, (size_t)(fences * width));
        TRY(store->write_run(store->user, part, plan_part_count(&p->plan, part) * width,
                             (size_t)(fences * width), p->fences));
        TRY(store->end_run(store->user, part, facts));
    }
    p->made[p->in_pass_2 ? p->plan.parts + part : part] = *facts;
    return HSORT_OK;
}

/* One step; part NO_PART: nothing comes in. */
static void push_part(struct disk_passes *p, int64_t part, const struct pipeline_item *item)
{
    p->stage[0] = part;
    pipeline_push(&p->pipeline, item);
    const int64_t gone = p->stage[2];
    struct run_facts facts = p->facts[2];
    for (int stage = STAGES - 1; stage > 0; stage--) {
        p->stage[stage] = p->stage[stage - 1];
        p->facts[stage] = p->facts[stage - 1];
    }
    if (gone != NO_PART && p->pipeline.status == HSORT_OK)
        p->pipeline.status = keep_part(p, gone, &facts);
}

static hsort_status drain_parts(struct disk_passes *p)
{
    for (int stage = 1; stage < STAGES; stage++)
        push_part(p, NO_PART, NULL);
    return pipeline_drain(&p->pipeline);
}

/* How much of this rank's share of the stream is through once all parts before `part` are, whoever has made them. */
static int64_t share_through(const struct disk_passes *p, int64_t part)
{
    return lesser(part * p->plan.part_elements, p->plan.elements) / p->s->ctx->comm.size;
}

/* Let every part that is not made, and that is this rank's, through the pipeline. Collective. */
static hsort_status push_parts(struct disk_passes *p, const struct key_stream *stream,
                               const struct run_facts *facts,
                               hsort_status (*push)(struct disk_passes *p, int64_t part))
{
    const struct comm *comm = &p->s->ctx->comm;
    int64_t open = 0, part = 0;
    for (int stage = 0; stage < STAGES; stage++)
        p->stage[stage] = NO_PART;
    stream->begin(stream->user);
    for (; part < p->plan.parts && p->pipeline.status == HSORT_OK; part++) {
        if (facts[part].is_made || open++ % comm->size != comm->rank)
            continue;
        if (!stream->next(stream->user, share_through(p, part), false))
            break;
        keep_first_error(&p->pipeline.status, push(p, part));
    }
    const hsort_status status = drain_parts(p);
    return stream->end(stream->user, share_through(p, part), status);
}

/* The elements of a part in a stream, which counts from this rank's first. */
static struct engine_transfer part_in_stream(const struct disk_passes *p, const struct key_stream *stream,
                                             const int64_t *offsets, int64_t part)
{
    return stream_transfer(stream, (int64_t)p->plan.element_bytes,
                           part * p->plan.part_elements - offsets[p->s->ctx->comm.rank],
                           plan_part_count(&p->plan, part));
}

/* ---- pass 1: runs -------------------------------------------------------------------------------------- */

/* engine_transfer.move: bytes of the run that goes out, and what the fences have of them.
 *
 *     elements    | 0 . . . | 1 . . . | 2 . . . | 3 . . . |        fence_elements 2
 *     bytes             [at . . . . . . . . . . . end)
 *     fences      | 0 . . . | 2 . . . |                            of 0 the end, of 2 the beginning                 */
static hsort_status write_run_bytes(void *passes, int64_t at, size_t bytes, void *host)
{
    struct disk_passes *p = passes;
    const int64_t width = (int64_t)p->plan.element_bytes, step = width * p->plan.fence_elements;
    const int64_t end = at + (int64_t)bytes;
    for (int64_t fence = at / step; fence * step < end; fence++) {
        const int64_t begin = greater(fence * step, at);
        const int64_t up_to = lesser(fence * step + width, end);
        if (begin < up_to)
            memcpy(p->fences + fence * width + (begin - fence * step), (char *)host + (begin - at),
                   (size_t)(up_to - begin));
    }
    struct trace_span *span = trace_begin(p->pipeline.trace, "write run");
    trace_bytes(span, (int64_t)bytes);
    return trace_end_with(span, p->store->write_run(p->store->user, p->stage[2], at, bytes, host));
}

static hsort_status push_run(struct disk_passes *p, int64_t run)
{
    const struct run_store *store = p->store;
    const int64_t count = plan_part_count(&p->plan, run);
    struct engine_transfer chunk = part_in_stream(p, p->s->source, p->s->ctx->have_offset, run);
    const struct pipeline_item item = {.count = count,
                                       .pieces = &chunk,
                                       .piece_count = 1,
                                       .out = {.bytes = (size_t)count * p->plan.element_bytes,
                                               .move = write_run_bytes,
                                               .user = p,
                                               .lead = store->lead(store->user, 0)}};
    TRY(store->begin_run(store->user, run));
    push_part(p, run, &item);
    return HSORT_OK;
}

/* ---- pass 2: segments ---------------------------------------------------------------------------------- */

static hsort_status read_run_bytes(void *piece, int64_t at, size_t bytes, void *host)
{
    const struct run_piece *from = piece;
    struct trace_span *span = trace_begin(from->trace, "read run");
    trace_bytes(span, (int64_t)bytes);
    return trace_end_with(span, from->store->read_run(from->store->user, from->run, at, bytes, host));
}

static hsort_status push_segment(struct disk_passes *p, int64_t segment)
{
    const int64_t parts = p->plan.parts, width = (int64_t)p->plan.element_bytes;
    struct pipeline_item item = {.count = plan_part_count(&p->plan, segment),
                                 .pieces = p->pieces,
                                 .out = part_in_stream(p, p->s->sink, p->s->ctx->want_offset, segment)};
    for (int64_t run = 0; run < parts; run++) {
        const int64_t *cut = p->cuts + segment * parts + run, at = cut[0] * width;
        if (cut[parts] > cut[0])
            p->pieces[item.piece_count++] =
                (struct engine_transfer){.bytes = (size_t)((cut[parts] - cut[0]) * width),
                                         .move = read_run_bytes,
                                         .user = &p->from[run],
                                         .at = at,
                                         .lead = p->store->lead(p->store->user, at)};
    }
    push_part(p, segment, &item);
    return HSORT_OK;
}

/* Does any rank have a segment to make? If not, no cut is needed. The same on every rank. */
static bool lacks_segments(const struct run_plan *plan)
{
    for (int64_t part = 0; part < plan->parts; part++)
        if (!plan->segments[part].is_made)
            return true;
    return false;
}

static hsort_status make_result(struct disk_passes *p)
{
    const struct run_store *store = p->store;
    if (!lacks_segments(&p->plan))
        return HSORT_OK;
    TRY(share_line(p, store->reopen(store->user)));
    struct trace *trace = p->s->ctx->comm.trace;
    struct trace_span *span = trace_begin(trace, "cut runs");
    TRY(trace_end_with(span, disk_cuts_find(&p->s->ctx->comm, &p->sort, store, &p->plan, &p->s->ctx->options,
                                            disk_plan_window_bytes(store->memory_bytes), p->cuts)));
    sort_end_pass(p->s, HSORT_PHASE_EXCHANGE);
    span = trace_begin(trace, "pass 2: segments");
    p->in_pass_2 = true;
    const hsort_status status =
        trace_end_with(span, push_parts(p, p->s->sink, p->plan.segments, push_segment));
    sort_end_pass(p->s, HSORT_PHASE_MERGE);
    return context_agree(p->s->ctx, status);
}

/* ---- what has been seen -------------------------------------------------------------------------------- */

/* Let every rank know of the parts that any of them has made in this call. Collective. */
static hsort_status join_made(struct disk_passes *p)
{
    const struct comm *comm = &p->s->ctx->comm;
    uint64_t *words = (uint64_t *)p->made;
    const int64_t parts = p->plan.parts;
    const int count = (int)(2 * parts * RUN_FACTS_WORDS);
    if (!comm_is_alone(comm))
        TRY(comm_check(MPI_Allreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, MPI_BOR, comm->world),
                       "MPI_Allreduce", true));
    for (int64_t part = 0; part < 2 * parts; part++) {
        struct run_facts *known = part < parts ? &p->plan.runs[part] : &p->plan.segments[part - parts];
        if (p->made[part].is_made)
            *known = p->made[part];
    }
    return HSORT_OK;
}

/* Join parts as if they had been looked at one behind the other. `ordered`: they are parts of the result. */
static hsort_status join_facts(const struct run_plan *plan, const struct run_facts *facts, bool ordered,
                               hsort_check_result *result)
{
    *result = (hsort_check_result){.first_disorder = -1, .first_unstable = -1};
    for (int64_t part = 0; part < plan->parts; part++) {
        const struct run_facts *f = &facts[part];
        if (!f->is_made)
            return status_fail(HSORT_INTERNAL, "part %lld of %lld was not made", (long long)part,
                               (long long)plan->parts);
        const bool descends = part > 0 && f->first < facts[part - 1].last;
        if (ordered && result->first_disorder < 0 && (descends || !f->in_order))
            result->first_disorder = result->count;
        result->count += (int64_t)f->count;
        for (int word = 0; word < 2; word++)
            result->fingerprint[word] += f->fingerprint[word];
    }
    return HSORT_OK;
}

static hsort_status fill_check(struct disk_passes *p)
{
    struct stream_check *check = p->s->check;
    TRY(context_agree(p->s->ctx, join_made(p)));
    if (!check)
        return HSORT_OK;
    TRY(join_facts(&p->plan, p->plan.runs, false, &check->before));
    return join_facts(&p->plan, p->plan.segments, true, &check->after);
}

/* ---- the passes ---------------------------------------------------------------------------------------- */

static hsort_status run_disk_passes(struct disk_passes *p)
{
    struct sort *s = p->s;
    hsort_context *ctx = s->ctx;
    TRY(plan_parts(p));
    TRY(context_unmap(ctx, true));
    TRY(context_agree(ctx, take_disk_memory(p)));
    s->phase_began = MPI_Wtime();
    struct trace_span *span = trace_begin(ctx->comm.trace, "pass 1: runs");
    TRY(context_agree(ctx, trace_end_with(span, push_parts(p, s->source, p->plan.runs, push_run))));
    TRY(context_agree(ctx, join_made(p))); // whoever reads fences checks them
    sort_end_pass(s, HSORT_PHASE_LOCAL_SORT);
    TRY(make_result(p));
    s->form = FORM_DELIVERED;
    s->runs = s->segments = ctx->comm.rank == 0 ? p->plan.parts : 0;
    return fill_check(p);
}

hsort_status disk_passes_run(struct sort *s)
{
    struct disk_passes p = {
        .s = s,
        .store = s->store,
        .sort = {.ctx = s->ctx, .map = s->map, .elements = s->elements},
        .pipeline = {
            .engine = s->ctx->engine, .trace = s->ctx->comm.trace, .sort = sort_part, .sorts_beside = true}};
    p.pipeline.element_bytes = pass_element_bytes(&p.sort);
    p.pipeline.user = &p;
    const hsort_status status = run_disk_passes(&p);
    free_disk_passes(&p);
    return status;
}
