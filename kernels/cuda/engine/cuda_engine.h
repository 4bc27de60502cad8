/* What the files of kernels/cuda/ share: the engine's state, its current-device scope and how CUDA's errors
 * become statuses. Outside this folder only tests and benchmarks include it. */
#ifndef CUDA_ENGINE_H
#define CUDA_ENGINE_H

#include <atomic>
#include <cuda_runtime.h>
#include <cudaTypedefs.h>
#include "kernels/base/key_width.h"
#include "kernels/base/lesser.h"
#include "kernels/engine.h"
#include "kernels/cuda/engine/host_slots.h"

enum { WARP = 32 };
#define ALL_LANES 0xffffffffu /* the mask of a whole warp */

enum { CUDA_PACKINGS = 96 /* packings in a launch, as many as its parameters have room for */ };

/* Pinned memory that kernels read and write directly: small results need no copy of their own. */
struct cuda_result {
    int64_t positions[ENGINE_GATHER_MAX];
    key_code codes[ENGINE_GATHER_MAX];
    key_code probes[ENGINE_SEARCH_MAX];
    int64_t less[ENGINE_SEARCH_MAX], not_greater[ENGINE_SEARCH_MAX];
    struct engine_inspection inspection;
    int32_t verdict;                        /* of a kernel that the host waits for: wait_for_word() */
    uint64_t left;                          /* buckets left by MSD levels; upper half: the last level's number (msd.cu) */
    int64_t cut;                            /* keys of one run among the first of a merge */
    int32_t alive;                          /* written by the first kernel, when the engine opens */
};

/* Calls of the driver's interface that the runtime's interface has no form of; struct device_scope says why. */
struct cuda_driver {
    PFN_cuDeviceGet_v2000 device_get;
    PFN_cuDevicePrimaryCtxRetain_v7000 retain;
    PFN_cuDevicePrimaryCtxRelease_v11000 release;
    PFN_cuCtxPushCurrent_v4000 push;
    PFN_cuCtxPopCurrent_v4000 pop;
    PFN_cuCtxGetCurrent_v4000 current;
    PFN_cuMemGetAddressRange_v3020 address_range;
};

struct engine_event {
    cudaEvent_t handle;
};

/* What alloc() handed out. */
struct cuda_allocation {
    void *memory;
    size_t bytes;
    struct cuda_allocation *older;
};

/* Dynamic shared memory that a kernel may have. */
struct cuda_grant {
    const void *kernel;
    int bytes;
};

enum { CUDA_GRANTS = 256 }; /* a grant is found by its kernel's address; of two in one place the later one stays */

struct cuda_engine {
    struct engine base;
    int device; /* as the runtime counts them */
    int multiprocessors;
    int block_bytes; /* of shared memory that a block can have */
    bool code_waits; /* the code is made for GPUs whose kernels can wait where they will run (launch.cuh) */
    bool counts_regions; /* a test wants large MSD sorts to count their regions first, as sorts of more keys do */
    bool launches_apart; /* a test wants no kernel to wait where it will run (launch.cuh), as on GPUs before Hopper */
    struct cuda_driver driver;
    CUcontext context; /* the device's primary one, retained */
    cudaStream_t streams[ENGINE_STREAMS];
    cudaEvent_t followed;                 /* what stream_wait_caller() records in the caller's stream */
    struct cuda_result *result;           /* [1] pinned */
    uint32_t levels;                      /* MSD levels queued so far: the number of the last one */
    struct engine_inspection *inspection; /* [1] device memory */
    int64_t *packed_bytes;                /* [CUDA_PACKINGS] device memory: bytes of each packing of a launch */
    struct host_slots slots;              /* between the device and ordinary host memory, or files */
    size_t memory_limit;                  /* 0: none */
    size_t memory_bytes;                  /* of the device, or the limit */
    size_t bytes_in_use;
    struct cuda_allocation *allocations; /* what alloc() handed out, newest first */
    struct cuda_grant grants[CUDA_GRANTS];
};

/* While it lives, the engine's device is the calling thread's current device; afterwards the caller's is current again.
 *
 * It pushes and pops the context. Rejected: cudaSetDevice(), which cannot restore "none yet". Setting back the
 * default of 0 would create a context on device 0 in each process of the node, and each context takes memory there. */
struct device_scope {
    const struct cuda_engine *engine;
    bool entered;

