/* What is left of an earlier call: whole, damaged, cut, lost or another sort's. Whatever is not sure to be made is made again, and
 * nothing of the user's is touched. */
#include "tests/checkpoint/runs.h"

static const char *run_path(int64_t run)
{
    char name[32];
    snprintf(name, sizeof name, "run-%06lld", (long long)run);
    return in_runs(NULL, name);
}

/* The parts of the usual sort. */
static const struct run_plan sizes = {
    .elements = 10007, .element_bytes = 8, .part_elements = 1500, .fence_elements = 64};

/* A run's file, by hand, so many bytes longer than it should be. */
static void put_run(int64_t run, int64_t more)
{
    const int64_t bytes = run_size(&sizes, run) + more;
    unsigned char *all = malloc((size_t)bytes);
    fill_run(run, 0, (size_t)bytes, all);
    put_file(run_path(run), all, (size_t)bytes);
    free(all);
}

/* Rank 0 makes a part. */
static void make_on_0(struct call *call, int64_t part, bool is_segment)
{
    uint64_t random = seed;
    if (comm.rank == 0)
        CHECK((is_segment ? make_segment(call, part) : make_run(call, part, &random)) == HSORT_OK, "%s",
              status_text());
    MPI_Barrier(comm.world);
}

/* Read a file on each rank. */
static size_t read_file(const char *path, char *text, size_t room)
{
    MPI_Barrier(comm.world);
    FILE *file = fopen(path, "rb");
    const size_t bytes = file ? fread(text, 1, room, file) : 0;
    CHECK(file && bytes < room, "%s", path);
    if (file)
        fclose(file);
    MPI_Barrier(comm.world);
    return bytes;
}

static void remove_on_0(const char *path)
{
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || remove(path) == 0, "remove %s", path);
    MPI_Barrier(comm.world);
}

/* A usual sort, of which rank 0 has made three runs, two segments, and then run 3. */
static struct work begin_usual(struct call *call)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, call);
    for (int64_t run = 0; run < 3; run++)
        make_on_0(call, run, false);
    make_on_0(call, 0, true);
    make_on_0(call, 1, true);
    make_on_0(call, 3, false);
    end_call(call);
    return work;
}

/* A call that finds these, and makes nothing. */
static void expect_found(const struct work *work, uint64_t runs, uint64_t segments, const char *what)
{
    const struct shape shape = usual_shape();
    struct call call;
    begin_and_open(&comm, work, &shape, &call);
    check_found(&call, runs, segments, what);
    end_call(&call);
}

/* Make what is missing, and end. */
static void finish_usual(const struct work *work)
{
    const struct shape shape = usual_shape();
    struct call call;
    uint64_t random = seed;
    begin_and_open(&comm, work, &shape, &call);
    hsort_status status = HSORT_OK;
    for (int64_t run = 0; run < 7 && status == HSORT_OK; run++)
        if (!call.plan.runs[run].is_made && run % comm.size == comm.rank)
            status = make_run(&call, run, &random);
    expect_team(&comm, HSORT_OK, comm_agree(&comm, status), "what is missing");
    read_everywhere(&call);
    finish_call(&call);
}

/* ---- Journals ------------------------------------------------------------------------------------------ */

/* A last line that a crash has cut, anywhere, is no line; what is added behind it is one. */
static void test_torn(void)
{
    struct call call;
    const struct work work = begin_usual(&call);
    const struct shape shape = usual_shape();
    char text[4096];
    const size_t bytes = read_file(in_dir("checkpoint/journal-0"), text, sizeof text);
    size_t last = bytes - 1; // where the last line begins
    while (text[last - 1] != '\n')
        last--;
    for (size_t kept = last; kept <= bytes; kept++) {
        char what[64];
        snprintf(what, sizeof what, "%zu of %zu bytes", kept, bytes);
        put_file(in_dir("checkpoint/journal-0"), text, kept);
        put_run(3, 0);
        begin_and_open(&comm, &work, &shape, &call);
        const bool whole = kept >= bytes - 1; // all but its newline
        check_found(&call, FIRST(whole ? 4 : 3), FIRST(2), what);
        make_on_0(&call, 2, true);
        end_call(&call);
        expect_found(&work, FIRST(whole ? 4 : 3), FIRST(3), what);
    }
    // In the line that a journal begins with.
    put_file(in_dir("checkpoint/journal-0"), text, check_random(&seed) % 20);
    expect_found(&work, 0, 0, "no more than a part of the first line");
    finish_usual(&work);
    expect_end(&work);
}

