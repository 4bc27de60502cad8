/* The types of HDF5 as NumPy's text for a dtype (npy_fields.h): so --key names their parts as it does those of a .npy file. */
#ifndef HDF5_DTYPE_H
#define HDF5_DTYPE_H

#include <hdf5.h>
#include <stdbool.h>
#include "kernels/base/status.h"

/* A text that grows. All 0: an empty one. */
struct hdf5_text {
    char *text; /* owned; NULL: empty */
    size_t length, room;
    bool failed; /* memory lacked */
};

void hdf5_text_add(struct hdf5_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add the dtype of what each row of a dataset has, and, with a name, the entry of a structure: ('pos', '<f4', (3,)).
 *   extent [dimensions]  of a row; none: it is one element
 *   *odd  set: some number in it has a form that keys cannot have, and is bytes to us */
void hdf5_describe(struct hdf5_text *text, const char *name, hid_t type, int dimensions,
                   const hsize_t *extent, bool *odd);

/* Is it a number that can be a key? */
bool hdf5_is_number(hid_t type);

/* Can elements of the type be moved as bytes? `path` and `name` are for the text. Errors HSORT_FORMAT: variable-length, references. */
hsort_status hdf5_check_type(const char *path, const char *name, hid_t type);

#endif
