/* Generated keys: key i of an input is a function of (seed, distribution, type, count, i) alone, so any
 * number of ranks writes the same file and any part of it can be made again. */
#ifndef INPUT_H
#define INPUT_H

#include <stddef.h>
#include <stdint.h>
#include "hypersort.h"

/* X(name, word, the number it takes after ':' or "", what it is) */
#define INPUT_LIST(X)                                                                       \
    X(INPUT_UNIFORM, "uniform", "", "every bit pattern equally likely; floats: in [-1, 1)") \
    X(INPUT_SORTED, "sorted", "", "ascending, evenly spread over the type's range")         \
    X(INPUT_REVERSE, "reverse", "", "the same, descending")                                 \
    X(INPUT_EQUAL, "equal", "", "one value")                                                \
    X(INPUT_ZIPF, "zipf", "", "value k with probability about 1/k, k = 1 .. 2^20")          \
    X(INPUT_GAUSS, "gauss", "", "normal around the middle of the type's range")             \
    X(INPUT_NARROW, "narrow", "BITS", "uniform over 2^BITS values")                         \
    X(INPUT_NEARLY, "nearly", "PERMILLE", "sorted, but PERMILLE of 1000 keys are uniform")  \
    X(INPUT_STAIRCASE, "staircase", "", "sorted with 64 distinct values")                   \
    X(INPUT_NAN, "nan", "",                                                                 \
      "floats: a mix of NaNs of both signs, infinities, zeros, denormals, extremes; integers: extremes")

enum input_distribution {
#define X(name, word, number, text) name,
    INPUT_LIST(X)
#undef X
        INPUTS
};

struct input {
    enum input_distribution distribution;
    int parameter; /* BITS or PERMILLE */
    hsort_type type;
    uint64_t seed;
    int64_t count; /* keys of the whole input */
};

/* Parse "uniform", "narrow:16", ... into input->distribution and ->parameter. Not collective.
 * Errors   HSORT_ARGUMENT: unknown word, number missing, not wanted or out of range; the text lists the words. */
hsort_status input_parse(const char *text, struct input *input);

/* keys [count] = keys first .. first + count - 1 of the input, in the type's own bits. Not collective; uses
 * OpenMP. */
void input_fill(const struct input *input, int64_t first, int64_t count, void *keys);

#endif
