/* The whole sort through the public interface, with everything varied that can be: types, distributions, sizes, both orders, how the
 * keys lie on the ranks before and after, transports, in place or not. The oracle shares nothing with the library but the
 * input: rank 0 makes all keys itself, sorts them with qsort by the order of tests/support/order.h, and compares bit for bit.
 * Every buffer lies between canaries, input that must not change is compared, and hsort_check() is asked before and after.
 *
 * Fixed cases cover each type, order and size; then cases are drawn from the whole product until the time is up. A case
 * follows from the printed seed and its number alone.
 *
 *     test_sort          the host engine
 *     test_sort_ipc ipc  the same, with ranks that map each other's memory, and keys also in memory that counts as pinned
 *                        (shared_engine.h)
 *     test_sort cuda     the cuda engine, keys in host, pinned, managed and device memory */
#include "tests/support/device_buffer.h"
#ifdef SHARED_ENGINE
#include "tests/support/shared_engine.h"
#endif
#include "kernels/engine.h"
#include "src/files/input.h"
#include "tests/support/distributions.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 64, GUARD = 64, CANARY = 0xc5, SETTINGS = 9, DRAWS = 4000 };

enum call { CALL_IN_PLACE, CALL_TO, CALL_TO_SAME_BUFFER, CALLS };

/* A context to sort with. */
struct setting {
    hsort_context *ctx;
    const char *name;
    bool is_small; /* its engine has room for a table and little more: for keys that are counted */
    bool packs;    /* what moves may be any number of bytes */
};

struct test_case {
    struct input input;
    hsort_order order;
    enum layout in_layout, out_layout;
    enum call call;
    const struct setting *setting;
    uint64_t seed; /* of layouts, alignments and kinds of memory */
    bool at_rest;  /* no key may move */
};

/* One rank's keys in memory of some kind, between canaries. */
struct shard {
    enum buffer_kind kind;
    unsigned char *memory; /* [bytes] */
    unsigned char *image;  /* [bytes] what the memory must hold, or held */
    size_t bytes, at;      /* at: where the keys begin */
};

static int rank, size, buffer_kinds, setting_count, rung = -1; /* rung: that the next context asks for */
static struct setting settings[SETTINGS];
static size_t engine_bytes; /* that the next context may take; 0: no limit */
static char case_text[256];

/* ---- Shards ----------------------------------------------------------------------------------------------------- */

/* alignment: that keys must have; those of 1 and 2 bytes need not be aligned to 8. */
static bool shard_make(struct shard *shard, size_t key_bytes, size_t alignment, uint64_t *random)
{
    shard->kind = (enum buffer_kind)(check_random(random) % (uint64_t)buffer_kinds);
    shard->at = GUARD + 8 * (check_random(random) % 4) / alignment * alignment;
    shard->bytes = shard->at + key_bytes + GUARD;
    shard->memory = device_buffer_alloc(shard->kind, shard->bytes);
    shard->image = malloc(shard->bytes);
    if (!shard->memory || !shard->image)
        return false;
    memset(shard->image, CANARY, shard->bytes);
    return true;
}

static void shard_drop(struct shard *shard)
{
    device_buffer_free(shard->kind, shard->memory);
    free(shard->image);
}

/* Bring the image into memory. Some keys arrive late, so that the sort must wait for *stream; the host engine knows none. */
static void shard_load(struct shard *shard, uint64_t *random, void **stream)
{
    const bool late = buffer_kinds > 1 && check_random(random) % 4 == 0;
    *stream = NULL;
    if (late) { // nothing of an earlier load may be left to be taken for this one
        unsigned char *blank = calloc(1, shard->bytes);
        CHECK(blank && device_buffer_copy(shard->memory, blank, shard->bytes), "%s: cannot copy", case_text);
        free(blank);
    }
    const bool by_default = check_random(random) % 2;
    CHECK(late ? device_buffer_copy_late(shard->memory, shard->image, shard->bytes, by_default, stream)
               : device_buffer_copy(shard->memory, shard->image, shard->bytes),
          "%s: cannot copy", case_text);
}

