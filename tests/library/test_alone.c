/* A rank that is alone asks MPI for nothing but the time: it sorts and checks although its communicators are gone. On
 * several ranks the same calls then fail, on every rank, which proves that the loss is noticed. And a rank that is alone keeps no
 * memory for an exchange.
 *
 *     test_alone        the host engine
 *     test_alone cuda   the cuda engine, keys in host, pinned, managed and device memory */
#include "src/library/context.h"
#include "src/library/sort_memory.h"
#include "tests/support/device_buffer.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum {
    SORTS = 60,
    MOST_KEYS = 20000,
    /* Of 4 bytes or more: from here on ranks of a node ask each other for host memory. */
    MANY_KEYS = NODE_CHECK_BYTES / 4 + 1
};

static int rank, size, buffer_kinds;

static hsort_context *open_context(bool cuda, hsort_exchange exchange)
{
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.exchange = exchange;
    options.threads = 1;
    if (hsort_create(MPI_COMM_WORLD, &options, &ctx) != HSORT_OK) {
        fprintf(stderr, "%s\n", hsort_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return ctx;
}

/* Take the communicators away: a call that communicates over them returns an error, which must not abort the program. */
static void cut(hsort_context *ctx)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ctx->comm.world = ctx->comm.node = MPI_COMM_NULL;
}

/* Random keys on this rank. */
struct keys {
    hsort_type type;
    hsort_order order;
    int64_t count;
    size_t bytes;
    enum buffer_kind kind;
    void *in, *out; /* [bytes] of that kind; the same if the sort is in place */
    void *image;    /* [bytes] as they came */
};

static struct keys make_keys(uint64_t *random)
{
    struct keys k = {.type = (hsort_type)(check_random(random) % ORDER_TYPES)};
    k.order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    k.count = (int64_t)(check_random(random) % MOST_KEYS) >> (check_random(random) % 16);
    k.bytes = (size_t)k.count * hsort_type_bytes(k.type);
    k.kind = (enum buffer_kind)(check_random(random) % (uint64_t)buffer_kinds);
    k.in = device_buffer_alloc(k.kind, k.bytes + 8);
    k.out = check_random(random) % 2 ? k.in : device_buffer_alloc(k.kind, k.bytes + 8);
    k.image = malloc(k.bytes + 8);
    if (!k.in || !k.out || !k.image)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < k.bytes; i++)
        ((unsigned char *)k.image)[i] = (unsigned char)check_random(random);
    CHECK(device_buffer_copy(k.in, k.image, k.bytes), "cannot copy");
    return k;
}

static void drop_keys(struct keys *k)
{
    if (k->out != k->in)
        device_buffer_free(k->kind, k->out);
    device_buffer_free(k->kind, k->in);
    free(k->image);
}

/* Do the keys in `out` equal what qsort makes of them? */
static void check_sorted(const struct keys *k)
{
    void *found = malloc(k->bytes + 8);
    if (!found)
        MPI_Abort(MPI_COMM_WORLD, 1);
    CHECK(device_buffer_copy(found, k->out, k->bytes), "cannot copy");
    order_sort(k->type, k->order, k->image, k->count);
    CHECK(memcmp(found, k->image, k->bytes) == 0, "%lld keys of type %d: not what qsort makes of them",
          (long long)k->count, (int)k->type);
    free(found);
}

static void check_statistics(const hsort_context *ctx, int64_t count)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "no statistics");
    CHECK(stats.keys == count && stats.moved_bytes == 0 && stats.rounds == 0, "%lld keys, %lld bytes moved",
          (long long)stats.keys, (long long)stats.moved_bytes);
    CHECK(stats.seconds[HSORT_PHASE_LOCAL_SORT] >= 0 &&
              stats.seconds[HSORT_PHASE_LOCAL_SORT] <= stats.total_seconds,
          "the local sort took %g of %g s", stats.seconds[HSORT_PHASE_LOCAL_SORT], stats.total_seconds);
}

