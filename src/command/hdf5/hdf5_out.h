/* An output of all ranks: rank 0 makes its skeleton, and all ranks together write its rows. */
#ifndef HDF5_OUT_H
#define HDF5_OUT_H

#include "src/command/hdf5/hdf5_in.h"

struct hdf5_out {
    struct comm *comm;
    const struct hdf5_in *in; /* borrowed */
    struct hdf5_place place;
    struct file_out file; /* its name, and its temporary one */
    bool created;
    hid_t handle; /* of all ranks together, while rows are written */
};

/* Before long work: can the output be created? Collective. Errors, agreed: file_create()'s. */
hsort_status hdf5_check_out(struct comm *comm, const struct hdf5_in *in, const struct cli_options *options);

/* Create the output, with everything except its rows. Collective.
 *   left  on rank 0: attributes that cannot be copied are added
 * Errors, agreed: file_create()'s, hdf5_make_skeleton()'s. hdf5_end_out() ends it, also after an error. */
hsort_status hdf5_create_out(struct comm *comm, const struct hdf5_in *in, const struct cli_options *options,
                             struct hdf5_text *left, struct progress *progress, struct hdf5_out *out);

/* Write rows [count] of this rank's share (launch_share()) of a column, from row `first` of all on; *done, the bytes that the rank has
 * written of all columns, grows. Collective.
 * Errors, agreed: HSORT_IO. If ranks then wait inside HDF5 for a rank that failed, that rank ends the run. */
hsort_status hdf5_write_rows(struct hdf5_out *out, int column, int64_t first, int64_t count, const void *rows,
                             struct progress *progress, int64_t *done);

/* All rows are written: close the file in HDF5. Collective. Errors, agreed: HSORT_IO. */
hsort_status hdf5_finish_rows(struct hdf5_out *out);

/* rows = what the file holds of a column, read without MPI, after hdf5_finish_rows(). Not collective. Errors HSORT_IO. */
hsort_status hdf5_read_back(const struct hdf5_out *out, int column, int64_t first, int64_t count, void *rows);

/* Give the output its name, or, after a failure, remove it. Collective. Errors: `status`, or file_commit()'s. */
hsort_status hdf5_end_out(struct hdf5_out *out, hsort_status status);

#endif
