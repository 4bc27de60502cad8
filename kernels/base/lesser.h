/* Numbers: the lesser and the greater of two, one held between two; quotients, multiples and logarithms rounded up; a search in a
 * rising array. A leaf. */
#ifndef LESSER_H
#define LESSER_H

#include <stddef.h>
#include <stdint.h>

static inline int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The number of least .. most that is nearest to `value`. */
static inline int64_t int64_clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

static inline size_t lesser_bytes(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t greater_bytes(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* How many parts of size `by` make up `count`; the last one need not be full. */
static inline int64_t divide_up(int64_t count, int64_t by)
{
    return count / by + (count % by != 0);
}

/* The least multiple of `step` that is no less than `bytes`. */
static inline size_t bytes_rounded_up(size_t bytes, size_t step)
{
    return (bytes + step - 1) / step * step;
}

/* The least depth with 2^depth >= count. */
static inline int depth_of(int64_t count)
{
    int depth = 0;
    while (depth < 63 && INT64_C(1) << depth < count)
        depth++;
    return depth;
}

/* The first index of rising [count] whose entry is above `value`; count: there is none. */
static inline int64_t first_above(const int64_t *rising, int64_t count, int64_t value)
{
    int64_t low = 0, high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (rising[middle] > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

#endif
