/* Streams that do their work late (late_engine.h), as a GPU's do: a wait that is missing between two streams, or before the
 * host or another rank looks, gives wrong results. Calls of drawn_calls.h on contexts with drawn options, on drawn nodes whose ranks
 * can map each other's memory or not; in some of them something fails. In addition, no call leaves work in a stream, and no work is
 * lost.
 *
 *     test_late_streams             for some seconds
 *     test_late_streams 600         for that many
 *
 * Context n of a run has the seed of the run + n: HYPERSORT_SEED with that number begins with it. */
#include "tests/library/drawn_calls.h"
#include "tests/support/faults.h"
#include "tests/support/late_engine.h"
#include "tests/support/shared_engine.h"

enum {
    SECONDS = 15,
    SECONDS_PER_CASE = 90,
    CALLS_MOST = 8,
    FAULTS_MOST = 3,
    BUFFERS = 2,
    TEXT = 512,
    MANY = 1 << ENGINE_SAMPLE_LOG_MIN /* elements that partition takes */
};

enum nodes { ONE_NODE, NODE_PER_RANK, PAIRS_OF_RANKS, ONE_AND_THREE, EVERY_SECOND, NODES };
static enum nodes nodes;

static char context_text[200];
static int ok_calls, failed_calls, refused_calls, of_two_passes, by_ipc, by_exchange[HSORT_EXCHANGES];

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

int __real_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node);
int __wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node);

static int node_of(int of_rank)
{
    switch (nodes) {
    case NODE_PER_RANK:
        return of_rank;
    case PAIRS_OF_RANKS:
        return of_rank / 2;
    case ONE_AND_THREE:
        return of_rank / 4 * 2 + (of_rank % 4 > 0);
    case EVERY_SECOND:
        return of_rank % 2;
    case ONE_NODE:
    case NODES:
        break;
    }
    return 0;
}

int __wrap_MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *node)
{
    int of_rank;
    MPI_Comm_rank(comm, &of_rank);
    if (type != MPI_COMM_TYPE_SHARED)
        return __real_MPI_Comm_split_type(comm, type, key, info, node);
    return MPI_Comm_split(comm, node_of(of_rank), key, node);
}

/* ---- contexts --------------------------------------------------------------------------------------------------- */

/* Draw so little engine memory that many sorts take two passes. Everything else that takes memory takes little. */
static void draw_limit(hsort_options *o)
{
    enum { LEAST = 560 << 10 /* for two passes by one thread */, MORE_BITS = 18, CHUNK = 4096 };
    o->device_memory_limit = LEAST + draw((uint64_t)1 << (MORE_BITS - draw(4)));
    o->exchange = HSORT_EXCHANGE_DIRECT;
    o->transport = HSORT_TRANSPORT_STAGED;
    o->chunk_bytes = CHUNK;
    o->threads = 1;
    o->overwrite_input = draw(2) == 0;
    o->keep_host_memory = draw(2) == 0;
}

/* Draw options, the same on every rank except for the threads. */
static hsort_options draw_options(void)
{
    static const size_t chunks[] = {0, 64, 256, 1000, 4096, 1 << 13, 1 << 14, 1 << 16, 1 << 20};
    static const hsort_transport transports[] = {HSORT_TRANSPORT_AUTO, HSORT_TRANSPORT_AUTO,
                                                 HSORT_TRANSPORT_STAGED, HSORT_TRANSPORT_MPI};
    static const hsort_exchange exchanges[] = {HSORT_EXCHANGE_PARTITION, HSORT_EXCHANGE_PARTITION,
                                               HSORT_EXCHANGE_BITONIC, HSORT_EXCHANGE_DIRECT};
    hsort_options o;
    hsort_options_init(&o, sizeof o);
    o.engine = HSORT_ENGINE_HOST;
    o.exchange = draw(8) ? exchanges[draw(sizeof exchanges / sizeof *exchanges)] : HSORT_EXCHANGE_AUTO;
    o.transport = transports[draw(sizeof transports / sizeof *transports)];
    o.shared_memory = draw(3) ? HSORT_CHOICE_AUTO : HSORT_CHOICE_OFF;
    o.peer_memory = draw(4) ? HSORT_CHOICE_AUTO : HSORT_CHOICE_OFF;
    o.chunk_bytes = chunks[draw(sizeof chunks / sizeof *chunks)];
    o.threads = 1 + (int)draw(2);
    if (draw(4) == 0)
        draw_limit(&o);
    return o;
}

