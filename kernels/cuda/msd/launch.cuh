/* Kernels that follow each other closely. Between two ordinary launches a GPU runs empty: the second kernel is sent
 * to the multiprocessors when the first one is done. Here it is sent when all blocks of the first one have begun, and
 * its blocks wait where they will run ("programmatic dependent launch"):
 *
 *     ordinary     | first ....... |  (sent)  | second ....... |
 *     here         | first ....... | second ....... |
 *                     (sent)  wait |
 *
 * Every thread of a kernel that is launched this way calls wait_for_kernels_before() before it touches global memory or ends. Everything
 * that was queued before is then done, because the kernel before has waited in its turn. Ordinary launches and copies may come before or
 * behind. Two kernels run beside the one before them instead: usual_kernel() of buckets.cuh, and scatter_kernel() of level.cuh if it is
 * told to. Their last block waits in the end, for the sake of the kernels behind. And before onesweep_kernel() waits, it takes a ticket of
 * its own pass and reads what the first pass has already waited for. */
#ifndef LAUNCH_CUH
#define LAUNCH_CUH

#include "kernels/cuda/engine/cuda_engine.h"

/* Let the next kernel be sent once all blocks of this one have called this, or have ended. */
static __device__ void let_next_be_sent()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* Wait for what is queued before this kernel, and let the next one be sent. */
static __device__ void wait_for_kernels_before()
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/* Queue a kernel on STREAM_WORK, close behind the one before, with `bytes` of dynamic shared memory. what: names it in the text of an
 * error. */
template <typename... PARAMETERS, typename... ARGUMENTS>
static hsort_status launch_behind(struct cuda_engine *engine, const char *what, void (*kernel)(PARAMETERS...),
                                  dim3 blocks, int threads, int bytes, const ARGUMENTS &...arguments)
{
    enum { WITHOUT_ASKING = 24 << 10 }; // every kernel may have 48 KiB, including its variables there
    if (bytes > WITHOUT_ASKING)
        TRY(cuda_grant_shared(engine, (const void *)kernel, bytes));
    cudaLaunchAttribute close = {};
    close.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    close.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)bytes;
    config.stream = engine->streams[STREAM_WORK];
    config.attrs = &close;
    config.numAttrs = engine->code_waits && !engine->launches_apart ? 1 : 0;
    return cuda_check(cudaLaunchKernelEx(&config, kernel, PARAMETERS(arguments)...), what);
}

#endif
