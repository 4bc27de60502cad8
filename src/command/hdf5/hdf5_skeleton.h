/* Everything in an output except its rows: rank 0 makes it by itself, in HDF5 without MPI, before all ranks open the file together. So
 * attributes of any type can be copied, which parallel HDF5 cannot write, and no rank waits for a rank whose disk is full.
 *
 *     OUT is there, an HDF5 file     its bytes, without what PATH has in it
 *     else                           an empty file
 *     then                           groups down to PATH, its attributes, datasets, their attributes
 *
 * Datasets have the type, chunks, filters, fill value and greatest extent of the input's datasets (with several files, of the first
 * file's). Datasets without filters get their space at once, so that all of it can be reserved before any work. */
#ifndef HDF5_SKELETON_H
#define HDF5_SKELETON_H

#include "src/command/hdf5/hdf5_in.h"

/* Fill the temporary file of `out`, which is empty. `place` is where the output goes; attributes that cannot be copied are added
 * to `left`. Not collective: rank 0 calls it. Errors HSORT_IO, HSORT_FORMAT, HSORT_ARGUMENT (the place leads to another
 * file, or through an object that is no group, or cannot hold a dataset). */
hsort_status hdf5_make_skeleton(const struct hdf5_in *in, const struct hdf5_place *place,
                                const struct file_out *out, struct hdf5_text *left,
                                struct progress *progress);

/* The path of a column in the output at `place`: path [HDF5_PATH_ROOM]. */
enum { HDF5_PATH_ROOM = 2 * PATH_MAX };
void hdf5_column_path(const struct hdf5_in *in, int column, const struct hdf5_place *place, char *path);

#endif
