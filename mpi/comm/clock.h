/* How far apart the clocks of the ranks are, so that one time can tell when each rank did what (kernels/base/trace.h). */
#ifndef CLOCK_H
#define CLOCK_H

#include "mpi/comm/comm.h"

/* The clock of this rank beside that of rank 0, at one moment. */
struct clock_offset {
    int64_t at_ns;     /* of this rank's clock */
    int64_t offset_ns; /* this rank's time less that of rank 0 */
    int64_t error_ns;  /* how far that may be off: half the time of a message and its answer */
};

/* Look at both clocks, by messages. Collective. Errors, not agreed: HSORT_MPI. */
hsort_status clock_look(struct comm *comm, struct clock_offset *offset);

/* What rank 0's clock says, in ns, when this rank's says `at`: on the line through two looks. Pure. */
int64_t clock_of_rank_0(const struct clock_offset *first, const struct clock_offset *last, int64_t at);

/* How far that may be off: between the looks no more than at the worse one, and beyond them more and more. Pure. */
int64_t clock_error_at(const struct clock_offset *first, const struct clock_offset *last, int64_t at);

#endif
