#include "src/command/bench.h"
#include "src/command/report.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const yardstick_words[ENGINE_YARDSTICKS] = {
#define X(name, word) word,
    ENGINE_YARDSTICK_LIST(X)
#undef X
};

/* ---- Figures ------------------------------------------------------------------------------------------- */

struct bench_time bench_time_of(double *seconds, int repeats)
{
    qsort(seconds, (size_t)repeats, sizeof *seconds, report_compare);
    const double median = (seconds[(repeats - 1) / 2] + seconds[repeats / 2]) / 2;
    return (struct bench_time){repeats, median, seconds[0], seconds[repeats - 1]};
}

double bench_ratio(const struct bench_row *row)
{
    double fastest = 0;
    for (int y = 0; y < ENGINE_YARDSTICKS; y++) {
        const struct bench_time *time = &row->yardsticks[y];
        if (time->repeats > 0 && (fastest == 0 || time->median < fastest))
            fastest = time->median;
    }
    return row->time.median > 0 ? fastest / row->time.median : 0;
}

static double gkeys_per_second(const struct bench_row *row)
{
    return row->time.median > 0 ? (double)row->keys / row->time.median / 1e9 : 0;
}

/* The figure that a mixture is judged by. */
static double figure_of(const struct bench_row *row)
{
    const double ratio = bench_ratio(row);
    return ratio > 0 ? ratio : gkeys_per_second(row);
}

static int compare_rows(const void *a, const void *b)
{
    const double x = figure_of(a), y = figure_of(b);
    return (x > y) - (x < y);
}

struct bench_mixtures bench_mixtures_of(const struct bench_input *input, struct bench_row *rows)
{
    const int count = input->mixtures;
    struct bench_mixtures mixtures = {.word = input->word, .count = count};
    qsort(rows, (size_t)count, sizeof *rows, compare_rows);
    mixtures.row = rows[0];
    mixtures.by_ratio = bench_ratio(&rows[0]) > 0;
    mixtures.worst = figure_of(&rows[0]);
    mixtures.tenth = figure_of(&rows[(count - 1) / 10]);
    mixtures.median = (figure_of(&rows[(count - 1) / 2]) + figure_of(&rows[count / 2])) / 2;
    for (int i = 0; i < count; i++)
        mixtures.wrong += !rows[i].right;
    return mixtures;
}

static const char *result_word(bool right)
{
    return right ? "right" : "WRONG";
}

/* ---- Tables: for the eye, and for Markdown -------------------------------------------------------------- */

/* What is printed between two columns, before the first and behind the last. */
static const char *bar(const struct bench_report *report)
{
    return report->form == BENCH_MARKDOWN ? "| " : "";
}

static bool has_yardsticks(const struct bench_report *report)
{
    bool any = false;
    for (int y = 0; y < ENGINE_YARDSTICKS; y++)
        any = any || report->yardsticks[y];
    return any;
}

static void print_table_head(const struct bench_report *report)
{
    const char *const b = bar(report);
    printf("%s%-8s %s%-4s %s%-20s %s%13s %s%11s %s%11s %s%11s %s%8s ", b, "memory", b, "type", b, "input", b,
           "keys", b, "ms", b, "min", b, "max", b, "Gkeys/s");
    for (int y = 0; y < ENGINE_YARDSTICKS; y++)
        if (report->yardsticks[y])
            printf("%s%11s ", b, yardstick_words[y]);
    if (has_yardsticks(report))
        printf("%s%6s ", b, "ratio");
    printf("%s%s%s\n", b, "result", report->form == BENCH_MARKDOWN ? " |" : "");
    if (report->form != BENCH_MARKDOWN)
        return;
    printf("|---|---|---|--:|--:|--:|--:|--:|");
    for (int y = 0; y < ENGINE_YARDSTICKS; y++)
        printf("%s", report->yardsticks[y] ? "--:|" : "");
    printf("%s---|\n", has_yardsticks(report) ? "--:|" : "");
}

static void print_place(const struct bench_report *report, const struct bench_row *row, const char *input)
{
    const char *const b = bar(report);
    printf("%s%-8s %s%-4s %s%-20s %s%13" PRId64 " ", b, bench_memory_word(row->memory), b,
           hsort_type_name(row->type), b, input, b, row->keys);
}

/* Print a number, or blanks if it is not known. */
static void print_cell(const struct bench_report *report, int width, int digits, double value, bool known)
{
    printf("%s", bar(report));
    if (known)
        printf("%*.*f ", width, digits, value);
    else
        printf("%*s ", width, "");
}

