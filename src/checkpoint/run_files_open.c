/* Opening the store of runs. Rank 0 looks at what there is, and tells all ranks:
 *
 *      rank 0   RUNS, plans --- agree -- broadcast -- RUNS here? own journal --- agree -- journals, sizes, room --- agree -- facts
 *      rank r               --- agree --------------- RUNS here? own journal --- agree ---------------------------- agree -- facts
 *
 * Of several directories, the first that has a plan of this sort says how the sort is cut into parts; the others follow. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernels/base/fault.h"
#include "kernels/base/lesser.h"
#include "kernels/base/size_text.h"
#include "kernels/base/status.h"
#include "src/checkpoint/run_files_internal.h"
#include "src/files/file_internal.h"
#include "src/files/io_error.h"

enum {
    BLOCK_OF_DISK = 4096 /* a file takes whole blocks */
};

/* ---- Opening: rank 0 ----------------------------------------------------------------------------------- */

static struct written_plan describe_plan(const struct run_files *files, const struct run_plan *plan)
{
    char path[PATH_MAX];
    struct written_plan wanted;
    memset(&wanted, 0, sizeof wanted); // all of it is sent
    wanted.id = files->target.checkpoint->id;
    wanted.elements = plan->elements;
    wanted.element_bytes = (int64_t)plan->element_bytes;
    wanted.part_elements = plan->part_elements;
    wanted.fence_elements = plan->fence_elements;
    if (realpath(files->target.checkpoint->directory, path) && !strchr(path, '\n'))
        snprintf(wanted.checkpoint, sizeof wanted.checkpoint, "%s", path);
    return wanted;
}

/* Find RUNS and what an earlier call has planned, with parts of at most `most` elements, or begin. *plan is then the plan
 * that holds. */
static hsort_status find_or_begin_runs(struct run_files *files, int64_t most, struct written_plan *plan)
{
    const int count = files->target.temporary_count;
    struct run_directory *directory = files->directory;
    const struct run_directory *found = NULL;
    if (plan->elements < 0 || plan->element_bytes <= 0 || plan->part_elements <= 0 ||
        plan->fence_elements <= 0)
        return status_fail(HSORT_INTERNAL, "%s: no plan for runs", files->where);
    for (int i = 0; i < count; i++) {
        TRY(run_directory_find(&directory[i], plan));
        found = !found && directory[i].has_plan ? &directory[i] : found;
    }
    files->began = !found;
    if (found && found->plan.part_elements > most)
        return status_fail(HSORT_HOST_MEMORY,
                           "%s: its runs have %" PRId64 " elements, %" PRId64
                           " bytes, and there is memory for %" PRId64
                           " elements: give more (-S), or remove it to begin anew",
                           found->path, found->plan.part_elements,
                           found->plan.part_elements * found->plan.element_bytes, most);
    if (found)
        *plan = found->plan;
    for (int i = 0; i < count; i++)
        if (!directory[i].has_plan || directory[i].plan.part_elements != plan->part_elements ||
            directory[i].plan.fence_elements != plan->fence_elements)
            TRY(run_directory_begin(&directory[i], plan));
    return HSORT_OK;
}

hsort_status run_files_identify(const struct file_out *out, uint64_t *words)
{
    struct statx facts;
    memset(&facts, 0, sizeof facts);
    if (statx(out->fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &facts) != 0)
        return io_fail(out->temporary, "cannot be looked at");
    const bool dated = facts.stx_mask & STATX_BTIME;
    words[0] = facts.stx_ino;
    words[1] = dated ? (uint64_t)facts.stx_btime.tv_sec : 0;
    words[2] = dated ? facts.stx_btime.tv_nsec : 0;
    return HSORT_OK;
}

/* *seeds = checksum seeds of lines; those of segments say what file the output is, after `lost` other outputs. */
static hsort_status describe_output(const struct run_files *files, const struct written_plan *plan,
                                    int64_t lost, struct line_seeds *seeds)
{
    uint64_t words[1 + RUN_OUTPUT_WORDS] = {(uint64_t)lost};
    TRY(run_files_identify(files->target.out, words + 1));
    *seeds = line_seeds_make(plan, words, sizeof words / sizeof *words);
    return HSORT_OK;
}

