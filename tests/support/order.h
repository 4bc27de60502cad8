/* The total order of keys, written down a second time: by comparing values, as the head of src/hypersort.h describes it, and
 * not by the codes of kernels/base/keytype.h, so that a mistake in the codes is seen. */
#ifndef ORDER_H
#define ORDER_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "hypersort.h"

/* All types there are, in the order of their numbers. */
#define ORDER_TYPE(name, short_name, bytes) +1
enum { ORDER_TYPES = 0 HSORT_TYPE_LIST(ORDER_TYPE) };

__extension__ typedef unsigned __int128 order_uint128;

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
ORDER_OF_INTEGERS(order_u128, order_uint128)
ORDER_OF_INTEGERS(order_u8, uint8_t)
ORDER_OF_INTEGERS(order_i8, int8_t)
ORDER_OF_INTEGERS(order_u16, uint16_t)
ORDER_OF_INTEGERS(order_i16, int16_t)
#undef ORDER_OF_INTEGERS

/* Numbers by value, -0.0 before +0.0. NaNs come after all numbers: first the positive ones, rising by their bits, then
 * the negative ones, falling, as in the codes of kernels/base/keytype.h. */
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

/* The value of a float of `width` bits, which has its exponent between its sign and its mantissa. A double holds all floats of
 * two bytes. */
static inline double order_float_value(int width, int mantissa, uint64_t bits)
{
    const int exponents = width - 1 - mantissa, bias = (1 << (exponents - 1)) - 1;
    const int exponent = (int)(bits >> mantissa & ((1u << exponents) - 1));
    const double fraction = (double)(bits & ((UINT64_C(1) << mantissa) - 1));
    const double size = exponent == (1 << exponents) - 1 ? fraction > 0 ? (double)NAN : (double)INFINITY
                        : exponent == 0                  ? ldexp(fraction, 1 - bias - mantissa)
                                        : ldexp(1 + ldexp(fraction, -mantissa), exponent - bias);
    return bits >> (width - 1) ? -size : size;
}

static inline int order_two_bytes(int mantissa, const void *a, const void *b)
{
    uint16_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return order_doubles(order_float_value(16, mantissa, left), order_float_value(16, mantissa, right), left,
                         right);
}

static inline int order_f16(const void *a, const void *b)
{
    return order_two_bytes(10, a, b);
}

static inline int order_bf16(const void *a, const void *b)
{
    return order_two_bytes(7, a, b);
}

typedef int (*order_fn)(const void *, const void *);

static inline order_fn order_ascending(hsort_type type)
{
    static const order_fn functions[] = {order_u32, order_i32,  order_f32, order_u64, order_i64, order_f64, order_u128,
                                         order_u8,  order_i8, order_u16, order_i16, order_f16, order_bf16};
    return functions[type];
}

static inline bool order_is_nan(hsort_type type, const void *key)
{
    float narrow;
    double wide;
    uint16_t half;
    switch (type) {
    case HSORT_F32:
        memcpy(&narrow, key, sizeof narrow);
        return isnan(narrow) != 0;
    case HSORT_F64:
        memcpy(&wide, key, sizeof wide);
        return isnan(wide) != 0;
    case HSORT_F16:
    case HSORT_BF16:
        memcpy(&half, key, sizeof half);
        return isnan(order_float_value(16, type == HSORT_F16 ? 10 : 7, half)) != 0;
    default:
        return false;
    }
}

/* The same for either order. HSORT_DESCENDING reverses everything that is not NaN. */
static inline int order_compare(hsort_type type, hsort_order order, const void *a, const void *b)
{
    const int ascending = order_ascending(type)(a, b);
    const bool nans = order_is_nan(type, a) || order_is_nan(type, b);
    return order == HSORT_DESCENDING && !nans ? -ascending : ascending;
}

static inline size_t order_field_bytes(const hsort_field *field)
{
    return field->bytes != 0 ? (size_t)field->bytes : hsort_type_bytes(field->type);
}

/* Compare two elements by their fields: numbers by value, other bytes by memcmp(). */
static inline int order_compare_fields(const hsort_field *fields, int count, const void *a, const void *b)
{
    for (int f = 0; f < count; f++) {
        const hsort_field *field = &fields[f];
        const unsigned char *x = (const unsigned char *)a + field->offset, *y = (const unsigned char *)b + field->offset;
        const size_t bytes = order_field_bytes(field);
        unsigned char left[16], right[16];
        for (size_t i = 0; field->bytes == 0 && i < bytes; i++) { // as this machine has them
            left[i] = x[field->big_endian ? bytes - 1 - i : i];
            right[i] = y[field->big_endian ? bytes - 1 - i : i];
        }
        int found = field->bytes == 0 ? order_compare(field->type, field->order, left, right) : memcmp(x, y, bytes);
        if (field->bytes != 0 && field->order == HSORT_DESCENDING)
            found = -found;
        if (found != 0)
            return found;
    }
    return 0;
}

/* Sort keys [count] by qsort. For a descending order the numbers, which come first, are reversed afterwards. */
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
                      kept[16];
        memcpy(kept, front, width);
        memcpy(front, back, width);
        memcpy(back, kept, width);
    }
}

#endif
