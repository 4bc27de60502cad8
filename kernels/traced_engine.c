#include "kernels/traced_engine.h"
#include <pthread.h>
#include <stdlib.h>
#include "kernels/base/first_error.h"

enum { LOOKS = 8 }; // at both clocks, of which the shortest counts

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
    struct engine_ops ops; /* the engine's, with those below in place of some */
    struct engine_peer_ops peer;
    struct engine_partition_ops partition;
    struct engine_pair_ops pairs;
    const struct engine_ops *own; /* what the engine does itself */
    struct trace *trace;

    pthread_mutex_t lock;      /* of what follows: marks stand in the order of their streams */
    struct stream_mark *marks; /* [room] owned; the events of all that were ever used stay */
    int64_t count, room, made;
    struct clock_look first; /* when it was opened */
};

/* ---- marks of streams ---------------------------------------------------------------------------------- */

/* Make room for one more mark; false: there is none. */
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

/* Where the stream is now is to be the time *where, which is 0 until it is known. A mark that cannot be had is none: a sort does
 * not fail for it. */
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

/* Times of all marks of a stream, in ns of the engine's clock from the first look on. Each is found from the one before it, as the
 * time between two events that are far apart is told with few digits. */
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

/* From the engine's clock to the host's: the two looks lie on a line.
 *
 *     host     first.host_ns ............ last.host_ns
 *     engine   0 ........................ passed_ns          */
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

enum { NO_STREAM = -1, BOTH_COPIES = -2 };

/* A call under way: its spans, on the thread and on streams. */
struct traced_call {
    struct engine *engine;
    const struct engine_ops *own;
    struct trace_span *thread, *stream[ENGINE_STREAMS];
};

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

/* keys, bytes: -1: nothing to say. */
static struct traced_call begin_call(struct engine *engine, int stream, const char *name, int64_t keys,
                                     int64_t bytes)
{
    struct traced_engine *t = engine->traced;
    struct traced_call call = {.engine = engine, .own = t->own, .thread = trace_begin(t->trace, name)};
    trace_keys(call.thread, keys);
    trace_bytes(call.thread, bytes);
    if (!t->trace || !t->first.event || stream == NO_STREAM)
        return call;
    if (stream != BOTH_COPIES)
        begin_on_stream(&call, (enum engine_stream)stream, name, keys, bytes);
    for (enum engine_stream copies = STREAM_OUT; stream == BOTH_COPIES && copies <= STREAM_IN;
         copies = (enum engine_stream)(copies + 1))
        begin_on_stream(&call, copies, name, -1, -1);
    return call;
}

/* After a failure nothing more is asked of the streams: its cause is to be told, and not that of a mark. */
static hsort_status end_call(const struct traced_call *call, hsort_status status)
{
    for (int stream = 0; stream < ENGINE_STREAMS && status == HSORT_OK; stream++)
        if (call->stream[stream])
            mark_stream(call->engine, (enum engine_stream)stream, &call->stream[stream]->end);
    trace_end(call->thread);
    return status;
}

