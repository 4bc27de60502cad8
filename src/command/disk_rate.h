/* How fast the disk of a directory is, for `info --disk` and `plan --disk`: measured by requests like those of a sort by way of the
 * disk, from all threads of all ranks at once. */
#ifndef DISK_RATE_H
#define DISK_RATE_H

#include "src/command/json.h"
#include "src/command/report.h"

/* The rates of all ranks together. */
struct disk_rate {
    const char *directory; /* as it was given; borrowed */
    char system[32];       /* its file system, on rank 0: "ext4" */
    bool direct;           /* by O_DIRECT on every rank; else through the page cache */
    int ranks, threads;    /* threads: of each rank */
    int64_t free_bytes;    /* on rank 0, before the measurement */
    int64_t written_bytes, read_bytes;
    double write_rate, read_rate; /* bytes per second */
};

/* Write a file on each rank, bring it to disk, and read it. The file loses its name before it has a byte, so nothing stays whatever ends
 * this process, except a SIGKILL in the instant between.
 * Collective.
 *   threads  of each rank
 *   rate     [1] written, the same on every rank
 * Memory   4 MiB for each thread. Disk: 1 GiB at most, and a 16th of what is free. Time: some seconds each way.
 * Errors   agreed: HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status disk_rate_measure(struct comm *comm, const char *directory, hsort_choice direct_io, int threads,
                               struct disk_rate *rate);

/* Print the rates as a line; put them as a member of an object. */
void disk_rate_print(const struct disk_rate *rate);
void disk_rate_json(struct json *json, const struct disk_rate *rate);

#endif
