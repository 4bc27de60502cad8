#include "tests/support/device_buffer.h"
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDART
#include <cuda_runtime_api.h>
#include <unistd.h>

/* A build with CUDA also runs where there is no GPU; the runtime then copies nothing, not even host memory. */
static bool has_device;

int device_buffer_kinds(int device)
{
    has_device = device >= 0 && cudaSetDevice(device) == cudaSuccess;
    return has_device ? BUFFER_KINDS : 1;
}

void *device_buffer_alloc(enum buffer_kind kind, size_t bytes)
{
    void *memory = NULL;
    cudaError_t error = cudaSuccess;
    if (kind == BUFFER_HOST)
        memory = malloc(bytes);
    else if (kind == BUFFER_PINNED)
        error = cudaMallocHost(&memory, bytes);
    else if (kind == BUFFER_MANAGED)
        error = cudaMallocManaged(&memory, bytes, cudaMemAttachGlobal);
    else
        error = cudaMalloc(&memory, bytes);
    return error == cudaSuccess ? memory : NULL;
}

void device_buffer_free(enum buffer_kind kind, void *memory)
{
    if (kind == BUFFER_HOST)
        free(memory);
    else if (kind == BUFFER_PINNED)
        cudaFreeHost(memory);
    else
        cudaFree(memory);
}

bool device_buffer_copy(void *to, const void *from, size_t bytes)
{
    if (!has_device) {
        memcpy(to, from, bytes);
        return true;
    }
    return cudaMemcpy(to, from, bytes, cudaMemcpyDefault) == cudaSuccess &&
           cudaDeviceSynchronize() == cudaSuccess;
}

static void CUDART_CB sleep_in_stream(void *unused)
{
    (void)unused;
    usleep(3000);
}

bool device_buffer_copy_late(void *to, const void *from, size_t bytes, void **stream)
{
    // Non-blocking: no work in the default stream waits for it by accident.
    static cudaStream_t own;
    void *staging = NULL;
    if (!own && cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess)
        return false;
    *stream = own;
    // From device memory: a copy from pageable host memory would make this call wait.
    return cudaMallocAsync(&staging, bytes, own) == cudaSuccess &&
           cudaMemcpyAsync(staging, from, bytes, cudaMemcpyDefault, own) == cudaSuccess &&
           cudaLaunchHostFunc(own, sleep_in_stream, NULL) == cudaSuccess &&
           cudaMemcpyAsync(to, staging, bytes, cudaMemcpyDefault, own) == cudaSuccess &&
           cudaFreeAsync(staging, own) == cudaSuccess;
}
#else

int device_buffer_kinds(int device)
{
    (void)device;
    return 1;
}

void *device_buffer_alloc(enum buffer_kind kind, size_t bytes)
{
    return kind == BUFFER_HOST ? malloc(bytes) : NULL;
}

void device_buffer_free(enum buffer_kind kind, void *memory)
{
    (void)kind;
    free(memory);
}

bool device_buffer_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return true;
}

bool device_buffer_copy_late(void *to, const void *from, size_t bytes, void **stream)
{
    *stream = NULL;
    return device_buffer_copy(to, from, bytes);
}
#endif
