/* One draw of tests/kernels/test_differential.cu, sorted by one rung and by CUB, and everything that may be wrong with the result. */
#ifndef LADDER_TRIAL_CUH
#define LADDER_TRIAL_CUH

#include <signal.h>
#include <unistd.h>
#include "kernels/cuda/ladder/tuning.h"
#include "tests/kernels/ladder_arena.cuh"
#include "tests/kernels/ladder_draw.cuh"
#include "tests/kernels/ladder_guard.cuh"

enum { SECONDS_PER_DRAW = 60 /* a draw that takes longer hangs */ };

static struct cuda_engine *engine;
static const struct engine_ops *ops;

struct trial {
    struct draw draw;
    int rung;
    void *original, *expected; /* [count] the input; what CUB makes of it */
    bool has_bits, is_apart;   /* the rung is given bits; in a buffer of their own */
    hsort_type type;           /* of the bits */
    hsort_order order;
    struct raw_keys raw;
    void *from; /* [count] the bits' own buffer */
    struct engine_inspection before;
    struct guarded_sort g;
};

/* What is wrong with a result. */
enum finding {
    FOUND_PLACE = 1, /* it is not in one pair of buffers, or not in place */
    FOUND_KEYS = 2,  /* keys are not CUB's */
    FOUND_FORM = 4,  /* keys are not in order, or not those of the input */
    FOUND_VALUES = 8,
    FOUND_BYTES = 16, /* outside the buffers */
    FOUND_INPUT = 32  /* the input, in a buffer of its own, was changed */
};

struct verdict {
    unsigned found; /* of enum finding */
    unsigned long long keys, values, bytes, input;
};

/* Half of all draws see the GPU as it is. The others see it with the shared memory of a smaller GPU, if it has more; some of these
 * also see an older GPU. */
static void choose_gpu(uint64_t seed)
{
    static int own_bytes;
    if (own_bytes == 0)
        own_bytes = engine->block_bytes;
    const int of_class = MSD_BLOCK_BYTES[seed % 2 ? MSD_163 : MSD_96];
    const bool is_other = seed >> 1 & 1 && of_class < own_bytes;
    cuda_pretend(engine, is_other ? of_class : own_bytes, is_other && seed >> 2 & 1);
}

/* Return the trial in words, with the command that repeats it; good until the next call. */
static const char *describe(const struct trial *t)
{
    static char text[500], given[64] = "codes";
    if (t->has_bits)
        snprintf(given, sizeof given, "%s %s%s%s", hsort_type_name(t->type),
                 t->order == HSORT_DESCENDING ? "descending" : "ascending", t->is_apart ? " apart" : "",
                 t->raw.decode ? " and back" : "");
    snprintf(text, sizeof text, "test_differential draw %llu %d: rung %d, blocks of %d KiB%s, %s, %s",
             (unsigned long long)t->draw.seed, t->rung, t->rung, engine->block_bytes >> 10,
             engine->launches_apart ? " of an older GPU" : "", draw_words(&t->draw),
             t->has_bits ? given : "codes");
    return text;
}

/* What the handler of the alarm writes; the handler itself must not format a text. */
static char running[500];

static void report_hang(int)
{
    if (write(STDERR_FILENO, running, strlen(running)) < 0)
        _exit(2);
    _exit(1);
}

/* Queue the sort and wait for it; a CUDA error ends the program, because nothing works after it. */
static void sort_and_wait(const struct trial *t, int rung, struct sort_args *args)
{
    device_scope scope(engine);
    if (ladder_sort(engine, rung, args) == HSORT_OK && ops->stream_synchronize(&engine->base, STREAM_WORK) == HSORT_OK)
        return;
    fprintf(stderr, "%s: %s reports: %s\n", describe(t), rung == t->rung ? "it" : "CUB", status_text());
    exit(1);
}

/* Sort a copy of the input with CUB, without values. */
static void make_expected(struct trial *t)
{
    struct sort_args args = {};
    const size_t bytes = (size_t)t->draw.count * t->draw.type.key_bytes;
    size_t workspace_bytes;
    args.key_bytes = t->draw.type.key_bytes;
    args.count = t->draw.count;
    MUST(ladder_workspace(engine, 0, &args, &workspace_bytes));
    MUST(ops->alloc(&engine->base, bytes, &args.keys));
    MUST(ops->alloc(&engine->base, bytes, &args.scratch_keys));
    MUST(ops->alloc(&engine->base, workspace_bytes, &args.workspace));
    MUST(ops->copy(&engine->base, STREAM_WORK, args.keys, t->original, bytes));
    sort_and_wait(t, 0, &args);
    t->expected = args.sorted_keys;
}

