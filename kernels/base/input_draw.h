/* Generated keys, for files, tests and measurements: the distributions, and what key i of each is. A leaf,
 * compiled by C and by nvcc: one definition for host and device.
 *
 * Key i of an input is a function of (seed, distribution, type, count, i) alone, so any number of ranks makes
 * the same keys, on CPU cores or GPUs, and any part of them can be made again. input_word.h says what random
 * words are and how they become keys. */
#ifndef INPUT_DRAW_H
#define INPUT_DRAW_H

#include "kernels/base/input_mixture.h"
#include "kernels/base/input_word.h"

/* X(name, word, ":" and its number, or "" if it takes none, the number's least and greatest value, its value if
 * it is not given, or -1 if it must be given, description) */
#define INPUT_LIST(X)                                                                                        \
    X(INPUT_UNIFORM, "uniform", "", 0, 0, 0, "every bit pattern equally likely; floats: in [-1, 1)")         \
    X(INPUT_SORTED, "sorted", "", 0, 0, 0, "ascending, evenly spread over the type's range")                 \
    X(INPUT_REVERSE, "reverse", "", 0, 0, 0, "the same, descending")                                         \
    X(INPUT_EQUAL, "equal", "", 0, 0, 0, "one value")                                                        \
    X(INPUT_ZIPF, "zipf", "[:LOG]", 1, 32, 0,                                                                \
      "value k with probability about 1/k, k = 1 .. 2^20, or a quarter\nof what a narrow type holds; LOG: of 2^LOG "   \
      "values, scattered over\nthe range")                                                                   \
    X(INPUT_GAUSS, "gauss", "", 0, 0, 0, "normal around the middle of the type's range")                     \
    X(INPUT_NARROW, "narrow", ":BITS", 1, 64, -1, "uniform over 2^BITS values")                              \
    X(INPUT_NEARLY, "nearly", ":PERMILLE", 0, 1000, -1, "sorted, but PERMILLE of 1000 keys are uniform")     \
    X(INPUT_SWAPPED, "swapped", ":PERMILLE", 0, 1000, -1, "sorted, but PERMILLE of 1000 keys change places") \
    X(INPUT_STAIRCASE, "staircase", "", 0, 0, 0, "sorted with 64 distinct values")                           \
    X(INPUT_RUNS, "runs", ":R", 1, INT32_MAX, -1, "R ascending runs, one after the other")                   \
    X(INPUT_IDS, "ids", "", 0, 0, 0, "0 .. COUNT - 1, shuffled")                                             \
    X(INPUT_ENTROPY, "entropy", ":K", 1, 64, -1,                                                             \
      "K random words, ANDed: each bit set with probability 2^-K")                                           \
    X(INPUT_LOGUNIFORM, "loguniform", "", 0, 0, 0,                                                           \
      "2^e and random bits below, any e; floats: of 2^-64 .. 2^64,\nf16: of 2^-14 .. 2^16")                 \
    X(INPUT_LOGNORMAL, "lognormal", "", 0, 0, 0,                                                             \
      "e to the power of a normal number; integers: times 2 to half\nthe bits, u128 as u64")                 \
    X(INPUT_EXPONENTIAL, "exponential", "", 0, 0, 0,                                                         \
      "of mean 1; integers: of mean 2 to half the bits, u128 as u64")                                        \
    X(INPUT_CLUSTERS, "clusters", ":C", 1, INT32_MAX, -1,                                                    \
      "Morton codes of points in 3 dimensions, in C clusters;\ntheir sizes span nine powers of e")           \
    X(INPUT_KMER, "kmer", ":K", 1, 32, -1, "K-mers of a random genome with repeats, one at each position")   \
    X(INPUT_MIXTURE, "mixture", ":N", 0, INT32_MAX, -1,                                                      \
      "random mixture N of the seed: clusters in clusters, of all widths,\nuneven weights, repeats, "        \
      "patterns of low bits")                                                                                \
    X(INPUT_NAN, "nan", "", 0, 0, 0,                                                                         \
      "floats: a mix of NaNs of both signs, infinities, zeros, denormals,\nextremes; integers: extremes")

enum input_distribution {
#define X(name, word, number, least, most, without, text) name,
    INPUT_LIST(X)
#undef X
        INPUTS
};