/* Draw what the engine is like, and where ranks are. */
static void draw_machine(const hsort_options *o, uint64_t seed)
{
    nodes = draw(2) ? ONE_NODE : (enum nodes)draw(NODES);
    shared_is_off = o->device_memory_limit > 0;
    shared_may_map = draw(3) ? NULL : shared_some_may;
    shared_leaves_regions = draw(2) == 0;
    buffer_kinds = shared_is_off ? 1 : BUFFERS;
    overwrites_inputs = o->overwrite_input != 0;
    late_engine_seed(seed + (uint64_t)rank);
    snprintf(context_text, sizeof context_text,
             "context of seed %llu: exchange %d, transport %d, shared %d, peer %d, chunks of %zu, limit %zu, "
             "overwrites %d, "
             "nodes %d, %s may map",
             (unsigned long long)seed, o->exchange, o->transport, o->shared_memory, o->peer_memory,
             o->chunk_bytes, o->device_memory_limit, o->overwrite_input, nodes,
             shared_may_map ? "some" : "all");
    snprintf(faults_case, sizeof faults_case, "%.100s", context_text);
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

#ifdef HSORT_FAULTS
static const enum fault_site sites[] = {FAULT_ALLOC, FAULT_MPI, FAULT_KERNEL, FAULT_COPY, FAULT_PIN};
enum { SITES = sizeof sites / sizeof *sites, PASSAGE_BITS = 9 };

/* Let some sites of some ranks fail at some passage. */
static void arm_faults(void)
{
    for (int left = 1 + (int)draw(FAULTS_MOST); left > 0; left--) {
        const uint64_t site = draw(SITES + 2); // or something that is queued
        const int failing = (int)draw((uint64_t)size), nth = 1 + (int)draw((uint64_t)1 << draw(PASSAGE_BITS));
        if (rank == failing && site < SITES)
            fault_set(sites[site], nth);
        else if (rank == failing)
            *(site == SITES ? &late_work_fails : &late_pack_fails) = nth;
    }
}

static void disarm_faults(void)
{
    for (int site = 0; site < SITES; site++)
        fault_set(sites[site], 0);
    late_work_fails = late_pack_fails = 0;
}
#else
static void arm_faults(void)
{
}

static void disarm_faults(void)
{
}
#endif

/* Check that all ranks say the same. */
static void check_agreement(hsort_status status, const char *line)
{
    int statuses[2] = {(int)status, -(int)status}, most[2];
    char first[TEXT];
    snprintf(first, sizeof first, "%s", line);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_Allreduce(statuses, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(most[0] == -most[1], "rank %d: status %d, another one %d", rank, (int)status, most[0]);
    CHECK(status == HSORT_OK || strncmp(first, line, TEXT - 1) == 0, "rank %d says '%s', rank 0 '%s'", rank,
          line, first);
}

/* ---- calls ------------------------------------------------------------------------------------------------------ */

static bool is_memory(hsort_status status)
{
    return status == HSORT_DEVICE_MEMORY || status == HSORT_HOST_MEMORY;
}

/* Draw a call. Most calls are sorts, and most sorts have many elements. */
static struct trial draw_call(uint64_t seed)
{
    const enum call sorts[] = {SORT, SORT, SORT, RECORDS, PAIRS, ARGSORT};
    random_state = seed;
    const bool is_sort = draw(4) > 0, has_many = draw(3) > 0;
    const enum call call = is_sort ? sorts[draw(sizeof sorts / sizeof *sorts)] : (enum call)draw(CALLS);
    struct trial t = draw_trial(call, seed);
    while (is_sort && has_many && t.total < MANY)
        t = draw_trial(call, check_random(&seed));
    return t;
}

/* Count by which ways the call went. */
static void count_call(enum call call)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "no statistics: %s", what);
    ok_calls++;
    of_two_passes += stats.passes == 2;
    by_ipc += stats.paths[HSORT_TRANSPORT_IPC].moved_bytes > 0;
    by_exchange[hsort_exchange_in_use(ctx)] += call == SORT;
}

/* Make a call with a seed of its own. Returns whether the context is good for another one. */
static bool run_call(uint64_t seed, bool limited)
{
    const struct trial t = draw_call(seed);
    const bool fails = draw(3) == 0;
    const int failures = check_failures;
    if (fails)
        arm_faults();
    random_state = seed + 1 + (uint64_t)rank; // kinds of memory differ between ranks
    const hsort_status status = run_trial(&t);
    disarm_faults();
    CHECK(late_engine_faults(status != HSORT_OK) == 0, "status %d, '%s': %s", (int)status,
          hsort_last_error(ctx), what);
    check_agreement(status, hsort_last_error(ctx));
    CHECK(status == HSORT_OK || fails || (limited && is_memory(status)), "%s: %s", hsort_last_error(ctx),
          what);
    if (check_failures > failures)
        fprintf(stderr, "    rank %d of %d, %s, fails %d: %s\n", rank, size, context_text, fails, what);
    failed_calls += status != HSORT_OK && fails;
    refused_calls += status != HSORT_OK && !fails;
    if (status == HSORT_OK)
        count_call(t.call);
    return status == HSORT_OK || is_memory(status);
}

