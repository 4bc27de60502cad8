/* The records of the sort benchmarks: those that gensort makes, whatever part is made, and what valsort says about any
 * records, whatever pieces they are cut into. */
#include "tests/support/check.h"
#include "src/files/gensort.h"
#include <inttypes.h>
#include <omp.h>

enum { BYTES = GENSORT_RECORD_BYTES, KEY = GENSORT_KEY_BYTES, POISON = 0xa5 };

static const struct gensort kinds[] = {{false, false}, {true, false}, {false, true}, {true, true}};
static const char *const kind_names[] = {"binary", "ASCII", "skewed binary", "skewed ASCII"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static const uint128 far_first = UINT64_C(18446744073709551610); // 6 records below 2^64

static void *allocate(int64_t count)
{
    void *memory = malloc((size_t)count * BYTES + 1);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(memory, POISON, (size_t)count * BYTES + 1);
    return memory;
}

static struct gensort_summary look_at(const void *records, int64_t count)
{
    struct gensort_summary summary = {0};
    gensort_look(&summary, records, count);
    return summary;
}

static bool is_same(const struct gensort_summary *a, const struct gensort_summary *b)
{
    return a->checksum == b->checksum && a->records == b->records && a->unordered == b->unordered &&
           a->first_unordered == b->first_unordered && a->duplicates == b->duplicates &&
           memcmp(a->first, b->first, BYTES) == 0 && memcmp(a->last, b->last, BYTES) == 0;
}

static void check_text(uint128 checksum, const char *expected, const char *what)
{
    char text[33];
    memset(text, POISON, sizeof text);
    gensort_checksum_text(checksum, text);
    CHECK(strcmp(text, expected) == 0, "%s: checksum %.33s, not %s", what, text, expected);
}

/* ---- Plain loops --------------------------------------------------------------------------------------- */

static uint32_t plain_crc(const unsigned char *bytes, int count)
{
    uint32_t remainder = ~UINT32_C(0);
    for (int bit = 0; bit < 8 * count; bit++) {
        const uint32_t top = (remainder ^ (uint32_t)(bytes[bit / 8] >> bit % 8)) & 1;
        remainder = remainder >> 1 ^ (top ? UINT32_C(0xedb88320) : 0);
    }
    return ~remainder;
}

static struct gensort_summary plain_look(const unsigned char *records, int64_t count)
{
    struct gensort_summary summary = {.records = (uint64_t)count};
    for (int64_t i = 0; i < count; i++) {
        summary.checksum += plain_crc(records + i * BYTES, BYTES);
        const int order = i == 0 ? -1 : memcmp(records + (i - 1) * BYTES, records + i * BYTES, KEY);
        if (order > 0 && summary.unordered++ == 0)
            summary.first_unordered = (uint64_t)i;
        if (order == 0)
            summary.duplicates++;
    }
    if (count > 0) {
        memcpy(summary.first, records, BYTES);
        memcpy(summary.last, records + (count - 1) * BYTES, BYTES);
    }
    return summary;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, KEY);
}

/* ---- What gensort and valsort print -------------------------------------------------------------------- */

/* The checksums that gensort 1.5 prints (-c), and the duplicate keys that are there. */
static void test_vectors(void)
{
    enum { FEW = 1000, MANY = 1000000 };
    static const char *const few[KINDS] = {"1ea6370b955", "1f5dfb3631a", "1e96301166b", "1eef17d1cac"};
    static const char *const many[KINDS] = {"7a0e0d4868cd4", "7a19cff467438", "79f9a7e6de673",
                                            "7a135fbce6df2"};
    static const uint64_t duplicates[KINDS] = {0, 0, 0, 35};
    unsigned char *records = allocate(MANY);
    for (int k = 0; k < KINDS; k++) {
        memset(records, POISON, (size_t)MANY * BYTES + 1);
        gensort_fill(&kinds[k], 0, MANY, records);
        CHECK(records[(size_t)MANY * BYTES] == POISON, "%s: bytes behind the records", kind_names[k]);
        check_text(look_at(records, FEW).checksum, few[k], kind_names[k]);
        check_text(look_at(records, MANY).checksum, many[k], kind_names[k]);

        qsort(records, MANY, BYTES, compare_keys);
        const struct gensort_summary sorted = look_at(records, MANY);
        check_text(sorted.checksum, many[k], "sorted");
        CHECK(sorted.records == MANY && sorted.unordered == 0 && sorted.first_unordered == 0,
              "%s: sorted, but %" PRIu64 " are not", kind_names[k], sorted.unordered);
        CHECK(sorted.duplicates == duplicates[k], "%s: %" PRIu64 " duplicates", kind_names[k],
              sorted.duplicates);
    }
    gensort_fill(&kinds[0], far_first, 20, records);
    check_text(look_at(records, 20).checksum, "c28274221", "beyond 2^64");
    free(records);
}

