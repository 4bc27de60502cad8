/* Events that keep their time, for a trace (traced_engine.h). Other events do not, because they are then recorded sooner. */
#include "kernels/cuda/engine/cuda_engine.h"

static hsort_status timing_create(struct engine *base, struct engine_event **event)
{
    return cuda_event_create(base, cudaEventDefault, event);
}

static hsort_status timing_seconds(struct engine *base, struct engine_event *from, struct engine_event *to, double *seconds)
{
    device_scope scope((struct cuda_engine *)base);
    float milliseconds = 0;
    TRY_CUDA(cudaEventElapsedTime(&milliseconds, from->handle, to->handle));
    *seconds = (double)milliseconds * 1e-3;
    return HSORT_OK;
}

extern "C" const struct engine_timing_ops cuda_timing_ops = {.create = timing_create, .seconds = timing_seconds};
