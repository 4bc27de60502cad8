/* Sorts of numbered keys (numbered_keys.h), checked by plain loops that make the code of each position: a part of test_elements. */
#ifndef NUMBERED_TRIAL_H
#define NUMBERED_TRIAL_H

#include "tests/kernels/engine_test.h"

enum { NUMBERED_IN_CHUNKS = 1000, WAYS_OF_MOST = 5 };

static int64_t below(int64_t end, uint64_t *random)
{
    return (int64_t)(check_random(random) % (uint64_t)end);
}

/* A sort of numbered keys; its result is their codes, or positions alone. */
struct numbered {
    hsort_type type;
    enum pattern pattern; /* of the codes of keys */
    int code_bytes;
    int64_t count, scratch_count;
    struct raw_keys raw;
    unsigned char *keys; /* [count] as they came, on the host */
    char what[160];
};

/* Return the code of the key at a position; 0 if no key has this position. */
static key_code numbered_code(const struct numbered *n, int64_t position)
{
    const int64_t i = position - n->raw.first;
    uint64_t bits = 0;
    if (i < 0 || i >= n->count)
        return 0;
    memcpy(&bits, n->keys + i * n->raw.map.key_bytes, (size_t)n->raw.map.key_bytes); // little-endian
    return (key_code)keymap_encode_narrow(n->raw.map, bits) << n->raw.position_bits | (key_code)position;
}

/* Does this entry of a result belong to one of the keys, and does it come after the entry before, if there is one? */
static bool is_right_numbered(const struct numbered *n, key_code found, const key_code *before,
                              bool positions)
{
    const key_code below = ((key_code)1 << n->raw.position_bits) - 1;
    const int64_t position = (int64_t)(found & below);
    const bool is_theirs = position >= n->raw.first && position - n->raw.first < n->count;
    const key_code code = numbered_code(n, position);
    return is_theirs && found == (positions ? (key_code)position : code) &&
           (!before || numbered_code(n, (int64_t)(*before & below)) < code);
}

/* Return the first place where a result is wrong; -1 if there is none. Codes that rise, and that are the codes of their positions,
 * are complete: none comes twice, and there are as many as keys. positions: the result is positions alone. */
static int64_t wrong_numbered(const struct numbered *n, const void *result, bool positions)
{
    int64_t wrong = n->count;
#pragma omp parallel for reduction(min : wrong) if (n->count > DRAW_PART)
    for (int64_t i = 0; i < n->count; i++) {
        const key_code found = key_load(positions ? 8 : n->code_bytes, result, i);
        const key_code before = i > 0 ? key_load(positions ? 8 : n->code_bytes, result, i - 1) : 0;
        if (i < wrong && !is_right_numbered(n, found, i > 0 ? &before : NULL, positions))
            wrong = i;
    }
    return wrong < n->count ? wrong : -1;
}

static void make_numbered_keys(struct numbered *n, uint64_t *random)
{
    const int bytes = n->raw.map.key_bytes;
    const uint64_t seed = check_random(random);
    n->keys = alloc_or_exit((size_t)(n->count * bytes) + 1);
#pragma omp parallel for if (n->count > DRAW_PART)
    for (int64_t begin = 0; begin < n->count; begin += DRAW_PART) {
        uint64_t own = draw_part_seed(seed, begin);
        for (int64_t i = begin; i < draw_part_end(begin, n->count); i++) {
            const key_code code = key_of(n->pattern, 8 * bytes, i, n->count, &own);
            store(bytes, n->keys, i, keymap_decode_narrow(n->raw.map, (uint64_t)code));
        }
    }
}

static bool is_poison(const void *bytes, size_t count)
{
    return memcmp(bytes, poison_of(count), count) == 0;
}

static void sort_numbered(struct numbered *n, uint64_t *random)
{
    const size_t shift = (size_t)n->code_bytes * (size_t)below(4, random);
    const size_t codes = (size_t)(n->count * n->code_bytes),
                 from_bytes = (size_t)(n->count * n->raw.map.key_bytes);
    const bool positions = n->raw.decode && n->raw.positions;
    size_t workspace_bytes;
    must(ops->sort_workspace(engine, -1, n->code_bytes, n->count, n->scratch_count, &workspace_bytes),
         n->what);
    struct buffer from =
        buffer_new(n->keys, from_bytes, (size_t)n->raw.map.key_bytes * (size_t)below(8, random));
    struct buffer keys = buffer_new(NULL, codes, shift);
    struct buffer scratch = buffer_new(NULL, (size_t)(n->scratch_count * n->code_bytes), shift);
    struct buffer at = buffer_new(NULL, (size_t)n->count * sizeof(int64_t), 8 * (size_t)below(4, random));
    struct buffer workspace = buffer_new(NULL, workspace_bytes, 0);
    void *sorted = NULL;
    n->raw.from = buffer_keys(&from);
    n->raw.positions = n->raw.positions ? buffer_keys(&at) : NULL;
    must(ops->sort(engine, -1, n->code_bytes, buffer_keys(&keys), buffer_keys(&scratch), n->scratch_count,
                   n->count, buffer_keys(&workspace), &n->raw, &sorted),
         n->what);
    struct buffer *result = positions ? &at : sorted == buffer_keys(&scratch) ? &scratch : &keys;
    CHECK(sorted == buffer_keys(result), "%s: the result is in none of its places", n->what);
    const int64_t wrong = wrong_numbered(n, buffer_result(result, n->what), positions);
    CHECK(wrong < 0, "%s: wrong at place %lld", n->what, (long long)wrong);
    CHECK(memcmp(buffer_result(&from, n->what), n->keys, from_bytes) == 0, "%s: a key has changed", n->what);
    CHECK(positions || is_poison(buffer_result(&at, n->what), at.bytes), "%s: positions are written",
          n->what);
    struct buffer *const all[] = {&from, &keys, &scratch, &at, &workspace};
    for (int i = 0; i < 5; i++) {
        buffer_guards(all[i], n->what);
        buffer_free(all[i]);
    }
}

