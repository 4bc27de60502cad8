/* The ranks that a command runs on: were they started together, are they still together, and which part of
 * the work is each one's. */
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

/* Before anything else that ranks do together: were all given the same command? Collective.
 *   parsed  what cli_parse() returned on this rank, for these options; its text is status_text()
 * Errors   same on every rank: `parsed`, without a rank's name if it is the same everywhere; HSORT_ARGUMENT, naming a rank and
 *          what differs. Number of threads apart, ranks that differ could wait for each other for ever, or mix their inputs. */
hsort_status launch_agree(struct comm *comm, const struct cli_options *options, hsort_status parsed);

/* A program whose MPI is not the launcher's becomes N worlds of one rank, and each would write the same
 * output. Told by OMPI_COMM_WORLD_SIZE, else PMI_SIZE, else SLURM_STEP_NUM_TASKS: the first that is set says
 * how many tasks there are.
 * (SLURM_NTASKS is no sign: a batch script has it too, and may well start a single task.) Not collective.
 *   size  of MPI_COMM_WORLD
 *   task  [1] written: this task's number, for one to print for all; 0 if the launcher does not say
 * Errors   HSORT_LAUNCH: a world of one rank that was started as several tasks. */
hsort_status launch_check(int size, int *task);

/* True if nothing collective may be done any more: MPI or CUDA failed, the ranks are apart. Collective. Of a rank that
 * launch_agree_late() has found to be alone it is true without a word to others. */
bool launch_lost(struct comm *comm, hsort_status status);

/* comm_agree() behind a call of another library that all ranks make together. If it failed on this rank, others may wait inside
 * of it for ever: then this one is lost (launch_lost()) unless all come within ten seconds. Collective. Errors as comm_agree(). */
hsort_status launch_agree_late(struct comm *comm, hsort_status mine);

/* End an output file with the status, the same on all ranks, of the work before it. Keeps comm->error if that
 * was a failure. Where the ranks are lost, the file is left to the signal that ends the run. Collective.
 * Errors   `status`, or those of file_commit(). */
hsort_status launch_commit(struct comm *comm, struct file_out *file, hsort_status status);

/* The same for several outputs, which get their names when all are whole. */
hsort_status launch_commit_all(struct comm *comm, struct file_out *const *files, int count,
                               hsort_status status);

/* First of `count` keys that rank `rank` of `size` handles; its share ends where the next rank's starts.
 * Shares differ by at most one. With rank == size: `count`. Not collective. */
int64_t launch_share(int64_t count, int rank, int size);

/* *threads for this rank's own work: `wanted`, or if that is 0 what OMP_NUM_THREADS says, or else the rank's part of the
 * processors it may run on. Sets it for OpenMP. Not collective. Errors HSORT_ARGUMENT: more than OpenMP can be asked for. */
hsort_status launch_threads(const struct comm *comm, int wanted, int *threads);

#endif