/* 10^7 records, as a file is read: part by part. */
static void test_long_vector(void)
{
    enum { COUNT = 10000000, PART = 62500 };
    unsigned char *records = allocate(PART);
    struct gensort_summary summary = {0};
    for (int64_t first = 0; first < COUNT; first += PART) {
        gensort_fill(&kinds[1], (uint128)first, PART, records);
        gensort_look(&summary, records, PART);
    }
    CHECK(summary.records == COUNT, "%" PRIu64 " records", summary.records);
    check_text(summary.checksum, "4c48a881c779d5", "10^7 ASCII records");
    free(records);
}

static void test_layout(void)
{
    static const unsigned char key[KEY] = {0x4a, 0x69, 0x6d, 0x47, 0x72, 0x61, 0x79, 0x52, 0x49, 0x50};
    static const char line[BYTES + 1] = "AsfAGHM5om  00000000000000000000000000000000  "
                                        "0000222200002222000022220000222200002222000000001111\r\n";
    unsigned char record[BYTES];
    gensort_fill(&kinds[0], 0, 1, record);
    CHECK(memcmp(record, key, KEY) == 0, "the first binary key");
    gensort_fill(&kinds[1], 0, 1, record);
    CHECK(memcmp(record, line, BYTES) == 0, "the first ASCII record: %.100s", (const char *)record);
    gensort_fill(&kinds[1], (uint128)0xABCDEF << 64 | 0x19, 1, record);
    CHECK(memcmp(record + 12, "0000000000ABCDEF0000000000000019", 32) == 0, "a number of more than 64 bits");
}

/* Skewed keys of records whose numbers have `length` bits begin as the key of record `length`, or as their own. */
static void test_skew(int length)
{
    enum { COUNT = 128, MOST = 6 };
    unsigned char shared[BYTES], plain[COUNT * BYTES], skewed[COUNT * BYTES];
    const uint128 least = (uint128)1 << (length - 1);
    const uint128 firsts[] = {least, least + (least - COUNT)};
    for (int k = 0; k < 2; k++) {
        gensort_fill(&kinds[k], (uint128)length, 1, shared);
        for (int f = 0; f < 2; f++) {
            int alike = 0;
            gensort_fill(&kinds[k], firsts[f], COUNT, plain);
            gensort_fill(&kinds[k + 2], firsts[f], COUNT, skewed);
            for (int i = 0; i < COUNT; i++) {
                const unsigned char *key = skewed + i * BYTES, *own = plain + i * BYTES;
                const bool is_own = memcmp(key, own, KEY) == 0;
                alike += memcmp(key, shared, 2) == 0;
                CHECK(is_own || k == 0 || key[0] == shared[0], "%d bits: record %d", length, i);
                CHECK(memcmp(key + MOST, own + MOST, BYTES - MOST) == 0, "%d bits: record %d", length, i);
            }
            // Of 64 lengths of the shared part, 33 are 16 .. 48 bits; of 8, 5 are 2 .. 6 bytes.
            CHECK(alike > COUNT / 3 && alike < COUNT * 3 / 4, "%s: %d bits: %d keys begin alike",
                  kind_names[k + 2], length, alike);
        }
    }
}

/* ---- Any part of the records --------------------------------------------------------------------------- */

