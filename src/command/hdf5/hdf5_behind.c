#include "src/command/hdf5/hdf5_behind.h"
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/hdf5/hdf5_error.h"

/* A virtual dataset that is looked at, and the datasets of which it is a source: a dataset that leads to itself would have no end. */
struct above {
    const struct above *above;
    unsigned long file;
    haddr_t place;
};

/* ---- Where a named file may be ------------------------------------------------------------------------------- */

/* HDF5 looks in the working folder, in the folder of the file that holds the name, and, if that file is a link, in the folder of the file
 * that it leads to. Which comes first depends on what is named, and on the version of HDF5. Every file that is found counts: one too many
 * only costs the user another name for the output, one too few costs the input. */
enum { PLACES = 3 };

/* found [PATH_MAX] = the file that the file `from` calls `name`, at one of the places. False: it is not there, or an earlier place leads
 * to the same file. */
static bool find_behind(const char *name, const char *from, int place, char *found)
{
    char folder[PATH_MAX], path[2 * PATH_MAX], before[PATH_MAX];
    const char *last = strrchr(name, '/');
    if (place == 0)
        return realpath(name, found);
    if (place == 1)
        snprintf(folder, sizeof folder, "%s", from);
    else if (!realpath(from, folder))
        return false;
    snprintf(path, sizeof path, "%s/%s", dirname(folder), name[0] == '/' ? last + 1 : name);
    if (!realpath(path, found))
        return false;
    for (int i = 0; i < place; i++)
        if (find_behind(name, from, i, before) && strcmp(before, found) == 0)
            return false;
    return true;
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

static hsort_status add_dataset(struct file_in *files, hid_t dataset, const struct above *above);

/* name [PATH_MAX] = what a virtual dataset calls its source `number`: for %b the number, for %% a %. True: it has a %b. */
static bool expand_source(const char *text, int64_t number, char *name)
{
    size_t length = 0;
    bool numbered = false;
    for (; *text && length + 24 < PATH_MAX; text++) {
        if (text[0] == '%' && text[1] == 'b') {
            length += (size_t)snprintf(name + length, 24, "%" PRId64, number);
            numbered = true;
        } else {
            name[length++] = *text;
        }
        text += text[0] == '%' && (text[1] == 'b' || text[1] == '%');
    }
    name[length] = '\0';
    return numbered;
}

/* Add a source that lies in the file at `path`. *there is set if the file has it. */
static hsort_status add_source_in(struct file_in *files, const char *path, const char *dataset,
                                  const struct above *above, bool *there)
{
    TRY(file_add_behind(files, path));
    const hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    const hid_t source = file < 0 ? H5I_INVALID_HID : H5Dopen2(file, dataset, H5P_DEFAULT);
    hdf5_forget(); // what is not there has the fill value
    hsort_status status = HSORT_OK;
    if (source >= 0) {
        *there = true;
        status = add_dataset(files, source, above);
        H5Dclose(source);
    }
    if (file >= 0)
        H5Fclose(file);
    return status;
}

/* Add the sources of one mapping of a virtual dataset in the file `from`; with %b in their names, as many as there are. */
static hsort_status add_sources(struct file_in *files, const char *from, const char *file_text,
                                const char *dataset_text, const struct above *above)
{
    bool more = true;
    for (int64_t number = 0; more; number++) {
        char file[PATH_MAX], dataset[PATH_MAX], path[PATH_MAX];
        bool there = false;
        const bool numbered = expand_source(file_text, number, file);
        const bool numbers = expand_source(dataset_text, number, dataset) || numbered;
        if (strcmp(file, ".") == 0)
            TRY(add_source_in(files, from, dataset, above, &there));
        for (int place = 0; place < PLACES && strcmp(file, ".") != 0; place++)
            if (find_behind(file, from, place, path))
                TRY(add_source_in(files, path, dataset, above, &there));
        more = numbers && there;
    }
    return HSORT_OK;
}

static hsort_status add_virtual(struct file_in *files, const char *from, hid_t properties,
                                const struct above *above)
{
    size_t count = 0;
    char file[PATH_MAX], dataset[PATH_MAX];
    H5Pget_virtual_count(properties, &count);
    for (size_t i = 0; i < count; i++) {
        if (H5Pget_virtual_filename(properties, i, file, sizeof file) < 0 ||
            H5Pget_virtual_dsetname(properties, i, dataset, sizeof dataset) < 0)
            return hdf5_fail(HSORT_FORMAT, "%s: the sources of a virtual dataset cannot be read", from);
        TRY(add_sources(files, from, file, dataset, above));
    }
    return HSORT_OK;
}

/* Add the files of external storage, which hold only bytes. */
static hsort_status add_external(struct file_in *files, const char *from, hid_t properties)
{
    const int count = H5Pget_external_count(properties);
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX] = "", path[PATH_MAX];
        if (H5Pget_external(properties, (unsigned)i, sizeof name - 1, name, NULL, NULL) < 0)
            return hdf5_fail(HSORT_FORMAT, "%s: the files of a dataset's data cannot be read", from);
        for (int place = 0; place < PLACES; place++)
            if (find_behind(name, from, place, path))
                TRY(file_add_behind(files, path));
    }
    return HSORT_OK;
}

/* Add the file that an object lies in; from [PATH_MAX] = its name. */
static hsort_status add_own_file(struct file_in *files, hid_t object, char *from)
{
    const ssize_t length = H5Fget_name(object, from, PATH_MAX);
    if (length < 0 || length >= PATH_MAX)
        return hdf5_fail(HSORT_FORMAT, "%s: leads to a file that cannot be told", files->path);
    return file_add_behind(files, from);
}

static hsort_status add_dataset(struct file_in *files, hid_t dataset, const struct above *above)
{
    char from[PATH_MAX];
    H5O_info_t facts;
    if (H5Oget_info(dataset, &facts) < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: a dataset cannot be looked at", files->path);
    const struct above here = {above, facts.fileno, facts.addr};
    for (; above; above = above->above)
        if (above->file == here.file && above->place == here.place)
            return status_fail(HSORT_FORMAT, "%s: a virtual dataset leads to itself", files->path);
    TRY(add_own_file(files, dataset, from));
    const hid_t properties = H5Dget_create_plist(dataset);
    hsort_status status = HSORT_OK;
    if (H5Pget_layout(properties) == H5D_VIRTUAL)
        status = add_virtual(files, from, properties, &here);
    else if (H5Pget_external_count(properties) > 0)
        status = add_external(files, from, properties);
    H5Pclose(properties);
    return status;
}

hsort_status hdf5_add_behind(const struct hdf5_part *part, int columns, struct file_in *files)
{
    char from[PATH_MAX];
    TRY(add_own_file(files, part->object, from));
    for (int i = 0; i < columns; i++)
        TRY(add_dataset(files, part->dataset[i], NULL));
    return HSORT_OK;
}
