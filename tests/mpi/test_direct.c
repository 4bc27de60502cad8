/* The exchange `direct`, on the host engine: keys of every skew and layout, before and after, on both transports, straight and
 * over rails between made-up nodes. The oracle shares nothing with it: every rank makes all keys, sorts them with qsort by
 * (key, rank), and so knows which keys it must end with, how many it must send, not one more, and whether any rank would
 * have had to hold more than it has room for. */
#include "mpi/exchange/cost.h"
#include "mpi/exchange/exchange.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 32, MOST_KEYS = 4000, CASES = 1200, GUARD = 64, CANARY = 0xc5, PLACES_MAX = 24 };

static struct comm comm;
static struct engine *engine;
static char case_text[240];

/* The ranks, as if they were on these nodes. */
struct place {
    struct comm comm;
    struct direct *direct;
    int nodes, locals; /* 0: nodes that differ in number of ranks, or one node */
    int node_of[MOST_RANKS], local_of[MOST_RANKS];
    const hsort_rates *prices; /* that direct was given; NULL: it was told of no nodes */
};

static struct place places[PLACES_MAX];
static int places_made;
static hsort_rates rates[2]; /* by which STRAIGHT and RAILS is cheaper, of many keys */
static int rails_taken, rails_over,
    rails_crowded; /* cases: over rails; with room needed; for which it did not do */

struct owned {
    uint64_t key;
    int rank;
};

static struct owned all_keys[MOST_KEYS + 1];
static int steps_seen, steps_wanted;

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
            all_keys[all++] = (struct owned){key_bytes == 4 ? (uint32_t)key : key, r};
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

/* By rails: keys that pass through each rank, and those of them that were its own; both [size]. */
static void count_through(const struct place *p, const int64_t *target_offset, int64_t *through, int64_t *own)
{
    for (int r = 0; r < comm.size; r++)
        through[r] = own[r] = 0;
    for (int to = 0; to < comm.size; to++)
        for (int64_t i = target_offset[to]; i < target_offset[to + 1]; i++)
            for (int r = 0; r < comm.size; r++)
                if (p->node_of[r] == p->node_of[to] && p->local_of[r] == p->local_of[all_keys[i].rank]) {
                    through[r]++;
                    own[r] += all_keys[i].rank == r;
                }
}

/* Do the keys go over rails? */
static bool by_rails(const struct place *p, const struct exchange *x, const int64_t *target_offset)
{
    int64_t through[MOST_RANKS], own[MOST_RANKS];
    if (p->nodes == 0 || x->form == DIRECT_STRAIGHT ||
        (x->form == DIRECT_CHEAPER && cost_direct_form(p->prices, comm.size, p->locals, x->key_bytes,
                                                       target_offset[comm.size]) != DIRECT_RAILS))
        return false;
    count_through(p, target_offset, through, own);
    bool needs_room = false;
    for (int r = 0; r < comm.size; r++) {
        const int64_t over = through[r] - x->capacity;
        needs_room |= over > 0;
        if (over > own[r] || (over > 0 && (size_t)(over * x->key_bytes) > x->workspace_bytes)) {
            rails_crowded++;
            return false;
        }
    }
    rails_taken++;
    rails_over += needs_room;
    return true;
}

/* Keys that this rank must send. */
static int64_t count_sent(const struct place *p, bool rails, const int64_t *target_offset)
{
    const int me = comm.rank;
    int64_t sent = 0;
    for (int to = 0; to < comm.size; to++)
        for (int64_t i = target_offset[to]; i < target_offset[to + 1]; i++) {
            const int from = all_keys[i].rank;
            const bool here = p->node_of[to] == p->node_of[me],
                       same_node = p->node_of[from] == p->node_of[to];
            if (!rails)
                sent += from == me && to != me;
            else
                sent +=
                    (from == me && !same_node) + (here && p->local_of[from] == p->local_of[me] && to != me);
        }
    return sent;
}

