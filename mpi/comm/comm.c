#include "mpi/comm/comm.h"
#include <stdio.h>
#include <string.h>
#include "kernels/base/lesser.h"

hsort_status comm_check(int mpi_code, const char *call, bool may_fault)
{
    if (mpi_code == MPI_SUCCESS && may_fault && fault_hit(FAULT_MPI))
        return status_fail(HSORT_MPI, "%s failed: injected fault", call);
    if (mpi_code == MPI_SUCCESS)
        return HSORT_OK;
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(mpi_code, reason, &length);
    return status_fail(HSORT_MPI, "%.64s failed: %.256s", call, reason);
}

hsort_status comm_usable(void)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    if (!begun || ended)
        return status_fail(HSORT_MPI, "MPI %s", ended ? "has been finalised" : "is not initialised yet");
    return HSORT_OK;
}

static hsort_status open_duplicates(MPI_Comm user, struct comm *comm)
{
    TRY_MPI(MPI_Comm_dup(user, &comm->world));
    TRY_MPI(MPI_Comm_set_errhandler(comm->world, MPI_ERRORS_RETURN)); // node inherits it
    TRY_MPI(MPI_Comm_rank(comm->world, &comm->rank));
    TRY_MPI(MPI_Comm_size(comm->world, &comm->size));
    TRY_MPI(MPI_Comm_split_type(comm->world, MPI_COMM_TYPE_SHARED, comm->rank, MPI_INFO_NULL, &comm->node));
    TRY_MPI(MPI_Comm_rank(comm->node, &comm->node_rank));
    TRY_MPI(MPI_Comm_size(comm->node, &comm->node_size));
    TRY_MPI(MPI_Comm_group(comm->world, &comm->world_group));
    TRY_MPI(MPI_Comm_group(comm->node, &comm->node_group));
    return HSORT_OK;
}

/* Do all nodes have the same number of ranks, and does each node begin where the one before it ends? Collective. */
static hsort_status find_even_nodes(struct comm *comm)
{
    enum { MOST, LEAST, UNEVEN, NUMBERS };
    int first = 0, leader = 0, all[NUMBERS];
    comm->even_node_ranks = 1;
    if (comm_is_alone(comm))
        return HSORT_OK;
    TRY_MPI(MPI_Group_translate_ranks(comm->node_group, 1, &first, comm->world_group, &leader));
    const bool even = comm->rank == leader + comm->node_rank;
    const int own[NUMBERS] = {comm->node_size, -comm->node_size, !even};
    TRY_MPI(MPI_Allreduce(own, all, NUMBERS, MPI_INT, MPI_MAX, comm->world));
    if (all[MOST] == -all[LEAST] && !all[UNEVEN])
        comm->even_node_ranks = comm->node_size;
    return HSORT_OK;
}

hsort_status comm_open(MPI_Comm user, struct comm *comm)
{
    memset(comm, 0, sizeof *comm);
    comm->threads = 1;
    comm->world = MPI_COMM_NULL;
    comm->node = MPI_COMM_NULL;
    comm->world_group = comm->node_group = MPI_GROUP_NULL;
    hsort_status status = open_duplicates(user, comm);
    if (status == HSORT_OK)
        status = find_even_nodes(comm);
    if (status != HSORT_OK) {
        comm_close(comm);
        return status;
    }
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    snprintf(comm->host, sizeof comm->host, "%.63s", name);
    return HSORT_OK;
}

void comm_close(struct comm *comm)
{
    int ended = 0;
    MPI_Finalized(&ended);
    if (ended)
        return;
    if (comm->world_group != MPI_GROUP_NULL)
        MPI_Group_free(&comm->world_group);
    if (comm->node_group != MPI_GROUP_NULL)
        MPI_Group_free(&comm->node_group);
    if (comm->node != MPI_COMM_NULL)
        MPI_Comm_free(&comm->node);
    if (comm->world != MPI_COMM_NULL)
        MPI_Comm_free(&comm->world);
}

/* The greatest status of all ranks, and the lowest rank that has it. */
struct ranked_status {
    int status, rank;
};

static hsort_status find_worst(const struct comm *comm, struct ranked_status own, struct ranked_status *worst)
{
    *worst = own;
    if (!comm_is_alone(comm))
        TRY_MPI(MPI_Allreduce(&own, worst, 1, MPI_2INT, MPI_MAXLOC, comm->world));
    return HSORT_OK;
}

hsort_status comm_agree(struct comm *comm, hsort_status mine)
{
    struct ranked_status worst;
    struct trace_span *span = trace_begin(comm->trace, "agree");
    TRY(trace_end_with(span, find_worst(comm, (struct ranked_status){(int)mine, comm->rank}, &worst)));
    if (worst.status == HSORT_OK)
        return HSORT_OK;
    if (worst.rank == comm->rank) {
        const char *cause = status_text();
        snprintf(comm->error, sizeof comm->error, "rank %d on %s: %s", comm->rank, comm->host,
                 cause[0] != '\0' ? cause : hsort_strerror(mine));
    }
    if (!comm_is_alone(comm))
        TRY_MPI(MPI_Bcast(comm->error, sizeof comm->error, MPI_CHAR, worst.rank, comm->world));
    return (hsort_status)worst.status;
}

