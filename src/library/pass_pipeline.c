/* Which work waits for which, by the events of the last step on each stream:
 *
 *     STREAM_IN    fills slot[0]     which went out in the step before     waits for STREAM_OUT
 *     STREAM_WORK  sorts slot[1]     which was filled then                 waits for STREAM_IN
 *     STREAM_OUT   empties slot[2]   which was sorted then                 waits for STREAM_WORK
 *
 * slot[3] belongs to STREAM_WORK alone: if a sort leaves its result there, both slots change roles, and the next
 * sort has the other one for scratch.
 *
 * Copies of pinned memory are begun before the sort, which may keep the host waiting. Transfers run in the call, both
 * directions at once. With sorts_beside the sort then has a thread of its own, and the host waits for both at the same time:
 *
 *     this thread    transfers of a step, in and out | join | events, next step
 *     sorting        sort, and its waits ....... | */
#include "src/library/pass_pipeline.h"
#include <pthread.h>
#include <stdio.h>

static hsort_status record_step(struct pipeline *p)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        TRY(p->engine->ops->event_record(p->engine, p->event[stream], (enum engine_stream)stream));
    return HSORT_OK;
}

hsort_status pipeline_open(struct pipeline *p)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        TRY(p->engine->ops->event_create(p->engine, &p->event[stream]));
    return record_step(p);
}

void pipeline_close(struct pipeline *p)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++) {
        p->engine->ops->event_destroy(p->engine, p->event[stream]);
        p->event[stream] = NULL;
    }
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* Say where in the slot the pieces of an item lie. */
static void place_pieces(const struct pipeline_item *item, char *slot)
{
    size_t at = 0;
    for (int piece = 0; piece < item->piece_count; piece++) {
        item->pieces[piece].memory = slot + (item->places ? item->places[piece] : at);
        at += item->pieces[piece].bytes;
    }
}

/* Begin copies of pinned host memory. */
static hsort_status begin_copies(struct pipeline *p, const struct engine_transfer *transfers, int count,
                                 bool out)
{
    for (int i = 0; i < count; i++) {
        const struct engine_transfer *transfer = &transfers[i];
        void *to = out ? transfer->host : transfer->memory;
        const void *from = out ? transfer->memory : transfer->host;
        TRY(p->engine->ops->copy(p->engine, out ? STREAM_OUT : STREAM_IN, to, from, transfer->bytes));
    }
    return HSORT_OK;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Let each stream wait for the one whose slot it gets. */
static hsort_status wait_for_slots(struct pipeline *p)
{
    const struct engine_ops *ops = p->engine->ops;
    TRY(ops->stream_wait_event(p->engine, STREAM_IN, p->event[STREAM_OUT]));
    TRY(ops->stream_wait_event(p->engine, STREAM_OUT, p->event[STREAM_WORK]));
    return ops->stream_wait_event(p->engine, STREAM_WORK, p->event[STREAM_IN]);
}

/* The sort of a step, perhaps in a thread of its own. */
struct slot_sort {
    struct pipeline *p;
    void *sorted;
    hsort_status status;
    char text[STATUS_TEXT_BYTES]; /* of a failure in a thread of its own */
};

static void *sort_slot(void *slot_sort)
{
    struct slot_sort *own = slot_sort;
    struct pipeline *p = own->p;
    struct trace_span *span = trace_begin(p->trace, "sort slot");
    trace_keys(span, p->work.count);
    own->status = p->sort(p->user, p->slot[1], p->slot[3], p->work.count, &own->sorted);
    snprintf(own->text, sizeof own->text, "%s", status_text());
    trace_end(span);
    return NULL;
}

static void *sort_slot_beside(void *slot_sort)
{
    trace_enter_sorter();
    return sort_slot(slot_sort);
}

/* Keep what a sort has left: its failure, and where the result is. */
static void end_sort(struct pipeline *p, const struct slot_sort *done)
{
    if (done->status != HSORT_OK)
        keep_first_error(&p->status, status_fail(done->status, "%s", done->text));
    if (done->sorted == p->slot[3]) {
        p->slot[3] = p->slot[1];
        p->slot[1] = done->sorted;
    }
}

/* What this step does on all streams. */
static void run_step(struct pipeline *p, const struct pipeline_item *item)
{
    struct slot_sort own = {.p = p, .sorted = p->slot[1]};
    const bool leaves = p->leaving.count > 0;
    const int copies_out = leaves && p->leaving.out_is_pinned,
              transfers_out = leaves && !p->leaving.out_is_pinned;
    const int transfers_in = item->piece_count - item->pinned_pieces;
    const bool waits = transfers_in > 0 || transfers_out > 0;
    pthread_t thread;
    p->leaving.out.memory = p->slot[2];
    place_pieces(item, p->slot[0]);
    if (p->status == HSORT_OK)
        p->status = begin_copies(p, item->pieces, item->pinned_pieces, false);
    if (p->status == HSORT_OK)
        p->status = begin_copies(p, &p->leaving.out, copies_out, true);
    const bool sorts = p->status == HSORT_OK && p->work.count > 0;
    const bool beside =
        sorts && waits && p->sorts_beside && pthread_create(&thread, NULL, sort_slot_beside, &own) == 0;
    if (sorts && !beside)
        sort_slot(&own);
    if (p->status == HSORT_OK && waits)
        p->status = p->engine->ops->transfer(p->engine, item->pieces + item->pinned_pieces, transfers_in,
                                             &p->leaving.out, transfers_out);
    if (beside)
        pthread_join(thread, NULL);
    end_sort(p, &own);
}

/* The slots take their next roles: the one that went out is free for what comes in. */
static void turn_slots(struct pipeline *p, const struct pipeline_item *item)
{
    char *gone = p->slot[2];
    p->slot[2] = p->slot[1];
    p->slot[1] = p->slot[0];
    p->slot[0] = gone;
    p->leaving = p->work;
    p->work = *item;
}

void pipeline_push(struct pipeline *p, const struct pipeline_item *item)
{
    static const struct pipeline_item nothing;
    const struct pipeline_item *comes = item ? item : &nothing;
    struct trace_span *span = trace_begin(p->trace, "step");
    if (p->status == HSORT_OK)
        p->status = wait_for_slots(p);
    run_step(p, comes);
    if (p->fetch)
        keep_first_error(&p->status, p->fetch(p->user, p->slot[0]));
    if (p->status == HSORT_OK)
        p->status = record_step(p);
    trace_end(span);
    turn_slots(p, comes);
}

hsort_status pipeline_drain(struct pipeline *p)
{
    p->fetch = NULL;
    pipeline_push(p, NULL);
    pipeline_push(p, NULL);
    for (int stream = 0; stream < ENGINE_STREAMS; stream++) // after a failure too: copies may be under way
        keep_first_error(&p->status,
                         p->engine->ops->stream_synchronize(p->engine, (enum engine_stream)stream));
    return p->status;
}
