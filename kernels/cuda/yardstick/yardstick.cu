/* What only measurements need of a device: engine_yardstick_ops in engine.h. */
#include "kernels/cuda/yardstick/yardstick.h"
#include "kernels/base/input_draw.h"
#include "kernels/cuda/engine/key_type.cuh"

enum { YARDSTICK_THREADS = 256, YARDSTICK_BLOCKS_PER_MULTIPROCESSOR = 8 };

static struct cuda_engine *cuda_of(struct engine *base)
{
    return (struct cuda_engine *)base;
}

static unsigned blocks_for(const struct cuda_engine *engine, int64_t count)
{
    const int64_t most = (int64_t)engine->multiprocessors * YARDSTICK_BLOCKS_PER_MULTIPROCESSOR;
    const int64_t wanted = divide_up(count, YARDSTICK_THREADS);
    return (unsigned)(wanted < most ? wanted : most);
}

/* ---- other libraries ----------------------------------------------------------------------------------- */

/* CUB also sorts the floats of 2 bytes, but by types that C++ lacks. */
static bool has_yardstick(enum engine_yardstick which, hsort_type type)
{
    const bool is_known = type < HSORT_U128, is_small_float = type == HSORT_F16 || type == HSORT_BF16;
    return which == YARDSTICK_CUB ? !is_small_float
                                  : which == YARDSTICK_LIBCUSORT && is_known && yardstick_has_libcusort();
}

static hsort_status run_yardstick(struct cuda_engine *engine, enum engine_yardstick which,
                                  struct yardstick_args *args)
{
    return which == YARDSTICK_CUB ? yardstick_cub(engine, args) : yardstick_libcusort(engine, args);
}

static hsort_status yardstick_workspace(struct engine *base, enum engine_yardstick which, hsort_type type,
                                        int64_t count, size_t *bytes)
{
    struct device_scope scope(cuda_of(base));
    struct yardstick_args args = {};
    args.type = type;
    args.count = count;
    TRY(run_yardstick(cuda_of(base), which, &args));
    *bytes = args.workspace_bytes > 0 ? args.workspace_bytes : 1; // without a workspace nothing would be sorted
    return HSORT_OK;
}

static hsort_status yardstick_sort(struct engine *base, enum engine_yardstick which, hsort_type type,
                                   void *keys, void *scratch, int64_t count, void *workspace,
                                   size_t workspace_bytes, void **sorted)
{
    struct device_scope scope(cuda_of(base));
    struct yardstick_args args = {type, count, keys, scratch, keys, workspace, workspace_bytes};
    TRY(kernel_fault("yardstick"));
    if (count > 0)
        TRY(run_yardstick(cuda_of(base), which, &args));
    TRY_CUDA(cudaStreamSynchronize(cuda_of(base)->streams[STREAM_WORK]));
    *sorted = args.sorted;
    return HSORT_OK;
}

/* ---- numbers that differ -------------------------------------------------------------------------------- */

template <typename K>
static __global__ void __launch_bounds__(YARDSTICK_THREADS)
    compare_kernel(const K *a, const K *b, int64_t count, unsigned long long *different)
{
    unsigned long long found = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        found += a[i] != b[i] && !(a[i] != a[i] && b[i] != b[i]); // NaNs are the same
    if (found > 0)
        atomicAdd(different, found);
}

static hsort_status compare_keys(struct engine *base, hsort_type type, const void *a, const void *b,
                                 int64_t count, int64_t *different)
{
    struct cuda_engine *const engine = cuda_of(base);
    struct device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    // A word that is otherwise in use only while keys_inspect() or elements_inspect() runs.
    unsigned long long *const sum = (unsigned long long *)engine->inspection->fingerprint;
    unsigned long long *const result = (unsigned long long *)engine->result->inspection.fingerprint;
    *different = 0;
    TRY(kernel_fault("compare"));
    if (count == 0)
        return HSORT_OK;
    TRY_CUDA(cudaMemsetAsync(sum, 0, sizeof *sum, stream));
    TRY(with_any_number_type(type, [&](auto key) {
        typedef decltype(key) K;
        compare_kernel<<<blocks_for(engine, count), YARDSTICK_THREADS, 0, stream>>>((const K *)a,
                                                                                    (const K *)b, count, sum);
        TRY_LAUNCH("compare");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaMemcpyAsync(result, sum, sizeof *sum, cudaMemcpyDefault, stream));
    TRY_CUDA(cudaStreamSynchronize(stream));
    *different = (int64_t)*result;
    return HSORT_OK;
}

/* ---- generated keys -------------------------------------------------------------------------------------- */

template <typename K>
static __global__ void __launch_bounds__(YARDSTICK_THREADS)
    input_kernel(struct input_source source, int64_t first, int64_t count, K *keys)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        if constexpr (sizeof(K) == sizeof(uint128))
            keys[i] = input_wide_key(&source, first + i);
        else
            keys[i] = (K)input_key(&source, first + i);
}

static hsort_status fill_input(struct engine *base, const struct input *input, int64_t first, int64_t count,
                               void *keys)
{
    struct cuda_engine *const engine = cuda_of(base);
    struct device_scope scope(engine);
    const struct input_source source = input_source_make(input);
    TRY(kernel_fault("fill"));
    if (count == 0)
        return HSORT_OK;
    return with_any_key_type(input_key_bits(input->type) / 8, [&](auto key) {
        typedef decltype(key) K;
        input_kernel<<<blocks_for(engine, count), YARDSTICK_THREADS, 0, engine->streams[STREAM_WORK]>>>(
            source, first, count, (K *)keys);
        TRY_LAUNCH("fill");
        return HSORT_OK;
    });
}

const struct engine_yardstick_ops cuda_yardstick_ops = {
    .has = has_yardstick,
    .workspace = yardstick_workspace,
    .sort = yardstick_sort,
    .compare = compare_keys,
    .fill = fill_input,
};
