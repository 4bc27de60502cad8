/* What traced_engine.c and traced_calls.c share: a call under way, and the tables of an engine that is traced. */
#ifndef TRACED_CALLS_H
#define TRACED_CALLS_H

#include "kernels/base/trace.h"
#include "kernels/engine.h"

/* The functions of an engine, some of them replaced by those of traced_calls.c. */
struct traced_tables {
    struct engine_ops ops;
    struct engine_peer_ops peer;
    struct engine_partition_ops partition;
    struct engine_pair_ops pairs;
    struct engine_pack_ops packing;
};

enum { NO_STREAM = -1, BOTH_COPIES = -2 };

/* A call under way: its spans, on the thread and on streams. */
struct traced_call {
    struct engine *engine;
    const struct engine_ops *own;
    struct trace_span *thread, *stream[ENGINE_STREAMS];
};

/* Begin a call on a stream, or with one of the two values above. keys, bytes: -1: nothing to say. */
struct traced_call traced_begin(struct engine *engine, int stream, const char *name, int64_t keys,
                                int64_t bytes);

/* End it; returns `status`. */
hsort_status traced_end(const struct traced_call *call, hsort_status status);

/* Fill in the tables of an engine whose own functions are `own`; its close() stays. */
void traced_wrap(struct traced_tables *tables, const struct engine_ops *own);

#endif
