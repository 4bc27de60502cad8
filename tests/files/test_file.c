/* Key files over several ranks: what one division of the keys writes, another reads; and names and contents
 * that cannot be right are refused, with the same status and text everywhere. */
#include <fcntl.h>
#include <sys/stat.h>
#include "src/files/file_internal.h"
#include "tests/support/files.h"

/* Where the share of `rank` begins when shares grow with the rank. */
static int64_t growing_begin(int64_t count, int rank)
{
    return count * rank * rank / (comm.size * comm.size);
}

static void test_round_trip(enum file_format format, hsort_type type, int64_t count)
{
    const char *path = in_dir(format == FILE_NPY ? "keys.npy" : "keys.bin");
    const size_t key_bytes = hsort_type_bytes(type);
    expect(HSORT_OK, write_keys(path, FILE_AUTO, type, count), path, "writing");

    struct file_in file;
    expect(HSORT_OK, open_keys(path, FILE_AUTO, &type, &file), path, "opening");
    CHECK(file.part->format == format && file.type == type && file.count == count && !file.part->swapped, "%s: %" PRId64,
          path, file.count);
    const int64_t first = growing_begin(count, comm.rank), mine = growing_begin(count, comm.rank + 1) - first;
    void *keys = malloc((size_t)mine * 8 + 8), *wanted = malloc((size_t)mine * 8 + 8);
    fill(wanted, first, mine, type);
    CHECK(file_read(&file, first, mine, keys) == HSORT_OK, "%s", status_text());
    CHECK(memcmp(keys, wanted, (size_t)mine * key_bytes) == 0, "%s: rank %d read other keys", path,
          comm.rank);
    CHECK(file_read(&file, count, 1, keys) == HSORT_INTERNAL, "a read behind the end");
    status_clear();
    file_close(&file);
    free(keys);
    free(wanted);
    if (comm.rank == 0)
        CHECK(leftovers() == 0, "%s: a temporary is left", path);
    MPI_Barrier(comm.world);
}

/* By bytes, in chunks that end at multiples of FILE_CHUNK_BYTES in the file and cut keys. */
static void test_chunks(enum file_format format)
{
    const char *path = in_dir("chunks.bin");
    const int64_t count = 3 * FILE_CHUNK_BYTES / 8 + 1001, all = count * 8;
    const int64_t begin = even_begin(all - 3, comm.rank),
                  end = comm.rank == comm.size - 1 ? all : even_begin(all - 3, comm.rank + 1);
    const hsort_type type = HSORT_U64;
    struct file_out out;
    struct file_in in;
    char *keys = malloc((size_t)all), *found = malloc((size_t)all);
    fill(keys, 0, count, type);
    expect(HSORT_OK, create_keys(path, format, type, count, NULL, &out), path, "creating");
    for (int64_t at = begin, bytes; at < end; at += bytes) {
        bytes = FILE_CHUNK_BYTES - (int64_t)file_out_lead(&out, at);
        bytes = bytes < end - at ? bytes : end - at;
        CHECK(file_write_at(&out, at, (size_t)bytes, keys + at) == HSORT_OK, "%s", status_text());
        CHECK(at + bytes == end || (out.data_offset + at + bytes) % FILE_CHUNK_BYTES == 0,
              "a chunk ends elsewhere");
    }
    CHECK(file_write_at(&out, all - 3, 4, keys) == HSORT_INTERNAL, "a write behind the end");
    status_clear();
    expect(HSORT_OK, file_commit(&comm, &out, HSORT_OK), path, "commit");
    expect(HSORT_OK, open_keys(path, format, &type, &in), path, "opening");
    for (int64_t at = 0, bytes; at < all; at += bytes) {
        bytes = FILE_CHUNK_BYTES - (int64_t)file_in_lead(&in, at);
        bytes = bytes < all - at ? bytes : all - at;
        CHECK(file_read_at(&in, at, (size_t)bytes, found + at) == HSORT_OK, "%s", status_text());
    }
    CHECK(memcmp(keys, found, (size_t)all) == 0, "%s: other keys", path);
    file_close(&in);
    free(keys);
    free(found);
    MPI_Barrier(comm.world);
}

