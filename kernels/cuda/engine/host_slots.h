/* Copies between the device and what the link cannot reach by itself: ordinary host memory, files. The driver's own
 * copy of pageable memory goes through a small pinned buffer with one core. Here most cores of the rank fill and
 * empty two pinned slots each, while other slots are on the link:
 *
 *     thread 0   fill A | fill B | wait A, fill A ...             in: filled, then copied to the device
 *     thread 1     begin C | begin D | wait C, empty C | ...      out: copied from the device, then emptied
 *     link         A C B D ...                                    both directions at once
 *
 * Rejected: all cores on one slot at a time, because at each slot they wait for the slowest core; pinning the caller's
 * memory instead, which costs more than the copy and leaves the memory pinned if the program dies. */
#ifndef HOST_SLOTS_H
#define HOST_SLOTS_H

#include <cuda_runtime_api.h>
#include <cudaTypedefs.h>
#include "kernels/transfer_queue.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HOST_SLOT_THREADS_MIN = 4, /* perhaps more than there are cores, because threads wait for files, too */
    HOST_SLOT_THREADS_MAX = 16,
    HOST_SLOT_SPARED = 4, /* one core in this number is left to other threads: a sort's and the driver's. OpenMP's own threads spin
                             when they are done, so with one thread too many all wait for the thread that shares its core */
    HOST_SLOTS_EACH = 2,
    HOST_SLOT_ALIGNMENT = 4096
};

struct host_slots {
    /* How a thread makes the device current, and undoes it. Set by the owner. struct device_scope says why this way. */
    CUcontext context;
    PFN_cuCtxPushCurrent_v4000 push;
    PFN_cuCtxPopCurrent_v4000 pop;
    int threads;         /* 0 until first used */
    bool pinned;         /* false: ordinary memory, because none could be pinned; slower */
    void *memory;        /* [threads * HOST_SLOTS_EACH] slots; owned */
    cudaEvent_t *copied; /* [threads * HOST_SLOTS_EACH] the last copy from or to the slot; owned */
};

/* engine_ops.transfer(): chunks that come in go by `in_stream`, chunks that go out by `out_stream`. On return those that go out are
 * complete. Of those that come in the host's bytes have been read, and copies may still be under way. The device is current.
 * Errors HSORT_HOST_MEMORY, HSORT_CUDA, those of move(). */
hsort_status host_slots_run(struct host_slots *slots, const struct engine_transfer *in, int in_count,
                            const struct engine_transfer *out, int out_count, cudaStream_t in_stream,
                            cudaStream_t out_stream);

/* Free the slots. The device is current. */
void host_slots_close(struct host_slots *slots);

#ifdef __cplusplus
}
#endif

#endif
