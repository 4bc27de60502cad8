/* hypersort: sort arrays that are spread over the ranks of an MPI communicator, one GPU per rank.
 *
 * For C and C++. The pages named here are in share/doc/hypersort. The shortest use, with MPI initialised:
 *
 *     hsort_context *ctx;
 *     hsort_create(MPI_COMM_WORLD, NULL, &ctx);
 *     hsort_sort(ctx, HSORT_F64, HSORT_ASCENDING, keys, count, NULL);    // keys: host or device memory
 *     hsort_destroy(&ctx);
 *
 * Afterwards no key of rank r is greater than a key of rank r+1, and every rank still holds `count` keys.
 *
 * Rules that hold for every function
 *   Ranks      "Collective": every rank of the communicator calls it, with the same type, order and options.
 *              Counts, pointers and options.threads may differ. Any pointer goes with a count of 0.
 *   Errors     a collective function returns the same status on every rank, never leaves a rank waiting for
 *              another, and says in hsort_last_error() which rank failed, on which host, and why. After
 *              HSORT_CUDA or HSORT_MPI a context can only be destroyed; after HSORT_CUDA its trace can be
 *              written first. In two cases each rank decides alone: a NULL context is HSORT_ARGUMENT; before
 *              MPI_Init() and after MPI_Finalize() every collective function returns HSORT_MPI.
 *   Manners    the library never prints, exits, aborts, or initialises or finalises MPI. It works on a
 *              duplicate of the communicator that it was given. On GPUs it clears the runtime's last error.
 *   Threads    one call at a time per context; two contexts in two threads need MPI_THREAD_MULTIPLE.
 *   Order      integers by value. Floats: -inf ... -0.0, +0.0 ... +inf; every NaN last, in both directions.
 *              HSORT_DESCENDING reverses everything except NaNs. Equal keys have equal bits, so a sort of
 *              keys alone cannot be told from a stable one.
 *   Types      HSORT_TYPE_LIST. Keys are aligned to their size; hsort_sort(), hsort_sort_to() and
 *              hsort_check() want keys of 4 bytes aligned to 8. Keys of 1 and 2 bytes are counted and written
 *              anew: none moves between ranks, any number of them fits, and such a sort has no safe point.
 *              As keys of argsorts and pairs, and as fields, they are like any other keys.
 *   Versions   a struct with a struct_size grows at its end. Every size that it has had since version 0.2.0
 *              stays valid: the library reads and writes no byte beyond it, and members that a caller lacks
 *              have their defaults. A size that is larger than the library's own, or smaller than that of
 *              0.2.0, is HSORT_ARGUMENT. The same holds for the sizes of array elements in hsort_topology()
 *              and hsort_measure_paths(). Other structs never change.
 */
#ifndef HYPERSORT_H
#define HYPERSORT_H

#if defined(__cplusplus) && !defined(OMPI_SKIP_MPICXX) /* the old C++ bindings need a library of their own */
#define OMPI_SKIP_MPICXX 1
#endif
#if defined(__cplusplus) && !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include "hypersort_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HSORT_VERSION_MAJOR 0
#define HSORT_VERSION_MINOR 2
#define HSORT_VERSION_PATCH 0

/* Lengths of arrays in structs: longer than the lists, so that lists can grow. Unused elements are 0. */
enum { HSORT_PHASES_MAX = 8, HSORT_TRANSPORTS_MAX = 8, HSORT_RATES_MAX = 16 };

/* The rates and limits that hsort_plan() calculates with. */
typedef struct hsort_rates {
    size_t struct_size;
    hsort_engine engine;     /* whose rates these are; never AUTO */
    hsort_transport link;    /* between ranks of a node; never AUTO. With IPC, merges read over the link */
    double value[HSORT_RATES_MAX];              /* by hsort_rate */
    hsort_rate_source source[HSORT_RATES_MAX];
    double engine_bytes;     /* engine memory that a rank may take; 0: as much as it needs */
} hsort_rates;

/* What one exchange is expected to cost, for uniform keys. Bytes are doubles: they may exceed 63 bits. */
typedef struct hsort_plan_exchange {
    double messages;               /* the most of any rank: short ones, and transfers of keys of any size */
    double messages_all;           /* of all ranks */
    double moved_bytes_largest;    /* the most that any rank sends */
    double moved_bytes;            /* sent from one rank to another, all ranks */
    double seconds[HSORT_PHASES_MAX];  /* by hsort_phase */
    double total_seconds;          /* of the phases */
} hsort_plan_exchange;

/* What all ranks together are expected to send to other nodes in an exchange. */
typedef struct hsort_plan_crossing {
    double bytes;
    double plain_bytes;            /* the same keys without packing */
} hsort_plan_crossing;

