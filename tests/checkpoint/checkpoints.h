/* What the tests of checkpoints share: an input, what it is opened for, and what lies in a directory. */
#ifndef CHECKPOINTS_H
#define CHECKPOINTS_H

#include <fcntl.h>
#include <sys/stat.h>
#include "src/checkpoint/checkpoint.h"
#include "tests/support/files.h"

/* What a checkpoint is opened for; a test changes one of it to be another's. */
struct work {
    char directory[256], input[256], output[256];
    hsort_type type;
    hsort_order order;
    enum file_format format;
};

/* in.bin, sorted into out.bin, with the checkpoint in checkpoint/; all of them in the directory of this test. */
static inline struct work make_work(hsort_type type)
{
    struct work work = {.type = type, .order = HSORT_ASCENDING, .format = FILE_RAW};
    snprintf(work.directory, sizeof work.directory, "%s/checkpoint", directory);
    snprintf(work.input, sizeof work.input, "%s/in.bin", directory);
    snprintf(work.output, sizeof work.output, "%s/out.bin", directory);
    return work;
}

static inline hsort_status open_work(struct comm *team, const struct work *work,
                                     struct checkpoint *checkpoint)
{
    struct file_in in;
    const char *const path = work->input;
    const struct file_source source = {
        .paths = &path, .paths_count = 1, .format = FILE_RAW, .type = &work->type};
    hsort_status status = file_open(team, &source, &in);
    CHECK(status == HSORT_OK, "%s: %s", work->input, team->error);
    if (status != HSORT_OK)
        return status;
    status = checkpoint_open(team, work->directory, &in, work->output, work->format, work->order, NULL, checkpoint);
    file_close(&in);
    return status;
}

/* A call gave `status` on the ranks of `team`: it must be `wanted` there, and after an error the line the same, with `cause`
 * in it.                                                                                          Collective. */
static inline void expect_team(struct comm *team, hsort_status wanted, hsort_status status, const char *cause)
{
    CHECK(status == wanted, "rank %d: status %d instead of %d (%s): %s", team->rank, status, wanted, cause,
          status == HSORT_OK ? "" : team->error);
    int64_t least, most;
    comm_range(team, status, &least, &most);
    CHECK(least == most, "ranks differ (%s)", cause);
    if (least == most && status != HSORT_OK) {
        char first[sizeof team->error];
        memcpy(first, team->error, sizeof first);
        MPI_Bcast(first, sizeof first, MPI_BYTE, 0, team->world);
        CHECK(strcmp(first, team->error) == 0, "texts differ: %s", team->error);
        CHECK(strstr(team->error, cause) && !strchr(team->error, '\n'), "\"%s\" is not in \"%s\"", cause,
              team->error);
    }
    status_clear();
}

/* How many names there are in a directory; -1: no directory. */
static inline int count_names(const char *path)
{
    int count = -2; // . and ..
    DIR *listing = opendir(path);
    if (!listing)
        return -1;
    while (readdir(listing))
        count++;
    closedir(listing);
    return count;
}

/* In the directory of an open checkpoint lie the lock, the manifest, and `others` more files. */
static inline void check_names(const struct checkpoint *checkpoint, int others, const char *what)
{
    CHECK(count_names(checkpoint->directory) == 2 + others, "%s: %d names in %s instead of %d", what,
          count_names(checkpoint->directory), checkpoint->directory, 2 + others);
}

/* Of numbers that all ranks draw alike. */
static uint64_t seed;
static inline void draw_seed(void)
{
    seed = ranks_seed();
}

static inline void put_input(const struct work *work, int64_t count)
{
    expect(HSORT_OK, write_keys(work->input, FILE_RAW, work->type, count), work->input, "writing");
}

/* Remove the checkpoint, if there is one; what is not ours in the directory, two files at most, stays. Collective. */
static inline void finish(const struct work *work)
{
    struct checkpoint checkpoint;
    expect_team(&comm, HSORT_OK, open_work(&comm, work, &checkpoint), "opening to remove");
    checkpoint_remove(&comm, &checkpoint);
    checkpoint_close(&checkpoint);
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        CHECK(count_names(work->directory) <= 2, "%d names stay", count_names(work->directory));
    MPI_Barrier(comm.world);
}

#endif
