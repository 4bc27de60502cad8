/* Checkpoints over several ranks: what some ranks have marked, any number of other ranks reads; what a killed run left is removed; a
 * failure at any step leaves the checkpoint as it was before. */
#include "tests/checkpoint/checkpoints.h"
#include "kernels/base/fault.h"
#include "tests/support/faults.h"
#include "tests/support/watched_fsync.h"

/* ---- Ranks that take part ------------------------------------------------------------------------------ */

/* The first `size` ranks as a communicator of their own; the others have none, *in is false there.  Collective. */
static struct comm open_team(int size, bool *in)
{
    struct comm team;
    MPI_Comm part;
    *in = comm.rank < size;
    MPI_Comm_split(comm.world, *in ? 0 : MPI_UNDEFINED, comm.rank, &part);
    if (*in) {
        if (comm_open(part, &team) != HSORT_OK)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Comm_free(&part);
    }
    return team;
}

/* ---- What is left of runs that were killed ------------------------------------------------------------- */

static void test_leftovers(void)
{
    struct work work = make_work(HSORT_F64);
    struct checkpoint checkpoint;
    put_input(&work, 100);
    finish(&work);
    for (int found = 0; found < 2; found++) {
        put_file(in_dir("checkpoint/.hypersort-manifest"), "hypersort check", 15);
        expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "leftovers");
        CHECK(checkpoint.found == found, "found %d", checkpoint.found);
        const struct checkpoint_range none = {0, 0};
        if (found)
            expect_team(&comm, HSORT_OK, checkpoint_mark(&comm, &checkpoint, none), "marking");
        MPI_Barrier(comm.world);
        if (comm.rank == 0)
            check_names(&checkpoint, 0, "leftovers");
        checkpoint_close(&checkpoint);
        MPI_Barrier(comm.world);
    }
    put_file(in_dir("checkpoint/.hypersort-manifest"), "hypersort check", 15);
    finish(&work);
    CHECK(comm.rank != 0 || count_names(work.directory) == 0, "leftovers stay");
}

/* The directory of a checkpoint, which is made, outlasts a crash, and so does the manifest in it. */
static void test_made_directory(void)
{
    struct work work = make_work(HSORT_U64);
    struct checkpoint checkpoint;
    put_input(&work, 100);
    finish(&work);
    for (int slash = 0; slash < 2; slash++) {
        snprintf(work.directory, sizeof work.directory, "%s%s", in_dir("made"), slash ? "/" : "");
        CHECK(watch_fsync(in_dir("")), "the directory around it");
        expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), work.directory);
        CHECK(comm.rank != 0 || watched_is_synced, "%s: its name is not synced to disk", work.directory);
        checkpoint_remove(&comm, &checkpoint);
        checkpoint_close(&checkpoint);
        MPI_Barrier(comm.world);
        if (comm.rank == 0)
            rmdir(work.directory);
        MPI_Barrier(comm.world);
    }
}

/* A link under the name that the next manifest is written to leads to a file of the user's: it stays as it is, and nobody else
 * can read the manifest. */
static void test_planted(void)
{
    const struct work work = make_work(HSORT_U64);
    struct checkpoint checkpoint;
    struct stat facts;
    char victim[8] = "";
    put_input(&work, 100);
    finish(&work);
    put_file(in_dir("victim"), "mine", 4);
    CHECK(comm.rank != 0 || symlink("../victim", in_dir("checkpoint/.hypersort-manifest")) == 0, "symlink");
    MPI_Barrier(comm.world);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "a planted link");
    CHECK(lstat(in_dir("checkpoint/manifest"), &facts) == 0 && S_ISREG(facts.st_mode) &&
              (facts.st_mode & 077) == 0,
          "mode %o", (unsigned)facts.st_mode);
    FILE *file = fopen(in_dir("victim"), "rb");
    CHECK(file && fread(victim, 1, sizeof victim, file) == 4 && memcmp(victim, "mine", 4) == 0,
          "the file behind the link: %.4s", victim);
    if (file)
        fclose(file);
    checkpoint_close(&checkpoint);
    finish(&work);
}

/* ---- Ranges of the output ------------------------------------------------------------------------------ */

