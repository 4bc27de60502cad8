/* What the tests of key files share: a directory of their own, files made by hand, and what must hold after
 * an error. */
#ifndef FILES_H
#define FILES_H

#include <dirent.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include "mpi/comm/comm.h"
#include "src/files/file.h"
#include "src/files/npy.h"
#include "tests/support/ranks.h"

static struct comm comm;
static char directory[64]; /* where every file of this test lies */

/* directory/name, in one of 16 buffers that take turns. */
static inline const char *in_dir(const char *name)
{
    static char buffers[16][PATH_MAX];
    static int next;
    char *buffer = buffers[next++ % 16];
    snprintf(buffer, PATH_MAX, "%s/%s", directory, name);
    return buffer;
}

/* Write a whole file on rank 0, once no rank is still at work on the file before; the other ranks wait for it. */
static inline void put_file(const char *path, const void *bytes, size_t count)
{
    MPI_Barrier(comm.world);
    if (comm.rank == 0) {
        FILE *file = fopen(path, "wb");
        CHECK(file && fwrite(bytes, 1, count, file) == count, "%s", path);
        if (file)
            CHECK(fclose(file) == 0, "%s", path);
    }
    MPI_Barrier(comm.world);
}

/* Write a .npy file of u64 keys 0, 1, ... whose header claims `claimed` keys, and that has `count`. */
static inline void put_npy(const char *path, int64_t claimed, int64_t count)
{
    static uint64_t bytes[16 + 1000];
    npy_format(HSORT_U64, claimed, (unsigned char *)bytes, 128);
    for (int64_t i = 0; i < count; i++)
        bytes[16 + i] = (uint64_t)i;
    put_file(path, bytes, 128 + (size_t)count * 8);
}

/* The number of temporary files in the directory. */
static inline int leftovers(void)
{
    int count = 0;
    DIR *listing = opendir(directory);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        count += strstr(entry->d_name, ".hypersort-") != NULL;
    closedir(listing);
    return count;
}

/* Check that a child that raises this signal is ended by it. */
static inline void end_child_by(int signal_number)
{
    int ended = 0;
    const pid_t child = fork();
    if (child == 0) {
        raise(signal_number);
        _exit(0);
    }
    CHECK(waitpid(child, &ended, 0) == child && WIFSIGNALED(ended) && WTERMSIG(ended) == signal_number,
          "signal %d: ended with %d", signal_number, ended);
}

/* Check a collective call that gave `status`: it must be `wanted` on every rank. If it is a failure, comm.error must be the
 * same line on every rank, and name `name`, and no temporary may be left. */
static inline void expect(hsort_status wanted, hsort_status status, const char *name, const char *what)
{
    int64_t least, most;
    CHECK(status == wanted, "%s on rank %d: status %d instead of %d: %s", what, comm.rank, status, wanted,
          comm.error);
    comm_range(&comm, status, &least, &most);
    CHECK(least == most, "%s: ranks differ", what);
    if (status != HSORT_OK) {
        char first[sizeof comm.error];
        memcpy(first, comm.error, sizeof first);
        MPI_Bcast(first, sizeof first, MPI_BYTE, 0, comm.world);
        CHECK(strcmp(first, comm.error) == 0, "%s: texts differ: %s", what, comm.error);
        CHECK(strstr(comm.error, name) && !strchr(comm.error, '\n'), "%s: \"%s\" is not in \"%s\"", what,
              name, comm.error);
        if (comm.rank == 0)
            CHECK(leftovers() == 0, "%s: a temporary is left", what);
    }
    MPI_Barrier(comm.world);
    status_clear();
}

/* Where the share of `rank` begins when `count` keys are divided evenly. */
static inline int64_t even_begin(int64_t count, int rank)
{
    return count / comm.size * rank + count % comm.size * rank / comm.size;
}

static hsort_choice direct_io; /* for the files that the functions below open */

static inline hsort_status open_keys(const char *path, enum file_format format, const hsort_type *type,
                                     struct file_in *file)
{
    return file_open(
        &comm,
        &(struct file_source){
            .paths = &path, .paths_count = 1, .format = format, .type = type, .direct_io = direct_io},
        file);
}

static inline struct file_target even_target(const char *path, enum file_format format, hsort_type type,
                                             int64_t count, const struct file_in *input)
{
    const int64_t first = even_begin(count, comm.rank);
    return (struct file_target){.path = path,
                                .format = format,
                                .type = type,
                                .count = count,
                                .first = first,
                                .mine = even_begin(count, comm.rank + 1) - first,
                                .input = input,
                                .direct_io = direct_io};
}

static inline hsort_status create_keys(const char *path, enum file_format format, hsort_type type,
                                       int64_t count, const struct file_in *input, struct file_out *file)
{
    const struct file_target target = even_target(path, format, type, count, input);
    return file_create(&comm, &target, file);
}

static inline hsort_status resume_keys(const char *path, hsort_type type, int64_t count,
                                       const struct file_in *input, const char *temporary,
                                       struct file_out *file, bool *kept)
{
    const struct file_target target = even_target(path, FILE_AUTO, type, count, input);
    return file_resume(&comm, &target, temporary, file, kept);
}

static inline uint64_t key_at(int64_t i, hsort_type type)
{
    uint64_t state = (uint64_t)i;
    uint64_t key = check_random(&state);
    return hsort_type_bytes(type) == 4 ? key >> 32 : key;
}

static inline void fill(void *keys, int64_t first, int64_t count, hsort_type type)
{
    for (int64_t i = 0; i < count; i++)
        if (hsort_type_bytes(type) == 4)
            ((uint32_t *)keys)[i] = (uint32_t)key_at(first + i, type);
        else
            ((uint64_t *)keys)[i] = key_at(first + i, type);
}

/* Create `path` with `count` keys, each rank writing its even share, and commit. */
static inline hsort_status write_keys(const char *path, enum file_format format, hsort_type type,
                                      int64_t count)
{
    struct file_out file;
    hsort_status status = create_keys(path, format, type, count, NULL, &file);
    if (status != HSORT_OK)
        return status;
    const int64_t first = even_begin(count, comm.rank), mine = even_begin(count, comm.rank + 1) - first;
    void *keys = malloc((size_t)mine * 8 + 8);
    fill(keys, first, mine, type);
    status = file_commit(&comm, &file, file_write(&file, first, mine, keys));
    free(keys);
    return status;
}

static inline int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

/* Start MPI, make the directory, run `test_all`, remove the directory; returns what main() returns.
 * Collective. */
static inline int files_run(int argc, char **argv, void (*test_all)(void))
{
    signal(SIGXFSZ, SIG_IGN); // as the command does
    MPI_Init(&argc, &argv);
    if (comm_open(MPI_COMM_WORLD, &comm) != HSORT_OK)
        MPI_Abort(MPI_COMM_WORLD, 1);
    strcpy(directory, "test_file.XXXXXX");
    int made = comm.rank != 0 || mkdtemp(directory);
    MPI_Bcast(directory, sizeof directory, MPI_BYTE, 0, comm.world);
    MPI_Bcast(&made, 1, MPI_INT, 0, comm.world);
    CHECK(made, "no directory for the files");
    if (made)
        test_all();
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    comm_close(&comm);
    return ranks_finish();
}

#endif
