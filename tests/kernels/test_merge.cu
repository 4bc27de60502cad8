/* The merges of the CUDA engine, of two runs and of many, against a sort of all runs together: sizes around tile
 * borders and beyond a block's first tiles, inputs with many equal keys, runs aligned to no more than their keys'
 * size, poison around every buffer. */
#include "kernels/cuda/merge/merge_many.h"
#include "kernels/cuda/ladder/tuning.h"
#include "tests/kernels/ladder_guard.cuh"

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;

/* Sort keys [count] with CUB. The result lies in buffers of *g, which the caller frees. */
static const void *sort_copy(struct ladder_type type, const void *keys, int64_t count, struct guarded_sort *g)
{
    device_scope scope(engine);
    guarded_sort_make(g, engine, false, 0, type, keys, count);
    MUST(ladder_sort(engine, 0, &g->args));
    return g->args.sorted_keys;
}

static void check_merge(struct ladder_type type, int64_t a_count, int64_t b_count, int input, uint64_t seed)
{
    const int64_t count = a_count + b_count;
    struct guarded_sort a, b, all, out;
    unsigned char *both;
    MUST(ops->alloc(&engine->base, (size_t)count * type.key_bytes + 8, (void **)&both));
    if (count > 0)
        fill_keys(engine, type.key_bytes, both, count, input, seed);
    const void *a_keys = sort_copy(type, both, a_count, &a);
    const void *b_keys = sort_copy(type, both + a_count * type.key_bytes, b_count, &b);
    const void *expected = sort_copy(type, both, count, &all);
    guarded_sort_make(&out, engine, false, 0, type, both, count);
    MUST(ops->merge(&engine->base, type.key_bytes, a_keys, a_count, b_keys, b_count, out.args.keys));
    const unsigned long long differ = count_different(engine, type.key_bytes, out.args.keys, expected, count);
    const unsigned long long spoilt = guarded_sort_free(&out, true);
    CHECK(differ == 0 && spoilt == 0,
          "merge, %s, %lld + %lld keys, %s, seed %llu: %llu keys are wrong, %llu bytes outside were "
          "overwritten",
          type.word, (long long)a_count, (long long)b_count, ladder_input_word(input),
          (unsigned long long)seed, differ, spoilt);
    guarded_sort_free(&a, false);
    guarded_sort_free(&b, false);
    guarded_sort_free(&all, false);
    ops->free(&engine->base, both);
    cases++;
}

/* Merge runs of these counts, each in a buffer of its own. */
static void check_many(struct ladder_type type, int k, const int64_t *counts, int input, uint64_t seed)
{
    struct guarded_sort runs[MERGE_RUNS_MAX], all, out;
    const void *keys[MERGE_RUNS_MAX];
    int64_t count = 0;
    for (int i = 0; i < k; i++)
        count += counts[i];
    unsigned char *together;
    MUST(ops->alloc(&engine->base, (size_t)count * type.key_bytes + 8, (void **)&together));
    fill_keys(engine, type.key_bytes, together, count, input, seed);
    int64_t at = 0;
    for (int i = 0; i < k; i++) {
        keys[i] = sort_copy(type, together + at * type.key_bytes, counts[i], &runs[i]);
        at += counts[i];
    }
    const void *expected = sort_copy(type, together, count, &all);
    guarded_sort_make(&out, engine, false, 0, type, together, count);
    {
        device_scope scope(engine);
        MUST(keys_merge_many(engine, type.key_bytes, keys, counts, k, out.args.keys));
    }
    const unsigned long long differ = count_different(engine, type.key_bytes, out.args.keys, expected, count);
    const unsigned long long spoilt = guarded_sort_free(&out, true);
    CHECK(differ == 0 && spoilt == 0,
          "merge of %d runs, %s, %lld keys, the first of %lld, %s, seed %llu: %llu keys are wrong, %llu "
          "bytes outside "
          "were overwritten",
          k, type.word, (long long)count, (long long)counts[0], ladder_input_word(input),
          (unsigned long long)seed, differ, spoilt);
    for (int i = 0; i < k; i++)
        guarded_sort_free(&runs[i], false);
    guarded_sort_free(&all, false);
    ops->free(&engine->base, together);
    cases++;
}

/* Check runs of about equal length, of any length, and with one run that has nearly all keys. */
static void check_manys(struct ladder_type type, uint64_t *seed)
{
    const int64_t lengths[] = {1, 40, 3000, 20000, 300000};
    const int inputs[] = {UNIFORM, EQUAL, LARGEST, TWO, STAIRS, NARROW, SORTED};
    if (!keys_merge_many_fits(engine, type.key_bytes))
        return;
    for (int k = 1; k <= MERGE_RUNS_MAX; k++) {
        for (int64_t length : lengths) {
            const int input = inputs[check_random(seed) % 7];
            for (int spread = 0; spread < 3; spread++) {
                int64_t counts[MERGE_RUNS_MAX];
                for (int i = 0; i < k; i++) {
                    const int64_t any = (int64_t)(check_random(seed) % (uint64_t)(2 * length + 1));
                    counts[i] = spread == 0 ? length + i % 2 : spread == 1 ? any : any % 4;
                }
                counts[check_random(seed) % (uint64_t)k] = length * (spread == 2 ? k : 1);
                check_many(type, k, counts, input, check_random(seed));
            }
        }
    }
    const int64_t large[] = {(INT64_C(1) << 23) + 1, 5, INT64_C(1) << 22, 0, (INT64_C(1) << 22) - 3};
    check_many(type, 5, large, UNIFORM, check_random(seed));
    check_many(type, 5, large, SORTED, check_random(seed));
}

