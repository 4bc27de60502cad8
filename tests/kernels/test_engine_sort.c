/* The sort, the merges and the search of an engine, with every rung, against a sort by value (radix_order.h) and against
 * counting: `test_engine_sort host [THREADS]` or `cuda`. */
#include "tests/kernels/engine_test.h"

enum {
    RUNGS = 10,
    MOST_RUNS = 700,
#ifdef __SANITIZE_ADDRESS__
    MANY = 300007 // enough for bins that are partitioned again; more would take minutes
#else
    MANY = 3000017
#endif
};

/* ---- sort ---- */

/* Return how many keys a rung is given at most. Networks are slow. The host's network has one path, by several threads, from 2^15 keys
 * on; the networks of a GPU have tiles, and passes over several tiles. */
static int64_t most_of_rung(int rung)
{
    if (rung < 1 || rung > 4)
        return MANY;
    return (ops->kind == HSORT_ENGINE_HOST ? 1 << 15 : 1 << 17) + 1;
}

/* Does the engine have this rung, with kernels for such keys? If not it must say so with a status and a text. */
static bool rung_exists(int rung, int key_bytes)
{
    size_t bytes;
    status_clear();
    const hsort_status status = ops->sort_workspace(engine, rung, key_bytes, 1000, 1000, &bytes);
    CHECK(status == HSORT_OK || (status == HSORT_ARGUMENT && status_text()[0] != '\0'),
          "rung %d, u%d: status %d, \"%s\"", rung, 8 * key_bytes, status, status_text());
    status_clear();
    return status == HSORT_OK;
}

/* The workspace for many keys must do for fewer: two passes sort chunks of all sizes with the workspace of the largest. */
static void check_workspace_grows(int rung, int key_bytes)
{
    size_t before = 0, bytes = 0;
    for (int64_t count = 1; count < INT64_C(1) << 34; count += 1 + count / 37, before = bytes) {
        must(ops->sort_workspace(engine, rung, key_bytes, count, count, &bytes), "workspace");
        CHECK(bytes >= before, "%s, rung %d, u%d: %lld keys take %zu bytes, fewer %zu", ops->name, rung, 8 * key_bytes,
              (long long)count, bytes, before);
    }
}

static void check_sort(int rung, int key_bytes, int64_t count, const void *keys, const void *expected,
                       size_t shift, const char *pattern)
{
    char what[128];
    snprintf(what, sizeof what, "%s, rung %d, u%d, %lld keys, %s", ops->name, rung, 8 * key_bytes,
             (long long)count, pattern);
    size_t workspace_bytes;
    must(ops->sort_workspace(engine, rung, key_bytes, count, count, &workspace_bytes), what);
    const size_t bytes = (size_t)count * (size_t)key_bytes;
    struct buffer in = buffer_new(keys, bytes, shift), scratch = buffer_new(NULL, bytes, 2 * shift);
    struct buffer workspace = buffer_new(NULL, workspace_bytes, 0);
    void *sorted = NULL;
    must(ops->sort(engine, rung, key_bytes, buffer_keys(&in), buffer_keys(&scratch), count, count,
                   buffer_keys(&workspace), NULL, &sorted),
         what);
    const bool stayed = sorted == buffer_keys(&in);
    CHECK(stayed || sorted == buffer_keys(&scratch), "%s: the result is in neither buffer", what);
    buffer_guards(stayed ? &scratch : &in, what);
    buffer_guards(&workspace, what);
    const int64_t wrong =
        first_difference(buffer_result(stayed ? &in : &scratch, what), expected, key_bytes, count);
    CHECK(wrong < 0, "%s: key %lld is wrong", what, (long long)wrong);
    buffer_free(&in);
    buffer_free(&scratch);
    buffer_free(&workspace);
}

static void test_sort_count(const bool *rungs, int key_bytes, int64_t count, uint64_t *random)
{
    for (int pattern = 0; pattern < PATTERNS; pattern++) {
        const size_t bytes = (size_t)count * (size_t)key_bytes;
        void *keys = keys_new((enum pattern)pattern, key_bytes, count, random),
             *expected = alloc_or_exit(bytes + 1);
        memcpy(expected, keys, bytes);
        sort_on_host(key_bytes, expected, count);
        const size_t shift = (size_t)key_bytes * (check_random(random) % 16);
        for (int rung = -1; rung < RUNGS; rung++)
            if (rungs[rung + 1] && count <= most_of_rung(rung))
                check_sort(rung, key_bytes, count, keys, expected, shift, pattern_names[pattern]);
        free(keys);
        free(expected);
    }
}

