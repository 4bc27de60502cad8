/* How fast paths are said to be: who is paired with whom, what is made of transfers whose time is known, that
 * each transport counts the bytes it was given, and that a rank that fails keeps nobody waiting. Time is made
 * up: MPI_Wtime() is a counter here. */
#include "mpi/comm/comm.h"
#include "hypersort.h"
#include "tests/support/faults.h"
#include "mpi/transport/path_table.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_engine.h"
#include "mpi/transport/transport.h"

enum { SIZES = 80, ALL = 16, MOST_RANKS = 16 };

static struct comm comm;
static struct engine *engine;

/* ---- time ---------------------------------------------------------------------------------------------- */

static double now, tick; /* seconds; `tick` passes with every look at the clock */

double __wrap_MPI_Wtime(void);

double __wrap_MPI_Wtime(void)
{
    return now += tick;
}

/* ---- who is paired with whom: pure --------------------------------------------------------------------- */

static int ring_distance(int a, int b, int size)
{
    const int there = (b - a + size) % size;
    return there < size - there ? there : size - there;
}

/* Is a pair of `size` ranks measured? Up to ALL ranks every pair, else neighbours in the ring and ranks half
 * of all apart. */
static bool is_measured(int a, int b, int size)
{
    const int half = size / 2;
    return size <= ALL || ring_distance(a, b, size) == 1 || (a < half && b == a + half) ||
           (b < half && a == b + half);
}

static void test_pairing(void)
{
    for (int size = 1; size <= SIZES; size++) {
        int paired[SIZES][SIZES] = {{0}};
        const int rounds = path_table_rounds(size);
        CHECK(rounds <= ALL, "%d ranks: %d rounds", size, rounds);
        for (int round = 0; round < rounds; round++)
            for (int rank = 0; rank < size; rank++) {
                const int partner = path_table_partner(rank, size, round);
                CHECK(partner >= -1 && partner < size && partner != rank, "%d ranks, round %d: %d with %d",
                      size, round, rank, partner);
                if (partner < 0)
                    continue;
                CHECK(path_table_partner(partner, size, round) == rank, "%d ranks, round %d: %d with %d",
                      size, round, rank, partner);
                paired[rank][partner]++;
            }
        for (int a = 0; a < size; a++)
            for (int b = 0; b < size; b++)
                CHECK(paired[a][b] == (a != b && is_measured(a, b, size)),
                      "%d ranks: %d and %d are paired %d times", size, a, b, paired[a][b]);
    }
}

/* ---- transfers of a known time ------------------------------------------------------------------------- */

enum { FIRST = 64 << 10, LAST = 32 << 20, KINDS = 4 };
static const double START_UP = 20e-6, LIMIT = 5e-3 / 8; /* after a size that takes longer there is no larger one */

/* Seconds per byte as rank `a` sees them: from a fast link to one too slow for a second size. The two sides
 * differ. */
static double slowness(int a, int b)
{
    static const double kinds[KINDS] = {10e-9, 1e-9, 0.1e-9, 0.003e-9};
    return kinds[(a + b) % KINDS] * (a < b ? 1 : 1.5);
}

static double seconds_of(size_t bytes, int a, int b)
{
    const double here = START_UP + (double)bytes * slowness(a, b),
                 there = START_UP + (double)bytes * slowness(b, a);
    return here > there ? here : there;
}

/* The size at which a pair stops. */
static size_t last_size(int a, int b)
{
    size_t bytes = FIRST;
    while (bytes < LAST && seconds_of(bytes, a, b) <= LIMIT)
        bytes *= 8;
    return bytes;
}

static size_t largest[MOST_RANKS];
static int transfers[MOST_RANKS]; /* with each rank */

