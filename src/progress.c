#include "progress.h"
#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>

void progress_start(struct progress *progress, bool shown)
{
    progress->shown = shown;
    progress->last_line = MPI_Wtime();
}

static bool is_due(struct progress *progress, int64_t done, int64_t total)
{
    const double now = MPI_Wtime();
    if (!progress->shown || (done < total && now - progress->last_line < 1))
        return false;
    progress->last_line = now;
    return true;
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

void progress_bytes(struct progress *progress, const char *phase, int64_t done, int64_t total,
                    int64_t total_bytes)
{
    char size[16];
    if (is_due(progress, done, total))
        fprintf(stderr, "hypersort: %s %.0f %% of %s\n", phase,
                total > 0 ? 100 * (double)done / (double)total : 100.0, progress_size(total_bytes, size));
}

void progress_steps(void *user, const char *phase, int64_t done, int64_t total)
{
    if (is_due(user, done, total))
        fprintf(stderr, "hypersort: %s %" PRId64 " of %" PRId64 "\n", phase, done, total);
}
