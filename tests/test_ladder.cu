/* Every rung of the ladder against CUB, key by key: sizes around tile borders and powers of two, inputs that
 * skew the digits, keys aligned to no more than their size, poison around every buffer. The merge likewise.
 * And more than 2^31 keys, where the card has the memory. */
#include "check.h"
#include "cuda/tuning.h"
#include "ladder_input.cuh"

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static int cases;

enum { GUARD = 1000, POISON = 0xa5 };

/* Keys between two stretches of poison, at an address that is a multiple of the key size and of nothing
 * larger. */
struct guarded {
    unsigned char *memory;
    void *keys;
    size_t guard, bytes;
};

static struct guarded guarded_make(int key_bytes, int64_t count)
{
    struct guarded g;
    g.guard = GUARD + (size_t)key_bytes % 8;
    g.bytes = (size_t)count * key_bytes;
    MUST(ops->alloc(&engine->base, g.bytes + 2 * g.guard, (void **)&g.memory));
    device_scope scope(engine);
    MUST(cuda_check(cudaMemsetAsync(g.memory, POISON, g.bytes + 2 * g.guard, engine->lanes[LANE_WORK]),
                    "poison"));
    g.keys = g.memory + g.guard;
    return g;
}

static bool is_poison(const unsigned char *memory, size_t bytes)
{
    unsigned char copy[GUARD + 8];
    MUST(ops->copy(&engine->base, LANE_WORK, copy, memory, bytes));
    MUST(ops->wait(&engine->base, LANE_WORK));
    for (size_t i = 0; i < bytes; i++) {
        if (copy[i] != POISON)
            return false;
    }
    return true;
}

/* Free the buffer; true if nothing was written around its keys. */
static bool guarded_free(struct guarded g)
{
    const bool whole = is_poison(g.memory, g.guard) && is_poison(g.memory + g.guard + g.bytes, g.guard);
    ops->free(&engine->base, g.memory);
    return whole;
}

template <typename K>
static __global__ void differ_kernel(const K *a, const K *b, int64_t count, unsigned long long *differ)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x) {
        if (a[i] != b[i])
            atomicAdd(differ, 1ull);
    }
}

/* Positions at which the keys of a and b [count] differ. */
static unsigned long long count_different(int key_bytes, const void *a, const void *b, int64_t count)
{
    unsigned long long *differ, result;
    MUST(ops->alloc(&engine->base, sizeof *differ, (void **)&differ));
    {
        device_scope scope(engine);
        cudaStream_t stream = engine->lanes[LANE_WORK];
        MUST(cuda_check(cudaMemsetAsync(differ, 0, sizeof *differ, stream), "clear"));
        if (key_bytes == 4)
            differ_kernel<<<1024, 256, 0, stream>>>((const uint32_t *)a, (const uint32_t *)b, count, differ);
        else
            differ_kernel<<<1024, 256, 0, stream>>>((const uint64_t *)a, (const uint64_t *)b, count, differ);
        MUST(cuda_check(cudaGetLastError(), "compare"));
    }
    MUST(ops->copy(&engine->base, LANE_WORK, &result, differ, sizeof result));
    MUST(ops->wait(&engine->base, LANE_WORK));
    ops->free(&engine->base, differ);
    return result;
}

/* Sort a copy of input [count] with `rung`; leave the result in *keys or *scratch and its place in
 * *sorted. */
static void sort_copy(int rung, int key_bytes, const void *input, int64_t count, struct guarded *keys,
                      struct guarded *scratch, void **sorted)
{
    size_t workspace_bytes;
    unsigned char *workspace;
    *keys = guarded_make(key_bytes, count);
    *scratch = guarded_make(key_bytes, count);
    MUST(ops->sort_workspace(&engine->base, rung, key_bytes, count, &workspace_bytes));
    MUST(ops->alloc(&engine->base, workspace_bytes + GUARD, (void **)&workspace));
    {
        device_scope scope(engine);
        MUST(cuda_check(cudaMemsetAsync(workspace, POISON, workspace_bytes + GUARD, engine->lanes[LANE_WORK]),
                        "poison"));
    }
    MUST(ops->copy(&engine->base, LANE_WORK, keys->keys, input, keys->bytes));
    MUST(ops->sort(&engine->base, rung, key_bytes, keys->keys, scratch->keys, count, workspace, sorted));
    MUST(ops->wait(&engine->base, LANE_WORK));
    CHECK(*sorted == keys->keys || *sorted == scratch->keys, "rung %d: the result is in neither buffer",
          rung);
    CHECK(is_poison(workspace + workspace_bytes, GUARD),
          "rung %d, u%d, %lld keys: wrote behind its workspace", rung, key_bytes * 8, (long long)count);
    ops->free(&engine->base, workspace);
}

