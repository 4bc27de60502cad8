/* Contexts before MPI, after it, and what the last one leaves: a status if other ranks cannot be asked,
 * memory given back, and the process bound to the cores that it was bound to. */
#include <malloc.h>
#include <sched.h>
#include "hypersort.h"
#include "tests/support/ranks.h"

/* Bytes of memory that this process has from malloc(); 0 with AddressSanitizer's malloc(), which reports leaks itself. */
static size_t memory_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Check that no context can be made, and that the line says why. */
static void check_no_mpi(const char *when, const char *why)
{
    hsort_context *ctx = (hsort_context *)&when;
    CHECK(hsort_create(MPI_COMM_WORLD, NULL, &ctx) == HSORT_MPI && !ctx, "a context %s MPI", when);
    CHECK(strstr(hsort_last_error(NULL), why), "%s MPI: '%s'", when, hsort_last_error(NULL));
    CHECK(hsort_create_f(0, NULL, &ctx) == HSORT_MPI && !ctx, "a context of a number, %s MPI", when);
    CHECK(hsort_create(MPI_COMM_WORLD, NULL, NULL) == HSORT_MPI, "nowhere to write a context, %s MPI", when);
}

/* Check a context that outlived MPI: nothing that needs other ranks can be done with it, but its memory is
 * freed. */
static void check_outlived(hsort_context *ctx)
{
    uint64_t key = 1;
    hsort_check_result result = {.struct_size = sizeof result};
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL) == HSORT_MPI, "sort");
    CHECK(strstr(hsort_last_error(ctx), "finalised"), "'%s'", hsort_last_error(ctx));
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL, &result) == HSORT_MPI, "check");
    size_t bytes;
    CHECK(hsort_workspace(ctx, HSORT_U64, 1000, &bytes) == HSORT_MPI, "workspace");
    CHECK(hsort_host_workspace(ctx, HSORT_U64, 1000, &bytes) == HSORT_OK, "host workspace");
    const size_t used = memory_in_use();
    hsort_destroy(&ctx);
    CHECK(ctx == NULL && (used == 0 || memory_in_use() < used), "nothing was freed");
}

/* Make a context and sort with it. Collective. */
static hsort_context *make_context(hsort_binding binding)
{
    hsort_options options;
    hsort_context *ctx = NULL;
    uint64_t key = 1;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 2;
    options.binding = binding;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    CHECK(ctx && hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL) == HSORT_OK, "no sort");
    return ctx;
}

/* Two contexts at once, then one after the other: afterwards the process has the binding that it had. */
static void test_binding(void)
{
    cpu_set_t before, after;
    sched_getaffinity(0, sizeof before, &before);
    hsort_context *first = make_context(HSORT_BINDING_AUTO), *second = make_context(HSORT_BINDING_AUTO);
    hsort_destroy(&first);
    hsort_destroy(&second);
    hsort_context *third = make_context(HSORT_BINDING_AUTO);
    hsort_destroy(&third);
    sched_getaffinity(0, sizeof after, &after);
    CHECK(CPU_EQUAL(&before, &after), "the process is bound to other cores than before the first context");
}

int main(int argc, char **argv)
{
    check_no_mpi("before", "not initialised");
    MPI_Init(&argc, &argv);
    test_binding();
    hsort_context *last = make_context(HSORT_BINDING_NONE);
    const int failed = ranks_finish();
    check_failures = 0;
    if (last)
        check_outlived(last);
    check_no_mpi("after", "finalised");
    return failed || check_failures > 0;
}
