/* The exchange `direct`, on the host engine: keys of every skew and layout, before and after, on both transports, packed on their way
 * or not. The oracle shares nothing with it: every rank makes all keys and sorts them with qsort by (key, rank), so it knows which keys
 * it must end with, and how many it must send, not one more. Packed keys take fewer bytes, and never more. */
#include "mpi/exchange/splitters.h"
#include "mpi/exchange/swap_pieces.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 32, MOST_KEYS = 4000, CASES = 1200, GUARD = 64, CANARY = 0xc5 };

static struct comm comm;
static struct engine *engine;
static char case_text[240];

static void *tables; /* of exchange_direct */
static struct splitters *splitters;
static struct swap_tables *few_borders; /* no more than own pieces have */

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

/* Count the keys that this rank must send. */
static int64_t count_sent(const int64_t *target_offset)
{
    int64_t sent = 0;
    for (int to = 0; to < comm.size; to++)
        for (int64_t i = target_offset[to]; i < target_offset[to + 1]; i++)
            sent += all_keys[i].rank == comm.rank && to != comm.rank;
    return sent;
}

/* Check what lies on this rank, and how much has left it. */
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

/* [bytes] between canaries; drop_guarded() checks that these are unharmed. */
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

/* Memory to pack in, as much as packing takes; or none, on all ranks or on some of them: then nothing is packed. */
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
    if (check_random(&random) % 2) // as in a sort; other layouts leave room that a sort does not have
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

/* Lend what an exchange in place sorts with, if it has to sort. */
static void lend_workspace(struct exchange *x)
{
    x->rung = -1;
    CHECK(x->count == 0 || engine->ops->sort_workspace(engine, x->rung, x->key_bytes, x->count,
                                                       x->scratch_keys, &x->workspace_bytes) == HSORT_OK,
          "%s: %s", case_text, status_text());
    x->workspace = guarded(x->workspace_bytes);
    CHECK(direct_reserve_in_place(tables, comm.size) == HSORT_OK, "%s: %s", case_text, status_text());
}

/* Run the exchange in place, or, if `few`, its two halves, of which the second cannot note all runs. */
static hsort_status run_halves(struct exchange *x, bool few, bool *done)
{
    int64_t cut_offset[MOST_RANKS + 1];
    if (!few)
        return exchange_direct.run(x, done);
    *done = true;
    const hsort_status status = splitters_find(splitters, x, x->target_offset, cut_offset);
    return swap_pieces(few_borders, x, cut_offset, status);
}

/* The same in place: each rank has room for its own keys, and scratch for one of them up to all of them. */
static void run_in_place(int number, uint64_t seed, struct transport *transport)
{
    uint64_t random = seed + (uint64_t)number * 1000003;
    const int skew = (number / 3) % SKEWS, key_bytes = 4 << check_random(&random) % 3;
    const int64_t total = (int64_t)(check_random(&random) % (number % 15 ? 50 : MOST_KEYS));
    const enum layout layout = (enum layout)(check_random(&random) % LAYOUTS);
    int64_t counts[MOST_RANKS], offset[MOST_RANKS + 1] = {0};
    bool done;
    layout_counts(layout, total, comm.size, random, counts);
    for (int r = 0; r < comm.size; r++)
        offset[r + 1] = offset[r] + counts[r];
    const int64_t count = counts[comm.rank],
                  scratch =
                      count > 0 ? 1 + (int64_t)((random + (uint64_t)comm.rank * 77) % (uint64_t)count) : 0;
    snprintf(case_text, sizeof case_text, "in place, case %d: %lld keys of %d bytes, skew %d, layout %d",
             number, (long long)total, key_bytes, skew, layout);
    const size_t bytes = (size_t)count * (size_t)key_bytes,
                 scratch_bytes = (size_t)scratch * (size_t)key_bytes;
    unsigned char *keys = guarded(bytes), *beside = guarded(scratch_bytes);
    struct exchange x = {.comm = &comm,
                         .engine = engine,
                         .transport = transport,
                         .tables = tables,
                         .key_bytes = key_bytes,
                         .capacity = total / comm.size + (total % comm.size != 0),
                         .keys = keys,
                         .scratch = beside,
                         .scratch_keys = scratch,
                         .in_place = true,
                         .count = count,
                         .target_offset = offset,
                         .progress = count_step};
    make_keys(skew, key_bytes, counts, random, keys);
    lend_workspace(&x);
    steps_seen = 0;
    steps_wanted = comm.size;
    status_clear();
    CHECK(run_halves(&x, number % 4 == 3, &done) == HSORT_OK && done, "%s: %s", case_text, status_text());
    CHECK(x.keys == keys, "%s: the keys are not where they were", case_text);
    CHECK(steps_seen == steps_wanted, "%s: %d steps", case_text, steps_seen);
    check_result(&x);
    drop_guarded(keys, bytes);
    drop_guarded(beside, scratch_bytes);
    drop_guarded(x.workspace, x.workspace_bytes);
}

