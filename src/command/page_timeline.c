/* A row for each depth of each thread and stream, ranks one below the other:
 *
 *     rank 0, node7, GPU 0   main          | sort keys                                   |        depth 0
 *                                          | load     | local sort | exchange ...        |        depth 1
 *                            stream work              | sort |       | merge |
 *
 * The file is walked twice, once for the rows and once for what is in them. Only a few words of each row are kept, so a trace of
 * millions of spans can be drawn, too. Spans too short to be seen are drawn together. */
#include "src/command/page_timeline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/report.h"

enum {
    DEPTHS = 8,  /* drawn and told apart at most */
    NAMES = 256, /* of spans */
    TEXT = 128,
    LEFT = 190,
    WIDTH = 1000,
    ROW = 13,
    RIGHT = 30,
    RANK_GAP = 8
};

/* Kinds of spans, in the order of their colours, s0 and so on. X(kind, what it is called) */
#define SPAN_KIND_LIST(X)                 \
    X(SPAN_FRAME, "phases, and the rest") \
    X(SPAN_WORK, "work on keys")          \
    X(SPAN_LINK, "between ranks")         \
    X(SPAN_COPY, "copies and memory")     \
    X(SPAN_FILE, "files")                 \
    X(SPAN_WAIT, "waiting")

enum span_kind {
#define X(kind, text) kind,
    SPAN_KIND_LIST(X)
#undef X
        SPAN_KINDS
};

/* Spans that are drawn together on one row, because they are too short. */
struct crowd {
    double begin, end;
    int64_t count;
    int kind; /* of the last of them */
};

/* A thread or a stream. */
struct track {
    int64_t rank, thread;
    char name[32];
    int depths; /* that its spans have */
    double y;   /* of its first row */
    /* of the walk: the open spans, with their ends, and the part of their time that no inner span has */
    int open;
    double end[DEPTHS], self[DEPTHS];
    int name_of[DEPTHS];
    struct crowd crowd[DEPTHS];
};

/* A name of spans, and the time that went into them. */
struct span_name {
    char text[64];
    double self; /* us, on all threads of the host, or on all streams */
    int64_t count;
    bool is_of_stream;
};

struct timeline {
    struct page *page;
    const struct json_value *trace;
    struct track *tracks; /* [count] owned */
    int count, room;
    int last; /* the track that was found last */
    int64_t ranks;
    int shown; /* depths that are shown */
    double most;
    struct span_name names[NAMES];
    int name_count;
    bool draws;
};

/* ---- what a file has ------------------------------------------------------------------------------------ */

static double member_of(const struct json_value *object, const char *name, double otherwise)
{
    const struct json_value value = json_member(object, name);
    return json_number(&value, otherwise);
}

bool is_trace(const struct json_value *trace)
{
    return json_member(trace, "traceEvents").kind == JSON_ARRAY;
}

bool is_trace_of(const struct json_value *trace, const struct json_value *run)
{
    const struct json_value other = json_member(trace, "otherData"), ranks = json_member(&other, "ranks"),
                            written = json_member(run, "trace");
    struct json_walk walk = json_begin(&ranks);
    struct json_value rank;
    double count = 0, spans = 0;
    for (; json_next(&walk, NULL, &rank); count++)
        spans += member_of(&rank, "spans", 0);
    return count == member_of(run, "ranks", count) && spans == member_of(&written, "spans", spans);
}

static bool is_stream(const char *track)
{
    return strncmp(track, "stream", 6) == 0;
}

static bool begins_with_any(const char *name, const char *const *words)
{
    while (*words && strncmp(name, *words, strlen(*words)) != 0)
        words++;
    return *words != NULL;
}

