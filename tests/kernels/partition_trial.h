/* What test_partition sorts: trials, and the keys of each. */
#ifndef PARTITION_TRIAL_H
#define PARTITION_TRIAL_H

#include "tests/kernels/engine_test.h"

enum { SAMPLE_MAX = 1 << ENGINE_SAMPLE_LOG_MAX, ROW = 16 };

/* What keys are like: a pattern of engine_test.h, or one of these. */
enum {
    ZIPF = PATTERNS, // value v as often as 1 / v
    FAR_CLUSTERS,    // two ranges of 16 bits, far apart
    MEASURED,        // floating point numbers around 0 and 1, with zeros, infinities and NaNs of either sign
    NEIGHBOURS,      // codes of the sample, perhaps the map's bounds, and their neighbours
    SIGNED,          // floating point numbers of either sign, of all magnitudes down to 2^-40
    STRAGGLERS,      // two ranges far apart, and few keys between them: a sample may have none of these
    FULL_REGIONS,    // evenly over trial.full_regions of the 256 of a foreign map
    ROWS,            // ROW of equal keys, one row behind the other
    SHAPES
};

static inline const char *shape_name(int shape)
{
    static const char *const names[] = {"ZIPF",   "FAR_CLUSTERS", "MEASURED",     "NEIGHBOURS",
                                        "SIGNED", "STRAGGLERS",   "FULL_REGIONS", "ROWS"};
    return shape < PATTERNS ? pattern_names[shape] : names[shape - PATTERNS];
}

struct trial {
    int kind; // of keys: a type
    hsort_order order;
    int shape, ranks, log;
    int64_t count;
    int full_regions;
    size_t settle_bytes; // of scratch, to settle
    bool foreign;        // the map is one of uniform keys
    bool decode;
    bool late; // nothing is looked at before the end: calls follow each other without a wait
    bool rooms; // shards are scattered by scatter_to_rooms(), if it will
    char what[160];
};

/* The map of a trial with a foreign map is made of the first 2^log of these. */
static key_code uniform_codes[SAMPLE_MAX];

/* Return code i as words_store() has stored it. */
static inline key_code words_load(int key_bytes, const uint64_t *words, int64_t i)
{
    uint128 wide;
    if (key_words(key_bytes) == 1)
        return words[i];
    memcpy(&wide, words + KEY_CODE_WORDS * i, sizeof wide);
    return wide;
}

/* Return the bits of a floating point number of key_bytes, in the lowest bytes. */
static inline uint64_t float_bits(int key_bytes, double value)
{
    const float narrow = (float)value;
    uint64_t bits = 0;
    memcpy(&bits, key_bytes == 4 ? (const void *)&narrow : &value,
           key_bytes == 4 ? sizeof narrow : sizeof value);
    return bits;
}

static inline double measured(uint64_t *random)
{
    static const double rare[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, -NAN};
    const double value = (double)(check_random(random) >> 11) * 0x1p-53 - 0.5;
    if (check_random(random) % 64 == 0)
        return rare[check_random(random) % 6];
    return value * value * value + (double)(check_random(random) % 2);
}

/* Return the code of a row, any code, in the upper bits. */
static inline key_code row_code(int64_t row)
{
    uint64_t state = (uint64_t)row;
    const key_code upper = check_random(&state);
    return upper << 64 | check_random(&state);
}

static inline key_code partition_trial_bits(const struct trial *trial, struct keymap map, int64_t i,
                                            uint64_t *random)
{
    const int bits = 8 * map.key_bytes;
    const key_code any = check_random(random), wide = random_code(random);
    switch (trial->shape) {
    case ZIPF:
        return (uint64_t)exp((double)(uint64_t)(any >> 11) * 0x1p-53 * log((double)trial->count + 1));
    case FAR_CLUSTERS:
        return keymap_decode(map, (any & 0xffff) + (any >> 63 << (bits - 2)));
    case MEASURED:
        return float_bits(map.key_bytes, measured(random));
    case NEIGHBOURS:
        return keymap_decode(map, uniform_codes[any % (1u << trial->log)] + check_random(random) % 3 - 1);
    case SIGNED:
        return float_bits(map.key_bytes,
                          ((double)(uint64_t)(any >> 11) * 0x1p-52 - 1) * (any % 8 ? 1 : 0x1p-40));
    case STRAGGLERS:
        return keymap_decode(map, check_random(random) % 4096 == 0
                                      ? wide >> (128 - bits)
                                      : (wide >> (134 - bits)) + (wide % 2 << (bits - 2)));
    case ROWS:
        return keymap_decode(map, row_code(i / ROW) >> (128 - bits));
    case FULL_REGIONS:
        return keymap_decode(map, (wide >> (128 - bits)) * (unsigned)trial->full_regions / 256);
    default:
        CHECK(trial->shape < PATTERNS, "nobody makes keys of shape %s", shape_name(trial->shape));
        return key_of((enum pattern)trial->shape, bits, i, trial->count, random);
    }
}

