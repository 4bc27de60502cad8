/* The texts about runs: any text is accepted or not, and what was accepted is written again as the same text. An input is a letter,
 * and then: 'p', a plan without its last line, because no mutation finds a checksum; 'l', a line of a journal without its checksum;
 * any other letter, the contents of journals. */
#include <inttypes.h>
#include "kernels/base/checksum.h"
#include "src/checkpoint/run_journal.h"
#include "tests/fuzz/fuzz.h"

static const struct line_seeds seeds = {.runs = 1, .segments = 2, .counted = 3, .dealt = 4};

/* A new text [*text_bytes]: `data` and its checksum, from `hash` on, in this form. */
static char *with_sum(const uint8_t *data, size_t bytes, uint64_t hash, const char *form, size_t *text_bytes)
{
    char sum[40];
    const size_t sum_bytes = (size_t)snprintf(sum, sizeof sum, form, checksum_add(hash, data, bytes));
    char *text = malloc(bytes + sum_bytes);
    PROMISE(text != NULL);
    memcpy(text, data, bytes);
    memcpy(text + bytes, sum, sum_bytes);
    *text_bytes = bytes + sum_bytes;
    return text;
}

static void feed_plan(const uint8_t *data, size_t bytes)
{
    struct written_plan plan;
    char again[WRITTEN_PLAN_ROOM];
    size_t text_bytes;
    char *text = with_sum(data, bytes, CHECKSUM_START, "checksum %016" PRIx64 "\n", &text_bytes);
    if (written_plan_parse(text, text_bytes, &plan)) {
        PROMISE(written_plan_format(&plan, again) == text_bytes && memcmp(again, text, text_bytes) == 0);
        PROMISE(plan.elements >= 0 && plan.element_bytes > 0 && plan.part_elements > 0 &&
                plan.fence_elements > 0);
        PROMISE(strlen(plan.checkpoint) < sizeof plan.checkpoint);
    }
    free(text);
}

static void feed_line(const uint8_t *data, size_t bytes, uint64_t hash)
{
    struct run_line line;
    char again[RUN_LINE_ROOM];
    size_t text_bytes;
    char *text = with_sum(data, bytes, hash, " %016" PRIx64, &text_bytes);
    if (run_line_parse(text, text_bytes, &seeds, &line)) {
        PROMISE(run_line_format(&line, &seeds, again) == text_bytes + 1 &&
                memcmp(again, text, text_bytes) == 0);
        PROMISE(line.facts.is_made == (line.kind == RUN_LINE || line.kind == SEGMENT_LINE) &&
                line.facts.in_order <= 1);
        PROMISE(line.note.is_made == (line.kind == COUNTED_LINE || line.kind == DEALT_LINE));
    }
    free(text);
}

static void feed_journals(const uint8_t *data, size_t bytes)
{
    struct run_facts facts[6] = {{.is_made = 0}};
    struct run_plan plan = {.elements = 25,
                            .element_bytes = 8,
                            .part_elements = 10,
                            .parts = 3,
                            .runs = facts,
                            .segments = facts + 3};
    char *text = fuzz_copy(data, bytes);
    struct run_note notes[3] = {{.is_made = 0}};
    PROMISE(run_journals_last(text, bytes, &seeds, OUTPUT_LINE) >= 0);
    run_journals_notes(text, bytes, &seeds, DEALT_LINE, notes, 3);
    run_journals_apply(text, bytes, &seeds, &plan);
    for (int64_t part = 0; part < 3; part++)
        PROMISE(!plan.runs[part].is_made || plan.runs[part].count == (uint64_t)plan_part_count(&plan, part));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    status_clear();
    if (bytes > 0 && data[0] == 'p') {
        feed_plan(data + 1, bytes - 1);
    } else if (bytes > 0 && data[0] == 'l') {
        feed_line(data + 1, bytes - 1, seeds.runs);
        feed_line(data + 1, bytes - 1, seeds.segments);
        feed_line(data + 1, bytes - 1, seeds.counted);
        feed_line(data + 1, bytes - 1, seeds.dealt);
    } else {
        feed_journals(data, bytes);
    }
    PROMISE(status_text()[0] == '\0');
    return 0;
}
