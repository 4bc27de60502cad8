/* Calls on elements that the engine has no room for, done in host memory by the rank's cores: the same call again, on a context of
 * the engine `host`, which lasts as long as it does.
 *
 *     GPU of 80 GB     hsort_gather() of 100 GB: no room
 *     all ranks        are all arrays in host memory?
 *     cores            hsort_gather() on the arrays themselves; no copy
 *
 * The first try has written nothing: what it makes for arrays in host memory comes to them at its end. Rejected: parts of the arrays
 * through the GPU. That is a way of its own for each call, and in a gather each part of the index needs all parts of the array. */
#ifndef HOST_CALL_H
#define HOST_CALL_H

#include "src/library/context.h"

enum { HOST_CALL_ARRAYS = 5 };

struct host_call {
    const void *arrays[HOST_CALL_ARRAYS]; /* that the caller gave; NULL where there is none */
    void *stream;                         /* the caller's, of whose work they are */
    size_t bytes;                         /* of host memory that this rank takes besides, at most */
    hsort_status (*run)(hsort_context *on_host, const void *call);
    const void *call; /* handed to run() */
};

/* End a call that came to `status`, the same on every rank: if that is want of engine memory, and all arrays are in host memory, by
 * running it there. Collective. Returns what the call is to return; hsort_last_error() and hsort_get_stats() are written. */
hsort_status host_call_finish(hsort_context *ctx, hsort_status status, const struct host_call *call);

#endif
