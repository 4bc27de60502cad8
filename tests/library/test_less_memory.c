/* A rank that is alone where its keys fit into the engine's memory, but not twice: the sort takes less scratch, down to
 * 1/64. Several ranks need the room, and must say so on every rank.
 *
 *     test_less_memory        the host engine, made to have little memory: the linker puts __wrap_engine_open_host() in
 *                             the place of engine_open_host() (--wrap)
 *     test_less_memory cuda   the cuda engine under a limit of its own */
#include "kernels/engine.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum { ALLOCATIONS = 8, COUNT = 1 << 19, FEW = 1 << 17 };

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);

/* ---- a host engine with little memory --------------------------------------------------------------------------- */

static const struct engine_ops *true_ops;
static size_t memory_bytes = SIZE_MAX, used_bytes;
static bool keys_are_far; /* the caller's memory is none that the engine can work on */
static struct {
    void *memory;
    size_t bytes;
} allocations[ALLOCATIONS];

static hsort_status little_alloc(struct engine *engine, size_t bytes, void **memory)
{
    int place = 0;
    *memory = NULL;
    while (place < ALLOCATIONS - 1 && allocations[place].memory)
        place++;
    if (bytes > memory_bytes - used_bytes || allocations[place].memory)
        return status_fail(HSORT_HOST_MEMORY, "no %zu bytes: %zu of %zu are in use", bytes, used_bytes,
                           memory_bytes);
    TRY(true_ops->alloc(engine, bytes, memory));
    allocations[place].memory = *memory;
    allocations[place].bytes = *memory ? bytes : 0;
    used_bytes += allocations[place].bytes;
    return HSORT_OK;
}

static void little_free(struct engine *engine, void *memory)
{
    for (int place = 0; memory && place < ALLOCATIONS; place++) {
        if (allocations[place].memory == memory) {
            used_bytes -= allocations[place].bytes;
            allocations[place].memory = NULL;
        }
    }
    true_ops->free(engine, memory);
}

static hsort_status little_memory_free(struct engine *engine, size_t *bytes)
{
    (void)engine;
    *bytes = memory_bytes - used_bytes;
    return HSORT_OK;
}

static hsort_status little_space_of(struct engine *engine, const void *pointer, enum engine_space *space)
{
    (void)engine;
    *space = pointer && keys_are_far ? SPACE_HOST : SPACE_ENGINE;
    return HSORT_OK;
}

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    static struct engine_ops little;
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    true_ops = (*engine)->ops;
    little = *true_ops;
    little.alloc = little_alloc;
    little.free = little_free;
    little.memory_free = little_memory_free;
    little.space_of = little_space_of;
    (*engine)->ops = &little;
    return HSORT_OK;
}

/* ---- sorts ------------------------------------------------------------------------------------------------------ */

static int rank, size;

static hsort_context *open_context(bool cuda, hsort_exchange exchange, size_t limit)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.transport = HSORT_TRANSPORT_STAGED;
    options.exchange = exchange;
    options.threads = 1;
    options.device_memory_limit = cuda ? limit : 0;
    memory_bytes = SIZE_MAX; // what is there before the sort is not counted
    used_bytes = 0;
    memset(allocations, 0, sizeof allocations);
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    memory_bytes = cuda ? SIZE_MAX : limit;
    return ctx;
}

/* Sort random keys [count] on each rank in place; `fits`: it must work, and on one rank be what qsort makes of them. */
static void check_sort(hsort_context *ctx, hsort_type type, hsort_order order, int64_t count, bool fits,
                       const char *what, uint64_t *random)
{
    const size_t bytes = (size_t)count * hsort_type_bytes(type);
    unsigned char *keys = malloc(bytes), *expected = malloc(bytes);
    if (!keys || !expected)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = keys[i] = (unsigned char)check_random(random);
    const hsort_status status = hsort_sort(ctx, type, order, keys, count, NULL);
    const bool short_of_memory = status == HSORT_DEVICE_MEMORY || status == HSORT_HOST_MEMORY;
    CHECK(fits ? status == HSORT_OK : short_of_memory, "%s: status %d, %s", what, status,
          hsort_last_error(ctx));
    if (fits && size == 1)
        order_sort(type, order, expected, count);
    if (!fits || size == 1)
        CHECK(memcmp(keys, expected, bytes) == 0, "%s: the keys are not what they must be", what);
    free(keys);
    free(expected);
}

/* Memory for the keys, if they are far, and scratch for 1 / share of them, or none, which is too little: 0. */
static void check_share(bool cuda, bool far, hsort_type type, int64_t share, uint64_t *random)
{
    char what[96];
    const size_t keys_bytes = (size_t)COUNT * hsort_type_bytes(type);
    size_t all_bytes;
    snprintf(what, sizeof what, "%s, keys %s, %s, scratch for 1 / %lld", cuda ? "cuda" : "host",
             far ? "far" : "near", hsort_type_name(type), (long long)share);
    // Without the room for a partition, which a sort can do without.
    hsort_context *ctx = open_context(cuda, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, type, COUNT, &all_bytes) == HSORT_OK, "%s: no workspace", what);
    hsort_destroy(&ctx);

    const size_t workspace_bytes = all_bytes - 2 * keys_bytes;
    size_t limit = far ? keys_bytes : 0;
    if (share > 0) // and 1 / 32 more: see take_less() of sort.c
        limit += (keys_bytes / (size_t)share + workspace_bytes) / 32 * 33;
    keys_are_far = far;
    ctx = open_context(cuda, share % 2 ? HSORT_EXCHANGE_PARTITION : HSORT_EXCHANGE_BITONIC,
                       limit > 0 ? limit : 1);
    const hsort_order order = share % 2 ? HSORT_ASCENDING : HSORT_DESCENDING;
    const bool fits = size == 1 && share > 0;
    check_sort(ctx, type, order, COUNT, fits, what, random);
    check_sort(ctx, type, order, fits ? FEW : COUNT, fits, what, random); // in what the first left
    check_sort(ctx, type, order, COUNT, fits, what, random);
    if (far)
        check_sort(ctx, type, order, 3 * COUNT, false, what, random);
    hsort_destroy(&ctx);
    keys_are_far = false;
}

int main(int argc, char **argv)
{
    static const int64_t shares[] = {2, 3, 8, 50, 0};
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed() + (uint64_t)rank;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        for (int far = cuda; far <= 1; far++) {
            check_share(cuda, far, HSORT_F64, shares[i], &random);
            check_share(cuda, far, HSORT_U32, shares[i], &random);
        }
    return ranks_finish();
}
