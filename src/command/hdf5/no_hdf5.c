/* Stands in place of the other files of this folder in a build without HDF5. */
#include "src/command/records_hdf5.h"
#include "src/command/report.h"

void hdf5_start(void)
{
}

const char *hdf5_version(void)
{
    return NULL;
}

static hsort_status refuse(struct comm *comm, const struct cli_options *options)
{
    return report_fail(
        comm, HSORT_ARGUMENT,
        "%.200s: names a place in an HDF5 file, and this hypersort was built without HDF5: configure it with "
        "-DHYPERSORT_HDF5=ON",
        options->files[0]);
}

hsort_status hdf5_sort(struct comm *comm, const struct cli_options *options)
{
    return refuse(comm, options);
}

hsort_status hdf5_check(struct comm *comm, const struct cli_options *options)
{
    return refuse(comm, options);
}
