/* An output of a file per rank: which names are patterns; each file is whole by itself; all files appear or none, and with none what
 * they would replace stays; failures on the first, a middle and the last rank; names that lead to one file. */
#include <fcntl.h>
#include <sys/stat.h>
#include "kernels/base/fault.h"
#include "tests/support/files.h"

static char pattern[PATH_MAX];

/* The file of a rank, in one of 16 buffers. */
static const char *own_name(int rank)
{
    char name[32];
    snprintf(name, sizeof name, "own.%d.npy", rank);
    return in_dir(name);
}

static void test_patterns(void)
{
    static const struct {
        const char *name;
        bool is_pattern;
    } names[] = {{"a.%r", true},   {"%r", true},    {"a%%%r", true}, {"%%r", false}, {"a%", false},
                 {"%%%%r", false}, {"a%b%r", true}, {"100%", false}, {"", false},    {"%%%r%%", true}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(file_is_pattern(names[i].name) == names[i].is_pattern, "%s", names[i].name);
    char name[PATH_MAX], wanted[PATH_MAX];
    CHECK(file_output_name(in_dir("50%%-%r-%d-%r.%"), NULL, name) == HSORT_OK, "%s", status_text());
    snprintf(wanted, sizeof wanted, "/%s", in_dir("50%-0-%d-0.%"));
    CHECK(strstr(name, wanted), "%s", name);
}

/* Every rank's file is of this many keys in all; -1: it holds what put_old() put there. */
static void check_all(int64_t count, hsort_type type, const char *what)
{
    MPI_Barrier(comm.world);
    if (count < 0) {
        char bytes[8];
        const int fd = open(own_name(comm.rank), O_RDONLY);
        CHECK(fd >= 0 && read(fd, bytes, sizeof bytes) == 3 && memcmp(bytes, "old", 3) == 0,
              "%s: old file touched", what);
        close(fd);
    } else {
        char(*names)[PATH_MAX] = malloc((size_t)comm.size * PATH_MAX);
        const char **paths = malloc((size_t)comm.size * sizeof *paths);
        uint64_t *keys = malloc((size_t)count * 8 + 8), *wanted = malloc((size_t)count * 8 + 8);
        struct file_in in;
        for (int rank = 0; rank < comm.size; rank++)
            paths[rank] = strcpy(names[rank], own_name(rank));
        const struct file_source source = {.paths = paths, .paths_count = comm.size, .direct_io = direct_io};
        expect(HSORT_OK, file_open(&comm, &source, &in), "", what);
        fill(wanted, 0, count, type);
        CHECK(in.count == count && in.type == type && file_read(&in, 0, count, keys) == HSORT_OK &&
                  memcmp(keys, wanted, (size_t)count * hsort_type_bytes(type)) == 0,
              "%s: other keys", what);
        CHECK(in.part[comm.rank].first == even_begin(count, comm.rank), "%s: another share", what);
        file_close(&in);
        free(names);
        free(paths);
        free(keys);
        free(wanted);
    }
    CHECK(leftovers() == 0, "%s: a temporary is left", what);
    MPI_Barrier(comm.world);
}

static void put_old(void)
{
    for (int rank = 0; rank < comm.size; rank++) {
        put_file(own_name(rank), "old", 3);
        CHECK(comm.rank != 0 || chmod(own_name(rank), 0640 - (mode_t)(rank % 2) * 0040) == 0, "chmod");
    }
    MPI_Barrier(comm.world);
}

static void test_whole(hsort_type type, int64_t count)
{
    struct file_out file;
    struct stat facts;
    char keys[16];
    expect(HSORT_OK, create_keys(pattern, FILE_AUTO, type, count, NULL, &file), "", "creating");
    CHECK(file.own && file.first == even_begin(count, comm.rank), "own %d", file.own);
    CHECK(file_write(&file, file.first - 1, 1, keys) == HSORT_INTERNAL &&
              file_write(&file, file.first, file.count + 1, keys) == HSORT_INTERNAL,
          "a write to the file of another rank");
    CHECK(file_out_lead(&file, file.first * (int64_t)hsort_type_bytes(type)) == 128, "lead");
    status_clear();
    MPI_Barrier(comm.world);
    CHECK(leftovers() == comm.size, "%d temporaries", leftovers());
    expect(HSORT_OK, comm_agree(&comm, HSORT_OK), "", "creating");
    expect(HSORT_DEVICE_MEMORY, file_commit(&comm, &file, HSORT_DEVICE_MEMORY), "", "given up");
    put_old();
    expect(HSORT_OK, write_keys(pattern, FILE_AUTO, type, count), "", "writing");
    check_all(count, type, "writing");
    CHECK(stat(own_name(comm.rank), &facts) == 0 &&
              (facts.st_mode & 0777) == 0640 - (mode_t)(comm.rank % 2) * 0040,
          "mode %o", (unsigned)facts.st_mode);
    MPI_Barrier(comm.world);
}

/* Names that only their ends tell apart. */
static void test_long_own_names(void)
{
    for (size_t length = 200; length < NAME_MAX - 8; length += 6) { // room for the rank, and for the end
        char name[NAME_MAX + 1];
        memset(name, 'x', length);
        strcpy(name + length, ".%r.npy");
        expect(HSORT_OK, write_keys(in_dir(name), FILE_AUTO, HSORT_U64, 1000), "", "a long name");
        snprintf(name + length, sizeof name - length, ".%d.npy", comm.rank);
        CHECK(access(in_dir(name), F_OK) == 0, "%s is not there", name);
        CHECK(unlink(in_dir(name)) == 0, "unlink");
        MPI_Barrier(comm.world);
    }
    CHECK(leftovers() == 0, "a temporary is left");
    MPI_Barrier(comm.world);
}

/* What is wrong with one rank's name is wrong for all. */
static void test_refusals(int rank)
{
    const hsort_type type = HSORT_U64;
    struct file_in in;
    struct file_out file;
    char name[PATH_MAX], kept[PATH_MAX];
    snprintf(name, sizeof name, "%s", own_name(rank));
    put_old();
    put_npy(name, 10, 10);
    expect(HSORT_OK, open_keys(name, FILE_AUTO, &type, &in), name, "opening");
    expect(HSORT_ARGUMENT, create_keys(pattern, FILE_AUTO, type, 10, &in, &file), name, "one is the input");
    file_close(&in);
    put_old();
    CHECK(comm.rank != 0 || (unlink(name) == 0 && mkdir(name, 0700) == 0), "mkdir");
    MPI_Barrier(comm.world);
    expect(HSORT_IO, create_keys(pattern, FILE_AUTO, type, 10, NULL, &file), name, "one is a directory");
    MPI_Barrier(comm.world);
    CHECK(comm.rank != 0 || rmdir(name) == 0, "rmdir");
    if (comm.size > 1) { // a link to the file of the rank before or behind
        snprintf(kept, sizeof kept, "own.%d.npy", rank > 0 ? rank - 1 : 1);
        CHECK(comm.rank != 0 || symlink(kept, name) == 0, "symlink");
        MPI_Barrier(comm.world);
        expect(HSORT_IO, create_keys(pattern, FILE_AUTO, type, 10, NULL, &file), "File exists",
               "two names of one file");
        CHECK(comm.rank != 0 || unlink(name) == 0, "unlink");
    }
    put_old();
    check_all(-1, type, "refusals");
    struct file_target target = even_target(pattern, FILE_AUTO, type, 10, NULL);
    target.mine += comm.rank == rank;
    expect(HSORT_INTERNAL, file_create(&comm, &target, &file), "11 keys", "shares that are not all");
}

/* Left under names of their own and found again, by all ranks or by none. */
static void test_resume(int rank)
{
    const hsort_type type = HSORT_U64;
    const int64_t count = 5003;
    struct file_out file;
    char name[PATH_MAX], last[16];
    bool kept;
    snprintf(last, sizeof last, "left.%d.part", comm.rank);
    snprintf(name, sizeof name, "%s", in_dir(last));
    put_old();
    for (int start = 0; start < 4; start++) { // before the last one the file of a rank goes
        const bool wanted = start == 1 || start == 2;
        if (start == 3 && comm.rank == rank)
            CHECK(unlink(name) == 0, "unlink");
        MPI_Barrier(comm.world);
        expect(HSORT_OK, resume_keys(pattern, type, count, NULL, name, &file, &kept), "", "resuming");
        CHECK(kept == wanted, "start %d: kept %d", start, kept);
        uint64_t *keys = malloc((size_t)file.count * 8 + 8), *found = malloc((size_t)file.count * 8 + 8);
        fill(keys, file.first, file.count, type);
        if (kept)
            CHECK(file_read_back_at(&file, file.first * 8, (size_t)file.count * 8, found) == HSORT_OK &&
                      memcmp(found, keys, (size_t)file.count * 8) == 0,
                  "start %d: other keys", start);
        else
            CHECK(file_write(&file, file.first, file.count, keys) == HSORT_OK, "%s", status_text());
        free(keys);
        free(found);
        if (start < 3)
            file_leave(&comm, &file);
    }
    expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), "", "the end");
    check_all(count, type, "resumed");
}

