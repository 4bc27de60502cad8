/* A sort of pairs under way (pair_partition.h): its memory, as it is laid out, and its tables.
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
    ELEMENT_PARTS = 12, /* that elements come in */
    LEAVING_PARTS = 4   /* that they are made ready in, each some of those */
};

static_assert(ELEMENT_PARTS % LEAVING_PARTS == 0, "a part that comes is of one that leaves");

/* What goes from rank to rank: the keys, and what belongs to them. */
enum { KEYS, BESIDE, COLUMNS };

/* What a rank shows of itself to each peer: a column whole, but elements part by part, as they are made ready. */
enum { SHOWN = BESIDE + LEAVING_PARTS };

/* What ranks gather of each other: the pairs of each region, and this. */
enum { FOUND_FAILED = ENGINE_REGIONS, FOUND };

/* The call under way. */
struct pair_sorter {
    const struct pair_partition *x;
    int rank, size;
    int64_t count, out_count;
    struct message_column columns[COLUMNS];
    struct engine_pair_regions main, edges; /* they share the first half */
    int64_t *index;                         /* [out_count] where the elements are, if there are such */
    void *own_elements;                     /* [count] this rank's, from which others are taken in the end */
    struct region_map *map;
    struct pair_plan *plan;
    int64_t *found; /* [size * FOUND] */
    /* [size] what goes to, and comes from each peer: places in what its owner has split. */
    struct place_span *gives, *takes;
    struct place_span *sends, *receives; /* [size] the same of those peers with which it goes by message */
    size_t slot_bytes;                   /* for that; 0: nothing is packed */
    void *slot_memory;
    struct column_slots *slots;
    int64_t *comes_to;  /* [size] where in the first half, behind the own pairs, what a peer gives begins */
    const void **shown; /* [size * SHOWN] memory of peers; NULL: they send messages */
    struct peer_reader reader;
    struct peer_copy *copies;                            /* [size] of a column, that are not queued yet */
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

/* Pairs that a rank sorts apart, at most. */
int64_t pair_sorter_edge_pairs(const struct pair_partition *x);

/* A sorter without tables. x may be without memory: need [1] tells how much there must be. */
struct pair_sorter pair_sorter_lay_out(const struct pair_partition *x, struct pair_partition_need *need);

/* Its tables. After an error, too, pair_sorter_close() is fine. Errors HSORT_HOST_MEMORY, the engine's. */
hsort_status pair_sorter_open(struct pair_sorter *s);
void pair_sorter_close(struct pair_sorter *s);

#endif
