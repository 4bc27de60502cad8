/* sort_codes(), which sorts inside other calls: codes of 8 and 16 bytes, no two equal, in one pass and in two, against
 * qsort. Codes have few different fields above a position, as the codes of elements do, or none. Also codes that the sort makes from
 * keys of 4 bytes, of ranks that have equally many. Arrays lie between canaries.
 *
 *     test_sort_codes        the host engine
 *     test_sort_codes cuda   the cuda engine, codes in host, pinned, managed and device memory
 *     test_sort_codes ipc    the host engine, with ranks that map each other's memory */
#include "kernels/base/key_width.h"
#include "kernels/numbered_keys.h"
#include "src/library/context.h"
#include "src/library/sort_codes.h"
#include "tests/support/device_buffer.h"
#include "tests/support/faults.h"
#include "tests/support/layout.h"
#include "tests/support/ranks.h"

enum { MOST_RANKS = 64, MANY_CODES = 30000, FEW_CODES = 100, CASES = 60, GUARD = 64, CANARY = 0xc5 };

static int rank, size, buffer_kinds = 1;
static char case_text[160];

/* This must not be asked: nobody could go on from there. */
static int stop_always(void *unused)
{
    (void)unused;
    return 1;
}

static hsort_context *open_context(bool cuda, hsort_exchange exchange, size_t limit)
{
    hsort_options options;
    hsort_context *ctx;
    hsort_options_init(&options, sizeof options);
    options.engine = cuda ? HSORT_ENGINE_CUDA : HSORT_ENGINE_HOST;
    options.exchange = exchange;
    options.threads = 1;
    options.should_stop = stop_always;
    options.device_memory_limit = limit;
    if (exchange == HSORT_EXCHANGE_BITONIC || exchange == HSORT_EXCHANGE_DIRECT)
        options.chunk_bytes = 72; // ends inside of a code
    if (limit > 0) {
        options.transport = HSORT_TRANSPORT_STAGED;
        options.chunk_bytes = 4096;
    }
    if (hsort_create(MPI_COMM_WORLD, &options, &ctx) != HSORT_OK) {
        fprintf(stderr, "%s\n", hsort_last_error(NULL));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return ctx;
}

/* ---- codes ------------------------------------------------------------------------------------------------------- */

static key_code all[2 * MANY_CODES]; /* of all ranks, on every rank */

static int compare_codes(const void *a, const void *b)
{
    const key_code left = *(const key_code *)a, right = *(const key_code *)b;
    return (left > right) - (left < right);
}

/* `total` codes, as they come. fields: how many bits above the position differ. */
static void make_codes(int code_bytes, int64_t total, int fields, uint64_t *random)
{
    const key_code most = key_max(code_bytes);
    for (int64_t i = 0; i < total; i++) {
        const key_code upper = check_random(random), any = upper << 64 | check_random(random);
        const key_code field = fields > 0 ? any & (((key_code)1 << fields) - 1) : 0;
        all[i] = fields < 0 ? most - (key_code)i : ((field << 24) & most) | (key_code)i;
    }
}

/* Codes of one rank between canaries, in any memory. */
struct guarded {
    enum buffer_kind kind;
    unsigned char *memory, *codes, *image;
    size_t bytes;
};

static struct guarded guarded_make(enum buffer_kind kind, int code_bytes, const key_code *codes,
                                   int64_t count)
{
    struct guarded made = {.kind = kind, .bytes = (size_t)count * (size_t)code_bytes};
    made.memory = device_buffer_alloc(kind, made.bytes + 2 * GUARD);
    made.image = malloc(made.bytes + 2 * GUARD);
    if (!made.memory || !made.image)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(made.image, CANARY, made.bytes + 2 * GUARD);
    for (int64_t i = 0; codes && i < count; i++)
        memcpy(made.image + GUARD + i * code_bytes, &codes[i], (size_t)code_bytes); // little-endian
    CHECK(device_buffer_copy(made.memory, made.image, made.bytes + 2 * GUARD), "cannot copy");
    made.codes = made.memory + GUARD;
    return made;
}

static void guarded_fetch(struct guarded *made)
{
    CHECK(device_buffer_copy(made->image, made->memory, made->bytes + 2 * GUARD), "cannot copy");
    for (size_t i = 0; i < GUARD; i++)
        CHECK(made->image[i] == CANARY && made->image[GUARD + made->bytes + i] == CANARY,
              "%s: rank %d: canary", case_text, rank);
}

static void guarded_drop(struct guarded *made)
{
    device_buffer_free(made->kind, made->memory);
    free(made->image);
}

/* ---- one case ---------------------------------------------------------------------------------------------------- */

static void check_codes(struct guarded *out, int code_bytes, const key_code *expected, int64_t count)
{
    int64_t wrong = 0;
    guarded_fetch(out);
    for (int64_t i = 0; i < count; i++)
        wrong += memcmp(out->image + GUARD + i * code_bytes, &expected[i], (size_t)code_bytes) != 0;
    CHECK(wrong == 0, "%s: rank %d: %lld codes are wrong", case_text, rank, (long long)wrong);
}

static void check_case(hsort_context *ctx, const char *name, int number, bool in_host, int passes,
                       uint64_t random)
{
    const int code_bytes = check_random(&random) % 3 ? 16 : 8;
    const int fields[] = {0, 1, 8, 40, 104, -1};
    const int64_t any = (int64_t)(check_random(&random) % MANY_CODES),
                  shift = (int64_t)(check_random(&random) % 4) * 4;
    const bool limited = passes == 2, few = limited && check_random(&random) % 4 == 0;
    const int64_t total = few ? any % FEW_CODES : limited ? MANY_CODES + any : any >> shift;
    const enum layout layout = (enum layout)(check_random(&random) % LAYOUTS);
    const bool in_place = check_random(&random) % 2;
    const enum buffer_kind kind =
        in_host ? BUFFER_HOST : (enum buffer_kind)(check_random(&random) % (uint64_t)buffer_kinds);
    const int which = (int)(check_random(&random) % 6);
    int64_t counts[MOST_RANKS] = {0}, out_counts[MOST_RANKS] = {0};
    hsort_stats stats = {.struct_size = sizeof stats};
    snprintf(case_text, sizeof case_text,
             "%s, case %d: %lld codes of %d bytes, fields %d, layout %d, in place %d", name, number,
             (long long)total, code_bytes, fields[which], layout, in_place);
    make_codes(code_bytes, total, fields[which], &random);
    layout_counts(layout, total, size, random, counts);
    layout_counts(in_place ? layout : (enum layout)(check_random(&random) % LAYOUTS), total, size, random,
                  out_counts);
    if (in_place)
        memcpy(out_counts, counts, sizeof counts);
    struct guarded in = guarded_make(kind, code_bytes, all + layout_before(counts, rank), counts[rank]);
    struct guarded out = guarded_make(kind, code_bytes, NULL, out_counts[rank]);
    const void *sorted = NULL;
    bool placed = true;
    qsort(all, (size_t)total, sizeof all[0], compare_codes);
    stats_begin(ctx); // as a call on elements does
    CHECK(sort_codes(ctx, code_bytes, NULL, in.codes, counts[rank], in_place ? in.codes : out.codes,
                     out_counts[rank], &sorted, &placed, NULL) == HSORT_OK,
          "%s: %s", case_text, hsort_last_error(ctx));
    struct guarded *result = in_place ? &in : &out;
    CHECK(!in_host || result->bytes == 0 || sorted == result->codes, "%s: of host memory, left elsewhere", case_text);
    if (sorted != result->codes && result->bytes > 0) // left in the engine's memory
        CHECK(device_buffer_copy(result->codes, sorted, result->bytes), "cannot copy");
    CHECK(stats_finish(ctx, total) == HSORT_OK && hsort_get_stats(ctx, &stats) == HSORT_OK && stats.keys == total && stats.passes == (few ? 1 : passes),
          "%s: %lld keys, %lld passes", case_text, (long long)stats.keys, (long long)stats.passes);
    check_codes(result, code_bytes, all + layout_before(out_counts, rank), out_counts[rank]);
    guarded_drop(&in);
    guarded_drop(&out);
}

/* ---- numbered keys ------------------------------------------------------------------------------------------------ */

enum { NUMBERED_CASES = 30 };

static uint32_t keys_of_all[MANY_CODES];

/* Let the kernels of this rank seem to leave too much, once. The second function: did they since? */
#ifdef HSORT_FAULTS
static void leave_too_much(void)
{
    fault_set(FAULT_LEFT, 1);
}

static bool has_left_too_much(void)
{
    return !fault_untouched(FAULT_LEFT, 1);
}
#else
static void leave_too_much(void)
{
}

static bool has_left_too_much(void)
{
    return false;
}
#endif

/* Draw keys [total] of few values, of many, or in order already, and make all their codes, in order. Returns the bits of a position. */
static int draw_keys(int64_t total, struct keymap map, uint64_t *random)
{
    const uint64_t kind = check_random(random) % 4;
    const int bits = 16 + (int)(check_random(random) % 16);
    for (int64_t i = 0; i < total; i++) {
        const uint32_t any = (uint32_t)check_random(random);
        keys_of_all[i] = kind == 0 ? any % 3 : kind == 1 ? (uint32_t)keymap_decode(map, (key_code)i) : any;
        all[i] = keymap_encode(map, keys_of_all[i]) << bits | (key_code)i;
    }
    qsort(all, (size_t)total, sizeof all[0], compare_codes);
    return bits;
}

/* Sort numbered keys in the engine's memory to codes or positions. On rank `left`, if there is one, the kernels seem to leave too
 * much. */
static void check_numbered(hsort_context *ctx, bool cuda, const char *name, int number, uint64_t random)
{
    const enum buffer_kind kind = cuda ? BUFFER_DEVICE : BUFFER_HOST;
    const int64_t total =
        (int64_t)(check_random(&random) % MANY_CODES) >> (check_random(&random) % 8 == 0 ? 8 : 0);
    const int64_t first = rank * (total / size) + (rank < total % size ? rank : total % size),
                  count = total / size + (rank < total % size);
    const hsort_type types[] = {HSORT_U32, HSORT_I32, HSORT_F32};
    const struct keymap map =
        keymap_make(types[check_random(&random) % 3], (hsort_order)(check_random(&random) % 2));
    const bool positions_wanted = check_random(&random) % 3 > 0;
    const int left = (int)(check_random(&random) % (uint64_t)(2 * size)),
              bits = draw_keys(total, map, &random);
    struct guarded codes = guarded_make(kind, 8, NULL, count), positions = guarded_make(kind, 8, NULL, count);
    struct guarded keys = guarded_make(kind, 4, NULL, count);
    memcpy(keys.image + GUARD, keys_of_all + first, (size_t)count * 4);
    CHECK(device_buffer_copy(keys.memory, keys.image, keys.bytes + 2 * GUARD), "cannot copy");
    const struct raw_keys numbered = {.map = map,
                                      .from = keys.codes,
                                      .decode = positions_wanted,
                                      .position_bits = bits,
                                      .first = first,
                                      .positions = positions_wanted ? (int64_t *)positions.codes : NULL};
    const void *sorted = NULL;
    bool placed = true;
    snprintf(case_text, sizeof case_text, "%s, numbered %d: %lld keys, %d bits, positions %d, left on %d",
             name, number, (long long)total, bits, positions_wanted, left);
    if (rank == left)
        leave_too_much();
    stats_begin(ctx);
    CHECK(sort_codes(ctx, 8, &numbered, codes.codes, count, codes.codes, count, &sorted, &placed, NULL) ==
              HSORT_OK,
          "%s: %s", case_text, hsort_last_error(ctx));
    const bool has_left = rank == left && has_left_too_much();
    if (!placed && sorted != codes.codes && codes.bytes > 0)
        CHECK(device_buffer_copy(codes.codes, sorted, codes.bytes), "cannot copy");
    CHECK(!placed || (positions_wanted && !has_left), "%s: positions, but nobody wants them or some are left",
          case_text);
    for (int64_t i = 0; i < total && placed; i++)
        all[i] &= ((key_code)1 << bits) - 1;
    check_codes(placed ? &positions : &codes, 8, all + first, count);
    guarded_fetch(&keys);
    CHECK(memcmp(keys.image + GUARD, keys_of_all + first, (size_t)count * 4) == 0, "%s: keys have changed",
          case_text);
    guarded_drop(&codes);
    guarded_drop(&positions);
    guarded_drop(&keys);
}

/* ---- all cases ---------------------------------------------------------------------------------------------------- */

/* All ranks must learn about one wrong count; then all is well again. */
static void check_error(hsort_context *ctx)
{
    _Alignas(16) uint64_t code[2] = {0, 0};
    const void *sorted;
    bool placed;
    CHECK(sort_codes(ctx, 16, NULL, code, rank == size - 1 ? -1 : 1, code, 1, &sorted, &placed, NULL) ==
              HSORT_ARGUMENT,
          "a negative count");
    CHECK(strstr(hsort_last_error(ctx), "a count of -1"), "'%s'", hsort_last_error(ctx));
}

static void test_context(bool cuda, hsort_exchange exchange, size_t limit, const char *name, uint64_t *random)
{
    hsort_context *ctx = open_context(cuda, exchange, limit);
    for (int number = 0; number < CASES; number++)
        check_case(ctx, name, number, limit > 0, limit > 0 ? 2 : 1, check_random(random));
    for (int number = 0; number < NUMBERED_CASES && size > 1 && limit == 0; number++)
        check_numbered(ctx, cuda, name, number, check_random(random));
    check_error(ctx);
    check_case(ctx, name, CASES, limit > 0, limit > 0 ? 2 : 1, check_random(random));
    hsort_destroy(&ctx);
}

/* Return memory for slots of some hundred codes, and for their sort; it is too little for the codes of a case. */
static size_t little_memory(bool cuda)
{
    enum { CODES = 400, SLOTS = 4 };
    hsort_context *ctx = open_context(cuda, HSORT_EXCHANGE_AUTO, 0);
    size_t bytes = 0;
    CHECK(ctx->engine->ops->sort_workspace(ctx->engine, -1, sizeof(key_code), CODES, CODES, &bytes) == HSORT_OK,
          "no workspace");
    hsort_destroy(&ctx);
    bytes += SLOTS * CODES * sizeof(key_code);
    return bytes + bytes / 63 + 16384;
}

/* The GPU of this rank, in whose memory its codes may lie. */
static int own_gpu(void)
{
    hsort_rank_info infos[MOST_RANKS];
    hsort_context *ctx = open_context(true, HSORT_EXCHANGE_AUTO, 0);
    CHECK(hsort_topology(ctx, infos, sizeof *infos) == HSORT_OK, "%s", hsort_last_error(ctx));
    hsort_destroy(&ctx);
    return infos[rank].gpu_index;
}

int main(int argc, char **argv)
{
    bool cuda;
    const bool ipc = argc > 1 && strcmp(argv[1], "ipc") == 0;
    if (!ranks_begin(argc, argv, &rank, &size, &cuda))
        return CHECK_SKIPPED;
    uint64_t random = ranks_seed();
    if (cuda || ipc)
        buffer_kinds = device_buffer_kinds(cuda ? own_gpu() : 0);
    test_context(cuda, HSORT_EXCHANGE_AUTO, 0, "auto", &random);
    test_context(cuda, HSORT_EXCHANGE_BITONIC, 0, "bitonic", &random);
    test_context(cuda, HSORT_EXCHANGE_DIRECT, 0, "direct", &random);
    if (size > 1)
        test_context(cuda, HSORT_EXCHANGE_PARTITION, 0, "partition", &random);
    if (!ipc)
        test_context(cuda, HSORT_EXCHANGE_AUTO, little_memory(cuda), "two passes", &random);
    return ranks_finish();
}
