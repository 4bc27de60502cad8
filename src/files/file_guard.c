#include "src/files/file_guard.h"
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include "src/files/file.h"

/* The first FILE_STOP_SIGNALS ask a run with a checkpoint to stop: they are stop.h's then. */
static const int guarded_signals[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGQUIT, SIGUSR2, SIGXCPU};
enum { GUARDED_SIGNALS = sizeof guarded_signals / sizeof *guarded_signals };

static struct {
    bool taken;
    char temporary[PATH_MAX];
    char next[FILE_GUARD_NEXT][PATH_MAX]; /* with own files, the temporaries of the next ranks, or "" */
    volatile sig_atomic_t exists;         /* the temporary is there, and ours */
} guards[FILE_OUTPUTS];

/* What the signals did before, from the first that is guarded. */
static struct {
    bool installed;
    int first; /* of guarded_signals */
    struct sigaction previous[GUARDED_SIGNALS];
} actions;

static void remove_and_stop(int signal_number)
{
    for (int i = 0; i < FILE_OUTPUTS; i++) {
        if (!guards[i].exists)
            continue;
        for (int rank = 0; rank < FILE_GUARD_NEXT;
             rank++) // first those of other ranks: nobody else may think of the file of a killed rank
            if (guards[i].next[rank][0])
                unlink(guards[i].next[rank]);
        unlink(guards[i].temporary);
    }
    // SA_RESETHAND has restored the default action; it is taken when this handler returns.
    raise(signal_number);
}

void file_guard_begin(int guard, const char *temporary, int first)
{
    snprintf(guards[guard].temporary, sizeof guards[guard].temporary, "%s", temporary);
    for (int rank = 0; rank < FILE_GUARD_NEXT; rank++)
        guards[guard].next[rank][0] = '\0';
    if (actions.installed)
        return;
    actions.first = first;
    for (int i = first; i < GUARDED_SIGNALS; i++) {
        struct sigaction action = {.sa_handler = remove_and_stop, .sa_flags = SA_RESETHAND};
        sigemptyset(&action.sa_mask);
        sigaction(guarded_signals[i], NULL, &actions.previous[i]);
        // A signal that nohup made the process ignore stays ignored.
        if (actions.previous[i].sa_handler != SIG_IGN)
            sigaction(guarded_signals[i], &action, NULL);
    }
    actions.installed = true;
}

int file_guard_take(void)
{
    for (int i = 0; i < FILE_OUTPUTS; i++)
        if (!guards[i].taken) {
            guards[i].taken = true;
            return i;
        }
    return -1;
}

void file_guard_end(int guard)
{
    bool any = false;
    guards[guard].exists = 0;
    guards[guard].taken = false;
    for (int i = 0; i < FILE_OUTPUTS; i++)
        any = any || guards[i].taken;
    for (int i = actions.first; !any && actions.installed && i < GUARDED_SIGNALS; i++)
        sigaction(guarded_signals[i], &actions.previous[i], NULL);
    actions.installed = actions.installed && any;
}

volatile sig_atomic_t *file_guard_exists(int guard)
{
    return &guards[guard].exists;
}

const char *file_guard_temporary(int guard)
{
    return guards[guard].temporary;
}

char *file_guard_next(int guard, int i)
{
    return guards[guard].next[i];
}
