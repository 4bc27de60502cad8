/* Key files when something fails between opening and commit, on the first, a middle or the last rank: the
 * same status everywhere, the text names rank and file, no temporary is left, and an older output is as it
 * was. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include "kernels/base/fault.h"
#include "src/files/file_internal.h"
#include "tests/support/files.h"

/* Old output: must be as it was after every failure. */
static void put_old(void)
{
    put_file(in_dir("out.npy"), "old", 3);
}

static void check_old(const char *what)
{
    char bytes[8];
    int fd = open(in_dir("out.npy"), O_RDONLY);
    CHECK(fd >= 0 && read(fd, bytes, sizeof bytes) == 3 && memcmp(bytes, "old", 3) == 0,
          "%s: old output touched", what);
    close(fd);
    MPI_Barrier(comm.world);
}

static void test_failing_rank(int rank)
{
    struct file_out file;
    expect(HSORT_OK, create_keys(in_dir("out.npy"), FILE_AUTO, HSORT_U64, 100, NULL, &file), "out.npy",
           "create");
    hsort_status mine = HSORT_OK;
    if (comm.rank == rank)
        mine = status_fail(HSORT_DEVICE_MEMORY, "rank %d of the test gives up", rank);
    expect(HSORT_DEVICE_MEMORY, file_commit(&comm, &file, mine), "gives up", "one rank's failure");
    check_old("one rank's failure");
}

/* The file is cut to 100 keys after it was opened: those who read beyond must see it, and all must hear of
 * it. */
static void test_cut_while_read(void)
{
    const hsort_type type = HSORT_U32;
    const char *path = in_dir("shrinking.bin");
    struct file_in file;
    uint32_t keys[1000];
    expect(HSORT_OK, write_keys(path, FILE_RAW, type, 1000), path, "writing");
    expect(HSORT_OK, open_keys(path, FILE_RAW, &type, &file), path, "opening");
    CHECK(comm.rank != 0 || truncate(path, 402) == 0, "truncate");
    MPI_Barrier(comm.world);
    const int64_t first = even_begin(1000, comm.rank), mine = even_begin(1000, comm.rank + 1) - first;
    hsort_status status = file_read(&file, first, mine, keys);
    CHECK(status == (first + mine > 100 ? HSORT_IO : HSORT_OK), "rank %d: %s", comm.rank, status_text());
    expect(HSORT_IO, comm_agree(&comm, status), path, "cut while read");
    CHECK(strstr(comm.error, "cut short while it was read"), "%s", comm.error);
    file_close(&file);
}

/* Rank 0 writes to a file, at this time. */
static void write_at(const char *path, struct timespec time)
{
    const struct timespec times[2] = {time, time};
    const int fd = comm.rank == 0 ? open(path, O_WRONLY) : -1;
    CHECK(comm.rank != 0 || (pwrite(fd, "new", 3, 40) == 3 && futimens(fd, times) == 0), "pwrite");
    close(fd);
    MPI_Barrier(comm.world);
}

/* A file that is written to while it is read: whoever looks afterwards sees it, and all hear of it. One that is given another
 * name, or replaced by another file, is read to its end as it was. */
static void test_changed_while_read(void)
{
    const hsort_type type = HSORT_U32;
    const char *path = in_dir("changing.bin"), *other = in_dir("other.bin");
    struct file_in file;
    uint32_t key;
    expect(HSORT_OK, write_keys(path, FILE_RAW, type, 1000), path, "writing");
    expect(HSORT_OK, write_keys(other, FILE_RAW, type, 1000), other, "writing");
    expect(HSORT_OK, open_keys(path, FILE_RAW, &type, &file), path, "opening");
    CHECK(file_read(&file, 10, 1, &key) == HSORT_OK && file_check_unchanged(&file) == HSORT_OK, "%s",
          status_text());
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || rename(other, path) == 0, "rename");
    MPI_Barrier(comm.world);
    expect(HSORT_OK, comm_agree(&comm, file_check_unchanged(&file)), path, "replaced while read");
    file_close(&file);

    // A second later, and a moment later.
    static const struct timespec later[] = {{1000000001, 1}, {1000000001, 2}};
    write_at(path, (struct timespec){1000000000, 1});
    for (int i = 0; i < 2; i++) {
        expect(HSORT_OK, open_keys(path, FILE_RAW, &type, &file), path, "opening");
        write_at(path, later[i]);
        const hsort_status status = comm.rank == comm.size - 1 ? file_check_unchanged(&file) : HSORT_OK;
        expect(HSORT_IO, comm_agree(&comm, status), path, "changed while read");
        CHECK(strstr(comm.error, "was changed while it was read"), "%s", comm.error);
        file_close(&file);
    }
}

