/* What the tests and the benchmark of the ladder ask of a result. */
#ifndef LADDER_VERIFY_CUH
#define LADDER_VERIFY_CUH

#include "tests/kernels/ladder_input.cuh"

static const int ladder_rungs[] = {
#define X(number, ...) number,
    LADDER(X)
#undef X
};

/* Open the first GPU. False, after one line that says why, if there is none. */
static inline bool open_first_gpu(struct cuda_engine **engine, struct cuda_device *device)
{
    char why[256];
    struct engine *opened;
    if (cuda_device_count(why, sizeof why) == 0) {
        printf("skipped: %s\n", why);
        return false;
    }
    MUST(cuda_device_get(0, device));
    MUST(engine_open_cuda(0, 0, &opened));
    *engine = (struct cuda_engine *)opened;
    return true;
}

/* Return what inspect() finds in codes. */
static inline struct engine_inspection look_at(struct cuda_engine *engine, int key_bytes, const void *keys,
                                               int64_t count)
{
    struct engine_inspection found;
    MUST(engine->base.ops->inspect(&engine->base,
                                   keymap_make(key_bytes == 4 ? HSORT_U32 : HSORT_U64, HSORT_ASCENDING), keys,
                                   count, &found));
    return found;
}

/* Are these keys in order, and are they the keys of which `before` was taken? */
static inline bool is_sorted_form(struct cuda_engine *engine, int key_bytes, const void *keys, int64_t count,
                                  struct engine_inspection before)
{
    const struct engine_inspection found = look_at(engine, key_bytes, keys, count);
    return found.first_descent == count && found.fingerprint[0] == before.fingerprint[0] &&
           found.fingerprint[1] == before.fingerprint[1];
}

/* Count wrong pairs: the value was not there before, is there twice, or belonged to another key in original [count];
 * after a stable sort also equal keys whose values changed their order. seen: a bit for each value, cleared before the call. */
template <typename K, typename V>
static __global__ void pairs_kernel(const K *original, const K *keys, const V *values, int64_t count,
                                    enum rung_order order, uint32_t *seen, unsigned long long *wrong)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t from = position_of(values[i]);
        bool good = from < count && values[i] == make_value<V>(from) && original[from] == keys[i] &&
                    !(atomicOr(&seen[from / 32], 1u << from % 32) >> from % 32 & 1);
        if (order == RUNG_STABLE && i > 0 && keys[i - 1] == keys[i])
            good = good && position_of(values[i - 1]) < from;
        if (!good)
            atomicAdd(wrong, 1ull);
    }
}

template <typename K>
static inline void launch_pairs(cudaStream_t stream, const void *original, const void *keys,
                                const void *values, int value_bytes, int64_t count, enum rung_order order,
                                uint32_t *seen, unsigned long long *wrong)
{
    if (value_bytes == 4)
        pairs_kernel<<<1024, 256, 0, stream>>>((const K *)original, (const K *)keys, (const uint32_t *)values,
                                               count, order, seen, wrong);
    else
        pairs_kernel<<<1024, 256, 0, stream>>>((const K *)original, (const K *)keys, (const uint64_t *)values,
                                               count, order, seen, wrong);
}

/* Count the wrong ones among the pairs keys, values [count]. `original` is what the keys were before the sort;
 * fill_values() made the values. */
static inline unsigned long long wrong_pairs(struct cuda_engine *engine, int key_bytes, int value_bytes,
                                             const void *original, const void *keys, const void *values,
                                             int64_t count, enum rung_order order)
{
    const struct engine_ops *ops = engine->base.ops;
    const size_t counter = sizeof(unsigned long long);
    const size_t bytes = counter + (size_t)(count / 32 + 1) * sizeof(uint32_t);
    unsigned char *memory;
    unsigned long long wrong;
    MUST(ops->alloc(&engine->base, bytes, (void **)&memory));
    {
        device_scope scope(engine);
        cudaStream_t stream = engine->streams[STREAM_WORK];
        MUST(cuda_check(cudaMemsetAsync(memory, 0, bytes, stream), "clear"));
        (key_bytes == 4 ? launch_pairs<uint32_t> : launch_pairs<uint64_t>)(stream, original, keys, values,
                                                                           value_bytes, count, order,
                                                                           (uint32_t *)(memory + counter),
                                                                           (unsigned long long *)memory);
        MUST(cuda_check(cudaGetLastError(), "check pairs"));
    }
    MUST(ops->copy(&engine->base, STREAM_WORK, &wrong, memory, counter));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    ops->free(&engine->base, memory);
    return wrong;
}

#endif
