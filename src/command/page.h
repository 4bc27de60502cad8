/* A page for browsers, made in memory: HTML that is well-formed XML too, with its style in it and nothing from elsewhere. Nothing here
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

/* Add text as it is, printf style; what is not ours goes by page_escaped(). */
void page_add(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add text that may hold anything: what HTML takes for its own is escaped, control characters become U+FFFD. */
void page_escaped(struct page *page, const char *text);

/* <TAG CLASS>escaped text</TAG>; class may be NULL. */
void page_element(struct page *page, const char *tag, const char *class_name, const char *text);

/* The beginning of the page, with its title, and its end. */
void page_begin(struct page *page, const char *title);
void page_end(struct page *page);

/* Errors HSORT_HOST_MEMORY: some of it could not be kept. */
hsort_status page_status(const struct page *page);
void page_free(struct page *page);

/* The axis of a figure: its times from 0 to `most` > 0, in seconds, from x `left` to `right`, with lines down to `height`. Where the
 * lines begin there is room for what is drawn. */
enum { PAGE_AXIS = 22 };
void page_axis(struct page *page, double most, double left, double right, double height);

#endif
