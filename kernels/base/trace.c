#include "kernels/base/trace.h"
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "kernels/base/fault.h"
#ifdef HSORT_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

struct trace {
    struct trace_span *spans; /* [room] owned */
    int64_t room;
    atomic_llong begun; /* spans, including those without room */
};

static _Thread_local bool is_sorter;

hsort_status trace_open(int64_t spans, struct trace **trace)
{
    *trace = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, sizeof **trace);
    // calloc: a page of a large buffer does not exist before a span needs it.
    struct trace_span *buffer = *trace ? calloc((size_t)spans, sizeof *buffer) : NULL;
    if (!buffer) {
        free(*trace);
        *trace = NULL;
        return status_fail(HSORT_HOST_MEMORY, "no memory for a trace of %lld spans", (long long)spans);
    }
    (*trace)->spans = buffer;
    (*trace)->room = spans;
    return HSORT_OK;
}

void trace_close(struct trace *trace)
{
    if (!trace)
        return;
    free(trace->spans);
    free(trace);
}

int64_t trace_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void trace_enter_sorter(void)
{
    is_sorter = true;
}

/* Threads of a parallel region are told apart by their numbers in it: only one region at a time moves files or memory. */
static int own_track(void)
{
    if (is_sorter)
        return TRACE_SORTER;
    const int worker = omp_get_thread_num();
    return worker == 0 ? TRACE_MAIN : TRACE_WORKERS + worker - 1;
}

struct trace_span *trace_open_span_on(struct trace *trace, int track, const char *name)
{
    const int64_t place = atomic_fetch_add_explicit(&trace->begun, 1, memory_order_relaxed);
    if (place >= trace->room)
        return NULL;
    struct trace_span *span = &trace->spans[place];
    *span = (struct trace_span){.name = name,
                                .bytes = -1,
                                .keys = -1,
                                .sent = -1,
                                .received = -1,
                                .track = track,
                                .to = -1,
                                .from = -1,
                                .begin = trace_now()};
    return span;
}

struct trace_span *trace_open_span(struct trace *trace, const char *name)
{
    return trace_open_span_on(trace, own_track(), name);
}

struct trace_span *trace_spans(struct trace *trace, int64_t *count, int64_t *lost)
{
    const int64_t begun = atomic_load(&trace->begun);
    *count = begun < trace->room ? begun : trace->room;
    *lost = begun - *count;
    return trace->spans;
}

void trace_clear(struct trace *trace)
{
    atomic_store(&trace->begun, 0);
}

/* ---- ranges for profilers ------------------------------------------------------------------------------ */

#ifdef HSORT_NVTX
static nvtxDomainHandle_t domain;

static void make_domain(void)
{
    domain = nvtxDomainCreateA("hypersort");
}

void trace_range_push(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_domain);
    const nvtxEventAttributes_t range = {.version = NVTX_VERSION,
                                         .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                         .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                         .message.ascii = name};
    nvtxDomainRangePushEx(domain, &range);
}

void trace_range_pop(void)
{
    nvtxDomainRangePop(domain);
}
#endif
