/* Texts that are JSON, and texts that are not; what is read from them. */
#include <math.h>
#include "src/command/json_read.h"
#include "tests/support/ranks.h"

static void test_texts(void)
{
    static const struct {
        const char *text;
        enum json_kind kind;
        size_t where; /* at which it shows that it is none */
    } cases[] = {
        {"0", JSON_NUMBER, 0},
        {" \t\r\n-1.5e+10 ", JSON_NUMBER, 0},
        {"\"\"", JSON_TEXT, 0},
        {"\"a\\\"b\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"", JSON_TEXT, 0},
        {"true", JSON_BOOL, 0},
        {"false", JSON_BOOL, 0},
        {"null", JSON_NULL, 0},
        {"[]", JSON_ARRAY, 0},
        {"{}", JSON_OBJECT, 0},
        {"[1, [2, {\"a\": 3}], \"\", null]", JSON_ARRAY, 0},
        {"{\"a\": {\"b\": [1, 2]}, \"c\": \"}\"}", JSON_OBJECT, 0},
        {"", JSON_NONE, 0},
        {" ", JSON_NONE, 1},
        {"nul", JSON_NONE, 3},
        {"nulL", JSON_NONE, 3},
        {"01", JSON_NONE, 1},
        {"-", JSON_NONE, 1},
        {"1.", JSON_NONE, 2},
        {"1e", JSON_NONE, 2},
        {".5", JSON_NONE, 0},
        {"+1", JSON_NONE, 0},
        {"NaN", JSON_NONE, 0},
        {"1 2", JSON_NONE, 2},
        {"[1,]", JSON_NONE, 3},
        {"[1", JSON_NONE, 2},
        {"[1}", JSON_NONE, 2},
        {"[,1]", JSON_NONE, 1},
        {"{\"a\"}", JSON_NONE, 4},
        {"{\"a\": }", JSON_NONE, 6},
        {"{a: 1}", JSON_NONE, 1},
        {"{\"a\": 1,}", JSON_NONE, 8},
        {"\"a", JSON_NONE, 2},
        {"\"\\x\"", JSON_NONE, 3},
        {"\"\\u12g4\"", JSON_NONE, 5},
        {"\"a\nb\"", JSON_NONE, 2},
        {"'a'", JSON_NONE, 0},
        {"{\"a\": 1} x", JSON_NONE, 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t where = 0, length = strlen(cases[i].text);
        char *text = malloc(length + 1); // so that a byte behind the text is found to be read
        memcpy(text, cases[i].text, length);
        const struct json_value value = json_parse(text, length, &where);
        CHECK(value.kind == cases[i].kind, "%s: kind %d", cases[i].text, (int)value.kind);
        CHECK(value.kind != JSON_NONE || where == cases[i].where, "%s: byte %zu, not %zu", cases[i].text,
              where, cases[i].where);
        free(text);
    }
}

/* As deep as may be, and one deeper. */
static void test_depth(void)
{
    for (int depth = JSON_DEPTH; depth <= JSON_DEPTH + 1; depth++) {
        char text[2 * JSON_DEPTH + 3] = "";
        size_t where;
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        CHECK((json_parse(text, 2 * (size_t)depth, &where).kind == JSON_ARRAY) == (depth == JSON_DEPTH),
              "%d deep", depth);
    }
}

static struct json_value parsed(const char *text)
{
    size_t where;
    return json_parse(text, strlen(text), &where);
}

static void test_members(void)
{
    const struct json_value object =
        parsed("{\"a\": 1, \"b\": [10, 20.5, -3e2], \"c\": {\"a\": true}, \"long\": \"x\", \"a\": 2}");
    const struct json_value list = json_member(&object, "b"), inner = json_member(&object, "c");
    const struct json_value a = json_member(&object, "a"), none = json_member(&object, "d"),
                            of_list = json_member(&list, "a");
    struct json_walk walk = json_begin(&list);
    struct json_value value, name;
    double sum = 0;
    int count = 0;
    CHECK(json_number(&a, 0) == 1 && none.kind == JSON_NONE && of_list.kind == JSON_NONE, "members");
    CHECK(json_member(&inner, "a").kind == JSON_BOOL && json_member(&none, "a").kind == JSON_NONE,
          "members of members");
    while (json_next(&walk, &name, &value)) {
        sum += json_number(&value, NAN);
        count += name.kind == JSON_NONE;
    }
    CHECK(sum == 10 + 20.5 - 300 && count == 3, "a list of %d, %g together", count, sum);
    walk = json_begin(&object);
    for (count = 0; json_next(&walk, &name, &value); count++)
        CHECK(name.kind == JSON_TEXT, "a member without a name");
    CHECK(count == 5 && json_number(&list, 7) == 7, "%d members", count);
    char digits[65] = "";
    memset(digits, '1', sizeof digits - 1);
    const struct json_value too_long = parsed(digits), just = parsed(digits + 1);
    CHECK(json_number(&too_long, 7) == 7 && json_number(&just, 7) > 1e62, "numbers of %zu digits",
          strlen(digits));
    walk = json_begin(&a);
    CHECK(!json_next(&walk, NULL, &value), "a walk over a number");
}

static void test_strings(void)
{
    static const struct {
        const char *text, *read;
        size_t room;
    } cases[] = {
        {"\"plain\"", "plain", 64},
        {"\"a\\\"\\\\\\/\\n\\t\"", "a\"\\/\n\t", 64},
        {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac", 64},
        {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", 64},
        {"\"\\ud83d\"", "\xef\xbf\xbd", 64},
        {"\"\\ude00x\"", "\xef\xbf\xbdx", 64},
        {"\"\\ud83d\\u0041\"",
         "\xef\xbf\xbd"
         "A",
         64},
        {"\"\\ud800\\ue000\"", "\xef\xbf\xbd\xee\x80\x80", 64}, // right beside what halves can be
        {"\"\\udc00\\udc00\"", "\xef\xbf\xbd\xef\xbf\xbd", 64},
        {"\"\\u0800\\ud800\\udc00\"", "\xe0\xa0\x80\xf0\x90\x80\x80", 64}, // the first of 3 bytes, and of 4
        {"\"\xc3\xa9\xe2\x82\xac\"", "\xc3\xa9\xe2\x82\xac", 64},
        {"\"abcdefgh\"", "abcd", 8},
        {"\"abc\xe2\x82\xac\xe2\x82\xac\"", "abc", 8}, // a character is never cut
        {"12", "", 64},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char read[64];
        const struct json_value value = parsed(cases[i].text);
        CHECK(strcmp(json_string(&value, read, cases[i].room), cases[i].read) == 0, "%s: '%s'", cases[i].text,
              read);
    }
}

int main(void)
{
    test_texts();
    test_depth();
    test_members();
    test_strings();
    return check_failures > 0;
}