/* Big-endian keys come out in this machine's order, of both sizes. */
static void test_swapped(void)
{
    const char *path = in_dir("big.npy");
    struct file_in file;
    unsigned char bytes[128 + 24], *keys = bytes + 128;
    npy_format(HSORT_U64, 3, bytes, 128);
    *strchr((char *)bytes + 10, '<') = '>';
    for (int i = 0; i < 24; i++)
        keys[i] = (unsigned char)(i + 1);
    uint64_t wide[3];
    put_file(path, bytes, 128 + 24);
    expect(HSORT_OK, open_keys(path, FILE_AUTO, NULL, &file), path, "opening big-endian u64");
    CHECK(file.part->swapped && file_in_lead(&file, 8) == 136, "lead %zu", file_in_lead(&file, 8));
    CHECK(file_read_at(&file, 4, 8, wide) == HSORT_INTERNAL, "a swapped key that is cut");
    status_clear();
    CHECK(file_read(&file, 1, 2, wide) == HSORT_OK, "%s", status_text());
    CHECK(wide[0] == UINT64_C(0x090a0b0c0d0e0f10) && wide[1] == UINT64_C(0x1112131415161718), "%" PRIx64,
          wide[0]);
    file_close(&file);

    // A header of 129 bytes: chunks that end at round places of the file would cut keys.
    unsigned char odd[129 + 24];
    memcpy(odd, bytes, 127);
    memcpy(odd + 127, " \n", 2);
    memcpy(odd + 129, keys, 24);
    odd[8]++;
    put_file(path, odd, sizeof odd);
    expect(HSORT_OK, open_keys(path, FILE_AUTO, NULL, &file), path, "opening after an odd header");
    CHECK(file.part->data_offset == 129 && file_in_lead(&file, 8) == 0, "lead %zu", file_in_lead(&file, 8));
    file_close(&file);

    uint32_t narrow[3];
    npy_format(HSORT_I32, 6, bytes, 128);
    *strchr((char *)bytes + 10, '<') = '>';
    put_file(path, bytes, 128 + 24);
    expect(HSORT_OK, open_keys(path, FILE_AUTO, NULL, &file), path, "opening big-endian i32");
    CHECK(file.part->swapped && file_read(&file, 3, 3, narrow) == HSORT_OK, "%s", status_text());
    CHECK(narrow[0] == 0x0d0e0f10 && narrow[2] == 0x15161718, "%x", narrow[0]);
    file_close(&file);
}

