/* All transports move exactly the bytes they are told to, byte for byte, between every pair of sizes around
 * the borders of chunks: in place or not, with unequal sides, round a ring of ranks. Poison around every
 * buffer stays unchanged. With faults, the rank that fails says so, its peer is not left waiting, and no message is
 * left over for the next transfer. Messages end as they should (watched_messages.h).
 *
 *     test_transport          the host engine, then one whose memory other processes map (shared_engine.h)
 *     test_transport cuda     the cuda engine; rank r of a node takes device r modulo the devices there */
#include "tests/support/faults.h"
#include "tests/support/shared_engine.h"
#include "mpi/transport/transport.h"
#include "tests/mpi/rank_engine.h"
#include "tests/mpi/watched_messages.h"

enum { GUARD = 64, POISON = 0xa5, SIZES = 9, CAPACITY = 16 << 20 };

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **opened); /* shared_engine.c wraps it */

/* A buffer in engine or host memory, with room for poison on both sides, and the bytes that it must hold. */
struct guarded_buffer {
    void *memory;
    bool on_host;
    unsigned char *expected, *found;
};

/* What this rank does in one transfer, and which of its messages it is (the peers' contents depend on it). */
struct transfer_plan {
    int to, from;
    size_t send_bytes, receive_bytes;
    bool in_place;
    size_t shift; /* of the buffers from the alignment that they came with: 0, 4 or 8 */
    int number;
};

static struct guarded_buffer send_buffer, receive_buffer;

static bool buffer_make(struct guarded_buffer *buffer, bool on_host)
{
    buffer->on_host = on_host;
    buffer->expected = malloc(CAPACITY);
    buffer->found = malloc(CAPACITY);
    buffer->memory = on_host ? malloc(CAPACITY) : NULL;
    if (!on_host && engine->ops->alloc(engine, CAPACITY, &buffer->memory) != HSORT_OK)
        return false;
    return buffer->memory && buffer->expected && buffer->found;
}

static void buffer_drop(struct guarded_buffer *buffer)
{
    if (buffer->on_host)
        free(buffer->memory);
    else
        engine->ops->free(engine, buffer->memory);
    free(buffer->expected);
    free(buffer->found);
}

/* The bytes of message `number` of `rank`. */
static void fill_message(unsigned char *bytes, size_t count, int rank, int number)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 31 + (i >> 8) * 7 + (size_t)rank * 101 + (size_t)number * 13);
}

/* Poison everything that this plan could touch, and put message `number` of `rank`, of `bytes`, in the middle of it. */
static void buffer_fill(struct guarded_buffer *buffer, const struct transfer_plan *plan, int rank,
                        size_t bytes, size_t room)
{
    memset(buffer->expected, POISON, room + 2 * GUARD);
    fill_message(buffer->expected + GUARD + plan->shift, bytes, rank, plan->number);
    copy_and_wait(buffer->memory, buffer->expected, room + 2 * GUARD);
}

static void buffer_compare(struct guarded_buffer *buffer, const struct transfer_plan *plan, const char *which,
                           size_t room)
{
    memset(buffer->found, 0, room + 2 * GUARD);
    copy_and_wait(buffer->found, buffer->memory, room + 2 * GUARD);
    size_t wrong = 0;
    while (wrong < room + 2 * GUARD && buffer->found[wrong] == buffer->expected[wrong])
        wrong++;
    CHECK(wrong == room + 2 * GUARD,
          "rank %d sends %zu bytes to %d, receives %zu from %d%s: byte %lld of the %s buffer", comm.rank,
          plan->send_bytes, plan->to, plan->receive_bytes, plan->from, plan->in_place ? " in place" : "",
          (long long)wrong - GUARD - (long long)plan->shift, which);
}

static size_t room_of(const struct transfer_plan *plan)
{
    return plan->send_bytes > plan->receive_bytes ? plan->send_bytes : plan->receive_bytes;
}

static void fill_buffers(const struct transfer_plan *plan)
{
    buffer_fill(&send_buffer, plan, comm.rank, plan->send_bytes, room_of(plan));
    if (!plan->in_place)
        buffer_fill(&receive_buffer, plan, comm.rank, 0, room_of(plan));
}

