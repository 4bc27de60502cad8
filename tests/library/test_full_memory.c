/* Several ranks whose keys fill the engines' memory. The keys are sorted in place, whatever the counts, with little additional memory.
 * If that is impossible, they are refused on every rank, and left as they were.
 *
 *     test_full_memory        the host engine under a limit; that it can work on the caller's memory is made up: the linker puts
 *                             __wrap_engine_open_host() in the place of engine_open_host() (--wrap)
 *     test_full_memory cuda   the cuda engine under a limit, keys in device memory */
#include "src/library/context_memory.h"
#include "tests/support/device_buffer.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

/* A GPU must get more keys, because its workspace takes more than few keys do: else all keys fit into what the limit has to spare. */
enum {
    MOST_RANKS = 16,
    MOST_KEYS = 200000,
    SORTS = 24,
    CUDA_KEYS = 2000000,
    CUDA_SORTS = 8,
    LEAST_BYTES = 1 << 16
};

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);

static bool
    is_far; /* the host engine cannot work on the caller's memory: this rank's, for a while */

static hsort_status near_space_of(struct engine *engine, const void *pointer, enum engine_space *space)
{
    (void)engine;
    *space = pointer && is_far ? SPACE_HOST : SPACE_ENGINE;
    return HSORT_OK;
}

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    static struct engine_ops near;
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    near = *(*engine)->ops;
    near.space_of = near_space_of;
    (*engine)->ops = &near;
    return HSORT_OK;
}

static int rank, size;
static bool cuda;
static char what[200];

/* A drawn array over all ranks, and this rank's part of it. */
struct keys {
    hsort_type type;
    hsort_order order;
    size_t width;
    int64_t counts[MOST_RANKS], total, first, count;
    unsigned char *all, *sorted; /* [total] on every rank */
    unsigned char *in, *out;     /* [count] where the engine has its memory; one array in place */
};

static unsigned char *new_array(int64_t count, size_t width)
{
    const size_t bytes = (size_t)count * width + 16;
    unsigned char *memory = cuda ? device_buffer_alloc(BUFFER_DEVICE, bytes) : malloc(bytes);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return memory;
}

static void free_array(void *memory)
{
    if (cuda)
        device_buffer_free(BUFFER_DEVICE, memory);
    else
        free(memory);
}

/* Make keys, the same on all ranks except what is a rank's own. */
static struct keys make_keys(enum layout layout, int64_t total, uint64_t *random)
{
    static const hsort_type types[] = {HSORT_U32, HSORT_I64, HSORT_F64, HSORT_F32, HSORT_U128};
    struct keys k = {.type = types[check_random(random) % 5], .total = total};
    const uint64_t kind = check_random(random) % 4, in_place = check_random(random) % 2;
    k.order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    k.width = hsort_type_bytes(k.type);
    layout_counts(layout, total, size, check_random(random), k.counts);
    k.count = k.counts[rank];
    k.first = layout_before(k.counts, rank);
    const size_t bytes = (size_t)total * k.width;
    k.all = malloc(bytes + 1);
    k.sorted = malloc(bytes + 1);
    if (!k.all || !k.sorted)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < bytes; i++)
        k.all[i] = (unsigned char)(kind == 0          ? check_random(random)
                                   : kind == 1        ? i / k.width % 3
                                   : i % k.width == 0 ? check_random(random)
                                                      : 0);
    memcpy(k.sorted, k.all, bytes);
    order_sort(k.type, k.order, k.sorted, total);
    if (kind == 3) { // what a rank has belongs to the next one, nearly all of it
        const size_t shift = bytes / k.width / (size_t)size * k.width;
        memcpy(k.all, k.sorted + bytes - shift, shift);
        memcpy(k.all + shift, k.sorted, bytes - shift);
    }
    k.in = new_array(k.count, k.width);
    k.out = in_place ? k.in : new_array(k.count, k.width);
    CHECK(device_buffer_copy(k.in, k.all + (size_t)k.first * k.width, (size_t)k.count * k.width),
          "cannot copy");
    return k;
}

static void free_keys(struct keys *k)
{
    if (k->out != k->in)
        free_array(k->out);
    free_array(k->in);
    free(k->all);
    free(k->sorted);
}

/* Is an array of this rank its part of what all ranks have, or are to have? */
static void check_part(const struct keys *k, const void *array, const unsigned char *all, const char *name)
{
    const size_t bytes = (size_t)k->count * k->width;
    unsigned char *found = malloc(bytes + 1);
    if (!found)
        MPI_Abort(MPI_COMM_WORLD, 1);
    CHECK(device_buffer_copy(found, array, bytes) &&
              memcmp(found, all + (size_t)k->first * k->width, bytes) == 0,
          "%s: rank %d: the %s is not what it must be", what, rank, name);
    free(found);
}

