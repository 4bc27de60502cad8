/* Random distributions of generated keys (kernels/base/input_draw.h), for tests in C and in CUDA. */
#ifndef DISTRIBUTIONS_H
#define DISTRIBUTIONS_H

#include "kernels/base/input_draw.h"
#include "tests/support/check.h"

static inline const char *distribution_word(enum input_distribution distribution)
{
    static const char *const words[INPUTS] = {
#define X(name, word, ...) word,
        INPUT_LIST(X)
#undef X
    };
    return words[distribution];
}

/* Draw any distribution, with any number that it takes; every length of the number in bits is equally likely. */
static inline void choose_distribution(struct input *input, uint64_t *random)
{
    static const int numbers[INPUTS][3] = {
#define X(name, word, number, least, most, without, text) {least, most, without},
        INPUT_LIST(X)
#undef X
    };
    input->distribution = (enum input_distribution)(check_random(random) % INPUTS);
    const int *const range = numbers[input->distribution];
    const uint64_t number = (check_random(random) & INT32_MAX) >> check_random(random) % 31;
    const bool any = range[2] < 0 || check_random(random) % 2;
    input->parameter = any ? range[0] + (int)(number % ((uint64_t)(range[1] - range[0]) + 1)) : range[2];
}

#endif
