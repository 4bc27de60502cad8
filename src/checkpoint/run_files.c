/* The store of runs (run_store.h). Each rank makes its runs at its own pace; run_files_open.c opens the store.
 *
 * All runs may be read at the same time, and each open run takes two descriptors (block_io.h). If the process may not have that
 * many, the run that nobody has read for the longest time is closed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "kernels/base/status.h"
#include "src/checkpoint/run_files_internal.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"

void run_file_name(const struct run_files *files, int64_t run, bool whole, char *path)
{
    run_directory_name_run(files->directory[files->place[run]].path, run, whole, path);
}

/* ---- Runs that are open -------------------------------------------------------------------------------- */

hsort_status run_files_note(struct run_files *files, hsort_status status)
{
    if (status == HSORT_IO && (errno == ENOSPC || errno == EDQUOT))
        atomic_store(&files->full, true);
    return status;
}

static void close_run(struct run_files *files, struct run_file *run)
{
    if (run->blocks)
        files->open_runs--;
    block_close(run->blocks);
    if (run->fd >= 0)
        close(run->fd);
    free(run->path);
    run->blocks = NULL;
    run->fd = -1;
    run->path = NULL;
    run->writes = false;
}

/* Does the file that this rank writes still have its name? A rank of a killed start may live on for seconds. If the same command is
 * started meanwhile, the name soon belongs to a file that the new start writes. */
