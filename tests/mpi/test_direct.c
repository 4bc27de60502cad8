/* The exchange `direct`, on the host engine: keys of every skew and layout, before and after, on both transports, packed on their way
 * or not. The oracle shares nothing with it: every rank makes all keys, sorts them with qsort by (key, rank), and so knows which keys it
 * must end with, and how many it must send, not one more; packed they take fewer bytes, and never more. */
#include "mpi/exchange/exchange.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 32, MOST_KEYS = 4000, CASES = 1200, GUARD = 64, CANARY = 0xc5 };

static struct comm comm;
static struct engine *engine;
static char case_text[240];

static void *tables; /* of exchange_direct */

struct owned {
    key_code key;
    int rank;
};

static struct owned all_keys[MOST_KEYS + 1];
static int steps_seen, steps_wanted;
static int64_t saved_bytes; /* by packing */

static int compare_owned(const void *a, const void *b)
{
    const struct owned *left = a, *right = b;
    return left->key != right->key ? (left->key > right->key) - (left->key < right->key)
                                   : left->rank - right->rank;
}

static void count_step(void *user, int64_t done, int64_t total)
{
    (void)user;
    CHECK(done == ++steps_seen && total == steps_wanted, "%s: step %lld of %lld", case_text, (long long)done,
          (long long)total);
}

static uint64_t draw_key(int skew, int rank, uint64_t *random)
{
    const uint64_t any = check_random(random), draw = check_random(random);
    const uint64_t keys[] = {any,
                             42,                               // all equal
                             draw % 5,                         // few values
                             (uint64_t)rank << 16 | any >> 48, // in order
                             (uint64_t)(comm.size - rank) << 16 | any >> 48,
                             draw % 8 ? UINT32_MAX : any % 1000,
                             any >> draw % 64};
    return keys[skew];
}
enum { SKEWS = 7 };

/* Make the keys of all ranks; own [counts[rank]] are this rank's, sorted, in keys of key_bytes. */
static void make_keys(int skew, int key_bytes, const int64_t *counts, uint64_t seed, unsigned char *own)
{
    int64_t all = 0, before = 0;
    for (int r = 0; r < comm.size; r++) {
        before = r == comm.rank ? all : before;
        for (int64_t i = 0; i < counts[r]; i++) {
            const uint64_t key = draw_key(skew, r, &seed);
            const key_code wide = (key_code)key << 64 | key % 3; // its lower half is in another order
            all_keys[all++] = (struct owned){key_bytes == 4 ? (uint32_t)key : key_bytes == 8 ? key : wide, r};
        }
    }
    qsort(all_keys, (size_t)all, sizeof all_keys[0], compare_owned);
    for (int64_t i = 0; i < all; i++)
        if (all_keys[i].rank == comm.rank) {
            memcpy(own, &all_keys[i].key, (size_t)key_bytes); // little-endian
            own += key_bytes;
        }
}

/* ---- what must come of it ---------------------------------------------------------------------------------------- */

/* Keys that this rank must send. */
static int64_t count_sent(const int64_t *target_offset)
{
    int64_t sent = 0;
    for (int to = 0; to < comm.size; to++)
        for (int64_t i = target_offset[to]; i < target_offset[to + 1]; i++)
            sent += all_keys[i].rank == comm.rank && to != comm.rank;
    return sent;
}

/* What must lie on this rank, and what must have left it. */
static void check_result(const struct exchange *x)
{
    const int64_t begin = x->target_offset[comm.rank], end = x->target_offset[comm.rank + 1];
    const int64_t sent = count_sent(x->target_offset);
    int64_t wrong = 0;
    CHECK(x->count == end - begin, "%s: %lld keys instead of %lld", case_text, (long long)x->count,
          (long long)(end - begin));
    for (int64_t i = begin; i < end; i++) {
        key_code key = 0;
        memcpy(&key, (const char *)x->keys + (i - begin) * x->key_bytes, (size_t)x->key_bytes);
        wrong += key != all_keys[i].key;
    }
    CHECK(wrong == 0, "%s: rank %d: %lld wrong keys", case_text, comm.rank, (long long)wrong);
    CHECK(x->memory ? x->moved_bytes <= sent * x->key_bytes : x->moved_bytes == sent * x->key_bytes,
          "%s: rank %d sent %lld bytes, not %lld keys", case_text, comm.rank, (long long)x->moved_bytes,
          (long long)sent);
    saved_bytes += sent * x->key_bytes - x->moved_bytes;
}

