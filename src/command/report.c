#include "src/command/report.h"
#include "src/command/json.h"
#include "src/command/progress.h"
#include "src/command/records_hdf5.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { PHASES = HSORT_PHASES + 3 };

hsort_status report_flush(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        return status_fail(HSORT_IO, "cannot write to standard output: %s",
                           errno != 0 ? strerror(errno) : "an earlier write failed");
    return HSORT_OK;
}

hsort_status report_fail(struct comm *comm, hsort_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(comm->error, sizeof comm->error, format, args);
    va_end(args);
    return status;
}

void report_error(const char *text)
{
    char line[STATUS_TEXT_BYTES + 192];
    int length = snprintf(line, sizeof line, "hypersort: %s", text);
    if (length >= (int)sizeof line)
        length = sizeof line - 1;
    for (int i = 0; i < length; i++) // the name of a file may hold a newline
        if (iscntrl((unsigned char)line[i]))
            line[i] = '?';
    progress_clear();
    fprintf(stderr, "%s\n", line);
}

void report_name(const char *name)
{
    for (; *name; name++)
        putchar(iscntrl((unsigned char)*name) ? '?' : *name);
}

void report_files_json(struct json *json, const char *name, const char *list, const struct file_in *file)
{
    json_text(json, name, file->path);
    json_open(json, list, '[');
    for (int i = 0; i < file->parts; i++)
        json_text(json, NULL, file->part[i].path);
    json_close(json, ']');
}

void report_stale(struct comm *comm, const struct file_out *file)
{
    char name[PATH_MAX] = "", more[48] = "", text[STATUS_TEXT_BYTES];
    if (comm->rank == 0 || file->own)
        file_find_stale(file, name);
    int64_t first = comm->rank, found = name[0] != '\0';
    if (file->own) { // the first rank that has found one tells its name
        if (comm_range(comm, found ? first : comm->size, &first, NULL) != HSORT_OK ||
            comm_sum(comm, found, &found) != HSORT_OK || found == 0 ||
            comm_check(MPI_Bcast(name, sizeof name, MPI_BYTE, (int)first, comm->world), "MPI_Bcast", false) !=
                HSORT_OK)
            return;
    }
    if (comm->rank != 0 || name[0] == '\0')
        return;
    if (found > 1)
        snprintf(more, sizeof more, ", and %lld of other ranks,", (long long)found - 1);
    snprintf(text, sizeof text,
             "%.340s%s was left by a run that was killed or stopped, unless one still writes it: remove it "
             "if none is to go on with it",
             name, more);
    report_error(text);
}

const char *report_build(void)
{
    static char line[320];
    const char *hdf5 = hdf5_version();
    snprintf(line, sizeof line, "%s, %s%s", hsort_build_info(), hdf5 ? "HDF5 " : "no HDF5", hdf5 ? hdf5 : "");
    return line;
}

static const char *order_name(hsort_order order)
{
    return order == HSORT_DESCENDING ? "descending" : "ascending";
}

void report_open_json(struct json *json)
{
    json_open(json, NULL, '{');
    json_integer(json, "schema_version", 1);
    json_text(json, "build", report_build());
}

hsort_status report_close_json(struct json *json)
{
    json_close(json, '}');
    printf("\n");
    return report_flush();
}

void report_job_json(struct json *json, const struct job *job)
{
    if (json_known(json, "job", job->scheduler != NULL)) {
        json_open(json, "job", '{');
        json_text(json, "scheduler", job->scheduler);
        json_text(json, "id", job->id);
        json_integer(json, "restarts", job->restarts);
        json_close(json, '}');
    }
    json_open(json, "hosts", '[');
    for (int host = 0; host < job->hosts; host++)
        json_text(json, NULL, job->host[host]);
    json_close(json, ']');
}

void report_job(const struct job *job)
{
    if (job->scheduler) {
        printf("job          %s, %s", job->id, job->scheduler);
        if (job->restarts > 0)
            printf(", restarted %d %s", job->restarts, job->restarts == 1 ? "time" : "times");
        printf("\n");
    }
    printf("hosts        %d: ", job->hosts);
    job_print_hosts(job, stdout);
    printf("\n");
}

/* ---- sort ---------------------------------------------------------------------------------------------- */

struct phase_time {
    const char *name;
    double seconds;
};

/* times [PHASES] = the phases, in the order in which they run; the phases of the library are its own list. */
static void list_phases(const struct sort_report *report, struct phase_time *times)
{
    *times++ = (struct phase_time){"read", report->read_seconds};
#define X(name, short_name) *times++ = (struct phase_time){short_name, report->stats.seconds[name]};
    HSORT_PHASE_LIST(X)
#undef X
    *times++ = (struct phase_time){"write", report->write_seconds};
    *times = (struct phase_time){"verify", report->verify_seconds};
}

