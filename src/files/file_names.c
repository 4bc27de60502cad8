/* The names of an output: where it really goes, what it is called while it is written, and what earlier runs
 * have left of it.
 *
 *      OUT                                  the name, or what the symbolic link of that name leads to
 *      OUT.hypersort-PID-TIME.part          until it is whole
 *      OUT.hypersort-ID.part                the same for a sort with a checkpoint
 *      BEGIN.DIGEST.hypersort-....part      if OUT is so long that this would be too long: how it begins, and a digest of all of it
 *
 * If OUT has a %r, each rank has a file of its own, for which all this holds: "sorted.%r.npy" is sorted.0.npy on rank 0.
 * The numbers have no leading zeros: with these, a run on more ranks would give other names to the same ranks. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "kernels/base/checksum.h"
#include "kernels/base/status.h"
#include "src/files/file.h"
#include "src/files/file_internal.h"

static const char infix[] = ".hypersort-", suffix[] = ".part";

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool file_is_pattern(const char *path)
{
    while ((path = strchr(path, '%')) && path[1] != 'r')
        path += path[1] == '%' ? 2 : 1; // after %% an r is an r
    return path != NULL;
}

hsort_status file_name_as_is(const char *path, char *name)
{
    size_t length = 0;
    for (const char *at = path; *at && length + 2 < PATH_MAX; at++) {
        name[length++] = *at;
        if (*at == '%')
            name[length++] = '%';
    }
    name[length] = '\0';
    return length + 2 < PATH_MAX ? HSORT_OK : status_fail(HSORT_IO, "%.200s: is too long a name", path);
}

/* name [PATH_MAX] = `path` with the rank for each %r, and a % for each %%. */
static hsort_status expand_pattern(const char *path, int rank, char *name)
{
    size_t length = 0;
    for (const char *at = path; *at && length < PATH_MAX; at++) {
        const bool is_rank = at[0] == '%' && at[1] == 'r', is_percent = at[0] == '%' && at[1] == '%';
        if (is_rank)
            length += (size_t)snprintf(name + length, PATH_MAX - length, "%d", rank);
        else
            name[length++] = *at;
        at += is_rank || is_percent;
    }
    if (length >= PATH_MAX)
        return status_fail(HSORT_IO, "%.200s...: cannot create: %s", path, strerror(ENAMETOOLONG));
    name[length] = '\0';
    return HSORT_OK;
}

hsort_status file_refuse_input(const char *path, const struct file_in *input, const struct stat *there)
{
    return file_is_input(input, there)
               ? status_fail(HSORT_ARGUMENT, "%s: is the input; the output must be another file", path)
               : HSORT_OK;
}

/* May a file of this process take the place of this one? In a sticky directory such as /tmp, only root and the owners of the
 * file and of the directory may do that. The rename would fail, too, but only after everything is written. */
static bool may_be_replaced(const char *path, const struct stat *there)
{
    char folder[PATH_MAX];
    struct stat around;
    const int before = (int)(base_of(path) - path);
    const uid_t mine = geteuid();
    snprintf(folder, sizeof folder, "%.*s", before > 0 ? before : 1, before > 0 ? path : ".");
    return stat(folder, &around) != 0 || !(around.st_mode & S_ISVTX) || mine == 0 || mine == there->st_uid ||
           mine == around.st_uid;
}

/* file_choose_path(), whether or not the file that lies there may be replaced. */
static hsort_status find_output(const char *pattern, int rank, const struct file_in *input, char *chosen,
                                struct stat *there)
{
    char path[PATH_MAX];
    TRY(expand_pattern(pattern, rank, path));
    *there = (struct stat){0};
    const bool is_link = lstat(path, there) == 0 && S_ISLNK(there->st_mode);
    if (is_link && !realpath(path, chosen)) {
        const char *cause = strerror(errno);
        return status_fail(HSORT_IO, "%s: cannot follow the link: %s", path,
                           stat(path, there) == 0 ? "it leads to something without a name, such as a pipe"
                                                  : cause);
    }
    if (!is_link)
        strcpy(chosen, path);
    if (path[0] == '\0')
        return status_fail(HSORT_ARGUMENT, "the name of the output is empty");

    if (stat(chosen, there) == 0) {
        TRY(file_refuse_input(path, input, there));
        // A rename would put a plain file in the place of /dev/null or a FIFO.
        if (!S_ISREG(there->st_mode))
            return status_fail(HSORT_IO, "%s: cannot create: %s", path,
                               S_ISDIR(there->st_mode) ? strerror(EISDIR)
                                                       : "exists and is not a regular file");
    } else if (errno != ENOENT) {
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(errno));
    } else {
        *there = (struct stat){0};
    }
    return HSORT_OK;
}

