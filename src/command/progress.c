#include "src/command/progress.h"
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* A bar stands on the terminal; there is only one terminal. */
static bool bar_stands;

enum progress_form progress_choose(enum progress_choice choice, int rank)
{
    const char *term = getenv("TERM");
    if (rank != 0 || choice == PROGRESS_OFF)
        return PROGRESS_NONE;
    if (isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0)
        return PROGRESS_BAR;
    return choice == PROGRESS_ON ? PROGRESS_LINES : PROGRESS_NONE;
}

void progress_start(struct progress *progress, enum progress_form form)
{
    *progress = (struct progress){.form = form, .start = MPI_Wtime()};
    job_find(&progress->job);
}

const char *progress_size_real(double bytes, char *text)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"};
    const int last = (int)(sizeof units / sizeof units[0]) - 1;
    int unit = 0;
    for (; bytes >= 1024 && unit < last; unit++)
        bytes /= 1024;
    snprintf(text, 16, unit == 0 ? "%.0f %s" : unit == last ? "%.3g %s" : "%.2f %s", bytes, units[unit]);
    return text;
}

const char *progress_size(int64_t bytes, char *text)
{
    return progress_size_real((double)bytes, text);
}

/* Note that `done` of `total` are done at `now`. Is a line due? */
static bool is_due(struct progress *progress, double now, const char *phase, int64_t done, int64_t total)
{
    const double first_interval = 1, last_interval = 10, bar_interval = 0.2;
    if (strncmp(progress->phase, phase, sizeof progress->phase - 1) != 0) {
        snprintf(progress->phase, sizeof progress->phase, "%s", phase);
        progress->phase_start = progress->last_line = now;
        progress->interval = first_interval;
        progress->first_done = done;
        progress_clear();
    }
    if (progress->form == PROGRESS_BAR && done < total && now - progress->last_line >= bar_interval) {
        progress->last_line = now;
        return true;
    }
    if (progress->form != PROGRESS_LINES || (done < total && now - progress->last_line < progress->interval))
        return false;
    progress->last_line = now;
    progress->interval = 2 * progress->interval < last_interval ? 2 * progress->interval : last_interval;
    return true;
}

/* Nobody is told if this fails: there is no other place to say so, and a sort goes on without its log. */
static void write_all(const char *text, int length)
{
    for (int at = 0; at < length;) {
        const ssize_t written = write(STDERR_FILENO, text + at, (size_t)(length - at));
        if (written < 0 && errno != EINTR)
            break;
        at += written > 0 ? (int)written : 0;
    }
}

void progress_clear(void)
{
    static const char clear[] = "\r\033[K";
    if (bar_stands)
        write_all(clear, (int)sizeof clear - 1);
    bar_stands = false;
}