static enum span_kind kind_of_span(const char *name)
{
    static const char *const waits[] = {"agree", "wait", NULL}, *const links[] = {"send",
                                                                                  "read peer",
                                                                                  "merge across",
                                                                                  "memory is",
                                                                                  "show",
                                                                                  "map peer",
                                                                                  NULL},
                             *const files[] = {"read file",   "write file", "read run", "write run",
                                               "read output", "commit",     NULL},
                             *const copies[] = {"copy", "transfer", "allocate", "free", "pin", NULL},
                             *const works[] = {
                                 "sort ",      "sort slot",   "merge",  "encode",  "decode", "search",
                                 "cut",        "look",        "swap",   "inspect", "make ",  "split codes",
                                 "take",       "pack",    "unpack",  "place",       "count ", "scatter", "settle", "sample",
                                 "write runs", "write count", NULL};
    return begins_with_any(name, waits)    ? SPAN_WAIT
           : begins_with_any(name, links)  ? SPAN_LINK
           : begins_with_any(name, files)  ? SPAN_FILE
           : begins_with_any(name, copies) ? SPAN_COPY
           : strncmp(name, "sort keys", 9) == 0 || strncmp(name, "sort codes", 10) == 0 ||
                   strncmp(name, "sort elem", 9) == 0 || strncmp(name, "cut runs", 8) == 0 ||
                   strncmp(name, "scatter elem", 12) == 0
               ? SPAN_FRAME
           : strcmp(name, "sort") == 0 || begins_with_any(name, works) ? SPAN_WORK
                                                                       : SPAN_FRAME;
}

/* Find the track of an event, or add one if there is none yet. -1: no memory. */
static int find_track(struct timeline *t, int64_t rank, int64_t thread)
{
    for (int i = 0; i < t->count; i++) {
        const int at = (t->last + i) % t->count; // events of a track follow each other
        if (t->tracks[at].rank == rank && t->tracks[at].thread == thread)
            return t->last = at;
    }
    if (t->count == t->room) {
        const int room = 2 * t->room + 64;
        struct track *more = realloc(t->tracks, (size_t)room * sizeof *more);
        if (!more)
            return -1;
        t->tracks = more;
        t->room = room;
    }
    t->tracks[t->count] = (struct track){.rank = rank, .thread = thread, .depths = 0};
    snprintf(t->tracks[t->count].name, sizeof t->tracks->name, "thread %lld", (long long)thread);
    t->ranks = rank + 1 > t->ranks ? rank + 1 : t->ranks;
    return t->last = t->count++;
}

static int find_span_name(struct timeline *t, const char *text, bool is_of_stream)
{
    for (int i = 0; i < t->name_count; i++)
        if (t->names[i].is_of_stream == is_of_stream && strcmp(t->names[i].text, text) == 0)
            return i;
    if (t->name_count == NAMES)
        return NAMES - 1; // the last name also stands for all others
    t->names[t->name_count] = (struct span_name){.is_of_stream = is_of_stream};
    snprintf(t->names[t->name_count].text, sizeof t->names->text, "%.63s", text);
    return t->name_count++;
}

/* ---- drawing ------------------------------------------------------------------------------------------- */

static double x_at(const struct timeline *t, double us)
{
    return LEFT + us / t->most * (WIDTH - LEFT - RIGHT);
}

static void draw_crowd(struct timeline *t, struct track *track, int depth)
{
    struct crowd *crowd = &track->crowd[depth];
    if (crowd->count > 0)
        page_add(t->page,
                 "<rect class=\"s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>%lld "
                 "%s</title></rect>\n",
                 crowd->kind, crowd->begin, track->y + ROW * depth,
                 crowd->end - crowd->begin < 0.4 ? 0.4 : crowd->end - crowd->begin, ROW - 1,
                 (long long)crowd->count, crowd->count == 1 ? "short span" : "short spans");
    crowd->count = 0;
}

/* Let a span that is too short join the short spans just before it. */
static void join_crowd(struct timeline *t, struct track *track, int depth, double x, double end,
                       enum span_kind kind)
{
    struct crowd *crowd = &track->crowd[depth];
    if (crowd->count > 0 && x > crowd->end + 0.4)
        draw_crowd(t, track, depth);
    if (crowd->count++ == 0)
        crowd->begin = x;
    crowd->end = end;
    crowd->kind = (int)kind;
}

