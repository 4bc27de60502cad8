/* A sort of pairs under way (pair_partition.h): the layout of its memory, and its tables.
 *
 *     shown    keys, own | that come      values, the same, or elements that leave
 *     own      places of elements, elements that come, the second half, regions at edges, slots */
#ifndef PAIR_SORTER_H
#define PAIR_SORTER_H

#include <assert.h>
#include "mpi/exchange/column_messages.h"
#include "mpi/exchange/pair_partition.h"
#include "mpi/exchange/pair_plan.h"
#include "mpi/exchange/peer_reader.h"
#include "mpi/exchange/region_map.h"

enum {
    PAIR_SAMPLE_LOG = ENGINE_SAMPLE_LOG_USUAL,
    ELEMENT_PARTS = 12, /* in which elements come */
    LEAVING_PARTS = 4   /* in which elements are made ready; each is several of those */
};

static_assert(ELEMENT_PARTS % LEAVING_PARTS == 0, "a part that comes is of one that leaves");

/* What goes from rank to rank: the keys, and what belongs to them. */
enum { KEYS, BESIDE, COLUMNS };

/* What a rank shows to each peer: whole columns, but elements part by part, as they are made ready. */
enum { SHOWN = BESIDE + LEAVING_PARTS };

/* What ranks gather from each other: the pairs of each region, and whether the rank has failed. */
enum { FOUND_FAILED = ENGINE_REGIONS, FOUND };

/* The call under way. */
struct pair_sorter {
    const struct pair_partition *x;
    int rank, size;
    int64_t count, out_count;
    struct message_column columns[COLUMNS];
    struct engine_pair_regions main, edges; /* they share the first half */
    int64_t *index;                         /* [out_count] where the elements are, if there are any */
    void *own_elements;                     /* [count] this rank's, from where they are taken at the end */
    struct region_map *map;
    struct pair_plan *plan;
    int64_t *found; /* [size * FOUND] */
    /* [size] what goes to each peer, and what comes from it: places in what its owner has split. */
    struct place_span *gives, *takes;
    struct place_span *sends, *receives; /* [size] the same for peers with which it goes by message */
    size_t slot_bytes;                   /* of slot_memory; 0: nothing is packed */
    void *slot_memory;
    struct column_slots *slots;
    int64_t *comes_to;  /* [size] where in the first half what a peer gives begins, counted from behind the own pairs */
    const void **shown; /* [size * SHOWN] memory of peers; NULL: they send messages */
    struct peer_reader reader;
    struct peer_copy *copies;                            /* [size] of a column; those that are not queued yet */
    struct engine_event *fetched, *parts[ELEMENT_PARTS]; /* keys have come; parts of the elements */
    struct engine_event *leaving[LEAVING_PARTS];         /* parts of the elements that leave are ready */
    struct engine_event *sorted;                         /* the last sort of keys is over */
    bool begun;                                          /* some regions of `main` are sorted */
    hsort_status status;
};

/* Element `pair` of an array. */
static inline char *pair_at(void *array, int64_t pair, size_t bytes)
{
    return (char *)array + (size_t)pair * bytes;
}

/* The most pairs that a rank sorts apart. */
int64_t pair_sorter_edge_pairs(const struct pair_partition *x);

/* Return a sorter without tables. x may be without memory: need [1] tells how much there must be. */
struct pair_sorter pair_sorter_lay_out(const struct pair_partition *x, struct pair_partition_need *need);

/* Make the sorter's tables. pair_sorter_close() is fine after an error, too. Errors HSORT_HOST_MEMORY, the engine's. */
hsort_status pair_sorter_open(struct pair_sorter *s);
void pair_sorter_close(struct pair_sorter *s);

#endif
