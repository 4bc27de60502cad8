/* What the tests of checkpoints share: an input, keys of which the place says what they are, and what lies in a directory. */
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
    const struct file_source source = {&path, 1, FILE_RAW, &work->type, HSORT_CHOICE_AUTO};
    hsort_status status = file_open(team, &source, &in);
    CHECK(status == HSORT_OK, "%s: %s", work->input, team->error);
    if (status != HSORT_OK)
        return status;
    status = checkpoint_open(team, work->directory, &in, work->output, work->format, work->order, checkpoint);
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

/* Keys first .. first + count - 1, as generation `version` of them was saved. */
static inline void *make_keys(int64_t first, int64_t count, hsort_type type, int64_t version)
{
    void *keys = malloc((size_t)count * 8 + 8);
    fill(keys, first + version * 1000000007, count, type);
    return keys;
}

/* Do the runs hold keys [first, first + count) of `version`? */
static inline void check_keys(struct checkpoint *checkpoint, int64_t first, int64_t count, int64_t version,
                              const char *what)
{
    void *wanted = make_keys(first, count, checkpoint->type, version), *keys = malloc((size_t)count * 8 + 8);
    CHECK(checkpoint_read(checkpoint, first, count, keys) == HSORT_OK, "%s: %s", what, status_text());
    CHECK(memcmp(keys, wanted, (size_t)count * hsort_type_bytes(checkpoint->type)) == 0,
          "%s: other keys in %" PRId64 " .. %" PRId64, what, first, first + count - 1);
    status_clear();
    free(wanted);
    free(keys);
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

/* In the directory of an open checkpoint lie the lock, the manifest, the runs that it names, and `foreign` other files. */
static inline void check_names(const struct checkpoint *checkpoint, int foreign, const char *what)
{
    char path[PATH_MAX];
    int wanted = 2 + foreign;
    for (int r = 0; r < checkpoint->runs; r++) {
        struct stat facts;
        const int64_t keys = checkpoint->run_offset[r + 1] - checkpoint->run_offset[r];
        snprintf(path, sizeof path, "%s/run-%016" PRIx64 "-%d-%d.keys", checkpoint->directory, checkpoint->id,
                 checkpoint->generation, r);
        CHECK(keys == 0 || (stat(path, &facts) == 0 &&
                            facts.st_size == keys * (int64_t)hsort_type_bytes(checkpoint->type)),
              "%s: %s", what, path);
        wanted += keys > 0;
    }
    CHECK(count_names(checkpoint->directory) == wanted, "%s: %d names in %s instead of %d", what,
          count_names(checkpoint->directory), checkpoint->directory, wanted);
}

/* Of numbers that all ranks draw alike, and of those that each draws for itself. */
static uint64_t seed, own_seed;
static inline void draw_seeds(void)
{
    seed = ranks_seed();
    own_seed = seed + (uint64_t)comm.rank;
}

static const uint64_t fingerprint[2] = {UINT64_C(0x0123456789abcdef), 77};

/* How the keys lie on the ranks when they are saved. */
enum layout { EVEN, GROWING, ALL_ON_ONE, EVERY_SECOND, LAYOUTS };

static inline int64_t share_begin(enum layout layout, int64_t count, int rank, int size)
{
    if (layout == GROWING)
        return count * rank * rank / ((int64_t)size * size);
    if (layout == ALL_ON_ONE)
        return rank > size / 2 ? count : 0;
    if (layout == EVERY_SECOND) // ranks 1, 3, 5, ... and the last have keys
        return rank == size ? count : count * (rank / 2) / ((size + 1) / 2);
    return count * rank / size;
}

/* Save `version` of all keys, lying so. Collective. */
static inline hsort_status save(struct comm *team, struct checkpoint *checkpoint, enum checkpoint_stage stage,
                                enum layout layout, int64_t version)
{
    const int64_t first = share_begin(layout, checkpoint->keys, team->rank, team->size);
    const int64_t count = share_begin(layout, checkpoint->keys, team->rank + 1, team->size) - first;
    void *keys = make_keys(first, count, checkpoint->type, version);
    hsort_status status = checkpoint_save(team, checkpoint, stage, keys, count, fingerprint);
    free(keys);
    return status;
}

/* This rank's part in random chunks, and a few ranges of anywhere. */
static inline void read_all(const struct comm *team, struct checkpoint *checkpoint, int64_t version,
                            const char *what)
{
    const int64_t keys = checkpoint->keys;
    int64_t at = keys * team->rank / team->size;
    while (at < keys * (team->rank + 1) / team->size) {
        const int64_t left = keys * (team->rank + 1) / team->size - at;
        const int64_t chunk = 1 + (int64_t)(check_random(&own_seed) % (uint64_t)left);
        check_keys(checkpoint, at, chunk, version, what);
        at += chunk;
    }
    for (int i = 0; i < 10 && keys > 0; i++) {
        const int64_t first = (int64_t)(check_random(&own_seed) % (uint64_t)keys);
        check_keys(checkpoint, first, (int64_t)(check_random(&own_seed) % (uint64_t)(keys - first + 1)),
                   version, what);
    }
    check_keys(checkpoint, 0, keys, version, what);
    uint64_t one;
    CHECK(checkpoint_read(checkpoint, keys, 1, &one) == HSORT_INTERNAL, "%s: a read behind the end", what);
    status_clear();
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
