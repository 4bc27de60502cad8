#include "src/command/hdf5/hdf5_in.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/hdf5/hdf5_behind.h"
#include "src/command/hdf5/hdf5_error.h"
#include "src/command/hdf5/hdf5_walk.h"
#include "src/command/report.h"

enum { LEFT_SHOWN = 400, NAMES_SHOWN = 120 }; // characters

/* ---- What a dataset is ------------------------------------------------------------------------------------ */

/* Rows of a dataset; -1: it has no first dimension. */
static int64_t rows_of(hid_t dataset)
{
    hsize_t extent[H5S_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL); // 0: a scalar, or nothing at all
    H5Sclose(space);
    return rank >= 1 ? (int64_t)extent[0] : -1;
}

/* Can each filter be undone, and applied again? A filter that drops digits would drop more digits the next time. */
static hsort_status check_filters(const char *path, const char *name, hid_t properties, H5T_class_t class)
{
    unsigned flags, can;
    for (int i = 0; i < H5Pget_nfilters(properties); i++) {
        char filter_name[64] = "";
        size_t values = 0;
        const H5Z_filter_t filter = H5Pget_filter2(properties, (unsigned)i, &flags, &values, NULL,
                                                   sizeof filter_name, filter_name, NULL);
        if (filter == H5Z_FILTER_SCALEOFFSET && class == H5T_FLOAT)
            return status_fail(HSORT_FORMAT,
                               "%s: dataset '%.100s' is packed by scale-offset, which drops digits each "
                               "time: unpack it first, "
                               "by h5repack",
                               path, name);
        if (H5Zfilter_avail(filter) <= 0 || H5Zget_filter_info(filter, &can) < 0 ||
            !(can & H5Z_FILTER_CONFIG_DECODE_ENABLED) || !(can & H5Z_FILTER_CONFIG_ENCODE_ENABLED)) {
            hdf5_forget();
            return status_fail(HSORT_FORMAT,
                               "%s: dataset '%.100s' is packed by filter %d (%.60s), which this HDF5 cannot "
                               "undo and do again",
                               path, name, (int)filter, filter_name[0] ? filter_name : "unknown");
        }
    }
#if H5_VERSION_GE(1, 14, 0) && !defined H5_HAVE_PARALLEL_FILTERED_WRITES // before that it goes without saying
    if (H5Pget_nfilters(properties) > 0)
        return status_fail(HSORT_FORMAT,
                           "%s: dataset '%.100s' is packed, and this parallel HDF5 cannot write packed datasets", path,
                           name);
#endif
    return HSORT_OK;
}

/* Fill in everything about the column except its place in a row. */
static hsort_status look_at_dataset(const char *path, hid_t dataset, struct hdf5_column *column)
{
    hsize_t extent[H5S_MAX_RANK] = {0}, chunk[H5S_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset),
                properties = H5Dget_create_plist(dataset);
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    column->type = H5Tcopy(type); // a type with a name becomes one without
    column->dimensions = rank - 1;
    column->row_bytes = H5Tget_size(type);
    for (int i = 1; i < rank; i++) {
        column->extent[i - 1] = extent[i];
        if (__builtin_mul_overflow(column->row_bytes, (size_t)extent[i], &column->row_bytes))
            column->row_bytes = SIZE_MAX;
    }
    if (H5Pget_layout(properties) == H5D_CHUNKED && H5Pget_chunk(properties, H5S_MAX_RANK, chunk) > 0)
        column->chunk_rows = (int64_t)chunk[0];
    hsort_status status = hdf5_check_type(path, column->name, type);
    if (status == HSORT_OK)
        status = check_filters(path, column->name, properties, H5Tget_class(type));
    if (status == HSORT_OK && column->row_bytes > CLI_RECORD_MOST)
        status = status_fail(HSORT_ARGUMENT, "%s: dataset '%.100s' has rows of %zu bytes; %d can be moved",
                             path, column->name, column->row_bytes, CLI_RECORD_MOST);
    H5Sclose(space);
    H5Tclose(type);
    H5Pclose(properties);
    return status;
}

