/* What opening the store of runs (run_files_open.c) and working with it (run_files.c) share. A function is collective only if its
 * comment says so. */
#ifndef RUN_FILES_INTERNAL_H
#define RUN_FILES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include "src/checkpoint/run_directory.h"
#include "src/checkpoint/run_files.h"
#include "src/checkpoint/run_journal.h"

struct run_file {
    char *path; /* while it is open; owned */
    int fd;
    struct block_file *blocks; /* NULL: it is not open */
    bool writes;               /* between begin and end */
    atomic_bool made;          /* as far as this rank knows */
    int users;                 /* callers that read it now */
    uint64_t used;             /* when it was last read, by `clock` */
};

struct run_files {
    struct comm *comm; /* borrowed */
    struct run_files_target target;
    struct run_directory *directory; /* [target.temporary_count] */
    char *where;                     /* their names, for texts */
    struct run_store store;
    struct run_journal journal;
    struct line_seeds seeds;

    /* Set by open(): */
    struct run_plan plan;        /* its facts are owned */
    struct written_plan written; /* the same, as it stands in RUNS */
    bool began;                  /* of rank 0: no plan was there */
    bool is_open;                /* open() has gone well */
    struct run_files_kept kept;
    struct run_file *run;        /* [plan.parts] */
    int *place;                  /* [plan.parts] the directory of each */

    pthread_mutex_t lock; /* of what follows, of the journal and of `run`, except a run that a writer has begun */
    int open_runs, open_most;
    uint64_t clock; /* counts reads */
    atomic_bool full;
    char error[STATUS_TEXT_BYTES + 128]; /* see run_files_error() */
};

/* Keep the error line that ranks have just agreed on, if `agreed` is a failure. Returns `agreed`. */
hsort_status run_files_keep_error(struct run_files *files, hsort_status agreed);

/* run_store.open(). Collective. */
hsort_status run_files_open_store(void *user, struct run_plan *plan);

/* Close everything that is open, and forget what open() has found. Runs that were begun and not ended are removed. */
void run_files_forget(struct run_files *files);

/* words [RUN_OUTPUT_WORDS] = what file an open output is: its inode and the time of its birth, if that is known. */
enum { RUN_OUTPUT_WORDS = 3 };
hsort_status run_files_identify(const struct file_out *out, uint64_t *words);

/* Send words [count], of `bytes` bytes each, from rank 0 to all. Collective. The caller agrees on the status, which is `before` if
 * that is an error. */
hsort_status run_files_share(struct comm *comm, hsort_status before, void *words, int64_t count,
                             MPI_Datatype type, size_t bytes);

/* path [PATH_MAX] = the path of a run's file, which is another one until the file is `whole`. */
void run_file_name(const struct run_files *files, int64_t run, bool whole, char *path);

/* Remember that a disk is full, if that is why a call with this status has failed: the cause is in errno. Returns the status. */
hsort_status run_files_note(struct run_files *files, hsort_status status);

#endif
