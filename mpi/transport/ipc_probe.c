/* Which pairs of ranks map each other's memory is not asked but probed: each rank fills a small allocation
 * with a pattern of its own, all others of the node map it and read it, by a copy and by a kernel, and
 * compare. Asking does not help: devices are hidden from a process, containers separate ranks, switches pass
 * nothing or, worse, something else.
 *
 *                reads  0  1  2  3                              maps  0  1  2  3
 *     rank 0            .  y  y  n      both must read:               .  y  .  .
 *     rank 1            y  .  n  n      y and its mirror image        y  .  .  .
 *     rank 2            n  n  .  y                                    .  .  .  y
 *     rank 3            n  n  y  .                                    .  .  y  .
 *
 * A pair that does not map is no failure: its bytes go by another transport. */
#include "mpi/transport/ipc_probe.h"
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 512 };

/* What a rank sends the others of its node. */
struct pattern_header {
    int32_t rank, exported; /* exported: there is a handle */
    struct engine_peer_handle handle;
};

struct ipc_probe {
    struct comm *comm;
    struct engine *engine;
    uint64_t *memory;               /* [ENGINE_PEER_BYTES] engine memory, the pattern first */
    struct pattern_header *headers; /* [node_size] */
    int *reads, *is_read;           /* [node_size] this rank reads that rank; that rank reads this one */
    char *why;                      /* [why_bytes] */
    size_t why_bytes;
};

static uint64_t pattern_word(int rank, int word)
{
    return ((uint64_t)rank << 32 | (uint64_t)word) * UINT64_C(0x9e3779b97f4a7c15);
}

static hsort_status write_pattern(struct ipc_probe *probe)
{
    const size_t ranks = (size_t)probe->comm->node_size;
    uint64_t words[WORDS];
    for (int word = 0; word < WORDS; word++)
        words[word] = pattern_word(probe->comm->rank, word);
    probe->headers = calloc(ranks, sizeof *probe->headers);
    probe->reads = calloc(ranks, sizeof *probe->reads);
    probe->is_read = calloc(ranks, sizeof *probe->is_read);
    if (!probe->headers || !probe->reads || !probe->is_read)
        return status_fail(HSORT_HOST_MEMORY, "no memory to probe %zu ranks", ranks);
    TRY(probe->engine->ops->alloc(probe->engine, ENGINE_PEER_BYTES, (void **)&probe->memory));
    TRY(probe->engine->ops->copy(probe->engine, STREAM_WORK, probe->memory, words, sizeof words));
    return probe->engine->ops->stream_synchronize(probe->engine, STREAM_WORK);
}

/* The first cause stays. */
static void keep_reason(struct ipc_probe *probe, const char *cause)
{
    if (probe->why[0] == '\0')
        snprintf(probe->why, probe->why_bytes, "%s", cause);
}

/* Read a rank's pattern at `theirs` by a copy, and its last word by a kernel. */
static hsort_status read_pattern(struct ipc_probe *probe, int rank, const void *theirs)
{
    const struct engine_ops *ops = probe->engine->ops;
    const int64_t last = WORDS - 1;
    uint64_t words[WORDS] = {0};
    key_code gathered = 0;
    int right = 0;
    TRY(ops->copy(probe->engine, STREAM_IN, words, theirs, sizeof words));
    TRY(ops->stream_synchronize(probe->engine, STREAM_IN));
    TRY(ops->gather(probe->engine, sizeof *words, theirs, &last, 1, &gathered));
    while (right < WORDS && words[right] == pattern_word(rank, right))
        right++;
    if (right < WORDS || gathered != pattern_word(rank, (int)last))
        return status_fail(HSORT_MISMATCH, "the memory of rank %d does not read as it was written", rank);
    return HSORT_OK;
}

/* Does this rank read that one's memory? */
static bool probe_rank(struct ipc_probe *probe, const struct pattern_header *header)
{
    const struct engine_ops *ops = probe->engine->ops;
    void *theirs = NULL;
    status_clear();
    hsort_status status = header->exported
                              ? ops->peer->open(probe->engine, &header->handle, &theirs)
                              : status_fail(HSORT_ARGUMENT, "rank %d exports no memory", header->rank);
    if (status == HSORT_OK)
        status = read_pattern(probe, header->rank, (char *)theirs + header->handle.offset);
    (void)ops->stream_synchronize(
        probe->engine, STREAM_IN); // after a failure, too, nothing may be reading what is closed here
    ops->peer->close(probe->engine, theirs);
    if (status != HSORT_OK)
        keep_reason(probe, status_text());
    status_clear();
    return status == HSORT_OK;
}

/* Collective over the node. */
static hsort_status probe_node(struct ipc_probe *probe, bool *maps)
{
    const struct comm *comm = probe->comm;
    struct pattern_header own = {.rank = comm->rank};
    own.exported =
        probe->engine->ops->peer->export_memory(probe->engine, probe->memory, &own.handle) == HSORT_OK;
    TRY_MPI(MPI_Allgather(&own, sizeof own, MPI_BYTE, probe->headers, sizeof own, MPI_BYTE, comm->node));
    if (comm->node_size == 1)
        keep_reason(probe, "the rank is alone on its node");
    else if (!own.exported)
        keep_reason(probe, "engine memory cannot be exported");
    for (int i = 0; i < comm->node_size; i++)
        probe->reads[i] = i != comm->node_rank && own.exported && probe_rank(probe, &probe->headers[i]);
    TRY_MPI(MPI_Alltoall(probe->reads, 1, MPI_INT, probe->is_read, 1, MPI_INT, comm->node));
    for (int i = 0; i < comm->node_size; i++) {
        maps[probe->headers[i].rank] = probe->reads[i] && probe->is_read[i];
        if (probe->reads[i] && !probe->is_read[i])
            keep_reason(probe, "another rank cannot read this rank's memory");
    }
    return HSORT_OK;
}

hsort_status ipc_probe_pairs(struct comm *comm, struct engine *engine, bool *maps, bool *some, char *why,
                             size_t why_bytes)
{
    struct ipc_probe probe = {.comm = comm, .engine = engine, .why = why, .why_bytes = why_bytes};
    bool own = false;
    int64_t most;
    why[0] = '\0';
    hsort_status status = comm_agree(comm, write_pattern(&probe));
    if (status == HSORT_OK)
        status = comm_agree(comm, probe_node(&probe, maps));
    engine->ops->free(engine, probe.memory); // each rank that had it mapped has closed it before the agreement
    free(probe.headers);
    free(probe.reads);
    free(probe.is_read);
    TRY(status);
    for (int rank = 0; rank < comm->size; rank++)
        own = own || maps[rank];
    TRY(comm_range(comm, own, NULL, &most));
    *some = most == 1;
    return HSORT_OK;
}
