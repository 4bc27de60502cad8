/* What `info` says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/disk_rate.h"
#include "src/command/link_rate.h"
#include "src/command/progress.h"
#include "src/command/records_hdf5.h"
#include "src/command/report.h"

/* With more ranks than this the rows of a table have more than 80 letters. */
enum { TABLE_RANKS = 8 };

static void print_rank_json(struct json *json, const hsort_rank_info *info)
{
    json_open(json, NULL, '{');
    json_text(json, "host", info->host);
    if (json_known(json, "gpu", info->gpu_index >= 0)) {
        json_open(json, "gpu", '{');
        json_integer(json, "index", info->gpu_index);
        json_text(json, "name", info->gpu_name);
        json_text(json, "uuid", info->gpu_uuid);
        json_text(json, "pci", info->gpu_pci);
        json_integer(json, "bytes", info->gpu_bytes);
        json_integer(json, "sharers", info->gpu_sharers);
        json_close(json, '}');
    }
    json_integer(json, "numa_node", info->numa_node);
    json_integer(json, "cores", info->cores);
    json_text(json, "cpus", info->cpus);
    json_bool(json, "bound_by_launcher", info->bound_by_launcher == 1);
    json_close(json, '}');
}

/* Put the pairs whose path was measured, the lower rank first. */
static void print_speeds_json(struct json *json, const struct info_report *report)
{
    const int ranks = report->ranks;
    const bool measured = report->not_measured[0] == '\0';
    if (json_known(json, "path_speeds", measured)) {
        json_open(json, "path_speeds", '[');
        for (int low = 0; low < ranks; low++)
            for (int high = low + 1; high < ranks; high++) {
                const hsort_path_speed *speed = &report->speeds[low * ranks + high];
                if (speed->bytes_per_second <= 0)
                    continue;
                json_open(json, NULL, '{');
                json_open(json, "ranks", '[');
                json_integer(json, NULL, low);
                json_integer(json, NULL, high);
                json_close(json, ']');
                json_text(json, "path",
                          hsort_transport_name((hsort_transport)report->paths[low * ranks + high]));
                json_real(json, "gb_per_s", speed->bytes_per_second / 1e9);
                json_real(json, "latency_s", speed->latency);
                json_close(json, '}');
            }
        json_close(json, ']');
    }
    json_text(json, "path_speeds_error", measured ? NULL : report->not_measured);
}

static hsort_status print_info_json(const struct info_report *report)
{
    struct json json = {false};
    report_open_json(&json);
    json_text(&json, "mpi_library", report->mpi_library);
    if (json_known(&json, "mpi_takes_device_pointers", report->device_pointers >= 0))
        json_bool(&json, "mpi_takes_device_pointers", report->device_pointers == 1);
    json_text(&json, "engine", report->engine);
    if (json_known(&json, "lockable_bytes", report->lockable_bytes < INT64_MAX))
        json_integer(&json, "lockable_bytes", report->lockable_bytes);
    json_open(&json, "ranks", '[');
    for (int rank = 0; rank < report->ranks; rank++)
        print_rank_json(&json, &report->infos[rank]);
    json_close(&json, ']');
    json_open(&json, "paths", '[');
    for (int from = 0; from < report->ranks; from++) {
        json_open(&json, NULL, '[');
        for (int to = 0; to < report->ranks; to++) {
            const int path = report->paths[from * report->ranks + to];
            json_text(&json, NULL, path < 0 ? NULL : hsort_transport_name((hsort_transport)path));
        }
        json_close(&json, ']');
    }
    json_close(&json, ']');
    print_speeds_json(&json, report);
    link_rate_json(&json, report->link);
    if (json_known(&json, "disk", report->disk != NULL))
        disk_rate_json(&json, report->disk);
    report_job_json(&json, &report->job);
    return report_close_json(&json);
}

