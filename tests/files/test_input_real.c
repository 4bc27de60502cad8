/* Generated input of the kinds that real keys come in: is each kind what its name says, for every type? Frequencies
 * are allowed eight standard deviations. */
#include "tests/files/input_codes.h"

static void check_frequency(const char *what, hsort_type type, double found, double all, double chance)
{
    const double expected = all * chance, slack = 8 * sqrt(expected * (1 - chance)) + 1;
    CHECK(fabs(found - expected) <= slack, "%s: %s: %.0f of %.0f keys, expected %.1f", hsort_type_name(type),
          what, found, all, expected);
}

/* The number that a code stands for. */
static double number_of(hsort_type type, uint64_t code)
{
    const uint64_t bits = keymap_decode(keymap_make(type, HSORT_ASCENDING), code);
    const uint32_t low = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &low, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return type == HSORT_F64 ? wide : type == HSORT_F32 ? (double)narrow : (double)bits;
}

/* Bits that it takes to say in which of 4096 equal parts of all codes a key lies. */
static double entropy_of(hsort_type type, const uint64_t *codes, int64_t count)
{
    static int cells[4096];
    double entropy = 0;
    memset(cells, 0, sizeof cells);
    for (int64_t i = 0; i < count; i++)
        cells[codes[i] >> (input_key_bits(type) - 12)]++;
    for (int c = 0; c < 4096; c++)
        entropy -= cells[c] ? cells[c] * log2((double)cells[c] / (double)count) / (double)count : 0;
    return entropy;
}

/* ---- What is in order, or nearly ----------------------------------------------------------------------- */

static void test_runs(hsort_type type, uint64_t seed)
{
    static const int runs[] = {1, 2, 7, 1000, KEYS};
    static uint64_t codes[KEYS];
    for (size_t r = 0; r < sizeof runs / sizeof runs[0]; r++) {
        struct input input = make_input("runs:1", type, seed, KEYS);
        input.parameter = runs[r];
        make_codes(&input, codes);
        const int descents = count_descents(codes, KEYS), length = (KEYS + runs[r] - 1) / runs[r];
        if (length == 1)
            check_frequency("descents of runs of one key", type, descents, KEYS, 0.5);
        else
            CHECK(descents == (KEYS - 1) / length, "%s: runs:%d has %d", hsort_type_name(type), runs[r],
                  descents + 1);
        CHECK(entropy_of(type, codes, KEYS) > (input_is_float(type) ? 2 : 11),
              "%s: runs:%d does not cover the range", hsort_type_name(type), runs[r]);
    }
}

/* The keys of "sorted", of which some have changed places, two and two. */
static void test_swapped(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS], sorted[KEYS];
    static int at[KEYS];
    const struct input straight = make_input("sorted", type, seed, KEYS);
    make_codes(&straight, sorted);
    for (int permille = 0; permille <= 1000; permille += 250) {
        struct input input = make_input("swapped:0", type, seed, KEYS);
        input.parameter = permille;
        make_codes(&input, codes);
        int moved = 0, unpaired = 0;
        for (int i = 0; i < KEYS; i++) {
            const uint64_t *found = bsearch(&codes[i], sorted, KEYS, sizeof *sorted, compare_codes);
            at[i] = found ? (int)(found - sorted) : -1;
            moved += at[i] != i;
        }
        for (int i = 0; i < KEYS; i++)
            unpaired += at[i] < 0 || at[at[i]] != i;
        CHECK(unpaired == 0, "%s: swapped:%d: %d keys are not where their partner was", hsort_type_name(type),
              permille, unpaired);
        CHECK(moved % 2 == 0, "%s: swapped:%d moves %d keys", hsort_type_name(type), permille, moved);
        check_frequency("pairs swapped", type, moved / 2, KEYS / 2, permille / 1000.0);
    }
}

static void test_ids(hsort_type type, uint64_t seed)
{
    static const int counts[] = {1, 2, 3, 4, 5, 255, 256, 257, 4097, KEYS};
    static uint64_t codes[KEYS];
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const struct input input = make_input("ids", type, seed, counts[c]);
        make_codes(&input, codes);
        const int descents = count_descents(codes, counts[c]);
        if (counts[c] == KEYS)
            check_frequency("descents of ids", type, descents, KEYS, 0.5);
        qsort(codes, (size_t)counts[c], sizeof *codes, compare_codes);
        int wrong = 0;
        for (int i = 0; i < counts[c]; i++)
            wrong += number_of(type, codes[i]) != i;
        CHECK(wrong == 0, "%s: ids of %d keys lack %d", hsort_type_name(type), counts[c], wrong);
    }
}