/* Are the canaries unharmed, and the first `same_bytes` of the keys as in the image? Then it becomes what memory holds. */
static void shard_check(struct shard *shard, size_t key_bytes, size_t same_bytes, const char *name)
{
    unsigned char *found = malloc(shard->bytes);
    CHECK(found && device_buffer_copy(found, shard->memory, shard->bytes), "%s: cannot copy", case_text);
    if (!found)
        return;
    const size_t end = shard->at + key_bytes;
    CHECK(memcmp(found, shard->image, shard->at) == 0, "%s: rank %d: canary before %s", case_text, rank,
          name);
    CHECK(memcmp(found + end, shard->image + end, shard->bytes - end) == 0, "%s: rank %d: canary behind %s",
          case_text, rank, name);
    CHECK(memcmp(found + shard->at, shard->image + shard->at, same_bytes) == 0, "%s: rank %d: %s was changed",
          case_text, rank, name);
    memcpy(shard->image, found, shard->bytes);
    free(found);
}

/* ---- The oracle, on rank 0 -------------------------------------------------------------------------------------- */

/* All keys of the input, before or after sorting; NULL on other ranks. The caller frees it. */
static unsigned char *make_expected(const struct test_case *c, bool sorted)
{
    const size_t width = hsort_type_bytes(c->input.type);
    if (rank != 0)
        return NULL;
    unsigned char *keys = malloc((size_t)c->input.count * width + 1);
    if (!keys)
        abort();
    input_fill(&c->input, 0, c->input.count, keys);
    if (sorted)
        order_sort(c->input.type, c->order, keys, c->input.count);
    return keys;
}

