/* Generated input: the same keys whatever part is made, and each distribution is what its name says, for every
 * type. */
#include "tests/files/input_codes.h"
#include <omp.h>

/* ---- What holds for every distribution ----------------------------------------------------------------- */

/* Each with a digest of its first keys, of all types: what is generated stays the same, so that files can be
 * made again. */
static const struct {
    const char *text;
    uint64_t digest;
} texts[] = {
    {"uniform", UINT64_C(0x7bc34f83bc79b2d5)},
    {"sorted", UINT64_C(0xcaaa64930c3a2499)},
    {"reverse", UINT64_C(0x47c2e40d66f4da63)},
    {"equal", UINT64_C(0xcd813539b5fb8c0f)},
    {"zipf", UINT64_C(0x082ddf90b698f88a)},
    {"zipf:20", UINT64_C(0xcb3302c5782c8a50)},
    {"zipf:26", UINT64_C(0x527f74f757dae425)},
    {"gauss", UINT64_C(0xfec440a7da756f72)},
    {"narrow:1", UINT64_C(0x3697eecd9e43adaa)},
    {"narrow:16", UINT64_C(0xae2769ba99c7cdbe)},
    {"narrow:64", UINT64_C(0xfc22847095ff8823)},
    {"nearly:20", UINT64_C(0x1e84c0d7889ba57a)},
    {"swapped:10", UINT64_C(0x2d0d6fe75dec6289)},
    {"staircase", UINT64_C(0x0eaded8359f4464d)},
    {"runs:7", UINT64_C(0x5a86fdfecb4a2194)},
    {"ids", UINT64_C(0x7171f5409e8d06b1)},
    {"entropy:2", UINT64_C(0x020cdbe84035d668)},
    {"entropy:5", UINT64_C(0xd32948e6350e9a32)},
    {"loguniform", UINT64_C(0xce060696eef0a040)},
    {"lognormal", UINT64_C(0xebf7b711e951aee5)},
    {"exponential", UINT64_C(0x2f74235b0b0085ca)},
    {"clusters:1", UINT64_C(0xc670f2afb56d0154)},
    {"clusters:1000", UINT64_C(0x08b156ca33b18e62)},
    {"kmer:31", UINT64_C(0x8d3bb610325cc14f)},
    {"kmer:12", UINT64_C(0xe366b3884d1fd126)},
    {"mixture:0", UINT64_C(0x7430cfc4257de8f6)},
    {"mixture:1", UINT64_C(0x45a08791435538ec)},
    {"mixture:2", UINT64_C(0x59ac0d4b9985fa01)},
    {"mixture:2000000000", UINT64_C(0x4148b00ab35d8b0f)},
    {"nan", UINT64_C(0x037c695337b2ce8b)},
};
enum { TEXTS = sizeof texts / sizeof texts[0] };

static void test_digests(void)
{
    static uint64_t codes[KEYS];
    for (int t = 0; t < TEXTS; t++) {
        uint64_t digest[2] = {0, 0};
        for (int type = 0; type < TYPES; type++) {
            const struct input input = make_input(texts[t].text, types[type], 1, KEYS);
            make_codes(&input, codes);
            for (int i = 0; i < KEYS; i++)
                fingerprint_add(codes[i] ^ input_mix((uint64_t)i), digest);
        }
        CHECK(digest[0] == texts[t].digest, "{\"%s\", UINT64_C(0x%016" PRIx64 ")} is drawn", texts[t].text,
              digest[0]);
    }
}

/* Any number of threads makes the same keys. */
static void test_threads(uint64_t seed)
{
    static unsigned char one[KEYS * 16], three[KEYS * 16];
    const int threads = omp_get_max_threads();
    for (int t = 0; t < TEXTS * ALL_TYPES; t++) {
        const struct input input = make_input(texts[t / ALL_TYPES].text, types[t % ALL_TYPES], seed, KEYS);
        omp_set_num_threads(1);
        input_fill(&input, 0, KEYS, one);
        omp_set_num_threads(3);
        input_fill(&input, 0, KEYS, three);
        CHECK(memcmp(one, three, sizeof one) == 0, "%s %s: three threads make other keys than one",
              texts[t / ALL_TYPES].text, hsort_type_name(input.type));
    }
    omp_set_num_threads(threads);
}

