#include "tests/support/late_engine.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/late_queue.h"

enum { KNOWN = 1024 };

#ifndef SHARED_ENGINE
hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
#endif

static struct known {
    const char *memory; /* NULL: this place is free */
    size_t bytes;
    bool is_reached; /* by asynchronous copies */
} known[KNOWN];

struct engine_event {
    bool recorded;
    enum engine_stream stream;
    int64_t point;
};

int late_question_fails;
static int faults; /* since they were last asked for */

static void complain(const char *deed, const char *work)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "late_engine.c: rank %d: %s: %s\n", rank, deed, work);
    faults++;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

void late_engine_note(const void *memory, size_t bytes, bool is_reached)
{
    int place = 0;
    while (place < KNOWN && known[place].memory)
        place++;
    if (place == KNOWN) {
        fprintf(stderr, "late_engine.c: more memory than it can note\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
        return;
    }
    known[place] = (struct known){memory, bytes, is_reached};
}

/* Memory is about to go: nothing that is queued may touch it. If something does, all queued work is done now, to end the test in order. */
static void forget(const void *memory, const char *deed)
{
    for (int place = 0; memory && place < KNOWN; place++) {
        struct known *own = &known[place];
        if (own->memory != memory)
            continue;
        const char *work = late_touching(own->memory, own->bytes);
        if (work) {
            complain(deed, work);
            for (int stream = 0; stream < ENGINE_STREAMS; stream++)
                late_all((enum engine_stream)stream);
        }
        own->memory = NULL;
        return;
    }
}

void late_engine_forget(const void *memory)
{
    forget(memory, "the caller's memory is freed, but queued work touches it");
}

/* The noted memory that has these bytes; NULL: they are the library's own, such as a variable. */
static const struct known *noted(const void *memory, size_t bytes)
{
    const char *at = memory;
    for (int place = 0; place < KNOWN; place++) {
        const struct known *own = &known[place];
        if (own->memory && at >= own->memory && at + bytes <= own->memory + own->bytes)
            return own;
    }
    return NULL;
}

static hsort_status late_alloc(struct engine *engine, size_t bytes, void **memory)
{
    TRY(late_own->alloc(engine, bytes, memory));
    if (*memory)
        late_engine_note(*memory, bytes, true);
    return HSORT_OK;
}

static void late_free(struct engine *engine, void *memory)
{
    forget(memory, "engine memory is freed, but queued work touches it");
    late_own->free(engine, memory);
}

static hsort_status late_alloc_host(struct engine *engine, size_t bytes, void **memory)
{
    TRY(late_own->alloc_host(engine, bytes, memory));
    if (*memory)
        late_engine_note(*memory, bytes, true);
    return HSORT_OK;
}

static void late_free_host(struct engine *engine, void *memory)
{
    forget(memory, "host memory is freed, but queued work touches it");
    late_own->free_host(engine, memory);
}

static bool late_pin(struct engine *engine, void *memory, size_t bytes)
{
    const bool pinned = late_own->pin(engine, memory, bytes);
    if (pinned)
        late_engine_note(memory, bytes, true);
    return pinned;
}

static void late_unpin(struct engine *engine, void *memory)
{
    forget(memory, "memory is unpinned, but queued work touches it");
    late_own->unpin(engine, memory);
}

static hsort_status late_open(struct engine *engine, const struct engine_peer_handle *handle, void **memory)
{
    TRY(late_own->peer->open(engine, handle, memory));
    late_engine_note(*memory, handle->bytes, true);
    return HSORT_OK;
}

static void late_close_peer(struct engine *engine, void *memory)
{
    forget(memory, "a mapping ends, but queued work touches it");
    late_own->peer->close(engine, memory);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

struct copy_call {
    enum engine_stream stream;
    void *to;
    const void *from;
    size_t bytes;
};

static hsort_status run_copy(struct engine *engine, const void *call)
{
    const struct copy_call *c = call;
    return late_own->copy(engine, c->stream, c->to, c->from, c->bytes);
}

/* If no queued work can write the source, its bytes are read now half of the time. */
static hsort_status late_copy(struct engine *engine, enum engine_stream stream, void *to, const void *from,
                              size_t bytes)
{
    const struct known *source = noted(from, bytes), *target = noted(to, bytes);
    const bool reads_late = source && source->is_reached, reads_now = !source && late_draw(2);
    if (!target || !target->is_reached || (!reads_late && !reads_now)) {
        late_all(stream);
        TRY(late_failure());
        return late_own->copy(engine, stream, to, from, bytes);
    }
    struct copy_call *c = late_add(engine, stream, "a copy", run_copy, sizeof *c);
    *c = (struct copy_call){stream, to, reads_late ? from : late_keep(from, bytes), bytes};
    late_touch(to, bytes > 0);
    late_touch(reads_late ? from : NULL, bytes > 0);
    return HSORT_OK;
}

/* Copy what a transfer has brought in to its place. */
static hsort_status run_arrival(struct engine *engine, const void *call)
{
    const struct copy_call *c = call;
    (void)engine;
    if (c->bytes > 0)
        memcpy(c->to, c->from, c->bytes);
    return HSORT_OK;
}

/* Incoming transfers go to memory of their own first. */
static hsort_status late_transfer(struct engine *engine, const struct engine_transfer *in, int in_count,
                                  const struct engine_transfer *out, int out_count)
{
    struct engine_transfer *brought = late_memory((size_t)in_count * sizeof *brought);
    late_all(STREAM_OUT);
    late_all(STREAM_IN);
    for (int i = 0; i < in_count; i++) {
        brought[i] = in[i];
        brought[i].memory = late_memory(in[i].bytes);
    }
    hsort_status status = late_failure();
    if (status == HSORT_OK)
        status = late_own->transfer(engine, brought, in_count, out, out_count);
    for (int i = 0; i < in_count && status == HSORT_OK; i++) {
        struct copy_call *c = late_add(engine, STREAM_IN, "a transfer", run_arrival, sizeof *c);
        *c = (struct copy_call){STREAM_IN, in[i].memory, late_keep(brought[i].memory, in[i].bytes),
                                in[i].bytes};
        late_touch(in[i].memory, in[i].bytes > 0);
    }
    for (int i = 0; i < in_count; i++)
        free(brought[i].memory);
    free(brought);
    return status;
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static hsort_status late_event_create(struct engine *engine, struct engine_event **event)
{
    (void)engine;
    *event = late_memory(sizeof **event);
    return HSORT_OK;
}

static void late_event_destroy(struct engine *engine, struct engine_event *event)
{
    (void)engine;
    free(event);
}

static hsort_status late_event_record(struct engine *engine, struct engine_event *event,
                                      enum engine_stream stream)
{
    (void)engine;
    *event = (struct engine_event){true, stream, late_point(stream)};
    late_some();
    return HSORT_OK;
}

static hsort_status late_event_done(struct engine *engine, struct engine_event *event, bool *done)
{
    (void)engine;
    if (late_question_fails > 0 && --late_question_fails == 0)
        return status_fail(HSORT_INTERNAL, "a copy has failed before");
    if (event->recorded && !late_has_come(event->stream, event->point))
        late_poll(event->stream);
    *done = !event->recorded || late_has_come(event->stream, event->point);
    return late_failure();
}

static hsort_status late_stream_wait_event(struct engine *engine, enum engine_stream stream,
                                           struct engine_event *event)
{
    (void)engine;
    if (event->recorded && event->stream != stream)
        late_add_wait(stream, event->stream, event->point);
    return HSORT_OK;
}

static hsort_status late_stream_synchronize(struct engine *engine, enum engine_stream stream)
{
    (void)engine;
    late_all(stream);
    return late_failure();
}

int late_engine_faults(bool failed)
{
    const char *work = late_touching(NULL, 0);
    if (work)
        complain("a call has returned, but work is queued", work);
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        late_all((enum engine_stream)stream);
    const hsort_status untold = late_failure();
    if (untold != HSORT_OK && !failed)
        complain("a call has not told of a failure", status_text());
    const int found = faults;
    faults = 0;
    return found;
}

/* ---- the engine ------------------------------------------------------------------------------------------------- */

void late_engine_seed(uint64_t seed)
{
    late_seed(seed);
}

void late_engine_wrap(struct engine *engine)
{
    static struct engine_ops own;
    static struct late_tables late;
    own = *engine->ops;
    late_own = &own;
    late.ops = own;
    late.partition = *own.partition;
    late.packing = *own.packing;
    late.pairs = *own.pairs;
    late_put_calls(&late);
    late_put_results(&late);
    struct engine_ops *ops = &late.ops;
    ops->partition = &late.partition;
    ops->packing = &late.packing;
    ops->pairs = &late.pairs;
    if (own.peer) {
        late.peer = *own.peer;
        late.peer.open = late_open;
        late.peer.close = late_close_peer;
        ops->peer = &late.peer;
    }
    ops->alloc = late_alloc;
    ops->free = late_free;
    ops->alloc_host = late_alloc_host;
    ops->free_host = late_free_host;
    ops->pin = late_pin;
    ops->unpin = late_unpin;
    ops->copy = late_copy;
    ops->transfer = late_transfer;
    ops->event_create = late_event_create;
    ops->event_destroy = late_event_destroy;
    ops->event_record = late_event_record;
    ops->event_done = late_event_done;
    ops->stream_wait_event = late_stream_wait_event;
    ops->stream_synchronize = late_stream_synchronize;
    engine->ops = ops;
}

#ifndef SHARED_ENGINE
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    late_engine_wrap(*engine);
    return HSORT_OK;
}
#endif
