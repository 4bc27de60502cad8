#include "src/command/page.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "src/command/report.h"

/* People who see few colours can tell the colours of phases, p0 to p8, and of spans, s0 to s5, apart, on a light and on a dark ground. */
static const char style[] =
    ":root{--ink:#1c2733;--soft:#5b6b7a;--line:#d8dee4;--ground:#fff;--panel:#f5f7f9;--wait:#c3ccd5;--frame:#"
    "9fb0c0}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e9ee;--soft:#9aa8b5;--line:#36424d;--ground:#14191f;--"
    "panel:#1d242c;"
    "--wait:#4a5763;--frame:#607385}}\n"
    "body{font:15px/1.5 "
    "system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:1100px;margin:2rem auto;"
    "padding:0 1rem}\n"
    "h1{font-size:1.5rem;margin:0 0 .3rem;overflow-wrap:anywhere}h2{font-size:1.1rem;margin:2.2rem 0 .6rem}\n"
    "p{margin:.4rem 0}.soft{color:var(--soft)}\n"
    "code{font:13px ui-monospace,monospace;background:var(--panel);padding:.1em "
    ".35em;border-radius:3px;overflow-wrap:anywhere}\n"
    "table{display:block;overflow-x:auto;border-collapse:collapse;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.25rem 1.1rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid "
    "var(--line)}\n"
    "th{color:var(--soft);font-weight:500}td.n,th.n{text-align:right;white-space:nowrap}td.key{white-space:"
    "nowrap}\n"
    "table.facts th{white-space:nowrap}table.facts td{overflow-wrap:anywhere}\n"
    ".figure{overflow-x:auto}svg{display:block;width:100%;min-width:760px;height:auto}\n"
    "svg text{font:11px system-ui,sans-serif;fill:var(--ink)}svg text.t{fill:var(--soft)}svg "
    "text.in{fill:#101418;font-size:9px}svg text.on0,svg text.on5{fill:var(--ink)}\n"
    "svg line{stroke:var(--line)}\n"
    ".key span{display:inline-block;margin-right:1rem}.key "
    "i{display:inline-block;width:.8em;height:.8em;margin-right:.35em;"
    "border-radius:2px}\n"
    ".p0{fill:#5b8ec4;background:#5b8ec4}.p1{fill:#76b7b2;background:#76b7b2}.p2{fill:#f2a03d;background:#"
    "f2a03d}"
    ".p3{fill:#e0605f;background:#e0605f}.p4{fill:#b588b0;background:#b588b0}.p5{fill:#a98467;background:#"
    "a98467}"
    ".p6{fill:#e3c54a;background:#e3c54a}.p7{fill:#63a95a;background:#63a95a}.p8{fill:#a8a29c;background:#"
    "a8a29c}\n"
    ".s0{fill:var(--frame);background:var(--frame)}.s1{fill:#f2a03d;background:#f2a03d}.s2{fill:#e0605f;"
    "background:#e0605f}"
    ".s3{fill:#5b8ec4;background:#5b8ec4}.s4{fill:#63a95a;background:#63a95a}.s5{fill:var(--wait);background:"
    "var(--wait)}\n"
    ".bad{color:#d0433f;font-weight:600}";

/* Make room for `more` bytes and a zero behind them. */
static bool has_room(struct page *page, size_t more)
{
    if (page->lacks_memory)
        return false;
    if (page->length + more + 1 <= page->room)
        return true;
    const size_t room = 2 * page->room + more + 4096;
    char *text = realloc(page->text, room);
    page->lacks_memory = !text;
    if (!text)
        return false;
    page->text = text;
    page->room = room;
    return true;
}

void page_add(struct page *page, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    if (length >= 0 && has_room(page, (size_t)length))
        page->length += (size_t)vsnprintf(page->text + page->length, (size_t)length + 1, format, again);
    va_end(again);
    va_end(args);
}

/* Bytes of the character at `at`; *allowed: HTML and XML can have it. Of bytes that are no UTF-8, one. */
static size_t character_bytes(const unsigned char *at, bool *allowed)
{
    *allowed = *at == '\n' || *at == '\t' || (*at >= ' ' && *at < 0x7f);
    if (*at < 0x80)
        return 1;
    const size_t more = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : 1;
    const bool begins = (*at >= 0xc2 && *at <= 0xf4);
    for (size_t i = 1; begins && i <= more; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 1;
    const bool wrong = (at[0] == 0xe0 && at[1] < 0xa0) ||
                       (at[0] == 0xed && at[1] > 0x9f) || // longer than needed, surrogates
                       (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f) ||
                       (at[0] == 0xef && at[1] == 0xbf && at[2] > 0xbd);
    *allowed = begins && !wrong;
    return begins ? more + 1 : 1;
}

void page_escaped(struct page *page, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        bool allowed;
        const size_t bytes = character_bytes(at, &allowed);
        if (!allowed)
            page_add(page, "\xef\xbf\xbd");
        else if (*at == '&' || *at == '<' || *at == '>' || *at == '"' || *at == '\'')
            page_add(page, "&#%d;", *at);
        else
            page_add(page, "%.*s", (int)bytes, (const char *)at);
        at += bytes;
    }
}

void page_element(struct page *page, const char *tag, const char *class_name, const char *text)
{
    page_add(page, class_name ? "<%s class=\"%s\">" : "<%s>", tag, class_name);
    page_escaped(page, text);
    page_add(page, "</%s>", tag);
}

void page_begin(struct page *page, const char *title)
{
    page_add(page, "<!DOCTYPE html>\n<html lang=\"en\" "
                   "xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                   "<meta name=\"viewport\" content=\"width=device-width\"/>\n<meta name=\"color-scheme\" "
                   "content=\"light dark\"/>\n");
    page_element(page, "title", NULL, title);
    page_add(page, "\n<style>\n%s\n</style>\n</head>\n<body>\n", style);
}

void page_end(struct page *page)
{
    page_add(page, "</body>\n</html>\n");
}

hsort_status page_status(const struct page *page)
{
    return page->lacks_memory
               ? status_fail(HSORT_HOST_MEMORY, "no memory for a page of %zu bytes", page->length)
               : HSORT_OK;
}

void page_free(struct page *page)
{
    free(page->text);
    *page = (struct page){.text = NULL};
}

/* A round step: 1, 2 or 5 times a power of ten, with at most 10 steps. */
static double axis_step(double most)
{
    const double power = pow(10, floor(log10(most)));
    return most / power <= 2 ? power / 5 : most / power <= 5 ? power / 2 : power;
}

void page_axis(struct page *page, double most, double left, double right, double height)
{
    enum { STEPS = 10 };
    char text[REPORT_FIGURE_TEXT];
    const double step = axis_step(most);
    for (int i = 0; i <= STEPS && i * step <= most * 1.0001; i++) {
        const double x = left + i * step / most * (right - left);
        page_add(page,
                 "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%.1f\"/><text class=\"t\" x=\"%.1f\" y=\"12\" "
                 "text-anchor=\"middle\">%s</text>\n",
                 x, x, PAGE_AXIS - 5, height, x, i > 0 ? report_time(i * step, text) : "0");
    }
}
