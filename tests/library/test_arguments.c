/* Misuse of the public interface, by one rank or by all: every rank gets the same HSORT_ARGUMENT with a line
 * that names the rank at fault, keys are untouched, and the context is as good as before. And uses that are easily
 * overlooked: two contexts at once, parts of a communicator, a communicator with its ranks in reverse, counts
 * beyond 32 bits, messages of the user's that are under way during a sort. */
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include "kernels/base/host_cores.h"
#include "kernels/engine.h"
#include "hypersort.h"
#include "tests/support/ranks.h"

enum { KEYS = 50, MOST_RANKS = 64, EVERY_RANK = -1 };

static int rank, size;

/* AddressSanitizer, if it is built in, must let impossible allocations fail as malloc() does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- What a context in good order does ----------------------------------------------------------------- */

/* Sort KEYS keys per rank and check them. Collective over the context's communicator. */
static void check_usable(hsort_context *ctx, const char *after)
{
    uint64_t keys[KEYS], random = (uint64_t)rank + 7;
    for (int i = 0; i < KEYS; i++)
        keys[i] = check_random(&random) % 1000;
    hsort_check_result before = {.struct_size = sizeof before}, sorted = {.struct_size = sizeof sorted};
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, keys, KEYS, NULL, &before) == HSORT_OK, "after %s: %s",
          after, hsort_last_error(ctx));
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, KEYS, NULL) == HSORT_OK, "after %s: %s", after,
          hsort_last_error(ctx));
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, keys, KEYS, NULL, &sorted) == HSORT_OK, "after %s: %s",
          after, hsort_last_error(ctx));
    CHECK(sorted.first_disorder == -1 && sorted.count == before.count, "after %s: not sorted", after);
    CHECK(memcmp(sorted.fingerprint, before.fingerprint, sizeof before.fingerprint) == 0,
          "after %s: other keys", after);
}

/* Check that the line is the same everywhere and names `wrong_rank`, or some rank for EVERY_RANK. Collective. */
static void check_line(const char *line, const char *what, int wrong_rank)
{
    char first[1024], who[32];
    snprintf(first, sizeof first, "%s", line);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(strcmp(first, line) == 0, "%s: rank %d has '%s', rank 0 '%s'", what, rank, line, first);
    snprintf(who, sizeof who, "rank %d on ", wrong_rank);
    CHECK(strstr(line, wrong_rank == EVERY_RANK ? "rank " : who), "%s by rank %d: '%s' does not name it",
          what, wrong_rank, line);
    CHECK(strchr(line, '\n') == NULL, "%s: more than one line", what);
}

/* ---- Sorting ------------------------------------------------------------------------------------------- */

struct call {
    hsort_type type;
    hsort_order order;
    char *in, *out;
    int64_t count, out_count;
};

/* X(name, what is changed, whether the rank that did it is known, whether it can be done to hsort_sort() too) */
#define MISUSES(X)                                                                              \
    X("a type beyond the list", c->type = (hsort_type)(HSORT_BF16 + 1), true, true)             \
    X("a negative type", c->type = (hsort_type)-1, true, true)                                  \
    X("an order beyond the list", c->order = (hsort_order)2, true, true)                        \
    X("no input", c->in = NULL, true, true)                                                     \
    X("no output", c->out = NULL, true, false)                                                  \
    X("a negative count", c->count = -1, true, true)                                            \
    X("the most negative count", c->count = INT64_MIN, true, true)                              \
    X("a negative count out", c->out_count = -1, true, false)                                   \
    X("a count of INT64_MAX", c->count = INT64_MAX, true, true)                                 \
    X("a count out of INT64_MAX", c->out_count = INT64_MAX, true, false)                        \
    X("counts of INT64_MAX", c->count = c->out_count = INT64_MAX, true, true)                   \
    X("counts whose bytes exceed 63 bits", c->count = c->out_count = INT64_MAX / 4, true, true) \
    X("counts whose sum does", c->count = c->out_count = INT64_MAX / 8 / size + 1, true, true)  \
    X("input at a multiple of 4", c->in += 4, true, true)                                       \
    X("output at a multiple of 4", c->out += 4, true, false)                                    \
    X("input at an odd address", c->in += 1, true, true)                                        \
    X("wide keys at a multiple of 8", (c->type = HSORT_U128, c->in += 8), true, true)           \
    X("keys of 2 bytes at an odd address", (c->type = HSORT_I16, c->out += 1), true, false)     \
    X("output a key behind the input", c->out = c->in + 8, true, false)                         \
    X("output a key before the input", (c->in = c->out + 8, c->out_count--), true, false)       \
    X("output in the midst of the input", (c->out = c->in + 16, c->out_count = 1), true, false) \
    X("a key too many asked for", c->out_count++, false, false)                                 \
    X("a key too few asked for", c->out_count--, false, false)