static void test_sort(uint64_t random)
{
    static const int64_t counts[] = {0, 1, 2, 3, 31, 32, 33, 255, 257, 1000};
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2) {
        bool rungs[RUNGS + 1];
        int found = 0;
        for (int rung = -1; rung < RUNGS; rung++)
            if ((rungs[rung + 1] = rung_exists(rung, key_bytes))) {
                found++;
                check_workspace_grows(rung, key_bytes);
            }
        CHECK(rungs[0] && found >= 2, "the engine has %d rungs for u%d", found, 8 * key_bytes);
        CHECK(!rung_exists(RUNGS, key_bytes) && !rung_exists(-2, key_bytes), "a rung that does not exist");
        for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
            test_sort_count(rungs, key_bytes, counts[i], &random);
        for (int log_tile = 6; log_tile <= 17; log_tile++)
            for (int64_t count = (1 << log_tile) - 1; count <= (1 << log_tile) + 1; count++)
                test_sort_count(rungs, key_bytes, count, &random);
        test_sort_count(rungs, key_bytes, MANY, &random);
    }
}

/* Sort keys that agree in their leading bits, except three keys somewhere among them: in a sample all keys may seem to agree. */
static void test_rare_bits(uint64_t random)
{
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
        for (int low = 8; low < 8 * key_bytes; low += 24) {
            char *keys = keys_new(UNIFORM, key_bytes, MANY, &random);
            void *expected = alloc_or_exit((size_t)MANY * (size_t)key_bytes);
            for (int64_t i = 0; i < MANY; i++) {
                const key_code kept = key_load(key_bytes, keys, i) & (((key_code)1 << low) - 1);
                memcpy(keys + i * key_bytes, &kept, (size_t)key_bytes); // little-endian
            }
            for (int i = 0; i < 3; i++) {
                const key_code rare = (key_code)check_random(&random) << (8 * key_bytes - 8 - i);
                memcpy(keys + (int64_t)(check_random(&random) % MANY) * key_bytes, &rare, (size_t)key_bytes);
            }
            memcpy(expected, keys, (size_t)MANY * (size_t)key_bytes);
            sort_on_host(key_bytes, expected, MANY);
            check_sort(-1, key_bytes, MANY, keys, expected, 0, "rare leading bits");
            free(keys);
            free(expected);
        }
}

/* ---- keys of any type ---- */

/* Keys that are not codes yet. They lie in the buffer that the codes would lie in, or apart; they are wanted back as codes, or as they
 * were. */
struct given {
    int kind;
    hsort_order order;
    bool apart, decode, in_scratch;
};

static void check_given(struct given given, int64_t count, enum pattern pattern, uint64_t *random)
{
    char what[128];
    snprintf(what, sizeof what, "%s, %s %s%s%s, %lld keys, %s", ops->name, hsort_type_name((hsort_type)given.kind),
             given.order == HSORT_ASCENDING ? "ascending" : "descending", given.apart ? ", apart" : "",
             given.decode ? ", and back" : "", (long long)count, pattern_names[pattern]);
    const struct keymap map = keymap_make((hsort_type)given.kind, given.order);
    const int key_bytes = map.key_bytes;
    const size_t bytes = (size_t)count * (size_t)key_bytes, shift = given.apart ? (size_t)key_bytes : 0;
    void *keys = keys_new(pattern, key_bytes, count, random), *expected = alloc_or_exit(bytes + 1);
    memcpy(expected, keys, bytes);
    order_sort((hsort_type)given.kind, given.order, expected, count);
    for (int64_t i = 0; i < count && !given.decode; i++)
        store(key_bytes, expected, i, keymap_encode(map, key_load(key_bytes, expected, i)));

    size_t workspace_bytes;
    must(ops->sort_workspace(engine, -1, key_bytes, count, count, &workspace_bytes), what);
    struct buffer in = buffer_new(given.apart ? NULL : keys, bytes, shift);
    struct buffer scratch = buffer_new(NULL, bytes, 2 * shift),
                  workspace = buffer_new(NULL, workspace_bytes, 0);
    struct buffer from = buffer_new(keys, bytes, 3 * shift);
    const struct raw_keys raw = {.map = map,
                                 .from = buffer_keys(given.apart ? &from : &in),
                                 .decode = given.decode,
                                 .in_scratch = given.in_scratch};
    void *sorted = NULL;
    must(ops->sort(engine, -1, key_bytes, buffer_keys(&in), buffer_keys(&scratch), count, count,
                   buffer_keys(&workspace), &raw, &sorted),
         what);
    const bool stayed = sorted == buffer_keys(&in);
    CHECK(stayed || (sorted == buffer_keys(&scratch) && !given.decode),
          "%s: the result is not where it should be", what);
    buffer_guards(stayed ? &scratch : &in, what);
    buffer_guards(&workspace, what);
    int64_t wrong =
        first_difference(buffer_result(stayed ? &in : &scratch, what), expected, key_bytes, count);
    CHECK(wrong < 0, "%s: key %lld is wrong", what, (long long)wrong);
    wrong = first_difference(buffer_result(&from, what), keys, key_bytes, count);
    CHECK(wrong < 0, "%s: key %lld of the input has changed", what, (long long)wrong);
    struct buffer *const all[] = {&in, &scratch, &workspace, &from};
    for (int i = 0; i < 4; i++)
        buffer_free(all[i]);
    free(keys);
    free(expected);
}

