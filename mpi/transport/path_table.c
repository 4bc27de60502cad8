/* Every pair of ranks measures its path (path_probe.c), in rounds; all pairs of a round do so at once, as in
 * a sort. Up to ALL_PAIRS ranks there are all pairs: in round k the ranks whose numbers add up to k, modulo
 * their count.
 *
 *     round      0       1       2       3       4
 *     pairs     1-4     0-1     0-2     0-3     0-4          5 ranks; one is left over in each round
 *               2-3     2-4     3-4     1-2     1-3
 *
 * More ranks would take ever more rounds, so each is then paired with its two neighbours and with the rank
 * half of them all away only. That one is on another node where there are several.
 *
 *     round      0       1       2       3
 *     pairs     0-1     1-2     18-0    0-9            19 ranks; of an even number, the last is with 0 in 1
 *               2-3     3-4             1-10
 *               ...     ...             ... */
#include "mpi/transport/path_table.h"
#include "mpi/transport/path_probe.h"

enum { ALL_PAIRS = 16, SOME_ROUNDS = 4, BUFFER_BYTES = 32 << 20 };

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
        const struct path_times times = path_probe_pair(&probe, partner);
        speeds[partner] = (hsort_path_speed){.bytes_per_second = (double)times.bytes / times.seconds,
                                             .latency = times.latency};
    }
    const hsort_status ended = give_back_buffers(&probe, engine);
    return ready != HSORT_OK ? ready : ended;
}
