/* Calls on elements that the engine has no room for: the same call again, without what the context keeps of others; then in host
 * memory by the rank's cores, on a context of the engine `host`, which lasts as long as the call.
 *
 *     GPU of 80 GB     hsort_gather() of 100 GB: no room
 *     all ranks        does any context keep memory? It goes, and hsort_gather() begins anew: no room
 *                      are all arrays in host memory?
 *     cores            hsort_gather() on the arrays themselves; no copy
 *
 * A try that lacks memory has written nothing: what it makes for arrays in host memory comes to them at its end. Rejected: to count
 * before each call what it takes, which asks the system, and the other ranks, where there is room as well; parts of the arrays
 * through the GPU. That is a way of its own for each call, and in a gather each part of the index needs all parts of the array. */
#ifndef HOST_CALL_H
#define HOST_CALL_H

#include "src/library/context.h"

enum { HOST_CALL_ARRAYS = 5 };

struct host_call {
    const void *arrays[HOST_CALL_ARRAYS]; /* that the caller gave; NULL where there is none */
    void *stream;                         /* the caller's, of whose work they are */
    size_t bytes;                         /* of host memory that this rank takes besides, at most */
    /* The call, on either context. No stream is waited for any more. */
    hsort_status (*run)(hsort_context *ctx, const void *call);
    const void *call; /* handed to run() */
};

/* End a call that came to `status`, the same on every rank: if that is want of engine memory, by running it once more, and then,
 * if all arrays are in host memory, there. Collective. Returns what the call is to return; hsort_last_error() and hsort_get_stats()
 * are written. */
hsort_status host_call_finish(hsort_context *ctx, hsort_status status, const struct host_call *call);

#endif
