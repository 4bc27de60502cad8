/* An output of all ranks: skeleton by rank 0, rows by all, together. */
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

/* Create it, with all that it has but rows. Collective.
 *   left  on rank 0: attributes that cannot be copied are added
 * Errors, agreed: file_create()'s, hdf5_make_skeleton()'s. After any: hdf5_end_out(). */
hsort_status hdf5_create_out(struct comm *comm, const struct hdf5_in *in, const struct cli_options *options,
                             struct hdf5_text *left, struct progress *progress, struct hdf5_out *out);

/* Write this rank's rows [count] of a column, which begin at `first` of all; *done, bytes that the rank has written of all columns,
 * goes on. Collective.
 * Errors, agreed: HSORT_IO. If ranks then wait inside of HDF5 for one that failed, that one ends the run. */
hsort_status hdf5_write_rows(struct hdf5_out *out, int column, int64_t first, int64_t count, const void *rows,
                             struct progress *progress, int64_t *done);

/* All rows are written: HDF5 is done with it. Collective. Errors, agreed: HSORT_IO. */
hsort_status hdf5_finish_rows(struct hdf5_out *out);

/* rows = what the file now has of a column, read without MPI, after hdf5_finish_rows(). Not collective. Errors HSORT_IO. */
hsort_status hdf5_read_back(const struct hdf5_out *out, int column, int64_t first, int64_t count, void *rows);

/* Give it its name, or, after a failure, remove it. Collective. Errors: `status`, or file_commit()'s. */
hsort_status hdf5_end_out(struct hdf5_out *out, hsort_status status);

#endif