static void misuse(int which, struct call *c)
{
    int number = 0;
#define X(name, change, known, in_place) \
    if (which == number++)               \
        change;
    MISUSES(X)
#undef X
}

static const struct {
    const char *name;
    bool known, in_place;
} misuses[] = {
#define X(name, change, known, in_place) {name, known, in_place},
    MISUSES(X)
#undef X
};

enum { MISUSE_COUNT = sizeof misuses / sizeof misuses[0] };

/* Check one misuse by `wrong_rank`, or by all. */
static void test_misuse(hsort_context *ctx, int which, int wrong_rank, bool in_place)
{
    _Alignas(16) uint64_t in[KEYS + 2], out[KEYS + 2], kept[KEYS + 2];
    for (int i = 0; i < KEYS + 2; i++)
        in[i] = out[i] = kept[i] = (uint64_t)(KEYS - i);
    struct call c = {
        .type = HSORT_U64, .in = (char *)in, .out = (char *)out, .count = KEYS, .out_count = KEYS};
    if (wrong_rank == EVERY_RANK || wrong_rank == rank)
        misuse(which, &c);
    const hsort_status status =
        in_place ? hsort_sort(ctx, c.type, c.order, c.in, c.count, NULL)
                 : hsort_sort_to(ctx, c.type, c.order, c.in, c.count, c.out, c.out_count, NULL);
    const char *name = misuses[which].name;
    CHECK(status == HSORT_ARGUMENT, "%s by rank %d: status %d: %s", name, wrong_rank, status,
          hsort_last_error(ctx));
    check_line(hsort_last_error(ctx), name,
               wrong_rank == EVERY_RANK || !misuses[which].known ? EVERY_RANK : wrong_rank);
    CHECK(!in_place || !strstr(hsort_last_error(ctx), ": in"), "'%s' names what hsort_sort() has not",
          hsort_last_error(ctx));
    CHECK(memcmp(in, kept, sizeof kept) == 0 && memcmp(out, kept, sizeof kept) == 0, "%s: keys were changed",
          name);
}

static void test_misuses(hsort_context *ctx)
{
    for (int which = 0; which < MISUSE_COUNT; which++) {
        for (int wrong_rank = EVERY_RANK; wrong_rank < size; wrong_rank++) {
            test_misuse(ctx, which, wrong_rank, false);
            if (misuses[which].in_place)
                test_misuse(ctx, which, wrong_rank, true);
        }
        check_usable(ctx, misuses[which].name);
    }
}

/* Check arguments that must be the same on every rank and are not. */
static void test_disagreement(hsort_context *ctx)
{
    if (size == 1)
        return;
    uint64_t keys[4] = {4, 3, 2, 1};
    const char *const calls[] = {"types", "orders", "types of a check", "orders of a check"};
    const hsort_type others[] = {HSORT_I64, HSORT_U64, HSORT_U32, HSORT_U64};
    hsort_check_result result = {.struct_size = sizeof result};
    for (int i = 0; i < 4; i++) {
        const hsort_type type = rank == size - 1 ? others[i] : HSORT_U64;
        const hsort_order order = rank == size - 1 && i % 2 == 1 ? HSORT_DESCENDING : HSORT_ASCENDING;
        const hsort_status status = i < 2 ? hsort_sort(ctx, type, order, keys, 4, NULL)
                                          : hsort_check(ctx, type, order, keys, 4, NULL, &result);
        CHECK(status == HSORT_ARGUMENT, "%s differ: status %d", calls[i], status);
        check_line(hsort_last_error(ctx), calls[i], EVERY_RANK);
    }
    CHECK(keys[0] == 4 && keys[3] == 1, "keys were changed");
    check_usable(ctx, "types that differ");
}

