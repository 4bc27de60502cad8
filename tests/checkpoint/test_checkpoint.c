/* Checkpoints over several ranks: what some ranks saved any number of others read; what a killed run left goes; a failure at
 * any step leaves the checkpoint before. Keys are such that their place and the number of the save say what they are. */
#include "tests/checkpoint/checkpoints.h"
#include "kernels/base/fault.h"
#include "tests/support/faults.h"

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

/* ---- Saved by some, read by others --------------------------------------------------------------------- */

static void open_and_save(const struct work *work, int ranks, enum checkpoint_stage stage, enum layout layout,
                          int64_t version)
{
    bool in;
    struct comm team = open_team(ranks, &in);
    if (in) {
        struct checkpoint checkpoint;
        expect_team(&team, HSORT_OK, open_work(&team, work, &checkpoint), "opening");
        CHECK(checkpoint.found == (version > 1), "found %d", checkpoint.found);
        if (checkpoint.stage != CHECKPOINT_BEGUN)
            read_all(&team, &checkpoint, version - 1, "before the save");
        expect_team(&team, HSORT_OK, save(&team, &checkpoint, stage, layout, version), "saving");
        CHECK(checkpoint.stage == stage && checkpoint.runs == ranks, "stage %d, %d runs", checkpoint.stage,
              checkpoint.runs);
        read_all(&team, &checkpoint, version, "after the save");
        MPI_Barrier(team.world);
        if (team.rank == 0)
            check_names(&checkpoint, 2, "after the save");
        MPI_Barrier(team.world);
        checkpoint_close(&checkpoint);
        comm_close(&team);
    }
    MPI_Barrier(comm.world);
}

static void open_and_read(const struct work *work, int ranks, int saved_by, enum checkpoint_stage stage,
                          int64_t version)
{
    bool in;
    struct comm team = open_team(ranks, &in);
    if (in) {
        struct checkpoint checkpoint;
        expect_team(&team, HSORT_OK, open_work(&team, work, &checkpoint), "opening again");
        CHECK(checkpoint.found && checkpoint.stage == stage && checkpoint.runs == saved_by &&
                  memcmp(checkpoint.fingerprint, fingerprint, sizeof fingerprint) == 0,
              "stage %d, %d runs", checkpoint.stage, checkpoint.runs);
        read_all(&team, &checkpoint, version, "opened again");
        checkpoint_close(&checkpoint);
        comm_close(&team);
    }
    MPI_Barrier(comm.world);
}

/* Three saves, each by another number of ranks, and reads by others: more runs than ranks, more ranks than runs. */
static void test_ranks(hsort_type type, int64_t count)
{
    struct work work = make_work(type);
    put_input(&work, count);
    // Neither of these is a name of ours.
    if (comm.rank == 0)
        mkdir(work.directory, 0777);
    put_file(in_dir("checkpoint/run-00000000000000ff-1-01.keys"), "x", 1);
    put_file(in_dir("checkpoint/run-1-1-1.keys"), "x", 1);
    int ranks = 0;
    for (int version = 1; version <= 3; version++) {
        ranks = (int)(check_random(&seed) % (uint64_t)comm.size) + 1;
        const enum checkpoint_stage stage = version == 1 ? CHECKPOINT_RUNS : CHECKPOINT_SORTED;
        open_and_save(&work, ranks, stage, (enum layout)(check_random(&seed) % LAYOUTS), version);
        const int readers[] = {1, comm.size, (int)(check_random(&seed) % (uint64_t)comm.size) + 1};
        for (int i = 0; i < 3; i++)
            open_and_read(&work, readers[i], ranks, stage, version);
    }
    finish(&work);
    if (comm.rank == 0)
        CHECK(count_names(work.directory) == 2, "what is not ours is gone");
}

/* ---- What is left of runs that were killed ------------------------------------------------------------- */

static void test_leftovers(void)
{
    struct work work = make_work(HSORT_F64);
    struct checkpoint checkpoint;
    put_input(&work, 100);
    finish(&work);
    put_file(in_dir("checkpoint/.hypersort-manifest"), "hypersort check", 15);
    put_file(in_dir("checkpoint/run-0123456789abcdef-3-0.keys"), "x", 1);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "leftovers");
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        check_names(&checkpoint, 2, "leftovers");
    expect_team(&comm, HSORT_OK, save(&comm, &checkpoint, CHECKPOINT_RUNS, EVEN, 1), "saving");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/run-%016" PRIx64 "-%d-%d.keys", work.directory, checkpoint.id, 2, 0);
    put_file(path, "half a run", 10);
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "leftovers");
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        check_names(&checkpoint, 2, "leftovers of the next generation");
    read_all(&comm, &checkpoint, 1, "beside leftovers");
    checkpoint_close(&checkpoint);
    finish(&work);
}

/* Links under the names that the next save gives its files lead to a file of the user's: it stays as it is, and so do its
 * readers' rights; nobody else can read what is saved. */
