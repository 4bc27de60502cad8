/* engine_ops.transfer() of an engine: `test_transfer host [THREADS]` or `cuda`. Lists of any length, of host memory and
 * of functions, in and out at once; every byte is moved once, in chunks that end where they should. */
#include <stdatomic.h>
#include "tests/kernels/engine_test.h"

enum { TRIALS = 30, LIST_MAX = 9, BLOCK = 4096 };

/* What move() of a transfer reaches: an array, of which it counts the bytes that go by. */
struct reached {
    char *bytes; /* [room] */
    size_t room, lead;
    int64_t first; /* number of bytes[0], as move() is told */
    bool out;
    atomic_llong moved;
    atomic_int wrong; /* chunks that were too large, or in the wrong place */
};

static atomic_int moves_left; /* until one fails; below 0: none does */

static hsort_status move_bytes(void *user, int64_t at, size_t bytes, void *host)
{
    struct reached *reached = user;
    const size_t begin = (size_t)(at - reached->first), place = reached->lead + begin;
    const bool ends = begin + bytes == reached->room || (place + bytes) % ENGINE_MOVE_BYTES == 0;
    const bool begins = begin == 0 || place % ENGINE_MOVE_BYTES == 0;
    if (bytes == 0 || bytes > ENGINE_MOVE_BYTES || begin + bytes > reached->room || !begins || !ends)
        atomic_fetch_add(&reached->wrong, 1);
    if (ops->kind == HSORT_ENGINE_CUDA && (uintptr_t)host % BLOCK != place % BLOCK)
        atomic_fetch_add(&reached->wrong, 1);
    if (atomic_fetch_sub(&moves_left, 1) == 0)
        return status_fail(HSORT_IO, "the move of %zu bytes at %lld failed", bytes, (long long)at);
    memcpy(reached->out ? reached->bytes + begin : host, reached->out ? host : reached->bytes + begin, bytes);
    atomic_fetch_add(&reached->moved, (long long)bytes);
    return HSORT_OK;
}

/* One transfer: what it is to move lies in `here`, and appears in `there`. */
struct part {
    struct reached reached;
    struct buffer memory; /* of the engine */
    char *expected;       /* [bytes] */
    char *host;           /* [bytes] */
};

static size_t draw_bytes(uint64_t *random)
{
    const size_t most = check_random(random) % 4 ? 100000 : (size_t)3 * ENGINE_MOVE_BYTES;
    return check_random(random) % 8 ? check_random(random) % most : 0;
}

static void fill(char *bytes, size_t count, uint64_t *random)
{
    const uint64_t first = check_random(random);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)((first + i * 11400714819323198485u) >> 56);
}

static struct engine_transfer make_part(struct part *part, bool out, uint64_t *random)
{
    const size_t bytes = draw_bytes(random);
    const bool by_function = check_random(random) % 2;
    const size_t lead = by_function ? check_random(random) % ENGINE_MOVE_BYTES : 0;
    *part = (struct part){.expected = malloc(bytes + 1), .host = malloc(bytes + 1)};
    fill(part->expected, bytes, random);
    memset(part->host, POISON, bytes + 1);
    if (!out)
        memcpy(part->host, part->expected, bytes);
    part->memory = buffer_new(out ? part->expected : NULL, bytes, check_random(random) % 9);
    part->reached = (struct reached){.bytes = part->host,
                                     .room = bytes,
                                     .lead = lead,
                                     .first = (int64_t)(check_random(random) >> 20),
                                     .out = out};
    return (struct engine_transfer){.memory = buffer_keys(&part->memory),
                                    .bytes = bytes,
                                    .host = by_function ? NULL : part->host,
                                    .move = by_function ? move_bytes : NULL,
                                    .user = &part->reached,
                                    .at = part->reached.first,
                                    .lead = lead};
}

static void end_part(struct part *part, const struct engine_transfer *transfer, bool good)
{
    struct reached *reached = &part->reached;
    const char *found = reached->out ? part->host : buffer_result(&part->memory, "a transfer");
    if (good) {
        CHECK(memcmp(found, part->expected, reached->room) == 0, "%zu bytes %s are others", reached->room,
              reached->out ? "out" : "in");
        CHECK(transfer->host || atomic_load(&reached->moved) == (long long)reached->room,
              "%lld bytes of %zu were moved", (long long)atomic_load(&reached->moved), reached->room);
    }
    CHECK(atomic_load(&reached->wrong) == 0, "%d chunks of %zu bytes behind %zu are not where they should be",
          atomic_load(&reached->wrong), reached->room, reached->lead);
    CHECK((unsigned char)part->host[reached->room] == POISON, "a byte behind %zu was written", reached->room);
    buffer_free(&part->memory);
    free(part->expected);
    free(part->host);
}

/* One call, of which the move number `fails` fails; -1: none. */
static void check_transfers(int fails, uint64_t *random)
{
    static struct part parts[2 * LIST_MAX];
    struct engine_transfer transfers[2 * LIST_MAX];
    const int in = (int)(check_random(random) % LIST_MAX), out = (int)(check_random(random) % LIST_MAX);
    for (int i = 0; i < in + out; i++)
        transfers[i] = make_part(&parts[i], i >= in, random);
    atomic_store(&moves_left, fails);
    status_clear();
    const hsort_status status = ops->transfer(engine, transfers, in, transfers + in, out);
    must(ops->stream_synchronize(engine, STREAM_IN), "stream_synchronize");
    const bool failed = fails >= 0 && atomic_load(&moves_left) < 0;
    CHECK(status == (failed ? HSORT_IO : HSORT_OK), "move %d fails: %s", fails, hsort_strerror(status));
    CHECK(!failed || strstr(status_text(), "the move of"), "another thread's text: \"%s\"", status_text());
    for (int i = 0; i < in + out; i++)
        end_part(&parts[i], &transfers[i], !failed);
    status_clear();
}

/* Where no memory can be pinned the slots are ordinary memory. */
static void check_unpinned(uint64_t *random)
{
#ifdef HSORT_FAULTS
    fault_set(FAULT_PIN, 1); // "pin": a new engine's first slots
    check_transfers(-1, random);
    fault_set(FAULT_PIN, 0);
#else
    (void)random;
#endif
}

int main(int argc, char **argv)
{
    uint64_t random = check_seed();
    open_engine(argc, argv);
    printf("test_transfer %s: seed %llu\n", ops->name, (unsigned long long)random);
    check_unpinned(&random);
    for (int trial = 0; trial < TRIALS; trial++) {
        check_transfers(-1, &random);
        check_transfers((int)(check_random(&random) % 12), &random);
    }
    close_engine();
    return check_failures > 0;
}