/* A run stays if it is made and `directory` is where it belongs. */
struct staying {
    const struct run_files *files;
    const struct run_directory *directory;
};

static bool run_stays(void *user, int64_t run)
{
    const struct staying *here = user;
    const struct run_files *files = here->files;
    if (run >= files->plan.parts || !files->plan.runs[run].is_made)
        return false;
    const struct run_directory *there = &files->directory[files->place[run]];
    return there->device == here->directory->device && there->inode == here->directory->inode;
}

/* *whole = the file of a run lies whole in the directory that is its place. Errors HSORT_IO: that cannot be seen. */
static hsort_status see_run(const struct run_files *files, int64_t run, bool *whole)
{
    char path[PATH_MAX];
    struct stat facts;
    run_file_name(files, run, true, path);
    const bool seen = !io_fault(FAULT_READ, EIO) && lstat(path, &facts) == 0;
    *whole = seen && S_ISREG(facts.st_mode) && facts.st_size == plan_run_bytes(&files->plan, run);
    return seen || errno == ENOENT ? HSORT_OK : io_fail(path, "cannot be looked at");
}

/* Compare the plan with the files. A run whose file is gone or cut is made again. Files of runs that are not made, that are not whole, or
 * that do not lie in the place of their run are removed, so that they take no room. A run that is made has its place where it is found:
 * a user who resumes with one more directory, or names the directories in another order, loses no run. */
static hsort_status hold_against_files(struct run_files *files)
{
    const int count = files->target.temporary_count;
    for (int64_t i = 0; i < files->plan.parts; i++) {
        const int usual = files->place[i];
        bool whole = false;
        if (!files->plan.runs[i].is_made)
            continue;
        for (int tried = 0; tried < count && !whole; tried++) {
            files->place[i] = (usual + tried) % count;
            TRY(see_run(files, i, &whole));
        }
        if (whole)
            continue;
        files->place[i] = usual;
        files->plan.runs[i] = (struct run_facts){.is_made = 0};
    }
    for (int i = 0; i < count; i++) {
        struct staying here = {files, &files->directory[i]};
        run_directory_clean(files->directory[i].path, run_stays, &here);
    }
    return HSORT_OK;
}

/* The output is not the one whose segments the journals have. Say so in the journal of rank 0, which is open: that outlasts this
 * call, after which the new output may be found again. */
static hsort_status lose_segments(struct run_files *files, const struct written_plan *plan, int64_t lost)
{
    const struct run_line line = {.kind = OUTPUT_LINE, .number = lost};
    for (int64_t i = 0; i < files->plan.parts; i++)
        files->plan.segments[i] = (struct run_facts){.is_made = 0};
    TRY(run_files_note(files, run_journal_add(&files->journal, &line, &files->seeds)));
    return describe_output(files, plan, lost, &files->seeds);
}

static bool has_segments(const struct run_plan *plan)
{
    for (int64_t i = 0; i < plan->parts; i++)
        if (plan->segments[i].is_made)
            return true;
    return false;
}

/* Find out what is made, from journals and files. */
static hsort_status find_made(struct run_files *files, const struct written_plan *plan)
{
    char *text;
    size_t bytes;
    TRY(run_journals_read(files->target.checkpoint->directory, &text, &bytes));
    hsort_status status =
        describe_output(files, plan, 0, &files->seeds); // the seed of runs is the same for any output
    const int64_t lost = run_journals_last(text, bytes, &files->seeds, OUTPUT_LINE);
    if (status == HSORT_OK)
        status = describe_output(files, plan, lost, &files->seeds);
    if (status == HSORT_OK)
        run_journals_apply(text, bytes, &files->seeds, &files->plan);
    free(text);
    if (status == HSORT_OK && !files->target.kept && has_segments(&files->plan))
        status = lose_segments(files, plan, lost + 1);
    return status == HSORT_OK ? hold_against_files(files) : status;
}

