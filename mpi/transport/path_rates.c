/* The measurement behind cost.h. All pairs swap at once, as they do in a sort:
 *
 *     node 0   rank 0 <-> rank 1     rank 2 <-> rank 3        near: neighbours on a node
 *     node 1   rank 4 <-> rank 5     rank 6     .             a rank that is left over looks on
 *
 *     node 0   rank 0     rank 1     rank 2     rank 3        far: the ranks of the same number on two nodes
 *     node 1   rank 4     rank 5     rank 6     .
 *
 * How a pair tries its path: path_trial.c.
 *
 * Sort and merge are tried on the host engine only, whose speed differs tenfold between machines and shows on some ten
 * thousand keys. A GPU needs some 10^8 keys to reach its rate: memory and time that nobody has at the start; its defaults
 * stay, and are not critical: an exchange is chosen by links and latencies. */
#include "kernels/base/first_error.h"
#include "mpi/transport/path_rates.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>
#include "mpi/transport/path_trial.h"

enum {
    BUFFER_BYTES = 4 << 20, // enough for any engine to export it
    STEPS = 5,
    KEYS = 1 << 15 // of one sort; its result and its scratch fit the buffers twice
};

struct trial {
    struct comm *comm;
    struct engine *engine;
    struct path_trial pair;    /* its buffers serve sort and merge as well, its status is that of all tries */
    void *workspace;           /* of the local sort */
    uint64_t *keys;            /* [KEYS] host */
    int64_t *leaders;          /* [size] the lowest rank of each rank's node */
    int partner[COST_PLACES];  /* -1: none */
    double found[HSORT_RATES]; /* 0: not tried */
};

/* ---- before and after -------------------------------------------------------------------------------------------- */

static hsort_status prepare(struct trial *t)
{
    const struct engine_ops *ops = t->engine->ops;
    size_t bytes;
    if (fault_hit(FAULT_RATES))
        return status_fail(HSORT_INTERNAL, "nothing can be measured: injected fault");
    t->keys = malloc(KEYS * sizeof *t->keys);
    t->leaders = malloc((size_t)t->comm->size * sizeof *t->leaders);
    if (!t->keys || !t->leaders)
        return status_fail(HSORT_HOST_MEMORY, "no memory to measure with");
    TRY(ops->sort_workspace(t->engine, -1, 8, KEYS, KEYS, &bytes));
    TRY(ops->alloc(t->engine, bytes, &t->workspace));
    TRY(ops->alloc(t->engine, BUFFER_BYTES, (void **)&t->pair.send));
    return ops->alloc(t->engine, BUFFER_BYTES, (void **)&t->pair.receive);
}

/* Peers may map the buffers: they forget them first.                                                 Collective. */
static hsort_status end(struct trial *t)
{
    const struct engine_ops *ops = t->engine->ops;
    int64_t least, most;
    if (t->pair.transport->ops->forget)
        t->pair.transport->ops->forget(t->pair.transport, FORGET_ALL);
    const hsort_status status = comm_range(t->comm, 0, &least, &most);
    ops->free(t->engine, t->pair.send);
    ops->free(t->engine, t->pair.receive);
    ops->free(t->engine, t->workspace);
    free(t->keys);
    free(t->leaders);
    return status;
}

/* The rank that is number `member` of the node whose lowest rank is `leader`, or -1. */
static int rank_of(const struct trial *t, int64_t leader, int member)
{
    for (int rank = 0; rank < t->comm->size && leader >= 0; rank++)
        if (t->leaders[rank] == leader && member-- == 0)
            return rank;
    return -1;
}

/* Collective. */
static hsort_status find_partners(struct trial *t)
{
    TRY(comm_leaders(t->comm, t->leaders));
    const int64_t leader = t->leaders[t->comm->rank];
    int nodes = 0, own_node = 0;
    for (int rank = 0; rank < t->comm->size; rank++)
        if (t->leaders[rank] == rank) {
            own_node = rank == leader ? nodes : own_node;
            nodes++;
        }
    int64_t other = -1;
    for (int rank = 0, node = 0; rank < t->comm->size; rank++)
        if (t->leaders[rank] == rank && node++ == (own_node ^ 1))
            other = rank;
    t->partner[COST_NEAR] = rank_of(t, leader, t->comm->node_rank ^ 1);
    t->partner[COST_FAR] = rank_of(t, other, t->comm->node_rank);
    return HSORT_OK;
}

/* ---- paths ------------------------------------------------------------------------------------------------------- */

