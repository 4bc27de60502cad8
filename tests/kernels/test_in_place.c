/* Sorting with scratch for only a part of the keys, and the cut and the swap that such a sort is made of, against a sort by
 * value (radix_order.h): `test_in_place host [THREADS]` or `cuda`. Buffers lie between guards, so that a window that is
 * one key too wide is seen, and so is use of scratch beyond what was given. */
#include "kernels/in_place.h"
#include "tests/kernels/engine_test.h"

enum {
    RUNG_RADIX = 7,
    RUNG_RADIX_WIDE = 8, // for keys for which rung 7 has no kernels
    RUNG_NETWORK = 1,
    DRAWN_FROM = 65536, // keys
#ifdef __SANITIZE_ADDRESS__
    MANY = 300007,
    NETWORK_MOST = 20000
#else
    MANY = 1000003,
    NETWORK_MOST = 300000 // the most keys that a network is given
#endif
};

/* ---- what a GPU does not forgive ------------------------------------------------------------------------------- */

/* A merge or a copy that overwrites what it has yet to read may go well on one core, key after key, and goes wrong on a
 * GPU, where all tiles run at once. So each is looked at on its way to the engine. */
static const struct engine_ops *true_ops;

static bool apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    const uintptr_t a_first = (uintptr_t)a, b_first = (uintptr_t)b;
    return a_bytes == 0 || b_bytes == 0 || a_first + a_bytes <= b_first || b_first + b_bytes <= a_first;
}

static hsort_status merge_apart(struct engine *e, int key_bytes, const void *a, int64_t a_count,
                                const void *b, int64_t b_count, void *out)
{
    const size_t a_bytes = (size_t)(a_count * key_bytes), b_bytes = (size_t)(b_count * key_bytes);
    CHECK(apart(out, a_bytes + b_bytes, a, a_bytes) && apart(out, a_bytes + b_bytes, b, b_bytes),
          "a merge of %lld and %lld keys overwrites what it reads", (long long)a_count, (long long)b_count);
    return true_ops->merge(e, key_bytes, a, a_count, b, b_count, out);
}

static hsort_status copy_apart(struct engine *e, enum engine_stream stream, void *to, const void *from,
                               size_t bytes)
{
    CHECK(apart(to, bytes, from, bytes), "a copy of %zu bytes overwrites what it reads", bytes);
    return true_ops->copy(e, stream, to, from, bytes);
}

static hsort_status swap_apart(struct engine *e, int key_bytes, void *a, void *b, int64_t count)
{
    CHECK(apart(a, (size_t)(count * key_bytes), b, (size_t)(count * key_bytes)),
          "a swap of %lld keys overlaps", (long long)count);
    return true_ops->swap(e, key_bytes, a, b, count);
}

static void look_at_calls(void)
{
    static struct engine_ops looked_at;
    true_ops = engine->ops;
    looked_at = *true_ops;
    looked_at.merge = merge_apart;
    looked_at.copy = copy_apart;
    looked_at.swap = swap_apart;
    engine->ops = ops = &looked_at;
}

/* ---- cut, swap ------------------------------------------------------------------------------------------------- */

static key_code key_at(const char *keys, int key_bytes, int64_t i)
{
    key_code key = 0;
    memcpy(&key, keys + i * key_bytes, (size_t)key_bytes); // little-endian
    return key;
}

