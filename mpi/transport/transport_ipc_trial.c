/* Which pairs of ranks map each other's memory is not asked but tried: each rank fills a small allocation with a pattern of its
 * own, all others of the node map it and read it, by a copy and by a kernel, and compare. What would have to be asked is not
 * to be had: devices hidden from a process, containers, switches that let nothing through or, worse, something else.
 *
 *                reads  0  1  2  3                              maps  0  1  2  3
 *     rank 0            .  y  y  n      both must read:               .  y  .  .
 *     rank 1            y  .  n  n      y and its mirror image        y  .  .  .
 *     rank 2            n  n  .  y                                    .  .  .  y
 *     rank 3            n  n  y  .                                    .  .  y  .
 *
 * That a pair does not is no failure: its bytes go another way. */
#include "mpi/transport/transport_ipc_trial.h"
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 512 };

/* What a rank tells the others of its node. */
struct invitation {
    int32_t rank, open; /* open: there is a handle */
    struct engine_peer_handle handle;
};

struct trial {
    struct comm *comm;
    struct engine *engine;
    uint64_t *memory;           /* [ENGINE_PEER_BYTES] engine memory, the pattern first */
    struct invitation *invited; /* [node_size] */
    int *reads, *is_read;       /* [node_size] this rank reads that one; that one reads this */
    char *why;                  /* [why_bytes] */
    size_t why_bytes;
};

static uint64_t pattern(int rank, int word)
{
    return ((uint64_t)rank << 32 | (uint64_t)word) * UINT64_C(0x9e3779b97f4a7c15);
}

static hsort_status make_pattern(struct trial *t)
{
    const size_t ranks = (size_t)t->comm->node_size;
    uint64_t words[WORDS];
    for (int word = 0; word < WORDS; word++)
        words[word] = pattern(t->comm->rank, word);
    t->invited = calloc(ranks, sizeof *t->invited);
    t->reads = calloc(ranks, sizeof *t->reads);
    t->is_read = calloc(ranks, sizeof *t->is_read);
    if (!t->invited || !t->reads || !t->is_read)
        return status_fail(HSORT_HOST_MEMORY, "no memory to try %zu ranks", ranks);
    TRY(t->engine->ops->alloc(t->engine, ENGINE_PEER_BYTES, (void **)&t->memory));
    TRY(t->engine->ops->copy(t->engine, STREAM_WORK, t->memory, words, sizeof words));
    return t->engine->ops->stream_synchronize(t->engine, STREAM_WORK);
}

/* The first cause stays. */
static void explain(struct trial *t, const char *cause)
{
    if (t->why[0] == '\0')
        snprintf(t->why, t->why_bytes, "%s", cause);
}

/* Read a rank's pattern at `theirs` by a copy, and its last word by a kernel. */
static hsort_status read_pattern(struct trial *t, int rank, const void *theirs)
{
    const struct engine_ops *ops = t->engine->ops;
    const int64_t last = WORDS - 1;
    uint64_t words[WORDS] = {0}, gathered = 0;
    int right = 0;
    TRY(ops->copy(t->engine, STREAM_IN, words, theirs, sizeof words));
    TRY(ops->stream_synchronize(t->engine, STREAM_IN));
    TRY(ops->gather(t->engine, sizeof gathered, theirs, &last, 1, &gathered));
    while (right < WORDS && words[right] == pattern(rank, right))
        right++;
    if (right < WORDS || gathered != pattern(rank, (int)last))
        return status_fail(HSORT_MISMATCH, "the memory of rank %d does not read as it was written", rank);
    return HSORT_OK;
}

/* Does this rank read that one's memory? */
static bool try_rank(struct trial *t, const struct invitation *invitation)
{
    const struct engine_ops *ops = t->engine->ops;
    void *theirs = NULL;
    status_clear();
    hsort_status status = invitation->open ? ops->peer->open(t->engine, &invitation->handle, &theirs)
                                           : status_fail(HSORT_ARGUMENT, "rank %d lets nobody map its memory",
                                                         invitation->rank);
    if (status == HSORT_OK)
        status = read_pattern(t, invitation->rank, (char *)theirs + invitation->handle.offset);
    (void)ops->stream_synchronize(t->engine, STREAM_IN); // after a failure too, nothing may be reading what is closed now
    ops->peer->close(t->engine, theirs);
    if (status != HSORT_OK)
        explain(t, status_text());
    status_clear();
    return status == HSORT_OK;
}

/* Collective over the node. */
static hsort_status try_node(struct trial *t, bool *maps)
{
    const struct comm *comm = t->comm;
    struct invitation own = {.rank = comm->rank};
    own.open = t->engine->ops->peer->export_memory(t->engine, t->memory, &own.handle) == HSORT_OK;
    TRY_MPI(MPI_Allgather(&own, sizeof own, MPI_BYTE, t->invited, sizeof own, MPI_BYTE, comm->node));
    if (comm->node_size == 1)
        explain(t, "the rank is alone on its node");
    else if (!own.open)
        explain(t, "engine memory cannot be exported");
    for (int i = 0; i < comm->node_size; i++)
        t->reads[i] = i != comm->node_rank && own.open && try_rank(t, &t->invited[i]);
    TRY_MPI(MPI_Alltoall(t->reads, 1, MPI_INT, t->is_read, 1, MPI_INT, comm->node));
    for (int i = 0; i < comm->node_size; i++) {
        maps[t->invited[i].rank] = t->reads[i] && t->is_read[i];
        if (t->reads[i] && !t->is_read[i])
            explain(t, "another rank cannot read this rank's memory");
    }
    return HSORT_OK;
}

hsort_status ipc_try_pairs(struct comm *comm, struct engine *engine, bool *maps, bool *some, char *why,
                           size_t why_bytes)
{
    struct trial t = {.comm = comm, .engine = engine, .why = why, .why_bytes = why_bytes};
    bool own = false;
    int64_t least, most;
    why[0] = '\0';
    hsort_status status = comm_agree(comm, make_pattern(&t));
    if (status == HSORT_OK)
        status = comm_agree(comm, try_node(&t, maps));
    engine->ops->free(engine, t.memory); // who had it mapped has closed it before the agreement
    free(t.invited);
    free(t.reads);
    free(t.is_read);
    TRY(status);
    for (int rank = 0; rank < comm->size; rank++)
        own = own || maps[rank];
    TRY(comm_range(comm, own, &least, &most));
    *some = most == 1;
    return HSORT_OK;
}
