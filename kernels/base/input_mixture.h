/* Random mixtures: keys in a hierarchy of clusters, as real keys are, all determined by a seed. A leaf.
 *
 *     all keys  0 ................................................................ 2^bits - 1
 *     level 1         |########|                      |##|         |   children, each a range of 2^width keys
 *     level 2          |#| ||                          |           |   their children, down to a single value
 *
 * From each range a key goes on to one of the range's children, some of which are more likely than others, or it
 * stays in the range. The tree is not stored: a child is a hash of its parent and its number, and this hash gives
 * its place and its width. What the nodes of one level have in common is drawn once, from the seed
 * (input_mixture_make()): numbers of children from one to a thousand, even and very uneven weights, widths of any
 * number of bits.
 *
 * The last range determines what its keys look like: any values, few values (so many repeat), or low bits that are
 * zero, one constant, or one of a few constants. The code of a float is either that of its bits in order, so that
 * floats spread over all exponents, or a fraction. */
#ifndef INPUT_MIXTURE_H
#define INPUT_MIXTURE_H

#include "kernels/base/input_word.h"

enum { MIXTURE_LEVELS_MIN = 2, MIXTURE_LEVELS_MAX = 4, MIXTURE_CHILDREN_LOG_MAX = 10 };

/* Which child a key goes on to. */
enum mixture_weights {
    MIXTURE_EVEN,
    MIXTURE_HALVED, /* each half as often as the one before */
    MIXTURE_ZIPF,   /* child k about in proportion to 1/k */
    MIXTURE_ONE,    /* the first, except for one key in 2^steep */
    MIXTURE_WEIGHTS
};

/* What the low bits of the keys of a range are. */
enum mixture_low { MIXTURE_LOW_ANY, MIXTURE_LOW_ZERO, MIXTURE_LOW_CONSTANT, MIXTURE_LOW_FEW, MIXTURE_LOWS };

struct mixture_level {
    int children;
    enum mixture_weights weights;
    int steep;                   /* of MIXTURE_ONE */
    int width_least, width_most; /* of the children, in bits; never more than their parent's */
    uint32_t staying;            /* of 2^32 keys, how many stay in the parent's range */
};

struct input_mixture {
    uint64_t root; /* the node that all others hash from */
    int bits;      /* of a key */
    int levels;
    int values_log;           /* a last range has at most 2^values_log values; 64: as many as its width */
    int low_width;            /* low bits that have a pattern; -1: each last range has its own number */
    bool by_position;         /* the first level's child depends on the key's position, not on chance */
    bool of_codes;            /* floats: bits are their ordered codes; else fractions of [-1, 1) */
    enum mixture_low lows[4]; /* each last range has one of these */
    struct mixture_level level[MIXTURE_LEVELS_MAX];
};

/* A range of keys: low ... low + 2^width - 1. */
struct mixture_range {
    uint64_t node, low;
    int width;
};

/* ---- The tree ------------------------------------------------------------------------------------------ */

/* The next word of a sequence. */
static inline uint64_t mixture_next(uint64_t *state)
{
    *state += INPUT_GAMMA;
    return input_mix(*state);
}

/* 0 ... count - 1. */
static inline int mixture_below(uint64_t *state, int count)
{
    return (int)input_share(mixture_next(state), (uint64_t)count);
}

static inline struct mixture_level mixture_level_make(uint64_t *state, int bits)
{
    struct mixture_level level;
    const int children_log = mixture_below(state, MIXTURE_CHILDREN_LOG_MAX + 1);
    const int one = mixture_below(state, bits + 1), other = mixture_below(state, bits + 1);
    level.children = 1 + mixture_below(state, 1 << children_log);
    level.weights = (enum mixture_weights)mixture_below(state, MIXTURE_WEIGHTS);
    level.steep = 1 + mixture_below(state, 16);
    level.width_least = one < other ? one : other;
    level.width_most = one < other ? other : one;
    level.staying = mixture_below(state, 4) == 0 ? UINT32_C(1) << (8 + mixture_below(state, 23)) : 0;
    return level;
}

/* The mixture of `seed` for keys of a type. */
static inline struct input_mixture input_mixture_make(hsort_type type, uint64_t seed)
{
    struct input_mixture mixture;
    uint64_t state = seed;
    mixture.root = mixture_next(&state);
    mixture.of_codes = mixture_below(&state, 2) == 0;
    mixture.bits = input_is_float(type) && !mixture.of_codes ? input_exact_bits(type) : input_key_bits(type);
    mixture.levels = MIXTURE_LEVELS_MIN + mixture_below(&state, MIXTURE_LEVELS_MAX - MIXTURE_LEVELS_MIN + 1);
    mixture.values_log =
        mixture_below(&state, 2) ? mixture_below(&state, mixture_below(&state, 2) ? 31 : 4) : 64;
    mixture.low_width = mixture_below(&state, 2) ? mixture_below(&state, mixture.bits / 2) : -1;
    mixture.by_position = mixture_below(&state, 4) == 0;
    const bool one_low = mixture_below(&state, 2);
    for (int i = 0; i < 4; i++)
        mixture.lows[i] =
            i > 0 && one_low ? mixture.lows[0] : (enum mixture_low)mixture_below(&state, MIXTURE_LOWS);
    for (int i = 0; i < MIXTURE_LEVELS_MAX; i++)
        mixture.level[i] = mixture_level_make(&state, mixture.bits);
    return mixture;
}

