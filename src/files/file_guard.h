/* What a stop signal removes: the temporaries of the outputs under way. A handler can only know static names, so there is room
 * for FILE_OUTPUTS of them. Not collective. */
#ifndef FILE_GUARD_H
#define FILE_GUARD_H

#include <signal.h>

/* Of the signals that are guarded the first ones, SIGTERM and SIGUSR1, which stop.h has in a run with a checkpoint. */
enum { FILE_STOP_SIGNALS = 2 };

/* A place for an output: the same on every rank, which all have the same outputs; or -1. file_guard_end() gives it back. */
int file_guard_take(void);

/* Be ready to remove `temporary`, on the signals from the `first` on, which is the same for all outputs at a time. */
void file_guard_begin(int guard, const char *temporary, int first);

/* Is the temporary there, and ours? Written by who creates it: from then on it is removed. */
volatile sig_atomic_t *file_guard_exists(int guard);

const char *file_guard_temporary(int guard);

/* Of own files the temporaries of the next ranks, which are removed as well: [PATH_MAX] that of the rank `i` + 1 further, or "".
 * Of several, since launchers that stop the other ranks of one that was killed may kill them too, some milliseconds later: a rank
 * may then not get as far as its last file. */
enum { FILE_GUARD_NEXT = 2 };
char *file_guard_next(int guard, int i);

void file_guard_end(int guard);

#endif