/* A range in pieces of random lengths, at addresses of any alignment, with bytes around that must stay. */
static void check_pieces(int kind, uint128 first, uint64_t *seed)
{
    enum { COUNT = 9000, SHIFT = 13 };
    unsigned char *whole = allocate(COUNT), *piece = allocate(COUNT + 1);
    gensort_fill(&kinds[kind], first, COUNT, whole);
    for (int64_t begin = 0; begin < COUNT;) {
        int64_t count = (int64_t)(check_random(seed) % (check_random(seed) % 4 == 0 ? 9000 : 100));
        count = count > COUNT - begin ? COUNT - begin : count;
        memset(piece, POISON, (size_t)(COUNT + 1) * BYTES);
        gensort_fill(&kinds[kind], first + (uint128)begin, count, piece + SHIFT);
        CHECK(memcmp(piece + SHIFT, whole + begin * BYTES, (size_t)count * BYTES) == 0,
              "%s: %" PRId64 " records from %" PRId64, kind_names[kind], count, begin);
        CHECK(piece[SHIFT - 1] == POISON && piece[SHIFT + count * BYTES] == POISON,
              "%s: bytes around the records", kind_names[kind]);
        begin += count;
    }
    free(whole);
    free(piece);
}

static void test_pieces(uint64_t *seed)
{
    const uint128 firsts[] = {0,
                              1,
                              far_first,
                              ((uint128)1 << 127) - 100,
                              ~(uint128)0 - 4500,
                              (uint128)check_random(seed) << 64 | check_random(seed)};
    for (int k = 0; k < KINDS; k++)
        for (size_t f = 0; f < sizeof firsts / sizeof firsts[0]; f++)
            check_pieces(k, firsts[f], seed);
}

/* The last number is followed by number 0. */
static void test_wrap(void)
{
    unsigned char around[4 * BYTES], begin[2 * BYTES];
    for (int k = 0; k < KINDS; k++) {
        gensort_fill(&kinds[k], ~(uint128)0 - 1, 4, around);
        gensort_fill(&kinds[k], 0, 2, begin);
        CHECK(memcmp(around + sizeof begin, begin, sizeof begin) == 0, "%s", kind_names[k]);
    }
}

static void test_threads(void)
{
    enum { COUNT = 30000 };
    static const int threads[] = {1, 2, 3, 7};
    unsigned char *one = allocate(COUNT), *several = allocate(COUNT);
    const int usual = omp_get_max_threads();
    for (int k = 0; k < KINDS; k++) {
        struct gensort_summary expected = {0};
        for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
            omp_set_num_threads(threads[t]);
            memset(several, POISON, (size_t)COUNT * BYTES);
            gensort_fill(&kinds[k], 12345, COUNT, several);
            const struct gensort_summary summary = look_at(several, COUNT);
            if (t == 0) {
                memcpy(one, several, (size_t)COUNT * BYTES);
                expected = plain_look(one, COUNT);
            }
            CHECK(memcmp(one, several, (size_t)COUNT * BYTES) == 0, "%s: %d threads", kind_names[k],
                  threads[t]);
            CHECK(is_same(&summary, &expected), "%s: the summary by %d threads", kind_names[k], threads[t]);
        }
    }
    omp_set_num_threads(usual);
    free(one);
    free(several);
}

/* ---- Summaries ----------------------------------------------------------------------------------------- */

static void test_crc(void)
{
    unsigned char record[BYTES];
    CHECK(plain_crc((const unsigned char *)"123456789", 9) == UINT32_C(0xcbf43926), "the plain CRC-32");
    for (int bit = -1; bit < 8 * BYTES; bit++) {
        memset(record, 0, sizeof record);
        if (bit >= 0)
            record[bit / 8] = (unsigned char)(1 << bit % 8);
        CHECK(look_at(record, 1).checksum == plain_crc(record, BYTES), "CRC-32 of bit %d", bit);
    }
}

/* Random records with keys that repeat and descend: each differs from another only in bytes `at` and 9. */
static void make_random(unsigned char *records, int64_t count, bool sorted, uint64_t *seed)
{
    const uint64_t values = 1 + check_random(seed) % 4;
    const int at = (int)(check_random(seed) % KEY);
    for (int64_t i = 0; i < count; i++) {
        unsigned char *record = records + i * BYTES;
        memset(record, 0x80, KEY);
        record[at] = (unsigned char)(check_random(seed) % values * 85); // 0 .. 255: no sign
        record[9] = (unsigned char)(check_random(seed) % values);
        for (int byte = KEY; byte < BYTES; byte++)
            record[byte] = (unsigned char)check_random(seed);
    }
    if (sorted)
        qsort(records, (size_t)count, BYTES, compare_keys);
}

