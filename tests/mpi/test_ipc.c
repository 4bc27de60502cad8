/* What only the transport ipc has, without a GPU (shared_engine.h): peers read exposed memory; mappings are made once, also over
 * several calls on elements, and are gone before memory is; ranks take turns at each other's memory; both sides of a pair take the
 * same way, whatever one of them cannot do; with a fault at every step nobody hangs; and a program that asks for ipc gets it, or
 * hears why not. */
#include "mpi/comm/comm.h"
#include "hypersort.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/shared_engine.h"
#include "mpi/transport/transport.h"

enum { KEYS = 1000, CHUNK = 64 };

static struct comm comm;
static struct engine *engine;
static struct transport *transport;
static uint64_t *memory; /* [KEYS], exposed */

static void ok(hsort_status status, const char *what)
{
    CHECK(status == HSORT_OK, "rank %d: %s: %s", comm.rank, what, status_text());
}

static uint64_t key_on(int rank, int number, int i)
{
    return (uint64_t)rank << 40 | (uint64_t)number << 20 | (uint64_t)i;
}

static void fill_memory(int number)
{
    for (int i = 0; i < KEYS; i++)
        memory[i] = key_on(comm.rank, number, i);
}

static void close_ipc(void)
{
    if (!transport)
        return;
    transport->ops->forget(transport, FORGET_ALL);
    MPI_Barrier(MPI_COMM_WORLD);
    transport->ops->close(transport);
    transport = NULL;
}

static bool open_ipc_with(hsort_choice shared_memory)
{
    const struct transport_options wanted = {
        .transport = HSORT_TRANSPORT_IPC, .chunk_bytes = CHUNK, .shared_memory = shared_memory};
    int takes;
    status_clear();
    const hsort_status status = transport_choose(&comm, engine, &wanted, &transport, &takes);
    CHECK(status == HSORT_OK, "open: %s", comm.error);
    return status == HSORT_OK;
}

static bool open_ipc(void)
{
    return open_ipc_with(HSORT_CHOICE_AUTO);
}

/* ---- turns --------------------------------------------------------------------------------------------- */

/* While one rank has the turn at the memory of another, a third rank does not get this turn, but gets the turn at the first rank's
 * memory. When the first rank has given its turn back, the third gets it. shared: ranks share memory; otherwise all may read at any
 * time. */
