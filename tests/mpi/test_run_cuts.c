/* The cuts of many runs on each rank are the only right ones: in the order by (key, rank, run, position) exactly the keys
 * before each position lie before the cuts. There are two oracles, neither with anything of the method under test in it:
 *
 *   small runs   every rank makes the runs of all ranks, sorts all keys with qsort and counts whose keys lie before a position
 *   huge runs    no run exists: keys are computed from positions. The cuts must add up to the position, with no key
 *                before them greater than one behind
 *
 * Runs that are not sorted, as damaged memory would have them, may be an error, but all cuts lie within the runs, and no rank waits.
 *
 *     test_run_cuts        cases drawn by a seed
 *     test_run_cuts all    every number of runs, 1 to 40, with every kind of keys */
#include <omp.h>
#include <stdatomic.h>
#include "kernels/base/keytype.h"
#include "mpi/exchange/piece_messages.h"
#include "mpi/exchange/run_cuts.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 32, MOST_RUNS = 40, MOST_KEYS = 30, MOST_CUTS = 600, SMALL_CASES = 250, HUGE_CASES = 40 };

/* Kinds of keys; the last is for runs that follow each other, as the runs of sorted input do. */
enum kind { KIND_ANY, KIND_FEW, KIND_EQUAL, KIND_ENDS, KIND_FOLLOW, KINDS };

struct runs {
    int64_t runs;
    int64_t count[MOST_RUNS];
    uint64_t key[MOST_RUNS][MOST_KEYS];
    uint64_t step;   /* unless 0: huge runs; run j has keys (position * step + j * behind) */
    uint64_t behind; /* 1, or so much that the runs follow each other */
};

/* A key and where it lies. */
struct place {
    uint64_t key;
    int64_t rank, run, position;
};

static struct comm comm;
static struct runs of_rank[MOST_RANKS]; /* of every rank, on every rank */
static struct place *all;               /* [total] sorted */
static int64_t total, position[MOST_CUTS];
static int cuts, halves;

static uint64_t key_at(const void *state, int64_t run, int64_t at)
{
    const struct runs *own = state;
    CHECK(at >= 0 && at < own->count[run], "%s: key %lld of run %lld is looked at", faults_case,
          (long long)at, (long long)run);
    return own->step ? (uint64_t)at * own->step + (uint64_t)run * own->behind : own->key[run][at];
}

/* With find_within(): the ranges that it was given for its cuts. */
static const int64_t *window_begin, *window_end; /* [window_cuts * own runs] */
static int window_cuts;

static atomic_llong looks; /* at keys, since the last call of find() began */

static bool is_within(int64_t cut, int64_t run, int64_t at)
{
    const int64_t runs = of_rank[comm.rank].runs;
    return window_cuts == 0 || (cut >= 0 && cut < window_cuts && at >= window_begin[cut * runs + run] &&
                                at < window_end[cut * runs + run]);
}

/* Return codes that differ only in their upper halves, only in their lower halves, or in both. */
static key_code code_at(const void *state, int64_t cut, int64_t run, int64_t at)
{
    const key_code key = key_at(state, run, at);
    CHECK(omp_get_num_threads() <= comm.threads, "%s: %d threads search, not %d", faults_case,
          omp_get_num_threads(), comm.threads);
    atomic_fetch_add(&looks, 1);
    CHECK(is_within(cut, run, at), "%s: key %lld of run %lld does not lie in the range", faults_case,
          (long long)at, (long long)run);
    return halves == 0 ? key : halves == 1 ? key << 64 : key << 64 | key;
}

/* ---- Runs ------------------------------------------------------------------------------------------------------- */

static uint64_t draw_key(enum kind kind, uint64_t *random)
{
    const uint64_t draw = check_random(random);
    if (kind == KIND_EQUAL)
        return 7;
    if (kind == KIND_FEW)
        return draw % 5;
    if (kind == KIND_ENDS)
        return draw % 3 == 0 ? 0 : draw % 3 == 1 ? UINT64_MAX : draw;
    return kind == KIND_FOLLOW ? draw % 1000 : draw;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static int compare_places(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->run != right->run)
        return left->run < right->run ? -1 : 1;
    return left->position < right->position ? -1 : 1;
}