static hsort_status transfer(struct transport *transport, const struct transfer_plan *plan)
{
    const size_t at = GUARD + plan->shift;
    char *send = (char *)send_buffer.memory + at;
    char *receive = plan->in_place ? send : (char *)receive_buffer.memory + at;
    int64_t moved = 1000;
    status_clear();
    const hsort_status status = transport->ops->sendrecv(transport, plan->to, send, plan->send_bytes,
                                                         plan->from, receive, plan->receive_bytes, &moved);
    CHECK(watched_left() == 0, "a message has begun and not ended");
    CHECK(moved == 1000 + (int64_t)plan->send_bytes, "%lld bytes counted, %zu sent", (long long)moved - 1000,
          plan->send_bytes);
    return status;
}

/* Carry out a plan and compare both buffers, poison included. */
static void check_transfer(struct transport *transport, const struct transfer_plan *plan)
{
    fill_buffers(plan);
    const hsort_status status = transfer(transport, plan);
    CHECK(status == HSORT_OK, "rank %d: %s", comm.rank, status_text());
    struct guarded_buffer *arrived = plan->in_place ? &send_buffer : &receive_buffer;
    fill_message(arrived->expected + GUARD + plan->shift, plan->receive_bytes, plan->from, plan->number);
    buffer_compare(&send_buffer, plan, plan->in_place ? "shared" : "send", room_of(plan));
    if (!plan->in_place)
        buffer_compare(&receive_buffer, plan, "receive", room_of(plan));
}

/* Swap `low_bytes` of the lower rank of each pair for `high_bytes` of the other. `mirrored` pairs first with
 * last. */
static void check_pair_sizes(struct transport *transport, size_t low_bytes, size_t high_bytes, bool mirrored,
                             int number)
{
    const int partner = mirrored ? comm.size - 1 - comm.rank : comm.rank ^ 1;
    if (partner == comm.rank || partner >= comm.size)
        return;
    const bool low = comm.rank < partner;
    struct transfer_plan plan = {.to = partner,
                                 .from = partner,
                                 .send_bytes = low ? low_bytes : high_bytes,
                                 .receive_bytes = low ? high_bytes : low_bytes,
                                 .shift = (size_t)(number + comm.rank) % 3 * 4,
                                 .number = number};
    check_transfer(transport, &plan);
    plan.in_place = true;
    plan.number++;
    check_transfer(transport, &plan);
}

/* Every rank sends to the next and receives from the one before; the sizes differ from rank to rank. */
static void check_ring(struct transport *transport, const size_t *sizes, int count, int number)
{
    const int before = (comm.rank + comm.size - 1) % comm.size;
    const struct transfer_plan plan = {.to = (comm.rank + 1) % comm.size,
                                       .from = before,
                                       .send_bytes = sizes[(comm.rank + number) % count],
                                       .receive_bytes = sizes[(before + number) % count],
                                       .shift = (size_t)number % 3 * 4,
                                       .number = number};
    check_transfer(transport, &plan);
}

static void check_sizes(struct transport *transport, size_t chunk)
{
    const size_t sizes[SIZES] = {0, 4, 8, chunk - 8, chunk - 4, chunk, chunk + 8, 3 * chunk + 16, 20 * chunk};
    for (int i = 0; i < SIZES; i++)
        for (int j = 0; j < SIZES; j++)
            check_pair_sizes(transport, sizes[i], sizes[j], (i + j) % 2, i * SIZES + j);
    for (int number = 0; number < SIZES; number++)
        check_ring(transport, sizes, SIZES, number);
}

/* The sizes that keys really have: the default chunk, and messages of a few of them. */
static void check_default_chunk(struct transport *transport)
{
    const size_t sizes[3] = {8, TRANSPORT_CHUNK_DEFAULT + 8, 3 * (size_t)TRANSPORT_CHUNK_DEFAULT - 4};
    for (int i = 0; i < 3; i++)
        check_pair_sizes(transport, sizes[i], sizes[2 - i], i == 1, i);
    check_ring(transport, sizes, 3, 1);
}

/* ---- streams --------------------------------------------------------------------------------------------- */

enum { STREAM_ROUNDS = 3, STREAM_PARTS = 3 };

/* In each round this rank has up to STREAM_PARTS messages for each other rank, all of drawn lengths, of which some are 0. The
 * rank below comes first, because that rank first receives from the rank above it. Each receiver expects `most` bytes. */
