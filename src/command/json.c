#include "src/command/json.h"
#include <inttypes.h>
#include <stdio.h>

static void start_member(struct json *json, const char *name)
{
    if (json->comma)
        printf(", ");
    if (name)
        printf("\"%s\": ", name);
    json->comma = true;
}

void json_open(struct json *json, const char *name, char bracket)
{
    start_member(json, name);
    putchar(bracket);
    json->comma = false;
}

void json_close(struct json *json, char bracket)
{
    putchar(bracket);
    json->comma = true;
}

/* Bytes of the UTF-8 character that starts at `text`; 0 if none starts there (RFC 3629: no overlong form, no
 * surrogate, nothing above U+10FFFF). */
static int utf8_length(const unsigned char *text)
{
    const unsigned char lead = text[0];
    const int length = lead < 0x80   ? 1
                       : lead < 0xc2 ? 0
                       : lead < 0xe0 ? 2
                       : lead < 0xf0 ? 3
                       : lead < 0xf5 ? 4
                                     : 0;
    // The range of the second byte is narrower after four of the leads.
    const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (int i = 1; i < length; i++)
        if (text[i] < (i == 1 ? least : 0x80) || text[i] > (i == 1 ? most : 0xbf))
            return 0; // also at the ending zero
    return length;
}

void json_text(struct json *json, const char *name, const char *text)
{
    if (!json_known(json, name, text != NULL))
        return;
    start_member(json, name);
    putchar('"');
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        const int length = utf8_length(at);
        if (length == 0)
            printf("\\ufffd");
        else if (*at < 0x20)
            printf("\\u%04x", *at);
        else
            printf("%s%.*s", *at == '"' || *at == '\\' ? "\\" : "", length, (const char *)at);
        at += length > 0 ? length : 1;
    }
    putchar('"');
}

void json_integer(struct json *json, const char *name, int64_t value)
{
    start_member(json, name);
    printf("%" PRId64, value);
}

void json_real(struct json *json, const char *name, double value)
{
    const bool whole = value > -1e15 && value < 1e15 && value == (double)(int64_t)value; // as bytes are
    start_member(json, name);
    printf(whole ? "%.0f" : "%.9g", value);
}

void json_bool(struct json *json, const char *name, bool value)
{
    start_member(json, name);
    printf(value ? "true" : "false");
}

bool json_known(struct json *json, const char *name, bool known)
{
    if (known)
        return true;
    start_member(json, name);
    printf("null");
    return false;
}
