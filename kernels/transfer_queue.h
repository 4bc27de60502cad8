/* Which of several threads takes which part of transfers (engine_ops.transfer()), and what becomes of a failure in one
 * of them. In host memory, of any engine.
 *
 *     in       |  a0  |  a1  |  a2  | b0 |           chunks end at multiples of ENGINE_MOVE_BYTES, counted from `lead`
 *     out      |  c0  |  c1  |                       before a transfer's first byte, and at its end
 *     taken    a0 c0 a1 c1 a2 b0                     by whoever is free: both directions are under way at all times
 *
 * If short transfers lie one behind the other in engine memory, a chunk goes on through all of the next ones that fit,
 * because every copy between host and device has a fixed cost: a2 and b0 above are one chunk, if each lies in host
 * memory or says `joins`. */
#ifndef TRANSFER_QUEUE_H
#define TRANSFER_QUEUE_H

#include <pthread.h>
#include "kernels/base/thread_failures.h"
#include "kernels/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

struct transfer_list {
    const struct engine_transfer *transfer; /* [count] those of which not all is taken; borrowed */
    int count;
    size_t taken; /* bytes of the first */
};

struct transfer_queue {
    pthread_mutex_t lock; /* of the three below */
    struct transfer_list in, out;
    bool out_is_next;
    struct thread_failures failures;
};

struct transfer_chunk {
    const struct engine_transfer *transfer;
    size_t at, bytes; /* from its first byte on, and on through the transfers behind it */
    bool out;
};

/* Begin a queue of both lists, borrowed. */
void transfer_begin(struct transfer_queue *queue, const struct engine_transfer *in, int in_count,
                    const struct engine_transfer *out, int out_count);

/* Take the next chunk; false: there is none, or some thread has failed. Any thread. */
bool transfer_next(struct transfer_queue *queue, struct transfer_chunk *chunk);

/* Bring the chunk's bytes to host memory [bytes], or take them from there. Any thread. */
hsort_status transfer_move(const struct transfer_chunk *chunk, void *host);

/* If `status` is a failure of this thread, its text moves to the queue, and nothing more is taken. Any thread. */
void transfer_note(struct transfer_queue *queue, hsort_status status);

/* End the queue when all threads are done. Returns the first failure, with its text, in the thread that calls. */
hsort_status transfer_end(struct transfer_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