static void test_parts(uint64_t *random)
{
    static unsigned char whole[KEYS * 16], part[KEYS * 16];
    for (int t = 0; t < TEXTS * ALL_TYPES; t++) {
        const struct input input =
            make_input(texts[t / ALL_TYPES].text, types[t % ALL_TYPES], check_random(random), KEYS);
        const size_t bytes = hsort_type_bytes(input.type);
        input_fill(&input, 0, KEYS, whole);
        for (int round = 0; round < 20; round++) {
            int64_t first = (int64_t)(check_random(random) % KEYS);
            int64_t count = (int64_t)(check_random(random) % (uint64_t)(KEYS - first + 1));
            memset(part, 0xa5, sizeof part);
            input_fill(&input, first, count, part);
            CHECK(memcmp(part, whole + (size_t)first * bytes, (size_t)count * bytes) == 0,
                  "%s %s: keys %" PRId64 " + %" PRId64, texts[t / ALL_TYPES].text, hsort_type_name(input.type),
                  first, count);
            CHECK(part[(size_t)count * bytes] == 0xa5, "%s: wrote beyond the end", texts[t / ALL_TYPES].text);
        }
    }
}

static void test_seeds(uint64_t seed)
{
    static unsigned char one[KEYS * 16], other[KEYS * 16];
    for (int t = 0; t < TEXTS * ALL_TYPES; t++) {
        const char *text = texts[t / ALL_TYPES].text;
        const hsort_type type = types[t % ALL_TYPES];
        const bool seedless =
            strcmp(text, "sorted") == 0 || strcmp(text, "reverse") == 0 || strcmp(text, "staircase") == 0;
        if (KEY_IS_COUNTED(hsort_type_bytes(type)) && strcmp(text, "equal") == 0)
            continue; // of few keys that are all equal two seeds may draw the same
        struct input input = make_input(text, type, seed, KEYS);
        const size_t bytes = KEYS * hsort_type_bytes(input.type);
        input_fill(&input, 0, KEYS, one);
        input.seed++;
        input_fill(&input, 0, KEYS, other);
        CHECK((memcmp(one, other, bytes) == 0) == seedless, "%s: two seeds", text);
    }
}

/* ---- What holds for one of them ------------------------------------------------------------------------ */

static void test_ordered(hsort_type type, uint64_t seed)
{
    static uint64_t up[KEYS], down[KEYS];
    struct input input = make_input("sorted", type, seed, KEYS);
    make_codes(&input, up);
    CHECK(count_descents(up, KEYS) == 0, "%s: sorted", hsort_type_name(type));
    input.distribution = INPUT_REVERSE;
    make_codes(&input, down);
    for (int i = 0; i < KEYS; i++)
        CHECK(down[i] == up[KEYS - 1 - i], "%s: reverse is no mirror at %d", hsort_type_name(type), i);
    CHECK(count_distinct(up, KEYS) == KEYS, "%s: sorted has repeats", hsort_type_name(type));
    // The range is covered: the middle key is the middle of the type's range.
    const uint64_t all = hsort_type_bytes(type) == 8 ? UINT64_MAX : UINT32_MAX;
    const uint64_t middle = input_is_float(type) ? code_of(type, 0.0) : all / 2 + 1;
    CHECK(up[KEYS / 2] == middle, "%s: middle of sorted", hsort_type_name(type));
    CHECK(up[0] == (input_is_float(type) ? code_of(type, -1.0) : 0), "%s: least of sorted",
          hsort_type_name(type));
}

