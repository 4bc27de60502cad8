/* The queues of late_engine.h: a list of work for each stream, which is done from its front. The work of a stream is numbered one
 * after the other, so a point in a stream is the number of the work before it. */
#ifndef LATE_QUEUE_H
#define LATE_QUEUE_H

#include "kernels/engine.h"

/* The functions that do late what was queued. */
extern const struct engine_ops *late_own;

/* The tables of a late engine. */
struct late_tables {
    struct engine_ops ops;
    struct engine_partition_ops partition;
    struct engine_pack_ops packing;
    struct engine_pair_ops pairs;
    struct engine_peer_ops peer;
};

/* late_engine.h */
extern int late_work_fails, late_pack_fails;

/* Put calls into the tables: calls that queue their work (late_calls.c); calls that return a result, and first do what is queued
 * (late_results.c). */
void late_put_calls(struct late_tables *tables);
void late_put_results(struct late_tables *tables);

typedef hsort_status (*late_run)(struct engine *engine, const void *call);

/* Queue work: run(engine, call) will be called at some time. Returns the call [bytes], for the caller to fill in. */
void *late_add(struct engine *engine, enum engine_stream stream, const char *name, late_run run,
               size_t bytes);

/* About the work that was queued last: it needs a copy of this list, which is returned; it touches elements there, if there are any. */
void *late_keep(const void *list, size_t bytes);
void late_touch(const void *memory, int64_t elements);

/* Make a stream wait for a point of another stream. */
void late_add_wait(enum engine_stream stream, enum engine_stream other, int64_t point);

/* The point where a stream ends now. Has a stream come to a point? */
int64_t late_point(enum engine_stream stream);
bool late_has_come(enum engine_stream stream, int64_t point);

/* Do nothing, or some of what is queued, on any streams. */
void late_some(void);

/* late_all(): do everything that is queued on a stream, and maybe more on others. late_poll(): do the first of it, if the caller has
 * polled long enough. */
void late_all(enum engine_stream stream);
void late_poll(enum engine_stream stream);

/* Do everything on STREAM_WORK, and return what failed. A call that returns a result does this first. */
hsort_status late_result(void);

/* Return what failed late and has not been reported, and forget it. */
hsort_status late_failure(void);

/* The name of queued work that touches memory, or of any if that is NULL; NULL: there is none. */
const char *late_touching(const void *memory, size_t bytes);

/* late_draw(): a number less than `below`, drawn from the seed. */
void late_seed(uint64_t seed);
uint64_t late_draw(uint64_t below);

/* Memory of the test's own, all zeros; free() gives it back. */
void *late_memory(size_t bytes);

#endif
