/* What the command uses of a context's trace, beside hsort_write_trace(). */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include <stddef.h>
#include "kernels/base/trace.h"
#include "hypersort.h"

/* The trace of a context, for what its owner does meanwhile; NULL: there is none. Lives as long as the context. Not collective. */
struct trace *context_trace(const hsort_context *ctx);

/* This rank's part of the last call that has statistics: seconds [HSORT_PHASES], bytes sent. Not collective. */
void context_own_stats(const hsort_context *ctx, double *seconds, int64_t *moved_bytes);

/* name [bytes] = the name of the file at `path` until the file is whole; it has only the beginning of a long name. False: it is too
 * long. Not collective. */
bool trace_temporary(const char *path, char *name, size_t bytes);

#endif
