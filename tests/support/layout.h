/* How keys are dealt out over ranks in tests: counts that every rank computes alike from a seed. */
#ifndef LAYOUT_H
#define LAYOUT_H

#include "tests/support/check.h"

enum layout {
    LAYOUT_BALANCED,   /* counts differ by at most one */
    LAYOUT_ON_ONE,     /* all on one rank */
    LAYOUT_RANDOM,     /* each border anywhere */
    LAYOUT_SPARSE,     /* two ranks in three empty, random otherwise */
    LAYOUT_DESCENDING, /* about half of what is left on each rank */
    LAYOUTS
};

/* The count of one rank, if `left` keys are left for it and the ranks after it. */
static inline int64_t layout_count(enum layout layout, int64_t left, int64_t share, uint64_t *random)
{
    const uint64_t draw = check_random(random);
    const int64_t any = (int64_t)(check_random(random) % (uint64_t)(left + 1));
    const int64_t about_share = any < 2 * share ? any : 2 * share < left ? 2 * share : left;
    switch (layout) {
    case LAYOUT_BALANCED:
        return share;
    case LAYOUT_RANDOM:
        return draw % 4 == 0 ? any : about_share;
    case LAYOUT_SPARSE:
        return draw % 3 == 0 ? any : 0;
    case LAYOUT_DESCENDING:
        return (left + 1) / 2;
    case LAYOUT_ON_ONE:
    case LAYOUTS:
        break;
    }
    return 0;
}

/* counts [size] = the counts of all ranks, of `total` keys. What a layout leaves over goes to any one rank. */
static inline void layout_counts(enum layout layout, int64_t total, int size, uint64_t seed, int64_t *counts)
{
    int64_t left = total;
    for (int rank = 0; rank < size; rank++) {
        counts[rank] = layout_count(layout, left, total / size + (rank < total % size), &seed);
        left -= counts[rank];
    }
    counts[check_random(&seed) % (uint64_t)size] += left;
}

/* How many keys lie before a rank. */
static inline int64_t layout_before(const int64_t *counts, int rank)
{
    int64_t before = 0;
    for (int lower = 0; lower < rank; lower++)
        before += counts[lower];
    return before;
}

#endif
