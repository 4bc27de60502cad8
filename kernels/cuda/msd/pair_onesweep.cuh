/* The stable sort of keys that have a value each, by rung 7: for keys of 4 bytes, and for few of 8 bytes.
 *
 * The first pass reads the caller's arrays and makes codes and positions of them. The last pass stores what is asked for:
 *
 *     keys, values     --- pass 1 --->   scratch   --- pass 2 --->   out   --- 3 --->   scratch   --- 4 --->   out
 *
 * Positions have 4 bytes on the way, and 8 where the last pass stores them. */
#ifndef PAIR_ONESWEEP_CUH
#define PAIR_ONESWEEP_CUH

#include "kernels/cuda/ladder/ladder.h"
#include "kernels/cuda/msd/ordered.cuh"
#include "kernels/cuda/msd/queue_level.cuh"

/* The arrays on the way that are the caller's results, as far as these are asked for and as wide. Arrays for the rest are taken from
 * *next on. */
template <typename K, typename V>
static struct pair_array<K, V> take_goal(char **next, const struct engine_pairs *pairs)
{
    const int64_t count = pairs->count;
    K *keys = pairs->keys_out ? (K *)pairs->keys_out : take_array<K>(next, count);
    // positions are wider in the end than on the way
    V *values = pairs->values ? (V *)pairs->values_out : take_array<V>(next, count);
    return {keys, values};
}

template <typename K, typename V>
struct onesweep_map {
    struct pair_array<K, V> out, scratch;
    void *workspace;
    size_t bytes;
};

template <typename K, typename V>
static struct sort_args onesweep_args(const struct onesweep_map<K, V> &map, const struct engine_pairs *pairs,
                                      const struct raw_keys *raw)
{
    struct sort_args args = {};
    args.key_bytes = sizeof(K);
    args.value_bytes = sizeof(V);
    args.count = pairs->count;
    args.keys = map.out.keys;
    args.values = map.out.values;
    args.scratch_keys = map.scratch.keys;
    args.scratch_values = map.scratch.values;
    args.raw = raw;
    args.first_values = pairs->values;
    args.positions = pairs->values ? NULL : (int64_t *)pairs->values_out;
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
    map->out = take_goal<K, V>(&next, pairs);
    map->scratch = {take_array<K>(&next, count), take_array<V>(&next, count)};
    const struct sort_args args = onesweep_args(*map, pairs, NULL);
    TRY(rung_7_onesweep_workspace(engine, &args, &bytes));
    map->workspace = take_array<char>(&next, (int64_t)bytes);
    map->bytes = (size_t)(next - (char *)workspace);
    return HSORT_OK;
}

template <typename K, typename V>
static hsort_status sort_pairs_by_onesweep(struct cuda_engine *engine, const struct engine_pairs *pairs,
                                           void *workspace)
{
    struct onesweep_map<K, V> map = {
    };
    struct raw_keys raw = {};
    raw.map = pairs->map;
    raw.from = pairs->keys;
    raw.decode = true;
    TRY(lay_out_onesweep(engine, workspace, pairs, &map));
    struct sort_args args = onesweep_args(map, pairs, &raw);
    return rung_7_onesweep(engine, &args);
}

#endif