/* A damaged line is no line, the others are; a damaged first line makes the file somebody else's. */
static void test_damaged(void)
{
    struct call call;
    const struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    char text[4096], damaged[4096];
    const size_t bytes = read_file(in_dir("checkpoint/journal-0"), text, sizeof text);
    for (int i = 0; i < 60; i++) {
        const size_t at = i < 3 ? (size_t)(7 * i) : check_random(&seed) % bytes; // rank 0's counts
        memcpy(damaged, text, bytes);
        damaged[at] ^= (char)(1 << check_random(&seed) % 8);
        put_file(in_dir("checkpoint/journal-0"), damaged, bytes);
        for (int64_t run = 0; run < 4; run++)
            put_run(run, 0);
        int here = (int)at;
        MPI_Bcast(&here, 1, MPI_INT, 0, comm.world);
        begin_call(&comm, &work, &shape, &call);
        const hsort_status status = open_store(&call);
        expect_team(&comm, here < 20 ? HSORT_IO : HSORT_OK, status,
                    "journal-0: is not a journal of hypersort: remove it, or give another directory");
        int found = 0;
        for (int64_t part = 0; part < 7 && status == HSORT_OK; part++) {
            const struct run_facts run = make_facts(&call.plan, part, false),
                                   segment = make_facts(&call.plan, part, true);
            CHECK(!call.plan.runs[part].is_made || same_facts(&call.plan.runs[part], &run), "byte %d", here);
            CHECK(!call.plan.segments[part].is_made || same_facts(&call.plan.segments[part], &segment),
                  "byte %d", here);
            found += (int)(call.plan.runs[part].is_made + call.plan.segments[part].is_made);
        }
        CHECK(status != HSORT_OK || found == 5 || found == 4, "byte %d: %d of 6 parts are found", here,
              found);
        end_call(&call);
    }
    put_file(in_dir("checkpoint/journal-0"), text, bytes);
    finish_usual(&work);
    expect_end(&work);
}

/* ---- Runs and plans ------------------------------------------------------------------------------------ */

/* A run that is not there, or of another size, is made again. */
static void test_lost_run(void)
{
    struct call call;
    const struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    call.plan =
        (struct run_plan){.elements = 10007, .element_bytes = 8, .part_elements = 1500, .fence_elements = 64};
    for (int how = 0; how < 5; how++) {
        if (how == 0)
            put_run(1, -1);
        else if (how == 1)
            put_run(1, 1);
        else
            remove_on_0(run_path(1));
        if (how == 3)
            CHECK(comm.rank != 0 || symlink("run-000000", run_path(1)) == 0, "symlink");
        if (how == 4)
            CHECK(comm.rank != 0 || mkdir(run_path(1), 0700) == 0, "mkdir");
        begin_and_open(&comm, &work, &shape, &call);
        check_found(&call, FIRST(4) & ~UINT64_C(2), FIRST(2), "a lost run");
        CHECK(how == 4 || access(run_path(1), F_OK) != 0, "what is no run stays");
        MPI_Barrier(comm.world);
        uint64_t random = seed;
        if (how < 4) {
            make_on_0(&call, 1, false);
        } else {
            const hsort_status status = comm.rank == 0 ? make_run(&call, 1, &random) : HSORT_OK;
            expect_team(&comm, HSORT_IO, comm_agree(&comm, status), "run-000001: cannot be given its name: ");
            remove_on_0(run_path(1));
        }
        end_call(&call);
        expect_found(&work, how < 4 ? FIRST(4) : FIRST(4) & ~UINT64_C(2), FIRST(2), "made again");
    }
    finish_usual(&work);
    expect_end(&work);
}

