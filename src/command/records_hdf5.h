/* sort and check of groups and datasets in HDF5 files. The code is in hdf5/, which is built if there is parallel HDF5;
 * otherwise hdf5/no_hdf5.c stands in its place, and refuses.
 *
 *     group     ParticleIDs   Coordinates (N, 3)   Velocities (N, 3)   Header           a row: what has the same first index in
 *     row 0        7 ...        x y z                 u v w            (not of N          all datasets of N rows, also in
 *     row 1        3 ...        x y z                 u v w             rows: left)       groups in the group
 *
 *     keys      are read; argsort gives the index; only the index stays. If memory lacks, both lie in files (hdf5_order_disk.c)
 *     datasets  one after another: read, gather by the index, check, write. So memory holds one, before and after, or parts of it */
#ifndef RECORDS_HDF5_H
#define RECORDS_HDF5_H

#include "src/command/cli.h"

/* Does a file or an output of the command name a place in an HDF5 file? Not collective. */
bool hdf5_is_asked(const struct cli_options *options);

/* To be called before MPI_Init(), if hdf5_is_asked(). Not collective. */
void hdf5_start(void);

/* "1.10.8", or NULL: the build is without it. Static. */
const char *hdf5_version(void);

/* cli_sort() and cli_check() for HDF5. Collective. Errors, agreed: those of records, and HSORT_ARGUMENT without HDF5. */
hsort_status hdf5_sort(struct comm *comm, const struct cli_options *options);
hsort_status hdf5_check(struct comm *comm, const struct cli_options *options);

#endif