static void test_staircase(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    const struct input input = make_input("staircase", type, seed, KEYS);
    make_codes(&input, codes);
    CHECK(count_descents(codes, KEYS) == 0, "%s: staircase falls", hsort_type_name(type));
    int distinct = count_distinct(codes, KEYS);
    CHECK(distinct == 64, "%s: staircase of %d", hsort_type_name(type), distinct);
}

static void test_few_values(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    struct input input = make_input("equal", type, seed, KEYS);
    make_codes(&input, codes);
    CHECK(count_distinct(codes, KEYS) == 1, "%s: equal", hsort_type_name(type));
    for (int bits = 1; bits <= 8; bits++) {
        input = make_input("narrow:8", type, seed, KEYS);
        input.parameter = bits;
        make_codes(&input, codes);
        int distinct = count_distinct(codes, KEYS);
        CHECK(distinct == 1 << bits, "%s: narrow:%d has %d values", hsort_type_name(type), bits, distinct);
        CHECK(codes[0] == code_of(type, 0), "%s: narrow starts at 0", hsort_type_name(type));
    }
    // More bits than the type holds exactly: no value is rounded.
    input.parameter = 64;
    make_codes(&input, codes);
    for (int i = 0; i < KEYS && input_is_float(type); i++)
        CHECK(codes[i] < code_of(type, type == HSORT_F32 ? 0x1p24 : 0x1p53), "%s: narrow:64 is not narrow",
              hsort_type_name(type));
}

static void test_uniform(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    const struct input input = make_input("uniform", type, seed, KEYS);
    make_codes(&input, codes);
    // 8 standard deviations of a fair coin: sqrt(KEYS) / 2 each.
    const double slack = 4 * sqrt(KEYS);
    const int bits = input_is_float(type) ? 0 : 8 * (int)hsort_type_bytes(type);
    for (int b = 0; b < bits; b++) {
        int ones = 0;
        for (int i = 0; i < KEYS; i++)
            ones += (int)(codes[i] >> b & 1);
        CHECK(fabs(ones - KEYS / 2.0) < slack, "%s: bit %d set in %d", hsort_type_name(type), b, ones);
    }
    int quarters[4] = {0};
    const uint64_t all = hsort_type_bytes(type) == 8 ? UINT64_MAX : UINT32_MAX;
    for (int i = 0; i < KEYS; i++) {
        if (input_is_float(type))
            quarters[(codes[i] >= code_of(type, -0.5)) + (codes[i] >= code_of(type, 0.0)) +
                     (codes[i] >= code_of(type, 0.5))]++;
        else
            quarters[codes[i] / (all / 4 + 1)]++;
        CHECK(!input_is_float(type) || (codes[i] >= code_of(type, -1.0) && codes[i] < code_of(type, 1.0)),
              "%s: beyond [-1, 1)", hsort_type_name(type));
    }
    for (int q = 0; q < 4; q++)
        CHECK(fabs(quarters[q] - KEYS / 4.0) < slack, "%s: quarter %d has %d", hsort_type_name(type), q,
              quarters[q]);
}

static void test_zipf(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    const struct input input = make_input("zipf", type, seed, KEYS);
    make_codes(&input, codes);
    const double share = 1 / (log(1 << 20) + 0.5772); // of k = 1
    const uint64_t most = code_of(type, 1 << 20);
    for (int k = 1; k <= 4; k++) {
        int found = 0;
        for (int i = 0; i < KEYS; i++)
            found += codes[i] == code_of(type, k);
        CHECK(fabs(found - KEYS * share / k) < 8 * sqrt(KEYS * share / k), "%s: zipf has %d times %d",
              hsort_type_name(type), found, k);
    }
    for (int i = 0; i < KEYS; i++)
        CHECK(codes[i] >= code_of(type, 1) && codes[i] <= most, "%s: zipf beyond its values",
              hsort_type_name(type));
}