    explicit device_scope(const struct cuda_engine *engine_to_enter) : engine(engine_to_enter)
    {
        CUcontext current = NULL;
        engine->driver.current(&current);
        entered = current != engine->context && engine->driver.push(engine->context) == CUDA_SUCCESS;
        cudaGetLastError(); // or an error of the program's own calls would be taken for an error of the first launch
    }
    ~device_scope()
    {
        CUcontext popped;
        if (entered)
            engine->driver.pop(&popped);
    }
    device_scope(const device_scope &) = delete;
};

/* Turn what CUDA returned into a status: record `call` and CUDA's text, and clear CUDA's own memory of the
 * error. HSORT_DEVICE_MEMORY for a failed allocation, HSORT_CUDA for any other error. */
hsort_status cuda_check(cudaError_t error, const char *call);

#define TRY_CUDA(call) TRY(cuda_check((call), #call))

/* After a kernel launch: was it accepted? stream_synchronize() reports what goes wrong while the kernel runs. */
#define TRY_LAUNCH(kernel) TRY(cuda_check(cudaGetLastError(), "launch of " kernel))

/* For tests: treat the engine's device from here on as one whose blocks can have `block_bytes` of shared memory. A kernel that asks
 * for more is refused, as it would be on such a device. launches_apart: also as one before Hopper, on which no kernel waits where it
 * will run. */
static inline void cuda_pretend(struct cuda_engine *engine, int block_bytes, bool launches_apart)
{
    engine->block_bytes = block_bytes;
    engine->launches_apart = launches_apart;
    for (int i = 0; i < CUDA_GRANTS; i++)
        engine->grants[i] = {};
}

/* Let `kernel` have `bytes` of dynamic shared memory, before a launch with more than the 48 KiB that every kernel
 * may have. CUDA keeps the grant with the device's context, so it is made once: at each launch it would take longer. No
 * grant is taken back, because another engine of the device may rely on it. */
static inline hsort_status cuda_grant_shared(struct cuda_engine *engine, const void *kernel, int bytes)
{
    struct cuda_grant *grant = &engine->grants[((uintptr_t)kernel >> 4) % CUDA_GRANTS];
    if (grant->kernel == kernel && grant->bytes >= bytes)
        return HSORT_OK;
    cudaFuncAttributes known;
    TRY_CUDA(cudaFuncGetAttributes(&known, kernel));
    if (known.sharedSizeBytes + (size_t)bytes > (size_t)engine->block_bytes)
        return status_fail(HSORT_INTERNAL, "a kernel needs %zu bytes of shared memory, but a block has %d",
                           known.sharedSizeBytes + (size_t)bytes, engine->block_bytes);
    if (known.maxDynamicSharedSizeBytes < bytes)
        TRY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    *grant = {kernel, bytes};
    return HSORT_OK;
}

/* Wait until a kernel on `stream` has made is_done() true by a word in pinned memory. The host polls the word, because being woken
 * takes longer than sorting a few thousand keys. Errors of the stream end the wait. HSORT_INTERNAL: the stream has nothing left to
 * do, and is_done() is still false. */
template <typename DONE>
static inline hsort_status wait_until(cudaStream_t stream, DONE is_done)
{
    enum { LOOKS = 1000 }; // between two questions to the driver, which take much longer
    for (unsigned looks = 1; !is_done(); looks++) {
        const cudaError_t state = looks % LOOKS == 0 ? cudaStreamQuery(stream) : cudaErrorNotReady;
        if (state == cudaErrorNotReady)
            continue;
        TRY_CUDA(state);
        if (!is_done())
            return status_fail(HSORT_INTERNAL, "a kernel ended without the answer that the host waits for");
        break;
    }
    // On every kind of processor, what the kernel wrote before the word must not be read sooner than the word.
    std::atomic_thread_fence(std::memory_order_acquire);
    return HSORT_OK;
}

/* The same, until a kernel has written *word. The caller has set it to `unknown` before the launch. */
static inline hsort_status wait_for_word(cudaStream_t stream, const volatile int32_t *word, int32_t unknown)
{
    return wait_until(stream, [=] { return *word != unknown; });
}

/* The fault site of operations with kernels: each calls it where it begins. */
static inline hsort_status kernel_fault(const char *what)
{
    return fault_hit(FAULT_KERNEL) ? status_fail(HSORT_CUDA, "%s: fault switched on", what) : HSORT_OK;
}

/* The same for operations that take keys: also check that there are kernels for keys of this width. */
static inline hsort_status kernel_takes(const char *what, int key_bytes)
{
    TRY(key_width_check(key_bytes));
    return kernel_fault(what);
}

