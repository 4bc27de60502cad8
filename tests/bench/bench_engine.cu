/* Experiments with what the engine makes of the ladder: keys that are no codes, sorts with less scratch than keys, and keys of
 * 16 bytes. */
#include "tests/bench/bench.h"
#include "kernels/cuda/ladder/tuning.h"

/* ---- keys of all types --------------------------------------------------------------------------------- */

static int rung_of(const struct sort_args *args)
{
    return tuning_rung(args->key_bytes, args->count);
}

static hsort_status workspace_of_ours(struct cuda_engine *engine, int, const struct sort_args *args,
                                      size_t *bytes)
{
    return ladder_workspace(engine, rung_of(args), args, bytes);
}

/* Sort bits to bits, in one call. */
static hsort_status sort_bits(struct cuda_engine *engine, int type, struct sort_args *args)
{
    struct raw_keys raw = {};
    raw.map = keymap_make((hsort_type)type, HSORT_ASCENDING);
    raw.from = args->keys;
    raw.decode = true;
    args->raw = &raw;
    const hsort_status status = ladder_sort(engine, rung_of(args), args);
    args->raw = NULL;
    return status;
}

/* The same in three calls, of which two do nothing but encode and decode. */
static hsort_status sort_in_three(struct cuda_engine *engine, int type, struct sort_args *args)
{
    const struct keymap map = keymap_make((hsort_type)type, HSORT_ASCENDING);
    TRY(keys_map(engine, map, true, args->keys, args->keys, args->count));
    TRY(ladder_sort(engine, rung_of(args), args));
    return keys_map(engine, map, false, args->sorted_keys, args->sorted_keys, args->count);
}

/* Integers are uniform, floats are uniform between -1 and 1, because CUB orders NaNs in another way. */
void bench_types(struct bench *b)
{
    static const hsort_type types[] = {HSORT_U32, HSORT_I32, HSORT_F32, HSORT_U64, HSORT_I64, HSORT_F64};
    for (int size : {16, 20, 24, 28}) {
        for (hsort_type type : types) {
            const bool is_float = type == HSORT_F32 || type == HSORT_F64;
            const struct ladder_type keys = {hsort_type_name(type), (int)hsort_type_bytes(type), 0};
            if (!bench_load(b, keys, INT64_C(1) << size, is_float ? FLOATS : UNIFORM))
                continue;
            bench_decode(b, type);
            const struct bench_subject cub = {"cub", "", cub_sort_typed, cub_sort_typed_workspace, type, RUNG_STABLE};
            const struct bench_subject ours[] = {
                {"default rung", "at once", sort_bits, workspace_of_ours, type, RUNG_STABLE},
                {"default rung", "encode sort decode", sort_in_three, workspace_of_ours, type, RUNG_STABLE}};
            b->cub_ms = bench_row(b, &cub);
            for (const bench_subject &subject : ours)
                bench_row(b, &subject);
        }
    }
}

/* ---- less scratch than keys ---------------------------------------------------------------------------- */

static int64_t scratch_of(const struct sort_args *args, int parts)
{
    const int64_t part = divide_up(args->count, parts);
    return parts == 1 ? part : part + part / 64; // as a rank that is alone takes
}

static hsort_status workspace_of_engine(struct cuda_engine *engine, int parts, const struct sort_args *args,
                                        size_t *bytes)
{
    return engine->base.ops->sort_workspace(&engine->base, -1, args->key_bytes, args->count,
                                            parts == 0 ? 0 : scratch_of(args, parts), bytes);
}

static hsort_status sort_by_engine(struct cuda_engine *engine, int parts, struct sort_args *args)
{
    return engine->base.ops->sort(&engine->base, -1, args->key_bytes, args->keys, args->scratch_keys,
                                  parts == 0 ? 0 : scratch_of(args, parts), args->count, args->workspace,
                                  NULL, &args->sorted_keys);
}