/* A count of 0 goes with any pointer: empty slices of other languages point anywhere. */
static void test_no_keys(hsort_context *ctx)
{
    static char nothing[8];
    void *const pointers[] = {NULL, nothing + 1, (void *)1, (void *)-1};
    hsort_check_result result = {.struct_size = sizeof result};
    for (int i = 0; i < 4; i++) {
        hsort_status status = hsort_sort(ctx, HSORT_F64, HSORT_ASCENDING, pointers[i], 0, NULL);
        CHECK(status == HSORT_OK, "sort of no keys at %p: %s", pointers[i], hsort_last_error(ctx));
        status = hsort_sort_to(ctx, HSORT_U32, HSORT_ASCENDING, pointers[i], 0, pointers[3 - i], 0, NULL);
        CHECK(status == HSORT_OK, "sort of no keys at %p: %s", pointers[i], hsort_last_error(ctx));
        status = hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, pointers[i], 0, NULL, &result);
        CHECK(status == HSORT_OK && result.count == 0 && result.first_disorder == -1,
              "check of no keys at %p: %s", pointers[i], hsort_last_error(ctx));
    }
}

/* More keys than memory: an error, not a crash, and the keys that do exist are untouched. */
static void test_no_memory(hsort_context *ctx)
{
    uint64_t keys[2] = {2, 1};
    const int64_t count = INT64_MAX / 64 / size;
    const hsort_status status =
        hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, rank == 0 ? count : 2, NULL);
    CHECK(status == HSORT_HOST_MEMORY || status == HSORT_DEVICE_MEMORY || status == HSORT_ARGUMENT,
          "status %d", status);
    check_line(hsort_last_error(ctx), "more keys than memory", EVERY_RANK);
    CHECK(keys[0] == 2 && keys[1] == 1, "keys were changed");
    check_usable(ctx, "more keys than memory");
}

/* The arguments of hsort_check(). */
struct check_call {
    hsort_type type;
    hsort_order order;
    const char *keys;
    int64_t count;
    hsort_check_result *result;
};

#define CHECK_MISUSES(X)            \
    X(c->type = (hsort_type)77)     \
    X(c->order = (hsort_order)77)   \
    X(c->keys = NULL)               \
    X(c->keys += 3)                 \
    X(c->keys += 4)                 \
    X(c->count = -1)                \
    X(c->count = INT64_MAX)         \
    X(c->count = INT64_MAX / 8 + 1) \
    X(c->result = NULL)             \
    X(c->result->struct_size = 0)   \
    X(c->result->struct_size--)

enum {
#define X(change) +1
    CHECK_MISUSE_COUNT = 0 CHECK_MISUSES(X)
#undef X
};

static void misuse_check(int which, struct check_call *c)
{
    int number = 0;
#define X(change)          \
    if (which == number++) \
        change;
    CHECK_MISUSES(X)
#undef X
}

static void test_check_misuse(hsort_context *ctx)
{
    const uint64_t keys[3] = {1, 2, 3};
    for (int wrong_rank = 0; wrong_rank < size; wrong_rank++)
        for (int which = 0; which < CHECK_MISUSE_COUNT; which++) {
            hsort_check_result result = {.struct_size = sizeof result};
            struct check_call c = {HSORT_U64, HSORT_ASCENDING, (const char *)keys, 2, &result};
            if (rank == wrong_rank)
                misuse_check(which, &c);
            const hsort_status status = hsort_check(ctx, c.type, c.order, c.keys, c.count, NULL, c.result);
            CHECK(status == HSORT_ARGUMENT, "hsort_check, misuse %d by rank %d: status %d", which, wrong_rank,
                  status);
            check_line(hsort_last_error(ctx), "hsort_check", wrong_rank);
        }
    check_usable(ctx, "hsort_check was misused");
}

/* ---- Asking -------------------------------------------------------------------------------------------- */