static void test_planted(void)
{
    const struct work work = make_work(HSORT_U64);
    struct checkpoint checkpoint;
    struct stat facts;
    char path[PATH_MAX], victim[8] = "";
    put_input(&work, 100);
    finish(&work);
    put_file(in_dir("victim"), "mine", 4);
    CHECK(comm.rank != 0 || symlink("../victim", in_dir("checkpoint/.hypersort-manifest")) == 0, "symlink");
    MPI_Barrier(comm.world);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "a planted link");
    snprintf(path, sizeof path, "%s/run-%016" PRIx64 "-1-0.keys", work.directory, checkpoint.id);
    CHECK(comm.rank != 0 || symlink("../victim", path) == 0, "symlink");
    MPI_Barrier(comm.world);
    expect_team(&comm, HSORT_OK, save(&comm, &checkpoint, CHECKPOINT_RUNS, EVEN, 1), "saving");
    CHECK(lstat(path, &facts) == 0 && S_ISREG(facts.st_mode) && (facts.st_mode & 077) == 0, "mode %o",
          (unsigned)facts.st_mode);
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

static void test_marks(int64_t keys)
{
    const struct work work = make_work(HSORT_U64);
    struct checkpoint checkpoint;
    bool *written = calloc((size_t)keys + 1, 1);
    put_input(&work, keys);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    for (int round = 0; round < 6; round++) {
        // Every rank draws every rank's range: all know what must come of it.
        struct checkpoint_range mine = {0, 0};
        for (int rank = 0; rank < comm.size; rank++) {
            const int64_t first = (int64_t)(check_random(&seed) % (uint64_t)(keys + 1));
            int64_t count = (int64_t)(check_random(&seed) % (uint64_t)(keys / (2 * comm.size) + 2));
            count = count > keys - first ? keys - first : count;
            memset(written + first, 1, (size_t)count);
            if (rank == comm.rank)
                mine = (struct checkpoint_range){first, count};
        }
        expect_team(&comm, HSORT_OK, checkpoint_mark(&comm, &checkpoint, mine), "marking");
        check_marks(&checkpoint, written, "marked");
        if (round == 2)
            expect_team(&comm, HSORT_OK, save(&comm, &checkpoint, CHECKPOINT_SORTED, EVEN, 1), "saving");
        if (round % 2 == 0) {
            checkpoint_close(&checkpoint);
            MPI_Barrier(comm.world);
            expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening again");
        }
        check_marks(&checkpoint, written, "read again");
    }
    const struct checkpoint_range beyond = {keys - 1, comm.rank == comm.size - 1 ? 2 : 0};
    if (keys > 0)
        expect_team(&comm, HSORT_INTERNAL, checkpoint_mark(&comm, &checkpoint, beyond), "of ");
    check_marks(&checkpoint, written, "after a mark that cannot be");
    read_all(&comm, &checkpoint, 1, "beside marks");

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

static void test_counts(void)
{
    const struct work work = make_work(HSORT_U64);
    struct checkpoint checkpoint;
    put_input(&work, 100);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    uint64_t keys[100] = {0};
    expect_team(
        &comm, HSORT_INTERNAL,
        checkpoint_save(&comm, &checkpoint, CHECKPOINT_RUNS, keys, comm.rank == 0 ? 99 : 0, fingerprint),
        "99 keys are to be saved, of 100");
    CHECK(checkpoint.stage == CHECKPOINT_BEGUN, "stage %d", checkpoint.stage);
    checkpoint_close(&checkpoint);
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

/* A save of SORTED over RUNS fails at every passage of a site: RUNS must be there, in this process and for the next start, or,
 * if only the directory could not be brought to disk after the rename, SORTED. Saved once more, if `again`, it is there. */
static void test_failing_save(enum fault_site site, int rank, bool again)
{
    const struct work work = make_work(HSORT_U32);
    int failed = 0, late = 0;
    for (int nth = 1;; nth++) {
        struct checkpoint checkpoint;
        snprintf(faults_case, sizeof faults_case, "save, site %d, rank %d, passage %d", site, rank, nth);
        faults_watch(60);
        expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), faults_case);
        expect_team(&comm, HSORT_OK, save(&comm, &checkpoint, CHECKPOINT_RUNS, EVEN, 1), faults_case);
        arm(site, rank, nth);
        const hsort_status status = save(&comm, &checkpoint, CHECKPOINT_SORTED, GROWING, 2);
        if (untouched(site, rank, nth)) {
            expect_team(&comm, HSORT_OK, status, faults_case);
            checkpoint_close(&checkpoint);
            finish(&work);
            break;
        }
        failed++;
        expect_team(&comm, HSORT_IO, status, work.directory);
        CHECK(checkpoint.stage == CHECKPOINT_RUNS, "%s: stage %d", faults_case, checkpoint.stage);
        read_all(&comm, &checkpoint, 1, faults_case);
        // What was saved in vain is gone, unless the manifest may name it already.
        MPI_Barrier(comm.world);
        if (comm.rank == 0 && !strstr(comm.error, "its directory cannot be brought to disk"))
            check_names(&checkpoint, 2, faults_case);
        MPI_Barrier(comm.world);
        if (again) {
            expect_team(&comm, HSORT_OK, save(&comm, &checkpoint, CHECKPOINT_SORTED, GROWING, 2),
                        faults_case);
            CHECK(checkpoint.generation == 3, "%s: the names of what failed again", faults_case);
        }
        checkpoint_close(&checkpoint);

        MPI_Barrier(comm.world);
        expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), faults_case);
        const bool is_late = checkpoint.stage == CHECKPOINT_SORTED && !again;
        CHECK(checkpoint.stage == (again || is_late ? CHECKPOINT_SORTED : CHECKPOINT_RUNS), "%s",
              faults_case);
        late += is_late;
        read_all(&comm, &checkpoint, checkpoint.stage == CHECKPOINT_RUNS ? 1 : 2, faults_case);
        MPI_Barrier(comm.world);
        if (comm.rank == 0)
            check_names(&checkpoint, 2, faults_case);
        checkpoint_close(&checkpoint);
        finish(&work);
    }
    faults_watch(0);
    // Of a run: its write or its fsync. Rank 0 also writes the manifest; its last commit comes after the rename.
    const int wanted = 1 + (rank == 0) * (site == FAULT_COMMIT ? 4 : 1);
    CHECK(failed == wanted, "site %d on rank %d failed %d times, not %d", site, rank, failed, wanted);
    CHECK(late == (rank == 0 && site == FAULT_COMMIT && !again), "site %d on rank %d: %d came late", site,
          rank, late);
}