/* A run that is cut between the passes, or in the second. */
static void test_cut_run(void)
{
    struct call call;
    const struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    char bytes[64];
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_IO, call.store->reopen(call.store->user),
                "run-000004: cannot open: No such file");
    expect_team(&comm, HSORT_OK, make_runs(&call, 4, 7), "runs");
    const int64_t size = run_size(&call.plan, 6);
    put_run(6, -8);
    expect_team(&comm, HSORT_IO, call.store->reopen(call.store->user),
                "run-000006: has 8176 bytes, not 8184: was changed since it was made");
    put_run(6, 0);
    expect_team(&comm, HSORT_OK, call.store->reopen(call.store->user), "whole again");
    CHECK(call.store->read_run(call.store->user, 6, size - 64, 64, bytes) == HSORT_OK, "%s", status_text());
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || truncate(run_path(6), size - 1) == 0, "truncate");
    MPI_Barrier(comm.world);
    const hsort_status status = call.store->read_run(call.store->user, 6, size - 64, 64, bytes);
    CHECK(status == HSORT_IO &&
              strstr(status_text(), "run-000006: ends at byte 8183, 8184 expected: cut short"),
          "%s", status_text());
    status_clear();
    finish_call(&call);
    expect_end(&work);
}

/* Somebody takes the directory away. */
static void test_taken_directory(void)
{
    struct call call;
    const struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    uint64_t random = seed;
    char text[8192];
    begin_and_open(&comm, &work, &shape, &call);
    const size_t bytes = read_file(in_runs(NULL, "plan"), text, sizeof text);
    const bool mine = comm.rank == comm.size - 1;
    if (mine)
        CHECK(call.store->begin_run(call.store->user, 4) == HSORT_OK &&
                  write_pieces(&call, 4, &random) == HSORT_OK,
              "%s", status_text());
    put_file(in_runs(NULL, "plan"), text, bytes - 1);
    const struct run_facts facts = make_facts(&call.plan, 4, false);
    const hsort_status status = mine ? call.store->end_run(call.store->user, 4, &facts) : HSORT_OK;
    static const char cause[] =
        "hypersort-runs: its plan is gone or another one: was it removed, or does another command";
    expect_team(&comm, HSORT_IO, comm_agree(&comm, status), cause);
    CHECK(access(run_path(4), F_OK) != 0, "the run has its name");
    expect_team(&comm, HSORT_IO, call.store->reopen(call.store->user), cause);
    put_file(in_runs(NULL, "plan"), text, bytes);
    end_call(&call);
    expect_found(&work, FIRST(4), FIRST(2), "given back");
    finish_usual(&work);
    expect_end(&work);
}

