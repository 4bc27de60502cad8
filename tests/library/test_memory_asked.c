/* Memory that a call must have comes before memory that an exchange likes to have, and the ranks of a node are asked together before
 * any of them takes host memory:
 *
 *     limits       records and pairs of the host engine, with limits from where two passes begin to where there is room for all: each
 *                  call goes well, twice in one context, whatever the exchange
 *     messages     of two passes are no longer than was asked for, and few wait for their receiver
 *     questions    what node_memory_check() is asked, and what follows if it says no; its answers are made up by the linker (--wrap) */
#include <string.h>
#include "hypersort.h"
#include "mpi/comm/node_memory.h"
#include "mpi/exchange/piece_messages.h"
#include "tests/support/ranks.h"

enum { COUNT = 70000, LIMITS = 24, TURNS = 2 };

struct record {
    uint64_t key, place;
};

#define UNTOUCHED UINT64_MAX /* no place */

static int rank, size;
static struct record in[COUNT], out[COUNT];
static uint64_t keys[COUNT], places[COUNT], keys_out[COUNT], places_out[COUNT];

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

static int questions, refused; /* since the count began; the number of the one that is refused, or 0 */
static uint64_t asked[4];      /* of the first ones, in bytes */

hsort_status __wrap_node_memory_check(const struct comm *comm, uint64_t bytes);

hsort_status __wrap_node_memory_check(const struct comm *comm, uint64_t bytes)
{
    (void)comm;
    if (questions < 4)
        asked[questions] = bytes;
    return ++questions == refused ? status_fail(HSORT_HOST_MEMORY, "refused by the test") : HSORT_OK;
}

static void begin_questions(int refuse)
{
    questions = 0;
    refused = refuse;
}

/* ---- sorts ------------------------------------------------------------------------------------------------------- */

static hsort_context *open_context(hsort_exchange exchange, size_t limit)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = HSORT_ENGINE_HOST;
    options.exchange = exchange;
    options.device_memory_limit = limit;
    options.threads = 1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    return ctx;
}

static void draw_input(uint64_t *random)
{
    for (int i = 0; i < COUNT; i++) {
        in[i] = (struct record){check_random(random) % 50000, (uint64_t)rank * COUNT + (uint64_t)i};
        keys[i] = in[i].key;
        places[i] = in[i].place;
    }
}

static hsort_status sort(hsort_context *ctx, bool pairs)
{
    static const hsort_field field = {.offset = 0, .type = HSORT_U64};
    if (pairs)
        return hsort_sort_pairs_to(ctx, HSORT_U64, HSORT_ASCENDING, keys, places, 8, COUNT, keys_out,
                                   places_out, COUNT, NULL);
    return hsort_sort_records_to(ctx, in, sizeof *in, &field, 1, COUNT, out, COUNT, NULL);
}

