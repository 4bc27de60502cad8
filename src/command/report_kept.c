/* What a sort kept from earlier runs of the command. */
#include <inttypes.h>
#include <stdio.h>
#include "src/command/report.h"

void report_kept(const struct report_kept *kept, const hsort_stats *stats)
{
    char output[REPORT_FIGURE_TEXT], runs[REPORT_FIGURE_TEXT];
    if (!kept->resumed)
        return;
    report_figure((double)kept->bytes, "B", output);
    if (kept->by_disk)
        printf("resumed      with %" PRId64 " of %" PRId64 " runs kept, %s, and %" PRId64 " of %" PRId64
               " segments, %s",
               kept->runs, stats->runs, report_figure((double)kept->run_bytes, "B", runs), kept->segments,
               stats->segments, output);
    else
        printf("resumed      with %s of the output kept", output);
    if (kept->dealt > 0)
        printf(", and %" PRId64 " pieces of the result dealt out", kept->dealt);
    printf("\n");
}

void report_kept_json(struct json *json, const struct report_kept *kept)
{
    json_text(json, "resumed", kept->resumed ? "begun" : NULL);
    json_integer(json, "kept_bytes", kept->bytes);
    json_integer(json, "kept_runs", kept->runs);
    json_integer(json, "kept_segments", kept->segments);
    json_integer(json, "kept_run_bytes", kept->run_bytes);
    json_integer(json, "kept_dealt", kept->dealt);
}
