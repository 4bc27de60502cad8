/* The header of a .npy file: magic, version, the length of a text, and the text, a Python dictionary.
 * Version 1.0 has a 2-byte length, 2.0 and 3.0 a 4-byte one (little-endian); the text of 3.0 may be UTF-8.
 *
 *      byte 0      6 7 8     10                                                                   127 128
 *      \x93NUMPY   1 0 118 0 {'descr': '<u8', 'fortran_order': False, 'shape': (1000,), } spaces  \n  keys
 *
 * The text is taken as Python takes it as far as the three entries go (any order, either quote, any white
 * space, a last comma), and refused otherwise: an entry that is missing, doubled or unknown is a file this
 * program does not understand, and guessing would turn it into wrongly sorted keys.
 *
 * Source: NumPy, numpy/lib/format.py, "Format Version 1.0" to "3.0" of its module documentation. */
#include "src/files/npy.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "kernels/base/status.h"

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { VERSION_BYTES = 8, ALIGNMENT = 64 };

/* What is left of the dictionary's text. */
struct text {
    const char *path;
    const char *begin, *at, *end;
};

/* A piece of it: a string without its quotes. */
struct word {
    const char *begin;
    size_t length;
};

/* The dictionary's entries, and which of them were there. */
struct dictionary {
    bool has_descr, has_fortran_order, has_shape;
    hsort_type type;
    bool swapped;
    int64_t count;
};

hsort_status npy_header_bytes(const char *path, const unsigned char *head, size_t bytes, size_t *header_bytes)
{
    if (bytes == 0)
        return status_fail(HSORT_FORMAT, "%s: is empty, not even a .npy header", path);
    if (bytes < sizeof magic || memcmp(head, magic, sizeof magic) != 0)
        return status_fail(HSORT_FORMAT, "%s: is no .npy file: it does not begin with \\x93NUMPY", path);
    if (bytes < VERSION_BYTES)
        return status_fail(HSORT_FORMAT, "%s: .npy header cut off after %zu bytes", path, bytes);
    const unsigned major = head[6], minor = head[7];
    if (major < 1 || major > 3 || minor != 0)
        return status_fail(HSORT_FORMAT, "%s: .npy version %u.%u is unknown; 1.0, 2.0 and 3.0 can be read",
                           path, major, minor);

    const size_t length_bytes = major == 1 ? 2 : 4;
    if (bytes < VERSION_BYTES + length_bytes)
        return status_fail(HSORT_FORMAT, "%s: .npy header cut off after %zu bytes", path, bytes);
    uint32_t dict_bytes = 0;
    for (size_t i = 0; i < length_bytes; i++)
        dict_bytes |= (uint32_t)head[VERSION_BYTES + i] << (8 * i);
    if (dict_bytes > NPY_DICT_MAX)
        return status_fail(HSORT_FORMAT, "%s: .npy header claims %" PRIu32 " bytes; at most %d make sense",
                           path, dict_bytes, NPY_DICT_MAX);
    *header_bytes = VERSION_BYTES + length_bytes + dict_bytes;
    return HSORT_OK;
}

/* Fail where the text is not what it must be. */
static hsort_status expected(const struct text *text, const char *what)
{
    return status_fail(HSORT_FORMAT, "%s: bad .npy header: %s expected at character %td", text->path, what,
                       text->at - text->begin);
}

/* Copy a word for an error's text: short, and without bytes that would upset a terminal. */
static const char *printable(struct word word, char buffer[static 32])
{
    size_t length = word.length < 28 ? word.length : 28;
    for (size_t i = 0; i < length; i++)
        buffer[i] = word.begin[i] >= ' ' && word.begin[i] <= '~' ? word.begin[i] : '?';
    strcpy(buffer + length, word.length > length ? "..." : "");
    return buffer;
}

static void skip_space(struct text *text)
{
    while (text->at < text->end && memchr(" \t\n\r\f", *text->at, 5))
        text->at++;
}

/* Step over white space and, if it comes next, over `token`. */
static bool take(struct text *text, const char *token)
{
    const size_t length = strlen(token);
    skip_space(text);
    if ((size_t)(text->end - text->at) < length || memcmp(text->at, token, length) != 0)
        return false;
    text->at += length;
    return true;
}

/* Backslashes are refused: nothing that is accepted needs one. */
static hsort_status take_string(struct text *text, struct word *word)
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return expected(text, "a string");
    const char quote = *text->at++;
    word->begin = text->at;
    while (text->at < text->end && *text->at != quote && *text->at != '\\' && *text->at != '\n')
        text->at++;
    if (text->at == text->end || *text->at != quote)
        return expected(text, "a closing quote");
    word->length = (size_t)(text->at - word->begin);
    text->at++;
    return HSORT_OK;
}

static bool is(struct word word, const char *name)
{
    return word.length == strlen(name) && memcmp(word.begin, name, word.length) == 0;
}