/* On STREAM_WORK, of keys. */
static struct traced_call begin_work(struct engine *engine, const char *name, int64_t keys)
{
    return begin_call(engine, STREAM_WORK, name, keys, -1);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static hsort_status traced_alloc(struct engine *engine, size_t bytes, void **memory)
{
    const struct traced_call call = begin_call(engine, NO_STREAM, "allocate", -1, (int64_t)bytes);
    return end_call(&call, call.own->alloc(engine, bytes, memory));
}

static void traced_free(struct engine *engine, void *memory)
{
    if (!memory)
        return;
    const struct traced_call call = begin_call(engine, NO_STREAM, "free", -1, -1);
    call.own->free(engine, memory);
    end_call(&call, HSORT_OK);
}

static hsort_status traced_alloc_host(struct engine *engine, size_t bytes, void **memory)
{
    const struct traced_call call = begin_call(engine, NO_STREAM, "allocate host memory", -1, (int64_t)bytes);
    return end_call(&call, call.own->alloc_host(engine, bytes, memory));
}

static bool traced_pin(struct engine *engine, void *memory, size_t bytes)
{
    const struct traced_call call = begin_call(engine, NO_STREAM, "pin", -1, (int64_t)bytes);
    const bool pinned = call.own->pin(engine, memory, bytes);
    end_call(&call, HSORT_OK);
    return pinned;
}

static hsort_status traced_peer_open(struct engine *engine, const struct engine_peer_handle *handle,
                                     void **memory)
{
    const struct traced_call call =
        begin_call(engine, NO_STREAM, "map peer memory", -1, (int64_t)handle->bytes);
    return end_call(&call, call.own->peer->open(engine, handle, memory));
}

/* ---- streams ------------------------------------------------------------------------------------------- */

static hsort_status traced_copy(struct engine *engine, enum engine_stream stream, void *to, const void *from,
                                size_t bytes)
{
    const struct traced_call call = begin_call(engine, (int)stream, "copy", -1, (int64_t)bytes);
    return end_call(&call, call.own->copy(engine, stream, to, from, bytes));
}

static hsort_status traced_transfer(struct engine *engine, const struct engine_transfer *in, int in_count,
                                    const struct engine_transfer *out, int out_count)
{
    int64_t bytes = 0;
    for (int i = 0; i < in_count; i++)
        bytes += (int64_t)in[i].bytes;
    for (int i = 0; i < out_count; i++)
        bytes += (int64_t)out[i].bytes;
    const int stream = in_count > 0 && out_count > 0 ? BOTH_COPIES : in_count > 0 ? STREAM_IN : STREAM_OUT;
    const struct traced_call call =
        begin_call(engine, in_count + out_count == 0 ? NO_STREAM : stream, "transfer", -1, bytes);
    return end_call(&call, call.own->transfer(engine, in, in_count, out, out_count));
}

static hsort_status traced_stream_synchronize(struct engine *engine, enum engine_stream stream)
{
    static const char *const names[ENGINE_STREAMS] = {"wait for stream work", "wait for stream out",
                                                      "wait for stream in"};
    const struct traced_call call = begin_call(engine, NO_STREAM, names[stream], -1, -1);
    return end_call(&call, call.own->stream_synchronize(engine, stream));
}

/* ---- keys ---------------------------------------------------------------------------------------------- */

static hsort_status traced_encode(struct engine *engine, struct keymap map, void *to, const void *from,
                                  int64_t count)
{
    const struct traced_call call = begin_work(engine, "encode", count);
    return end_call(&call, call.own->encode(engine, map, to, from, count));
}

static hsort_status traced_decode(struct engine *engine, struct keymap map, void *to, const void *from,
                                  int64_t count)
{
    const struct traced_call call = begin_work(engine, "decode", count);
    return end_call(&call, call.own->decode(engine, map, to, from, count));
}

static hsort_status traced_sort(struct engine *engine, int rung, int key_bytes, void *keys, void *scratch,
                                int64_t scratch_count, int64_t count, void *workspace,
                                const struct raw_keys *raw, void **sorted)
{
    const struct traced_call call = begin_work(engine, "sort", count);
    return end_call(&call, call.own->sort(engine, rung, key_bytes, keys, scratch, scratch_count, count,
                                          workspace, raw, sorted));
}

static hsort_status traced_merge(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                                 const void *b, int64_t b_count, void *out)
{
    const struct traced_call call = begin_work(engine, "merge", a_count + b_count);
    return end_call(&call, call.own->merge(engine, key_bytes, a, a_count, b, b_count, out));
}

static hsort_status traced_merge_runs(struct engine *engine, int key_bytes, void *runs,
                                      const int64_t *run_offset, int k, void *out, void **merged)
{
    const struct traced_call call = begin_work(engine, "merge runs", run_offset[k]);
    return end_call(&call, call.own->merge_runs(engine, key_bytes, runs, run_offset, k, out, merged));
}

static hsort_status traced_cut(struct engine *engine, int key_bytes, const void *a, int64_t a_count,
                               const void *b, int64_t b_count, int64_t outputs, int64_t *from_a)
{
    const struct traced_call call = begin_work(engine, "cut", a_count + b_count);
    return end_call(&call, call.own->cut(engine, key_bytes, a, a_count, b, b_count, outputs, from_a));
}

static hsort_status traced_swap(struct engine *engine, int key_bytes, void *a, void *b, int64_t count)
{
    const struct traced_call call = begin_work(engine, "swap", count);
    return end_call(&call, call.own->swap(engine, key_bytes, a, b, count));
}

static hsort_status traced_gather(struct engine *engine, int key_bytes, const void *keys,
                                  const int64_t *positions, int count, key_code *codes)
{
    const struct traced_call call = begin_work(engine, "look up keys", count);
    return end_call(&call, call.own->gather(engine, key_bytes, keys, positions, count, codes));
}

static hsort_status traced_search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                  const key_code *probes, int probe_count, int64_t *less,
                                  int64_t *not_greater)
{
    const struct traced_call call = begin_work(engine, "search", count);
    return end_call(&call,
                    call.own->search(engine, key_bytes, keys, count, probes, probe_count, less, not_greater));
}

