/* Put before MPICH (LD_PRELOAD), this makes a rank that finds no message give its core away. MPICH's ranks look for messages without
 * a pause. So with more ranks than cores, a rank that has work waits until others have used up their time slices: a test of three
 * ranks on two cores takes some twenty times as long. Open MPI has a setting for this (mpi_yield_when_idle). */
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

unsigned ucp_worker_progress(void *worker);

/* A function of UCX, by which Debian's MPICH sends. Returns whether there was anything to do. */
unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    if (!progress)
        *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
    if (!progress)
        abort();
    const unsigned done = progress(worker);
    if (done == 0)
        sched_yield();
    return done;
}
