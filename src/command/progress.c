#include "src/command/progress.h"
#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void progress_start(struct progress *progress, bool shown)
{
    *progress = (struct progress){.shown = shown, .start = MPI_Wtime()};
    job_find(&progress->job);
}

const char *progress_size(int64_t bytes, char *text)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double size = (double)bytes;
    int unit = 0;
    for (; size >= 1024; unit++)
        size /= 1024;
    snprintf(text, 16, unit == 0 ? "%.0f %s" : "%.2f %s", size, units[unit]);
    return text;
}

/* Note that `done` of `total` are done at `now`; is a line due? */
static bool is_due(struct progress *progress, double now, const char *phase, int64_t done, int64_t total)
{
    const double first_interval = 1, last_interval = 10;
    if (strncmp(progress->phase, phase, sizeof progress->phase - 1) != 0) {
        snprintf(progress->phase, sizeof progress->phase, "%s", phase);
        progress->phase_start = progress->last_line = now;
        progress->interval = first_interval;
        progress->first_done = done;
    }
    if (!progress->shown || (done < total && now - progress->last_line < progress->interval))
        return false;
    progress->last_line = now;
    progress->interval = 2 * progress->interval < last_interval ? 2 * progress->interval : last_interval;
    return true;
}

/* Write one line, in one chunk, which stays whole among those that other processes write to the same log. */
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
    // Nobody is told when it fails: there is no other place to say so, and a sort goes on without its log.
    for (int at = 0; at < length;) {
        const ssize_t written = write(STDERR_FILENO, line + at, (size_t)(length - at));
        if (written < 0 && errno != EINTR)
            break;
        at += written > 0 ? (int)written : 0;
    }
}

/* "  (1.21 GiB/s)", or "" where there is none: at the first call of a phase. text is [32]. Returns text. */
static const char *rate_text(const struct progress *progress, double now, int64_t done, int64_t total,
                             char *text)
{
    char size[16];
    const double seconds = now - progress->phase_start;
    const double share = (double)(done - progress->first_done) / (double)total;
    text[0] = '\0';
    if (seconds > 0 && share > 0 && share * (double)progress->total_bytes / seconds < 1e18)
        snprintf(text, 32, "  (%s/s)",
                 progress_size((int64_t)(share * (double)progress->total_bytes / seconds), size));
    return text;
}

void progress_bytes(struct progress *progress, const char *phase, int64_t done, int64_t total,
                    int64_t total_bytes)
{
    char size[16], rate[32];
    const double now = MPI_Wtime();
    progress->total_bytes = total_bytes;
    if (is_due(progress, now, phase, done, total))
        write_line(progress, now, "%s %.0f %% of %s%s", progress->phase,
                   total > 0 ? 100 * (double)done / (double)total : 100.0, progress_size(total_bytes, size),
                   rate_text(progress, now, done, total, rate));
    if (done >= total)
        progress->phase[0] = '\0'; // the next one may have the same name: of a second file
}

void progress_steps(void *user, const char *phase, int64_t done, int64_t total)
{
    struct progress *progress = user;
    char size[16], of[32] = "";
    const double now = MPI_Wtime();
    if (progress->total_bytes > 0)
        snprintf(of, sizeof of, " of %s", progress_size(progress->total_bytes, size));
    if (is_due(progress, now, phase, done, total)) {
        if (total > 1)
            write_line(progress, now, "%s%s: step %" PRId64 " of %" PRId64, progress->phase, of, done, total);
        else
            write_line(progress, now, "%s%s: done", progress->phase, of);
    }
    if (done >= total)
        progress->phase[0] = '\0';
}
