/* Formats by themselves: which format a name means, how files of other formats are recognised, what a file of each format must be
 * like, and the headers that are made. */
#include <sys/mman.h>
#include <unistd.h>
#include "src/files/file_internal.h"
#include "src/files/gensort.h"
#include "tests/support/check.h"

static const hsort_type u64 = HSORT_U64, u32 = HSORT_U32;

/* A file of these bytes, in memory. */
static int file_of(const void *bytes, size_t count)
{
    const int fd = memfd_create("test_format", 0);
    CHECK(fd >= 0 && write(fd, bytes, count) == (ssize_t)count, "a file of %zu bytes", count);
    return fd;
}

static void expect(hsort_status status, hsort_status wanted, const char *words, const char *what)
{
    CHECK(status == wanted, "%s: status %d, not %d", what, (int)status, (int)wanted);
    CHECK(strstr(status_text(), words), "%s: '%s' lacks '%s'", what, status_text(), words);
    status_clear();
}

/* ---- Names --------------------------------------------------------------------------------------------- */

static void test_resolve(void)
{
    static const struct {
        const char *path;
        enum file_format format;
        const char *foreign; /* the suffix of another format; NULL: none */
    } names[] = {{"a.npy", FILE_NPY, NULL},       {"a.NPY", FILE_NPY, NULL}, {"a.b/c.Npy", FILE_NPY, NULL},
                 {"a.npy.bin", FILE_RAW, NULL},   {"npy", FILE_RAW, NULL},   {"a.npy/keys", FILE_RAW, NULL},
                 {"a.npz", FILE_RAW, ".npz"},     {"a.H5", FILE_RAW, ".h5"}, {"a.csv", FILE_RAW, ".csv"},
                 {"a.fasta", FILE_RAW, ".fasta"}, {"a.FQ", FILE_RAW, ".fq"}, {"a.bed", FILE_RAW, ".bed"},
                 {"a.csv.bin", FILE_RAW, NULL}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *foreign = file_foreign_suffix(names[i].path);
        CHECK(file_format_resolve(names[i].path, FILE_AUTO) == names[i].format, "%s", names[i].path);
        CHECK(file_format_resolve(names[i].path, FILE_GENSORT) == FILE_GENSORT, "%s as gensort",
              names[i].path);
        CHECK(file_format_resolve(names[i].path, FILE_NPY) == FILE_NPY, "%s as npy", names[i].path);
        CHECK(names[i].foreign ? foreign && strcmp(foreign, names[i].foreign) == 0 : !foreign, "%s: %s",
              names[i].path, foreign ? foreign : "not foreign");
    }
}

static void test_start(void)
{
    static const struct {
        const char *start, *suffix; /* NULL: of no known format */
    } starts[] = {{"\x89HDF\r\n\x1a\n", ".h5"},
                  {"PK\3\4", ".npz"},
                  {"PAR1", ".parquet"},
                  {"\x1f\x8b\b", ".gz"},
                  {"\x28\xb5\x2f\xfd", ".zst"},
                  {"SIMPLE  =", ".fits"},
                  {"\x93NUMPY", ".npy"},
                  {"SIMPLE", NULL},
                  {"PK", NULL},
                  {"", NULL},
                  {"12345678", NULL}};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t own = strlen(starts[i].start);
        char bytes[32] = "";
        memcpy(bytes, starts[i].start, own);
        for (int longer = 0; longer < 2; longer++) {
            const int64_t count = (int64_t)own + 8 * longer;
            const int fd = file_of(bytes, (size_t)count);
            expect(file_check_start("x.bin", fd, FILE_RAW, NULL, count),
                   starts[i].suffix ? HSORT_FORMAT : HSORT_OK, starts[i].suffix ? starts[i].suffix : "",
                   starts[i].start);
            expect(file_check_start("x.bin", fd, FILE_RAW, "--word", count),
                   starts[i].suffix ? HSORT_FORMAT : HSORT_OK, starts[i].suffix ? "say --word" : "",
                   starts[i].start);
            expect(file_check_start("x.bin", fd, FILE_NPY, NULL, count), HSORT_OK, "", "not as raw");
            close(fd);
        }
    }
}

