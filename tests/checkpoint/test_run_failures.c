/* Failures while runs are made: every fault site that is passed, on the first and on the last rank, and a disk that is full. All
 * ranks hear of it, nobody hangs, and the next call goes on with what is made, even after a call that could not see all of it. */
#include <errno.h>
#include <sys/mount.h>
#include "tests/checkpoint/runs.h"
#include "tests/support/faults.h"

#ifdef HSORT_FAULTS
static const struct shape small_shape = {.elements = 100, .part_elements = 30, .fence_elements = 8};

/* All of a sort that is not made yet, up to a failure; each step agreed. */
static hsort_status do_all(struct call *call)
{
    uint64_t random = seed;
    char bytes[8];
    const int rank = comm.rank, size = comm.size;
    hsort_status status = open_store(call);
    for (int64_t run = 0; run < 4 && status == HSORT_OK; run++)
        status = comm_agree(&comm, run % size == rank && !call->plan.runs[run].is_made
                                       ? make_run(call, run, &random)
                                       : HSORT_OK);
    if (status == HSORT_OK)
        status = call->store->reopen(call->store->user);
    for (int64_t run = 0; run < 4 && status == HSORT_OK; run++)
        status = comm_agree(&comm, call->store->read_run(call->store->user, run, 8, 8, bytes));
    for (int64_t segment = 0; segment < 4 && status == HSORT_OK; segment++)
        status = comm_agree(&comm, segment % size == rank && !call->plan.segments[segment].is_made
                                       ? make_segment(call, segment)
                                       : HSORT_OK);
    return status;
}

/* A site fails at its nth passage on one rank, in a call that is the first or goes on. False: it was not reached. */
static bool fail_once(const struct work *work, enum fault_site site, int rank, int nth, bool goes_on)
{
    static const char *const texts[FAULT_SITES] = {[FAULT_ALLOC] = "no memory",
                                                   [FAULT_READ] = "Input/output error",
                                                   [FAULT_SHORT] = "cut short",
                                                   [FAULT_WRITE] = "No space left on device",
                                                   [FAULT_COMMIT] = "Input/output error"};
    struct shape shape = small_shape;
    struct call call;
    snprintf(faults_case, sizeof faults_case, "site %d, rank %d, passage %d", site, rank, nth);
    if (goes_on) {
        uint64_t random = seed;
        begin_and_open(&comm, work, &shape, &call);
        CHECK(comm.rank != 0 ||
                  (make_run(&call, 1, &random) == HSORT_OK && make_segment(&call, 2) == HSORT_OK),
              "%s", status_text());
        end_call(&call);
        shape.loses_output = true; // a line more
    }
    begin_call(&comm, work, &shape, &call);
    if (comm.rank == rank)
        fault_set(site, nth);
    const hsort_status status = do_all(&call);
    int untouched = comm.rank == rank && fault_untouched(site, nth);
    MPI_Bcast(&untouched, 1, MPI_INT, rank, comm.world);
    expect_team(&comm,
                untouched             ? HSORT_OK
                : site == FAULT_ALLOC ? HSORT_HOST_MEMORY
                                      : HSORT_IO,
                status, texts[site]);
    CHECK(run_files_disk_is_full(call.files) == (!untouched && site == FAULT_WRITE && comm.rank == rank),
          "%s: full: %d", faults_case, run_files_disk_is_full(call.files));
    if (untouched) {
        finish_call(&call);
    } else {
        end_call(&call);
        shape.loses_output = false;
        begin_call(&comm, work, &shape, &call);
        expect_team(&comm, HSORT_OK, do_all(&call), faults_case);
        read_everywhere(&call);
        finish_call(&call);
    }
    expect_end(work);
    return !untouched;
}

/* The least passages of each site that there must be, on rank 0, in a call that goes on: else this tests little. */
static void test_faults(void)
{
    static const struct {
        enum fault_site site;
        int least;
    } sites[] = {{FAULT_ALLOC, 6}, {FAULT_READ, 6}, {FAULT_SHORT, 4}, {FAULT_WRITE, 5}, {FAULT_COMMIT, 8}};
    const struct work work = make_work(HSORT_U64);
    put_input(&work, small_shape.elements);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        for (int where = 0; where < (comm.size > 1 ? 2 : 1); where++)
            for (int goes_on = 0; goes_on < 2; goes_on++) {
                int passages = 0;
                faults_watch(60);
                while (fail_once(&work, sites[i].site, where * (comm.size - 1), passages + 1, goes_on))
                    passages++;
                CHECK(where > 0 || passages >= sites[i].least, "site %d: %d passages", sites[i].site,
                      passages);
                faults_watch(0);
            }
}

