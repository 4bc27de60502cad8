/* Sorts of records and pairs at the limits of their codes and sizes.
 *
 *     code bits    a code of 8 or 16 bytes has the key above the position among all elements, which takes as many bits as the last
 *                  position needs: 256 elements just fit beside keys of 7 and 15 bytes, 65536 beside 6 and 14; one more needs wider
 *                  codes, or two stable rounds. Keys of 16 bytes always take two rounds
 *     bytes        records, and values of pairs, of as many bytes as there can be
 *
 * An element is its key, its position, and bytes that follow from it. The oracle is qsort by the key's bytes (for pairs by value),
 * then by position.
 *
 *     test_record_limits          the host engine
 *     test_record_limits cuda     the cuda engine, with arrays in all kinds of memory
 *     test_record_limits all      every way of each limit, and keys of 13 bytes with 2^24 elements and one more: by hand */
#include "kernels/engine.h"
#include "tests/support/device_buffer.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 64, POISON = 0xa7, GUARD = 64, WIDEST = 65536, WIDE_COUNT = 41 };

enum call { RECORDS, RECORDS_TO, COLUMNS, CALLS, PAIRS = CALLS, PAIRS_TO };
static const char *const call_names[] = {"sort_records", "sort_records_to", "argsort_columns", "sort_pairs",
                                         "sort_pairs_to"};

struct trial {
    enum call call;
    hsort_type type; /* of the keys of pairs */
    hsort_order order;
    int key_bytes, values; /* that a byte of a key can have */
    bool halves;           /* the first 8 bytes of a key are a field of their own, a number */
    size_t element_bytes;  /* of a record, or a value */
    int64_t total, in_first, in_count, out_first, out_count;
};

static int rank, size, buffer_kinds = 1;
static hsort_context *ctx;
static char what[200];

/* ---- elements ---------------------------------------------------------------------------------------------------------- */

/* Return memory that was had; without memory, end the program. */
static void *had(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "no memory\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
}

/* keys [total] of key_bytes, the same on every rank. */
static unsigned char *make_keys(const struct trial *t, uint64_t seed)
{
    const size_t bytes = (size_t)t->total * (size_t)t->key_bytes;
    unsigned char *keys = had(malloc(bytes + 1));
    for (size_t i = 0; i < bytes; i++)
        keys[i] =
            (unsigned char)(check_random(&seed) % (uint64_t)t->values * 255 / (uint64_t)(t->values - 1));
    return keys;
}

/* Write the element of a key and a position into `to`; for pairs it is the value alone. */
static void make_element(const struct trial *t, const unsigned char *keys, int64_t position,
                         unsigned char *to)
{
    const size_t key_bytes = t->call < PAIRS ? (size_t)t->key_bytes : 0;
    uint64_t state = (uint64_t)position;
    memcpy(to, keys + (size_t)position * (size_t)t->key_bytes, key_bytes);
    for (size_t at = key_bytes; at < t->element_bytes; at += 8) {
        memcpy(to + at, &state, t->element_bytes - at < 8 ? t->element_bytes - at : 8);
        state = check_random(&state);
    }
}

static const struct trial *sorted_trial;
static const unsigned char *sorted_keys;

static int compare_positions(const void *a, const void *b)
{
    int64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    const struct trial *t = sorted_trial;
    const unsigned char *x = sorted_keys + (size_t)left * (size_t)t->key_bytes,
                        *y = sorted_keys + (size_t)right * (size_t)t->key_bytes;
    const int by_bytes = memcmp(x, y, (size_t)t->key_bytes);
    const int found = t->call >= PAIRS               ? order_compare(t->type, t->order, x, y)
                      : t->order == HSORT_DESCENDING ? -by_bytes
                                                     : by_bytes;
    return found != 0 ? found : (left > right) - (left < right);
}

