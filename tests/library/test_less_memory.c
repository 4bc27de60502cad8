/* A rank that is alone, whose keys fit into the engine's memory, but not twice: the sort takes less scratch, down to
 * 1/64. Several ranks need the room: keys in engine memory are then refused on every rank, and keys in host memory are sorted in
 * two passes, as are all keys that do not fit at all. What sorts of records and argsorts keep makes way for keys, and the
 * other way round; what a sort keeps makes way for everything else that is done with keys.
 *
 *     test_less_memory        the host engine under a limit. Where the caller's keys lie is made up, and so is the memory that
 *                             the machine has: the linker puts __wrap_engine_open_host() in the place of engine_open_host(),
 *                             and __wrap_host_memory_limits() in that of host_memory_limits() (--wrap)
 *     test_less_memory cuda   the cuda engine under a limit */
#include "kernels/base/host_memory.h"
#include "kernels/engine.h"
#include "tests/support/order.h"
#include "tests/support/ranks.h"

enum {
    COUNT = 1 << 19,
    FEW = 1 << 17,
    RECORDS = 256,
    RECORD_WORDS = 512,
    INDICES = 1 << 16,
    ENTRIES = 1 << 17,
    ROOM_FOR_PATHS = 73 << 20
};

hsort_status __real_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine);
int __real_host_memory_limits(struct host_memory_limit *limits);
int __wrap_host_memory_limits(struct host_memory_limit *limits);

/* ---- a host engine near the caller's keys, or far from them ----------------------------------------------------- */

static bool keys_are_far; /* the engine cannot work on the caller's memory */
static const void *near;  /* except this array */
static bool is_full;      /* the machine's memory */

static hsort_status little_space_of(struct engine *engine, const void *pointer, enum engine_space *space)
{
    (void)engine;
    *space = pointer && pointer != near && keys_are_far ? SPACE_HOST : SPACE_ENGINE;
    return HSORT_OK;
}

hsort_status __wrap_engine_open_host(int threads, size_t memory_limit, struct engine **engine)
{
    static struct engine_ops little;
    TRY(__real_engine_open_host(threads, memory_limit, engine));
    little = *(*engine)->ops;
    little.space_of = little_space_of;
    (*engine)->ops = &little;
    return HSORT_OK;
}

int __wrap_host_memory_limits(struct host_memory_limit *limits)
{
    if (!is_full)
        return __real_host_memory_limits(limits);
    limits[0] = (struct host_memory_limit){.available = 1};
    return 1;
}

/* ---- sorts ------------------------------------------------------------------------------------------------------ */

static int rank, size;

static hsort_context *open_context(bool cuda, hsort_exchange exchange, size_t limit)
{
    hsort_options options;
    hsort_context *ctx;
    CHECK(hsort_options_init(&options, sizeof options) == HSORT_OK, "options");
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.transport = HSORT_TRANSPORT_STAGED;
    options.exchange = exchange;
    options.threads = 1;
    options.device_memory_limit = limit;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    return ctx;
}

/* Sort random keys [count] on each rank in place. The sort must take `passes`, and on one rank the result must be what qsort makes
 * of the keys; passes 0: the sort must be refused, with the keys as they were. */
static void check_sort(hsort_context *ctx, hsort_type type, hsort_order order, int64_t count, int passes,
                       const char *what, uint64_t *random)
{
    const bool fits = passes > 0;
    hsort_stats stats = {.struct_size = sizeof stats};
    const size_t bytes = (size_t)count * hsort_type_bytes(type);
    unsigned char *keys = malloc(bytes), *expected = malloc(bytes);
    if (!keys || !expected)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < bytes; i++)
        expected[i] = keys[i] = (unsigned char)check_random(random);
    const hsort_status status = hsort_sort(ctx, type, order, keys, count, NULL);
    const bool short_of_memory = status == HSORT_DEVICE_MEMORY || status == HSORT_HOST_MEMORY;
    CHECK(fits ? status == HSORT_OK : short_of_memory, "%s: status %d, %s", what, status,
          hsort_last_error(ctx));
    if (fits && size == 1)
        order_sort(type, order, expected, count);
    if (fits)
        CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == passes,
              "%s: %d passes instead of %d", what, (int)stats.passes, passes);
    if (!fits || size == 1)
        CHECK(memcmp(keys, expected, bytes) == 0, "%s: the keys are not what they must be", what);
    free(keys);
    free(expected);
}