/* The last rank finds another file of the same name, of the same size or not. */
static void test_other_file(int64_t count)
{
    const hsort_type type = HSORT_U32;
    char here[PATH_MAX];
    struct file_in file;
    if (comm.size == 1)
        return;
    expect(HSORT_OK, write_keys(in_dir("twin.bin"), FILE_RAW, type, 100), "twin.bin", "writing");
    if (comm.rank == 0)
        mkdir(in_dir("elsewhere"), 0777);
    MPI_Barrier(comm.world);
    expect(HSORT_OK, write_keys(in_dir("elsewhere/twin.bin"), FILE_RAW, type, count), "twin.bin", "writing");
    CHECK(getcwd(here, sizeof here), "getcwd");
    CHECK(chdir(in_dir(comm.rank == comm.size - 1 ? "elsewhere" : ".")) == 0, "chdir");
    const hsort_status status = open_keys("twin.bin", FILE_RAW, &type, &file);
    CHECK(chdir(here) == 0, "chdir");
    expect(HSORT_ARGUMENT, status,
           count == 100 ? "twin.bin: is another file for rank 0"
                        : "twin.bin: has 396 bytes here and 400 on rank 0",
           "another file");
}

/* How often a file can still be given a second name, and whether NFS loses the answer and asks again: the program is linked so that
 * link() asks here. */
static int links_left = INT_MAX;
static bool answers_are_lost;
int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);

int __wrap_link(const char *from, const char *to)
{
    if (access(from, F_OK) == 0 && links_left-- <= 0) {
        errno = EPERM;
        return -1;
    }
    const int failed = __real_link(from, to);
    if (failed || !answers_are_lost)
        return failed;
    errno = EEXIST;
    return -1;
}

/* What the next close() says; 0: the truth. The program is linked so that close() asks here. */
static int close_error;
int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
    const int failed = __real_close(fd), error = close_error;
    close_error = 0;
    if (error == 0)
        return failed;
    errno = error;
    return -1;
}

/* A file system may say as late as that, of a quota or a lost server, that bytes are not there; but a signal is no such thing. */
static void test_failing_close(int rank)
{
    static const int errors[] = {EDQUOT, EIO, EINTR};
    struct file_out file;
    for (int i = 0; i < 3; i++) {
        const bool fails = errors[i] != EINTR;
        const char *name = fails ? "out.npy" : "interrupted.npy";
        expect(HSORT_OK, create_keys(in_dir(name), FILE_AUTO, HSORT_U64, 100, NULL, &file), name, "create");
        close_error = comm.rank == rank ? errors[i] : 0;
        expect(fails ? HSORT_IO : HSORT_OK, file_commit(&comm, &file, HSORT_OK),
               "out.npy: cannot be closed: ", "a close that fails");
        CHECK(close_error == 0, "nothing was closed");
        check_old("a close that fails");
    }
}