static int64_t first_disorder(const struct test_case *c)
{
    const size_t width = hsort_type_bytes(c->input.type);
    unsigned char *keys = make_expected(c, false);
    int64_t at = -1;
    for (int64_t i = 1; keys && i < c->input.count && at < 0; i++) {
        const unsigned char *key = keys + (size_t)i * width;
        if (order_compare(c->input.type, c->order, key - width, key) > 0)
            at = i;
    }
    free(keys);
    MPI_Bcast(&at, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    return at;
}

/* Gather the ranks' keys on rank 0 and compare them with what qsort makes of the input. */
static void compare_with_oracle(const struct test_case *c, const unsigned char *own, const int64_t *counts)
{
    const int width = (int)hsort_type_bytes(c->input.type);
    int bytes[MOST_RANKS], at[MOST_RANKS], all = 0;
    for (int r = 0; r < size; r++) {
        at[r] = all;
        bytes[r] = (int)counts[r] * width;
        all += bytes[r];
    }
    unsigned char *expected = make_expected(c, true), *found = rank == 0 ? malloc((size_t)all + 1) : NULL;
    MPI_Gatherv(own, bytes[rank], MPI_BYTE, found, bytes, at, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (found && memcmp(found, expected, (size_t)all) != 0) {
        int wrong = 0;
        while (found[wrong] == expected[wrong])
            wrong++;
        CHECK(false, "%s: key %d of %lld is not the one that qsort puts there", case_text, wrong / width,
              (long long)c->input.count);
    }
    free(expected);
    free(found);
}

/* ---- One case --------------------------------------------------------------------------------------------------- */

static void describe(const struct test_case *c, int number)
{
    static const char *const layouts[LAYOUTS] = {"balanced", "on one rank", "random", "sparse", "descending"};
    static const char *const calls[CALLS] = {"in place", "to another buffer", "to the same buffer"};
    snprintf(case_text, sizeof case_text, "case %d: %lld %s %s:%d, order %d, %s -> %s, %s, %s", number,
             (long long)c->input.count, hsort_type_name(c->input.type),
             distribution_word(c->input.distribution), c->input.parameter, c->order, layouts[c->in_layout],
             layouts[c->out_layout], calls[c->call], c->setting->name);
}

static hsort_check_result check_keys(const struct test_case *c, const void *keys, int64_t count, void *stream)
{
    hsort_check_result result = {.struct_size = sizeof result};
    const hsort_status status =
        hsort_check(c->setting->ctx, c->input.type, c->order, keys, count, stream, &result);
    CHECK(status == HSORT_OK, "%s: hsort_check: %s", case_text, hsort_last_error(c->setting->ctx));
    CHECK(result.count == c->input.count, "%s: %lld keys", case_text, (long long)result.count);
    return result;
}

/* Check that every pair has a path, and that every byte that moved went by one. */
static void check_path_stats(const hsort_stats *stats)
{
    int64_t pairs = 0, bytes = 0, crossed = 0;
    for (int i = 0; i < HSORT_TRANSPORTS; i++) {
        const hsort_path_stats *path = &stats->paths[i];
        pairs += path->pairs;
        bytes += path->moved_bytes;
        crossed += stats->paths_crossed_bytes[i];
        CHECK(stats->paths_crossed_bytes[i] >= 0 && stats->paths_crossed_bytes[i] <= path->moved_bytes,
              "%s: path %d: %lld bytes crossed", case_text, i, (long long)stats->paths_crossed_bytes[i]);
        CHECK(path->moved_bytes_largest >= 0 && path->moved_bytes_largest <= path->moved_bytes &&
                  path->moved_bytes <= path->moved_bytes_largest * size,
              "%s: path %d: %lld bytes of one rank, %lld of all", case_text, i,
              (long long)path->moved_bytes_largest, (long long)path->moved_bytes);
        CHECK(path->seconds >= 0 && path->seconds <= stats->total_seconds &&
                  (path->seconds > 0 || path->moved_bytes == 0),
              "%s: path %d took %g of %g s", case_text, i, path->seconds, stats->total_seconds);
    }
    CHECK(pairs == (int64_t)size * (size - 1) / 2 && stats->paths[HSORT_TRANSPORT_AUTO].pairs == 0,
          "%s: %lld pairs", case_text, (long long)pairs);
    CHECK(bytes == stats->moved_bytes, "%s: %lld bytes by all paths, %lld moved", case_text, (long long)bytes,
          (long long)stats->moved_bytes);
#ifdef VIRTUAL_NODES // if there are two ranks, each is a node
    const bool right = crossed <= stats->crossed_plain_bytes && (size > 2 || crossed == bytes);
#else
    const bool right = stats->crossed_plain_bytes == 0;
#endif
    CHECK(right && crossed == stats->crossed_bytes, "%s: %lld bytes crossed, %lld by all paths, %lld plain", case_text,
          (long long)stats->crossed_bytes, (long long)crossed, (long long)stats->crossed_plain_bytes);
}

static void check_stats(const struct test_case *c)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(c->setting->ctx, &stats) == HSORT_OK, "%s: no statistics", case_text);
    CHECK(stats.keys == c->input.count, "%s: %lld keys", case_text, (long long)stats.keys);
#ifdef VIRTUAL_NODES
    const bool packs = true;
#else
    const bool packs = c->setting->packs;
#endif
    const int64_t unit = packs ? 1 : (int64_t)hsort_type_bytes(c->input.type);
    CHECK(stats.moved_bytes >= 0 && stats.moved_bytes % unit == 0, "%s: %lld bytes moved", case_text,
          (long long)stats.moved_bytes);
    CHECK(!c->at_rest || stats.moved_bytes == 0, "%s: %lld bytes moved", case_text,
          (long long)stats.moved_bytes);
    CHECK(size > 1 || stats.moved_bytes == 0, "%s: %lld bytes moved by one rank", case_text,
          (long long)stats.moved_bytes);
    check_path_stats(&stats);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        CHECK(stats.seconds[phase] >= 0 && stats.seconds[phase] <= stats.total_seconds,
              "%s: phase %d took %g of %g s", case_text, phase, stats.seconds[phase], stats.total_seconds);
}

