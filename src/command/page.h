/* A page for browsers, made in memory: HTML that is also well-formed XML, with its style in it and nothing from elsewhere. Nothing here
 * is collective. */
#ifndef PAGE_H
#define PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include "kernels/base/status.h"

struct page {
    char *text; /* [length] owned */
    size_t length, room;
    bool lacks_memory;
};

/* Add text as it is, printf style; text that is not our own goes through page_escaped(). */
void page_add(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add text that may hold anything: characters of HTML's own are escaped, control characters become U+FFFD. */
void page_escaped(struct page *page, const char *text);

/* <TAG CLASS>escaped text</TAG>; class may be NULL. */
void page_element(struct page *page, const char *tag, const char *class_name, const char *text);

/* Add the beginning of the page, with its title; add its end. */
void page_begin(struct page *page, const char *title);
void page_end(struct page *page);

/* Is the page complete? Errors HSORT_HOST_MEMORY: some of it could not be kept. */
hsort_status page_status(const struct page *page);
void page_free(struct page *page);

/* Add the axis of a figure: times from 0 to `most` > 0, in seconds, from x `left` to `right`, with lines down to `height`. From
 * y PAGE_AXIS on there is room for the figure. */
enum { PAGE_AXIS = 22 };
void page_axis(struct page *page, double most, double left, double right, double height);

#endif