/* As many outputs at a time as there may be, which appear together or not at all, and one more. */
static void test_several_outputs(void)
{
    static const char *const names[FILE_OUTPUTS] = {"first.bin", "second.bin", "third.bin", "fourth.bin",
                                                   "fifth.bin"};
    for (int fails = 1; fails >= 0; fails--) {
        struct file_out files[FILE_OUTPUTS], *list[FILE_OUTPUTS], more;
        for (int i = 0; i < FILE_OUTPUTS; i++) {
            list[i] = &files[i];
            CHECK(create_keys(in_dir(names[i]), FILE_AUTO, HSORT_U64, 0, NULL, &files[i]) == HSORT_OK, "%s",
                  comm.error);
        }
        CHECK(create_keys(in_dir("more.bin"), FILE_AUTO, HSORT_U64, 0, NULL, &more) == HSORT_INTERNAL,
              "one more");
        status_clear();
        const hsort_status mine =
            fails && comm.rank == comm.size - 1 ? status_fail(HSORT_IO, "first.bin: bad luck") : HSORT_OK;
        expect(fails ? HSORT_IO : HSORT_OK, file_commit_all(&comm, list, FILE_OUTPUTS, mine), "first.bin",
               "several outputs");
        for (int i = 0; i < FILE_OUTPUTS; i++)
            CHECK((access(in_dir(names[i]), F_OK) == 0) == !fails, "%s", names[i]);
        MPI_Barrier(comm.world);
    }
}

/* Outputs that replace nothing: the first names are free, then the second or both are taken while the files are written. The
 * program's link() may fail, as where a file system has no second names, or only seem to. */
static void test_no_clobber(bool without_link)
{
    static const char *const names[] = {"free.bin", "taken.bin"};
    for (int taken = 0; taken < 4; taken++) {
        struct file_out files[2], *list[2] = {&files[0], &files[1]};
        for (int i = 0; i < 2; i++) {
            struct file_target target = even_target(in_dir(names[i]), FILE_RAW, HSORT_U64, 100, NULL);
            target.no_clobber = true;
            if (comm.rank == 0)
                unlink(in_dir(names[i]));
            MPI_Barrier(comm.world);
            CHECK(file_create(&comm, &target, &files[i]) == HSORT_OK, "%s", comm.error);
            if (taken >> i & 1)
                put_file(in_dir(names[i]), "old", 3);
            CHECK((file_check_absent(in_dir(names[i]), comm.rank) == HSORT_OK) == !(taken >> i & 1), "%s",
                  names[i]);
            status_clear();
        }
        links_left = without_link ? 0 : INT_MAX;
        expect(taken ? HSORT_ARGUMENT : HSORT_OK, file_commit_all(&comm, list, 2, HSORT_OK),
               taken & 1 ? "free.bin: is there already" : "taken.bin: is there already", "no_clobber");
        links_left = INT_MAX;
        MPI_Barrier(comm.world);
        for (int i = 0; i < 2; i++) {
            struct stat there = {0};
            const bool any = stat(in_dir(names[i]), &there) == 0;
            const off_t wanted = taken == 0 ? 800 : taken >> i & 1 ? 3 : 0;
            CHECK(any == (wanted > 0) && there.st_size == wanted && there.st_nlink == (nlink_t)any,
                  "%s: %d taken: %ld bytes", names[i], taken, (long)there.st_size);
        }
        CHECK(leftovers() == 0, "%d taken: a temporary is left", taken);
        MPI_Barrier(comm.world);
    }
}

#ifdef HSORT_FAULTS
/* Several outputs, of which one, or none (FILE_OUTPUTS), cannot be named on rank 0: then all are as before. The first and the
 * third replace a file; of the third no second name can be had where `without_link` says so, and then it cannot come back. */
