/* Runs under SIGKILL: a child of this process makes runs and segments and is killed before its 1st, 2nd, ... call that changes a
 * file, and in the middle of a write, until it comes through. After each kill, the next call must find everything that the child was
 * told was made, and whatever else it finds must be whole.
 *
 * A loss of power cannot be tried. What can be tried: when a line of a journal is written, nothing that the line speaks of may still be
 * on its way to the disk. */
#include <sys/mman.h>
#include "src/checkpoint/run_notes.h"
#include "tests/checkpoint/runs.h"
#include "tests/checkpoint/killed_calls.h"

static const struct shape small_shape = {.elements = 100, .part_elements = 30, .fence_elements = 8};

/* ---- What is not on disk yet --------------------------------------------------------------------------- */

static ino_t dirty[64]; /* files and directories that were changed and not synced since */
static int dirty_count;
static int lines; /* of journals, that were written while it was watched */

static ino_t inode_of(int fd)
{
    struct stat facts;
    return fstat(fd, &facts) == 0 ? facts.st_ino : 0;
}

static void clean(int fd)
{
    const ino_t inode = inode_of(fd);
    for (int i = 0; i < dirty_count; i++)
        if (dirty[i] == inode)
            dirty[i--] = dirty[--dirty_count];
}

static void soil_inode(ino_t inode)
{
    for (int i = 0; i < dirty_count; i++)
        if (dirty[i] == inode)
            return;
    if (dirty_count < 64)
        dirty[dirty_count++] = inode;
}

static void soil(int fd)
{
    soil_inode(inode_of(fd));
}

/* The directory of a path. */
static void soil_names(const char *path)
{
    char name[PATH_MAX];
    struct stat facts;
    snprintf(name, sizeof name, "%s", path);
    *strrchr(name, '/') = '\0';
    if (stat(name, &facts) == 0)
        soil_inode(facts.st_ino);
}

/* Only journals are written so. */
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    pass();
    if (dies_here()) {
        if (__real_write(fd, bytes, size / 2) >= 0)
            raise(SIGKILL);
    }
    if (call_watch.changes) {
        CHECK(dirty_count == 0, "a line is written while %d files are not on disk", dirty_count);
        lines++;
        soil(fd);
    }
    return __real_write(fd, bytes, size);
}

CATCH(rmdir, (const char *path), (path))

/* ---- A sort that is killed ----------------------------------------------------------------------------- */

/* What the child was told to be made, as sets of parts; in memory that both share. */
struct made {
    uint64_t runs, segments;
};
static volatile struct made *made;

/* Go on with all that is not made. */
static void do_all(struct call *call)
{
    uint64_t random = seed;
    for (int64_t run = 0; run < 4; run++)
        if (!call->plan.runs[run].is_made) {
            CHECK(make_run(call, run, &random) == HSORT_OK, "%s", status_text());
            made->runs |= UINT64_C(1) << run;
        }
    CHECK(call->store->reopen(call->store->user) == HSORT_OK, "%s", self.error);
    for (int64_t segment = 0; segment < 4; segment++)
        if (!call->plan.segments[segment].is_made) {
            CHECK(make_segment(call, segment) == HSORT_OK, "%s", status_text());
            made->segments |= UINT64_C(1) << segment;
        }
}

/* A child does it all and is killed at its nth call; false if it came through. */
static bool kill_at(long nth, bool removes)
{
    char what[64];
    snprintf(what, sizeof what, "call %ld", nth);
    const pid_t child = fork();
    if (child == 0) {
        struct call call;
        begin_call(&self, &work, &small_shape, &call);
        calls_left = nth;
        CHECK(open_store(&call) == HSORT_OK, "%s", self.error);
        do_all(&call);
        if (removes)
            run_files_remove(&self, call.files);
        calls_left = 0;
        _exit(check_failures == 0 ? 0 : 1);
    }
    return was_killed(child, what);
}

/* What the next call finds is true, and enough; it can end the sort. */
static void check_after(long nth, bool removes)
{
    struct call call;
    char what[64];
    uint64_t runs = 0, segments = 0;
    snprintf(what, sizeof what, "killed at call %ld", nth);
    begin_and_open(&self, &work, &small_shape, &call);
    for (int64_t part = 0; part < 4; part++) {
        runs |= call.plan.runs[part].is_made << part;
        segments |= call.plan.segments[part].is_made << part;
    }
    check_found(&call, runs, segments, what);
    if (!removes)
        CHECK((runs & made->runs) == made->runs && (segments & made->segments) == made->segments,
              "%s: %llx and %llx are lost", what, (unsigned long long)(made->runs & ~runs),
              (unsigned long long)(made->segments & ~segments));
    do_all(&call);
    read_everywhere(&call);
    finish_call(&call);
    expect_end(&work);
}

/* The sort is new, or its second run is lost: then its line is there before it is made again. */
static void prepare(bool run_is_lost)
{
    struct call call;
    made->runs = made->segments = 0;
    if (!run_is_lost)
        return;
    begin_and_open(&self, &work, &small_shape, &call);
    uint64_t random = seed;
    for (int64_t run = 0; run < 3; run++)
        CHECK(make_run(&call, run, &random) == HSORT_OK, "%s", status_text());
    end_call(&call);
    CHECK(unlink(in_runs(NULL, "run-000001")) == 0, "unlink");
    made->runs = 5;
}

static void test_killed(bool run_is_lost, bool removes)
{
    long nth = 0;
    bool killed = true;
    while (killed) {
        prepare(run_is_lost);
        killed = kill_at(++nth, removes);
        check_after(nth, removes);
    }
    CHECK(nth > 40, "only %ld calls", nth);
}

static void test_order(void)
{
    struct call call;
    prepare(false);
    begin_and_open(&self, &work, &small_shape, &call);
    // Bytes of the output that a segment's line speaks of.
    CHECK(file_write(&call.out, 0, 4, "four keys of eight bytes, of a segment") == HSORT_OK, "%s",
          status_text());
    dirty_count = 0;
    soil(call.out.fd);
    uint64_t random = seed;
    call_watch.changes = soil;
    call_watch.syncs = clean;
    call_watch.renames = soil_names;
    CHECK(make_segment(&call, 0) == HSORT_OK && make_run(&call, 0, &random) == HSORT_OK, "%s", status_text());
    CHECK(lines == 2 && dirty_count == 0, "%d lines, %d files are not on disk", lines, dirty_count);
    // Of an output to which a result is dealt out.
    const struct run_note note = {.is_made = 1};
    soil(call.out.fd);
    CHECK(run_files_keep_dealt(call.files, 0, &note, &call.out, 1) == HSORT_OK, "%s", status_text());
    CHECK(lines == 3 && dirty_count == 0, "%d lines, %d files are not on disk", lines, dirty_count);
    finish_call(&call); // the output gets its name
    CHECK(dirty_count == 0, "%d files are not on disk in the end", dirty_count);
    memset(&call_watch, 0, sizeof call_watch);
    expect_end(&work);
}

static void test_all(void)
{
    draw_seed();
    work = make_work(HSORT_U64);
    put_input(&work, small_shape.elements);
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(made != MAP_FAILED, "mmap");
    CHECK(comm_open(MPI_COMM_SELF, &self) == HSORT_OK, "comm_open");
    test_order();
    test_killed(false, false);
    test_killed(true, false);
    test_killed(false, true);
    comm_close(&self);
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
