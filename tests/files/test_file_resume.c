/* An output that outlasts a stop: what was written is there again, on any number of ranks; a file that is not the same is
 * replaced; the signals of a stop leave the file, the others remove it; and where an output really goes. */
#include <fcntl.h>
#include <sys/stat.h>
#include "kernels/base/fault.h"
#include "tests/support/files.h"
#include "tests/support/watched_fsync.h"

static const int64_t count = 1000;
static char part[PATH_MAX]; /* the temporary name */

static hsort_status resume(const char *path, hsort_type type, int64_t keys, struct file_out *file, bool *kept)
{
    hsort_status status = resume_keys(path, type, keys, NULL, part, file, kept);
    if (status == HSORT_OK) {
        int64_t least, most;
        comm_range(&comm, *kept, &least, &most);
        CHECK(least == most, "kept on some ranks only");
    }
    return status;
}

/* Keys [first, first + keys) must be, or must not be, those that fill() puts there. */
static void check_back(const struct file_out *file, int64_t first, int64_t keys, bool written,
                       const char *what)
{
    uint64_t wanted[1000], found[1000];
    fill(wanted, first, keys, file->type);
    const int64_t key_bytes = (int64_t)hsort_type_bytes(file->type);
    CHECK(file_read_back_at(file, first * key_bytes, (size_t)(keys * key_bytes), found) == HSORT_OK, "%s: %s",
          what, status_text());
    const bool same = memcmp(wanted, found, (size_t)(keys * key_bytes)) == 0;
    CHECK(same == (written || keys == 0), "%s: keys from %" PRId64 " on", what, first);
}

/* In three starts: a part is written, the rest, and then it gets its name. */
static void test_three_starts(const char *name, hsort_type type)
{
    struct file_out file;
    bool kept;
    uint64_t keys[1000];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", in_dir(name));
    const int64_t first = even_begin(600, comm.rank), mine = even_begin(600, comm.rank + 1) - first;
    CHECK(watch_fsync(in_dir("")), "the directory of %s", path);
    expect(HSORT_OK, resume(path, type, count, &file, &kept), path, "first start");
    CHECK(!kept, "%s: kept what was not there", path);
    CHECK(comm.rank != 0 || watched_is_synced, "%s: its directory is not synced to disk", part);
    fill(keys, first, mine, type);
    CHECK(file_write(&file, first, mine, keys) == HSORT_OK, "%s", status_text());
    check_back(&file, first, mine, true, "at once");
    CHECK(file_read_back_at(&file, count * (int64_t)hsort_type_bytes(type), 1, keys) == HSORT_INTERNAL,
          "a read behind the end");
    status_clear();
    file_leave(&comm, &file);
    MPI_Barrier(comm.world);
    CHECK(access(part, F_OK) == 0 && access(path, F_OK) != 0, "%s: after a stop", path);
    MPI_Barrier(comm.world);

    expect(HSORT_OK, resume(path, type, count, &file, &kept), path, "second start");
    CHECK(kept, "%s: not kept", path);
    check_back(&file, 0, 600, true, "second start");
    check_back(&file, 600, 400, false, "second start");
    MPI_Barrier(comm.world);
    const int64_t next = 600 + even_begin(400, comm.rank), left = 600 + even_begin(400, comm.rank + 1) - next;
    fill(keys, next, left, type);
    CHECK(file_write(&file, next, left, keys) == HSORT_OK, "%s", status_text());
    file_leave(&comm, &file);
    MPI_Barrier(comm.world);

    expect(HSORT_OK, resume(path, type, count, &file, &kept), path, "third start");
    CHECK(kept, "%s: not kept", path);
    expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), path, "commit");
    CHECK(access(part, F_OK) != 0, "%s stays", part);
    struct file_in in;
    expect(HSORT_OK, open_keys(path, FILE_AUTO, &type, &in), path, "opening");
    uint64_t wanted[1000];
    fill(wanted, 0, count, type);
    CHECK(in.count == count && file_read(&in, 0, count, keys) == HSORT_OK &&
              memcmp(keys, wanted, (size_t)count * hsort_type_bytes(type)) == 0,
          "%s: other keys", path);
    file_close(&in);
    MPI_Barrier(comm.world);
}

