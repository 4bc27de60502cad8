/* The parts of an engine that only measurements need: keys made where they lie are the keys that the host makes; other
 * libraries' sorts are sorts; and keys that differ are counted. The host engine has none of this. */
#include "tests/kernels/engine_test.h"
#include "src/files/input.h"
#include "tests/support/distributions.h"

static const int64_t counts[] = {0, 1, 2, 1000, 100003, (1 << 20) + 1};
enum { COUNTS = sizeof counts / sizeof counts[0], ROUNDS = 60 };

static struct input draw_input(uint64_t *random, int64_t count)
{
    struct input input = {.type = (hsort_type)(check_random(random) % ORDER_TYPES), .count = count};
    choose_distribution(&input, random);
    input.seed = check_random(random);
    return input;
}

/* Fill any part of any input, at any alignment, and nothing around it. */
static void test_fill(uint64_t *random)
{
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t part = counts[round % COUNTS], first = (int64_t)(check_random(random) % 1000);
        const struct input input =
            draw_input(random, first + part + (int64_t)(check_random(random) % 1000) + 1);
        const size_t width = hsort_type_bytes(input.type), bytes = (size_t)part * width;
        struct buffer keys = buffer_new(NULL, bytes, check_random(random) % 2 * width);
        void *expected = alloc_or_exit(bytes + 1);
        input_fill(&input, first, part, expected);
        must(ops->yardstick->fill(engine, &input, first, part, buffer_keys(&keys)), "fill");
        CHECK(memcmp(buffer_result(&keys, "fill"), expected, bytes) == 0,
              "keys %lld + %lld of %lld %s %s:%d, seed %llu, are others", (long long)first, (long long)part,
              (long long)input.count, hsort_type_name(input.type), distribution_word(input.distribution),
              input.parameter, (unsigned long long)input.seed);
        free(expected);
        buffer_free(&keys);
    }
}

static int64_t count_different(hsort_type type, const struct buffer *a, const struct buffer *b, int64_t count)
{
    int64_t different = -1;
    must(ops->yardstick->compare(engine, type, buffer_keys(a), buffer_keys(b), count, &different), "compare");
    return different;
}

/* Numbers are compared by value: zeros of both signs are equal, and so are NaNs. */
static void test_compare(void)
{
    const double ours[] = {-0.0, 0.0, 1.0, NAN, -INFINITY, 3.0},
                 theirs[] = {0.0, -0.0, 1.0, -NAN, INFINITY, NAN};
    const uint64_t low[] = {1, 2, UINT64_MAX}, high[] = {1, UINT64_C(2) << 32, UINT64_MAX - 1};
    struct buffer a = buffer_new(ours, sizeof ours, 0), b = buffer_new(theirs, sizeof theirs, 8);
    CHECK(count_different(HSORT_F64, &a, &b, 6) == 2, "of six numbers %lld differ",
          (long long)count_different(HSORT_F64, &a, &b, 6));
    CHECK(count_different(HSORT_F64, &a, &b, 0) == 0 && count_different(HSORT_F64, &a, &a, 6) == 0,
          "a number differs from itself");
    CHECK(count_different(HSORT_U64, &a, &b, 6) == 5, "bits are not compared");
    buffer_free(&a);
    buffer_free(&b);
    a = buffer_new(low, sizeof low, 0);
    b = buffer_new(high, sizeof high, 0);
    CHECK(count_different(HSORT_I64, &a, &b, 3) == 2, "of three integers %lld differ",
          (long long)count_different(HSORT_I64, &a, &b, 3));
    buffer_free(&a);
    buffer_free(&b);
}

/* Sort keys [count] of the input; the result must be that of qsort, except for the order of zeros. */
static void check_sort(enum engine_yardstick which, const struct input *input)
{
    const size_t bytes = (size_t)input->count * hsort_type_bytes(input->type);
    char *drawn = alloc_or_exit(bytes + 1);
    void *workspace, *sorted = NULL;
    size_t workspace_bytes = 0;
    input_fill(input, 0, input->count, drawn);
    struct buffer keys = buffer_new(drawn, bytes, 0), scratch = buffer_new(NULL, bytes, 0);
    order_sort(input->type, HSORT_ASCENDING, (unsigned char *)drawn, input->count);
    struct buffer expected = buffer_new(drawn, bytes, 0);
    must(ops->yardstick->workspace(engine, which, input->type, input->count, &workspace_bytes), "workspace");
    CHECK(workspace_bytes > 0, "yardstick %d: no workspace", which);
    must(ops->alloc(engine, workspace_bytes, &workspace), "alloc");
    must(ops->yardstick->sort(engine, which, input->type, buffer_keys(&keys), buffer_keys(&scratch),
                              input->count, workspace, workspace_bytes, &sorted),
         "sort");
    CHECK(sorted == buffer_keys(&keys) || sorted == buffer_keys(&scratch),
          "yardstick %d: the result is elsewhere", which);
    const struct buffer *result = sorted == buffer_keys(&keys) ? &keys : &scratch;
    const int64_t different = count_different(input->type, result, &expected, input->count);
    CHECK(different == 0, "yardstick %d, %lld %s %s:%d, seed %llu: %lld keys are wrong", which,
          (long long)input->count, hsort_type_name(input->type), distribution_word(input->distribution),
          input->parameter, (unsigned long long)input->seed, (long long)different);
    buffer_result(&keys, "sort");
    buffer_result(&scratch, "sort");
    ops->free(engine, workspace);
    buffer_free(&keys);
    buffer_free(&scratch);
    buffer_free(&expected);
    free(drawn);
}

static void test_sorts(uint64_t *random)
{
    for (int which = 0; which < ENGINE_YARDSTICKS; which++) {
        const bool has = ops->yardstick->has((enum engine_yardstick)which, HSORT_U64);
        CHECK(has || which != YARDSTICK_CUB, "there is no CUB");
        for (int round = 0; has && round < ROUNDS; round++) {
            struct input input = draw_input(random, counts[round % COUNTS]);
            if (!input_has_nans(&input) && ops->yardstick->has((enum engine_yardstick)which, input.type))
                check_sort((enum engine_yardstick)which, &input);
        }
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = check_seed();
    open_engine(argc, argv);
    printf("test_yardstick %s: HYPERSORT_SEED=%llu\n", ops->name, (unsigned long long)seed);
    CHECK((ops->yardstick != NULL) == (ops->kind == HSORT_ENGINE_CUDA),
          "the engine %s has yardsticks, or none", ops->name);
    if (ops->yardstick) {
        test_fill(&seed);
        test_compare();
        test_sorts(&seed);
    }
    close_engine();
    return check_failures > 0;
}
