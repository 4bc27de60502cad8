/* Ranks of a node read each other's memory: whole pieces, from any address, by several threads at a time. If nobody is to, or the
 * system forbids it, also for some memory only, or if another process has a rank's id, nobody reads, and both sides know it. A read of
 * memory that is not there is an error, not a crash. The ids, and how much the system reads at a time, are made up by the linker
 * (--wrap). */
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mpi/comm/process_memory.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/secret_memory.h"

enum { BYTES = 5 << 20, READS = 40, AT_A_TIME = 50001 };

static struct comm comm;
static unsigned char *own, *got; /* [BYTES] */

pid_t __real_getpid(void);
pid_t __wrap_getpid(void);
ssize_t __real_process_vm_readv(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                                unsigned long, unsigned long);
ssize_t __wrap_process_vm_readv(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                                unsigned long, unsigned long);

static pid_t other_process; /* whose id a rank takes for its own; 0: none */

pid_t __wrap_getpid(void)
{
    return other_process ? other_process : __real_getpid();
}

/* Linux reads 2 GiB at most at a time; here AT_A_TIME bytes stand for these. */
ssize_t __wrap_process_vm_readv(pid_t process, const struct iovec *here, unsigned long here_count,
                                const struct iovec *there, unsigned long there_count, unsigned long flags)
{
    struct iovec part = *here;
    part.iov_len = part.iov_len < AT_A_TIME ? part.iov_len : AT_A_TIME;
    return __real_process_vm_readv(process, &part, here_count, there, there_count, flags);
}

static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)(i * 37 + (i >> 8) * 11 + (size_t)rank * 89);
}

/* Does the system let one process read another's memory? A child and its parent say. */
static bool system_allows(void)
{
    int said = 0;
    static const int shown = 4711;
    const pid_t parent = getpid(), child = fork();
    if (child == 0) {
        int read = 0;
        const struct iovec here = {&read, sizeof read}, there = {(void *)&shown, sizeof shown};
        _exit(process_vm_readv(parent, &here, 1, &there, 1, 0) == (ssize_t)sizeof read && read == shown ? 7 : 8);
    }
    return child > 0 && waitpid(child, &said, 0) == child && WIFEXITED(said) && WEXITSTATUS(said) == 7;
}

/* Read parts of a peer's memory, drawn by the seed, one part by each thread at a time. */
static void read_parts(const struct process_memory *memory, const uint64_t *address, int peer, uint64_t seed)
{
#pragma omp parallel for num_threads(3)
    for (int i = 0; i < READS; i++) {
        uint64_t random = seed + (uint64_t)i * 977;
        const size_t room = BYTES / READS, place = (size_t)i * room, bytes = check_random(&random) % (room + 1),
                     at = check_random(&random) % (BYTES - bytes + 1);
        memset(got + place, 0xee, room);
        CHECK(process_memory_read(memory, peer, address[peer] + at, bytes, got + place) == HSORT_OK, "rank %d: %s", comm.rank,
              status_text());
        for (size_t b = 0; b < room; b++)
            CHECK(got[place + b] == (b < bytes ? byte_of(peer, at + b) : 0xee), "rank %d: byte %zu of %zu from %d, seed %llu",
                  comm.rank, b, bytes, peer, (unsigned long long)seed);
    }
}

static void check_reads(uint64_t seed, bool allowed)
{
    struct process_memory memory;
    uint64_t address[64];
    const uint64_t mine = (uint64_t)(uintptr_t)own;
    CHECK(process_memory_open(comm.size, &memory) == HSORT_OK && process_memory_find(&comm, true, &memory) == HSORT_OK &&
              comm_gather_words(&comm, &mine, 1, address) == HSORT_OK,
          "rank %d: %s", comm.rank, status_text());
    for (int peer = 0; peer < comm.size; peer++)
        process_memory_try(&memory, peer, address[peer], BYTES);
    CHECK(process_memory_tell(&comm, &memory) == HSORT_OK, "rank %d: %s", comm.rank, status_text());
    for (int peer = 0; peer < comm.size; peer++) {
        CHECK(memory.reads[peer] == (allowed && peer != comm.rank) && memory.is_read[peer] == memory.reads[peer],
              "rank %d and %d: reads %d, is read %d", comm.rank, peer, memory.reads[peer], memory.is_read[peer]);
        if (!memory.reads[peer])
            continue;
        read_parts(&memory, address, peer, seed + (uint64_t)(comm.rank * 64 + peer));
        status_clear();
        CHECK(process_memory_read(&memory, peer, 8, 8, got) == HSORT_MPI && strstr(status_text(), "cannot read 8 bytes of rank "),
              "no error from address 8: %s", status_text());
        status_clear();
#ifdef HSORT_FAULTS
        fault_set(FAULT_COPY, 1);
        CHECK(process_memory_read(&memory, peer, address[peer], 8, got) == HSORT_MPI &&
                  strstr(status_text(), "fault switched on"),
              "no error of a fault: %s", status_text());
        status_clear();
#endif
    }
    MPI_Barrier(MPI_COMM_WORLD);
    process_memory_close(&memory);
}

