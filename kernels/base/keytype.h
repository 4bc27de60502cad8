/* Key types as unsigned integers that order the same way. A leaf: every layer may include it, CUDA code too.
 *
 * Keys are encoded when the engine first touches them and decoded when it last does; everything between
 * (local sort, exchange, merge) sees only unsigned integers of 4, 8 or 16 bytes in ascending order. Keys of 1 and 2 bytes
 * are not moved: it is enough to know how often each occurs, and the codes give the order in which they are written. The
 * map is a bijection, so that every bit pattern comes back, payloads of NaNs included:
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
#define KEYTYPE_HD __host__ __device__
#else
#define KEYTYPE_HD
#endif
#define KEYTYPE_FN static inline KEYTYPE_HD

/* Not a type of C, but gcc, clang and nvcc have it. */
__extension__ typedef unsigned __int128 uint128;

/* The widths of keys that are sorted and move, and the only list of them (key_width.h).
 * X(bytes, suffix, unsigned integer, ...) with any further arguments of the caller. */
#define KEY_WIDTH_LIST(X, ...)       \
    X(4, u32, uint32_t, __VA_ARGS__) \
    X(8, u64, uint64_t, __VA_ARGS__) \
    X(16, u128, uint128, __VA_ARGS__)

/* The widths of keys that are counted instead. Few kernels take them: those that look at keys where they lie. */
#define KEY_COUNTED_LIST(X, ...)    \
    X(1, u8, uint8_t, __VA_ARGS__)  \
    X(2, u16, uint16_t, __VA_ARGS__)

/* One key or code of any of these widths, outside an array of its kind. */
typedef uint128 key_code;

/* Such a code in a message: words of MPI_UINT64_T. */
enum { KEY_CODE_WORDS = sizeof(key_code) / sizeof(uint64_t) };

#define KEY_WIDTH_IS(bytes, suffix, type, key_bytes) || (key_bytes) == (bytes)
#define KEY_WIDTH_KNOWN(key_bytes) (0 KEY_WIDTH_LIST(KEY_WIDTH_IS, key_bytes))
#define KEY_IS_COUNTED(key_bytes) (0 KEY_COUNTED_LIST(KEY_WIDTH_IS, key_bytes))

