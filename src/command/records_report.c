#include "src/command/records_report.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "src/command/progress.h"

hsort_status records_report_add(struct records_report *report, const hsort_context *ctx)
{
    hsort_stats last = {.struct_size = sizeof last}, *sum = &report->stats;
    TRY(hsort_get_stats(ctx, &last));
    rank_report_add(&report->own, ctx);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        sum->seconds[phase] += last.seconds[phase];
    sum->moved_bytes += last.moved_bytes;
    sum->passes = last.passes > sum->passes ? last.passes : sum->passes;
    sum->runs += last.runs;
    sum->segments += last.segments;
    sum->engine = last.engine; // for a gather, which may have another engine
    for (int path = 0; path < HSORT_TRANSPORTS; path++) {
        // each call has its own figures, and calls may take different paths
        if (last.paths[path].pairs > sum->paths[path].pairs)
            sum->paths[path].pairs = last.paths[path].pairs;
        sum->paths[path].moved_bytes += last.paths[path].moved_bytes;
        sum->paths[path].moved_bytes_largest += last.paths[path].moved_bytes_largest;
        sum->paths[path].seconds += last.paths[path].seconds;
        sum->paths_crossed_bytes[path] += last.paths_crossed_bytes[path];
    }
    sum->crossed_bytes += last.crossed_bytes;
    sum->crossed_plain_bytes += last.crossed_plain_bytes;
    return HSORT_OK;
}

static double report_bytes(const struct records_report *report)
{
    return (double)report->count * (double)(report->element_bytes + report->other_bytes);
}

static void print_verify_json(struct json *json, const struct records_report *report)
{
    if (!json_known(json, "verify", report->verified))
        return;
    json_open(json, "verify", '{');
    if (report->gathers) {
        json_bool(json, "elements_ok", report->fingerprint_ok);
        json_close(json, '}');
        return;
    }
    json_bool(json, "sorted", report->sorted);
    json_bool(json, "stable", report->stable);
    json_bool(json, "count_ok", report->count_ok);
    json_bool(json, "fingerprint_ok", report->fingerprint_ok);
    if (report->unique)
        json_bool(json, "unique_ok", report->unique_ok);
    json_close(json, '}');
}

/* For HDF5: the datasets, and what was left out. */
static void print_datasets_json(struct json *json, const struct records_report *report)
{
    if (!report->datasets)
        return;
    json_open(json, "datasets", '[');
    for (int i = 0; i < report->dataset_count; i++)
        json_text(json, NULL, report->datasets[i]);
    json_close(json, ']');
    json_text(json, "left", report->left);
}

static void print_datasets(const struct records_report *report)
{
    if (!report->datasets)
        return;
    printf("datasets     %d: ", report->dataset_count);
    for (int i = 0; i < report->dataset_count; i++) {
        printf("%s", i > 0 ? ", " : "");
        report_name(report->datasets[i]);
    }
    printf("\n");
    if (report->left) {
        printf("left         ");
        report_name(report->left);
        printf("\n");
    }
}

static hsort_status print_json(const struct records_report *report)
{
    struct json json = {false};
    report_open_json(&json);
    json_integer(&json, "ranks", report->ranks);
    json_text(&json, "engine", report->engine);
    json_text(&json, "type", report->word);
    json_text(&json, "order", report->order);
    json_text(&json, "key", report->key);
    json_integer(&json, report->plural[0] == 'k' ? "keys" : report->plural, report->count);
    if (report->unique)
        json_integer(&json, "distinct", report->distinct);
    json_integer(&json, "element_bytes", (int64_t)report->element_bytes);
    json_integer(&json, "value_bytes", (int64_t)report->other_bytes);
    json_text(&json, "exchange", report->exchange);
    if (report->exchange) {
        json_integer(&json, "passes", report->stats.passes == 2 ? 2 : 1);
        json_integer(&json, "runs", report->stats.runs);
        json_integer(&json, "segments", report->stats.segments);
        json_integer(&json, "run_bytes_on_disk", report->run_bytes);
    }
    if (report->gathers || report->datasets)
        json_integer(&json, "readings", report->readings);
    json_open(&json, "phases", '{');
    json_real(&json, "read", report->read_seconds);
    json_real(&json, report->work, report->sort_seconds);
    json_real(&json, "write", report->write_seconds);
    json_real(&json, "verify", report->verify_seconds);
    json_close(&json, '}');
    json_open(&json, "parts", '{');
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        json_real(&json, report_phase_names[phase], report->stats.seconds[phase]);
    json_close(&json, '}');
    report_moved_json(&json, &report->stats, 0);
    print_verify_json(&json, report);
    report_files_json(&json, "input", "inputs", report->input);
    json_text(&json, report->other_word, report->other ? report->other->path : NULL);
    json_text(&json, "output", report->output);
    json_text(&json, "values_output", report->values_output);
    json_text(&json, "index", report->index);
    if (report->unique)
        json_text(&json, "counts", report->counts);
    if (report->exchange)
        report_kept_json(&json, &report->kept);
    print_datasets_json(&json, report);
    report_job_json(&json, &report->job);
    rank_reports_json(&json, report->per_rank, report->ranks);
    run_trace_json(&json, &report->trace);
    report_start_json(&json);
    return report_close_json(&json);
}