static hsort_status fail_limit(const struct run_files *files, int64_t bytes)
{
    char takes[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES], enough[SIZE_TEXT_BYTES];
    return status_fail(
        HSORT_IO,
        "%s: the runs of this sort, and what else it keeps there, take %s, --temp-limit is %s: "
        "%s would do",
        files->where, size_text((uint64_t)bytes, takes),
        size_text((uint64_t)files->target.temporary_limit, limit), size_option_text((uint64_t)bytes, enough));
}

/* Is there room for the runs that are to be made? */
static hsort_status check_room(const struct run_files *files)
{
    const struct run_plan *plan = &files->plan;
    int64_t needed[files->target.temporary_count], all = files->target.other_bytes;
    bool ends = true; // all segments are made, so no run is needed any more
    memset(needed, 0, sizeof needed);
    for (int64_t i = 0; i < plan->parts; i++) {
        const int64_t bytes = plan_run_bytes(plan, i);
        ends = ends && plan->segments[i].is_made;
        all += bytes;
        if (!plan->runs[i].is_made)
            needed[files->place[i]] += divide_up(bytes, BLOCK_OF_DISK) * BLOCK_OF_DISK;
    }
    if (ends)
        return HSORT_OK;
    if (files->target.temporary_limit > 0 && all > files->target.temporary_limit)
        return fail_limit(files, all);
    return run_directories_check_space(files->directory, files->target.temporary_count, needed);
}

/* Let this process have all runs open at once, if it may; else fewer. */
static void allow_open_runs(struct run_files *files)
{
    struct rlimit limit;
    const rlim_t others = (rlim_t)file_descriptors_taken(),
                 wanted = 2 * (rlim_t)files->plan.parts +
                          (rlim_t)greater((int64_t)others, FILE_DESCRIPTORS_BESIDE);
    files->open_most = INT_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted)
        files->open_most = limit.rlim_cur > others + 2 ? (int)((limit.rlim_cur - others) / 2) : 1;
}

/* ---- Opening: all ranks -------------------------------------------------------------------------------- */

/* Take over the plan as it is written, and make room for what follows from it. */
static hsort_status take_plan(struct run_files *files, const struct written_plan *written)
{
    struct run_plan *plan = &files->plan;
    files->written = *written;
    *plan = (struct run_plan){.elements = written->elements,
                              .element_bytes = (size_t)written->element_bytes,
                              .part_elements = written->part_elements,
                              .fence_elements = written->fence_elements};
    const int64_t parts = divide_up(written->elements, written->part_elements);
    plan->runs = fault_hit(FAULT_ALLOC) ? NULL : calloc(2 * (size_t)parts + 1, sizeof *plan->runs);
    files->run = calloc((size_t)parts + 1, sizeof *files->run);
    files->place = calloc((size_t)parts + 1, sizeof *files->place);
    if (!plan->runs || !files->run || !files->place)
        return status_fail(HSORT_HOST_MEMORY, "no memory for %" PRId64 " runs in %s", parts, files->where);
    plan->parts = parts;
    plan->segments = plan->runs + parts;
    for (int64_t i = 0; i < parts; i++) {
        files->run[i].fd = -1;
        files->place[i] = (int)(i % files->target.temporary_count);
    }
    allow_open_runs(files);
    return HSORT_OK;
}

hsort_status run_files_share(struct comm *comm, hsort_status before, void *words, int64_t count,
                             MPI_Datatype type, size_t bytes)
{
    enum { WORDS_ONCE = 1 << 20 };
    hsort_status status = before;
    for (int64_t at = 0; at < count; at += WORDS_ONCE) {
        const int many = count - at < WORDS_ONCE ? (int)(count - at) : WORDS_ONCE;
        const hsort_status sent = comm_check(
            MPI_Bcast((char *)words + (size_t)at * bytes, many, type, 0, comm->world), "MPI_Bcast", false);
        status = status == HSORT_OK ? sent : status;
    }
    return status;
}