/* '<u4' and its like: byte order, kind, bytes. */
static hsort_status parse_descr(struct text *text, struct dictionary *dictionary)
{
    struct word descr = {0};
    char shown[32];
    if (take(text, "[") || take(text, "("))
        return status_fail(HSORT_FORMAT, "%s: has a structured dtype; only plain keys can be sorted",
                           text->path);
    TRY(take_string(text, &descr));
    if (descr.length >= 3 && (descr.begin[0] == '<' || descr.begin[0] == '>')) {
        dictionary->swapped = descr.begin[0] == '>';
        const struct word width = {descr.begin + 2, descr.length - 2};
#define X(name, short_name, bytes)                              \
    if (descr.begin[1] == short_name[0] && is(width, #bytes)) { \
        dictionary->type = name;                                \
        return HSORT_OK;                                        \
    }
        HSORT_TYPE_LIST(X)
#undef X
    }
    return status_fail(HSORT_FORMAT,
                       "%s: dtype '%s' is no key type; <u4 <i4 <f4 <u8 <i8 <f8 and their > forms are",
                       text->path, printable(descr, shown));
}

static hsort_status parse_fortran_order(struct text *text)
{
    // Either value will do: in one dimension, the only shape accepted, both orders are the same.
    return take(text, "True") || take(text, "False") ? HSORT_OK : expected(text, "True or False");
}

static hsort_status parse_extent(struct text *text, int64_t *extent)
{
    *extent = 0;
    if (take(text, "-"))
        return status_fail(HSORT_FORMAT, "%s: .npy header with a negative shape", text->path);
    if (text->at == text->end || *text->at < '0' || *text->at > '9')
        return expected(text, "a number");
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

/* A tuple with one number: "(5,)". "(5)" is none in Python. */
static hsort_status parse_shape(struct text *text, struct dictionary *dictionary)
{
    int dimensions = 0;
    bool comma = true;
    if (!take(text, "("))
        return expected(text, "a tuple");
    while (!take(text, ")")) {
        int64_t extent;
        if (!comma)
            return expected(text, "',' or ')'");
        TRY(parse_extent(text, &extent));
        if (dimensions++ == 0)
            dictionary->count = extent;
        comma = take(text, ",");
    }
    if (dimensions == 1 && !comma)
        return expected(text, "a tuple instead of a number in parentheses");
    if (dimensions != 1)
        return status_fail(HSORT_FORMAT, "%s: has %d dimensions; only arrays of one dimension can be sorted",
                           text->path, dimensions);
    return HSORT_OK;
}

static hsort_status parse_entry(struct text *text, struct dictionary *dictionary)
{
    struct word name = {0};
    char shown[32];
    TRY(take_string(text, &name));
    if (!take(text, ":"))
        return expected(text, "':'");
    bool *seen = is(name, "descr")           ? &dictionary->has_descr
                 : is(name, "fortran_order") ? &dictionary->has_fortran_order
                 : is(name, "shape")         ? &dictionary->has_shape
                                             : NULL;
    if (!seen)
        return status_fail(HSORT_FORMAT, "%s: .npy header with an unknown entry '%s'", text->path,
                           printable(name, shown));
    if (*seen)
        return status_fail(HSORT_FORMAT, "%s: .npy header with two entries '%s'", text->path,
                           printable(name, shown));
    *seen = true;
    if (seen == &dictionary->has_descr)
        return parse_descr(text, dictionary);
    if (seen == &dictionary->has_shape)
        return parse_shape(text, dictionary);
    return parse_fortran_order(text);
}

static hsort_status parse_dictionary(struct text *text, struct dictionary *dictionary)
{
    bool comma = true;
    if (!take(text, "{"))
        return expected(text, "'{'");
    while (!take(text, "}")) {
        if (!comma)
            return expected(text, "',' or '}'");
        TRY(parse_entry(text, dictionary));
        comma = take(text, ",");
    }
    skip_space(text);
    if (text->at != text->end)
        return expected(text, "nothing more");

    const char *missing = !dictionary->has_descr           ? "descr"
                          : !dictionary->has_fortran_order ? "fortran_order"
                          : !dictionary->has_shape         ? "shape"
                                                           : NULL;
    if (missing)
        return status_fail(HSORT_FORMAT, "%s: .npy header without an entry '%s'", text->path, missing);
    return HSORT_OK;
}

hsort_status npy_parse(const char *path, const unsigned char *header, size_t header_bytes,
                       struct npy_header *result)
{
    size_t announced = 0;
    TRY(npy_header_bytes(path, header, header_bytes < NPY_HEAD_BYTES ? header_bytes : NPY_HEAD_BYTES,
                         &announced));
    if (header_bytes < announced)
        return status_fail(HSORT_FORMAT, "%s: .npy header cut off after %zu of %zu bytes", path, header_bytes,
                           announced);

    const char *begin = (const char *)header + VERSION_BYTES + (header[6] == 1 ? 2 : 4);
    struct text text = {.path = path, .begin = begin, .at = begin, .end = (const char *)header + announced};
    struct dictionary dictionary = {0};
    TRY(parse_dictionary(&text, &dictionary));
    if (dictionary.count > INT64_MAX / (int64_t)hsort_type_bytes(dictionary.type))
        return status_fail(HSORT_FORMAT,
                           "%s: .npy header with %" PRId64 " keys, more than 64-bit offsets can reach", path,
                           dictionary.count);
    result->type = dictionary.type;
    result->swapped = dictionary.swapped;
    result->count = dictionary.count;
    result->data_offset = (int64_t)announced;
    return HSORT_OK;
}

size_t npy_format(hsort_type type, int64_t count, unsigned char *header, size_t bytes)
{
    static const char *const descr[] = {
#define X(name, short_name, key_bytes) [name] = short_name,
        HSORT_TYPE_LIST(X)
#undef X
    };
    char *text = (char *)header + VERSION_BYTES + 2;
    const size_t room = bytes - VERSION_BYTES - 2;
    int length =
        snprintf(text, room, "{'descr': '<%c%zu', 'fortran_order': False, 'shape': (%" PRId64 ",), }",
                 descr[type][0], hsort_type_bytes(type), count);

    // The keys begin at a multiple of 64 bytes, so that they can be mapped for vector loads.
    const size_t unpadded = VERSION_BYTES + 2 + (size_t)length + 1;
    const size_t total = (unpadded + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(text + length, ' ', total - unpadded);
    header[total - 1] = '\n';
    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (unsigned char)((total - VERSION_BYTES - 2) & 0xff);
    header[9] = (unsigned char)((total - VERSION_BYTES - 2) >> 8);
    return total;
}
