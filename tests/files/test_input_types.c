/* Generated input of types that are narrower or wider than what distributions are made of: keys of the same seed as u64 and
 * f64 say what they must be. */
#include "tests/files/input_codes.h"
#include "tests/support/order.h"

/* Those of words: the keys of u64 are the words themselves. */
static const char *const of_words[] = {"uniform", "sorted",    "reverse",   "equal",
                                       "gauss",   "nearly:20", "staircase", "swapped:10",
                                       "runs:7",  "entropy:2", "zipf:20",   "clusters:1000"};
/* Those of numbers, which have the same keys as u64 where these fit. */
static const char *const of_numbers[] = {"narrow:5",  "ids",         "loguniform",
                                         "lognormal", "exponential", "kmer:12"};
enum {
    WORD_TEXTS = sizeof of_words / sizeof *of_words,
    NUMBER_TEXTS = sizeof of_numbers / sizeof *of_numbers
};

/* With a digest of the first keys of all new types: what is generated stays the same. */
static const struct {
    const char *text;
    uint64_t digest;
} digests[] = {
    {"uniform", UINT64_C(0x115e0c55aaec45aa)},       {"sorted", UINT64_C(0x94d8bf100478f4c0)},
    {"reverse", UINT64_C(0x7b68a4ac9bbf171c)},       {"equal", UINT64_C(0x7431e76f3b1452f5)},
    {"zipf", UINT64_C(0x48ae3771bae02853)},          {"zipf:20", UINT64_C(0x9cd83f0f5733c20b)},
    {"gauss", UINT64_C(0xf7df3239b0ea0db1)},         {"narrow:1", UINT64_C(0x56b90d92b2392ee5)},
    {"narrow:16", UINT64_C(0xce4e2aea6c4f1ec3)},     {"nearly:20", UINT64_C(0x40a9f7e9c9440426)},
    {"swapped:10", UINT64_C(0xa1635415c6654be0)},    {"staircase", UINT64_C(0xda4aec326fb715c7)},
    {"runs:7", UINT64_C(0x4fb67a18b427bf12)},        {"ids", UINT64_C(0x348812ea29469fd8)},
    {"entropy:2", UINT64_C(0x6b5ad4f785781407)},     {"loguniform", UINT64_C(0xb6a80ff373b40a67)},
    {"lognormal", UINT64_C(0xb6b8bf3a0af1c40d)},     {"exponential", UINT64_C(0x33999ab368e68576)},
    {"clusters:1000", UINT64_C(0xce830e346ed3c6f3)}, {"kmer:31", UINT64_C(0x78d9ab68591fb8d3)},
    {"mixture:0", UINT64_C(0xa724d5cb6cb18732)},     {"mixture:1", UINT64_C(0x50f82aac84b19aff)},
    {"mixture:2", UINT64_C(0x6dc827ac3bd8c410)},     {"nan", UINT64_C(0x71c16e86d147ae88)},
};
enum { DIGESTS = sizeof digests / sizeof *digests };

static uint64_t low_bits(int bits)
{
    return UINT64_MAX >> (64 - bits);
}

static int bits_of(hsort_type type)
{
    return 8 * (int)hsort_type_bytes(type);
}

/* Mantissa bits of the floats of 2 bytes. */
static int mantissa_of(hsort_type type)
{
    return type == HSORT_F16 ? 10 : 7;
}

static bool is_small_float(hsort_type type)
{
    return type == HSORT_F16 || type == HSORT_BF16;
}

static double value_of_key(hsort_type type, uint64_t bits)
{
    double wide;
    memcpy(&wide, &bits, sizeof wide);
    return type == HSORT_F64 ? wide : order_float_value(16, mantissa_of(type), bits);
}

/* keys [KEYS] of an input, widened. */
static void draw_keys(const char *text, hsort_type type, uint64_t seed, key_code *keys)
{
    static uint128 drawn[KEYS];
    const struct input input = make_input(text, type, seed, KEYS);
    input_fill(&input, 0, KEYS, drawn);
    for (int i = 0; i < KEYS; i++)
        keys[i] = key_load((int)hsort_type_bytes(type), drawn, i);
}

