/* Of several questions to rank 0, the one that was answered soonest says most:
 *
 *     rank r    ask at t0                     t1        rank 0 answered between t0 and t1: at (t0 + t1) / 2,
 *                       \                    /          or half of t1 - t0 before or after it
 *     rank 0             answers: its time T
 */
#include "mpi/comm/clock.h"
#include <math.h>
#include "kernels/base/trace.h"

enum { QUESTIONS = 10, TAG_CLOCK = 7 };

static hsort_status answer_questions(struct comm *comm)
{
    hsort_status status = HSORT_OK;
    for (int rank = 1; rank < comm->size; rank++) {
        for (int i = 0; i < QUESTIONS; i++) {
            keep_first_error(&status, comm_check(MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG_CLOCK, comm->world,
                                                          MPI_STATUS_IGNORE),
                                                 "MPI_Recv", false));
            const int64_t now = trace_now();
            keep_first_error(&status, comm_check(MPI_Send(&now, 1, MPI_INT64_T, rank, TAG_CLOCK, comm->world),
                                                 "MPI_Send", true));
        }
    }
    return status;
}

static hsort_status ask_rank_0(struct comm *comm, struct clock_offset *offset)
{
    hsort_status status = HSORT_OK;
    for (int i = 0; i < QUESTIONS; i++) {
        int64_t theirs = 0;
        const int64_t asked = trace_now();
        keep_first_error(
            &status, comm_check(MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_CLOCK, comm->world), "MPI_Send", true));
        keep_first_error(&status, comm_check(MPI_Recv(&theirs, 1, MPI_INT64_T, 0, TAG_CLOCK, comm->world,
                                                      MPI_STATUS_IGNORE),
                                             "MPI_Recv", false));
        const int64_t error_ns = (trace_now() - asked + 1) / 2;
        if (i > 0 && error_ns >= offset->error_ns)
            continue;
        offset->at_ns = asked + error_ns;
        offset->error_ns = error_ns;
        offset->offset_ns = offset->at_ns - theirs;
    }
    // Ranks of one machine have one clock, and must not differ by the time that messages take. The clocks of two machines count from
    // when each machine was started.
    if (offset->offset_ns <= offset->error_ns && -offset->offset_ns <= offset->error_ns)
        offset->offset_ns = 0;
    return status;
}

hsort_status clock_look(struct comm *comm, struct clock_offset *offset)
{
    *offset = (struct clock_offset){.at_ns = trace_now()};
    return comm->rank == 0 ? answer_questions(comm) : ask_rank_0(comm, offset);
}

/* The part of the way from the first look to the last one that has passed at `at`. */
static double part_of_way(const struct clock_offset *first, const struct clock_offset *last, int64_t at)
{
    const double span = (double)(last->at_ns - first->at_ns), passed = (double)(at - first->at_ns);
    return span > 0 ? passed / span : 0;
}

int64_t clock_error_at(const struct clock_offset *first, const struct clock_offset *last, int64_t at)
{
    const double part = part_of_way(first, last, at);
    return (int64_t)(fabs(1 - part) * (double)first->error_ns + fabs(part) * (double)last->error_ns) + 1;
}

int64_t clock_of_rank_0(const struct clock_offset *first, const struct clock_offset *last, int64_t at)
{
    const double part = part_of_way(first, last, at);
    return at - first->offset_ns - (int64_t)((double)(last->offset_ns - first->offset_ns) * part);
}
