/* The range of an input that is asked for before the input is read: which share it is, that reading it gives the right bytes, from the
 * cache if it lies in the range, and that nothing comes of files and ranks that are not there. */
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include "kernels/base/fault.h"
#include "src/files/block_io.h"
#include "src/files/read_ahead.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

enum {
    BLOCK = 4096,
    MIB = 1 << 20,
    FIRST_BYTES = 5 * MIB + 123,
    SECOND_BYTES = 11 * MIB + 4567,
    ALL_BYTES = FIRST_BYTES + SECOND_BYTES
};

static char names[2][PATH_MAX];
static const char *const paths[2] = {names[0], names[1]};
static unsigned char *bytes, *memory; /* [ALL_BYTES] of both files, and what was read */

/* Out of the page cache, as far as that can be. */
static int open_dropped(int i)
{
    const int fd = open(names[i], O_RDONLY);
    CHECK(fd >= 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "%s", names[i]);
    return fd;
}

static void write_files(void)
{
    int64_t first = 0;
    for (int i = 0; i < 2; i++) {
        const int64_t count = i == 0 ? FIRST_BYTES : SECOND_BYTES;
        const int fd = open(names[i], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        CHECK(fd >= 0 && block_write_cached(names[i], fd, 0, (size_t)count, bytes + first) == HSORT_OK &&
                  fsync(fd) == 0,
              "%s", names[i]);
        close(fd);
        first += count;
    }
}

/* Wait until the whole range up to `end` is asked for; a test that waits in vain is ended by faults_watch(). */
static void wait_until_asked(int64_t first, int64_t end)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    while (end > first && read_ahead_at(first) < end - first)
        nanosleep(&nap, NULL);
}

/* The range of a share is where the share begins, in the file in which it begins, and is no longer than it may be. */
static void test_range(int ranks, int rank, int64_t most)
{
    const int64_t share = ALL_BYTES / ranks, begin = share * rank;
    const int file = begin >= FIRST_BYTES, other = !file;
    const int64_t first = file ? begin - FIRST_BYTES : begin, size = file ? SECOND_BYTES : FIRST_BYTES;
    int64_t end = first + (share < most ? share : most);
    end = end < size ? end : size;
    const int fds[2] = {open_dropped(0), open_dropped(1)};
    snprintf(faults_case, sizeof faults_case, "rank %d of %d, %" PRId64 " bytes at most", rank, ranks, most);
    read_ahead_start(paths, 2, rank, ranks, most);
    CHECK(read_ahead_is_of(fds[file]) && !read_ahead_is_of(fds[other]), "%s: in which file", faults_case);
    wait_until_asked(first, end);
    CHECK(read_ahead_at(first) == end - first && read_ahead_at(end) == 0 &&
              (first == 0 || read_ahead_at(first - 1) == 0) && (end == first || read_ahead_at(end - 1) == 1),
          "%s: from %" PRId64 " on: %" PRId64 ", not %" PRId64, faults_case, first, read_ahead_at(first),
          end - first);
    read_ahead_end();
    CHECK(!read_ahead_is_of(fds[file]) && read_ahead_at(first) == 0, "%s: is still there", faults_case);
    close(fds[0]);
    close(fds[1]);
}

/* Read the second file while its range grows, and then all of it. */
static void test_reading(hsort_choice choice, uint64_t *random)
{
    struct block_file *file;
    const int fd = open_dropped(1);
    read_ahead_start(paths + 1, 1, 0, 1, 6 * MIB);
    CHECK(block_open_input(names[1], fd, choice, 0, SECOND_BYTES, &file) == HSORT_OK, "%s", status_text());
    for (int i = 0; i < 30; i++) {
        const int64_t first = (int64_t)(check_random(random) % SECOND_BYTES),
                      count = (int64_t)(check_random(random) % (uint64_t)(SECOND_BYTES - first));
        memset(memory, 0xA5, (size_t)count + 1);
        CHECK(block_read(file, first, (size_t)count, memory) == HSORT_OK, "%s", status_text());
        CHECK(memcmp(memory, bytes + FIRST_BYTES + first, (size_t)count) == 0 && memory[count] == 0xA5,
              "choice %d: bytes %" PRId64 " to %" PRId64, choice, first, first + count);
    }
    block_close(file);
    read_ahead_end();
    close(fd);
}