static void test_digests(void)
{
    static key_code keys[KEYS];
    for (int t = 0; t < DIGESTS; t++) {
        uint64_t digest[2] = {0, 0};
        for (int type = TYPES; type < ALL_TYPES; type++) {
            draw_keys(digests[t].text, types[type], 1, keys);
            for (int i = 0; i < KEYS; i++)
                fingerprint_add_u128(keys[i] ^ input_mix((uint64_t)i), digest);
        }
        CHECK(digest[0] == digests[t].digest, "{\"%s\", UINT64_C(0x%016" PRIx64 ")}, is drawn",
              digests[t].text, digest[0]);
    }
}

/* The top bits of a word: of an integer as they are, with the sign turned; of a float its place in [-1, 1). */
static void test_narrow_words(hsort_type type, uint64_t seed)
{
    static key_code words[KEYS], keys[KEYS];
    const int bits = bits_of(type), mantissa = mantissa_of(type);
    const bool is_signed = type == HSORT_I8 || type == HSORT_I16;
    for (int t = 0; t < WORD_TEXTS; t++) {
        draw_keys(of_words[t], HSORT_U64, seed, words);
        draw_keys(of_words[t], type, seed, keys);
        for (int i = 0; i < KEYS; i++) {
            const uint64_t word = (uint64_t)words[i], key = (uint64_t)keys[i];
            const double place = ldexp((double)(word >> (63 - mantissa)), -mantissa) - 1;
            CHECK(is_small_float(type)
                      ? value_of_key(type, key) == place
                      : key == (word >> (64 - bits) ^ (is_signed ? UINT64_C(1) << (bits - 1) : 0)),
                  "%s %s: key %d is %llx, the word %llx", of_words[t], hsort_type_name(type), i,
                  (unsigned long long)key, (unsigned long long)word);
        }
    }
}

/* A float, cut to what the type holds of it. */
static bool is_cut(hsort_type type, double found, double exact)
{
    const double step = ldexp(1, -mantissa_of(type)), least = type == HSORT_F16 ? 0x1p-24 : 0;
    const double slack = found * step > least ? found * step : least;
    return found <= exact && exact - found <= slack;
}

/* Real numbers: times 2 to half the bits, as far as integers reach; floats as they are. */
static void test_narrow_reals(hsort_type type, uint64_t seed)
{
    static key_code exact[KEYS], keys[KEYS];
    static const char *const reals[] = {"lognormal", "exponential"};
    const int bits = bits_of(type);
    const double most = ldexp(1, bits - (type == HSORT_I8 || type == HSORT_I16)) - 1;
    for (int t = 0; t < 2; t++) {
        draw_keys(reals[t], HSORT_F64, seed, exact);
        draw_keys(reals[t], type, seed, keys);
        for (int i = 0; i < KEYS; i++) {
            const double value = value_of_key(HSORT_F64, (uint64_t)exact[i]),
                         scaled = floor(ldexp(value, bits / 2));
            CHECK(is_small_float(type) ? is_cut(type, value_of_key(type, (uint64_t)keys[i]), value)
                                       : (double)keys[i] == (scaled < most ? scaled : most),
                  "%s %s: key %d is %llx of %g", reals[t], hsort_type_name(type), i,
                  (unsigned long long)keys[i], value);
        }
    }
}