/* Return the positions [total] in order. */
static int64_t *make_order(const struct trial *t, const unsigned char *keys)
{
    int64_t *order = had(malloc((size_t)(t->total + 1) * sizeof *order));
    for (int64_t i = 0; i < t->total; i++)
        order[i] = i;
    sorted_trial = t;
    sorted_keys = keys;
    qsort(order, (size_t)t->total, sizeof *order, compare_positions);
    return order;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------------ */

/* [bytes] in memory of some kind, a guard behind them, and what they must be. */
struct array {
    enum buffer_kind kind;
    unsigned char *memory, *image;
    size_t bytes;
};

static struct array array_of(size_t bytes, uint64_t *random)
{
    struct array a = {.kind = (enum buffer_kind)(check_random(random) % (uint64_t)buffer_kinds),
                      .bytes = bytes};
    a.memory = had(device_buffer_alloc(a.kind, bytes + GUARD));
    a.image = had(malloc(bytes + GUARD));
    memset(a.image, POISON, bytes + GUARD);
    return a;
}

static void array_fill(struct array *a)
{
    device_buffer_copy(a->memory, a->image, a->bytes + GUARD);
}

static void array_check(struct array *a, const char *name)
{
    unsigned char *now = had(malloc(a->bytes + GUARD));
    device_buffer_copy(now, a->memory, a->bytes + GUARD);
    CHECK(memcmp(now, a->image, a->bytes + GUARD) == 0, "rank %d: %s is wrong: %s", rank, name, what);
    free(now);
    free(a->image);
    device_buffer_free(a->kind, a->memory);
}

/* Put elements first .. first + count - 1 of those in order, or as they came (order NULL), into an image. */
static void put_elements(const struct trial *t, const unsigned char *keys, const int64_t *order,
                         int64_t first, int64_t count, struct array *to)
{
    for (int64_t i = 0; i < count; i++)
        make_element(t, keys, order ? order[first + i] : first + i, to->image + (size_t)i * t->element_bytes);
}

static void put_keys(const struct trial *t, const unsigned char *keys, const int64_t *order, int64_t first,
                     int64_t count, struct array *to)
{
    const size_t bytes = (size_t)t->key_bytes;
    for (int64_t i = 0; i < count; i++)
        memcpy(to->image + (size_t)i * bytes, keys + (size_t)(order ? order[first + i] : first + i) * bytes,
               bytes);
}

/* ---- trials ------------------------------------------------------------------------------------------------------------ */

/* Make a key of bytes, or of a big-endian number before the other bytes; both order alike. Returns how many fields. */
static int make_fields(const struct trial *t, hsort_field *fields)
{
    if (!t->halves) {
        fields[0] = (hsort_field){.order = t->order, .bytes = t->key_bytes};
        return 1;
    }
    fields[0] = (hsort_field){.type = HSORT_U64, .order = t->order, .big_endian = 1};
    fields[1] = (hsort_field){.offset = 8, .order = t->order, .bytes = t->key_bytes - 8};
    return 2;
}

static hsort_status run_records(const struct trial *t, const unsigned char *keys, const int64_t *order,
                                uint64_t *random)
{
    hsort_field fields[2];
    const int field_count = make_fields(t, fields);
    struct array in = array_of((size_t)t->in_count * t->element_bytes, random), out;
    put_elements(t, keys, NULL, t->in_first, t->in_count, &in);
    array_fill(&in);
    if (t->call == RECORDS) {
        const hsort_status status =
            hsort_sort_records(ctx, in.memory, t->element_bytes, fields, field_count, t->in_count, NULL);
        put_elements(t, keys, order, t->in_first, t->in_count, &in);
        array_check(&in, "records");
        return status;
    }
    out = array_of((size_t)t->out_count * t->element_bytes, random);
    array_fill(&out);
    const hsort_status status = hsort_sort_records_to(ctx, in.memory, t->element_bytes, fields, field_count,
                                                      t->in_count, out.memory, t->out_count, NULL);
    put_elements(t, keys, order, t->out_first, t->out_count, &out);
    array_check(&in, "in");
    array_check(&out, "out");
    return status;
}

static hsort_status run_columns(const struct trial *t, const unsigned char *keys, const int64_t *order,
                                uint64_t *random)
{
    const hsort_field field = {.order = t->order, .bytes = t->key_bytes};
    struct array column = array_of((size_t)t->in_count * (size_t)t->key_bytes, random);
    struct array index = array_of((size_t)t->out_count * sizeof *order, random);
    put_keys(t, keys, NULL, t->in_first, t->in_count, &column);
    array_fill(&column);
    array_fill(&index);
    const hsort_status status =
        hsort_argsort_columns(ctx, (const void *[]){column.memory}, &field, 1, t->in_count,
                              (int64_t *)index.memory, t->out_count, NULL);
    memcpy(index.image, order + t->out_first, index.bytes);
    array_check(&column, "column");
    array_check(&index, "index");
    return status;
}

static hsort_status run_pairs(const struct trial *t, const unsigned char *keys, const int64_t *order,
                              uint64_t *random)
{
    const bool in_place = t->call == PAIRS;
    const int64_t out_first = in_place ? t->in_first : t->out_first,
                  out_count = in_place ? t->in_count : t->out_count;
    struct array arrays[] = {array_of((size_t)(t->in_count * t->key_bytes), random),
                             array_of((size_t)t->in_count * t->element_bytes, random),
                             array_of((size_t)(out_count * t->key_bytes), random),
                             array_of((size_t)out_count * t->element_bytes, random)};
    struct array *in = arrays, *values = arrays + 1, *out = arrays + 2, *values_out = arrays + 3;
    put_keys(t, keys, NULL, t->in_first, t->in_count, in);
    put_elements(t, keys, NULL, t->in_first, t->in_count, values);
    for (int i = 0; i < 4; i++)
        array_fill(&arrays[i]);
    const hsort_status status =
        in_place ? hsort_sort_pairs(ctx, t->type, t->order, in->memory, values->memory, t->element_bytes,
                                    t->in_count, NULL)
                 : hsort_sort_pairs_to(ctx, t->type, t->order, in->memory, values->memory, t->element_bytes,
                                       t->in_count, out->memory, values_out->memory, out_count, NULL);
    put_keys(t, keys, order, out_first, out_count, in_place ? in : out);
    put_elements(t, keys, order, out_first, out_count, in_place ? values : values_out);
    array_check(in, "keys");
    array_check(values, "values");
    array_check(out, "keys_out");
    array_check(values_out, "values_out");
    return status;
}

/* `random` is the same on every rank. */
static void run_trial(struct trial t, uint64_t *random)
{
    static const char *const orders[] = {"ascending", "descending"};
    int64_t in_counts[MOST_RANKS], out_counts[MOST_RANKS];
    layout_counts((enum layout)(check_random(random) % LAYOUTS), t.total, size, check_random(random),
                  in_counts);
    layout_counts((enum layout)(check_random(random) % LAYOUTS), t.total, size, check_random(random),
                  out_counts);
    t.in_first = layout_before(in_counts, rank);
    t.in_count = in_counts[rank];
    t.out_first = layout_before(out_counts, rank);
    t.out_count = out_counts[rank];
    snprintf(what, sizeof what,
             "hsort_%s of %lld elements of %zu bytes, keys of %d bytes in %d fields, type %d, %s, %d values "
             "of a byte",
             call_names[t.call], (long long)t.total, t.element_bytes, t.key_bytes, t.halves ? 2 : 1,
             (int)t.type, orders[t.order == HSORT_DESCENDING], t.values);
    uint64_t own = check_random(random) + (uint64_t)rank; // kinds of memory differ between ranks
    unsigned char *keys = make_keys(&t, check_random(random));
    int64_t *order = make_order(&t, keys);
    const hsort_status status = t.call >= PAIRS     ? run_pairs(&t, keys, order, &own)
                                : t.call == COLUMNS ? run_columns(&t, keys, order, &own)
                                                    : run_records(&t, keys, order, &own);
    CHECK(status == HSORT_OK, "%s: %s", hsort_last_error(ctx), what);
    free(order);
    free(keys);
}

/* Test one way of each limit, or all ways. */
static void test_codes(bool all, uint64_t random)
{
    static const struct {
        int key_bytes;
        int64_t total;
    } limits[] = {{7, 256},      {7, 257},           {6, 65536},  {6, 65537},  {15, 2},
                  {15, 256},     {15, 257},          {14, 65536}, {14, 65537}, {10, 1003},
                  {12, 1003},    {13, 1003},         {16, 2},     {16, 1003},  {16, 65537},
                  {13, 1 << 24}, {13, (1 << 24) + 1}};
    enum { LIMITS = sizeof limits / sizeof limits[0], WAYS = 8 * CALLS, BY_HAND = 2 };
    for (int i = 0; i < (all ? LIMITS : LIMITS - BY_HAND); i++) {
        const int drawn = (int)(check_random(&random) % WAYS);
        for (int way = 0; way < WAYS; way++)
            if (way == drawn || (all && i < LIMITS - BY_HAND))
                run_trial((struct trial){.call = (enum call)(way / 8),
                                         .order = way & 1 ? HSORT_DESCENDING : HSORT_ASCENDING,
                                         .values = way & 2 ? 2 : 256,
                                         .halves = way & 4 && limits[i].key_bytes > 8 && way / 8 != COLUMNS,
                                         .key_bytes = limits[i].key_bytes,
                                         .element_bytes = (size_t)limits[i].key_bytes + 8,
                                         .total = limits[i].total},
                          &random);
    }
}

static void test_wide(bool all, uint64_t random)
{
    static const hsort_type types[] = {HSORT_U32, HSORT_I64, HSORT_F32, HSORT_U64, HSORT_F64};
    static const enum call calls[] = {RECORDS, RECORDS_TO, PAIRS, PAIRS_TO};
    for (int way = 0; way < 8; way++)
        for (int turn = 0; turn < (all ? 8 : 1); turn++) {
            struct trial t = {.call = calls[way / 2], .values = way & 1 ? 2 : 256, .total = WIDE_COUNT};
            t.order = check_random(&random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING;
            t.type = types[check_random(&random) % 5];
            t.key_bytes =
                t.call >= PAIRS ? (int)hsort_type_bytes(t.type) : 1 + (int)(check_random(&random) % 16);
            t.element_bytes = WIDEST - check_random(&random) % 2;
            run_trial(t, &random);
        }
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    const uint64_t seed = ranks_seed();
    hsort_rank_info infos[MOST_RANKS];
    hsort_options options;
    hsort_options_init(&options, sizeof options);
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.threads = 2;
    const hsort_status status = hsort_create(MPI_COMM_WORLD, &options, &ctx);
    CHECK(status == HSORT_OK, "%s", hsort_last_error(NULL));
    if (status == HSORT_OK) {
        if (cuda && hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK)
            buffer_kinds = device_buffer_kinds(infos[rank].gpu_index);
        test_codes(all, seed);
        test_wide(all, seed + 1);
        hsort_destroy(&ctx);
    }
    return ranks_finish();
}
