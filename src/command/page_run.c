#include "src/command/page_run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/report.h"

enum { TEXT = 4096, PHASES_MOST = 16, COLOURS = 9 };

/* ---- members of the report ----------------------------------------------------------------------------- */

static double number_of(const struct json_value *object, const char *name)
{
    const struct json_value value = json_member(object, name);
    return json_number(&value, 0);
}

static const char *text_of(const struct json_value *object, const char *name, char *text)
{
    const struct json_value value = json_member(object, name);
    return json_string(&value, text, TEXT);
}

bool is_run_report(const struct json_value *run)
{
    const struct json_value phases = json_member(run, "phases"), ranks = json_member(run, "ranks");
    const bool writes = json_member(run, "output").kind != JSON_NONE; // select does not
    return writes && phases.kind == JSON_OBJECT && ranks.kind == JSON_NUMBER &&
           number_of(run, "schema_version") == 1;
}

/* The number of elements that were sorted or gathered, and what they are called. */
static double elements_of(const struct json_value *run, const char **word)
{
    static const char *const words[] = {"keys", "records", "elements"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        *word = words[i];
        if (json_member(run, words[i]).kind == JSON_NUMBER)
            return number_of(run, words[i]);
    }
    return 0;
}

/* Bytes of what was sorted, including values. */
static double bytes_of(const struct json_value *run)
{
    const char *word;
    if (json_member(run, "bytes").kind == JSON_NUMBER)
        return number_of(run, "bytes");
    return elements_of(run, &word) * (number_of(run, "element_bytes") + number_of(run, "value_bytes"));
}

static bool is_gather(const struct json_value *run)
{
    const struct json_value phases = json_member(run, "phases"), parts = json_member(run, "parts");
    return parts.kind == JSON_OBJECT && json_member(&phases, "gather").kind == JSON_NUMBER;
}

const char *run_title(const struct json_value *run, char *title, size_t bytes)
{
    char type[TEXT], count[REPORT_FIGURE_TEXT];
    const char *word;
    const double elements = elements_of(run, &word), ranks = number_of(run, "ranks");
    const bool bare = strcmp(word, "keys") == 0;
    text_of(run, "type", type);
    const size_t length = strlen(report_figure(elements, "", count)); // a small number ends with a blank
    snprintf(title, bytes, "hypersort %s: %s%s%.40s%s%s on %.0f %s", is_gather(run) ? "gather" : "sort",
             count, count[length - 1] == ' ' ? "" : " ", bare ? type : "", bare ? " " : "", word, ranks,
             ranks == 1 ? "rank" : "ranks");
    return title;
}

/* ---- what it was --------------------------------------------------------------------------------------- */

static void fact(struct page *page, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    page_add(page, "<tr>");
    page_element(page, "th", NULL, name);
    page_element(page, "td", NULL, text);
    page_add(page, "</tr>\n");
}

/* Add a row with the texts of a list, one behind the other; if there are many, only the first ones. */
static void fact_list(struct page *page, const char *name, const struct json_value *list)
{
    enum { SHOWN = 16 };
    struct json_walk walk = json_begin(list);
    struct json_value value;
    char text[TEXT];
    int count = 0;
    while (json_next(&walk, NULL, &value)) {
        if (count == 0)
            page_add(page, "<tr><th>%s</th><td>", name);
        if (count < SHOWN)
            page_add(page, count > 0 ? ", " : "");
        if (count++ < SHOWN)
            page_escaped(page, json_string(&value, text, sizeof text));
    }
    if (count > SHOWN)
        page_add(page, ", and %d more", count - SHOWN);
    if (count > 0)
        page_add(page, "</td></tr>\n");
}

static void fact_passes(struct page *page, const struct json_value *run)
{
    char text[TEXT], bytes[REPORT_FIGURE_TEXT];
    const double on_disk = number_of(run, "run_bytes_on_disk");
    if (number_of(run, "passes") != 2)
        return;
    snprintf(text, sizeof text, "2%s%s: %.0f sorted runs, %.0f segments of the result",
             on_disk > 0 ? ", by way of the disk, with " : ", through host memory",
             on_disk > 0 ? report_figure(on_disk, "B", bytes) : "", number_of(run, "runs"),
             number_of(run, "segments"));
    fact(page, "passes", text);
}

