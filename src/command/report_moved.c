/* What went between ranks, and how fast. */
#include <inttypes.h>
#include <stdio.h>
#include "src/command/json.h"
#include "src/command/report.h"

static bool is_used(const hsort_path_stats *path)
{
    return path->pairs > 0 || path->moved_bytes > 0;
}

/* The rate that the rank that sent most by this path has reached at least; 0: no rank sent anything. */
static double path_rate(const hsort_path_stats *path)
{
    return path->seconds > 0 ? (double)path->moved_bytes_largest / path->seconds : 0;
}

double report_bytes_per_crossed_key(double bytes, double plain_bytes, double key_bytes)
{
    return plain_bytes > 0 ? bytes / plain_bytes * key_bytes : 0;
}

static void put_crossed(struct json *json, const hsort_stats *stats, int64_t key_bytes)
{
    json_integer(json, "crossed_bytes", stats->crossed_bytes);
    json_integer(json, "crossed_plain_bytes", stats->crossed_plain_bytes);
    if (json_known(json, "bytes_per_crossed_key", key_bytes > 0 && stats->crossed_plain_bytes > 0))
        json_real(json, "bytes_per_crossed_key",
                  report_bytes_per_crossed_key((double)stats->crossed_bytes, (double)stats->crossed_plain_bytes,
                                               (double)key_bytes));
}

void report_moved_json(struct json *json, const hsort_stats *stats, int64_t key_bytes)
{
    json_integer(json, "moved_bytes", stats->moved_bytes);
    put_crossed(json, stats, key_bytes);
    json_open(json, "paths", '{');
    for (int i = 0; i < HSORT_TRANSPORTS; i++) {
        const hsort_path_stats *path = &stats->paths[i];
        if (!is_used(path))
            continue;
        json_open(json, hsort_transport_name((hsort_transport)i), '{');
        json_integer(json, "pairs", path->pairs);
        json_integer(json, "moved_bytes", path->moved_bytes);
        json_integer(json, "moved_bytes_largest", path->moved_bytes_largest);
        json_integer(json, "crossed_bytes", stats->paths_crossed_bytes[i]);
        json_real(json, "seconds", path->seconds);
        json_real(json, "gb_per_s", path_rate(path) / 1e9);
        json_close(json, '}');
    }
    json_close(json, '}');
}

static void print_crossed(const hsort_stats *stats, int64_t key_bytes)
{
    char crossed[REPORT_FIGURE_TEXT], plain[REPORT_FIGURE_TEXT];
    if (stats->crossed_bytes == 0)
        return;
    printf("crossed      %s between nodes", report_figure((double)stats->crossed_bytes, "B", crossed));
    if (key_bytes > 0)
        printf(", %.2f bytes per key of %" PRId64,
               report_bytes_per_crossed_key((double)stats->crossed_bytes, (double)stats->crossed_plain_bytes,
                                            (double)key_bytes),
               key_bytes);
    else if (stats->crossed_bytes < stats->crossed_plain_bytes)
        printf(", packed from %s", report_figure((double)stats->crossed_plain_bytes, "B", plain));
    printf("\n");
}

void report_moved(const hsort_stats *stats, int64_t key_bytes)
{
    char all[REPORT_FIGURE_TEXT], most[REPORT_FIGURE_TEXT], time[REPORT_FIGURE_TEXT], crossed[REPORT_FIGURE_TEXT],
        rate[REPORT_FIGURE_TEXT];
    if (stats->moved_bytes == 0)
        return;
    printf("moved        %s between ranks\n", report_figure((double)stats->moved_bytes, "B", all));
    for (int i = 0; i < HSORT_TRANSPORTS; i++) {
        const hsort_path_stats *path = &stats->paths[i];
        if (path->moved_bytes == 0)
            continue;
        printf("  by %-8s %" PRId64 " %s, %s", hsort_transport_name((hsort_transport)i), path->pairs,
               path->pairs == 1 ? "pair" : "pairs", report_figure((double)path->moved_bytes, "B", all));
        if (stats->paths_crossed_bytes[i] > 0)
            printf(", %s of it between nodes", report_figure((double)stats->paths_crossed_bytes[i], "B", crossed));
        printf("; %s of one rank in %s, %s\n", report_figure((double)path->moved_bytes_largest, "B", most),
               report_time(path->seconds, time), report_figure(path_rate(path), "B/s", rate));
    }
    print_crossed(stats, key_bytes);
}