static void test_names_taken_back(int fails, bool without_link)
{
    static const char *const names[FILE_OUTPUTS] = {"was.bin", "new.bin", "was too.bin", "new too.bin",
                                                   "was as well.bin"};
    struct file_out files[FILE_OUTPUTS], *list[FILE_OUTPUTS];
    char bytes[16];
    for (int i = 0; i < FILE_OUTPUTS; i++) {
        list[i] = &files[i];
        if (i % 2 == 0)
            put_file(in_dir(names[i]), "old", 3);
        else if (comm.rank == 0)
            unlink(in_dir(names[i]));
        MPI_Barrier(comm.world);
        CHECK(create_keys(in_dir(names[i]), FILE_AUTO, HSORT_U64, 0, NULL, &files[i]) == HSORT_OK, "%s",
              comm.error);
    }
    if (comm.rank == 0 && fails < FILE_OUTPUTS)
        fault_set(FAULT_COMMIT, FILE_OUTPUTS + 1 + fails);
    links_left = without_link ? 1 : INT_MAX;
    const hsort_status status = file_commit_all(&comm, list, FILE_OUTPUTS, HSORT_OK);
    links_left = INT_MAX;
    CHECK(status == (fails < FILE_OUTPUTS ? HSORT_IO : HSORT_OK), "%d: %s", (int)status, comm.error);
    const bool stays =
        without_link && fails >= 3 && fails < FILE_OUTPUTS; // the third was named, and is one of those that cannot come back
    CHECK(fails == FILE_OUTPUTS ||
              (strstr(comm.error, "cannot be given its name") && strstr(comm.error, names[fails])),
          "'%s'", comm.error);
    CHECK(fails == FILE_OUTPUTS ||
              (strstr(comm.error, "; 1 other could not be taken back and has its name") != NULL) == stays,
          "'%s'", comm.error);
    status_clear();
    MPI_Barrier(comm.world); // rank 0 removes what it has kept
    for (int i = 0; i < FILE_OUTPUTS; i++) {
        const int fd = open(in_dir(names[i]), O_RDONLY);
        const bool is_new = fails == FILE_OUTPUTS || (stays && i == 2);
        CHECK(is_new || (fd >= 0) == (i % 2 == 0), "%s of %d", names[i], fails);
        CHECK(fd < 0 || read(fd, bytes, sizeof bytes) == (is_new ? 0 : 3), "%s of %d: another file", names[i],
              fails);
        CHECK(fd >= 0 || !is_new, "%s of %d lacks", names[i], fails);
        if (fd >= 0)
            close(fd);
    }
    CHECK(leftovers() == 0, "%d: a temporary or a kept name is left", fails);
    MPI_Barrier(comm.world);
}
#endif

enum { ME = 65534, OTHER = 65533 };

/* Can this program become another user, who sees the files of the test? Root alone can give files to others, too. */
static bool can_be_another(void)
{
    struct stat facts;
    if (geteuid() != 0 || seteuid(ME) != 0)
        return false;
    const bool sees = stat(directory, &facts) == 0;
    CHECK(seteuid(0) == 0, "root is lost");
    return sees;
}

/* A file of another user in a sticky directory is refused before anything is written; not one's own, nor any in one's own
 * directory, nor where the directory is not sticky. */
static void test_sticky(void)
{
    static const struct {
        uid_t file, folder, user;
        mode_t mode;
        bool refused;
    } cases[] = {{OTHER, OTHER, ME, 01777, true}, {OTHER, 0, ME, 01777, true},
                 {0, OTHER, ME, 01777, true},     {ME, OTHER, ME, 01777, false},
                 {OTHER, ME, ME, 01777, false},   {OTHER, OTHER, ME, 0777, false},
                 {OTHER, OTHER, 0, 01777, false}};
    struct stat there;
    char chosen[PATH_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_old();
        CHECK(comm.rank != 0 ||
                  (chown(directory, cases[i].folder, 0) == 0 && chmod(directory, cases[i].mode) == 0 &&
                   chown(in_dir("out.npy"), cases[i].file, 0) == 0),
              "case %zu: chown", i);
        MPI_Barrier(comm.world);
        // No messages until root is back: MPI may not reach into other ranks now.
        CHECK(seteuid(cases[i].user) == 0, "case %zu: seteuid", i);
        const hsort_status status = file_choose_path(in_dir("out.npy"), comm.rank, NULL, chosen, &there);
        CHECK(status == (cases[i].refused ? HSORT_IO : HSORT_OK) &&
                  (strstr(status_text(), "out.npy: cannot replace: Operation not permitted") != NULL) ==
                      cases[i].refused,
              "case %zu: %d, '%s'", i, (int)status, status_text());
        status_clear();
        CHECK(file_choose_path(in_dir("new.npy"), comm.rank, NULL, chosen, &there) == HSORT_OK,
              "case %zu: '%s'", i, status_text());
        CHECK(file_check_absent(in_dir("out.npy"), comm.rank) == HSORT_ARGUMENT &&
                  strstr(status_text(), "is there already"),
              "case %zu: '%s'", i, status_text());
        status_clear();
        CHECK(seteuid(0) == 0, "case %zu: root is lost", i);
        MPI_Barrier(comm.world);
        // Linux may refuse even root to write to the files of others in such a directory.
        CHECK(comm.rank != 0 || (chown(directory, 0, 0) == 0 && chmod(directory, 0700) == 0), "chown");
    }
}

