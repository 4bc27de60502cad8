/* The measurement behind cost.h. All pairs swap at once, as they do in a sort:
 *
 *     node 0   rank 0 <-> rank 1     rank 2 <-> rank 3        near: neighbours on a node
 *     node 1   rank 4 <-> rank 5     rank 6     .             a rank that is left over looks on
 *
 *     node 0   rank 0     rank 1     rank 2     rank 3        far: the ranks of the same number on two nodes
 *     node 1   rank 4     rank 5     rank 6     .
 *
 * Each pair swaps few bytes (latency), then more and more, 64 KiB to 4 MiB, through the transport's own swap(); the ranks go on
 * to the next size only if the slowest says that it stays within PATIENCE, so a slow network costs no more than its smallest
 * size. What the engine's lanes and kernels add is in the time, as it is in a sort.
 *
 * Sort and merge are tried on the host engine only, whose speed differs tenfold between machines and shows on some ten
 * thousand keys. A GPU needs some 10^8 keys to reach its rate: memory and time that nobody has at the start; its defaults
 * stay, and are not critical: an exchange is chosen by links and latencies. */
#include "path_rates.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUFFER_BYTES = 4 << 20, // enough for any engine to export it
    SMALL_BYTES = 64,
    FIRST_BYTES = 64 << 10,
    GROWTH = 8,
    REPEATS = 3,
    MESSAGES = 5,
    KEYS = 1 << 15, // of one sort; its result and its scratch fit the buffers twice
    TAG = 5
};
static const double PATIENCE = 5e-3; /* for one swap */

struct trial {
    struct comm *comm;
    struct engine *engine;
    struct transport *transport;
    char *send, *receive;      /* [BUFFER_BYTES] engine memory */
    void *workspace;           /* of the local sort */
    uint64_t *keys;            /* [KEYS] host */
    int64_t *leaders;          /* [size] the lowest rank of each rank's node */
    int partner[COST_PLACES];  /* -1: none */
    double found[HSORT_RATES]; /* 0: not tried */
    hsort_status status;
};

static void note(struct trial *t, hsort_status status)
{
    if (t->status == HSORT_OK)
        t->status = status;
}

static int compare_times(const void *a, const void *b)
{
    const double *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare_times);
    return times[count / 2];
}

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
    TRY(ops->alloc(t->engine, BUFFER_BYTES, (void **)&t->send));
    return ops->alloc(t->engine, BUFFER_BYTES, (void **)&t->receive);
}

/* Peers may map the buffers: they forget them first.                                                 Collective. */
static hsort_status end(struct trial *t)
{
    const struct engine_ops *ops = t->engine->ops;
    int64_t least, most;
    if (t->transport->ops->forget)
        t->transport->ops->forget(t->transport, FORGET_ALL);
    const hsort_status status = comm_range(t->comm, 0, &least, &most);
    ops->free(t->engine, t->send);
    ops->free(t->engine, t->receive);
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
    int64_t leader = t->comm->rank;
    TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &leader, 1, MPI_INT64_T, MPI_MIN, t->comm->node));
    TRY(comm_gather(t->comm, leader, t->leaders));
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

/* Seconds of one message of 8 bytes. Collective over the pair. */
static double time_message(struct trial *t, int partner)
{
    double times[MESSAGES];
    int64_t out = 0, in;
    for (int i = -1; i < MESSAGES; i++) {
        const double start = MPI_Wtime();
        note(t, comm_check(MPI_Sendrecv(&out, 1, MPI_INT64_T, partner, TAG, &in, 1, MPI_INT64_T, partner, TAG,
                                        t->comm->world, MPI_STATUS_IGNORE),
                           "MPI_Sendrecv", false));
        if (i >= 0) // the first one makes the connection
            times[i] = MPI_Wtime() - start;
    }
    return median(times, MESSAGES);
}

/* Seconds of a swap of `bytes` each way. Collective over the pair. */
static double time_swap(struct trial *t, int partner, size_t bytes, int repeats)
{
    double times[REPEATS];
    int64_t moved = 0;
    for (int i = 0; i < repeats; i++) {
        const double start = MPI_Wtime();
        note(t, t->transport->ops->swap(t->transport, partner, t->send, bytes, partner, t->receive, bytes,
                                        &moved));
        times[i] = MPI_Wtime() - start;
    }
    return median(times, repeats);
}

/* The largest of all ranks' `seconds`. Collective. */
static hsort_status slowest(struct trial *t, double seconds, double *most)
{
    TRY_MPI(MPI_Allreduce(&seconds, most, 1, MPI_DOUBLE, MPI_MAX, t->comm->world));
    return HSORT_OK;
}