static hsort_status timed_sendrecv(struct transport *transport, int to, const void *send, size_t send_bytes,
                                   int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    (void)transport, (void)send, (void)receive;
    CHECK(to == from && send_bytes == receive_bytes, "not a transfer with one partner");
    largest[to] = send_bytes > largest[to] ? send_bytes : largest[to];
    *moved_bytes += (int64_t)send_bytes;
    // The first transfer with each rank takes long, and so does one of the three transfers of each size.
    now += START_UP + (double)send_bytes * slowness(comm.rank, to) +
           (transfers[to] % 3 == 2 || transfers[to] == 0);
    transfers[to]++;
    return HSORT_OK;
}

/* Both sides of a pair must have the same speeds. */
static void check_mirrored(const hsort_path_speed *speeds)
{
    hsort_path_speed all[MOST_RANKS][MOST_RANKS];
    const int bytes = comm.size * (int)sizeof *speeds;
    hsort_path_speed rows[MOST_RANKS * MOST_RANKS];
    MPI_Allgather(speeds, bytes, MPI_BYTE, rows, bytes, MPI_BYTE, comm.world);
    for (int rank = 0; rank < comm.size; rank++)
        memcpy(all[rank], rows + rank * comm.size, (size_t)bytes);
    for (int peer = 0; peer < comm.size; peer++)
        CHECK(memcmp(&all[comm.rank][peer], &all[peer][comm.rank], sizeof *speeds) == 0,
              "ranks %d and %d do not say the same", comm.rank, peer);
}

static bool is_about(double found, double expected)
{
    return found > expected * (1 - 1e-6) && found < expected * (1 + 1e-6);
}

static void test_speeds(void)
{
    const struct transport_ops ops = {.kind = HSORT_TRANSPORT_STAGED, .sendrecv = timed_sendrecv};
    struct transport timed = {.ops = &ops};
    hsort_path_speed speeds[MOST_RANKS];
    now = tick = 0;
    CHECK(path_table_measure(&comm, engine, &timed, speeds) == HSORT_OK, "%s", comm.error);
    for (int peer = 0; peer < comm.size; peer++) {
        const hsort_path_speed *speed = &speeds[peer];
        const size_t bytes = last_size(comm.rank, peer);
        if (peer == comm.rank)
            CHECK(speed->bytes_per_second == 0 && speed->latency == 0, "something to itself");
        else
            CHECK(is_about(speed->latency, seconds_of(64, comm.rank, peer)) && largest[peer] == bytes &&
                      is_about(speed->bytes_per_second, (double)bytes / seconds_of(bytes, comm.rank, peer)),
                  "rank %d: %g B/s and %g s to %d, at %zu bytes instead of %zu", comm.rank,
                  speed->bytes_per_second, speed->latency, peer, largest[peer], bytes);
    }
    check_mirrored(speeds);
}

/* ---- through the library ------------------------------------------------------------------------------- */

/* How long a look at the clock takes: QUICK lets a pair go on to the largest size, SLOW stops it at the first. Only
 * a single pair goes to the largest size, because that takes its time. */
static const double QUICK = 1e-6, SLOW = 1e-3;

static void test_library(void)
{
    hsort_options options;
    hsort_context *ctx;
    hsort_path_speed speeds[MOST_RANKS];
    tick = comm.size == 2 ? QUICK : SLOW;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    for (hsort_transport kind = HSORT_TRANSPORT_STAGED; kind < HSORT_TRANSPORTS; kind++) {
        options.transport = kind;
        if (kind == HSORT_TRANSPORT_IPC && comm.size == 1)
            continue;
        hsort_status status = hsort_create(comm.world, &options, &ctx);
        CHECK(status == HSORT_OK, "%s", hsort_last_error(NULL));
        if (status != HSORT_OK)
            continue;
        CHECK(hsort_measure_paths(ctx, comm.rank == 0 ? NULL : speeds, sizeof *speeds) == HSORT_ARGUMENT,
              "nowhere to write");
        status = hsort_measure_paths(ctx, speeds, sizeof *speeds);
        CHECK(status == HSORT_OK, "%s", hsort_last_error(ctx));
        for (int peer = 0; peer < comm.size; peer++)
            CHECK(peer == comm.rank || (speeds[peer].bytes_per_second > 0 && speeds[peer].latency >= tick),
                  "path to %d: %g B/s, %g s", peer, speeds[peer].bytes_per_second, speeds[peer].latency);
        check_mirrored(speeds);
        hsort_destroy(&ctx);
        CHECK(shared_mapped == 0, "%d mapped", shared_mapped);
    }
    CHECK(hsort_measure_paths(NULL, speeds, sizeof *speeds) == HSORT_ARGUMENT, "no context");
}