/* Another user replaces a file whose group it cannot give: then the group may do no more than all others. */
static void test_lost_group(void)
{
    const struct {
        gid_t group;
        mode_t before, after;
    } cases[] = {{OTHER, 0664, 0644}, {OTHER, 0660, 0600}, {getegid(), 0660, 0660}};
    struct comm self;
    struct file_out file;
    struct stat facts;
    const uint64_t key = 0;
    const char *path = in_dir("group.npy");
    CHECK(comm_open(MPI_COMM_SELF, &self) == HSORT_OK && chown(directory, ME, 0) == 0, "chown");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int fd = open(path, O_RDWR | O_CREAT, 0600);
        CHECK(fchown(fd, ME, cases[i].group) == 0 && fchmod(fd, cases[i].before) == 0, "fchown");
        close(fd);
        CHECK(seteuid(ME) == 0, "seteuid");
        const struct file_target target = {.path = path, .type = HSORT_U64, .count = 1};
        hsort_status status = file_create(&self, &target, &file);
        if (status == HSORT_OK)
            status = file_commit(&self, &file, file_write(&file, 0, 1, &key));
        CHECK(seteuid(0) == 0, "root is lost");
        CHECK(status == HSORT_OK && stat(path, &facts) == 0 && (facts.st_mode & 0777) == cases[i].after,
              "case %zu: mode %o, %s", i, (unsigned)facts.st_mode, self.error);
    }
    CHECK(unlink(path) == 0 && chown(directory, 0, 0) == 0, "chown");
    comm_close(&self);
}

/* A file size limit stands in for a full disk: an error, not a signal that kills. */
static void test_size_limit(void)
{
    struct rlimit limit, small;
    struct file_out file;
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &small);
    hsort_status status = create_keys(in_dir("out.npy"), FILE_AUTO, HSORT_U64, 1000, NULL, &file);
    setrlimit(RLIMIT_FSIZE, &limit);
    expect(HSORT_IO, status, "out.npy: cannot reserve 8128 bytes: File too large", "size limit");
    check_old("size limit");
}

/* Each stop signal, in a child of rank 0 or of the last rank, ends it and takes the temporary with it. The
 * commit then finds nothing to give a name to. */
static void test_signals(int signal_number, int rank)
{
    struct sigaction before, during, after;
    struct file_out file;
    sigaction(signal_number, NULL, &before);
    expect(HSORT_OK, create_keys(in_dir("out.npy"), FILE_AUTO, HSORT_U64, 100, NULL, &file), "out.npy",
           "create");
    sigaction(signal_number, NULL, &during);
    CHECK(during.sa_handler != before.sa_handler, "no handler for signal %d", signal_number);
    if (comm.rank == rank) {
        CHECK(leftovers() == 1, "no temporary");
        end_child_by(signal_number);
        CHECK(leftovers() == 0, "signal %d left the temporary", signal_number);
    }
    MPI_Barrier(comm.world);
    expect(HSORT_IO, file_commit(&comm, &file, HSORT_OK), "out.npy", "commit after a signal");
    sigaction(signal_number, NULL, &after);
    CHECK(after.sa_handler == before.sa_handler, "the handler of signal %d was not restored", signal_number);
    check_old("signal");
}

/* A signal that is ignored, as nohup has it, stays so. */
static void test_ignored(void)
{
    struct sigaction ignored = {.sa_handler = SIG_IGN}, before, after;
    struct file_out file;
    sigaction(SIGHUP, &ignored, &before);
    expect(HSORT_OK, create_keys(in_dir("nohup.npy"), FILE_AUTO, HSORT_U64, 0, NULL, &file), "", "create");
    raise(SIGHUP);
    expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), "", "commit after an ignored signal");
    sigaction(SIGHUP, &before, &after);
    CHECK(after.sa_handler == SIG_IGN, "SIGHUP is not ignored any more");
}

