/* A checkpoint that is of other work, damaged, out of sight, or another command's is refused, each in words of its own, on
 * every rank, and nothing in its directory is changed. */
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include "src/checkpoint/manifest.h"
#include "tests/checkpoint/checkpoints.h"

/* How much the directory holds, byte by byte, as one number; rank 0's. */
static uint64_t sum_directory(const char *path)
{
    uint64_t sum = 0;
    DIR *listing = comm.rank == 0 ? opendir(path) : NULL;
    for (struct dirent *entry; listing && (entry = readdir(listing));) {
        char name[PATH_MAX];
        uint64_t state = 0;
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        for (const char *c = entry->d_name; *c; c++)
            state = state * 31 + (unsigned char)*c;
        FILE *file = entry->d_type == DT_REG ? fopen(name, "rb") : NULL;
        for (int c; file && (c = getc(file)) != EOF;)
            state = state * 31 + (unsigned char)c + 1;
        if (file)
            fclose(file);
        sum += check_random(&state);
    }
    if (listing)
        closedir(listing);
    return sum;
}

static void refuse(const struct work *work, hsort_status wanted, const char *cause)
{
    struct checkpoint checkpoint;
    MPI_Barrier(comm.world);
    const uint64_t before = sum_directory(work->directory);
    const hsort_status status = open_work(&comm, work, &checkpoint);
    expect_team(&comm, wanted, status, cause);
    CHECK(sum_directory(work->directory) == before, "%s: the directory was changed", cause);
    if (status == HSORT_OK)
        checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
}

static const char remedy[] = "remove it to start from the beginning";

/* The file was last changed so many nanoseconds after the year 2001 began, or so. */
static void set_time(const char *path, long nanoseconds)
{
    const struct timespec time = {.tv_sec = 1000000000, .tv_nsec = nanoseconds}, times[2] = {time, time};
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || utimensat(AT_FDCWD, path, times, 0) == 0, "utimensat");
    MPI_Barrier(comm.world);
}

/* Turn one byte of a file around; twice, and it is as before. */
static void turn_byte(const char *path, long at)
{
    MPI_Barrier(comm.world);
    FILE *file = comm.rank == 0 ? fopen(path, "r+b") : NULL;
    if (file) {
        fseek(file, at, SEEK_SET);
        const int byte = fgetc(file);
        fseek(file, at, SEEK_SET);
        CHECK(fputc(byte ^ 1, file) != EOF, "%s", path);
        fclose(file);
    }
    CHECK(comm.rank != 0 || file, "%s", path);
    MPI_Barrier(comm.world);
}