#ifdef HSORT_FAULTS
/* One rank fails, at the first message, copy or allocation, or at one far into the call: all ranks say so, and the
 * context goes on. */
static void check_failed_measuring(hsort_context *ctx, enum fault_site site, int failing, int nth,
                                   bool *reached)
{
    hsort_path_speed speeds[MOST_RANKS];
    char line[256], first[256];
    int own = 0;
    snprintf(faults_case, sizeof faults_case, "site %d, rank %d, passage %d", site, failing, nth);
    faults_watch(60);
    fault_set(site, comm.rank == failing ? nth : 0);
    const hsort_status status = hsort_measure_paths(ctx, speeds, sizeof *speeds);
    if (comm.rank == failing)
        own = !fault_untouched(site, nth);
    MPI_Bcast(&own, 1, MPI_INT, failing, comm.world);
    *reached = own != 0;
    CHECK((status != HSORT_OK) == *reached, "%s: status %d", faults_case, status);
    snprintf(line, sizeof line, "%s", hsort_last_error(ctx));
    memcpy(first, line, sizeof line);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, comm.world);
    CHECK(strcmp(line, first) == 0, "%s: '%s' here, '%s' on rank 0", faults_case, line, first);
    CHECK((line[0] != '\0') == *reached, "%s: '%s'", faults_case, line);
    if (nth == 1)
        CHECK(hsort_measure_paths(ctx, speeds, sizeof *speeds) == HSORT_OK, "%s: again: %s", faults_case,
              hsort_last_error(ctx));
}