/* Sort `in` into `out` (the same shard if the case says so) and check everything that can be said about it. */
static void sort_shards(const struct test_case *c, struct shard *in, struct shard *out, const int64_t *counts,
                        const int64_t *out_counts, uint64_t *random)
{
    hsort_context *ctx = c->setting->ctx;
    const size_t width = hsort_type_bytes(c->input.type);
    const int64_t count = counts[rank], out_count = out_counts[rank];
    const size_t in_bytes = (size_t)count * width, out_bytes = (size_t)out_count * width;
    // A rank without keys may have no buffer either.
    void *keys = count == 0 && check_random(random) % 2 ? NULL : in->memory + in->at;
    void *result = out_count == 0 && check_random(random) % 2 ? NULL : out->memory + out->at;
    if (in == out && (keys == NULL) != (result == NULL))
        keys = result = in->memory + in->at;

    void *stream;
    shard_load(in, random, &stream);
    if (in != out)
        CHECK(device_buffer_copy(out->memory, out->image, out->bytes), "%s: cannot copy", case_text);
    const hsort_check_result before = check_keys(c, keys, count, stream);
    const int64_t disorder = first_disorder(c);
    CHECK(before.first_disorder == disorder, "%s: first disorder %lld instead of %lld", case_text,
          (long long)before.first_disorder, (long long)disorder);

    shard_load(in, random, &stream);
    const hsort_status status =
        c->call == CALL_IN_PLACE
            ? hsort_sort(ctx, c->input.type, c->order, keys, count, stream)
            : hsort_sort_to(ctx, c->input.type, c->order, keys, count, result, out_count, stream);
    CHECK(status == HSORT_OK, "%s: %s", case_text, hsort_last_error(ctx));
    if (status != HSORT_OK)
        return;
    const hsort_check_result after = check_keys(c, result, out_count, NULL);
    CHECK(after.first_disorder == -1, "%s: not sorted at %lld", case_text, (long long)after.first_disorder);
    CHECK(after.fingerprint[0] == before.fingerprint[0] && after.fingerprint[1] == before.fingerprint[1],
          "%s: not the same keys", case_text);
    if (in != out)
        shard_check(in, in_bytes, in_bytes, "the input");
    shard_check(out, in != out || out_bytes > in_bytes ? out_bytes : in_bytes, 0, "the output");
    compare_with_oracle(c, out->image + out->at, out_counts);
    check_stats(c);
}

