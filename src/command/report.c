#include "src/command/report.h"
#include "src/command/json.h"
#include "src/command/progress.h"
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
    for (int i = 0; i < length; i++) // a file's name may hold a newline
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
    int64_t first = comm->rank, unused, found = name[0] != '\0';
    if (file->own) { // the first rank that has found one tells its name
        if (comm_range(comm, found ? first : comm->size, &first, &unused) != HSORT_OK ||
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
             "%.380s%s was left by a run that was killed, unless one still writes it: remove it", name, more);
    report_error(text);
}

static const char *order_name(hsort_order order)
{
    return order == HSORT_DESCENDING ? "descending" : "ascending";
}

void report_open_json(struct json *json)
{
    json_open(json, NULL, '{');
    json_integer(json, "schema_version", 1);
    json_text(json, "build", hsort_build_info());
}

hsort_status report_close_json(struct json *json)
{
    json_close(json, '}');
    printf("\n");
    return report_flush();
}

void report_job_json(struct json *json, const struct job *job)
{
    if (job->scheduler) {
        json_open(json, "job", '{');
        json_text(json, "scheduler", job->scheduler);
        json_text(json, "id", job->id);
        json_integer(json, "restarts", job->restarts);
        json_close(json, '}');
    } else {
        json_null(json, "job");
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

/* times [PHASES], in the order in which the phases run; those of the library are the same list as its own. */
static void list_phases(const struct sort_report *report, struct phase_time *times)
{
    *times++ = (struct phase_time){"read", report->read_seconds};
#define X(name, short_name) *times++ = (struct phase_time){short_name, report->stats.seconds[name]};
    HSORT_PHASE_LIST(X)
#undef X
    *times++ = (struct phase_time){"write", report->write_seconds};
    *times = (struct phase_time){"verify", report->verify_seconds};
}

/* Of the whole of hsort_sort(), h2d to d2h. */
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
    report_moved_json(&json, &report->stats);
    json_real(&json, "gkeys_per_s", keys_per_second(report) / 1e9);
    if (report->verified) {
        json_open(&json, "verify", '{');
        json_bool(&json, "sorted", report->sorted);
        json_bool(&json, "count_ok", report->count_ok);
        json_bool(&json, "fingerprint_ok", report->fingerprint_ok);
        json_close(&json, '}');
    } else {
        json_null(&json, "verify");
    }
    report_files_json(&json, "input", "inputs", report->input);
    json_text(&json, "output", report->output);
    json_text(&json, "resumed", report->resumed ? "begun" : NULL);
    json_integer(&json, "kept_bytes", report->kept_bytes);
    report_job_json(&json, &report->job);
    return report_close_json(&json);
}

const char *report_exchange(const hsort_context *ctx, int64_t passes)
{
    const hsort_exchange exchange = hsort_exchange_in_use(ctx);
    return passes == 2 || exchange == HSORT_EXCHANGE_AUTO ? "none" : hsort_exchange_name(exchange);
}

void report_two_passes(const char *what, const hsort_stats *stats, int64_t run_bytes)
{
    if (run_bytes > 0)
        printf("passes       2, by way of the disk: %" PRId64 " sorted runs, %.9g GB with their fences, %" PRId64
               " segments of the result\n",
               stats->runs, (double)run_bytes / 1e9, stats->segments);
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
    const int64_t keys = report->stats.keys;
    const double key_bytes = (double)hsort_type_bytes(report->type);
    struct phase_time times[PHASES];
    list_phases(report, times);
    printf("keys         %" PRId64 " %s, %s, %.9g GB\n", keys, hsort_type_name(report->type),
           order_name(report->order), (double)keys * key_bytes / 1e9);
    printf("ranks        %d, engine %s, exchange %s, transport %s\n", report->ranks, report->engine,
           report->exchange, report->transport);
    if (report->stats.passes == 2)
        report_two_passes("keys", &report->stats, report->run_bytes);
    report_job(&report->job);
    if (report->resumed && report->run_bytes > 0)
        printf("resumed      without what was on disk already\n");
    else if (report->resumed)
        printf("resumed      with %.9g GB of the output kept\n", (double)report->kept_bytes / 1e9);
    for (int phase = 0; phase < PHASES; phase++)
        printf("%-11s %10.6f s\n", times[phase].name, times[phase].seconds);
    report_moved(&report->stats);
    printf("rate         %.3f Gkeys/s, %.3f GB/s, h2d to d2h\n", keys_per_second(report) / 1e9,
           keys_per_second(report) * key_bytes / 1e9);
    if (report->verified)
        printf("verified     %s, %s, %s\n", report->sorted ? "in order" : "NOT IN ORDER",
               report->count_ok ? "same count" : "ANOTHER COUNT",
               report->fingerprint_ok ? "same keys" : "OTHER KEYS");
    return report_flush();
}

/* ---- check --------------------------------------------------------------------------------------------- */

void report_repeat(bool unique, int64_t place, const char *word)
{
    if (unique && place < 0)
        printf("unique       no %s is there twice\n", word);
    else if (unique)
        printf("unique       NOT: %s %" PRId64 " is the one before it again\n", word, place);
}

void report_repeat_json(struct json *json, bool unique, int64_t place)
{
    if (!unique)
        return;
    json_bool(json, "unique", place < 0);
    if (place >= 0)
        json_integer(json, "first_repeat", place);
    else
        json_null(json, "first_repeat");
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
    json_bool(&json, "sorted", found->first_disorder < 0);
    if (found->first_disorder >= 0) {
        json_open(&json, "first_disorder", '{');
        json_integer(&json, "position", found->first_disorder);
        json_text(&json, "before", report_key_text(report->type, report->disorder[0], text));
        json_text(&json, "key", report_key_text(report->type, report->disorder[1], text));
        json_close(&json, '}');
    } else {
        json_null(&json, "first_disorder");
    }
    report_repeat_json(&json, report->unique, report->first_repeat);
    snprintf(text, sizeof text, "%016" PRIx64 "%016" PRIx64, found->fingerprint[0], found->fingerprint[1]);
    json_text(&json, "fingerprint", text);
    if (report->against) {
        json_open(&json, "against", '{');
        json_text(&json, "file", report->against);
        json_integer(&json, "keys", report->other.count);
        json_bool(&json, "same_keys", report_same_keys(report));
        json_close(&json, '}');
    } else {
        json_null(&json, "against");
    }
    json_real(&json, "seconds", report->seconds);
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
    report_repeat(report->unique, report->first_repeat, "key");
    printf("fingerprint  %016" PRIx64 "%016" PRIx64 "\n", found->fingerprint[0], found->fingerprint[1]);
    if (report->against) {
        printf("against      ");
        report_name(report->against);
        printf(", %" PRId64 " keys: %s\n", report->other.count,
               report_same_keys(report) ? "the same keys" : "NOT THE SAME KEYS");
    }
    return report_flush();
}

/* ---- info ---------------------------------------------------------------------------------------------- */

static void print_rank_json(struct json *json, const hsort_rank_info *info)
{
    json_open(json, NULL, '{');
    json_text(json, "host", info->host);
    if (info->gpu_index >= 0) {
        json_open(json, "gpu", '{');
        json_integer(json, "index", info->gpu_index);
        json_text(json, "name", info->gpu_name);
        json_text(json, "uuid", info->gpu_uuid);
        json_text(json, "pci", info->gpu_pci);
        json_integer(json, "bytes", info->gpu_bytes);
        json_integer(json, "sharers", info->gpu_sharers);
        json_close(json, '}');
    } else {
        json_null(json, "gpu");
    }
    json_integer(json, "numa_node", info->numa_node);
    json_integer(json, "cores", info->cores);
    json_text(json, "cpus", info->cpus);
    json_bool(json, "bound_by_launcher", info->bound_by_launcher == 1);
    json_close(json, '}');
}

/* The pairs whose path was measured, the lower rank first. */
static void print_speeds_json(struct json *json, const struct info_report *report)
{
    const int ranks = report->ranks;
    if (report->not_measured[0] == '\0') {
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
        json_null(json, "path_speeds_error");
    } else {
        json_null(json, "path_speeds");
        json_text(json, "path_speeds_error", report->not_measured);
    }
}

static hsort_status print_info_json(const struct info_report *report)
{
    struct json json = {false};
    report_open_json(&json);
    json_text(&json, "mpi_library", report->mpi_library);
    if (report->device_pointers >= 0)
        json_bool(&json, "mpi_takes_device_pointers", report->device_pointers == 1);
    else
        json_null(&json, "mpi_takes_device_pointers");
    json_text(&json, "engine", report->engine);
    if (report->lockable_bytes < INT64_MAX)
        json_integer(&json, "lockable_bytes", report->lockable_bytes);
    else
        json_null(&json, "lockable_bytes");
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
    report_job_json(&json, &report->job);
    return report_close_json(&json);
}

static void print_rank(int rank, const hsort_rank_info *info)
{
    char size[16];
    printf("rank %-7d %s", rank, info->host);
    if (info->numa_node >= 0)
        printf(", NUMA node %d", info->numa_node);
    printf(", %d cores (cpus %s%s)\n", info->cores, info->cpus,
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

/* A row and a column for each rank. */
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
               report->speeds[pair].bytes_per_second > 0; // to itself: every ranks + 1
    if (ranks == 1)
        return;
    if (report->not_measured[0] != '\0') {
        printf("GB/s         not measured: %s\n", report->not_measured);
    } else if (all) {
        printf("GB/s         of each pair of ranks, each way, both ways at once\n");
        print_table(report, gb_per_second);
        printf("latency      of each pair of ranks, us, 64 bytes each way\n");
        print_table(report, latency_us);
    } else {
        printf("GB/s         each way, both ways at once, and latency; of neighbours and of ranks half of "
               "all apart\n");
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
    print_paths(report);
    print_speeds(report);
    return report_flush();
}
