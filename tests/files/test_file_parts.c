/* Several key files read as one array: any range of it, by keys and by bytes, over files of both formats, both byte orders
 * and without keys; files that do not go together are refused by name; the output may be none of the files, and none may
 * change; some thousand files, and more than may be open. */
#include <fcntl.h>
#include <sys/resource.h>
#include "kernels/base/fault.h"
#include "tests/support/files.h"

enum { MANY = 1500 };

static hsort_status open_list(const char *const *paths, int count, const hsort_type *type,
                              struct file_in *file)
{
    return file_open(
        &comm,
        &(struct file_source){.paths = paths, .paths_count = count, .type = type, .direct_io = direct_io},
        file);
}

/* Keys first .. first + count - 1 of test_files() in a file of their own. */
static void put_part(const char *path, int64_t first, int64_t count, hsort_type type, bool turned)
{
    const size_t key_bytes = hsort_type_bytes(type), header = strstr(path, ".npy") ? 128 : 0;
    unsigned char *bytes = calloc(1, 128 + (size_t)count * 8 + 8), *keys = bytes + header;
    if (header)
        npy_format(type, count, bytes, 128);
    fill(keys, first, count, type);
    if (turned)
        *strchr((char *)bytes + 10, '<') = '>';
    for (size_t i = 0; turned && i < (size_t)count * key_bytes; i += key_bytes)
        for (size_t k = 0; k < key_bytes / 2; k++) {
            const unsigned char kept = keys[i + k];
            keys[i + k] = keys[i + key_bytes - 1 - k];
            keys[i + key_bytes - 1 - k] = kept;
        }
    put_file(path, bytes, header + (size_t)count * key_bytes);
    free(bytes);
}

static void test_ranges(const struct file_in *file, bool turned)
{
    const size_t key_bytes = hsort_type_bytes(file->type);
    uint64_t random = ranks_seed() + (uint64_t)comm.rank;
    unsigned char *wanted = malloc((size_t)file->count * 8 + 8), *found = malloc((size_t)file->count * 8 + 8);
    fill(wanted, 0, file->count, file->type);
    for (int trial = 0; trial < 200; trial++) {
        const int64_t step = turned || trial % 2 ? (int64_t)key_bytes : 1,
                      all = file->count * (int64_t)key_bytes / step;
        const int64_t a = (int64_t)(check_random(&random) % (uint64_t)(all + 1)) * step;
        const int64_t b = (int64_t)(check_random(&random) % (uint64_t)(all + 1)) * step;
        const int64_t first = trial == 0 ? 0 : a < b ? a : b, end = trial == 0 ? all * step : a < b ? b : a;
        found[end - first] = 77;
        CHECK(file_read_at(file, first, (size_t)(end - first), found) == HSORT_OK, "%s", status_text());
        CHECK(memcmp(found, wanted + first, (size_t)(end - first)) == 0 && found[end - first] == 77,
              "bytes %" PRId64 " to %" PRId64, first, end);
    }
    CHECK(file_read(file, file->count - 1, 2, found) == HSORT_INTERNAL, "a read behind the end");
    status_clear();
    free(wanted);
    free(found);
}

static void test_files(hsort_type type, bool turned)
{
    const int64_t counts[] = {0, 5, 0, 0, 10007, 1, 600000, 0};
    char names[8][PATH_MAX];
    const char *paths[8];
    int64_t first = 0;
    struct file_in file;
    for (int i = 0; i < 8; i++) {
        snprintf(names[i], PATH_MAX, "%s/part%d.%s", directory, i, i % 2 || turned ? "npy" : "bin");
        paths[i] = names[i];
        put_part(paths[i], first, counts[i], type, turned && i % 3 == 1);
        first += counts[i];
    }
    expect(HSORT_OK, open_list(paths, 8, &type, &file), "", "opening");
    CHECK(file.count == first && file.type == type && file.parts == 8, "%" PRId64 " keys", file.count);
    CHECK(strstr(file.path, "part0.") && strstr(file.path, " and 7 more"), "%s", file.path);
    CHECK(file_in_lead(&file, 0) == (turned || file.part[1].format == FILE_NPY ? 128 : 0) ||
              file.part[0].count == 0,
          "lead %zu", file_in_lead(&file, 0));
    const int64_t at = (file.part[6].first + 3) * (int64_t)hsort_type_bytes(type);
    CHECK(file_in_lead(&file, at) == (size_t)file.part[6].data_offset + 3 * hsort_type_bytes(type),
          "lead %zu", file_in_lead(&file, at));
    test_ranges(&file, turned);
    CHECK(file_check_unchanged(&file) == HSORT_OK, "%s", status_text());
    file_close(&file);
}

