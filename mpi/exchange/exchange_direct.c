/* The exchange in which each key moves once: cut every rank's run for all ranks at once (splitters.c), send
 * each piece to the rank it belongs to, merge what has come.
 *
 *                 runs, cut          scratch: pieces in order of their source ranks     merged
 *     rank 0    0 1 5 | 6 | 9        0 1 5 | 2 | 3                                      0 1 2 3 5
 *     rank 1    2 | 6 7 | 8 10       6 | 6 7 | 5' 6'       (5' counts as after 5)       5' 6 6 6' 7
 *     rank 2    3 | 5' 6' | 11 12    9 | 8 10 | 11 12                                   8 9 10 11 12
 *
 * There are P - 1 steps (step_order.h). In each a rank sends to one rank and receives from another, so no rank is sent to
 * by all others at the same time. Where nothing is to be sent there is no message. Pieces with a slow path (packed_paths.h)
 * go before the others, in a stream of messages in the same order, as differences between neighbours (column_messages.h).
 * MPI_Alltoallv is not used: its counts are ints, and on device memory it crashes or crawls in MPI libraries whose
 * point-to-point messages are fine. A second form, over rails (first to the rank of the same local number on each other
 * node, then inside the node), sends fewer messages on many nodes; it is left out until there is a machine on which it
 * is seen to gain.
 *
 * Where there is no second buffer for all keys, the cut pieces change ranks in place (swap_pieces.c).
 *
 * All ranks agree that nothing has failed before a key moves: only then do both sides of every message know
 * its length.
 *
 * Source: Siebert, Wolf 2011; Solomonik, Kale 2010; mpi/README.md. */
#include <stdlib.h>
#include "kernels/base/fault.h"
#include "mpi/exchange/column_messages.h"
#include "mpi/exchange/exchange.h"
#include "mpi/exchange/packed_paths.h"
#include "mpi/exchange/splitters.h"
#include "mpi/exchange/step_order.h"
#include "mpi/exchange/swap_pieces.h"

struct direct_tables {
    struct splitters *splitters;
    int64_t *cut_offset;       /* [size + 1] own keys cut_offset[r] .. cut_offset[r + 1] - 1 go to rank r */
    int64_t *sends, *receives; /* [size] keys to and from each rank */
    int64_t *piece_offset;     /* [size + 1] where in the scratch buffer the keys from each rank begin */
    struct place_span *packed_out,
        *packed_in;             /* [size] own keys that go packed, and places of the sender's keys that come packed */
    struct column_slots *slots; /* made by the first sort that packs; NULL: none has packed */
    struct swap_tables *swaps;  /* made by the first sort in place, likewise */
};

static void close_direct(void *tables, struct engine *engine)
{
    struct direct_tables *d = tables;
    if (!d)
        return;
    column_slots_close(engine, d->slots);
    swap_tables_close(d->swaps);
    splitters_close(d->splitters);
    free(d->cut_offset);
    free(d->sends);
    free(d->receives);
    free(d->piece_offset);
    free(d->packed_out);
    free(d->packed_in);
    free(d);
}

static hsort_status open_direct(int size, struct engine *engine, void **tables)
{
    const size_t entries = (size_t)size + 1;
    struct direct_tables *d = *tables = calloc(1, sizeof *d);
    if (!d)
        return status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %d ranks", size);
    d->cut_offset = calloc(entries, sizeof *d->cut_offset);
    d->sends = calloc(entries, sizeof *d->sends);
    d->receives = calloc(entries, sizeof *d->receives);
    d->piece_offset = calloc(entries, sizeof *d->piece_offset);
    d->packed_out = calloc(entries, sizeof *d->packed_out);
    d->packed_in = calloc(entries, sizeof *d->packed_in);
    hsort_status status = splitters_open(size, &d->splitters);
    if (status == HSORT_OK &&
        !(d->cut_offset && d->sends && d->receives && d->piece_offset && d->packed_out && d->packed_in))
        status = status_fail(HSORT_HOST_MEMORY, "no memory for the tables of %d ranks", size);
    if (status != HSORT_OK) {
        close_direct(d, engine);
        *tables = NULL;
    }
    return status;
}

hsort_status direct_reserve_in_place(void *tables, int size)
{
    enum { BORDERS = 3 }; // own pieces, swaps, and of random keys fewer circles than ranks
    struct direct_tables *d = tables;
    return d->swaps ? HSORT_OK : swap_tables_open(size, BORDERS * (int64_t)size, &d->swaps);
}

/* Each key moves once, while the network moves it log(P) / 2 times or more. But there are P - 1 messages and
 * the rounds of the splitters. So on an engine whose steps take next to no time, the network is faster for fewer than
 * HOST_KEYS_MIN keys. It is also faster for more than MANY_RANKS ranks, until each rank has enough keys for each other
 * one to make up for a message. With two ranks both exchanges move half of the keys, and only this one packs them; from
 * packed_bytes_min on, packing takes a GPU less time than it saves. */