/* Of another type, order, output, format; of an input that has changed. */
static void test_foreign(void)
{
    const struct work work = make_work(HSORT_I64);
    struct work other = work;
    struct checkpoint checkpoint;
    put_input(&work, 1000);
    set_time(work.input, 1);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    checkpoint_close(&checkpoint);

    other.type = HSORT_F64;
    refuse(&other, HSORT_FORMAT,
           "manifest: is of i64 keys, not f64; give what it was begun with, or remove it");
    other = work;
    other.order = HSORT_DESCENDING;
    refuse(&other, HSORT_FORMAT, "manifest: is of a sort in ascending order, not descending; give");
    other = work;
    other.format = FILE_NPY;
    refuse(&other, HSORT_FORMAT, "manifest: is of an output in the format raw, not npy; give");
    snprintf(other.output, sizeof other.output, "%s/other.bin", directory);
    refuse(&other, HSORT_FORMAT, "manifest: is of the output /");
    CHECK(strstr(comm.error, "/out.bin, not /") && strstr(comm.error, "/other.bin; give"), "%s", comm.error);
    other = work;
    other.type = HSORT_I32; // also another count
    refuse(&other, HSORT_FORMAT, "manifest: is of i64 keys, not i32; give");

    // The same file under other names is the same work.
    other = work;
    snprintf(other.input, sizeof other.input, "./%s/in.bin", directory);
    snprintf(other.output, sizeof other.output, "%s/../%s/out.bin", directory, directory);
    expect_team(&comm, HSORT_OK, open_work(&comm, &other, &checkpoint), "other spellings");
    CHECK(checkpoint.found, "not found");
    checkpoint_close(&checkpoint);
    // Other content of the same name, size and time is other work.
    for (long at = 0; at <= 7999; at += 7999) {
        turn_byte(work.input, at);
        set_time(work.input, 1);
        refuse(&work, HSORT_FORMAT, "manifest: is of an input of other content: ");
        CHECK(strstr(comm.error, "in.bin was changed since, but for its time; give") &&
                  strstr(comm.error, remedy),
              "%s", comm.error);
        turn_byte(work.input, at);
        set_time(work.input, 1);
    }
    // Another file of its size and time is other work; where the first name is gone, it is taken for the file that had it.
    other = work;
    snprintf(other.input, sizeof other.input, "%s", in_dir("moved.bin"));
    put_input(&other, 1000);
    set_time(other.input, 1);
    refuse(&other, HSORT_FORMAT, "manifest: is of the input /");
    CHECK(strstr(comm.error, "/in.bin, not of ") && strstr(comm.error, "moved.bin; give"), "%s", comm.error);
    CHECK(comm.rank != 0 || rename(work.input, in_dir("away.bin")) == 0, "rename");
    expect_team(&comm, HSORT_OK, open_work(&comm, &other, &checkpoint), "a moved input");
    CHECK(checkpoint.found, "not found");
    checkpoint_close(&checkpoint);
    CHECK(comm.rank != 0 || rename(in_dir("away.bin"), work.input) == 0, "rename");
    set_time(work.input, 2);
    refuse(&work, HSORT_FORMAT, "manifest: is of an input of another time: ");
    CHECK(strstr(comm.error, "in.bin was changed since; give") && strstr(comm.error, remedy), "%s",
          comm.error);
    set_time(other.input, 3);
    refuse(&other, HSORT_FORMAT, "manifest: is of the input /");
    CHECK(strstr(comm.error, "/in.bin, not of ") && strstr(comm.error, "moved.bin of another time; give"),
          "%s", comm.error);
    put_input(&work, 1001);
    refuse(&work, HSORT_FORMAT, "manifest: is of an input of 8000 bytes with 1000 keys, but ");
    CHECK(strstr(comm.error, "in.bin has 8008 with 1001; give") && strstr(comm.error, remedy), "%s",
          comm.error);
    CHECK(comm.rank != 0 || unlink(in_dir("checkpoint/manifest")) == 0, "the remedy");
    finish(&work);
}

/* A manifest without a digest of the input, as older versions wrote it, is of the same work. */
static void test_without_sample(void)
{
    const struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    char *text = NULL;
    size_t bytes = 0;
    put_input(&work, 10);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    checkpoint.sample = 0;
    CHECK(manifest_format(&checkpoint, &text, &bytes) == HSORT_OK, "%s", status_text());
    put_file(in_dir("checkpoint/manifest"), text, bytes);
    free(text);
    checkpoint_close(&checkpoint);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "without a digest");
    CHECK(checkpoint.found, "not found");
    checkpoint_close(&checkpoint);
    finish(&work);
}

/* Open the checkpoint of `work` for several inputs, which must be refused for `cause`, unless that is NULL. */
static void open_several(const struct work *work, const char *const *paths, int count, const char *cause)
{
    const struct file_source source = {.paths = paths,
                                       .paths_count = count,
                                       .format = FILE_RAW,
                                       .type = &work->type,
                                       .direct_io = HSORT_CHOICE_OFF};
    struct file_in in;
    struct checkpoint checkpoint;
    expect_team(&comm, HSORT_OK, file_open(&comm, &source, &in), "opening");
    const hsort_status status =
        checkpoint_open(&comm, work->directory, &in, work->output, work->format, work->order, NULL, &checkpoint);
    expect_team(&comm, cause ? HSORT_FORMAT : HSORT_OK, status, cause ? cause : "opening");
    if (status == HSORT_OK)
        checkpoint_close(&checkpoint);
    file_close(&in);
    MPI_Barrier(comm.world);
}

/* Several inputs: any other list is refused, though bytes, keys and the last time of all may be the same. */
static void test_several(void)
{
    const struct work work = make_work(HSORT_I64);
    char a[PATH_MAX], b[PATH_MAX], c[PATH_MAX];
    const char *const list[] = {a, b, c}, *const turned[] = {b, a, c}, *const fewer[] = {a, b};
    static const char others[] = "or they have other names, sizes or times, or another order; give";
    snprintf(a, sizeof a, "%s", in_dir("a.bin"));
    snprintf(b, sizeof b, "%s", in_dir("b.bin"));
    snprintf(c, sizeof c, "%s", in_dir("c.bin")); // without keys, and the oldest
    put_file(a, "eight be", 8);
    put_file(b, "eight we", 8);
    put_file(c, "", 0);
    set_time(a, 1000);
    set_time(b, 1000);
    set_time(c, 1);
    open_several(&work, list, 3, NULL);
    open_several(&work, list, 3, NULL);
    open_several(&work, turned, 3, others);
    open_several(&work, fewer, 2, others);
    set_time(c, 2);
    open_several(&work, list, 3, others);
    set_time(c, 1);
    open_several(&work, list, 3, NULL);
    turn_byte(b, 7);
    set_time(b, 1000);
    open_several(&work, list, 3, "is of an input of other content: ");
    CHECK(comm.rank != 0 || unlink(in_dir("checkpoint/manifest")) == 0, "unlink");
    finish(&work);
}