static void test_without_context(void)
{
    uint64_t key = 1;
    size_t bytes;
    hsort_check_result result = {.struct_size = sizeof result};
    hsort_stats stats = {.struct_size = sizeof stats};
    hsort_rank_info infos[MOST_RANKS];
    CHECK(hsort_sort(NULL, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL) == HSORT_ARGUMENT, "hsort_sort");
    CHECK(hsort_sort_to(NULL, HSORT_U64, HSORT_ASCENDING, &key, 1, &key, 1, NULL) == HSORT_ARGUMENT,
          "hsort_sort_to");
    CHECK(hsort_check(NULL, HSORT_U64, HSORT_ASCENDING, &key, 1, NULL, &result) == HSORT_ARGUMENT,
          "hsort_check");
    CHECK(hsort_workspace(NULL, HSORT_U64, 1, &bytes) == HSORT_ARGUMENT, "hsort_workspace");
    CHECK(hsort_get_stats(NULL, &stats) == HSORT_ARGUMENT, "hsort_get_stats");
    CHECK(hsort_topology(NULL, infos, sizeof *infos) == HSORT_ARGUMENT, "hsort_topology");
    hsort_path_speed speeds[MOST_RANKS];
    CHECK(hsort_measure_paths(NULL, speeds, sizeof *speeds) == HSORT_ARGUMENT, "hsort_measure_paths");
    CHECK(hsort_engine_in_use(NULL) == HSORT_ENGINE_AUTO, "hsort_engine_in_use");
    CHECK(hsort_exchange_in_use(NULL) == HSORT_EXCHANGE_AUTO, "hsort_exchange_in_use");
    CHECK(hsort_path(NULL, 0) == HSORT_TRANSPORT_AUTO, "hsort_path");
    CHECK(hsort_mpi_takes_device_pointers(NULL) == -1, "hsort_mpi_takes_device_pointers");
    hsort_context *none = NULL;
    hsort_destroy(&none);
    hsort_destroy(NULL);
    CHECK(!hsort_engine_name(HSORT_ENGINES) && !hsort_exchange_name(HSORT_EXCHANGES) &&
              !hsort_transport_name((hsort_transport)-1),
          "a name of what there is not");
    CHECK(strcmp(hsort_transport_name(HSORT_TRANSPORT_IPC), "ipc") == 0, "the name of ipc is %s",
          hsort_transport_name(HSORT_TRANSPORT_IPC));
    CHECK(hsort_type_name((hsort_type)99) == NULL && hsort_type_bytes((hsort_type)99) == 0,
          "a type that is none");
    CHECK(hsort_strerror((hsort_status)99) != NULL, "a status that is none");
}

static void test_stats_and_topology(hsort_context *ctx)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_ARGUMENT, "statistics before the first sort");
    check_usable(ctx, "creation");
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.keys == KEYS * size, "%lld keys",
          (long long)stats.keys);
    CHECK(hsort_get_stats(ctx, NULL) == HSORT_ARGUMENT, "nowhere to write statistics");
    stats.struct_size = 8;
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_ARGUMENT, "statistics of another size");

    hsort_rank_info infos[MOST_RANKS];
    const hsort_status status = hsort_topology(ctx, rank == size - 1 ? NULL : infos, sizeof *infos);
    CHECK(status == HSORT_ARGUMENT, "nowhere to write the topology: %d", status);
    check_line(hsort_last_error(ctx), "hsort_topology", size - 1);
    CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
    for (int r = 0; r < size; r++)
        CHECK(infos[r].host[0] != '\0' && infos[r].gpu_index == -1 && infos[r].cores >= 1,
              "rank %d: host '%s', GPU %d, %d cores", r, infos[r].host, infos[r].gpu_index, infos[r].cores);
    CHECK(hsort_engine_in_use(ctx) == HSORT_ENGINE_HOST, "engine %d", hsort_engine_in_use(ctx));
    CHECK(hsort_mpi_takes_device_pointers(ctx) == -1, "%d", hsort_mpi_takes_device_pointers(ctx));
    for (int peer = 0; peer < size; peer++)
        CHECK((hsort_path(ctx, peer) == HSORT_TRANSPORT_AUTO) == (peer == rank), "the path to rank %d is %d",
              peer, hsort_path(ctx, peer));
    const int nobody[] = {-1, size, 99, 1 << 20, INT_MIN, INT_MAX};
    for (int i = 0; i < 6; i++)
        CHECK(hsort_path(ctx, nobody[i]) == HSORT_TRANSPORT_AUTO, "a path to rank %d", nobody[i]);
}