/* ---- Bits and numbers ---------------------------------------------------------------------------------- */

static void test_entropy(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    for (int words = 1; words <= 6; words++) {
        struct input input = make_input("entropy:1", type, seed, KEYS);
        input.parameter = words;
        make_codes(&input, codes);
        for (int b = 0; b < input_key_bits(type) && !input_is_float(type); b++) {
            int ones = 0;
            for (int i = 0; i < KEYS; i++)
                ones += (int)(codes[i] >> b & 1);
            check_frequency("ones of entropy:K", type, ones, KEYS, ldexp(1, -words));
        }
        int low = 0;
        for (int i = 0; i < KEYS && input_is_float(type); i++)
            low += codes[i] < code_of(type, 0);
        check_frequency("negative floats of entropy:K", type, input_is_float(type) ? low : 0,
                        input_is_float(type) ? KEYS : 0, 1 - ldexp(1, -words));
    }
}

static void test_loguniform(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    static int found[128];
    const struct input input = make_input("loguniform", type, seed, KEYS);
    const bool is_signed = type == HSORT_I32 || type == HSORT_I64;
    const int exponents = input_is_float(type) ? 128 : input_key_bits(type) - is_signed;
    memset(found, 0, sizeof found);
    make_codes(&input, codes);
    for (int i = 0; i < KEYS; i++) {
        const double number = number_of(type, codes[i]);
        const int exponent = number > 0 ? (int)floor(log2(number)) + (input_is_float(type) ? 64 : 0) : -1;
        // The nearest double of a large integer may be the next power of two.
        const int in_range = exponent == exponents && !input_is_float(type) ? exponents - 1 : exponent;
        CHECK(in_range >= 0 && in_range < exponents, "%s: loguniform draws %g", hsort_type_name(type),
              number);
        found[in_range >= 0 && in_range < exponents ? in_range : 0]++;
    }
    for (int e = 0; e < exponents; e++)
        check_frequency("keys of one exponent", type, found[e], KEYS, 1.0 / exponents);
}

/* How many of the numbers, divided by `unit`, are below `bound`. */
static int count_below(hsort_type type, const uint64_t *codes, double unit, double bound)
{
    int below = 0;
    for (int i = 0; i < KEYS; i++)
        below += number_of(type, codes[i]) / unit < bound;
    return below;
}

static double unit_of(hsort_type type)
{
    return input_is_float(type) ? 1 : ldexp(1, input_key_bits(type) / 2);
}

static void test_lognormal(hsort_type type, uint64_t seed)
{
    static const double deviations[] = {-2, -1, -0.5, 0, 0.5, 1, 2},
                        shares[] = {0.0228, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9772};
    static uint64_t codes[KEYS];
    const struct input input = make_input("lognormal", type, seed, KEYS);
    make_codes(&input, codes);
    for (int d = 0; d < 7; d++)
        check_frequency("lognormal below", type, count_below(type, codes, unit_of(type), exp(deviations[d])),
                        KEYS, shares[d]);
    CHECK(count_below(type, codes, 1, 0) == 0, "%s: lognormal draws negative numbers", hsort_type_name(type));
    CHECK(count_distinct(codes, KEYS) > KEYS * (type == HSORT_U32 || type == HSORT_I32 ? 0.8 : 0.99),
          "%s: lognormal repeats", hsort_type_name(type));
}

static void test_exponential(hsort_type type, uint64_t seed)
{
    static const double bounds[] = {0.01, 0.1, 0.5, 1, 2, 4, 7};
    static uint64_t codes[KEYS];
    const struct input input = make_input("exponential", type, seed, KEYS);
    make_codes(&input, codes);
    for (int b = 0; b < 7; b++)
        check_frequency("exponential below", type, count_below(type, codes, unit_of(type), bounds[b]), KEYS,
                        1 - exp(-bounds[b]));
}