static void test_no_memory(void)
{
    const struct work work = make_work(HSORT_U64);
    struct call call;
    struct run_files *files;
    put_input(&work, small_shape.elements);
    begin_call(&comm, &work, &small_shape, &call);
    const char *const own = NULL;
    const struct run_files_target target = {.temporary = &own,
                                            .temporary_count = 1,
                                            .output = work.output,
                                            .checkpoint = &call.checkpoint,
                                            .out = &call.out};
    fault_set(FAULT_ALLOC, 1);
    CHECK(run_files_open(&comm, &target, &files) == HSORT_HOST_MEMORY && !files, "no memory");
    status_clear();
    run_files_close(NULL);
    finish_call(&call);
    expect_end(&work);
}
#else
static void test_faults(void)
{
    if (comm.rank == 0)
        printf("skipped faults: not a build with HYPERSORT_FAULTS\n");
}
static void test_no_memory(void)
{
}
#endif

/* ---- What cannot be read for the moment ---------------------------------------------------------------- */

/* The program is linked so that readdir(), and pread() of the first line of journals, ask here. */
static enum { ALL_IN_SIGHT, NO_NAMES, NO_BYTES, NO_RUNS } sight;
struct dirent *__real_readdir64(DIR *listing);
struct dirent *__wrap_readdir64(DIR *listing);
ssize_t __real_pread64(int fd, void *bytes, size_t size, off_t at);
ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t at);

struct dirent *__wrap_readdir64(DIR *listing)
{
    struct dirent *entry = __real_readdir64(listing);
    if (sight != NO_NAMES || !entry || strncmp(entry->d_name, "journal-", 8) != 0)
        return entry;
    errno = EIO;
    return NULL;
}

ssize_t __wrap_pread64(int fd, void *bytes, size_t size, off_t at)
{
    if (sight != NO_BYTES || size != strlen("hypersort journal 1\n") || at != 0)
        return __real_pread64(fd, bytes, size, at);
    errno = EIO;
    return -1;
}

/* A call of which rank 0 does not see something: it says so, and the next one finds all that was made. */
static void fail_to_see(const struct work *work, int what, int nth, const char *text)
{
    const struct shape shape = usual_shape();
    struct call call;
    begin_call(&comm, work, &shape, &call);
    MPI_Barrier(comm.world);
    sight = comm.rank == 0 ? what : ALL_IN_SIGHT;
#ifdef HSORT_FAULTS
    if (comm.rank == 0 && nth > 0)
        fault_set(FAULT_READ, nth);
#else
    (void)nth;
#endif
    expect_team(&comm, HSORT_IO, open_store(&call), text);
    sight = ALL_IN_SIGHT;
    end_call(&call);
    begin_and_open(&comm, work, &shape, &call);
    check_found(&call, FIRST(3), 1, "in sight again");
    end_call(&call);
}

/* What is out of sight is not gone, to be made again. */
static void test_out_of_sight(void)
{
    const struct work work = make_work(HSORT_U64);
    const struct shape shape = usual_shape();
    struct call call;
    put_input(&work, shape.elements);
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 3), "runs");
    expect_team(&comm, HSORT_OK, make_segments(&call, 0, 1), "a segment");
    end_call(&call);
    fail_to_see(&work, NO_NAMES, 0, "checkpoint: cannot be read: Input/output error");
    fail_to_see(&work, NO_BYTES, 0, "checkpoint/journal-0: cannot be read: Input/output error");
#ifdef HSORT_FAULTS
    int nth = 0;
    do
        fail_to_see(&work, NO_RUNS, ++nth, "Input/output error");
    while (!strstr(comm.error, "run-000002: cannot be looked at: ") && nth < 50);
    CHECK(nth < 50, "a run that cannot be looked at is none");
#endif
    begin_and_open(&comm, &work, &shape, &call);
    finish_call(&call);
    expect_end(&work);
}

