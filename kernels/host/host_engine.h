/* What the files of kernels/host/ share: the engine's state, and the groups of functions that not every
 * engine has. */
#ifndef HOST_ENGINE_H
#define HOST_ENGINE_H

#include "kernels/base/key_width.h"
#include "kernels/engine.h"

enum { PARALLEL_COUNT = 1 << 14 }; // keys from which on waking the threads pays

struct host_allocation; /* engine_host.c */

struct host_engine {
    struct engine base;
    int threads;
    size_t memory_limit, bytes_in_use;   /* bytes that alloc() has handed out, where there is a limit (0: none) */
    struct host_allocation *allocations; /* those, the youngest first */
};

static inline int host_threads(const struct engine *engine)
{
    return ((const struct host_engine *)engine)->threads;
}

/* Where a kernel can be made to fail: nothing else lets one fail on the host. */
static inline hsort_status kernel_passes(const char *name)
{
    return fault_hit(FAULT_KERNEL) ? status_fail(HSORT_INTERNAL, "%s on the host failed", name) : HSORT_OK;
}

/* The same, where keys are taken: the only place that asks whether the host engine knows their width. */
static inline hsort_status kernel_takes(const char *name, int key_bytes)
{
    TRY(key_width_check(key_bytes));
    return kernel_passes(name);
}

extern const struct engine_partition_ops host_partition_ops; /* partition.c */

#endif
