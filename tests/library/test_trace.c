/* hsort_write_trace(): files of sorts by every exchange and transport, of records, in two passes; by ranks whose clocks differ by
 * seconds and run at different rates. Every file is read back and checked: is it JSON, does it have every rank, do spans of a thread
 * nest, do bytes add up to what the statistics say, and do agreements of all ranks overlap in its common time? Then what is lost,
 * and what fails. The check itself is shown wrong files first.
 *
 * test_trace cuda: on GPUs, whose streams must then have spans.
 * Linked with shared_engine.c, so that ranks map each other's memory, and with --wrap=clock_gettime. */
#include <sys/stat.h>
#include <unistd.h>
#include "hypersort.h"
#include "kernels/base/fault.h"
#include "kernels/base/trace.h"
#include "src/command/json_read.h"
#include "tests/support/ranks.h"

enum {
    MOST = 3000,
    RECORD_BYTES = 24,
    TRACKS = 80,
    DEEP = 64,
    RANKS_MAX = 16,
    PASSES_KEYS = 100000,
    AGREEMENTS = 4096
};

int __real_clock_gettime(clockid_t which, struct timespec *now);
int __wrap_clock_gettime(clockid_t which, struct timespec *now);

static int rank, size;
static hsort_engine engine = HSORT_ENGINE_HOST;
static char path[256];
static uint64_t keys[2][MOST];
static unsigned char records[2][MOST * RECORD_BYTES];

/* Each rank's clock has a time and a rate of its own: 3 s and 100 parts in a million more than that of the rank before. */
int __wrap_clock_gettime(clockid_t which, struct timespec *now)
{
    static int64_t began;
    const int failed = __real_clock_gettime(which, now);
    if (which != CLOCK_MONOTONIC || failed)
        return failed;
    int64_t ns = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec;
    began = began ? began : ns;
    ns += rank * INT64_C(3000000000) + (ns - began) / 10000 * rank;
    now->tv_sec = ns / 1000000000;
    now->tv_nsec = ns % 1000000000;
    return 0;
}

/* ---- looking at a file --------------------------------------------------------------------------------- */

/* What a file has. */
struct seen {
    int64_t spans, lost, sent, calls; /* calls: spans of the name that is looked for */
    int64_t on_streams;
    int wrong;        /* of all kinds */
    const char *what; /* the last of them */
    int ranks;
    double error_us[RANKS_MAX];
    int64_t agreements[RANKS_MAX];
    double begin[RANKS_MAX][AGREEMENTS], end[RANKS_MAX][AGREEMENTS];
};

static void is_wrong(struct seen *seen, bool wrong, const char *what)
{
    seen->wrong += wrong;
    seen->what = wrong ? what : seen->what;
}

static double member_number(const struct json_value *object, const char *name)
{
    const struct json_value value = json_member(object, name);
    return json_number(&value, -1);
}

/* Events of a track come in the order of their beginnings: do they nest? `around` are the ends of those that are open. */
struct track {
    double around[DEEP], last;
    int depth;
};

static bool json_is_of_stream(const struct json_value *event)
{
    const int track = (int)member_number(event, "tid");
    return track >= TRACE_STREAMS && track < TRACE_SORTER;
}

static void look_at_span(struct seen *seen, struct track *track, const struct json_value *event,
                         const char *call)
{
    const double begin = member_number(event, "ts"), length = member_number(event, "dur"),
                 end = begin + length;
    const int of = (int)member_number(event, "pid");
    const struct json_value name = json_member(event, "name"), args = json_member(event, "args");
    const double sent = member_number(&args, "sent");
    const double rounding = 0.0011; // us: the file has ns
    is_wrong(seen, begin < 0 || length < 0, "a span ends before it begins");
    is_wrong(seen, begin < track->last - rounding, "spans of a thread are in no order");
    while (track->depth > 0 && track->around[track->depth - 1] <= begin + rounding)
        track->depth--;
    is_wrong(seen, track->depth > 0 && end > track->around[track->depth - 1] + rounding,
             "spans of a thread do not nest");
    if (track->depth < DEEP)
        track->around[track->depth++] = end;
    track->last = begin;
    seen->spans++;
    seen->on_streams += json_is_of_stream(event);
    seen->sent += sent > 0 ? (int64_t)sent : 0;
    seen->calls += json_is(&name, call);
    if (json_is(&name, "agree") && of >= 0 && of < RANKS_MAX && seen->agreements[of] < AGREEMENTS) {
        seen->begin[of][seen->agreements[of]] = begin;
        seen->end[of][seen->agreements[of]++] = end;
    }
}