/* Bytes of memory that this process has from malloc(). */
static size_t memory_in_use(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void test_workspace(hsort_context *ctx)
{
    const int64_t many = (INT64_C(1) << 31) + 1;
    size_t bytes = 0, before = 0;
    for (int64_t count = 0; count <= many; count = count * 3 + 1, before = bytes) {
        CHECK(hsort_workspace(ctx, HSORT_F32, count, &bytes) == HSORT_OK && bytes >= before,
              "%lld keys: %zu bytes", (long long)count, bytes);
    }
    CHECK(hsort_workspace(ctx, HSORT_F64, many, &bytes) == HSORT_OK && bytes > (size_t)many * 8, "%zu bytes",
          bytes);
    CHECK(hsort_workspace(ctx, HSORT_F64, INT64_MAX, &bytes) == HSORT_ARGUMENT, "INT64_MAX keys: %zu bytes",
          bytes);
    CHECK(hsort_workspace(ctx, HSORT_F64, -1, &bytes) == HSORT_ARGUMENT, "-1 keys");
    CHECK(hsort_workspace(ctx, (hsort_type)99, 1, &bytes) == HSORT_ARGUMENT, "no type");
    CHECK(hsort_workspace(ctx, HSORT_F64, 1, NULL) == HSORT_ARGUMENT, "nowhere to write");
    CHECK(hsort_workspace(ctx, HSORT_U128, INT64_C(1) << 59, &bytes) == HSORT_ARGUMENT, "2^59 keys of u128");
    CHECK(hsort_workspace(ctx, HSORT_F64, 0, &bytes) == HSORT_OK && bytes == 0, "0 keys: %zu bytes", bytes);
    // Keys that are counted: a table, and at most a piece of the keys.
    CHECK(hsort_workspace(ctx, HSORT_BF16, many, &bytes) == HSORT_OK && bytes >= 655360 &&
              bytes <= 655360 + (64 << 20) && hsort_host_workspace(ctx, HSORT_BF16, many, &bytes) == HSORT_OK && bytes == 0,
          "keys of 2 bytes: %zu bytes", bytes);

    // A sort of the largest count that this context has seen keeps no more than was announced, except for small
    // change.
    enum { LARGE = 1 << 20, SMALL_CHANGE = 4 << 20 };
    uint64_t *keys = calloc(LARGE, sizeof *keys);
    const int64_t count = rank == 0 ? LARGE : 1;
    CHECK(keys != NULL && hsort_workspace(ctx, HSORT_U64, LARGE, &bytes) == HSORT_OK, "no workspace");
    for (int64_t i = 0; keys && i < count; i++)
        keys[i] = (uint64_t)(count - i);
    const size_t used = memory_in_use();
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    const size_t now = memory_in_use();
    CHECK(now <= used + bytes + SMALL_CHANGE, "%zu bytes kept, %zu announced", now - used, bytes);
    free(keys);
}

/* ---- Creating ------------------------------------------------------------------------------------------ */

static hsort_options host_options(void)
{
    hsort_options options;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "hsort_options_init");
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    return options;
}

#define OPTION_MISUSES(X)                        \
    X(o->struct_size = 0)                        \
    X(o->struct_size++)                          \
    X(o->engine = (hsort_engine)99)              \
    X(o->local_rung = 9999)                      \
    X(o->local_rung = -2)                        \
    X(o->exchange = (hsort_exchange)99)          \
    X(o->transport = (hsort_transport)99)        \
    X(o->transport = (hsort_transport)-1)        \
    X(o->peer_memory = (hsort_choice)3)          \
    X(o->shared_memory = (hsort_choice)-1)       \
    X(o->mpi_device_pointers = (hsort_choice)99) \
    X(o->binding = (hsort_binding)99)            \
    X(o->threads = -1)                           \
    X(o->threads = threads_max() + 1)            \
    X(o->threads = 40000)                        \
    X(o->threads = INT_MAX)                      \
    X(o->chunk_bytes = 12)                       \
    X(o->chunk_bytes = (size_t)2 << 30)