hsort_status file_choose_path(const char *path, int rank, const struct file_in *input, char *chosen,
                              struct stat *there)
{
    TRY(find_output(path, rank, input, chosen, there));
    if (there->st_mode != 0 && !may_be_replaced(chosen, there))
        return status_fail(HSORT_IO, "%s: cannot replace: %s: it is another user's, in a sticky directory",
                           chosen, strerror(EPERM));
    return HSORT_OK;
}

hsort_status file_refuse_clobber(const char *path)
{
    return status_fail(HSORT_ARGUMENT, "%s: is there already, and --no-clobber keeps it", path);
}

hsort_status file_check_absent(const char *path, int rank)
{
    char chosen[PATH_MAX];
    struct stat there;
    TRY(find_output(path, rank, NULL, chosen, &there));
    return there.st_mode == 0 ? HSORT_OK : file_refuse_clobber(chosen);
}

hsort_status file_output_name_of(const char *path, int rank, const struct file_in *input, char *name)
{
    char chosen[PATH_MAX], directory[PATH_MAX];
    struct stat there;
    TRY(file_choose_path(path, rank, input, chosen, &there));
    // The file itself need not be there, so only its directory can be looked up.
    char *slash = strrchr(chosen, '/');
    const char *base = base_of(chosen);
    if (base[0] == '\0')
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(EISDIR));
    if (slash)
        *slash = '\0';
    if (!realpath(!slash ? "." : slash == chosen ? "/" : chosen, directory))
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(errno));
    if (snprintf(name, PATH_MAX, "%s/%s", directory[1] ? directory : "", base) >= PATH_MAX)
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(ENAMETOOLONG));
    return HSORT_OK;
}

hsort_status file_output_name(const char *path, const struct file_in *input, char *name)
{
    return file_output_name_of(path, 0, input, name);
}

enum { MARK_BYTES = 17 };

/* mark [MARK_BYTES + 1] = "." and the checksum of a whole name, which tells apart names that begin alike. It has 64 bits,
 * because the files of thousands of ranks may begin alike. */
static void mark_whole_name(const char *base, char *mark)
{
    snprintf(mark, MARK_BYTES + 1, ".%016" PRIx64, checksum_add(CHECKSUM_START, base, strlen(base)));
}

hsort_status file_temporary_name(const char *path, const char *tag, char *name)
{
    const char *base = base_of(path);
    const size_t before = (size_t)(base - path);
    const size_t most = NAME_MAX - (sizeof infix - 1) - strlen(tag) - (sizeof suffix - 1);
    char mark[MARK_BYTES + 1] = "";
    size_t kept = strlen(base);
    if (kept > most) {
        mark_whole_name(base, mark);
        for (kept = most - MARK_BYTES;
             kept > 0 && ((unsigned char)base[kept] & 0xc0) == 0x80;) // inside of a UTF-8 character
            kept--;
    }
    if (snprintf(name, PATH_MAX, "%.*s%s%s%s%s", (int)(before + kept), path, mark, infix, tag, suffix) >=
        PATH_MAX)
        return status_fail(HSORT_IO, "%s: cannot create: %s", path, strerror(ENAMETOOLONG));
    return HSORT_OK;
}

hsort_status file_name_tagged(const char *path, int rank, const char *tag, char *name)
{
    char chosen[PATH_MAX];
    struct stat there;
    TRY(file_choose_path(path, rank, NULL, chosen, &there));
    return file_temporary_name(chosen, tag, name);
}

/* Is `name` a temporary name of an output called `base`? */
static bool is_temporary_of(const char *name, const char *base)
{
    const char *end = NULL;
    for (const char *found = name; (found = strstr(found, infix)); found++)
        end = found;
    if (!end || strlen(end) < sizeof suffix || strcmp(end + strlen(end) - (sizeof suffix - 1), suffix) != 0)
        return false;
    const size_t named = (size_t)(end - name), whole = strlen(base);
    if (named == whole)
        return strncmp(name, base, whole) == 0;
    // A shorter name belongs to another output, unless it was cut.
    char mark[MARK_BYTES + 1];
    mark_whole_name(base, mark);
    return named < whole && named >= MARK_BYTES && strncmp(end - MARK_BYTES, mark, MARK_BYTES) == 0 &&
           strncmp(name, base, named - MARK_BYTES) == 0;
}

void file_find_stale(const struct file_out *file, char *name)
{
    const char *base = base_of(file->path), *own = base_of(file->temporary);
    char *directory = base == file->path ? strdup(".") : strndup(file->path, (size_t)(base - file->path));
    DIR *listing = directory ? opendir(directory) : NULL;
    name[0] = '\0';
    for (struct dirent *entry; listing && name[0] == '\0' && (entry = readdir(listing));)
        if (is_temporary_of(entry->d_name, base) && strcmp(entry->d_name, own) != 0)
            snprintf(name, PATH_MAX, "%.*s%s", (int)(base - file->path), file->path, entry->d_name);
    if (listing)
        closedir(listing);
    free(directory);
}
