/* What goes by message from rank to rank in a sort of pairs (pair_partition.h): one stream, of parts of columns, each as large as a
 * message, packed where the path is slow (engine_pack_ops).
 *
 *     order, of all messages of all ranks    (step, column, part)
 *     step s       to rank r + s, from rank r - s; then the keys of that peer, then what belongs to them
 *
 *     keys 2 2 3 | 7 9 7       packed part by part, into slots that go round, some parts ahead of the message that is sent
 *     positions 4 9 | 2 5      the same; they rise in a region, so their differences are short
 *     part that came           in a slot: unpacked to its place. It says by its length whether it is packed
 *
 * Keys lie region by region, so those of a part are close to each other: what their region tells is not sent. */
#ifndef PAIR_MESSAGES_H
#define PAIR_MESSAGES_H

#include "mpi/comm/comm.h"
#include "mpi/exchange/pair_plan.h"
#include "mpi/transport/transport.h"

/* What goes from rank to rank: the keys, and what belongs to them. */
enum { KEYS, BESIDE, COLUMNS };

enum pair_packing {
    PACK_NOTHING,
    PACK_CLOSE, /* numbers of 4 or 8 bytes that are close to each other */
    PACK_RISING /* the same that mostly rise */
};

/* Where one of them lies, by places in the first half: what leaves, and what comes. */
struct pair_column {
    void *given, *taken;
    size_t bytes; /* of one */
    enum pair_packing packing;
};

struct pair_messages {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    const struct pair_column *columns; /* [COLUMNS] */
    /* [size] what goes to, and comes from each peer: places in what its owner has split; comes_to: where in the first half that
     * begins. Empty for a peer that shows its memory */
    const struct pair_span *gives, *takes;
    const int64_t *comes_to;
    void *memory; /* [pair_messages_bytes()] engine memory, aligned to 256 bytes */
    struct pair_slots *slots;
};

/* Bytes of engine memory for slots: 0 where nothing is packed. Not collective. */
size_t pair_messages_bytes(const struct comm *comm, const struct engine *engine, struct transport *transport);

/* What goes with that memory, to be had before anything is changed. *slots is NULL after an error, and where `bytes` are 0. Not
 * collective. Errors HSORT_HOST_MEMORY, the engine's. */
hsort_status pair_slots_open(struct engine *engine, size_t bytes, struct pair_slots **slots);
void pair_slots_close(struct engine *engine, struct pair_slots *slots); /* NULL slots are fine */

/* Send and receive all of it. On return it has come, or comes by work that is queued on STREAM_WORK. Collective over those that have
 * any.
 *   mine     this rank's status so far: a failed rank keeps to the schedule
 * Errors   this rank's first, `mine` before others. */
hsort_status pair_messages_run(const struct pair_messages *messages, hsort_status mine);

#endif