#ifdef HSORT_FAULTS
/* ---- failure ----------------------------------------------------------------------------------------------------- */

enum way { PLAIN, PACKED, IN_PLACE };

/* Run one exchange of an equal number of random keys per rank, in which the nth passage of `site` on rank `failing` fails. Returns
 * whether this passage was reached; *moved grows by 1 if any key moved all the same. */
static bool run_failing(enum fault_site site, int failing, int nth, uint64_t seed,
                        struct transport *transport, enum way way, int *moved)
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
                         .scratch_keys = way == IN_PLACE ? 3 : COUNT,
                         .in_place = way == IN_PLACE,
                         .count = COUNT};
    const bool packs = way == PACKED;
    size_t lent_bytes;
    unsigned char *lent = lend_memory(&x, packs ? LEND_ALL : LEND_NONE, &lent_bytes);
    make_keys(packs ? 2 : 0, 8, counts, seed, buffers[0]); // few values: packed they take less
    if (way == IN_PLACE)
        lend_workspace(&x);
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
    if (way == IN_PLACE)
        drop_guarded(x.workspace, x.workspace_bytes);
    return reached;
}

/* No key moves after a kernel has failed, because the lengths of messages are agreed on. The last kernels, the merges, come too
 * late for that, and so do the kernels that pack. Whatever fails, nobody waits for ever. */
static void test_failure(uint64_t seed, struct transport *transport, enum way way)
{
    const enum fault_site sites[] = {FAULT_KERNEL, FAULT_COPY, FAULT_MPI};
    for (int failing = 0; comm.size > 1 && failing < comm.size; failing++)
        for (int i = 0; i < 3; i++) {
            if (way != PLAIN && failing > 0 && failing < comm.size - 1 && failing != comm.size / 2)
                continue;
            int nth = 1, moved = 0;
            while (run_failing(sites[i], failing, nth, seed, transport, way, &moved))
                nth++;
            CHECK(sites[i] != FAULT_KERNEL || (nth > 3 && (way != PLAIN ? moved >= 1 : moved == 1)),
                  "%s: keys moved after %d of %d failures", case_text, moved, nth - 1);
        }
}

/* If there is no memory for the tables of a sort in place, that is said before a key is touched. */
static void test_no_tables(void)
{
    struct swap_tables *none;
    fault_set(FAULT_ALLOC, 1);
    CHECK(swap_tables_open(comm.size, 1, &none) == HSORT_HOST_MEMORY && !none, "there are tables");
    fault_set(FAULT_ALLOC, 0);
    status_clear();
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
                                 exchange_direct.open(comm.size, engine, &tables) == HSORT_OK &&
                                 splitters_open(comm.size, &splitters) == HSORT_OK &&
                                 swap_tables_open(comm.size, comm.size, &few_borders) == HSORT_OK),
          "%s", status_text());
    if (check_failures == 0) {
        for (int i = 0; i < CASES; i++)
            run_case(i, seed, i % 4 == 0 ? direct : i % 4 == 1 ? longer : staged);
        for (int i = 0; i < CASES / 4; i++)
            run_in_place(i, seed + 1, i % 4 == 0 ? direct : i % 4 == 1 ? longer : staged);
        int64_t saved_everywhere = 0;
        comm_sum(&comm, saved_bytes, &saved_everywhere);
        CHECK(comm.size == 1 || saved_everywhere > 0, "nothing was packed");
#ifdef HSORT_FAULTS
        test_no_tables();
        test_failure(seed, staged, PLAIN);
        test_failure(seed, staged, PACKED);
        test_failure(seed, direct, PLAIN);
        test_failure(seed, staged, IN_PLACE);
#endif
        exchange_direct.close(tables, engine);
        splitters_close(splitters);
        swap_tables_close(few_borders);
        staged->ops->close(staged);
        longer->ops->close(longer);
        direct->ops->close(direct);
        engine->ops->close(engine);
        comm_close(&comm);
    }
    return ranks_finish();
}