static void run_case(struct test_case *c, int number)
{
    const size_t width = hsort_type_bytes(c->input.type);
    if (c->setting->is_small && !KEY_IS_COUNTED(width))
        c->setting = &settings[0];
    int64_t counts[MOST_RANKS], out_counts[MOST_RANKS];
    describe(c, number);
    layout_counts(c->in_layout, c->input.count, size, c->seed, counts);
    layout_counts(c->out_layout, c->input.count, size, c->seed + 1, out_counts);
    if (c->call == CALL_IN_PLACE)
        memcpy(out_counts, counts, sizeof counts);
    const int64_t first = layout_before(counts, rank);
    uint64_t random = c->seed + 1000 * (uint64_t)(rank + 1);
    const bool one_buffer = c->call != CALL_TO;
    const int64_t room = one_buffer && out_counts[rank] > counts[rank] ? out_counts[rank] : counts[rank];
    struct shard in, out = {.memory = NULL};
    const bool made = shard_make(&in, (size_t)room * width, width, &random) &&
                      (one_buffer || shard_make(&out, (size_t)out_counts[rank] * width, width, &random));
    if (!made)
        MPI_Abort(MPI_COMM_WORLD, 1);
    input_fill(&c->input, first, counts[rank], in.image + in.at);
    sort_shards(c, &in, one_buffer ? &in : &out, counts, out_counts, &random);
    shard_drop(&in);
    if (!one_buffer)
        shard_drop(&out);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static struct test_case draw_case(uint64_t seed, int64_t count)
{
    uint64_t random = seed;
    struct test_case c = {.seed = check_random(&random)};
    choose_distribution(&c.input, &random);
    c.input.type = (hsort_type)(check_random(&random) % ORDER_TYPES);
    c.input.seed = check_random(&random);
    c.input.count = count;
    c.order = check_random(&random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    c.in_layout = (enum layout)(check_random(&random) % LAYOUTS);
    c.out_layout = (enum layout)(check_random(&random) % LAYOUTS);
    c.call = (enum call)(check_random(&random) % CALLS);
    c.setting = &settings[check_random(&random) % (uint64_t)setting_count];
    return c;
}

/* Run each type, order and size once, whatever else they are drawn with. */
static int run_fixed(uint64_t seed)
{
    const int64_t sizes[] = {0,         1,         2,         size - 1, size, size + 1,
                             31 * size, 32 * size, 33 * size, 1000,     4095, 4097};
    int number = 0;
    for (int type = 0; type < ORDER_TYPES; type++)
        for (int order = HSORT_ASCENDING; order <= HSORT_DESCENDING; order++)
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++, number++) {
                if (type > HSORT_U128 && (i + (uint64_t)type + seed) % 3 != 0)
                    continue; // they are counted, of whatever size: some are drawn
                struct test_case c = draw_case(seed + (uint64_t)number, sizes[i]);
                c.input.type = (hsort_type)type;
                c.order = (hsort_order)order;
                if (i % 3 == 0)
                    c.input.distribution = INPUT_NAN;
                run_case(&c, number);
            }
    return number;
}

/* What is in order already stays where it is: no byte moves, at any number of ranks, however the keys are spread. */
static int run_at_rest(uint64_t seed, int number)
{
    const int64_t sizes[] = {size, 100 * size, 100 * size + 1, 101 * size - 1, 5, 4096};
    static const enum input_distribution distributions[4] = {INPUT_SORTED, INPUT_EQUAL, INPUT_STAIRCASE,
                                                             INPUT_REVERSE};
    for (int kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int layout = 0; layout < LAYOUTS; layout++, number++) {
                struct test_case c = draw_case(seed + (uint64_t)number, sizes[i]);
                c.input.distribution = distributions[kind];
                c.in_layout = c.out_layout = (enum layout)layout;
                if (layout != LAYOUT_BALANCED)
                    c.call = CALL_IN_PLACE; // keeps its counts, also where the layout draws them at random
                c.order = distributions[kind] == INPUT_REVERSE ? HSORT_DESCENDING : HSORT_ASCENDING;
                c.at_rest = true;
                run_case(&c, number);
            }
    return number;
}

static int64_t draw_size(uint64_t random, int64_t large)
{
    const int64_t sizes[] = {0,         1,    2,    size - 1, size, size + 1,      31 * size, 32 * size,
                             33 * size, 1000, 4095, 4096,     4097, 64 * size + 1, large};
    const uint64_t draw = check_random(&random);
    const int64_t fixed = sizes[draw % (sizeof sizes / sizeof sizes[0])];
    // The large size takes as long as a hundred others.
    const bool keep = fixed != large || check_random(&random) % 8 == 0;
    return keep && draw % 3 ? fixed : (int64_t)(check_random(&random) % 3000);
}

/* Draw cases from the whole product for `seconds`. */
static int run_random(uint64_t seed, int number, double seconds, int64_t large)
{
    const double begin = MPI_Wtime();
    const int end = number + DRAWS;
    int go_on = 1;
    while (go_on && number < end) {
        const uint64_t case_seed = seed + (uint64_t)number * 1000003;
        struct test_case c = draw_case(case_seed, draw_size(case_seed ^ 1, large));
        run_case(&c, number++);
        go_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return number;
}

/* ---- Contexts --------------------------------------------------------------------------------------------------- */

static bool open_setting(hsort_engine engine, hsort_transport transport, hsort_exchange exchange,
                         size_t piece, int threads, const char *name)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = engine;
    options.transport = transport;
    options.exchange = exchange;
    options.chunk_bytes = piece;
    options.threads = threads;
    options.device_memory_limit = engine_bytes;
    options.local_rung = rung;
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "%s: %s", name, hsort_last_error(NULL));
    if (status != HSORT_OK)
        return false;
    CHECK(hsort_engine_in_use(ctx) == engine, "%s: another engine", name);
    settings[setting_count++] = (struct setting){
        ctx, name, engine_bytes > 0, transport == HSORT_TRANSPORT_STAGED && exchange != HSORT_EXCHANGE_BITONIC};
    return true;
}

