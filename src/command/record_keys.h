/* The keys of records, as --key names them: fields of a structured .npy file, columns of a .npy file of two dimensions, places in raw
 * records. Bare keys are records of one field. */
#ifndef RECORD_KEYS_H
#define RECORD_KEYS_H

#include "kernels/engine.h"
#include "src/files/file.h"

/* The types of numbers, each with a blank before it, for texts. */
#define RECORD_KEY_TYPE(name, short_name, bytes) " " short_name
#define RECORD_KEY_TYPES HSORT_TYPE_LIST(RECORD_KEY_TYPE)

struct record_keys {
    const char *text; /* --key, borrowed; NULL: bare keys */
    hsort_field fields[HSORT_FIELDS_MAX];
    int count;
    int key_bytes; /* of all fields */
};

/* Find the keys that `text` names in the elements of a file. Not collective.
 * Errors   HSORT_ARGUMENT: the text names the file, and the field and its dtype if the dtype is wrong. */
hsort_status record_keys_parse(const char *text, const struct file_in *file, struct record_keys *keys);

/* The same for raw records of `record_bytes` bytes; `path` is for texts. */
hsort_status record_keys_parse_raw(const char *text, const char *path, size_t record_bytes,
                                   struct record_keys *keys);

/* The key of bare keys. Not collective. */
struct record_keys record_keys_bare(hsort_type type, hsort_order order);

/* fields [keys->count] = the key fields in `records`, for engine_ops.inspect_elements() and .make_codes(). Not collective. */
void record_keys_point(const struct record_keys *keys, const void *records, size_t record_bytes,
                       struct key_field *fields);

/* Records [count] to look at, numbered by their places from `first` on; keys NULL: their order is not looked at. Not
 * collective. */
struct engine_elements record_keys_elements(const struct record_keys *keys, const void *records,
                                            size_t record_bytes, int64_t first, int64_t count);

/* The same, to find keys that occur twice: all records have the same number, so numbers do not rise between equal keys, even if the second
 * key lies in the next piece or on the next rank. Not collective. */
struct engine_elements record_keys_strict(const struct record_keys *keys, const void *records,
                                          size_t record_bytes, int64_t count);

/* Bytes of a field. */
size_t record_field_bytes(const hsort_field *field);

/* text [RECORD_FIELD_TEXT] = field `which` of a key, taken from its code, where record_keys_point() says that it lies; the text has no
 * blanks. A number is as report_key_text() has it. Of bytes, zeros at the end are left out, but the first byte never is; a byte that is no
 * printable character, a blank or a backslash is \xNN, and any other byte is itself. Returns text. Not collective. */
enum { RECORD_FIELD_TEXT = 4 * HSORT_KEY_BYTES_MAX + 1 };
const char *record_field_text(const struct record_keys *keys, int which, key_code code, char *text);

#endif
