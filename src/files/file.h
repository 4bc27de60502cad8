/* Key files: raw little-endian keys and NumPy's .npy, read and written by ranges. Every rank reads and writes
 * its own contiguous range, by as many threads as it likes, with pread and pwrite (block_io.h). MPI-IO is not
 * used: the ranks of a sort never interleave, so its collective buffering would gain nothing. Offsets are 64-bit
 * throughout. */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include "mpi/comm/comm.h"
#include "src/files/block_io.h"
#include "src/files/npy.h"
#include "hypersort.h"

/* X(name, short name) */
#define FILE_FORMAT_LIST(X)                                             \
    X(FILE_AUTO, "auto") /* .npy by its name, anything else raw */      \
    X(FILE_RAW, "raw")   /* keys, little-endian; or records */          \
    X(FILE_NPY, "npy")   /* NumPy's: a header, then an array */         \
    X(FILE_GENSORT, "gensort") /* raw, with the records of gensort.h in it */

enum file_format {
#define X(name, short_name) name,
    FILE_FORMAT_LIST(X)
#undef X
        FILE_FORMATS
};

/* What to read: files of one type, taken as one array in this order. */
struct file_source {
    const char *const *paths; /* [paths_count]; at least one */
    int paths_count;
    enum file_format format; /* of each; AUTO: by its name */
    const hsort_type *type;  /* that the user named, or NULL: then the format of the first file must name it */
    hsort_choice direct_io; /* OFF: through the page cache; AUTO, ON: block_io.h */
    const char *raw_word;   /* the option that says that they are raw, for texts; NULL: --format raw */

    /* Not keys but elements of any kind, as bytes: */
    bool any;
    size_t record_bytes;     /* of an element of a raw file; 0: not given. A .npy file says it itself */
    const char *record_word; /* the option that gives it, for texts */
};

/* What to write. In the path %r stands for the rank, and each rank then writes a file of its own; %% is a %. */
struct file_target {
    const char *path;
    enum file_format format;
    hsort_type type;                   /* of keys */
    const struct npy_element *element; /* what is written if not keys, or NULL */
    int64_t count;                     /* of all ranks */
    int64_t first, mine;         /* with %r: this rank's keys: where they begin among all, how many */
    const struct file_in *input; /* the file may be none of its files (by device and inode); or NULL */
    const struct file_in *other_input; /* the same */
    hsort_choice direct_io;
    bool no_clobber; /* it replaces no file, not even one that appears while it is written */
    const char *tag; /* of the temporary name of file_create(), the same on every rank; NULL: one that no other run has */
};

/* Callers that move many keys do so in chunks whose borders lie at multiples of this in the file. Then all of a rank's
 * range except its first and its last block can be moved directly. */
enum { FILE_CHUNK_BYTES = 4 << 20 };

/* One of the files of an input, open on every rank. */
struct file_part {
    char *path; /* owned */
    int fd;
    struct block_file *blocks; /* what reads fd; owned */
    enum file_format format;   /* never AUTO */
    bool swapped;              /* keys are big-endian on disk */
    int64_t first, count;      /* its keys among all */
    int64_t data_offset;       /* bytes before the first key */
    dev_t device;              /* of the file, to recognise it under another name */
    ino_t inode;
    int64_t bytes;           /* as this rank found it */
    struct timespec changed; /* when the file was last changed, as this rank found it */
};

/* A file that an input leads to: no output may replace this file either, and it may not change. */
struct file_behind {
    char *path; /* owned */
    dev_t device;
    ino_t inode;
    int64_t bytes; /* these as this rank found them */
    struct timespec changed;
};

/* Key files open for reading on every rank, one after the other. */
struct file_in {
    char *path; /* for texts: of the only file, or "a.npy and 2 more"; owned */
    hsort_type type;            /* of keys */
    bool is_any;                /* elements of any kind: "key" then means an element, here and for all functions */
    bool is_key;                /* keys, or elements that could be read as keys */
    struct npy_element element; /* its descr, unless NULL, is owned */
    int64_t count;              /* keys in all files */
    struct file_part *part; /* [parts]; owned */
    int parts;
    bool cuts; /* chunks that end at round places of one file could cut keys of a file with swapped bytes */
    struct file_behind *behind; /* [behinds] files that have some of its bytes; owned */
    int behinds;
};

