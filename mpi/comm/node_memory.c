#include "mpi/comm/node_memory.h"
#include <stdlib.h>
#include "kernels/base/host_memory.h"
#include "kernels/base/size_text.h"

/* What a rank sends to the others of its node: only 64-bit numbers, so that it is sent as such. A rank that wants nothing names no
 * limit. */
struct memory_request {
    uint64_t bytes, limits;
    struct host_memory_limit limit[HOST_MEMORY_LIMITS_MAX];
};

enum { REQUEST_NUMBERS = sizeof(struct memory_request) / sizeof(uint64_t) };

static bool shares_limit(const struct memory_request *request, uint64_t place)
{
    for (uint64_t i = 0; i < request->limits; i++)
        if (request->limit[i].place == place)
            return true;
    return false;
}

/* Compare each limit of this rank with what all ranks that share it want. */
static hsort_status compare_requests(const struct comm *comm, const struct memory_request *requests)
{
    const struct memory_request *own = &requests[comm->node_rank];
    char mine[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES], available[SIZE_TEXT_BYTES];
    for (uint64_t i = 0; i < own->limits; i++) {
        const struct host_memory_limit *limit = &own->limit[i];
        uint64_t wanted = 0;
        int ranks = 0;
        for (int rank = 0; rank < comm->node_size; rank++) {
            if (!shares_limit(&requests[rank], limit->place))
                continue;
            const uint64_t left = UINT64_MAX - wanted;
            wanted += requests[rank].bytes < left ? requests[rank].bytes : left;
            ranks++;
        }
        if (wanted > limit->available)
            return status_fail(HSORT_HOST_MEMORY,
                               "cannot take %s of host memory: %d rank%s of this node want%s %s, but %s %s",
                               size_text(own->bytes, mine), ranks, ranks > 1 ? "s" : "", ranks > 1 ? "" : "s",
                               size_text(wanted, all),
                               limit->place == 0 ? "the machine has available" : "their cgroup has left",
                               size_text(limit->available, available));
    }
    return HSORT_OK;
}

/* The same for the only rank of a node, which needs no table, and asks nobody. */
static hsort_status check_only_rank(const struct comm *comm, uint64_t bytes)
{
    struct memory_request own = {.bytes = bytes};
    own.limits = bytes > 0 ? (uint64_t)host_memory_limits(own.limit) : 0;
    return compare_requests(comm, &own);
}

hsort_status node_memory_check(const struct comm *comm, uint64_t bytes)
{
    if (comm->node_size == 1)
        return check_only_rank(comm, bytes);
    struct memory_request own = {.bytes = bytes};
    struct memory_request *requests = calloc((size_t)comm->node_size, sizeof *requests);
    // Does any rank want memory, and does any lack the memory to hear of it? Then the others do not wait for that rank.
    uint64_t most[2] = {bytes, requests == NULL};
    hsort_status status = comm_check(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_UINT64_T, MPI_MAX, comm->node),
                                     "MPI_Allreduce", false);
    if (!requests)
        keep_first_error(
            &status,
            status_fail(HSORT_HOST_MEMORY, "no memory for what %d ranks of this node want", comm->node_size));
    if (status == HSORT_OK && most[0] > 0 && most[1] == 0) {
        own.limits = bytes > 0 ? (uint64_t)host_memory_limits(own.limit) : 0;
        status = comm_check(MPI_Allgather(&own, REQUEST_NUMBERS, MPI_UINT64_T, requests, REQUEST_NUMBERS,
                                          MPI_UINT64_T, comm->node),
                            "MPI_Allgather", false);
        if (status == HSORT_OK)
            status = compare_requests(comm, requests);
    }
    free(requests);
    return status;
}
