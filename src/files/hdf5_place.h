/* How the command line names a group or a dataset of an HDF5 file: FILE:/PATH. This is about texts only: no file is looked at, and
 * no HDF5 is needed.
 *
 *     snap_099.0.hdf5:/PartType1      the file up to its suffix, which must be one that HDF5 files have; then the path in it
 *     run:/keys.npy                   a file of another suffix: a plain name */
#ifndef HDF5_PLACE_H
#define HDF5_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include "kernels/base/status.h"

/* The suffixes, for texts. */
#define HDF5_SUFFIXES ".h5, .hdf5, .hdf, .he5 or .nc"

struct hdf5_place {
    char file[PATH_MAX];
    char
        path[PATH_MAX]; /* in the file, from its "/" on, with one "/" between two names and none at the end */
};

/* Is `text` of this form? NULL is not. Not collective. */
bool hdf5_place_is(const char *text);

/* If `text` has a suffix of HDF5 files without a path after it, at its end or before a ":", return the length up to the end of the
 * suffix; else 0. Not collective. */
size_t hdf5_place_lacks_path(const char *text);

/* Split `text` into file and path. Not collective. Errors HSORT_ARGUMENT: it is too long, or not of this form. */
hsort_status hdf5_place_parse(const char *text, struct hdf5_place *place);

#endif
