#include "src/command/hdf5/hdf5_skeleton.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "src/command/hdf5/hdf5_error.h"

struct skeleton {
    const struct hdf5_in *in;
    const struct hdf5_place *place; /* where the output goes */
    const struct file_out *out;
    hid_t file, links;      /* the open file; how links are made in it */
    struct hdf5_text *left; /* attributes that cannot be copied are added */
};

/* path [HDF5_PATH_ROOM] = the path of the member `name` of the group at `place`. */
static void member_path(const struct hdf5_place *place, const char *name, char *path)
{
    snprintf(path, HDF5_PATH_ROOM, "%s/%s", place->path[1] ? place->path : "", name);
}

void hdf5_column_path(const struct hdf5_in *in, int column, const struct hdf5_place *place, char *path)
{
    if (in->is_dataset)
        snprintf(path, HDF5_PATH_ROOM, "%s", place->path);
    else
        member_path(place, in->column[column].name, path);
}

/* ---- Attributes ---------------------------------------------------------------------------------------------- */

static bool has_references(hid_t type)
{
    const H5T_class_t class = H5Tget_class(type);
    bool found = class == H5T_REFERENCE;
    if (class == H5T_ARRAY || class == H5T_VLEN) {
        const hid_t base = H5Tget_super(type);
        found = has_references(base);
        H5Tclose(base);
    }
    for (int i = 0; class == H5T_COMPOUND && i < H5Tget_nmembers(type) && !found; i++) {
        const hid_t member = H5Tget_member_type(type, (unsigned)i);
        found = has_references(member);
        H5Tclose(member);
    }
    return found;
}

/* Copy the value of an attribute, also strings of any length, from one file to the other. */
static herr_t copy_value(hid_t from, hid_t to, hid_t type, hid_t space)
{
    const hssize_t points = H5Sget_simple_extent_npoints(space);
    if (points <= 0)
        return 0;
    void *value = calloc((size_t)points, H5Tget_size(type));
    herr_t failed = value ? H5Aread(from, type, value) : -1;
    if (failed >= 0) {
        failed = H5Awrite(to, type, value);
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, value);
    }
    free(value);
    return failed;
}

/* Copy an attribute. References would point to places in the other file, so attributes with references are left out. */
static herr_t copy_attribute(hid_t from, hid_t object, const char *name, bool *left)
{
    const hid_t given = H5Aget_type(from), type = H5Tcopy(given), space = H5Aget_space(from);
    herr_t failed = 0;
    *left = has_references(type);
    if (!*left) {
        const hid_t to = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        failed = to < 0 ? -1 : copy_value(from, to, type, space);
        if (to >= 0)
            H5Aclose(to);
    }
    H5Tclose(given);
    H5Tclose(type);
    H5Sclose(space);
    return failed;
}

/* The name of an attribute, for the caller to free; NULL: it cannot be read. */
static char *name_of(hid_t attribute)
{
    const ssize_t length = H5Aget_name(attribute, 0, NULL);
    char *name = length < 0 ? NULL : malloc((size_t)length + 1);
    if (name && H5Aget_name(attribute, (size_t)length + 1, name) == length)
        return name;
    free(name);
    return NULL;
}

/* The order in which attributes are copied: that of their creation if the object keeps it. */
static H5_index_t attribute_order(hid_t object)
{
    const hid_t given =
        H5Iget_type(object) == H5I_GROUP ? H5Gget_create_plist(object) : H5Dget_create_plist(object);
    unsigned order = 0;
    H5Pget_attr_creation_order(given, &order);
    H5Pclose(given);
    return order & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
}

