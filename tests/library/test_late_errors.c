/* An engine may report a failure in an asynchronous call later, once, when it is asked whether an event has come (engine.h). Whichever
 * question that is, on whichever rank, the sort ends with an error, the same on every rank, and the next one sorts:
 *
 *     test_late_errors     the host engine, late (late_engine.h), as if some ranks were on other nodes; its nth event_done() fails, for
 *                          drawn n up to one that is never reached; then its nth work, and the nth that packs */
#include "kernels/engine.h"
#include "hypersort.h"
#include "tests/support/late_engine.h"
#include "tests/support/ranks.h"

enum { COUNT = 1 << 15, CHUNK_BYTES = 1 << 12, CASES = 16 };

/* ---- sorts ------------------------------------------------------------------------------------------------------ */

static int rank, size;
static uint64_t in[COUNT], out[COUNT], values[COUNT], values_out[COUNT];

static hsort_context *open_context(hsort_exchange exchange, hsort_transport transport)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = HSORT_ENGINE_HOST;
    options.exchange = exchange;
    options.transport = transport;
    options.chunk_bytes = CHUNK_BYTES;
    options.threads = 1;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    return ctx;
}

static hsort_status sort(hsort_context *ctx, bool pairs)
{
    if (pairs)
        return hsort_sort_pairs_to(ctx, HSORT_U64, HSORT_ASCENDING, in, values, 8, COUNT, out, values_out,
                                   COUNT, NULL);
    return hsort_sort_to(ctx, HSORT_U64, HSORT_ASCENDING, in, COUNT, out, COUNT, NULL);
}

/* Are the keys in order, and are they those that went in? */
static bool is_sorted(hsort_context *ctx)
{
    hsort_check_result is = {.struct_size = sizeof is}, was = {.struct_size = sizeof was};
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, out, COUNT, NULL, &is) == HSORT_OK &&
              hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, in, COUNT, NULL, &was) == HSORT_OK,
          "%s", hsort_last_error(ctx));
    return is.first_disorder < 0 && is.fingerprint[0] == was.fingerprint[0] &&
           is.fingerprint[1] == was.fingerprint[1];
}

/* Do all ranks say the same? */
static bool is_agreed(int status)
{
    int least, most;
    MPI_Allreduce(&status, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&status, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return least == most;
}

/* What fails; there are few packs. */
static const struct failing {
    int *nth;
    const char *name;
    int farther; /* than the one before, as far as the number of cases at most; 0: no farther than the next */
} kinds[] = {
    {&late_question_fails, "question", 1}, {&late_work_fails, "work", 1}, {&late_pack_fails, "pack", 0}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Let the nth of a kind fail on one rank, for drawn n. */
static void walk(hsort_exchange exchange, hsort_transport transport, bool pairs, const struct failing *kind,
                 uint64_t *random)
{
    hsort_context *ctx = open_context(exchange, transport);
    int reached = 1, nth = 0, failed = 0;
    for (int i = 0; i < CASES && reached; i++) {
        const int failing = (int)(check_random(random) % (uint64_t)size);
        nth += 1 + (int)(check_random(random) % (uint64_t)(1 + i * kind->farther));
        memset(out, 0xa5, sizeof out);
        *kind->nth = rank == failing ? nth : 0;
        const hsort_status status = sort(ctx, pairs);
        reached = rank == failing && *kind->nth == 0;
        *kind->nth = 0;
        MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
        failed += reached;
        CHECK(late_engine_faults(status != HSORT_OK) == 0, "exchange %d, transport %d: %s %d of rank %d",
              exchange, transport, kind->name, nth, failing);
        CHECK(is_agreed(status) && (status != HSORT_OK) == (reached != 0),
              "exchange %d, transport %d, %s: %s %d of rank %d %s, status %s", exchange, transport,
              pairs ? "pairs" : "keys", kind->name, nth, failing, reached ? "fails" : "is not there",
              hsort_strerror(status));
    }
    CHECK(sort(ctx, pairs) == HSORT_OK && is_sorted(ctx),
          "exchange %d, transport %d: a sort after failures: %s", exchange, transport, hsort_last_error(ctx));
    if (rank == 0)
        printf("exchange %d, transport %d, %s: %d failures of a %s\n", exchange, transport,
               pairs ? "pairs" : "keys", failed, kind->name);
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    static const hsort_exchange exchanges[] = {HSORT_EXCHANGE_PARTITION, HSORT_EXCHANGE_DIRECT,
                                               HSORT_EXCHANGE_BITONIC};
    static const hsort_transport transports[] = {HSORT_TRANSPORT_MPI, HSORT_TRANSPORT_STAGED};
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed(), own = random + (uint64_t)rank;
    late_engine_seed(own);
    for (int i = 0; i < COUNT; i++) {
        in[i] = check_random(&own);
        values[i] = in[i];
    }
    for (size_t e = 0; e < sizeof exchanges / sizeof *exchanges; e++)
        for (size_t t = 0; t < sizeof transports / sizeof *transports; t++)
            for (int pairs = 0; pairs < 2; pairs++)
                for (int kind = 0; kind < KINDS; kind++)
                    walk(exchanges[e], transports[t], pairs, &kinds[kind], &random);
    return ranks_finish();
}
