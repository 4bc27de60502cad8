/* The runs of a sort as files: what some ranks write, all ranks read; and what one call has made, the next one finds, on other ranks
 * and in other directories. */
#include <fnmatch.h>
#include <pthread.h>
#include <sys/resource.h>
#include "tests/checkpoint/runs.h"

/* One call makes all. */
static void test_whole(hsort_choice direct)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    shape.direct_io = direct;
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(call.plan.parts == 7, "%lld parts", (long long)call.plan.parts);
    check_found(&call, 0, 0, "at first");
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 7), "runs");
    read_everywhere(&call);
    CHECK(run_files_bytes(call.files) == (10007 + 6 * 24 + 16) * 8, "%lld bytes",
          (long long)run_files_bytes(call.files));
    expect_team(&comm, HSORT_OK, make_segments(&call, 0, 7), "segments");
    CHECK(!run_files_disk_is_full(call.files), "full");
    CHECK(call.store->lead(call.store->user, 5 + 3 * (int64_t)FILE_CHUNK_BYTES) == 5, "lead");
    finish_call(&call);
    expect_end(&work);
}

/* Several calls, each on other ranks, each goes on where the one before has ended. */
static void test_resume(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    struct comm team;
    MPI_Comm few;
    put_input(&work, shape.elements);
    for (int step = 0; step < 4; step++) {
        const int ranks = step % 2 == 0 ? comm.size : (comm.size + 1) / 2;
        MPI_Barrier(comm.world);
        MPI_Comm_split(comm.world, comm.rank < ranks ? 0 : MPI_UNDEFINED, comm.rank, &few);
        if (few == MPI_COMM_NULL)
            continue;
        CHECK(comm_open(few, &team) == HSORT_OK, "comm_open");
        begin_call(&team, &work, &shape, &call);
        call.plan.part_elements += step; // more memory changes nothing
        expect_team(&team, HSORT_OK, open_store(&call), "open");
        CHECK(call.plan.part_elements == 1500 && call.plan.parts == 7, "the parts are others");
        check_found(&call, FIRST(2 * step), FIRST(step), "later");
        expect_team(&team, HSORT_OK, make_runs(&call, 2 * step, step == 3 ? 7 : 2 * step + 2), "runs");
        expect_team(&team, HSORT_OK, make_segments(&call, step, step + 1), "segments");
        if (step == 3) {
            read_everywhere(&call);
            finish_call(&call);
        } else {
            end_call(&call);
        }
        comm_close(&team);
        MPI_Comm_free(&few);
    }
    expect_end(&work);
}

/* Half a run, and one that is made again, over the first. */
static void test_again(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    uint64_t random = seed;
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 3), "runs");
    if (comm.rank == 0) {
        CHECK(make_run(&call, 1, &random) == HSORT_OK, "again: %s", status_text());
        CHECK(call.store->begin_run(call.store->user, 5) == HSORT_OK, "begin: %s", status_text());
        CHECK(call.store->begin_run(call.store->user, 5) == HSORT_OK, "begin again: %s", status_text());
        CHECK(write_pieces(&call, 5, &random) == HSORT_OK, "write: %s", status_text());
    }
    // Numbers and bytes that are none.
    CHECK(call.store->begin_run(call.store->user, 7) == HSORT_INTERNAL, "run 7 of 7");
    status_clear();
    CHECK(call.store->write_run(call.store->user, 6, 0, 1, "x") == HSORT_INTERNAL, "not begun");
    status_clear();
    end_call(&call);
    CHECK(count_names(in_runs(NULL, "")) == 4, "half a run stays"); // a plan and three runs
    MPI_Barrier(comm.world);
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(3), 0, "again");
    expect_team(&comm, HSORT_OK, make_runs(&call, 3, 7), "runs");
    read_everywhere(&call);
    char byte;
    CHECK(call.store->read_run(call.store->user, 6, run_size(&call.plan, 6), 1, &byte) == HSORT_INTERNAL,
          "too far");
    status_clear();
    finish_call(&call);
    expect_end(&work);
}