/* What lies under the temporary name is of another kind: replaced, and all of it. */
static void test_replaced(void (*spoil)(void), const char *what)
{
    struct file_out file;
    bool kept;
    const char *path = in_dir("out.npy");
    uint64_t keys[1000];
    expect(HSORT_OK, resume(path, HSORT_U64, count, &file, &kept), path, what);
    fill(keys, 0, count, HSORT_U64);
    if (comm.rank == 0)
        CHECK(file_write(&file, 0, count, keys) == HSORT_OK, "%s", status_text());
    file_leave(&comm, &file);
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        spoil();
    MPI_Barrier(comm.world);
    expect(HSORT_OK, resume(path, HSORT_U64, count, &file, &kept), path, what);
    CHECK(!kept, "%s: kept", what);
    check_back(&file, 0, count, false, what);
    expect(HSORT_DEVICE_MEMORY, file_commit(&comm, &file, HSORT_DEVICE_MEMORY), "", what);
}

static void cut_it(void)
{
    CHECK(truncate(part, 128 + 999 * 8) == 0, "truncate");
}
static void lengthen_it(void)
{
    CHECK(truncate(part, 128 + 1001 * 8) == 0, "truncate");
}
static void remove_it(void)
{
    CHECK(unlink(part) == 0, "unlink");
}
static void damage_header(void)
{
    const int fd = open(part, O_WRONLY);
    CHECK(pwrite(fd, "i", 1, 22) == 1, "pwrite"); // '<u8' becomes '<i8', or so
    close(fd);
}
static void give_away(void)
{
    if (geteuid() == 0)
        CHECK(chown(part, 65534, (gid_t)-1) == 0, "chown");
    else
        remove_it();
}
static void name_it_twice(void)
{
    CHECK(link(part, in_dir("second")) == 0, "link"); // what is written would change this, too
}
static void put_fifo(void)
{
    CHECK(unlink(part) == 0 && mkfifo(part, 0666) == 0, "mkfifo");
}
static void put_link(void)
{
    CHECK(unlink(part) == 0 && symlink("elsewhere", part) == 0, "symlink");
}

/* A link under the temporary name leads to the input, whose size and header are those of the output: the input stays as it is,
 * and what gets the output's name is no link. */
static void test_planted(int (*plant)(const char *, const char *), const char *what)
{
    struct file_in in;
    struct file_out file;
    bool kept;
    uint64_t keys[1000], wanted[1000];
    struct stat facts;
    char path[PATH_MAX], input[PATH_MAX], input_path[PATH_MAX];
    snprintf(path, sizeof path, "%s", in_dir("out.npy"));
    snprintf(input, sizeof input, "%s", in_dir("in.npy"));
    expect(HSORT_OK, write_keys(input, FILE_AUTO, HSORT_U64, count), input, "writing");
    CHECK(realpath(input, input_path), "realpath");
    expect(HSORT_OK, open_keys(input, FILE_AUTO, NULL, &in), input, "opening");
    CHECK(comm.rank != 0 || plant(input_path, part) == 0, "%s", what);
    MPI_Barrier(comm.world);
    expect(HSORT_OK, resume_keys(path, HSORT_U64, count, &in, part, &file, &kept), path,
           what);
    CHECK(!kept, "%s: taken for a file of ours", what);
    memset(keys, 0, sizeof keys);
    const int64_t first = even_begin(count, comm.rank), mine = even_begin(count, comm.rank + 1) - first;
    CHECK(file_write(&file, first, mine, keys) == HSORT_OK, "%s", status_text());
    expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), path, what);
    fill(wanted, 0, count, HSORT_U64);
    CHECK(file_read(&in, 0, count, keys) == HSORT_OK && memcmp(keys, wanted, sizeof keys) == 0,
          "%s: the input was changed", what);
    CHECK(lstat(path, &facts) == 0 && S_ISREG(facts.st_mode), "%s: the output is a link", what);
    file_close(&in);
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        unlink(path);
    MPI_Barrier(comm.world);
}