/* A file with a hole beyond 4 GiB: offsets and counts of 64 bits, and reads of more than one chunk. */
static void test_beyond_4gib(void)
{
    const char *path = in_dir("sparse.bin");
    const hsort_type type = HSORT_U64;
    const int64_t count = INT64_C(5) << 27, border = INT64_C(1) << 29; // keys in 5 GiB and in 4 GiB
    int made = 0;
    if (comm.rank == 0) {
        int fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0666);
        made = fd >= 0 && ftruncate(fd, count * 8) == 0;
        for (int64_t i = border - 2; made && i < border + 2; i++)
            made = pwrite(fd, &(uint64_t){key_at(i, type)}, 8, i * 8) == 8;
        close(fd);
    }
    MPI_Bcast(&made, 1, MPI_INT, 0, comm.world);
    if (!made) {
        if (comm.rank == 0)
            printf("skipped beyond 4 GiB: this file system takes no file of 5 GiB\n");
        return;
    }

    struct file_in file;
    uint64_t keys[8];
    expect(HSORT_OK, open_keys(path, FILE_AUTO, &type, &file), path, "opening 5 GiB");
    CHECK(file.count == count, "%" PRId64, file.count);
    CHECK(file_read(&file, border - 3, 6, keys) == HSORT_OK, "%s", status_text());
    for (int i = 0; i < 6; i++)
        CHECK(keys[i] == (i == 0 || i == 5 ? 0 : key_at(border - 3 + i, type)), "key %d at the border", i);
    CHECK(file_read(&file, count - 1, 1, keys) == HSORT_OK && keys[0] == 0, "%s", status_text());

    // As long as two chunks and a bit, on one rank: memory. The marked keys lie across the end of the second.
    const int64_t many = BLOCK_REQUEST_BYTES / 4 + 2;
    if (comm.rank == comm.size - 1) {
        uint64_t *all = malloc((size_t)many * 8);
        CHECK(file_read(&file, border - many + 2, many, all) == HSORT_OK, "%s", status_text());
        for (int64_t i = 0; i < many; i++)
            CHECK(all[i] == (i < many - 4 ? 0 : key_at(border - many + 2 + i, type)), "key %" PRId64, i);
        free(all);
    }
    file_close(&file);

    // Writing there: without file_create(), which would take 5 GiB of the disk.
    struct file_out out = {.path = (char *)path, .format = FILE_RAW, .key_bytes = 8, .count = count};
    out.fd = open(path, O_WRONLY);
    CHECK(block_open_output(path, out.fd, HSORT_CHOICE_AUTO, &out.blocks) == HSORT_OK, "%s", status_text());
    MPI_Barrier(comm.world);
    fill(keys, border + 100 + 8 * comm.rank, 8, type);
    CHECK(file_write(&out, border + 100 + 8 * comm.rank, 8, keys) == HSORT_OK, "%s", status_text());
    block_close(out.blocks);
    close(out.fd);
    MPI_Barrier(comm.world);
    int fd = open(path, O_RDONLY);
    const int64_t other = border + 100 + 8 * ((comm.rank + 1) % comm.size);
    CHECK(pread(fd, keys, 8, other * 8) == 8 && keys[0] == key_at(other, type), "key %" PRId64, other);
    close(fd);
    MPI_Barrier(comm.world);
    if (comm.rank == 0)
        unlink(path);
}

/* An output through a link replaces what the link points to, and the link stays. */
static void test_output_link(void)
{
    struct stat facts;
    put_file(in_dir("real.bin"), "before", 6);
    if (comm.rank == 0)
        CHECK(symlink("real.bin", in_dir("link.bin")) == 0, "symlink");
    MPI_Barrier(comm.world);
    expect(HSORT_OK, write_keys(in_dir("link.bin"), FILE_AUTO, HSORT_U32, 10), "real.bin",
           "writing through a link");
    CHECK(lstat(in_dir("link.bin"), &facts) == 0 && S_ISLNK(facts.st_mode), "the link is gone");
    CHECK(stat(in_dir("real.bin"), &facts) == 0 && facts.st_size == 40, "%lld bytes",
          (long long)facts.st_size);
}

static void check_mode(const char *path, mode_t wanted, const char *what)
{
    struct stat facts;
    CHECK(stat(path, &facts) == 0 && (facts.st_mode & 07777) == wanted, "%s: mode %o, not %o", what,
          (unsigned)facts.st_mode & 07777, (unsigned)wanted);
}

/* What is replaced keeps its mode, what is new has the usual one, and until then nobody else can read it. */
static void test_modes(void)
{
    const mode_t modes[] = {0, 0600, 0640, 0444, 0666};
    const mode_t before = umask(027);
    for (int i = 0; i < 5; i++) {
        struct file_out file;
        const char *path = in_dir("rights.bin");
        if (modes[i]) {
            put_file(path, "before", 6);
            CHECK(comm.rank != 0 || chmod(path, modes[i]) == 0, "chmod");
        }
        MPI_Barrier(comm.world);
        expect(HSORT_OK, create_keys(path, FILE_AUTO, HSORT_U32, 0, NULL, &file), path, "create");
        check_mode(file.temporary, 0600, "while it is written");
        MPI_Barrier(comm.world);
        expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), path, "commit");
        check_mode(path, modes[i] ? modes[i] : 0640, "once it is whole");
        MPI_Barrier(comm.world);
        CHECK(comm.rank != 0 || unlink(path) == 0, "unlink");
        MPI_Barrier(comm.world);
    }
    umask(before);
}