/* A run of which another start has taken the name, while a rank of this one was thought to be killed: it is the other's to end. */
static void test_replaced(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    uint64_t random = seed;
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, &call);
    for (int64_t run = 1; run < 3 && comm.rank == 0; run++) {
        const struct run_facts facts = make_facts(&call.plan, run, false);
        CHECK(call.store->begin_run(call.store->user, run) == HSORT_OK, "begin: %s", status_text());
        CHECK(write_pieces(&call, run, &random) == HSORT_OK, "write: %s", status_text());
        const char *part = in_runs(NULL, run == 1 ? "run-000001.part" : "run-000002.part");
        CHECK(unlink(part) == 0 && (run == 1 || mkfifo(part, 0600) == 0), "another of that name");
        const hsort_status status = call.store->end_run(call.store->user, run, &facts);
        CHECK(status == HSORT_IO && strstr(status_text(), ".part: was removed or replaced"), "end: %s",
              status_text());
        status_clear();
    }
    end_call(&call);
    CHECK(count_names(in_runs(NULL, "")) == 2, "the other's run was taken"); // and a plan
    MPI_Barrier(comm.world);
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, 0, 0, "after another start");
    finish_call(&call);
    expect_end(&work);
}

/* ---- Directories --------------------------------------------------------------------------------------- */

static void make_directory(const char *name)
{
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || mkdir(in_dir(name), 0777) == 0, "mkdir %s", name);
    MPI_Barrier(comm.world);
}

/* Runs lie in two directories; who goes on with three, in another order, loses none. */
static void test_directories(void)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    put_input(&work, shape.elements);
    make_directory("a");
    make_directory("b");
    make_directory("c");
    shape.temporary[0] = in_dir("a");
    shape.temporary[1] = in_dir("b/");
    shape.temporary_count = 2;
    begin_and_open(&comm, &work, &shape, &call);
    char where[2 * PATH_MAX];
    snprintf(where, sizeof where, "%s and %s", in_runs("a", ""), in_runs("b", ""));
    CHECK(strcmp(run_files_where(call.files), where) == 0, "where: %s", run_files_where(call.files));
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 4), "runs");
    CHECK(access(in_runs("a", "run-000002"), F_OK) == 0 && access(in_runs("b", "run-000003"), F_OK) == 0,
          "runs lie elsewhere");
    end_call(&call);

    // A third one alone is given other parts, which do not count beside the first two.
    shape.temporary[0] = in_dir("c");
    shape.temporary_count = 1;
    shape.part_elements = 1400;
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 4, 5), "runs");
    end_call(&call);

    shape.part_elements = 1500;
    shape.temporary[0] = in_dir("b");
    shape.temporary[1] = in_dir("c");
    shape.temporary[2] = in_dir("a/../a"); // the same, by another name
    shape.temporary_count = 3;
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(4), 0, "in another order");
    expect_team(&comm, HSORT_OK, make_runs(&call, 4, 7), "runs");
    read_everywhere(&call);
    CHECK(access(in_runs("c", "run-000004"), F_OK) == 0, "the new directory has no run");
    finish_call(&call);

    shape.temporary[1] = shape.temporary[0];
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 7), "runs");
    end_call(&call);
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(7), 0, "one directory twice");
    finish_call(&call);
    CHECK(count_names(in_dir("a")) + count_names(in_dir("b")) + count_names(in_dir("c")) == 0, "names stay");
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || (rmdir(in_dir("a")) == 0 && rmdir(in_dir("b")) == 0 && rmdir(in_dir("c")) == 0),
          "rmdir");
    expect_end(&work);
}

/* A directory that cannot be made is an error; runs in the next one stay. */
static void test_no_directory(void)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    put_input(&work, shape.elements);
    make_directory("a");
    shape.temporary[0] = in_dir("a");
    shape.temporary_count = 1;
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 4), "runs");
    end_call(&call);
    shape.temporary[0] = in_dir("none");
    shape.temporary[1] = in_dir("a");
    shape.temporary_count = 2;
    begin_call(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_IO, open_store(&call), runs_text("none", ": cannot be made: No such file"));
    end_call(&call);
    shape.temporary[0] = shape.temporary[1];
    shape.temporary_count = 1;
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(4), 0, "after a refusal");
    finish_call(&call);
    CHECK(comm.rank != 0 || rmdir(in_dir("a")) == 0, "rmdir");
    expect_end(&work);
}

/* Checkpoint and runs in one directory, as of who names none. */
static void test_one_directory(void)
{
    struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    snprintf(work.directory, sizeof work.directory, "%.255s", in_runs(NULL, ""));
    CHECK(comm.rank != 0 || rmdir(in_dir("checkpoint")) == 0, "rmdir");
    put_input(&work, shape.elements);
    for (int step = 0; step < 3; step++) {
        begin_and_open(&comm, &work, &shape, &call);
        check_found(&call, FIRST(2 * step), FIRST(step), "in one directory");
        expect_team(&comm, HSORT_OK, make_runs(&call, 2 * step, 2 * step + 2), "runs");
        expect_team(&comm, HSORT_OK, make_segments(&call, step, step + 1), "segments");
        if (step < 2)
            end_call(&call);
    }
    finish_call(&call);
    expect_end(&work);
    CHECK(comm.rank != 0 || rmdir(work.directory) == 0, "rmdir");
}