/* Make the runs of all ranks; if `runs` < 0, each rank has any number of runs, perhaps none. */
static void make_runs(enum kind kind, int64_t runs, uint64_t seed)
{
    total = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        struct runs *own = &of_rank[rank];
        own->step = 0;
        own->runs = runs >= 0 ? runs : (int64_t)(check_random(&seed) % (MOST_RUNS + 1));
        for (int64_t run = 0; run < own->runs; run++) {
            const uint64_t shape = check_random(&seed) % 4; // empty, of one key, of any number
            own->count[run] = shape < 2 ? (int64_t)shape : (int64_t)(check_random(&seed) % MOST_KEYS);
            for (int64_t i = 0; i < own->count[run]; i++)
                own->key[run][i] = draw_key(kind, &seed) + (kind == KIND_FOLLOW ? 1000 * (uint64_t)run : 0);
            qsort(own->key[run], (size_t)own->count[run], sizeof own->key[run][0], compare_keys);
            total += own->count[run];
        }
    }
}

static void sort_all(void)
{
    int64_t made = 0;
    all = realloc(all, (size_t)(total + 1) * sizeof *all);
    if (!all)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int rank = 0; rank < comm.size; rank++)
        for (int64_t run = 0; run < of_rank[rank].runs; run++)
            for (int64_t i = 0; i < of_rank[rank].count[run]; i++)
                all[made++] = (struct place){of_rank[rank].key[run][i], rank, run, i};
    qsort(all, (size_t)total, sizeof *all, compare_places);
}

/* Draw positions in any order, with both ends, and one position twice. */
static void draw_positions(int count, uint64_t *random)
{
    cuts = count;
    for (int cut = 0; cut < cuts; cut++)
        position[cut] = cut == 1   ? 0
                        : cut == 2 ? total
                        : cut == 3 ? position[0]
                                   : (int64_t)(check_random(random) % (uint64_t)(total + 1));
}

/* ---- Cuts, and whether they are right --------------------------------------------------------------------------- */

/* The caller frees what this returns: [cuts * own runs]. */
static int64_t *find(hsort_status *status)
{
    const struct runs *own = &of_rank[comm.rank];
    const struct run_set set = {.count = own->count, .code_at = code_at, .state = own};
    const size_t entries = (size_t)(cuts * own->runs);
    int64_t *cut_offset = malloc((entries + 1) * sizeof *cut_offset);
    const int at_once = (int)(1 + (position[0] + cuts) % RUN_CUTS_AT_ONCE); // any will do
    struct run_cuts *tables;
    if (!cut_offset || run_cuts_open(&comm, own->runs, at_once, &tables) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(cut_offset, 0xee, (entries + 1) * sizeof *cut_offset);
    halves = (halves + 1) % 3;
    comm.threads = 1 + halves;
    status_clear();
    atomic_store(&looks, 0);
    faults_watch(60);
    *status = run_cuts_find(tables, &set, total, position, cuts, cut_offset);
    faults_watch(0);
    int64_t canary;
    memset(&canary, 0xee, sizeof canary);
    CHECK(cut_offset[entries] == canary, "%s: written behind the cuts", faults_case);
    run_cuts_close(tables);
    return cut_offset;
}

/* Find the same cuts, `right` [cuts * own runs], once more, from any ranges that hold them. */
static void find_within(const int64_t *right, uint64_t seed)
{
    const struct runs *own = &of_rank[comm.rank];
    const struct run_set set = {.count = own->count, .code_at = code_at, .state = own};
    const int some = cuts < RUN_CUTS_AT_ONCE ? cuts : RUN_CUTS_AT_ONCE;
    const int64_t entries = some * own->runs;
    int64_t *begin = calloc((size_t)entries * 3 + 1, sizeof *begin), *end = begin + entries,
            *found = end + entries;
    struct run_cuts *tables;
    uint64_t random = seed + (uint64_t)comm.rank;
    if (!begin || run_cuts_open(&comm, own->runs, RUN_CUTS_AT_ONCE, &tables) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int64_t i = 0; i < entries; i++) {
        const int64_t count = own->count[i % own->runs], lower = (int64_t)(check_random(&random) % 5),
                      upper = (int64_t)(check_random(&random) % 5);
        begin[i] = right[i] > lower ? right[i] - lower : 0;
        end[i] = right[i] + upper < count ? right[i] + upper : count;
    }
    window_begin = begin;
    window_end = end;
    window_cuts = some;
    faults_watch(60);
    const hsort_status status = run_cuts_find_within(tables, &set, position, some, begin, end, found);
    faults_watch(0);
    window_cuts = 0;
    CHECK(status == HSORT_OK, "%s: within ranges: %s", faults_case, status_text());
    for (int64_t i = 0; i < entries; i++)
        CHECK(found[i] == right[i], "%s: within %lld .. %lld: %lld, right is %lld", faults_case,
              (long long)begin[i], (long long)end[i], (long long)found[i], (long long)right[i]);
    run_cuts_close(tables);
    free(begin);
}

static void check_small(const char *kind, int number, uint64_t seed, int count)
{
    hsort_status status;
    snprintf(faults_case, sizeof faults_case, "small case %d: %s, %lld keys, %lld runs here", number, kind,
             (long long)total, (long long)of_rank[comm.rank].runs);
    sort_all();
    draw_positions(count, &seed);
    int64_t *cut_offset = find(&status);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, status_text());
    for (int cut = 0; cut < cuts; cut++) {
        int64_t right[MOST_RUNS] = {0};
        for (int64_t i = 0; i < position[cut]; i++)
            if (all[i].rank == comm.rank)
                right[all[i].run]++;
        for (int64_t run = 0; run < of_rank[comm.rank].runs; run++) {
            const int64_t found = cut_offset[cut * of_rank[comm.rank].runs + run];
            CHECK(found == right[run], "%s: position %lld cuts run %lld at %lld, right is %lld", faults_case,
                  (long long)position[cut], (long long)run, (long long)found, (long long)right[run]);
        }
    }
    find_within(cut_offset, seed);
    free(cut_offset);
}

