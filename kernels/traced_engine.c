#include "kernels/traced_engine.h"
#include "kernels/traced_calls.h"
#include <pthread.h>
#include <stdlib.h>

enum { LOOKS = 8 }; // looks at both clocks; the shortest counts

/* A moment of a stream, whose time goes to *where. */
struct stream_mark {
    struct engine_event *event;
    enum engine_stream stream;
    int64_t *where;
};

/* Both clocks at a moment: the host's, and the engine's by an event. */
struct clock_look {
    struct engine_event *event;
    int64_t host_ns, error_ns;
};

struct traced_engine {
    struct traced_tables tables;
    const struct engine_ops *own; /* what the engine does itself */
    struct trace *trace;

    pthread_mutex_t lock;      /* of what follows: marks stand in the order of their streams */
    struct stream_mark *marks; /* [room] owned; the events of all that were ever used stay */
    int64_t count, room, made;
    struct clock_look first; /* when it was opened */
};

/* ---- marks of streams ---------------------------------------------------------------------------------- */

/* Make room for one more mark; false: there is no room. */
static bool grow_marks(struct engine *engine, struct traced_engine *t)
{
    if (t->count == t->room) {
        const int64_t room = 2 * t->room + 256;
        struct stream_mark *marks = realloc(t->marks, (size_t)room * sizeof *marks);
        if (!marks)
            return false;
        t->marks = marks;
        t->room = room;
    }
    if (t->count == t->made) {
        t->marks[t->made].event = NULL;
        if (t->own->timing->create(engine, &t->marks[t->made].event) != HSORT_OK)
            return false;
        t->made++;
    }
    return true;
}

/* Mark where the stream is now: *where becomes the time of that, and is 0 until the time is known. A mark that cannot
 * be made is left out: a sort does not fail because of it. */
static void mark_stream(struct engine *engine, enum engine_stream stream, int64_t *where)
{
    struct traced_engine *t = engine->traced;
    const bool failed = status_text()[0] != '\0';
    *where = 0;
    pthread_mutex_lock(&t->lock);
    if (grow_marks(engine, t) && t->own->event_record(engine, t->marks[t->count].event, stream) == HSORT_OK) {
        t->marks[t->count].stream = stream;
        t->marks[t->count++].where = where;
    } else if (!failed) {
        status_clear();
    }
    pthread_mutex_unlock(&t->lock);
}

/* Look at both clocks at once, while nothing else runs. */
static hsort_status look_at_clocks(struct engine *engine, struct clock_look *look)
{
    const struct engine_ops *own = engine->traced->own;
    struct engine_event *event[LOOKS] = {NULL};
    hsort_status status = HSORT_OK;
    int best = 0;
    for (int i = 0; i < LOOKS && status == HSORT_OK; i++) {
        status = own->timing->create(engine, &event[i]);
        const int64_t before = trace_now();
        if (status == HSORT_OK)
            status = own->event_record(engine, event[i], STREAM_WORK);
        if (status == HSORT_OK)
            status = own->stream_synchronize(engine, STREAM_WORK);
        const int64_t error_ns = (trace_now() - before) / 2;
        if (i > 0 && error_ns >= look->error_ns)
            continue;
        best = i;
        look->error_ns = error_ns;
        look->host_ns = before + error_ns;
    }
    look->event = status == HSORT_OK ? event[best] : NULL;
    for (int i = 0; i < LOOKS; i++)
        if (status != HSORT_OK || i != best)
            own->event_destroy(engine, event[i]);
    return status;
}

/* Find the times of all marks of a stream, in ns of the engine's clock from the first look on. Each is found from the
 * one before it, because the time between two events that are far apart has few digits. */
static hsort_status time_stream(struct engine *engine, enum engine_stream stream)
{
    struct traced_engine *t = engine->traced;
    struct engine_event *before = t->first.event;
    double at = 0, step = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (t->marks[i].stream != stream)
            continue;
        TRY(t->own->timing->seconds(engine, before, t->marks[i].event, &step));
        at += step;
        before = t->marks[i].event;
        *t->marks[i].where = (int64_t)(at * 1e9);
    }
    return HSORT_OK;
}

/* Convert times from the engine's clock to the host's: the two looks lie on a line.
 *
 *     host     first.host_ns ............ last.host_ns
 *     engine   0 ........................ passed_ns */
