/* Keys as text: numbers that come back as the same bits. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include "src/command/report.h"

/* Print a number of up to 39 digits; printf() knows numbers of up to 20. */
static const char *unsigned_text(key_code bits, char *text)
{
    const uint64_t ten_to_19 = UINT64_C(10000000000000000000);
    const key_code upper = bits / ten_to_19;
    if (upper == 0)
        snprintf(text, REPORT_KEY_TEXT, "%" PRIu64, (uint64_t)bits);
    else if (upper / ten_to_19 == 0)
        snprintf(text, REPORT_KEY_TEXT, "%" PRIu64 "%019" PRIu64, (uint64_t)upper,
                 (uint64_t)(bits % ten_to_19));
    else
        snprintf(text, REPORT_KEY_TEXT, "%" PRIu64 "%019" PRIu64 "%019" PRIu64, (uint64_t)(upper / ten_to_19),
                 (uint64_t)(upper % ten_to_19), (uint64_t)(bits % ten_to_19));
    return text;
}

/* The number that the bits of a float stand for; the exponent lies between sign and mantissa. */
static double float_value(hsort_type type, uint64_t bits)
{
    const int mantissa_bits = key_mantissa_bits(type), width = 8 * (int)hsort_type_bytes(type);
    const int exponents = 1 << (width - 1 - mantissa_bits), bias = exponents / 2 - 1;
    const int exponent = (int)(bits >> mantissa_bits) & (exponents - 1);
    const uint64_t one = UINT64_C(1) << mantissa_bits, mantissa = bits & (one - 1);
    const double size = exponent == exponents - 1 ? mantissa > 0 ? (double)NAN : (double)INFINITY
                        : exponent == 0           ? ldexp((double)mantissa, 1 - bias - mantissa_bits)
                                        : ldexp((double)(mantissa | one), exponent - bias - mantissa_bits);
    return bits >> (width - 1) ? -size : size;
}

const char *report_key_text(hsort_type type, key_code bits, char *text)
{
    const int width = 8 * (int)hsort_type_bytes(type), mantissa_bits = key_mantissa_bits(type);
    const uint64_t low = (uint64_t)bits;
    const struct keymap map = keymap_make(type, HSORT_ASCENDING);
    // As many digits as tell any two floats of the type apart.
    const int digits = type == HSORT_F64 ? 17 : type == HSORT_F32 ? 9 : type == HSORT_F16 ? 5 : 4;
    if (mantissa_bits > 0) {
        const double value = float_value(type, low);
        if (isnan(value))
            snprintf(text, REPORT_KEY_TEXT, "nan(0x%0*" PRIx64 ")", width / 4, low);
        else
            snprintf(text, REPORT_KEY_TEXT, "%.*g", digits, value);
        return text;
    }
    if (map.flip == 0)
        return unsigned_text(bits, text);
    snprintf(text, REPORT_KEY_TEXT, "%" PRId64, (int64_t)(low << (64 - width)) >> (64 - width));
    return text;
}
