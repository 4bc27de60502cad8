/* Fault sites: places that can be made to fail on purpose, to prove that every rank hears of it and none
 * hangs.
 *
 * They exist only where HSORT_FAULTS is defined (-DHYPERSORT_FAULTS=ON, the test build); elsewhere
 * fault_hit() is the constant false. The command and the test programs arm them from the environment:
 *
 *     HYPERSORT_FAULT=SITE:RANK[:NTH]      rank RANK fails at its NTH passage of SITE (default 1);
 *                                          several, of different sites or ranks, with commas between them
 *
 * Nothing fails at the sites hold...: the rank waits there, so that a test can stop or kill a run in a phase
 * of its choice. Nothing fails at blocks... either: the GPU looks older or smaller than it is.
 *
 * A leaf: every layer may include it. */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>

/* X(name, word in the environment): what the passage stands for */
#define FAULT_SITE_LIST(X)                                                                                \
    X(FAULT_ALLOC, "alloc")          /* memory of the engine or the host cannot be had */                 \
    X(FAULT_PIN, "pin")              /* no memory can be pinned for slots */                              \
    X(FAULT_READ, "read")            /* pread fails */                                                    \
    X(FAULT_SHORT, "short")          /* pread finds the end of the file too early */                      \
    X(FAULT_WRITE, "write")          /* pwrite fails: no space left */                                    \
    X(FAULT_COMMIT, "commit")        /* fsync or close fails */                                           \
    X(FAULT_MPI, "mpi")              /* a message of the exchange is reported as failed */                \
    X(FAULT_KERNEL, "kernel")        /* a kernel, or the host form of it, fails */                        \
    X(FAULT_COPY, "copy")            /* a copy to, from or inside the engine's memory fails */            \
    X(FAULT_KILL, "kill")            /* the process is killed outright: between local sort and exchange, or as it \
                                        sends a message of partition */                                   \
    X(FAULT_CHANGED, "changed")      /* an input looks as if it was changed while it was read */          \
    X(FAULT_TERM, "term")            /* SIGTERM comes as soon as the temporary output is there */         \
    X(FAULT_HOLD_READ, "holdread")   /* the command waits before a chunk is read: see stop_hold() */      \
    X(FAULT_HOLD_SORT, "holdsort")   /* ... between local sort and exchange */                            \
    X(FAULT_HOLD_WRITE, "holdwrite") /* ... before a chunk is written */                                  \
    X(FAULT_HOLD_DEAL, "holddeal")   /* ... before sorted elements are dealt out to several files */      \
    X(FAULT_DIRECT, "direct")        /* O_DIRECT is refused: at open, or at a later request */            \
    X(FAULT_LEFT, "left")            /* more keys of regions seem to be left unsorted than can be settled */ \
    X(FAULT_APART, "apart")          /* a collective step of HDF5 fails on one rank, for which the others then wait */ \
    X(FAULT_BLOCKS_163, "blocks163") /* blocks of the GPU seem to have 163 KiB of shared memory */        \
    X(FAULT_BLOCKS_96, "blocks96")   /* ... 96 KiB */                                                     \
    X(FAULT_REGIONS, "regions")      /* keys seem to be too many for the usual regions of a GPU's sort */

enum fault_site {
#define X(name, word) name,
    FAULT_SITE_LIST(X)
#undef X
    FAULT_SITES
};

#ifdef __cplusplus
extern "C" {
#endif

#ifdef HSORT_FAULTS
/* Read HYPERSORT_FAULT and arm its site if it names this rank. Not collective. */
void fault_arm(int rank);

/* Make the nth next passage of `site` on this rank fail; 0 disarms it. Not collective. */
void fault_set(enum fault_site site, int nth);

/* Count a passage; true where it is the one that must fail. Not collective; any thread. */
bool fault_hit(enum fault_site site);

/* While paused, no site counts passages: for code in which a failure would go unnoticed, and so prove
 * nothing. Not collective; for all threads. */
void fault_pause(bool paused);
#else
static inline void fault_pause(bool paused)
{
    (void)paused;
}
static inline void fault_arm(int rank)
{
    (void)rank;
}
static inline bool fault_hit(enum fault_site site)
{
    (void)site;
    return false;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
