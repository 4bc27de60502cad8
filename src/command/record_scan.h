/* Are records in order, and which are they? Each rank hands in its part, in pieces that follow each other.
 *
 *     rank 0   a1 a2 b1          in order: each code is no less than the one before it, also over the border of ranks
 *     rank 1   b4 c0             stable: of equal keys (b) the numbers (1, 4) rise
 *
 * The fingerprint is that of the multiset of all that belongs to a record: its bytes, its value's, its number. */
#ifndef RECORD_SCAN_H
#define RECORD_SCAN_H

#include "mpi/comm/comm.h"
#include "src/command/record_keys.h"

/* Some records, and what belongs to each. */
struct record_rows {
    const void *records; /* [count * record_bytes] */
    size_t record_bytes;
    const void *values; /* [count * value_bytes], or NULL */
    size_t value_bytes;
    bool numbered;        /* a record has a number: */
    const int64_t *index; /* [count] these, or NULL: its position among all */
    int64_t first, count; /* among all */
};

/* What the rows of a rank are like; all members but `keys` are record_scan_add()'s own. */
struct record_scan {
    const struct record_keys *keys; /* NULL: order does not matter */
    bool any, numbered;
    uint128 first_code, last_code;
    int64_t first, first_number, last_number;
    int64_t disorder, unstable; /* positions, or INT64_MAX */
    uint64_t sum[2];
    int64_t count;
};

/* What those of all ranks are like. */
struct record_result {
    int64_t count;
    int64_t first_disorder; /* position of the first record less than the one before it; -1: none */
    int64_t first_unstable; /* of the first one equal to the one before it, with a lower number; -1: none */
    uint64_t fingerprint[2];
};

void record_scan_start(struct record_scan *scan, const struct record_keys *keys);

/* The rows that follow those before. Not collective; uses OpenMP. */
void record_scan_add(struct record_scan *scan, const struct record_rows *rows);

/* The same by the thread that calls, and no other. */
void record_scan_add_alone(struct record_scan *scan, const struct record_rows *rows);

/* What another scan has seen follows what this one has. Not collective. */
void record_scan_join(struct record_scan *scan, const struct record_scan *next);

/* Collective. result [1] the same on every rank. Errors agreed: HSORT_HOST_MEMORY, HSORT_MPI. */
hsort_status record_scan_finish(struct record_scan *scan, struct comm *comm, struct record_result *result);

#endif