/* A header longer than what is compared at a time: known again, and not if it is another one somewhere. */
static void test_long_header(void)
{
    char descr[5000];
    size_t length = (size_t)sprintf(descr, "[('x', '<u4')");
    while (length < sizeof descr - 100)
        length += (size_t)sprintf(descr + length, ", ('f%zu', '<u4', (0,))", length);
    length += (size_t)sprintf(descr + length, "]");
    const struct npy_element element = {
        .bytes = 4, .descr = descr, .descr_bytes = length, .major = 1, .dimensions = 1};
    struct file_target target = even_target(in_dir("wide.npy"), FILE_NPY, HSORT_U32, count, NULL);
    target.element = &element;
    struct file_out file;
    bool kept;
    for (int start = 0; start < 4; start++) {
        expect(HSORT_OK, file_resume(&comm, &target, part, &file, &kept), "", "a long header");
        CHECK(kept == (start == 1), "start %d: kept %d", start, kept);
        file_leave(&comm, &file);
        MPI_Barrier(comm.world);
        const int fd = comm.rank == 0 && start > 0 ? open(part, O_WRONLY) : -1;
        CHECK(fd < 0 || pwrite(fd, "?", 1, start == 1 ? 700 : (int64_t)length - 10) == 1, "pwrite");
        close(fd);
        MPI_Barrier(comm.world);
    }
    CHECK(comm.rank != 0 || unlink(part) == 0, "unlink");
    MPI_Barrier(comm.world);
}

/* A directory under the temporary name cannot be replaced; a rank that cannot open the file does not cost what was kept. */
static void test_failures(void)
{
    struct file_out file;
    bool kept;
    const char *path = in_dir("out.bin");
    if (comm.rank == 0)
        CHECK(mkdir(part, 0777) == 0, "mkdir");
    MPI_Barrier(comm.world);
    hsort_status status = resume(path, HSORT_U64, count, &file, &kept);
    CHECK(status == HSORT_IO && strstr(comm.error, "cannot create"), "%d: %s", status, comm.error);
    status_clear();
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        CHECK(rmdir(part) == 0, "rmdir");
#ifdef HSORT_FAULTS
    for (int nth = 1; nth <= 2; nth++) {
        expect(HSORT_OK, resume(path, HSORT_U64, count, &file, &kept), path, "failures");
        if (comm.rank == comm.size - 1)
            fault_set(nth == 1 ? FAULT_READ : FAULT_COMMIT, 1);
        uint64_t key;
        status = nth == 1 ? file_read_back_at(&file, 5 * 8, sizeof key, &key) : HSORT_OK;
        CHECK(status == (nth == 1 && comm.rank == comm.size - 1 ? HSORT_IO : HSORT_OK), "%s", status_text());
        expect(HSORT_IO, file_commit(&comm, &file, status), path, "failures"); // and nothing is left
    }
#endif
    char other[PATH_MAX];
    snprintf(other, sizeof other, "%s", part);
    expect(HSORT_OK, resume(path, HSORT_U64, count, &file, &kept), path, "failures");
    file_leave(&comm, &file);
    MPI_Barrier(comm.world);
    char here[PATH_MAX];
    CHECK(getcwd(here, sizeof here), "getcwd");
    if (comm.size > 1) {
        if (comm.rank == comm.size - 1) // the name is relative: this rank does not see the file
            CHECK(chdir("/") == 0, "chdir");
        status = resume(path, HSORT_U64, count, &file, &kept);
        CHECK(status == HSORT_IO && strstr(comm.error, "which rank 0 made"), "%d: %s", status, comm.error);
        status_clear();
        CHECK(chdir(here) == 0, "chdir");
        MPI_Barrier(comm.world);
    }
    CHECK(access(part, F_OK) == 0, "what was kept is gone");
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        unlink(part);
    MPI_Barrier(comm.world);
}

static volatile sig_atomic_t seen;
static void see(int signal_number)
{
    seen = signal_number;
}

