/* One sort under way, and the memory for it. Private to sort.c and sort_memory.c. */
#ifndef SORT_MEMORY_H
#define SORT_MEMORY_H

#include "kernels/numbered_keys.h"
#include "mpi/exchange/exchange.h"
#include "src/library/context_memory.h"
#include "src/library/key_stream.h"
#include "src/library/pass_sort.h"
#include "src/library/run_store.h"

/* From this shard size on, the ranks of a node ask whether there is memory for all of them. */
enum { NODE_CHECK_BYTES = 1 << 20 };

/* What this rank's keys are at present. Each phase of a sort takes some form and leaves another. */
enum key_form {
    FORM_RAW,      /* the caller's bits, as they came */
    FORM_CODES,    /* codes (keytype.h), one sorted run */
    FORM_RESULT,   /* the caller's bits, in the order of the result */
    FORM_DELIVERED /* the same, and where the caller wants them */
};

struct sort {
    hsort_context *ctx;
    hsort_type type; /* of keys that are not codes; so is the order */
    hsort_order order;
    bool are_codes;                  /* the keys are codes, or become codes: sort_codes() */
    const struct raw_keys *numbered; /* what codes are made of; or NULL */
    const void **left_at; /* of codes: where they lie in the end, if not at `out`; else NULL */
    bool *placed;         /* of codes: whether they have become positions, if these were wanted; else NULL */
    struct keymap map;
    const struct pass_elements
        *elements; /* in two passes what is sorted, if not bare keys; or NULL. Borrowed */
    const void *in;
    void *out;
    int64_t in_count, out_count;
    void *stream;
    const struct key_stream *source, *sink; /* both, with `in` and `out` NULL; or neither */
    struct stream_check *check;             /* of streams, or NULL; filled by the verifiers */
    const struct run_store *store;          /* where runs go to: the sort is disk_passes.c's; or NULL */
    struct verifier before, after;
    enum engine_space in_space, out_space;
    int64_t total, capacity;
    int64_t room;  /* keys that this rank must have room for: the capacity; in place, its own */
    size_t new_bytes; /* that the context has taken in this call; untouched, they may still count as free */
    bool in_place; /* the keys fill engine memory: each rank's stay in its output. The same on every rank */
    bool fits;                                  /* no rank brings more than the capacity */
    bool any_target_fits;                       /* nor asks for more */
    const struct exchange_ops *raw_exchange;    /* that is tried before the local sort; NULL: none */
    const struct exchange_ops *sorted_exchange; /* that runs after it */

    int passes; /* 1, or 2: not all ranks' keys fit into their engines' memory. The same on every rank */
    int64_t runs, segments; /* of this rank, in two passes */
    struct traffic messages, shown; /* in two passes what it sent, and what others read; no transport counts these */
    enum key_form form;
    const void *held;     /* where the keys lie: the caller's input, or x.keys */
    struct exchange x;    /* x.current_offset: their global positions */
    int64_t scratch_keys; /* that x.scratch has room for: `room`, or less on a rank that is alone, and in place */
    bool stopped;         /* at the safe point */
    hsort_status status;  /* the first failure on this rank since ranks last agreed */
    double entered, phase_began;
    double seconds[HSORT_PHASES];
};

/* What the first kernels that see the keys load. */
static inline struct raw_keys sort_raw_keys(const struct sort *s)
{
    return s->numbered ? *s->numbered : (struct raw_keys){.map = s->map, .from = s->held};
}

static inline size_t shard_bytes(const struct sort *s)
{
    return (size_t)s->x.count * (size_t)s->map.key_bytes;
}

/* Make codes of numbered keys, in the order in which they came, if the sort does not need to move them. Not collective. */
void sort_make_codes(struct sort *s);

/* Tell the caller's progress function that a phase is over. Not collective. */
void sort_report_phase(const struct sort *s, const char *phase);

/* Choose what to do if some rank lacks the engine memory for one pass with two buffers: s->passes is 2 if all ranks' keys, in and
 * out, lie in host memory; s->in_place is true if none do, and no rank asks for another number of keys than it has. Collective. */
hsort_status sort_choose_passes(struct sort *s);

/* What a rank says of its elements. A rank without any says none of the first three. */
struct passes_answer {
    bool on_host;   /* they lie in host memory, coming and going */
    bool in_engine; /* they can be sorted in place in engine memory */
    bool elsewhere; /* neither: they are sorted in one pass with two buffers, or not at all */
    bool lacks;     /* such a pass does not fit into engine memory */
};

/* What all ranks' answers come to: *passes, 1 or 2, and *in_place. Collective. mine: this rank's status; all leave if one has failed. */
hsort_status sort_agree_on_passes(struct comm *comm, const struct passes_answer *answer, hsort_status mine,
                                  int *passes, bool *in_place);

/* Do the runs need to lie in a store, because neither engine nor host has memory for the sort (with the host engine), or for its
 * runs (with a GPU)? Collective.
 *   s             planned; streams
 *   memory_bytes  host memory that this rank may take
 *   needs         [1] written, the same on every rank */
hsort_status sort_choose_store(struct sort *s, size_t memory_bytes, bool *needs);

/* Bytes of the runs, if they need memory of the library's own. Not collective. */
size_t sort_run_bytes(const struct sort *s);

/* The rung that sorts keys of so many bytes: the one that was asked for; for keys of 16 bytes, which few rungs sort, the engine's
 * choice. Pure. */
int sort_rung(const hsort_context *ctx, int key_bytes);

/* Take two buffers of the capacity each, and workspace; a rank that is alone, or sorts in place, may take less for the second buffer.
 * The caller's output serves as the first buffer if it is large enough. Fills s->x and s->scratch_keys. Takes nothing if
 * the ranks of this node want more host memory than there is; memory that other ranks have mapped is unmapped before
 * it is freed. Collective; the caller agrees on the status. */
hsort_status sort_reserve(struct sort *s);

/* Take memory for s->raw_exchange and s->sorted_exchange, beside that of any sort. If some rank cannot have it, the raw exchange is
 * not tried; the sorted one does without it. Collective. */
hsort_status sort_reserve_exchange(struct sort *s);

#endif
