/* The CUDA engine: one device behind the table of functions of engine.h.
 *
 *   streams   three streams that do not wait for the default stream, and it does not wait for them:
 *             stream_wait_caller() orders work after the caller's own
 *   memory    plain cudaMalloc, so that IPC handles exist for it; counted, so that ranks can share a device
 *   results   a page of pinned memory that kernels write to directly: a probe is one launch and one wait
 *
 * Kernels live in the other files; this one holds only what needs none. */
#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/in_place.h"
#include "kernels/base/size_text.h"
#include "kernels/cuda/ladder/ladder.h"
#include "kernels/cuda/ladder/tuning.h"
#include <new>
#include <stdio.h>
#include <string.h>

static struct cuda_engine *cuda(struct engine *engine)
{
    return (struct cuda_engine *)engine;
}

hsort_status cuda_check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return HSORT_OK;
    cudaGetLastError(); // or the next launch would report this error again
    return status_fail(error == cudaErrorMemoryAllocation ? HSORT_DEVICE_MEMORY : HSORT_CUDA, "%s: %s", call,
                       cudaGetErrorString(error));
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static hsort_status fail_alloc(const struct cuda_engine *engine, size_t bytes)
{
    size_t free_bytes = 0, total = 0;
    char wanted[SIZE_TEXT_BYTES], left[SIZE_TEXT_BYTES], used[SIZE_TEXT_BYTES],
        limit[SIZE_TEXT_BYTES] = "none";
    cudaMemGetInfo(&free_bytes, &total);
    cudaGetLastError();
    if (engine->memory_limit > 0)
        size_text(engine->memory_limit, limit);
    return status_fail(HSORT_DEVICE_MEMORY,
                       "GPU %d has no room for %s more: %s free, %s in use here, limit %s", engine->device,
                       size_text(bytes, wanted), size_text(free_bytes, left),
                       size_text(engine->bytes_in_use, used), limit);
}

/* The bytes to ask CUDA for. Large allocations take whole pages, or peers would read them slowly (peer.cu). */
static size_t whole_pages(size_t bytes)
{
    const size_t page = ENGINE_PEER_BYTES, rest = bytes % page;
    return bytes < page || rest == 0 || bytes > SIZE_MAX - page ? bytes : bytes - rest + page;
}

static hsort_status engine_alloc(struct engine *base, size_t bytes, void **memory)
{
    struct cuda_engine *engine = cuda(base);
    device_scope scope(engine);
    *memory = NULL;
    if (bytes == 0)
        return HSORT_OK;
    const bool over_limit = engine->memory_limit > 0 && (bytes > engine->memory_limit ||
                                                         engine->bytes_in_use > engine->memory_limit - bytes);
    if (over_limit || fault_hit(FAULT_ALLOC))
        return fail_alloc(engine, bytes);
    struct cuda_allocation *allocation = new (std::nothrow) struct cuda_allocation;
    if (!allocation)
        return status_fail(HSORT_HOST_MEMORY, "no host memory to note an allocation of %zu bytes", bytes);

    const cudaError_t error = cudaMalloc(memory, whole_pages(bytes));
    if (error != cudaSuccess) {
        delete allocation;
        *memory = NULL;
        return error == cudaErrorMemoryAllocation ? fail_alloc(engine, bytes) : cuda_check(error, "cudaMalloc");
    }
    *allocation = {*memory, bytes, engine->allocations};
    engine->allocations = allocation;
    engine->bytes_in_use += bytes;
    return HSORT_OK;
}

static void engine_free(struct engine *base, void *memory)
{
    struct cuda_engine *engine = cuda(base);
    device_scope scope(engine);
    struct cuda_allocation **link = &engine->allocations;
    while (*link && (*link)->memory != memory)
        link = &(*link)->older;
    if (memory == NULL || *link == NULL)
        return;
    struct cuda_allocation *allocation = *link;
    *link = allocation->older;
    engine->bytes_in_use -= allocation->bytes;
    delete allocation;
    cudaFree(memory); // a failure here is one of earlier work; stream_synchronize() reports that
    cudaGetLastError();
}

