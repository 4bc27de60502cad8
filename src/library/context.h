/* What a context holds. Private to the library's own files in src/. */
#ifndef CONTEXT_H
#define CONTEXT_H

#include <stdbool.h>
#include "mpi/comm/clock.h"
#include "mpi/comm/comm.h"
#include "kernels/spare_memory.h"
#include "hypersort.h"
#include "mpi/comm/placement.h"
#include "mpi/transport/transport.h"
#include "src/library/run_memory.h"
#include "src/library/verify.h"

/* What a context keeps engine memory for. */
enum kept {
    KEPT_KEYS, /* keys of a sort; in an exchange of pairs, what no other rank sees */
    KEPT_SCRATCH, /* scratch of a sort; in an exchange of pairs, what other ranks see; pieces of arrays out of the engine's reach */
    KEPT_WORKSPACE, /* of the local sort */
    KEPT_CODES,     /* of elements: element_order.c */
    KEPT_SLICE,     /* of elements on their way: element_carry() */
    KEPT_EXCHANGE,  /* of exchange_ops.memory_bytes() */
    KEPT_MEMORIES
};

enum { CONTEXT_ERROR_BYTES = sizeof((struct comm *)0)->error };

struct hsort_context {
    struct comm comm;
    hsort_options options;
    struct placement placement;
    hsort_rank_info info;
    struct engine *engine;
    struct transport *transport;
    int mpi_takes_device_pointers;

    struct kept_memory kept[KEPT_MEMORIES];
    struct spare_memory spare; /* for calls on elements; its engine is set with the one above */
    struct run_memory runs;    /* kept with options.keep_host_memory; else empty between sorts */
    int64_t *have_offset, *want_offset, *even_offset; /* [size + 1] each: see sort.c */
    unsigned usable_exchanges;             /* bit 1 << kind of each; the same on every rank */
    void *exchange_tables[HSORT_EXCHANGES]; /* of exchange_ops.open() */
    hsort_exchange exchange;               /* of the last sort */
    key_code *ends;                        /* [3 * size] count, first and last encoded key of every rank */

    hsort_stats stats;
    bool has_stats;
    double own_seconds[HSORT_PHASES]; /* of this rank, of the last call that has statistics, */
    int64_t own_moved_bytes;          /* and what it has sent */
    struct clock_offset clock; /* taken when the trace, comm.trace, was begun */
    struct {
        double entered, phase_began;
        double seconds[HSORT_PHASES];
        hsort_stats sorts; /* of the sorts inside, added up */
    } call; /* a call on elements under way: what this rank has done in it */
    hsort_context *on_host; /* of a call in host memory (host_call.h) that has lost the other ranks; else NULL */
    bool tries_again;       /* a second try (host_call.h) is under way */
    char error[CONTEXT_ERROR_BYTES]; /* of the last call that failed, "" if none did */
};

/* As hsort_create(), but the error line goes to error [CONTEXT_ERROR_BYTES]; "" if all is well. Collective. */
hsort_status context_create(MPI_Comm comm, const hsort_options *options, hsort_context **ctx, char *error);

/* Begin a public collective call: forget the last error. Not collective.
 * Errors   HSORT_ARGUMENT if ctx is NULL, HSORT_MPI after MPI_Finalize(): the call returns at once. */
hsort_status context_enter(hsort_context *ctx);

/* Can these be a caller's keys [count] of key_bytes each? `name` is what the caller calls them. With a count of 0 any
 * pointer is fine. Not collective. Errors HSORT_ARGUMENT. */
hsort_status context_check_keys(const hsort_context *ctx, int key_bytes, const char *name, const void *keys,
                                int64_t count);

/* The same for both arrays of a sort, which must be one and the same, or have no byte in common. Not collective. Errors
 * HSORT_ARGUMENT. */
hsort_status context_check_in_and_out(const hsort_context *ctx, int key_bytes, const void *in,
                                      int64_t in_count, const void *out, int64_t out_count);

/* Do type and order exist? Not collective. Errors HSORT_ARGUMENT. */
hsort_status context_check_type(hsort_type type, hsort_order order);

/* Do type and order exist, and are they the same on every rank?
 * Collective.
 *   mine  this rank's status so far, agreed on here
 * Errors   HSORT_ARGUMENT, HSORT_MPI; same on every rank, comm->error is written. */
hsort_status context_agree_on_keys(hsort_context *ctx, hsort_type type, hsort_order order, hsort_status mine);

/* Agree on `mine` at the end of a phase in which ranks may have read each other's memory. Afterwards memory of the caller's is
 * the caller's alone again. Collective. */
hsort_status context_agree(hsort_context *ctx, hsort_status mine);

/* Call this before context memory is freed: if any rank says that it `frees` some, no rank maps another rank's memory
 * afterwards. Collective. Errors HSORT_MPI. */
hsort_status context_unmap(hsort_context *ctx, bool frees);

/* Let what the caller has queued on `stream` come first: before the work on STREAM_WORK, and, if `space` is that of ordinary
 * memory, before this returns, because the host's cores copy such keys at once. Not collective. Errors: the engine's. */
hsort_status context_wait_caller(hsort_context *ctx, void *stream, enum engine_space space);

/* Keep the line of an agreement that has failed already, for hsort_last_error(): comm->error, or this rank's own
 * text after HSORT_MPI. Returns `status`. Not collective. */
hsort_status context_fail(hsort_context *ctx, hsort_status status);

/* Have at least `bytes` of one of the memories that the context keeps (context_memory.h takes all of them at once). If it grows,
 * its contents are lost. Not collective, but if it grows and other ranks may map it, context_unmap() comes first. */
hsort_status context_reserve(hsort_context *ctx, enum kept which, size_t bytes);

/* Bytes of KEPT_SCRATCH for keys that the engine cannot reach, which pass through it piece by piece. Less memory gives
 * smaller pieces.
 *   bytes  [1] read: of all these keys; written: of a piece, at most STREAM_PART_BYTES
 * Not collective. Errors: the engine's. */
hsort_status context_piece_bytes(const hsort_context *ctx, size_t *bytes);

/* Keep what hsort_get_stats() returns, from what this rank knows of its sort. mine->paths, and what crossed to other nodes, hold
 * what the rank has sent beside the transport, added by stats_of_traffic(). seconds [HSORT_PHASES]. Collective. */
void stats_of_traffic(hsort_stats *stats, hsort_transport path, const struct traffic *traffic);
hsort_status stats_keep(hsort_context *ctx, const hsort_stats *mine, const double *seconds);

/* What hsort_get_stats() returns of a call on elements, which may sort several times and carry elements besides:
 *
 *     stats_begin()                                              at its entry; the transport counts from here on
 *     stats_book(H2D) ... stats_add() ... stats_book(GATHER)     the time since the last booking belongs to this phase; a sort
 *                                                                inside adds what it has booked itself
 *     stats_finish()                                             after the call has gone well on every rank; collective
 *
 * The work of an engine counts only once it has been waited for; that is up to the caller. */
void stats_begin(hsort_context *ctx);
void stats_book(hsort_context *ctx, hsort_phase phase);
void stats_add(hsort_context *ctx, const hsort_stats *sort, const double *seconds);

/* keys: elements on all ranks. Errors agreed: HSORT_MPI. */
hsort_status stats_finish(hsort_context *ctx, int64_t keys);

/* Feed this rank's keys [count], in any memory, to a verifier. Keys that the engine cannot reach pass through
 * KEPT_SCRATCH, which must not be empty then. Not collective. */
hsort_status context_inspect(hsort_context *ctx, struct verifier *verifier, const void *keys, int64_t count);

#endif
