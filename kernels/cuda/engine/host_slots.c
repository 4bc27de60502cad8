#include "kernels/cuda/engine/host_slots.h"
#include <omp.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_BYTES = ENGINE_MOVE_BYTES + HOST_SLOT_ALIGNMENT }; // a chunk may begin anywhere in a block of HOST_SLOT_ALIGNMENT

/* ---- slots --------------------------------------------------------------------------------------------- */

static void take_memory(struct host_slots *slots, size_t bytes)
{
    slots->pinned =
        !fault_hit(FAULT_PIN) && cudaHostAlloc(&slots->memory, bytes, cudaHostAllocDefault) == cudaSuccess;
    if (slots->pinned)
        return;
    cudaGetLastError();
    slots->memory = fault_hit(FAULT_ALLOC) ? NULL : aligned_alloc(HOST_SLOT_ALIGNMENT, bytes);
}

static hsort_status open_slots(struct host_slots *slots)
{
    const int procs = omp_get_num_procs(), some = procs - procs / HOST_SLOT_SPARED;
    if (slots->memory)
        return HSORT_OK;
    slots->threads = some < HOST_SLOT_THREADS_MIN   ? HOST_SLOT_THREADS_MIN
                     : some > HOST_SLOT_THREADS_MAX ? HOST_SLOT_THREADS_MAX
                                                    : some;
    const int count = slots->threads * HOST_SLOTS_EACH;
    cudaError_t error = cudaSuccess;
    take_memory(slots, (size_t)count * SLOT_BYTES);
    slots->copied = calloc((size_t)count, sizeof *slots->copied);
    for (int slot = 0; slots->copied && slot < count && error == cudaSuccess; slot++)
        error = cudaEventCreateWithFlags(&slots->copied[slot], cudaEventDisableTiming);
    if (slots->memory && slots->copied && error == cudaSuccess)
        return HSORT_OK;
    host_slots_close(slots);
    cudaGetLastError();
    return error != cudaSuccess
               ? status_fail(HSORT_CUDA, "an event for copies: %s", cudaGetErrorString(error))
               : status_fail(HSORT_HOST_MEMORY, "no memory for %d slots of %d bytes", count, SLOT_BYTES);
}

void host_slots_close(struct host_slots *slots)
{
    for (int slot = 0; slots->copied && slot < slots->threads * HOST_SLOTS_EACH; slot++)
        if (slots->copied[slot])
            cudaEventDestroy(slots->copied[slot]);
    free(slots->copied);
    if (slots->pinned)
        cudaFreeHost(slots->memory);
    else
        free(slots->memory);
    slots->memory = NULL;
    slots->copied = NULL;
    slots->threads = 0;
}

/* ---- one thread ---------------------------------------------------------------------------------------- */

struct lane {
    const struct host_slots *slots;
    struct transfer_queue *queue;
    cudaStream_t in, out;
    int first;                     /* of its slots */
    int turn;                      /* which of its slots is next */
    bool emptying;                 /* a chunk is on its way out */
    struct transfer_chunk leaving; /* that chunk */
    int leaving_slot;              /* the slot that it goes to */
};

/* Where the bytes of a chunk lie in its slot: as far behind a border of blocks as in their file, so that reads of files
 * can bypass the page cache. */
static char *place_in_slot(const struct lane *lane, int slot, const struct transfer_chunk *chunk)
{
    return (char *)lane->slots->memory + (size_t)slot * SLOT_BYTES +
           (chunk->transfer->lead + chunk->at) % HOST_SLOT_ALIGNMENT;
}

static hsort_status check_copy(cudaError_t error)
{
    if (error == cudaSuccess)
        return HSORT_OK;
    cudaGetLastError(); // or the next launch of this thread, which may be the caller's, would report this error again
    return status_fail(HSORT_CUDA, "copy between device and host: %s", cudaGetErrorString(error));
}

static hsort_status bring_in(const struct lane *lane, int slot, const struct transfer_chunk *chunk)
{
    char *host = place_in_slot(lane, slot, chunk);
    TRY(transfer_move(chunk, host));
    TRY(check_copy(cudaMemcpyAsync(chunk->transfer->memory + chunk->at, host, chunk->bytes,
                                   cudaMemcpyHostToDevice, lane->in)));
    return check_copy(cudaEventRecord(lane->slots->copied[slot], lane->in));
}

static hsort_status begin_out(const struct lane *lane, int slot, const struct transfer_chunk *chunk)
{
    TRY(check_copy(cudaMemcpyAsync(place_in_slot(lane, slot, chunk), chunk->transfer->memory + chunk->at,
                                   chunk->bytes, cudaMemcpyDeviceToHost, lane->out)));
    return check_copy(cudaEventRecord(lane->slots->copied[slot], lane->out));
}

/* Empty the slot of the chunk that is on its way out, if there is one. */
static hsort_status end_out(struct lane *lane)
{
    if (!lane->emptying)
        return HSORT_OK;
    lane->emptying = false;
    TRY(check_copy(cudaEventSynchronize(lane->slots->copied[lane->leaving_slot])));
    return transfer_move(&lane->leaving, place_in_slot(lane, lane->leaving_slot, &lane->leaving));
}

/* Fill the next slot, or begin to fill it; then empty the slot before. */
static hsort_status run_chunk(struct lane *lane, const struct transfer_chunk *chunk)
{
    const int slot = lane->first + lane->turn;
    lane->turn = (lane->turn + 1) % HOST_SLOTS_EACH;
    TRY(check_copy(cudaEventSynchronize(lane->slots->copied[slot]))); // returns at once if it was never recorded
    TRY(chunk->out ? begin_out(lane, slot, chunk) : bring_in(lane, slot, chunk));
    TRY(end_out(lane));
    if (chunk->out) {
        lane->emptying = true;
        lane->leaving = *chunk;
        lane->leaving_slot = slot;
    }
    return HSORT_OK;
}

static void run_lane(struct lane *lane)
{
    struct transfer_chunk chunk;
    while (transfer_next(lane->queue, &chunk))
        transfer_note(lane->queue, run_chunk(lane, &chunk));
    transfer_note(lane->queue, end_out(lane));
}

hsort_status host_slots_run(struct host_slots *slots, const struct engine_transfer *in, int in_count,
                            const struct engine_transfer *out, int out_count, cudaStream_t in_stream,
                            cudaStream_t out_stream)
{
    struct transfer_queue queue;
    TRY(open_slots(slots));
    transfer_begin(&queue, in, in_count, out, out_count);
#pragma omp parallel num_threads(slots->threads)
    {
        struct lane lane = {.slots = slots,
                            .queue = &queue,
                            .in = in_stream,
                            .out = out_stream,
                            .first = omp_get_thread_num() * HOST_SLOTS_EACH};
        CUcontext popped;
        if (slots->push(slots->context) == CUDA_SUCCESS) {
            run_lane(&lane);
            slots->pop(&popped);
        } else {
            transfer_note(&queue, status_fail(HSORT_CUDA, "a thread cannot use the GPU"));
        }
    }
    return transfer_end(&queue);
}
