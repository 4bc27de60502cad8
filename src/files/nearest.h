/* Which known word was probably meant by an unknown word that is close to it: "did you mean sort?". */
#ifndef NEAREST_H
#define NEAREST_H

#include <stddef.h>

enum { NEAREST_LETTERS = 32, NEAREST_HINT = NEAREST_LETTERS + 24 };

struct nearest {
    const char *text; /* what was given, borrowed; [length] */
    size_t length;
    int distance; /* of the nearest word so far; at first the least distance that is too far */
    char word[NEAREST_LETTERS + 1];
};

/* Begin to look for the word that `text` [length] was meant to be. Not collective. */
void nearest_begin(struct nearest *nearest, const char *text, size_t length);

/* Offer one of the known words: [length]. Of words that are equally near, the first stays. */
void nearest_offer(struct nearest *nearest, const char *word, size_t length);

/* Offer all words of "this|that|other". */
void nearest_offer_all(struct nearest *nearest, const char *words);

/* hint [NEAREST_HINT] = " (did you mean X?)" with `before` and the word for X, or "" if no word is near. Returns hint. */
const char *nearest_hint(const struct nearest *nearest, const char *before, char *hint);

#endif
