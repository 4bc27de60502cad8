/* Key types as unsigned integers that order the same way. A leaf: every layer may include it, CUDA code too.
 *
 * Keys are encoded when the engine first touches them and decoded when it last does; everything between
 * (local sort, exchange, merge) sees only uint32_t or uint64_t in ascending order. The map is a bijection, so
 * that every bit pattern comes back, payloads of NaNs included:
 *
 *   1. flip       unsigned: nothing. signed: the sign bit. float: the sign bit if positive, every bit if negative.
 *                 Floats then read  -NaN < -inf < ... < -0.0 < +0.0 < ... < +inf < +NaN.
 *   2. rotate     floats: subtract the number of negative NaNs, so that they wrap round to the top:
 *                 -inf < ... < +inf < +NaN < -NaN.
 *   3. reverse    descending: all codes up to that of +inf (integers: all codes) are mirrored; NaNs stay last.
 *
 * f32, ascending and descending:          bits        code        reversed
 *                                -inf     ff800000    00000000    ff000001
 *                                -0.0     80000000    7f800000    7f800001
 *                                +0.0     00000000    7f800001    7f800000
 *                                +inf     7f800000    ff000001    00000000
 *                                +NaN     7fc00000    ff400001    ff400001
 *                                -NaN     ffffffff    ff800001    ff800001     (the lowest of the negative NaNs)
 */
#ifndef KEYTYPE_H
#define KEYTYPE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/hypersort_types.h"

#ifdef __CUDACC__
#define KEYTYPE_FN static inline __host__ __device__
#else
#define KEYTYPE_FN static inline
#endif

/* The widths of keys that there are kernels for, and the only list of them (key_width.h).
 * X(bytes, suffix, unsigned integer, ...) with what else the caller hands over. */
#define KEY_WIDTH_LIST(X, ...)       \
    X(4, u32, uint32_t, __VA_ARGS__) \
    X(8, u64, uint64_t, __VA_ARGS__)

#define KEY_WIDTH_IS(bytes, suffix, type, key_bytes) || (key_bytes) == (bytes)
#define KEY_WIDTH_KNOWN(key_bytes) (0 KEY_WIDTH_LIST(KEY_WIDTH_IS, key_bytes))

#define X(name, short_name, bytes) \
    static_assert(KEY_WIDTH_KNOWN(bytes), "there are kernels for keys of " #name);
HSORT_TYPE_LIST(X)
#undef X

/* The largest code that keys of `key_bytes` can have; 0 where there are no kernels for them. */
static inline uint64_t key_max(int key_bytes)
{
    switch (key_bytes) {
#define X(bytes, suffix, type, unused)                                               \
    case bytes: {                                                                    \
        static_assert(sizeof(type) <= sizeof(uint64_t), "a code fits into 64 bits"); \
        return (type)-1;                                                             \
    }
        KEY_WIDTH_LIST(X, )
#undef X
    }
    return 0;
}

/* How keys of one type and order become unsigned integers; made by keymap_make(), passed by value to kernels.
 * */
struct keymap {
    uint64_t sign;    /* the top bit of a key */
    uint64_t flip;    /* flipped in every key */
    uint64_t fold;    /* flipped too in keys whose top bit is set */
    uint64_t shift;   /* subtracted then: the number of negative NaNs */
    uint64_t top;     /* the largest code that descending order mirrors */
    int key_bytes;    /* of KEY_WIDTH_LIST */
    bool descending;
    bool identity;    /* codes are the keys themselves: encoding may be skipped */
};

static inline struct keymap keymap_make(hsort_type type, hsort_order order)
{
#define X(name, short_name, bytes) type == name ? bytes:
    const int key_bytes = HSORT_TYPE_LIST(X) 0;
#undef X
    const bool is_float = type == HSORT_F32 || type == HSORT_F64;
    const bool is_signed = type == HSORT_I32 || type == HSORT_I64;
    const uint64_t all = key_max(key_bytes);
    const int mantissa_bits = type == HSORT_F32 ? 23 : 52;
    struct keymap map;
    map.key_bytes = key_bytes;
    map.sign = all ^ (all >> 1);
    map.flip = is_float || is_signed ? map.sign : 0;
    map.fold = is_float ? all >> 1 : 0;
    map.shift = is_float ? (UINT64_C(1) << mantissa_bits) - 1 : 0;
    map.top = all - 2 * map.shift;
    map.descending = order == HSORT_DESCENDING;
    map.identity = map.flip == 0 && !map.descending;
    return map;
}

KEYTYPE_FN uint64_t keymap_encode_u64(struct keymap map, uint64_t bits)
{
    uint64_t code = (bits ^ map.flip ^ (bits & map.sign ? map.fold : 0)) - map.shift;
    return map.descending && code <= map.top ? map.top - code : code;
}

KEYTYPE_FN uint64_t keymap_decode_u64(struct keymap map, uint64_t code)
{
    uint64_t turned = (map.descending && code <= map.top ? map.top - code : code) + map.shift;
    return turned ^ map.flip ^ (turned & map.sign ? 0 : map.fold);
}

KEYTYPE_FN uint32_t keymap_encode_u32(struct keymap map, uint32_t bits)
{
    uint32_t code = (bits ^ (uint32_t)map.flip ^ (bits & map.sign ? (uint32_t)map.fold : 0)) - (uint32_t)map.shift;
    return map.descending && code <= map.top ? (uint32_t)map.top - code : code;
}

KEYTYPE_FN uint32_t keymap_decode_u32(struct keymap map, uint32_t code)
{
    uint32_t turned = (map.descending && code <= map.top ? (uint32_t)map.top - code : code) + (uint32_t)map.shift;
    return turned ^ (uint32_t)map.flip ^ (turned & map.sign ? 0 : (uint32_t)map.fold);
}

/* One key's share of the multiset fingerprint: two independent 64-bit mixes of its bits (the finalisers of
 * SplitMix64, Steele, Lea, Flood 2014, and of MurmurHash3, Appleby 2011). A multiset's fingerprint is the sum
 * of its keys' shares modulo 2^64, each word on its own, so it does not depend on order or on how keys are
 * spread. */
KEYTYPE_FN void fingerprint_add(uint64_t bits, uint64_t sum[2])
{
    uint64_t a = bits + UINT64_C(0x9e3779b97f4a7c15);
    a = (a ^ (a >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    a = (a ^ (a >> 27)) * UINT64_C(0x94d049bb133111eb);
    sum[0] += a ^ (a >> 31);
    uint64_t b = bits ^ UINT64_C(0x6a09e667f3bcc909);
    b = (b ^ (b >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    b = (b ^ (b >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    sum[1] += b ^ (b >> 33);
}

#endif
