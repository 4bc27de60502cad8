/* Counting keys instead of moving them, an engine's part of it: `test_values host [THREADS]` or `cuda`.
 *
 * A trial is a whole sort by several ranks, all in this process, each with keys, a table and a list of its own:
 *
 *     keys                 its table, as a list      all lists added       pieces, each from any rank's table
 *     rank 0  5 1 5        1: 1  5: 2                1: 2  5: 2  9: 2      1 1 5 | 5 9 | 9
 *     rank 1  9 1 9        1: 1  9: 2                the same              the same as by qsort?
 *
 * The oracle of the keys is qsort by value (order.h), that of the lists a count in sorted codes. Pieces lie apart and
 * in poison, so that each is seen to end where it should. */
#include "tests/kernels/values_trial.h"

enum {
    RANKS_MAX = 8,
    PIECES_MAX = 12,
    GAP_KEYS = 17, // between two pieces, at most
#ifdef __SANITIZE_ADDRESS__
    MANY = 60013
#else
    MANY = 1000003
#endif
};

struct rank {
    int64_t count, values;
    const char *keys;              // [count] on the host
    struct engine_value *expected; // [values] what is in its keys, ascending
    struct buffer from, room, list;
};

static struct {
    int trials, full, full_together; // too many values on a rank; only on all of them
} seen;

/* ---- one trial, step by step ---- */

/* Cut the keys into shards of any size, of which some may be empty, and bring them to the engine. */
static void share_out_counted_keys(const struct trial *trial, struct keymap map, const char *keys,
                                   struct rank *ranks, uint64_t *random)
{
    int64_t before = 0;
    for (int r = 0; r < trial->ranks; r++) {
        struct rank *rank = &ranks[r];
        const int64_t left = trial->count - before, share = 2 * trial->count / trial->ranks;
        const int64_t some =
            check_random(random) % 5 == 0 ? 0 : (int64_t)(check_random(random) % (uint64_t)(share + 1));
        rank->count = r == trial->ranks - 1 || some > left ? left : some;
        rank->keys = keys + before * map.key_bytes;
        rank->expected = count_on_host(map, rank->keys, rank->count, &rank->values);
        rank->from = buffer_new(rank->keys, (size_t)(rank->count * map.key_bytes),
                                (size_t)map.key_bytes * (check_random(random) % 16));
        rank->room = buffer_new(NULL, ops->counting->workspace(engine, trial->log), 0);
        rank->list = (struct buffer){0};
        before += rank->count;
    }
}

/* So many values must fit. */
static void check_fits(const struct trial *trial, const char *call, int64_t values, bool fits)
{
    CHECK(fits || values > INT64_C(1) << (trial->log - 1), "%s: %s finds no room for %lld values",
          trial->what, call, (long long)values);
}

static void draw_hint(const struct trial *trial, struct keymap map, const struct rank *rank, uint64_t *low,
                      uint64_t *high)
{
    const uint64_t all = map.key_bytes == 4 ? UINT32_MAX : UINT64_MAX;
    const struct engine_value *v = rank->expected;
    const int64_t n = rank->values;
    *low = trial->hint == HINT_ELSEWHERE ? all - 5000 : 0;
    *high = trial->hint == HINT_ELSEWHERE ? all - 4000 : all;
    if (n == 0 || trial->hint == HINT_TOO_WIDE || trial->hint == HINT_ELSEWHERE)
        return;
    const int64_t less = trial->hint == HINT_ALL ? 0 : trial->hint == HINT_MOST ? n / 10 : (n - 1) / 2;
    *low = v[less].code;
    *high = trial->hint == HINT_POINT ? v[less].code : v[n - 1 - less].code;
}

/* Returns whether the table holds all values of a rank. */
static bool count_rank(const struct trial *trial, struct keymap map, const struct rank *ranks, int r)
{
    const struct rank *rank = &ranks[r], *other = &ranks[(r + 1) % trial->ranks];
    const struct raw_keys raw = {.map = map, .from = rank->count > 0 ? buffer_keys(&rank->from) : NULL},
                          others = {.map = map, .from = buffer_keys(&other->from)};
    void *room = buffer_keys(&rank->room);
    uint64_t low, high;
    bool fits;
    draw_hint(trial, map, rank, &low, &high);
    if (trial->used) {
        must(ops->counting->count(engine, map.key_bytes, &others, other->count, low, high, trial->log, room,
                                  &fits),
             trial->what);
        if (fits)
            must(ops->counting->order(engine, trial->log, room, &fits), trial->what);
    }
    fits = rank->values % 2;
    must(ops->counting->count(engine, map.key_bytes, &raw, rank->count, low, high, trial->log, room, &fits),
         trial->what);
    check_fits(trial, "count_values", rank->values, fits);
    return fits;
}