/* Rank 0 tells what it has found. Collective; the caller agrees on the status. */
static hsort_status share_facts(struct run_files *files)
{
    struct run_plan *plan = &files->plan;
    enum { SEED_WORDS = sizeof files->seeds / sizeof(uint64_t) };
    hsort_status status = run_files_share(files->comm, HSORT_OK, plan->runs,
                                          2 * plan->parts * RUN_FACTS_WORDS, MPI_UINT64_T, sizeof(uint64_t));
    status = run_files_share(files->comm, status, files->place, plan->parts, MPI_INT, sizeof(int));
    status = run_files_share(files->comm, status, &files->seeds, SEED_WORDS, MPI_UINT64_T, sizeof(uint64_t));
    for (int64_t i = 0; i < plan->parts; i++)
        files->run[i].made = plan->runs[i].is_made;
    return status;
}

/* Do everything except what follows a failure. Collective. */
static hsort_status open_together(struct run_files *files, const struct run_plan *plan)
{
    struct comm *comm = files->comm;
    const char *directory = files->target.checkpoint->directory;
    struct written_plan told = describe_plan(files, plan);
    hsort_status status = comm->rank == 0
                              ? run_files_note(files, find_or_begin_runs(files, plan->most_elements, &told))
                              : HSORT_OK;
    if (comm->rank == 0 && status == HSORT_OK && !files->target.checkpoint->found)
        run_journals_remove(directory); // they are of a sort whose manifest is gone
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;

    status = comm_check(MPI_Bcast(&told, sizeof told, MPI_BYTE, 0, comm->world), "MPI_Bcast", false);
    for (int i = 0; i < files->target.temporary_count && status == HSORT_OK; i++)
        status = run_directory_see(files->directory[i].path, &told);
    if (status == HSORT_OK)
        status = take_plan(files, &told);
    if (status == HSORT_OK)
        status = run_files_note(files, run_journal_open(directory, comm->rank, &files->journal));
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;

    if (comm->rank == 0) { // now that all journals are there
        status = run_files_note(files, run_names_sync(files->journal.path));
        if (status == HSORT_OK)
            status = find_made(files, &told);
        if (status == HSORT_OK)
            status = check_room(files);
    }
    status = comm_agree(comm, status);
    if (status != HSORT_OK)
        return status;
    return comm_agree(comm, share_facts(files));
}

static void count_kept(struct run_files *files)
{
    const struct run_plan *plan = &files->plan;
    files->kept = (struct run_files_kept){.runs = 0};
    for (int64_t i = 0; i < plan->parts; i++) {
        if (plan->runs[i].is_made) {
            files->kept.runs++;
            files->kept.run_bytes += plan_run_bytes(plan, i);
        }
        if (plan->segments[i].is_made) {
            files->kept.segments++;
            files->kept.segment_bytes += plan_part_count(plan, i) * (int64_t)plan->element_bytes;
        }
    }
}

hsort_status run_files_open_store(void *user, struct run_plan *plan)
{
    struct run_files *files = user;
    run_files_forget(files);
    files->began = files->journal.made = false;
    for (int i = 0; i < files->target.temporary_count; i++)
        files->directory[i].made = false;
    plan->runs = plan->segments = NULL;
    files->error[0] = '\0';
    const hsort_status status = run_files_keep_error(files, open_together(files, plan));
    files->is_open = status == HSORT_OK;
    if (files->is_open) {
        count_kept(files);
        *plan = files->plan;
        return HSORT_OK;
    }
    // What this call began in vain is removed; what an earlier call has made stays.
    if (files->journal.made)
        unlink(files->journal.path);
    for (int i = 0; i < files->target.temporary_count && files->comm->rank == 0; i++) {
        if (files->began)
            run_directory_remove(&files->directory[i], files->target.checkpoint->id);
        if (files->directory[i].made)
            rmdir(files->directory[i].path); // if it is empty
    }
    return status;
}
