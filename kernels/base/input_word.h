/* What generated keys are made of: random words, and the keys that words, integers and fractions become. A
 * leaf, compiled by C and by nvcc, so that host and device draw the same keys (input_draw.h).
 *
 * A word is number n of a SplitMix64 sequence (Steele, Lea, Flood, "Fast splittable pseudorandom number
 * generators", 2014), which needs no state: mix(base + n * GAMMA). Key i owns the numbers i * DRAWS ...
 * i * DRAWS + DRAWS - 1:
 *
 *     seed -> base      mix(base + (i * DRAWS + draw) * GAMMA) -> word -> key
 *
 * Most distributions are distributions of words: their order as unsigned numbers is the order of the keys,
 * because input_key_of_word() never falls. The smallest word is the smallest key, the largest the largest:
 *
 *     word                  u32         i32          f32               u8
 *     0000000000000000      0           -2^31        -1.0              0
 *     8000000000000000      2^31        0             0.0              128
 *     ffffffffffffffff      2^32 - 1    2^31 - 1      1.0 - 2^-23      255
 *
 * So a narrow type keeps the top bits of a word. Keys of u128 are made of u64 keys (input_draw.h).
 *
 * All of it is integer arithmetic and exact conversions: log() and cos() of the C library differ in the last
 * bit between processors, so with them two nodes would not write the same file. */
#ifndef INPUT_WORD_H
#define INPUT_WORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "kernels/base/keytype.h"

#define INPUT_GAMMA UINT64_C(0x9e3779b97f4a7c15)
enum { INPUT_DRAWS = 64 };

KEYTYPE_FN uint64_t input_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Word `number` of key i. */
KEYTYPE_FN uint64_t input_word(uint64_t base, int64_t i, int number)
{
    return input_mix(base + ((uint64_t)i * INPUT_DRAWS + (uint64_t)number) * INPUT_GAMMA);
}

/* A word from two numbers: child `number` of a node, or value `number` of a table that is not stored. */
KEYTYPE_FN uint64_t input_hash(uint64_t node, uint64_t number)
{
    return input_mix(node + (number + 1) * INPUT_GAMMA);
}

/* The largest number of `bits` bits, 0 to 64. */
KEYTYPE_FN uint64_t input_ones(int bits)
{
    return bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
}

/* The word's share of 0 ... count - 1: the high half of a product, because a remainder would favour low numbers. */
KEYTYPE_FN uint64_t input_share(uint64_t word, uint64_t count)
{
    return (uint64_t)((unsigned __int128)word * count >> 64);
}

/* The same for 0 ... most, which may be all words. */
KEYTYPE_FN uint64_t input_up_to(uint64_t word, uint64_t most)
{
    return (uint64_t)((unsigned __int128)word * ((unsigned __int128)most + 1) >> 64);
}

/* ---- Keys ---------------------------------------------------------------------------------------------- */

KEYTYPE_FN bool input_is_float(hsort_type type)
{
    return key_mantissa_bits(type) > 0;
}

/* Bits of a key. */
KEYTYPE_FN int input_key_bits(hsort_type type)
{
    switch (type) {
#define X(name, short_name, bytes) \
    case name:                     \
        return 8 * bytes;
        HSORT_TYPE_LIST(X)
#undef X
    }
    return 0;
}

/* Bits of the largest range 0 ... 2^bits - 1 of which the type holds every integer, at least as an unsigned one. */
KEYTYPE_FN int input_exact_bits(hsort_type type)
{
    return input_is_float(type) ? key_mantissa_bits(type) + 1 : input_key_bits(type);
}

/* The infinity of a float. */
KEYTYPE_FN uint64_t input_infinity(hsort_type type)
{
    const int mantissa = key_mantissa_bits(type);
    return input_ones(input_key_bits(type) - 1) >> mantissa << mantissa;
}

KEYTYPE_FN uint64_t input_bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