/* Names up to the longest that a directory takes. */
static void test_long_names(void)
{
    for (size_t length = 200; length <= NAME_MAX; length += 55) {
        char name[NAME_MAX + 1], path[PATH_MAX], stale[PATH_MAX], found[PATH_MAX];
        struct file_out file;
        memset(name, 'x', length);
        name[length] = '\0';
        for (int i = 180; i < 230 && length > 230; i += 2)
            memcpy(name + i, "\xc3\xa9", 2); // one that is cut is cut between characters
        snprintf(path, sizeof path, "%s", in_dir(name));
        expect(HSORT_OK, create_keys(path, FILE_AUTO, HSORT_U32, 0, NULL, &file), name, "create");
        // Of two tags one would have it cut inside of a character; a digest stands behind what is kept.
        static const char *const tags[] = {"7-0000000010", "7-000000001"};
        for (int i = 0; i < 2; i++) {
            CHECK(file_temporary_name(path, tags[i], stale) == HSORT_OK, "%s", status_text());
            const char *mark = strstr(stale, ".hypersort-") - (length > 230 ? 17 : 0);
            CHECK(mark[-1] != '\xc3' && (length <= 230 || mark[0] == '.'), "%s", stale);
        }
        put_file(stale, "x", 1);
        file_find_stale(&file, found);
        CHECK(strcmp(found, stale) == 0, "%s is not found: '%s'", stale, found);
        MPI_Barrier(comm.world);
        CHECK(comm.rank != 0 || unlink(stale) == 0, "unlink");
        MPI_Barrier(comm.world);
        file_find_stale(&file, found);
        CHECK(found[0] == '\0', "'%s' is no other run's", found);
        expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), name, "commit");
        CHECK(access(path, F_OK) == 0, "%s is not there", name);
    }
}

/* Outputs of one run whose names are alike in all that is kept of them: neither takes the temporary of the other, nor takes it for one
 * that was left. */
static void test_long_names_at_once(void)
{
    for (size_t length = 200; length <= NAME_MAX; length += 5) {
        static const char tag[] = "0123456789abcdef-dealt"; // the longest
        char names[2][NAME_MAX + 1], tagged[2][PATH_MAX], stale[PATH_MAX], found[PATH_MAX];
        struct file_out files[2], *list[2] = {&files[0], &files[1]};
        for (int i = 0; i < 2; i++) {
            memset(names[i], 'x', length);
            strcpy(names[i] + length - 6, i == 0 ? ".a.npy" : ".b.npy");
            expect(HSORT_OK, create_keys(in_dir(names[i]), FILE_AUTO, HSORT_U32, 0, NULL, &files[i]),
                   names[i], "create");
            CHECK(file_temporary_name(in_dir(names[i]), tag, tagged[i]) == HSORT_OK, "%s", status_text());
        }
        CHECK(strcmp(tagged[0], tagged[1]) != 0 && strlen(tagged[0]) <= strlen(directory) + 1 + NAME_MAX,
              "both are '%s'", tagged[0]);
        for (int i = 0; i < 2; i++) {
            file_find_stale(&files[i], found);
            CHECK(found[0] == '\0', "of %zu: '%s' is the other output's", length, found);
            CHECK(file_temporary_name(in_dir(names[i]), "7-1", stale) == HSORT_OK, "%s", status_text());
            put_file(stale, "x", 1);
            file_find_stale(&files[i], found);
            CHECK(strcmp(found, stale) == 0, "of %zu: '%s', not '%s'", length, found, stale);
            file_find_stale(&files[1 - i], found);
            CHECK(found[0] == '\0', "of %zu: '%s' is of the other output", length, found);
            MPI_Barrier(comm.world);
            CHECK(comm.rank != 0 || unlink(stale) == 0, "unlink");
            MPI_Barrier(comm.world);
        }
        expect(HSORT_OK, file_commit_all(&comm, list, 2, HSORT_OK), names[0], "commit");
        for (int i = 0; i < 2; i++)
            CHECK(access(in_dir(names[i]), F_OK) == 0, "%s is not there", names[i]);
    }
}