static void fact_verified(struct page *page, const struct json_value *run)
{
    const struct json_value verify = json_member(run, "verify");
    struct json_walk walk = json_begin(&verify);
    struct json_value name, value;
    char word[TEXT];
    bool bad = false;
    if (verify.kind != JSON_OBJECT) {
        fact(page, "verified", "no");
        return;
    }
    page_add(page, "<tr><th>verified</th><td>");
    for (int count = 0; json_next(&walk, &name, &value); count++) {
        const bool right = value.length == 4; // true
        json_string(&name, word, sizeof word);
        for (char *gap = strchr(word, '_'); gap; gap = strchr(gap, '_'))
            *gap = ' ';
        page_add(page, "%s", count > 0 ? ", " : "");
        page_element(page, "span", right ? NULL : "bad", word);
        page_add(page, right ? ": yes" : ": <span class=\"bad\">NO</span>");
        bad = bad || !right;
    }
    page_add(page, "</td></tr>\n");
    if (bad)
        page_add(page, "<tr><th></th><td class=\"bad\">The result is wrong.</td></tr>\n");
}

static void fact_how(struct page *page, const struct json_value *run)
{
    char engine[TEXT], exchange[TEXT], transport[TEXT], text[TEXT];
    text_of(run, "engine", engine);
    text_of(run, "exchange", exchange);
    text_of(run, "transport", transport);
    if (strcmp(exchange, "none") == 0)
        exchange[0] = transport[0] = '\0';
    snprintf(text, sizeof text, "engine %.200s%s%.200s%s%.200s", engine, exchange[0] ? ", exchange " : "",
             exchange, transport[0] ? ", transport " : "", transport);
    fact(page, "how", text);
}

static void fact_job(struct page *page, const struct json_value *run)
{
    const struct json_value job = json_member(run, "job");
    char scheduler[TEXT], id[TEXT], text[TEXT];
    if (job.kind != JSON_OBJECT)
        return;
    snprintf(text, sizeof text, "%.200s, %.200s, restarted %.0f times", text_of(&job, "id", id),
             text_of(&job, "scheduler", scheduler), number_of(&job, "restarts"));
    fact(page, "job", text);
}

static void fact_rate(struct page *page, const struct json_value *run)
{
    char keys[REPORT_FIGURE_TEXT], bytes[REPORT_FIGURE_TEXT], text[TEXT];
    const double rate = number_of(run, "gkeys_per_s") * 1e9, count = number_of(run, "keys");
    if (rate <= 0 || count <= 0)
        return;
    snprintf(text, sizeof text, "%s, %s, with reading and writing", report_figure(rate, "keys/s", keys),
             report_figure(rate * bytes_of(run) / count, "B/s", bytes));
    fact(page, "rate", text);
}

static void show_facts(struct page *page, const struct json_value *run)
{
    char text[TEXT], bytes[REPORT_FIGURE_TEXT];
    const struct json_value inputs = json_member(run, "inputs"), hosts = json_member(run, "hosts");
    page_add(page, "<table class=\"facts\">\n");
    fact(page, "size", report_figure(bytes_of(run), "B", bytes));
    fact(page, "order", text_of(run, "order", text));
    fact(page, "by", text_of(run, "key", text));
    fact_rate(page, run);
    fact_how(page, run);
    fact_passes(page, run);
    fact_verified(page, run);
    fact_list(page, "input", &inputs);
    fact(page, "output", text_of(run, "output", text));
    fact(page, "index", text_of(run, "index", text));
    fact(page, "values", text_of(run, "values_output", text));
    fact_list(page, "hosts", &hosts);
    fact_job(page, run);
    fact(page, "build", text_of(run, "build", text));
    page_add(page, "</table>\n");
}

/* ---- phases -------------------------------------------------------------------------------------------- */

/* A phase over all ranks. */
struct phase_spread {
    char name[64];
    double least, most, sum;
    int slowest;
    bool beside; /* it runs beside other phases, whose times include its time */
};

struct phase_table {
    struct phase_spread phase[PHASES_MOST];
    int count, ranks;
    double longest; /* the longest time of a rank in all phases that run one after the other */
    double all;     /* the same times of all ranks, added up */
};

/* In two passes files are read and written beside the sort. */
static bool runs_beside(const struct json_value *run, const char *name)
{
    return number_of(run, "passes") == 2 && (strcmp(name, "read") == 0 || strcmp(name, "write") == 0);
}

static void add_phase(struct phase_table *table, const struct json_value *run, int place,
                      const struct json_value *name, double seconds, int rank)
{
    if (place >= PHASES_MOST)
        return;
    struct phase_spread *phase = &table->phase[place];
    if (place >= table->count) {
        table->count = place + 1;
        json_string(name, phase->name, sizeof phase->name);
        phase->least = seconds;
        phase->beside = runs_beside(run, phase->name);
    }
    phase->slowest = seconds > phase->most ? rank : phase->slowest;
    phase->most = seconds > phase->most ? seconds : phase->most;
    phase->least = seconds < phase->least ? seconds : phase->least;
    phase->sum += seconds;
}