static void test_measuring_faults(void)
{
    tick = SLOW;
    static const enum fault_site sites[] = {FAULT_ALLOC, FAULT_MPI, FAULT_COPY};
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    options.transport = HSORT_TRANSPORT_IPC;
    CHECK(hsort_create(comm.world, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    int reached_at_all = 0;
    for (int site = 0; ctx && site < 3; site++) {
        bool reached = true;
        // All passages would take minutes.
        for (int nth = 1; reached && nth < 100; nth += nth) {
            check_failed_measuring(ctx, sites[site], nth % comm.size, nth, &reached);
            reached_at_all += reached;
        }
    }
    CHECK(reached_at_all >= 6, "only %d faults were reached", reached_at_all);
    faults_watch(120);
    hsort_destroy(&ctx);
}
#endif

/* ---- traffic ------------------------------------------------------------------------------------------- */

enum { ROOM = 5000 };

/* Return the bytes that one rank of a pair sends to the other in a turn, the same number on both sides. */
static size_t bytes_of(uint64_t seed, int from, int to, int turn)
{
    uint64_t state = seed + (uint64_t)((from * 64 + to) * 64 + turn);
    return check_random(&state) % 4 == 0 ? 0 : 8 * (size_t)(check_random(&state) % (ROOM / 8));
}

/* Each pair transfers in place, then from one region into another, then exposes memory. Then all ranks transfer in a
 * ring, with two peers at a time. `expected` counts bytes by who maps whom; in place nobody uses ipc. */
static void test_traffic(uint64_t seed)
{
    struct traffic traffic[HSORT_TRANSPORTS];
    int64_t expected[HSORT_TRANSPORTS] = {0}, moved = 0, sent = 0;
    struct transport *transport = NULL;
    char *memory[2];
    const struct transport_options wanted = {.transport = HSORT_TRANSPORT_IPC, .chunk_bytes = 64};
    int takes;
    shared_may_map = shared_some_may;
    if (engine->ops->alloc(engine, ROOM, (void **)&memory[0]) != HSORT_OK ||
        engine->ops->alloc(engine, ROOM, (void **)&memory[1]) != HSORT_OK ||
        transport_choose(&comm, engine, &wanted, &transport, &takes) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    transport_clear(transport);
    for (int round = 0; round < comm.size; round++) {
        const int peer = (round - comm.rank + comm.size) % comm.size;
        if (peer == comm.rank)
            continue;
        const hsort_transport kind =
            shared_some_may(comm.rank, peer) ? HSORT_TRANSPORT_IPC : HSORT_TRANSPORT_MPI;
        for (int turn = 0; turn < 3; turn++) {
            const size_t out = bytes_of(seed, comm.rank, peer, turn),
                         in = bytes_of(seed, peer, comm.rank, turn);
            const void *theirs = NULL;
            hsort_status status = HSORT_OK;
            if (turn < 2)
                status =
                    transport->ops->sendrecv(transport, peer, memory[0], out, peer, memory[turn], in, &moved);
            else if (transport->ops->expose(transport, peer, memory[0], out, &theirs) == HSORT_OK && theirs)
                status = transport->ops->conceal(transport, peer);
            CHECK(status == HSORT_OK, "turn %d with %d: %s", turn, peer, status_text());
            expected[turn == 0 ? HSORT_TRANSPORT_MPI : kind] += turn < 2 || theirs ? (int64_t)out : 0;
            sent += turn < 2 ? (int64_t)out : 0;
            CHECK(turn < 2 || (theirs != NULL) == (kind == HSORT_TRANSPORT_IPC), "exposed to %d", peer);
        }
    }
    const int next = (comm.rank + 1) % comm.size, before = (comm.rank - 1 + comm.size) % comm.size;
    const size_t out = bytes_of(seed, comm.rank, next, 9), in = bytes_of(seed, before, comm.rank, 9);
    CHECK(transport->ops->sendrecv(transport, next, memory[0], out, before, memory[1], in, &moved) ==
              HSORT_OK,
          "ring: %s", status_text());
    expected[shared_some_may(comm.rank, next) ? HSORT_TRANSPORT_IPC : HSORT_TRANSPORT_MPI] += (int64_t)out;
    CHECK(moved == sent + (int64_t)out, "%lld bytes moved, not %lld", (long long)moved, (long long)sent);
    transport_traffic(transport, traffic);
    for (int kind = 0; kind < HSORT_TRANSPORTS; kind++) {
        CHECK(traffic[kind].bytes == expected[kind], "transport %d: %lld bytes, not %lld", kind,
              (long long)traffic[kind].bytes, (long long)expected[kind]);
        CHECK(traffic[kind].seconds >= 0 && (traffic[kind].seconds > 0 || expected[kind] == 0),
              "transport %d: %g s", kind, traffic[kind].seconds);
    }
    transport_clear(transport);
    transport_traffic(transport, traffic);
    for (int kind = 0; kind < HSORT_TRANSPORTS; kind++)
        CHECK(traffic[kind].bytes == 0 && traffic[kind].seconds == 0, "transport %d was not cleared", kind);
    transport->ops->forget(transport, FORGET_ALL);
    MPI_Barrier(MPI_COMM_WORLD);
    transport->ops->close(transport);
    for (int i = 0; i < 2; i++)
        engine->ops->free(engine, memory[i]);
    shared_may_map = NULL;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    if (comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK || shared_engine_open(&engine) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    snprintf(faults_case, sizeof faults_case, "test_paths");
    faults_watch(120);
    if (comm.rank == 0)
        test_pairing();
    test_speeds();
    test_library();
    if (comm.size > 1) {
        test_traffic(seed);
#ifdef HSORT_FAULTS
        test_measuring_faults();
#endif
    }
    engine->ops->close(engine);
    comm_close(&comm);
    return ranks_finish();
}