/* More memory is no matter; less than the parts need is refused, and nothing is changed. */
static void test_other_parts(void)
{
    struct call call;
    struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    shape.part_elements = 1499;
    shape.fence_elements = 100;
    begin_call(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_HOST_MEMORY, open_store(&call),
                "hypersort-runs: its runs have 1500 elements, 12000 bytes, and there is memory for 1499 "
                "elements: give "
                "more (-S), or remove it to begin anew");
    end_call(&call);
    shape.part_elements = 1501;
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(call.plan.part_elements == 1500 && call.plan.fence_elements == 64, "other parts");
    check_found(&call, FIRST(4), FIRST(2), "after a refusal");
    end_call(&call);
    // The remedy.
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        nftw(in_runs(NULL, ""), remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    MPI_Barrier(comm.world);
    shape.part_elements = 1499;
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(call.plan.part_elements == 1499 && call.plan.fence_elements == 100, "not anew");
    check_found(&call, 0, 0, "anew");
    finish_call(&call);
    expect_end(&work);
}

/* A damaged plan is none: runs are made again. What the output has of segments is as good as before. */
static void test_damaged_plan(void)
{
    struct call call;
    const struct work work = begin_usual(&call);
    char text[8192];
    const size_t bytes = read_file(in_runs(NULL, "plan"), text, sizeof text);
    for (int i = 0; i < 20; i++) {
        const size_t at = check_random(&seed) % bytes; // rank 0's counts
        char damaged[8192];
        memcpy(damaged, text, bytes);
        damaged[at] ^= (char)(1 << check_random(&seed) % 8);
        put_file(in_runs(NULL, "plan"), damaged, i % 2 ? bytes : at);
        expect_found(&work, 0, FIRST(2), "a damaged plan");
        char again[8192];
        CHECK(read_file(in_runs(NULL, "plan"), again, sizeof again) == bytes &&
                  memcmp(text, again, bytes) == 0,
              "plan");
    }
    CHECK(count_names(in_runs(NULL, "")) == 1, "runs stay");
    finish_usual(&work);
    expect_end(&work);
}

/* ---- The output ---------------------------------------------------------------------------------------- */

/* Put a copy of a file in its place. */
static void replace_by_copy(const char *path)
{
    static char text[1 << 17];
    const size_t bytes = read_file(path, text, sizeof text);
    put_file(in_dir("copy"), text, bytes);
    CHECK(comm.rank != 0 || (chmod(in_dir("copy"), 0600) == 0 && rename(in_dir("copy"), path) == 0),
          "rename");
    MPI_Barrier(comm.world);
}

/* Segments were in the output that is gone; also if the next call ends before it makes any. */
static void test_lost_output(void)
{
    struct call call;
    struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    char part[PATH_MAX];
    begin_and_open(&comm, &work, &shape, &call);
    strcpy(part, call.checkpoint.part);
    check_found(&call, FIRST(4), FIRST(2), "before");
    end_call(&call);
    remove_on_0(part);
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(!call.kept, "the output is there");
    check_found(&call, FIRST(4), 0, "a lost output");
    end_call(&call);
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(call.kept, "the output is not there");
    check_found(&call, FIRST(4), 0, "after a lost output");
    make_on_0(&call, 2, true);
    end_call(&call);
    expect_found(&work, FIRST(4), 4, "a segment of the new output");

    // The caller alone knows it.
    shape.loses_output = true;
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(4), 0, "lost, says the caller");
    end_call(&call);
    shape.loses_output = false;
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(4), 0, "lost, the caller said");
    make_on_0(&call, 3, true);
    end_call(&call);
    expect_found(&work, FIRST(4), 8, "a segment of the third output");

    // The file alone shows it.
    replace_by_copy(part);
    begin_and_open(&comm, &work, &shape, &call);
    CHECK(call.kept, "the copy is not taken");
    check_found(&call, FIRST(4), 0, "a copy");
    end_call(&call);
    finish_usual(&work);
    expect_end(&work);
}

/* ---- Others' files ------------------------------------------------------------------------------------- */

/* In RUNS, and beside the manifest. */
static const char *const users_runs[] = {"notes",      "run-7",           "run-0000007",
                                         "run--00007", "run-000007.keys", "plan.old"};
static const char *const users_journals[] = {"checkpoint/journal-01", "checkpoint/journal-x",
                                             "checkpoint/journal-77"};
enum {
    USERS_RUNS = sizeof users_runs / sizeof *users_runs,
    USERS_NAMES = USERS_RUNS + sizeof users_journals / sizeof *users_journals
};

static const char *users_path(int i)
{
    return i < USERS_RUNS ? in_runs(NULL, users_runs[i]) : in_dir(users_journals[i - USERS_RUNS]);
}

