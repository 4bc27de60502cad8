/* What the tests of generated input share: whole inputs as codes, which order as the keys do. */
#ifndef INPUT_CODES_H
#define INPUT_CODES_H

#include "tests/support/check.h"
#include "src/files/input.h"
#include "kernels/base/key_width.h"
#include "kernels/base/status.h"
#include <inttypes.h>
#include <math.h>

enum { KEYS = 20000 };

static const hsort_type types[] = {
#define X(name, short_name, bytes) name,
    HSORT_TYPE_LIST(X)
#undef X
};
/* The first TYPES are those that have room for what distributions are of; test_input_types.c holds the others against them. */
enum { ALL_TYPES = sizeof types / sizeof types[0], TYPES = HSORT_F64 + 1 };

static inline struct input make_input(const char *text, hsort_type type, uint64_t seed, int64_t count)
{
    struct input input = {.type = type, .seed = seed, .count = count};
    status_clear();
    CHECK(input_parse(text, &input) == HSORT_OK, "%s: %s", text, status_text());
    return input;
}

/* codes [KEYS] of a whole input, in ascending order of the type. */
static inline void make_codes(const struct input *input, uint64_t *codes)
{
    const struct keymap map = keymap_make(input->type, HSORT_ASCENDING);
    static uint64_t keys[KEYS];
    input_fill(input, 0, input->count, keys);
    for (int64_t i = 0; i < input->count; i++)
        codes[i] = keymap_encode(map, key_load(map.key_bytes, keys, i));
}

static inline uint64_t code_of(hsort_type type, double value)
{
    const struct keymap map = keymap_make(type, HSORT_ASCENDING);
    float narrow = (float)value;
    uint64_t bits = (uint64_t)value;
    if (type == HSORT_F64)
        memcpy(&bits, &value, sizeof value);
    if (type == HSORT_F32)
        memcpy(&bits, &narrow, sizeof narrow); // little-endian
    return keymap_encode(map, bits);
}

static inline int compare_codes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static inline int count_distinct(uint64_t *codes, int64_t count)
{
    qsort(codes, (size_t)count, sizeof *codes, compare_codes);
    int distinct = count > 0;
    for (int64_t i = 1; i < count; i++)
        distinct += codes[i] != codes[i - 1];
    return distinct;
}

static inline int count_descents(const uint64_t *codes, int64_t count)
{
    int descents = 0;
    for (int64_t i = 1; i < count; i++)
        descents += codes[i] < codes[i - 1];
    return descents;
}

#endif
