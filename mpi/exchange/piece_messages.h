/* Pieces of runs on their way to the ranks whose segments they belong to, a round of segments at a time, into a slot of engine
 * memory. If the owner is on the reader's node and the system lets it (mpi/comm/process_memory.h), the reader takes the pieces out of
 * the owner's memory itself, by transfers like those of its own pieces. Otherwise they come by MPI, from the run's memory. Elements may
 * have any number of bytes.
 *
 * Segments of all ranks are numbered through the ranks: first_segment[r] is the first of rank r. In round k each
 * rank r gets the pieces of its segment first_segment[r] + k, if it has that many. In the slot they lie in the
 * order of (rank, run):
 *
 *     rank 0's runs   a a a | b b          rank 1's runs   c c | d          segment 1 belongs to rank 1
 *     lengths         segment 0: 2 1   segment 1: 1 1      segment 0: 1 0   segment 1: 1 1
 *     slot of rank 0: a a b c          slot of rank 1: a b c d              a, b of rank 0, c, d of its own
 */
#ifndef PIECE_MESSAGES_H
#define PIECE_MESSAGES_H

#include <stdbool.h>
#include "kernels/base/lesser.h"
#include "kernels/engine.h"
#include "mpi/comm/comm.h"
#include "mpi/transport/transport.h"

enum { PIECE_BUFFERS = 8, PIECE_BUFFER_BYTES = 4 << 20, PIECE_MESSAGES_MOST = 1 << 12 };

/* The most bytes of a message of pieces, for slots of slot_bytes. Pure. */
static inline size_t piece_buffer_bytes(size_t slot_bytes)
{
    return lesser_bytes(slot_bytes, PIECE_BUFFER_BYTES);
}

/* The same where messages of chunk_bytes are asked for; 0: they are not. As far as that is no longer than a buffer, a slot comes in
 * PIECE_MESSAGES_MOST messages at most, and one more for each piece: a receiver takes long to find one of many messages that wait for it,
 * and where more than 2^16 short ones from one rank waited, Open MPI 4.1 was seen to mix them up. Pure. */
static inline size_t piece_chunk_bytes(size_t slot_bytes, size_t chunk_bytes)
{
    const size_t most = piece_buffer_bytes(slot_bytes),
                 least = (slot_bytes + PIECE_MESSAGES_MOST - 1) / PIECE_MESSAGES_MOST;
    return chunk_bytes > 0 ? lesser_bytes(most, greater_bytes(chunk_bytes, least)) : most;
}

struct piece_messages; /* who sends what, and the buffers: PIECE_BUFFERS of buffer_bytes, pinned */

/* What the messages are about; borrowed until piece_messages_close(). */
struct piece_plan {
    struct comm *comm;
    struct engine *engine;
    size_t element_bytes;
    size_t buffer_bytes;          /* of a message at most: piece_chunk_bytes() */
    const int64_t *runs_of;       /* [size] runs of each rank */
    const int64_t *first_segment; /* [size + 1] */
    int64_t rounds;               /* segments of the rank that has most */
    bool reads;                   /* ranks of a node read each other's runs, where they can; the same on every rank */
};

/* Make tables and buffers; a rank that is alone needs neither, and gets none. *messages is NULL after an error.
 * Not collective. Errors HSORT_HOST_MEMORY, the engine's. */
hsort_status piece_messages_open(const struct piece_plan *plan, struct piece_messages **messages);

void piece_messages_close(struct piece_messages *messages); /* NULL is fine; not collective */

/* Tell every rank where the pieces for its segments lie, and find out who reads whose memory: a rank whose pieces cannot be read
 * sends them. Collective.
 *   cut_offset  [(segments of all + 1) * own runs] where each segment begins in each own run; borrowed
 *   run         [own runs] the memory of each own run; borrowed. It stays as it is until all ranks agree, after the last round
 * Errors   this rank's own; the caller agrees on it before the first round. */
hsort_status piece_messages_plan(struct piece_messages *messages, const int64_t *cut_offset,
                                 const char *const *run);

/* List the pieces of other ranks' runs that this rank reads itself in `round`: transfers for the engine, and where in the slot each
 * piece belongs, in bytes; both arrays have [runs of all other ranks] entries at most. Returns their number. Not collective. */
int piece_messages_reads(struct piece_messages *messages, int64_t round, struct engine_transfer *transfers, size_t *places);

/* How many elements of this rank's segment in `round` come from lower ranks' runs: its own elements begin behind them. Not
 * collective. */
int64_t piece_messages_before(const struct piece_messages *messages, int64_t round);

/* Begin a round: begin all its sends, and receives for the buffers. What others read counts as sent. The last message to each rank
 * ends no earlier than it is received, so that no rank is more than a round ahead of those that it sends to. Collective, with
 * piece_messages_finish().
 * Errors   this rank's own; it has kept to the schedule. */
hsort_status piece_messages_begin(struct piece_messages *messages, int64_t round);

/* End the round: pieces that came by MPI are copied to `slot` on STREAM_IN, and this rank's pieces have left. Copies may
 * be under way on return; no buffer is used again before its copy is done. Errors as above. */
hsort_status piece_messages_finish(struct piece_messages *messages, char *slot);

/* What has gone to other ranks by MPI since piece_messages_open(), and the time spent in begin() and finish(); what other ranks have
 * read, and the time since the first round began. Not collective. */
struct traffic piece_messages_sent(const struct piece_messages *messages);
struct traffic piece_messages_shown(const struct piece_messages *messages);

#endif
