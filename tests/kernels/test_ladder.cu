/* Every rung of the ladder, with keys alone and with values of each size. Keys are compared with CUB's, one by one.
 * Values name the position that each key came from, and are checked against the input. Sizes are around powers of
 * two and the borders of tiles, some inputs skew digits, elements are aligned to no more than their size, and every
 * buffer has poison around it.
 *
 *   test_ladder [small] [RUNG...]     only these rungs
 *
 * small: what compute-sanitizer can bear (jobs/sanitize.sh). Nothing is poisoned then, and the host engine
 * stands in for CUB. */
#include "kernels/cuda/ladder/tuning.h"
#include "tests/kernels/ladder_guard.cuh"

static struct cuda_engine *engine;
static const struct engine_ops *ops;
static bool small_sizes;
static uint32_t wanted_rungs; /* a bit for each number */
static int cases;

/* Bytes that sorting in place may take beside the keys, whatever their number. */
enum { NETWORK_WORKSPACE = 1 << 16 };

/* An input and what every rung must make of it. */
struct ladder_case {
    struct ladder_type type;
    int64_t count;
    int input;
    uint64_t seed;
    void *original, *expected; /* [count] */
};

/* The case and a rung in words, for messages; good until the next call. */
static const char *describe(const struct ladder_case *c, int rung)
{
    static char text[160];
    snprintf(text, sizeof text, "rung %d, %s, %lld keys, %s, seed %llu", rung, c->type.word,
             (long long)c->count, ladder_input_word(c->input), (unsigned long long)c->seed);
    return text;
}

