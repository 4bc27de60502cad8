#include "src/command/disk_rate.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "kernels/base/thread_failures.h"
#include "src/command/progress.h"
#include "src/files/file_internal.h"

enum {
    REQUEST = BLOCK_REQUEST_BYTES,
    MOST_BYTES = 1 << 30, /* of all ranks, */
    FREE_SHARE = 16,      /* and at most 1 / FREE_SHARE of what is free */
    SECONDS_MOST = 4      /* each way; requests under way are then finished */
};

/* The file of this rank, and the threads at work on it. */
struct probe {
    const char *directory;
    int fd;
    struct block_file *blocks;
    int64_t requests; /* that the file has room for */
    int64_t written;  /* how many of them */
    bool reads;
    double begin;
    atomic_llong next, done;
    struct thread_failures failures;
};

/* ---- the file ------------------------------------------------------------------------------------------ */

/* Open a file that has a name for no longer than it takes to remove it. */
static int open_and_unlink(const char *directory)
{
    char name[PATH_MAX];
    sigset_t all, before;
    if (snprintf(name, sizeof name, "%s/hypersort-disk-XXXXXX", directory) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int fd = mkostemp(name, O_CLOEXEC);
    const int cause = errno;
    if (fd >= 0)
        unlink(name);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = cause;
    return fd;
}

static hsort_status open_probe(const char *directory, hsort_choice direct_io, struct probe *probe)
{
    // Not every file system can make a file without a name, and each refuses in its own way.
    probe->fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (probe->fd < 0 && errno != ENOENT && errno != EACCES && errno != ENOTDIR)
        probe->fd = open_and_unlink(directory);
    if (probe->fd < 0)
        return status_fail(HSORT_IO, "%s: no file can be made there: %s", directory, strerror(errno));
    return block_open_output(directory, probe->fd, direct_io, &probe->blocks);
}

/* Reserve room for as many requests as are allowed. */
static hsort_status reserve_probe(struct probe *probe, int ranks, int64_t *free_bytes)
{
    struct statvfs facts;
    if (fstatvfs(probe->fd, &facts) != 0)
        return status_fail(HSORT_IO, "%s: cannot be asked for its free space: %s", probe->directory,
                           strerror(errno));
    *free_bytes = (int64_t)facts.f_bavail * (int64_t)facts.f_frsize;
    const int64_t share = *free_bytes / FREE_SHARE;
    probe->requests = (share < MOST_BYTES ? share : MOST_BYTES) / ranks / REQUEST;
    if (probe->requests == 0)
        return status_fail(HSORT_IO,
                           "%s: too full to be measured: %" PRId64 " bytes are free, of which the ranks may "
                           "take a %dth",
                           probe->directory, *free_bytes, (int)FREE_SHARE);
    return file_reserve(probe->directory, probe->fd, probe->requests * REQUEST);
}

static void close_probe(struct probe *probe)
{
    block_close(probe->blocks);
    if (probe->fd >= 0)
        close(probe->fd);
}

/* ---- the work ------------------------------------------------------------------------------------------ */

/* Fill the words with bytes that no disk can compress. */
static void fill_randomly(uint64_t *words, uint64_t seed)
{
    uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (size_t i = 0; i < REQUEST / sizeof *words; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        words[i] = x;
    }
}

/* Make one thread's requests, from those that nobody has taken, until the time is over. */
static void make_requests(struct probe *probe, void *memory)
{
    const int64_t most = probe->reads ? probe->written : probe->requests;
    while (MPI_Wtime() - probe->begin < SECONDS_MOST) {
        const int64_t request = atomic_fetch_add(&probe->next, 1);
        if (request >= most)
            return;
        const hsort_status status = probe->reads
                                        ? block_read(probe->blocks, request * REQUEST, REQUEST, memory)
                                        : block_write(probe->blocks, request * REQUEST, REQUEST, memory);
        if (status != HSORT_OK) {
            thread_failures_note(&probe->failures, status);
            return;
        }
        atomic_fetch_add(&probe->done, 1);
    }
}

static hsort_status run_requests(struct probe *probe, int threads, void *const *memory)
{
    atomic_store(&probe->next, 0);
    atomic_store(&probe->done, 0);
    thread_failures_begin(&probe->failures);
    probe->begin = MPI_Wtime();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int thread = 0; thread < threads; thread++)
        make_requests(probe, memory[thread]);
    TRY(thread_failures_end(&probe->failures));
    return probe->reads ? HSORT_OK : file_sync(probe->directory, probe->fd);
}

/* Measure one way, on all ranks at once. Collective. */
static hsort_status measure_disk_way(struct comm *comm, struct probe *probe, bool reads, int threads,
                                     void *const *memory, int64_t *bytes, double *bytes_per_second)
{
    double seconds, most;
    probe->reads = reads;
    if (reads && !block_is_direct(probe->blocks)) // what is written is on disk by now
        posix_fadvise(probe->fd, 0, 0, POSIX_FADV_DONTNEED);
    TRY_MPI(MPI_Barrier(comm->world));
    const hsort_status status = run_requests(probe, threads, memory);
    seconds = MPI_Wtime() - probe->begin;
    TRY(comm_agree(comm, status));
    TRY(comm_sum(comm, atomic_load(&probe->done) * REQUEST, bytes));
    TRY(comm_largest(comm, &seconds, 1, &most));
    if (!reads) // a rank that began late must not read what it has not written
        probe->written = atomic_load(&probe->done);
    *bytes_per_second = most > 0 ? (double)*bytes / most : 0;
    return HSORT_OK;
}

