/* Every pair of ranks measures its path, in rounds; all pairs of a round do so at once, as in a sort. Up to
 * ALL_PAIRS ranks there are all pairs: in round k the ranks whose numbers add up to k, modulo their count.
 *
 *     round      0       1       2       3       4
 *     pairs     1-4     0-1     0-2     0-3     0-4          5 ranks; one is left over in each round
 *               2-3     2-4     3-4     1-2     1-3
 *
 * More ranks would take ever more rounds, so each rank is then paired only with its two neighbours and with the
 * rank half of all ranks away. That rank is on another node if there are several nodes.
 *
 *     round      0       1       2       3
 *     pairs     0-1     1-2     18-0    0-9            19 ranks; of an even number, the last is with 0 in 1
 *               2-3     3-4             1-10
 *               ...     ...             ...
 *
 * A pair sends few bytes both ways (latency), then more and more, through the transport's own sendrecv(), so
 * the time includes streams, kernels and headers, as in a sort:
 *
 *     64 B   64 KiB   512 KiB   4 MiB   32 MiB         on to the next size only if it should stay within
 *      x 6     x 3      x 3      x 3     x 3            PATIENCE: a slow path costs its smallest sizes
 *
 * The two sides agree on that; other pairs stop at sizes of their own. With one size for all ranks, a single
 * staged pair would keep all others from showing what NVLink does. */
#include "mpi/transport/path_table.h"
#include <stdlib.h>

enum { ALL_PAIRS = 16, SOME_ROUNDS = 4, BUFFER_BYTES = 32 << 20 };
enum { SMALL_BYTES = 64, FIRST_BYTES = 64 << 10, GROWTH = 8, REPEATS = 3, TAG = 5 };
static const double PATIENCE = 5e-3; /* seconds of one transfer */

int path_table_rounds(int size)
{
    return size == 1 ? 0 : size <= ALL_PAIRS ? size : SOME_ROUNDS;
}

static int neighbour_in_ring(int rank, int size, int round)
{
    const int last = size - 1;
    if (round == 2) // closes a ring of odd length
        return size % 2 == 0 ? -1 : rank == last ? 0 : rank == 0 ? last : -1;
    const int partner = rank % 2 == round ? rank + 1 : rank - 1;
    return size % 2 == 0 ? (partner + size) % size : partner < size ? partner : -1;
}

int path_table_partner(int rank, int size, int round)
{
    const int half = size / 2;
    int partner;
    if (size <= ALL_PAIRS)
        partner = (round - rank + size) % size;
    else if (round < SOME_ROUNDS - 1)
        partner = neighbour_in_ring(rank, size, round);
    else
        partner = rank < half ? rank + half : rank < 2 * half ? rank - half : -1;
    return partner == rank ? -1 : partner;
}

/* ---- one pair -------------------------------------------------------------------------------------------- */

struct path_probe {
    struct comm *comm;
    struct transport *transport;
    char *send, *receive; /* [bytes] each, engine memory; what they hold does not matter */
    size_t bytes;         /* SMALL_BYTES at least */
    hsort_status status;  /* the first failure on this rank; it keeps to the schedule */
};

/* Times of MPI_Wtime(), the slower side's, so the same on both. */
struct path_times {
    double latency; /* of SMALL_BYTES each way, seconds */
    size_t bytes;   /* of the largest transfer, each way */
    double seconds; /* that it took */
};

static int compare_times(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

/* Seconds of a transfer of `bytes` each way: the median of REPEATS, as this side saw it. Collective over the
 * pair. */
static double time_sendrecv(struct path_probe *probe, int partner, size_t bytes)
{
    struct transport *transport = probe->transport;
    double times[REPEATS];
    int64_t moved = 0;
    for (int i = 0; i < REPEATS; i++) {
        const double start = MPI_Wtime();
        keep_first_error(&probe->status, transport->ops->sendrecv(transport, partner, probe->send, bytes,
                                                                  partner, probe->receive, bytes, &moved));
        times[i] = MPI_Wtime() - start;
    }
    qsort(times, REPEATS, sizeof *times, compare_times);
    return times[REPEATS / 2];
}

/* The greater of the times that both sides saw. Collective over the pair. */
static double slower_side(struct path_probe *probe, int partner, double own)
{
    double theirs = own;
    keep_first_error(&probe->status, comm_sendrecv(probe->comm, partner, &own, &theirs, sizeof own, TAG));
    return theirs > own ? theirs : own;
}

/* Send and receive SMALL_BYTES, then FIRST_BYTES and GROWTH times more each time, up to probe->bytes, while a
 * transfer should stay within PATIENCE. Collective over the pair. */
static struct path_times probe_pair(struct path_probe *probe, int partner)
{
    struct path_times times = {.bytes = SMALL_BYTES};
    time_sendrecv(probe, partner, SMALL_BYTES); // the first transfer maps memory, so these do not count
    times.latency = slower_side(probe, partner, time_sendrecv(probe, partner, SMALL_BYTES));
    times.seconds = times.latency;
    for (size_t bytes = FIRST_BYTES; bytes <= probe->bytes; bytes *= GROWTH) {
        times.bytes = bytes;
        times.seconds = slower_side(probe, partner, time_sendrecv(probe, partner, bytes));
        if (times.seconds > PATIENCE / GROWTH)
            break;
    }
    return times;
}

/* ---- all pairs ------------------------------------------------------------------------------------------- */

static hsort_status take_buffers(struct path_probe *probe, struct engine *engine)
{
    TRY(engine->ops->alloc(engine, probe->bytes, (void **)&probe->send));
    return engine->ops->alloc(engine, probe->bytes, (void **)&probe->receive);
}

/* Peers may map the buffers: they unmap them first. Agrees on probe->status. Collective. */
static hsort_status give_back_buffers(struct path_probe *probe, struct engine *engine)
{
    if (probe->transport->ops->forget)
        probe->transport->ops->forget(probe->transport, FORGET_ALL);
    const hsort_status status = comm_agree(probe->comm, probe->status);
    engine->ops->free(engine, probe->send);
    engine->ops->free(engine, probe->receive);
    return status;
}

hsort_status path_table_measure(struct comm *comm, struct engine *engine, struct transport *transport,
                                hsort_path_speed *speeds)
{
    struct path_probe probe = {
        .comm = comm, .transport = transport, .bytes = BUFFER_BYTES, .status = HSORT_OK};
    const int rounds = path_table_rounds(comm->size);
    for (int peer = 0; peer < comm->size; peer++)
        speeds[peer] = (hsort_path_speed){0};
    if (rounds > 0)
        probe.status = take_buffers(&probe, engine);
    const hsort_status ready = comm_agree(comm, probe.status);
    for (int round = 0; ready == HSORT_OK && round < rounds; round++) {
        const int partner = path_table_partner(comm->rank, comm->size, round);
        if (partner < 0)
            continue;
        const struct path_times times = probe_pair(&probe, partner);
        speeds[partner] = (hsort_path_speed){.bytes_per_second = (double)times.bytes / times.seconds,
                                             .latency = times.latency};
    }
    const hsort_status ended = give_back_buffers(&probe, engine);
    return ready != HSORT_OK ? ready : ended;
}