/* Counts for one thread, block, cluster, and more. Each pattern and type is checked; the ways to give keys take turns. */
static void test_given(uint64_t random)
{
    static const int64_t counts[] = {0, 1, 2, 100, 5000, 8193, 70001, 300007};
    int turn = 0;
    for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
        for (int kind = 0; kind < KEY_KINDS; kind++)
            for (int pattern = 0; pattern < FEW_PATTERNS;
                 pattern++, turn += 3) // 3 and 16 have no common factor
                check_given((struct given){kind, turn & 4 ? HSORT_DESCENDING : HSORT_ASCENDING,
                                           turn & 1, turn & 2, turn & 8},
                            counts[i], few_patterns[pattern], &random);
}

/* ---- merge ---- */

/* Runs that a merge can get wrong. Unsorted runs come from a rank that has failed: they may come out in any order, but
 * nothing around the buffers may be touched. */
enum runs {
    RUNS_UNIFORM,
    RUNS_EQUAL,
    RUNS_FEW_VALUES,
    RUNS_A_FIRST,
    RUNS_B_FIRST,
    RUNS_ALTERNATING,
    RUNS_UNSORTED,
    RUNS
};

static key_code key_of_run(enum runs runs, bool is_b, int64_t i, uint64_t *random)
{
    const key_code key = random_code(random);
    switch (runs) {
    case RUNS_EQUAL:
        return 5;
    case RUNS_FEW_VALUES:
        return (uint64_t)key % 7;
    case RUNS_ALTERNATING:
        return (key_code)i * 2 + is_b;
    case RUNS_A_FIRST:
    case RUNS_B_FIRST:
        return (uint64_t)key % 1000 + (is_b == (runs == RUNS_A_FIRST) ? 1000 : 0); // 999 and 1000 do not tie
    default:
        return key;
    }
}

static void fill_run(enum runs runs, int key_bytes, bool is_b, char *keys, int64_t count, uint64_t *random)
{
    const uint64_t seed = check_random(random);
#pragma omp parallel for if (count > DRAW_PART)
    for (int64_t begin = 0; begin < count; begin += DRAW_PART) {
        uint64_t own = draw_part_seed(seed, begin);
        for (int64_t i = begin; i < draw_part_end(begin, count); i++) {
            const key_code key = key_of_run(runs, is_b, i, &own);
            memcpy(keys + i * key_bytes, &key, (size_t)key_bytes); // little-endian
        }
    }
    if (runs != RUNS_UNSORTED)
        sort_on_host(key_bytes, keys, count);
}

static void check_merge(int key_bytes, enum runs runs, int64_t a_count, int64_t b_count, uint64_t *random)
{
    char what[96];
    snprintf(what, sizeof what, "%s, merge of u%d, runs %d of %lld and %lld", ops->name, 8 * key_bytes, runs,
             (long long)a_count, (long long)b_count);
    const size_t a_bytes = (size_t)a_count * (size_t)key_bytes, b_bytes = (size_t)b_count * (size_t)key_bytes;
    char *expected = alloc_or_exit(a_bytes + b_bytes + 1);
    fill_run(runs, key_bytes, false, expected, a_count, random);
    fill_run(runs, key_bytes, true, expected + a_bytes, b_count, random);
    const size_t shift = (size_t)key_bytes * (check_random(random) % 16);
    struct buffer a = buffer_new(expected, a_bytes, shift),
                  b = buffer_new(expected + a_bytes, b_bytes, 3 * shift);
    struct buffer out = buffer_new(NULL, a_bytes + b_bytes, 5 * shift);
    sort_on_host(key_bytes, expected, a_count + b_count);
    must(ops->merge(engine, key_bytes, a_count ? buffer_keys(&a) : NULL, a_count,
                    b_count ? buffer_keys(&b) : NULL, b_count, buffer_keys(&out)),
         what);
    const void *merged = buffer_result(&out, what);
    const int64_t wrong = first_difference(merged, expected, key_bytes, a_count + b_count);
    CHECK(wrong < 0 || runs == RUNS_UNSORTED, "%s: key %lld is wrong", what, (long long)wrong);
    buffer_free(&a);
    buffer_free(&b);
    buffer_free(&out);
    free(expected);
}