static void refuse_list(const char *const *paths, int count, const hsort_type *type, hsort_status wanted,
                        const char *name, const char *cause)
{
    struct file_in file;
    const hsort_status status = open_list(paths, count, type, &file);
    expect(wanted, status, name, cause);
    CHECK(strstr(comm.error, cause), "\"%s\" is not in \"%s\"", cause, comm.error);
    if (status == HSORT_OK)
        file_close(&file);
}

static void test_refusals(void)
{
    const hsort_type u64 = HSORT_U64;
    char good[PATH_MAX], narrow[PATH_MAX], raw[PATH_MAX], none[PATH_MAX];
    snprintf(good, sizeof good, "%s", in_dir("good.npy"));
    snprintf(narrow, sizeof narrow, "%s", in_dir("narrow.npy"));
    snprintf(raw, sizeof raw, "%s", in_dir("odd.bin"));
    snprintf(none, sizeof none, "%s", in_dir("none.npy"));
    put_part(good, 0, 10, HSORT_U64, false);
    put_part(narrow, 0, 10, HSORT_U32, false);
    put_file(raw, "thirteen byte", 13);
    refuse_list((const char *[]){good, narrow}, 2, NULL, HSORT_FORMAT, narrow, "holds u32 keys, not u64");
    refuse_list((const char *[]){narrow, good}, 2, &u64, HSORT_FORMAT, narrow, "holds u32 keys, not u64");
    refuse_list((const char *[]){good, raw, good}, 3, NULL, HSORT_FORMAT, raw,
                "13 bytes are not a whole number");
    refuse_list((const char *[]){raw, good}, 2, NULL, HSORT_ARGUMENT, raw, "does not say what type");
    refuse_list((const char *[]){good, good, none}, 3, NULL, HSORT_IO, none, "cannot open: No such file");
    refuse_list((const char *[]){good, directory}, 2, NULL, HSORT_IO, directory, "Is a directory");
}

/* Files of which each can be read, and both together have more keys than 63 bits: only in memory is a hole so long. */
static void test_too_many_keys(void)
{
    const hsort_type types[] = {HSORT_U8, HSORT_U16};
    char path[] = "/dev/shm/hypersort-parts-XXXXXX";
    struct file_in file;
    int made = 0;
    if (comm.rank == 0) {
        const int fd = mkstemp(path);
        made = fd >= 0 && ftruncate(fd, INT64_C(5) << 60) == 0;
        if (fd >= 0)
            close(fd);
    }
    MPI_Bcast(&made, 1, MPI_INT, 0, comm.world);
    MPI_Bcast(path, sizeof path, MPI_BYTE, 0, comm.world);
    for (int i = 0; i < 2 && made; i++) {
        expect(HSORT_OK, open_keys(path, FILE_RAW, &types[i], &file), path, "opening 5 EiB");
        file_close(&file);
        refuse_list((const char *[]){path, path}, 2, &types[i], HSORT_ARGUMENT, path,
                    "more keys than 64-bit offsets");
    }
    if (comm.rank == 0 && !made)
        printf("skipped too many keys: /dev/shm takes no file of 5 EiB\n");
    if (comm.rank == 0)
        unlink(path);
}