/* A key file being written under a temporary name beside its own. */
struct file_out {
    bool own;                /* this rank's alone; else all ranks write it */
    char *path, *temporary;  /* owned */
    int fd;
    struct block_file *blocks; /* what writes fd; owned */
    int guard; /* its place among the outputs that a signal removes (file_guard.h) */
    enum file_format format;
    hsort_type type;      /* of keys */
    size_t key_bytes;     /* of a key, or of an element of any kind */
    int64_t first, count; /* its keys among all */
    int64_t data_offset;
    bool no_clobber;
    bool replaces; /* on rank 0, or of an own file: a file of that name was there, and this one gets its mode and owner */
    struct stat rights;
    bool was_full; /* the disk had no room for it: known also after its end */
};

/* Open files, read their headers on rank 0, and check the sizes against them. Collective.
 *   file  [1] written; file_close() frees it; nothing to free after an error
 * Errors   same on every rank, comm->error names the file: HSORT_IO (cannot be opened or read, a directory, O_DIRECT
 *          refused, more files than this process may have open, ...), HSORT_FORMAT (AUTO, and the file begins like a file
 *          of another format; size not a multiple of the key size; a bad, lying, huge, empty header; 2-D; Fortran order
 *          of anything but one dimension; a dtype that is no key type; a type that contradicts the wanted one, or that of
 *          the first file), HSORT_HOST_MEMORY,
 *          HSORT_ARGUMENT (raw without a type; ranks that find different files of that name). For elements of any kind:
 *          size not a multiple, Fortran order of more than one dimension, Python objects, a dtype or a shape other than
 *          the first file's; HSORT_ARGUMENT: raw without record_bytes, .npy with it. */
hsort_status file_open(struct comm *comm, const struct file_source *source, struct file_in *file);

/* keys [count] = the keys from position `first` on, in the byte order of this machine. Any thread, any number of calls
 * at once. Not collective.
 * Errors   HSORT_IO, also for a file that was cut short since it was opened: the text says so; HSORT_HOST_MEMORY. */
hsort_status file_read(const struct file_in *file, int64_t first, int64_t count, void *keys);

/* The same by bytes: to [bytes] = the bytes from byte `at` of all keys on. A border may cut a key, but not a key of a file
 * with swapped bytes (HSORT_INTERNAL): chunks laid by file_in_lead() cut no such key. */
hsort_status file_read_at(const struct file_in *file, int64_t at, size_t bytes, void *to);

/* Where byte `at` of all keys lies in its file, modulo FILE_CHUNK_BYTES: a chunk that begins there and is to end at a
 * multiple has FILE_CHUNK_BYTES - lead bytes. 0 if such chunks would cut keys with swapped bytes. Not collective. */
size_t file_in_lead(const struct file_in *file, int64_t at);

/* After the last read: does each file still have the size and the time of its last change that it had when it was opened?
 * If not, keys from before and after the change may be mixed. It is no change if a file only lost its name, or if another
 * file was given that name: what was opened is read to the end. The files that an input leads to must be the same ones, too. Not collective.
 * Errors HSORT_IO: a file was changed. */
hsort_status file_check_unchanged(const struct file_in *file);

/* Add name, size and time of the last change of each file, and of each one that the input leads to, to a digest. Returns the sum
 * (checksum.h). Not collective. */
uint64_t file_add_identity(const struct file_in *file, uint64_t digest);

/* Let the file at `path`, if there is one, count as the input, too: the output must be another file. Not collective.
 * Errors HSORT_IO (the file cannot be looked at), HSORT_HOST_MEMORY. */
hsort_status file_add_behind(struct file_in *file, const char *path);

void file_close(struct file_in *file); /* not collective */

enum { FILE_OUTPUTS = 5 };

/* Does this name of an output have a %r in it? Not collective. */
bool file_is_pattern(const char *path);

/* name [PATH_MAX] = the pattern of an output whose name is `path` as it stands: each % of it is doubled. Not collective.
 * Error HSORT_IO: it is too long. */
hsort_status file_name_as_is(const char *path, char *name);

/* Create the temporary file of an output, with its header and its full size. Collective.
 *   file  [1] written; ended by file_commit(); FILE_OUTPUTS at a time in a process
 * After    the temporary is also removed if this process gets SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP, SIGQUIT or SIGXCPU
 *          (mpirun sends SIGTERM when a rank dies).
 * Errors   same on every rank: HSORT_IO, HSORT_ARGUMENT (output is the input), HSORT_HOST_MEMORY; nothing is left behind. */
hsort_status file_create(struct comm *comm, const struct file_target *target, struct file_out *file);