static void test_merge(uint64_t random)
{
    static const int64_t counts[][2] = {
        {0, 0},       {0, 1},         {1, 0},       {0, 1000},     {70000, 0},       {0, 70000},
        {1, 1},       {1, 5000},      {5000, 1},    {2, 3},        {17, 4096},       {1000, 1000},
        {1023, 1025}, {4095, 4097},   {2048, 2048}, {3, 300000},   {300000, 3},      {16383, 16385},
        {1, 1000003}, {65536, 65537}, {65536, 100}, {511, 130000}, {150001, 150000}, {800000, 700001}};
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
        for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
            for (int runs = 0; runs < RUNS; runs++)
                check_merge(key_bytes, (enum runs)runs, counts[i][0], counts[i][1], &random);
}

/* ---- merge of many runs ---- */

/* Draw run_offset [k + 1] for about `count` keys: runs of even length, of any length, or nearly all of them empty. */
static void draw_runs(int k, int64_t count, int64_t *run_offset, uint64_t *random)
{
    const int spread = (int)(check_random(random) % 3);
    run_offset[0] = 0;
    for (int i = 0; i < k; i++) {
        const uint64_t draw = check_random(random);
        const int64_t any = (int64_t)(check_random(random) % (uint64_t)(2 * count / k + 2));
        const int64_t length = spread == 0 ? count / k : spread == 1 || draw % 5 == 0 ? any : 0;
        run_offset[i + 1] = run_offset[i] + length;
    }
}

static void check_merge_runs(int key_bytes, enum runs kind, int k, int64_t count, uint64_t *random)
{
    char what[96];
    int64_t run_offset[MOST_RUNS + 1];
    draw_runs(k, count, run_offset, random);
    count = run_offset[k];
    snprintf(what, sizeof what, "%s, merge of u%d, %d runs of kind %d, %lld keys", ops->name, 8 * key_bytes,
             k, kind, (long long)count);
    const size_t bytes = (size_t)count * (size_t)key_bytes;
    char *expected = alloc_or_exit(bytes + 1);
    int with_keys = 0;
    for (int i = 0; i < k; i++) {
        fill_run(kind, key_bytes, i % 2, expected + run_offset[i] * key_bytes, run_offset[i + 1] - run_offset[i], random);
        with_keys += run_offset[i + 1] > run_offset[i];
    }
    const size_t shift = (size_t)key_bytes * (check_random(random) % 16);
    struct buffer runs = buffer_new(expected, bytes, shift), out = buffer_new(NULL, bytes, 3 * shift);
    void *merged = NULL;
    sort_on_host(key_bytes, expected, count);
    must(ops->merge_runs(engine, key_bytes, buffer_keys(&runs), run_offset, k, buffer_keys(&out), &merged), what);
    const bool stayed = merged == buffer_keys(&runs);
    CHECK(stayed || (merged == buffer_keys(&out) && with_keys > 1), "%s: the result is in the wrong buffer",
          what);
    buffer_guards(stayed ? &out : &runs, what);
    const int64_t wrong =
        first_difference(buffer_result(stayed ? &runs : &out, what), expected, key_bytes, count);
    CHECK(wrong < 0 || kind == RUNS_UNSORTED, "%s: key %lld is wrong", what, (long long)wrong);
    buffer_free(&runs);
    buffer_free(&out);
    free(expected);
}

static void test_merge_runs(uint64_t random)
{
    static const int ks[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 255, 256, 257, MOST_RUNS};
    static const int64_t counts[] = {0, 1, 10, 1000, 8192, 8193, 40000, MANY / 4};
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
        for (int kind = 0; kind < RUNS; kind++)
            for (int i = 0; i < (int)(sizeof ks / sizeof ks[0]); i++)
                for (int c = 0; c < (int)(sizeof counts / sizeof counts[0]); c++)
                    if (counts[c] < MANY / 4 || i % 5 == kind % 5) // the largest takes as long as ten others
                        check_merge_runs(key_bytes, (enum runs)kind, ks[i], counts[c], &random);
}