/* ---- file systems -------------------------------------------------------------------------------------- */

/* name = the type of the mount that a file lies on, found by its device; otherwise the number of the file system. */
static void name_system(int fd, char *name, size_t room)
{
    char line[2 * PATH_MAX], type[32];
    struct stat facts;
    struct statfs system;
    unsigned major_number, minor_number;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    snprintf(name, room, "unknown");
    if (fstatfs(fd, &system) == 0)
        snprintf(name, room, "0x%lx", (unsigned long)system.f_type);
    while (mounts && fstat(fd, &facts) == 0 && fgets(line, sizeof line, mounts)) {
        const char *rest = strstr(line, " - ");
        if (rest && sscanf(line, "%*d %*d %u:%u", &major_number, &minor_number) == 2 &&
            makedev(major_number, minor_number) == facts.st_dev && sscanf(rest, " - %31s", type) == 1)
            snprintf(name, room, "%s", type);
    }
    if (mounts)
        fclose(mounts);
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static void free_memory(void **memory, int threads)
{
    for (int thread = 0; memory && thread < threads; thread++)
        free(memory[thread]);
    free(memory);
}

static hsort_status take_request_memory(int rank, int threads, void ***memory)
{
    *memory = fault_hit(FAULT_ALLOC) ? NULL : calloc((size_t)threads, sizeof **memory);
    for (int thread = 0; *memory && thread < threads; thread++) {
        void *own = (*memory)[thread] = aligned_alloc(REQUEST, REQUEST);
        if (!own)
            break;
        fill_randomly(own, (uint64_t)rank << 32 | (uint64_t)thread);
    }
    return *memory && (*memory)[threads - 1]
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY, "no memory for %d threads to measure a disk with", threads);
}

static hsort_status measure_file(struct comm *comm, hsort_choice direct_io, int threads, void *const *memory,
                                 struct probe *probe, struct disk_rate *rate)
{
    hsort_status status = open_probe(rate->directory, direct_io, probe);
    if (status == HSORT_OK)
        status = reserve_probe(probe, comm->size, &rate->free_bytes);
    TRY(comm_agree(comm, status));
    name_system(probe->fd, rate->system, sizeof rate->system);
    TRY(measure_disk_way(comm, probe, false, threads, memory, &rate->written_bytes, &rate->write_rate));
    TRY(measure_disk_way(comm, probe, true, threads, memory, &rate->read_bytes, &rate->read_rate));
    return comm_all(comm, block_is_direct(probe->blocks), &rate->direct);
}

hsort_status disk_rate_measure(struct comm *comm, const char *directory, hsort_choice direct_io, int threads,
                               struct disk_rate *rate)
{
    struct probe probe = {.directory = directory, .fd = -1};
    void **memory;
    *rate = (struct disk_rate){.directory = directory, .ranks = comm->size, .threads = threads};
    hsort_status status = comm_agree(comm, take_request_memory(comm->rank, threads, &memory));
    if (status == HSORT_OK)
        status = measure_file(comm, direct_io, threads, memory, &probe, rate);
    close_probe(&probe);
    free_memory(memory, threads);
    return status;
}

/* ---- report -------------------------------------------------------------------------------------------- */

void disk_rate_print(const struct disk_rate *rate)
{
    char free_text[16], read[REPORT_FIGURE_TEXT], write[REPORT_FIGURE_TEXT];
    printf("disk         ");
    report_name(rate->directory);
    printf(": %s, %s; %s free\n", rate->system, rate->direct ? "direct I/O" : "through the page cache",
           progress_size(rate->free_bytes, free_text));
    printf("             reads %s, writes %s: %d rank%s, %d thread%s each\n",
           report_figure(rate->read_rate, "B/s", read), report_figure(rate->write_rate, "B/s", write),
           rate->ranks, rate->ranks == 1 ? "" : "s", rate->threads, rate->threads == 1 ? "" : "s");
}

void disk_rate_json(struct json *json, const struct disk_rate *rate)
{
    json_open(json, "disk", '{');
    json_text(json, "directory", rate->directory);
    json_text(json, "file_system", rate->system);
    json_bool(json, "direct_io", rate->direct);
    json_integer(json, "ranks", rate->ranks);
    json_integer(json, "threads", rate->threads);
    json_integer(json, "free_bytes", rate->free_bytes);
    json_integer(json, "written_bytes", rate->written_bytes);
    json_integer(json, "read_bytes", rate->read_bytes);
    json_real(json, "read_gb_per_s", rate->read_rate / 1e9);
    json_real(json, "write_gb_per_s", rate->write_rate / 1e9);
    json_close(json, '}');
}