static void check_name(const char *temporary, const char *output, const char *wanted)
{
    char name[PATH_MAX] = "";
    const hsort_status status = run_files_name(temporary, output, name);
    CHECK(status == (wanted ? HSORT_OK : HSORT_IO), "%.40s: %d", output, status);
    CHECK(wanted ? fnmatch(wanted, name, 0) == 0 : !strchr(status_text(), '\n'), "%.40s: %.80s", output,
          name);
    status_clear();
}

/* Do two outputs have one RUNS in a temporary directory? */
static bool share_runs(const char *output, const char *other)
{
    char name[PATH_MAX] = "", of_other[PATH_MAX] = "";
    CHECK(run_files_name("t", output, name) == HSORT_OK && run_files_name("t", other, of_other) == HSORT_OK,
          "%s", status_text());
    return strcmp(name, of_other) == 0;
}

#define MARK ".[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]"

static void test_names(void)
{
    enum { SUFFIX = 15, MARKED = SUFFIX + 9 };
    char base[NAME_MAX + 1], wanted[PATH_MAX], far[PATH_MAX], here[PATH_MAX];
    check_name(NULL, "b.npy", "b.npy.hypersort-runs");
    check_name(NULL, "/b.npy", "/b.npy.hypersort-runs");
    check_name(NULL, "./a/b.npy", "./a/b.npy.hypersort-runs");
    check_name("/", "a/b.npy", "/b.npy" MARK ".hypersort-runs");
    check_name("t/", "a/b.npy", "t/b.npy" MARK ".hypersort-runs");
    check_name("t", "b.%r.npy", "t/b.0.npy" MARK ".hypersort-runs");
    check_name(NULL, "a/", NULL);
    for (int marked = 0; marked < 2; marked++) {
        memset(base, 'x', sizeof base);
        base[NAME_MAX - (marked ? MARKED : SUFFIX)] = '\0';
        snprintf(wanted, sizeof wanted, "%s%s%s.hypersort-runs", marked ? "t/" : "", base,
                 marked ? MARK : "");
        check_name(marked ? "t" : NULL, base, wanted);
        strcat(base, "x");
        check_name(marked ? "t" : NULL, base, NULL);
    }
    memset(far, '/', sizeof far);
    far[sizeof far - 1] = '\0';
    check_name(far, "b.npy", NULL);
    // A link is followed.
    CHECK(comm.rank != 0 || symlink("true.bin", in_dir("link.bin")) == 0, "symlink");
    CHECK(comm.rank != 0 || (mkdir(in_dir("a"), 0777) == 0 && symlink("a", in_dir("linked")) == 0), "mkdir");
    put_file(in_dir("true.bin"), "", 0);
    MPI_Barrier(comm.world);
    check_name("t", in_dir("link.bin"), "t/true.bin" MARK ".hypersort-runs");
    // One output by any of its names; others of the same name elsewhere.
    CHECK(getcwd(here, sizeof here) && strlen(here) < PATH_MAX - 8, "getcwd");
    strcat(here, "/b.npy");
    CHECK(share_runs("b.npy", "./b.npy") && share_runs("b.npy", here),
          "not one output from here and by its whole name");
    CHECK(share_runs(in_dir("link.bin"), in_dir("true.bin")), "not one output by a link");
    CHECK(share_runs(in_dir("a/b.npy"), in_dir("linked/../a/b.npy")) &&
              share_runs(in_dir("a/b.npy"), in_dir("linked/b.npy")),
          "not one output by a link to its directory");
    CHECK(!share_runs("b.npy", in_dir("a/b.npy")) && !share_runs(in_dir("b.npy"), in_dir("a/b.npy")),
          "two outputs in one RUNS");
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || (unlink(in_dir("link.bin")) == 0 && unlink(in_dir("true.bin")) == 0 &&
                             unlink(in_dir("linked")) == 0 && rmdir(in_dir("a")) == 0),
          "unlink");
}

