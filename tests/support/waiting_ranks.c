/* Put before MPICH (LD_PRELOAD): a rank that finds no message gives its core away. MPICH's ranks look for messages without a pause,
 * so where there are more of them than cores, one that has work waits until others have used up their time slices: a test of
 * three ranks on two cores takes some twenty times as long. Open MPI has a setting for it (mpi_yield_when_idle). */
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

unsigned ucp_worker_progress(void *worker);

/* Of UCX, by which Debian's MPICH sends. Returns whether there was anything to do. */
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
