/* Records, pairs and indices of arrays that do not fit into engine memory: two passes, against the same call in memory, byte
 * for byte. Contexts have limits for slots of a few elements up to some hundred, so that a rank has up to 200 runs; layouts
 * before and after leave ranks with nothing, or with everything. Keys have 1 to 16 bytes, in up to 8 fields. In half of the
 * cases there are only a few different keys, so that ties go through every run and over every border. Inputs must be unchanged,
 * except where they may be overwritten; arrays lie between canaries.
 *
 *     test_element_passes        the host engine, cases drawn by a seed for some seconds
 *     test_element_passes all    the host engine, each call, length of the key, size and number of runs
 *     test_element_passes cuda   the cuda engine, arrays in host and in pinned memory */
#include "hypersort.h"
#include "kernels/engine.h"
#include "tests/support/device_buffer.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum {
    MOST_RANKS = 64,
    GUARD = 64,
    CANARY = 0xc5,
    FIELDS = HSORT_FIELDS_MAX,
    ARRAYS = FIELDS + 1,
    SECONDS = 8,
    SECONDS_PER_CASE = 120,
    LARGEST = 65536 /* bytes of a record or a value */
};

enum call { RECORDS, PAIRS, ARGSORT, COLUMNS, CALLS };
static const char *const call_names[CALLS] = {"records", "pairs", "argsort", "columns"};

/* The same on every rank. */
struct test_case {
    enum call call;
    hsort_field fields[FIELDS];
    int field_count;
    int key_bytes;
    size_t record_bytes; /* of records, or of values */
    int64_t total, slot; /* slot: elements that the limit has slots for */
    bool few_keys, in_place, wants_keys, overwrites, reads;
    int64_t in_counts[MOST_RANKS], out_counts[MOST_RANKS];
    uint64_t seed;
};

/* One array between canaries. */
struct guarded {
    enum buffer_kind kind;
    unsigned char *memory, *bytes;
    size_t length;
};

/* What one call has. An output may be an input: then its `bytes` are the input's, and its memory is NULL. */
struct arrays {
    struct guarded in[ARRAYS], out[2];
};

static int rank, size;
static hsort_engine engine;
static hsort_context *whole; /* sorts in memory */
static char what[300];
static int cases[CALLS];

/* ---- contexts --------------------------------------------------------------------------------------------------- */