/* What hsort_plan() expects. */
typedef struct hsort_plan_result {
    size_t struct_size;
    int64_t shard_capacity;        /* keys on a rank: ceil(count / ranks) */
    double shard_bytes;
    double engine_bytes;           /* of a rank, besides the caller's buffers: about hsort_workspace(), or
                                      the slots of two passes */
    double caller_bytes;           /* host memory of the caller, sorting in place: shard_bytes */
    hsort_exchange exchange;       /* the choice of AUTO, with the room that rates.engine_bytes leaves */
    hsort_plan_exchange bitonic, direct;
    int can_partition;             /* 1: this many ranks could sort by PARTITION; else 0 */
    hsort_plan_exchange partition; /* what PARTITION would cost; all 0 if can_partition is 0 */
    int64_t passes;                /* 1; 2 if the keys do not fit into rates.engine_bytes; 0 if the slots of
                                      two passes do not fit either */
    int64_t runs, segments;        /* of each rank, in two passes; else 0 */
    double host_bytes;             /* host memory of a rank in two passes, besides the caller's; else 0 */
    hsort_plan_exchange two_passes; /* what they cost; all 0 if passes is not 2 */
    hsort_plan_exchange counted;   /* what keys of 1 and 2 bytes cost, which no exchange moves: `exchange` is
                                      then AUTO, and the costs above are 0. All 0 for other keys */
    hsort_plan_crossing bitonic_crossing, direct_crossing; /* of their moved_bytes, those to other nodes */
    hsort_plan_crossing partition_crossing, two_passes_crossing; /* the same; 0 where those costs are 0 */
} hsort_plan_result;

/* ---- Names --------------------------------------------------------------------------------------------- */

/* Version as major * 10000 + minor * 100 + patch. Not collective. */
HSORT_API int hsort_version(void);

/* One line with version and commit of the library, and the compiler, CUDA and MPI that it was built with. Not
 * collective. Never NULL; valid until this thread ends. */
HSORT_API const char *hsort_build_info(void);

/* ---- What a sort would cost ---------------------------------------------------------------------------- */

/* Fill *rates with defaults: round numbers for an H200 in a node of several (CUDA), or for some cores (HOST).
 * Not collective.
 *   rates        [1] written, each rate with the source DEFAULT; the caller changes what it knows better
 *   struct_size  sizeof(hsort_rates) as the caller compiled it
 *   engine       AUTO means CUDA, whether or not there is a GPU
 *   link         AUTO means IPC with CUDA, MPI with HOST
 * Errors   HSORT_ARGUMENT. */
HSORT_API hsort_status hsort_rates_init(hsort_rates *rates, size_t struct_size, hsort_engine engine,
                                        hsort_transport link);

/* Predict what sorting `count` keys in place over `ranks` ranks would take. Needs no GPU. Not collective.
 *   rates           [1] from hsort_rates_init(); every rate greater than 0, except that HOST_COPY may be 0
 *   ranks           1 .. 2^30, filling one node after the other
 *   ranks_per_node  at least 1; with HOST and engine_bytes, these ranks share the cores of this machine
 *   type            of the keys
 *   count           keys on all ranks, 0 .. 2^62, taken as uniform random, in host memory, spread evenly
 *   plan            [1] struct_size set by the caller; the rest written
 * Memory   up to 0.3 MB of host memory, freed on return.
 * Errors   HSORT_ARGUMENT, HSORT_HOST_MEMORY.
 * Source   mpi/README.md, "What a sort costs". */
HSORT_API hsort_status hsort_plan(const hsort_rates *rates, int ranks, int ranks_per_node, hsort_type type,
                                  int64_t count, hsort_plan_result *plan);

/* ---- Context ------------------------------------------------------------------------------------------- */

typedef struct hsort_context hsort_context;

/* Called on rank 0 at the end of each step of a phase: `done` of `total` steps. Must not call the library. */
typedef void (*hsort_progress_fn)(void *user, const char *phase, int64_t done, int64_t total);

/* Asked at safe points whether to end the sort there; 0: no. Ranks may differ. Must not call the library. */
typedef int (*hsort_should_stop_fn)(void *user);

/* Set by hsort_options_init(), then changed field by field. The same on every rank, except `threads`, the
 * functions and what is handed to them. */
