/* Progress of a command, on rank 0's stderr, in one of two forms.
 *
 * Lines, each of which can be understood alone, because a log may hold several jobs, several starts of one job, and what the scheduler
 * says between them:
 *
 *     hypersort: job 4711_3 15:17:30 132 s  write 43 % of 512.00 GiB  (1.21 GiB/s)
 *                ^ of an array: task 3      ^ since the command was started
 *                           ^ of the day: the scheduler's own lines have it too
 *
 * A bar, if stderr is a terminal: one line, which is drawn again in its place, and gone when its phase has ended.
 *
 *     write   43 % [############----------------]  220.16 GiB of 512.00 GiB  1.21 GiB/s  4:02 left
 *
 * mpirun makes stderr a pipe, and nothing then tells a terminal from a file: there are no bars, and lines only on demand. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdint.h>
#include "src/command/job.h"

/* What --progress says; without a value it means the first. X(name, word) */
#define PROGRESS_CHOICE_LIST(X)                                                                     \
    X(PROGRESS_ON, "on")     /* a bar on a terminal, else lines */                                  \
    X(PROGRESS_AUTO, "auto") /* a bar on a terminal, else nothing: a log is read by other people */ \
    X(PROGRESS_OFF, "off")

enum progress_choice {
#define X(name, word) name,
    PROGRESS_CHOICE_LIST(X)
#undef X
};

enum progress_form { PROGRESS_NONE, PROGRESS_LINES, PROGRESS_BAR };

struct progress {
    enum progress_form form; /* NONE on all ranks but 0 */
    struct job job;      /* without hosts */
    double start;        /* MPI_Wtime() of progress_start() */
    int64_t total_bytes; /* of the last phase that had any; 0: none yet */
    /* of the phase under way; `phase` is "" between two: */
    char phase[16];
    double phase_start, last_line; /* times of its first call; of its last line, or else of its first call */
    double interval;               /* that must pass until the next line */
    int64_t first_done;            /* what was done at its first call */
};

/* The form for this rank. No bar is drawn where TERM is "dumb" or not set. Not collective. */
enum progress_form progress_choose(enum progress_choice choice, int rank);

/* Not collective. */
void progress_start(struct progress *progress, enum progress_form form);

/* Remove a bar that stands on the terminal: before anything else is written there. Not collective. */
void progress_clear(void);

/* Say how far a phase is that handles `total_bytes` on all ranks, if the phase ends or if a line is due: within
 * a phase 1, 2, 4 and 8 seconds after the line before, then every 10. Early lines show that the command works and how
 * fast; later lines show that it still works, without filling the log of a long job. The interval grows no further,
 * so that somebody who sees nothing for a quarter of a minute knows that something is wrong. Rank 0's own share
 * stands for the whole: `done` of `total` are its keys. The rate counts from the first call of the phase on, without the
 * chunk before that call. A bar is drawn a few times a second. Not collective. */
void progress_bytes(struct progress *progress, const char *phase, int64_t done, int64_t total,
                    int64_t total_bytes);

/* The same for a phase of steps: an hsort_progress_fn, with a struct progress as `user`. Not collective. */
void progress_steps(void *user, const char *phase, int64_t done, int64_t total);

/* `bytes` in words, such as "4.00 GiB"; text is [16]. Returns text. Not collective. */
const char *progress_size(int64_t bytes, char *text);
const char *progress_size_real(double bytes, char *text);

#endif
