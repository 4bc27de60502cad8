/* Calls on elements for which the engine has no room. The same call begins again, without what the context keeps from other calls;
 * then it runs in host memory, on the rank's cores, on a context of the engine `host` that lasts as long as the call.
 *
 *     GPU of 80 GB     hsort_gather() of 100 GB: no room
 *     all ranks        does any context keep memory? It goes, and hsort_gather() begins anew: no room
 *                      are all arrays in host memory?
 *     cores            hsort_gather() on the arrays themselves; no copy
 *
 * A try that lacks memory has written nothing, because results for arrays in host memory reach them only at its end. Rejected:
 * counting before each call what it takes, because that asks the system, and the other ranks, even where there is room; bringing
 * parts of the arrays through the GPU, because each call would do that in a way of its own, and in a gather each part of the index
 * needs all parts of the array. */
#ifndef HOST_CALL_H
#define HOST_CALL_H

#include "src/library/context.h"

enum { HOST_CALL_ARRAYS = 5 };

struct host_call {
    const void *arrays[HOST_CALL_ARRAYS]; /* that the caller gave; NULL where there is none */
    void *stream;                         /* the caller's; its work may still write to them */
    size_t bytes;                         /* of host memory that this rank takes besides, at most */
    /* Do the call, on either context. It waits for no stream of the caller's any more. */
    hsort_status (*run)(hsort_context *ctx, const void *call);
    const void *call; /* handed to run() */
};

/* End a call that came to `status`, the same on every rank. If engine memory was lacking, run the call once more; if it lacks again,
 * and all arrays are in host memory, run the call there. Collective. Returns what the call is to return; hsort_last_error() and
 * hsort_get_stats() are written. */
hsort_status host_call_finish(hsort_context *ctx, hsort_status status, const struct host_call *call);

#endif
