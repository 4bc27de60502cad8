/* The texts about runs: what is written is read back the same. A text that is wrong in any byte, line or number is no plan and no line.
 * Checksums are computed here again, from their definition, so that texts can be made that are wrong only in what they
 * say. The form of both texts is checked, too, because texts that an older build has left must be readable. */
#include <inttypes.h>
#include "src/checkpoint/run_journal.h"
#include "tests/support/check.h"

static uint64_t seed;

static uint64_t add(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hash ^= ((const unsigned char *)bytes)[i];
        hash *= 1099511628211u;
    }
    return hash;
}

/* ---- Plans --------------------------------------------------------------------------------------------- */

static const char good_plan[] = "hypersort runs 1\n"
                                "id 00000000000000ff\n"
                                "elements 1000000\n"
                                "element_bytes 8\n"
                                "part_elements 250000\n"
                                "fence_elements 4096\n"
                                "checkpoint /data/kept there\n";

static size_t put_plan(const char *lines, char *text)
{
    return (size_t)sprintf(text, "%schecksum %016llx\n", lines,
                           (unsigned long long)add(14695981039346656037u, lines, strlen(lines)));
}

/* text = `good_plan` with the line replaced that begins with `line`. */
static size_t edit_plan(const char *line, const char *replacement, char *text)
{
    char lines[512];
    const char *at = strstr(good_plan, line), *end = strchr(at, '\n') + 1;
    sprintf(lines, "%.*s%s\n%s", (int)(at - good_plan), good_plan, replacement, end);
    return put_plan(lines, text);
}

static void test_plan(void)
{
    static const struct {
        const char *line, *replacement;
    } edits[] = {
        {"hypersort", "hypersort runs 2"},
        {"hypersort", "hypersort runs  1"},
        {"id", "id ff"},
        {"id", "id 00000000000000FF"},
        {"id", "id 0x000000000000ff"},
        {"elements", "elements -1"},
        {"elements", "elements +1000000"},
        {"elements", "elements 01000000"},
        {"elements", "elements 9223372036854775808"},
        {"element_bytes", "element_bytes 0"},
        {"element_bytes", "element_bytes 8.0"},
        {"part_elements", "part_elements 0"},
        {"part_elements", "part_elements  250000"},
        {"part_elements", "\npart_elements 250000"},
        {"fence_elements", "fence_elements -4096"},
        {"fence_elements", "fence_elements 0"},
        {"fence_elements", "fence_elements"},
        {"checkpoint", "checkpoint"},
        {"checkpoint", "checkpoint /data/kept there\nmore 1"},
    };
    char text[1024], other[1024];
    struct written_plan plan;
    const size_t bytes = put_plan(good_plan, text);
    CHECK(written_plan_parse(text, bytes, &plan), "not taken:\n%s", text);
    CHECK(plan.id == 255 && plan.elements == 1000000 && plan.element_bytes == 8 &&
              plan.part_elements == 250000 && plan.fence_elements == 4096 &&
              strcmp(plan.checkpoint, "/data/kept there") == 0,
          "what it says");
    char again[WRITTEN_PLAN_ROOM];
    CHECK(written_plan_format(&plan, again) == bytes && strcmp(again, text) == 0, "written:\n%s", again);
    for (size_t at = 0; at < bytes * 8; at++) {
        memcpy(other, text, bytes);
        other[at / 8] ^= (char)(1 << at % 8);
        CHECK(!written_plan_parse(other, bytes, &plan), "taken:\n%.*s", (int)bytes, other);
        CHECK(!written_plan_parse(text, at / 8, &plan), "%zu bytes are taken", at / 8);
    }
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const size_t edited = edit_plan(edits[i].line, edits[i].replacement, text);
        CHECK(!written_plan_parse(text, edited, &plan), "taken:\n%s", text);
    }
    const size_t edited = edit_plan("checkpoint", "checkpoint ", text);
    CHECK(written_plan_parse(text, edited, &plan) && plan.checkpoint[0] == '\0',
          "a checkpoint without a name");
}

/* ---- Lines --------------------------------------------------------------------------------------------- */