/* No rank may leave an agreement before the last rank has come to it. */
static void look_at_agreements(struct seen *seen)
{
    for (int r = 1; r < seen->ranks && r < RANKS_MAX; r++)
        is_wrong(seen, seen->agreements[r] != seen->agreements[0], "ranks have agreed at different times");
    for (int64_t i = 0; i < seen->agreements[0] && seen->wrong == 0; i++) {
        for (int r = 0; r < seen->ranks; r++)
            for (int other = 0; other < seen->ranks; other++)
                is_wrong(seen,
                         seen->end[r][i] + seen->error_us[r] + seen->error_us[other] + 1 <
                             seen->begin[other][i],
                         "a rank has left an agreement before another one came");
    }
}

static void look_at_ranks(struct seen *seen, const struct json_value *root)
{
    const struct json_value other = json_member(root, "otherData"), ranks = json_member(&other, "ranks");
    struct json_walk walk = json_begin(&ranks);
    struct json_value one;
    while (json_next(&walk, NULL, &one)) {
        is_wrong(seen, (int)member_number(&one, "rank") != seen->ranks, "ranks are not in order");
        if (seen->ranks < RANKS_MAX)
            seen->error_us[seen->ranks] = member_number(&one, "clock_error_us");
        seen->lost += (int64_t)member_number(&one, "lost_spans");
        seen->ranks++;
    }
}

static void look_at_text(struct seen *seen, const char *text, size_t length, const char *call)
{
    static struct track tracks[RANKS_MAX][TRACKS];
    size_t where;
    int named[RANKS_MAX] = {0};
    memset(seen, 0, sizeof *seen);
    memset(tracks, 0, sizeof tracks);
    const struct json_value root = json_parse(text, length, &where),
                            events = json_member(&root, "traceEvents");
    is_wrong(seen, events.kind != JSON_ARRAY, "it is no trace");
    look_at_ranks(seen, &root);
    struct json_walk walk = json_begin(&events);
    struct json_value event;
    while (json_next(&walk, NULL, &event)) {
        const struct json_value kind = json_member(&event, "ph"), name = json_member(&event, "name");
        const int of = (int)member_number(&event, "pid"), track = (int)member_number(&event, "tid");
        const bool known = of >= 0 && of < seen->ranks && of < RANKS_MAX && track >= 0 && track < TRACKS;
        is_wrong(seen, !known, "a span of nobody");
        if (known && json_is(&kind, "X"))
            look_at_span(seen, &tracks[of][track], &event, call);
        else if (known && json_is(&name, "process_name"))
            named[of]++;
    }
    for (int r = 0; r < seen->ranks && r < RANKS_MAX; r++)
        is_wrong(seen, named[r] != 1, "a rank has no name");
    look_at_agreements(seen);
}

/* Look at the file, on rank 0. */
static void look_at_file(struct seen *seen, const char *call)
{
    FILE *file = fopen(path, "rb");
    char *text = NULL;
    long length = 0;
    if (file && fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) > 0 &&
        (text = malloc((size_t)length))) {
        rewind(file);
        length = (long)fread(text, 1, (size_t)length, file);
    }
    look_at_text(seen, text, text ? (size_t)length : 0, call);
    if (file)
        fclose(file);
    free(text);
}

