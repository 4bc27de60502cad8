/* Which work waits for which, by the events of the last step on each stream:
 *
 *     STREAM_IN    fills slot[0]     which went out in the step before     waits for STREAM_OUT
 *     STREAM_WORK  sorts slot[1]     which was filled then                 waits for STREAM_IN
 *     STREAM_OUT   empties slot[2]   which was sorted then                 waits for STREAM_WORK
 *
 * slot[3] belongs to STREAM_WORK alone: if a sort leaves its result there, both slots change roles, and the next
 * sort has the other one for scratch.
 *
 * Copies from and to pinned memory are begun before the sort, which may keep the host waiting for a moment;
 * copies of ordinary memory run in the call, so the sort is begun before them. Those of both directions take
 * turns, DUPLEX_BYTES at a time: each call returns with its last buffers still on the link, and the other
 * direction goes on meanwhile. */
#include "src/library/pass_pipeline.h"
#include "kernels/base/first_error.h"

enum { DUPLEX_BYTES = 32 << 20 };

hsort_status pipeline_open(struct pipeline *p)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        TRY(p->engine->ops->event_create(p->engine, &p->event[stream]));
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        TRY(p->engine->ops->event_record(p->engine, p->event[stream], (enum engine_stream)stream));
    return HSORT_OK;
}

void pipeline_close(struct pipeline *p)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++) {
        p->engine->ops->event_destroy(p->engine, p->event[stream]);
        p->event[stream] = NULL;
    }
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* Bytes of one direction that are still to be copied. */
struct pipeline_copy {
    const struct pipeline_piece *pieces; /* NULL: out, from one place to one place */
    int left;                            /* pieces that are not done */
    size_t done;                         /* bytes of the first of these; out: of all */
    const char *from;
    char *to;
    size_t bytes; /* in: of all pieces that are left; out: of all */
};

/* Copy the next bytes, DUPLEX_BYTES at most, of one piece. Returns false if there are none. */
static bool copy_next(struct pipeline *p, enum engine_stream stream, struct pipeline_copy *copy)
{
    if (copy->left == 0 || p->status != HSORT_OK)
        return false;
    const char *from = copy->pieces ? copy->pieces->from : copy->from;
    const size_t all = copy->pieces ? copy->pieces->bytes : copy->bytes, rest = all - copy->done;
    const size_t bytes = rest < DUPLEX_BYTES ? rest : DUPLEX_BYTES;
    if (bytes > 0)
        p->status = p->engine->ops->copy(p->engine, stream, copy->to, from + copy->done, bytes);
    copy->to += bytes;
    copy->done += bytes;
    if (copy->done == all) {
        copy->left--;
        copy->done = 0;
        if (copy->pieces)
            copy->pieces++;
    }
    return true;
}

static void copy_all(struct pipeline *p, struct pipeline_copy *in, struct pipeline_copy *out)
{
    bool more = true;
    while (more) {
        const bool came = copy_next(p, STREAM_IN, in), went = copy_next(p, STREAM_OUT, out);
        more = came || went;
    }
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

static void sort_slot(struct pipeline *p)
{
    void *sorted = p->slot[1];
    if (p->status == HSORT_OK && p->work.count > 0)
        p->status = p->sort(p->user, p->slot[1], p->slot[3], p->work.count, &sorted);
    if (sorted == p->slot[3]) {
        p->slot[3] = p->slot[1];
        p->slot[1] = sorted;
    }
}

/* What this step does on all streams. */
static void run_step(struct pipeline *p, const struct pipeline_item *item)
{
    struct pipeline_copy none = {.left = 0};
    struct pipeline_copy in = {
        .pieces = item->pieces, .left = item->piece_count, .to = p->slot[0] + item->at};
    struct pipeline_copy out = {.from = p->slot[2],
                                .to = p->leaving.out,
                                .left = p->leaving.count > 0,
                                .bytes = (size_t)p->leaving.count * p->element_bytes};
    copy_all(p, p->in_waits ? &none : &in, p->out_waits ? &none : &out);
    sort_slot(p);
    copy_all(p, &in, &out);
}

static hsort_status record_step(struct pipeline *p)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        TRY(p->engine->ops->event_record(p->engine, p->event[stream], (enum engine_stream)stream));
    return HSORT_OK;
}

/* The slots take their next roles: what went out is free to come in. */
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
    if (p->status == HSORT_OK)
        p->status = wait_for_slots(p);
    run_step(p, comes);
    if (p->fetch)
        keep_first_error(&p->status, p->fetch(p->user, p->slot[0]));
    if (p->status == HSORT_OK)
        p->status = record_step(p);
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