static void read_phases(const struct json_value *run, struct phase_table *table)
{
    const struct json_value per_rank = json_member(run, "per_rank");
    struct json_walk ranks = json_begin(&per_rank);
    struct json_value rank, name, value;
    memset(table, 0, sizeof *table);
    while (json_next(&ranks, NULL, &rank)) {
        const struct json_value phases = json_member(&rank, "phases");
        struct json_walk walk = json_begin(&phases);
        double length = 0;
        for (int place = 0; json_next(&walk, &name, &value); place++) {
            const double seconds = json_number(&value, 0);
            add_phase(table, run, place, &name, seconds, table->ranks);
            length += place < PHASES_MOST && !table->phase[place].beside ? seconds : 0;
        }
        table->longest = length > table->longest ? length : table->longest;
        table->all += length;
        table->ranks++;
    }
}

static int colour_of(int place)
{
    return place < COLOURS ? place : COLOURS - 1;
}

static void show_phase_table(struct page *page, const struct phase_table *table)
{
    char most[REPORT_FIGURE_TEXT], mean[REPORT_FIGURE_TEXT], least[REPORT_FIGURE_TEXT];
    page_add(page, "<table>\n<tr><th>phase</th><th class=\"n\">slowest</th><th class=\"n\">rank</th><th "
                   "class=\"n\">mean</th>"
                   "<th class=\"n\">fastest</th><th class=\"n\">slowest / mean</th></tr>\n");
    for (int i = 0; i < table->count; i++) {
        const struct phase_spread *phase = &table->phase[i];
        const double average = phase->sum / table->ranks;
        if (phase->most < 1e-6)
            continue;
        page_add(page, "<tr><td class=\"key\"><span><i class=\"p%d\"></i>", colour_of(i));
        page_escaped(page, phase->name);
        page_add(page,
                 "</span>%s</td><td class=\"n\">%s</td><td class=\"n\">%d</td><td class=\"n\">%s</td><td "
                 "class=\"n\">%s</td>"
                 "<td class=\"n\">%.2f</td></tr>\n",
                 phase->beside ? " <span class=\"soft\">beside the others</span>" : "",
                 report_time(phase->most, most), phase->slowest, report_time(average, mean),
                 report_time(phase->least, least), phase->most / average);
    }
    page_add(page, "</table>\n");
}

/* Show the phases of a report of an earlier version, which has only the slowest rank of each phase. */
static void show_phases_alone(struct page *page, const struct json_value *run)
{
    static const char *const lists[] = {"phases", "parts"};
    char name[TEXT], time[REPORT_FIGURE_TEXT];
    struct json_value word, value;
    page_add(page, "<p class=\"soft\">The report has no times of single ranks.</p>\n<table>\n");
    for (int i = 0; i < 2; i++) {
        const struct json_value list = json_member(run, lists[i]);
        struct json_walk walk = json_begin(&list);
        while (json_next(&walk, &word, &value)) {
            if (json_number(&value, 0) < 1e-6)
                continue;
            page_add(page, "<tr>");
            page_element(page, "td", NULL, json_string(&word, name, sizeof name));
            page_element(page, "td", "n", report_time(json_number(&value, 0), time));
            page_add(page, "</tr>\n");
        }
    }
    page_add(page, "</table>\n");
}

/* ---- phases of each rank ------------------------------------------------------------------------------- */

enum { LEFT = 190, WIDTH = 1000, RIGHT = 90, ROW = 17, ROW_LEAST = 4, HEIGHT_MOST = 1600 };

static double x_of(double seconds, double most)
{
    return LEFT + seconds / most * (WIDTH - LEFT - RIGHT);
}

/* Add a label such as "3, node7, GPU 0": the host without its domain, and cut if it is long. */
static void add_rank_label(struct page *page, const struct json_value *rank, double y)
{
    enum { SHOWN = 18 };
    char host[TEXT];
    const struct json_value gpu = json_member(rank, "gpu");
    text_of(rank, "host", host);
    if (host[0] < '0' || host[0] > '9') // all of an address counts
        host[strcspn(host, ".")] = '\0';
    const bool cut = strlen(host) > SHOWN;
    size_t end = cut ? SHOWN - 1 : strlen(host);
    while (cut && end > 0 && ((unsigned char)host[end] & 0xc0) == 0x80) // inside a character
        end--;
    host[end] = '\0';
    page_add(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f, ", LEFT - 8, y,
             number_of(rank, "rank"));
    page_escaped(page, host);
    page_add(page, cut ? "&#8230;" : "");
    if (gpu.kind == JSON_NUMBER)
        page_add(page, ", GPU %.0f", json_number(&gpu, 0));
    page_add(page, "</text>\n");
}

