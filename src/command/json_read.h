/* Reads JSON that lies in memory, in place: a value is the part of the text that it is written as, and is looked into when asked.
 * So a file of any size takes no memory but its own.
 *
 *     text     {"ranks": 2, "phases": {"read": 0.5}}
 *     member   "phases"  ->  {"read": 0.5}                 of the object: a walk over its members
 *
 * json_parse() comes first: it says whether the text is JSON at all; the others then find no surprise, and of a value of
 * another kind than they ask for nothing. Nothing here is collective. */
#ifndef JSON_READ_H
#define JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The one value that a text [length] is; NONE: it is not JSON, and *where is the first byte at which that shows. Objects and arrays
 * are nested JSON_DEPTH deep at most. */
enum { JSON_DEPTH = 32 };
struct json_value json_parse(const char *text, size_t length, size_t *where);

/* The values of an array or of an object, one by one; name may be NULL, and is NONE in an array. False: there are no more. */
struct json_walk json_begin(const struct json_value *value);
bool json_next(struct json_walk *walk, struct json_value *name, struct json_value *value);

/* The member of an object; NONE where there is none. */
struct json_value json_member(const struct json_value *object, const char *name);

/* What a value says; where it is of another kind, `otherwise`. */
double json_number(const struct json_value *value, double otherwise);

/* to [bytes] = a text in UTF-8, cut where it does not fit, never inside of a character; "" where it is none. Returns to. */
const char *json_string(const struct json_value *value, char *to, size_t bytes);

bool json_is(const struct json_value *value, const char *text);

#endif