/* Rank 0 shows `bytes` bytes of which others cannot read the first or the last; all other ranks show what they have. Nobody reads from
 * rank 0, and rank 0 knows it. */
static void check_refused(const void *shown, size_t bytes, bool allowed, const char *what)
{
    struct process_memory memory;
    uint64_t address[64];
    const uint64_t mine = (uint64_t)(uintptr_t)(comm.rank == 0 ? shown : own);
    CHECK(process_memory_open(comm.size, &memory) == HSORT_OK &&
              process_memory_find(&comm, true, &memory) == HSORT_OK &&
              comm_gather_words(&comm, &mine, 1, address) == HSORT_OK,
          "rank %d: %s", comm.rank, status_text());
    for (int peer = 0; peer < comm.size; peer++) {
        process_memory_try(&memory, peer, address[peer], bytes);
        process_memory_try(&memory, peer, address[peer], 0); // of nothing: changes nothing
    }
    CHECK(process_memory_tell(&comm, &memory) == HSORT_OK, "rank %d: %s", comm.rank, status_text());
    for (int peer = 0; peer < comm.size; peer++)
        CHECK(memory.reads[peer] == (allowed && peer != comm.rank && peer != 0) &&
                  memory.is_read[peer] == (allowed && peer != comm.rank && comm.rank != 0),
              "%s: rank %d and %d: reads %d, is read %d", what, comm.rank, peer, memory.reads[peer],
              memory.is_read[peer]);
    MPI_Barrier(MPI_COMM_WORLD);
    process_memory_close(&memory);
}

/* Check memory that ends too early, that begins too late, and that the system keeps for its owner. */
static void check_unreadable(bool allowed)
{
    enum { PART = 1 << 16 };
    char *memory = mmap(NULL, 3 * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *secret = secret_memory_take(PART);
    int has_secret = secret != NULL;
    if (memory == MAP_FAILED || mprotect(memory, PART, PROT_NONE) != 0 ||
        mprotect(memory + 2 * PART, PART, PROT_NONE) != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    check_refused(memory + PART, PART + 1, allowed, "the last byte");
    check_refused(memory + PART - 1, PART, allowed, "the first byte");
    MPI_Bcast(&has_secret, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (has_secret)
        check_refused(secret, PART, allowed, "secret memory");
    else if (comm.rank == 0)
        printf("the system has no secret memory: not looked at\n");
    secret_memory_give(secret, PART);
    munmap(memory, 3 * PART);
}

/* To other ranks, a rank's id may be that of another process, as between containers, and this process has other bytes at the same
 * address. Here it is a copy of the rank from before the rank has any bytes there. */
static void check_other_process(void)
{
    struct process_memory memory;
    CHECK(process_memory_open(comm.size, &memory) == HSORT_OK, "rank %d: %s", comm.rank, status_text());
    other_process = fork();
    if (other_process == 0) {
        alarm(120); // if nobody ends it
        for (;;)
            pause();
    }
    CHECK(other_process > 0, "rank %d: no other process", comm.rank);
    CHECK(process_memory_find(&comm, true, &memory) == HSORT_OK &&
              process_memory_tell(&comm, &memory) == HSORT_OK,
          "rank %d: %s", comm.rank, status_text());
    for (int peer = 0; peer < comm.size; peer++)
        CHECK(!memory.reads[peer] && !memory.is_read[peer], "rank %d reads another process than %d",
              comm.rank, peer);
    MPI_Barrier(MPI_COMM_WORLD);
    if (other_process > 0 && kill(other_process, SIGKILL) == 0)
        waitpid(other_process, NULL, 0);
    other_process = 0;
    process_memory_close(&memory);
}

/* Check that nobody reads if nobody is to; and a rank without memory for its tables. */
static void check_none(void)
{
    struct process_memory memory;
    CHECK(process_memory_open(comm.size, &memory) == HSORT_OK &&
              process_memory_find(&comm, false, &memory) == HSORT_OK &&
              process_memory_tell(&comm, &memory) == HSORT_OK,
          "rank %d: %s", comm.rank, status_text());
    for (int peer = 0; peer < comm.size; peer++)
        CHECK(!memory.reads[peer] && !memory.is_read[peer], "rank %d reads %d", comm.rank, peer);
    process_memory_close(&memory);
#ifdef HSORT_FAULTS
    fault_set(FAULT_ALLOC, 1);
    CHECK(process_memory_open(comm.size, &memory) == HSORT_HOST_MEMORY, "memory for tables");
    status_clear();
    process_memory_close(&memory);
#endif
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    const bool allowed = system_allows();
    own = malloc(BYTES);
    got = malloc(BYTES);
    if (!own || !got || comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < BYTES; i++)
        own[i] = byte_of(rank, i);
    if (rank == 0 && !allowed)
        printf("the system lets no process read another's memory: only that is looked at\n");
    check_none();
    check_reads(seed, allowed);
    check_unreadable(allowed);
    check_other_process();
    comm_close(&comm);
    free(own);
    free(got);
    return ranks_finish();
}