/* What must lie on this rank, and what must have left it. */
static void check_result(const struct exchange *x, const struct place *p, bool rails,
                         const int64_t *target_offset)
{
    const int64_t begin = target_offset[comm.rank], end = target_offset[comm.rank + 1];
    const int64_t sent = count_sent(p, rails, target_offset);
    int64_t wrong = 0;
    CHECK(x->count == end - begin, "%s: %lld keys instead of %lld", case_text, (long long)x->count,
          (long long)(end - begin));
    for (int64_t i = begin; i < end; i++) {
        uint64_t key = 0;
        memcpy(&key, (const char *)x->keys + (i - begin) * x->key_bytes, (size_t)x->key_bytes);
        wrong += key != all_keys[i].key;
    }
    CHECK(wrong == 0, "%s: rank %d: %lld wrong keys", case_text, comm.rank, (long long)wrong);
    CHECK(x->moved_bytes == sent * x->key_bytes, "%s: rank %d sent %lld bytes, not %lld keys", case_text,
          comm.rank, (long long)x->moved_bytes, (long long)sent);
}

/* A capacity between canaries, and whether those are unharmed. */
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

static void run_case(int number, uint64_t seed, struct transport *transport)
{
    uint64_t random = seed + (uint64_t)number * 1000003;
    const int skew = number % SKEWS, key_bytes = check_random(&random) % 2 ? 4 : 8;
    const int64_t total = (int64_t)(check_random(&random) % (number % 16 ? 50 : MOST_KEYS));
    enum layout layouts[2] = {(enum layout)(check_random(&random) % LAYOUTS),
                              (enum layout)(check_random(&random) % LAYOUTS)};
    int64_t counts[2][MOST_RANKS], target_offset[MOST_RANKS + 1] = {0}, capacity = 0;
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
    const size_t rooms[] = {0, 3 * (size_t)key_bytes, bytes, bytes};
    struct place *place = &places[check_random(&random) % (uint64_t)places_made];
    unsigned char *buffers[2] = {guarded(bytes), guarded(bytes)};
    struct exchange x = {.comm = &place->comm,
                         .engine = engine,
                         .transport = transport,
                         .direct = place->direct,
                         .form = (enum direct_form)(check_random(&random) % 3),
                         .key_bytes = key_bytes,
                         .capacity = capacity,
                         .keys = buffers[0],
                         .scratch = buffers[1],
                         .workspace_bytes = rooms[check_random(&random) % 4],
                         .count = counts[0][comm.rank],
                         .progress = count_step};
    const size_t at = strlen(case_text);
    snprintf(case_text + at, sizeof case_text - at, ", place %d, form %d, room of %zu", (int)(place - places),
             x.form, x.workspace_bytes);
    unsigned char *room = guarded(x.workspace_bytes);
    x.workspace = room;
    make_keys(skew, key_bytes, counts[0], random, buffers[0]);
    const bool rails = by_rails(place, &x, target_offset);
    steps_seen = 0;
    steps_wanted = rails ? place->nodes + place->locals - 2 : comm.size - 1;
    status_clear();
    CHECK(exchange_direct(&x, target_offset) == HSORT_OK, "%s: %s", case_text, status_text());
    CHECK((x.keys == buffers[0] && x.scratch == buffers[1]) || (x.keys == buffers[1] && x.scratch == buffers[0]),
          "%s: the buffers are not the same two", case_text);
    CHECK((steps_seen == 0 && !rails) || steps_seen == steps_wanted, "%s: %d steps", case_text, steps_seen);
    check_result(&x, place, rails, target_offset);
    drop_guarded(buffers[0], bytes);
    drop_guarded(buffers[1], bytes);
    drop_guarded(room, x.workspace_bytes);
}

#ifdef HSORT_FAULTS
/* ---- failure ----------------------------------------------------------------------------------------------------- */

