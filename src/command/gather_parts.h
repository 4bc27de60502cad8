/* The elements that an index names, of arrays that need not fit into memory: one part of the result after another, each from one piece of
 * the elements after another.
 *
 *     elements  a b | c d | e f     three pieces        index  5 0 2 3 | 1 0 1 0     two parts
 *
 *     part 0    entries by pieces: 1 | 2 3 | 0          piece 0 fills . a . .  piece 1 . a c d  piece 2 f a c d, which is written
 *     part 1                       0 1 2 3 | |          piece 0 fills b a b a; pieces that no rank's entries name are not read
 *
 * So elements are read as often as there are parts. If memory suffices for all elements there is one piece, which is read once, and if it
 * suffices for everything there is one part.
 *
 * What was gathered is checked by marks. A mark is a word made of an element and its position; marks are gathered by the same index:
 *
 *     elements   a b c     marks   a0 b1 c2      index   2 0 0      gathered   c a a      marks   c2 a0 a0
 *     made anew of what lies in the result and of the index: c2 a0 a0. A wrong or spoiled element has another mark
 *
 * Rejected: a sum over all elements, which says nothing unless the index names each element once. Entries sorted by what they name, by way
 * of the disk, and elements then by where they go: the elements would be read once, but entries and elements would also be written and read
 * as runs, twice, and there would have to be a disk with room for them. */
#ifndef GATHER_PARTS_H
#define GATHER_PARTS_H

#include "hypersort.h"
#include "mpi/comm/comm.h"

struct gather_parts {
    struct comm *comm; /* borrowed, like all that follows */
    hsort_context *ctx;
    const char *in_name, *by_name; /* for error lines */
    int64_t total;                 /* elements */
    size_t element_bytes;
    int64_t entries;       /* of all ranks; a rank's share is launch_share()'s */
    hsort_type index_type; /* i64 or u64 */
    size_t memory_bytes;   /* that a rank may take; the same on every rank */
    int64_t step; /* elements that are best read together, from a multiple of their number on; at least 1 */
    bool checks;  /* look at what was gathered */
    /* Read some elements, or entries, which may be any numbers. Not collective. */
    hsort_status (*read)(void *user, int64_t first, int64_t count, void *elements);
    hsort_status (*read_index)(void *user, int64_t first, int64_t count, int64_t *index);
    /* Write a part of the result. Collective: each rank writes what is its own, maybe nothing. Errors agreed. */
    hsort_status (*write)(void *user, int64_t first, int64_t count, const void *elements);
    /* Look at the statistics of a call of the library. Not collective. */
    hsort_status (*count_call)(void *user);
    void *user; /* handed to these */

    /* written: */
    double gather_seconds, check_seconds; /* of this rank */
    int64_t readings;                     /* of the elements, at most */
    bool whole;       /* there are one part and one piece; known before anything is read */
    bool elements_ok; /* if `checks`: all that was looked at is what the index names */
};

/* Read, gather, check and write all entries. Collective.
 * Memory   memory_bytes in host memory, but at least 64 KiB, and a few elements or a 4096th of what a rank would hold of all.
 * Errors   the same on every rank: the callers' functions'; HSORT_ARGUMENT: an entry names no element; HSORT_MISMATCH: what was gathered
 *          is not what the index names; hsort_gather()'s; HSORT_HOST_MEMORY, also if elements would be read hundreds of times. What has
 *          been written then is of no use. */
hsort_status gather_in_parts(struct gather_parts *parts);

#endif