/* Sort with scratch for all keys, for a part of them, and with none. */
void bench_less_scratch(struct bench *b)
{
    static const struct {
        int parts;
        const char *words;
    } ways[] = {{1, "scratch for all"},   {2, "scratch for 1/2"},  {3, "scratch for 1/3"},
                {4, "scratch for 1/4"},   {8, "scratch for 1/8"},  {16, "scratch for 1/16"},
                {64, "scratch for 1/64"}, {0, "no scratch at all"}};
    for (const struct ladder_type &type : ladder_types) {
        if (type.value_bytes > 0 || !bench_load(b, type, INT64_C(1) << 28, UNIFORM))
            continue;
        const struct bench_subject cub = bench_rung(b, 0);
        bench_row(b, &cub);
        for (const auto &way : ways) {
            const struct bench_subject subject = {"engine",  way.words,  sort_by_engine, workspace_of_engine,
                                                  way.parts, RUNG_STABLE};
            bench_row(b, &subject);
        }
    }
}

/* ---- keys of 16 bytes ---------------------------------------------------------------------------------- */

/* Take the data in hand, words of 8 bytes, for half as many keys of 16 bytes. */
static struct sort_args as_wide(const struct sort_args &args)
{
    struct sort_args wide = args;
    wide.key_bytes = 16;
    wide.count /= 2;
    return wide;
}

static hsort_status workspace_of_wide(struct cuda_engine *engine, int rung, const struct sort_args *args,
                                      size_t *bytes)
{
    const struct sort_args wide = as_wide(*args);
    return ladder_workspace(engine, rung, &wide, bytes);
}

static hsort_status sort_wide(struct cuda_engine *engine, int rung, struct sort_args *args)
{
    struct sort_args wide = as_wide(*args);
    const hsort_status status = ladder_sort(engine, rung, &wide);
    args->sorted_keys = wide.sorted_keys;
    return status;
}

/* Compare what rung 8 makes of the data in hand with CUB's result, word for word. */
static void compare_wide(struct bench *b)
{
    const size_t bytes = (size_t)b->count * 8;
    struct engine *engine = &b->engine->base;
    void *expected;
    int64_t different = 0;
    MUST(b->ops->alloc(engine, bytes, &expected));
    for (int rung : {0, 8}) {
        struct sort_args args = b->args;
        size_t workspace;
        MUST(b->ops->copy(engine, STREAM_WORK, args.keys, b->original, bytes));
        MUST(workspace_of_wide(b->engine, rung, &args, &workspace));
        MUST(b->ops->alloc(engine, workspace, &args.workspace));
        MUST(sort_wide(b->engine, rung, &args));
        MUST(b->ops->stream_synchronize(engine, STREAM_WORK));
        if (rung == 0)
            MUST(b->ops->copy(engine, STREAM_WORK, expected, args.sorted_keys, bytes));
        else
            MUST(b->ops->yardstick->compare(engine, HSORT_U64, expected, args.sorted_keys, b->count,
                                            &different));
        b->ops->free(engine, args.workspace);
    }
    b->ops->free(engine, expected);
    if (different > 0) {
        bench_note(b, "FAILED: %lld words of sorted keys of 16 bytes differ from CUB's",
                   (long long)different);
        b->failures++;
    }
}

/* Time rung 8, beside CUB's sort of such keys, and beside CUB's sort of as many keys of 8 bytes with values of 8. */
void bench_wide(struct bench *b)
{
    const struct ladder_type words = {"u64", 8, 0}, pairs = {"8+8", 8, 8};
    const int64_t count = INT64_C(1) << 27;
    for (int input : {UNIFORM, ENTROPY3, CLUSTERED}) {
        if (bench_load(b, pairs, count, input)) {
            const struct bench_subject cub = bench_rung(b, 0);
            bench_row(b, &cub);
        }
        if (!bench_load(b, words, 2 * count, input))
            continue;
        compare_wide(b);
        for (int rung : {0, 8}) {
            struct bench_subject subject = {
                bench_rung_name(rung), "keys of 16 bytes", sort_wide, workspace_of_wide, rung, RUNG_UNSTABLE};
            subject.is_partial = true; // its words are not in order; compare_wide() has looked
            bench_row(b, &subject);
        }
    }
}
