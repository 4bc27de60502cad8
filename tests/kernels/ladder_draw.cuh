/* Random draws for tests/kernels/test_differential.cu: a type, a number of keys and a distribution of the keys, all
 * from one seed. In the same build the seed repeats them. Key i is a function of the draw and i, for the device
 * and for the host.
 *
 * A distribution is a shape with random parameters, or two shapes mixed. Most shapes lie in a range
 * [base, base + width] of the keys; the width has a random number of bits:
 *
 *     0 ......... base |####### width #######| ................ largest
 *
 * The shapes are what a sort by digits has to fear: digits that do not split, values that fill a bucket alone,
 * buckets that do not split further on any level, and keys that it could wrongly take for sorted. */
#ifndef LADDER_DRAW_CUH
#define LADDER_DRAW_CUH

#include <math.h>
#include "tests/support/check.h"
#include "kernels/cuda/ladder/tuning.h"
#include "kernels/base/keytype.h"
#include "tests/kernels/ladder_input.cuh"
#include "tests/support/distributions.h"

/* X(NAME, word): `many`, `bits`, `mask`, `rarity` and `variant` are parameters, see struct shape */
#define SHAPES(X)                                                                                         \
    X(RANGE, "range")                 /* uniform in the range */                                          \
    X(CONSTANT, "constant")           /* an end of the range, or any value in it */                       \
    X(FEW, "few")                     /* `many` values, equally likely or (variant) by Zipf's law */      \
    X(ASCENDING, "ascending")         /* over the range */                                                \
    X(DESCENDING, "descending")       /* over the range */                                                \
    X(NEARLY_SORTED, "nearly-sorted") /* ascending, a fraction `rarity` of pairs swapped */               \
    X(SAWTOOTH, "sawtooth")           /* ascending over the range again every `many` keys */              \
    X(ENTROPY, "entropy")             /* AND or (variant) OR of `many` uniform words */                   \
    X(MASKED, "masked")               /* CONSTANT, but some bits, or (variant) bytes, random */           \
    X(SCALES, "scales")               /* a word shifted right: geometric, or uniform in the logarithm */  \
    X(CLUSTERS, "clusters")           /* `many` centres, as FEW; the low `bits` are random */             \
    X(GIANT, "giant")                 /* CONSTANT, except a fraction `rarity`, uniform in the range */    \
    X(BUT_ONE, "but-one")             /* one value, except one key, larger or (variant) smaller */        \
    X(NESTED, "nested")               /* every digit of `bits`: one value, except a fraction `rarity` */  \
    X(STEPS, "steps")                 /* base + i * width, modulo 2^32 or 2^64 */                         \
    X(DRAWN, "drawn")                 /* codes of keys of any type and distribution of input_draw.h */

enum shape_kind {
#define X(name, word) SHAPE_##name,
    SHAPES(X)
#undef X
        SHAPE_COUNT
};

/* A shape with its parameters; no kind of shape uses all of them. */
struct shape {
    int kind, key_bits;
    int64_t count;        /* keys: what ascends does so over this many */
    uint64_t seed;        /* of the random words */
    uint64_t base, width; /* the range; base + width does not overflow */
    uint64_t mask;        /* bits that vary (MASKED); distance of keys to swap, by XOR (NEARLY_SORTED) */
    int64_t many;         /* values, clusters, words, keys per tooth; the position of the one (BUT_ONE) */
    int bits;             /* of a digit, of a cluster, of a step on the scale */
    double rarity;        /* a probability */
    bool variant;
    struct input_source source; /* DRAWN */
    struct keymap map;          /* of its keys */
};

enum mixing { MIX_NONE, MIX_ALTERNATE, MIX_CONCATENATE };

struct draw {
    uint64_t seed;
    struct ladder_type type;
    int64_t count;
    enum mixing mixing;
    struct shape shapes[2]; /* the second only where two are mixed */
    int64_t run;            /* MIX_ALTERNATE: keys of one, then keys of the other */
    int64_t cut;            /* MIX_CONCATENATE: keys of the first */
    unsigned shifted;       /* bit b: buffer b begins one element behind an aligned address */
};