/* Which files are temporary ones of an output, and which only look like it. */
static void test_stale(void)
{
    static const char *const others[] = {"out.binx.hypersort-1-2.part", "out.hypersort-1-2.part",
                                         "out.bin.hypersort-1-2.party", "out.bin.part",
                                         "xout.bin.hypersort-1-2.part"};
    struct file_out file;
    char found[PATH_MAX];
    for (int i = 0; i < 5; i++)
        put_file(in_dir(others[i]), "x", 1);
    expect(HSORT_OK, create_keys(in_dir("out.bin"), FILE_AUTO, HSORT_U32, 0, NULL, &file), "out.bin",
           "create");
    file_find_stale(&file, found);
    CHECK(found[0] == '\0', "'%s' is of another output", found);
    put_file(in_dir("out.bin.hypersort-1-2.part"), "x", 1);
    file_find_stale(&file, found);
    CHECK(strcmp(found, in_dir("out.bin.hypersort-1-2.part")) == 0, "found '%s'", found);
    expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), "out.bin", "commit");
    CHECK(access(found, F_OK) == 0, "what another run may still write was removed");
    // An output may itself be called so.
    expect(HSORT_OK, create_keys(in_dir("a.hypersort-b"), FILE_AUTO, HSORT_U32, 0, NULL, &file),
           "a.hypersort-b", "create");
    put_file(in_dir("a.hypersort-b.hypersort-1-2.part"), "x", 1);
    file_find_stale(&file, found);
    CHECK(strcmp(found, in_dir("a.hypersort-b.hypersort-1-2.part")) == 0, "found '%s'", found);
    expect(HSORT_OK, file_commit(&comm, &file, HSORT_OK), "a.hypersort-b", "commit");
    CHECK(file_output_name("/no such output", NULL, found) == HSORT_OK &&
              strcmp(found, "/no such output") == 0,
          "in the root: '%s'", found);
    MPI_Barrier(comm.world);
    for (int i = 0; i < 5; i++)
        if (comm.rank == 0)
            unlink(in_dir(others[i]));
    static const char *const left[] = {"out.bin.hypersort-1-2.part", "a.hypersort-b.hypersort-1-2.part",
                                       "a.hypersort-b"};
    for (int i = 0; i < 3; i++)
        if (comm.rank == 0)
            unlink(in_dir(left[i]));
    MPI_Barrier(comm.world);
}

static void refuse_input(const char *path, const hsort_type *type, hsort_status wanted, const char *cause)
{
    struct file_in file;
    hsort_status status = open_keys(path, FILE_AUTO, type, &file);
    expect(wanted, status, path, cause);
    CHECK(strstr(comm.error, cause), "\"%s\" is not in \"%s\"", cause, comm.error);
    if (status == HSORT_OK)
        file_close(&file);
}