/* Make misuse `which`; NULL when there are no more, else its text. */
static const char *misuse_option(int which, hsort_options *o)
{
    int number = 0;
#define X(change)            \
    if (which == number++) { \
        change;              \
        return #change;      \
    }
    OPTION_MISUSES(X)
#undef X
    return NULL;
}

static void test_option_misuses(void)
{
    hsort_options options = host_options();
    for (int which = 0; misuse_option(which, &options); which++)
        for (int wrong_rank = EVERY_RANK; wrong_rank < size; wrong_rank++) {
            hsort_options good = host_options();
            options = good;
            const char *what = misuse_option(which, &options);
            hsort_context *ctx = (hsort_context *)&options; // must be overwritten
            const bool wrong = wrong_rank == EVERY_RANK || wrong_rank == rank;
            const hsort_status status = hsort_create(MPI_COMM_WORLD, wrong ? &options : &good, &ctx);
            CHECK(status == HSORT_ARGUMENT && ctx == NULL, "%s: status %d", what, status);
            check_line(hsort_last_error(NULL), what, EVERY_RANK);
        }
    CHECK(hsort_options_init(NULL, sizeof options) == HSORT_ARGUMENT, "nowhere to write options");
    CHECK(hsort_options_init(&options, 3) == HSORT_ARGUMENT, "options of 3 bytes");
    for (int wrong_rank = EVERY_RANK; wrong_rank < size; wrong_rank++) {
        const bool wrong = wrong_rank == EVERY_RANK || wrong_rank == rank;
        hsort_context *ctx = NULL;
        CHECK(hsort_create(MPI_COMM_WORLD, NULL, wrong ? NULL : &ctx) == HSORT_ARGUMENT && !ctx,
              "nowhere to write a context");
        check_line(hsort_last_error(NULL), "nowhere to write a context", wrong_rank);
    }
}

#define OPTION_DIFFERENCES(X)                   \
    X(o->local_rung = 1)                        \
    X(o->exchange = HSORT_EXCHANGE_BITONIC)     \
    X(o->transport = HSORT_TRANSPORT_STAGED)    \
    X(o->peer_memory = HSORT_CHOICE_OFF)        \
    X(o->shared_memory = HSORT_CHOICE_OFF)      \
    X(o->mpi_device_pointers = HSORT_CHOICE_ON) \
    X(o->binding = HSORT_BINDING_NONE)          \
    X(o->chunk_bytes = 64)                      \
    X(o->device_memory_limit = 64 << 20)