static bool direct_pays(hsort_engine engine, int size, bool packs, int64_t keys, int key_bytes)
{
    enum {
        HOST_KEYS_MIN = 1 << 13,
        MANY_RANKS = 1 << 10,
        KEYS_OF_MESSAGE = 1 << 8,
        HOST_KEYS_OF_MESSAGE = 1 << 6
    };
    const double packed_bytes_min = 128 << 20;
    if (size > MANY_RANKS &&
        keys / size < (engine == HSORT_ENGINE_CUDA ? KEYS_OF_MESSAGE : HOST_KEYS_OF_MESSAGE))
        return false;
    if (size == 2)
        return engine == HSORT_ENGINE_CUDA && packs && (double)keys * key_bytes >= packed_bytes_min;
    return size > 2 && (engine == HSORT_ENGINE_CUDA || keys >= HOST_KEYS_MIN);
}

static size_t direct_memory(const struct engine *engine, const struct comm *comm,
                            const struct transport *transport, int key_bytes, int64_t capacity)
{
    return column_messages_bytes(comm, engine, transport,
                                 (size_t)(capacity / comm->size) * (size_t)key_bytes);
}

static size_t slot_memory(const struct exchange *x)
{
    return direct_memory(x->engine, x->comm, x->transport, x->key_bytes, x->capacity);
}

/* ---- before a key moves -------------------------------------------------------------------------------- */

/* Find how many keys come from where. Collective. */
static hsort_status plan_pieces(const struct exchange *x)
{
    struct direct_tables *d = x->tables;
    for (int rank = 0; rank < x->comm->size; rank++) {
        d->sends[rank] = d->cut_offset[rank + 1] - d->cut_offset[rank];
        d->receives[rank] = 0;
    }
    const hsort_status status =
        comm_check(MPI_Alltoall(d->sends, 1, MPI_INT64_T, d->receives, 1, MPI_INT64_T, x->comm->world),
                   "MPI_Alltoall", true);
    for (int rank = 0; rank < x->comm->size; rank++)
        d->piece_offset[rank + 1] = d->piece_offset[rank] + d->receives[rank];
    return status;
}

/* Reserve what packed pieces need, if any pieces are packed. False: then all ranks send them as they are. */
static bool open_piece_slots(const struct exchange *x)
{
    struct direct_tables *d = x->tables;
    const size_t bytes = slot_memory(x);
    bool has = bytes == 0 || x->memory;
    if (bytes > 0 && has && !d->slots) {
        fault_pause(true); // a failure here is no failure of the sort
        has = column_slots_open(x->engine, bytes, &d->slots) == HSORT_OK;
        fault_pause(false);
        if (!has)
            status_clear();
    }
    return has;
}

/* What all ranks agree on before keys move. */
struct agreed_pieces {
    bool may_move, may_pack;
};

/* Agree on whether the pieces may be moved, and packed. `comes` keys would come to this
 * rank, and `wanted` keys should. Returns this rank's status. Collective. */
static hsort_status agree_on_pieces(const struct exchange *x, hsort_status status, int64_t comes,
                                    int64_t wanted, struct agreed_pieces *agreed)
{
    // A rank that failed has cut its run anywhere, which others see only as a wrong sum; that is then no
    // fault of theirs.
    enum { FAILED, WRONG, PLAIN, FLAGS };
    const int own[FLAGS] = {status != HSORT_OK, comes != wanted, status != HSORT_OK || !open_piece_slots(x)};
    int any[FLAGS] = {1, 1, 1};
    keep_first_error(&status, comm_check(MPI_Allreduce(own, any, FLAGS, MPI_INT, MPI_MAX, x->comm->world),
                                         "MPI_Allreduce", true));
    if (own[WRONG] && !any[FAILED])
        keep_first_error(&status, status_fail(HSORT_INTERNAL, "the splitters give %lld keys instead of %lld",
                                              (long long)comes, (long long)wanted));
    *agreed = (struct agreed_pieces){.may_move = !any[FAILED] && !any[WRONG], .may_pack = !any[PLAIN]};
    return status;
}

/* ---- keys move ----------------------------------------------------------------------------------------- */