typedef struct hsort_options {
    size_t struct_size;
    hsort_engine engine;
    int local_rung;                   /* rung of the ladder for the local sort; -1: chosen by size and type.
                                         No effect on keys and codes of 16 bytes, or keys of 1 and 2 bytes */
    hsort_exchange exchange;
    hsort_transport transport;
    hsort_choice peer_memory;         /* ranks of a node map each other's engine memory (IPC). AUTO is ON */
    hsort_choice shared_memory;       /* ranks of a node use shared memory for STAGED and to take turns (IPC),
                                         and read each other's runs (two passes). AUTO is ON */
    hsort_choice mpi_device_pointers; /* MPI is given device memory. AUTO: tried if the MPI library says
                                         that it takes it; ON: tried whatever it says */
    hsort_binding binding;
    int threads;                      /* of the host engine on this rank, at most 64 or, if more, 4 for each
                                         processing unit of the machine; 0: one per core the rank may use */
    size_t chunk_bytes;               /* of a message, a multiple of 8, at most 1 GiB; 0: the default. In
                                         two passes at least a 4096th of a slot, at most 4 MiB */
    size_t device_memory_limit;       /* bytes of engine memory that a rank may take; the host engine then
                                         works on copies of keys as a GPU does; 0: what is free */
    hsort_progress_fn progress;       /* or NULL */
    void *progress_user;              /* handed to progress; owned by the caller */
    hsort_should_stop_fn should_stop; /* or NULL; see hsort_sort_to() */
    void *should_stop_user;           /* handed to should_stop; owned by the caller */
    int overwrite_input;              /* 1: hsort_sort_to() and hsort_sort_records_to() may leave anything in
                                         an input that is not their output, and then take no host memory for
                                         runs (two passes); 0, the default: they may not */
    int64_t trace_spans;              /* spans, of 72 bytes each, that each rank keeps for hsort_write_trace()
                                         from hsort_create() on; at most 2^32. 0, the default: none */
    int keep_host_memory;             /* 1: ctx keeps the host memory of runs (two passes), pinned: slower in
                                         the first sort, faster then; 0, the default: no sort keeps any */
} hsort_options;

/* Fill *options with the defaults of the library version in use. Not collective.
 *   options      [1] the first struct_size bytes are written
 *   struct_size  sizeof(hsort_options) as the caller compiled it
 * Errors   HSORT_ARGUMENT. */
HSORT_API hsort_status hsort_options_init(hsort_options *options, size_t struct_size);

/* Create a context: choose each rank's engine, GPU and cores, and the paths between ranks. Collective.
 *   comm     an intracommunicator; duplicated, the caller keeps it
 *   options  [1] copied, or NULL for the defaults
 *   ctx      [1] written; NULL after an error; the caller destroys it
 * Binding  if no launcher has bound the process, options.binding AUTO binds all its threads to the rank's
 *          cores, until its last such context is destroyed. Of several contexts the youngest decides.
 * Memory   pinned host memory: tens of MiB a rank, or 8 options.chunk_bytes. Sorts allocate key buffers.
 * Errors   same on every rank: HSORT_ARGUMENT, HSORT_NO_DEVICE, HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY,
 *          HSORT_CUDA, HSORT_MPI, HSORT_INTERNAL; the text is hsort_last_error(NULL). MPI_COMM_NULL and an
 *          intercommunicator are refused without asking other ranks. */
HSORT_API hsort_status hsort_create(MPI_Comm comm, const hsort_options *options, hsort_context **ctx);

/* hsort_create() for Fortran, and for callers that hold a valid communicator as an integer. Collective. */
HSORT_API hsort_status hsort_create_f(MPI_Fint comm, const hsort_options *options, hsort_context **ctx);

/* Free a context and all memory it holds. Collective: it may wait until every rank has called it.
 *   ctx  [1] becomes NULL. NULL, and a pointer to NULL, are fine
 * Errors   none is reported. After HSORT_MPI or HSORT_CUDA it may wait for ranks that never call it, so only
 *          ranks that are still together call it; a program that ends by MPI_Abort() or by exiting need not.
 *          After MPI_Finalize() it frees what belongs to this process, and waits for no other rank. */
HSORT_API void hsort_destroy(hsort_context **ctx);

/* One line about the last error of a context: rank, host and cause. "" if there was none. Not collective.
 *   ctx  NULL: about the last hsort_create() in this thread
 * Returns  never NULL; valid until the next call on the context. */
HSORT_API const char *hsort_last_error(const hsort_context *ctx);

/* ---- Sorting ------------------------------------------------------------------------------------------- */

/* Sort a distributed array in place. Collective.
 *   ctx     from hsort_create()
 *   type    of the keys; the same on every rank
 *   order   the same on every rank
 *   keys    [count] host, device or managed memory, aligned as the head of this file says, owned by the
 *           caller; overwritten
 *   count   keys on this rank, >= 0; may differ between ranks; each rank keeps its count
 *   stream  a cudaStream_t: the keys are ready after its work; NULL: the default stream, or host keys
 * After    the ranks' keys, one rank after the other, are in order; the multiset of keys is unchanged.
 * Order    see the head of this file. Stability does not apply to bare keys.
 * Memory   engine memory, as hsort_workspace() says; ctx keeps it for the next sort. If keys in engine memory
 *          keep their counts, their sort can do with less, down to 1/64 of their size, but is then slower
 *          (src/library/README.md). If some rank lacks the room and all keys are in host memory, all ranks
 *          sort in two passes (same page), in the engine memory that there is and in host memory as
 *          hsort_host_workspace() says. What all ranks of a node want of host memory is first compared with
 *          the limits of the machine and of cgroups.
 *          Keys of 1 and 2 bytes take at most 640 KiB of engine memory for a table, up to 64 MiB more if they
 *          are in host memory, and at most 512 KiB of host memory for each of three tables.
 * Stream   waits for `stream`; everything is complete on return. Cannot be captured in a CUDA graph.
 * Errors   same on every rank: HSORT_ARGUMENT, HSORT_DEVICE_MEMORY, HSORT_HOST_MEMORY, HSORT_CUDA, HSORT_MPI,
 *          HSORT_INTERNAL. The keys are untouched after ARGUMENT and the MEMORY errors, and undefined after
 *          the others. HSORT_STOPPED is no error: see hsort_sort_to().
 * Source   Batcher 1968, "Sorting networks and their applications"; Peters, Schulz-Hildebrandt, Luttenberger,
 *          "Fast in-place sorting with CUDA based on bitonic sort", sections 2 and 3.3; mpi/README.md. */
