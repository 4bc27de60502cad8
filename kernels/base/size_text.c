#include "kernels/base/size_text.h"
#include <inttypes.h>
#include <stdio.h>

const char *size_text(uint64_t bytes, char *text)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    enum { DIGITS = 5 }; // with the point
    uint64_t unit = 1;
    int name = 0;
    for (; bytes / unit >= 1000; name++)
        unit *= 1000;
    const unsigned whole = (unsigned)(bytes / unit),
                   thousandths = unit == 1 ? 0 : (unsigned)(bytes % unit / (unit / 1000));
    char number[SIZE_TEXT_BYTES / 2];
    snprintf(number, sizeof number, "%u.%03u", whole, thousandths);
    int length = DIGITS;
    while (number[length - 1] == '0')
        length--;
    length -= number[length - 1] == '.';
    snprintf(text, SIZE_TEXT_BYTES, "%.*s %s", length, number, units[name]);
    return text;
}

const char *size_option_text(uint64_t bytes, char *text)
{
    static const char units[] = "KMGT";
    int unit = 0, shift = 10;
    for (; units[unit + 1] && bytes >> (shift + 10) >= 10; unit++)
        shift += 10;
    const uint64_t part = bytes & ((UINT64_C(1) << shift) - 1);
    snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64 "%c", (bytes >> shift) + (part > 0), units[unit]);
    return text;
}