/* Return the nth kind of keys of a width; after the last kind comes the first. */
static inline int kind_of_width(int key_bytes, int n)
{
    int kind = KEY_KINDS - 1;
    for (int found = -1; found < n; found += keymap_make((hsort_type)kind, HSORT_ASCENDING).key_bytes == key_bytes)
        kind = (kind + 1) % KEY_KINDS;
    return kind;
}

/* Return the log of the size of a sample; seldom a large one, because that takes long. */
static inline int draw_sample_log(uint64_t draw)
{
    const int usual = ENGINE_SAMPLE_LOG_USUAL - ENGINE_SAMPLE_LOG_MIN + 1, large = ENGINE_SAMPLE_LOG_MAX - ENGINE_SAMPLE_LOG_USUAL;
    return draw % 16 == 0 ? ENGINE_SAMPLE_LOG_USUAL + 1 + (int)(draw / 16 % (unsigned)large)
                          : ENGINE_SAMPLE_LOG_MIN + (int)(draw / 16 % (unsigned)usual);
}

/* Where part i of a sample begins. */
static inline int64_t begin_of_part(int64_t i, int64_t total, int log)
{
    return (int64_t)((__int128)i * total >> log);
}

/* codes [count] of key_words(). */
static inline void shuffle_codes(int key_bytes, uint64_t *codes, int count, uint64_t *random)
{
    for (int i = count - 1; i > 0; i--) {
        const int other = (int)(check_random(random) % (uint64_t)(i + 1));
        const key_code kept = words_load(key_bytes, codes, i);
        words_store(key_bytes, codes, i, words_load(key_bytes, codes, other));
        words_store(key_bytes, codes, other, kept);
    }
}

/* Cut the regions into chunks, each of any number that fits a call: chunk_at [chunks + 1]. Returns how many chunks. Full regions are all
 * in the first chunk, and so on one rank's list of what is left, which is to be too short for them. */
static inline int draw_chunks(const struct trial *trial, int *chunk_at, uint64_t *random)
{
    const int most = ENGINE_PIECES_MAX / (2 * trial->ranks);
    const bool whole = trial->shape == FULL_REGIONS;
    int chunks = 0;
    for (int region = 0; region < ENGINE_REGIONS; chunks++) {
        chunk_at[chunks] = region;
        region += whole || check_random(random) % 4 ? most : 1 + (int)(check_random(random) % (uint64_t)most);
        region = region < ENGINE_REGIONS ? region : ENGINE_REGIONS;
    }
    chunk_at[chunks] = ENGINE_REGIONS;
    return chunks;
}

/* Return the keys of a trial, of all ranks. */
static inline char *trial_keys(const struct trial *trial, struct keymap map, uint64_t *random)
{
    char *keys = alloc_or_exit((size_t)(trial->count * map.key_bytes));
    for (int i = 0; i < 1 << trial->log && trial->foreign; i++)
        uniform_codes[i] = random_code(random) >> (128 - 8 * map.key_bytes);
    const uint64_t seed = check_random(random);
#pragma omp parallel for if (trial->count > DRAW_PART)
    for (int64_t begin = 0; begin < trial->count; begin += DRAW_PART) {
        uint64_t own = draw_part_seed(seed, begin);
        for (int64_t i = begin; i < draw_part_end(begin, trial->count); i++)
            store(map.key_bytes, keys, i, partition_trial_bits(trial, map, i, &own));
    }
    return keys;
}

#endif