/* Sort with memory for the keys, if they are far, and scratch for 1 / share of them; share 0: no scratch, which is too little. */
static void check_share(bool cuda, bool far, hsort_type type, int64_t share, uint64_t *random)
{
    char what[96];
    const size_t keys_bytes = (size_t)COUNT * hsort_type_bytes(type);
    size_t all_bytes;
    snprintf(what, sizeof what, "%s, keys %s, %s, scratch for 1 / %lld", cuda ? "cuda" : "host",
             far ? "far" : "near", hsort_type_name(type), (long long)share);
    // Without the room for a partition, which a sort can do without.
    hsort_context *ctx = open_context(cuda, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, type, COUNT, &all_bytes) == HSORT_OK, "%s: no workspace", what);
    hsort_destroy(&ctx);

    const size_t workspace_bytes = all_bytes - 2 * keys_bytes;
    size_t limit = far ? keys_bytes : 0;
    if (share > 0) // and 1 / 32 more: see find_less() of sort_memory.c
        limit += (keys_bytes / (size_t)share + workspace_bytes) / 32 * 33;
    keys_are_far = far;
    ctx = open_context(cuda, share % 2 ? HSORT_EXCHANGE_PARTITION : HSORT_EXCHANGE_BITONIC,
                       limit > 0 ? limit : 1);
    const hsort_order order = share % 2 ? HSORT_ASCENDING : HSORT_DESCENDING;
    const bool fits = size == 1 && share > 0;
    const int passes = fits ? 1 : far ? 2 : 0;
    check_sort(ctx, type, order, COUNT, passes, what, random);
    check_sort(ctx, type, order, fits ? FEW : COUNT, passes, what, random); // in what the first left
    check_sort(ctx, type, order, COUNT, passes, what, random);
    const int64_t many = (int64_t)(limit / hsort_type_bytes(type)) + 1; // which alone are too many
    if (far)
        check_sort(ctx, type, order, many > 3 * COUNT ? many : 3 * COUNT, 2, what, random);
    hsort_destroy(&ctx);
    keys_are_far = false;
}

/* Sort keys of 2 bytes from engine memory to host memory, or the other way. */
static void check_other_memory(hsort_context *ctx, bool from_engine, uint64_t *random)
{
    static int16_t in[COUNT], out[COUNT];
    hsort_check_result before = {.struct_size = sizeof before}, after = before;
    for (int i = 0; i < COUNT; i++)
        in[i] = (int16_t)check_random(random);
    near = from_engine ? in : out;
    CHECK(hsort_sort_to(ctx, HSORT_I16, HSORT_DESCENDING, in, COUNT, out, COUNT, NULL) == HSORT_OK, "%s",
          hsort_last_error(ctx));
    CHECK(hsort_check(ctx, HSORT_I16, HSORT_DESCENDING, in, COUNT, NULL, &before) == HSORT_OK &&
              hsort_check(ctx, HSORT_I16, HSORT_DESCENDING, out, COUNT, NULL, &after) == HSORT_OK,
          "%s", hsort_last_error(ctx));
    CHECK(after.first_disorder == -1 &&
              memcmp(after.fingerprint, before.fingerprint, sizeof after.fingerprint) == 0,
          "keys of 2 bytes, from the engine's memory %d: not sorted", from_engine);
    near = NULL;
}