struct input {
    enum input_distribution distribution;
    int parameter; /* the number after ':', or its default */
    hsort_type type;
    uint64_t seed;
    int64_t count; /* keys of the whole input */
};

/* What keys are drawn from: an input, and what is derived from its seed once. Small enough for a kernel's
 * parameters. */
struct input_source {
    struct input input;           /* its type is u64 if the keys are u128 */
    bool is_wide;                 /* the keys are u128: input_wide_key() */
    uint64_t base;                /* of the keys' words */
    uint64_t values;              /* of the words of everything that several keys share */
    int half_bits[2];             /* of the low and the high half of a position, for input_shuffled() */
    struct input_mixture mixture; /* INPUT_MIXTURE */
};

static inline struct input_source input_source_make(const struct input *input)
{
    struct input_source source;
    int bits = 2;
    memset(&source, 0, sizeof source); // padding, too: sources can be compared
    source.input = *input;
    source.is_wide = input->type == HSORT_U128;
    if (source.is_wide)
        source.input.type = HSORT_U64;
    // The seed is mixed, so that seeds 1 and 2 do not draw from the same numbers one place apart.
    source.base = input_mix(input->seed + INPUT_GAMMA);
    source.values = input_mix(~source.base);
    while (bits < 62 && input->count > INT64_C(1) << bits)
        bits++;
    source.half_bits[0] = bits - bits / 2;
    source.half_bits[1] = bits / 2;
    if (input->distribution == INPUT_MIXTURE)
        source.mixture =
            input_mixture_make(source.input.type, input_hash(source.values, (uint64_t)input->parameter));
    return source;
}

/* May keys be NaNs? Sorts do not agree on their order. */
static inline bool input_has_nans(const struct input *input)
{
    return input->distribution == INPUT_NAN && input_is_float(input->type);
}

KEYTYPE_FN uint64_t input_draw(const struct input_source *source, int64_t i, int number)
{
    return input_word(source->base, i, number);
}

/* ---- Places ------------------------------------------------------------------------------------------- */

/* The word at i / count of the way through all words. */
KEYTYPE_FN uint64_t input_spread(const struct input *input, int64_t i)
{
    return (uint64_t)(((unsigned __int128)(uint64_t)i << 64) / (uint64_t)input->count);
}

/* R runs: all words are cut into `length` equal parts, and key j of a run is any word of part j. */
KEYTYPE_FN uint64_t input_runs(const struct input_source *source, int64_t i)
{
    const int64_t runs = source->input.parameter;
    const int64_t length = source->input.count / runs + (source->input.count % runs != 0);
    const uint64_t part = ~UINT64_C(0) / (uint64_t)length;
    return (uint64_t)(i % length) * part + input_share(input_draw(source, i, 0), part);
}

/* Where position `at` goes when all positions below `count` are shuffled, or, if `back`, where it came from: a
 * Feistel network over the halves of a position, each in turn XORed with a hash of the other. It shuffles up to
 * twice as many positions; a position that falls beyond the count is shuffled again until it falls below the
 * count ("cycle walking", Black and Rogaway, 2002). At least one step in two ends below it. */
KEYTYPE_FN int64_t input_shuffled(const struct input_source *source, int64_t at, bool back)
{
    enum { ROUNDS = 6 };
    const int low_bits = source->half_bits[0];
    uint64_t half[2] = {(uint64_t)at & input_ones(low_bits), (uint64_t)at >> low_bits};
    do {
        for (int round = 0; round < ROUNDS; round++) {
            const int number = back ? ROUNDS - 1 - round : round, changed = number & 1;
            const uint64_t hash = input_hash(source->values ^ (uint64_t)number, half[!changed]);
            half[changed] ^= hash & input_ones(source->half_bits[changed]);
        }
    } while ((int64_t)(half[1] << low_bits | half[0]) >= source->input.count);
    return (int64_t)(half[1] << low_bits | half[0]);
}

/* Position i, or the position of the key with which key i swaps places: the shuffle pairs the positions. */
KEYTYPE_FN int64_t input_swapped(const struct input_source *source, int64_t i)
{
    const int64_t other = input_shuffled(source, i, true) ^ 1;
    const uint64_t chance = input_hash(~source->values, (uint64_t)other >> 1) % 1000;
    if (other >= source->input.count || chance >= (uint64_t)source->input.parameter)
        return i;
    return input_shuffled(source, other, false);
}

