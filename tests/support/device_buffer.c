#include "tests/support/device_buffer.h"
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CUDART
#include <cuda_runtime_api.h>
#include <unistd.h>

/* A build with CUDA also runs without a GPU; the runtime then copies nothing, not even host memory. */
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

/* Bytes that a stream brings to host memory. */
struct late_bytes {
    void *to;
    size_t bytes;
    unsigned char from[];
};

static void CUDART_CB copy_in_stream(void *user)
{
    struct late_bytes *late = user;
    usleep(3000);
    memcpy(late->to, late->from, late->bytes);
    free(late);
}

/* Copy on the host, because a copy from the device to pageable memory would make the caller wait. */
static bool bring_by_host(void *to, const void *from, size_t bytes, cudaStream_t stream)
{
    struct late_bytes *late = malloc(sizeof *late + bytes);
    if (!late)
        return false;
    late->to = to;
    late->bytes = bytes;
    memcpy(late->from, from, bytes);
    return cudaLaunchHostFunc(stream, copy_in_stream, late) == cudaSuccess;
}

static bool is_host_memory(const void *memory)
{
    struct cudaPointerAttributes attributes;
    return cudaPointerGetAttributes(&attributes, memory) == cudaSuccess &&
           (attributes.type == cudaMemoryTypeUnregistered || attributes.type == cudaMemoryTypeHost);
}

bool device_buffer_copy_late(void *to, const void *from, size_t bytes, bool by_default, void **stream)
{
    // Non-blocking: the default stream does not wait for it by accident. Blocking: it does.
    static cudaStream_t own[2];
    static const unsigned flags[2] = {cudaStreamNonBlocking, cudaStreamDefault};
    cudaStream_t *late = &own[by_default];
    void *staging = NULL;
    if (!*late && cudaStreamCreateWithFlags(late, flags[by_default]) != cudaSuccess)
        return false;
    *stream = by_default ? NULL : *late;
    if (is_host_memory(to))
        return bring_by_host(to, from, bytes, *late);
    // From device memory: a copy from pageable host memory would make this call wait.
    return cudaMallocAsync(&staging, bytes, *late) == cudaSuccess &&
           cudaMemcpyAsync(staging, from, bytes, cudaMemcpyDefault, *late) == cudaSuccess &&
           cudaLaunchHostFunc(*late, sleep_in_stream, NULL) == cudaSuccess &&
           cudaMemcpyAsync(to, staging, bytes, cudaMemcpyDefault, *late) == cudaSuccess &&
           cudaFreeAsync(staging, *late) == cudaSuccess;
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

bool device_buffer_copy_late(void *to, const void *from, size_t bytes, bool by_default, void **stream)
{
    (void)by_default;
    *stream = NULL;
    return device_buffer_copy(to, from, bytes);
}
#endif