/* ---- Files --------------------------------------------------------------------------------------------- */

static hsort_status examine(const void *bytes, size_t count, enum file_format format,
                            const struct file_source *source, const hsort_type *type,
                            struct npy_header *header)
{
    const int fd = file_of(bytes, count);
    memset(header, 0, sizeof *header);
    const hsort_status status = file_examine("file", fd, format, source, type, (int64_t)count, header);
    close(fd);
    return status;
}

static void test_raw(void)
{
    static const char bytes[128];
    struct file_source source = {.record_word = "--record"};
    struct npy_header header;
    expect(examine(bytes, 128, FILE_RAW, &source, &u64, &header), HSORT_OK, "", "raw keys");
    CHECK(header.is_key && header.type == HSORT_U64 && header.count == 16 && header.data_offset == 0,
          "raw keys: %lld", (long long)header.count);
    CHECK(header.element.bytes == 8 && header.element.dimensions == 1, "an element of raw keys");
    expect(examine(bytes, 0, FILE_RAW, &source, &u64, &header), HSORT_OK, "", "no keys");
    CHECK(header.is_key && header.count == 0, "no keys: %lld", (long long)header.count);
    expect(examine(bytes, 127, FILE_RAW, &source, &u64, &header), HSORT_FORMAT,
           "not a whole number of u64 keys", "a part of a key");
    expect(examine(bytes, 128, FILE_RAW, &source, NULL, &header), HSORT_ARGUMENT, "add --type", "no type");
    source.any = true;
    expect(examine(bytes, 128, FILE_RAW, &source, NULL, &header), HSORT_ARGUMENT, "add --record BYTES",
           "no length");
    source.record_bytes = 32;
    expect(examine(bytes, 128, FILE_RAW, &source, NULL, &header), HSORT_OK, "", "records");
    CHECK(!header.is_key && header.count == 4 && header.element.bytes == 32 && header.element.dimensions == 1,
          "records: %lld", (long long)header.count);
    source.record_bytes = 100;
    expect(examine(bytes, 128, FILE_RAW, &source, NULL, &header), HSORT_FORMAT,
           "not a whole number of records", "a part of a record");
    expect(examine(bytes, 100, FILE_GENSORT, &source, NULL, &header), HSORT_OK, "", "gensort");
}

/* A file of `count` u32 keys, with `more` bytes too many or, if negative, too few. */
static size_t put_npy(int64_t count, int more, unsigned char *bytes)
{
    const size_t header = npy_format(HSORT_U32, count, bytes, 256);
    return (size_t)((int64_t)header + 4 * count + more);
}

static void test_npy(void)
{
    unsigned char bytes[1024] = {0};
    struct file_source source = {.record_word = "--record"};
    struct npy_header header;
    expect(examine(bytes, put_npy(10, 0, bytes), FILE_NPY, &source, NULL, &header), HSORT_OK, "", "npy");
    CHECK(header.is_key && header.type == HSORT_U32 && header.count == 10 && !header.element.descr, "npy");
    expect(examine(bytes, put_npy(0, 0, bytes), FILE_NPY, &source, &u32, &header), HSORT_OK, "", "no keys");
    for (int more = -1; more <= 1; more += 2)
        expect(examine(bytes, put_npy(10, more, bytes), FILE_NPY, &source, NULL, &header), HSORT_FORMAT,
               "10 keys of 4", "another size");
    const size_t whole = put_npy(10, 0, bytes);
    for (size_t count = 0; count < whole; count += 7) // cut off anywhere
        expect(examine(bytes, count, FILE_NPY, &source, NULL, &header), HSORT_FORMAT, "", "cut off");
    expect(examine(bytes, whole, FILE_NPY, &source, &u64, &header), HSORT_FORMAT, "holds u32 keys, not u64",
           "type");
    source.any = true;
    expect(examine(bytes, whole, FILE_NPY, &source, NULL, &header), HSORT_OK, "", "elements");
    CHECK(header.element.descr && header.element.descr_bytes == 5 &&
              memcmp(header.element.descr, "'<u4'", 5) == 0,
          "the dtype: %zu bytes", header.element.descr_bytes);
    free((char *)header.element.descr);
    expect(examine(bytes, put_npy(10, 1, bytes), FILE_NPY, &source, NULL, &header), HSORT_FORMAT,
           "10 elements of 4", "another size of elements");
    source.record_bytes = 4;
    expect(examine(bytes, whole, FILE_NPY, &source, NULL, &header), HSORT_ARGUMENT,
           "--record is of raw files", "a length of records");
}