/* Show the look wrong files, which it must find to be wrong. */
static void test_look(void)
{
    static struct seen seen;
    static const char *const heads[] = {
        "{\"otherData\": {\"ranks\": [{\"rank\": 0, \"clock_error_us\": 1, \"lost_spans\": 0}, {\"rank\": 1, "
        "\"clock_error_us\": 1, "
        "\"lost_spans\": 0}]}, \"traceEvents\": [{\"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"name\": "
        "\"process_name\"}, ",
        "{\"ph\": \"M\", \"pid\": 1, \"tid\": 0, \"name\": \"process_name\"}, "};
    static const struct {
        bool both;
        int wrong;
        const char *events;
    } cases[] = {
        {true, 0,
         "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 5}, {\"ph\": \"X\", \"pid\": 0, "
         "\"tid\": 0, \"ts\": 2, \"dur\": 4}]}"},
        {true, 1,
         "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 5}, {\"ph\": \"X\", \"pid\": 0, "
         "\"tid\": 0, \"ts\": 2, \"dur\": 5}]}"},
        {true, 1, "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": -2}]}"},
        {true, 1, "{\"ph\": \"X\", \"pid\": 2, \"tid\": 0, \"ts\": 1, \"dur\": 2}]}"},
        {false, 1, "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 2}]}"},
        {true, 1, "{\"ph\": \"X\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 2}]"},
        {true, 0,
         "{\"ph\": \"X\", \"name\": \"agree\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 2}, {\"ph\": "
         "\"X\", \"name\": "
         "\"agree\", \"pid\": 1, \"tid\": 0, \"ts\": 3, \"dur\": 2}]}"},
        {true, 1,
         "{\"ph\": \"X\", \"name\": \"agree\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 2}, {\"ph\": "
         "\"X\", \"name\": "
         "\"agree\", \"pid\": 1, \"tid\": 0, \"ts\": 9, \"dur\": 2}]}"},
        {true, 1, "{\"ph\": \"X\", \"name\": \"agree\", \"pid\": 0, \"tid\": 0, \"ts\": 1, \"dur\": 2}]}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s%s", heads[0], cases[i].both ? heads[1] : "", cases[i].events);
        look_at_text(&seen, text, strlen(text), "sort");
        CHECK((seen.wrong > 0) == (cases[i].wrong > 0), "case %zu: %d wrong, %s", i, seen.wrong, seen.what);
    }
}

/* ---- what is traced ------------------------------------------------------------------------------------ */

static hsort_context *open_context(hsort_exchange exchange, hsort_transport transport, size_t limit,
                                   int64_t spans)
{
    hsort_options options;
    hsort_context *ctx = NULL;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.threads = 2;
    options.exchange = exchange;
    options.transport = transport;
    options.device_memory_limit = limit;
    options.trace_spans = spans;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    return ctx;
}

static int64_t moved_bytes(const hsort_context *ctx)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "no statistics");
    return stats.moved_bytes;
}

/* Write the trace, and look at it: it has `moved` bytes, and a span `call` on each rank, unless that is NULL. */
static void write_and_look(hsort_context *ctx, const char *what, const char *call, int64_t moved)
{
    static struct seen seen;
    int64_t spans = -1, lost = -1;
    CHECK(hsort_write_trace(ctx, rank == 0 ? path : NULL, &spans, &lost) == HSORT_OK, "%s: %s", what,
          hsort_last_error(ctx));
    if (rank == 0) {
        look_at_file(&seen, call ? call : "");
        CHECK(seen.wrong == 0, "%s: %d wrong, such as: %s", what, seen.wrong, seen.what);
        CHECK(seen.ranks == size, "%s: %d ranks", what, seen.ranks);
        CHECK(seen.spans == spans && seen.lost == lost && spans > 0,
              "%s: %lld spans, %lld lost; told were %lld and %lld", what, (long long)seen.spans,
              (long long)seen.lost, (long long)spans, (long long)lost);
        CHECK(moved < 0 || seen.sent == moved, "%s: %lld bytes sent, by the statistics %lld", what,
              (long long)seen.sent, (long long)moved);
        CHECK(!call || seen.calls >= size, "%s: %lld spans '%s'", what, (long long)seen.calls, call);
        CHECK((seen.on_streams >= 2 * size) == (engine == HSORT_ENGINE_CUDA), "%s: %lld spans of streams",
              what, (long long)seen.on_streams);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void draw(uint64_t seed)
{
    uint64_t state = seed + 1000 * (uint64_t)rank;
    for (int i = 0; i < MOST; i++)
        keys[0][i] = check_random(&state);
    for (int i = 0; i < MOST * RECORD_BYTES; i++)
        records[0][i] = (unsigned char)check_random(&state);
}

/* Can messages lie in the engine's memory? Not every MPI takes memory of GPUs. */
static bool has_mpi_transport(void)
{
    hsort_context *ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, 0, 0);
    const bool has = engine == HSORT_ENGINE_HOST || hsort_mpi_takes_device_pointers(ctx) == 1;
    hsort_destroy(&ctx);
    if (!has && rank == 0)
        printf("this MPI takes no device pointers: transport mpi is not tried\n");
    return has;
}

static void test_exchanges(int64_t count)
{
    static const hsort_transport transports[] = {HSORT_TRANSPORT_STAGED, HSORT_TRANSPORT_MPI,
                                                 HSORT_TRANSPORT_AUTO};
    static const hsort_exchange exchanges[] = {HSORT_EXCHANGE_BITONIC, HSORT_EXCHANGE_DIRECT,
                                               HSORT_EXCHANGE_PARTITION};
    const bool has_mpi = has_mpi_transport();
    for (int e = 0; e < 3; e++)
        for (int t = 0; t < 3; t++) {
            char what[80];
            if (transports[t] == HSORT_TRANSPORT_MPI && !has_mpi)
                continue;
            hsort_context *ctx = open_context(exchanges[e], transports[t], 0, 20000);
            snprintf(what, sizeof what, "%s by %s", hsort_exchange_name(exchanges[e]),
                     hsort_transport_name(transports[t]));
            CHECK(hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, keys[0], count, keys[1], count, NULL) ==
                      HSORT_OK,
                  "%s", hsort_last_error(ctx));
            write_and_look(ctx, what, "sort keys", moved_bytes(ctx));
            hsort_destroy(&ctx);
        }
}

