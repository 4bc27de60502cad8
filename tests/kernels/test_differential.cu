/* A randomized differential test: draw after draw of a type, a number of keys and a distribution
 * (ladder_draw.cuh), sorted by one rung and by CUB, all on the device, until the time is up.
 *
 *   test_differential [SECONDS [RUNG...]]     20 seconds, all rungs in turn, slow ones on few keys only
 *   test_differential draw SEED [RUNG...]     one draw once more: the line of a failure names SEED and RUNG
 *   test_differential selftest                spoil results in every way there is: each must be noticed; and
 *                                             draw every distribution on device and host: both must be alike
 *
 * Half of the draws without values are given to the rung as keys of a type and an order, not as codes. They lie in the buffer that the
 * codes would lie in, or in a buffer of their own, which must not change. They are wanted back as codes or as such keys.
 *
 * The keys must be CUB's, one by one. So that a fault which CUB shares is noticed too, they must also be in
 * order and have the fingerprint of the input. Values must be those of their keys, all of them once, and in the
 * order of the input if the rung is stable. Nothing may be written outside the buffers.
 *
 * Memory for the largest draw is allocated once (ladder_arena.cuh): thousands of draws take seconds. */
#include "src/files/input.h"
#include "tests/kernels/ladder_trial.cuh"
#include <vector>

enum {
    SECONDS_USUAL = 20,
    SLOW_COUNT_MAX = 1 << 18, /* keys for slow rungs */
    BYTES_PER_KEY = 64,       /* of all buffers of a draw, for a key of 8 bytes with a value of 8 */
    BYTES_BESIDE = 64 << 20   /* workspaces, guards */
};

static uint32_t wanted_rungs; /* a bit for each number */
static int draws;

static bool is_room_for(int64_t count)
{
    return (size_t)count * BYTES_PER_KEY + BYTES_BESIDE <= arena.bytes;
}

static void check_draw(const struct draw *draw, int rung)
{
    struct trial t;
    run_trial(&t, draw, rung);
    const struct verdict v = judge(&t);
    CHECK(v.found == 0,
          "%s: %llu keys are not CUB's%s, %llu values are wrong, %llu bytes outside are overwritten, "
          "%llu keys of the input%s",
          describe(&t), v.keys, v.found & FOUND_FORM ? " and not the input's in order" : "", v.values,
          v.bytes, v.input, v.found & FOUND_PLACE ? ", the result is not where it may be" : "");
    draws++;
}

/* ---- many draws ---------------------------------------------------------------------------------------- */

static bool takes(int rung, int64_t count)
{
    const bool slow = rung == 1 || rung == 2 || rung == 6;
    return (wanted_rungs >> rung & 1) && (!slow || count <= SLOW_COUNT_MAX);
}

