/* How keys move between ranks: one table of strategies with one signature. src/library/sort.c walks it.
 *
 *   partition   takes keys as they came: buckets first, each fetched and sorted by the rank that owns it
 *   direct      takes sorted shards: exact splitters, one all-to-all, one merge of many runs
 *   bitonic     takes sorted shards: compare-splits over the hypercube, merges of two runs
 *
 * mpi/README.md has the algorithms, and how to add one. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include "kernels/engine.h"
#include "mpi/comm/comm.h"
#include "mpi/transport/transport.h"

/* What an exchange works on. All pointers are borrowed; keys and scratch change roles as it goes. */
struct exchange {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    void *tables;           /* of exchange_ops.open(); NULL if it has none */
    void *memory;           /* [exchange_ops.memory_bytes()] engine memory, aligned to 256 bytes */
    int key_bytes;
    int64_t capacity;       /* keys that fit on a rank; the same everywhere; size * capacity >= all keys */
    void *keys, *scratch;   /* [capacity] each, engine memory; keys holds this rank's run */
    int64_t scratch_keys;   /* that scratch has room for: the capacity, perhaps with exchange_ops.spare_keys() */
    bool in_place;          /* for `direct` only: keys has room only for this rank's keys, and their number stays; scratch has
                             * room for a part of them. The same on every rank */
    void *workspace;        /* [workspace_bytes] engine memory to work in; may be none */
    size_t workspace_bytes;
    int rung;               /* of local sorts, for which workspace is large enough: the one asked for, or -1 */
    size_t chunk_bytes;     /* fetched from a peer's memory at a time, a multiple of 8; 0: the best size */
    int64_t count;          /* keys of this rank, 0 .. capacity */

    /* [size + 1] global position of each rank's first key, before and after; the last entry is the number of
     * keys. Both the same on every rank, with no rank above capacity. */
    const int64_t *current_offset, *target_offset;

    /* of an exchange that takes raw keys */
    const struct raw_keys
        *raw; /* not numbered: map and from are read; from may be keys, but does not overlap scratch.
                                 * Numbered: as engine_partition_ops take them; if positions are wanted, they are the result */
    void *host_out;             /* pinned memory that gets this rank's part of the result too; or NULL */
    bool all_ascend;            /* found: every rank's keys came in order; the same on every rank */
    double local_seconds;       /* time before any key left its rank */

    /* what happened, added up */
    int64_t moved_bytes;  /* sent to other ranks */
    int rounds_moved;     /* rounds or steps in which this rank sent or received any key */
    double merge_seconds; /* the part of the time that went into merging */

    void (*progress)(void *user, int64_t done, int64_t total); /* rank 0, after each round; or NULL */
    void *progress_user;
};

/* Let keys and scratch change roles. The new scratch buffer counts as room for the capacity, or for this rank's keys in place, because its
 * spare room, if any, is not known. */
static inline void exchange_swap_buffers(struct exchange *x)
{
    void *keys = x->scratch;
    x->scratch = x->keys;
    x->keys = keys;
    x->scratch_keys = x->in_place ? x->count : x->capacity;
}

enum exchange_input {
    EXCHANGE_TAKES_RAW,   /* the caller's bits, in any order: x->raw. The result is such bits too, sorted */
    EXCHANGE_TAKES_SORTED /* codes, one sorted run on each rank: x->keys. So is the result */
};

struct exchange_ops {
    hsort_exchange kind;
    enum exchange_input input;
    bool takes_any_target; /* any counts up to capacity as the target; else the first ranks get full shards */

    /* Can it run between these ranks? This rank's view; all must agree. NULL: always. Not collective. */
    bool (*can)(const struct comm *comm, const struct engine *engine);

    /* Does it pay for shards of `keys` keys on `size` ranks, beside the entries that follow it in the table?
     * packs: keys are packed on some path of this rank (packed_paths.h). Two ranks both say the same. With more ranks the answer must
     * not depend on packs, because all ranks must choose the same entry. NULL: always. Pure. */
    bool (*pays)(hsort_engine engine, int size, bool packs, int64_t keys, int key_bytes);

    /* Make the tables together with the context, so that no sort lacks memory for them once keys have moved. *tables is
     * NULL after an error. NULL: it has none. Not collective. Errors HSORT_HOST_MEMORY, the engine's. */
    hsort_status (*open)(int size, struct engine *engine, void **tables);
    void (*close)(void *tables, struct engine *engine); /* NULL tables are fine. Not collective */

    /* Engine memory that run() wants in x->memory between these ranks. NULL: none. Pure. */
    size_t (*memory_bytes)(const struct engine *engine, const struct comm *comm,
                           const struct transport *transport, int key_bytes, int64_t capacity);

    /* Keys beyond the capacity for which run() likes to have room in x->scratch, but can do without. NULL: none. Pure. */
    int64_t (*spare_keys)(const struct engine *engine, const struct comm *comm,
                          const struct transport *transport, int64_t capacity);

    /* Sort the keys of all ranks into one order. Collective.
     *   done     [1] written, the same on every rank. true: x->keys holds this rank's keys [x->count] of
     *            target_offset. false, of raw keys only: they do not suit it, or a rank has failed; x->raw is
     *            untouched, x->scratch is not
     * Order    sorted runs: by (key, rank, position). Raw bits that are equal cannot be told apart.
     * Errors   this rank's own: it has kept to the schedule all the same, and the caller agrees on it
     *          (comm_agree()). */
    hsort_status (*run)(struct exchange *x, bool *done);
};

/* The strategies, one per file. The head of each file names its source. */
extern const struct exchange_ops exchange_partition, exchange_direct, exchange_bitonic;

/* Reserve what `direct` needs to work in place, before keys are touched. tables: those of `direct` for `size` ranks, which keep it. Not
 * collective. Errors HSORT_HOST_MEMORY. */
hsort_status direct_reserve_in_place(void *tables, int size);

/* How many keys the memory of `partition` has room for, with `size` ranks of at most `capacity` keys, beside the engine's
 * own workspace. packs: chunks are packed on their way to some rank. Pure. */
int64_t partition_memory_keys(int size, bool packs, int64_t capacity);

/* All of them, in the order in which AUTO prefers them. */
enum { EXCHANGES = 3 };
extern const struct exchange_ops *const exchange_table[EXCHANGES];

/* Return the entry for keys in the form `input`: the one that was asked for, if it takes this form; else the first
 * one that pays. Pure.
 *   wanted   AUTO, or what the caller asked for. Raw keys are partitioned only if that is wanted, or AUTO
 *   usable   bit 1 << kind is set for the entries that can run
 *   Returns  NULL, for raw keys only: no entry is to be tried. */
const struct exchange_ops *exchange_choose(hsort_exchange wanted, enum exchange_input input, unsigned usable,
                                           hsort_engine engine, int size, bool packs, int64_t keys,
                                           int key_bytes);

#endif
