/* A segment of System V shared memory per rank. It is marked for removal as soon as its rank has attached it, so the
 * kernel removes it with the last process that has it attached, however that one ends. Linux lets others attach
 * it all the same, by its number:
 *
 *     rank 0    make, attach and mark segment 71   --.   gather on the    attach the    gather on the node:
 *     rank 1    make, attach and mark segment 72   --'   node: numbers    others'       who has attached whom
 *
 * Two ranks share if each has attached the other's. A random word at the beginning tells a segment from another
 * one of the same number: containers may have one host name, but segments of their own. Only a rank that is
 * killed between making and marking, which wait for nobody, leaves something behind.
 *
 * Rejected. POSIX shared memory: its name must stay until all have opened it, so a rank killed meanwhile leaves it
 * behind; containers like to keep /dev/shm small. memfd and /proc/PID/fd: containers forbid it.
 * MPI_Win_allocate_shared(): it cannot serve only some ranks of a node. */
#include "mpi/transport/shared_memory.h"
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

/* What a rank sends the others of its node, as bytes. */
struct memory_segment {
    int64_t rank; /* in comm->world */
    uint64_t word;
    int64_t number; /* -1: it shares nothing */
};

static char *attach_segment(int64_t number)
{
    void *memory = shmat((int)number, NULL, 0);
    return memory == (void *)-1 ? NULL : memory; // NOLINT: that is how shmat() fails
}

/* Make this rank's memory, if there is any to share. */
static void make_own(struct shared_memory *shared, struct memory_segment *header)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    header->word = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec << 16 ^ (uint64_t)getpid();
    header->number = shmget(IPC_PRIVATE, shared->bytes, 0600);
    if (header->number >= 0) {
        shared->own = attach_segment(header->number);
        shmctl((int)header->number, IPC_RMID, NULL);
    }
    if (shared->own && shared->engine &&
        !shared->engine->ops->pin(shared->engine, shared->own, shared->bytes)) {
        shmdt(shared->own);
        shared->own = NULL;
    }
    if (!shared->own) {
        header->number = -1;
        return;
    }
    memset(shared->own, 0, shared->bytes); // takes the pages now: later looks at free memory count them
    memcpy(shared->own, &header->word, sizeof header->word);
}

/* Attach the segment that a header names, if it is there and holds the word. */
static char *attach_peer(const struct memory_segment *header)
{
    char *memory = attach_segment(header->number);
    if (memory && memcmp(memory, &header->word, sizeof header->word) != 0) {
        shmdt(memory);
        return NULL;
    }
    return memory;
}

/* Tell the node who is attached here, and detach those that have not attached this rank. attached [node_size *
 * node_size]. */
static hsort_status keep_mutual(struct comm *comm, const struct memory_segment *headers, char *attached,
                                struct shared_memory *shared)
{
    const int ranks = comm->node_size, own = comm->node_rank;
    for (int i = 0; i < ranks; i++)
        attached[own * ranks + i] = shared->of[headers[i].rank] != NULL;
    TRY_MPI(MPI_Allgather(MPI_IN_PLACE, ranks, MPI_CHAR, attached, ranks, MPI_CHAR, comm->node));
    for (int i = 0; i < ranks; i++) {
        char **of = &shared->of[headers[i].rank];
        if (*of && !attached[i * ranks + own]) {
            shmdt(*of);
            *of = NULL;
        }
    }
    return HSORT_OK;
}

/* Make and share the memory. headers, attached: of the node, as for keep_mutual(). */
static hsort_status share_memory(struct comm *comm, struct memory_segment *headers, char *attached,
                                 struct shared_memory *shared)
{
    struct memory_segment *own = &headers[comm->node_rank];
    own->rank = comm->rank;
    make_own(shared, own);
    hsort_status status = comm_check(MPI_Allgather(MPI_IN_PLACE, sizeof *headers, MPI_BYTE, headers,
                                                   sizeof *headers, MPI_BYTE, comm->node),
                                     "MPI_Allgather", false);
    for (int i = 0; status == HSORT_OK && i < comm->node_size; i++) {
        if (i != comm->node_rank && headers[i].number >= 0 && shared->own)
            shared->of[headers[i].rank] = attach_peer(&headers[i]);
    }
    if (status == HSORT_OK)
        status = keep_mutual(comm, headers, attached, shared);
    return status;
}

hsort_status shared_memory_open(struct comm *comm, struct engine *engine, size_t bytes,
                                struct shared_memory *shared)
{
    const size_t ranks = (size_t)comm->node_size;
    *shared = (struct shared_memory){.engine = engine, .bytes = bytes, .size = comm->size};
    shared->of = calloc((size_t)comm->size, sizeof *shared->of);
    shared->pin = engine ? calloc((size_t)comm->size, sizeof *shared->pin) : NULL;
    struct memory_segment *headers = calloc(ranks, sizeof *headers);
    char *attached = calloc(ranks, ranks);
    bool all;
    const bool has_tables = shared->of && (shared->pin || !engine) && headers && attached;
    hsort_status status = comm_all(comm, has_tables, &all);
    if (status == HSORT_OK && !has_tables)
        status = status_fail(HSORT_HOST_MEMORY, "no memory to share some with %d ranks", comm->node_size);
    if (status == HSORT_OK && all)
        status = share_memory(comm, headers, attached, shared);
    free(headers);
    free(attached);
    if (status != HSORT_OK)
        shared_memory_close(shared);
    return status;
}

char *shared_memory_pinned(struct shared_memory *shared, int peer)
{
    char *of = shared->pin ? shared->of[peer] : NULL;
    // If pinning fails, copies still work, but not beside other work.
    if (of && shared->pin[peer] == PIN_UNTRIED)
        shared->pin[peer] =
            shared->engine->ops->pin(shared->engine, of, shared->bytes) ? PIN_DONE : PIN_FAILED;
    return of;
}

void shared_memory_close(struct shared_memory *shared)
{
    for (int peer = 0; shared->of && peer < shared->size; peer++) {
        if (shared->pin && shared->pin[peer] == PIN_DONE)
            shared->engine->ops->unpin(shared->engine, shared->of[peer]);
        if (shared->of[peer])
            shmdt(shared->of[peer]);
    }
    if (shared->own && shared->engine)
        shared->engine->ops->unpin(shared->engine, shared->own);
    if (shared->own)
        shmdt(shared->own);
    free(shared->of);
    free(shared->pin);
    *shared = (struct shared_memory){0};
}