static void print_rank(int rank, const hsort_rank_info *info)
{
    char size[16];
    printf("rank %-7d %s", rank, info->host);
    if (info->numa_node >= 0)
        printf(", NUMA node %d", info->numa_node);
    printf(", %d core%s (cpus %s%s)\n", info->cores, info->cores == 1 ? "" : "s", info->cpus,
           info->bound_by_launcher == 1 ? ", bound by the launcher" : "");
    if (info->gpu_index >= 0)
        printf("             GPU %d: %s, %s, %s, %s\n", info->gpu_index, info->gpu_name, info->gpu_uuid,
               info->gpu_pci, progress_size(info->gpu_bytes, size));
    if (info->gpu_sharers > 1)
        printf("             WARNING: this GPU is shared by %d ranks\n", info->gpu_sharers);
}

/* "staged 1-3, mpi 4": the paths from one rank to the others, in runs of ranks with the same path. */
static void print_paths_from(const int *paths, int from, int ranks)
{
    for (int to = 0; to < ranks;) {
        int end = to + 1;
        while (end < ranks && paths[end] == paths[to])
            end++;
        if (to != from) {
            printf("%s%s %d", to == 0 || (to == 1 && from == 0) ? "" : ", ",
                   hsort_transport_name((hsort_transport)paths[to]), to);
            if (end - to > 1)
                printf("-%d", end - 1);
        }
        to = end;
    }
    printf("\n");
}

/* ---- Many ranks ---- */

/* The pairs of ranks that reach each other by one transport, on one node or on two. */
struct path_kind {
    int pairs, measured;
    double *speeds, *latencies; /* [measured] */
};

enum { PLACES = 2, KINDS = HSORT_TRANSPORTS * PLACES };

static int kind_of(const struct info_report *report, int low, int high)
{
    const bool apart = strcmp(report->infos[low].host, report->infos[high].host) != 0;
    return report->paths[low * report->ranks + high] * PLACES + apart;
}

/* Count the pairs of each of kinds [KINDS], and put their figures into `room` [ranks * ranks]. */
static void sort_into_kinds(const struct info_report *report, struct path_kind *kinds, double *room)
{
    const int ranks = report->ranks;
    for (int pass = 0; pass < 2; pass++) {
        for (int low = 0; low < ranks; low++)
            for (int high = low + 1; high < ranks; high++) {
                const hsort_path_speed *speed = &report->speeds[low * ranks + high];
                struct path_kind *kind = &kinds[kind_of(report, low, high)];
                kind->pairs += pass == 0;
                if (report->not_measured[0] != '\0' || speed->bytes_per_second <= 0)
                    continue;
                if (pass == 1) {
                    kind->speeds[kind->measured] = speed->bytes_per_second / 1e9;
                    kind->latencies[kind->measured] = speed->latency * 1e6;
                }
                kind->measured++;
            }
        for (int k = 0; k < KINDS && pass == 0; k++) { // now it is known how much room each needs
            kinds[k].speeds = room;
            kinds[k].latencies = room + kinds[k].measured;
            room += 2 * kinds[k].measured;
            kinds[k].measured = 0;
        }
    }
}

/* Print the least, the median and the greatest of figures [count], which are sorted here. */
static void print_spread(double *figures, int count, const char *unit)
{
    qsort(figures, (size_t)count, sizeof *figures, report_compare);
    printf(" %8.4g %8.4g %8.4g %s", figures[0], figures[(count - 1) / 2], figures[count - 1], unit);
}

/* Print pairs of ranks by the kinds of their paths, in place of tables that nobody can read. */
static hsort_status print_kinds(const struct info_report *report)
{
    struct path_kind kinds[KINDS] = {{0}};
    double *room = malloc((size_t)report->ranks * (size_t)report->ranks * sizeof *room);
    if (!room)
        return status_fail(HSORT_HOST_MEMORY, "no memory to describe %d ranks", report->ranks);
    sort_into_kinds(report, kinds, room);
    printf("paths        between pairs of ranks: least, median and most of those measured, each way while both ways\n"
           "             are busy; latency of 64 bytes; --verbose names the pairs\n");
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k].pairs == 0)
            continue;
        printf("  %-6s %s %6d pairs", hsort_transport_name((hsort_transport)(k / PLACES)),
               k % PLACES == 0 ? "in a node" : "two nodes", kinds[k].pairs);
        if (kinds[k].measured > 0) {
            print_spread(kinds[k].speeds, kinds[k].measured, "GB/s");
            print_spread(kinds[k].latencies, kinds[k].measured, "us");
        }
        printf("\n");
    }
    if (report->not_measured[0] != '\0')
        printf("GB/s         not measured: %s\n", report->not_measured);
    free(room);
    return HSORT_OK;
}