/* All rungs on one input. */
static void check_rungs(int key_bytes, int64_t count, int input, uint64_t seed)
{
    static const int rungs[] = {
#define X(number, name, change) number,
        LADDER(X)
#undef X
    };
    struct guarded keys, scratch, expected_keys, expected_scratch;
    void *sorted, *expected, *original;
    MUST(ops->alloc(&engine->base, (size_t)count * key_bytes, &original));
    if (count > 0)
        fill_keys(engine, key_bytes, original, count, input, seed);
    sort_copy(0, key_bytes, original, count, &expected_keys, &expected_scratch, &expected);
    for (size_t i = 0; i < sizeof rungs / sizeof rungs[0]; i++) {
        sort_copy(rungs[i], key_bytes, original, count, &keys, &scratch, &sorted);
        const unsigned long long differ = count_different(key_bytes, sorted, expected, count);
        const bool whole_keys = guarded_free(keys), whole_scratch = guarded_free(scratch);
        CHECK(differ == 0, "rung %d, u%d, %lld keys, %s, seed %llu: %llu keys differ from CUB's", rungs[i],
              key_bytes * 8, (long long)count, ladder_input_word(input), (unsigned long long)seed, differ);
        CHECK(whole_keys && whole_scratch,
              "rung %d, u%d, %lld keys, %s, seed %llu: wrote outside its buffers", rungs[i], key_bytes * 8,
              (long long)count, ladder_input_word(input), (unsigned long long)seed);
        cases++;
    }
    guarded_free(expected_keys);
    guarded_free(expected_scratch);
    ops->free(&engine->base, original);
}

static void check_sizes(int key_bytes, uint64_t *seed)
{
    const int64_t tile = ONESWEEP_THREADS * (key_bytes == 4 ? ONESWEEP_KEYS_4 : ONESWEEP_KEYS_8);
    const int64_t sizes[] = {0,
                             1,
                             2,
                             3,
                             5,
                             31,
                             32,
                             33,
                             255,
                             256,
                             257,
                             1000,
                             4095,
                             4097,
                             tile - 1,
                             tile,
                             tile + 1,
                             2 * tile,
                             3 * tile + 17,
                             65535,
                             65537,
                             1000003,
                             100 * tile - 1};
    const int64_t large[] = {(INT64_C(1) << 24) + 5, (INT64_C(1) << 26) - 1};
    for (int input = 0; input < LADDER_INPUT_COUNT; input++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_rungs(key_bytes, sizes[i], input, check_random(seed));
    }
    for (int i = 0; i < 24; i++) {
        const int64_t below = INT64_C(1) << (1 + check_random(seed) % 22);
        check_rungs(key_bytes, (int64_t)(check_random(seed) % (uint64_t)below), UNIFORM, check_random(seed));
    }
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        check_rungs(key_bytes, large[i], UNIFORM, check_random(seed));
        check_rungs(key_bytes, large[i], STAIRS, check_random(seed));
    }
}