/* A list that is too short must be told from one that is not. */
static void list_shortly(const struct trial *trial, const struct rank *rank, int64_t most)
{
    int64_t values = most;
    struct buffer list = buffer_new(NULL, (size_t)most * sizeof(struct engine_value), 0);
    must(ops->counting->list(engine, trial->log, buffer_keys(&rank->room), buffer_keys(&list), most, &values),
         trial->what);
    CHECK(values == -1, "%s: %lld values in a list of %lld, should be more", trial->what, (long long)values,
          (long long)most);
    buffer_result(&list, trial->what);
    buffer_free(&list);
}

static void list_rank(const struct trial *trial, struct rank *rank, uint64_t *random)
{
    const int64_t most = rank->values + (int64_t)(check_random(random) % 3 * 50);
    int64_t values = -1;
    if (rank->values > 0) {
        list_shortly(trial, rank, rank->values - 1);
        list_shortly(trial, rank, rank->values / 2);
        list_shortly(trial, rank, 0);
    }
    rank->list =
        buffer_new(NULL, (size_t)most * sizeof(struct engine_value), 16 * (check_random(random) % 8));
    must(ops->counting->list(engine, trial->log, buffer_keys(&rank->room), buffer_keys(&rank->list), most,
                             &values),
         trial->what);
    CHECK(values == rank->values, "%s: a list of %lld values, should be %lld", trial->what, (long long)values,
          (long long)rank->values);
}

/* Called when the lists have been added: that may not change them. */
static void check_list(const struct trial *trial, struct rank *rank)
{
    const size_t bytes = (size_t)rank->values * sizeof(struct engine_value);
    struct engine_value *list = alloc_or_exit(bytes + 1);
    memcpy(list, buffer_result(&rank->list, trial->what), bytes);
    qsort(list, (size_t)rank->values, sizeof *list, compare_values);
    const int64_t wrong = first_difference(list, rank->expected, sizeof *list, rank->values);
    CHECK(wrong < 0, "%s: value %lld of a list of %lld is wrong", trial->what, (long long)wrong,
          (long long)rank->values);
    free(list);
}

/* Add the others' lists, of this or the next rank first, and put the table in order. Returns whether all values fit. */
static bool add_all(const struct trial *trial, const struct rank *ranks, int r, int64_t values)
{
    void *room = buffer_keys(&ranks[r].room);
    bool fits = values % 2;
    for (int i = 1; i < trial->ranks; i++) {
        const struct rank *other = &ranks[(r + i) % trial->ranks];
        must(ops->counting->add(engine, trial->log, room, buffer_keys(&other->list), other->values),
             trial->what);
    }
    must(ops->counting->order(engine, trial->log, room, &fits), trial->what);
    check_fits(trial, "order_values", values, fits);
    CHECK(!fits || values <= INT64_C(1) << trial->log, "%s: %lld values in order, which is too many",
          trial->what, (long long)values);
    return fits;
}

/* Where the keys are cut into pieces: piece_at [pieces + 1], ascending. Returns how many pieces; some are empty. */
static int draw_pieces(int64_t count, int64_t *piece_at, uint64_t *random)
{
    const int pieces = 1 + (int)(check_random(random) % PIECES_MAX);
    piece_at[0] = 0;
    for (int i = 1; i <= pieces; i++) {
        const int64_t left = count - piece_at[i - 1],
                      step = check_random(random) % 2 ? 40 : 3 * count / pieces;
        const int64_t some = (int64_t)(check_random(random) % (uint64_t)(step + 1));
        piece_at[i] = i == pieces || some > left ? count : piece_at[i - 1] + some;
    }
    return pieces;
}

/* The keys as they should come out. */
static char *sort_trial(const struct trial *trial, struct keymap map, const char *keys)
{
    const size_t bytes = (size_t)(trial->count * map.key_bytes);
    char *sorted = alloc_or_exit(bytes + 1);
    memcpy(sorted, keys, bytes);
    order_sort(trial->type, trial->order, sorted, trial->count);
    for (int64_t i = 0; i < trial->count && !trial->decode; i++)
        store(map.key_bytes, sorted, i, keymap_encode(map, key_load(map.key_bytes, sorted, i)));
    return sorted;
}

