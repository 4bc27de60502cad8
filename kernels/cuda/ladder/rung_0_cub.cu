/* Rung 0: the radix sort of CUB, NVIDIA's library, as it comes with the toolkit.
 *
 * Idea     The yardstick: every number of the ladder is measured beside it, and every result of the tests is
 *          compared with it. It is chosen by default only for keys of 16 bytes where rung 8 lacks shared memory.
 * Change   None of ours.
 * Cost     One read of the keys that counts all digits, then for each 8-bit digit, also a constant one, one read
 *          and one write of each key and value. In the form used here the two buffers of the caller are enough.
 * Limit    Instructions: on a GPU with this much memory bandwidth, ranking the keys of a tile takes longer
 *          than moving them.
 * Source   cub::DeviceRadixSort; Adinets, Merrill, "Onesweep: A faster least significant digit radix sort for
 *          GPUs", 2022. */
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/ladder/ladder.h"
#include <cub/device/device_radix_sort.cuh>

/* As CUB does it: if `workspace` is NULL, set *workspace_bytes to the bytes that it needs. */
template <typename K>
static hsort_status cub_sort_keys(struct cuda_engine *engine, struct sort_args *args, void *workspace,
                              size_t *workspace_bytes)
{
    cub::DoubleBuffer<K> keys((K *)args->keys, (K *)args->scratch_keys);
    TRY_CUDA(cub::DeviceRadixSort::SortKeys(workspace, *workspace_bytes, keys, args->count, 0,
                                            (int)sizeof(K) * 8, engine->streams[STREAM_WORK]));
    args->sorted_keys = keys.Current();
    return HSORT_OK;
}

template <typename K, typename V>
static hsort_status cub_sort_pairs(struct cuda_engine *engine, struct sort_args *args, void *workspace,
                               size_t *workspace_bytes)
{
    cub::DoubleBuffer<K> keys((K *)args->keys, (K *)args->scratch_keys);
    cub::DoubleBuffer<V> values((V *)args->values, (V *)args->scratch_values);
    TRY_CUDA(cub::DeviceRadixSort::SortPairs(workspace, *workspace_bytes, keys, values, args->count, 0,
                                             (int)sizeof(K) * 8, engine->streams[STREAM_WORK]));
    args->sorted_keys = keys.Current();
    args->sorted_values = values.Current();
    return HSORT_OK;
}

static hsort_status sort_cub(struct cuda_engine *engine, struct sort_args *args, void *workspace,
                             size_t *workspace_bytes)
{
    if (args->key_bytes == 16 && args->value_bytes == 0)
        return cub_sort_keys<uint128>(engine, args, workspace, workspace_bytes);
    return with_element_types(args->key_bytes, args->value_bytes, [&](auto key, auto value) {
        if constexpr (has_value<decltype(value)>)
            return cub_sort_pairs<decltype(key), decltype(value)>(engine, args, workspace, workspace_bytes);
        else
            return cub_sort_keys<decltype(key)>(engine, args, workspace, workspace_bytes);
    });
}

extern "C" hsort_status rung_0_cub_workspace(struct cuda_engine *engine, const struct sort_args *args,
                                             size_t *bytes)
{
    struct sort_args sizes = *args;
    return sort_cub(engine, &sizes, NULL, bytes);
}

extern "C" hsort_status rung_0_cub(struct cuda_engine *engine, struct sort_args *args)
{
    size_t bytes;
    TRY(rung_0_cub_workspace(engine, args, &bytes));
    return sort_cub(engine, args, args->workspace, &bytes);
}