/* Fill in latency and rate of the path to one place. Collective over the pair. */
static void time_path(struct trial *t, enum cost_place place)
{
    const bool near = place == COST_NEAR;
    const int partner = t->partner[place];
    if (partner < 0)
        return;
    if (near)
        t->found[HSORT_RATE_MESSAGE] = path_try_message(&t->pair, partner);
    const struct path_times times = path_try(&t->pair, partner);
    const double latency = times.latency, seconds = times.seconds;
    const double carrying = seconds > 2 * latency ? seconds - latency : seconds / 2;
    t->found[near ? HSORT_RATE_LINK_LATENCY : HSORT_RATE_NETWORK_LATENCY] = latency;
    t->found[near ? HSORT_RATE_LINK : HSORT_RATE_NETWORK] = (double)times.bytes / carrying;
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

static void time_step(struct trial *t)
{
    int64_t positions[2] = {0, KEYS - 1};
    uint64_t codes[2];
    double times[STEPS];
    keep_first_error(&t->pair.status, t->engine->ops->copy(t->engine, STREAM_WORK, t->pair.send, t->keys, KEYS * sizeof *t->keys));
    for (int i = -1; i < STEPS; i++) {
        const double start = MPI_Wtime();
        keep_first_error(&t->pair.status, t->engine->ops->gather(t->engine, 8, t->pair.send, positions, 2, codes));
        if (i >= 0)
            times[i] = MPI_Wtime() - start;
    }
    t->found[HSORT_RATE_STEP] = path_median(times, STEPS);
}

/* Sort keys into a run at `run`; seconds. */
static double time_sort(struct trial *t, int key_bytes, char *run)
{
    const struct engine_ops *ops = t->engine->ops;
    const size_t bytes = (size_t)KEYS * (size_t)key_bytes;
    void *sorted = run;
    keep_first_error(&t->pair.status, ops->copy(t->engine, STREAM_WORK, run, t->keys, bytes));
    keep_first_error(&t->pair.status, ops->stream_synchronize(t->engine, STREAM_WORK));
    const double start = MPI_Wtime();
    keep_first_error(&t->pair.status,
         ops->sort(t->engine, -1, key_bytes, run, t->pair.receive, KEYS, KEYS, t->workspace, NULL, &sorted));
    keep_first_error(&t->pair.status, ops->stream_synchronize(t->engine, STREAM_WORK));
    const double seconds = MPI_Wtime() - start;
    if (sorted != run)
        keep_first_error(&t->pair.status, ops->copy(t->engine, STREAM_WORK, run, sorted, bytes));
    return seconds;
}

static double time_merge(struct trial *t, const char *a, const char *b)
{
    keep_first_error(&t->pair.status, t->engine->ops->stream_synchronize(t->engine, STREAM_WORK));
    const double start = MPI_Wtime();
    keep_first_error(&t->pair.status, t->engine->ops->merge(t->engine, 8, a, KEYS, b, KEYS, t->pair.receive));
    keep_first_error(&t->pair.status, t->engine->ops->stream_synchronize(t->engine, STREAM_WORK));
    return MPI_Wtime() - start;
}

/* The faster of two tries each: the first one wakes threads and touches memory. */
static void time_kernels(struct trial *t)
{
    char *second = t->pair.send + KEYS * sizeof(uint64_t);
    for (int key_bytes = 4; key_bytes <= 8; key_bytes += 4) {
        const double a = time_sort(t, key_bytes, t->pair.send);
        for (int i = 0; i < KEYS; i++)
            t->keys[i] *= UINT64_C(0xbf58476d1ce4e5b9); // odd, so other keys as random as before
        const double b = time_sort(t, key_bytes, second);
        t->found[key_bytes == 4 ? HSORT_RATE_SORT_4 : HSORT_RATE_SORT_8] = KEYS / (a < b ? a : b);
    }
    const double a = time_merge(t, t->pair.send, second), b = time_merge(t, t->pair.send, second);
    t->found[HSORT_RATE_MERGE] = 4.0 * KEYS * sizeof(uint64_t) / (a < b ? a : b);
}

static void time_engine(struct trial *t)
{
    for (int i = 0; i < KEYS; i++) {
        const uint64_t z = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        t->keys[i] = (z ^ z >> 31) * UINT64_C(0x94d049bb133111eb);
    }
    time_step(t);
    if (t->engine->ops->kind == HSORT_ENGINE_HOST)
        time_kernels(t);
}

/* ---- one table --------------------------------------------------------------------------------------------------- */

static bool is_time(int which)
{
    return which == HSORT_RATE_STEP || which == HSORT_RATE_MESSAGE || which == HSORT_RATE_LINK_LATENCY ||
           which == HSORT_RATE_NETWORK_LATENCY;
}

/* The slowest of all ranks' findings: the least rate, the longest time. Who tried nothing has no say.  Collective. */
static hsort_status share(const struct trial *t, struct hsort_rates *rates)
{
    double own[HSORT_RATES + 1], least[HSORT_RATES + 1];
    for (int i = 0; i < HSORT_RATES; i++)
        own[i] = t->found[i] <= 0 ? DBL_MAX : is_time(i) ? -t->found[i] : t->found[i];
    own[HSORT_RATES] = t->pair.status == HSORT_OK;
    TRY_MPI(MPI_Allreduce(own, least, HSORT_RATES + 1, MPI_DOUBLE, MPI_MIN, t->comm->world));
    for (int i = 0; i < HSORT_RATES && least[HSORT_RATES] > 0; i++)
        if (least[i] < DBL_MAX && rates->source[i] == HSORT_RATE_DEFAULT) {
            rates->value[i] = is_time(i) ? -least[i] : least[i];
            rates->source[i] = HSORT_RATE_MEASURED;
        }
    return HSORT_OK;
}

/* Collective. */
static hsort_status try_all(struct trial *t, struct hsort_rates *rates)
{
    int64_t all_ready, any_ready;
    t->pair.status = prepare(t);
    TRY(comm_range(t->comm, t->pair.status == HSORT_OK, &all_ready, &any_ready));
    if (!all_ready)
        return HSORT_OK;
    TRY(find_partners(t));
    time_engine(t);
    time_path(t, COST_NEAR);
    time_path(t, COST_FAR);
    return share(t, rates);
}

hsort_status rates_measure(struct comm *comm, struct engine *engine, struct transport *transport,
                           struct hsort_rates *rates)
{
    struct trial trial = {
        .comm = comm,
        .engine = engine,
        .pair = {.comm = comm, .transport = transport, .bytes = BUFFER_BYTES, .status = HSORT_OK},
        .partner = {-1, -1}};
    fault_pause(true);
    hsort_status status = try_all(&trial, rates);
    const hsort_status ended = end(&trial);
    fault_pause(false);
    status = status != HSORT_OK ? status : ended;
    if (status == HSORT_OK)
        status_clear(); // what a rank could not measure is no error
    return status;
}