/* Options that are good, but not the same on every rank. */
static void test_option_differences(void)
{
#define X(change)                                                                               \
    {                                                                                           \
        hsort_options options = host_options(), *o = &options;                                  \
        hsort_context *ctx = NULL;                                                              \
        char name[64];                                                                          \
        if (rank == size - 1)                                                                   \
            change;                                                                             \
        const hsort_status status = hsort_create(MPI_COMM_WORLD, o, &ctx);                      \
        CHECK(status == (size > 1 ? HSORT_ARGUMENT : HSORT_OK), #change ": status %d", status); \
        if (size > 1)                                                                           \
            check_line(hsort_last_error(NULL), #change, EVERY_RANK);                            \
        CHECK(sscanf(#change, "o->%63[a-z_]", name) == 1, #change);                             \
        CHECK(size == 1 || strstr(hsort_last_error(NULL), name), #change ": not named");        \
        hsort_destroy(&ctx);                                                                    \
    }
    OPTION_DIFFERENCES(X)
#undef X
}

static void test_communicators(void)
{
    hsort_context *ctx = NULL;
    hsort_options options = host_options();
    CHECK(hsort_create(MPI_COMM_NULL, &options, &ctx) == HSORT_ARGUMENT && !ctx, "MPI_COMM_NULL");
    CHECK(hsort_last_error(NULL)[0] != '\0', "no text");
    if (size > 1) {
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 0, &inter);
        CHECK(hsort_create(inter, &options, &ctx) == HSORT_ARGUMENT && !ctx, "an intercommunicator");
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    char why[256];
    if (cuda_device_count(why, sizeof why) == 0) {
        options.engine = HSORT_ENGINE_CUDA;
        CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_NO_DEVICE && !ctx, "cuda without a GPU");
        check_line(hsort_last_error(NULL), "cuda without a GPU", 0);
    }
}

/* ---- Several contexts ---------------------------------------------------------------------------------- */

static void progress(void *user, const char *phase, int64_t done, int64_t total)
{
    CHECK(rank == 0, "progress on rank %d", rank);
    CHECK(phase && phase[0] != '\0' && done >= 1 && done <= total, "%lld of %lld", (long long)done,
          (long long)total);
    ++*(int *)user;
}

/* The ranks in reverse: the smallest keys belong to the rank that is last in MPI_COMM_WORLD. */
static void test_reversed_ranks(void)
{
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    hsort_options options = host_options();
    hsort_context *ctx;
    CHECK(hsort_create_f(MPI_Comm_c2f(reversed), &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    int32_t keys[3] = {3 * rank, 3 * rank + 1, 3 * rank + 2};
    CHECK(hsort_sort(ctx, HSORT_I32, HSORT_ASCENDING, keys, 3, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    const int32_t first = 3 * (size - 1 - rank);
    CHECK(keys[0] == first && keys[1] == first + 1 && keys[2] == first + 2, "rank %d starts at %d", rank,
          keys[0]);
    hsort_destroy(&ctx);
    CHECK(ctx == NULL, "hsort_destroy() leaves the pointer");
    MPI_Comm_free(&reversed);
}

static void test_several_contexts(hsort_context *world)
{
    hsort_options options = host_options();
    hsort_context *second, *part, *alone;
    MPI_Comm half;
    int calls = 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    options.progress = progress;
    options.progress_user = &calls;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &second) == HSORT_OK, "%s", hsort_last_error(NULL));
    options.progress = NULL;
    CHECK(hsort_create(half, &options, &part) == HSORT_OK, "%s", hsort_last_error(NULL));
    MPI_Comm_free(&half); // the context has a duplicate
    CHECK(hsort_create(MPI_COMM_SELF, &options, &alone) == HSORT_OK, "%s", hsort_last_error(NULL));
    CHECK(hsort_last_error(NULL)[0] == '\0' && hsort_last_error(second)[0] == '\0',
          "a text without an error");

    for (int repeat = 0; repeat < 3; repeat++) {
        check_usable(world, "the second was created");
        check_usable(second, "the first sorted");
        for (int mine = 0; mine <= rank; mine++) // a number of sorts that differs from rank to rank
            check_usable(alone, "others sorted");
        check_usable(part, "others sorted");
        CHECK(hsort_sort(second, (hsort_type)99, HSORT_ASCENDING, NULL, 0, NULL) == HSORT_ARGUMENT,
              "type 99");
        CHECK(hsort_last_error(second)[0] != '\0', "no text");
        CHECK(hsort_last_error(part)[0] == '\0', "another context's text: '%s'", hsort_last_error(part));
    }
    CHECK(rank == 0 ? calls > 0 : calls == 0, "rank %d: %d calls of progress", rank, calls);
    hsort_destroy(&alone);
    hsort_destroy(&world); // the order of destruction is free, as long as it is the same on all ranks
    check_usable(part, "others were destroyed");
    hsort_destroy(&part);
    check_usable(second, "others were destroyed");
    hsort_destroy(&second);
}

/* A receive of the user's that takes anything must not take the library's messages. */
static void test_user_messages(hsort_context *ctx)
{
    int incoming = -1, arrived = 1;
    MPI_Request request;
    MPI_Irecv(&incoming, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
    check_usable(ctx, "a receive was posted");
    MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
    CHECK(!arrived, "the user's receive took a message of the library's");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 5, MPI_COMM_WORLD);
    if (!arrived)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(incoming == (rank + size - 1) % size, "got %d", incoming);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const hsort_options options = host_options();
    hsort_context *ctx;
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "%s", hsort_last_error(NULL));
    if (status != HSORT_OK)
        return ranks_finish();
    test_without_context();
    test_stats_and_topology(ctx);
    test_misuses(ctx);
    test_no_keys(ctx);
    test_disagreement(ctx);
    test_no_memory(ctx);
    test_check_misuse(ctx);
    test_workspace(ctx);
    test_user_messages(ctx);
    test_option_misuses();
    test_option_differences();
    test_communicators();
    test_reversed_ranks();
    test_several_contexts(ctx); // destroys it
    return ranks_finish();
}
