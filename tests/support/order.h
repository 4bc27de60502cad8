/* The total order of keys, written down a second time: by comparing values, as the head of src/hypersort.h tells it, and
 * not by the codes of kernels/base/keytype.h, so that a mistake in those is seen. */
#ifndef ORDER_H
#define ORDER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hypersort.h"

/* -1, 0 or 1: `a` comes before `b` in ascending order, is the same key, comes after it. */
#define ORDER_OF_INTEGERS(name, type)                    \
    static inline int name(const void *a, const void *b) \
    {                                                    \
        type left, right;                                \
        memcpy(&left, a, sizeof left);                   \
        memcpy(&right, b, sizeof right);                 \
        return (left > right) - (left < right);          \
    }
ORDER_OF_INTEGERS(order_u32, uint32_t)
ORDER_OF_INTEGERS(order_i32, int32_t)
ORDER_OF_INTEGERS(order_u64, uint64_t)
ORDER_OF_INTEGERS(order_i64, int64_t)
#undef ORDER_OF_INTEGERS

/* Numbers by value, -0.0 before +0.0. NaNs come after all numbers: first the positive ones, rising by their bits, then
 * the negative ones, falling, as the codes of kernels/base/keytype.h have it. */
static inline int order_doubles(double a, double b, uint64_t a_bits, uint64_t b_bits)
{
    const bool a_nan = isnan(a), b_nan = isnan(b);
    if (a_nan != b_nan)
        return a_nan ? 1 : -1;
    const bool a_minus = signbit(a) != 0, b_minus = signbit(b) != 0;
    if (a_nan) {
        if (a_minus != b_minus)
            return a_minus ? 1 : -1;
        const int by_bits = (a_bits > b_bits) - (a_bits < b_bits);
        return a_minus ? -by_bits : by_bits;
    }
    if (a == 0 && b == 0)
        return b_minus - a_minus;
    return (a > b) - (a < b);
}

static inline int order_f32(const void *a, const void *b)
{
    float left, right;
    uint32_t left_bits, right_bits;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    memcpy(&left_bits, a, sizeof left_bits);
    memcpy(&right_bits, b, sizeof right_bits);
    return order_doubles((double)left, (double)right, left_bits, right_bits);
}

static inline int order_f64(const void *a, const void *b)
{
    double left, right;
    uint64_t left_bits, right_bits;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    memcpy(&left_bits, a, sizeof left_bits);
    memcpy(&right_bits, b, sizeof right_bits);
    return order_doubles(left, right, left_bits, right_bits);
}

typedef int (*order_fn)(const void *, const void *);

static inline order_fn order_ascending(hsort_type type)
{
    static const order_fn functions[6] = {order_u32, order_i32, order_f32, order_u64, order_i64, order_f64};
    return functions[type];
}

static inline bool order_is_nan(hsort_type type, const void *key)
{
    float narrow;
    double wide;
    if (type == HSORT_F32)
        memcpy(&narrow, key, sizeof narrow);
    if (type == HSORT_F64)
        memcpy(&wide, key, sizeof wide);
    return type == HSORT_F32 ? isnan(narrow) != 0 : type == HSORT_F64 && isnan(wide) != 0;
}

/* The same in either order. HSORT_DESCENDING reverses all that is not NaN. */
static inline int order_compare(hsort_type type, hsort_order order, const void *a, const void *b)
{
    const int ascending = order_ascending(type)(a, b);
    const bool nans = order_is_nan(type, a) || order_is_nan(type, b);
    return order == HSORT_DESCENDING && !nans ? -ascending : ascending;
}

/* Sort keys [count] by qsort. Descending: the numbers, which come first, are turned round afterwards. */
static inline void order_sort(hsort_type type, hsort_order order, void *keys, int64_t count)
{
    const size_t width = hsort_type_bytes(type);
    unsigned char *bytes = keys;
    qsort(keys, (size_t)count, width, order_ascending(type));
    int64_t numbers = count;
    while (numbers > 0 && order_is_nan(type, bytes + (size_t)(numbers - 1) * width))
        numbers--;
    for (int64_t i = 0; order == HSORT_DESCENDING && i < numbers / 2; i++) {
        unsigned char *front = bytes + (size_t)i * width, *back = bytes + (size_t)(numbers - 1 - i) * width,
                      kept[8];
        memcpy(kept, front, width);
        memcpy(front, back, width);
        memcpy(back, kept, width);
    }
}

#endif
