#include "mpi/comm/process_memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* What a rank says of its memory: where some bytes lie, and what they are. A process id alone may name another process, in the
 * reader's container. */
struct memory_sample {
    uint64_t process, address, bytes;
};

enum { SAMPLE_NUMBERS = sizeof(struct memory_sample) / sizeof(uint64_t) };

void process_memory_close(struct process_memory *memory)
{
    free(memory->reads);
    free(memory->is_read);
    free(memory->samples);
    *memory = (struct process_memory){0};
}

hsort_status process_memory_open(int size, struct process_memory *memory)
{
    *memory = (struct process_memory){0};
    memory->reads = calloc((size_t)size, sizeof *memory->reads);
    memory->is_read = calloc((size_t)size, sizeof *memory->is_read);
    memory->samples = calloc((size_t)size, sizeof *memory->samples);
    if (memory->reads && memory->is_read && memory->samples && !fault_hit(FAULT_ALLOC))
        return HSORT_OK;
    return status_fail(HSORT_HOST_MEMORY, "no memory to read that of %d processes", size);
}

/* Read up to `bytes`; returns how many, 0 if they cannot be read. */
static size_t read_some(uint64_t process, uint64_t address, size_t bytes, void *to)
{
    const struct iovec here = {.iov_base = to, .iov_len = bytes};
    const struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = bytes}; // NOLINT: it is not of this process
    ssize_t done;
    do
        done = process_vm_readv((pid_t)process, &here, 1, &there, 1, 0);
    while (done < 0 && errno == EINTR);
    return done > 0 ? (size_t)done : 0;
}

/* Read what each rank of the node says it has. */
static void try_reading(const struct comm *comm, struct process_memory *memory)
{
    for (int peer = 0; peer < comm->size; peer++) {
        const struct memory_sample *sample = &memory->samples[peer];
        uint64_t bytes = 0;
        if (peer != comm->rank && sample->process != 0 && comm_is_near(comm, peer))
            memory->reads[peer] =
                read_some(sample->process, sample->address, sizeof bytes, &bytes) == sizeof bytes &&
                bytes == sample->bytes;
    }
}

hsort_status process_memory_find(struct comm *comm, bool wanted, struct process_memory *memory)
{
    memory->shown = (uint64_t)trace_now() * 2 + 1; // other bytes on each rank
    const struct memory_sample own = {.process = wanted ? (uint64_t)getpid() : 0,
                                      .address = (uint64_t)(uintptr_t)&memory->shown,
                                      .bytes = memory->shown};
    TRY(comm_gather_words(comm, (const uint64_t *)&own, SAMPLE_NUMBERS, (uint64_t *)memory->samples));
    try_reading(comm, memory);
    return HSORT_OK;
}

void process_memory_try(struct process_memory *memory, int peer, uint64_t address, size_t bytes)
{
    const uint64_t process = memory->samples[peer].process;
    char byte;
    memory->reads[peer] =
        memory->reads[peer] && (bytes == 0 || (read_some(process, address, 1, &byte) == 1 &&
                                               read_some(process, address + bytes - 1, 1, &byte) == 1));
}

hsort_status process_memory_tell(struct comm *comm, struct process_memory *memory)
{
    return comm_check(MPI_Alltoall(memory->reads, 1, MPI_C_BOOL, memory->is_read, 1, MPI_C_BOOL, comm->world),
                      "MPI_Alltoall", true);
}

hsort_status process_memory_read(const struct process_memory *memory, int peer, uint64_t address, size_t bytes, void *to)
{
    size_t done = 0;
    errno = 0;
    while (done < bytes && !fault_hit(FAULT_COPY)) {
        const size_t some =
            read_some(memory->samples[peer].process, address + done, bytes - done, (char *)to + done);
        if (some == 0)
            break;
        done += some;
    }
    if (done < bytes)
        return status_fail(HSORT_MPI, "cannot read %zu bytes of rank %d's memory: %s", bytes - done, peer,
                           errno != 0 ? strerror(errno) : "fault switched on");
    return HSORT_OK;
}