static void test_bad_inputs(void)
{
    const hsort_type u64 = HSORT_U64, f32 = HSORT_F32;
    if (comm.rank == 0) {
        CHECK(mkdir(in_dir("directory"), 0777) == 0, "mkdir");
        CHECK(mkfifo(in_dir("fifo"), 0666) == 0, "mkfifo");
    }
    put_file(in_dir("odd.bin"), "thirteen byte", 13);
    put_file(in_dir("empty.npy"), "", 0);
    put_file(in_dir("text.npy"), "1\n2\n3\n", 6);
    put_file(in_dir("huge.npy"), "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    put_file(in_dir("cut.npy"), "\x93NUMPY\1\0\x76\0{'descr': '<u8', ", 28);
    put_npy(in_dir("long.npy"), 99, 100);
    put_npy(in_dir("short.npy"), 101, 100);
    put_npy(in_dir("lying.npy"), INT64_MAX / 8, 100);
    put_npy(in_dir("good.npy"), 100, 100);

    refuse_input(in_dir("none.bin"), &u64, HSORT_IO, "cannot open: No such file");
    refuse_input(in_dir("directory"), &u64, HSORT_IO, "Is a directory");
    refuse_input(in_dir("fifo"), &u64, HSORT_IO, "not a regular file");
    refuse_input(in_dir("odd.bin/keys.bin"), &u64, HSORT_IO, "Not a directory");
    refuse_input(in_dir("odd.bin"), &u64, HSORT_FORMAT, "13 bytes are not a whole number of u64 keys");
    refuse_input(in_dir("odd.bin"), NULL, HSORT_ARGUMENT, "does not say what type");
    refuse_input(in_dir("empty.npy"), NULL, HSORT_FORMAT, "is empty");
    refuse_input(in_dir("text.npy"), NULL, HSORT_FORMAT, "is not a .npy file");
    refuse_input(in_dir("huge.npy"), NULL, HSORT_FORMAT, "claims 4294967295 bytes");
    refuse_input(in_dir("cut.npy"), NULL, HSORT_FORMAT, "cut off after 28 of 128 bytes");
    refuse_input(in_dir("long.npy"), NULL, HSORT_FORMAT, "would make 920 bytes, the file has 928");
    refuse_input(in_dir("short.npy"), NULL, HSORT_FORMAT, "would make 936 bytes, the file has 928");
    refuse_input(in_dir("lying.npy"), NULL, HSORT_FORMAT, "would make 9223372036854775928 bytes");
    refuse_input(in_dir("good.npy"), &f32, HSORT_FORMAT, "holds u64 keys, not f32");
    if (geteuid() != 0) { // root may read everything
        CHECK(comm.rank != 0 || chmod(in_dir("good.npy"), 0) == 0, "chmod");
        refuse_input(in_dir("good.npy"), NULL, HSORT_IO, "Permission denied");
    }
}

static void refuse_output(const char *path, const struct file_in *input, hsort_status wanted,
                          const char *cause)
{
    struct file_out file;
    hsort_status status = create_keys(path, FILE_AUTO, HSORT_U64, 100, input, &file);
    expect(wanted, status, path, cause);
    CHECK(strstr(comm.error, cause), "\"%s\" is not in \"%s\"", cause, comm.error);
    if (status == HSORT_OK)
        file_commit(&comm, &file, HSORT_INTERNAL);
}

/* After test_bad_inputs(): uses its directory and FIFO. */
static void test_bad_outputs(void)
{
    const int out = 99; // of one number on all ranks, as all name the same file
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], out) == out, "pipe");
    if (comm.rank == 0)
        CHECK(symlink("nowhere", in_dir("dangling")) == 0, "symlink");
    MPI_Barrier(comm.world);
    refuse_output("/proc/self/fd/99", NULL, HSORT_IO, "it leads to something without a name, such as a pipe");
    close(ends[0]);
    close(ends[1]);
    close(out);
    refuse_output(in_dir("none/out.bin"), NULL, HSORT_IO, "No such file or directory");
    refuse_output(in_dir("directory"), NULL, HSORT_IO, "Is a directory");
    refuse_output(in_dir("directory/"), NULL, HSORT_IO, "Is a directory");
    refuse_output(in_dir("odd.bin/out.bin"), NULL, HSORT_IO, "Not a directory");
    refuse_output(in_dir("fifo"), NULL, HSORT_IO, "not a regular file");
    refuse_output(in_dir("dangling"), NULL, HSORT_IO, "cannot follow the link: No such file");
    refuse_output("/dev/null", NULL, HSORT_IO, "not a regular file");
    refuse_output("", NULL, HSORT_ARGUMENT, "empty");
    if (geteuid() != 0) {
        CHECK(comm.rank != 0 || chmod(in_dir("directory"), 0555) == 0, "chmod");
        MPI_Barrier(comm.world);
        refuse_output(in_dir("directory/out.bin"), NULL, HSORT_IO, "Permission denied");
    }
    struct file_out file;
    expect(HSORT_ARGUMENT,
           create_keys(in_dir("out.bin"), FILE_AUTO, HSORT_U64, INT64_MAX / 8, NULL, &file), "out.bin",
           "beyond 64-bit offsets");
    expect(HSORT_IO, create_keys(in_dir("out.bin"), FILE_AUTO, HSORT_U64, INT64_MAX / 16, NULL, &file),
           "out.bin", "more than any file system holds");
}