/* ---- search ---- */

/* Draw a probe: a key, a neighbour of a key, or anything. */
static key_code draw_probe(int key_bytes, const char *keys, int64_t count, uint64_t *random)
{
    const key_code draw = random_code(random);
    key_code key = 0;
    if (count > 0)
        memcpy(&key, keys + (int64_t)(check_random(random) % (uint64_t)count) * key_bytes, (size_t)key_bytes);
    const key_code probe = draw % 4 == 0 ? key + 1 : draw % 4 == 1 ? key - 1 : draw % 8 == 2 ? draw : key;
    return probe & key_max(key_bytes);
}

static void check_search(int key_bytes, enum runs kind, int64_t count, int probe_count, uint64_t *random)
{
    static key_code probes[ENGINE_SEARCH_MAX];
    static int64_t less[ENGINE_SEARCH_MAX], not_greater[ENGINE_SEARCH_MAX];
    char *run = alloc_or_exit((size_t)count * (size_t)key_bytes + 1);
    fill_run(kind, key_bytes, false, run, count, random);
    for (int i = 0; i < probe_count; i++) {
        probes[i] = i == 0   ? 0
                    : i == 1 ? key_max(key_bytes)
                    : i < 4  ? key_max(key_bytes) + (key_code)(i - 1) // wider than a key, unless keys have 16 bytes
                             : draw_probe(key_bytes, run, count, random);
        less[i] = not_greater[i] = -1;
    }
    struct buffer keys = buffer_new(run, (size_t)count * (size_t)key_bytes, (size_t)key_bytes);
    must(ops->search(engine, key_bytes, buffer_keys(&keys), count, probes, probe_count, less, not_greater),
         "search");
    for (int i = 0; i < probe_count; i++) {
        int64_t below = 0, equal = 0;
        for (int64_t at = 0; at < count && kind != RUNS_UNSORTED; at++) {
            key_code key = 0;
            memcpy(&key, run + at * key_bytes, (size_t)key_bytes);
            below += key < probes[i];
            equal += key == probes[i];
        }
        CHECK(kind == RUNS_UNSORTED
                  ? less[i] >= 0 && less[i] <= count && not_greater[i] >= 0 && not_greater[i] <= count
                  : less[i] == below && not_greater[i] == below + equal,
              "%s, search in %lld u%d of kind %d: %lld and %lld, counted %lld and %lld", ops->name,
              (long long)count, 8 * key_bytes, kind, (long long)less[i], (long long)not_greater[i],
              (long long)below, (long long)(below + equal));
    }
    buffer_free(&keys);
    free(run);
}

static void test_search(uint64_t random)
{
    static const int64_t counts[] = {0, 1, 2, 3, 31, 1000, 4097};
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2)
        for (int kind = 0; kind < RUNS; kind++) {
            for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
                check_search(key_bytes, (enum runs)kind, counts[i], (int[]){0, 1, 500}[i % 3], &random);
            check_search(key_bytes, (enum runs)kind, 5000, ENGINE_SEARCH_MAX, &random);
        }
}

/* ---- fewer threads ---- */

/* In a parallel region of the caller an engine gets one thread, however many it asks for. */
static void test_in_parallel_region(uint64_t random)
{
    enum { COUNT = 150001 };
    static const enum pattern patterns[] = {UNIFORM, ROTATED};
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int key_bytes = 4; key_bytes <= 16; key_bytes *= 2) {
        for (int i = 0; i < 2; i++) {
            void *keys = keys_new(patterns[i], key_bytes, COUNT, &random),
                 *expected = alloc_or_exit((size_t)(COUNT * key_bytes));
            memcpy(expected, keys, (size_t)(COUNT * key_bytes));
            sort_on_host(key_bytes, expected, COUNT);
            check_sort(-1, key_bytes, COUNT, keys, expected, 0, "in a parallel region");
            free(keys);
            free(expected);
        }
        check_merge(key_bytes, RUNS_UNIFORM, COUNT, COUNT / 2, &random);
        check_merge_runs(key_bytes, RUNS_UNIFORM, 5, COUNT, &random);
    }
}

int main(int argc, char **argv)
{
    const uint64_t seed = check_seed();
    open_engine(argc, argv);
    printf("test_engine_sort %s: seed %llu\n", ops->name, (unsigned long long)seed);
    test_sort(seed);
    test_rare_bits(seed);
    test_given(seed);
    test_merge(seed);
    test_merge_runs(seed);
    test_search(seed);
    test_in_parallel_region(seed);
    close_engine();
    return check_failures > 0;
}
