/* Messages from rank to rank, where it is known beforehand what goes where: one stream of parts of columns, each part at most as large
 * as a message, packed where the path is slow (packed_paths.h). `direct` sends sorted runs in this way; a sort of pairs
 * (pair_partition.h) sends keys, and what belongs to them.
 *
 *     order, of all messages of all ranks    (step, column, part)
 *     step         to step_target(), from step_source() (step_order.h); then one column after the other
 *
 *     keys 2 2 3 | 7 9 7       packed part by part, into slots that go round, some parts ahead of the message that is sent
 *     positions 4 9 | 2 5      the same
 *     part that came           in a slot: unpacked to its place. It says by its length whether it is packed
 *
 * A part that is shorter than a quarter of a message goes as it is, because launching the kernels that pack it takes longer than packing
 * saves. */
#ifndef COLUMN_MESSAGES_H
#define COLUMN_MESSAGES_H

#include "mpi/comm/comm.h"
#include "mpi/exchange/place_span.h"
#include "mpi/transport/transport.h"

enum column_packing {
    PACK_NOTHING,
    PACK_CLOSE, /* numbers that are close to each other */
    PACK_RISING /* numbers that mostly rise */
};

/* An array of what leaves, and an array of what comes. They may be one array if the places differ. */
struct message_column {
    void *given, *taken;
    size_t bytes; /* of one element; if elements are packed, a width that keys may have */
    enum column_packing packing;
};

struct column_messages {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    const struct message_column *columns; /* [column_count] */
    int column_count;
    /* [size] what goes to each peer, and what comes from it: places in `given` of the rank that gives; comes_to: where in `taken` it
     * begins. Empty for a peer with which it goes another way */
    const struct place_span *gives, *takes;
    const int64_t *comes_to;
    struct column_slots *slots; /* NULL: nothing is packed; the same on both ranks of a path that packs */
    void *memory;               /* [memory_bytes] for the slots: column_messages_bytes(), aligned to 256 bytes */
    size_t memory_bytes;
};

/* Is a part long enough to be packed? Messages have `message` bytes at most. Pure. */
static inline bool part_is_worth_packing(size_t bytes, size_t message)
{
    enum { PACKED_SHARE = 4 };
    return bytes > 0 && bytes >= message / PACKED_SHARE;
}

/* Bytes of engine memory for slots, if about `usual` bytes of a column go to each peer. A slot has room for a message, or for twice
 * `usual` if that is shorter. 0 if `usual` is too short to be packed. Pure. */
size_t column_slots_bytes(size_t usual, size_t message);

/* The same if something may be packed, else 0. Not collective. */
size_t column_messages_bytes(const struct comm *comm, const struct engine *engine,
                             const struct transport *transport, size_t usual);

/* Make what goes with that memory; call it before anything is changed. *slots is NULL after an error, and if `bytes` is 0. Not
 * collective. Errors HSORT_HOST_MEMORY, the engine's. */
hsort_status column_slots_open(struct engine *engine, size_t bytes, struct column_slots **slots);
void column_slots_close(struct engine *engine, struct column_slots *slots); /* NULL slots are fine */

/* Send and receive all columns. On return everything has come, or comes by work that is queued on STREAM_WORK. Collective over the ranks
 * that send or receive anything.
 *   mine         this rank's status so far: a failed rank keeps to the schedule
 *   moved_bytes  [1] grows by the bytes of the messages
 * Errors       this rank's first, `mine` before others. */
hsort_status column_messages_run(const struct column_messages *messages, hsort_status mine,
                                 int64_t *moved_bytes);

#endif