/* A sort that was given up: its manifest is gone. Its runs and journals go, the user's files stay, to the end. */
static void test_given_up(void)
{
    struct call call;
    const struct shape shape = usual_shape();
    const struct work work = begin_usual(&call);
    char part[PATH_MAX], text[4096];
    const size_t bytes = read_file(in_dir("checkpoint/journal-0"), text, sizeof text);
    begin_and_open(&comm, &work, &shape, &call);
    strcpy(part, call.checkpoint.part);
    end_call(&call);
    for (int i = 0; i < USERS_NAMES; i++)
        put_file(users_path(i), "mine", 4);
    CHECK(comm.rank != 0 || mkdir(in_dir("checkpoint/journal-78"), 0777) == 0, "mkdir");
    expect_found(&work, FIRST(4), FIRST(2), "beside the user's files");
    remove_on_0(in_dir("checkpoint/manifest"));
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, 0, 0, "a new manifest");
    CHECK(count_names(in_runs(NULL, "")) == 7, "%d names", count_names(in_runs(NULL, ""))); // six, and a plan
    end_call(&call);
    // Nor do lines of the other sort say anything of this one, although its parts are the same.
    put_file(in_dir("checkpoint/journal-0"), text, bytes);
    for (int64_t run = 0; run < 4; run++)
        put_run(run, 0);
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, 0, 0, "lines of another sort");
    finish_call(&call);
    MPI_Barrier(comm.world);
    for (int i = 0; i < USERS_NAMES; i++) {
        CHECK(read_file(users_path(i), text, sizeof text) == 4 && memcmp(text, "mine", 4) == 0, "%s",
              users_path(i));
        remove_on_0(users_path(i));
    }
    remove_on_0(in_dir("checkpoint/journal-78"));
    remove_on_0(in_runs(NULL, ""));
    MPI_Barrier(comm.world);
    remove_on_0(part); // of the manifest that was removed by hand
    expect_end(&work);
}

/* The name of a journal is taken. */
static void test_users_journal(void)
{
    struct call call;
    const struct shape shape = usual_shape();
    const struct work work = make_work(HSORT_U64);
    struct stat facts;
    put_input(&work, shape.elements);
    begin_call(&comm, &work, &shape, &call);
    put_file(in_dir("checkpoint/journal-0"), "mine", 4);
    expect_team(&comm, HSORT_IO, open_store(&call),
                "journal-0: is not a journal of hypersort: remove it, or give another");
    CHECK(access(in_runs(NULL, ""), F_OK) != 0 && access(in_dir("checkpoint/journal-1"), F_OK) != 0,
          "something stays");
    remove_on_0(in_dir("checkpoint/journal-0"));
    CHECK(comm.rank != 0 || symlink("journal-x", in_dir("checkpoint/journal-0")) == 0, "symlink");
    expect_team(&comm, HSORT_IO, open_store(&call),
                "journal-0: cannot be opened: a symbolic link is not followed here");
    remove_on_0(in_dir("checkpoint/journal-0"));
    put_file(in_dir("empty"), "", 0);
    call.checkpoint.found = true; // else it was a journal of a sort that was given up, and went
    CHECK(comm.rank != 0 || link(in_dir("empty"), in_dir("checkpoint/journal-0")) == 0, "link");
    expect_team(&comm, HSORT_IO, open_store(&call),
                "journal-0: is not a journal of hypersort: remove it, or give another");
    remove_on_0(in_dir("checkpoint/journal-0"));
    CHECK(stat(in_dir("empty"), &facts) == 0 && facts.st_size == 0, "the user's file is written to");
    remove_on_0(in_dir("empty"));
    put_file(in_runs(NULL, ""), "mine", 4);
    expect_team(&comm, HSORT_IO, open_store(&call), "hypersort-runs: is not a directory");
    remove_on_0(in_runs(NULL, ""));
    finish_call(&call);
    expect_end(&work);
}

/* Empty the directory of the test. */
static void remove_all(void)
{
    MPI_Barrier(comm.world);
    if (comm.rank == 0) {
        nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
        CHECK(mkdir(directory, 0700) == 0, "mkdir");
    }
    MPI_Barrier(comm.world);
}

/* Two sorts to one output, with a checkpoint each and one temporary directory. The second is refused until the first is given up. A
 * third one, whose output has the same name elsewhere, has runs of its own. */