HSORT_API hsort_status hsort_sort(hsort_context *ctx, hsort_type type, hsort_order order, void *keys,
                                  int64_t count, void *stream);

/* Sort a distributed array into another one, with the counts that the caller asks for. Collective.
 *   in         [count] as `keys` of hsort_sort(), but unchanged, unless options.overwrite_input is 1. It is
 *              the same pointer as `out`, or does not overlap it, or HSORT_ARGUMENT
 *   out        [out_count] host, device or managed memory, aligned as `keys` of hsort_sort(), owned by the
 *              caller; overwritten
 *   out_count  keys that this rank is to end with, >= 0; its sum over all ranks equals that of `count`, or
 *              HSORT_ARGUMENT
 * Otherwise as hsort_sort().
 *
 * Stopping, for this sort and hsort_sort(): options.should_stop is called on every rank at the safe points,
 * where keys are in a state that can be kept. There is one, between local sort and exchange. There is none if
 * the exchange PARTITION runs, if shards are of uneven size but arrive in order, in two passes, and for keys
 * of 1 and 2 bytes. If any rank answers other than 0, the exchange is left out, and all ranks return
 * HSORT_STOPPED. Then
 *   - the `out` of all ranks together hold the multiset of keys, each as many as its rank asked for;
 *   - each rank's `out` is in order, if all ranks asked for as many keys as they brought, and none brought
 *     more than ceil(N / P) of the N keys on P ranks;
 *   - hsort_last_error() names a rank that asked to stop; statistics are still those of the sort before;
 *   - ctx can be used as before, and sorting `out` again completes the sort. */
HSORT_API hsort_status hsort_sort_to(hsort_context *ctx, hsort_type type, hsort_order order, const void *in,
                                     int64_t count, void *out, int64_t out_count, void *stream);

/* What a check finds. Global positions count through the ranks in order. */
typedef struct hsort_check_result {
    size_t struct_size;
    int64_t count;            /* keys on all ranks */
    int64_t first_disorder;   /* global position of the first key less than the one before it; -1: none */
    uint64_t fingerprint[2];  /* of the multiset of keys: does not depend on their order or on the ranks */
    /* From hsort_check_pairs() and hsort_check_records(), whose fingerprint covers whole elements. After
     * hsort_check() these are -1 and 0: */
    int64_t first_unstable;   /* global position of the first element with the same key as the one before it,
                                 but no greater index; -1: none */
    uint64_t placed_fingerprint[2]; /* of the multiset of elements, each with its index */
} hsort_check_result;

/* Check the order of a distributed array and take its fingerprint. Collective.
 *   ctx, type, order, count, stream  as for hsort_sort()
 *   keys    [count] host, device or managed memory, aligned as `keys` of hsort_sort(); unchanged
 *   result  [1] struct_size set by the caller; the rest written, the same on every rank
 * Memory   up to 64 MiB of engine memory for keys that the engine cannot read where they are; kept by ctx.
 * Stream   waits for `stream`; everything is complete on return. Cannot be captured in a CUDA graph.
 * Errors   same on every rank: HSORT_ARGUMENT, HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY, HSORT_CUDA, HSORT_MPI,
 *          HSORT_INTERNAL. Disorder is a result, not an error.
 * Source   the fingerprint, 128 bits, is a sum of mixed keys, each as a number of 64 bits, of 128 for u128:
 *          fingerprint_add() in kernels/base/keytype.h. */
HSORT_API hsort_status hsort_check(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                   int64_t count, void *stream, hsort_check_result *result);