/* Check a sort with codes of 8 bytes, if keys and positions fit, or of 16; with positions from 0 on, or up to the last one that
 * there are bits for; sometimes with little scratch. */
static void check_numbered(hsort_type type, hsort_order order, enum pattern pattern, int64_t count,
                           bool decode, bool is_far, uint64_t *random)
{
    struct numbered n = {.type = type, .pattern = pattern, .count = count, .scratch_count = count};
    n.raw.map = keymap_make(type, order);
    n.raw.decode = decode;
    n.raw.in_scratch = check_random(random) % 4 == 0;
    n.raw.positions = decode && check_random(random) % 8 == 0 ? NULL : (int64_t *)1; // 1: they are wanted
    n.code_bytes = n.raw.map.key_bytes == 4 && check_random(random) % 4 ? 8 : 16;
    const int most = n.code_bytes == 8 ? 32 : 63;
    int least = 1;
    while (INT64_C(1) << least < count)
        least++;
    n.raw.position_bits = least + (int)below(most - least + 1, random);
    n.raw.first = is_far ? (int64_t)((UINT64_C(1) << n.raw.position_bits) - (uint64_t)count) : 0;
    if (count == NUMBERED_IN_CHUNKS && check_random(random) % 4 == 0)
        n.scratch_count = count / 4 + 16;
    snprintf(n.what, sizeof n.what,
             "%s, %lld numbered keys %s %s %s, codes of %d bytes, %d bits from %lld on, %s%s", ops->name,
             (long long)count, hsort_type_name(type), pattern_names[pattern],
             order == HSORT_DESCENDING ? "descending" : "ascending", n.code_bytes, n.raw.position_bits,
             (long long)n.raw.first, decode ? "positions" : "codes",
             n.scratch_count < count ? ", in chunks" : "");
    make_numbered_keys(&n, random);
    sort_numbered(&n, random);
    free(n.keys);
}

/* With few keys, check all combinations; with many, each pattern with some of the rest. */
static void test_numbered(uint64_t random)
{
    static const hsort_type types[] = {HSORT_U32, HSORT_I64, HSORT_F64, HSORT_F32};
    static const enum pattern patterns[] = {UNIFORM,         SORTED,     REVERSE,    REVERSE_STEPS,
                                            REVERSE_BUT_ONE, ROTATED,    EQUAL,      TWO_VALUES,
                                            HALF_ZERO,       MAGNITUDES, LOW_16_BITS};
    static const int64_t few[] = {0, 1, 2, NUMBERED_IN_CHUNKS, 1 << 13 | 1},
                         many[] = {(1 << 20) + 3, (1 << 22) + 1, (1 << 24) + 7};
    enum { TYPES = 4, SHAPES = sizeof patterns / sizeof patterns[0] };
    const int large = ops->kind == HSORT_ENGINE_CUDA ? 3 : 1;
    for (int i = 0; i < (int)(sizeof few / sizeof few[0]); i++)
        for (int way = 0; way < 8 * TYPES * SHAPES; way++)
            check_numbered(types[way / 8 % TYPES], way & 1 ? HSORT_DESCENDING : HSORT_ASCENDING,
                           patterns[way / 8 / TYPES], few[i], way & 2, way & 4, &random);
    // Making and checking the most keys takes seconds each time, so only some of the ways are drawn.
    for (int i = 0; i < large; i++)
        for (int way = 0; way < 2 * SHAPES; way++)
            if (i < large - 1 || below(2 * SHAPES, &random) < WAYS_OF_MOST)
                check_numbered(types[below(TYPES, &random)],
                               check_random(&random) % 2 ? HSORT_DESCENDING : HSORT_ASCENDING,
                               patterns[way / 2], many[i], way & 1, check_random(&random) % 2, &random);
}

#endif