static hsort_status traced_inspect(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                                   struct engine_inspection *result)
{
    const struct traced_call call = begin_work(engine, "inspect", count);
    return end_call(&call, call.own->inspect(engine, map, keys, count, result));
}

/* ---- elements, and keys that are counted --------------------------------------------------------------- */

static hsort_status traced_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                                      const struct key_field *fields, int field_count, int position_bits,
                                      int64_t first)
{
    const struct traced_call call = begin_work(engine, "make codes", count);
    return end_call(&call, call.own->make_codes(engine, code_bytes, codes, count, fields, field_count,
                                                position_bits, first));
}

static hsort_status traced_split_codes(struct engine *engine, int code_bytes, const void *codes,
                                       int64_t count, int position_bits, int64_t *positions,
                                       struct keymap map, void *keys)
{
    const struct traced_call call = begin_work(engine, "split codes", count);
    return end_call(
        &call, call.own->split_codes(engine, code_bytes, codes, count, position_bits, positions, map, keys));
}

static hsort_status traced_take(struct engine *engine, size_t element_bytes, void *to, const void *from,
                                int64_t from_count, const int64_t *positions, int64_t first, int64_t count,
                                int64_t *outside)
{
    const struct traced_call call = begin_work(engine, "take", count);
    return end_call(
        &call, call.own->take(engine, element_bytes, to, from, from_count, positions, first, count, outside));
}

static hsort_status traced_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                                 const void *from, const int64_t *positions, int64_t first, int64_t count,
                                 int64_t *outside)
{
    const struct traced_call call = begin_work(engine, "place", count);
    return end_call(
        &call, call.own->place(engine, element_bytes, to, to_count, from, positions, first, count, outside));
}

static hsort_status traced_count_runs(struct engine *engine, struct engine_runs *runs)
{
    const struct traced_call call = begin_work(engine, "count runs", runs->count);
    return end_call(&call, call.own->count_runs(engine, runs));
}

static hsort_status traced_write_runs(struct engine *engine, const struct engine_runs *runs)
{
    const struct traced_call call = begin_work(engine, "write runs", runs->count);
    return end_call(&call, call.own->write_runs(engine, runs));
}

static hsort_status traced_inspect_elements(struct engine *engine, const struct engine_elements *elements,
                                            struct engine_inspection *result)
{
    const struct traced_call call = begin_work(engine, "inspect", elements->count);
    return end_call(&call, call.own->inspect_elements(engine, elements, result));
}

static hsort_status traced_count_keys(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                                      int64_t *counts)
{
    const struct traced_call call = begin_work(engine, "count keys", count);
    return end_call(&call, call.own->count_keys(engine, key_bytes, keys, count, counts));
}

static hsort_status traced_write_counted(struct engine *engine, int key_bytes,
                                         const struct engine_counted *counted, int64_t first, int64_t count,
                                         void *out)
{
    const struct traced_call call = begin_work(engine, "write counted keys", count);
    return end_call(&call, call.own->write_counted(engine, key_bytes, counted, first, count, out));
}