static const char *const kind_names[KINDS] = {"any keys", "few values", "one value",
                                              "least and greatest codes", "runs that follow each other"};

static int test_small(bool every, uint64_t seed)
{
    int number = 0;
    for (int kind = 0; kind < KINDS; kind++)
        for (int64_t runs = 1; every && runs <= MOST_RUNS; runs++) {
            make_runs((enum kind)kind, runs, seed + (uint64_t)number);
            check_small(kind_names[kind], number++, seed, 40);
        }
    for (int i = 0; i < SMALL_CASES; i++) {
        uint64_t random = seed + 1000003 * (uint64_t)number;
        const enum kind kind = (enum kind)(check_random(&random) % KINDS);
        make_runs(kind, i % 2 ? -1 : (int64_t)(1 + check_random(&random) % MOST_RUNS), random);
        check_small(kind_names[kind], number++, random,
                    i % 50 == 0 ? MOST_CUTS : 1 + (int)(check_random(&random) % 30));
    }
    return number;
}

/* ---- Runs that need not exist ----------------------------------------------------------------------------------- */

/* Find the greatest key before the cuts of this rank and the least key behind them. */
static void keys_at(const int64_t *cut_offset, uint64_t *before, uint64_t *behind)
{
    const struct runs *own = &of_rank[comm.rank];
    *before = 0;
    *behind = UINT64_MAX;
    for (int64_t run = 0; run < own->runs; run++) {
        const int64_t cut = cut_offset[run];
        if (cut > 0 && key_at(own, run, cut - 1) > *before)
            *before = key_at(own, run, cut - 1);
        if (cut < own->count[run] && key_at(own, run, cut) < *behind)
            *behind = key_at(own, run, cut);
    }
}

