/* The cut between two ranks' runs is the only right one: the lower rank keeps as many keys as it has room for, the lowest
 * of both, and of equal keys those that need not move stay. There are two oracles:
 *
 *   small runs   both ranks know both runs and merge them, key by key
 *   huge runs    no run exists: an engine that can only gather() computes each key from its position, so that
 *                runs of 2^31+1 and 2^40 keys can be cut. The answer follows from counting keys below a value, which
 *                is arithmetic for such a run, so nothing of the method under test is in it. */
#include "mpi/exchange/split.h"
#include "tests/mpi/made_up_run.h"
#include "tests/support/ranks.h"

enum { SMALL = 40, LARGE = 5000, PAIRS = 4000, VIRTUAL_PAIRS = 1000 };

static struct comm comm;

/* ---- A run that need not exist ------------------------------------------------------------------------ */

static int gathers_before_failure; // 0: none fails

/* A key of 16 bytes has the key in both halves, so that such keys are in the same order and differ in their lowest bits. */
static key_code wide_code(int key_bytes, uint64_t key)
{
    return key_bytes == 16 ? (key_code)key << 64 | key : key;
}

static hsort_status gather(struct engine *engine, int key_bytes, const void *keys, const int64_t *positions,
                           int count, key_code *codes)
{
    (void)engine;
    const struct run *run = keys;
    CHECK(KEY_WIDTH_KNOWN(key_bytes), "%d bytes", key_bytes);
    CHECK(count > 0 && count <= ENGINE_GATHER_MAX, "%d keys at once", count);
    for (int i = 0; i < count; i++) {
        CHECK(positions[i] >= 0 && positions[i] < run->count, "key %lld of %lld", (long long)positions[i],
              (long long)run->count);
        codes[i] = wide_code(key_bytes, key_at(run, positions[i]));
    }
    if (gathers_before_failure > 0 && --gathers_before_failure == 0)
        return status_fail(HSORT_CUDA, "gather was made to fail");
    return HSORT_OK;
}

static const struct engine_ops gather_only = {.name = "gather only", .gather = gather};
static struct engine engine = {.ops = &gather_only};

/* ---- One cut -------------------------------------------------------------------------------------------- */

struct cut {
    int64_t lower_keeps, lower_gets; /* the higher rank keeps and gets what is left */
};

static void check_cut(const struct run *lower, const struct run *higher, int64_t capacity, int key_bytes,
                      struct cut right)
{
    const bool is_lower = comm.rank == 0;
    const struct run *own = is_lower ? lower : higher;
    struct exchange x = {.comm = &comm, .engine = &engine, .key_bytes = key_bytes, .capacity = capacity};
    x.keys = (void *)own;
    x.count = own->count;
    int64_t kept = -1, incoming = -1;
    status_clear();
    const hsort_status status = split_pair(&x, 1 - comm.rank, &kept, &incoming);
    const int64_t keeps = is_lower ? right.lower_keeps : higher->count - right.lower_gets;
    const int64_t gets = is_lower ? right.lower_gets : lower->count - right.lower_keeps;
    CHECK(status == HSORT_OK, "%s", status_text());
    CHECK(kept == keeps && incoming == gets,
          "rank %d, runs of %lld and %lld, capacity %lld: keeps %lld and gets %lld instead of %lld and %lld",
          comm.rank, (long long)lower->count, (long long)higher->count, (long long)capacity, (long long)kept,
          (long long)incoming, (long long)keeps, (long long)gets);
    CHECK(x.count == own->count && x.keys == (const void *)own && x.moved_bytes == 0, "the run was touched");
}

/* ---- Small runs, merged key by key ------------------------------------------------------------------- */

