/* The text of a .npy header, a Python literal: its pieces, taken one after the other. This only parses bytes. */
#ifndef NPY_TEXT_H
#define NPY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hypersort.h"

/* What is left of the text. */
struct npy_text {
    const char *path; /* of the file, for texts of errors */
    const char *begin, *at, *end;
};

/* A piece of it: a string without its quotes. */
struct npy_word {
    const char *begin;
    size_t length;
};

/* Fail because the text is not `what` it must be here. Returns HSORT_FORMAT. */
hsort_status npy_expected(const struct npy_text *text, const char *what);

/* Copy a word for an error's text: shortened, in UTF-8, with a ? for each byte that would upset a terminal. Returns buffer. */
const char *npy_printable(struct npy_word word, char buffer[static 32]);

/* Step over white space and, if it comes next, over `token`. Did it come? */
bool npy_take(struct npy_text *text, const char *token);

/* Take a string in either quote. Backslashes are refused. Errors HSORT_FORMAT. */
hsort_status npy_take_string(struct npy_text *text, struct npy_word *word);

/* Take an extent: a number of 63 bits, perhaps followed by the L of Python 2. Errors HSORT_FORMAT. */
hsort_status npy_take_extent(struct npy_text *text, int64_t *extent);

bool npy_word_is(struct npy_word word, const char *name);

#endif
