/* What the tests share in which each rank has an engine: the engine, how it is opened, and shared memory that a rank is refused. Their
 * programs are linked with --wrap=shmget. */
#ifndef RANK_ENGINE_H
#define RANK_ENGINE_H

#include <sys/shm.h>
#include "mpi/comm/comm.h"
#include "tests/support/ranks.h"

static struct comm comm;
static struct engine *engine;

static bool has_no_shm;  /* this rank */
static int shm_segments; /* that this rank has asked for */

int __real_shmget(key_t key, size_t bytes, int flags);
int __wrap_shmget(key_t key, size_t bytes, int flags);
int __wrap_shmget(key_t key, size_t bytes, int flags)
{
    shm_segments++;
    return has_no_shm ? -1 : __real_shmget(key, bytes, flags);
}

/* Rank r of a node takes device r modulo the number of devices there, which is not 0. */
static inline hsort_status open_cuda_engine(void)
{
    char why[256];
    return engine_open_cuda(comm.node_rank % cuda_device_count(why, sizeof why), 0, &engine);
}

/* Open `comm` and `engine`, the cuda engine or what open_host() opens. False on all ranks if one cannot.   Collective. */
static inline bool open_rank(bool cuda, hsort_status (*open_host)(int, size_t, struct engine **))
{
    hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    if (status == HSORT_OK)
        status = cuda ? open_cuda_engine() : open_host(1, 0, &engine);
    CHECK(status == HSORT_OK, "rank %d: %s", comm.rank, status_text());
    return comm_agree(&comm, status) == HSORT_OK;
}

static inline void copy_and_wait(void *to, const void *from, size_t bytes)
{
    hsort_status status = engine->ops->copy(engine, STREAM_WORK, to, from, bytes);
    if (status == HSORT_OK)
        status = engine->ops->stream_synchronize(engine, STREAM_WORK);
    CHECK(status == HSORT_OK, "copy: %s", status_text());
}

#endif
