/* The cuts of all ranks' runs are the only right ones: in the order by (key, rank, position) exactly the keys before
 * each border lie before the cuts. There are two oracles, neither with anything of the method under test in it:
 *
 *   small runs   every rank makes the runs of all ranks, sorts all keys with qsort and counts whose keys lie before a border
 *   huge runs    no run exists: an engine that can only gather() and search() computes keys from positions and counts
 *                by arithmetic, so that runs of up to 2^45 keys can be cut
 *
 * Rounds are counted. A rank that cannot read its keys, or reads nonsense, makes no other rank wait. */
#include "tests/mpi/made_up_run.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"
#include "mpi/exchange/splitters.h"

enum { MOST_RANKS = 32, MOST_KEYS = 3000, SMALL_CASES = 1000, VIRTUAL_CASES = 150, NONSENSE_CASES = 100 };

static struct comm comm;
static struct splitters *splitters;
static char case_text[160];

/* ---- A run that need not exist ---------------------------------------------------------------------------------- */

static struct run runs[MOST_RANKS]; /* of every rank, on every rank */
static int calls_before_failure;    /* of gather and search; 0: none fails */
static int searches;
static uint64_t nonsense; /* unless 0, the state of the random numbers that a search returns */

static hsort_status maybe_fail(void)
{
    if (calls_before_failure > 0 && --calls_before_failure == 0)
        return status_fail(HSORT_CUDA, "made to fail");
    return HSORT_OK;
}

/* A key of 16 bytes is a key of 8 bytes in both halves: a multiple of 2^64 + 1, which this returns. */
static key_code stretch(int key_bytes)
{
    return key_bytes == 16 ? ((key_code)1 << 64) + 1 : 1;
}

/* Count the keys of a run that are less than `code`, or not greater; the keys need not be sorted. */
static int64_t count_below(const struct run *run, uint64_t code, bool or_equal)
{
    int64_t below = 0;
    for (int64_t i = 0; run->keys && i < run->count; i++)
        below += run->keys[i] < code || (or_equal && run->keys[i] == code);
    if (run->keys || code < run->start || (code == run->start && !or_equal))
        return below;
    const uint64_t rise = code - run->start;
    const uint64_t steps = rise / run->step + (or_equal || rise % run->step != 0);
    if (steps > (uint64_t)(run->count / run->width))
        return run->count;
    below = (int64_t)steps * run->width;
    return below < run->count ? below : run->count;
}

static hsort_status gather(struct engine *engine, int key_bytes, const void *keys, const int64_t *positions,
                           int count, key_code *codes)
{
    (void)engine;
    const struct run *run = keys;
    CHECK(KEY_WIDTH_KNOWN(key_bytes), "%d bytes", key_bytes);
    CHECK(count > 0 && count <= ENGINE_GATHER_MAX, "%s: %d keys at once", case_text, count);
    for (int i = 0; i < count; i++) {
        CHECK(positions[i] >= 0 && positions[i] < run->count, "%s: key %lld of %lld", case_text,
              (long long)positions[i], (long long)run->count);
        codes[i] = key_at(run, positions[i]) * stretch(key_bytes);
    }
    return maybe_fail();
}

static hsort_status search(struct engine *engine, int key_bytes, const void *keys, int64_t count,
                           const key_code *probes, int probe_count, int64_t *less, int64_t *not_greater)
{
    (void)engine;
    const struct run *run = keys;
    CHECK(probe_count > 0 && probe_count <= ENGINE_SEARCH_MAX && count == run->count, "%s: %d probes",
          case_text, probe_count);
    for (int i = 0; i < probe_count; i++) {
        CHECK(i == 0 || probes[i] > probes[i - 1], "%s: probes do not ascend", case_text);
        const uint64_t code = (uint64_t)(probes[i] / stretch(key_bytes));
        less[i] = count_below(run, code, probes[i] % stretch(key_bytes) != 0); // between two keys: both
        not_greater[i] = count_below(run, code, true);
        if (nonsense) {
            less[i] = (int64_t)(check_random(&nonsense) % (uint64_t)(count + 1));
            not_greater[i] = (int64_t)(check_random(&nonsense) % (uint64_t)(count + 1));
        }
    }
    searches++;
    return maybe_fail();
}

static const struct engine_ops look_only = {.name = "look only", .gather = gather, .search = search};
static struct engine engine = {.ops = &look_only};

