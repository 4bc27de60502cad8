/* Progress of a command: whole lines on stderr from rank 0, each of which can be understood alone, since a
 * log may hold several jobs, starts of one job, and what the scheduler says between them:
 *
 *     hypersort: job 4711_3 15:17:30 132 s  write 43 % of 512.00 GiB  (1.21 GiB/s)
 *                ^ of an array: task 3      ^ since the command was started
 *                           ^ of the day: the scheduler's own lines have it too
 *
 * No line is ever overwritten: under mpirun nothing tells a terminal from a file. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include "src/command/job.h"

struct progress {
    bool shown;          /* on rank 0, if it was asked for */
    struct job job;      /* without hosts */
    double start;        /* MPI_Wtime() of progress_start() */
    int64_t total_bytes; /* of the phases so far that had any; 0: none yet */
    /* of the phase under way; `phase` is "" between two: */
    char phase[16];
    double phase_start, last_line; /* of its first call; of its last line, or of its first call */
    double interval;               /* that must pass until the next line */
    int64_t first_done;            /* at its first call */
};

/* Not collective. */
void progress_start(struct progress *progress, bool shown);

/* Say how far a phase is that handles `total_bytes` on all ranks, if this is its end or if it is time: within
 * a phase 1, 2, 4 and 8 seconds after the line before, then every 10. Early lines show that it works and how
 * fast; later ones, that it still does, without filling the log of a long job. The interval grows no further,
 * so that who has seen nothing for a quarter of a minute knows that something is wrong. Rank 0's own share
 * stands for the whole: `done` of `total` are its keys. The rate is that since the first call of the phase,
 * whose own chunk is not in it. Not collective. */
void progress_bytes(struct progress *progress, const char *phase, int64_t done, int64_t total,
                    int64_t total_bytes);

/* The same for steps; an hsort_progress_fn, with a struct progress as `user`. Not collective. */
void progress_steps(void *user, const char *phase, int64_t done, int64_t total);

/* `bytes` in words, such as "4.00 GiB"; text is [16]. Returns text. Not collective. */
const char *progress_size(int64_t bytes, char *text);

#endif
