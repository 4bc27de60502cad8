/* hsort_get_stats() after each call on elements: counts; bytes between ranks, which are known beforehand if an index says who
 * sends what; and times, which belong to the phases that there were and add up to no more than the whole. All ranks must get the
 * same answer. */
#include <stddef.h>
#include "hypersort.h"
#include "src/library/trace_file.h"
#include "tests/support/ranks.h"

enum { EACH = 3001, VALUE_BYTES = 24 };

static int rank, size;
static hsort_context *ctx;
static bool by_rounds; /* ctx moves keys by bitonic */
static bool copies;    /* ctx copies all arrays to its engine's memory and back */
static uint64_t keys[EACH], sorted[EACH];
static int64_t found[EACH], turned[EACH];
static unsigned char values[EACH * VALUE_BYTES], moved[EACH * VALUE_BYTES];

/* Everything except `rounds` is the same on every rank. */
static void compare_ranks(const hsort_stats *stats, const char *call)
{
    const size_t begin = offsetof(hsort_stats, seconds), bytes = offsetof(hsort_stats, engine) - begin;
    hsort_stats first = *stats;
    MPI_Bcast(&first, sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    CHECK(first.keys == stats->keys && first.moved_bytes == stats->moved_bytes &&
              first.engine == stats->engine &&
              memcmp((char *)&first + begin, (const char *)stats + begin, bytes) == 0,
          "%s: rank %d has other statistics than rank 0", call, rank);
}

/* The ranks' own statistics must make up what all ranks are told. */
static void compare_own(const hsort_stats *stats, const char *call)
{
    double own[HSORT_PHASES], largest[HSORT_PHASES];
    int64_t sent, all;
    context_own_stats(ctx, own, &sent);
    MPI_Allreduce(own, largest, HSORT_PHASES, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&sent, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(memcmp(largest, stats->seconds, sizeof largest) == 0 && all == stats->moved_bytes,
          "%s: of all ranks' own statistics others come, %lld bytes", call, (long long)all);
}

/* Check what must hold for any call that has gone well. Returns its statistics. */
static hsort_stats look(hsort_status status, const char *call, int64_t count)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    int64_t by_paths = 0;
    CHECK(status == HSORT_OK, "%s: %s", call, hsort_last_error(ctx));
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "%s: no statistics", call);
    CHECK(stats.keys == count && stats.passes == 1 && stats.runs == 0, "%s: %lld elements, %d passes", call,
          (long long)stats.keys, (int)stats.passes);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        CHECK(stats.seconds[phase] >= 0 && stats.seconds[phase] <= stats.total_seconds,
              "%s: phase %d: %g of %g s", call, phase, stats.seconds[phase], stats.total_seconds);
    for (int path = 0; path < HSORT_TRANSPORTS; path++)
        by_paths += stats.paths[path].moved_bytes;
    CHECK(by_paths == stats.moved_bytes, "%s: %lld bytes, but %lld by all paths", call,
          (long long)stats.moved_bytes, (long long)by_paths);
    CHECK(!copies || stats.seconds[HSORT_PHASE_H2D] > 0, "%s: nothing is brought", call);
    CHECK(!copies || (stats.seconds[HSORT_PHASE_D2H] > 0) == (strcmp(call, "select") != 0),
          "%s: %g s to bring results back", call, stats.seconds[HSORT_PHASE_D2H]);
    compare_ranks(&stats, call);
    compare_own(&stats, call);
    CHECK(size > 1 || stats.moved_bytes == 0, "%s: a rank alone has moved %lld bytes", call,
          (long long)stats.moved_bytes);
    return stats;
}

static void has(const hsort_stats *stats, const char *call, hsort_phase phase, bool time)
{
    CHECK((stats->seconds[phase] > 0) == time, "%s: phase %d took %g s", call, (int)phase,
          stats->seconds[phase]);
}