/* What the manifest says against an array of one flag for each key. */
static void check_marks(const struct checkpoint *checkpoint, const bool *written, const char *what)
{
    for (int64_t key = 0; key < checkpoint->keys; key++) {
        int64_t end, wanted = key;
        const bool has = checkpoint_has(checkpoint, key, &end);
        while (wanted < checkpoint->keys && written[wanted] == written[key])
            wanted++;
        CHECK(has == written[key] && end == wanted, "%s: key %" PRId64 ": %d up to %" PRId64, what, key, has,
              end);
    }
}

/* Ranges at random, which every rank draws for every rank: all know what must come of them. Marked twice by some ranks. */
static void mark_some(const struct work *work, int ranks, int64_t keys, bool *written)
{
    bool in;
    struct comm team = open_team(ranks, &in);
    struct checkpoint checkpoint;
    if (in) {
        expect_team(&team, HSORT_OK, open_work(&team, work, &checkpoint), "opening");
        check_marks(&checkpoint, written, "read again");
    }
    for (int round = 0; round < 2; round++) {
        struct checkpoint_range mine = {0, 0};
        for (int rank = 0; rank < ranks; rank++) {
            const int64_t first = (int64_t)(check_random(&seed) % (uint64_t)(keys + 1));
            int64_t count = (int64_t)(check_random(&seed) % (uint64_t)(keys / (4 * comm.size) + 2));
            count = count > keys - first ? keys - first : count;
            memset(written + first, 1, (size_t)count);
            if (rank == comm.rank)
                mine = (struct checkpoint_range){first, count};
        }
        if (in) {
            expect_team(&team, HSORT_OK, checkpoint_mark(&team, &checkpoint, mine), "marking");
            check_marks(&checkpoint, written, "marked");
        }
    }
    if (in) {
        checkpoint_close(&checkpoint);
        comm_close(&team);
    }
    MPI_Barrier(comm.world);
}