static hsort_status fail_names(const struct hdf5_in *in)
{
    return status_fail(HSORT_HOST_MEMORY, "%s: no memory for the names of its members", in->files.path);
}

/* Add a column with its name. */
static hsort_status add_column(struct hdf5_in *in, const char *name)
{
    struct hdf5_column *more = realloc(in->column, (size_t)(in->columns + 1) * sizeof *more);
    if (!more)
        return fail_names(in);
    in->column = more;
    more[in->columns] =
        (struct hdf5_column){.name = strdup(name), .type = H5I_INVALID_HID, .member = in->members};
    if (!more[in->columns].name)
        return fail_names(in);
    in->columns++;
    in->members++;
    return HSORT_OK;
}

/* Add a group below the one that is sorted. */
static hsort_status add_group(struct hdf5_in *in, const char *name)
{
    struct hdf5_group *more = realloc(in->group, (size_t)(in->groups + 1) * sizeof *more);
    if (!more)
        return fail_names(in);
    in->group = more;
    more[in->groups] = (struct hdf5_group){.name = strdup(name), .member = in->members};
    if (!more[in->groups].name)
        return fail_names(in);
    in->groups++;
    in->members++;
    return HSORT_OK;
}

/* ---- The group, and groups in it: which datasets have N rows --------------------------------------------------- */

/* Add a member to a list of members, with what is said about it, or "". From `most` characters on the list ends with dots. */
static void list_member(struct hdf5_text *list, size_t most, const char *name, const char *about)
{
    if (list->length <= most)
        hdf5_text_add(list, "%s%.100s%s", list->length > 0 ? ", " : "", name, about);
    else if (strcmp(list->text + list->length - 3, "...") != 0)
        hdf5_text_add(list, ", ...");
}

/* Note a member that does not come along. */
static void leave(struct hdf5_in *in, const char *name, const char *why)
{
    char about[120];
    snprintf(about, sizeof about, " (%s)", why);
    list_member(&in->left, LEFT_SHOWN, name, about);
}

/* The dataset that the first key names: the longest name that --key begins with. */
struct named {
    struct hdf5_in *in;
    const char *key;
    size_t length;
    int64_t rows;
    struct hdf5_text names; /* of the datasets that it could name */
};

/* hdf5_visit. */
static hsort_status match_member(void *user, const char *name, hid_t object, const char *why)
{
    struct named *named = user;
    const size_t length = strlen(name);
    if (why || H5Iget_type(object) != H5I_DATASET)
        return HSORT_OK;
    if (rows_of(object) >= 0)
        list_member(&named->names, NAMES_SHOWN, name, "");
    if (length <= named->length || strncmp(named->key, name, length) != 0 ||
        !memchr(".[,:", named->key[length], 5)) // 5: also the 0 at its end
        return HSORT_OK;
    named->length = length;
    named->rows = rows_of(object);
    return HSORT_OK;
}

/* hdf5_visit: datasets with as many rows are columns, groups are groups. */
static hsort_status take_member(void *user, const char *name, hid_t object, const char *why)
{
    const struct named *named = user;
    struct hdf5_in *in = named->in;
    char rows[40];
    if (why) {
        leave(in, name, why);
        return HSORT_OK;
    }
    if (H5Iget_type(object) == H5I_GROUP)
        return add_group(in, name);
    const int64_t count = rows_of(object);
    if (count == named->rows) {
        TRY(add_column(in, name));
        return look_at_dataset(in->files.path, object, &in->column[in->columns - 1]);
    }
    snprintf(rows, sizeof rows, "%" PRId64 " rows", count);
    leave(in, name, count < 0 ? "no rows" : rows);
    return HSORT_OK;
}

/* For qsort(): with "/" in names the walk has another order. */
static int order_columns(const void *a, const void *b)
{
    const struct hdf5_column *one = a, *other = b;
    return strcmp(one->name, other->name);
}