/* Count the elements of all ranks that an index lets cross from one rank to another. */
static int64_t crossing(const int64_t *index)
{
    int64_t own = 0, all;
    for (int64_t i = 0; i < EACH; i++)
        own += index[i] / EACH != rank;
    MPI_Allreduce(&own, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void check_sorts(void)
{
    const int64_t all = (int64_t)EACH * size;
    const hsort_order up = HSORT_ASCENDING;
    const hsort_field field = {.type = HSORT_U32, .offset = 5};
    hsort_stats stats = look(hsort_sort_to(ctx, HSORT_U64, up, keys, EACH, sorted, EACH, NULL), "sort", all);
    has(&stats, "sort", HSORT_PHASE_GATHER, false);
    const int64_t of_sort = stats.moved_bytes;
    CHECK(!by_rounds || (stats.rounds > 0) == (size > 1), "sort: %d rounds", stats.rounds);
    stats = look(hsort_argsort(ctx, HSORT_U64, up, keys, EACH, found, NULL, EACH, NULL), "argsort", all);
    has(&stats, "argsort", HSORT_PHASE_LOCAL_SORT, true);
    has(&stats, "argsort", HSORT_PHASE_GATHER, false);
    CHECK(stats.moved_bytes >= of_sort, "argsort: %lld bytes, a sort of keys moves %lld",
          (long long)stats.moved_bytes, (long long)of_sort);
    CHECK(!by_rounds || (stats.rounds > 0) == (size > 1), "argsort: %d rounds", stats.rounds);
    const int64_t of_argsort = stats.moved_bytes, carried = crossing(found) * (VALUE_BYTES + 8);
    stats = look(
        hsort_sort_pairs_to(ctx, HSORT_U64, up, keys, values, VALUE_BYTES, EACH, sorted, moved, EACH, NULL),
        "pairs", all);
    has(&stats, "pairs", HSORT_PHASE_GATHER, true);
    CHECK(stats.moved_bytes == of_argsort + carried, "pairs: %lld bytes, not %lld and %lld",
          (long long)stats.moved_bytes, (long long)of_argsort, (long long)carried);
    stats = look(hsort_sort_records_to(ctx, values, VALUE_BYTES, &field, 1, EACH, moved, EACH, NULL),
                 "records", all);
    has(&stats, "records", HSORT_PHASE_GATHER, true);
    has(&stats, "records", HSORT_PHASE_LOCAL_SORT, true);
    stats = look(hsort_sort_to(ctx, HSORT_U16, up, keys, EACH, found, EACH, NULL), "short keys", all);
    has(&stats, "short keys", HSORT_PHASE_LOCAL_SORT, true);
    has(&stats, "short keys", HSORT_PHASE_EXCHANGE, true);
    has(&stats, "short keys", HSORT_PHASE_MERGE, true);
    const hsort_field wide[] = {{.bytes = 16}};
    stats = look(hsort_sort_records_to(ctx, values, VALUE_BYTES, wide, 1, EACH, moved, EACH, NULL),
                 "two rounds", all);
    has(&stats, "two rounds", HSORT_PHASE_GATHER, true);
}

static void check_others(void)
{
    const int64_t all = (int64_t)EACH * size;
    int64_t kept, counts[EACH];
    uint64_t selected[2];
    hsort_stats stats = look(hsort_gather(ctx, values, EACH, VALUE_BYTES, turned, moved, EACH - rank, NULL),
                             "gather", all - (int64_t)size * (size - 1) / 2);
    has(&stats, "gather", HSORT_PHASE_GATHER, true);
    stats = look(hsort_gather(ctx, values, EACH, VALUE_BYTES, turned, moved, EACH, NULL), "gather", all);
    CHECK(stats.moved_bytes == crossing(turned) * (VALUE_BYTES + 8), "gather: %lld bytes",
          (long long)stats.moved_bytes);
    stats = look(hsort_scatter(ctx, values, EACH, VALUE_BYTES, turned, moved, EACH, NULL), "scatter", all);
    CHECK(stats.moved_bytes == crossing(turned) * (VALUE_BYTES + 8), "scatter: %lld bytes",
          (long long)stats.moved_bytes);
    has(&stats, "scatter", HSORT_PHASE_GATHER, true);
    look(hsort_scatter(ctx, values, EACH - rank, VALUE_BYTES, turned, moved, EACH, NULL), "scatter",
         all - (int64_t)size * (size - 1) / 2);
    stats = look(
        hsort_select(ctx, HSORT_U64, HSORT_ASCENDING, keys, EACH, (int64_t[]){0, all - 1}, 2, selected, NULL),
        "select", all);
    has(&stats, "select", HSORT_PHASE_LOCAL_SORT, true);
    has(&stats, "select", HSORT_PHASE_EXCHANGE, true);
    CHECK(stats.moved_bytes == 0, "select: %lld bytes", (long long)stats.moved_bytes);
    stats = look(hsort_unique(ctx, HSORT_U64, sorted, EACH, NULL, &kept, counts, NULL, NULL, NULL), "unique",
                 all);
    has(&stats, "unique", HSORT_PHASE_LOCAL_SORT, true);
    CHECK(stats.moved_bytes == 0, "unique: %lld bytes", (long long)stats.moved_bytes);
}

/* A call that fails, and a check, leave the statistics as they are. */
static void check_kept(void)
{
    hsort_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
    hsort_check_result result = {.struct_size = sizeof result};
    CHECK(hsort_get_stats(ctx, &before) == HSORT_OK, "no statistics");
    found[0] = rank == size - 1 ? -1 : 0;
    CHECK(hsort_gather(ctx, values, EACH, 1, found, moved, EACH, NULL) == HSORT_ARGUMENT, "an index outside");
    CHECK(hsort_check_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys, values, 8, EACH, NULL, NULL, &result) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    CHECK(hsort_get_stats(ctx, &after) == HSORT_OK && memcmp(&before, &after, sizeof before) == 0,
          "statistics have changed");
}

/* limit: of engine memory, in bytes, with which the host engine copies, too; 0: none. */
static void run_context(hsort_engine engine, hsort_exchange exchange, size_t limit)
{
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.exchange = exchange;
    options.threads = 2;
    options.device_memory_limit = limit;
    copies = limit > 0;
    by_rounds = exchange == HSORT_EXCHANGE_BITONIC;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    if (!ctx)
        return;
    check_sorts();
    check_others();
    check_kept();
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed() + (uint64_t)rank;
    for (int64_t i = 0; i < EACH; i++) {
        keys[i] = check_random(&random) % 5000;
        turned[i] = (int64_t)EACH * size - 1 - (rank * (int64_t)EACH + i);
    }
    for (size_t i = 0; i < sizeof values; i++)
        values[i] = (unsigned char)check_random(&random);
    const hsort_engine engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    run_context(engine, HSORT_EXCHANGE_AUTO, 0);
    run_context(engine, HSORT_EXCHANGE_BITONIC, 0);
    run_context(engine, HSORT_EXCHANGE_AUTO, 512 << 20);
    return ranks_finish();
}