/* Trace calls on elements, keys that are counted, two passes; each file has what came after the file before. */
static void test_calls(int64_t count)
{
    const hsort_field field = {.type = HSORT_U32, .offset = 5};
    int64_t index[MOST];
    hsort_context *ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, 0, 20000);
    CHECK(hsort_sort_records_to(ctx, records[0], RECORD_BYTES, &field, 1, count, records[1], count, NULL) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    write_and_look(ctx, "records", "sort elements", moved_bytes(ctx));
    CHECK(hsort_argsort(ctx, HSORT_U64, HSORT_ASCENDING, keys[0], count, index, NULL, count, NULL) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    write_and_look(ctx, "argsort", "argsort", moved_bytes(ctx));
    CHECK(hsort_sort_to(ctx, HSORT_U16, HSORT_ASCENDING, keys[0], count, keys[1], count, NULL) == HSORT_OK,
          "%s", hsort_last_error(ctx));
    write_and_look(ctx, "u16", "sort keys", 0);
    hsort_destroy(&ctx);
}

static void test_two_passes(uint64_t seed)
{
    static uint64_t many[2][PASSES_KEYS];
    uint64_t state = seed + (uint64_t)rank;
    for (int i = 0; i < PASSES_KEYS; i++)
        many[0][i] = check_random(&state);
    hsort_context *ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, 13 << 17, 20000);
    CHECK(hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, many[0], PASSES_KEYS, many[1], PASSES_KEYS, NULL) ==
              HSORT_OK,
          "%s", hsort_last_error(ctx));
    write_and_look(ctx, "two passes", "pass 2: segments", moved_bytes(ctx));
    hsort_destroy(&ctx);
}

/* A link stays a link: what it leads to is written. */
static void write_by_link(hsort_context *ctx)
{
    char link[sizeof path + 8];
    struct stat is;
    snprintf(link, sizeof link, "%s.link", path);
    if (rank == 0)
        CHECK(truncate(path, 0) == 0 && symlink(path, link) == 0, "cannot link %s", link);
    CHECK(hsort_write_trace(ctx, link, NULL, NULL) == HSORT_OK, "%s", hsort_last_error(ctx));
    if (rank == 0) {
        CHECK(lstat(link, &is) == 0 && S_ISLNK(is.st_mode), "%s is no link any more", link);
        CHECK(lstat(path, &is) == 0 && is.st_size > 0, "%s is empty", path);
        unlink(link);
    }
}

/* A buffer of a few spans keeps the first ones, of which the others are parts. */
static void test_overflow(int64_t count)
{
    int64_t spans, lost;
    static struct seen seen;
    hsort_context *ctx = open_context(HSORT_EXCHANGE_DIRECT, HSORT_TRANSPORT_STAGED, 0, 16);
    CHECK(hsort_write_trace(ctx, path, NULL, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx)); // the trace of hsort_create()
    CHECK(hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, keys[0], count, keys[1], count, NULL) == HSORT_OK,
          "%s", hsort_last_error(ctx));
    CHECK(hsort_write_trace(ctx, path, &spans, &lost) == HSORT_OK, "%s", hsort_last_error(ctx));
    CHECK(spans == 16 * size && lost > 0, "%lld spans, %lld lost", (long long)spans, (long long)lost);
    if (rank == 0) {
        look_at_file(&seen, "sort keys");
        CHECK(seen.wrong == 0 && seen.lost == lost && seen.calls == size, "%s, %lld lost, %lld calls",
              seen.what, (long long)seen.lost, (long long)seen.calls);
    }
    write_by_link(ctx);
    hsort_destroy(&ctx);
}

