/* The header of a .npy file: magic, version, the length of a text, and the text, a Python dictionary.
 * Version 1.0 has a 2-byte length, 2.0 and 3.0 a 4-byte one (little-endian). The text is Latin-1, of 3.0 UTF-8.
 *
 *      byte 0      6 7 8     10                                                                   127 128
 *      \x93NUMPY   1 0 118 0 {'descr': '<u8', 'fortran_order': False, 'shape': (1000,), } spaces  \n  keys
 *
 * The three entries are taken as Python takes them (any order, either quote, any white space, a last comma), and
 * anything else is refused: a file with a missing, doubled or unknown entry is one that this program does not
 * understand, and guessing would turn it into wrongly sorted keys.
 *
 * Source: NumPy, numpy/lib/format.py, "Format Version 1.0" to "3.0" of its module documentation. */
#include "src/files/npy.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/base/lesser.h"
#include "kernels/base/status.h"

static const unsigned char magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { VERSION_BYTES = 8, ALIGNMENT = 64 };

/* The dictionary's entries, and which of them were there. */
struct dictionary {
    bool has_descr, has_fortran_order, has_shape;
    bool any; /* a dtype and a shape of any kind will do; else plain keys in one dimension */
    bool is_key;
    hsort_type type;
    bool swapped;
    const char *descr, *descr_end; /* the dtype's text */
    size_t item_bytes;
    bool is_fortran;
    int dimensions;
    int64_t extent[NPY_DIMENSIONS];
};

