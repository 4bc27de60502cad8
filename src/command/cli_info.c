/* hypersort info: what a sort would run on, as a context says that is made as `sort` makes it. */
#include "src/command/cli.h"
#include "kernels/engine.h"
#include "src/command/disk_rate.h"
#include "src/command/launch.h"
#include "src/command/link_rate.h"
#include "src/command/report.h"
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Memory that a rank may lock; with a small limit network cards and pinned memory fail. INT64_MAX: no limit. */
static int64_t lockable_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > (rlim_t)INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

/* What is known of all ranks. */
struct tables {
    hsort_rank_info *infos; /* [size] */
    int *path, *paths;      /* [size] of this rank; on rank 0 [size * size] of all ranks */
    hsort_path_speed *speeds, *all_speeds; /* the same */
};

static hsort_status allocate_tables(const struct comm *comm, struct tables *t)
{
    const size_t size = (size_t)comm->size, all = comm->rank == 0 ? size * size : 1;
    t->infos = calloc(size, sizeof *t->infos);
    t->path = calloc(size, sizeof *t->path);
    t->paths = calloc(all, sizeof *t->paths);
    t->speeds = calloc(size, sizeof *t->speeds);
    t->all_speeds = calloc(all, sizeof *t->all_speeds);
    return t->infos && t->path && t->paths && t->speeds && t->all_speeds
               ? HSORT_OK
               : status_fail(HSORT_HOST_MEMORY, "no memory to describe %d ranks", comm->size);
}

static void free_tables(struct tables *t)
{
    free(t->infos);
    free(t->path);
    free(t->paths);
    free(t->speeds);
    free(t->all_speeds);
}

/* If paths cannot be measured, for example for lack of memory, the rest is reported all the same; why [1] is
 * then the line, the same on every rank. Collective. */
static hsort_status measure_paths(struct comm *comm, hsort_context *ctx, struct tables *t, const char **why)
{
    const hsort_status status = hsort_measure_paths(ctx, t->speeds, sizeof *t->speeds);
    *why = status == HSORT_OK ? "" : hsort_last_error(ctx);
    if (status == HSORT_MPI)
        return report_fail(comm, status, "%s", *why);
    status_clear();
    return HSORT_OK;
}

/* Collective. */
static hsort_status gather_tables(struct comm *comm, hsort_context *ctx, struct tables *t,
                                  const char **not_measured)
{
    const int size = comm->size, speeds_bytes = size * (int)sizeof *t->speeds;
    hsort_status status = hsort_topology(ctx, t->infos, sizeof *t->infos);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(ctx));
    for (int peer = 0; peer < size; peer++)
        t->path[peer] = peer == comm->rank ? -1 : (int)hsort_path(ctx, peer);
    TRY(measure_paths(comm, ctx, t, not_measured));
    TRY_MPI(MPI_Gather(t->path, size, MPI_INT, t->paths, size, MPI_INT, 0, comm->world));
    TRY_MPI(
        MPI_Gather(t->speeds, speeds_bytes, MPI_BYTE, t->all_speeds, speeds_bytes, MPI_BYTE, 0, comm->world));
    return HSORT_OK;
}

/* On rank 0, make the texts of the report, and print it. */
static hsort_status print_info(const hsort_context *ctx, struct info_report *report, bool json)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "", no_gpu[128] = "";
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = '\0';
    cuda_device_count(no_gpu, sizeof no_gpu);
    report->mpi_library = library;
    report->no_gpu = no_gpu;
    report->engine = hsort_engine_name(hsort_engine_in_use(ctx));
    report->device_pointers = hsort_mpi_takes_device_pointers(ctx);
    return report_info(report, json);
}

/* The device of the context's engine on this rank; on all ranks -1 if the engine has no devices. */
static int gpu_in_use(const hsort_context *ctx, const hsort_rank_info *info)
{
    return hsort_engine_in_use(ctx) == HSORT_ENGINE_CUDA ? info->gpu_index : -1;
}

/* Measure what --disk asks for. Collective. */
static hsort_status measure_disk(struct comm *comm, const struct cli_options *options, struct disk_rate *disk)
{
    int threads = 1;
    if (!options->disk)
        return HSORT_OK;
    TRY(comm_agree(comm, launch_threads(comm, options->sort.threads, &threads)));
    return disk_rate_measure(comm, options->disk, options->direct_io, threads, disk);
}

/* Collective. */
static hsort_status gather_and_print(struct comm *comm, hsort_context *ctx, const struct cli_options *options)
{
    struct tables t;
    struct disk_rate disk;
    struct link_rate link;
    hsort_status status = comm_agree(comm, allocate_tables(comm, &t));
    struct info_report report = {.ranks = comm->size,
                                 .infos = t.infos,
                                 .paths = t.paths,
                                 .speeds = t.all_speeds,
                                 .link = &link,
                                 .disk = options->disk ? &disk : NULL,
                                 .verbose = options->verbose};
    if (status == HSORT_OK)
        status = comm_range(comm, lockable_bytes(), &report.lockable_bytes, NULL);
    if (status == HSORT_OK)
        status = gather_tables(comm, ctx, &t, &report.not_measured);
    if (status == HSORT_OK)
        status = link_rate_measure(comm, gpu_in_use(ctx, &t.infos[comm->rank]), &link);
    if (status == HSORT_OK)
        status = measure_disk(comm, options, &disk);
    if (status == HSORT_OK)
        status = job_open(comm, &report.job);
    if (status == HSORT_OK)
        status = comm_agree(comm, comm->rank == 0 ? print_info(ctx, &report, options->json) : HSORT_OK);
    job_close(&report.job);
    free_tables(&t);
    return status;
}

hsort_status cli_info(struct comm *comm, const struct cli_options *options)
{
    hsort_context *ctx;
    hsort_status status = hsort_create(comm->world, &options->sort, &ctx);
    if (status != HSORT_OK)
        return report_fail(comm, status, "%s", hsort_last_error(NULL));
    status_clear();
    status = gather_and_print(comm, ctx, options);
    if (!launch_lost(comm, status))
        hsort_destroy(&ctx);
    return status;
}