#ifdef HSORT_FAULTS
/* Nobody gets a name unless all are whole, and all can have theirs. */
static void test_faults(int rank)
{
    char who[32];
    snprintf(who, sizeof who, "rank %d on ", rank);
    for (int nth = 1; nth <= 3; nth++) { // header, keys, fsync
        put_old();
        if (comm.rank == rank)
            fault_set(nth < 3 ? FAULT_WRITE : FAULT_COMMIT, nth < 3 ? nth : 1);
        expect(HSORT_IO, write_keys(pattern, FILE_AUTO, HSORT_U64, 1000), "own.", "a fault");
        CHECK(strncmp(comm.error, who, strlen(who)) == 0 && strstr(comm.error, own_name(rank)), "%s",
              comm.error);
        check_all(-1, HSORT_U64, "a fault");
    }
    if (comm.rank == rank)
        fault_set(FAULT_COMMIT, 2);
    const hsort_status status = write_keys(pattern, FILE_AUTO, HSORT_U64, 1000);
    expect(HSORT_IO, status, "cannot be given its name", "a fault in a rename");
    CHECK(strstr(comm.error, own_name(rank)) && !strstr(comm.error, "taken back"), "%s", comm.error);
    check_all(-1, HSORT_U64, "a fault in a rename");
    unlink(own_name(comm.rank));
    MPI_Barrier(comm.world);
    if (comm.rank == rank)
        fault_set(FAULT_COMMIT, 2);
    expect(HSORT_IO, write_keys(pattern, FILE_AUTO, HSORT_U64, 1000), "cannot be given its name",
           "a fault in a rename");
    CHECK(access(own_name(comm.rank), F_OK) != 0, "rank %d has its name", comm.rank);
    CHECK(leftovers() == 0, "a temporary is left");
    MPI_Barrier(comm.world);
}
#else
static void test_faults(int rank)
{
    if (comm.rank == 0 && rank == 0)
        printf("skipped faults: not a build with HYPERSORT_FAULTS\n");
}
#endif

static void test_all(void)
{
    const int ranks[] = {0, comm.size / 2, comm.size - 1};
    snprintf(pattern, sizeof pattern, "%s/own.%%r.npy", directory);
    test_patterns();
    test_long_own_names();
    for (direct_io = HSORT_CHOICE_AUTO; direct_io < HSORT_CHOICE_ON; direct_io++) {
        test_whole(HSORT_U64, 100003);
        test_whole(HSORT_F32, 1);
        test_whole(HSORT_F32, 0);
    }
    for (int i = 0; i < 3; i++) {
        test_refusals(ranks[i]);
        test_resume(ranks[i]);
        test_faults(ranks[i]);
    }
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
