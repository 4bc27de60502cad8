#include "src/command/json_read.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- is it JSON ---------------------------------------------------------------------------------------- */

struct json_cursor {
    const char *at, *end;
};

static void skip_blanks(struct json_cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\r' || *c->at == '\t'))
        c->at++;
}

static bool take_byte(struct json_cursor *c, char byte)
{
    if (c->at == c->end || *c->at != byte)
        return false;
    c->at++;
    return true;
}

static bool take_literal(struct json_cursor *c, const char *word)
{
    while (*word && take_byte(c, *word))
        word++;
    return *word == '\0';
}

static bool take_json_digits(struct json_cursor *c)
{
    const char *first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > first;
}

static bool take_number(struct json_cursor *c)
{
    (void)take_byte(c, '-');
    if (!take_byte(c, '0') && !take_json_digits(c))
        return false;
    if (take_byte(c, '.') && !take_json_digits(c))
        return false;
    if (!take_byte(c, 'e') && !take_byte(c, 'E'))
        return true;
    if (!take_byte(c, '+'))
        (void)take_byte(c, '-');
    return take_json_digits(c);
}

static int hex_digit(char byte)
{
    return byte >= '0' && byte <= '9'   ? byte - '0'
           : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
           : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                        : -1;
}

static bool take_escape(struct json_cursor *c)
{
    if (c->at == c->end)
        return false;
    const char kind = *c->at++;
    for (int digit = 0; kind == 'u' && digit < 4; digit++, c->at++)
        if (c->at == c->end || hex_digit(*c->at) < 0)
            return false;
    return kind == 'u' || (kind != '\0' && strchr("\"\\/bfnrt", kind) != NULL);
}

/* Take a text, from its first quote on. */
static bool take_string(struct json_cursor *c)
{
    if (!take_byte(c, '"'))
        return false;
    while (c->at < c->end && *c->at != '"') {
        if ((unsigned char)*c->at < ' ')
            return false;
        if (*c->at++ == '\\' && !take_escape(c))
            return false;
    }
    return take_byte(c, '"');
}

static bool take_value(struct json_cursor *c, int depth);

/* Take an array or an object, from its first bracket on. */
static bool take_members(struct json_cursor *c, int depth, bool has_names)
{
    const char close = has_names ? '}' : ']';
    c->at++;
    skip_blanks(c);
    if (take_byte(c, close))
        return true;
    do {
        skip_blanks(c);
        if (has_names) {
            if (!take_string(c))
                return false;
            skip_blanks(c);
            if (!take_byte(c, ':'))
                return false;
        }
        if (!take_value(c, depth))
            return false;
        skip_blanks(c);
    } while (take_byte(c, ','));
    return take_byte(c, close);
}