/* A manifest that is damaged, cut, or no file; places where nothing can be. */
static void test_damaged(void)
{
    const struct work work = make_work(HSORT_U32);
    struct work other = work;
    struct checkpoint checkpoint;
    char manifest[4096] = "";
    int64_t bytes = 0;
    put_input(&work, 1000);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "opening");
    expect_team(&comm, HSORT_OK, checkpoint_mark(&comm, &checkpoint, (struct checkpoint_range){5, 6}),
                "marking");
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    FILE *file = fopen(in_dir("checkpoint/manifest"), "rb");
    CHECK(file && (bytes = (int64_t)fread(manifest, 1, sizeof manifest, file)) > 100, "the manifest");
    fclose(file);

    for (int i = 0; i < 30; i++) {
        char damaged[sizeof manifest];
        uint64_t at = check_random(&seed) % (uint64_t)bytes; // rank 0's counts
        memcpy(damaged, manifest, (size_t)bytes);
        damaged[at] ^= (char)(1 << check_random(&seed) % 8);
        put_file(in_dir("checkpoint/manifest"), damaged, (size_t)bytes);
        refuse(&work, HSORT_FORMAT, "manifest: is ");
        CHECK(strstr(comm.error, remedy), "%s", comm.error);
        put_file(in_dir("checkpoint/manifest"), manifest, (size_t)at);
        refuse(&work, HSORT_FORMAT, "manifest: is damaged: ");
    }
    CHECK(comm.rank != 0 ||
              (unlink(in_dir("checkpoint/manifest")) == 0 && mkdir(in_dir("checkpoint/manifest"), 0777) == 0),
          "mkdir");
    refuse(&work, HSORT_IO, "manifest: cannot read: Is a directory");
    CHECK(comm.rank != 0 || rmdir(in_dir("checkpoint/manifest")) == 0, "rmdir");
    finish(&work);

    snprintf(other.directory, sizeof other.directory, "%s/none/checkpoint", directory);
    refuse(&other, HSORT_IO, "none/checkpoint: cannot be made: No such file or directory");
    snprintf(other.directory, sizeof other.directory, "%s", work.input);
    refuse(&other, HSORT_IO, "in.bin/.hypersort-lock: cannot create: Not a directory");
    other = work;
    strcpy(other.output, work.input);
    snprintf(other.directory, sizeof other.directory, "%s/new", directory);
    refuse(&other, HSORT_ARGUMENT, "is the input");
    snprintf(other.output, sizeof other.output, "%s/two\nlines", directory);
    refuse(&other, HSORT_ARGUMENT, "cannot name the output, whose path holds a newline");
    CHECK(access(other.directory, F_OK) != 0, "a refused start made its directory");
}

/* A rank on another machine, as far as names go: it sees no such directory. */
static void test_unseen(void)
{
    struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    char here[PATH_MAX], path[PATH_MAX];
    if (comm.size == 1)
        return;
    put_input(&work, 10);
    CHECK(realpath(work.input, path) && getcwd(here, sizeof here), "realpath");
    snprintf(work.input, sizeof work.input, "%.255s", path);
    snprintf(work.directory, sizeof work.directory, "%s/unseen", directory);
    if (comm.rank == comm.size - 1)
        CHECK(chdir("/") == 0, "chdir");
    expect_team(&comm, HSORT_IO, open_work(&comm, &work, &checkpoint),
                "unseen/manifest: rank 0 sees it, this rank does not: No such file or directory");
    CHECK(chdir(here) == 0, "chdir");
    CHECK(access(work.directory, F_OK) != 0, "the directory stays");
    MPI_Barrier(comm.world);
}

/* A command that ends removes its lock; here some do, just before another one locks the file that it has opened, and all but the
 * last are followed by one that makes a lock of its own. The program is linked so that fcntl() asks here. */
