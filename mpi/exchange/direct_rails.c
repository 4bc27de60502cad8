/* The exchange `direct` over nodes of several ranks, in two steps: a key crosses the network once, to the rank of the same
 * local number on the node where it belongs, and then goes to its rank inside that node. A rail is what the ranks of one
 * local number make up, often a network of their own; a rank has nodes - 1 messages on it and ranks per node - 1 inside
 * its node, instead of one to every other rank.
 *
 *                           1. along the rail           merged          2. inside the node     merged
 *     node 0   rank 0   1 5 | 8 12 --8 12-> rank 2   0: 1 2 5 6      rank 0: 1 2 | 0 3        0 1 2 3
 *              rank 1   0 4 | 9 13 --9 13-> rank 3   1: 0 3 4 7      rank 1: 5 6 | 4 7        4 5 6 7
 *     node 1   rank 2   2 6 | 10 14 -2 6--> rank 0   2: 8 10 12 14   rank 2: 8 10 | 9 11      8 9 10 11
 *              rank 3   3 7 | 11 15 -3 7--> rank 1   3: 9 11 13 15   rank 3: 12 14 | 13 15    12 13 14 15
 *
 * The keys for a node lie in one piece where its ranks follow one another; where they do not, the run is packed by nodes
 * first. What has come along a rail is merged before it is passed on: then the keys for each neighbour lie in one piece
 * again. To send nodes * neighbours pieces instead would bring back the messages that are to be saved, and to copy them
 * together takes as many copies.
 *
 * Room. The keys of a node would fit its ranks' buffers evenly, but a rail may get more than its part: of uniform keys the
 * square root of the capacity, more or less, on every other rank. Both buffers are in use, one for what comes, then one for the
 * merged. So what is beyond the capacity waits in x->workspace, the workspace of the local sort. It is the tail of what the rank has
 * for its own node, which comes from nobody and needs no message cut in two:
 *
 *     keys     [ node 0 | own node  <over> | node 2 ]
 *                            |          \---------------> room    passed on last, when the merged keys have left
 *     scratch    [ of node 0's | own node | of node 2's ]           the capacity at most
 *
 * Where that does not do on some rank, no rank goes this way (`crowded`): a node whose keys all lie on one rank would pass
 * through one rail. Not sent from the room: peers map what is sent, and the room may be freed while they do.
 *
 * Equal keys go to the ranks that (key, rank, position) says, as runs are merged in order of nodes and cut by counts. */
#include "kernels/base/first_error.h"
#include "mpi/exchange/direct_rails.h"
#include <stdlib.h>

struct rails {
    int nodes, locals; /* locals: ranks on each node */
    int node, local;   /* this rank */
    bool in_order;     /* rank n * locals + l is rank l of node n */
    MPI_Comm rail;     /* ranks of this local number, in order of nodes; owned */
    int *rank_of;      /* [nodes * locals] entry n * locals + l: rank l of node n */
    int64_t *sends,
        *comes; /* [nodes * locals] in the same order: own keys for each rank; keys from node n for rank l here */
    int64_t *send_at; /* [nodes + 1] where the own keys for each node begin, packed or not */
    int64_t *come_at; /* [nodes + 1] where the keys along the rail from each node are put */
    int64_t
        *passes; /* [2 * locals] keys to pass on to each neighbour: merged ones, and those beyond the capacity */
    int64_t *passed; /* [2 * locals] the same from each neighbour */
    int64_t *run_offset; /* [2 * locals + 1] where those are put */
    int64_t over;    /* keys beyond the capacity */
    int step;
};