/* Walk through the whole merge of a and b and compare every cut, or some, with where the walk stands. */
static void check_cuts(int key_bytes, int64_t a_count, int64_t b_count, uint64_t values, uint64_t *random)
{
    char what[96];
    snprintf(what, sizeof what, "%s, cut of u%d, %lld and %lld keys of %llu values", ops->name, 8 * key_bytes,
             (long long)a_count, (long long)b_count, (unsigned long long)values);
    const int64_t count = a_count + b_count, step = count / 50 + 1;
    char *keys = alloc_or_exit((size_t)(count * key_bytes) + 1), *b_keys = keys + a_count * key_bytes;
    for (int64_t i = 0; i < count; i++) {
        const uint64_t low = check_random(random) % values;
        const key_code key = key_bytes == 16 ? (key_code)(low / 2) << 64 | low : low;
        memcpy(keys + i * key_bytes, &key, (size_t)key_bytes);
    }
    sort_on_host(key_bytes, keys, a_count);
    sort_on_host(key_bytes, b_keys, b_count);
    struct buffer a = buffer_new(keys, (size_t)(a_count * key_bytes), (size_t)key_bytes),
                  b = buffer_new(b_keys, (size_t)(b_count * key_bytes), 3 * (size_t)key_bytes);
    for (int64_t outputs = 0, from_a = 0; outputs <= count; outputs++) {
        const int64_t from_b = outputs - from_a;
        if (outputs % step == 0 || outputs == count) {
            int64_t found = -1;
            must(ops->cut(engine, key_bytes, buffer_keys(&a), a_count, buffer_keys(&b), b_count, outputs,
                          &found),
                 what);
            CHECK(found == from_a, "%s: at %lld it is %lld instead of %lld", what, (long long)outputs,
                  (long long)found, (long long)from_a);
        }
        from_a += from_a < a_count &&
                  (from_b == b_count || key_at(keys, key_bytes, from_a) <= key_at(b_keys, key_bytes, from_b));
    }
    buffer_free(&a);
    buffer_free(&b);
    free(keys);
}

static void check_swap(int key_bytes, int64_t count, uint64_t *random)
{
    char what[64];
    snprintf(what, sizeof what, "%s, swap of %lld u%d", ops->name, (long long)count, 8 * key_bytes);
    const size_t bytes = (size_t)(count * key_bytes);
    void *keys = keys_new(UNIFORM, key_bytes, count, random),
         *others = keys_new(UNIFORM, key_bytes, count, random);
    struct buffer a = buffer_new(keys, bytes, (size_t)key_bytes), b = buffer_new(others, bytes, 0);
    must(ops->swap(engine, key_bytes, buffer_keys(&a), buffer_keys(&b), count), what);
    CHECK(first_difference(buffer_result(&a, what), others, key_bytes, count) < 0, "%s: a is wrong", what);
    CHECK(first_difference(buffer_result(&b, what), keys, key_bytes, count) < 0, "%s: b is wrong", what);
    buffer_free(&a);
    buffer_free(&b);
    free(keys);
    free(others);
}

static void test_parts(uint64_t random)
{
    static const int64_t counts[][2] = {{0, 0},    {0, 5},    {5, 0},       {1, 1},
                                        {3, 1000}, {1000, 3}, {1023, 1025}, {2500, 90000}};
    static const int64_t swaps[] = {0, 1, 2, 511, 512, 513, 2047, 2049, 70001};
    static const uint64_t values[] = {1, 7, UINT32_MAX};
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (int v = 0; v < 3; v++)
                check_cuts(key_bytes, counts[i][0], counts[i][1], values[v], &random);
        for (size_t i = 0; i < sizeof swaps / sizeof swaps[0]; i++)
            check_swap(key_bytes, swaps[i], &random);
    }
}

/* ---- sort ------------------------------------------------------------------------------------------------------ */

struct problem {
    int key_bytes;
    int64_t count;
    const char *pattern;
    const void *keys, *expected; /* [count] */
    size_t shift;                /* bytes off the alignment of alloc() */
};