struct stream_test {
    size_t most;
    int number;
    uint64_t random; /* for answers of "later", each rank its own */
    int sent, named, came;
    int64_t bytes;
};

static size_t stream_length(const struct stream_test *t, int from, int to, int message)
{
    uint64_t random = (uint64_t)t->number * 1000003 + (uint64_t)(from * 1009 + to) * 8191 + (uint64_t)message;
    const uint64_t draw = check_random(&random);
    return draw % 4 == 0 ? 0 : draw % 4 == 1 ? t->most : check_random(&random) % (t->most + 1);
}

/* Tell, of message `i` of those that this rank sends or receives, the peer, and which of the pair's messages it is. */
static bool stream_place(int i, int sign, int *peer, int *message)
{
    const int of_round = (comm.size - 1) * STREAM_PARTS, round = i / of_round, in_round = i % of_round;
    *peer = (comm.rank + sign * (in_round / STREAM_PARTS + 1) + comm.size) % comm.size;
    *message = round * STREAM_PARTS + in_round % STREAM_PARTS;
    return round < STREAM_ROUNDS;
}

static enum transport_next stream_send(void *user, struct transport_message *message)
{
    struct stream_test *t = user;
    int peer, which;
    if (!stream_place(t->sent, -1, &peer, &which))
        return NEXT_NONE;
    if (check_random(&t->random) % 3 == 0)
        return NEXT_LATER;
    *message = (struct transport_message){.peer = peer,
                                          .memory = (char *)send_buffer.memory + GUARD + (size_t)t->sent * t->most,
                                          .bytes = stream_length(t, comm.rank, peer, which)};
    t->bytes += (int64_t)message->bytes;
    t->sent++;
    return NEXT_MESSAGE;
}

static enum transport_next stream_receive(void *user, struct transport_message *message)
{
    struct stream_test *t = user;
    int which;
    if (!stream_place(t->named, 1, &message->peer, &which))
        return NEXT_NONE;
    if (check_random(&t->random) % 3 == 0)
        return NEXT_LATER;
    message->memory = (char *)receive_buffer.memory + GUARD + (size_t)t->named++ * t->most;
    message->bytes = t->most;
    return NEXT_MESSAGE;
}

static void stream_received(void *user, size_t bytes)
{
    struct stream_test *t = user;
    int peer, which;
    CHECK(stream_place(t->came, 1, &peer, &which) && t->came < t->named, "message %d came unasked", t->came);
    CHECK(bytes == stream_length(t, peer, comm.rank, which), "%zu bytes came of rank %d", bytes, peer);
    fill_message(receive_buffer.expected + GUARD + (size_t)t->came++ * t->most, bytes, peer, t->number + which);
}

/* Run one stream between all ranks. Returns this rank's status. */
static hsort_status run_stream(struct transport *on, size_t most, int number, bool *whole)
{
    struct transport *transport = transport_messenger(on);
    struct stream_test t = {.most = most, .number = number, .random = (uint64_t)(number * 100 + comm.rank + 1)};
    const int all = STREAM_ROUNDS * STREAM_PARTS * (comm.size - 1);
    const struct transfer_plan plan = {.number = number};
    const struct transport_stream stream = {stream_send, stream_receive, stream_received, &t};
    const size_t room = (size_t)all * most;
    status_clear();
    buffer_fill(&send_buffer, &plan, comm.rank, 0, room);
    buffer_fill(&receive_buffer, &plan, comm.rank, 0, room);
    for (int i = 0, peer, which; stream_place(i, -1, &peer, &which); i++)
        fill_message(send_buffer.expected + GUARD + (size_t)i * most, stream_length(&t, comm.rank, peer, which),
                     comm.rank, number + which);
    copy_and_wait(send_buffer.memory, send_buffer.expected, room + 2 * GUARD);
    MPI_Barrier(MPI_COMM_WORLD);
    fault_pause(false); // a fault is for the stream only
    const int64_t before = transport->traffic.bytes;
    if (faults_case[0] != '\0')
        faults_watch(60);
    hsort_status status = transport->ops->stream_begin(transport, &stream), now = HSORT_OK;
    for (int i = 0; i < 5; i++)
        now = transport->ops->stream_advance(transport);
    const hsort_status end = transport->ops->stream_end(transport);
    status = status != HSORT_OK ? status : end;
    faults_watch(0);
    CHECK(watched_left() == 0, "a message has begun and not ended");
    *whole = t.sent == all && t.came == all && transport->traffic.bytes - before == t.bytes;
    CHECK(now == HSORT_OK || status == now, "advance says %d, the end %d", now, status);
    return status;
}