/* One exchange of an equal number of random keys per rank in which the nth passage of `site` on rank `failing` fails. Returns
 * whether that was reached; *moved grows by 1 if any key moved all the same. *rails: over rails? */
static bool run_failing(struct place *place, enum fault_site site, int failing, int nth, uint64_t seed,
                        struct transport *transport, int *moved, bool *rails)
{
    enum { COUNT = 50 };
    int64_t counts[MOST_RANKS], target_offset[MOST_RANKS + 1], moved_bytes;
    for (int r = 0; r <= comm.size; r++) {
        counts[r % comm.size] = COUNT;
        target_offset[r] = r * COUNT;
    }
    snprintf(case_text, sizeof case_text, "place %d: passage %d of site %d on rank %d fails",
             (int)(place - places), nth, site, failing);
    const size_t bytes = COUNT * sizeof(uint64_t);
    unsigned char *buffers[3] = {guarded(bytes), guarded(bytes), guarded(bytes)};
    struct exchange x = {.comm = &place->comm,
                         .engine = engine,
                         .transport = transport,
                         .direct = place->direct,
                         .form = DIRECT_RAILS,
                         .key_bytes = 8,
                         .capacity = COUNT,
                         .keys = buffers[0],
                         .scratch = buffers[1],
                         .workspace = buffers[2],
                         .workspace_bytes = bytes,
                         .count = COUNT};
    make_keys(0, 8, counts, seed, buffers[0]);
    *rails = by_rails(place, &x, target_offset);
    status_clear();
    fault_set(site, comm.rank == failing ? nth : 0);
    const hsort_status status = exchange_direct(&x, target_offset);
    int reached = comm.rank == failing && !fault_untouched(site, nth);
    MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
    CHECK((status != HSORT_OK) == (reached && comm.rank == failing), "%s: rank %d: status %d", case_text,
          comm.rank, status);
    CHECK(x.count == COUNT, "%s: %lld keys", case_text, (long long)x.count);
    comm_sum(&comm, x.moved_bytes, &moved_bytes);
    *moved += reached && moved_bytes > 0;
    if (!reached)
        check_result(&x, place, *rails, target_offset);
    for (int i = 0; i < 3; i++)
        drop_guarded(buffers[i], bytes);
    return reached;
}

/* No key moves after a kernel has failed: the lengths of messages are agreed on. The last ones, the merges, come too late
 * for that. Whatever fails, nobody waits for ever. */
static void test_failure(uint64_t seed, struct place *place, struct transport *transport)
{
    const enum fault_site sites[] = {FAULT_KERNEL, FAULT_COPY, FAULT_MPI};
    for (int failing = 0; comm.size > 1 && failing < comm.size; failing++)
        for (int i = 0; i < 3; i++) {
            int nth = 1, moved = 0;
            bool rails;
            while (run_failing(place, sites[i], failing, nth, seed, transport, &moved, &rails))
                nth++;
            CHECK(sites[i] != FAULT_KERNEL || (nth > 3 && moved == 1 + rails),
                  "%s: keys moved after %d of %d failures", case_text, moved, nth - 1);
        }
}
#endif

/* ---- made-up nodes ----------------------------------------------------------------------------------------------- */