static hsort_context *open_context(size_t limit, bool overwrites, bool reads)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = engine;
    options.transport = HSORT_TRANSPORT_STAGED;
    options.shared_memory = reads ? HSORT_CHOICE_AUTO : HSORT_CHOICE_OFF;
    options.exchange = HSORT_EXCHANGE_DIRECT;
    options.threads = 1; // the workspace of more threads would be most of the memory
    options.device_memory_limit = limit;
    options.overwrite_input = overwrites;
    if (hsort_create(MPI_COMM_WORLD, &options, &ctx) != HSORT_OK) {
        fprintf(stderr, "%s\n", hsort_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return ctx;
}

/* Return the bytes of an element as it travels in two passes. */
static size_t element_bytes(const struct test_case *c)
{
    switch (c->call) {
    case RECORDS:
        return c->record_bytes;
    case PAIRS:
        return c->record_bytes + (size_t)c->key_bytes;
    default:
        return (size_t)c->key_bytes + sizeof(int64_t);
    }
}

/* Return engine memory for four slots, two codes of each element of one slot, and the workspace to sort these codes. */
static size_t limit_for(const struct test_case *c)
{
    size_t keys_too;
    CHECK(hsort_workspace(whole, HSORT_U64, c->slot, &keys_too) == HSORT_OK, "no workspace");
    const size_t need = keys_too + (size_t)c->slot * (4 * element_bytes(c) + 2 * 16) + 8 * 256;
    return need + need / 63 + 1;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

/* from NULL: canaries alone. skew: bytes behind what memory is aligned to. */
static struct guarded guarded_make(const void *from, size_t length, size_t skew, enum buffer_kind kind)
{
    struct guarded made = {.kind = kind, .length = length};
    made.memory = device_buffer_alloc(kind, length + 3 * GUARD);
    if (!made.memory)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(made.memory, CANARY, length + 3 * GUARD);
    made.bytes = made.memory + GUARD + skew;
    if (from)
        memcpy(made.bytes, from, length);
    return made;
}

static void guarded_drop(struct guarded *made, const char *name)
{
    for (size_t i = 0; made->memory && i < GUARD; i++)
        CHECK(made->bytes[-1 - (ptrdiff_t)i] == CANARY && made->bytes[made->length + i] == CANARY,
              "rank %d: canary at %s: %s", rank, name, what);
    if (made->memory)
        device_buffer_free(made->kind, made->memory);
}

/* This rank's elements of a case, [count * record_bytes], from which each call takes what it wants. */
static unsigned char *make_records(const struct test_case *c)
{
    enum { POOL = 5 };
    const size_t bytes = c->record_bytes, count = (size_t)c->in_counts[rank];
    unsigned char *records = malloc(count * bytes + 1), *pool = malloc(POOL * bytes);
    uint64_t random = c->seed, own = c->seed + 77 * (uint64_t)(rank + 1);
    if (!records || !pool)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < POOL * bytes; i++)
        pool[i] = (unsigned char)check_random(&random);
    for (size_t i = 1; i < POOL && c->seed % 2;
         i++) { // keys that differ in a byte of some field, perhaps the last one
        const hsort_field *field = &c->fields[check_random(&random) % (uint64_t)c->field_count];
        memcpy(pool + i * bytes, pool, bytes);
        pool[i * bytes + field->offset + check_random(&random) % order_field_bytes(field)] ^=
            (unsigned char)(1 << i);
    }
    for (size_t i = 0; i < count * bytes; i++)
        records[i] = (unsigned char)check_random(&own);
    for (size_t i = 0; i < count && c->few_keys; i++) {
        const unsigned char *from = pool + bytes * (check_random(&own) % POOL);
        for (int f = 0; f < c->field_count; f++)
            memcpy(records + i * bytes + c->fields[f].offset, from + c->fields[f].offset,
                   order_field_bytes(&c->fields[f]));
    }
    free(pool);
    return records;
}

/* Make an array of a field of all records, or of the records. */
static struct guarded array_of(const struct test_case *c, const unsigned char *records,
                               const hsort_field *field, enum buffer_kind kind)
{
    const size_t bytes = field ? order_field_bytes(field) : c->record_bytes, offset = field ? field->offset : 0;
    const size_t count = (size_t)c->in_counts[rank], skew = field ? 0 : c->seed % 3;
    struct guarded made = guarded_make(NULL, count * bytes, skew, kind);
    for (size_t i = 0; i < count; i++)
        memcpy(made.bytes + i * bytes, records + i * c->record_bytes + offset, bytes);
    return made;
}

static bool is_argsort(const struct test_case *c)
{
    return c->call == ARGSORT || c->call == COLUMNS;
}

/* in: the keys or columns, then the records or values; out: what becomes of the records, values or positions; and keys. */
static struct arrays make_arrays(const struct test_case *c, const unsigned char *records,
                                 enum buffer_kind kind)
{
    struct arrays a = {.in = {{0}}};
    const size_t out_count = (size_t)c->out_counts[rank];
    const size_t out_bytes = is_argsort(c) ? sizeof(int64_t) : c->record_bytes;
    for (int i = 0; i < c->field_count && c->call != RECORDS; i++)
        a.in[i] = array_of(c, records, &c->fields[i], kind);
    if (!is_argsort(c))
        a.in[FIELDS] = array_of(c, records, NULL, kind);
    if (c->in_place && !is_argsort(c))
        a.out[0] = (struct guarded){.bytes = a.in[FIELDS].bytes, .length = a.in[FIELDS].length};
    else
        a.out[0] = guarded_make(NULL, out_count * out_bytes, is_argsort(c) ? 0 : 5, kind);
    if (c->call != PAIRS && c->call != ARGSORT)
        return a;
    if (c->in_place)
        a.out[1] = (struct guarded){.bytes = a.in[0].bytes, .length = a.in[0].length};
    else if (c->wants_keys)
        a.out[1] = guarded_make(NULL, out_count * (size_t)c->key_bytes, 0, kind);
    return a;
}

static void drop_arrays(struct arrays *a)
{
    for (int i = 0; i < ARRAYS; i++)
        guarded_drop(&a->in[i], "an input");
    for (int i = 0; i < 2; i++)
        guarded_drop(&a->out[i], "an output");
}

/* ---- one case --------------------------------------------------------------------------------------------------- */

static hsort_status call_it(const struct test_case *c, hsort_context *ctx, const struct arrays *a)
{
    const int64_t count = c->in_counts[rank], out_count = c->out_counts[rank];
    const hsort_type type = c->fields[0].type;
    const hsort_order order = c->fields[0].order;
    const void *columns[FIELDS];
    hsort_field fields[FIELDS];
    for (int i = 0; i < c->field_count; i++) {
        columns[i] = a->in[i].bytes;
        fields[i] = c->fields[i];
        fields[i].offset = 0;
    }
    switch (c->call) {
    case RECORDS:
        return hsort_sort_records_to(ctx, a->in[FIELDS].bytes, c->record_bytes, c->fields, c->field_count,
                                     count, a->out[0].bytes, out_count, NULL);
    case PAIRS:
        return hsort_sort_pairs_to(ctx, type, order, a->in[0].bytes, a->in[FIELDS].bytes, c->record_bytes,
                                   count, a->out[1].bytes, a->out[0].bytes, out_count, NULL);
    case ARGSORT:
        return hsort_argsort(ctx, type, order, a->in[0].bytes, count, (int64_t *)a->out[0].bytes,
                             a->out[1].bytes, out_count, NULL);
    default:
        return hsort_argsort_columns(ctx, columns, fields, c->field_count, count, (int64_t *)a->out[0].bytes,
                                     out_count, NULL);
    }
}

/* Check that there are at least as many runs and segments as slots that take all memory would make. */
static void check_stats(const struct test_case *c, hsort_context *ctx)
{
    hsort_stats stats = {.struct_size = sizeof stats};
    const int64_t largest = (int64_t)(limit_for(c) / 4 / element_bytes(c));
    int64_t runs = 0, segments = 0, sent = 0;
    for (int r = 0; r < size; r++) {
        runs += (c->in_counts[r] + largest - 1) / largest;
        segments += (c->out_counts[r] + largest - 1) / largest;
    }
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == 2 && stats.keys == c->total &&
              stats.runs >= runs && stats.segments >= segments && stats.runs <= 512 * size &&
              hsort_exchange_in_use(ctx) == HSORT_EXCHANGE_AUTO,
          "%d passes, %lld runs, %lld segments, at least %lld and %lld were to be, exchange %d: %s",
          (int)stats.passes, (long long)stats.runs, (long long)stats.segments, (long long)runs,
          (long long)segments, (int)hsort_exchange_in_use(ctx), what);
    for (int phase = 0; phase < HSORT_PHASES; phase++) {
        const bool takes_time = phase == HSORT_PHASE_LOCAL_SORT || phase == HSORT_PHASE_EXCHANGE ||
                                phase == HSORT_PHASE_MERGE;
        CHECK((stats.seconds[phase] > 0) == takes_time && stats.seconds[phase] <= stats.total_seconds,
              "phase %d: %g of %g s: %s", phase, stats.seconds[phase], stats.total_seconds, what);
    }
    for (int path = 0; path < HSORT_TRANSPORTS; path++)
        sent += stats.paths[path].moved_bytes;
    for (int path = 0; path < HSORT_TRANSPORTS; path++)
        CHECK(stats.paths[path].moved_bytes == 0 || stats.paths[path].seconds > 0,
              "%s: path %d takes no time", what, path);
    // No element goes between ranks twice.
    CHECK(sent == stats.moved_bytes && sent <= c->total * (int64_t)element_bytes(c),
          "%lld bytes moved, by paths %lld: %s", (long long)stats.moved_bytes, (long long)sent, what);
}

