#include "src/command/record_keys.h"
#include <stdio.h>
#include <string.h>
#include "kernels/base/key_width.h"
#include "kernels/base/status.h"
#include "src/command/cli.h"
#include "src/command/report.h"
#include "src/files/number.h"

enum { WORD_ROOM = 256 };

size_t record_field_bytes(const hsort_field *field)
{
    return field->bytes != 0 ? (size_t)field->bytes : hsort_type_bytes(field->type);
}

/* ---- Fields of .npy files ------------------------------------------------------------------------------ */

/* Find the type of numbers with this letter and width, if NumPy and the library both have it. */
static bool find_number_type(const struct npy_field *found, hsort_type *type)
{
#define X(name, short_name, key_bytes)                                                                \
    if (npy_has_dtype(name) && found->kind == short_name[0] && found->bytes == (size_t)(key_bytes)) { \
        *type = name;                                                                                 \
        return true;                                                                                  \
    }
    HSORT_TYPE_LIST(X)
#undef X
    return false;
}

/* Can the library take this dtype of NumPy's as a key? */
static bool is_key_dtype(const struct npy_field *found, hsort_field *field)
{
    field->offset = found->offset;
    field->big_endian = found->order == '>';
    switch (found->kind) {
    case 'f':
    case 'i':
    case 'u':
        return find_number_type(found, &field->type);
    case 'M':
    case 'm':
        field->type = HSORT_I64;
        return true;
    case 'b': // 0 and 1
        field->type = HSORT_U8;
        return found->bytes == 1;
    case 'S':
    case 'V':
        field->bytes = (int)found->bytes;
        field->big_endian = 0;
        return found->bytes >= 1 && found->bytes <= HSORT_KEY_BYTES_MAX;
    default:
        return false;
    }
}

/* Find a column in rows of numbers or strings. With one dimension there is column 0. */
static hsort_status find_column(const struct file_in *file, const char *word, struct npy_field *found)
{
    const struct npy_element *element = &file->element;
    uint64_t column;
    TRY(npy_find_scalar(file->path, element->descr, element->descr_bytes, found));
    if (element->dimensions > 2)
        return status_fail(HSORT_ARGUMENT,
                           "%s: has %d dimensions; --key takes fields of records or columns of two",
                           file->path, element->dimensions);
    if (found->bytes == 0)
        return status_fail(HSORT_ARGUMENT, "%s: has columns of 0 bytes", file->path);
    const uint64_t columns = element->bytes / found->bytes;
    if (!number_parse(word, false, columns - 1, &column))
        return status_fail(HSORT_ARGUMENT, "%s: --key: '%.64s' is not a column; they are 0 to %llu", file->path,
                           word, (unsigned long long)(columns - 1));
    found->offset = (size_t)column * found->bytes;
    return HSORT_OK;
}

static hsort_status find_npy(const struct file_in *file, const char *word, hsort_field *field)
{
    const struct npy_element *element = &file->element;
    struct npy_field found;
    if (element->descr[0] == '[' && element->dimensions == 1)
        TRY(npy_find_field(file->path, element->descr, element->descr_bytes, word, &found));
    else
        TRY(find_column(file, word, &found));
    if (!is_key_dtype(&found, field))
        return status_fail(
            HSORT_ARGUMENT,
            "%s: field '%.64s' has dtype '%s', which is not a key; u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 M8 m8, b1, "
            "S1 to S16 and V1 to V16 are",
            file->path, word, found.dtype);
    return HSORT_OK;
}

/* ---- Places of raw records ----------------------------------------------------------------------------- */

static bool read_raw_type(const char *word, hsort_field *field)
{
    uint64_t bytes;
    const size_t length = strlen(word);
    field->big_endian = length > 0 && word[length - 1] == '>';
    if (strncmp(word, "bytes", 5) == 0) {
        const bool good = number_parse(word + 5, false, HSORT_KEY_BYTES_MAX, &bytes) && bytes > 0;
        field->bytes = good ? (int)bytes : 0;
        return good;
    }
    char name[16]; // the longest is uint128_t
    if (length - (size_t)field->big_endian >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(length - (size_t)field->big_endian), word);
    return cli_parse_type(name, &field->type);
}

/* Read @OFFSET:TYPE. */
static hsort_status read_raw(const char *path, size_t record_bytes, char *word, hsort_field *field)
{
    uint64_t offset;
    char *type = strchr(word, ':');
    if (type)
        *type++ = '\0';
    if (!type || word[0] != '@' || !number_parse(word + 1, false, CLI_RECORD_MOST, &offset) ||
        !read_raw_type(type, field))
        return status_fail(
            HSORT_ARGUMENT,
            "%s: --key: '%.64s%s%.64s' is not a key of a raw record; they are @OFFSET:TYPE, of" RECORD_KEY_TYPES
            ", these with > behind them, bytes1 to bytes16",
            path, word, type ? ":" : "", type ? type : "");
    field->offset = (size_t)offset;
    if (field->offset + record_field_bytes(field) > record_bytes)
        return status_fail(HSORT_ARGUMENT,
                           "%s: --key: '%.64s:%.64s' ends behind the record, which has %zu bytes", path, word,
                           type, record_bytes);
    return HSORT_OK;
}

/* ---- The list ------------------------------------------------------------------------------------------ */

/* Take :desc or :asc from the end of a word. */
static hsort_order take_order(char *word)
{
    char *last = strrchr(word, ':');
    const bool descends = last && strcmp(last, ":desc") == 0;
    if (descends || (last && strcmp(last, ":asc") == 0))
        *last = '\0';
    return descends ? HSORT_DESCENDING : HSORT_ASCENDING;
}

