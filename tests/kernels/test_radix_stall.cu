/* Rung 7 while tiles stall: the look-back of a quick tile must wait for slow ones, find some of them counted
 * and some summed up, and end right in every mixture. By itself that is a matter of luck. So the rung is compiled
 * here a second time: chosen tiles sleep before they publish their counts, and others before they publish
 * their sums. Keys are compared with CUB's, values with the positions that they name. */
#define TUNING_STALL 20000               /* nanoseconds */
#define rung_7_onesweep stalled_onesweep /* the library has the other */
#define rung_7_onesweep_workspace stalled_onesweep_workspace
#include "kernels/cuda/ladder/rung_7_onesweep.cu"
#include "tests/kernels/ladder_guard.cuh"

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;

/* Sort original [count] by CUB, without values; the caller frees the result. */
static void *sort_with_cub(int key_bytes, const void *original, int64_t count)
{
    struct sort_args args = {};
    const size_t bytes = (size_t)count * key_bytes;
    size_t workspace_bytes;
    args.key_bytes = key_bytes;
    args.count = count;
    MUST(ladder_workspace(engine, 0, &args, &workspace_bytes));
    MUST(ops->alloc(&engine->base, bytes, &args.keys));
    MUST(ops->alloc(&engine->base, bytes, &args.scratch_keys));
    MUST(ops->alloc(&engine->base, workspace_bytes, &args.workspace));
    MUST(ops->copy(&engine->base, STREAM_WORK, args.keys, original, bytes));
    MUST(ladder_sort(engine, 0, &args));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    ops->free(&engine->base, args.workspace);
    ops->free(&engine->base, args.sorted_keys == args.keys ? args.scratch_keys : args.keys);
    return args.sorted_keys;
}

static void check_stalled(struct ladder_type type, int64_t count, int input, uint64_t seed)
{
    struct guarded_sort g;
    void *original;
    MUST(ops->alloc(&engine->base, (size_t)count * type.key_bytes, &original));
    fill_keys(engine, type.key_bytes, original, count, input, seed);
    device_scope scope(engine);
    void *const expected = sort_with_cub(type.key_bytes, original, count);
    guarded_sort_make(&g, engine, false, 7, type, original, count);
    MUST(stalled_onesweep(engine, &g.args));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    unsigned long long wrong = count_different(engine, type.key_bytes, g.args.sorted_keys, expected, count);
    if (type.value_bytes > 0)
        wrong += wrong_pairs(engine, type.key_bytes, type.value_bytes, original, g.args.sorted_keys,
                             g.args.sorted_values, count, RUNG_STABLE);
    const unsigned long long spoilt = guarded_sort_free(&g, false);
    CHECK(wrong == 0 && spoilt == 0,
          "%s, %lld keys, %s, seed %llu: %llu keys or values are wrong, %llu bytes overwritten", type.word,
          (long long)count, ladder_input_word(input), (unsigned long long)seed, wrong, spoilt);
    ops->free(&engine->base, expected);
    ops->free(&engine->base, original);
    cases++;
}

static int64_t tile_of(struct ladder_type type)
{
    if (type.key_bytes == 8)
        return ONESWEEP_THREADS * onesweep_keys<uint64_t, uint64_t>();
    return ONESWEEP_THREADS * (type.value_bytes == 0 ? onesweep_keys<uint32_t, no_value>() : onesweep_keys<uint32_t, uint32_t>());
}

int main(void)
{
    struct cuda_device device;
    if (!open_first_gpu(&engine, &device))
        return CHECK_SKIPPED;
    ops = engine->base.ops;
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    const int inputs[] = {UNIFORM, TWO, LARGEST, SORTED, STAIRS, DIGIT2};
    for (struct ladder_type type : ladder_types) {
        const int64_t tile = tile_of(type), small = ONESWEEP_THREADS * ONESWEEP_KEYS_LEAST;
        const int64_t counts[] = {2, small, small + 1, 8 * small - 1, 17 * small, 250 * small - 1, 300 * tile - 1, 1000 * tile + 17};
        for (int64_t count : counts) {
            for (int input : inputs)
                check_stalled(type, count, input, check_random(&seed));
        }
    }
    ops->close(&engine->base);
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