/* Open a setting with so little memory that keys in host memory pass through the engine piece by piece. */
static bool open_small(hsort_engine engine)
{
    enum { TABLE_BYTES = 655360, PIECE_BYTES = 1008 };
    engine_bytes = TABLE_BYTES + PIECE_BYTES;
    const bool opened = open_setting(engine, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_AUTO, 0, 1, "little memory");
    engine_bytes = 0;
    return opened;
}

static bool open_host(void)
{
    // Two threads per rank only if that does not overload the machine.
    return open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_BITONIC, 64, 1,
                        "bitonic, staged, pieces of 64 bytes") &&
           open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_DIRECT, 64,
                        size <= 2 ? 2 : 1, "direct, staged, pieces of 64 bytes") &&
           open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI, HSORT_EXCHANGE_DIRECT, 72, 1,
                        "direct, mpi, pieces of 72 bytes") &&
           open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_MPI, HSORT_EXCHANGE_PARTITION, 1000, size <= 2 ? 2 : 1,
                        "partition, mpi, messages of 1000 bytes") &&
           open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_PARTITION, 1000, 1,
                        "partition, staged, messages of 1000 bytes") &&
           open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO, HSORT_EXCHANGE_AUTO, 0, size <= 2 ? 2 : 1,
                        "defaults") &&
           open_small(HSORT_ENGINE_HOST);
}

#ifdef SHARED_ENGINE
/* While peers map what the first sort took, memory fills up between two looks of rank 0: no rank frees what others map. */
static void test_crowding(hsort_type type, int look)
{
    enum { COUNT = 60000 };
    if (!open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_DIRECT, 0, 1, "memory fills up"))
        return;
    hsort_context *ctx = settings[--setting_count].ctx;
    uint64_t *keys = shared_alloc(2 * COUNT * sizeof *keys), *out = shared_alloc(2 * COUNT * sizeof *out);
    const int64_t wanted = COUNT - (rank == 0) + (rank == 1); // so rank 0's output is no buffer of keys
    uint64_t random = (uint64_t)(rank + size * look);
    for (int i = 0; i < 2 * COUNT; i++)
        keys[i] = check_random(&random);
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, COUNT, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    shared_fills_up = rank == 0 ? look : 0;
    CHECK(hsort_sort_to(ctx, type, HSORT_ASCENDING, keys + COUNT, COUNT, out, wanted, NULL) == HSORT_OK,
          "look %d: %s", look, hsort_last_error(ctx));
    shared_fills_up = 0;
    hsort_destroy(&ctx);
    shared_free(keys);
    shared_free(out);
}

/* Open settings in which every rank reads every other rank's memory, or some ranks do. */
static bool open_shared(void)
{
    bool opened = open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_BITONIC, 72, 1,
                               "bitonic, ipc, pieces of 72 bytes") &&
                  open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO, HSORT_EXCHANGE_DIRECT, 0, 1,
                               "direct, all pairs") &&
                  open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO, HSORT_EXCHANGE_PARTITION, 1000, 1,
                               "partition, all pairs, chunks of 1000 bytes by turns");
    buffer_kinds = device_buffer_kinds(0);
    shared_leaves_regions = true;
    shared_may_map = shared_some_may;
    opened = opened && open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_AUTO, 64, 1,
                                    "ipc, some pairs");
    rung = 1; // it takes no workspace, so there is none for what is sorted once more
    opened = opened && open_setting(HSORT_ENGINE_HOST, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_PARTITION, 1000, 1,
                                    "partition, some pairs by ipc, the others by message, rung 1");
    rung = -1;
    shared_may_map = NULL;
    for (int peer = 0; opened && peer < size; peer++) {
        CHECK(peer == rank || hsort_path(settings[1].ctx, peer) == HSORT_TRANSPORT_IPC, "AUTO is not ipc");
        CHECK(peer == rank ||
                  (hsort_path(settings[3].ctx, peer) == HSORT_TRANSPORT_IPC) == shared_some_may(rank, peer),
              "the path to rank %d", peer);
    }
    return opened;
}
#else
static bool open_shared(void)
{
    CHECK(false, "built without shared_engine.c");
    return false;
}
#endif

