/* What test_values counts: trials, the keys of each, and the values in them. */
#ifndef VALUES_TRIAL_H
#define VALUES_TRIAL_H

#include "tests/kernels/engine_test.h"

/* X(name): what codes are like; `values` of them where that is not said otherwise */
#define SHAPE_LIST(X)                                         \
    X(ONE)                                                    \
    X(LOWEST)    /* all of code 0 */                          \
    X(GREATEST)  /* all of the greatest code */               \
    X(BOTH_ENDS) /* these two */                              \
    X(ZIPF)      /* of 2^16, value v as often as 1 / v */     \
    X(DENSE)     /* one behind the other */                   \
    X(OUTLIERS)  /* and a few far away on both sides */       \
    X(WIDE)      /* anywhere */                               \
    X(STRIDES)   /* that differ in leading bits alone */      \
    X(SPECIAL)   /* the bits of zeros, infinities and NaNs */ \
    X(UNIFORM_KEYS)

enum shape {
#define X(name) SHAPE_##name,
    SHAPE_LIST(X)
#undef X
        SHAPES
};

static const char *const shape_names[] = {
#define X(name) #name,
    SHAPE_LIST(X)
#undef X
};

/* X(name): what count_values() is told of where codes lie */
#define HINT_LIST(X) \
    X(ALL)           \
    X(MOST)          \
    X(TOO_NARROW)    \
    X(TOO_WIDE)      \
    X(POINT)         \
    X(ELSEWHERE)

enum hint {
#define X(name) HINT_##name,
    HINT_LIST(X)
#undef X
        HINTS
};

static const char *const hint_names[] = {
#define X(name) #name,
    HINT_LIST(X)
#undef X
};

struct trial {
    hsort_type type;
    hsort_order order;
    enum shape shape;
    enum hint hint;
    int ranks, log;
    int64_t count, values;
    bool decode;
    bool used; // the rooms hold tables of other keys
    char what[192];
};

/* 0, the least number above it, 1, infinity, and NaNs; of either sign. */
static inline uint64_t special_bits(int key_bytes, uint64_t any)
{
    static const uint64_t narrow[] = {0, 1, 0x3f800000, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff};
    static const uint64_t wide[] = {0,
                                    1,
                                    0x3ff0000000000000,
                                    0x7ff0000000000000,
                                    0x7ff0000000000001,
                                    0x7ff8000000000000,
                                    0x7fffffffffffffff};
    const uint64_t sign = any >> 63 << (8 * key_bytes - 1);
    return sign | (key_bytes == 4 ? narrow : wide)[any % 7];
}

/* Of `values` keys or more each value has one. */
static inline uint64_t value_trial_bits(const struct trial *trial, struct keymap map, int64_t i,
                                        uint64_t *random)
{
    const uint64_t all = key_max(map.key_bytes), any = check_random(random);
    const uint64_t value = i < trial->values ? (uint64_t)i : any % (uint64_t)trial->values;
    switch (trial->shape) {
    case SHAPE_ONE:
        return keymap_decode(map, 42);
    case SHAPE_LOWEST:
        return keymap_decode(map, 0);
    case SHAPE_GREATEST:
        return keymap_decode(map, all);
    case SHAPE_BOTH_ENDS:
        return keymap_decode(map, any & 1 ? all : 0);
    case SHAPE_ZIPF:
        return keymap_decode(map, (uint64_t)exp((double)(any >> 11) * 0x1p-53 * log(65537)));
    case SHAPE_OUTLIERS:
        if (any >> 32 << 32 < UINT64_MAX / 500)
            return keymap_decode(map, any & 1 ? all - (any & 6) : any & 6);
        return keymap_decode(map, all / 3 + value);
    case SHAPE_DENSE:
        return keymap_decode(map, all / 3 + value);
    case SHAPE_WIDE: // an odd factor: no two of 2^32 become one
        return keymap_decode(map, value * UINT64_C(0x9e3779b97f4a7c15) & all);
    case SHAPE_STRIDES:
        return keymap_decode(map, value << (8 * map.key_bytes - 23) & all);
    case SHAPE_SPECIAL:
        return special_bits(map.key_bytes, any);
    default:
        return any & all;
    }
}

static inline char *trial_keys(const struct trial *trial, struct keymap map, uint64_t *random)
{
    char *keys = alloc_or_exit((size_t)(trial->count * map.key_bytes) + 1);
    for (int64_t i = 0; i < trial->count; i++)
        store(map.key_bytes, keys, i, value_trial_bits(trial, map, i, random));
    return keys;
}

static inline int compare_values(const void *a, const void *b)
{
    const struct engine_value *left = a, *right = b;
    return (left->code > right->code) - (left->code < right->code);
}

/* The values of keys [count], ascending; how many to *values. */
static inline struct engine_value *count_on_host(struct keymap map, const char *keys, int64_t count,
                                                 int64_t *values)
{
    struct engine_value *found = alloc_or_exit((size_t)count * sizeof *found + 1);
    for (int64_t i = 0; i < count; i++)
        found[i] = (struct engine_value){keymap_encode(map, key_load(map.key_bytes, keys, i)), 1};
    qsort(found, (size_t)count, sizeof *found, compare_values);
    *values = 0;
    for (int64_t i = 0; i < count; i++) {
        if (*values > 0 && found[*values - 1].code == found[i].code)
            found[*values - 1].keys++;
        else
            found[(*values)++] = found[i];
    }
    return found;
}

#endif
