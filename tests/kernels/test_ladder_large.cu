/* More keys than 32-bit numbers can count, signed (2^31) and unsigned (2^32), if the card has the memory: by the radix
 * rungs and the fastest network. Also 3 * 2^32 keys of 8 bytes, beside which there is scratch for only a part of them.
 * Order and fingerprint are checked; CUB is not asked. */
#include <time.h>
#include "tests/support/check.h"
#include "tests/kernels/ladder_verify.cuh"

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;

/* The last network of the ladder. */
static int last_network(void)
{
    int last = -1;
    for (int rung : ladder_rungs)
        last = rung_is_network(rung) ? rung : last;
    return last;
}

static void check_large(int rung, int64_t count, int input, uint64_t seed)
{
    struct sort_args args = {};
    size_t workspace_bytes, free_bytes;
    args.key_bytes = 4;
    args.count = count;
    MUST(ladder_workspace(engine, rung, &args, &workspace_bytes));
    MUST(ops->memory_free(&engine->base, &free_bytes));
    const size_t bytes = (size_t)count * 4;
    const size_t scratch_bytes = rung_is_network(rung) ? 0 : bytes;
    if (free_bytes < bytes + scratch_bytes + workspace_bytes + (size_t)(1 << 28)) {
        printf("not run: rung %d on %lld keys needs more memory than this GPU has free\n", rung,
               (long long)count);
        return;
    }
    MUST(ops->alloc(&engine->base, bytes, &args.keys));
    MUST(ops->alloc(&engine->base, scratch_bytes, &args.scratch_keys));
    MUST(ops->alloc(&engine->base, workspace_bytes, &args.workspace));
    fill_keys(engine, 4, args.keys, count, input, seed);
    const struct engine_inspection before = look_at(engine, 4, args.keys, count);
    {
        device_scope scope(engine);
        MUST(ladder_sort(engine, rung, &args));
    }
    CHECK(is_sorted_form(engine, 4, args.sorted_keys, count, before),
          "rung %d, %lld keys, %s, seed %llu: not sorted", rung, (long long)count, ladder_input_word(input),
          (unsigned long long)seed);
    cases++;
    ops->free(&engine->base, args.keys);
    ops->free(&engine->base, args.scratch_keys);
    ops->free(&engine->base, args.workspace);
}

/* Sort keys that fill more than half of the GPU. The engine is given as much scratch as there is room for. */
static void check_fuller_than_half(int64_t count, uint64_t seed)
{
    const size_t bytes = (size_t)count * 8;
    void *keys, *scratch, *workspace, *sorted;
    size_t workspace_bytes, free_bytes;
    MUST(ops->memory_free(&engine->base, &free_bytes));
    if (free_bytes < bytes + bytes / 16) {
        printf("not run: %lld keys of 8 bytes and scratch need more memory than this GPU has free\n",
               (long long)count);
        return;
    }
    MUST(ops->alloc(&engine->base, bytes, &keys));
    MUST(ops->memory_free(&engine->base, &free_bytes));
    const size_t room = free_bytes - free_bytes / 16;
    int64_t scratch_count = (int64_t)(room / 8) < count ? (int64_t)(room / 8) : count;
    MUST(ops->sort_workspace(&engine->base, -1, 8, count, scratch_count, &workspace_bytes));
    while ((size_t)scratch_count * 8 + workspace_bytes > room) { // a sort of longer chunks takes more workspace
        scratch_count -= scratch_count / 8;
        MUST(ops->sort_workspace(&engine->base, -1, 8, count, scratch_count, &workspace_bytes));
    }
    MUST(ops->alloc(&engine->base, (size_t)scratch_count * 8, &scratch));
    MUST(ops->alloc(&engine->base, workspace_bytes, &workspace));
    fill_keys(engine, 8, keys, count, UNIFORM, seed);
    const struct engine_inspection before = look_at(engine, 8, keys, count);
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    MUST(ops->sort(&engine->base, -1, 8, keys, scratch, scratch_count, count, workspace, NULL, &sorted));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(sorted == keys && is_sorted_form(engine, 8, sorted, count, before),
          "%lld keys of 8 bytes with scratch for %lld, seed %llu: not sorted", (long long)count,
          (long long)scratch_count, (unsigned long long)seed);
    printf("%lld keys of 8 bytes with scratch for %lld: %.3f s\n", (long long)count, (long long)scratch_count,
           (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
    cases++;
    ops->free(&engine->base, keys);
    ops->free(&engine->base, scratch);
    ops->free(&engine->base, workspace);
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
    const int rungs[] = {7, 8, last_network()};
    const int64_t sizes[] = {(INT64_C(1) << 31) + 12345, (INT64_C(1) << 32) + 54321};
    const int inputs[] = {UNIFORM, TWO, STAIRS};
    for (int rung : rungs) {
        for (int64_t count : sizes) {
            for (int input : inputs)
                check_large(rung, count, input, check_random(&seed));
        }
    }
    check_fuller_than_half(INT64_C(3) << 32, check_random(&seed));
    ops->close(&engine->base);
    if (cases == 0) {
        printf("skipped: the GPU has too little memory for 2^31 keys\n");
        return CHECK_SKIPPED;
    }
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