static void check_stream(struct transport *transport, size_t most, int number)
{
    const struct transfer_plan plan = {.number = number};
    const size_t room = (size_t)(STREAM_ROUNDS * STREAM_PARTS * (comm.size - 1)) * most;
    bool whole;
    const hsort_status status = run_stream(transport, most, number, &whole);
    CHECK(status == HSORT_OK, "stream %d: %s", number, status_text());
    CHECK(whole, "stream %d: other messages or bytes than were named", number);
    buffer_compare(&send_buffer, &plan, "stream's send", room);
    buffer_compare(&receive_buffer, &plan, "stream's receive", room);
}

#ifdef HSORT_FAULTS
/* Fail each passage of `site` on rank `failing` while a stream is under way; after each, run a stream without a fault. */
static void walk_stream_faults(struct transport *transport, enum fault_site site, int failing, size_t most)
{
    int untouched = 0;
    bool whole;
    for (int nth = 1; !untouched && nth < 1000; nth++) {
        snprintf(faults_case, sizeof faults_case, "stream, site %d on rank %d, passage %d", site, failing, nth);
        fault_pause(true); // for the copies that fill the buffers
        fault_set(site, comm.rank == failing ? nth : 0);
        const hsort_status status = run_stream(transport, most, nth, &whole);
        untouched = comm.rank == failing && fault_untouched(site, nth);
        CHECK((status == HSORT_OK) == (comm.rank != failing || untouched), "%s: rank %d: status %d", faults_case,
              comm.rank, status);
        CHECK(whole, "%s: rank %d has left the schedule", faults_case, comm.rank);
        MPI_Bcast(&untouched, 1, MPI_INT, failing, MPI_COMM_WORLD);
        check_stream(transport, most, nth + 1);
    }
    CHECK(untouched, "%s: still reached", faults_case);
    faults_case[0] = '\0';
}

static void check_stream_faults(struct transport *transport, size_t most)
{
    for (int failing = 0; failing < comm.size; failing += comm.size > 2 ? comm.size / 2 : 1) {
        walk_stream_faults(transport, FAULT_MPI, failing, most);
        walk_stream_faults(transport, FAULT_COPY, failing, most);
    }
}
#else
static void check_stream_faults(struct transport *transport, size_t most)
{
    (void)transport;
    (void)most;
}
#endif

static void check_streams(struct transport *transport, size_t most)
{
    for (int number = 0; number < 4; number++)
        check_stream(transport, most, number);
    if (most == 64)
        check_stream_faults(transport, most);
}

#ifdef HSORT_FAULTS
/* Carry out `plan` with a fault at the nth passage of `site` on rank `failing`. Returns, on both ranks of the
 * pair, whether the transfer ended without reaching it. */
