#include "src/command/stop.h"
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include "src/command/report.h"

/* The first signal. Later signals say nothing new, and must not disturb what the first one began. */
static volatile sig_atomic_t caught;

static void keep_signal(int signal_number)
{
    if (!caught)
        caught = signal_number;
}

/* What the signals did before stop_watch(). */
static struct {
    bool watched;
    struct sigaction usr1, term;
    sigset_t mask;
} before;

void stop_watch(void)
{
    if (before.watched)
        return;
    // SA_RESTART: a read or a write under way must not fail because the process is asked to stop.
    struct sigaction action = {.sa_handler = keep_signal, .sa_flags = SA_RESTART};
    sigset_t signals;
    sigemptyset(&action.sa_mask);
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    caught = 0;
    before.watched = true;
    sigaction(SIGUSR1, &action, &before.usr1);
    sigaction(SIGTERM, &action, &before.term);
    // A launcher that blocks signals for itself passes that on to its children.
    sigprocmask(SIG_UNBLOCK, &signals, &before.mask);
}

void stop_unwatch(void)
{
    if (!before.watched)
        return;
    before.watched = false;
    sigaction(SIGUSR1, &before.usr1, NULL);
    sigaction(SIGTERM, &before.term, NULL);
    const int late = caught; // not read earlier, because a signal may come until now
    caught = 0;
    sigprocmask(SIG_SETMASK, &before.mask, NULL);
    if (late)
        raise(late);
}

int stop_signal(void)
{
    return caught;
}

int stop_is_asked(void *unused)
{
    (void)unused;
    return stop_signal() != 0;
}

const char *stop_signal_name(int signal_number)
{
    return signal_number == SIGUSR1 ? "SIGUSR1" : signal_number == SIGTERM ? "SIGTERM" : "no signal";
}

hsort_status stop_agree(struct comm *comm, int *asked)
{
    int64_t greatest = 0;
    hsort_status status = comm_range(comm, stop_signal(), NULL, &greatest);
    *asked = (int)greatest;
    return status;
}

hsort_status stop_say(struct comm *comm, const char *phase, const char *directory, bool kept)
{
    int asked;
    bool some;
    TRY(stop_agree(comm, &asked));
    TRY(comm_any(comm, kept, &some));
    return report_fail(comm, HSORT_STOPPED,
                       "stopped by %s while %s; %s/manifest says how far it got: the same command %s",
                       stop_signal_name(asked), phase, directory,
                       some ? "goes on from there" : "begins anew, because nothing has been made yet");
}

/* ---- Votes --------------------------------------------------------------------------------------------- */

/* Why a rank wants the phase to be left; the greatest of all ranks' reasons counts. Ranks agree on a failure
 * later, so a stop may hide it here. */
enum leave { STAY, FAILED, ASKED };

/* Begin the next vote. The vote before must be done, because MPI reads `mine` until then. */
static void cast_vote(struct stop_vote *vote, enum leave reason, bool done)
{
    vote->mine[0] = stop_signal() ? ASKED : (int)reason;
    vote->mine[1] = !done;
    vote->status = comm_check(
        MPI_Iallreduce(vote->mine, vote->all, 2, MPI_INT, MPI_MAX, vote->comm->world, &vote->request),
        "MPI_Iallreduce", false);
    vote->over = vote->status != HSORT_OK;
}

/* The vote under way is done: is the phase over? */
static void count_votes(struct stop_vote *vote)
{
    vote->over = vote->all[0] != STAY || vote->all[1] == 0;
}

void stop_vote_begin(struct stop_vote *vote, struct comm *comm)
{
    *vote = (struct stop_vote){.comm = comm};
    cast_vote(vote, STAY, false);
}

bool stop_vote_seen(struct stop_vote *vote)
{
    int done = 0;
    if (vote->over)
        return true;
    vote->status = comm_check(MPI_Test(&vote->request, &done, MPI_STATUS_IGNORE), "MPI_Test", false);
    if (vote->status != HSORT_OK)
        vote->over = true;
    else if (done)
        count_votes(vote);
    // The next vote will say that this rank was asked, so there is no need to move another chunk until then.
    vote->left = !vote->over && stop_signal() != 0;
    if (done && !vote->over)
        cast_vote(vote, STAY, false);
    return vote->over || vote->left;
}

hsort_status stop_vote_end(struct stop_vote *vote, hsort_status mine, bool *stopped)
{
    while (!vote->over) {
        vote->status = comm_check(MPI_Wait(&vote->request, MPI_STATUS_IGNORE), "MPI_Wait", false);
        vote->over = vote->status != HSORT_OK;
        if (!vote->over)
            count_votes(vote);
        if (!vote->over)
            cast_vote(vote, mine != HSORT_OK ? FAILED : STAY, !vote->left);
    }
    *stopped = vote->status == HSORT_OK && vote->all[0] == ASKED && vote->all[1] != 0;
    return mine != HSORT_OK ? mine : vote->status;
}

/* ---- For tests ----------------------------------------------------------------------------------------- */

void stop_hold(enum fault_site site, const char *where, struct stop_vote *vote)
{
    enum { NAPS_PER_SECOND = 100, SECONDS = 120 };
    const struct timespec nap = {.tv_nsec = 1000000000 / NAPS_PER_SECOND};
    if (!fault_hit(site))
        return;
    fprintf(stderr, "hypersort: held %s\n", where);
    for (int naps = 0; naps < SECONDS * NAPS_PER_SECOND; naps++) {
        if (stop_signal() || (vote && stop_vote_seen(vote)))
            return;
        nanosleep(&nap, NULL);
    }
}