/* Summaries of neighbouring parts are joined in random order, as by a tree of ranks, some of them from bytes. */
static struct gensort_summary join_randomly(struct gensort_summary *parts, int count, uint64_t *seed)
{
    unsigned char bytes[GENSORT_SUMMARY_BYTES];
    for (; count > 1; count--) {
        const int left = (int)(check_random(seed) % (uint64_t)(count - 1));
        gensort_join(&parts[left], &parts[left + 1]);
        memmove(&parts[left + 1], &parts[left + 2], (size_t)(count - left - 2) * sizeof *parts);
        if (parts[left].records > 0 && check_random(seed) % 2 == 0) {
            gensort_write_summary(&parts[left], bytes);
            memset(&parts[left], POISON, sizeof parts[left]);
            CHECK(gensort_read_summary(&parts[left], bytes), "a summary that was written was not read");
        }
    }
    return parts[0];
}

static void test_joins(uint64_t *seed)
{
    enum { DRAWS = 3000, MOST = 60, PARTS = 7 };
    unsigned char records[MOST * BYTES + 1];
    for (int draw = 0; draw < DRAWS; draw++) {
        const int64_t count = (int64_t)(check_random(seed) % (MOST + 1));
        unsigned char *begin = records + check_random(seed) % 2;
        struct gensort_summary parts[PARTS], added = {0};
        make_random(begin, count, check_random(seed) % 2 == 0, seed);
        const struct gensort_summary expected = plain_look(begin, count);
        int64_t at = 0;
        memset(parts, 0, sizeof parts);
        for (int p = 0; p < PARTS; p++) {
            const uint64_t left = (uint64_t)(count - at);
            const int64_t length = (int64_t)(p == PARTS - 1 ? left : check_random(seed) % (left + 1) / 2);
            gensort_look(&parts[p], begin + at * BYTES, length);
            gensort_look(&added, begin + at * BYTES, length);
            at += length;
        }
        const struct gensort_summary whole = look_at(begin, count);
        const struct gensort_summary joined = join_randomly(parts, PARTS, seed);
        CHECK(is_same(&whole, &expected), "draw %d: %" PRId64 " records at once", draw, count);
        CHECK(is_same(&added, &expected), "draw %d: %" PRId64 " records part by part", draw, count);
        CHECK(is_same(&joined, &expected), "draw %d: %" PRId64 " records by a tree", draw, count);
    }
}

/* What is wrong with records that were in order is found, and where. */
static void test_damage(uint64_t *seed)
{
    enum { COUNT = 5000, DRAWS = 50 };
    unsigned char *records = allocate(COUNT), other[BYTES];
    gensort_fill(&kinds[0], 0, COUNT, records);
    qsort(records, COUNT, BYTES, compare_keys);
    const struct gensort_summary good = look_at(records, COUNT);
    CHECK(good.unordered == 0 && good.duplicates == 0, "the records were not in order");
    for (int draw = 0; draw < DRAWS; draw++) {
        const int64_t i = (int64_t)(check_random(seed) % (COUNT - 1));
        unsigned char *record = records + i * BYTES, *next = record + BYTES;
        struct gensort_summary bad;
        memcpy(other, record, BYTES);
        memcpy(record, next, BYTES);
        memcpy(next, other, BYTES);
        bad = look_at(records, COUNT);
        CHECK(bad.unordered == 1 && bad.first_unordered == (uint64_t)i + 1 && bad.checksum == good.checksum,
              "records %" PRId64 " and the next changed places", i);
        memcpy(next, record, BYTES);
        memcpy(record, other, BYTES);

        unsigned char *byte = record + KEY + check_random(seed) % (BYTES - KEY);
        const unsigned char change = (unsigned char)(1 + check_random(seed) % 255);
        *byte ^= change;
        bad = look_at(records, COUNT);
        CHECK(bad.unordered == 0 && bad.checksum != good.checksum, "a byte of record %" PRId64, i);
        *byte ^= change;

        memcpy(other, next, BYTES);
        memcpy(next, record, BYTES);
        bad = look_at(records, COUNT);
        CHECK(bad.unordered == 0 && bad.duplicates == 1 && bad.checksum != good.checksum,
              "record %" PRId64 " twice", i);
        memcpy(next, other, BYTES);
    }
    CHECK(look_at(records, COUNT).checksum == good.checksum, "the records were not mended");
    free(records);
}