/* The same for beginning and for marks, which rank 0 does, and for reading. */
static void test_failing_rank_0(enum fault_site site)
{
    struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    snprintf(work.directory, sizeof work.directory, "%s/begun", directory);
    for (int nth = 1;; nth++) {
        arm(site, 0, nth);
        hsort_status status = open_work(&comm, &work, &checkpoint);
        if (untouched(site, 0, nth))
            break;
        expect_team(&comm, HSORT_IO, status, work.directory);
        MPI_Barrier(comm.world);
        CHECK(access(work.directory, F_OK) != 0, "site %d, passage %d: the directory stays", site, nth);
        MPI_Barrier(comm.world);
    }
    for (int nth = 1;; nth++) {
        arm(site, 0, nth);
        const struct checkpoint_range mine = {comm.rank, 1};
        hsort_status status = checkpoint_mark(&comm, &checkpoint, mine);
        if (untouched(site, 0, nth))
            break;
        expect_team(&comm, HSORT_IO, status, work.directory);
        CHECK(checkpoint.ranges == 0, "%d ranges", checkpoint.ranges);
    }
    CHECK(checkpoint.ranges == 1 && checkpoint.written[0].count == comm.size, "%d ranges", checkpoint.ranges);
    checkpoint_close(&checkpoint);
    finish(&work);
    CHECK(comm.rank != 0 || rmdir(work.directory) == 0, "rmdir");
}

static void test_failing_read(enum fault_site site, int rank)
{
    const struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    uint32_t keys[10];
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    expect_team(&comm, HSORT_OK, save(&comm, &checkpoint, CHECKPOINT_RUNS, EVEN, 1), "saving");
    arm(site, rank, 1);
    hsort_status status = checkpoint_read(&checkpoint, 5, 10, keys);
    CHECK(status == (comm.rank == rank ? HSORT_IO : HSORT_OK), "%s", status_text());
    expect_team(&comm, HSORT_IO, comm_agree(&comm, status), "keys: ");
    read_all(&comm, &checkpoint, 1, "after a failed read");
    checkpoint_close(&checkpoint);
    if (rank == 0) { // it reads the manifest
        arm(site, rank, 1);
        expect_team(&comm, HSORT_IO, open_work(&comm, &work, &checkpoint), "manifest: ");
    }
    finish(&work);
}

static void test_failures(void)
{
    const struct work work = make_work(HSORT_U32);
    put_input(&work, 1009);
    finish(&work);
    const int ranks[] = {0, comm.size / 2, comm.size - 1};
    for (int i = 0; i < 3; i++) {
        for (int again = 0; again < 2; again++) {
            test_failing_save(FAULT_WRITE, ranks[i], again);
            test_failing_save(FAULT_COMMIT, ranks[i], again);
        }
        test_failing_read(FAULT_READ, ranks[i]);
        test_failing_read(FAULT_SHORT, ranks[i]);
    }
    test_failing_rank_0(FAULT_WRITE);
    test_failing_rank_0(FAULT_COMMIT);
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
    draw_seeds();
    test_ranks(HSORT_U32, 0);
    test_ranks(HSORT_F64, 1);
    for (int i = 0; i < 5; i++)
        test_ranks(i % 2 ? HSORT_U64 : HSORT_F32, (int64_t)(check_random(&seed) % 3000) + comm.size - 1);
    test_leftovers();
    test_planted();
    test_marks(0);
    test_marks(1);
    test_marks(300);
    test_counts();
    test_failures();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