/* Send the pieces with a slow path, and receive such pieces. Returns this rank's first failure, `mine` before others. Collective. */
static hsort_status move_packed(struct exchange *x, hsort_status mine)
{
    const struct direct_tables *d = x->tables;
    const size_t bytes = slot_memory(x);
    const struct message_column keys = {
        .given = x->keys, .taken = x->scratch, .bytes = (size_t)x->key_bytes, .packing = PACK_RISING};
    const struct column_messages messages = {.comm = x->comm,
                                             .engine = x->engine,
                                             .transport = x->transport,
                                             .columns = &keys,
                                             .column_count = 1,
                                             .gives = d->packed_out,
                                             .takes = d->packed_in,
                                             .comes_to = d->piece_offset,
                                             .slots = d->slots,
                                             .memory = x->memory,
                                             .memory_bytes = bytes};
    for (int peer = 0; peer < x->comm->size; peer++) {
        const bool packs = path_packs(x->comm, x->engine, x->transport, peer);
        d->packed_out[peer] = (struct place_span){d->cut_offset[peer], packs ? d->cut_offset[peer + 1] : 0};
        d->packed_in[peer] = (struct place_span){0, packs ? d->receives[peer] : 0};
    }
    return column_messages_run(&messages, mine, &x->moved_bytes);
}

/* Send each piece and receive the others into the scratch buffer, one behind the other. Collective. */
static hsort_status move_pieces(struct exchange *x, bool packs)
{
    const struct direct_tables *d = x->tables;
    const int rank = x->comm->rank, size = x->comm->size;
    const size_t width = (size_t)x->key_bytes;
    const char *keys = x->keys;
    char *pieces = x->scratch;
    hsort_status status = HSORT_OK;
    // What stays does not pass through MPI, which may send a rank's message to itself the slowest way of all.
    if (d->sends[rank] > 0)
        status =
            x->engine->ops->copy(x->engine, STREAM_WORK, pieces + (size_t)d->piece_offset[rank] * width,
                                 keys + (size_t)d->cut_offset[rank] * width, (size_t)d->sends[rank] * width);
    if (packs)
        status = move_packed(x, status);
    for (int step = 1; step < size; step++) {
        const int to = step_target(x->comm, step), from = step_source(x->comm, step);
        const bool sent = packs && path_packs(x->comm, x->engine, x->transport, to),
                   received = packs && path_packs(x->comm, x->engine, x->transport, from);
        const int64_t send = sent ? 0 : d->sends[to], receive = received ? 0 : d->receives[from];
        x->rounds_moved += d->sends[to] > 0 || d->receives[from] > 0;
        if (send > 0 || receive > 0) {
            const char *out = send > 0 ? keys + (size_t)d->cut_offset[to] * width : NULL;
            char *in = receive > 0 ? pieces + (size_t)d->piece_offset[from] * width : NULL;
            keep_first_error(&status,
                             x->transport->ops->sendrecv(x->transport, to, out, (size_t)send * width, from,
                                                         in, (size_t)receive * width, &x->moved_bytes));
        }
        if (x->progress)
            x->progress(x->progress_user, step, size - 1);
    }
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}

/* Merge the pieces in the scratch buffer; the keys are then in one of the two buffers, the other is scratch. */
static hsort_status merge_received(struct exchange *x)
{
    const struct direct_tables *d = x->tables;
    const double start = MPI_Wtime();
    void *merged = x->scratch;
    hsort_status status = x->engine->ops->merge_runs(x->engine, x->key_bytes, x->scratch, d->piece_offset,
                                                     x->comm->size, x->keys, &merged);
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    if (merged == x->scratch)
        exchange_swap_buffers(x);
    x->merge_seconds += MPI_Wtime() - start;
    return status;
}

static hsort_status run_direct(struct exchange *x, bool *done)
{
    struct direct_tables *d = x->tables;
    const int rank = x->comm->rank;
    const int64_t wanted = x->target_offset[rank + 1] - x->target_offset[rank];
    struct agreed_pieces agreed;
    *done = true;
    struct trace_span *span = trace_begin(x->comm->trace, "find splitters");
    hsort_status status =
        trace_end_with(span, splitters_find(d->splitters, x, x->target_offset, d->cut_offset));
    if (x->in_place)
        return swap_pieces(d->swaps, x, d->cut_offset, status);
    const bool all_stay = d->cut_offset[rank + 1] - d->cut_offset[rank] == x->count && wanted == x->count;
    keep_first_error(&status, plan_pieces(x));
    status = agree_on_pieces(x, status, d->piece_offset[x->comm->size], wanted, &agreed);
    x->count = wanted;
    if (!agreed.may_move || all_stay) // where nothing comes or goes there is no need to copy what stays
        return status;
    keep_first_error(&status, move_pieces(x, agreed.may_pack && slot_memory(x) > 0));
    keep_first_error(&status, merge_received(x));
    return status;
}

const struct exchange_ops exchange_direct = {.kind = HSORT_EXCHANGE_DIRECT,
                                             .input = EXCHANGE_TAKES_SORTED,
                                             .takes_any_target = true,
                                             .pays = direct_pays,
                                             .open = open_direct,
                                             .close = close_direct,
                                             .memory_bytes = direct_memory,
                                             .run = run_direct};