static char *at(void *keys, const struct exchange *x, int64_t position)
{
    return (char *)keys + position * x->key_bytes;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

void rails_close(struct rails *rails)
{
    if (!rails)
        return;
    if (rails->rail != MPI_COMM_NULL)
        MPI_Comm_free(&rails->rail);
    free(rails->rank_of);
    free(rails->sends);
    free(rails->comes);
    free(rails->send_at);
    free(rails->come_at);
    free(rails->passes);
    free(rails->passed);
    free(rails->run_offset);
    free(rails);
}

int rails_ranks_per_node(const struct rails *rails)
{
    return rails->locals;
}

int rails_steps(const struct rails *rails)
{
    return rails->nodes - 1 + rails->locals - 1;
}

static hsort_status allocate(int size, int locals, struct rails **rails)
{
    const size_t ranks = (size_t)size, ways = 2 * (size_t)locals, nodes = ranks / (size_t)locals;
    struct rails *r = *rails = calloc(1, sizeof *r);
    if (r) {
        r->rail = MPI_COMM_NULL;
        r->nodes = (int)nodes;
        r->locals = locals;
        r->rank_of = calloc(ranks, sizeof *r->rank_of);
        r->sends = calloc(ranks, sizeof *r->sends);
        r->comes = calloc(ranks, sizeof *r->comes);
        r->send_at = calloc(nodes + 1, sizeof *r->send_at);
        r->come_at = calloc(nodes + 1, sizeof *r->come_at);
        r->passes = calloc(ways, sizeof *r->passes);
        r->passed = calloc(ways, sizeof *r->passed);
        r->run_offset = calloc(ways + 1, sizeof *r->run_offset);
    }
    if (r && r->rank_of && r->sends && r->comes && r->send_at && r->come_at && r->passes && r->passed &&
        r->run_offset)
        return HSORT_OK;
    return status_fail(HSORT_HOST_MEMORY, "no memory for the rails of %d ranks", size);
}

/* Fill in who is where. leaders [size]: the lowest rank of each rank's node; nodes are numbered in their order. */
static void find_ranks(struct rails *r, const struct comm *comm, const int64_t *leaders)
{
    r->local = comm->node_rank;
    r->in_order = true;
    for (int node = 0, leader = 0; node < r->nodes; node++, leader++) {
        while (leaders[leader] != leader)
            leader++;
        for (int local = 0, rank = leader; local < r->locals; rank++)
            if (leaders[rank] == leader) {
                const int entry = node * r->locals + local++;
                r->rank_of[entry] = rank;
                r->in_order = r->in_order && rank == entry;
            }
        if (leaders[comm->rank] == leader)
            r->node = node;
    }
}

hsort_status rails_open(struct comm *comm, struct rails **rails)
{
    int64_t fewest, most, *leaders = NULL;
    *rails = NULL;
    TRY(comm_range(comm, comm->node_size, &fewest, &most));
    if (fewest != most || most == 1 || most == comm->size)
        return HSORT_OK;
    hsort_status status = allocate(comm->size, (int)most, rails);
    leaders = calloc((size_t)comm->size, sizeof *leaders);
    if (!leaders)
        keep_first_error(&status, status_fail(HSORT_HOST_MEMORY, "no memory for the rails of %d ranks", comm->size));
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = comm_leaders(comm, leaders);
    if (status == HSORT_OK) {
        find_ranks(*rails, comm, leaders);
        status = comm_check(MPI_Comm_split(comm->world, (*rails)->local, (*rails)->node, &(*rails)->rail),
                            "MPI_Comm_split", false);
    }
    if (status == HSORT_OK)
        status = comm_check(MPI_Comm_set_errhandler((*rails)->rail, MPI_ERRORS_RETURN),
                            "MPI_Comm_set_errhandler", false);
    free(leaders);
    if (status != HSORT_OK) {
        rails_close(*rails);
        *rails = NULL;
    }
    return status;
}

/* ---- what takes which way ---------------------------------------------------------------------------------------- */

/* Where keys along the rail are put, in order of nodes, less those beyond the capacity. */
static void place_comers(struct rails *r, int64_t capacity)
{
    r->come_at[0] = 0;
    for (int node = 0; node < r->nodes; node++) {
        r->come_at[node + 1] = r->come_at[node];
        for (int local = 0; local < r->locals; local++)
            r->come_at[node + 1] += r->comes[node * r->locals + local];
    }
    const int64_t own = r->come_at[r->node + 1] - r->come_at[r->node];
    const int64_t beyond = r->come_at[r->nodes] > capacity ? r->come_at[r->nodes] - capacity : 0;
    r->over = beyond < own ? beyond : own;
    for (int node = r->node + 1; node <= r->nodes; node++)
        r->come_at[node] -= r->over;
}

/* The last keys for the own node are those for its last ranks. */
static void count_passes(struct rails *r)
{
    const int64_t *own = r->comes + (size_t)r->node * (size_t)r->locals;
    int64_t left = r->over;
    for (int local = r->locals - 1; local >= 0; local--) {
        const int64_t over = left < own[local] ? left : own[local];
        int64_t all = 0;
        for (int node = 0; node < r->nodes; node++)
            all += r->comes[node * r->locals + local];
        r->passes[2 * local] = all - over;
        r->passes[2 * local + 1] = over;
        left -= over;
    }
}

hsort_status rails_plan(struct rails *r, const struct exchange *x, const int64_t *cut_offset, int64_t *comes,
                        bool *crowded)
{
    hsort_status status = HSORT_OK;
    r->send_at[0] = 0;
    for (int entry = 0; entry < x->comm->size; entry++) {
        const int rank = r->rank_of[entry];
        r->sends[entry] = cut_offset[rank + 1] - cut_offset[rank];
        r->comes[entry] = 0;
        if (entry % r->locals == 0)
            r->send_at[entry / r->locals + 1] = r->send_at[entry / r->locals];
        r->send_at[entry / r->locals + 1] += r->sends[entry];
    }
    keep_first_error(&status,
         comm_check(MPI_Alltoall(r->sends, r->locals, MPI_INT64_T, r->comes, r->locals, MPI_INT64_T, r->rail),
                    "MPI_Alltoall", true));
    place_comers(r, x->capacity);
    count_passes(r);
    for (int way = 0; way < 2 * r->locals; way++)
        r->passed[way] = 0;
    keep_first_error(&status,
         comm_check(MPI_Alltoall(r->passes, 2, MPI_INT64_T, r->passed, 2, MPI_INT64_T, x->comm->node),
                    "MPI_Alltoall", true));
    for (int way = 0; way < 2 * r->locals; way++)
        r->run_offset[way + 1] = r->run_offset[way] + r->passed[way];
    *comes = r->run_offset[2 * r->locals];
    *crowded = r->come_at[r->nodes] > x->capacity || (size_t)r->over * (size_t)x->key_bytes > x->workspace_bytes;
    return status;
}

/* ---- moving ------------------------------------------------------------------------------------------------------ */

/* keys and scratch change roles. */
static void turn(struct exchange *x)
{
    void *keys = x->scratch;
    x->scratch = x->keys;
    x->keys = keys;
}

static hsort_status copy(const struct exchange *x, void *to, const void *from, int64_t count)
{
    return count > 0
               ? x->engine->ops->copy(x->engine, STREAM_WORK, to, from, (size_t)count * (size_t)x->key_bytes)
               : HSORT_OK;
}

/* Send `sends` keys from `out` and receive `receives` at `in`; without a message where there are none. */
static hsort_status swap(struct exchange *x, int to, const void *out, int64_t sends, int from, void *in,
                         int64_t receives)
{
    if (sends == 0 && receives == 0)
        return HSORT_OK;
    x->rounds_moved++;
    return x->transport->ops->sendrecv(x->transport, to, sends > 0 ? out : NULL,
                                   (size_t)sends * (size_t)x->key_bytes, from, receives > 0 ? in : NULL,
                                   (size_t)receives * (size_t)x->key_bytes, &x->moved_bytes);
}

static void report(struct rails *r, const struct exchange *x)
{
    r->step++;
    if (x->progress)
        x->progress(x->progress_user, r->step, rails_steps(r));
}

/* Bring the keys for each node together. */
static hsort_status pack(struct rails *r, struct exchange *x, const int64_t *cut_offset)
{
    hsort_status status = HSORT_OK;
    int64_t packed = 0;
    for (int entry = 0; entry < x->comm->size; entry++) {
        keep_first_error(&status,
             copy(x, at(x->scratch, x, packed), at(x->keys, x, cut_offset[r->rank_of[entry]]), r->sends[entry]));
        packed += r->sends[entry];
    }
    turn(x);
    return status;
}

/* Step 1.                                                                                            Collective. */
static hsort_status move_along_rail(struct rails *r, struct exchange *x)
{
    const int64_t stays = r->come_at[r->node + 1] - r->come_at[r->node], own_at = r->send_at[r->node];
    hsort_status status = copy(x, at(x->scratch, x, r->come_at[r->node]), at(x->keys, x, own_at), stays);
    keep_first_error(&status, copy(x, x->workspace, at(x->keys, x, own_at + stays), r->over));
    for (int shift = 1; shift < r->nodes; shift++) {
        const int to = (r->node + shift) % r->nodes, from = (r->node - shift + r->nodes) % r->nodes;
        keep_first_error(&status, swap(x, r->rank_of[to * r->locals + r->local], at(x->keys, x, r->send_at[to]),
                           r->send_at[to + 1] - r->send_at[to], r->rank_of[from * r->locals + r->local],
                           at(x->scratch, x, r->come_at[from]), r->come_at[from + 1] - r->come_at[from]));
        report(r, x);
    }
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}

/* Step 2, of merged keys (kind 0) or of those beyond the capacity (kind 1): x->keys holds them in order of neighbours.
 *                                                                                                    Collective. */
static hsort_status pass_on(struct rails *r, struct exchange *x, int kind)
{
    hsort_status status = HSORT_OK;
    for (int shift = 0; shift < r->locals; shift++) {
        const int to = (r->local + shift) % r->locals, from = (r->local - shift + r->locals) % r->locals;
        int64_t begin = 0;
        for (int local = 0; local < to; local++)
            begin += r->passes[2 * local + kind];
        const void *out = at(x->keys, x, begin);
        void *in = at(x->scratch, x, r->run_offset[2 * from + kind]);
        const int64_t sends = r->passes[2 * to + kind], receives = r->passed[2 * from + kind];
        const int first = r->node * r->locals;
        keep_first_error(&status, shift == 0 ? copy(x, in, out, sends)
                                 : swap(x, r->rank_of[first + to], out, sends, r->rank_of[first + from], in,
                                        receives));
        if (kind == 0 && shift > 0)
            report(r, x);
    }
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    return status;
}

/* Merge `runs` runs in x->scratch; the merged keys are then in x->keys. */
static hsort_status merge(struct exchange *x, const int64_t *run_offset, int runs)
{
    const double start = MPI_Wtime();
    void *merged = x->scratch;
    hsort_status status =
        x->engine->ops->merge_runs(x->engine, x->key_bytes, x->scratch, run_offset, runs, x->keys, &merged);
    keep_first_error(&status, x->engine->ops->stream_synchronize(x->engine, STREAM_WORK));
    if (merged == x->scratch)
        turn(x);
    x->merge_seconds += MPI_Wtime() - start;
    return status;
}

hsort_status rails_move(struct rails *r, struct exchange *x, const int64_t *cut_offset)
{
    hsort_status status = HSORT_OK;
    r->step = 0;
    if (!r->in_order)
        status = pack(r, x, cut_offset);
    keep_first_error(&status, move_along_rail(r, x));
    keep_first_error(&status, merge(x, r->come_at, r->nodes));
    keep_first_error(&status, pass_on(r, x, 0));
    keep_first_error(&status, copy(x, x->keys, x->workspace, r->over));
    keep_first_error(&status, pass_on(r, x, 1));
    keep_first_error(&status, merge(x, r->run_offset, 2 * r->locals));
    return status;
}
