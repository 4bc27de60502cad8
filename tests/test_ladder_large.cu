/* More keys than 32-bit numbers count, signed (2^31) and unsigned (2^32), where the card has the memory: one
 * radix rung and the fastest network. Order and fingerprint are checked; CUB is not asked. */
#include "check.h"
#include "ladder_verify.cuh"

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
    struct rung_job job = {};
    size_t workspace_bytes, free_bytes;
    job.key_bytes = 4;
    job.count = count;
    MUST(ladder_workspace(engine, rung, &job, &workspace_bytes));
    MUST(ops->memory_free(&engine->base, &free_bytes));
    const size_t bytes = (size_t)count * 4;
    const size_t scratch_bytes = rung_is_network(rung) ? 0 : bytes;
    if (free_bytes < bytes + scratch_bytes + workspace_bytes + (size_t)(1 << 28)) {
        printf("not run: rung %d on %lld keys needs more memory than this GPU has free\n", rung,
               (long long)count);
        return;
    }
    MUST(ops->alloc(&engine->base, bytes, &job.keys));
    MUST(ops->alloc(&engine->base, scratch_bytes, &job.scratch_keys));
    MUST(ops->alloc(&engine->base, workspace_bytes, &job.workspace));
    fill_keys(engine, 4, job.keys, count, input, seed);
    const struct engine_inspection before = look_at(engine, 4, job.keys, count);
    {
        device_scope scope(engine);
        MUST(ladder_sort(engine, rung, &job));
    }
    CHECK(is_sorted_form(engine, 4, job.sorted_keys, count, before),
          "rung %d, %lld keys, %s, seed %llu: not sorted", rung, (long long)count, ladder_input_word(input),
          (unsigned long long)seed);
    cases++;
    ops->free(&engine->base, job.keys);
    ops->free(&engine->base, job.scratch_keys);
    ops->free(&engine->base, job.workspace);
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
    const int rungs[] = {7, last_network()};
    const int64_t sizes[] = {(INT64_C(1) << 31) + 12345, (INT64_C(1) << 32) + 54321};
    const int inputs[] = {UNIFORM, TWO, STAIRS};
    for (int rung : rungs) {
        for (int64_t count : sizes) {
            for (int input : inputs)
                check_large(rung, count, input, check_random(&seed));
        }
    }
    ops->close(&engine->base);
    if (cases == 0) {
        printf("skipped: the GPU has too little memory for 2^31 keys\n");
        return CHECK_SKIPPED;
    }
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
