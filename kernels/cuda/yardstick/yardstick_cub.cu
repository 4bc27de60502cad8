/* CUB's radix sort as its users call it: by the type of the keys, which it encodes itself, with a double buffer,
 * and with counts of 32 bits where these suffice. Rung 0, which sorts codes and counts in 64 bits, is for the ladder. */
#include "kernels/cuda/yardstick/yardstick.h"
#include <cub/device/device_radix_sort.cuh>

template <typename K, typename N>
static hsort_status cub_sort_numbers(struct cuda_engine *engine, struct yardstick_args *args)
{
    cub::DoubleBuffer<K> keys((K *)args->keys, (K *)args->scratch);
    TRY_CUDA(cub::DeviceRadixSort::SortKeys(args->workspace, args->workspace_bytes, keys, (N)args->count, 0,
                                            (int)sizeof(K) * 8, engine->streams[STREAM_WORK]));
    args->sorted = keys.Current();
    return HSORT_OK;
}

hsort_status yardstick_cub(struct cuda_engine *engine, struct yardstick_args *args)
{
    return with_any_number_type(args->type, [&](auto key) {
        typedef decltype(key) K;
        return args->count <= INT32_MAX ? cub_sort_numbers<K, int32_t>(engine, args)
                                        : cub_sort_numbers<K, int64_t>(engine, args);
    });
}