/* Numbers: each type holds those that it is asked for, the least of them first. */
static void test_narrow_numbers(hsort_type type, uint64_t seed)
{
    static key_code keys[KEYS];
    static uint64_t codes[KEYS];
    const int exact = is_small_float(type) ? mantissa_of(type) + 1 : bits_of(type);
    for (int bits = 1; bits <= 16; bits *= 2) {
        struct input input = make_input("narrow:1", type, seed, KEYS);
        input.parameter = bits;
        make_codes(&input, codes);
        const int distinct = count_distinct(codes, KEYS), wanted = 1 << (bits < exact ? bits : exact);
        CHECK(wanted <= 256 ? distinct == wanted : distinct > wanted / 8, "%s: narrow:%d has %d values",
              hsort_type_name(type), bits, distinct);
    }
    draw_keys("zipf", type, seed, keys);
    const double most = ldexp(1, exact - 2), share = 1 / (log(most) + 0.5772);
    int ones = 0;
    for (int i = 0; i < KEYS; i++) {
        const double value =
            is_small_float(type) ? value_of_key(type, (uint64_t)keys[i]) : (double)(uint64_t)keys[i];
        CHECK(value >= 1 && value <= most && value == floor(value), "%s: zipf has %g", hsort_type_name(type),
              value);
        ones += value == 1;
    }
    CHECK(fabs(ones - KEYS * share) < KEYS * share / 5, "%s: zipf has %d ones", hsort_type_name(type), ones);
}

/* Any exponent is about as likely as any other. */
static void test_loguniform(hsort_type type, uint64_t seed)
{
    static key_code keys[KEYS];
    int found[160] = {0};
    const bool is_signed = type == HSORT_I8 || type == HSORT_I16;
    const int exponents = type == HSORT_F16 ? 30 : type == HSORT_BF16 ? 128 : bits_of(type) - is_signed;
    const int least = type == HSORT_F16 ? -14 : type == HSORT_BF16 ? -64 : 0;
    draw_keys("loguniform", type, seed, keys);
    for (int i = 0; i < KEYS; i++) {
        int exponent = 0;
        if (is_small_float(type))
            frexp(value_of_key(type, (uint64_t)keys[i]), &exponent);
        else
            while (exponent < 128 && keys[i] >> exponent > 0)
                exponent++;
        const int place = exponent - 1 - least;
        CHECK(place >= 0 && place < exponents, "%s: loguniform has an exponent of %d", hsort_type_name(type),
              place);
        found[place >= 0 && place < exponents ? place : 159]++;
    }
    for (int e = 0; e < exponents; e++)
        CHECK(fabs(found[e] - (double)KEYS / exponents) < 8 * sqrt((double)KEYS / exponents),
              "%s: exponent %d, %d times", hsort_type_name(type), e, found[e]);
}

/* Special values: of floats NaNs, infinities, zeros, denormals of both signs; of integers the ends and the middle. */
static void test_specials(hsort_type type, uint64_t seed)
{
    static key_code keys[KEYS];
    int nans[2] = {0}, infinities[2] = {0}, zeros[2] = {0}, denormals[2] = {0}, ends[4] = {0};
    const uint64_t all = low_bits(bits_of(type) < 64 ? bits_of(type) : 64), top = all ^ (all >> 1);
    draw_keys("nan", type, seed, keys);
    for (int i = 0; i < KEYS; i++) {
        const uint64_t key = (uint64_t)keys[i];
        const uint64_t integers[4] = {0, all, top, top - 1};
        for (int e = 0; e < 4; e++)
            ends[e] += key == integers[e];
        if (!is_small_float(type))
            continue;
        const double value = value_of_key(type, key);
        const int minus = key >> 15 & 1;
        nans[minus] += isnan(value) != 0;
        infinities[minus] += isinf(value) != 0;
        zeros[minus] += value == 0;
        denormals[minus] += value != 0 && (key & 0x7fff) < UINT64_C(1) << mantissa_of(type);
    }
    for (int minus = 0; minus < 2 && is_small_float(type); minus++)
        CHECK(nans[minus] > KEYS / 40 && infinities[minus] > KEYS / 100 && zeros[minus] > KEYS / 100 &&
                  denormals[minus] > KEYS / 100,
              "%s: %d NaNs, %d infinities, %d zeros, %d denormals of sign %d", hsort_type_name(type),
              nans[minus], infinities[minus], zeros[minus], denormals[minus], minus);
    for (int e = 0; e < 4 && !is_small_float(type); e++)
        CHECK(ends[e] > KEYS / 100, "%s: extreme %d, %d times", hsort_type_name(type), e, ends[e]);
}