/* Sort and check without communicators. */
static void sort_alone(hsort_context *ctx, uint64_t *random)
{
    struct keys k = make_keys(random);
    hsort_check_result result = {.struct_size = sizeof result};
    CHECK(hsort_sort_to(ctx, k.type, k.order, k.in, k.count, k.out, k.count, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    check_sorted(&k);
    check_statistics(ctx, k.count);
    CHECK(hsort_check(ctx, k.type, k.order, k.out, k.count, NULL, &result) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(result.count == k.count && result.first_disorder == -1, "%lld keys, disorder at %lld",
          (long long)result.count, (long long)result.first_disorder);
    drop_keys(&k);
    // An error is reported without MPI, too.
    CHECK(hsort_sort(ctx, k.type, k.order, NULL, 1, NULL) == HSORT_ARGUMENT, "keys at NULL");
    CHECK(strstr(hsort_last_error(ctx), "rank 0 on ") && strstr(hsort_last_error(ctx), "NULL"), "'%s'",
          hsort_last_error(ctx));
}

/* Sort and order many keys without communicators. */
static void sort_many_alone(hsort_context *ctx)
{
    uint32_t *keys = malloc(MANY_KEYS * sizeof *keys);
    int64_t *index = malloc(MANY_KEYS * sizeof *index);
    hsort_check_result result = {.struct_size = sizeof result};
    if (!keys || !index)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int64_t i = 0; i < MANY_KEYS; i++)
        keys[i] = (uint32_t)(MANY_KEYS - i);
    CHECK(hsort_argsort(ctx, HSORT_U32, HSORT_ASCENDING, keys, MANY_KEYS, index, NULL, MANY_KEYS, NULL) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    CHECK(hsort_sort(ctx, HSORT_U32, HSORT_ASCENDING, keys, MANY_KEYS, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(hsort_check(ctx, HSORT_U32, HSORT_ASCENDING, keys, MANY_KEYS, NULL, &result) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(index[0] == MANY_KEYS - 1 && keys[0] == 1 && result.first_disorder == -1,
          "many keys: disorder at %lld", (long long)result.first_disorder);
    free(keys);
    free(index);
}

/* Several ranks fail, each by itself, and sort again as soon as they are joined. */
static void fail_together(hsort_context *ctx, uint64_t *random)
{
    const MPI_Comm world = ctx->comm.world, node = ctx->comm.node;
    struct keys k = make_keys(random);
    hsort_check_result result = {.struct_size = sizeof result};
    cut(ctx);
    CHECK(hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, k.in, 0, k.out, 0, NULL) == HSORT_MPI,
          "rank %d sorted without a communicator", rank);
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, k.in, 0, NULL, &result) == HSORT_MPI,
          "rank %d checked without a communicator", rank);
    ctx->comm.world = world;
    ctx->comm.node = node;
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, k.in, 0, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    drop_keys(&k);
}

/* What an exchange would keep beside the keys is not kept for a rank that has nobody to exchange them with. */
static void test_memory(bool cuda)
{
    hsort_context *partition = open_context(cuda, HSORT_EXCHANGE_PARTITION);
    hsort_context *bitonic = open_context(cuda, HSORT_EXCHANGE_BITONIC);
    for (int log = 8; log <= 32; log += 4) {
        size_t by_partition = 0, by_bitonic = 1;
        CHECK(hsort_workspace(partition, HSORT_U64, INT64_C(1) << log, &by_partition) == HSORT_OK &&
                  hsort_workspace(bitonic, HSORT_U64, INT64_C(1) << log, &by_bitonic) == HSORT_OK,
              "2^%d keys: no workspace", log);
        CHECK(by_partition == by_bitonic, "2^%d keys: %zu bytes, %zu without an exchange", log, by_partition,
              by_bitonic);
    }
    hsort_destroy(&partition);
    hsort_destroy(&bitonic);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed();
    hsort_context *ctx = open_context(cuda, HSORT_EXCHANGE_AUTO);
    buffer_kinds = device_buffer_kinds(cuda ? 0 : -1);
    if (size > 1) {
        fail_together(ctx, &random);
    } else {
        const MPI_Comm world = ctx->comm.world, node = ctx->comm.node;
        cut(ctx);
        for (int i = 0; i < SORTS; i++)
            sort_alone(ctx, &random);
        sort_many_alone(ctx);
        ctx->comm.world = world;
        ctx->comm.node = node;
        test_memory(cuda);
    }
    hsort_destroy(&ctx);
    return ranks_finish();
}