/* ---- Distributions of numbers -------------------------------------------------------------------------- */

/* The mean of 16 uniform words (Irwin-Hall): normal except for its ends, at 6.9 standard deviations. */
KEYTYPE_FN uint64_t input_gauss(const struct input_source *source, int64_t i)
{
    enum { GAUSS_DRAWS = 16 };
    uint64_t sum = 0;
    for (int number = 0; number < GAUSS_DRAWS; number++)
        sum += input_draw(source, i, number) / GAUSS_DRAWS;
    return sum;
}

/* k of 1 ... 2^20 with a probability proportional to 1/k. All octaves 2^j ... 2^(j+1) - 1 are proposed equally
 * often, and so are all k of one octave, each with probability 2^-j in it. Keeping 2^j / k of the proposals makes
 * that 1/k. */
KEYTYPE_FN uint64_t input_zipf(const struct input_source *source, int64_t i)
{
    enum { OCTAVES = 21 };
    for (int number = 0; number < INPUT_DRAWS; number++) {
        const uint64_t word = input_draw(source, i, number);
        const uint64_t octave = ((word >> 40) * OCTAVES) >> 24;
        const uint64_t low = UINT64_C(1) << octave;
        const uint64_t k = low + (word & (low - 1));
        const uint64_t chance = (word >> 20) & 0xfffff;
        if (k <= UINT64_C(1) << 20 && chance * k < low << 20)
            return k;
    }
    return 1; // once in 10^32 keys
}

/* The same for 1 ... 2^log, log up to 32, with two words per proposal. */
KEYTYPE_FN uint64_t input_zipf_of(const struct input_source *source, int64_t i, int log)
{
    for (int number = 0; number < INPUT_DRAWS; number += 2) {
        const uint64_t word = input_draw(source, i, number);
        const uint64_t low = UINT64_C(1) << input_share(word, (uint64_t)log + 1);
        const uint64_t k = low + (input_draw(source, i, number + 1) & (low - 1));
        const uint64_t chance = word & 0xffffff;
        if (k <= UINT64_C(1) << log && chance * k < low << 24)
            return k;
    }
    return 1; // once in 10^16 keys
}

KEYTYPE_FN uint64_t input_zipf_key(const struct input_source *source, int64_t i)
{
    const hsort_type type = source->input.type;
    const int log = source->input.parameter, few = input_exact_bits(type) - 2;
    if (log == 0)
        return input_key_of_number(type, few < 20 ? input_zipf_of(source, i, few) : input_zipf(source, i));
    return input_key_of_word(type, input_hash(source->values, input_zipf_of(source, i, log)));
}

/* A key of `parameter` random low bits, or of as many as the type holds exactly. */
KEYTYPE_FN uint64_t input_narrow_key(const struct input_source *source, int64_t i)
{
    const int most = input_exact_bits(source->input.type);
    const int bits = source->input.parameter < most ? source->input.parameter : most;
    return input_key_of_number(source->input.type, input_draw(source, i, 0) >> (64 - bits));
}

/* The shuffled number of key i: as many of its low bits as the type holds exactly. */
KEYTYPE_FN uint64_t input_id_key(const struct input_source *source, int64_t i)
{
    const uint64_t id = (uint64_t)input_shuffled(source, i, false);
    return input_key_of_number(source->input.type, id & input_ones(input_exact_bits(source->input.type)));
}

KEYTYPE_FN uint64_t input_entropy(const struct input_source *source, int64_t i)
{
    uint64_t word = input_draw(source, i, 0);
    for (int number = 1; number < source->input.parameter; number++)
        word &= input_draw(source, i, number);
    return word;
}

/* Every count of digits is equally likely, and then every number with that many digits. Signed keys are positive. */
KEYTYPE_FN uint64_t input_loguniform_key(const struct input_source *source, int64_t i)
{
    const hsort_type type = source->input.type;
    const int least_exponent = type == HSORT_F16 ? -14 : -64, exponents = type == HSORT_F16 ? 30 : 128;
    const uint64_t choice = input_draw(source, i, 0), word = input_draw(source, i, 1);
    if (input_is_float(type)) {
        const uint64_t exponent =
            (uint64_t)(1023 + least_exponent) + input_share(choice, (uint64_t)exponents);
        return input_key_of_f64(type, exponent << 52 | word >> 12);
    }
    const int exponent = (int)input_share(choice, (uint64_t)(input_key_bits(type) - key_is_signed(type)));
    return UINT64_C(1) << exponent | (word & input_ones(exponent));
}

