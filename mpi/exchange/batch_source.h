/* Where the chunks of a batch come from. A source brings the chunks of some peers to the batch's slot, in one of the two ways
 * below. The pipeline of `partition` asks all sources, and does not know which peer belongs to which source:
 *
 *     mapped_source    peers that show their scratch buffer: one copy out of each, in turns   (ranks of a node)
 *     message_source   all others: messages, in the order of all batches                      (any transport)
 *
 *     slot of a batch, 4 ranks    | rank r+1 | r+2    | r+3 |      each peer's chunk, whichever source brings it
 *                                   mapped     message  mapped
 *
 * Both sides of a pair know which source serves it: it is mapped_source only if both could map. */
#ifndef BATCH_SOURCE_H
#define BATCH_SOURCE_H

#include "mpi/exchange/batch_plan.h"
#include "mpi/exchange/exchange.h"

enum { BATCH_SLOTS = 2 };

/* One sort's batches, as sources see them. */
struct batch_space {
    struct exchange *x; /* scratch holds this rank's keys by region, and no one writes to it */
    const struct batch_plan *plan;
    char *slot[BATCH_SLOTS];                  /* of batch b: slot[b % BATCH_SLOTS] */
    struct engine_event *sorted[BATCH_SLOTS]; /* recorded once batch b is sorted, so its slot is free again */
    int queued;                               /* batches whose `sorted` has been recorded */
    bool engine_is_wanted;                    /* somebody waits for its work: no more is queued for messages */
    bool failed;                              /* this rank has failed: it sorts no more, and all slots are free */
    const void **shown;                       /* [size] a peer's part of its scratch buffer, mapped; NULL: it is not */
    const char **chunk; /* [size] by step: where the step's chunk of the batch that is fetched will lie */
    char *scratch;      /* of batch_scratch_keys(), for work on STREAM_WORK */
    char *boundary;     /* of batch_keys_most(), the same: a region across a boundary, sorted */
    char *unpacked;     /* of batch_slot_keys(), the same: chunks before the sort of their batch, or before they are packed. NULL: no
                           chunk is packed */
    const struct engine_map *map;
    hsort_status (*advance)(struct batch_space *space); /* all sources, as below */
};

/* The functions of a source. From begin() on they are collective over the source's pairs: a failed rank keeps to the schedule. */
struct batch_source_ops {
    /* Make the tables of the source. *tables is NULL after an error. Errors HSORT_HOST_MEMORY, the engine's. */
    hsort_status (*open)(int size, struct engine *engine, void **tables);
    void (*close)(void *tables, struct engine *engine); /* NULL tables are fine */

    /* Begin, when all ranks' batches are planned. The source may take peers, by space->shown; the sources before it in the list have
     * taken theirs. The tables keep the space for the calls that follow. */
    hsort_status (*begin)(struct batch_space *space, void *tables);

    /* Bring the chunks of the source's peers, of batch `number` of this rank, to the slot, or to where chunk[] then says. Batches are
     * fetched in order: 0, 1, ... On return the chunks are there, or come by work that is queued on STREAM_IN or STREAM_WORK. A source
     * that waits here for other ranks calls space->advance() meanwhile. */
    hsort_status (*fetch)(void *tables, int number);

    /* Advance what goes on beside the engine's work. Never waits. */
    hsort_status (*advance)(void *tables);

    /* End, when all batches have been fetched and queued. On return nobody reads this rank's scratch buffer any more. */
    hsort_status (*end)(void *tables);
};

extern const struct batch_source_ops mapped_source, message_source;

#endif