static void test_gauss(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    const struct input input = make_input("gauss", type, seed, KEYS);
    make_codes(&input, codes);
    // One standard deviation is 1 / sqrt(12 * 16) of the range; 68.3 % lie within one, 95.4 % within two.
    const double deviation = sqrt(1 / 192.0), expected[2] = {0.683, 0.954};
    for (int d = 1; d <= 2; d++) {
        int within = 0;
        for (int i = 0; i < KEYS; i++) {
            const double all = hsort_type_bytes(type) == 8 ? 0x1p64 : 0x1p32;
            within += input_is_float(type) ? codes[i] >= code_of(type, -2 * d * deviation) &&
                                                 codes[i] <= code_of(type, 2 * d * deviation)
                                           : fabs((double)codes[i] / all - 0.5) <= d * deviation;
        }
        CHECK(fabs((double)within / KEYS - expected[d - 1]) < 0.03, "%s: %d within %d deviations",
              hsort_type_name(type), within, d);
    }
}

static void test_nearly(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS], sorted[KEYS];
    struct input input = make_input("nearly:50", type, seed, KEYS);
    make_codes(&input, codes);
    struct input straight = make_input("sorted", type, seed, KEYS);
    make_codes(&straight, sorted);
    int strayed = 0;
    for (int i = 0; i < KEYS; i++)
        strayed += codes[i] != sorted[i];
    CHECK(strayed > KEYS / 25 && strayed < KEYS / 16, "%s: nearly:50 has %d strays", hsort_type_name(type),
          strayed);
    input.parameter = 0;
    make_codes(&input, codes);
    CHECK(memcmp(codes, sorted, sizeof codes) == 0, "%s: nearly:0 is not sorted", hsort_type_name(type));
}

/* Every kind of odd value is there, and often. */
static void test_nan(hsort_type type, uint64_t seed)
{
    static uint64_t keys[KEYS];
    const struct input input = make_input("nan", type, seed, KEYS);
    const bool wide = hsort_type_bytes(type) == 8;
    const uint64_t all = wide ? UINT64_MAX : UINT32_MAX, top = all ^ (all >> 1);
    const uint64_t infinity = wide ? UINT64_C(0x7ff0000000000000) : UINT64_C(0x7f800000);
    const uint64_t normal = infinity & -infinity;
    const uint64_t floats[] = {0, 1, normal, infinity, infinity - 1};
    const uint64_t integers[] = {0, 1, top - 1, top, top + 1, all};
    const int wanted = input_is_float(type) ? 5 : 6;
    int found[2][6] = {{0}}, nans[2] = {0}, denormals[2] = {0};
    input_fill(&input, 0, KEYS, keys);
    for (int i = 0; i < KEYS; i++) {
        const uint64_t bits = wide ? keys[i] : ((const uint32_t *)keys)[i];
        const uint64_t size = input_is_float(type) ? bits & ~top : bits;
        const int negative = input_is_float(type) && (bits & top);
        for (int w = 0; w < wanted; w++)
            found[negative][w] += size == (input_is_float(type) ? floats[w] : integers[w]);
        nans[negative] += input_is_float(type) && size > infinity;
        denormals[negative] += input_is_float(type) && size > 1 && size < normal;
    }
    for (int negative = 0; negative <= input_is_float(type); negative++) {
        for (int w = 0; w < wanted; w++)
            CHECK(found[negative][w] > KEYS / 100, "%s: nan lacks value %d, sign %d", hsort_type_name(type),
                  w, negative);
        CHECK(!input_is_float(type) || nans[negative] > KEYS / 40, "%s: %d NaNs", hsort_type_name(type),
              nans[negative]);
        CHECK(!input_is_float(type) || denormals[negative] > KEYS / 100, "%s: %d denormals",
              hsort_type_name(type), denormals[negative]);
    }
}

/* ---- Counts and words ---------------------------------------------------------------------------------- */