/* The rate of the whole call of the library, which also takes its memory, reads the files, and writes all but the commit. */
static double keys_per_second(const struct sort_report *report)
{
    return report->stats.total_seconds > 0 ? (double)report->stats.keys / report->stats.total_seconds : 0;
}

static hsort_status print_sort_json(const struct sort_report *report)
{
    struct json json = {false};
    struct phase_time times[PHASES];
    list_phases(report, times);
    report_open_json(&json);
    json_integer(&json, "ranks", report->ranks);
    json_text(&json, "engine", report->engine);
    json_text(&json, "type", hsort_type_name(report->type));
    json_text(&json, "order", order_name(report->order));
    json_integer(&json, "keys", report->stats.keys);
    json_integer(&json, "bytes", report->stats.keys * (int64_t)hsort_type_bytes(report->type));
    json_text(&json, "exchange", report->exchange);
    json_text(&json, "transport", report->transport);
    json_open(&json, "phases", '{');
    for (int phase = 0; phase < PHASES; phase++)
        json_real(&json, times[phase].name, times[phase].seconds);
    json_close(&json, '}');
    json_integer(&json, "passes", report->stats.passes);
    json_integer(&json, "runs", report->stats.runs);
    json_integer(&json, "segments", report->stats.segments);
    json_integer(&json, "run_bytes_on_disk", report->run_bytes);
    report_moved_json(&json, &report->stats, (int64_t)hsort_type_bytes(report->type));
    json_real(&json, "gkeys_per_s", keys_per_second(report) / 1e9);
    if (json_known(&json, "verify", report->verified)) {
        json_open(&json, "verify", '{');
        json_bool(&json, "sorted", report->sorted);
        json_bool(&json, "count_ok", report->count_ok);
        json_bool(&json, "fingerprint_ok", report->fingerprint_ok);
        json_close(&json, '}');
    }
    report_files_json(&json, "input", "inputs", report->input);
    json_text(&json, "output", report->output);
    report_kept_json(&json, &report->kept);
    report_job_json(&json, &report->job);
    rank_reports_json(&json, report->per_rank, report->ranks);
    run_trace_json(&json, &report->trace);
    report_start_json(&json);
    return report_close_json(&json);
}

const char *report_exchange(const hsort_context *ctx)
{
    const hsort_exchange exchange = hsort_exchange_in_use(ctx);
    return exchange == HSORT_EXCHANGE_AUTO ? "none" : hsort_exchange_name(exchange);
}

void report_two_passes(const char *what, const hsort_stats *stats, int64_t run_bytes)
{
    char bytes[REPORT_FIGURE_TEXT];
    if (run_bytes > 0)
        printf("passes       2, by way of the disk: %" PRId64 " sorted runs, %s with their fences, %" PRId64
               " segments of the result\n",
               stats->runs, report_figure((double)run_bytes, "B", bytes), stats->segments);
    else
        printf("passes       2, as the %s do not fit into engine memory: %" PRId64 " sorted runs, %" PRId64
               " segments of the result\n",
               what, stats->runs, stats->segments);
}

hsort_status report_sort(const struct sort_report *report, bool json)
{
    progress_clear();
    if (json)
        return print_sort_json(report);
    const double key_bytes = (double)hsort_type_bytes(report->type), rate = keys_per_second(report);
    char text[REPORT_FIGURE_TEXT], bytes[REPORT_FIGURE_TEXT];
    struct phase_time times[PHASES];
    list_phases(report, times);
    printf("keys         %" PRId64 " %s, %s, %s\n", report->stats.keys, hsort_type_name(report->type),
           order_name(report->order), report_figure((double)report->stats.keys * key_bytes, "B", text));
    printf("ranks        %d, engine %s", report->ranks, report->engine);
    if (report->ranks > 1)
        printf(", exchange %s, transport %s", report->exchange, report->transport);
    printf("\n");
    if (report->stats.passes == 2)
        report_two_passes("keys", &report->stats, report->run_bytes);
    report_job(&report->job);
    report_kept(&report->kept, &report->stats);
    for (int phase = 0; phase < PHASES; phase++)
        report_phase(times[phase].name, times[phase].seconds);
    report_moved(&report->stats, (int64_t)hsort_type_bytes(report->type));
    if (rate > 0)
        printf("rate         %s, %s, with reading and writing\n", report_figure(rate, "keys/s", text),
               report_figure(rate * key_bytes, "B/s", bytes));
    if (report->verified)
        printf("verified     %s, %s, %s\n", report->sorted ? "in order" : "NOT IN ORDER",
               report->count_ok ? "same count" : "ANOTHER COUNT",
               report->fingerprint_ok ? "same keys" : "OTHER KEYS");
    run_trace_print(&report->trace);
    return report_flush();
}