/* Sort keys [count] on the host, and copy them back. */
static void sort_on_host(int key_bytes, void *keys, int64_t count)
{
    const size_t bytes = (size_t)count * key_bytes;
    struct engine *host;
    void *here, *scratch, *workspace, *sorted;
    size_t workspace_bytes;
    MUST(engine_open_host(1, 0, &host));
    MUST(host->ops->sort_workspace(host, 7, key_bytes, count, count, &workspace_bytes));
    MUST(host->ops->alloc(host, bytes, &here));
    MUST(host->ops->alloc(host, bytes, &scratch));
    MUST(host->ops->alloc(host, workspace_bytes, &workspace));
    MUST(ops->copy(&engine->base, STREAM_WORK, here, keys, bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    MUST(host->ops->sort(host, 7, key_bytes, here, scratch, count, count, workspace, NULL, &sorted));
    MUST(ops->copy(&engine->base, STREAM_WORK, keys, sorted, bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    host->ops->free(host, here);
    host->ops->free(host, scratch);
    host->ops->free(host, workspace);
    host->ops->close(host);
}

/* Sort keys [count] with CUB. */
static void sort_with_cub(int key_bytes, void *keys, int64_t count)
{
    const size_t bytes = (size_t)count * key_bytes;
    struct sort_args args = {};
    size_t workspace_bytes;
    args.key_bytes = key_bytes;
    args.count = count;
    args.keys = keys;
    MUST(ladder_workspace(engine, 0, &args, &workspace_bytes));
    MUST(ops->alloc(&engine->base, bytes, &args.scratch_keys));
    MUST(ops->alloc(&engine->base, workspace_bytes, &args.workspace));
    {
        device_scope scope(engine);
        MUST(ladder_sort(engine, 0, &args));
    }
    if (args.sorted_keys != keys)
        MUST(ops->copy(&engine->base, STREAM_WORK, keys, args.sorted_keys, bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    ops->free(&engine->base, args.scratch_keys);
    ops->free(&engine->base, args.workspace);
}

/* Make the buffers and run the rung. */
static void run_rung(const struct ladder_case *c, int rung, struct guarded_sort *g)
{
    device_scope scope(engine);
    guarded_sort_make(g, engine, small_sizes, rung, c->type, c->original, c->count);
    MUST(ladder_sort(engine, rung, &g->args));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
    const struct sort_args *args = &g->args;
    CHECK((args->sorted_keys == args->keys && args->sorted_values == args->values) ||
              (args->sorted_keys == args->scratch_keys && args->sorted_values == args->scratch_values),
          "%s: the result is not in one pair of buffers", describe(c, rung));
    if (rung_is_network(rung))
        CHECK(args->sorted_keys == args->keys && g->workspace.bytes <= NETWORK_WORKSPACE,
              "%s: not in place, it wants %zu bytes", describe(c, rung), g->workspace.bytes);
}

/* Sort the same once more: an unstable rung may order the values of equal keys as it likes, but always in the same way. */
static void check_again(const struct ladder_case *c, int rung, const struct sort_args *first)
{
    struct guarded_sort again;
    run_rung(c, rung, &again);
    const unsigned long long differ =
        count_different(engine, c->type.value_bytes, first->sorted_values, again.args.sorted_values, c->count);
    CHECK(differ == 0, "%s: %llu values differ from the first run's", describe(c, rung), differ);
    guarded_sort_free(&again, false);
}

static void check_rung(const struct ladder_case *c, int rung)
{
    struct guarded_sort g;
    run_rung(c, rung, &g);
    const unsigned long long differ =
        count_different(engine, c->type.key_bytes, g.args.sorted_keys, c->expected, c->count);
    CHECK(differ == 0, "%s: %llu keys differ from those expected", describe(c, rung), differ);
    if (c->type.value_bytes > 0) {
        const unsigned long long wrong =
            wrong_pairs(engine, c->type.key_bytes, c->type.value_bytes, c->original, g.args.sorted_keys,
                        g.args.sorted_values, c->count, rung_order(rung));
        CHECK(wrong == 0, "%s: %llu values are wrong", describe(c, rung), wrong);
        if (rung_order(rung) == RUNG_UNSTABLE)
            check_again(c, rung, &g.args);
    }
    const unsigned long long spoilt = guarded_sort_free(&g, rung_is_network(rung));
    CHECK(spoilt == 0, "%s: it wrote %llu bytes outside its buffers%s", describe(c, rung), spoilt,
          rung_is_network(rung) ? ", or into scratch, which sorting in place does not need" : "");
    cases++;
}

/* Check all rungs on one input. */
static void check_rungs(struct ladder_type type, int64_t count, int input, uint64_t seed)
{
    struct ladder_case c = {type, count, input, seed, NULL, NULL};
    const size_t bytes = (size_t)count * type.key_bytes;
    MUST(ops->alloc(&engine->base, bytes, &c.original));
    MUST(ops->alloc(&engine->base, bytes, &c.expected));
    if (count > 0) {
        fill_keys(engine, type.key_bytes, c.original, count, input, seed);
        MUST(ops->copy(&engine->base, STREAM_WORK, c.expected, c.original, bytes));
        (small_sizes ? sort_on_host : sort_with_cub)(type.key_bytes, c.expected, count);
    }
    for (int rung : ladder_rungs) {
        if (wanted_rungs >> rung & 1)
            check_rung(&c, rung);
    }
    ops->free(&engine->base, c.original);
    ops->free(&engine->base, c.expected);
}

/* Return the keys of a usual tile of rung 7, the one rung whose tiles are no powers of two; few keys have tiles of 2^12. */
static int64_t onesweep_tile(struct ladder_type type)
{
    const int keys = type.key_bytes == 8     ? ONESWEEP_KEYS_8
                     : type.value_bytes == 0 ? ONESWEEP_KEYS_4
                                             : ONESWEEP_KEYS_4_PAIRS;
    return (int64_t)ONESWEEP_THREADS * keys;
}

/* Check sizes at which a rung could change its path: powers of two, for the tiles of the networks, and multiples of
 * the tile of rung 7. */
static void check_borders(struct ladder_type type, int64_t tile, uint64_t *seed)
{
    const int64_t of_tiles[] = {tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 1, 3 * tile + 17};
    for (int input : {UNIFORM, TWO}) {
        for (int power = 0; power <= 18; power++) {
            for (int64_t count = (INT64_C(1) << power) - 1; count <= (INT64_C(1) << power) + 1; count++)
                check_rungs(type, count, input, check_random(seed));
        }
        for (int64_t count : of_tiles)
            check_rungs(type, count, input, check_random(seed));
    }
}

static void check_inputs(struct ladder_type type, int64_t tile, uint64_t *seed)
{
    const int64_t sizes[] = {2, 33, 1000, 4097, tile, 3 * tile + 17, 65537, 150001, 1000003};
    for (int input = 0; input < LADDER_INPUT_COUNT; input++) {
        for (int64_t count : sizes)
            check_rungs(type, count, input, check_random(seed));
    }
}

static void check_random_sizes(struct ladder_type type, uint64_t *seed)
{
    for (int i = 0; i < 24; i++) {
        const int64_t below = INT64_C(1) << (1 + check_random(seed) % 22);
        check_rungs(type, (int64_t)(check_random(seed) % (uint64_t)below), UNIFORM, check_random(seed));
    }
    for (int input : {STAIRS, FLOATS, ZIPF})
        check_rungs(type, (INT64_C(1) << 24) + 5, input, check_random(seed));
    check_rungs(type, (INT64_C(1) << 26) - 1, UNIFORM, check_random(seed));
}

/* Check a few sizes of all kinds: inside a tile of each rung, at its border, and beyond it. */
static void check_small(struct ladder_type type, int64_t tile, uint64_t *seed)
{
    const int64_t sizes[] = {2, 33, 1000, 4097, tile, 2 * tile + 1, (1 << 15) + 1};
    for (int64_t count : sizes)
        check_rungs(type, count, UNIFORM, check_random(seed));
    for (int input : {EQUAL, TWO, REVERSE, NARROW, STRIDED})
        check_rungs(type, 4097, input, check_random(seed));
    if (wanted_rungs >> 8 & 1) { // sizes for a level of its own
        for (int input : {UNIFORM, FLOATS, ZIPF})
            check_rungs(type, (1 << 17) + 77, input, check_random(seed));
    }
}

/* Take the arguments; false if there is one that means nothing. */
static bool take_arguments(int count, char **words)
{
    for (int i = 1; i < count; i++) {
        char *end;
        const long rung = strtol(words[i], &end, 10);
        if (strcmp(words[i], "small") == 0)
            small_sizes = true;
        else if (*end == 0 && end > words[i] && rung >= 0 && rung < 32)
            wanted_rungs |= 1u << rung;
        else
            return false;
    }
    if (wanted_rungs == 0)
        wanted_rungs = ~0u;
    return true;
}

int main(int argc, char **argv)
{
    struct cuda_device device;
    if (!take_arguments(argc, argv)) {
        fprintf(stderr, "usage: test_ladder [small] [RUNG...]\n");
        return 1;
    }
    if (!open_first_gpu(&engine, &device))
        return CHECK_SKIPPED;
    ops = engine->base.ops;
    uint64_t seed = check_seed();
    printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (const struct ladder_type &type : ladder_types) {
        const int64_t tile = onesweep_tile(type);
        if (small_sizes) {
            check_small(type, tile, &seed);
            continue;
        }
        check_borders(type, tile, &seed);
        check_inputs(type, tile, &seed);
        check_random_sizes(type, &seed);
    }
    ops->close(&engine->base);
    printf("%d cases on %s, %d failures\n", cases, device.name, check_failures);
    return check_failures > 0;
}