static void test_huge_count(hsort_type type)
{
    // The last keys of an input of 2^40 keys: no arithmetic wraps, and sorted ends at the largest value.
    const int64_t count = INT64_C(1) << 40;
    struct input input = make_input("sorted", type, 1, count);
    const struct keymap map = keymap_make(type, HSORT_ASCENDING);
    uint128 keys[2] = {0};
    input_fill(&input, count - 2, 2, keys);
    const uint64_t code = (uint64_t)keymap_encode(map, key_load(map.key_bytes, keys, 1));
    const uint64_t step = map.key_bytes == 8 ? UINT64_C(1) << 24 : 1;
    const uint64_t end =
        input_is_float(type) ? code_of(type, 1.0) : (map.key_bytes == 8 ? 0 : UINT64_C(1) << 32);
    CHECK(input_is_float(type) ? code < end && code > code_of(type, 0.999999) : code == end - step,
          "%s: end of a long sorted input", hsort_type_name(type));
}

static void test_words(void)
{
    static const char *const bad[] = {
        "",          "unifor",      "uniform2",  "uniform:1",   "narrow",
        "narrow:",   "narrow:0",    "narrow:65", "narrow:x",    "narrow:1x",
        "narrow:-1", "nearly:1001", "nearly: 5", "zipf:",       "narrow:99999999999999999999",
        "zipf:0",    "zipf:33",     "entropy",   "entropy:0",   "clusters:0",
        "kmer:33",   "mixture",     "runs:0",    "ids:3",       "mixture:2147483648",
        "nearly:1k", "narrow:1.5",  "runs:2G",   "clusters:1KB"};
    for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
        struct input input = {.distribution = INPUT_GAUSS};
        status_clear();
        CHECK(input_parse(bad[b], &input) == HSORT_ARGUMENT, "'%s' was taken", bad[b]);
        CHECK(status_text()[0] != '\0', "'%s': no text", bad[b]);
        CHECK(input.distribution == INPUT_GAUSS, "'%s': the input was changed", bad[b]);
    }
    static const char *const said[][2] = {{"narrow", "'narrow' needs a number: narrow:BITS, from 1 to 64"},
                                          {"kmer", "'kmer' needs a number: kmer:K"},
                                          {"ids:3", "'ids' takes no number"},
                                          {"narow", "did you mean narrow?"}};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        struct input input;
        status_clear();
        CHECK(input_parse(said[i][0], &input) == HSORT_ARGUMENT && strstr(status_text(), said[i][1]),
              "%s: %s", said[i][0], status_text());
    }
    struct input input = make_input("narrow:64", HSORT_U64, 1, 1);
    CHECK(input.distribution == INPUT_NARROW && input.parameter == 64, "narrow:64");
    static const struct {
        const char *text;
        int number;
    } units[] = {{"runs:1k", 1024},
                 {"clusters:1e3", 1000},
                 {"nearly:1e3", 1000},
                 {"narrow:2^6", 64},
                 {"mixture:1.5Ki", 1536}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        input = make_input(units[i].text, HSORT_U64, 1, 1);
        CHECK(input.parameter == units[i].number, "%s: %d", units[i].text, input.parameter);
    }
    input = make_input("zipf", HSORT_U64, 1, 1);
    CHECK(input.distribution == INPUT_ZIPF && input.parameter == 0, "zipf");
    input = make_input("zipf:26", HSORT_U64, 1, 1);
    CHECK(input.distribution == INPUT_ZIPF && input.parameter == 26, "zipf:26");
    input = make_input("nearly:1000", HSORT_U64, 1, 1);
    CHECK(input.distribution == INPUT_NEARLY && input.parameter == 1000, "nearly:1000");
}

int main(void)
{
    uint64_t seed = check_seed();
    printf("seed %" PRIu64 "\n", seed);
    test_digests();
    test_parts(&seed);
    test_seeds(seed);
    test_threads(seed);
    for (int t = 0; t < TYPES; t++) {
        test_ordered(types[t], seed);
        test_staircase(types[t], seed);
        test_few_values(types[t], seed);
        test_uniform(types[t], seed);
        test_zipf(types[t], seed);
        test_gauss(types[t], seed);
        test_nearly(types[t], seed);
        test_nan(types[t], seed);
        test_huge_count(types[t]);
    }
    test_words();
    return check_failures > 0;
}
