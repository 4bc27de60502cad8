/* Figures of reports, for people: few digits and a suitable unit. JSON has the exact figures. */
#include <stdio.h>
#include "src/command/report.h"

/* Print four digits, or more if there are more before the decimal point. */
static const char *put(double number, const char *unit, char *text)
{
    snprintf(text, REPORT_FIGURE_TEXT, number < 1000 ? "%.4g %s" : "%.0f %s", number, unit);
    return text;
}

const char *report_time(double seconds, char *text)
{
    if (seconds >= 1)
        return put(seconds, "s", text);
    return seconds >= 1e-3 ? put(seconds * 1e3, "ms", text) : put(seconds * 1e6, "us", text);
}

const char *report_figure(double number, const char *unit, char *text)
{
    static const char prefixes[] = "\0kMGTPE";
    char word[16];
    size_t prefix = 0;
    for (; number >= 1000 && prefix + 2 < sizeof prefixes; prefix++)
        number /= 1000;
    snprintf(word, sizeof word, "%.1s%s", &prefixes[prefix], unit);
    return put(number, word, text);
}

int report_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void report_phase(const char *name, double seconds)
{
    char text[REPORT_FIGURE_TEXT];
    if (seconds >= 1e-6)
        printf("%-11s %10s\n", name, report_time(seconds, text));
}