static bool transfer_with_fault(struct transport *transport, const struct transfer_plan *plan,
                                enum fault_site site, int failing, int nth)
{
    int untouched = 0;
    fill_buffers(plan);
    fault_set(site, comm.rank == failing ? nth : 0);
    const hsort_status status = transfer(transport, plan);
    if (comm.rank == failing) {
        untouched = fault_untouched(site, nth);
        CHECK((status == HSORT_OK) == (untouched != 0), "%s: status %d", faults_case, status);
        CHECK(status == HSORT_OK || status_text()[0] != '\0', "%s: no text", faults_case);
        MPI_Send(&untouched, 1, MPI_INT, plan->to, 0, MPI_COMM_WORLD);
    } else {
        CHECK(status == HSORT_OK, "%s: the peer got %d: %s", faults_case, status, status_text());
        MPI_Recv(&untouched, 1, MPI_INT, plan->from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return untouched != 0;
}

/* Fail every passage of `site` on rank `failing` of the pair (0, 1) in turn, until one is not reached. After
 * each, a transfer without a fault must find nothing left over. */
static void walk_faults(struct transport *transport, enum fault_site site, int failing, size_t chunk,
                        bool in_place)
{
    struct transfer_plan plan = {.to = 1 - comm.rank,
                                 .from = 1 - comm.rank,
                                 .send_bytes = (comm.rank ? 6 : 9) * chunk + 16,
                                 .receive_bytes = (comm.rank ? 9 : 6) * chunk + 16,
                                 .in_place = in_place};
    bool untouched = false;
    for (int nth = 1; !untouched && nth < 1000; nth++) {
        snprintf(faults_case, sizeof faults_case, "site %d on rank %d, passage %d%s", site, failing, nth,
                 in_place ? ", in place" : "");
        faults_watch(60);
        plan.number = nth;
        untouched = transfer_with_fault(transport, &plan, site, failing, nth);
        check_transfer(transport, &plan);
    }
    CHECK(untouched, "%s: still reached", faults_case);
    faults_watch(0);
}

static void check_transfer_faults(struct transport *transport, size_t chunk)
{
    if (comm.rank > 1)
        return;
    for (int failing = 0; failing < 2; failing++)
        for (int in_place = 0; in_place < 2; in_place++) {
            walk_faults(transport, FAULT_MPI, failing, chunk, in_place);
            walk_faults(transport, FAULT_COPY, failing, chunk, in_place);
        }
}
#else
static void check_transfer_faults(struct transport *transport, size_t chunk)
{
    (void)transport;
    (void)chunk;
}
#endif

typedef hsort_status (*open_fn)(struct comm *, struct engine *, size_t, struct transport **);

static void test_transport(open_fn open, hsort_transport kind)
{
    static const size_t chunks[4] = {64, 1000, 4096, 0};
    for (int i = 0; i < 4; i++) {
        struct transport *transport;
        status_clear();
        const hsort_status status = open(&comm, engine, chunks[i], &transport);
        CHECK(status == HSORT_OK, "open: %s", status_text());
        if (status != HSORT_OK || !transport)
            return;
        CHECK(transport->ops->kind == kind, "kind %d", transport->ops->kind);
        if (chunks[i] == 0)
            check_default_chunk(transport);
        else
            check_sizes(transport, chunks[i]);
        if (chunks[i] > 0)
            check_streams(transport, chunks[i]);
        if (chunks[i] == 64)
            check_transfer_faults(transport, 64);
        if (transport->ops->forget)
            transport->ops->forget(transport, FORGET_ALL);
        MPI_Barrier(MPI_COMM_WORLD);
        transport->ops->close(transport);
    }
}

/* Open staged: here ranks share their slots; in the next two functions some cannot, and none may. */
static hsort_status open_all_share(struct comm *ranks, struct engine *on, size_t chunk_bytes,
                                   struct transport **transport)
{
    return transport_open_staged(ranks, on, chunk_bytes, true, transport);
}

static hsort_status open_some_share(struct comm *ranks, struct engine *on, size_t chunk_bytes,
                                    struct transport **transport)
{
    has_no_shm = ranks->rank % 3 == 1;
    const hsort_status status = transport_open_staged(ranks, on, chunk_bytes, true, transport);
    has_no_shm = false;
    return status;
}

static hsort_status open_none_shares(struct comm *ranks, struct engine *on, size_t chunk_bytes,
                                     struct transport **transport)
{
    return transport_open_staged(ranks, on, chunk_bytes, false, transport);
}

/* Open ipc on top of staged. If no two ranks map each other's memory, *transport is NULL, and a line says why. */
static hsort_status open_ipc(struct comm *ranks, struct engine *on, size_t chunk_bytes,
                             struct transport **transport)
{
    struct transport *staged;
    char why[256];
    *transport = NULL;
    TRY(comm_agree(ranks, transport_open_staged(ranks, on, chunk_bytes, true, &staged)));
    const hsort_status status = transport_open_ipc(ranks, on, staged, true, transport, why, sizeof why);
    if (!*transport)
        staged->ops->close(staged);
    if (status == HSORT_OK && !*transport && ranks->rank == 0)
        printf("transport ipc is not tried: %s\n", why);
    return status;
}

/* Rank 0 can read every rank, but not every rank can read rank 0. */
static bool one_way(int owner, int reader)
{
    return reader == 0 || owner + reader > 2 || comm.size < 3;
}

/* Check what transport_choose() gives for each option. Returns whether MPI may be given this engine's memory. */
static bool test_choice(bool cuda)
{
    static const hsort_transport wanted[3] = {HSORT_TRANSPORT_STAGED, HSORT_TRANSPORT_MPI,
                                              HSORT_TRANSPORT_AUTO};
    int takes = 0;
    for (int i = 0; i < 3; i++) {
        const struct transport_options options = {.transport = wanted[i]};
        struct transport *transport = NULL;
        status_clear();
        const hsort_status status = transport_choose(&comm, engine, &options, &transport, &takes);
        if (cuda && wanted[i] == HSORT_TRANSPORT_MPI && status != HSORT_OK)
            continue;
        CHECK(status == HSORT_OK, "wanted %d: %s", wanted[i], comm.error);
        if (status != HSORT_OK)
            continue;
        const bool staged = wanted[i] == HSORT_TRANSPORT_STAGED || takes == 0;
        const bool ipc = wanted[i] == HSORT_TRANSPORT_AUTO && transport->ops->path;
        CHECK(transport->ops->kind == (ipc      ? HSORT_TRANSPORT_IPC
                                       : staged ? HSORT_TRANSPORT_STAGED
                                                : HSORT_TRANSPORT_MPI),
              "wanted %d gave %d", wanted[i], transport->ops->kind);
        const bool tried = cuda && wanted[i] != HSORT_TRANSPORT_STAGED;
        CHECK(tried ? takes == 0 || takes == 1 : takes == -1, "takes %d", takes);
        transport->ops->close(transport);
    }
    struct transport *transport = NULL;
    status_clear();
    CHECK(transport_open_staged(&comm, engine, 12, true, &transport) == HSORT_ARGUMENT,
          "a chunk of 12 bytes");
    return takes != 0;
}

enum { WITH_STAGED = 1, WITH_MPI = 2, WITH_IPC = 4 };

static void test_transports(bool on_host, int transports)
{
    const bool made = buffer_make(&send_buffer, on_host) && buffer_make(&receive_buffer, on_host);
    CHECK(made, "rank %d: no memory: %s", comm.rank, status_text());
    watches = engine->ops->kind == HSORT_ENGINE_HOST;
    if (comm_agree(&comm, made ? HSORT_OK : HSORT_HOST_MEMORY) == HSORT_OK) {
        if (transports & WITH_STAGED) {
            test_transport(open_all_share, HSORT_TRANSPORT_STAGED);
            test_transport(open_some_share, HSORT_TRANSPORT_STAGED);
            test_transport(open_none_shares, HSORT_TRANSPORT_STAGED);
        }
        if (transports & WITH_MPI)
            test_transport(transport_open_mpi, HSORT_TRANSPORT_MPI);
        if (transports & WITH_IPC)
            test_transport(open_ipc, HSORT_TRANSPORT_IPC);
    }
    watches = false;
    buffer_drop(&send_buffer);
    buffer_drop(&receive_buffer);
}

/* Test ipc when all ranks, some, or only one of two map the other's memory, and when every second rank has memory
 * that cannot be mapped. */
static void test_shared(void)
{
    static bool (*const rules[])(int, int) = {NULL, shared_some_may, one_way};
    engine->ops->close(engine);
    CHECK(shared_engine_open(&engine) == HSORT_OK, "%s", status_text());
    for (int i = 0; i < 3; i++) {
        shared_may_map = rules[i];
        test_transports(false, WITH_IPC);
    }
    shared_may_map = NULL;
    const int opened = shared_opened;
    CHECK(opened > 0 && shared_mapped == 0, "%d mapped, %d of them still", opened, shared_mapped);
    test_transports(comm.rank % 2 == 1, WITH_IPC);
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    if (!open_rank(cuda, __real_engine_open_host))
        return ranks_finish();
    const bool takes = test_choice(cuda);
    if (cuda && !takes && comm.rank == 0)
        printf("this MPI takes no device pointers: transport mpi is not tried\n");
    const int transports = WITH_STAGED | (takes ? WITH_MPI : 0) | (cuda ? WITH_IPC : 0);
    test_transports(false, transports);
    if (cuda) {
        test_transports(true, transports);
        test_transports(comm.rank % 2 == 1, WITH_IPC);
    } else {
        test_shared();
    }
    engine->ops->close(engine);
    comm_close(&comm);
    return ranks_finish();
}