/* Add what a span says, behind its name. */
static void add_args(struct page *page, const struct json_value *event)
{
    static const char *const words[] = {"to", "from", "keys"}, *const bytes[] = {"bytes", "sent", "received"};
    const struct json_value args = json_member(event, "args");
    char text[REPORT_FIGURE_TEXT];
    for (int i = 0; i < 3; i++)
        if (member_of(&args, words[i], -1) >= 0)
            page_add(page, ", %s %.0f", words[i], member_of(&args, words[i], 0));
    for (int i = 0; i < 3; i++)
        if (member_of(&args, bytes[i], -1) >= 0)
            page_add(page, ", %s %s", bytes[i], report_figure(member_of(&args, bytes[i], 0), "B", text));
}

static void draw_span(struct timeline *t, struct track *track, int depth, const struct json_value *event,
                      const char *name, double begin, double length)
{
    const double x = x_at(t, begin), width = x_at(t, begin + length) - x, letter = 5.2, narrow = 0.8;
    char time[REPORT_FIGURE_TEXT], at[REPORT_FIGURE_TEXT];
    if (depth >= t->shown)
        return;
    if (width < narrow) {
        join_crowd(t, track, depth, x, x + width, kind_of_span(name));
        return;
    }
    draw_crowd(t, track, depth);
    page_add(t->page, "<rect class=\"s%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>",
             (int)kind_of_span(name), x, track->y + ROW * depth, width, ROW - 1);
    page_escaped(t->page, name);
    page_add(t->page, ", %s at %s", report_time(length * 1e-6, time), report_time(begin * 1e-6, at));
    add_args(t->page, event);
    page_add(t->page, "</title></rect>");
    if (width > letter * (double)strlen(name) + 6) {
        page_add(t->page, "<text class=\"in on%d\" x=\"%.2f\" y=\"%.1f\">", (int)kind_of_span(name), x + 3,
                 track->y + ROW * depth + ROW - 4);
        page_escaped(t->page, name);
        page_add(t->page, "</text>");
    }
    page_add(t->page, "\n");
}

/* ---- walks --------------------------------------------------------------------------------------------- */

/* End the innermost open span of a track. */
static void close_span(struct timeline *t, struct track *track)
{
    const int depth = --track->open;
    if (t->draws)
        t->names[track->name_of[depth]].self += track->self[depth];
}

/* Walk over a span. The spans of a track come in the order in which they begin, outer spans first. */
static void walk_span(struct timeline *t, struct track *track, const struct json_value *event)
{
    const struct json_value value = json_member(event, "name");
    char name[TEXT];
    const double begin = member_of(event, "ts", 0), length = member_of(event, "dur", 0), rounding = 0.0011;
    json_string(&value, name, sizeof name);
    while (track->open > 0 && (track->open >= DEPTHS || track->end[track->open - 1] <= begin + rounding))
        close_span(t, track);
    const int depth = track->open;
    track->open++;
    track->depths = track->open > track->depths ? track->open : track->depths;
    t->most = begin + length > t->most ? begin + length : t->most;
    track->end[depth] = begin + length;
    track->self[depth] = length;
    if (!t->draws)
        return;
    track->name_of[depth] = find_span_name(t, name, is_stream(track->name));
    t->names[track->name_of[depth]].count++;
    if (depth > 0)
        track->self[depth - 1] -= length;
    draw_span(t, track, depth, event, name, begin, length);
}

/* End what is still open on a track. */
static void end_track(struct timeline *t, struct track *track)
{
    while (track->open > 0)
        close_span(t, track);
    for (int depth = 0; depth < DEPTHS; depth++)
        draw_crowd(t, track, depth);
}

