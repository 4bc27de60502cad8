/* The directories RUNS of run_files.h: making and finding them, what lies in them, and how much room there is. Rank 0 makes, finds,
 * cleans and removes them, and asks for room; any rank may call the other functions. */
#ifndef RUN_DIRECTORY_H
#define RUN_DIRECTORY_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "kernels/base/status.h"
#include "src/checkpoint/run_journal.h"

enum { RUN_NAME_ROOM = 32 }; /* for our longest name in RUNS, and its slash */

/* One RUNS. */
struct run_directory {
    char path[PATH_MAX];
    bool made;     /* by run_directory_find() */
    bool has_plan; /* of this sort */
    struct written_plan plan;
    dev_t device; /* where it lies */
    ino_t inode;
};

/* Make RUNS if it is missing (not its parents), and look for a plan with this id and this number of elements. A damaged plan
 * counts as none. Not collective.
 *   directory  [1] path is given, the rest is written
 * Errors   HSORT_IO, with errno ENOSPC or EDQUOT if the disk is full; also if RUNS has a plan of another sort whose manifest is
 *          still there, or may be, so that somebody may go on with that sort. */
hsort_status run_directory_find(struct run_directory *directory, const struct written_plan *wanted);

/* Begin anew: remove the runs and the plan that lie there, and write this plan. The plan is never there in part unless the
 * machine crashed. Not collective. Errors HSORT_IO, as above, or because another command was faster. */
hsort_status run_directory_begin(struct run_directory *directory, const struct written_plan *plan);

/* Check, as every rank does, that RUNS is here with this plan, and can be written to. Not collective. Errors HSORT_IO. */
hsort_status run_directory_see(const char *path, const struct written_plan *plan);

/* Check that RUNS still has this plan. A command on another machine that cannot see this command's checkpoint may have begun anew there:
 * without the check this command would take the other one's runs for its own. Not collective. Errors HSORT_IO: the plan is gone, or
 * another one. */
hsort_status run_directory_check(const char *path, const struct written_plan *plan);

/* Remove the files of runs, except whole ones for which `stays` returns true; NULL: remove all. Failures are ignored. Not
 * collective. */
void run_directory_clean(const char *path, bool (*stays)(void *user, int64_t run), void *user);

/* Remove runs and plan, if the plan has this id, and then RUNS, if it is empty. Failures are ignored. Not collective. */
void run_directory_remove(const struct run_directory *directory, uint64_t id);

/* name [PATH_MAX] = the path of a run's file; until the file is `whole` it has another name. Not collective. */
void run_directory_name_run(const char *path, int64_t run, bool whole, char *name);

/* Let the names in the directory of the file `path` outlast a crash. Not collective. Errors HSORT_IO, with the cause in errno. */
hsort_status run_names_sync(const char *path);

/* Check that there is room for needed [count] bytes in directories [count]. Directories on one file system count together. Not
 * collective. Errors HSORT_IO. */
hsort_status run_directories_check_space(const struct run_directory *directories, int count,
                                         const int64_t *needed);

#endif
