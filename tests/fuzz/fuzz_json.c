/* Reading JSON, and the pages that are made from it: any text is JSON or not, walks end, what is read from a text is UTF-8 as far as
 * the text was, and a page is made from whatever JSON there is, with nothing in it that begins an element of its own. An input is a
 * letter and then a report ('r') or a trace ('t'). */
#include "src/command/page_run.h"
#include "src/command/page_timeline.h"
#include "tests/fuzz/fuzz.h"

static void walk_all(const struct json_value *value, int depth)
{
    struct json_walk walk = json_begin(value);
    struct json_value name, member;
    char text[64];
    PROMISE(depth <= JSON_DEPTH);
    PROMISE(strlen(json_string(value, text, sizeof text)) < sizeof text);
    (void)json_number(value, 0);
    while (json_next(&walk, &name, &member)) {
        PROMISE(member.text >= value->text && member.text + member.length <= value->text + value->length);
        PROMISE((name.kind == JSON_TEXT) == (value->kind == JSON_OBJECT));
        walk_all(&member, depth + 1);
    }
}

static void make_page(const struct json_value *value, bool is_run)
{
    struct page page = {.text = NULL};
    page_begin(&page, "page");
    if (is_run && is_run_report(value))
        page_run(&page, value);
    else if (!is_run && is_trace(value))
        PROMISE(page_timeline(&page, value) == HSORT_OK);
    page_end(&page);
    PROMISE(page_status(&page) == HSORT_OK && strlen(page.text) == page.length);
    PROMISE(!strstr(page.text, "<script") && !strstr(page.text, "<img"));
    page_free(&page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t where = 0;
    if (bytes == 0)
        return 0;
    char *text = fuzz_copy(data + 1, bytes - 1);
    const struct json_value value = json_parse(text, bytes - 1, &where);
    PROMISE(where <= bytes - 1);
    if (value.kind != JSON_NONE) {
        walk_all(&value, 0);
        make_page(&value, data[0] == 'r');
    }
    free(text);
    return 0;
}
