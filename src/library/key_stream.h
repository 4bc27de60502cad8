/* Keys that come from, or go to, something other than memory: files, for the command. This is what the two ends of a sort
 * ask of such a stream; between them the sort is that of keys in host memory (sort.c, two_passes.c).
 *
 *     source    begin   next, moves   next, moves   ...   end        ranks at their own pace,
 *     sink      begin   next, moves   next, moves   ...   end        between a collective begin and end
 *
 * A `move` handles bytes, of whole or cut keys: several threads at a time bring, or take, a few MiB each, into engine
 * memory or on the way there. So nothing as large as the keys lies in between. */
#ifndef KEY_STREAM_H
#define KEY_STREAM_H

#include "hypersort.h"
#include "src/library/run_store.h"

/* Bytes that are moved between two calls of next(), at most. */
enum { STREAM_PART_BYTES = 64 << 20 };

struct key_stream {
    void *user;

    /* The first keys are about to be moved. Collective. */
    void (*begin)(void *user);

    /* The first `done` of this rank's keys are through: shall more follow? With a store, `done` is a part of this rank's
     * share: the part that is through of all keys, whichever rank did it, also before this call. Called by the thread that
     * sorts, before each part. If `together`, all ranks ask at the same step and want one answer, and the call is
     * collective; otherwise it is not. */
    bool (*next)(void *user, int64_t done, bool together);

    /* engine_transfer.move: `at` counts bytes from this rank's first key on. Any thread. */
    hsort_status (*move)(void *user, int64_t at, size_t bytes, void *host);

    /* engine_transfer.lead of the byte `at`. Pure. */
    size_t (*lead)(void *user, int64_t at);

    /* This rank has moved `done` keys, counted as above, with the status `mine`. Returns `mine`, or what else has failed, or
     * HSORT_STOPPED if ranks have left keys because next() said no; the caller agrees on it. Collective. */
    hsort_status (*end)(void *user, int64_t done, hsort_status mine);
};

/* What the keys of a sort are like, where they come from and where they go. */
struct stream_check {
    hsort_check_result before; /* its first_disorder says nothing */
    hsort_check_result after;
};

/* hsort_sort_to() from one stream to another. Collective.
 *   source     gives `count` keys on this rank, sink takes `out_count`; counts of ranks differ by at most one
 *   check      [1] written, the same on every rank: from the keys in engine memory, behind the source and before the
 *              sink. NULL: nobody looks
 *   store      where runs go to, whatever memory there is. Streams are then asked for any rank's keys; there is at least one
 *              key, and keys have 4 bytes or more. NULL: runs lie in memory, if the sort takes two passes
 * Memory   host engine: two buffers of the shard. CUDA: no host memory, except the runs in two passes.
 * Errors   as hsort_sort_to(), and those of the streams. HSORT_STOPPED if either end was left, or should_stop said
 *          so: the keys are then only where they came from, and in part where they go. */
hsort_status sort_streams(hsort_context *ctx, hsort_type type, hsort_order order,
                          const struct key_stream *source, int64_t count, const struct key_stream *sink,
                          int64_t out_count, struct stream_check *check, const struct run_store *store);

/* Does a sort of streams, with so many keys on this rank, need to have its runs in a store, given so many bytes of host memory?
 * Collective.
 *   needs  [1] written, the same on every rank
 * Errors   as hsort_sort_to(). */
hsort_status streams_need_store(hsort_context *ctx, hsort_type type, hsort_order order, int64_t count,
                                size_t memory_bytes, bool *needs);

/* hsort_check() of the keys that a stream gives, `count` on this rank. Collective.
 *   result  [1] written, the same on every rank
 * Memory   as hsort_check() of host keys. */
hsort_status check_stream(hsort_context *ctx, hsort_type type, hsort_order order,
                          const struct key_stream *stream, int64_t count, hsort_check_result *result);

#endif