/* Is this rank's result in order by key, then place? And do all ranks together have each place once? Sums make that nearly certain. */
static void check_result(bool pairs, const char *what)
{
    uint64_t sums[2] = {0}, all[2];
    for (int i = 0; i < COUNT; i++) {
        const struct record *r = &out[i];
        if (pairs)
            out[i] = (struct record){keys_out[i], places_out[i]};
        CHECK(i == 0 || r[-1].key < r->key || (r[-1].key == r->key && r[-1].place < r->place),
              "%s: rank %d: %d is not in order", what, rank, i);
        sums[0] += r->place + 1;
        sums[1] += (r->place + 1) * (r->place + 1);
    }
    MPI_Allreduce(sums, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    const uint64_t n = (uint64_t)size * COUNT;
    CHECK(all[0] == n * (n + 1) / 2 && all[1] == n * (n + 1) * (2 * n + 1) / 6, "%s: elements are lost",
          what);
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void check_limits(bool pairs, hsort_exchange exchange, uint64_t *random)
{
    static const size_t least = 8 << 20, most = 24 << 20; // two passes, all there is
    int passes[3] = {0};
    for (int i = 0; i < LIMITS; i++) {
        const size_t limit = least + (most - least) / LIMITS * (size_t)i + check_random(random) % 1000;
        hsort_stats stats = {.struct_size = sizeof stats};
        char what[100];
        snprintf(what, sizeof what, "%s, exchange %d, limit %zu", pairs ? "pairs" : "records", (int)exchange,
                 limit);
        hsort_context *ctx = open_context(exchange, limit);
        for (int turn = 0; turn < TURNS; turn++) {
            const hsort_status status = sort(ctx, pairs);
            CHECK(status == HSORT_OK, "%s: turn %d: %s", what, turn, hsort_last_error(ctx));
            CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK, "stats");
            if (status == HSORT_OK)
                check_result(pairs, what);
        }
        passes[stats.passes]++;
        hsort_destroy(&ctx);
    }
    CHECK(passes[1] > 0 && (passes[2] > 0 || size == 1), "%d limits for one pass, %d for two", passes[1],
          passes[2]);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static int largest;               /* bytes of a message */
static int ahead[64], most_ahead; /* messages to each rank that it need not have begun to receive */
static int waited;                /* messages that do not end before */

static void note_message(int count, MPI_Datatype type)
{
    int bytes;
    PMPI_Type_size(type, &bytes);
    bytes *= count;
    if (bytes > largest)
        largest = bytes;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    note_message(count, type);
    if (++ahead[to] > most_ahead)
        most_ahead = ahead[to];
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    note_message(count, type);
    ahead[to] = 0;
    waited++;
    return PMPI_Issend(buffer, count, type, to, tag, comm, request);
}

/* No message of two passes is longer than options.chunk_bytes, unless too many of them would wait for their receiver. */
static void check_chunks(size_t chunk)
{
    hsort_options options;
    hsort_stats stats = {.struct_size = sizeof stats};
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = HSORT_ENGINE_HOST;
    options.shared_memory = HSORT_CHOICE_OFF;
    options.chunk_bytes = chunk;
    options.device_memory_limit = 2 << 20;
    options.threads = 1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    largest = most_ahead = waited = 0;
    memset(ahead, 0, sizeof ahead);
    CHECK(sort(ctx, true) == HSORT_OK, "%s", hsort_last_error(ctx));
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == 2, "%d passes", (int)stats.passes);
    const size_t longest =
        piece_chunk_bytes(options.device_memory_limit, chunk); // a slot is shorter than that
    CHECK(largest > 0 && (size_t)largest <= longest, "a message of %d bytes", largest);
    CHECK(waited > 0 && most_ahead > 0 && most_ahead < 2 * PIECE_MESSAGES_MOST,
          "%d messages may wait for their receiver; it is waited for %d times", most_ahead, waited);
    check_result(true, "chunks");
    hsort_destroy(&ctx);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* Without a limit, records first ask for all memory that they take; if that is refused, nothing has changed. */
static void check_elements_ask(bool pairs)
{
    hsort_context *ctx = open_context(HSORT_EXCHANGE_AUTO, 0);
    begin_questions(0);
    CHECK(sort(ctx, pairs) == HSORT_OK, "%s", hsort_last_error(ctx));
    check_result(pairs, "not refused");
    CHECK(questions > 0 && asked[0] >= COUNT * sizeof *in / 2, "%d questions, the first one for %llu bytes",
          questions, (unsigned long long)asked[0]);
    begin_questions(0);
    CHECK(sort(ctx, pairs) == HSORT_OK, "%s", hsort_last_error(ctx));
    CHECK(questions > 0 && asked[0] == 0, "an equal call asks for %llu bytes more",
          (unsigned long long)asked[0]);
    begin_questions(rank == size - 1);
    memset(out, 0xff, sizeof out);
    memset(places_out, 0xff, sizeof places_out);
    const hsort_status status = sort(ctx, pairs);
    CHECK(status == HSORT_HOST_MEMORY && strstr(hsort_last_error(ctx), "refused by the test"), "refused: %s",
          hsort_last_error(ctx));
    for (int i = 0; i < COUNT; i++) {
        const uint64_t place = (uint64_t)rank * COUNT + (uint64_t)i;
        CHECK(in[i].place == place && places[i] == place && keys[i] == in[i].key,
              "refused, but input %d is another one", i);
        CHECK(pairs ? places_out[i] == UNTOUCHED : out[i].place == UNTOUCHED,
              "refused, but output %d is written", i);
    }
    begin_questions(0);
    CHECK(sort(ctx, pairs) == HSORT_OK, "%s", hsort_last_error(ctx));
    check_result(pairs, "once more");
    hsort_destroy(&ctx);
}

/* A sort of keys asks once more, with what the exchange likes to have; if that is refused, another exchange runs. */
static void check_exchange_asks(void)
{
    hsort_context *ctx = open_context(HSORT_EXCHANGE_PARTITION, 0);
    static uint64_t many[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++)
        many[i] = keys[i % COUNT];
    begin_questions(rank == 0 ? 2 : 0);
    CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, many, 2 * COUNT, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(questions == 2 && asked[1] > asked[0], "%d questions, for %llu and %llu bytes", questions,
          (unsigned long long)asked[0], (unsigned long long)asked[1]);
    CHECK(hsort_exchange_in_use(ctx) != HSORT_EXCHANGE_PARTITION, "partition runs without its memory");
    for (int i = 1; i < 2 * COUNT; i++)
        CHECK(many[i - 1] <= many[i], "%d is not in order", i);
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed(), own = random + (uint64_t)rank;
    draw_input(&own);
    for (int pairs = 0; pairs < 2; pairs++) {
        check_limits(pairs, HSORT_EXCHANGE_AUTO, &random);
        check_limits(pairs, HSORT_EXCHANGE_PARTITION, &random);
        check_elements_ask(pairs);
    }
    if (size > 1) {
        check_chunks(4096);
        check_chunks(8);
        check_exchange_asks();
    }
    return ranks_finish();
}
