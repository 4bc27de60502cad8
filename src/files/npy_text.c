#include "src/files/npy_text.h"
#include <string.h>
#include "kernels/base/status.h"

hsort_status npy_expected(const struct npy_text *text, const char *what)
{
    return status_fail(HSORT_FORMAT, "%s: bad .npy header: %s expected at character %td", text->path, what,
                       text->at - text->begin);
}

/* Does a terminal show this character as a character, and take it for nothing else? Not so for controls, and for characters that
 * end lines or turn their direction. */
static bool is_printable_character(uint32_t character)
{
    return character >= ' ' && (character < 0x7f || character > 0x9f) &&
           (character < 0x2028 || character > 0x202e) && (character < 0x2066 || character > 0x2069) &&
           (character < 0xd800 || character > 0xdfff) && character <= 0x10ffff;
}

/* How many bytes the UTF-8 character at the beginning of at [length] takes, if it can be shown; else 0. */
static size_t printable_bytes(const unsigned char *at, size_t length)
{
    const size_t bytes = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; // character of so many bytes
    uint32_t character = bytes == 1 ? at[0] : at[0] & (0x7fu >> bytes);
    if (bytes > length || (bytes > 1 && (at[0] < 0xc0 || at[0] > 0xf7)))
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (at[i] & 0x3f);
    }
    return character >= least[bytes] && is_printable_character(character) ? bytes : 0;
}

const char *npy_printable(struct npy_word word, char buffer[static 32])
{
    enum { ROOM = 28 };
    size_t taken = 0, length = 0;
    while (taken < word.length) {
        const size_t shown = printable_bytes((const unsigned char *)word.begin + taken, word.length - taken);
        const size_t bytes = shown > 0 ? shown : 1;
        if (length + bytes > ROOM)
            break;
        if (shown > 0)
            memcpy(buffer + length, word.begin + taken, bytes);
        else
            buffer[length] = '?';
        taken += bytes;
        length += bytes;
    }
    strcpy(buffer + length, taken < word.length ? "..." : "");
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

/* Names with a backslash are not read; NumPy also writes control characters with one. */
hsort_status npy_take_string(struct npy_text *text, struct npy_word *word)
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return npy_expected(text, "a string");
    const char quote = *text->at++;
    word->begin = text->at;
    while (text->at < text->end && *text->at != quote && *text->at != '\\' && *text->at != '\n')
        text->at++;
    if (text->at < text->end && *text->at == '\\')
        return status_fail(HSORT_FORMAT,
                           "%s: .npy header: a backslash at character %td; names with one are not read",
                           text->path, text->at - text->begin);
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
    // Python 2 wrote long integers with an L.
    if (text->at < text->end && *text->at == 'L')
        text->at++;
    return HSORT_OK;
}

bool npy_word_is(struct npy_word word, const char *name)
{
    return word.length == strlen(name) && memcmp(word.begin, name, word.length) == 0;
}