/* The key of mantissa * 2^(exponent - 52), the mantissa of 53 bits or 0; integers: times 2 to half their bits. */
KEYTYPE_FN uint64_t input_key_of_real(hsort_type type, uint64_t mantissa, int exponent)
{
    if (input_is_float(type))
        return input_key_of_f64(type, (uint64_t)(1023 + exponent) << 52 | (mantissa & input_ones(52)));
    return input_key_up_to(type, mantissa >> (52 - exponent - input_key_bits(type) / 2));
}

/* 2 to the power of a normal number. Its integer part is the exponent. Its fraction f, of 52 bits, gives the
 * mantissa 2^f by a cubic that is right to 0.02 % and ends where the next power begins. */
KEYTYPE_FN uint64_t input_lognormal_key(const struct input_source *source, int64_t i)
{
    // The standard deviation of input_gauss() is 2^64 / sqrt(192); times log2(e).
    const int64_t factor = 20471; // in 1024ths
    const int64_t normal = (int64_t)(input_gauss(source, i) ^ UINT64_C(0x8000000000000000));
    const int64_t logarithm = (normal / 65536 * factor / 1024) * 16; // of 52 bits behind the point
    const uint64_t biased = (uint64_t)(logarithm + (INT64_C(64) << 52));
    const uint64_t f = (biased & input_ones(52)) >> 20; // 32 bits
    // 0.69583 f + 0.22606 f^2 + 0.07811 f^3, in 2^-32
    const uint64_t cubic =
        f * (UINT64_C(2988567148) + (f * (UINT64_C(970920291) + (f * UINT64_C(335479857) >> 32)) >> 32)) >>
        32;
    return input_key_of_real(source->input.type, UINT64_C(1) << 52 | cubic << 20, (int)(biased >> 52) - 64);
}

/* A number of mean 1, by comparisons alone (von Neumann, "Various techniques used in connection with random
 * digits", 1951): a run of falling words u1 > u2 > ... that begins with u1 = u has an odd length with probability
 * e^-u. In the first run of odd length u is the fraction; the runs of even length before it are counted, and
 * their number is the integer part. */
KEYTYPE_FN uint64_t input_exponential_key(const struct input_source *source, int64_t i)
{
    enum { FRACTION_BITS = 47 }; // of 53, because there are less than 64 runs
    const hsort_type type = source->input.type;
    uint64_t whole = 0, first = 0, word, next;
    for (int number = 0, length = 0; number < INPUT_DRAWS && length % 2 == 0; whole += length % 2 == 0) {
        first = word = input_draw(source, i, number++);
        for (length = 1; number < INPUT_DRAWS && (next = input_draw(source, i, number++)) < word; length++)
            word = next;
    }
    const uint64_t fixed = whole << FRACTION_BITS | first >> (64 - FRACTION_BITS);
    if (input_is_float(type))
        return input_key_of_f64(type, input_bits_of_f64((double)fixed * 0x1p-47));
    return input_key_up_to(type, fixed >> (FRACTION_BITS - input_key_bits(type) / 2));
}

/* ---- Clusters and genomes ------------------------------------------------------------------------------ */

/* The low 21 bits of a coordinate, with two zeros between any two of them. */
KEYTYPE_FN uint64_t input_every_third(uint64_t bits)
{
    bits &= input_ones(21);
    bits = (bits | bits << 32) & UINT64_C(0x001f00000000ffff);
    bits = (bits | bits << 16) & UINT64_C(0x001f0000ff0000ff);
    bits = (bits | bits << 8) & UINT64_C(0x100f00f00f00f00f);
    bits = (bits | bits << 4) & UINT64_C(0x10c30c30c30c30c3);
    return (bits | bits << 2) & UINT64_C(0x1249249249249249);
}

/* The Morton code, of 63 bits and a 0, of a point in one of C clusters. A cluster is a cube that is dense in the
 * middle (Irwin-Hall of 4), in a space that wraps round. The logarithm of its size is uniform over 13 powers
 * of 2, which are nine of e, up to the whole space. */