/* Write the keys in pieces, in any order, each from the table of some rank. */
static void write_all(const struct trial *trial, struct keymap map, const char *keys,
                      const struct rank *ranks, uint64_t *random)
{
    const struct raw_keys raw = {.map = map, .decode = trial->decode};
    const size_t bytes = (size_t)((trial->count + PIECES_MAX * GAP_KEYS) * map.key_bytes);
    char *sorted = sort_trial(trial, map, keys), *expected = alloc_or_exit(bytes);
    int64_t piece_at[PIECES_MAX + 1], gaps = 0;
    uint64_t order[PIECES_MAX], gap_at[PIECES_MAX];
    const int pieces = draw_pieces(trial->count, piece_at, random);
    memset(expected, POISON, bytes);
    for (int i = 0; i < pieces; i++) {
        order[i] = (uint64_t)i;
        gap_at[i] = (uint64_t)gaps;
        memcpy(expected + (piece_at[i] + gaps) * map.key_bytes, sorted + piece_at[i] * map.key_bytes,
               (size_t)((piece_at[i + 1] - piece_at[i]) * map.key_bytes));
        gaps += (int64_t)(check_random(random) % (GAP_KEYS + 1));
    }
    shuffle(order, pieces, random);

    struct buffer out = buffer_new(NULL, bytes, (size_t)map.key_bytes * (check_random(random) % 16));
    for (int i = 0; i < pieces; i++) {
        const int64_t from = piece_at[order[i]], until = piece_at[order[i] + 1];
        const struct rank *rank = &ranks[check_random(random) % (uint64_t)trial->ranks];
        must(ops->counting->write(
                 engine, map.key_bytes, &raw, trial->log, buffer_keys(&rank->room), from, until,
                 (char *)buffer_keys(&out) + (from + (int64_t)gap_at[order[i]]) * map.key_bytes),
             trial->what);
    }
    const int64_t wrong = first_difference(buffer_result(&out, trial->what), expected, map.key_bytes,
                                           trial->count + PIECES_MAX * GAP_KEYS);
    CHECK(wrong < 0, "%s: in %d pieces, key %lld, gaps included, is wrong", trial->what, pieces,
          (long long)wrong);
    buffer_free(&out);
    free(sorted);
    free(expected);
}

/* Keys are as they were, and nothing beside a room is touched. */
static void end_rank(const struct trial *trial, int key_bytes, struct rank *rank)
{
    const int64_t changed =
        first_difference(buffer_result(&rank->from, trial->what), rank->keys, key_bytes, rank->count);
    CHECK(changed < 0, "%s: key %lld has changed", trial->what, (long long)changed);
    buffer_result(&rank->room, trial->what);
    buffer_free(&rank->from);
    buffer_free(&rank->room);
    if (rank->list.memory)
        buffer_free(&rank->list);
    free(rank->expected);
}

static void run_trial(struct trial *trial, uint64_t *random)
{
    const struct keymap map = keymap_make(trial->type, trial->order);
    struct rank ranks[RANKS_MAX];
    int64_t values;
    bool fits = true;
    snprintf(trial->what, sizeof trial->what,
             "%s, %lld keys %s %s, %s (%lld), told of %s, %d ranks, 2^%d places%s%s", ops->name,
             (long long)trial->count, hsort_type_name(trial->type),
             trial->order == HSORT_ASCENDING ? "ascending" : "descending", shape_names[trial->shape],
             (long long)trial->values, hint_names[trial->hint], trial->ranks, trial->log,
             trial->decode ? ", and back" : "", trial->used ? ", used rooms" : "");
    char *keys = trial_keys(trial, map, random);
    free(count_on_host(map, keys, trial->count, &values));
    share_out_counted_keys(trial, map, keys, ranks, random);
    for (int r = 0; r < trial->ranks; r++)
        fits &= count_rank(trial, map, ranks, r);
    seen.trials++;
    seen.full += !fits;
    for (int r = 0; r < trial->ranks && fits; r++)
        list_rank(trial, &ranks[r], random);
    if (fits) {
        for (int r = 0; r < trial->ranks; r++)
            fits &= add_all(trial, ranks, r, values);
        for (int r = 0; r < trial->ranks; r++)
            check_list(trial, &ranks[r]);
        seen.full_together += !fits;
    }
    if (fits)
        write_all(trial, map, keys, ranks, random);
    for (int r = 0; r < trial->ranks; r++)
        end_rank(trial, map.key_bytes, &ranks[r]);
    free(keys);
}

/* ---- all trials ---- */

