/* A sorted run that need not exist: its keys follow from their positions. */
#ifndef MADE_UP_RUN_H
#define MADE_UP_RUN_H

#include <stdint.h>
#include "tests/support/check.h"

/* Key i is keys[i] or, if keys is NULL, start + (i / width) * step: a rising line, or stairs. */
struct run {
    int64_t count, width;
    uint64_t start, step;
    uint64_t *keys;
};

static inline uint64_t key_at(const struct run *run, int64_t position)
{
    return run->keys ? run->keys[position] : run->start + (uint64_t)(position / run->width) * run->step;
}

/* Draw a run without keys, with one of six counts. */
static inline struct run virtual_run(const int64_t counts[6], uint64_t *random)
{
    struct run run = {.keys = NULL};
    run.count = counts[check_random(random) % 6];
    run.width = INT64_C(1) << check_random(random) % 45;
    run.start = check_random(random) >> (1 + check_random(random) % 60);
    // The last key stays below 2^63 + start.
    const int step_bits = __builtin_clzll((uint64_t)(run.count / run.width) + 1) - 1;
    run.step = UINT64_C(1) << check_random(random) % (uint64_t)(step_bits < 1 ? 1 : step_bits);
    run.step += check_random(random) % run.step;
    return run;
}

#endif