/* Return the next rung in turn that takes so many keys; -1 if none does. */
static int next_rung(int64_t count)
{
    const int rungs = sizeof ladder_rungs / sizeof ladder_rungs[0];
    static int turn;
    for (int tried = 0; tried < rungs; tried++) {
        const int rung = ladder_rungs[turn++ % rungs];
        if (takes(rung, count))
            return rung;
    }
    return -1;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void check_draws(double seconds, uint64_t seed)
{
    const double start = seconds_now();
    while (seconds_now() - start < seconds) {
        const struct draw draw = draw_from(check_random(&seed));
        const int rung = is_room_for(draw.count) ? next_rung(draw.count) : -1;
        if (rung >= 0)
            check_draw(&draw, rung);
    }
}

static void check_one_draw(uint64_t seed)
{
    const struct draw draw = draw_from(seed);
    for (int rung : ladder_rungs) {
        if (is_room_for(draw.count) && takes(rung, draw.count))
            check_draw(&draw, rung);
    }
}

/* ---- does it notice? ----------------------------------------------------------------------------------- */

/* Copy bytes within or between engine and host memory. */
static void copy_now(void *to, const void *from, size_t bytes)
{
    MUST(ops->copy(&engine->base, STREAM_WORK, to, from, bytes));
    MUST(ops->stream_synchronize(&engine->base, STREAM_WORK));
}

/* Exchange two elements of engine memory. */
static void exchange(void *elements, size_t element_bytes, int64_t i, int64_t j)
{
    unsigned char a[8], b[8], *const at = (unsigned char *)elements;
    copy_now(a, at + i * element_bytes, element_bytes);
    copy_now(b, at + j * element_bytes, element_bytes);
    copy_now(at + i * element_bytes, b, element_bytes);
    copy_now(at + j * element_bytes, a, element_bytes);
}

/* Find a position i > 0 whose key is equal, or is not equal, to the key at i - 1; -1 if there is none. */
static int64_t find_neighbours(const struct trial *t, bool equal, uint64_t *random)
{
    const size_t key_bytes = t->draw.type.key_bytes;
    const int64_t start = (int64_t)(check_random(random) % (uint64_t)t->draw.count);
    const unsigned char *const keys = (const unsigned char *)t->g.args.sorted_keys;
    for (int64_t n = 0; n < t->draw.count; n++) {
        const int64_t i = (start + n) % t->draw.count;
        unsigned char pair[16];
        if (i == 0)
            continue;
        copy_now(pair, keys + (i - 1) * key_bytes, 2 * key_bytes);
        if ((memcmp(pair, pair + key_bytes, key_bytes) == 0) == equal)
            return i;
    }
    return -1;
}

/* Each of these functions spoils the result of the trial in one way; false if there is nothing to spoil in this way. */

static bool spoil_nothing(struct trial *, uint64_t *)
{
    return true;
}

static bool change_key(struct trial *t, uint64_t *random)
{
    const size_t bytes = (size_t)t->draw.count * t->draw.type.key_bytes;
    unsigned char *const at = (unsigned char *)t->g.args.sorted_keys + check_random(random) % bytes;
    unsigned char byte;
    copy_now(&byte, at, 1);
    byte ^= (unsigned char)(1 << check_random(random) % 8);
    copy_now(at, &byte, 1);
    return true;
}

/* Swap two keys together with their values, so that all pairs stay right. */
static bool swap_keys(struct trial *t, uint64_t *random)
{
    const int64_t i = find_neighbours(t, false, random);
    if (i < 0)
        return false;
    exchange(t->g.args.sorted_keys, t->draw.type.key_bytes, i - 1, i);
    if (t->draw.type.value_bytes > 0)
        exchange(t->g.args.sorted_values, t->draw.type.value_bytes, i - 1, i);
    return true;
}

/* Make a fault that CUB shares. */
static bool swap_keys_everywhere(struct trial *t, uint64_t *random)
{
    const int64_t i = find_neighbours(t, false, random);
    if (i < 0)
        return false;
    exchange(t->g.args.sorted_keys, t->draw.type.key_bytes, i - 1, i);
    exchange(t->expected, t->draw.type.key_bytes, i - 1, i);
    return true;
}

/* Make another fault that CUB shares: a key is lost and its neighbour doubled, and the keys stay in order. */
static bool double_key_everywhere(struct trial *t, uint64_t *random)
{
    const size_t key_bytes = t->draw.type.key_bytes;
    const int64_t i = find_neighbours(t, false, random);
    if (i < 0)
        return false;
    unsigned char key[8];
    copy_now(key, (unsigned char *)t->g.args.sorted_keys + i * key_bytes, key_bytes);
    copy_now((unsigned char *)t->g.args.sorted_keys + (i - 1) * key_bytes, key, key_bytes);
    copy_now((unsigned char *)t->expected + (i - 1) * key_bytes, key, key_bytes);
    return true;
}

static bool swap_values_of_equal(struct trial *t, uint64_t *random)
{
    const int64_t i = t->draw.type.value_bytes > 0 ? find_neighbours(t, true, random) : -1;
    if (i < 0)
        return false;
    exchange(t->g.args.sorted_values, t->draw.type.value_bytes, i - 1, i);
    return true;
}

static bool swap_values_of_different(struct trial *t, uint64_t *random)
{
    const int64_t i = t->draw.type.value_bytes > 0 ? find_neighbours(t, false, random) : -1;
    if (i < 0)
        return false;
    exchange(t->g.args.sorted_values, t->draw.type.value_bytes, i - 1, i);
    return true;
}

/* Put the first `bytes` of a value over the first bytes of its neighbour, whose key is the same. */
static bool overwrite_value(struct trial *t, uint64_t *random, size_t bytes)
{
    const size_t value_bytes = t->draw.type.value_bytes;
    const int64_t i = value_bytes > 0 ? find_neighbours(t, true, random) : -1;
    if (i < 0)
        return false;
    unsigned char part[8];
    unsigned char *const at = (unsigned char *)t->g.args.sorted_values + i * value_bytes;
    copy_now(part, at, bytes);
    copy_now(at - value_bytes, part, bytes);
    return true;
}

static bool tear_value(struct trial *t, uint64_t *random)
{
    return overwrite_value(t, random, t->draw.type.value_bytes / 2);
}

static bool double_value(struct trial *t, uint64_t *random)
{
    return overwrite_value(t, random, t->draw.type.value_bytes);
}

/* Overwrite one byte before or behind one of the buffers. */
static bool write_outside(struct trial *t, uint64_t *random)
{
    const struct guarded all[] = {t->g.keys, t->g.scratch_keys, t->g.values, t->g.scratch_values,
                                  t->g.workspace};
    const struct guarded chosen = all[check_random(random) % 5];
    const unsigned char byte = 0;
    if (!chosen.memory)
        return false;
    const bool behind = check_random(random) % 2;
    unsigned char *const start = chosen.memory + chosen.front, *const end = start + chosen.bytes;
    copy_now(behind ? end : start - 1, &byte, 1);
    return true;
}

static bool write_scratch(struct trial *t, uint64_t *random)
{
    const unsigned char byte = 0;
    if (!rung_is_network(t->rung))
        return false;
    copy_now((unsigned char *)t->g.scratch_keys.elements + check_random(random) % t->g.scratch_keys.bytes,
             &byte, 1);
    return true;
}

/* Change the input, if it lies in a buffer of its own. */
static bool change_input(struct trial *t, uint64_t *random)
{
    const size_t bytes = (size_t)t->draw.count * t->draw.type.key_bytes;
    unsigned char byte;
    if (!t->from)
        return false;
    unsigned char *const at = (unsigned char *)t->from + check_random(random) % bytes;
    copy_now(&byte, at, 1);
    byte ^= 1;
    copy_now(at, &byte, 1);
    return true;
}

static bool misplace(struct trial *t, uint64_t *)
{
    t->g.args.sorted_keys = t->expected;
    return true;
}

/* What must at least be found after each way to spoil, with stable and with unstable rungs; 0: nothing may be found at all. */
static const struct way {
    const char *words;
    bool (*spoil)(struct trial *, uint64_t *random);
    unsigned stable, unstable;
} ways[] = {
    {"nothing", spoil_nothing, 0, 0},
    {"a key changed", change_key, FOUND_KEYS | FOUND_FORM, FOUND_KEYS | FOUND_FORM},
    {"two keys swapped", swap_keys, FOUND_KEYS | FOUND_FORM, FOUND_KEYS | FOUND_FORM},
    {"two keys swapped, CUB's too", swap_keys_everywhere, FOUND_FORM, FOUND_FORM},
    {"a key doubled, CUB's too", double_key_everywhere, FOUND_FORM, FOUND_FORM},
    {"values of equal keys swapped", swap_values_of_equal, FOUND_VALUES, 0},
    {"values of different keys swapped", swap_values_of_different, FOUND_VALUES, FOUND_VALUES},
    {"a value torn", tear_value, FOUND_VALUES, FOUND_VALUES},
    {"a value doubled", double_value, FOUND_VALUES, FOUND_VALUES},
    {"a byte outside", write_outside, FOUND_BYTES, FOUND_BYTES},
    {"a byte of unneeded scratch", write_scratch, FOUND_BYTES, FOUND_BYTES},
    {"a key of the input", change_input, FOUND_INPUT, FOUND_INPUT},
    {"the result elsewhere", misplace, FOUND_PLACE, FOUND_PLACE},
};

/* Draw a few thousand keys of a few hundred values, so that neighbours are equal here and different there. */
static struct draw spoilable_draw(uint64_t seed, struct ladder_type type)
{
    struct draw d = draw_from(seed);
    struct shape *const s = &d.shapes[0];
    d.type = type;
    d.count = 1000 + (int64_t)(seed % 4000);
    d.mixing = MIX_NONE;
    *s = {};
    s->kind = SHAPE_FEW;
    s->key_bits = 8 * type.key_bytes;
    s->count = d.count;
    s->seed = seed;
    s->width = all_ones(s->key_bits);
    s->many = 300;
    return d;
}

/* Spoil one result. Returns whether there was something to spoil. */
static bool check_way(const struct way *way, const struct draw *draw, int rung, uint64_t seed)
{
    struct trial t;
    const unsigned must = rung_order(rung) == RUNG_STABLE ? way->stable : way->unstable;
    run_trial(&t, draw, rung);
    if (!way->spoil(&t, &seed))
        return false;
    const unsigned found = judge(&t).found;
    CHECK(must == 0 ? found == 0 : (found & must) == must,
          "rung %d, %s, seed %llu: %s: found %#x, where it should be %#x", rung, draw->type.word,
          (unsigned long long)draw->seed, way->words, found, must);
    return true;
}

/* Try every way on every rung and type, several times, because positions are random. */
static void check_notices(uint64_t seed)
{
    for (const struct way &way : ways) {
        int spoilt = 0;
        for (int rung : ladder_rungs) {
            for (struct ladder_type type : ladder_types) {
                for (int repeat = 0; repeat < 3; repeat++) {
                    const struct draw draw = spoilable_draw(check_random(&seed), type);
                    spoilt += check_way(&way, &draw, rung, check_random(&seed));
                }
            }
        }
        CHECK(spoilt > 0, "%s: never done", way.words);
        draws += spoilt;
    }
}

/* A draw must come from its seed alone. */
static void check_repeats(uint64_t seed)
{
    for (int n = 0; n < 200; n++) {
        const uint64_t draw_seed = check_random(&seed);
        const struct draw first = draw_from(draw_seed), second = draw_from(draw_seed);
        struct trial a, b;
        if (first.count > SLOW_COUNT_MAX)
            continue;
        run_trial(&a, &first, 0);
        run_trial(&b, &second, 0);
        CHECK(memcmp(&a.before, &b.before, sizeof a.before) == 0 && a.draw.count == b.draw.count &&
                  strcmp(a.draw.type.word, b.draw.type.word) == 0,
              "draw %llu is another when it is repeated", (unsigned long long)draw_seed);
    }
}

/* What the device draws must be what the host draws. */
static void check_input(const struct input &input)
{
    std::vector<uint64_t> keys(input.count), codes(input.count);
    struct draw d = {};
    struct shape *const s = &d.shapes[0];
    void *drawn;
    s->map = keymap_make(input.type, HSORT_ASCENDING);
    s->kind = SHAPE_DRAWN;
    s->key_bits = 8 * s->map.key_bytes;
    s->source = input_source_make(&input);
    d.type.key_bytes = s->map.key_bytes;
    d.count = input.count;
    const size_t bytes = (size_t)input.count * s->map.key_bytes;
    arena_empty();
    MUST(ops->alloc(&engine->base, bytes, &drawn));
    fill_draw(engine, &d, drawn);
    MUST(ops->decode(&engine->base, s->map, drawn, drawn, input.count));
    copy_now(codes.data(), drawn, bytes);
    input_fill(&input, 0, input.count, keys.data());
    CHECK(memcmp(keys.data(), codes.data(), bytes) == 0,
          "%s:%d of %lld %s, seed %llu: the device draws other keys", distribution_word(input.distribution),
          input.parameter, (long long)input.count, hsort_type_name(input.type),
          (unsigned long long)input.seed);
    draws++;
}

/* Check distributions and types at random, each several times, and mixtures. */
static void check_inputs(uint64_t seed)
{
    for (int round = 0; round < 40 * INPUTS; round++) {
        struct input input = {};
        choose_distribution(&input, &seed);
        if (round % 2)
            input.distribution = INPUT_MIXTURE;
        input.type = (hsort_type)(check_random(&seed) % (HSORT_F64 + 1));
        input.seed = check_random(&seed);
        input.count = 1 + (int64_t)(check_random(&seed) % 20000);
        check_input(input);
    }
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

struct arguments {
    bool is_selftest, is_draw;
    uint64_t draw_seed;
    double seconds;
};

/* Take the rungs from words[i] on, or all rungs if there are no words; false if a word is no rung. */
static bool take_rungs(int count, char **words, int i)
{
    wanted_rungs = i < count ? 0 : ~0u;
    for (; i < count; i++) {
        char *end;
        const long rung = strtol(words[i], &end, 10);
        bool known = false;
        for (int number : ladder_rungs)
            known = known || number == rung;
        if (end == words[i] || *end != 0 || !known)
            return false;
        wanted_rungs |= 1u << rung;
    }
    return true;
}

static bool take_arguments(int count, char **words, struct arguments *a)
{
    char *end;
    *a = {};
    a->seconds = SECONDS_USUAL;
    if (count == 2 && strcmp(words[1], "selftest") == 0) {
        a->is_selftest = true;
        return take_rungs(count, words, 2);
    }
    if (count > 2 && strcmp(words[1], "draw") == 0) {
        a->is_draw = true;
        a->draw_seed = strtoull(words[2], &end, 0);
        return end > words[2] && *end == 0 && take_rungs(count, words, 3);
    }
    if (count == 1)
        return take_rungs(count, words, 1);
    a->seconds = strtod(words[1], &end);
    return end > words[1] && *end == 0 && a->seconds > 0 && take_rungs(count, words, 2);
}

int main(int argc, char **argv)
{
    char why[256];
    struct arguments a;
    struct cuda_device device;
    struct engine *opened;
    if (!take_arguments(argc, argv, &a)) {
        fprintf(stderr, "usage: test_differential [SECONDS [RUNG...]] | draw SEED [RUNG...] | selftest\n");
        return 1;
    }
    if (cuda_device_count(why, sizeof why) == 0) {
        printf("skipped: %s\n", why);
        return CHECK_SKIPPED;
    }
    const uint64_t seed = check_seed();
    if (!a.is_draw)
        printf("HYPERSORT_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    MUST(cuda_device_get(0, &device));
    MUST(engine_open_cuda(0, 0, &opened));
    engine = (struct cuda_engine *)opened;
    arena_open(opened, ((size_t)BYTES_PER_KEY << DRAW_LARGEST_LOG) + BYTES_BESIDE);
    ops = opened->ops;
    signal(SIGALRM, report_hang);
    if (a.is_draw) {
        check_one_draw(a.draw_seed);
    } else if (a.is_selftest) {
        check_notices(seed);
        check_repeats(seed);
        check_inputs(seed);
    } else {
        check_draws(a.seconds, seed);
    }
    arena_close(opened);
    opened->ops->close(opened);
    if (draws == 0) {
        printf("skipped: no draw that these rungs take\n");
        return CHECK_SKIPPED;
    }
    printf("%d draws on %s, %d failures\n", draws, device.name, check_failures);
    return check_failures > 0;
}
