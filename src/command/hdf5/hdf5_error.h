/* Errors of HDF5 as statuses: their texts go into the command's one error line, and never to stderr. */
#ifndef HDF5_ERROR_H
#define HDF5_ERROR_H

#include "kernels/base/status.h"

/* status_fail() with this text, followed by the innermost cause that HDF5 gives, if it gives one. Not collective. */
hsort_status hdf5_fail(hsort_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ": " and the cause if the disk of this open file has no room, which HDF5 does not report; else "". Not collective. Static. */
const char *hdf5_cause_of_disk(int fd);

/* Forget the cause of a call that was allowed to fail: it is not the cause of what fails next. Not collective. */
void hdf5_forget(void);

#endif
