/* How tests walk the passages of a fault site: arm the 1st, the 2nd, ... until one is never reached. */
#ifndef FAULTS_H
#define FAULTS_H

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include "kernels/base/fault.h"

#ifdef HSORT_FAULTS
static inline const char *fault_word(enum fault_site site)
{
    static const char *const words[FAULT_SITES] = {
#define X(name, word) word,
        FAULT_SITE_LIST(X)
#undef X
    };
    return words[site];
}

/* After fault_set(site, nth): was the nth passage never reached? Disarms the site. Not collective. */
static inline bool fault_untouched(enum fault_site site, int nth)
{
    bool armed = false;
    for (int passage = 0; passage < nth; passage++)
        armed = fault_hit(site) || armed;
    fault_set(site, 0);
    return armed;
}
#endif

static char faults_case[128];

static void faults_hang(int signal_number)
{
    (void)signal_number;
    static const char text[] = "hangs: ";
    if (write(STDERR_FILENO, text, sizeof text - 1) > 0 &&
        write(STDERR_FILENO, faults_case, strlen(faults_case)) > 0 && write(STDERR_FILENO, "\n", 1) > 0)
        _exit(1);
    _exit(1);
}

/* End the process, naming faults_case, unless this is called again within `seconds`; 0 stops the watch. */
static inline void faults_watch(unsigned seconds)
{
    signal(SIGALRM, faults_hang);
    alarm(seconds);
}

#endif
