/* Structs of callers that were compiled against other versions of the library: sizes that no version since
 * 0.2.0 has had are refused, nothing is written beyond the end of smaller ones, and arrays are read with the
 * caller's distance between elements. */
#include "src/library/struct_size.h"
#include "tests/support/ranks.h"

/* A struct as it was at first, and as it is after it has grown twice. */
struct first {
    size_t struct_size;
    int a;
};

struct grown {
    size_t struct_size;
    int a, b;
    double c;
};

static void test_growth(void)
{
    const size_t first = sizeof(struct first), now = sizeof(struct grown);
    CHECK(struct_size_is_known(first, first, now) && struct_size_is_known(now, first, now), "first or last");
    CHECK(!struct_size_is_known(first - 8, first, now), "smaller than the first");
    CHECK(!struct_size_is_known(now + 8, first, now), "larger than the last");
    CHECK(!struct_size_is_known(first + 1, first, now) && !struct_size_is_known(first + 4, first, now),
          "a part of a member");

    // A caller that knows the first form: all of it is written, and nothing behind.
    const struct grown known = {.struct_size = now, .a = 1, .b = 2, .c = 3};
    struct {
        struct first it;
        char behind[64];
    } caller;
    memset(&caller, 0x5a, sizeof caller);
    caller.it.struct_size = first;
    struct_size_copy(&caller.it, &known);
    CHECK(caller.it.struct_size == first && caller.it.a == 1, "%zu bytes, a %d", caller.it.struct_size,
          caller.it.a);
    for (size_t i = 0; i < sizeof caller.behind; i++)
        CHECK(caller.behind[i] == 0x5a, "byte %zu behind the struct is written", i);

        // The sizes of version 0.2.0 are those of the structs up to their last members then.
#define X(type, last) CHECK(first_size_of_##type <= sizeof(type), "%s has shrunk", #type);
    SIZED_STRUCT_LIST(X)
#undef X
}

/* Callers that know more or less of a struct than any version since 0.2.0 are refused, and nothing is written. */
#define SIZE_MISUSES(X) \
    X(0)                \
    X(sizeof(size_t))   \
    X(first - 8)        \
    X(first - 1)        \
    X(whole - 1)        \
    X(whole - 4)        \
    X(whole + 1)        \
    X(whole + 8)        \
    X(SIZE_MAX)

enum { STRUCT_BYTES = 4096 };

/* Is `text`, which the library was to leave alone, as fill() made it, except for its struct_size? */
static bool is_untouched(const char *text)
{
    for (size_t i = sizeof(size_t); i < STRUCT_BYTES; i++)
        if (text[i] != 0x5a)
            return false;
    return true;
}

static void fill(void *text, size_t struct_size)
{
    memset(text, 0x5a, STRUCT_BYTES);
    memcpy(text, &struct_size, sizeof struct_size);
}

#define CHECK_SIZES(type, ...)                                                                        \
    do {                                                                                              \
        const size_t whole = sizeof(type), first = first_size_of_##type;                              \
        const size_t sizes[] = {SIZE_MISUSES(SIZE_AND_COMMA)};                                        \
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {                                 \
            const size_t bytes = sizes[i];                                                            \
            fill(it, bytes);                                                                          \
            CHECK((__VA_ARGS__) == HSORT_ARGUMENT && is_untouched(it), #type " of %zu bytes", bytes); \
        }                                                                                             \
    } while (0)
#define SIZE_AND_COMMA(size) size,

static void test_unknown_sizes(hsort_context *ctx)
{
    _Alignas(16) char it[STRUCT_BYTES];
    uint64_t key = 1;
    hsort_rates rates;
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL) == HSORT_OK, "no statistics");
    CHECK(hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI) == HSORT_OK,
          "rates");
    CHECK_SIZES(hsort_options, hsort_options_init((void *)it, bytes));
    CHECK_SIZES(hsort_rates, hsort_rates_init((void *)it, bytes, HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI));
    CHECK_SIZES(hsort_plan_result, hsort_plan(&rates, 2, 2, HSORT_U32, 100, (void *)it));
    CHECK_SIZES(hsort_stats, hsort_get_stats(ctx, (void *)it));
    CHECK_SIZES(hsort_check_result, hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL, (void *)it));
    CHECK_SIZES(hsort_check_result,
                hsort_check_pairs(ctx, HSORT_U64, HSORT_ASCENDING, &key, &key, 8, 1, NULL, NULL, (void *)it));
    CHECK_SIZES(hsort_rank_info, hsort_topology(ctx, (void *)it, bytes));
    CHECK_SIZES(hsort_path_speed, hsort_measure_paths(ctx, (void *)it, bytes));
    hsort_plan_result plan = {.struct_size = sizeof plan};
    CHECK_SIZES(hsort_rates, hsort_plan((void *)it, 2, 2, HSORT_U32, 100, &plan));
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    hsort_options options;
    hsort_context *ctx = NULL;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    test_growth();
    if (ctx)
        test_unknown_sizes(ctx);
    hsort_destroy(&ctx);
    return ranks_finish();
}
