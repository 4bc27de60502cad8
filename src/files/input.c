/* Every key is made from 64-bit words of a SplitMix64 sequence (Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", 2014), which needs no state: number n of it is mix(base + n * GAMMA). Key
 * i owns the numbers i * DRAWS ... i * DRAWS + DRAWS - 1:
 *
 *     seed -> base      mix(base + (i * DRAWS + draw) * GAMMA) -> word -> key
 *
 * Most distributions are distributions of words: their order as unsigned numbers is the order of the keys,
 * because key_of_word() never falls. The smallest word is the smallest key, the largest the largest:
 *
 *     word                  u32         i32          f32
 *     0000000000000000      0           -2^31        -1.0
 *     8000000000000000      2^31        0             0.0
 *     ffffffffffffffff      2^32 - 1    2^31 - 1      1.0 - 2^-23
 *
 * All of it is integer arithmetic and exact conversions: log() and cos() of the C library differ in the last
 * bit between processors, and then two nodes would not write the same file. */
#include "src/files/input.h"
#include "kernels/base/status.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GAMMA UINT64_C(0x9e3779b97f4a7c15)
enum { DRAWS = 64, GAUSS_DRAWS = 16, ZIPF_OCTAVES = 21 };

/* What a distribution draws from: the input, with its seed mixed. */
struct word_source {
    struct input input;
    uint64_t base;
};

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t draw(const struct word_source *source, int64_t i, int number)
{
    return mix(source->base + ((uint64_t)i * DRAWS + (uint64_t)number) * GAMMA);
}

/* ---- From words and small integers to keys ------------------------------------------------------------- */

static uint64_t bits_of_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t bits_of_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The key at the place of `word` among all words: rising, over all integers of a type, floats of [-1, 1). */
static uint64_t key_of_word(hsort_type type, uint64_t word)
{
    switch (type) {
    case HSORT_U32:
        return word >> 32;
    case HSORT_I32:
        return (word >> 32) ^ UINT32_C(0x80000000);
    case HSORT_F32: // 24 bits, so that no step rounds
        return bits_of_f32((float)((int32_t)(word >> 40) - (1 << 23)) * 0x1p-23f);
    case HSORT_U64:
        return word;
    case HSORT_I64:
        return word ^ UINT64_C(0x8000000000000000);
    case HSORT_F64: // 53 bits
        return bits_of_f64((double)((int64_t)(word >> 11) - (INT64_C(1) << 52)) * 0x1p-52);
    }
    return 0;
}

/* The key of value `number`, which the type can hold exactly. */
static uint64_t key_of_number(hsort_type type, uint64_t number)
{
    if (type == HSORT_F32)
        return bits_of_f32((float)number);
    if (type == HSORT_F64)
        return bits_of_f64((double)number);
    return number;
}

/* ---- Distributions ------------------------------------------------------------------------------------- */

/* The word at i / count of the way through all words. */
static uint64_t spread(const struct input *input, int64_t i)
{
    return (uint64_t)(((unsigned __int128)(uint64_t)i << 64) / (uint64_t)input->count);
}

/* The mean of 16 uniform words (Irwin-Hall): normal but for its ends, at 6.9 standard deviations. */
static uint64_t gauss(const struct word_source *source, int64_t i)
{
    uint64_t sum = 0;
    for (int number = 0; number < GAUSS_DRAWS; number++)
        sum += draw(source, i, number) / GAUSS_DRAWS;
    return sum;
}

/* k of 1 ... 2^20 with probability in proportion to 1/k. Every octave 2^j ... 2^(j+1) - 1 is proposed as
 * often as any other and k as any other of its octave, which is 2^-j; keeping 2^j / k of the proposals makes
 * it 1/k. */
static uint64_t zipf(const struct word_source *source, int64_t i)
{
    for (int number = 0; number < DRAWS; number++) {
        uint64_t word = draw(source, i, number);
        uint64_t octave = ((word >> 40) * ZIPF_OCTAVES) >> 24;
        uint64_t low = UINT64_C(1) << octave;
        uint64_t k = low + (word & (low - 1));
        uint64_t chance = (word >> 20) & 0xfffff;
        if (k <= UINT64_C(1) << 20 && chance * k < low << 20)
            return k;
    }
    return 1; // once in 10^32 keys
}

/* A key of the low `parameter` bits, as many of them as the type holds exactly. */
static uint64_t narrow_key(const struct word_source *source, int64_t i)
{
    const hsort_type type = source->input.type;
    int most = type == HSORT_F32 ? 24 : type == HSORT_F64 ? 53 : 8 * (int)hsort_type_bytes(type);
    int bits = source->input.parameter < most ? source->input.parameter : most;
    return key_of_number(type, draw(source, i, 0) >> (64 - bits));
}