static void check_merges(struct ladder_type type, uint64_t *seed)
{
    const bool tight = engine->block_bytes < MERGE_ROOMY_BYTES;
    const int64_t tile = MERGE_THREADS * (type.key_bytes == 4 ? MERGE_KEYS_4
                                          : tight             ? MERGE_KEYS_8_TIGHT
                                                              : MERGE_KEYS_8);
    const int64_t sizes[] = {0, 1, 2, 33, tile - 1, tile, tile + 1, 5 * tile + 3};
    const int inputs[] = {UNIFORM, EQUAL, LARGEST, TWO, STAIRS, NARROW};
    for (int64_t a : sizes) {
        for (int64_t b : sizes) {
            for (int input : inputs)
                check_merge(type, a, b, input, check_random(seed));
        }
    }
    check_merge(type, (INT64_C(1) << 24) + 3, (INT64_C(1) << 23) - 7, UNIFORM, check_random(seed));
    check_merge(type, 5, INT64_C(1) << 24, UNIFORM, check_random(seed));
}

/* If blocks have less shared memory, a network has smaller tiles. A merge has no smaller tiles, and is refused. */
static void check_limits(struct ladder_type type, uint64_t *seed)
{
    enum { LIMIT = 32 << 10, COUNT = 100003 };
    const int own = engine->block_bytes;
    const bool apart = engine->launches_apart;
    struct guarded_sort all, by_network;
    unsigned char *keys;
    MUST(ops->alloc(&engine->base, (size_t)COUNT * type.key_bytes + 8, (void **)&keys));
    fill_keys(engine, type.key_bytes, keys, COUNT, UNIFORM, check_random(seed));
    const void *expected = sort_copy(type, keys, COUNT, &all);
    guarded_sort_make(&by_network, engine, false, TUNING_IN_PLACE_RUNG, type, keys, COUNT);
    cuda_pretend(engine, LIMIT, apart);
    const hsort_status status =
        ops->merge(&engine->base, type.key_bytes, keys, COUNT, keys, 0, by_network.args.scratch_keys);
    CHECK(status == HSORT_INTERNAL, "a merge of %s in blocks of %d bytes: %s", type.word, LIMIT,
          hsort_strerror(status));
    status_clear();
    {
        device_scope scope(engine);
        MUST(ladder_sort(engine, TUNING_IN_PLACE_RUNG, &by_network.args));
    }
    cuda_pretend(engine, own, apart);
    const unsigned long long differ =
        count_different(engine, type.key_bytes, by_network.args.sorted_keys, expected, COUNT);
    const unsigned long long spoilt = guarded_sort_free(&by_network, true);
    CHECK(differ == 0 && spoilt == 0, "rung %d, %s, in blocks of %d bytes: %llu keys are wrong, %llu bytes outside",
          (int)TUNING_IN_PLACE_RUNG, type.word, LIMIT, differ, spoilt);
    guarded_sort_free(&all, false);
    ops->free(&engine->base, keys);
    cases++;
}

/* An error that a call of the program's own has left behind is no error of a merge. */
static void check_errors_of_others(void)
{
    const uint32_t given[] = {2, 5, 3}, expected[] = {2, 3, 5};
    uint32_t *keys, *out, found[3];
    void *none;
    MUST(ops->alloc(&engine->base, sizeof given, (void **)&keys));
    MUST(ops->alloc(&engine->base, sizeof given, (void **)&out));
    MUST(ops->copy(&engine->base, STREAM_WORK, keys, given, sizeof given));
    CHECK(cudaMalloc(&none, SIZE_MAX / 2) != cudaSuccess, "%zu bytes were there", SIZE_MAX / 2);
    const hsort_status status = ops->merge(&engine->base, sizeof *keys, keys, 2, keys + 2, 1, out);
    CHECK(status == HSORT_OK, "a merge behind a call that failed: %s", status_text());
    status_clear();
    MUST(ops->copy(&engine->base, STREAM_WORK, found, out, sizeof found));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    CHECK(status != HSORT_OK || memcmp(found, expected, sizeof found) == 0, "merged %u %u %u", found[0], found[1],
          found[2]);
    ops->free(&engine->base, keys);
    ops->free(&engine->base, out);
    cases++;
}

int main(void)
{
    struct cuda_device device;
    if (!open_first_gpu(&engine, &device))
        return CHECK_SKIPPED;
    ops = engine->base.ops;
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    check_errors_of_others();
    for (const struct ladder_type &type : ladder_types) {
        if (type.value_bytes == 0) {
            check_limits(type, &seed);
            check_merges(type, &seed);
            check_manys(type, &seed);
        }
    }
    ops->close(&engine->base);
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
