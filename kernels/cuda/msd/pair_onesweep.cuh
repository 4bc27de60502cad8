/* The stable sort of keys that have a value each, by rung 7: for keys of 4 bytes, and for few of 8.
 *
 * It reads the caller's arrays in its first pass and writes scratch, then from there what is asked for, and so on by turns:
 * of an even number of passes, as keys have them where each digit differs, the last one ends where it should.
 *
 *     keys, values     --- pass 1 --->   scratch   --- pass 2 --->   out   --- 3 --->   scratch   --- 4 --->   out
 *
 * Keys that are no codes become codes in `out` before, and keys behind; positions are made, and become wider. */
#ifndef PAIR_ONESWEEP_CUH
#define PAIR_ONESWEEP_CUH

#include "kernels/cuda/ladder/ladder.h"
#include "kernels/cuda/msd/ordered.cuh"
#include "kernels/cuda/msd/queue_level.cuh"

/* Do keys go at last where a half of the memory can be on the way? */
static bool has_goal_for_keys(const struct engine_pairs *pairs)
{
    return pairs->keys_out != NULL;
}

static bool has_goal_for_values(const struct engine_pairs *pairs)
{
    return pairs->values != NULL; // positions are wider at last than on the way
}

template <typename K, typename V>
struct onesweep_map {
    struct pair_array<K, V> out, scratch;
    void *workspace;
    size_t bytes;
};

template <typename K, typename V>
static struct sort_args onesweep_args(const struct onesweep_map<K, V> &map, const struct engine_pairs *pairs)
{
    struct sort_args args = {};
    args.key_bytes = sizeof(K);
    args.value_bytes = sizeof(V);
    args.count = pairs->count;
    args.keys = map.out.keys;
    args.values = map.out.values;
    args.scratch_keys = map.scratch.keys;
    args.scratch_values = map.scratch.values;
    args.first_keys = pairs->map.identity ? pairs->keys : NULL;
    args.first_values = pairs->values;
    args.workspace = map.workspace;
    return args;
}

template <typename K, typename V>
static hsort_status lay_out_onesweep(struct cuda_engine *engine, void *workspace,
                                     const struct engine_pairs *pairs, struct onesweep_map<K, V> *map)
{
    const int64_t count = pairs->count;
    char *next = (char *)workspace;
    size_t bytes;
    map->out.keys = has_goal_for_keys(pairs) ? (K *)pairs->keys_out : take_array<K>(&next, count);
    map->out.values = has_goal_for_values(pairs) ? (V *)pairs->values_out : take_array<V>(&next, count);
    map->scratch = {take_array<K>(&next, count), take_array<V>(&next, count)};
    const struct sort_args args = onesweep_args(*map, pairs);
    TRY(rung_7_onesweep_workspace(engine, &args, &bytes));
    map->workspace = take_array<char>(&next, (int64_t)bytes);
    map->bytes = (size_t)(next - (char *)workspace);
    return HSORT_OK;
}

/* The positions, as values. */
template <typename V>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS) number_kernel(V *values, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * MSD_WRITE_THREADS)
        values[i] = (V)i;
}

template <typename T, typename V>
static __global__ void __launch_bounds__(MSD_WRITE_THREADS)
    copy_values_kernel(const V *from, T *to, int64_t count)
{
    for (int64_t i = (int64_t)blockIdx.x * MSD_WRITE_THREADS + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * MSD_WRITE_THREADS)
        to[i] = (T)from[i];
}

/* Have keys and values where they belong. */
template <typename K, typename V, typename T>
static hsort_status finish_onesweep(struct cuda_engine *engine, const struct engine_pairs *pairs,
                                    const struct sort_args &args)
{
    cudaStream_t stream = engine->streams[STREAM_WORK];
    const bool in_place = args.sorted_keys == pairs->keys_out;
    if (pairs->keys_out && !pairs->map.identity)
        TRY(keys_decode(engine, pairs->map, pairs->keys_out, args.sorted_keys, pairs->count));
    else if (pairs->keys_out && !in_place)
        TRY_CUDA(cudaMemcpyAsync(pairs->keys_out, args.sorted_keys, (size_t)pairs->count * sizeof(K),
                                 cudaMemcpyDefault, stream));
    if (args.sorted_values == pairs->values_out)
        return HSORT_OK;
    copy_values_kernel<T><<<engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, stream>>>(
        (const V *)args.sorted_values, (T *)pairs->values_out, pairs->count);
    TRY_LAUNCH("copy of the values");
    return HSORT_OK;
}

template <typename K, typename V, typename T>
static hsort_status sort_pairs_by_onesweep(struct cuda_engine *engine, const struct engine_pairs *pairs,
                                           void *workspace)
{
    struct onesweep_map<K, V> map = {
    };
    TRY(lay_out_onesweep(engine, workspace, pairs, &map));
    struct sort_args args = onesweep_args(map, pairs);
    if (!pairs->map.identity)
        TRY(keys_encode(engine, pairs->map, map.out.keys, pairs->keys, pairs->count));
    if (!pairs->values) {
        number_kernel<<<engine->multiprocessors * 8, MSD_WRITE_THREADS, 0, engine->streams[STREAM_WORK]>>>(
            map.out.values, pairs->count);
        TRY_LAUNCH("positions as values");
    }
    TRY(rung_7_onesweep(engine, &args));
    return finish_onesweep<K, V, T>(engine, pairs, args);
}

#endif