/* Write one line, in one call, so that it stays whole among lines that other processes write to the same log. */
static void write_line(const struct progress *progress, double now, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void write_line(const struct progress *progress, double now, const char *format, ...)
{
    char what[96], clock[16] = "", line[256];
    const time_t today = time(NULL);
    struct tm local;
    if (localtime_r(&today, &local))
        strftime(clock, sizeof clock, "%H:%M:%S", &local);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    const int length =
        snprintf(line, sizeof line, "hypersort: %s%s%s%s %.0f s  %s\n", progress->job.scheduler ? "job " : "",
                 progress->job.id, progress->job.scheduler ? " " : "", clock, now - progress->start, what);
    write_all(line, length);
}

/* Bytes per second since the first call of the phase; 0: not known, for example at that call. */
static double bytes_per_second(const struct progress *progress, double now, int64_t done, int64_t total)
{
    const double seconds = now - progress->phase_start;
    const double share = total > 0 ? (double)(done - progress->first_done) / (double)total : 0;
    const double rate = seconds > 0 ? share * (double)progress->total_bytes / seconds : 0;
    return rate > 0 && rate < 1e18 ? rate : 0;
}

/* "  (1.21 GiB/s)", or "" if the rate is not known. text is [32]. Returns text. */
static const char *rate_text(const struct progress *progress, double now, int64_t done, int64_t total,
                             char *text)
{
    char size[16];
    const double rate = bytes_per_second(progress, now, done, total);
    text[0] = '\0';
    if (rate > 0)
        snprintf(text, 32, "  (%s/s)", progress_size((int64_t)rate, size));
    return text;
}

/* "  4:02 left", reckoned with the speed so far; "": not known. text is [32]. Returns text. */
static const char *left_text(const struct progress *progress, double now, int64_t done, int64_t total,
                             char *text)
{
    const double did = (double)(done - progress->first_done);
    const double left = did > 0 ? (now - progress->phase_start) * ((double)(total - done) / did) : 1e9;
    const int seconds = left < 1e8 ? (int)(left + 0.5) : 0;
    text[0] = '\0';
    if (left >= 1e8)
        return text;
    if (seconds < 60)
        snprintf(text, 32, "  %d s left", seconds);
    else if (seconds < 3600)
        snprintf(text, 32, "  %d:%02d left", seconds / 60, seconds % 60);
    else
        snprintf(text, 32, "  %d:%02d:%02d left", seconds / 3600, seconds / 60 % 60, seconds % 60);
    return text;
}

/* Draw the bar, and behind it `what` and the time left. If the terminal is too narrow, the bar is dropped first, then the end of the
 * line, because a second line could not be removed again. */
static void draw_bar(const struct progress *progress, double now, int64_t done, int64_t total,
                     const char *what)
{
    enum { BAR_LEAST = 8, BAR_MOST = 40, COLUMNS_MOST = 240 };
    char line[COLUMNS_MOST + 64], left[32], bar[BAR_MOST + 1] = "";
    struct winsize size = {0};
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    columns = columns < COLUMNS_MOST ? columns : COLUMNS_MOST;
    const double share = (double)done / (double)total;
    left_text(progress, now, done, total, left);
    const int texts = snprintf(NULL, 0, "%s %3.0f %% []  %s%s", progress->phase, 100 * share, what, left);
    const int room = columns - 1 - texts, width = room < BAR_MOST ? room : BAR_MOST;
    for (int i = 0; i < width; i++)
        bar[i] = i < (int)(share * width) ? '#' : '-';
    int length = snprintf(line, sizeof line, "\r%s %3.0f %% %s%s%s%s%s", progress->phase, 100 * share,
                          width >= BAR_LEAST ? "[" : "", width >= BAR_LEAST ? bar : "",
                          width >= BAR_LEAST ? "]  " : " ", what, left);
    length = length < columns ? length : columns;
    snprintf(line + length, sizeof line - (size_t)length, "\033[K");
    write_all(line, length + 3);
    bar_stands = true;
}

/* Draw a phase of bytes as a bar. */
static void draw_bytes(const struct progress *progress, double now, int64_t done, int64_t total)
{
    char what[80], all[16], part[16], rate[16];
    const double per_second = bytes_per_second(progress, now, done, total);
    const double share = (double)done / (double)total;
    snprintf(what, sizeof what, "%s of %s%s%s%s",
             progress_size((int64_t)(share * (double)progress->total_bytes), part),
             progress_size(progress->total_bytes, all), per_second > 0 ? "  " : "",
             per_second > 0 ? progress_size((int64_t)per_second, rate) : "", per_second > 0 ? "/s" : "");
    draw_bar(progress, now, done, total, what);
}

static void leave_phase(struct progress *progress)
{
    progress->phase[0] = '\0'; // the next phase may have the same name, for a second file
    progress_clear();
}

void progress_bytes(struct progress *progress, const char *phase, int64_t done, int64_t total,
                    int64_t total_bytes)
{
    char size[16], rate[32];
    const double now = MPI_Wtime();
    progress->total_bytes = total_bytes;
    const bool due = is_due(progress, now, phase, done, total);
    if (due && progress->form == PROGRESS_BAR)
        draw_bytes(progress, now, done, total);
    else if (due)
        write_line(progress, now, "%s %.0f %% of %s%s", progress->phase,
                   total > 0 ? 100 * (double)done / (double)total : 100.0, progress_size(total_bytes, size),
                   rate_text(progress, now, done, total, rate));
    if (done >= total)
        leave_phase(progress);
}

void progress_steps(void *user, const char *phase, int64_t done, int64_t total)
{
    struct progress *progress = user;
    char size[16], of[32] = "", what[64];
    const double now = MPI_Wtime();
    if (progress->total_bytes > 0)
        snprintf(of, sizeof of, " of %s", progress_size(progress->total_bytes, size));
    const bool due = is_due(progress, now, phase, done, total);
    if (due && progress->form == PROGRESS_BAR) {
        snprintf(what, sizeof what, "step %" PRId64 " of %" PRId64 "%s", done, total, of);
        draw_bar(progress, now, done, total, what);
    } else if (due && total > 1) {
        write_line(progress, now, "%s%s: step %" PRId64 " of %" PRId64, progress->phase, of, done, total);
    } else if (due) {
        write_line(progress, now, "%s%s: done", progress->phase, of);
    }
    if (done >= total)
        leave_phase(progress);
}
