/* The CUDA half of engine.h in a build without the CUDA Toolkit: there are no devices. */
#include "kernels/engine.h"
#include <stdio.h>

int cuda_device_count(char *why, size_t bytes)
{
    snprintf(why, bytes, "built without CUDA");
    return 0;
}

hsort_status cuda_device_get(int index, struct cuda_device *device)
{
    (void)device;
    return status_fail(HSORT_NO_DEVICE, "no GPU %d: built without CUDA", index);
}

hsort_status engine_open_cuda(int index, size_t memory_limit, struct engine **engine)
{
    (void)memory_limit;
    *engine = NULL;
    return status_fail(HSORT_NO_DEVICE, "no GPU %d: built without CUDA", index);
}

int cuda_build_version(void)
{
    return 0;
}