static struct run_line random_line(void)
{
    struct run_line line = {.kind = (enum run_line_kind)(check_random(&seed) % RUN_LINE_KINDS),
                            .number = (int64_t)(check_random(&seed) >> (1 + check_random(&seed) % 62))};
    if (line.kind == OUTPUT_LINE || line.kind == DEALING_LINE)
        return line;
    if (line.kind == COUNTED_LINE || line.kind == DEALT_LINE) {
        line.note.is_made = 1;
        for (int i = 0; i < RUN_NOTE_WORDS; i++)
            line.note.word[i] = check_random(&seed) >> check_random(&seed) % 64;
        return line;
    }
    line.facts.is_made = 1;
    line.facts.count = check_random(&seed) >> check_random(&seed) % 63;
    line.facts.fingerprint[0] = check_random(&seed);
    line.facts.fingerprint[1] = check_random(&seed) >> check_random(&seed) % 63;
    line.facts.in_order = check_random(&seed) % 2;
    line.facts.fences = check_random(&seed);
    line.facts.first = (key_code)check_random(&seed) << 64 | check_random(&seed);
    line.facts.last = (key_code)check_random(&seed) << (check_random(&seed) % 64);
    return line;
}

static void test_round_trip(void)
{
    const struct line_seeds seeds = {check_random(&seed), check_random(&seed), check_random(&seed),
                                     check_random(&seed)};
    const struct line_seeds others[] = {{seeds.runs + 1, seeds.segments, seeds.counted, seeds.dealt},
                                        {seeds.runs, seeds.segments + 1, seeds.counted, seeds.dealt},
                                        {seeds.runs, seeds.segments, seeds.counted + 1, seeds.dealt},
                                        {seeds.runs, seeds.segments, seeds.counted, seeds.dealt + 1}};
    const struct run_line line = random_line();
    static const int own_seeds[] = {[RUN_LINE] = 0,     [SEGMENT_LINE] = 1, [OUTPUT_LINE] = 0,
                                    [DEALING_LINE] = 1, [COUNTED_LINE] = 2, [DEALT_LINE] = 3};
    const int own = own_seeds[line.kind];
    struct run_line read;
    char text[RUN_LINE_ROOM], other[RUN_LINE_ROOM];
    const size_t bytes = run_line_format(&line, &seeds, text) - 1;
    CHECK(text[bytes] == '\n' && strlen(text) == bytes + 1, "%s", text);
    CHECK(run_line_parse(text, bytes, &seeds, &read) && read.kind == line.kind &&
              read.number == line.number && memcmp(&read.facts, &line.facts, sizeof read.facts) == 0 &&
              memcmp(&read.note, &line.note, sizeof read.note) == 0,
          "%s", text);
    for (int other_seed = 0; other_seed < 4; other_seed++)
        CHECK(run_line_parse(text, bytes, &others[other_seed], &read) == (other_seed != own), "another seed %d: %s",
              other_seed, text);
    for (size_t at = 0; at < bytes * 8; at++) {
        memcpy(other, text, bytes);
        other[at / 8] ^= (char)(1 << at % 8);
        CHECK(!run_line_parse(other, bytes, &seeds, &read), "taken: %.*s", (int)bytes, other);
        CHECK(!run_line_parse(text, at / 8, &seeds, &read), "%zu bytes are taken of %s", at / 8, text);
    }
    CHECK(!run_line_parse(text, bytes + 1, &seeds, &read), "with a newline");
}

/* What all builds write. */
static const char good_line[] = "run 7 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 "
                                "00000000000000000000000000000005 ffffffffffffffffffffffffffffffff";

static void test_form(void)
{
    static const char *const wrong[] = {
        "run 7",
        "run -7 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff x",
        "run 07 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff",
        "run 7 -250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff",
        "run 7 250000 ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff",
        "run 7 250000 00ff00ff00ff00ff 0123456789abcdef 2 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff",
        "run 7 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 5 ffffffffffffffffffffffffffffffff",
        "run 7 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "run 7 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005",
        "row 7 250000 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff",
        "dealing",
        "dealing 1 1",
        "dealt 1 1 2 3 4 5 6 7 8 9 a b c d",
        "dealt 1 1 2 3 4 5 6 7 8 9 a b c d e f",
        "dealt 1 1 2 3 4 5 6 7 8 9 a b c d 0e",
        "counted 1 1 2 3 4 5 6 7 8 9 a b c d E",
        "counter 1",
        "output",
        "output x",
        "output 1 1",
        "output +1",
        "segment 9223372036854775808 1 00ff00ff00ff00ff 0123456789abcdef 1 0000000000000009 00000000000000000000000000000005 "
        "ffffffffffffffffffffffffffffffff",
        "",
    };
    const struct written_plan plan = {255, 1000000, 8, 250000, 4096, "/data/kept"};
    const uint64_t words[] = {255, 1000000, 8, 250000, 4096}, output[] = {1, 77};
    const struct line_seeds seeds = line_seeds_make(&plan, output, 2);
    CHECK(seeds.runs == add(14695981039346656037u, words, sizeof words) &&
              seeds.segments == add(seeds.runs, output, sizeof output),
          "seeds");
    struct run_line line;
    char text[512];
    int bytes = sprintf(text, "%s %016" PRIx64, good_line, add(seeds.runs, good_line, strlen(good_line)));
    CHECK(run_line_parse(text, (size_t)bytes, &seeds, &line), "not taken: %s", text);
    CHECK(line.kind == RUN_LINE && line.number == 7 && line.facts.count == 250000 &&
              line.facts.in_order == 1 && line.facts.fences == 9 && line.facts.first == 5 && line.facts.last == ~(key_code)0 &&
              line.facts.is_made == 1,
          "what it says");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int kind = 0; kind < 2; kind++) {
            bytes = sprintf(text, "%s %016" PRIx64, wrong[i],
                            add(kind ? seeds.segments : seeds.runs, wrong[i], strlen(wrong[i])));
            CHECK(!run_line_parse(text, (size_t)bytes, &seeds, &line), "taken: %s", text);
        }
}