static void test_output_is_input(void)
{
    const hsort_type type = HSORT_U64;
    const char *path = in_dir("same.bin");
    struct file_in input;
    char dotted[PATH_MAX], around[PATH_MAX];
    put_file(path, "16 bytes of keys", 16);
    if (comm.rank == 0) {
        CHECK(link(path, in_dir("hard.bin")) == 0, "link");
        CHECK(symlink("same.bin", in_dir("soft.bin")) == 0, "symlink");
        CHECK(symlink("soft.bin", in_dir("softer.bin")) == 0, "symlink");
    }
    MPI_Barrier(comm.world);
    snprintf(dotted, sizeof dotted, "./%s", in_dir("same.bin"));
    snprintf(around, sizeof around, "%s/../%s", directory, in_dir("same.bin"));
    const char *const spellings[] = {
        path, in_dir("hard.bin"), in_dir("soft.bin"), in_dir("softer.bin"), dotted, around};
    expect(HSORT_OK, open_keys(path, FILE_AUTO, &type, &input), path, "opening");
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        struct file_out file;
        char spelling[PATH_MAX];
        snprintf(spelling, sizeof spelling, "%s", spellings[i]);
        expect(HSORT_ARGUMENT, create_keys(spelling, FILE_AUTO, type, 2, &input, &file), spelling,
               "output is the input");
        struct file_target target = even_target(spelling, FILE_AUTO, type, 2, NULL);
        target.other_input = &input;
        expect(HSORT_ARGUMENT, file_create(&comm, &target, &file), spelling, "output is the other input");
    }
    uint64_t keys[2];
    CHECK(file_read(&input, 0, 2, keys) == HSORT_OK && memcmp(keys, "16 bytes of keys", 16) == 0,
          "input changed");
    file_close(&input);
}

/* Does the file system of this test do O_DIRECT? */
static bool takes_direct(void)
{
    const hsort_status status = write_keys(in_dir("direct.bin"), FILE_RAW, HSORT_U64, 1000000);
    if (status != HSORT_OK && comm.rank == 0)
        printf("skipped what is direct: %s\n", comm.error);
    status_clear();
    return status == HSORT_OK;
}

/* expect() sees another status, a line that does not name the file, and what is left. */
static void test_expect(void)
{
    const char *left = in_dir("left.hypersort-1.part");
    snprintf(comm.error, sizeof comm.error, "a line");
    expect(HSORT_IO, HSORT_IO, "line", "as it is");
    CHECK_FINDS(expect(HSORT_OK, HSORT_IO, "line", "another status"));
    CHECK_FINDS(expect(HSORT_IO, HSORT_IO, "name", "another line"));
    put_file(left, "", 0);
    if (comm.rank == 0)
        CHECK(leftovers() == 1 && remove(left) == 0, "what is left is not seen");
    MPI_Barrier(comm.world);
}

static void test_all(void)
{
    test_expect();
    const int64_t counts[] = {0, 1, comm.size - 1, 100003};
    const hsort_type types[] = {HSORT_U32, HSORT_F64};
    for (int c = 0; c < 4; c++)
        for (int t = 0; t < 2; t++) {
            test_round_trip(FILE_RAW, types[t], counts[c]);
            test_round_trip(FILE_NPY, types[t], counts[c]);
        }
    for (direct_io = HSORT_CHOICE_AUTO; direct_io < HSORT_CHOICES; direct_io++) {
        if (direct_io == HSORT_CHOICE_ON && !takes_direct())
            continue;
        test_round_trip(FILE_RAW, HSORT_U64, 1000003);
        test_round_trip(FILE_NPY, HSORT_U32, 1000003);
        test_chunks(FILE_RAW);
        test_chunks(FILE_NPY);
    }
    direct_io = HSORT_CHOICE_AUTO;
    test_swapped();
    test_beyond_4gib();
    test_output_link();
    test_modes();
    test_long_names();
    test_long_names_at_once();
    test_stale();
    test_bad_inputs();
    test_bad_outputs();
    test_output_is_input();
}

int main(int argc, char **argv)
{
    return files_run(argc, argv, test_all);
}
