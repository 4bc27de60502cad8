/* One pass over keys: encode, decode, inspect; and gather, which reads a few keys. All except gather are
 * bound by the bytes they move, so each thread has several loads in flight before it uses the first. */
#include "kernels/cuda/msd/coding.cuh"
#include "kernels/cuda/engine/cuda_engine.h"
#include "kernels/cuda/engine/block.cuh"
#include "kernels/cuda/engine/key_type.cuh"
#include "kernels/cuda/ladder/tuning.h"
#include <string.h>

template <typename K>
constexpr int pass_keys = by_width<K>(PASS_KEYS, PASS_KEYS, PASS_KEYS_16);

template <typename K>
constexpr int pass_tile = PASS_THREADS * pass_keys<K>;

/* ---- encode, decode ------------------------------------------------------------------------------------ */

/* to[i] = code of from[i], or its inverse. No __restrict__: `to` may be `from`; each key is read before it is
 * written, by the same thread. */
template <typename K>
static __global__ void __launch_bounds__(PASS_THREADS)
    map_kernel(struct keymap map, bool encoding, K *to, const K *from, int64_t count)
{
    const int64_t first = (int64_t)blockIdx.x * pass_tile<K> + threadIdx.x;
    K keys[pass_keys<K>];
#pragma unroll
    for (int k = 0; k < pass_keys<K>; k++) {
        const int64_t i = first + k * PASS_THREADS;
        keys[k] = i < count ? from[i] : 0;
    }
#pragma unroll
    for (int k = 0; k < pass_keys<K>; k++) {
        const int64_t i = first + k * PASS_THREADS;
        if (i < count)
            to[i] = encoding ? encode(map, keys[k]) : decode(map, keys[k]);
    }
}

extern "C" hsort_status keys_map(struct cuda_engine *engine, struct keymap map, bool encoding, void *to,
                                 const void *from, int64_t count)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    if (map.identity && to == from)
        return HSORT_OK;
    if (map.identity)
        return cuda_check(cudaMemcpyAsync(to, from, (size_t)count * map.key_bytes, cudaMemcpyDefault, stream),
                          "cudaMemcpyAsync");
    return with_key_type(map.key_bytes, [&](auto key) {
        typedef decltype(key) K;
        const unsigned blocks = (unsigned)divide_up(count, pass_tile<K>);
        map_kernel<<<blocks, PASS_THREADS, 0, stream>>>(map, encoding, (K *)to, (const K *)from, count);
        TRY_LAUNCH("encode or decode");
        return HSORT_OK;
    });
}

/* ---- inspect ------------------------------------------------------------------------------------------- */

template <typename K>
static __global__ void start_inspection_kernel(struct keymap map, const K *keys, int64_t count,
                                               struct engine_inspection *found)
{
    found->first_descent = count;
    found->first = encode(map, keys[0]);
    found->last = encode(map, keys[count - 1]);
    found->fingerprint[0] = found->fingerprint[1] = 0;
}

template <typename K>
static __global__ void __launch_bounds__(PASS_THREADS)
    inspect_kernel(struct keymap map, const K *__restrict__ keys, int64_t count,
                   struct engine_inspection *found)
{
    int64_t descent = INT64_MAX;
    uint64_t sum[2] = {0, 0};
    for (int64_t tile = blockIdx.x; tile * pass_tile<K> < count; tile += gridDim.x) {
        const int64_t first = tile * pass_tile<K> + threadIdx.x;
        K here[pass_keys<K>], left[pass_keys<K>];
#pragma unroll
        for (int k = 0; k < pass_keys<K>; k++) {
            const int64_t i = first + k * PASS_THREADS;
            here[k] = i < count ? keys[i] : 0;
            left[k] = i < count && i > 0 ? keys[i - 1] : here[k]; // from the cache: a neighbour reads it too
        }
#pragma unroll
        for (int k = 0; k < pass_keys<K>; k++) {
            const int64_t i = first + k * PASS_THREADS;
            if (i < count) {
                key_fingerprint_add(sizeof(K), here[k], sum);
                if (encode(map, here[k]) < encode(map, left[k]))
                    descent = min(descent, i);
            }
        }
    }
    tell_least(descent, &found->first_descent);
    for (int word = 0; word < 2; word++)
        tell_sum(sum[word], &found->fingerprint[word]);
}

template <typename K>
static hsort_status launch_inspect(struct cuda_engine *engine, struct keymap map, const K *keys,
                                   int64_t count)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const int64_t blocks =
        min(divide_up(count, pass_tile<K>), (int64_t)engine->multiprocessors * INSPECT_BLOCKS);
    start_inspection_kernel<<<1, 1, 0, stream>>>(map, keys, count, engine->inspection);
    inspect_kernel<<<(unsigned)blocks, PASS_THREADS, 0, stream>>>(map, keys, count, engine->inspection);
    TRY_LAUNCH("inspect");
    return HSORT_OK;
}

extern "C" hsort_status keys_inspect(struct engine *base, struct keymap map, const void *keys,
                                     int64_t count, struct engine_inspection *found)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    device_scope scope(engine);
    TRY(kernel_looks("inspect", map.key_bytes));
    memset(found, 0, sizeof *found);
    if (count == 0)
        return HSORT_OK;
    TRY(with_any_key_type(map.key_bytes, [&](auto key) {
        return launch_inspect(engine, map, (const decltype(key) *)keys, count);
    }));
    TRY_CUDA(cudaMemcpyAsync(&engine->result->inspection, engine->inspection, sizeof *found,
                             cudaMemcpyDefault, engine->streams[STREAM_WORK]));
    TRY_CUDA(cudaStreamSynchronize(engine->streams[STREAM_WORK]));
    *found = engine->result->inspection;
    return HSORT_OK;
}

/* ---- gather -------------------------------------------------------------------------------------------- */

/* `result` is pinned host memory: positions come from there and codes go there without a copy of their
 * own. */
template <typename K>
static __global__ void gather_kernel(const K *keys, int count, struct cuda_result *result)
{
    const int i = threadIdx.x;
    if (i < count)
        result->codes[i] = keys[result->positions[i]];
}

extern "C" hsort_status keys_gather(struct engine *base, int key_bytes, const void *keys,
                                    const int64_t *positions, int count, key_code *codes)
{
    struct cuda_engine *engine = (struct cuda_engine *)base;
    cudaStream_t stream = engine->streams[STREAM_WORK];
    device_scope scope(engine);
    TRY(kernel_looks("gather", key_bytes));
    if (count == 0)
        return HSORT_OK;
    memcpy(engine->result->positions, positions, (size_t)count * sizeof *positions);
    TRY(with_any_key_type(key_bytes, [&](auto key) {
        gather_kernel<<<1, ENGINE_GATHER_MAX, 0, stream>>>((const decltype(key) *)keys, count, engine->result);
        TRY_LAUNCH("gather");
        return HSORT_OK;
    }));
    TRY_CUDA(cudaStreamSynchronize(stream));
    memcpy(codes, engine->result->codes, (size_t)count * sizeof *codes);
    return HSORT_OK;
}
