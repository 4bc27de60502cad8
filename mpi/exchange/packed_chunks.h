/* Chunks in fewer bytes where their path is slow (packed_paths.h). They are put in order and packed as differences (engine.h) where
 * they lie in the scratch buffer, a group of chunks ahead of the messages that carry them. The engine has time for it while messages
 * are under way. A group is the chunks for all peers' batches of one number. The engine puts all of them in order in one call, and packs
 * them in another:
 *
 *     keys by region      | a a | b b b | c | d d | e e e | ...        a, c for rank 4, e for rank 5: their first batches
 *     sort_regions()      | a' a' | c' | e' e' e' |                    beside
 *     pack()              | 4 | b b b | 2 | d d | 7 3 |  ...           each back to where its keys were
 *
 *     STREAM_WORK   sort batch 0    group 2      sort batch 1    group 3
 *     messages      group 0         group 1                      group 2
 *
 * mpi/README.md says which chunks are sent as they are. A chunk of a region that several other ranks want is packed once. */
#ifndef PACKED_CHUNKS_H
#define PACKED_CHUNKS_H

#include "mpi/exchange/message_order.h"

struct packed_chunks;

/* *chunks is NULL after an error. Not collective. Errors HSORT_HOST_MEMORY, the engine's. */
hsort_status packed_chunks_open(struct engine *engine, struct packed_chunks **chunks);
void packed_chunks_close(struct packed_chunks *chunks, struct engine *engine); /* NULL chunks are fine */

/* Begin with the chunks of a sort. Not collective. */
void packed_chunks_begin(struct packed_chunks *chunks, struct batch_space *space);

/* Queue the packing of one more group, if the group before the last has been sent. */
void packed_chunks_advance(struct packed_chunks *chunks);

/* Is the chunk that is sent next ready in the form in which it is sent? *bytes: of that form. leave(): the chunk has been sent, and the
 * one behind it is next. */
bool packed_chunks_ready(struct packed_chunks *chunks, const struct outgoing_chunk *chunk, size_t *bytes);
void packed_chunks_leave(struct packed_chunks *chunks);

/* Return this rank's first failure since packed_chunks_begin(). */
hsort_status packed_chunks_end(struct packed_chunks *chunks);

#endif