static void add_rank_bars(struct page *page, const struct phase_table *table, const struct json_value *rank,
                          double y, double height)
{
    const struct json_value phases = json_member(rank, "phases");
    struct json_walk walk = json_begin(&phases);
    struct json_value name, value;
    char word[64], time[REPORT_FIGURE_TEXT];
    double at = 0;
    for (int place = 0; json_next(&walk, &name, &value) && place < table->count; place++) {
        const double seconds = json_number(&value, 0);
        if (table->phase[place].beside || seconds <= 0)
            continue;
        page_add(
            page,
            "<rect class=\"p%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"><title>rank %.0f, ",
            colour_of(place), x_of(at, table->longest), y, x_of(seconds, table->longest) - LEFT, height,
            number_of(rank, "rank"));
        page_escaped(page, json_string(&name, word, sizeof word));
        page_add(page, ": %s</title></rect>", report_time(seconds, time));
        at += seconds;
    }
    page_add(page, "\n");
    if (height > 9)
        page_add(page, "<text class=\"t\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", x_of(at, table->longest) + 5,
                 y + height - 2, report_time(at, time));
}

/* Add a row for each rank, as high as fits a page that can be looked at; if there are many ranks, only every n-th has its name. */
static void show_rank_bars(struct page *page, const struct json_value *run, const struct phase_table *table)
{
    const struct json_value per_rank = json_member(run, "per_rank");
    struct json_walk ranks = json_begin(&per_rank);
    struct json_value rank;
    const double fits = (double)HEIGHT_MOST / table->ranks, row = fits > ROW         ? ROW
                                                                  : fits < ROW_LEAST ? ROW_LEAST
                                                                                     : fits;
    const int named = row >= 11 ? 1 : (int)(11 / row) + 1;
    const double height = PAGE_AXIS + row * table->ranks + 2;
    page_add(page,
             "<div class=\"figure\"><svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"phases of each "
             "rank\">\n",
             WIDTH, height);
    page_axis(page, table->longest, LEFT, WIDTH - RIGHT, height);
    for (int i = 0; json_next(&ranks, NULL, &rank); i++) {
        const double y = PAGE_AXIS + row * i;
        if (i % named == 0)
            add_rank_label(page, &rank, y + (row > 11 ? row - 5 : row));
        add_rank_bars(page, table, &rank, y, row > 8 ? row - 3 : row - 1);
    }
    page_add(page, "</svg></div>\n");
}

static void show_phases(struct page *page, const struct json_value *run, const struct phase_table *table)
{
    page_add(page, "<h2>Phases</h2>\n");
    if (table->ranks == 0) {
        show_phases_alone(page, run);
        return;
    }
    show_phase_table(page, table);
    if (table->longest <= 0)
        return;
    page_add(page, "<h2>Phases of each rank</h2>\n");
    show_rank_bars(page, run, table);
}

/* ---- paths, and the least ------------------------------------------------------------------------------ */

static void show_paths(struct page *page, const struct json_value *run)
{
    const struct json_value paths = json_member(run, "paths");
    struct json_walk walk = json_begin(&paths);
    struct json_value name, path;
    char word[TEXT], all[REPORT_FIGURE_TEXT], crossed[REPORT_FIGURE_TEXT], most[REPORT_FIGURE_TEXT], time[REPORT_FIGURE_TEXT],
        rate[REPORT_FIGURE_TEXT];
    if (number_of(run, "moved_bytes") <= 0)
        return;
    page_add(
        page,
        "<h2>Paths between ranks</h2>\n<table>\n<tr><th>by</th><th class=\"n\">pairs</th><th "
        "class=\"n\">bytes</th><th class=\"n\">between nodes</th>"
        "<th class=\"n\">most of one rank</th><th class=\"n\">its time</th><th class=\"n\">rate</th></tr>\n");
    while (json_next(&walk, &name, &path)) {
        page_add(page, "<tr>");
        page_element(page, "td", NULL, json_string(&name, word, sizeof word));
        page_add(
            page,
            "<td class=\"n\">%.0f</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
            "<td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
            number_of(&path, "pairs"), report_figure(number_of(&path, "moved_bytes"), "B", all),
            report_figure(number_of(&path, "crossed_bytes"), "B", crossed),
            report_figure(number_of(&path, "moved_bytes_largest"), "B", most),
            report_time(number_of(&path, "seconds"), time),
            report_figure(number_of(&path, "gb_per_s") * 1e9, "B/s", rate));
    }
    page_add(page, "</table>\n<p class=\"soft\">A rank's time in a path has its waiting for other ranks, and "
                   "merges that read over "
                   "it.</p>\n");
    if (number_of(run, "bytes_per_crossed_key") > 0)
        page_add(page, "<p>Between nodes went %s, %.2f bytes for each key that changed its node.</p>\n",
                 report_figure(number_of(run, "crossed_bytes"), "B", all), number_of(run, "bytes_per_crossed_key"));
}

