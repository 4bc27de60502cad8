/* A pipeline through the engine: items come in, are sorted, and go out, from and to host memory or files, three
 * items at a time, so that both directions of the link and the engine are busy. Each of the two passes of a sort is
 * such a pipeline. Only the sort() that it is given knows what an element is.
 *
 *     step           0     1     2     3     4
 *     STREAM_IN      i0    i1    i2    i3    -        pipeline_push(i0), (i1), (i2), (i3), then nothing, twice
 *     STREAM_WORK    -     i0    i1    i2    i3
 *     STREAM_OUT     -     -     i0    i1    i2 ...   into a slot only after the one before it has gone out
 */
#ifndef PASS_PIPELINE_H
#define PASS_PIPELINE_H

#include "kernels/base/trace.h"
#include "kernels/engine.h"
#include "src/library/pass_plan.h"

/* What comes in as one, is sorted as one, and goes out to one place. The pipeline sets the `memory` of transfers. */
struct pipeline_item {
    int64_t count; /* elements; 0: nothing */
    struct engine_transfer *pieces; /* [piece_count] of the item; read in the call */
    int piece_count;
    int pinned_pieces;  /* the first so many lie in pinned memory: the call begins to copy them. It waits for the others */
    bool out_is_pinned; /* `out` goes to pinned memory: the same holds for it */
    const size_t *places; /* [piece_count] where in the slot each lies, in bytes; NULL: one behind the other */
    struct engine_transfer out; /* of `count` elements; done before pipeline_drain() returns */
};

struct pipeline {
    struct engine *engine; /* borrowed */
    struct trace *trace;   /* borrowed; NULL: none */
    size_t element_bytes;
    char *slot[PASS_SLOTS]; /* engine memory, borrowed: [0] comes in, [1] is sorted, [2] goes out, [3] is scratch */
    /* Sort elements [count], with scratch for as many, on STREAM_WORK; *sorted: where the result will be. */
    hsort_status (*sort)(void *user, void *elements, void *scratch, int64_t count, void **sorted);
    /* Bring the rest of the item that comes in to `slot`, on STREAM_IN; NULL: there is no rest. Called in every
     * step, also for items of 0 elements and after a failure, because it may keep to a schedule. */
    hsort_status (*fetch)(void *user, char *slot);
    void *user;
    bool sorts_beside; /* while transfers run in the call, the sort has a thread of its own */

    struct engine_event *event[ENGINE_STREAMS]; /* owned: the last step's end on each stream */
    struct pipeline_item work, leaving;         /* items in slot[1] and slot[2] */
    hsort_status status;                        /* the first failure */
};

/* Make the events; the fields up to sorts_beside have been set. pipeline_close() ends it, also after an error.
 * Not collective. Errors: the engine's. */
hsort_status pipeline_open(struct pipeline *p);
void pipeline_close(struct pipeline *p);

/* One step: `item` comes in (NULL: nothing does), the one before it is sorted, the one before that goes out.
 * After a failure only fetch() is called. Not collective, except for fetch(). */
void pipeline_push(struct pipeline *p, const struct pipeline_item *item);

/* Do the two steps that let everything out; then wait for all of it. Returns the first failure since
 * pipeline_open(). Does not call fetch() any more. Not collective. */
hsort_status pipeline_drain(struct pipeline *p);

#endif