static void tell_in_host_time(struct traced_engine *t, const struct clock_look *last, double passed_ns)
{
    const double rate = passed_ns > 0 ? (double)(last->host_ns - t->first.host_ns) / passed_ns : 1;
    for (int64_t i = 0; i < t->count; i++)
        *t->marks[i].where = t->first.host_ns + (int64_t)((double)*t->marks[i].where * rate);
}

static hsort_status resolve_marks(struct engine *engine, int64_t *error_ns)
{
    struct traced_engine *t = engine->traced;
    struct clock_look last = {.event = NULL};
    double passed = 0;
    hsort_status status = HSORT_OK;
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        keep_first_error(&status, t->own->stream_synchronize(engine, (enum engine_stream)stream));
    if (status == HSORT_OK)
        status = look_at_clocks(engine, &last);
    for (int stream = 0; stream < ENGINE_STREAMS && status == HSORT_OK; stream++)
        status = time_stream(engine, (enum engine_stream)stream);
    if (status == HSORT_OK)
        status = t->own->timing->seconds(engine, t->first.event, last.event, &passed);
    t->own->event_destroy(engine, last.event);
    if (status == HSORT_OK) {
        tell_in_host_time(t, &last, passed * 1e9);
        *error_ns = last.error_ns > t->first.error_ns ? last.error_ns : t->first.error_ns;
    } else {
        for (int64_t i = 0; i < t->count; i++)
            *t->marks[i].where = 0;
    }
    t->count = 0;
    return status;
}

hsort_status engine_trace_resolve(struct engine *engine, int64_t *error_ns)
{
    *error_ns = 0;
    return engine->traced && engine->traced->first.event ? resolve_marks(engine, error_ns) : HSORT_OK;
}

void engine_trace_clear(struct engine *engine)
{
    if (engine->traced)
        engine->traced->count = 0;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void begin_on_stream(struct traced_call *call, enum engine_stream stream, const char *name,
                            int64_t keys, int64_t bytes)
{
    struct traced_engine *t = call->engine->traced;
    struct trace_span *span = trace_open_span_on(t->trace, TRACE_STREAMS + (int)stream, name);
    call->stream[stream] = span;
    if (!span)
        return;
    trace_keys(span, keys);
    trace_bytes(span, bytes);
    mark_stream(call->engine, stream, &span->begin);
}

struct traced_call traced_begin(struct engine *engine, int stream, const char *name, int64_t keys,
                                int64_t bytes)
{
    struct traced_engine *t = engine->traced;
    struct traced_call call = {.engine = engine, .own = t->own, .thread = trace_begin(t->trace, name)};
    trace_keys(call.thread, keys);
    trace_bytes(call.thread, bytes);
    if (!t->trace || !t->first.event || stream == NO_STREAM)
        return call;
    if (stream == BOTH_COPIES) {
        begin_on_stream(&call, STREAM_OUT, name, -1, -1);
        begin_on_stream(&call, STREAM_IN, name, -1, -1);
    } else {
        begin_on_stream(&call, (enum engine_stream)stream, name, keys, bytes);
    }
    return call;
}

// After a failure nothing more is asked of the streams, so that its cause is reported, and not that of a mark.
hsort_status traced_end(const struct traced_call *call, hsort_status status)
{
    for (int stream = 0; stream < ENGINE_STREAMS && status == HSORT_OK; stream++)
        if (call->stream[stream])
            mark_stream(call->engine, (enum engine_stream)stream, &call->stream[stream]->end);
    trace_end(call->thread);
    return status;
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static void traced_close(struct engine *engine)
{
    struct traced_engine *t = engine->traced;
    const struct engine_ops *own = t->own;
    for (int64_t i = 0; i < t->made; i++)
        own->event_destroy(engine, t->marks[i].event);
    if (t->first.event)
        own->event_destroy(engine, t->first.event);
    pthread_mutex_destroy(&t->lock);
    free(t->marks);
    free(t);
    own->close(engine);
}

hsort_status engine_trace(struct engine *engine, struct trace *trace)
{
    struct traced_engine *t = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, sizeof *t);
    if (!t)
        return status_fail(HSORT_HOST_MEMORY, "no memory to trace an engine");
    t->own = engine->ops;
    t->trace = trace;
    pthread_mutex_init(&t->lock, NULL);
    traced_wrap(&t->tables, t->own);
    t->tables.ops.close = traced_close;
    engine->traced = t;
    engine->ops = &t->tables.ops;
    return trace && t->own->timing ? look_at_clocks(engine, &t->first) : HSORT_OK;
}
