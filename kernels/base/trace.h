/* A record of what a rank does when: spans of time with a name, kept in a buffer of fixed size and written as a file at the end
 * (src/library/trace_file.c). A leaf: every layer may include it. It knows nothing of its readers.
 *
 *     struct trace_span *span = trace_begin(comm->trace, "send and receive");
 *     trace_sent(span, to, bytes);
 *     ...
 *     trace_end(span);
 *
 * If no trace is wanted, the pointer to it is NULL, and each of the three calls is one branch. Spans of a thread nest, because they
 * begin and end as calls do. A span takes its place in the buffer when it begins: once the buffer is full, later spans are lost and
 * counted, so that the phases around them are kept. *Rejected:* a ring of the last spans, in which phases are lost first.
 *
 * With HYPERSORT_NVTX the same places are ranges for NVIDIA's profilers, whether there is a trace or not. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kernels/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a span belongs to: a thread of the host, or a stream of the engine. */
enum trace_track {
    TRACE_MAIN,
    TRACE_STREAMS,                    /* of the engine, from here on: enum engine_stream */
    TRACE_SORTER = TRACE_STREAMS + 3, /* the thread beside a pipeline that sorts */
    TRACE_WORKERS                     /* threads that move files and memory, from here on */
};

struct trace_span {
    const char *name; /* static */
    int64_t begin,
        end; /* ns of trace_now(); end 0: it has not ended, or, on a stream, not yet been asked for its times */
    int64_t bytes, keys, sent, received; /* -1: nothing to say */
    int32_t track;
    int32_t to, from; /* ranks; -1: none */
};

struct trace;

#ifdef HSORT_NVTX
enum { TRACE_HAS_RANGES = true };
void trace_range_push(const char *name);
void trace_range_pop(void);
#else
enum { TRACE_HAS_RANGES = false };
static inline void trace_range_push(const char *name)
{
    (void)name;
}
static inline void trace_range_pop(void)
{
}
#endif

/* A trace with room for `spans` > 0 of them. trace_close() frees it; NULL is fine. Errors HSORT_HOST_MEMORY. */
hsort_status trace_open(int64_t spans, struct trace **trace);
void trace_close(struct trace *trace);

/* ns of a clock that never goes back, the same for all processes of a machine. */
int64_t trace_now(void);

/* A span on the track of this thread, or on a given one, that begins now. NULL: the buffer is full. Any thread. */
struct trace_span *trace_open_span(struct trace *trace, const char *name);
struct trace_span *trace_open_span_on(struct trace *trace, int track, const char *name);

/* Mark this thread, until it ends, as the one that sorts beside a pipeline. */
void trace_enter_sorter(void);

/* The spans that were kept, [*count] in the order in which they began, and how many were lost. Nobody records meanwhile. */
struct trace_span *trace_spans(struct trace *trace, int64_t *count, int64_t *lost);

/* Forget all of them. Nobody records meanwhile. */
void trace_clear(struct trace *trace);

/* Begin a span. A trace of NULL records nothing. */
static inline struct trace_span *trace_begin(struct trace *trace, const char *name)
{
    trace_range_push(name);
    return trace ? trace_open_span(trace, name) : NULL;
}

static inline void trace_end(struct trace_span *span)
{
    trace_range_pop();
    if (span)
        span->end = trace_now();
}

/* End a span together with its work: trace_end_with(span, work()) returns the status of work(). */
static inline hsort_status trace_end_with(struct trace_span *span, hsort_status status)
{
    trace_end(span);
    return status;
}

static inline void trace_bytes(struct trace_span *span, int64_t bytes)
{
    if (span)
        span->bytes = bytes;
}

static inline void trace_keys(struct trace_span *span, int64_t keys)
{
    if (span)
        span->keys = keys;
}

/* Bytes that go to another rank; together they add up to what the statistics say was moved. */
static inline void trace_sent(struct trace_span *span, int to, int64_t bytes)
{
    if (span) {
        span->to = to;
        span->sent = bytes;
    }
}

static inline void trace_received(struct trace_span *span, int from, int64_t bytes)
{
    if (span) {
        span->from = from;
        span->received = bytes;
    }
}

#ifdef __cplusplus
}
#endif

#endif