/* The output is none of the inputs, and each input stays as it is. */
static void test_each_counts(void)
{
    char names[3][PATH_MAX];
    const char *const paths[] = {names[0], names[1], names[2]};
    for (int i = 0; i < 3; i++) {
        snprintf(names[i], PATH_MAX, "%s/each%d.npy", directory, i);
        put_part(names[i], 0, 10, HSORT_U64, false);
    }
    for (int i = 0; i < 3; i++) {
        struct file_in in;
        struct file_out out;
        expect(HSORT_OK, open_list(paths, 3, NULL, &in), "", "opening");
        expect(HSORT_ARGUMENT, create_keys(paths[i], FILE_AUTO, HSORT_U64, 30, &in, &out), paths[i],
               "is the input");
        CHECK(comm.rank != 0 || truncate(paths[i], 128 + 8 * 9) == 0, "truncate");
        MPI_Barrier(comm.world);
        expect(HSORT_IO, comm_agree(&comm, file_check_unchanged(&in)), paths[i], "changed");
        CHECK(strstr(comm.error, "was changed while it was read"), "%s", comm.error);
        file_close(&in);
        put_part(paths[i], 0, 10, HSORT_U64, false);
    }
}

#ifdef HSORT_FAULTS
/* A fault in any part, on the first, a middle and the last rank. */
static void test_faults(void)
{
    const int ranks[] = {0, comm.size / 2, comm.size - 1};
    const char *const paths[] = {in_dir("each0.npy"), in_dir("each1.npy"), in_dir("each2.npy")};
    uint64_t keys[30];
    for (int i = 0; i < 3; i++)
        for (int nth = 1; nth <= 3; nth++) {
            struct file_in in;
            expect(HSORT_OK, open_list(paths, 3, NULL, &in), "", "opening");
            if (comm.rank == ranks[i])
                fault_set(nth == 3 ? FAULT_SHORT : FAULT_READ, nth);
            const hsort_status status = file_read(&in, 0, 30, keys);
            CHECK(status == (comm.rank == ranks[i] ? HSORT_IO : HSORT_OK), "rank %d: %d", comm.rank, status);
            expect(HSORT_IO, comm_agree(&comm, status), paths[nth - 1], "a fault in a part");
            file_close(&in);
        }
}
#else
static void test_faults(void)
{
    if (comm.rank == 0)
        printf("skipped faults: not a build with HYPERSORT_FAULTS\n");
}
#endif

/* More files than a process has open without asking for it; and than it may have at all. */
static void test_many(void)
{
    static char names[MANY][PATH_MAX];
    static const char *paths[MANY];
    struct rlimit before, limit;
    struct file_in file;
    const hsort_type type = HSORT_U64;
    uint64_t keys[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], PATH_MAX, "%s/many%d", directory, i);
        paths[i] = names[i];
        FILE *part = comm.rank == 0 ? fopen(names[i], "wb") : NULL;
        CHECK(comm.rank != 0 || (part && fwrite(&(uint64_t){(uint64_t)i}, 8, 1, part) == 1), "%s", names[i]);
        if (part)
            fclose(part);
    }
    MPI_Barrier(comm.world);
    getrlimit(RLIMIT_NOFILE, &before);
    limit = before;
    limit.rlim_cur = limit.rlim_cur < 1024 ? limit.rlim_cur : 1024;
    setrlimit(RLIMIT_NOFILE, &limit);
    expect(HSORT_OK, open_list(paths, MANY, &type, &file), "", "many files");
    CHECK(file_read(&file, 0, MANY, keys) == HSORT_OK, "%s", status_text());
    for (int i = 0; i < MANY; i++)
        CHECK(keys[i] == (uint64_t)i, "key %d", i);
    file_close(&file);
    MPI_Barrier(comm.world);

    limit.rlim_cur = limit.rlim_max = 1024; // for the rest of this process
    setrlimit(RLIMIT_NOFILE, &limit);
    refuse_list(paths, MANY, &type, HSORT_IO, "1500 inputs need 'ulimit -n 3256'",
                "may be 1024 here at most");
}

static void test_all(void)
{
    test_files(HSORT_U64, false);
    test_files(HSORT_U32, false);
    test_files(HSORT_F32, true);
    test_files(HSORT_I64, true);
    direct_io = HSORT_CHOICE_OFF;
    test_files(HSORT_U64, false);
    test_refusals();
    test_too_many_keys();
    test_each_counts();
    test_faults();
    test_many();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