/* ---- Sorting what travels with keys ---------------------------------------------------------------------
 *
 * The rules at the head of this file hold, and for all functions of this section
 *   Order    by key, as bare keys are ordered. Keys with equal bits keep the order of the input, by rank and
 *            then by position, in both directions: HSORT_DESCENDING does not reverse ties. So the result is
 *            the same, bit for bit, for any number of ranks, exchange, engine and transport. NumPy's stable
 *            sorts agree, except for floats: NumPy takes -0.0 for equal to +0.0, and all NaNs for equal; here
 *            they differ by their bits.
 *   Index    a global position: that of element i of rank r is i plus the counts of all ranks before r.
 *   Memory   engine memory for codes of 16 bytes, or of 8 if key and position together fit into 64 bits: with
 *            N elements on P ranks two times ceil(N / P) codes, and one for each element that this rank has
 *            before and after. Elements that travel, and keys that take two rounds, need up to 88 bytes more
 *            each, and 128 MiB. Arrays in host memory need a copy, arrays sorted in place one more copy. On
 *            several ranks with GPUs, if there is room, engine memory holds pairs twice instead of codes, or
 *            elements of other sizes three times, with their keys. ctx keeps it for the next call, and frees
 *            it if another call lacks it. If some rank lacks it and all arrays are in host memory, argsorts
 *            and sorts of pairs and records take two passes (src/library/README.md): in the engine memory
 *            that there is, and in as much host memory as elements, keys and positions take. Otherwise the
 *            call fails with HSORT_DEVICE_MEMORY, or with HSORT_HOST_MEMORY on a limited host engine.
 *   Stream   as hsort_sort(): waits for `stream`, complete on return. options.should_stop is not called.
 *   Errors   as hsort_sort_to(), the same on every rank. Arrays that are only read are never changed, except
 *            by overwrite_input in hsort_sort_records_to(). What is written is undefined after an error; only
 *            HSORT_ARGUMENT and the MEMORY errors leave arrays that are sorted in place as they were.
 *   Source   unique codes from keys and positions: Arkouda's coargsort and sample sorts that break ties by
 *            position do likewise (src/library/README.md, "What travels with keys"). */

/* Which keys come first: the order of a distributed array, without moving it. Collective.
 *   type, order  of the keys; the same on every rank
 *   keys         [count] host, device or managed memory, aligned to the key size; not changed
 *   index        [out_count] host, device or managed memory, 8-byte aligned; written: for each place of the
 *                result the index, in `keys` of all ranks, of the key that belongs there
 *   keys_out     [out_count] written: the keys in order; may be `keys` if the counts are equal; or NULL
 *   out_count    places of the result on this rank. Its sum over all ranks equals that of `count`, or
 *                HSORT_ARGUMENT
 *   stream       as for hsort_sort() */
HSORT_API hsort_status hsort_argsort(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                     int64_t count, int64_t *index, void *keys_out, int64_t out_count,
                                     void *stream);

/* Sort keys, and move a value with each. Collective. In place; hsort_sort_pairs_to(): into other arrays,
 * with the counts that the caller asks for.
 *   keys         [count] host, device or managed memory, aligned to the key size; overwritten
 *   values       [count * value_bytes] of any alignment, in any of these memories; overwritten
 *   value_bytes  1 .. 65536, the same on every rank
 *   keys_out     [out_count], or NULL if only values are wanted
 *   values_out   [out_count * value_bytes]. No array that is written, also in place, overlaps another, or
 *                HSORT_ARGUMENT; but keys_out may be `keys`, and values_out `values`, if counts are equal
 *   count        elements on this rank; out_count: elements that it is to end with. Their sums over all ranks
 *                are equal, or HSORT_ARGUMENT
 *   stream       as for hsort_sort()
 * A value crosses between ranks once at most. */
HSORT_API hsort_status hsort_sort_pairs(hsort_context *ctx, hsort_type type, hsort_order order, void *keys,
                                        void *values, size_t value_bytes, int64_t count, void *stream);
HSORT_API hsort_status hsort_sort_pairs_to(hsort_context *ctx, hsort_type type, hsort_order order,
                                           const void *keys, const void *values, size_t value_bytes,
                                           int64_t count, void *keys_out, void *values_out, int64_t out_count,
                                           void *stream);

/* A key inside a record, or a column. */
typedef struct hsort_field {
    size_t offset;     /* of its first byte in the record; needs no alignment */
    hsort_type type;   /* of a number, unless `bytes` says otherwise */
    hsort_order order; /* of this field alone */
    int bytes;         /* 0: a number. 1 .. 16: this many bytes, compared as unsigned from the first one on */
    int big_endian;    /* 1: the number is stored with its most significant byte first */
} hsort_field;

enum { HSORT_FIELDS_MAX = 8, HSORT_KEY_BYTES_MAX = 16 };

/* Sort records by the first of the fields, where those are equal by the second, and so on. Collective. In
 * place; hsort_sort_records_to(): into another array, with the counts that the caller asks for.
 *   records       [count * record_bytes] host, device or managed memory, of any alignment; overwritten
 *   record_bytes  1 .. 65536, the same on every rank
 *   fields        [field_count] the same on every rank: 1 .. HSORT_FIELDS_MAX fields of at most
 *                 HSORT_KEY_BYTES_MAX bytes together. They may overlap. The rest of a record has no influence
 *   count, out, out_count, stream  as for pairs; out may be `records` if counts are equal
 * A record crosses between ranks once at most. */
HSORT_API hsort_status hsort_sort_records(hsort_context *ctx, void *records, size_t record_bytes,
                                          const hsort_field *fields, int field_count, int64_t count,
                                          void *stream);
HSORT_API hsort_status hsort_sort_records_to(hsort_context *ctx, const void *records, size_t record_bytes,
                                             const hsort_field *fields, int field_count, int64_t count,
                                             void *out, int64_t out_count, void *stream);

