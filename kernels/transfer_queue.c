#include "kernels/transfer_queue.h"
#include <stdio.h>
#include <string.h>

void transfer_begin(struct transfer_queue *queue, const struct engine_transfer *in, int in_count,
                    const struct engine_transfer *out, int out_count)
{
    *queue = (struct transfer_queue){.in = {.transfer = in, .count = in_count},
                                     .out = {.transfer = out, .count = out_count}};
    pthread_mutex_init(&queue->lock, NULL);
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
    chunk->bytes = left < to_border ? left : to_border;
    list->taken += chunk->bytes;
    return true;
}

bool transfer_next(struct transfer_queue *queue, struct transfer_chunk *chunk)
{
    bool found = false;
    pthread_mutex_lock(&queue->lock);
    if (queue->status == HSORT_OK) {
        chunk->out = queue->out_is_next;
        found = take_chunk(chunk->out ? &queue->out : &queue->in, chunk);
        if (!found) {
            chunk->out = !chunk->out;
            found = take_chunk(chunk->out ? &queue->out : &queue->in, chunk);
        }
        queue->out_is_next = !chunk->out;
    }
    pthread_mutex_unlock(&queue->lock);
    return found;
}

hsort_status transfer_move(const struct transfer_chunk *chunk, void *host)
{
    const struct engine_transfer *transfer = chunk->transfer;
    if (!transfer->host)
        return transfer->move(transfer->user, transfer->at + (int64_t)chunk->at, chunk->bytes, host);
    char *place = transfer->host + chunk->at;
    memcpy(chunk->out ? place : host, chunk->out ? host : place, chunk->bytes);
    return HSORT_OK;
}

void transfer_note(struct transfer_queue *queue, hsort_status status)
{
    if (status == HSORT_OK)
        return;
    pthread_mutex_lock(&queue->lock);
    if (queue->status == HSORT_OK) {
        queue->status = status;
        snprintf(queue->text, sizeof queue->text, "%s", status_text());
    }
    pthread_mutex_unlock(&queue->lock);
    status_clear();
}

hsort_status transfer_end(struct transfer_queue *queue)
{
    pthread_mutex_destroy(&queue->lock);
    return queue->status == HSORT_OK ? HSORT_OK : status_fail(queue->status, "%s", queue->text);
}
