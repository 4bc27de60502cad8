/* hsort_check_pairs() and hsort_check_records() must find whatever a broken sort could hand out: two values of equal keys
 * exchanged, a bit flipped, an element lost and another doubled, two elements swapped, ties reversed. They must accept
 * a right result, and the answer may not depend on ranks, pieces, engine or memory. The oracle walks the whole array, element by
 * element, compares fields by value, and adds up digests of words that it puts together byte by byte.
 *
 *     test_check_elements        the host engine, also with so little memory that it works on many pieces
 *     test_check_elements cuda   the cuda engine, with arrays in all kinds of memory */
#include "kernels/base/element_digest.h"
#include "kernels/engine.h"
#include "tests/support/device_buffer.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 64, FIELDS = 3, TRIALS = 24, ARRAYS = 3 };

/* A distributed array, the same on every rank. Records have no values. */
struct whole {
    bool pairs;
    hsort_field fields[FIELDS];
    int field_count;
    int64_t total;
    size_t bytes[ARRAYS];         /* of a key or record, a value, an index */
    unsigned char *array[ARRAYS]; /* [total * bytes] */
    int64_t counts[MOST_RANKS];
};

static int rank, size, buffer_kinds = 1;
static hsort_context *ctx;
static char what[200];
static uint64_t random_state, own_state; /* the same on every rank; each rank's own */

static uint64_t draw(uint64_t below)
{
    return check_random(&random_state) % below;
}

static uint64_t draw_own(uint64_t below)
{
    return check_random(&own_state) % below;
}

static unsigned char *at(const struct whole *w, int which, int64_t i)
{
    return w->array[which] + (size_t)i * w->bytes[which];
}

static int64_t index_at(const struct whole *w, int64_t i)
{
    int64_t number;
    memcpy(&number, at(w, 2, i), sizeof number);
    return number;
}

/* ---- the oracle ------------------------------------------------------------------------------------------------------- */

static int compare_fields(const struct whole *w, int64_t a, int64_t b)
{
    return order_compare_fields(w->fields, w->field_count, at(w, 0, a), at(w, 0, b));
}

/* The words of one part, byte by byte. */
static uint64_t add_part(const unsigned char *bytes, size_t count, uint64_t place, uint64_t digest[2])
{
    for (size_t begin = 0; begin < count; begin += 8, place++) {
        uint64_t word = 0;
        for (size_t i = begin; i < count && i < begin + 8; i++)
            word |= (uint64_t)bytes[i] << 8 * (i - begin);
        digest_add_word(place, word, digest);
    }
    return place;
}

