#include "kernels/base/size_text.h"
#include <inttypes.h>
#include <stdio.h>

const char *size_text(uint64_t bytes, char *text)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    uint64_t unit = 1;
    int name = 0;
    for (; bytes / unit >= 1000; name++)
        unit *= 1000;
    const uint64_t whole = bytes / unit;
    int digits = unit == 1 ? 0 : whole >= 100 ? 1 : whole >= 10 ? 2 : 3; // behind the point
    uint64_t last = unit;
    for (int i = 0; i < digits; i++)
        last /= 10;
    uint64_t fraction = bytes % unit / last;
    for (; digits > 0 && fraction % 10 == 0; digits--)
        fraction /= 10;
    if (digits > 0)
        snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64 ".%0*" PRIu64 " %s", whole, digits, fraction, units[name]);
    else
        snprintf(text, SIZE_TEXT_BYTES, "%" PRIu64 " %s", whole, units[name]);
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