/* Sort keys of 2 bytes that go through less memory than they have. */
static void check_pieces(uint64_t *random)
{
    size_t bytes;
    keys_are_far = true;
    hsort_context *ctx = open_context(false, HSORT_EXCHANGE_AUTO, 0);
    CHECK(hsort_workspace(ctx, HSORT_I16, 1, &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    for (int way = 0; way < 3; way++) { // each has to take the memory of its pieces itself
        ctx = open_context(false, HSORT_EXCHANGE_AUTO, bytes + COUNT);
        if (way < 2)
            check_other_memory(ctx, way == 0, random);
        else
            check_sort(ctx, HSORT_I16, HSORT_DESCENDING, COUNT, 1, "keys of 2 bytes", random);
        hsort_destroy(&ctx);
    }
    keys_are_far = false;
}

/* Sort keys of 2 bytes whose table has no room beside what a sort of other keys has left. */
static void check_table(uint64_t *random)
{
    size_t bytes;
    keys_are_far = true;
    hsort_context *ctx = open_context(false, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, HSORT_U64, FEW, &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    ctx = open_context(false, HSORT_EXCHANGE_BITONIC, bytes / 32 * 33);
    check_sort(ctx, HSORT_U64, HSORT_ASCENDING, FEW, 1, "before a table", random);
    check_sort(ctx, HSORT_I16, HSORT_ASCENDING, FEW, 1, "a table after a sort", random);
    hsort_destroy(&ctx);
    keys_are_far = false;
}

/* Sort records in the reverse order, most of which change ranks, in one pass. */
static void check_records(hsort_context *ctx)
{
    const hsort_field field = {.type = HSORT_U64};
    hsort_stats stats = {.struct_size = sizeof stats};
    const int64_t first = (int64_t)rank * RECORDS, total = (int64_t)size * RECORDS;
    static uint64_t records[RECORDS][RECORD_WORDS];
    for (int i = 0; i < RECORDS; i++)
        for (int word = 0; word < RECORD_WORDS; word++)
            records[i][word] = (uint64_t)(total - 1 - first - i);
    const hsort_status status = hsort_sort_records(ctx, records, sizeof *records, &field, 1, RECORDS, NULL);
    CHECK(status == HSORT_OK, "records: status %d, %s", status, hsort_last_error(ctx));
    CHECK(hsort_get_stats(ctx, &stats) == HSORT_OK && stats.passes == 1, "records: %d passes",
          (int)stats.passes);
    for (int i = 0; i < RECORDS; i++)
        for (int word = 0; word < RECORD_WORDS; word++)
            CHECK(records[i][word] == (uint64_t)(first + i), "rank %d: word %d of record %d", rank, word, i);
}

/* Argsort keys in the reverse order, for which the context keeps codes. */
static void check_argsort(hsort_context *ctx)
{
    static uint64_t keys[INDICES];
    static int64_t index[INDICES];
    const int64_t first = (int64_t)rank * INDICES, total = (int64_t)size * INDICES;
    for (int i = 0; i < INDICES; i++)
        keys[i] = (uint64_t)(total - 1 - first - i);
    const hsort_status status =
        hsort_argsort(ctx, HSORT_U64, HSORT_ASCENDING, keys, INDICES, index, NULL, INDICES, NULL);
    CHECK(status == HSORT_OK, "argsort: status %d, %s", status, hsort_last_error(ctx));
    for (int i = 0; i < INDICES; i++)
        CHECK(index[i] == total - 1 - first - i, "rank %d: entry %d of the index", rank, i);
}

/* Sort keys in the reverse order, with values. */
static void check_pairs(hsort_context *ctx)
{
    static uint64_t keys[INDICES], values[INDICES];
    const int64_t first = (int64_t)rank * INDICES, total = (int64_t)size * INDICES;
    for (int i = 0; i < INDICES; i++)
        values[i] = ~(keys[i] = (uint64_t)(total - 1 - first - i));
    const hsort_status status =
        hsort_sort_pairs(ctx, HSORT_U64, HSORT_ASCENDING, keys, values, sizeof *values, INDICES, NULL);
    CHECK(status == HSORT_OK, "pairs: status %d, %s", status, hsort_last_error(ctx));
    for (int i = 0; i < INDICES; i++)
        CHECK(keys[i] == (uint64_t)(first + i) && values[i] == ~keys[i], "rank %d: pair %d", rank, i);
}

/* Argsort keys in engine memory. Their codes come to lie beside what a sort of other keys has left: that has to go, and they stay. */
static void check_codes(uint64_t *random)
{
    size_t bytes;
    hsort_context *ctx = open_context(false, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, HSORT_U64, INDICES, &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    // All that the sort takes, codes of 16 bytes, and half of what their scratch has more than the scratch of keys.
    ctx = open_context(false, HSORT_EXCHANGE_BITONIC, bytes + (size_t)INDICES * (16 + 4));
    keys_are_far = true;
    check_sort(ctx, HSORT_U64, HSORT_ASCENDING, INDICES, 1, "before codes", random);
    keys_are_far = false;
    check_argsort(ctx);
    hsort_destroy(&ctx);
}

/* Argsort keys of 4 bytes, of which a sort makes codes itself if there is as much scratch; with less, codes are made before. */
static void check_short_codes(void)
{
    static uint32_t keys[INDICES];
    static int64_t index[INDICES];
    const int64_t total = (int64_t)size * INDICES;
    size_t bytes;
    hsort_context *ctx = open_context(false, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, HSORT_U64, INDICES, &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    for (int part = 0; part < 4; part++) {
        // All that a sort of codes takes, with no less than half of their scratch; on several ranks all codes once more.
        const size_t codes = (size_t)INDICES * sizeof(uint64_t);
        ctx = open_context(false, HSORT_EXCHANGE_BITONIC,
                           (bytes - codes / 8 * (size_t)part) / 32 * 33 + (size > 1 ? 2 * codes : 0));
        for (int i = 0; i < INDICES; i++)
            keys[i] = (uint32_t)(total - 1 - rank * (int64_t)INDICES - i);
        const hsort_status status =
            hsort_argsort(ctx, HSORT_U32, HSORT_ASCENDING, keys, INDICES, index, NULL, INDICES, NULL);
        CHECK(status == HSORT_OK, "argsort of short keys, part %d: %s", part, hsort_last_error(ctx));
        for (int i = 0; i < INDICES; i++)
            CHECK(index[i] == total - 1 - rank * (int64_t)INDICES - i, "rank %d: entry %d of the index", rank,
                  i);
        hsort_destroy(&ctx);
    }
}

/* Make calls in turn, with memory for the keys of one pass and hardly more. */
static void check_turns(bool cuda, uint64_t *random)
{
    size_t bytes;
    hsort_context *ctx = open_context(cuda, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, HSORT_U64, COUNT, &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    keys_are_far = true;
    ctx = open_context(cuda, HSORT_EXCHANGE_BITONIC, bytes / 32 * 33);
    for (int turn = 0; turn < 3; turn++) {
        keys_are_far = cuda || turn < 2; // for near keys nobody asks whether two passes would do
        check_records(ctx);
        keys_are_far = true;
        const int64_t count = turn == 1 ? 2 * COUNT : COUNT; // for which a rank alone takes less scratch
        check_sort(ctx, HSORT_U64, HSORT_ASCENDING, count, count > COUNT && size > 1 ? 2 : 1, "after records",
                   random);
        keys_are_far = cuda || turn % 2; // for near keys nobody asks beforehand whether there is room
        check_argsort(ctx);
        keys_are_far = true;
        check_sort(ctx, HSORT_U64, HSORT_ASCENDING, COUNT, 1, "after an argsort", random);
        keys_are_far = cuda || turn % 2 == 0;
        check_pairs(ctx);
        keys_are_far = true;
        check_sort(ctx, HSORT_U64, HSORT_ASCENDING, COUNT, 1, "after pairs", random);
    }
    hsort_destroy(&ctx);
    keys_are_far = false;
}

/* Make a call that takes as much memory as a sort, or less, when a sort has taken nearly all, for arrays that no other engine could
 * work on. */
static void check_after_sort(int call, uint64_t *random)
{
    static const char *const names[] = {"select", "unique", "gather", "scatter"};
    static uint64_t keys[COUNT], out[COUNT], key;
    static int64_t index[COUNT];
    const int64_t place = COUNT - 1;
    int64_t kept;
    size_t bytes;
    hsort_context *ctx = open_context(false, HSORT_EXCHANGE_BITONIC, 0);
    CHECK(hsort_workspace(ctx, HSORT_U64, COUNT, &bytes) == HSORT_OK, "no workspace");
    hsort_destroy(&ctx);
    // A gather on several ranks takes more for each entry of its index.
    const int64_t count = call < 2 ? COUNT : COUNT / 4;
    ctx = open_context(false, HSORT_EXCHANGE_BITONIC, bytes / 32 * 33);
    check_sort(ctx, HSORT_U64, HSORT_ASCENDING, COUNT, 1, names[call], random);
    for (int i = 0; i < COUNT; i++)
        keys[i] = out[i] = (uint64_t)i, index[i] = rank * count + i;
    const hsort_status status =
        call == 0   ? hsort_select(ctx, HSORT_U64, HSORT_ASCENDING, keys, count, &place, 1, &key, NULL)
        : call == 1 ? hsort_unique(ctx, HSORT_U64, keys, count, keys, &kept, NULL, NULL, NULL, NULL)
        : call == 2 ? hsort_gather(ctx, keys, count, sizeof *keys, index, out, count, NULL)
                    : hsort_scatter(ctx, keys, count, sizeof *keys, index, out, count, NULL);
    CHECK(status == HSORT_OK, "%s after a sort: %s", names[call], hsort_last_error(ctx));
    CHECK(call != 0 || key == (uint64_t)(place / size), "select after a sort: %llu", (unsigned long long)key);
    CHECK(call != 1 || kept == count, "unique after a sort: %lld", (long long)kept);
    for (int i = 0; i < count; i++)
        CHECK(out[i] == (uint64_t)i, "%s after a sort: element %d", names[call], i);
    check_sort(ctx, HSORT_U64, HSORT_ASCENDING, COUNT, 1, names[call], random);
    hsort_destroy(&ctx);
}

/* What a gather has given back, or takes of the cores instead, is in nobody's way. On the host engine, whose limits may be so small. */
static void check_after_gather(size_t limit)
{
    uint64_t *keys = calloc(COUNT, sizeof *keys);
    int64_t *index = calloc(ENTRIES, sizeof *index), *out = calloc(ENTRIES, sizeof *out);
    hsort_context *ctx, *none;
    hsort_options options;
    hsort_check_result result = {.struct_size = sizeof result};
    hsort_path_speed *speeds = calloc((size_t)size, sizeof *speeds);
    char refused[200];
    hsort_options_init(&options, sizeof options);
    options.engine = HSORT_ENGINE_HOST;
    options.device_memory_limit = limit;
    keys_are_far = true;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &ctx) == HSORT_OK, "%s", hsort_last_error(NULL));
    options.chunk_bytes = 7;
    CHECK(hsort_create(MPI_COMM_WORLD, &options, &none) == HSORT_ARGUMENT, "chunks of 7 bytes");
    snprintf(refused, sizeof refused, "%s", hsort_last_error(NULL));
    CHECK(hsort_gather(ctx, keys, ENTRIES, sizeof *keys, index, out, ENTRIES, NULL) == HSORT_OK,
          "limit %zu: gather: %s", limit, hsort_last_error(ctx));
    CHECK(refused[0] && strcmp(refused, hsort_last_error(NULL)) == 0, "limit %zu: '%s' is '%s' now", limit,
          refused, hsort_last_error(NULL));
    CHECK(hsort_check(ctx, HSORT_U64, HSORT_ASCENDING, keys, COUNT, NULL, &result) == HSORT_OK,
          "limit %zu: check: %s", limit, hsort_last_error(ctx));
    CHECK(limit < ROOM_FOR_PATHS || hsort_measure_paths(ctx, speeds, sizeof *speeds) == HSORT_OK,
          "limit %zu: paths: %s", limit, hsort_last_error(ctx));
    hsort_destroy(&ctx);
    free(keys);
    free(index);
    free(out);
    free(speeds);
}

/* ---- by the host's cores ---------------------------------------------------------------------------------------- */

enum core_call { CORE_GATHER, CORE_SCATTER, CORE_UNIQUE, CORE_SELECT, CORE_CALLS, ARRAYS = 5 };

/* The arrays of such calls, of which each call takes as many as it has, and what else a call may write. */
static int64_t arrays[ARRAYS][ENTRIES], others[2];

/* What entry i of each array holds: a place among the entries of all ranks. */
static int64_t entry_of(int64_t i)
{
    return rank * (int64_t)ENTRIES + ENTRIES - 1 - i;
}

/* in_place: unique keys go where they come from. */
static hsort_status call_cores(hsort_context *ctx, enum core_call call, bool in_place)
{
    int64_t(*const a)[ENTRIES] = arrays;
    const int64_t position = 0;
    if (call == CORE_SELECT)
        return hsort_select(ctx, HSORT_I64, HSORT_ASCENDING, a[0], ENTRIES, &position, 1, &others[0], NULL);
    if (call == CORE_UNIQUE)
        return hsort_unique(ctx, HSORT_I64, a[0], ENTRIES, in_place ? a[0] : a[1], &others[1], a[2], a[3],
                            a[4], NULL);
    return (call == CORE_GATHER ? hsort_gather : hsort_scatter)(ctx, a[0], ENTRIES, 8, a[1], a[2], ENTRIES,
                                                                NULL);
}

/* Make a call that all ranks must refuse: array `which` lies where only an engine gets at it; which < 0: the machine is full. */
static void check_refused(hsort_context *ctx, enum core_call call, int which)
{
    is_full = which < 0;
    near = rank == size - 1 && !is_full ? arrays[which] : NULL;
    others[0] = others[1] = -1;
    for (int64_t i = 0; i < ENTRIES * ARRAYS; i++)
        arrays[i / ENTRIES][i % ENTRIES] = entry_of(i % ENTRIES);
    const hsort_status status = call_cores(ctx, call, is_full);
    CHECK(status == (is_full ? HSORT_HOST_MEMORY : HSORT_DEVICE_MEMORY), "call %d, array %d: status %d, %s",
          (int)call, which, (int)status, hsort_last_error(ctx));
    int64_t changed = others[0] != -1 || others[1] != -1;
    for (int64_t i = 0; i < ENTRIES * ARRAYS; i++)
        changed += arrays[i / ENTRIES][i % ENTRIES] != entry_of(i % ENTRIES);
    CHECK(changed == 0, "call %d, array %d: refused, but %lld numbers have changed", (int)call, which,
          (long long)changed);
    is_full = false;
    near = NULL;
}

/* Make calls that the cores would do for want of engine memory, but cannot. On the host engine. */
static void check_by_cores(void)
{
    static const int taken[CORE_CALLS] = {3, 3, 5, 1}; // arrays
    keys_are_far = true;
    hsort_context *ctx = open_context(false, HSORT_EXCHANGE_AUTO, 3 << 16);
    for (int call = 0; call < CORE_CALLS; call++) {
        for (int which = 0; which < taken[call]; which++)
            check_refused(ctx, (enum core_call)call, which);
        if (size > 1 || call == CORE_UNIQUE || call == CORE_SELECT) // the other calls of a rank that is alone take no memory
            check_refused(ctx, (enum core_call)call, -1);
    }
    hsort_destroy(&ctx);
    keys_are_far = false;
}

int main(int argc, char **argv)
{
    static const int64_t shares[] = {2, 3, 8, 50, 0};
    bool cuda;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed() + (uint64_t)rank;
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        for (int far = cuda; far <= 1; far++) {
            check_share(cuda, far, HSORT_F64, shares[i], &random);
            check_share(cuda, far, HSORT_U32, shares[i], &random);
        }
    if (!cuda) {
        check_pieces(&random);
        check_table(&random);
        check_codes(&random);
        check_short_codes();
    }
    check_turns(cuda, &random);
    for (int call = 0; !cuda && call < 4; call++)
        check_after_sort(call, &random);
    static const size_t limits[] = {3 << 16, 3 << 20, ROOM_FOR_PATHS};
    for (int i = 0; !cuda && i < 3; i++)
        check_after_gather(limits[i]);
    if (!cuda)
        check_by_cores();
    return ranks_finish();
}
