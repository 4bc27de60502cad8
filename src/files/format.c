/* The formats of key files: their names, and how a header is read and written. A new one is a line of
 * FILE_FORMAT_LIST (file.h) and a row of the table here. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "kernels/base/status.h"
#include "src/files/file_internal.h"
#include "src/files/gensort.h"
#include "src/files/npy.h"

/* ---- Headers ------------------------------------------------------------------------------------------- */

/* Read the header of a .npy file as it stands in the file: *header [*bytes], for the caller to free; NULL after an error. */
static hsort_status read_npy_header(const char *path, int fd, int64_t file_bytes, unsigned char **header,
                                    size_t *bytes)
{
    unsigned char head[NPY_HEAD_BYTES];
    size_t announced = 0;
    *header = NULL;
    *bytes = file_bytes < NPY_HEAD_BYTES ? (size_t)file_bytes : NPY_HEAD_BYTES;
    TRY(block_read_cached(path, fd, 0, *bytes, head));
    TRY(npy_header_bytes(path, head, *bytes, &announced));
    *bytes = file_bytes < (int64_t)announced ? (size_t)file_bytes : announced;
    *header = malloc(*bytes);
    if (!*header)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its header of %zu bytes", path, *bytes);
    const hsort_status status = block_read_cached(path, fd, 0, *bytes, *header);
    if (status == HSORT_OK)
        return HSORT_OK;
    free(*header);
    *header = NULL;
    return status;
}

/* Check what a .npy header says against the size of the file, and against what is wanted. */
static hsort_status check_npy_header(const char *path, const struct file_source *source,
                                     const hsort_type *wanted_type, int64_t file_bytes,
                                     struct npy_header *said)
{
    const int64_t key_bytes = (int64_t)said->element.bytes;
    struct npy_element borrowed = said->element;
    said->element.descr = NULL;
    if (file_bytes - said->data_offset != said->count * key_bytes)
        return status_fail(HSORT_FORMAT,
                           "%s: header and size disagree: %" PRId64 " %s of %" PRId64 " bytes after %" PRId64
                           " bytes of header would make %" PRIu64 " bytes, the file has %" PRId64,
                           path, said->count, source->any ? "elements" : "keys", key_bytes, said->data_offset,
                           (uint64_t)(said->count * key_bytes) + (uint64_t)said->data_offset, file_bytes);
    if (wanted_type && *wanted_type != said->type)
        return status_fail(HSORT_FORMAT, "%s: holds %s keys, not %s", path, hsort_type_name(said->type),
                           hsort_type_name(*wanted_type));
    if (borrowed.descr && !(said->element.descr = npy_copy_descr(&borrowed, &said->element.descr_bytes)))
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its dtype", path);
    return HSORT_OK;
}

static hsort_status examine_npy(const char *path, int fd, const struct file_source *source,
                                const hsort_type *wanted_type, int64_t file_bytes, struct npy_header *said)
{
    unsigned char *header;
    size_t bytes;
    if (source->record_bytes > 0)
        return status_fail(HSORT_ARGUMENT,
                           "%s: %s is of raw files; a .npy file says itself how long its records are", path,
                           source->record_word);
    TRY(read_npy_header(path, fd, file_bytes, &header, &bytes));
    hsort_status status = (source->any ? npy_parse_any : npy_parse)(path, header, bytes, said);
    if (status == HSORT_OK)
        status = check_npy_header(path, source, wanted_type, file_bytes, said);
    free(header);
    return status;
}

/* Examine a raw file of elements, which are bytes. */
static hsort_status examine_records(const char *path, const struct file_source *source, int64_t file_bytes,
                                    struct npy_header *said)
{
    if (source->record_bytes == 0)
        return status_fail(HSORT_ARGUMENT,
                           "%s: a raw file does not say how long its records are: add %s BYTES", path,
                           source->record_word);
    const int64_t record_bytes = (int64_t)source->record_bytes;
    if (file_bytes % record_bytes != 0)
        return status_fail(HSORT_FORMAT,
                           "%s: %" PRId64 " bytes are not a whole number of records of %" PRId64 " bytes",
                           path, file_bytes, record_bytes);
    said->element = (struct npy_element){.bytes = source->record_bytes, .dimensions = 1};
    said->count = file_bytes / record_bytes;
    return HSORT_OK;
}

/* Not collective. */
static hsort_status examine_raw(const char *path, int fd, const struct file_source *source,
                                const hsort_type *wanted_type, int64_t file_bytes, struct npy_header *said)
{
    (void)fd;
    if (source->any)
        return examine_records(path, source, file_bytes, said);
#define X(name, short_name, bytes) "|" short_name
    static const char types[] = HSORT_TYPE_LIST(X);
#undef X
    if (!wanted_type)
        return status_fail(HSORT_ARGUMENT,
                           "%s: a raw file does not say what type its keys have: add --type %s", path,
                           types + 1);
    const int64_t key_bytes = (int64_t)hsort_type_bytes(*wanted_type);
    if (file_bytes % key_bytes != 0)
        return status_fail(HSORT_FORMAT,
                           "%s: %" PRId64 " bytes are not a whole number of %s keys of %" PRId64 " bytes",
                           path, file_bytes, hsort_type_name(*wanted_type), key_bytes);
    said->is_key = true;
    said->type = *wanted_type;
    said->element = (struct npy_element){.bytes = (size_t)key_bytes, .dimensions = 1};
    said->count = file_bytes / key_bytes;
    return HSORT_OK;
}