/* Do any two ranks map each other's memory, in the first setting?                              Collective. */
static bool some_map(void)
{
    int own = 0, any;
    for (int peer = 0; peer < size; peer++)
        own = own || (peer != rank && hsort_path(settings[0].ctx, peer) == HSORT_TRANSPORT_IPC);
    MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    return any != 0;
}

static bool open_cuda(void)
{
    if (!open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_AUTO, HSORT_EXCHANGE_AUTO, 0, 0, "cuda, defaults") ||
        !open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_BITONIC, 1024, 0,
                      "cuda, bitonic, staged, pieces of 1 KiB") ||
        !open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_DIRECT, 1024, 0,
                      "cuda, direct, staged, pieces of 1 KiB") ||
        !open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_STAGED, HSORT_EXCHANGE_PARTITION, 4096, 0,
                      "cuda, partition, staged, messages of 4 KiB") ||
        !open_small(HSORT_ENGINE_CUDA))
        return false;
    if (some_map() && (!open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_DIRECT, 0, 0,
                                     "cuda, direct, ipc") ||
                       !open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_BITONIC, 0, 0,
                                     "cuda, bitonic, ipc") ||
                       !open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_IPC, HSORT_EXCHANGE_PARTITION, 4096,
                                     0, "cuda, partition, ipc, chunks of 4 KiB by turns")))
        return false;
    hsort_rank_info infos[MOST_RANKS];
    CHECK(hsort_topology(settings[0].ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(settings[0].ctx));
    buffer_kinds = device_buffer_kinds(infos[rank].gpu_index);
    if (hsort_mpi_takes_device_pointers(settings[0].ctx) == 1)
        return open_setting(HSORT_ENGINE_CUDA, HSORT_TRANSPORT_MPI, HSORT_EXCHANGE_AUTO, 4096, 0,
                            "cuda, mpi, pieces of 4 KiB");
    if (rank == 0)
        printf("this MPI takes no device pointers: transport mpi is not tried\n");
    return true;
}

/* Sorted keys lie as 6 2 0 and are wanted as 4 2 2, with one rank alone in place: rank 0 gives its last keys away; rank 1 keeps its
 * count, but its keys shift. */
static void test_one_in_place(int one)
{
    static const int64_t have[3] = {6, 2, 0}, want[3] = {4, 2, 2};
    static const uint64_t first_have[3] = {0, 6, 8}, first_want[3] = {0, 4, 6};
    uint64_t in[6] = {0}, other[6] = {0};
    uint64_t *out = rank == one ? in : other;
    const int64_t count = rank < 3 ? have[rank] : 0, out_count = rank < 3 ? want[rank] : 0;
    for (int64_t i = 0; i < count; i++)
        in[i] = first_have[rank] + (uint64_t)i;
    hsort_context *ctx = settings[0].ctx;
    CHECK(hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, in, count, out, out_count, NULL) == HSORT_OK,
          "one rank in place: %s", hsort_last_error(ctx));
    for (int64_t i = 0; i < out_count; i++)
        CHECK(out[i] == first_want[rank] + (uint64_t)i, "one rank in place: rank %d, key %d", rank, (int)i);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    buffer_kinds = 1;
    const bool shared = argc > 1 && strcmp(argv[1], "ipc") == 0;
    if (cuda ? open_cuda() : shared ? open_shared() : open_host()) {
        for (int one = 0; size >= 3 && one < 2; one++)
            test_one_in_place(one);
#ifdef SHARED_ENGINE
        for (int look = 1; shared && size > 1 && look <= 8; look++)
            test_crowding(look <= 4 ? HSORT_U64 : HSORT_U16, look <= 4 ? look : look - 4);
#endif
        int number = run_fixed(seed);
        number = run_at_rest(seed, number);
        number = run_random(seed, number, cuda ? 10 : 7, cuda ? 3000017 : 100003);
        if (rank == 0)
            printf("%d cases on %d ranks\n", number, size);
    }
    for (int i = 0; i < setting_count; i++)
        hsort_destroy(&settings[i].ctx);
#ifdef SHARED_ENGINE
    CHECK((!shared || shared_opened > 0) && shared_mapped == 0, "%d mapped, %d of them still", shared_opened,
          shared_mapped);
#endif
    return ranks_finish();
}
