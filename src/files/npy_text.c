#include "src/files/npy_text.h"
#include <string.h>
#include "kernels/base/status.h"

hsort_status npy_expected(const struct npy_text *text, const char *what)
{
    return status_fail(HSORT_FORMAT, "%s: bad .npy header: %s expected at character %td", text->path, what,
                       text->at - text->begin);
}

const char *npy_printable(struct npy_word word, char buffer[static 32])
{
    size_t length = word.length < 28 ? word.length : 28;
    for (size_t i = 0; i < length; i++)
        buffer[i] = word.begin[i] >= ' ' && word.begin[i] <= '~' ? word.begin[i] : '?';
    strcpy(buffer + length, word.length > length ? "..." : "");
    return buffer;
}

static void skip_space(struct npy_text *text)
{
    while (text->at < text->end && memchr(" \t\n\r\f", *text->at, 5))
        text->at++;
}

bool npy_take(struct npy_text *text, const char *token)
{
    const size_t length = strlen(token);
    skip_space(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, token, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* Nothing that is accepted needs a backslash. */
hsort_status npy_take_string(struct npy_text *text, struct npy_word *word)
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return npy_expected(text, "a string");
    const char quote = *text->at++;
    word->begin = text->at;
    while (text->at < text->end && *text->at != quote && *text->at != '\\' && *text->at != '\n')
        text->at++;
    if (text->at == text->end || *text->at != quote)
        return npy_expected(text, "a closing quote");
    word->length = (size_t)(text->at - word->begin);
    text->at++;
    return HSORT_OK;
}

hsort_status npy_take_extent(struct npy_text *text, int64_t *extent)
{
    *extent = 0;
    if (npy_take(text, "-"))
        return status_fail(HSORT_FORMAT, "%s: .npy header with a negative shape", text->path);
    if (text->at == text->end || *text->at < '0' || *text->at > '9')
        return npy_expected(text, "a number");
    for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
        const int digit = *text->at - '0';
        if (*extent > (INT64_MAX - digit) / 10)
            return status_fail(HSORT_FORMAT, "%s: .npy header with a shape beyond 64 bits", text->path);
        *extent = *extent * 10 + digit;
    }
    // Python 2 wrote long integers so.
    if (text->at < text->end && *text->at == 'L')
        text->at++;
    return HSORT_OK;
}

bool npy_word_is(struct npy_word word, const char *name)
{
    return word.length == strlen(name) && memcmp(word.begin, name, word.length) == 0;
}