/* Value k is drawn 1/k as often as value 1, values are few, and they lie anywhere. */
static void test_scattered_zipf(hsort_type type, uint64_t seed)
{
    static uint64_t codes[KEYS];
    static int times[KEYS];
    for (int log = 1; log <= 26; log += 5) {
        struct input input = make_input("zipf:1", type, seed, KEYS);
        double harmonic = 0;
        int distinct = 0;
        input.parameter = log;
        make_codes(&input, codes);
        const double entropy = entropy_of(type, codes, KEYS);
        qsort(codes, KEYS, sizeof *codes, compare_codes);
        for (int i = 0; i < KEYS; i++) {
            distinct += i == 0 || codes[i] != codes[i - 1];
            times[distinct - 1] = i > 0 && codes[i] == codes[i - 1] ? times[distinct - 1] + 1 : 1;
        }
        int most = 0;
        for (int v = 0; v < distinct; v++)
            most = times[v] > most ? times[v] : most;
        for (int k = 1; k <= 1 << log; k++)
            harmonic += 1.0 / k;
        check_frequency("zipf:LOG's first value", type, most, KEYS, 1 / harmonic);
        CHECK(distinct <= 1 << log && (log < 16 || distinct > KEYS / 4), "%s: zipf:%d has %d values",
              hsort_type_name(type), log, distinct);
        CHECK(log < 16 || entropy > (input_is_float(type) ? 2 : 5), "%s: zipf:%d lies in %.1f bits",
              hsort_type_name(type), log, entropy);
    }
}

/* ---- Clusters, genomes, mixtures ----------------------------------------------------------------------- */

/* Of the three coordinates of a Morton code of 63 bits, the range that holds all points, in a space that ends
 * where it begins: all but the longest gap. */
static double extent_of(const uint64_t *codes, int axis)
{
    static uint64_t at[KEYS];
    uint64_t gap = 0;
    for (int i = 0; i < KEYS; i++) {
        at[i] = 0;
        for (int b = 0; b < 21; b++)
            at[i] |= (codes[i] >> (1 + 3 * b + axis) & 1) << b;
    }
    qsort(at, KEYS, sizeof *at, compare_codes);
    for (int i = 0; i < KEYS; i++) {
        const uint64_t next = i + 1 < KEYS ? at[i + 1] : at[0] + (1 << 21);
        gap = next - at[i] > gap ? next - at[i] : gap;
    }
    return (double)(1 << 21) - (double)gap;
}

static void test_clusters(uint64_t seed)
{
    static uint64_t codes[KEYS];
    double least = INFINITY, most = 0;
    for (uint64_t s = seed; s < seed + 40; s++) { // a cube each, of some size
        const struct input input = make_input("clusters:1", HSORT_U64, s, KEYS);
        make_codes(&input, codes);
        const double extent = extent_of(codes, 0), others[2] = {extent_of(codes, 1), extent_of(codes, 2)};
        CHECK(extent < others[0] * 1.5 && others[0] < extent * 1.5 && extent < others[1] * 1.5 &&
                  others[1] < extent * 1.5,
              "seed %" PRIu64 ": a cluster of %g x %g x %g", s, extent, others[0], others[1]);
        least = extent < least ? extent : least;
        most = extent > most ? extent : most;
    }
    CHECK(least < 1 << 10 && most > 1 << 18, "sizes of clusters from %g to %g", least, most);
    for (int t = 0; t < TYPES; t++) {
        const struct input few = make_input("clusters:10", types[t], seed, KEYS);
        make_codes(&few, codes);
        const double of_few = entropy_of(types[t], codes, KEYS);
        const struct input many = make_input("clusters:1000", types[t], seed, KEYS);
        make_codes(&many, codes);
        const double of_many = entropy_of(types[t], codes, KEYS);
        const struct input even = make_input("uniform", types[t], seed, KEYS);
        make_codes(&even, codes);
        const double of_all = entropy_of(types[t], codes, KEYS);
        CHECK(of_few < of_many + 0.3 && (of_few < of_all - 0.5 || input_is_float(types[t])) &&
                  of_many > of_all - 4,
              "%s: 10 clusters lie in %.1f bits, 1000 in %.1f", hsort_type_name(types[t]), of_few, of_many);
    }
}