/* The order of a table by several of its columns, as hsort_argsort(); hsort_gather() then brings each column
 * into that order. Collective.
 *   columns  [field_count], not NULL: arrays [count] as the fields say; host, device or managed; not changed
 *   fields   as for records; their offsets are 0
 *   count, index, out_count, stream  as for hsort_argsort() */
HSORT_API hsort_status hsort_argsort_columns(hsort_context *ctx, const void *const *columns,
                                             const hsort_field *fields, int field_count, int64_t count,
                                             int64_t *index, int64_t out_count, void *stream);

/* out[i] = in[index[i]], over all ranks: bring any array into the order that hsort_argsort() has found.
 * Collective.
 *   in             [count * element_bytes] the distributed array, not changed
 *   element_bytes  1 .. 65536, the same on every rank
 *   index          [out_count] any, also repeated; an index outside the array is HSORT_ARGUMENT
 *   out            [out_count * element_bytes] overlaps nothing
 * All three in host, device or managed memory; index 8-byte aligned, in and out of any alignment. An element
 * crosses between ranks once for each index that names it.
 * Memory   engine memory for arrays that lie in host memory. On several ranks also up to 40 bytes for each
 *          index during the call, and two slices of 64 MiB at most, one of which ctx keeps. If some rank
 *          lacks it and all arrays are in host memory, the ranks' cores do the work there: without copies of
 *          the arrays, but with the rest in host memory. */
HSORT_API hsort_status hsort_gather(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                                    const int64_t *index, void *out, int64_t out_count, void *stream);

/* out[index[i]] = in[i], over all ranks: the inverse. Collective.
 *   in     [count * element_bytes]
 *   index  [count] names each position of `out` once at most, or the element there is undefined
 *   out    [out_count * element_bytes] elements that no index names stay as they were
 * Otherwise as hsort_gather(). */
HSORT_API hsort_status hsort_scatter(hsort_context *ctx, const void *in, int64_t count, size_t element_bytes,
                                     const int64_t *index, void *out, int64_t out_count, void *stream);

/* Check what hsort_sort_pairs(), hsort_sort_records(), or hsort_argsort() and hsort_gather() have made: are
 * keys in order, is each with what belongs to it, do equal keys keep the order of the input? Collective.
 *   type, order, keys, fields  as for the sorts; no array is changed
 *   values       [count * value_bytes] of any alignment, 1 .. 65536 bytes each
 *   records      [count * record_bytes] of any alignment, 1 .. 65536 bytes each
 *   count        elements on this rank; may differ between ranks
 *   index        [count] 8-byte aligned: where each element was before, as hsort_argsort() says; NULL: its
 *                own global position. Some ranks may pass NULL and others not
 *   stream       as for hsort_sort()
 *   result       [1] struct_size set by the caller; the rest written, the same on every rank
 * Compare a result from before with one from after. Equal fingerprints mean the same elements, whole, in any
 * order, on any ranks and engine. If the check of `after` was given the index, equal placed_fingerprints mean
 * that each element is the one that was where its index says; then a first_unstable of -1 says that ties kept
 * their order.
 *     before   7a 7b 3c     index NULL: 0 1 2
 *     after    3c 7a 7b     index 2 0 1            all is well
 *              3c 7b 7a           2 0 1            placed_fingerprint differs: a and b have swapped places
 *              3c 7b 7a           2 1 0            first_unstable 2
 *              3c 7a 7a           2 0 1            fingerprint differs, and placed_fingerprint
 *              7c 3a 7b           2 0 1            the same; and first_disorder 1
 * Without an index for `after`, values that swapped places between equal keys are not found, and
 * placed_fingerprint and first_unstable mean nothing.
 * Memory   up to 64 MiB of engine memory for arrays that the engine cannot read where they are; kept by ctx.
 * Errors   as hsort_check(). Disorder is a result, not an error.
 * Source   sums of mixed words and elements: kernels/README.md. */
HSORT_API hsort_status hsort_check_pairs(hsort_context *ctx, hsort_type type, hsort_order order,
                                         const void *keys, const void *values, size_t value_bytes,
                                         int64_t count, const int64_t *index, void *stream,
                                         hsort_check_result *result);
HSORT_API hsort_status hsort_check_records(hsort_context *ctx, const void *records, size_t record_bytes,
                                           const hsort_field *fields, int field_count, int64_t count,
                                           const int64_t *index, void *stream, hsort_check_result *result);

/* Find the keys that a sort would put at some global positions, without moving any: medians, quantiles,
 * splitters. Collective.
 *   type, order  of the keys; the same on every rank
 *   keys         [count] host, device or managed memory, aligned to the key size; not changed
 *   positions    [wanted] host memory: 0 .. N - 1 of the N keys of all ranks, in any order, also repeated;
 *                the same on every rank, or HSORT_ARGUMENT
 *   selected     [wanted] host memory, written on every rank: keys of `type`; overlaps no array
 *   stream       as hsort_sort()
 * Memory   engine memory for this rank's keys twice, and once more if they are in host memory; or, as for
 *          hsort_gather(), host memory for them twice. Keys of 1 and 2 bytes: as hsort_sort().
 * Time     a local sort; then for each bit of a key one message, of 8 bytes for each position.
 *          Keys of 1 and 2 bytes: a pass over them, and a message of 512 KiB at most.
 * Errors   as hsort_sort(); the keys are never changed. */
