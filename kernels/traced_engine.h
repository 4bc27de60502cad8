/* An engine whose work is recorded (kernels/base/trace.h): each call has a span on the thread that calls, and, if the
 * engine has streams, one on the stream, between two events that are asked for their times when all is over:
 *
 *     thread        | sort |  | copy |        | wait work      |
 *     STREAM_WORK     e0 ........ sort ............ e1             e0 and e1 are recorded by the call, which waits for neither
 *     STREAM_OUT               e2 .. copy .. e3
 *
 * The functions of any engine are wrapped: none of them knows of traces, and an engine that nobody traces is called as
 * ever. */
#ifndef TRACED_ENGINE_H
#define TRACED_ENGINE_H

#include "kernels/base/trace.h"
#include "kernels/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Record what `engine` does from now on until it is closed. trace: borrowed; NULL: there are only the ranges of HYPERSORT_NVTX.
 * Errors HSORT_HOST_MEMORY, HSORT_CUDA. */
hsort_status engine_trace(struct engine *engine, struct trace *trace);

/* Give the spans of streams their times. Waits until the streams are done. Times of a device's clock are converted to
 * the host's clock, by two moments at which both clocks were looked at.
 *   error_ns  [1] how far they may be off; 0: no stream has a clock of its own
 * Errors    those of the engine; spans whose times are not known have none. */
hsort_status engine_trace_resolve(struct engine *engine, int64_t *error_ns);

/* Forget the spans of streams, as trace_clear() does those of threads. */
void engine_trace_clear(struct engine *engine);

#ifdef __cplusplus
}
#endif

#endif