/* Print the phases, with the parts of the sort below it. If elements flow, local_sort and merge are the two passes, and read and write are
 * parts of these: then all stand side by side, as for bare keys, and what else the sort took is left out. */
static void print_phases(const struct records_report *report)
{
    char text[REPORT_FIGURE_TEXT];
    report_phase("read", report->read_seconds);
    if (!report->streamed)
        report_phase(report->work, report->sort_seconds);
    for (int phase = 0; phase < HSORT_PHASES; phase++)
        if (report->streamed)
            report_phase(report_phase_names[phase], report->stats.seconds[phase]);
        else if (report->stats.seconds[phase] >= 1e-6)
            printf("  %-11s %8s\n", report_phase_names[phase],
                   report_time(report->stats.seconds[phase], text));
    report_phase("write", report->write_seconds);
    report_phase("verify", report->verify_seconds);
}

static hsort_status print_records_report(const struct records_report *report, bool json)
{
    char text[REPORT_FIGURE_TEXT];
    progress_clear();
    if (json)
        return print_json(report);
    printf("%-12s %" PRId64, report->plural, report->count);
    if (report->key)
        printf(" of %zu bytes, by ", report->element_bytes), report_name(report->key);
    else if (report->order)
        printf(" %s, %s", report->word, report->order);
    else
        printf(" of %zu bytes", report->element_bytes);
    if (report->other_bytes > 0)
        printf(", values of %zu bytes", report->other_bytes);
    printf(", %s\n", report_figure(report_bytes(report), "B", text));
    print_datasets(report);
    if (report->unique)
        printf("distinct     %" PRId64 " keys, of each of which the first %s is kept\n", report->distinct,
               report->key ? "record" : "key");
    printf("ranks        %d, engine %s%s%s\n", report->ranks, report->engine,
           report->exchange && report->ranks > 1 ? ", exchange " : "",
           report->exchange && report->ranks > 1 ? report->exchange : "");
    if (report->readings > 1)
        printf("readings     %" PRId64 ", because memory holds one part of the result at a time\n",
               report->readings);
    if (report->stats.passes == 2)
        report_two_passes(report->plural, &report->stats, report->run_bytes);
    report_job(&report->job);
    report_kept(&report->kept, &report->stats);
    print_phases(report);
    report_moved(&report->stats, 0);
    if (report->verified && report->gathers)
        printf("verified     %s\n", report->fingerprint_ok ? "each element is the one that its entry names"
                                                           : "NOT THE ELEMENTS THAT THE INDEX NAMES");
    else if (report->verified)
        printf("verified     %s, %s%s, %s%s\n", report->sorted ? "in order" : "NOT IN ORDER",
               report->index || report->indexed ? report->stable ? "stable, " : "NOT STABLE, " : "",
               report->count_ok ? "same count" : "ANOTHER COUNT",
               report->fingerprint_ok ? "same elements" : "NOT THE SAME ELEMENTS",
               !report->unique     ? ""
               : report->unique_ok ? ", one of each key"
                                   : ", NOT ONE OF EACH KEY");
    run_trace_print(&report->trace);
    return report_flush();
}

