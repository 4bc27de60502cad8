/* The ladder on CUDA: the only list of its rungs. Dispatch, tests, benchmark and the table of
 * kernels/measured.md are made from it, so a rung without a test or a number cannot exist. Numbers are names:
 * never reused, not in order of speed. */
#ifndef LADDER_H
#define LADDER_H

#include "kernels/cuda/engine/cuda_engine.h"

/* X(number, name, order, kind, takes, widths, "one change against the step below"): enum rung_order, rung_kind,
 * rung_takes and rung_widths, below, say what the words promise. */
// clang-format off
#define LADDER(X) \
    X(0, cub,               STABLE,   RADIX,   CODES, WIDE,   "the vendor's radix sort: the yardstick") \
    X(1, bitonic_global,    UNSTABLE, NETWORK, CODES, NARROW, "one compare-exchange step of the network per launch") \
    X(2, bitonic_shared,    UNSTABLE, NETWORK, CODES, NARROW, "one launch for all steps below the tile size") \
    X(3, bitonic_warp,      UNSTABLE, NETWORK, CODES, NARROW, "tiles in registers, short strides by shuffles") \
    X(4, bitonic_multistep, UNSTABLE, NETWORK, CODES, NARROW, "several steps of large strides per pass") \
    X(5, packed,            UNSTABLE, NETWORK, CODES, NARROW, "tiles of any bits of the positions: more steps per pass") \
    X(6, radix_4way,        STABLE,   RADIX,   CODES, NARROW, "radix, 2 bits per pass: no comparisons") \
    X(7, onesweep,          STABLE,   RADIX,   BITS,  NARROW, "radix, 8 bits per pass, each in one sweep over the keys") \
    X(8, msd,               STABLE,   RADIX,   BITS,  WIDE,   "radix from the top digit, finished in shared memory")
// clang-format on

/* What a rung sorts: codes, ascending, with or without a value each that travels along. Everything is in engine memory;
 * arrays are aligned to the size of their elements only. With `raw`, as engine.h says, keys of other types:
 * ladder_sort() encodes and decodes them, except bare keys for the rungs that take these as they are. rung_7_onesweep()
 * itself takes them beside values, too. */
struct sort_args {
    int key_bytes;                     /* 4 or 8; 16 where rung_is_wide(), without values */
    int value_bytes;                   /* 0: no values; 4 beside keys of 4 bytes; 4 or 8 beside keys of 8, for rung 7 beside all keys */
    int64_t count;                     /* > 1 */
    void *keys, *scratch_keys;         /* [count] overwritten; scratch by RUNG_RADIX only */
    void *values, *scratch_values;     /* [count] the same; NULL without values */
    const void *first_values; /* [count] rung 7 only: the first pass reads values from here, and does not change them unless this is
                                 `values`; NULL: it reads `values` */
    int64_t *positions;       /* [count] rung 7 only, or NULL: values are 0 .. count - 1. The first pass makes them; they are in
                                 `values` on the way, and end here */
    const struct raw_keys *raw;        /* NULL: keys are codes */
    void *workspace;                   /* [as rung_N_NAME_workspace() says] aligned to 256 bytes */
    void *sorted_keys, *sorted_values; /* set to whichever of the above will hold the result, or to positions */
};

/* What ladder_sort() guarantees of equal keys. */
enum rung_order {
    RUNG_STABLE,  /* their values stay in the order of the input */
    RUNG_UNSTABLE /* their values come in some order, the same from run to run */
};

enum rung_kind {
    RUNG_NETWORK, /* the same comparators for every input; in place, so that scratch may be NULL */
    RUNG_RADIX    /* by digits; the result may lie in scratch */
};

enum rung_takes {
    RUNG_CODES, /* `raw` is not looked at */
    RUNG_BITS /* bare keys of any type, from raw->from, which it does not change unless that is args->keys */
};

enum rung_widths {
    RUNG_NARROW, /* keys of 4 and 8 bytes */
    RUNG_WIDE    /* bare keys of 16 bytes, too */
};

/* The row of LADDER for one rung; UNSTABLE, RADIX, NARROW for a number that is no rung. */
struct rung_row {
    enum rung_order order;
    enum rung_kind kind;
    enum rung_widths widths;
};

static inline struct rung_row rung_row_of(int rung)
{
    switch (rung) {
#define X(number, name, order, kind, takes, widths, ...) \
    case number:                                         \
        return {RUNG_##order, RUNG_##kind, RUNG_##widths};
        LADDER(X)
#undef X
    }
    return {RUNG_UNSTABLE, RUNG_RADIX, RUNG_NARROW};
}

static inline enum rung_order rung_order(int rung)
{
    return rung_row_of(rung).order;
}

static inline bool rung_is_network(int rung)
{
    return rung_row_of(rung).kind == RUNG_NETWORK;
}

static inline bool rung_is_wide(int rung)
{
    return rung_row_of(rung).widths == RUNG_WIDE;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Every rung has the second of these functions. Only rungs of RUNG_RADIX have the first, because networks take no workspace. The
 * engine's device is current.
 *
 *   rung_N_NAME_workspace()  bytes of workspace for the sizes of `args` and for its count of keys or fewer (its pointers
 *                            are not looked at); may be 0
 *   rung_N_NAME()            sort on STREAM_WORK; returns when the work is queued */
#define X(number, name, ...)                                                                                \
    hsort_status rung_##number##_##name##_workspace(struct cuda_engine *engine, const struct sort_args *args, \
                                                    size_t *bytes);                                         \
    hsort_status rung_##number##_##name(struct cuda_engine *engine, struct sort_args *args);
LADDER(X)
#undef X

/* Rung 6 in blocks of 512 or 1024 threads, with the same workspace, for the benchmark. Errors HSORT_ARGUMENT for another number. */
hsort_status rung_6_threads(struct cuda_engine *engine, struct sort_args *args, int threads);

/* Call a rung's two functions by its number; a count of 0 or 1 is sorted already. Errors HSORT_ARGUMENT for a number that
 * is no rung, naming the rungs there are, and for keys of 16 bytes if the rung has no kernels for them. */
hsort_status ladder_workspace(struct cuda_engine *engine, int rung, const struct sort_args *args,
                              size_t *bytes);
hsort_status ladder_sort(struct cuda_engine *engine, int rung, struct sort_args *args);

/* ladder_encode() writes the codes of the keys of args->raw to args->keys. ladder_decode() turns the codes at *sorted into keys in
 * args->keys, if args->raw wants that, and sets *sorted to args->keys. For numbered keys they do the same with positions. Without
 * args->raw they do nothing. */
hsort_status ladder_encode(struct cuda_engine *engine, const struct sort_args *args);
hsort_status ladder_decode(struct cuda_engine *engine, const struct sort_args *args, void **sorted);

/* Sort by a rung that takes codes, whatever form the keys have. */
hsort_status ladder_sort_codes(struct cuda_engine *engine, struct sort_args *args,
                               hsort_status (*rung)(struct cuda_engine *, struct sort_args *));

#ifdef __cplusplus
}
#endif

#endif