/* Merge two sorted runs, and compare with CUB's sort of both together. */
static void check_merge(int key_bytes, int64_t a_count, int64_t b_count, int input, uint64_t seed)
{
    const int64_t count = a_count + b_count;
    struct guarded a_keys, a_scratch, b_keys, b_scratch, keys, scratch, out = guarded_make(key_bytes, count);
    void *a, *b, *expected;
    unsigned char *both;
    MUST(ops->alloc(&engine->base, (size_t)count * key_bytes + 8, (void **)&both));
    if (count > 0)
        fill_keys(engine, key_bytes, both, count, input, seed);
    sort_copy(0, key_bytes, both, a_count, &a_keys, &a_scratch, &a);
    sort_copy(0, key_bytes, both + a_count * key_bytes, b_count, &b_keys, &b_scratch, &b);
    sort_copy(0, key_bytes, both, count, &keys, &scratch, &expected);
    MUST(ops->merge(&engine->base, key_bytes, a, a_count, b, b_count, out.keys));
    const unsigned long long differ = count_different(key_bytes, out.keys, expected, count);
    const bool whole = guarded_free(out);
    CHECK(differ == 0 && whole, "merge, u%d, %lld + %lld keys, %s, seed %llu: %llu keys are wrong%s",
          key_bytes * 8, (long long)a_count, (long long)b_count, ladder_input_word(input),
          (unsigned long long)seed, differ, whole ? "" : ", and it wrote outside its buffer");
    struct guarded used[] = {a_keys, a_scratch, b_keys, b_scratch, keys, scratch};
    for (int i = 0; i < 6; i++)
        guarded_free(used[i]);
    ops->free(&engine->base, both);
    cases++;
}

static void check_merges(int key_bytes, uint64_t *seed)
{
    const int64_t tile = MERGE_THREADS * (key_bytes == 4 ? MERGE_KEYS_4 : MERGE_KEYS_8);
    const int64_t sizes[] = {0, 1, 2, 33, tile - 1, tile, tile + 1, 5 * tile + 3};
    const int inputs[] = {UNIFORM, EQUAL, LARGEST, TWO, STAIRS, LOW16};
    for (int64_t a : sizes) {
        for (int64_t b : sizes) {
            for (int input : inputs)
                check_merge(key_bytes, a, b, input, check_random(seed));
        }
    }
    check_merge(key_bytes, (INT64_C(1) << 24) + 3, (INT64_C(1) << 23) - 7, UNIFORM, check_random(seed));
    check_merge(key_bytes, 5, (INT64_C(1) << 24), UNIFORM, check_random(seed));
}

/* More keys than a signed 32-bit number counts, by rung 7. CUB is not asked: order and fingerprint are
 * enough. */
static void check_beyond_2_31(uint64_t *seed)
{
    const int64_t count = (INT64_C(1) << 31) + 12345;
    size_t workspace_bytes, free_bytes;
    void *keys, *scratch, *workspace, *sorted;
    MUST(ops->sort_workspace(&engine->base, 7, 4, count, &workspace_bytes));
    MUST(ops->memory_free(&engine->base, &free_bytes));
    if (free_bytes < 2 * (size_t)count * 4 + workspace_bytes + (size_t)(1 << 28)) {
        printf("not run: 2^31 + 12345 keys need more memory than this GPU has free\n");
        return;
    }
    MUST(ops->alloc(&engine->base, (size_t)count * 4, &keys));
    MUST(ops->alloc(&engine->base, (size_t)count * 4, &scratch));
    MUST(ops->alloc(&engine->base, workspace_bytes, &workspace));
    const int inputs[] = {UNIFORM, TWO, STAIRS};
    for (int input : inputs) {
        fill_keys(engine, 4, keys, count, input, check_random(seed));
        const struct engine_inspection before = look_at(engine, 4, keys, count);
        MUST(ops->sort(&engine->base, 7, 4, keys, scratch, count, workspace, &sorted));
        CHECK(is_sorted_form(engine, 4, sorted, count, before), "rung 7, 2^31 + 12345 keys, %s: not sorted",
              ladder_input_word(input));
        cases++;
    }
    ops->free(&engine->base, keys);
    ops->free(&engine->base, scratch);
    ops->free(&engine->base, workspace);
}

int main(void)
{
    char why[256];
    struct cuda_device device;
    struct engine *opened;
    if (cuda_device_count(why, sizeof why) == 0) {
        printf("skipped: %s\n", why);
        return CHECK_SKIPPED;
    }
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    MUST(cuda_device_get(0, &device));
    MUST(engine_open_cuda(0, 0, &opened));
    engine = (struct cuda_engine *)opened;
    ops = opened->ops;
    for (int key_bytes = 4; key_bytes <= 8; key_bytes += 4) {
        check_sizes(key_bytes, &seed);
        check_merges(key_bytes, &seed);
    }
    check_beyond_2_31(&seed);
    ops->close(opened);
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
