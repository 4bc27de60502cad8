/* Memory that an earlier call has left idle in its context is there for the next call, also where ranks share a machine that has hardly any
 * more: what is idle is given back before the ranks of the node ask for memory together. What the machine has is made up by the linker
 * (--wrap): as much as the test says, less what the engines of all ranks hold. */
#include <stdlib.h>
#include "kernels/base/host_memory.h"
#include "kernels/base/lesser.h"
#include "src/library/context.h"
#include "tests/support/ranks.h"

enum { PAIRS = 1 << 17, VALUE_BYTES = 64, KEYS = 3 << 18 };

static hsort_context *ctx;
static int ranks;
static size_t machine; /* bytes; 0: the real one */

/* ---- the machine --------------------------------------------------------------------------------------------------- */

/* What the engine of one rank holds; all ranks are alike. */
static size_t bytes_held(void)
{
    size_t bytes = 0;
    for (int i = 0; ctx && i < KEPT_MEMORIES; i++)
        bytes += ctx->kept[i].bytes;
    for (int i = 0; ctx && i < SPARE_BLOCKS; i++)
        bytes += ctx->spare.block[i].bytes;
    return bytes;
}

size_t __wrap_host_memory_available(void);
int __wrap_host_memory_limits(struct host_memory_limit *limits);

size_t __wrap_host_memory_available(void)
{
    const size_t held = (size_t)ranks * bytes_held();
    return machine == 0 ? SIZE_MAX / 2 : machine > held ? machine - held : 0;
}

int __wrap_host_memory_limits(struct host_memory_limit *limits)
{
    limits[0] = (struct host_memory_limit){.place = 0, .available = __wrap_host_memory_available()};
    return 1;
}

/* ---- calls ----------------------------------------------------------------------------------------------------------- */

static void open_context(void)
{
    hsort_options options;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    machine = 0;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
}

static void close_context(void)
{
    hsort_destroy(&ctx);
    ctx = NULL;
}

/* Sort pairs that leave idle blocks. Returns how many bytes. */
static size_t leave_idle(uint64_t *random, uint64_t *keys, char *values)
{
    for (int i = 0; i < PAIRS; i++)
        keys[i] = check_random(random);
    CHECK(hsort_sort_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys, values, VALUE_BYTES, PAIRS, NULL) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    MPI_Barrier(MPI_COMM_WORLD);
    return spare_idle_bytes(&ctx->spare);
}

static hsort_status sort_keys(uint64_t *random, uint64_t *keys)
{
    for (int i = 0; i < KEYS; i++)
        keys[i] = check_random(random);
    const hsort_status status = hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, KEYS, NULL);
    for (int i = 1; i < KEYS && status == HSORT_OK; i++)
        if (keys[i - 1] > keys[i]) {
            CHECK(false, "key %d is smaller than the one before", i);
            break;
        }
    return status;
}

/* What the sort of keys takes beside what the sort of pairs has left, if nothing idle is given back. */
static size_t find_growth(uint64_t *random, uint64_t *keys, char *values)
{
    open_context();
    leave_idle(random, keys, values);
    const size_t before = bytes_held();
    CHECK(sort_keys(random, keys) == HSORT_OK, "%s", hsort_last_error(ctx));
    CHECK(spare_idle_bytes(&ctx->spare) > 0, "idle memory was given back although there was enough");
    const size_t growth = bytes_held() - before;
    close_context();
    return growth;
}

/* Sort keys when the machine has so much less than that growth for each rank. */
static void sort_with_less(size_t growth, size_t less, uint64_t *random, uint64_t *keys, char *values)
{
    open_context();
    const size_t idle = leave_idle(random, keys, values);
    machine = (size_t)ranks * (bytes_held() + growth - less);
    MPI_Barrier(MPI_COMM_WORLD);
    const hsort_status status = sort_keys(random, keys), wanted = less < idle ? HSORT_OK : HSORT_HOST_MEMORY;
    CHECK(status == wanted, "%zu bytes less than %zu, %zu idle: status %d, not %d: %s", less, growth, idle,
          status, wanted, hsort_last_error(ctx));
    close_context();
}

int main(int argc, char **argv)
{
    int rank;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &ranks, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed() + (uint64_t)rank, *keys = malloc(KEYS * sizeof *keys);
    char *values = calloc(PAIRS, VALUE_BYTES);
    const size_t growth = find_growth(&random, keys, values);
    open_context();
    const size_t idle = leave_idle(&random, keys, values);
    close_context();
    if (rank == 0)
        printf("%zu bytes are idle, %zu more are wanted\n", idle, growth);
    sort_with_less(growth, growth / 64, &random, keys, values);
    sort_with_less(growth, lesser_bytes(growth, idle) / 2, &random, keys, values);
    if (ranks > 1) // a rank alone sorts with less memory
        sort_with_less(growth, growth + idle - growth / 2, &random, keys, values);
    free(keys);
    free(values);
    return ranks_finish();
}