/* ---- The table ----------------------------------------------------------------------------------------- */

static const struct {
    const char *suffix; /* of the files that AUTO takes for this format; NULL: no suffix of its own */
    hsort_status (*examine)(const char *, int, const struct file_source *, const hsort_type *, int64_t,
                            struct npy_header *);
    bool has_header;
} formats[] = {
    [FILE_AUTO] = {NULL, NULL, false},
    [FILE_RAW] = {NULL, examine_raw, false},
    [FILE_GENSORT] = {NULL, examine_raw, false},
    [FILE_NPY] = {".npy", examine_npy, true},
};
_Static_assert(sizeof formats / sizeof *formats == FILE_FORMATS, "a row for each format");

const char *file_format_name(enum file_format format)
{
    static const char *const names[] = {
#define X(name, short_name) short_name,
        FILE_FORMAT_LIST(X)
#undef X
    };
    return names[format];
}

enum file_format file_format_resolve(const char *path, enum file_format format)
{
    const char *suffix = strrchr(path, '.');
    if (format != FILE_AUTO)
        return format;
    for (int f = 0; suffix && f < FILE_FORMATS; f++)
        if (formats[f].suffix && strcasecmp(suffix, formats[f].suffix) == 0)
            return (enum file_format)f;
    return FILE_RAW;
}

hsort_status file_examine(const char *path, int fd, enum file_format format, const struct file_source *source,
                          const hsort_type *type, int64_t bytes, struct npy_header *header)
{
    return formats[format].examine(path, fd, source, type, bytes, header);
}

hsort_status file_make_header(enum file_format format, const struct file_target *target, int64_t count,
                              unsigned char **header, size_t *bytes)
{
    const size_t room = NPY_HEADER_ROOM + (target->element ? target->element->descr_bytes : 0);
    *bytes = 0;
    *header = NULL;
    if (formats[format].has_header && !target->element && !npy_has_dtype(target->type))
        return status_fail(HSORT_ARGUMENT, "%s: NumPy has no dtype for %s keys: write a raw file, or %s raw",
                           target->path, hsort_type_name(target->type),
                           target->input ? "--output-format" : "--format");
    if (format == FILE_GENSORT && (!target->element || target->element->bytes != GENSORT_RECORD_BYTES))
        return status_fail(HSORT_ARGUMENT, "%s: records of gensort have %d bytes, and these %zu",
                           target->path, (int)GENSORT_RECORD_BYTES,
                           target->element ? target->element->bytes : hsort_type_bytes(target->type));
    *header = malloc(room);
    if (!*header)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its header", target->path);
    if (formats[format].has_header)
        *bytes = target->element ? npy_format_any(target->element, count, *header, room)
                                 : npy_format(target->type, count, *header, room);
    return HSORT_OK;
}

/* ---- Formats of others --------------------------------------------------------------------------------- */

/* The suffixes of other formats, and how their files begin. */
static const struct {
    const char *suffix, *start;
} foreign[] = {{".h5", "\x89HDF\r\n\x1a\n"},
               {".hdf5", "\x89HDF\r\n\x1a\n"},
               {".npz", "PK\3\4"},
               {".zip", "PK\3\4"},
               {".parquet", "PAR1"},
               {".gz", "\x1f\x8b\b"},
               {".bam", "\x1f\x8b\b"},
               {".zst", "\x28\xb5\x2f\xfd"},
               {".fits", "SIMPLE  ="},
               {".csv", NULL},
               {".txt", NULL},
               {".tsv", NULL},
               {".json", NULL},
               {".fa", NULL},
               {".fasta", NULL},
               {".fq", NULL},
               {".fastq", NULL},
               {".sam", NULL},
               {".vcf", NULL},
               {".bed", NULL},
               {".npy", "\x93NUMPY"}}; // under another name
enum { FOREIGN = sizeof foreign / sizeof *foreign, START_MOST = 9 };

const char *file_foreign_suffix(const char *path)
{
    const char *suffix = strrchr(path, '.');
    for (int i = 0; suffix && i < FOREIGN; i++)
        if (strcasecmp(suffix, foreign[i].suffix) == 0 && file_format_resolve(path, FILE_AUTO) == FILE_RAW)
            return foreign[i].suffix;
    return NULL;
}

static bool is_npy(int i)
{
    return strcmp(foreign[i].suffix, ".npy") == 0;
}

hsort_status file_check_start(const char *path, int fd, enum file_format format, const char *raw_word,
                              int64_t bytes)
{
    char start[START_MOST] = "";
    if (format != FILE_RAW)
        return HSORT_OK;
    TRY(block_read_cached(path, fd, 0, bytes < START_MOST ? (size_t)bytes : START_MOST, start));
    for (int i = 0; i < FOREIGN; i++)
        if (foreign[i].start && memcmp(start, foreign[i].start, strlen(foreign[i].start)) == 0)
            return status_fail(HSORT_FORMAT, "%s: begins like a %s file; %sif its keys are raw%s, say %s",
                               path, foreign[i].suffix, is_npy(i) && !raw_word ? "say --format npy; " : "",
                               is_npy(i) && !raw_word ? " all the same" : "",
                               raw_word ? raw_word : "--format raw");
    return HSORT_OK;
}