/* ---- Few ranks ---- */

static void print_paths(const struct info_report *report)
{
    const int ranks = report->ranks;
    bool all_equal = true;
    for (int pair = 0; pair < ranks * ranks; pair++)
        all_equal &= report->paths[pair] < 0 || report->paths[pair] == report->paths[1];
    if (ranks == 1)
        printf("paths        none: one rank\n");
    else if (all_equal)
        printf("paths        %s between all ranks\n",
               hsort_transport_name((hsort_transport)report->paths[1]));
    for (int from = 0; from < ranks && !all_equal; from++) {
        printf("paths        rank %d: ", from);
        print_paths_from(report->paths + from * ranks, from, ranks);
    }
}

static double gb_per_second(const hsort_path_speed *speed)
{
    return speed->bytes_per_second / 1e9;
}

static double latency_us(const hsort_path_speed *speed)
{
    return speed->latency * 1e6;
}

/* Print a row and a column for each rank. */
static void print_table(const struct info_report *report, double (*number)(const hsort_path_speed *))
{
    const int ranks = report->ranks;
    printf("%12s", "");
    for (int to = 0; to < ranks; to++)
        printf(" %8d", to);
    printf("\n");
    for (int from = 0; from < ranks; from++) {
        printf("%12d", from);
        for (int to = 0; to < ranks; to++)
            if (to == from)
                printf(" %8s", ".");
            else
                printf(" %8.2f", number(&report->speeds[from * ranks + to]));
        printf("\n");
    }
}

static void print_speeds(const struct info_report *report)
{
    const int ranks = report->ranks;
    bool all = true;
    for (int pair = 0; pair < ranks * ranks; pair++)
        all &= pair % (ranks + 1) == 0 ||
               report->speeds[pair].bytes_per_second > 0; // every (ranks + 1)-th is from a rank to itself
    if (ranks == 1)
        return;
    if (report->not_measured[0] != '\0') {
        printf("GB/s         not measured: %s\n", report->not_measured);
    } else if (all) {
        printf("GB/s         of each pair of ranks, each way while both ways are busy\n");
        print_table(report, gb_per_second);
        printf("latency      of each pair of ranks, us, 64 bytes each way\n");
        print_table(report, latency_us);
    } else {
        printf("GB/s         each way while both ways are busy, and latency; of neighbours, and of ranks half "
               "of all ranks apart\n");
        for (int pair = 0; pair < ranks * ranks; pair++)
            if (pair % ranks > pair / ranks && report->speeds[pair].bytes_per_second > 0)
                printf("%9d-%-6d %8.2f GB/s %8.2f us, %s\n", pair / ranks, pair % ranks,
                       gb_per_second(&report->speeds[pair]), latency_us(&report->speeds[pair]),
                       hsort_transport_name((hsort_transport)report->paths[pair]));
    }
}

hsort_status report_info(const struct info_report *report, bool json)
{
    if (json)
        return print_info_json(report);
    char size[16];
    printf("build        %s\n", hsort_build_info());
    printf("HDF5         %s\n", hdf5_version() ? hdf5_version() : "no");
    printf("MPI          %s\n", report->mpi_library);
    printf("             device pointers: %s\n", report->device_pointers < 0    ? "not tried"
                                                 : report->device_pointers == 1 ? "yes"
                                                                                : "no");
    printf("engine       %s%s%s\n", report->engine, report->no_gpu[0] ? ": " : "", report->no_gpu);
    printf("lockable     %s of memory per rank (RLIMIT_MEMLOCK)\n",
           report->lockable_bytes < INT64_MAX ? progress_size(report->lockable_bytes, size) : "any amount");
    report_job(&report->job);
    for (int rank = 0; rank < report->ranks; rank++)
        print_rank(rank, &report->infos[rank]);
    if (report->ranks > TABLE_RANKS && !report->verbose) {
        TRY(print_kinds(report));
    } else {
        print_paths(report);
        print_speeds(report);
    }
    link_rate_print(report->link);
    if (report->disk)
        disk_rate_print(report->disk);
    return report_flush();
}