static hsort_status take_pinned(size_t bytes, bool must_fail, void **memory)
{
    if (!must_fail && cudaHostAlloc(memory, bytes, cudaHostAllocDefault) == cudaSuccess)
        return HSORT_OK;
    char wanted[SIZE_TEXT_BYTES];
    cudaGetLastError();
    *memory = NULL;
    return status_fail(HSORT_HOST_MEMORY, "cannot pin %s of host memory", size_text(bytes, wanted));
}

static hsort_status engine_alloc_host(struct engine *base, size_t bytes, void **memory)
{
    device_scope scope(cuda(base));
    *memory = NULL;
    if (bytes == 0)
        return HSORT_OK;
    return take_pinned(bytes, fault_hit(FAULT_ALLOC), memory);
}

static void engine_free_host(struct engine *base, void *memory)
{
    device_scope scope(cuda(base));
    cudaFreeHost(memory);
    cudaGetLastError();
}

static bool engine_pin(struct engine *base, void *memory, size_t bytes)
{
    device_scope scope(cuda(base));
    const bool pinned = cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess;
    cudaGetLastError();
    return pinned;
}

static void engine_unpin(struct engine *base, void *memory)
{
    device_scope scope(cuda(base));
    cudaHostUnregister(memory);
    cudaGetLastError();
}

static hsort_status engine_memory_free(struct engine *base, size_t *bytes)
{
    struct cuda_engine *engine = cuda(base);
    device_scope scope(engine);
    size_t total;
    TRY_CUDA(cudaMemGetInfo(bytes, &total));
    if (engine->memory_limit > 0 && *bytes > engine->memory_limit - engine->bytes_in_use)
        *bytes = engine->memory_limit - engine->bytes_in_use;
    return HSORT_OK;
}

static hsort_status engine_space_of(struct engine *base, const void *pointer, enum engine_space *space)
{
    struct cuda_engine *engine = cuda(base);
    device_scope scope(engine);
    *space = SPACE_ENGINE;
    if (pointer == NULL)
        return HSORT_OK;
    cudaPointerAttributes attributes;
    TRY_CUDA(cudaPointerGetAttributes(&attributes, pointer));
    if (attributes.type == cudaMemoryTypeDevice && attributes.device != engine->device)
        return status_fail(HSORT_ARGUMENT, "keys lie in the memory of GPU %d, but this rank's is GPU %d",
                           attributes.device, engine->device);
    if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged)
        *space = attributes.type == cudaMemoryTypeHost ? SPACE_PINNED : SPACE_HOST;
    return HSORT_OK;
}

/* ---- streams ------------------------------------------------------------------------------------------- */

hsort_status cuda_event_create(struct engine *base, unsigned flags, struct engine_event **event)
{
    device_scope scope(cuda(base));
    cudaEvent_t handle;
    *event = NULL;
    TRY_CUDA(cudaEventCreateWithFlags(&handle, flags));
    *event = new (std::nothrow) engine_event;
    if (*event == NULL) {
        cudaEventDestroy(handle);
        return status_fail(HSORT_HOST_MEMORY, "no host memory for an event");
    }
    (*event)->handle = handle;
    return HSORT_OK;
}

static hsort_status engine_event_create(struct engine *base, struct engine_event **event)
{
    return cuda_event_create(base, cudaEventDisableTiming, event);
}

static void engine_event_destroy(struct engine *base, struct engine_event *event)
{
    device_scope scope(cuda(base));
    if (event == NULL)
        return;
    cudaEventDestroy(event->handle);
    cudaGetLastError();
    delete event;
}

static hsort_status engine_event_record(struct engine *base, struct engine_event *event, enum engine_stream stream)
{
    device_scope scope(cuda(base));
    TRY_CUDA(cudaEventRecord(event->handle, cuda(base)->streams[stream]));
    return HSORT_OK;
}