/* ---- A key --------------------------------------------------------------------------------------------- */

/* The child that a word leads to. */
KEYTYPE_FN uint64_t mixture_child(const struct mixture_level *level, uint64_t word)
{
    const uint64_t children = (uint64_t)level->children;
    uint64_t child = 0;
    switch (level->weights) {
    case MIXTURE_HALVED:
        while (!(word >> 63) && child + 1 < children && child < 63) {
            word <<= 1;
            child++;
        }
        return child;
    case MIXTURE_ZIPF: { // any octave 2^j ... 2^(j+1) - 1 as often as any other
        const uint64_t octave = input_share(word, MIXTURE_CHILDREN_LOG_MAX + 1);
        return ((word & input_ones((int)octave)) + input_ones((int)octave)) % children;
    }
    case MIXTURE_ONE:
        return word >> (64 - level->steep) ? 0 : input_share(word << level->steep, children);
    default:
        return input_share(word, children);
    }
}

/* The range of a child. */
KEYTYPE_FN struct mixture_range mixture_enter(const struct mixture_level *level, struct mixture_range parent,
                                              uint64_t child)
{
    struct mixture_range range;
    range.node = input_hash(parent.node, child);
    const uint64_t widths = (uint64_t)(level->width_most - level->width_least + 1);
    range.width = level->width_least + (int)input_share(range.node, widths);
    if (range.width > parent.width)
        range.width = parent.width;
    const uint64_t room = input_ones(parent.width) - input_ones(range.width);
    range.low = parent.low + input_up_to(input_hash(range.node, UINT64_C(1) << 32), room);
    return range;
}

/* A key of the last range. */
KEYTYPE_FN uint64_t mixture_last(const struct input_mixture *mixture, struct mixture_range range,
                                 uint64_t word, uint64_t other)
{
    // Numbers for the hashes: values count from 0, everything else lies beyond them.
    const uint64_t constant = UINT64_C(1) << 33;
    if (mixture->values_log < 64)
        word = input_hash(range.node, word & input_ones(mixture->values_log));
    const uint64_t code = range.low + (word & input_ones(range.width));
    const uint64_t shape = input_hash(range.node, constant - 1);
    const uint64_t own_width = (shape >> 8) % (uint64_t)(range.width + 1);
    const uint64_t low = input_ones(mixture->low_width < 0 ? (int)own_width : mixture->low_width);
    switch (mixture->lows[shape & 3]) {
    case MIXTURE_LOW_ZERO:
        return code & ~low;
    case MIXTURE_LOW_CONSTANT:
        return (code & ~low) | (input_hash(range.node, constant) & low);
    case MIXTURE_LOW_FEW:
        return (code & ~low) | (input_hash(range.node, constant + (other & (shape >> 32 & 7))) & low);
    default:
        return code;
    }
}

/* The key of a code: the integer or fraction at the code's place in their order, or the float with this code, made finite. */
KEYTYPE_FN uint64_t mixture_key(const struct input_mixture *mixture, hsort_type type, uint64_t code)
{
    if (!input_is_float(type) || !mixture->of_codes)
        return input_key_of_word(type, code << (64 - mixture->bits));
    const uint64_t all = input_ones(mixture->bits), sign = all ^ (all >> 1);
    const uint64_t exponent = input_infinity(type);
    const uint64_t bits = code & sign ? code ^ sign : ~code & all;
    return (bits & exponent) == exponent ? bits ^ (sign >> 1) : bits;
}

/* Key i of a mixture, drawn from the words of `base`. position: the place of i among all keys, as a word. */
KEYTYPE_FN uint64_t input_mixture_key(const struct input_mixture *mixture, hsort_type type, uint64_t base,
                                      int64_t i, uint64_t position)
{
    struct mixture_range range;
    range.node = mixture->root;
    range.low = 0;
    range.width = mixture->bits;
    const uint64_t word = input_word(base, i, 0);
    for (int l = 0; l < mixture->levels; l++) {
        const struct mixture_level *level = &mixture->level[l];
        if ((uint32_t)input_word(base, i, 2 + 2 * l) < level->staying)
            return mixture_key(mixture, type, range.low + (word & input_ones(range.width)));
        const uint64_t choice = l == 0 && mixture->by_position ? position : input_word(base, i, 3 + 2 * l);
        range = mixture_enter(level, range, mixture_child(level, choice));
    }
    return mixture_key(mixture, type, mixture_last(mixture, range, word, input_word(base, i, 1)));
}

#endif
