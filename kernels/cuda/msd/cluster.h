/* Small MSD sorts, by one cluster of blocks in one launch. For GPUs that have clusters. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "kernels/cuda/ladder/ladder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Is this a sort for a cluster: keys alone, more than one block takes but not too many, on a GPU that has clusters? */
bool msd_cluster_fits(const struct cuda_engine *engine, const struct sort_args *args);

/* Do a sort for which msd_cluster_fits(), on STREAM_WORK and in place: scratch and workspace are not used. Returns when the work is
 * queued and it is known whether it will be done. `*done` is false if the device cannot hold so large a cluster, or if the splitters cut
 * the keys too unevenly. Nothing has been changed then. */
hsort_status msd_cluster_sort(struct cuda_engine *engine, struct sort_args *args, bool *done);

#ifdef __cplusplus
}
#endif

#endif