/* A trial whose other properties are drawn. */
static void try_values(int64_t count, int64_t values, int log, int type, int shape, uint64_t *random)
{
    static const int rank_counts[] = {1, 2, 3, 5, 7, 8};
    const uint64_t draw = check_random(random);
    struct trial trial = {.type = (hsort_type)type,
                          .order = draw & 1 ? HSORT_DESCENDING : HSORT_ASCENDING,
                          .shape = (enum shape)shape,
                          .hint = (enum hint)((draw >> 32) % HINTS),
                          .ranks = rank_counts[(draw >> 8) % (log > 16 ? 3 : 6)],
                          .log = log,
                          .count = count,
                          .values = values,
                          .decode = draw & 2,
                          .used = draw & 4};
    run_trial(&trial, random);
}

static void test_shapes(uint64_t random)
{
    static const int64_t counts[] = {0, 1, 2, 31, 1000, 30011, MANY};
    for (int i = 0; i < (int)(sizeof counts / sizeof counts[0]); i++)
        for (int shape = 0; shape < SHAPES; shape++)
            // The last count is for one type of each width.
            for (int type = counts[i] == MANY ? shape % 3 : 0; type < 6; type += counts[i] == MANY ? 3 : 1) {
                const uint64_t draw = check_random(&random);
                const int log =
                    ENGINE_VALUES_LOG_MIN + (int)(draw % 8 == 0 ? (draw >> 8) % 10 : (draw >> 8) % 4);
                const int64_t half = INT64_C(1) << (log - 1), some = (int64_t)(draw >> 16 & 0xffffff);
                try_values(counts[i], 1 + some % (draw & 64 ? half : 300), log, type, shape, &random);
            }
}

/* Just as many values as fit for certain, as may, and more than can. */
static void test_limits(uint64_t random)
{
    for (int log = ENGINE_VALUES_LOG_MIN; log <= ENGINE_VALUES_LOG_MAX; log++) {
        const int64_t places = INT64_C(1) << log;
        const int64_t values[] = {places / 2, places + 1, places / 2 + 1, places / 4 * 3, places, places * 3};
        const int of_these = log <= 16 ? 6 : 2; // more take long
        for (int i = 0; i < of_these; i++)
            for (int shape = SHAPE_DENSE; shape <= SHAPE_STRIDES; shape++) {
                const uint64_t draw = check_random(&random);
                if (of_these == 6 || (int)(draw % 4) == shape % 4)
                    try_values(values[i] + (int64_t)(draw >> 16) % 2000, values[i], log,
                               (int)((draw >> 8) % 6), shape, &random);
            }
    }
}

/* More keys of a value than any test can have. They are added twice: all counts double. */
static const struct engine_value far_values[] = {{0, (INT64_C(1) << 33) + 5},
                                                 {5, 1},
                                                 {77, 3},
                                                 {INT64_C(1) << 40, INT64_C(1) << 35},
                                                 {UINT64_MAX, INT64_C(9) << 32}};
enum { FAR_VALUES = sizeof far_values / sizeof far_values[0], FAR_KEYS = 1000 };

static uint64_t far_code(int64_t position)
{
    int i = 0;
    for (; position >= 2 * far_values[i].keys; i++)
        position -= 2 * far_values[i].keys;
    return far_values[i].code;
}

/* Write some keys from `from` on. */
static void check_far(const struct raw_keys *raw, const struct buffer *room, int64_t from)
{
    uint64_t expected[FAR_KEYS];
    struct buffer out = buffer_new(NULL, sizeof expected, 0);
    for (int64_t i = 0; i < FAR_KEYS; i++)
        expected[i] = keymap_decode(raw->map, far_code(from + i));
    must(ops->counting->write(engine, 8, raw, ENGINE_VALUES_LOG_MIN, buffer_keys(room), from, from + FAR_KEYS,
                              buffer_keys(&out)),
         "write_values");
    const int64_t wrong = first_difference(buffer_result(&out, "far keys"), expected, 8, FAR_KEYS);
    CHECK(wrong < 0, "%s: key %lld from position %lld on is wrong", ops->name, (long long)wrong,
          (long long)from);
    buffer_free(&out);
}