KEYTYPE_FN uint64_t input_clusters(const struct input_source *source, int64_t i)
{
    enum { AXIS_BITS = 21, SIZE_LOG_LEAST = 7, SIZE_LOGS = 13 };
    const uint64_t number = input_share(input_draw(source, i, 0), (uint64_t)source->input.parameter);
    const uint64_t node = input_hash(source->values, number);
    const uint64_t places = input_hash(node, 0);
    const uint64_t log = input_share(input_hash(node, 1), SIZE_LOGS << 16); // 16 bits behind the point
    const uint64_t size = ((UINT64_C(1) << 16) + (log & 0xffff)) << ((log >> 16) + SIZE_LOG_LEAST) >> 16;
    uint64_t code = 0;
    for (int axis = 0; axis < 3; axis++) {
        const uint64_t word = input_draw(source, i, 1 + axis);
        const uint64_t sum =
            (word & 0xffff) + (word >> 16 & 0xffff) + (word >> 32 & 0xffff) + (word >> 48); // of 18 bits
        const uint64_t at = (places >> axis * AXIS_BITS) + (sum * size >> 17) - size;
        code |= input_every_third(at) << axis;
    }
    return code << 1;
}

/* 32 bases of the genome, from base 32 * block on, as 2 bits each. The genome consists of pieces of 512 bases.
 * Of 16 pieces, eight are found nowhere else; seven are copies of one of 1024 families, some with 500 times as
 * many copies as others, and with one base in 16 mutated; and one repeats a unit of 1, 2, 4 or 8 bases. */
KEYTYPE_FN uint64_t input_genome(const struct input_source *source, uint64_t block)
{
    enum { PIECE_BLOCKS = 16, FAMILIES_LOG = 10 };
    const uint64_t piece = input_hash(source->values, block / PIECE_BLOCKS);
    const uint64_t unique = input_word(source->base, (int64_t)block, 1);
    const uint64_t kind = piece % 16;
    if (kind < 8)
        return unique;
    if (kind == 8) {
        const int unit_bits = 2 << (piece >> 8 & 3);
        const uint64_t every_unit = ~UINT64_C(0) / input_ones(unit_bits);
        return (piece >> 16 & input_ones(unit_bits)) * every_unit;
    }
    const uint64_t octave = input_share(piece, FAMILIES_LOG); // family k about in proportion to 1/k
    const uint64_t family = input_ones((int)octave) + (piece >> 8 & input_ones((int)octave));
    const uint64_t common = input_hash(~source->values, family * PIECE_BLOCKS + block % PIECE_BLOCKS);
    uint64_t mutated = unique;
    for (int number = 2; number < 6; number++) // each bit with probability 2^-5
        mutated &= input_word(source->base, (int64_t)block, number);
    return common ^ mutated;
}

/* The K-mer at position i. */
KEYTYPE_FN uint64_t input_kmer_key(const struct input_source *source, int64_t i)
{
    const uint64_t block = (uint64_t)i / 32;
    const int skipped = 2 * (int)(i % 32), bits = 2 * source->input.parameter;
    uint64_t bases = input_genome(source, block) << skipped;
    if (skipped + bits > 64)
        bases |= input_genome(source, block + 1) >> (64 - skipped);
    return input_key_of_bits(source->input.type, bases >> (64 - bits), bits);
}

/* ---- Special values ------------------------------------------------------------------------------------ */

/* Half of the keys are uniform, the others special values of floats, with both signs. */
KEYTYPE_FN uint64_t input_odd_float(const struct input_source *source, int64_t i)
{
    const uint64_t one = 1;
    const uint64_t sign = one << (input_key_bits(source->input.type) - 1);
    const uint64_t infinity = input_infinity(source->input.type);
    const uint64_t smallest_normal = one << key_mantissa_bits(source->input.type);
    const uint64_t choice = input_draw(source, i, 0);
    const uint64_t word = input_draw(source, i, 1);
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
        return input_key_of_word(source->input.type, word);
    }
}

/* Half of the keys are uniform, the others lie at the ends and in the middle of the type's range. */
KEYTYPE_FN uint64_t input_extreme_integer(const struct input_source *source, int64_t i)
{
    const uint64_t all = input_ones(input_key_bits(source->input.type));
    const uint64_t top = all ^ (all >> 1);
    const uint64_t extremes[8] = {0, 1, top - 1, top, top + 1, all - 1, all, all / 3};
    const uint64_t choice = input_draw(source, i, 0);
    return choice % 16 < 8 ? extremes[choice % 16]
                           : input_key_of_word(source->input.type, input_draw(source, i, 1));
}