hsort_status comm_range(struct comm *comm, int64_t value, int64_t *smallest, int64_t *largest)
{
    // One reduction for both: the smallest is the largest of the complements, and ~ cannot overflow.
    int64_t own[2] = {value, ~value}, all[2] = {value, ~value};
    if (!comm_is_alone(comm))
        TRY_MPI(MPI_Allreduce(own, all, 2, MPI_INT64_T, MPI_MAX, comm->world));
    if (largest)
        *largest = all[0];
    if (smallest)
        *smallest = ~all[1];
    return HSORT_OK;
}

hsort_status comm_all(struct comm *comm, bool mine, bool *all)
{
    int64_t smallest;
    TRY(comm_range(comm, mine, &smallest, NULL));
    *all = smallest != 0;
    return HSORT_OK;
}

hsort_status comm_any(struct comm *comm, bool mine, bool *any)
{
    int64_t largest;
    TRY(comm_range(comm, mine, NULL, &largest));
    *any = largest != 0;
    return HSORT_OK;
}

hsort_status comm_sum(struct comm *comm, int64_t value, int64_t *sum)
{
    return comm_sums(comm, &value, 1, sum);
}

hsort_status comm_sums(struct comm *comm, const int64_t *own, int count, int64_t *sums)
{
    if (comm_is_alone(comm))
        memcpy(sums, own, (size_t)count * sizeof *own);
    else
        TRY_MPI(MPI_Allreduce(own, sums, count, MPI_INT64_T, MPI_SUM, comm->world));
    return HSORT_OK;
}

hsort_status comm_largest(struct comm *comm, const double *own, int count, double *largest)
{
    if (comm_is_alone(comm))
        memcpy(largest, own, (size_t)count * sizeof *own);
    else
        TRY_MPI(MPI_Allreduce(own, largest, count, MPI_DOUBLE, MPI_MAX, comm->world));
    return HSORT_OK;
}

hsort_status comm_gather(struct comm *comm, int64_t value, int64_t *values)
{
    const uint64_t own = (uint64_t)value;
    return comm_gather_words(comm, &own, 1, (uint64_t *)values);
}

hsort_status comm_gather_offsets(struct comm *comm, int64_t count, int64_t *offset, int64_t *largest)
{
    int64_t most = 0;
    TRY(comm_gather(comm, count, offset + 1));
    offset[0] = 0;
    for (int rank = 0; rank < comm->size; rank++) {
        most = greater(most, offset[rank + 1]);
        offset[rank + 1] += offset[rank];
    }
    if (largest)
        *largest = most;
    return HSORT_OK;
}

hsort_status comm_gather_words(struct comm *comm, const uint64_t *own, int count, uint64_t *all)
{
    if (comm_is_alone(comm))
        memcpy(all, own, (size_t)count * sizeof *own);
    else
        TRY_MPI(MPI_Allgather(own, count, MPI_UINT64_T, all, count, MPI_UINT64_T, comm->world));
    return HSORT_OK;
}

hsort_status comm_isend(const struct comm *comm, const void *from, size_t bytes, int to, int tag,
                        MPI_Request *request)
{
    return comm_check(MPI_Isend(from, (int)bytes, MPI_BYTE, to, tag, comm->world, request), "MPI_Isend",
                      true);
}

hsort_status comm_issend(const struct comm *comm, const void *from, size_t bytes, int to, int tag,
                         MPI_Request *request)
{
    return comm_check(MPI_Issend(from, (int)bytes, MPI_BYTE, to, tag, comm->world, request), "MPI_Issend",
                      true);
}

hsort_status comm_irecv(const struct comm *comm, void *to, size_t bytes, int from, int tag,
                        MPI_Request *request)
{
    return comm_check(MPI_Irecv(to, (int)bytes, MPI_BYTE, from, tag, comm->world, request), "MPI_Irecv",
                      true);
}

hsort_status comm_sendrecv(const struct comm *comm, int peer, const void *send, void *receive, size_t bytes,
                           int tag)
{
    return comm_check(MPI_Sendrecv(send, (int)bytes, MPI_BYTE, peer, tag, receive, (int)bytes, MPI_BYTE, peer,
                                   tag, comm->world, MPI_STATUS_IGNORE),
                      "MPI_Sendrecv", true);
}

bool comm_is_near(const struct comm *comm, int peer)
{
    int place = MPI_UNDEFINED;
    return MPI_Group_translate_ranks(comm->world_group, 1, &peer, comm->node_group, &place) == MPI_SUCCESS &&
           place != MPI_UNDEFINED;
}

hsort_status comm_leaders(struct comm *comm, int64_t *leaders)
{
    int64_t leader = comm->rank;
    if (!comm_is_alone(comm))
        TRY_MPI(MPI_Allreduce(MPI_IN_PLACE, &leader, 1, MPI_INT64_T, MPI_MIN, comm->node));
    return comm_gather(comm, leader, leaders);
}
