/* Keys in host memory that do not fit into engine memory: two passes, against the sort in memory, byte for byte. Contexts
 * have limits for slots of some dozen keys up to some thousand, so that a rank has up to 200 runs; layouts before and after
 * leave ranks with nothing, or with everything. Inputs must be unchanged, except where they may be overwritten; buffers lie
 * between canaries.
 *
 *     test_two_passes        the host engine, cases drawn by a seed for some seconds
 *     test_two_passes all    the host engine, each type, order, distribution and number of runs
 *     test_two_passes cuda   the cuda engine, keys in host and in pinned memory */
#include <omp.h>
#include "hypersort.h"
#include "kernels/engine.h"
#include "mpi/exchange/run_cuts.h"
#include "src/files/input.h"
#include "src/library/context.h"
#include "tests/support/device_buffer.h"
#include "tests/support/distributions.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"
#include "tests/support/secret_memory.h"

enum { MOST_RANKS = 64, GUARD = 64, CANARY = 0xc5, CASES_PER_LIMIT = 4, SECONDS = 8, SECONDS_PER_CASE = 120 };

enum call { CALL_IN_PLACE, CALL_TO, CALL_TO_SAME_BUFFER, CALLS };

struct test_case {
    struct input input;
    hsort_order order;
    enum layout in_layout, out_layout;
    enum call call;
    uint64_t seed; /* of layouts and kinds of memory */
};

/* A context with little memory: slots of `slot` keys of 8 bytes. */
struct little {
    hsort_context *ctx;
    int64_t slot;
    bool overwrites, reads; /* reads: ranks may read each other's runs */
};

/* One rank's keys between canaries. */
struct guarded {
    enum buffer_kind kind;
    unsigned char *memory, *keys;
    size_t bytes; /* of keys */
};

static int rank, size;
static hsort_engine engine;
static hsort_context *whole, *alone; /* sorts in memory; of this rank alone */
static char case_text[256];

/* ---- Contexts --------------------------------------------------------------------------------------------------- */

static hsort_options options_for(size_t limit, bool overwrites, bool reads)
{
    hsort_options options;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = engine;
    options.transport = HSORT_TRANSPORT_STAGED;
    options.shared_memory = reads ? HSORT_CHOICE_AUTO : HSORT_CHOICE_OFF;
    options.exchange = HSORT_EXCHANGE_DIRECT;
    options.chunk_bytes = 4096;
    options.threads = 1; // the workspace of more threads would be most of the memory
    options.device_memory_limit = limit;
    options.overwrite_input = overwrites;
    return options;
}

