/* engine_ops.copy() and transfer(): what a stream can copy by itself, and what takes the host's cores (host_slots.h). */
#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/cuda/ladder/tuning.h"

static enum cudaMemoryType memory_type(const void *memory)
{
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, memory) == cudaSuccess)
        return attributes.type;
    cudaGetLastError();
    return cudaMemoryTypeHost; // the plain copy below then says what is wrong
}

/* Copy between the device and ordinary host memory. */
static hsort_status copy_unregistered(struct cuda_engine *engine, cudaStream_t queue, void *to, const void *from,
                                      size_t bytes, bool out)
{
    struct engine_transfer transfer = {};
    transfer.memory = (char *)(out ? from : to);
    transfer.host = (char *)(out ? to : from);
    transfer.bytes = bytes;
    return host_slots_run(&engine->slots, &transfer, !out, &transfer, out, queue, queue);
}

hsort_status copy_bytes(struct engine *base, enum engine_stream stream, void *to, const void *from, size_t bytes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t queue = engine->streams[stream];
    device_scope scope(engine);
    if (fault_hit(FAULT_COPY))
        return status_fail(HSORT_CUDA, "copy of %zu bytes: fault switched on", bytes);
    if (bytes >= UNREGISTERED_BYTES_MIN) {
        const enum cudaMemoryType to_type = memory_type(to), from_type = memory_type(from);
        if (to_type == cudaMemoryTypeDevice && from_type == cudaMemoryTypeUnregistered)
            return copy_unregistered(engine, queue, to, from, bytes, false);
        if (to_type == cudaMemoryTypeUnregistered && from_type == cudaMemoryTypeDevice)
            return copy_unregistered(engine, queue, to, from, bytes, true);
    }
    if (bytes > 0)
        TRY_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, queue));
    return HSORT_OK;
}

hsort_status copy_transfers(struct engine *base, const struct engine_transfer *in, int in_count,
                            const struct engine_transfer *out, int out_count)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    if (fault_hit(FAULT_COPY))
        return status_fail(HSORT_CUDA, "transfer: fault switched on");
    if (in_count + out_count == 0)
        return HSORT_OK;
    return host_slots_run(&engine->slots, in, in_count, out, out_count, engine->streams[STREAM_IN],
                          engine->streams[STREAM_OUT]);
}
