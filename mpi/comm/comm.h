/* A communicator of the library's own, and the rule that keeps ranks together.
 *
 * The rule: a collective function never returns between two communication steps. The local work of a phase
 * yields a status; the phase ends with comm_agree(), after which every rank goes on or every rank returns the
 * same status.
 *
 * On a communicator of one rank none of the functions below communicates, except comm_open() and comm_close(). */
#ifndef COMM_H
#define COMM_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include "kernels/base/fault.h"
#include "kernels/base/status.h"
#include "kernels/base/trace.h"

struct comm {
    MPI_Comm world;              /* duplicated, MPI_ERRORS_RETURN; owned */
    int rank, size;
    MPI_Comm node;               /* ranks that share memory with this one; owned */
    int node_rank, node_size;
    int even_node_ranks; /* ranks of each node, if all have the same number, one node behind the other; else 1. The same on every rank */
    MPI_Group world_group, node_group; /* the same ranks; owned */
    char host[64];
    int threads;         /* that this rank has for loops of its own; 1 until the caller sets it */
    struct trace *trace; /* of what is done by way of this communicator; borrowed; NULL: none */
    char error[STATUS_TEXT_BYTES + 128]; /* "rank R on HOST: cause", the same everywhere after a failure */
};

/* Is this the only rank? It agrees with itself, and its sums are its own numbers: it sends no message. */
static inline bool comm_is_alone(const struct comm *comm)
{
    return comm->size == 1;
}

/* Can MPI be called? Not before MPI_Init() nor after MPI_Finalize(). Not collective. Errors HSORT_MPI. */
hsort_status comm_usable(void);

/* Duplicate `user` and find the ranks of this node. Collective.
 *   comm  [1] written; comm_close() frees it. Errors HSORT_MPI; then *comm needs no close. */
hsort_status comm_open(MPI_Comm user, struct comm *comm);

/* Free what comm_open() made. Collective, except after MPI_Finalize(), which has freed the communicators. */
void comm_close(struct comm *comm);

/* Make one status of the statuses of all ranks: the greatest, from the lowest rank that has it. Collective.
 *   mine  this rank's; its text is status_text()
 * After    the same status is returned everywhere; unless HSORT_OK, comm->error is the same line everywhere. */
hsort_status comm_agree(struct comm *comm, hsort_status mine);

/* Turn the code of an MPI call into a status; the text names `call`. Also the fault site FAULT_MPI when
 * `may_fault`. Not collective. */
hsort_status comm_check(int mpi_code, const char *call, bool may_fault);

/* Smallest and largest of `value` over the ranks, either of which may be NULL; sum of `value` over the ranks. Each is collective. */
hsort_status comm_range(struct comm *comm, int64_t value, int64_t *smallest, int64_t *largest);

/* Do all ranks say yes; does any rank? Written unless MPI fails. Each is collective. */
hsort_status comm_all(struct comm *comm, bool mine, bool *all);
hsort_status comm_any(struct comm *comm, bool mine, bool *any);
hsort_status comm_sum(struct comm *comm, int64_t value, int64_t *sum);

/* The same of each of several numbers, own [count]: sums [count], largest [count]. Each is collective. */
hsort_status comm_sums(struct comm *comm, const int64_t *own, int count, int64_t *sums);
hsort_status comm_largest(struct comm *comm, const double *own, int count, double *largest);

/* values [size] = every rank's `value`, in rank order; all [size * count] = every rank's own [count]. Each is
 * collective. */
hsort_status comm_gather(struct comm *comm, int64_t value, int64_t *values);
hsort_status comm_gather_words(struct comm *comm, const uint64_t *own, int count, uint64_t *all);

/* Where each rank's elements begin among those of all, in rank order: offset [size + 1], the last of which is how many there are;
 * largest [1], if not NULL, the largest count. Collective. */
hsort_status comm_gather_offsets(struct comm *comm, int64_t count, int64_t *offset, int64_t *largest);

/* Begin to send a message to a rank, or to receive one from it, of INT_MAX bytes at most; `request` tells of its end. That of
 * comm_issend() ends no earlier than the other rank begins to receive it. Not collective. Fault sites FAULT_MPI, as below. */
hsort_status comm_isend(const struct comm *comm, const void *from, size_t bytes, int to, int tag,
                        MPI_Request *request);
hsort_status comm_issend(const struct comm *comm, const void *from, size_t bytes, int to, int tag,
                         MPI_Request *request);
hsort_status comm_irecv(const struct comm *comm, void *to, size_t bytes, int from, int tag,
                        MPI_Request *request);

/* Send as many bytes to a rank as come from it, INT_MAX at most. Collective over the pair. */
hsort_status comm_sendrecv(const struct comm *comm, int peer, const void *send, void *receive, size_t bytes,
                           int tag);

/* Does rank `peer` share memory with this one? Not collective. */
bool comm_is_near(const struct comm *comm, int peer);

/* leaders [size] = the lowest rank of each rank's node. Collective. */
hsort_status comm_leaders(struct comm *comm, int64_t *leaders);

#define TRY_MPI(call) TRY(comm_check((call), #call, false))

#endif