/* ---- Key i --------------------------------------------------------------------------------------------- */

/* The word of key i, for the distributions of words. */
KEYTYPE_FN uint64_t input_word_of(const struct input_source *source, int64_t i)
{
    const struct input *input = &source->input;
    switch (input->distribution) {
    case INPUT_SORTED:
        return input_spread(input, i);
    case INPUT_REVERSE:
        return input_spread(input, input->count - 1 - i);
    case INPUT_EQUAL:
        return input_draw(source, 0, 0);
    case INPUT_GAUSS:
        return input_gauss(source, i);
    case INPUT_NEARLY:
        return input_draw(source, i, 1) % 1000 < (uint64_t)input->parameter ? input_draw(source, i, 0)
                                                                            : input_spread(input, i);
    case INPUT_SWAPPED:
        return input_spread(input, input_swapped(source, i));
    case INPUT_STAIRCASE: // the top 6 bits of the word
        return input_spread(input, i) >> 58 << 58;
    case INPUT_RUNS:
        return input_runs(source, i);
    case INPUT_ENTROPY:
        return input_entropy(source, i);
    case INPUT_CLUSTERS:
        return input_clusters(source, i);
    default:
        return input_draw(source, i, 0);
    }
}

/* Key i in the low bits of the result, 0 <= i < count; for u128, the u64 key that it is made of. */
KEYTYPE_FN uint64_t input_key(const struct input_source *source, int64_t i)
{
    const hsort_type type = source->input.type;
    switch (source->input.distribution) {
    case INPUT_ZIPF:
        return input_zipf_key(source, i);
    case INPUT_NARROW:
        return input_narrow_key(source, i);
    case INPUT_IDS:
        return input_id_key(source, i);
    case INPUT_LOGUNIFORM:
        return input_loguniform_key(source, i);
    case INPUT_LOGNORMAL:
        return input_lognormal_key(source, i);
    case INPUT_EXPONENTIAL:
        return input_exponential_key(source, i);
    case INPUT_KMER:
        return input_kmer_key(source, i);
    case INPUT_MIXTURE:
        return input_mixture_key(&source->mixture, type, source->base, i,
                                 source->mixture.by_position ? input_spread(&source->input, i) : 0);
    case INPUT_NAN:
        return input_is_float(type) ? input_odd_float(source, i) : input_extreme_integer(source, i);
    default:
        return input_key_of_word(type, input_word_of(source, i));
    }
}

/* Key i as a u128, made of the u64 key:
 *
 *     a number                              the same number
 *     words, which are spread over all      the upper half; the lower one is a hash of it, so that equal keys stay equal
 *     UNIFORM, LOGUNIFORM                   128 random bits, or as many of them as the key is to have
 *     NAN                                   extremes in both halves, so that upper halves repeat over unlike lower ones
 *     MIXTURE                               in one half of all mixtures the upper half, in the others the lower half
 *                                           below a constant */
KEYTYPE_FN unsigned __int128 input_wide_key(const struct input_source *source, int64_t i)
{
    const uint64_t key = input_key(source, i), word = input_draw(source, i, 1);
    const unsigned __int128 raised = (unsigned __int128)key << 64;
    switch (source->input.distribution) {
    case INPUT_ZIPF:
        return source->input.parameter == 0 ? key : raised | input_mix(key);
    case INPUT_NARROW:
    case INPUT_IDS:
    case INPUT_LOGNORMAL:
    case INPUT_EXPONENTIAL:
    case INPUT_KMER:
        return key;
    case INPUT_LOGUNIFORM: {
        const int exponent = (int)input_share(input_draw(source, i, 0), 128);
        const unsigned __int128 bits = (unsigned __int128)word << 64 | input_draw(source, i, 2);
        return (bits | (unsigned __int128)1 << 127) >> (127 - exponent);
    }
    case INPUT_UNIFORM:
        return raised | word;
    case INPUT_NAN:
        return raised | input_extreme_integer(source, ~i);
    case INPUT_MIXTURE:
        return source->mixture.root & 1 ? raised | input_mix(key)
                                        : (unsigned __int128)input_hash(source->values, 0) << 64 | key;
    default:
        return raised | input_mix(key);
    }
}

#endif