/* Rank r on node node_of[r]. rates NULL: direct is not told of nodes.                              Collective. */
static void make_place(const int *node_of, const hsort_rates *prices)
{
    struct place *p = &places[places_made++];
    int most = 0, fewest = comm.size, ranks_on[MOST_RANKS] = {0};
    *p = (struct place){.comm = comm, .prices = prices};
    for (int r = 0; r < comm.size; r++) {
        p->node_of[r] = node_of[r];
        p->local_of[r] = ranks_on[node_of[r]]++;
        p->nodes = node_of[r] >= p->nodes ? node_of[r] + 1 : p->nodes;
    }
    for (int node = 0; node < p->nodes; node++) {
        most = ranks_on[node] > most ? ranks_on[node] : most;
        fewest = ranks_on[node] < fewest ? ranks_on[node] : fewest;
    }
    p->locals = most;
    if (most != fewest || most == 1 || p->nodes == 1 || !prices)
        p->nodes = p->locals = 0;
    MPI_Comm_split(comm.world, node_of[comm.rank], comm.rank, &p->comm.node);
    MPI_Comm_rank(p->comm.node, &p->comm.node_rank);
    MPI_Comm_size(p->comm.node, &p->comm.node_size);
    hsort_status status = direct_open(comm.size, &p->direct);
    if (status == HSORT_OK && prices)
        status = direct_find_nodes(p->direct, &p->comm, prices);
    CHECK(status == HSORT_OK, "place %d: %s", places_made - 1, status_text());
}

/* Nodes of every equal size: one after the other, in turns, shuffled. And of any size; and none.       Collective. */
static void make_places(uint64_t seed)
{
    int node_of[MOST_RANKS] = {0};
    for (int i = 0; i < 2; i++)
        hsort_rates_init(&rates[i], sizeof rates[i], HSORT_ENGINE_HOST, HSORT_TRANSPORT_AUTO);
    rates[0].value[HSORT_RATE_LINK] = 1e-3;
    rates[1].value[HSORT_RATE_NETWORK_LATENCY] = 1e6;
    make_place(node_of, NULL);
    make_place(node_of, &rates[1]);
    for (int r = 0; r < comm.size; r++)
        node_of[r] =
            r > 0 && (r == 1 || check_random(&seed) % 3) ? node_of[r - 1] : node_of[r - (r > 0)] + (r > 0);
    make_place(node_of, &rates[1]);
    for (int locals = 2; locals < comm.size; locals++)
        for (int kind = 0; kind < 3 && comm.size % locals == 0; kind++) {
            for (int r = 0; r < comm.size; r++)
                node_of[r] = kind == 0 ? r / locals : r % (comm.size / locals);
            for (int r = comm.size - 1; kind == 2 && r > 0; r--) {
                const int other = (int)(check_random(&seed) % (uint64_t)(r + 1)), node = node_of[r];
                node_of[r] = node_of[other];
                node_of[other] = node;
            }
            make_place(node_of, &rates[kind != 1]);
        }
}

static void test_places(uint64_t seed, struct transport *staged, struct transport *straight)
{
    make_places(seed);
    for (int i = 0; i < CASES; i++)
        run_case(i, seed, i % 4 ? staged : straight);
    CHECK(places_made == 3 ||
              (rails_taken > CASES / 20 && rails_over > CASES / 50 && rails_crowded > CASES / 50),
          "%d cases over rails, %d with room, %d crowded", rails_taken, rails_over, rails_crowded);
#ifdef HSORT_FAULTS
    test_failure(seed, &places[0], staged);
    if (places_made > 3) {
        test_failure(seed, &places[3], staged);
        test_failure(seed, &places[places_made - 1], straight);
    }
#endif
    for (int i = 0; i < places_made; i++) {
        direct_close(places[i].direct);
        MPI_Comm_free(&places[i].comm.node);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    struct transport *staged = NULL, *straight = NULL;
    CHECK(comm_open(MPI_COMM_WORLD, &comm) == HSORT_OK && comm.size <= MOST_RANKS, "%s", status_text());
    CHECK(engine_open_host(1, &engine) == HSORT_OK, "%s", status_text());
    CHECK(check_failures > 0 || (transport_open_staged(&comm, engine, 64, true, &staged) == HSORT_OK &&
                                 transport_open_mpi(&comm, engine, 1024, &straight) == HSORT_OK),
          "%s", status_text());
    if (check_failures == 0) {
        test_places(seed, staged, straight);
        staged->ops->close(staged);
        straight->ops->close(straight);
        engine->ops->close(engine);
        comm_close(&comm);
    }
    return ranks_finish();
}