/* Fail because --key names no dataset; say which datasets there are. */
static hsort_status fail_unnamed(const char *path, const char *key, const struct named *named)
{
    const char *names = named->names.text, *has = names ? "it has " : "none in it has rows";
    if (!key)
        return status_fail(HSORT_ARGUMENT, "%s: is a group: say by --key NAME by which of its datasets; %s%s",
                           path, has, names ? names : "");
    return status_fail(HSORT_ARGUMENT, "%s: has no dataset%s '%.*s', which --key names; %s%s", path,
                       named->length > 0 ? " with rows" : "",
                       (int)(named->length > 0 ? named->length : strcspn(key, ",:[")), key, has,
                       names ? names : "");
}

static hsort_status list_columns(struct hdf5_in *in, const char *key)
{
    const char *name = strrchr(in->place.path, '/') + 1, *path = in->files.path;
    struct named named = {.in = in, .key = key ? key : "", .rows = -1};
    if (in->is_dataset) {
        if (rows_of(in->part[0].object) < 0)
            return status_fail(HSORT_FORMAT, "%s: has no dimension along which it could be sorted", path);
        TRY(add_column(in, name));
        return look_at_dataset(path, in->part[0].object, &in->column[0]);
    }
    hsort_status status = hdf5_walk(path, in->part[0].object, match_member, &named);
    if (status == HSORT_OK && named.rows < 0)
        status = fail_unnamed(path, key, &named);
    free(named.names.text);
    TRY(status);
    TRY(hdf5_walk(path, in->part[0].object, take_member, &named));
    qsort(in->column, (size_t)in->columns, sizeof *in->column, order_columns);
    return HSORT_OK;
}

/* ---- The files ---------------------------------------------------------------------------------------------- */

/* HDF5 has opened the file by its name: is it the one that was looked at before? Only the usual driver tells. */
static hsort_status check_same_file(hid_t file, const struct file_part *part)
{
    const hid_t access = H5Fget_access_plist(file);
    const bool tells = H5Pget_driver(access) == H5FD_SEC2;
    struct stat facts;
    void *handle = NULL;
    H5Pclose(access);
    if (!tells || H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || fstat(*(int *)handle, &facts) != 0 ||
        (facts.st_dev == part->device && facts.st_ino == part->inode))
        return HSORT_OK;
    return status_fail(HSORT_IO, "%s: was replaced by another file while it was opened", part->path);
}