/* ---- Headers ------------------------------------------------------------------------------------------- */

static void check_header(enum file_format format, const struct file_target *target, hsort_status wanted,
                         const char *words, const char *beginning)
{
    unsigned char *header;
    size_t bytes;
    const hsort_status status = file_make_header(format, target, 10, &header, &bytes);
    expect(status, wanted, words, target->path);
    CHECK((status == HSORT_OK) == (header != NULL), "%s: a header after status %d", target->path,
          (int)status);
    CHECK(status != HSORT_OK || bytes >= strlen(beginning), "%s: %zu bytes", target->path, bytes);
    CHECK(status != HSORT_OK ||
              (beginning[0] ? memcmp(header, beginning, strlen(beginning)) == 0 : bytes == 0),
          "%s: another header", target->path);
    if (status == HSORT_OK && target->element && beginning[0])
        CHECK(memmem(header, bytes, target->element->descr, target->element->descr_bytes),
              "%s: its dtype lacks", target->path);
    free(header);
}

static void test_headers(void)
{
    char descr[4000];
    struct npy_element pairs = {.bytes = 12, .dimensions = 1}, records = {.bytes = GENSORT_RECORD_BYTES};
    const struct file_in *const some_input =
        (const struct file_in *)&pairs; // only asked whether there is one
    memset(descr, ' ', sizeof descr);
    const char fields[] = "[('k', '<u4'), ('v', '<u8')]";
    memcpy(descr, fields, strlen(fields));
    pairs.descr = descr;
    pairs.descr_bytes = sizeof descr;
    check_header(FILE_RAW, &(struct file_target){.path = "raw", .type = HSORT_BF16}, HSORT_OK, "", "");
    check_header(FILE_NPY, &(struct file_target){.path = "npy", .type = HSORT_U32}, HSORT_OK, "",
                 "\x93NUMPY");
    check_header(FILE_NPY, &(struct file_target){.path = "generated", .type = HSORT_BF16}, HSORT_ARGUMENT,
                 "or --format raw", "");
    check_header(FILE_NPY, &(struct file_target){.path = "sorted", .type = HSORT_U128, .input = some_input},
                 HSORT_ARGUMENT, "or --output-format raw", "");
    check_header(FILE_NPY, &(struct file_target){.path = "pairs", .type = HSORT_U128, .element = &pairs},
                 HSORT_OK, "", "\x93NUMPY");
    check_header(FILE_GENSORT, &(struct file_target){.path = "gensort", .element = &records}, HSORT_OK, "",
                 "");
    check_header(FILE_GENSORT, &(struct file_target){.path = "gensort of pairs", .element = &pairs},
                 HSORT_ARGUMENT, "have 100 bytes, and these 12", "");
    check_header(FILE_GENSORT, &(struct file_target){.path = "gensort of keys", .type = HSORT_U32},
                 HSORT_ARGUMENT, "have 100 bytes, and these 4", "");
}

int main(void)
{
    test_resolve();
    test_start();
    test_raw();
    test_npy();
    test_headers();
    return check_failures > 0;
}
