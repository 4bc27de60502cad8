/* hypersort info: what a sort would run on, asked of a context made as `sort` makes it. */
#include "cli.h"
#include "engine.h"
#include "launch.h"
#include "report.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Memory a rank may lock; a small limit is why network cards and pinned memory fail. INT64_MAX: no limit. */
static int64_t lockable_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > (rlim_t)INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

/* infos [size] and, on rank 0, paths [size * size]. Collective. */
static hsort_status gather(struct comm *comm, hsort_context *ctx, hsort_rank_info *infos, int *own,
                           int *paths)
{
    hsort_status status = hsort_topology(ctx, infos);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(ctx));
    for (int peer = 0; peer < comm->size; peer++)
        own[peer] = peer == comm->rank ? -1 : (int)hsort_path(ctx, peer);
    return comm_check(MPI_Gather(own, comm->size, MPI_INT, paths, comm->size, MPI_INT, 0, comm->world),
                      "MPI_Gather", false);
}

/* The texts of a report on rank 0, and the report itself. */
static hsort_status print(const hsort_context *ctx, struct info_report *report, bool json)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "", no_gpu[128] = "";
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    cuda_device_count(no_gpu, sizeof no_gpu);
    report->mpi_library = library;
    report->no_gpu = no_gpu;
    report->engine = hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA ? "cuda" : "host";
    report->device_pointers = hsort_mpi_takes_device_pointers(ctx);
    return report_info(report, json);
}

/* Collective. */
static hsort_status describe(struct comm *comm, hsort_context *ctx, bool json)
{
    const size_t size = (size_t)comm->size;
    hsort_rank_info *infos = malloc(size * sizeof *infos);
    int *own = malloc(size * sizeof *own);
    int *paths = malloc((comm->rank == 0 ? size * size : 1) * sizeof *paths);
    hsort_status status = infos && own && paths
                              ? HSORT_OK
                              : status_fail(HSORT_HOST_MEMORY, "no memory to describe %d ranks", comm->size);
    struct info_report report = {.ranks = comm->size, .infos = infos, .paths = paths};
    int64_t most;
    status = comm_agree(comm, status);
    if (status == HSORT_OK)
        status = comm_range(comm, lockable_bytes(), &report.lockable_bytes, &most);
    if (status == HSORT_OK)
        status = gather(comm, ctx, infos, own, paths);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? print(ctx, &report, json) : HSORT_OK);
    free(infos);
    free(own);
    free(paths);
    return status;
}

hsort_status cli_info(struct comm *comm, const struct cli_options *options)
{
    hsort_context *ctx;
    hsort_status status = hsort_create(comm->world, &options->sort, &ctx);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(NULL));
    status_clear();
    status = describe(comm, ctx, options->json);
    if (!launch_lost(comm, status))
        hsort_destroy(&ctx);
    return status;
}