static bool has_its_name(const struct run_file *run)
{
    struct stat own, there;
    return fstat(run->fd, &own) == 0 && lstat(run->path, &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

/* Of the runs that nobody reads now, close the one that was last read the longest time ago. False: there is none. */
static bool close_oldest(struct run_files *files)
{
    struct run_file *oldest = NULL;
    for (int64_t i = 0; i < files->plan.parts; i++) {
        struct run_file *run = &files->run[i];
        if (run->blocks && !run->writes && run->users == 0 && (!oldest || run->used < oldest->used))
            oldest = run;
    }
    if (oldest)
        close_run(files, oldest);
    return oldest != NULL;
}

static hsort_status keep_path(struct run_file *run, const char *path)
{
    run->path = fault_hit(FAULT_ALLOC) ? NULL : strdup(path);
    return run->path ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", path);
}

/* Open the run's file, which must have the right size. */
static hsort_status open_whole(const struct run_files *files, int64_t number, struct run_file *run)
{
    const int64_t bytes = plan_run_bytes(&files->plan, number);
    char path[PATH_MAX];
    struct stat facts;
    run_file_name(files, number, true, path);
    TRY(keep_path(run, path));
    TRY(file_open_regular(path, false, &run->fd, &facts));
    if (facts.st_size != bytes)
        return status_fail(HSORT_IO,
                           "%s: has %" PRId64 " bytes, not %" PRId64 ": was changed since it was made", path,
                           (int64_t)facts.st_size, bytes);
    return block_open_input(run->path, run->fd, files->target.direct_io, 0, bytes, &run->blocks);
}

/* Open a run for reading, unless it is open, and keep it open until release_run(). */
static hsort_status acquire_run(struct run_files *files, int64_t number, struct run_file **found)
{
    struct run_file *run = *found = &files->run[number];
    hsort_status status = HSORT_OK;
    pthread_mutex_lock(&files->lock);
    if (run->writes) {
        status = status_fail(HSORT_INTERNAL, "run %" PRId64 " is read while it is written", number);
    } else if (!run->blocks) {
        while (files->open_runs >= files->open_most && close_oldest(files))
            ;
        status = open_whole(files, number, run);
        if (status == HSORT_OK)
            files->open_runs++;
        else
            close_run(files, run);
    }
    if (status == HSORT_OK) {
        run->users++;
        run->used = ++files->clock;
    }
    pthread_mutex_unlock(&files->lock);
    return status;
}

static void release_run(struct run_files *files, struct run_file *run)
{
    pthread_mutex_lock(&files->lock);
    run->users--;
    pthread_mutex_unlock(&files->lock);
}

/* ---- Making runs --------------------------------------------------------------------------------------- */

static hsort_status check_number(const struct run_files *files, int64_t part)
{
    return file_range_check(files->where, files->plan.parts, part, 1);
}

/* Create the file of a run, of full size, under the name that it has until it is whole. With its final name, a run that is made
 * again after it was lost, and that still has a line in a journal, would be taken for made if this call were killed now. */
static hsort_status create_run(struct run_files *files, int64_t number, struct run_file *run)
{
    const int64_t bytes = plan_run_bytes(&files->plan, number);
    char path[PATH_MAX];
    run_file_name(files, number, true, path);
    unlink(path); // if the run is made again, the old file must take no room meanwhile
    run_file_name(files, number, false, path);
    TRY(keep_path(run, path));
    unlink(path); // what a killed run has left, or a link, which is never followed
    run->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (run->fd < 0)
        return io_fail(path, "cannot create");
    if (io_fault(FAULT_WRITE, ENOSPC))
        return status_fail(HSORT_IO, "%s: cannot reserve %" PRId64 " bytes: %s", path, bytes,
                           strerror(ENOSPC));
    TRY(file_reserve(path, run->fd, bytes));
    return block_open_output(run->path, run->fd, files->target.direct_io, &run->blocks);
}

static hsort_status begin_run(void *user, int64_t number)
{
    struct run_files *files = user;
    TRY(check_number(files, number));
    struct run_file *run = &files->run[number];
    pthread_mutex_lock(&files->lock);
    close_run(files, run);
    run->made = false;
    hsort_status status = run_files_note(files, create_run(files, number, run));
    if (status == HSORT_OK) {
        run->writes = true;
        files->open_runs++;
    } else {
        if (run->fd >= 0)
            unlink(run->path);
        close_run(files, run);
    }
    pthread_mutex_unlock(&files->lock);
    return status;
}

static hsort_status write_run(void *user, int64_t number, int64_t at, size_t bytes, const void *from)
{
    struct run_files *files = user;
    TRY(check_number(files, number));
    struct run_file *run = &files->run[number];
    if (!run->writes)
        return status_fail(HSORT_INTERNAL, "run %" PRId64 " is written before it is begun", number);
    TRY(file_range_check(run->path, plan_run_bytes(&files->plan, number), at, (int64_t)bytes));
    const hsort_status status = block_write(run->blocks, at, bytes, from);
    if (block_was_full(run->blocks))
        atomic_store(&files->full, true);
    return status;
}

/* Add a line for a part that is on disk. One thread at a time. */
static hsort_status note_part(struct run_files *files, enum run_line_kind kind, int64_t number,
                              const struct run_facts *facts)
{
    struct run_line line = {.kind = kind, .number = number, .facts = *facts};
    line.facts.is_made = 1;
    if (facts->count != (uint64_t)plan_part_count(&files->plan, number))
        return status_fail(HSORT_INTERNAL, "part %" PRId64 " has %" PRIu64 " elements", number, facts->count);
    pthread_mutex_lock(&files->lock);
    const hsort_status status = run_files_note(files, run_journal_add(&files->journal, &line, &files->seeds));
    if (status == HSORT_OK && kind == RUN_LINE)
        files->run[number].made = true;
    pthread_mutex_unlock(&files->lock);
    return status;
}

/* Bring a run to disk and give it its name, for good. */
static hsort_status name_whole_run(struct run_files *files, int64_t number)
{
    const struct run_file *run = &files->run[number];
    char path[PATH_MAX];
    run_file_name(files, number, true, path);
    TRY(file_sync(run->path, run->fd));
    TRY(run_directory_check(files->directory[files->place[number]].path, &files->written));
    if (!has_its_name(run))
        return status_fail(HSORT_IO, "%s: was removed or replaced: was the same command started again?",
                           run->path);
    if (io_fault(FAULT_COMMIT, EIO) || rename(run->path, path) != 0)
        return io_fail(path, "cannot be given its name");
    return run_names_sync(path);
}

static hsort_status end_run(void *user, int64_t number, const struct run_facts *facts)
{
    struct run_files *files = user;
    TRY(check_number(files, number));
    struct run_file *run = &files->run[number];
    if (!run->writes)
        return status_fail(HSORT_INTERNAL, "run %" PRId64 " ends before it is begun", number);
    TRY(run_files_note(files, name_whole_run(files, number)));
    pthread_mutex_lock(&files->lock);
    close_run(files, run);
    pthread_mutex_unlock(&files->lock);
    return note_part(files, RUN_LINE, number, facts);
}

static hsort_status end_segment(void *user, int64_t segment, const struct run_facts *facts)
{
    struct run_files *files = user;
    TRY(check_number(files, segment));
    TRY(run_files_note(files, file_sync(files->target.out->temporary, files->target.out->fd)));
    return note_part(files, SEGMENT_LINE, segment, facts);
}

/* ---- Reading runs -------------------------------------------------------------------------------------- */

static hsort_status read_run(void *user, int64_t number, int64_t at, size_t bytes, void *to)
{
    struct run_files *files = user;
    struct run_file *run;
    TRY(check_number(files, number));
    TRY(file_range_check(files->where, plan_run_bytes(&files->plan, number), at, (int64_t)bytes));
    TRY(acquire_run(files, number, &run));
    const hsort_status status = block_read(run->blocks, at, bytes, to);
    release_run(files, run);
    return status;
}

static size_t run_lead(void *user, int64_t at)
{
    (void)user; // a run begins where its file does
    return (size_t)(at % FILE_CHUNK_BYTES);
}

static hsort_status reopen_runs(void *user)
{
    struct run_files *files = user;
    hsort_status status = HSORT_OK;
    for (int i = 0; i < files->target.temporary_count && status == HSORT_OK; i++)
        status = run_directory_check(files->directory[i].path, &files->written);
    for (int64_t i = 0; i < files->plan.parts && status == HSORT_OK; i++) {
        struct run_file *run;
        status = acquire_run(files, i, &run);
        if (status == HSORT_OK) {
            release_run(files, run);
            run->made = true;
        }
    }
    return run_files_keep_error(files, comm_agree(files->comm, status));
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

void run_files_forget(struct run_files *files)
{
    for (int64_t i = 0; i < files->plan.parts; i++) {
        if (files->run[i].writes && has_its_name(&files->run[i]))
            unlink(files->run[i].path); // half a run is of no use
        close_run(files, &files->run[i]);
    }
    free(files->plan.runs);
    free(files->run);
    free(files->place);
    run_journal_close(&files->journal);
    files->plan = (struct run_plan){.runs = NULL};
    files->run = NULL;
    files->place = NULL;
}

/* Join the names of the directories: "a", "a and b", "a, b and c". */
static hsort_status name_directories(struct run_files *files)
{
    const int count = files->target.temporary_count;
    const size_t room = (size_t)count * (PATH_MAX + 8);
    size_t length = 0;
    files->where = malloc(room);
    if (!files->where)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for the names of its runs",
                           files->target.output);
    for (int i = 0; i < count; i++) {
        TRY(run_files_name(files->target.temporary[i], files->target.output, files->directory[i].path));
        length += (size_t)snprintf(files->where + length, room - length, "%s%s",
                                   i == 0           ? ""
                                   : i == count - 1 ? " and "
                                                    : ", ",
                                   files->directory[i].path);
    }
    return HSORT_OK;
}

hsort_status run_files_open(struct comm *comm, const struct run_files_target *target,
                            struct run_files **files)
{
    struct run_files *opened = *files = fault_hit(FAULT_ALLOC) ? NULL : calloc(1, sizeof *opened);
    if (!opened)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its runs", target->output);
    opened->comm = comm;
    opened->target = *target;
    opened->journal.fd = -1;
    opened->store =
        (struct run_store){.user = opened,
                           .open = run_files_open_store,
                           .begin_run = begin_run,
                           .write_run = write_run,
                           .end_run = end_run,
                           .read_run = read_run,
                           .lead = run_lead,
                           .reopen = reopen_runs,
                           .end_segment = end_segment};
    pthread_mutex_init(&opened->lock, NULL);
    opened->directory = calloc((size_t)target->temporary_count, sizeof *opened->directory);
    const hsort_status status =
        opened->directory ? name_directories(opened)
                          : status_fail(HSORT_HOST_MEMORY, "%s: no memory for its runs", target->output);
    if (status != HSORT_OK) {
        run_files_close(opened);
        *files = NULL;
    }
    return status;
}

struct run_store *run_files_store(struct run_files *files)
{
    return &files->store;
}

int64_t run_files_bytes(const struct run_files *files)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < files->plan.parts; i++)
        bytes += files->run[i].made ? plan_run_bytes(&files->plan, i) : 0;
    return bytes;
}