enum { DRAW_LARGEST_LOG = 26, DRAW_USUAL_LOG = 22, DRAW_VALUES_MAX = 1000 };

/* ---- key i of a shape ---------------------------------------------------------------------------------- */

#define DRAW_FN static inline __host__ __device__

/* Numbers of random_word(): key i has those from 0 on; values and centres have WORD_VALUE, hot digits those from WORD_DIGIT on. */
enum { WORD_VALUE = 40, WORD_DIGIT = 50 };

DRAW_FN uint64_t all_ones(int bits)
{
    return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

/* Return a number in [0, 1). */
DRAW_FN double unit(uint64_t word)
{
    return (double)(word >> 11) * 0x1p-53;
}

/* Return a number in [0, width]: the high half of a product, because a remainder would favour the low part of a wide range. */
DRAW_FN uint64_t up_to(uint64_t word, uint64_t width)
{
    return (uint64_t)((unsigned __int128)word * ((unsigned __int128)width + 1) >> 64);
}

/* Position i of `length` on the way from 0 to width; never descends. */
DRAW_FN uint64_t ramp(int64_t i, int64_t length, uint64_t width)
{
    if (width >= (uint64_t)length)
        return (uint64_t)i * (width / (uint64_t)length);
    return (uint64_t)i / ((uint64_t)length / (width + 1) + 1);
}

/* One of the shape's values, which lie in the range; with variant, value j has a probability of about 1/j. */
DRAW_FN uint64_t pick_value(const struct shape *s, uint64_t word)
{
    int64_t j = (int64_t)(word % (uint64_t)s->many);
    if (s->variant) { // the logarithm of j + 1 is uniform
        j = (int64_t)exp2(unit(word) * log2((double)s->many + 1)) - 1;
        j = j < s->many ? j : s->many - 1;
    }
    return s->base + up_to(random_word(s->seed, j, WORD_VALUE), s->width);
}

/* The value that stands out: an end of the range, or any value in it. */
DRAW_FN uint64_t lone_value(const struct shape *s)
{
    const uint64_t word = random_word(s->seed, 0, WORD_VALUE);
    if (word % 3 == 0)
        return s->base;
    return s->base + (word % 3 == 1 ? s->width : up_to(word, s->width));
}

DRAW_FN int64_t swapped_position(const struct shape *s, int64_t i)
{
    const int64_t other = i ^ (int64_t)s->mask;
    const int64_t lower = i < other ? i : other;
    return other < s->count && unit(random_word(s->seed, lower, 1)) < s->rarity ? other : i;
}

DRAW_FN uint64_t entropy_key(const struct shape *s, int64_t i)
{
    uint64_t key = random_word(s->seed, i, 0);
    for (int number = 1; number < s->many; number++) {
        const uint64_t word = random_word(s->seed, i, number);
        key = s->variant ? key | word : key & word;
    }
    return key;
}

DRAW_FN uint64_t scales_key(const struct shape *s, int64_t i)
{
    const uint64_t word = random_word(s->seed, i, 1);
    int shift = (int)(word % (uint64_t)s->key_bits);
    if (!s->variant) {
        shift = 0;
        for (uint64_t rest = word; !(rest >> 63) && shift < s->key_bits - s->bits; rest <<= 1)
            shift += s->bits;
    }
    const uint64_t key = (random_word(s->seed, i, 0) & all_ones(s->key_bits)) >> shift;
    return s->base & 1 ? ~key : key; // crowded at 0 or at the largest key
}

/* The hot value of each digit depends on all digits above it, so every bucket has a hot value of its own. */
DRAW_FN uint64_t nested_key(const struct shape *s, int64_t i)
{
    uint64_t key = 0;
    int number = 0;
    for (int left = s->key_bits; left > 0; number++) {
        const int bits = left < s->bits ? left : s->bits;
        const uint64_t word = random_word(s->seed, i, number);
        const uint64_t digit =
            unit(word) < s->rarity ? word : random_word(s->seed, (int64_t)key, WORD_DIGIT + number);
        key = (bits == 64 ? 0 : key << bits) | (digit & all_ones(bits));
        left -= bits;
    }
    return key;
}

DRAW_FN uint64_t drawn_code(const struct shape *s, int64_t i)
{
    const uint64_t key = input_key(&s->source, i);
    return s->key_bits == 64 ? keymap_encode_u64(s->map, key) : keymap_encode_u32(s->map, (uint32_t)key);
}

/* Return key i of the shape in the low key_bits; the bits above them are meaningless. */
DRAW_FN uint64_t shape_key(const struct shape *s, int64_t i)
{
    const uint64_t word = random_word(s->seed, i, 0);
    switch (s->kind) {
    case SHAPE_RANGE:
        return s->base + up_to(word, s->width);
    case SHAPE_FEW:
        return pick_value(s, word);
    case SHAPE_ASCENDING:
        return s->base + ramp(i, s->count, s->width);
    case SHAPE_DESCENDING:
        return s->base + ramp(s->count - 1 - i, s->count, s->width);
    case SHAPE_NEARLY_SORTED:
        return s->base + ramp(swapped_position(s, i), s->count, s->width);
    case SHAPE_SAWTOOTH:
        return s->base + ramp(i % s->many, s->many, s->width);
    case SHAPE_ENTROPY:
        return entropy_key(s, i);
    case SHAPE_MASKED:
        return (word & s->mask) | (lone_value(s) & ~s->mask);
    case SHAPE_SCALES:
        return scales_key(s, i);
    case SHAPE_CLUSTERS:
        return (pick_value(s, word) & ~all_ones(s->bits)) | (random_word(s->seed, i, 1) & all_ones(s->bits));
    case SHAPE_GIANT:
        return unit(random_word(s->seed, i, 1)) < s->rarity ? s->base + up_to(word, s->width) : lone_value(s);
    case SHAPE_BUT_ONE:
        if (i != s->many)
            return s->base + s->width / 2;
        return s->variant ? s->base : s->base + s->width;
    case SHAPE_NESTED:
        return nested_key(s, i);
    case SHAPE_STEPS:
        return s->base + (uint64_t)i * s->width;
    case SHAPE_DRAWN:
        return drawn_code(s, i);
    default: // CONSTANT
        return lone_value(s);
    }
}

/* Return key i of the draw, also in the low bits. */
DRAW_FN uint64_t draw_key(const struct draw *d, int64_t i)
{
    int second = 0;
    int64_t at = i;
    if (d->mixing == MIX_ALTERNATE) {
        second = (int)(i / d->run % 2);
    } else if (d->mixing == MIX_CONCATENATE && i >= d->cut) {
        second = 1;
        at = i - d->cut;
    }
    return shape_key(&d->shapes[second], at);
}

/* ---- the parameters ------------------------------------------------------------------------------------ */

/* Return a number in [least, most]; every number of bits is equally likely. */
static inline int64_t draw_logarithmic(uint64_t *state, int64_t least, int64_t most)
{
    const double ratio = ((double)most + 1) / (double)least;
    const int64_t number = (int64_t)((double)least * pow(ratio, unit(check_random(state))));
    return number < most ? number : most;
}

/* Draw a range whose width has a random number of bits; half of the time it is as wide as the keys. */
static inline void draw_range(struct shape *s, uint64_t *state)
{
    const uint64_t largest = all_ones(s->key_bits);
    s->width = largest;
    if (check_random(state) % 2) {
        const int bits = (int)(check_random(state) % (uint64_t)(s->key_bits + 1));
        s->width = check_random(state) & all_ones(bits);
    }
    s->base = up_to(check_random(state), largest - s->width);
}

static inline uint64_t draw_mask(uint64_t *state, bool whole_bytes)
{
    uint64_t mask = check_random(state);
    if (whole_bytes) {
        const uint64_t chosen = mask;
        mask = 0;
        for (int byte = 0; byte < 8; byte++)
            mask |= (chosen >> byte & 1 ? UINT64_C(255) : 0) << 8 * byte;
    }
    return mask;
}

/* Return a step that is odd, a power of two, or a product of both. */
static inline uint64_t draw_step(uint64_t *state, int key_bits)
{
    const uint64_t odd = check_random(state) >> (check_random(state) % 64) | 1;
    const uint64_t power = UINT64_C(1) << check_random(state) % (uint64_t)key_bits;
    switch (check_random(state) % 3) {
    case 0:
        return odd;
    case 1:
        return power;
    default:
        return odd * power;
    }
}

/* Draw any type and distribution; half of the draws are random mixtures. */
static inline void draw_source(struct shape *s, uint64_t *state)
{
    static const hsort_type types[2][3] = {{HSORT_U32, HSORT_I32, HSORT_F32},
                                           {HSORT_U64, HSORT_I64, HSORT_F64}};
    struct input input = {};
    choose_distribution(&input, state);
    if (check_random(state) % 2)
        input.distribution = INPUT_MIXTURE;
    input.type = types[s->key_bits == 64][check_random(state) % 3];
    input.seed = check_random(state);
    input.count = s->count;
    s->source = input_source_make(&input);
    s->map = keymap_make(input.type, s->variant ? HSORT_DESCENDING : HSORT_ASCENDING);
}

static inline struct shape draw_shape(uint64_t *state, int key_bits, int64_t count)
{
    struct shape s = {};
    s.kind = check_random(state) % 2 ? SHAPE_DRAWN : (int)(check_random(state) % SHAPE_COUNT);
    s.key_bits = key_bits;
    s.count = count;
    s.seed = check_random(state);
    s.variant = check_random(state) % 2;
    s.many = draw_logarithmic(state, 2, DRAW_VALUES_MAX);
    s.bits = (int)(check_random(state) % (uint64_t)key_bits);
    s.rarity = exp2(-12 * unit(check_random(state)));
    draw_range(&s, state);
    switch (s.kind) {
    case SHAPE_NEARLY_SORTED: // keys that change places are near each other or anywhere
        s.mask = (uint64_t)draw_logarithmic(state, 1, count > 1 ? count - 1 : 1);
        break;
    case SHAPE_SAWTOOTH:
        s.many = draw_logarithmic(state, 1, count > 1 ? count : 1);
        break;
    case SHAPE_ENTROPY:
        s.many = 2 + (int64_t)(check_random(state) % 6);
        break;
    case SHAPE_MASKED:
        s.mask = draw_mask(state, s.variant);
        break;
    case SHAPE_SCALES:
        s.bits = 1 + (int)(check_random(state) % 8);
        break;
    case SHAPE_CLUSTERS: // one centre is a long shared prefix
        s.many = draw_logarithmic(state, 1, DRAW_VALUES_MAX);
        break;
    case SHAPE_BUT_ONE:
        s.many = count > 0 ? (int64_t)(check_random(state) % (uint64_t)count) : 0;
        break;
    case SHAPE_NESTED:
        s.bits = s.variant ? 8 : 4 + (int)(check_random(state) % 9);
        s.rarity = s.variant ? 0.1 : s.rarity;
        break;
    case SHAPE_STEPS:
        s.width = draw_step(state, key_bits);
        break;
    case SHAPE_DRAWN:
        draw_source(&s, state);
        break;
    default:
        break;
    }
    return s;
}

/* Return any number up to 2^22, every number of bits equally likely; now and then near a power of two, or near a
 * multiple of a tile; rarely up to 2^26. */
static inline int64_t draw_count(uint64_t *state)
{
    const int64_t tiles[] = {ONESWEEP_THREADS * ONESWEEP_KEYS_4, ONESWEEP_THREADS * ONESWEEP_KEYS_4_PAIRS,
                             ONESWEEP_THREADS * ONESWEEP_KEYS_8, RADIX_4WAY_THREADS, 1 << PACKED_LOG_TILE_4};
    const int64_t usual = INT64_C(1) << DRAW_USUAL_LOG;
    const int64_t off_by = (int64_t)(check_random(state) % 5) - 2;
    const uint64_t choice = check_random(state) % 256;
    int64_t count;
    if (choice == 0)
        return draw_logarithmic(state, usual * 4, INT64_C(1) << DRAW_LARGEST_LOG);
    if (choice < 40) {
        count = (INT64_C(1) << check_random(state) % (DRAW_USUAL_LOG + 1)) + off_by;
    } else if (choice < 80) {
        const int64_t tile = tiles[check_random(state) % (sizeof tiles / sizeof tiles[0])];
        count = tile * draw_logarithmic(state, 1, usual / tile) + off_by;
    } else {
        count = draw_logarithmic(state, 1, usual) - 1;
    }
    return count > 0 ? count : 0;
}

static inline struct draw draw_from(uint64_t seed)
{
    uint64_t state = seed;
    struct draw d = {};
    d.seed = seed;
    d.type = ladder_types[check_random(&state) % LADDER_TYPES];
    d.count = draw_count(&state);
    const int key_bits = 8 * d.type.key_bytes;
    const enum mixing mixings[] = {MIX_NONE, MIX_NONE, MIX_NONE, MIX_ALTERNATE, MIX_CONCATENATE};
    d.mixing = mixings[check_random(&state) % 5];
    d.run = draw_logarithmic(&state, 1, 4096);
    d.cut = (int64_t)up_to(check_random(&state), (uint64_t)d.count);
    d.shifted = check_random(&state) % 2 ? (unsigned)(check_random(&state) % 16) : 0;
    const bool cut = d.mixing == MIX_CONCATENATE;
    d.shapes[0] = draw_shape(&state, key_bits, cut ? d.cut : d.count);
    d.shapes[1] = draw_shape(&state, key_bits, cut ? d.count - d.cut : d.count);
    return d;
}

/* Return the shape in words, in `text` [64]. */
static inline const char *shape_words(const struct shape *s, char *text)
{
    static const char *const words[] = {
#define X(name, word) word,
        SHAPES(X)
#undef X
    };
    const struct input *const input = &s->source.input;
    if (s->kind == SHAPE_DRAWN)
        snprintf(text, 64, "%s:%d %s", distribution_word(input->distribution), input->parameter,
                 hsort_type_name(input->type));
    else
        snprintf(text, 64, "%s", words[s->kind]);
    return text;
}

/* Return the draw in words; good until the next call. */
static inline const char *draw_words(const struct draw *d)
{
    static char text[240];
    char first[64], second[64];
    const char *const mixed = d->mixing == MIX_ALTERNATE ? " in turn with " : " and then ";
    snprintf(text, sizeof text, "%s, %lld keys, %s%s%s", d->type.word, (long long)d->count,
             shape_words(&d->shapes[0], first), d->mixing == MIX_NONE ? "" : mixed,
             d->mixing == MIX_NONE ? "" : shape_words(&d->shapes[1], second));
    return text;
}

/* ---- on the device ------------------------------------------------------------------------------------- */

template <typename K>
static __global__ void draw_kernel(struct draw d, K *keys)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < d.count;
         i += (int64_t)gridDim.x * blockDim.x)
        keys[i] = (K)draw_key(&d, i);
}

/* Fill keys [count of the draw] on STREAM_WORK. */
static inline void fill_draw(struct cuda_engine *engine, const struct draw *d, void *keys)
{
    device_scope scope(engine);
    cudaStream_t stream = engine->streams[STREAM_WORK];
    if (d->type.key_bytes == 4)
        draw_kernel<<<1024, 256, 0, stream>>>(*d, (uint32_t *)keys);
    else
        draw_kernel<<<1024, 256, 0, stream>>>(*d, (uint64_t *)keys);
    MUST(cuda_check(cudaGetLastError(), "draw"));
}

#endif
