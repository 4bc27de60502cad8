/* engine_ops.transfer() of an engine: `test_transfer host [THREADS]` or `cuda`. Lists of any length, of host memory and
 * of functions, in and out at once; every byte is moved once, in chunks that end where they should. Some transfers lie one
 * after the other in engine memory, with bytes between them or without. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "kernels/transfer_queue.h"
#include "tests/kernels/engine_test.h"

enum { TRIALS = 30, LIST_MAX = 9, BLOCK = 4096 };

/* What move() of a transfer reaches: an array, and a count of the bytes that are moved. */
struct reached {
    char *bytes; /* [room] */
    size_t room, lead;
    int64_t first; /* number of bytes[0], as move() is told */
    bool out, joins;
    atomic_llong moved;
    atomic_int wrong; /* chunks that were too large, or in the wrong place */
};

static atomic_int moves_left; /* until one fails; below 0: none does */
static int call;              /* number of the call, for its text */

static hsort_status move_bytes(void *user, int64_t at, size_t bytes, void *host)
{
    struct reached *reached = user;
    const size_t begin = (size_t)(at - reached->first), place = reached->lead + begin;
    const bool ends = begin + bytes == reached->room || (place + bytes) % ENGINE_MOVE_BYTES == 0;
    const bool begins = begin == 0 || place % ENGINE_MOVE_BYTES == 0;
    if (bytes == 0 || bytes > ENGINE_MOVE_BYTES || begin + bytes > reached->room || !begins || !ends)
        atomic_fetch_add(&reached->wrong, 1);
    if (ops->kind == HSORT_ENGINE_CUDA && !reached->joins && (uintptr_t)host % BLOCK != place % BLOCK)
        atomic_fetch_add(&reached->wrong, 1);
    if (atomic_fetch_sub(&moves_left, 1) == 0)
        return status_fail(HSORT_IO, "call %d: the move of %zu bytes at %lld failed", call, bytes,
                           (long long)at);
    memcpy(reached->out ? reached->bytes + begin : host, reached->out ? host : reached->bytes + begin, bytes);
    atomic_fetch_add(&reached->moved, (long long)bytes);
    return HSORT_OK;
}