static hsort_context *open_with(MPI_Comm ranks, const hsort_options *options, const char *why)
{
    hsort_context *ctx;
    const hsort_status status = hsort_create(ranks, options, &ctx);
    CHECK(status == HSORT_OK, "%s: %s", why, hsort_last_error(NULL));
    if (status != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return ctx;
}

static hsort_context *open_context(MPI_Comm ranks, size_t limit, bool overwrites, bool reads, const char *why)
{
    const hsort_options options = options_for(limit, overwrites, reads);
    return open_with(ranks, &options, why);
}

/* Return engine memory for slots of so many keys of 8 bytes, and for the workspace to sort one slot: the workspace of a rank that is
 * alone, which has no exchange. */
static size_t limit_for(int64_t slot)
{
    size_t bytes;
    CHECK(hsort_workspace(alone, HSORT_U64, slot, &bytes) == HSORT_OK, "no workspace");
    const size_t need = bytes + 2 * (size_t)slot * 8;
    return need + need / 63 + 1;
}

static struct little open_little(int64_t slot, bool overwrites, bool reads)
{
    return (struct little){
        open_context(MPI_COMM_WORLD, limit_for(slot), overwrites, reads, "a context with little memory"),
        slot, overwrites, reads};
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static struct guarded guarded_make(size_t bytes, uint64_t *random)
{
    const bool pinned = engine == HSORT_ENGINE_CUDA && check_random(random) % 2;
    struct guarded made = {.kind = pinned ? BUFFER_PINNED : BUFFER_HOST, .bytes = bytes};
    made.memory = device_buffer_alloc(made.kind, bytes + 2 * GUARD);
    if (!made.memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(made.memory, CANARY, bytes + 2 * GUARD);
    made.keys = made.memory + GUARD;
    return made;
}

static void guarded_drop(struct guarded *made, const char *name)
{
    for (size_t i = 0; i < GUARD; i++)
        CHECK(made->memory[i] == CANARY && made->keys[made->bytes + i] == CANARY, "%s: rank %d: canary at %s",
              case_text, rank, name);
    device_buffer_free(made->kind, made->memory);
}

/* ---- One case --------------------------------------------------------------------------------------------------- */

static void describe(const struct test_case *c, const struct little *little, int number)
{
    snprintf(case_text, sizeof case_text,
             "case %d: %lld %s %s:%d, order %d, layouts %d -> %d, call %d, slots of %lld, overwrites %d, reads %d",
             number, (long long)c->input.count, hsort_type_name(c->input.type),
             distribution_word(c->input.distribution), c->input.parameter, c->order, c->in_layout,
             c->out_layout, c->call, (long long)little->slot, little->overwrites, little->reads);
    snprintf(faults_case, sizeof faults_case, "%.120s", case_text);
}

/* The keys of this rank as the sort in memory leaves them; the caller frees them. */
static unsigned char *expected_keys(const struct test_case *c, const unsigned char *in, const int64_t *counts,
                                    const int64_t *out_counts)
{
    const size_t width = hsort_type_bytes(c->input.type);
    unsigned char *expected = malloc((size_t)out_counts[rank] * width + 8);
    hsort_stats stats = {.struct_size = sizeof stats};
    if (!expected)
        MPI_Abort(MPI_COMM_WORLD, 1);
    CHECK(hsort_sort_to(whole, c->input.type, c->order, in, counts[rank], expected, out_counts[rank], NULL) ==
                  HSORT_OK &&
              hsort_get_stats(whole, &stats) == HSORT_OK && stats.passes == 1 && stats.runs == 0,
          "%s: in memory: %s", case_text, hsort_last_error(whole));
    return expected;
}

/* Check that there are two passes, of as many runs and segments as slots make: four slots fit the limit, and slots of keys that do not
 * have 8 bytes may be half as large, because engines take more workspace from some count on. Also check what the statistics promise. */
static void check_stats(const struct test_case *c, const struct little *little, const int64_t *counts,
                        const int64_t *out_counts)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    const int64_t width = (int64_t)hsort_type_bytes(c->input.type), slot = little->slot * 8 / width,
                  largest = (int64_t)limit_for(little->slot) / 4 / width;
    int64_t runs = 0, segments = 0, least_runs = 0, least_segments = 0, sent = 0;
    CHECK(hsort_get_stats(little->ctx, &stats) == HSORT_OK, "%s: no statistics", case_text);
    for (int r = 0; r < size; r++) {
        runs += (counts[r] + slot - 1) / slot;
        segments += (out_counts[r] + slot - 1) / slot;
        least_runs += (counts[r] + largest - 1) / largest;
        least_segments += (out_counts[r] + largest - 1) / largest;
    }
    CHECK(stats.passes == 2 && stats.keys == c->input.count &&
              hsort_exchange_in_use(little->ctx) == HSORT_EXCHANGE_AUTO,
          "%s: %d passes of %lld keys, exchange %d", case_text, (int)stats.passes, (long long)stats.keys,
          (int)hsort_exchange_in_use(little->ctx));
    CHECK(stats.runs >= least_runs && stats.runs <= 3 * runs + size && stats.segments >= least_segments &&
              stats.segments <= 3 * segments + size,
          "%s: %lld runs and %lld segments, about %lld and %lld were to be", case_text, (long long)stats.runs,
          (long long)stats.segments, (long long)runs, (long long)segments);
    for (int path = 0; path < HSORT_TRANSPORTS; path++)
        sent += stats.paths[path].moved_bytes;
    for (int path = 0; path < HSORT_TRANSPORTS; path++)
        CHECK(stats.paths[path].moved_bytes == 0 || stats.paths[path].seconds > 0,
              "%s: path %d takes no time", case_text, path);
    CHECK(sent == stats.moved_bytes && (size > 1 || sent == 0), "%s: %lld bytes moved, %lld by paths",
          case_text, (long long)stats.moved_bytes, (long long)sent);
    CHECK(stats.paths[HSORT_TRANSPORT_STAGED].moved_bytes == 0 ||
              (little->reads && stats.paths[HSORT_TRANSPORT_MPI].moved_bytes == 0),
          "%s: %lld bytes were read, %lld came by message", case_text,
          (long long)stats.paths[HSORT_TRANSPORT_STAGED].moved_bytes, (long long)stats.paths[HSORT_TRANSPORT_MPI].moved_bytes);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        CHECK(stats.seconds[phase] >= 0 && stats.seconds[phase] <= stats.total_seconds, "%s: phase %d",
              case_text, phase);
}

static void run_case(const struct test_case *c, const struct little *little, int number)
{
    const size_t width = hsort_type_bytes(c->input.type);
    int64_t counts[MOST_RANKS], out_counts[MOST_RANKS];
    describe(c, little, number);
    faults_watch(SECONDS_PER_CASE);
    layout_counts(c->in_layout, c->input.count, size, c->seed, counts);
    layout_counts(c->out_layout, c->input.count, size, c->seed + 1, out_counts);
    if (c->call == CALL_IN_PLACE)
        memcpy(out_counts, counts, sizeof counts);
    uint64_t random = c->seed + 1000 * (uint64_t)(rank + 1);
    const int64_t first = layout_before(counts, rank), count = counts[rank], out_count = out_counts[rank];
    const bool one_buffer = c->call != CALL_TO;
    const size_t in_bytes = (size_t)count * width, out_bytes = (size_t)out_count * width;
    struct guarded in = guarded_make(one_buffer && out_bytes > in_bytes ? out_bytes : in_bytes, &random);
    struct guarded other = guarded_make(one_buffer ? 0 : out_bytes, &random);
    const unsigned char *result = one_buffer ? in.keys : other.keys;
    input_fill(&c->input, first, count, in.keys);
    unsigned char *kept = malloc(in_bytes + 1);
    if (!kept)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memcpy(kept, in.keys, in_bytes);
    unsigned char *expected = expected_keys(c, in.keys, counts, out_counts);

    const hsort_status status = c->call == CALL_IN_PLACE
                                    ? hsort_sort(little->ctx, c->input.type, c->order, in.keys, count, NULL)
                                    : hsort_sort_to(little->ctx, c->input.type, c->order, in.keys, count,
                                                    one_buffer ? in.keys : other.keys, out_count, NULL);
    CHECK(status == HSORT_OK, "%s: %s", case_text, hsort_last_error(little->ctx));
    CHECK(memcmp(result, expected, out_bytes) == 0, "%s: rank %d: not the keys of the sort in memory",
          case_text, rank);
    if (!one_buffer && !little->overwrites)
        CHECK(memcmp(in.keys, kept, in_bytes) == 0, "%s: rank %d: the input was changed", case_text, rank);
    if (status == HSORT_OK)
        check_stats(c, little, counts, out_counts);
    free(kept);
    free(expected);
    guarded_drop(&in, "the input");
    guarded_drop(&other, "the output");
    faults_watch(0);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static struct test_case draw_case(uint64_t seed)
{
    uint64_t random = seed;
    struct test_case c = {.seed = check_random(&random)};
    choose_distribution(&c.input, &random);
    c.input.type = (hsort_type)(check_random(&random) % (HSORT_U128 + 1));
    c.input.seed = check_random(&random);
    c.order = check_random(&random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
    c.in_layout = (enum layout)(check_random(&random) % LAYOUTS);
    c.out_layout = (enum layout)(check_random(&random) % LAYOUTS);
    c.call = (enum call)(check_random(&random) % CALLS);
    return c;
}

/* Return how many keys make `runs` runs of slots on an average rank, and are so many more that one pass cannot take them, for which
 * the last bytes of the limit would do, too: a rank that is alone needs little memory beside its keys, and on a GPU keys of 4 bytes
 * need less than keys of 8. */
static int64_t keys_for(const struct test_case *c, int64_t slot, int64_t runs, uint64_t *random)
{
    const int64_t limit = (int64_t)limit_for(slot), wanted = slot * 8 * (runs > 5 ? runs : 5);
    const int64_t least = size == 1 || engine == HSORT_ENGINE_CUDA ? limit : 0;
    const int64_t of_rank = (wanted < least ? least : wanted) + limit / 64;
    return of_rank / (int64_t)hsort_type_bytes(c->input.type) * size + (int64_t)(check_random(random) % 3);
}

/* Draw a number of runs. The keys of all ranks may lie on one rank, which has 512 runs at most. */
static int64_t draw_runs(uint64_t *random)
{
    const int64_t most = 400 / size < 200 ? 400 / size : 200, draw = (int64_t)(check_random(random) % 8);
    return draw < 6 ? 5 + draw * draw : most;
}

static int run_drawn(uint64_t seed, int number, double seconds)
{
    const double begin = MPI_Wtime();
    int go_on = 1;
    while (go_on) {
        uint64_t random = seed + (uint64_t)number * 1000003;
        // On a GPU slots begin at the size from which on the workspace is as large as for any other few keys.
        const int64_t slot = engine == HSORT_ENGINE_CUDA ? INT64_C(16384) << check_random(&random) % 6
                                                         : INT64_C(256) << check_random(&random) % 4;
        struct little little = open_little(slot, check_random(&random) % 2, check_random(&random) % 2);
        for (int i = 0; i < CASES_PER_LIMIT; i++, number++) {
            struct test_case c = draw_case(check_random(&random));
            c.input.count = keys_for(&c, slot, draw_runs(&random), &random);
            run_case(&c, &little, number);
        }
        hsort_destroy(&little.ctx);
        go_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return number;
}

/* Run each type, order and distribution, with few runs and with many, whatever else they are drawn with. */
static int run_matrix(uint64_t seed, int number)
{
    static const int64_t runs[] = {5, 17, 200};
    for (int way = 0; way < 4; way++) {
        struct little little = open_little(300, way % 2, way / 2);
        for (int type = HSORT_U32; type <= HSORT_U128; type++)
            for (int order = HSORT_ASCENDING; order <= HSORT_DESCENDING; order++)
                for (int kind = 0; kind < INPUTS; kind++)
                    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++, number++) {
                        uint64_t random = seed + (uint64_t)number;
                        struct test_case c;
                        do
                            c = draw_case(check_random(&random));
                        while (c.input.distribution != (enum input_distribution)kind);
                        c.input.type = (hsort_type)type;
                        c.order = (hsort_order)order;
                        const int64_t fit = 400 / size;
                        c.input.count = keys_for(&c, little.slot, runs[i] < fit ? runs[i] : fit, &random);
                        run_case(&c, &little, number);
                    }
        hsort_destroy(&little.ctx);
    }
    return number;
}

/* Return the least bytes of a rank's tables of cuts, with so many keys of 8 bytes on each rank, and of the tables in which cuts are
 * searched for: with slots as large as a quarter of all memory. */
static size_t least_tables(int64_t count, int64_t slot)
{
    const int64_t largest = (int64_t)limit_for(slot) / 4 / 8, runs = (count + largest - 1) / largest;
    return (size_t)((size > 1 ? 2 : 1) * runs * runs * size * 8) +
           run_cuts_bytes(size, runs, RUN_CUTS_AT_ONCE);
}

/* What fits is sorted in one pass by the same context, before and after what does not. */
static void test_both_ways(uint64_t seed)
{
    struct little little = open_little(2000, false, true);
    for (int i = 0; i < 3; i++) {
        uint64_t keys[64];
        hsort_stats stats = {.struct_size = sizeof stats};
        for (int k = 0; k < 64; k++)
            keys[k] = check_random(&seed);
        CHECK(hsort_sort(little.ctx, HSORT_U64, HSORT_ASCENDING, keys, 64, NULL) == HSORT_OK &&
                  hsort_get_stats(little.ctx, &stats) == HSORT_OK && stats.passes == 1 && stats.runs == 0,
              "few keys take %d passes: %s", (int)stats.passes, hsort_last_error(little.ctx));
        struct test_case c = draw_case(i == 0 ? 1 : 2); // the same on every rank
        c.input.count = 10 * 2000 * size * 2;
        run_case(&c, &little, i);
    }
    size_t few, many, engine_bytes;
    CHECK(hsort_host_workspace(little.ctx, HSORT_U64, 64, &few) == HSORT_OK && few == 0, "%zu bytes", few);
    CHECK(hsort_host_workspace(little.ctx, HSORT_U64, 100000, &many) == HSORT_OK &&
              many >=
                  800000 + (size > 1 ? 8 * 8 * (size_t)little.slot : 0) + least_tables(100000, little.slot) &&
              many < 800000 + (4 << 20), // buffers of messages are no larger than slots
          "%zu bytes", many);
    CHECK(hsort_workspace(little.ctx, HSORT_U64, 10000, &engine_bytes) == HSORT_OK, "no workspace");
    CHECK(hsort_host_workspace(little.ctx, HSORT_U64, -1, &many) == HSORT_ARGUMENT &&
              hsort_host_workspace(little.ctx, HSORT_U64, 1, NULL) == HSORT_ARGUMENT &&
              hsort_host_workspace(NULL, HSORT_U64, 1, &many) == HSORT_ARGUMENT,
          "arguments");
    hsort_destroy(&little.ctx);
}

/* A context that keeps memory has it for more and for fewer runs, and beside what one pass sorts; another one has none after a sort. */
static void test_kept_memory(uint64_t seed)
{
    enum { SORTS = 5, SLOT = 2000 };
    static const int64_t runs[SORTS] = {10, 10, 5, 25, 10};
    for (int keeps = 0; keeps < 2; keeps++) {
        hsort_options options = options_for(limit_for(SLOT), false, true);
        options.keep_host_memory = keeps;
        struct little little = {open_with(MPI_COMM_WORLD, &options, "a context that may keep memory"), SLOT,
                                false, true};
        size_t most = 0;
        for (int i = 0; i < SORTS; i++) {
            uint64_t few[64] = {0}, random = seed + (uint64_t)i;
            struct test_case c = draw_case(check_random(&random)); // the same on every rank
            c.input.count = keys_for(&c, SLOT, runs[i], &random);
            run_case(&c, &little, i);
            CHECK(hsort_sort(little.ctx, HSORT_U64, HSORT_ASCENDING, few, 64, NULL) == HSORT_OK,
                  "few keys: %s", hsort_last_error(little.ctx));
            const struct run_memory *kept = &little.ctx->runs;
            CHECK(kept->bytes >= most && (kept->bytes > 0 || !keeps || size > 1) && (keeps || !kept->memory),
                  "%zu bytes are kept, before %zu", kept->bytes, most);
            most = kept->bytes;
        }
        hsort_destroy(&little.ctx);
    }
}

/* Kept memory is pinned, and pieces of a rank's own runs that are large come from it by copies. */
static void test_large_pieces(uint64_t seed)
{
    enum { PIECE = 4 << 20, SORTS = 2 };
    const int64_t runs =
        size == 1 ? 8 : 3; // the most; ranks with other counts afterwards need fewer keys for two passes
    const int64_t slot = runs * PIECE / 8 * 5 / 4; // what the engine makes of it may be a little less
    hsort_options options = options_for(limit_for(slot), false, true);
    options.keep_host_memory = 1;
    struct little little = {open_with(MPI_COMM_WORLD, &options, "a context for large pieces"), slot, false,
                            true};
    for (int i = 0; i < SORTS && size <= 3; i++) {
        uint64_t random = seed + (uint64_t)i;
        struct test_case c = draw_case(check_random(&random));
        c.input.type = HSORT_U64;
        c.input.count = size == 1 ? keys_for(&c, slot, 5, &random) : (slot * runs - slot / 2) * size;
        c.in_layout = LAYOUT_BALANCED;
        c.out_layout = size == 1 ? LAYOUT_BALANCED : LAYOUT_DESCENDING;
        c.call = CALL_TO;
        run_case(&c, &little, i);
        CHECK(little.ctx->runs.pinned_by != NULL, "kept memory is not pinned");
    }
    hsort_destroy(&little.ctx);
}

/* The runs of every second rank lie in memory of the caller's that the system lets nobody else read. They come by message, even if the
 * other runs are read. */
static void test_unreadable_runs(uint64_t seed)
{
    const int64_t slot = 300, count = 10 * slot * 8;
    const size_t bytes = (size_t)count * sizeof(uint64_t);
    struct little little = open_little(slot, true, true);
    uint64_t *secret = rank % 2 == 0 ? secret_memory_take(bytes) : NULL, *plain = malloc(bytes),
             *out = malloc(bytes);
    int have = rank % 2 || secret, all_have;
    if (!plain || !out)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Allreduce(&have, &all_have, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (rank == 0 && !all_have)
        printf("the system has no secret memory: runs there are not looked at\n");
    uint64_t *in = all_have && secret ? secret : plain, sum = 0, after = 0;
    for (int64_t i = 0; i < count; i++)
        sum += in[i] = check_random(&seed);
    CHECK(hsort_sort_to(little.ctx, HSORT_U64, HSORT_ASCENDING, in, count, out, count, NULL) == HSORT_OK,
          "secret runs: %s", hsort_last_error(little.ctx));
    hsort_stats stats = {.struct_size = sizeof stats};
    hsort_check_result result = {.struct_size = sizeof result};
    CHECK(hsort_get_stats(little.ctx, &stats) == HSORT_OK && stats.passes == 2, "secret runs: %d passes",
          (int)stats.passes);
    CHECK(hsort_check(whole, HSORT_U64, HSORT_ASCENDING, out, count, NULL, &result) == HSORT_OK &&
              result.first_disorder == -1,
          "secret runs: disorder at %lld", (long long)result.first_disorder);
    for (int64_t i = 0; i < count; i++)
        after += out[i];
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &after, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == after, "secret runs: other keys came out");
    secret_memory_give(secret, bytes);
    free(plain);
    free(out);
    hsort_destroy(&little.ctx);
}

/* If no rank has keys, no memory is needed, whichever call is asked to sort them. */
static void test_no_keys(void)
{
    hsort_context *ctx = open_context(MPI_COMM_WORLD, 4096, false, true, "no keys");
    for (int type = HSORT_U32; type <= HSORT_U128; type++) {
        size_t bytes = 1;
        int64_t index;
        uint64_t key;
        CHECK(hsort_workspace(ctx, (hsort_type)type, 0, &bytes) == HSORT_OK && bytes == 0, "no %s: %zu bytes",
              hsort_type_name((hsort_type)type), bytes);
        CHECK(hsort_sort(ctx, (hsort_type)type, HSORT_ASCENDING, &key, 0, NULL) == HSORT_OK &&
                  hsort_argsort(ctx, (hsort_type)type, HSORT_DESCENDING, &key, 0, &index, NULL, 0, NULL) ==
                      HSORT_OK,
              "no %s: %s", hsort_type_name((hsort_type)type), hsort_last_error(ctx));
    }
    hsort_destroy(&ctx);
}

/* With too little memory for any slots, the line is the same everywhere and says the least memory that does; that much must do. */
static void test_least(int64_t count)
{
    uint64_t *keys = malloc((size_t)count * sizeof *keys), random = 1 + (uint64_t)rank, before = 0;
    if (!keys)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int64_t i = 0; i < count; i++)
        keys[i] = check_random(&random);
    before = keys[count / 2];
    size_t least = 0;
    for (int i = 0; i < 3; i++) {
        const size_t limit = i == 0 ? 4096 : i == 1 ? least - 64 : least;
        hsort_context *ctx = open_context(MPI_COMM_WORLD, limit, false, true, "the least");
        const hsort_status status = hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, NULL);
        const char *says = strstr(hsort_last_error(ctx), "two passes take at least ");
        if (i < 2) {
            CHECK(status == (engine == HSORT_ENGINE_CUDA ? HSORT_DEVICE_MEMORY : HSORT_HOST_MEMORY),
                  "%lld keys, limit %zu: status %d, %s", (long long)count, limit, status,
                  hsort_last_error(ctx));
            CHECK(strncmp(hsort_last_error(ctx), "rank 0 on ", 10) == 0, "%s", hsort_last_error(ctx));
            CHECK(says && keys[count / 2] == before, "'%s' says no least", hsort_last_error(ctx));
            if (i == 0 && says)
                least = strtoull(says + strlen("two passes take at least "), NULL, 10);
        } else {
            CHECK(status == HSORT_OK, "%lld keys, limit %zu: %s", (long long)count, limit,
                  hsort_last_error(ctx));
            for (int64_t k = 1; k < count; k++)
                CHECK(keys[k - 1] <= keys[k], "%lld keys, limit %zu: key %lld", (long long)count, limit,
                      (long long)k);
        }
        hsort_destroy(&ctx);
        if (least == 0)
            break;
    }
    CHECK(least > 4096, "%zu bytes", least);
    free(keys);
}

/* On the host engine, a sort takes two passes, or refuses its limit, where the plan says so. */
static void test_planned(void)
{
    enum { KEYS = 1 << 19 };
    hsort_rates rates;
    hsort_plan_result plan = {.struct_size = sizeof plan};
    hsort_stats stats = {.struct_size = sizeof stats};
    uint64_t *keys = calloc(KEYS, sizeof *keys);
    if (!keys || hsort_rates_init(&rates, sizeof rates, HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const int threads = omp_get_num_procs() / size; // a rank's part of this machine, as the plan has it
    size_t limit = 4096, least = 0;
    for (int i = 0; i < 4; i++, limit = i == 1 ? least - 64 : i == 2 ? least : least + least / 8) {
        hsort_options options = options_for(limit, false, true);
        options.threads = threads > 0 ? threads : 1;
        hsort_context *ctx = open_with(MPI_COMM_WORLD, &options, "a plan");
        rates.engine_bytes = (double)limit;
        CHECK(hsort_plan(&rates, size, size, HSORT_U64, (int64_t)KEYS * size, &plan) == HSORT_OK, "plan");
        const hsort_status status = hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, KEYS, NULL);
        CHECK(plan.passes == (i < 2 ? 0 : 2) && status == (i < 2 ? HSORT_HOST_MEMORY : HSORT_OK),
              "limit %zu: planned %lld passes, status %d: %s", limit, (long long)plan.passes, (int)status,
              hsort_last_error(ctx));
        if (status == HSORT_OK)
            CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == 2 &&
                      stats.runs == plan.runs * size,
                  "limit %zu: %lld runs, planned %lld of a rank", limit, (long long)stats.runs,
                  (long long)plan.runs);
        least = i == 0 ? (size_t)plan.engine_bytes : least;
        hsort_destroy(&ctx);
    }
    free(keys);
}

/* Options must be the same everywhere, and have one of two values. */
static void test_options(void)
{
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.overwrite_input = 2;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_ARGUMENT, "overwrite_input 2");
    options.overwrite_input = rank == 0;
    if (size > 1)
        CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_ARGUMENT, "overwrite_input of one rank");
    options.overwrite_input = 0;
    options.keep_host_memory = -1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_ARGUMENT, "keep_host_memory -1");
    options.keep_host_memory = rank == 0;
    if (size > 1)
        CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_ARGUMENT, "keep_host_memory of one rank");
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const bool every = argc > 1 && strcmp(argv[argc - 1], "all") == 0;
    const uint64_t seed = ranks_seed();
    engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    whole = open_context(MPI_COMM_WORLD, 0, false, false, "a context without a limit");
    alone = open_context(MPI_COMM_SELF, 0, false, false, "a context of a rank alone");
    test_options();
    test_no_keys();
    if (engine == HSORT_ENGINE_HOST)
        test_planned();
    uint64_t random = seed;
    const int leasts = size == 1 ? 8 : 1; // each rank finds its own; among several that takes a while
    for (int i = 0; i < leasts; i++)
        test_least(50000 + (int64_t)(check_random(&random) % 50000));
    test_both_ways(seed + (uint64_t)rank);
    test_kept_memory(seed);
    test_large_pieces(seed);
    if (engine == HSORT_ENGINE_HOST) // a GPU's copies may want memory that can be pinned
        test_unreadable_runs(seed + (uint64_t)rank);
    int number = every ? run_matrix(seed, 0) : 0;
    number = run_drawn(seed, number, SECONDS);
    if (rank == 0)
        printf("%d cases on %d ranks\n", number, size);
    hsort_destroy(&whole);
    hsort_destroy(&alone);
    return ranks_finish();
}