/* ---- check --------------------------------------------------------------------------------------------- */

void report_repeat(bool unique, const hsort_check_result *found, int64_t place, bool bare)
{
    if (unique && place < 0)
        printf("unique       %s\n", found->first_disorder >= 0 ? "not known: equal keys may be no neighbours"
                                                               : "no key is there twice");
    else if (unique)
        printf(bare ? "unique       NOT: key %" PRId64 " is that of key %" PRId64 " again\n"
                    : "unique       NOT: record %" PRId64 " has the key of record %" PRId64 " again\n",
               place, place - 1);
}

void report_repeat_json(struct json *json, bool unique, const hsort_check_result *found, int64_t place)
{
    if (!unique)
        return;
    if (json_known(json, "unique", place >= 0 || found->first_disorder < 0))
        json_bool(json, "unique", place < 0);
    if (json_known(json, "first_repeat", place >= 0))
        json_integer(json, "first_repeat", place);
}

bool report_open_disorder_json(struct json *json, const hsort_check_result *found)
{
    const bool disordered = found->first_disorder >= 0;
    json_bool(json, "sorted", !disordered);
    if (json_known(json, "first_disorder", disordered)) {
        json_open(json, "first_disorder", '{');
        json_integer(json, "position", found->first_disorder);
    }
    return disordered;
}

void report_fingerprint_json(struct json *json, const hsort_check_result *found)
{
    char text[2 * 16 + 1];
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, found->fingerprint[0], found->fingerprint[1]);
    json_text(json, "fingerprint", text);
}

void report_against_json(struct json *json, const struct file_in *file, const char *plural, int64_t count,
                         const char *same_word, bool same)
{
    if (!json_known(json, "against", file != NULL))
        return;
    json_open(json, "against", '{');
    report_files_json(json, "file", "files", file);
    json_integer(json, plural, count);
    json_bool(json, same_word, same);
    json_close(json, '}');
}

bool report_same_keys(const struct check_report *report)
{
    const uint64_t *counted = report->counted, *other = report->other.fingerprint;
    if (report->counts)
        return counted[0] == other[0] && counted[1] == other[1] &&
               counted[2] == (uint64_t)report->other.count;
    return report->found.count == report->other.count &&
           memcmp(report->found.fingerprint, report->other.fingerprint, sizeof report->found.fingerprint) ==
               0;
}

static hsort_status print_check_json(const struct check_report *report)
{
    struct json json = {false};
    char text[REPORT_KEY_TEXT];
    const hsort_check_result *found = &report->found;
    report_open_json(&json);
    report_files_json(&json, "file", "files", report->file);
    json_integer(&json, "ranks", report->ranks);
    json_text(&json, "type", hsort_type_name(report->type));
    json_text(&json, "order", order_name(report->order));
    json_integer(&json, "keys", found->count);
    json_integer(&json, "bytes", found->count * (int64_t)hsort_type_bytes(report->type));
    if (report_open_disorder_json(&json, found)) {
        json_text(&json, "before", report_key_text(report->type, report->disorder[0], text));
        json_text(&json, "key", report_key_text(report->type, report->disorder[1], text));
        json_close(&json, '}');
    }
    report_repeat_json(&json, report->unique, found, report->first_repeat);
    report_fingerprint_json(&json, found);
    report_against_json(&json, report->against, "keys", report->other.count, "same_keys",
                        report->against && report_same_keys(report));
    json_real(&json, "seconds", report->seconds);
    run_trace_json(&json, &report->trace);
    return report_close_json(&json);
}

hsort_status report_check(const struct check_report *report, bool json)
{
    if (json)
        return print_check_json(report);
    char before[REPORT_KEY_TEXT], key[REPORT_KEY_TEXT];
    const hsort_check_result *found = &report->found;
    const int64_t place = found->first_disorder;
    printf("keys         %" PRId64 " %s\n", found->count, hsort_type_name(report->type));
    if (place < 0)
        printf("order        %s\n", order_name(report->order));
    else
        printf("order        NOT %s: key %" PRId64 " is %s after %s\n", order_name(report->order), place,
               report_key_text(report->type, report->disorder[1], key),
               report_key_text(report->type, report->disorder[0], before));
    report_repeat(report->unique, found, report->first_repeat, true);
    printf("fingerprint  %016" PRIx64 "%016" PRIx64 "\n", found->fingerprint[0], found->fingerprint[1]);
    if (report->against) {
        printf("against      ");
        report_name(report->against->path);
        printf(", %" PRId64 " keys: %s\n", report->other.count,
               report_same_keys(report) ? "the same keys" : "NOT THE SAME KEYS");
    }
    run_trace_print(&report->trace);
    return report_flush();
}