HSORT_API hsort_status hsort_select(hsort_context *ctx, hsort_type type, hsort_order order, const void *keys,
                                    int64_t count, const int64_t *positions, int64_t wanted, void *selected,
                                    void *stream);

/* Find the runs of equal keys in a sorted distributed array: one key of each, how often it occurs, and where.
 * Collective. A run may extend over several ranks: it is kept once, on the rank where it begins.
 *   type      of the keys; the same on every rank
 *   keys      [count] host, device or managed memory, aligned to the key size; in order over all ranks, in
 *             either direction; not changed, unless it is keys_out. Keys are equal if their bits are. If keys
 *             are not in order, each run counts for itself, which is no error
 *   keys_out  room for [count], aligned to the key size; written [*kept]: one key of each run. May be
 *             `keys`; or NULL
 *   kept      [1] host memory, written: runs that begin on this rank
 *   counts    room for [count]; written [*kept]: keys of each run on all ranks; or NULL
 *   first     room for [count]; written [*kept]: the global position of the first key of each run; or NULL
 *   ids       [count] written: the number of each key's run, counted from 0 over all ranks; or NULL
 *   stream    as hsort_sort()
 * Outputs in host, device or managed memory, int64_t 8-byte aligned; elements after the first *kept stay as
 * they were. Outputs overlap neither each other nor the keys. Which are NULL may differ between ranks.
 *     keys      rank 0: 5 5 7     rank 1: 7 7     rank 2: 7 9
 *     keys_out          5 7               -               9          kept 2, 0, 1
 *     counts            2 4               -               1
 *     first             0 2               -               6
 *     ids               0 0 1             1 1             1 2        keys_out[ids[i]] of all ranks is keys[i]
 * Memory   engine memory for arrays that lie in host memory, and for keys_out in place; or as hsort_gather().
 * Time     two passes over the keys, and two messages of a few bytes from each rank to all. */
HSORT_API hsort_status hsort_unique(hsort_context *ctx, hsort_type type, const void *keys, int64_t count,
                                    void *keys_out, int64_t *kept, int64_t *counts, int64_t *first,
                                    int64_t *ids, void *stream);

/* Engine memory that a sort will take on this rank, besides the caller's buffers. Not collective.
 *   ctx        from hsort_create()
 *   type       of the keys
 *   count      the largest count, in or out, of any rank; below 2^59, for u128 below 2^58
 *   bytes      [1] written: the most engine memory that sorts of this size keep in ctx. Messages take some
 *              16 MiB more if MPI handles engine memory, and hsort_check() of host keys up to 64 MiB
 * Errors   HSORT_ARGUMENT; HSORT_MPI: MPI has been finalised. */
HSORT_API hsort_status hsort_workspace(const hsort_context *ctx, hsort_type type, int64_t count,
                                       size_t *bytes);

/* Host memory that a sort of keys in host memory will take on this rank, besides the caller's, until it
 * returns: 0 if one pass is enough, as it is if there is all the engine memory that hsort_workspace() names;
 * else what two passes take. Not collective.
 *   ctx, type, count  as for hsort_workspace()
 *   bytes   [1] written. With options.overwrite_input, hsort_sort_to() into another array takes none for the
 *           keys; with keep_host_memory, ctx keeps what is for keys. Calls on elements document their own
 * Errors   HSORT_ARGUMENT, HSORT_CUDA. */
HSORT_API hsort_status hsort_host_workspace(const hsort_context *ctx, hsort_type type, int64_t count,
                                            size_t *bytes);

/* ---- What happened, and where -------------------------------------------------------------------------- */

/* What one transport carried between ranks. */
typedef struct hsort_path_stats {
    int64_t pairs;                  /* of ranks for which hsort_path() returns it */
    int64_t moved_bytes;            /* sent from one rank to another, all ranks */
    int64_t moved_bytes_largest;    /* the most that any rank sent */
    double seconds;                 /* of sending and receiving by it: the largest of all ranks. Includes
                                       waiting for the other rank, and merges over IPC */
} hsort_path_stats;

/* What a sort did, or another call on keys and elements: pairs, records, argsort, gather, scatter, select,
 * unique. Codes that such a call sorts for its elements are counted as keys are. */