static void check_sort(const struct problem *p, int rung, int64_t scratch_count)
{
    char what[128];
    snprintf(what, sizeof what, "%s, rung %d, %lld u%d, scratch for %lld, %s", ops->name, rung,
             (long long)p->count, 8 * p->key_bytes, (long long)scratch_count, p->pattern);
    size_t workspace_bytes;
    must(ops->sort_workspace(engine, rung, p->key_bytes, p->count, scratch_count, &workspace_bytes), what);
    struct buffer keys = buffer_new(p->keys, (size_t)p->count * (size_t)p->key_bytes, p->shift),
                  scratch = buffer_new(NULL, (size_t)scratch_count * (size_t)p->key_bytes, 2 * p->shift),
                  workspace = buffer_new(NULL, workspace_bytes, 0);
    void *sorted = NULL;
    must(ops->sort(engine, rung, p->key_bytes, buffer_keys(&keys),
                   scratch_count > 0 ? buffer_keys(&scratch) : NULL, scratch_count, p->count,
                   buffer_keys(&workspace), NULL, &sorted),
         what);
    const bool stayed = sorted == buffer_keys(&keys);
    CHECK(stayed || (sorted == buffer_keys(&scratch) && scratch_count >= p->count),
          "%s: the result is in neither buffer", what);
    buffer_guards(stayed ? &scratch : &keys, what);
    buffer_guards(&workspace, what);
    const int64_t wrong =
        first_difference(buffer_result(stayed ? &keys : &scratch, what), p->expected, p->key_bytes, p->count);
    CHECK(wrong < 0, "%s: key %lld is wrong", what, (long long)wrong);
    buffer_free(&keys);
    buffer_free(&scratch);
    buffer_free(&workspace);
}

static bool rung_takes(int rung, int key_bytes)
{
    size_t bytes;
    const hsort_status status = ops->sort_workspace(engine, rung, key_bytes, 1000, 1000, &bytes);
    status_clear();
    return status == HSORT_OK;
}

/* Sort with so little scratch that only a network can. If there is no network, the engine must say that memory is too little. */
static void check_network(const struct problem *p)
{
    size_t bytes;
    if (rung_takes(RUNG_NETWORK, p->key_bytes)) {
        check_sort(p, RUNG_NETWORK, 0);
        check_sort(p, -1, 0);
        check_sort(p, -1, p->count / (2 * ENGINE_CHUNKS_MAX));
    } else if (p->count > ENGINE_CHUNKS_MAX) {
        const hsort_status status = ops->sort_workspace(engine, -1, p->key_bytes, p->count, 0, &bytes);
        CHECK(status == HSORT_DEVICE_MEMORY && status_text()[0] != '\0', "u%d without scratch: status %d",
              8 * p->key_bytes, status);
        status_clear();
    }
}

/* Sort with all shares of scratch, down to so little that only a network can do with it. */
static void check_shares(const struct problem *p)
{
    const int radix = rung_takes(RUNG_RADIX, p->key_bytes) ? RUNG_RADIX : RUNG_RADIX_WIDE;
    static const int64_t shares[] = {1, 2, 3, 4, 5, 7, 16, 33, ENGINE_CHUNKS_MAX};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        const int64_t scratch_count = p->count / shares[i] + (p->count % shares[i] != 0);
        check_sort(p, radix, scratch_count);
        check_sort(p, -1, scratch_count);
        if (scratch_count < p->count && shares[i] < 8)
            check_sort(p, radix, scratch_count + 1);
    }
    if (p->count <= NETWORK_MOST)
        check_network(p);
}

/* Merge runs that lie one behind the other, some of them empty, into one. */
static void check_merge(int key_bytes, int64_t count, int64_t runs, int64_t scratch_count, uint64_t *random)
{
    char what[96];
    snprintf(what, sizeof what, "%s, %lld runs of %lld u%d, scratch for %lld", ops->name, (long long)runs,
             (long long)count, 8 * key_bytes, (long long)scratch_count);
    const size_t width = (size_t)key_bytes, bytes = (size_t)count * width;
    uint64_t *border = alloc_or_exit(((size_t)runs + 1) * sizeof *border);
    char *keys = keys_new(UNIFORM, key_bytes, count, random), *expected = alloc_or_exit(bytes + 1);
    for (int64_t i = 0; i <= runs; i++)
        border[i] = i == 0 ? 0 : i == runs ? (uint64_t)count : check_random(random) % (uint64_t)(count + 1);
    sort_on_host(sizeof *border, border, runs + 1);
    for (int64_t i = 0; i < runs; i++)
        sort_on_host(key_bytes, keys + border[i] * width, (int64_t)(border[i + 1] - border[i]));
    memcpy(expected, keys, bytes);
    sort_on_host(key_bytes, expected, count);
    struct buffer merged = buffer_new(keys, bytes, width * (check_random(random) % 16)),
                  scratch = buffer_new(NULL, (size_t)scratch_count * width, width);
    must(in_place_merge(engine, key_bytes, buffer_keys(&merged), (const int64_t *)border, runs,
                        buffer_keys(&scratch), scratch_count),
         what);
    buffer_guards(&scratch, what);
    CHECK(first_difference(buffer_result(&merged, what), expected, key_bytes, count) < 0, "%s: not merged",
          what);
    buffer_free(&merged);
    buffer_free(&scratch);
    free(border);
    free(keys);
    free(expected);
}

