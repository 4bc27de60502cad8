/* What has gone between ranks, and how fast. */
#include <inttypes.h>
#include <stdio.h>
#include "src/command/json.h"
#include "src/command/report.h"

static bool is_used(const hsort_path_stats *path)
{
    return path->pairs > 0 || path->moved_bytes > 0;
}

/* What the rank that sent most by it has reached, at least; 0: none sent anything. */
static double path_rate(const hsort_path_stats *path)
{
    return path->seconds > 0 ? (double)path->moved_bytes_largest / path->seconds : 0;
}

void report_moved_json(struct json *json, const hsort_stats *stats)
{
    json_integer(json, "moved_bytes", stats->moved_bytes);
    json_open(json, "paths", '{');
    for (int i = 0; i < HSORT_TRANSPORTS; i++) {
        const hsort_path_stats *path = &stats->paths[i];
        if (!is_used(path))
            continue;
        json_open(json, hsort_transport_name((hsort_transport)i), '{');
        json_integer(json, "pairs", path->pairs);
        json_integer(json, "moved_bytes", path->moved_bytes);
        json_integer(json, "moved_bytes_largest", path->moved_bytes_largest);
        json_real(json, "seconds", path->seconds);
        json_real(json, "gb_per_s", path_rate(path) / 1e9);
        json_close(json, '}');
    }
    json_close(json, '}');
}

void report_moved(const hsort_stats *stats)
{
    printf("moved        %.9g GB between ranks\n", (double)stats->moved_bytes / 1e9);
    for (int i = 0; i < HSORT_TRANSPORTS; i++) {
        const hsort_path_stats *path = &stats->paths[i];
        if (!is_used(path))
            continue;
        printf("  by %-8s %" PRId64 " %s, %.9g GB", hsort_transport_name((hsort_transport)i), path->pairs,
               path->pairs == 1 ? "pair" : "pairs", (double)path->moved_bytes / 1e9);
        if (path->moved_bytes > 0)
            printf("; %.9g GB of one rank in %.6f s, %.3f GB/s", (double)path->moved_bytes_largest / 1e9,
                   path->seconds, path_rate(path) / 1e9);
        printf("\n");
    }
}