/* Positions beyond 2^32. */
static void test_far_positions(uint64_t random)
{
    const struct raw_keys raw = {.map = keymap_make(HSORT_I64, HSORT_DESCENDING), .decode = true};
    struct engine_value values[FAR_VALUES];
    for (int i = 0; i < FAR_VALUES; i++)
        values[i] = far_values[i * 3 % FAR_VALUES]; // in no order
    struct buffer room = buffer_new(NULL, ops->counting->workspace(engine, ENGINE_VALUES_LOG_MIN), 0),
                  list = buffer_new(values, sizeof values, 0);
    bool fits = false;
    must(ops->counting->count(engine, 8, &raw, 0, 0, 0, ENGINE_VALUES_LOG_MIN, buffer_keys(&room), &fits),
         "count of no keys");
    for (int turn = 0; turn < 2; turn++)
        must(ops->counting->add(engine, ENGINE_VALUES_LOG_MIN, buffer_keys(&room), buffer_keys(&list),
                                FAR_VALUES),
             "add_values");
    must(ops->counting->order(engine, ENGINE_VALUES_LOG_MIN, buffer_keys(&room), &fits), "order_values");
    CHECK(fits, "%s: %d values do not fit", ops->name, FAR_VALUES);
    int64_t end = 0;
    for (int i = 0; i < FAR_VALUES; i++) {
        end += 2 * far_values[i].keys;
        const int64_t before = i == FAR_VALUES - 1 ? FAR_KEYS : (int64_t)(check_random(&random) % FAR_KEYS);
        check_far(&raw, &room, end - before);
    }
    buffer_result(&room, "room");
    buffer_free(&room);
    buffer_free(&list);
}

#ifdef HSORT_FAULTS
/* The operations that have a fault site, one after the other. */
static hsort_status call(int which, const struct buffer *keys, const struct buffer *room,
                         const struct buffer *list)
{
    const struct raw_keys raw = {.map = keymap_make(HSORT_U64, HSORT_ASCENDING), .from = buffer_keys(keys)};
    const int64_t count = (int64_t)(keys->bytes / 8),
                  most = (int64_t)(list->bytes / sizeof(struct engine_value));
    static int64_t values;
    bool fits;
    switch (which) {
    case 0:
        return ops->counting->count(engine, 8, &raw, count, 0, 50, ENGINE_VALUES_LOG_MIN, buffer_keys(room),
                                    &fits);
    case 1:
        return ops->counting->list(engine, ENGINE_VALUES_LOG_MIN, buffer_keys(room), buffer_keys(list), most,
                                   &values);
    case 2:
        return ops->counting->add(engine, ENGINE_VALUES_LOG_MIN, buffer_keys(room), buffer_keys(list),
                                  values);
    case 3:
        return ops->counting->order(engine, ENGINE_VALUES_LOG_MIN, buffer_keys(room), &fits);
    default:
        return ops->counting->write(engine, 8, &raw, ENGINE_VALUES_LOG_MIN, buffer_keys(room), 0, count,
                                    buffer_keys(keys));
    }
}

/* An armed site fails the next call, with a text, and only that one. */
static void test_faults(uint64_t random)
{
    const int64_t count = 5000;
    char *keys = keys_new(TWO_VALUES, 8, count, &random);
    struct buffer from = buffer_new(keys, (size_t)count * 8, 0),
                  room = buffer_new(NULL, ops->counting->workspace(engine, ENGINE_VALUES_LOG_MIN), 0),
                  list = buffer_new(NULL, 10 * sizeof(struct engine_value), 0);
    for (int which = 0; which < 5; which++) {
        fault_set(FAULT_KERNEL, 1);
        const hsort_status status = call(which, &from, &room, &list);
        CHECK(status != HSORT_OK && status_text()[0] != '\0', "%s, call %d passes a fault, text \"%s\"",
              ops->name, which, status_text());
        fault_set(FAULT_KERNEL, 0);
        status_clear();
        must(call(which, &from, &room, &list), "a call after a fault");
    }
    must(ops->stream_synchronize(engine, STREAM_WORK), "wait");
    buffer_free(&from);
    buffer_free(&room);
    buffer_free(&list);
    free(keys);
}
#endif

int main(int argc, char **argv)
{
    const uint64_t seed = check_seed();
    open_engine(argc, argv);
    if (!ops->counting) {
        printf("skipped: the engine %s does not count values\n", ops->name);
        ops->close(engine);
        return CHECK_SKIPPED;
    }
    printf("test_values %s: seed %llu\n", ops->name, (unsigned long long)seed);
    test_far_positions(seed);
    test_shapes(seed);
    test_limits(seed);
#ifdef HSORT_FAULTS
    test_faults(seed);
#endif
    printf("%d trials: in %d a rank had too many values, in %d all had together\n", seen.trials, seen.full,
           seen.full_together);
    ops->close(engine);
    return check_failures > 0;
}
