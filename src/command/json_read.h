/* Reads JSON that lies in memory, in place: a value is the part of the text in which it is written, and is parsed when it is asked for.
 * So a file of any size takes no memory but its own.
 *
 *     text     {"ranks": 2, "phases": {"read": 0.5}}
 *     member   "phases"  ->  {"read": 0.5}                 of the object: a walk over its members
 *
 * json_parse() comes first and says whether the text is JSON at all. The other functions rely on that, and find nothing in a value of
 * another kind than they ask for. Nothing here is collective. */
#ifndef JSON_READ_H
#define JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

enum json_kind { JSON_NONE, JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json_value {
    enum json_kind kind;
    const char *text; /* [length] as it is written; borrowed */
    size_t length;
};

/* A walk over an array or an object. */
struct json_walk {
    const char *at, *end;
    bool has_names;
};

/* The one value that a text [length] holds; NONE: it is not JSON, and *where is the first byte that shows it. Objects and arrays
 * are nested JSON_DEPTH deep at most. */
enum { JSON_DEPTH = 32 };
struct json_value json_parse(const char *text, size_t length, size_t *where);

/* Walk over the values of an array or of an object, one by one; name may be NULL, and is NONE in an array. False: there are no more. */
struct json_walk json_begin(const struct json_value *value);
bool json_next(struct json_walk *walk, struct json_value *name, struct json_value *value);

/* The member of an object; NONE if there is none of that name. */
struct json_value json_member(const struct json_value *object, const char *name);

/* The number that a value is; `otherwise` if it is of another kind. */
double json_number(const struct json_value *value, double otherwise);

/* to [bytes] = a text in UTF-8, cut if it does not fit, but never inside a character; "" if the value is no text. Returns to. */
const char *json_string(const struct json_value *value, char *to, size_t bytes);

bool json_is(const struct json_value *value, const char *text);

#endif
