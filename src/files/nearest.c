#include "src/files/nearest.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "kernels/base/lesser.h"

void nearest_begin(struct nearest *nearest, const char *text, size_t length)
{
    // A third of the letters may be wrong, or one letter of a short word; in a word of two letters only the case.
    const int wrong = length < 3 || length > NEAREST_LETTERS ? 0 : length < 6 ? 1 : (int)length / 3;
    *nearest = (struct nearest){.text = text, .length = length, .distance = wrong + 1};
}

static int is_other(char a, char b)
{
    return tolower((unsigned char)a) != tolower((unsigned char)b);
}

/* How many letters must be put in, left out, changed, or swapped with their neighbours, to make a [a_length] of b [b_length];
 * both at most NEAREST_LETTERS. */
static int distance_between(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int row[3]
           [NEAREST_LETTERS + 1]; // of the matrix of all beginnings: two rows ago, the previous row, this row
    for (size_t j = 0; j <= b_length; j++)
        row[1][j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        row[2][0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            const int changed = row[1][j - 1] + is_other(a[i - 1], b[j - 1]);
            row[2][j] = (int)lesser(changed, 1 + lesser(row[1][j], row[2][j - 1]));
            if (i > 1 && j > 1 && !is_other(a[i - 1], b[j - 2]) && !is_other(a[i - 2], b[j - 1]))
                row[2][j] = (int)lesser(row[2][j], row[0][j - 2] + 1);
        }
        memmove(row, row + 1, 2 * sizeof row[0]);
    }
    return row[1][b_length];
}

void nearest_offer(struct nearest *nearest, const char *word, size_t length)
{
    if (nearest->length > NEAREST_LETTERS || length > NEAREST_LETTERS)
        return;
    const int distance = distance_between(nearest->text, nearest->length, word, length);
    if (distance >= nearest->distance)
        return;
    nearest->distance = distance;
    memcpy(nearest->word, word, length);
    nearest->word[length] = '\0';
}

void nearest_offer_all(struct nearest *nearest, const char *words)
{
    while (*words) {
        const size_t length = strcspn(words, "|");
        nearest_offer(nearest, words, length);
        words += length + (words[length] == '|');
    }
}

const char *nearest_hint(const struct nearest *nearest, const char *before, char *hint)
{
    hint[0] = '\0';
    if (nearest->word[0] != '\0')
        snprintf(hint, NEAREST_HINT, " (did you mean %s%s?)", before, nearest->word);
    return hint;
}
