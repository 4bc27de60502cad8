/* The files in which the rows of an input really lie, besides those that the user named: an output of that name would replace them.
 *
 *     IN.h5:/link/P     an external link in the path       the file that has P
 *     a dataset         virtual                            its sources, and the files that these lie in
 *                       with external storage              the files of its bytes */
#ifndef HDF5_BEHIND_H
#define HDF5_BEHIND_H

#include "src/command/hdf5/hdf5_in.h"

/* Let these files count as the input (file_add_behind()), for the open part, which has `columns` datasets. Not collective. Errors
 * HSORT_FORMAT, and those of file_add_behind(). */
hsort_status hdf5_add_behind(const struct hdf5_part *part, int columns, struct file_in *files);

#endif
