/* How fast this machine's cores copy a file: what `sort` of a file is measured beside.
 *
 *     bench_copy FROM TO [SECONDS]        each way three times, as far as SECONDS (60) reach; prints a row a way
 *
 * By as many threads as cores, twice as many, 4 and 1, each with requests of 4 MiB, through the page cache and around it
 * (O_DIRECT, where both files can). TO is made anew each time and brought to disk (fsync), as `sort` does. */
#include <fcntl.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 4 << 20, REPEATS = 3, BLOCK = 4096 };

/* Copy one chunk; false if it cannot be. */
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

/* Seconds of a whole copy; less than 0 if it cannot be made this way. */
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
    const double limit = argc > 3 ? atof(argv[3]) : 60, start = omp_get_wtime();
    double best = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_copy FROM TO [SECONDS]\n");
        return 2;
    }
    printf("way,threads,seconds\n");
    const int cores = omp_get_num_procs(), counts[] = {cores, 2 * cores, 4, 1};
    for (int count = 0; count < (int)(sizeof counts / sizeof counts[0]); count++)
        for (int direct = 0; direct < 2; direct++) {
            const int threads = counts[count];
            double least = -1;
            for (int i = 0; i < REPEATS && omp_get_wtime() - start < limit; i++) {
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
