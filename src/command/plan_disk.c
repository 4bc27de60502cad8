#include "src/command/plan_disk.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include "src/command/launch.h"
#include "src/command/plan_records.h"
#include "src/command/progress.h"

static bool is_asked(const struct cli_options *options)
{
    return plan_is_of_elements(options) || options->memory_size || options->runs > 0 || options->disk ||
           options->temporary.count > 0 || options->disk_rates[0] > 0 || options->disk_rates[1] > 0;
}

hsort_status plan_disk_open(struct plan_disk *disk, struct comm *comm, const struct cli_options *options)
{
    *disk = (struct plan_disk){.asked = is_asked(options),
                               .options = options,
                               .threads = 1,
                               .rates = {options->disk_rates[0], options->disk_rates[1]}};
    if (!disk->asked)
        return HSORT_OK;
    TRY(comm_agree(comm, launch_threads(comm, options->sort.threads, &disk->threads)));
    if (!options->disk)
        return HSORT_OK;
    TRY(disk_rate_measure(comm, options->disk, options->direct_io, disk->threads, &disk->rate));
    disk->measured[0] = options->disk_rates[0] == 0;
    disk->measured[1] = options->disk_rates[1] == 0;
    if (disk->measured[0])
        disk->rates.read = disk->rate.read_rate;
    if (disk->measured[1])
        disk->rates.write = disk->rate.write_rate;
    return HSORT_OK;
}

hsort_status plan_disk_add(struct plan_disk *disk, struct disk_question question, int ranks_per_node,
                           bool *by_disk)
{
    const struct comm planned = {.node_size =
                                     question.ranks < ranks_per_node ? question.ranks : ranks_per_node};
    struct plan_disk_ranks *of = &disk->of[disk->count++];
    *by_disk = false;
    if (!disk->asked)
        return HSORT_OK;
    TRY(cli_memory(&planned, disk->options, &of->memory_bytes));
    question.disk = disk->rates;
    question.threads = disk->threads;
    question.memory_bytes = of->memory_bytes;
    question.wanted_parts = disk->options->runs;
    const hsort_status status = disk_forecast_make(&question, &of->forecast);
    of->any_memory = question.rates->engine == HSORT_ENGINE_CUDA && question.rates->engine_bytes == 0;
    *by_disk = of->forecast.by_disk;
    if (status != HSORT_HOST_MEMORY || !of->forecast.by_disk)
        return status;
    snprintf(of->lacks, sizeof of->lacks, "%s", status_text());
    status_clear();
    return HSORT_OK;
}

/* ---- text ---------------------------------------------------------------------------------------------- */

/* Print how much is free where runs would lie. */
static void print_temporary(const struct cli_texts *temporary)
{
    for (int i = 0; i < temporary->count; i++) {
        struct statvfs facts;
        char free_text[16];
        printf("temporary    ");
        report_name(temporary->text[i]);
        if (statvfs(temporary->text[i], &facts) == 0)
            printf(": %s free\n",
                   progress_size((int64_t)facts.f_bavail * (int64_t)facts.f_frsize, free_text));
        else
            printf(": not there\n");
    }
}

void plan_disk_print_rates(const struct plan_disk *disk)
{
    static const char *const from[] = {"given", "measured"};
    char read[REPORT_FIGURE_TEXT], write[REPORT_FIGURE_TEXT];
    if (!disk->asked)
        return;
    if (disk->options->disk)
        disk_rate_print(&disk->rate);
    if (disk->rates.read > 0)
        printf("  reads      %s of all ranks together, %s\n", report_figure(disk->rates.read, "B/s", read),
               from[disk->measured[0]]);
    if (disk->rates.write > 0)
        printf("  writes     %s of all ranks together, %s\n", report_figure(disk->rates.write, "B/s", write),
               from[disk->measured[1]]);
    print_temporary(&disk->options->temporary);
}