/* Take the name of a track from an event that tells it. */
static void name_track(struct track *track, const struct json_value *event)
{
    const struct json_value args = json_member(event, "args"), name = json_member(&args, "name");
    if (name.kind == JSON_TEXT)
        json_string(&name, track->name, sizeof track->name);
}

static hsort_status walk_events(struct timeline *t)
{
    const struct json_value events = json_member(t->trace, "traceEvents");
    struct json_walk walk = json_begin(&events);
    struct json_value event;
    while (json_next(&walk, NULL, &event)) {
        const struct json_value kind = json_member(&event, "ph"), name = json_member(&event, "name");
        const double rank = member_of(&event, "pid", -1), thread = member_of(&event, "tid", -1);
        const bool is_span = json_is(&kind, "X"),
                   is_name = json_is(&name, "thread_name") && json_is(&kind, "M");
        if ((!is_span && !is_name) || !(rank >= 0 && rank < 1e7) || !(thread >= 0 && thread < 1e7))
            continue;
        const int at = find_track(t, (int64_t)rank, (int64_t)thread);
        if (at < 0)
            return status_fail(HSORT_HOST_MEMORY, "no memory for the threads of a trace");
        if (is_name)
            name_track(&t->tracks[at], &event);
        else
            walk_span(t, &t->tracks[at], &event);
    }
    return HSORT_OK;
}

/* ---- the figure ---------------------------------------------------------------------------------------- */

static int compare_tracks(const void *a, const void *b)
{
    const struct track *left = a, *right = b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->thread > right->thread) - (left->thread < right->thread);
}

/* With many ranks fewer depths are shown: those of phases, which can be compared. */
static int depths_shown(int64_t ranks)
{
    return ranks <= 4 ? 5 : ranks <= 16 ? 3 : 2;
}

/* Give each track its place. Returns where the last track ends. */
static double place_tracks(struct timeline *t)
{
    double y = PAGE_AXIS;
    qsort(t->tracks, (size_t)t->count, sizeof *t->tracks, compare_tracks);
    for (int i = 0; i < t->count; i++) {
        struct track *track = &t->tracks[i];
        if (i > 0 && track->rank != t->tracks[i - 1].rank)
            y += RANK_GAP;
        track->y = y;
        track->open = 0;
        y += ROW * (track->depths < t->shown ? track->depths : t->shown);
    }
    return y;
}

static void draw_labels(struct timeline *t, double height)
{
    page_axis(t->page, t->most * 1e-6, LEFT, WIDTH - RIGHT, height);
    for (int i = 0; i < t->count; i++) {
        const struct track *track = &t->tracks[i];
        if (track->depths == 0)
            continue;
        if (i == 0 || track->rank != t->tracks[i - 1].rank)
            page_add(t->page, "<text x=\"4\" y=\"%.1f\">rank %lld</text>\n", track->y + ROW - 3,
                     (long long)track->rank);
        page_add(t->page, "<text class=\"t\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8,
                 track->y + ROW - 3);
        page_escaped(t->page, track->name);
        page_add(t->page, "</text>\n");
    }
}

static void add_kinds(struct page *page)
{
    static const char *const texts[SPAN_KINDS] = {
#define X(kind, text) text,
        SPAN_KIND_LIST(X)
#undef X
    };
    page_add(page, "<p class=\"key\">");
    for (int kind = 0; kind < SPAN_KINDS; kind++)
        page_add(page, "<span><i class=\"s%d\"></i>%s</span>", kind, texts[kind]);
    page_add(page, "</p>\n");
}