static hsort_status engine_event_done(struct engine *base, struct engine_event *event, bool *done)
{
    device_scope scope(cuda(base));
    const cudaError_t state = cudaEventQuery(event->handle);
    *done = state == cudaSuccess;
    if (state == cudaErrorNotReady) // CUDA does not remember this as an error
        return HSORT_OK;
    return cuda_check(state, "work before an event");
}

static hsort_status engine_stream_wait_event(struct engine *base, enum engine_stream stream, struct engine_event *event)
{
    device_scope scope(cuda(base));
    TRY_CUDA(cudaStreamWaitEvent(cuda(base)->streams[stream], event->handle, 0));
    return HSORT_OK;
}

static hsort_status engine_stream_wait_caller(struct engine *base, void *stream)
{
    struct cuda_engine *engine = cuda(base);
    device_scope scope(engine);
    // If that work is done already, no event is needed, and a kernel that waits for an event starts later.
    if (cudaStreamQuery((cudaStream_t)stream) == cudaSuccess)
        return HSORT_OK;
    cudaGetLastError(); // of an error, which the next call reports; CUDA does not remember "not ready" as one
    TRY_CUDA(cudaEventRecord(engine->followed, (cudaStream_t)stream));
    TRY_CUDA(cudaStreamWaitEvent(engine->streams[STREAM_WORK], engine->followed, 0));
    return HSORT_OK;
}

static hsort_status engine_stream_synchronize(struct engine *base, enum engine_stream stream)
{
    static const char *const work[ENGINE_STREAMS] = {"kernels of STREAM_WORK", "copies of STREAM_OUT", "copies of STREAM_IN"};
    device_scope scope(cuda(base));
    return cuda_check(cudaStreamSynchronize(cuda(base)->streams[stream]), work[stream]);
}

/* ---- work on keys -------------------------------------------------------------------------------------- */

static hsort_status engine_encode(struct engine *base, struct keymap map, void *to, const void *from,
                                  int64_t count)
{
    device_scope scope(cuda(base));
    TRY(kernel_takes("encode", map.key_bytes));
    return count > 0 ? keys_map(cuda(base), map, true, to, from, count) : HSORT_OK;
}

static hsort_status engine_decode(struct engine *base, struct keymap map, void *to, const void *from,
                                  int64_t count)
{
    device_scope scope(cuda(base));
    TRY(kernel_takes("decode", map.key_bytes));
    return count > 0 ? keys_map(cuda(base), map, false, to, from, count) : HSORT_OK;
}

/* How to sort with the scratch there is: by which rung, and how many keys at a time. These are all keys, unless a
 * radix rung has too little scratch for them. A network needs no scratch, but does not take keys of 16 bytes. */
struct sort_plan {
    int rung;
    int64_t chunk;
};

static hsort_status plan_sort(int rung, int key_bytes, int64_t count, int64_t scratch_count,
                              struct sort_plan *plan)
{
    plan->rung = rung == -1 ? tuning_rung(key_bytes, count) : rung;
    plan->chunk = count;
    if (scratch_count >= count || count <= 1 || rung_is_network(plan->rung))
        return HSORT_OK;
    const int64_t chunk = in_place_chunk(count, scratch_count);
    if (chunk == 0 && rung != -1)
        return status_fail(HSORT_ARGUMENT, "rung %d cannot sort %lld keys with scratch for %lld", rung,
                           (long long)count, (long long)scratch_count);
    if (chunk == 0 && key_bytes > (int)sizeof(uint64_t))
        return status_fail(HSORT_DEVICE_MEMORY,
                           "%lld keys of %d bytes need scratch for at least 1 / %d of them, not for %lld",
                           (long long)count, key_bytes, (int)ENGINE_CHUNKS_MAX, (long long)scratch_count);
    plan->chunk = chunk > 0 ? chunk : count;
    if (rung == -1)
        plan->rung = chunk > 0 ? tuning_rung(key_bytes, chunk) : TUNING_IN_PLACE_RUNG;
    return HSORT_OK;
}

