/* Writes JSON to stdout, member by member. It knows only what the reports need: objects, arrays, texts, numbers. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>

struct json {
    bool comma; /* the next member needs one before it */
};

/* `name` is NULL in an array and for the outermost object. */
void json_open(struct json *json, const char *name, char bracket);
void json_close(struct json *json, char bracket);

/* Write a text in quotes; NULL is null. File names may hold any bytes: bytes that are no UTF-8 become U+FFFD, which
 * every reader accepts, unlike a lone surrogate. */
void json_text(struct json *json, const char *name, const char *text);
void json_integer(struct json *json, const char *name, int64_t value);
void json_real(struct json *json, const char *name, double value); /* finite */
void json_bool(struct json *json, const char *name, bool value);

/* Is a member known? If not, put null for it. */
bool json_known(struct json *json, const char *name, bool known);

#endif