/* Add what the file says about itself: how far times of ranks may be off, and how much is lost. */
static void add_errors(const struct timeline *t)
{
    const struct json_value other = json_member(t->trace, "otherData"), ranks = json_member(&other, "ranks");
    struct json_walk walk = json_begin(&ranks);
    struct json_value rank;
    double lost = 0, clock_error = 0, stream_error = 0;
    char text[REPORT_FIGURE_TEXT];
    while (json_next(&walk, NULL, &rank)) {
        const double clock = member_of(&rank, "clock_error_us", 0),
                     stream = member_of(&rank, "stream_error_us", 0);
        lost += member_of(&rank, "lost_spans", 0);
        clock_error = clock > clock_error ? clock : clock_error;
        stream_error = stream > stream_error ? stream : stream_error;
    }
    page_add(t->page, "<p class=\"soft\">Times of ranks may be off by %s",
             report_time(clock_error * 1e-6, text));
    if (stream_error > 0)
        page_add(t->page, ", those of streams by %s more", report_time(stream_error * 1e-6, text));
    page_add(t->page, ".%s</p>\n",
             t->shown < DEPTHS && t->ranks > 4 ? " Of many ranks the inner spans are left out." : "");
    if (lost > 0)
        page_add(t->page, "<p class=\"bad\">%.0f spans are lost: there was no room for them.</p>\n", lost);
}

static int compare_names(const void *a, const void *b)
{
    const struct span_name *left = a, *right = b;
    if (left->is_of_stream != right->is_of_stream)
        return left->is_of_stream ? 1 : -1;
    return left->self < right->self ? 1 : left->self > right->self ? -1 : strcmp(left->text, right->text);
}

static void add_name_table(struct timeline *t, bool of_streams)
{
    enum { SHOWN = 14 };
    char text[REPORT_FIGURE_TEXT];
    double all = 0;
    int shown = 0;
    for (int i = 0; i < t->name_count; i++)
        all += t->names[i].is_of_stream == of_streams ? t->names[i].self : 0;
    for (int i = 0; i < t->name_count && shown < SHOWN && all > 0; i++) {
        const struct span_name *name = &t->names[i];
        if (name->is_of_stream != of_streams)
            continue;
        if (shown++ == 0)
            page_add(t->page,
                     "<h2>Where time went, %s</h2>\n<table>\n<tr><th>in</th><th class=\"n\">all "
                     "ranks</th><th class=\"n\">%%"
                     "</th><th class=\"n\">spans</th></tr>\n",
                     of_streams ? "on streams of GPUs" : "on threads, less the spans inside");
        page_add(t->page, "<tr><td class=\"key\"><span><i class=\"s%d\"></i>", (int)kind_of_span(name->text));
        page_escaped(t->page, name->text);
        page_add(
            t->page,
            "</span></td><td class=\"n\">%s</td><td class=\"n\">%.1f</td><td class=\"n\">%lld</td></tr>\n",
            report_time(name->self * 1e-6, text), 100 * name->self / all, (long long)name->count);
    }
    if (shown > 0)
        page_add(t->page, "</table>\n");
}

static void draw_timeline(struct timeline *t)
{
    const double height = place_tracks(t) + 4;
    page_add(t->page, "<h2>Timeline</h2>\n");
    add_kinds(t->page);
    page_add(t->page,
             "<div class=\"figure\"><svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"timeline\">\n",
             WIDTH, height);
    draw_labels(t, height);
    t->draws = true;
    (void)walk_events(t); // there are no new tracks
    for (int i = 0; i < t->count; i++)
        end_track(t, &t->tracks[i]);
    page_add(t->page, "</svg></div>\n");
    add_errors(t);
    qsort(t->names, (size_t)t->name_count, sizeof *t->names, compare_names);
    add_name_table(t, false);
    add_name_table(t, true);
}

hsort_status page_timeline(struct page *page, const struct json_value *trace)
{
    static struct timeline t; // its names take too much room for a stack
    t = (struct timeline){.page = page, .trace = trace};
    const hsort_status status = walk_events(&t);
    t.shown = depths_shown(t.ranks);
    if (status == HSORT_OK && t.most > 0)
        draw_timeline(&t);
    else if (status == HSORT_OK)
        page_add(page, "<h2>Timeline</h2>\n<p>The trace has no spans.</p>\n");
    free(t.tracks);
    return status;
}
