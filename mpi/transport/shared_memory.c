/* A file in POSIX shared memory per rank, which has no name any more as soon as the node's ranks have opened
 * it:
 *
 *     rank 0    create "/hypersort-71-5c2f"   --.   gather on     open and map     gather on the     remove
 *     rank 1    create "/hypersort-72-09ab"   --'   the node:     the others'      node: who has     the own
 *                                                   names                          mapped whom       name
 *
 * Two ranks share if each has mapped the other's. A random word at the beginning tells a file from another
 * one of the same name: containers may have one host name, but a /dev/shm each. A rank that is killed in
 * between leaves its file behind.
 *
 * Space is taken at once by posix_fallocate(): a full /dev/shm, which containers like to keep small, would
 * otherwise be a bus error much later. MPI_Win_allocate_shared() would do the same in fewer lines, but not
 * for some ranks of a node only. */
#include "mpi/transport/shared_memory.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What a rank sends the others of its node, as bytes. */
struct memory_file {
    int64_t rank; /* in comm->world */
    uint64_t word;
    char name[48]; /* "": it shares nothing */
};

static void *map_file(int fd, size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Make this rank's memory, if there is any to share. */
static void make_own(struct shared_memory *shared, struct memory_file *header)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    header->word = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec << 16 ^ (uint64_t)getpid();
    snprintf(header->name, sizeof header->name, "/hypersort-%ld-%09ld", (long)getpid(), now.tv_nsec);
    const int fd = shm_open(header->name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 && posix_fallocate(fd, 0, (off_t)shared->bytes) == 0)
        shared->own = map_file(fd, shared->bytes);
    if (shared->own && shared->engine &&
        !shared->engine->ops->pin(shared->engine, shared->own, shared->bytes)) {
        munmap(shared->own, shared->bytes);
        shared->own = NULL;
    }
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !shared->own)
        shm_unlink(header->name);
    if (shared->own)
        memcpy(shared->own, &header->word, sizeof header->word);
    else
        header->name[0] = '\0';
}

/* Map the file that a header names, if it is there and holds the word. */
static char *map_peer(const struct memory_file *header, size_t bytes)
{
    const int fd = shm_open(header->name, O_RDWR, 0);
    char *memory = fd >= 0 ? map_file(fd, bytes) : NULL;
    if (fd >= 0)
        close(fd);
    if (memory && memcmp(memory, &header->word, sizeof header->word) != 0) {
        munmap(memory, bytes);
        return NULL;
    }
    return memory;
}

/* Share who is mapped here with the node, and unmap those that have not mapped this rank. mapped [node_size *
 * node_size]. */
static hsort_status keep_mutual(struct comm *comm, const struct memory_file *headers, char *mapped,
                                struct shared_memory *shared)
{
    const int ranks = comm->node_size, own = comm->node_rank;
    for (int i = 0; i < ranks; i++)
        mapped[own * ranks + i] = shared->of[headers[i].rank] != NULL;
    TRY_MPI(MPI_Allgather(MPI_IN_PLACE, ranks, MPI_CHAR, mapped, ranks, MPI_CHAR, comm->node));
    for (int i = 0; i < ranks; i++) {
        char **of = &shared->of[headers[i].rank];
        if (*of && !mapped[i * ranks + own]) {
            munmap(*of, shared->bytes);
            *of = NULL;
        }
    }
    return HSORT_OK;
}

/* headers, mapped: of the node, as keep_mutual() has them. */
static hsort_status share_memory(struct comm *comm, struct memory_file *headers, char *mapped,
                                 struct shared_memory *shared)
{
    struct memory_file *own = &headers[comm->node_rank];
    own->rank = comm->rank;
    make_own(shared, own);
    hsort_status status = comm_check(MPI_Allgather(MPI_IN_PLACE, sizeof *headers, MPI_BYTE, headers,
                                                   sizeof *headers, MPI_BYTE, comm->node),
                                     "MPI_Allgather", false);
    for (int i = 0; status == HSORT_OK && i < comm->node_size; i++) {
        if (i != comm->node_rank && headers[i].name[0] != '\0' && shared->own)
            shared->of[headers[i].rank] = map_peer(&headers[i], shared->bytes);
    }
    if (status == HSORT_OK)
        status = keep_mutual(comm, headers, mapped, shared);
    if (shared->own)
        shm_unlink(own->name);
    return status;
}

hsort_status shared_memory_open(struct comm *comm, struct engine *engine, size_t bytes,
                                struct shared_memory *shared)
{
    const size_t ranks = (size_t)comm->node_size;
    *shared = (struct shared_memory){.engine = engine, .bytes = bytes, .size = comm->size};
    shared->of = calloc((size_t)comm->size, sizeof *shared->of);
    struct memory_file *headers = calloc(ranks, sizeof *headers);
    char *mapped = calloc(ranks, ranks);
    hsort_status status = HSORT_OK;
    int64_t all, some;
    const bool has_tables = shared->of && headers && mapped;
    status = comm_range(comm, has_tables, &all, &some);
    if (status == HSORT_OK && !has_tables)
        status = status_fail(HSORT_HOST_MEMORY, "no memory to share some with %d ranks", comm->node_size);
    if (status == HSORT_OK && all)
        status = share_memory(comm, headers, mapped, shared);
    free(headers);
    free(mapped);
    if (status != HSORT_OK)
        shared_memory_close(shared);
    return status;
}

void shared_memory_close(struct shared_memory *shared)
{
    for (int peer = 0; shared->of && peer < shared->size; peer++)
        if (shared->of[peer])
            munmap(shared->of[peer], shared->bytes);
    if (shared->own && shared->engine)
        shared->engine->ops->unpin(shared->engine, shared->own);
    if (shared->own)
        munmap(shared->own, shared->bytes);
    free(shared->of);
    *shared = (struct shared_memory){0};
}
