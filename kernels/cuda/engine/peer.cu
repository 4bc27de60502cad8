/* Memory of other processes: an allocation is exported as a handle, which another process of the node opens
 * and then reads by copies and kernels, over NVLink where there is one.
 *
 *     this process      [ allocation ............ memory ......... ]      cudaIpcGetMemHandle(start), offset of memory
 *                         ^ start                 ^ offset                       | handle, by whatever way
 *     another process   [ the same bytes at another address ........ ]  <--- cudaIpcOpenMemHandle
 *
 * A handle names a whole allocation, so the driver is asked where the allocation around `memory` starts.
 *
 * Only allocations of at least ENGINE_PEER_BYTES are exported: cudaMalloc cuts smaller ones out of a block that several
 * share, and a handle maps the whole block. Padding small allocations instead would blind memcheck to accesses beyond
 * their end.
 *
 * From ENGINE_PEER_BYTES on, alloc() takes whole multiples of it. If an allocation ends elsewhere, copies of another process
 * read it at less than the link's rate, once kernels of that process have read or written more than the L2 cache of its GPU
 * holds (mpi/measured.md). Copies in the allocation's own process are not slower. Not known why: a guess is that the allocation is
 * mapped in small pages.
 *
 * Only cudaMalloc memory is exported: virtual memory and pools have other handles, which must be passed as file
 * descriptors, and managed memory has none. cudaDeviceCanAccessPeer() is not asked, because it knows only devices that this
 * process sees. Opening, where it works at all, also works for a device that CUDA_VISIBLE_DEVICES hides. */
#include "kernels/cuda/engine/cuda_engine.h"
#include <string.h>

static_assert(sizeof(cudaIpcMemHandle_t) <= sizeof(((struct engine_peer_handle *)0)->allocation),
              "a handle of CUDA's fits into one of the engine's");

static bool is_own(const struct cuda_engine *engine, const void *start)
{
    const struct cuda_allocation *allocation = engine->allocations;
    while (allocation && allocation->memory != start)
        allocation = allocation->older;
    return allocation != NULL;
}

static hsort_status peer_export(struct engine *base, const void *memory, struct engine_peer_handle *handle)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    cudaPointerAttributes attributes;
    cudaIpcMemHandle_t name;
    CUdeviceptr start = 0;
    size_t bytes = 0;
    memset(handle, 0, sizeof *handle);
    // The type is asked first, because pinned host memory has an address range too.
    const bool exported = cudaPointerGetAttributes(&attributes, memory) == cudaSuccess &&
                          attributes.type == cudaMemoryTypeDevice && attributes.device == engine->device &&
                          engine->driver.address_range(&start, &bytes, (CUdeviceptr)memory) == CUDA_SUCCESS &&
                          bytes >= ENGINE_PEER_BYTES &&
                          cudaIpcGetMemHandle(&name, (void *)start) == cudaSuccess;
    if (!exported) {
        cudaGetLastError();
        return HSORT_ARGUMENT;
    }
    memcpy(handle->allocation, &name, sizeof name);
    handle->offset = (uint64_t)((CUdeviceptr)memory - start);
    handle->bytes = bytes;
    handle->lasting = is_own(engine, (const void *)start);
    return HSORT_OK;
}

static hsort_status peer_open(struct engine *base, const struct engine_peer_handle *handle, void **memory)
{
    device_scope scope((struct cuda_engine *)base);
    cudaIpcMemHandle_t name;
    void *mapped = NULL;
    memcpy(&name, handle->allocation, sizeof name);
    *memory = NULL;
    TRY_CUDA(cudaIpcOpenMemHandle(&mapped, name, cudaIpcMemLazyEnablePeerAccess));
    *memory = mapped;
    return HSORT_OK;
}

static void peer_close(struct engine *base, void *memory)
{
    device_scope scope((struct cuda_engine *)base);
    if (memory == NULL)
        return;
    cudaIpcCloseMemHandle(memory);
    cudaGetLastError();
}

const struct engine_peer_ops cuda_peer_ops = {
    .export_memory = peer_export,
    .open = peer_open,
    .close = peer_close,
};