/* ---- Cuts, and whether they are right --------------------------------------------------------------------------- */

/* Find the cuts of the runs. Returns the greatest number of rounds of any rank. */
static int find(const int64_t *target_offset, int key_bytes, hsort_status *status, int64_t *cut_offset)
{
    struct run *own = &runs[comm.rank];
    struct exchange x = {
        .comm = &comm, .engine = &engine, .key_bytes = key_bytes, .keys = own, .count = own->count};
    for (int r = 0; r < comm.size; r++)
        x.capacity = runs[r].count > x.capacity ? runs[r].count : x.capacity;
    status_clear();
    searches = 0;
    memset(cut_offset, 0xee, ((size_t)comm.size + 1) * sizeof *cut_offset);
    *status = splitters_find(splitters, &x, target_offset, cut_offset);
    CHECK(x.count == own->count && x.keys == own, "%s: the run was touched", case_text);
    CHECK(cut_offset[0] == 0 && cut_offset[comm.size] == own->count, "%s: cuts from %lld to %lld", case_text,
          (long long)cut_offset[0], (long long)cut_offset[comm.size]);
    for (int r = 0; r < comm.size; r++)
        CHECK(cut_offset[r] <= cut_offset[r + 1], "%s: cuts do not ascend", case_text);
    int rounds;
    MPI_Allreduce(&searches, &rounds, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return rounds;
}

/* Where the oracle cuts this rank's run for a border at `position`. */
typedef int64_t oracle(int64_t position);

static void check_cuts(const int64_t *target_offset, int key_bytes, int rounds_max, oracle *right)
{
    hsort_status status;
    int64_t cut_offset[MOST_RANKS + 1];
    const int rounds = find(target_offset, key_bytes, &status, cut_offset);
    CHECK(status == HSORT_OK, "%s: %s", case_text, status_text());
    CHECK(rounds <= rounds_max, "%s: %d rounds, expected %d", case_text, rounds, rounds_max);
    for (int r = 1; r < comm.size; r++) {
        const int64_t cut = right(target_offset[r]);
        CHECK(cut_offset[r] == cut,
              "%s: rank %d cuts at %lld for the border before rank %d, at position %lld; right is %lld",
              case_text, comm.rank, (long long)cut_offset[r], r, (long long)target_offset[r], (long long)cut);
    }
}

static void targets(enum layout layout, int64_t total, uint64_t seed, int64_t *target_offset)
{
    int64_t counts[MOST_RANKS];
    layout_counts(layout, total, comm.size, seed, counts);
    target_offset[0] = 0;
    for (int r = 0; r < comm.size; r++)
        target_offset[r + 1] = target_offset[r] + counts[r];
}

/* ---- Small runs, sorted together -------------------------------------------------------------------------------- */

struct owned {
    uint64_t key;
    int rank;
};

static uint64_t small_keys[MOST_KEYS + 1];
static struct owned all_keys[MOST_KEYS + 1];
static int64_t all_count;

static int compare_keys(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int compare_owned(const void *a, const void *b)
{
    const struct owned *left = a, *right = b;
    return left->key != right->key ? compare_keys(&left->key, &right->key) : left->rank - right->rank;
}

static int64_t counted_by_sorting(int64_t position)
{
    int64_t own = 0;
    for (int64_t i = 0; i < position; i++)
        own += all_keys[i].rank == comm.rank;
    return own;
}

/* X(name): what keys are like */
#define SKEWS(X) \
    X(ANY) X(EQUAL) X(TWO) X(FEW) X(MAGNITUDES) X(ONE_HEAVY) X(IN_ORDER) X(REVERSE) X(GREATEST) X(ONE_BUSY)

enum skew {
#define X(name) name,
    SKEWS(X)
#undef X
        SKEWS_COUNT
};

static uint64_t draw_key(enum skew skew, int rank, uint64_t greatest, uint64_t *random)
{
    const uint64_t any = check_random(random) & greatest, draw = check_random(random);
    switch (skew) {
    case EQUAL:
        return 42;
    case TWO:
        return draw % 2 ? greatest - 1 : 3;
    case FEW:
        return any % 9;
    case MAGNITUDES:
        return any >> draw % 64;
    case ONE_HEAVY:
        return draw % 10 ? 1000 : any;
    case IN_ORDER:
        return (uint64_t)rank * 1000 + any % 1000;
    case REVERSE:
        return (uint64_t)(comm.size - rank) * 1000 + any % 1000;
    case GREATEST:
        return draw % 3 ? greatest : 0;
    case ONE_BUSY: // close together on one rank, far apart elsewhere
        return rank == comm.size / 2 ? greatest / 2 + any % 5000 : any;
    default:
        return any;
    }
}

/* Make the runs of all ranks, and all keys sorted, from a seed. */
static void make_small(enum skew skew, enum layout layout, int64_t total, uint64_t greatest, uint64_t seed)
{
    int64_t counts[MOST_RANKS], at = 0;
    layout_counts(layout, total, comm.size, seed, counts);
    for (int r = 0; r < comm.size; r++) {
        for (int64_t i = 0; i < counts[r]; i++)
            small_keys[at + i] = draw_key(skew, r, greatest, &seed);
        qsort(small_keys + at, (size_t)counts[r], sizeof small_keys[0], compare_keys);
        for (int64_t i = 0; i < counts[r]; i++)
            all_keys[at + i] = (struct owned){small_keys[at + i], r};
        runs[r] = (struct run){.count = counts[r], .keys = small_keys + at};
        at += counts[r];
    }
    all_count = at;
    qsort(all_keys, (size_t)all_count, sizeof all_keys[0], compare_owned);
}

static void test_small(uint64_t seed)
{
    for (int i = 0; i < SMALL_CASES; i++) {
        uint64_t random = seed + (uint64_t)i * 1000003;
        const uint64_t draw = check_random(&random);
        const enum skew skew = (enum skew)(i % SKEWS_COUNT);
        const enum layout layout = (enum layout)(check_random(&random) % LAYOUTS),
                          out_layout = (enum layout)(check_random(&random) % LAYOUTS);
        const int64_t total = (int64_t)(check_random(&random) % (draw % 8 ? 60 : MOST_KEYS));
        const int key_bytes = draw & 64 ? 4 : draw & 128 ? 16 : 8;
        int64_t target_offset[MOST_RANKS + 1];
        snprintf(case_text, sizeof case_text, "case %d: %lld keys of skew %d, layouts %d and %d, %d bytes", i,
                 (long long)total, skew, layout, out_layout, key_bytes);
        make_small(skew, layout, total, key_bytes == 4 ? UINT32_MAX : UINT64_MAX, random);
        targets(out_layout, total, random + 1, target_offset);
        check_cuts(target_offset, key_bytes, 5, counted_by_sorting);
    }
}

/* ---- Huge runs, cut by counting --------------------------------------------------------------------------------- */

static int64_t counted_by_codes(int64_t position)
{
    int64_t total = 0, less = 0, before = 0;
    uint64_t low = 0, high = UINT64_MAX;
    for (int r = 0; r < comm.size; r++)
        total += runs[r].count;
    if (position >= total)
        return runs[comm.rank].count;
    while (low < high) { // the smallest code that more than `position` keys do not exceed
        const uint64_t middle = low + (high - low) / 2;
        int64_t not_greater = 0;
        for (int r = 0; r < comm.size; r++)
            not_greater += count_below(&runs[r], middle, true);
        if (not_greater > position)
            high = middle;
        else
            low = middle + 1;
    }
    for (int r = 0; r < comm.size; r++)
        less += count_below(&runs[r], low, false);
    for (int r = 0; r < comm.rank; r++)
        before += count_below(&runs[r], low, true) - count_below(&runs[r], low, false);
    const int64_t own_less = count_below(&runs[comm.rank], low, false);
    const int64_t equal = count_below(&runs[comm.rank], low, true) - own_less;
    const int64_t wanted = position - less - before;
    return own_less + (wanted < 0 ? 0 : wanted > equal ? equal : wanted);
}

static int64_t make_virtual(uint64_t random)
{
    static const int64_t counts[6] = {(INT64_C(1) << 31) + 1, INT64_C(1) << 40, INT64_C(1) << 45, 1000, 0,
                                      (INT64_C(1) << 32) - 1};
    int64_t total = 0;
    for (int r = 0; r < comm.size; r++) {
        runs[r] = virtual_run(counts, &random);
        total += runs[r].count;
    }
    return total;
}

static void test_virtual(uint64_t seed)
{
    int64_t target_offset[MOST_RANKS + 1];
    for (int i = 0; i < VIRTUAL_CASES; i++) {
        const uint64_t random = seed + (uint64_t)i * 1000003;
        snprintf(case_text, sizeof case_text, "virtual case %d", i);
        targets((enum layout)(i % LAYOUTS), make_virtual(random), random, target_offset);
        check_cuts(target_offset, i / LAYOUTS % 2 ? 16 : 8, 12, counted_by_codes);
    }
    // Runs are alike on all ranks, with 2^31 keys each: the first round leaves 2^31 / 2^12 keys or so, each further round a thousandth.
    snprintf(case_text, sizeof case_text, "interleaved runs");
    for (int r = 0; r < comm.size; r++)
        runs[r] = (struct run){.count = INT64_C(1) << 31, .width = 1, .start = (uint64_t)r, .step = 1000};
    targets(LAYOUT_BALANCED, (int64_t)comm.size << 31, seed, target_offset);
    check_cuts(target_offset, 8, 5, counted_by_codes);
    check_cuts(target_offset, 16, 5, counted_by_codes);
    // So many keys that offers alone would take a round more: the codes of evenly spread keys are estimated.
    snprintf(case_text, sizeof case_text, "long interleaved runs");
    for (int r = 0; r < comm.size; r++)
        runs[r] = (struct run){.count = INT64_C(1) << 45, .width = 1, .start = (uint64_t)r, .step = 1000};
    targets(LAYOUT_BALANCED, (int64_t)comm.size << 45, seed, target_offset);
    check_cuts(target_offset, 8, comm.size <= 3 ? 4 : 5, counted_by_codes);
    check_cuts(target_offset, 16, comm.size <= 3 ? 4 : 5, counted_by_codes);
}

/* ---- Failure ---------------------------------------------------------------------------------------------------- */

/* The first, second, ... call to the engine on one rank fails, until none is left to fail. */
static void test_failure(uint64_t seed)
{
    int64_t target_offset[MOST_RANKS + 1], cut_offset[MOST_RANKS + 1];
    targets(LAYOUT_RANDOM, make_virtual(seed), seed, target_offset);
    for (int failing = 0; failing < comm.size; failing++)
        for (int nth = 1, reached = 1; reached; nth++) {
            hsort_status status;
            snprintf(case_text, sizeof case_text, "call %d fails on rank %d", nth, failing);
            calls_before_failure = comm.rank == failing ? nth : 0;
            find(target_offset, 8, &status, cut_offset);
            reached = comm.rank == failing && calls_before_failure == 0;
            calls_before_failure = 0;
            MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
            CHECK(status == (reached && comm.rank == failing ? HSORT_CUDA : HSORT_OK),
                  "%s: rank %d has status %d", case_text, comm.rank, status);
        }
}

/* Runs that are not sorted, as a rank that failed holds them, and searches in them that find anything, end in some cuts
 * after no more rounds than keys have bits. */
static void test_nonsense(uint64_t seed)
{
    int64_t target_offset[MOST_RANKS + 1], cut_offset[MOST_RANKS + 1];
    for (int i = 0; i < NONSENSE_CASES; i++) {
        uint64_t random = seed + (uint64_t)i;
        const int64_t total = (int64_t)(check_random(&random) % MOST_KEYS);
        hsort_status status;
        snprintf(case_text, sizeof case_text, "nonsense %d", i);
        make_small(ANY, (enum layout)(i % LAYOUTS), total, UINT64_MAX, random);
        for (int64_t at = 0; at < total; at++)
            small_keys[at] = check_random(&random);
        nonsense = i % 3 ? seed + (uint64_t)(comm.size * i + comm.rank) : 0;
        // Some borders are no positions of these keys either.
        targets(LAYOUT_RANDOM, i % 2 ? total : 3 * total + 5, random, target_offset);
        const int key_bytes = i / 2 % 2 ? 16 : 8,
                  rounds = find(target_offset, key_bytes, &status, cut_offset);
        CHECK(status == HSORT_OK && rounds <= 8 * key_bytes + 1, "%s: status %d after %d rounds", case_text,
              status, rounds);
    }
    nonsense = 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    const hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    CHECK(status == HSORT_OK && comm.size <= MOST_RANKS, "%d ranks: %s", comm.size, status_text());
    CHECK(splitters_open(comm.size, &splitters) == HSORT_OK, "%s", status_text());
    if (check_failures == 0) {
        test_small(seed);
        test_virtual(seed);
        test_failure(seed);
        test_nonsense(seed);
    }
    splitters_close(splitters);
    if (status == HSORT_OK)
        comm_close(&comm);
    return ranks_finish();
}