/* The same for operations that look at keys as they lie, which may have 1 or 2 bytes, too. */
static inline hsort_status kernel_looks(const char *what, int key_bytes)
{
    TRY(any_width_check(key_bytes));
    return kernel_fault(what);
}

#ifdef __cplusplus
extern "C" {
#endif

/* engine_ops.encode() and .decode(): inspect.cu; engine_ops.merge(): merge.cu. Their contracts are in engine.h. Here the
 * arguments have been checked, counts are > 0, and the device is current. They run on STREAM_WORK. */
hsort_status keys_map(struct cuda_engine *engine, struct keymap map, bool encoding, void *to,
                      const void *from, int64_t count); /* encode(), or decode() */
hsort_status keys_merge(struct cuda_engine *engine, int key_bytes, const void *a, int64_t a_count,
                        const void *b, int64_t b_count, void *out);

/* engine_ops.gather() and .inspect(): inspect.cu. */
hsort_status keys_gather(struct engine *engine, int key_bytes, const void *keys, const int64_t *positions,
                         int count, key_code *codes);
hsort_status keys_inspect(struct engine *engine, struct keymap map, const void *keys, int64_t count,
                          struct engine_inspection *found);

/* engine_ops.merge_runs() and .search(): merge_runs.cu. */
hsort_status keys_merge_runs(struct engine *engine, int key_bytes, void *runs, const int64_t *run_offset,
                             int k, void *out, void **merged);
hsort_status keys_search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                         const key_code *probes, int probe_count, int64_t *less, int64_t *not_greater);

/* engine_ops.cut() and .swap(): cut_swap.cu. */
hsort_status keys_cut(struct engine *engine, int key_bytes, const void *a, int64_t a_count, const void *b,
                      int64_t b_count, int64_t outputs, int64_t *from_a);
hsort_status keys_swap(struct engine *engine, int key_bytes, void *a, void *b, int64_t count);

/* engine_ops.copy() and .transfer(): copy.cu. */
hsort_status copy_bytes(struct engine *engine, enum engine_stream stream, void *to, const void *from, size_t bytes);
hsort_status copy_transfers(struct engine *engine, const struct engine_transfer *in, int in_count,
                            const struct engine_transfer *out, int out_count);

/* engine_ops.make_codes(), .split_codes(), .take() and .place(): elements.cu. */
hsort_status elements_make_codes(struct engine *engine, int code_bytes, void *codes, int64_t count,
                                 const struct key_field *fields, int field_count, int position_bits,
                                 int64_t first);
hsort_status elements_split_codes(struct engine *engine, int code_bytes, const void *codes, int64_t count,
                                  int position_bits, int64_t *positions, struct keymap map, void *keys);
hsort_status elements_take(struct engine *engine, const struct engine_take *take, int64_t *outside);
hsort_status elements_place(struct engine *engine, size_t element_bytes, void *to, int64_t to_count,
                            const void *from, const int64_t *positions, int64_t first, int64_t count,
                            int64_t *outside);

/* engine_ops.inspect_elements(): look.cu. */
hsort_status elements_inspect(struct engine *engine, const struct engine_elements *elements,
                              struct engine_inspection *found);
/* engine_ops.count_keys() and .write_counted(): counted.cu. */
hsort_status counted_count_keys(struct engine *engine, int key_bytes, const void *keys, int64_t count, int64_t *counts);
hsort_status counted_write(struct engine *engine, int key_bytes, const struct engine_counted *counted, int64_t first,
                           int64_t count, void *out);

/* engine_ops.count_runs() and .write_runs(): runs.cu. */
hsort_status runs_count(struct engine *engine, struct engine_runs *runs);
hsort_status runs_write(struct engine *engine, const struct engine_runs *runs);

/* Create *event with CUDA's `flags`; the caller frees it by event_destroy(). Not collective. Errors HSORT_HOST_MEMORY,
 * HSORT_CUDA. */
hsort_status cuda_event_create(struct engine *engine, unsigned flags, struct engine_event **event);

/* The groups of functions that not every engine has: peer.cu, msd/partition.cu, msd/pairs.cu, yardstick/yardstick.cu,
 * timing.cu. */
extern const struct engine_peer_ops cuda_peer_ops;
extern const struct engine_partition_ops cuda_partition_ops;
extern const struct engine_pack_ops cuda_pack_ops;
extern const struct engine_pair_ops cuda_pair_ops;
extern const struct engine_yardstick_ops cuda_yardstick_ops;
extern const struct engine_timing_ops cuda_timing_ops;

#ifdef __cplusplus
}
#endif

#endif