/* ---- A disk that is full ------------------------------------------------------------------------------- */

/* A file system of so many bytes at directory/full; false: that cannot be had. */
static bool mount_small(size_t bytes)
{
    char options[64];
    int made = 0;
    snprintf(options, sizeof options, "size=%zu", bytes);
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        made = mkdir(in_dir("full"), 0777) == 0 && mount("tmpfs", in_dir("full"), "tmpfs", 0, options) == 0;
    if (comm.rank == 0 && !made)
        printf("skipped a full disk: tmpfs cannot be mounted: %s\n", strerror(errno));
    MPI_Bcast(&made, 1, MPI_INT, 0, comm.world);
    if (!made && comm.rank == 0)
        rmdir(in_dir("full"));
    return made;
}

static void unmount(void)
{
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        CHECK(umount(in_dir("full")) == 0 && rmdir(in_dir("full")) == 0, "umount: %s", strerror(errno));
    MPI_Barrier(comm.world);
}

/* Runs of 82 KB, and room for half of them, in two directories of one file system: it is said before anything is made. */
static void test_no_room(void)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    if (!mount_small(64 << 10))
        return;
    put_input(&work, shape.elements);
    CHECK(comm.rank != 0 || (mkdir(in_dir("full/a"), 0777) == 0 && mkdir(in_dir("full/b"), 0777) == 0),
          "mkdir");
    MPI_Barrier(comm.world);
    shape.temporary[0] = in_dir("full/a");
    shape.temporary[1] = in_dir("full/b");
    shape.temporary_count = 2;
    begin_call(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_IO, open_store(&call),
                runs_text("full/a", ": the runs of this sort need 81920 bytes more there, of which "));
    CHECK(strstr(comm.error, " are free: free some, or name more directories (-T)"), "%s", comm.error);
    CHECK(count_names(in_dir("full/a")) == 0 && count_names(in_dir("full/b")) == 0, "something stays");
    CHECK(!run_files_disk_is_full(call.files), "no write was refused");
    end_call(&call);
    shape.temporary[0] = directory;
    begin_and_open(&comm, &work, &shape, &call); // half of it has room there
    finish_call(&call);
    unmount();
    expect_end(&work);
}

/* Others fill the disk meanwhile; when they have gone, the next call goes on. */
static void test_fills_up(void)
{
    const struct work work = make_work(HSORT_U64);
    struct shape shape = usual_shape();
    struct call call;
    static char zeros[1 << 20];
    uint64_t random = seed;
    if (!mount_small(128 << 10))
        return;
    put_input(&work, shape.elements);
    shape.temporary[0] = in_dir("full");
    shape.temporary_count = 1;
    begin_and_open(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_OK, make_runs(&call, 0, 2), "runs");
    MPI_Barrier(comm.world);
    FILE *file = comm.rank == 0 ? fopen(in_dir("full/others"), "wb") : NULL;
    if (file) {
        (void)!fwrite(zeros, 1, sizeof zeros, file);
        fclose(file);
    }
    MPI_Barrier(comm.world);
    const bool mine = comm.rank == comm.size - 1;
    const hsort_status status = mine ? make_run(&call, 2, &random) : HSORT_OK;
    expect_team(&comm, HSORT_IO, comm_agree(&comm, status), "No space left on device");
    CHECK(run_files_disk_is_full(call.files) == mine, "full: %d", !mine);
    end_call(&call);

    begin_call(&comm, &work, &shape, &call);
    expect_team(&comm, HSORT_IO, open_store(&call),
                "the runs of this sort need 57344 bytes more there, of which ");
    end_call(&call);
    CHECK(count_names(in_runs("full", "")) == 3,
          "what is made is gone"); // a plan and two runs
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || unlink(in_dir("full/others")) == 0, "unlink");
    MPI_Barrier(comm.world);
    begin_and_open(&comm, &work, &shape, &call);
    check_found(&call, FIRST(2), 0, "after a full disk");
    expect_team(&comm, HSORT_OK, make_runs(&call, 2, 7), "runs");
    read_everywhere(&call);
    finish_call(&call);
    unmount();
    expect_end(&work);
}

static void test_all(void)
{
    draw_seed();
    test_faults();
    test_no_memory();
    test_out_of_sight();
    test_no_room();
    test_fills_up();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
