/* What a stop signal removes: the temporaries of the outputs under way. A handler can only know static names, so there is room
 * for FILE_OUTPUTS of them. Nothing here is collective. */
#ifndef FILE_GUARD_H
#define FILE_GUARD_H

#include <signal.h>

/* The first of the guarded signals, SIGTERM and SIGUSR1, which belong to stop.h in a run with a checkpoint. */
enum { FILE_STOP_SIGNALS = 2 };

/* Take a place for an output. It is the same on every rank, because all ranks have the same outputs; -1: none is free.
 * file_guard_end() gives it back. */
int file_guard_take(void);

/* Be ready to remove `temporary`, on the guarded signals from number `first` on, which is the same for all outputs at a time. */
void file_guard_begin(int guard, const char *temporary, int first);

/* Is the temporary there, and ours? The creator of the temporary sets this; from then on a signal removes it. */
volatile sig_atomic_t *file_guard_exists(int guard);

const char *file_guard_temporary(int guard);

/* With own files, the temporaries of the next ranks are removed as well: [PATH_MAX] that of the rank `i` + 1 further on, or "".
 * There are several, because a launcher that stops the other ranks after one was killed may kill them, too, some milliseconds
 * later: a rank may then not get as far as its last file. */
enum { FILE_GUARD_NEXT = 2 };
char *file_guard_next(int guard, int i);

void file_guard_end(int guard);

#endif