/* ---- what fails ---------------------------------------------------------------------------------------- */

static bool is_there(const char *name)
{
    struct stat there;
    return stat(name, &there) == 0;
}

/* Write a trace, which must fail alike everywhere, with a line that has `word`; what was there stays, and nothing is left beside it. */
static void expect_failure(hsort_context *ctx, const char *to, hsort_status status, const char *word)
{
    char temporary[400], mine[512], first[512];
    const hsort_status got = hsort_write_trace(ctx, to, NULL, NULL);
    CHECK(got == status && strstr(hsort_last_error(ctx), word), "status %d: %s", (int)got,
          hsort_last_error(ctx));
    snprintf(mine, sizeof mine, "%s", hsort_last_error(ctx));
    memcpy(first, mine, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(strcmp(first, mine) == 0, "lines differ: %s", mine);
    snprintf(temporary, sizeof temporary, "%s.hypersort-%ld.part", path, (long)getpid());
    CHECK(!is_there(temporary), "%s was left", temporary);
    CHECK(rank != 0 || is_there(path), "the file that was there is gone");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void test_refusals(int64_t count)
{
    char elsewhere[300];
    snprintf(elsewhere, sizeof elsewhere, "%s/none/trace.json", path);
    hsort_context *ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, 0, 0);
    expect_failure(ctx, path, HSORT_ARGUMENT, "trace_spans");
    hsort_destroy(&ctx);
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.trace_spans = -1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_ARGUMENT, "-1 spans");
    options.trace_spans = 100 + (rank == size - 1);
    CHECK(size == 1 || hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_ARGUMENT,
          "other spans on a rank");

    ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, 0, 5000);
    expect_failure(ctx, NULL, HSORT_ARGUMENT, "path is NULL");
    expect_failure(ctx, elsewhere, HSORT_IO, "none/trace.json");
    expect_failure(ctx, "/", HSORT_IO, "regular file");
#ifdef HSORT_FAULTS
    if (rank == 0)
        fault_set(FAULT_WRITE, 1);
    expect_failure(ctx, path, HSORT_IO, "No space left");
    if (rank == size - 1)
        fault_set(FAULT_ALLOC, 1);
    expect_failure(ctx, path, HSORT_HOST_MEMORY, "no memory to write a trace");
    fault_set(FAULT_ALLOC, 0);
    fault_set(FAULT_KERNEL, rank == size - 1);
    const hsort_status status =
        hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, keys[0], count, keys[1], count, NULL);
    CHECK(status != HSORT_OK, "a sort with a failed kernel");
    fault_set(FAULT_KERNEL, 0);
#endif
    CHECK(hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, keys[0], count, keys[1], count, NULL) == HSORT_OK,
          "%s", hsort_last_error(ctx));
    write_and_look(ctx, "after failures", "sort keys", -1);
    hsort_destroy(&ctx);
#ifdef HSORT_FAULTS
    if (size > 1) { // a rank whose text does not come
        ctx = open_context(HSORT_EXCHANGE_AUTO, HSORT_TRANSPORT_AUTO, 0, 5000);
        if (rank == size - 1)
            fault_set(FAULT_MPI, 12); // behind those of clocks
        expect_failure(ctx, path, HSORT_MPI, "MPI_Send");
        fault_set(FAULT_MPI, 0);
        hsort_destroy(&ctx);
    }
#endif
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    uint64_t state = ranks_seed();
    const int64_t count = 1000 + (int64_t)(check_random(&state) % (MOST - 999));
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test_trace.%ld.json", folder ? folder : "/tmp", (long)getpid());
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    draw(state);
    test_look();
    test_exchanges(count);
    test_calls(count);
    if (!cuda) // a GPU has not so little memory
        test_two_passes(state);
    test_overflow(count);
    test_refusals(count);
    if (rank == 0)
        unlink(path);
    return ranks_finish();
}