KEYTYPE_FN uint64_t input_bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The f16 of the positive f64 with these bits. Bits of the mantissa that an f16 cannot hold are dropped, numbers below 2^-14
 * become denormals, and no result is larger than the largest f16. */
KEYTYPE_FN uint64_t input_f16_of_f64(uint64_t bits)
{
    const int exponent = (int)(bits >> 52) - 1023;
    const uint64_t mantissa = bits & input_ones(52);
    if (exponent > 15)
        return 0x7bff;
    if (exponent >= -14)
        return (uint64_t)(exponent + 15) << 10 | mantissa >> 42;
    return exponent < -24 ? 0 : (UINT64_C(1) << 52 | mantissa) >> (28 - exponent);
}

/* The float whose bits as f64 are these: positive, and 0 or normal, as an f32 too. f32 and bf16 drop the bits of the mantissa
 * that they lack. */
KEYTYPE_FN uint64_t input_key_of_f64(hsort_type type, uint64_t bits)
{
    if (type == HSORT_F64 || bits == 0)
        return bits;
    if (type == HSORT_F16)
        return input_f16_of_f64(bits);
    const uint64_t single = (((bits >> 52) - 1023 + 127) << 23) | (bits & input_ones(52)) >> 29;
    return type == HSORT_BF16 ? single >> 16 : single;
}

/* The float at the place of `word` among all words, rising from -1 to 1: with as many bits as the type has, so that nothing
 * is rounded. */
KEYTYPE_FN uint64_t input_fraction_of_word(hsort_type type, uint64_t word)
{
    const int mantissa = key_mantissa_bits(type);
    const int64_t fraction = (int64_t)(word >> (63 - mantissa)) - (INT64_C(1) << mantissa);
    const uint64_t size = (uint64_t)(fraction < 0 ? -fraction : fraction);
    const double scale = mantissa == 10 ? 0x1p-10 : 0x1p-7;
    if (type == HSORT_F64)
        return input_bits_of_f64((double)fraction * 0x1p-52);
    if (type == HSORT_F32)
        return input_bits_of_f32((float)fraction * 0x1p-23f);
    const uint64_t bits = input_key_of_f64(type, input_bits_of_f64((double)size * scale));
    return fraction < 0 ? bits | UINT64_C(1) << 15 : bits;
}

/* The key at the place of `word` among all words, rising over all integers of a type, or over the floats of [-1, 1). */
KEYTYPE_FN uint64_t input_key_of_word(hsort_type type, uint64_t word)
{
    if (input_is_float(type))
        return input_fraction_of_word(type, word);
    const int bits = input_key_bits(type) < 64 ? input_key_bits(type) : 64;
    const uint64_t key = word >> (64 - bits);
    return key_is_signed(type) ? key ^ UINT64_C(1) << (bits - 1) : key;
}

/* The key of value `number`, which the type can hold exactly. */
KEYTYPE_FN uint64_t input_key_of_number(hsort_type type, uint64_t number)
{
    if (type == HSORT_F32)
        return input_bits_of_f32((float)number);
    if (input_is_float(type))
        return input_key_of_f64(type, input_bits_of_f64((double)number));
    return number;
}

/* The same, or the key of the largest value if an integer type does not reach so far. */
KEYTYPE_FN uint64_t input_key_up_to(hsort_type type, uint64_t number)
{
    const uint64_t most =
        input_ones((input_key_bits(type) < 64 ? input_key_bits(type) : 64) - key_is_signed(type));
    return number < most ? number : most;
}

/* The key of a string of `bits` bits, 1 to 64: the string as an integer, of which a narrow type keeps the top bits,
 * or the float at that place of [-1, 1). */
KEYTYPE_FN uint64_t input_key_of_bits(hsort_type type, uint64_t string, int bits)
{
    if (input_is_float(type))
        return input_key_of_word(type, string << (64 - bits));
    const int most = input_key_bits(type);
    return bits > most ? string >> (bits - most) : string;
}

#endif
