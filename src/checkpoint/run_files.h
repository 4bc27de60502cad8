/* The runs of a sort larger than memory, as files (run_store.h), and what is known about them, so that the same command, started
 * again after a stop or a crash on any number of ranks, goes on.
 *
 *     DIR/manifest            what the command is (checkpoint.h): DIR is its directory
 *     DIR/journal-RANK        text: a line for each run and each segment that this rank has made, and for what is noted about
 *                             pieces (run_notes.h), each with a checksum of its own; a journal is only appended to and synced,
 *                             so a torn last line is no line
 *     RUNS/plan               text: id of the manifest, elements, element_bytes, part_elements, fence_elements, DIR, checksum
 *     RUNS/run-000007         a run, then its fences (run_store.h); RUNS/run-000007.part until it is whole
 *
 * RUNS is NAME.hypersort-runs beside the output, where NAME is the output's own name; or TEMPORARY/NAME.MARK.hypersort-runs for each
 * temporary directory, where MARK is made from the directory of the output, so that jobs whose outputs have one name can share TEMPORARY.
 * Run r is made in directory number r mod their count, and found in any. One of them may be DIR itself. run_journal.h describes both
 * texts. In DIR and RUNS only files with these names are touched, and journals only if they begin like a journal.
 *
 *     end_run        sync the run, name it; append "run 7 ..." to the own journal; sync that   killed before: it is made again
 *     end_segment    sync the output; append "segment 3 ..."; sync                             killed before: it is written again
 *
 * A line counts only if all of it is as it was written, for this sort and these parts. The line of a run counts only if the run's file
 * is there and has the right size: else the run is made again. The line of a segment counts only while the output is the file that it
 * was. A file that cannot be seen for the moment, because a file system fails, is an error, and is not taken for gone.
 * Nothing needs all ranks: each makes its parts at its own pace.
 *
 * Another sort to the same output, with another DIR, has its runs in the same RUNS. As long as the manifest that its plan names is
 * there, this sort is refused; after that, the runs of the other sort are removed. */
#ifndef RUN_FILES_H
#define RUN_FILES_H

#include "mpi/comm/comm.h"
#include "src/checkpoint/checkpoint.h"
#include "src/files/file.h"
#include "src/library/run_store.h"

struct run_files; /* one sort's runs */

struct run_files_target {
    const char *const *temporary; /* [temporary_count] directories, borrowed; all ranks see each */
    int temporary_count;          /* at least 1 */
    int64_t temporary_limit;      /* bytes of all runs with fences, and of what else the sort has there; 0: no limit */
    int64_t other_bytes;          /* of what else it has there */
    const char *output;           /* as the user names it */
    hsort_choice direct_io;
    const struct checkpoint *checkpoint; /* open, borrowed */
    const struct file_out *out;          /* what segments go to, open; borrowed */
    bool kept; /* file_resume() found `out` there: it has the segments of earlier calls; else these are gone */
};

/* Get ready. Nothing is made before store.open(). Not collective. Errors HSORT_HOST_MEMORY, HSORT_IO (a path is too long).
 *   files  [1] written: run_files_close() ends it; NULL after an error */
hsort_status run_files_open(struct comm *comm, const struct run_files_target *target,
                            struct run_files **files);

/* The store to hand to a sort. Borrowed, until run_files_close(). Not collective. */
struct run_store *run_files_store(struct run_files *files);

/* Bytes of runs and fences on disk, of all ranks, as far as this rank knows; and whether any write of this rank was refused
 * because a disk, or a quota, is full. Not collective. */
int64_t run_files_bytes(const struct run_files *files);
bool run_files_disk_is_full(const struct run_files *files);

/* What store.open() found of earlier calls. The same on every rank. Owned by files; not collective. */
struct run_files_kept {
    int64_t runs, segments;
    int64_t run_bytes, segment_bytes; /* with fences; of the output */
};
const struct run_files_kept *run_files_kept(const struct run_files *files);

/* Has store.open() gone well? Until then everything is as an earlier call has left it. The same on every rank. Not collective. */
bool run_files_are_open(const struct run_files *files);

/* The line of the failure that ranks have agreed on in store.open() or store.reopen(), "rank R on HOST: cause"; "" if both went well.
 * The caller of the store agrees again, on another communicator, and no longer knows the rank that failed. Owned by files,
 * the same on every rank. Not collective. */
const char *run_files_error(const struct run_files *files);

/* The directories, for a line of text: "x.hypersort-runs" or "a/x.0123abcd.hypersort-runs and b/x.0123abcd.hypersort-runs". Static in
 * files. Not collective. */
const char *run_files_where(const struct run_files *files);

/* name [PATH_MAX] = RUNS of the output in a directory; directory NULL: in the output's own. Not collective. Errors HSORT_IO:
 * the name is too long; the output's directory cannot be reached. */
hsort_status run_files_name(const char *directory, const char *output, char *name);

/* Remove runs, plans and journals, and RUNS if nothing else is in them; in DIR only files with our own names. Rank 0 does it,
 * after all ranks have closed theirs. Failures are ignored. Collective. */
void run_files_remove(struct comm *comm, struct run_files *files);

/* Free everything; what is on disk stays. NULL is fine. Not collective. */
void run_files_close(struct run_files *files);

#endif
