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
 *     word                  u32         i32          f32
 *     0000000000000000      0           -2^31        -1.0
 *     8000000000000000      2^31        0             0.0
 *     ffffffffffffffff      2^32 - 1    2^31 - 1      1.0 - 2^-23
 *
 * All of it is integer arithmetic and exact conversions: log() and cos() of the C library differ in the last
 * bit between processors, and then two nodes would not write the same file. */
#ifndef INPUT_WORD_H
#define INPUT_WORD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "kernels/base/hypersort_types.h"

#ifdef __CUDACC__
#define INPUT_FN static inline __host__ __device__
#else
#define INPUT_FN static inline
#endif

#define INPUT_GAMMA UINT64_C(0x9e3779b97f4a7c15)
enum { INPUT_DRAWS = 64 };

INPUT_FN uint64_t input_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Word `number` of key i. */
INPUT_FN uint64_t input_word(uint64_t base, int64_t i, int number)
{
    return input_mix(base + ((uint64_t)i * INPUT_DRAWS + (uint64_t)number) * INPUT_GAMMA);
}

/* A word of two numbers: child `number` of a node, value `number` of a table that is nowhere stored. */
INPUT_FN uint64_t input_hash(uint64_t node, uint64_t number)
{
    return input_mix(node + (number + 1) * INPUT_GAMMA);
}

/* The largest number of `bits` bits, 0 to 64. */
INPUT_FN uint64_t input_ones(int bits)
{
    return bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
}

/* The word's share of 0 ... count - 1: the high half of a product, as a remainder would favour low numbers. */
INPUT_FN uint64_t input_share(uint64_t word, uint64_t count)
{
    return (uint64_t)((unsigned __int128)word * count >> 64);
}

/* The same of 0 ... most, which may be all words. */
INPUT_FN uint64_t input_up_to(uint64_t word, uint64_t most)
{
    return (uint64_t)((unsigned __int128)word * ((unsigned __int128)most + 1) >> 64);
}

/* ---- Keys ---------------------------------------------------------------------------------------------- */

INPUT_FN bool input_is_float(hsort_type type)
{
    return type == HSORT_F32 || type == HSORT_F64;
}

/* Of a key. */
INPUT_FN int input_key_bits(hsort_type type)
{
    return type == HSORT_U32 || type == HSORT_I32 || type == HSORT_F32 ? 32 : 64;
}

/* Of the largest range 0 ... 2^bits - 1 all of whose integers the type holds, as unsigned ones at least. */
INPUT_FN int input_exact_bits(hsort_type type)
{
    return type == HSORT_F32 ? 24 : type == HSORT_F64 ? 53 : input_key_bits(type);
}

INPUT_FN uint64_t input_bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

INPUT_FN uint64_t input_bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The key at the place of `word` among all words: rising, over all integers of a type, floats of [-1, 1). */
INPUT_FN uint64_t input_key_of_word(hsort_type type, uint64_t word)
{
    switch (type) {
    case HSORT_U32:
        return word >> 32;
    case HSORT_I32:
        return (word >> 32) ^ UINT32_C(0x80000000);
    case HSORT_F32: // 24 bits, so that no step rounds
        return input_bits_of_f32((float)((int32_t)(word >> 40) - (1 << 23)) * 0x1p-23f);
    case HSORT_U64:
        return word;
    case HSORT_I64:
        return word ^ UINT64_C(0x8000000000000000);
    case HSORT_F64: // 53 bits
        return input_bits_of_f64((double)((int64_t)(word >> 11) - (INT64_C(1) << 52)) * 0x1p-52);
    }
    return 0;
}

/* The key of value `number`, which the type can hold exactly. */
INPUT_FN uint64_t input_key_of_number(hsort_type type, uint64_t number)
{
    if (type == HSORT_F32)
        return input_bits_of_f32((float)number);
    if (type == HSORT_F64)
        return input_bits_of_f64((double)number);
    return number;
}

/* The key of a string of `bits` bits, 1 to 64: as an integer, of which a narrow type holds the top bits;
 * floats: at that place of [-1, 1). */
INPUT_FN uint64_t input_key_of_bits(hsort_type type, uint64_t string, int bits)
{
    if (input_is_float(type))
        return input_key_of_word(type, string << (64 - bits));
    const int most = input_key_bits(type);
    return bits > most ? string >> (bits - most) : string;
}

/* The float whose bits as f64 are these. It is 0 or normal, for f32 too, which drops the bits that it lacks. */
INPUT_FN uint64_t input_key_of_f64(hsort_type type, uint64_t bits)
{
    if (type == HSORT_F64 || bits == 0)
        return bits;
    return (((bits >> 52) - 1023 + 127) << 23) | (bits & input_ones(52)) >> 29;
}

#endif