/* Take the times of this rank, and of the rank that took longest. Collective. */
static hsort_status take_times(struct records_report *report, struct comm *comm, const double *times)
{
    double most[4];
    report->own.read_seconds = times[0];
    report->own.write_seconds = times[2];
    report->own.verify_seconds = times[3];
    TRY(comm_largest(comm, times, 4, most));
    report->read_seconds = most[0];
    report->sort_seconds = most[1];
    report->write_seconds = most[2];
    report->verify_seconds = most[3];
    return HSORT_OK;
}

hsort_status records_report_end(struct records_report *report, struct comm *comm, hsort_context *ctx,
                                const double *times, bool json)
{
    TRY(take_times(report, comm, times));
    report->ranks = comm->size;
    TRY(rank_reports_gather(comm, ctx, &report->own, &report->per_rank));
    hsort_status status = job_open(comm, &report->job);
    if (status == HSORT_OK) {
        status = comm_agree(comm, comm->rank == 0 ? print_records_report(report, json) : HSORT_OK);
        job_close(&report->job);
    }
    free(report->per_rank);
    report->per_rank = NULL;
    return status;
}

/* ---- check --------------------------------------------------------------------------------------------- */

bool records_report_same(const struct records_check_report *report)
{
    return report->found.count == report->other.count &&
           memcmp(report->found.fingerprint, report->other.fingerprint, sizeof report->found.fingerprint) ==
               0;
}

static hsort_status print_checked_json(const struct records_check_report *report)
{
    struct json json = {false};
    const hsort_check_result *found = &report->found;
    const int64_t element_bytes = (int64_t)report->file->element.bytes;
    report_open_json(&json);
    report_files_json(&json, "file", "files", report->file);
    json_integer(&json, "ranks", report->ranks);
    json_text(&json, "type", "record");
    json_text(&json, "key", report->key);
    json_integer(&json, "records", found->count);
    json_integer(&json, "element_bytes", element_bytes);
    json_integer(&json, "bytes", found->count * element_bytes);
    if (report_open_disorder_json(&json, found))
        json_close(&json, '}');
    report_repeat_json(&json, report->unique, found, found->first_unstable);
    report_fingerprint_json(&json, found);
    report_against_json(&json, report->against, "records", report->other.count, "same_records",
                        report->against && records_report_same(report));
    json_real(&json, "seconds", report->seconds);
    run_trace_json(&json, &report->trace);
    return report_close_json(&json);
}

hsort_status records_report_check(const struct records_check_report *report, bool json)
{
    if (json)
        return print_checked_json(report);
    const hsort_check_result *found = &report->found;
    printf("records      %" PRId64 " of %zu bytes\n", found->count, report->file->element.bytes);
    printf("order        %sby ", found->first_disorder < 0 ? "" : "NOT ");
    report_name(report->key);
    if (found->first_disorder >= 0)
        printf(": record %" PRId64 " belongs before the one before it", found->first_disorder);
    printf("\n");
    report_repeat(report->unique, found, found->first_unstable, false);
    printf("fingerprint  %016" PRIx64 "%016" PRIx64 "\n", found->fingerprint[0], found->fingerprint[1]);
    if (report->against) {
        printf("against      ");
        report_name(report->against->path);
        printf(", %" PRId64 " records: %s\n", report->other.count,
               records_report_same(report) ? "the same records" : "NOT THE SAME RECORDS");
    }
    run_trace_print(&report->trace);
    return report_flush();
}

hsort_status records_report_judge(struct comm *comm, const struct records_check_report *report,
                                  const char *word)
{
    const char *path = report->file->path, *against = report->against ? report->against->path : NULL;
    const int64_t place = report->found.first_disorder, again = report->found.first_unstable;
    const bool others = against && !records_report_same(report);
    if (place >= 0)
        return report_fail(comm, HSORT_MISMATCH,
                           "%s: not in order by %.128s: %s %" PRId64 " belongs before %s %" PRId64 "%s%s%s%s",
                           path, report->key, word, place, word, place - 1,
                           others ? "; nor does it hold the " : "", others ? word : "", others ? "s of " : "",
                           others ? against : "");
    if (report->unique && again >= 0)
        return report_fail(comm, HSORT_MISMATCH, "%s: %s %" PRId64 " has the key of %s %" PRId64 " again",
                           path, word, again, word, again - 1);
    return others ? report_fail(comm, HSORT_MISMATCH, "%s: does not hold the %ss of %s", path, word, against)
                  : HSORT_OK;
}