void plan_disk_print(const struct plan_disk *disk, int i)
{
    const struct plan_disk_ranks *of = &disk->of[i];
    const struct disk_forecast *forecast = &of->forecast;
    const double *seconds = forecast->cost.seconds;
    char memory[16], fixed[16], temporary[16];
    if (!disk->asked)
        return;
    printf("  memory     at most %s of the host for each rank, and %s besides\n",
           progress_size((int64_t)of->memory_bytes, memory),
           progress_size((int64_t)forecast->fixed_bytes, fixed));
    if (of->lacks[0])
        printf("  the disk   cannot be used: %s\n", of->lacks);
    else if (!forecast->by_disk)
        printf("  the disk   is not needed%s\n",
               of->any_memory ? " if a GPU has that memory: --device-memory says what it has" : "");
    else
        printf("  the disk   takes %" PRId64 " runs, %s; %" PRId64 " segments\n", forecast->parts,
               progress_size(forecast->temporary_bytes, temporary), forecast->parts);
    if (forecast->sorted_bytes > 0)
        printf("             and %s that are dealt out to several files\n",
               progress_size(forecast->sorted_bytes, temporary));
    if (forecast->cost.total_seconds > 0)
        printf("             runs %.3g s, cuts %.3g s, segments %.3g s: %.3g s in all\n",
               seconds[HSORT_PHASE_LOCAL_SORT], seconds[HSORT_PHASE_EXCHANGE], seconds[HSORT_PHASE_MERGE],
               forecast->cost.total_seconds);
    if (forecast->by_disk)
        printf("             %sthe other rows assume enough memory\n",
               forecast->cost.total_seconds > 0 ? "" : "how long that takes: --disk DIR; ");
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static void put_rate(struct json *json, const char *name, double rate, bool measured)
{
    if (!json_known(json, name, rate != 0))
        return;
    json_open(json, name, '{');
    json_real(json, "value", rate);
    json_text(json, "unit", "bytes/s");
    json_text(json, "source", measured ? "measured" : "given");
    json_close(json, '}');
}

void plan_disk_rates_json(struct json *json, const struct plan_disk *disk)
{
    json_open(json, "disk_rates", '{');
    put_rate(json, "read", disk->rates.read, disk->measured[0]);
    put_rate(json, "write", disk->rates.write, disk->measured[1]);
    json_close(json, '}');
    if (json_known(json, "disk", disk->options->disk != NULL))
        disk_rate_json(json, &disk->rate);
}

void plan_disk_json(struct json *json, const struct plan_disk *disk, int i)
{
    const struct plan_disk_ranks *of = &disk->of[i];
    const struct disk_forecast *forecast = &of->forecast;
    const struct hsort_plan_exchange *cost = &forecast->cost;
    if (!json_known(json, "by_disk", disk->asked))
        return;
    json_open(json, "by_disk", '{');
    json_bool(json, "needed", forecast->by_disk);
    json_text(json, "lacks", of->lacks[0] ? of->lacks : NULL);
    json_integer(json, "memory_bytes_per_rank", (int64_t)of->memory_bytes);
    json_integer(json, "fixed_bytes_per_rank", (int64_t)forecast->fixed_bytes);
    json_integer(json, "runs", forecast->parts);
    json_integer(json, "segments", forecast->parts);
    json_integer(json, plan_is_of_elements(disk->options) ? "records_per_run" : "keys_per_run", forecast->part_elements);
    json_integer(json, "run_bytes_on_disk", forecast->temporary_bytes);
    json_integer(json, "sorted_bytes_on_disk", forecast->sorted_bytes);
    if (json_known(json, "phases", cost->total_seconds > 0)) {
        json_open(json, "phases", '{');
        json_real(json, "local_sort", cost->seconds[HSORT_PHASE_LOCAL_SORT]);
        json_real(json, "exchange", cost->seconds[HSORT_PHASE_EXCHANGE]);
        json_real(json, "merge", cost->seconds[HSORT_PHASE_MERGE]);
        json_close(json, '}');
    }
    if (json_known(json, "total_seconds", cost->total_seconds > 0))
        json_real(json, "total_seconds", cost->total_seconds);
    json_close(json, '}');
}
