/* Progress of a command: whole lines on stderr from rank 0. No line is ever overwritten: under mpirun nothing
 * tells a terminal from a file. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool shown;       /* on rank 0, if it was asked for */
    double last_line; /* MPI_Wtime() of the line before, or of the start */
};

/* Not collective. */
void progress_start(struct progress *progress, bool shown);

/* Say how far a phase is that handles `total_bytes` on all ranks, if this is its end or a second has passed
 * since the line before. Rank 0's own share stands for the whole: `done` of `total` are its keys. Not
 * collective. */
void progress_bytes(struct progress *progress, const char *phase, int64_t done, int64_t total,
                    int64_t total_bytes);

/* The same for steps; an hsort_progress_fn, with a struct progress as `user`. Not collective. */
void progress_steps(void *user, const char *phase, int64_t done, int64_t total);

/* `bytes` in words, such as "4.00 GiB"; text is [16]. Returns text. Not collective. */
const char *progress_size(int64_t bytes, char *text);

#endif
