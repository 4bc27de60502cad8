/* What a JSON report says of each rank, and of how the command was started, for `hypersort report` to draw. */
#ifndef REPORT_RANKS_H
#define REPORT_RANKS_H

#include "mpi/comm/comm.h"
#include "hypersort.h"
#include "src/command/json.h"

/* The names of the phases in reports and plans, by hsort_phase. */
extern const char *const report_phase_names[HSORT_PHASES];

/* What one rank has done; sent between ranks as bytes. */
struct rank_report {
    double read_seconds, write_seconds, verify_seconds;
    double seconds[HSORT_PHASES]; /* by hsort_phase */
    int64_t moved_bytes;          /* that it has sent */
    int64_t gpu;                  /* by its index, or -1 */
    char host[64], gpu_name[64];
};

/* Add this rank's part of the last call of the library. Not collective. */
void rank_report_add(struct rank_report *own, const hsort_context *ctx);

/* ranks [size] on rank 0 = the reports of all ranks; NULL elsewhere. The caller frees it. Collective. Errors agreed: HSORT_HOST_MEMORY,
 * HSORT_MPI. */
hsort_status rank_reports_gather(struct comm *comm, hsort_context *ctx, const struct rank_report *own,
                                 struct rank_report **ranks);

/* Put the member "per_rank"; put the members "command" and "ended". Not collective. */
void rank_reports_json(struct json *json, const struct rank_report *ranks, int count);
void report_start_json(struct json *json);

#endif
