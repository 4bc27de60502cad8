#include "src/files/number.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include "kernels/base/keytype.h"

/* Take the number at `*text`, of at least one decimal digit; *text moves behind its digits. */
static bool take_digits(const char **text, uint64_t *number)
{
    const char *at = *text;
    for (*number = 0; isdigit((unsigned char)*at); at++)
        if (__builtin_mul_overflow(*number, 10, number) || __builtin_add_overflow(*number, *at - '0', number))
            return false;
    const bool any = at > *text;
    *text = at;
    return any;
}

/* Take the digits after a decimal point: they continue *number, and *places is how many there are, without zeros at the end. */
static bool take_fraction(const char **text, uint64_t *number, int *places)
{
    size_t digits = strspn(*text, "0123456789"), length = digits;
    while (digits > 0 && (*text)[digits - 1] == '0')
        digits--;
    for (size_t i = 0; i < digits; i++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (*text)[i] - '0', number))
            return false;
    *places = (int)digits;
    *text += length;
    return length > 0;
}

/* Take K, Ki or KiB, likewise M, G and T, also in small letters, as a shift. Not KB, which others take for 1000. */
static bool take_unit(const char **text, int *shift)
{
    static const char units[] = "KMGT";
    const char *at = *text, *unit = *at ? strchr(units, toupper((unsigned char)*at)) : NULL;
    *shift = unit ? 10 * (int)(unit - units + 1) : 0;
    if (unit && (at[1] == 'i' || at[1] == 'I'))
        at += at[2] == 'B' || at[2] == 'b' ? 2 : 1;
    *text = at + (unit != NULL);
    return **text == '\0';
}

/* Take an exponent, as in 1e6 or 1e+06. */
static bool take_exponent(const char **text, uint64_t *exponent)
{
    *exponent = 0;
    if (**text != 'e' && **text != 'E')
        return true;
    *text += (*text)[1] == '+' ? 2 : 1;
    return take_digits(text, exponent);
}

/* Multiply *number by 10^exponent. False: that is no whole number, or does not fit. */
static bool scale_by_tens(uint128 *number, int64_t exponent)
{
    for (; exponent > 0 && *number > 0; exponent--)
        if (__builtin_mul_overflow(*number, 10, number))
            return false;
    for (; exponent < 0 && *number > 0; exponent++, *number /= 10)
        if (*number % 10 != 0)
            return false;
    return true;
}

bool number_parse(const char *text, bool units, uint64_t most, uint64_t *number)
{
    uint64_t mantissa, exponent = 0;
    int places = 0, shift = 0;
    if (!take_digits(&text, &mantissa))
        return false;
    if (units && mantissa == 2 && *text == '^') {
        text++;
        if (!take_digits(&text, &exponent) || *text != '\0' || exponent > 63)
            return false;
        mantissa = UINT64_C(1) << exponent;
        exponent = 0;
    } else if (units) {
        if (*text == '.') {
            text++;
            if (!take_fraction(&text, &mantissa, &places))
                return false;
        }
        if (!take_exponent(&text, &exponent) || exponent > INT_MAX || !take_unit(&text, &shift))
            return false;
    }
    uint128 value = (uint128)mantissa << shift; // 64 and 40 bits
    if (*text != '\0' || !scale_by_tens(&value, (int64_t)exponent - places) || value > most)
        return false;
    *number = (uint64_t)value;
    return true;
}