/* Read one key. file: NULL for raw records that are not in a file. */
static hsort_status read_key(const char *begin, size_t length, const char *path, const struct file_in *file,
                             size_t record_bytes, hsort_field *field)
{
    char word[WORD_ROOM];
    *field = (hsort_field){.offset = 0};
    if (length == 0 || length >= sizeof word)
        return status_fail(HSORT_ARGUMENT, "%s: --key: a key is %s", path,
                           length == 0 ? "empty" : "too long");
    memcpy(word, begin, length);
    word[length] = '\0';
    field->order = take_order(word);
    return file && file->element.descr ? find_npy(file, word, field)
                                       : read_raw(path, record_bytes, word, field);
}

static hsort_status parse_keys(const char *text, const char *path, const struct file_in *file,
                               size_t record_bytes, struct record_keys *keys)
{
    *keys = (struct record_keys){.text = text};
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        if (keys->count == HSORT_FIELDS_MAX)
            return status_fail(HSORT_ARGUMENT, "%s: --key: more than %d keys", path, HSORT_FIELDS_MAX);
        hsort_field *field = &keys->fields[keys->count++];
        TRY(read_key(at, length, path, file, record_bytes, field));
        keys->key_bytes += (int)record_field_bytes(field);
        at += length;
        if (*at == '\0')
            break;
    }
    if (keys->key_bytes > HSORT_KEY_BYTES_MAX)
        return status_fail(HSORT_ARGUMENT, "%s: --key: the keys have %d bytes together; at most %d are allowed", path,
                           keys->key_bytes, HSORT_KEY_BYTES_MAX);
    return HSORT_OK;
}

hsort_status record_keys_parse(const char *text, const struct file_in *file, struct record_keys *keys)
{
    if (file->element.bytes > CLI_RECORD_MOST)
        return status_fail(HSORT_ARGUMENT, "%s: has records of %zu bytes; %d can be sorted", file->path,
                           file->element.bytes, CLI_RECORD_MOST);
    if (file->is_key)
        return status_fail(HSORT_ARGUMENT, "%s: has plain keys: leave out --key",
                           file->path);
    return parse_keys(text, file->path, file, file->element.bytes, keys);
}

hsort_status record_keys_parse_raw(const char *text, const char *path, size_t record_bytes,
                                   struct record_keys *keys)
{
    return parse_keys(text, path, NULL, record_bytes, keys);
}

struct record_keys record_keys_bare(hsort_type type, hsort_order order)
{
    return (struct record_keys){
        .fields = {{.type = type, .order = order}}, .count = 1, .key_bytes = (int)hsort_type_bytes(type)};
}

void record_keys_point(const struct record_keys *keys, const void *records, size_t record_bytes,
                       struct key_field *fields)
{
    int shift = 8 * keys->key_bytes;
    for (int i = 0; i < keys->count; i++) {
        const hsort_field *field = &keys->fields[i];
        const int bytes = (int)record_field_bytes(field);
        shift -= 8 * bytes;
        fields[i] = (struct key_field){.from = (const char *)records + field->offset,
                                       .stride = record_bytes,
                                       .bytes = bytes,
                                       .big_endian = field->big_endian || field->bytes != 0,
                                       .shift = shift};
        if (field->bytes == 0)
            fields[i].map = keymap_make(field->type, field->order);
        else
            fields[i].map.descending = field->order == HSORT_DESCENDING;
    }
}

struct engine_elements record_keys_elements(const struct record_keys *keys, const void *records,
                                            size_t record_bytes, int64_t first, int64_t count)
{
    struct engine_elements elements = {.count = count,
                                       .part = {records},
                                       .part_bytes = {record_bytes},
                                       .field_count = keys ? keys->count : 0,
                                       .first = first,
                                       .step = 1};
    if (keys)
        record_keys_point(keys, records, record_bytes, elements.field);
    return elements;
}

struct engine_elements record_keys_strict(const struct record_keys *keys, const void *records,
                                          size_t record_bytes, int64_t count)
{
    struct engine_elements elements = record_keys_elements(keys, records, record_bytes, 0, count);
    elements.step = 0;
    return elements;
}

/* ---- Texts --------------------------------------------------------------------------------------------- */

static const char *bytes_text(key_code bits, int bytes, char *text)
{
    int kept = bytes, length = 0;
    while (kept > 1 && (uint8_t)(bits >> 8 * (bytes - kept)) == 0)
        kept--;
    for (int i = 0; i < kept; i++) {
        const unsigned byte = (uint8_t)(bits >> 8 * (bytes - 1 - i));
        const bool plain = byte > ' ' && byte < 0x7f && byte != '\\';
        length +=
            snprintf(text + length, (size_t)(RECORD_FIELD_TEXT - length), plain ? "%c" : "\\x%02x", byte);
    }
    return text;
}

const char *record_field_text(const struct record_keys *keys, int which, key_code code, char *text)
{
    struct key_field placed[HSORT_FIELDS_MAX];
    record_keys_point(keys, NULL, 0, placed);
    const struct key_field *field = &placed[which];
    const key_code all = ~(key_code)0 >> (128 - 8 * field->bytes), bits = code >> field->shift & all;
    if (keys->fields[which].bytes == 0)
        return report_key_text(keys->fields[which].type, keymap_decode(field->map, bits), text);
    return bytes_text(field->map.descending ? all ^ bits : bits, field->bytes, text);
}