/* u128: words above a hash of them, numbers as they are. */
static void test_wide(uint64_t seed)
{
    static key_code narrow[KEYS], wide[KEYS];
    static uint64_t lower[KEYS];
    for (int t = 0; t < WORD_TEXTS; t++) {
        draw_keys(of_words[t], HSORT_U64, seed, narrow);
        draw_keys(of_words[t], HSORT_U128, seed, wide);
        const bool is_uniform = t == 0;
        for (int i = 0; i < KEYS; i++) {
            CHECK(wide[i] >> 64 == narrow[i], "%s: the upper half of key %d", of_words[t], i);
            CHECK(is_uniform || i == 0 || (narrow[i] == narrow[i - 1]) == (wide[i] == wide[i - 1]),
                  "%s: key %d is equal in one half", of_words[t], i);
            lower[i] = (uint64_t)wide[i];
        }
        CHECK(!is_uniform || count_distinct(lower, KEYS) == KEYS, "uniform: lower halves repeat");
    }
    for (int t = 0; t < NUMBER_TEXTS; t++) {
        draw_keys(of_numbers[t], HSORT_U64, seed, narrow);
        draw_keys(of_numbers[t], HSORT_U128, seed, wide);
        for (int i = 0; i < KEYS && strcmp(of_numbers[t], "loguniform") != 0; i++)
            CHECK(wide[i] == narrow[i], "%s: key %d of u128 is another number", of_numbers[t], i);
    }
    int ties = 0;
    draw_keys("nan", HSORT_U128, seed, wide);
    for (int i = 1; i < KEYS; i++)
        ties += wide[i] >> 64 == wide[i - 1] >> 64 && wide[i] != wide[i - 1];
    CHECK(ties > KEYS / 100, "nan: %d upper halves repeat over unlike lower ones", ties);
}

/* Half of the mixtures are in the upper half, half in the lower one. */
static void test_wide_mixtures(uint64_t seed)
{
    static key_code narrow[KEYS], wide[KEYS];
    char text[32];
    int upper = 0, below = 0;
    for (int m = 0; m < 40; m++) {
        snprintf(text, sizeof text, "mixture:%d", m);
        draw_keys(text, HSORT_U64, seed, narrow);
        draw_keys(text, HSORT_U128, seed, wide);
        const bool is_upper = wide[0] >> 64 == narrow[0] && wide[1] >> 64 == narrow[1];
        upper += is_upper;
        below += !is_upper;
        for (int i = 0; i < KEYS; i++)
            CHECK(is_upper ? wide[i] >> 64 == narrow[i]
                           : (uint64_t)wide[i] == (uint64_t)narrow[i] && wide[i] >> 64 == wide[0] >> 64,
                  "%s: key %d of u128", text, i);
    }
    CHECK(upper >= 4 && below >= 4, "%d mixtures are in the upper half, %d below", upper, below);
}

/* Floats of mixtures are finite. */
static void test_small_mixtures(hsort_type type, uint64_t seed)
{
    static key_code keys[KEYS];
    char text[32];
    for (int m = 0; m < 20; m++) {
        snprintf(text, sizeof text, "mixture:%d", m);
        draw_keys(text, type, seed, keys);
        for (int i = 0; i < KEYS && is_small_float(type); i++)
            CHECK(isfinite(value_of_key(type, (uint64_t)keys[i])), "%s %s: key %d", text,
                  hsort_type_name(type), i);
    }
}

int main(void)
{
    const uint64_t seed = check_seed();
    printf("seed %" PRIu64 "\n", seed);
    test_digests();
    for (int t = TYPES; t < ALL_TYPES; t++) {
        test_specials(types[t], seed);
        test_loguniform(types[t], seed);
        if (types[t] == HSORT_U128)
            continue;
        test_narrow_words(types[t], seed);
        test_narrow_reals(types[t], seed);
        test_narrow_numbers(types[t], seed);
        test_small_mixtures(types[t], seed);
    }
    test_wide(seed);
    test_wide_mixtures(seed);
    return check_failures > 0;
}
