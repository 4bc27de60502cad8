/* Keys at some positions among more keys than memory holds. They are read again and again, and counted by ranges of their codes, until few
 * enough lie in the ranges in which the wanted positions are:
 *
 *     position 9 of 16 keys    0 . . . . 4 . . 7 8 . . . . b c . f     codes of 4 bits
 *     reading 1, 4 bins        5         3       6           2         position 9 lies in 8 .. b, behind 8 lower keys
 *     reading 2                                8: 1  9: 4  a: 0  b: 1  it is 9, because 9 to 12 are
 *     or, if 6 keys fit        keys 8 .. b are kept, and the one at position 9 - 8 of them is selected
 *
 * The first reading makes the range 2^16 times as small, the next ones each range at least 2^7 times, whatever the keys. Rejected: splitters
 * from a sample, which would be even where keys crowd. They save no reading: one to count remains, and one to keep. */
#ifndef SELECT_RANGES_H
#define SELECT_RANGES_H

#include "kernels/base/keytype.h"
#include "mpi/comm/comm.h"

/* Codes first .. last, between which wanted positions lie. */
struct code_range {
    key_code first, last; /* equal: every position in it has this code */
    int64_t below, count; /* keys of all ranks with lower codes, and in the range */
    int64_t own;          /* keys of this rank in the range */
};

/* Where the codes of this rank come from. */
struct code_reader {
    /* Read them all, in the same order each time, and show them in parts. Not collective. */
    hsort_status (*read)(void *user, void (*see)(void *seer, const void *codes, int64_t count), void *seer);
    void *user;
    const char *name; /* of the input, for texts */
    size_t bytes;       /* of memory that read() takes */
    int threads;        /* of this rank */
    int code_bytes;     /* 8 or 16 */
    int64_t own, total; /* codes of this rank, and of all */
};

struct code_selection {
    struct code_range *range; /* [ranges] ascending, disjoint; owned */
    int ranges;
    void *codes; /* [count] this rank's codes in the ranges of more than one code, in no order; owned */
    int64_t count;
    int readings;
};

/* Find the ranges of `positions` [wanted], and keep the codes that lie in them. Collective.
 *   positions  ascending
 *   most       codes that this rank may keep
 *   selection  freed by select_ranges_free(), also after an error
 * Memory   at most 1 MiB for each thread, beside that.
 * Errors   same on every rank: the reader's, HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status select_ranges_find(struct comm *comm, const struct code_reader *reader, const int64_t *positions,
                                int wanted, int64_t most, struct code_selection *selection);

/* The range of a position, and the position among the kept codes of all ranks, or -1 if the range has one code. Pure. */
int select_ranges_place(const struct code_selection *selection, int64_t position, int64_t *among_kept);

void select_ranges_free(struct code_selection *selection);

#endif
