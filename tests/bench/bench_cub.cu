/* Sorts of CUB that are no rung: its merge sort, beside the sorts that compare, and its radix sort of keys that are no codes.
 * CUB's manner: without a workspace it says in *workspace_bytes how much it wants. */
#include "tests/bench/bench.h"
#include "kernels/cuda/engine/key_type.cuh"
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

template <typename K>
static hsort_status radix_sort_typed(struct cuda_engine *engine, struct sort_args *args, void *workspace,
                                     size_t *workspace_bytes)
{
    cub::DoubleBuffer<K> keys((K *)args->keys, (K *)args->scratch_keys);
    TRY_CUDA(cub::DeviceRadixSort::SortKeys(workspace, *workspace_bytes, keys, args->count, 0, (int)sizeof(K) * 8,
                                            engine->streams[STREAM_WORK]));
    args->sorted_keys = keys.Current();
    return HSORT_OK;
}

static hsort_status sort_typed(struct cuda_engine *engine, int type, struct sort_args *args, void *workspace,
                               size_t *workspace_bytes)
{
    switch (type) {
    case HSORT_U32:
        return radix_sort_typed<uint32_t>(engine, args, workspace, workspace_bytes);
    case HSORT_I32:
        return radix_sort_typed<int32_t>(engine, args, workspace, workspace_bytes);
    case HSORT_F32:
        return radix_sort_typed<float>(engine, args, workspace, workspace_bytes);
    case HSORT_I64:
        return radix_sort_typed<int64_t>(engine, args, workspace, workspace_bytes);
    case HSORT_F64:
        return radix_sort_typed<double>(engine, args, workspace, workspace_bytes);
    default:
        return radix_sort_typed<uint64_t>(engine, args, workspace, workspace_bytes);
    }
}

hsort_status cub_sort_typed_workspace(struct cuda_engine *engine, int type, const struct sort_args *args, size_t *bytes)
{
    struct sort_args sizes = *args;
    return sort_typed(engine, type, &sizes, NULL, bytes);
}

hsort_status cub_sort_typed(struct cuda_engine *engine, int type, struct sort_args *args)
{
    size_t bytes;
    TRY(cub_sort_typed_workspace(engine, type, args, &bytes));
    return sort_typed(engine, type, args, args->workspace, &bytes);
}

static hsort_status merge_sort_keys(struct cuda_engine *engine, struct sort_args *args, void *workspace,
                                    size_t *workspace_bytes)
{
    return with_narrow_key_type(args->key_bytes, [&](auto key) {
        typedef decltype(key) K;
        TRY_CUDA(cub::DeviceMergeSort::SortKeys(workspace, *workspace_bytes, (K *)args->keys, args->count,
                                                cuda::std::less<K>(), engine->streams[STREAM_WORK]));
        args->sorted_keys = args->keys;
        return HSORT_OK;
    });
}

hsort_status cub_merge_sort_workspace(struct cuda_engine *engine, int, const struct sort_args *args, size_t *bytes)
{
    struct sort_args sizes = *args;
    return merge_sort_keys(engine, &sizes, NULL, bytes);
}

hsort_status cub_merge_sort(struct cuda_engine *engine, int, struct sort_args *args)
{
    size_t bytes;
    TRY(cub_merge_sort_workspace(engine, 0, args, &bytes));
    return merge_sort_keys(engine, args, args->workspace, &bytes);
}
