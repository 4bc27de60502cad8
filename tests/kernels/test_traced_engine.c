/* Spans of streams (traced_engine.h), on an engine with a clock that this test makes up: the host engine, whose events keep a time
 * that, like a GPU's, counts from another start than the host's, runs at another rate, and goes in steps. Converted to the host's time,
 * the span of a stream must lie inside the call that it belongs to, because this engine works in the call. */
#include "kernels/traced_calls.h"
#include "kernels/traced_engine.h"
#include "tests/support/check.h"

enum { KEYS = 5000, STEP_NS = 500 };

/* An event of this engine; an event of the host engine cannot keep anything. */
struct made_up_event {
    int64_t ns;
};

static const struct engine_ops *host;
static double rate;
static int created, records_fail, seconds_fail;

/* Return the time on the engine's clock. */
static int64_t made_up_now(void)
{
    return (int64_t)(((double)trace_now() + 7e12) * rate) / STEP_NS * STEP_NS;
}

static hsort_status made_up_create(struct engine *engine, struct engine_event **event)
{
    (void)engine;
    created++;
    *event = calloc(1, sizeof(struct made_up_event));
    return HSORT_OK;
}

static void made_up_destroy(struct engine *engine, struct engine_event *event)
{
    (void)engine;
    created -= event != NULL;
    free(event);
}

static hsort_status made_up_record(struct engine *engine, struct engine_event *event,
                                   enum engine_stream stream)
{
    (void)engine, (void)stream;
    if (records_fail > 0 && --records_fail == 0)
        return status_fail(HSORT_CUDA, "an event that cannot be recorded");
    ((struct made_up_event *)event)->ns = made_up_now();
    return HSORT_OK;
}

static hsort_status made_up_seconds(struct engine *engine, struct engine_event *from, struct engine_event *to,
                                    double *seconds)
{
    (void)engine;
    if (seconds_fail > 0 && --seconds_fail == 0)
        return status_fail(HSORT_CUDA, "a time that cannot be had");
    *seconds = (float)(((struct made_up_event *)to)->ns - ((struct made_up_event *)from)->ns) * 1e-9;
    return HSORT_OK;
}

static const struct engine_timing_ops made_up_timing = {made_up_create, made_up_seconds};

static struct engine *open_made_up(struct trace *trace)
{
    static struct engine_ops ops;
    struct engine *engine;
    CHECK(engine_open_host(2, 0, &engine) == HSORT_OK, "%s", status_text());
    host = engine->ops;
    ops = *host;
    ops.timing = &made_up_timing;
    ops.event_record = made_up_record;
    ops.event_destroy = made_up_destroy;
    engine->ops = &ops;
    CHECK(engine_trace(engine, trace) == HSORT_OK, "%s", status_text());
    return engine;
}

/* Some work on all streams. */
static void work(struct engine *engine, uint64_t *state)
{
    static uint64_t keys[KEYS], scratch[KEYS], other[KEYS];
    const struct engine_transfer transfer = {
        .memory = (char *)keys, .bytes = sizeof keys, .host = (char *)other};
    void *workspace = NULL, *sorted;
    size_t bytes;
    for (int i = 0; i < KEYS; i++)
        keys[i] = check_random(state);
    CHECK(engine->ops->sort_workspace(engine, -1, 8, KEYS, KEYS, &bytes) == HSORT_OK, "%s", status_text());
    CHECK(engine->ops->alloc(engine, bytes, &workspace) == HSORT_OK, "%s", status_text());
    CHECK(engine->ops->sort(engine, -1, 8, keys, scratch, KEYS, KEYS, workspace, NULL, &sorted) == HSORT_OK,
          "%s", status_text());
    // Sort in chunks, which are merged by calls inside this one.
    CHECK(engine->ops->sort(engine, -1, 8, keys, scratch, KEYS / 8, KEYS, workspace, NULL, &sorted) ==
              HSORT_OK,
          "%s", status_text());
    CHECK(engine->ops->copy(engine, STREAM_OUT, other, keys, sizeof keys) == HSORT_OK, "%s", status_text());
    CHECK(engine->ops->transfer(engine, &transfer, 1, &transfer, 1) == HSORT_OK, "%s", status_text());
    CHECK(engine->ops->stream_synchronize(engine, STREAM_WORK) == HSORT_OK, "%s", status_text());
    engine->ops->free(engine, workspace);
}

static bool is_on_stream(const struct trace_span *span)
{
    return span->track >= TRACE_STREAMS && span->track < TRACE_STREAMS + ENGINE_STREAMS;
}

/* Check each span of a stream against the call of its name that was recorded just before it. Returns how many spans have times. */
static int look_at_spans(struct trace *trace, int64_t error_ns)
{
    int64_t count, lost;
    int timed = 0;
    const struct trace_span *spans = trace_spans(trace, &count, &lost), *call = NULL;
    for (int64_t i = 0; i < count; i++) {
        const struct trace_span *span = &spans[i];
        if (!is_on_stream(span))
            call = span;
        if (!is_on_stream(span) || span->begin == 0 || span->end == 0)
            continue;
        timed++;
        const int64_t early = call->begin - span->begin, late = span->end - call->end,
                      most = error_ns + 2 * STEP_NS;
        CHECK(call && strcmp(call->name, span->name) == 0, "a span '%s' of another call", span->name);
        CHECK(span->begin <= span->end && early <= most && late <= most,
              "%s: begins %lld ns early, ends %lld ns late, for an error of %lld", span->name,
              (long long)early, (long long)late, (long long)error_ns);
    }
    return timed;
}

