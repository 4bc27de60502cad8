/* The order of order.h once more, for oracles of millions of keys: no comparisons, but a pass over the keys for each of their
 * bytes. test_radix_order checks it against qsort. Keys are sorted by their bits as unsigned integers. That puts keys of a type
 * with a sign into ranges, each rising or falling by value, which then only have to be put into their places:
 *
 *     by bits      +0 1 inf | +NaNs | -0 -1 -inf | -NaNs         integers    0 1 2 | -3 -2 -1
 *     in order     -inf -1 -0 | +0 1 inf | +NaNs | -NaNs                     -3 -2 -1 | 0 1 2
 *                  turned                          turned */
#ifndef RADIX_ORDER_H
#define RADIX_ORDER_H

#include <stdio.h>
#include "tests/support/order.h"

static inline void *radix_memory(size_t bytes)
{
    void *memory = malloc(bytes);
    if (!memory) {
        fprintf(stderr, "no memory for an oracle of %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

/* to [count] = from, in stable order by one byte of each key. False, and nothing is written, if that byte is the same in all keys.
 * Inlined, so that the width is a constant. */
static inline __attribute__((always_inline)) bool
radix_pass(size_t width, size_t byte, const unsigned char *from, unsigned char *to, int64_t count)
{
    int64_t place[256] = {0}, before = 0;
    for (int64_t i = 0; i < count; i++)
        place[from[(size_t)i * width + byte]]++;
    if (place[from[byte]] == count)
        return false;
    for (int digit = 0; digit < 256; digit++) {
        const int64_t keys = place[digit];
        place[digit] = before;
        before += keys;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)place[from[(size_t)i * width + byte]]++ * width, from + (size_t)i * width, width);
    return true;
}

/* Sort keys [count] by their bits as unsigned integers, little-endian. */
static inline void radix_sort_bits(size_t width, void *keys, int64_t count)
{
    if (count < 2)
        return;
    const size_t bytes = (size_t)count * width;
    unsigned char *const other = radix_memory(bytes), *from = keys, *to = other;
    for (size_t byte = 0; byte < width; byte++) {
        const bool moved = width == 4    ? radix_pass(4, byte, from, to, count)
                           : width == 8  ? radix_pass(8, byte, from, to, count)
                           : width == 16 ? radix_pass(16, byte, from, to, count)
                                         : radix_pass(width, byte, from, to, count);
        unsigned char *const sorted = moved ? to : from;
        to = moved ? from : to;
        from = sorted;
    }
    if (from != keys)
        memcpy(keys, from, bytes);
    free(other);
}

/* Keys [begin .. end - 1] of those sorted by their bits; turned: the last one comes first. */
struct radix_range {
    int64_t begin, end;
    bool turned;
};

/* to = the keys of a range; returns where they end. */
static inline unsigned char *radix_put(size_t width, const unsigned char *sorted, struct radix_range range,
                                       unsigned char *to)
{
    for (int64_t i = range.begin; i < range.end; i++, to += width) {
        const int64_t at = range.turned ? range.begin + range.end - 1 - i : i;
        memcpy(to, sorted + (size_t)at * width, width);
    }
    return to;
}

static inline int64_t radix_first_nan(hsort_type type, const unsigned char *sorted, int64_t from,
                                      int64_t until)
{
    while (from < until && !order_is_nan(type, sorted + (size_t)from * hsort_type_bytes(type)))
        from++;
    return from;
}

static inline int64_t radix_first_negative(hsort_type type, const unsigned char *sorted, int64_t count)
{
    const size_t width = hsort_type_bytes(type);
    int64_t i = 0;
    while (i < count && !(sorted[(size_t)i * width + width - 1] >> 7))
        i++;
    return i;
}

/* As order_sort(). order.h says whether the top bit is a sign, and which way keys with that bit rise. */
static inline void radix_order_sort(hsort_type type, hsort_order order, void *keys, int64_t count)
{
    const size_t width = hsort_type_bytes(type), bytes = (size_t)count * width;
    const bool down = order == HSORT_DESCENDING;
    unsigned char zero[16] = {0}, top[16] = {0}, above_top[16] = {1}, *to = keys;
    top[width - 1] |= 0x80;
    above_top[width - 1] |= 0x80;
    radix_sort_bits(width, keys, count);
    const bool has_sign = order_ascending(type)(top, zero) < 0;
    if (!has_sign && !down)
        return;
    unsigned char *const sorted = radix_memory(bytes + 1);
    memcpy(sorted, keys, bytes);
    const int64_t negative = has_sign ? radix_first_negative(type, sorted, count) : count;
    struct radix_range upper = {0, radix_first_nan(type, sorted, 0, negative), down};
    struct radix_range lower = {negative, radix_first_nan(type, sorted, negative, count),
                                (order_ascending(type)(above_top, top) < 0) != down};
    to = radix_put(width, sorted, down ? upper : lower, to);
    to = radix_put(width, sorted, down ? lower : upper, to);
    to = radix_put(width, sorted, (struct radix_range){upper.end, negative, false}, to);
    radix_put(width, sorted, (struct radix_range){lower.end, count, true}, to);
    free(sorted);
}

#endif