static int locks_that_go;
int __real_fcntl64(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);

int __wrap_fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *); // as the C library takes it, whether it is there or not
    va_end(rest);
    if (command == F_SETLK && locks_that_go > 0) {
        CHECK(unlink(in_dir("checkpoint/.hypersort-lock")) == 0, "unlink");
        if (--locks_that_go > 0)
            close(open(in_dir("checkpoint/.hypersort-lock"), O_WRONLY | O_CREAT, 0600));
    }
    return __real_fcntl64(fd, command, argument);
}

/* A child of this process, unlike it, finds that the lock is there and held. */
static void check_held(void)
{
    int ended = 0;
    const pid_t child = fork();
    if (child == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        const int fd = open(in_dir("checkpoint/.hypersort-lock"), O_RDWR);
        _exit(fd >= 0 && fcntl(fd, F_SETLK, &whole) != 0 ? 0 : 1);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0, "it is not held");
}

/* Another command, a child of rank 0, works in the directory; then it is killed. */
static void test_lock(void)
{
    const struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    int ready[2], ended;
    pid_t child = -1;
    put_input(&work, 10);
    finish(&work);
    if (comm.rank == 0 && pipe(ready) == 0 && (child = fork()) == 0) {
        struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        const int fd = open(in_dir("checkpoint/.hypersort-lock"), O_RDWR | O_CREAT, 0666);
        const char said = fcntl(fd, F_SETLK, &whole) == 0 ? 'y' : 'n';
        if (write(ready[1], &said, 1) == 1)
            pause();
        _exit(0);
    }
    char said = 0;
    CHECK(comm.rank != 0 || (child > 0 && read(ready[0], &said, 1) == 1 && said == 'y'), "no lock: %c", said);
    refuse(&work, HSORT_IO, "lock: is held: another command works in this directory");
    if (comm.rank == 0) {
        kill(child, SIGKILL);
        CHECK(waitpid(child, &ended, 0) == child, "waitpid");
        close(ready[0]);
        close(ready[1]);
    }
    MPI_Barrier(comm.world);
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "after the other was killed");
    if (comm.rank == 0)
        check_held();
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    CHECK(access(in_dir("checkpoint/.hypersort-lock"), F_OK) != 0, "the lock stays");
    MPI_Barrier(comm.world);
    locks_that_go = comm.rank == 0 ? 2 : 0;
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "as others end");
    if (comm.rank == 0)
        check_held();
    CHECK(locks_that_go == 0, "nothing was locked");
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    finish(&work);
}

/* In a directory where the user has files of such names, they stay, whether the command is refused or not; and a link under
 * the lock's name is not followed. */
static void test_users_files(void)
{
    const struct work work = make_work(HSORT_U32);
    struct checkpoint checkpoint;
    static const char *const names[] = {"lock", "manifest.new", "run-of-the-mill.keys"};
    put_input(&work, 10);
    finish(&work);
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "checkpoint/%s", names[i]);
        put_file(in_dir(name), "mine", 4);
    }
    expect_team(&comm, HSORT_OK, open_work(&comm, &work, &checkpoint), "beside the user's files");
    checkpoint_remove(&comm, &checkpoint);
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    CHECK(count_names(work.directory) == 3, "%d names are left of three", count_names(work.directory));
    put_file(in_dir("checkpoint/manifest"), "mine too", 8);
    refuse(&work, HSORT_FORMAT, "manifest: is damaged");
    CHECK(comm.rank != 0 || unlink(in_dir("checkpoint/manifest")) == 0, "unlink");

    CHECK(comm.rank != 0 || symlink("made-through-a-link", in_dir("checkpoint/.hypersort-lock")) == 0,
          "symlink");
    refuse(&work, HSORT_IO, ".hypersort-lock: cannot create: a symbolic link is not followed here");
    CHECK(access(in_dir("checkpoint/made-through-a-link"), F_OK) != 0, "the link was followed");
    CHECK(comm.rank != 0 || unlink(in_dir("checkpoint/.hypersort-lock")) == 0, "unlink");
    put_file(in_dir("checkpoint/.hypersort-lock"), "mine", 4);
    refuse(&work, HSORT_IO, ".hypersort-lock: is not a lock of hypersort");
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        nftw(work.directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    MPI_Barrier(comm.world);
}

static void test_all(void)
{
    draw_seed();
    test_foreign();
    test_without_sample();
    test_several();
    test_damaged();
    test_unseen();
    test_lock();
    test_users_files();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