hsort_status npy_header_bytes(const char *path, const unsigned char *head, size_t bytes, size_t *header_bytes)
{
    if (bytes == 0)
        return status_fail(HSORT_FORMAT, "%s: is empty, not even a .npy header", path);
    if (bytes < sizeof magic || memcmp(head, magic, sizeof magic) != 0)
        return status_fail(HSORT_FORMAT, "%s: is not a .npy file: it does not begin with \\x93NUMPY", path);
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

bool npy_has_dtype(hsort_type type)
{
    return type != HSORT_U128 && type != HSORT_BF16;
}

/* Is this the dtype of plain keys, such as '<u4'? A type of one byte has no byte order: '|u1'. */
static bool read_key_type(struct npy_word descr, struct dictionary *dictionary)
{
    if (descr.length < 3 || (descr.begin[0] != '<' && descr.begin[0] != '>' && descr.begin[0] != '|'))
        return false;
    const struct npy_word width = {descr.begin + 2, descr.length - 2};
#define X(name, short_name, bytes)                                                              \
    if (npy_has_dtype(name) && descr.begin[1] == short_name[0] && npy_word_is(width, #bytes) && \
        (descr.begin[0] != '|' || (bytes) == 1)) {                                              \
        dictionary->type = name;                                                                \
        dictionary->is_key = true;                                                              \
        dictionary->swapped = descr.begin[0] == '>' && (bytes) > 1;                             \
    }
    HSORT_TYPE_LIST(X)
#undef X
    return dictionary->is_key;
}

/* Times, truth values and short strings are sorted as a column, which --key 0 names. Is this dtype one of them? */
static bool is_sorted_by_column(const struct npy_text *text, struct npy_word descr)
{
    struct npy_field field;
    const hsort_status status =
        npy_find_scalar(text->path, descr.begin - 1, descr.length + 2, &field); // with its quotes
    if (status != HSORT_OK) {
        status_clear();
        return false;
    }
    const bool is_string = field.kind == 'S' || field.kind == 'V';
    return field.kind == 'M' || field.kind == 'm' || field.kind == 'b' ||
           (is_string && field.bytes >= 1 && field.bytes <= HSORT_KEY_BYTES_MAX);
}

static hsort_status parse_key_descr(struct npy_text *text, struct dictionary *dictionary)
{
    struct npy_word descr = {0};
    char shown[32];
    if (npy_take(text, "[") || npy_take(text, "("))
        return status_fail(
            HSORT_FORMAT,
            "%s: has a structured dtype, where keys are numbers; sort, check, select and plan take it with --key NAME",
            text->path);
    TRY(npy_take_string(text, &descr));
    if (!read_key_type(descr, dictionary))
        return status_fail(
            HSORT_FORMAT,
            "%s: dtype '%s' is not a key type; |u1 |i1 <u2 <i2 <f2 <u4 <i4 <f4 <u8 <i8 <f8 and their > "
            "forms are%s",
            text->path, npy_printable(descr, shown),
            is_sorted_by_column(text, descr) ? "; --key 0 sorts it" : "");
    dictionary->item_bytes = hsort_type_bytes(dictionary->type);
    return HSORT_OK;
}

static hsort_status parse_descr(struct npy_text *text, struct dictionary *dictionary)
{
    if (!dictionary->any)
        return parse_key_descr(text, dictionary);
    npy_take(text, ""); // white space
    dictionary->descr = text->at;
    TRY(npy_take_dtype(text, 0, &dictionary->item_bytes));
    dictionary->descr_end = text->at;
    if (dictionary->descr[0] != '[')
        read_key_type((struct npy_word){dictionary->descr + 1, (size_t)(text->at - dictionary->descr) - 2},
                      dictionary);
    return HSORT_OK;
}

static hsort_status parse_fortran_order(struct npy_text *text, struct dictionary *dictionary)
{
    // In one dimension both orders are the same.
    dictionary->is_fortran = npy_take(text, "True");
    return dictionary->is_fortran || npy_take(text, "False") ? HSORT_OK : npy_expected(text, "True or False");
}

/* Take a tuple of numbers: "(5,)". "(5)" is no tuple in Python. */
static hsort_status parse_shape(struct npy_text *text, struct dictionary *dictionary)
{
    bool comma = true;
    if (!npy_take(text, "("))
        return npy_expected(text, "a tuple");
    while (!npy_take(text, ")")) {
        int64_t extent;
        if (!comma)
            return npy_expected(text, "',' or ')'");
        TRY(npy_take_extent(text, &extent));
        if (dictionary->dimensions < NPY_DIMENSIONS)
            dictionary->extent[dictionary->dimensions] = extent;
        dictionary->dimensions++;
        comma = npy_take(text, ",");
    }
    const int dimensions = dictionary->dimensions;
    if (dimensions == 1 && !comma)
        return npy_expected(text, "a tuple instead of a number in parentheses");
    if (dimensions != 1 && !dictionary->any)
        return status_fail(
            HSORT_FORMAT, "%s: has %d dimensions, where keys have one%s", text->path, dimensions,
            dimensions != 2          ? ""
            : dictionary->is_fortran ? "; two are taken with --key COLUMN, but in C order, which "
                                       "numpy.ascontiguousarray() makes"
                                     : "; sort, check and select take two with --key COLUMN");
    if (dimensions < 1 || dimensions > NPY_DIMENSIONS)
        return status_fail(HSORT_FORMAT, "%s: has %d dimensions; 1 to %d can be read", text->path, dimensions,
                           NPY_DIMENSIONS);
    return HSORT_OK;
}

static hsort_status parse_entry(struct npy_text *text, struct dictionary *dictionary)
{
    struct npy_word name = {0};
    char shown[32];
    TRY(npy_take_string(text, &name));
    if (!npy_take(text, ":"))
        return npy_expected(text, "':'");
    bool *seen = npy_word_is(name, "descr")           ? &dictionary->has_descr
                 : npy_word_is(name, "fortran_order") ? &dictionary->has_fortran_order
                 : npy_word_is(name, "shape")         ? &dictionary->has_shape
                                                      : NULL;
    if (!seen)
        return status_fail(HSORT_FORMAT, "%s: .npy header with an unknown entry '%s'", text->path,
                           npy_printable(name, shown));
    if (*seen)
        return status_fail(HSORT_FORMAT, "%s: .npy header with two entries '%s'", text->path,
                           npy_printable(name, shown));
    *seen = true;
    if (seen == &dictionary->has_descr)
        return parse_descr(text, dictionary);
    if (seen == &dictionary->has_shape)
        return parse_shape(text, dictionary);
    return parse_fortran_order(text, dictionary);
}

static hsort_status parse_dictionary(struct npy_text *text, struct dictionary *dictionary)
{
    bool comma = true;
    if (!npy_take(text, "{"))
        return npy_expected(text, "'{'");
    while (!npy_take(text, "}")) {
        if (!comma)
            return npy_expected(text, "',' or '}'");
        TRY(parse_entry(text, dictionary));
        comma = npy_take(text, ",");
    }
    npy_take(text, ""); // white space
    if (text->at != text->end)
        return npy_expected(text, "nothing more");

    const char *missing = !dictionary->has_descr           ? "descr"
                          : !dictionary->has_fortran_order ? "fortran_order"
                          : !dictionary->has_shape         ? "shape"
                                                           : NULL;
    if (missing)
        return status_fail(HSORT_FORMAT, "%s: .npy header without an entry '%s'", text->path, missing);
    return HSORT_OK;
}

/* Measure what all items with one first index take together. */
static hsort_status measure_element(const char *path, const struct dictionary *dictionary,
                                    size_t *element_bytes)
{
    size_t bytes = dictionary->item_bytes;
    for (int i = 1; i < dictionary->dimensions; i++) {
        if (dictionary->extent[i] > NPY_ELEMENT_MAX ||
            bytes * (size_t)dictionary->extent[i] > NPY_ELEMENT_MAX)
            return status_fail(HSORT_FORMAT, "%s: .npy header with rows of more than %d bytes", path,
                               NPY_ELEMENT_MAX);
        bytes *= (size_t)dictionary->extent[i];
    }
    if (bytes == 0)
        return status_fail(HSORT_FORMAT, "%s: .npy header with elements of 0 bytes", path);
    if (dictionary->is_fortran && dictionary->dimensions > 1)
        return status_fail(HSORT_FORMAT,
                           "%s: has %d dimensions in Fortran order; only rows in C order can be moved, which "
                           "numpy.ascontiguousarray() makes",
                           path, dictionary->dimensions);
    *element_bytes = bytes;
    return HSORT_OK;
}

static hsort_status parse(const char *path, const unsigned char *header, size_t header_bytes, bool any,
                          struct npy_header *result)
{
    size_t announced = 0, element_bytes = 0;
    TRY(npy_header_bytes(path, header, header_bytes < NPY_HEAD_BYTES ? header_bytes : NPY_HEAD_BYTES,
                         &announced));
    if (header_bytes < announced)
        return status_fail(HSORT_FORMAT, "%s: .npy header cut off after %zu of %zu bytes", path, header_bytes,
                           announced);

    const char *begin = (const char *)header + VERSION_BYTES + (header[6] == 1 ? 2 : 4);
    struct npy_text text = {
        .path = path, .begin = begin, .at = begin, .end = (const char *)header + announced};
    struct dictionary dictionary = {.any = any};
    TRY(parse_dictionary(&text, &dictionary));
    TRY(measure_element(path, &dictionary, &element_bytes));
    if (dictionary.extent[0] > INT64_MAX / (int64_t)element_bytes)
        return status_fail(HSORT_FORMAT,
                           "%s: .npy header with %" PRId64 " %s, more than 64-bit offsets can reach", path,
                           dictionary.extent[0], any ? "elements" : "keys");
    *result = (struct npy_header){
        .is_key = dictionary.is_key && dictionary.dimensions == 1,
        .type = dictionary.type,
        .swapped = dictionary.swapped,
        .count = dictionary.extent[0],
        .data_offset = (int64_t)announced,
        .element = {.bytes = element_bytes, .major = header[6], .dimensions = dictionary.dimensions}};
    memcpy(result->element.extent, dictionary.extent, sizeof dictionary.extent);
    if (any) {
        result->element.descr = dictionary.descr;
        result->element.descr_bytes = (size_t)(dictionary.descr_end - dictionary.descr);
    }
    return HSORT_OK;
}

hsort_status npy_parse(const char *path, const unsigned char *header, size_t header_bytes,
                       struct npy_header *result)
{
    return parse(path, header, header_bytes, false, result);
}

hsort_status npy_parse_any(const char *path, const unsigned char *header, size_t header_bytes,
                           struct npy_header *result)
{
    return parse(path, header, header_bytes, true, result);
}

char *npy_copy_descr(const struct npy_element *element, size_t *bytes)
{
    char *copy = malloc(2 * element->descr_bytes + 1), *to = copy;
    for (size_t i = 0; copy && i < element->descr_bytes; i++) {
        const unsigned char byte = (unsigned char)element->descr[i];
        const bool is_latin = byte >= 0x80 && element->major < 3;
        if (is_latin)
            *to++ = (char)(0xc0 | byte >> 6);
        *to++ = (char)(is_latin ? 0x80 | (byte & 0x3f) : byte);
    }
    *bytes = (size_t)(to - copy);
    return copy;
}

static bool is_ascii(const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

/* Put magic, version and length before a text, and blanks behind it. Returns the whole length. */
static size_t finish_header(int major, size_t length, unsigned char *header)
{
    // The keys begin at a multiple of 64 bytes, so that they can be mapped for vector loads.
    const size_t before = VERSION_BYTES + (major == 1 ? 2 : 4), unpadded = before + length + 1;
    const size_t total = bytes_rounded_up(unpadded, ALIGNMENT);
    memset(header + before + length, ' ', total - unpadded);
    header[total - 1] = '\n';
    memcpy(header, magic, sizeof magic);
    header[6] = (unsigned char)major;
    header[7] = 0;
    for (size_t i = VERSION_BYTES; i < before; i++)
        header[i] = (unsigned char)((total - before) >> 8 * (i - VERSION_BYTES) & 0xff);
    return total;
}

size_t npy_format_any(const struct npy_element *element, int64_t count, unsigned char *header, size_t bytes)
{
    char other[32];
    const int other_bytes = snprintf(other, sizeof other, "'|V%zu'", element->bytes);
    const bool has_descr = element->descr != NULL;
    const size_t descr_bytes = has_descr ? element->descr_bytes : (size_t)other_bytes;
    // Version 1.0 has Latin-1 and 16 bits for the length, 2.0 has 32 bits, 3.0 also has UTF-8.
    const bool is_utf8 = has_descr && (element->major == 3 || !is_ascii(element->descr, descr_bytes));
    const int major = is_utf8 ? 3 : descr_bytes + NPY_HEADER_ROOM > UINT16_MAX - ALIGNMENT ? 2 : 1;
    char *text = (char *)header + VERSION_BYTES + (major == 1 ? 2 : 4), *at = text;
    char *end = (char *)header + bytes;
    at += snprintf(at, (size_t)(end - at), "{'descr': ");
    memcpy(at, has_descr ? element->descr : other, descr_bytes);
    at += descr_bytes;
    at += snprintf(at, (size_t)(end - at), ", 'fortran_order': False, 'shape': (%" PRId64 ",", count);
    for (int i = 1; i < element->dimensions; i++)
        at += snprintf(at, (size_t)(end - at), " %" PRId64 "%s", element->extent[i],
                       i + 1 < element->dimensions ? "," : "");
    at += snprintf(at, (size_t)(end - at), "), }");
    return finish_header(major, (size_t)(at - text), header);
}

size_t npy_format(hsort_type type, int64_t count, unsigned char *header, size_t bytes)
{
    char descr[16];
    const size_t width = hsort_type_bytes(type);
    const int length =
        snprintf(descr, sizeof descr, "'%c%c%zu'", width == 1 ? '|' : '<', hsort_type_name(type)[0], width);
    const struct npy_element element = {
        .bytes = width, .descr = descr, .descr_bytes = (size_t)length, .major = 1, .dimensions = 1};
    return npy_format_any(&element, count, header, bytes);
}
