/* Which word was meant where one that is not known is close to one that is: "did you mean sort?". */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

enum { NEAREST_LETTERS = 32, NEAREST_HINT = NEAREST_LETTERS + 24 };

struct nearest {
    const char *text; /* what was given, borrowed; [length] */
    size_t length;
    int distance; /* of the nearest word so far; at first the least that is too far */
    char word[NEAREST_LETTERS + 1];
};

/* Look for what `text` [length] was meant to be. Not collective. */
void nearest_begin(struct nearest *nearest, const char *text, size_t length);

/* One of the words that are known: [length]. The first of those that are equally near stays. */
void nearest_offer(struct nearest *nearest, const char *word, size_t length);

/* The words of "this|that|other". */
void nearest_offer_all(struct nearest *nearest, const char *words);

/* hint [NEAREST_HINT] = " (did you mean BEFORE and the word?)", or "" where none is near. Returns hint. */
const char *nearest_hint(const struct nearest *nearest, const char *before, char *hint);

#endif