/* Add a row that shows what there was beside the least that there can be; `why` is our own text. */
static void add_floor(struct page *page, const char *what, const char *was, const char *least, double times,
                      const char *why)
{
    page_add(page,
             "<tr><td>%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%.2f</td><td "
             "class=\"soft\">%s</td>"
             "</tr>\n",
             what, was, least, times, why);
}

static bool is_text(const struct json_value *run, const char *name)
{
    return json_member(run, name).kind == JSON_TEXT;
}

/* Apart from runs, is everything that is read the input, and everything that is written the output? Not so with an index, which is one
 * more file; with --unique, which does not write everything; and with results that are dealt out to several files, which are read and
 * written once more. */
static bool has_files_alone(const struct json_value *run)
{
    const struct json_value output = json_member(run, "output");
    if (output.kind != JSON_TEXT || is_text(run, "index") || is_text(run, "by") ||
        json_member(run, "distinct").kind == JSON_NUMBER)
        return false;
    const bool deals = is_text(run, "values") || memchr(output.text, '%', output.length);
    return !deals || number_of(run, "run_bytes_on_disk") == 0;
}

static void show_floors(struct page *page, const struct json_value *run, const struct phase_table *table)
{
    char was[REPORT_FIGURE_TEXT], least[REPORT_FIGURE_TEXT];
    const double ranks = number_of(run, "ranks"), bytes = bytes_of(run),
                 moved = number_of(run, "moved_bytes");
    const double away = ranks > 1 ? bytes * (1 - 1 / ranks) : 0, runs = number_of(run, "run_bytes_on_disk");
    if (bytes <= 0)
        return;
    page_add(page, "<h2>Beside the least</h2>\n<table>\n<tr><th></th><th class=\"n\">this run</th><th "
                   "class=\"n\">least</th>"
                   "<th class=\"n\">times</th><th>the least is</th></tr>\n");
    if (table->ranks > 0 && table->all > 0)
        add_floor(page, "slowest rank", report_time(table->longest, was),
                  report_time(table->all / table->ranks, least), table->longest * table->ranks / table->all,
                  "the mean rank: all ranks take the same time");
    if (moved > 0)
        add_floor(page, "bytes between ranks", report_figure(moved, "B", was),
                  report_figure(away, "B", least), moved / away,
                  "each element of an input without order goes to its rank once");
    if (has_files_alone(run))
        add_floor(page, "bytes read and written", report_figure(2 * bytes + 2 * runs, "B", was),
                  report_figure(2 * bytes, "B", least), 1 + runs / bytes,
                  "the input is read once, the output written once");
    page_add(page, "</table>\n");
}

/* Show the command, which may name thousands of files. */
static void show_command(struct page *page, const struct json_value *run)
{
    enum { SPARE = 8 }; // that json_string() needs
    const struct json_value command = json_member(run, "command");
    const size_t bytes = command.length + SPARE;
    char *text = command.kind == JSON_TEXT ? malloc(bytes) : NULL;
    if (!text)
        return;
    page_add(page, "<p>");
    page_element(page, "code", NULL, json_string(&command, text, bytes));
    page_add(page, "</p>\n");
    free(text);
}

void page_run(struct page *page, const struct json_value *run)
{
    struct phase_table table;
    char text[2 * TEXT];
    page_element(page, "h1", NULL, run_title(run, text, sizeof text));
    show_command(page, run);
    text_of(run, "ended", text);
    if (text[0])
        page_element(page, "p", "soft", text);
    show_facts(page, run);
    read_phases(run, &table);
    show_phases(page, run, &table);
    show_paths(page, run);
    show_floors(page, run, &table);
}