static void print_table_row(const struct bench_report *report, const struct bench_row *row)
{
    print_place(report, row, row->input);
    print_cell(report, 11, 4, row->time.median * 1e3, true);
    print_cell(report, 11, 4, row->time.least * 1e3, true);
    print_cell(report, 11, 4, row->time.most * 1e3, true);
    print_cell(report, 8, 3, gkeys_per_second(row), true);
    for (int y = 0; y < ENGINE_YARDSTICKS; y++)
        if (report->yardsticks[y])
            print_cell(report, 11, 4, row->yardsticks[y].median * 1e3, row->yardsticks[y].repeats > 0);
    if (has_yardsticks(report))
        print_cell(report, 6, 2, bench_ratio(row), bench_ratio(row) > 0);
    printf("%s%s%s\n", bar(report), result_word(row->right), report->form == BENCH_MARKDOWN ? " |" : "");
}

/* Print a row that is a text, in one cell of Markdown: the cells behind it may be missing. */
static void print_table_text(const struct bench_report *report, const struct bench_row *row,
                             const char *input, const char *text)
{
    print_place(report, row, input);
    printf("%s%s%s\n", bar(report), text, report->form == BENCH_MARKDOWN ? " |" : "");
}

static void print_table_mixtures(const struct bench_report *report, const struct bench_mixtures *m)
{
    char text[200];
    snprintf(text, sizeof text, "worst %.3f (%s), 10th percentile %.3f, median %.3f %s; %s", m->worst,
             m->row.input, m->tenth, m->median, m->by_ratio ? "x the fastest other" : "Gkeys/s",
             result_word(m->wrong == 0));
    print_table_text(report, &m->row, m->word, text);
}

/* ---- CSV: columns are the same for every build and number of ranks -------------------------------------- */

static void print_csv_head(void)
{
    printf("ranks,memory,exchange,path,type,input,keys,ms,gkeys_per_s");
    for (int phase = 0; phase < REPORT_KEY_PHASES; phase++)
        printf(",%s_ms", report_phase_names[phase]);
    printf(",moved_bytes,result,repeats,ms_min,ms_max");
    for (int y = 0; y < ENGINE_YARDSTICKS; y++)
        printf(",%s_ms,%s_ms_min,%s_ms_max", yardstick_words[y], yardstick_words[y], yardstick_words[y]);
    printf(",ratio\n");
}