/* Buffers as guarded_sort_make() has them, but aligned as the draw says. */
static void make_buffers(struct trial *t)
{
    const struct ladder_type type = t->draw.type;
    struct guarded_sort *const g = &t->g;
    struct guarded *const buffers[] = {&g->keys, &g->scratch_keys, &g->values, &g->scratch_values};
    const int element_bytes[] = {type.key_bytes, type.key_bytes, type.value_bytes, type.value_bytes};
    size_t workspace_bytes;
    *g = {};
    g->engine = engine;
    g->args.key_bytes = type.key_bytes;
    g->args.value_bytes = type.value_bytes;
    g->args.count = t->draw.count;
    MUST(ladder_workspace(engine, t->rung, &g->args, &workspace_bytes));
    for (int b = 0; b < 4; b++)
        *buffers[b] = guarded_make(g, element_bytes[b], t->draw.count, !(t->draw.shifted >> b & 1));
    g->workspace = guarded_make(g, 1, workspace_bytes, true);
    g->args.keys = g->keys.elements;
    g->args.scratch_keys = g->scratch_keys.elements;
    g->args.values = g->values.elements;
    g->args.scratch_values = g->scratch_values.elements;
    g->args.workspace = g->workspace.elements;
    MUST(ops->copy(&engine->base, STREAM_WORK, g->args.keys, t->original, g->keys.bytes));
    fill_values(engine, type.value_bytes, g->args.values, t->draw.count);
}

/* Choose how the draw is given to the rung. */
static void choose_bits(struct trial *t)
{
    static const hsort_type types[2][3] = {{HSORT_U32, HSORT_I32, HSORT_F32},
                                           {HSORT_U64, HSORT_I64, HSORT_F64}};
    const uint64_t word = random_word(t->draw.seed, t->draw.count, 60);
    t->has_bits = word & 1 && t->draw.type.value_bytes == 0;
    t->is_apart = word >> 1 & 1;
    t->type = types[t->draw.type.key_bytes == 8][(word >> 8) % 3];
    t->order = word >> 2 & 1 ? HSORT_DESCENDING : HSORT_ASCENDING;
    t->raw.map = keymap_make(t->type, t->order);
    t->raw.decode = word >> 3 & 1;
    t->raw.in_scratch = word >> 4 & 1;
}

/* Turn the rung's keys into bits, after make_buffers(). */
static void give_bits(struct trial *t)
{
    struct sort_args *args = &t->g.args;
    if (!t->has_bits)
        return;
    t->raw.from = args->keys;
    if (t->is_apart) {
        MUST(ops->alloc(&engine->base, t->g.keys.bytes, &t->from));
        t->raw.from = t->from;
    }
    MUST(ops->decode(&engine->base, t->raw.map, (void *)t->raw.from, t->original, t->draw.count));
    args->raw = &t->raw;
}

/* Turn bits back into codes, in the result and in the bits' own buffer. */
static void take_bits(struct trial *t)
{
    const struct keymap map = t->raw.map;
    if (t->has_bits && t->raw.decode)
        MUST(ops->encode(&engine->base, map, t->g.args.sorted_keys, t->g.args.sorted_keys, t->draw.count));
    if (t->from)
        MUST(ops->encode(&engine->base, map, t->from, t->from, t->draw.count));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
}

/* Make the input and sort it with CUB and with the rung. */
static void run_trial(struct trial *t, const struct draw *draw, int rung)
{
    *t = {};
    t->draw = *draw;
    t->rung = rung;
    choose_gpu(draw->seed);
    choose_bits(t);
    arena_empty();
    snprintf(running, sizeof running, "%s: not done after %d seconds\n", describe(t), SECONDS_PER_DRAW);
    alarm(SECONDS_PER_DRAW);
    MUST(ops->alloc(&engine->base, (size_t)draw->count * draw->type.key_bytes, &t->original));
    fill_draw(engine, draw, t->original);
    t->before = look_at(engine, draw->type.key_bytes, t->original, draw->count);
    make_expected(t);
    make_buffers(t);
    give_bits(t);
    sort_and_wait(t, rung, &t->g.args);
    alarm(0);
    take_bits(t);
}

static bool is_well_placed(const struct trial *t)
{
    const struct sort_args *args = &t->g.args;
    if (args->sorted_keys == args->keys && args->sorted_values == args->values)
        return true;
    if (t->has_bits && t->raw.decode)
        return false;
    return !rung_is_network(t->rung) && args->sorted_keys == args->scratch_keys &&
           args->sorted_values == args->scratch_values;
}

/* Look at everything. */
static struct verdict judge(struct trial *t)
{
    const struct ladder_type type = t->draw.type;
    const int64_t count = t->draw.count;
    const struct sort_args *args = &t->g.args;
    struct verdict v = {};
    if (!is_well_placed(t)) {
        v.found = FOUND_PLACE;
        return v;
    }
    v.keys = count_different(engine, type.key_bytes, args->sorted_keys, t->expected, count);
    if (type.value_bytes > 0)
        v.values = wrong_pairs(engine, type.key_bytes, type.value_bytes, t->original, args->sorted_keys,
                               args->sorted_values, count, rung_order(t->rung));
    if (t->from)
        v.input = count_different(engine, type.key_bytes, t->from, t->original, count);
    v.bytes = guarded_sort_free(&t->g, rung_is_network(t->rung));
    v.found = (v.keys > 0 ? FOUND_KEYS : 0) | (v.values > 0 ? FOUND_VALUES : 0) |
              (v.bytes > 0 ? FOUND_BYTES : 0) | (v.input > 0 ? FOUND_INPUT : 0);
    if (!is_sorted_form(engine, type.key_bytes, args->sorted_keys, count, t->before))
        v.found |= FOUND_FORM;
    return v;
}

#endif