bool run_files_are_open(const struct run_files *files)
{
    return files->is_open;
}

bool run_files_disk_is_full(const struct run_files *files)
{
    return atomic_load(&files->full) || block_was_full(files->target.out->blocks);
}

const struct run_files_kept *run_files_kept(const struct run_files *files)
{
    return &files->kept;
}

hsort_status run_files_keep_error(struct run_files *files, hsort_status agreed)
{
    if (agreed != HSORT_OK)
        snprintf(files->error, sizeof files->error, "%s", files->comm->error);
    return agreed;
}

const char *run_files_error(const struct run_files *files)
{
    return files->error;
}

const char *run_files_where(const struct run_files *files)
{
    return files->where;
}

void run_files_remove(struct comm *comm, struct run_files *files)
{
    run_files_forget(files);
    (void)comm_agree(comm, HSORT_OK); // nobody has a run open any more
    for (int i = 0; i < files->target.temporary_count && comm->rank == 0; i++)
        run_directory_remove(&files->directory[i], files->target.checkpoint->id);
    if (comm->rank == 0)
        run_journals_remove(files->target.checkpoint->directory);
    (void)comm_agree(comm, HSORT_OK);
}

void run_files_close(struct run_files *files)
{
    if (!files)
        return;
    run_files_forget(files);
    pthread_mutex_destroy(&files->lock);
    free(files->directory);
    free(files->where);
    free(files);
}