static void test_two_sorts(void)
{
    const struct work work = make_work(HSORT_U64);
    struct work other = work, elsewhere = work;
    struct shape shape = usual_shape();
    struct call call;
    snprintf(other.directory, sizeof other.directory, "%s/other", directory);
    snprintf(elsewhere.directory, sizeof elsewhere.directory, "%s/third", directory);
    snprintf(elsewhere.output, sizeof elsewhere.output, "%s/to/out.bin", directory);
    put_input(&work, shape.elements);
    CHECK(comm.rank != 0 || (mkdir(in_dir("to"), 0777) == 0 && mkdir(in_dir("tmp"), 0777) == 0), "mkdir");
    MPI_Barrier(comm.world);
    shape.temporary[0] = in_dir("tmp");
    shape.temporary_count = 1;
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 4), "runs");
    end_call(&call);
    begin_call(&comm, &other, &shape, &call);
    expect_team(&comm, HSORT_IO, open_store(&call),
                runs_text("tmp", ": has the runs of another sort, of the checkpoint /"));
    CHECK(
        strstr(comm.error, "/checkpoint: end that sort, remove one of both, or give another directory (-T)"),
        "%s", comm.error);
    end_call(&call);
    // A manifest that cannot be read may be there.
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        CHECK(rename(in_dir("checkpoint/manifest"), in_dir("manifest")) == 0 &&
                  symlink("manifest", in_dir("checkpoint/manifest")) == 0,
              "symlink");
    MPI_Barrier(comm.world);
    begin_call(&comm, &other, &shape, &call);
    expect_team(&comm, HSORT_IO, open_store(&call),
                "/checkpoint/manifest cannot be read: Too many levels of symbolic links");
    end_call(&call);
    CHECK(comm.rank != 0 || rename(in_dir("manifest"), in_dir("checkpoint/manifest")) == 0, "rename");
    MPI_Barrier(comm.world);
    begin_and_open(&comm, &elsewhere, &shape, &call);
    check_found(&call, 0, 0, "of another output");
    CHECK(count_names(in_dir("tmp")) == 2, "not a directory for each output");
    finish_call(&call);
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(4), 0, "after the other was refused");
    run_files_close(call.files); // as one that is killed
    call.files = NULL;
    remove_on_0(in_dir("checkpoint/manifest"));
    end_call(&call);
    begin_and_open(&comm, &other, &shape, &call);
    check_found(&call, 0, 0, "after it was given up");
    CHECK(count_names(in_runs("tmp", "")) == 1, "runs stay");
    finish_call(&call);
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || count_names(in_dir("tmp")) == 0, "tmp is not empty");
    remove_all();
}

/* A sort was given up too where something else lies in the place of its manifest, or of the directory. */
static void test_taken_manifest(void)
{
    enum { A_DIRECTORY, A_FIFO, A_FILE_FOR_THE_DIRECTORY, KINDS };
    const struct work work = make_work(HSORT_U64);
    struct work other = work;
    struct shape shape = usual_shape();
    struct call call;
    snprintf(other.directory, sizeof other.directory, "%s/other", directory);
    for (int kind = 0; kind < KINDS; kind++) {
        put_input(&work, shape.elements);
        CHECK(comm.rank != 0 || mkdir(in_dir("tmp"), 0777) == 0, "mkdir");
        MPI_Barrier(comm.world);
        shape.temporary[0] = in_dir("tmp");
        shape.temporary_count = 1;
        begin_and_open(&comm, &work, &shape, &call);
        end_call(&call);
        MPI_Barrier(comm.world);
        if (comm.rank == 0) {
            const char *manifest = in_dir("checkpoint/manifest");
            CHECK(unlink(manifest) == 0, "unlink");
            if (kind == A_FILE_FOR_THE_DIRECTORY)
                CHECK(rename(in_dir("checkpoint"), in_dir("moved")) == 0, "rename");
            CHECK((kind == A_DIRECTORY ? mkdir(manifest, 0700)
                   : kind == A_FIFO    ? mkfifo(manifest, 0600)
                                       : 0) == 0,
                  "%d", kind);
        }
        if (kind == A_FILE_FOR_THE_DIRECTORY)
            put_file(in_dir("checkpoint"), "mine", 4);
        MPI_Barrier(comm.world);
        begin_and_open(&comm, &other, &shape, &call);
        finish_call(&call);
        remove_all();
    }
}

static void test_all(void)
{
    draw_seed();
    test_torn();
    test_damaged();
    test_lost_run();
    test_cut_run();
    test_taken_directory();
    test_other_parts();
    test_damaged_plan();
    test_lost_output();
    test_given_up();
    test_users_journal();
    test_two_sorts();
    test_taken_manifest();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