static hsort_status engine_sort_workspace(struct engine *base, int rung, int key_bytes, int64_t count,
                                          int64_t scratch_count, size_t *bytes)
{
    device_scope scope(cuda(base));
    struct sort_plan plan;
    *bytes = 0;
    TRY(key_width_check(key_bytes));
    TRY(plan_sort(rung, key_bytes, count, scratch_count, &plan));
    struct sort_args args = {};
    args.key_bytes = key_bytes;
    args.count = plan.chunk;
    TRY(ladder_workspace(cuda(base), plan.rung, &args, bytes));
    // fewer keys may be sorted by a rung that needs a larger workspace
    const bool may_differ = rung == -1 && !rung_is_network(plan.rung);
    while (may_differ && (args.count = tuning_border_below(key_bytes, args.count)) > 0) {
        size_t of_fewer;
        TRY(ladder_workspace(cuda(base), tuning_rung(key_bytes, args.count), &args, &of_fewer));
        *bytes = of_fewer > *bytes ? of_fewer : *bytes;
    }
    return HSORT_OK;
}

/* Sort with less scratch than keys. All keys are encoded first, or the rung would have to encode each chunk for itself. */
static hsort_status sort_in_chunks(struct engine *base, const struct sort_plan *plan,
                                   const struct sort_args *args, int64_t scratch_count, void **sorted)
{
    TRY(ladder_encode(cuda(base), args));
    TRY(in_place_sort(base, plan->rung, args->key_bytes, args->keys, args->count, args->scratch_keys,
                      scratch_count, args->workspace));
    return ladder_decode(cuda(base), args, sorted);
}

static hsort_status engine_sort(struct engine *base, int rung, int key_bytes, void *keys, void *scratch,
                                int64_t scratch_count, int64_t count, void *workspace,
                                const struct raw_keys *raw, void **sorted)
{
    device_scope scope(cuda(base));
    struct sort_plan plan;
    struct sort_args args = {};
    args.key_bytes = key_bytes;
    args.count = count;
    args.keys = keys;
    args.scratch_keys = scratch;
    args.workspace = workspace;
    args.raw = raw;
    *sorted = keys;
    TRY(kernel_takes("sort", key_bytes));
    TRY(plan_sort(rung, key_bytes, count, scratch_count, &plan));
    if (plan.chunk < count)
        return sort_in_chunks(base, &plan, &args, scratch_count, sorted);
    TRY(ladder_sort(cuda(base), plan.rung, &args));
    *sorted = args.sorted_keys;
    return HSORT_OK;
}

static hsort_status engine_merge(struct engine *base, int key_bytes, const void *a, int64_t a_count,
                                 const void *b, int64_t b_count, void *out)
{
    device_scope scope(cuda(base));
    TRY(kernel_takes("merge", key_bytes));
    return a_count + b_count > 0 ? keys_merge(cuda(base), key_bytes, a, a_count, b, b_count, out) : HSORT_OK;
}

/* ---- open and close ------------------------------------------------------------------------------------ */

static __global__ void alive_kernel(int32_t *alive)
{
    *alive = 1;
}

/* Find the driver's functions through the runtime: linking libcuda itself would tie the program to machines
 * with a GPU. */
static hsort_status find_driver(struct cuda_driver *driver)
{
#define FIND(symbol, version, member) \
    TRY_CUDA(cudaGetDriverEntryPointByVersion(symbol, (void **)&driver->member, version, cudaEnableDefault))
    FIND("cuDeviceGet", 2000, device_get);
    FIND("cuDevicePrimaryCtxRetain", 7000, retain);
    FIND("cuDevicePrimaryCtxRelease", 11000, release);
    FIND("cuCtxPushCurrent", 4000, push);
    FIND("cuCtxPopCurrent", 4000, pop);
    FIND("cuCtxGetCurrent", 4000, current);
    FIND("cuMemGetAddressRange", 3020, address_range);
#undef FIND
    if (!driver->device_get || !driver->retain || !driver->release || !driver->push || !driver->pop ||
        !driver->current || !driver->address_range)
        return status_fail(HSORT_CUDA, "the NVIDIA driver lacks a function of CUDA 11");
    return HSORT_OK;
}

