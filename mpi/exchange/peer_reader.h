/* Copies out of the memory that peers show, for which ranks take turns (transport.h). A rank copies from the first of its peers from
 * which nobody else copies, and gives the turn back when the copy is done. The host has to watch for that: a caller that waits long for
 * anything else calls peer_reader_advance() meanwhile. No rank waits for another one while it holds a turn, and copies end by themselves,
 * so each rank gets its turns.
 *
 *     rank 0    from 1 |...| from 2 |...| from 3 |...|
 *     rank 1    from 2 |...| 3 is taken: from 0 |...| from 3 |...|
 *
 * What is shorter than a message is copied without a turn, because turns for it gain less (mpi/measured.md). Nothing here is
 * collective. */
#ifndef PEER_READER_H
#define PEER_READER_H

#include "kernels/engine.h"
#include "mpi/comm/comm.h"
#include "mpi/transport/transport.h"

struct peer_reader {
    struct engine *engine; /* borrowed, as the next two */
    struct transport *transport;
    struct trace *trace;
    bool takes_turns;
    size_t turn_bytes;         /* the fewest bytes of a copy that takes a turn */
    int reading;               /* the peer from which this rank copies in its turn, or PEER_READER_IDLE */
    struct engine_event *read; /* recorded behind that copy; owned */
};

enum { PEER_READER_IDLE = -1 };

/* Make room for copies by this engine. peer_reader_close() is fine after an error, too. Errors: the engine's. */
hsort_status peer_reader_open(struct engine *engine, struct peer_reader *reader);
void peer_reader_close(struct peer_reader *reader); /* also if it is all 0 */

/* Begin to copy from `peers` peers that have exposed their memory by this transport. */
void peer_reader_begin(struct peer_reader *reader, const struct comm *comm, struct transport *transport,
                       int peers);

/* A copy out of what a peer has exposed. */
struct peer_copy {
    int peer;
    void *to;         /* [bytes] engine memory of this rank */
    const void *from; /* [bytes] of the peer's, as it is mapped here */
    size_t bytes;
};

/* Queue copies on STREAM_IN, in the order of the list, except those whose turn this rank cannot have yet. Never waits.
 *   copies  [count] on return those that are left
 *   status  [1] gets the first error, unless it holds one
 *   Returns how many are left: ask again for these. */
int peer_reader_copy(struct peer_reader *reader, struct peer_copy *copies, int count, hsort_status *status);

/* Give the turn back if its copy is done. Never waits. Errors: the engine's; the turn is given back then, too. */
hsort_status peer_reader_advance(struct peer_reader *reader);

/* Wait until the turn is given back. Call it before this rank waits for others. Errors as above. */
hsort_status peer_reader_end(struct peer_reader *reader);

#endif
