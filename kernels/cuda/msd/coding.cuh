/* Keys become codes where a kernel first loads them, and bits again where a kernel last stores them (kernels/base/keytype.h).
 *
 * A kernel asks once for all keys that a thread holds whether they are to be encoded, not once for each key, and so has only one version.
 * If the keys come as codes, the question is one branch per tile, the same for all threads. A version of each kernel for each map would
 * triple the code without a gain that can be measured.
 *
 * Numbered keys of 4 bytes do have versions of their own, because what lies in memory is narrower than a code of 8 bytes. Where keys are
 * first loaded (FIRST), `struct numbering` may stand in for `struct coding`; where codes are last stored (LAST), `struct positions_of`
 * may:
 *
 *     keys S     --- numbering<S> --->  codes K     --- positions_of<K> --->  int64_t
 *     keys K     --- coding       --->  codes K     --- coding          --->  keys K */
#ifndef CODING_CUH
#define CODING_CUH

#include "kernels/cuda/ladder/ladder.h"

/* Passed to kernels by value. If encodes and decodes are false, the keys are codes and stay codes. */
struct coding {
    struct keymap map;
    bool encodes, decodes;
};

template <typename K>
static __device__ K encode(const struct keymap &map, K bits)
{
    static_assert(KEY_WIDTH_KNOWN(sizeof(K)) || KEY_IS_COUNTED(sizeof(K)), "a key of a known width");
    return sizeof(K) < 4    ? (K)keymap_encode_narrow(map, (uint64_t)bits)
           : sizeof(K) == 4 ? (K)keymap_encode_u32(map, (uint32_t)bits)
           : sizeof(K) == 8 ? (K)keymap_encode_u64(map, (uint64_t)bits)
                            : (K)keymap_encode_u128(map, bits);
}

template <typename K>
static __device__ K decode(const struct keymap &map, K code)
{
    static_assert(KEY_WIDTH_KNOWN(sizeof(K)) || KEY_IS_COUNTED(sizeof(K)), "a key of a known width");
    return sizeof(K) < 4    ? (K)keymap_decode_narrow(map, (uint64_t)code)
           : sizeof(K) == 4 ? (K)keymap_decode_u32(map, (uint32_t)code)
           : sizeof(K) == 8 ? (K)keymap_decode_u64(map, (uint64_t)code)
                            : (K)keymap_decode_u128(map, code);
}

/* Passed to kernels by value: how keys [count] of type S, from `keys` on, become the codes that make_codes() of engine.h makes of them. */
template <typename S>
struct numbering {
    struct keymap map;
    const S *keys;
    int64_t first;     /* position of keys[0] */
    int position_bits; /* 1 .. 63 */
};

/* Passed to kernels by value: only the lowest bits of codes are stored, which are their positions. Codes that wait for another level go
 * to `codes` as they are. */
template <typename K>
struct positions_of {
    K *codes;
    uint64_t mask;
};

/* What lies in memory: before codes K are made of it, and after they are stored. */
template <typename K, typename FIRST>
struct loaded_as {
    typedef K type;
};
template <typename K, typename S>
struct loaded_as<K, struct numbering<S>> {
    typedef S type;
};
template <typename K, typename LAST>
struct stored_as {
    typedef K type;
};
template <typename K>
struct stored_as<K, struct positions_of<K>> {
    typedef int64_t type;
};

/* Encode the keys that a thread has loaded. Keys that do not exist may be any bits. */
template <typename K, int KEYS>
static __device__ void encode_loaded(const struct coding &coding, K (&keys)[KEYS])
{
    if constexpr (sizeof(K) == sizeof(uint128)) { // encoding flips all bits of such keys; a branch would take registers
        const uint64_t flipped = coding.encodes ? ~UINT64_C(0) : 0;
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            keys[k] ^= (K)flipped << 64 | flipped;
        return;
    }
    if (!coding.encodes)
        return;
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        keys[k] = encode(coding.map, keys[k]);
}

/* The code of a key that was loaded, and the key to be stored for a code. */
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

/* The same for numbered keys: the position. */
template <typename K>
static __device__ int64_t stored_key(const struct positions_of<K> &last, K code)
{
    return (int64_t)((uint64_t)code & last.mask);
}

/* A code with its position below it. */
template <typename K>
static __device__ K above_position(uint64_t code, int position_bits, uint64_t position)
{
    static_assert(sizeof(K) == sizeof(uint64_t), "a code of 8 bytes");
    return code << position_bits | position;
}

/* The code of the key that lies at `at`. */
template <typename K>
static __device__ K load_code(const struct coding &coding, const K *at)
{
    return loaded_code(coding, *at);
}

template <typename K, typename S>
static __device__ K load_code(const struct numbering<S> &first, const S *at)
{
    return above_position<K>(encode(first.map, *at), first.position_bits,
                             (uint64_t)(first.first + (at - first.keys)));
}

/* Make the codes of keys that a thread has loaded: key k from at[place(k)]. Keys that do not exist may be any bits. */
template <typename K, int KEYS, typename PLACE>
static __device__ void codes_of_loaded(const struct coding &coding, const K *, const PLACE &,
                                       const K (&loaded)[KEYS], K (&codes)[KEYS])
{
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        codes[k] = loaded[k];
    encode_loaded(coding, codes);
}

template <typename K, typename S, int KEYS, typename PLACE>
static __device__ void codes_of_loaded(const struct numbering<S> &first, const S *at, const PLACE &place,
                                       const S (&loaded)[KEYS], K (&codes)[KEYS])
{
    const uint64_t position = (uint64_t)(first.first + (at - first.keys));
    S narrow[KEYS];
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        narrow[k] = loaded[k];
    if (!first.map.identity) {
#pragma unroll
        for (int k = 0; k < KEYS; k++)
            narrow[k] = encode(first.map, narrow[k]);
    }
#pragma unroll
    for (int k = 0; k < KEYS; k++)
        codes[k] = above_position<K>(narrow[k], first.position_bits, position + (uint64_t)place(k));
}

/* Where the codes of a bucket that waits for another level go. out: where the bucket is stored in the end. */
template <typename K>
static __device__ K *place_of_waiting(const struct coding &, K *out)
{
    return out;
}

template <typename K>
static __device__ K *place_of_waiting(const struct positions_of<K> &last, int64_t *)
{
    return last.codes;
}

/* ---- on the host --------------------------------------------------------------------------------------- */

static const struct coding codes_only = {};

static struct coding coding_of(const struct raw_keys *raw)
{
    return {raw->map, !raw->map.identity, !raw->map.identity && raw->decode};
}

template <typename S>
static struct numbering<S> numbering_of(const struct raw_keys *raw) {
    return {raw->map, (const S *)raw->from, raw->first, raw->position_bits};
}

template <typename K>
static struct positions_of<K> positions_last(const struct raw_keys *raw, K *codes) {
    return {codes, UINT64_MAX >> (64 - raw->position_bits)};
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
