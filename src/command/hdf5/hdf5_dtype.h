/* The types of HDF5 as NumPy's text for a dtype (npy_fields.h), so that --key names their parts like those of a .npy file. */
#ifndef HDF5_DTYPE_H
#define HDF5_DTYPE_H

#include <hdf5.h>
#include <stdbool.h>
#include "kernels/base/status.h"

/* A text that grows. All 0: an empty one. */
struct hdf5_text {
    char *text; /* owned; NULL: empty */
    size_t length, room;
    bool failed; /* there was no memory */
};

void hdf5_text_add(struct hdf5_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add the dtype of a row of a dataset, or, with a name, the entry of a structure: ('pos', '<f4', (3,)).
 *   extent [dimensions]  of a row; no dimensions: the row is one element
 *   *odd  set if some number in it has a form that keys cannot have; such a number is described as bytes */
void hdf5_describe(struct hdf5_text *text, const char *name, hid_t type, int dimensions,
                   const hsize_t *extent, bool *odd);

/* Is the type a number that can be a key? */
bool hdf5_is_number(hid_t type);

/* Can elements of the type be moved as bytes? `path` and `name` are for the text. Errors HSORT_FORMAT: variable-length, references. */
hsort_status hdf5_check_type(const char *path, const char *name, hid_t type);

#endif