/* with_index: elements have the numbers of their index, else their own positions. */
static hsort_check_result walk(const struct whole *w, bool with_index)
{
    hsort_check_result result = {.count = w->total, .first_disorder = -1, .first_unstable = -1};
    for (int64_t i = 0; i < w->total; i++) {
        uint64_t digest[2] = {0, 0};
        const uint64_t place = add_part(at(w, 0, i), w->bytes[0], 0, digest);
        add_part(at(w, 1, i), w->bytes[1], place, digest);
        digest_share(digest, result.fingerprint);
        digest_add_word(WORD_OF_NUMBER, (uint64_t)(with_index ? index_at(w, i) : i), digest);
        digest_share(digest, result.placed_fingerprint);
        const int found = i > 0 ? compare_fields(w, i - 1, i) : -1;
        if (found > 0 && result.first_disorder < 0)
            result.first_disorder = i;
        if (found == 0 && with_index && index_at(w, i) <= index_at(w, i - 1) && result.first_unstable < 0)
            result.first_unstable = i;
    }
    return result;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------ */

/* This rank's part of an array, in memory of a drawn kind, perhaps of no alignment. */
static void *make_slice(const struct whole *w, int which, int64_t first, int64_t count,
                        enum buffer_kind *kind, void **memory)
{
    const size_t bytes = (size_t)count * w->bytes[which];
    const bool aligned = which == 2 || (which == 0 && w->pairs);
    const size_t shift = aligned ? 0 : (size_t)draw_own(9);
    *kind = (enum buffer_kind)draw_own((uint64_t)buffer_kinds);
    *memory = device_buffer_alloc(*kind, bytes + 16);
    CHECK(*memory && device_buffer_copy((char *)*memory + shift,
                                        w->array[which] + first * (int64_t)w->bytes[which], bytes),
          "no memory");
    return (char *)*memory + shift;
}

static hsort_check_result check_whole(const struct whole *w, bool with_index)
{
    hsort_check_result result = {.struct_size = sizeof result};
    void *slice[ARRAYS], *memory[ARRAYS];
    enum buffer_kind kinds[ARRAYS];
    const int64_t first = layout_before(w->counts, rank), count = w->counts[rank];
    for (int i = 0; i < ARRAYS; i++)
        slice[i] = make_slice(w, i, first, count, &kinds[i], &memory[i]);
    const int64_t *index = with_index || (count == 0 && draw_own(2)) ? slice[2] : NULL;
    const hsort_status status = w->pairs
                                    ? hsort_check_pairs(ctx, w->fields[0].type, w->fields[0].order, slice[0],
                                                        slice[1], w->bytes[1], count, index, NULL, &result)
                                    : hsort_check_records(ctx, slice[0], w->bytes[0], w->fields,
                                                          w->field_count, count, index, NULL, &result);
    CHECK(status == HSORT_OK, "%s: %s", hsort_last_error(ctx), what);
    for (int i = 0; i < ARRAYS; i++) {
        unsigned char *now = malloc((size_t)count * w->bytes[i] + 1);
        device_buffer_copy(now, slice[i], (size_t)count * w->bytes[i]);
        CHECK(memcmp(now, w->array[i] + first * (int64_t)w->bytes[i], (size_t)count * w->bytes[i]) == 0,
              "array %d has changed: %s", i, what);
        free(now);
        device_buffer_free(kinds[i], memory[i]);
    }
    return result;
}

static bool same(const uint64_t a[2], const uint64_t b[2])
{
    return a[0] == b[0] && a[1] == b[1];
}

/* Check, and compare with the walk. */
static hsort_check_result check_and_walk(const struct whole *w, bool with_index, const char *which)
{
    const hsort_check_result found = check_whole(w, with_index), expected = walk(w, with_index);
    CHECK(found.count == expected.count && found.first_disorder == expected.first_disorder &&
              found.first_unstable == expected.first_unstable,
          "%s: %lld elements, disorder %lld, unstable %lld; not %lld, %lld, %lld: %s", which,
          (long long)found.count, (long long)found.first_disorder, (long long)found.first_unstable,
          (long long)expected.count, (long long)expected.first_disorder, (long long)expected.first_unstable,
          what);
    CHECK(same(found.fingerprint, expected.fingerprint) &&
              same(found.placed_fingerprint, expected.placed_fingerprint),
          "%s: a fingerprint is not that of the oracle: %s", which, what);
    return found;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------------- */

static void draw_fields(struct whole *w)
{
    size_t left = HSORT_KEY_BYTES_MAX;
    w->field_count = w->pairs ? 1 : 1 + (int)draw(FIELDS);
    for (int f = 0; f < w->field_count; f++) {
        hsort_field *field = &w->fields[f];
        *field = (hsort_field){.type = (hsort_type)draw(HSORT_F64 + 1), .order = (hsort_order)draw(2)};
        const size_t most = (left < w->bytes[0] ? left : w->bytes[0]) - (size_t)(w->field_count - 1 - f);
        if (!w->pairs && (hsort_type_bytes(field->type) > most || draw(2)))
            field->bytes = 1 + (int)draw(most < 5 ? most : 5);
        else if (!w->pairs)
            field->big_endian = draw(2);
        const size_t bytes = field->bytes != 0 ? (size_t)field->bytes : hsort_type_bytes(field->type);
        if (w->pairs)
            w->bytes[0] = bytes;
        field->offset = draw(w->bytes[0] - bytes + 1);
        left -= bytes;
    }
}

/* Draw an array of few different keys, so that many are equal, and what belongs to each key. */
static struct whole draw_whole(void)
{
    static const size_t record_sizes[] = {3, 4, 8, 12, 16, 27, 100, 256, 1000},
                        value_sizes[] = {1, 3, 4, 8, 11, 64, 520};
    static const int64_t totals[] = {0, 1, 2, 7, 300, 5000, 40000};
    struct whole w = {.pairs = draw(2)};
    w.bytes[0] = w.pairs ? 8 : record_sizes[draw(sizeof record_sizes / sizeof *record_sizes)];
    w.bytes[1] = w.pairs ? value_sizes[draw(sizeof value_sizes / sizeof *value_sizes)] : 0;
    w.bytes[2] = sizeof(int64_t);
    draw_fields(&w);
    w.total = totals[draw(sizeof totals / sizeof *totals)];
    if (w.bytes[0] + w.bytes[1] > 100 && w.total > 5000)
        w.total = 5000;
    for (int i = 0; i < ARRAYS; i++)
        w.array[i] = malloc((size_t)w.total * w.bytes[i] + 1);
    for (size_t i = 0; i < (size_t)w.total * w.bytes[0]; i++)
        w.array[0][i] = (unsigned char)draw(w.bytes[0] < 5 ? 3 : 256);
    for (size_t i = 0; i < (size_t)w.total * w.bytes[1]; i++)
        w.array[1][i] = (unsigned char)draw(256);
    for (int64_t i = w.total / 2; i < w.total && w.total > 1; i++) // half of the keys are copies
        for (int f = 0; f < w.field_count; f++) {
            const size_t bytes =
                w.fields[f].bytes != 0 ? (size_t)w.fields[f].bytes : hsort_type_bytes(w.fields[f].type);
            memcpy(at(&w, 0, i) + w.fields[f].offset, at(&w, 0, i / 3) + w.fields[f].offset, bytes);
        }
    return w;
}

static struct whole copy_whole(const struct whole *w)
{
    struct whole copy = *w;
    for (int i = 0; i < ARRAYS; i++) {
        copy.array[i] = malloc((size_t)w->total * w->bytes[i] + 1);
        memcpy(copy.array[i], w->array[i], (size_t)w->total * w->bytes[i]);
    }
    return copy;
}

static void free_whole(struct whole *w)
{
    for (int i = 0; i < ARRAYS; i++)
        free(w->array[i]);
}

static const struct whole *sorted_one;

static int compare_positions(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    const int found = compare_fields(sorted_one, x, y);
    return found != 0 ? found : (x > y) - (x < y);
}

/* Return the array as a stable sort makes it, with the index. */
static struct whole sort_whole(const struct whole *w)
{
    struct whole sorted = copy_whole(w);
    int64_t *positions = malloc((size_t)w->total * sizeof *positions + 1);
    for (int64_t i = 0; i < w->total; i++)
        positions[i] = i;
    sorted_one = w;
    qsort(positions, (size_t)w->total, sizeof *positions, compare_positions);
    for (int64_t i = 0; i < w->total; i++) {
        for (int part = 0; part < 2; part++)
            memcpy(at(&sorted, part, i), at(w, part, positions[i]), w->bytes[part]);
        memcpy(at(&sorted, 2, i), &positions[i], sizeof *positions);
    }
    free(positions);
    return sorted;
}

static void swap_in(struct whole *w, int which, int64_t a, int64_t b)
{
    unsigned char kept[1024];
    memcpy(kept, at(w, which, a), w->bytes[which]);
    memcpy(at(w, which, a), at(w, which, b), w->bytes[which]);
    memcpy(at(w, which, b), kept, w->bytes[which]);
}

/* ---- trials ----------------------------------------------------------------------------------------------------------- */

enum damage { VALUES_OF_TIES, FLIP, ELEMENTS, LOSE, TIES, DAMAGES };

/* Find the first of two neighbours, from `from` on, that have equal keys and differ in what they carry; -1 if there are none. */
static int64_t find_ties(const struct whole *w, int64_t from)
{
    const int payload = w->pairs ? 1 : 0;
    for (int64_t i = from; i + 1 < w->total; i++)
        if (compare_fields(w, i, i + 1) == 0 &&
            memcmp(at(w, payload, i), at(w, payload, i + 1), w->bytes[payload]) != 0)
            return i;
    return -1;
}

/* Damage an array. False: there is nothing to damage in this way. */
static bool do_damage(struct whole *w, enum damage damage)
{
    const int payload = w->pairs ? 1 : 0;
    const int64_t ties = find_ties(w, w->total > 2 ? (int64_t)draw((uint64_t)w->total / 2) : 0);
    const int64_t any = w->total > 0 ? (int64_t)draw((uint64_t)w->total) : 0;
    if (w->total < 2 || ((damage == VALUES_OF_TIES || damage == TIES) && ties < 0))
        return false;
    switch (damage) {
    case VALUES_OF_TIES:
        swap_in(w, payload, ties, ties + 1);
        return true;
    case FLIP:
        at(w, payload, any)[draw(w->bytes[payload])] ^= (unsigned char)(1 << draw(8));
        return true;
    case ELEMENTS:
        for (int part = 0; part < 2; part++)
            swap_in(w, part, 0, w->total - 1);
        return memcmp(at(w, payload, 0), at(w, payload, w->total - 1), w->bytes[payload]) != 0;
    case LOSE: {
        const int64_t other = any > 0 ? any - 1 : 1;
        bool differ = false;
        for (int part = 0; part < 2; part++) {
            differ = differ || memcmp(at(w, part, any), at(w, part, other), w->bytes[part]) != 0;
            memcpy(at(w, part, any), at(w, part, other), w->bytes[part]);
        }
        return differ;
    }
    default: // the index agrees with the elements, and ties are turned round
        for (int i = 0; i < ARRAYS; i++)
            swap_in(w, i, ties, ties + 1);
        return true;
    }
}

static void check_damage(const struct whole *sorted, const hsort_check_result *good, enum damage damage)
{
    static const char *const names[DAMAGES] = {"values of equal keys", "a bit flipped", "two elements",
                                               "one lost, one doubled", "ties turned round"};
    struct whole w = copy_whole(sorted);
    if (do_damage(&w, damage)) {
        const hsort_check_result found = check_and_walk(&w, true, names[damage]);
        const bool all_there = damage != FLIP && damage != LOSE;
        CHECK(same(found.fingerprint, good->fingerprint) == all_there, "%s: the fingerprint: %s",
              names[damage], what);
        CHECK(same(found.placed_fingerprint, good->placed_fingerprint) == (damage == TIES),
              "%s: the fingerprint with places: %s", names[damage], what);
        CHECK((found.first_unstable >= 0) == (damage == TIES) || damage == FLIP || damage == LOSE ||
                  damage == ELEMENTS,
              "%s: unstable at %lld: %s", names[damage], (long long)found.first_unstable, what);
    }
    free_whole(&w);
}

static void run_trial(void)
{
    struct whole w = draw_whole();
    for (int64_t i = 0; i < w.total; i++) // not yet an index: anything
        memset(at(&w, 2, i), (int)draw(256), sizeof i);
    layout_counts((enum layout)draw(LAYOUTS), w.total, size, check_random(&random_state), w.counts);
    snprintf(what, sizeof what,
             "%s of %lld, %zu and %zu bytes, %d fields, first of type %d at %zu of %d bytes, order %d",
             w.pairs ? "pairs" : "records", (long long)w.total, w.bytes[0], w.bytes[1], w.field_count,
             (int)w.fields[0].type, w.fields[0].offset, w.fields[0].bytes, (int)w.fields[0].order);
    const hsort_check_result before = check_and_walk(&w, false, "before");
    check_and_walk(&w, true, "any index");
    struct whole sorted = sort_whole(&w);
    layout_counts((enum layout)draw(LAYOUTS), w.total, size, check_random(&random_state), sorted.counts);
    const hsort_check_result after = check_and_walk(&sorted, true, "after");
    CHECK(after.first_disorder == -1 && after.first_unstable == -1 &&
              same(after.fingerprint, before.fingerprint) &&
              same(after.placed_fingerprint, before.placed_fingerprint),
          "a stable sort is refused: %s", what);
    for (int damage = 0; damage < DAMAGES; damage++)
        check_damage(&sorted, &after, (enum damage)damage);
    free_whole(&sorted);
    free_whole(&w);
}

/* ---- contexts --------------------------------------------------------------------------------------------------------- */

static void refused(hsort_status status, const char *line)
{
    CHECK(status == HSORT_ARGUMENT, "%d: %s", (int)status, line);
    CHECK(strstr(hsort_last_error(ctx), line), "\"%s\" says nothing of \"%s\"", hsort_last_error(ctx), line);
}

static void run_refusals(void)
{
    uint32_t keys[4] = {4, 3, 2, 1};
    unsigned char values[16] = {1}, records[64] = {1};
    int64_t index[5] = {0, 1, 2, 3};
    const hsort_field field = {.type = HSORT_U32, .offset = 13};
    hsort_check_result result = {.struct_size = sizeof result}, wrong = {.struct_size = 8};
    const hsort_order up = HSORT_ASCENDING;
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, values, 0, 4, NULL, NULL, &result),
            "elements of 0 bytes");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, values, 65537, 4, NULL, NULL, &result),
            "65537 bytes");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, NULL, values, 4, 4, NULL, NULL, &result), "keys is NULL");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, NULL, 4, 4, NULL, NULL, &result), "values is NULL");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, (char *)keys + 2, values, 4, 3, NULL, NULL, &result),
            "not aligned");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, values, 4, -1, NULL, NULL, &result), "a count of -1");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, values, 4, 4, (int64_t *)((char *)index + 4), NULL,
                              &result),
            "index is not aligned");
    refused(hsort_check_pairs(ctx, (hsort_type)99, up, keys, values, 4, 4, NULL, NULL, &result),
            "no key type 99");
    refused(hsort_check_pairs(ctx, HSORT_U32, (hsort_order)7, keys, values, 4, 4, NULL, NULL, &result),
            "no order 7");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, values, 4, 4, NULL, NULL, NULL),
            "result: is NULL, or its struct_size");
    refused(hsort_check_pairs(ctx, HSORT_U32, up, keys, values, 4, 4, NULL, NULL, &wrong), "struct_size");
    refused(hsort_check_records(ctx, records, 16, &field, 1, 4, NULL, NULL, &result),
            "4 bytes at 13 of a record of 16");
    refused(hsort_check_records(ctx, records, 0, &field, 1, 4, NULL, NULL, &result), "elements of 0 bytes");
    refused(hsort_check_records(ctx, records, 17, NULL, 1, 3, NULL, NULL, &result), "1 fields at");
    if (size > 1) {
        refused(hsort_check_records(ctx, records, rank == 0 ? 17 : 18, &field, 1, 3, NULL, NULL, &result),
                "differs between ranks");
        refused(
            hsort_check_pairs(ctx, HSORT_U32, up, keys, values, rank == 0 ? 4 : 3, 4, NULL, NULL, &result),
            "differs between ranks");
    }
    CHECK(wrong.struct_size == 8 && wrong.count == 0, "a result that is too small was written");
}