static void run_context(uint64_t seed)
{
    random_state = seed;
    hsort_options options = draw_options();
    draw_machine(&options, seed);
    const bool fails = draw(12) == 0;
    const uint64_t calls = 1 + draw(CALLS_MOST);
    const int failures = check_failures;
    faults_watch(SECONDS_PER_CASE);
    if (fails)
        arm_faults();
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    disarm_faults();
    CHECK(late_engine_faults(status != HSORT_OK) == 0, "a new context: %d, '%s'", (int)status,
          hsort_last_error(NULL));
    check_agreement(status, hsort_last_error(NULL));
    const bool limited = options.device_memory_limit > 0;
    CHECK((status == HSORT_OK) == (ctx != NULL), "a context in spite of '%s'", hsort_last_error(NULL));
    CHECK(ctx || fails || (limited && is_memory(status)), "a new context: '%s'", hsort_last_error(NULL));
    bool good = ctx != NULL;
    for (uint64_t number = 0; good && number < calls; number++)
        good = run_call(seed * CALLS_MOST + number, limited);
    hsort_destroy(&ctx);
    CHECK(late_engine_faults(false) == 0, "a context is destroyed");
    CHECK(shared_mapped == 0, "%d mappings are left", shared_mapped);
    if (check_failures > failures)
        fprintf(stderr, "    rank %d of %d, %s\n", rank, size, context_text);
    faults_watch(0);
}

/* The engine is late, also at the next call, and sees memory that is freed before queued work has read it. */
static void test_engine(uint64_t seed)
{
    enum { HALF = 4096, BYTES = 2 * HALF, TIMES = 64 };
    struct engine *engine;
    int times_late = 0, wrong = 0;
    FILE *const shown = stderr;
    CHECK(engine_open_host(1, 0, &engine) == HSORT_OK, "%s", status_text());
    stderr = fopen("/dev/null", "w"); // it says what it sees
    for (int time = 0; time < TIMES; time++) {
        void *from, *to;
        late_engine_seed(seed + (uint64_t)time);
        if (engine->ops->alloc(engine, BYTES, &from) != HSORT_OK ||
            engine->ops->alloc(engine, BYTES, &to) != HSORT_OK)
            MPI_Abort(MPI_COMM_WORLD, 1);
        memset(from, 1, BYTES);
        memset(to, 0, BYTES);
        char *const other = (char *)to + HALF;
        wrong += engine->ops->copy(engine, STREAM_IN, to, from, HALF) != HSORT_OK;
        wrong += engine->ops->copy(engine, STREAM_OUT, other, from, HALF) != HSORT_OK;
        const bool is_late = *(char *)to == 0 || *other == 0;
        times_late += *(char *)to == 0;
        engine->ops->free(engine, from);
        wrong += (late_engine_faults(false) > 0) != is_late;
        engine->ops->free(engine, to);
    }
    fclose(stderr);
    stderr = shown;
    CHECK(times_late > 0 && wrong == 0, "%d of %d copies are late, %d times what is wrong is not seen",
          times_late, (int)TIMES, wrong);
    engine->ops->close(engine);
}

int main(int argc, char **argv)
{
    enum { FAILURES_MOST = 10 };
    bool cuda;
    int go_on = 1;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const double begin = MPI_Wtime(), seconds = argc > 1 ? atof(argv[1]) : SECONDS;
    const uint64_t seed = ranks_seed();
    uint64_t number = 0;
    test_engine(seed);
    for (; go_on; number++) {
        run_context(seed + number);
        int over = MPI_Wtime() - begin > seconds || check_failures > FAILURES_MOST;
        MPI_Allreduce(&over, &go_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        go_on = !go_on;
    }
    if (rank == 0)
        printf("%llu contexts, %d calls, %d in two passes, %d by ipc; %d that failed as they were made to, "
               "%d for want of memory\n"
               "sorts by bitonic, direct, partition: %d %d %d\n",
               (unsigned long long)number, ok_calls, of_two_passes, by_ipc, failed_calls, refused_calls,
               by_exchange[HSORT_EXCHANGE_BITONIC], by_exchange[HSORT_EXCHANGE_DIRECT],
               by_exchange[HSORT_EXCHANGE_PARTITION]);
    return ranks_finish();
}
