#include "tests/support/late_queue.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/support/check.h"

struct late_work {
    struct late_work *next;
    struct engine *engine;
    const char *name;
    late_run run; /* NULL: a wait */
    void *call;
    void *kept[3]; /* lists that the call reads */
    int kept_count;
    const void **touched;
    int touched_count;
    enum engine_stream other; /* of a wait */
    int64_t point;
};

static struct late_queue {
    struct late_work *first, *last;
    int64_t added, done;
} queues[ENGINE_STREAMS];

static struct late_work *newest;

/* When a stream does what nobody has waited for yet. */
static enum pace { LATE, BY_CHANCE, SOON, PACES } paces[ENGINE_STREAMS];

static uint64_t random_state;
static uint64_t patience; /* polls, about, until something is done */

static hsort_status failure; /* that has not been reported */
static char failure_text[STATUS_TEXT_BYTES];

const struct engine_ops *late_own;
int late_work_fails;

void *late_memory(size_t bytes)
{
    void *memory = calloc(1, bytes + 1);
    if (!memory) {
        fprintf(stderr, "late_queue.c: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

uint64_t late_draw(uint64_t below)
{
    return check_random(&random_state) % below;
}

void late_seed(uint64_t seed)
{
    enum { PATIENCE = 8 };
    random_state = seed;
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        paces[stream] = (enum pace)late_draw(PACES);
    patience = 1 + late_draw(PATIENCE);
}

/* ---- to queue --------------------------------------------------------------------------------------------------- */

static struct late_work *append(enum engine_stream stream, const char *name)
{
    struct late_queue *queue = &queues[stream];
    newest = late_memory(sizeof *newest);
    newest->name = name;
    if (queue->last)
        queue->last->next = newest;
    else
        queue->first = newest;
    queue->last = newest;
    queue->added++;
    return newest;
}

void *late_add(struct engine *engine, enum engine_stream stream, const char *name, late_run run, size_t bytes)
{
    late_some();
    struct late_work *work = append(stream, name);
    work->engine = engine;
    work->run = run;
    work->call = late_memory(bytes);
    return work->call;
}

void *late_keep(const void *list, size_t bytes)
{
    void *copy = late_memory(bytes);
    if (bytes > 0)
        memcpy(copy, list, bytes);
    newest->kept[newest->kept_count++] = copy;
    return copy;
}

void late_touch(const void *memory, int64_t elements)
{
    if (!memory || elements <= 0)
        return;
    const void **more = late_memory((size_t)(newest->touched_count + 1) * sizeof *more);
    if (newest->touched)
        memcpy(more, newest->touched, (size_t)newest->touched_count * sizeof *more);
    free(newest->touched);
    newest->touched = more;
    newest->touched[newest->touched_count++] = memory;
}

void late_add_wait(enum engine_stream stream, enum engine_stream other, int64_t point)
{
    late_some();
    struct late_work *wait = append(stream, "a wait");
    wait->other = other;
    wait->point = point;
}

int64_t late_point(enum engine_stream stream)
{
    return queues[stream].added;
}

bool late_has_come(enum engine_stream stream, int64_t point)
{
    return queues[stream].done >= point;
}

/* ---- to do ------------------------------------------------------------------------------------------------------ */

static hsort_status call_own(const struct late_work *work)
{
    const struct engine_ops *called = work->engine->ops;
    if (late_work_fails > 0 && --late_work_fails == 0)
        return status_fail(HSORT_INTERNAL, "%s has failed", work->name);
    work->engine->ops = late_own; // calls within the work are part of it
    const hsort_status status = work->run(work->engine, work->call);
    work->engine->ops = called;
    return status;
}

/* Run work, and keep its failure apart: the text is for the next caller that learns of it, not for the next one that fails. */
static void run_work(const struct late_work *work)
{
    char before[STATUS_TEXT_BYTES];
    snprintf(before, sizeof before, "%s", status_text());
    status_clear();
    const hsort_status status = call_own(work);
    if (status != HSORT_OK && failure == HSORT_OK) {
        failure = status;
        snprintf(failure_text, sizeof failure_text, "%s", status_text());
    }
    status_clear();
    if (before[0] != '\0')
        (void)status_fail(HSORT_INTERNAL, "%s", before);
}

static void free_work(struct late_work *work)
{
    for (int i = 0; i < work->kept_count; i++)
        free(work->kept[i]);
    free(work->touched);
    free(work->call);
    free(work);
}

static void run_until(enum engine_stream stream, int64_t point);

static void run_first(enum engine_stream stream)
{
    struct late_queue *queue = &queues[stream];
    struct late_work *work = queue->first;
    if (work->run)
        run_work(work);
    else
        run_until(work->other, work->point);
    queue->first = work->next;
    queue->last = queue->first ? queue->last : NULL;
    queue->done++;
    free_work(work);
}

/* This ends, because a point that a stream waits for was queued before the wait itself. */
static void run_until(enum engine_stream stream, int64_t point)
{
    while (queues[stream].done < point)
        run_first(stream);
}

void late_some(void)
{
    const int first = (int)late_draw(ENGINE_STREAMS);
    for (int i = 0; i < ENGINE_STREAMS; i++) {
        const enum engine_stream stream = (enum engine_stream)((first + i) % ENGINE_STREAMS);
        while (queues[stream].first &&
               (paces[stream] == SOON || (paces[stream] == BY_CHANCE && late_draw(2))))
            run_first(stream);
    }
}

void late_all(enum engine_stream stream)
{
    for (; queues[stream].first; late_some())
        run_until(stream, queues[stream].done + 1);
}

void late_poll(enum engine_stream stream)
{
    late_some();
    if (queues[stream].first && late_draw(patience) == 0)
        run_first(stream);
}

hsort_status late_failure(void)
{
    const hsort_status status = failure;
    failure = HSORT_OK;
    return status == HSORT_OK ? HSORT_OK : status_fail(status, "%s", failure_text);
}

hsort_status late_result(void)
{
    late_all(STREAM_WORK);
    return late_failure();
}

static bool touches(const struct late_work *work, const void *memory, size_t bytes)
{
    for (int i = 0; i < work->touched_count; i++) {
        const uintptr_t at = (uintptr_t)work->touched[i], begin = (uintptr_t)memory;
        if (at >= begin && at - begin < bytes)
            return true;
    }
    return false;
}

const char *late_touching(const void *memory, size_t bytes)
{
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        for (const struct late_work *work = queues[stream].first; work; work = work->next)
            if (work->run && (!memory || touches(work, memory, bytes)))
                return work->name;
    return NULL;
}
