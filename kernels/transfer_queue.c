#include "kernels/transfer_queue.h"
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/base/stream_store.h"

void transfer_begin(struct transfer_queue *queue, const struct engine_transfer *in, int in_count,
                    const struct engine_transfer *out, int out_count)
{
    *queue = (struct transfer_queue){.in = {.transfer = in, .count = in_count},
                                     .out = {.transfer = out, .count = out_count}};
    pthread_mutex_init(&queue->lock, NULL);
    thread_failures_begin(&queue->failures);
}

static bool joins(const struct engine_transfer *transfer)
{
    return transfer->host || transfer->joins;
}

/* Does the whole of the next transfer fit into a chunk that ends with the transfer that is being taken? */
static bool next_fits(const struct transfer_list *list, const struct transfer_chunk *chunk)
{
    const struct engine_transfer *last = list->transfer, *next = last + 1;
    return list->count > 1 && list->taken == last->bytes && next->memory == last->memory + last->bytes &&
           joins(last) && joins(next) && next->bytes <= ENGINE_MOVE_BYTES - chunk->bytes;
}

/* Take the next chunk of a list; false: all is taken. */
static bool take_chunk(struct transfer_list *list, struct transfer_chunk *chunk)
{
    while (list->count > 0 && list->taken == list->transfer->bytes) {
        list->transfer++;
        list->count--;
        list->taken = 0;
    }
    if (list->count == 0)
        return false;
    const struct engine_transfer *transfer = list->transfer;
    const size_t left = transfer->bytes - list->taken,
                 to_border = ENGINE_MOVE_BYTES - (transfer->lead + list->taken) % ENGINE_MOVE_BYTES;
    chunk->transfer = transfer;
    chunk->at = list->taken;
    chunk->bytes = lesser_bytes(left, to_border);
    list->taken += chunk->bytes;
    while (next_fits(list, chunk)) {
        list->transfer++;
        list->count--;
        list->taken = list->transfer->bytes;
        chunk->bytes += list->taken;
    }
    return true;
}

bool transfer_next(struct transfer_queue *queue, struct transfer_chunk *chunk)
{
    if (thread_failures_any(&queue->failures))
        return false;
    pthread_mutex_lock(&queue->lock);
    chunk->out = queue->out_is_next;
    bool found = take_chunk(chunk->out ? &queue->out : &queue->in, chunk);
    if (!found) {
        chunk->out = !chunk->out;
        found = take_chunk(chunk->out ? &queue->out : &queue->in, chunk);
    }
    queue->out_is_next = !chunk->out;
    pthread_mutex_unlock(&queue->lock);
    return found;
}

/* Move bytes of one transfer, from its byte `at` on. A long transfer would drive all else from the caches, so it goes
 * past them. */
static hsort_status move_of_one(const struct engine_transfer *transfer, bool out, size_t at, size_t bytes,
                                char *host)
{
    if (!transfer->host)
        return transfer->move(transfer->user, transfer->at + (int64_t)at, bytes, host);
    if (out && transfer->bytes > ENGINE_MOVE_BYTES)
        stream_copy(transfer->host + at, host, bytes);
    else if (out)
        memcpy(transfer->host + at, host, bytes);
    else
        memcpy(host, transfer->host + at, bytes);
    return HSORT_OK;
}

hsort_status transfer_move(const struct transfer_chunk *chunk, void *host)
{
    const struct engine_transfer *transfer = chunk->transfer;
    size_t at = chunk->at, done = 0;
    while (done < chunk->bytes) {
        const size_t part = lesser_bytes(transfer->bytes - at, chunk->bytes - done);
        if (part > 0)
            TRY(move_of_one(transfer, chunk->out, at, part, (char *)host + done));
        done += part;
        transfer++;
        at = 0;
    }
    return HSORT_OK;
}

void transfer_note(struct transfer_queue *queue, hsort_status status)
{
    thread_failures_note(&queue->failures, status);
}

hsort_status transfer_end(struct transfer_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
    return thread_failures_end(&queue->failures);
}
