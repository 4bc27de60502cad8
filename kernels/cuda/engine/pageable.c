#include "kernels/cuda/engine/pageable.h"
#include <omp.h>
#include <string.h>

static cudaError_t open_slots(struct pageable *pageable)
{
    cudaError_t error = cudaSuccess;
    if (pageable->slots)
        return cudaSuccess;
    for (int slot = 0; slot < PAGEABLE_SLOTS && error == cudaSuccess; slot++)
        error = cudaEventCreateWithFlags(&pageable->copied[slot], cudaEventDisableTiming);
    if (error == cudaSuccess)
        error = cudaHostAlloc(&pageable->slots, (size_t)PAGEABLE_SLOTS * PAGEABLE_SLOT_BYTES,
                              cudaHostAllocDefault);
    if (error != cudaSuccess)
        pageable_close(pageable);
    return error;
}

void pageable_close(struct pageable *pageable)
{
    for (int slot = 0; slot < PAGEABLE_SLOTS; slot++)
        if (pageable->copied[slot])
            cudaEventDestroy(pageable->copied[slot]);
    if (pageable->slots)
        cudaFreeHost(pageable->slots);
    memset(pageable, 0, sizeof *pageable);
}

/* memcpy() by all cores of this rank: one core alone is slower than the link. */
static void copy_by_cores(void *to, const void *from, size_t bytes)
{
    const int procs = omp_get_num_procs(),
              threads = procs < PAGEABLE_THREADS_MAX ? procs : PAGEABLE_THREADS_MAX;
#pragma omp parallel num_threads(threads)
    {
        const size_t parts = (size_t)omp_get_num_threads(), part = (size_t)omp_get_thread_num();
        const size_t begin = bytes / parts * part,
                     end = part + 1 < parts ? bytes / parts * (part + 1) : bytes;
        memcpy((char *)to + begin, (const char *)from + begin, end - begin);
    }
}

static void *slot_of_chunk(const struct pageable *pageable, size_t chunk)
{
    return (char *)pageable->slots + chunk % PAGEABLE_SLOTS * PAGEABLE_SLOT_BYTES;
}

static size_t pageable_chunk_bytes(size_t bytes, size_t chunk)
{
    const size_t rest = bytes - chunk * PAGEABLE_SLOT_BYTES;
    return rest < PAGEABLE_SLOT_BYTES ? rest : PAGEABLE_SLOT_BYTES;
}

cudaError_t pageable_to_device(struct pageable *pageable, void *to, const void *from, size_t bytes,
                               cudaStream_t stream)
{
    cudaError_t error = open_slots(pageable);
    const size_t chunks = (bytes + PAGEABLE_SLOT_BYTES - 1) / PAGEABLE_SLOT_BYTES;
    for (size_t chunk = 0; chunk < chunks && error == cudaSuccess; chunk++) {
        const size_t at = chunk * PAGEABLE_SLOT_BYTES, size = pageable_chunk_bytes(bytes, chunk);
        const cudaEvent_t copied = pageable->copied[chunk % PAGEABLE_SLOTS];
        error = cudaEventSynchronize(copied); // at once for an event that was never recorded
        if (error != cudaSuccess)
            break;
        copy_by_cores(slot_of_chunk(pageable, chunk), (const char *)from + at, size);
        error = cudaMemcpyAsync((char *)to + at, slot_of_chunk(pageable, chunk), size, cudaMemcpyHostToDevice,
                                stream);
        if (error == cudaSuccess)
            error = cudaEventRecord(copied, stream);
    }
    return error;
}

/* Begin the copy of one chunk into its slot. */
static cudaError_t fetch_chunk(struct pageable *pageable, const void *from, size_t bytes, size_t chunk,
                               cudaStream_t stream)
{
    cudaError_t error =
        cudaMemcpyAsync(slot_of_chunk(pageable, chunk), (const char *)from + chunk * PAGEABLE_SLOT_BYTES,
                        pageable_chunk_bytes(bytes, chunk), cudaMemcpyDeviceToHost, stream);
    return error == cudaSuccess ? cudaEventRecord(pageable->copied[chunk % PAGEABLE_SLOTS], stream) : error;
}

cudaError_t pageable_to_host(struct pageable *pageable, void *to, const void *from, size_t bytes,
                             cudaStream_t stream)
{
    cudaError_t error = open_slots(pageable);
    const size_t chunks = (bytes + PAGEABLE_SLOT_BYTES - 1) / PAGEABLE_SLOT_BYTES;
    // Slots may still be on their way to the device from an earlier copy, on another stream.
    for (int slot = 0; slot < PAGEABLE_SLOTS && error == cudaSuccess; slot++)
        error = cudaEventSynchronize(pageable->copied[slot]);
    for (size_t chunk = 0; chunk < chunks && chunk < PAGEABLE_SLOTS && error == cudaSuccess; chunk++)
        error = fetch_chunk(pageable, from, bytes, chunk, stream);
    for (size_t chunk = 0; chunk < chunks && error == cudaSuccess; chunk++) {
        error = cudaEventSynchronize(pageable->copied[chunk % PAGEABLE_SLOTS]);
        if (error != cudaSuccess)
            break;
        copy_by_cores((char *)to + chunk * PAGEABLE_SLOT_BYTES, slot_of_chunk(pageable, chunk),
                      pageable_chunk_bytes(bytes, chunk));
        if (chunk + PAGEABLE_SLOTS < chunks)
            error = fetch_chunk(pageable, from, bytes, chunk + PAGEABLE_SLOTS, stream);
    }
    return error;
}