static void print_csv_row(const struct bench_row *row)
{
    printf("%d,%s,%s,%s,%s,%s,%" PRId64 ",%.4f,%.3f", row->ranks, bench_memory_word(row->memory),
           row->exchange, row->path, hsort_type_name(row->type), row->input, row->keys,
           row->time.median * 1e3, gkeys_per_second(row));
    for (int phase = 0; phase < REPORT_KEY_PHASES; phase++)
        printf(",%.4f", row->stats.seconds[phase] * 1e3);
    printf(",%" PRId64 ",%s,%d,%.4f,%.4f", row->stats.moved_bytes, result_word(row->right), row->time.repeats,
           row->time.least * 1e3, row->time.most * 1e3);
    for (int y = 0; y < ENGINE_YARDSTICKS; y++) {
        const struct bench_time *time = &row->yardsticks[y];
        if (time->repeats > 0)
            printf(",%.4f,%.4f,%.4f", time->median * 1e3, time->least * 1e3, time->most * 1e3);
        else
            printf(",,,");
    }
    if (bench_ratio(row) > 0)
        printf(",%.3f\n", bench_ratio(row));
    else
        printf(",\n");
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_time(struct json *json, const char *name, const struct bench_time *time)
{
    json_open(json, name, '{');
    json_real(json, "median", time->median);
    json_real(json, "min", time->least);
    json_real(json, "max", time->most);
    json_close(json, '}');
}

/* Begin a row with the members that say which one it is. */
static void put_place(struct json *json, const struct bench_row *row, const char *input)
{
    json_open(json, NULL, '{');
    json_text(json, "memory", bench_memory_word(row->memory));
    json_text(json, "type", hsort_type_name(row->type));
    json_integer(json, "keys", row->keys);
    json_text(json, "input", input);
}

static void put_row(struct json *json, const struct bench_row *row)
{
    put_place(json, row, row->input);
    json_text(json, "exchange", row->exchange);
    json_text(json, "path", row->path);
    put_time(json, "seconds", &row->time);
    json_real(json, "gkeys_per_s", gkeys_per_second(row));
    json_open(json, "phases", '{');
    for (int phase = 0; phase < REPORT_KEY_PHASES; phase++)
        json_real(json, report_phase_names[phase], row->stats.seconds[phase]);
    json_close(json, '}');
    json_integer(json, "moved_bytes", row->stats.moved_bytes);
    json_open(json, "yardsticks", '{');
    for (int y = 0; y < ENGINE_YARDSTICKS; y++)
        if (row->yardsticks[y].repeats > 0)
            put_time(json, yardstick_words[y], &row->yardsticks[y]);
    json_close(json, '}');
    if (json_known(json, "ratio", bench_ratio(row) > 0))
        json_real(json, "ratio", bench_ratio(row));
    json_bool(json, "right", row->right);
    json_close(json, '}');
}

static void put_mixtures(struct json *json, const struct bench_mixtures *m)
{
    put_place(json, &m->row, m->word);
    json_open(json, "mixtures", '{');
    json_integer(json, "count", m->count);
    json_text(json, "figure", m->by_ratio ? "ratio" : "gkeys_per_s");
    json_text(json, "worst_input", m->row.input);
    json_real(json, "worst", m->worst);
    json_real(json, "tenth_percentile", m->tenth);
    json_real(json, "median", m->median);
    json_integer(json, "wrong", m->wrong);
    json_close(json, '}');
    json_close(json, '}');
}

static void begin_json(struct bench_report *report)
{
    struct json *json = &report->json;
    json_open(json, NULL, '{');
    json_integer(json, "schema_version", 1);
    json_text(json, "build", report_build());
    json_integer(json, "ranks", report->ranks);
    json_text(json, "engine", report->engine);
    json_integer(json, "repeats", report->repeats);
    json_integer(json, "warm_up", report->warm_up);
    char seed[24]; // beyond what a double holds
    snprintf(seed, sizeof seed, "%" PRIu64, report->seed);
    json_text(json, "seed", seed);
    json_open(json, "rows", '[');
}

/* ---- The report ---------------------------------------------------------------------------------------- */

/* Print what comes before the first row. */
static void begin_report(struct bench_report *report)
{
    if (report->begun)
        return;
    report->begun = true;
    if (report->form == BENCH_JSON) {
        begin_json(report);
        return;
    }
    printf("%sseed:   %" PRIu64 "\n", report->form == BENCH_CSV ? "# " : "", report->seed);
    if (report->form == BENCH_CSV) {
        print_csv_head();
        return;
    }
    printf("calls:  median of %d, after %d to warm up; %d %s, engine %s\n\n", report->repeats,
           report->warm_up, report->ranks, report->ranks == 1 ? "rank" : "ranks", report->engine);
    print_table_head(report);
}

void bench_report_row(struct bench_report *report, const struct bench_row *row, bool of_many)
{
    begin_report(report);
    if (report->form == BENCH_JSON)
        put_row(&report->json, row);
    else if (report->form == BENCH_CSV)
        print_csv_row(row);
    else if (!of_many || !row->right)
        print_table_row(report, row);
    fflush(stdout);
}

void bench_report_mixtures(struct bench_report *report, const struct bench_mixtures *m)
{
    if (report->form == BENCH_JSON)
        put_mixtures(&report->json, m);
    else if (report->form == BENCH_CSV)
        printf("# %s: %s, %s, %" PRId64 " keys: worst %.3f (%s), 10th percentile %.3f, median %.3f, %s\n",
               m->word, bench_memory_word(m->row.memory), hsort_type_name(m->row.type), m->row.keys, m->worst,
               m->row.input, m->tenth, m->median, m->by_ratio ? "ratio" : "gkeys_per_s");
    else
        print_table_mixtures(report, m);
    fflush(stdout);
}

void bench_report_left_out(struct bench_report *report, const struct bench_row *row, const char *why)
{
    char text[STATUS_TEXT_BYTES];
    begin_report(report);
    snprintf(text, sizeof text, "left out: %s", why);
    if (report->form == BENCH_JSON) {
        put_place(&report->json, row, row->input);
        json_text(&report->json, "left_out", why);
        json_close(&report->json, '}');
    } else if (report->form == BENCH_CSV) {
        printf("# left out: %s, %s, %s, %" PRId64 " keys: %s\n", bench_memory_word(row->memory),
               hsort_type_name(row->type), row->input, row->keys, why);
    } else {
        print_table_text(report, row, row->input, text);
    }
    fflush(stdout);
}

hsort_status bench_report_end(struct bench_report *report)
{
    if (report->begun && report->form == BENCH_JSON) {
        json_close(&report->json, ']');
        json_close(&report->json, '}');
        printf("\n");
    }
    return report_flush();
}