/* Transfers in one direction. What they are to move lies in `image` at `place`, as it does in engine memory. */
struct list {
    bool out;
    int count;
    struct engine_transfer transfer[LIST_MAX];
    struct reached reached[LIST_MAX];
    size_t place[LIST_MAX + 1]; /* of each, and all bytes */
    char *image;                /* [bytes + 1] */
    struct buffer memory;       /* [bytes] of the engine */
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

static struct engine_transfer draw_transfer(struct reached *reached, const char *image, size_t bytes,
                                            bool out, uint64_t *random)
{
    const bool by_function = check_random(random) % 2, joins = by_function && check_random(random) % 2;
    *reached = (struct reached){.bytes = alloc_or_exit(bytes + 1),
                                .room = bytes,
                                .lead = by_function && !joins ? check_random(random) % ENGINE_MOVE_BYTES : 0,
                                .first = (int64_t)(check_random(random) >> 20),
                                .out = out,
                                .joins = joins};
    memset(reached->bytes, POISON, bytes + 1);
    if (!out)
        memcpy(reached->bytes, image, bytes);
    return (struct engine_transfer){.bytes = bytes,
                                    .host = by_function ? NULL : reached->bytes,
                                    .move = by_function ? move_bytes : NULL,
                                    .user = reached,
                                    .at = reached->first,
                                    .lead = reached->lead,
                                    .joins = joins};
}

static void draw_list(struct list *list, bool out, uint64_t *random)
{
    size_t bytes[LIST_MAX];
    *list = (struct list){.out = out, .count = (int)(check_random(random) % LIST_MAX)};
    for (int i = 0; i < list->count; i++) {
        bytes[i] = draw_bytes(random);
        list->place[i] += check_random(random) % 3 ? 0 : check_random(random) % 300;
        list->place[i + 1] = list->place[i] + bytes[i];
    }
    const size_t all = list->place[list->count];
    list->image = alloc_or_exit(all + 1);
    memset(list->image, POISON, all + 1);
    for (int i = 0; i < list->count; i++) {
        fill(list->image + list->place[i], bytes[i], random);
        list->transfer[i] =
            draw_transfer(&list->reached[i], list->image + list->place[i], bytes[i], out, random);
    }
    list->memory = buffer_new(out ? list->image : NULL, all, check_random(random) % 9);
    for (int i = 0; i < list->count; i++)
        list->transfer[i].memory = (char *)buffer_keys(&list->memory) + list->place[i];
}

static void end_transfer(struct reached *reached, const struct engine_transfer *transfer, const char *image,
                         bool good)
{
    if (good) {
        CHECK(memcmp(reached->bytes, image, reached->room) == 0, "%zu bytes %s are others", reached->room,
              reached->out ? "out" : "in");
        CHECK(transfer->host || atomic_load(&reached->moved) == (long long)reached->room,
              "%lld bytes of %zu were moved", (long long)atomic_load(&reached->moved), reached->room);
    }
    CHECK(atomic_load(&reached->wrong) == 0, "%d chunks of %zu bytes behind %zu are not where they should be",
          atomic_load(&reached->wrong), reached->room, reached->lead);
    CHECK((unsigned char)reached->bytes[reached->room] == POISON, "a byte behind %zu was written",
          reached->room);
    free(reached->bytes);
}

static void end_list(struct list *list, bool good)
{
    const size_t all = list->place[list->count];
    const char *found = buffer_result(&list->memory, "a transfer");
    CHECK((!good && !list->out) || memcmp(found, list->image, all) == 0,
          "%zu bytes of engine memory, %d transfers %s, are others", all, list->count,
          list->out ? "out" : "in");
    for (int i = 0; i < list->count; i++)
        end_transfer(&list->reached[i], &list->transfer[i], list->image + list->place[i], good);
    buffer_free(&list->memory);
    free(list->image);
}

/* Make one call in which move number `fails` fails; -1: none. */
static void check_transfers(int fails, uint64_t *random)
{
    static struct list in, out;
    char text[32];
    snprintf(text, sizeof text, "call %d: the move of", ++call);
    draw_list(&in, false, random);
    draw_list(&out, true, random);
    atomic_store(&moves_left, fails);
    status_clear();
    const hsort_status status = ops->transfer(engine, in.transfer, in.count, out.transfer, out.count);
    must(ops->stream_synchronize(engine, STREAM_IN), "stream_synchronize");
    const bool failed = fails >= 0 && atomic_load(&moves_left) < 0;
    CHECK(status == (failed ? HSORT_IO : HSORT_OK), "move %d fails: %s", fails, hsort_strerror(status));
    CHECK(!failed || strstr(status_text(), text), "not the text of \"%s\": \"%s\"", text, status_text());
    end_list(&in, !failed);
    end_list(&out, !failed);
    status_clear();
}

/* Short transfers go together if they lie one behind the other, and only then. */
static void check_joining(void)
{
    enum { SHORT = 300000, COUNT = 16, GAP_BEFORE = 5, WITH_BORDERS = 12 };
    struct engine_transfer transfer[COUNT];
    struct transfer_queue queue;
    struct transfer_chunk chunk;
    char *memory = alloc_or_exit((size_t)COUNT * SHORT + 1);
    /* 6 fit a chunk: 0..4 | gap 5..10 | 11 | 12 alone | 13..15 */
    static const int first[] = {0, GAP_BEFORE, 11, WITH_BORDERS, WITH_BORDERS + 1, COUNT};
    int found = 0;
    for (int i = 0; i < COUNT; i++)
        transfer[i] = (struct engine_transfer){.memory = memory + (size_t)i * SHORT + (i >= GAP_BEFORE),
                                               .bytes = SHORT,
                                               .joins = i != WITH_BORDERS};
    transfer_begin(&queue, transfer, COUNT, NULL, 0);
    for (; transfer_next(&queue, &chunk); found++) {
        const int count = found < 5 ? first[found + 1] - first[found] : 0;
        CHECK(found < 5 && chunk.transfer == &transfer[first[found]] && chunk.at == 0 &&
                  chunk.bytes == (size_t)count * SHORT,
              "chunk %d begins with transfer %d and has %zu bytes", found, (int)(chunk.transfer - transfer),
              chunk.bytes);
    }
    CHECK(found == 5, "%d chunks", found);
    must(transfer_end(&queue), "transfer_end");
    free(memory);
}

/* If no memory can be pinned, the slots are ordinary memory. */
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

static pthread_t caller;
static atomic_bool caller_moves;

/* No thread goes on before the caller's thread has bytes to move, too. */
static hsort_status move_with_caller(void *user, int64_t at, size_t bytes, void *host)
{
    (void)user;
    (void)at;
    if (pthread_equal(pthread_self(), caller))
        atomic_store(&caller_moves, true);
    while (!atomic_load(&caller_moves))
        sched_yield();
    memset(host, 0, bytes);
    return HSORT_OK;
}

/* Copies to places without memory are reported once, and not by the next call. */
static void check_failed_copies(uint64_t *random)
{
    enum { MORE_THAN_THREADS = 64 };
    struct engine_transfer in[MORE_THAN_THREADS];
    if (ops->kind != HSORT_ENGINE_CUDA)
        return;
    struct buffer keys = buffer_new(random, sizeof *random, sizeof *random);
    for (int i = 0; i < MORE_THAN_THREADS; i++)
        in[i] = (struct engine_transfer){.bytes = 1, .move = move_with_caller};
    caller = pthread_self();
    const hsort_status status = ops->transfer(engine, in, MORE_THAN_THREADS, NULL, 0);
    CHECK(status == HSORT_CUDA, "copies to nowhere: %s", hsort_strerror(status));
    status_clear();
    must(ops->encode(engine, keymap_make(HSORT_I64, HSORT_ASCENDING), buffer_keys(&keys), buffer_keys(&keys),
                     1),
         "encode behind copies that failed");
    buffer_free(&keys);
}

int main(int argc, char **argv)
{
    uint64_t random = check_seed();
    open_engine(argc, argv);
    printf("test_transfer %s: seed %llu\n", ops->name, (unsigned long long)random);
    check_joining();
    check_unpinned(&random);
    check_failed_copies(&random);
    for (int trial = 0; trial < TRIALS; trial++) {
        check_transfers(-1, &random);
        check_transfers((int)(check_random(&random) % 12), &random);
    }
    close_engine();
    return check_failures > 0;
}