static void test_kmer(uint64_t seed)
{
    enum { BASES = 1 << 19 };
    static uint64_t keys[BASES];
    static uint32_t narrow_keys[KEYS];
    struct input input = make_input("kmer:31", HSORT_U64, seed, BASES);
    input_fill(&input, 0, BASES, keys);
    int torn = 0, kept = 0;
    for (int i = 1; i < BASES; i++)
        torn += keys[i] >> 62 != 0 || keys[i] >> 2 != (keys[i - 1] & input_ones(60));
    CHECK(torn == 0, "%d 31-mers do not go on where the one before does", torn);
    struct input narrow = make_input("kmer:31", HSORT_U32, seed, BASES);
    input_fill(&narrow, 0, KEYS, narrow_keys);
    for (int i = 0; i < KEYS; i++)
        kept += narrow_keys[i] == (uint32_t)(keys[i] >> 30);
    CHECK(kept == KEYS, "%d of %d u32 are the upper half of the 31-mer", kept, KEYS);
    narrow = make_input("kmer:12", HSORT_U32, seed, BASES);
    input_fill(&narrow, 0, KEYS, narrow_keys);
    for (int i = 0; i < KEYS; i++)
        kept -= narrow_keys[i] == keys[i] >> 38;
    CHECK(kept == 0, "%d 12-mers are not the first 12 bases of the 31-mer", kept);
    qsort(keys, BASES, sizeof *keys, compare_codes);
    int distinct = 1, same = 1, most = 1;
    for (int i = 1; i < BASES; i++) {
        distinct += keys[i] != keys[i - 1];
        same = keys[i] == keys[i - 1] ? same + 1 : 1;
        most = same > most ? same : most;
    }
    CHECK(distinct > BASES / 2 && distinct < BASES * 0.95 && most > 30,
          "of %d 31-mers %d are distinct, one occurs %d times", BASES, distinct, most);
}

/* What is found in some of many mixtures, and in none. */
static void test_mixtures(hsort_type type, uint64_t seed)
{
    enum { MIXTURES = 300, SOME_KEYS = 5000 };
    static uint64_t codes[KEYS];
    const struct keymap map = keymap_make(type, HSORT_ASCENDING);
    int few = 0, many = 0, crowded = 0, spread = 0, low_zero = 0, descending = 0;
    for (int m = 0; m < MIXTURES; m++) {
        struct input input = make_input("mixture:0", type, seed, SOME_KEYS);
        input.parameter = m;
        make_codes(&input, codes);
        uint64_t bits = 0;
        for (int i = 0; i < SOME_KEYS; i++) {
            const uint64_t key = keymap_decode(map, codes[i]);
            bits |= key;
            CHECK(!input_is_float(type) || isfinite(number_of(type, codes[i])),
                  "%s: mixture:%d draws %016" PRIx64, hsort_type_name(type), m, key);
        }
        const double entropy = entropy_of(type, codes, SOME_KEYS);
        descending += count_descents(codes, SOME_KEYS) > SOME_KEYS / 3;
        const int distinct = count_distinct(codes, SOME_KEYS);
        few += distinct < 100;
        many += distinct > SOME_KEYS / 2;
        crowded += entropy < 1;
        spread += entropy > 4;
        low_zero += (bits & 3) == 0;
    }
    CHECK(few > 8 && many > 25 && crowded > 25 && spread > 10 && descending > MIXTURES / 3,
          "%s: of %d mixtures %d have few values, %d many, %d lie close, %d apart, %d in no order",
          hsort_type_name(type), MIXTURES, few, many, crowded, spread, descending);
    CHECK(input_is_float(type) || low_zero > 0, "%s: %d mixtures leave low bits 0", hsort_type_name(type),
          low_zero);
}

int main(void)
{
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%" PRIu64 "\n", seed);
    for (int t = 0; t < TYPES; t++) {
        test_runs(types[t], seed);
        test_swapped(types[t], seed);
        test_ids(types[t], seed);
        test_entropy(types[t], seed);
        test_loguniform(types[t], seed);
        test_lognormal(types[t], seed);
        test_exponential(types[t], seed);
        test_scattered_zipf(types[t], seed);
        test_mixtures(types[t], seed);
    }
    test_clusters(seed);
    test_kmer(seed);
    return check_failures > 0;
}