/* The same for an output that is to outlast a stop: under the temporary name `temporary`, in the same
 * directory, where an earlier run may have left it. With %r each rank gives its own name, and must see to it that no two
 * names are one file. Collective.
 *   kept   [1] written, the same on every rank: a file of the right size was there, on each rank, and its keys are as they were
 * After    the temporary is removed on the same signals except SIGTERM and SIGUSR1, which are stop.h's.
 * Errors   as file_create(). A file of another size or with another header is replaced; after an error, a file that is to
 *          be kept stays. */
hsort_status file_resume(struct comm *comm, const struct file_target *target, const char *temporary,
                         struct file_out *file, bool *kept);

/* to [bytes] = what the file holds from byte `at` of all keys on, before it is committed or left. Any thread, any number of
 * calls at once. Not collective. Errors HSORT_IO, HSORT_HOST_MEMORY. */
hsort_status file_read_back_at(const struct file_out *file, int64_t at, size_t bytes, void *to);

/* Find a temporary file of the same output that is not this one: name [PATH_MAX] = its path, or "" if there is
 * none. Either a run that was killed or stopped left it, or another run is writing it; these cannot be told apart.
 * Not collective. */
void file_find_stale(const struct file_out *file, char *name);

/* End an output that is not whole: close it, and leave it under its temporary name. Frees *file. Collective. */
void file_leave(struct comm *comm, struct file_out *file);

/* The same, and remove it. */
void file_drop(struct comm *comm, struct file_out *file);

/* name [PATH_MAX] = the temporary name, with file_target.tag `tag`, of the output at `path` of `rank`. Whether that
 * is an input is not looked at. Not collective. Errors HSORT_IO, HSORT_ARGUMENT. */
hsort_status file_name_tagged(const char *path, int rank, const char *tag, char *name);

/* Remove the old file that a run may have kept beside the temporary name of an output, if the run was killed while several
 * outputs got their names. The output is whole then. Not collective. */
void file_forget_old(const char *temporary);

/* Is there no file where the output at `path` of a rank goes, and so none that it would replace? Not collective.
 * Errors HSORT_ARGUMENT (there is one), HSORT_IO (none can be there). */
hsort_status file_check_absent(const char *path, int rank);

/* name [PATH_MAX] = where the output at `path`, of rank 0 or of another rank, really goes, from the root on and with links
 * followed. Not collective.
 * Errors HSORT_IO (no file can be there), HSORT_ARGUMENT (it is `input`). */
hsort_status file_output_name(const char *path, const struct file_in *input, char *name);
hsort_status file_output_name_of(const char *path, int rank, const struct file_in *input, char *name);

/* Write keys [count] at position `first`. Any thread, any number of calls at once. Not collective. Errors HSORT_IO,
 * HSORT_HOST_MEMORY. */
hsort_status file_write(const struct file_out *file, int64_t first, int64_t count, const void *keys);

/* The same by bytes, whose borders may cut a key; and where bytes lie in the file, as file_in_lead() says for reading. */
hsort_status file_write_at(const struct file_out *file, int64_t at, size_t bytes, const void *from);
size_t file_out_lead(const struct file_out *file, int64_t at);

/* Make the file whole and give it its name, with mode and owner of the file that it replaces, if there was one. Every
 * rank syncs and closes, then rank 0 renames and syncs the directory, each step after agreement. With own files each rank
 * renames its own, once all are whole; if that fails, all files are as before (file_commit.c). If `mine` is not HSORT_OK on
 * any rank, or after a failure, the temporary is removed. Collective.
 * Errors   same on every rank: the greatest `mine`, HSORT_IO, or, with no_clobber, HSORT_ARGUMENT: a file of that name is
 *          there. Frees *file in any case. */
hsort_status file_commit(struct comm *comm, struct file_out *file, hsort_status mine);

/* The same for several outputs, at most FILE_OUTPUTS: none gets its name before all are whole, and if one then cannot be given
 * its name, all are as before. */
hsort_status file_commit_all(struct comm *comm, struct file_out *const *files, int count, hsort_status mine);

/* The suffix of `path` if it is that of a format that is not known here, such as ".h5"; else NULL. A file with
 * such a name is not taken for raw keys unless the user says so. Not collective. Static. */
const char *file_foreign_suffix(const char *path);

/* `format`, with FILE_AUTO decided by the name of the file. Not collective. */
enum file_format file_format_resolve(const char *path, enum file_format format);

/* "raw", "npy". Not collective. */
const char *file_format_name(enum file_format format);

#endif