/* [bytes] between canaries, and whether those are unharmed. */
static unsigned char *guarded(size_t bytes)
{
    unsigned char *memory = malloc(bytes + 2 * GUARD);
    if (!memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(memory, CANARY, bytes + 2 * GUARD);
    return memory + GUARD;
}

static void drop_guarded(unsigned char *memory, size_t bytes)
{
    int harmed = 0;
    for (int i = 0; i < GUARD; i++)
        harmed += (memory[i - GUARD] != CANARY) + (memory[bytes + (size_t)i] != CANARY);
    CHECK(harmed == 0, "%s: rank %d: %d bytes around a buffer are overwritten", case_text, comm.rank, harmed);
    free(memory - GUARD);
}

/* Memory to pack in, as much as it takes; or none, on all ranks or on some of them: then nothing is packed. */
enum lending { LEND_NONE, LEND_SOME, LEND_ALL, LENDINGS };

static unsigned char *lend_memory(struct exchange *x, enum lending lending, size_t *bytes)
{
    *bytes = exchange_direct.memory_bytes(engine, &comm, x->transport, x->key_bytes, x->capacity);
    const bool lends = lending == LEND_ALL || (lending == LEND_SOME && comm.rank % 3 == 1);
    unsigned char *memory = lends ? guarded(*bytes) : NULL;
    x->memory = *bytes > 0 ? memory : NULL;
    return memory;
}

static void run_case(int number, uint64_t seed, struct transport *transport)
{
    uint64_t random = seed + (uint64_t)number * 1000003;
    const int skew = number % SKEWS, key_bytes = 4 << check_random(&random) % 3;
    const int64_t total =
        (int64_t)(check_random(&random) % (number % 15 ? 50 : MOST_KEYS)); // 15: on each transport
    enum layout layouts[2] = {(enum layout)(check_random(&random) % LAYOUTS),
                              (enum layout)(check_random(&random) % LAYOUTS)};
    int64_t counts[2][MOST_RANKS], target_offset[MOST_RANKS + 1] = {0}, capacity = 0;
    bool done;
    if (check_random(&random) % 2) // as in a sort; others leave room that a sort has not
        layouts[0] = layouts[1] = LAYOUT_BALANCED;
    for (int i = 0; i < 2; i++) {
        layout_counts(layouts[i], total, comm.size, random + (uint64_t)i, counts[i]);
        for (int r = 0; r < comm.size; r++)
            capacity = counts[i][r] > capacity ? counts[i][r] : capacity;
    }
    for (int r = 0; r < comm.size; r++)
        target_offset[r + 1] = target_offset[r] + counts[1][r];
    snprintf(case_text, sizeof case_text, "case %d: %lld keys of %d bytes, skew %d, layouts %d and %d",
             number, (long long)total, key_bytes, skew, layouts[0], layouts[1]);

    const size_t bytes = (size_t)capacity * (size_t)key_bytes;
    unsigned char *buffers[2] = {guarded(bytes), guarded(bytes)};
    struct exchange x = {.comm = &comm,
                         .engine = engine,
                         .transport = transport,
                         .tables = tables,
                         .key_bytes = key_bytes,
                         .capacity = capacity,
                         .keys = buffers[0],
                         .scratch = buffers[1],
                         .count = counts[0][comm.rank],
                         .target_offset = target_offset,
                         .progress = count_step};
    size_t lent_bytes;
    unsigned char *lent = lend_memory(&x, (enum lending)(check_random(&random) % LENDINGS), &lent_bytes);
    make_keys(skew, key_bytes, counts[0], random, buffers[0]);
    steps_seen = 0;
    steps_wanted = comm.size - 1;
    status_clear();
    CHECK(exchange_direct.run(&x, &done) == HSORT_OK && done, "%s: %s", case_text, status_text());
    CHECK((x.keys == buffers[0] && x.scratch == buffers[1]) ||
              (x.keys == buffers[1] && x.scratch == buffers[0]),
          "%s: the buffers are not the same two", case_text);
    CHECK(steps_seen == 0 || steps_seen == steps_wanted, "%s: %d steps", case_text, steps_seen);
    check_result(&x);
    drop_guarded(buffers[0], bytes);
    drop_guarded(buffers[1], bytes);
    if (lent)
        drop_guarded(lent, lent_bytes);
}

#ifdef HSORT_FAULTS
/* ---- failure ----------------------------------------------------------------------------------------------------- */

/* One exchange of an equal number of random keys per rank in which the nth passage of `site` on rank `failing` fails. Returns
 * whether that was reached; *moved grows by 1 if any key moved all the same. */
static bool run_failing(enum fault_site site, int failing, int nth, uint64_t seed,
                        struct transport *transport, bool packs, int *moved)
{
    enum { COUNT = 50 };
    int64_t counts[MOST_RANKS], target_offset[MOST_RANKS + 1], moved_bytes;
    for (int r = 0; r <= comm.size; r++) {
        counts[r % comm.size] = COUNT;
        target_offset[r] = r * COUNT;
    }
    snprintf(case_text, sizeof case_text, "passage %d of site %d on rank %d fails", nth, site, failing);
    const size_t bytes = COUNT * sizeof(uint64_t);
    unsigned char *buffers[2] = {guarded(bytes), guarded(bytes)};
    bool done;
    struct exchange x = {.comm = &comm,
                         .engine = engine,
                         .transport = transport,
                         .tables = tables,
                         .target_offset = target_offset,
                         .key_bytes = 8,
                         .capacity = COUNT,
                         .keys = buffers[0],
                         .scratch = buffers[1],
                         .count = COUNT};
    size_t lent_bytes;
    unsigned char *lent = lend_memory(&x, packs ? LEND_ALL : LEND_NONE, &lent_bytes);
    make_keys(packs ? 2 : 0, 8, counts, seed, buffers[0]); // few values: they are packed to less
    status_clear();
    fault_set(site, comm.rank == failing ? nth : 0);
    const hsort_status status = exchange_direct.run(&x, &done);
    int reached = comm.rank == failing && !fault_untouched(site, nth);
    MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
    CHECK((status != HSORT_OK) == (reached && comm.rank == failing), "%s: rank %d: status %d", case_text,
          comm.rank, status);
    CHECK(x.count == COUNT, "%s: %lld keys", case_text, (long long)x.count);
    comm_sum(&comm, x.moved_bytes, &moved_bytes);
    *moved += reached && moved_bytes > 0;
    if (!reached)
        check_result(&x);
    for (int i = 0; i < 2; i++)
        drop_guarded(buffers[i], bytes);
    if (lent)
        drop_guarded(lent, lent_bytes);
    return reached;
}

/* No key moves after a kernel has failed: the lengths of messages are agreed on. The last ones, the merges, come too late
 * for that, as do those that pack. Whatever fails, nobody waits for ever. */
static void test_failure(uint64_t seed, struct transport *transport, bool packs)
{
    const enum fault_site sites[] = {FAULT_KERNEL, FAULT_COPY, FAULT_MPI};
    for (int failing = 0; comm.size > 1 && failing < comm.size; failing++)
        for (int i = 0; i < 3; i++) {
            if (packs && failing > 0 && failing < comm.size - 1 && failing != comm.size / 2)
                continue;
            int nth = 1, moved = 0;
            while (run_failing(sites[i], failing, nth, seed, transport, packs, &moved))
                nth++;
            CHECK(sites[i] != FAULT_KERNEL || (nth > 3 && (packs ? moved >= 1 : moved == 1)),
                  "%s: keys moved after %d of %d failures", case_text, moved, nth - 1);
        }
}
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    struct transport *staged = NULL, *longer = NULL, *direct = NULL;
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK && comm.size <= MOST_RANKS, "%s", status_text());
    CHECK(engine_open_host(1, 0, &engine) == HSORT_OK, "%s", status_text());
    CHECK(check_failures > 0 || (transport_open_staged(&comm, engine, 64, true, &staged) == HSORT_OK &&
                                 transport_open_staged(&comm, engine, 1000, false, &longer) == HSORT_OK &&
                                 transport_open_mpi(&comm, engine, 1024, &direct) == HSORT_OK &&
                                 exchange_direct.open(comm.size, engine, &tables) == HSORT_OK),
          "%s", status_text());
    if (check_failures == 0) {
        for (int i = 0; i < CASES; i++)
            run_case(i, seed, i % 4 == 0 ? direct : i % 4 == 1 ? longer : staged);
        int64_t saved_everywhere = 0;
        comm_sum(&comm, saved_bytes, &saved_everywhere);
        CHECK(comm.size == 1 || saved_everywhere > 0, "nothing was packed");
#ifdef HSORT_FAULTS
        test_failure(seed, staged, false);
        test_failure(seed, staged, true);
        test_failure(seed, direct, false);
#endif
        exchange_direct.close(tables, engine);
        staged->ops->close(staged);
        longer->ops->close(longer);
        direct->ops->close(direct);
        engine->ops->close(engine);
        comm_close(&comm);
    }
    return ranks_finish();
}