/* A rank on another machine, as far as names go: it does not see the runs. */
static void test_unseen(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    char here[PATH_MAX];
    put_input(&work, shape.elements);
    begin_call(&comm, &work, &shape, &call);
    CHECK(getcwd(here, sizeof here) != NULL, "getcwd");
    if (comm.rank == comm.size - 1 && comm.rank > 0)
        CHECK(chdir("/") == 0, "chdir");
    const hsort_status status = open_store(&call);
    CHECK(chdir(here) == 0, "chdir");
    expect_team(
        &comm, comm.size > 1 ? HSORT_IO : HSORT_OK, status,
        "out.bin.hypersort-runs: rank 0 sees it, this rank does not: temporary directories must be on disks "
        "that all ranks share");
    CHECK(comm.size == 1 || access(in_runs(NULL, ""), F_OK) != 0, "the directory stays");
    finish_call(&call);
    expect_end(&work);
}

/* ---- Limits -------------------------------------------------------------------------------------------- */

static void test_temporary_limit(void)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    put_input(&work, shape.elements);
    shape.temporary_limit = (10007 + 6 * 24 + 16) * 8 - 1;
    begin_call(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_IO, open_store(&call),
                "the runs of this sort, and what else it keeps there, take 81.33 kB, --temp-limit is 81.33 "
                "kB: 80K would do");
    CHECK(count_names(work.directory) == 2, "%d names", count_names(work.directory)); // lock, manifest
    CHECK(access(in_runs(NULL, ""), F_OK) != 0, "the directory stays");
    end_call(&call);
    shape.temporary_limit++;
    begin_and_open(&comm, &work, &shape, &call);
    finish_call(&call);
    expect_end(&work);
}

/* A limit of the size of files is an error of one rank, not its end, and no full disk. */
static void test_file_size_limit(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct rlimit before, limit;
    struct call call;
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0, "getrlimit");
    limit = before;
    limit.rlim_cur = 1000;
    hsort_status status = HSORT_OK;
    if (comm.rank == comm.size - 1) {
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
        status = call.store->begin_run(call.store->user, 0);
        CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0, "setrlimit");
    }
    expect_team(&comm, HSORT_IO, comm_agree(&comm, status),
                "run-000000.part: cannot reserve 12192 bytes: File too large");
    CHECK(!run_files_disk_is_full(call.files), "the disk is not full");
    CHECK(count_names(in_runs(NULL, "")) == 1, "the run stays");
    finish_call(&call);
    expect_end(&work);
}

static int count_open(void)
{
    return count_names("/proc/self/fd");
}

struct reader_thread {
    struct call *call;
    uint64_t random;
    int wrong;
};

static void *read_at_random(void *argument)
{
    struct reader_thread *reader = argument;
    for (int i = 0; i < 300; i++) {
        const int64_t run = (int64_t)(check_random(&reader->random) % (uint64_t)reader->call->plan.parts);
        const int64_t bytes = run_size(&reader->call->plan, run);
        const int64_t at = (int64_t)(check_random(&reader->random) % (uint64_t)bytes);
        reader->wrong += !read_piece(reader->call, run, at, (size_t)(bytes - at));
    }
    return NULL;
}

static void read_by_threads(struct call *call)
{
    struct reader_thread readers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        readers[i] = (struct reader_thread){call, seed + (uint64_t)(4 * comm.rank + i), 0};
        CHECK(pthread_create(&threads[i], NULL, read_at_random, &readers[i]) == 0, "pthread_create");
    }
    for (int i = 0; i < 4; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0, "pthread_join");
        CHECK(readers[i].wrong == 0, "thread %d: %d wrong", i, readers[i].wrong);
    }
}

/* More runs than files that may be open: the limit is raised; where it cannot be, runs take turns. The last test: a limit that
 * was lowered stays low. */
static void test_descriptors(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = {.elements = 3000, .part_elements = 15, .fence_elements = 4};
    struct rlimit limit;
    struct call call;
    put_input(&work, shape.elements);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = (rlim_t)count_open() + 70;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 200), "runs");
    const int before = count_open();
    read_everywhere(&call);
    CHECK(count_open() >= before + 200, "%d are open", count_open() - before);
    read_by_threads(&call);
    end_call(&call);

    limit.rlim_cur = limit.rlim_max = (rlim_t)count_open() + 90;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    begin_and_open(&comm, &work, &shape, &call);
    read_everywhere(&call);
    read_by_threads(&call);
    finish_call(&call);
    expect_end(&work);
}

static void test_all(void)
{
    draw_seed();
    test_whole(HSORT_CHOICE_AUTO);
    test_whole(HSORT_CHOICE_OFF);
    test_resume();
    test_again();
    test_replaced();
    test_directories();
    test_no_directory();
    test_one_directory();
    test_names();
    test_unseen();
    test_temporary_limit();
    test_file_size_limit();
    test_descriptors();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