/* Was the code made for GPUs whose kernels can wait where they will run (launch.cuh)? Such a GPU may run older code, translated
 * for it. All kernels are made for the same GPUs, so it is enough to ask about one. */
static hsort_status look_at_code(struct cuda_engine *engine)
{
    cudaFuncAttributes code;
    TRY_CUDA(cudaFuncGetAttributes(&code, alive_kernel));
    engine->code_waits = code.ptxVersion >= 90;
    return HSORT_OK;
}

/* Make everything the engine needs beside its context, and run a first kernel, so that a device that cannot run this
 * build's code is found here and not in the middle of a sort. The device is current. */
static hsort_status start_device(struct cuda_engine *engine)
{
    TRY_CUDA(cudaDeviceGetAttribute(&engine->multiprocessors, cudaDevAttrMultiProcessorCount, engine->device));
    TRY_CUDA(cudaDeviceGetAttribute(&engine->block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, engine->device));
    if (fault_hit(FAULT_BLOCKS_163))
        cuda_pretend(engine, MSD_BLOCK_BYTES[MSD_163], true);
    if (fault_hit(FAULT_BLOCKS_96))
        cuda_pretend(engine, MSD_BLOCK_BYTES[MSD_96], true);
    engine->counts_regions = fault_hit(FAULT_REGIONS);
    for (int stream = 0; stream < ENGINE_STREAMS; stream++)
        TRY_CUDA(cudaStreamCreateWithFlags(&engine->streams[stream], cudaStreamNonBlocking));
    TRY_CUDA(cudaEventCreateWithFlags(&engine->followed, cudaEventDisableTiming));
    TRY_CUDA(cudaMalloc((void **)&engine->inspection, sizeof *engine->inspection));
    // The whole inspection is copied, and some looks write only a part. Not on the default stream, which may wait for the caller's work.
    TRY_CUDA(cudaMemsetAsync(engine->inspection, 0, sizeof *engine->inspection, engine->streams[STREAM_WORK]));
    TRY_CUDA(cudaMalloc((void **)&engine->packed_bytes, CUDA_PACKINGS * sizeof *engine->packed_bytes));
    TRY(take_pinned(sizeof *engine->result, false, (void **)&engine->result));
    memset(engine->result, 0, sizeof *engine->result);

    alive_kernel<<<1, 1, 0, engine->streams[STREAM_WORK]>>>(&engine->result->alive);
    const cudaError_t launched = cudaGetLastError();
    if (launched == cudaErrorNoKernelImageForDevice || launched == cudaErrorUnsupportedPtxVersion)
        return status_fail(HSORT_NO_DEVICE,
                           "GPU %d cannot run this build's code (see CMAKE_CUDA_ARCHITECTURES): %s",
                           engine->device, cudaGetErrorString(launched));
    TRY(cuda_check(launched, "launch of the first kernel"));
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    if (engine->result->alive != 1)
        return status_fail(HSORT_CUDA, "a kernel on GPU %d had no effect", engine->device);
    return look_at_code(engine);
}

/* Make the device's primary context. cudaInitDevice() first: the runtime then holds the context too, and a
 * program that uses CUDA itself keeps it when this engine closes. */
static hsort_status retain_context(struct cuda_engine *engine)
{
    const cudaError_t error = cudaInitDevice(engine->device, 0, 0);
    if (error == cudaErrorDevicesUnavailable || error == cudaErrorDeviceAlreadyInUse) {
        cudaGetLastError();
        return status_fail(HSORT_NO_DEVICE, "GPU %d: %s", engine->device, cudaGetErrorString(error));
    }
    TRY(cuda_check(error, "cudaInitDevice"));
    TRY(find_driver(&engine->driver));
    CUdevice device;
    if (engine->driver.device_get(&device, engine->device) != CUDA_SUCCESS ||
        engine->driver.retain(&engine->context, device) != CUDA_SUCCESS) {
        engine->context = NULL;
        return status_fail(HSORT_CUDA, "GPU %d: cannot retain its context", engine->device);
    }
    engine->slots.context = engine->context;
    engine->slots.push = engine->driver.push;
    engine->slots.pop = engine->driver.pop;
    return HSORT_OK;
}

