/* Numbers as options take them, which known word was meant by an unknown one, how names are shown, what tells command lines
 * apart, and what bench makes of times. */
#include <inttypes.h>
#include <stddef.h>
#include "src/command/bench.h"
#include "src/command/cli.h"
#include "src/command/report.h"
#include "src/files/nearest.h"
#include "src/files/npy_text.h"
#include "src/files/number.h"
#include "tests/support/ranks.h"

enum { NONE = -1 };

/* Numbers of `most` 2^63 - 1 that may have a unit. */
static void test_numbers(void)
{
    static const struct {
        const char *text;
        int64_t number;
    } cases[] = {
        {"0", 0},
        {"1500", 1500},
        {"007", 7},
        {"1e6", 1000000},
        {"1e+06", 1000000},
        {"2.5E3", 2500},
        {"1.50e1", 15},
        {"0e999999", 0},
        {"1e18", INT64_C(1000000000000000000)},
        {"2^0", 1},
        {"2^30", 1 << 30},
        {"2^62", INT64_C(1) << 62},
        {"2^63", NONE},
        {"2^64", NONE},
        {"2^", NONE},
        {"2^-1", NONE},
        {"2^10K", NONE},
        {"3^2", NONE},
        {"2^1.5", NONE},
        {"02^3", 8},
        {"1K", 1 << 10},
        {"1k", 1 << 10},
        {"1Ki", 1 << 10},
        {"1kiB", 1 << 10},
        {"512Mi", 512 << 20},
        {"10GiB", INT64_C(10) << 30},
        {"10Gib", INT64_C(10) << 30},
        {"3g", INT64_C(3) << 30},
        {"1T", INT64_C(1) << 40},
        {"1tI", INT64_C(1) << 40},
        {"1.5M", 3 << 19},
        {"0.5K", 512},
        {"1.0000000000000000000000000", 1},
        {"0.0009765625K", 1},
        {"0.125T", INT64_C(1) << 37},
        {"1.5", NONE},
        {"0.3K", NONE},
        {"1e-3", NONE},
        {"1000e-3", NONE},
        {"1.25e1", NONE},
        {"0.0001K", NONE},
        {"10GB", NONE},
        {"10B", NONE},
        {"10KiBs", NONE},
        {"1P", NONE},
        {"1 K", NONE},
        {"1Kk", NONE},
        {"1iB", NONE},
        {"", NONE},
        {".5K", NONE},
        {"1.", NONE},
        {"1.K", NONE},
        {"1e", NONE},
        {"1e+", NONE},
        {"e6", NONE},
        {"K", NONE},
        {"+1", NONE},
        {"-1", NONE},
        {" 1", NONE},
        {"1 ", NONE},
        {"0x10", NONE},
        {"1_000", NONE},
        {"nan", NONE},
        {"inf", NONE},
        {"8388607T", INT64_C(8388607) << 40},
        {"8388608T", NONE},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", NONE},
        {"18446744073709551616", NONE},
        {"1e19", NONE},
        {"1e400", NONE},
        {"1e99999999999999999999", NONE},
        {"9223372036.854775807e9", INT64_MAX},
        {"99999999999999999999.5K", NONE},
        {"16777216T", NONE},
        {"18446744073709551615T", NONE},
        {"0.00000000000000000000000000000000000000000000000001e50", 1},
        {"0.00000000000000000000000000000000000000000000000001T", NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t number = 0;
        const bool good = number_parse(cases[i].text, true, INT64_MAX, &number);
        CHECK(good == (cases[i].number != NONE) && (!good || number == (uint64_t)cases[i].number),
              "'%s' is %s, %" PRIu64, cases[i].text, good ? "taken" : "refused", number);
        const size_t digits = strspn(cases[i].text, "0123456789");
        const bool plain = number_parse(cases[i].text, false, INT64_MAX, &number);
        CHECK(plain == (good && cases[i].text[digits] == '\0'), "'%s' without units", cases[i].text);
    }
    uint64_t most;
    CHECK(number_parse("2^63", true, UINT64_MAX, &most) && most == UINT64_C(1) << 63, "2^63");
    CHECK(number_parse("18446744073709551615", true, UINT64_MAX, &most) && most == UINT64_MAX, "UINT64_MAX");
    CHECK(!number_parse("1025", true, 1024, &most) && number_parse("1K", true, 1024, &most), "most");
}

/* Numbers with a binary fraction, a unit and an exponent, drawn and written in digits, are what was drawn. */
static void test_drawn(uint64_t *random)
{
    static const char units[] = " KMGT";
    for (int i = 0; i < 20000; i++) {
        char text[96];
        uint64_t number = 0;
        const int unit = (int)(check_random(random) % 5), exponent = (int)(check_random(random) % 4);
        const uint64_t whole = check_random(random) % 4000000,
                       quarters = unit > 0 ? check_random(random) % 4 : 0;
        uint64_t wanted = (whole * 4 + quarters) * (UINT64_C(1) << 10 * unit) / 4;
        int length = snprintf(text, sizeof text, "%" PRIu64, whole);
        if (quarters > 0)
            length += snprintf(text + length, sizeof text - (size_t)length, ".%02d", (int)quarters * 25);
        if (exponent > 0)
            length += snprintf(text + length, sizeof text - (size_t)length, "e%d", exponent);
        if (unit > 0)
            snprintf(text + length, sizeof text - (size_t)length, "%c", units[unit]);
        for (int e = 0; e < exponent && wanted <= UINT64_MAX / 10; e++)
            wanted *= 10;
        if (wanted > UINT64_MAX / 10)
            continue;
        CHECK(number_parse(text, true, UINT64_MAX, &number) && number == wanted, "'%s' is %" PRIu64, text,
              number);
    }
}

/* Every option that takes a whole number takes one with a unit. */
static void test_options(void)
{
    static const struct {
        const char *words[3]; /* behind "hypersort" */
        size_t field;
        uint64_t number;
        size_t bytes;
    } cases[] = {
#define FIELD(name) offsetof(struct cli_options, name)
        {{"gen", "--seed", "1K"}, FIELD(seed), 1024, 8},
        {{"gen", "--count", "1e3"}, FIELD(count), 1000, 8},
        {{"gen", "--threads", "2^3"}, FIELD(sort.threads), 8, sizeof(int)},
        {{"bench", "--seed", "2^40"}, FIELD(seed), UINT64_C(1) << 40, 8},
        {{"bench", "--repeats", "1e2"}, FIELD(repeats), 100, sizeof(int)},
        {{"bench", "--warm-up", "0.5K"}, FIELD(warm_up), 512, sizeof(int)},
        {{"bench", "--local", "2^1"}, FIELD(sort.local_rung), 2, sizeof(int)},
        {{"plan", "--nodes", "1k"}, FIELD(nodes), 1024, sizeof(int)},
        {{"plan", "--ranks-per-node", "2^4"}, FIELD(ranks_per_node), 16, sizeof(int)},
        {{"plan", "--runs", "1e3"}, FIELD(runs), 1000, sizeof(int)},
        {{"sort", "--runs", "1Ki"}, FIELD(runs), 1024, sizeof(int)},
#undef FIELD
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli_options options;
        uint64_t found = 0;
        char *words[] = {"hypersort", (char *)cases[i].words[0], (char *)cases[i].words[1],
                         (char *)cases[i].words[2], NULL};
        status_clear();
        cli_parse(4, words, &options); // what else the command needs is missing
        memcpy(&found, (const char *)&options + cases[i].field, cases[i].bytes);
        CHECK(found == cases[i].number && !strstr(status_text(), "no number"), "%s %s %s: %" PRIu64 ", %s",
              cases[i].words[0], cases[i].words[1], cases[i].words[2], found, status_text());
    }
    status_clear();
}

static void test_types(void)
{
    static const struct {
        const char *word;
        hsort_type type;
    } cases[] = {{"u64", HSORT_U64},
                 {"uint64", HSORT_U64},
                 {"<u8", HSORT_U64},
                 {"float64", HSORT_F64},
                 {"<f8", HSORT_F64},
                 {"double", HSORT_F64},
                 {"|u1", HSORT_U8},
                 {"uint128_t", HSORT_U128},
                 {"bfloat16", HSORT_BF16},
                 {"short", HSORT_I16},
                 {"unsigned short", HSORT_U16},
                 {"ushort", HSORT_U16}};
    static const char *const none[] = {"u24", "", "U64", "float", "int", "long", "char", "unsigned", "uint"};
    hsort_type type;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(cli_parse_type(cases[i].word, &type) && type == cases[i].type, "%s", cases[i].word);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(!cli_parse_type(none[i], &type), "'%s' is no type", none[i]);
}

static void test_nearest(void)
{
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {"sorf", " (did you mean --sort?)"},
        {"srot", " (did you mean --sort?)"},
        {"sot", " (did you mean --sort?)"},
        {"sorrt", " (did you mean --sort?)"},
        {"SORT", " (did you mean --sort?)"},
        {"slot", ""},
        {"checkpiont", " (did you mean --checkpoint?)"},
        {"chekpoin", " (did you mean --checkpoint?)"},
        {"bananas", ""},
        {"chexky", " (did you mean --check?)"},
        {"chexx", ""},
        {"so", ""},
        {"", ""},
        {"x", ""},
        {"slut", ""},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnop", ""},
        {"u8", " (did you mean --u8?)"},
        {"U8", " (did you mean --u8?)"},
        {"u9", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nearest nearest;
        char hint[NEAREST_HINT];
        nearest_begin(&nearest, cases[i].text, strlen(cases[i].text));
        nearest_offer_all(&nearest,
                          "u8|sort|soft|checkpoint|check|a_word_of_more_letters_than_are_looked_at");
        nearest_hint(&nearest, "--", hint);
        CHECK(strcmp(hint, cases[i].hint) == 0, "'%s':%s", cases[i].text, hint);
    }
}

/* What a terminal is shown of a name. */
static void test_printable(void)
{
    static const char *const cases[][2] = {
        {"pos", "pos"},
        {"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80", "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80"},
        {"a\x1b[2J\x7f", "a?[2J?"},
        {"\xe9", "?"},                                         // Latin-1
        {"\xc2\x9b", "??"},                                    // a control of one character
        {"\xe2\x80\xae", "???"},                               // turns the line round
        {"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80", "?????????"}, // too long, half a pair, beyond the last
        {"\xe2\x80\xa8\xe2\x81\xa9", "??????"},                // ends the line, and such a turn
        {"\xe0\x82\xaf", "???"},                               // too long
        {"\xc3\xe9", "??"},                                    // no second byte
        {"\xe4\xb8", "??"},                                    // cut off
        {"0123456789012345678901234567", "0123456789012345678901234567"},
        {"012345678901234567890123456\xc3\xa9", "012345678901234567890123456..."}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[32];
        npy_printable((struct npy_word){cases[i][0], strlen(cases[i][0])}, shown);
        CHECK(strcmp(shown, cases[i][1]) == 0, "case %zu: '%s'", i, shown);
    }
}

/* options = a command line, whose words [256] must outlast them. */
static void parse_line(const char *line, char *words, struct cli_options *options)
{
    char *argv[16] = {"hypersort"};
    int argc = 1;
    snprintf(words, 256, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    CHECK(cli_parse(argc, argv, options) == HSORT_OK, "%s: %s", line, status_text());
}

/* Ranks see of two command lines what is not the same in them, of numbers that differ in their upper half as well. */
static void test_digests(void)
{
    static const struct {
        const char *one, *other, *name;
    } cases[] = {
        {"sort in -o out --device-memory 1G", "sort in -o out --device-memory 5G", "--device-memory"},
        {"gen -o out -n 1", "gen -o out -n 4294967297", "--count"},
        {"gen -o out -n 1 -s 1", "gen -o out -n 1 -s 4294967297", "--seed"},
        {"plan in -n 2 --merge-gbs 1", "plan in -n 2 --merge-gbs 2", "--merge-gbs"},
        {"plan in -n 2 --link-us 1", "plan in -n 2 --link-us 2", "--link-us"},
        {"plan in -n 2 -n 3", "plan in -n 2 -n 4", "--ranks"},
        {"check in --against a --against b", "check in --against ab", "--against"},
        {"sort a b -o out", "sort ab -o out", "IN"},
        {"sort in -o a", "sort in -o b", "--output"},
        {"sort in -o a -r", "sort in -o a", "--reverse"},
        {"sort in -o out --threads 1", "sort in -o out --threads 2", NULL},
        {"sort in -o out", "sort -o out in", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t one[CLI_DIGESTS], other[CLI_DIGESTS];
        struct cli_options options;
        char words[256], name[CLI_DIGEST_NAME];
        bool found = !cases[i].name;
        parse_line(cases[i].one, words, &options);
        cli_digest(&options, one);
        parse_line(cases[i].other, words, &options);
        cli_digest(&options, other);
        for (int place = 0; place < CLI_DIGESTS; place++) {
            const bool same = one[place] == other[place];
            const bool named =
                !same && cases[i].name && strcmp(cli_digest_name(&options, place, name), cases[i].name) == 0;
            CHECK(same || named, "%s, %s: place %d", cases[i].one, cases[i].other, place);
            found = found || named;
        }
        CHECK(found, "%s, %s: the same", cases[i].one, cases[i].other);
    }
}

static bool is_near(double number, double wanted)
{
    return number >= wanted * (1 - 1e-12) && number <= wanted * (1 + 1e-12);
}

/* What bench makes of times that are given. */
static void test_bench(void)
{
    double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2};
    const struct bench_time of_odd = bench_time_of(odd, 5), of_even = bench_time_of(even, 4);
    CHECK(of_odd.repeats == 5 && is_near(of_odd.median, 3) && is_near(of_odd.least, 1) &&
              is_near(of_odd.most, 5),
          "%g", of_odd.median);
    CHECK(of_even.repeats == 4 && is_near(of_even.median, 2.5) && is_near(of_even.most, 4), "%g",
          of_even.median);
    struct bench_row row = {.keys = 6000000000, .time = {3, 2, 1, 9}, .right = true};
    CHECK(bench_ratio(&row) <= 0, "a ratio without another library");
    row.yardsticks[0] = (struct bench_time){3, 5, 1, 9};
    CHECK(is_near(bench_ratio(&row), 2.5), "%g", bench_ratio(&row));
    row.yardsticks[1] = (struct bench_time){3, 4, 3, 9};
    CHECK(is_near(bench_ratio(&row), 2), "%g", bench_ratio(&row)); // beside the faster one

    enum { MIXTURES = 21 };
    const struct bench_input input = {.word = "mixtures:21", .mixtures = MIXTURES};
    for (int by_ratio = 0; by_ratio < 2; by_ratio++) {
        struct bench_row rows[MIXTURES];
        for (int i = 0; i < MIXTURES; i++) {
            const int figure = 1 + (8 * i + 3) % MIXTURES; // each of 1 to 21
            rows[i] =
                (struct bench_row){.keys = 840000000, .time = {1, 0.84 / figure, 0, 0}, .right = i % 10 > 0};
            if (by_ratio)
                rows[i].yardsticks[0] = (struct bench_time){1, 8.4, 0, 0};
            snprintf(rows[i].input, sizeof rows[i].input, "%d", figure);
        }
        const struct bench_mixtures found = bench_mixtures_of(&input, rows);
        const double times = by_ratio ? 10 : 1;
        CHECK(is_near(found.worst, times) && is_near(found.tenth, 3 * times) &&
                  is_near(found.median, 11 * times),
              "%g %g %g", found.worst, found.tenth, found.median);
        CHECK(found.count == MIXTURES && found.wrong == 3 && found.by_ratio == by_ratio &&
                  strcmp(found.row.input, "1") == 0,
              "%d of %d, worst %s", found.wrong, found.count, found.row.input);
    }
}

/* Figures for people. */
static void test_figures(void)
{
    static const struct {
        double number;
        const char *time, *figure;
    } cases[] = {{0.00001234567, "12.35 us", "1.235e-05 B"},
                 {0.012, "12 ms", "0.012 B"},
                 {1, "1 s", "1 B"},
                 {12345, "12345 s", "12.35 kB"},
                 {2.5e9, "2500000000 s", "2.5 GB"}};
    char text[REPORT_FIGURE_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(strcmp(report_time(cases[i].number, text), cases[i].time) == 0, "'%s', not '%s'", text,
              cases[i].time);
        CHECK(strcmp(report_figure(cases[i].number, "B", text), cases[i].figure) == 0, "'%s', not '%s'", text,
              cases[i].figure);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    uint64_t random = ranks_seed();
    test_numbers();
    test_drawn(&random);
    test_options();
    test_types();
    test_nearest();
    test_printable();
    test_digests();
    test_bench();
    test_figures();
    return ranks_finish();
}