static hsort_status traced_sort_pairs(struct engine *engine, const struct engine_pairs *pairs,
                                      void *workspace)
{
    const struct traced_call call = begin_work(engine, "sort pairs", pairs->count);
    return end_call(&call, call.own->pairs->sort(engine, pairs, workspace));
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static hsort_status traced_sample(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                  int64_t before, int64_t total, int log, int64_t first, int sample,
                                  void *workspace, uint64_t *codes)
{
    const struct traced_call call = begin_work(engine, "sample", sample);
    return end_call(&call, call.own->partition->sample(engine, key_bytes, raw, before, total, log, first,
                                                       sample, workspace, codes));
}

static hsort_status traced_make_map(struct engine *engine, int key_bytes, const uint64_t *codes, int log,
                                    int64_t total, void *workspace, struct engine_map *map, bool *made)
{
    const struct traced_call call = begin_work(engine, "make map", (int64_t)1 << log);
    return end_call(
        &call, call.own->partition->make_map(engine, key_bytes, codes, log, total, workspace, map, made));
}

static hsort_status traced_count_regions(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                         int64_t count, const struct engine_map *map, void *workspace,
                                         int64_t *counts, bool *ascends, bool *descends)
{
    const struct traced_call call = begin_work(engine, "count regions", count);
    return end_call(&call, call.own->partition->count(engine, key_bytes, raw, count, map, workspace, counts,
                                                      ascends, descends));
}

static hsort_status traced_scatter(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                   int64_t count, const struct engine_map *map, void *workspace, void *to)
{
    const struct traced_call call = begin_work(engine, "scatter", count);
    return end_call(&call, call.own->partition->scatter(engine, key_bytes, raw, count, map, workspace, to));
}

static hsort_status traced_sort_regions(struct engine *engine, int key_bytes, const struct engine_map *map,
                                        const struct engine_piece *pieces, int count,
                                        const struct raw_keys *raw, void *workspace, void *scratch, void *out)
{
    int64_t keys = 0;
    for (int i = 0; i < count; i++)
        keys += pieces[i].count;
    const struct traced_call call = begin_work(engine, "sort regions", keys);
    return end_call(&call, call.own->partition->sort_regions(engine, key_bytes, map, pieces, count, raw,
                                                             workspace, scratch, out));
}

static hsort_status traced_settle_regions(struct engine *engine, int key_bytes, const struct raw_keys *raw,
                                          void *workspace, void *scratch, size_t scratch_bytes,
                                          bool *unsorted)
{
    const struct traced_call call = begin_work(engine, "settle regions", -1);
    return end_call(&call, call.own->partition->settle_regions(engine, key_bytes, raw, workspace, scratch,
                                                               scratch_bytes, unsorted));
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

/* The groups that not every engine has. */
static void wrap_groups(struct traced_engine *t)
{
    const struct engine_ops *own = t->own;
    if (own->peer) {
        t->peer = *own->peer;
        t->peer.open = traced_peer_open;
        t->ops.peer = &t->peer;
    }
    if (own->partition) {
        t->partition = *own->partition;
        t->partition.sample = traced_sample;
        t->partition.make_map = traced_make_map;
        t->partition.count = traced_count_regions;
        t->partition.scatter = traced_scatter;
        t->partition.sort_regions = traced_sort_regions;
        t->partition.settle_regions = traced_settle_regions;
        t->ops.partition = &t->partition;
    }
    if (own->pairs) {
        t->pairs = *own->pairs;
        t->pairs.sort = traced_sort_pairs;
        t->ops.pairs = &t->pairs;
    }
}

static void wrap_functions(struct traced_engine *t)
{
    t->ops = *t->own;
    t->ops.close = traced_close;
    t->ops.alloc = traced_alloc;
    t->ops.free = traced_free;
    t->ops.alloc_host = traced_alloc_host;
    t->ops.pin = traced_pin;
    t->ops.copy = traced_copy;
    t->ops.transfer = traced_transfer;
    if (t->own->timing) // else there is nothing to wait for
        t->ops.stream_synchronize = traced_stream_synchronize;
    t->ops.encode = traced_encode;
    t->ops.decode = traced_decode;
    t->ops.sort = traced_sort;
    t->ops.merge = traced_merge;
    t->ops.merge_runs = traced_merge_runs;
    t->ops.cut = traced_cut;
    t->ops.swap = traced_swap;
    t->ops.gather = traced_gather;
    t->ops.search = traced_search;
    t->ops.make_codes = traced_make_codes;
    t->ops.split_codes = traced_split_codes;
    t->ops.take = traced_take;
    t->ops.place = traced_place;
    t->ops.count_runs = traced_count_runs;
    t->ops.write_runs = traced_write_runs;
    t->ops.count_keys = traced_count_keys;
    t->ops.write_counted = traced_write_counted;
    t->ops.inspect = traced_inspect;
    t->ops.inspect_elements = traced_inspect_elements;
    wrap_groups(t);
}

hsort_status engine_trace(struct engine *engine, struct trace *trace)
{
    struct traced_engine *t = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, sizeof *t);
    if (!t)
        return status_fail(HSORT_HOST_MEMORY, "no memory to trace an engine");
    t->own = engine->ops;
    t->trace = trace;
    pthread_mutex_init(&t->lock, NULL);
    wrap_functions(t);
    engine->traced = t;
    engine->ops = &t->ops;
    return trace && t->own->timing ? look_at_clocks(engine, &t->first) : HSORT_OK;
}