static bool take_value(struct json_cursor *c, int depth)
{
    skip_blanks(c);
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '{':
    case '[':
        return depth > 0 && take_members(c, depth - 1, *c->at == '{');
    case '"':
        return take_string(c);
    case 't':
        return take_literal(c, "true");
    case 'f':
        return take_literal(c, "false");
    case 'n':
        return take_literal(c, "null");
    default:
        return take_number(c);
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

static enum json_kind kind_by_first(char first)
{
    return first == '{'                   ? JSON_OBJECT
           : first == '['                 ? JSON_ARRAY
           : first == '"'                 ? JSON_TEXT
           : first == 't' || first == 'f' ? JSON_BOOL
           : first == 'n'                 ? JSON_NULL
                                          : JSON_NUMBER;
}

/* The value that begins here, behind blanks; NONE: no value begins here. */
static struct json_value next_value(struct json_cursor *c, int depth)
{
    skip_blanks(c);
    const char *first = c->at;
    if (!take_value(c, depth))
        return (struct json_value){.kind = JSON_NONE};
    return (struct json_value){kind_by_first(*first), first, (size_t)(c->at - first)};
}

struct json_value json_parse(const char *text, size_t length, size_t *where)
{
    struct json_cursor c = {text, text + length};
    const struct json_value value = next_value(&c, JSON_DEPTH);
    if (value.kind != JSON_NONE)
        skip_blanks(&c);
    *where = (size_t)(c.at - text);
    return value.kind != JSON_NONE && c.at == c.end ? value : (struct json_value){.kind = JSON_NONE};
}

struct json_walk json_begin(const struct json_value *value)
{
    if (value->kind != JSON_ARRAY && value->kind != JSON_OBJECT)
        return (struct json_walk){NULL, NULL, false};
    return (struct json_walk){value->text + 1, value->text + value->length - 1, value->kind == JSON_OBJECT};
}

bool json_next(struct json_walk *walk, struct json_value *name, struct json_value *value)
{
    struct json_cursor c = {walk->at, walk->end};
    struct json_value found = {.kind = JSON_NONE};
    if (!walk->at)
        return false;
    skip_blanks(&c);
    (void)take_byte(&c, ',');
    if (walk->has_names) {
        found = next_value(&c, 1);
        skip_blanks(&c);
        (void)take_byte(&c, ':');
    }
    if (name)
        *name = found;
    *value = next_value(&c, JSON_DEPTH);
    walk->at = c.at;
    return value->kind != JSON_NONE;
}

/* Is this text, as it is written, the word? Names here hold nothing that needs an escape. */
bool json_is(const struct json_value *value, const char *text)
{
    const size_t length = strlen(text);
    return value->kind == JSON_TEXT && value->length == length + 2 &&
           memcmp(value->text + 1, text, length) == 0;
}

struct json_value json_member(const struct json_value *object, const char *name)
{
    struct json_walk walk = json_begin(object);
    struct json_value found, value;
    while (object->kind == JSON_OBJECT && json_next(&walk, &found, &value))
        if (json_is(&found, name))
            return value;
    return (struct json_value){.kind = JSON_NONE};
}

double json_number(const struct json_value *value, double otherwise)
{
    char text[64];
    if (value->kind != JSON_NUMBER || value->length >= sizeof text)
        return otherwise;
    memcpy(text, value->text, value->length);
    text[value->length] = '\0';
    const double number = strtod(text, NULL);
    return isfinite(number) ? number : otherwise;
}

/* ---- texts --------------------------------------------------------------------------------------------- */

/* The number that \uXXXX stands for; digits: from its first X on. */
static unsigned escape_number(const char *digits)
{
    unsigned number = 0;
    for (int digit = 0; digit < 4; digit++)
        number = number << 4 | (unsigned)hex_digit(digits[digit]);
    return number;
}

/* Put a character into `to`. Returns its length in bytes. */
static size_t put_utf8(unsigned code, char *to)
{
    const size_t more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    to[0] = (char)(first[more] | code >> 6 * more);
    for (size_t i = 1; i <= more; i++)
        to[i] = (char)(0x80 | (code >> 6 * (more - i) & 0x3f));
    return more + 1;
}

/* to = the character at *from, which may be written as an escape; *from moves behind it. A lone surrogate becomes U+FFFD. Returns its
 * length in bytes. */
static size_t take_character(const char **from, const char *end, char *to)
{
    const char *at = *from;
    if (*at != '\\') {
        *from = at + 1;
        to[0] = *at; // bytes of UTF-8 follow each other
        return 1;
    }
    static const char escapes[] = "bfnrt", meant[] = "\b\f\n\r\t";
    const char *plain = strchr(escapes, at[1]);
    *from = at + 2;
    if (at[1] != 'u') {
        to[0] = plain ? meant[plain - escapes] : at[1];
        return 1;
    }
    unsigned code = escape_number(at + 2);
    *from = at + 6;
    const bool high = code >= 0xd800 && code < 0xdc00,
               pair = high && end - *from >= 6 && (*from)[0] == '\\' && (*from)[1] == 'u';
    const unsigned low = pair ? escape_number(*from + 2) : 0;
    if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
        *from += 6;
    } else if (code >= 0xd800 && code < 0xe000) {
        code = 0xfffd;
    }
    return put_utf8(code, to);
}

const char *json_string(const struct json_value *value, char *to, size_t bytes)
{
    size_t length = 0;
    if (value->kind == JSON_TEXT) {
        const char *from = value->text + 1, *end = value->text + value->length - 1;
        while (from < end && length + 4 < bytes)
            length += take_character(&from, end, to + length);
        while (from < end && length > 0 &&
               ((unsigned char)*from & 0xc0) == 0x80) { // cut inside a character
            length--;
            if (((unsigned char)to[length] & 0xc0) == 0xc0)
                break;
        }
    }
    to[length] = '\0';
    return to;
}