static void test_times(uint64_t *state, double clock_rate)
{
    struct trace *trace;
    int64_t error_ns, before = 0;
    rate = clock_rate;
    CHECK(trace_open(2000, &trace) == HSORT_OK, "%s", status_text());
    struct engine *engine = open_made_up(trace);
    for (int round = 0; round < 3; round++) {
        work(engine, state);
        CHECK(engine_trace_resolve(engine, &error_ns) == HSORT_OK, "%s", status_text());
        const int timed = look_at_spans(trace, error_ns);
        CHECK(timed > 8 && (round == 0 || timed == before), "%d spans of streams with times, before %lld",
              timed, (long long)before);
        before = timed;
        trace_clear(trace);
        engine_trace_clear(engine);
    }
    engine->ops->close(engine);
    trace_close(trace);
    CHECK(created == 0, "%d events were left", created);
}

/* A mark that cannot be had leaves its span without times, and the work without an error, or with the error that it has. Spans have no
 * times either if the engine does not tell one of their times. */
static void test_lost_marks(uint64_t *state)
{
    struct trace *trace;
    int64_t error_ns;
    rate = 1;
    CHECK(trace_open(2000, &trace) == HSORT_OK, "%s", status_text());
    struct engine *engine = open_made_up(trace);
    work(engine, state);
    const int all = engine_trace_resolve(engine, &error_ns) == HSORT_OK ? look_at_spans(trace, error_ns) : -1;
    trace_clear(trace);
    records_fail = 3;
    work(engine, state);
    CHECK(records_fail == 0 && status_text()[0] == '\0', "a text was left: '%s'", status_text());
    CHECK(engine_trace_resolve(engine, &error_ns) == HSORT_OK && look_at_spans(trace, error_ns) == all - 1,
          "not one span of %d without times", all);
    trace_clear(trace);
    (void)status_fail(HSORT_IO, "a cause");
    records_fail = 1;
    const struct traced_call call = traced_begin(engine, STREAM_WORK, "work", 1, 1);
    CHECK(traced_end(&call, HSORT_IO) == HSORT_IO && records_fail == 0 &&
              strcmp(status_text(), "a cause") == 0,
          "'%s' in the place of what was the cause", status_text());
    status_clear();
    trace_clear(trace);
    engine_trace_clear(engine);
    work(engine, state);
    seconds_fail = all;
    CHECK(engine_trace_resolve(engine, &error_ns) == HSORT_CUDA && seconds_fail == 0, "all times are known");
    CHECK(look_at_spans(trace, INT64_MAX / 2) == 0, "spans have times of a clock that could not be told");
    status_clear();
    engine->ops->close(engine);
    trace_close(trace);
}

/* If there are more spans than there is room for, those that begin first are kept, and the rest are counted. */
static void test_room(uint64_t *state)
{
    struct trace *trace;
    int64_t error_ns, count, lost;
    CHECK(trace_open(3, &trace) == HSORT_OK, "%s", status_text());
    struct engine *engine = open_made_up(trace);
    work(engine, state);
    CHECK(engine_trace_resolve(engine, &error_ns) == HSORT_OK, "%s", status_text());
    (void)trace_spans(trace, &count, &lost);
    CHECK(count == 3 && lost > 10, "%lld spans, %lld lost", (long long)count, (long long)lost);
    engine->ops->close(engine);
    trace_close(trace);
}

/* Test an engine without streams of its own, and then without a trace. */
static void test_plain(uint64_t *state)
{
    struct trace *trace;
    struct engine *engine;
    int64_t error_ns, count, lost;
    CHECK(trace_open(1000, &trace) == HSORT_OK && engine_open_host(2, 0, &engine) == HSORT_OK, "%s",
          status_text());
    CHECK(engine_trace(engine, trace) == HSORT_OK, "%s", status_text());
    work(engine, state);
    const struct trace_span *spans = trace_spans(trace, &count, &lost);
    for (int64_t i = 0; i < count; i++)
        CHECK(spans[i].track == TRACE_MAIN && spans[i].begin <= spans[i].end, "%s", spans[i].name);
    CHECK(count > 8 && lost == 0 && engine_trace_resolve(engine, &error_ns) == HSORT_OK && error_ns == 0,
          "%lld spans", (long long)count);
    engine->ops->close(engine);
    trace_close(trace);
    CHECK(engine_open_host(2, 0, &engine) == HSORT_OK && engine_trace(engine, NULL) == HSORT_OK, "%s",
          status_text());
    work(engine, state);
    engine->ops->close(engine);
}

int main(void)
{
    uint64_t state = check_seed();
    printf("seed %llu\n", (unsigned long long)state);
    test_times(&state, 1);
    test_times(&state, 1.0003);
    test_times(&state, 0.9997);
    test_lost_marks(&state);
    test_room(&state);
    test_plain(&state);
    return check_failures > 0;
}