static hsort_context *open_context(hsort_exchange exchange, hsort_choice peers, size_t limit)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.exchange = exchange;
    options.peer_memory = peers;
    options.threads = 1;
    options.device_memory_limit = limit;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    return ctx;
}

/* Return memory for scratch for 1 / share of the keys of the rank that has most, and for what each sort takes. */
static size_t limit_for(const struct keys *k, int64_t share)
{
    size_t bytes, all = 0;
    hsort_context *ctx = open_context(HSORT_EXCHANGE_BITONIC, HSORT_CHOICE_AUTO, 0);
    for (int r = 0; r < size; r++)
        if ((size_t)k->counts[r] * k->width > all)
            all = (size_t)k->counts[r] * k->width;
    CHECK(hsort_workspace(ctx, k->type, (int64_t)(all / k->width), &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    return free_bytes_for(all / (size_t)share / 64 * 65 + bytes - 2 * all) + LEAST_BYTES;
}

/* Sort what fills memory. */
static void check_sort(uint64_t *random)
{
    static const hsort_choice peers[] = {HSORT_CHOICE_AUTO, HSORT_CHOICE_OFF};
    const enum layout layout = (enum layout)(check_random(random) % LAYOUTS);
    const int64_t share = 4 + (int64_t)(check_random(random) % (cuda ? 16 : 40)),
                  total = (cuda ? CUDA_KEYS : MOST_KEYS) - (int64_t)(check_random(random) % 1000);
    const hsort_exchange exchange = check_random(random) % 2 ? HSORT_EXCHANGE_DIRECT : HSORT_EXCHANGE_AUTO;
    hsort_stats stats = {.struct_size = sizeof stats};
    struct keys k = make_keys(layout, total, random);
    snprintf(what, sizeof what, "%lld %s, layout %d, scratch for 1 / %lld", (long long)total,
             hsort_type_name(k.type), layout, (long long)share);
    hsort_context *ctx = open_context(exchange, peers[check_random(random) % 2], limit_for(&k, share));
    for (int turn = 0; turn < 2; turn++) { // the second sort in what the first has left
        const hsort_status status = hsort_sort_to(ctx, k.type, k.order, k.in, k.count, k.out, k.count, NULL);
        CHECK(status == HSORT_OK, "%s: %s", what, hsort_last_error(ctx));
        CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == 1, "%s: %d passes", what,
              (int)stats.passes);
        check_part(&k, k.out, k.sorted, "result");
        if (k.in != k.out)
            check_part(&k, k.in, k.all, "input");
    }
    hsort_destroy(&ctx);
    free_keys(&k);
}

/* A sort cannot be in place if an exchange that needs room was asked for, a rank asks for other counts, or its keys lie elsewhere. */
static void check_refusal(int reason, uint64_t *random)
{
    struct keys k = make_keys(LAYOUT_BALANCED, cuda ? CUDA_KEYS : MOST_KEYS, random);
    snprintf(what, sizeof what, "refused, reason %d, %s", reason, hsort_type_name(k.type));
    hsort_context *ctx = open_context(reason == 0 ? HSORT_EXCHANGE_BITONIC : HSORT_EXCHANGE_AUTO,
                                      HSORT_CHOICE_AUTO, limit_for(&k, 8));
    const int64_t out_count = reason != 1 ? k.count
                              : rank == 0 ? k.count - 1
                              : rank == 1 ? k.count + 1
                                          : k.count;
    unsigned char *out = new_array(out_count, k.width);
    is_far = reason == 2 && rank == size - 1;
    const hsort_status status = hsort_sort_to(ctx, k.type, k.order, k.in, k.count, out, out_count, NULL);
    is_far = false;
    CHECK(status == HSORT_DEVICE_MEMORY || status == HSORT_HOST_MEMORY, "%s: status %d, %s", what, status,
          hsort_last_error(ctx));
    check_part(&k, k.in, k.all, "input");
    free_array(out);
    hsort_destroy(&ctx);
    free_keys(&k);
}

int main(int argc, char **argv)
{
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed();
    hsort_context *ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_CHOICE_AUTO, 0);
    CHECK(size <= MOST_RANKS && device_buffer_kinds(cuda ? ctx->placement.device : -1) > 0, "no memory");
    hsort_destroy(&ctx);
    for (int i = 0; i < (cuda ? CUDA_SORTS : SORTS); i++)
        check_sort(&random);
    for (int reason = 0; size > 1 && reason < (cuda ? 2 : 3); reason++)
        check_refusal(reason, &random);
    return ranks_finish();
}