/* ---- Summaries as bytes -------------------------------------------------------------------------------- */

static void put_number(unsigned char *bytes, int number, uint64_t high, uint64_t low)
{
    memcpy(bytes + 16 * number, &high, 8);
    memcpy(bytes + 16 * number + 8, &low, 8);
}

/* valsort's order: first unordered, unordered, records, duplicates, checksum. */
static void test_bytes(void)
{
    struct gensort_summary summary = {.records = 10, .unordered = 2, .first_unordered = 5, .duplicates = 3};
    unsigned char bytes[GENSORT_SUMMARY_BYTES + 2], expected[GENSORT_SUMMARY_BYTES];
    summary.checksum = (uint128)7 << 64 | 0x1234;
    memset(summary.first, 'f', BYTES);
    memset(summary.last, 'l', BYTES);
    put_number(expected, 0, 0, 5);
    put_number(expected, 1, 0, 2);
    put_number(expected, 2, 0, 10);
    put_number(expected, 3, 0, 3);
    put_number(expected, 4, 7, 0x1234);
    memset(expected + 80, 'f', BYTES);
    memset(expected + 180, 'l', BYTES);
    memset(bytes, POISON, sizeof bytes);
    gensort_write_summary(&summary, bytes + 1);
    CHECK(memcmp(bytes + 1, expected, sizeof expected) == 0, "the bytes of a summary");
    CHECK(bytes[0] == POISON && bytes[GENSORT_SUMMARY_BYTES + 1] == POISON, "bytes around a summary");
    check_text(summary.checksum, "70000000000001234", "more than 64 bits");
    check_text(0, "0", "none");
}

/* Bytes that are no summary. {first unordered, unordered, records, duplicates} */
static void test_bad_bytes(void)
{
    static const struct {
        uint64_t numbers[4];
        bool good;
    } cases[] = {{{0, 0, 1, 0}, true},  {{0, 0, 9, 8}, true},  {{1, 8, 9, 0}, true},
                 {{3, 6, 9, 2}, true},  {{8, 1, 9, 7}, true},  {{0, 0, 0, 0}, false},
                 {{0, 1, 9, 0}, false}, {{1, 0, 9, 0}, false}, {{1, 9, 9, 0}, false},
                 {{0, 0, 9, 9}, false}, {{4, 6, 9, 0}, false}, {{9, 1, 9, 0}, false},
                 {{1, 6, 9, 3}, false}, {{1, 1, 1, 0}, false}, {{1, UINT64_MAX, 2, UINT64_MAX}, false}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct gensort_summary summary, before;
        unsigned char bytes[GENSORT_SUMMARY_BYTES] = {0};
        for (int n = 0; n < 4; n++)
            put_number(bytes, n, 0, cases[c].numbers[n]);
        memset(&summary, POISON, sizeof summary);
        before = summary;
        CHECK(gensort_read_summary(&summary, bytes) == cases[c].good, "case %zu", c);
        CHECK(cases[c].good || is_same(&summary, &before), "case %zu: the summary was changed", c);
        for (int n = 0; n < 4; n++) {
            put_number(bytes, n, 1, cases[c].numbers[n]);
            CHECK(!gensort_read_summary(&summary, bytes), "case %zu: number %d of more than 64 bits", c, n);
            put_number(bytes, n, 0, cases[c].numbers[n]);
        }
    }
}

int main(void)
{
    uint64_t seed = check_seed();
    printf("seed %" PRIu64 "\n", seed);
    test_layout();
    test_vectors();
    test_long_vector();
    for (int length = 9; length <= 128; length++)
        test_skew(length);
    test_pieces(&seed);
    test_wrap();
    test_threads();
    test_crc();
    test_joins(&seed);
    test_damage(&seed);
    test_bytes();
    test_bad_bytes();
    return check_failures > 0;
}
