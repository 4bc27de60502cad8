/* The merge of the CUDA engine against a sort of both runs together: sizes around tile borders, inputs with
 * many equal keys, runs aligned to no more than their keys' size, poison around every buffer. */
#include "cuda/tuning.h"
#include "ladder_guard.cuh"

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;

/* Sort keys [count] with CUB; where the result lies, *g is to be freed. */
static const void *sort_copy(struct ladder_type type, const void *keys, int64_t count, struct guarded_job *g)
{
    device_scope scope(engine);
    guarded_job_make(g, engine, false, 0, type, keys, count);
    MUST(ladder_sort(engine, 0, &g->job));
    return g->job.sorted_keys;
}

static void check_merge(struct ladder_type type, int64_t a_count, int64_t b_count, int input, uint64_t seed)
{
    const int64_t count = a_count + b_count;
    struct guarded_job a, b, all, out;
    unsigned char *both;
    MUST(ops->alloc(&engine->base, (size_t)count * type.key_bytes + 8, (void **)&both));
    if (count > 0)
        fill_keys(engine, type.key_bytes, both, count, input, seed);
    const void *a_keys = sort_copy(type, both, a_count, &a);
    const void *b_keys = sort_copy(type, both + a_count * type.key_bytes, b_count, &b);
    const void *expected = sort_copy(type, both, count, &all);
    guarded_job_make(&out, engine, false, 0, type, both, count);
    MUST(ops->merge(&engine->base, type.key_bytes, a_keys, a_count, b_keys, b_count, out.job.keys));
    const unsigned long long differ = count_different(engine, type.key_bytes, out.job.keys, expected, count);
    const unsigned long long spoilt = guarded_job_free(&out, true);
    CHECK(differ == 0 && spoilt == 0,
          "merge, %s, %lld + %lld keys, %s, seed %llu: %llu keys are wrong, %llu bytes outside were "
          "overwritten",
          type.word, (long long)a_count, (long long)b_count, ladder_input_word(input),
          (unsigned long long)seed, differ, spoilt);
    guarded_job_free(&a, false);
    guarded_job_free(&b, false);
    guarded_job_free(&all, false);
    ops->free(&engine->base, both);
    cases++;
}

static void check_merges(struct ladder_type type, uint64_t *seed)
{
    const int64_t tile = MERGE_THREADS * (type.key_bytes == 4 ? MERGE_KEYS_4 : MERGE_KEYS_8);
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

int main(void)
{
    struct cuda_device device;
    if (!open_first_gpu(&engine, &device))
        return CHECK_SKIPPED;
    ops = engine->base.ops;
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (const struct ladder_type &type : ladder_types) {
        if (type.value_bytes == 0)
            check_merges(type, &seed);
    }
    ops->close(&engine->base);
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