static hsort_status open_hdf5_part(struct hdf5_in *in, int number, const char *file, const char *path)
{
    struct hdf5_part *part = &in->part[number];
    const char *name = in->files.part[number].path;
    part->file = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (part->file < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: cannot be opened as an HDF5 file", file);
    TRY(check_same_file(part->file, &in->files.part[number]));
    part->object = H5Oopen(part->file, path, H5P_DEFAULT);
    if (part->object < 0) {
        hdf5_forget(); // HDF5's cause would say more, but less to the point
        return status_fail(HSORT_FORMAT, "%s: there is no group or dataset of that name", name);
    }
    const H5I_type_t kind = H5Iget_type(part->object);
    if (number == 0)
        in->is_dataset = kind == H5I_DATASET;
    if ((kind != H5I_DATASET && kind != H5I_GROUP) || in->is_dataset != (kind == H5I_DATASET))
        return status_fail(HSORT_FORMAT, "%s: is %s", name,
                           kind == H5I_DATASET ? "a dataset, and the first one a group"
                           : kind == H5I_GROUP ? "a group, and the first one a dataset"
                                               : "neither a group nor a dataset");
    return HSORT_OK;
}

/* Is a dataset of a further file like that of the first one? */
static bool is_alike(hid_t dataset, const struct hdf5_column *column)
{
    hsize_t extent[H5S_MAX_RANK];
    const hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
    bool alike = rank == column->dimensions + 1 && H5Tequal(type, column->type) > 0;
    for (int i = 1; i < rank && alike; i++)
        alike = extent[i] == column->extent[i - 1];
    H5Sclose(space);
    H5Tclose(type);
    return alike;
}

/* Open the datasets of a file, which must all have the same number of rows; `alone` is the path of a dataset that is the whole input. */
static hsort_status open_datasets(struct hdf5_in *in, int number, const char *alone)
{
    struct hdf5_part *part = &in->part[number];
    const char *path = in->files.part[number].path;
    part->dataset = malloc(((size_t)in->columns + 1) * sizeof *part->dataset);
    if (!part->dataset)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its datasets", path);
    for (int i = 0; i < in->columns; i++)
        part->dataset[i] = H5I_INVALID_HID;
    for (int i = 0; i < in->columns; i++) {
        const struct hdf5_column *column = &in->column[i];
        part->dataset[i] = in->is_dataset ? H5Dopen2(part->file, alone, H5P_DEFAULT)
                                          : H5Dopen2(part->object, column->name, H5P_DEFAULT);
        if (part->dataset[i] < 0)
            return hdf5_fail(HSORT_FORMAT, "%s: dataset '%.100s' cannot be opened", path, column->name);
        const int64_t rows = rows_of(part->dataset[i]);
        if (number > 0 && !is_alike(part->dataset[i], column))
            return status_fail(HSORT_FORMAT, "%s: dataset '%.100s' has another type or shape than in %s",
                               path, column->name, in->files.part[0].path);
        if (i > 0 && rows != part->count)
            return status_fail(HSORT_FORMAT,
                               "%s: dataset '%.100s' has %" PRId64 " rows, and '%.100s' %" PRId64, path,
                               column->name, rows, in->column[0].name, part->count);
        part->count = rows;
    }
    part->first = in->count;
    in->count += part->count;
    return HSORT_OK;
}

/* A file behind the first one. */
struct further {
    struct hdf5_in *in;
    int number;
};

/* hdf5_visit: refuse datasets that the first file lacks, because they would be lost without notice. */
static hsort_status refuse_more(void *user, const char *name, hid_t object, const char *why)
{
    const struct further *further = user;
    struct hdf5_in *in = further->in;
    const bool is_group = !why && H5Iget_type(object) == H5I_GROUP;
    if (why || (!is_group && rows_of(object) != in->part[further->number].count) ||
        H5Lexists(in->part[0].object, name, H5P_DEFAULT) > 0)
        return HSORT_OK;
    hdf5_forget(); // H5Lexists() fails in a group that the first file lacks
    if (is_group) {
        leave(in, name, "a group that the first file lacks");
        return HSORT_OK;
    }
    return status_fail(HSORT_FORMAT, "%s: has dataset '%.100s', and %s has none of that name",
                       in->files.part[further->number].path, name, in->files.part[0].path);
}

static hsort_status check_further(struct hdf5_in *in, int number)
{
    struct further further = {in, number};
    if (in->is_dataset)
        return HSORT_OK;
    return hdf5_walk(in->files.part[number].path, in->part[number].object, refuse_more, &further);
}

/* Lay the columns out in a row, and describe the row as NumPy would. */
static hsort_status lay_out_columns(struct hdf5_in *in)
{
    for (int i = 0; i < in->columns; i++) {
        struct hdf5_column *column = &in->column[i];
        column->offset = in->row_bytes;
        in->row_bytes += column->row_bytes;
        if (i == 0 && !in->is_dataset)
            hdf5_text_add(&in->descr, "[");
        hdf5_describe(&in->descr, in->is_dataset ? NULL : column->name, column->type, column->dimensions,
                      column->extent, &column->odd);
    }
    if (!in->is_dataset)
        hdf5_text_add(&in->descr, "]");
    in->is_bare = in->is_dataset && in->column[0].dimensions == 0 && hdf5_is_number(in->column[0].type);
    if (in->descr.failed || in->left.failed)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its names", in->files.path);
    return HSORT_OK;
}

static hsort_status open_places(struct hdf5_in *in, const struct hdf5_place *places, const char *key)
{
    for (int i = 0; i < in->files.parts; i++)
        TRY(open_hdf5_part(in, i, places[i].file, places[i].path));
    TRY(list_columns(in, key));
    for (int i = 0; i < in->files.parts; i++)
        TRY(open_datasets(in, i, places[i].path));
    for (int i = 1; i < in->files.parts; i++)
        TRY(check_further(in, i));
    for (int i = 0; i < in->files.parts; i++)
        TRY(hdf5_add_behind(&in->part[i], in->columns, &in->files));
    return lay_out_columns(in);
}

/* Let the texts of the files be those of the command line. */
static hsort_status rename_files(struct file_in *files, const char *const *texts)
{
    struct hdf5_text all = {0};
    hdf5_text_add(&all, files->parts == 1 ? "%s" : "%s and %d more", texts[0], files->parts - 1);
    for (int i = 0; i < files->parts; i++) {
        char *text = strdup(texts[i]);
        if (!text || all.failed) {
            free(text);
            free(all.text);
            return status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", texts[i]);
        }
        free(files->part[i].path);
        files->part[i].path = text;
    }
    free(files->path);
    files->path = all.text;
    return HSORT_OK;
}

hsort_status hdf5_open_in(struct comm *comm, const char *const *texts, int count, const char *key,
                          struct hdf5_in *in)
{
    struct hdf5_place *places = malloc((size_t)count * sizeof *places);
    const char **paths = malloc((size_t)count * sizeof *paths);
    hsort_status status =
        places && paths ? HSORT_OK : status_fail(HSORT_HOST_MEMORY, "%s: no memory for its name", texts[0]);
    *in = (struct hdf5_in){.is_dataset = false};
    for (int i = 0; i < count && status == HSORT_OK; i++) {
        status = hdf5_place_parse(texts[i], &places[i]);
        paths[i] = places[i].file;
    }
    status = comm_agree(comm, status);
    const struct file_source source = {.paths = paths,
                                       .paths_count = count,
                                       .format = FILE_RAW, // so that nobody looks at how the file begins
                                       .direct_io = HSORT_CHOICE_OFF, // HDF5 itself reads them
                                       .any = true,
                                       .record_bytes = 1,
                                       .record_word = "--record"};
    if (status == HSORT_OK)
        status = file_open(comm, &source, &in->files);
    in->opened = status == HSORT_OK;
    if (in->opened) {
        in->place = places[0];
        in->part = calloc((size_t)count, sizeof *in->part);
        for (int i = 0; in->part && i < count; i++)
            in->part[i] = (struct hdf5_part){.file = H5I_INVALID_HID, .object = H5I_INVALID_HID};
        status = in->part ? rename_files(&in->files, texts)
                          : status_fail(HSORT_HOST_MEMORY, "no memory for files");
        if (status == HSORT_OK)
            status = open_places(in, places, key);
        status = comm_agree(comm, status);
    }
    free(paths);
    free(places);
    return status;
}

void hdf5_close_in(struct hdf5_in *in)
{
    for (int i = 0; in->part && i < in->files.parts; i++) {
        struct hdf5_part *part = &in->part[i];
        for (int c = 0; part->dataset && c < in->columns; c++)
            if (part->dataset[c] >= 0)
                H5Dclose(part->dataset[c]);
        free(part->dataset);
        if (part->object >= 0)
            H5Oclose(part->object);
        if (part->file >= 0)
            H5Fclose(part->file);
    }
    for (int c = 0; c < in->columns; c++) {
        free(in->column[c].name);
        if (in->column[c].type >= 0)
            H5Tclose(in->column[c].type);
    }
    for (int i = 0; i < in->groups; i++)
        free(in->group[i].name);
    free(in->part);
    free(in->column);
    free(in->group);
    free(in->left.text);
    free(in->descr.text);
    if (in->opened)
        file_close(&in->files);
    *in = (struct hdf5_in){.is_dataset = false};
}