static void test_huge(int number, uint64_t seed)
{
    hsort_status status;
    snprintf(faults_case, sizeof faults_case, "huge case %d", number);
    total = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        struct runs *own = &of_rank[rank];
        own->runs = (int64_t)(check_random(&seed) % 20);
        own->step = 1 + (check_random(&seed) & 0xffff) % 1000;
        own->behind = number % 2 ? (uint64_t)1 << 59 : 1;
        for (int64_t run = 0; run < own->runs; run++) {
            own->count[run] = (int64_t)((check_random(&seed) >> 19) >> check_random(&seed) % 45);
            total += own->count[run];
        }
    }
    draw_positions(10, &seed);
    int64_t *cut_offset = find(&status);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, status_text());
    for (int cut = 0; cut < cuts; cut++) {
        const int64_t *own_cuts = cut_offset + cut * of_rank[comm.rank].runs;
        uint64_t before, behind, most, least;
        int64_t here = 0, sum;
        for (int64_t run = 0; run < of_rank[comm.rank].runs; run++)
            here += own_cuts[run];
        keys_at(own_cuts, &before, &behind);
        MPI_Allreduce(&here, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(&before, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&behind, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
        CHECK(sum == position[cut], "%s: %lld keys before position %lld", faults_case, (long long)sum,
              (long long)position[cut]);
        CHECK(most <= least, "%s: key %llu lies before key %llu", faults_case, (unsigned long long)most,
              (unsigned long long)least);
    }
    free(cut_offset);
}

/* If the keys of all runs are distributed alike, estimates find the cuts with few looks: fewer than middle keys would need, which take
 * a search of the rest of each range in each of at least BITS rounds. */
static void test_few_looks(void)
{
    enum { RUNS = 16, BITS = 40, CUTS = 30 };
    hsort_status status;
    snprintf(faults_case, sizeof faults_case, "keys that lie alike");
    total = 0;
    for (int rank = 0; rank < comm.size; rank++) {
        of_rank[rank].runs = RUNS;
        of_rank[rank].step = 1000;
        of_rank[rank].behind = 1;
        for (int64_t run = 0; run < RUNS; run++)
            total += of_rank[rank].count[run] = (int64_t)1 << BITS;
    }
    cuts = CUTS;
    for (int cut = 0; cut < CUTS; cut++)
        position[cut] = total / (CUTS + 1) * (cut + 1);
    free(find(&status));
    const long long each = atomic_load(&looks) / (CUTS * RUNS);
    CHECK(status == HSORT_OK, "%s: %s", faults_case, status_text());
    CHECK(each < BITS * BITS / 4, "%s: %lld looks at each run for a cut", faults_case, each);
}

/* With runs that are not sorted, the cuts that come out lie within the runs, on every rank after equally many messages. */
static void test_unsorted(int number, uint64_t seed)
{
    hsort_status status;
    snprintf(faults_case, sizeof faults_case, "unsorted case %d", number);
    uint64_t own_seed = seed + (uint64_t)comm.rank;
    make_runs(KIND_ANY, -1, seed);
    for (int64_t run = 0; run < of_rank[comm.rank].runs; run++)
        for (int64_t i = 0; i < of_rank[comm.rank].count[run]; i++)
            of_rank[comm.rank].key[run][i] = check_random(&own_seed) % 100;
    draw_positions(10, &seed);
    int64_t *cut_offset = find(&status);
    CHECK(status == HSORT_OK || status == HSORT_INTERNAL, "%s: %s", faults_case, status_text());
    status_clear();
    for (int64_t i = 0; i < cuts * of_rank[comm.rank].runs; i++)
        CHECK(cut_offset[i] >= 0 && cut_offset[i] <= of_rank[comm.rank].count[i % of_rank[comm.rank].runs],
              "%s: cut %lld", faults_case, (long long)cut_offset[i]);
    free(cut_offset);
}

/* More cuts than a message can count are refused, before there are tables for them. */
static void test_too_many_cuts(void)
{
    enum { RUNS = 1 << 18, SEGMENTS = 1 << 14 };
    struct engine *engine;
    struct piece_messages *messages = NULL;
    int64_t runs_of[MOST_RANKS], first_segment[MOST_RANKS + 1] = {0};
    for (int rank = 0; rank < comm.size; rank++) {
        runs_of[rank] = RUNS;
        first_segment[rank + 1] = first_segment[rank] + SEGMENTS;
    }
    CHECK(engine_open_host(1, 0, &engine) == HSORT_OK, "%s", status_text());
    const struct piece_plan plan = {
        .comm = &comm, .engine = engine, .runs_of = runs_of, .first_segment = first_segment};
    const hsort_status status = piece_messages_open(&plan, &messages);
    CHECK(comm.size == 1 ||
              (status == HSORT_HOST_MEMORY && !messages && strstr(status_text(), "more cuts than")),
          "%d: '%s'", status, status_text());
    engine->ops->close(engine);
}

int main(int argc, char **argv)
{
    int rank, size;
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda) || comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK)
        return 1;
    const uint64_t seed = ranks_seed();
    uint64_t shared_seed = seed;
    const int small = test_small(argc > 1 && strcmp(argv[1], "all") == 0, check_random(&shared_seed));
    for (int i = 0; i < HUGE_CASES; i++) {
        test_huge(i, check_random(&shared_seed));
        test_unsorted(i, check_random(&shared_seed));
    }
    test_few_looks();
    test_too_many_cuts();
    if (rank == 0)
        printf("%d small cases, %d huge ones, on %d ranks\n", small, HUGE_CASES, size);
    free(all);
    comm_close(&comm);
    return ranks_finish();
}
