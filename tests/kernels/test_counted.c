/* Keys of 1 and 2 bytes in an engine: how often each is there, and writing them anew, against loops that do one key at a time:
 * `test_counted host [THREADS]` or `cuda`. */
#include "tests/kernels/engine_test.h"

static const int64_t counts[] = {0, 1, 2, 15, 16, 17, 255, 4096, 4099, 70001, 300007};
enum { COUNTS = sizeof counts / sizeof counts[0], MANY = 2000003 };

static int64_t values_of(int key_bytes)
{
    return INT64_C(1) << 8 * key_bytes;
}

/* Count keys twice, so that the second time adds to the first, and compare. */
static void check_count(int key_bytes, enum pattern pattern, int64_t count, uint64_t *random)
{
    char what[96];
    const int64_t values = values_of(key_bytes);
    const size_t bytes = (size_t)(count * key_bytes), table = (size_t)values * sizeof(int64_t);
    char *keys = keys_new(pattern, key_bytes, count, random);
    int64_t *expected = alloc_or_exit(table);
    snprintf(what, sizeof what, "%s, %s, %lld keys of %d bytes", ops->name, pattern_names[pattern],
             (long long)count, key_bytes);
    for (int64_t value = 0; value < values; value++)
        expected[value] = (int64_t)(check_random(random) % 3) << 40; // what was counted before
    struct buffer in = buffer_new(keys, bytes, (size_t)key_bytes * (check_random(random) % 17));
    struct buffer found = buffer_new(expected, table, 8 * (check_random(random) % 3));
    for (int64_t i = 0; i < count; i++)
        expected[(int64_t)key_load(key_bytes, keys, i)] += 2;
    for (int turn = 0; turn < 2; turn++)
        must(ops->count_keys(engine, key_bytes, buffer_keys(&in), count, buffer_keys(&found)), what);
    const int64_t wrong = first_difference(buffer_result(&found, what), expected, sizeof(int64_t), values);
    CHECK(wrong < 0, "%s: value %lld is counted wrongly", what, (long long)wrong);
    CHECK(memcmp(buffer_result(&in, what), keys, bytes) == 0, "%s: a key has changed", what);
    buffer_free(&in);
    buffer_free(&found);
    free(expected);
    free(keys);
}

static void test_count(uint64_t random)
{
    static const enum pattern patterns[] = {UNIFORM,  SORTED,     EQUAL,  TWO_VALUES,
                                            ALL_ONES, MAGNITUDES, OUTLIER};
    for (int key_bytes = 1; key_bytes <= 2; key_bytes++) {
        for (int i = 0; i < COUNTS; i++)
            for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
                check_count(key_bytes, patterns[p], counts[i], &random);
        check_count(key_bytes, EQUAL, MANY, &random); // a counter of a block passes 16 bits
        check_count(key_bytes, TWO_VALUES, MANY, &random);
        check_count(key_bytes, UNIFORM, MANY, &random);
    }
}

/* Runs of equal keys. Some runs are long and many are short; the keys themselves are in any order. */
struct counted_keys {
    int key_bytes;
    int64_t values, total;
    char *keys, *all; /* [values]; [total] what they stand for */
    int64_t *ends;    /* [values] */
};

static struct counted_keys draw_counted(int key_bytes, int64_t values, uint64_t longest, uint64_t *random)
{
    struct counted_keys c = {.key_bytes = key_bytes, .values = values};
    c.keys = keys_new(UNIFORM, key_bytes, values, random);
    c.ends = alloc_or_exit((size_t)values * sizeof *c.ends + 1);
    for (int64_t v = 0; v < values; v++)
        c.ends[v] = c.total += 1 + (int64_t)(check_random(random) % (check_random(random) % 8 ? 5 : longest));
    c.all = alloc_or_exit((size_t)(c.total * key_bytes) + 1);
    for (int64_t v = 0, i = 0; v < values; v++)
        for (; i < c.ends[v]; i++)
            memcpy(c.all + i * key_bytes, c.keys + v * key_bytes, (size_t)key_bytes);
    return c;
}

/* Write keys first .. first + count - 1, between guards, at any place, and compare. */
static void check_write(const struct counted_keys *c, const struct buffer *keys, const struct buffer *ends,
                        int64_t first, int64_t count, uint64_t *random)
{
    char what[96];
    const struct engine_counted counted = {buffer_keys(keys), (const int64_t *)buffer_keys(ends), c->values};
    snprintf(what, sizeof what, "%s, keys %lld + %lld of %lld, %lld values of %d bytes", ops->name,
             (long long)first, (long long)count, (long long)c->total, (long long)c->values, c->key_bytes);
    struct buffer out =
        buffer_new(NULL, (size_t)(count * c->key_bytes), (size_t)c->key_bytes * (check_random(random) % 17));
    must(ops->write_counted(engine, c->key_bytes, &counted, first, count, buffer_keys(&out)), what);
    const int64_t wrong =
        first_difference(buffer_result(&out, what), c->all + first * c->key_bytes, c->key_bytes, count);
    CHECK(wrong < 0, "%s: key %lld is another", what, (long long)wrong);
    buffer_free(&out);
}