static void run_context(hsort_engine engine, size_t limit, int threads, uint64_t seed)
{
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = engine;
    options.device_memory_limit = limit;
    options.threads = threads;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    if (!ctx)
        return;
    if (engine == HSORT_ENGINE_CUDA) {
        hsort_rank_info infos[MOST_RANKS];
        CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
        buffer_kinds = device_buffer_kinds(infos[rank].gpu_index);
    }
    for (int trial = 0; trial < TRIALS; trial++) {
        random_state = seed + (uint64_t)trial * 1000003;
        own_state = random_state + (uint64_t)rank + 1;
        run_trial();
    }
    run_refusals();
    hsort_destroy(&ctx);
}

/* If there is little memory, what another call has left there makes way for a check. */
static void check_after_others(void)
{
    enum { WIDE = 65536, FEW = 4 };
    static unsigned char records[WIDE * FEW];
    static const hsort_field field = {.type = HSORT_U64};
    hsort_options options;
    hsort_check_result result = {.struct_size = sizeof result};
    uint16_t few[100] = {0};
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = HSORT_ENGINE_HOST;
    options.device_memory_limit = 700000; // enough for either call, not for both
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    for (int turn = 0; turn < 2; turn++) {
        CHECK(hsort_sort(ctx, HSORT_U16, HSORT_ASCENDING, few, 100, NULL) == HSORT_OK, "%s",
              hsort_last_error(ctx));
        CHECK(hsort_check_records(ctx, records, WIDE, &field, 1, FEW, NULL, NULL, &result) == HSORT_OK &&
                  result.first_disorder < 0,
              "%s", hsort_last_error(ctx));
    }
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const uint64_t seed = ranks_seed();
    const hsort_engine engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    run_context(engine, 0, 1, seed);
#pragma omp critical // of the program, which may hold it while it calls
    run_context(engine, 0, 3, seed + 1);
    if (!cuda) {
        run_context(engine, 100000, 2, seed + 2);
        check_after_others();
    }
    return ranks_finish();
}
