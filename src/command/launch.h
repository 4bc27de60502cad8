/* The ranks that a command runs on: were they started together, are they still together, and which part of
 * the work does each one have? */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include "mpi/comm/comm.h"
#include "src/command/cli.h"
#include "src/files/file.h"

/* Was this process started by a launcher of parallel programs, and so perhaps as one of several? Not
 * collective. */
bool launch_is_launched(void);

/* Begin to read this process's share of the input of a sort or a check (read_ahead.h), if the launcher says which share that is, and the
 * page cache may be used. Before MPI starts. Not collective. */
void launch_read_ahead(const struct cli_options *options);

/* Before anything else that ranks do together: were all given the same command? Ranks whose commands differ in more than the number of
 * threads could wait for each other for ever, or mix their inputs. Collective.
 *   parsed  what cli_parse() returned on this rank, for these options; its text is status_text()
 * Errors   same on every rank: `parsed`, without a rank's name if it is the same everywhere; HSORT_ARGUMENT, naming a rank and
 *          what differs. */
hsort_status launch_agree(struct comm *comm, const struct cli_options *options, hsort_status parsed);

/* Was a world of one rank started as several tasks? A program whose MPI is not the launcher's becomes N worlds of one rank, and each would
 * write the same output. OMPI_COMM_WORLD_SIZE, PMI_SIZE or SLURM_STEP_NUM_TASKS, the first that is set, says how many tasks there are.
 * (SLURM_NTASKS is no sign: a batch script has it too, and may start a single task.) Not collective.
 *   size  of MPI_COMM_WORLD
 *   task  [1] written: this task's number, so that one task prints for all; 0 if the launcher does not say
 * Errors   HSORT_LAUNCH: a world of one rank that was started as several tasks. */
hsort_status launch_check(int size, int *task);

/* True if nothing collective may be done any more, because MPI or CUDA failed and the ranks are apart. Collective. On a rank that
 * launch_agree_late() has found to be alone it is true at once, without a message to other ranks. */
bool launch_lost(struct comm *comm, hsort_status status);

/* comm_agree() after a call of another library that all ranks make together. If the call failed on this rank, other ranks may wait inside
 * it for ever: then this rank is lost (launch_lost()) unless all come here within ten seconds. Collective. Errors as comm_agree(). */
hsort_status launch_agree_late(struct comm *comm, hsort_status mine);

/* End an output file after work that ended with `status`, the same on all ranks. Keeps comm->error if that
 * was a failure. If the ranks are lost, the file is left to the signal that ends the run. Collective.
 * Errors   `status`, or those of file_commit(). */
hsort_status launch_commit(struct comm *comm, struct file_out *file, hsort_status status);

/* The same for several outputs, which get their names when all are whole. */
hsort_status launch_commit_all(struct comm *comm, struct file_out *const *files, int count,
                               hsort_status status);

/* The first of `count` keys that rank `rank` of `size` handles; its share ends where the next rank's starts.
 * Shares differ by at most one key. With rank == size: `count`. Not collective. */
int64_t launch_share(int64_t count, int rank, int size);

/* *threads = threads for this rank's own work: `wanted`; if that is 0, what OMP_NUM_THREADS says; otherwise the rank's part of the
 * processors it may run on. Sets it for OpenMP. Not collective. Errors HSORT_ARGUMENT: more than OpenMP can be asked for. */
hsort_status launch_threads(const struct comm *comm, int wanted, int *threads);

#endif
