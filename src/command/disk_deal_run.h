/* The inside of dealing out (disk_deal_out.c). The sorted elements are cut into pieces, which are the parts of the sort (run_store.h);
 * with a file per rank they are also cut where a rank's file begins. One rank deals a piece out, and notes it: what is noted is not
 * done again.
 *
 *     pieces        | 0     | 1     | 2     | 3   |        ranks take turns at the pieces that are not noted,
 *     with %r       | 0   | 1 | 2   |3| 4   | 5   |        or each has those of its own file
 *                   rank 0    | rank 1    | rank 2 */
#ifndef DISK_DEAL_RUN_H
#define DISK_DEAL_RUN_H

#include "src/checkpoint/run_notes.h"
#include "src/command/disk_deal.h"
#include "src/command/record_io.h"

/* What is noted of a piece that was read to count the keys in it. */
struct counted_piece {
    uint64_t heads;     /* elements whose key differs from the one before, without the first of the piece */
    int64_t first_head; /* the first of these, among all elements, or -1 */
    key_code first, last;
};

/* What is noted of a piece that was dealt out. */
struct dealt_piece {
    uint64_t looked;           /* 1: the rest means something */
    uint64_t in_order, strict; /* 1: its elements are in order, equal ones by position; 1: no key is kept twice */
    uint64_t
        sum[3]; /* of keys kept, each as often as its count, minus all keys of the piece: unique_weigh() */
    uint64_t fingerprint[2];
    int64_t first_number, last_number;
    key_code first, last;
};

struct deal_piece {
    int64_t first, count;
    /* with --unique: */
    bool first_is_head;
    int64_t kept_before, kept;
    int64_t next_head; /* the first head behind the piece, or the end */
};

struct deal_run {
    struct comm *comm;
    struct disk_deal *deal;
    const struct file_out *sorted;
    struct run_files *files;
    struct progress *progress;
    struct record_io io;
    bool looks, unique;
    bool compares;            /* nothing is written; all is compared with what the outputs hold */
    struct deal_piece *piece; /* [pieces] owned, as all below */
    int64_t pieces;
    struct run_note *counted, *dealt; /* [pieces] */
    int64_t *own;                     /* [pieces] those that this rank goes through */

    int64_t block;  /* elements at a time, the same on every rank */
    char *elements; /* [block] */
    char *packed;   /* [block] one column of them */

    /* of the piece under way: */
    const struct deal_piece *at;
    struct verifier seen; /* all its elements */

    /* with --unique: */
    int code_bytes;
    char *codes;             /* [1 + block] the first belongs to the run whose end is not known yet */
    int64_t *heads, *counts; /* [1 + block] each */
    bool has_before;
    key_code before; /* of the element before the block */
    struct counted_piece found;
    int64_t open_head;      /* where the run begins whose end is not known yet, or -1 */
    int64_t kept, ended;    /* of what the piece keeps: dealt out, and counted */
    struct verifier strict; /* what is kept */
    uint64_t sum[3];
};

/* Cut the elements into pieces, with nothing noted. Not collective. Errors HSORT_HOST_MEMORY. */
hsort_status deal_pieces_open(struct deal_run *run);
void deal_pieces_close(struct deal_run *run);

/* Take this rank's share of the pieces that notes [pieces] do not have; NULL: of all pieces. Returns in how many blocks. Not
 * collective. */
int64_t deal_pieces_take(struct deal_run *run, const struct run_note *notes);

/* Let all ranks know what each has noted. Collective. Errors HSORT_MPI. */
hsort_status deal_pieces_join(struct deal_run *run, struct run_note *notes);

/* When all pieces are counted: find what each keeps, where that goes to, and deal->distinct. Not collective. */
void deal_pieces_place(struct deal_run *run);

/* Where the kept elements of this rank's own file begin among all kept elements, and how many they are. Not collective. */
void deal_pieces_share(const struct deal_run *run, int64_t *first, int64_t *count);

/* When all pieces are dealt out: are they what is `wanted`, and with --unique one of each key? If not, the line of comm is written. Not
 * collective, but the same on every rank. Errors HSORT_MISMATCH. */
hsort_status deal_pieces_check(struct deal_run *run, const hsort_check_result *wanted);

#endif
