/* A sort that is asked to stop, by SIGUSR1 or SIGTERM, and how all ranks hear of it at once.
 *
 * A handler only keeps the number of the signal. Ranks look at it where a sort can be left, at the safe points,
 * and agree there: it is enough that one rank was asked. Between two agreements ranks may read or write for
 * minutes, each at its own pace, so in these phases they vote while they work:
 *
 *     rank 0   chunk  chunk  chunk   chunk ...            one MPI_Iallreduce is under way at any time; after each chunk a
 *     rank 1   chunk    chunk  chunk    chunk ...         rank checks whether it is done, and if so starts the next one
 *              '-- vote 1 --''-- vote 2 --''-- vote 3
 *
 * All ranks see the same votes, so all leave at the same vote: when some rank was asked to stop, or failed, or
 * when all ranks are done. A rank that was asked itself leaves at once, and waits in stop_vote_end() for the
 * others to hear of it. No other rank waits before it is done; a barrier after every chunk would make each
 * chunk as slow as the slowest rank's. */
#ifndef STOP_H
#define STOP_H

#include <stdbool.h>
#include "mpi/comm/comm.h"
#include "kernels/base/fault.h"

/* From now on SIGUSR1 and SIGTERM are kept, not obeyed, and no signal has come yet. They are also unblocked, if a launcher left them
 * blocked. To be called before MPI_Init(), which may take long. If they are watched already, nothing changes. Not collective. */
void stop_watch(void);

/* Nobody looks any more: the signals do again what they did before, and a signal that was kept does it now. Not collective. */
void stop_unwatch(void);

/* The signal that asked this process to stop, or 0. Not collective. */
int stop_signal(void);

/* hsort_should_stop_fn: was this process asked to stop? Not collective. */
int stop_is_asked(void *unused);

/* "SIGUSR1", "SIGTERM". Not collective. Static. */
const char *stop_signal_name(int signal_number);

/* *asked = the signal, the same on every rank, if one or more ranks were asked to stop; else 0. Waits for
 * all ranks, so it is called only where they are together anyway. Collective. */
hsort_status stop_agree(struct comm *comm, int *asked);

/* Put the line of a sort that was stopped while `phase`, with its manifest in `directory`, into comm->error, the same on every rank.
 *   kept  has this rank, or one of an earlier start, made anything that the next start need not make again? One such rank is enough
 * Collective. Errors HSORT_STOPPED: always, except HSORT_MPI. */
hsort_status stop_say(struct comm *comm, const char *phase, const char *directory, bool kept);

/* A vote under way during a phase. */
struct stop_vote {
    struct comm *comm;
    MPI_Request request;
    int mine[2], all[2]; /* enum leave, not done */
    bool left;           /* this rank was asked to stop, and has left with work undone */
    bool over;
    hsort_status status; /* of MPI */
};

/* Begin a vote; every rank then calls stop_vote_end(). Collective. */
void stop_vote_begin(struct stop_vote *vote, struct comm *comm);

/* Before each chunk: is this phase to be left now? Never waits. Not collective. */
bool stop_vote_seen(struct stop_vote *vote);

/* This rank has nothing left to do, or has failed, or has left: wait for the others. Collective.
 *   mine     this rank's status of the phase; a failure makes the others leave too
 *   stopped  [1] written, the same on every rank: some rank left work undone because a rank was asked to stop. If all work of
 *            the phase is done, the phase is not stopped; the next one will be
 * Errors   `mine`, or HSORT_MPI; the caller agrees on it. */
hsort_status stop_vote_end(struct stop_vote *vote, hsort_status mine, bool *stopped);

/* For the fault sites hold...: if the fault at `site` (fault.h) is due now, print "hypersort: held WHERE" on
 * stderr and wait until this process is asked to stop, or `vote`, if not NULL, is over; 120 seconds at most.
 * Not collective. */
void stop_hold(enum fault_site site, const char *where, struct stop_vote *vote);

#endif