/* Fill in latency and rate of the paths to one place. All pairs, and ranks without one, take the same turns. Collective. */
static hsort_status time_paths(struct trial *t, enum cost_place place)
{
    const bool near = place == COST_NEAR;
    const int partner = t->partner[place];
    double latency = 0;
    int64_t none, some;
    TRY(comm_range(t->comm, partner >= 0, &none, &some));
    if (!some)
        return HSORT_OK;
    if (partner >= 0) {
        const double message = time_message(t, partner);
        time_swap(t, partner, SMALL_BYTES, 1); // maps memory
        latency = time_swap(t, partner, SMALL_BYTES, REPEATS);
        if (near)
            t->found[HSORT_RATE_MESSAGE] = message;
        t->found[near ? HSORT_RATE_LINK_LATENCY : HSORT_RATE_NETWORK_LATENCY] = latency;
    }
    for (size_t bytes = FIRST_BYTES; bytes <= BUFFER_BYTES; bytes *= GROWTH) {
        double seconds = 0, most;
        if (partner >= 0) {
            seconds = time_swap(t, partner, bytes, REPEATS);
            const double carrying = seconds > 2 * latency ? seconds - latency : seconds / 2;
            t->found[near ? HSORT_RATE_LINK : HSORT_RATE_NETWORK] = (double)bytes / carrying;
        }
        TRY(slowest(t, seconds, &most));
        if (most > PATIENCE / GROWTH)
            break;
    }
    return HSORT_OK;
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

static void time_step(struct trial *t)
{
    int64_t positions[2] = {0, KEYS - 1};
    uint64_t codes[2];
    double times[MESSAGES];
    note(t, t->engine->ops->copy(t->engine, LANE_WORK, t->send, t->keys, KEYS * sizeof *t->keys));
    for (int i = -1; i < MESSAGES; i++) {
        const double start = MPI_Wtime();
        note(t, t->engine->ops->gather(t->engine, 8, t->send, positions, 2, codes));
        if (i >= 0)
            times[i] = MPI_Wtime() - start;
    }
    t->found[HSORT_RATE_STEP] = median(times, MESSAGES);
}

/* Sort keys into a run at `run`; seconds. */
static double time_sort(struct trial *t, int key_bytes, char *run)
{
    const struct engine_ops *ops = t->engine->ops;
    const size_t bytes = (size_t)KEYS * (size_t)key_bytes;
    void *sorted = run;
    note(t, ops->copy(t->engine, LANE_WORK, run, t->keys, bytes));
    note(t, ops->wait(t->engine, LANE_WORK));
    const double start = MPI_Wtime();
    note(t, ops->sort(t->engine, -1, key_bytes, run, t->receive, KEYS, KEYS, t->workspace, NULL, &sorted));
    note(t, ops->wait(t->engine, LANE_WORK));
    const double seconds = MPI_Wtime() - start;
    if (sorted != run)
        note(t, ops->copy(t->engine, LANE_WORK, run, sorted, bytes));
    return seconds;
}

static double time_merge(struct trial *t, const char *a, const char *b)
{
    note(t, t->engine->ops->wait(t->engine, LANE_WORK));
    const double start = MPI_Wtime();
    note(t, t->engine->ops->merge(t->engine, 8, a, KEYS, b, KEYS, t->receive));
    note(t, t->engine->ops->wait(t->engine, LANE_WORK));
    return MPI_Wtime() - start;
}

/* The faster of two tries each: the first one wakes threads and touches memory. */
static void time_kernels(struct trial *t)
{
    char *second = t->send + KEYS * sizeof(uint64_t);
    for (int key_bytes = 4; key_bytes <= 8; key_bytes += 4) {
        const double a = time_sort(t, key_bytes, t->send);
        for (int i = 0; i < KEYS; i++)
            t->keys[i] *= UINT64_C(0xbf58476d1ce4e5b9); // odd, so other keys as random as before
        const double b = time_sort(t, key_bytes, second);
        t->found[key_bytes == 4 ? HSORT_RATE_SORT_4 : HSORT_RATE_SORT_8] = KEYS / (a < b ? a : b);
    }
    const double a = time_merge(t, t->send, second), b = time_merge(t, t->send, second);
    t->found[HSORT_RATE_MERGE] = 4.0 * KEYS * sizeof(uint64_t) / (a < b ? a : b);
}

static void time_engine(struct trial *t)
{
    for (int i = 0; i < KEYS; i++) {
        const uint64_t z = (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        t->keys[i] = (z ^ z >> 31) * UINT64_C(0x94d049bb133111eb);
    }
    time_step(t);
    if (strcmp(t->engine->ops->name, "host") == 0)
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
    own[HSORT_RATES] = t->status == HSORT_OK;
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
    t->status = prepare(t);
    TRY(comm_range(t->comm, t->status == HSORT_OK, &all_ready, &any_ready));
    if (!all_ready)
        return HSORT_OK;
    TRY(find_partners(t));
    time_engine(t);
    TRY(time_paths(t, COST_NEAR));
    TRY(time_paths(t, COST_FAR));
    return share(t, rates);
}

hsort_status rates_measure(struct comm *comm, struct engine *engine, struct transport *transport,
                           struct hsort_rates *rates)
{
    struct trial trial = {
        .comm = comm, .engine = engine, .transport = transport, .partner = {-1, -1}, .status = HSORT_OK};
    fault_pause(true);
    hsort_status status = try_all(&trial, rates);
    const hsort_status ended = end(&trial);
    fault_pause(false);
    status = status != HSORT_OK ? status : ended;
    if (status == HSORT_OK)
        status_clear(); // what a rank could not measure is no error
    return status;
}