static void check_writes(int key_bytes, int64_t values, uint64_t longest, uint64_t *random)
{
    struct counted_keys c = draw_counted(key_bytes, values, longest, random);
    struct buffer keys = buffer_new(c.keys, (size_t)(values * key_bytes), (size_t)key_bytes),
                  ends = buffer_new(c.ends, (size_t)values * sizeof *c.ends, 8);
    check_write(&c, &keys, &ends, 0, c.total, random);
    check_write(&c, &keys, &ends, c.total, 0, random);
    for (int turn = 0; turn < 12; turn++) {
        const int64_t first = (int64_t)(check_random(random) % (uint64_t)c.total), left = c.total - first;
        check_write(&c, &keys, &ends, first, 1 + (int64_t)(check_random(random) % (uint64_t)left), random);
    }
    buffer_free(&keys);
    buffer_free(&ends);
    free(c.keys);
    free(c.ends);
    free(c.all);
}

static void test_write(uint64_t random)
{
    for (int key_bytes = 1; key_bytes <= 2; key_bytes++)
        for (int64_t values = 1; values <= values_of(key_bytes); values *= 4) {
            check_writes(key_bytes, values, 6, &random);
            check_writes(key_bytes, values, values > 1000 ? 200 : 70000, &random);
        }
}

/* Count every key of a type, each once, and write them in the order of their codes: it must be the order that is written down. */
static void test_all_values(hsort_type type, hsort_order order, uint64_t *random)
{
    const struct keymap map = keymap_make(type, order);
    const int64_t values = values_of(map.key_bytes);
    char *keys = alloc_or_exit((size_t)(values * map.key_bytes)),
         *expected = alloc_or_exit((size_t)(values * map.key_bytes));
    int64_t *table = alloc_or_exit((size_t)values * sizeof *table),
            *ends = alloc_or_exit((size_t)values * sizeof *ends);
    int64_t entries = 0;
    for (int64_t i = 0; i < values; i++)
        store(map.key_bytes, keys, i, (key_code)((i * 40503 + 7) % values)); // each once: 40503 is odd
    memcpy(expected, keys, (size_t)(values * map.key_bytes));
    order_sort(type, order, expected, values);
    memset(table, 0, (size_t)values * sizeof *table);
    struct buffer in = buffer_new(keys, (size_t)(values * map.key_bytes), 0);
    struct buffer counts_of = buffer_new(table, (size_t)values * sizeof *table, 0);
    must(ops->count_keys(engine, map.key_bytes, buffer_keys(&in), values, buffer_keys(&counts_of)), "count");
    memcpy(table, buffer_result(&counts_of, "count"), (size_t)values * sizeof *table);
    for (int64_t code = 0, end = 0; code < values; code++) {
        const key_code bits = keymap_decode(map, (key_code)code);
        store(map.key_bytes, keys, entries, bits);
        ends[entries++] = end += table[(int64_t)bits];
    }
    struct buffer sorted_keys = buffer_new(keys, (size_t)(values * map.key_bytes), 0),
                  sorted_ends = buffer_new(ends, (size_t)values * sizeof *ends, 0);
    const struct counted_keys c = {map.key_bytes, entries, values, keys, expected, ends};
    check_write(&c, &sorted_keys, &sorted_ends, 0, values, random);
    buffer_free(&in);
    buffer_free(&counts_of);
    buffer_free(&sorted_keys);
    buffer_free(&sorted_ends);
    free(keys);
    free(expected);
    free(table);
    free(ends);
}

int main(int argc, char **argv)
{
    uint64_t seed = check_seed();
    open_engine(argc, argv);
    printf("test_counted %s: seed %llu\n", ops->name, (unsigned long long)seed);
    test_count(seed);
    test_write(seed);
    for (int type = 0; type < ORDER_TYPES; type++)
        for (int order = HSORT_ASCENDING; order <= HSORT_DESCENDING; order++)
            if (KEY_IS_COUNTED(hsort_type_bytes((hsort_type)type)))
                test_all_values((hsort_type)type, (hsort_order)order, &seed);
    ops->close(engine);
    return check_failures > 0;
}