#define X(name, short_name, bytes)                                   \
    static_assert(KEY_WIDTH_KNOWN(bytes) || KEY_IS_COUNTED(bytes),   \
                  "keys of " #name " are either sorted or counted");
HSORT_TYPE_LIST(X)
#undef X

/* The largest code that keys of `key_bytes` can have; 0 where there are no keys of such a width. */
static inline key_code key_max(int key_bytes)
{
    switch (key_bytes) {
#define X(bytes, suffix, type, unused) \
    case bytes:                        \
        return (type)-1;
        KEY_COUNTED_LIST(X, )
        KEY_WIDTH_LIST(X, )
#undef X
    }
    return 0;
}

/* How keys of one type and order become unsigned integers; made by keymap_make(), passed by value to kernels.
 * The numbers below are too short for keys of 16 bytes, which stay as they are or have all bits flipped. */
struct keymap {
    uint64_t sign;    /* the top bit of a key */
    uint64_t flip;    /* flipped in every key */
    uint64_t fold;    /* flipped too in keys whose top bit is set */
    uint64_t shift;   /* subtracted then: the number of negative NaNs */
    uint64_t top;     /* the largest code that descending order mirrors */
    int key_bytes;    /* of KEY_WIDTH_LIST or KEY_COUNTED_LIST */
    bool descending;
    bool identity;    /* codes are the keys themselves: encoding may be skipped */
};

enum key_kind { KEY_UNSIGNED, KEY_SIGNED, KEY_FLOAT };

/* The map of keys of 1, 2, 4 or 8 bytes; mantissa_bits counts for floats only. 0 bytes, of no type, make a useless but harmless map. */
static inline struct keymap keymap_of_kind(enum key_kind kind, int bytes, int mantissa_bits, hsort_order order)
{
    const uint64_t all = bytes > 0 ? UINT64_MAX >> (64 - 8 * bytes) : 0;
    struct keymap map;
    map.key_bytes = bytes;
    map.sign = all ^ (all >> 1);
    map.flip = kind == KEY_UNSIGNED ? 0 : map.sign;
    map.fold = kind == KEY_FLOAT ? all >> 1 : 0;
    map.shift = kind == KEY_FLOAT ? (UINT64_C(1) << mantissa_bits) - 1 : 0;
    map.top = all - 2 * map.shift;
    map.descending = order == HSORT_DESCENDING;
    map.identity = map.flip == 0 && !map.descending;
    return map;
}

/* The map of keys that are codes already. */
static inline struct keymap keymap_of_codes(int key_bytes)
{
    struct keymap map = keymap_of_kind(KEY_UNSIGNED, sizeof(uint64_t), 0, HSORT_ASCENDING);
    map.top = (uint64_t)key_max(key_bytes);
    map.key_bytes = key_bytes;
    return map;
}

KEYTYPE_FN bool key_is_signed(hsort_type type)
{
    return type == HSORT_I32 || type == HSORT_I64 || type == HSORT_I8 || type == HSORT_I16;
}

/* Bits that a float stores of its mantissa, which has one more; 0: the type is not a float. */
KEYTYPE_FN int key_mantissa_bits(hsort_type type)
{
    switch (type) {
    case HSORT_F32:
        return 23;
    case HSORT_F64:
        return 52;
    case HSORT_F16:
        return 10;
    case HSORT_BF16:
        return 7;
    default:
        return 0;
    }
}

static inline struct keymap keymap_make(hsort_type type, hsort_order order)
{
#define X(name, short_name, bytes) type == name ? bytes:
    const int key_bytes = HSORT_TYPE_LIST(X) 0;
#undef X
    const int mantissa_bits = key_mantissa_bits(type);
    if (key_bytes != sizeof(uint128))
        return keymap_of_kind(mantissa_bits > 0     ? KEY_FLOAT
                              : key_is_signed(type) ? KEY_SIGNED
                                                    : KEY_UNSIGNED,
                              key_bytes, mantissa_bits, order);
    struct keymap map = keymap_of_codes(key_bytes);
    map.descending = order == HSORT_DESCENDING;
    map.identity = !map.descending;
    return map;
}

KEYTYPE_FN uint128 keymap_encode_u128(struct keymap map, uint128 bits)
{
    return map.descending ? ~bits : bits;
}

KEYTYPE_FN uint128 keymap_decode_u128(struct keymap map, uint128 code)
{
    return map.descending ? ~code : code;
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

/* The same for keys of 1, 2, 4 and 8 bytes, in the lowest bytes of a word. */
KEYTYPE_FN uint64_t keymap_encode_narrow(struct keymap map, uint64_t bits)
{
    const uint64_t all = map.sign | (map.sign - 1);
    uint64_t code = ((bits ^ map.flip ^ (bits & map.sign ? map.fold : 0)) - map.shift) & all;
    return map.descending && code <= map.top ? map.top - code : code;
}

KEYTYPE_FN uint64_t keymap_decode_narrow(struct keymap map, uint64_t code)
{
    const uint64_t all = map.sign | (map.sign - 1);
    uint64_t turned = ((map.descending && code <= map.top ? map.top - code : code) + map.shift) & all;
    return turned ^ map.flip ^ (turned & map.sign ? 0 : map.fold);
}

/* One key's share of the multiset fingerprint: two independent 64-bit mixes of its bits, as a number of 64 bits (the
 * finalisers of SplitMix64, Steele, Lea, Flood 2014, and of MurmurHash3, Appleby 2011). A multiset's fingerprint is the sum
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

/* The same for 16 bytes: each word of the sum comes from another mix of both halves, so that keys that collide in
 * one word differ in the other. */
KEYTYPE_FN void fingerprint_add_u128(uint128 bits, uint64_t sum[2])
{
    const uint64_t upper = (uint64_t)(bits >> 64), lower = (uint64_t)bits;
    uint64_t of_upper[2] = {0, 0}, a[2] = {0, 0}, b[2] = {0, 0};
    fingerprint_add(upper, of_upper);
    fingerprint_add(lower ^ of_upper[0], a);
    fingerprint_add(lower ^ of_upper[1], b);
    sum[0] += a[0];
    sum[1] += b[1];
}

#endif