#ifdef HSORT_FAULTS
static void arm(enum fault_site site, int rank, int nth)
{
    if (comm.rank == rank)
        fault_set(site, nth);
}

/* Each fault site of the file layer, on `rank`. */
static void test_faults(int rank)
{
    char who[32];
    struct file_in file;
    uint64_t keys[1000];
    snprintf(who, sizeof who, "rank %d on ", rank);
    put_npy(in_dir("in.npy"), 1000, 1000);
    for (int site = FAULT_READ; site <= FAULT_SHORT; site++) {
        expect(HSORT_OK, open_keys(in_dir("in.npy"), FILE_AUTO, NULL, &file), "in.npy", "opening");
        arm((enum fault_site)site, rank, 1);
        hsort_status status = file_read(&file, 100, 10, keys);
        CHECK(status == (comm.rank == rank ? HSORT_IO : HSORT_OK), "rank %d: %s", comm.rank, status_text());
        expect(HSORT_IO, comm_agree(&comm, status), "in.npy", "fault in a read");
        CHECK(strncmp(comm.error, who, strlen(who)) == 0, "%s", comm.error);
        file_close(&file);
        if (rank == 0) { // the header is read there
            arm((enum fault_site)site, 0, 1);
            expect(HSORT_IO, open_keys(in_dir("in.npy"), FILE_AUTO, NULL, &file), "in.npy",
                   "fault in a header");
        }
    }
    // On rank 0 the first write is the header's, which file_create() does.
    for (int nth = 1; nth <= (rank == 0 ? 2 : 1); nth++) {
        arm(FAULT_WRITE, rank, nth);
        expect(HSORT_IO, write_keys(in_dir("out.npy"), FILE_AUTO, HSORT_U64, 1000), "out.npy",
               "fault in a write");
        CHECK(strncmp(comm.error, who, strlen(who)) == 0 && strstr(comm.error, "No space left"), "%s",
              comm.error);
        check_old("fault in a write");
        arm(FAULT_COMMIT, rank, nth);
        expect(HSORT_IO, write_keys(in_dir("out.npy"), FILE_AUTO, HSORT_U64, 1000), "out.npy",
               "fault in a commit");
        CHECK(strncmp(comm.error, who, strlen(who)) == 0, "%s", comm.error);
        check_old("fault in a commit");
    }
}
#else
static void test_faults(int rank)
{
    if (comm.rank == 0 && rank == 0)
        printf("skipped faults: not a build with HYPERSORT_FAULTS\n");
}
#endif

static void test_all(void)
{
    test_cut_while_read();
    test_changed_while_read();
    test_other_file(100);
    test_other_file(99);
    test_several_outputs();
    test_no_clobber(false);
    test_no_clobber(true);
    answers_are_lost = true;
    test_no_clobber(false);
    answers_are_lost = false;
#ifdef HSORT_FAULTS
    for (int fails = 0; fails <= FILE_OUTPUTS; fails++)
        for (int without_link = 0; without_link < 2; without_link++)
            test_names_taken_back(fails, without_link);
#endif
    if (can_be_another()) {
        test_sticky();
        if (comm.rank == 0)
            test_lost_group();
        MPI_Barrier(comm.world);
    } else if (comm.rank == 0)
        printf("skipped sticky directories: this is not root, or others do not see the files\n");
    put_old();
    test_size_limit();
    const int ranks[] = {0, comm.size / 2, comm.size - 1};
    for (int i = 0; i < 3; i++) {
        test_failing_rank(ranks[i]);
        test_failing_close(ranks[i]);
        test_faults(ranks[i]);
    }
    test_ignored();
    const int signals[] = {SIGTERM, SIGUSR1, SIGINT, SIGHUP, SIGQUIT, SIGUSR2, SIGXCPU};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        signal(signals[i], SIG_DFL); // who ignores it, as nohup does, has no handler of ours
        test_signals(signals[i], 0);
        test_signals(signals[i], comm.size - 1);
    }
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