/* Nothing comes of these, and they can be read and ended as if nothing had been asked. */
static void test_nothing(void)
{
    enum { MANY = 65 };
    char fifo[PATH_MAX + 8];
    const char *many[MANY];
    const char *const absent[] = {"/nowhere/in.raw"}, *const root[] = {"/"}, *const pipes[] = {fifo};
    const int fd = open_dropped(0);
    snprintf(fifo, sizeof fifo, "%s.fifo", names[0]);
    CHECK(mkfifo(fifo, 0600) == 0, "%s", fifo);
    snprintf(faults_case, sizeof faults_case, "what is no file");
    read_ahead_start(absent, 1, 0, 1, MIB);
    read_ahead_start(root, 1, 0, 1, MIB);
    read_ahead_start(pipes, 1, 0, 1, MIB);
    read_ahead_start(paths, 2, 2, 2, MIB);
    read_ahead_start(paths, 2, -1, 2, MIB);
    read_ahead_start(paths, 0, 0, 1, MIB);
    for (int i = 0; i < MANY; i++)
        many[i] = names[0];
    read_ahead_start(many, MANY, 0, 1, MIB);
    CHECK(!read_ahead_is_of(fd), "many files");
    read_ahead_start(paths, 1, 0, 2 * FIRST_BYTES, MIB); // a share of no byte
    CHECK(!read_ahead_is_of(fd) && read_ahead_at(0) == 0, "there is a range");
    read_ahead_stop();
    read_ahead_end();
    CHECK(unlink(fifo) == 0, "%s", fifo);
    close(fd);
}

#ifdef HSORT_FAULTS
/* In the range no request is direct; behind it, and with ON, they are. */
static void test_which_way(void)
{
    static const struct {
        hsort_choice choice;
        int64_t first;
        bool direct;
    } cases[] = {
        {HSORT_CHOICE_AUTO, 0, false}, {HSORT_CHOICE_AUTO, 4 * MIB, true}, {HSORT_CHOICE_ON, 0, true}};
    struct block_file *file;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int fd = open_dropped(1);
        read_ahead_start(paths + 1, 1, 0, 1, 4 * MIB);
        const hsort_status opened = block_open_input(names[1], fd, cases[i].choice, 6 * MIB, 4 * MIB,
                                                     &file); // what is behind the range is absent
        wait_until_asked(0, 4 * MIB);
        if (opened != HSORT_OK || !block_is_direct(file)) {
            printf("skipped case %zu: the file system does not read directly, or keeps in the cache what it "
                   "was asked to drop\n",
                   i);
        } else {
            fault_set(FAULT_DIRECT, 1);
            const hsort_status status = block_read(file, cases[i].first, 2 * MIB, memory);
            CHECK(fault_untouched(FAULT_DIRECT, 1) != cases[i].direct, "case %zu: direct or not", i);
            CHECK(status == (cases[i].choice == HSORT_CHOICE_ON ? HSORT_IO : HSORT_OK), "case %zu: %s", i,
                  status_text());
        }
        status_clear();
        block_close(file);
        read_ahead_end();
        close(fd);
    }
}
#else
static void test_which_way(void)
{
    printf("skipped faults: not a build with HYPERSORT_FAULTS\n");
}
#endif

static void test_all(void)
{
    uint64_t random = ranks_seed();
    for (int i = 0; i < 2; i++)
        snprintf(names[i], sizeof names[i], "%s", in_dir(i == 0 ? "ahead0.bin" : "ahead1.bin"));
    bytes = malloc(ALL_BYTES);
    memory = aligned_alloc(BLOCK, (ALL_BYTES / BLOCK + 1) * BLOCK);
    for (int i = 0; i < ALL_BYTES; i++)
        bytes[i] = (unsigned char)check_random(&random);
    write_files();
    faults_watch(120);
    for (int ranks = 1; ranks <= 8; ranks++)
        for (int rank = 0; rank < ranks; rank++)
            for (int64_t most = MIB / 2; most <= 8 * MIB; most *= 4)
                test_range(ranks, rank, most);
    test_range(1, 0, 12345);
    test_nothing();
    test_reading(HSORT_CHOICE_AUTO, &random);
    test_reading(HSORT_CHOICE_OFF, &random);
    test_which_way();
    faults_watch(0);
    free(bytes);
    free(memory);
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
