/* Keys of 1 and 2 bytes: at most 65536 of them are different, so the number of times that each occurs describes them all. */
#ifndef NARROW_COUNTS_H
#define NARROW_COUNTS_H

#include "kernels/base/key_width.h"
#include "src/library/context.h"
#include "src/library/key_stream.h"

/* Counts of all ranks' keys. All members but the first two are 0 before narrow_open(). */
struct narrow_counts {
    hsort_context *ctx;
    struct keymap map;
    int64_t values; /* 256 or 65536 */
    int64_t *own;   /* [values] by bits: this rank's keys; owned, as the others are */
    int64_t *all;   /* [values] by bits: all ranks' keys */
    int64_t *ends;  /* [values] by codes: the position behind the last of them */
    int64_t *table; /* [values] engine memory, of the context; behind it is room for a key of each value */
    double copy_seconds;  /* in which keys came from the caller's host memory, or went there */
    double count_seconds; /* in which they were counted */
};

/* Keys of this rank: of a stream, or of the caller's memory. */
struct narrow_keys {
    const struct key_stream *stream; /* or NULL */
    const void *memory;
    enum engine_space space;
    int64_t count;
};

/* Bytes of the engine's table. Pure. */
size_t narrow_table_bytes(int key_bytes);

/* Take the tables, and as much of KEPT_SCRATCH as is needed for pieces that the engine cannot reach: at most `piece_bytes`, which
 * is 0 if there are no such pieces. Collective. Errors agreed: HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY. */
hsort_status narrow_open(struct narrow_counts *n, size_t piece_bytes);
void narrow_close(struct narrow_counts *n);

/* How many keys a piece has; all of them, if the engine reaches them. Pure. */
int64_t narrow_piece(const struct narrow_counts *n, const struct narrow_keys *keys);

/* The transfer of keys first .. first + count - 1 between where they lie and the piece in KEPT_SCRATCH. Pure. */
struct engine_transfer narrow_transfer(const struct narrow_counts *n, const struct narrow_keys *keys,
                                       int64_t first, int64_t count);

/* Count this rank's keys, which are ready when STREAM_WORK is. Not collective.
 *   done  [1] written: keys that were counted; fewer if the stream has left them, or after an error
 * Errors: the engine's, those of the stream. */
hsort_status narrow_count(struct narrow_counts *n, const struct narrow_keys *keys, int64_t *done);

/* Add up the counts of all ranks, and find where each value ends. Collective. Errors HSORT_MPI. */
hsort_status narrow_sum(struct narrow_counts *n);

/* The bits of the key at a position of the result, 0 .. all keys - 1. Pure. */
uint64_t narrow_key_at(const struct narrow_counts *n, int64_t position);

#endif