/* Half of the keys are uniform, the others special values of floats, with both signs. */
static uint64_t odd_float(const struct word_source *source, int64_t i)
{
    const bool wide = source->input.type == HSORT_F64;
    const uint64_t one = 1;
    const uint64_t sign = one << (wide ? 63 : 31);
    const uint64_t infinity = wide ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7f800000);
    const uint64_t smallest_normal = one << (wide ? 52 : 23);
    const uint64_t choice = draw(source, i, 0);
    const uint64_t word = draw(source, i, 1);
    const uint64_t payload = word % (smallest_normal - 1) + 1;
    const uint64_t negative = choice >> 63 ? sign : 0;
    switch (choice % 16) {
    case 0:
    case 1:
        return negative | infinity | payload;
    case 2:
        return negative | infinity;
    case 3:
        return negative; // zero
    case 4:
        return negative | payload; // denormal
    case 5:
        return negative | one; // the smallest denormal
    case 6:
        return negative | smallest_normal;
    case 7:
        return negative | (infinity - 1); // the largest number
    default:
        return key_of_word(source->input.type, word);
    }
}

/* Half of the keys are uniform, the others lie at the ends and in the middle of the type's range. */
static uint64_t extreme_integer(const struct word_source *source, int64_t i)
{
    const uint64_t all = UINT64_MAX >> (64 - 8 * hsort_type_bytes(source->input.type));
    const uint64_t top = all ^ (all >> 1);
    const uint64_t extremes[8] = {0, 1, top - 1, top, top + 1, all - 1, all, all / 3};
    const uint64_t choice = draw(source, i, 0);
    return choice % 16 < 8 ? extremes[choice % 16] : key_of_word(source->input.type, draw(source, i, 1));
}

/* Key i in the low bits of the result. */
static uint64_t make_key(const struct word_source *source, int64_t i)
{
    const struct input *input = &source->input;
    switch (input->distribution) {
    case INPUT_UNIFORM:
        return key_of_word(input->type, draw(source, i, 0));
    case INPUT_SORTED:
        return key_of_word(input->type, spread(input, i));
    case INPUT_REVERSE:
        return key_of_word(input->type, spread(input, input->count - 1 - i));
    case INPUT_EQUAL:
        return key_of_word(input->type, draw(source, 0, 0));
    case INPUT_ZIPF:
        return key_of_number(input->type, zipf(source, i));
    case INPUT_GAUSS:
        return key_of_word(input->type, gauss(source, i));
    case INPUT_NARROW:
        return narrow_key(source, i);
    case INPUT_NEARLY:
        return key_of_word(input->type, draw(source, i, 1) % 1000 < (uint64_t)input->parameter
                                            ? draw(source, i, 0)
                                            : spread(input, i));
    case INPUT_STAIRCASE: // the top 6 bits of the word
        return key_of_word(input->type, spread(input, i) >> 58 << 58);
    case INPUT_NAN:
        return input->type == HSORT_F32 || input->type == HSORT_F64 ? odd_float(source, i)
                                                                    : extreme_integer(source, i);
    case INPUTS:
        break;
    }
    return 0;
}

void input_fill(const struct input *input, int64_t first, int64_t count, void *keys)
{
    // The seed is mixed, so that seeds 1 and 2 do not draw from the same numbers one place apart.
    const struct word_source source = {*input, mix(input->seed + GAMMA)};
    if (hsort_type_bytes(input->type) == 4) {
        uint32_t *narrow_keys = keys;
#pragma omp parallel for
        for (int64_t i = 0; i < count; i++)
            narrow_keys[i] = (uint32_t)make_key(&source, first + i);
    } else {
        uint64_t *wide_keys = keys;
#pragma omp parallel for
        for (int64_t i = 0; i < count; i++)
            wide_keys[i] = make_key(&source, first + i);
    }
}

/* ---- Names --------------------------------------------------------------------------------------------- */

static const struct {
    const char *word, *number; /* "": none */
} distributions[INPUTS] = {
#define X(name, word, number, text) {word, number},
    INPUT_LIST(X)
#undef X
};

static hsort_status fail_unknown(const char *text)
{
    char words[160] = "";
    size_t length = 0;
    for (int d = 0; d < INPUTS && length < sizeof words; d++)
        length += (size_t)snprintf(words + length, sizeof words - length, "%s%s%s%s", d > 0 ? ", " : "",
                                   distributions[d].word, distributions[d].number[0] ? ":" : "",
                                   distributions[d].number);
    return status_fail(HSORT_ARGUMENT, "'%s' is no distribution; there are %s", text, words);
}

hsort_status input_parse(const char *text, struct input *input)
{
    const size_t length = strcspn(text, ":");
    const char *number = text[length] == ':' ? text + length + 1 : NULL;
    int d = 0;
    while (d < INPUTS &&
           (strlen(distributions[d].word) != length || memcmp(distributions[d].word, text, length) != 0))
        d++;
    if (d == INPUTS || (number != NULL) != (distributions[d].number[0] != '\0'))
        return fail_unknown(text);

    int parameter = 0;
    if (number) {
        const int least = d == INPUT_NARROW ? 1 : 0, most = d == INPUT_NARROW ? 64 : 1000;
        char *end;
        long value = strtol(number, &end, 10);
        if (number[0] < '0' || number[0] > '9' || *end != '\0' || value < least || value > most)
            return status_fail(HSORT_ARGUMENT, "'%s': the number of '%s' is from %d to %d", text,
                               distributions[d].word, least, most);
        parameter = (int)value;
    }
    input->distribution = (enum input_distribution)d;
    input->parameter = parameter;
    return HSORT_OK;
}
