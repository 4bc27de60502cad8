/* The records of the sort benchmarks (sortbenchmark.org): 100 bytes, of which the first 10 are the key, ordered as
 * unsigned bytes. They are made as gensort 1.5 makes them and judged as valsort judges them, byte for byte and figure
 * for figure, so that results can be compared with those of others. No files, no MPI.
 *
 *     gensort_fill()    makes records from their numbers alone: any rank makes any range of them
 *     gensort_look()    says what valsort says of records in a row
 *     gensort_join()    says the same of two such rows, one behind the other, without their records
 *
 *     rank           0         1         2         all
 *     keys           1 4 4     3 7 7 7   7 9
 *     unordered      0         0         0         1: the 3 behind the 4, record 3 of all
 *     duplicates     1         2         0         4: the 7 behind a 7, too
 */
#ifndef GENSORT_H
#define GENSORT_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/keytype.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GENSORT_RECORD_BYTES = 100, GENSORT_KEY_BYTES = 10, GENSORT_SUMMARY_BYTES = 280 };

/* The kind of records: gensort's options -a and -s. */
struct gensort {
    bool ascii;  /* lines of printable characters, which end in CR LF; else any bytes */
    bool skewed; /* many keys begin alike */
};

/* What valsort says of records in a row. All zero: of no records. */
struct gensort_summary {
    uint128 checksum;         /* the sum of the CRC-32 of each record; depends on no order */
    uint64_t records;         /* how many */
    uint64_t unordered;       /* with a key less than that of the record before */
    uint64_t first_unordered; /* the position of the first of them, from 0; 0: none */
    uint64_t duplicates;      /* with the key of the record before: if in order, all that repeat another */
    unsigned char first[GENSORT_RECORD_BYTES], last[GENSORT_RECORD_BYTES];
};

/* records [count] = records first .. first + count - 1; the number after 2^128 - 1 is 0. Any alignment. Not
 * collective; uses OpenMP. */
void gensort_fill(const struct gensort *kind, uint128 first, int64_t count, void *records);

/* Add records [count] to the summary, behind those that it is of. Any alignment. Not collective; uses OpenMP. */
void gensort_look(struct gensort_summary *summary, const void *records, int64_t count);

/* Add the records of `next` to `all`, behind the records of `all`. Joining is associative, and either summary may be of no
 * records: so ranks can join theirs in any tree that keeps their order. Not collective. */
void gensort_join(struct gensort_summary *all, const struct gensort_summary *next);

/* bytes [GENSORT_SUMMARY_BYTES] = the summary as `valsort -o` writes it. `valsort -s` reads several in a row, in the
 * order of their records. It knows no summary of no records: leave such a summary out, or write no bytes. Not
 * collective. */
void gensort_write_summary(const struct gensort_summary *summary, void *bytes);

/* The summary from such bytes; false, and the summary unchanged, if they cannot be one: of no records, with more than
 * 2^64 - 1 of something, or in contradiction to itself. Not collective. */
bool gensort_read_summary(struct gensort_summary *summary, const void *bytes);

/* text = the checksum as gensort and valsort print it. Not collective. */
void gensort_checksum_text(uint128 checksum, char text[33]);

#ifdef __cplusplus
}
#endif

#endif