static void check_turns(bool shared)
{
    const struct transport_ops *ops = transport->ops;
    CHECK(ops->has_turns(transport) == shared, "rank %d has turns: %d", comm.rank, !shared);
    for (int owner = 0; owner < comm.size; owner++) {
        const int first = (owner + 1) % comm.size, second = (owner + 2) % comm.size;
        const bool is_first = comm.rank == first, is_second = comm.rank == second && second != owner;
        CHECK(!is_first || ops->take_turn(transport, owner), "rank %d gets no turn at %d", first, owner);
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_second) {
            CHECK(ops->take_turn(transport, owner) == !shared, "ranks %d and %d have a turn at %d", first,
                  second, owner);
            CHECK(ops->take_turn(transport, first), "rank %d gets no turn at %d", second, first);
            ops->give_turn(transport, first);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (is_first)
            ops->give_turn(transport, owner);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(!is_second || ops->take_turn(transport, owner), "rank %d gets no turn at %d then", second,
              owner);
        if (is_second)
            ops->give_turn(transport, owner);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* ---- expose and conceal -------------------------------------------------------------------------------- */

/* Expose `own` keys from position `at` to the peer and read the `other` it exposes. Returns whether there was
 * a pointer. */
static bool read_peer(int peer, int at, int own, int other, int number, hsort_status *status)
{
    const void *theirs = NULL;
    status_clear();
    *status = transport->ops->expose(transport, peer, memory + at, (size_t)own * sizeof *memory, &theirs);
    if (!theirs)
        return false;
    const uint64_t *keys = theirs;
    int right = 0;
    while (right < other && keys[right] == key_on(peer, number, at + right))
        right++;
    CHECK(right == other, "rank %d reads key %d of rank %d wrong", comm.rank, right, peer);
    const hsort_status concealed = transport->ops->conceal(transport, peer);
    if (*status == HSORT_OK)
        *status = concealed;
    return true;
}

/* Let every pair expose memory, in rounds in which each rank has one partner at most; `maps` says which pairs get a pointer. */
static void check_exposures(bool (*maps)(int, int))
{
    static const int counts[4] = {0, 1, 7, KEYS - 3};
    hsort_status status;
    for (int number = 0; number < 4; number++) {
        fill_memory(number);
        for (int sum = 0; sum < comm.size; sum++) {
            const int peer = (sum - comm.rank + comm.size) % comm.size;
            if (peer == comm.rank)
                continue;
            const bool low = comm.rank < peer;
            const int first = counts[number], second = counts[(number + sum) % 4];
            const bool got = read_peer(peer, 3, low ? first : second, low ? second : first, number, &status);
            ok(status, "expose");
            CHECK(got == (!maps || maps(comm.rank, peer)), "rank %d, peer %d: %d", comm.rank, peer, got);
            CHECK((transport->ops->path(transport, peer) == HSORT_TRANSPORT_IPC) == got, "path to %d", peer);
        }
        MPI_Barrier(MPI_COMM_WORLD); // before fill_memory() writes what others have read
    }
}

/* Expose the memory to one peer after the other, and only then conceal it from all of them. */
static void check_all_at_once(void)
{
    const void *theirs[64] = {NULL};
    fill_memory(9);
    for (int sum = 0; sum < comm.size; sum++) {
        const int peer = (sum - comm.rank + comm.size) % comm.size;
        if (peer != comm.rank)
            ok(transport->ops->expose(transport, peer, memory, KEYS * sizeof *memory, &theirs[peer]),
               "expose");
    }
    for (int peer = 0; peer < comm.size; peer++)
        CHECK(peer == comm.rank || (theirs[peer] && *(const uint64_t *)theirs[peer] == key_on(peer, 9, 0)),
              "peer %d is not there", peer);
    for (int sum = 0; sum < comm.size; sum++) {
        const int peer = (sum - comm.rank + comm.size) % comm.size;
        if (peer != comm.rank)
            ok(transport->ops->conceal(transport, peer), "conceal");
    }
}

/* ---- mappings ------------------------------------------------------------------------------------------ */

/* Memory is mapped once, however often it is used; the caller's memory is unmapped at the end of a call, the rest
 * when asked. */
static void check_mappings(void)
{
    const int peer = comm.rank ^ 1;
    hsort_status status;
    int64_t moved = 0;
    if (peer < comm.size) {
        uint64_t *callers = shared_alloc(KEYS * sizeof *callers), *into = malloc(KEYS * sizeof *into);
        CHECK(callers && into, "no memory");
        fill_memory(0);
        for (int i = 0; i < KEYS; i++)
            callers[i] = key_on(comm.rank, 5, i);
        const int before = shared_opened;
        for (int turn = 0; turn < 3; turn++) {
            CHECK(read_peer(peer, turn, 5, 5, 0, &status) && status == HSORT_OK, "turn %d", turn);
            ok(transport->ops->sendrecv(transport, peer, callers, KEYS * sizeof *into, peer, into,
                                        KEYS * sizeof *into, &moved),
               "sendrecv");
            CHECK(into[KEYS - 1] == key_on(peer, 5, KEYS - 1), "a transfer of the caller's memory");
        }
        CHECK(shared_opened == before + 2 && shared_mapped == 2, "%d opened, %d mapped",
              shared_opened - before, shared_mapped);
        transport->ops->forget(transport, FORGET_CALLERS);
        CHECK(shared_mapped == 1, "%d mapped after the call", shared_mapped);
        ok(comm_check(MPI_Sendrecv(&before, 0, MPI_INT, peer, 1, into, 0, MPI_INT, peer, 1, MPI_COMM_WORLD,
                                   MPI_STATUS_IGNORE),
                      "MPI_Sendrecv", false),
           "agree");
        shared_free(callers); // fails if the peer still maps it
        transport->ops->forget(transport, FORGET_ALL);
        CHECK(shared_mapped == 0, "%d mapped after all", shared_mapped);
        free(into);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* If rank 0 cannot open what it could open at first, both sides take the other transport, and the call succeeds. In
 * place they take it without opening anything. */
static void check_open_fails(void)
{
    const int peer = 1 - comm.rank;
    hsort_status status;
    uint64_t into[KEYS], sent[KEYS];
    int64_t moved = 0;
    if (comm.rank > 1)
        return;
    for (int in_place = 0; in_place < 2; in_place++) {
        fill_memory(in_place);
        for (int i = 0; i < KEYS; i++)
            sent[i] = key_on(peer, in_place, i);
        shared_open_fails = comm.rank == 0;
        ok(transport->ops->sendrecv(transport, peer, memory, sizeof into, peer, in_place ? memory : into,
                                    sizeof into, &moved),
           "sendrecv");
        CHECK(memcmp(in_place ? memory : into, sent, sizeof sent) == 0, "what arrived, in place %d",
              in_place);
        CHECK(shared_open_fails == (in_place && comm.rank == 0) && status_text()[0] == '\0', "%d left, '%s'",
              shared_open_fails, status_text());
        CHECK(!in_place || shared_mapped == 0, "%d mapped for a transfer in place", shared_mapped);
        transport->ops->forget(transport, FORGET_ALL);
    }
    fill_memory(0);
    shared_open_fails = comm.rank == 0;
    CHECK(!read_peer(peer, 0, 4, 4, 0, &status) && status == HSORT_OK, "a pointer in spite of it");
    CHECK(read_peer(peer, 0, 4, 4, 0, &status) && status == HSORT_OK, "no pointer afterwards");
    CHECK(moved == 2 * (int64_t)sizeof into, "%lld bytes counted", (long long)moved);
}

enum { SORT_KEYS = ENGINE_PEER_BYTES / 4, OPENS = 4 };

/* Sort this rank's keys over all ranks, and see that they are in order and as many as before. */
static void sort_and_check(hsort_context *ctx, uint64_t *keys, uint64_t seed, hsort_stats *stats)
{
    hsort_check_result before = {.struct_size = sizeof before}, after = before;
    for (int i = 0; i < SORT_KEYS; i++)
        keys[i] = check_random(&seed);
    const hsort_type type = HSORT_U64;
    CHECK(hsort_check(ctx, type, HSORT_ASCENDING, keys, SORT_KEYS, NULL, &before) == HSORT_OK, "check");
    CHECK(hsort_sort(ctx, type, HSORT_ASCENDING, keys, SORT_KEYS, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(hsort_check(ctx, type, HSORT_ASCENDING, keys, SORT_KEYS, NULL, &after) == HSORT_OK, "check");
    CHECK(after.first_disorder < 0 &&
              memcmp(before.fingerprint, after.fingerprint, sizeof before.fingerprint) == 0,
          "not sorted");
    CHECK(hsort_get_stats(ctx, stats) == HSORT_OK, "no statistics");
}

/* The exchange `bitonic`, when a rank cannot open what a partner exposes: the two send their keys in place
 * instead. */
static void check_bitonic(uint64_t seed)
{
    hsort_options options;
    hsort_context *ctx;
    hsort_stats stats = {.struct_size = sizeof stats};
    uint64_t *keys = shared_alloc(SORT_KEYS * sizeof *keys);
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    options.exchange = HSORT_EXCHANGE_BITONIC;
    options.transport = HSORT_TRANSPORT_IPC;
    for (int nth = 0; keys && nth <= OPENS; nth++) {
        CHECK(hsort_create(comm.world, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
        if (!ctx)
            break;
        shared_open_fails = comm.rank == nth % comm.size ? nth : 0;
        sort_and_check(ctx, keys, seed + (uint64_t)comm.rank, &stats);
        int failed = comm.rank == nth % comm.size && nth > 0 && shared_open_fails == 0;
        shared_open_fails = 0;
        MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, comm.world);
        CHECK(nth != 1 || failed, "nothing was opened");
        const hsort_path_stats *ipc = &stats.paths[HSORT_TRANSPORT_IPC],
                               *other = &stats.paths[HSORT_TRANSPORT_MPI];
        CHECK((other->moved_bytes > 0) == failed &&
                  ipc->moved_bytes + other->moved_bytes == stats.moved_bytes,
              "open %d: %lld bytes by ipc, %lld by mpi, %lld in all", nth, (long long)ipc->moved_bytes,
              (long long)other->moved_bytes, (long long)stats.moved_bytes);
        hsort_destroy(&ctx);
    }
    shared_free(keys);
}

enum { ELEMENTS = 3000, ELEMENT_BYTES = 40, TURNS = 3 };

/* Make each call that carries elements, on the same elements in each turn. */
static void carry_elements(hsort_context *ctx, uint64_t seed)
{
    static unsigned char elements[ELEMENTS * ELEMENT_BYTES], carried[ELEMENTS * ELEMENT_BYTES];
    static uint128 keys[ELEMENTS];
    static int64_t index[ELEMENTS];
    const hsort_field fields[] = {{.type = HSORT_I32, .offset = 4}, {.type = HSORT_F64, .offset = 24}};
    hsort_status status[5];
    for (size_t i = 0; i < sizeof elements; i++)
        elements[i] = (unsigned char)check_random(&seed);
    for (int i = 0; i < ELEMENTS; i++)
        keys[i] = (uint128)check_random(&seed) << 64 | check_random(&seed);
    status[0] = hsort_argsort(ctx, HSORT_U64, HSORT_ASCENDING, keys, ELEMENTS, index, NULL, ELEMENTS, NULL);
    status[1] = hsort_gather(ctx, elements, ELEMENTS, ELEMENT_BYTES, index, carried, ELEMENTS, NULL);
    status[2] = hsort_sort_records(ctx, elements, ELEMENT_BYTES, fields, 2, ELEMENTS, NULL);
    status[3] = hsort_sort_pairs(ctx, HSORT_U128, HSORT_ASCENDING, keys, index, 8, ELEMENTS, NULL);
    status[4] = hsort_sort_pairs(ctx, HSORT_U32, HSORT_DESCENDING, keys, carried, 3, ELEMENTS, NULL);
    for (int call = 0; call < 5; call++)
        CHECK(status[call] == HSORT_OK, "call %d: %s", call, hsort_last_error(ctx));
}

/* What a turn has mapped serves the next turn. Memory grows in the first turn, so some of it is mapped only in the second. */
static void check_calls_on_elements(uint64_t seed)
{
    const hsort_exchange exchanges[] = {HSORT_EXCHANGE_BITONIC, HSORT_EXCHANGE_DIRECT,
                                        HSORT_EXCHANGE_PARTITION};
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.threads = 1;
    options.transport = HSORT_TRANSPORT_IPC;
    for (int i = 0; i < 3; i++) {
        options.exchange = exchanges[i];
        CHECK(hsort_create(comm.world, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
        for (int turn = 0; ctx && turn < TURNS; turn++) {
            const int before = shared_opened;
            carry_elements(ctx, seed);
            CHECK(turn == 1 || (shared_opened > before) == (turn == 0),
                  "exchange %s, turn %d: %d mappings opened", hsort_exchange_name(exchanges[i]), turn,
                  shared_opened - before);
        }
        hsort_destroy(&ctx);
    }
}

#ifdef HSORT_FAULTS
/* Return, on ranks 0 and 1, what rank `teller` of these two says. */
static bool from_rank(int teller, bool said)
{
    if (comm.rank == teller)
        MPI_Send(&said, 1, MPI_C_BOOL, 1 - teller, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(&said, 1, MPI_C_BOOL, teller, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return said;
}

/* Each message of expose() and conceal() fails in turn, on one side: this side says so, the peer does not, and both
 * go on. */
static void check_expose_faults(void)
{
    const int peer = 1 - comm.rank;
    if (comm.rank > 1)
        return;
    fill_memory(0);
    for (int failing = 0; failing < 2; failing++) {
        bool untouched = false;
        for (int nth = 1; !untouched && nth < 100; nth++) {
            bool reached = false;
            hsort_status status;
            snprintf(faults_case, sizeof faults_case, "expose, rank %d fails at message %d", failing, nth);
            faults_watch(60);
            fault_set(FAULT_MPI, comm.rank == failing ? nth : 0);
            CHECK(read_peer(peer, 0, KEYS, KEYS, 0, &status), "%s: no pointer", faults_case);
            if (comm.rank == failing)
                reached = !fault_untouched(FAULT_MPI, nth);
            CHECK((status != HSORT_OK) == reached, "%s: status %d", faults_case, status);
            untouched = !from_rank(failing, reached);
        }
        CHECK(untouched, "%s: still reached", faults_case);
    }
}
#endif

/* ---- who maps whom ------------------------------------------------------------------------------------- */

static bool none_may(int owner, int reader)
{
    (void)owner, (void)reader;
    return false;
}

static bool upwards(int owner, int reader)
{
    return reader > owner;
}

static bool downwards(int owner, int reader)
{
    return reader < owner;
}

/* ---- on top of two transports -------------------------------------------------------------------------- */

/* A transport that serves some pairs, and leaves the others to the one underneath. */
static bool serves(int a, int b)
{
    return (a + b) % 2 == 0;
}

static hsort_transport middle_path(const struct transport *middle, int peer)
{
    return serves(comm.rank, peer) ? middle->ops->kind : transport_path(middle->other, peer);
}

static hsort_status middle_sendrecv(struct transport *middle, int to, const void *send, size_t send_bytes,
                                    int from, void *receive, size_t receive_bytes, int64_t *moved_bytes)
{
    struct transport *other = middle->other;
    int64_t counted = 0;
    const struct traffic before = other->traffic;
    const hsort_status status =
        other->ops->sendrecv(other, to, send, send_bytes, from, receive, receive_bytes, &counted);
    if (serves(comm.rank, to)) {
        middle->traffic.bytes += (int64_t)send_bytes;
        other->traffic = before;
    }
    *moved_bytes += (int64_t)send_bytes;
    return status;
}

static void middle_close(struct transport *middle)
{
    middle->other->ops->close(middle->other);
}

/* Check which transport a pair uses and what each transport has carried, if ipc lies on two others. */
static void check_two_underneath(void)
{
    static const struct transport_ops middle_ops = {.kind = HSORT_TRANSPORT_STAGED,
                                                    .sendrecv = middle_sendrecv,
                                                    .path = middle_path,
                                                    .close = middle_close};
    struct transport middle = {.ops = &middle_ops}, *ipc = NULL;
    struct traffic traffic[HSORT_TRANSPORTS];
    int64_t expected[HSORT_TRANSPORTS] = {0}, moved = 0;
    uint64_t into[KEYS];
    char why[256];
    ok(transport_open_mpi(&comm, engine, 0, &middle.other), "open mpi");
    shared_may_map = shared_some_may;
    ok(transport_open_ipc(&comm, engine, &middle, true, &ipc, why, sizeof why), "open ipc");
    for (int sum = 0; ipc && sum < comm.size; sum++) {
        const int peer = (sum - comm.rank + comm.size) % comm.size;
        if (peer == comm.rank)
            continue;
        const hsort_transport kind = shared_some_may(comm.rank, peer) ? HSORT_TRANSPORT_IPC
                                     : serves(comm.rank, peer)        ? HSORT_TRANSPORT_STAGED
                                                                      : HSORT_TRANSPORT_MPI;
        CHECK(transport_path(ipc, peer) == kind, "rank %d, peer %d: path %d", comm.rank, peer,
              transport_path(ipc, peer));
        ok(ipc->ops->sendrecv(ipc, peer, memory, sizeof into, peer, into, sizeof into, &moved), "sendrecv");
        expected[kind] += (int64_t)sizeof into;
    }
    if (ipc) {
        transport_traffic(ipc, traffic);
        for (int kind = 0; kind < HSORT_TRANSPORTS; kind++)
            CHECK(traffic[kind].bytes == expected[kind], "transport %d: %lld bytes, not %lld", kind,
                  (long long)traffic[kind].bytes, (long long)expected[kind]);
        ipc->ops->forget(ipc, FORGET_ALL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    shared_may_map = NULL;
    if (ipc)
        ipc->ops->close(ipc);
    else
        middle_close(&middle);
}

/* ---- what is chosen ------------------------------------------------------------------------------------ */

static hsort_choice peer_memory;

/* Check what `wanted` gives if `rule` says who maps whom; `why`: a part of the error, or NULL. */
static void check_choice(hsort_transport wanted, bool (*rule)(int, int), hsort_transport kind,
                         const char *why)
{
    const struct transport_options options = {.transport = wanted, .peer_memory = peer_memory};
    int takes;
    status_clear();
    comm.error[0] = '\0';
    shared_may_map = rule;
    const hsort_status status = transport_choose(&comm, engine, &options, &transport, &takes);
    shared_may_map = NULL;
    CHECK((status != HSORT_OK) == (why != NULL) && (transport == NULL) == (why != NULL),
          "wanted %d: status %d", wanted, status);
    CHECK(!why || (strstr(comm.error, "transport ipc: no two ranks map") && strstr(comm.error, why)), "'%s'",
          comm.error);
    CHECK(!transport || transport->ops->kind == kind, "wanted %d gave %d", wanted, transport->ops->kind);
    if (transport)
        transport->ops->close(transport);
    transport = NULL;
    CHECK(shared_mapped == 0, "%d mapped by the probe", shared_mapped);
}

static const struct engine_ops *true_ops;
static const void *own_pattern;
static enum { MISLED_COPIES, MISLED_KERNELS, MISLED_BOTH, MISLED } misled; /* both: they read what this rank has written */

static hsort_status copy_another(struct engine *e, enum engine_stream stream, void *to, const void *from,
                                 size_t bytes)
{
    const bool reads = stream == STREAM_IN;
    own_pattern = reads ? own_pattern : to;
    TRY(true_ops->copy(e, stream, to, reads && misled == MISLED_BOTH ? own_pattern : from, bytes));
    ((char *)to)[bytes - 1] ^= reads && misled == MISLED_COPIES;
    return HSORT_OK;
}

static hsort_status gather_another(struct engine *e, int key_bytes, const void *keys,
                                   const int64_t *positions, int count, key_code *codes)
{
    TRY(true_ops->gather(e, key_bytes, misled == MISLED_BOTH ? own_pattern : keys, positions, count, codes));
    codes[count - 1] ^= misled == MISLED_KERNELS;
    return HSORT_OK;
}

/* Check what is chosen if mapped memory is not what the peer has. */
static void check_misled(void)
{
    struct engine_ops ops = *engine->ops;
    true_ops = engine->ops;
    ops.copy = copy_another;
    ops.gather = gather_another;
    engine->ops = &ops;
    for (misled = 0; misled < MISLED; misled++) {
        check_choice(HSORT_TRANSPORT_AUTO, NULL, HSORT_TRANSPORT_MPI, NULL);
        check_choice(HSORT_TRANSPORT_IPC, NULL, HSORT_TRANSPORT_IPC, "does not read as it was written");
    }
    engine->ops = true_ops;
}

static void check_choices(void)
{
    check_choice(HSORT_TRANSPORT_AUTO, NULL, HSORT_TRANSPORT_IPC, NULL);
    check_choice(HSORT_TRANSPORT_IPC, NULL, HSORT_TRANSPORT_IPC, NULL);
    check_choice(HSORT_TRANSPORT_STAGED, NULL, HSORT_TRANSPORT_STAGED, NULL);
    check_choice(HSORT_TRANSPORT_MPI, NULL, HSORT_TRANSPORT_MPI, NULL);
    check_choice(HSORT_TRANSPORT_AUTO, none_may, HSORT_TRANSPORT_MPI, NULL);
    check_choice(HSORT_TRANSPORT_IPC, none_may, HSORT_TRANSPORT_IPC, "may not be mapped");
    check_choice(HSORT_TRANSPORT_AUTO, upwards, HSORT_TRANSPORT_MPI, NULL);
    check_choice(HSORT_TRANSPORT_IPC, upwards, HSORT_TRANSPORT_IPC, "may not be mapped");
    check_choice(HSORT_TRANSPORT_IPC, downwards, HSORT_TRANSPORT_IPC, "another rank cannot read");
    peer_memory = HSORT_CHOICE_OFF;
    check_choice(HSORT_TRANSPORT_AUTO, NULL, HSORT_TRANSPORT_MPI, NULL);
    check_choice(HSORT_TRANSPORT_IPC, NULL, HSORT_TRANSPORT_IPC, "peer_memory is off");
    peer_memory = HSORT_CHOICE_ON;
    check_choice(HSORT_TRANSPORT_AUTO, NULL, HSORT_TRANSPORT_IPC, NULL);
    peer_memory = HSORT_CHOICE_AUTO;
    const struct engine_ops *ops = engine->ops;
    struct engine_ops plain = *ops;
    plain.peer = NULL;
    engine->ops = &plain;
    check_choice(HSORT_TRANSPORT_AUTO, NULL, HSORT_TRANSPORT_MPI, NULL);
    check_choice(HSORT_TRANSPORT_IPC, NULL, HSORT_TRANSPORT_IPC, "the engine host has no memory");
    engine->ops = ops;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    if (status == HSORT_OK)
        status = shared_engine_open(&engine);
    if (status == HSORT_OK)
        status = engine->ops->alloc(engine, KEYS * sizeof *memory, (void **)&memory);
    ok(status, "set up");
    if (comm_agree(&comm, status) != HSORT_OK)
        return ranks_finish();
    snprintf(faults_case, sizeof faults_case, "test_ipc");
    faults_watch(120); // if the two sides disagree, they wait for each other
    check_choices();
    check_misled();
    if (open_ipc()) {
        check_exposures(NULL);
        check_all_at_once();
        check_turns(true);
        close_ipc();
    }
    if (open_ipc_with(HSORT_CHOICE_OFF))
        check_turns(false);
    close_ipc();
    if (open_ipc()) {
        check_mappings();
        check_open_fails();
#ifdef HSORT_FAULTS
        check_expose_faults();
#endif
        close_ipc();
    }
    check_bitonic(seed);
    check_calls_on_elements(seed + (uint64_t)comm.rank);
    check_two_underneath();
    shared_may_map = shared_some_may;
    if (open_ipc())
        check_exposures(shared_some_may);
    close_ipc();
    CHECK(shared_mapped == 0, "%d mapped at the end", shared_mapped);
    engine->ops->free(engine, memory);
    engine->ops->close(engine);
    comm_close(&comm);
    return ranks_finish();
}
