/* How fast this machine's cores copy a file: `sort` of a file is compared with this.
 *
 *     bench_copy FROM TO [SECONDS [cold]]  each way three times, as far as SECONDS (60) reach; prints a row for each way
 *     bench_copy drop FILE                 take FILE out of the page cache; exits with 1 if it stays there
 *
 * `cold`: FROM is taken out of the page cache before each copy.
 * The ways are as many threads as cores, twice as many, 4 and 1, each with requests of 4 MiB, through the page cache and around it
 * (O_DIRECT, if both files can). TO is made anew each time and synced to disk (fsync), as `sort` does. */
#include <fcntl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 4 << 20, REPEATS = 3, BLOCK = 4096 };

/* Copy one chunk; false if that is impossible. */
static bool copy_chunk(int from, int to, off_t at, size_t bytes, char *buffer)
{
    size_t done = 0;
    while (done < bytes) {
        const ssize_t got = pread(from, buffer + done, bytes - done, at + (off_t)done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    for (done = 0; done < bytes;) {
        const ssize_t put = pwrite(to, buffer + done, bytes - done, at + (off_t)done);
        if (put <= 0)
            return false;
        done += (size_t)put;
    }
    return true;
}

/* Count the pages of the file [bytes] that are in the cache. */
static long cached_pages(int file, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    unsigned char *in_cache = calloc(pages + 1, 1);
    void *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    long found = in_cache && mapped != MAP_FAILED && mincore(mapped, bytes, in_cache) == 0 ? 0 : -1;
    for (size_t i = 0; i < pages && found >= 0; i++)
        found += in_cache[i] & 1;
    if (mapped != MAP_FAILED)
        munmap(mapped, bytes);
    free(in_cache);
    return found;
}

/* Drop a file from the cache. True if no page of it is left there; of a file in memory all pages are left. */
static bool drop_file(const char *path)
{
    enum { TRIES = 20 };
    struct stat facts;
    const int file = open(path, O_RDONLY);
    bool dropped = false;
    if (file < 0)
        return false;
    if (fstat(file, &facts) == 0 && fsync(file) == 0)
        for (int i = 0; i < TRIES && !dropped; i++) {
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
            dropped = cached_pages(file, (size_t)facts.st_size) == 0;
        }
    close(file);
    return dropped;
}

/* Return the seconds of a whole copy; less than 0 if it cannot be made this way. */
static double copy_file(const char *from_path, const char *to_path, int threads, int flags)
{
    struct stat facts;
    unlink(to_path);
    const double start = omp_get_wtime();
    const int from = open(from_path, O_RDONLY | flags), to = open(to_path, O_RDWR | O_CREAT | flags, 0600);
    bool good = from >= 0 && to >= 0 && fstat(from, &facts) == 0;
    if (good && fallocate(to, 0, 0, facts.st_size) != 0)
        good = ftruncate(to, facts.st_size) == 0;
#pragma omp parallel num_threads(threads) reduction(&& : good)
    if (good) {
        char *buffer = aligned_alloc(BLOCK, CHUNK);
#pragma omp for schedule(dynamic)
        for (off_t at = 0; at < facts.st_size; at += CHUNK) {
            const off_t left = facts.st_size - at;
            size_t bytes = left < CHUNK ? (size_t)left : CHUNK;
            if (flags) // the last block is not copied: O_DIRECT moves whole ones
                bytes = bytes / BLOCK * BLOCK;
            good = good && buffer && copy_chunk(from, to, at, bytes, buffer);
        }
        free(buffer);
    }
    good = good && fsync(to) == 0;
    const double seconds = omp_get_wtime() - start;
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return good ? seconds : -1;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "drop") == 0)
        return drop_file(argv[2]) ? 0 : 1;
    const bool cold = argc > 4 && strcmp(argv[4], "cold") == 0;
    const double limit = argc > 3 ? atof(argv[3]) : 60, start = omp_get_wtime();
    double best = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_copy FROM TO [SECONDS [cold]]\n");
        return 2;
    }
    printf("way,threads,seconds\n");
    const int cores = omp_get_num_procs(), counts[] = {cores, 2 * cores, 4, 1};
    for (int count = 0; count < (int)(sizeof counts / sizeof counts[0]); count++)
        for (int direct = 0; direct < 2; direct++) {
            const int threads = counts[count];
            double least = -1;
            for (int i = 0; i < REPEATS && omp_get_wtime() - start < limit; i++) {
                if (cold && !drop_file(argv[1]))
                    return 1;
                const double seconds = copy_file(argv[1], argv[2], threads, direct ? O_DIRECT : 0);
                if (seconds > 0 && (least < 0 || seconds < least))
                    least = seconds;
            }
            if (least > 0)
                printf("%s,%d,%.4f\n", direct ? "direct" : "cached", threads, least);
            if (least > 0 && (best == 0 || least < best))
                best = least;
        }
    printf("best,,%.4f\n", best);
    unlink(argv[2]);
    return best > 0 ? 0 : 1;
}