/* The signals of a stop have handlers of their own, which stay; the others remove the file and end the process. */
static void test_signals(int signal_number, bool is_stop)
{
    struct sigaction action = {.sa_handler = see}, before;
    struct file_out file;
    bool kept;
    const char *path = in_dir("out.bin");
    sigaction(signal_number, is_stop ? &action : NULL, &before);
    expect(HSORT_OK, resume(path, HSORT_U64, count, &file, &kept), path, "signals");
    seen = 0;
    if (is_stop) {
        raise(signal_number);
        CHECK(seen == signal_number, "the handler of signal %d was replaced", signal_number);
    } else if (comm.rank == comm.size - 1) {
        end_child_by(signal_number);
    }
    MPI_Barrier(comm.world);
    CHECK((access(part, F_OK) == 0) == is_stop, "signal %d: the file %s", signal_number,
          is_stop ? "is gone" : "stays");
    MPI_Barrier(comm.world);
    expect(is_stop ? HSORT_OK : HSORT_IO, file_commit(&comm, &file, HSORT_OK), path, "commit");
    if (is_stop) {
        sigaction(signal_number, NULL, &action);
        CHECK(action.sa_handler == see, "the handler of signal %d", signal_number);
        sigaction(signal_number, &before, NULL);
    }
}

static void test_names(void)
{
    char root[PATH_MAX], name[PATH_MAX], wanted[PATH_MAX];
    CHECK(realpath(directory, root), "realpath");
    if (comm.rank == 0)
        CHECK(symlink("real.bin", in_dir("soft.bin")) == 0 && symlink(".", in_dir("around")) == 0, "symlink");
    put_file(in_dir("real.bin"), "0123456789abcdef", 16);
    const struct {
        const char *path, *wanted;
    } cases[] = {
        {"new.bin", "new.bin"}, {"soft.bin", "real.bin"}, {"around/new.bin", "new.bin"}, {"./././x", "x"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(wanted, sizeof wanted, "%.4000s/%s", root, cases[i].wanted);
        CHECK(file_output_name(in_dir(cases[i].path), NULL, name) == HSORT_OK && strcmp(name, wanted) == 0,
              "%s: %s, not %s", cases[i].path, name, wanted);
    }
    CHECK(getcwd(root, sizeof root), "getcwd");
    snprintf(wanted, sizeof wanted, "%.4000s/x", root);
    CHECK(file_output_name("x", NULL, name) == HSORT_OK && strcmp(name, wanted) == 0, "%s", name);
    CHECK(file_output_name("/x-of-test_file", NULL, name) == HSORT_OK && strcmp(name, "/x-of-test_file") == 0,
          "%s", name);
    const char *const refused[] = {"none/x", "none/", "around", "real.bin/x"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK(file_output_name(in_dir(refused[i]), NULL, name) == HSORT_IO, "%s: %s", refused[i], name);
        CHECK(strstr(status_text(), "cannot create"), "%s", status_text());
        status_clear();
    }
    CHECK(file_output_name("", NULL, name) == HSORT_ARGUMENT, "an empty name");
    status_clear();
    struct file_in in;
    const hsort_type type = HSORT_U64;
    expect(HSORT_OK, open_keys(in_dir("real.bin"), FILE_RAW, &type, &in), "", "opening");
    CHECK(file_output_name(in_dir("soft.bin"), &in, name) == HSORT_ARGUMENT, "the input");
    status_clear();
    file_close(&in);
}

static void test_all(void)
{
    snprintf(part, sizeof part, "%s/out.hypersort-0123456789abcdef.part", directory);
    test_three_starts("out1.npy", HSORT_F64);
    test_three_starts("out2.bin", HSORT_U32);
    test_replaced(cut_it, "too short");
    test_replaced(lengthen_it, "too long");
    test_replaced(remove_it, "missing");
    test_replaced(damage_header, "another header");
    test_replaced(give_away, "another user's");
    test_long_header();
    test_replaced(name_it_twice, "with a second name");
    CHECK(comm.rank != 0 || unlink(in_dir("second")) == 0, "unlink");
    test_replaced(put_fifo, "a FIFO");
    test_replaced(put_link, "a link to nowhere");
    test_planted(symlink, "a symbolic link to the input");
    test_planted(link, "a hard link to the input");
    test_failures();
    const int stops[] = {SIGTERM, SIGUSR1}, others[] = {SIGINT, SIGHUP, SIGQUIT, SIGUSR2, SIGXCPU};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        test_signals(stops[i], true);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        test_signals(others[i], false);
    test_names();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
