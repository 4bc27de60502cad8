/* Keys become codes where a kernel first loads them, and bits again where one last stores them (kernels/base/keytype.h).
 *
 * A kernel asks once for all keys that a thread holds, not for each of them, and has one version: where keys are codes as they
 * come, that is one branch per tile, the same for all threads. A version of each kernel for each map would triple the code for
 * nothing that can be measured. */
#ifndef CODING_CUH
#define CODING_CUH

#include "kernels/cuda/ladder/ladder.h"

/* 16 bytes of keys. */
template <typename K>
union key_vector {
    uint4 whole;
    K keys[sizeof(uint4) / sizeof(K)];
};

/* By value, to kernels. All false: the keys are codes, and stay that. */
struct coding {
    struct keymap map;
    bool encodes, decodes;
};

/* Keys of 16 bytes are codes already. */
template <typename K>
static __device__ K encode(const struct keymap &map, K bits)
{
    static_assert(sizeof(K) == 4 || sizeof(K) == 8 || sizeof(K) == 16, "a key of a known width");
    return sizeof(K) == 4   ? (K)keymap_encode_u32(map, (uint32_t)bits)
           : sizeof(K) == 8 ? (K)keymap_encode_u64(map, (uint64_t)bits)
                            : bits;
}

template <typename K>
static __device__ K decode(const struct keymap &map, K code)
{
    static_assert(sizeof(K) == 4 || sizeof(K) == 8 || sizeof(K) == 16, "a key of a known width");
    return sizeof(K) == 4   ? (K)keymap_decode_u32(map, (uint32_t)code)
           : sizeof(K) == 8 ? (K)keymap_decode_u64(map, (uint64_t)code)
                            : code;
}

/* Of the keys that a thread has loaded. Those that do not exist come to no harm. */
template <typename K, int KEYS>
static __device__ void encode_loaded(const struct coding &coding, K (&keys)[KEYS])
{
    if (!coding.encodes)
        return;
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        keys[k] = encode(coding.map, keys[k]);
}

/* A key that was loaded, and one that is to be stored. */
template <typename K>
static __device__ K loaded_code(const struct coding &coding, K key)
{
    return coding.encodes ? encode(coding.map, key) : key;
}

template <typename K>
static __device__ K stored_key(const struct coding &coding, K code)
{
    return coding.decodes ? decode(coding.map, code) : code;
}

/* ---- on the host --------------------------------------------------------------------------------------- */

static const struct coding codes_only = {};

static struct coding coding_of(const struct raw_keys *raw)
{
    return {raw->map, !raw->map.identity, !raw->map.identity && raw->decode};
}

/* Where the keys of a sort come from, and what is to be done with them. */
template <typename K>
struct source {
    const K *keys;
    struct coding coding;
};

template <typename K>
static struct source<K> source_of(const struct sort_args *args) {
    const struct raw_keys *raw = args->raw;
    if (!raw)
        return {(const K *)args->keys, codes_only};
    return {(const K *)raw->from, coding_of(raw)};
}

#endif