/* Copy all attributes of an object; `what` is for texts. */
static hsort_status copy_attributes(const struct skeleton *made, hid_t from, hid_t to, const char *what)
{
    const char *path = made->in->files.part[0].path;
    const H5_index_t order = attribute_order(from);
    H5O_info_t facts;
    if (H5Oget_info(from, &facts) < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: %s: its attributes cannot be read", path, what);
    for (hsize_t i = 0; i < facts.num_attrs; i++) {
        bool stays = false;
        const hid_t attribute = H5Aopen_by_idx(from, ".", order, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
        char *name = attribute < 0 ? NULL : name_of(attribute);
        const herr_t failed = name ? copy_attribute(attribute, to, name, &stays) : -1;
        if (attribute >= 0)
            H5Aclose(attribute);
        if (stays)
            hdf5_text_add(made->left, "%s%.100s of %s (references)", made->left->length > 0 ? ", " : "", name,
                          what);
        const hsort_status status = failed < 0
                                        ? hdf5_fail(HSORT_IO, "%s: attribute '%.100s' of %s cannot be copied",
                                                    path, name ? name : "", what)
                                        : HSORT_OK;
        free(name);
        TRY(status);
    }
    return HSORT_OK;
}

/* ---- Datasets ------------------------------------------------------------------------------------------------ */

/* Whoever sets none has the same zeros as HDF5 itself. */
static void copy_fill_value(hid_t dataset, hid_t from, hid_t to)
{
    H5D_fill_value_t kind;
    const hid_t type = H5Dget_type(dataset);
    void *value = NULL;
    if (H5Pfill_value_defined(from, &kind) >= 0 && kind == H5D_FILL_VALUE_USER_DEFINED)
        value = calloc(1, H5Tget_size(type));
    if (value && H5Pget_fill_value(from, type, value) >= 0)
        H5Pset_fill_value(to, type, value);
    free(value);
    H5Tclose(type);
}

/* How a dataset is to be stored: as the input's is, but in this file, and so that all ranks can write it. */
static hid_t make_properties(hid_t dataset)
{
    const hid_t given = H5Dget_create_plist(dataset);
    hid_t properties = given;
    const H5D_layout_t layout = H5Pget_layout(given);
    if (H5Pget_external_count(given) > 0 || layout == H5D_VIRTUAL) { // its data lie in other files
        unsigned order = 0;
        properties = H5Pcreate(H5P_DATASET_CREATE);
        H5Pget_attr_creation_order(given, &order);
        H5Pset_attr_creation_order(properties, order);
        copy_fill_value(dataset, given, properties);
        H5Pclose(given);
    } else if (layout != H5D_CHUNKED) {
        H5Pset_layout(properties, H5D_CONTIGUOUS);
        H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER); // all of it is written, and it cannot grow
    }
    H5Pset_obj_track_times(properties, false);
    if (H5Pget_nfilters(properties) == 0)
        H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    return properties;
}

/* The extent for the rows of all files. A dataset that may grow may still grow. */
static hid_t make_space(hid_t dataset, int64_t count)
{
    hsize_t extent[H5S_MAX_RANK], most[H5S_MAX_RANK];
    const hid_t given = H5Dget_space(dataset);
    const int rank = H5Sget_simple_extent_dims(given, extent, most);
    H5Sclose(given);
    extent[0] = (hsize_t)count;
    if (most[0] != H5S_UNLIMITED && most[0] < extent[0])
        most[0] = extent[0];
    return H5Screate_simple(rank, extent, most);
}

static hsort_status make_dataset(const struct skeleton *made, int number)
{
    const struct hdf5_in *in = made->in;
    const hid_t from = in->part[0].dataset[number];
    const hid_t properties = make_properties(from);
    const bool chunked = H5Pget_layout(properties) == H5D_CHUNKED;
    hid_t space = make_space(from, in->count);
    char path[HDF5_PATH_ROOM];
    if (!chunked) { // it cannot grow
        hsize_t extent[H5S_MAX_RANK];
        const int rank = H5Sget_simple_extent_dims(space, extent, NULL);
        H5Sset_extent_simple(space, rank, extent, NULL);
    }
    hdf5_column_path(in, number, made->place, path);
    const hid_t to =
        H5Dcreate2(made->file, path, in->column[number].type, space, made->links, properties, H5P_DEFAULT);
    hsort_status status =
        to >= 0 ? copy_attributes(made, from, to, in->column[number].name)
                : hdf5_fail(HSORT_IO, "%s: dataset '%.100s' cannot be made", made->out->path, path);
    if (to >= 0 && H5Dclose(to) < 0 && status == HSORT_OK)
        status = hdf5_fail(HSORT_IO, "%s: dataset '%.100s' cannot be made", made->out->path, path);
    H5Pclose(properties);
    H5Sclose(space);
    return status;
}

/* ---- Groups -------------------------------------------------------------------------------------------------- */

/* How a group is to be stored: as the input's is. The input's property list itself cannot be used: it also says where in its file many
 * links lie, and HDF5 would take that for places in our file. */
static void copy_group_properties(hid_t from, hid_t properties)
{
    const hid_t given = H5Gget_create_plist(from);
    unsigned order = 0, most = 8, least = 6; // HDF5's own
    H5Pget_link_creation_order(given, &order);
    H5Pset_link_creation_order(properties, order);
    H5Pget_link_phase_change(given, &most, &least);
    H5Pset_link_phase_change(properties, most, least);
    H5Pget_attr_creation_order(given, &order);
    H5Pset_attr_creation_order(properties, order);
    H5Pget_attr_phase_change(given, &most, &least);
    H5Pset_attr_phase_change(properties, most, least);
    H5Pset_obj_track_times(properties, false); // the same command makes the same file
    H5Pclose(given);
}

/* Make a group like `from`, with its attributes; the root group exists already. `what` is for texts. */
static hsort_status make_group(const struct skeleton *made, hid_t from, const char *path, const char *what)
{
    const hid_t properties = H5Pcreate(H5P_GROUP_CREATE);
    copy_group_properties(from, properties);
    const hid_t group = path[1] == '\0' ? H5Gopen2(made->file, path, H5P_DEFAULT)
                                        : H5Gcreate2(made->file, path, made->links, properties, H5P_DEFAULT);
    H5Pclose(properties);
    if (group < 0)
        return hdf5_fail(HSORT_IO, "%s: group '%.100s' cannot be made", made->out->path, path);
    const hsort_status status = copy_attributes(made, from, group, what);
    H5Gclose(group);
    return status;
}

/* Make a group within the one that is sorted. */
static hsort_status make_inner_group(const struct skeleton *made, const char *name)
{
    char path[HDF5_PATH_ROOM];
    member_path(made->place, name, path);
    const hid_t from = H5Gopen2(made->in->part[0].object, name, H5P_DEFAULT);
    if (from < 0)
        return hdf5_fail(HSORT_FORMAT, "%s: group '%.100s' cannot be opened", made->in->files.part[0].path,
                         name);
    const hsort_status status = make_group(made, from, path, name);
    H5Gclose(from);
    return status;
}

static int column_of(const struct hdf5_in *in, int member)
{
    int column = 0;
    while (in->column[column].member != member)
        column++;
    return column;
}

/* Make everything in the order of the walk: if groups keep the order of creation, it is then that of the input. */
static hsort_status fill_file(const struct skeleton *made)
{
    const struct hdf5_in *in = made->in;
    if (!in->is_dataset)
        TRY(make_group(made, in->part[0].object, made->place->path, "the group"));
    for (int member = 0, group = 0; member < in->members; member++)
        if (group < in->groups && in->group[group].member == member)
            TRY(make_inner_group(made, in->group[group++].name));
        else
            TRY(make_dataset(made, column_of(in, member)));
    return HSORT_OK;
}

/* ---- What was there ------------------------------------------------------------------------------------------ */

/* H5L_elink_traverse_t: another file is neither opened nor changed. */
static herr_t meet_external_link(const char *parent_file, const char *parent_group, const char *child_file,
                                 const char *child_object, unsigned *flags, hid_t access, void *met)
{
    (void)parent_file, (void)parent_group, (void)child_file, (void)child_object, (void)flags, (void)access;
    *(bool *)met = true;
    return -1;
}

/* Does the way down to the path lead through an external link? Then the file that the link leads to would be changed, and that may be
 * the old file itself. The last link of the path does not count, because it is only replaced. */
static bool leads_away(hid_t file, const char *path)
{
    bool met = false;
    const hid_t access = H5Pcreate(H5P_LINK_ACCESS);
    H5Pset_elink_cb(access, meet_external_link, &met);
    H5Lexists(file, path, access); // also fails if less of the path is there
    H5Pclose(access);
    hdf5_forget();
    return met;
}

/* Find an object on the way down to the path that is no group, so that nothing can be made in it. Returns the length of its path, or 0. */
static size_t find_no_group(hid_t file, const char *path)
{
    char above[PATH_MAX];
    size_t found = 0;
    snprintf(above, sizeof above, "%s", path);
    for (char *slash = strchr(above + 1, '/'); slash && found == 0; slash = strchr(slash + 1, '/')) {
        H5O_info_t object;
        *slash = '\0';
        if (H5Lexists(file, above, H5P_DEFAULT) <= 0)
            break; // groups are made from here on
        if (H5Oget_info_by_name(file, above, &object, H5P_DEFAULT) < 0 || object.type != H5O_TYPE_GROUP)
            found = (size_t)(slash - above);
        *slash = '/';
    }
    hdf5_forget();
    return found;
}

/* Does a file have anything but what lies at the path, and the groups down to it, if these hold nothing else? */
static bool has_more(hid_t file, const char *path)
{
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", path);
    if (H5Lexists(file, path, H5P_DEFAULT) <= 0) {
        hdf5_forget();
        return true;
    }
    for (char *slash; (slash = strrchr(above, '/'));) {
        H5G_info_t facts;
        H5O_info_t object;
        *slash = '\0';
        const char *name = above[0] ? above : "/";
        if (H5Gget_info_by_name(file, name, &facts, H5P_DEFAULT) < 0 ||
            H5Oget_info_by_name(file, name, &object, H5P_DEFAULT) < 0 || facts.nlinks != 1 ||
            object.num_attrs > 0) {
            hdf5_forget();
            return true;
        }
    }
    return false;
}

/* Copy the bytes of the file that is to be replaced. */
static hsort_status copy_old_file(const struct file_out *out, struct progress *progress)
{
    const int from = open(out->path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    ssize_t moved = from >= 0 && fstat(from, &facts) == 0 ? 1 : -1;
    off_t at = 0;
    char *piece = malloc(FILE_CHUNK_BYTES);
    while (piece && moved > 0) {
        moved = pread(from, piece, FILE_CHUNK_BYTES, at);
        for (ssize_t done = 0, written; moved > 0 && done < moved; done += written) {
            written = pwrite(out->fd, piece + done, (size_t)(moved - done), at + done);
            if (written <= 0) {
                moved = -1;
                break;
            }
        }
        at += moved > 0 ? moved : 0;
        if (moved > 0)
            progress_bytes(progress, "copy", at, facts.st_size, facts.st_size);
    }
    const int cause = errno;
    progress->total_bytes = 0; // the sort handles other bytes
    if (from >= 0)
        close(from);
    free(piece);
    if (!piece)
        return status_fail(HSORT_HOST_MEMORY, "%s: no memory to copy it", out->path);
    return moved < 0 ? status_fail(HSORT_IO, "%s: what else it holds cannot be copied: %s", out->path,
                                   strerror(cause))
                     : HSORT_OK;
}

/* Does what lies at the output's name have to stay, except what is at the path? */
static hsort_status look_at_old(const struct file_out *out, const struct hdf5_place *place, bool *stays)
{
    // Less than 0: this user may not read the file, and so cannot keep what it holds.
    const htri_t is_hdf5 = out->replaces && place->path[1] != '\0' ? H5Fis_hdf5(out->path) : 0;
    *stays = false;
    hdf5_forget();
    if (is_hdf5 == 0)
        return HSORT_OK;
    const hid_t old = H5Fopen(out->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (old < 0)
        return hdf5_fail(is_hdf5 < 0 ? HSORT_IO : HSORT_FORMAT,
                         "%s: is there and has more than is to be written, but cannot be opened", out->path);
    const bool away = leads_away(old, place->path);
    const size_t no_group = away ? 0 : find_no_group(old, place->path);
    *stays = !away && no_group == 0 && has_more(old, place->path);
    H5Fclose(old);
    if (no_group > 0)
        return status_fail(HSORT_ARGUMENT, "%s:%.200s: '%.*s' exists and is not a group", out->path,
                           place->path, no_group < 100 ? (int)no_group : 100, place->path);
    return away ? status_fail(HSORT_ARGUMENT, "%s:%.200s: leads to another file, by an external link",
                              out->path, place->path)
                : HSORT_OK;
}

/* *file = the new file, open, with what stays of the old file. */
static hsort_status begin_file(const struct hdf5_in *in, const struct file_out *out,
                               const struct hdf5_place *place, struct progress *progress, hid_t *file)
{
    bool stays;
    if (in->is_dataset && place->path[1] == '\0')
        return status_fail(HSORT_ARGUMENT,
                           "%s:/: is the root group, not a dataset: give the dataset a name",
                           out->path);
    TRY(look_at_old(out, place, &stays));
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), properties = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_obj_track_times(properties, false);
    if (!in->is_dataset && place->path[1] == '\0') // the file's own group
        copy_group_properties(in->part[0].object, properties);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST); // for attributes of more than 64 KiB
    const hsort_status copied = stays ? copy_old_file(out, progress) : HSORT_OK;
    *file = copied != HSORT_OK ? H5I_INVALID_HID
            : stays            ? H5Fopen(out->temporary, H5F_ACC_RDWR, access)
                               : H5Fcreate(out->temporary, H5F_ACC_TRUNC, properties, access);
    H5Pclose(access);
    H5Pclose(properties);
    TRY(copied);
    if (*file < 0)
        return hdf5_fail(HSORT_IO, "%s: cannot be made", out->path);
    if (stays && H5Lexists(*file, place->path, H5P_DEFAULT) > 0 &&
        H5Ldelete(*file, place->path, H5P_DEFAULT) < 0)
        return hdf5_fail(HSORT_IO, "%s: what is at '%.100s' cannot be replaced", out->path, place->path);
    hdf5_forget(); // H5Lexists() fails if no part of the path is there
    return HSORT_OK;
}

hsort_status hdf5_make_skeleton(const struct hdf5_in *in, const struct hdf5_place *place,
                                const struct file_out *out, struct hdf5_text *left, struct progress *progress)
{
    struct skeleton made = {in, place, out, H5I_INVALID_HID, H5Pcreate(H5P_LINK_CREATE), left};
    H5Pset_create_intermediate_group(made.links, 1);
    H5Pset_char_encoding(made.links, H5T_CSET_UTF8);
    hsort_status status = begin_file(in, out, place, progress, &made.file);
    if (status == HSORT_OK)
        status = fill_file(&made);
    if (made.file >= 0 && H5Fclose(made.file) < 0 && status == HSORT_OK)
        status = hdf5_fail(HSORT_IO, "%s: cannot be made%s", out->path, hdf5_cause_of_disk(out->fd));
    H5Pclose(made.links);
    return status;
}
