/* Bytes of a file, direct and through the page cache: any place, size and address, by several threads of several ranks that
 * share the blocks at their borders; a file system that refuses O_DIRECT at its first or a later request; failures. The
 * file lies in the directory that the test runs in; parts that need O_DIRECT are skipped, with a line, if that has none. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include "kernels/base/fault.h"
#include "src/files/block_io.h"
#include "tests/support/faults.h"
#include "tests/support/files.h"

enum { FILE_BYTES = 3 * BLOCK_REQUEST_BYTES + 12345, THREADS = 3, TRIALS = 40, BLOCK = 4096 };

static uint64_t seed;
static bool takes_direct; /* the file system does O_DIRECT */
static char path[PATH_MAX];
static unsigned char *memory; /* [FILE_BYTES + 2 * BLOCK], aligned */

/* Random bytes over and over, with a period that no block and no request has; a generation begins anywhere in them. */
enum { PERIOD = 65521 };
static unsigned char pattern[PERIOD];

static void make_pattern(void)
{
    uint64_t random = seed;
    for (int i = 0; i < PERIOD; i++)
        pattern[i] = (unsigned char)check_random(&random);
}

/* Where the bytes from `place` on lie in the pattern, and how many of `count` do before it ends. */
static const unsigned char *find_pattern(int64_t place, int generation, int64_t *count)
{
    const int64_t at = (place + generation * 7919) % PERIOD;
    *count = *count < PERIOD - at ? *count : PERIOD - at;
    return pattern + at;
}

static void fill_bytes(unsigned char *bytes, int64_t first, int64_t count, int generation)
{
    for (int64_t done = 0, length; done < count; done += length) {
        length = count - done;
        const unsigned char *from = find_pattern(first + done, generation, &length);
        memcpy(bytes + done, from, (size_t)length);
    }
}

/* The first of these bytes that is not what fill_bytes() puts there, or -1. */
static int64_t find_wrong(const unsigned char *bytes, int64_t first, int64_t count, int generation)
{
    for (int64_t done = 0, length; done < count; done += length) {
        length = count - done;
        const unsigned char *wanted = find_pattern(first + done, generation, &length);
        for (int64_t i = 0; memcmp(bytes + done, wanted, (size_t)length) != 0 && i < length; i++)
            if (bytes[done + i] != wanted[i])
                return first + done + i;
    }
    return -1;
}

static void test_checker(void)
{
    fill_bytes(memory, 77, 1000, 1);
    CHECK(find_wrong(memory, 77, 1000, 1) == -1 && find_wrong(memory, 77, 1000, 2) >= 77, "the checker");
    memory[999] ^= 1;
    CHECK(find_wrong(memory, 77, 1000, 1) == 77 + 999 && find_wrong(memory, 77, 999, 1) == -1, "the checker");
    fill_bytes(memory, 0, FILE_BYTES, 1);
    memory[FILE_BYTES - 1] ^= 128;
    CHECK(find_wrong(memory, 0, FILE_BYTES, 1) == FILE_BYTES - 1, "the checker");
}

/* A file of FILE_BYTES, made by rank 0: blanks, or the bytes of a generation, out of the page cache as far as that can be. */
static int open_new(int generation)
{
    MPI_Barrier(comm.world);
    if (comm.rank == 0) {
        const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHECK(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0, "%s", path);
        if (generation > 0) {
            fill_bytes(memory, 0, FILE_BYTES, generation);
            CHECK(block_write_cached(path, fd, 0, FILE_BYTES, memory) == HSORT_OK, "%s", status_text());
        }
        CHECK(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "%s", path);
        close(fd);
    }
    MPI_Barrier(comm.world);
    const int fd = open(path, O_RDWR);
    CHECK(fd >= 0, "%s", path);
    return fd;
}

/* The whole file is of this generation. Through the cache, by every rank. */
static void check_file(int fd, int generation, const char *what)
{
    MPI_Barrier(comm.world);
    CHECK(block_read_cached(path, fd, 0, FILE_BYTES, memory) == HSORT_OK, "%s", status_text());
    CHECK(find_wrong(memory, 0, FILE_BYTES, generation) == -1, "%s: byte %" PRId64, what,
          find_wrong(memory, 0, FILE_BYTES, generation));
    MPI_Barrier(comm.world);
}