/* Lines among others, in any order, and of numbers that the plan does not have. */
static void test_apply(void)
{
    struct run_facts facts[6];
    struct run_plan plan = {.elements = 25,
                            .element_bytes = 8,
                            .part_elements = 10,
                            .parts = 3,
                            .runs = facts,
                            .segments = facts + 3};
    const struct line_seeds seeds = {1, 2, 3, 4};
    const struct run_note none = {.is_made = 0};
    const struct {
        struct run_line line;
        bool counts;
    } lines[] = {
        {{RUN_LINE, 2, {.is_made = 1, .count = 5, .in_order = 1}, none}, true},
        {{RUN_LINE, 3, {.is_made = 1, .count = 5}, none}, false},
        {{RUN_LINE, -1, {.is_made = 1, .count = 10}, none}, false},
        {{RUN_LINE, 1, {.is_made = 1, .count = 9}, none}, false},
        {{SEGMENT_LINE, 0, {.is_made = 1, .count = 10}, none}, true},
        {{SEGMENT_LINE, INT64_MAX, {.is_made = 1, .count = 10}, none}, false},
        {{OUTPUT_LINE, 4, {.is_made = 0}, none}, false},
        {{OUTPUT_LINE, 3, {.is_made = 0}, none}, false},
        {{COUNTED_LINE, 1, {.is_made = 0}, {1, {7}}}, true},
        {{DEALT_LINE, 2, {.is_made = 0}, {1, {8}}}, true},
        {{DEALT_LINE, 3, {.is_made = 0}, {1, {9}}}, false},
        {{DEALT_LINE, -1, {.is_made = 0}, {1, {9}}}, false},
        {{DEALING_LINE, 5, {.is_made = 0}, none}, false},
    };
    char text[4096] = "\n\nnot a line\n";
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        run_line_format(&lines[i].line, &seeds, text + strlen(text));
    memset(facts, 0, sizeof facts);
    text[strlen(text) - 1] = '\0'; // the last newline
    run_journals_apply(text, strlen(text), &seeds, &plan);
    CHECK(run_journals_last(text, strlen(text), &seeds, OUTPUT_LINE) == 4, "the output");
    CHECK(run_journals_last(text, strlen(text), &seeds, DEALING_LINE) == 5, "the set of outputs");
    CHECK(run_journals_last(NULL, 0, &seeds, OUTPUT_LINE) == 0, "no output");
    for (int kind = COUNTED_LINE; kind <= DEALT_LINE; kind++) {
        struct run_note notes[3] = {none, none, none};
        run_journals_notes(text, strlen(text), &seeds, (enum run_line_kind)kind, notes, 3);
        for (int piece = 0; piece < 3; piece++)
            CHECK(notes[piece].is_made == (piece == (kind == DEALT_LINE ? 2 : 1)), "piece %d", piece);
        CHECK(notes[kind == DEALT_LINE ? 2 : 1].word[0] == (kind == DEALT_LINE ? 8 : 7), "its note");
    }
    for (int64_t part = 0; part < 3; part++) {
        CHECK(plan.runs[part].is_made == (part == 2), "run %d", (int)part);
        CHECK(plan.segments[part].is_made == (part == 0), "segment %d", (int)part);
    }
    CHECK(plan_part_count(&plan, 2) == 5 && plan_part_count(&plan, 1) == 10, "parts");
}

int main(void)
{
    seed = check_seed();
    printf("seed %llu\n", (unsigned long long)seed);
    test_plan();
    for (int i = 0; i < 50; i++)
        test_round_trip();
    test_form();
    test_apply();
    return check_failures > 0;
}