static bool same_bytes(const struct guarded *a, const struct guarded *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static void run_case(const struct test_case *c, hsort_context *ctx)
{
    snprintf(
        what, sizeof what,
        "%s of %lld elements of %zu bytes by %d fields of %d bytes, few keys %d, slots of %lld, in place %d, "
        "keys wanted %d, overwrites %d, seed %llu",
        call_names[c->call], (long long)c->total, c->record_bytes, c->field_count, c->key_bytes, c->few_keys,
        (long long)c->slot, c->in_place, c->wants_keys, c->overwrites, (unsigned long long)c->seed);
    snprintf(faults_case, sizeof faults_case, "%.120s", what);
    faults_watch(SECONDS_PER_CASE);
    const bool pinned = engine == HSORT_ENGINE_CUDA && (c->seed + (uint64_t)rank) % 2;
    unsigned char *records = make_records(c);
    struct arrays expected = make_arrays(c, records, BUFFER_HOST),
                  kept = make_arrays(c, records, BUFFER_HOST);
    struct arrays found = make_arrays(c, records, pinned ? BUFFER_PINNED : BUFFER_HOST);
    CHECK(call_it(c, whole, &expected) == HSORT_OK, "in memory: %s: %s", hsort_last_error(whole), what);
    const hsort_status status = call_it(c, ctx, &found);
    CHECK(status == HSORT_OK, "%s: %s", hsort_last_error(ctx), what);
    for (int i = 0; i < 2; i++)
        CHECK(same_bytes(&found.out[i], &expected.out[i]), "rank %d: output %d is not that of one pass: %s",
              rank, i, what);
    for (int i = 0; i < ARRAYS; i++) {
        const bool written =
            found.in[i].bytes == found.out[0].bytes || found.in[i].bytes == found.out[1].bytes;
        if (!written && !(c->overwrites && c->call == RECORDS))
            CHECK(same_bytes(&found.in[i], &kept.in[i]), "rank %d: input %d was changed: %s", rank, i, what);
    }
    if (status == HSORT_OK)
        check_stats(c, ctx);
    drop_arrays(&found);
    drop_arrays(&kept);
    drop_arrays(&expected);
    free(records);
    faults_watch(0);
    cases[c->call]++;
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

static hsort_field draw_number(uint64_t *random, bool bare)
{
    return (hsort_field){.type = (hsort_type)(check_random(random) % (HSORT_BF16 + 1)),
                         .order = check_random(random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING,
                         .big_endian = !bare && check_random(random) % 3 == 0};
}

/* Draw fields that have key_bytes together, of a record that has room for each of them. */
static void draw_fields(struct test_case *c, int key_bytes, uint64_t *random)
{
    for (int left = key_bytes; left > 0; c->field_count++) {
        hsort_field *field = &c->fields[c->field_count];
        const bool last = c->field_count == FIELDS - 1;
        *field = draw_number(random, false);
        if (last || check_random(random) % 2 || hsort_type_bytes(field->type) > (size_t)left) {
            field->bytes = last || check_random(random) % 3 == 0
                               ? left
                               : 1 + (int)(check_random(random) % (uint64_t)left);
            field->big_endian = 0;
        }
        left -= (int)order_field_bytes(field);
    }
    for (int i = 0; i < c->field_count; i++)
        if (c->record_bytes < order_field_bytes(&c->fields[i]))
            c->record_bytes = order_field_bytes(&c->fields[i]);
    for (int i = 0; i < c->field_count; i++)
        c->fields[i].offset = check_random(random) % (c->record_bytes - order_field_bytes(&c->fields[i]) + 1);
    c->key_bytes = key_bytes;
}

/* Return the elements of an average rank: for about `runs` runs, and too many for one pass. All elements may lie on one rank. */
static int64_t elements_for(const struct test_case *c, int64_t runs)
{
    const int64_t most = 300 / size > 6 ? 300 / size : 6, wanted = c->slot * (runs < most ? runs : most);
    const int64_t too_many = (int64_t)(limit_for(c) / element_bytes(c)) + 1;
    return wanted > too_many ? wanted : too_many;
}

/* Draw a slot so large that 512 runs are enough for a rank with all elements. What one pass lacks memory for grows with the
 * workspace, which is large beside a few elements. On a GPU it is so from some thousand keys on. */
static int64_t draw_slot(const struct test_case *c, uint64_t *random)
{
    size_t for_one;
    CHECK(hsort_workspace(whole, HSORT_U64, 1, &for_one) == HSORT_OK, "no workspace");
    const int64_t least = (int64_t)(2 * (size_t)size * for_one / 512 / element_bytes(c)) + 2;
    const int64_t drawn = (int64_t)(check_random(random) % (2 + 4000 / element_bytes(c)));
    return engine == HSORT_ENGINE_CUDA ? INT64_C(16384) << drawn % 3 : least + drawn;
}

/* slot 0: a slot is drawn. */
static struct test_case make_case(enum call call, int key_bytes, size_t record_bytes, int64_t slot,
                                  int64_t runs, uint64_t seed)
{
    uint64_t random = seed;
    struct test_case c = {.call = call, .record_bytes = record_bytes, .seed = seed};
    const bool bare = call == PAIRS || call == ARGSORT;
    if (bare) {
        c.fields[0] = draw_number(&random, true);
        c.field_count = 1;
        c.key_bytes = (int)order_field_bytes(&c.fields[0]);
        const size_t least = c.key_bytes > 8 ? (size_t)c.key_bytes : 8; // of which keys are taken, too
        c.record_bytes = call == PAIRS && record_bytes > least ? record_bytes : least;
    } else {
        draw_fields(&c, key_bytes, &random);
    }
    // On a GPU slots begin at the size from which on the workspace is as large as for any other few keys.
    c.slot = slot > 0 ? slot : draw_slot(&c, &random);
    c.few_keys = check_random(&random) % 2;
    c.in_place = call != COLUMNS && check_random(&random) % 3 == 0;
    c.wants_keys = check_random(&random) % 3 > 0;
    c.overwrites = check_random(&random) % 2;
    c.reads = check_random(&random) % 2;
    c.total = elements_for(&c, runs) * size + (int64_t)(check_random(&random) % 3);
    layout_counts((enum layout)(check_random(&random) % LAYOUTS), c.total, size, check_random(&random),
                  c.in_counts);
    layout_counts((enum layout)(check_random(&random) % LAYOUTS), c.total, size, check_random(&random),
                  c.out_counts);
    if (c.in_place)
        memcpy(c.out_counts, c.in_counts, sizeof c.out_counts);
    return c;
}

static const int key_lengths[] = {1, 2, 4, 8, 10, 12, 13, 14, 15, 16};
enum { KEY_LENGTHS = sizeof key_lengths / sizeof key_lengths[0] };

static struct test_case draw_case(uint64_t seed, int number)
{
    uint64_t random = seed;
    const int longest = key_lengths[KEY_LENGTHS - 1], any = key_lengths[check_random(&random) % KEY_LENGTHS];
    const int key_bytes = check_random(&random) % 4 == 0 ? longest : any;
    const enum call call = (enum call)(number % CALLS);
    const bool large =
        engine == HSORT_ENGINE_HOST && number % 40 < CALLS && (call == RECORDS || call == PAIRS);
    const size_t bytes = large ? LARGEST : 1 + check_random(&random) % (check_random(&random) % 2 ? 24 : 300);
    const int64_t draw = (int64_t)(check_random(&random) % 8);
    const int64_t runs = large ? 6 : draw < 7 ? 6 + draw * draw : 200;
    return make_case(call, key_bytes, bytes, 0, runs, check_random(&random));
}

static void run_in_own_context(const struct test_case *c)
{
    hsort_context *ctx = open_context(limit_for(c), c->overwrites, c->reads);
    run_case(c, ctx);
    hsort_destroy(&ctx);
}

static int run_drawn(uint64_t seed, int number, double seconds)
{
    const double begin = MPI_Wtime();
    int go_on = 1;
    for (; go_on; number++) {
        const struct test_case c = draw_case(seed + (uint64_t)number * 1000003, number);
        run_in_own_context(&c);
        go_on = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return number;
}

static int run_matrix(uint64_t seed, int number)
{
    static const size_t sizes[] = {1, 7, 16, 100, 300, LARGEST}; // the last only for records and values
    static const int64_t runs[] = {6, 17, 200};
    for (int call = 0; call < CALLS; call++)
        for (int key = 0; key < KEY_LENGTHS; key++)
            for (size_t bytes = 0;
                 bytes < sizeof sizes / sizeof sizes[0] - (call == ARGSORT || call == COLUMNS); bytes++)
                for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++, number++) {
                    const struct test_case c =
                        make_case((enum call)call, key_lengths[key], sizes[bytes], 0,
                                  sizes[bytes] == LARGEST ? 6 : runs[i], seed + (uint64_t)number * 7919);
                    run_in_own_context(&c);
                }
    return number;
}

/* One context sorts what fits in one pass, before and after what does not, and bare keys between. */
static void test_by_turns(uint64_t seed)
{
    struct test_case c = make_case(RECORDS, 16, 40, 8000, 10, seed | 1);
    c.few_keys = true; // they differ in a byte, because the seed is odd
    c.overwrites = false;
    hsort_context *ctx = open_context(limit_for(&c), false, true);
    for (int turn = 0; turn < 3; turn++) {
        unsigned char few[2][3] = {{7, 1, 2}, {5, 3, 4}};
        uint64_t keys[4] = {4, 3, 2, 1};
        hsort_stats stats = {.struct_size = sizeof stats};
        CHECK(hsort_sort_records(ctx, few, 3, &(hsort_field){.bytes = 1}, 1, 2, NULL) == HSORT_OK &&
                  few[0][0] == (rank < (size + 1) / 2 ? 5 : 7) && hsort_get_stats(ctx, &stats) == HSORT_OK &&
                  stats.passes == 1,
              "few records: %s", hsort_last_error(ctx));
        run_case(&c, ctx);
        CHECK(hsort_sort(ctx, HSORT_U64, HSORT_ASCENDING, keys, 4, NULL) == HSORT_OK && keys[0] <= keys[3],
              "%s", hsort_last_error(ctx));
    }
    hsort_destroy(&ctx);
}

/* Slots have more bytes than a thread moves at a time: chunks cut elements that are joined from two arrays. */
static void test_long_slots(uint64_t seed)
{
    const struct test_case c = make_case(PAIRS, 8, 1001, 3000, 6, seed);
    run_in_own_context(&c);
}

/* With too little memory for any slots there is one line, and arrays are as they were. Also counts that do not go together. */
static void test_refusals(void)
{
    enum { COUNT = 20000, BYTES = 24 };
    const hsort_field field = {.bytes = 16, .offset = 3};
    unsigned char *records = calloc(COUNT, BYTES), *before = calloc(COUNT, BYTES);
    uint64_t random = (uint64_t)rank;
    if (!records || !before)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < COUNT * BYTES; i++)
        records[i] = before[i] = (unsigned char)check_random(&random);
    hsort_context *ctx = open_context(2048, false, true);
    const hsort_status status = hsort_sort_records(ctx, records, BYTES, &field, 1, COUNT, NULL);
    CHECK(status == (engine == HSORT_ENGINE_CUDA ? HSORT_DEVICE_MEMORY : HSORT_HOST_MEMORY) &&
              strstr(hsort_last_error(ctx), "20000 elements: two passes take at least "),
          "status %d: %s", (int)status, hsort_last_error(ctx));
    CHECK(hsort_sort_records_to(ctx, records, BYTES, &field, 1, COUNT / 2, records + COUNT / 2 * BYTES, 1,
                                NULL) == HSORT_ARGUMENT &&
              strstr(hsort_last_error(ctx), "asked for"),
          "%s", hsort_last_error(ctx));
    CHECK(memcmp(records, before, COUNT * BYTES) == 0, "a refused sort has changed records");
    hsort_destroy(&ctx);
    free(records);
    free(before);
}

/* What a call on larger arrays has left counts as free memory, and suffices for a call that needs all of it in one pass. */
static void test_left_memory(void)
{
    enum { COUNT = 2000, LARGER = 6000, BYTES = 40, STEP = 32 << 10 };
    static uint64_t keys[COUNT];
    static int64_t index[LARGER];
    static unsigned char values[LARGER * BYTES], gathered[LARGER * BYTES];
    hsort_stats stats = {.struct_size = sizeof stats};
    hsort_context *ctx;
    hsort_status status;
    size_t limit;
    CHECK(hsort_workspace(whole, HSORT_U128, COUNT, &limit) == HSORT_OK, "no workspace");
    do {
        limit += STEP;
        ctx = open_context(limit, false, true);
        status = hsort_sort_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys, values, BYTES, COUNT, NULL);
        hsort_get_stats(ctx, &stats);
        hsort_destroy(&ctx);
    } while (status != HSORT_OK || stats.passes == 2);
    ctx = open_context(limit, false, true);
    CHECK(hsort_gather(ctx, values, LARGER, BYTES, index, gathered, LARGER, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(hsort_sort_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys, values, BYTES, COUNT, NULL) == HSORT_OK,
          "%zu bytes: %s", limit, hsort_last_error(ctx));
    hsort_destroy(&ctx);
}

int main(int argc, char **argv)
{
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    const bool every = argc > 1 && strcmp(argv[argc - 1], "all") == 0;
    const uint64_t seed = ranks_seed();
    engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    whole = open_context(0, false, false);
    test_refusals();
    if (!cuda) {
        test_by_turns(seed);
        test_left_memory();
    }
    if (size <= 3)
        test_long_slots(seed);
    run_drawn(seed, every ? run_matrix(seed, 0) : 0, SECONDS);
    for (int call = 0; call < CALLS && rank == 0; call++)
        printf("%d cases of %s on %d ranks\n", cases[call], call_names[call], size);
    hsort_destroy(&whole);
    return ranks_finish();
}