static struct block_file *open_output(int fd, hsort_choice choice)
{
    struct block_file *file;
    CHECK(block_open_output(path, fd, choice, &file) == HSORT_OK, "%s", status_text());
    return file;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* What a file takes for a part: around blocks and requests, and anything. */
static int64_t draw_place(uint64_t *random)
{
    static const int64_t near[] = {0, BLOCK, 5 * BLOCK, BLOCK_REQUEST_BYTES, FILE_BYTES};
    const uint64_t kind = check_random(random) % 8;
    int64_t place = kind < 5 ? near[kind] + (int64_t)(check_random(random) % 5) - 2
                             : (int64_t)(check_random(random) % FILE_BYTES);
    return place < 0 ? 0 : place > FILE_BYTES ? FILE_BYTES : place;
}

static void test_reading(hsort_choice choice)
{
    struct block_file *file;
    const int fd = open_new(3);
    uint64_t random = seed + (uint64_t)comm.rank + choice * 100u;
    CHECK(block_open_input(path, fd, choice, 0, FILE_BYTES, &file) == HSORT_OK, "%s", status_text());
    for (int i = 0; i < TRIALS; i++) {
        const int64_t a = draw_place(&random), b = draw_place(&random), first = a < b ? a : b,
                      end = a < b ? b : a;
        unsigned char *to = memory + (i % 2 ? check_random(&random) % BLOCK : (uint64_t)first % BLOCK);
        to[end - first] = 99;
        CHECK(block_read(file, first, (size_t)(end - first), to) == HSORT_OK, "%s", status_text());
        CHECK(find_wrong(to, first, end - first, 3) == -1 && to[end - first] == 99,
              "bytes %" PRId64 " to %" PRId64 " at address %% %d = %d", first, end, BLOCK,
              (int)((uintptr_t)to % BLOCK));
    }
    CHECK(block_read(file, FILE_BYTES - 5000, 5001, memory) == HSORT_IO && strstr(status_text(), "cut short"),
          "%s", status_text());
    status_clear();
    CHECK(choice == HSORT_CHOICE_OFF ? !block_is_direct(file)
                                     : choice != HSORT_CHOICE_ON || block_is_direct(file),
          "direct: %d", block_is_direct(file));
    block_close(file);
    close(fd);
}

/* AUTO reads directly what is on disk alone, and from memory what is there. */
static void test_probe(void)
{
    struct block_file *file;
    const int fd = open_new(4);
    CHECK(block_open_input(path, fd, HSORT_CHOICE_AUTO, 0, FILE_BYTES, &file) == HSORT_OK, "%s",
          status_text());
    if (takes_direct && !block_is_direct(file) && comm.rank == 0)
        printf("skipped: the page cache keeps what it was asked to drop\n");
    block_close(file);
    check_file(fd, 4, "probe");
    CHECK(block_open_input(path, fd, HSORT_CHOICE_AUTO, 0, FILE_BYTES, &file) == HSORT_OK, "%s",
          status_text());
    CHECK(!block_is_direct(file), "a file in the page cache is read from the disk");
    block_close(file);
    close(fd);
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* What the threads of a rank write: parts number `first`, `first` + THREADS, ... of the file, cut at places that no block
 * begins at, so that neighbours are other threads and other ranks. */
struct writer {
    struct block_file *file;
    int first, generation;
    hsort_status status;
    unsigned char *buffer; /* [part_bytes + BLOCK] */
};
enum { PARTS = 61, PART_BYTES = FILE_BYTES / PARTS + 1 };

static void *write_parts(void *argument)
{
    struct writer *writer = argument;
    for (int part = writer->first; part < PARTS && writer->status == HSORT_OK; part += THREADS * comm.size) {
        const int64_t first = (int64_t)part * PART_BYTES;
        const int64_t count = FILE_BYTES - first < PART_BYTES ? FILE_BYTES - first : PART_BYTES;
        // Aligned with the file, and not.
        unsigned char *from = writer->buffer + (part % 2 ? first % BLOCK : part % BLOCK);
        fill_bytes(from, first, count, writer->generation);
        writer->status = block_write(writer->file, first, (size_t)count, from);
    }
    return NULL;
}

/* Write the whole file, by all threads of all ranks. Returns the status of this rank. */
static hsort_status write_all(struct block_file *file, int generation)
{
    pthread_t threads[THREADS];
    struct writer writers[THREADS];
    hsort_status status = HSORT_OK;
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){file, comm.rank * THREADS + i, generation, HSORT_OK,
                                     aligned_alloc(BLOCK, (PART_BYTES / BLOCK + 3) * BLOCK)};
        CHECK(pthread_create(&threads[i], NULL, write_parts, &writers[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        status = writers[i].status > status ? writers[i].status : status;
        free(writers[i].buffer);
    }
    return status;
}

/* Ranks write the same file in different ways, and over what was there: each must leave the bytes of the others alone. */
static void test_writing(hsort_choice choice, bool mixed)
{
    const int fd = open_new(5);
    for (int generation = 6; generation < 8; generation++) {
        struct block_file *file = open_output(fd, mixed && comm.rank % 2 ? HSORT_CHOICE_OFF : choice);
        CHECK(write_all(file, generation) == HSORT_OK, "writing failed");
        check_file(fd, generation, mixed ? "ranks of both kinds" : "writing");
        block_close(file);
    }
    close(fd);
}

/* On file systems that are none of a disk AUTO leaves the file in the cache. */
static void test_in_memory(void)
{
    char name[64];
    struct block_file *file;
    snprintf(name, sizeof name, "/dev/shm/test_block_io.%ld", (long)getpid());
    const int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0) {
        printf("skipped: no /dev/shm\n");
        return;
    }
    unlink(name);
    CHECK(block_open_output(name, fd, HSORT_CHOICE_AUTO, &file) == HSORT_OK && !block_is_direct(file), "%s",
          status_text());
    CHECK(block_write(file, 0, 3 * BLOCK, memory) == HSORT_OK, "%s", status_text());
    block_close(file);
    close(fd);
}

/* ---- Failures ------------------------------------------------------------------------------------------ */

#ifdef HSORT_FAULTS
/* O_DIRECT is refused at the nth occasion, of which opening is the first: silently with AUTO, never with ON. */
static void test_refusals(void)
{
    for (int nth = 1; nth <= 6; nth++) {
        const int fd = open_new(8);
        fault_set(FAULT_DIRECT, nth);
        struct block_file *file = open_output(fd, HSORT_CHOICE_AUTO);
        CHECK(write_all(file, 9) == HSORT_OK, "refusal %d", nth);
        const bool refused = !fault_untouched(FAULT_DIRECT, nth);
        CHECK(refused || comm.size > 1, "refusal %d was never reached", nth);
        CHECK(block_is_direct(file) == !refused, "refusal %d: direct %d", nth, !refused);
        check_file(fd, 9, "refused");
        block_close(file);

        CHECK(block_open_output(path, fd, HSORT_CHOICE_ON, &file) == HSORT_OK, "%s", status_text());
        fault_set(FAULT_DIRECT, 1);
        CHECK(block_read(file, nth, BLOCK_REQUEST_BYTES, memory) == HSORT_IO, "refusal %d with on", nth);
        CHECK(strstr(status_text(), path) && strstr(status_text(), "refuses O_DIRECT: Invalid argument"),
              "%s", status_text());
        status_clear();
        block_close(file);
        close(fd);
    }
    const int fd = open_new(0);
    struct block_file *file = open_output(fd, HSORT_CHOICE_ON);
    // Of a page that the cache may hold for a neighbour nothing goes past it, whatever the disk takes.
    fault_set(FAULT_DIRECT, 1);
    CHECK(block_write(file, 512, BLOCK - 512, memory) == HSORT_OK &&
              block_write(file, BLOCK, BLOCK - 512, memory) == HSORT_OK && fault_untouched(FAULT_DIRECT, 1),
          "a part of a page is written directly");
    block_close(file);
    fault_set(FAULT_DIRECT, 1);
    CHECK(block_open_input(path, fd, HSORT_CHOICE_ON, 0, 0, &file) == HSORT_IO && !file, "%s", status_text());
    CHECK(strstr(status_text(), path) && strstr(status_text(), "refuses O_DIRECT"), "%s", status_text());
    status_clear();
    close(fd);
}

/* Whatever fails at whichever request is said, and what was asked of it before and after is right. */
static void test_faults(hsort_choice choice)
{
    static const enum fault_site sites[] = {FAULT_READ, FAULT_SHORT, FAULT_WRITE};
    static const char *const texts[] = {"Input/output error", "cut short", "No space left"};
    const int fd = open_new(1);
    for (int site = 0; site < 3; site++)
        for (int nth = 1; nth <= 5; nth++) { // head, three requests, tail
            struct block_file *file = open_output(fd, choice);
            const size_t bytes = 2 * BLOCK_REQUEST_BYTES + 8 * BLOCK;
            fill_bytes(memory, 4000, (int64_t)bytes, 1);
            fault_set(sites[site], nth);
            const hsort_status status =
                site == 2 ? block_write(file, 4000, bytes, memory) : block_read(file, 4000, bytes, memory);
            const bool reached = choice == HSORT_CHOICE_ON || nth <= 3;
            CHECK(status == (reached ? HSORT_IO : HSORT_OK), "%s, request %d: %d", texts[site], nth, status);
            CHECK(!reached || (strstr(status_text(), path) && strstr(status_text(), texts[site])), "%s",
                  status_text());
            CHECK(block_was_full(file) == (reached && site == 2), "%s: full: %d", texts[site],
                  block_was_full(file));
            fault_set(sites[site], 0);
            status_clear();
            block_close(file);
        }
    check_file(fd, 1, "after failures");
    close(fd);
}

static void test_no_memory(void)
{
    const int fd = open_new(1);
    struct block_file *file;
    fault_set(FAULT_ALLOC, 1);
    CHECK(block_open_output(path, fd, HSORT_CHOICE_AUTO, &file) == HSORT_HOST_MEMORY && !file, "no memory");
    status_clear();
    if (takes_direct) {
        file = open_output(fd, HSORT_CHOICE_ON);
        fault_set(FAULT_ALLOC, 1); // of what is not aligned
        CHECK(block_read(file, 0, 2 * BLOCK, memory + 1) == HSORT_HOST_MEMORY, "no memory");
        status_clear();
        CHECK(block_read(file, 0, 2 * BLOCK, memory + 1) == HSORT_OK &&
                  find_wrong(memory + 1, 0, 2 * BLOCK, 1) == -1,
              "%s", status_text());
        // What one file has left idle is of use to the next.
        struct block_file *other = open_output(fd, HSORT_CHOICE_ON);
        fault_set(FAULT_ALLOC, 1);
        CHECK(block_read(other, 0, 2 * BLOCK, memory + 1) == HSORT_OK, "%s", status_text());
        fault_set(FAULT_ALLOC, 0);
        status_clear();
        block_close(other);
        block_close(file);
        // With the last file it goes.
        file = open_output(fd, HSORT_CHOICE_ON);
        fault_set(FAULT_ALLOC, 1);
        CHECK(block_read(file, 0, 2 * BLOCK, memory + 1) == HSORT_HOST_MEMORY, "memory is kept");
        status_clear();
        block_close(file);
    }
    close(fd);
}
#else
static void test_refusals(void)
{
    if (comm.rank == 0)
        printf("skipped faults: not a build with HYPERSORT_FAULTS\n");
}
static void test_faults(hsort_choice choice)
{
    (void)choice;
}
static void test_no_memory(void)
{
}
#endif

static bool find_direct(void)
{
    struct block_file *file = NULL;
    const int fd = open_new(0);
    const bool found = block_open_output(path, fd, HSORT_CHOICE_ON, &file) == HSORT_OK &&
                       block_read(file, 0, 4 * BLOCK, memory) == HSORT_OK;
    if (!found && comm.rank == 0)
        printf("skipped what is direct: %s\n", status_text());
    status_clear();
    block_close(file);
    close(fd);
    return found;
}

static void test_all(void)
{
    seed = ranks_seed();
    make_pattern();
    snprintf(path, sizeof path, "%s", in_dir("blocks.bin"));
    memory = aligned_alloc(BLOCK, (FILE_BYTES / BLOCK + 3) * BLOCK);
    test_checker();
    takes_direct = find_direct();
    for (hsort_choice choice = HSORT_CHOICE_AUTO; choice < HSORT_CHOICES; choice++) {
        if (choice == HSORT_CHOICE_ON && !takes_direct)
            continue;
        test_reading(choice);
        test_writing(choice, false);
        test_writing(choice, true);
        test_faults(choice == HSORT_CHOICE_AUTO ? HSORT_CHOICE_OFF : choice);
    }
    test_probe();
    test_in_memory();
    if (takes_direct)
        test_refusals();
    test_no_memory();
    free(memory);
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
