/* libcusort's radix sort, for builds that are told where its header is (HYPERSORT_LIBCUSORT). It is the work of others
 * under the Apache License 2.0, and not part of this tree. */
#include "kernels/cuda/yardstick/yardstick.h"

#ifdef HSORT_LIBCUSORT
#include HSORT_LIBCUSORT

bool yardstick_has_libcusort(void)
{
    return true;
}

hsort_status yardstick_libcusort(struct cuda_engine *engine, struct yardstick_args *args)
{
    return with_number_type(args->type, [&](auto key) {
        typedef decltype(key) K;
        cusort::DoubleBuffer<K> keys((K *)args->keys, (K *)args->scratch);
        TRY_CUDA(cusort::DeviceRadixSort::SortKeys(args->workspace, args->workspace_bytes, keys, args->count,
                                                   0, (int)sizeof(K) * 8, engine->streams[STREAM_WORK]));
        args->sorted = keys.Current();
        return HSORT_OK;
    });
}

#else

bool yardstick_has_libcusort(void)
{
    return false;
}

hsort_status yardstick_libcusort(struct cuda_engine *, struct yardstick_args *)
{
    return status_fail(HSORT_ARGUMENT, "this build was not given libcusort's header");
}

#endif