static struct cut merged_cut(const struct run *lower, const struct run *higher, int64_t capacity)
{
    struct cut cut = {0, 0};
    while (cut.lower_keeps + cut.lower_gets < capacity) {
        const bool from_lower =
            cut.lower_keeps < lower->count &&
            (cut.lower_gets == higher->count || lower->keys[cut.lower_keeps] <= higher->keys[cut.lower_gets]);
        if (from_lower)
            cut.lower_keeps++;
        else if (cut.lower_gets < higher->count)
            cut.lower_gets++;
        else
            break;
    }
    return cut;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint64_t lower_keys[LARGE], higher_keys[LARGE];

/* Fill a run with `count` keys from `base` on, of `values` different values. */
static void fill_run(struct run *run, int64_t count, uint64_t base, uint64_t values, uint64_t *random)
{
    run->count = count;
    for (int64_t i = 0; i < count; i++)
        run->keys[i] = base + check_random(random) % values;
    qsort(run->keys, (size_t)count, sizeof run->keys[0], compare_keys);
}

static void test_merged(uint64_t random)
{
    static const uint64_t values[6] = {1, 2, 5, 30, 10000, UINT64_C(1) << 32};
    struct run lower = {.keys = lower_keys}, higher = {.keys = higher_keys};
    for (int pair = 0; pair < PAIRS; pair++) {
        const int64_t most = pair % 20 == 0 ? LARGE : SMALL;
        const uint64_t different = values[check_random(&random) % 6];
        // One in three pairs overlaps only in part, or not at all.
        const uint64_t apart = check_random(&random) % 3 == 0 ? check_random(&random) % (2 * different) : 0;
        const bool swapped = check_random(&random) % 2;
        const int64_t low_count = (int64_t)(check_random(&random) % (uint64_t)(most + 1));
        const int64_t high_count = (int64_t)(check_random(&random) % (uint64_t)(most + 1));
        fill_run(&lower, low_count, swapped ? apart : 0, different, &random);
        fill_run(&higher, high_count, swapped ? 0 : apart, different, &random);
        const int64_t larger = low_count > high_count ? low_count : high_count;
        const uint64_t kind = check_random(&random) % 3; // short shards: of one rank, of both, or any
        const int64_t capacity = kind == 0   ? larger
                              : kind == 1 ? larger + 1 + (int64_t)(check_random(&random) % 3)
                                          : larger + (int64_t)(check_random(&random) % (uint64_t)(most + 1));
        const bool narrow = apart + different <= UINT32_MAX && check_random(&random) % 2;
        check_cut(&lower, &higher, capacity, narrow ? 4 : pair % 2 ? 16 : 8, merged_cut(&lower, &higher, capacity));
    }
}

/* Pairs in order, all keys equal, empty runs: nothing moves except what a short lower shard must be given. */
static void test_at_rest(void)
{
    struct run lower = {.keys = lower_keys}, higher = {.keys = higher_keys};
    uint64_t random = 1;
    for (int64_t count = 0; count <= LARGE; count = count * 3 + 1) {
        fill_run(&lower, count, 0, 100, &random);
        fill_run(&higher, count, 99, 100, &random);
        check_cut(&lower, &higher, count, 16, (struct cut){count, 0});
        fill_run(&lower, count, 7, 1, &random);
        fill_run(&higher, count, 7, 1, &random);
        check_cut(&lower, &higher, count, 8, (struct cut){count, 0});
        fill_run(&higher, 0, 0, 1, &random);
        check_cut(&lower, &higher, count + 5, 8, (struct cut){count, 0});
        check_cut(&higher, &lower, count, 8, (struct cut){0, count});
    }
}

/* ---- Huge runs, cut by counting ------------------------------------------------------------------------ */

/* Count the keys of a run that are less than `value`, or not greater. */
static int64_t count_below(const struct run *run, uint64_t value, bool or_equal)
{
    if (value < run->start || (value == run->start && !or_equal))
        return 0;
    const uint64_t rise = value - run->start;
    const uint64_t whole_steps = or_equal ? rise / run->step + 1 : (rise + run->step - 1) / run->step;
    if (whole_steps > (uint64_t)(run->count / run->width))
        return run->count;
    const int64_t below = (int64_t)whole_steps * run->width;
    return below < run->count ? below : run->count;
}

static struct cut counted_cut(const struct run *lower, const struct run *higher, int64_t capacity)
{
    const int64_t both = lower->count + higher->count;
    const int64_t low = both < capacity ? both : capacity;
    if (low == 0)
        return (struct cut){0, 0};
    // The value of the last key that the lower rank ends with: the smallest value that `low` keys do not exceed.
    uint64_t begin = 0, end = UINT64_MAX;
    while (begin < end) {
        const uint64_t middle = begin + (end - begin) / 2;
        if (count_below(lower, middle, true) + count_below(higher, middle, true) >= low)
            end = middle;
        else
            begin = middle + 1;
    }
    const int64_t less = count_below(lower, begin, false), less_above = count_below(higher, begin, false);
    const int64_t equal = count_below(lower, begin, true) - less, wanted = low - less - less_above;
    const int64_t keeps = less + (equal < wanted ? equal : wanted);
    return (struct cut){keeps, low - keeps};
}

static void test_counted(uint64_t random)
{
    const int64_t many = (INT64_C(1) << 31) + 1;
    const int64_t counts[6] = {many, INT64_C(1) << 40, INT64_MAX / 4, 1000, 1, (INT64_C(1) << 32) - 1};
    // Interleaved, in order, in reverse, all equal: runs whose cuts are known without counting.
    struct run even = {.count = many, .width = 1, .start = 0, .step = 2};
    struct run odd = {.count = many, .width = 1, .start = 1, .step = 2};
    struct run above = {.count = many, .width = 1, .start = UINT64_C(1) << 40, .step = 1};
    struct run equal = {.count = INT64_C(1) << 40, .width = INT64_C(1) << 41, .start = 5, .step = 1};
    check_cut(&even, &odd, many, 8, (struct cut){many / 2 + 1, many / 2});
    check_cut(&even, &above, many, 8, (struct cut){many, 0});
    check_cut(&above, &even, many, 8, (struct cut){0, many});
    check_cut(&above, &even, many + 7, 8, (struct cut){7, many});
    check_cut(&equal, &equal, equal.count, 8, (struct cut){equal.count, 0});
    check_cut(&equal, &equal, equal.count + many, 8, (struct cut){equal.count, many});
    for (int pair = 0; pair < VIRTUAL_PAIRS; pair++) {
        const struct run lower = virtual_run(counts, &random), higher = virtual_run(counts, &random);
        const int64_t larger = lower.count > higher.count ? lower.count : higher.count;
        const int64_t capacity = larger + (int64_t)(check_random(&random) % 3 * (uint64_t)(larger / 5));
        check_cut(&lower, &higher, capacity, pair % 2 ? 16 : 8, counted_cut(&lower, &higher, capacity));
    }
}

/* ---- Failure ---------------------------------------------------------------------------------------------- */

/* A rank that cannot read its keys says so; its partner does not wait for ever, and both name the same number of keys. */
static void test_failure(void)
{
    const struct run run = {.count = INT64_C(1) << 40, .width = 1, .start = (uint64_t)comm.rank, .step = 2};
    for (int failing = 0; failing < 2; failing++)
        for (int nth = 1, reached = 1; reached; nth++) {
            struct exchange x = {.comm = &comm, .engine = &engine, .key_bytes = 8, .capacity = run.count};
            x.keys = (void *)&run;
            x.count = run.count;
            int64_t kept = 0, incoming = 0;
            status_clear();
            gathers_before_failure = comm.rank == failing ? nth : 0;
            const hsort_status status = split_pair(&x, 1 - comm.rank, &kept, &incoming);
            reached = comm.rank == failing && gathers_before_failure == 0;
            gathers_before_failure = 0;
            MPI_Bcast(&reached, 1, MPI_INT, failing, MPI_COMM_WORLD);
            CHECK(status == (reached && comm.rank == failing ? HSORT_CUDA : HSORT_OK),
                  "rank %d, gather %d: %d", comm.rank, nth, status);
            int64_t outgoing = run.count - kept, theirs = -1;
            MPI_Sendrecv(&outgoing, 1, MPI_INT64_T, 1 - comm.rank, 0, &theirs, 1, MPI_INT64_T, 1 - comm.rank,
                         0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(theirs == incoming && kept >= 0 && kept <= run.count,
                  "rank %d awaits %lld keys, is sent %lld", comm.rank, (long long)incoming,
                  (long long)theirs);
            CHECK(kept + incoming == run.count, "rank %d ends with %lld keys", comm.rank,
                  (long long)(kept + incoming));
        }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const uint64_t seed = ranks_seed();
    const hsort_status status = comm_open(MPI_COMM_WORLD, &comm);
    CHECK(status == HSORT_OK && comm.size == 2, "%d ranks, wanted 2: %s", comm.size, status_text());
    if (comm.size == 2) {
        test_merged(seed);
        test_at_rest();
        test_counted(seed);
        test_failure();
    }
    if (status == HSORT_OK)
        comm_close(&comm);
    return ranks_finish();
}