static void test_merges(uint64_t random)
{
    static const int64_t counts[] = {1, 2, 1000, 70001}, runs[] = {1, 2, 3, 8, 21},
                         shares[] = {1, 4, 33, 1000};
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
        for (int i = 0; i < 4 * 5 * 4; i++)
            check_merge(key_bytes, counts[i % 4], runs[i / 4 % 5], counts[i % 4] / shares[i / 20] + 1,
                        &random);
}

/* Is pattern number i left out? For many keys, a drawn run of the tests takes every third pattern, each time the next ones. */
static bool is_left_out(int i, int64_t count)
{
    static int turn = -1;
    if (count < DRAWN_FROM || getenv("ALL") || !getenv("HYPERSORT_SEED"))
        return false;
    if (turn < 0)
        turn = (int)(check_seed() % 3);
    if (i == 0)
        turn = (turn + 1) % 3;
    return i % 3 != turn;
}

static void test_count(int key_bytes, int64_t count, uint64_t *random)
{
    for (int i = 0; i < FEW_PATTERNS; i++) {
        if (is_left_out(i, count))
            continue;
        const enum pattern pattern = few_patterns[i];
        const size_t bytes = (size_t)count * (size_t)key_bytes;
        void *keys = keys_new(pattern, key_bytes, count, random), *expected = alloc_or_exit(bytes + 1);
        memcpy(expected, keys, bytes);
        sort_on_host(key_bytes, expected, count);
        check_shares(&(struct problem){key_bytes, count, pattern_names[pattern], keys, expected,
                                       (size_t)key_bytes * (check_random(random) % 16)});
        free(keys);
        free(expected);
    }
}

/* A rung that cannot do with so little scratch says so, and touches nothing. */
static void test_refusal(void)
{
    size_t bytes;
    void *sorted;
    uint64_t keys[1000] = {0};
    status_clear();
    hsort_status status = ops->sort_workspace(engine, RUNG_RADIX, 8, 1000, 15, &bytes);
    CHECK(status == HSORT_ARGUMENT && status_text()[0] != '\0', "workspace: status %d", status);
    status_clear();
    status = ops->sort(engine, RUNG_RADIX, 8, keys, NULL, 0, 1000, NULL, NULL, &sorted);
    CHECK(status == HSORT_ARGUMENT && status_text()[0] != '\0', "sort: status %d", status);
    status_clear();
    must(ops->sort_workspace(engine, RUNG_RADIX, 8, 1000, 16, &bytes), "the least scratch");
}

int main(int argc, char **argv)
{
    static const int64_t counts[] = {0,    1,    2,    3,    63,    64,     65,    1000,
                                     1023, 1024, 1025, 4097, 65536, 100003, 262145};
    uint64_t random = check_seed();
    open_engine(argc, argv);
    look_at_calls();
    printf("test_in_place %s: seed %llu\n", ops->name, (unsigned long long)random);
    test_parts(random);
    test_merges(random);
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
            test_count(key_bytes, counts[i], &random);
        test_count(key_bytes, MANY, &random);
    }
    test_refusal();
    close_engine();
    return check_failures > 0;
}
