/* What `sort` has on disk if memory does not hold its keys or records, and how that ends. The library's part is
 * disk_passes.h; the files' part is run_files.h.
 *
 *     DIR          a checkpoint: of --checkpoint, otherwise OUT.hypersort-runs. Every run and every part of the output that is
 *                  written counts, whatever ends this run of the command
 *     the output   under the checkpoint's name for it, until it is whole; or DIR/sorted, from which outputs are dealt out
 *                  (disk_deal.h); or, with --checkpoint, because DIR may have no room for that, RUNS-ID-sorted
 *     the runs     in the temporary directories
 *
 *     ended by                         stays                      the next start of the same command
 *     success                          the output                 -
 *     a stop, a full disk, a crash     all of them                goes on, on any number of ranks, or anew if none is whole
 *     any other failure                nothing                    begins anew                                          */
#ifndef DISK_SORT_H
#define DISK_SORT_H

#include <limits.h>
#include "src/checkpoint/run_files.h"
#include "src/command/cli.h"
#include "src/command/disk_deal.h"
#include "src/command/report.h"

#define DISK_SORTED "sorted" /* in DIR */

struct disk_sort {
    struct comm *comm;
    const struct cli_options *options;
    char directory[PATH_MAX]; /* DIR */
    bool has_checkpoint, has_output;
    struct checkpoint checkpoint;
    struct file_out out;     /* what segments go to */
    struct run_files *files; /* owned */
    struct disk_deal deal;
    int64_t run_bytes;       /* on disk, of all ranks, as disk_sort_end() found them */
    struct report_kept kept; /* from earlier runs of the command, as disk_sort_end() found it */
};

/* Was such a sort begun, and not ended? Then its manifest is there. Collective.
 *   begun  [1] written, the same on every rank */
hsort_status disk_sort_begun(struct comm *comm, const struct cli_options *options, bool *begun);

/* Refuse --runs for bare keys that are counted, and so need no runs. Collective. Errors the same on every rank: HSORT_ARGUMENT. */
hsort_status disk_sort_check_runs(struct comm *comm, const struct cli_options *options,
                                  const struct file_in *keys);

/* *bytes = host memory for this sort on every rank: the least that any rank has (cli_memory()). Collective. */
hsort_status disk_sort_memory(struct comm *comm, const struct cli_options *options, size_t *bytes);

/* Open checkpoint, output and runs, new ones or those of an earlier run. From here on SIGUSR1 and SIGTERM are caught and kept
 * (stop.h). Collective.
 *   deal     described: what is sorted, and where it goes to
 *   disk     [1] written; disk_sort_end() ends it, also after an error
 * Errors   agreed: checkpoint_open()'s, file_resume()'s, file_create()'s, run_files_open()'s. */
hsort_status disk_sort_open(struct comm *comm, const struct cli_options *options,
                            const struct disk_deal *deal, hsort_order order, size_t memory_bytes,
                            struct disk_sort *disk);

/* The store to hand to the library. Borrowed. */
const struct run_store *disk_sort_store(const struct disk_sort *disk);

/* After the sort: fill the outputs, if they are to be dealt out. Collective.
 *   wanted   what the sorted elements must be like; NULL: nobody looks
 * Errors   agreed: disk_deal_out()'s; HSORT_STOPPED with its line. */
hsort_status disk_sort_deal(struct disk_sort *disk, const hsort_check_result *wanted,
                            struct progress *progress);

/* Has the sort made anything that the next start need not make again, as far as this rank knows? Not collective. */
bool disk_sort_has_made(const struct disk_sort *disk);

/* End the sort, after work that ended with `status`, as the head of this file says. Collective.
 * Errors   `status`, those of file_commit(). The line of a disk that is full says what stays. */
hsort_status disk_sort_end(struct disk_sort *disk, hsort_status status);

#endif