static void release_context(struct cuda_engine *engine)
{
    CUdevice device;
    if (engine->context && engine->driver.device_get(&device, engine->device) == CUDA_SUCCESS)
        engine->driver.release(device);
}

static void engine_close(struct engine *base)
{
    struct cuda_engine *engine = cuda(base);
    {
        device_scope scope(engine);
        for (int stream = 0; stream < ENGINE_STREAMS; stream++) {
            if (engine->streams[stream])
                cudaStreamDestroy(engine->streams[stream]);
        }
        if (engine->followed)
            cudaEventDestroy(engine->followed);
        host_slots_close(&engine->slots);
        cudaFree(engine->inspection);
        cudaFree(engine->packed_bytes);
        cudaFreeHost(engine->result);
        cudaGetLastError();
    }
    release_context(engine);
    delete engine;
}

// The fields are named, so that two functions of one type cannot be swapped unnoticed. They must stand in the struct's order.
static const struct engine_ops cuda_ops = {
    .name = "cuda",
    .kind = HSORT_ENGINE_CUDA,
    .peer = &cuda_peer_ops,
    .partition = &cuda_partition_ops,
    .packing = &cuda_pack_ops,
    .pairs = &cuda_pair_ops,
    .yardstick = &cuda_yardstick_ops,
    .timing = &cuda_timing_ops,
    .close = engine_close,
    .alloc = engine_alloc,
    .free = engine_free,
    .alloc_host = engine_alloc_host,
    .free_host = engine_free_host,
    .pin = engine_pin,
    .unpin = engine_unpin,
    .memory_free = engine_memory_free,
    .space_of = engine_space_of,
    .copy = copy_bytes,
    .transfer = copy_transfers,
    .event_create = engine_event_create,
    .event_destroy = engine_event_destroy,
    .event_record = engine_event_record,
    .event_done = engine_event_done,
    .stream_wait_event = engine_stream_wait_event,
    .stream_wait_caller = engine_stream_wait_caller,
    .stream_synchronize = engine_stream_synchronize,
    .encode = engine_encode,
    .decode = engine_decode,
    .sort_workspace = engine_sort_workspace,
    .sort = engine_sort,
    .merge = engine_merge,
    .merge_runs = keys_merge_runs,
    .cut = keys_cut,
    .swap = keys_swap,
    .gather = keys_gather,
    .search = keys_search,
    .make_codes = elements_make_codes,
    .split_codes = elements_split_codes,
    .take = elements_take,
    .place = elements_place,
    .count_runs = runs_count,
    .write_runs = runs_write,
    .count_keys = counted_count_keys,
    .write_counted = counted_write,
    .inspect = keys_inspect,
    .inspect_elements = elements_inspect,
};

extern "C" hsort_status engine_open_cuda(int index, size_t memory_limit, struct engine **opened)
{
    struct cuda_device device;
    *opened = NULL;
    TRY(cuda_device_get(index, &device));
    struct cuda_engine *engine = new (std::nothrow) cuda_engine{};
    if (engine == NULL)
        return status_fail(HSORT_HOST_MEMORY, "no host memory for an engine");
    engine->base.ops = &cuda_ops;
    engine->device = index;
    engine->memory_limit = memory_limit;
    engine->memory_bytes = memory_limit > 0 ? min(memory_limit, (size_t)device.bytes) : (size_t)device.bytes;
    hsort_status status = retain_context(engine);
    if (status != HSORT_OK) {
        delete engine;
        return status;
    }
    {
        device_scope scope(engine);
        status = start_device(engine);
    }
    if (status != HSORT_OK) {
        engine_close(&engine->base);
        return status;
    }
    *opened = &engine->base;
    return HSORT_OK;
}