static void test_marks(int64_t keys)
{
    const struct work work = make_work(HSORT_U64);
    struct checkpoint checkpoint;
    bool *written = calloc((size_t)keys + 1, 1);
    put_input(&work, keys);
    finish(&work);
    for (int round = 0; round < 5; round++)
        mark_some(&work, (int)(check_random(&seed) % (uint64_t)comm.size) + 1, keys, written);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening by all");
    check_marks(&checkpoint, written, "read by all");
    const struct checkpoint_range beyond = {keys - 1, comm.rank == comm.size - 1 ? 2 : 0};
    if (keys > 0)
        expect_team(&comm, HSORT_INTERNAL, checkpoint_mark(&comm, &checkpoint, beyond), "of ");
    check_marks(&checkpoint, written, "after a mark that cannot be");

    checkpoint_unmark(&checkpoint);
    memset(written, 0, (size_t)keys);
    check_marks(&checkpoint, written, "unmarked");
    expect_team(&comm, HSORT_OK, checkpoint_mark(&comm, &checkpoint, (struct checkpoint_range){0, 0}),
                "marking");
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening again");
    check_marks(&checkpoint, written, "unmarked on disk");
    checkpoint_close(&checkpoint);
    free(written);
    finish(&work);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

#ifdef HSORT_FAULTS
static void arm(enum fault_site site, int rank, int nth)
{
    MPI_Barrier(comm.world);
    if (comm.rank == rank)
        fault_set(site, nth);
}

/* Was the passage that was armed on `rank` never reached? Disarms it.                              Collective. */
static bool untouched(enum fault_site site, int rank, int nth)
{
    int so = comm.rank == rank && fault_untouched(site, nth);
    MPI_Bcast(&so, 1, MPI_INT, rank, comm.world);
    return so;
}

/* Beginning fails at every passage of a site, of which rank 0 makes all: the directory goes again. */
static void test_failing_begin(enum fault_site site)
{
    struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    snprintf(work.directory, sizeof work.directory, "%s/begun", directory);
    for (int nth = 1;; nth++) {
        arm(site, 0, nth);
        const hsort_status status = open_work(&comm, &work, &checkpoint);
        if (untouched(site, 0, nth))
            break;
        expect_team(&comm, HSORT_IO, status, work.directory);
        MPI_Barrier(comm.world);
        CHECK(access(work.directory, F_OK) != 0, "site %d, passage %d: the directory stays", site, nth);
        MPI_Barrier(comm.world);
    }
    checkpoint_close(&checkpoint);
    finish(&work);
    CHECK(comm.rank != 0 || rmdir(work.directory) == 0, "rmdir");
}

static bool has_ranges(const struct checkpoint *checkpoint, int ranges)
{
    return checkpoint->ranges == ranges && checkpoint->written[0].first == 0 &&
           checkpoint->written[0].count == comm.size && (ranges < 2 || checkpoint->written[1].first == 500);
}

/* A second mark fails at every passage of a site: the first must be there, in this process and for the next start, or, if only
 * the directory could not be synced to disk after the rename, both. Marked once more, if `again`, both are there. */
static void test_failing_mark(enum fault_site site, bool again)
{
    const struct work work = make_work(HSORT_U32);
    const struct checkpoint_range first = {comm.rank, 1}, second = {500 + comm.rank, 1};
    int failed = 0, late = 0;
    for (int nth = 1;; nth++) {
        struct checkpoint checkpoint;
        snprintf(faults_case, sizeof faults_case, "mark, site %d, passage %d", site, nth);
        faults_watch(60);
        expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), faults_case);
        expect_team(&comm, HSORT_OK, checkpoint_mark(&comm, &checkpoint, first), faults_case);
        arm(site, 0, nth);
        const hsort_status status = checkpoint_mark(&comm, &checkpoint, second);
        if (untouched(site, 0, nth)) {
            expect_team(&comm, HSORT_OK, status, faults_case);
            checkpoint_close(&checkpoint);
            finish(&work);
            break;
        }
        failed++;
        expect_team(&comm, HSORT_IO, status, work.directory);
        CHECK(has_ranges(&checkpoint, 1), "%s: %d ranges", faults_case, checkpoint.ranges);
        MPI_Barrier(comm.world);
        if (comm.rank == 0)
            check_names(&checkpoint, 0, faults_case);
        MPI_Barrier(comm.world);
        if (again)
            expect_team(&comm, HSORT_OK, checkpoint_mark(&comm, &checkpoint, second), faults_case);
        checkpoint_close(&checkpoint);

        MPI_Barrier(comm.world);
        expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), faults_case);
        CHECK(checkpoint.found && has_ranges(&checkpoint, again || checkpoint.ranges == 2 ? 2 : 1),
              "%s: then %d ranges", faults_case, checkpoint.ranges);
        late += checkpoint.ranges == 2 && !again;
        checkpoint_close(&checkpoint);
        finish(&work);
    }
    faults_watch(0);
    // The fsync, the rename, and the directory's fsync, which comes too late.
    CHECK(failed == (site == FAULT_COMMIT ? 3 : 1), "site %d failed %d times", site, failed);
    CHECK(late == (site == FAULT_COMMIT && !again), "site %d: %d came late", site, late);
}

/* Rank 0 reads the manifest. */
static void test_failing_read(enum fault_site site)
{
    const struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    checkpoint_close(&checkpoint);
    arm(site, 0, 1);
    expect_team(&comm, HSORT_IO, open_work(&comm, &work, &checkpoint), "manifest: ");
    finish(&work);
}

static void test_failures(void)
{
    const struct work work = make_work(HSORT_U32);
    put_input(&work, 1009);
    finish(&work);
    test_failing_begin(FAULT_WRITE);
    test_failing_begin(FAULT_COMMIT);
    for (int again = 0; again < 2; again++) {
        test_failing_mark(FAULT_WRITE, again);
        test_failing_mark(FAULT_COMMIT, again);
    }
    test_failing_read(FAULT_READ);
    test_failing_read(FAULT_SHORT);
}
#else
static void test_failures(void)
{
    if (comm.rank == 0)
        printf("skipped failures: not a build with HYPERSORT_FAULTS\n");
}
#endif

static void test_all(void)
{
    draw_seed();
    test_leftovers();
    test_made_directory();
    test_planted();
    test_marks(0);
    test_marks(1);
    test_marks(300);
    test_failures();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