typedef struct hsort_stats {
    size_t struct_size;
    int64_t keys;                   /* or elements, all ranks: sorted, gathered, scattered, looked through */
    int64_t moved_bytes;            /* sent from one rank to another, all ranks: keys, codes, elements, and
                                       the positions by which ranks ask for elements */
    int rounds;                     /* of the exchange in which this rank moved any key */
    double seconds[HSORT_PHASES_MAX]; /* by hsort_phase: the largest of all ranks */
    double total_seconds;           /* from entry to return: the largest of all ranks */
    hsort_path_stats paths[HSORT_TRANSPORTS_MAX]; /* by hsort_transport; AUTO: all 0. A pair may also use
                                       another transport than its own, for memory that it cannot map. In pass
                                       2 of two passes, MPI has what came by message, and STAGED what others
                                       read. All moved_bytes add up to the one above */
    int64_t passes;                 /* 2: some rank's keys did not fit into its engine's memory; else 1 */
    int64_t runs, segments;         /* in two passes, of all ranks: sorted runs, parts of the result; or 0 */
    int64_t crossed_bytes;          /* the part of moved_bytes that went from one node to another */
    int64_t crossed_plain_bytes;    /* the same keys, codes and elements without packing: never less. For bare
                                       keys, this / the key size is how many crossed */
    int64_t paths_crossed_bytes[HSORT_TRANSPORTS_MAX]; /* crossed_bytes by hsort_transport */
    hsort_engine engine;            /* that did it: HOST also with GPUs, for what they had no room for */
} hsort_stats;

/* Statistics of the last successful sort or call on elements; the same on every rank, except `rounds`. Not
 * collective. Checks leave them as they are.
 *   stats  [1] struct_size set by the caller; the rest written
 * Errors   HSORT_ARGUMENT, also if there was none. */
HSORT_API hsort_status hsort_get_stats(const hsort_context *ctx, hsort_stats *stats);

/* Write a trace of what each rank did since hsort_create() or the last trace, for ui.perfetto.dev or
 * chrome://tracing: a process for each rank, a thread for each of its threads and each stream of its GPU,
 * spans with names, keys, bytes, and the ranks that these go to and come from. Works also after a call that
 * failed, but not with HSORT_MPI; after HSORT_CUDA the streams are missing. Collective.
 *   path   of the file; read on rank 0 alone. Rank 0 writes PATH.hypersort-PID.part and, once that is whole,
 *          puts it in the place of what was there
 *   spans  [1] written, the same on every rank: how many spans the file has; or NULL
 *   lost   [1] written, the same on every rank: how many spans had no room; or NULL
 * Time     of rank 0's clock, in us. The clocks of the other ranks and of GPUs are compared with it in
 *          hsort_create() and here; the file says how far the times may be off.
 * Errors   same on every rank: HSORT_ARGUMENT (options.trace_spans was 0; path is NULL), HSORT_IO (nothing is
 *          left behind), HSORT_HOST_MEMORY, HSORT_MPI. A file that was there stays as it was. */
HSORT_API hsort_status hsort_write_trace(hsort_context *ctx, const char *path, int64_t *spans, int64_t *lost);

/* Where every rank runs. Collective.
 *   infos      [size of the communicator] written on every rank; caller owns it
 *   info_size  sizeof(hsort_rank_info) as the caller compiled it: the distance between two elements
 * Errors   same on every rank: HSORT_ARGUMENT, HSORT_HOST_MEMORY, HSORT_MPI. */
HSORT_API hsort_status hsort_topology(hsort_context *ctx, hsort_rank_info *infos, size_t info_size);

/* The engine in use, never AUTO, the same on every rank; AUTO if ctx is NULL. Not collective. */
HSORT_API hsort_engine hsort_engine_in_use(const hsort_context *ctx);

/* The exchange of the last sort, whether or not a key moved, or before the first one the option; AUTO if none
 * ran (in two passes, for keys of 1 or 2 bytes), or ctx is NULL. The same on every rank. Not collective. */
HSORT_API hsort_exchange hsort_exchange_in_use(const hsort_context *ctx);

/* The path between this rank and `peer`, the same seen from `peer`. AUTO if, and only if, ctx is NULL or
 * there is no path because `peer` is this rank or outside 0 .. size - 1. Not collective. */
HSORT_API hsort_transport hsort_path(const hsort_context *ctx, int peer);

/* Measure how fast the paths between ranks are, many pairs at once, as in a sort. Collective.
 *   speeds      [size of the communicator] written: between this rank and each other rank, the same seen from
 *               both. Up to 16 ranks: all pairs. More: each rank with the next, the one before, and the one
 *               half of all ranks away. Caller owns it
 *   speed_size  sizeof(hsort_path_speed) as the caller compiled it: the distance between two elements
 * Time     at most some tens of milliseconds a pair, and at most 16 pairs one after the other.
 * Memory   64 MiB of engine memory, freed on return.
 * Errors   same on every rank: HSORT_ARGUMENT, HSORT_HOST_MEMORY, HSORT_DEVICE_MEMORY, HSORT_CUDA,
 *          HSORT_MPI. */
HSORT_API hsort_status hsort_measure_paths(hsort_context *ctx, hsort_path_speed *speeds, size_t speed_size);

/* 1 if the MPI library moved a checked message between device buffers; 0 if it did not, or was not tried
 * because of options.mpi_device_pointers; -1 with the engine HOST, if STAGED was asked for, or if ctx is
 * NULL. The same on every rank. Not collective. */
HSORT_API int hsort_mpi_takes_device_pointers(const hsort_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
